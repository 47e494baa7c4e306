"""Where functions write to while they run, as places in objects that exist: a memo, a counter, a compiled model.

A place belongs to its owner: this module's variable, this class's attribute, this dict's key; the same word elsewhere
is another place. Nothing of the user's is called. This module knows nothing of digests.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import paths, sources
from .objects import MISSING, PLAIN, attribute, content, held_by, module_name, of_type, space_of, wrapped
from .paths import Attribute, Call, Item, Path, Step
from .sources import is_library

#: An owner's id, what of it is written to, and by which name or key; an id is a name for as long as its object lives.
Place = tuple[int, str, Any]
#: Methods that make an object what it is: what they write to it is not found on the way.
_MAKING = {"__init__", "__post_init__", "__new__", "__setstate__", "__set_name__", "__init_subclass__"}
#: Operations that assign variables which are not local.
_ASSIGNING = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"}
#: Types of what has attributes, but no content.
_CODE = (type, types.ModuleType, types.FunctionType)
#: Where what is made of a method keeps it.
_KEPT: dict[type, str] = {property: "fget", functools.cached_property: "func", classmethod: "__func__"}


def item(container: Any, key: Any) -> Place:
    """Return the place of a key in a dict, an index in a list, a variable in the space of a module."""
    return id(container), "item", key


def attribute_of(value: Any, name: str) -> Place:
    """Return the place of an attribute of one object."""
    return id(value), "attribute", name


def attribute_of_all(cls: type, name: str) -> Place:
    """Return the place of an attribute in every object of a class."""
    return id(cls), "attribute of all", name


def content_of(value: Any) -> Place:
    """Return the place of all that a container, or the cell of a closure, holds."""
    return id(value), "content", None


def is_written(value: Any, name: str, known: frozenset[Place]) -> bool:
    """Whether a place is known that an attribute of an object is in."""
    classes = of_type(type(value), "__mro__")
    return attribute_of(value, name) in known or any(attribute_of_all(base, name) in known for base in classes)


@dataclass(frozen=True)
class _Method:
    """The class that a function is a method of, by which name, and whether its first argument is the class."""

    cls: type
    name: str
    of_class: bool

    @property
    def runs_unnamed(self) -> bool:
        """Whether others than the user's functions call it: Python, or a library whose class it extends."""
        bases = (base for base in of_type(self.cls, "__mro__")[:-1] if is_library(module_name(base)))
        python = self.name.startswith("__") and self.name.endswith("__") and self.name not in _MAKING
        return python or any(self.name in of_type(base, "__dict__") for base in bases)


