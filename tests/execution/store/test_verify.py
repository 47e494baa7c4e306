"""Whether a store belongs to a study is seen by computing one of its replicates again."""

import argparse
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ringtrue as rt
from ringtrue.errors import ReplicateFailed, StoreMismatch
from ringtrue.execution.store import Store, identity, merge, repair, verify

from ..test_runs import assert_identical
from .test_identity import _made


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal()


def _study(procedure: Any, **settings: Any) -> rt.Study:
    return rt.Study(rt.Normal(0, 1), _model, procedure, **settings)


def _run(study: rt.Study, path: Path, n: int = 6, **settings: Any) -> rt.Replicates:
    """Run, where no warning is let pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return rt.run(study, n=n, store=path, **settings)


# What fingerprints once missed: the scale comes from somewhere, and changes between two runs.


def _helper(folder: Path, name: str, scale: float) -> Any:
    (folder / f"{name}.py").write_text(f"def scale():\n    return {scale}\n")
    sys.modules.pop(name, None)
    return _made(f"def f(mu0, y):\n    import {name}\n    return rt.Normal(y / 2, {name}.scale())", rt=rt)


def _alias(folder: Path, scale: float) -> Any:
    helper = types.ModuleType("a_helper")
    exec(f"def scale():\n    return {scale}", helper.__dict__)
    return _made("def f(mu0, y):\n    h = helper\n    return rt.Normal(y / 2, h.scale())", rt=rt, helper=helper)


def _module(folder: Path, scale: float, source: str, helper: str = "sd = {}\n") -> Any:
    """Return what a source defines that has a module of the user's by the name of helper."""
    (folder / "a_helper_of_mine.py").write_text(helper.format(scale))
    sys.modules.pop("a_helper_of_mine", None)
    return _made(f"import a_helper_of_mine as helper\n{source}", rt=rt)


def _with(source: str, helper: str = "sd = {}\n") -> Callable[[Path, float], Any]:
    return lambda folder, scale: _module(folder, scale, source, helper)


def _reading(expression: str, **space: Any) -> Any:
    return _made(f"def f(mu0, y):\n    return rt.Normal(y / 2, float({expression}))", rt=rt, **space)


MISSED: dict[str, Callable[[Path, float], Any]] = {
    "import in a function": lambda folder, scale: _helper(folder, "some_helper_of_mine", scale),
    "a module named like Python's": lambda folder, scale: _helper(folder, "this", scale),
    "alias of a module": _alias,
    "data frame": lambda folder, scale: _reading("table.scale[0]", table=pd.DataFrame({"scale": [scale]})),
    "namespace": lambda folder, scale: _reading("options.scale", options=argparse.Namespace(scale=scale)),
    "long list": lambda folder, scale: _reading("table[-1]", table=[0.0] * 250_000 + [scale]),
    "many parts": lambda folder, scale: _reading(
        "table[-1][0]", table=[(float(k),) for k in range(210_000)] + [(scale,)]
    ),
    "set of tuples": lambda folder, scale: _reading("max(table)[1]", table={("a", scale), ("A", 0.5)}),
    "beside a memo": lambda folder, scale: _made(
        "memo = {}\ndef f(mu0, y):\n    memo[float(y)] = 1\n    return rt.Normal(y / 2, SD)", rt=rt, SD=scale
    ),
    "beside a key": lambda folder, scale: _made(
        "def f(mu0, y):\n    p['n'] = 1\n    return rt.Normal(y / 2, p['sd'])", rt=rt, p={"sd": scale}
    ),
    "attribute that another class writes to": lambda folder, scale: _made(
        "class U:\n    def g(self):\n        self.sd = 3\nu = U()\n"
        "def f(mu0, y):\n    u.g()\n    return rt.Normal(y / 2, c.sd)",
        rt=rt,
        c=types.SimpleNamespace(sd=scale),
    ),
    "module in a dict": _with(
        "mods = {'h': helper}\ndef f(mu0, y):\n    return rt.Normal(y / 2, mods['h'].sd)",
    ),
    "module of an object": _with(
        "class C:\n    def __init__(self):\n        self.h = helper\n    def __call__(self, mu0, y):\n"
        "        return rt.Normal(y / 2, self.h.sd)\nf = C()",
    ),
    "module in a closure": _with(
        "def make():\n    import a_helper_of_mine as h\n    def f(mu0, y):\n        return rt.Normal(y / 2, h.sd)\n"
        "    return f\nf = make()",
    ),
    "module by a text": _with("def f(mu0, y):\n    h = helper\n    return rt.Normal(y / 2, getattr(h, 'sd'))"),
    "module handed on": _with("def g(m):\n    return m.sd\ndef f(mu0, y):\n    return rt.Normal(y / 2, g(helper))"),
    "module's function by a text": _with(
        "def f(mu0, y):\n    return rt.Normal(y / 2, vars(helper)['sd']())", "def sd():\n    return {}\n"
    ),
    "module among all": _with(
        "import sys\ndef f(mu0, y):\n    return rt.Normal(y / 2, sys.modules['a_helper_of_mine'].sd)",
    ),
    "module imported by a text": _with(
        "import importlib\ndef f(mu0, y):\n    return rt.Normal(y / 2, importlib.import_module('a_helper_of_mine').sd)",
    ),
}


