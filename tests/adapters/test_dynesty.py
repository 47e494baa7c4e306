"""dynesty itself as a procedure, on a normal mean whose posterior is known."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue import adapters
from ringtrue.execution.store.identity import fingerprint
from tests.builders import refusal, says

pytest.importorskip("dynesty")
pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]


def log_likelihood(theta: Any, y: Any, noise: float = 0.5) -> float:
    """Return that of one observation, up to a constant."""
    return float(-0.5 * ((y - theta[0]) / noise) ** 2)


def sure(theta: Any, y: Any) -> float:
    """Return the same for noise that is thought to be a fifth of what it is."""
    return log_likelihood(theta, y, 0.1)


def build(density: Any = log_likelihood, **options: Any) -> Any:
    """Return a procedure with few points."""
    return adapters.dynesty(density, stats.norm.ppf, 1, **{"live": 50, "names": ["mu"], **options})


def model(theta: Any, rng: Any) -> Any:
    """Return one observation."""
    return theta["mu"] + 0.5 * rng.normal()


def test_draws_have_the_weights_of_the_posterior() -> None:
    """Mean 0.8 and variance 0.2, as after y = 1; the same rng gives the same."""
    one, same = (build(live=400)(None, 1.0, np.random.default_rng(seed)) for seed in (1, 1))
    drawn, weights = one.values["mu"], one.weights / np.sum(one.weights)
    assert np.array_equal(drawn, same.values["mu"])
    # The places of nested points are known to 1 / live each, so that 6 errors of the effective number are ample.
    mean, error = weights @ drawn, np.sqrt(0.2 * np.sum(weights**2))
    assert mean == pytest.approx(0.8, abs=6 * error)
    assert weights @ (drawn - mean) ** 2 == pytest.approx(0.2, abs=6 * 0.2 * np.sqrt(2 * np.sum(weights**2)))
    assert 0 < one.diagnostics["log evidence, its error"] < 1


def test_right_likelihood_passes_and_a_wrong_one_is_caught() -> None:
    """A likelihood that is sure of less noise than there is gives intervals that are too narrow."""
    belief = {"mu": rt.Normal(0, 1)}
    assert rt.check(belief, model, build(), n=15, alpha=1e-6).verdict is not rt.Verdict.MISCALIBRATED
    # The posterior has a quarter of the spread that it should have: most truths lie beyond all draws.
    assert rt.check(belief, model, build(sure), n=15).verdict is rt.Verdict.MISCALIBRATED


def test_identity_is_what_it_does() -> None:
    """The same one built again is the same; another likelihood or number of points is not."""

    def mark(procedure: Any) -> str:
        return fingerprint(rt.Study({"mu": rt.Normal(0, 1)}, model, procedure))["procedure"]

    assert mark(build()) == mark(build())
    assert len({mark(build()), mark(build(sure)), mark(build(live=51))}) == 3


def test_what_cannot_run_is_refused() -> None:
    """No entries, no points: one sentence each."""
    says(refusal(lambda: build(live=1)), "live", "at least 2")
    says(refusal(lambda: adapters.dynesty(log_likelihood, stats.norm.ppf, 0)), "size", "at least 1")
