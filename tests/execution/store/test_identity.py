"""Fingerprints: what changes them, what does not, and that nothing of the user's is run."""

import argparse
import datetime
import decimal
import functools
import itertools
import linecache
import logging
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue.execution.store.identity import described, fingerprint

FIELDS = ["belief", "truth", "model", "procedure", "f", "prepare", "draws", "seed", "batch", "keep", "tag"]
_numbers = itertools.count()


def _made(source: str, name: str = "f", **space: Any) -> Any:
    """Return what some source code defines, in a namespace of its own, with the source at hand."""
    file = f"<made {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, [f"{line}\n" for line in source.splitlines()], file)
    return _without_source(source, name, file, **space)


def _without_source(source: str, name: str = "f", file: str = "<nowhere>", **space: Any) -> Any:
    namespace: dict[str, Any] = {"__name__": "a_users_module", "np": np, **space}
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]


def _study(**changes: Any) -> rt.Study:
    study = rt.Study(rt.Normal(0, 1), lambda t, rng: t + rng.normal(), lambda mu0, y: rt.Normal(y / 2, 0.7))
    return replace(study, **changes)


def test_fields_come_in_their_order_as_texts() -> None:
    """A fingerprint has its fields in the order in which a mismatch is looked for, and all are texts."""
    mark = fingerprint(_study(), tag="data of May", keep="draws")
    assert list(mark) == FIELDS
    assert all(type(value) is str for value in mark.values())
    assert (mark["keep"], mark["tag"], mark["f"]) == ("draws", "data of May", "the default family")


CHANGES: dict[str, Any] = {
    "belief": rt.Normal(0, 2),
    "truth": rt.Normal(0, 3),
    "model": lambda t, rng: t - rng.normal(),
    "procedure": lambda mu0, y: rt.Normal(y / 2, 0.8),
    "f": {"square": lambda t: t**2},
    "draws": 98,
    "seed": 1,
    "batch": 5,
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_field_sees_its_own_change_and_no_other(name: str) -> None:
    """Changing one part of a study changes its field of the fingerprint alone."""
    base = _study()
    mark, other = fingerprint(base), fingerprint(replace(base, **{name: CHANGES[name]}))
    assert [field for field in FIELDS if mark[field] != other[field]] == [name]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x):\n    return x + 1", "\n\n\ndef f(x):\n\n    # moved, with a remark\n    return x + 1"),
        ("def f(x):\n    return [y * 2 for y in x]", "\ndef f(x):\n    return [y * 2\n            for y in x]"),
        ("def f(x):\n    return x + 1", 'def f(x):\n    """Add one."""\n    return x + 1'),
        ("def f(x):\n    'A.'\n    return x + 1", "def f(x):\n    'Another.'\n    return x + 1"),
        (
            "class C:\n    'A.'\n    def __call__(self):\n        'B.'\n        return 1\nf = C()",
            "class C:\n    def __call__(self):\n        return 1\nf = C()",
        ),
    ],
    ids=["moved", "broken over lines", "a docstring", "another docstring", "docstrings of a class"],
)
def test_where_and_how_code_is_written_does_not_matter(one: str, other: str) -> None:
    """Line numbers, remarks, docstrings and line breaks leave a digest as it is."""
    assert described(_made(one)) == described(_made(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x):\n    return x + 1", "def f(x):\n    return x + 2"),
        ("def f(x):\n    return x + 1", "def f(x):\n    return x + 1.0"),
        ("def f(x):\n    return x + 0.0", "def f(x):\n    return x + -0.0"),
        ("def f(x):\n    return x + 1", "def f(x):\n    return x - 1"),
        ("def f(x):\n    return np.sin(x)", "def f(x):\n    return np.cos(x)"),
        ("def f(x, a=1):\n    return x", "def f(x, a=2):\n    return x"),
        ("def f(x, *, a=1):\n    return x", "def f(x, *, a=2):\n    return x"),
        ("K = 1\ndef f(x):\n    return x + K", "K = 2\ndef f(x):\n    return x + K"),
        ("K = np.ones(3)\ndef f(x):\n    return x + K", "K = np.ones(4)\ndef f(x):\n    return x + K"),
        ("def g(x):\n    return 1\ndef f(x):\n    return g(x)", "def g(x):\n    return 2\ndef f(x):\n    return g(x)"),
        ("def f(x):\n    return (lambda: 1)()", "def f(x):\n    return (lambda: 2)()"),
        ("def h(k):\n    return lambda x: k\nf = h(1)", "def h(k):\n    return lambda x: k\nf = h(2)"),
        ("K = 1\nf = lambda x: [K for _ in x]", "K = 2\nf = lambda x: [K for _ in x]"),
        (
            "class C:\n    def __call__(self):\n        return 1\nf = C()",
            "class C:\n    def __call__(self):\n        return 2\nf = C()",
        ),
        ("class B:\n    k = 1\nclass C(B):\n    pass\nf = C()", "class B:\n    k = 2\nclass C(B):\n    pass\nf = C()"),
        ("class C:\n    pass\nf = C()\nf.k = 1", "class C:\n    pass\nf = C()\nf.k = 2"),
        (
            "class C:\n    __slots__ = ('k',)\nf = C()\nf.k = 1",
            "class C:\n    __slots__ = ('k',)\nf = C()\nf.k = 2",
        ),
    ],
)
def test_what_a_function_or_object_does_matters(one: str, other: str) -> None:
    """Code, constants, defaults, closures, globals, helpers, methods, bases and attributes change a digest."""
    for make in (_made, _without_source):
        assert described(make(one)) != described(make(other))
        assert described(make(one)) == described(make(one))


