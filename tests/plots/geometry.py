"""Looking at a figure as a reader does: does anything lie on something else, is anything cut off, unnamed or too small?

It measures where the renderer puts things, and knows nothing of what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.text import Text
from matplotlib.transforms import Bbox

#: Points; smaller type is not read on paper.
SMALLEST = 7.0
#: Pixels that boxes may share: letters end before their box does.
_SLACK = 1.0


def faults(figure: Any, *, smallest: float = SMALLEST) -> list[str]:
    """Return what is wrong with a figure, nothing if all is well."""
    figure.draw_without_rendering()
    written = list(texts(figure))
    return [
        *_on_each_other(written),
        *_cut_off(figure, written),
        *(
            f"type of {text.get_fontsize():.3g} pt: {_short(text)}"
            for text in written
            if float(text.get_fontsize()) < smallest
        ),
        *(f"a legend on data: {what}" for ax in figure.get_axes() for what in _covered(ax)),
        *_unnamed(figure),
    ]


def texts(figure: Any) -> Iterator[Text]:
    """Yield what is written on a figure and can be seen."""
    ticks = {id(label): seen for ax in figure.get_axes() for label, seen in _tick_labels(ax)}
    for text in figure.findobj(Text):
        shown = text.get_visible() and text.get_text().strip()
        if shown and ticks.get(id(text), True) and not _hidden_with_axes(text):
            yield text


def _tick_labels(ax: Axes) -> Iterator[tuple[Text, bool]]:
    """Yield the labels of ticks, and whether they are drawn: those beyond the ends of an axis are not."""
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-6 * (high - low)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            inside = low - slack <= tick.get_loc() <= high + slack
            for label in (tick.label1, tick.label2):
                yield label, inside and tick.get_visible() and ax.axison


def _hidden_with_axes(text: Text) -> bool:
    ax = text.axes
    return ax is not None and not ax.axison and (text in (ax.xaxis.label, ax.yaxis.label))


def _short(text: Text) -> str:
    return repr(" ".join(text.get_text().split())[:40])


def _box(artist: Any) -> Bbox:
    return artist.get_window_extent().padded(-_SLACK)  # type: ignore[no-any-return]


def _on_each_other(written: list[Text]) -> Iterator[str]:
    boxes = [(text, _box(text)) for text in written]
    for (one, mine), (other, its) in combinations(boxes, 2):
        if mine.overlaps(its):
            yield f"{_short(one)} on {_short(other)}"


def _cut_off(figure: Any, written: list[Text]) -> Iterator[str]:
    page = figure.bbox
    for text in written:
        box = _box(text)
        if box.x0 < page.x0 or box.y0 < page.y0 or box.x1 > page.x1 or box.y1 > page.y1:
            yield f"cut off: {_short(text)}"


def _covered(ax: Axes) -> Iterator[str]:
    """Yield what of the data of any panel lies under the legend of this one."""
    legend = ax.get_legend()
    if legend is None:
        return
    box = legend.get_window_extent()
    for other in ax.get_figure(root=True).get_axes():  # type: ignore[union-attr]
        for line in other.lines:
            path = line.get_transform().transform_path(line.get_path())
            if _visible(line) and path.intersects_bbox(box, filled=False):
                yield f"line {line.get_label()!r}"
        for patch in other.patches:
            if patch.get_transform().transform_path(patch.get_path()).intersects_bbox(box, filled=True):
                yield f"patch {patch.get_label()!r}"
        for some in other.collections:
            if _meets(some, box):
                yield f"collection {some.get_label()!r}"


def _visible(line: Any) -> bool:
    return line.get_linestyle() not in ("None", "") or line.get_marker() not in ("None", "", None)


def _meets(some: Any, box: Bbox) -> bool:
    if isinstance(some, PathCollection):
        places = some.get_offset_transform().transform(some.get_offsets())
        return bool(np.any([box.contains(x, y) for x, y in places]))
    paths = (some.get_transform().transform_path(path) for path in some.get_paths())
    filled = len(some.get_facecolor()) > 0
    return any(len(path.vertices) and path.intersects_bbox(box, filled=filled) for path in paths)


def _unnamed(figure: Any) -> Iterator[str]:
    """Yield axes that nobody names: not themselves, nor a panel of their row or column, nor the figure."""
    axes = [ax for ax in figure.get_axes() if ax.axison and ax.get_label() != "<colorbar>"]
    for ax in axes:
        for side, beside in (("x", "colspan"), ("y", "rowspan")):
            if not any(_names(other, side) for other in axes if _beside(ax, other, beside)) and not _by_figure(
                ax, side
            ):
                yield f"no {side} label: panel {ax.get_title(loc='left')!r}"


def _beside(ax: Axes, other: Axes, span: str) -> bool:
    mine, its = ax.get_subplotspec(), other.get_subplotspec()
    if ax is other or mine is None or its is None:
        return ax is other
    return mine.get_gridspec() is its.get_gridspec() and getattr(mine, span) == getattr(its, span)


def _names(ax: Axes, side: str) -> bool:
    """Whether an axis has a label, or words for ticks."""
    axis = ax.xaxis if side == "x" else ax.yaxis
    words = [label.get_text() for label in axis.get_ticklabels()]
    return bool(axis.get_label_text()) or any(word and not _is_number(word) for word in words)


def _is_number(word: str) -> bool:
    return word.startswith("$") or all(letter in "0123456789.,-+e\N{MINUS SIGN}" for letter in word)


def _by_figure(ax: Axes, side: str) -> bool:
    figure: Any = ax.get_figure()
    return bool(figure.get_supxlabel() if side == "x" else figure.get_supylabel())
