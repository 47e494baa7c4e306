"""Names and small print of the panels of one picture, said once where all panels share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .headers import Keys, broken, heads, settle
from .selection import Chosen
from .style import only_one

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def entitle(
    drawn: Sequence[Axes],
    chosen: Chosen,
    ax: Any,
    *,
    common: str,
    own: Sequence[str] = (),
    keys: Sequence[Keys] = (),
) -> None:
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
    keys
        What lines and markers of each panel mean, said once.
    """
    # On the user's own figure there may be other panels, for which a common title would not be true.
    together = ax is None and len(drawn) > 1
    if together:
        _share(drawn, _listed((chosen.common_note, common, chosen.rest)))
    settle(drawn, ax)
    each = list(zip(chosen.columns, own or [""] * len(drawn), strict=True))
    alone = [_listed((chosen.note(k, rest=only_one(ax)), words, common)) for k, words in each]
    heads(drawn, [chosen.name(k) for k, _ in each], [words for _, words in each] if together else alone, keys)


def _listed(parts: Sequence[str]) -> str:
    return "; ".join(part for part in parts if part)


def _share(drawn: Sequence[Axes], note: str) -> None:
    """Move labels that all panels share to the edges of the figure, and write above it what holds for all."""
    figure: Any = drawn[0].get_figure(root=True)
    title = figure.suptitle(note, x=0.01, ha="left", fontsize="small", color="0.35")
    title.set_text("\n".join(broken(note, 0.94 * 72 * figure.get_figwidth(), title.get_fontproperties())))
    for side, write in (("xlabel", figure.supxlabel), ("ylabel", figure.supylabel)):
        labels = {getattr(one, f"get_{side}")() for one in drawn}
        # Panels may show different things, as where the belief of one has a law and that of another has none.
        if len(labels) == 1:
            write(labels.pop(), fontsize="medium")
            for one in drawn:
                one.set(**{side: ""})
