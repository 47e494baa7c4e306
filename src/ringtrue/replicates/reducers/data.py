"""Summaries of the data: a few numbers per dataset, to ask where among all data outputs are wrong.

The user names them; otherwise they are the entries of a short dataset, or mean, sd and change of a long one: functions
of one dataset alone. Only the first replicates have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...characters import one_line
from ...errors import InvalidStudy
from ...values import Floats, take
from ..block import Block
from ..record import OF_DATA, Field
from .inputs import in_a_row, in_rows

#: Replicates whose data are summarised.
_LOOKED = 20_000
#: A dataset of so few numbers is summarised by all of them; and of so many by none, since it takes its time.
_SHORT, _LONG = 6, 100_000
#: Summaries that a user may name.
_MOST = 20


class Data:
    """One array per summary, under ``data/``."""

    fields: tuple[Field, ...] = ()
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return the summaries of the first replicates, nan for the others."""
        few = int(np.searchsorted(block.index, _LOOKED))
        if block.y is None or not few:
            return {}
        found = _named(block, few) if block.question.summary is not None else _chosen(block.y, few)
        arrays = {name: np.full(block.b, np.nan) for name in found}
        for name, values in found.items():
            arrays[name][:few] = values
        return {f"{OF_DATA}{name}": array for name, array in arrays.items()}


def _named(block: Block, few: int) -> dict[str, Floats]:
    """Return what the user's summaries say of every dataset."""
    rows = [_of_one(block.question.summary, take(block.y, j)) for j in range(few)]
    names = list(rows[0])
    if any(list(row) != names for row in rows):
        raise InvalidStudy(f"a summary must have the same numbers for every dataset, {names} at first, but it has not.")
    if len(names) > _MOST:
        raise InvalidStudy(
            f"at most {_MOST} summaries of a dataset were expected, but {len(names)} arrived; name fewer."
        )
    return {name: np.array([row[name] for row in rows]) for name in names}


def _of_one(summary: Any, y: Any) -> dict[str, float]:
    """Return named numbers of one dataset."""
    if isinstance(summary, Mapping):
        return {one_line(str(name)): _number(one(y), str(name)) for name, one in summary.items()}
    found = summary(y)
    if isinstance(found, Mapping):
        return {one_line(str(name)): _number(value, str(name)) for name, value in found.items()}
    numbers = in_a_row(found)
    if numbers is None:
        raise InvalidStudy(f"a summary must return numbers, but {type(found).__name__} arrived.")
    if len(numbers) == 1:
        return {"summary": float(numbers[0])}
    return {f"summary[{j}]": float(value) for j, value in enumerate(numbers)}


def _number(value: Any, name: str) -> float:
    numbers = in_a_row(value)
    if numbers is None or len(numbers) != 1:
        raise InvalidStudy(f"the summary {name!r} must be one number, but {value!r} arrived.")
    return float(numbers[0])


def _chosen(y: Any, few: int) -> dict[str, Floats]:
    """Return the entries of short datasets, or mean, sd and change of long ones; nothing if they are not numbers."""
    table, names = _tabled(y, few)
    if table is None or not 0 < table.shape[1] <= _LONG:
        return {}
    if table.shape[1] <= _SHORT:
        return {name: table[:, j] for j, name in enumerate(names)}
    half = table.shape[1] // 2
    with np.errstate(invalid="ignore", over="ignore"):
        change = table[:, half:].mean(axis=1) - table[:, :half].mean(axis=1)
        return {"y mean": table.mean(axis=1), "y sd": table.std(axis=1), "y change": change}


def _tabled(y: Any, few: int) -> tuple[Floats | None, list[str]]:
    """Return the first datasets as rows of numbers, and what the numbers of a row are called."""
    if isinstance(y, np.ndarray):
        if y.dtype.kind not in "biuf":
            return None, []
        return np.asarray(y[:few].reshape(few, -1), float), _names("y", y.shape[1:])
    if isinstance(y, Mapping):
        parts = [_tabled(y[name], few) for name in sorted(y, key=str)]
        if any(part is None for part, _ in parts):
            return None, []
        names = [f"{key}{name[1:]}" for key, (_, each) in zip(sorted(map(str, y)), parts, strict=True) for name in each]
        return np.concatenate([part for part, _ in parts if part is not None], axis=1), names
    return _of_list(y, few)


def _of_list(y: Sequence[Any], few: int) -> tuple[Floats | None, list[str]]:
    rows = in_rows(y[:few])
    found = [row for row in rows if row is not None]
    if len(found) < len(rows) or len({len(row) for row in found}) > 1:
        return None, []
    return np.array(found, float), _names_of(y[0])


def _names_of(one: Any) -> list[str]:
    """Return what the numbers of a dataset are called, in the order in which they stand in a row."""
    if isinstance(one, Mapping):
        return [f"{key}{name[1:]}" for key in sorted(one, key=str) for name in _names_of(one[key])]
    if isinstance(one, (list, tuple)):
        return [f"y[{j}]{name[1:]}" for j, part in enumerate(one) for name in _names_of(part)]
    return _names("y", np.shape(one))


def _names(head: str, shape: tuple[int, ...]) -> list[str]:
    return [f"{head}{list(index) if index else ''}" for index in np.ndindex(*shape)]


REDUCER = Data()
