"""Maps show the coverage of the replicates and places that they are made of."""

from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue import plots
from ringtrue.plots import maps

from ..builders import complete, drawn, grid, ranked, replicates


def test_a_map_by_truth_has_clopper_and_pearsons_intervals() -> None:
    """Bins hold equally many replicates; each interval is Clopper and Pearson's at confidence 1 - 0.05 / bins."""
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
    parts = maps._equal_parts(np.repeat([1.0, 2.0, 3.0], 100), 12)
    assert [len(part) for part in parts] == [100, 100, 100]
    assert len(maps._equal_parts(np.ones(5), None)) == 1


def test_a_map_of_rows_is_drawn_from_them() -> None:
    """Rows of rt.coverage_map, with scalar theta, are a line at their numbers."""
    rows = [SimpleNamespace(of=t, f="theta", estimate=0.9, low=0.8, high=0.95, ideal=0.9) for t in (2.0, 1.0)]
    (line,) = drawn(plots.coverage_map(rows), "coverage")
    assert line[0] == [1.0, 2.0]


def test_a_map_of_two_parameters_tells_sides_by_shape() -> None:
    """Points below, around and above the ideal have markers of their own."""
    ends = [(0.7, 0.8), (0.85, 0.95), (0.95, 0.99)]
    rows = [
        SimpleNamespace(of=np.array([j, -j]), estimate=(low + high) / 2, low=low, high=high, ideal=0.9)
        for j, (low, high) in enumerate(ends)
    ]
    ax = plots.coverage_map(rows)
    assert [len(one.get_offsets()) for one in ax.collections] == [1, 1, 1]
    assert [tuple(one.get_offsets()[0]) for one in ax.collections] == [(0, 0), (1, -1), (2, -2)]


@pytest.mark.parametrize("theta", [(1.0, 2.0, 3.0), {"a": [1.0, 2.0], "b": 3.0}])
def test_a_map_of_more_parameters_is_refused(theta: Any) -> None:
    """Three numbers do not fit a plane."""
    with pytest.raises(rt.errors.InvalidStudy, match="one number or two"):
        plots.coverage_map([SimpleNamespace(of=theta, estimate=0.9, low=0.8, high=1.0)])


def test_bad_maps_are_refused() -> None:
    """Unknown truths, names, levels and rows are refused."""
    with pytest.raises(rt.errors.InvalidStudy, match="truths of 'f0' are not known"):
        plots.coverage_map(replicates([0.2, 0.5]))
    with pytest.raises(rt.errors.InvalidStudy, match="nominal must lie"):
        plots.coverage_map(complete(20), nominal=90)
    with pytest.raises(rt.errors.InvalidStudy, match="bins must be"):
        plots.coverage_map(complete(20), bins=0)
    with pytest.raises(rt.errors.InvalidStudy, match="at least one row"):
        plots.coverage_map([])
    with pytest.raises(TypeError, match="rows need of"):
        plots.coverage_map([SimpleNamespace(estimate=0.9)])


def test_one_draw_has_no_coverage_to_map() -> None:
    """M = 1 is said to have no central interval."""
    ax = plots.coverage_map(ranked(np.arange(100) % 2, 1, truth=np.arange(100.0)))
    assert "no central interval" in "".join(text.get_text() for text in ax.texts)
    plt.close("all")
