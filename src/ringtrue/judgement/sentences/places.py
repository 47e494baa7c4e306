"""Where in the outputs truths are too many or too few."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...replicates.record import Replicates
from ..diagnosis import Kind
from ..result import percent

Floats = NDArray[np.float64]


def column_of(replicates: Replicates, f: str) -> int:
    """Return the number of a test function."""
    return next(k for k, column in enumerate(replicates.columns) if column.name == f)


def where_off(replicates: Replicates, f: str) -> str:
    """Say in which fifth of the output truths are too many or too few."""
    share = _fifths(replicates, f)
    j = int(np.argmax(np.abs(share - 0.2)))
    word = "many" if share[j] > 0.2 else "few"
    return f"too {word} truths ({percent(float(share[j]))}, not 20 %) {_fifth(j)}"


def place(replicates: Replicates, f: str, kind: Kind) -> str:
    """Say where a shape of a kind shows: in the middle fifth, in the tails, or in the fifth that is most off."""
    share = _fifths(replicates, f)
    if kind == "flat":
        u = replicates.u[replicates.rows, column_of(replicates, f)]
        outside = float(np.mean(np.abs(u - 0.5) > 0.475))
        return f"{percent(outside)} of them, not 5 %, outside 95 % intervals" if outside < 0.05 else ""
    middle = {"uneven": share[2] > 0.2, "two-sided": share[2] < 0.2}.get(kind, False)
    j = 2 if middle else int(np.argmax(np.abs(share - 0.2)))
    return f"{percent(float(share[j]))} of them, not 20 %, {_fifth(j)}"


def _fifths(replicates: Replicates, f: str) -> Floats:
    u = replicates.u[replicates.rows, column_of(replicates, f)]
    return np.asarray(np.histogram(u, bins=5, range=(0, 1))[0] / len(u))


def _fifth(j: int) -> str:
    return f"between the {20 * j} % and {20 * (j + 1)} % points of the output"
