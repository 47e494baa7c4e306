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
from .lattices import Floats
from .selection import AVERAGED, Chosen, Source, choose
from .style import COLOURS, NULL, PANELS, POINTS, head, journal, legend, only_one, panels, plain, returned, say, thinned
from .titles import entitle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Coordinates of a matrix of panels.
COORDINATES = 6


def data_averaged(
    source: Source, f: str | Iterable[str] | None = None, *, confidence: float = 0.95, ax: Any = None
) -> Any:
    """Draw whether the outputs, averaged over data, return the belief: one draw of each output against mu0.

    Where mu0 has an exact law of f, the draws' positions in it, as the difference between their distribution function
    and the diagonal; otherwise the distribution functions of the draws and of fresh draws of mu0. A procedure may pass
    here and be wrong for every single dataset: weak calibration is an average.

    Parameters
    ----------
    source
        A Result or Replicates.
    f
        Names of test functions, a panel each; left out, functions of theta alone, of more than twelve the worst, by
        their adjusted p-values at the weak level.
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
    'excess share of draws below'
    """
    need_fraction(confidence=confidence)
    chosen = choose(source, f, most=1 if only_one(ax) else PANELS, by=AVERAGED)
    with journal():
        drawn = panels(ax, len(chosen.columns))
        for one, k in zip(drawn, chosen.columns, strict=True):
            _draw_average(one, chosen, k, confidence)
        entitle(drawn, chosen, ax, common=f"grey: {100 * confidence:.4g} % band")
    return returned(drawn)


def _draw_average(ax: Axes, chosen: Chosen, k: int, confidence: float) -> None:
    ran = chosen.replicates
    position, value = ran.weak_u[ran.rows, k], ran.weak_value[ran.rows, k]
    fresh = ran.reference[:, k]
    # Positions of some draws only would be a selection, which has no band; then two samples are compared.
    if np.isfinite(position).all():
        _draw_positions(ax, position, confidence)
    elif np.isfinite(value).any() and np.isfinite(fresh).any():
        _draw_two_samples(ax, value[np.isfinite(value)], fresh[np.isfinite(fresh)], confidence)
    else:
        say(ax, "the belief is not known,\nor gives no draws")


def _draw_positions(ax: Axes, position: Floats, confidence: float) -> None:
    found = lattices.averages(position, confidence=confidence)
    x, low, high, share = (np.r_[0.0, v, 1.0] for v in (found.points, found.low, found.high, found.share))
    ax.fill_between(x, low - x, high - x, color=NULL, alpha=0.35, lw=0, label="band")
    ax.axhline(0, color="0.35", lw=0.8)
    ax.plot(x, share - x, color=COLOURS[0], label="outputs")
    ax.set(xlim=(0, 1), xlabel="position in the belief", ylabel="excess share of draws below")


def _draw_two_samples(ax: Axes, drawn: Floats, fresh: Floats, confidence: float) -> None:
    # Kolmogorov's limit is that of sqrt(n m / (n + m)) times the largest distance between two samples.
    reach = float(special.kolmogi(1 - confidence)) * math.sqrt(1 / drawn.size + 1 / fresh.size)
    x, share = _steps(fresh)
    low, high = np.maximum(share - reach, 0), np.minimum(share + reach, 1)
    ax.fill_between(x, low, high, step="post", color=NULL, alpha=0.35, lw=0, label="band")
    (belief,) = ax.plot(x, share, drawstyle="steps-post", color="0.2", ls="--", label="belief")
    (outputs,) = ax.plot(*_steps(drawn), drawstyle="steps-post", color=COLOURS[0], label="outputs")
    ax.set(ylim=(0, 1), xlabel="value", ylabel="share of draws below")
    legend(ax, ((outputs, "outputs"), (belief, "belief")), loc="lower right", handlelength=1.2)


def _steps(values: Floats) -> tuple[Floats, Floats]:
    """Return an empirical distribution function at no more than a thousand of its jumps, first and last included."""
    ordered = np.sort(values)
    some = np.unique(np.linspace(0, ordered.size - 1, min(ordered.size, POINTS - 1)).astype(np.int64))
    # The foot of the first jump is a point of its own, hence one less of the others.
    return np.r_[ordered[0], ordered[some]], np.r_[0.0, (some + 1) / ordered.size]