@pytest.mark.parametrize("how", MISSED)
def test_another_procedure_is_refused_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Two procedures never end up in one file, wherever they differ, and what changed is said."""
    monkeypatch.syspath_prepend(tmp_path)
    # Byte code is known by its source's size and second: a source that changes within a second would not be seen.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "run.db"
    ran = _run(_study(MISSED[how](tmp_path, 0.7)), path)
    with pytest.raises(
        StoreMismatch, match=r"replicate 0 was computed again.*The reason: procedure was (function )?\w, "
    ):
        _run(_study(MISSED[how](tmp_path, 0.3)), path, 12)
    assert_identical(_run(_study(MISSED[how](tmp_path, 0.7)), path), ran)
    for name in ("this", "some_helper_of_mine", "a_helper_of_mine"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("how", MISSED)
def test_another_procedure_is_refused_unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Where nothing can be computed again the digest decides alone: two procedures never end up in one file."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "run.db"
    _run(_study(MISSED[how](tmp_path, 0.7), reproducible=False), path)
    with pytest.raises(StoreMismatch, match="procedure is"):
        _run(_study(MISSED[how](tmp_path, 0.3), reproducible=False), path, 12)
    assert _run(_study(MISSED[how](tmp_path, 0.7), reproducible=False), path, 12).n == 12
    for name in ("this", "some_helper_of_mine", "a_helper_of_mine"):
        sys.modules.pop(name, None)


def test_a_module_that_is_changed_as_it_runs_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of a kept module that somebody sets counts; a memo of the module's functions does not."""
    monkeypatch.syspath_prepend(tmp_path)
    source = "mods = [helper]\ndef f(mu0, y):\n    return rt.Normal(y / 2, mods[0].scale(float(y)))"
    helper = "sd = {}\nmemo = {{}}\ndef scale(y):\n    memo[y] = 1\n    return sd\n"
    asked = _study(_module(tmp_path, 0.7, source, helper), reproducible=False)
    for n in (6, 8):
        _run(asked, tmp_path / "run.db", n)
    monkeypatch.setattr(sys.modules["a_helper_of_mine"], "sd", 0.3)
    with pytest.raises(StoreMismatch, match="procedure is"):
        _run(asked, tmp_path / "run.db", 12)
    sys.modules.pop("a_helper_of_mine")


# What was refused without need.


class _Compiled:
    """A procedure that compiles its model when it is first used."""

    def __init__(self) -> None:
        self._model: Any = None

    def __call__(self, mu0: Any, y: Any) -> Any:
        if self._model is None:
            self._model = {"compiled": object()}
        return rt.Normal(y / 2, 0.7)


class _CompiledFunction:
    """A procedure that keeps a function which it makes when it is first used."""

    def __init__(self) -> None:
        self.c: Any = None

    def __call__(self, mu0: Any, y: Any) -> Any:
        if self.c is None:
            self.c = lambda y: rt.Normal(y / 2, 0.7)
        return self.c(y)


class _SetByName(_CompiledFunction):
    """The same, with an attribute that a text names."""

    def __call__(self, mu0: Any, y: Any) -> Any:
        if self.c is None:
            setattr(self, "c", lambda y: rt.Normal(y / 2, 0.7))  # noqa: B010 - what is tested
        return self.c(y)


_memo: dict[float, Any] = {}