@dataclass(frozen=True)
class _Settings:
    scale: float = 1.0
    rest: Any = field(default=None)

    @functools.cached_property
    def table(self) -> float:
        return self.scale**2


class _Plain:
    def __init__(self) -> None:
        self.scale = 1.0

    @functools.cached_property
    def table(self) -> float:
        return self.scale**2


@pytest.mark.parametrize("make", [_Settings, _Plain])
def test_what_was_computed_on_the_way_does_not_matter(make: Callable[[], Any]) -> None:
    """A cached property leaves a digest as it is."""
    value = make()
    before = described(value)
    assert value.table == 1.0
    assert described(value) == before


VALUES: list[Callable[[], Any]] = [
    lambda: stats.norm(1, 2),
    lambda: stats.norm(1, 3),
    lambda: stats.norm(loc=1, scale=2),
    lambda: stats.gamma(1, 2),
    lambda: stats.multivariate_normal([0.0, 0.0]),
    lambda: stats.multivariate_normal([0.0, 1.0]),
    lambda: functools.partial(np.add, 1),
    lambda: functools.partial(np.add, 2),
    lambda: np.sin,
    lambda: np.cos,
    lambda: len,
    lambda: "abc".upper,
    lambda: "abd".upper,
    lambda: np.arange(3),
    lambda: np.arange(3.0),
    lambda: np.arange(3).reshape(3, 1),
    lambda: np.array([1, "a", None], dtype=object),
    lambda: np.array([1, "b", None], dtype=object),
    lambda: np.array("x", dtype=object),
    lambda: np.float32(1),
    lambda: np.float64(1),
    lambda: 1,
    lambda: 1.0,
    lambda: True,
    lambda: "1",
    lambda: b"1",
    lambda: None,
    lambda: [1, 2],
    lambda: (1, 2),
    lambda: [1, [2]],
    lambda: {1, 2},
    lambda: {"a": 1, "b": 2},
    lambda: {"b": 2, "a": 1},  # the order of a dict is the order of columns
    lambda: types.SimpleNamespace(a=1),
    lambda: types.SimpleNamespace(a=2),
    lambda: _Settings(1.0),
    lambda: _Settings(2.0),
    lambda: _Settings(1.0, rest=_Settings(2.0)),
    lambda: _Settings().__repr__,
    lambda: rt.Normal([0, 1], 1),
    lambda: rt.procedures.NormalMean(),
    lambda: rt.procedures.NormalMean(power=0.5),
    lambda: rt.contaminated(np.sin, np.cos, 0.1),
    lambda: rt.Coordinate(index=(1,)),
    lambda: rt.Coordinate(index=(2,)),
    lambda: np.vectorize(_made("def f(x):\n    return 1")),
    lambda: np.vectorize(_made("def f(x):\n    return 2")),
    lambda: functools.lru_cache(_made("def f(x):\n    return 1")),
    lambda: functools.lru_cache(_made("def f(x):\n    return 2")),
    lambda: np.ma.masked_array([1, 2], [False, True]),
    lambda: np.ma.masked_array([1, 2], [True, False]),
    lambda: rt,
    lambda: np,
    lambda: argparse.Namespace(scale=1.0),
    lambda: argparse.Namespace(scale=2.0),
    lambda: pd.DataFrame({"x": [1.0, 2.0]}),
    lambda: pd.DataFrame({"x": [1.0, 3.0]}),
    lambda: pd.DataFrame({"z": [1.0, 2.0]}),
    lambda: pd.Series(["a", "b"]),
    lambda: pd.Series(["a", "c"]),
    lambda: decimal.Decimal("1.5"),
    lambda: decimal.Decimal("1.6"),
    lambda: datetime.date(2020, 1, 1),
    lambda: datetime.date(2020, 1, 2),
    lambda: [0.0] * 30_000,
    lambda: [0.0] * 29_999 + [1.0],
    lambda: [[0.0]] * 3 + [[0.0] for _ in range(25_000)],
    lambda: [[0.0]] * 3 + [[0.0] for _ in range(24_999)] + [[1.0]],
    lambda: _Settings,
    lambda: range(3),
    lambda: slice(1, 2),
    lambda: 1j,
    lambda: Path("a"),
]


