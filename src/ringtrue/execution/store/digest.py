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
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ...values import Identified
from . import paths, sources
from .objects import MISSING, PLAIN, content, fields, held_by, module_name, of_type, parts, space_of, type_name, wrapped
from .places import Encounters, Place, attribute_of, content_of, follow, is_written, item, starts
from .sources import is_library

#: Walks until one finds no other places that functions write to than those it leaves out; two or three do.
_WALKS = 9
#: Parts by which the members of a set are put in order.
_ENOUGH = 100
#: Types of a module's variables that count, besides those of the user's, if the module is kept somewhere.
_KEPT = {*PLAIN, list, tuple, dict, set, frozenset, np.ndarray, types.FunctionType, types.ModuleType, type}

#: What is seen of a value: bytes of its own, and what else it consists of, with the name of the variable or field.
_Seen = tuple[bytes, Iterable[tuple[str, Any]]]


def digest_of(value: Any, written: frozenset[Place]) -> str:
    """Return a digest of all that can be seen of a value, but for places that functions write to."""
    return _Walk(written).digest(value)


def places_written(value: Any, called: Iterable[str] = ()) -> frozenset[Place]:
    """Return the places that functions write to which a value reaches otherwise than through such places.

    Parameters
    ----------
    value
        Where to start from.
    called
        Names of methods that are called from outside.
    """
    known = frozenset[Place]()
    for _ in range(_WALKS):
        walk = _Walk(known)
        walk.met.called.update(called)
        found = walk.places(value)
        if found == known:
            break
        known = found
    return known


@dataclass(frozen=True)
class _Module:
    """The source of a module, whether or not it was imported yet."""

    name: str
    file: Path


