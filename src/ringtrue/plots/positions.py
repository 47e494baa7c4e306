"""Pictures of where truths fall in the outputs: histogram, ECDF, its difference, coverage.

One Axes makes one statement: if the outputs are calibrated, everything drawn in it stays in its grey band with the
stated chance. What is computed is decided in lattices; this module draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..judgement.column import Column
from . import lattices
from .headers import even, head, settle
from .lattices import Curve, Floats
from .selection import Chosen, Source, choose
from .style import COLOURS, NULL, STYLES, Size, journal, most_panels, panels, returned, say
from .titles import entitle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Curves that have a colour and a name each; of more, only those that leave the band do.
CURVES = 4
_ALL = 10**9
#: A histogram whose bars are all so high, as a share of the highest, does not start at 0.
_CUT = 0.8


def pit_histogram(
    source: Source,
    f: str | Iterable[str] | None = None,
    *,
    bins: int | None = None,
    confidence: float = 0.95,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw how often the truth falls in each part of the output; flat is calibrated.

    A U shape is over-confidence, a hump under-confidence, a slope bias. Bars that leave the band are hatched. What
    averages out inside a bar is not seen; the ECDF sees more.

    Parameters
    ----------
    source
        A Result or Replicates.
    f
        Names of test functions, a panel each; left out, those of the level that rejects (strong if none does), of more
        than twelve the worst, by their adjusted p-values.
    bins
        Bars; left out, a number that suits n, and that puts equally many ranks in every bar where one is found.
        If M + 1 is not a multiple, the randomised positions of the ranks are counted.
    confidence
        Chance that all bars of a panel stay in the band if the outputs are calibrated, by Bonferroni's inequality.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw: Axes, one for each test function.

    Returns
    -------
    Axes, or an array of them if there are several test functions.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> ax = pit_histogram(check_draws(rng.normal(size=200), rng.normal(size=(200, 19))), "theta")
    >>> int(sum(bar.get_height() for bars in ax.containers for bar in bars))
    200
    """
    chosen = choose(source, f, most=most_panels(ax, figsize))
    # Before anything is drawn, so that a refusal leaves no empty figure behind.
    found = [lattices.histogram(chosen.column(k), bins=bins, confidence=confidence) for k in chosen.columns]
    with journal(ax):
        drawn = panels(ax, len(chosen.columns), figsize=figsize)
        for one, bars in zip(drawn, found, strict=True):
            _draw_histogram(one, bars)
        if ax is None and len({bars.counts.size for bars in found}) == 1:
            even(drawn)
        cut = ["axis cut" if one.get_ylim()[0] > 0 else "" for one in drawn]
        entitle(
            drawn,
            chosen,
            ax,
            common=f"grey: {_percent(confidence)} band, all bars of a panel; hatched: outside",
            own=cut,
        )
    return returned(drawn)


def _draw_histogram(ax: Axes, found: lattices.Histogram) -> None:
    ax.axhspan(found.low, found.high, color=NULL, alpha=0.35, lw=0, label="band", zorder=0)
    for height, style in ((found.low, ":"), (found.counts.sum() / found.counts.size, "--"), (found.high, ":")):
        ax.axhline(height, color="0.15", lw=0.7, ls=style, zorder=3)
    for inside in (True, False):
        which = found.outside != inside
        look: dict[str, Any] = (
            {"fc": COLOURS[5], "ec": "white"} if inside else {"fc": COLOURS[1], "ec": "black", "hatch": "////"}
        )
        edges = found.edges[:-1][which]
        width = found.edges[1] - found.edges[0]
        ax.bar(edges, found.counts[which], width, align="edge", lw=0.3, zorder=2, label="count", **look)
    ax.set(xlim=(0, 1), ylim=_heights(found), xlabel="position of the truth in the output", ylabel="count")


def _heights(found: lattices.Histogram) -> tuple[float, float]:
    """Return the limits of the axis of counts; of many, whose band is a thin strip far from 0, around the strip."""
    low, high = min(found.low, int(found.counts.min())), max(found.high, int(found.counts.max()), 1)
    bottom = low - (high - low) / 2 if high > low > _CUT * high else 0.0
    return bottom, high + 0.08 * (high - bottom)


