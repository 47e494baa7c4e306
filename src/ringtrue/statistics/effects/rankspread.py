"""Spread and bias from ranks: the maximum of the rank likelihood, its sandwich, or its profile where it has none."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .inputs import Floats, Ints
from .measure import SpreadAndBias, both, student
from .moments import moments_of_counts, solve_moments
from .ranklikelihood import LARGEST, NODES, SMALLEST, STEP, Point, cells_of, kernel_of, maximise


def from_counts(counts: Ints, draws: int, level: float) -> SpreadAndBias:
    """Return spread and bias from counts of ranks."""
    cells = np.add.reduceat(counts, cells_of(draws)).astype(np.float64)
    seen = np.flatnonzero(cells)
    kernel, cells = kernel_of(draws)[seen], cells[seen]
    found = interior_maximum(kernel, cells, counts)
    if found is None:
        return _from_profile(kernel, cells, float(special.ndtri(_mean(counts))), level)
    return _from_sandwich(*found, cells, level)


def interior_maximum(kernel: Floats, cells: Floats, counts: Ints) -> tuple[Floats, Point] | None:
    """Return where the rank likelihood of (delta, log s) is largest; None if it has no interior maximum."""
    if cells.size <= 2:
        return None
    first = _mean(counts)
    spread, _ = solve_moments(np.array([first]), np.array([moments_of_counts(counts)[1]]))
    s = min(max(float(spread[0]), 0.1), 20.0)
    return maximise(kernel, cells, np.array([float(special.ndtri(first)) * math.hypot(1, s), math.log(s)]))


def _mean(counts: Ints) -> float:
    """Return the mean of u, half a rank away from the ends so that its normal score is finite."""
    edge = 0.5 / (float(counts.sum()) * (counts.size - 1))
    return min(max(moments_of_counts(counts)[0], edge), 1 - edge)


def _from_sandwich(at: Floats, point: Point, counts: Floats, level: float) -> SpreadAndBias:
    n = float(counts.sum())
    inverse = np.linalg.inv(-point.hessian)
    squares = (inverse @ point.scores.T) ** 2
    sandwich, fourth = squares @ counts, squares**2 @ counts
    # The model's own variance is steadier in small samples, the sandwich right for any law: take the larger.
    variance = np.maximum(sandwich * n / (n - 1), np.diag(inverse))
    df = 2 * n / np.maximum(n * fourth / sandwich**2 - 1, 2 * n / (n - 1))
    by_bias, by_spread = (student(level, max(float(f), 2.0)) * math.sqrt(v) for f, v in zip(df, variance, strict=True))
    # The same unbiasing of the variance as on the continuum, which is the limit of many draws.
    delta, log_s = float(at[0]), float(at[1]) + 0.5 * math.log(n / (n - 1))
    ends = (math.exp(log_s - by_spread), math.exp(min(log_s + by_spread, 700.0)))
    return both((math.exp(log_s), *ends), (delta, delta - by_bias, delta + by_bias))


def _from_profile(kernel: Floats, counts: Floats, a: float, level: float) -> SpreadAndBias:
    """Project the likelihood region onto both parameters; where it leaves the grid the interval is unbounded.

    The grid is in log s and delta / sqrt(1 + s^2): the latter is the normal score of E u, known well when
    nothing else is, and so the grid is densest around its estimate.
    """
    log_s = np.linspace(math.log(SMALLEST), math.log(LARGEST), 70)
    away = np.geomspace(3e-3, 8.0, 30)
    score = a + np.concatenate([-away[::-1], [0.0], away])
    delta = score * np.hypot(1, np.exp(log_s))[:, None]
    value = np.array([_log_likelihoods(kernel, counts, row, at) for row, at in zip(delta, log_s, strict=True)])
    n = float(counts.sum())
    inside = _dilated(value >= value.max() - 0.5 * student(level, n - 1) ** 2)
    best = value >= value.max() - 1e-6
    return both(_projected_spread(inside, best, log_s), _projected_bias(inside, best, delta))


def _log_likelihoods(kernel: Floats, counts: Floats, delta: Floats, log_s: float) -> Floats:
    # Exact masses of the cells around the nodes: coarser than `weights_of` but a law wherever delta lies.
    below = special.ndtr((NODES[:-1, None] + STEP / 2 - delta) * math.exp(-log_s))
    weights = np.diff(below, axis=0, prepend=0.0, append=1.0)
    log_p: Floats = np.log(np.maximum(kernel @ weights, 1e-300))
    return counts @ log_p


def _dilated(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The region and its neighbours on the grid: its true edge lies between the two."""
    padded = np.pad(inside, 1)
    across = padded[1:-1] | padded[:-2] | padded[2:]
    return across[:, 1:-1] | across[:, :-2] | across[:, 2:]


def _projected_spread(inside: NDArray[np.bool_], best: NDArray[np.bool_], log_s: Floats) -> tuple[float, float, float]:
    s = np.exp(log_s)
    s[[0, -1]] = 0.0, math.inf
    reached, likeliest = s[inside.any(axis=1)], s[best.any(axis=1)]
    estimate = _common_value(likeliest)
    return estimate, float(reached[0]), float(reached[-1])


def _projected_bias(inside: NDArray[np.bool_], best: NDArray[np.bool_], delta: Floats) -> tuple[float, float, float]:
    # At infinite spread a finite E u away from a half is an infinite bias; so is E u = 0 or 1 at any spread.
    limit = delta.copy()
    limit[:, 0], limit[:, -1] = -math.inf, math.inf
    limit[-1] = np.where(delta[-1] == 0, 0.0, np.copysign(math.inf, delta[-1]))
    reached = limit[inside]
    return _common_value(limit[best]), float(reached.min()), float(reached.max())


def _common_value(likeliest: Floats) -> float:
    """The maximiser; its limit where the likelihood rises for ever; nan where it is flat both ways."""
    unbounded = likeliest[(likeliest == 0) | np.isinf(likeliest)]
    if unbounded.size == 0:
        return float(np.median(likeliest))
    return float(unbounded[0]) if np.all(unbounded == unbounded[0]) else math.nan
