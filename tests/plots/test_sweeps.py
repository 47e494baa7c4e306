"""Lines of a sweep go through its numbers."""

from dataclasses import replace
from typing import Any

import pytest

import ringtrue as rt
from ringtrue import plots

from ..builders import BAYES, BELIEF, ROWS


def test_a_sweep_is_drawn_as_it_comes() -> None:
    """What sweep returns needs no conversion."""

    def build(variance: float) -> rt.Study:
        return rt.Study(BELIEF, BAYES.simulate, rt.procedures.Inflated(BAYES, variance), batch=60)

    swept = rt.sweep(build, [0.5, 1.0, 2.0], n=60)
    ax = plots.sweep_lines(swept, measure="spread", f="theta")
    expected = [row.estimate for row in swept.rows if (row.f, row.name) == ("theta", "spread")]
    assert list(ax.lines[-1].get_ydata()) == pytest.approx(expected)


def test_a_sweep_needs_an_x() -> None:
    """Rows of a single result are no sweep."""
    with pytest.raises(rt.errors.InvalidStudy, match="must have an x"):
        plots.sweep_lines([replace(row, of=None) for row in ROWS])


def test_several_sweeps_have_a_line_each() -> None:
    """Sweeps by name share a panel, each a line through its own numbers."""
    swept = {name: [replace(ROWS[1], of=x, estimate=x + j) for x in (1, 2)] for j, name in enumerate("ab")}
    ax = plots.sweep_lines(swept)
    drawn = [list(line.get_ydata()) for line in ax.lines if line.get_marker() not in ("None", "")]
    assert drawn == [[1, 2], [2, 3]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


@pytest.mark.parametrize("values", [(1, 10, 100, 1000), ("a", "b_$", "<c>"), (0.1, 0.2, 0.3)])
def test_sweeps_have_numbers_or_words_on_their_axis(values: tuple[Any, ...]) -> None:
    """Numbers are placed where they are, logarithmically if they span much; words one after the other."""
    rows = [replace(ROWS[1], of=x, estimate=1.4 + j) for j, x in enumerate(values)]
    ax = plots.sweep_lines(rows)
    x = list(ax.lines[-1].get_xdata())
    assert x == (list(range(3)) if isinstance(values[0], str) else list(values))
    assert ax.get_xscale() == ("log" if values[0] == 1 else "linear")
