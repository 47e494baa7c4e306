"""Running a study: who computes, where it is kept, what happens when something fails.

Replicates are a function of the study and their number alone, so how a run is cut, shared, interrupted and resumed
changes nothing in them. This module knows no statistics.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol, TypedDict, Unpack

import numpy as np

from ..errors import InvalidStudy, ReplicateFailed, StoreError
from ..question.study import Study, StudySettings, as_study, at_least, need_known
from ..replicates.record import Failure, Gathering, Replicates, join
from ..replicates.reducers.weak import reference_size, reference_values
from ..replicates.simulate import Keep, OnFailure, Outcome, header_of, need_on_failure, raise_failure
from ..values import Floats
from .arrays import as_shard
from .executor import Borrowed
from .gate import Gate, Until
from .jobs import Job, Noted
from .paths import as_path, is_directory
from .pool import Pool
from .progress import Progress, Show
from .room import need_room
from .signals import terminable
from .tasks import Pace, alone, first_check, once, shared

Range = tuple[int, int]

#: Failures that are always put up with before a run of them stops it.
_PATIENCE = 20


class RunSettings(TypedDict, total=False):
    """The settings of :func:`run`, for those who pass them on."""

    on_failure: OnFailure
    failures_allowed: float
    workers: int | None
    executor: Executor | None
    timeout: float | None
    store: str | os.PathLike[str] | None
    tag: str
    shard: tuple[int, int] | Literal["array"] | None
    keep: Keep
    progress: Show
    max_seconds: float | None
    retry_failures: bool


def run(
    study: Any,
    model: Any = None,
    procedure: Any = None,
    *,
    n: int,
    on_failure: OnFailure = "raise",
    failures_allowed: float = 0.75,
    workers: int | None = None,
    executor: Executor | None = None,
    timeout: float | None = None,
    store: str | os.PathLike[str] | None = None,
    tag: str = "",
    shard: tuple[int, int] | Literal["array"] | None = None,
    keep: Keep = None,
    progress: Show = "auto",
    until: Until | None = None,
    max_seconds: float | None = None,
    retry_failures: bool = False,
    **asking: Unpack[StudySettings],
) -> Replicates:
    """Simulate the replicates of a study.

    Parameters
    ----------
    study
        A :class:`~ringtrue.Study`; or the belief, and with it ``model``, ``procedure`` and the other settings of a
        study.
    n
        The number of replicates; a stored run can be extended by asking for more.
    on_failure
        "raise" stops at the first replicate that fails; "record" keeps a record and goes on, and the verdict is
        then the one that holds whatever the lost replicates would have been.
    failures_allowed
        With "record", the share of finished replicates that may fail; a run stops when there are more, after twenty.
    workers
        So many processes of this machine. A replicate that kills its process is a failure of that replicate alone.
        With ``executor``, how many tasks to keep it busy with.
    executor
        Any :class:`concurrent.futures.Executor`: ``client.get_executor()`` of a Dask cluster, loky's, MPI's.
    timeout
        Seconds that one replicate (one batch) may take; longer is a failure. Needs processes of our own.
    store
        A file to keep the replicates in as they come. If it has some already, one of them is computed again, to see
        that it belongs to this study, and of the others only the missing ones. A directory, one that is there or a
        name that ends with "/", is written to by workers themselves: it must be one that all of them share.
    tag
        Goes into the store's fingerprint, for what a study depends on and cannot show: data files, versions.
    shard
        (i, k): of k shares, compute the i-th, counted from 0; merge the stores afterwards, or let all shares write to
        one directory. "array" in a job of an array, of Slurm or Grid Engine, takes both from the environment.
    keep
        "draws" keeps truths and draws in the store, so that other test functions can be asked about later.
    progress
        "auto" or True shows progress on runs of more than two seconds, "off" or False does not.
    until
        A function that is handed the replicates part by part, in the order of their numbers, and returns how many of
        them are enough, or None; the run then ends, and has these. :func:`~ringtrue.check` has "decided" for it. Never
        in the order in which they finish: the quick ones come first, and how long one takes may depend on its data.
    max_seconds
        Stop cleanly after so many seconds, with the replicates before the first that is missing. Judge these with
        ``anytime=True``: how many there are was not fixed before.
    retry_failures
        Compute those replicates of a store again that were lost, with the same random numbers, and no others. What
        made them fail should be fixed: a study that gives other answers for the others is another one.

    Examples
    --------
    >>> from ringtrue import Normal, Study
    >>> run(Study(Normal(0, 1), lambda t, rng: t + rng.normal(), lambda mu0, y: Normal(y / 2, 0.5**0.5)), n=20)
    Replicates(n=20, f=[theta, distance], failures=0, seed=0)
    """
    need_known("run", asking, {"n", *RunSettings.__optional_keys__, *StudySettings.__optional_keys__})
    study = as_study(study, model, procedure, **asking)
    n = at_least(1, "n", n)
    share = as_shard(shard)
    _need_options(study, n, on_failure, failures_allowed, progress, keep, store, share)
    if not isinstance(tag, str):
        raise InvalidStudy(f"tag must be text, but {tag!r} arrived; pass tag={str(tag)!r}.")
    if not isinstance(retry_failures, (bool, np.bool_)):
        raise InvalidStudy(f"retry_failures must be True or False, but {retry_failures!r} arrived.")
    if retry_failures and store is None:
        raise InvalidStudy("retry_failures= needs the file that the lost replicates are in; pass store='run.db'.")
    job = Job(study, n, keep, on_failure)
    wanted = _share(study, n, share)
    if until is None and max_seconds is None:  # a run that may end before has room made for what there is
        need_room(study, wanted[1] - wanted[0])
    gate = Gate(until, max_seconds, share, wanted[0])
    settings = (failures_allowed, workers, executor, timeout, progress, store, tag, retry_failures, share)
    return _ran(job, wanted, gate, *settings)


def go_on(
    study: Study,
    first: int,
    count: int,
    *,
    on_failure: OnFailure = "raise",
    failures_allowed: float = 0.75,
    workers: int | None = None,
    executor: Executor | None = None,
    timeout: float | None = None,
    progress: Show = "auto",
) -> Replicates:
    """Simulate the replicates of a study from one number on, as a run of all of them would; they are kept nowhere.

    Parameters
    ----------
    study
        The question.
    first, count
        Which replicates. The first ones of all are looked at before they count, as in :func:`run`.
    on_failure, failures_allowed, workers, executor, timeout, progress
        As in :func:`run`.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> study = Study(Normal(0, 1), lambda t, rng: t + rng.normal(), lambda mu0, y: Normal(y / 2, 0.5**0.5))
    >>> bool((go_on(study, 20, 10).u == run(study, n=30).u[20:]).all())
    True
    """
    stop = first + at_least(1, "count", count)
    _need_options(study, stop, on_failure, failures_allowed, progress, None, None, None)
    job = Job(study, stop, None, on_failure)
    gate = Gate(None, None, None, first)
    return _ran(job, (first, stop), gate, failures_allowed, workers, executor, timeout, progress)


def _ran(
    job: Job,
    wanted: Range,
    gate: Gate,
    allowed: float,
    workers: int | None,
    executor: Executor | None,
    timeout: float | None,
    progress: Show,
    store: Any = None,
    tag: str = "",
    retry: bool = False,
    shard: tuple[int, int] | None = None,
) -> Replicates:
    """Compute what is missing of a range of replicates, until there are enough."""
    with (
        terminable(),
        _shelf(job, wanted, store, tag, gate, shard) as (shelf, verify, helpers),
        _crew(replace(job, helpers=helpers), workers, executor, timeout) as crew,
    ):
        helped = helpers is not None and crew is not None
        if crew is None:
            job.study.make_ready()  # workers do it themselves, each once
        known = verify(partial(once, job, crew))
        if retry:
            shelf.forget_failures()
        _refuse_failures(job, shelf, wanted, store)
        for part in shelf.parts(*wanted) if gate.opens else ():
            gate.see(part)
        todo = [] if gate.closed else shelf.missing(*wanted)
        with Progress(wanted[1] - wanted[0], wanted[1] - wanted[0] - _length(todo), progress) as shown:
            try:
                if todo:
                    # The first shard looks for all of them; a stored replicate computed again has been looked at.
                    outcome = first_check(job, crew) if not known and todo[0][0] == 0 else None
                    _add_reference(job, shelf)
                    # Of those that failed before, any number may fail again.
                    most = 1.0 if retry else allowed
                    method = "write" if helped else "compute"
                    _fill(job, shelf, _outcomes(job, crew, todo, outcome, gate, method), shown, most, gate)
            except KeyboardInterrupt as stop:
                shelf.flush()
                raise type(stop)(_interrupted(shown, store)) from None
        if helped:
            _take_in(shelf, wanted[0], gate.stop(wanted[1]))
        return shelf.replicates(wanted[0], gate.stop(wanted[1]))


class Shelf(Protocol):
    """Where spans are put as they come."""

    def missing(self, start: int, stop: int) -> list[Range]:
        """Return the gaps."""

    def parts(self, start: int, stop: int) -> list[Replicates]:
        """Return what is there of some replicates."""

    def add(self, record: Replicates) -> None:
        """Keep some replicates."""

    def forget_failures(self) -> int:
        """Take lost replicates for ones that were never computed."""

    def failures(self) -> tuple[Failure, ...]:
        """Return the replicates that were lost before."""

    def flush(self) -> None:
        """Make sure that what was added stays."""

    def replicates(self, start: int, stop: int) -> Replicates:
        """Return what is there."""

    @property
    def reference_count(self) -> int:
        """How many fresh values of mu0 are there."""

    def add_reference(self, first: int, values: Floats) -> None:
        """Keep fresh values of mu0."""


def _refuse_failures(job: Job, shelf: Shelf, wanted: Range, store: Any) -> None:
    """Refuse replicates that were lost before, if the first one that is lost should stop the run."""
    lost = [one for one in shelf.failures() if wanted[0] <= one.replicate < wanted[1]]
    if job.on_failure != "raise" or not lost:
        return
    (stage, message), _ = Counter((one.stage, one.error) for one in lost).most_common(1)[0]
    raise ReplicateFailed(
        f"{store} has {len(lost)} replicates that were lost, most often in the {stage}: {message}. Pass "
        f"on_failure='record' to go on with them, or retry_failures=True to try them again."
    )


def _add_reference(job: Job, shelf: Shelf) -> None:
    """Put fresh values of mu0 beside the replicates."""
    have, need = shelf.reference_count, reference_size(job.study, job.n)
    if need > have:
        shelf.add_reference(have, reference_values(job.study, have, need))


def _outcomes(
    job: Job, crew: Any, todo: list[Range], checked: Outcome | None, gate: Gate, method: str
) -> Iterator[Outcome | Noted]:
    """Compute what is missing, but for what the pre-flight has computed already."""
    pace = Pace(job.unit, 1 if crew is None else crew.width)
    if checked is not None:
        # It runs them twice, and does more: so the first tasks are not too long.
        pace.seen(max(2 * checked.record.n, 1), checked.record.seconds)
        record, (_, stop) = checked.record, todo[0]
        first, end = min(record.first, stop), min(record.stop, stop)  # a batch may reach beyond, at both ends
        yield replace(checked, record=record.part(first, end))
        todo = _without(todo, first, end)
    todo = [part for one in todo for part in _aligned(one, job.unit)]
    yield from alone(job, todo, pace) if crew is None else shared(job, todo, crew, pace, gate.deadline, method)


def _without(todo: list[Range], first: int, end: int) -> list[Range]:
    """Return ranges without what lies between."""
    cut = [part for start, stop in todo for part in ((start, min(stop, first)), (max(start, end), stop))]
    return [(start, stop) for start, stop in cut if start < stop]


def _fill(
    job: Job, shelf: Shelf, outcomes: Iterator[Outcome | Noted], shown: Progress, allowed: float, gate: Gate
) -> None:
    """Keep what comes, until there is enough."""
    seen: list[Failure] = []
    with contextlib.closing(outcomes):  # type: ignore[type-var]
        for outcome in outcomes:
            if isinstance(outcome, Outcome) and outcome.record.n:
                shelf.add(outcome.record)
            if outcome.failure is not None:
                shelf.flush()
                _raise(job, outcome)
            seen.extend(outcome.record.failures)
            shown.add(outcome.record.n, failed=len(outcome.record.failures))
            if shown.failed > max(_PATIENCE, allowed * (shown.done - shown.before)):
                shelf.flush()
                _too_many(job, shown, seen)
            gate.see(outcome.record)
            if gate.closed:
                break
    shelf.flush()


def _raise(job: Job, outcome: Outcome | Noted) -> NoReturn:
    assert outcome.failure is not None
    cause = outcome.error or Elsewhere(outcome.failure.traceback)
    raise_failure(job.study, outcome.failure, cause)


class Elsewhere(Exception):
    """An exception of another process, as text."""

    def __str__(self) -> str:
        return f"in a worker process:\n{self.args[0]}"


def _too_many(job: Job, shown: Progress, seen: list[Failure]) -> NoReturn:
    (stage, message), many = Counter((failure.stage, failure.error) for failure in seen).most_common(1)[0]
    one = next(failure for failure in seen if failure.error == message)
    again = f"Replay one with {one.replay}, or pass" if job.study.reproducible else "Pass"
    raise ReplicateFailed(
        f"{shown.failed} of {shown.done - shown.before} replicates failed, {many} of them in the {stage}: {message}. "
        f"{again} failures_allowed=1 to go on all the same."
    )


def _interrupted(shown: Progress, store: Any) -> str:
    done = f"{shown.done} of {shown.total} replicates are done"
    if store is None:
        return f"{done} and lost; pass store='run.db' to keep them next time."
    return f"{done} and safe in {store}; the same call goes on from there."


@dataclass
class _Memory:
    """A shelf that lasts as long as the run."""

    found: Gathering
    values: list[Floats] = field(default_factory=list)

    def missing(self, start: int, stop: int) -> list[Range]:
        return [(start, stop)]

    def parts(self, start: int, stop: int) -> list[Replicates]:
        return []

    def add(self, record: Replicates) -> None:
        self.found.add(record)

    def forget_failures(self) -> int:
        return 0

    def failures(self) -> tuple[Failure, ...]:
        return ()

    def flush(self) -> None:
        return

    @property
    def reference_count(self) -> int:
        return sum(map(len, self.values))

    def add_reference(self, first: int, values: Floats) -> None:
        self.values.append(values)

    def replicates(self, start: int, stop: int) -> Replicates:
        empty = np.empty((0, len(self.found.header.functions)))
        return self.found.replicates(np.concatenate([empty, *self.values]))


@dataclass
class _Pieces(_Memory):
    """The same of a run that may end before it has all replicates."""

    pieces: list[Replicates] = field(default_factory=list)

    def add(self, record: Replicates) -> None:
        self.pieces.append(record)

    def replicates(self, start: int, stop: int) -> Replicates:
        values = np.concatenate([np.empty((0, len(self.found.header.functions))), *self.values])
        return join(self.pieces, stop=stop, reference=values[: max(stop, 0)])


@contextlib.contextmanager
def _shelf(
    job: Job, wanted: Range, path: Any, tag: str, gate: Gate, shard: tuple[int, int] | None
) -> Iterator[tuple[Shelf, Callable[[Any], bool], Any]]:
    """Return where to put replicates, what looks whether those that are there belong to the study, and its helpers."""
    header = header_of(job.study)
    if path is None:
        # Of a run that may end before, nobody knows yet how much room it needs.
        memory = _Pieces(Gathering(header, 0, 0)) if gate.opens else _Memory(Gathering(header, *wanted))
        yield memory, lambda compute: False, None
        return
    from .store import Store, directory
    from .store.identity import fingerprint
    from .store.verify import verify

    meta = Store.meta_of(
        header=header, fingerprint=fingerprint(job.study, tag=tag, keep=job.keep), n=job.n, keep=job.keep
    )
    if is_directory(path):
        with directory.opened(directory.file_of(Path(path), shard), meta) as store:
            # What decides on replicates must see them: they come here then, as without a directory.
            helpers = directory.Helpers.of(store) if gate.until is None else None

            def verified(compute: Any) -> bool:
                known = verify(store, job.unit, compute)
                directory.confirm(store.path, meta)
                return known

            yield store, verified, helpers
        return
    with Store.opened(Path(path), meta) as store:
        yield store, partial(verify, store, job.unit), None


def _take_in(shelf: Any, start: int, stop: int) -> None:
    """Take in what helpers wrote, all of which must be there."""
    from .store import directory

    directory.take_in(shelf)
    if shelf.missing(start, stop):
        raise StoreError(
            f"workers have written replicates that are not in {shelf.path.parent}; pass a directory that all of them "
            f"share with this machine. The same call computes those that are missing."
        )


@contextlib.contextmanager
def _crew(job: Job, workers: int | None, executor: Executor | None, timeout: float | None) -> Iterator[Any]:
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, Real) or not timeout > 0):
        raise InvalidStudy(f"timeout must be a positive number of seconds, but {timeout!r} arrived.")
    if workers is not None:
        at_least(1, "workers", workers)
    if executor is not None:
        if timeout is not None:
            raise InvalidStudy("a task of an executor cannot be stopped, so timeout= needs workers= instead.")
        if not callable(getattr(executor, "submit", None)):
            raise InvalidStudy(
                f"executor must have submit(function, *args), as concurrent.futures has it, but "
                f"{type(executor).__name__} has not; of a Dask client pass client.get_executor()."
            )
        with Borrowed(job, executor, workers) as crew:
            yield crew
    elif workers is not None or timeout is not None:
        with Pool(job, workers or 1, timeout) as pool:
            yield pool
    else:
        yield None


def _share(study: Study, n: int, shard: tuple[int, int] | None) -> Range:
    """Return the replicates of a shard, whole batches of them."""
    if shard is None:
        return 0, n
    unit = study.batch or 1
    blocks = -(-n // unit)
    i, k = shard
    return min(blocks * i // k * unit, n), min(blocks * (i + 1) // k * unit, n)


def _aligned(wanted: Range, unit: int) -> list[Range]:
    """Split off what is left of a batch that was cut: everything else is whole batches."""
    first, stop = wanted
    border = -(-first // unit) * unit
    return [wanted] if not first < border < stop else [(first, border), (border, stop)]


def _length(ranges: list[Range]) -> int:
    return sum(stop - start for start, stop in ranges)


def _need_options(
    study: Study, n: int, on_failure: Any, allowed: Any, progress: Any, keep: Any, store: Any, shard: Any
) -> None:
    need_on_failure(on_failure)
    if progress not in ("auto", "off", True, False):
        raise InvalidStudy(f"progress must be 'auto' or 'off', True or False, but {progress!r} arrived.")
    if not isinstance(allowed, (int, float)) or not 0 <= allowed <= 1:
        raise InvalidStudy(f"failures_allowed must be a share between 0 and 1, but {allowed!r} arrived.")
    if keep not in (None, "draws"):
        raise InvalidStudy(f"keep must be 'draws' or None, but {keep!r} arrived.")
    if store is not None:
        as_path(store, "store")
    if (keep or shard is not None) and store is None:
        raise InvalidStudy("keep= and shard= need a file to keep replicates in; pass store='run.db'.")
    if shard is not None:
        start, stop = _share(study, n, shard)
        if start == stop:
            raise InvalidStudy(f"shard {shard} of {n} replicates is empty; use fewer shards.")