@dataclass
class Encounters:
    """What a walk has met of those that write: functions, classes whose methods they are, objects of these."""

    functions: dict[int, types.FunctionType] = field(default_factory=dict)
    bound: set[int] = field(default_factory=set)
    methods: dict[int, list[_Method]] = field(default_factory=dict)
    objects: dict[int, list[Any]] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    _known_paths: dict[int, frozenset[Path]] = field(default_factory=dict)

    def meet_class(self, cls: type) -> None:
        """Note the methods of a class of the user's."""
        for name, part in of_type(cls, "__dict__").items():
            for function in _functions_in(part, cls):
                method = _Method(cls, name, type(part) is classmethod)
                self.methods.setdefault(id(function), []).append(method)

    def meet_object(self, value: Any) -> None:
        """Note an object of a user's class."""
        for base in of_type(type(value), "__mro__")[:-1]:
            self.objects.setdefault(id(base), []).append(value)

    def meet_holder(self, cls: type) -> None:
        """Note a library's class that holds something of the user's: its methods may call those of the user's."""
        self.called |= _names_of_class(cls)

    def places(self) -> frozenset[Place]:
        """Return where functions write to while they run."""
        return frozenset(place for function in self._running() for place in self._written_by(function))

    def _running(self) -> list[types.FunctionType]:
        """Return the functions that may run in a study, those that make objects included.

        A method that no function names which may run, a setter that was called before the study, does not.
        """
        running, names = list[types.FunctionType](), set(self.called)
        waiting = list(self.functions.values())
        while awake := [function for function in waiting if self._is_awake(function, names)]:
            waiting = [function for function in waiting if not self._is_awake(function, names)]
            names = names.union(*(sources.words(function.__code__) for function in awake))
            running += awake
        return running + [function for function in waiting if function.__name__ in _MAKING]

    def _is_awake(self, function: types.FunctionType, names: set[str]) -> bool:
        methods = self.methods.get(id(function), [])
        if id(function) in self.bound or not methods:
            return True
        return any(one.runs_unnamed or (one.name in names and one.name not in _MAKING) for one in methods)

    def _written_by(self, function: types.FunctionType) -> Iterator[Place]:
        yield from _rebound(function)
        for path in self._paths(function):
            if path.root == _first(function.__code__) and id(function) in self.methods:
                yield from self._written_to_self(function, path.steps)
            else:
                yield from (place for start in starts(function, path.root) for place in _ends(start, path.steps))

    def _paths(self, function: types.FunctionType) -> frozenset[Path]:
        """Return what a function writes to, itself or by handing it to others of the user's."""
        node = sources.function_node(function)
        if id(function) not in self._known_paths and node is not None:
            self._known_paths[id(function)] = paths.written(node)  # also for functions that call themselves
            found = [path for call in paths.calls(node) for path in self._through(function, call)]
            self._known_paths[id(function)] |= frozenset(found)
        return self._known_paths.get(id(function), frozenset())

    def _through(self, function: types.FunctionType, call: Call) -> Iterator[Path]:
        for callee, bound in self._called(function, call.function):
            at = call.position
            names = callee.__code__.co_varnames[bound : callee.__code__.co_argcount]
            name = at if isinstance(at, str) else names[at] if at < len(names) else None
            for path in self._paths(callee):
                if path.root == name:
                    yield functools.reduce(Path.then, path.steps, call.argument)

    def _called(self, function: types.FunctionType, path: Path) -> Iterator[tuple[types.FunctionType, bool]]:
        """Return the user's functions that a path leads to, and whether they are bound to an object."""
        owners = starts(function, path.root)
        if path.root == _first(function.__code__):
            owners = [*owners, *(method.cls for method in self.methods.get(id(function), ()))]
        for found in (found for owner in owners for found in follow(owner, path.steps)):
            if type(found) is types.FunctionType and id(found) in self.functions:
                yield found, bool(path.steps) and id(found) in self.methods

    def _written_to_self(self, function: types.FunctionType, steps: tuple[Step, ...]) -> Iterator[Place]:
        for method in self.methods[id(function)] if function.__name__ not in _MAKING else ():
            match steps:
                case [Attribute(name)] if not method.of_class:
                    yield attribute_of_all(method.cls, name)
                case _:
                    owners = [method.cls] if method.of_class else self.objects.get(id(method.cls), [])
                    yield from (place for owner in owners for place in _ends(owner, steps))


def starts(function: types.FunctionType, name: str) -> list[Any]:
    """Return what a name means in a function: a default of its own, a variable of its closure or of its module."""
    code = function.__code__
    if name in _arguments(code):
        defaults = function.__defaults__ or ()
        named = dict(zip(code.co_varnames[: code.co_argcount][-len(defaults) :], defaults, strict=False))
        return [one for one in [{**named, **(function.__kwdefaults__ or {})}.get(name, MISSING)] if one is not MISSING]
    if name in sources.own_names(code):
        return []
    if name in code.co_freevars:
        return [content((function.__closure__ or ())[code.co_freevars.index(name)])]
    if name == paths.GLOBALS:
        return [function.__globals__]
    return [function.__globals__[name]] if name in function.__globals__ else []


def follow(value: Any, steps: Iterable[Step]) -> Iterator[Any]:
    """Return the objects that steps lead to."""
    values = [value]
    for step in steps:
        values = [found for one in values for found in _take(one, step)]
    yield from values


