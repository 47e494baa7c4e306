"""Maps of coverage: how often intervals contain the truth, by where the truth is.

It computes nothing but the coverage in bins of a truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidStudy
from ..judgement.column import columns_of
from ..judgement.result import Result
from ..replicates.record import Replicates
from ..statistics import effects
from ..statistics.arguments import need_fraction
from ..statistics.effects import Interval
from .headers import head, settle
from .selection import choose
from .style import COLOURS, Size, journal, panels, plain, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Cells of a map of coverage by truth, at most, and replicates in each, at least.
_CELLS, _EACH = 12, 40


def coverage_map(
    source: Any,
    f: str | None = None,
    *,
    over: str | None = None,
    bins: int | None = None,
    nominal: float = 0.9,
    confidence: float = 0.95,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw how often central intervals contain the truth, by where the truth is.

    A calibrated procedure is right on average over the belief, not at every theta: Bayes' rule itself covers too seldom
    where the belief is thin. The map shows where the errors are; only the average has to be nominal.

    Parameters
    ----------
    source
        Rows with ``of`` (theta, a number or two), estimate, low and high, as ``ringtrue.coverage_map`` returns them; or
        a Result or Replicates, whose replicates are then put in bins with equally many truths.
    f
        Whose intervals: the name of one test function; left out, the worst of a Result or Replicates, the first of
        rows.
    over
        The test function whose truths make the bins; left out, f itself.
    bins
        How many; left out, at most twelve, with forty replicates in each.
    nominal
        The probability that an output gives to its central interval, if replicates are binned; ranks use the nearest
        one that they have.
    confidence
        Chance that all intervals of the bins hold, by Bonferroni's inequality over Clopper and Pearson's intervals.
    figsize
        Width and height of a new figure, in inches.
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
        places, mean, labels, note = _binned(source, f, over, bins, nominal, confidence)
    else:
        places, labels, note = _as_places(source, f)
        # Chosen parameters are no sample of the belief: their average is no coverage of anything.
        mean = math.nan
    with journal(ax):
        (one,) = panels(ax, 1, figsize=figsize, width=2.6 if len(places[0].of) == 1 else 3.2)
        keys: list[tuple[Any, str]] = []
        if len(places[0].of) == 1:
            keys = _draw_map_line(one, places, mean)
            one.set_xlabel(labels[0], parse_math=False)
        else:
            _draw_map_points(one, places)
            one.set(xlabel="theta[0]", ylabel="theta[1]")
            note += "; v too seldom, ^ too often"
        settle([one], ax)
        head(one, labels[1], note, keys)
    return one


def _as_places(source: Any, f: str | None) -> tuple[list[Interval], tuple[str, str], str]:
    found = getattr(source, "rows", source)
    if not isinstance(found, Iterable):
        raise TypeError(
            f"a Result, Replicates, or the rows that ringtrue.coverage_map returns are needed, but "
            f"{type(source).__name__} arrived."
        )
    rows = list(found)
    names = list(dict.fromkeys(str(getattr(row, "f", "")) for row in rows))
    if not rows or (f is not None and f not in names):
        raise InvalidStudy(f"f must be among {names[:10]}, but {f!r} came." if rows else "at least one row is needed.")
    wanted = names[0] if f is None else f
    places = [_as_place(row) for row in rows if str(getattr(row, "f", "")) == wanted]
    if len({len(place.of) for place in places}) != 1 or len(places[0].of) not in (1, 2):
        raise InvalidStudy("theta must be one number or two, the same for all rows; pass rows with two of its entries.")
    return places, ("theta", wanted or "coverage"), f"{len(places)} parameters"


def _as_place(row: Any) -> Interval:
    """Return a row with its theta as a tuple of numbers."""
    try:
        parts = list(row.of.values()) if hasattr(row.of, "values") else [row.of]
        theta = tuple(float(x) for part in parts for x in np.ravel(part))
        ends = float(row.estimate), float(row.low), float(row.high)
        return Interval("coverage", *ends, float(getattr(row, "ideal", 0.9)), of=theta)
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(f"rows need of (a theta), estimate, low and high, but one does not: {error}") from None


def _binned(
    source: Any, f: str | None, over: str | None, bins: int | None, nominal: float, confidence: float
) -> tuple[list[Interval], float, tuple[str, str], str]:
    need_fraction(confidence=confidence, nominal=nominal)
    chosen = choose(source, f, most=1)
    ran, k = chosen.replicates, chosen.columns[0]
    by = choose(source, over, most=1).columns[0] if over is not None else k
    column, others = columns_of(ran)[k], columns_of(ran)[by]
    truth = others.array("truth")
    if not np.isfinite(truth).all():
        raise InvalidStudy(f"the truths of {others.name!r} are not known, so they make no bins; see over=.")
    draws = column.draws
    values = column.u if draws is None else column.values
    parts = _equal_parts(truth, bins)
    # By the bins there are, of which ties leave fewer than were asked for.
    each = 1 - (1 - confidence) / len(parts)
    covered = [effects.coverage(values[p], draws=draws, nominal=nominal, confidence=each) for p in parts]
    # The median of the truths, since one wild truth moves the middle between the ends.
    places = [replace(c, of=(float(np.median(truth[p])),)) for p, c in zip(parts, covered, strict=True)]
    mean = effects.coverage(values, draws=draws, nominal=nominal).estimate
    return places, mean, (plain(others.name), chosen.name(k)), chosen.note(k, rest=True)


def _equal_parts(truth: Any, bins: int | None) -> list[Any]:
    """Return the indices of equally many replicates each, in the order of their truths; equal truths together."""
    if bins is not None and (isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 1):
        raise InvalidStudy(f"bins must be a whole number, at least 1, but {bins!r} arrived.")
    many = min(int(bins), truth.size) if bins is not None else min(max(truth.size // _EACH, 1), _CELLS)
    # Many equal truths give equal edges, and those would leave bins empty.
    edges = np.unique(np.quantile(truth, np.linspace(0, 1, many + 1)[1:-1]))
    cell = np.searchsorted(edges, truth, side="left")
    return [part for j in range(edges.size + 1) if (part := np.flatnonzero(cell == j)).size]


def _draw_map_line(ax: Axes, places: list[Interval], mean: float) -> list[tuple[Any, str]]:
    """Draw coverage along one truth, and return what the lines mean."""
    ordered = sorted(places, key=lambda place: place.of)
    x = np.array([place.of[0] for place in ordered])
    estimate, low, high = (np.array([getattr(place, end) for place in ordered]) for end in ("estimate", "low", "high"))
    ax.vlines(x, low, high, color=COLOURS[0], lw=1, label="interval")
    (line,) = ax.plot(x, estimate, "o-", color=COLOURS[0], ms=3.5, label="coverage")
    out = np.array([place.clear for place in ordered])
    (wrong,) = ax.plot(x[out], estimate[out], "D", color=COLOURS[1], ms=4.5, label="excludes the ideal")
    ideal = ax.axhline(ordered[0].ideal, color="0.35", lw=0.8)
    keys = [(line, "coverage"), (ideal, f"nominal, {100 * ordered[0].ideal:.3g} %")]
    if math.isfinite(mean):
        keys.append((ax.axhline(mean, color=COLOURS[0], lw=0.8, ls="--"), f"average, {100 * mean:.3g} %"))
    if out.any():
        keys.append((wrong, "not the nominal"))
    if np.isnan(estimate).all():
        say(ax, "one draw has no central interval")
    known = low[np.isfinite(low)]
    # From 0.75 at most, so that noise of a few per cent does not look like a collapse.
    ax.set(
        ylim=(max(0.0, min(0.75, float(known.min(initial=0.75)) - 0.05)), 1.02), ylabel="share that contain the truth"
    )
    return keys


def _draw_map_points(ax: Axes, places: list[Interval]) -> None:
    from matplotlib.colors import TwoSlopeNorm

    ideal = places[0].ideal
    # At least 2 %: a scale needs some range, and noise should look pale.
    away = max(max(abs(place.estimate - ideal) for place in places), 0.02)
    # Pale at the ideal although there is less room above it: coverage ends at 1.
    norm = TwoSlopeNorm(ideal, ideal - away, min(ideal + away, 1.0) if ideal < 1 else ideal + away)
    made: Any = None
    for mark, which in (("v", -1), ("o", 0), ("^", 1)):
        some = [place for place in places if _side(place) == which]
        if some:
            x, y = np.array([place.of for place in some]).T
            colour = [place.estimate for place in some]
            made = ax.scatter(x, y, c=colour, norm=norm, cmap="PuOr", marker=mark, s=24, ec="black", lw=0.5)
    ax.figure.colorbar(made, ax=ax, label="share that contain the truth")


def _side(place: Interval) -> int:
    return -1 if place.high < place.ideal else int(place.low > place.ideal)
