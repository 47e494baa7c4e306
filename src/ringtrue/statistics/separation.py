"""Where flagged members of a sample lie: which of several quantities tells them from the others, and by which border.

This module sees arrays and must not know what was flagged, and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .arguments import Floats


@dataclass(frozen=True)
class Direction:
    """A quantity in which flagged members lie lower, or higher, than others: its column, and how sure that is.

    ``pvalue`` is that of Wilcoxon's rank sum, for all columns together (Bonferroni).
    """

    column: int
    low: bool
    pvalue: float


@dataclass(frozen=True)
class Border:
    """A border beyond which many are flagged: below it if ``low``, above it otherwise.

    ``beyond`` members lie there, and ``flagged_beyond`` of them are flagged; the rest lies on the other side.
    """

    value: float
    low: bool
    beyond: int
    flagged_beyond: int


def direction(values: Floats, flagged: NDArray[Any]) -> Direction | None:
    """Return in which quantity flagged members differ most from others, by the sum of their ranks.

    The null hypothesis is that flags have nothing to do with any of the quantities: all choices of as many flagged
    members are equally likely. It sees shifts, and is blind to flags on both sides of a middle.

    Parameters
    ----------
    values
        (n, quantities).
    flagged
        (n,): which members are.

    Returns
    -------
    Direction or None
        None if all or none are flagged, or no quantity varies.

    Notes
    -----
    The sum's mean and variance over all choices are exact, with ties too; its law is taken for normal. That is
    conservative where it matters: in the far tails the sum has a bound and the normal law has none.

    Examples
    --------
    >>> direction(np.arange(20.0)[:, None], np.arange(20) < 5).low
    True
    """
    n, many = len(flagged), int(np.sum(flagged))
    centred = _ranks(values) - (n + 1) / 2
    squares = np.square(centred).sum(axis=0)
    if not 0 < many < n or not squares.any():
        return None
    variance = many * (n - many) / (n * (n - 1)) * squares
    with np.errstate(invalid="ignore"):
        z = np.where(variance > 0, centred[flagged].sum(axis=0) / np.sqrt(variance), 0.0)
    best = int(np.argmax(np.abs(z)))
    return Direction(best, bool(z[best] < 0), min(1.0, 2 * len(z) * float(special.ndtr(-abs(z[best])))))


def _ranks(values: Floats) -> Floats:
    """Return ranks along axis 0; equal numbers share the mean of theirs."""
    columns = []
    for column in values.T:
        _, places, counts = np.unique(column, return_inverse=True, return_counts=True)
        last = np.cumsum(counts)
        columns.append((last - (counts - 1) / 2)[places])
    return np.stack(columns, axis=1)


def border(values: Floats, flagged: NDArray[Any], *, low: bool, least: int) -> Border:
    """Return the border that tells flagged members from others.

    If the ``least`` or more farthest members are all flagged, it is the one beyond which all of them are; otherwise
    that where the shares of flagged and of other members beyond differ most. It is a number of few digits between two
    members, so that the counts are exact.

    Parameters
    ----------
    values
        (n,).
    flagged
        (n,): which members are; some, and not all.
    low
        Whether flagged members lie low.
    least
        How many must all be flagged for a border without exceptions.

    Examples
    --------
    >>> border(np.array([0.1, 0.2, 0.71, 0.9]), np.array([True, True, False, True]), low=True, least=2)
    Border(value=0.3, low=True, beyond=2, flagged_beyond=2)
    """
    sign = 1.0 if low else -1.0
    order = np.argsort(sign * values, kind="stable")
    ordered, flags = (sign * values)[order], flagged[order]
    # A border cannot part equal numbers.
    ends = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1
    hits = np.cumsum(flags)[ends - 1]
    pure = ends[(hits == ends) & (ends >= least)]
    if pure.size:
        cut = int(pure[-1])
    else:
        shares = hits / flags.sum() - (ends - hits) / (~flags).sum()
        cut = int(ends[np.argmax(shares)])
    return Border(sign * _between(ordered[cut - 1], ordered[cut]), low, cut, int(flags[:cut].sum()))


def _between(below: float, above: float) -> float:
    """Return a number of few digits between two; the larger one if they are too near for that."""
    largest = math.floor(math.log10(above - below)) + 1
    for power in range(largest, largest - 3, -1):
        # In units of a power of ten, the first that is larger: few digits where the gap is wide.
        unit = Decimal(10) ** power
        found = float((Decimal(float(below)) // unit + (below >= 0)) * unit)
        if below < found < above:
            return found
    return float(above)
