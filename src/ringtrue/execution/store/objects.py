"""What an object consists of, without asking the object: fields, slots, closures, what a library says of its own.

This module knows nothing of sources and digests.
"""

from __future__ import annotations

import copyreg
import functools
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from .sources import is_library

#: Types whose values have no parts.
PLAIN = {int, float, bool, str, bytes, complex, type(None), type(...), range}


def of_type(cls: type, name: str) -> Any:
    """Return an attribute of a type as ``type`` has it, whatever a metaclass would say."""
    return type.__dict__[name].__get__(cls)


def module_name(cls: type) -> str:
    """Return where a class says it was defined."""
    module = of_type(cls, "__dict__").get("__module__")
    return module if type(module) is str else "builtins"  # the type of functions has a descriptor there


def type_name(cls: type) -> str:
    """Return what a class is called, with its module if it is a library's."""
    # A user's script is __main__ when it is run and has a name when it is imported: its classes have no module here.
    name = of_type(cls, "__name__")
    return f"{module_name(cls)}.{of_type(cls, '__qualname__')}" if is_library(module_name(cls)) else str(name)


def content(cell: types.CellType) -> Any:
    """Return what a closure holds."""
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return "an empty cell"


def wrapped(value: Any) -> list[tuple[str, Any]]:
    """Return the user's function inside what a library made of it."""
    found = []
    for name in ("__wrapped__", "py_func"):
        with suppress(Exception):
            found.append(("", getattr(value, name)))
    return found


def fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Return what an object consists of, without asking the object: its fields, or what it was given, and its slots."""
    mro = of_type(type(value), "__mro__")
    with suppress(AttributeError):
        held = object.__getattribute__(value, "__dict__")
        if type(held) is dict:
            yield from _lasting(type(value), held)
    for base in mro:
        for name, part in of_type(base, "__dict__").items():
            if type(part) is types.MemberDescriptorType and not is_library(module_name(base)):
                with suppress(AttributeError):  # an empty slot
                    yield name, part.__get__(value)


def _lasting(kind: type, held: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the attributes of an object without those that were computed on the way."""
    mro = of_type(kind, "__mro__")
    declared = next(
        (d for base in mro if type(d := of_type(base, "__dict__").get("__dataclass_fields__")) is dict), held
    )
    computed = {
        name
        for base in mro
        for name, part in of_type(base, "__dict__").items()
        if type(part) is functools.cached_property
    }
    chosen = sorted(name for name in declared if type(name) is str and name in held and name not in computed)
    yield from ((name, held[name]) for name in chosen)


def parts(value: Any) -> Iterator[tuple[str, Any]]:
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
