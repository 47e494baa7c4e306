"""Everything a reader may copy runs: the snippets of the README and the docs, and the examples."""

import contextlib
import io
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import power
from ringtrue.statistics import uniformity

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Pages whose snippets need another library, which `make test-libraries` installs.
LIBRARIES = {
    "docs/bayesflow.md": "bayesflow",
    "docs/numpyro.md": "numpyro",
    "docs/pymc.md": "pymc",
    "docs/samplers.md": "blackjax",
    "docs/sbi.md": "sbi",
    "docs/stan.md": "stan",
}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def _blocks(page: Path) -> list[tuple[str, str]]:
    """Return the fenced blocks of a page as (language, text)."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [(language, text) for language, text in found]


def _snippets() -> list[tuple[str, str, str | None]]:
    """Return the python blocks by name, each with the text block that follows, which quotes what it prints."""
    found = []
    for page in PAGES:
        blocks = [*_blocks(page), ("", "")]
        for i, (language, text) in enumerate(blocks):
            if language == "python":
                quoted = blocks[i + 1][1] if blocks[i + 1][0] == "text" else None
                found.append((f"{page.relative_to(ROOT)}-{i}", text, quoted))
    return found


def _marked() -> list[Any]:
    """Return the snippets, each with the mark of those that it runs with."""
    marks = [
        pytest.mark.libraries if name.rpartition("-")[0] in LIBRARIES else pytest.mark.slow for name, *_ in _snippets()
    ]
    return [pytest.param(*one, id=one[0], marks=mark) for one, mark in zip(_snippets(), marks, strict=True)]


def _printed(code: str, folder: Path) -> str:
    """Run a snippet in a namespace and a folder of its own and return what it prints."""
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        exec(compile(code, "<snippet>", "exec"), {"__name__": "__snippet__"})
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    return out.getvalue()


@pytest.mark.parametrize(("name", "code", "quoted"), _marked())
def test_snippets_run(name: str, code: str, quoted: str | None, tmp_path: Path) -> None:
    """Every python block runs alone and prints something: what a text block that follows says it prints."""
    if (library := LIBRARIES.get(name.rpartition("-")[0])) is not None:
        pytest.importorskip(library)
    printed = _printed(code, tmp_path)
    assert printed.strip()
    assert quoted is None or printed == quoted


def test_the_first_snippet_prints_what_the_readme_quotes(tmp_path: Path) -> None:
    """The sentence quoted under the first snippet is the one that the snippet prints."""
    blocks = _blocks(PAGES[0])
    first = next(i for i, (language, _) in enumerate(blocks) if language == "python")
    assert _printed(blocks[first][1], tmp_path) == blocks[first + 1][1]


@pytest.mark.process
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_examples_run(file: Path) -> None:
    """Every example runs as a script, from another directory, without a warning; a slow one may say how far it is."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT / "tests", check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("ringtrue: ")] == []


def test_examples_are_numbered_without_gaps() -> None:
    """The examples have a reading order."""
    numbers = [int(file.name[:2]) for file in EXAMPLES if file.name[0].isdigit()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_readme_names_files_that_exist() -> None:
    """Every path in the README and the docs exists."""
    named = {
        path
        for page in PAGES
        for path in re.findall(r"\b((?:examples|docs|benchmarks|tests)/[\w./-]+\.(?:py|md))", page.read_text("utf-8"))
    }
    assert named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def _words(svg: str) -> list[str]:
    """Return what a picture says about itself: the test function, n, M and the band."""
    return sorted(re.findall(r">((?:n = |theta|true |a<|b<|sum)[^<]*)<", svg))


@pytest.mark.slow
def test_the_gallery_shows_what_its_snippets_draw() -> None:
    """Every picture of the gallery is in the docs, is saved by a snippet, and says the same of n and M."""
    spec = spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    pictures = module_from_spec(spec)
    spec.loader.exec_module(pictures)
    drawn = {name: text for code in pictures.snippets() for name, text in pictures.drawn(code).items()}
    page = (ROOT / "docs" / "gallery.md").read_text("utf-8")
    assert set(re.findall(r"\(images/([\w-]+\.svg)\)", page)) == set(drawn)
    for name, text in drawn.items():
        shown = (ROOT / "docs" / "images" / name).read_text("utf-8")
        assert _words(shown) == _words(text)
        assert any("n = " in words for words in _words(shown))


def _power_table() -> dict[tuple[str, str], float]:
    """Return the replicates for 80 % power by alternative and test; infinite where the page says "more than"."""
    text = (ROOT / "docs" / "which-test.md").read_text("utf-8")
    found = {}
    for table in re.findall(r"^\| what is wrong.*\n(?:\|.*\n)+", text, flags=re.MULTILINE):
        head, _, *rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in table.splitlines()]
        for name, *cells in rows:
            for test, cell in zip(head[1:], cells, strict=True):
                found[name, test] = np.inf if cell.startswith(">") else float(cell.replace(",", ""))
    return found


def test_the_power_table_is_that_of_its_benchmark() -> None:
    """It has every alternative and every test of the package."""
    names = {(name, test) for name in power.ALTERNATIVES for test in power.ORDER}
    assert set(_power_table()) == names
    assert set(power.ORDER) == set(uniformity.TESTS)


def _power_at(name: str, test: str, n: float) -> float:
    rng = np.random.default_rng(8)
    return power._power(test, power.ALTERNATIVES[name], round(n), repeats=2000, rng=rng)


#: The column that people read, and those of tests that take no time, up to this many replicates.
CHECKED = {"combination": 300, "neyman": 600, "cook": 600, "mean_z": 600}
QUICK = [(cell, n) for cell, n in _power_table().items() if n < CHECKED.get(cell[1], 0)]


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "n"), QUICK, ids=lambda value: "-".join(value) if isinstance(value, tuple) else "")
def test_the_power_table_is_true(cell: tuple[str, str], n: float) -> None:
    """At the number that the page quotes, the error is found in 80 % of samples, for the tests that are quick."""
    # 2000 samples: sd .009. A number off by its standard error of 2 % moves the power by .008, its rounding by up to
    # .007. So .08 is 6 sd of what is random: 2e-9 for each of about 30 cells.
    assert abs(_power_at(*cell, n) - 0.8) < 0.08


@pytest.mark.slow
@pytest.mark.parametrize("test", ["cook", "combination"])
def test_a_wrong_power_table_would_be_seen(test: str) -> None:
    """The broken twin: with two thirds of the replicates the power is not 80 %."""
    cell = ("variance 0.5 of the right one", test)
    assert abs(_power_at(*cell, 2 * _power_table()[cell] / 3) - 0.8) > 0.08
