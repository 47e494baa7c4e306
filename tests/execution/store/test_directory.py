"""Runs in a directory that workers write to themselves: the same bits, whoever dies, and whoever computes twice."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import ringtrue as rt
from ringtrue.errors import StoreError, StoreMismatch
from ringtrue.execution.jobs import Job
from ringtrue.execution.store import Store, directory
from ringtrue.execution.store.identity import fingerprint
from ringtrue.replicates.record import Failure, lost_record
from ringtrue.replicates.reducers import fields
from ringtrue.replicates.simulate import compute, header_of
from tests.builders import says
from tests.execution.test_runs import N, assert_identical, bayes, study, vectors, weary


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Return the name of a directory that is not there yet."""
    return f"{tmp_path / 'runs'}/"


def names(folder: str) -> list[str]:
    """Return the files of a directory."""
    return sorted(file.name for file in Path(folder).iterdir())


def one_file(path: Path, asked: rt.Study, n: int = N, **settings: Any) -> rt.Replicates:
    """Return what a run in one file has."""
    rt.run(asked, n=n, store=path, **settings)
    return rt.store.load(path)


@pytest.mark.process
@pytest.mark.parametrize("make", [study, vectors], ids=["laws", "draws"])
def test_workers_that_write_change_nothing(folder: str, tmp_path: Path, make: Any) -> None:
    """The replicates are those of a run in one file, and in the end there is one file."""
    ran = rt.run(make(), n=N, workers=2, store=folder)
    assert_identical(ran, one_file(tmp_path / "one.db", make()))
    assert_identical(rt.store.load(folder), ran)
    assert names(folder) == ["run.db"]


def test_a_run_alone_writes_to_the_file_of_the_run(folder: str) -> None:
    """Without workers there is nobody to help."""
    ran = rt.run(study(), n=N, store=folder)
    assert_identical(ran, rt.run(study(), n=N))
    assert names(folder) == ["run.db"]


class Waiting:
    """A procedure that is not copied where it is sent, so that threads share what it waits for."""

    known: dict[int, Any] = {}  # noqa: RUF012

    def __init__(self, call: Any) -> None:
        self.key = id(call)
        self.known[self.key] = call

    def __call__(self, mu0: Any, y: Any) -> Any:
        """Call what this process knows."""
        return self.known[self.key](mu0, y)


class Watched(ThreadPoolExecutor):
    """Threads that remember what tasks came to."""

    def __init__(self) -> None:
        super().__init__(3)
        self.answers = list[Any]()

    def submit(self, function: Any, /, *args: Any, **settings: Any) -> Any:
        """Pass on, and listen."""
        future = super().submit(function, *args, **settings)
        future.add_done_callback(lambda done: self.answers.append((args[2], done.result())))
        return future


def test_whoever_runs_is_told_counts_only(folder: str) -> None:
    """No numbers come back from those who write: which replicates, how long they took, and what was lost."""
    with Watched() as threads:
        ran = rt.run(study(weary), n=N, executor=threads, store=folder, on_failure="record")
    told = [answer[1] for method, answer in threads.answers if method == "write"]
    assert told
    assert not any(hasattr(one.record, "arrays") for one in told)
    checked = next(answer[1] for method, answer in threads.answers if method == "checked")
    assert sum(one.record.n for one in told) + checked.record.n == N
    assert_identical(ran, rt.run(study(weary), n=N, on_failure="record"))


@pytest.mark.process
def test_draws_are_kept_too(folder: str, tmp_path: Path) -> None:
    """What is kept beside replicates goes the same way."""
    rt.run(vectors(), n=N, workers=2, store=folder, keep="draws")
    one_file(tmp_path / "one.db", vectors(), keep="draws")
    with Store.read(folder) as found, Store.read(tmp_path / "one.db") as expected:
        for name, array in expected.draws(0, N).items():
            assert found.draws(0, N)[name].tobytes() == array.tobytes()


