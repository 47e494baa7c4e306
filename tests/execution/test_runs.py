"""Runs with others: the answer does not depend on who computes, and what dies is one replicate."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ringtrue as rt
from ringtrue.execution.runs import go_on
from ringtrue.execution.store import Store
from ringtrue.execution.tasks import Pace
from ringtrue.replicates.record import join
from ringtrue.replicates.simulate import compute

BELIEF, N = rt.Normal(0, 1), 60


def model(theta: Any, rng: Any) -> Any:
    """Return theta and noise."""
    return theta + rng.normal()


def bayes(mu0: Any, y: Any) -> Any:
    """Return the posterior."""
    return rt.Normal(y / 2, np.sqrt(0.5))


def sampled(mu0: Any, y: Any, rng: Any) -> Any:
    """Return draws of the posterior, of a vector."""
    return np.stack([y / 2, -y / 2], axis=-1) + np.sqrt(0.5) * rng.normal(size=(19, 2))


def study(procedure: Any = bayes, **settings: Any) -> rt.Study:
    """Return a study of the normal mean."""
    return rt.Study(BELIEF, model, procedure, **settings)


def vectors() -> rt.Study:
    """Return a study of draws of vectors, whose test functions rank the same draws."""
    plane = rt.Gaussian([0.0, 0.0], np.eye(2))
    return rt.Study(plane, lambda theta, rng: theta[0] + rng.normal(), sampled)


def assert_identical(found: rt.Replicates, expected: rt.Replicates) -> None:
    """Every number is the same to the last bit, and every failure has the same cause."""
    assert set(found.arrays) == set(expected.arrays)
    for name, array in {**expected.arrays, "reference": expected.reference}.items():
        other = {**found.arrays, "reference": found.reference}[name]
        assert (other.dtype, other.shape, other.tobytes()) == (array.dtype, array.shape, array.tobytes()), name
    causes = ([(one.replicate, one.stage, one.error) for one in record.failures] for record in (found, expected))
    assert next(causes) == next(causes)
    assert (found.header, found.first) == (expected.header, expected.first)


@pytest.mark.process
@pytest.mark.parametrize("make", [study, vectors], ids=["laws", "draws"])
def test_workers_change_nothing(make: Any) -> None:
    """Two processes give the replicates of one, to the last bit."""
    assert_identical(rt.run(make(), n=N, workers=2), rt.run(make(), n=N))


def test_the_comparison_of_replicates_can_fail() -> None:
    """The broken twin: another seed, or one number changed in its last bit, is seen."""
    ran = rt.run(study(), n=60)
    with pytest.raises(AssertionError):
        assert_identical(rt.run(study(seed=1), n=60), ran)
    moved = rt.run(study(), n=60)
    moved.u[3, 0] = np.nextafter(moved.u[3, 0], 2)
    with pytest.raises(AssertionError):
        assert_identical(moved, ran)


class Shuffled(Executor):
    """An executor that computes tasks in an order of its own when somebody waits."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.tasks = rng, list[Any]()
        self.pool = ThreadPoolExecutor(1)

    def submit(self, function: Any, /, *args: Any, **settings: Any) -> Future[Any]:
        """Take a task; start a random one of those taken."""
        future: Future[Any] = Future()
        self.tasks.append((future, function, args))
        self.pool.submit(self._one)
        return future

    def _one(self) -> None:
        future, function, args = self.tasks.pop(int(self.rng.integers(len(self.tasks))))
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(*args))
            except BaseException as error:
                future.set_exception(error)


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(1, 9), st.sampled_from([None, 7, 16]), st.integers(1, 70))
def test_order_and_cutting_change_nothing(seed: int, width: int, batch: int | None, n: int) -> None:
    """Any order of completion and any number of tasks at a time give the same replicates, batched or not."""
    zoo = rt.procedures.NormalMean()
    asked = rt.Study(BELIEF, zoo.simulate if batch else model, zoo if batch else bayes, batch=batch)
    executor = Shuffled(np.random.default_rng(seed))
    found = rt.run(asked, n=n, executor=executor, workers=width, progress="off")
    assert_identical(found, rt.run(asked, n=n, progress="off"))


