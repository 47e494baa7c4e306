"""Pictures of numbers with intervals: forests, sweeps, caterpillars and maps of coverage.

They draw any rows that have an estimate, a low and a high end; where an end is infinite an arrow points to it. This
module computes nothing but the coverage in bins of a truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import miscalibration
from ..errors import InvalidStudy
from ..replicates import Replicates
from ..results import Result
from .lattices import check_level
from .selection import choose, result_of
from .style import COLOURS, MARKERS, NULL, STYLES, head, journal, legend, panels, plain, returned, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rows of a forest or caterpillar, and lines of a sweep.
MOST_ROWS, MOST_LINES = 40, 6
#: Measures that are drawn if none is named, and those that have a tolerance.
USUAL = ("spread", "bias", "coverage")
TOLERATED = (*USUAL, "KS distance", "weak KS distance")
#: Cells of a map of coverage by truth, at most, and replicates in each, at least.
_CELLS, _EACH = 12, 40


@dataclass(frozen=True)
class Row:
    """A number with its interval, as it is drawn."""

    name: str
    f: str
    measure: str
    estimate: float
    low: float
    high: float
    ideal: float
    x: Any = None


@dataclass(frozen=True)
class Place:
    """The coverage at one theta, as it is drawn."""

    theta: tuple[float, ...]
    estimate: float
    low: float
    high: float
    ideal: float


def as_rows(source: Any) -> list[Row]:
    """Return the rows of a result, a comparison, a sweep, or any iterable of rows."""
    if isinstance(source, Result):
        return [Row(m.f, m.f, m.name, m.estimate, m.low, m.high, m.ideal) for m in source.measures]
    if isinstance(source, Replicates):
        return as_rows(result_of(source))
    try:
        rows = [_as_row(row) for row in getattr(source, "rows", source)]
    except (AttributeError, TypeError) as error:
        raise TypeError(
            f"rows with f, measure, estimate, low, high and ideal are needed, or a Result, but {type(source).__name__} "
            f"arrived: {error}"
        ) from None
    if not rows:
        raise InvalidStudy("at least one row is needed to draw, but none arrived.")
    return rows


def _as_row(row: Any) -> Row:
    name = str(getattr(row, "name", ""))
    estimate, low, high, ideal = (float(value) for value in (row.estimate, row.low, row.high, row.ideal))
    return Row(name, str(row.f), str(row.measure), estimate, low, high, ideal, getattr(row, "x", None))


def _filtered(rows: list[Row], measure: Any, f: Any) -> list[Row]:
    kept = rows
    for wanted, what in ((measure, "measure"), (f, "f")):
        if wanted is not None:
            names = [wanted] if isinstance(wanted, str) else list(wanted)
            there = list(dict.fromkeys(getattr(row, what) for row in kept))
            missing = [name for name in names if name not in there]
            if missing or not names:
                raise InvalidStudy(f"{what} must be among {there[:10]}, but {missing or names} came.")
            kept = [row for row in kept if getattr(row, what) in names]
    return kept


def _by_measure(rows: list[Row]) -> dict[str, list[Row]]:
    return {measure: [row for row in rows if row.measure == measure] for measure in {r.measure: 0 for r in rows}}


def forest(
    source: Any,
    *,
    measure: str | Iterable[str] | None = None,
    f: str | Iterable[str] | None = None,
    most: int = MOST_ROWS,
    ax: Any = None,
) -> Any:
    """Draw estimates with their intervals below each other, a panel for every measure.

    Parameters
    ----------
    source
        A Comparison, a Result, or rows with name, f, measure, estimate, low, high and ideal.
    measure, f
        Names of measures and test functions; left out, all, but of a Result spread, bias and coverage.
    most
        Rows in a panel; of more, those whose intervals are farthest from the ideal are drawn.
    ax
        Where to draw: Axes, one for each measure.

    Returns
    -------
    Axes, or an array of them if there are several measures.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> result = check_draws(rng.normal(size=50), rng.normal(size=(50, 19)))
    >>> forest(result, measure="spread").get_xlabel()
    'spread factor'
    """
    rows = _filtered(as_rows(source), measure, f)
    if measure is None and isinstance(source, (Result, Replicates)):
        rows = [row for row in rows if row.measure in USUAL]
    groups = _by_measure(rows)
    if not groups:
        raise InvalidStudy("nothing was measured, so there is nothing to draw; see result.measures.")
    tall = max(min(len(group), most) for group in groups.values())
    with journal():
        drawn = panels(ax, len(groups), height=max(0.9 + 0.14 * tall, 1.6))
        for one, (name, group) in zip(drawn, groups.items(), strict=True):
            _draw_forest(one, group, name, most)
        if ax is None:
            _drop_repeated_labels(drawn)
    return returned(drawn)


def _draw_forest(ax: Axes, rows: list[Row], measure: str, most: int) -> None:
    worst = set(map(id, sorted(rows, key=_distance, reverse=True)[: max(int(most), 1)]))
    shown = [row for row in rows if id(row) in worst]
    head(ax, measure, f"{len(shown)} of {len(rows)}, farthest from the ideal" if len(shown) < len(rows) else "")
    draw_intervals(ax, shown, measure)
    several = len({row.name for row in rows}) > 1 and len({row.f for row in rows}) > 1
    labels = [_label(row, several and row.name != row.f) for row in shown]
    ax.set_yticks(range(len(shown)), labels, parse_math=False)
    ax.set_ylim(len(shown) - 0.4, -0.6)


def _drop_repeated_labels(drawn: Sequence[Axes]) -> None:
    """Leave out labels that the panel to the left has already."""
    labels = [[text.get_text() for text in one.get_yticklabels()] for one in drawn]
    for one, mine, before in zip(drawn[1:], labels[1:], labels, strict=False):
        if mine == before and not one.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            one.tick_params(labelleft=False)


def _label(row: Row, several: bool) -> str:
    if several:
        return f"{plain(row.name, most=20)}, {plain(row.f, most=16)}"
    return plain(row.name or row.f)


def _distance(row: Row) -> float:
    """Return how far the interval is from the ideal: above 1 it excludes it."""
    scale = _scale(row.measure)
    estimate, low, high, ideal = (scale(value) for value in (row.estimate, row.low, row.high, row.ideal))
    width = (high - ideal if estimate < ideal else ideal - low) + abs(estimate - ideal)
    found = abs(estimate - ideal) / width if width > 0 else math.inf
    return found if math.isfinite(found) else -1.0


def _scale(measure: str) -> Callable[[float], float]:
    return _log if measure == "spread" else float


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def draw_intervals(ax: Axes, rows: Sequence[Row], measure: str) -> None:
    """Draw a row's estimate and interval at each height 0, 1, ...; filled if the interval excludes the ideal."""
    low, high = _limits(rows, measure)
    for ideal in {row.ideal for row in rows if math.isfinite(row.ideal)}:
        ax.axvline(ideal, color="0.35", lw=0.8, zorder=0)
    if measure == "spread":
        ax.set_xscale("log")
    for y, row in enumerate(rows):
        _draw_interval(ax, row, y, (low, high))
    ax.set(xlim=(low, high), xlabel={"spread": "spread factor", "bias": "bias, in reported sds"}.get(measure, measure))
    if measure == "spread":
        _plain_log_ticks(ax, low, high)