class _Walk:
    """One walk through what a value refers to, the nearest first, past the places that are known to be written to."""

    def __init__(self, known: frozenset[Place], *, inside_sets: int = 0) -> None:
        self.known, self.inside_sets = known, inside_sets
        self.met = Encounters()
        self._owners = {owner for owner, _, _ in known}
        self._modules: dict[str, _Module | None] = {}
        self._kinds: dict[type, tuple[bytes, Any, bool]] = {}

    def digest(self, value: Any, most: int | None = None) -> str:
        """Return a digest of the parts that are reached, or of so many."""
        digest = hashlib.blake2b(digest_size=8, person=b"ringtrue")
        for name, own in islice(self._items(value), most):
            # Data may be large; lengths, so that no two lists of parts read the same.
            digest.update(_bytes(f"{len(name)} {name}") + hashlib.blake2b(own, digest_size=16).digest())
        return digest.hexdigest()

    def places(self, value: Any) -> frozenset[Place]:
        """Return the places that functions on the way write to."""
        deque(self._items(value), maxlen=0)
        return self.met.places()

    def _items(self, value: Any) -> Iterator[tuple[str, bytes]]:
        todo: deque[tuple[str, Any]] = deque([("", value)])
        seen: dict[int, tuple[int, Any]] = {}  # an id is a name for as long as its object lives
        while todo:
            name, part = todo.popleft()
            if id(part) in seen:
                yield name, b"again %d" % seen[id(part)][0]
                continue
            own, children = self._look(part)
            if type(part) not in PLAIN:
                seen[id(part)] = len(seen), part
            todo.extend(children)
            yield name, own

    def _look(self, value: Any) -> _Seen:
        kind = type(value)
        if kind in PLAIN:
            return _bytes(f"{kind.__name__} {value!r}"), ()
        if issubclass(kind, Identified):  # by its type: an object may lie about its class
            return _bytes(f"{type_name(kind)} {value.identity}"), ()
        memo = id(value) in self._owners and content_of(value) in self.known
        if kind not in self._kinds:
            self._kinds[kind] = _kind(kind)
        title, look, library = self._kinds[kind]
        own, children = (b"", ()) if memo else look(self, value)
        if not library:
            self.met.meet_object(value)
            children = [*children, ("", kind), *self._unwritten(value, fields(value))]
        elif kind not in _LOOKS and not memo:
            children = [*children, *wrapped(value), *self._unwritten(value, self._said_parts(value))]
            if any(not is_library(module_name(type(child))) for _, child in children):
                self.met.meet_holder(kind)
        return title + own, children

    def _said_parts(self, value: Any) -> Iterator[tuple[str, Any]]:
        # A library's dict or list repeats its contents there, those included that are written to.
        return iter(()) if isinstance(value, (dict, list)) and id(value) in self._owners else parts(value)

    def _unwritten(self, value: Any, children: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
        return [(name, part) for name, part in children if not (name and is_written(value, name, self.known))]

    def keys_written(self, value: Any) -> list[Any]:
        """Return the keys of a container that are written to."""
        found = self.known if id(value) in self._owners else ()
        return [key for owner, what, key in found if (owner, what) == (id(value), "item")]

    def function(self, value: types.FunctionType) -> _Seen:
        """Look into a function: its source, its defaults, its closure, and what it refers to."""
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        held = ((name, content(cell)) for name, cell in cells if content_of(cell) not in self.known)
        children = [*held, *wrapped(value)]
        if is_library(str(value.__module__)):
            return _bytes(f"{value.__module__}.{value.__qualname__}"), children
        self.met.functions[id(value)] = value
        children += [("", value.__defaults__), ("", value.__kwdefaults__), *self._globals(value)]
        children += self._unwritten(value, sorted(held_by(value).items(), key=lambda one: one[0]))
        node = sources.function_node(value)
        if node is None:
            return _code(value.__code__), children
        package = value.__globals__.get("__package__") or ""
        return _bytes(ast.unparse(node)), [*children, *_handed_on(value, node), *self._imported(node, package)]

    def method(self, value: types.MethodType) -> _Seen:
        """Look into a method of an object, which somebody has to call."""
        self.met.bound.add(id(value.__func__))
        return b"", [("", value.__func__), ("", value.__self__)]

    def _globals(self, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
        """Return the globals that a function names; of a user's module, all it names, however it comes by it."""
        names = sorted(sources.names(function.__code__))
        spaces, modules = [function.__globals__], set[int]()
        for space in spaces:  # it grows on the way
            for name in names:
                value: Any = space.get(name, MISSING) if item(space, name) not in self.known else MISSING
                if not _is_users_module(value):
                    yield from [] if value is MISSING else [(name, value)]
                elif id(value) not in modules:
                    modules.add(id(value))
                    spaces.append(space_of(value))

    def source(self, value: _Module) -> _Seen:
        """Look into the source of a module, and that of those it imports."""
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

    def module(self, value: types.ModuleType) -> _Seen:
        """Look into a module that is kept somewhere: a name if it is a library's, else its source and variables."""
        space = space_of(value)
        if not _is_users_module(value):
            return _bytes(str(space.get("__name__"))), ()
        file = sources.source_file(space)
        source = [] if file is None else [("", _Module(str(space.get("__name__")), file))]
        held = (name for name, one in space.items() if _is_kept(type(one)) and item(space, name) not in self.known)
        return b"", [*source, *((name, space[name]) for name in sorted(held) if not name.startswith("__"))]


def _is_kept(kind: type) -> bool:
    return kind in _KEPT or not is_library(module_name(kind))


def _kind(kind: type) -> tuple[bytes, Any, bool]:
    """Return the name of a type, how to look into it, and whether it is a library's."""
    look = next((look for base, look in _LOOKS.items() if issubclass(kind, base)), _nothing)
    return _bytes(f"{type_name(kind)} "), look, is_library(module_name(kind))


def _is_users_module(value: Any) -> bool:
    return issubclass(type(value), types.ModuleType) and not is_library(str(space_of(value).get("__name__")))


def _handed_on(function: types.FunctionType, node: ast.AST) -> list[tuple[str, Any]]:
    """Return modules of the user's that a function uses otherwise than by naming what it takes from them."""
    used = sorted(paths.handed_on(node), key=repr)
    found = [one for path in used for start in starts(function, path.root) for one in follow(start, path.steps)]
    return [("", one) for one in found if _is_users_module(one)]


def _nothing(walk: _Walk, value: Any) -> _Seen:
    return b"", ()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _code(code: types.CodeType) -> bytes:
    """Return byte code, of a function whose source is not at hand, wherever it was written."""
    nested = (_code(part) if isinstance(part, types.CodeType) else repr(part).encode() for part in code.co_consts)
    return b"\0".join([code.co_code, repr((code.co_names, code.co_varnames)).encode("utf-8", "replace"), *nested])


def _array(walk: _Walk, value: Any) -> _Seen:
    form = _bytes(f"{np.ndarray.dtype.__get__(value)} {np.ndarray.shape.__get__(value)} ")
    mask = [part for part in fields(value) if part[0] == "_mask"]
    if keys := walk.keys_written(value):
        value = np.ndarray.copy(np.ndarray.view(value, np.ndarray))
        for key in keys:
            with suppress(LookupError, TypeError, ValueError):  # no such index
                value[key] = 0
    if np.ndarray.dtype.__get__(value).hasobject:
        return form, [("", np.ndarray.tolist(value))]
    return form + np.ndarray.tobytes(value), mask


def _sequence(walk: _Walk, values: Iterable[Any]) -> _Seen:
    """Look at values in their order; plain ones, which may be many, at once."""
    listed = list(values)
    if set(map(type, listed)) <= PLAIN or all(map(_is_plain, listed)):
        return _bytes(repr(listed)), ()
    return _bytes(str(len(listed))), [("", one) for one in listed]


def _list(walk: _Walk, value: Any) -> _Seen:
    listed = list(list.__iter__(value))
    for key in walk.keys_written(value):
        with suppress(LookupError, TypeError):  # no such index
            listed[key] = None
    return _sequence(walk, listed)


def _dict(walk: _Walk, value: Any) -> _Seen:
    written = walk.keys_written(value)
    held = [one for one in dict.items(value) if not (written and _is_plain(one[0]) and one[0] in written)]
    keys, values = _sequence(walk, (key for key, _ in held)), _sequence(walk, (one for _, one in held))
    return keys[0] + b" " + values[0], [*keys[1], *values[1]]


def _set(walk: _Walk, values: Iterable[Any]) -> _Seen:
    """Look at values in an order that is the same in every process."""
    listed = list(values)
    if all(map(_is_plain, listed)):
        return _bytes(repr(sorted(map(repr, listed)))), ()
    if walk.inside_sets > 1:  # of sets in sets in sets, the order of the innermost does not matter to the outermost
        return _bytes(str(len(listed))), ()
    within = walk.inside_sets + 1
    ordered = sorted(listed, key=lambda one: _Walk(walk.known, inside_sets=within).digest(one, _ENOUGH))
    return _bytes(str(len(listed))), [("", one) for one in ordered]


def _is_plain(value: Any, depth: int = 9) -> bool:
    """Whether a value is plain, or a tuple of such; of deeper ones a text cannot be made at once."""
    if type(value) is tuple and depth:
        return all(_is_plain(one, depth - 1) for one in value)
    return type(value) in PLAIN


def _class(walk: _Walk, value: type) -> _Seen:
    """Look into a class: a name if it is a library's, else its bases and what it defines."""
    if is_library(module_name(value)) or walk.inside_sets:
        return _bytes(type_name(value)), ()
    walk.met.meet_class(value)
    own = sorted(name for name, part in of_type(value, "__dict__").items() if _matters(name, part))
    held = [(name, of_type(value, "__dict__")[name]) for name in own if attribute_of(value, name) not in walk.known]
    return _bytes(type_name(value)), [*(("", base) for base in of_type(value, "__mro__")[1:]), *held]


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
    list: _list,
    dict: _dict,
    set: lambda walk, value: _set(walk, set.__iter__(value)),
    frozenset: lambda walk, value: _set(walk, frozenset.__iter__(value)),
    np.ndarray: _array,
    # What a generator has come to is no part of a study: whoever uses one cannot be reproduced.
    **dict.fromkeys((np.random.Generator, np.random.RandomState, np.random.BitGenerator), _nothing),
    # These are caches by what they are, functools.singledispatch's among them.
    **dict.fromkeys((weakref.WeakKeyDictionary, weakref.WeakValueDictionary), _nothing),
    types.FunctionType: _Walk.function,
    types.MethodType: _Walk.method,
    types.ModuleType: _Walk.module,
    _Module: _Walk.source,
    property: _of(property, "fget", "fset"),
    staticmethod: _of(staticmethod, "__func__"),
    classmethod: _of(classmethod, "__func__"),
    functools.cached_property: lambda walk, value: (b"", [("", value.func)]),
    type: _class,
}
