"""Tests and sizes for outputs that are Markov chains, from differences between the truth and draws of other chains.

In every replicate one chain is the reference; the truth and the draws of the other chains are placed in it. If the
output is right, functions of these places have the same mean for the truth as for the draws, whatever the
autocorrelation within the reference and within the others. So nothing need be known of it, and nothing is thinned.
This module sees arrays of differences and must not know where they come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from scipy import special

from .arguments import Floats, Ints
from .effects.intervals import Interval, SpreadAndBias, freedom, student
from .exchange import log_chernoff

#: With fewer replicates than this the normal approximation is liberal, and labels are randomised instead.
FEW = 60
#: Label randomisations; the p-value cannot go below one over one more.
_LABELS = 999
#: Below this p-value the approximate laws are not relied on.
_TAIL = 1e-3
#: Directions in which features vary less than this share of the largest count as none.
_FLAT = 1e-10
#: Differences smaller than this are rounding.
_ROUNDING = 1e-9
#: Chains worth fewer draws than this, each, do not show how wide the output is.
WORTH = 2.0
#: Fewer replicates say nothing of size.
_FEWEST = 4
#: Of numerical derivatives.
_STEP = 1e-6
#: Of means, for the derivatives of sizes by them: far above the error of Newton's method, far below what they are.
_SLOPE_STEP = 1e-4
#: The nominal coverage.
NOMINAL = 0.9


@dataclass(frozen=True)
class ChainTest:
    """A test of chains: how it was done, its statistic (the largest standardised difference), and its p-value."""

    method: str
    statistic: float
    pvalue: float


def difference_test(differences: Floats, *, reach: Floats | None = None, lost: int = 0) -> ChainTest:
    """Test that the features of the truth have the same mean as those of draws.

    The null hypothesis is that every row of ``differences`` has mean zero. It sees bias, spread, skewness and tails of
    the truth as placed in a chain; it is blind to what leaves all four alone.

    Parameters
    ----------
    differences
        (n, features): truth minus mean over draws, one row per replicate.
    reach
        (features,): the largest absolute difference that there can be; needed if replicates were lost.
    lost
        How many more replicates there were. The p-value then holds whatever they would have been.

    Notes
    -----
    With S the sum of the rows and V that of their outer products, not centred, S' V^-1 S is compared with the law of
    Hotelling's statistic and the largest abs(S_a) / sqrt(V_aa) with Student's, by Bonferroni; the p-value is twice the
    smaller of both. Squares of scores have heavy tails, so the degrees of freedom are those that the kurtosis of the
    differences leaves of n. With normal and chi-squared laws in their place 7 to 9 % of calibrated runs
    were rejected at 5 % at n = 60 and 5 to 7 % at n = 100, with these 4 to 5 and 3 to 5 % (1000 runs each; AR(-.9) to
    AR(.5), 2 x 50 and 4 x 100 draws).
    Lost replicates can bring abs(S_a) / sqrt(V_aa) down to (abs(S_a) - m r) / sqrt(V_aa + m r^2), r the reach, and no
    further; the other statistic has no such bound and is left out.

    Examples
    --------
    >>> difference_test(np.array([[1.0], [-1.0]] * 50)).pvalue
    1.0
    """
    differences = _without_rounding(differences)
    total, squares = differences.sum(axis=0), np.square(differences).sum(axis=0)
    degrees = np.array([freedom(column) for column in differences.T])
    if lost:
        assert reach is not None
        total = np.maximum(np.abs(total) - lost * reach, 0.0)
        squares = squares + lost * np.square(reach)
    each = np.abs(total) / np.sqrt(np.maximum(squares, 1e-300))
    of_largest = 2 * len(each) * float(special.stdtr(degrees, -each).min())
    if lost:
        return ChainTest(f"chains, worst case of {lost} lost", float(each.max()), min(1.0, of_largest))
    quadratic = _quadratic(differences, float(degrees.min()))
    return ChainTest("chains", float(each.max()), min(1.0, 2 * of_largest, 2 * quadratic))


def _without_rounding(differences: Floats) -> Floats:
    """Return differences of features, which are of order one, with what is left of equal ones set to zero."""
    # Rounding always goes the same way for the same numbers: divided by its own spread it would be evidence.
    return np.asarray(np.where(np.abs(differences) < _ROUNDING, 0.0, differences))


def _quadratic(differences: Floats, degrees: float) -> float:
    """Return the p-value of S' V^-1 S, in the directions in which there is any variance."""
    unit = np.sqrt(np.maximum(np.square(differences).sum(axis=0), 1e-300))
    rows = differences / unit
    variances, directions = np.linalg.eigh(rows.T @ rows)
    full = variances > _FLAT * max(float(variances[-1]), 1e-300)
    many, along = int(full.sum()), rows.sum(axis=0) @ directions[:, full]
    rest = degrees - many + 1
    if not many or rest <= 0:
        return 1.0
    size = float(np.sum(np.square(along) / variances[full]))
    return float(special.fdtrc(many, rest, size * rest / (degrees * many)))


