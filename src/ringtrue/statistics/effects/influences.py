"""How much each replicate moves the estimates of spread and bias: what joint intervals over many are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .inputs import HUGE, Floats, as_counts, as_values
from .ranklikelihood import cells_of, kernel_of
from .rankspread import interior_maximum


@dataclass(frozen=True, eq=False)
class Influences:
    """Estimates of bias and log spread, and the influence of each replicate on them, (n, 2); its mean is 0."""

    bias: float
    log_spread: float
    values: Floats


def influences(values: ArrayLike, *, draws: int | None = None) -> Influences | None:
    """Return the influence of each replicate on bias and log spread; None if one of them has no finite estimate.

    Parameters
    ----------
    values : array_like, shape (n,)
        Normal scores z; with `draws`, integer ranks in {0, ..., draws}.
    draws : int, optional
        The number of draws M.

    Examples
    --------
    >>> influences([-1.0, 1.0]).values
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    return _of_scores(as_values(values, "z")) if draws is None else _of_ranks(np.asarray(values), draws)


def _of_scores(z: Floats) -> Influences | None:
    if z.size < 2 or np.abs(z).max() >= HUGE:
        return None
    mean, square = float(z.mean()), float(z.var())
    if square <= (1e-12 * max(1.0, abs(mean))) ** 2:
        return None
    apart = z - mean
    log_s = 0.5 * math.log(square * z.size / (z.size - 1))
    return Influences(mean, log_s, np.column_stack([apart, (apart**2 / square - 1) / 2]))


def _of_ranks(ranks: Floats, draws: int) -> Influences | None:
    counts, starts = as_counts(ranks, draws), cells_of(draws)
    cells = np.add.reduceat(counts, starts).astype(np.float64)
    seen = np.flatnonzero(cells)
    found = interior_maximum(kernel_of(draws)[seen], cells[seen], counts)
    if found is None:
        return None
    at, point = found
    n = ranks.size
    by_cell = np.zeros((cells.size, 2))
    by_cell[seen] = n * point.scores @ np.linalg.inv(-point.hessian)
    log_s = float(at[1]) + 0.5 * math.log(n / (n - 1))
    return Influences(float(at[0]), log_s, by_cell[np.searchsorted(starts, ranks, side="right") - 1])
