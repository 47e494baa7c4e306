"""What is drawn of the outputs is what they said."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue import plots, uniformity
from ringtrue.plots import outputs

from .runs import complete, ranked, replicates


def line(ax: Any, label: str) -> Any:
    """Return the coordinates of the line with this label."""
    (one,) = [one for one in ax.lines if one.get_label() == label]
    return np.asarray(one.get_xdata()), np.asarray(one.get_ydata())


def test_scores_are_those_of_the_summaries() -> None:
    """Points are (1 - sd^2 / var(truth), (truth - mean) / sd), a replicate each."""
    ran = complete(200)
    x, y = line(plots.z_contraction(ran), "replicates")
    assert y == pytest.approx((ran.truth - ran.mean)[:, 0] / ran.sd[:, 0])
    assert x == pytest.approx(1 - ran.sd[:, 0] ** 2 / ran.truth.var(ddof=1))


def test_scores_of_normal_outputs_are_the_z_of_the_run() -> None:
    """For normal outputs the z-score is the normal score of u."""
    ran = complete(100)
    assert outputs.scores(ran, 0)[1] == pytest.approx(ran.z[:, 0])


def test_far_points_are_drawn_at_the_edge_and_counted() -> None:
    """A wild z-score and an output much wider than the belief are crosses at the edge."""
    sd = np.full(100, 0.7)
    sd[:3], sd[3:5] = 1e-3, 50.0
    ax = plots.z_contraction(complete(100, sd=sd))
    x, y = line(ax, "beyond")
    assert (np.abs(y).max(), x.min()) == (8.0, -1.0)
    assert f"{len(x)} beyond" in ax.texts[0].get_text()
    assert len(line(ax, "replicates")[0]) + len(x) == 100


def test_outputs_without_sd_are_counted() -> None:
    """What has no sd is not drawn, and the picture says how many."""
    sd = np.full(50, 0.7)
    sd[:20] = np.nan
    ax = plots.z_contraction(complete(50, sd=sd))
    assert "20 without sd" in ax.texts[0].get_text()
    assert "no mean and sd" in plots.z_contraction(ranked(np.arange(50) % 2, 1)).texts[0].get_text()


def test_many_points_are_thinned_and_keep_their_extremes() -> None:
    """Of 20 000 points a thousand are drawn, the highest and lowest among them."""
    ran = complete(20_000, sd=np.random.default_rng(1).uniform(0.4, 0.9, 20_000))
    x, y = line(plots.z_contraction(ran), "replicates")
    contraction, z = outputs.scores(ran, 0)
    assert len(x) <= outputs.POINTS
    assert (x.min(), x.max(), y.min(), y.max()) == (contraction.min(), contraction.max(), z.min(), z.max())


def test_exact_beliefs_give_the_ecdf_of_weak_positions() -> None:
    """Where mu0 has a law, the curve is the ECDF of the weak u less the diagonal, over the exact band."""
    ran = complete(300)
    ax = plots.data_averaged(ran)
    x, y = line(ax, "outputs")
    assert y[1:-1] == pytest.approx([(ran.weak_u[:, 0] < at).mean() - at for at in x[1:-1]])
    corners = ax.collections[0].get_paths()[0].vertices
    exact = uniformity.band(300, draws=249)
    assert corners[:, 1].min() == pytest.approx((exact.low - exact.points).min())


def test_other_beliefs_give_two_ecdfs() -> None:
    """Where mu0 has no law, the ECDFs of the draws and of fresh draws of mu0 are drawn, to their extremes."""
    unknown = np.full(400, np.nan)
    ran = complete(400, weak_u=unknown, weak_z=unknown)
    ax = plots.data_averaged(ran)
    for label, values in (("outputs", ran.weak_value[:, 0]), ("belief", ran.reference[:, 0])):
        x, y = line(ax, label)
        assert x[1:] == pytest.approx(np.sort(values))
        assert y == pytest.approx(np.arange(401) / 400)


def test_the_band_of_two_samples_is_kolmogorovs() -> None:
    """The half-width is the Kolmogorov quantile times sqrt(1/n + 1/m)."""
    unknown = np.full(400, np.nan)
    ax = plots.data_averaged(complete(400, weak_u=unknown, weak_z=unknown))
    corners = ax.collections[0].get_paths()[0].vertices
    x, y = line(ax, "belief")
    at = corners[np.isclose(corners[:, 0], x[200])][:, 1]
    assert at.max() == pytest.approx(y[200] + special.kolmogi(0.05) * (2 / 400) ** 0.5)


def test_without_a_belief_it_says_so() -> None:
    """Nothing to compare with is a sentence, not an error."""
    assert "belief is not known" in plots.data_averaged(replicates([0.1, 0.5])).texts[0].get_text()


def test_the_matrix_holds_truths_and_draws_in_pairs() -> None:
    """Off the diagonal the clouds are the columns of truth and weak_value; above it nothing is drawn."""
    ran = complete(50, 3)
    matrix = plots.scatter_matrix(ran)
    assert matrix.shape == (3, 3)
    for label, values in (("truths", ran.truth), ("outputs", ran.weak_value)):
        x, y = line(matrix[2, 1], label)
        assert (x == values[:, 1]).all()
        assert (y == values[:, 2]).all()
        assert line(matrix[1, 1], label)[0][1:] == pytest.approx(np.sort(values[:, 1]))
    assert not matrix[0, 2].axison


def test_the_matrix_stops_at_six() -> None:
    """More coordinates are left out and counted; naming more is refused."""
    matrix = plots.scatter_matrix(complete(20, 8))
    assert matrix.shape == (6, 6)
    assert "6 of 8 test functions" in matrix[0, 0].texts[0].get_text()
    with pytest.raises(rt.InvalidStudy, match="at most 6 test functions here, but 7"):
        plots.scatter_matrix(complete(20, 8), [f"f{j}" for j in range(7)])


def test_the_matrix_fits_given_axes() -> None:
    """An array of d x d Axes is drawn on; another number is refused."""
    _, given = plt.subplots(2, 2)
    assert plots.scatter_matrix(complete(20, 2), ax=given)[1, 0] is given[1, 0]
    with pytest.raises(rt.InvalidStudy, match="9 Axes"):
        plots.scatter_matrix(complete(20, 3), ax=given)
