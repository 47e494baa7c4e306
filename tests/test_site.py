"""The documentation is a site that builds without a warning and asks nobody for anything."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import ringtrue as rt

pytest.importorskip("mkdocs", reason="the site needs ringtrue[docs]")

ROOT = Path(__file__).parents[1]
#: Which attribute of which tag makes a browser fetch something.
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class _Reader(HTMLParser):
    """Collects what a page fetches, and the ids it has."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.fetched.append(given.get(FETCHED.get(tag, "")) or "")
        self.ids.add(given.get("id") or "")


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


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    """The reference has an entry for all that ``import ringtrue`` offers."""
    ids = set().union(*(_read(page.read_text("utf-8")).ids for page in (site / "api").glob("*.html")))
    assert [name for name in rt.__all__ if f"ringtrue.{name}" not in ids] == []
