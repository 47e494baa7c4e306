"""How a run came to its verdict: evidence and sizes over replicates, both of which hold whenever one looks."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidStudy
from ..judgement.result import Result
from .headers import head, heads, settle
from .style import COLOURS, NULL, Size, journal, panels, plain, returned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Sizes that are drawn, and what their axes say.
_SIZES = {
    "spread": "factor on the reported sd",
    "bias": "truth above output, in its sd",
    "coverage": "coverage of 90 % intervals",
}


def evidence(result: Result, *, figsize: Size = None, ax: Any = None) -> Any:
    """Draw the evidence against calibration over replicates, in their order.

    A calibrated procedure ever crosses the line with probability alpha at most, however often one looks.

    Parameters
    ----------
    result
        The result of a run, whether or not it was run until decided.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw.

    Returns
    -------
    The Axes.

    Examples
    --------
    >>> from ringtrue import Normal, check
    >>> result = check(Normal(0, 1), lambda t, rng: t + rng.normal(), lambda mu0, y: Normal(y / 2, 0.4), n=100)
    >>> evidence(result).get_xlabel()
    'replicates'
    """
    followed = result._followed
    if not len(followed.looks):
        raise InvalidStudy("no test function of this result has evidence that can be followed over replicates.")
    with journal(ax):
        (drawn,) = panels(ax, 1, figsize=figsize, width=3.4)
        limit = -math.log10(result.spent)
        drawn.axhline(limit, color=NULL, lw=1.0, ls="--", zorder=1)
        drawn.axhline(0.0, color=NULL, lw=0.6, zorder=0)
        value = np.maximum(followed.log_evalues, -700.0) / math.log(10)
        drawn.step(
            np.concatenate([[0], followed.looks]), np.concatenate([[0.0], value]), where="post", color=COLOURS[0]
        )
        drawn.annotate(f"E = {1 / result.spent:.3g}", (1.01, limit), xycoords=("axes fraction", "data"), va="center")
        drawn.set_xlabel("replicates")
        drawn.set_ylabel("log10 of the evidence E")
        settle([drawn], ax)
        head(drawn, "Evidence against calibration", f"E = {result.evalue:.3g} after {followed.looks[-1]}")
    return returned([drawn])


def sequences(
    result: Result,
    f: str | None = None,
    *,
    sizes: Collection[str] = tuple(_SIZES),
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw how spread, bias and coverage of a test function came to be known, with what is tolerated.

    Intervals hold at all n together: with the stated confidence, each contains the true size everywhere.

    Parameters
    ----------
    result
        The result of a run, whether or not it was run until decided.
    f
        The test function; the first if left out.
    sizes
        Which of "spread", "bias" and "coverage".
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw: as many Axes as there are sizes.

    Returns
    -------
    Array of Axes; one of a single size.

    Examples
    --------
    >>> from ringtrue import Normal, check
    >>> result = check(Normal(0, 1), lambda t, rng: t + rng.normal(), lambda mu0, y: Normal(y / 2, 0.4), n=200)
    >>> [one.get_ylabel() for one in sequences(result, "theta")]
    ['factor on the reported sd', 'truth above output, in its sd', 'coverage of 90 % intervals']
    """
    name = result.replicates.functions[0].name if f is None else f
    found = {key: rows for key, rows in result.sequences(name).items() if key in _SIZES and key in sizes}
    if not found:
        raise InvalidStudy(f"{name!r} has no spread, bias or coverage whose intervals could be drawn.")
    with journal(ax):
        drawn = panels(ax, len(found), figsize=figsize)
        for one, (key, rows) in zip(drawn, found.items(), strict=True):
            _draw(one, result, key, rows)
        settle(drawn, ax)
        sure = f"{100 * (1 - result.spent):.3g} % at all n together; grey: tolerance"
        heads(drawn, [f"{plain(name)}: {key}" for key in found], [sure] * len(drawn))
    return returned(drawn)


def _draw(ax: Axes, result: Result, key: str, rows: Any) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    n = np.array([count for count, _ in rows])
    low, middle, high = (np.array([getattr(row, end) for _, row in rows]) for end in ("low", "estimate", "high"))
    ideal = rows[-1][1].ideal
    least, most = result.tolerance.limits(key, ideal)
    ax.axhspan(least, most, color=NULL, alpha=0.18, lw=0)
    ax.axhline(ideal, color=NULL, lw=1.0)
    ax.fill_between(n, low, high, color=COLOURS[0], alpha=0.25, lw=0)
    ax.plot(n, middle, color=COLOURS[0], lw=1.2)
    # Early intervals may reach to infinity; what is tolerated should fill a good part of the picture.
    reach = 4 * (most - least)
    lowest, highest = {"spread": (0.0, np.inf), "coverage": (0.0, 1.0)}.get(key, (-np.inf, np.inf))
    ax.set_ylim(max(ideal - reach, lowest), min(ideal + reach, highest))
    ax.set_xscale("log")
    # Powers of ten alone may leave an axis without numbers.
    ax.xaxis.set(major_locator=LogLocator(subs=(1.0, 3.0)), minor_locator=NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("replicates")
    ax.set_ylabel(_SIZES[key])
