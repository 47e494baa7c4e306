"""InferenceData of ArviZ itself, as outputs and in lists."""

from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.distributions import as_distribution
from ringtrue.replicates.chains import Placed
from tests.builders import refusal, says
from tests.replicates.test_chains import ar1

az = pytest.importorskip("arviz")
pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]


def inference(draws: Any, **groups: Any) -> Any:
    """Return draws of mu with axes (chain, draw), with what samplers say."""
    return az.from_dict({"posterior": {"mu": draws}, **groups}) if _trees() else az.from_dict({"mu": draws}, **groups)


def _trees() -> bool:
    """Whether this ArviZ has DataTree, which is made from one dict, in place of InferenceData."""
    return not hasattr(az, "InferenceData")


def test_inference_data_are_chains() -> None:
    """The posterior and nothing else, chain after chain."""
    draws = np.arange(8.0).reshape(2, 4)
    found = as_distribution(inference(draws, sample_stats={"diverging": draws > 9}), what="the output")
    assert found.chains == 2
    assert {name: part.tolist() for name, part in found.values.items()} == {"mu": list(range(8))}


def test_lists_of_inference_data_are_checked() -> None:
    """A list gives what the arrays in it give."""
    rng = np.random.default_rng(1)
    theta, draws = rng.normal(size=30), rng.normal(size=(30, 2, 50))
    found = rt.check_draws({"mu": theta}, [inference(one) for one in draws])
    assert found.to_dict() == rt.check_draws({"mu": theta}, {"mu": draws}, chains=2).to_dict()


def test_without_a_posterior_is_refused() -> None:
    """A prior alone is no output."""
    if _trees():
        prior = az.from_dict({"prior": {"mu": np.zeros((1, 5))}})
    else:
        prior = az.from_dict(prior={"mu": np.zeros((1, 5))})
    says(refusal(lambda: as_distribution(prior, what="the output")), "InferenceData|DataTree")


@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.5, 0.97])
@pytest.mark.parametrize("shape", [(4, 100), (2, 51), (3, 20)], ids=str)
def test_agreement_is_that_of_arviz(rho: float, shape: tuple[int, int]) -> None:
    """R-hat and the bulk effective size are ArviZ's to rounding, with ties, odd lengths and chains apart."""
    rng = np.random.default_rng(5)
    chains = ar1(rho, (6, *shape), rng)
    chains[1] = np.round(chains[1], 1)
    chains[2, 0] += 3
    chains[3, 1] *= 4
    rhat, size = Placed(chains, np.zeros(6)).agreement()
    assert rhat == pytest.approx([float(az.rhat(one, method="rank")) for one in chains], rel=1e-10)
    assert size == pytest.approx([float(az.ess(one, method="bulk")) for one in chains], rel=1e-8)
