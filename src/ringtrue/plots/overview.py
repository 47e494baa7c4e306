"""One page that shows a result: its sentence, and the pictures that go with it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..judgement.column import strong_columns
from ..judgement.levels import levels
from ..judgement.result import Result
from .forests import caterpillar
from .positions import coverage_curve, ecdf_difference, pit_histogram
from .selection import Source, choose, result_of
from .style import footnote, journal, plain, say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Test functions that get a histogram and an ECDF, and rows of the caterpillar.
_SHOWN, _ROWS = 4, 12
_WIDTH = 7.2


def plot(source: Source, f: str | Iterable[str] | None = None, *, figure: Any = None) -> Figure:
    """Draw a result on one page: the sentence, then histogram and ECDF, coverage and spread.

    Parameters
    ----------
    source
        A Result; Replicates are judged with the default settings.
    f
        Names of at most four test functions; left out, those with the most evidence against them, and the page says
        so. Their bands are those of one picture: among many test functions the worst leave theirs more often.
    figure
        A matplotlib Figure to draw on, which is cleared first; left out, a new one.

    Examples
    --------
    >>> import numpy as np
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> len(plot(check_draws(rng.normal(size=200), rng.normal(size=(200, 19)))).get_axes())
    6
    """
    result = result_of(source)
    names = _names(result, f)
    with journal():
        page: Figure = _page(figure)
        # Each part is laid out by itself, so that long names beside the lower axes do not narrow the upper ones.
        parts: Any = page.subfigures(2, 1, height_ratios=(2 * 1.65, 2.1))
        top, bottom = parts
        if len(names) == 1:
            left, right = top.subplots(1, 2)
            pit_histogram(result, names, ax=left)
            ecdf_difference(result, names, ax=right)
        else:
            _draw_columns(result, names, top.subplots(2, len(names)))
        left, right = bottom.subplots(1, 2)
        coverage_curve(result, names, ax=left)
        _draw_spread(result, right)
        _write(page, top, result, _which(result, names, f))
    return page


def _names(result: Result, f: Any) -> list[str]:
    """Return whom to draw: those asked for, or those with the most evidence."""
    ran = result.replicates
    # All of them, since the worst are only known once they are sorted.
    chosen = choose(result, f, most=10**9)
    names = [ran.functions[k].name for k in chosen.columns]
    if f is None and len(names) > _SHOWN:
        evidence = {row.f: row.pvalue for row in result.tests if not levels()[row.level].blunt}
        names = sorted(names, key=lambda name: evidence.get(name, 1.0))
    return names[:_SHOWN]


def _which(result: Result, names: list[str], f: Any) -> str:
    many = len(strong_columns(result.replicates))
    if f is not None or many <= _SHOWN:
        return ""
    return f"; the {len(names)} of {many} test functions with the most evidence, each band for one picture alone"


def _page(figure: Any) -> Any:
    if figure is None:
        import matplotlib.pyplot as plt

        return plt.figure(figsize=(_WIDTH, 6.4))
    figure.clear()
    return figure


def _draw_columns(result: Result, names: list[str], grid: Any) -> None:
    """Draw histogram and ECDF of each test function below each other, with one title and one axis for both."""
    for name, (upper, lower) in zip(names, grid.T, strict=True):
        pit_histogram(result, name, ax=upper)
        ecdf_difference(result, name, ax=lower)
        for text in [*upper.texts, *lower.texts]:  # n is below, the level of the bands too
            text.remove()
        # The padding was for the small print, which is gone.
        upper.set_title(upper.get_title(loc="left"), loc="left", pad=4)
        lower.set_title("", loc="left", pad=0)
        upper.set(xlabel="", ylabel="")
        upper.tick_params(labelbottom=False)
        lower.set(xlabel="position", ylabel="")
    for row, label in zip(grid, ("count", "excess share below"), strict=True):
        row[0].set_ylabel(label)


def _draw_spread(result: Result, ax: Any) -> None:
    if any(row.name == "spread" for row in result.measures):
        caterpillar(result, most=_ROWS, ax=ax)
    else:
        ax.axis("off")
        say(ax, "no function of theta alone was asked about,\nso no spread was measured")


def _write(page: Any, top: Any, result: Result, which: str) -> None:
    # No line should break between a number and its per cent sign.
    lines = (plain(line, most=10**6).replace(" %", "\N{NO-BREAK SPACE}%") for line in result.sentence.splitlines())
    text = "\n".join(textwrap.fill(line, 115) for line in lines)
    title = top.suptitle(text, x=0.01, ha="left", fontsize=8.5)
    # The sentence has names in it, and a name may have dollar signs.
    title.set(parse_math=False)
    ran = result.replicates
    lost = f", {len(ran.failures)} lost" if ran.failures else ""
    footnote(page, f"n = {ran.n}{lost}, seed {ran.seed}; grey: 95 % bands{which}", y=-0.005)
