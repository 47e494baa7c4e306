"""The page of a run that goes on: escaped, alone, and loaded again until the run has ended."""

import subprocess
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ringtrue.judgement.watching import Sight
from ringtrue.report.watched import write_watched

from ..browsers import browser
from ..builders import calibrated, failing, hostile
from ..test_terminal import MIDDLE, _sight
from .pages import parsed
from .test_browser import FLAGS, visit


def _text(seen: Sight | str, folder: Path, every: float | None = 2.0) -> str:
    return write_watched(seen, folder / "page.html", every=every).read_text("utf-8")


def test_a_page_says_what_is_known(tmp_path: Path) -> None:
    """Progress, failures, the verdict so far, sizes, and pictures of evidence and sizes over replicates."""
    seen = _sight(failing())
    tree = parsed(_text(seen, tmp_path))
    words = tree.words()
    assert seen.result is not None
    for part in ("100 of 400 replicates", "3 failed", "2 min 30 s to go", "so far", f"E = {seen.result.evalue:.3g}"):
        assert part in words
    assert [one.attributes["value"] for one in tree.all("progress")] == ["100"]
    assert len(list(tree.all("svg"))) == 3
    refresh = [one for one in tree.all("meta") if one.attributes.get("http-equiv") == "refresh"]
    assert [one.attributes["content"] for one in refresh] == ["2"]


def test_an_ended_run_is_not_loaded_again(tmp_path: Path) -> None:
    """Nothing more will come."""
    seen = _sight(calibrated(), replace(MIDDLE, done=400))
    text = _text(seen, tmp_path, every=None)
    assert 'http-equiv="refresh"' not in text
    assert "the run has ended" in text
    assert "so far" not in parsed(text).words()


def test_names_are_escaped(tmp_path: Path) -> None:
    """What comes from a file is text, also in the name of the file and in what failed."""
    evil = "<script>alert(1)</script>"
    seen = replace(_sight(hostile()), causes=((evil, 3),), path=Path("<b>.db"), unjudged=evil)
    for one in (seen, replace(seen, result=None, trails={}), evil):
        tree = parsed(_text(one, tmp_path))
        assert not list(tree.all("script", "b", "img"))
        assert "alert(1)" in tree.words()


@pytest.mark.site
def test_the_page_loads_in_silence(tmp_path: Path) -> None:
    """In a browser it logs nothing, asks for nothing, and its pictures are there; hostile names or not."""
    for k, result in enumerate((failing(), hostile())):
        (folder := tmp_path / str(k)).mkdir()
        write_watched(_sight(result), folder / "page.html", every=600)
        seen = visit(folder / "page.html", folder, "--dump-dom")
        assert seen.console == ()
        assert seen.requests == ()
        assert len(list(parsed(seen.dom).all("svg"))) == 3


@pytest.mark.site
def test_a_browser_loads_it_again_until_the_run_has_ended(tmp_path: Path) -> None:
    """Each page but the last is followed by the next, and the last stays."""
    ended = _sight(calibrated(), replace(MIDDLE, done=400))
    every: list[tuple[Sight | str, float | None]] = [
        ("there is no file yet", 1),
        (_sight(calibrated()), 1),
        (ended, None),
    ]
    pages = [_text(seen, tmp_path, pause).encode() for seen, pause in every]
    asked = list[str]()

    class Answer(BaseHTTPRequestHandler):
        """Answers with one page after the other, and then with the last."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            if self.path == "/page.html":
                self.wfile.write(pages[min(len(asked), len(pages) - 1)])
                asked.append(self.path)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/page.html"
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [browser(), *FLAGS, profile, "--virtual-time-budget=20000", "--dump-dom", address]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=600, check=True)
        server.shutdown()
    assert len(asked) == 3
    assert "the run has ended" in done.stdout
