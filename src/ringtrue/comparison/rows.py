"""What is compared: the measures of one procedure, and their differences between two on the same data.

Differences are those of the estimates that the rows have; it must not know who is ahead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from ..functions import ALL
from ..judgement.column import Column, columns_of
from ..judgement.measures import coverage, spread_and_bias
from ..replicates.record import Replicates
from ..statistics.effects import Interval, influences
from ..statistics.effects.intervals import freedom, student
from ..values import Floats

#: z or ranks, and among how many draws.
Scores = tuple[Any, int | None]

#: What is compared for every test function.
MEASURES = ("spread", "bias", "coverage", "crps")
#: And of all entries of theta together, if there are several.
JOINT = "energy score"
#: Replicates that neither lost, fewer of which tell nothing of their own variance.
_FEWEST = 3


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
    if scores.size > 1 and np.isfinite(scores).all():
        yield Interval(measure, *_mean(scores, confidence), f=f, of=name)


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
    comparable = not chained and _alike(one, other)
    for measure, x, y in (("coverage", *hits), ("crps", one.array("crps"), other.array("crps"))):
        if np.isfinite(x).all() and np.isfinite(y).all() and (measure == "crps" or comparable):
            yield Interval(measure, *_mean(x - y, confidence), 0.0, f=one.name, of=(a, b))


def joint_difference(a: str, b: str, ran: Mapping[str, Replicates], confidence: float) -> Iterator[Interval]:
    """Return the difference of the scores of all entries of theta together, if both are known."""
    both = ran[a].kept & ran[b].kept
    apart = ran[a].energy[both] - ran[b].energy[both]
    if apart.size >= _FEWEST and np.isfinite(apart).all():
        yield Interval(JOINT, *_mean(apart, confidence), 0.0, f=ALL, of=(a, b))


def score_differences(first: Scores, second: Scores, confidence: float) -> Iterator[Interval]:
    """Return the differences of log spread and bias with their intervals, if both have finite estimates."""
    mine, theirs = (influences(values, draws=draws) for values, draws in (first, second))
    if mine is None or theirs is None:
        return
    apart = mine.values - theirs.values
    # Of n normal scores the influences on log s show a variance too small by the factor 1 + 4 / n, to second order.
    few = math.sqrt(1 + 4 / len(apart))
    log_spread = _centred(mine.log_spread - theirs.log_spread, few * apart[:, 1], confidence)
    yield Interval("log spread", *log_spread, 0.0)
    yield Interval("bias", *_centred(mine.bias - theirs.bias, apart[:, 0], confidence), 0.0)


def _centred(estimate: float, influence: Floats, confidence: float) -> tuple[float, float, float]:
    """Return an estimate and its interval, from what every replicate adds to it."""
    reach = student(confidence, freedom(influence)) * float(influence.std(ddof=1)) / math.sqrt(influence.size)
    return estimate, estimate - reach, estimate + reach


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
