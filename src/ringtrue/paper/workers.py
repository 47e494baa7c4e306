"""Two processes for the studies of a vignette; how many there are changes nothing but the time.

Knows neither vignettes nor studies.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from typing import TypeVar

from .rows import Progress

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

#: More would be no faster where vignettes are made for, a laptop, and take more memory.
_MOST = 2


def outcomes(
    work: Callable[[Item], Outcome], items: Sequence[Item], progress: Progress, *, worth: bool
) -> Iterator[Outcome]:
    """Yield ``work(item)`` for each item, in order; in processes of their own if that is worth it.

    ``work`` and the items must be picklable. Put the longest items first, so that the processes end together.
    """
    workers = min(_MOST, os.cpu_count() or 1, len(items))
    if workers == 1 or not worth:
        yield from map(work, progress(items))
        return
    with ProcessPoolExecutor(workers) as pool:
        waiting: list[Future[Outcome]] = [pool.submit(partial(_alone, work), item) for item in items]
        try:
            yield from (future.result() for future in progress(waiting))
        except BaseException:
            # Otherwise leaving the block would wait for all that has not begun.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _alone(work: Callable[[Item], Outcome], item: Item) -> Outcome:
    """Do one item in a process that did others before."""
    # A record and its columns know each other: of a million replicates they would wait for the collector with 100 MB.
    gc.collect()
    return work(item)
