"""Rows with intervals are drawn where their numbers are."""

import io
import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue import plots
from ringtrue.plots import tables
from ringtrue.results import MeasureRow, Result, TestRow

from .runs import complete, grid, ranked, replicates


@dataclass(frozen=True)
class Row:
    """A row as comparisons have it."""

    name: str
    f: str
    measure: str
    estimate: float
    low: float
    high: float
    ideal: float


def drawn(ax: Any, label: str) -> list[tuple[list[float], list[float]]]:
    """Return the coordinates of all lines with this label."""
    found = [one for one in ax.lines if one.get_label() == label]
    return [(list(map(float, one.get_xdata())), list(map(float, one.get_ydata()))) for one in found]


ROWS = [
    Row("Bayes", "theta", "spread", 1.01, 0.9, 1.1, 1.0),
    Row("narrow", "theta", "spread", 1.4, 1.3, 1.5, 1.0),
    Row("none", "theta", "spread", math.nan, 0.0, math.inf, 1.0),
    Row("Bayes", "theta", "crps", 0.4, 0.38, 0.42, math.nan),
]


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


def test_a_comparison_and_a_sweep_are_drawn_as_they_come() -> None:
    """What compare and sweep return needs no conversion."""
    bayes = rt.procedures.NormalMean()
    half = rt.procedures.Inflated(bayes, 0.5)
    both = rt.compare({"Bayes": bayes, "half": half}, rt.Normal(0, 1), bayes.simulate, n=60, f=rt.identity, batch=60)
    assert len(drawn(plots.forest(both, measure="bias"), "interval")) == 2
    build = lambda s: rt.Study(rt.Normal(0, 1), bayes.simulate, rt.procedures.Inflated(bayes, s), 60, batch=60)  # noqa: E731
    swept = rt.sweep(build, [0.5, 1.0, 2.0])
    ax = plots.sweep_lines(swept, measure="spread", f="theta")
    expected = [row.estimate for row in swept.rows if (row.f, row.measure) == ("theta", "spread")]
    assert list(ax.lines[-1].get_ydata()) == pytest.approx(expected)


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
    rows = [Row(f"p{j}", "theta", "bias", j % 50, j % 50 - 5.0, j % 50 + 5.0, 0.0) for j in range(100)]
    ax = plots.forest(rows, most=10)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [f"p{j}" for j in range(100) if j % 50 >= 45]
    assert "10 of 100" in ax.texts[0].get_text()


@pytest.mark.parametrize("draw", [plots.forest, plots.sweep_lines])
def test_rows_that_are_none_are_refused(draw: Any) -> None:
    """Wrong types, missing fields, no rows and unknown names are refused, saying what is needed."""
    with pytest.raises(TypeError, match="rows with f, measure"):
        draw(3)
    with pytest.raises(TypeError, match="rows with f, measure"):
        draw([SimpleNamespace(f="theta")])
    with pytest.raises(rt.InvalidStudy, match="at least one row"):
        draw([])
    with pytest.raises(rt.InvalidStudy, match=r"measure must be among \['spread', 'crps'\]"):
        draw(ROWS, measure="sharpness")
    with pytest.raises(rt.InvalidStudy, match=r"f must be among \['theta'\]"):
        draw(ROWS, f=["theta", "phi"])


def test_a_sweep_needs_an_x() -> None:
    """Rows of a comparison are no sweep."""
    with pytest.raises(rt.InvalidStudy, match="must have an x"):
        plots.sweep_lines(ROWS)


@pytest.mark.parametrize("values", [(1, 10, 100, 1000), ("a", "b_$", "<c>"), (0.1, 0.2, 0.3)])
def test_sweeps_have_numbers_or_words_on_their_axis(values: tuple[Any, ...]) -> None:
    """Numbers are placed where they are, logarithmically if they span much; words one after the other."""
    rows = [SimpleNamespace(**vars(ROWS[1]) | {"x": x, "estimate": 1.4 + j}) for j, x in enumerate(values)]
    ax = plots.sweep_lines(rows)
    x = list(ax.lines[-1].get_xdata())
    assert x == (list(range(3)) if isinstance(values[0], str) else list(values))
    assert ax.get_xscale() == ("log" if values[0] == 1 else "linear")


def many(n: int) -> Result:
    """Return a result about n test functions whose evidence grows with their number."""
    measures = tuple(MeasureRow(f"f{j}", "spread", 1 + j / n, 0.9 + j / n, 1.1 + j / n, 1.0, "open") for j in range(n))
    tests = tuple(TestRow("strong", f"f{j}", "ks", 0.1, 10.0 ** (-j / 10), 1.0, "exact", 30) for j in range(n))
    ran = replicates(np.random.default_rng(1).random((30, n)))
    return replace(rt.judge(ran), measures=measures, tests=tests)


def test_a_caterpillar_shows_the_worst_and_says_so() -> None:
    """Of 500 test functions the 40 with the smallest p-values are drawn, the worst on top."""
    ax = plots.caterpillar(many(500))
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"f{j}" for j in range(499, 459, -1)]
    assert "the worst 40 of 500 test functions" in ax.texts[0].get_text() + ax.texts[-1].get_text()
    height = ax.figure.get_size_inches()[1]
    assert 40 * 5.5 / 72 < height < 12
    ax.figure.savefig(io.BytesIO())


