"""Reducers: from a block of replicates to the few numbers that are kept of each.

A reducer is a file in this folder with a ``REDUCER``: it declares the arrays that it fills and turns a block into them.
Nothing else has to know of it: the record carries whatever arrays there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..block import Block, Uneven
from ..record import DIAGNOSTIC, SHARES, TIED, Field


class Reducer(Protocol):
    """What a file of this folder provides."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """Arrays that are there for every replicate; those that only some runs have need not be declared."""

    @property
    def keep(self) -> str | None:
        """The ``keep=`` of a run that asks for it; None if every run does."""

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return arrays by name, the replicate on axis 0."""


@cache
def reducers(keep: str | None = None) -> tuple[Reducer, ...]:
    """Return the reducers of a run."""
    found = [import_module(f"{__name__}.{module.name}").REDUCER for module in iter_modules(__path__)]
    return tuple(one for one in found if one.keep in (None, keep))


@cache
def fields() -> tuple[Field, ...]:
    """Return all declared arrays."""
    return tuple(field for one in reducers() for field in one.fields)


def reduce(block: Block, keep: str | None = None) -> dict[str, NDArray[Any]]:
    """Return everything that is kept of a block; of outputs that differ in their draws, what all of them have."""
    block.need_route()
    try:
        return {name: array for one in reducers(keep) for name, array in one(block).items()}
    except Uneven:
        parts = [reduce(block.alone(j), keep) for j in range(block.b)]
    return _of_all(parts)


def _of_all(parts: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Put replicates that were reduced alone side by side: the arrays that all of them have in one form."""
    names = dict.fromkeys(name for part in parts for name in part)
    # A sampler that says nothing of itself in one replicate does not silence the others.
    blank: dict[str, NDArray[Any]] = {name: np.full(1, np.nan) for name in names if name.startswith(DIAGNOSTIC)}
    # What has no ties in one replicate may have them in others.
    blank |= {name: np.zeros_like(part[name]) for part in parts for name in part if name.startswith(TIED)}
    blank |= {name: np.full_like(part[name], np.nan) for part in parts for name in part if name.startswith(SHARES)}
    whole = [{**blank, **part} for part in parts]
    forms = {name: {part[name].shape[1:] if name in part else None for part in whole} for name in names}
    return {name: np.concatenate([part[name] for part in whole]) for name, form in forms.items() if len(form) == 1}


reducers()  # the files of this folder are imported with it
