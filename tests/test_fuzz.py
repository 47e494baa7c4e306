"""Anything may be passed: a small part of what `benchmarks/fuzz.py` tries."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import ringtrue as rt

from . import fuzz


@pytest.mark.slow
@settings(
    max_examples=40, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None
)
@given(target=st.sampled_from([one for one in fuzz.TARGETS if one != "report"]), call=fuzz.call())
def test_every_end_is_a_result_or_a_sentence(target: str, call: tuple[Any, Any, dict[str, Any]]) -> None:
    """Whatever arrives, a result that can be printed and written comes back, or an error of ours."""
    fuzz.attempt(target, *call, Path())


def test_a_leak_is_seen() -> None:
    """An error that is not ours is told from one that is: NumPy's own complaint is none of our sentences."""
    with pytest.raises(ValueError, match="could not broadcast") as caught:
        np.zeros(3)[:] = np.zeros(2)
    assert not fuzz.is_ours(caught.value)
    with pytest.raises(rt.errors.InvalidStudy) as refused:
        rt.check_draws([0.0], [[[["a"]]]])
    assert fuzz.is_ours(refused.value)


def test_the_smallest_and_the_largest_numbers() -> None:
    """Numbers so small that one over them is none, or so large that their squares are none, are judged in silence."""
    rng = np.random.default_rng(0)
    for scale in (5e-320, 1e300, 1e307):
        theta, draws = rng.normal(size=(20, 3)) * scale, rng.normal(size=(20, 9, 3)) * scale
        assert rt.check_draws(theta, draws).pvalue > 0


def test_infinite_truths_and_the_largest_ones_are_refused_or_judged_in_silence() -> None:
    """The centre and scale of the default test functions are numbers also where those of the truths are none."""
    draws = np.random.default_rng(0).normal(size=(20, 9, 2))
    largest = np.finfo(float).max
    for truths in (np.full((20, 2), -np.inf), np.full((20, 2), largest), np.tile([-np.inf, np.inf], (20, 1))):
        assert fuzz.attempt("check_draws", truths, draws, {}, Path())
    assert fuzz.attempt("check_draws", draws[:, 0], np.where(draws > 0, largest, -largest), {}, Path())


def test_chains_of_no_numbers_are_refused() -> None:
    """A parameter without entries has chains that cannot be counted from their numbers, and a sentence."""
    with pytest.raises(rt.errors.InvalidStudy):
        rt.check_draws(np.zeros((3, 0)), np.zeros((3, 2, 5, 0)), chains=2)