@settings(max_examples=20)
@given(st.data())
def test_any_cutting_into_spans_gives_the_same_bits(data: st.DataObject) -> None:
    """How replicates are grouped when they are measured changes no bit, for exact laws, draws and vectors."""
    asked = data.draw(st.sampled_from(STUDIES))
    n = 30
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=6))})
    whole = compute(asked, 0, n).record
    for start, stop in pairwise(cuts):
        assert_identical(compute(asked, start, stop - start).record, whole.part(start, stop))


def _studies() -> list[rt.Study]:
    rng = np.random.default_rng(0)
    linear = {d: rt.procedures.LinearGaussian(rng.normal(size=(d, d))) for d in (2, 9)}
    gaussians = [rt.Study(rt.Gaussian(np.zeros(d), np.eye(d)), zoo.simulate, zoo, seed=d) for d, zoo in linear.items()]
    drawn = [
        rt.Study(
            rt.Gaussian(np.zeros(d), np.eye(d)), zoo.simulate, lambda b, y, rng, zoo=zoo: zoo(b, y).sample(11, rng)
        )
        for d, zoo in linear.items()
    ]
    named = rt.Study(
        {"a": BELIEF, "b": rt.Gamma(2.0, 1.0)},
        lambda theta, rng: theta["a"] + rng.normal(),
        lambda b, y, rng: {"a": y / 2 + rng.normal(size=9), "b": rng.gamma(2.0, size=9)},
    )
    return [study(), vectors(), *gaussians, *drawn, named]


STUDIES = _studies()


@pytest.mark.process
def test_lambdas_closures_and_local_classes_travel() -> None:
    """What cannot be imported elsewhere is sent by value."""
    half = 0.5

    class Local:
        def __call__(self, mu0: Any, y: Any) -> Any:
            return rt.Normal(half * y, np.sqrt(half))

    asked = rt.Study(BELIEF, lambda theta, rng: theta + rng.normal(), Local())
    assert_identical(rt.run(asked, n=20, workers=1), rt.run(asked, n=20))


SCRIPT = """
import ringtrue as rt
def model(theta, rng): return theta + rng.normal()
ran = rt.run(rt.Normal(0, 1), model, lambda mu0, y: rt.Normal(y / 2, 0.5**0.5), n=30, workers=2)
print(ran)
"""


