"""emcee itself as a procedure, on a normal mean whose posterior is known."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue import adapters
from ringtrue.execution.store.identity import fingerprint
from tests.builders import refusal, says

pytest.importorskip("emcee")
pytestmark = pytest.mark.filterwarnings("ignore")

#: Of N(0, 1) after one observation with noise of sd 1/2: mean 0.8 y, sd 0.2 ** 0.5.
WEIGHT, SD = 0.8, 0.2**0.5


def log_prob(theta: Any, y: Any, noise: float = 0.5) -> float:
    """Return the log density of a normal mean, up to a constant."""
    return float(-0.5 * theta[0] ** 2 - 0.5 * ((y - theta[0]) / noise) ** 2)


def sure(theta: Any, y: Any) -> float:
    """Return the same for noise that is thought to be a fifth of what it is."""
    return log_prob(theta, y, 0.1)


def exact(belief: Any, y: Any, walkers: int, rng: Any) -> Any:
    """Start in the posterior, so that the chains are stationary from the first step on."""
    return rng.normal(WEIGHT * y, SD, (walkers, 1))


def build(density: Any = log_prob, **options: Any) -> Any:
    """Return a procedure with small ensembles."""
    return adapters.emcee(density, exact, **{"walkers": 10, "steps": 150, "discard": 50, "names": ["mu"], **options})


def model(theta: Any, rng: Any) -> Any:
    """Return one observation."""
    return theta["mu"] + 0.5 * rng.normal()


def moments(procedure: Any, seed: int) -> Any:
    """Return the mean and the mean square, about the exact posterior of y = 1, of 80 ensembles."""
    rng = np.random.default_rng(seed)
    drawn = np.stack([procedure(None, 1.0, rng).values["mu"] for _ in range(40)]).reshape(80, -1)
    z = (drawn - WEIGHT) / SD
    return z.mean(axis=1), np.square(z).mean(axis=1)


def deviation(procedure: Any, seed: int = 1) -> float:
    """Return the smaller p-value of two t-tests: ensembles are independent, whatever happens inside of them."""
    mean, square = moments(procedure, seed)
    return float(min(stats.ttest_1samp(mean, 0).pvalue, stats.ttest_1samp(square, 1).pvalue))


@pytest.mark.slow
def test_draws_are_those_of_the_posterior() -> None:
    """Mean and variance over 80 independent ensembles, false alarm 1e-6 each; half the noise is seen."""
    assert deviation(build()) > 1e-6
    assert deviation(build(lambda theta, y: log_prob(theta, y, 0.25))) < 1e-6


def test_ensembles_lie_one_behind_the_other() -> None:
    """Two chains of steps times walkers, from different numbers; the same rng gives the same, another one others."""
    one, same, other = (build()(None, 1.0, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.chains == 2
    drawn = one.values["mu"]
    assert drawn.shape == (2 * 100 * 10,)
    assert not np.isin(drawn[:1000], drawn[1000:]).any()
    # A walker that did not move is where it was one step before, ten places on.
    assert (drawn[10:1000] == drawn[:990]).any()
    assert np.array_equal(drawn, same.values["mu"])
    assert not np.isin(drawn, other.values["mu"]).any()
    assert 0 < one.diagnostics["acceptance"] < 1
    assert build(names=None, ensembles=3)(None, 1.0, np.random.default_rng(1)).values.shape == (3000, 1)


@pytest.mark.slow
def test_right_density_passes_and_a_wrong_one_is_caught() -> None:
    """A density that is sure of less noise than there is gives intervals that are too narrow."""
    belief = {"mu": rt.Normal(0, 1)}
    right = rt.check(belief, model, build(), n=40, alpha=1e-6)
    assert right.verdict is not rt.Verdict.MISCALIBRATED
    assert {row.route for row in right.tests if row.level == "strong"} == {"2 chains of 1000"}
    # The posterior has a quarter of the spread that it should have: most truths lie beyond all draws.
    assert rt.check(belief, model, build(sure), n=40).verdict is rt.Verdict.MISCALIBRATED


def test_identity_is_what_it_does() -> None:
    """The same one built again is the same; another density or number of steps is not."""

    def mark(procedure: Any) -> str:
        return fingerprint(rt.Study({"mu": rt.Normal(0, 1)}, model, procedure))["procedure"]

    assert mark(build()) == mark(build())
    assert len({mark(build()), mark(build(sure)), mark(build(steps=151))}) == 3


def test_what_cannot_run_is_refused() -> None:
    """Nothing kept, one ensemble, a start of another shape: one sentence each."""
    says(refusal(lambda: build(discard=150)), "steps=150", "discard=150")
    says(refusal(lambda: build(ensembles=1)), "ensembles", "at least 2")
    says(refusal(lambda: build(names=["a", "b"])(None, 1.0, np.random.default_rng(1))), r"\(10, 2\)", r"\(10, 1\)")
