"""How figures look: one style for all, and where a drawing goes. It knows nothing of what is drawn.

matplotlib is imported when something is drawn, never before.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidStudy, RingtrueError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Width and height of a figure in inches, or none for ours.
Size = tuple[float, float] | None

#: Colours of Okabe and Ito, which people with any colour vision can tell apart; the first four also in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: Line styles and markers to go with them: colour is never the only difference.
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P")
#: What belongs to the null hypothesis is drawn in this grey.
NULL = "0.6"
#: Points of a scatter plot or a step curve.
POINTS = 1000
#: Further out nothing is drawn: axes cannot be as long as numbers are.
FARTHEST = 1e300
#: Panels that are drawn if no test function is named.
PANELS = 12
#: Inches that a panel takes at least, with its name and numbers.
LEAST = 1.1
#: Letters of a name before its middle is cut out.
LETTERS = 36
#: The size of type, in points, that figures of ours are made for.
TYPE = 8.5

#: What a figure looks like where the user has set nothing else. Sizes of type follow "font.size".
_PREFERRED: dict[str, Any] = {
    "font.size": TYPE,
    "axes.titlesize": "medium",
    "axes.labelsize": "medium",
    "legend.fontsize": "small",
    "xtick.labelsize": "small",
    "ytick.labelsize": "small",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.dpi": 300,
}
#: What our own figures cannot do without: room for all that is written, and the same file for the same picture.
_OURS: dict[str, Any] = {
    "figure.autolayout": False,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "ringtrue",
}
#: A name is not TeX.
_NAMES: dict[str, Any] = {"text.usetex": False}


@contextmanager
def journal(ax: Any = None) -> Iterator[None]:
    """Use the style of the figures inside the block; what the user has set stays, there and afterwards.

    On Axes of the user's, whose type has a size already, everything is the user's.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise RingtrueError("plots need matplotlib; run: pip install 'ringtrue[plot]'") from None
    settings = dict(_NAMES)
    if ax is None:
        now: dict[Any, Any] = dict(mpl.rcParams)
        usual: dict[Any, Any] = dict(mpl.rcParamsDefault)
        settings |= _OURS | {key: value for key, value in _PREFERRED.items() if now[key] == usual[key]}
    with mpl.rc_context(settings):  # type: ignore[arg-type]
        yield


def footnote(figure: Any, text: str) -> None:
    """Write n and seed in small type at the bottom of a figure."""
    figure.text(0.995, 0.005, text, ha="right", va="bottom", fontsize="small", color="0.35")


def panels(ax: Any, count: int, *, figsize: Size = None, width: float = 2.6, height: float = 2.2) -> list[Axes]:
    """Return as many Axes as asked for: the user's, or those of a new figure."""
    if ax is None:
        return _new_panels(count, width, height, figsize)
    need_no_size(figsize, "ax")
    given = [ax] if _is_axes(ax) else list(np.ravel(np.asarray(ax, object)))
    if not all(_is_axes(one) for one in given):
        raise TypeError(f"ax must be matplotlib Axes, or several in an array, but {type(ax).__name__} arrived.")
    if len(given) != count:
        raise InvalidStudy(f"ax must hold {count} Axes, one for each panel, but {len(given)} arrived; see f=.")
    return given


def size_asked_for(figsize: Size) -> tuple[float, float]:
    """Return the size that the user wants a figure to have, infinite if nothing was said."""
    with journal():
        return inches(figsize, math.inf, math.inf)


def most_panels(ax: Any, figsize: Size) -> int:
    """Return how many panels of unnamed test functions there is room for."""
    if ax is not None:
        return 1 if only_one(ax) else PANELS
    width, height = size_asked_for(figsize)
    if math.isinf(width):
        return PANELS
    return min(max(int(width / LEAST) * int(height / LEAST), 1), PANELS)


