"""What a study is made of, in a few short texts: enough to tell whether a file belongs to it.

Functions are known by their byte code and by what they refer to, objects by their type and their fields, so that the
same study written down again, in another process too, has the same fingerprint. Nothing of the user's is called on the
way; what cannot be looked into counts with its type alone, and a tag is for that. This module knows nothing of files.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import dis
import fractions
import functools
import hashlib
import pathlib
import re
import sys
import types
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .study import Study

#: Levels of reference below which, and parts after which, the rest counts with its type alone.
_DEEPEST, _MOST = 60, 200_000
#: Characters of a description.
_SHORT = 80


def fingerprint(study: Study, tag: str = "", *, keep: str | None = None) -> dict[str, str]:
    """Return what a study is made of, field by field; n is no part of it, because a run can be extended.

    Parameters
    ----------
    study
        The question.
    tag
        Whatever tells studies apart that look the same from here.
    keep
        What is kept besides replicates.

    Examples
    --------
    >>> from ringtrue.distributions import Normal
    >>> study = Study(Normal(0, 1), lambda t: t, lambda mu0, y: Normal(y, 1), n=10)
    >>> mark = fingerprint(study, keep="draws")
    >>> mark["draws"], mark["keep"], mark["belief"].rpartition(", ")[0]
    ('99', 'draws', 'Normal(mean=0.0, sd=1.0)')
    """
    parts = {name: described(getattr(study, name)) for name in ("belief", "truth", "model", "procedure")}
    return {
        **parts,
        "f": "the default family" if study.f is None else described(study.f),
        "draws": str(study.draws),
        "seed": str(study.seed),
        "batch": str(study.batch),
        "keep": str(keep),
        "tag": str(tag),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
    }


def described(value: Any) -> str:
    """Return a short description of anything, with a digest of all that can be seen of it.

    Examples
    --------
    >>> described(1.5) == described(1.5), described(1.5) == described(2.5)
    (True, False)
    """
    try:
        digest = _Digests().of(value).hex()
    except Exception:  # a fingerprint is no reason for a run to fail
        digest = "unseen"
    return f"{_short(value)}, {digest}"


def _short(value: Any) -> str:
    kind = type(value)
    if kind in (int, float, str, bool, type(None)):
        return repr(value)[:_SHORT]
    if kind is types.FunctionType:
        return f"function {value.__name__}"[:_SHORT]
    if kind is np.ndarray:
        return repr(value.item()) if value.ndim == 0 and value.dtype.kind in "biuf" else f"array {value.shape}"
    if kind in (dict, list, tuple):
        return f"{kind.__name__} of {len(value)}"
    name = _type_name(kind).rpartition(".")[2]
    if "__dataclass_fields__" not in _own(kind, "__dict__"):
        return name[:_SHORT]
    fields = ", ".join(f"{field}={_short(part)}" for field, part in _fields(value))
    return f"{name}({fields})" if len(fields) < _SHORT else f"{name}({fields[:_SHORT]}...)"


def _own(cls: type, name: str) -> Any:
    """Return an attribute of a type as ``type`` has it, whatever a metaclass would say."""
    return type.__dict__[name].__get__(cls)


def _type_name(cls: type) -> str:
    # A user's script is __main__ when it is run and has a name when it is imported: its classes have no module here.
    own = _own(cls, "__name__")
    return f"{_module(cls)}.{_own(cls, '__qualname__')}" if _is_library(_module(cls)) else own


@functools.cache
def _is_library(module: str) -> bool:
    """Whether a module is the standard library's, an installed package's or ours: known by name, not by content."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == "ringtrue":
        return True
    file = getattr(sys.modules.get(module) or sys.modules.get(top), "__file__", None)
    return isinstance(file, str) and not {"site-packages", "dist-packages"}.isdisjoint(pathlib.Path(file).parts)


_PLAIN = {int, float, bool, str, bytes, complex, type(None)}


