"""What is drawn of the outputs is what they said."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue import plots
from ringtrue.statistics import uniformity

from ..builders import complete, line, replicates


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
    with pytest.raises(rt.errors.InvalidStudy, match="at most 6 test functions here, but 7"):
        plots.scatter_matrix(complete(20, 8), [f"f{j}" for j in range(7)])


def test_the_matrix_fits_given_axes() -> None:
    """An array of d x d Axes is drawn on; another number is refused."""
    _, given = plt.subplots(2, 2)
    assert plots.scatter_matrix(complete(20, 2), ax=given)[1, 0] is given[1, 0]
    with pytest.raises(rt.errors.InvalidStudy, match="9 Axes"):
        plots.scatter_matrix(complete(20, 3), ax=given)
