"""``ringtrue watch`` beside a run that goes on, is killed and goes on again: what it shows, and how it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest

import ringtrue as rt
from ringtrue.cli import main
from ringtrue.execution.store import Store

from .builders import BELIEF, noisy, posterior
from .execution.test_runs import assert_identical
from .test_cli import _exit

#: A study that after some replicates waits for a file, and that writes as soon as it can.
STUDY = """
import time
from pathlib import Path
import ringtrue as rt
from ringtrue.execution.store import store

store._EVERY = 0.0
here, belief, n = Path(__file__).parent, rt.Normal(0, 1), 60
asked = [0]


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    asked[0] += 1
    while asked[0] > 25 and not (here / "go").exists():
        time.sleep(0.01)
    return rt.Normal(y / 2, 0.5**0.5)
"""
#: Seconds after which something is wrong.
LIMIT = 300.0


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def _started(*arguments: object, out: IO[str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """Start the command, and kill it at the end if it still runs."""
    command = [sys.executable, "-m", "ringtrue", *map(str, arguments)]
    with subprocess.Popen(command, stdout=out, stderr=out, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a study."""
    (tmp_path / "study.py").write_text(STUDY)
    return tmp_path


def _part(path: Path, stop: int, n: int = 60) -> None:
    """Write the first replicates of a run."""
    ran = rt.run(BELIEF, noisy, posterior, n=n)
    with Store.create_or_open(path, header=ran.header, fingerprint={}, n=n) as store:
        store.add(ran.part(0, stop))


@pytest.mark.process
def test_watching_a_run_that_is_killed_and_goes_on(folder: Path) -> None:
    """A watcher waits for the file, shows it grow, outlives the writer's death, and ends with the verdict's code.

    The run is to the last bit the one that nobody watched.
    """
    store, log = folder / "run.db", folder / "log"
    write = ("check", folder / "study.py", "--store", store)
    with log.open("w") as out, _started("watch", store, "--every", "0.05", out=out) as watching:
        _until(lambda: "Waiting: there is no" in log.read_text())
        with _started(*write) as writer:
            _until(lambda: re.search(r"^[1-9]\d* of 60 replicates", log.read_text(), re.M) is not None)
            os.killpg(writer.pid, signal.SIGKILL)
        (folder / "go").touch()
        with _started(*write) as writer:
            assert writer.wait(LIMIT) == 2
        assert watching.wait(LIMIT) == 2
    text = log.read_text()
    assert "60 of 60 replicates\n" in text
    assert "complete" in text
    assert "INCONCLUSIVE" in text
    assert "Traceback" not in text
    assert_identical(rt.store.load(store), rt.run(BELIEF, noisy, posterior, n=60))


@pytest.mark.process
def test_watching_a_directory_that_many_write_to(folder: Path) -> None:
    """A directory whose workers are killed with their run, and that goes on, is watched as a file is."""
    store, log = folder / "runs", folder / "log"
    write = ("check", folder / "study.py", "--store", f"{store}/", "--workers", "2")
    with log.open("w") as out, _started("watch", store, "--every", "0.05", out=out) as watching:
        _until(lambda: "Waiting: there is no" in log.read_text())
        with _started(*write) as writer:
            _until(lambda: re.search(r"^[1-9]\d* of 60 replicates", log.read_text(), re.M) is not None)
            os.killpg(writer.pid, signal.SIGKILL)
        (folder / "go").touch()
        with _started(*write) as writer:
            assert writer.wait(LIMIT) == 2
        assert watching.wait(LIMIT) == 2
    text = log.read_text()
    assert "60 of 60 replicates\n" in text
    assert "INCONCLUSIVE" in text
    assert "Traceback" not in text
    assert_identical(rt.store.load(store), rt.run(BELIEF, noisy, posterior, n=60))
    with Store.read(store) as opened:
        assert [one["test"] for one in opened.looks] == ["over time"]


#: Writes every replicate by itself, and waits for a file after the first.
BUSY = """
import sys, time
from pathlib import Path
import ringtrue as rt
from ringtrue.execution.store import Store
from tests.builders import BELIEF, noisy, posterior

ran = rt.run(BELIEF, noisy, posterior, n=60)
with Store.create_or_open(sys.argv[1], header=ran.header, fingerprint={}, n=60) as store:
    for k in range(60):
        store.add(ran.part(k, k + 1))
        store.flush()
        while not Path(sys.argv[2]).exists():
            time.sleep(0.01)
"""


@pytest.mark.process
def test_two_watch_a_writer_that_never_rests(folder: Path) -> None:
    """Nobody is kept waiting for good, the file is what was written, and both have looked at it once, together."""
    store, go, root = folder / "run.db", folder / "go", Path(__file__).parents[1]
    logs = [folder / name for name in ("one", "other")]
    about = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    with ExitStack() as ends:
        outs = [ends.enter_context(log.open("w")) for log in logs]
        watchers = [ends.enter_context(_started("watch", store, "--every", "0.001", out=out)) for out in outs]
        command = [sys.executable, "-c", BUSY, str(store), str(go)]
        writer = ends.enter_context(subprocess.Popen(command, env=about, text=True))
        ends.callback(writer.kill)
        _until(lambda: all("E = " in log.read_text() for log in logs))
        go.touch()
        assert [one.wait(LIMIT) for one in (*watchers, writer)] == [2, 2, 0]
    assert_identical(rt.store.load(store), rt.run(BELIEF, noisy, posterior, n=60))
    with Store.read(store) as opened:
        assert [one["test"] for one in opened.looks] == ["over time"]