def need_no_size(figsize: Size, given: str) -> None:
    """Refuse a size for a figure that is there already."""
    if figsize is not None:
        raise InvalidStudy(f"figsize is the size of a new figure, but {given} arrived with it; pass one of the two.")


def inches(figsize: Size, width: float, height: float) -> tuple[float, float]:
    """Return the size of a new figure: the one asked for, the user's setting, or ours, larger for larger type."""
    import matplotlib as mpl

    if figsize is not None:
        return figsize
    if mpl.rcParams["figure.figsize"] != mpl.rcParamsDefault["figure.figsize"]:
        return tuple(mpl.rcParams["figure.figsize"])
    scale = mpl.rcParams["font.size"] / TYPE
    return scale * width, scale * height


def _is_axes(one: Any) -> bool:
    from matplotlib.axes import Axes as Real

    return isinstance(one, Real)


def only_one(ax: Any) -> bool:
    """Whether there is room for one panel only."""
    return ax is not None and not isinstance(ax, (Sequence, np.ndarray))


def _new_panels(count: int, width: float, height: float, figsize: Size) -> list[Axes]:
    import matplotlib.pyplot as plt

    across = _across(count)
    down = math.ceil(count / across)
    size = 1.3 if count == 1 else 0.75 if across > 3 else 1.0
    whole = inches(figsize, size * width * across, size * height * down)
    figure, grid = plt.subplots(down, across, figsize=whole, squeeze=False)
    cells = list(grid.ravel())
    for spare in cells[count:]:
        figure.delaxes(spare)
    return cells[:count]


def _across(count: int) -> int:
    """Return how many panels stand side by side."""
    return {4: 2, 5: 3, 6: 3, 9: 3, 10: 5}.get(count, min(count, 4) if count > 3 else count)


def returned(drawn: Sequence[Axes]) -> Any:
    """Return one Axes as itself, several as an array."""
    if len(drawn) == 1:
        return drawn[0]
    array = np.empty(len(drawn), object)
    array[:] = drawn
    return array


def plain(text: Any, *, most: int = LETTERS) -> str:
    """Return a name as one line that the font can show; what it cannot show becomes a square.

    Draw it with ``parse_math=False``: a dollar sign in a name is a dollar sign.

    Examples
    --------
    >>> plain("log  sigma_1\\n")
    'log sigma_1'
    """
    line = " ".join(str(text).split())
    if len(line) > most:
        line = f"{line[: most // 2]}…{line[-(most - most // 2 - 1) :]}"
    return "".join(letter if letter.isascii() and letter.isprintable() else _shown(letter) for letter in line)


def _shown(letter: str) -> str:
    from matplotlib import rcParams

    return letter if _has_glyph(ord(letter), tuple(rcParams["font.family"])) else "\N{WHITE SQUARE}"


@lru_cache(maxsize=1024)
def _has_glyph(code: int, families: tuple[str, ...]) -> bool:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return any(get_font(findfont(FontProperties(family=[one]))).get_char_index(code) for one in families)


def say(ax: Axes, text: str) -> None:
    """Write why there is nothing to see."""
    from matplotlib import rcParams

    # Letters are about six tenths as wide as their size.
    letters = int(ax.bbox.width / ax.get_figure(root=True).dpi * 72 / (0.6 * rcParams["font.size"]))  # type: ignore[union-attr]
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, max(letters, 8))]
    place: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "center"}
    ax.text(0.5, 0.5, "\n".join(lines), fontsize="small", color="0.35", **place)


def thinned(most: int, *values: Any) -> Any:
    """Return the indices of at most so many points, evenly spaced, the extremes of all coordinates among them."""
    size = len(values[0])
    if size <= most:
        return np.arange(size)
    extremes = [index for one in values for index in (int(np.argmin(one)), int(np.argmax(one)))]
    spaced = np.linspace(0, size - 1, most - len(extremes)).astype(np.int64)
    return np.union1d(spaced, extremes)