def in_the_tail(found: ChainTest, members: Floats | None) -> ChainTest:
    """Return a test whose p-value holds its level in the far tail too.

    Laws of Student and Hotelling are approximations: of 2337 calibrated runs of 80 replicates three had p-values of
    1e-4 or less, and one of them 2e-9, since squares of scores are skewed. Below 1e-3 the p-value is therefore at least
    Chernoff's bound for random labels, which uses one draw of every other chain and is valid at any n.

    Parameters
    ----------
    found
        Of :func:`difference_test`.
    members
        As in :func:`label_test`; None if replicates were lost, which leaves no bound.

    Examples
    --------
    >>> in_the_tail(ChainTest("chains", 9.0, 1e-12), None).pvalue
    0.001
    """
    if found.pvalue >= _TAIL:
        return found
    bound = 1.0 if members is None else _bound(members)
    return replace(found, pvalue=max(found.pvalue, min(_TAIL, bound)))


def _bound(members: Floats) -> float:
    """Bound the probability of sums as large as those of the truths, in any feature and direction."""
    centred = members - np.nanmean(members, axis=1, keepdims=True)
    features = np.moveaxis(np.where(np.abs(centred) < _ROUNDING, 0.0, centred), 2, 0)
    logs = [log_chernoff(sign * one) for one in features for sign in (-1.0, 1.0)]
    return min(1.0, len(logs) * math.exp(min(logs)))


def label_test(members: Floats, rng: Generator) -> ChainTest:
    """Test the same with one draw of every other chain: exact for any number of replicates.

    Given the reference, the truth and the last draw of every other chain are exchangeable if the output is right. So
    each is as likely as any other to be called the truth, and the statistic of the true labels is one of many alike.

    Parameters
    ----------
    members
        (n, members, features), the truth first; nan where a replicate has fewer.
    rng
        Draws the labels.

    Examples
    --------
    >>> label_test(np.zeros((5, 2, 1)), np.random.default_rng(0)).pvalue
    1.0
    """
    there = np.isfinite(members[:, :, 0])
    many = there.sum(axis=1)
    filled = np.where(there[:, :, None], members, 0.0)
    centred = np.where(there[:, :, None], filled - (filled.sum(axis=1) / many[:, None])[:, None], 0.0)
    centred = _without_rounding(centred)
    spread = np.einsum("imf,img->fg", centred / many[:, None, None], centred)
    # Each row is a choice of labels: the true one first.
    labels = np.concatenate([np.zeros((1, len(many)), np.intp), _labels(many, rng)])
    sums = centred[np.arange(len(many)), labels].sum(axis=1)
    unit = np.sqrt(np.maximum(np.diag(spread), 1e-300))
    largest = np.max(np.abs(sums) / unit, axis=1)
    quadratic = np.einsum("bf,fg,bg->b", sums, np.linalg.pinv(spread, rcond=1e-8, hermitian=True), sums)
    against = np.minimum(
        sums.shape[1] * special.ndtr(-largest), special.chdtrc(sums.shape[1], np.maximum(quadratic, 0))
    )
    # Nearer than this is a tie, which can only enlarge the p-value.
    pvalue = float(np.mean(against <= against[0] * (1 + 1e-9)))
    return ChainTest("chains, last draws, labels randomised", float(largest[0]), pvalue)


