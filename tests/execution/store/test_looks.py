"""Looks at a stored run are counted, whoever looks, whatever happens to the file or the process in between."""

import json
import sqlite3
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.execution.store import Store, database, load, looks, merge, recompute, repair
from ringtrue.execution.store.codec import checksum
from ringtrue.judgement.looks import Look

from ...builders import BELIEF, noisy, says


def _draws(mu0: Any, y: Any, rng: Any) -> Any:
    return rng.normal(y / 2, 0.5**0.5, size=(19, *np.shape(y)))


STUDY = rt.Study(BELIEF, noisy, _draws, batch=50)


def _run(path: Path, n: int = 100, **settings: Any) -> rt.Replicates:
    return rt.run(STUDY, n=n, store=path, **settings)


def _numbers(path: Path) -> list[tuple[str, str]]:
    with Store.read(path) as store:
        return [(one["n"], one["test"]) for one in store.looks]


def test_what_is_another_look(tmp_path: Path) -> None:
    """More replicates are judged over time, which is one look; others, another test or function are new ones."""
    path = tmp_path / "run.db"
    assert rt.judge(_run(path, keep="draws")).look == Look(1, 1)
    assert rt.judge(load(path)).look == Look(1, 1)
    assert rt.judge(load(path), tolerance=rt.Tolerance(spread=0.2), alpha=0.01).look == Look(1, 1)
    assert rt.judge(_run(path, 150, keep="draws")).look == Look(2, 2, anytime=True)
    whole = load(path)
    assert rt.judge(whole.part(0, 120)).look == Look(2, 2, anytime=True)
    assert rt.judge(whole.part(50, 150)).look == Look(3, 3, anytime=True)
    assert rt.judge(whole.pick(slice(25, 125))).look == Look(4, 4, anytime=True)
    assert rt.judge(whole, test="ks").look == Look(2, 4, anytime=True)
    assert rt.judge(whole.about([0])).look == Look(5, 5, anytime=True)
    assert rt.judge(recompute(path, f={"square": lambda t: t**2})).look == Look(6, 6, anytime=True)
    assert rt.judge(whole).look == Look(2, 6, anytime=True)
    assert rt.judge(replace(whole, stored=None)).look == Look()


def test_a_check_with_a_store_remembers(tmp_path: Path) -> None:
    """A run that is extended by check is looked at again, and a run without a store never is."""
    found = [rt.check(STUDY, n=n, store=tmp_path / "run.db").look.number for n in (50, 50, 100)]
    assert found == [1, 1, 2]
    assert [rt.check(STUDY, n=n).look.number for n in (50, 100)] == [0, 0]


def test_looks_at_an_unfinished_run_count(tmp_path: Path) -> None:
    """What there is of a run is a look, and the same as when it is asked for later."""
    path = tmp_path / "run.db"
    _run(path, 200, shard=(0, 2))
    with Store.read(path) as store:
        assert rt.judge(store.replicates(n=store.prefix())).look == Look(1, 1, anytime=True)
    assert rt.judge(_run(path, 200)).look == Look(1, 1, anytime=True)


def _without_looks(path: Path) -> None:
    """Make a file what a version without looks wrote."""
    db = sqlite3.connect(path)
    for copy, text in db.execute("SELECT copy, text FROM meta").fetchall():
        value = json.loads(text)
        del value["looks"]
        row = (copy, json.dumps(value))
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (*row, checksum("meta", row)))
    db.commit()
    db.close()


def test_older_files_are_opened_and_then_remember(tmp_path: Path) -> None:
    """A file that was written before looks were remembered is read, extended and looked at."""
    path = tmp_path / "run.db"
    _run(path)
    _without_looks(path)
    assert load(path).stored is not None
    assert _numbers(path) == []
    assert rt.judge(_run(path, 150)).look == Look(1, 1)
    assert _numbers(path) == [("150", "combination")]


