"""The page in a real browser: nothing is logged, nothing is asked of the network, pictures are drawn, paper works."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ringtrue as rt

from .examples import calibrated, failing, hostile, over_confident, single
from .pages import parsed

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome is installed")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--enable-logging=stderr",
]
#: No name is looked up: a request that the page makes shows in the log, and fails.
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"
LIGHT, DARK = (f"--blink-settings=preferredColorScheme={number}" for number in (1, 0))
MANY = pytest.mark.parametrize(
    "example", [over_confident, calibrated, failing, hostile, single], ids=lambda example: example.__name__
)


@dataclass(frozen=True)
class Visit:
    """What a browser made of a page: its elements, what it logged, and what the page asked of the network."""

    dom: str
    console: tuple[str, ...]
    requests: tuple[str, ...]


def visit(file: Path, folder: Path, *more: str) -> Visit:
    """Load a page and return what came of it."""
    log = folder / "network.json"
    profile = f"--user-data-dir={folder / 'profile'}"
    assert BROWSER is not None
    command = [BROWSER, *FLAGS, OFFLINE, profile, f"--log-net-log={log}", *more, file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True)
    console = tuple(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return Visit(done.stdout, console, tuple(_requests(log)))


def _requests(log: Path) -> list[str]:
    """Return the addresses that pages asked for; what a browser asks for on its own account has no origin."""
    text = log.read_text("utf-8").rstrip()
    events: list[dict[str, Any]] = json.loads(text if text.endswith("}") else f"{text.rstrip(',')}]}}")["events"]
    made = [event["params"] for event in events if "initiator" in (event.get("params") or {})]
    return [one.get("url", "") for one in made if one["initiator"] != "not an origin"]


@cache
def _written(example: Callable[[], rt.Result], folder: Path) -> Path:
    return example().report(folder / f"{example.__name__}.html")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for pages that several tests look at."""
    return tmp_path_factory.mktemp("pages")


@MANY
def test_pages_load_in_silence(example: Callable[[], rt.Result], pages: Path, tmp_path: Path) -> None:
    """No message on the console, no request, no script; verdict and pictures are there."""
    file = _written(example, pages)
    seen = visit(file, tmp_path, "--dump-dom")
    assert seen.console == ()
    assert seen.requests == ()
    tree = parsed(seen.dom)
    assert example().verdict.value in next(tree.all("section")).words().lower()
    assert not list(tree.all("script", "img"))
    written = parsed(file.read_text("utf-8"))
    assert len(list(tree.all("svg"))) == len(list(written.all("svg"))) > 0


def test_a_page_that_speaks_and_asks_would_be_seen(tmp_path: Path) -> None:
    """The broken twin: an error on the console and a request for an image are both found."""
    file = tmp_path / "bad.html"
    file.write_text("<!doctype html><img src='http://example.invalid/x.png'><script>console.error('boo')</script>")
    seen = visit(file, tmp_path, "--dump-dom")
    assert any("boo" in line for line in seen.console)
    assert seen.requests == ("http://example.invalid/x.png",)


def test_injected_scripts_are_stopped(pages: Path, tmp_path: Path) -> None:
    """Even if something got past the escaping, the page's own policy would refuse to run or load it."""
    text = _written(single, pages).read_text("utf-8")
    file = tmp_path / "injected.html"
    attack = "<script>document.title='owned'</script><img src='http://example.invalid/x.png'>"
    file.write_text(text.replace("<footer>", f"{attack}<footer>"), "utf-8")
    seen = visit(file, tmp_path, "--dump-dom")
    assert "<title>owned" not in seen.dom
    assert seen.requests == ()
    assert seen.console  # the browser says that it refused


@pytest.mark.parametrize("size", [(390, 844), (1200, 900)], ids=["phone", "desk"])
@pytest.mark.parametrize("mode", [LIGHT, DARK], ids=["light", "dark"])
def test_the_page_is_as_wide_as_the_window(size: tuple[int, int], mode: str, pages: Path, tmp_path: Path) -> None:
    """On a phone and on a desk the picture of the page is full, and has the background of its theme."""
    image = pytest.importorskip("PIL.Image")
    shot = tmp_path / "shot.png"
    window = f"--window-size={size[0]},{size[1]}"
    visit(_written(failing, pages), tmp_path, mode, window, f"--screenshot={shot}")
    with image.open(shot) as picture:
        pixels = picture.convert("L")
        assert picture.size == size
        corner = pixels.getpixel((2, size[1] - 2))
        assert corner > 200 if mode == LIGHT else corner < 60
        # Nothing is written across the edge: the outermost columns are background from top to bottom.
        assert all(pixels.getpixel((size[0] - 2, y)) == corner for y in range(0, size[1], 7))


def test_nothing_but_tables_is_wider_than_a_phone(pages: Path, tmp_path: Path) -> None:
    """With hostile names the page still does not scroll sideways; only its tables do."""
    text = _written(hostile, pages).read_text("utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    probe = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    file = tmp_path / "probe.html"
    file.write_text(text.replace(policy, f"{policy}; script-src 'unsafe-inline'").replace("</body>", probe), "utf-8")
    seen = visit(file, tmp_path, "--window-size=500,844", "--dump-dom")
    wide, window = next(parsed(seen.dom).all("title")).words().split(" of ")
    assert int(wide) <= int(window)


def test_the_page_prints(pages: Path, tmp_path: Path) -> None:
    """Printing gives a PDF of a few pages."""
    paper = tmp_path / "paper.pdf"
    visit(_written(failing, pages), tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}")
    data = paper.read_bytes()
    assert data.startswith(b"%PDF")
    assert 1 <= data.count(b"/Type /Page\n") + data.count(b"/Type /Page ") <= 20
