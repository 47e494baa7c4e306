"""Which kind of error it is: one that a factor and a shift correct, or one of shape.

Spread and bias describe z ~ N(bias, spread^2). This module asks whether that family describes the positions at all,
and if not, which way they depart from it, so that words and pictures say the same. It decides nothing about verdicts
and writes no sentences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..statistics import effects
from ..statistics.effects import SpreadAndBias
from ..statistics.effects.ranks import LARGEST, SMALLEST, cells_of, kernel_of, weights_of
from ..statistics.effects.spread import HUGE
from ..statistics.groups import grouped_spreads_and_biases
from . import chains, groups
from .column import Column, columns_of

Floats = NDArray[np.float64]
Kind = Literal["plain", "outliers", "skewed", "uneven", "two-sided", "flat", "other"]

#: Of the intervals of spread and bias that a diagnosis goes by.
_CONFIDENCE = 0.95
#: Evidence against the family, and its size in nats, below which a shape is not spoken of. A spread wrong by 10 % has
#: this divergence too.
EVIDENT, MATTERS = 0.01, 0.01
#: Outliers are the cause if without them the spread is smaller by this factor (or right), and no more than this share.
_WITHOUT, _SHARE = 1.2, 0.25
#: And if the others are misshapen too, this factor.
_FAR_WIDER = 1.5
#: The chance that one of the replicates of a normal law is taken for an outlier.
_RARE = 0.001
#: The same where there is one already.
_LESS_RARE = 0.05
#: Ranks do not tell how far a miss is, and outputs have tails of their own: one by fewer of their sd is not far.
_FAR = 5.0
#: The largest finite normal score of a u below 1.
_ROUNDS = 8.2
#: Scores whose sd is smaller are equal up to rounding; four normal ones rarely have a sd so much below their law's.
_EQUAL, _AT_MOST = 1e-8, 1e-6
#: Ranks hardly tell larger spreads apart; so many draws tell mean and sd of the output well.
_SATURATED, _MANY = 5.0, 19
#: Components of the goodness test: two odd ones and two even ones.
_COMPONENTS = 4
#: A middle with less than this fraction of the truths that its neighbours have is a gap; flat z have 0.86.
_GAP = 0.7
#: Where normal scores are counted, 2e-9 of the law being beyond, and in how many cells.
_EDGE, _CELLS = 6.0, 1200


@dataclass(frozen=True)
class Outliers:
    """How many outputs miss by at least so many of their sd, on which sides the truth is, and the fit of the others.

    ``beyond`` is infinite if the truth lies where the outputs have next to no probability, however near that is.
    """

    count: int
    sides: tuple[bool, bool]
    beyond: float
    worst: float
    rest: SpreadAndBias


@dataclass(frozen=True)
class Diagnosis:
    """The kind of error of one test function.

    Attributes
    ----------
    kind
        "plain": spread and bias describe it; "outliers": few outputs miss by far; "skewed": truths reach further to
        one side; "uneven": too many truths both in the middle and far out, as where widths are right on average only;
        "two-sided": truths avoid the middle; "flat": truths are too rarely far out and too often half way; "other".
    fit
        Spread and bias of all.
    pvalue, size
        Evidence against the family of normal z, and the divergence from it in nats.
    up
        Whether the longer tail of the truths is above; of skewed ones only.
    outliers
        Those that there are, whether or not they are the kind of error.
    errors
        Root mean square of (truth - mean) / sd, the mean taken off if there is a bias, where ranks show that the
        outputs are far too narrow and hardly by how much; nan elsewhere.
    """

    kind: Kind
    fit: SpreadAndBias
    pvalue: float = 1.0
    size: float = 0.0
    up: bool = True
    outliers: Outliers | None = None
    errors: float = math.nan

    @property
    def of_fit(self) -> float:
        """The divergence from calibration that spread and bias account for, in nats; infinite where one of them is."""
        s, b = self.fit.spread.estimate, self.fit.bias.estimate
        return (s * s - 1) / 2 - math.log(s) + b * b / 2 if math.isfinite(s) and math.isfinite(b) else math.inf


def diagnose(column: Column) -> Diagnosis:
    """Say which kind of error a column has, if it has one; a calibrated one is plain. It is worked out once.

    Parameters
    ----------
    column
        Of a test function of theta alone; lost replicates are left out.

    Notes
    -----
    The null hypothesis is z ~ N(bias, spread^2) with both unknown. Four bounded polynomials of the fitted position,
    made orthogonal to the scores of both parameters, have a sum of squares that is chi-squared then, whatever the
    parameters and among however many draws. The largest names the kind; a kind other than plain needs p < 0.01 and a
    divergence of 0.01. It sees neither an error that varies with the data and averages out, nor, on few draws, what
    happens within the outermost rank.

    Outliers lie further from a fit of bounded influence than any of n normal scores does once in a thousand runs. They
    are the kind of error if the others have the shape of the family, and a spread smaller by a fifth or no error; or if
    without them the spread is smaller by a third, whatever its shape.
    Among draws, how far out a truth of extreme rank is is told by mean and sd of the draws, and far is at least 5 sd.
    That is no error by itself, since outputs may have such tails: they are the kind only if the ranks show an error,
    by spread, bias or shape, or by too many truths beyond all draws (p < 0.01).

    Measured (300 runs each; n = 50, 200, 1000; exact, M = 9, 19, 99): a calibrated, over-confident (1.4),
    under-confident (0.7) or biased (0.4) procedure is called plain in 98 % of runs or more, at n = 1000 in 99 %. Of 100
    runs with mean and variance of z right or outliers added, the kind was named, the rest mostly being called plain:

    ============================  ========  =======  ========  =======
    n = 200, then n = 1000        exact     M = 9    M = 19    M = 99
    ============================  ========  =======  ========  =======
    skewed, Gamma(4)              91, 100   16, 71   50, 99    92, 100
    two modes                     94, 100   93, 100  100, 100  99, 100
    uniform z (flat)              79, 97    3, 33    39, 97    78, 98
    widths 0.4 and 1.36 (uneven)  100, 100  7, 28    56, 100   93, 100
    2 % of outputs 10 sd off      100, 100  0, 14    12, 42    33, 93
    5 % of outputs 6 sd off       98, 92    0, 4     25, 75    75, 99
    ============================  ========  =======  ========  =======

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> skewed = check_draws(rng.gamma(2.0, size=800), rng.normal(2.0, 2**0.5, size=(800, 99)))
    >>> diagnose(Column(skewed.replicates, 0)).kind
    'skewed'
    """
    # Words, captions and advice ask for the same diagnosis: it stays with the column.
    known: Diagnosis | None = vars(column).get("_diagnosis")
    if known is None:
        known = vars(column)["_diagnosis"] = _diagnosed(column, _CONFIDENCE)
    return known


def _independent(column: Column) -> Column:
    """Return the column, or that of one replicate of each group."""
    return column if column.groups is None else columns_of(groups.one_of_each(column.replicates))[column.k]


def _diagnosed(column: Column, confidence: float) -> Diagnosis:
    if column.chains:  # positions among draws of chains do not tell a shape
        return Diagnosis("plain", fit_of_all(column, confidence))
    # A test of the shape needs replicates that are independent; outliers stand out from whichever others there are.
    draws, values = column.draws, _values(_independent(column))
    if draws is None and float(np.mean(np.abs(values) == _ROUNDS)) > _SHARE:
        return Diagnosis("plain", fit_of_all(column, confidence))
    found = _of_family(values, draws, confidence)
    told = replace(found, fit=fit_of_all(column, confidence), errors=_errors(column, found.fit))
    far = far_out(column)
    if far is None:
        return told
    rest, outliers = far
    cause = _explained(found.fit, rest) and (draws is None or _shown(found, values, draws))
    return replace(told, kind="outliers" if cause else found.kind, outliers=outliers)


def far_out(column: Column, *, among: int = 1) -> tuple[Diagnosis, Outliers] | None:
    """Return the outputs of a column that miss by far, and the diagnosis of the others; None if there are none.

    They need not be errors: outputs with heavy tails of their own miss by far now and then, and so do some of many
    columns, ``among`` which this one was chosen.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> draws = np.tile(np.arange(-9.0, 10.0), (100, 1))
    >>> truth = np.where(np.arange(100) < 3, 1000.0, np.arange(100) % 10)
    >>> far_out(Column(check_draws(truth, draws, iid=True).replicates, 0))[1].count
    3
    """
    draws, values = column.draws, _values(column)
    if values.size < 3 or draws == 1 or column.chains:
        return None
    # By a fit of bounded influence first: outliers inflate the usual one until none of them stands out.
    wild = _wild(column, values, _RARE / among)
    if not 0 < wild.sum() <= _SHARE * values.size:
        return None
    miss = column.misses
    if draws is None:
        miss = np.where(np.isnan(miss), column.scores, miss)
    rest, size = _of_family(values[~wild], draws, _CONFIDENCE), np.nan_to_num(np.abs(miss), posinf=math.inf)
    beyond = float(size[wild].min())
    sides = bool((miss[wild] < 0).any()), bool((miss[wild] > 0).any())
    # Bounded outputs give no probability to a truth just outside them: few of their sd away, infinitely many scores.
    if draws is None and beyond < min(_FAR, 0.9 * float(np.abs(values[wild]).min())):  # tails that end, or nearly so
        return rest, Outliers(int(wild.sum()), sides, math.inf, math.inf, rest.fit)
    return rest, Outliers(int((size >= beyond).sum()), sides, beyond, float(size.max()), rest.fit)


def _values(column: Column) -> NDArray[Any]:
    """Return ranks, or normal scores; infinite ones are at least as far out as where a distribution function rounds."""
    scores = column.scores
    if column.draws is not None:
        return scores
    return np.asarray(np.where(np.abs(scores) < HUGE, scores, np.copysign(_ROUNDS, scores)))


def fit_of_all(column: Column, confidence: float) -> SpreadAndBias:
    """Return spread and bias with infinite scores as they are, and with a bound if all scores are equal."""
    if column.chains:
        return chains.spread_and_bias(column, confidence=confidence)
    fit = _fit(column, confidence)
    equal = column.draws is None and column.n > 3 and fit.spread.estimate < _EQUAL
    if equal and math.isinf(fit.spread.high):
        return replace(fit, spread=replace(fit.spread, high=_AT_MOST))
    return fit


def _fit(column: Column, confidence: float) -> SpreadAndBias:
    if column.groups is None:
        return effects.spread_and_bias(column.scores, draws=column.draws, confidence=confidence)
    return grouped_spreads_and_biases(column.scores, column.groups, draws=column.draws, confidences=[confidence])[0]


def _errors(column: Column, fit: SpreadAndBias) -> float:
    """Return how large errors are in units of the reported sd, where only that tells the spread; nan elsewhere."""
    spread, miss = fit.spread, column.misses
    wide = spread.low > 1 and (spread.estimate > _SATURATED or not math.isfinite(spread.high))
    if not wide or (column.draws or 0) < _MANY or not np.isfinite(miss).all():
        return math.nan
    with np.errstate(over="ignore", invalid="ignore"):  # a miss beyond 1e154 has no square
        size = float(np.sqrt(np.mean(np.square(miss if fit.bias.low <= 0 <= fit.bias.high else miss - miss.mean()))))
    return size if 1 < size < math.inf else math.nan


def _shown(found: Diagnosis, ranks: NDArray[Any], draws: int) -> bool:
    """Whether ranks show an error that outliers make: of shape, spread or bias, or too many truths beyond all draws."""
    beyond = int(((ranks == 0) | (ranks == draws)).sum())
    crowded = float(special.bdtrc(beyond - 1, ranks.size, 2 / (draws + 1))) < EVIDENT
    spread, bias = found.fit.spread, found.fit.bias
    return crowded or found.kind != "plain" or spread.low > 1 or not bias.low <= 0 <= bias.high


def _explained(fit: SpreadAndBias, rest: Diagnosis) -> bool:
    """Whether leaving out the outliers takes the error away, or much of the spread."""
    if rest.kind != "plain":
        return fit.spread.estimate > _FAR_WIDER * rest.fit.spread.estimate
    spread, bias = rest.fit.spread, rest.fit.bias
    right = spread.low <= 1 <= spread.high or 1 / 1.1 < spread.estimate < 1.1
    central = bias.low <= 0 <= bias.high or abs(bias.estimate) < 0.1
    return (right and central) or fit.spread.estimate > _WITHOUT * spread.estimate


def _of_family(values: NDArray[Any], draws: int | None, confidence: float) -> Diagnosis:
    """Return the kind of error, outliers left aside."""
    fit = effects.spread_and_bias(values, draws=draws, confidence=confidence)
    if not (SMALLEST < fit.spread.estimate < LARGEST and math.isfinite(fit.bias.estimate)):
        return Diagnosis("plain", fit)
    if draws is None:
        p, basis, odd = _normal_cells()
        return _from_cells(_of_scores(values), p, basis, odd, fit)
    p, scores = _rank_cells(draws, fit)
    counts = np.add.reduceat(np.bincount(values, minlength=draws + 1), cells_of(draws))
    return _from_cells(counts.astype(float), p, *_components(p, scores), fit)


def _of_scores(z: Floats) -> Floats:
    """Return counts in the cells of the fitted law."""
    # Counting in cells makes a million scores cost what a thousand do; 1200 cells of a hundredth hide nothing.
    w = (z - z.mean()) * (_CELLS / (2 * _EDGE * max(float(z.std()), 1e-300)))
    cell = np.clip(w + (_CELLS / 2 + 1), 0, _CELLS + 1).astype(np.int64)
    return np.bincount(cell, minlength=_CELLS + 2).astype(float)


@lru_cache
def _normal_cells() -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return probabilities and components of equal cells of the standard normal law, two unbounded ones outside."""
    edges = np.linspace(-_EDGE, _EDGE, _CELLS + 1)
    p = np.diff(special.ndtr(edges), prepend=0.0, append=1.0)
    middle = np.concatenate([[-_EDGE], (edges[1:] + edges[:-1]) / 2, [_EDGE]])
    return p, *_components(p, np.column_stack([middle, middle**2 - 1]))


