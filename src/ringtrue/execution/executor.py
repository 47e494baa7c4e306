"""Anybody's executor: Dask's, MPI's, loky's, the standard library's."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import BrokenExecutor as Broken
from concurrent.futures import Executor, Future
from itertools import count
from typing import Any

from ..errors import RingtrueError
from .jobs import Job, do_numbered, packed
from .tasks import broken


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
            raise broken(error) from error

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


def _breadth(executor: Any) -> int:
    """Return how many tasks an executor computes at a time, as far as it says."""
    for name in ("_max_workers", "max_workers", "num_workers"):
        if isinstance(number := getattr(executor, name, None), int) and number > 0:
            return number
    client = getattr(executor, "_client", None)  # Dask's
    if client is not None:
        return max(int(sum(client.ncores().values())), 1)
    return os.cpu_count() or 1
