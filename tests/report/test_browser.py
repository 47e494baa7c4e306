"""The page in a real browser: nothing is logged, nothing is asked of the network, pictures are drawn, paper works."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ringtrue as rt

from ..browsers import browser
from ..builders import calibrated, failing, hostile, over_confident, single
from .pages import parsed

pytestmark = pytest.mark.site
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
    command = [browser(), *FLAGS, OFFLINE, profile, f"--log-net-log={log}", *more, file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=600, check=True)
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
    """A folder for pages that several tests look at; none is written if there is nothing to look with."""
    browser()
    return tmp_path_factory.mktemp("pages")


@MANY
def test_pages_load_in_silence(example: Callable[[], rt.Result], pages: Path, tmp_path: Path) -> None:
    """No message on the console, no request, no script; verdict and pictures are there."""
    file = _written(example, pages)
    seen = visit(file, tmp_path, "--dump-dom")
    assert seen.console == ()
    assert seen.requests == ()
    tree = parsed(seen.dom)
    assert example().verdict.words in next(tree.all("section")).words().lower()
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


#: Whether each table is wider than its window, and whether it says so.
_WIDE = """<script>
document.querySelectorAll("details").forEach((one) => { one.open = true; });
document.title = JSON.stringify([...document.querySelectorAll(".scroll")].map((one) => [
  one.scrollWidth > one.clientWidth, getComputedStyle(one, "::before").content]));
</script></body>"""


@pytest.mark.parametrize(("size", "hints"), [(500, True), (1280, False)], ids=["phone", "desk"])
def test_tables_that_scroll_say_so(size: int, hints: bool, pages: Path, tmp_path: Path) -> None:
    """On a phone every table that is wider than the window says that it scrolls; on a desk none is wider or says so."""
    file = _with_script(_written(over_confident, pages), tmp_path, _WIDE)
    seen = visit(file, tmp_path, f"--window-size={size},844", "--dump-dom")
    found = json.loads(next(parsed(seen.dom).all("title")).text)
    assert len(found) >= 3
    assert [wide for wide, _ in found] == ["scroll sideways" in words for _, words in found]
    assert any(wide for wide, _ in found) == hints


def _with_script(page: Path, folder: Path, script: str) -> Path:
    """Return a copy of a page that may run a script of ours."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    text = page.read_text("utf-8").replace(policy, f"{policy}; script-src 'unsafe-inline'")
    file = folder / "probe.html"
    file.write_text(text.replace("</body>", script), "utf-8")
    return file


#: What the browser tells assistive technology, and how what has the focus looks; put into the title as JSON.
PROBE = """<script>
const all = (what) => [...document.querySelectorAll(what)];
all("details").forEach((one) => { one.open = true; });
const named = (what) => all(what).map((one) => [one.computedRole, one.computedName]);
const focus = all("a, summary, [tabindex='0']").map((one) => {
  one.focus({focusVisible: true});
  const box = one.getBoundingClientRect();
  return [document.activeElement === one, parseFloat(getComputedStyle(one).outlineWidth), box.left, box.width];
});
document.title = JSON.stringify({
  landmarks: named("header, nav, main, footer, section"), tables: named("table"), pictures: named("figure svg"),
  regions: named(".scroll"), heads: named("h1, h2, h3"), focus: focus,
  scopes: all("th").slice(0, 60).map((one) => one.computedRole)});
</script></body>"""


def heard(file: Path, folder: Path) -> dict[str, Any]:
    """Return the roles and names that the browser computes, and what each element with the focus looks like."""
    text = file.read_text("utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    probed = folder / "probe.html"
    probed.write_text(text.replace(policy, f"{policy}; script-src 'unsafe-inline'").replace("</body>", PROBE), "utf-8")
    seen = visit(probed, folder, "--enable-blink-features=ComputedAccessibilityInfo", "--dump-dom")
    found: dict[str, Any] = json.loads(next(parsed(seen.dom).all("title")).text)
    return found


@MANY
def test_the_browser_tells_what_everything_is(example: Callable[[], rt.Result], pages: Path, tmp_path: Path) -> None:
    """By the browser's own computation every landmark, region, table, heading and picture has its role and a name."""
    found = heard(_written(example, pages), tmp_path)
    roles = [role for role, _ in found["landmarks"]]
    assert [roles.count(role) for role in ("banner", "navigation", "main", "contentinfo")] == [1, 1, 1, 1]
    assert all(name for role, name in found["landmarks"] if role == "region")
    for what, role in (("tables", "table"), ("pictures", "image"), ("regions", "region"), ("heads", "heading")):
        assert found[what]
        assert {one for one, _ in found[what]} <= {role, "img"}, what
        # The name of one test function is blank by intention.
        assert sum(not name for _, name in found[what]) <= (example.__name__ == "hostile" and what == "heads"), what
    assert {"columnheader", "rowheader"} == set(found["scopes"])


def test_what_has_the_focus_is_outlined_and_in_sight(pages: Path, tmp_path: Path) -> None:
    """Every link, fold and scrolling table takes the focus, with an outline of at least 2 px, inside the window."""
    focus = heard(_written(failing, pages), tmp_path)["focus"]
    assert len(focus) > 10
    for taken, outline, left, width in focus:
        assert taken
        assert outline >= 2
        assert left >= 0
        assert width > 0


def test_a_page_without_roles_would_be_heard(pages: Path, tmp_path: Path) -> None:
    """The broken twin: without labels, captions and outlines the same look finds what is missing."""
    text = _written(failing, pages).read_text("utf-8").replace("aria-labelledby", "data-x").replace("caption", "tbody")
    file = tmp_path / "mute.html"
    file.write_text(text.replace(":focus-visible { outline: 3px", ":focus-visible { outline: 0px"), "utf-8")
    found = heard(file, tmp_path)
    assert not any(name for _, name in found["tables"])
    assert not any(role == "region" for role, _ in found["regions"])
    assert any(outline < 2 for _, outline, _, _ in found["focus"])


def test_the_page_prints(pages: Path, tmp_path: Path) -> None:
    """Printing gives a PDF of a few pages."""
    paper = tmp_path / "paper.pdf"
    visit(_written(failing, pages), tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}")
    data = paper.read_bytes()
    assert data.startswith(b"%PDF")
    assert 1 <= data.count(b"/Type /Page\n") + data.count(b"/Type /Page ") <= 20
