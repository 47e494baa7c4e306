"""What a replicate, workers, stores and clusters cost, as ratios in one run: best of several, since machines are noisy.

``python -m benchmarks.runs``
"""

import tempfile
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import ringtrue as rt

from .studies import scalar

WORKERS = 2


def model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal()


def trivial(mu0: Any, y: Any) -> Any:
    return rt.Normal(y / 2, 0.5**0.5)


class Waiting:
    """A procedure that takes its time: computing, or as if it waited for another program."""

    def __init__(self, seconds: float, how: str) -> None:
        self.seconds, self.how = seconds, how

    def __call__(self, mu0: Any, y: Any) -> Any:
        if self.how == "asleep":
            time.sleep(self.seconds)
        end = time.perf_counter() + self.seconds
        while self.how == "busy" and time.perf_counter() < end:
            pass
        return trivial(mu0, y)


def took(procedure: Any, n: int, **settings: Any) -> float:
    start = time.perf_counter()
    rt.run(rt.Normal(0, 1), model, procedure, n=n, progress="off", **settings)
    return time.perf_counter() - start


def best_pair(first: Callable[[], float], second: Callable[[], float], repeats: int) -> tuple[float, float]:
    """Return the shortest times of two actions done in turn, so that both meet the same neighbours."""
    times = [(first(), second()) for _ in range(repeats)]
    return min(a for a, _ in times), min(b for _, b in times)


def startup() -> None:
    """Seconds until the first replicate of a pool is back."""
    print(f"starting {WORKERS} workers: {min(took(trivial, 2, workers=WORKERS) for _ in range(5)):.2f} s")


def speedup(n: int = 20_000) -> None:
    """Two workers against one process, at a millisecond per replicate."""
    for how in ("busy", "asleep"):
        slow = Waiting(1e-3, how)
        alone, pool = best_pair(lambda: took(slow, n), lambda: took(slow, n, workers=WORKERS), 3)  # noqa: B023
        print(
            f"{WORKERS} workers, {n} replicates of 1 ms ({how}): {alone / pool:.2f} x serial (limit 1.8); "
            f"{alone:.1f} s and {pool:.1f} s, start included"
        )


def overhead() -> None:
    """A pool against one process when there is next to nothing to compute."""
    for n in (10**5, 4 * 10**5):
        alone, pool = best_pair(lambda: took(trivial, n), lambda: took(trivial, n, workers=WORKERS), 3)  # noqa: B023
        print(f"{WORKERS} workers, {n} trivial replicates: {pool / alone:.2f} x the time of serial (limit 1.3)")


def writing(n: int = 5000) -> None:
    """A run with a store against one without, at a millisecond per replicate."""
    slow = Waiting(1e-3, "busy")
    with tempfile.TemporaryDirectory() as folder:
        names = (Path(folder) / f"{i}.db" for i in range(100))
        plain, kept = best_pair(lambda: took(slow, n), lambda: took(slow, n, store=next(names)), 5)
    print(f"a store, {n} replicates of 1 ms: {100 * (kept / plain - 1):+.1f} % (limit 5)")


def dask(n: int = 2000) -> None:
    """A local Dask cluster, already there, against the pool, started each time, at ten milliseconds per replicate."""
    distributed: Any = import_module("distributed")
    slow = Waiting(1e-2, "busy")
    warnings.simplefilter("ignore")
    with (
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        pool, dasks = best_pair(lambda: took(slow, n, workers=WORKERS), lambda: took(slow, n, executor=executor), 3)
    print(f"Dask, {n} replicates of 10 ms: {dasks / pool:.2f} x the time of the pool (limit 1.3)")


def opening(n: int = 10**6) -> None:
    """Reading back a large run, every checksum verified."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        writes = took(trivial, n, workers=WORKERS, store=path)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            ran = rt.store.load(path)
            times.append(time.perf_counter() - start)
        assert ran.n == n
        size = path.stat().st_size / 1e6
    print(
        f"opening a store of {n} replicates, {len(ran.functions)} functions, {size:.0f} MB: {min(times):.2f} s "
        f"(limit 1); computed and written in {writes:.0f} s"
    )


if __name__ == "__main__":
    scalar()
    startup()
    speedup()
    overhead()
    writing()
    dask()
    opening()
