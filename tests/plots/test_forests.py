"""Rows with intervals are drawn where their numbers are, below each other."""

import io
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue import plots
from ringtrue.judgement.levels import Evidence, TestRow
from ringtrue.judgement.result import Tested
from ringtrue.plots import intervals
from ringtrue.statistics.effects import Interval

from ..builders import BAYES, BELIEF, ROWS, complete, drawn, replicates


def test_a_forest_draws_every_interval_at_its_height() -> None:
    """Rows keep their order, from the top, with their numbers."""
    ax = plots.forest(ROWS, measure="spread")
    intervals = drawn(ax, "interval")
    assert [y for _, y in intervals] == [[0, 0], [1, 1], [2, 2]]
    assert intervals[0][0] == [0.9, 1.1]
    assert drawn(ax, "estimate") == [([1.01], [0.0]), ([1.4], [1.0])]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["Bayes", "narrow", "none"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_unbounded_intervals_end_in_arrows() -> None:
    """An interval from 0 to infinity has an arrow at each edge, and no estimate."""
    ax = plots.forest(ROWS, measure="spread")
    left, right = ax.get_xlim()
    assert [x[0] for x, _ in drawn(ax, "arrow")] == pytest.approx([left, right])
    assert [y for _, y in drawn(ax, "arrow")] == [[2.0], [2.0]]


def test_an_interval_that_excludes_the_ideal_looks_different() -> None:
    """Its marker is filled and has another shape."""
    ax = plots.forest(ROWS, measure="spread")
    marks = [one.get_marker() for one in ax.lines if one.get_label() == "estimate"]
    assert marks == ["o", "D"]


def test_every_measure_has_a_panel() -> None:
    """Several measures are several Axes, and a measure without an ideal has no line for it."""
    panels = plots.forest(ROWS)
    assert [ax.get_title(loc="left") for ax in panels] == ["spread", "crps"]
    assert len(panels[1].lines) == 2


def test_a_comparison_is_drawn_as_it_comes() -> None:
    """What compare returns needs no conversion."""
    both = {"Bayes": BAYES, "half": rt.procedures.Inflated(BAYES, 0.5)}
    found = rt.compare(both, BELIEF, BAYES.simulate, n=60, f=rt.identity, batch=60)
    assert len(drawn(plots.forest(found, measure="bias"), "interval")) == 2


def test_a_result_is_a_forest_of_its_measures() -> None:
    """Intervals of a result are those of its measures; distances only if they are asked for."""
    result = rt.judge(complete(100, 2))
    panels = plots.forest(result)
    assert [ax.get_title(loc="left") for ax in panels] == ["spread", "bias", "coverage"]
    row = next(m for m in result.measures if m.name == "bias")
    assert drawn(panels[1], "interval")[0][0] == pytest.approx([row.low, row.high])
    assert plots.forest(result, measure="KS distance").get_xlabel() == "KS distance"


def test_a_long_forest_keeps_the_rows_farthest_from_their_ideal() -> None:
    """Of 100 rows the ten worst are drawn in their order, and the picture says so."""
    rows = [Interval("bias", j % 50, j % 50 - 5.0, j % 50 + 5.0, 0.0, f="theta", of=f"p{j}") for j in range(100)]
    ax = plots.forest(rows, most=10)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [f"p{j}" for j in range(100) if j % 50 >= 45]
    assert "10 of 100" in ax.texts[0].get_text()


@pytest.mark.parametrize("draw", [plots.forest, plots.sweep_lines])
def test_rows_that_are_none_are_refused(draw: Any) -> None:
    """Wrong types, missing fields, no rows and unknown names are refused, saying what is needed."""
    with pytest.raises(TypeError, match="rows with name, f"):
        draw(3)
    with pytest.raises(TypeError, match="rows with name, f"):
        draw([SimpleNamespace(f="theta")])
    with pytest.raises(rt.errors.InvalidStudy, match="at least one row"):
        draw([])
    with pytest.raises(rt.errors.InvalidStudy, match=r"measure must be among \['spread', 'crps'\]"):
        draw(ROWS, measure="sharpness")
    with pytest.raises(rt.errors.InvalidStudy, match=r"f must be among \['theta'\]"):
        draw(ROWS, f=["theta", "phi"])


def many(n: int) -> rt.Result:
    """Return a result about n test functions whose evidence grows with their number."""
    measures = tuple(Interval("spread", 1 + j / n, 0.9 + j / n, 1.1 + j / n, 1.0, f"f{j}") for j in range(n))
    tests = tuple(TestRow("strong", f"f{j}", "ks", 0.1, 10.0 ** (-j / 10), 1.0, "exact", 30) for j in range(n))
    ran = replicates(np.random.default_rng(1).random((30, n)))
    return replace(rt.judge(ran), measures=measures, levels=Tested(strong=Evidence("strong", tests, 0.0)))


@pytest.mark.slow
def test_a_caterpillar_shows_the_worst_and_says_so() -> None:
    """Of 500 test functions the 40 with the smallest p-values are drawn, the worst on top."""
    ax = plots.caterpillar(many(500))
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"f{j}" for j in range(499, 459, -1)]
    assert "the worst 40 of 500 test functions" in ax.texts[0].get_text() + ax.texts[-1].get_text()
    height = ax.figure.get_size_inches()[1]
    assert 40 * 5.5 / 72 < height < 12
    ax.figure.savefig(io.BytesIO())


@pytest.mark.slow
def test_a_caterpillar_shows_the_tolerance() -> None:
    """The grey strip is the tolerance of the result."""
    ax = plots.caterpillar(many(5))
    (strip,) = [patch for patch in ax.patches if patch.get_label() == "tolerance"]
    assert (strip.get_x(), strip.get_x() + strip.get_width()) == pytest.approx((1 / 1.1, 1.1))


@pytest.mark.slow
def test_a_caterpillar_needs_a_measure() -> None:
    """Unknown measures, and results without any, are refused."""
    with pytest.raises(rt.errors.InvalidStudy, match="measure must be among"):
        plots.caterpillar(many(3), measure="skill")
    with pytest.raises(rt.errors.InvalidStudy, match="nothing was measured"):
        plots.caterpillar(complete(20, sees=["data"]))


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.98, 1.02), (0.9, 1.1), (0.6, 1.15), (0.89, 1.3), (0.5, 2.0), (0.2, 1.1), (0.9, 3.0), (0.9, 40.0), (1e-6, 1e6)],
)
def test_ticks_of_the_spread_are_few_plain_and_hold_its_ideal(low: float, high: float) -> None:
    """A logarithmic axis of any length has three to six ticks, on it, evenly spread, and 1 is one of them."""
    ticks = intervals.log_ticks(low, high)
    assert 1.0 in ticks
    assert 3 <= len(ticks) <= 6
    assert low <= min(ticks) <= max(ticks) <= high
    assert np.ptp(np.log(ticks)) >= 0.5 * math.log(high / low)


def test_rows_of_all_test_functions_together_do_not_disturb() -> None:
    """A measure of all test functions together, such as the energy skill, is drawn only if asked for."""
    result = rt.judge(complete(60, 2))
    result = replace(result, measures=(*result.measures, Interval("joint use", 0.4, 0.3, 0.5, f="(all)")))
    assert [ax.get_title(loc="left") for ax in plots.forest(result)] == ["spread", "bias", "coverage"]
    assert [text.get_text() for text in plots.forest(result, measure="joint use").get_yticklabels()] == ["(all)"]
    assert len(plots.caterpillar(result).get_yticks()) == 2
    plots.plot(result)
