"""What is compared: the measures of one procedure, and their differences between two on the same data.

Differences are those of the estimates that the rows have; it must not know who is ahead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from ..functions import ALL
from ..judgement.column import Column, columns_of
from ..judgement.measures import coverage, spread_and_bias
from ..replicates.record import Replicates
from ..statistics.effects import Influences, Interval, influences
from ..statistics.effects.intervals import clopper_pearson, freedom, student
from ..values import Floats
from .ranking import DIVERGENCE, of_bias, of_spread

#: z or ranks, and among how many draws.
Scores = tuple[Any, int | None]

#: What is compared for every test function.
MEASURES = ("spread", "bias", "coverage", "crps")
#: And of all entries of theta together, if there are several.
JOINT = "energy score"
#: Replicates that neither lost, fewer of which tell nothing of their own variance.
_FEWEST = 3
#: Of an sd, or of a score: the same output computed in another order differs by 1e-16 of its values, which leaves up to
#: 1e-10 where these are a million sds. A smaller difference is rounding, and would matter to nobody if it were not.
_ROUNDING = 1e-9


def rows_of(name: str, column: Column, confidence: float) -> Iterator[Interval]:
    """Return the measures of one test function."""
    found = spread_and_bias(column, confidence=confidence)
    for one in (found.spread, found.bias, coverage(column, confidence=confidence)):
        yield replace(one, f=column.name, of=name)
    yield from _mean_row(name, column.name, "crps", column.array("crps"), confidence)


def joint_row(name: str, ran: Replicates, confidence: float) -> Iterator[Interval]:
    """Return the score of all entries of theta together, if it is known."""
    return _mean_row(name, ALL, JOINT, ran.energy[ran.rows], confidence)


def _mean_row(name: str, f: str, measure: str, scores: Floats, confidence: float) -> Iterator[Interval]:
    if scores.size > 1 and _have_means(scores):
        yield Interval(measure, *_mean(scores, confidence), f=f, of=name)


def _have_means(scores: Floats) -> bool:
    """Whether all scores are known, and so are their squares: numbers beyond 1e150 have none."""
    return bool((np.abs(scores) < 1e150).all())


def _mean(values: Floats, confidence: float) -> tuple[float, float, float]:
    """Return the mean and Student's interval."""
    n, mean = len(values), float(values.mean())
    reach = float(special.stdtrit(n - 1, 0.5 + confidence / 2) * values.std(ddof=1) / math.sqrt(n))
    return mean, mean - reach, mean + reach


def differences_of(a: str, b: str, ran: Mapping[str, Replicates], k: int, confidence: float) -> Iterator[Interval]:
    """Return the differences of all measures of column k that both have, over the replicates that neither lost."""
    both = ran[a].kept & ran[b].kept
    if both.sum() < _FEWEST:
        return
    one, other = (columns_of(ran[name])[k].at(both) for name in (a, b))
    chained = one.chains or other.chains  # whose positions have no known law to compare
    for found in () if chained else score_differences((one.scores, one.draws), (other.scores, other.draws), confidence):
        yield replace(found, f=one.name, of=(a, b))
    hits = _hits(one), _hits(other)
    if not chained and np.isfinite(hits).all() and _alike(one, other):
        yield replace(_share_difference(*hits, confidence), f=one.name, of=(a, b))
    yield from _mean_difference("crps", one.array("crps"), other.array("crps"), confidence, f=one.name, of=(a, b))


def joint_difference(a: str, b: str, ran: Mapping[str, Replicates], confidence: float) -> Iterator[Interval]:
    """Return the difference of the scores of all entries of theta together, if both are known."""
    both = ran[a].kept & ran[b].kept
    yield from _mean_difference(JOINT, ran[a].energy[both], ran[b].energy[both], confidence, f=ALL, of=(a, b))


def divergence_difference(
    a: str, b: str, ran: Mapping[str, Replicates], places: Sequence[int], confidence: float
) -> Iterator[Interval]:
    """Return the difference of the divergences, averaged over columns, if all of them have finite estimates."""
    both = ran[a].kept & ran[b].kept
    if both.sum() < _FEWEST:
        return
    sides = [[_influences_at(ran[name], k, both) for k in places] for name in (a, b)]
    mine, theirs = ([one for one in side if one is not None] for side in sides)
    if len(mine) == len(theirs) == len(places):
        yield replace(divergence_apart(mine, theirs, confidence), of=(a, b))


def divergence_apart(mine: Sequence[Influences], theirs: Sequence[Influences], confidence: float) -> Interval:
    """Return the difference of the divergences, averaged over test functions, less what noise adds to either."""
    first, second = (float(np.mean([_divergence(one) for one in side])) for side in (mine, theirs))
    apart = np.mean([_slopes(x) - _slopes(y) for x, y in zip(mine, theirs, strict=True)], axis=0)
    return Interval(DIVERGENCE, *_apart(first, second, _few(apart.size) * apart, confidence), 0.0, f=ALL)


def _influences_at(ran: Replicates, k: int, rows: Any) -> Influences | None:
    column = columns_of(ran)[k].at(rows)
    return influences(column.scores, draws=column.draws)


