"""The test with equal local levels, and its simultaneous band: exact, and always in agreement.

It knows nothing of other tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..arguments import Floats, Ints, need_count, need_fraction
from ..roots import Bracket, adjacent, false_position, narrow
from .crossing import Bounds, order_bounds, stay_probability
from .sample import ALL_RANKS, EDGE, RESOLUTION, Sample, UniformityTest, as_result, as_sample

# Up to here all order statistics are used; beyond, a grid of this many points.
_ALL_POINTS, _GRID = 1000, 161
#: Values that a band is computed for in seconds.
_MOST_VALUES = 10**9


@dataclass(frozen=True)
class Band:
    """A simultaneous band for an empirical distribution function.

    ``low`` and ``high``, both allowed, bound the proportion of u at or below each of the ``points``; on ranks these are
    k / (draws + 1), and the proportion is that of ranks below k. ``gamma`` is the pointwise two-sided tail.
    """

    points: Floats
    low: Floats
    high: Floats
    gamma: float


def ecdf_gamma(u: ArrayLike, *, draws: int | None = None, lost: int = 0) -> UniformityTest:
    """Test uniformity by the least likely count below any point ("equal local levels").

    Each count of values at or below a point is binomial; the statistic gamma is the smallest of their
    two-sided tail probabilities. Sees rare wild outliers as well as bias and spread; bimodality late.

    Parameters
    ----------
    u, draws
        As in `ks`.
    lost : int
        Number of further replicates whose values are unknown. The p-value is then an upper bound of the
        one that any values for them would give: at each point the lost may lie on whichever side is better.

    Notes
    -----
    The law is exact. Up to n = 1000 (lost included) all order statistics are used, and up to 2000 draws
    all ranks; beyond, 161 points equally spaced on the logit scale and reaching down to 1 / (4 n).
    Below 1e-12 the p-value is an upper bound, the sum over points.

    Examples
    --------
    >>> test = ecdf_gamma([0.05, 0.2, 0.35, 0.6, 0.9])
    >>> round(test.statistic, 6), round(test.pvalue, 6)
    (0.452438, 0.901221)
    """
    need_count(0, lost=lost)
    return gamma_of(as_sample(u, draws), int(lost))


def gamma_of(sample: Sample, lost: int = 0) -> UniformityTest:
    """Test a sample that was checked already."""
    n = sample.n + lost
    if sample.draws is None and n <= _ALL_POINTS:
        i = np.arange(1, sample.n + 1)
        # A saturated u is known to lie within rounding of the end, not to be impossible.
        u = np.clip(sample.sorted, EDGE, 1.0 - EDGE)
        # Too many below u is mildest if the lost lie above it, too few if they lie below.
        above = special.betainc(i, n + 1 - i, u)
        below = special.betaincc(i + lost, n + 1 - i - lost, u)
    else:
        t = _points(n, sample.draws)
        counts = _counts_below(sample, t)
        above = lower_tail(n - counts, n, 1.0 - t)
        below = lower_tail(counts + lost, n, t)
    gamma = 2.0 * float(min(above.min(), below.min()))
    return as_result("ecdf_gamma", min(gamma, 1.0), _gamma_tail(gamma, n, sample.draws))


def _points(n: int, draws: int | None) -> Floats:
    """Where counts are compared, symmetric about 1/2: all ranks, or a grid on the logit scale."""
    if draws is not None and draws <= ALL_RANKS:
        return np.arange(1, draws + 1) / (draws + 1)
    # One half is computed and mirrored: symmetric to the last bit, so that only one side has to be walked.
    half = special.expit(np.linspace(-np.log(4.0 * n), 0.0, _GRID // 2 + 1))
    if draws is None:
        return np.concatenate([half, 1.0 - half[-2::-1]])
    k = np.maximum(np.rint(half * (draws + 1)).astype(np.int64), 1)
    return np.union1d(k, draws + 1 - k) / (draws + 1)


def _counts_below(sample: Sample, t: Floats) -> Ints:
    if sample.draws is None:
        return np.searchsorted(sample.sorted, t, side="right")
    k = np.rint(t * (sample.draws + 1)).astype(np.int64)
    return np.cumsum(sample.counts)[k - 1]


def lower_tail(counts: Ints, n: int, t: Floats) -> Floats:
    """P(N(t) <= counts), accurate however small."""
    # The incomplete beta function is undefined at parameters of 0; both ends are put in afterwards.
    inner = np.clip(counts, 0, n - 1)
    tails = special.betaincc(inner + 1, n - inner, t)
    return np.where(counts < 0, 0.0, np.where(counts >= n, 1.0, tails))


@lru_cache(maxsize=64)
def _gamma_tail(gamma: float, n: int, draws: int | None) -> float:
    """P(some count is at least as unlikely as gamma)."""
    size = n if draws is None and n <= _ALL_POINTS else _points(n, draws).size
    if gamma >= 1.0:
        return 1.0
    # One minus a probability has no digits left here; the sum over points can only be too large.
    if size * gamma < RESOLUTION:
        return size * gamma
    return max(1.0 - stay_probability(_gamma_bounds(gamma, n, draws), n), RESOLUTION)


@lru_cache(maxsize=16)
def _gamma_bounds(gamma: float, n: int, draws: int | None) -> Bounds:
    """The counts that are more likely than gamma at every point."""
    if draws is None and n <= _ALL_POINTS:
        i = np.arange(1, n + 1)
        lower = special.betaincinv(i, n + 1 - i, 0.5 * gamma)
        return order_bounds(lower, 1.0 - lower[::-1])
    t = _points(n, draws)
    # An observed gamma is itself one of the tails: without slack, rounding would decide whether a tie is in it.
    low = _smallest_count(n, t, 0.5 * gamma * (1.0 + 1e-10))
    return Bounds(t, low, n - low[::-1])


def _smallest_count(n: int, t: Floats, tail: float) -> Ints:
    """The smallest count whose lower tail exceeds the given one, at each t."""
    z = float(special.ndtri(tail))
    guess = n * t + z * np.sqrt(n * t * (1.0 - t)) + (z * z - 1.0) * (1.0 - 2.0 * t) / 6.0
    count = np.clip(np.floor(guess), 0, n).astype(np.int64)
    up = np.flatnonzero(lower_tail(count, n, t) <= tail)
    down = np.setdiff1d(np.arange(t.size), up, assume_unique=True)
    # The Cornish-Fisher guess is off by a few counts at most; walk the rest.
    while up.size:
        count[up] += 1
        up = up[lower_tail(count[up], n, t[up]) <= tail]
    while down.size:
        down = down[(count[down] > 0) & (lower_tail(count[down] - 1, n, t[down]) > tail)]
        count[down] -= 1
    return count


def band(n: int, *, draws: int | None = None, confidence: float = 0.95) -> Band:
    """Return a band that contains the whole empirical distribution function with given probability.

    Under the null hypothesis the proportions of n values at or below all points of the band lie inside
    it with probability at least `confidence` (exactly, on the continuum). They leave it if and only if
    the p-value of `ecdf_gamma` is at most 1 - confidence. A band drawn from pointwise intervals would be left
    far more often.

    Parameters
    ----------
    n : int
        Number of values.
    draws : int, optional
        Number of draws behind each rank; without it the band is for u on the continuum.
    confidence : float
        Probability of staying inside.

    Examples
    --------
    >>> round(band(100, draws=99).gamma, 6)
    0.00411
    """
    need_count(1, _MOST_VALUES, n=n)
    need_count(1, draws=1 if draws is None else draws)
    need_fraction(confidence=confidence)
    gamma = _critical_gamma(n, draws, 1.0 - confidence)
    bounds = _gamma_bounds(gamma, n, draws)
    low = np.maximum.accumulate(bounds.low)
    high = np.minimum.accumulate(bounds.high[::-1])[::-1]
    return Band(bounds.t, low / n, high / n, gamma)


@lru_cache(maxsize=256)
def _critical_gamma(n: int, draws: int | None, alpha: float) -> float:
    """The largest gamma whose p-value is at most alpha, up to changes that do not move the bounds."""

    def excess(log_gamma: float) -> float:
        p = 1.0 if log_gamma >= 0.0 else _gamma_tail(float(np.exp(log_gamma)), n, draws)
        found = float(np.log(p / alpha))
        # A p-value of alpha itself is allowed; false position needs a sign.
        return found if found > 0.0 else min(found, -1e-12)

    def steps(low: float, high: float) -> Floats:
        return _gamma_steps(float(np.exp(low)), float(np.exp(high)), n, draws)

    continuous = draws is None and n <= _ALL_POINTS
    # Bonferroni's gamma never rejects too often; an effective number of points near 16 often does.
    low = float(np.log(alpha / (n if continuous else _points(n, draws).size))) - 1e-9
    high = min(0.0, max(low + 0.7, float(np.log(0.06 * alpha))))
    while excess(high) <= 0.0:
        low, high = high, min(0.0, high + 0.7)
    # p grows a little slower than gamma, so this step down crosses the root, and not by much.
    near = high - 1.25 * excess(high) - 0.02
    low = near if near > low and excess(near) <= 0.0 else low

    def narrow_enough(at: Bracket) -> bool:
        # On a lattice p is a step function of gamma; once few steps are left they are searched by number.
        return at.high - at.low < 1e-10 or (not continuous and steps(at.low, at.high).size <= 256)

    ends = excess(low), excess(high)
    at = narrow(excess, low, high, done=narrow_enough, rule=false_position, ends=ends)
    if continuous:
        return float(np.exp(at.low))
    gammas = np.concatenate([[np.exp(at.low)], steps(at.low, at.high), [np.exp(at.high)]])
    return _before_excess(lambda k: excess(float(np.log(gammas[int(k)]))), gammas)


def _before_excess(excess: Callable[[float], float], gammas: Floats) -> float:
    """The gamma just below the first of increasing ones that has excess; the last has, the first has not."""

    def inside(at: Bracket) -> float:
        return min(max(round(false_position(at)), at.low + 1), at.high - 1)

    last = gammas.size - 1
    at = narrow(excess, 0, last, done=adjacent, rule=inside, ends=(excess(0), excess(last)))
    # Just below the step: at the step itself the bound has moved already.
    return float(gammas[int(at.high)]) * (1.0 - 1e-9)


def _gamma_steps(low: float, high: float, n: int, draws: int | None) -> Floats:
    """The values of gamma in (low, high] at which a bound moves, in increasing order."""
    t = _points(n, draws)
    first, last = _gamma_bounds(low, n, draws).low, _gamma_bounds(high, n, draws).low
    moves = last - first
    point = np.repeat(np.arange(t.size), moves)
    count = np.arange(moves.sum()) - np.repeat(np.cumsum(moves) - moves, moves) + first[point]
    return np.sort(2.0 * lower_tail(count, n, t[point]))
