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
from scipy import special

from ..errors import Inconclusive, InvalidStudy, Miscalibrated
from ..replicates.record import Replicates
from ..statistics import planning
from ..statistics.effects import Interval
from .column import Column, column_named, strong_columns
from .diagnosis import diagnose
from .levels import ADDED, Evidence, TestRow, budget, levels
from .outcomes import ERROR, outcomes_of, unexplained

#: The sizes that a certificate is about; a distance only tells whether an error of shape that a test has found matters.
SIZES = ("spread", "bias", "coverage", ERROR)
#: The chance that any of n scores lies as far out as a wild one if all errors are within tolerance.
_WILD = 1e-4
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


def need_within_tolerance(verdict: Verdict, sentence: str) -> None:
    """Raise the error that goes with a verdict, unless it is a certificate."""
    if verdict is Verdict.MISCALIBRATED:
        raise Miscalibrated(sentence)
    if verdict is Verdict.INCONCLUSIVE:
        raise Inconclusive(sentence)


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
    probability
        Error of the probabilities of a parameter with few values, averaged over replicates. An sd that is wrong by a
        tenth moves one-sided probabilities by up to 2.3 points.
    correlation
        Error of a reported correlation between two entries; it only excuses one that a test has found.

    Examples
    --------
    >>> Tolerance(spread=0.2).bias
    0.1
    """

    spread: float = 0.1
    bias: float = 0.1
    coverage: float = 0.05
    distance: float = 0.05
    probability: float = 0.025
    correlation: float = 0.1

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
                raise InvalidStudy(f"the tolerance of {name} must be a positive number, but {value!r} arrived.")
        shares = {"coverage": "5 points are 0.05", "distance": "as 0.05", "probability": "2.5 points are 0.025"}
        for name, what in {"spread": "10 % is 0.1", **shares, "correlation": "as 0.1"}.items():
            if getattr(self, name) >= 1:
                raise InvalidStudy(
                    f"the tolerance of {name} is a share and must be below 1 ({what}), but {getattr(self, name)!r} "
                    f"arrived."
                )

    def part(self, share: float) -> Tolerance:
        """Return a share of it."""
        # The spread's on the logarithm, on which it is symmetric.
        spread = (1 + self.spread) ** share - 1
        rest = (self.bias, self.coverage, self.distance, self.probability, self.correlation)
        return Tolerance(spread, *(share * one for one in rest))

    def limits(self, name: str, ideal: float) -> tuple[float, float]:
        """Return the interval in which a measure does not matter."""
        if name == "spread":
            # Symmetric on the logarithm: 10 % too wide and 10 % too narrow are the same size of error.
            return 1 / (1 + self.spread), 1 + self.spread
        if name.endswith("KS distance"):
            return -math.inf, self.distance
        if name == ERROR:
            return -math.inf, self.probability
        if name.endswith("correlation error"):
            return ideal - self.correlation, ideal + self.correlation
        width = self.bias if name == "bias" else self.coverage
        return ideal - width, ideal + width


def within(certifying: Interval, known: Interval, tolerance: Tolerance) -> Literal["yes", "no", "open"]:
    """Say whether a size is in tolerance.

    It is if all of the certifying interval is. It is not if its estimate lies outside, and its other interval shows
    that it is more than two thirds of what is tolerated. Chosen on bias, with alpha = 0.05: one of half the tolerance
    is then called for its own size in at most 3.5 % of runs from n = 1000 on (by ``check`` in 4.4 % of 2000 runs there,
    99 % upper bound 5.5 %, since other sizes have a say), and one of twice the tolerance in 81 % at the n where the
    test has 80 % power; "the estimate lies outside" alone would call the former in 5.7 % at n = 1000.

    Parameters
    ----------
    certifying
        With an interval each end of which is missed with probability alpha, whatever lost replicates would have been.
    known
        Of the replicates that were not lost, with an interval each end of which is missed with probability 2 alpha.
    tolerance
        How large an error may be.
    """
    low, high = tolerance.limits(certifying.name, certifying.ideal)
    if low <= certifying.low and certifying.high <= high:
        return "yes"
    least, most = tolerance.part(2 / 3).limits(certifying.name, certifying.ideal)
    too_large = known.estimate > high and known.low > most
    return "no" if too_large or (known.estimate < low and known.high < least) else "open"


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


def decide(
    found: Sequence[Evidence], alpha: float, measures: Sequence[Interval], replicates: Replicates, tolerance: Tolerance
) -> Verdict:
    """Return the verdict on tests for one n, and sizes."""
    rows = rejecting(found, alpha) if overall(found) <= alpha else None
    return weighed(rows, measures, replicates, tolerance)


def weighed(
    rows: Sequence[TestRow] | None, measures: Sequence[Interval], replicates: Replicates, tolerance: Tolerance
) -> Verdict:
    """Return the verdict on evidence and sizes.

    An error is called if there is evidence of it and it is large, or no size tells how large it is. For a certificate
    all sizes of the user's parameters must be small, and all that describe an error that a test has found.

    Parameters
    ----------
    rows
        The tests that reject, none of them if only all together do; None if there is no evidence.
    measures, replicates, tolerance
        The sizes, what they are of, and how large they may be.
    """
    size = certificate(measures, replicates)
    if rows is not None:
        # Without a single rejecting row the joint test alone rejected, and nothing says what it saw.
        if not rows or any(not excused(row, measures, replicates, tolerance) for row in rows):
            return Verdict.MISCALIBRATED
        size += [m for row in rows for m in levels()[row.level].sizes(row, measures) if m.within != "-"]
    return Verdict.WITHIN_TOLERANCE if size and all(m.certified for m in size) else Verdict.INCONCLUSIVE


def certificate(measures: Sequence[Interval], replicates: Replicates) -> list[Interval]:
    """Return the sizes that must be small for a certificate: those of the user's parameters and functions."""
    added = {column.name for column in strong_columns(replicates) if column.kind in ADDED}
    return [m for m in measures if m.name in SIZES and m.f not in added]


