"""The front door: public names, what documents say of them, and what an import costs.

Who may import whom is stated in ``pyproject.toml``.
"""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import ringtrue as rt
from ringtrue import cli
from ringtrue.statistics.uniformity import TESTS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ringtrue"
MODULES = ["planning", "plots", "procedures", "store", "testing", "twosample", "uniformity"]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]


def test_the_front_door_is_narrow() -> None:
    """About fifty names: what most people need, and the modules in which the others are."""
    assert 35 <= len(rt.__all__) <= 55
    modules = [name for name in rt.__all__ if isinstance(getattr(rt, name), ModuleType)]
    assert modules == ["errors", "planning", "plots", "procedures", "store", "testing", "twosample", "uniformity"]


def test_the_export_list_is_sorted_and_what_is_imported() -> None:
    """``__all__`` is sorted, without repeats, and what ``__init__`` imports for type checkers, from the same places."""
    tree = ast.parse((SOURCE / "__init__.py").read_text("utf-8"))
    relative = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    places = {alias.name: f".{node.module}" for node in relative for alias in node.names if node.module}
    modules = {alias.name for node in relative for alias in node.names if not node.module}
    assert rt.__all__ == sorted({*places, *modules})
    assert places == rt._PLACES


def test_names_are_imported_when_they_are_asked_for() -> None:
    """The package itself needs neither NumPy nor SciPy, knows all its names, and refuses others as modules do."""
    code = "import sys, ringtrue; print('numpy' in sys.modules, set(ringtrue.__all__) <= set(dir(ringtrue)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="module 'ringtrue' has no attribute 'nothing'"):
        _ = rt.nothing


def test_help_needs_no_scipy() -> None:
    """``ringtrue --help`` answers without SciPy, which takes most of the time of an import; a command needs it."""
    call = "from ringtrue.cli import cli; cli.main({}, standalone_mode=False)"
    code = f"import sys; {call}; print('scipy' in sys.modules)"
    for arguments, needed in ((["--help"], "False"), (["plan", "--spread", "1.25"], "True")):
        script = [sys.executable, "-c", code.format(arguments)]
        done = subprocess.run(script, capture_output=True, text=True, check=True)
        assert done.stdout.split()[-1] == needed


def test_the_command_line_offers_every_test() -> None:
    """Tests that the command line names without importing them are those that there are."""
    assert list(cli.TESTS) == sorted(TESTS)


@pytest.mark.parametrize("module", ["ringtrue", *(f"ringtrue.{name}" for name in MODULES)])
def test_exported_names_exist_and_are_documented(module: str) -> None:
    """Every exported class and function has a docstring whose first line is a sentence."""
    owner = import_module(module)
    for name in owner.__all__:
        value = getattr(owner, name)
        if callable(value) or isinstance(value, ModuleType):  # constants are documented by a comment
            first = (value.__doc__ or "").strip().split("\n")[0]
            assert first.endswith((".", "?")), f"{module}.{name}: {first!r}"


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_documents_use_public_names_only(file: Path) -> None:
    """Every ``rt.name``, and every ``rt.module.name``, in the README, the docs and the examples is exported."""
    text = file.read_text("utf-8")
    assert set(re.findall(r"\brt\.([A-Za-z_]\w*)", text)) <= set(rt.__all__)
    for module, name in re.findall(rf"\brt\.({'|'.join(MODULES)})\.([A-Za-z_]\w*)", text):
        assert name in getattr(rt, module).__all__
    assert all(hasattr(rt.errors, name) for name in re.findall(r"\brt\.errors\.([A-Za-z_]\w*)", text))


def test_the_documented_verbs_and_nouns_are_exported() -> None:
    """What the design and the README promise by name is there."""
    text = "".join(file.read_text("utf-8") for file in DOCUMENTS if file.suffix == ".md")
    words = set(re.findall(r"`([A-Za-z_]+)[`(]", text))
    promised = {"Study", "run", "Replicates", "judge", "Result", "check", "check_draws", "Normal", "Draws", "Mixture"}
    assert promised <= words & set(rt.__all__)


def test_error_messages_are_those_of_the_tree() -> None:
    """Every error is a RingtrueError, and drawn in the docstring of its module."""
    errors = import_module("ringtrue.errors")
    classes = [name for name, value in vars(errors).items() if isinstance(value, type)]
    assert all(issubclass(getattr(errors, name), rt.errors.RingtrueError) for name in classes)
    assert all(name in (errors.__doc__ or "") for name in classes)


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


#: Words that a scientist would not use of a check.
MANNERED = re.compile(r"\b(?:mend\w*|strikes?|struck|heard|whoever|rings? true|innocent|convict\w*)\b", re.IGNORECASE)


def _messages(file: Path) -> list[str]:
    """Return the texts in a module that are not docstrings: what a user may read."""
    tree = ast.parse(file.read_text("utf-8"))
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docs = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [str(node.value) for node in texts if id(node) not in docs]


def test_prose_is_plain() -> None:
    """Neither documents nor messages have words that are there for their sound."""
    pages = {file.name: MANNERED.findall(file.read_text("utf-8")) for file in DOCUMENTS if file.suffix == ".md"}
    messages = {str(file): MANNERED.findall(" ".join(_messages(file))) for file in SOURCE.rglob("*.py")}
    assert {name: found for name, found in (pages | messages).items() if found} == {}
    assert MANNERED.findall("mend the failures, whoever was heard") == ["mend", "whoever", "heard"]
