"""Sizes of several test functions together: the largest of them, and how well covariances describe errors.

Arrays in, intervals out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from ..arguments import Floats
from .intervals import Interval, freedom, student
from .spread import Influences

#: Draws of the Gaussian multiplier bootstrap.
_DRAWS = 1000
#: Groups of replicates that a jackknife leaves out in turn.
_GROUPS = 20


def spaced(n: int, points: int) -> NDArray[np.int64]:
    """Return indices spread evenly over a sorted sample."""
    return np.unique(((np.arange(min(points, n)) + 0.5) * n / min(points, n)).astype(np.int64))


def averaged(mean: Floats, sd: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return the average of normal laws at some points, and the covariance of its noise; a few laws at a time."""
    total, outer = np.zeros(points.size), np.zeros((points.size, points.size))
    # Differences from one of the laws, so that laws which are all the same have no noise.
    first = special.ndtr((points - mean[0]) / sd[0])
    for start in range(0, mean.size, 4096):
        part = slice(start, start + 4096)
        below = special.ndtr((points - mean[part, None]) / sd[part, None]) - first
        total += below.sum(axis=0)
        outer += below.T @ below
    average = total / mean.size
    return first + average, (outer / mean.size - np.outer(average, average)) / (mean.size - 1)


def confidence_of_each(known: Sequence[Influences], column: int, confidence: float, rng: Generator) -> float:
    """Return the confidence of single intervals that hold jointly, from what every replicate adds to each estimate."""
    values = np.column_stack([one.values[:, column] for one in known])
    size = np.sqrt(np.square(values).mean(axis=0))
    values = values / np.where(size > 0, size, 1.0)
    reach = joint_reach(values.T @ values / len(values), confidence, rng)
    # Never below that of a single interval, whatever the noise of the draws.
    return max(math.erf(reach / math.sqrt(2)), confidence)


def joint_reach(covariance: Floats, confidence: float, rng: Generator) -> float:
    """Return the quantile of the largest absolute entry of a Gaussian vector.

    Given the data, sums of influences with Gaussian multipliers are exactly such a vector. Where the draws do
    not resolve the tail it is Bonferroni's bound, which is nearly sharp there.
    """
    if (1 - confidence) * _DRAWS < 10:
        largest_error = math.sqrt(float(np.diag(covariance).max()))
        return largest_error * student(1 - (1 - confidence) / len(covariance), math.inf)
    # Not Cholesky: test functions that are functions of each other make the covariance singular.
    values, vectors = np.linalg.eigh(covariance)
    drawn = (rng.standard_normal((_DRAWS, len(values))) * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return float(np.quantile(np.abs(drawn).max(axis=1), confidence))


def largest_absolute(name: str, centre: Floats, low: Floats, high: Floats) -> Interval:
    """Return the largest absolute value of several, given joint intervals of each."""
    least = np.maximum(0.0, np.maximum(low, -high))
    most = np.maximum(np.abs(low), np.abs(high))
    return Interval(name, float(np.abs(centre).max()), float(least.max()), float(most.max()), 0.0)


def anees(scaled: Floats, confidence: float) -> Interval:
    """Return the mean, with Student's interval on the logarithm."""
    centre = float(scaled.mean())
    if centre == 0:  # outputs that know the truth; nothing tells how nearly
        return Interval("ANEES/d", 0.0, 0.0, math.inf, 1.0)
    error = float(scaled.std(ddof=1)) / math.sqrt(scaled.size) / centre
    half = student(confidence, freedom(scaled - centre)) * error
    return Interval("ANEES/d", centre, centre * math.exp(-half), centre * math.exp(min(half, 700.0)), 1.0)


def nci(squares: Floats, errors: Floats, confidence: float) -> Interval:
    """Return the mean log ratio of the two metrics; the estimated one has an influence, and a bias, of its own."""
    n = len(errors)
    logs = np.log(np.maximum(squares, 1e-300))
    white = np.linalg.solve(np.linalg.cholesky(errors.T @ errors / n), errors.T).T
    own = np.square(white).sum(axis=1)
    slope = (white / own[:, None]).T @ white / n
    ratio = logs - np.log(own)
    influence = ratio - ratio.mean() + np.einsum("ij,jk,ik->i", white, slope, white) - np.trace(slope)
    centre, decibel = _without_bias(logs, white), 10 / math.log(10)
    half = student(confidence, freedom(influence)) * float(influence.std(ddof=1)) / math.sqrt(n)
    return Interval("NCI (dB)", decibel * centre, decibel * (centre - half), decibel * (centre + half), 0.0)


def _without_bias(logs: Floats, white: Floats) -> float:
    """Return the mean log ratio, by a jackknife that leaves out groups."""

    def ratio(rows: Any) -> float:
        kept = white[rows]
        root = np.linalg.cholesky(kept.T @ kept / len(kept))
        own = np.square(np.linalg.solve(root, kept.T)).sum(axis=0)
        return float(np.mean(logs[rows] - np.log(own)))

    n, d = white.shape
    groups = min(int(n), _GROUPS)
    if n < 4 * d:  # where leaving out a group may leave no covariance
        return ratio(slice(None))
    group = np.arange(n) * groups // n
    left = math.fsum(ratio(group != g) for g in range(groups)) / groups
    return groups * ratio(slice(None)) - (groups - 1) * left
