"""Numbers with intervals, whoever computed them: rows to draw, the axis that shows them, and one drawn row.

They draw any rows that have an estimate, a low and a high end; where an end is infinite an arrow points to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidStudy
from ..judgement.result import Result
from ..replicates.record import Replicates
from ..statistics.effects import Interval
from .lattices import Floats
from .selection import result_of
from .style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Measures that are drawn if none is named.
USUAL = ("spread", "bias", "coverage")


def as_rows(source: Any) -> list[Interval]:
    """Return the rows of a result, a comparison, a sweep, or any iterable of rows."""
    if isinstance(source, (Result, Replicates)):
        return list(result_of(source).measures)
    try:
        # By fields and not by type, so that rows from elsewhere can be drawn too.
        rows = [_as_row(row) for row in getattr(source, "rows", source)]
    except (AttributeError, TypeError) as error:
        raise TypeError(
            f"rows with name, f, estimate, low, high and ideal are needed, or a Result, but {type(source).__name__} "
            f"arrived: {error}"
        ) from None
    if not rows:
        raise InvalidStudy("at least one row is needed to draw, but none arrived.")
    return rows


def as_judged(source: Any) -> Result | None:
    """Return the result that rows come from, the first of several; None for rows alone."""
    if isinstance(source, (Result, Replicates)):
        return result_of(source)
    return next(iter(getattr(source, "results", {}).values()), None)


def meanings(rows: Sequence[Interval]) -> list[tuple[Any, str]]:
    """Return the markers that are drawn, and what they mean."""
    from matplotlib.lines import Line2D

    there = {row.clear for row in rows if math.isfinite(row.ideal) and math.isfinite(row.estimate)}
    look: dict[str, Any] = {"ls": "-", "lw": 1.2, "ms": 3.5}
    return [
        (Line2D([], [], **_look(clear), **look), f"{'excludes' if clear else 'contains'} the ideal")
        for clear in sorted(there)
    ]


def _look(clear: bool) -> dict[str, Any]:
    """Return how a row is marked; shape and filling say what the colour says, for those who print in grey."""
    colour = COLOURS[int(clear)]
    return {"color": colour, "marker": "D" if clear else "o", "mfc": colour if clear else "white"}


def _as_row(row: Any) -> Interval:
    estimate, low, high, ideal = (float(value) for value in (row.estimate, row.low, row.high, row.ideal))
    return Interval(str(row.name), estimate, low, high, ideal, str(row.f), getattr(row, "of", None))


def filtered(rows: list[Interval], measure: Any, f: Any) -> list[Interval]:
    """Return the rows with the given names of measures and test functions; refuse names that none has."""
    kept = rows
    for wanted, what, field in ((measure, "measure", "name"), (f, "f", "f")):
        if wanted is not None:
            names = [wanted] if isinstance(wanted, str) else list(wanted)
            there = list(dict.fromkeys(getattr(row, field) for row in kept))
            missing = [name for name in names if name not in there]
            if missing or not names:
                raise InvalidStudy(f"{what} must be among {there[:10]}, but {missing or names} came.")
            kept = [row for row in kept if getattr(row, field) in names]
    return kept


def by_measure(rows: list[Interval]) -> dict[str, list[Interval]]:
    """Return the rows of each measure, in the order of their first."""
    return {name: [row for row in rows if row.name == name] for name in {row.name: 0 for row in rows}}


def distance(row: Interval) -> float:
    """Return how far the interval is from the ideal: above 1 it excludes it."""
    scale = _scale(row.name)
    estimate, low, high, ideal = (scale(value) for value in (row.estimate, row.low, row.high, row.ideal))
    # The side of the interval that faces the ideal: shorter than the way there if the ideal is excluded.
    width = (high - ideal if estimate < ideal else ideal - low) + abs(estimate - ideal)
    found = abs(estimate - ideal) / width if width > 0 else math.inf
    # A row that says nothing comes after all that say something.
    return found if math.isfinite(found) else -1.0


def _scale(measure: str) -> Callable[[float], float]:
    return _log if measure == "spread" else float


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def draw_intervals(ax: Axes, rows: Sequence[Interval], measure: str) -> None:
    """Draw a row's estimate and interval at each height 0, 1, ...; filled if the interval excludes the ideal."""
    low, high = axis_limits(rows, measure)
    for ideal in {row.ideal for row in rows if math.isfinite(row.ideal)}:
        ax.axvline(ideal, color="0.35", lw=0.8, zorder=0)
    if measure == "spread":
        # Twice and half the right sd are errors of one size.
        ax.set_xscale("log")
    for y, row in enumerate(rows):
        _draw_interval(ax, row, y, (low, high))
    ax.set(xlim=(low, high), xlabel={"spread": "spread factor", "bias": "bias, in reported sds"}.get(measure, measure))
    if measure == "spread":
        # Numbers below each other need no room; side by side, four fill a narrow axis.
        show_log_ticks(ax.xaxis, low, high, most=4)


