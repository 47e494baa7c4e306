"""Faults that really happen: kill -9, Ctrl-C, a full disk, two at one file. Nothing that was written is lost."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.execution.store import Store

from .test_runs import assert_identical, bayes, model, study, vectors

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc"),
]

#: A run of replicates of two milliseconds that writes as often as it can.
SCRIPT = """
import sys, time
import ringtrue as rt
from ringtrue.execution.store import store

store._EVERY = 0.02
path, n, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) or None


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    time.sleep(0.002)
    return rt.Normal(y / 2, 0.5**0.5)


if __name__ == "__main__":
    rt.run(rt.Study(rt.Normal(0, 1), model, procedure), n=n, workers=workers, store=path)
    print("finished")
"""


def expected(n: int) -> rt.Replicates:
    """Return what SCRIPT must come to, without its waiting."""
    return rt.run(rt.Study(rt.Normal(0, 1), model, lambda mu0, y: rt.Normal(y / 2, 0.5**0.5)), n=n)


@contextmanager
def started(folder: Path, *arguments: Any, script: str = SCRIPT) -> Iterator[subprocess.Popen[str]]:
    """Start a script in a session of its own."""
    (folder / "script.py").write_text(script)
    command = [sys.executable, "script.py", *map(str, arguments)]
    with subprocess.Popen(
        command, cwd=folder, text=True, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def children(pid: int) -> set[int]:
    """Return the processes that a process has started, and theirs."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    found, new = set[int](), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def gone(pids: set[int], seconds: float = 120) -> bool:
    """Whether processes end in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(_alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Any, seconds: float = 300) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def written(path: Path) -> dict[int, Any]:
    """Return the rows that are in a store, by first replicate, with the time of their writing."""
    if not path.exists() or path.stat().st_size == 0:
        return {}
    db = sqlite3.connect(path, timeout=30)
    try:
        return {row[0]: row for row in db.execute("SELECT first, count, written, checksum FROM spans")}
    except sqlite3.OperationalError:  # killed before there was a table
        return {}
    finally:
        db.close()


def done(path: Path) -> int:
    """Return how many replicates are in a store."""
    return sum(row[1] for row in written(path).values())


# The coordinator.


def test_kill_the_coordinator_at_ten_moments_and_resume(tmp_path: Path) -> None:
    """What was written is never computed again, no worker survives, and the end is that of an undisturbed run."""
    path, n, rng = tmp_path / "run.db", 4000, np.random.default_rng(0)
    before: dict[int, Any] = {}
    for moment in rng.uniform(0, 0.5, 10):
        with started(tmp_path, path, n, 2) as process:
            there = len(before)
            # Half of the moments are while it starts, half after something new was written.
            if moment < 0.25:
                time.sleep(4 * moment)
            else:
                until(lambda there=there: len(written(path)) > there or process.poll() is not None)
                time.sleep(moment - 0.25)
            workers = children(process.pid)
            process.kill()
            process.wait()
            assert gone(workers), "workers survived their coordinator"
        after = written(path)
        assert before.items() <= after.items()
        before = after
    assert done(path) > 0
    with started(tmp_path, path, n, 2) as process:
        assert process.communicate(timeout=300)[0] == "finished\n"
    assert before.items() <= written(path).items()
    assert_identical(rt.store.load(path), expected(n))


def test_a_resumed_run_computes_what_is_missing_and_nothing_else(tmp_path: Path) -> None:
    """A resumed run calls the procedure for what the store does not have, and once for what it has, to compare."""
    log = tmp_path / "log"

    def logged(mu0: Any, y: Any) -> Any:
        with log.open("a") as file:
            file.write(f"{float(y)!r}\n")
        return bayes(mu0, y)

    asked = study(logged)
    data = [float(rt.replay(asked, i)[1]) for i in range(60)]
    rt.run(asked, n=60, store=tmp_path / "run.db", shard=(1, 3))
    log.unlink()
    rt.run(asked, n=60, store=tmp_path / "run.db")
    calls = [data.index(float(line)) for line in log.read_text().split()]
    assert sorted(calls) == [*range(20), 20, *range(40, 60)]
    log.unlink()
    rt.run(asked, n=60, store=tmp_path / "run.db", workers=2)
    assert [data.index(float(line)) for line in log.read_text().split()] == [0]


HANGING = """
import subprocess, sys
import ringtrue as rt


def procedure(mu0, y):
    subprocess.run(["sleep", "1000"])


