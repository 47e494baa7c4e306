"""Pictures of the outputs averaged over data: do they return the belief?

At most a thousand points are drawn, the extremes among them; the numbers beside them come from all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from ..errors import InvalidStudy
from ..judgement.levels import level_of
from ..statistics.arguments import need_fraction
from . import lattices
from .clouds import Cloud, contoured
from .headers import broken, cut, head, settle
from .lattices import Floats
from .selection import AVERAGED, Chosen, Source, choose
from .style import (
    COLOURS,
    FARTHEST,
    LEAST,
    NULL,
    POINTS,
    Size,
    inches,
    journal,
    most_panels,
    need_no_size,
    panels,
    returned,
    say,
    size_asked_for,
    thinned,
)
from .titles import entitle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Coordinates of a matrix of panels.
COORDINATES = 6


def data_averaged(
    source: Source,
    f: str | Iterable[str] | None = None,
    *,
    confidence: float = 0.95,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw whether the outputs, averaged over data, return the belief: one draw of each output against mu0.

    Where mu0 has an exact law of f, the draws' positions in it, as the difference between their distribution function
    and the diagonal; otherwise the distribution functions of the draws and of fresh draws of mu0. Without a belief that
    of the truths, which are draws of it, stands in; there is no band then, since each truth belongs to an output. A
    procedure may pass here and be wrong for every single dataset: weak calibration is an average.

    Parameters
    ----------
    source
        A Result or Replicates.
    f
        Names of test functions, a panel each; left out, functions of theta alone, of more than twelve the worst, by
        their adjusted p-values at the weak level.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw: Axes, one for each test function.
    confidence
        Chance that a curve stays in its band if the outputs average to mu0. Exact where mu0 is; otherwise the band is
        Kolmogorov's for two large samples.

    Returns
    -------
    Axes, or an array of them if there are several test functions.

    Examples
    --------
    >>> from ringtrue import Normal, check_draws
    >>> rng = np.random.default_rng(1)
    >>> result = check_draws(rng.normal(size=50), rng.normal(size=(50, 19)), belief=Normal(0, 1))
    >>> data_averaged(result, "theta").get_ylabel()
    'excess share below'
    """
    need_fraction(confidence=confidence)
    chosen = choose(source, f, most=most_panels(ax, figsize), by=AVERAGED)
    with journal(ax):
        drawn = panels(ax, len(chosen.columns), figsize=figsize)
        keys = [_draw_average(one, chosen, k, confidence) for one, k in zip(drawn, chosen.columns, strict=True)]
        banded = any(one.collections for one in drawn)
        grey = f"grey: {100 * confidence:.4g} % band" if banded else "the belief is not known, so there is no band"
        entitle(drawn, chosen, ax, common=grey, keys=keys)
    return returned(drawn)


def _draw_average(ax: Axes, chosen: Chosen, k: int, confidence: float) -> list[tuple[Any, str]]:
    """Draw one panel, and return what its lines mean."""
    ran = chosen.replicates
    position, value = ran.weak_u[ran.rows, k], ran.weak_value[ran.rows, k]
    fresh = ran.reference[:, k]
    # Positions of some draws only would be a selection, which has no band; then two samples are compared.
    if np.isfinite(position).all():
        return _draw_positions(ax, position, confidence)
    there, truth = np.isfinite(value), ran.truth[ran.rows, k]
    if there.any() and np.isfinite(fresh).any():
        return _draw_two_samples(ax, value[there], fresh[np.isfinite(fresh)], "belief", confidence)
    if there.any() and np.isfinite(truth).any():
        return _draw_two_samples(ax, value[there], truth[np.isfinite(truth)], "truths", None)
    say(ax, "neither the belief nor\ndraws of outputs are known")
    ax.set(xlabel="value", ylabel="share below")
    return []


def _draw_positions(ax: Axes, position: Floats, confidence: float) -> list[tuple[Any, str]]:
    found = lattices.averages(position, confidence=confidence)
    x, low, high, share = (np.r_[0.0, v, 1.0] for v in (found.points, found.low, found.high, found.share))
    ax.fill_between(x, low - x, high - x, color=NULL, alpha=0.35, lw=0, label="band")
    ax.axhline(0, color="0.35", lw=0.8)
    ax.plot(x, share - x, color=COLOURS[0], label="outputs")
    ax.set(xlim=(0, 1), xlabel="position in the belief", ylabel="excess share below")
    return []


