"""Stores on the command line: one sentence and exit code 3 for every damaged file, verdicts for the others."""

import json
import pickle
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import ringtrue as rt
from ringtrue.execution.store.codec import checksum

from .execution.test_runs import assert_identical, study
from .test_cli import _exit

STUDY = """
import ringtrue as rt

belief, n = rt.Normal(0, 1), 60


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    if y > 2.5:
        raise ValueError("too large")
    return rt.Normal(y / 2, 0.5**0.5)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return the name of a file with a study."""
    (tmp_path / "study.py").write_text(STUDY)
    return str(tmp_path / "study.py")


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """Return a finished run of ten rows."""
    path = tmp_path / "run.db"
    for i in range(10):
        rt.run(study(), n=60, store=path, shard=(i, 10))
    return path


@pytest.mark.slow
def test_shards_are_merged_shown_and_judged(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three shares, which are not judged, are judged as one run is when merged, and show says what failed."""
    whole = str(tmp_path / "whole.db")
    code = _exit("check", file, "--on-failure", "record", "--store", whole, "--json")
    expected = json.loads(capsys.readouterr().out)
    shards = [str(tmp_path / f"{i}.db") for i in range(3)]
    for i, shard in enumerate(shards):
        _runs("check", file, "--on-failure", "record", "--store", shard, "--shard", f"{i}/3")
        assert "20 of 60 replicates" in capsys.readouterr().out
    merged = str(tmp_path / "merged.db")
    _runs("merge", merged, *shards)
    capsys.readouterr()
    assert _exit("judge", merged, "--json") == code
    assert json.loads(capsys.readouterr().out) == expected
    _runs("show", merged)
    shown = capsys.readouterr().out
    assert "60 of 60 replicates" in shown
    assert "failed in the procedure: ValueError: too large" in shown
    assert "judged 1 time: combination at n = 60" in shown


def test_a_run_is_kept_and_not_judged(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says how far it came, and other commands read the directory it wrote."""
    folder = f"{tmp_path / 'runs'}/"
    _runs("run", file, "--on-failure", "record", "--store", folder)
    assert "60 of 60 replicates" in capsys.readouterr().out
    assert "judged" not in capsys.readouterr().out
    (tmp_path / "study.py").write_text(STUDY.replace("y > 2.5", "y > 99"))
    with pytest.warns(UserWarning, match="computed again"):
        _runs("run", file, "--store", folder, "--retry-failures")
    assert "60 of 60 replicates, 0 failed" in capsys.readouterr().out
    _runs("show", folder)
    assert "60 of 60 replicates, 0 failed" in capsys.readouterr().out
    assert _exit("judge", folder) in (0, 1, 2)
    assert _exit("report", folder, "-o", str(tmp_path / "page.html")) in (0, 1, 2)


def test_a_run_that_is_not_kept_is_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing would be left of it."""
    assert _exit("run", file) == 3
    assert "--store" in capsys.readouterr().err


def test_a_share_is_not_judged(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A verdict on a share is refused, since it would be a look at the whole."""
    assert _exit("check", file, "--store", str(tmp_path / "0.db"), "--shard", "0/3", "--json") == 3
    assert "a share of a run is not judged" in capsys.readouterr().err


def _runs(*arguments: str) -> None:
    from ringtrue.cli import main

    main(arguments)


@pytest.mark.process
def test_a_run_with_workers_goes_on_from_a_store(file: str, tmp_path: Path) -> None:
    """--workers, --timeout, --keep and --tag reach the run, and a larger --n goes on."""
    path = str(tmp_path / "run.db")
    options = ("--store", path, "--on-failure", "record", "--tag", "a", "--keep", "draws")
    _exit("check", file, *options, "--n", "20")
    _exit("check", file, *options, "--workers", "2", "--timeout", "600")
    assert rt.store.load(path).n == 60
    assert rt.store.recompute(path, f={"square": lambda t: t**2}).n == 60
    assert _exit("check", file, "--store", path, "--tag", "b", "--keep", "draws") == 3


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.index(b"NUMPY") + 2000
    data[at] ^= 1
    path.write_bytes(data)


def _newer(path: Path) -> None:
    _sql(path, "PRAGMA user_version=99")


def _not_ours(path: Path) -> None:
    path.unlink()
    _sql(path, "CREATE TABLE spans (first INTEGER)")


def _text(path: Path) -> None:
    path.write_text("n,u\n1,0.5\n" * 100)


class _Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def _pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(_Bomb(path.with_name("exploded"))))


def _pickle_inside(path: Path) -> None:
    """Put a pickle where arrays are, with checksums that fit."""
    blob = pickle.dumps(_Bomb(path.with_name("exploded")))
    db = sqlite3.connect(path)
    first, count = db.execute("SELECT first, count FROM spans").fetchone()
    fitting = checksum("spans", (first, count), blob)
    db.execute("UPDATE spans SET arrays = ?, checksum = ? WHERE first = ?", (blob, fitting, first))
    db.commit()
    db.close()


def _sql(path: Path, statement: str) -> None:
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()


BROKEN: dict[Any, str] = {
    _truncated: "damaged",
    _flipped: "ringtrue repair",
    _newer: "has format 99, but this version of ringtrue reads formats up to 2; update ringtrue",
    _not_ours: "not a store of ringtrue",
    _text: "is not a store of ringtrue",
    _pickle: "is not a store of ringtrue",
    _pickle_inside: "ringtrue repair",
}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["judge", "check"])
@pytest.mark.parametrize("harm", BROKEN, ids=lambda harm: harm.__name__)
def test_broken_files_are_one_sentence(
    harm: Any, command: str, file: str, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Truncated, bit-flipped, newer, foreign and hostile files are refused with exit code 3, left alone and not run."""
    harm(finished)
    before = finished.read_bytes()
    arguments = ("judge", str(finished)) if command == "judge" else ("check", file, "--store", str(finished))
    assert _exit(*arguments) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    if command == "judge":
        assert BROKEN[harm] in said.err
    assert finished.read_bytes() == before
    assert not (finished.parent / "exploded").exists()


def test_repair_saves_the_rest(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What repair saves is the start of a run that computes the rest, to the last bit."""
    _flipped(finished)
    out = tmp_path / "saved.db"
    _runs("repair", str(finished), str(out))
    assert "54 replicates were saved" in capsys.readouterr().out
    assert_identical(rt.run(study(), n=60, store=out), rt.run(study(), n=60))


def test_the_first_gap_ends_what_is_judged(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store without replicate 0 cannot be judged; one with gaps is judged up to the first, and says so."""
    partial = finished.with_name("partial.db")
    shutil.copy(finished, partial)
    _sql(partial, "DELETE FROM spans WHERE first = 30")
    assert _exit("judge", str(partial)) in (0, 1, 2)
    assert "30 of 60 replicates, those before the first missing one" in capsys.readouterr().err
    _sql(partial, "DELETE FROM spans WHERE first = 0")
    assert _exit("judge", str(partial)) == 3
    assert "must have replicate 0" in capsys.readouterr().err


@pytest.mark.process
def test_a_cluster_that_is_not_there_is_said(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An address nobody listens at is one sentence and exit code 3."""
    pytest.importorskip("distributed")
    assert _exit("check", file, "--dask", "nonsense://") == 3
    assert "no Dask scheduler answers at nonsense://" in capsys.readouterr().err
