"""A picture of how positions depend on those before them. What is computed is decided in statistics; this draws it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..judgement.order import Independence, independence
from ..judgement.text import format_p
from .selection import Chosen, Source, choose, replicates_of
from .style import COLOURS, MARKERS, NULL, Size, journal, most_panels, panels, returned
from .titles import entitle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What is correlated with itself.
_SERIES = ("u", "(u - mean)²")
#: How far the stems of the two stand to the left and right of their lag.
_ASIDE = 0.12


def correlogram(
    source: Source,
    f: str | Iterable[str] | None = None,
    *,
    lags: int | None = None,
    confidence: float = 0.95,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw the correlations of u, and of its squared deviations, between replicates that are some places apart.

    If replicates are independent over their order, every stem of every panel ends in the grey band with the stated
    chance, whatever the law of u: one leaves it if and only if the p-value of ``ringtrue.independence`` is at most
    1 - confidence. Stems of u outside: a wrong centre persists; stems of squares: a wrong spread does.

    Parameters
    ----------
    source
        A Result or Replicates; the order is that of ``check_draws(..., order=)``, or that of the rows.
    f
        Names of test functions, a panel each; left out, the user's parameters and functions of theta, of more than
        twelve those with the largest correlations.
    lags
        How far apart replicates are compared, 4 by default.
    confidence
        Chance that all stems stay in the band.
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
    >>> correlogram(check_draws(rng.normal(size=50), rng.normal(size=(50, 19)))).get_xlabel()
    'lag in the order of the replicates'
    """
    found = independence(replicates_of(source), f=f, lags=lags, confidence=confidence)
    names = _largest(found, most_panels(ax, figsize))
    picked = choose(source, names, most=len(names))
    chosen = Chosen(picked.replicates, picked.columns, len(found.functions) - len(names))
    with journal(ax):
        drawn = panels(ax, len(names), figsize=figsize)
        for one, name in zip(drawn, names, strict=True):
            _draw(one, found, found.functions.index(name))
        common = f"{format_p(found.pvalue)}, {100 * confidence:g} % band"
        entitle(drawn, chosen, ax, common=common, keys=[_series(one) for one in drawn])
    return returned(drawn)


def _largest(found: Independence, most: int) -> list[str]:
    """Return the test functions in their order, or of too many those with the largest correlations, largest first."""
    if len(found.functions) <= most:
        return list(found.functions)
    sizes = np.abs(found.correlogram.correlations - found.correlogram.centre).max(axis=(1, 2))
    return [found.functions[k] for k in np.argsort(-sizes)[:most]]


def _draw(ax: Axes, found: Independence, k: int) -> None:
    shown = found.correlogram
    lags = np.arange(1, shown.half_widths.size + 1)
    reach = 1.25 * max(float(np.abs(shown.correlations).max()), _finite(shown.half_widths))
    # Half a lag to either side: a band between two lags would belong to none.
    half = np.minimum(shown.half_widths, 2 * reach)
    bottom = shown.centre - half
    ax.bar(lags, 2 * half, 1.0, bottom=bottom, color=NULL, alpha=0.25, lw=0, zorder=0)
    ax.axhline(0, color="0.35", lw=0.8, zorder=1)
    for moment, (label, aside) in enumerate(zip(_SERIES, (-_ASIDE, _ASIDE), strict=True)):
        heights = shown.correlations[k, moment]
        ax.vlines(lags + aside, 0, heights, color=COLOURS[moment], lw=1.0, zorder=2)
        ax.plot(lags + aside, heights, MARKERS[moment], color=COLOURS[moment], label=label, zorder=3)
    ax.set(xlabel=f"lag in the order {'given' if found.given else 'of the replicates'}", ylabel="correlation")
    ax.set(xlim=(0.5, lags.size + 0.5), ylim=(-reach, reach))
    ax.set_xticks(lags if lags.size <= 12 else lags[:: -(-lags.size // 10)])


def _finite(widths: Any) -> float:
    known = widths[np.isfinite(widths)]
    return float(known.max()) if known.size else 0.0


def _series(ax: Axes) -> list[tuple[Any, str]]:
    return [(line, str(line.get_label())) for line in ax.lines if line.get_label() in _SERIES]
