"""Where an increasing function changes sign: the one root finder.

It narrows a bracket; rules say where to look next, and the caller when to stop. Importing scipy.optimize takes 0.1 s.
"""

import math
from collections.abc import Callable
from typing import NamedTuple


class Bracket(NamedTuple):
    """Ends with f(low) < 0 <= f(high), what is known of f there, the place looked at last, and the bracket before it.

    An end that stays while the other moves again has its value halved (Illinois weights), so that false position does
    not creep up from one side.
    """

    low: float
    high: float
    at_low: float
    at_high: float
    x: float
    value: float
    steps: int = 0
    last: "Bracket | None" = None

    def split(self, x: float, value: float) -> "Bracket":
        """Return the part of the bracket that has the sign change, given the value at an inner point."""
        again = 0.5 if self.last and (self.value < 0) == (value < 0) else 1.0
        if value < 0:
            return Bracket(x, self.high, value, again * self.at_high, x, value, self.steps + 1, self)
        return Bracket(self.low, x, again * self.at_low, value, x, value, self.steps + 1, self)


def narrow(
    f: Callable[[float], float],
    low: float,
    high: float,
    *,
    done: Callable[[Bracket], bool],
    rule: Callable[[Bracket], float] | None = None,
    ends: tuple[float, float] = (math.nan, math.nan),
) -> Bracket:
    """Narrow a bracket of the sign change of an increasing function until it is good enough.

    Parameters
    ----------
    f
        Negative up to the root.
    low, high
        Where it is negative, and where it is not.
    done
        Whether a bracket will do.
    rule
        Where to look next; half way if left out.
    ends
        f(low) and f(high), if the rule needs them.

    Examples
    --------
    >>> narrow(lambda x: x**2 - 2, 0.0, 2.0, done=after(60)).low
    1.414213562373095
    >>> narrow(lambda k: k**2 - 50, 0, 20, done=adjacent, rule=whole).high
    8
    """
    # Bisection needs no values at the ends, so that f, which may be costly, is not called there.
    at = Bracket(low, high, *ends, low, ends[0])
    rule = rule or _halfway
    while not done(at):
        x = rule(at)
        at = at.split(x, f(x))
    return at


def after(steps: int) -> Callable[[Bracket], bool]:
    """Stop after so many steps: sixty halve a bracket to rounding."""
    return lambda at: at.steps >= steps


def adjacent(at: Bracket) -> bool:
    """Stop where no whole number lies between the ends."""
    return at.high - at.low <= 1


def whole(at: Bracket) -> int:
    """Look at the whole number half way."""
    # Rounded down, below 0 too, it lies strictly inside while the ends are more than one apart.
    return int((at.low + at.high) // 2)


def false_position(at: Bracket) -> float:
    """Look where the line between the ends is 0, but not right beside an end."""
    # A place within rounding of an end would narrow nothing; 2 % of the bracket is the least progress.
    return at.low + (at.high - at.low) * min(max(at.at_low / (at.at_low - at.at_high), 0.02), 0.98)


def secant(at: Bracket) -> float:
    """Look where the line through the last two places is 0; first, for f that rises no faster than x, at the least."""
    if at.last is None:
        # With a slope of at most 1 the root is no nearer than this, so that the bracket is not overshot.
        return at.low - at.value
    slope = (at.value - at.last.value) / (at.x - at.last.x)
    # The lower end is not inside: a flat or falling line ends in the halving below.
    x = at.x - at.value / slope if slope > 0 else at.low
    return x if at.low < x < at.high else _halfway(at)


def _halfway(at: Bracket) -> float:
    return (at.low + at.high) / 2