def helped(folder: str, asked: rt.Study, *spans: tuple[int, int], n: int = N, session: str = "other") -> None:
    """Leave what a helper wrote for a run that was killed."""
    mark = fingerprint(asked)
    meta = Store.meta_of(header=header_of(asked), fingerprint=mark, n=n)
    path = directory.file_of(Path(folder), None)
    with Store.opened(path, meta) as run:
        run.confirm()
    helpers = directory.Helpers(path, meta, session)
    for first, stop in spans:
        helpers.write(compute(asked, first, stop - first).record)
    # Another session closes the file, as the end of its process would.
    for key in list(directory._files):
        directory._files.pop(key).close()


class Logged:
    """The posterior, and a log of the data that it was asked for."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(self, mu0: Any, y: Any) -> Any:
        """Write that it was called."""
        with self.log.open("a") as file:
            file.write(f"{float(y)!r}\n")
        return bayes(mu0, y)


def test_only_what_is_missing_is_computed(folder: str, tmp_path: Path) -> None:
    """What helpers of a killed run wrote is taken in; it is read meanwhile, and not computed again."""
    logged = Logged(tmp_path / "log")
    helped(folder, study(logged), (0, 20), (30, 50))
    with Store.read(folder) as opened:
        assert opened.missing(0, N) == [(20, 30), (50, 60)]
        assert opened.prefix() == 20
        assert_identical(opened.replicates(0, 20), rt.run(study(), n=N).part(0, 20))
    logged.log.unlink()
    ran = rt.run(study(logged), n=N, store=folder)
    assert_identical(ran, rt.run(study(), n=N))
    assert len(logged.log.read_text().split()) == 20 + 1  # and one that is there
    assert names(folder) == ["run.db"]


def test_two_who_computed_the_same_are_fine(folder: str) -> None:
    """A task that was given to a second worker is in two files, with equal bits."""
    helped(folder, study(), (0, 25), session="one")
    helped(folder, study(), (10, 40), session="two")
    assert len(names(folder)) == 3
    with Store.read(folder) as opened:
        assert opened.prefix() == 40
    assert_identical(rt.run(study(), n=N, store=folder), rt.run(study(), n=N))


def test_small_rows_of_many_helpers_become_one(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicates that helpers computed in turn lie side by side in the file of the run, in as many rows as they need.

    Taken in file by file, which is the broken twin, no two of them are neighbours.
    """

    def rows(where: str) -> int:
        asked = study()
        for session, start in (("even", 0), ("odd", 2)):
            helped(where, asked, *((i, i + 2) for i in range(start, N - 1, 4)), session=session)
        assert_identical(rt.run(asked, n=N, store=where), rt.run(asked, n=N))
        assert names(where) == ["run.db"]
        with contextlib.closing(sqlite3.connect(Path(where) / "run.db")) as db:
            return int(db.execute("SELECT COUNT(*) FROM spans").fetchone()[0])

    few = rows(folder)
    monkeypatch.setattr(directory, "_OPEN", 1)
    assert few <= 4 < N // 4 <= rows(folder.replace("runs", "twin"))


def test_two_who_disagree_are_an_error(folder: str) -> None:
    """The same replicate with other numbers is refused, by readers and by whoever goes on."""
    helped(folder, study(), (0, 25), session="one")
    helped(folder, study(lambda mu0, y: rt.Normal(y / 2, 1.0)), (10, 40), session="two")
    for attempt in (Store.read, lambda name: rt.run(study(), n=N, store=name)):
        with pytest.raises(StoreMismatch, match="other results for replicates 10 to 24"):
            attempt(folder)


