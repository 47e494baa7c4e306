"""What is wrong with probabilities, by how much, and what to do about it. Words only."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...statistics.effects import Interval
from ...statistics.effects.reliability import groups
from ..outcomes import Outcomes
from ..text import counted, number, percent
from .phrases import span

#: Replicates that are named.
_NAMED = 3


def of_probabilities(sizes: Sequence[Interval], outcomes: Outcomes) -> str:
    """Say too sure, not sure enough, too high or too low, with the number that mends it and the points on average."""
    slope, shift, error = (m for m in sizes if m.name != "weak KS distance")
    clauses = _impossible(outcomes) + _line(slope, shift, outcomes)
    if not clauses:
        clauses = [_group(outcomes)]
    return "; ".join([*clauses, *_on_average(error)])


def _impossible(outcomes: Outcomes) -> list[str]:
    found = outcomes.impossible
    if not found:
        return []
    named = ", ".join(str(i) for i in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    came = "had been given the probability 0, and came"
    return [f"{counted(len(found), 'outcome')} {came} (replicate{'s' if len(found) > 1 else ''} {named}{more})"]


def _line(slope: Interval, shift: Interval, outcomes: Outcomes) -> list[str]:
    """Say what the line in log odds shows."""
    clauses = []
    if slope.clear and slope.high <= 0:
        clauses.append("the wrong way round: the likelier something was called, the less often it came")
    elif slope.clear and slope.estimate < 1:
        clauses.append(f"too sure: divide log odds by {_inverse(slope)}")
    elif slope.clear:
        clauses.append(f"not sure enough: multiply log odds by {_factor(slope)}")
    if shift.clear:
        way, todo = ("low", "raise") if shift.low > 0 else ("high", "lower")
        means = f"{percent(float(outcomes.probability.mean()))} on average, {percent(float(outcomes.outcome.mean()))} came"
        move = "" if clauses else f": {todo} log odds by {_moved(shift)}"
        clauses.append(f"{'and ' if clauses else ''}too {way}{move} ({means})")
    return clauses


def _factor(m: Interval) -> str:
    if not (math.isfinite(m.estimate) and math.isfinite(m.high)):
        return f"more than {number(m.low)}"
    return f"{number(m.estimate)} ({span(m.low, m.high, 2)})"


def _inverse(m: Interval) -> str:
    """Return what to divide by, where the slope is what to multiply with."""
    if m.low <= 0 or m.estimate <= 0:
        return f"more than {number(1 / m.high)}"
    return f"{number(1 / m.estimate)} ({span(1 / m.high, 1 / m.low, 2)})"


def _moved(m: Interval) -> str:
    low, high = sorted((abs(m.low), abs(m.high)))
    if not (math.isfinite(high) and math.isfinite(m.estimate)):
        return f"more than {number(low)}"
    return f"{number(abs(m.estimate))} ({span(low, high, 2)})"


def _on_average(error: Interval) -> list[str]:
    if not error.estimate > 0:
        return []
    return [f"probabilities are off by {points_of(error.estimate)} on average"]


def points_of(share: float) -> str:
    """Return a difference of probabilities in points.

    Examples
    --------
    >>> points_of(0.0612), points_of(0.0231), points_of(0.01)
    ('6 points', '2.3 points', '1 point')
    """
    size = 100 * share
    text = f"{size:.0f}" if size >= 4.95 else f"{size:.1f}".removesuffix(".0")
    return f"{text} point{'' if text == '1' else 's'}"


def _group(outcomes: Outcomes) -> str:
    """Name the group of probabilities that is most off, where no line shows it."""
    found = groups(outcomes.outcome, outcomes.probability)
    worst = max(found, key=lambda group: group.n * (group.share - group.probability) ** 2)
    return (
        f"off in a way that no line in log odds shows: most of all, of {counted(worst.n, 'outcome')} with "
        f"probabilities around {percent(worst.probability)}, {percent(worst.share)} came"
    )
