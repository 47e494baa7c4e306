"""Anybody's executor: Dask's, MPI's, loky's, the standard library's."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor as Broken
from concurrent.futures import Executor, Future
from typing import Any

from ..errors import RingtrueError
from .jobs import Job, Range, do, packed
from .tasks import AHEAD, broken


class Borrowed:
    """A :class:`concurrent.futures.Executor` of the user's: a Dask cluster's, MPI's, loky's, a standard pool.

    A study may be large, so that it does not travel with every task: it goes with as many as there are workers, and
    with one more whenever a process says that it does not know it. The others have its name.

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
        self._job: Any = packed(job)
        self._name = hashlib.blake2b(self._job, digest_size=16).hexdigest()
        self._untold = self.width  # tasks that are to go with the job
        self._hand_out: Callable[..., list[Future[Any]]] = self._one_by_one
        if (client := _dask(executor)) is not None:
            self._job, self._hand_out = _placed(client, self._job), self._together
            # There it is a name too, and the first tasks are handed out together, before anybody knows it.
            self._untold *= AHEAD

    def submit(self, method: str, spans: Sequence[Range], each: float) -> list[Future[Any]]:
        """Hand out tasks."""
        told = max(min(self._untold, len(spans)), 0)
        self._untold -= told
        jobs = [self._job] * told + [None] * (len(spans) - told)
        return self._tasks([(job, method, first, stop - first) for job, (first, stop) in zip(jobs, spans, strict=True)])

    def check(self, block: int) -> Future[Any]:
        """Hand out the pre-flight."""
        return self._tasks([(self._job, "checked", block)])[0]

    def tell(self) -> None:
        """Send the job along with one more task: somebody does not know it."""
        self._untold += 1

    def _tasks(self, tasks: Sequence[tuple[Any, ...]]) -> list[Future[Any]]:
        try:
            return self._hand_out(tasks)
        except (Broken, RuntimeError) as error:
            raise broken(error) from error

    def _one_by_one(self, tasks: Sequence[tuple[Any, ...]]) -> list[Future[Any]]:
        return [self.executor.submit(do, self._name, *task) for task in tasks]

    def _together(self, tasks: Sequence[tuple[Any, ...]]) -> list[Future[Any]]:
        """Hand out tasks to Dask; many in one call take it a third of the time."""
        dask: Any = self.executor
        # Dask remembers what a task came to: a replicate tried again would be told that it died, without being tried,
        # if it were the same task. So none is.
        settings = {**dask._kwargs, "pure": False}
        futures = dask._client.map(do, [self._name] * len(tasks), *zip(*tasks, strict=True), **settings)
        dask._futures.update(futures)
        return [dask._wrap_future(one) for one in futures]

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


def _dask(executor: Any) -> Any:
    """Return the Dask client behind an executor; None if there is none."""
    return getattr(executor, "_client", None)


def _placed(client: Any, job: bytes) -> Any:
    """Return a job that is on one worker of a Dask cluster, from which others fetch it.

    It is the result of a task, and not scattered: if the workers that have it die, the scheduler makes it again.
    """
    with warnings.catch_warnings():
        # Dask warns of what is large and travels with tasks; this one is sent once.
        warnings.filterwarnings("ignore", "Sending large graph")
        return client.submit(bytes, job, pure=False)


def _breadth(executor: Any) -> int:
    """Return how many tasks an executor computes at a time, as far as it says."""
    for name in ("_max_workers", "max_workers", "num_workers"):
        if isinstance(number := getattr(executor, name, None), int) and number > 0:
            return number
    if (client := _dask(executor)) is not None:
        return max(int(sum(client.ncores().values())), 1)
    return os.cpu_count() or 1
