"""The decision: from evidence and size to one of three verdicts, and what would settle an open one.

A verdict is about size, not only about evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

from ..errors import InvalidStudy
from ..replicates.record import Replicates
from ..statistics import planning
from ..statistics.effects import Interval
from .column import strong_columns
from .levels import Evidence, TestRow, budget, levels

#: The sizes that a certificate is about; a distance only excuses an error of shape that a test has found.
SIZES = ("spread", "bias", "coverage")
#: More than this share is nearly all.
_NEARLY_ALL = 0.9


class Verdict(StrEnum):
    """The three possible answers; there is no "calibrated" from the absence of evidence."""

    MISCALIBRATED = "MISCALIBRATED"
    WITHIN_TOLERANCE = "WITHIN_TOLERANCE"
    INCONCLUSIVE = "INCONCLUSIVE"

    @property
    def words(self) -> str:
        """The verdict as one would write it in a sentence."""
        return self.value.lower().replace("_", " ")


@dataclass(frozen=True)
class Tolerance:
    """How large an error may be and still not matter.

    Parameters
    ----------
    spread
        Relative error of the reported sd.
    bias
        Error of location in units of the reported sd.
    coverage
        Error of the coverage of nominal 90 % intervals.
    distance
        Kolmogorov distance of the law of u from uniform; it only excuses an error of shape that a test has found.

    Examples
    --------
    >>> Tolerance(spread=0.2).bias
    0.1
    """

    spread: float = 0.1
    bias: float = 0.1
    coverage: float = 0.05
    distance: float = 0.05

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0 or not math.isfinite(value):
                raise InvalidStudy(f"the tolerance of {name} must be a positive number, but {value!r} arrived.")

    def limits(self, name: str, ideal: float) -> tuple[float, float]:
        """Return the interval in which a measure does not matter."""
        if name == "spread":
            # Symmetric on the logarithm: 10 % too wide and 10 % too narrow are the same size of error.
            return 1 / (1 + self.spread), 1 + self.spread
        if name.endswith("KS distance"):
            return -math.inf, self.distance
        width = self.bias if name == "bias" else self.coverage
        return ideal - width, ideal + width


def within(m: Interval, tolerance: Tolerance) -> Literal["yes", "no", "open"]:
    """Say whether a measure is in tolerance: all of its interval, none of it, or part of it."""
    low, high = tolerance.limits(m.name, m.ideal)
    if low <= m.low and m.high <= high:
        return "yes"
    return "no" if m.high < low or m.low > high else "open"


def overall(found: Sequence[Evidence]) -> float:
    """Combine the levels that concern calibration by a weighted Bonferroni rule."""
    shares = budget(found)
    return min([1.0, *(item.pvalue / shares[item.level] for item in found if item.level in shares)])


def rejecting(found: Sequence[Evidence], alpha: float) -> list[TestRow]:
    """Return the tests that reject after adjustment over test functions and levels; none if all together do not."""
    if overall(found) > alpha:
        return []
    shares = budget(found)
    return [
        row for item in found if item.level in shares for row in item.rows if row.adjusted <= alpha * shares[item.level]
    ]


def decide(found: Sequence[Evidence], alpha: float, measures: Sequence[Interval]) -> Verdict:
    """Return the verdict on evidence and sizes."""
    rows = rejecting(found, alpha)
    # Without a single rejecting row the joint test alone rejected, and nothing says what it saw.
    harmless = bool(rows) and all(_harmless(row, measures) for row in rows)
    if overall(found) <= alpha and not harmless:
        return Verdict.MISCALIBRATED
    size = [m for m in measures if m.name in SIZES]
    return Verdict.WITHIN_TOLERANCE if size and all(m.certified for m in size) else Verdict.INCONCLUSIVE


def _harmless(row: TestRow, measures: Sequence[Interval]) -> bool:
    """Whether everything the test can have seen is certified to be small."""
    about = levels()[row.level].sizes(row, measures)
    return bool(about) and all(m.certified for m in about)


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