def test_values_made_again_agree_and_different_ones_do_not() -> None:
    """A digest is a function of what a value is: the same when made again, another for every other value."""
    once, again = [described(make()) for make in VALUES], [described(make()) for make in VALUES]
    assert once == again
    digests = [text.rpartition(", ")[2] for text in once]
    assert "unseen" not in digests
    twice = [k for k, digest in enumerate(digests) if digests.index(digest) != k]
    assert not twice


ALIASES = {
    "attribute": "def f(x):\n    return helpers.g(x)",
    "alias": "def f(x):\n    h = helpers\n    return h.g(x)",
    "other name": "h = helpers\ndef f(x):\n    return h.g(x)",
}


@pytest.mark.parametrize("source", ALIASES.values(), ids=ALIASES.keys())
def test_modules_of_the_user_are_seen_through_what_is_taken_from_them(source: str) -> None:
    """A helper in a user's module is part of the function that calls it, by whatever name; the rest is not."""
    digests = []
    for body, unused in (("return 1", 1), ("return 2", 1), ("return 1", 2)):
        helpers = types.ModuleType("some_helpers")
        exec(f"unused = {unused}\ndef g(x):\n    {body}", helpers.__dict__)
        digests.append(described(_made(source, helpers=helpers)))
    assert digests[0] != digests[1]
    assert digests[0] == digests[2]


IMPORTS = {
    "import": "import {0}\n    return {0}.g(x)",
    "import as": "import {0} as h\n    return h.g(x)",
    "from": "from {0} import g\n    return g(x)",
    "through another": "import through_{0}\n    return through_{0}.k(x)",
}


@pytest.mark.parametrize("how", IMPORTS)
@pytest.mark.parametrize("name", ["some_helper", "statistics", "this"])
def test_imports_inside_a_function_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    """The source of a user's module counts, before and after it was imported, also if it is named like Python's."""
    monkeypatch.syspath_prepend(tmp_path)
    for gone in (name, f"through_{name}"):
        monkeypatch.delitem(sys.modules, gone, raising=False)
    function = _made("def f(x):\n    " + IMPORTS[how].format(name))
    (tmp_path / f"through_{name}.py").write_text(f"from {name} import g\ndef k(x):\n    return g(x)\n")
    digests = []
    for value in (1, 2, 1):
        (tmp_path / f"{name}.py").write_text(f"def g(x):\n    return {value}\n")
        digests.append(described(function))
    assert function(0) == 1
    digests.append(described(function))
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"through_{name}", raising=False)
    assert digests[0] != digests[1]
    assert digests[0] == digests[2] == digests[3]


