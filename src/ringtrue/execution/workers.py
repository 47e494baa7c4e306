"""Who computes the replicates: this process, a pool of processes that may die, or anybody's executor.

Tasks are spans of replicates, sized by how long replicates take. A task that dies or hangs is cut into single
replicates (batches). One that hangs alone, or dies alone twice, is a recorded failure: a process may also be killed by
others, and then the second time goes well. This module knows no stores and no tests, and which replicates end up in
which task changes nothing in them.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures import BrokenExecutor as Broken
from dataclasses import dataclass
from itertools import count
from multiprocessing import Pipe, current_process, parent_process, spawn
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from typing import Any, Protocol

from ..errors import InvalidStudy, RingtrueError
from ..question.study import Study
from ..replicates.preflight import preflight
from ..replicates.record import Failure, lost_record
from ..replicates.reducers import fields
from ..replicates.simulate import Keep, OnFailure, Outcome, Raised, Recorder, compute, header_of

#: Seconds a task should take: long beside the cost of sending it, short beside what an interruption may lose.
_TASK_SECONDS = 0.5
#: How fast tasks may grow while it is not known yet how long replicates take.
_GROWTH = 8
#: Tasks handed out per worker: one to do and one to go on with.
_AHEAD = 2
#: Variables by which numeric libraries are told how many threads to start.
_THREADS = tuple(f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "BLIS"))

Range = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Job:
    """What a worker does: some replicates of a study, or its pre-flight."""

    study: Study
    n: int
    keep: Keep = None
    on_failure: OnFailure = "raise"

    def __call__(self, first: int, count: int) -> Outcome:
        """Compute replicates."""
        return compute(self.study, first, count, keep=self.keep, on_failure=self.on_failure)

    def checked(self, block: int = 0) -> Outcome | None:
        """Run the pre-flight from a block on; what is refused is raised, a first replicate that fails is returned."""
        try:
            preflight(self.study, block, most=max(min(10, -(-self.n // self.unit) - block), 1))
        except Raised as raised:
            if isinstance(raised.error, InvalidStudy):
                raise raised.error from raised.error.__cause__
            first = block * (self.study.batch or 1)
            recorder = Recorder(self.study, first, 1)
            recorder.lose([first], raised.error, raised.stage)
            record = recorder.finish()
            return Outcome(record.part(first, first), record.failures[0], raised.error)
        return None

    @property
    def unit(self) -> int:
        """The fewest replicates that can be computed alone."""
        return self.study.batch or 1


class Crew(Protocol):
    """Those who compute: how many at a time, and how to hand them replicates."""

    @property
    def width(self) -> int:
        """How many tasks are computed at a time."""

    def submit(self, first: int, count: int, expected: float) -> Future[Any]:
        """Hand out replicates, expected to take some seconds; the result is packed, see :func:`unpacked`."""

    def check(self, block: int) -> Future[Any]:
        """Hand out the pre-flight."""

    def cause(self, error: BaseException) -> str | None:
        """Return what to record of a task that did not return; None if it concerns all tasks."""

    def accident(self, error: BaseException) -> bool:
        """Whether a task may have ended for a reason that is not its own."""

    @property
    def blames_all(self) -> bool:
        """Whether a dying process may end tasks that only waited for it."""


class Pace:
    """How many replicates make a task."""

    def __init__(self, unit: int) -> None:
        self.unit, self.size, self.known = unit, 1, False
        self.replicates, self.seconds = 0, 0.0

    def seen(self, replicates: int, seconds: float) -> None:
        """Learn from a finished task."""
        self.replicates, self.seconds = self.replicates + replicates, self.seconds + seconds
        fitting = max(int(_TASK_SECONDS / max(self.each, 1e-9) / self.unit), 1)
        self.size = min(fitting, self.size * _GROWTH)

    @property
    def each(self) -> float:
        """Seconds per replicate so far."""
        return self.seconds / self.replicates if self.replicates else 0.0

    def next(self, left: int, width: int) -> int:
        """Return the next task's replicates: all workers must have something to do until the end."""
        share = max(-(-left // (self.unit * width * _AHEAD)), 1)
        return min(self.size, share) * self.unit


def alone(job: Job, todo: Sequence[Range]) -> Iterator[Outcome]:
    """Compute ranges of replicates in this process, a task at a time."""
    pace = Pace(job.unit)
    for first, stop in todo:
        while first < stop:
            count = min(pace.next(stop - first, 1), stop - first)
            outcome = job(first, count)
            pace.seen(count, outcome.record.seconds)
            first += count
            yield outcome


def shared(job: Job, todo: Sequence[Range], crew: Crew) -> Iterator[Outcome]:
    """Compute ranges of replicates with others, in whatever order they come back."""
    queue, pace, pending = _Queue(todo, job.unit), Pace(job.unit), dict[Future[Any], Range]()
    try:
        while queue or pending:
            while queue.ready(len(pending)) and len(pending) < crew.width * _AHEAD:
                first, stop = queue.take(pace.next(queue.left, crew.width))
                pending[crew.submit(first, stop - first, pace.each * (stop - first))] = (first, stop)
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                first, stop = pending.pop(future)
                outcome = _result(job, crew, queue, future, first, stop)
                if outcome is not None:
                    pace.seen(max(outcome.record.n, 1), outcome.record.seconds)
                    yield outcome
    finally:
        for future in pending:
            future.cancel()


def _result(job: Job, crew: Crew, queue: _Queue, future: Future[Any], first: int, stop: int) -> Outcome | None:
    """Return what a task came to; None if it died and its replicates are queued again, one by one."""
    try:
        outcome: Outcome | None = unpacked(future.result())
        return outcome
    except InvalidStudy:
        raise
    except (Exception, CancelledError, SystemExit) as error:
        cause = crew.cause(error)
        if cause is None:
            raise _broken(error) from error
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


def first_check(job: Job, crew: Crew) -> Outcome | None:
    """Have the pre-flight done by a worker; if it dies there, a later block is tried."""
    blocks = min(3, -(-job.n // job.unit))
    for block in range(blocks):
        try:
            outcome: Outcome | None = unpacked(crew.check(block).result())
            return outcome
        except InvalidStudy:
            raise
        except (Exception, CancelledError, SystemExit) as error:
            if crew.cause(error) is None:
                raise _broken(error) from error
    return None  # its replicates will be recorded or raised for what they do


# What travels.


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


_jobs: dict[str, Job] = {}


def do(digest: str, job: bytes, method: str, *args: int) -> tuple[str, Any]:
    """Unpack a job, once per process, and do a part of it; exceptions become what can travel."""
    try:
        mine = _job(digest, job)
    except Exception as error:
        return "InvalidStudy", f"a worker cannot rebuild the study: {type(error).__name__}: {error}."
    try:
        outcome = getattr(mine, method)(*args)
    except InvalidStudy as error:
        return type(error).__name__, str(error)
    return "done", None if outcome is None else Outcome(outcome.record, outcome.failure)


def do_numbered(number: int, digest: str, job: bytes, method: str, *args: int) -> tuple[str, Any]:
    """Do a part of a job; the number makes it another task for executors that remember what a task came to.

    Dask does: without it, a replicate tried again would be told that it died, without being tried.
    """
    return do(digest, job, method, *args)


def _job(digest: str, job: bytes) -> Job:
    import cloudpickle

    if digest not in _jobs:
        _jobs.clear()
        _jobs[digest] = cloudpickle.loads(job)
    return _jobs[digest]


def unpacked(answer: tuple[str, Any]) -> Any:
    """Return what a worker returned, or raise what it refused."""
    kind, value = answer
    if kind == "done":
        return value
    from .. import errors

    raise getattr(errors, kind)(value)


# A pool of our own.


class Died(Exception):
    """A process ended before its task did; how, in words."""


class Pool:
    """Processes of this machine; one that dies or hangs loses its task and is replaced.

    Every process has a pipe and a thread here of its own: whatever it dies in the middle of, nobody else waits for it.
    A pool that shares a pipe or a lock among its processes can hang for ever when one is killed while it answers.

    Parameters
    ----------
    job
        What to do.
    workers
        How many processes.
    timeout
        Seconds that a replicate may take; it is killed then.
    """

    blames_all = False

    def __init__(self, job: Job, workers: int, timeout: float | None) -> None:
        self.width, self.timeout = workers, timeout
        self._job = packed(job)
        self._cores = max(1, (os.cpu_count() or 1) // workers)
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._workers: set[_Worker] = set()
        self._closed, self._changing = False, threading.Lock()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, first: int, count: int, expected: float) -> Future[Any]:
        """Hand out replicates; a task of several may take what one may, and ten times what is expected."""
        limit = None if self.timeout is None else self.timeout + (10 * expected if count > 1 else 0.0)
        return self._put(limit, "__call__", first, count)

    def check(self, block: int) -> Future[Any]:
        """Hand out the pre-flight, which takes two replicates and looks at the first ten."""
        return self._put(None if self.timeout is None else 12 * self.timeout, "checked", block)

    def _put(self, limit: float | None, *message: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._tasks.put((future, limit, message))
        return future

    def cause(self, error: BaseException) -> str | None:
        """Say how a task ended."""
        if isinstance(error, TimeoutError):
            return f"took longer than the timeout of {self.timeout:g} s and was stopped"
        return f"its process died ({error})" if isinstance(error, Died) else None

    def accident(self, error: BaseException) -> bool:
        """Whether somebody else may have ended a task: systems that are short of memory kill processes."""
        return isinstance(error, Died)

    def _serve(self) -> None:
        """Pass tasks to one process after the other, each until it dies."""
        if hasattr(signal, "pthread_sigmask"):  # Ctrl-C is for the coordinator; new processes inherit this
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        worker: _Worker | None = None
        while (task := self._tasks.get()) is not None:
            future, limit, message = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                worker = worker or self._started()
                future.set_result(worker.ask(message, limit))
            except BaseException as error:
                if worker is not None:
                    self._ended(worker)
                    worker = None
                future.set_exception(error)

    def _started(self) -> _Worker:
        """Start a process; one that is killed on the way says nothing about the next."""
        for attempts_left in (2, 1, 0):
            with self._changing:
                if self._closed:
                    raise CancelledError
                worker = _Worker(self._cores, self._job)
                self._workers.add(worker)
            try:
                worker.answer(None)
                return worker
            except Died as error:
                self._ended(worker)
                if not attempts_left:
                    raise RingtrueError(
                        f"processes that can import ringtrue and rebuild the study were expected, but one after the "
                        f"other ended as it started ({error})"
                    ) from None
        raise AssertionError

    def _ended(self, worker: _Worker) -> None:
        worker.end()
        self._workers.discard(worker)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exception: Any) -> None:
        with self._changing:
            self._closed = True
        for worker in tuple(self._workers):
            worker.kill()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        for worker in tuple(self._workers):
            self._ended(worker)


_Task = tuple[Future[Any], float | None, tuple[Any, ...]]


class _Worker:
    """A process, and the pipe to it."""

    def __init__(self, cores: int, job: bytes) -> None:
        self.pipe, theirs = Pipe()
        # A daemon for this process, so that leaving it never waits for workers, whatever has gone wrong before.
        self.process = _Process(cores, target=_work, args=(theirs, job), name="ringtrue worker", daemon=True)
        self.process.start()
        assert self.process.pid is not None
        self._pid = self.process.pid
        theirs.close()

    def ask(self, message: tuple[Any, ...], limit: float | None) -> Any:
        """Return the answer to a message."""
        with self._dying():
            self.pipe.send(message)
        return self.answer(limit)

    def answer(self, limit: float | None) -> Any:
        """Wait for what the process says next."""
        end = math.inf if limit is None else time.monotonic() + limit
        with self._dying():
            # Not one long wait: a process that the dead one has started may keep the pipe open.
            while not self.pipe.poll(max(min(end - time.monotonic(), 1.0), 0.0)):
                if not self.process.is_alive() and not self.pipe.poll():
                    raise EOFError
                if time.monotonic() >= end:
                    raise TimeoutError
            return self.pipe.recv()

    @contextlib.contextmanager
    def _dying(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise
        except (EOFError, OSError):
            self.process.join(5)
            raise Died(_ending(self.process.exitcode)) from None

    def kill(self) -> None:
        """Kill the process and those that it started."""
        with contextlib.suppress(ValueError):  # it was closed by the other thread
            self.process.kill()
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):
                os.killpg(self._pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the process and clear up."""
        self.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()


def _ending(code: int | None) -> str:
    """Return how a process ended, from its exit code."""
    if code is None or code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


def _work(pipe: Any, job: bytes) -> None:
    """Answer until there is nobody to answer to."""
    me: Any = current_process()
    me._config["daemon"] = False  # daemons must not start processes, but replicates may
    if hasattr(os, "setsid"):
        os.setsid()  # what this process starts can then be killed with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_follow_parent, daemon=True).start()
    with contextlib.suppress(Exception):  # what goes wrong is said when the first task is done
        _job("", job)
    with contextlib.suppress(EOFError, OSError):
        pipe.send("ready")
        while True:
            method, *args = pipe.recv()
            pipe.send(do("", job, method, *args))


def _follow_parent() -> None:
    """End this process, in the middle of a replicate too, when the coordinator dies."""
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
    if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


class _Process(SpawnProcess):
    """A fresh interpreter that does not run the user's script again, with few threads.

    Functions of the script travel by value, so that nobody needs ``if __name__ == "__main__"``.
    """

    def __init__(self, threads: int, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._threads = threads

    def start(self) -> None:
        with _starting, _environment(self._threads), _without_main():
            super().start()


_starting = threading.Lock()


@contextlib.contextmanager
def _environment(threads: int) -> Iterator[None]:
    """Limit the threads of numeric libraries, unless the user has."""
    mine = {name: str(threads) for name in _THREADS if name not in os.environ}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name in mine:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Leave the main module out of what a new interpreter imports."""
    module: Any = spawn
    inner: Callable[[str], dict[str, Any]] = module.get_preparation_data
    module.get_preparation_data = lambda name: {
        key: value for key, value in inner(name).items() if not key.startswith("init_main")
    }
    try:
        yield
    finally:
        module.get_preparation_data = inner


# Anybody's executor.


class Borrowed:
    """A :class:`concurrent.futures.Executor` of the user's: a Dask cluster's, MPI's, loky's, a standard pool.

    Parameters
    ----------
    job
        What to do.
    executor
        Who does it. It is not shut down.
    workers
        How many tasks at a time; left out, as many as the executor says it has, or the machine has cores.
    """

    # Dask counts a death against every task that its worker had, those that only waited included.
    blames_all = True

    def __init__(self, job: Job, executor: Executor, workers: int | None) -> None:
        self.executor, self.width = executor, workers or _breadth(executor)
        self._numbers = count()
        self._job = packed(job)
        self._digest = hashlib.blake2b(self._job, digest_size=16).hexdigest()

    def submit(self, first: int, count: int, expected: float) -> Future[Any]:
        """Hand out replicates."""
        return self._submit("__call__", first, count)

    def check(self, block: int) -> Future[Any]:
        """Hand out the pre-flight."""
        return self._submit("checked", block)

    def _submit(self, method: str, *args: int) -> Future[Any]:
        try:
            return self.executor.submit(do_numbered, next(self._numbers), self._digest, self._job, method, *args)
        except (Broken, RuntimeError) as error:
            raise _broken(error) from error

    def cause(self, error: BaseException) -> str | None:
        """Say how a task ended; a broken executor concerns all."""
        if isinstance(error, (Broken, RingtrueError, ImportError)):
            return None
        return f"its task did not return ({type(error).__name__}: {error})"

    def accident(self, error: BaseException) -> bool:
        """Whether it may have been the fault of another task; nothing that an executor says excludes it."""
        return True

    def __enter__(self) -> Borrowed:
        return self

    def __exit__(self, *exception: Any) -> None:
        return


def _broken(error: BaseException) -> RingtrueError:
    return RingtrueError(
        f"the executor cannot go on ({type(error).__name__}: {error}); what is done is in the store, if there is one. "
        f"Run again with another executor, or with workers=, where a dying process costs its own replicate only."
    )


def _breadth(executor: Any) -> int:
    """Return how many tasks an executor computes at a time, as far as it says."""
    for name in ("_max_workers", "max_workers", "num_workers"):
        if isinstance(number := getattr(executor, name, None), int) and number > 0:
            return number
    client = getattr(executor, "_client", None)  # Dask's
    if client is not None:
        return max(int(sum(client.ncores().values())), 1)
    return os.cpu_count() or 1
