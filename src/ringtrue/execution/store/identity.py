"""What a study is made of, in a few short texts: enough to say what changed when a stored replicate is another today.

Functions are known by their sources and by what these reach: globals, closures, modules of the user's imported anywhere
inside. Objects are known by their fields or, if a library made them, by what they say of themselves to be copied. What
a function writes to while it runs, a memo or a compiled model, is no part of it. Nothing of the user's is called; what
cannot be looked into counts with its type, and a tag is for that. This module knows nothing of files.
"""

from __future__ import annotations

import ast
import copyreg
import functools
import hashlib
import platform
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...question.study import Study
from . import sources
from .sources import is_library

#: The parts of a fingerprint that may change and the study be the same.
SOURCES = ("belief", "truth", "model", "procedure", "f")
#: Characters of a description.
_SHORT = 80
_PLAIN = {int, float, bool, str, bytes, complex, type(None), type(...), range}
#: Methods that make an object what it is; what they write is not found on the way.
_MAKING = {"__init__", "__post_init__", "__new__", "__setstate__"}


def fingerprint(study: Study, tag: str = "", *, keep: str | None = None) -> dict[str, str]:
    """Return what a study is made of, field by field.

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
    >>> from ringtrue import Normal
    >>> study = Study(Normal(0, 1), lambda t: t, lambda mu0, y: Normal(y, 1))
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
    }


def described(value: Any) -> str:
    """Return a short description of anything, with a digest of all that can be seen of it.

    Examples
    --------
    >>> described(1.5) == described(1.5), described(1.5) == described(2.5)
    (True, False)
    """
    try:
        digest = _Walk().digest(value)
    except Exception:  # a fingerprint is no reason for a run to fail
        digest = "unseen"
    return f"{_short(value)}, {digest}"


def versions() -> dict[str, str]:
    """Return the versions that matter to random numbers and to reading a store.

    Examples
    --------
    >>> sorted(versions())
    ['numpy', 'python', 'ringtrue']
    """
    from importlib.metadata import PackageNotFoundError, version  # only writing a store needs it

    try:
        own = version("ringtrue")
    except PackageNotFoundError:  # run from a checkout
        own = "unknown"
    return {"ringtrue": own, "numpy": np.__version__, "python": platform.python_version()}


def united(*lists: Iterable[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    """Return what is in any of several lists, each once, in the order in which they came."""
    found: list[Mapping[str, str]] = []
    for one in (one for some in lists for one in some):
        if one not in found:
            found.append(one)
    return tuple(found)


def differences(known: Iterable[Mapping[str, str]], mine: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return in what a fingerprint differs from the nearest of others; what one of the two does not have is equal."""
    chosen = [name for name in names if name in mine]
    return min(([name for name in chosen if one.get(name, mine[name]) != mine[name]] for one in known), key=len)


def _short(value: Any) -> str:
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)[:_SHORT]
    if kind is types.FunctionType:
        return f"function {value.__name__}"[:_SHORT]
    if kind is np.ndarray:
        return repr(value.item()) if value.ndim == 0 and value.dtype.kind in "biuf" else f"array {value.shape}"
    if kind in (dict, list, tuple):
        return f"{kind.__name__} of {len(value)}"
    name = str(_own(kind, "__name__"))
    if "__dataclass_fields__" not in _own(kind, "__dict__"):
        return name[:_SHORT]
    fields = ", ".join(f"{field}={_short(part)}" for field, part in _fields(value))
    return f"{name}({fields})" if len(fields) < _SHORT else f"{name}({fields[:_SHORT]}...)"


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
            if type(part) not in _PLAIN:
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
        if kind in _PLAIN:
            return _bytes(f"{kind.__name__} {value!r}"), ()
        own, children = next((look for base, look in _LOOKS.items() if issubclass(kind, base)), _nothing)(self, value)
        if not is_library(_module(kind)):
            children = [*children, ("", kind), *_fields(value)]
        elif kind not in _LOOKS:
            children = [*children, *_wrapped(value), *_parts(value)]
        return _bytes(_type_name(kind)) + b" " + own, children

    def function(self, value: types.FunctionType) -> _Seen:
        """Look into a function: its source, its defaults, its closure, and what it refers to."""
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        children = [*((name, _content(cell)) for name, cell in cells), *_wrapped(value)]
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


