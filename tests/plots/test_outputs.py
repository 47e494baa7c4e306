"""What is drawn of the outputs is what they said."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue import plots
from ringtrue.plots import clouds
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
    assert "neither the belief nor" in plots.data_averaged(replicates([0.1, 0.5])).texts[0].get_text()


def test_without_a_belief_truths_stand_in_and_there_is_no_band() -> None:
    """The curves are those of draws and truths, and it is said why there is no band; with a belief there is one."""
    unknown = np.full(300, np.nan)
    ran = complete(300, weak_u=unknown, weak_z=unknown, reference=np.empty((0, 1)))
    ax = plots.data_averaged(ran)
    for label, values in (("truths", ran.truth), ("outputs", ran.weak_value)):
        assert line(ax, label)[0][1:] == pytest.approx(np.sort(values[:, 0]))
    assert not ax.collections
    assert "belief is not known, so there is no band" in " ".join(ax.texts[0].get_text().split())
    assert plots.data_averaged(complete(300)).collections


def test_panels_of_different_kinds_keep_their_own_labels() -> None:
    """If one test function has an exact law and another has none, no axis has the label of the other."""
    ran = complete(100, 2, weak_u=np.column_stack([np.linspace(0.01, 0.99, 100), np.full(100, np.nan)]))
    assert [ax.get_xlabel() for ax in plots.data_averaged(ran)] == ["position in the belief", "value"]
    assert plots.data_averaged(complete(100, 2))[0].figure.get_supxlabel() == "position in the belief"


def test_contours_hold_what_they_say() -> None:
    """Of many points those outside the outermost contour are drawn, one in twenty; a heavy tail changes nothing."""
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(2000, 2))
    for values in (truth, np.exp(3 * truth), rng.standard_cauchy((2000, 2))):
        cloud = clouds.contoured(*values.T)
        assert cloud is not None
        assert cloud.outside.sum() == 100
        assert (cloud.x.min(), cloud.x.max()) == (values[:, 0].min(), values[:, 0].max())
    matrix = plots.scatter_matrix(complete(400, 2))
    assert len(line(matrix[1, 0], "truths")[0]) == 20
    assert "contours hold 50, 80 and 95 %" in " ".join(matrix[0, 1].texts[0].get_text().split())


@pytest.mark.parametrize("x", [np.ones(500), np.arange(500) % 5, np.arange(50.0)], ids=["constant", "few", "short"])
def test_what_has_no_density_is_drawn_as_points(x: Any) -> None:
    """Constants, few values and few points have no contours; nor have points on a line."""
    assert clouds.contoured(x, np.random.default_rng(1).normal(size=x.size)) is None
    assert clouds.contoured(np.arange(500.0), np.arange(500.0)) is None


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
    assert "6 of 8 test functions" in " ".join(matrix[0, -1].texts[0].get_text().split())
    with pytest.raises(rt.errors.InvalidStudy, match="at most 6 test functions here, but 7"):
        plots.scatter_matrix(complete(20, 8), [f"f{j}" for j in range(7)])


def test_the_matrix_fits_given_axes() -> None:
    """An array of d x d Axes is drawn on; another number is refused."""
    _, given = plt.subplots(2, 2)
    assert plots.scatter_matrix(complete(20, 2), ax=given)[1, 0] is given[1, 0]
    with pytest.raises(rt.errors.InvalidStudy, match="9 Axes"):
        plots.scatter_matrix(complete(20, 3), ax=given)
