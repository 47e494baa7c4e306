"""A digest of all that can be seen of a value.

Functions are known by their sources and by what these reach: globals, closures, modules of the user's imported anywhere
inside. Objects are known by their fields or, if a library made them, by what they say of themselves to be copied. What
a function writes to while it runs, a memo or a compiled model, is no part of it. Nothing of the user's is called; what
cannot be looked into counts with its type, and a tag is for that. This module knows nothing of studies.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import types
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import sources
from .objects import PLAIN, content, fields, module_name, of_type, parts, type_name, wrapped
from .sources import is_library

#: Methods that make an object what it is; what they write is not found on the way.
_MAKING = {"__init__", "__post_init__", "__new__", "__setstate__"}


def digest_of(value: Any) -> str:
    """Return a digest of all that can be seen of a value."""
    return _Walk().digest(value)


#: What is seen of a value: bytes of its own, and what else it consists of, with the name of the variable or field.
_Seen = tuple[bytes, Iterable[tuple[str, Any]]]


@dataclass(frozen=True)
class _Module:
    """A module that is imported somewhere inside a function, whether or not it was yet."""

    name: str
    file: Path


class _Walk:
    """One walk through what a value refers to, the nearest first, as long as there is anything."""

    def __init__(self) -> None:
        self.written: set[str] = set()
        self._modules: dict[str, _Module | None] = {}

    def digest(self, value: Any) -> str:
        """Return a digest of all that is reached, but for what functions on the way write to."""
        todo: deque[tuple[int, str, Any]] = deque([(-1, "", value)])
        items: list[tuple[int, str, bytes]] = []
        seen: dict[int, Any] = {}  # an id is a name for as long as its object lives
        while todo:
            parent, name, part = todo.popleft()
            own, children = (b"again", ()) if id(part) in seen else self._look(part)
            if type(part) not in PLAIN:
                seen[id(part)] = part
            todo.extend((len(items), *child) for child in children)
            items.append((parent, name, hashlib.blake2b(own, digest_size=16).digest()))  # data may be large
        return self._hash(items)

    def _hash(self, items: list[tuple[int, str, bytes]]) -> str:
        left_out = set[int]()
        digest = hashlib.blake2b(digest_size=8, person=b"ringtrue")
        for k, (parent, name, own) in enumerate(items):
            if parent in left_out or name in self.written:
                left_out.add(k)
                continue
            digest.update(_bytes(f"{len(name)} {name}") + own)  # so that no two lists of parts read the same
        return digest.hexdigest()

    def _look(self, value: Any) -> _Seen:
        kind = type(value)
        if kind in PLAIN:
            return _bytes(f"{kind.__name__} {value!r}"), ()
        own, children = next((look for base, look in _LOOKS.items() if issubclass(kind, base)), _nothing)(self, value)
        if not is_library(module_name(kind)):
            children = [*children, ("", kind), *fields(value)]
        elif kind not in _LOOKS:
            children = [*children, *wrapped(value), *parts(value)]
        return _bytes(type_name(kind)) + b" " + own, children

    def function(self, value: types.FunctionType) -> _Seen:
        """Look into a function: its source, its defaults, its closure, and what it refers to."""
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        children = [*((name, content(cell)) for name, cell in cells), *wrapped(value)]
        if is_library(str(value.__module__)):
            return _bytes(f"{value.__module__}.{value.__qualname__}"), children
        children += [("", value.__defaults__), ("", value.__kwdefaults__), *_globals(value)]
        node = sources.function_node(value)
        if node is None:
            return _code(value.__code__), children
        if value.__name__ not in _MAKING:
            self.written |= sources.written_names(node, value.__code__) - {"self", "cls"}
        package = value.__globals__.get("__package__") or ""
        return _bytes(ast.unparse(node)), [*children, *self._imported(node, package)]

    def module(self, value: _Module) -> _Seen:
        """Look into a module that is imported: its source, and that of those it imports."""
        node = sources.module_node(value.file)
        package = value.name if value.file.name == "__init__.py" else value.name.rpartition(".")[0]
        return _bytes(ast.unparse(node)), self._imported(node, package)

    def _imported(self, node: ast.AST, package: str) -> list[tuple[str, Any]]:
        names = sorted(set(sources.imported(node, package)))
        for name in names:
            if name not in self._modules:
                file = sources.module_file(name)
                self._modules[name] = None if file is None else _Module(name, file)
        return [("", self._modules[name]) for name in names]


def _nothing(walk: _Walk, value: Any) -> _Seen:
    return b"", ()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _globals(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Return the globals that a function names; of a user's module, all it names, however it comes by the module."""
    names = sorted(_names(function.__code__))
    spaces, modules = [function.__globals__], set[int]()
    for space in spaces:  # it grows on the way
        for name in names:
            value = space.get(name, _nothing)
            if type(value) is not types.ModuleType or is_library(value.__name__):
                yield from [] if value is _nothing else [(name, value)]
            elif id(value) not in modules:
                modules.add(id(value))
                spaces.append(value.__dict__)


