"""What is compared: the measures of one procedure, and their differences between two on the same data.

Differences are those of the estimates that the rows have; it must not know who is ahead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..functions.contract import ALL
from ..replicates.record import Replicates
from ..statistics import effects
from ..statistics.effects import Interval, influences
from ..statistics.effects.intervals import freedom, student

Floats = NDArray[np.float64]
Rows = Any
#: z or ranks, and among how many draws.
Scores = tuple[Any, int | None]

#: What is compared for every test function.
MEASURES = ("spread", "bias", "coverage", "crps")
#: And of all entries of theta together, if there are several.
JOINT = "energy score"
#: Replicates that neither lost, fewer of which tell nothing of their own variance.
_FEWEST = 3


def fit(ran: Replicates, k: int, confidence: float) -> effects.SpreadAndBias:
    """Return spread and bias of column k."""
    values, draws = _scores(ran, k, ran.rows)
    return effects.spread_and_bias(values, draws=draws, confidence=confidence, lost=len(ran.failures))


def coverage(ran: Replicates, k: int, confidence: float, nominal: float = 0.9) -> Interval:
    """Return the coverage of the central intervals of column k."""
    draws = ran.lattice(k)
    values = ran.u[ran.rows, k] if draws is None else ran.rank[ran.rows, k]
    return effects.coverage(values, draws=draws, nominal=nominal, confidence=confidence, lost=len(ran.failures))


def rows_of(name: str, ran: Replicates, k: int, confidence: float) -> Iterator[Interval]:
    """Return the measures of column k."""
    f, found = ran.columns[k].name, fit(ran, k, confidence)
    for one in (found.spread, found.bias, coverage(ran, k, confidence)):
        yield replace(one, f=f, of=name)
    yield from _mean_row(name, f, "crps", ran.crps[ran.rows, k], confidence)


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
    one, other = ran[a], ran[b]
    both = one.kept & other.kept
    if both.sum() < _FEWEST:
        return
    f = one.columns[k].name
    for found in score_differences(_scores(one, k, both), _scores(other, k, both), confidence):
        yield replace(found, f=f, of=(a, b))
    hits = _hits(one, k, both), _hits(other, k, both)
    for measure, x, y in (("coverage", *hits), ("crps", one.crps[both, k], other.crps[both, k])):
        if np.isfinite(x).all() and np.isfinite(y).all() and (measure == "crps" or _alike(one, other, k)):
            yield Interval(measure, *_mean(x - y, confidence), 0.0, f=f, of=(a, b))


def joint_difference(a: str, b: str, ran: Mapping[str, Replicates], confidence: float) -> Iterator[Interval]:
    """Return the difference of the scores of all entries of theta together, if both are known."""
    both = ran[a].kept & ran[b].kept
    apart = ran[a].energy[both] - ran[b].energy[both]
    if apart.size >= _FEWEST and np.isfinite(apart).all():
        yield Interval(JOINT, *_mean(apart, confidence), 0.0, f=ALL, of=(a, b))


def _scores(ran: Replicates, k: int, rows: Rows) -> Scores:
    """Return z or ranks, and among how many draws."""
    draws = ran.lattice(k)
    return (ran.z if draws is None else ran.rank)[rows, k], draws


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


def _hits(ran: Replicates, k: int, rows: Rows) -> Floats:
    """Return 1 for every truth in its central interval; nan where one draw has none."""
    found, draws = coverage(ran, k, 0.5), ran.lattice(k)
    if draws is None:
        return np.asarray(np.abs(ran.u[rows, k] - 0.5) <= found.ideal / 2, float)
    if math.isnan(found.estimate):
        return np.full(np.count_nonzero(rows), math.nan)
    ends = round((draws + 1) * (1 - found.ideal) / 2)
    rank = ran.rank[rows, k]
    return np.asarray((rank >= ends) & (rank <= draws - ends), float)


def _alike(one: Replicates, other: Replicates, k: int) -> bool:
    """Whether the central intervals of both have the same level, which few draws do not reach."""
    return math.isclose(coverage(one, k, 0.5).ideal, coverage(other, k, 0.5).ideal)