def test_show_says_of_a_directory_when_it_was_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What helpers left is told as they wrote it, and not as it is copied to be read."""
    store = folder / "runs"
    store.mkdir()
    with monkeypatch.context() as then:
        then.setattr(time, "time", lambda: 1e9)
        _part(store / "run.db", 30)
        _part(store / "run.other.db", 40)
    main(["show", str(store)])
    shown = capsys.readouterr().out
    assert "40 of 60 replicates" in shown
    assert f"last written {time.ctime(1e9)}" in shown


@pytest.mark.process
@pytest.mark.parametrize(
    ("sent", "code", "said"), [(signal.SIGINT, 0, ""), (signal.SIGTERM, 143, "ringtrue: terminated")]
)
def test_it_ends_in_peace(sent: signal.Signals, code: int, said: str, folder: Path) -> None:
    """Ctrl-C has exit code 0, and neither has a traceback; a page is left that is not loaded again."""
    store, log, page = folder / "run.db", folder / "log", folder / "page.html"
    _part(store, 30)
    with log.open("w") as out, _started("watch", store, "--every", "0.05", "--html", page, out=out) as watching:
        _until(page.exists)
        assert 'http-equiv="refresh"' in page.read_text("utf-8")
        watching.send_signal(sent)
        assert watching.wait(LIMIT) == code
    assert log.read_text().strip() == said
    assert 'http-equiv="refresh"' not in page.read_text("utf-8")
    assert "nobody watches any more" in page.read_text("utf-8")
    assert not list(folder.glob(".page*"))


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_is_redrawn_in_place(folder: Path) -> None:
    """It is cleared before each page, and no line is wider than it is."""
    import pty

    store = folder / "run.db"
    _part(store, 30)
    ours, theirs = pty.openpty()
    about = {**os.environ, "COLUMNS": "50", "LINES": "20", "TERM": "xterm"}
    command = [sys.executable, "-m", "ringtrue", "watch", str(store), "--every", "0.05"]
    text = ""
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=about) as watching:
        os.close(theirs)
        while text.count("\x1b[2J") < 3:
            text += os.read(ours, 65536).decode()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(LIMIT) == 0
    os.close(ours)
    _, first, *_ = re.split(r"(?:\x1b\[[0-9;]*[HJ])+", text)
    lines = first.replace("\r", "").splitlines()
    assert any("30 of 60 replicates" in line for line in lines)
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 50


@pytest.mark.slow
def test_once_is_a_page_and_the_code_of_judge(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that goes on, one that is not there, one without replicates and a damaged one, each in a sentence."""
    store = folder / "run.db"
    assert _exit("watch", str(store), "--once") == 3
    assert capsys.readouterr().err == f"ringtrue: there is no {store} yet.\n"
    _part(store, 30)
    assert _exit("watch", str(store), "--once") == 2
    assert "30 of 60 replicates" in capsys.readouterr().out
    assert _exit("judge", str(store)) == 2
    capsys.readouterr()
    store.write_bytes(store.read_bytes()[:20_000])
    assert _exit("watch", str(store), "--once") == 3
    both = capsys.readouterr()
    assert (both.out, both.err.count("\n")) == ("", 1)
    assert "damaged" in both.err
    empty = folder / "empty.db"
    ran = rt.run(BELIEF, noisy, posterior, n=1)
    Store.create_or_open(empty, header=ran.header, fingerprint={}, n=10).close()
    assert _exit("watch", str(empty), "--once") == 3
    both = capsys.readouterr()
    assert "0 of 10 replicates" in both.out
    assert "the first replicate is not done yet" in both.err


def test_progress_alone_ends_with_zero(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of what the run finds is shown, and nothing is remembered."""
    store = folder / "run.db"
    _part(store, 60)
    main(["watch", str(store), "--progress"])
    shown = capsys.readouterr().out
    assert "60 of 60 replicates\n" in shown
    assert not re.search(r"p-value|E =|spread|INCONCLUSIVE", shown)
    with Store.read(store) as opened:
        assert opened.looks == ()


@pytest.mark.slow
def test_a_page_is_not_written_over_unasked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is there, or a link, stays as it is without --force; with it the link is replaced, not followed."""
    store, page, other = folder / "run.db", folder / "page.html", folder / "other.html"
    _part(store, 60)
    other.write_text("mine")
    page.symlink_to(other)
    assert _exit("watch", str(store), "--html", str(page)) == 3
    assert "would be written over" in capsys.readouterr().err
    assert _exit("watch", str(store), "--html", str(folder / "page.pdf")) == 3
    assert _exit("watch", str(store), "--html", str(page), "--force") == 2
    assert capsys.readouterr().out.startswith("INCONCLUSIVE")
    assert other.read_text() == "mine"
    assert not page.is_symlink()
    assert not (folder / "page.json").exists()
    assert "the run has ended" in page.read_text("utf-8")


def test_trouble_is_on_the_page_too(folder: Path) -> None:
    """A page whose run cannot be read any more says so, and is not loaded again."""
    store, page = folder / "run.db", folder / "page.html"
    store.write_text("n,u\n" * 100)
    assert _exit("watch", str(store), "--html", str(page), "--every", "0.01") == 3
    text = page.read_text("utf-8")
    assert "is not a store of ringtrue" in text
    assert 'http-equiv="refresh"' not in text