def _labels(many: Ints, rng: Generator) -> Ints:
    return np.asarray(rng.integers(0, many, size=(_LABELS, len(many))))


@dataclass(frozen=True)
class Dependence:
    """How alike neighbouring draws are: the p-value, and the lag, test function and score where it shows most."""

    pvalue: float
    lag: int
    function: int
    score: float

    def correlation(self, draws: int) -> float:
        """Return the autocorrelation of that lag, from so many draws each."""
        return min(max(self.score / math.sqrt(draws), -1.0), 1.0)


def serial_dependence(serial: Floats) -> Dependence:
    """Test that neighbouring draws are no more alike than others.

    The null hypothesis is that all orders of the draws of a replicate are equally likely.

    Parameters
    ----------
    serial
        (n, functions, lags): standardised autocorrelations, with mean 0 and variance 1; nan where there is none.

    Examples
    --------
    >>> serial_dependence(np.zeros((100, 1, 2))).pvalue
    1.0
    """
    there = np.isfinite(serial)
    many = there.sum(axis=0)
    total = np.where(there, serial, 0.0).sum(axis=0) / np.sqrt(np.maximum(many, 1))
    function, lag = np.unravel_index(int(np.argmax(np.abs(total))), total.shape)
    tests = max(int((many > 0).sum()), 1)
    pvalue = min(1.0, 2 * tests * float(special.ndtr(-abs(total[function, lag]))))
    mean = float(total[function, lag] / math.sqrt(max(int(many[function, lag]), 1)))
    return Dependence(pvalue, int(lag) + 1, int(function), mean)


# Sizes.


@dataclass(frozen=True, eq=False)
class Chained:
    """What sizes are estimated from, one row per replicate.

    Parameters
    ----------
    differences
        (n, 2 or more): of scores and of their squares, truth minus mean over draws.
    below
        (n, knots): the same for being at or below a position; between the outer two lie 90 % of a chain.
    noise
        (n, 2): mean squares, of the scores of draws and of the mean scores of whole chains, in the other chains.
    length
        Draws of a chain.
    reach
        (2,): the largest absolute differences of scores and squares that there can be.
    lost
        How many more replicates there were; intervals hold whatever they would have been.
    """

    differences: Floats
    below: Floats
    noise: Floats
    length: float
    reach: Floats
    lost: int = 0

    @property
    def n(self) -> int:
        """How many replicates there are."""
        return len(self.differences)

    @property
    def inputs(self) -> Floats:
        """(n, 4): what spread and bias are functions of the mean of."""
        return np.column_stack([self.differences[:, :2], self.noise])

    @property
    def slow(self) -> bool:
        """Whether chains are worth too few draws, each, or are too few, to show how wide the output is."""
        return self.n < _FEWEST or WORTH * reference_noise(*self.noise.mean(axis=0)) > 1


def reference_noise(square: float, of_chains: float) -> float:
    """Return the variance of a chain's mean in units of the output's own, from two mean squares.

    A draw placed in another chain has the variance 1 + v, the mean of a chain 2 v, in the same unknown unit.

    Examples
    --------
    >>> reference_noise(1.5, 1.5)  # no chain moves: each is one draw
    1.0
    """
    if square < _ROUNDING:  # draws that are all the same have no noise
        return 0.0
    ratio = of_chains / square
    return ratio / (2 - ratio)


