"""What stands above a panel: its title, small print, and a key to its lines and markers.

Nothing of it covers what is drawn. Lines are broken where the panel ends, so that neighbours do not meet; the length of
a line is that of its letters in the font that is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .style import LETTERS, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Lines and markers, each with what it means.
Keys = Sequence[tuple[Any, str]]

#: Points between the panel and what is written above it, and between its parts.
_GAP = 3.0
#: Height of a line and of a row of a key, and the length of the line or marker before a name with its spaces, in sizes
#: of type.
_LINE, _ROW, _SAMPLE = 1.25, 1.35, 3.2
#: A word below a panel may be so much wider than the panel.
_FURTHER = 1.3
#: Panels that differ by more than this factor in height have axes of their own.
_ALIKE = 3.0


def settle(drawn: Sequence[Axes], ax: Any = None) -> None:
    """Write numbers on axes in one way, and place the panels of a new figure, so that headers know their room."""
    from matplotlib.ticker import ScalarFormatter, StrMethodFormatter

    for one in drawn:
        for axis in (one.xaxis, one.yaxis):
            # Panels side by side would have 0, 0.0 and 0.00.
            if axis.get_scale() == "linear" and type(axis.get_major_formatter()) is ScalarFormatter:
                axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    figure: Any = drawn[0].get_figure(root=True)
    if ax is None and (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
        for one in drawn:
            _fit_label(one)


def even(drawn: Sequence[Axes]) -> None:
    """Give panels that are compared one upright scale, unless one of them would flatten the others."""
    ends = [one.get_ylim() for one in drawn]
    heights = [high - low for low, high in ends]
    if max(heights) <= _ALIKE * min(heights):
        for one in drawn:
            one.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))


def once(keys: Sequence[Keys]) -> list[Keys]:
    """Return the keys of panels without those that an earlier panel has."""
    names = [[name for _, name in pairs] for pairs in keys]
    return [[] if names[j] in names[:j] else list(pairs) for j, pairs in enumerate(keys)]


def heads(drawn: Sequence[Axes], titles: Sequence[str], notes: Sequence[str], keys: Sequence[Keys] = ()) -> None:
    """Write a header above every panel; a key that several share stands above the first of them."""
    every = once(keys or [()] * len(drawn))
    keyed = [one for one, pairs in zip(drawn, every, strict=True) if pairs]
    rooms = [_key_room(one, keyed, drawn) for one in drawn]
    for one, title, note, pairs, room in zip(drawn, titles, notes, every, rooms, strict=True):
        # Titles side by side stand at one height, though a key is below the first alone.
        beside = [(p, r) for other, p, r in zip(drawn, every, rooms, strict=True) if _top(other) == _top(one)]
        head(one, title, note, pairs, least=max(_key_height(p, r) for p, r in beside), key_room=room)


def _fit_label(ax: Axes) -> None:
    """Break the label below a panel where the panel ends, so that neighbours do not meet."""
    font, room = ax.xaxis.label.get_fontproperties(), _room(ax)
    lines = broken(ax.get_xlabel(), room, font)
    # A word may reach a little further than its panel, where only numbers on the axes are.
    fits = [line if _length(line, font) <= _FURTHER * room else cut(line, room, font) for line in lines]
    ax.xaxis.label.set_text("\n".join(fits))


def _key_room(ax: Axes, keyed: Sequence[Axes], drawn: Sequence[Axes]) -> float:
    """Return the width for the key of a panel: that of its row, if nobody to its right has one or is a stranger."""
    mine = ax.get_position(original=True)
    beside = [one for one in ax.figure.axes if _top(one) == _top(ax) and one.get_position(original=True).x0 > mine.x0]
    if not beside or any(one in keyed or one not in drawn for one in beside):
        return _room(ax)
    end = max(one.get_position(original=True).x1 for one in beside)
    return _room(ax) * float((end - mine.x0) / mine.width)


def _top(ax: Axes) -> float:
    return round(float(ax.get_position(original=True).y1), 2)


def head(
    ax: Axes, title: str, note: str = "", keys: Keys = (), *, least: float = 0.0, key_room: float | None = None
) -> None:
    """Write above a panel, from the top: a title, n and M in small type, and what lines and markers mean.

    The key takes at least so many points of height, whether there is one or not, and may be wider than the panel.
    """
    room, height = _room(ax), _GAP
    wide = room if key_room is None else key_room
    if keys:
        _key(ax, keys, wide, height)
    height += max(least, _key_height(keys, wide))
    if note:
        height += _print(ax, note, room, height) + _GAP
    pad = height if height > _GAP else None
    made = ax.set_title(plain(title, most=LETTERS), loc="left", pad=pad, parse_math=False)
    made.set_text(cut(title, room, made.get_fontproperties()))


def _room(ax: Axes) -> float:
    """Return the width of a panel in points, less what a screen's letters are wider than those of the font."""
    return float(0.95 * ax.get_window_extent().width / ax.get_figure(root=True).dpi * 72)  # type: ignore[union-attr]