rt.run(rt.Study(rt.Normal(0, 1), lambda t: t, procedure), n=10, workers=2)
"""


def test_no_process_survives_the_coordinator(tmp_path: Path) -> None:
    """Workers in the middle of a long replicate end with the coordinator, and with them what they started."""
    with started(tmp_path, script=HANGING) as process:
        until(lambda: any("sleep" in _command(pid) for pid in children(process.pid)))
        everybody = children(process.pid)
        process.kill()
        process.wait()
        assert gone(everybody)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_a_timeout_ends_what_the_replicate_started() -> None:
    """A program that a hanging replicate waits for is stopped with it."""

    fatal = float(rt.replay(study(), 11)[1])

    mine = f"998.{os.getpid()}"  # other runs of this test may be going on

    def waits(mu0: Any, y: Any) -> Any:
        if float(y) == fatal:
            subprocess.run(["sleep", mine], check=False)
        return rt.Normal(y / 2, 0.5**0.5)

    ran = rt.run(study(waits), n=12, workers=1, timeout=10.0, on_failure="record")
    assert [(one.replicate, one.error) for one in ran.failures] == [
        (11, "took longer than the timeout of 10 s and was stopped")
    ]
    everybody = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
    assert gone({pid for pid in everybody if f"sleep\x00{mine}" in _command(pid)})


# Workers.


def slow(until_there: Path, last: float) -> Any:
    """Return a procedure that takes a while, and for one dataset as long as there is no such file."""

    def procedure(mu0: Any, y: Any) -> Any:
        time.sleep(0.002)
        while float(y) == last and not until_there.exists():
            time.sleep(0.01)
        return rt.Normal(y / 2, np.sqrt(0.5))

    return procedure


@pytest.mark.parametrize("moment", [0.0, 0.15, 0.4])
def test_killing_a_worker_loses_nothing(tmp_path: Path, moment: float) -> None:
    """A worker killed by somebody else is replaced, and its replicates are computed all the same."""
    killed, n = tmp_path / "killed", 1200

    def kill() -> None:
        until(lambda: len(active_children()) >= 2)
        time.sleep(2 * moment)
        active_children()[0].kill()
        killed.touch()

    killer = threading.Thread(target=kill)
    killer.start()
    last = float(rt.replay(study(), n - 1)[1])
    ran = rt.run(study(slow(killed, last)), n=n, workers=2)
    killer.join()
    assert killed.exists()
    assert ran.failures == ()
    assert_identical(ran, rt.run(study(), n=n))


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_replicate_is_lost_when_its_process_dies_twice_alone(tmp_path: Path, times: int) -> None:
    """Dying in company and once alone is forgiven, since others kill too; dying alone twice is a failure."""
    n, culprit = 600, 300
    fatal = float(rt.replay(study(), culprit)[1])

    def sometimes(mu0: Any, y: Any) -> Any:
        if float(y) == fatal:
            deaths = len(list(tmp_path.iterdir()))
            if deaths < times:
                (tmp_path / str(deaths)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return bayes(mu0, y)

    ran = rt.run(study(sometimes), n=n, workers=2, on_failure="record")
    if times < 3:
        assert_identical(ran, rt.run(study(), n=n))
    else:
        assert [(one.replicate, one.error) for one in ran.failures] == [(culprit, "its process died (signal SIGKILL)")]
        np.testing.assert_array_equal(ran.u[ran.kept], rt.run(study(), n=n).u[ran.kept])


@pytest.mark.parametrize(
    ("leave", "error"),
    [(os._exit, "its process died (exit code 0)"), (sys.exit, "it called sys.exit(0)")],
    ids=["os._exit", "sys.exit"],
)
def test_leaving_with_success_is_a_failure_too(leave: Any, error: str) -> None:
    """A replicate that ends its process with exit code 0 is recorded; nobody waits for it or leaves with it."""

    fatal = float(rt.replay(study(), 15)[1])

    def leaving(mu0: Any, y: Any) -> Any:
        if float(y) == fatal:
            leave(0)
        return bayes(mu0, y)

    ran = rt.run(study(leaving), n=16, workers=2, on_failure="record")
    assert [(one.replicate, one.error) for one in ran.failures] == [(15, error)]


def test_a_worker_killed_while_it_answers_holds_up_nobody(tmp_path: Path) -> None:
    """Half an answer in a pipe is the loss of that task's time and nothing else."""
    once = tmp_path / "once"

    def halved(mu0: Any, y: Any) -> Any:
        from multiprocessing.connection import Connection

        whole: Any = Connection._send  # type: ignore[attr-defined]
        if whole.__name__ != "half":

            def half(self: Any, buffer: Any, *more: Any) -> None:
                if len(buffer) > 20_000 and not once.exists():
                    once.touch()
                    os.write(self.fileno(), bytes(buffer)[:10_000])
                    os.kill(os.getpid(), signal.SIGKILL)
                whole(self, buffer, *more)

            Connection._send = half  # type: ignore[attr-defined]
        return bayes(mu0, y)

    ran = rt.run(study(halved), n=3000, workers=2)
    assert once.exists()
    assert_identical(ran, rt.run(study(), n=3000))