def _take(value: Any, step: Step) -> Iterable[Any]:
    kind = type(value)
    match step:
        case Attribute(name):
            found = attribute(value, name)
            return () if found is MISSING else (found,)
        case Item(key) if issubclass(kind, dict):
            return [dict.__getitem__(value, key)] if dict.__contains__(value, key) else ()
        case Item(int(key)) if issubclass(kind, (list, tuple)):
            return value[key : key + 1 or None] if kind in (list, tuple) else ()
    return _elements(value)


def _elements(value: Any) -> Iterable[Any]:
    kind = type(value)
    if issubclass(kind, dict):
        return dict.values(value)
    return next((base.__iter__(value) for base in (list, tuple) if issubclass(kind, base)), ())


def _ends(start: Any, steps: tuple[Step, ...]) -> Iterator[Place]:
    """Return the places that the last of some steps writes to."""
    for n, step in enumerate(steps[:-1]):  # a view of a library's object, as in table.loc[0] = 1, is the object
        if isinstance(step, Attribute):
            for owner in follow(start, steps[:n]):
                if _is_view(owner, step.name):
                    yield content_of(owner)
    for owner in follow(start, steps[:-1]):
        yield from _place(owner, steps[-1])


def _is_view(owner: Any, name: str) -> bool:
    kind = type(owner)
    if not is_library(module_name(kind)) or issubclass(kind, _CODE) or name in held_by(owner):
        return False
    return any("__get__" in of_type(base, "__dict__") for base in of_type(type(attribute(owner, name)), "__mro__"))


def _place(owner: Any, step: Step) -> Iterator[Place]:
    kind = type(owner)
    match step:
        case Attribute(name):
            yield item(space_of(owner), name) if issubclass(kind, types.ModuleType) else attribute_of(owner, name)
        case Item(key, moves) if issubclass(kind, dict) or (not moves and issubclass(kind, (list, np.ndarray))):
            yield item(owner, key)
        case _ if kind not in PLAIN and not issubclass(kind, (*_CODE, tuple)):
            yield content_of(owner)


def _rebound(function: types.FunctionType) -> Iterator[Place]:
    """Return the variables, global and of a closure, that a function assigns."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for operation, name in _assignments(function.__code__):
        if operation.endswith("_GLOBAL"):
            yield item(function.__globals__, name)
        elif name in cells:
            yield content_of(cells[name])


@functools.lru_cache(1024)
def _assignments(code: types.CodeType) -> tuple[tuple[str, str], ...]:
    """Return the operations that assign variables which are not local, each with the name."""
    nested = (pair for part in code.co_consts if isinstance(part, types.CodeType) for pair in _assignments(part))
    own = ((one.opname, one.argval) for one in dis.get_instructions(code) if one.opname in _ASSIGNING)
    return (*own, *nested)


def _arguments(code: types.CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _first(code: types.CodeType) -> str:
    return code.co_varnames[0] if code.co_argcount else ""


def _functions_in(part: Any, cls: type) -> Iterator[types.FunctionType]:
    """Return the functions of the user's that make up a class attribute, whatever they are wrapped in."""
    todo, seen = [part], set[int]()
    for one in todo:  # it grows on the way
        kind = type(one)
        if id(one) in seen:
            continue
        seen.add(id(one))
        if kind is types.FunctionType:
            yield one
            inner = [content(cell) for cell in one.__closure__ or ()]
            todo += [held for held in inner if type(held) is types.FunctionType and _is_defined_in(held, cls)]
            todo += [held for name, held in held_by(one).items() if name == "__wrapped__"]
        elif kind in _KEPT:
            todo.append(getattr(one, _KEPT[kind]))
        elif kind is not staticmethod and is_library(module_name(kind)):
            todo += [held for _, held in wrapped(one)]


def _is_defined_in(function: types.FunctionType, cls: type) -> bool:
    return function.__qualname__ == f"{of_type(cls, '__qualname__')}.{function.__name__}"


@functools.lru_cache(256)
def _names_of_class(cls: type) -> frozenset[str]:
    parts = (part for base in of_type(cls, "__mro__") for part in of_type(base, "__dict__").values())
    return frozenset().union(*(sources.words(part.__code__) for part in parts if type(part) is types.FunctionType))
