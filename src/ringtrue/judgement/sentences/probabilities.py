"""What is wrong with probabilities, by how much, and what to do about it. Words only."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...statistics.effects import Interval
from ..outcomes import ERROR, LIKELY, Outcomes, reached
from ..reliability import groups
from ..text import counted, number, percent
from .phrases import listed, span

#: Replicates that are named.
_NAMED = 3


def of_probabilities(sizes: Sequence[Interval], outcomes: Outcomes) -> str:
    """Say too sure, not sure enough, too high or too low, with its correction and the points on average."""
    slope, shift, error = sizes
    line = _line(slope, shift, outcomes)
    bent = outcomes.bent
    clauses = _impossible(outcomes) + (line or ([] if bent else _likely(slope, shift)))
    if not clauses or (line and bent):
        clauses.append(_group(outcomes, also=bool(clauses)))
    return "; ".join([*clauses, *_on_average(error)]).replace("; and ", ", and ")


def of_outcomes(sizes: Sequence[Interval], found: Sequence[Outcomes]) -> str:
    """Say it of a function with few values, behind its name: of the value whose probabilities are off most."""
    own = [m for m in sizes if m.name == ERROR or m.name.startswith("log odds")]
    wrong = next((one for one in found if one.impossible), None)
    worst = wrong or next(one for one in found if one.name == own[-1].of)
    value = f"= {worst.name} " if worst.name else ""
    return f"{value}is {of_probabilities(own, worst)}"


def at_most(sizes: Sequence[Interval]) -> str:
    """Say how far probabilities can be off after all that is known; nothing if there are none."""
    errors = [m for m in sizes if m.name == ERROR]
    if not errors:
        return ""
    whose = listed(dict.fromkeys(m.f for m in errors))
    most = points_of(max(m.high for m in errors))
    return f"groups of similar probabilities of {whose} are off by at most {most} on average"


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
        means = (
            f"{percent(float(outcomes.probability.mean()))} on average, {percent(float(outcomes.outcome.mean()))} came"
        )
        move = "" if clauses else f": {todo} log odds by {_moved(shift)}"
        clauses.append(f"{'and ' if clauses else ''}too {way}{move} ({means})")
    return clauses


def _likely(slope: Interval, shift: Interval) -> list[str]:
    """Name the error that is most likely where no interval excludes its ideal; nothing if none is."""
    m = max((slope, shift), key=reached)
    if reached(m) < LIKELY:
        return []
    if m is shift:
        low, high = sorted(math.copysign(1.0, m.estimate) * end for end in (m.low, m.high))
        way, todo = ("low", "raised") if m.estimate > 0 else ("high", "lowered")
        return [
            f"seemingly too {way}: log odds {todo} by {number(abs(m.estimate))} ({span(low, high, 2)}) would be right"
        ]
    if m.estimate > 1:
        return [f"seemingly not sure enough: log odds times {_factor(m)} would be right"]
    return [f"seemingly too sure: log odds divided by {_inverse(m)} would be right"]


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


def _group(outcomes: Outcomes, *, also: bool) -> str:
    """Name the group of probabilities that is most off, where no line shows it."""
    found = groups(outcomes.outcome, outcomes.probability)
    worst = max(found, key=lambda group: group.n * (group.share - group.probability) ** 2)
    head = "besides, off" if also else "off"
    return (
        f"{head} in a way that no line in log odds shows: most of all, of {counted(worst.n, 'outcome')} with "
        f"probabilities around {percent(worst.probability)}, {percent(worst.share)} came"
    )
