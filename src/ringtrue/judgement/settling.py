"""What would settle an open question: how many replicates, how many draws, how much narrower an interval.

It computes what the sentence of an inconclusive verdict says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..replicates.record import Replicates
from ..statistics import planning
from ..statistics.effects import Interval
from .column import strong_columns
from .verdict import SIZES, Tolerance

#: More than this share is nearly all.
_NEARLY_ALL = 0.9


def one_draw(replicates: Replicates) -> bool:
    """Whether nearly all outputs for some test function have one draw."""
    return any(float(np.mean(column.array("draws") == 1)) > _NEARLY_ALL for column in strong_columns(replicates))


def usual_draws(replicates: Replicates) -> int | None:
    """Return the median number of draws, of the test function where it is least; None if all outputs are exact."""
    medians = [int(np.median(column.array("draws"))) for column in strong_columns(replicates)]
    return min((many for many in medians if many), default=None)


def needed(measures: Sequence[Interval], tolerance: Tolerance, alpha: float, draws: int | None) -> float:
    """Return how many replicates certify a calibrated procedure, with so many draws each."""
    functions = len({m.f for m in measures})
    return planning.plan_certificate(
        spread=tolerance.spread,
        bias=tolerance.bias,
        coverage=tolerance.coverage,
        draws=draws,
        confidence=1 - alpha / (3 * functions),
    ).n


def shrinking(m: Interval, tolerance: Tolerance) -> float:
    """Return by what factor the interval must shrink to lie within its tolerance; inf if the estimate does not."""
    values = [m.estimate, m.low, m.high, *tolerance.limits(m.name, m.ideal)]
    if m.name == "spread":
        # Spreads are compared on the logarithm, where their tolerance is symmetric.
        values = [math.log(max(value, 1e-300)) for value in values]
    estimate, low, high, least, most = values
    if not least < estimate < most:
        return math.inf
    return max((estimate - low) / (estimate - least), (high - estimate) / (most - estimate))


def least_known(measures: Sequence[Interval], tolerance: Tolerance) -> Interval:
    """Return the measure whose interval leaves its tolerance by most."""

    def excess(m: Interval) -> float:
        low, high = tolerance.limits(m.name, m.ideal)
        return max(low - m.low, m.high - high) / (high - low)

    return max((m for m in measures if m.name in SIZES), key=excess)
