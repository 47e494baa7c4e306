"""The sources of what a user wrote: of functions and modules, without comments, docstrings and layout.

Files are read and parsed, never run. This module knows nothing of studies.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
import sysconfig
import types
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

#: Functions that import what a text names.
_IMPORTING = {"import_module", "__import__"}


def is_library(module: str) -> bool:
    """Whether a module is Python's, an installed package's or ours, by where it lies: a user's may have any name."""
    found = sys.modules.get(module) or sys.modules.get(module.partition(".")[0])
    if found is None or module == "__main__":
        return False
    file = getattr(found, "__file__", None)
    if isinstance(file, str):
        return not _is_users(file)
    # Without a file: part of the interpreter, or made by hand or in a notebook.
    return getattr(getattr(found, "__spec__", None), "origin", None) in ("built-in", "frozen")


@functools.cache
def _is_users(file: str) -> bool:
    path, known = Path(file), sysconfig.get_paths()
    places = (known["stdlib"], known["platstdlib"], Path(__file__).parents[2])
    installed = {"site-packages", "dist-packages"}.intersection(path.parts)
    return not installed and not any(path.is_relative_to(place) for place in places)


def function_node(function: types.FunctionType) -> ast.AST | None:
    """Return what a function was made from; None if that cannot be found, or told from others of its line."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    nodes = _functions(text).get((code.co_name, code.co_firstlineno, *arguments), [])
    return nodes[0] if len(nodes) == 1 else None


@functools.lru_cache(64)
def _functions(text: str) -> dict[tuple[Any, ...], list[ast.AST]]:
    """Return the functions of a source by name, by the line that they start on, decorators included, and arguments."""
    found: dict[tuple[Any, ...], list[ast.AST]] = {}
    for node in ast.walk(_tree(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            line = min(one.lineno for one in (node, *getattr(node, "decorator_list", ())))
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            key = (getattr(node, "name", "<lambda>"), line, *(one.arg for one in given))
            found.setdefault(key, []).append(node)
    return found


@functools.lru_cache(64)
def _tree(text: str) -> ast.Module:
    """Parse a source and drop its docstrings; what cannot be parsed is empty."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])
    for node in ast.walk(tree):
        match getattr(node, "body", None):
            case [ast.Expr(ast.Constant(str())), *rest] as body:
                body[:] = rest or [ast.Pass()]
    return tree


def names(code: types.CodeType) -> frozenset[str]:
    """Return the globals and attributes that a function names, functions inside it included."""
    return frozenset(code.co_names).union(*map(names, _nested(code)))


def words(code: types.CodeType) -> frozenset[str]:
    """Return the same with texts, which may name an attribute too."""
    texts = (part for part in code.co_consts if type(part) is str)
    return frozenset(code.co_names).union(texts, *map(words, _nested(code)))


def own_names(code: types.CodeType) -> frozenset[str]:
    """Return the arguments and variables of a function, and of functions inside it."""
    return frozenset(code.co_varnames + code.co_cellvars).union(*map(own_names, _nested(code)))


def _nested(code: types.CodeType) -> list[types.CodeType]:
    return [part for part in code.co_consts if isinstance(part, types.CodeType)]


def imported(node: ast.AST, package: str) -> Iterator[str]:
    """Return the names of the modules that may be imported anywhere in a source."""
    for part in ast.walk(node):
        match part:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module, names, level):
                with suppress(ImportError, ValueError):  # beyond the top of a package
                    base = resolve_name("." * (level or 0) + (module or ""), package)
                    yield from (base, *(f"{base}.{alias.name}" for alias in names))
            case ast.Call(ast.Attribute(_, how) | ast.Name(how), [ast.Constant(str(name)), *_]) if how in _IMPORTING:
                with suppress(ImportError, ValueError):
                    yield resolve_name(name, package)


def module_file(name: str) -> Path | None:
    """Return the file that a module of the user's would be imported from, without importing anything."""
    places: Any = None
    spec: Any = None
    for part in name.split("."):
        spec = PathFinder.find_spec(part, places) if spec is None or places else None
        if spec is None:
            return None
        places = spec.submodule_search_locations
    return Path(spec.origin) if spec.origin and spec.has_location and _is_users(spec.origin) else None


def source_file(space: dict[str, Any]) -> Path | None:
    """Return the file that a module's variables come from, if it is source code."""
    file = space.get("__file__")
    return Path(file) if isinstance(file, str) and file.endswith(".py") else None


def module_node(file: Path) -> ast.Module:
    """Return the source of a module."""
    with suppress(OSError, UnicodeDecodeError):
        return _tree(file.read_text("utf-8"))
    return ast.Module([], [])