def _draw_two_samples(
    ax: Axes, drawn: Floats, fresh: Floats, against: str, confidence: float | None
) -> list[tuple[Any, str]]:
    x, share = _steps(fresh)
    if confidence is not None:
        # Kolmogorov's limit is that of sqrt(n m / (n + m)) times the largest distance between two samples.
        reach = float(special.kolmogi(1 - confidence)) * math.sqrt(1 / drawn.size + 1 / fresh.size)
        low, high = np.maximum(share - reach, 0), np.minimum(share + reach, 1)
        ax.fill_between(x, low, high, step="post", color=NULL, alpha=0.35, lw=0, label="band")
    (other,) = ax.plot(x, share, drawstyle="steps-post", color="0.2", ls="--", label=against)
    (outputs,) = ax.plot(*_steps(drawn), drawstyle="steps-post", color=COLOURS[0], label="outputs")
    ax.set(ylim=(0, 1), xlabel="value", ylabel="share below")
    return [(outputs, "outputs"), (other, against)]


def _steps(values: Floats) -> tuple[Floats, Floats]:
    """Return an empirical distribution function at no more than a thousand of its jumps, first and last included."""
    ordered = np.clip(np.sort(values), -FARTHEST, FARTHEST)
    some = np.unique(np.linspace(0, ordered.size - 1, min(ordered.size, POINTS - 1)).astype(np.int64))
    # The foot of the first jump is a point of its own, hence one less of the others.
    return np.r_[ordered[0], ordered[some]], np.r_[0.0, (some + 1) / ordered.size]


def scatter_matrix(
    source: Source, f: str | Iterable[str] | None = None, *, figsize: Size = None, ax: Any = None
) -> Any:
    """Draw truths and one draw of each output, in pairs of coordinates: both clouds should be one.

    On the diagonal distribution functions, off it contours that hold 50, 80 and 95 % of each cloud, shaded for truths,
    with the points outside; of fewer than a hundred, all points. What a calibrated procedure must return is the law of
    the truths, correlations included; this shows the weak level only.

    Parameters
    ----------
    source
        A Result or Replicates.
    f
        Names of test functions; left out, coordinates of theta, or functions of theta alone if none is one; of more
        than six the worst, by their adjusted p-values at the weak or the strong level.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw: an array of d x d Axes.

    Returns
    -------
    Array of d x d Axes; those above the diagonal are switched off.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> scatter_matrix(check_draws(rng.normal(size=(50, 2)), rng.normal(size=(50, 19, 2)))).shape
    (2, 2)
    """
    most = COORDINATES if ax is not None else _square_that_fits(figsize)
    chosen = choose(source, f, most=most, by=(*AVERAGED, level_of("theta")), kind="coordinate")
    d = len(chosen.columns)
    if d > COORDINATES:
        raise InvalidStudy(f"f must name at most {COORDINATES} test functions here, but {d} came.")
    with journal(ax):
        grid = _grid(ax, d, figsize)
        draw_pairs(grid, chosen, "truths", chosen.replicates.truth[chosen.replicates.rows], ax)
    return grid


def _square_that_fits(figsize: Size) -> int:
    """Return how many coordinates have room in each direction, two at least."""
    side = min(size_asked_for(figsize))
    return COORDINATES if math.isinf(side) else min(max(int(side / LEAST), 2), COORDINATES)


def pairs_with_belief(grid: Any, chosen: Chosen) -> None:
    """Draw what the joint test of the weak level compares: one draw of each output, and fresh draws of the belief."""
    draw_pairs(grid, chosen, "belief", chosen.replicates.reference, grid)


def draw_pairs(grid: Any, chosen: Chosen, against: str, values: Floats, ax: Any) -> None:
    """Draw one draw of each output in pairs of coordinates, and with what they are compared."""
    ran, d = chosen.replicates, len(chosen.columns)
    for i, j in np.ndindex(d, d):
        _draw_pair(grid[i, j], chosen, (i, j), {against: values, "outputs": ran.weak_value[ran.rows]})
    settle([grid[i, j] for i, j in np.ndindex(d, d) if i >= j], ax)
    smooth = any(one.collections for one in grid.ravel())
    contours = f"contours hold 50, 80 and 95 %, those of {against} shaded" if smooth else ""
    note = "; ".join(part for part in (chosen.note(), contours, chosen.rest) if part)
    keys = [(line, str(line.get_label())) for line in grid[0, 0].lines]
    head(grid[0, 0], chosen.name(chosen.columns[0]), note if d == 1 else "", keys)
    if d > 1:
        _write(grid[0, -1], note)


