"""The architecture as docs/design.md states it: layers, public names, and what an import costs."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import ringtrue as rt

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ringtrue"
# The front doors, which stand below all layers.
DOORS = {"__init__", "__main__"}
# Modules that a layer may import from below, inside functions only.
LAZY = {"results": {"plots", "report", "export"}}
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]


def _table() -> list[str]:
    """Return the modules in the order of the table of layers."""
    section = (ROOT / "docs" / "design.md").read_text("utf-8").split("## Layers", 1)[1]
    rows = re.findall(r"^\| ([a-z, _]+) \|", section.split("\n## ", 1)[0], flags=re.MULTILINE)
    return [name for row in rows for name in row.split(", ") if row != "module"]


def _layer(file: Path) -> str:
    """Return the layer of a source file: its own name, or that of the subpackage it is in."""
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def _imports(file: Path) -> set[str]:
    """Return the layers that a file imports, wherever in the file."""
    package = ["ringtrue", *file.relative_to(SOURCE).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names} if base == "ringtrue" else {base}
    return {name.split(".")[1] for name in found if name.startswith("ringtrue.")}


FILES = sorted(SOURCE.rglob("*.py"))


def test_every_module_is_in_the_table_once() -> None:
    """The table of layers lists the modules that exist, and no others."""
    assert sorted(_table()) == sorted({_layer(file) for file in FILES} - DOORS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_modules_import_only_from_above(file: Path) -> None:
    """A module imports only modules above it in the table."""
    if file.parent == SOURCE and _layer(file) in DOORS:
        return
    order = _table()
    own = order.index(_layer(file))
    below = {name for name in _imports(file) - LAZY.get(_layer(file), set()) if order.index(name) > own}
    same = {name for name in _imports(file) if order.index(name) == own} if file.parent == SOURCE else set()
    assert not below | same


@pytest.mark.parametrize("layer", LAZY)
def test_lazy_doors_are_closed_until_opened(layer: str) -> None:
    """What a layer may import from below is imported inside functions, never with the module."""
    tree = ast.parse((SOURCE / f"{layer}.py").read_text("utf-8"))
    at_once = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not at_once & LAZY[layer]
    assert _imports(SOURCE / f"{layer}.py") >= LAZY[layer]


def test_the_reader_of_imports_sees_them() -> None:
    """The broken twin: the reader finds imports of all three forms."""
    assert {"errors", "judgement", "runs", "study"} <= _imports(SOURCE / "cli.py")
    assert "distributions" in _imports(SOURCE / "procedures" / "bayes.py")
    assert {"procedures", "testing"} <= _imports(SOURCE / "__init__.py")


def test_the_export_list_is_sorted_and_what_is_imported() -> None:
    """``__all__`` is sorted, without repeats, and equals what ``__init__`` imports by a public name."""
    tree = ast.parse((SOURCE / "__init__.py").read_text("utf-8"))
    names = [
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    assert rt.__all__ == sorted(set(names))


@pytest.mark.parametrize("module", ["ringtrue", "ringtrue.procedures", "ringtrue.testing", "ringtrue.planning"])
def test_exported_names_exist_and_are_documented(module: str) -> None:
    """Every exported class and function has a docstring whose first line is a sentence."""
    owner = import_module(module)
    for name in owner.__all__:
        value = getattr(owner, name)
        if not isinstance(value, (int, float)):  # constants are documented by a comment
            first = (value.__doc__ or "").strip().split("\n")[0]
            assert first.endswith((".", "?")), f"{module}.{name}: {first!r}"


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_documents_use_public_names_only(file: Path) -> None:
    """Every ``rt.name`` in the README, the docs and the examples is exported."""
    used = set(re.findall(r"\brt\.([A-Za-z_]\w*)", file.read_text("utf-8")))
    assert used <= set(rt.__all__)


def test_the_documented_verbs_and_nouns_are_exported() -> None:
    """What the design and the README promise by name is there."""
    text = "".join(file.read_text("utf-8") for file in DOCUMENTS if file.suffix == ".md")
    words = set(re.findall(r"`([A-Za-z_]+)[`(]", text))
    promised = {"Study", "run", "Replicates", "judge", "Result", "check", "check_draws", "Normal", "Draws", "Mixture"}
    assert promised <= words & set(rt.__all__)


def test_error_messages_are_those_of_the_tree() -> None:
    """Every error is a RingtrueError, drawn in the docstring of its module, and exported."""
    errors = import_module("ringtrue.errors")
    classes = [name for name, value in vars(errors).items() if isinstance(value, type)]
    assert all(issubclass(getattr(errors, name), rt.RingtrueError) for name in classes)
    assert all(name in (errors.__doc__ or "") and name in rt.__all__ for name in classes)


@pytest.mark.process
def test_importing_is_light() -> None:
    """``import ringtrue`` brings in neither plotting, scipy.stats nor any extra."""
    heavy = ["matplotlib", "scipy.stats", "pandas", "pymc", "torch", "numba", "jax", "xarray", "IPython", "pytest"]
    code = f"import ringtrue, sys; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.process
def test_the_heavy_modules_would_be_seen() -> None:
    """The broken twin: the same look finds scipy.stats once it is imported."""
    code = "import scipy.stats, ringtrue, sys; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