@pytest.mark.process
def test_a_script_needs_no_guard(tmp_path: Any) -> None:
    """A script that calls run at its top level is run once, not again by every worker."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.stdout.count("Replicates(n=30") == 1, done.stderr


def _fate(y: float) -> str:
    """Return what happens to a replicate."""
    return next((fate for fate, at in (("exit", 1.6), ("killed", 1.2), ("hangs", 1.05)) if y > at), "returns")


def deadly(mu0: Any, y: Any) -> Any:
    """Return the posterior, or do not."""
    fate = _fate(float(y))
    if fate == "exit":
        os._exit(7)
    if fate == "killed":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fate == "hangs":
        time.sleep(1000)
    return bayes(mu0, y)


@pytest.mark.process
def test_dying_and_hanging_replicates_are_failures_of_their_own() -> None:
    """A replicate that exits, is killed or hangs is recorded with its cause; the others are as if it had not been."""
    n = 24
    plain = rt.run(study(), n=n)
    data = [float(rt.replay(study(), i)[1]) for i in range(n)]
    fates = {i: _fate(y) for i, y in enumerate(data) if _fate(y) != "returns"}
    assert set(fates.values()) == {"exit", "killed", "hangs"}
    ran = rt.run(study(deadly), n=n, workers=2, timeout=10, on_failure="record")
    causes = {"exit": "exit code 7", "killed": "SIGSEGV", "hangs": "timeout of 10 s"}
    assert {failure.replicate for failure in ran.failures} == set(fates)
    assert all(causes[fates[failure.replicate]] in failure.error for failure in ran.failures)
    np.testing.assert_array_equal(ran.u[ran.kept], plain.u[ran.kept])
    assert np.isnan(ran.u[~ran.kept]).all()


@pytest.mark.process
def test_a_dying_replicate_is_raised_by_default() -> None:
    """Without on_failure='record' the first death stops the run and says how to replay."""
    with pytest.raises(rt.errors.ReplicateFailed, match=r"its process died .*ringtrue.replay\(study, \d+\)"):
        rt.run(study(deadly), n=60, workers=2, timeout=600)


def hungry(mu0: Any, y: Any) -> Any:
    """Ask for more memory than there may be."""
    import resource

    if y > 0.8:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + 2**28, resource.RLIM_INFINITY))
        hoard = []
        while True:
            hoard.append(np.ones(2**22))
    return bayes(mu0, y)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's here")
def test_a_replicate_that_allocates_until_it_fails_is_recorded() -> None:
    """Running out of memory is a failure like any other."""
    ran = rt.run(study(hungry), n=12, workers=1, on_failure="record")
    assert ran.failures
    assert all("MemoryError" in failure.error for failure in ran.failures)


@pytest.mark.process
def test_exceptions_of_workers_are_chained_as_text() -> None:
    """What a worker's function raised comes back with its traceback and the replay call."""
    with pytest.raises(rt.errors.ReplicateFailed, match=r"ZeroDivisionError.*replay\(study, 0\)") as caught:
        rt.run(study(lambda mu0, y: 1 / 0), n=60, workers=1)
    assert "1 / 0" in str(caught.value.__cause__)


@pytest.mark.process
@pytest.mark.parametrize(
    ("procedure", "message"),
    [(lambda mu0, y: None, "but None arrived"), (lambda mu0, y: rt.Normal(np.random.normal(), 1.0), "moved")],  # noqa: NPY002
    ids=["nothing", "own randomness"],
)
def test_ill_posed_studies_are_refused_by_workers_too(procedure: Any, message: str) -> None:
    """The pre-flight is done by a worker and refuses what it refuses here."""
    with pytest.raises(rt.errors.InvalidStudy, match=message):
        rt.run(study(procedure), n=60, workers=1)


def test_studies_that_cannot_be_sent_are_refused() -> None:
    """A study that holds a lock is refused before anything is started."""
    import threading

    lock = threading.Lock()

    def locked(mu0: Any, y: Any) -> Any:
        with lock:
            return bayes(mu0, y)

    with pytest.raises(rt.errors.InvalidStudy, match="cloudpickle raised TypeError"):
        rt.run(study(locked), n=60, workers=1)


@pytest.mark.process
def test_threads_of_numeric_libraries_are_limited() -> None:
    """As many workers as cores get one thread each, unless the user has said otherwise."""
    cores = os.cpu_count() or 1
    threads = rt.Study(
        BELIEF, model, lambda mu0, y: rt.Normal(y / 2, float(os.environ["OPENBLAS_NUM_THREADS"])), f=rt.identity
    )
    ran = rt.run(threads, n=2, workers=cores)
    plain = rt.run(rt.Study(BELIEF, model, lambda mu0, y: rt.Normal(y / 2, 1.0), f=rt.identity), n=2)
    np.testing.assert_array_equal(ran.u, plain.u)
    assert "OPENBLAS_NUM_THREADS" not in os.environ or os.environ["OPENBLAS_NUM_THREADS"]


@pytest.mark.process
def test_standard_pools_serve() -> None:
    """Threads and processes of the standard library, and loky, give the replicates of a plain run."""
    expected = rt.run(study(), n=60)
    with ThreadPoolExecutor(2) as threads:
        assert_identical(rt.run(study(), n=60, executor=threads), expected)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert_identical(rt.run(study(), n=60, executor=processes), expected)