class _Digests:
    """One walk through what a value refers to."""

    def __init__(self) -> None:
        self._depths: dict[int, int] = {}  # of what is being looked at
        self._known: dict[int, bytes] = {}
        self._alive: list[Any] = []  # an id is a name for as long as its object lives

    def of(self, value: Any) -> bytes:
        """Return the digest of a value."""
        place = id(value)
        if place in self._known:
            return self._known[place]
        if place in self._depths:
            return _digest("again", str(self._depths[place]).encode())
        if len(self._depths) > _DEEPEST or len(self._alive) > _MOST:
            return _digest("unseen", _type_name(type(value)).encode())
        self._alive.append(value)
        self._depths[place] = len(self._depths)
        try:
            found = self._look(value)
        finally:
            del self._depths[place]
        self._known[place] = found
        return found

    def _look(self, value: Any) -> bytes:
        kind = type(value)
        parts = [_type_name(kind).encode()]
        handler = next((HANDLERS[base] for base in _own(kind, "__mro__") if base in HANDLERS), None)
        if handler is not None:
            parts += handler(self, value)
        if handler is None or not _is_library(_module(kind)):
            parts += self._object(value)
        return _digest("value", *parts)

    def all(self, values: Iterable[Any]) -> list[bytes]:
        """Return the digests of several values."""
        return [self.of(value) for value in values]

    def named(self, values: Iterable[tuple[str, Any]]) -> list[bytes]:
        """Return the digests of named values, sorted by name."""
        return [
            part for name, value in sorted(values, key=lambda item: item[0]) for part in (name.encode(), self.of(value))
        ]

    def _object(self, value: Any) -> list[bytes]:
        """Look into an object: its fields, and the code of its class if that is the user's."""
        kind = type(value)
        if _module(kind).startswith("scipy.stats") and (frozen := _frozen(value)) is not None:
            return self.all(frozen)
        if _module(kind).partition(".")[0] in sys.stdlib_module_names and _is_library(_module(kind)):
            # Loggers, locks, files: their insides are the process's business. What they wrap is the user's.
            return self.named(item for item in _fields(value) if item[0] == "__wrapped__")
        own = [] if _is_library(_module(kind)) else [self.of(kind)]
        return own + self.named(_fields(value))

    def function(self, value: Any) -> list[bytes]:
        """Look into a function: its code, its defaults, its closure, and the globals it refers to."""
        closure = self.named((f"cell {k}", _content(cell)) for k, cell in enumerate(value.__closure__ or ()))
        if _is_library(str(value.__module__)):
            return [f"{value.__module__}.{value.__qualname__}".encode(), *closure]
        return [
            self._code(value.__code__),
            self.of(value.__defaults__),
            self.of(value.__kwdefaults__),
            *closure,
            *self.named(_globals(value)),
        ]

    def _code(self, code: types.CodeType) -> bytes:
        """Return the digest of byte code, wherever it was written: without file, lines and names of scopes."""
        nested = 0x10  # set if a function is defined inside another
        numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~nested)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        constants = [self._code(c) if isinstance(c, types.CodeType) else self.of(c) for c in code.co_consts]
        return _digest("code", *(repr(part).encode() for part in (_steps(code), numbers, names)), *constants)

    def cls(self, value: type) -> list[bytes]:
        """Look into a class: a name if it is a library's, else its bases and what it defines."""
        parts = [_type_name(value).encode()]
        if _is_library(_module(value)):
            return parts
        own = [(name, part) for name, part in _own(value, "__dict__").items() if _matters(name, part)]
        return parts + self.all(_own(value, "__mro__")[1:]) + self.named(own)

    def array(self, value: Any) -> list[bytes]:
        """Look into an array."""
        form = f"{np.ndarray.dtype.__get__(value)} {np.ndarray.shape.__get__(value)}".encode()
        mask = [self.of(part) for name, part in _fields(value) if name == "_mask"]
        if np.ndarray.dtype.__get__(value).hasobject:
            return [form, self.of(np.ndarray.tolist(value))]
        return [form, np.ndarray.tobytes(value), *mask]

    def sequence(self, values: Iterable[Any]) -> list[bytes]:
        """Look at values in their order; plain ones, which may be many, at once."""
        listed = list(values)
        return [repr(listed).encode("utf-8", "surrogatepass")] if set(map(type, listed)) <= _PLAIN else self.all(listed)


def _digest(kind: str, *parts: bytes) -> bytes:
    digest = hashlib.blake2b(kind.encode(), digest_size=8, person=b"ringtrue")
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))  # so that no two lists of parts read the same
        digest.update(part)
    return digest.digest()


