"""What a parameter is: an array, a dict of named arrays, or an object such as a function.

Values come with *leading axes*: none for one parameter, one for draws or replicates, two for draws x replicates; the
parameter's own axes follow. This module knows shapes, and nothing of what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Generator = np.random.Generator
Numbers = Any  # a number or an array of numbers


class Identified:
    """Something that says itself what it is: two of the same identity do the same, in whichever process they were made.

    Models of other libraries have graphs and compiled code inside, which look different every time they are built.
    """

    @property
    def identity(self) -> str:
        """All that its behaviour depends on, as text."""
        raise NotImplementedError


def as_array(value: Any) -> NDArray[Any]:
    """Return an array, of a tensor of torch too that has gradients or lies on another device."""
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def take(value: Any, index: Any) -> Any:
    """Index the leading axes of a value, be it an array, a dict of arrays or a sequence of objects."""
    if isinstance(value, np.ndarray):  # first, since asking an abstract class is slow
        return value[index]
    if isinstance(value, Mapping):
        return {name: part[index] for name, part in value.items()}
    if isinstance(value, (list, tuple)) and isinstance(index, tuple):
        # A list of objects cannot be indexed by a tuple, as arrays of two leading axes are.
        (index,) = index  # objects have one leading axis only
    return value[index]


def leading_shape(value: Any, lead: int) -> tuple[int, ...]:
    """Return the shape of the leading axes of a value."""
    if lead == 0:
        return ()
    if isinstance(value, Mapping):
        value = next(iter(value.values()))
    return np.shape(value)[:lead] if isinstance(value, np.ndarray) else (len(value),)[:lead]


def stack_values(values: Sequence[Any], axis: int = 0) -> Any:
    """Stack values along a new axis: arrays to an array, dicts to a dict, anything else to a list."""
    first = values[0]
    if isinstance(first, Mapping):
        return {key: stack_values([value[key] for value in values], axis) for key in first}
    if isinstance(first, (int, float, bool, np.generic, np.ndarray, list, tuple)):
        if _alike(values):
            return np.ascontiguousarray(np.moveaxis(np.array(values), 0, axis))
        return np.stack([np.asarray(value) for value in values], axis)
    # Functions and other objects cannot be stacked; a list of them has one leading axis all the same.
    return list(values)


def _alike(values: Sequence[Any]) -> bool:
    """Whether values are arrays of one shape, type and layout, or doubles: a stack of these is one call of NumPy."""
    kinds = set(map(type, values))
    if kinds != {np.ndarray}:
        return kinds == {np.float64}
    # Other layouts make stacks of other layouts, whose sums round differently.
    return values[0].flags.c_contiguous and len({(value.shape, value.strides, value.dtype) for value in values}) == 1


def copied(value: Any) -> Any:
    """Return a value whose arrays are its own."""
    if isinstance(value, np.ndarray):
        return value.copy()
    # Only plain dicts: a user's own mapping may not be made anew from its items, and is left alone.
    return {name: copied(part) for name, part in value.items()} if type(value) is dict else value


def entries(value: Any, lead: int) -> Floats | None:
    """Return a value's numbers on the last axis, behind its leading ones; None if it is not made of numbers.

    Examples
    --------
    >>> entries({"b": np.ones((3, 2, 2)), "a": np.zeros(3)}, 1).tolist()[0]
    [0.0, 1.0, 1.0, 1.0, 1.0]
    """
    if isinstance(value, Mapping):
        # Sorted, so that a dict written in another order has the same entries in the same places.
        parts = [entries(value[name], lead) for name in sorted(value)]
        found = [part for part in parts if part is not None]
        return np.concatenate(found, axis=-1) if found and len(found) == len(parts) else None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        return None
    return value.reshape(*value.shape[:lead], -1).astype(np.float64)


def width(value: Any) -> int:
    """Return how many numbers one parameter has, given one leading axis; 1 for an object."""
    if isinstance(value, Mapping):
        return sum(width(part) for part in value.values())
    return int(np.prod(value.shape[1:], initial=1)) if isinstance(value, np.ndarray) else 1