@pytest.mark.process
def test_loky_serves() -> None:
    """Loky's executor gives the replicates of a plain run."""
    loky = pytest.importorskip("loky")
    with loky.ProcessPoolExecutor(2) as executor:
        assert_identical(rt.run(study(), n=60, executor=executor), rt.run(study(), n=60))


@pytest.mark.process
def test_a_broken_executor_says_so() -> None:
    """A standard pool whose process dies cannot go on, and the message says what can."""
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes,
        pytest.raises(rt.errors.RingtrueError, match=r"executor cannot go on.*workers="),
    ):
        rt.run(study(deadly), n=24, executor=processes, on_failure="record")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers must be a whole number of at least 1, but 0 arrived"),
        ({"timeout": -1.0}, "timeout must be a positive number"),
        ({"timeout": 1.0, "executor": ThreadPoolExecutor(1)}, "timeout= needs workers="),
        ({"executor": "dask"}, "client.get_executor"),
        ({"shard": (0, 2)}, "pass store="),
        ({"keep": "draws"}, "pass store="),
        ({"keep": "all", "store": "x.db"}, "keep must be 'draws'"),
        ({"shard": (2, 2), "store": "x.db"}, "0 <= i < k"),
        ({"shard": (0, 1000), "store": "x.db"}, "is empty"),
        ({"failures_allowed": 2}, "share between 0 and 1"),
        ({"tag": 3}, "tag must be text, but 3 arrived; pass tag='3'"),
        ({"retry_failures": "yes", "store": "run.db"}, "retry_failures must be True or False, but 'yes' arrived"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: Any, message: str) -> None:
    """Every wrong setting has its sentence, before anything runs."""
    with pytest.raises(rt.errors.InvalidStudy, match=message):
        rt.run(study(), n=60, **options)


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800.db", "x" * 300 + ".db"])
def test_names_that_no_file_can_have_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a name has its sentence, for writing and for reading; an empty one does not mean the directory one is in."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rt.errors.StoreError, match="name"):
        rt.run(study(), n=5, store=name)
    with pytest.raises(rt.errors.StoreError, match="name"):
        rt.store.load(name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("answer", ["x", -3, 0, True, 2.5])
def test_until_returns_a_number_or_nothing(answer: Any) -> None:
    """What decides when a run has enough says so in replicates."""
    with pytest.raises(rt.errors.InvalidStudy, match="until must return how many"):
        rt.run(study(), n=5, until=lambda part: answer)


@pytest.mark.parametrize("seconds", [1e300, np.inf])
def test_who_has_all_the_time_gets_all_replicates(seconds: float) -> None:
    """A limit that no clock reaches is none, with others too."""
    with ThreadPoolExecutor(2) as threads:
        assert_identical(rt.run(study(), n=N, executor=threads, max_seconds=seconds), rt.run(study(), n=N))


def test_tasks_grow_and_leave_something_for_everybody() -> None:
    """Tasks start at one, grow at most eightfold to half a second, and shrink towards the end."""
    pace = Pace(1, 2)
    assert pace.next(10**6) == 1
    pace.seen(1, 1e-5)
    assert pace.next(10**6) == 8
    for _ in range(9):
        pace.seen(1000, 1e-2)
    assert 40_000 <= pace.next(10**7) <= 60_000
    assert pace.next(100) == 25
    slow = Pace(1, 2)
    slow.seen(1, 60.0)
    assert slow.next(10**6) == 1


def test_tasks_are_longer_where_workers_are_many() -> None:
    """At most a hundred tasks a second are handed out, however many workers there are."""
    for width in (2, 50, 1000, 10_000):
        pace = Pace(1, width)
        for _ in range(9):
            pace.seen(100, 1.0)
        *first, last = [pace.next(10**9) * pace.each for _ in range(width)]
        assert last == pytest.approx(max(0.5, width / 100))
        assert pace.next(1) * pace.each == pytest.approx(max((last - 0.5) / 2, 0.01), abs=0.01)
        # Those that begin together end one after the other, in equal steps, where all at once would be too many.
        steps = np.diff(first)
        assert np.allclose(steps, 0 if width <= 50 else last / width, atol=pace.each)
        assert sum(first) == pytest.approx(len(first) * (last if width <= 50 else last / 2), rel=0.01)


@pytest.mark.parametrize("n", [31, 50, 60, 61, 100])
@pytest.mark.parametrize("keep", [None, "draws"])
def test_a_batched_run_grows_from_any_number(tmp_path: Path, n: int, keep: Any) -> None:
    """A store that ends in the middle of a batch goes on from there, to the same bits as a run in one go."""

    def asked() -> rt.Study:
        plane = rt.Gaussian([0.0, 0.0], np.eye(2))
        return rt.Study(plane, lambda t, rng: t + rng.normal(size=t.shape), _batch_of_draws, batch=20)

    path = tmp_path / "run.db"
    rt.run(asked(), n=30, store=path, keep=keep)
    assert_identical(rt.run(asked(), n=n, store=path, keep=keep), rt.run(asked(), n=n))
    if keep:
        with Store.read(path) as opened:
            assert opened.draws(0, n)["theta"].shape == (n, 2)
            assert np.isfinite(opened.draws(0, n)["draws"]).all()


def _batch_of_draws(mu0: Any, y: Any, rng: np.random.Generator) -> rt.Draws:
    return rt.Draws(y / 2 + rng.normal(size=(9, *y.shape)))


def _fails_if_told(theta: Any, rng: np.random.Generator) -> Any:
    if os.environ.get("RINGTRUE_TEST_FAILS") == str(theta[0]):
        raise ValueError("no")
    return theta + rng.normal(size=theta.shape)


def test_a_failing_batch_that_was_cut_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the rest of a cut batch fails, what was there before stays, and the failures are those of the rest."""

    def asked() -> rt.Study:
        return rt.Study(rt.Normal(0, 1), _fails_if_told, lambda mu0, y: rt.Normal(y / 2, 0.7), batch=20)

    path = tmp_path / "run.db"
    rt.run(asked(), n=30, store=path)
    monkeypatch.setenv("RINGTRUE_TEST_FAILS", str(rt.replay(asked(), 20)[0]))
    with pytest.raises(rt.errors.ReplicateFailed):
        rt.run(asked(), n=40, store=path)
    grown = rt.run(asked(), n=40, store=path, on_failure="record", failures_allowed=1)
    assert [failure.replicate for failure in grown.failures] == list(range(30, 40))


def weary(mu0: Any, y: Any) -> Any:
    """Fail for a quarter of all data."""
    if y > 1:
        raise RuntimeError("weary")
    return bayes(mu0, y)


def several(mu0: Any, y: Any) -> Any:
    """Return posteriors of a batch."""
    return rt.Normal(y / 2, np.full(len(y), np.sqrt(0.5)))


def batched() -> rt.Study:
    """Return a study of batches of 8."""
    return rt.Study(BELIEF, lambda theta, rng: theta + rng.normal(size=len(theta)), several, batch=8)


@pytest.mark.parametrize("make", [study, vectors, batched, lambda: study(weary)])
def test_going_on_gives_the_replicates_of_one_run(make: Any) -> None:
    """Parts put together are the run of all of them, whole batches or not, lost replicates included."""
    parts = [go_on(make(), first, count, on_failure="record") for first, count in ((0, 20), (20, 7), (27, 33))]
    whole = rt.run(make(), n=N, on_failure="record")
    assert [part.first for part in parts] == [0, 20, 27]
    assert_identical(join(parts, reference=parts[-1].reference), whole)


def test_going_on_refuses_no_replicates() -> None:
    """At least one is needed."""
    with pytest.raises(rt.errors.InvalidStudy, match="count must be a whole number of at least 1"):
        go_on(study(), 10, 0)
