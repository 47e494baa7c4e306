"""What is done once per process before its first replicate."""

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import ringtrue as rt
from ringtrue.execution.store.identity import fingerprint
from tests.builders import BELIEF, noisy, refusal, says

from .test_runs import N, assert_identical


class Compiled:
    """A procedure that works once it is prepared, and a log of where that was."""

    def __init__(self, log: Path) -> None:
        self.log, self.ready = log, False

    def prepare(self) -> None:
        """Get ready, and say so."""
        with self.log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        self.ready = True

    def __call__(self, mu0: Any, y: Any) -> Any:
        """Return the posterior."""
        if not self.ready:
            raise RuntimeError("not compiled")
        return rt.Normal(y / 2, 0.5**0.5)

    def calls(self) -> list[str]:
        """Return the processes in which it was prepared."""
        return self.log.read_text().split()


@pytest.fixture
def compiled(tmp_path: Path) -> Compiled:
    """Return one that is not prepared."""
    return Compiled(tmp_path / "log")


def asked(compiled: Compiled, **settings: Any) -> rt.Study:
    """Return a study that prepares its procedure."""
    return rt.Study(BELIEF, noisy, compiled, prepare=compiled.prepare, **settings)


def plain() -> rt.Replicates:
    """Return the replicates of a procedure that needs no preparation."""
    return rt.run(BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, 0.5**0.5), n=N)


def test_alone_it_is_called_once_per_run(compiled: Compiled) -> None:
    """Without workers this process is prepared, once."""
    assert_identical(rt.run(asked(compiled), n=N), plain())
    assert compiled.calls() == [str(os.getpid())]
    rt.run(asked(compiled), n=N)
    assert len(compiled.calls()) == 2


def test_a_replay_is_prepared_too(compiled: Compiled) -> None:
    """One replicate alone needs what all need."""
    assert rt.replay(asked(compiled), 3)[2].sd == pytest.approx(0.5**0.5)


def test_without_it_the_procedure_fails(compiled: Compiled) -> None:
    """The broken twin: nobody calls what was not handed over."""
    with pytest.raises(rt.errors.ReplicateFailed, match="not compiled"):
        rt.run(BELIEF, noisy, compiled, n=N)


@pytest.mark.process
def test_every_worker_is_prepared_once(compiled: Compiled) -> None:
    """Processes of our own are prepared before their first replicate, each once, and give the same replicates."""
    assert_identical(rt.run(asked(compiled), n=N, workers=2), plain())
    calls = compiled.calls()
    assert len(calls) == len(set(calls)) <= 2
    assert str(os.getpid()) not in calls


@pytest.mark.process
def test_every_process_of_an_executor_is_prepared_once(compiled: Compiled) -> None:
    """So are those of others; threads of one process share what was prepared."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert_identical(rt.run(asked(compiled), n=N, executor=processes), plain())
    calls = compiled.calls()
    assert len(calls) == len(set(calls)) <= 2
    with ThreadPoolExecutor(4) as threads:
        assert_identical(rt.run(asked(compiled, draws=98), n=N, executor=threads), plain())
    assert compiled.calls().count(str(os.getpid())) == 1


@pytest.mark.process
def test_a_worker_in_the_place_of_another_is_prepared(compiled: Compiled, tmp_path: Path) -> None:
    """A process that dies is replaced by one that is prepared as well."""
    died = tmp_path / "died"

    def dies_once(theta: Any, rng: Any) -> Any:
        if not died.exists():
            died.touch()
            os._exit(1)
        return noisy(theta, rng)

    study = rt.Study(BELIEF, dies_once, compiled, prepare=compiled.prepare)
    assert_identical(rt.run(study, n=N, workers=1), plain())
    assert len(set(compiled.calls())) == 2


def _breaks() -> None:
    raise OSError("no compiler")


def test_what_cannot_be_prepared_is_one_error() -> None:
    """It says what was called and what it raised."""
    study = rt.Study(BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, 0.7), prepare=_breaks)
    says(refusal(lambda: rt.run(study, n=N)), "prepare", "OSError: no compiler")


@pytest.mark.process
def test_what_workers_cannot_prepare_is_the_same_error() -> None:
    """Whoever computes, no replicate is blamed for it."""
    study = rt.Study(BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, 0.7), prepare=_breaks)
    for settings in ({"workers": 1}, {"executor": ThreadPoolExecutor(1)}):
        says(refusal(lambda: rt.run(study, n=N, on_failure="record", **settings)), "prepare", "OSError: no compiler")  # noqa: B023


def test_what_is_no_function_is_refused() -> None:
    """A prepared thing is not what prepares it."""
    says(refusal(lambda: rt.Study(BELIEF, noisy, lambda mu0, y: None, prepare=3)), "prepare", "int")  # type: ignore[arg-type]


def test_what_is_prepared_is_no_part_of_a_study_but_how_is(compiled: Compiled) -> None:
    """A digest is the same before and after, and another for another function."""
    before = fingerprint(asked(compiled))
    compiled.prepare()
    assert fingerprint(asked(compiled)) == before
    other = fingerprint(rt.Study(BELIEF, noisy, compiled, prepare=lambda: None))
    assert before["prepare"] != other["prepare"]


SCRIPT = """
import ringtrue as rt

sd = None


def prepare():
    global sd
    sd = 0.5**0.5


def procedure(mu0, y):
    return rt.Normal(y / 2, sd)


study = rt.Study(rt.Normal(0, 1), lambda theta, rng: theta + rng.normal(), procedure, prepare=prepare)
for settings in ({"workers": 2}, {}):
    print(rt.run(study, n=30, store="run.db", **settings).u.sum())
"""


@pytest.mark.process
def test_a_global_of_a_script_is_prepared_and_no_change_of_the_study(tmp_path: Path) -> None:
    """What prepare assigns in a script is there for the procedure, and a store goes on without a warning."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "error", "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    one, other = done.stdout.split()
    assert one == other, done.stderr