class Blaming(Executor):
    """An executor in which one replicate ends all tasks that are there with it."""

    def __init__(self, culprit: int) -> None:
        self.culprit, self.tasks, self.pool = culprit, list[Any](), ThreadPoolExecutor(1)

    def submit(self, function: Any, /, *args: Any, **settings: Any) -> Future[Any]:
        """Take a task, to be done together with those that come at the same time."""
        future: Future[Any] = Future()
        self.tasks.append((future, function, args))
        self.pool.submit(self._all)
        return future

    def _holds_culprit(self, method: Any, first: int, count: int) -> bool:
        """Whether a task, by its last three arguments, computes the culprit."""
        return bool(method == "compute" and first <= self.culprit < first + count)

    def _all(self) -> None:
        time.sleep(0.01)
        tasks, self.tasks = self.tasks, []
        dies = any(self._holds_culprit(*args[-3:]) for _, _, args in tasks)
        for future, function, args in tasks:
            if future.set_running_or_notify_cancel():
                future.set_exception(OSError("killed")) if dies else future.set_result(function(*args))


@pytest.mark.parametrize("culprit", [3, 21, 39])
def test_nobody_is_blamed_for_the_death_of_another(culprit: int) -> None:
    """An executor may count a death against all tasks of a worker, as Dask does; only the guilty replicate is lost."""
    ran = rt.run(study(), n=40, executor=Blaming(culprit), workers=3, on_failure="record")
    assert [(one.replicate, one.error) for one in ran.failures] == [
        (culprit, "its task did not return (OSError: killed)")
    ]
    np.testing.assert_array_equal(ran.u[ran.kept], rt.run(study(), n=40).u[ran.kept])


def test_replicates_may_start_processes() -> None:
    """A procedure may use processes of its own inside a worker."""

    def parallel(mu0: Any, y: Any) -> Any:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return rt.Normal(pool.submit(float, y / 2).result(), np.sqrt(0.5))

    np.testing.assert_array_equal(rt.run(study(parallel), n=2, workers=1).u, rt.run(study(), n=2).u)


def test_workers_that_cannot_start_are_said() -> None:
    """Processes that end as they start are not replaced for ever."""

    class Fatal:
        def __reduce__(self) -> Any:
            return os._exit, (9,)

        def __call__(self, mu0: Any, y: Any) -> Any:
            return bayes(mu0, y)

    with pytest.raises(rt.errors.RingtrueError, match=r"ended as it started \(exit code 9\)"):
        rt.run(study(Fatal()), n=60, workers=2)


# Interrupts.


def test_an_interrupt_says_what_is_done_and_how_to_go_on(tmp_path: Path) -> None:
    """Ctrl-C, which reaches the whole process group, ends with one line that is true; the same call goes on."""
    path, n = tmp_path / "run.db", 2000
    file = tmp_path / "study.py"
    file.write_text(SCRIPT.partition("if __name__")[0].partition("path,")[0] + _FUNCTIONS)
    held = tmp_path / "held"  # while it is there, some replicates do not end, and so the run does not
    held.touch()
    command = [sys.executable, "-m", "ringtrue", "check", str(file), "--store", str(path), "--workers", "2"]
    with subprocess.Popen(
        [*command, "--n", str(n)], start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: done(path) > 0)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert said.splitlines()[-1] == (  # after a new line for the terminal's own ^C, and progress if that was slow
        f"ringtrue: interrupted; {done(path)} of {n} replicates are done and safe in {path}; "
        f"the same call goes on from there."
    )
    assert "Traceback" not in said
    held.unlink()
    before = written(path)
    again = subprocess.run([*command, "--n", str(n)], capture_output=True, text=True, check=False, timeout=300)
    assert again.returncode in (0, 1, 2), again.stderr
    assert before.items() <= written(path).items()
    assert_identical(rt.store.load(path), expected(n))