def _module(cls: type) -> str:
    module = _own(cls, "__dict__").get("__module__")
    return module if type(module) is str else "builtins"  # the type of functions has a descriptor there


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return "an empty cell"


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Return what an object consists of, without asking the object: its fields, or what it was given, and its slots."""
    mro = _own(type(value), "__mro__")
    declared = next((d for base in mro if type(d := _own(base, "__dict__").get("__dataclass_fields__")) is dict), None)
    computed = {
        name for base in mro for name, part in _own(base, "__dict__").items() if type(part) is functools.cached_property
    }
    with contextlib.suppress(AttributeError):
        held = object.__getattribute__(value, "__dict__")
        if type(held) is dict:
            chosen = held if declared is None else [name for name in declared if name in held]
            yield from ((name, held[name]) for name in chosen if type(name) is str and name not in computed)
    for base in mro:
        for name, part in _own(base, "__dict__").items():
            if type(part) is types.MemberDescriptorType and not _is_library(_module(base)):
                with contextlib.suppress(AttributeError):  # an empty slot
                    yield name, part.__get__(value)


def _matters(name: str, part: Any) -> bool:
    """Whether a class attribute says what the class does, rather than what it is called or how it is shown."""
    dunder = name.startswith("__") and name.endswith("__")
    if name in ("__repr__", "__dict__", "__weakref__", "_abc_impl") or type(part) is types.MemberDescriptorType:
        return False
    return not dunder or type(part) in (types.FunctionType, staticmethod, classmethod, property)


#: Two steps in one, which compilers since 3.13 make of neighbours only if they stand in the same line.
_FUSED = re.compile(r"((?:LOAD|STORE)_FAST)_((?:LOAD|STORE)_FAST)")


def _steps(code: types.CodeType) -> tuple[list[tuple[str, int | None]], list[tuple[int, ...]]]:
    """Return the steps of byte code one by one, and its table of exceptions, with places counted in steps."""
    steps: list[tuple[str, int | None]] = []
    places, jumps, written = dict[int, int](), dict[int, int](), dis.Bytecode(code)
    for step in written:
        places[step.offset] = len(steps)
        if step.opname in ("NOP", "EXTENDED_ARG", "CACHE"):  # for debuggers, long arguments and the interpreter
            continue
        if (pair := _FUSED.fullmatch(step.opname)) and step.arg is not None:
            steps += [(pair[1], step.arg >> 4), (pair[2], step.arg & 15)]
        elif step.opcode in dis.hasjrel:
            jumps[len(steps)] = step.argval
            steps.append((step.opname, None))
        else:
            steps.append((step.opname, step.arg))
    places[len(code.co_code)] = len(steps)
    for at, target in jumps.items():
        steps[at] = (steps[at][0], places[target])
    caught = written.exception_entries  # type: ignore[attr-defined]
    return steps, [(*(places[at] for at in (e.start, e.end, e.target)), e.depth, e.lasti) for e in caught]


_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


def _globals(function: Any) -> Iterator[tuple[str, Any]]:
    """Return the globals that a function refers to; of a user's module, what it takes from it."""
    space = function.__globals__
    for name, path in sorted(set(_references(function.__code__))):
        if name in space:
            value, said = space[name], name
            while type(value) is types.ModuleType and path and not _is_library(value.__name__):
                said, value, path = f"{said}.{path[0]}", value.__dict__.get(path[0]), path[1:]
            yield said, value


def _references(code: types.CodeType) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return the global names in byte code, each with the attributes that are taken from it at once."""
    name: str | None = None
    path: list[str] = []
    for step in dis.get_instructions(code):
        if step.opname in _ATTRIBUTES and name is not None:
            path.append(str(step.argval))
            continue
        if name is not None and step.opname != "CACHE":
            yield name, tuple(path)
            name = None
        if step.opname in _LOADS:
            name, path = str(step.argval), []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _references(constant)


def _frozen(value: Any) -> tuple[Any, ...] | None:
    """Return what a frozen scipy distribution consists of: a name, arguments, and the user's class if it is one."""
    held = dict(_fields(value))
    if not {"dist", "args", "kwds"} <= set(held):
        return (held["name"], held["shapes"]) if {"name", "shapes", "badvalue"} <= set(held) else None
    kind = type(held["dist"])
    name = dict(_fields(held["dist"])).get("name")
    return (_type_name(kind), name, held["args"], held["kwds"], *([] if _is_library(_module(kind)) else [kind]))