WRITING = {
    "memo": "memo = {}\ndef f(x):\n    if x not in memo:\n        memo[x] = x + 0.7\n    return memo[x]",
    "memo, and a global": "memo = {}\nSD = 0.7\ndef f(x):\n    memo[x] = 1\n    return SD",
    "memo in a memo": "import collections\nmemo = collections.defaultdict(dict)\nSD = 0.7\n"
    "def f(x):\n    memo[x][x + 1] = SD\n    return x",
    "list": "seen = []\nSD = 0.7\ndef f(x):\n    seen.append(x)\n    return SD",
    "global": "model = None\nSD = 0.7\ndef f(x):\n    global model\n    model = model or object()\n    return SD",
    "globals": "SD = 0.7\ndef f(x):\n    globals()['n'] = globals().get('n', 0) + 1\n    return SD + n",
    "closure": "def h(sd):\n    memo = {}\n    def f(x):\n        return memo.setdefault(x, sd)\n    return f\n"
    "f = h(0.7)",
    "nonlocal": "def h(sd):\n    n = 0\n    def f(x):\n        nonlocal n\n        n += 1\n        return sd\n"
    "    return f\nf = h(0.7)",
    "default": "SD = 0.7\ndef f(x, memo={}):\n    memo[x] = SD\n    return x",
    "default by name": "SD = 0.7\ndef f(x, *, memo={}):\n    memo[x] = SD\n    return x",
    "another name": "memo = {}\nSD = 0.7\ndef f(x):\n    m = memo\n    m[x] = SD\n    return x",
    "two other names": "memo, log = {}, []\nSD = 0.7\ndef f(x):\n    m, k = memo, log\n    n = m\n    n[x] = SD\n"
    "    k.append(x)\n    return x",
    "function attribute": "SD = 0.7\ndef f(x):\n    f.memo[x] = SD\n    f.calls += 1\n    return x\n"
    "f.memo, f.calls = {}, 0",
    "array": "buffer = np.zeros(3)\nSD = 0.7\ndef f(x):\n    buffer[:] = x\n    return SD",
    "part of an array": "buffer = np.array([0.7, 0.0])\ndef f(x):\n    buffer[1] = x\n    return buffer[0]",
    "part of a list": "state = [0.7, 0]\ndef f(x):\n    state[-1] += 1\n    return state[0]",
    "queue": "import collections\nlast = collections.deque(maxlen=3)\nSD = 0.7\ndef f(x):\n    last.append(x)\n"
    "    return SD",
    "key": "params = {'sd': 0.7}\ndef f(x):\n    params['count'] = 1\n    return params['sd']",
    "keys": "params = {'sd': 0.7, 'n': 1}\ndef f(x):\n    params.update(n=2, m=3)\n    params.pop('n')\n"
    "    return params['sd']",
    "key of a library's dict": "import collections\nparams = collections.Counter(sd=0.7)\n"
    "def f(x):\n    params['count'] += 1\n    return params['sd']",
    "key in a dict": "params = {'a': {'sd': 0.7}}\ndef f(x):\n    p = params['a']\n    p['count'] = 1\n"
    "    return p['sd']",
    "another's attribute": "import types\nc = types.SimpleNamespace(sd=0.7, n=0)\ndef f(x):\n    c.n += 1\n"
    "    return c.sd",
    "another's memo": "class C:\n    pass\nc = C()\nc.memo, c.sd = {}, 0.7\ndef f(x):\n    c.memo[x] = c.sd\n"
    "    return x",
    "frame": "import pandas as pd\ntable = pd.DataFrame({'n': [0]})\nSD = 0.7\n"
    "def f(x):\n    table.loc[0, 'n'] += 1\n    return SD",
    "argument": "memo = {}\nSD = 0.7\ndef g(m, x):\n    m[x] = 1\ndef fill(x, *, m):\n    g(m, x)\n"
    "def f(x):\n    fill(x, m=memo)\n    return SD",
    "argument with a setting": "p = {'sd': 0.7}\ndef g(m):\n    m['n'] = 1\n    return m['sd']\ndef f(x):\n"
    "    return g(p)",
    "out": "buffer = np.zeros(2)\nSD = 0.7\ndef f(x):\n    np.add(buffer, 1, out=buffer)\n    return SD",
    "decorator": "import functools\ndef memoize(g):\n    memo = {}\n    @functools.wraps(g)\n    def run(x):\n"
    "        memo[x] = g(x)\n        return memo[x]\n    return run\n@memoize\ndef f(x):\n    return 0.7",
    "single dispatch": "import functools\n@functools.singledispatch\ndef g(x):\n    return 0.7\n"
    "def f(x):\n    return g(x)",
    "lru": "import functools\n@functools.lru_cache\ndef f(x):\n    return x + 0.7",
    "lru of another": "import functools\n@functools.lru_cache\ndef g(x):\n    return x + 0.7\ndef f(x):\n"
    "    return g(x)",
}