TWICE = """
import os, time
import ringtrue as rt
from ringtrue.execution import pool


def interrupted(self, *error):
    while not os.path.exists("seen"):
        time.sleep(0.01)
    raise KeyboardInterrupt


pool.Pool.__exit__ = interrupted
rt.run(rt.Study(rt.Normal(0, 1), lambda t: t, lambda mu0, y: rt.Normal(y, 1.0)), n=10, workers=2)
"""


def test_a_second_interrupt_leaves_nobody_waiting(tmp_path: Path) -> None:
    """An interrupt in the middle of clearing up ends the script, and the workers with it."""
    with started(tmp_path, script=TWICE) as process:
        until(lambda: len(children(process.pid)) >= 2)
        workers = children(process.pid)
        (tmp_path / "seen").touch()
        assert "KeyboardInterrupt" in process.communicate(timeout=300)[1]
        assert gone(workers)


_FUNCTIONS = """
from pathlib import Path

belief = rt.Normal(0, 1)
held = Path(__file__).with_name("held")


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    time.sleep(0.002)
    while y > 3.5 and held.exists():
        time.sleep(0.01)
    return rt.Normal(y / 2, 0.5**0.5)
"""


# Disks.


LIMIT = "resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, resource.RLIM_INFINITY))"
FULL = f"store._EVERY = 0.0\nimport resource\n{LIMIT}\n"


def test_a_limit_of_size_loses_nothing(tmp_path: Path) -> None:
    """A file that may not grow stops the run with a sentence; with room it goes on from what was written."""
    path, n = tmp_path / "run.db", 1500
    with started(tmp_path, path, n, 2, script=SCRIPT.replace("store._EVERY = 0.02\n", FULL)) as process:
        said = process.communicate(timeout=300)[1]
    assert process.returncode == 1
    assert "the disk may be full. What was written before is safe; make room and make the same call again" in said
    before = written(path)
    assert 0 < done(path) < n
    with started(tmp_path, path, n, 2) as process:
        assert process.communicate(timeout=300)[0] == "finished\n"
    assert before.items() <= written(path).items()
    assert_identical(rt.store.load(path), expected(n))