def spread_and_bias(chained: Chained, *, confidence: float) -> SpreadAndBias:
    """Return the spread factor and the bias of truths in units of the output.

    Parameters
    ----------
    chained
        The replicates.
    confidence
        Of each interval.

    Notes
    -----
    In a chain of the variance noise v, draws have scores of variance k (1 + v) and truths of k (spread^2 + v), around
    sqrt(k) bias, both cut off where the chain ends. v comes from the means of chains, k from the draws. At spread 1 and
    bias 0 the estimates have no error of this model. Intervals are by the delta method over replicates.
    Chains that are worth few draws each do not tell: their intervals are endless.

    Examples
    --------
    >>> flat = Chained(np.zeros((9, 2)), np.zeros((9, 7)), np.tile([0.99, 0.01], (9, 1)), 100, np.ones(2))
    >>> round(spread_and_bias(flat, confidence=0.95).spread.estimate, 6)
    1.0
    """
    if chained.n < _FEWEST:
        return SpreadAndBias.from_ends((math.nan, 0.0, math.inf), (math.nan, -math.inf, math.inf))
    length, inputs = chained.length, chained.inputs
    mean = inputs.mean(axis=0)
    variance, bias = _fit(mean, length)
    estimate = math.sqrt(max(variance, 0.0))
    # Draws that hardly differ have no spread to be a unit, and no slope: the step would leave the possible squares.
    if chained.slow or not math.isfinite(variance) or mean[2] <= 2 * _SLOPE_STEP:
        return SpreadAndBias.from_ends((estimate, 0.0, math.inf), (bias, -math.inf, math.inf))
    slopes = np.array([_slope(mean, length, place) for place in range(4)])
    if not np.isfinite(slopes).all():  # beside what chains can tell, estimates run away
        return SpreadAndBias.from_ends((estimate, 0.0, math.inf), (bias, -math.inf, math.inf))
    influence = (inputs - mean) @ slopes
    # Of lost replicates only the differences count: the noise is that of the chains that came.
    widen = chained.lost / (chained.n + chained.lost) * (np.abs(slopes[:2]) * chained.reach[:2, None]).sum(axis=0)
    reach = [_reach(influence[:, j], confidence) + widen[j] for j in (0, 1)]
    v = reference_noise(*mean[2:])
    # On the logarithm of what is seen, which is spread and noise together: there it is nearest to normal.
    factor = math.exp(min(reach[0] / (variance + v), 700.0))
    low, high = (math.sqrt(max(x - v, 0.0)) for x in ((variance + v) / factor, (variance + v) * factor))
    return SpreadAndBias.from_ends((estimate, low, high), (bias, bias - reach[1], bias + reach[1]))


def _cut(length: float) -> float:
    """Return the score beyond all draws of a chain, where scores are cut off."""
    return float(special.ndtri((length + 0.5) / (length + 1)))


def _reach(influence: Floats, confidence: float) -> float:
    return student(confidence, freedom(influence)) * float(influence.std(ddof=1)) / math.sqrt(influence.size)


def _fit(mean: Floats, length: float) -> tuple[float, float]:
    """Return squared spread and bias from mean differences and mean squares."""
    v, cut = reference_noise(mean[2], mean[3]), _cut(length)
    of_draws = _scale(mean[2], cut)
    centre, scale = _normal(mean[0], mean[2] + mean[1], cut, of_draws)
    unit = of_draws / math.sqrt(1 + v)
    variance, bias = (scale / unit) ** 2 - v, centre / unit
    # Ends of chains are not cut off sharply, which hides part of an error: the same part, to 2 %, whatever the error
    # and the autocorrelation. These are fits to exact moments of ranks among 10 to 400 independent draws.
    left, left_of_bias = 1 - 0.31 / math.sqrt(length), 1 - 0.1 / math.sqrt(length)
    return variance ** (1 / left) if variance > 0 else variance, bias / left_of_bias


def _slope(mean: Floats, length: float, place: int) -> Floats:
    """Return the derivative of squared spread and bias by one of the means."""
    ends = [np.array(_fit(mean + sign * _SLOPE_STEP * np.eye(4)[place], length)) for sign in (-1, 1)]
    with np.errstate(invalid="ignore"):  # infinite on both sides
        return np.asarray((ends[1] - ends[0]) / (2 * _SLOPE_STEP))


def _scale(square: float, cut: float) -> float:
    """Return the sd of a centred normal law whose square, cut off, has this mean."""
    return _normal(0.0, square, cut, 1.0)[1]


