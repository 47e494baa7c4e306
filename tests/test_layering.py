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
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]


def test_the_export_list_is_sorted_and_what_is_imported() -> None:
    """``__all__`` is sorted, without repeats, and equals what ``__init__`` imports by a public name."""
    tree = ast.parse((SOURCE / "__init__.py").read_text("utf-8"))
    names = [
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    assert rt.__all__ == sorted(set(names))


@pytest.mark.parametrize("module", ["ringtrue", "ringtrue.procedures", "ringtrue.testing"])
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
    assert all(issubclass(getattr(errors, name), rt.errors.RingtrueError) for name in classes)
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