TMPFS = """
mount -t tmpfs -o size=160k none disk || exit 77
"$1" script.py disk/run.db 1500 2 2> said
echo $? > code
cp disk/run.db before.db
mount -o remount,size=64m none disk
"$1" script.py disk/run.db 1500 2 && cp disk/run.db after.db
"""


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """A real file system that is full stops the run with a sentence; with room it goes on from what was written."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "script.py").write_text(SCRIPT)
    # A name space of mounts of its own, which ends with the command.
    command = ["unshare", "--mount", "sh", "-c", TMPFS, "sh", sys.executable]
    try:
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if not (tmp_path / "code").exists():
        pytest.skip("file systems cannot be mounted here")
    assert (tmp_path / "code").read_text() == "1\n", ran.stderr
    assert "What was written before is safe; make room" in (tmp_path / "said").read_text()
    before = written(tmp_path / "before.db")
    assert before
    assert before.items() <= written(tmp_path / "after.db").items()
    assert_identical(rt.store.load(tmp_path / "after.db"), expected(1500))


# Several at one file.


def test_one_writer_and_any_number_of_readers(tmp_path: Path) -> None:
    """While a run goes on a second is refused at once, and show and judge answer from what is done."""
    path = tmp_path / "run.db"
    with started(tmp_path, path, 1_000_000, 2):
        until(lambda: done(path) > 200)
        with pytest.raises(rt.errors.StoreBusy, match="one writer at a time"):
            rt.run(study(), n=60, store=path)
        shown = _ringtrue("show", path)
        assert shown.returncode == 0
        assert "of 1000000 replicates, 0 failed" in shown.stdout
        assert "to go at that rate" in shown.stdout
        judged = _ringtrue("judge", path)
        assert judged.returncode in (0, 1, 2)
        assert "evidence that holds whenever one looks" in judged.stderr
    assert done(path) > 200


def _ringtrue(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ringtrue", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


# Going on.


@pytest.mark.parametrize("make", [study, vectors], ids=["laws", "draws"])
def test_more_replicates_keep_the_old_ones(tmp_path: Path, make: Any) -> None:
    """Asking for more computes the difference; the whole is what one run would have been."""
    path = tmp_path / "run.db"
    rt.run(make(), n=20, store=path)
    before = written(path)
    assert_identical(rt.run(make(), n=50, store=path), rt.run(make(), n=50))
    assert before.items() <= written(path).items()
    assert_identical(rt.run(make(), n=30, store=path), rt.run(make(), n=30))


@pytest.mark.parametrize("k", [1, 3, 7])
def test_shards_merge_into_one_run(tmp_path: Path, k: int) -> None:
    """Shares computed apart, in any order, are together what one run is."""
    paths = [tmp_path / f"{i}.db" for i in range(k)]
    for i in reversed(range(k)):
        rt.run(vectors(), n=40, store=paths[i], shard=(i, k))
    rt.store.merge(paths, tmp_path / "all.db")
    assert_identical(rt.store.load(tmp_path / "all.db"), rt.run(vectors(), n=40))


def test_a_batched_study_is_cut_between_batches(tmp_path: Path) -> None:
    """Shards of a batched study are whole batches, and merge into one run."""
    zoo = rt.procedures.NormalMean()
    asked = rt.Study(rt.Normal(0, 1), zoo.simulate, zoo, batch=16)
    for i in range(3):
        rt.run(asked, n=50, store=tmp_path / f"{i}.db", shard=(i, 3))
    rt.store.merge([tmp_path / f"{i}.db" for i in range(3)], tmp_path / "all.db")
    assert_identical(rt.store.load(tmp_path / "all.db"), rt.run(asked, n=50))


def test_kept_draws_answer_other_questions(tmp_path: Path) -> None:
    """Of outputs that are draws, ranks of another f from the store are those of a run that asked for it."""
    other = {"product": lambda t: t[0] * t[1], "largest": lambda t: max(t[0], t[1])}
    kept = vectors()
    rt.run(kept, n=40, store=tmp_path / "run.db", keep="draws")
    found = rt.store.recompute(tmp_path / "run.db", f=other)
    asked = rt.run(rt.Study(kept.belief, kept.model, kept.procedure, f=other), n=40)
    for name in ("rank", "draws", "u", "z"):
        np.testing.assert_array_equal(getattr(found, name), getattr(asked, name), err_msg=name)


def test_a_failure_that_is_raised_leaves_what_was_done(tmp_path: Path) -> None:
    """What came before the failure is in the store, and recording failures instead goes on from it."""
    path, n = tmp_path / "run.db", 60
    fatal = float(rt.replay(study(), 30)[1])

    def raising(mu0: Any, y: Any) -> Any:
        if float(y) == fatal:
            raise ArithmeticError("not this one")
        return bayes(mu0, y)

    with pytest.raises(rt.errors.ReplicateFailed, match=r"not this one.*replay\(study, 30\)"):
        rt.run(study(raising), n=n, store=path)
    before = written(path)
    with Store.read(path) as store:
        assert store.missing(0, n) == [(30, n)]
    ran = rt.run(study(raising), n=n, store=path, on_failure="record")
    assert [one.replicate for one in ran.failures] == [30]
    assert before.items() <= written(path).items()
    with pytest.warns(UserWarning, match="procedure was"):
        rt.run(study(bayes), n=n, store=path, on_failure="record")


# Progress.


SHOWN = """
import time
from ringtrue.execution import progress

progress._PATIENCE, progress._LINES = 0.0, (0.0, 0.0)
import ringtrue as rt


def procedure(mu0, y):
    time.sleep(0.005)
    if y > 2:
        raise ValueError("too large")
    return rt.Normal(y / 2, 0.5**0.5)


study = rt.Study(rt.Normal(0, 1), lambda t, rng: t + rng.normal(), procedure)
rt.run(study, n=100, on_failure="record")
"""


def test_progress_in_a_log_file_is_plain_lines(tmp_path: Path) -> None:
    """Without a terminal progress is whole lines of rate, time to go and failures, and no control characters."""
    with started(tmp_path, script=SHOWN) as process:
        said = process.communicate(timeout=300)[1]
    lines = said.splitlines()
    assert len(lines) > 1
    assert all(line.startswith("ringtrue: ") and " of 100 replicates, " in line for line in lines)
    assert any("to go" in line for line in lines)
    assert lines[-1].endswith("failed")
    assert all(character == "\n" or character.isprintable() for character in said)
