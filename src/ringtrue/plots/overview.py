"""One page that shows a result: its sentence, and the pictures that go with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..judgement.averages import KINDS
from ..judgement.groups import one_of_each
from ..judgement.levels import TestRow
from ..judgement.result import Result
from ..judgement.text import decimals, number
from ..replicates.record import GROUP
from .forests import by_badness, draw_worst, margin
from .headers import broken, even, head, settle
from .outputs import data_averaged, pairs_with_belief
from .positions import coverage_curve, ecdf_difference, pit_histogram
from .probabilities import has_diagrams, reliability
from .selection import AVERAGED, Chosen, Source, accusation, choose, result_of
from .style import Size, inches, journal, need_no_size, plain, say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Test functions that get pictures of their own, coordinates in pairs, and rows of spread and bias.
_SHOWN, _PAIRED, _ROWS = 4, 3, 12
_WIDTH, _HEIGHT = 7.2, 6.8
#: Height of the panel of a page of that size, before it is laid out, in sizes of type, and what is not for rows.
_ROOM, _FIXED = 19.0, 7.0


def plot(source: Source, f: str | Iterable[str] | None = None, *, figsize: Size = None, figure: Any = None) -> Figure:
    """Draw a result on one page: the sentence, pictures of what rejects, coverage, and spread and bias with numbers.

    The pictures are those of the level that rejects: histogram and ECDF of positions, or, if the weak level alone
    rejects, the outputs averaged over data against the belief.

    Parameters
    ----------
    source
        A Result; Replicates are judged with the default settings.
    f
        Names of at most four test functions; left out, the worst, by their adjusted p-values, and the page says so.
        Their bands are those of one picture: among many test functions the worst leave theirs more often.
    figsize
        Width and height of a new figure, in inches.
    figure
        A matplotlib Figure to draw on, which is cleared first; left out, a new one.

    Examples
    --------
    >>> import numpy as np
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> len(plot(check_draws(rng.normal(size=200), rng.normal(size=(200, 19)))).get_axes())
    7
    """
    result = result_of(source)
    row = accusation(result)
    averaged = row if f is None and row is not None and row.level in AVERAGED else None
    chosen = _chosen(result, f, averaged)
    with journal():
        page: Figure = _page(figure, figsize)
        # Each part is laid out by itself, so that long names beside the lower axes do not narrow the upper ones.
        parts: Any = page.subfigures(2, 1, height_ratios=(3.3, 2.5))
        top, bottom = parts
        _draw_top(top, result, chosen, averaged)
        left, middle, right = bottom.subplots(1, 3, width_ratios=(1.15, 1, 1))
        coverage_curve(result, _names(chosen), ax=left)
        left.set_xlabel("nominal level")
        _draw_sizes(result, middle, right)
        _write(top, bottom, result, _which(chosen, averaged))
    return page


def _chosen(result: Result, f: Any, averaged: TestRow | None) -> Chosen:
    """Return whom to draw: those asked for, or the worst."""
    if averaged is None:
        found = choose(result, f, most=_SHOWN)
        return Chosen(found.replicates, found.columns[:_SHOWN], found.left_out)
    # The joint test says that coordinates are off together, which only pairs of them can show.
    joint = _of_pairs(averaged, result)
    return choose(result, None, most=_PAIRED if joint else _SHOWN, by=AVERAGED, kind="coordinate" if joint else "")


def _of_pairs(averaged: TestRow, result: Result) -> bool:
    """Whether a test saw several coordinates together; of one it is shown like any test of one function."""
    coordinates = sum(function.kind == "coordinate" for function in result.replicates.functions)
    return averaged.kind in ("joint", *KINDS) and coordinates > 1


def _names(chosen: Chosen) -> list[str]:
    return [chosen.name(k) for k in chosen.columns]


def _which(chosen: Chosen, averaged: TestRow | None) -> str:
    """Say whose pictures there are, and of which level if they are not those of positions."""
    level = "" if averaged is None else f"; above: the {averaged.level} level, which rejects"
    return f"{level}; {chosen.rest}, each band for one picture alone" if chosen.rest else level


def _draw_top(top: Any, result: Result, chosen: Chosen, averaged: TestRow | None) -> None:
    """Draw the pictures of the level that rejects."""
    names = _names(chosen)
    if averaged is not None and _of_pairs(averaged, result):
        pairs_with_belief(top.subplots(len(names), len(names), squeeze=False), chosen)
        return
    pictures: tuple[Any, Any] = (pit_histogram, ecdf_difference) if averaged is None else (data_averaged, pit_histogram)
    if averaged is None and has_diagrams(result, names):
        pictures = (reliability, ecdf_difference)
    if len(names) == 1:
        for picture, one in zip(pictures, top.subplots(1, 2), strict=True):
            picture(result, names, ax=one)
    else:
        _draw_columns(result, names, top.subplots(2, len(names)), pictures)


def _page(figure: Any, figsize: Size) -> Any:
    if figure is None:
        import matplotlib.pyplot as plt

        return plt.figure(figsize=inches(figsize, _WIDTH, _HEIGHT))
    need_no_size(figsize, "figure")
    figure.clear()
    return figure


def _draw_columns(result: Result, names: list[str], grid: Any, pictures: Any) -> None:
    """Draw two pictures of each test function below each other, with one title for both."""
    for name, column in zip(names, grid.T, strict=True):
        for picture, one in zip(pictures, column, strict=True):
            picture(result, name, ax=one)
            _drop_header(one)
            # The padding was for the small print, which is gone.
            one.set_title(one.get_title(loc="left") if one is column[0] else "", loc="left", pad=4, parse_math=False)
            one.set_xlabel(one.get_xlabel().replace(" of the truth", "").replace(" in the output", ""))
    for row in grid:
        if len({(one.get_xlabel(), one.get_ylabel()) for one in row}) == 1:
            even(row)
        # Labels as short as a row is low.
        row[0].set_ylabel(row[0].get_ylabel().replace(" of truths", "").replace(" of draws", ""))
        for one in row[1:]:
            one.set_ylabel("")
    if grid[0][0].get_xlabel() == grid[1][0].get_xlabel():
        for one in grid[0]:
            one.set_xlabel("")
            one.tick_params(labelbottom=False)


def _drop_header(ax: Any) -> None:
    """Take away what the page says once: n and the level of the bands stand below."""
    for text in list(ax.texts):
        text.remove()
    if (key := ax.get_legend()) is not None:
        key.remove()


def _draw_sizes(result: Result, left: Any, right: Any) -> None:
    """Draw spread and bias of the worst test functions side by side, with their numbers."""
    if not any(row.name == "spread" for row in result.measures):
        right.axis("off")
        left.axis("off")
        few = has_diagrams(result, [function.name for function in result.replicates.functions])
        why = "the functions have few values" if few else "no function of theta alone was asked about"
        say(left, f"{why},\nso no spread was measured")
        return
    most = _rows_that_fit(left)
    for one, measure, unit, label in ((left, "spread", "", "factor"), (right, "bias", " sd", "reported sds")):
        rows, shown = by_badness(result, measure, most)
        draw_worst(one, shown, rows, result)
        one.set_xlabel(label)
        margin(one, [f"{number(row.estimate, min(decimals(row), 3))}{unit}" for row in shown])
    settle([left, right], left)
    for one, measure in ((left, "spread"), (right, "bias")):
        rows, shown = by_badness(result, measure, most)
        many = f"the worst {len(shown)} of {len(rows)}; " if len(shown) < len(rows) else ""
        head(one, measure, f"{many}grey: tolerance", ())
    right.tick_params(labelleft=False)


def _rows_that_fit(ax: Any) -> int:
    """Return how many rows a panel has room for, at most a dozen."""
    from matplotlib import rcParams

    room = ax.bbox.height / ax.get_figure(root=True).dpi * 72 / rcParams["font.size"]
    return max(min(int(_ROWS * (room - _FIXED) / (_ROOM - _FIXED)), _ROWS), 1)


def _write(top: Any, bottom: Any, result: Result, which: str) -> None:
    """Write the sentence above everything, and n, seed and what is shown below."""
    # No line should break between a number and its per cent sign.
    lines = (plain(line, most=10**6).replace(" %", "\N{NO-BREAK SPACE}%") for line in result.sentence.splitlines())
    title = top.suptitle("", x=0.01, ha="left", fontsize="medium")
    room, font = 0.97 * 72 * top.get_figure(root=True).get_figwidth(), title.get_fontproperties()
    # The sentence has names in it, and a name may have dollar signs.
    title.set(text="\n".join(part for line in lines for part in broken(line, room, font)), parse_math=False)
    ran = result.replicates
    lost = f", {len(ran.failures)} lost" if ran.failures else ""
    groups = f", {one_of_each(ran).n} groups" if GROUP in ran.arrays else ""
    means = "grey: 95 % bands; diamonds: intervals that exclude the ideal"
    note = f"n = {ran.n}{groups}{lost}, seed {ran.seed}; {means}{which}"
    # A label of the part, since a text below the page would be cut where it is saved.
    label = bottom.supxlabel("", x=0.995, ha="right", fontsize="small", color="0.35")
    label.set_text("\n".join(broken(note, room, label.get_fontproperties())))
