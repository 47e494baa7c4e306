"""How the figures look: the style of all plots, and the sheet that a vignette draws on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..plots.style import COLOURS, MARKERS, NULL, STYLES, footnote, journal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    # Names for annotations, which nobody evaluates: a vignette must not import matplotlib before it draws.
    Axes = Figure = Any

__all__ = ["COLOURS", "MARKERS", "NULL", "STYLES", "Axes", "Figure", "footnote", "journal"]

#: Smaller p-values are drawn here.
FLOOR = 1e-30


@contextmanager
def sheet(width: float, height: float, *, margin: float = 0.0) -> Iterator[Figure]:
    """Give an empty figure in the style of the journal, its lowest part left free for a legend and a footnote."""
    from matplotlib.figure import Figure as NewFigure

    with journal():
        figure = NewFigure(figsize=(width, height))
        # The layout makes no room for what is placed by hand, as footnotes are.
        figure.get_layout_engine().set(rect=(0, margin, 1, 1 - margin))  # type: ignore[union-attr, call-arg]
        yield figure


def log_pvalues(axes: Axes) -> None:
    """Make the upright axis one of p-values, those below the floor drawn at it."""
    axes.set(yscale="log", ylim=(FLOOR / 10, 10))
    axes.set_yticks([1e-30, 1e-20, 1e-10, 1], ["$\\leq 10^{-30}$", "$10^{-20}$", "$10^{-10}$", "1"])
    axes.minorticks_off()
