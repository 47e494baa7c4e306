"""Where among all data outputs are wrong: bias and spread along a summary of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..judgement.data import Local
from ..values import Floats
from .headers import heads, settle
from .style import COLOURS, MARKERS, NULL, Size, journal, panels, plain, returned

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def local(found: Local, *, figsize: Size = None, ax: Any = None) -> Any:
    """Draw bias and spread of the outputs along a summary of the data, bin by bin.

    If outputs are the exact posterior, every bar of a panel reaches the line with the stated chance.

    Parameters
    ----------
    found
        From ``result.local(f, summary)``.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw: two Axes, for bias and for spread.

    Returns
    -------
    Array of two Axes.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> y = rng.normal(size=200)
    >>> result = check_draws(y + rng.normal(size=200), y[:, None] + rng.normal(size=(200, 19)), y=y)
    >>> local(result.local("theta", "y"))[0].get_xlabel()
    'y'
    """
    with journal(ax):
        drawn = panels(ax, 2, figsize=figsize)
        _draw(drawn[0], found, found.bias, 0.0, "truth above output, in its sd")
        _draw(drawn[1], found, found.spread, 1.0, "factor on the reported sd")
        # Twice as wide and half as wide are equally far from right.
        drawn[1].set_yscale("log", base=2)
        drawn[1].yaxis.set_major_formatter("{x:g}")
        settle(drawn, ax)
        note = f"{100 * found.confidence:g} % intervals over all bins"
        heads(drawn, [f"{found.f}: bias", f"{found.f}: spread"], [note, note])
    return returned(drawn)


def _draw(ax: Axes, found: Local, rows: Floats, ideal: float, label: str) -> None:
    ax.axhline(ideal, color=NULL, lw=1.0, zorder=0)
    off = (rows[:, 1] > ideal) | (rows[:, 2] < ideal)
    for which, colour, marker in ((~off, COLOURS[0], MARKERS[0]), (off, COLOURS[1], MARKERS[1])):
        if which.any():
            reach = np.abs(rows[which, 1:].T - rows[which, 0])
            ax.errorbar(found.at[which], rows[which, 0], reach, fmt=marker, color=colour, lw=1.0, capsize=2)
    ax.set_xlabel(plain(found.summary), parse_math=False)
    ax.set_ylabel(label)