def _memoized(mu0: Any, y: Any) -> Any:
    if y not in _memo:
        _memo[y] = rt.Normal(y / 2, 0.7)
    return _memo[y]


def _with_default(mu0: Any, y: Any, memo: dict[float, Any] = {}) -> Any:  # noqa: B006 - what is tested
    return memo.setdefault(float(y), rt.Normal(y / 2, 0.7))


def _aliased(mu0: Any, y: Any) -> Any:
    m = _memo
    m[float(y)] = rt.Normal(y / 2, 0.7)
    return m[float(y)]


KEEPING: dict[str, Callable[[], Any]] = {
    "compiled": _Compiled,
    "compiled function": _CompiledFunction,
    "set by name": _SetByName,
    "memo": lambda: _memoized,
    "default": lambda: _with_default,
    "another name": lambda: _aliased,
}


@pytest.mark.parametrize("make", KEEPING.values(), ids=KEEPING)
@pytest.mark.parametrize("reproducible", [True, False])
def test_what_a_procedure_keeps_for_itself_is_no_reason(tmp_path: Path, make: Any, reproducible: bool) -> None:
    """A memo or a compiled model that came to be while it ran changes nothing, with no word said."""
    asked = _study(make(), reproducible=reproducible)
    _run(asked, tmp_path / "run.db")
    found = _run(asked, tmp_path / "run.db", 12)
    np.testing.assert_array_equal(found.u, rt.run(asked, n=12).u)


@pytest.mark.parametrize("make", KEEPING.values(), ids=KEEPING)
def test_shards_of_a_procedure_that_keeps_something_are_merged(tmp_path: Path, make: Any) -> None:
    """Shards that one process computed in a loop belong together."""
    asked = _study(make())
    for k in range(2):
        _run(asked, tmp_path / f"{k}.db", 20, shard=(k, 2))
    merge([tmp_path / "0.db", tmp_path / "1.db"], tmp_path / "all.db")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_identical(rt.run(asked, n=20, store=tmp_path / "all.db"), rt.run(asked, n=20))


def test_an_edited_docstring_is_no_reason(tmp_path: Path) -> None:
    """A sentence about a function is no part of it."""
    sources = [f'def f(mu0, y):\n    """{text}"""\n    return rt.Normal(y / 2, 0.7)' for text in ("One.", "Other.")]
    for n, source in enumerate(sources):
        _run(_study(_made(source, rt=rt)), tmp_path / "run.db", 6 + n)


# What decides.


def test_other_sources_with_the_same_numbers_go_on_with_a_warning(tmp_path: Path) -> None:
    """The change is named once; then the store knows both sources."""
    one, other = (_made(f"def f(mu0, y):\n    return rt.Normal({half}, 0.7)", rt=rt) for half in ("y / 2", "y * 0.5"))
    path = tmp_path / "run.db"
    _run(_study(one), path)
    with pytest.warns(UserWarning, match=r"procedure was function f, \w+ and is function f, \w+; replicate 0 .* same"):
        rt.run(_study(other), n=9, store=path)
    for procedure in (one, other):
        assert _run(_study(procedure), path, 12).n == 12


def _from_file(path: Path) -> Any:
    return lambda mu0, y: rt.Normal(y / 2, float(path.read_text()))


def test_a_change_that_cannot_be_seen_is_found(tmp_path: Path) -> None:
    """A file that the procedure reads is no part of a fingerprint; the numbers say that it changed."""
    (tmp_path / "scale").write_text("0.7")
    asked = _study(_from_file(tmp_path / "scale"))
    _run(asked, tmp_path / "run.db")
    (tmp_path / "scale").write_text("0.3")
    with pytest.raises(StoreMismatch, match=r"nothing that can be seen has changed.*tag="):
        _run(asked, tmp_path / "run.db", 12)


def test_last_digits_are_no_other_study(tmp_path: Path) -> None:
    """Another machine may round otherwise: the same sources go on with a warning; other sources do not."""
    (tmp_path / "scale").write_text("0.7")
    asked = _study(_from_file(tmp_path / "scale"))
    _run(asked, tmp_path / "run.db")
    (tmp_path / "scale").write_text("0.7000000000001")
    with pytest.warns(UserWarning, match="the same but for the last digits"):
        rt.run(asked, n=12, store=tmp_path / "run.db")
    with pytest.raises(StoreMismatch, match="procedure was"):
        _run(_study(lambda mu0, y: rt.Normal(y / 2, 0.7000000000001)), tmp_path / "run.db")


