"""blackjax itself as a procedure, on a normal mean whose posterior is known."""

from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue import adapters
from ringtrue.execution.store.identity import fingerprint
from tests.builders import refusal, says

blackjax = pytest.importorskip("blackjax")
jnp = pytest.importorskip("jax.numpy")
pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]

BELIEF = {"mu": rt.Normal(0, 1), "sd": rt.Gamma(4, 8)}


def log_density(position: Any, y: Any, scale: float = 1.0) -> Any:
    """Return that of mu and log(sd), with the Jacobian, up to a constant; a scale makes the noise another."""
    sd = jnp.exp(position["log_sd"])
    prior = -0.5 * position["mu"] ** 2 + 4 * position["log_sd"] - 8 * sd
    return prior - jnp.sum(0.5 * ((y - position["mu"]) / (scale * sd)) ** 2 + jnp.log(sd))


def sure(position: Any, y: Any) -> Any:
    """Return the same for noise that is thought to be half of what it is."""
    return log_density(position, y, 0.5)


def theta(position: Any) -> dict[str, Any]:
    """Return the parameters at a position."""
    return {"mu": position["mu"], "sd": jnp.exp(position["log_sd"])}


def start(belief: Any, y: Any, chains: int, rng: Any) -> dict[str, Any]:
    """Start around the prior's middle."""
    return {"mu": rng.normal(size=chains), "log_sd": rng.normal(-1, 0.3, size=chains)}


def model(theta: Any, rng: Any) -> Any:
    """Return six observations."""
    return theta["mu"] + theta["sd"] * rng.normal(size=6)


def build(density: Any = log_density, **options: Any) -> Any:
    """Return a procedure with short chains."""
    return adapters.blackjax(density, start, theta=theta, **{"warmup": 200, "draws": 100, **options})


@pytest.fixture(scope="module")
def right() -> Any:
    """Return one procedure for all tests: it compiles once."""
    return build()


def test_right_density_passes_and_a_wrong_one_is_caught(right: Any) -> None:
    """A check at 1e-6; a density for half of the noise that there is gives about half of the spread of mu."""
    assert rt.check(BELIEF, model, right, n=60, alpha=1e-6).verdict is not rt.Verdict.MISCALIBRATED

    def noisier(theta: Any, rng: Any) -> Any:
        return model({**theta, "sd": 2 * theta["sd"]}, rng)

    assert rt.check(BELIEF, noisier, right, n=60).verdict is rt.Verdict.MISCALIBRATED
    output = right(None, np.zeros(6), np.random.default_rng(1))
    assert output.values["mu"].shape == (200,)
    assert not np.isclose(output.values["mu"][:100], output.values["mu"][100:]).any()
    assert output.diagnostics.keys() == {"divergences", "leapfrog steps", "acceptance"}


def test_other_algorithms_and_options_of_the_adaptation() -> None:
    """HMC takes its number of steps, and says what it does; the same rng gives the same."""
    procedure = build(algorithm=blackjax.hmc, num_integration_steps=7, target_acceptance_rate=0.9)
    one, same = (procedure(None, np.zeros(6), np.random.default_rng(3)) for _ in range(2))
    assert one.diagnostics["leapfrog steps"] == 7
    assert np.array_equal(one.values["sd"], same.values["sd"])
    assert (one.values["sd"] > 0).all()


def test_identity_is_what_it_does(right: Any) -> None:
    """The same one built again, or after a call, is the same; another density or number of draws is not."""

    def mark(procedure: Any) -> str:
        return fingerprint(rt.Study(BELIEF, model, procedure))["procedure"]

    right(None, np.zeros(6), np.random.default_rng(1))
    assert mark(right) == mark(build())
    assert len({mark(build()), mark(build(sure)), mark(build(draws=101))}) == 3


def test_what_cannot_run_is_refused() -> None:
    """One chain, chains that start nowhere: one sentence each."""
    says(refusal(lambda: build(chains=1)), "chains", "at least 2")
    lost = adapters.blackjax(log_density, lambda mu0, y, chains, rng: np.zeros(3))
    says(refusal(lambda: lost(None, 1.0, np.random.default_rng(1))), "2 chains", r"\(3,\)")
