"""Phrases that sentences and captions share: numbers with their intervals, shapes, outliers, names in a row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ...statistics.effects import Interval
from ..diagnosis import Diagnosis, Kind, Outliers
from ..text import counted, decimals, number, percent, power
from ..verdict import Tolerance

#: How many names a row has.
_NAMED = 3
#: What is said of a shape beside which no factor is named.
NO_FACTOR = ", no factor on their sd corrects that"


#: What a shape is and what to do about it, around where it shows.
_SHAPES: Mapping[Kind, tuple[str, str]] = {
    "skewed": (
        "truths reach further {side} the outputs than {other}",
        "lengthen the outputs' tails {side} and shorten those {other}",
    ),
    "uneven": (
        "truths are too often both near the centre and far out",
        "the outputs' tails are too light, or their widths do not follow the data",
    ),
    "two-sided": (
        "truths avoid the middle of the outputs",
        "they are too peaked, or one hump where two belong",
    ),
    "flat": (
        "truths are too rarely far out and too often half way",
        "the outputs' tails are too long, or one hump where two belong",
    ),
    "other": ("it does not match that of the truths", "compare outputs with truths where the picture is off"),
}


def interval(m: Interval, *, absolute: bool = False) -> str:
    """Return an estimate with its interval as one would say it.

    Examples
    --------
    >>> interval(Interval("spread", 1.4142, 1.33, 1.504, 1.0))
    '1.41 (1.33-1.50)'
    >>> interval(Interval("spread", float("inf"), 812.3, float("inf"), 1.0))
    'more than 800'
    """
    low, high = (m.low, m.high) if not absolute else sorted((abs(m.low), abs(m.high)))
    estimate = abs(m.estimate) if absolute else m.estimate
    if absolute and m.low < 0 < m.high:
        low = 0.0
    if not math.isfinite(high) or not math.isfinite(estimate) or low > 100:
        return f"more than {floored(low)}"
    if 0 < high < 0.01 and low >= 0 and not absolute:
        return f"less than {power(f'{10.0 ** math.ceil(math.log10(high)):g}')}"
    digits = decimals(m)
    if m.name == "spread" and not float(number(estimate, digits)):
        return f"less than {number(math.ceil(100 * high) / 100)}"
    return f"{number(estimate, digits)} ({span(low, high, digits)})"


def span(low: float, high: float, digits: int) -> str:
    """Return two ends as one would say them, with "to" where a minus sign would be mistaken for it."""
    ends = [number(end, digits) for end in (low, high)]
    return ends[0] + (" to " if ends[0].startswith("-") else "-") + ends[1]


def floored(x: float) -> str:
    """Return a lower bound with few figures: those of a large number would pretend to know."""
    if not 100 < x < math.inf:
        return number(x, 2 if x < 10 else 0)
    unit = 10.0 ** math.floor(math.log10(x))
    return number(math.floor(x / unit) * unit, 0)


def percents(low: float, high: float) -> str:
    """Return two shares in percent, without the sign, with decimals if they would read the same otherwise."""
    ends = [percent(end)[:-2] for end in (low, high)]
    if ends[0] == ends[1]:
        ends = [f"{100 * end:.{_figures(low, high)}f}" for end in (low, high)]
    return "-".join(ends)


def share_of(m: Interval) -> str:
    """Return a share with its interval in percent.

    Examples
    --------
    >>> share_of(Interval("coverage", 0.76, 0.72, 0.80, 0.9))
    '76 % (72-80)'
    """
    digits = _figures(m.low, m.high) if percent(m.low) == percent(m.high) else None
    centre = percent(m.estimate) if digits is None else f"{100 * m.estimate:.{digits}f} %"
    return f"{centre} ({percents(m.low, m.high)})"


def _figures(low: float, high: float) -> int:
    """Return how many decimals of a percentage two figures of this width are."""
    return min(max(1 - math.floor(math.log10(100 * (high - low))), 0), 6) if high > low else 0


def points(many: float) -> str:
    """Return percentage points.

    Examples
    --------
    >>> points(1.0), points(2.5)
    ('1 point', '2.5 points')
    """
    return f"{many:g} point" if many == 1 else f"{many:g} points"


def rounded(n: int) -> int:
    """Round up to two figures: more would pretend to know."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return int(-(-n // unit) * unit)


