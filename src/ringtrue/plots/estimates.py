"""Pictures of what single outputs estimate: their means and sds against the truths.

At most a thousand points are drawn, the extremes among them; the numbers beside them come from all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..replicates.record import Replicates
from .headers import even
from .lattices import Floats
from .selection import Chosen, Source, choose
from .style import COLOURS, NULL, POINTS, Size, journal, most_panels, panels, returned, say, thinned
from .titles import entitle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Scores beyond this, and contractions below that, are drawn at the edge.
_FAR, _WIDE = 8.0, -1.0
#: Bars of a recovery plot: more hide each other.
_BARS = 200
#: 95 % of a normal output lie within so many sds of its mean.
_NORMAL = 1.96


def z_contraction(source: Source, f: str | Iterable[str] | None = None, *, figsize: Size = None, ax: Any = None) -> Any:
    """Draw the z-score of every truth against how much its output learned.

    The z-score is (truth - mean) / sd; the contraction is 1 - sd^2 / var, var being that of the truths. Calibrated
    normal outputs have 95 % of their points between the lines, at every contraction. Near 1: the data told much; at 0:
    nothing, however well calibrated; below 0: the output is wider than the belief. It shows points, not a test.

    Parameters
    ----------
    source
        A Result or Replicates.
    f
        Names of test functions, a panel each; left out, those of the level that rejects (strong if none does), of more
        than twelve the worst, by their adjusted p-values.
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
    >>> z_contraction(check_draws(rng.normal(size=50), rng.normal(size=(50, 19))), "theta").get_ylabel()
    'z-score, (truth - mean) / sd'
    """
    chosen = choose(source, f, most=most_panels(ax, figsize))
    with journal(ax):
        drawn = panels(ax, len(chosen.columns), figsize=figsize)
        own = [_draw_contraction(one, chosen, k) for one, k in zip(drawn, chosen.columns, strict=True)]
        if ax is None:
            even(drawn)
        entitle(drawn, chosen, ax, common=f"{_some(chosen, POINTS)}grey: 95 % of points, if normal", own=own)
    return returned(drawn)


def scores(replicates: Replicates, k: int) -> tuple[Floats, Floats]:
    """Return contraction and z-score of the replicates that have both."""
    truth, mean, sd = (values[replicates.rows, k] for values in (replicates.truth, replicates.mean, replicates.sd))
    # An sd of 0 or an overflow gives no finite number; such points are left out below and counted as missing.
    with np.errstate(all="ignore"):
        variance = float(truth.var(ddof=1)) if truth.size > 1 else math.nan
        contraction, z = 1 - np.square(sd) / variance, (truth - mean) / sd
    known = np.isfinite(contraction) & np.isfinite(z)
    return contraction[known], z[known]


def _draw_contraction(ax: Axes, chosen: Chosen, k: int) -> str:
    """Draw one panel, and return what is to be said of it."""
    contraction, z = scores(chosen.replicates, k)
    ax.set(xlabel="contraction, 1 - sd²/var", ylabel="z-score, (truth - mean) / sd")
    if not z.size:
        say(ax, "no mean and sd are known" if chosen.n > 1 else "one replicate has no variance")
        return ""
    ax.axhspan(-1.96, 1.96, color=NULL, alpha=0.25, lw=0, zorder=0)
    ax.axhline(0, color="0.35", lw=0.8, zorder=1)
    ax.axvline(0, color="0.35", lw=0.8, ls=":", zorder=1)
    far = (np.abs(z) > _FAR) | (contraction < _WIDE)
    _scatter_contraction(ax, contraction, z, far)
    return _said(_missing(chosen.n - z.size), _beyond(int(far.sum())))


def _scatter_contraction(ax: Axes, contraction: Floats, z: Floats, far: Any) -> None:
    some = thinned(POINTS, contraction, z)
    x, y, edge = np.maximum(contraction[some], _WIDE), np.clip(z[some], -_FAR, _FAR), far[some]
    ax.plot(x[~edge], y[~edge], ".", color=COLOURS[0], alpha=0.5, ms=3, mec="none", label="replicates")
    if edge.any():
        # At the edge the frame would cut the crosses in half.
        ax.plot(x[edge], y[edge], "x", color=COLOURS[1], ms=4, label="beyond", clip_on=False)
    # At least 4 sds either way, so that the strip is as wide in all calibrated panels.
    reach = min(max(4.0, 1.1 * float(np.abs(z).max())), _FAR)
    ax.set(xlim=(min(-0.05, float(x.min()) - 0.05), 1.02), ylim=(-reach, reach))


def _said(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _some(chosen: Chosen, most: int) -> str:
    return f"{most} drawn; " if chosen.n > most else ""


def _missing(many: int) -> str:
    return f"{many} without sd" if many else ""


def _beyond(many: int) -> str:
    return f"{many} beyond (crosses)" if many else ""


def recovery(source: Source, f: str | Iterable[str] | None = None, *, figsize: Size = None, ax: Any = None) -> Any:
    """Draw the mean of every output against the truth, with a bar of 1.96 sd to either side.

    Bars that miss the diagonal are orange with a diamond: 5 % of calibrated normal outputs do. Where no truth and no
    mean is below 0, no bar is. A cloud flatter than the
    diagonal is no error: Bayes' rule itself leans towards the belief where the data say little. It shows points, not a
    test, and cannot tell a bias at some truths from that lean; the ECDF can.

    Parameters
    ----------
    source
        A Result or Replicates.
    f
        Names of test functions, a panel each; left out, those of the level that rejects (strong if none does), of more
        than twelve the worst, by their adjusted p-values.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw: Axes, one for each test function.

    Returns
    -------
    Axes, or an array of them if there are several test functions.

    Notes
    -----
    At most 200 outputs are drawn. The correlation r of means and truths, and the share of bars that contain the truth,
    are those of all.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> recovery(check_draws(rng.normal(size=50), rng.normal(size=(50, 19))), "theta").get_xlabel()
    'truth'
    """
    chosen = choose(source, f, most=most_panels(ax, figsize))
    with journal(ax):
        drawn = panels(ax, len(chosen.columns), figsize=figsize, height=3.2)
        own = [_draw_recovery(one, chosen, k) for one, k in zip(drawn, chosen.columns, strict=True)]
        entitle(drawn, chosen, ax, common=f"{_some(chosen, _BARS)}orange: bars that miss the diagonal", own=own)
    return returned(drawn)


def _draw_recovery(ax: Axes, chosen: Chosen, k: int) -> str:
    """Draw one panel, and return what is to be said of it."""
    ran = chosen.replicates
    every = [values[ran.rows, k] for values in (ran.truth, ran.mean, ran.sd)]
    known = np.isfinite(every).all(axis=0)
    truth, mean, sd = (values[known] for values in every)
    ax.set(xlabel="truth", ylabel=f"mean of the output, ± {_NORMAL} sd")
    # With equal limits and a square box the diagonal has 45 degrees, and a lean can be seen.
    ax.set_box_aspect(1)
    # What stands above begins at the left, and knows the width before the box is square.
    ax.set_anchor("W")
    if not truth.size:
        say(ax, "no mean and sd are known")
        return ""
    low, high = _square(truth, mean, sd)
    missed, far = np.abs(mean - truth) > _NORMAL * sd, (mean < low) | (mean > high)
    some = thinned(_BARS, truth, mean)
    _draw_bars(ax, truth[some], np.clip(mean[some], low, high), sd[some], missed[some], _floor(truth, mean))
    # Diamonds at the edge would read as means that lie there.
    if (edge := some[far[some]]).size:
        at = np.clip(mean[edge], low, high)
        ax.plot(truth[edge], at, "x", color="black", ms=4, clip_on=False, label="beyond", zorder=4)
    ax.plot([low, high], [low, high], color="0.35", lw=0.8, zorder=1, label="diagonal")
    ax.set(xlim=(low, high), ylim=(low, high))
    reached = f"{100 * (1 - missed.mean()):.3g} % reach"
    return _said(_correlated(truth, mean), reached, _missing(chosen.n - truth.size), _beyond(int(far.sum())))


def _square(truth: Floats, mean: Floats, sd: Floats) -> tuple[float, float]:
    """Return limits for both axes: all truths, and means with their bars unless they are wild."""
    low, high = float(truth.min()), float(truth.max())
    # Equal truths have no range of their own.
    reach = (high - low) / 2 or 1.0
    # The median, since one huge sd would shrink all else to a dot.
    bar = _NORMAL * float(np.median(sd))
    lowest, highest = float(mean.min()) - bar, float(mean.max()) + bar
    low, high = max(low - reach, min(low, lowest)), min(high + reach, max(high, highest))
    return max(low, _floor(truth, mean)) - 0.1 * reach, high + 0.1 * reach


def _floor(truth: Floats, mean: Floats) -> float:
    """Return where bars end below: at 0 for what is never seen below it, as a distance or a scale."""
    return 0.0 if min(truth.min(), mean.min()) >= 0 else -math.inf


def _draw_bars(ax: Axes, truth: Floats, mean: Floats, sd: Floats, missed: Any, floor: float) -> None:
    for which, colour, mark, name in ((~missed, COLOURS[0], "o", "reach"), (missed, COLOURS[1], "D", "miss")):
        x, y, half = truth[which], mean[which], _NORMAL * sd[which]
        ax.vlines(x, np.maximum(y - half, floor), y + half, color=colour, lw=0.6, alpha=0.4, label="bars", zorder=2)
        ax.plot(x, y, mark, color=colour, ms=2.2, mec="none", alpha=0.9, label=name, zorder=3)


def _correlated(truth: Floats, mean: Floats) -> str:
    # Two points always lie on a line, and a constant has no correlation.
    if truth.size < 3 or not truth.std() or not mean.std():
        return ""
    return f"r = {np.corrcoef(truth, mean)[0, 1]:.2f}"
