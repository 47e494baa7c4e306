"""How far probabilities are off, and whether that is in tolerance: for arrays and for columns of few values alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from ..statistics.effects import Interval
from ..statistics.effects.reliability import groups, log_odds, outcomes_to_certify
from .outcomes import Outcomes
from .verdict import Tolerance, within

__all__ = ["STEADY", "groups", "outcomes_to_certify", "sizes", "sizes_of_all"]

#: Shares of fewer draws blur the probabilities too much to show that they are right.
STEADY = 50


def sizes(
    outcomes: Outcomes, *, alpha: float, confidence: float, tolerance: Tolerance, lost: int = 0
) -> list[Interval]:
    """Return slope and shift of log odds, and the error of probabilities with whether it is in tolerance.

    Parameters
    ----------
    outcomes
        What came, and what was reported.
    alpha
        The chance of certifying an error at the limit of its tolerance.
    confidence
        Of every interval.
    tolerance
        How large an error may be.
    lost
        How many outcomes were lost.
    """
    reported = (outcomes.outcome, outcomes.probability)
    line = log_odds(*reported, complement=outcomes.complement, confidence=confidence)
    certifying, known = outcomes.error(_ends(alpha), lost), outcomes.error(_ends(2 * alpha), 0, freedom=1)
    is_in = within(certifying, known, tolerance)
    error = replace(outcomes.error(confidence, lost), within="open" if blurred(outcomes) and is_in == "yes" else is_in)
    return [replace(m, of=outcomes.name) for m in (line.slope, line.shift, error)]


def blurred(outcomes: Outcomes) -> bool:
    """Whether probabilities are known by too few draws to certify them."""
    return outcomes.draws is not None and float(np.median(outcomes.draws)) < STEADY


def _ends(alpha: float) -> float:
    """Return the confidence of intervals each end of which is missed with probability alpha."""
    return max(1 - 2 * alpha, 0.01)


def sizes_of_all(
    found: Sequence[Outcomes], *, alpha: float, confidence: float, tolerance: Tolerance, lost: int = 0
) -> list[Interval]:
    """Return the sizes of several labels as one: those of the label whose probabilities may be off most.

    All of them are in tolerance if each is.
    """
    own = 1 - (1 - confidence) / len(found)
    each = [sizes(one, alpha=alpha, confidence=own, tolerance=tolerance, lost=lost) for one in found]
    worst = max(each, key=lambda rows: (rows[-1].low, rows[-1].estimate, rows[-1].high))
    inside = {rows[-1].within for rows in each}
    whole: Literal["yes", "no", "open"] = "no" if "no" in inside else "yes" if inside == {"yes"} else "open"
    high = max(rows[-1].high for rows in each)
    return [*worst[:-1], replace(worst[-1], high=high, within=whole)]
