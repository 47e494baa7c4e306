"""Intervals for the norm of an estimated deviation, which hold at zero, far from it, and in between.

What is observed is gap = delta + noise, with Gaussian noise of known covariance, and the norm of delta is wanted. Far
from zero the delta method would do; near zero the noise has a norm of its own. Here the interval is the set of norms D
for which the observed norm is neither too small nor too large among those of D e + noise. The direction e matters where
noise is not the same in all directions: for each end it is that of the delta of that size that the data make likeliest,
because the observed direction is one in which the noise happened to be small whenever the observed norm is.

This module knows arrays, nothing of u or ranks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from ..arguments import Floats
from ..roots import Bracket, narrow, secant
from .intervals import Interval

Norm = Callable[[Floats], Floats]


def absolute(x: Floats) -> Floats:
    """Return the mean absolute value along the last axis, the deviation being 0 at one more point."""
    return np.asarray(np.abs(x).sum(-1) / (x.shape[-1] + 1))


def quadratic(x: Floats) -> Floats:
    """Return the root mean square along the last axis, the deviation being 0 at one more point."""
    return np.asarray(np.sqrt(np.square(x).sum(-1) / (x.shape[-1] + 1)))


def largest(x: Floats) -> Floats:
    """Return the largest absolute value along the last axis."""
    return np.asarray(np.abs(x).max(-1))


@lru_cache(maxsize=16)
def normals(draws: int, size: int) -> Floats:
    """Return standard normals (draws, size), always the same, so that the same data give the same interval.

    With every draw goes its negative, and their second moments are exact: both take noise off the quantiles.
    """
    half = np.random.default_rng(0).standard_normal((draws // 2, size))
    root = np.linalg.cholesky(half.T @ half / len(half))
    half = np.linalg.solve(root, half.T).T
    drawn = np.concatenate([half, -half])
    drawn.flags.writeable = False
    return drawn


def number_of_draws(confidence: float) -> int:
    """Return how many draws of the noise resolve the tails of an interval, up to 0.998."""
    return 2 * int(min(max(1000, math.ceil(20 / (1 - confidence))), 10_000))


def norm_interval(gap: Floats, covariance: Floats, norm: Norm, *, confidence: float, observed: float) -> Interval:
    """Return an interval for the norm of a deviation that is seen with Gaussian noise.

    Parameters
    ----------
    gap
        The deviation as seen, (points,).
    covariance
        That of its noise, (points, points).
    norm
        What is to be known of the deviation, a function of the last axis.
    confidence
        That of the interval.
    observed
        The norm of what was seen; norm(gap), unless a finer one is at hand.

    Examples
    --------
    >>> found = norm_interval(np.array([3.0]), np.eye(1), largest, confidence=0.95, observed=3.0)
    >>> round(found.low), round(found.high)
    (1, 5)
    """
    values, vectors = np.linalg.eigh(covariance)
    if values[-1] <= 1e-30:  # no noise, to rounding
        return Interval("norm", observed, observed, observed, 0.0)
    values = np.maximum(values, values[-1] * 1e-12)
    tail, draws = (1 - confidence) / 2, number_of_draws(confidence)
    reach = -float(special.ndtri(tail))
    noise = (normals(draws, len(gap)) * np.sqrt(values)) @ vectors.T
    # Beyond what the draws resolve, larger noise at the last level that they do: exact where the norm is Gaussian.
    tail = max(tail, 19.5 / draws)
    noise *= reach / -float(special.ndtri(tail))
    seen = vectors.T @ gap
    smaller, larger = (vectors @ _likeliest(seen, values, side * reach) for side in (-1, 1))
    alone = norm(noise)
    family = _Family(noise, norm, observed, alone)
    # A norm smaller than noise alone would have is luck, which must not make the interval a point.
    lucky = _Family(noise, norm, max(observed, float(np.median(alone))), alone)
    high = max(lucky.invert(direction, tail) for direction in (gap, larger))
    low = min(family.invert(smaller, 1 - tail), high)
    return Interval("norm", min(max(family.invert(gap, 0.5), low), high), low, high, 0.0)


@dataclass(frozen=True, eq=False)
class _Family:
    """The laws of norm(D e + noise), against what was observed; ``alone`` are the norms of the noise."""

    noise: Floats
    norm: Norm
    observed: float
    alone: Floats

    def invert(self, direction: Floats, probability: float) -> float:
        """Return the D at which the observed norm has this probability of not being exceeded; at least 0."""
        at = int(probability * len(self.noise))
        size = float(self.norm(direction))
        start = float(np.partition(self.alone, at)[at]) - self.observed
        if size == 0 or start >= 0:
            return 0.0
        unit = direction / size
        # A few rows at a time stay in the cache, which is four times as fast.
        parts = np.array_split(self.noise, len(self.noise) // 250)

        def excess(D: float) -> float:
            norms = np.concatenate([self.norm(D * unit + part) for part in parts])
            return float(np.partition(norms, at)[at]) - self.observed

        def enough(at: Bracket) -> bool:  # the draws resolve no more of a quantile
            return at.steps >= 60 or (at.last is not None and abs(at.value) <= 1e-5 * at.last.high)

        # As the quantile rises no faster than D, secants find it in a few steps; each costs as much as all else here.
        high = self.observed + float(self.alone.max())
        return narrow(excess, 0.0, high, done=enough, rule=secant, ends=(start, math.nan)).x


def _likeliest(seen: Floats, values: Floats, reach: float) -> Floats:
    """Return the longest or shortest deviation that is `reach` standard errors from the one seen, in eigenvectors.

    Its length is stationary given its distance, so it is seen / (1 - mu values) for some mu, positive for the longest.
    """
    # Directions only are wanted, so that a grid of mu will do: from 0 to where the longest has a pole, or far beyond.
    steps = np.geomspace(1e-9, 1.0, 300)[::-1]
    mu = (1 - steps if reach > 0 else 1 - 1 / steps) / values[-1]
    distance = np.sqrt(np.square(seen * np.sqrt(values) * mu[:, None] / (1 - mu[:, None] * values)).sum(-1))
    at = float(np.interp(abs(reach), distance, mu))
    found = np.asarray(seen / (1 - at * values))
    if reach > 0:  # what was seen may have no part, or be nothing, where noise is largest
        missing = math.sqrt(max(reach**2 - float(distance[-1]) ** 2, 0.0))
        found[-1] += math.copysign(math.sqrt(values[-1]) * missing, found[-1])
    return found