def excused(row: TestRow, measures: Sequence[Interval], replicates: Replicates, tolerance: Tolerance) -> bool:
    """Whether sizes explain what the test saw, and none of them is too large."""
    about = levels()[row.level].sizes(row, measures)
    column = column_named(replicates, row.f)
    if column is not None and row.level == "strong" and (found := outcomes_of(column)):
        off = unexplained(about, found) or any(m.within == "no" for m in about) or any(one.impossible for one in found)
        return not off
    if column is not None and column.few_valued:  # ranks do not tell how far its probabilities are off
        return False
    if not about or any(m.within == "no" for m in about) or wild(row, replicates, tolerance):
        return False
    far = [m for m in about if m.name == "KS distance" and m.estimate > tolerance.distance]
    # Errors that spread and bias describe are as large as these say; of another shape the distance is the size.
    return not far or _is_plain(column)


def _is_plain(column: Column | None) -> bool:
    return column is not None and diagnose(column).kind == "plain"


def wild(row: TestRow, replicates: Replicates, tolerance: Tolerance) -> int:
    """Return how many outputs lie so far off that no error within the tolerance puts them there.

    No size speaks of so few outputs. Ranks among draws do not tell how far out a truth is, and never are wild.
    """
    scores = levels()[row.level].scores(row, replicates)
    if scores is None:
        return 0
    farthest = -float(special.ndtri(_WILD / (2 * max(scores.size, 1))))
    return int(np.count_nonzero(np.abs(scores) > tolerance.bias + (1 + tolerance.spread) * farthest))


def one_draw(replicates: Replicates) -> bool:
    """Whether nearly all outputs for some test function have one draw."""
    return any(float(np.mean(column.array("draws") == 1)) > _NEARLY_ALL for column in strong_columns(replicates))


def usual_draws(replicates: Replicates) -> int | None:
    """Return the median number of draws, of the test function where it is least; None if all outputs are exact."""
    medians = [int(np.median(column.array("draws"))) for column in strong_columns(replicates)]
    return min((many for many in medians if many), default=None)


def needed(sizes: Sequence[Interval], tolerance: Tolerance, alpha: float, draws: int | None) -> float:
    """Return how many replicates certify a calibrated procedure, with so many draws each."""
    return planning.plan_certificate(
        spread=tolerance.spread,
        bias=tolerance.bias,
        coverage=tolerance.coverage,
        draws=draws,
        alpha=alpha,
        parameters=max(len({m.f for m in sizes}), 1),
    ).n


def to_settle(m: Interval, tolerance: Tolerance, alpha: float, n: int, confidence: float) -> float:
    """Return with how many replicates a size would be certified, if its estimate is right; inf if it is outside.

    Parameters
    ----------
    m
        The size, with an interval of this confidence from n replicates.
    tolerance, alpha
        What is tolerated, and the chance of certifying an error at its limit.
    n, confidence
        Where the interval comes from.
    """
    values = [m.estimate, m.low, m.high, *tolerance.limits(m.name, m.ideal)]
    if m.name == "spread":
        # Spreads are compared on the logarithm, where their tolerance is symmetric.
        values = [math.log(max(value, 1e-300)) for value in values]
    estimate, low, high, least, most = values
    margin = min(estimate - least, most - estimate)
    if not margin > 0 or not math.isfinite(high - low):
        return math.inf
    error = (high - low) / 2 / -float(special.ndtri((1 - confidence) / 2))
    # The interval must leave room for its own noise: with the quantile of 0.8 it is inside with that probability.
    wanted = margin / (float(special.ndtri(0.8)) - float(special.ndtri(alpha)))
    return n * (error / wanted) ** 2


def wider(confidence: float, later: float) -> float:
    """Return how many times as wide an interval of a later look's confidence is, of as many replicates."""
    return float(special.ndtri((1 - later) / 2) / special.ndtri((1 - confidence) / 2))


def known_to(sizes: Sequence[Interval]) -> tuple[float, float]:
    """Return within which share all reported sds are right, and within how many sds all biases lie."""
    spreads, biases = ([m for m in sizes if m.name == name] for name in ("spread", "bias"))
    share = max((max(m.high, 1 / m.low if m.low > 0 else math.inf) - 1 for m in spreads), default=math.inf)
    return share, max((max(abs(m.low), abs(m.high)) for m in biases), default=math.inf)


def joint_confidence(alpha: float, functions: int) -> float:
    """Return the confidence of each interval of spread, bias and coverage that holds jointly over test functions."""
    return 1 - alpha / (3 * functions)
