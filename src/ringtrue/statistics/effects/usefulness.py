"""Is it any use? A procedure that ignores its data is calibrated and worthless; these measures tell it from others.

Each takes arrays with one entry per replicate and returns an Interval without an ideal: nan, with an unbounded
interval, where a number is unknown, where all truths are equal, or where there are fewer than four (forty for a
quantile). The belief's own scores are estimated from the truths, which are draws of it. Contraction takes the output's
word for its own width; skill does not: an over-confident output contracts and has no skill. This module knows arrays;
it must not know studies, replicates or verdicts.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import Floats, need_fraction
from .intervals import Interval, freedom, student

__all__ = ["contraction", "correlation", "energy_skill", "interval_skill", "skill", "uninformative"]

#: Skill and contraction below this say that the output hardly depends on the data.
HARDLY = 0.05
#: The central interval whose score `interval_skill` compares.
_NOMINAL = 0.9


def contraction(truth: ArrayLike, sd: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Estimate by how much outputs are narrower than the belief: 1 - E sd^2 / var(truth).

    0 means as wide as the belief, 1 a point. It says nothing of whether the output is right to be narrow.

    Parameters
    ----------
    truth, sd : array_like, shape (n,)
        f(theta), and the standard deviation of f under the output.
    confidence : float
        That of the interval, by the delta method on the logarithm of the ratio, with the second-order terms and
        Satterthwaite's degrees of freedom that the spread of z has.

    Notes
    -----
    It needs a belief with a variance. A nominal 95 % interval was measured (200 repetitions, 1000 where those
    left 0.93 to 0.97; truths Gaussian, Gamma(4) and t_5; calibrated and over-confident outputs, exact and as 9, 19 and
    99 draws; n = 200 and 1000) to cover 0.93 to 0.97, but 0.925 for t_5 at n = 200 and 9 draws.

    Examples
    --------
    >>> from scipy import special
    >>> x = special.ndtri((np.arange(400) + 0.5) / 400)
    >>> print(contraction(x, np.full(400, 0.5**0.5)))
    contraction 0.5 (0.425 to 0.565; ideal nan)
    """
    x, width = _scaled(confidence, truth, sd)
    if x.size < 4 or not np.isfinite(width).all() or x.var() <= 0:
        return Interval("contraction", math.nan, -math.inf, 1.0)
    squares, apart = np.square(width), np.square(x - x.mean())
    variance = float(apart.sum()) / (x.size - 1)
    influence = squares / max(float(squares.mean()), 1e-300) - apart / float(apart.mean())
    return _from_ratio("contraction", float(squares.mean()) / variance, influence, confidence, extra=0.0)