def _rank_cells(draws: int, fit: SpreadAndBias) -> tuple[Floats, Floats]:
    """Return probabilities of ranks under the fitted law, and the scores of both parameters."""
    shares = kernel_of(draws) @ weights_of(fit.bias.estimate, math.log(fit.spread.estimate))[:, :3]
    p = np.maximum(shares[:, 0], 1e-300)
    return p / p.sum(), shares[:, 1:] / p[:, None]


def _from_cells(counts: Floats, p: Floats, basis: Floats, odd: NDArray[np.bool_], fit: SpreadAndBias) -> Diagnosis:
    n = float(counts.sum())
    found = basis.T @ counts / math.sqrt(n)
    total = float(found @ found)
    pvalue = float(special.chdtrc(found.size, total)) if found.size else 1.0
    size = max(total - found.size, 0.0) / (2 * n)
    if pvalue >= EVIDENT or size < MATTERS:
        return Diagnosis("plain", fit, pvalue, size)
    skew, tails = (next(iter(found[odd == parity]), 0.0) for parity in (True, False))
    return Diagnosis(_named(found, skew, tails, _has_gap(counts, p)), fit, pvalue, size, up=bool(skew > 0))


def _components(p: Floats, scores: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return functions of cells that no small change of place or scale moves, and which of them are odd.

    Legendre polynomials of the fitted position, orthogonal under p to one, to the scores and to each other. The
    first odd one is large at the upper end, the first even one at both ends.
    """
    v = np.cumsum(p) - p / 2
    root = np.sqrt(p)
    known = np.linalg.qr(root[:, None] * np.column_stack([np.ones_like(p), scores]))[0]
    kept, odd = [], []
    for degree in range(1, _COMPONENTS + 1):
        raw = root * special.eval_legendre(degree, 2 * v - 1)
        rest = raw - known @ (known.T @ raw)
        rest -= known @ (known.T @ rest)
        norm = float(np.linalg.norm(rest))
        if norm > 1e-3 * float(np.linalg.norm(raw)):
            unit = rest / norm
            unit = unit if unit[-1] > 0 else -unit
            known = np.column_stack([known, unit])
            kept.append(unit / root)
            odd.append(degree % 2 == 1)
    return (np.column_stack(kept) if kept else np.empty((p.size, 0))), np.array(odd, bool)


def _named(found: Floats, skew: float, tails: float, gap: bool) -> Kind:
    if float(found @ found) - skew**2 - tails**2 > max(skew**2, tails**2):
        return "other"
    if skew**2 >= tails**2:
        return "skewed"
    if tails > 0:
        return "uneven"
    return "two-sided" if gap else "flat"


def _has_gap(counts: Floats, p: Floats) -> bool:
    v = np.cumsum(p) - p / 2
    away = np.abs(v - 0.5)
    middle, beside = away <= 0.1, (away > 0.1) & (away <= 0.3)
    if not middle.any() or not beside.any():
        return False
    return bool(counts[middle].sum() / p[middle].sum() < _GAP * counts[beside].sum() / p[beside].sum())


def _wild(column: Column, values: NDArray[Any], chance: float) -> NDArray[np.bool_]:
    """Return which replicates miss by far: first of a fit that they do not move, then of the fit of the others."""
    draws, n = column.draws, values.size
    robust = effects.moment_spread_and_bias(values if draws else column.u, draws=draws)
    if draws is None:
        extreme, score = np.arange(n), values
    else:
        # Of few replicates: Student's law of all of them would take longer than all tests.
        extreme = np.flatnonzero(((values == 0) | (values == draws)) & (np.abs(column.misses) >= _FAR))
        score = _score_of(column.misses[extreme], draws)
    wild = np.zeros(n, bool)
    wild[extreme] = _beyond(score, robust.spread, robust.bias, chance / n)
    if not 0 < wild.sum() <= _SHARE * n:
        return wild
    rest = effects.spread_and_bias(values[~wild], draws=draws)
    wild[extreme] |= _beyond(score, rest.spread.estimate, rest.bias.estimate, _LESS_RARE / n)
    return wild


def _beyond(score: Floats, spread: float, bias: float, chance: float) -> NDArray[np.bool_]:
    """Return which scores a normal law, no narrower than the standard one, exceeds with so small a chance."""
    if not (0 < spread < math.inf and math.isfinite(bias)):
        return np.zeros(score.size, bool)
    return np.asarray(np.abs(score - bias) > -float(special.ndtri(chance / 2)) * max(spread, 1.0))


def _score_of(miss: Floats, draws: int) -> Floats:
    """Return the normal score of a miss in units of the sd of so many draws, as of normal outputs; 0 if not known."""
    t = np.nan_to_num(miss, nan=0.0, posinf=1e8, neginf=-1e8) / math.sqrt(1 + 1 / draws)
    # From the lower tail, where it is accurate; Student's tail may round to 0.
    below = np.maximum(special.stdtr(draws - 1, -np.abs(t)), 1e-300)
    return np.asarray(-np.sign(t) * special.ndtri(below))