def test_a_replicate_that_one_has_lost_is_that_of_the_other(folder: str) -> None:
    """Memory that was short on one machine costs nothing where another had enough, in whatever order they are read."""
    asked = study()
    header = header_of(asked)
    for session in ("one", "three"):
        path = directory.file_of(Path(folder), None)
        meta = Store.meta_of(header=header, fingerprint=fingerprint(asked), n=N)
        with Store.opened(path, meta):
            pass
        failure = Failure(12, "procedure", "no memory", "")
        directory.Helpers(path, meta, session).write(lost_record(header, fields(), 12, 1, failure))
        directory._files.popitem()[1].close()
    helped(folder, asked, (0, 40), session="two")
    with Store.read(folder) as opened:
        assert opened.failures() == ()
    assert_identical(rt.run(asked, n=N, store=folder), rt.run(asked, n=N))


def test_a_loss_among_others_gives_way_alone(folder: str) -> None:
    """Of a row with several losses in the file of the run, the one that a helper has goes, and nothing else changes."""
    with ThreadPoolExecutor(2) as threads:
        before = rt.run(study(weary), n=N, executor=threads, store=folder, on_failure="record")
    numbers = [one.replicate for one in before.failures]
    assert len(numbers) > 3
    middle = numbers[1]
    helped(folder, study(), (middle, middle + 1))
    helped(folder, study(), (numbers[0] + 1, numbers[2]), session="wider")
    with Store.read(folder) as opened:
        assert [one.replicate for one in opened.failures()] == [k for k in numbers if k != middle]
    after = rt.run(study(weary), n=N, store=folder, on_failure="record")
    assert [one.replicate for one in after.failures] == [k for k in numbers if k != middle]
    plain = rt.run(study(), n=N)
    np.testing.assert_array_equal(after.u[after.kept], plain.u[after.kept])


def test_a_survey_says_what_all_files_together_have(folder: str) -> None:
    """Replicates that two files have count once, a loss that another file has not is none, and no array is read."""
    helped(folder, study(weary), (0, 30), (50, 60))
    helped(folder, study(), (20, 40), session="two")
    found = directory.survey(Path(folder))
    with Store.read(folder) as opened:
        standing, lost, prefix = opened.survey()
    assert [one.replicate for one in found.failures] == [one.replicate for one in lost]
    assert lost
    assert (found.prefix, found.standing.done, found.standing.n) == (prefix, standing.done, N) == (40, 50, N)
    assert (found.standing.failed, found.held) == (standing.failed, False)
    assert found.standing.since == 20  # those that came after the run was opened for the last time
    assert (found.standing.first_write or 0) < (standing.first_write or 0)  # that of a copy is the copying's


def test_an_executor_that_asks_twice_is_told_twice(folder: str) -> None:
    """A worker that has written replicates says so, and computes nothing again."""
    asked = study()
    meta = Store.meta_of(header=header_of(asked), fingerprint=fingerprint(asked), n=N)
    path = directory.file_of(Path(folder), None)
    with Store.opened(path, meta):
        job = Job(asked, N, helpers=directory.Helpers(path, meta, "twice"))
        assert job.write(0, 10).record.n == 10
        again = replace(job, study=study(lambda mu0, y: 1 / 0))
        assert again.write(4, 3).record == replace(job.write(4, 3).record)
        assert job.write(5, 10).record.stop == 15
    directory._files.popitem()[1].close()
    assert_identical(rt.run(asked, n=N, store=folder), rt.run(asked, n=N))


DYING = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size=1")
db.execute("BEGIN IMMEDIATE")
for i in range(100, 200):
    db.execute("INSERT INTO spans VALUES (?, 1, 0, 0.0, 0.0, '', x'00', x'00', zeroblob(100000))", (i,))
os._exit(9)
"""


@pytest.mark.process
def test_a_worker_that_dies_while_it_writes_loses_what_it_was_writing(folder: str) -> None:
    """Half of a transaction is in the file and its journal is left: readers and the run take it back."""
    helped(folder, study(), (0, 30))
    (file,) = Path(folder).glob("run.*.db")
    assert subprocess.run([sys.executable, "-c", DYING, str(file)]).returncode == 9
    assert file.with_name(f"{file.name}-journal").stat().st_size > 0
    with Store.read(folder) as opened:
        assert opened.missing(0, N) == [(30, 60)]
    assert_identical(rt.run(study(), n=N, store=folder), rt.run(study(), n=N))
    assert names(folder) == ["run.db"]


KILLED = """
import sys, time
from pathlib import Path

