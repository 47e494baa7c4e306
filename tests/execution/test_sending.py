"""A study travels to every process once, and not with every task; the bytes are counted."""

import pickle
import warnings
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.execution import jobs
from ringtrue.execution.executor import Borrowed
from ringtrue.execution.jobs import Job, packed

from .test_runs import assert_identical, bayes, study

MEGABYTES = 16


def heavy() -> rt.Study:
    """Return a study whose procedure holds 16 MB."""
    table = np.random.default_rng(0).random(MEGABYTES * 125_000)

    def procedure(mu0: Any, y: Any) -> Any:
        return bayes(mu0, y + 0 * table[0])

    return study(procedure)


class Counting(ProcessPoolExecutor):
    """A standard pool that counts the bytes of its tasks, and makes them short."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers, mp_context=get_context("spawn"))
        self.bytes = list[int]()

    def submit(self, function: Any, /, *args: Any, **settings: Any) -> Future[Any]:
        """Count, and pass on."""
        self.bytes.append(len(pickle.dumps((function, args, settings))))
        return super().submit(function, *args, **settings)


@pytest.fixture
def short_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every task as short as can be, so that there are many."""
    monkeypatch.setattr("ringtrue.execution.tasks._TASK_SECONDS", 0.0)
    monkeypatch.setattr("ringtrue.execution.tasks._TASKS_PER_SECOND", float("inf"))


@pytest.mark.process
def test_a_pool_is_sent_a_large_study_a_few_times(short_tasks: None) -> None:
    """Of sixty tasks and the pre-flight, at most as many carry the study as were under way before anybody had it."""
    with Counting(2) as pool:
        ran = rt.run(heavy(), n=60, executor=pool)
    assert_identical(ran, rt.run(study(), n=60))
    carrying = [size for size in pool.bytes if size > MEGABYTES * 10**6]
    others = [size for size in pool.bytes if size <= MEGABYTES * 10**6]
    # The pre-flight; a task for each of two workers; one for each of the four under way that did not find it.
    assert 1 <= len(carrying) <= 1 + 2 + 4
    assert len(others) >= 50
    assert max(others) < 1000


@pytest.mark.process
def test_dask_carries_a_large_study_once(short_tasks: None) -> None:
    """What client and scheduler write, in a run of sixty tasks, is a few studies and not sixty."""
    distributed = pytest.importorskip("distributed")
    from distributed.comm.tcp import TCP

    written = []
    original = TCP.write

    async def counted(self: Any, *args: Any, **settings: Any) -> int:
        many: int = await original(self, *args, **settings)
        written.append(many)
        return many

    asked = heavy()
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # of sockets that Dask closes late
        patch.setattr(TCP, "write", counted)
        with (
            distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
            distributed.Client(cluster) as client,
        ):
            # The scheduler is in this process, workers are not: what workers send each other is not counted.
            before = sum(written)
            ran = rt.run(asked, n=60, executor=client.get_executor())
            sent = sum(written) - before
    assert_identical(ran, rt.run(study(), n=60))
    # From the client to the scheduler, and from there to a worker; to a second one if the first is short of time.
    assert MEGABYTES * 10**6 < sent < 4 * MEGABYTES * 10**6


class Forgetful(ProcessPoolExecutor):
    """A pool with one process that forgets what it knows before each task."""

    def submit(self, function: Any, /, *args: Any, **settings: Any) -> Future[Any]:
        """Forget, and do it."""
        return super().submit(_forgetting, function, *args, **settings)


def _forgetting(function: Any, *args: Any) -> Any:
    jobs._jobs.clear()
    return function(*args)


@pytest.mark.process
def test_processes_that_forget_are_told_again() -> None:
    """Executors may start a process for each task: every one that asks is told, and the run comes to its end."""
    with Forgetful(2, mp_context=get_context("spawn")) as pool:
        assert_identical(rt.run(study(), n=40, executor=pool), rt.run(study(), n=40))


def test_who_does_not_know_a_job_says_so() -> None:
    """The name alone is answered with a question, the job itself with its replicates, and then so is the name."""
    job = packed(Job(study(), 10))
    assert jobs.do("test of names", None, "compute", 0, 3) == ("unknown", None)
    assert jobs.do("test of names", job, "compute", 0, 3)[1].record.n == 3
    assert jobs.do("test of names", None, "compute", 3, 3)[1].record.first == 3


def test_several_runs_are_remembered() -> None:
    """Runs that share an executor do not drive each other out."""
    job = packed(Job(study(), 10))
    for i in range(12):
        jobs.do(f"run {i}", job, "compute", 0, 1)
    assert jobs.do("run 11", None, "compute", 0, 1)[0] == "done"
    assert jobs.do("run 10", None, "compute", 0, 1)[0] == "done"
    assert jobs.do("run 0", None, "compute", 0, 1)[0] == "unknown"
    assert len(jobs._jobs) < 10


def test_a_job_goes_with_as_many_tasks_as_there_are_workers() -> None:
    """And with one more for everybody who asks."""
    sent: list[bool] = []

    class Listening(ProcessPoolExecutor):
        def submit(self, function: Any, /, *args: Any, **settings: Any) -> Future[Any]:
            sent.append(args[1] is not None)
            return Future()

    crew = Borrowed(Job(study(), 10), Listening(1), 3)
    crew.submit("compute", [(i, i + 1) for i in range(5)], 0.0)
    assert sent == [True] * 3 + [False] * 2
    crew.tell()
    crew.tell()
    crew.submit("compute", [(0, 1)] * 3, 0.0)
    assert sent[5:] == [True, True, False]
