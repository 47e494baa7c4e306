"""Estimates with their intervals below each other: a forest of measures, and a caterpillar of many test functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidStudy
from ..judgement.levels import level_of
from ..judgement.result import Result
from ..judgement.summary import worst_first
from ..judgement.text import power
from ..replicates.record import Replicates
from ..statistics.effects import Interval
from .headers import cut, head, heads, settle
from .intervals import USUAL, as_judged, as_rows, axis_limits, by_measure, distance, draw_intervals, filtered, meanings
from .selection import result_of
from .style import NULL, Size, journal, panels, plain, returned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rows of a forest or caterpillar.
MOST_ROWS = 40
#: Points that a name has beside however narrow a panel.
_NAME = 70.0
#: Measures that have a tolerance.
TOLERATED = (*USUAL, "KS distance", "weak KS distance")


def forest(
    source: Any,
    *,
    measure: str | Iterable[str] | None = None,
    f: str | Iterable[str] | None = None,
    most: int = MOST_ROWS,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw estimates with their intervals below each other, a panel for every measure.

    Diamonds are filled where the interval excludes the ideal; the grey strip is the tolerance, if there is one.

    Parameters
    ----------
    source
        A Comparison, a Result, or rows with the fields of an Interval.
    measure, f
        Names of measures and test functions; left out, all, but of a Result spread, bias and coverage.
    most
        Rows in a panel; of more, those whose intervals are farthest from the ideal are drawn.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw: Axes, one for each measure.

    Returns
    -------
    Axes, or an array of them if there are several measures.

    Examples
    --------
    >>> import numpy as np
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> result = check_draws(rng.normal(size=50), rng.normal(size=(50, 19)))
    >>> forest(result, measure="spread").get_xlabel()
    'spread factor'
    """
    rows = filtered(as_rows(source), measure, f)
    if measure is None and isinstance(source, (Result, Replicates)):
        rows = [row for row in rows if row.name in USUAL]
    groups = by_measure(rows)
    if not groups:
        raise InvalidStudy("nothing was measured, so there is nothing to draw; see result.measures.")
    # One height for all panels, so that rows of the same name stand side by side.
    tall = max(min(len(group), most) for group in groups.values())
    judged = as_judged(source)
    with journal(ax):
        drawn = panels(ax, len(groups), figsize=figsize, height=max(1.3 + 0.15 * tall, 1.8))
        for one, (name, group) in zip(drawn, groups.items(), strict=True):
            _draw_forest(one, group, name, most, judged)
        # The user's axes may stand anywhere, and a label that looks repeated may be the only one in sight.
        if ax is None:
            _drop_repeated_labels(drawn)
            _shorten(drawn)
        settle(drawn, ax)
        notes = [_listed(_farthest(group, most), _known(name, judged)) for name, group in groups.items()]
        heads(drawn, list(groups), notes, [meanings(rows)] * len(drawn))
    return returned(drawn)