def listed(names: Iterable[str]) -> str:
    """Return names in a row, the last behind "and"; at most three and how many more."""
    named = list(names)
    if len(named) > _NAMED:
        return f"{', '.join(named[:_NAMED])} and {len(named) - _NAMED} more"
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def misshapen(found: Diagnosis, where: str) -> str:
    """Return what a shape is, where it shows and what to do, for a diagnosis that is neither plain nor outliers."""
    side, other = ("above", "below") if found.up else ("below", "above")
    what, todo = _SHAPES[found.kind]
    far = found.outliers
    count = "" if far is None else f"; {that_miss(far)}"
    place = f" ({where})" if where else ""
    return f"{what.format(side=side, other=other)}{place}{count}; {todo.format(side=side, other=other)}"


def outlying(found: Diagnosis, n: int) -> str:
    """Return how many outputs miss by how much, what the others are like, and what to do."""
    far = found.outliers
    if far is None:
        return ""
    rest, one = far.rest.spread, far.count == 1
    which, them = ("that one", "it") if one else ("those", "them")
    fine = rest.low <= 1 <= rest.high or not math.isfinite(rest.estimate)
    others = f"without {them} the spread factor is" if fine else "the others still need a factor of"
    return f"{that_miss(far, n)}; fix {which}, widening all would hide {them}; {others} {interval(rest)}"


def that_miss(far: Outliers, n: int | None = None) -> str:
    """Say how many outputs miss by how much."""
    one = far.count == 1
    many = f"{far.count} of {counted(n, 'output')}" if n else counted(far.count, "output")
    if math.isinf(far.beyond):
        return f"{many} {'gives' if one else 'give'} next to no probability to where the truth is"
    worst = f" (the worst by {number(far.worst, 1 if far.worst < 10 else 0)})" if far.worst > far.beyond + 1 else ""
    least = math.floor(far.beyond * (1 - 1e-12))
    beyond = f"{least}" if far.beyond < 100 else floored(far.beyond)
    return (
        f"{many} {'misses' if one else 'miss'} the truth by more than {beyond} of {'its' if one else 'their'} sd{worst}"
    )


def factor(spread: Interval, found: Diagnosis, *, whose: str) -> str:
    """Return what corrects an evident error of spread: a factor, or where ranks hardly tell it the size of errors."""
    if spread.low > 1 and math.isfinite(found.errors):
        return f"errors are {number(found.errors, 1)} times {whose} reported sd, multiply it by that"
    return f"multiply {whose} reported sd by {interval(spread)}"


def outside(bias: Interval) -> tuple[str, str]:
    """Return the error, and what it is, where truths lie outside the support of outputs and the bias is not finite."""
    where = "truths lie where outputs have no probability"
    if math.isnan(bias.estimate):
        return "over-confident", f"{where}, on either side; widen them by far"
    return "biased", f"{where}, {'above' if bias.estimate > 0 else 'below'} them"


def off(m: Interval, kind: Kind, tolerance: Tolerance) -> bool:
    """Whether a spread or bias is to be spoken of: its error is evident, and beside one of shape it matters."""
    evident = not m.low <= m.ideal <= m.high
    return evident and (kind == "plain" or not inside(m, tolerance))


def inside(m: Interval, tolerance: Tolerance) -> str:
    """Return what is added to an error that is tolerated; nothing to one that is not.

    Examples
    --------
    >>> inside(Interval("bias", 0.06, 0.02, 0.1, 0.0), Tolerance())
    ', inside the tolerance'
    """
    low, high = tolerance.limits(m.name, m.ideal)
    return ", inside the tolerance" if low <= m.estimate <= high else ""


def reached(m: Interval) -> float:
    """Return how far the ideal is from the estimate, in units of the interval's reach on that side."""
    values = [m.estimate, m.low, m.high, m.ideal]
    if m.name == "spread":
        values = [math.log(max(value, 1e-300)) for value in values]
    estimate, low, high, ideal = values
    reach = estimate - low if estimate > ideal else high - estimate
    return abs(estimate - ideal) / reach if 0 < reach < math.inf else 0.0
