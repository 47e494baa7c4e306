"""The variance of u against that of the uniform law."""

import math

import numpy as np
from numpy.typing import ArrayLike

from .inputs import Floats, as_counts, as_values, check_level
from .measure import Measure, student


def variance_ratio(values: ArrayLike, *, draws: int | None = None, level: float = 0.95, lost: int = 0) -> Measure:
    """Estimate 12 Var u: above 1 for over-confidence, below for under-confidence.

    Bounded where the spread is not, so that a few wild replicates count for little. It cannot see a bias, nor how far
    outside an output the truth lies.

    Parameters
    ----------
    values : array_like, shape (n,)
        u in [0, 1]; with `draws`, integer ranks in {0, ..., draws}.
    draws : int, optional
        The number of draws M. The moments R / M and R (R - 1) / (M (M - 1)) are unbiased for those of u, so that
        the estimate is of the same number for all M but 1, which says nothing of it: nan in [0, 3].
    level : float
        Confidence level of the interval, which is Student's.
    lost : int
        Replicates of unknown value: the interval holds wherever they would have been.

    Returns
    -------
    Measure
        Named "variance of u", in units of 1/12: ideal 1, at most 3.

    Notes
    -----
    A nominal 95 % interval was measured (repetitions, laws and sizes as for ``wasserstein``) to cover 0.93 to 0.97,
    0.95 on average.

    Examples
    --------
    >>> print(variance_ratio((np.arange(300) + 0.5) / 300))
    variance of u 1 (0.9 to 1.11; ideal 1)
    """
    check_level(level, lost)
    first, second = _moments(values, draws)
    n = first.size
    if n < 2 or draws == 1:
        return Measure("variance of u", math.nan, 0.0, 3.0, 1.0)
    mean = float(first.mean())
    # The square of the mean, without its own noise.
    square = mean**2 - float(first.var(ddof=1)) / n
    estimate = 12 * (float(second.mean()) - square)
    t = student(level, n - 1)
    # To second order the squared error of the mean, and what the estimate takes off for it; all there is where u is 0
    # or 1, one as often as the other.
    squared = (t**2 + 1) * float(first.var(ddof=1)) / n
    half = 12 * math.hypot(t * float((second - 2 * mean * first).std(ddof=1)) / math.sqrt(n), squared)
    low, high = _completed(estimate - half, estimate + half, mean, lost / (n + lost))
    if np.ptp(first) == 0:  # of n values that might have differed none did: so many of all may
        high = _completed(low, high, mean, 1 - (1 - level) ** (1 / n))[1]
    estimate, low, high = (min(max(x, 0.0), 3.0) for x in (estimate, low, high))
    return Measure("variance of u", estimate, low, high, 1.0)


def _moments(values: ArrayLike, draws: int | None) -> tuple[Floats, Floats]:
    """Return unbiased values of u and u^2, one of each per replicate."""
    if draws is None:
        u = as_values(values, "u")
        return u, np.square(u)
    as_counts(values, draws)
    r = np.asarray(values, dtype=np.float64)
    return r / draws, r * (r - 1) / (draws * max(draws - 1, 1))


def _completed(low: float, high: float, mean: float, share: float) -> tuple[float, float]:
    """Return the ends if the lost all lay at the mean, and if they lay at 0 and 1, shared out to add most."""
    if share == 0:
        return low, high
    # With a part p of them at 1 they have the variance p (1 - p), and (p - mean)^2 is what lies between.
    p = np.linspace(0, 1, 101)
    most = float(np.max(p * (1 - p) + (1 - share) * (p - mean) ** 2))
    return (1 - share) * low, (1 - share) * high + 12 * share * most