def _draw_interval(ax: Axes, row: Row, y: float, limits: tuple[float, float]) -> None:
    excludes = row.low > row.ideal or row.high < row.ideal
    colour = COLOURS[1] if excludes else COLOURS[0]
    ends = np.clip([row.low, row.high], *limits)
    ax.plot(ends, [y, y], color=colour, lw=1.2, label="interval", solid_capstyle="butt", zorder=2)
    for end, edge, mark in ((row.low, limits[0], "<"), (row.high, limits[1], ">")):
        if (end < edge) if mark == "<" else (end > edge):
            ax.plot(edge, y, mark, color=colour, ms=3.5, clip_on=False, label="arrow")
    if limits[0] <= row.estimate <= limits[1]:
        fill = colour if excludes else "white"
        ax.plot(row.estimate, y, "D" if excludes else "o", color=colour, mfc=fill, ms=3.5, label="estimate", zorder=3)


#: How much of the axis around the ideal is always shown; of the logarithm, for the spread.
_LEAST = {"spread": 0.12, "bias": 0.15, "coverage": 0.05}


def _limits(rows: Sequence[Row], measure: str) -> tuple[float, float]:
    """Return ends of the axis that show ideals, estimates and intervals, but do not follow a wild end."""
    scale = _scale(measure)
    numbers = np.array([[scale(value) for value in (row.estimate, row.low, row.high)] for row in rows])
    ideals = np.array([scale(row.ideal) for row in rows])
    ideals, estimates, known = (part[np.isfinite(part)] for part in (ideals, numbers[:, 0], numbers))
    inner = next((part for part in (np.r_[ideals, estimates], known) if part.size), np.zeros(1))
    whole = numbers[np.isfinite(numbers).all(axis=1)]
    typical = float(np.median(whole[:, 2] - whole[:, 1])) if whole.size else 0.0
    reach, least = max(float(np.ptp(inner)), typical), _LEAST.get(measure, 0.0)
    low = max(known.min(initial=inner.min()), inner.min() - 2 * reach)
    high = min(known.max(initial=inner.max()), inner.max() + 2 * reach)
    low, high = min(low, ideals.min(initial=np.inf) - least), max(high, ideals.max(initial=-np.inf) + least)
    margin = 0.06 * (high - low) or 0.05
    return _unscaled(float(low - margin), measure), _unscaled(float(high + margin), measure)


