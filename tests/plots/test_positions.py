"""What is drawn of positions is what was counted, and its band is the stated one."""

import io
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import special, stats

import ringtrue as rt
from ringtrue import plots
from ringtrue.plots import lattices
from ringtrue.statistics import uniformity

from ..builders import column, complete, grid, ranked, replicates

CURVES = [plots.ecdf, plots.ecdf_difference, plots.coverage_curve, plots.coverage_difference]


def bars(ax: Any) -> Any:
    """Return the heights of all bars from left to right."""
    made = sorted((bar.get_x(), bar.get_height()) for group in ax.containers for bar in group)
    return np.array([height for _, height in made])


def band(ax: Any) -> Any:
    """Return the points, lower and upper edges of a filled band."""
    (filled,) = [one for one in ax.collections if one.get_label() == "band"]
    corners = np.asarray(filled.get_paths()[0].vertices, float)
    x = np.unique(corners[:, 0])
    edges = [[corners[corners[:, 0] == at, 1].min(), corners[corners[:, 0] == at, 1].max()] for at in x]
    return x, *np.array(edges).T


def curve(ax: Any, j: int = -1) -> Any:
    """Return the coordinates of one line."""
    return np.asarray(ax.lines[j].get_xdata()), np.asarray(ax.lines[j].get_ydata())


