"""InferenceData of ArviZ itself, as outputs and in lists."""

from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.distributions import as_distribution
from tests.builders import refusal, says

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
