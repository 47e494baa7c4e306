"""How the figures look: one style for all vignettes. It knows nothing of what they show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Colours of Okabe and Ito, which people with any colour vision can tell apart; the first four also in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Line styles and markers to go with them: colour is never the only difference.
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P")
#: What belongs to the null hypothesis is drawn in this grey.
NULL = "0.6"

_SETTINGS: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "svg.hashsalt": "ringtrue",
}


@contextmanager
def journal() -> Iterator[None]:
    """Use the style of the figures inside the block, without a display."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):  # type: ignore[arg-type]
        yield


def footnote(figure: Any, text: str, *, y: float = 0.005) -> None:
    """Write n, seed or time in small type at the bottom of a figure, or below it (y < 0)."""
    figure.text(0.995, y, text, ha="right", va="bottom" if y > 0 else "top", fontsize=6, color="0.4")