def test_a_caterpillar_shows_the_tolerance() -> None:
    """The grey strip is the tolerance of the result."""
    ax = plots.caterpillar(many(5))
    (strip,) = [patch for patch in ax.patches if patch.get_label() == "tolerance"]
    assert (strip.get_x(), strip.get_x() + strip.get_width()) == pytest.approx((1 / 1.1, 1.1))


def test_a_caterpillar_needs_a_measure() -> None:
    """Unknown measures, and results without any, are refused."""
    with pytest.raises(rt.InvalidStudy, match="measure must be among"):
        plots.caterpillar(many(3), measure="skill")
    with pytest.raises(rt.InvalidStudy, match="nothing was measured"):
        plots.caterpillar(complete(20, levels=["exact"]))


def test_a_map_by_truth_has_clopper_and_pearsons_intervals() -> None:
    """Bins hold equally many replicates; each interval is Clopper and Pearson's at level 1 - 0.05 / bins."""
    truth = np.random.default_rng(1).permutation(200)
    u = grid(200)
    ax = plots.coverage_map(replicates(u, truth=truth), bins=4)
    (coverage,) = drawn(ax, "coverage")
    hits = [int((np.abs(u[(truth >= low) & (truth < low + 50)] - 0.5) <= 0.45).sum()) for low in range(0, 200, 50)]
    assert coverage[1] == pytest.approx([count / 50 for count in hits])
    assert coverage[0] == pytest.approx([24.5, 74.5, 124.5, 174.5])
    (bars,) = [one for one in ax.collections if one.get_label() == "interval"]
    exact = [stats.binomtest(count, 50).proportion_ci(1 - 0.05 / 4, "exact") for count in hits]
    assert np.array([part[:, 1] for part in bars.get_segments()]) == pytest.approx(np.array(exact))


def test_a_map_may_be_over_another_truth() -> None:
    """over= names the test function whose truths make the bins."""
    ran = complete(200, 2)
    ax = plots.coverage_map(ran, "f0", over="f1")
    assert (ax.get_xlabel(), ax.get_title(loc="left")) == ("f1", "f0")


def test_equal_truths_share_a_bin() -> None:
    """A truth with few values has few bins, and no replicate is in none."""
    parts = tables._equal_parts(np.repeat([1.0, 2.0, 3.0], 100), 12)
    assert [len(part) for part in parts] == [100, 100, 100]
    assert len(tables._equal_parts(np.ones(5), None)) == 1


def test_a_map_of_rows_is_drawn_from_them() -> None:
    """Rows of rt.coverage_map, with scalar theta, are a line at their numbers."""
    rows = [SimpleNamespace(theta=t, f="theta", estimate=0.9, low=0.8, high=0.95, ideal=0.9) for t in (2.0, 1.0)]
    (line,) = drawn(plots.coverage_map(rows), "coverage")
    assert line[0] == [1.0, 2.0]


def test_a_map_of_two_parameters_tells_sides_by_shape() -> None:
    """Points below, around and above the ideal have markers of their own."""
    ends = [(0.7, 0.8), (0.85, 0.95), (0.95, 0.99)]
    rows = [
        SimpleNamespace(theta=np.array([j, -j]), estimate=(low + high) / 2, low=low, high=high, ideal=0.9)
        for j, (low, high) in enumerate(ends)
    ]
    ax = plots.coverage_map(rows)
    assert [len(one.get_offsets()) for one in ax.collections] == [1, 1, 1]
    assert [tuple(one.get_offsets()[0]) for one in ax.collections] == [(0, 0), (1, -1), (2, -2)]


@pytest.mark.parametrize("theta", [(1.0, 2.0, 3.0), {"a": [1.0, 2.0], "b": 3.0}])
def test_a_map_of_more_parameters_is_refused(theta: Any) -> None:
    """Three numbers do not fit a plane."""
    with pytest.raises(rt.InvalidStudy, match="one number or two"):
        plots.coverage_map([SimpleNamespace(theta=theta, estimate=0.9, low=0.8, high=1.0)])


def test_bad_maps_are_refused() -> None:
    """Unknown truths, names, levels and rows are refused."""
    with pytest.raises(rt.InvalidStudy, match="truths of 'f0' are not known"):
        plots.coverage_map(replicates([0.2, 0.5]))
    with pytest.raises(rt.InvalidStudy, match="nominal must lie"):
        plots.coverage_map(complete(20), nominal=90)
    with pytest.raises(rt.InvalidStudy, match="bins must be"):
        plots.coverage_map(complete(20), bins=0)
    with pytest.raises(rt.InvalidStudy, match="at least one row"):
        plots.coverage_map([])
    with pytest.raises(TypeError, match="rows need theta"):
        plots.coverage_map([SimpleNamespace(estimate=0.9)])


def test_one_draw_has_no_coverage_to_map() -> None:
    """M = 1 is said to have no central interval."""
    ax = plots.coverage_map(ranked(np.arange(100) % 2, 1, truth=np.arange(100.0)))
    assert "no central interval" in "".join(text.get_text() for text in ax.texts)
    plt.close("all")