def _divergence(found: Influences) -> float:
    """Return the divergence less what is expected of noise alone, which few draws have more of than many."""
    # Half the trace of the second derivatives, 1 for the bias and 2 s^2 for log s, times the variances.
    by_bias, by_spread = found.values.var(axis=0) / len(found.values)
    noise = by_bias / 2 + math.exp(2 * found.log_spread) * by_spread
    return float(of_spread(found.log_spread) + of_bias(found.bias) - noise)


def _slopes(found: Influences) -> Floats:
    """Return what every replicate adds to the divergence, whose derivatives are the bias and s^2 - 1."""
    return np.asarray(found.values @ [found.bias, math.expm1(2 * found.log_spread)])


def _few(n: int) -> float:
    """Return by what factor standard errors from the influences on log s of n normal scores are too small."""
    # To second order their variance is too small by the factor 1 + 4 / n.
    return math.sqrt(1 + 4 / n)


def score_differences(first: Scores, second: Scores, confidence: float) -> Iterator[Interval]:
    """Return the differences of log spread and bias with their intervals, if both have finite estimates."""
    mine, theirs = (influences(values, draws=draws) for values, draws in (first, second))
    if mine is None or theirs is None:
        return
    by_bias, by_spread = (mine.values - theirs.values).T
    log_spread = _apart(mine.log_spread, theirs.log_spread, _few(by_spread.size) * by_spread, confidence)
    yield Interval("log spread", *log_spread, 0.0)
    yield Interval("bias", *_apart(mine.bias, theirs.bias, by_bias, confidence), 0.0)


def _mean_difference(measure: str, x: Floats, y: Floats, confidence: float, **whose: Any) -> Iterator[Interval]:
    """Return the difference of two mean scores, if they are known of all replicates."""
    if x.size >= _FEWEST and _have_means(x) and _have_means(y):
        # A score has the unit of theta, so that the scores themselves tell what is small.
        ends = _apart(float(x.mean()), float(y.mean()), x - y, confidence, unit=0.0)
        yield Interval(measure, *ends, 0.0, **whose)


#: Larger numbers have cubes beyond all numbers.
_CUBED = 1e100


def _apart(
    mine: float, theirs: float, influence: Floats, confidence: float, *, unit: float = 1.0
) -> tuple[float, float, float]:
    """Return the difference of two estimates and its interval, from what every replicate adds to it.

    It is never narrower than rounding: procedures that are equal up to it do not differ.
    """
    n, apart = influence.size, influence - influence.mean()
    rounding = _ROUNDING * max(unit, abs(mine), abs(theirs))
    scale = largest if (largest := float(np.abs(apart).max())) > _CUBED else 1.0
    apart = apart / scale
    error = scale * float(apart.std(ddof=1)) / math.sqrt(n)
    skew = float(np.mean(apart**3)) / max(float(np.mean(apart**2)) ** 1.5, 1e-300) / math.sqrt(n)
    down, up = _quantiles(student(confidence, freedom(apart)), skew)
    return mine - theirs, mine - theirs - error * down - rounding, mine - theirs + error * up + rounding


def _quantiles(symmetric: float, skew: float) -> tuple[float, float]:
    """Return the quantiles for the lower and the upper end: Student's, or Hall's for skewed means where it is larger.

    Hall's t + g t^2 / 3 + g^2 t^3 / 27 + g / 6 of Student's t is nearly symmetric, g being the skewness over root n.
    Without it procedures that are equally far off, one too narrow and one too wide, would be told apart too often.
    """
    if abs(skew) < 1e-6:  # a cubic with its root at infinity; the two quantiles agree to six digits
        return symmetric, symmetric
    low, high = (3 * (np.cbrt(1 + skew * (x - skew / 6)) - 1) / skew for x in (symmetric, -symmetric))
    return max(symmetric, float(low)), max(symmetric, -float(high))


def _share_difference(x: Floats, y: Floats, confidence: float) -> Interval:
    """Return the difference of two shares of the same replicates; it excludes 0 only if McNemar's exact test does.

    Bonett and Price's interval, which adds a replicate to each way of disagreeing; and Clopper and Pearson's for the
    share of those that disagree one way, since with few replicates the former alone would be too short.
    """
    n, more, less = x.size, int(np.sum(x > y)), int(np.sum(x < y))
    centre, both = (more - less) / (n + 2), (more + less + 2) / (n + 2)
    reach = student(confidence, n - 1) * math.sqrt((both - centre**2) / (n + 2))
    ways = clopper_pearson(more, more + less, confidence, 0) if more + less else (0.5, 0.5)
    low, high = ((2 * way - 1) * (more + less) / n for way in ways)
    return Interval("coverage", (more - less) / n, min(centre - reach, low), max(centre + reach, high), 0.0)


def _hits(column: Column) -> Floats:
    """Return 1 for every truth in its central interval; nan where one draw has none."""
    found, draws = coverage(column, confidence=0.5), column.draws
    if draws is None:
        return np.asarray(np.abs(column.u - 0.5) <= found.ideal / 2, float)
    if math.isnan(found.estimate):
        return np.full(column.n, math.nan)
    ends = round((draws + 1) * (1 - found.ideal) / 2)
    return np.asarray((column.values >= ends) & (column.values <= draws - ends), float)


def _alike(one: Column, other: Column) -> bool:
    """Whether the central intervals of both have the same level, which few draws do not reach."""
    return math.isclose(coverage(one, confidence=0.5).ideal, coverage(other, confidence=0.5).ideal)