def test_a_stored_replicate_that_fails_now_is_another_study(tmp_path: Path) -> None:
    """What was computed once and cannot be computed now does not go on."""
    (tmp_path / "scale").write_text("0.7")
    asked = _study(_from_file(tmp_path / "scale"))
    _run(asked, tmp_path / "run.db")
    (tmp_path / "scale").write_text("wide")
    for on_failure in ("raise", "record"):
        with pytest.raises(StoreMismatch, match=r"computed then and fails now \(ValueError"):
            _run(asked, tmp_path / "run.db", 12, on_failure=on_failure)


def test_the_first_replicate_that_was_not_lost_is_computed_again(tmp_path: Path) -> None:
    """Lost replicates say nothing: of a store of such alone, another source is refused unseen."""

    def losing(below: float) -> Any:
        source = (
            f"def f(mu0, y):\n    if y > {below}:\n        raise ValueError('no')\n    return rt.Normal(y / 2, 0.7)"
        )
        return _study(_made(source, rt=rt))

    path = tmp_path / "run.db"
    lost = [one.replicate for one in _run(losing(0.0), path, on_failure="record").failures]
    assert 0 in lost
    alive = min(set(range(6)) - set(lost))
    with pytest.warns(UserWarning, match=f"replicate {alive} was computed again and is the same"):
        rt.run(losing(0.001), n=9, store=path, on_failure="record")
    every = tmp_path / "all.db"
    _run(losing(-99.0), every, on_failure="record")
    with pytest.raises(StoreMismatch, match="all lost"):
        _run(losing(0.0), every, 12, on_failure="record")


@pytest.mark.parametrize("settings", [{}, {"workers": 2}])
def test_a_batch_is_computed_again_by_whoever_computes(tmp_path: Path, settings: Any) -> None:
    """Of a batched study the batch is compared, as far as it is stored; workers do it if there are any."""

    def asked(sd: float) -> rt.Study:
        return rt.Study(
            rt.Normal(0, 1),
            lambda t, rng: t + rng.normal(size=t.shape),
            lambda mu0, y: rt.Normal(y / 2, np.where(y == y[-1], sd, 0.7)),
            batch=8,
        )

    path = tmp_path / "run.db"
    _run(asked(0.7), path, 5)
    assert_identical(_run(asked(0.7), path, 20, **settings), rt.run(asked(0.7), n=20))
    with pytest.raises(StoreMismatch, match="procedure was"):
        _run(asked(0.5), path, 24, **settings)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"seed": 1}, "seed is 0 there, but 1 here"),
        ({"draws": 98}, "draws is 99 there, but 98 here"),
        ({"batch": 2}, "batch is None there, but 2 here"),
        ({"f": {"square": lambda t: t**2}}, "the list of test functions"),
        ({"reproducible": False}, "reproducible is True there, but False here"),
    ],
)
def test_settings_must_be_the_same(tmp_path: Path, change: Any, name: str) -> None:
    """Whatever is a setting is compared as it is, before anything is computed."""
    asked = _study(lambda mu0, y: rt.Normal(y / 2, np.full(np.shape(y), 0.7)))
    _run(asked, tmp_path / "run.db")
    with pytest.raises(StoreMismatch, match=name):
        _run(replace(asked, **change), tmp_path / "run.db")
    with pytest.raises(StoreMismatch, match="tag is  there, but other here"):
        _run(asked, tmp_path / "run.db", tag="other")


# What cannot be seeded.


def _unseeded(mu0: Any, y: Any) -> Any:
    return y / 2 + 0.7 * np.random.default_rng().normal(size=19)


