"""What is drawn of single fits is what is known of them."""

from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue import plots

from ..builders import BELIEF, noisy, refusal, says
from ..judgement.test_fits import chains
from .test_overview import texts


@pytest.fixture(scope="module")
def stuck() -> rt.Result:
    """Return a run in which some chains never move, so that R-hat is infinite."""
    return rt.check(BELIEF, noisy, chains("constant", share=0.2), n=60)


def drawn(ax: Any, label: str) -> tuple[Any, Any]:
    """Return the coordinates of what is drawn with this label, in order of x."""
    (one,) = [line for line in ax.lines if line.get_label() == label]
    order = np.argsort(one.get_xdata())
    return np.asarray(one.get_xdata())[order], np.asarray(one.get_ydata())[order]


def test_every_fit_is_a_point_and_flagged_ones_are_diamonds(stuck: rt.Result) -> None:
    """At its truth and its effective size; the limit is that of four chains."""
    ax = plots.diagnostics(stuck, "effective size")
    found, truth = stuck.diagnostics, stuck.replicates.truth[:, 0]
    for label, which in (("in order", ~found.flagged), ("flagged", found.flagged)):
        order = np.argsort(truth[which])
        x, y = drawn(ax, label)
        np.testing.assert_array_equal(x, truth[which][order])
        np.testing.assert_array_equal(y, found.columns["effective size"][which][order])
    (limit,) = [line for line in ax.lines if line.get_label() == "limit"]
    assert set(limit.get_ydata()) == {20.0}
    assert f"{found.flagged.sum()} beyond the limit" in texts(ax.figure)


def test_what_is_infinite_stands_above_the_limit(stuck: rt.Result) -> None:
    """And is counted; R-hat without a limit of 1.2 in the picture would look as if all were well."""
    ax = plots.diagnostics(stuck, "R-hat")
    assert np.isinf(stuck.diagnostics.columns["R-hat"][stuck.diagnostics.flagged]).all()
    assert drawn(ax, "flagged")[1].min() > 1.2
    assert f"{stuck.diagnostics.flagged.sum()} infinite" in texts(ax.figure)


def test_the_axis_is_what_tells_flagged_fits_from_others() -> None:
    """Of three parameters, the last; another may be asked for."""

    def fit(mu0: Any, y: Any, rng: np.random.Generator) -> rt.Draws:
        said = {"divergences": y[:, 2] > 0.5, "k-hat": rng.random(60)}
        return rt.Draws(rng.normal(size=(30, 60, 3)), iid=True, diagnostics=said)

    ran = rt.run(rt.Normal(np.zeros(3), np.ones(3)), lambda theta: theta, fit, n=60, batch=60)
    axes = plots.diagnostics(ran)
    assert [ax.get_xlabel() for ax in axes] == ["true theta[2]"] * 2
    assert axes[0].get_ylabel() == "divergences"
    assert plots.diagnostics(ran, "k-hat", against="theta[0]").get_xlabel() == "true theta[0]"
    limited = plots.diagnostics(ran, "k-hat", limits={"k-hat": 0.9})
    assert f"{(ran.arrays['diagnostic/k-hat'] > 0.9).sum()} beyond" in texts(limited.figure)
    says(refusal(lambda: plots.diagnostics(ran, "ELBO")), "k-hat", "'ELBO'")
    says(refusal(lambda: plots.diagnostics(ran, against="phi")), r"theta\[0\]", "'phi'")


def test_without_diagnostics_there_is_nothing_to_draw() -> None:
    """One sentence, and no empty picture."""
    ran = rt.run(BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, 1.0), n=10)
    says(refusal(lambda: plots.diagnostics(ran)), "this run has none")