def _normal(first: float, second: float, cut: float, start: float) -> tuple[float, float]:
    """Return centre and sd of the normal law with these two moments after cutting off, by Newton's method."""
    centre, log = first, math.log(start)
    for _ in range(50):
        if abs(log) > 5 or abs(centre) > 20:
            return math.nan, math.inf
        a, b = _moments(centre, math.exp(log), cut)
        a_centre, b_centre = (
            (x - y) / _STEP for x, y in zip(_moments(centre + _STEP, math.exp(log), cut), (a, b), strict=True)
        )
        a_log, b_log = (
            (x - y) / _STEP for x, y in zip(_moments(centre, math.exp(log + _STEP), cut), (a, b), strict=True)
        )
        determinant = a_centre * b_log - a_log * b_centre
        if determinant == 0:
            return math.nan, math.inf
        by_centre = ((first - a) * b_log - (second - b) * a_log) / determinant
        by_log = ((second - b) * a_centre - (first - a) * b_centre) / determinant
        centre, log = centre + min(max(by_centre, -0.5), 0.5), log + min(max(by_log, -0.5), 0.5)
        if max(abs(by_centre), abs(by_log)) < 1e-10:
            break
    return centre, math.exp(log)


def _moments(centre: float, sd: float, cut: float) -> tuple[float, float]:
    """Return mean and mean square of a normal number cut off at both ends.

    Examples
    --------
    >>> _moments(0.0, 1.0, 40.0)
    (0.0, 1.0)
    """
    low, high = (-cut - centre) / sd, (cut - centre) / sd
    below, above = math.erfc(-low / math.sqrt(2)) / 2, math.erfc(high / math.sqrt(2)) / 2
    inside = 1 - below - above
    at_low, at_high = (math.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in (low, high))
    first = centre * inside + sd * (at_low - at_high)
    second = (centre**2 + sd**2) * inside + sd * ((2 * centre + sd * low) * at_low - (2 * centre + sd * high) * at_high)
    return first + cut * (above - below), second + cut**2 * (above + below)


def coverage(chained: Chained, *, confidence: float) -> Interval:
    """Return how often the central 90 % of the output contain the truth.

    Notes
    -----
    The share of truths within the central 90 % of a chain, less that of draws of the other chains, is what the coverage
    of the output differs from 90 % by, but for the noise of the chain; it is divided by what the noise leaves of a
    small error of spread.
    """
    if chained.slow:
        return Interval("coverage", math.nan, 0.0, 1.0, NOMINAL)
    inside = (chained.below[:, -1] - chained.below[:, 0]) / _left(chained)
    reach = _reach(inside, confidence) + chained.lost / (chained.n + chained.lost) / _left(chained)
    estimate = NOMINAL + float(inside.mean())
    return Interval("coverage", estimate, max(estimate - reach, 0.0), min(estimate + reach, 1.0), NOMINAL)


def _left(chained: Chained) -> float:
    """Return which part of a small error of spread is seen in the coverage of a chain's interval, at most 1."""
    square, of_chains = chained.noise.mean(axis=0)
    if square < _ROUNDING:
        return 1.0
    v, end = reference_noise(square, of_chains), -float(special.ndtri((1 - NOMINAL) / 2))
    seen = end / _scale(square, _cut(chained.length))
    return min(1.0, seen * math.exp((end**2 - seen**2) / 2) / end / (1 + v))


def distance(chained: Chained, *, confidence: float) -> Interval:
    """Return the largest difference of the laws of truth and draws at seven positions.

    The noise of the reference smooths errors; what it leaves of one of spread is 1 / (1 + v), which is made up for.
    """
    if chained.slow:
        return Interval("KS distance", math.nan, 0.0, 1.0, 0.0)
    makes_up = 1 + reference_noise(*chained.noise.mean(axis=0))
    each = 1 - (1 - confidence) / chained.below.shape[1]
    reach = np.array([_reach(column, each) for column in chained.below.T]) + chained.lost / (chained.n + chained.lost)
    size = np.abs(chained.below.mean(axis=0))
    ends = [makes_up * float(np.max(x)) for x in (size, size - reach, size + reach)]
    return Interval("KS distance", ends[0], max(ends[1], 0.0), min(ends[2], 1.0), 0.0)