def test_a_look_that_cannot_be_written_is_judged_as_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that another program has locked counts no look: it is judged as the next one, and says so."""
    path = tmp_path / "run.db"
    rt.judge(_run(path))
    ran = _run(path, 150)
    monkeypatch.setattr(database, "_PATIENCE", 0.0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    result = rt.judge(ran)
    other.close()
    assert (result.look.number, result.look.known) == (2, 2)
    says(result.notes[0], "could not be written down", "locked by another program")
    assert len(_numbers(path)) == 1
    assert rt.judge(ran).look == Look(2, 2, anytime=True)


def test_a_file_that_is_gone_costs_no_judgement(tmp_path: Path) -> None:
    """Replicates whose file was removed are judged after the looks that were known when they were read."""
    path = tmp_path / "run.db"
    rt.judge(_run(path))
    ran = _run(path, 150)
    path.unlink()
    result = rt.judge(ran)
    assert result.look.number == 2
    says(result.notes[0], "could not be written down", "there is no file")


def test_a_writer_keeps_the_looks_of_others(tmp_path: Path) -> None:
    """Who judges a run while it is written is not forgotten when its description is written again."""
    path = tmp_path / "run.db"
    ran = _run(path, 100)
    fresh = np.zeros((3, len(ran.functions)))
    with Store.create_or_open(path, header=ran.header, fingerprint=_mark(path), n=200) as store:
        rt.judge(ran)
        store.add_reference(store.reference_count, fresh)
        rt.judge(ran.part(0, 50))
        store.add_reference(store.reference_count, fresh)
    assert _numbers(path) == [("100", "combination"), ("50", "over time")]


def _mark(path: Path) -> dict[str, str]:
    with Store.read(path) as store:
        return store.fingerprint


def test_a_judgement_that_dies_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before its look is written it was none; killed after, the same judgement is the same look."""
    path = tmp_path / "run.db"
    ran = _run(path)

    class Killed(BaseException):
        pass

    def dies(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(looks, "put_meta", dies)
        with pytest.raises(Killed):
            rt.judge(ran)
    assert _numbers(path) == []
    with monkeypatch.context() as patch:
        patch.setattr("ringtrue.judgement.judging.evidence", dies)
        with pytest.raises(Killed):
            rt.judge(ran)
    assert _numbers(path) == [("100", "combination")]
    assert rt.judge(load(path)).look == Look(1, 1)


def test_merged_and_repaired_files_keep_looks(tmp_path: Path) -> None:
    """The looks of all shares are looks at the whole, and a repair forgets none."""
    shares = [tmp_path / f"{i}.db" for i in range(2)]
    parts = [_run(share, shard=(i, 2)) for i, share in enumerate(shares)]
    assert [rt.judge(part).look for part in parts] == [Look(1, 1, anytime=True), Look(1, 1)]
    merge(shares, tmp_path / "whole.db")
    assert rt.judge(load(tmp_path / "whole.db")).look == Look(1, 2, anytime=True)
    repair(tmp_path / "whole.db", tmp_path / "saved.db")
    assert rt.judge(load(tmp_path / "saved.db")).look == Look(1, 2, anytime=True)


def _looks_of(path: Path, tests: list[str]) -> list[int]:
    whole = load(path)
    return [rt.judge(whole, test=test).look.number for test in tests]


@pytest.mark.process
def test_processes_that_look_at_once_are_all_counted(tmp_path: Path) -> None:
    """Two processes that look with different tests get different numbers, and the same one for the same."""
    path = tmp_path / "run.db"
    _run(path)
    tests = [["combination", "ks", "kuiper"], ["cook", "ecdf_gamma", "kuiper"]]
    with ProcessPoolExecutor(2) as pool:
        first, second = pool.map(_looks_of, [path, path], tests)
    assert first[-1] == second[-1]
    assert sorted({*first, *second}) == [1, 2, 3, 4, 5]
    assert len(_numbers(path)) == 5