def scatter_matrix(source: Source, f: str | Iterable[str] | None = None, *, ax: Any = None) -> Any:
    """Draw truths and one draw of each output, in pairs of coordinates: both clouds should be one.

    Off the diagonal points, on it distribution functions. What a calibrated procedure must return is the law of the
    truths, correlations included; this shows the weak level only.

    Parameters
    ----------
    source
        A Result or Replicates.
    f
        Names of test functions; left out, coordinates of theta, or functions of theta alone if none is one; of more
        than six the worst, by their adjusted p-values at the weak or the strong level.
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
    chosen = choose(source, f, most=COORDINATES, by=(*AVERAGED, level_of("theta")), kind="coordinate")
    d = len(chosen.columns)
    if d > COORDINATES:
        raise InvalidStudy(f"f must name at most {COORDINATES} test functions here, but {d} came.")
    with journal():
        grid = _grid(ax, d)
        draw_pairs(grid, chosen, "truths", chosen.replicates.truth[chosen.replicates.rows])
    return grid


def pairs_with_belief(grid: Any, chosen: Chosen) -> None:
    """Draw what the joint test of the weak level compares: one draw of each output, and fresh draws of the belief."""
    draw_pairs(grid, chosen, "belief", chosen.replicates.reference)


def draw_pairs(grid: Any, chosen: Chosen, against: str, values: Floats) -> None:
    """Draw one draw of each output in pairs of coordinates, and with what they are compared."""
    ran, d = chosen.replicates, len(chosen.columns)
    for i, j in np.ndindex(d, d):
        _draw_pair(grid[i, j], chosen, (i, j), {against: values, "outputs": ran.weak_value[ran.rows]})
    notes = [chosen.note(), f"{POINTS} points" if chosen.n > POINTS else "", chosen.rest]
    head(grid[0, 0], chosen.name(chosen.columns[0]), ", ".join(note for note in notes if note))
    # The corner above the diagonal is empty and has room for it.
    legend(grid[0, -1], _pair_handles(grid[0, 0]), loc="best" if d == 1 else "upper right")


def _grid(ax: Any, d: int) -> Any:
    import matplotlib.pyplot as plt

    if ax is None:
        side = max(1.5 * d, 3.0)
        return plt.subplots(d, d, figsize=(side, side), squeeze=False)[1]
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
    for (name, values), colour, mark in zip(clouds.items(), ("0.25", COLOURS[1]), "ox", strict=True):
        x, y = values[:, chosen.columns[j]], values[:, chosen.columns[i]]
        known = np.isfinite(x) & np.isfinite(y)
        if known.any():
            look = {"color": colour, "label": name}
            _draw_cloud(ax, x[known], y[known], mark, look) if i != j else _draw_steps(ax, x[known], mark, look)
    if i == d - 1:
        ax.set_xlabel(plain(chosen.name(chosen.columns[j]), most=18), parse_math=False)
    if j == 0:
        label = "share below" if i == 0 else plain(chosen.name(chosen.columns[i]), most=18)
        ax.set_ylabel(label, parse_math=False)


def _draw_cloud(ax: Axes, x: Floats, y: Floats, mark: str, look: dict[str, Any]) -> None:
    some = thinned(POINTS, x, y)
    # Hollow circles do not hide the crosses among them.
    hollow: dict[str, Any] = {"mfc": "none"} if mark == "o" else {}
    ax.plot(x[some], y[some], mark, ms=2, mew=0.5, alpha=0.6, **look, **hollow)


def _draw_steps(ax: Axes, x: Floats, mark: str, look: dict[str, Any]) -> None:
    ax.plot(*_steps(x), drawstyle="steps-post", ls="--" if mark == "o" else "-", **look)


def _pair_handles(ax: Axes) -> list[tuple[Any, str]]:
    return [(line, str(line.get_label())) for line in ax.lines]
