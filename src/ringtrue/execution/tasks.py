"""Tasks: spans of replicates, sized by how long replicates take, for whoever computes them.

A task that dies or hangs is cut into single replicates (batches). One that hangs alone, or dies alone twice, is a
recorded failure: a process may also be killed by others, and then the second time goes well. This module knows no
stores and no tests, and which replicates end up in which task changes nothing in them.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future
from queue import Empty, SimpleQueue
from threading import TIMEOUT_MAX
from typing import Any, Protocol

from ..errors import InvalidStudy, RingtrueError, StoreError
from ..replicates.record import Failure, lost_record
from ..replicates.reducers import fields
from ..replicates.simulate import Outcome, header_of
from .jobs import Job, Range, Unknown, unpacked

#: Seconds a task should take: long beside the cost of sending it, short beside what an interruption may lose.
_TASK_SECONDS = 0.5
#: Tasks per second that are handed out at most. Client and scheduler of a Dask cluster take about five milliseconds for
#: each, so that they are at most half busy with it.
_TASKS_PER_SECOND = 100
#: Replicates of a task in this process at most: its arrays stay in memory that was used before. A larger one is new to
#: the process every time, which costs more than the copy that is made of it.
_ALONE = 1 << 14
#: How fast tasks may grow while it is not known yet how long replicates take.
_GROWTH = 8
#: Tasks handed out per worker: one to do and one to go on with.
AHEAD = 2
#: Where workers are many, tasks are handed out together, as many as a share of the workers: less work for a client.
_SHARE = 20


class Crew(Protocol):
    """Those who compute: how many at a time, and how to hand them replicates."""

    @property
    def width(self) -> int:
        """How many tasks are computed at a time."""

    def submit(self, method: str, spans: Sequence[Range], each: float) -> list[Future[Any]]:
        """Hand out tasks for a method of the job, expected to take some seconds per replicate; unpack their results."""

    def check(self, block: int) -> Future[Any]:
        """Hand out the pre-flight."""

    def tell(self) -> None:
        """Send the job itself with the next task: somebody does not know it."""

    def cause(self, error: BaseException) -> str | None:
        """Return what to record of a task that did not return; None if it concerns all tasks."""

    def accident(self, error: BaseException) -> bool:
        """Whether a task may have ended for a reason that is not its own."""

    @property
    def blames_all(self) -> bool:
        """Whether a dying process may end tasks that only waited for it."""


class Pace:
    """How many replicates make a task.

    Parameters
    ----------
    unit
        The fewest replicates that can be computed alone.
    width
        How many tasks are computed at a time.
    """

    def __init__(self, unit: int, width: int = 1) -> None:
        self.unit, self.width, self.size = unit, width, 1
        self.replicates, self.seconds, self.handed_out = 0, 0.0, 0

    def seen(self, replicates: int, seconds: float) -> None:
        """Learn from a finished task."""
        self.replicates, self.seconds = self.replicates + replicates, self.seconds + seconds
        fitting = max(int(self.length / max(self.each, 1e-9) / self.unit), 1)
        self.size = min(fitting, self.size * _GROWTH)

    @property
    def length(self) -> float:
        """Seconds that a task should take: the more workers, the longer."""
        return max(_TASK_SECONDS, self.width / _TASKS_PER_SECOND)

    @property
    def each(self) -> float:
        """Seconds per replicate so far."""
        return self.seconds / self.replicates if self.replicates else 0.0

    def next(self, left: int) -> int:
        """Return the next task's replicates: all workers must have something to do until the end."""
        share = max(-(-left // (self.unit * self.width * AHEAD)), 1)
        # Where workers are many, short tasks at the end cost more than some who are done early.
        least = int((self.length - _TASK_SECONDS) / 2 / max(self.each, 1e-9) / self.unit)
        size = min(self.size, max(share, least))
        self.handed_out += 1
        if self.handed_out < self.width and self.length > _TASK_SECONDS:
            # Many tasks that begin together end together, and all workers would wait for whoever hands them out: the
            # first are of all lengths.
            size = -(-size * self.handed_out // self.width)
        return size * self.unit


def alone(job: Job, todo: Sequence[Range], pace: Pace) -> Iterator[Outcome]:
    """Compute ranges of replicates in this process, a task at a time."""
    most = max(_ALONE // pace.unit, 1)
    for first, stop in todo:
        while first < stop:
            # Nobody waits for the last tasks: they are not cut up.
            count = min(min(pace.size, most) * pace.unit, stop - first)
            outcome = job.compute(first, count)
            pace.seen(count, outcome.record.seconds)
            first += count
            yield outcome


def shared(
    job: Job, todo: Sequence[Range], crew: Crew, pace: Pace, deadline: float | None = None, method: str = "compute"
) -> Iterator[Any]:
    """Compute ranges of replicates with others, in whatever order they come back, until a time of the clock.

    The method of the job says what comes back: an :class:`Outcome`, or :class:`Noted` of what was written elsewhere.
    """
    queue, pending = _Queue(todo, job.unit), dict[Future[Any], Range]()
    # Those who finish say so: looking through all that are under way would take longer, the more there are.
    finished: SimpleQueue[Future[Any]] = SimpleQueue()
    most, together = crew.width * AHEAD, max(crew.width // _SHARE, 1)
    try:
        while queue or pending:
            spans = [queue.take(pace.next(queue.left)) for _ in _free(queue, len(pending), most, together)]
            if spans:
                for future, span in zip(crew.submit(method, spans, pace.each), spans, strict=True):
                    pending[future] = span
                    future.add_done_callback(finished.put)
            with contextlib.suppress(Empty):
                # Who allows centuries waits for what a clock can count.
                left = None if deadline is None else min(max(deadline - time.monotonic(), 0.0), TIMEOUT_MAX)
                future = finished.get(timeout=left)
                outcome = _result(job, crew, queue, future, *pending.pop(future))
                if outcome is not None:
                    pace.seen(max(outcome.record.n, 1), outcome.record.seconds)
                    yield outcome
            if deadline is not None and time.monotonic() >= deadline:
                return
    finally:
        for future in pending:
            future.cancel()


def _free(queue: _Queue, pending: int, most: int, together: int) -> Iterator[int]:
    """Count the tasks that can be handed out now, while they are taken; none if a few more are worth waiting for."""
    for under_way in range(pending, most if pending <= most - together else pending):
        if not queue.ready(under_way):
            return
        yield under_way


def _result(job: Job, crew: Crew, queue: _Queue, future: Future[Any], first: int, stop: int) -> Any:
    """Return what a task came to; None if its replicates are queued again: one by one if it died."""
    try:
        return unpacked(future.result())
    except Unknown:
        crew.tell()
        queue.back(first, stop)
        return None
    except (InvalidStudy, StoreError):
        raise
    except (Exception, CancelledError, SystemExit) as error:
        cause = crew.cause(error)
        if cause is None:
            raise broken(error) from error
        if stop - first > job.unit:
            queue.again(first, stop)
            return None
        if crew.accident(error) and queue.spared(first):
            (queue.apart if crew.blames_all else queue.again)(first, stop)
            return None
    failure = Failure(first, "procedure", cause, cause)
    record = lost_record(header_of(job.study), fields(), first, stop - first, failure)
    if job.on_failure == "record":
        return Outcome(record)
    return Outcome(record.part(first, first), failure)


class _Queue:
    """Replicates still to hand out; those of a task that died come first and one by one, suspects last and alone."""

    def __init__(self, todo: Sequence[Range], unit: int) -> None:
        self.unit, self.ranges, self.singles, self.suspects = unit, deque(todo), deque[Range](), deque[Range]()
        self.left = sum(stop - first for first, stop in todo)
        self._spared: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self.ranges or self.singles or self.suspects)

    def ready(self, pending: int) -> bool:
        """Whether there is something to hand out beside so many tasks."""
        return bool(self.ranges or self.singles or (self.suspects and not pending))

    def take(self, count: int) -> Range:
        """Return the next replicates, at most ``count``."""
        if self.singles:
            first, cut = self.singles.popleft()
        elif not self.ranges:
            first, cut = self.suspects.popleft()
        else:
            first, stop = self.ranges.popleft()
            cut = min(first + count, stop)
            if cut < stop:
                self.ranges.appendleft((cut, stop))
        self.left -= cut - first
        return first, cut

    def back(self, first: int, stop: int) -> None:
        """Take back replicates that nobody has tried."""
        self.left += stop - first
        self.ranges.appendleft((first, stop))

    def again(self, first: int, stop: int) -> None:
        """Take back the replicates of a task that died."""
        self.left += stop - first
        self.singles.extend((i, min(i + self.unit, stop)) for i in range(first, stop, self.unit))

    def apart(self, first: int, stop: int) -> None:
        """Take back a replicate that is to be tried when nobody else is at work."""
        self.left += stop - first
        self.suspects.append((first, stop))

    def spared(self, first: int) -> bool:
        """Whether a replicate that died alone gets another chance: it does once."""
        new = first not in self._spared
        self._spared.add(first)
        return new


def first_check(job: Job, crew: Crew | None) -> Outcome | None:
    """Have the pre-flight done, by a worker if there are any, and return the replicates that it ran.

    If it dies there, a later block is tried.
    """
    if crew is None:
        return job.checked()
    for block in range(min(3, -(-job.n // job.unit))):
        try:
            outcome: Outcome | None = unpacked(crew.check(block).result())
            return outcome
        except InvalidStudy:
            raise
        except (Exception, CancelledError, SystemExit) as error:
            if crew.cause(error) is None:
                raise broken(error) from error
    return None  # its replicates will be recorded or raised for what they do


def once(job: Job, crew: Crew | None, first: int, count: int) -> Outcome:
    """Compute one block."""
    todo, pace = [(first, first + count)], Pace(job.unit)
    (outcome,) = alone(job, todo, pace) if crew is None else shared(job, todo, crew, pace)
    return outcome


def broken(error: BaseException) -> RingtrueError:
    """Return the error that ends a run whose executor is of no more use."""
    return RingtrueError(
        f"the executor cannot go on ({type(error).__name__}: {error}); what is done is in the store, if there is one. "
        f"Run again with another executor, or with workers=, where a dying process costs its own replicate only."
    )