def ecdf(
    source: Source,
    f: str | Iterable[str] | None = None,
    *,
    confidence: float = 0.95,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw the distribution function of the positions of the truth; the diagonal is calibrated.

    Parameters
    ----------
    source
        A Result or Replicates.
    f
        Names of test functions, a curve each; left out, all of the level that rejects, or strong ones. Of more than
        four, those that leave the band have a colour and a name, at most four; the others are thin and grey.
    confidence
        Chance that all curves stay in the band if the outputs are calibrated: exact for one curve on the lattice of
        ranks, or of 250 equal cells if there are more ranks or none; by Bonferroni's inequality for several.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw.

    Notes
    -----
    A curve leaves the band of a panel of its own if and only if ``uniformity.ecdf_gamma`` rejects on the same
    lattice. Curves are drawn at the points of the lattice; between them they may be off by one cell.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> ax = ecdf(check_draws(rng.normal(size=200), rng.normal(size=(200, 19))))
    >>> len(ax.lines[-1].get_xdata())
    21
    """
    return _curves(_POSITIONS, source, f, confidence, figsize, ax)


def ecdf_difference(
    source: Source,
    f: str | Iterable[str] | None = None,
    *,
    confidence: float = 0.95,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw the distribution function of the positions of the truth minus the diagonal; zero is calibrated.

    Above zero at p: too many truths in the lowest part p of their outputs. An S that rises first is over-confidence,
    one that falls first under-confidence; a hump is outputs that lie too high, a trough outputs that lie too low.

    Parameters
    ----------
    source, f, confidence, figsize, ax
        As in :func:`ecdf`.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> ax = ecdf_difference(check_draws(rng.normal(size=200), rng.normal(size=(200, 19))))
    >>> ax.get_ylabel()
    'excess share of truths below'
    """
    return _curves(replace(_POSITIONS, difference=1.0), source, f, confidence, figsize, ax)


def coverage_curve(
    source: Source,
    f: str | Iterable[str] | None = None,
    *,
    confidence: float = 0.95,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw how often central intervals contain the truth against how often they should; the diagonal is calibrated.

    Below the diagonal is over-confidence, or bias. Bias and under-confidence may cancel; the ECDF tells them apart.

    Parameters
    ----------
    source, f, figsize, ax
        As in :func:`ecdf`.
    confidence
        Chance that all curves stay in the band if the outputs are calibrated, as in :func:`ecdf`; of the nominal levels
        that M draws allow, at least that chance if M is even.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> ax = coverage_curve(check_draws(rng.normal(size=200), rng.normal(size=(200, 19))))
    >>> [round(float(x), 2) for x in ax.lines[-1].get_xdata()[:3]]
    [0.0, 0.1, 0.2]
    """
    return _curves(_INTERVALS, source, f, confidence, figsize, ax)


def coverage_difference(
    source: Source,
    f: str | Iterable[str] | None = None,
    *,
    confidence: float = 0.95,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw how much more often central intervals contain the truth than they should; zero is calibrated.

    The coverage curve less its diagonal, for many replicates, whose band is too thin to see there.

    Parameters
    ----------
    source, f, confidence, figsize, ax
        As in :func:`coverage_curve`.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> ax = coverage_difference(check_draws(rng.normal(size=200), rng.normal(size=(200, 19))))
    >>> ax.get_ylabel()
    'coverage minus nominal level'
    """
    return _curves(replace(_INTERVALS, difference=1.0), source, f, confidence, figsize, ax)


@dataclass(frozen=True)
class _Kind:
    """A picture of curves: what each test function's is, what the axes say, and how many diagonals are taken off."""

    curve: Callable[[Column, float], Curve]
    title: str
    xlabel: str
    ylabel: str
    excess: str
    difference: float = 0.0


_POSITIONS = _Kind(
    lambda column, confidence: lattices.curve(lattices.positions(column), confidence=confidence),
    "positions of truths in outputs",
    "position in the output",
    "share of truths below",
    "excess share of truths below",
)
_INTERVALS = _Kind(
    lambda column, confidence: lattices.central(column, confidence=confidence),
    "coverage of central intervals",
    "nominal level of central intervals",
    "share that contain the truth",
    "coverage minus nominal level",
)


def _curves(kind: _Kind, source: Any, f: Any, confidence: float, figsize: Size, ax: Any) -> Any:
    chosen = choose(source, f, most=_ALL)
    # One picture makes one statement: its curves share the error by Bonferroni's rule.
    each = 1 - (1 - confidence) / len(chosen.columns)
    found = [kind.curve(chosen.column(k), each) for k in chosen.columns]
    with journal(ax):
        (one,) = panels(ax, 1, figsize=figsize)
        keys = draw_curves(one, found, chosen, difference=kind.difference)
        one.set(xlabel=kind.xlabel, ylabel=kind.excess if kind.difference else kind.ylabel)
        settle([one], ax)
        title = chosen.name(chosen.columns[0]) if len(found) == 1 else kind.title
        head(one, title, f"{chosen.common_note}; {_said(found, confidence)}", keys)
        if not any(part.points.size for part in found):
            say(one, "one draw has no central interval")
    return one


def _said(found: list[Curve], confidence: float) -> str:
    """Say what is grey, and of several curves how many leave it."""
    band = f"grey: {_percent(confidence)} band"
    if len(found) == 1:
        return band
    many = sum(bool(part.outside.any()) for part in found)
    out = f"{many} of {len(found)} outside" if many else "none outside"
    return f"{band}, all curves; {out}"


def draw_curves(ax: Axes, found: list[Curve], chosen: Chosen, *, difference: float) -> list[tuple[Any, str]]:
    """Draw curves over their bands, minus so many times the diagonal, and return those that have a name."""
    ax.plot([0, 1], [0, 1 - difference], color="0.35", lw=0.8, zorder=1)
    draw_bands(ax, found, difference)
    named = _named(found)
    others = [part for j, part in enumerate(found) if j not in named]
    keys = [
        (_draw_curve(ax, found[j], look, difference), chosen.name(chosen.columns[j])) for look, j in enumerate(named)
    ]
    if others:
        keys.append((_draw_others(ax, others, difference), f"{len(others)} others"))
    ax.set_xlim(0, 1)
    # A difference has no limits of its own and is scaled to what is drawn.
    if not difference:
        ax.set_ylim(0, 1)
    # A single curve has its name in the title, and grey curves alone have no names.
    return keys if named and len(found) > 1 else []


def _named(found: list[Curve]) -> list[int]:
    """Return which curves get a colour and a name: all of a few, else those farthest outside, if any is."""
    if len(found) <= CURVES:
        return list(range(len(found)))
    outside = [j for j, part in enumerate(found) if part.outside.any()]
    return sorted(sorted(outside, key=lambda j: found[j].excess, reverse=True)[:CURVES])


def _draw_others(ax: Axes, others: list[Curve], difference: float) -> Any:
    from matplotlib.collections import LineCollection

    lines = [np.column_stack([x, _with_ends(part.share) - difference * x]) for part, x in _points(others)]
    # One collection, since hundreds of single lines are slow to draw.
    made = LineCollection(lines, colors="0.4", linewidths=0.5, alpha=0.7, zorder=1.5, label="others")
    ax.add_collection(made)
    # A collection that is added by hand does not move the limits.
    ax.autoscale_view()
    return made


def _points(parts: list[Curve]) -> list[tuple[Curve, Floats]]:
    return [(part, _with_ends(part.points)) for part in parts]


def draw_bands(ax: Axes, found: list[Curve], difference: float) -> None:
    """Draw every different band once."""
    # With the same n and level a band depends on the lattice alone, which its number of points tells.
    for part in {part.points.size: part for part in found}.values():
        x, low, high = (_with_ends(values) for values in (part.points, part.low, part.high))
        made = ax.fill_between(x, low - difference * x, high - difference * x, color=NULL, alpha=0.35, lw=0, zorder=0)
        made.set_label("band")


def _draw_curve(ax: Axes, part: Curve, j: int, difference: float) -> Any:
    x, y = _with_ends(part.points), _with_ends(part.share)
    # On a coarse lattice points are marked, because between them nothing is known.
    marker = "." if x.size <= 32 else ""
    colour, style = COLOURS[j % len(COLOURS)], STYLES[j % len(STYLES)]
    (line,) = ax.plot(x, y - difference * x, color=colour, ls=style, marker=marker, zorder=2 + j)
    return line


def _with_ends(inner: Floats) -> Floats:
    """Return values with the 0 and 1 that every distribution function has at 0 and 1."""
    return np.concatenate([[0.0], inner, [1.0]])


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.4g} %"