import ringtrue as rt

folder, go, log = sys.argv[1:]


def slow(mu0, y):
    with open(log, "a") as file:
        file.write("x")
    while not Path(go).exists() and Path(log).stat().st_size > 40:
        time.sleep(0.01)
    return rt.Normal(y / 2, 0.5**0.5)


def model(theta, rng):
    return theta + rng.normal()


rt.run(rt.Normal(0, 1), model, slow, n=200, store=folder, workers=2)
"""


@pytest.mark.process
@pytest.mark.parametrize("victim", ["client", "workers"])
def test_kills_lose_nothing_that_was_written(folder: str, tmp_path: Path, victim: str) -> None:
    """Kill -9 of whoever runs the study and its workers, or of these alone: the rest is computed, to the same bits.

    Workers wait while their client is killed, and would go on with their tasks if they were left.
    """
    (tmp_path / "script.py").write_text(KILLED)
    go, log = tmp_path / "go", tmp_path / "log"
    command = [sys.executable, "script.py", folder, str(go), str(log)]
    first = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 300
    while not (log.exists() and log.stat().st_size > 41) and time.monotonic() < end:
        time.sleep(0.02)
    if victim == "client":
        everybody = [*psutil.Process(first.pid).children(recursive=True), first]
        for process in reversed(everybody):
            with contextlib.suppress(psutil.NoSuchProcess):  # they may have seen that their client is gone
                process.kill()
        first.wait()
        psutil.wait_procs(everybody[:-1], timeout=300)
        with Store.read(folder) as opened:
            done = opened.done
        assert 0 < done < 200
    else:
        for file in Path(folder).glob("run.*.db"):
            os.kill(int(file.name.split("-")[-2]), signal.SIGKILL)
    go.touch()
    before = log.stat().st_size
    if victim == "client":
        subprocess.run(command, cwd=tmp_path, check=True, timeout=300)
        assert log.stat().st_size - before <= 200 - done + 3  # and the check
    else:
        assert first.wait(300) == 0
    plain = rt.run(rt.Normal(0, 1), lambda theta, rng: theta + rng.normal(), bayes, n=200)
    assert rt.store.load(folder).u.tobytes() == plain.u.tobytes()
    assert names(folder) == ["run.db"]


def test_until_sees_replicates_in_order(folder: str) -> None:
    """What decides on replicates gets them, also where a directory is written to."""
    wrong = study(lambda mu0, y: rt.Normal(y / 2, 0.5))
    alone = rt.check(wrong, until="decided", max_n=400, progress=False)
    with ThreadPoolExecutor(2) as threads:
        spread = rt.check(wrong, until="decided", max_n=400, executor=threads, store=folder, progress=False)
    assert (alone.replicates.n, alone.stopped) == (spread.replicates.n, spread.stopped)
    np.testing.assert_array_equal(alone.replicates.u, spread.replicates.u)


@pytest.mark.slow
def test_a_run_out_of_time_goes_on(folder: str) -> None:
    """A run that is stopped has what comes before the first that is missing; the rest is for the next call."""
    gate, last = threading.Event(), float(rt.replay(study(), 150)[1])

    def waits(mu0: Any, y: Any) -> Any:
        if float(y) == last:
            gate.wait(300)
        return bayes(mu0, y)

    job = rt.Study(rt.Normal(0, 1), study().model, Waiting(waits))
    with ThreadPoolExecutor(2) as threads:
        some = rt.run(job, n=400, executor=threads, store=folder, max_seconds=5.0)
        assert 0 < some.n <= 150
        gate.set()
        more = rt.run(job, n=400, executor=threads, store=folder)
    assert_identical(more, rt.run(study(), n=400))


def test_lost_replicates_are_tried_again(folder: str) -> None:
    """As in one file."""
    with ThreadPoolExecutor(2) as threads:
        lost = rt.run(study(weary), n=N, executor=threads, store=folder, on_failure="record").failures
        assert lost
        with pytest.warns(UserWarning, match="computed again"):
            mended = rt.run(study(), n=N, executor=threads, store=folder, retry_failures=True)
    assert_identical(mended, rt.run(study(), n=N))
    assert_identical(rt.store.load(folder), rt.run(study(), n=N))


def test_a_failure_stops_the_run_and_what_was_before_is_kept(folder: str) -> None:
    """The error is that of a run in one file."""
    with ThreadPoolExecutor(2) as threads, pytest.raises(rt.errors.ReplicateFailed, match=r"weary.*replay\(study"):
        rt.run(study(weary), n=400, executor=threads, store=folder)
    with Store.read(folder) as opened:
        assert opened.failures() == ()


def test_shares_write_to_one_directory(folder: str) -> None:
    """Jobs that know nothing of each other; whoever reads has the whole, and a run of the whole what is missing."""
    for i in (0, 2, 1):
        rt.run(study(), n=N, store=folder, shard=(i, 4))
    with Store.read(folder) as opened:
        assert opened.missing(0, N) == [(45, 60)]
    assert_identical(rt.run(study(), n=N, store=folder), rt.run(study(), n=N))
    rt.run(study(), n=N, store=folder, shard=(3, 4))
    assert_identical(rt.store.load(folder), rt.run(study(), n=N))
    assert rt.judge(rt.store.load(folder)).look.number == 1
    assert rt.judge(rt.store.load(folder)).look.number == 1
    assert rt.judge(rt.store.load(folder), test="ks").look.number == 2


def test_shares_of_another_study_are_refused(folder: str) -> None:
    """A procedure that was changed between two jobs is seen."""
    rt.run(study(), n=N, store=folder, shard=(0, 2))
    with pytest.raises(StoreMismatch):
        rt.run(study(seed=1), n=N, store=folder, shard=(1, 2))
    rt.run(study(weary), n=N, store=folder, shard=(1, 2), on_failure="record")
    with pytest.raises(StoreMismatch, match="procedure"):
        rt.store.load(folder)


def test_workers_that_do_not_see_the_directory_say_so(tmp_path: Path) -> None:
    """On a machine that does not share it, the file of the run is not there."""
    asked = study()
    meta = Store.meta_of(header=header_of(asked), fingerprint=fingerprint(asked), n=N)
    job = Job(asked, N, helpers=directory.Helpers(tmp_path / "elsewhere" / "run.db", meta, "blind"))
    with pytest.raises(StoreError) as caught:
        job.write(0, 3)
    says(str(caught.value), "not there", "share")


def test_replicates_that_are_not_there_in_the_end_are_missed(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that wrote to a directory of the same name on another machine are found out."""
    monkeypatch.setattr(directory, "_helpers", lambda path: [])
    with ThreadPoolExecutor(2) as threads, pytest.raises(StoreError, match=r"all of them share"):
        rt.run(study(), n=N, store=folder, executor=threads)


def test_directories_that_are_no_runs_are_refused(tmp_path: Path) -> None:
    """A directory without the file of a run, and one that is not there."""
    for name in (str(tmp_path), f"{tmp_path}/absent/"):
        with pytest.raises(StoreError, match="store= of a run"):
            rt.store.load(name)


def test_other_files_of_a_directory_are_left_alone(tmp_path: Path) -> None:
    """A run in a directory that is used for other things does not read them."""
    rt.run(study(seed=5), n=10, store=tmp_path / "mine.db")
    sqlite3.connect(tmp_path / "other.db").close()
    rt.run(study(), n=N, store=tmp_path)
    assert_identical(rt.store.load(tmp_path), rt.run(study(), n=N))
    assert rt.store.load(tmp_path / "mine.db").n == 10