def _unscaled(value: float, measure: str) -> float:
    return math.exp(value) if measure == "spread" else value


#: Ticks of a logarithmic axis, from coarse to fine.
_TICKS = (
    tuple(10.0**e for e in range(-9, 10)),
    tuple(m * 10.0**e for e in range(-9, 10) for m in (1, 3)),
    (0.25, 0.5, 1.0, 2.0, 4.0),
    (0.5, 0.7, 1.0, 1.4, 2.0),
    (0.6, 0.8, 1.0, 1.2, 1.4),
    (0.8, 0.9, 1.0, 1.1, 1.2),
    (0.9, 0.95, 1.0, 1.05, 1.1),
)


def _plain_log_ticks(ax: Axes, low: float, high: float) -> None:
    """Label a logarithmic axis with plain numbers, few enough to read."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    found = [[tick for tick in ticks if low <= tick <= high] for ticks in _TICKS]
    inside = next((ticks for ticks in found if len(ticks) >= 3), found[-1])
    keep = inside[:: math.ceil(len(inside) / 6) or 1]
    ax.xaxis.set_major_locator(FixedLocator(keep or [low, high]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    ax.xaxis.set_minor_locator(NullLocator())


def caterpillar(source: Any, *, measure: str = "spread", most: int = MOST_ROWS, ax: Any = None) -> Any:
    """Draw a measure of many test functions, those with the most evidence against them on top.

    Intervals hold jointly over all test functions, drawn or not; the grey strip is the tolerance of the result.

    Parameters
    ----------
    source
        A Result; Replicates are judged with the default settings.
    measure
        "spread", "bias", "coverage", or any other name in ``result.measures``.
    most
        Test functions that are drawn; of more, those with the smallest p-values, and the picture says so.
    ax
        Where to draw.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> result = check_draws(rng.normal(size=(50, 3)), rng.normal(size=(50, 19, 3)))
    >>> len(caterpillar(result, most=2).get_yticks())
    2
    """
    result = result_of(source)
    rows = _filtered(as_rows(result), measure, None) if result.measures else []
    if not rows:
        raise InvalidStudy("nothing was measured, so there is nothing to draw; ask about a function of theta alone.")
    evidence = {row.f: row.pvalue for row in result.tests if row.level == "strong"}
    ordered = sorted(rows, key=lambda row: (evidence.get(row.f, 1.0), -_distance(row)))
    shown = ordered[: max(int(most), 1)]
    with journal():
        (one,) = panels(ax, 1, width=3.0, height=max(0.9 + 0.11 * len(shown), 1.6))
        draw_intervals(one, shown, measure)
        if measure in TOLERATED:
            low, high = result.tolerance.limits(measure, rows[0].ideal)
            one.axvspan(max(low, one.get_xlim()[0]), high, color=NULL, alpha=0.35, lw=0, zorder=0, label="tolerance")
            one.set_xlim(_limits(shown, measure))
        _name_functions(one, shown, evidence)
        strip = "; grey: tolerance" if measure in TOLERATED else ""
        head(one, f"{measure} by evidence", _counted(len(shown), len(rows), result) + strip)
    return one


def _name_functions(ax: Axes, shown: Sequence[Row], evidence: dict[str, float]) -> None:
    size = 7 if len(shown) <= 12 else 5.5
    ax.set_yticks(range(len(shown)), [plain(row.f, most=24) for row in shown], parse_math=False, fontsize=size)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    for y, row in enumerate(shown):
        if row.f in evidence:
            text = f"p {_short(evidence[row.f])}"
            ax.annotate(
                text, (1.01, y), xycoords=("axes fraction", "data"), va="center", fontsize=size - 1, color="0.35"
            )


def _short(p: float) -> str:
    return f"{p:.2g}" if p >= 1e-3 else ("< 1e-300" if p < 1e-300 else f"{p:.0e}")


def _counted(shown: int, rows: int, result: Result) -> str:
    n = result.replicates.n - len(result.replicates.failures)
    worst = f"the worst {shown} of {rows} test functions" if shown < rows else f"{rows} test function{'s' * (rows > 1)}"
    return f"{worst}, n = {n}"


def sweep_lines(
    source: Any,
    *,
    measure: str | Iterable[str] | None = None,
    f: str | Iterable[str] | None = None,
    xlabel: str = "",
    ax: Any = None,
) -> Any:
    """Draw how measures change along a sweep, a panel for every measure and a line for every test function.

    Parameters
    ----------
    source
        A Sweep, or rows with x, f, measure, estimate, low, high and ideal; a line for every name if they have one.
    measure, f
        Names of measures and test functions; left out, spread, bias and coverage of all (or all measures, if there
        are none of these), at most six lines.
    xlabel
        What was varied.
    ax
        Where to draw: Axes, one for each measure.

    Returns
    -------
    Axes, or an array of them if there are several measures.

    Examples
    --------
    >>> from types import SimpleNamespace as Row
    >>> rows = [Row(x=x, f="theta", measure="spread", estimate=x, low=x / 2, high=2 * x, ideal=1) for x in (1, 2, 3)]
    >>> sweep_lines(rows, xlabel="step size").get_xlabel()
    'step size'
    """
    rows = _filtered(as_rows(source), measure, f)
    if any(row.x is None for row in rows):
        raise InvalidStudy("every row of a sweep must have an x, but some have none; forest draws rows without.")
    usual = [row for row in rows if row.measure in USUAL]
    groups = _by_measure(usual if usual and measure is None else rows)
    with journal():
        drawn = panels(ax, len(groups))
        for one, (name, group) in zip(drawn, groups.items(), strict=True):
            _draw_sweep(one, group, name)
            one.set_xlabel(plain(xlabel), parse_math=False)
    return returned(drawn)


def _draw_sweep(ax: Axes, rows: list[Row], measure: str) -> None:
    lines = list(dict.fromkeys((row.name, row.f) for row in rows))
    places = _places(ax, rows)
    low, high = _limits(rows, measure)
    for ideal in {row.ideal for row in rows if math.isfinite(row.ideal)}:
        ax.axhline(ideal, color="0.35", lw=0.8, zorder=0)
    handles = [
        (_draw_line(ax, [r for r in rows if (r.name, r.f) == line], places, j, (low, high)), _line_name(line, lines))
        for j, line in enumerate(lines[:MOST_LINES])
    ]
    if measure == "spread":
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
    ax.set(ylim=(low, high), ylabel={"spread": "spread factor", "bias": "bias, in reported sds"}.get(measure, measure))
    head(ax, measure, f"{MOST_LINES} of {len(lines)} lines" if len(lines) > MOST_LINES else "")
    legend(ax, handles if len(lines) > 1 else [])


def _places(ax: Axes, rows: list[Row]) -> dict[Any, float]:
    """Return where each x goes: itself if all are numbers, else one after the other."""
    values = list(dict.fromkeys(row.x for row in rows))
    if all(isinstance(x, (int, float, np.number)) and math.isfinite(x) for x in values):
        if min(values) > 0 and max(values) > 30 * min(values):
            ax.set_xscale("log")
        return {x: float(x) for x in values}
    ax.set_xticks(range(len(values)), [plain(x, most=16) for x in values], parse_math=False)
    return {x: float(j) for j, x in enumerate(values)}


def _draw_line(ax: Axes, rows: list[Row], places: dict[Any, float], j: int, limits: tuple[float, float]) -> Any:
    rows = sorted(rows, key=lambda row: places[row.x])
    x = np.array([places[row.x] for row in rows])
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


def coverage_map(
    source: Any,
    f: str | None = None,
    *,
    over: str | None = None,
    bins: int | None = None,
    nominal: float = 0.9,
    level: float = 0.95,
    ax: Any = None,
) -> Any:
    """Draw how often central intervals contain the truth, by where the truth is.

    A calibrated procedure is right on average over the belief, not at every theta: Bayes' rule itself covers too seldom
    where the belief is thin. The map shows where the errors are; only the average has to be nominal.

    Parameters
    ----------
    source
        Rows with theta (a number, or two), estimate, low and high, as ``ringtrue.coverage_map`` returns them; or a
        Result or Replicates, whose replicates are then put in bins with equally many truths.
    f
        Whose intervals: the name of one test function; left out, the first.
    over
        The test function whose truths make the bins; left out, f itself.
    bins
        How many; left out, at most twelve, with forty replicates in each.
    nominal
        The probability that an output gives to its central interval, if replicates are binned; ranks use the nearest
        level that they have.
    level
        Chance that all intervals of the bins hold, by Bonferroni's inequality over Clopper and Pearson's intervals.
    ax
        Where to draw.

    Notes
    -----
    Two parameters are drawn as points whose shape says whether the interval lies below (v), above (^) or around the
    ideal (o), whose colour says by how much.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> coverage_map(check_draws(rng.normal(size=500), rng.normal(size=(500, 19)))).get_xlabel()
    'theta'
    """
    if isinstance(source, (Result, Replicates)):
        places, mean, labels, note = _binned(source, f, over, bins, nominal, level)
    else:
        places, labels, note = _as_places(source, f)
        mean = math.nan
    with journal():
        (one,) = panels(ax, 1, width=2.6 if len(places[0].theta) == 1 else 3.2)
        if len(places[0].theta) == 1:
            _draw_map_line(one, places, mean)
            one.set_xlabel(labels[0], parse_math=False)
        else:
            _draw_map_points(one, places)
            one.set(xlabel="theta[0]", ylabel="theta[1]")
            note += "; v too seldom, ^ too often"
        head(one, labels[1], note)
    return one


def _as_places(source: Any, f: str | None) -> tuple[list[Place], tuple[str, str], str]:
    rows = list(getattr(source, "rows", source))
    names = list(dict.fromkeys(str(getattr(row, "f", "")) for row in rows))
    if not rows or (f is not None and f not in names):
        raise InvalidStudy(f"f must be among {names[:10]}, but {f!r} came." if rows else "at least one row is needed.")
    wanted = names[0] if f is None else f
    places = [_as_place(row) for row in rows if str(getattr(row, "f", "")) == wanted]
    if len({len(place.theta) for place in places}) != 1 or len(places[0].theta) not in (1, 2):
        raise InvalidStudy("theta must be one number or two, the same for all rows; pass rows with two of its entries.")
    return places, ("theta", wanted or "coverage"), f"{len(places)} parameters"


def _as_place(row: Any) -> Place:
    try:
        theta = row.theta
        parts = list(theta.values()) if hasattr(theta, "values") else [theta]
        flat = tuple(float(x) for part in parts for x in np.ravel(part))
        return Place(flat, float(row.estimate), float(row.low), float(row.high), float(getattr(row, "ideal", 0.9)))
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(f"rows need theta, estimate, low and high, but one does not have them: {error}") from None


def _binned(
    source: Any, f: str | None, over: str | None, bins: int | None, nominal: float, level: float
) -> tuple[list[Place], float, tuple[str, str], str]:
    check_level(level)
    if not 0 < nominal < 1:
        raise InvalidStudy(f"nominal must lie strictly between 0 and 1, but {nominal!r} arrived; for 90 % pass 0.9.")
    chosen = choose(source, f, most=1)
    ran, k = chosen.replicates, chosen.columns[0]
    by = choose(source, over, most=1).columns[0] if over is not None else k
    truth = ran.truth[ran.rows, by]
    if not np.isfinite(truth).all():
        raise InvalidStudy(f"the truths of {ran.columns[by].name!r} are not known, so they make no bins; see over=.")
    draws = ran.lattice(k)
    values = ran.u[ran.rows, k] if draws is None else ran.rank[ran.rows, k]
    parts = _equal_parts(truth, bins)
    each = 1 - (1 - level) / len(parts)
    covered = [miscalibration.coverage(values[p], draws=draws, nominal=nominal, level=each) for p in parts]
    places = [
        Place((float(np.median(truth[p])),), c.estimate, c.low, c.high, c.ideal)
        for p, c in zip(parts, covered, strict=True)
    ]
    mean = miscalibration.coverage(values, draws=draws, nominal=nominal).estimate
    return places, mean, (plain(ran.columns[by].name), chosen.name(k)), chosen.note(k)


def _equal_parts(truth: Any, bins: int | None) -> list[Any]:
    """Return the indices of equally many replicates each, in the order of their truths; equal truths together."""
    if bins is not None and (isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 1):
        raise InvalidStudy(f"bins must be a whole number, at least 1, but {bins!r} arrived.")
    many = min(int(bins), truth.size) if bins is not None else min(max(truth.size // _EACH, 1), _CELLS)
    edges = np.unique(np.quantile(truth, np.linspace(0, 1, many + 1)[1:-1]))
    cell = np.searchsorted(edges, truth, side="left")
    return [part for j in range(edges.size + 1) if (part := np.flatnonzero(cell == j)).size]


def _draw_map_line(ax: Axes, places: list[Place], mean: float) -> None:
    ordered = sorted(places, key=lambda place: place.theta)
    x = np.array([place.theta[0] for place in ordered])
    estimate, low, high = (np.array([getattr(place, end) for place in ordered]) for end in ("estimate", "low", "high"))
    ax.vlines(x, low, high, color=COLOURS[0], lw=1, label="interval")
    (line,) = ax.plot(x, estimate, "o-", color=COLOURS[0], ms=3.5, label="coverage")
    out = np.array([not place.low <= place.ideal <= place.high for place in ordered])
    ax.plot(x[out], estimate[out], "D", color=COLOURS[1], ms=4.5, label="excludes the ideal")
    ideal = ax.axhline(ordered[0].ideal, color="0.35", lw=0.8)
    handles = [(line, "coverage"), (ideal, f"nominal, {100 * ordered[0].ideal:.3g} %")]
    if math.isfinite(mean):
        handles.append((ax.axhline(mean, color=COLOURS[0], lw=0.8, ls="--"), f"average, {100 * mean:.3g} %"))
    if np.isnan(estimate).all():
        say(ax, "one draw has no central interval")
    known = low[np.isfinite(low)]
    ax.set(
        ylim=(max(0.0, min(0.75, float(known.min(initial=0.75)) - 0.05)), 1.02), ylabel="share that contain the truth"
    )
    legend(ax, handles)


def _draw_map_points(ax: Axes, places: list[Place]) -> None:
    from matplotlib.colors import TwoSlopeNorm

    ideal = places[0].ideal
    away = max(max(abs(place.estimate - ideal) for place in places), 0.02)
    norm = TwoSlopeNorm(ideal, ideal - away, min(ideal + away, 1.0) if ideal < 1 else ideal + away)
    made: Any = None
    for mark, which in (("v", -1), ("o", 0), ("^", 1)):
        some = [place for place in places if _side(place) == which]
        if some:
            x, y = np.array([place.theta for place in some]).T
            colour = [place.estimate for place in some]
            made = ax.scatter(x, y, c=colour, norm=norm, cmap="PuOr", marker=mark, s=24, ec="black", lw=0.5)
    ax.figure.colorbar(made, ax=ax, label="share that contain the truth")


def _side(place: Place) -> int:
    return -1 if place.high < place.ideal else int(place.low > place.ideal)