def _class(*body: str, start: str = "self.c = None") -> str:
    """Return the source of an object that is called, with a scale and something else to start from."""
    inside = "".join(f"        {line}\n" for line in body)
    return (
        f"class C:\n    n = 0\n    def __init__(self, sd):\n        self.sd = sd\n        {start}\n"
        f"    def __call__(self, x):\n{inside}        return self.sd\n"
        f"    def compile(self):\n        self.c = lambda x: self.sd\nf = C(0.7)"
    )


WRITING |= {
    "new attribute": _class("self.compiled = object()"),
    "compiled": _class("self.c = self.c or [x]"),
    "compiled function": _class("if self.c is None:", "    self.c = lambda x: self.sd", "self.c(x)"),
    "new compiled function": _class("if not hasattr(self, 'k'):", "    self.k = lambda x: self.sd", "self.k(x)"),
    "compiled elsewhere": _class("if self.c is None:", "    self.compile()"),
    "compiled with a memo": "table = {}\n" + _class("def g(y):", "    table[y] = 1", "self.c = g", "self.c(x)"),
    "setattr": _class("setattr(self, 'c', object())"),
    "object.__setattr__": _class("object.__setattr__(self, 'c', object())"),
    "dict of attributes": _class("self.__dict__['c'] = object()", "vars(self)['d'] = object()"),
    "memo of an object": _class("self.memo[x] = x", start="self.memo = {}"),
    "memo by another name": _class("m = self.memo", "m[x] = x", start="self.memo = {}"),
    "key of an object": _class("self.state['n'] += 1", start="self.state = {'sd': sd, 'n': 0}"),
    "counter of a class": _class("C.n += 1", "type(self).m = 1"),
    "parts of an object": "class P:\n    pass\n"
    + _class("for p in self.parts:", "    p.c = object()", start="self.parts = [P(), P()]"),
    "a part of an object": "class P:\n    pass\n"
    + _class("self.parts[x - 3].c = object()", start="self.parts = [P(), P()]"),
    "slots": _class("self.c = object()").replace("    n = 0", "    __slots__ = ('sd', 'c')"),
    "inherited": _class("self.c = object()").replace("f = C(", "class D(C):\n    pass\nf = D("),
    "decorated": "def deco(g):\n    def run(*args):\n        return g(*args)\n    return run\n"
    + _class("self.c = object()").replace("    def __call__", "    @deco\n    def __call__"),
    "handed on": "def work(o, x):\n    o.c = [x]\n" + _class("work(self, x)"),
    "memo of a class": _class("self.memo[x] = 1").replace("    n = 0", "    memo = {}"),
    "class method": _class("self.note(x)").replace(
        "    n = 0", "    memo = {}\n    @classmethod\n    def note(cls, x):\n        cls.memo[x], cls.last = 1, x"
    ),
    "property": _class("self.k").replace(
        "    n = 0", "    @property\n    def k(self):\n        self.c = self.c or [1]\n        return self.c"
    ),
    "bound method": _class("self.c = [x]").replace("C(0.7)", "C(0.7).__call__"),
    "bound method by another name": _class("self.c = [x]").replace("__call__", "fit").replace("C(0.7)", "C(0.7).fit"),
    "data class": "from dataclasses import dataclass\n@dataclass\nclass C:\n    sd: float\n    def __call__(self, x):\n"
    "        self.c = [x]\n        return self.sd\nf = C(0.7)",
}