def _sorted(walk: _Digests, values: Iterable[Any]) -> list[bytes]:
    return sorted(walk.all(values))


def _pairs(walk: _Digests, items: Iterable[tuple[Any, Any]]) -> list[bytes]:
    return [digest for pair in items for digest in walk.all(pair)]


def _said(show: Callable[[Any], Any]) -> Callable[[_Digests, Any], list[bytes]]:
    return lambda walk, value: [str(show(value)).encode("utf-8", "surrogatepass")]


def _of(base: type, *names: str) -> Callable[[_Digests, Any], list[bytes]]:
    """Look at what a base keeps, past whatever a user's subclass makes of it."""
    return lambda walk, value: walk.all(base.__dict__[name].__get__(value) for name in names)


def _builtin(walk: _Digests, value: Any) -> list[bytes]:
    owner = value.__self__
    return [value.__qualname__.encode(), b"" if type(owner) is types.ModuleType else walk.of(owner)]


#: How to look into a type, found by the first base that is listed. Methods are those of the base: a user's are not run.
HANDLERS: dict[type, Callable[[_Digests, Any], list[bytes]]] = {
    type(None): lambda walk, value: [],
    type(...): lambda walk, value: [],
    int: _said(int.__repr__),
    float: _said(float.__repr__),
    complex: _said(complex.__repr__),
    str: _said(str.__str__),
    bytes: lambda walk, value: [bytes.__getitem__(value, slice(None))],
    bytearray: lambda walk, value: [bytes(bytearray.__getitem__(value, slice(None)))],
    range: _said(repr),
    slice: _of(slice, "start", "stop", "step"),
    tuple: lambda walk, value: walk.sequence(tuple.__iter__(value)),
    list: lambda walk, value: walk.sequence(list.__iter__(value)),
    deque: lambda walk, value: walk.all(deque.__iter__(value)),
    set: lambda walk, value: _sorted(walk, set.__iter__(value)),
    frozenset: lambda walk, value: _sorted(walk, frozenset.__iter__(value)),
    dict: lambda walk, value: _pairs(walk, dict.items(value)),
    decimal.Decimal: _said(decimal.Decimal.__str__),
    fractions.Fraction: _said(fractions.Fraction.__str__),
    datetime.datetime: _said(datetime.datetime.isoformat),
    datetime.date: _said(datetime.date.isoformat),
    datetime.timedelta: _said(datetime.timedelta.__repr__),
    uuid.UUID: _said(uuid.UUID.__str__),
    pathlib.PurePath: _said(pathlib.PurePath.__str__),
    re.Pattern: _of(re.Pattern, "pattern", "flags"),
    np.ndarray: _Digests.array,
    np.generic: lambda walk, value: [np.generic.dtype.__get__(value).str.encode(), np.generic.tobytes(value)],
    np.dtype: _said(np.dtype.__str__),
    np.ufunc: _said(lambda value: value.__name__),
    types.FunctionType: _Digests.function,
    types.MethodType: _of(types.MethodType, "__func__", "__self__"),
    types.BuiltinFunctionType: _builtin,
    types.MethodDescriptorType: _said(lambda value: value.__qualname__),
    types.WrapperDescriptorType: _said(lambda value: value.__qualname__),
    types.MethodWrapperType: _of(types.MethodWrapperType, "__name__", "__self__"),
    types.ModuleType: _said(lambda value: value.__name__),
    functools.partial: _of(functools.partial, "func", "args", "keywords"),
    functools.cached_property: lambda walk, value: walk.all(part for name, part in _fields(value) if name == "func"),
    types.SimpleNamespace: lambda walk, value: walk.named(_fields(value)),
    property: _of(property, "fget"),
    staticmethod: _of(staticmethod, "__func__"),
    classmethod: _of(classmethod, "__func__"),
    type: _Digests.cls,
}
