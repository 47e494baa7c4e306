"""What is drawn of the outputs' means and sds is what they said."""

from typing import Any

import numpy as np
import pytest

from ringtrue import plots
from ringtrue.plots import estimates
from ringtrue.plots.style import POINTS

from ..builders import complete, line, ranked, replicates


def test_scores_are_those_of_the_summaries() -> None:
    """Points are (1 - sd^2 / var(truth), (truth - mean) / sd), a replicate each."""
    ran = complete(200)
    x, y = line(plots.z_contraction(ran), "replicates")
    assert y == pytest.approx((ran.truth - ran.mean)[:, 0] / ran.sd[:, 0])
    assert x == pytest.approx(1 - ran.sd[:, 0] ** 2 / ran.truth.var(ddof=1))


def test_scores_of_normal_outputs_are_the_z_of_the_run() -> None:
    """For normal outputs the z-score is the normal score of u."""
    ran = complete(100)
    assert estimates.scores(ran, 0)[1] == pytest.approx(ran.z[:, 0])


def test_far_points_are_drawn_at_the_edge_and_counted() -> None:
    """A wild z-score and an output much wider than the belief are crosses at the edge."""
    sd = np.full(100, 0.7)
    sd[:3], sd[3:5] = 1e-3, 50.0
    ax = plots.z_contraction(complete(100, sd=sd))
    x, y = line(ax, "beyond")
    assert (np.abs(y).max(), x.min()) == (8.0, -1.0)
    assert f"{len(x)} beyond" in words(ax)
    assert len(line(ax, "replicates")[0]) + len(x) == 100


def test_outputs_without_sd_are_counted() -> None:
    """What has no sd is not drawn, and the picture says how many."""
    sd = np.full(50, 0.7)
    sd[:20] = np.nan
    ax = plots.z_contraction(complete(50, sd=sd))
    assert "20 without sd" in words(ax)
    assert "no mean and sd" in plots.z_contraction(ranked(np.arange(50) % 2, 1)).texts[0].get_text()


def test_many_points_are_thinned_and_keep_their_extremes() -> None:
    """Of 20 000 points a thousand are drawn, the highest and lowest among them."""
    ran = complete(20_000, sd=np.random.default_rng(1).uniform(0.4, 0.9, 20_000))
    x, y = line(plots.z_contraction(ran), "replicates")
    contraction, z = estimates.scores(ran, 0)
    assert len(x) <= POINTS
    assert (x.min(), x.max(), y.min(), y.max()) == (contraction.min(), contraction.max(), z.min(), z.max())


def words(ax: Any) -> str:
    """Return everything that is written in and above a panel."""
    return " ".join(text.get_text().replace("\n", " ") for text in ax.texts)


def bars(ax: Any) -> list[tuple[float, float, float]]:
    """Return (truth, lower end, upper end) of every bar."""
    made = [one for one in ax.collections if one.get_label() == "bars"]
    return sorted((float(a[0]), float(a[1]), float(b[1])) for one in made for a, b in one.get_segments())


def test_recovery_draws_means_against_truths_with_bars() -> None:
    """Points are (truth, mean), bars are 1.96 sd to either side, and those that miss the diagonal look different."""
    ran = complete(150)
    ax = plots.recovery(ran)
    truth, mean, sd = ran.truth[:, 0], ran.mean[:, 0], ran.sd[:, 0]
    missed = np.abs(truth - mean) > 1.96 * sd
    assert missed.any()
    for label, which in (("reach", ~missed), ("miss", missed)):
        x, y = line(ax, label)
        assert x.tolist() == truth[which].tolist()
        assert y.tolist() == mean[which].tolist()
    expected = sorted(zip(truth, mean - 1.96 * sd, mean + 1.96 * sd, strict=True))
    assert np.array(bars(ax)) == pytest.approx(np.array(expected))
    assert f"{100 * (1 - missed.mean()):.3g} % reach" in words(ax)
    assert f"r = {np.corrcoef(truth, mean)[0, 1]:.2f}" in words(ax)


def test_recovery_has_a_diagonal_and_equal_axes() -> None:
    """Both axes have the same limits, so that the diagonal is one."""
    ax = plots.recovery(complete(50))
    assert ax.get_xlim() == ax.get_ylim()
    assert ax.get_box_aspect() == 1
    x, y = line(ax, "diagonal")
    assert list(x) == list(y) == list(ax.get_xlim())


def test_recovery_draws_some_of_many_and_counts_all() -> None:
    """Of 5000 outputs 200 are drawn, a wild mean at the edge among them, and the small print is about all."""
    mean = np.zeros(5000)
    mean[17] = 1e6
    ax = plots.recovery(complete(5000, mean=mean))
    assert len(bars(ax)) <= 200
    text = words(ax)
    assert "200 drawn" in text
    assert "1 beyond" in text
    assert ax.get_ylim()[1] < 20
    assert max(max(line(ax, "miss")[1]), max(line(ax, "reach")[1])) == pytest.approx(ax.get_ylim()[1])


def test_means_beyond_the_edge_are_marked_as_such() -> None:
    """A mean that is drawn at the edge, and is not there, has a cross; without any there is none."""
    mean = np.zeros(300)
    mean[17] = 1e6
    ax = plots.recovery(complete(300, mean=mean))
    x, y = line(ax, "beyond")
    assert (list(x), list(y)) == ([complete(300).truth[17, 0]], [ax.get_ylim()[1]])
    assert not [one for one in plots.recovery(complete(300)).lines if one.get_label() == "beyond"]


def test_bars_of_what_is_never_negative_end_at_zero() -> None:
    """Where truths and means are above 0, so are all bars; one negative truth, the broken twin, and bars pass it."""
    truth, mean = np.abs(complete(150).truth[:, 0]), np.full(150, 0.3)
    ax = plots.recovery(complete(150, truth=truth, mean=mean))
    assert min(low for _, low, _ in bars(ax)) == 0
    assert ax.get_ylim()[0] > -0.5
    truth[0] = -0.1
    assert min(low for _, low, _ in bars(plots.recovery(complete(150, truth=truth, mean=mean)))) < -1


def test_recovery_without_estimates_says_so() -> None:
    """Where nothing is known, the panel says so; where some outputs have no sd, it counts them."""
    assert "no mean and sd" in words(plots.recovery(replicates([0.1, 0.5])))
    sd = np.full(50, 0.7)
    sd[:20] = np.nan
    assert "20 without sd" in words(plots.recovery(complete(50, sd=sd)))
    assert "r =" not in words(plots.recovery(complete(1)))
