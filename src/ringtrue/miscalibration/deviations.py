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

from .inputs import Floats

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
    """Return standard normals (draws, size), always the same, so that the same data give the same interval."""
    drawn = np.random.default_rng(0).standard_normal((draws, size))
    drawn.flags.writeable = False
    return drawn


def number_of_draws(level: float) -> int:
    """Return how many draws of the noise resolve the tails of an interval."""
    return int(min(max(1000, math.ceil(40 / (1 - level))), 20_000))


@dataclass(frozen=True, eq=False)
class NormInterval:
    """The norm of a deviation: its median-unbiased estimate and the ends of its interval."""

    estimate: float
    low: float
    high: float


def norm_interval(gap: Floats, covariance: Floats, norm: Norm, *, level: float, observed: float) -> NormInterval:
    """Return an interval for the norm of a deviation that is seen with Gaussian noise.

    Parameters
    ----------
    gap
        The deviation as seen, (points,).
    covariance
        That of its noise, (points, points).
    norm
        What is to be known of the deviation, a function of the last axis.
    level
        Confidence level.
    observed
        The norm of what was seen; norm(gap), unless a finer one is at hand.

    Examples
    --------
    >>> found = norm_interval(np.array([3.0]), np.eye(1), largest, level=0.95, observed=3.0)
    >>> round(found.low), round(found.high)
    (1, 5)
    """
    values, vectors = np.linalg.eigh(covariance)
    if values[-1] <= 1e-30:  # no noise, to rounding
        return NormInterval(observed, observed, observed)
    values = np.maximum(values, values[-1] * 1e-12)
    noise = (normals(number_of_draws(level), len(gap)) * np.sqrt(values)) @ vectors.T
    tail, reach = (1 - level) / 2, -float(special.ndtri((1 - level) / 2))
    seen = vectors.T @ gap
    smaller, larger = (vectors @ _likeliest(seen, values, side * reach) for side in (-1, 1))
    family = _Family(noise, norm, observed)
    # A norm smaller than noise alone would have is luck, which must not make the interval a point.
    lucky = _Family(noise, norm, max(observed, float(np.median(norm(noise)))))
    high = max(lucky.invert(direction, tail) for direction in (gap, larger))
    low = min(family.invert(smaller, 1 - tail), high)
    return NormInterval(min(max(family.invert(gap, 0.5), low), high), low, high)


@dataclass(frozen=True, eq=False)
class _Family:
    """The laws of norm(D e + noise), against what was observed."""

    noise: Floats
    norm: Norm
    observed: float

    def invert(self, direction: Floats, probability: float) -> float:
        """Return the D at which the observed norm has this probability of not being exceeded; at least 0."""
        size = float(self.norm(direction))
        if size == 0 or np.mean(self.norm(self.noise) <= self.observed) <= probability:
            return 0.0
        unit = direction / size
        low, high = 0.0, self.observed + float(self.norm(self.noise).max())
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            exceeded = np.mean(self.norm(middle * unit + self.noise) <= self.observed) > probability
            low, high = (middle, high) if exceeded else (low, middle)
        return (low + high) / 2


def _likeliest(seen: Floats, values: Floats, reach: float) -> Floats:
    """Return the longest or shortest deviation that is `reach` standard errors from the one seen, in eigenvectors.

    Its length is stationary given its distance, so it is seen / (1 - mu values) for some mu, positive for the longest.
    """
    root = np.sqrt(values)

    def distance(mu: float) -> float:
        return float(np.sqrt(np.sum((seen * mu * root / (1 - mu * values)) ** 2)))

    low, high = 0.0, (1 - 1e-9) / values[-1] if reach > 0 else -1e6 / values[-1]
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if distance(middle) < abs(reach) else (low, middle)
    return np.asarray(seen / (1 - low * values))
