"""How far reported probabilities are off: slope and shift of log odds, points on average, and where.

Outcomes are 0 or 1, and all intervals are given the probabilities. This module sees arrays only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import chdtrc, chdtri, expit, ndtri

from ..arguments import Floats, need_count, need_fraction
from ..probabilities import Coins, as_coins, scores
from ..roots import false_position, narrow
from .intervals import Interval

#: Groups of replicates with similar probabilities over which errors are averaged, and the least in each.
GROUPS, _LEAST = 5, 10
#: Probabilities that a fit is made of; of more, those whose log odds agree to 1/50 are put together, which changes
#: nothing that is printed.
_CELLS, _WIDTH = 1000, 0.02
#: Log odds of certainty, as features.
_CERTAIN = 30.0
#: A slope or shift beyond this is infinite.
_FAR = 1e3
#: Places of a band.
_PLACES = 500
#: Directions in which the edge of a confidence region is looked for.
_DIRECTIONS = 32


@dataclass(frozen=True)
class LogOdds:
    """How log odds must be changed to be right: multiplied by ``slope``, or moved by ``shift``.

    A slope below 1 means that probabilities are too sure, above 1 not sure enough. The shift is that of the best line
    with slope 1: above 0 probabilities are too low.
    """

    slope: Interval
    shift: Interval


class Line:
    """The line in log odds that fits outcomes best: P(t = 1) = 1 / (1 + exp(-(a + b logit p))).

    Parameters
    ----------
    outcome, probability, complement
        As in :func:`ringtrue.statistics.probabilities.probability_test`.

    Attributes
    ----------
    best
        (a, b); nan if all probabilities or all outcomes are the same, and infinite b if a threshold tells ones from
        zeros: then only a shift can be told.
    gain
        Twice the log likelihood beyond that of the reported probabilities, (0, 1).
    """

    def __init__(self, outcome: ArrayLike, probability: ArrayLike, complement: ArrayLike | None = None) -> None:
        coins = _merged(Coins.of(outcome, probability, complement))
        self.p, self.many, self.n = coins.p, coins.many, float(coins.many.sum())
        # A certain outcome that came says nothing of a line; one that was impossible says all that the limit allows.
        known = (coins.p > 0) & (coins.q > 0) | (coins.ones > 0) & (coins.ones < coins.many)
        known |= (coins.p == 0) & (coins.ones > 0) | (coins.q == 0) & (coins.ones < coins.many)
        self.known, self.logit = known, coins.logit
        self._x, self._many, self._ones = coins.logit[known], coins.many[known], coins.ones[known]

    def value(self, a: Any, b: Any) -> Floats:
        """Return the log likelihood at lines, an array of their shape."""
        line = np.asarray(a)[..., None] + np.asarray(b)[..., None] * self._x
        # log(1 + e^x) without overflow.
        return np.asarray(line @ self._ones - np.logaddexp(0.0, line) @ self._many)

    def error(self, a: Any, b: Any) -> Floats:
        """Return by how much the reported probabilities are off on average if lines are right."""
        line = np.asarray(a)[..., None] + np.asarray(b)[..., None] * self.logit
        return np.asarray((np.abs(expit(line) - self.p) * self.known) @ self.many / self.n)

    @cached_property
    def apart(self) -> float:
        """1 or -1 if a threshold tells ones from zeros, above or below it; 0 if none does; nan if all are the same."""
        ones, zeros = self._x[self._ones > 0], self._x[self._ones < self._many]
        if not ones.size or not zeros.size:
            return math.nan
        return 1.0 if ones.min() >= zeros.max() else -1.0 if ones.max() <= zeros.min() else 0.0

    @cached_property
    def best(self) -> tuple[float, float]:
        """Shift and slope of the best line."""
        if self.apart != 0 or np.ptp(self._x) == 0:
            return math.nan, math.nan if math.isnan(self.apart) or np.ptp(self._x) == 0 else self.apart * math.inf
        at, here = np.array([0.0, 1.0]), float(self.value(0.0, 1.0))
        features = np.column_stack([np.ones_like(self._x), self._x])
        for _ in range(100):
            q = expit(features @ at)
            gradient = features.T @ (self._ones - self._many * q)
            step = np.linalg.lstsq(self._information(q, features), gradient, rcond=None)[0]
            # Halved until it climbs: far from the top the likelihood is flatter than its parabola.
            while float(self.value(*(at + step))) < here and np.abs(step).max() > 1e-12:
                step = step / 2
            at, here = at + step, float(self.value(*(at + step)))
            if np.abs(step).max() < 1e-10:
                break
        return float(at[0]), float(at[1])

    def _information(self, q: Floats, features: Floats) -> Floats:
        return np.asarray(features.T @ ((self._many * q * (1 - q))[:, None] * features))

    @cached_property
    def top(self) -> float:
        """The largest log likelihood of a line: that of certainty if a threshold tells ones from zeros."""
        b = self.best[1]
        if math.isfinite(b):
            return float(self.value(*self.best))
        if math.isinf(b):
            return self.profile_of_slope(math.copysign(_FAR, b))
        return 0.0 if math.isnan(self.apart) else self.profile_of_slope(1.0)

    @property
    def gain(self) -> float:
        """Twice the log likelihood of the best line beyond that of the reported probabilities."""
        return max(2 * (self.top - float(self.value(0.0, 1.0))), 0.0) if self._x.size else 0.0

    def profile_of_slope(self, b: float) -> float:
        """Return the largest log likelihood of lines with this slope."""
        return float(self.value(self.best_shift(b), b))

    def best_shift(self, b: float) -> float:
        """Return the shift of the best line with this slope: it expects as many ones as came."""
        total, most = float(self._ones.sum()), float(self._many.sum())
        low, high = (-2 * _FAR - abs(b) * _CERTAIN, 2 * _FAR + abs(b) * _CERTAIN)
        a = math.log(total / (most - total)) - b * float(self._many @ self._x) / most
        for _ in range(200):
            q = expit(a + b * self._x)
            over, rises = float(q @ self._many) - total, float((q * (1 - q)) @ self._many)
            low, high = (low, a) if over > 0 else (a, high)
            step = over / rises if rises > 0 else math.inf
            if abs(step) < 1e-11 or high - low < 1e-11:
                break
            # Newton's step, or half way where it would leave the bracket.
            a = a - step if low < a - step < high else (low + high) / 2
        return a


def _merged(coins: Coins) -> Coins:
    """Return coins with neighbours put together, if they are too many: their probabilities hardly differ."""
    if len(coins.p) <= _CELLS:
        return coins
    certain = np.where(coins.p == 0, -1, np.where(coins.q == 0, 1, 0))
    cell = np.floor(coins.logit / _WIDTH) + 1e6 * certain
    first = np.flatnonzero(np.concatenate([[True], np.diff(cell) != 0]))
    many, ones = (np.add.reduceat(part, first) for part in (coins.many, coins.ones))
    p, q = (np.add.reduceat(part * coins.many, first) / many for part in (coins.p, coins.q))
    return Coins(p, q, many, ones)


def log_odds(
    outcome: ArrayLike, probability: ArrayLike, *, complement: ArrayLike | None = None, confidence: float = 0.95
) -> LogOdds:
    """Return by what log odds must be multiplied, and by how much they must be moved, with profile intervals.

    Of a share of draws, pass :func:`ringtrue.statistics.probabilities.pooled`: given the pooled share, the truth of a
    right procedure lies on the line exactly.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = 1.5 * rng.normal(size=2000)
    >>> found = log_odds(rng.random(2000) < expit(x), expit(1.5 * x))
    >>> found.slope.low < 1 / 1.5 < found.slope.high < 1
    True
    """
    need_fraction(confidence=confidence)
    line = Line(outcome, probability, complement)
    half = float(ndtri((1 - confidence) / 2)) ** 2 / 2
    return LogOdds(_slope(line, half), _shift(line, half))


def _slope(line: Line, half: float) -> Interval:
    estimate = line.best[1]
    name = "log odds slope"
    if math.isnan(estimate):
        return Interval(name, math.nan, -math.inf, math.inf, 1.0)
    start = estimate if math.isfinite(estimate) else math.copysign(_FAR, estimate)
    low, high = (_edge(line.profile_of_slope, line.top - half, start, side) for side in (-1, 1))
    return Interval(name, estimate, low, high, 1.0)


def _shift(line: Line, half: float) -> Interval:
    name = "log odds shift"
    total, most = float(line._ones.sum()), float(line._many.sum())
    if not most:
        return Interval(name, math.nan, -math.inf, math.inf, 0.0)
    same = total in (0.0, most)
    best = line.best_shift(1.0) if not same else math.copysign(math.inf, total - most / 2)
    top = 0.0 if same else float(line.value(best, 1.0))
    start = best if math.isfinite(best) else math.copysign(_FAR, best)
    low, high = (_edge(lambda a: float(line.value(a, 1.0)), top - half, start, side) for side in (-1, 1))
    return Interval(name, best, low, high, 0.0)


def _edge(value: Any, least: float, start: float, side: int) -> float:
    """Return where a function that falls on this side of its top falls below the least; infinite if it does not."""
    step, last = 0.1, 0.0
    while (value_there := value(start + side * step)) >= least:
        last, step = step, 2 * step
        if step > 4 * _FAR:
            return side * math.inf
    ends = (least - value(start + side * last), least - value_there)
    exact = narrow(
        lambda d: least - value(start + side * d),
        last,
        step,
        done=lambda at: at.high - at.low < 1e-9 * (1 + step) or abs(at.value) < 1e-10 or at.steps > 100,
        rule=false_position,
        ends=ends,
    )
    return start + side * exact.x if exact.steps else start + side * step


def beyond_line(outcome: ArrayLike, probability: ArrayLike, *, complement: ArrayLike | None = None) -> float:
    """Return a p-value of "probabilities are right but for a line in log odds"; 1 if no line can be told.

    Approximate: the smooth score of outcomes against the best line, whose two parameters take two of its four degrees
    of freedom.

    Examples
    --------
    >>> p = np.repeat([0.1, 0.5, 0.9], 100)
    >>> bent = np.repeat([1, 0, 1, 0, 1, 0], [25, 75, 30, 70, 100, 0])
    >>> beyond_line(bent, p) < 0.001 < beyond_line(np.repeat([1, 0, 1, 0, 1, 0], [20, 80, 50, 50, 80, 20]), p)
    True
    """
    a, b = Line(outcome, probability, complement).best
    if not math.isfinite(b):
        return 1.0
    t, p, q = as_coins(outcome, probability, complement)
    open_ones = (p > 0) & (q > 0)  # certainty is no matter of a line
    line = a + b * np.log(p[open_ones] / q[open_ones])
    return float(chdtrc(2, scores(t[open_ones], expit(line)).smooth))


def calibration_error(
    outcome: ArrayLike,
    probability: ArrayLike,
    *,
    complement: ArrayLike | None = None,
    confidence: float = 0.95,
    freedom: Literal[1, 2] = 2,
    draws: ArrayLike | None = None,
    lost: int = 0,
) -> Interval:
    """Return by how much probabilities are off, averaged over outcomes.

    The *estimate* is that of the best line in log odds, E|expit(a + b logit p) - p| over the reported p, with (a, b)
    drawn towards (0, 1) until twice the log likelihood gained, less the 2 that a calibrated procedure gains, is what is
    left: so that it is not always positive. The *lower end* is the smallest error of a line that the outcomes do not
    exclude. The *upper end* needs no line: with d_g the error summed over the outcomes of a group, it bounds
    sum |d_g| / n over five groups of neighbouring p.

    Parameters
    ----------
    outcome, probability, complement
        As in :func:`ringtrue.statistics.probabilities.probability_test`.
    confidence
        Each end is missed with probability (1 - confidence) / 2.
    freedom
        Of the likelihood region of the lower end. With 2 it holds whatever the error; with 1 for an error that is large
        beside its noise. Either way it is 0 unless the region with 2 excludes the reported probabilities.
    draws
        M of every outcome, if probabilities are pooled shares of M draws: their errors are M / (M + 1) of those of
        the output.
    lost
        Outcomes that were lost, whatever they would have been.

    Notes
    -----
    Upper end: let e_g be the sign of d_g. Then sum |S_g| >= sum e_g S_g for the sums S_g of t - p, and the right-hand
    side is a sum of independent terms around sum |d_g|. So sum |S_g| plus the normal quantile times the sd of a plain
    sum is an upper limit whatever the errors and however many groups there are. Variances are those of shares in groups
    with z^2 / 2 outcomes of either kind added, and (z^2 + 2) / 3 is added for the skewness of rare outcomes: the
    Cornish-Fisher term of a Poisson count, the most skewed of sums of coins. Errors within a group that cancel are not
    seen.

    Measured: see ``benchmarks/probabilities.py``.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = 1.5 * rng.normal(size=2000)
    >>> found = calibration_error(rng.random(2000) < expit(x), expit(1.5 * x))
    >>> 0.02 < found.low < 0.06 < found.high < 0.12
    True
    """
    need_fraction(confidence=confidence)
    tail = (1 - confidence) / 2
    line = Line(outcome, probability, complement)
    n, rest = line.n, line.n + lost
    high = (n * grouped_limit(outcome, probability, tail=tail, draws=draws) + lost) / rest
    low = min(_least_error(line, tail, freedom) * n / rest, high)
    return Interval("calibration error", min(max(_likely_error(line), low), high), low, high, 0.0)


def _likely_error(line: Line) -> float:
    shift, b = line.best
    if not math.isfinite(b):  # only a shift can be told
        shift, b = _shift(line, 0.0).estimate, 1.0
    if not line.gain > 2 or math.isnan(shift):
        return 0.0
    part = math.sqrt(1 - 2 / line.gain)
    return float(line.error(part * shift, 1 + part * (b - 1)))


def _least_error(line: Line, tail: float, freedom: int) -> float:
    """Return the smallest error of lines that are not excluded, on the edge of their region."""
    # One degree of freedom: one side of a normal. Two: the whole region, both sides of everything.
    cut = float(ndtri(tail)) ** 2 if freedom == 1 else float(chdtri(2, tail))
    a, b = line.best
    if not math.isfinite(b):
        shift = _shift(line, cut / 2)
        return float(line.error(shift.low if shift.low > 0 else shift.high, 1.0)) if shift.clear else 0.0
    if line.gain <= float(chdtri(2, tail)):
        return 0.0
    root = np.linalg.cholesky(np.linalg.inv(line._information(expit(a + b * line._x), _features(line))))
    angles = np.linspace(0, 2 * math.pi, _DIRECTIONS, endpoint=False)
    way = root @ np.stack([np.cos(angles), np.sin(angles)])
    inside, outside = np.zeros(_DIRECTIONS), np.full(_DIRECTIONS, math.sqrt(cut))
    least = line.top - cut / 2

    def is_in(radius: Floats) -> Any:
        return line.value(a + radius * way[0], b + radius * way[1]) >= least

    for _ in range(4):  # the region is convex: along every way there is one edge
        outside = np.where(is_in(outside), 2 * outside, outside)
    for _ in range(24):
        middle = (inside + outside) / 2
        inside, outside = np.where(is_in(middle), middle, inside), np.where(is_in(middle), outside, middle)
    return float(line.error(a + inside * way[0], b + inside * way[1]).min())


def _features(line: Line) -> Floats:
    return np.column_stack([np.ones_like(line._x), line._x])


@dataclass(frozen=True)
class Group:
    """Outcomes with neighbouring probabilities: how many, their mean probability, and the share of ones."""

    n: int
    probability: float
    share: float


def groups(outcome: ArrayLike, probability: ArrayLike, *, most: int = GROUPS) -> list[Group]:
    """Return groups of about as many outcomes, in order of their probabilities, equal ones together.

    Examples
    --------
    >>> [group.n for group in groups([0, 1] * 20, np.arange(40) / 40, most=4)]
    [10, 10, 10, 10]
    """
    need_count(1, most=most)
    t, p, _ = as_coins(outcome, probability)
    many = min(most, max(len(p) // _LEAST, 1))
    edges = np.unique(np.quantile(p, np.arange(1, many) / many))
    cell = np.searchsorted(edges, p, side="left")
    return [
        Group(int((cell == g).sum()), float(p[cell == g].mean()), float(t[cell == g].mean())) for g in np.unique(cell)
    ]


def grouped_limit(outcome: ArrayLike, probability: ArrayLike, *, tail: float, draws: ArrayLike | None = None) -> float:
    """Return an upper limit of the error over groups, missed with probability tail; see :func:`calibration_error`."""
    found = groups(outcome, probability)
    n, z = sum(group.n for group in found), -float(ndtri(tail))
    gaps = sum(group.n * abs(group.share - group.probability) for group in found)
    added = z**2 / 2
    shares = [(group.n * group.share + added) / (group.n + 2 * added) for group in found]
    variance = sum((group.n + 2 * added) * s * (1 - s) for group, s in zip(found, shares, strict=True))
    scale = 1.0 if draws is None else float(np.mean(1 + 1 / np.asarray(draws, float)))
    return min(scale * (gaps + z * math.sqrt(variance) + (z**2 + 2) / 3) / n, 1.0)


def outcomes_to_certify(probability: ArrayLike, *, error: float, alpha: float) -> float:
    """Return with how many outcomes right probabilities such as these are certified in four of five runs.

    Examples
    --------
    >>> 4000 < outcomes_to_certify(expit(1.5 * ndtri((np.arange(99) + 1) / 100)), error=0.025, alpha=0.05) < 5000
    True
    """
    p = np.asarray(probability, float)
    z = -float(ndtri(alpha))
    # The mean of five absolute normals of equal variance, the quantile, and the noise of the former.
    noise = math.sqrt(2 * GROUPS / math.pi) + z + float(ndtri(0.8)) * math.sqrt(1 - 2 / math.pi)
    c, k = noise * math.sqrt(float(np.mean(p * (1 - p)))), (z**2 + 2) / 3
    # error n = c sqrt(n) + k
    return math.ceil(((c + math.sqrt(c**2 + 4 * error * k)) / (2 * error)) ** 2)


@dataclass(frozen=True, eq=False)
class Corp:
    """The score of Brier, taken apart, and the curve that it is taken apart by.

    ``miscalibration`` (MCB) is what probabilities lose against the best increasing function of themselves,
    ``discrimination`` (DSC) what that function gains against the share of ones, ``uncertainty`` (UNC) the score of the
    share: Brier = MCB - DSC + UNC. ``excess`` is MCB less its mean for right probabilities. ``probability`` and
    ``curve`` are the different probabilities, and the function there; ``many`` how many outcomes have each.
    """

    miscalibration: float
    discrimination: float
    uncertainty: float
    excess: float
    probability: Floats
    curve: Floats
    many: Floats


def corp(outcome: ArrayLike, probability: ArrayLike, *, rng: Generator, resamples: int = 200) -> Corp:
    """Take the score of Brier apart by isotonic regression (Dimitriadis, Gneiting and Jordan, 2021).

    Examples
    --------
    >>> found = corp([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8], rng=np.random.default_rng(1))
    >>> round(found.miscalibration, 6), found.curve.tolist()
    (0.133125, [0.0, 0.0, 1.0, 1.0])
    """
    coins = Coins.of(outcome, probability)
    n, curve = coins.many.sum(), increasing(coins.ones / coins.many, coins.many)
    mean = coins.ones.sum() / n
    brier, best, flat = (_brier(coins, guess) for guess in (coins.p, curve, np.full_like(coins.p, mean)))
    usual = np.mean([_loss_of(coins, ones) for ones in _resampled(coins, rng, resamples)])
    return Corp(brier - best, flat - best, flat, brier - best - float(usual), coins.p, curve, coins.many)


def _brier(coins: Coins, guess: Floats) -> float:
    return float(coins.ones @ (1 - guess) ** 2 + (coins.many - coins.ones) @ guess**2) / float(coins.many.sum())


def _loss_of(coins: Coins, ones: Floats) -> float:
    drawn = replace(coins, ones=ones)
    return _brier(drawn, drawn.p) - _brier(drawn, increasing(ones / coins.many, coins.many))


def _resampled(coins: Coins, rng: Generator, resamples: int) -> Any:
    many = coins.many.astype(np.int64)
    return (rng.binomial(many, coins.p).astype(float) for _ in range(resamples))


def increasing(values: Floats, weights: Floats) -> Floats:
    """Return the increasing sequence nearest to values, by pooling neighbours that are out of order."""
    from scipy.optimize import isotonic_regression  # 0.1 s, for pictures and tables only

    return np.asarray(isotonic_regression(values, weights=weights).x)


def consistency_band(
    probability: ArrayLike, *, rng: Generator, level: float = 0.9, resamples: int = 400
) -> tuple[Floats, Floats, Floats]:
    """Return some of the probabilities, and between what the curve of right ones lies at each, with this chance.

    Examples
    --------
    >>> at, low, high = consistency_band(np.arange(1, 100) / 100, rng=np.random.default_rng(1))
    >>> bool((low <= at).mean() > 0.9 and (at <= high).mean() > 0.9)
    True
    """
    need_fraction(level=level)
    p = np.asarray(probability, float)
    coins = Coins.of(np.zeros(p.size), p)
    # Enough places for any picture: of a hundred thousand all curves would not fit in memory.
    places = np.unique(np.linspace(0, len(coins.p) - 1, min(_PLACES, len(coins.p))).astype(np.int64))
    curves = [increasing(ones / coins.many, coins.many)[places] for ones in _resampled(coins, rng, resamples)]
    low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return coins.p[places], low, high
