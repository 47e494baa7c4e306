"""Test functions are tried at draws of the belief before anything is run."""

import math
from typing import Any

import pytest

import ringtrue as rt
from tests.builders import BELIEF, noisy, posterior, refusal, says


def run(f: Any, **settings: Any) -> rt.Replicates:
    """Run the study of one number for these test functions."""
    return rt.run(rt.Study(BELIEF, noisy, posterior, f=f, **settings), n=6, progress="off")


@pytest.mark.parametrize("batch", [None, 3])
def test_a_function_that_never_varies_is_refused_and_a_rare_event_is_not(batch: int | None) -> None:
    """Eight equal values are not enough to refuse: an event of probability 1/20 is seen among a thousand."""
    says(refusal(lambda: run({"flat": lambda theta: 0 * theta + 2.0}, batch=batch)), "'flat' must vary", "it is 2 at")
    rare = {"rare": lambda theta: 1.0 * (theta > 1.645), "theta": rt.identity}
    assert run(rare, batch=batch).n == 6


def test_a_function_of_the_data_is_tried_at_one_parameter_at_a_time() -> None:
    """Beside one dataset there is one parameter: a function of single numbers works."""
    assert run({"distance": lambda theta, y: math.hypot(float(theta), float(y)), "theta": rt.identity}).n == 6
    says(refusal(lambda: run({"flat": lambda theta, y: 3.0})), "'flat' must vary")
