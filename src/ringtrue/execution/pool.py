"""Processes of this machine, of which any may die or hang.

Every process has a pipe and a thread here of its own: whatever it dies in the middle of, nobody else waits for it. A
pool that shares a pipe or a lock among its processes can hang for ever when one is killed while it answers. Two things
are done that multiprocessing has no switch for, in :func:`without_main` and :func:`may_start_processes`.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from multiprocessing import Pipe, current_process, parent_process, spawn
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from typing import Any

from ..errors import InvalidStudy, RingtrueError
from .jobs import Job, Range, do, known_job, packed

#: Variables by which numeric libraries are told how many threads to start.
_THREADS = tuple(f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "BLIS"))


#: Parts in which a timeout is waited for, at least.
_STEPS = 8
#: Processes of one machine: each has a thread here.
_MOST = 1000


class Died(Exception):
    """A process ended before its task did; how, in words."""


class Pool:
    """Processes of this machine; one that dies or hangs loses its task and is replaced.

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
        if workers > _MOST:
            raise InvalidStudy(
                f"workers are processes of this machine, {_MOST} of them at most, but {workers} arrived; more of them "
                f"need a cluster: pass executor=."
            )
        self.width, self.timeout = workers, timeout
        self._job = packed(job)
        self._cores = max(1, (os.cpu_count() or 1) // workers)
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._workers: set[_Worker] = set()
        self._closed, self._changing = False, threading.Lock()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, method: str, spans: Sequence[Range], each: float) -> list[Future[Any]]:
        """Hand out tasks; one of several replicates may take what one may, and ten times what is expected."""
        return [self._put(self._limit(stop - first, each), method, first, stop - first) for first, stop in spans]

    def _limit(self, count: int, each: float) -> float | None:
        return None if self.timeout is None else self.timeout + (10 * each * count if count > 1 else 0.0)

    def check(self, block: int) -> Future[Any]:
        """Hand out the pre-flight, which takes two replicates and looks at the first ten."""
        return self._put(None if self.timeout is None else 12 * self.timeout, "checked", block)

    def tell(self) -> None:
        """Every process has the job from the start."""

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
        left = math.inf if limit is None else limit
        # Not one long wait: a process that the dead one has started may keep the pipe open. And time is counted by
        # what was waited for, not by a clock, which goes on while all of us are stopped or the machine sleeps.
        step = min(left / _STEPS, 1.0)
        with self._dying():
            while not self.pipe.poll(step):
                if not self.process.is_alive() and not self.pipe.poll():
                    raise EOFError
                left -= step
                if left <= step / 2:
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
    may_start_processes()
    if hasattr(os, "setsid"):
        os.setsid()  # what this process starts can then be killed with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_follow_parent, daemon=True).start()
    with contextlib.suppress(Exception):  # what goes wrong is said when the first task is done
        known_job("", job)
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
        with _starting, _environment(self._threads), without_main():
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
def without_main() -> Iterator[None]:
    """Leave the main module out of what a new interpreter imports.

    A spawned process imports the script again, under another name, so that functions of it can be found. Ours travel by
    value, and a script without ``if __name__ == "__main__"`` would start a run inside every worker. What a process is
    to prepare is the dict that ``multiprocessing.spawn.get_preparation_data`` returns, and the script is in it under
    ``init_main_from_name`` or ``init_main_from_path``. Held under a lock: it is replaced for the whole process.
    """
    module: Any = spawn
    inner: Callable[[str], dict[str, Any]] = module.get_preparation_data
    module.get_preparation_data = lambda name: {
        key: value for key, value in inner(name).items() if not key.startswith("init_main")
    }
    try:
        yield
    finally:
        module.get_preparation_data = inner


def may_start_processes() -> None:
    """Let this process, a daemon of the coordinator's, start processes of its own.

    Daemons are what leaving the coordinator never waits for, and multiprocessing refuses them children because it would
    not end these with them. Ours end with their group. The refusal looks at ``_config["daemon"]`` of the process, which
    cannot be set from outside once it has started.
    """
    me: Any = current_process()
    me._config["daemon"] = False