def _write(ax: Axes, note: str) -> None:
    """Write the small print into the corner above the diagonal, which is empty."""
    small = ax.text(0, 1, "", transform=ax.transAxes, va="top", fontsize="small", color="0.35", parse_math=False)
    room = 0.95 * 72 * ax.get_window_extent().width / ax.get_figure(root=True).dpi  # type: ignore[union-attr]
    small.set_text("\n".join(broken(note, room, small.get_fontproperties())))


def _grid(ax: Any, d: int, figsize: Size) -> Any:
    import matplotlib.pyplot as plt

    if ax is None:
        side = max(1.5 * d, 3.4)
        return plt.subplots(d, d, figsize=inches(figsize, side, side), squeeze=False)[1]
    need_no_size(figsize, "ax")
    return returned_grid(panels(ax, d * d), d)


def returned_grid(flat: list[Axes], d: int) -> Any:
    """Return a list of Axes as a square array."""
    array = np.empty(d * d, object)
    # Filled after it is made, so that NumPy does not look for a sequence inside an Axes.
    array[:] = flat
    return array.reshape(d, d)


def _draw_pair(ax: Axes, chosen: Chosen, place: tuple[int, int], clouds: dict[str, Floats]) -> None:
    i, j = place
    # Above the diagonal every pair would be drawn once more.
    if j > i:
        ax.axis("off")
        return
    d = len(chosen.columns)
    known = {name: _finite(values, chosen.columns[j], chosen.columns[i]) for name, values in clouds.items()}
    if i == j:
        for (name, (x, _)), (colour, style) in zip(known.items(), (("0.25", "--"), (COLOURS[1], "-")), strict=True):
            if x.size:
                ax.plot(*_steps(x), drawstyle="steps-post", color=colour, ls=style, label=name)
    else:
        _draw_clouds(ax, known)
    if i == d - 1:
        _name(ax.xaxis, chosen.name(chosen.columns[j]), ax.bbox.width)
    if j == 0:
        _name(ax.yaxis, "share below" if i == 0 else chosen.name(chosen.columns[i]), ax.bbox.height)


def _name(axis: Any, name: str, pixels: float) -> None:
    """Write as much of a name beside an axis as there is room for."""
    room = 0.8 * 72 * pixels / axis.get_figure(root=True).dpi
    axis.set_label_text(cut(name, room, axis.label.get_fontproperties()), parse_math=False)


def _finite(values: Floats, j: int, i: int) -> tuple[Floats, Floats]:
    x, y = values[:, j], values[:, i]
    known = np.isfinite(x) & np.isfinite(y)
    return x[known], y[known]


def _draw_clouds(ax: Axes, clouds: dict[str, tuple[Floats, Floats]]) -> None:
    """Draw the first cloud as shades and the second as lines, each with the points that its contours leave out."""
    drawn = {name: contoured(x, y) for name, (x, y) in clouds.items()}
    smooth = all(cloud is not None for cloud in drawn.values())
    for (name, (x, y)), colour, mark in zip(clouds.items(), ("0.25", COLOURS[1]), "ox", strict=True):
        cloud = drawn[name] if smooth else None
        some = thinned(POINTS, x, y) if cloud is None and x.size else np.arange(x.size)
        if cloud is not None:
            _draw_contours(ax, cloud, colour, shaded=mark == "o")
            some = np.flatnonzero(cloud.outside)
        # Hollow circles do not hide the crosses among them.
        hollow: dict[str, Any] = {"mfc": "none"} if mark == "o" else {}
        ax.plot(x[some], y[some], mark, ms=2.5, mew=0.5, alpha=0.7, color=colour, label=name, **hollow)
    # Contours would end the axes at the outermost points, and cut these in half.
    ax.use_sticky_edges = False
    ax.autoscale_view()


def _draw_contours(ax: Axes, cloud: Cloud, colour: str, *, shaded: bool) -> None:
    if shaded:
        ax.contourf(cloud.x, cloud.y, cloud.density, [*cloud.levels, np.inf], colors=["0.88", "0.76", "0.62"], zorder=0)
    else:
        ax.contour(cloud.x, cloud.y, cloud.density, cloud.levels, colors=colour, linewidths=0.9, zorder=1)
