"""The documentation is a site that builds without a warning, asks nobody for anything, and works in a browser."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

import ringtrue as rt

from .browsers import browser

pytest.importorskip("mkdocs", reason="the site needs ringtrue[docs]")
pytestmark = pytest.mark.site

ROOT = Path(__file__).parents[1]
#: Which attribute of which tag makes a browser fetch something.
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class _Reader(HTMLParser):
    """Collects what a page fetches, where it leads, and the ids it has."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.fetched.append(given.get(FETCHED.get(tag, "")) or "")
        self.ids.add(given.get("id") or "")
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")


def _read(page: str) -> _Reader:
    reader = _Reader()
    reader.feed(page)
    return reader


def _elsewhere(page: str) -> list[str]:
    """Return the addresses on other hosts that a page fetches from."""
    return [url for url in _read(page).fetched if re.match(r"(https?:)?//", url)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as ``make docs`` does, with warnings as errors."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return out


def test_every_page_is_reached_by_the_navigation(site: Path) -> None:
    """Pages and navigation agree, so nothing that is written is hidden."""
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    written = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert named == written
    assert [page for page in named if not (site / page).with_suffix(".html").exists()] == []


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """Scripts, styles, fonts and pictures of every page are part of the site."""
    pages = list(site.rglob("*.html"))
    assert pages
    assert {page.name: found for page in pages if (found := _elsewhere(page.read_text("utf-8")))} == {}
    styles = "".join(style.read_text("utf-8") for style in site.rglob("*.css"))
    assert re.findall(r"url\(['\"]?(?:https?:)?//[^)]*\)|@import[^;]*//", styles) == []


def test_what_is_fetched_from_elsewhere_would_be_seen() -> None:
    """The broken twin: a script of another host is found, a link for the reader is not one."""
    page = (
        '<script src="https://cdn.example/a.js"></script><img src="//b.example/c.png"><a href="https://d.example">d</a>'
    )
    assert _elsewhere(page) == ["https://cdn.example/a.js", "//b.example/c.png"]


def _dangling(site: Path) -> list[str]:
    """Return the links between pages that lead to no page, or to no place on it."""
    pages = {page: _read(page.read_text("utf-8")) for page in site.rglob("*.html") if page.name != "404.html"}
    lost = []
    for page, read in pages.items():
        for link in read.links:
            file, place = urldefrag(link)
            target = (page.parent / unquote(file)).resolve() if file else page
            if re.match(r"[a-z]+:", link) or (target.suffix != ".html" and target.exists()):
                continue
            if target not in pages or (place and unquote(place) not in pages[target].ids):
                lost.append(f"{page.name}: {link}")
    return lost


def test_links_between_pages_lead_somewhere(site: Path) -> None:
    """Every link of every page, also one that a docstring makes, has a page and a place on it."""
    assert _dangling(site.resolve()) == []


def test_a_dangling_link_would_be_seen(tmp_path: Path) -> None:
    """The broken twin: a missing page and a missing place are found, the others are not."""
    page = '<h1 id="here"></h1><a href="#here"></a><a href="#gone"></a><a href="a.html"></a><a href="b.html#x"></a>'
    (tmp_path / "a.html").write_text(page + '<a href="https://example.invalid"></a>', "utf-8")
    assert _dangling(tmp_path.resolve()) == ["a.html: #gone", "a.html: b.html#x"]


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    """The reference has an entry for all that ``import ringtrue`` offers."""
    ids = set().union(*(_read(page.read_text("utf-8")).ids for page in (site / "api").glob("*.html")))
    assert [name for name in rt.__all__ if f"ringtrue.{name}" not in ids] == []


FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
LIGHT, DARK = (f"--blink-settings=preferredColorScheme={number}" for number in (1, 0))
#: What the browser must report: anything that is not part of the site.
POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; report-uri /elsewhere"
#: Opens pages one after the other in a frame as wide as a phone, and sends back what became of them.
PROBE = """<!doctype html><body><script>
const pause = ms => new Promise(done => setTimeout(done, ms));
async function look(page, patience) {
  const frame = document.createElement("iframe");
  frame.style = "width: 390px; height: 844px";
  const loaded = new Promise(done => frame.onload = done);
  frame.src = page;
  document.body.append(frame);
  await loaded;
  const inside = frame.contentDocument, results = () => inside.querySelectorAll(".md-search-result__item");
  const none = () => inside.querySelector(".md-search-result__meta")?.textContent.includes("No matching");
  for (let waited = 0; waited < patience && !results().length && !none(); waited += 50) await pause(50);
  const found = {
    heading: inside.querySelector("h1")?.textContent ?? "",
    width: inside.documentElement.scrollWidth,
    ground: frame.contentWindow.getComputedStyle(inside.body).backgroundColor,
    broken: [...inside.images].filter(one => !one.naturalWidth || !one.alt).map(one => one.src),
    results: [...results()].map(one => one.textContent),
  };
  frame.remove();
  return found;
}
async function visit(pages, patience) {
  const seen = {};
  for (const page of pages) seen[page] = await look(page, patience);
  await fetch("/seen", {method: "POST", body: JSON.stringify(seen)});
}
visit(%s, %d);
</script>"""


class _Desk(ThreadingHTTPServer):
    """Hands out a folder, and takes what the probe has seen and what the browser complains of."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Clerk, directory=str(folder)))
        self.seen: dict[str, Any] = {}
        self.elsewhere: list[str] = []
        self.done = threading.Event()


class _Clerk(SimpleHTTPRequestHandler):
    server: _Desk

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy-Report-Only", POLICY)
        super().end_headers()

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        if self.path == "/elsewhere":
            self.server.elsewhere.append(told["csp-report"]["blocked-uri"])
        else:
            self.server.seen = told
            self.server.done.set()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def _served(folder: Path) -> Iterator[_Desk]:
    with _Desk(folder) as desk:
        thread = threading.Thread(target=desk.serve_forever)
        thread.start()
        try:
            yield desk
        finally:
            desk.shutdown()
            thread.join()


def _visit(folder: Path, profile: Path, pages: list[str], *more: str, patience: int = 0) -> _Desk:
    """Open pages of a folder in a browser; patience in ms is for results of a search."""
    program = browser()
    (folder / "probe.html").write_text(PROBE % (json.dumps(pages), patience), "utf-8")
    with _served(folder) as desk:
        address = f"http://127.0.0.1:{desk.server_port}/probe.html"
        command = [program, *FLAGS, f"--user-data-dir={profile}", *more, address]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            told = desk.done.wait(timeout=600)
            running.terminate()
    (folder / "probe.html").unlink()
    assert told, "the browser did not come back"
    return desk


@pytest.mark.parametrize(("mode", "dark"), [(LIGHT, False), (DARK, True)], ids=["light", "dark"])
def test_pages_work_in_a_browser(site: Path, tmp_path: Path, mode: str, dark: bool) -> None:
    """Every page has a heading and its pictures, fits a phone, has the ground of its theme, and asks only its site."""
    pages = [page.relative_to(site).as_posix() for page in site.rglob("*.html") if page.name != "404.html"]
    desk = _visit(site, tmp_path, pages, mode)
    assert set(desk.seen) == set(pages)
    assert desk.elsewhere == []
    for page, found in desk.seen.items():
        assert found["heading"], page
        assert found["width"] <= 390, page
        assert found["broken"] == [], page
        assert (max(map(int, re.findall(r"\d+", found["ground"])[:3])) < 100) is dark, page


def test_search_finds_a_word(site: Path, tmp_path: Path) -> None:
    """A word that is on a page is found there, and one that is nowhere is not."""
    words = {"index.html?q=mahalanobis": True, "index.html?q=qwertzuiop": False}
    desk = _visit(site, tmp_path, list(words), patience=300_000)
    assert {page: any(found["results"]) for page, found in desk.seen.items()} == words
    assert desk.elsewhere == []


def test_a_bad_page_would_be_seen_in_a_browser(tmp_path: Path) -> None:
    """The broken twin: a page that is too wide, has a picture without words, and asks another host."""
    bad = '<p style="width: 900px">wide</p><img src="http://example.invalid/x.png" alt="there">'
    (tmp_path / "bad.html").write_text(f"<!doctype html><body>{bad}", "utf-8")
    desk = _visit(tmp_path, tmp_path / "profile", ["bad.html"])
    found = desk.seen["bad.html"]
    assert found["heading"] == ""
    assert found["width"] >= 900
    assert found["broken"] == ["http://example.invalid/x.png"]
    assert desk.elsewhere == ["http://example.invalid/x.png"]