def test_bars_are_the_counts_of_ranks() -> None:
    """Every bar holds the same number of ranks, and its height is their count."""
    ranks = np.repeat(np.arange(20), np.arange(20) + 5)
    ax = plots.pit_histogram(ranked(ranks, 19), bins=10)
    assert (bars(ax) == np.bincount(ranks // 2)).all()
    assert bars(ax).sum() == len(ranks)


def test_bars_of_values_sum_to_n() -> None:
    """Values on the continuum are all counted, the ends of the interval included."""
    ax = plots.pit_histogram(replicates([0.0, 1.0, *grid(298)]), bins=7)
    assert bars(ax).sum() == 300
    assert len(bars(ax)) == 7


@pytest.mark.parametrize(("n", "draws"), [(1000, 19), (1000, 99), (100, 19), (10**5, 99), (300, 9), (50, 1), (50, 2)])
def test_bars_hold_equally_many_ranks(n: int, draws: int) -> None:
    """The number of bars divides the number of ranks."""
    ax = plots.pit_histogram(ranked(np.arange(n) % (draws + 1), draws))
    assert (draws + 1) % len(bars(ax)) == 0
    assert len(bars(ax)) > 1


def test_a_prime_number_of_ranks_is_counted_by_randomised_positions() -> None:
    """101 ranks have no fitting bars, so the uniform positions are counted, and still all of them."""
    ax = plots.pit_histogram(ranked(np.arange(1010) % 101, 100))
    assert 10 <= len(bars(ax)) <= 40
    assert bars(ax).sum() == 1010


def test_the_band_of_a_histogram_is_binomial_over_all_bars() -> None:
    """The band is the two-sided binomial interval at confidence 1 - 0.05 / bars, by another implementation."""
    ax = plots.pit_histogram(ranked(np.arange(500) % 20, 19), bins=10)
    (span,) = [patch for patch in ax.patches if patch.get_label() == "band"]
    low, high = stats.binom.interval(1 - 0.05 / 10, 500, 0.1)
    assert (span.get_y(), span.get_y() + span.get_height()) == (low, high)


@pytest.mark.parametrize(
    ("n", "p", "confidence"), [(1, 0.5, 0.95), (10, 0.05, 0.999), (10**6, 0.025, 0.99), (37, 1.0, 0.9)]
)
def test_binomial_bands_agree_with_scipy(n: int, p: float, confidence: float) -> None:
    """Quantiles by bisection are those of scipy."""
    assert lattices.binomial_band(n, p, confidence) == stats.binom.interval(confidence, n, p)


def test_bars_outside_the_band_look_different() -> None:
    """A bar is hatched exactly if its count leaves the band."""
    ran = replicates(grid(400, spread=1.6))
    found = lattices.histogram(column(ran), bins=10, confidence=0.95)
    ax = plots.pit_histogram(ran, bins=10)
    hatched = {round(bar.get_x(), 6) for group in ax.containers for bar in group if bar.get_hatch()}
    assert found.outside.any()
    assert hatched == {round(float(x), 6) for x in found.edges[:-1][found.outside]}


def test_calibrated_histograms_stay_in_their_band() -> None:
    """Of 4000 calibrated histograms at most the stated 5 % have a bar outside.

    False alarm: P(Binomial(4000, 0.05) > 270) = 5e-7 were the level attained; it is smaller. The broken twin below
    shows that pointwise bands would fail.
    """
    assert _leaving(0.95) <= 270


def test_pointwise_bands_would_be_seen() -> None:
    """The broken twin: without Bonferroni's correction far more histograms leave the band."""
    assert _leaving(1 - 10 * 0.05) > 270


def _leaving(confidence: float) -> int:
    rng = np.random.default_rng(11)
    counts = rng.multinomial(200, [0.1] * 10, size=4000)
    low, high = lattices.binomial_band(200, 0.1, 1 - (1 - confidence) / 10)
    return int(((counts < low) | (counts > high)).any(axis=1).sum())


def test_the_ecdf_of_ranks_is_that_of_the_lattice() -> None:
    """At k / (M + 1) the curve is the share of ranks below k, and the band is the exact one for M draws."""
    ranks = np.random.default_rng(1).integers(0, 20, 300)
    ax = plots.ecdf(ranked(ranks, 19))
    x, y = curve(ax)
    assert x == pytest.approx(np.arange(21) / 20)
    assert y == pytest.approx([(ranks < k).mean() for k in range(21)])
    exact = uniformity.band(300, draws=19)
    at, low, high = band(ax)
    assert at[1:-1] == pytest.approx(exact.points)
    assert low[1:-1] == pytest.approx(exact.low)
    assert high[1:-1] == pytest.approx(exact.high)


def test_the_ecdf_of_values_is_that_of_the_cells() -> None:
    """On the continuum the curve is the ECDF at multiples of 1/250, and the band exact there."""
    u = np.random.default_rng(2).random(400) ** 1.1
    x, y = curve(plots.ecdf(replicates(u)))
    assert y == pytest.approx([(u < at).mean() for at in x[:-1]] + [1.0])
    at, low, _ = band(plots.ecdf(replicates(u)))
    assert low[1:-1] == pytest.approx(uniformity.band(400, draws=249).low)
    assert len(at) == 251


@pytest.mark.parametrize("seed", range(8))
def test_a_curve_leaves_its_band_if_and_only_if_the_test_rejects(seed: int) -> None:
    """The picture and the p-value of the ECDF test on the same lattice never disagree."""
    rng = np.random.default_rng(seed)
    ranks = rng.binomial(39, special.ndtr(1.12 * rng.normal(size=250)))
    outside = lattices.curve(np.bincount(ranks, minlength=40), confidence=0.95).outside.any()
    assert outside == (uniformity.ecdf_gamma(ranks, draws=39).pvalue <= 0.05)


def test_those_curves_are_of_both_kinds() -> None:
    """The test above sees curves inside and outside."""
    found = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        ranks = rng.binomial(39, special.ndtr(1.12 * rng.normal(size=250)))
        found.add(bool(uniformity.ecdf_gamma(ranks, draws=39).pvalue <= 0.05))
    assert found == {True, False}


def test_the_difference_is_the_ecdf_minus_the_diagonal() -> None:
    """Curve and band are those of the ECDF, less x."""
    ran = ranked(np.random.default_rng(3).integers(0, 10, 100), 9)
    (x, y), (_, whole) = curve(plots.ecdf_difference(ran)), curve(plots.ecdf(ran))
    assert y == pytest.approx(whole - x)
    at, low, _ = band(plots.ecdf_difference(ran))
    assert low == pytest.approx(band(plots.ecdf(ran))[1] - at)


@pytest.mark.parametrize("draws", [1, 2, 9, 10, 19, 100, 101, 249, 250, 251, 999, 1008])
def test_coverage_at_every_level_is_that_of_the_measure(draws: int) -> None:
    """The coverage curve at a nominal level is the coverage that is measured there."""
    ranks = np.random.default_rng(draws).integers(0, draws + 1, 200)
    found = lattices.central(column(ranked(ranks, draws)), confidence=0.95)
    k = np.arange(1, draws // 2 + 1)
    levels = (draws + 1 - 2 * k) / (draws + 1)
    share = [((ranks >= j) & (ranks <= draws - j)).mean() for j in k]
    exact = dict(zip(levels.round(9).tolist(), share, strict=True))
    common = [j for j, point in enumerate(found.points.round(9).tolist()) if point in exact]
    # Without a lattice that fits, 250 cells of the randomised positions are counted, whose levels are others.
    assert len(common) == len(found.points) or draws in (250, 1008)
    assert all(found.share[j] == pytest.approx(exact[float(found.points[j].round(9))]) for j in common)
    assert not ((found.low > found.points) | (found.high < found.points)).any()


def test_coverage_of_values_counts_those_in_the_middle() -> None:
    """On the continuum the curve is the share of u within p / 2 of a half."""
    u = np.random.default_rng(5).random(300)
    x, y = curve(plots.coverage_curve(replicates(u)))
    assert y[1:-1] == pytest.approx([(np.abs(2 * u - 1) < at).mean() for at in x[1:-1]])


@pytest.mark.slow
@pytest.mark.parametrize("draws", [2, 4, 20])
def test_coverage_bands_of_an_even_number_of_draws_hold(draws: int) -> None:
    """Of 2000 calibrated coverage curves at most the stated 5 % leave the band.

    False alarm: P(Binomial(2000, 0.05) > 155) = 6e-8.
    """
    rng = np.random.default_rng(draws)
    left = sum(
        lattices.central(column(ranked(ranks, draws)), confidence=0.95).outside.any()
        for ranks in rng.integers(0, draws + 1, (2000, 60))
    )
    assert left <= 155


def test_a_coverage_band_sees_over_confidence() -> None:
    """The broken twin: ranks of an over-confident procedure leave the same band."""
    rng = np.random.default_rng(1)
    ranks = rng.binomial(20, special.ndtr(2 * rng.normal(size=400)))
    assert lattices.central(column(ranked(ranks, 20)), confidence=0.95).outside.any()


@pytest.mark.parametrize("draw", CURVES)
def test_several_curves_share_one_statement(draw: Any) -> None:
    """With K curves in one panel the band has the confidence 1 - 0.05 / K, so that all stay inside with 95 %."""
    ran = ranked(np.random.default_rng(1).integers(0, 20, (300, 3)), 19)
    _, low, _ = band(draw(ran))
    draws = 9 if draw in (plots.coverage_curve, plots.coverage_difference) else 19
    exact = uniformity.band(300, draws=draws, confidence=1 - 0.05 / 3)
    less = exact.points if draw in (plots.ecdf_difference, plots.coverage_difference) else 0.0
    assert low[1:-1] == pytest.approx(exact.low - less)


@pytest.mark.parametrize("draw", CURVES)
def test_exact_and_rank_columns_may_be_mixed(draw: Any) -> None:
    """Columns on different lattices are drawn together, each over a band of its own."""
    ranks = np.random.default_rng(1).integers(0, 20, (80, 1))
    u = np.hstack([grid(80)[:, None], (ranks + 0.5) / 20])
    both = replicates(u, rank=np.hstack([np.full((80, 1), -1), ranks]), draws=np.array([0, 19]))
    ax = draw(both)
    assert len([one for one in ax.collections if one.get_label() == "band"]) == 2
    assert "M differs" in "".join(text.get_text() for text in ax.texts)


def test_lost_replicates_are_counted_and_not_drawn() -> None:
    """Rows of nan are left out, and the picture says how many there were."""
    ran = replicates(grid(100), lost=(0, 50, 99))
    ax = plots.pit_histogram(ran)
    assert bars(ax).sum() == 97
    assert "n = 97, 3 lost, not drawn" in ax.texts[0].get_text()


@pytest.mark.parametrize("n", [10**4, 10**5])
def test_many_values_are_few_points_with_the_same_extremes(n: int) -> None:
    """At most a thousand points are drawn, and the extremes of the curve move by at most one cell."""
    u = np.sort(np.random.default_rng(1).beta(0.7, 1.3, n))
    x, y = curve(plots.ecdf_difference(replicates(u)))
    gap = np.arange(1, n + 1) / n - u
    assert len(x) <= 1000
    assert y.max() == pytest.approx(gap.max(), abs=1 / lattices.CELLS)
    assert y.min() == pytest.approx(min(0.0, (gap - 1 / n).min()), abs=1 / lattices.CELLS)


@pytest.mark.slow
def test_only_some_of_many_test_functions_have_a_panel_and_it_says_so() -> None:
    """Without names the worst twelve are drawn; with a name, one of 500 is."""
    ran = replicates(np.random.default_rng(1).random((20, 500)))
    panels = plots.pit_histogram(ran)
    assert panels.shape == (12,)
    assert panels[0].figure.get_suptitle().endswith("hatched: outside; the worst 12 of 500 test functions")
    assert plots.pit_histogram(ran, "f321").get_title(loc="left") == "f321"


@pytest.mark.parametrize("draw", CURVES)
def test_of_many_curves_those_outside_have_a_name(draw: Any) -> None:
    """Of 40 curves all are drawn; the two that leave the band of all are named, the others share grey."""
    u = np.column_stack([grid(400, spread=1.8 if j in (7, 31) else 1.0) for j in range(40)])
    ax = draw(replicates(u))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["f7", "f31", "38 others"]
    (others,) = [one for one in ax.collections if one.get_label() == "others"]
    assert len(others.get_segments()) == 38
    assert ax.get_title(loc="left") in ("positions of truths in outputs", "coverage of central intervals")
    assert "2 of 40 outside" in " ".join(ax.texts[0].get_text().split())


def test_many_curves_inside_need_no_names() -> None:
    """Of calibrated curves none is named, and the small print says that none is outside."""
    ax = plots.ecdf(replicates(np.column_stack([grid(100)] * 6)))
    assert ax.get_legend() is None
    assert "none outside" in " ".join(ax.texts[0].get_text().split())


def test_at_most_four_curves_are_named_the_farthest_outside() -> None:
    """Of ten curves outside, the four that leave the band farthest are named."""
    u = np.column_stack([grid(400, spread=1.4 + j / 10) for j in range(10)])
    ax = plots.ecdf_difference(replicates(u))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["f6", "f7", "f8", "f9", "6 others"]


def test_the_coverage_difference_is_the_curve_minus_the_diagonal() -> None:
    """Curve and band are those of the coverage curve, less the nominal level."""
    ran = ranked(np.random.default_rng(3).integers(0, 20, 100), 19)
    (x, y), (_, whole) = curve(plots.coverage_difference(ran)), curve(plots.coverage_curve(ran))
    assert y == pytest.approx(whole - x)
    at, low, _ = band(plots.coverage_difference(ran))
    assert low == pytest.approx(band(plots.coverage_curve(ran))[1] - at)


def test_the_band_of_very_many_values_can_be_seen() -> None:
    """Where the band is a thin strip the axis of counts does not start at 0, and the picture says so."""
    ax = plots.pit_histogram(replicates(grid(10**5)))
    bottom, top = ax.get_ylim()
    (span,) = [patch for patch in ax.patches if patch.get_label() == "band"]
    assert span.get_height() > 0.4 * (top - bottom)
    assert "axis cut" in ax.texts[0].get_text()
    usual = plots.pit_histogram(replicates(grid(1000)))
    assert usual.get_ylim()[0] == 0
    assert "axis cut" not in usual.texts[0].get_text()


def test_panels_of_one_figure_say_once_what_they_share() -> None:
    """Labels and n are those of the figure, and not repeated; with Axes of the user each panel has its own."""
    panels = plots.pit_histogram(complete(50, 7))
    figure = panels[0].figure
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("position of the truth in the output", "count")
    assert figure.get_suptitle().startswith("n = 50; grey: 95 % band")
    assert not any(ax.texts or ax.get_xlabel() or ax.get_ylabel() for ax in panels)
    _, pair = plt.subplots(1, 2)
    plots.pit_histogram(complete(50, 7), ["f1", "f2"], ax=pair)
    assert all(ax.get_xlabel() and ax.texts[0].get_text().startswith("n = 50") for ax in pair)


def test_an_axes_of_the_user_is_drawn_on() -> None:
    """ax= is used and returned, and holds one test function of several."""
    _, ax = plt.subplots()
    assert plots.pit_histogram(replicates(np.random.default_rng(1).random((20, 3))), ax=ax) is ax
    assert "the worst of 3 test functions" in ax.texts[0].get_text()
    _, pair = plt.subplots(1, 2)
    assert list(plots.pit_histogram(complete(20, 2), ["f0", "f1"], ax=pair)) == list(pair)


@pytest.mark.parametrize("draw", [plots.pit_histogram, *CURVES])
def test_bad_input_is_refused_with_what_is_right(draw: Any) -> None:
    """Unknown names, wrong types, wrong levels and runs without a replicate are refused before drawing."""
    ran = replicates(np.random.default_rng(1).random((20, 12)))
    with pytest.raises(rt.errors.InvalidStudy, match=r"'f0', .* and 2 more, but 'theta' came"):
        draw(ran, "theta")
    with pytest.raises(rt.errors.InvalidStudy, match="at least one test function"):
        draw(ran, [])
    with pytest.raises(TypeError, match="Result or Replicates is needed, but list"):
        draw([0.5])
    with pytest.raises(rt.errors.InvalidStudy, match="confidence must lie strictly"):
        draw(ran, confidence=95)
    with pytest.raises(rt.errors.InvalidStudy, match="all 2 were lost"):
        draw(replicates([0.1, 0.2], lost=(0, 1)))
    with pytest.raises(TypeError, match="ax must be matplotlib Axes"):
        draw(ran, "f0", ax="here")
    assert not plt.get_fignums()


@pytest.mark.parametrize("bins", [0, -1, 2.5, True, "ten"])
def test_bins_are_a_whole_number(bins: Any) -> None:
    """A number of bars that is none is refused."""
    with pytest.raises(rt.errors.InvalidStudy, match="bins must be a whole number"):
        plots.pit_histogram(replicates([0.5, 0.6]), bins=bins)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("bins", [None, 1, 2])
def test_few_ranks_have_an_axis_of_counts(n: int, bins: int | None) -> None:
    """Where the band is one number and every bar is that high, the axis starts at 0 and nothing is warned of."""
    low, high = plots.pit_histogram(ranked(np.arange(n) % 3, 2), bins=bins).get_ylim()
    assert low == 0 < high


def test_as_many_axes_as_panels_are_needed() -> None:
    """Three test functions do not fit two Axes."""
    _, pair = plt.subplots(1, 2)
    with pytest.raises(rt.errors.InvalidStudy, match="3 Axes, one for each panel, but 2"):
        plots.pit_histogram(complete(20, 3), ["f0", "f1", "f2"], ax=pair)


ODD = {
    "one replicate": complete(1),
    "one replicate, nothing known": replicates([0.3]),
    "all equal": replicates(np.full(50, 0.5)),
    "all zero": replicates(np.zeros(50)),
    "all one": replicates(np.ones(50)),
    "M = 1": ranked(np.arange(50) % 2, 1),
    "lost": complete(50, 2, lost=(3, 49)),
    "unequal M": replicates(grid(40), rank=np.arange(40) % 5, draws=np.arange(40)[:, None] % 7 + 5),
    "exact or ranks": replicates(grid(40), rank=np.arange(40) % 5, draws=(np.arange(40)[:, None] % 2) * 7),
    "auto and exact": complete(40, 2, sees=["output", "data"]),
    "sd of 0 and inf": complete(40, sd=np.where(np.arange(40) < 20, 0.0, np.inf)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_odd_runs_are_drawn(name: str) -> None:
    """Whatever a run holds, every picture of it is drawn and saved without a warning."""
    draws: list[Any] = [plots.pit_histogram, *CURVES, plots.z_contraction, plots.recovery, plots.data_averaged]
    draws.append(plots.scatter_matrix)
    for draw in draws:
        figure = np.ravel(np.array(draw(ODD[name]), object))[0].figure
        figure.savefig(io.BytesIO(), format="svg")
    plots.plot(ODD[name]).savefig(io.BytesIO(), format="svg")


def test_the_settings_of_the_user_stay() -> None:
    """Drawing changes no setting of matplotlib."""
    before = dict(plt.rcParams)
    plots.plot(complete(30, 2))
    assert dict(plt.rcParams) == before