def _own(cls: type, name: str) -> Any:
    """Return an attribute of a type as ``type`` has it, whatever a metaclass would say."""
    return type.__dict__[name].__get__(cls)


def _module(cls: type) -> str:
    module = _own(cls, "__dict__").get("__module__")
    return module if type(module) is str else "builtins"  # the type of functions has a descriptor there


def _type_name(cls: type) -> str:
    # A user's script is __main__ when it is run and has a name when it is imported: its classes have no module here.
    name = _own(cls, "__name__")
    return f"{_module(cls)}.{_own(cls, '__qualname__')}" if is_library(_module(cls)) else str(name)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return "an empty cell"


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


def _wrapped(value: Any) -> list[tuple[str, Any]]:
    """Return the user's function inside what a library made of it."""
    found = []
    for name in ("__wrapped__", "py_func"):
        with suppress(Exception):
            found.append(("", getattr(value, name)))
    return found


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Return what an object consists of, without asking the object: its fields, or what it was given, and its slots."""
    mro = _own(type(value), "__mro__")
    with suppress(AttributeError):
        held = object.__getattribute__(value, "__dict__")
        if type(held) is dict:
            yield from _lasting(type(value), held)
    for base in mro:
        for name, part in _own(base, "__dict__").items():
            if type(part) is types.MemberDescriptorType and not is_library(_module(base)):
                with suppress(AttributeError):  # an empty slot
                    yield name, part.__get__(value)


def _lasting(kind: type, held: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the attributes of an object without those that were computed on the way."""
    mro = _own(kind, "__mro__")
    declared = next((d for base in mro if type(d := _own(base, "__dict__").get("__dataclass_fields__")) is dict), held)
    computed = {
        name for base in mro for name, part in _own(base, "__dict__").items() if type(part) is functools.cached_property
    }
    chosen = sorted(name for name in declared if type(name) is str and name in held and name not in computed)
    yield from ((name, held[name]) for name in chosen)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Return what an object of a library's says that it consists of; nothing if it cannot be copied."""
    try:
        registered = copyreg.dispatch_table.get(type(value))
        made = value.__reduce_ex__(4) if registered is None else registered(value)
    except Exception:  # locks, files, connections
        return
    if isinstance(made, str):
        yield "", made
        return
    for part in made[1:]:
        if type(part) is dict:
            yield from _lasting(type(value), part)
        elif isinstance(part, (tuple, list)):
            yield from (("", one) for one in part)
        elif isinstance(part, Iterator):
            yield "", list(part)
        else:
            yield "", part


def _array(walk: _Walk, value: Any) -> _Seen:
    form = _bytes(f"{np.ndarray.dtype.__get__(value)} {np.ndarray.shape.__get__(value)} ")
    if np.ndarray.dtype.__get__(value).hasobject:
        return form, [("", np.ndarray.tolist(value))]
    mask = [part for part in _fields(value) if part[0] == "_mask"]
    return form + np.ndarray.tobytes(value), mask


def _sequence(walk: _Walk, values: Iterable[Any]) -> _Seen:
    """Look at values in their order; plain ones, which may be many, at once."""
    listed = list(values)
    if set(map(type, listed)) <= _PLAIN:
        return _bytes(repr(listed)), ()
    return _bytes(str(len(listed))), [("", one) for one in listed]


def _set(walk: _Walk, values: Iterable[Any]) -> _Seen:
    listed = list(values)
    plain = set(map(type, listed)) <= _PLAIN  # the order of others is not the same in every process
    return _bytes(repr(sorted(map(repr, listed)) if plain else len(listed))), ()


def _dict(walk: _Walk, value: Any) -> _Seen:
    keys, values = _sequence(walk, dict.keys(value)), _sequence(walk, dict.values(value))
    return keys[0] + b" " + values[0], [*keys[1], *values[1]]


def _class(walk: _Walk, value: type) -> _Seen:
    """Look into a class: a name if it is a library's, else its bases and what it defines."""
    if is_library(_module(value)):
        return _bytes(_type_name(value)), ()
    own = sorted(item for item in _own(value, "__dict__").items() if _matters(*item))
    return _bytes(_type_name(value)), [*(("", base) for base in _own(value, "__mro__")[1:]), *own]


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
