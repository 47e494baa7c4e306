"""The law of u against the uniform law: coverage of central intervals, distances, variance.

With ranks the law in question is that of the rank, and its distance is that from the uniform law on the M + 1 ranks,
set 1/(M + 1) apart: the distance of u as seen through M draws. It tends to that of u as M grows, from below.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import Floats, as_counts, as_values, need_count, need_fraction
from .deviations import Norm, absolute, norm_interval, quadratic
from .intervals import Interval, clopper_pearson, student

# Points of the unit interval at which the noise of the empirical law is followed.
_POINTS = 32


def coverage(
    values: ArrayLike, *, draws: int | None = None, nominal: float = 0.9, confidence: float = 0.95, lost: int = 0
) -> Interval:
    """Estimate how often the central interval of the output contains the truth.

    The interval is Clopper and Pearson's: it covers at least `confidence`, at every n. A nominal 95 % interval was
    measured, as for ``wasserstein``, to cover 0.93 to 0.97. Coverage cannot see a bias that a larger spread
    compensates, nor anything inside or outside the one interval.

    Parameters
    ----------
    values : array_like, shape (n,)
        u in [0, 1]; with `draws`, integer ranks in {0, ..., draws}.
    draws : int, optional
        The number of draws M. The interval then excludes the k lowest and k highest of the M + 1 ranks, k >= 1
        chosen so that its probability is nearest to `nominal`. M = 1 has no such interval: nan in [0, 1].
    nominal : float
        Probability that the output gives to its central interval.
    confidence : float
        That of the reported interval.
    lost : int
        Replicates of unknown value: the interval holds whether they were all hits or all misses.

    Returns
    -------
    Interval
        Named "coverage"; ``ideal`` is the nominal coverage actually used.

    Examples
    --------
    >>> print(coverage((np.arange(100) + 0.5) / 100))
    coverage 0.9 (0.824 to 0.951; ideal 0.9)
    """
    need_fraction(confidence=confidence, nominal=nominal)
    need_count(0, lost=lost)
    if draws is None:
        u = as_values(values, "u")
        n, hits = u.size, int(np.count_nonzero((u >= 0.5 - nominal / 2) & (u <= 0.5 + nominal / 2)))
    else:
        counts = as_counts(values, draws)
        if draws == 1:
            return Interval("coverage", math.nan, 0.0, 1.0, nominal)
        # At least one rank outside at either end, and at least one inside, whatever was asked for.
        k = min(max(1, round((draws + 1) * (1 - nominal) / 2)), draws // 2)
        nominal = (draws + 1 - 2 * k) / (draws + 1)
        n, hits = int(counts.sum()), int(counts[k : draws + 1 - k].sum())
    return Interval("coverage", hits / n, *clopper_pearson(hits, n, confidence, lost), nominal)


def distance(values: ArrayLike, *, draws: int | None = None, confidence: float = 0.95, lost: int = 0) -> Interval:
    """Estimate the Kolmogorov distance between the law of u and the uniform law.

    This is the largest error of any stated one-sided probability. The interval is that of Dvoretzky, Kiefer,
    Wolfowitz and Massart: it covers at least `confidence`, at every n and for every law of u. The estimate is biased
    upwards by about 0.87 / sqrt(n) near calibration. On ranks the supremum is over the M + 1 attainable levels,
    so it cannot see anything between them. A nominal 95 % interval was measured to cover 0.955 to 0.99 at calibration
    and 0.987 to 1 elsewhere (as for :func:`wasserstein`): the price of a guarantee.

    Parameters
    ----------
    values : array_like, shape (n,)
        u in [0, 1], in any order (sorted input is cheapest); with `draws`, integer ranks in {0, ..., draws}.
    draws : int, optional
        The number of draws M.
    confidence : float
        That of the interval.
    lost : int
        Replicates of unknown value; m of them move the empirical law by at most m / (n + m).

    Examples
    --------
    >>> print(distance((np.arange(100) + 0.5) / 100))
    distance 0.005 (0 to 0.141; ideal 0)
    """
    need_fraction(confidence=confidence)
    need_count(0, lost=lost)
    if draws is None:
        u = as_values(values, "u")
        n = u.size
        if np.any(u[1:] < u[:-1]):
            u = np.sort(u)
        above = np.arange(1, n + 1) / n - u
        estimate = max(float(above.max()), float((1 / n - above).max()))
    else:
        counts = as_counts(values, draws)
        n = int(counts.sum())
        gap = np.cumsum(counts) / n - np.arange(1, draws + 2) / (draws + 1)
        estimate = float(np.abs(gap).max())
    # Massart's bound 2 exp(-2 n eps^2), set to 1 - confidence and solved for eps.
    slack = lost / (n + lost) + math.sqrt(math.log(2 / (1 - confidence)) / (2 * (n + lost)))
    return Interval("distance", estimate, max(0.0, estimate - slack), min(1.0, estimate + slack), 0.0)


def wasserstein(values: ArrayLike, *, draws: int | None = None, confidence: float = 0.95, lost: int = 0) -> Interval:
    """Estimate the Wasserstein-1 distance between the law of u and the uniform law.

    This is the error of stated probabilities, averaged over one-sided statements of all levels: the integral of
    |G(t) - t| for the law G of u.

    Parameters
    ----------
    values, draws, confidence, lost
        As in :func:`distance`.

    Notes
    -----
    The estimate is free of the plug-in's upward bias: it is the distance of which the plug-in would be the median. The
    interval is the set of distances D for which the plug-in is no outlier among those of a deviation of size D with the
    noise of the empirical law, at both ends in the direction the data make likeliest. Where D is 0 there is no
    two-sided interval of exact coverage: its lower end is then 0 with probability 0.975, and that is what it covers. A
    nominal 95 % interval was measured (200 repetitions, 1000 where those left 0.93 to 0.97; z Gaussian, Gamma(4) and
    t_5, each with variance 1, with variance 2, and shifted by 0.3; exact u and M = 9, 19, 99 at n = 200 and 1000) to
    cover 0.965 to 0.995 at distance 0, up to 0.995 where the distance is below about 1 / sqrt(n) (0.4 / sqrt(n) is
    noise), and 0.93 to 0.97 beyond, but 0.91 to 0.925 for the shifted Gamma(4), exact, at n = 200 (1000 repetitions
    each), and 0.946 to 0.986 for Gamma(1) there. Its noise is two thousand
    draws, always the same, which alone moves the coverage by about 0.005; above a confidence of 0.998, whose tails they
    do not resolve, their noise is stretched instead.

    Examples
    --------
    >>> print(wasserstein((np.arange(100) + 0.5) / 100))
    W1 distance 0 (0 to 0.0784; ideal 0)
    """
    need_fraction(confidence=confidence)
    need_count(0, lost=lost)
    law = _Empirical(values, draws)
    found = law.interval(absolute, law.first, confidence)
    slack = lost / (law.n + lost)
    low, high = max(0.0, min(0.5, found.low) - slack), min(0.5, found.high + slack)
    return Interval("W1 distance", min(0.5, found.estimate), low, high, 0.0)


def cramer_von_mises(
    values: ArrayLike, *, draws: int | None = None, confidence: float = 0.95, lost: int = 0
) -> Interval:
    """Estimate the Cramer-von Mises distance between the law of u and the uniform law.

    This is the integral of (G(t) - t)^2 for the law G of u, a squared distance: halving the errors quarters it.

    Parameters
    ----------
    values, draws, confidence, lost
        As in :func:`distance`.

    Notes
    -----
    The estimate is unbiased, except that it is never below 0. The interval is made as that of :func:`wasserstein`, for
    the root, and squared; where the distance is 0 it covers 0.975. Measured as there it covers 0.955 to 0.985 at 0, up
    to 0.995 where the root is below about 1 / sqrt(n), and 0.93 to 0.97 beyond.

    Examples
    --------
    >>> print(cramer_von_mises((np.arange(100) + 0.5) / 100))
    CvM distance 0 (0 to 0.00742; ideal 0)
    """
    need_fraction(confidence=confidence)
    need_count(0, lost=lost)
    law = _Empirical(values, draws)
    found = law.interval(quadratic, math.sqrt(law.second), confidence)
    slack = lost / (law.n + lost)
    low, high = min(1 / 3, max(0.0, found.low - slack) ** 2), min(1 / 3, (found.high + slack) ** 2)
    if law.n == 1:  # which has no unbiased estimate
        return Interval("CvM distance", math.nan, low, high, 0.0)
    estimate = law.second - law.variance / (law.n - 1)
    return Interval("CvM distance", min(max(estimate, low), high), low, high, 0.0)


def variance_ratio(values: ArrayLike, *, draws: int | None = None, confidence: float = 0.95, lost: int = 0) -> Interval:
    """Estimate 12 Var u: above 1 for over-confidence, below for under-confidence.

    Bounded where the spread is not, so that a few wild replicates count for little. It cannot see a bias, nor how far
    outside an output the truth lies.

    Parameters
    ----------
    values, confidence, lost
        As in :func:`coverage`; the interval is Student's.
    draws : int, optional
        The number of draws M. The moments R / M and R (R - 1) / (M (M - 1)) are unbiased for those of u, so that
        the estimate is of the same number for all M but 1, which says nothing of it: nan in [0, 3].

    Notes
    -----
    A nominal 95 % interval was measured (repetitions, laws and sizes as for ``wasserstein``) to cover 0.93 to 0.97,
    0.95 on average.

    Examples
    --------
    >>> print(variance_ratio((np.arange(300) + 0.5) / 300))
    variance of u 1 (0.9 to 1.11; ideal 1)
    """
    need_fraction(confidence=confidence)
    need_count(0, lost=lost)
    first, second = _moments(values, draws)
    n = first.size
    if n < 2 or draws == 1:
        return Interval("variance of u", math.nan, 0.0, 3.0, 1.0)
    mean = float(first.mean())
    # The square of the mean, without its own noise.
    square = mean**2 - float(first.var(ddof=1)) / n
    estimate = 12 * (float(second.mean()) - square)
    t = student(confidence, n - 1)
    # To second order the squared error of the mean, and what the estimate takes off for it; all there is where u is 0
    # or 1, one as often as the other.
    squared = (t**2 + 1) * float(first.var(ddof=1)) / n
    half = 12 * math.hypot(t * float((second - 2 * mean * first).std(ddof=1)) / math.sqrt(n), squared)
    low, high = _completed(estimate - half, estimate + half, mean, lost / (n + lost))
    if np.ptp(first) == 0:  # of n values that might have differed none did: so many of all may
        high = _completed(low, high, mean, 1 - (1 - confidence) ** (1 / n))[1]
    estimate, low, high = (min(max(x, 0.0), 3.0) for x in (estimate, low, high))
    return Interval("variance of u", estimate, low, high, 1.0)


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


class _Empirical:
    """The empirical law of u or of ranks, against the uniform one.

    ``first`` and ``second`` are the integrals of |G - t| and (G - t)^2, ``variance`` that of G (1 - G).
    """

    def __init__(self, values: ArrayLike, draws: int | None) -> None:
        if draws is None:
            self._of_values(np.sort(as_values(values, "u")))
        else:
            self._of_counts(as_counts(values, draws).astype(np.float64))

    def _of_values(self, u: Floats) -> None:
        n = self.n = u.size
        steps, ends = np.arange(n + 1) / n, np.concatenate([[0.0], u, [1.0]])
        below, above = ends[:-1] - steps, ends[1:] - steps
        # x |x| / 2 is the integral of |x|, also across a change of sign.
        self.first = float(np.sum(above * np.abs(above) - below * np.abs(below))) / 2
        self.second = float(np.sum(above**3 - below**3)) / 3
        self.variance = float(np.sum(steps * (1 - steps) * (above - below)))
        inner = np.searchsorted(u, np.arange(1, _POINTS) / _POINTS, side="right")
        self.cells = np.diff(inner, prepend=0, append=n).astype(np.float64)
        self.uniform = np.arange(1, _POINTS) / _POINTS

    def _of_counts(self, counts: Floats) -> None:
        n, ranks = int(counts.sum()), counts.size
        self.n = n
        law = np.cumsum(counts)[:-1] / n
        gap = law - np.arange(1, ranks) / ranks
        self.first, self.second = float(np.abs(gap).sum()) / ranks, float(np.square(gap).sum()) / ranks
        self.variance = float(np.sum(law * (1 - law))) / ranks
        starts = np.arange(ranks)
        if ranks > _POINTS:
            cells = -(-ranks // -(-ranks // _POINTS))
            starts = np.round(np.arange(cells) * ranks / cells).astype(np.int64)
        self.cells = np.add.reduceat(counts, starts)
        self.uniform = starts[1:] / ranks

    def interval(self, norm: Norm, observed: float, confidence: float) -> Interval:
        """Return the interval of a norm of G - t."""
        # Two replicates spread evenly keep the noise alive where no u fell.
        law = np.cumsum(self.cells + 2 / self.cells.size)[:-1] / (self.n + 2)
        covariance = (np.minimum.outer(law, law) - np.outer(law, law)) / self.n
        gap = np.cumsum(self.cells)[:-1] / self.n - self.uniform
        return norm_interval(gap, covariance, norm, confidence=confidence, observed=observed)
