"""How the figures look: the style of all plots, and the sheet that a vignette draws on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

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
CLIPPED = "smaller than can be drawn"


@contextmanager
def sheet(width: float, height: float, *, margin: float = 0.0) -> Iterator[Figure]:
    """Give an empty figure in the style of the journal, its lowest part left free for a footnote."""
    from matplotlib.figure import Figure as NewFigure

    with journal():
        figure = NewFigure(figsize=(width, height))
        # The layout makes no room for what is placed by hand, as footnotes are.
        figure.get_layout_engine().set(rect=(0, margin, 1, 1 - margin))  # type: ignore[union-attr, call-arg]
        yield figure


def draw_pvalues(axes: Axes, x: Sequence[float], p: Sequence[float], look: str, **more: Any) -> None:
    """Draw p-values; those below the floor are at it, with a mark of their own: hollow and pointing down."""
    values, low = np.maximum(p, FLOOR), np.asarray(p) < FLOOR
    (line,) = axes.plot(x, values, look, markevery=np.flatnonzero(~low).tolist(), **more)
    if low.any():
        clipped: Any = {"mfc": "white", "mec": line.get_color(), "ms": 5, "label": CLIPPED}
        axes.plot(np.asarray(x)[low], values[low], "v", zorder=3, **clipped)


def legend_above(figure: Any, *panels: Axes, ncols: int) -> None:
    """Say above a figure what the lines and markers of its panels mean, each once."""
    pairs = [pair for axes in panels for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    known = {label: handle for handle, label in reversed(pairs)}
    # What belongs to several lines comes last.
    labels = sorted(dict.fromkeys(label for _, label in pairs), key=lambda label: label == CLIPPED)
    figure.legend([known[label] for label in labels], labels, loc="outside upper left", ncols=ncols)


def log_pvalues(axes: Axes) -> None:
    """Make the upright axis one of p-values, those below the floor drawn at it."""
    axes.set(yscale="log", ylim=(FLOOR / 100, 10))
    axes.set_yticks([1e-30, 1e-20, 1e-10, 1], ["$\\leq 10^{-30}$", "$10^{-20}$", "$10^{-10}$", "1"])
    axes.minorticks_off()
