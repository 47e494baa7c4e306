"""What is published: files that build, hold everything, install and say which version they are."""

import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import ringtrue as rt

ROOT = Path(__file__).parents[1]
TOOLS = ("build", "hatchling", "hatch_fancy_pypi_readme", "twine")
#: What the schema of CFF 1.2.0 requires of a file, and of a reference.
REQUIRED = {"authors", "cff-version", "message", "title"}
OF_REFERENCE = {"authors", "title", "type"}


def _run(*command: object, **settings: Any) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, **settings)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == 0, out + err
    return str(out)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist, and with the wheel that is made of the sdist."""
    for name in TOOLS:
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("dist")
    # Without isolation: everything that builds is there, and no network is needed.
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


def _wheel(folder: Path) -> Path:
    (found,) = folder.glob("*.whl")
    return found


def _metadata(folder: Path) -> email.message.Message:
    with zipfile.ZipFile(_wheel(folder)) as wheel:
        name = next(one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(wheel.read(name))


def _data() -> set[str]:
    """Return every file of the package that is no Python, by its name in a wheel."""
    files = [file for file in (ROOT / "src" / "ringtrue").rglob("*") if file.is_file()]
    return {file.relative_to(ROOT / "src").as_posix() for file in files if file.suffix not in (".py", ".pyc")}


@pytest.mark.process
def test_files_are_what_an_index_takes(built: Path) -> None:
    """One sdist and one wheel of this version, which twine finds nothing wrong with, the long description included."""
    assert {file.name for file in built.iterdir()} == {
        f"ringtrue-{rt.__version__}.tar.gz",
        f"ringtrue-{rt.__version__}-py3-none-any.whl",
    }
    said = _run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir())
    assert said.count("PASSED") == 2


@pytest.mark.process
def test_the_wheel_holds_everything_and_nothing_else(built: Path) -> None:
    """Pages, styles, schema, tables, the mark of types and the pytest plugin; no tests and no caches."""
    with zipfile.ZipFile(_wheel(built)) as wheel:
        names = set(wheel.namelist())
    assert {"ringtrue/py.typed", "ringtrue/report/page.html", "ringtrue/paper/index.html"} <= _data() <= names
    assert "_ringtrue_pytest.py" in names
    rest = {name for name in names if not name.startswith("ringtrue/") and ".dist-info/" not in name}
    assert rest == {"_ringtrue_pytest.py"}
    assert not [name for name in names if "__pycache__" in name]
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "tests/test_release.py"} <= held


@pytest.mark.process
def test_the_long_description_stands_alone(built: Path) -> None:
    """It is the README without pictures and links to files that an index does not have; words stay."""
    about = _metadata(built)
    assert about["Description-Content-Type"] == "text/markdown"
    assert about["Version"] == rt.__version__
    text = about.get_payload()
    assert isinstance(text, str)
    here = re.compile(r"\]\((?!https?:|#)|<(?:img|a)\s[^>]*(?:src|href)=\"(?!https?:|#)")
    assert not here.search(text)
    readme = (ROOT / "README.md").read_text("utf-8")
    assert here.search(readme)  # the broken twin: there is something to leave out
    assert readme.splitlines()[0] in text
    assert text.count("```") == readme.count("```")


@pytest.mark.process
def test_the_wheel_installs_and_runs(built: Path, tmp_path: Path) -> None:
    """In a fresh environment that sees our libraries and not our sources: version, data, plugin, a report."""
    env = tmp_path / "env"
    _run(sys.executable, "-m", "venv", "--without-pip", env)
    bin_ = env / ("Scripts" if os.name == "nt" else "bin")
    python = bin_ / "python"
    install = ("install", "--quiet", "--no-deps", "--no-index", _wheel(built))
    _run(sys.executable, "-m", "pip", "--python", python, *install)
    about = {"base": str(env), "platbase": str(env)}
    (Path(sysconfig.get_path("purelib", vars=about)) / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    assert rt.__version__ in _run(bin_ / "ringtrue", "--version", env=clean, cwd=tmp_path)
    code = """
import sys
from importlib import metadata, resources
import ringtrue as rt
assert rt.__file__.startswith(sys.prefix), rt.__file__
assert (resources.files("ringtrue") / "py.typed").is_file()
(plugin,) = metadata.entry_points(group="pytest11", name="_ringtrue_pytest")
assert plugin.load().__file__.startswith(sys.prefix)
rt.check_draws([0.1, 0.7, 0.4], [[0.5, 1.5, -1.0]] * 3).report("page.html")
print(metadata.version("ringtrue"))
"""
    assert _run(python, "-c", code, env=clean, cwd=tmp_path).strip() == rt.__version__
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_the_citation_has_what_its_format_requires() -> None:
    """CITATION.cff is of version 1.2.0, about this version, and names the paper."""
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert set(cited) >= REQUIRED
    assert (cited["cff-version"], cited["version"], cited["type"]) == ("1.2.0", rt.__version__, "software")
    assert cited["authors"] == [{"name": "The ringtrue developers"}]
    (paper,) = cited["references"]
    assert set(paper) >= OF_REFERENCE
    assert [one["family-names"] for one in paper["authors"]] == ["Cockayne", "Graham", "Oates", "Sullivan", "Teymur"]
    assert (paper["volume"], paper["year"]) == (23, 2022)


@pytest.mark.process
def test_fragments_become_a_section(tmp_path: Path) -> None:
    """Every fragment is in the section of this version, once, and making it again changes nothing."""
    pytest.importorskip("towncrier")
    for name in ("changelog.d", "docs/changelog.py", "src/ringtrue/__init__.py", "pyproject.toml", "CHANGELOG.md"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT / name, target) if (ROOT / name).is_dir() else shutil.copy(ROOT / name, target)
    changes = tmp_path / "CHANGELOG.md"
    older = "\n## 0.0.1 (2020-01-01)\n\n- The first.\n"
    head = changes.read_text("utf-8").partition("<!-- versions -->\n")[:2]
    changes.write_text("".join([*head, older]), "utf-8")
    (tmp_path / "changelog.d" / "probe.added.md").write_text("A probe of two\nlines.\n")
    made = []
    for _ in range(2):
        _run(sys.executable, tmp_path / "docs" / "changelog.py")
        made.append(changes.read_text("utf-8"))
    assert made[0] == made[1]
    assert made[0].endswith(older)
    assert made[0].count(f"## {rt.__version__} (") == 1
    fragments = list((tmp_path / "changelog.d").glob("*.md"))
    section = made[0].partition(older)[0]
    assert len(re.findall(r"^- ", section, re.MULTILINE)) == len(fragments) > 1
    assert "- A probe of two\n  lines.\n" in section