def _length(text: str, font: Any) -> float:
    """Return the length of a line in points."""
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def cut(text: str, room: float, font: Any) -> str:
    """Return a name of which so much of the middle is cut out that it fits."""
    sizes = range(LETTERS, 7, -1)
    return next((name for most in sizes if _length(name := plain(text, most=most), font) <= room), plain(text, most=8))


def broken(text: str, room: float, font: Any) -> list[str]:
    """Return the lines of a text, none longer than there is room for unless it is one word."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if not lines[-1] or _length(longer, font) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _print(ax: Axes, note: str, room: float, height: float) -> float:
    """Write the small print so many points above the panel, and return its own height."""
    small = ax.annotate("", (0, 1), xytext=(0, height), xycoords="axes fraction", textcoords="offset points")
    small.set(fontsize="small", color="0.35", va="bottom", parse_math=False, linespacing=_LINE)
    lines = broken(note, room, small.get_fontproperties())
    small.set_text("\n".join(lines))
    # The layout makes room for the title above it; a long word must not squeeze the panel.
    small.set_in_layout(False)
    return float(len(lines) * _LINE * float(small.get_fontsize()))


def _key_height(keys: Keys, room: float) -> float:
    """Return the points that a key takes above a panel."""
    if not keys:
        return 0.0
    rows, size = -(-len(keys) // _columns(keys, room)), _key_font().get_size()
    return float(rows * _ROW * size + _GAP)


def _columns(keys: Keys, room: float) -> int:
    """Return how many columns of a key fit side by side, equally filled."""
    font = _key_font()
    widest = max(_length(cut(name, room, font), font) for _, name in keys) + _SAMPLE * font.get_size()
    fit = max(min(int(room / widest), len(keys)), 1)
    return -(-len(keys) // -(-len(keys) // fit))


def _key_font() -> Any:
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=rcParams["legend.fontsize"])


def _key(ax: Axes, pairs: Keys, room: float, height: float) -> None:
    """Put a legend so many points above the panel, in as many columns as fit."""
    from matplotlib.transforms import ScaledTranslation

    font = _key_font()
    names = [cut(name, room - _SAMPLE * font.get_size(), font) for _, name in pairs]
    above = ScaledTranslation(0, height / 72, ax.get_figure(root=True).dpi_scale_trans)  # type: ignore[union-attr]
    # matplotlib hides labels that start with an underscore, so the names are put in afterwards.
    made = ax.legend(
        [handle for handle, _ in pairs],
        ["x"] * len(pairs),
        loc="lower left",
        bbox_to_anchor=(0, 1),
        bbox_transform=ax.transAxes + above,
        ncols=_columns(pairs, room),
        prop=font,
        frameon=False,
        borderpad=0,
        borderaxespad=0,
        handlelength=1.8,
        handletextpad=0.5,
        columnspacing=0.9,
        labelspacing=_ROW - 1,
    )
    # The title above it has made room; a key wider than its panel must not squeeze it.
    made.set_in_layout(False)
    for text, name in zip(made.get_texts(), names, strict=True):
        text.set(text=name, parse_math=False)