def test_a_study_that_cannot_be_reproduced_has_a_store_of_its_own(tmp_path: Path) -> None:
    """It runs, goes on and says what it is; what is there stays, and another source or tag is refused."""
    asked = _study(_unseeded, reproducible=False)
    first = _run(asked, tmp_path / "run.db", tag="v1")
    more = _run(asked, tmp_path / "run.db", 40, tag="v1")
    assert not more.header.reproducible
    np.testing.assert_array_equal(more.u[:6], first.u)
    assert len(np.unique(more.truth[:, 0])) == 40
    other = replace(asked, procedure=lambda mu0, y: _unseeded(mu0, y) + 1)
    with pytest.raises(StoreMismatch, match="procedure is"):
        _run(other, tmp_path / "run.db", 50, tag="v1")
    with pytest.raises(StoreMismatch, match="tag is v1 there, but v2 here"):
        _run(asked, tmp_path / "run.db", 50, tag="v2")
    for k in range(2):
        _run(asked, tmp_path / f"{k}.db")
    with pytest.raises(StoreMismatch, match="cannot be reproduced"):
        merge([tmp_path / "0.db", tmp_path / "1.db"], tmp_path / "all.db")


def test_no_replay_is_promised_of_what_cannot_be_replayed() -> None:
    """A failure of a study that is declared so says how to go on, and not how to see it again."""

    def failing(mu0: Any, y: Any) -> Any:
        raise ValueError("no")

    for settings in ({}, {"on_failure": "record", "failures_allowed": 0.1}):
        with pytest.raises(ReplicateFailed) as caught:
            rt.run(_study(failing, reproducible=False), n=60, **settings)  # type: ignore[arg-type]
        assert "replay" not in str(caught.value).lower()


# Versions.


def _pretend(monkeypatch: pytest.MonkeyPatch, numpy: str) -> None:
    known = {"ringtrue": "0.1", "numpy": numpy, "python": "3.11"}
    monkeypatch.setattr(identity, "versions", lambda: known)
    monkeypatch.setattr(verify, "versions", lambda: known)


def test_versions_are_compared_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another NumPy is named, once if the numbers are the same and first if they are not; the store lists all."""
    path, asked = tmp_path / "run.db", _study(lambda mu0, y: rt.Normal(y / 2, 0.7))
    _pretend(monkeypatch, "1.0")
    _run(asked, path)
    _pretend(monkeypatch, "2.0")
    said = "written with ringtrue 0.1 and NumPy 1.0, and this is ringtrue 0.1 and NumPy 2.0"
    with pytest.warns(UserWarning, match=f"{said}; replicate 0 was computed again and is the same"):
        rt.run(asked, n=9, store=path)
    _run(asked, path, 9)
    _pretend(monkeypatch, "3.0")
    with pytest.raises(StoreMismatch, match=r"The reason: it was written with ringtrue 0.1 and NumPy 1.0 and then"):
        _run(_study(lambda mu0, y: rt.Normal(y / 2, 0.1)), path)
    merge([path], tmp_path / "merged.db")
    repair(path, tmp_path / "repaired.db")
    for name in ("run.db", "merged.db", "repaired.db"):
        assert [one["numpy"] for one in Store.read(tmp_path / name).versions] == ["1.0", "2.0"]


def test_versions_of_shares_are_united(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge lists who computed any of its shares."""
    asked = _study(lambda mu0, y: rt.Normal(y / 2, 0.7))
    for k, numpy in enumerate(("1.0", "2.0", "1.0")):
        _pretend(monkeypatch, numpy)
        _run(asked, tmp_path / f"{k}.db", shard=(k, 3))
    merge([tmp_path / f"{k}.db" for k in range(3)], tmp_path / "all.db")
    assert [one["numpy"] for one in Store.read(tmp_path / "all.db").versions] == ["1.0", "2.0"]


def test_a_refused_study_leaves_a_finished_run_finished(tmp_path: Path) -> None:
    """More replicates that another study wants are not asked for in the file, which is judged as before."""
    path = tmp_path / "run.db"
    right, wrong = (_study(lambda mu0, y, sd=sd: rt.Normal(y / 2, sd)) for sd in (0.5**0.5, 0.3))
    _run(right, path, 20)
    with Store.read(path) as before:
        standing = before.progress()
    for folder in (path, tmp_path / "run/"):
        rt.run(right, n=20, store=f"{folder}/" if folder.suffix == "" else folder)
        with pytest.raises(StoreMismatch):
            rt.run(wrong, n=500, store=f"{folder}/" if folder.suffix == "" else folder)
        with Store.read(folder) as store:
            assert (store.n, store.done) == (20, 20)
    with Store.read(path) as after:
        assert (after.progress().n, after.progress().done) == (standing.n, standing.done)
    assert _run(right, path, 30).n == 30
