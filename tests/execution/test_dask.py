"""A real Dask cluster on this machine: the same replicates, whoever dies on the way."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt

from .test_runs import N, assert_identical, bayes, study, vectors

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.process,
    # Dask's own threads and sockets may be cleared up after their test.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start a scheduler and two workers, processes of one thread each, that give up on a task at its second death."""
    import dask

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {
            "distributed.scheduler.allowed-failures": 1,
            "distributed.comm.timeouts.connect": "300s",
            # A cluster gives up a worker that is not there 15 s after it was killed: it may just be starting again.
            "distributed.deploy.lost-worker-timeout": "1 hour",
        }
        with (
            dask.config.set(settings),
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
            ) as cluster,
        ):
            yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """Connect, when both workers are there."""
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=300)
        yield client


@pytest.mark.parametrize("make", [study, vectors], ids=["laws", "draws"])
def test_a_cluster_changes_nothing(client: Any, make: Any) -> None:
    """The replicates of a cluster are those of a plain run, to the last bit."""
    assert_identical(rt.run(make(), n=N, executor=client.get_executor()), rt.run(make(), n=N))


def test_a_killed_worker_changes_nothing(client: Any, tmp_path: Path) -> None:
    """Dask gives the tasks of a worker that was killed to others, and nothing is lost."""
    pids = list(client.run(os.getpid).values())
    killed, n = tmp_path / "killed", 800
    last = float(rt.replay(study(), n - 1)[1])

    def slow(mu0: Any, y: Any) -> Any:
        time.sleep(0.003)
        while float(y) == last and not killed.exists():  # the run is not over before the kill
            time.sleep(0.01)
        return bayes(mu0, y)

    def kill() -> None:
        os.kill(pids[0], signal.SIGKILL)
        killed.touch()

    killer = threading.Timer(0.5, kill)
    killer.start()
    ran = rt.run(study(slow), n=n, executor=client.get_executor())
    assert killed.exists()
    assert ran.failures == ()
    assert_identical(ran, rt.run(study(), n=n))


def test_a_replicate_that_kills_its_worker_is_lost_alone(client: Any) -> None:
    """When Dask gives up on a task its replicates are tried alone, and only the guilty one is a failure."""
    n, culprit = 40, 33
    fatal = float(rt.replay(study(), culprit)[1])

    def deadly(mu0: Any, y: Any) -> Any:
        if float(y) == fatal:
            os._exit(7)
        return bayes(mu0, y)

    ran = rt.run(study(deadly), n=n, executor=client.get_executor(), on_failure="record")
    assert [one.replicate for one in ran.failures] == [culprit]
    assert "KilledWorker" in ran.failures[0].error
    np.testing.assert_array_equal(ran.u[ran.kept], rt.run(study(), n=n).u[ran.kept])


def test_a_segmentation_fault_is_one_lost_replicate(client: Any, tmp_path: Path) -> None:
    """A replicate that ends its worker by a signal is lost alone, with its cause, also where workers keep files."""
    n, culprit = 40, 21
    fatal = float(rt.replay(study(), culprit)[1])

    def deadly(mu0: Any, y: Any) -> Any:
        if float(y) == fatal:
            # In this very thread: one that is sent to the process ends it when another thread comes to look.
            ctypes.string_at(0)
        return bayes(mu0, y)

    ran = rt.run(study(deadly), n=n, executor=client.get_executor(), on_failure="record", store=f"{tmp_path}/run/")
    assert [one.replicate for one in ran.failures] == [culprit]
    assert "KilledWorker" in ran.failures[0].error
    np.testing.assert_array_equal(ran.u[ran.kept], rt.run(study(), n=n).u[ran.kept])


FILE = """
import ringtrue as rt

belief, n = rt.Normal(0, 1), 200


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    return rt.Normal(y / 2, 0.5**0.5)
"""


def test_the_command_line_finds_a_scheduler(client: Any, tmp_path: Path) -> None:
    """--dask ADDRESS runs a study file on the cluster and keeps what comes in a store."""
    (tmp_path / "study.py").write_text(FILE)
    address = client.scheduler.address
    done = _check(tmp_path, "--dask", address, "--store", "run.db")
    assert done.returncode in (0, 1, 2), done.stderr
    plain = _check(tmp_path, "--store", "plain.db")
    assert done.stdout == plain.stdout
    assert_identical(rt.store.load(tmp_path / "run.db"), rt.store.load(tmp_path / "plain.db"))


def _check(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ringtrue", "check", "study.py", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)


def test_a_run_until_decided_stops_where_it_would_alone(client: Any) -> None:
    """In whatever order the cluster finishes them, replicates are looked at in the order of their numbers."""
    wrong = study(lambda mu0, y: rt.Normal(y / 2, 0.5))
    alone = rt.check(wrong, until="decided", max_n=400, progress=False)
    spread = rt.check(wrong, until="decided", max_n=400, executor=client.get_executor(), progress=False)
    assert (alone.replicates.n, alone.pvalue, alone.stopped) == (spread.replicates.n, spread.pvalue, spread.stopped)
    np.testing.assert_array_equal(alone.replicates.u, spread.replicates.u)
