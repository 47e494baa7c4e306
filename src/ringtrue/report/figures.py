"""Pictures of a result as SVG that can stand inside a page.

Draws with :mod:`ringtrue.plots`, and makes the drawings fit to embed: no scripts, no styles that leak into the page, no
identifiers that clash, words for those who cannot see them.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from .. import plots
from ..judgement.column import columns_of
from ..judgement.groups import one_of_each
from ..judgement.outcomes import outcomes_of
from ..judgement.result import Result
from ..judgement.summary import ranked
from ..plots.selection import AVERAGED, accusation, choose
from ..plots.style import journal
from .content import PICTURED, short, spelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Inches; a page has room for three side by side, a phone for one.
_SIZE, _WIDE = (3.3, 2.8), 4.4
_MARGINS = {"left": 0.2, "right": 0.97, "bottom": 0.17, "top": 0.8}
#: Rows of the caterpillar.
_ROWS = 40
#: Text stays text: smaller, and any browser has fonts for it.
_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "ringtrue"}
#: How to read each picture; what this run shows is said beside it.
_HOW = {
    "pit_histogram": "Histogram of where the truth falls in the output. Calibrated: flat, all bars inside the band.",
    "ecdf_difference": "How many more truths than expected lie below each point of the output. Calibrated: inside "
    "the band everywhere.",
    "coverage_curve": "How often central intervals contain the truth, against what they promise. Calibrated: inside "
    "the band.",
    "reliability": "How often it came, against the probability that outputs gave. Calibrated: inside the band.",
    "z_contraction": "Error of each output in units of its own sd, against how much the data narrowed the belief. "
    "Calibrated: 95 % of the points in the grey, if outputs are normal. Useful: points to the right.",
    "data_averaged": "The outputs averaged over data, against the belief; where that is not known, against the truths. "
    "Calibrated: inside the band, or, where there is none, two curves that are alike.",
    "diagnostics": "A diagnostic of every fit, against the true value of what tells flagged fits (diamonds) best "
    "from others. In order: the points on the right side of the dashed limit, if there is one.",
    "caterpillar": "The spread factor of the test functions, those with most evidence first. Calibrated: 1.",
    "evidence": "The evidence E against calibration over replicates, on a logarithm. A calibrated procedure ever "
    "crosses the dashed line with probability alpha at most, however often one looks.",
    "sequences": "How well a size was known after so many replicates; intervals hold at all n together. Grey: what is "
    "tolerated.",
}


#: What each picture is.
_TITLES = {
    "pit_histogram": "Histogram",
    "ecdf_difference": "Distribution function minus the diagonal",
    "coverage_curve": "Coverage of central intervals",
    "reliability": "Reliability diagram",
    "z_contraction": "z-score against contraction",
    "data_averaged": "Outputs averaged over data against the belief",
    "diagnostics": "Diagnostic of single fits",
    "caterpillar": "Spread factors of the test functions",
    "evidence": "Evidence over replicates",
    "sequences": "Sizes over replicates",
}


@dataclass(frozen=True)
class Words:
    """A picture for those who cannot see it: what it is, and how to read it."""

    title: str
    description: str


@dataclass(frozen=True)
class Picture:
    """A drawing, how to read it, and whether it needs the width of the page."""

    svg: str
    caption: str
    wide: bool


@dataclass(frozen=True)
class Panel:
    """The pictures of one test function, and how to read its shape."""

    name: str
    reading: str
    pictures: tuple[Picture, ...]


def panels(result: Result) -> list[Panel]:
    """Return the pictures of the test functions with most evidence, at most six."""
    return [_panel(result, k) for k in ranked(result)[:PICTURED]]


def _panel(result: Result, k: int) -> Panel:
    name, reading = result.replicates.functions[k].name, plots.reading(result, k)
    # Intervals of a function with few values tell nothing; its probabilities do.
    probable = bool(outcomes_of(columns_of(one_of_each(result.replicates))[k]))
    kinds = ("pit_histogram", "ecdf_difference", "reliability" if probable else "coverage_curve")
    pictures = tuple(_picture(kind, result, name, mark=f"f{k}", reading=reading) for kind in kinds)
    return Panel(short(name), reading, pictures)


def overview(result: Result) -> list[Picture]:
    """Return the pictures that are about all test functions, or about the worst that has one."""
    ran, order, found = result.replicates, ranked(result), []
    if sum(row.name == "spread" for row in result.measures) > 1:
        found.append(_caterpillar(result))
    for kind, values in (("z_contraction", ran.sd), ("data_averaged", ran.weak_value)):
        known = [k for k in order if np.isfinite(values[ran.rows, k]).any()]
        if known:
            found.append(_picture(kind, result, ran.functions[known[0]].name, mark="all"))
    return [*over_time(result), *found] if result.look.anytime else found


def leading(result: Result) -> list[Picture]:
    """Return the picture of the level that rejects, if it is not one of positions: the outputs averaged over data."""
    row = accusation(result)
    if row is None or row.level not in AVERAGED:
        return []
    chosen = choose(result, None, most=1, by=AVERAGED)
    # A joint test names no test function; the worst of them stands for it.
    known = [function.name for function in result.replicates.functions]
    name = row.f if row.f in known else chosen.name(chosen.columns[0])
    return [_picture("data_averaged", result, name, mark="first")]


def over_time(result: Result) -> list[Picture]:
    """Return how evidence grew, and how the sizes of the first test function that has any came to be known."""
    found = []
    if result.levels:
        words = Words(_TITLES["evidence"], _HOW["evidence"])
        svg = as_svg(partial(plots.evidence, result), mark="all-evidence", words=words)
        found.append(Picture(svg, _HOW["evidence"], wide=False))
    sized = dict.fromkeys((row.f, row.name) for row in result.measures if row.name in ("spread", "bias"))
    # One interval alone would be drawn as nothing.
    grown = [(name, size) for name, size in sized if len(result.sequences(name).get(size, ())) > 1]
    for name, size in grown[:2]:
        words = Words(f"{_TITLES['sequences']}: {size} of {short(name)}", _HOW["sequences"])
        draw = partial(plots.sequences, result, name, sizes=(size,))
        svg = as_svg(draw, mark=f"all-sequences-{size}", words=words)
        found.append(Picture(svg, _HOW["sequences"], wide=False))
    return found


def fits(result: Result) -> list[Picture]:
    """Return a picture of every diagnostic of single fits that varies, at most six: those that flag most."""
    varying = [line for line in result.diagnostics.lines if line.smallest < line.largest]
    shown = sorted(varying, key=lambda line: -line.flagged if line.limit != "-" else 0)[:PICTURED]
    return [_of_fits(result, line.name, mark=f"fit{j}") for j, line in enumerate(shown)]


def _of_fits(result: Result, name: str, *, mark: str) -> Picture:
    words = Words(f"{_TITLES['diagnostics']}: {short(name)}", _HOW["diagnostics"])
    svg = as_svg(partial(plots.diagnostics, result, name), mark=f"{mark}-diagnostics", words=words)
    return Picture(svg, _HOW["diagnostics"], wide=False)


def _picture(kind: str, result: Result, name: str, *, mark: str, reading: str = "") -> Picture:
    words = Words(f"{_TITLES[kind]} of {short(name)}", " ".join(part for part in (reading, _HOW[kind]) if part))
    svg = as_svg(partial(getattr(plots, kind), result, [name]), mark=f"{mark}-{kind}", words=words)
    return Picture(svg, _HOW[kind], wide=False)


def _caterpillar(result: Result) -> Picture:
    rows = min(sum(row.name == "spread" for row in result.measures), _ROWS)
    how = _HOW["caterpillar"]
    draw = partial(plots.caterpillar, result, most=_ROWS)
    words = Words(_TITLES["caterpillar"], how)
    return Picture(as_svg(draw, mark="all", words=words, size=(_WIDE, 1.0 + 0.17 * rows)), how, wide=True)


def as_svg(draw: Callable[..., Any], *, mark: str, words: Words, size: tuple[float, float] = _SIZE) -> str:
    """Return what is drawn on fresh axes as SVG for the inside of a page.

    Parameters
    ----------
    draw
        Takes ``ax`` and draws on it.
    mark
        Goes before every identifier, so that drawings on one page do not clash.
    words
        What a screen reader says.
    size
        Width and height in inches.
    """
    import matplotlib as mpl
    import matplotlib.style
    from matplotlib.figure import Figure

    file = io.BytesIO()
    wide = size[0] == _WIDE
    # Finding margins takes as long as drawing; only long names beside an axis need it.
    style = {**_STYLE, "figure.constrained_layout.use": wide}
    with matplotlib.style.context("default"), journal(), mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser has fonts for what matplotlib's lack
        figure = Figure(figsize=size)
        ax = figure.subplots(gridspec_kw=None if wide else _MARGINS)
        draw(ax=ax)
        if not wide:
            _show_title(ax)
        # A date would make two pages of one result differ.
        figure.savefig(file, format="svg", metadata={"Date": None})
    return embedded(file.getvalue(), mark=mark, words=words)


def _show_title(ax: Axes) -> None:
    """Lower the top of a panel by what its title, small print and key need more than its margin."""
    from matplotlib.text import Text

    page, title = ax.figure.bbox, ax.get_title(loc="left")
    ends = [
        one.get_window_extent().y1 for one in ax.get_children() if isinstance(one, Text) and one.get_text() == title
    ]
    # A point to spare, since letters of a browser are not those of matplotlib.
    over = max(ends) + ax.get_figure(root=True).dpi / 72 - page.height  # type: ignore[union-attr]
    if title and over > 0:
        left, bottom, width, height = ax.get_position(original=True).bounds
        ax.set_position((left, bottom, width, height - over / page.height))


def embedded(svg: bytes, *, mark: str, words: Words) -> str:
    """Return an SVG file as an element for the inside of a page, with words, and identifiers of its own.

    Parameters
    ----------
    svg
        The file that matplotlib writes.
    mark, words
        As in :func:`as_svg`.
    """
    root = ElementTree.fromstring(svg)
    for parent in root.iter():
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style", "script"):
                parent.remove(child)
    for element in root.iter():
        element.text = element.text and spelled(element.text)
        # Inside HTML, SVG needs no namespaces.
        element.tag = _local(element.tag)
        element.attrib = {_local(key): _marked(_local(key), value, mark) for key, value in element.attrib.items()}
    root.attrib.pop("version", None)
    # What the style sheet that matplotlib writes would have said, to the whole page.
    root.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt", "role": "img"}
    _say(root, mark, words)
    for side in ("width", "height"):
        root.attrib[side] = root.attrib[side].removesuffix("pt")
    return ElementTree.tostring(root, encoding="unicode")


def _say(root: ElementTree.Element, mark: str, words: Words) -> None:
    """Put title and description where screen readers look for the name of a picture: first, and by identifier."""
    for place, (tag, text) in enumerate((("title", words.title), ("desc", words.description))):
        element = ElementTree.Element(tag, {"id": f"{mark}-{tag}"})
        element.text = printable(text)
        root.insert(place, element)
    root.attrib["aria-labelledby"] = f"{mark}-title {mark}-desc"


def printable(text: str) -> str:
    """Return text without what XML cannot hold."""
    return " ".join(spelled(text).split())


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _marked(key: str, value: str, mark: str) -> str:
    if key == "id":
        return f"{mark}-{value}"
    if key == "href":
        return re.sub(r"^#", f"#{mark}-", value)
    return value.replace("url(#", f"url(#{mark}-")
