"""A thousand workers: are they kept busy, and what does it cost whoever runs the study?

A real scheduler and a client are in this process. Workers are real ones of Dask, of twenty threads each, in five other
processes; their replicates sleep for a second instead of computing. What a thousand threads of one machine get in each
other's way with is switched off: Dask's profiler, which looks at every thread a hundred times a second, short turns.
Only the loopback interface is used. Busy is the time slept, of all slots and of the whole call: start, pre-flight and
the last replicates included.

    python -m benchmarks.scale [slots] [replicates per slot]
"""

import asyncio
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import ringtrue as rt
from ringtrue.execution import executor, tasks

THREADS, PROCESSES = 20, 5
written = 0


def model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal()


def study(seconds: float = 1.0, megabytes: int = 1) -> rt.Study:
    table = np.random.default_rng(0).random(megabytes * 125_000)  # so that it matters how often the study is sent

    def sleeps(mu0: Any, y: Any) -> Any:
        time.sleep(seconds)
        return rt.Normal(y / 2 + 0 * table[0], 0.5**0.5)

    return rt.Study(rt.Normal(0, 1), model, sleeps, f=rt.identity)


def count_bytes() -> None:
    """Count what this process writes to sockets."""
    from distributed.comm.tcp import TCP

    original = TCP.write

    async def counted(self: Any, *args: Any, **settings: Any) -> Any:
        global written
        many = await original(self, *args, **settings)
        written += many
        return many

    TCP.write = counted


async def work(address: str, workers: int) -> None:
    """Be many workers until standard input is closed, and then say how many bytes they wrote."""
    import dask
    from distributed import Worker

    count_bytes()
    sys.setswitchinterval(0.05)
    dask.config.set({"distributed.worker.profile.enabled": False})
    some = [Worker(address, nthreads=THREADS, memory_limit=0, dashboard=False) for _ in range(workers)]
    await asyncio.gather(*some)
    await asyncio.to_thread(sys.stdin.read)
    print(written, flush=True)
    os._exit(0)


@contextmanager
def cluster(slots: int) -> Iterator[tuple[Any, list[int]]]:
    """Lend a client of a scheduler with so many slots, and the bytes that workers wrote, which are known afterwards."""
    from distributed import Client, LocalCluster

    sent: list[int] = []
    with (
        LocalCluster(n_workers=0, protocol="tcp://", host="127.0.0.1", dashboard_address=None) as scheduler,
        Client(scheduler) as client,
    ):
        address, (many, rest) = client.scheduler.address, divmod(slots, THREADS * PROCESSES)
        assert not rest, f"slots must be a multiple of {THREADS * PROCESSES}"
        command = [sys.executable, "-m", "benchmarks.scale", "--work", address, str(many)]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(PROCESSES)]
        try:
            client.wait_for_workers(many * PROCESSES, timeout=300)
            yield client, sent
            sent.extend(int(process.communicate("", timeout=60)[0]) for process in processes)
        finally:
            for process in processes:
                process.kill()


@contextmanager
def the_old_way() -> Iterator[None]:
    """Send the study with every task, and make tasks of half a second however many workers there are."""
    kept = tasks._TASKS_PER_SECOND, executor._placed, executor.Borrowed.submit, executor.Borrowed._together

    def always(self: Any, method: str, spans: Any, each: float) -> Any:
        return self._tasks([(self._job, method, first, stop - first) for first, stop in spans])

    tasks._TASKS_PER_SECOND, executor._placed = 10**9, lambda client, job: job
    executor.Borrowed.submit = always  # type: ignore[method-assign]
    executor.Borrowed._together = executor.Borrowed._one_by_one  # type: ignore[method-assign]
    try:
        yield
    finally:
        tasks._TASKS_PER_SECOND, executor._placed, *rest = kept
        executor.Borrowed.submit, executor.Borrowed._together = rest  # type: ignore[method-assign, assignment]


def measure(client: Any, n: int, slots: int, store: str | None) -> dict[str, float]:
    """Run, and say what it took."""
    handed, many, inner = client.get_executor(), 0, executor.Borrowed._tasks

    def counted(self: Any, tasks: Any) -> Any:
        nonlocal many
        many += len(tasks)
        return inner(self, tasks)

    executor.Borrowed._tasks = counted  # type: ignore[method-assign]
    wall, cpu, before = time.perf_counter(), time.process_time(), written
    ran = rt.run(study(), n=n, executor=handed, store=store, progress=False)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    executor.Borrowed._tasks = inner  # type: ignore[method-assign]
    assert ran.n == n
    return {
        "busy": n / (slots * wall),
        "wall": wall,
        "tasks": many,
        "cpu": cpu,
        "bytes": written - before,
    }


def say(name: str, n: int, found: dict[str, float]) -> None:
    print(
        f"{name:28s} busy {found['busy']:6.1%}  wall {found['wall']:6.1f} s  tasks {found['tasks']:6.0f}  "
        f"client and scheduler: {1e3 * found['cpu'] / found['tasks']:6.2f} ms/task "
        f"{1e3 * found['cpu'] / n:6.3f} ms/replicate {found['bytes'] / n:9.0f} bytes/replicate",
        flush=True,
    )


def main(slots: int = 1000, each: int = 120) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    count_bytes()
    n = slots * each
    print(f"{slots} slots, 1 s per replicate, a study of 1 MB; load average before: {os.getloadavg()[0]:.1f}")
    with cluster(slots) as (client, sent), tempfile.TemporaryDirectory() as folder:
        with the_old_way():
            few = slots // 4
            old = measure(client, few, slots, None)
            say(f"the old way, n = {few}", few, old)
        new = measure(client, n, slots, f"{folder}/")
        say(f"a directory, n = {n}", n, new)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    print(f"workers wrote {sum(sent) / (n + few):.0f} bytes per replicate to sockets, {size / n:.0f} to the directory")
    print(f"busy: {new['busy'] / old['busy']:.1f} times as much; client and scheduler per replicate: "
          f"{old['cpu'] / few / (new['cpu'] / n):.0f} times less CPU, "
          f"{old['bytes'] / few / (new['bytes'] / n):.0f} times fewer bytes")  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        asyncio.run(work(sys.argv[2], int(sys.argv[3])))
    else:
        main(*map(int, sys.argv[1:]))
