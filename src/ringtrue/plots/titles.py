"""Names and small print of the panels of one picture, said once where all panels share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .selection import Chosen
from .style import head, only_one

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def entitle(drawn: Sequence[Axes], chosen: Chosen, ax: Any, *, common: str, own: Sequence[str] = ()) -> None:
    """Write the name of a test function above each panel, and n, M and more below it or above the figure.

    Parameters
    ----------
    drawn
        The panels, one for each column that was chosen.
    chosen
        Replicates, and their columns.
    ax
        What the user passed: nothing if the panels are those of a new figure.
    common
        What else is to be said of every panel, such as what grey means.
    own
        What is to be said of each panel alone.
    """
    # On the user's own figure there may be other panels, for which a common title would not be true.
    together = ax is None and len(drawn) > 1
    for one, k, words in zip(drawn, chosen.columns, own or [""] * len(drawn), strict=True):
        alone = (chosen.note(k, rest=only_one(ax)), words, common)
        head(one, chosen.name(k), _listed((words,) if together else alone))
    if together:
        _share(drawn, _listed((chosen.common_note, common, chosen.rest)))


def _listed(parts: Sequence[str]) -> str:
    return "; ".join(part for part in parts if part)


def _share(drawn: Sequence[Axes], note: str) -> None:
    """Move the labels of the panels to the edges of the figure, and write above it what holds for all."""
    figure: Any = drawn[0].get_figure(root=True)
    figure.supxlabel(drawn[0].get_xlabel(), fontsize=8)
    figure.supylabel(drawn[0].get_ylabel(), fontsize=8)
    figure.suptitle(note, x=0.01, ha="left", fontsize=6, color="0.35")
    for one in drawn:
        one.set(xlabel="", ylabel="")
