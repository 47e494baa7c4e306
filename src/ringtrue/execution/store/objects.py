"""What an object consists of, without asking the object: fields, slots, closures, what a library says of its own.

This module knows nothing of sources and digests.
"""

from __future__ import annotations

import copyreg
import functools
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from .sources import is_library

#: Types whose values have no parts.
PLAIN = {int, float, bool, str, bytes, complex, type(None), type(...), range}
#: What is found where there is nothing.
MISSING: Final = object()


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


def space_of(module: types.ModuleType) -> dict[str, Any]:
    """Return the variables of a module."""
    return object.__getattribute__(module, "__dict__")  # type: ignore[no-any-return]


def held_by(value: Any) -> dict[str, Any]:
    """Return the attributes that an object has of its own."""
    with suppress(AttributeError):
        held = object.__getattribute__(value, "__dict__")
        if type(held) is dict:
            return held
    return {}


def attribute(value: Any, name: str) -> Any:
    """Return an attribute of an object, as it is kept: a property is not computed."""
    kind = type(value)
    if name == "__class__":
        return kind
    if issubclass(kind, types.ModuleType):
        return space_of(value).get(name, MISSING)
    bases = of_type(value if issubclass(kind, type) else kind, "__mro__")
    spaces = [held_by(value), *(of_type(base, "__dict__") for base in bases)]
    found = next((space[name] for space in spaces if name in space), MISSING)
    if type(found) is types.MemberDescriptorType:
        with suppress(AttributeError, TypeError):  # an empty slot
            return found.__get__(value)
    return found


def wrapped(value: Any) -> list[tuple[str, Any]]:
    """Return the user's function inside what a library made of it."""
    found = []
    for name in ("__wrapped__", "py_func"):
        with suppress(Exception):
            found.append(("", getattr(value, name)))
    return found


def fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Return what an object consists of, without asking the object: its fields, or what it was given, and its slots."""
    yield from _lasting(type(value), held_by(value))
    for base in of_type(type(value), "__mro__"):
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
    declared = declared if is_library(module_name(kind)) else held  # a user's may have others, and a memo is known
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