@pytest.mark.parametrize("source", WRITING.values(), ids=WRITING.keys())
def test_what_a_function_writes_to_is_no_part_of_it(source: str) -> None:
    """Running a procedure that keeps a memo or a compiled model leaves its digest as it is; all else still counts."""
    function, other = _made(source), _made(source.replace("0.7", "0.1"))
    before, others = described(function), described(other)
    assert before != others
    for called in (function, other):
        called(3)
        called(4)
    assert described(function) == before
    assert described(other) == others


def test_what_one_part_of_a_study_writes_to_is_no_part_of_another() -> None:
    """A model that fills a table which the procedure reads leaves the procedure's digest as it is."""
    table: dict[float, float] = {}
    model = _made("def f(t, rng):\n    table[t] = 1\n    return t", table=table)
    procedure = _made("def f(mu0, y):\n    return table[y]", table=table)
    study = _study(model=model, procedure=procedure)
    before, alone = fingerprint(study), described(procedure)
    model(3.0, None)
    assert fingerprint(study) == before
    assert described(procedure) != alone


def test_what_a_belief_writes_to_is_no_part_of_it() -> None:
    """Methods that ringtrue calls write while a study runs; a setter that nobody calls then does not."""
    source = (
        "class Belief:\n    marginal = None\n    def put(self, sd):\n        self.sd = sd\n"
        "    def sample(self, m, rng):\n        self.last = rng.normal(0, self.sd, size=m)\n        return self.last\n"
    )
    belief, other = (_made(f"{source}f = Belief()\nf.put({sd})") for sd in (0.7, 0.1))
    study = _study(belief=belief)
    before = fingerprint(study)
    rt.run(study, n=3)
    assert belief.last.size
    assert fingerprint(study) == before
    assert fingerprint(replace(study, belief=other))["belief"] != before["belief"]


@pytest.mark.parametrize("source", [one for one in WRITING.values() if "SD = 0.7" in one or "sd = sd" in one])
def test_a_setting_beside_a_memo_counts(source: str) -> None:
    """A global or an attribute that is changed from outside changes the digest of a function that has a memo."""
    function = _made(source)
    function(3)
    before = described(function)
    if "SD" in source:
        getattr(function, "__wrapped__", function).__globals__["SD"] = 0.1
    else:
        getattr(function, "__self__", function).sd = 0.1
    assert described(function) != before


