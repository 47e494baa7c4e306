"""What a worker does, and how it is sent there: as bytes, functions of a notebook included.

This module does not know who else works, nor how replicates are cut into tasks.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..errors import InvalidStudy, RingtrueError
from ..question.study import Study
from ..replicates.preflight import preflight
from ..replicates.record import Failure, Replicates
from ..replicates.simulate import Keep, OnFailure, Outcome, Raised, Recorder, compute

Range = tuple[int, int]


@dataclass(frozen=True)
class Written:
    """Replicates that a worker has written where others find them: which, how long they took, and what was lost."""

    first: int
    stop: int
    seconds: float
    failures: tuple[Failure, ...]

    @property
    def n(self) -> int:
        """How many they are."""
        return self.stop - self.first


@dataclass(frozen=True, eq=False)
class Noted:
    """What became of some replicates, as an :class:`Outcome` has it, but for their numbers."""

    record: Written
    failure: Failure | None = None
    error: None = None


class Helpers(Protocol):
    """Where those who compute write to."""

    def known(self, first: int, stop: int) -> Written | None:
        """Return that replicates are written by this process, if they are."""

    def write(self, record: Replicates) -> Written:
        """Write replicates."""


@dataclass(frozen=True, eq=False)
class Job:
    """What a worker does: some replicates of a study, or its pre-flight."""

    study: Study
    n: int
    keep: Keep = None
    on_failure: OnFailure = "raise"
    helpers: Helpers | None = None

    def compute(self, first: int, count: int) -> Outcome:
        """Compute replicates."""
        return compute(self.study, first, count, keep=self.keep, on_failure=self.on_failure)

    def write(self, first: int, count: int) -> Noted:
        """Compute replicates, write them where this process is to, and return that they are written."""
        assert self.helpers is not None
        if (known := self.helpers.known(first, first + count)) is not None:
            return Noted(known)
        outcome = self.compute(first, count)
        return Noted(self.helpers.write(outcome.record), outcome.failure)

    def checked(self, block: int = 0) -> Outcome | None:
        """Run the pre-flight from a block on, and return what its replicates came to; what is refused is raised.

        None if they all failed and are to be put on record as they come.
        """
        start = time.perf_counter()
        try:
            found = preflight(self.study, block, most=max(min(10, -(-self.n // self.unit) - block), 1))
        except Raised as raised:
            if isinstance(raised.error, InvalidStudy):
                raise raised.error from raised.error.__cause__
            first = block * self.unit
            recorder = Recorder(self.study, first, 1)
            recorder.lose([first], raised.error, raised.stage)
            return recorder.outcome("raise") if self.on_failure == "raise" else None
        first = int(found.index[0])
        recorder = Recorder(self.study, first, min(self.unit, self.n - first), keep=self.keep)
        recorder.record(found)
        return recorder.outcome(self.on_failure, time.perf_counter() - start)

    @property
    def unit(self) -> int:
        """The fewest replicates that can be computed alone."""
        return self.study.batch or 1


def packed(job: Job) -> bytes:
    """Return a job as bytes that another process can read, functions of a notebook included."""
    cloudpickle = _needed("cloudpickle")
    try:
        return bytes(cloudpickle.dumps(job))
    except Exception as error:
        raise InvalidStudy(
            f"to be computed elsewhere a study must be something that can be sent, but cloudpickle raised "
            f"{type(error).__name__}: {error}; make files, locks and models inside the functions that use them."
        ) from error


def _needed(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise RingtrueError(f"workers need {name}; run: pip install {name}") from None


class Unknown(Exception):
    """A process was sent the name of a job that it does not have."""


#: Jobs that a process remembers, by name: several runs may share its executor.
_jobs: dict[str, Job | str] = {}
_REMEMBERED = 4
_meeting = threading.Lock()


def do(name: str, job: bytes | None, method: str, *args: int) -> tuple[str, Any]:
    """Do a part of a job, which is unpacked and made ready once per process; exceptions become what can travel.

    The job may be left out for a process that knows it by its name; one that does not says so.
    """
    try:
        outcome = getattr(known_job(name, job), method)(*args)
    except Unknown:
        return "unknown", None
    except RingtrueError as error:
        return type(error).__name__, str(error)
    return "done", None if outcome is None else replace(outcome, error=None)


def known_job(name: str, job: bytes | None) -> Job:
    """Return a job of this process; other threads wait while it is made ready."""
    with _meeting:
        if name not in _jobs:
            if job is None:
                raise Unknown
            while len(_jobs) >= _REMEMBERED:
                del _jobs[next(iter(_jobs))]
            _jobs[name] = _rebuilt(job)
        found = _jobs[name]
    if isinstance(found, str):
        raise InvalidStudy(found)
    return found


def _rebuilt(packed: bytes) -> Job | str:
    """Return a job that is ready, or why there is none; which is as lasting as a job."""
    import cloudpickle

    try:
        job: Job = cloudpickle.loads(packed)
    except Exception as error:
        return f"a worker cannot rebuild the study: {type(error).__name__}: {error}."
    try:
        job.study.make_ready()
    except InvalidStudy as error:
        return str(error)
    return job


def unpacked(answer: tuple[str, Any]) -> Any:
    """Return what a worker returned, or raise what it refused."""
    kind, value = answer
    if kind == "done":
        return value
    if kind == "unknown":
        raise Unknown
    from .. import errors

    raise getattr(errors, kind)(value)
