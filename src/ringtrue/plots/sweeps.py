"""How measures change along a sweep: a line for every test function or procedure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidStudy
from ..statistics.effects import Interval
from .headers import Keys, heads, settle
from .intervals import USUAL, as_rows, axis_limits, by_measure, filtered, show_log_ticks
from .style import COLOURS, MARKERS, STYLES, Size, journal, panels, plain, returned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Lines of a panel.
MOST_LINES = 6
#: What an axis says of which nobody said what it is.
_UNNAMED = "setting"


def sweep_lines(
    source: Any,
    *,
    measure: str | Iterable[str] | None = None,
    f: str | Iterable[str] | None = None,
    xlabel: str = "",
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw how measures change along a sweep, a panel for every measure and a line for every test function.

    Parameters
    ----------
    source
        A Sweep, or rows with the fields of an Interval, ``of`` being x; several by name, {name: Sweep}, have a line
        for every name.
    measure, f
        Names of measures and test functions; left out, spread, bias and coverage of all (or all measures, if there
        are none of these), at most six lines.
    xlabel
        What was varied; left out, what the function that builds the studies of a Sweep calls it.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw: Axes, one for each measure.

    Returns
    -------
    Axes, or an array of them if there are several measures.

    Examples
    --------
    >>> rows = [Interval("spread", x, x / 2, 2 * x, 1.0, f="theta", of=x) for x in (1, 2, 3)]
    >>> sweep_lines(rows, xlabel="step size").get_xlabel()
    'step size'
    """
    # An empty name stands for a sweep without one, and is not written in the legend.
    swept = source if isinstance(source, Mapping) else {"": source}
    lines = {name: filtered(as_rows(one), measure, f) for name, one in swept.items()}
    rows = [row for one in lines.values() for row in one]
    if any(row.of is None for row in rows):
        raise InvalidStudy("every row of a sweep must have an x, but some have none; forest draws rows without.")
    usual = [row for row in rows if row.name in USUAL]
    names = by_measure(usual if usual and measure is None else rows)
    with journal(ax):
        drawn = panels(ax, len(names), figsize=figsize)
        keys, counts = [], {}
        for one, name in zip(drawn, names, strict=True):
            some = {key: [row for row in every if row.name == name] for key, every in lines.items()}
            keys.append(_draw_sweep(one, some, name))
            counts[name] = len({(key, row.f) for key, rows in some.items() for row in rows})
            one.set_xlabel(plain(xlabel or _varied(swept)), parse_math=False)
        settle(drawn, ax)
        notes = [f"{MOST_LINES} of {many} lines" if many > MOST_LINES else "" for many in counts.values()]
        heads(drawn, list(names), notes, [pairs if len(pairs) > 1 else () for pairs in keys])
    return returned(drawn)


def _varied(swept: Mapping[str, Any]) -> str:
    """Return what was varied, if all sweeps call it the same."""
    names = {getattr(one, "varied", "") for one in swept.values()}
    return names.pop() or _UNNAMED if len(names) == 1 else _UNNAMED


def _draw_sweep(ax: Axes, swept: Mapping[str, list[Interval]], measure: str) -> Keys:
    """Draw one measure, and return what its lines mean."""
    rows = [row for some in swept.values() for row in some]
    lines = list(dict.fromkeys((name, row.f) for name, some in swept.items() for row in some))
    places = _places(ax, rows)
    low, high = axis_limits(rows, measure)
    for ideal in {row.ideal for row in rows if math.isfinite(row.ideal)}:
        ax.axhline(ideal, color="0.35", lw=0.8, zorder=0)
    keys = [
        (_draw_line(ax, [r for r in swept[name] if r.f == f], places, j, (low, high)), _line_name((name, f), lines))
        for j, (name, f) in enumerate(lines[:MOST_LINES])
    ]
    if measure == "spread":
        ax.set_yscale("log")
        show_log_ticks(ax.yaxis, low, high)
    ax.set(ylim=(low, high), ylabel={"spread": "spread factor", "bias": "bias, in reported sds"}.get(measure, measure))
    return keys


def _places(ax: Axes, rows: list[Interval]) -> dict[Any, float]:
    """Return where each x goes: itself if all are numbers, else one after the other."""
    values = list(dict.fromkeys(row.of for row in rows))
    if all(isinstance(x, (int, float, np.number)) and math.isfinite(x) for x in values):
        # Beyond a factor of 30 a linear axis would push the small values into one another.
        if min(values) > 0 and max(values) > 30 * min(values):
            ax.set_xscale("log")
        return {x: float(x) for x in values}
    ax.set_xticks(range(len(values)), [plain(x, most=16) for x in values], parse_math=False)
    return {x: float(j) for j, x in enumerate(values)}


def _draw_line(ax: Axes, rows: list[Interval], places: dict[Any, float], j: int, limits: tuple[float, float]) -> Any:
    # A grid may come in any order, and a line must not run back.
    rows = sorted(rows, key=lambda row: places[row.of])
    x = np.array([places[row.of] for row in rows])
    # At the edge if it is infinite: a gap would look like a value that was not tried.
    middle = np.clip([row.estimate for row in rows], *limits)
    colour, style, mark = (cycle[j % len(cycle)] for cycle in (COLOURS, STYLES, MARKERS))
    ax.vlines(x, *np.clip([[r.low for r in rows], [r.high for r in rows]], *limits), color=colour, lw=0.8, alpha=0.8)
    (line,) = ax.plot(x, middle, color=colour, ls=style, marker=mark)
    return line


def _line_name(line: tuple[str, str], lines: list[tuple[str, str]]) -> str:
    name, f = line
    if not name or len({one for one, _ in lines}) == 1:
        return plain(f)
    return plain(name) if len({one for _, one in lines}) == 1 else f"{plain(name, most=20)}, {plain(f, most=16)}"
