"""Where runs are started from: notebooks, threads, forks, without standard streams, stopped and continued."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ringtrue as rt
from ringtrue.execution.store import Store

from .test_faults import children, started, until
from .test_runs import assert_identical, study, vectors

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc"),
]


# Threads.


def _checked(number: int) -> Any:
    make = (study, vectors)[number % 2]
    result = rt.check(make(), n=60)
    return json.dumps([result.to_dict(), str(result)])


def test_four_threads_have_the_answers_of_one(tmp_path: Path) -> None:
    """Studies checked at once, in threads, come to what they come to alone, to the last digit."""
    alone = [_checked(number) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_checked, [0, 1, 2, 3] * 2)) == alone * 2


def test_threads_may_have_workers_and_stores(tmp_path: Path) -> None:
    """Each thread has its own processes and its own file; one that wants the file of another is refused."""

    def ran(number: int) -> rt.Replicates:
        return rt.run(study(), n=40, workers=2, store=tmp_path / f"{number}.db")

    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(ran, range(3)):
            assert_identical(found, rt.run(study(), n=40))


def test_threads_may_write_reports(tmp_path: Path) -> None:
    """Pages written at once, in threads, are those that one thread writes."""
    import matplotlib as mpl

    with mpl.rc_context({"backend": "agg"}):
        result = rt.check(study(), n=60)
        with ThreadPoolExecutor(3) as pool:
            pages = list(pool.map(lambda k: result.report(tmp_path / f"{k}.html"), range(3)))
        assert len({page.read_text().count("<svg") for page in pages}) == 1


# Streams that are closed.

SMALL = """
import sys, traceback
import ringtrue as rt
from ringtrue.execution import progress

progress._PATIENCE, progress._LINES = 0.0, (0.0, 0.0)  # shown from the first replicate on


def _written(*error):  # where standard error is closed nobody hears of it
    open("error", "w").write("".join(traceback.format_exception(*error)))


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    return rt.Normal(y / 2, 0.5**0.5)


if __name__ == "__main__":
    sys.excepthook = _written
    study = rt.Study(rt.Normal(0, 1), model, procedure)
    result = rt.check(study, n=40, workers=2, store="run.db")
    open("verdict", "w").write(result.verdict.name)
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing(tmp_path: Path, closed: str) -> None:
    """A run without standard input, output or error, as a daemon has it, ends as others do."""
    (tmp_path / "script.py").write_text(SMALL)
    command = f'exec "{sys.executable}" script.py {closed}'
    done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, timeout=600, capture_output=True, text=True)
    said = tmp_path / "error"
    assert done.returncode == 0, said.read_text() if said.exists() else done.stderr
    assert (tmp_path / "verdict").read_text() == rt.check(_small(), n=40).verdict.name


def test_the_command_line_without_streams(tmp_path: Path) -> None:
    """Of the command line the exit code is left, and it is the verdict's, also where progress cannot be shown."""
    (tmp_path / "study.py").write_text(
        "from script import *\nstudy, n = rt.Study(rt.Normal(0, 1), model, procedure), 40\n"
    )
    (tmp_path / "script.py").write_text(SMALL)
    command = [sys.executable, "-m", "ringtrue", "check", "study.py"]
    open_ = subprocess.run(command, cwd=tmp_path, timeout=600, capture_output=True)
    shell = f'exec "{sys.executable}" -m ringtrue check study.py <&- >&- 2>&-'
    closed = subprocess.run(["/bin/sh", "-c", shell], cwd=tmp_path, timeout=600)
    assert closed.returncode == open_.returncode
    assert closed.returncode in (0, 1, 2)


def _small() -> rt.Study:
    def model(theta: Any, rng: Any) -> Any:
        return theta + rng.normal()

    return rt.Study(rt.Normal(0, 1), model, lambda mu0, y: rt.Normal(y / 2, 0.5**0.5))


# Fork.

FORKS = """
import multiprocessing, os, sys
import ringtrue as rt


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    return rt.Normal(y / 2, 0.5**0.5)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    study = rt.Study(rt.Normal(0, 1), model, procedure)
    parent = rt.check(study, n=40, workers=2, store="parent.db")
    child = os.fork()
    if not child:
        inner = rt.check(study, n=40, workers=2, store="child.db")
        os._exit(0 if str(inner) == str(parent) else 1)
    _, status = os.waitpid(child, 0)
    print("same" if status == 0 else f"other, {status}")
    with multiprocessing.Pool(2) as pool:
        print(len(set(pool.map(len, [str(parent)] * 3))))
"""


def test_fork_and_forked_processes(tmp_path: Path) -> None:
    """With the start method fork, and in a process that was forked after a run, answers are the same."""
    with started(tmp_path, script=FORKS) as process:
        out, err = process.communicate(timeout=600)
    assert (process.returncode, out.split()) == (0, ["same", "1"]), err


def test_a_pool_of_the_users_may_check() -> None:
    """Processes of multiprocessing, forked or spawned, come to what this one comes to; they may not have workers."""
    expected = _checked(0)
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply(_checked, (0,)) == expected


# Stopped and continued.

STOPPED = """
import pathlib, sys, time
import ringtrue as rt


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    pathlib.Path("begun").touch()
    time.sleep(0.5)
    return rt.Normal(y / 2, 0.5**0.5)


if __name__ == "__main__":
    ran = rt.run(rt.Study(rt.Normal(0, 1), model, procedure), n=8, workers=2, timeout=4, store="run.db")
    print("finished", len(ran.failures))
"""


def test_time_in_which_everything_is_stopped_is_nobodys(tmp_path: Path) -> None:
    """A tree of processes that is stopped for longer than the timeout, and continued, has lost nothing."""
    with started(tmp_path, script=STOPPED) as process:
        until((tmp_path / "begun").exists)
        tree = [process.pid, *children(process.pid)]
        for pid in tree:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(6)  # longer than the timeout, whatever the speed of the machine
        for pid in reversed(tree):
            os.kill(pid, signal.SIGCONT)
        out, err = process.communicate(timeout=600)
    assert out.split() == ["finished", "0"], err
    assert_identical(Store.read(tmp_path / "run.db").replicates(), rt.run(_small(), n=8))


# Notebooks.

CELLS = [
    "import ringtrue as rt, time\nfrom ringtrue.execution import progress\nprogress._PATIENCE = 0.0",
    "def model(theta, rng):\n    return theta + rng.normal()",
    "def procedure(mu0, y):\n    time.sleep(0.01)\n    return rt.Normal(y / 2, 0.5**0.5)",
    "result = rt.check(rt.Normal(0, 1), model, procedure, n=100)\nresult",
    "again = rt.check(rt.Normal(0, 1), model, procedure, n=100, workers=2)\nprint(str(again) == str(result))",
]


def test_a_notebook_with_its_bar_and_workers(tmp_path: Path) -> None:
    """Functions of cells run alone and with workers, the notebook draws the bar, and a result is shown as HTML."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    nbclient.NotebookClient(
        book, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    *_, single, double = (cell.outputs for cell in book.cells)
    assert any("text/html" in one.get("data", {}) for one in single)
    shown = [one for one in single if one.output_type in ("display_data", "stream")]
    assert "replicates" in json.dumps(shown)
    assert "True" in json.dumps(double)
