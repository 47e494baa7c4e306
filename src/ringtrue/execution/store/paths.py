"""Which variables a function's source writes to, and through which attributes and keys: ``self.table["a"]``.

A local name stands for what it was assigned, if every assignment is such a path: ``m = memo; m[k] = 1`` writes to memo.
Sources are read, never run. This module knows nothing of objects.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

#: Methods that change what they are called on.
_GROWING = {"append", "appendleft", "add", "update", "setdefault", "extend", "extendleft", "insert", "move_to_end"}
_SHRINKING = {"pop", "popitem", "popleft", "clear", "remove", "discard", "sort", "reverse", "fill"}
#: Methods whose first argument is a key of what they are called on.
_KEYED = {"get", "setdefault", "pop", "__setitem__", "__getitem__", "__delitem__"}


@dataclass(frozen=True)
class Attribute:
    """A step from an object to what it has by a name."""

    name: str


@dataclass(frozen=True)
class Item:
    """A step from a container to what it has at a key; of one that loses the key, others may move up."""

    key: Any
    moves: bool = False


@dataclass(frozen=True)
class Each:
    """A step from a container to something in it, by a key that is computed."""


Step = Attribute | Item | Each
EACH = Each()
#: The root of paths that start from all global variables.
GLOBALS = "globals()"


@dataclass(frozen=True)
class Path:
    """A variable and the steps from it."""

    root: str
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> Path:
        """Return the path one step on; ``__dict__["a"]`` is the attribute a, and within a memo all is memo."""
        if self.steps[-1:] == (Attribute("__dict__"),) and isinstance(step, Item) and type(step.key) is str:
            return Path(self.root, (*self.steps[:-1], Attribute(step.key)))
        if self.steps[-1:] == (EACH,) and not isinstance(step, Attribute):
            return self
        return replace(self, steps=(*self.steps, step))


@functools.lru_cache(256)
def written(node: ast.AST) -> frozenset[Path]:
    """Return what a function writes to, by paths that start from what is not its own or from its arguments."""
    known = _assigned(node)
    return frozenset(end for path in _writes(node) for end in _ends(path, known))


@dataclass(frozen=True)
class Call:
    """A function that is called, and what is handed to it at a position or by a name."""

    function: Path
    argument: Path
    position: int | str


@functools.lru_cache(256)
def calls(node: ast.AST) -> frozenset[Call]:
    """Return the calls in a function that hand on something which is not new."""
    known = _assigned(node)
    found = ((call, *one) for call in ast.walk(node) if isinstance(call, ast.Call) for one in _arguments(call))
    return frozenset(
        Call(function, end, position)
        for call, position, argument in found
        for function in _expanded(call.func, known)
        for end in _expanded(argument, known)
    )


def _arguments(call: ast.Call) -> Iterator[tuple[int | str, ast.expr]]:
    yield from enumerate(itertools.takewhile(lambda one: not isinstance(one, ast.Starred), call.args))
    yield from ((one.arg, one.value) for one in call.keywords if one.arg)


def _expanded(node: ast.expr, known: dict[str, frozenset[Path] | None]) -> Iterator[Path]:
    yield from (end for path in _paths(node) or () for end in _ends(path, known))


@functools.lru_cache(256)
def handed_on(node: ast.AST) -> frozenset[Path]:
    """Return what is used as a whole, rather than for an attribute of it that is named."""
    known = _assigned(node)
    parts = [part for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript))]
    inner = {id(one) for part in ast.walk(node) for one in _not_handed_on(part)}
    whole = (part for part in parts if isinstance(part.ctx, ast.Load) and id(part) not in inner)
    return frozenset(end for part in whole for end in _expanded(part, known) if EACH not in end.steps)


def _not_handed_on(part: ast.AST) -> Iterator[ast.expr]:
    match part:
        case ast.Attribute(ast.Name() | ast.Attribute() as value):
            yield value
        case ast.Assign([ast.Name()], ast.Name() | ast.Attribute() as value):
            yield value


def _writes(node: ast.AST) -> Iterator[Path]:
    for part in ast.walk(node):
        for target, step in _targets(part):
            yield from (path.then(step) for path in _paths(target) or ())


def _targets(part: ast.AST) -> Iterator[tuple[ast.expr, Step]]:
    """Return what a piece of source changes, and where in it."""
    if isinstance(part, ast.Call):
        yield from ((one.value, EACH) for one in part.keywords if one.arg == "out")
    match part:
        case ast.Attribute(target, name, ast.Store() | ast.Del()):
            yield target, Attribute(name)
        case ast.Subscript(target, key, ast.Store() | ast.Del() as how):
            yield target, _item(key, moves=isinstance(how, ast.Del))
        case ast.AugAssign(ast.Name() as target):
            yield target, EACH
        case ast.Call(ast.Name("setattr" | "delattr"), [target, ast.Constant(str(name)), *_]):
            yield target, Attribute(name)
        case ast.Call(ast.Attribute(_, "__setattr__" | "__delattr__"), [target, ast.Constant(str(name)), *_]):
            yield target, Attribute(name)
        case ast.Call(ast.Attribute(target, "setdefault" | "pop" | "__setitem__" | "__delitem__"), [key, *_]):
            yield target, _item(key, moves=True)
        case ast.Call(ast.Attribute(target, "update"), [], [_, *_] as given) if all(one.arg for one in given):
            yield from ((target, Item(one.arg, moves=True)) for one in given)
        case ast.Call(ast.Attribute(target, method)) if method in _GROWING | _SHRINKING:
            yield target, EACH


def _item(key: ast.expr, moves: bool) -> Step:
    try:
        value = ast.literal_eval(key)
        hash(value)
    except (ValueError, TypeError):
        return EACH
    return EACH if value is ... else Item(value, moves)


def _paths(node: ast.expr | None) -> frozenset[Path] | None:
    """Return what an expression may be; None if it may be something new."""
    match node:
        case None | ast.Constant(None):
            return frozenset()
        case ast.Name(name):
            return frozenset({Path(name)})
        case ast.Attribute(value, name):
            return _on(value, Attribute(name))
        case ast.Subscript(value, key):
            return _on(value, _item(key, moves=False))
        case ast.Call(ast.Attribute(value, method), [key, *_]) if method in _KEYED:
            return _on(value, _item(key, moves=False))
        case ast.Call(ast.Attribute(value, "values"), []):
            return _paths(value)
        case ast.Call(ast.Name("vars"), [value]):
            return _on(value, Attribute("__dict__"))
        case ast.Call(ast.Name("type"), [value]):
            return _on(value, Attribute("__class__"))
        case ast.Call(ast.Name("globals"), []):
            return frozenset({Path(GLOBALS)})
        case ast.NamedExpr(_, value):
            return _paths(value)
        case ast.IfExp(_, one, other) | ast.BoolOp(_, [one, other]):
            found = _paths(one), _paths(other)
            return None if found[0] is None or found[1] is None else found[0] | found[1]
    return None


def _on(value: ast.expr, step: Step) -> frozenset[Path] | None:
    found = _paths(value)
    return None if found is None else frozenset(path.then(step) for path in found)


def _assigned(node: ast.AST) -> dict[str, frozenset[Path] | None]:
    """Return what each name stands for that is assigned anywhere in a function; None if something new."""
    found: dict[str, frozenset[Path] | None] = {}
    for name, paths in (pair for part in ast.walk(node) for pair in _assignments(part)):
        before = found.get(name, frozenset())
        found[name] = None if before is None or paths is None else before | paths
    return found


def _assignments(part: ast.AST) -> Iterator[tuple[str, frozenset[Path] | None]]:
    match part:
        case ast.Assign(targets, value):
            for target in targets:
                yield from _pairs(target, value)
        case ast.AnnAssign(target, value) | ast.NamedExpr(target, value):
            yield from _pairs(target, value)
        case ast.For(target, values) | ast.AsyncFor(target, values) | ast.comprehension(target, values):
            if isinstance(target, ast.Name):
                yield target.id, _on(values, EACH)


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, frozenset[Path] | None]]:
    match target, value:
        case ast.Name(name), _:
            yield name, _paths(value)
        case (ast.Tuple(names), ast.Tuple(values)) if len(names) == len(values):
            for one, other in zip(names, values, strict=True):
                yield from _pairs(one, other)


def _ends(path: Path, known: dict[str, frozenset[Path] | None], inside: tuple[str, ...] = ()) -> Iterator[Path]:
    """Return a path from where its first name comes from; nothing if that is something new."""
    if path.root not in known or path.root in inside:
        yield path
        return
    for start in known[path.root] or ():
        longer = functools.reduce(Path.then, path.steps, start)
        yield from _ends(longer, known, (*inside, path.root))