HIDING = {
    "attribute of an unrelated class": "class Cfg:\n    pass\ncfg = Cfg()\ncfg.sd = 0.7\nclass U:\n    def g(self):\n"
    "        self.sd = 3\nu = U()\ndef f(x):\n    u.g()\n    return cfg.sd",
    "attribute of another object": "class Cfg:\n    pass\ncfg, other = Cfg(), Cfg()\ncfg.sd = 0.7\ndef f(x):\n"
    "    other.sd = 1\n    return cfg.sd",
    "key of another dict": "params, other = {'sd': 0.7}, {}\ndef f(x):\n    other['sd'] = 1\n    return params['sd']",
    "another key": "params = {'sd': 0.7}\ndef f(x):\n    params['count'] = 1\n    return params['sd']",
    "copy": "params = {'sd': 0.7}\ndef f(x):\n    p = dict(params)\n    p.update(a=x)\n    p[x] = 1\n"
    "    return p['sd']",
    "copy under the name of the whole": "params = {'sd': 0.7}\ndef f(x):\n    p = params\n    p = dict(p)\n"
    "    p[x] = 1\n    return p['sd']",
    "variable of a function of the same name": "sd = 0.7\ndef g(x):\n    sd = []\n    sd.append(x)\n    return sd\n"
    "def f(x):\n    g(x)\n    return sd",
    "global of another module": "sd = 0.7\ndef f(x):\n    g(x)\n    return sd",
    "global that is only read": "sd = 0.7\ndef f(x):\n    global sd\n    return sd",
    "method that grows": "class Cfg:\n    sd = 0.7\n    def update(self):\n        return 1\ncfg = Cfg()\n"
    "def f(x):\n    cfg.update()\n    return cfg.sd",
    "function of a module that grows": "table = (0.7,)\ndef f(x):\n    return np.append(table, x)",
    "setter called in the making": "class C:\n    def __init__(self, sd):\n        self.put(sd)\n"
    "    def put(self, sd):\n"
    "        self.sd = sd\n    def __call__(self, x):\n        return self.sd\nf = C(0.7)",
    "setter called before": "class C:\n    def put(self, sd):\n        self.sd = sd\n        return self\n"
    "    def __call__(self, x):\n        return self.sd\nf = C().put(0.7)",
    "data class that is extended": "from dataclasses import dataclass\n@dataclass\nclass B:\n    k: int = 1\n"
    "class C(B):\n    def __init__(self, sd):\n        self.sd = sd\nf = C(0.7)",
    "property": "class C:\n    def __init__(self, sd):\n        self.sd = sd\n    @property\n    def sd(self):\n"
    "        return self._sd\n    @sd.setter\n    def sd(self, value):\n        self._sd = value\n"
    "    def __call__(self, x):\n        return self.sd\nf = C(0.7)",
    "setter": "class C:\n    sd = property(lambda self: 1)\n    @sd.setter\n    def sd(self, value):\n"
    "        print(0.7)\n    def __call__(self, x):\n        self.sd = x\nf = C()",
    "function attribute": "def f(x):\n    return f.sd\nf.sd = 0.7",
    "copy that is handed on": "p = {'sd': 0.7}\ndef g(m):\n    m['sd'] = 1\ndef f(x):\n    g(dict(p))\n"
    "    return p['sd']",
    "the same object twice": "a, b = [0.7], [0.1]\ntable = [a, b, a]\ndef f(x):\n    return table[-1]",
    "set of tuples": "S = {('a', 0.7)}\ndef f(x):\n    return max(S)[1]",
    "set of sets": "S = {frozenset({('a', 0.7)}), frozenset({('b', 1)})}\ndef f(x):\n    return S",
    "set of objects": "class P:\n    def __init__(self, sd):\n        self.sd = sd\nS = {P(0.7), P(2)}\n"
    "def f(x):\n    return S",
    "set of arrays' numbers": "S = {np.float64(0.7), np.float64(1)}\ndef f(x):\n    return S",
}


@pytest.mark.parametrize("source", HIDING.values(), ids=HIDING.keys())
def test_a_write_hides_nothing_but_its_own_place(source: str) -> None:
    """What is written elsewhere under the same word, or beside it, leaves a setting part of the digest."""
    others: dict[str, Any] = {}
    exec("def g(x):\n    global sd\n    sd = x", others)
    space = {} if "def g" in source else {"g": others["g"]}
    twin = source.replace("[a, b, a]", "[a, b, b]") if "[a, b, a]" in source else source.replace("0.7", "0.1")
    assert described(_made(source, **space)) != described(_made(twin, **space))
    assert described(_made(source, **space)) == described(_made(source, **space))


def test_what_a_function_only_reads_is_part_of_it() -> None:
    """The broken twin: a table and an attribute that no function writes to count with their contents."""
    source = "table = {}\ndef f(x):\n    mine = dict(table)\n    mine[x] = 1\n    return mine"
    function = _made(source)
    before = described(function)
    function.__globals__["table"]["scale"] = 2.0
    assert described(function) != before
    value = _made("class C:\n    def __init__(self):\n        self.k = 1\nf = C()")
    before = described(value)
    value.k = 2
    assert described(value) != before


class _Touchy:
    """An object that notices when it is asked anything."""

    asked: list[str] = []  # noqa: RUF012 - shared on purpose

    def __init__(self) -> None:
        object.__setattr__(self, "inside", 1)

    def _note(self, *args: Any) -> Any:
        _Touchy.asked.append("asked")
        raise RuntimeError("a user's code was run")

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __iter__ = __getattr__ = __bool__ = _note
    __getattribute__ = __call__ = __reduce__ = __array__ = __getitem__ = _note
    value = property(_note)
    __class__ = property(_note)