def _names(code: types.CodeType) -> set[str]:
    nested = (_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*nested)


def _code(code: types.CodeType) -> bytes:
    """Return byte code, of a function whose source is not at hand, wherever it was written."""
    nested = (_code(part) if isinstance(part, types.CodeType) else repr(part).encode() for part in code.co_consts)
    return b"\0".join([code.co_code, repr((code.co_names, code.co_varnames)).encode("utf-8", "replace"), *nested])


def _array(walk: _Walk, value: Any) -> _Seen:
    form = _bytes(f"{np.ndarray.dtype.__get__(value)} {np.ndarray.shape.__get__(value)} ")
    if np.ndarray.dtype.__get__(value).hasobject:
        return form, [("", np.ndarray.tolist(value))]
    mask = [part for part in fields(value) if part[0] == "_mask"]
    return form + np.ndarray.tobytes(value), mask


def _sequence(walk: _Walk, values: Iterable[Any]) -> _Seen:
    """Look at values in their order; plain ones, which may be many, at once."""
    listed = list(values)
    if set(map(type, listed)) <= PLAIN:
        return _bytes(repr(listed)), ()
    return _bytes(str(len(listed))), [("", one) for one in listed]


def _set(walk: _Walk, values: Iterable[Any]) -> _Seen:
    listed = list(values)
    plain = set(map(type, listed)) <= PLAIN  # the order of others is not the same in every process
    return _bytes(repr(sorted(map(repr, listed)) if plain else len(listed))), ()


def _dict(walk: _Walk, value: Any) -> _Seen:
    keys, values = _sequence(walk, dict.keys(value)), _sequence(walk, dict.values(value))
    return keys[0] + b" " + values[0], [*keys[1], *values[1]]


def _class(walk: _Walk, value: type) -> _Seen:
    """Look into a class: a name if it is a library's, else its bases and what it defines."""
    if is_library(module_name(value)):
        return _bytes(type_name(value)), ()
    own = sorted(item for item in of_type(value, "__dict__").items() if _matters(*item))
    return _bytes(type_name(value)), [*(("", base) for base in of_type(value, "__mro__")[1:]), *own]


def _matters(name: str, part: Any) -> bool:
    """Whether a class attribute says what the class does, rather than what it is called or how it is shown."""
    if name in ("__repr__", "__dict__", "__weakref__", "_abc_impl") or type(part) is types.MemberDescriptorType:
        return False
    dunder = name.startswith("__") and name.endswith("__")
    generated = type(part) is types.FunctionType and part.__code__.co_filename == "<string>"  # by dataclass
    return not dunder or (not generated and type(part) in (types.FunctionType, staticmethod, classmethod, property))


def _said(base: Any) -> Any:
    return lambda walk, value: (_bytes(base.__repr__(value)), ())


def _of(base: type, *names: str) -> Any:
    """Look at what a base keeps, past whatever a user's subclass makes of it."""
    return lambda walk, value: (b"", [("", base.__dict__[name].__get__(value)) for name in names])


#: How to look into a type, found by the first base that is listed. Methods are those of the base: a user's are not run.
_LOOKS: dict[type, Any] = {
    **{base: _said(base) for base in (int, float, complex, str, bytes)},
    tuple: lambda walk, value: _sequence(walk, tuple.__iter__(value)),
    list: lambda walk, value: _sequence(walk, list.__iter__(value)),
    dict: _dict,
    set: lambda walk, value: _set(walk, set.__iter__(value)),
    frozenset: lambda walk, value: _set(walk, frozenset.__iter__(value)),
    np.ndarray: _array,
    # What a generator has come to is no part of a study: whoever uses one cannot be reproduced.
    **dict.fromkeys((np.random.Generator, np.random.RandomState, np.random.BitGenerator), _nothing),
    types.FunctionType: _Walk.function,
    types.MethodType: _of(types.MethodType, "__func__", "__self__"),
    types.ModuleType: lambda walk, value: (_bytes(value.__name__), ()),
    _Module: _Walk.module,
    property: _of(property, "fget"),
    staticmethod: _of(staticmethod, "__func__"),
    classmethod: _of(classmethod, "__func__"),
    functools.cached_property: lambda walk, value: (b"", [("", value.func)]),
    type: _class,
}
