"""A picture of what is known of single fits, against the truths they were made for. It flags nothing itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidStudy
from ..judgement.column import columns_of
from ..judgement.fits import Diagnostics, Line, separating
from ..judgement.fits import diagnostics as known_of
from ..judgement.groups import one_of_each
from ..judgement.levels import ADDED
from ..replicates.record import Replicates
from ..values import Floats
from .headers import heads, settle
from .selection import Source, replicates_of
from .style import COLOURS, FARTHEST, POINTS, Size, journal, most_panels, panels, plain, returned, say, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The largest is so many times the smallest, or so large beside zero, where an axis is logarithmic.
_DECADES = 50.0


def diagnostics(
    source: Source,
    names: str | Iterable[str] | None = None,
    *,
    against: str | None = None,
    limits: Mapping[str, Any] | None = None,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw what is known of every fit against the true value of a parameter; flagged fits are diamonds.

    A fit is flagged if anything is wrong with it, whichever panel shows that; the dashed line is the limit of the
    panel's own diagnostic. Flags on one side of the picture say where in the belief fits go wrong. It shows points, not
    a test.

    Parameters
    ----------
    source
        A Result or Replicates.
    names
        Diagnostics, a panel each; left out, all that vary, those that flag most first.
    against
        The test function whose true values are on the x-axis; left out, the one that tells flagged fits from others
        best; the first if none is flagged.
    limits
        As in :func:`ringtrue.diagnostics`.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw: Axes, one for each diagnostic.

    Returns
    -------
    Axes, or an array of them if there are several diagnostics.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> result = check_draws(rng.normal(size=60), rng.normal(size=(60, 2, 50)), chains=2)
    >>> diagnostics(result, "R-hat").get_xlabel()
    'true theta'
    """
    replicates_of(source)  # refuses what has none
    found = known_of(source, limits=limits) if limits or isinstance(source, Replicates) else source.diagnostics
    chosen = _chosen(found, names, most_panels(ax, figsize))
    k = _against(found.replicates, found.flagged, against)
    with journal(ax):
        drawn = panels(ax, len(chosen), figsize=figsize)
        notes = [_draw(one, found, line, k) for one, line in zip(drawn, chosen, strict=True)]
        settle(drawn, ax)
        heads(drawn, [line.name for line in chosen], notes, [_keys(one) for one in drawn])
    return returned(drawn)


def _chosen(found: Diagnostics, names: Any, most: int) -> list[Line]:
    known = {line.name: line for line in found.lines}
    if names is None:
        varying = [line for line in found.lines if line.smallest < line.largest]
        shown = sorted(varying, key=lambda line: -line.flagged if line.limit != "-" else 0)[:most]
    else:
        wanted = [names] if isinstance(names, str) else list(names)
        if missing := [name for name in wanted if name not in known]:
            raise InvalidStudy(f"names must be diagnostics of this run, {list(known)}, but {missing[0]!r} came.")
        shown = [known[name] for name in wanted]
    if not shown:
        raise InvalidStudy("a diagnostic that varies over fits is needed, but this run has none.")
    return shown


def _against(ran: Replicates, flagged: Any, name: str | None) -> int:
    """Return the number of the test function on the x-axis."""
    every = columns_of(ran)
    if name is not None:
        if name not in (known := [column.name for column in every]):
            raise InvalidStudy(
                f"against must name a test function of this run, such as {known[:10]}, but {name!r} came."
            )
        return known.index(name)
    alone = one_of_each(ran)
    found = separating(alone, flagged if alone is ran else known_of(alone).flagged)
    own = [column.k for column in columns_of(ran, "theta") if column.kind not in ADDED]
    return found.column if found else own[0] if own else 0


def _draw(ax: Axes, found: Diagnostics, line: Line, k: int) -> str:
    """Draw one panel, and return what is to be said of it."""
    ran, values = found.replicates, found.columns[line.name]
    there = ran.kept & ~np.isnan(values) & np.isfinite(ran.truth[:, k])
    x, flagged = np.clip(ran.truth[there, k], -FARTHEST, FARTHEST), found.flagged[there]
    y = np.where(np.isinf(values[there]), values[there], np.clip(values[there], -FARTHEST, FARTHEST))
    ax.set_xlabel(f"true {plain(ran.functions[k].name)}", parse_math=False)
    ax.set_ylabel(plain(line.name), parse_math=False)
    endless = int(np.isinf(y).sum())
    beyond = "" if line.limit == "-" else f", {line.flagged} beyond the limit"
    note = f"n = {there.sum()}{beyond}{f', {endless} infinite, on top' if endless else ''}"
    if not there.any():
        say(ax, "not known of any fit")
        return note
    limits = _limits(ran, line)
    some, top = thinned(POINTS, x, np.nan_to_num(y)), _top(y, limits)
    for which, colour, mark, label in ((~flagged, COLOURS[0], "o", "in order"), (flagged, COLOURS[1], "D", "flagged")):
        shown = some[which[some]]
        ax.plot(x[shown], np.minimum(y[shown], top), mark, color=colour, ms=3, mec="none", alpha=0.8, label=label)
    for limit in limits:
        ax.axhline(limit, color="0.35", lw=0.8, ls="--", zorder=1, label="limit")
    _scale(ax, x, y)
    return note


def _limits(ran: Replicates, line: Line) -> list[float]:
    """Return the limits that can be drawn: one per chain only if all fits have equally many."""
    finite = [limit for limit in (line.low, line.high) if math.isfinite(limit)]
    if not line.per_chain:
        return finite
    many = np.unique(np.maximum(ran.arrays["chain_count"][ran.kept], 2))
    return [float(limit * many[0]) for limit in finite] if many.size == 1 else []


def _top(y: Floats, limits: list[float]) -> float:
    """Return where infinite values are drawn: above all else."""
    finite = [*y[np.isfinite(y)].tolist(), *limits]
    return max(finite) + 0.1 * max(max(finite) - min(finite), 1e-9) if finite else 1.0


def _scale(ax: Axes, x: Floats, y: Floats) -> None:
    """Make axes logarithmic where numbers span decades, with zero at the bottom if it is among them."""
    scales = ((x, ax.set_xscale, ax.set_xlim), (y[np.isfinite(y)], ax.set_yscale, ax.set_ylim))
    for values, scale, ends in scales:
        if (
            not values.size
            or values.min() < 0
            or not values.max() > _DECADES * max(float(np.quantile(values, 0.1)), 0.02)
        ):
            continue
        if values.min() > 0:
            scale("log")
        elif values.max() > _DECADES:
            scale("symlog", linthresh=1.0)
            ends(-0.3, 1.5 * float(values.max()))


def _keys(ax: Axes) -> list[tuple[Any, str]]:
    lines = {str(line.get_label()): line for line in ax.lines if line.get_label() in ("in order", "flagged", "limit")}
    return [(line, label) for label, line in lines.items() if len(line.get_xdata())]  # type: ignore[arg-type]