class _TouchyMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError("a user's code was run")


class _TouchyClass(metaclass=_TouchyMeta):
    pass


class _TouchyList(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        raise RuntimeError("a user's code was run")

    __len__ = __repr__ = __getitem__ = __iter__  # type: ignore[assignment]


TOUCHY: dict[str, Callable[[], Any]] = {
    "object": lambda: _Touchy(),
    "list": lambda: _TouchyList([1, 2]),
    "class": lambda: _TouchyClass,
}


@pytest.mark.parametrize("kind", TOUCHY)
def test_nothing_of_the_users_is_run(kind: str) -> None:
    """Objects that raise whatever they are asked are digested unasked, in containers and where they are written to."""
    value = TOUCHY[kind]()
    _Touchy.asked.clear()
    source = "def f(x):\n    m = t.inside\n    m[x], t[x], t.k.c, t['a'] = 1, 2, 3, 4\n    t.append(x)\n    g(t, m=s)\n"
    writing = _made(f"{source}def g(o, m):\n    o.value[1] = m\n    vars(o)['c'] = 1", t=value, s={"a": value})
    texts = [described(value), described({"key": value}), described([value]), described(lambda: value)]
    texts += [described(writing), described({1: {"a": value}, (2,): value})]
    assert not _Touchy.asked
    assert not any(text.endswith("unseen") for text in texts)


def test_cycles_depth_and_odd_objects_do_no_harm() -> None:
    """Lists in themselves, functions that call each other, long chains, locks and loggers are digested."""
    ring: list[Any] = [1]
    ring.append(ring)
    chain: Any = None
    nested: Any = ()
    for _ in range(10_000):
        chain, nested = [chain], (nested,)
    pair = _made("def f(x):\n    return g(x)\ndef g(x):\n    return f(x)")
    odd = [
        threading.Lock(),
        logging.getLogger("a"),
        sys.stdout,
        np.random.default_rng(1),
        iter([1]),
        _made("f = (i for i in [])"),
    ]
    for value in [ring, chain, nested, {(nested[0][0], 1)}, pair, *odd]:
        assert not described(value).endswith("unseen")
        assert described(value) == described(value)


def test_loggers_of_others_do_not_matter() -> None:
    """What else happens in the process is no part of a function that logs."""
    function = _made("def f(x):\n    log.info('x')\n    return x", log=logging.getLogger("mine"))
    before = described(function)
    logging.getLogger("mine.child of another")
    assert described(function) == before


SCRIPT = """
import functools
import numpy as np
import ringtrue as rt
from ringtrue.execution.store.identity import fingerprint
NAMES = {"a", "b", "c", "d"}
TABLE = {name: np.arange(k) for k, name in enumerate("xyz")}
class Noise:
    def __init__(self, sd):
        self.sd, self.kinds = sd, frozenset(["p", "q", "r"])
    def __call__(self, rng):
        return self.sd * rng.normal() if "p" in NAMES | {"p"} else 0
noise = Noise(1.0)
KEPT = {noise, Noise(2.0), Noise(3.0), ("a", noise.sd), frozenset([("b", "c"), ("d", "e")])}
def keep(x, memo={}, log=[]):
    memo[x], kept = 1, KEPT
    log.append(kept)
    return globals
def model(t, rng):
    return t + keep(t) + noise(rng) + TABLE["x"].sum() if t not in {"u", "v", "w"} else 0
procedure = functools.partial(lambda k, mu0, y: rt.Normal(y / 2, k), 0.7)
study = rt.Study(rt.Normal(0, 1), model, procedure, f={"s": lambda t: t})
print(fingerprint(study))
"""


@pytest.mark.process
def test_another_process_finds_the_same(tmp_path: Path) -> None:
    """A script run again, or imported, with another order of hashes and from another file, has the same fingerprint."""
    found = set()
    for seed, how in (("1", ["one.py"]), ("2", ["two.py"]), ("77", ["-c", "import one"])):
        (tmp_path / how[0].replace("-c", "one.py")).write_text("\n" * int(seed) + SCRIPT)
        done = subprocess.run(
            [sys.executable, *how],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