def _listed(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _farthest(rows: Sequence[Interval], most: int) -> str:
    return f"{most} of {len(rows)}, farthest from the ideal" if most < len(rows) else ""


def _known(measure: str, result: Result | None) -> str:
    """Say how many replicates stand behind an estimate, and what is grey."""
    if result is None:
        return ""
    n = result.replicates.n - len(result.replicates.failures)
    return _listed(f"n = {n}", "grey: tolerance" if measure in TOLERATED else "")


def _draw_forest(ax: Axes, rows: list[Interval], measure: str, most: int, result: Result | None) -> None:
    # By identity: equal rows may occur twice, and what is kept stays in the order of the source.
    worst = set(map(id, sorted(rows, key=distance, reverse=True)[: max(int(most), 1)]))
    shown = [row for row in rows if id(row) in worst]
    draw_intervals(ax, shown, measure)
    if result is not None:
        _shade(ax, shown, result)
    several = len({row.of for row in rows}) > 1 and len({row.f for row in rows}) > 1
    labels = [_label(row, several) for row in shown]
    ax.set_yticks(range(len(shown)), labels, parse_math=False)
    # Limits turned round put the first row on top, as in a table.
    ax.set_ylim(len(shown) - 0.4, -0.6)


def _drop_repeated_labels(drawn: Sequence[Axes]) -> None:
    """Leave out labels that the panel to the left has already."""
    labels = [[text.get_text() for text in one.get_yticklabels()] for one in drawn]
    for one, mine, before in zip(drawn[1:], labels[1:], labels, strict=False):
        if mine == before and not one.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            one.tick_params(labelleft=False)


def _shorten(drawn: Sequence[Axes]) -> None:
    """Cut names beside panels so that they leave room for the panels."""
    named = [one for one in drawn if one.yaxis.get_tick_params().get("labelleft", True)]
    starts = {one.get_subplotspec().colspan.start for one in named}  # type: ignore[union-attr]
    width = 72 * drawn[0].get_figure(root=True).get_figwidth()  # type: ignore[union-attr]
    room = max((0.3 if len(starts) == 1 else 0.4) * width / len(starts), _NAME)
    for one in named:
        font = one.get_yticklabels()[0].get_fontproperties()
        names = [text.get_text() for text in one.get_yticklabels()]
        one.set_yticks(one.get_yticks(), [cut(name, room, font) for name in names], parse_math=False)


def _label(row: Interval, several: bool) -> str:
    """Return whose it is: a procedure's, a test function's where there is no other owner, or that of both."""
    if several and row.of is not None:
        return f"{plain(row.of, most=20)}, {plain(row.f, most=16)}"
    return plain(row.f if row.of is None else row.of)


def caterpillar(
    source: Any, *, measure: str = "spread", most: int = MOST_ROWS, figsize: Size = None, ax: Any = None
) -> Any:
    """Draw a measure of many test functions, those with the most evidence against them on top.

    Intervals hold jointly over all test functions, drawn or not; the grey strip is the tolerance of the result.

    Parameters
    ----------
    source
        A Result; Replicates are judged with the default settings.
    measure
        "spread", "bias", "coverage", or any other name in ``result.measures``.
    most
        Test functions that are drawn; of more, the worst, by their adjusted p-values, and the picture says so.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw.

    Examples
    --------
    >>> import numpy as np
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> result = check_draws(rng.normal(size=(50, 3)), rng.normal(size=(50, 19, 3)))
    >>> len(caterpillar(result, most=2).get_yticks())
    2
    """
    result = result_of(source)
    rows, shown = by_badness(result, measure, most)
    with journal(ax):
        (one,) = panels(ax, 1, figsize=figsize, width=3.0, height=max(1.1 + 0.12 * len(shown), 1.6))
        draw_worst(one, shown, rows, result)
        margin(one, [f"p {_short(p)}" if (p := _strong_p(row.f, result)) is not None else "" for row in shown])
        settle([one], ax)
        note = _listed(_counted(len(shown), len(rows)), _known(measure, result))
        head(one, f"{measure} by evidence", note, meanings(shown))
    return one


def by_badness(result: Result, measure: str, most: int) -> tuple[list[Interval], list[Interval]]:
    """Return all rows of a measure, and those of the worst test functions, the very worst first."""
    rows = filtered(as_rows(result), measure, None) if result.measures else []
    if not rows:
        raise InvalidStudy("nothing was measured, so there is nothing to draw; ask about a function of theta alone.")
    functions = result.replicates.functions
    order = worst_first(result, range(len(functions)), [level_of("theta")])
    # A measure of all entries together belongs to no test function, and comes last.
    place = {functions[k].name: j for j, k in enumerate(order)}
    ordered = sorted(rows, key=lambda row: place.get(row.f, len(order)))
    return rows, ordered[: max(int(most), 1)]


def draw_worst(ax: Axes, shown: Sequence[Interval], rows: Sequence[Interval], result: Result) -> None:
    """Draw rows of one measure over its tolerance, with the names of their test functions."""
    draw_intervals(ax, shown, rows[0].name)
    _shade(ax, shown, result)
    ax.set_yticks(range(len(shown)), [row.f for row in shown], parse_math=False)
    # Names must leave room for the intervals.
    room = max(0.4 * 72 * ax.bbox.width / ax.get_figure(root=True).dpi, _NAME)  # type: ignore[union-attr]
    font = ax.get_yticklabels()[0].get_fontproperties()
    ax.set_yticklabels([cut(row.f, room, font) for row in shown], parse_math=False)
    ax.set_ylim(len(shown) - 0.4, -0.6)


def _shade(ax: Axes, shown: Sequence[Interval], result: Result) -> None:
    """Draw the tolerance of a measure behind its rows."""
    measure = shown[0].name
    if measure in TOLERATED:
        low, high = result.tolerance.limits(measure, shown[0].ideal)
        # The tolerance of a distance starts at minus infinity, which no axis has.
        ax.axvspan(max(low, ax.get_xlim()[0]), high, color=NULL, alpha=0.35, lw=0, zorder=0, label="tolerance")
        # A wide tolerance must not stretch the axis until the intervals are dots.
        ax.set_xlim(axis_limits(shown, measure))


def margin(ax: Axes, texts: Sequence[str]) -> None:
    """Write a text to the right of every row."""
    for y, text in enumerate(texts):
        place: Any = {"xycoords": ("axes fraction", "data"), "va": "center", "color": "0.35"}
        ax.annotate(text, (1.03, y), fontsize="small", **place)


def _strong_p(f: str, result: Result) -> float | None:
    return next((row.pvalue for row in result.tests if row.f == f and row.level == level_of("theta")), None)


def _short(p: float) -> str:
    return f"{p:.2g}" if p >= 1e-3 else ("< 1e-300" if p < 1e-300 else power(f"{p:.0e}"))


def _counted(shown: int, rows: int) -> str:
    return f"the worst {shown} of {rows} test functions" if shown < rows else ""