def _draw_interval(ax: Axes, row: Interval, y: float, limits: tuple[float, float]) -> None:
    look = _look(row.clear)
    ends = np.clip([row.low, row.high], *limits)
    ax.plot(ends, [y, y], color=look["color"], lw=1.2, label="interval", solid_capstyle="butt", zorder=2)
    for end, edge, mark in ((row.low, limits[0], "<"), (row.high, limits[1], ">")):
        if (end < edge) if mark == "<" else (end > edge):
            ax.plot(edge, y, mark, color=look["color"], ms=3.5, clip_on=False, label="arrow")
    if limits[0] <= row.estimate <= limits[1]:
        ax.plot(row.estimate, y, ls="", ms=3.5, label="estimate", zorder=3, **look)


#: How much of the axis around the ideal is always shown; of the logarithm, for the spread.
_LEAST = {"spread": 0.12, "bias": 0.15, "coverage": 0.05}


def axis_limits(rows: Sequence[Interval], measure: str) -> tuple[float, float]:
    """Return ends of the axis that show ideals, estimates and intervals, but do not follow a wild end."""
    scale = _scale(measure)
    numbers = np.array([[scale(value) for value in (row.estimate, row.low, row.high)] for row in rows])
    ideals = np.array([scale(row.ideal) for row in rows])
    ideals, estimates, known = (part[np.isfinite(part)] for part in (ideals, numbers[:, 0], numbers))
    inner = next((part for part in (np.r_[ideals, estimates], known) if part.size), np.zeros(1))
    whole = numbers[np.isfinite(numbers).all(axis=1)]
    # The median, so that one very wide interval does not set the scale.
    typical = float(np.median(whole[:, 2] - whole[:, 1])) if whole.size else 0.0
    reach, least = max(float(np.ptp(inner)), typical), _LEAST.get(measure, 0.0)
    low = max(known.min(initial=inner.min()), inner.min() - 2 * reach)
    high = min(known.max(initial=inner.max()), inner.max() + 2 * reach)
    low, high = min(low, ideals.min(initial=np.inf) - least), max(high, ideals.max(initial=-np.inf) + least)
    margin = 0.06 * (high - low) or 0.05
    return _unscaled(float(low - margin), measure), _unscaled(float(high + margin), measure)


def _unscaled(value: float, measure: str) -> float:
    return math.exp(value) if measure == "spread" else value


#: Ticks of a short logarithmic axis are so far apart; those of a long one are powers of these.
_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_BASES = (2.0, 10**0.5, *(10.0**e for e in range(1, 200)))
_LONG, _TICKS = 4.0, 6


def log_ticks(low: float, high: float, most: int = _TICKS) -> list[float]:
    """Return a few plain numbers for a logarithmic axis between two others, 1 among them.

    Examples
    --------
    >>> log_ticks(0.9, 1.12), log_ticks(0.4, 3)
    ([0.9, 0.95, 1.0, 1.05, 1.1], [0.5, 1.0, 2.0])
    """
    if high / low <= _LONG:
        ranges = ((1 + step * _between((low - 1) / step, (high - 1) / step)) for step in _STEPS)
    else:
        ranges = (base ** _between(math.log(low, base), math.log(high, base)) for base in _BASES)
    found = next((ticks for ticks in ranges if ticks.size <= most), np.ones(1))
    # Powers of two need two figures, and roots of ten are called 3.
    figures = 4 if high / low <= _LONG else 2 if found.size > 1 and found[1] / found[0] < 2.5 else 1
    return [float(f"{tick:.{figures}g}") for tick in found]


def _between(low: float, high: float) -> Floats:
    slack = 1e-9  # an end that is a tick is one, whatever its rounding
    return np.arange(math.ceil(low - slack), math.floor(high + slack) + 1, dtype=np.float64)


def show_log_ticks(axis: Any, low: float, high: float, *, most: int = _TICKS) -> None:
    """Label a logarithmic axis with plain numbers, few enough to read."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(log_ticks(low, high, most)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    # Minor ticks of a logarithmic axis bring labels of their own, in powers.
    axis.set_minor_locator(NullLocator())