def skill(truth: ArrayLike, crps: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Estimate how much better outputs predict than the belief: 1 - E crps / crps of the belief.

    The continuous ranked probability score rewards sharpness and calibration together. 0 is as good as the belief, 1
    perfect, below 0 worse than not looking at the data.

    Parameters
    ----------
    truth, crps : array_like, shape (n,)
        f(theta), and the score of the output for it.
    confidence : float
        As in `contraction`.

    Notes
    -----
    The belief's score is half the mean absolute difference of two truths, all pairs, in O(n log n). It moves with the
    outputs' own scores, and the interval knows: that of a procedure which returns the belief is of order 1/n, and
    conservative. A nominal 95 % interval was measured, as for :func:`contraction`, to cover 0.93 to 0.965.

    Examples
    --------
    >>> from scipy import special
    >>> x = special.ndtri((np.arange(400) + 0.5) / 400)
    >>> print(skill(x, np.full(400, 0.5 / np.pi**0.5)))
    skill 0.501 (0.464 to 0.535; ideal nan)
    """
    x, score = _scaled(confidence, truth, crps)
    if x.size < 4 or not np.isfinite(score).all() or np.ptp(x) == 0:
        return Interval("skill", math.nan, -math.inf, 1.0)
    apart = _mean_distances(x)
    belief = float(apart.mean()) / 2
    # The projection of a mean over pairs counts twice, and its half once.
    influence = score / belief - (apart - belief) * float(score.mean()) / belief**2
    # What the projection leaves of the variance of |x - x'|; all there is for a procedure that returns the belief.
    rest = max(2 * float(x.var(ddof=1)) - 4 * belief**2 - 2 * float(apart.var(ddof=1)), 0.0)
    ratio, extra = float(score.mean()) / belief, rest / belief**2 / (2 * x.size * (x.size - 1))
    if ratio <= 0:  # fair scores of few draws may be negative, even on average
        half = student(confidence, x.size - 1) * math.sqrt(float(influence.var(ddof=1)) / x.size + ratio**2 * extra)
        return Interval("skill", 1 - ratio, 1 - ratio - half, 1 - ratio + half)
    return _from_ratio("skill", ratio, influence / ratio, confidence, extra=extra)


def interval_skill(truth: ArrayLike, interval: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Estimate how much better the outputs' 90 % intervals are than the belief's: 1 - E score / score of the belief.

    The interval score is the width plus twenty times how far outside the truth lies.

    Parameters
    ----------
    truth, interval : array_like, shape (n,)
        f(theta), and the score of the output's interval for it.
    confidence : float
        As in `contraction`.

    Notes
    -----
    The belief's interval is that between the quantiles of the truths, which minimises their mean score: seen by the
    same truths the score is too small by some c/n, and by truths left out in turn, too large by as much. The mean of
    the two is used. Because of the minimum, the noise of the quantiles does not enter to first order. A nominal 95 %
    interval was measured, as for :func:`contraction`, to cover 0.93 to 0.97; that of a procedure which returns the
    belief is conservative.

    Examples
    --------
    >>> from scipy import special
    >>> x = special.ndtri((np.arange(400) + 0.5) / 400)
    >>> round(interval_skill(x, np.full(400, 0.25 * 4.1254)).estimate, 2)
    0.75
    """
    x, score = _scaled(confidence, truth, interval)
    if x.size < 40 or not np.isfinite(score).all() or np.ptp(x) == 0:
        return Interval("interval skill", math.nan, -math.inf, 1.0)
    inside, without = _belief_interval_scores(x)
    belief = (inside + without) / 2
    ratio = float(score.mean() / belief.mean())
    if ratio <= 0:
        return Interval("interval skill", 1 - ratio, -math.inf, 1.0)
    influence = score / float(score.mean()) - belief / float(belief.mean())
    # Near the minimum the score is a sum of two squares of normals, with half their mean as standard deviation: all
    # the noise there is for a procedure that returns the belief.
    extra = (float(without.mean() - inside.mean()) / 2 / float(belief.mean())) ** 2
    return _from_ratio("interval skill", ratio, influence, confidence, extra=extra)


def energy_skill(energy: ArrayLike, belief: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Estimate how much better outputs predict all entries of theta than the belief: 1 - E score / score of the belief.

    The energy score is to several dimensions what the continuous ranked probability score is to one. It sees errors of
    location and spread well, and wrong correlations hardly.

    Parameters
    ----------
    energy, belief : array_like, shape (n,)
        Energy scores of the outputs and of the belief for the same truths, each estimated without bias.
    confidence : float
        That of the interval, in pairs.

    Notes
    -----
    A nominal 95 % interval was measured, as for :func:`contraction` with three entries, to cover 0.93 to 0.97.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> print(energy_skill(rng.gamma(4, 0.5, 400), rng.gamma(4, 1.0, 400)))
    energy skill 0.509 (0.472 to 0.543; ideal nan)
    """
    score, rival = _columns(confidence, energy, belief)
    if score.size < 4 or not (np.isfinite(score).all() and np.isfinite(rival).all()) or rival.mean() <= 0:
        return Interval("energy skill", math.nan, -math.inf, 1.0)
    score, rival = score / float(rival.mean()), rival / float(rival.mean())
    ratio = float(score.mean())
    if ratio <= 0:  # scores of few draws may be negative, even on average
        half = student(confidence, score.size - 1) * math.sqrt(float((score - ratio * rival).var(ddof=1)) / score.size)
        return Interval("energy skill", 1 - ratio, 1 - ratio - half, 1 - ratio + half)
    return _from_ratio("energy skill", ratio, score / ratio - rival, confidence, extra=0.0)


def correlation(truth: ArrayLike, mean: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Estimate the correlation of the outputs' means with the truths.

    It sees whether the output follows the truth, whatever width it claims; a wrong scale or offset is invisible.

    Parameters
    ----------
    truth, mean : array_like, shape (n,)
        f(theta), and the mean of f under the output.
    confidence : float
        That of the interval: Fisher's, with the variance that the sample shows instead of 1/n.

    Notes
    -----
    A nominal 95 % interval was measured, as for :func:`contraction`, to cover 0.93 to 0.97.

    Examples
    --------
    >>> from scipy import special
    >>> x = special.ndtri((np.arange(400) + 0.5) / 400)
    >>> print(correlation(x, -x))
    correlation -1 (-1 to -1; ideal nan)
    """
    x, centre = _scaled(confidence, truth, mean)
    if x.size < 4 or not np.isfinite(centre).all() or x.std() <= 0:
        return Interval("correlation", math.nan, -1.0, 1.0)
    if np.ptp(centre) <= 1e-12 * float(np.abs(centre).max()):
        return Interval("correlation", 0.0, 0.0, 0.0)
    centre = centre / float(np.abs(centre).max())
    a, b = ((v - v.mean()) / v.std() for v in (x, centre))
    r = float(np.clip(np.mean(a * b), -1, 1))
    if 1 - r**2 < 1e-12:
        return Interval("correlation", r, r, r)
    influence = (a * b - r * (a**2 + b**2) / 2) / (1 - r**2)
    df, variance = freedom(influence), float(np.square(influence).mean()) / (x.size - 3)
    half = student(confidence, df) * math.sqrt(variance)
    low, high = np.tanh(np.arctanh(r) + np.array([-half, half])).tolist()
    return Interval("correlation", r, low, high)


def uninformative(skill: Interval, contraction: Interval) -> bool:
    """Say whether outputs are known to be no better than the belief, and not known to be narrower.

    Parameters
    ----------
    skill, contraction
        From the functions of that name. Skill decides: its whole interval must lie below 0.05. An output that is
        narrower than the belief does depend on something, or is over-confident, which other measures say.

    Examples
    --------
    >>> uninformative(Interval("skill", 0, -0.01, 0.01), Interval("contraction", 0, -0.1, 0.1))
    True
    """
    return skill.high < HARDLY and contraction.low < HARDLY


def _columns(confidence: float, *columns: ArrayLike) -> list[Floats]:
    need_fraction(confidence=confidence)
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    if arrays[0].ndim != 1 or any(array.shape != arrays[0].shape for array in arrays):
        raise ValueError(f"arrays of one shape (n,) are needed, got {[array.shape for array in arrays]}")
    return arrays


def _scaled(confidence: float, truth: ArrayLike, other: ArrayLike) -> tuple[Floats, Floats]:
    """Return both in units in which the squares of truths neither overflow nor vanish; nan what is beyond them."""
    x, y = _columns(confidence, truth, other)
    if not np.isfinite(x).all():
        raise ValueError("truth contains nan or an infinity; leave lost replicates out")
    scale = max(float(np.abs(x).max(initial=0.0)), np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        y = y / scale
    return x / scale, np.where(np.abs(y) < 1e100, y, np.nan)


def _mean_distances(x: Floats) -> Floats:
    """Return for each x its mean distance to the others, by sorting."""
    n = x.size
    order = np.argsort(x)  # of equal ones any: their sums are the same
    ordered = x[order] - x.mean()  # sums of large offsets would cancel
    before = np.cumsum(ordered) - ordered
    total = float(ordered.sum())
    k = np.arange(n)
    sums = k * ordered - before + (total - before - ordered) - (n - 1 - k) * ordered
    apart = np.empty(n)
    apart[order] = sums / (n - 1)
    return apart


def _belief_interval_scores(x: Floats) -> tuple[Floats, Floats]:
    """Return the score of each truth for the interval between the quantiles of all, and of all others."""
    ordered = np.sort(x)
    low, high = np.quantile(ordered, [0.5 - _NOMINAL / 2, 0.5 + _NOMINAL / 2])
    inside = _score(low, high, x)
    n = x.size
    without = _quantiles_without(ordered, n)
    place = np.searchsorted(ordered, x, side="left")
    return inside, _score(without[0][place], without[1][place], x)


def _quantiles_without(ordered: Floats, n: int) -> tuple[Floats, Floats]:
    """Return both quantiles of the sample without its k-th smallest, for every k; numpy's definition."""
    ends = []
    for q in (0.5 - _NOMINAL / 2, 0.5 + _NOMINAL / 2):
        at = q * (n - 2)
        j, part = int(at), at - int(at)
        k = np.arange(n)
        first, second = ordered[j + (k <= j)], ordered[np.minimum(j + 1 + (k <= j + 1), n - 1)]
        ends.append(np.asarray((1 - part) * first + part * second))
    return ends[0], ends[1]


def _score(low: Floats, high: Floats, x: Floats) -> Floats:
    outside = np.maximum(low - x, 0) + np.maximum(x - high, 0)
    return np.asarray(high - low + 2 / (1 - _NOMINAL) * outside)


def _from_ratio(name: str, ratio: float, influence: Floats, confidence: float, *, extra: float) -> Interval:
    """Return 1 - ratio, with an interval from the influence of each replicate on the logarithm of the ratio."""
    n = influence.size
    variance = float(influence.var(ddof=1)) / n + extra
    half = student(confidence, freedom(influence - influence.mean())) * math.sqrt(variance)
    low, high = (1 - ratio * math.exp(min(side * half, 700.0)) for side in (1, -1))
    return Interval(name, 1 - ratio, low, high)
