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


LARGEST = np.finfo(float).max


@pytest.mark.parametrize("scale", [1.0, 1e300])
def test_draws_as_large_as_numbers_are_placed_in_a_belief(scale: float) -> None:
    """Where the belief's law of a distance would need numbers beyond all, a result comes all the same, in silence."""
    rng = np.random.default_rng(0)
    theta, draws = scale * rng.normal(size=20), np.where(rng.random((20, 3)) < 0.2, LARGEST, -LARGEST)
    assert fuzz.attempt("judge", theta, draws, {"belief": rt.Normal(0, 1)}, Path())


def test_a_belief_beside_draws_that_hardly_differ_from_0() -> None:
    """The sum in units of such draws has weights whose squares are beyond all numbers."""
    rng = np.random.default_rng(0)
    belief = rt.Normal(np.zeros(2), np.ones(2))
    for scale in (5e-320, 1e-200):
        theta, draws = rng.normal(size=(5, 2)) * scale, rng.normal(size=(5, 4, 9, 2)) * scale
        assert fuzz.attempt("check_draws", theta, draws, {"chains": 4, "belief": belief}, Path())


def test_equal_truths_are_told_in_a_sentence() -> None:
    """One truth for all has no steps to measure, and is a suspicion, not an error of NumPy's."""
    draws = np.round(np.random.default_rng(0).normal(size=(60, 19, 2)))
    belief = rt.Normal(np.zeros(2), np.ones(2))
    assert fuzz.attempt("check_draws", np.full((60, 2), 0.3), draws, {"belief": belief}, Path())


def test_outputs_that_are_one_point_in_groups() -> None:
    """Scores with an infinite spread have ends that are numbers or infinite, and none that is neither."""
    theta, draws = np.random.default_rng(0).normal(size=20), np.full((20, 2), 0.3)
    assert fuzz.attempt("check_draws", theta, draws, {"groups": np.arange(20) // 2}, Path())


def test_a_constant_function_of_the_wrong_shape_is_refused() -> None:
    """A distance from a number, of a parameter with two entries, that is infinite everywhere."""
    rng = np.random.default_rng(0)
    theta = np.where(rng.random((20, 2)) < 0.5, LARGEST, -LARGEST)
    settings = {"f": rt.Distance(1e308, 1.0)}
    assert fuzz.attempt("check_draws", theta, rng.normal(size=(20, 2, 2)) * 1e300, settings, Path()) != "WITHIN"


@pytest.mark.parametrize("scale", [1e102, 1e140, 1e300])
def test_procedures_with_huge_draws_are_compared_or_refused(scale: float) -> None:
    """Scores whose cubes are beyond all numbers have intervals; those whose squares are, a sentence."""
    draws = scale * np.random.default_rng(0).normal(size=(20, 9))
    assert fuzz.attempt("compare", np.zeros(20), draws, {}, Path()) == ("compared" if scale < 1e150 else "InvalidStudy")


def test_the_largest_truth_is_drawn(tmp_path: Path) -> None:
    """A picture ends before numbers do."""
    assert fuzz.attempt("report", [-LARGEST], [[-1.0, 1.0]], {}, tmp_path) == "INCONCLUSIVE"


@pytest.mark.parametrize("target", ["check_draws", "compare"])
def test_names_of_parts_that_an_array_has_not_are_refused(target: str) -> None:
    """The sentence says that theta is an array, and not what NumPy says of such an index."""
    rng = np.random.default_rng(0)
    asked = {"f": rt.Coordinate("a b")}
    assert fuzz.attempt(target, rng.normal(size=(5, 3)), rng.normal(size=(5, 9, 3)), asked, Path()) == "InvalidStudy"


def test_names_of_parts_that_a_dict_has_not_are_refused_with_those_it_has() -> None:
    """The sentence names the parts that can be asked about."""
    rng = np.random.default_rng(0)
    theta, draws = {"mu": rng.normal(size=5), "tau": rng.normal(size=5)}, rng.normal(size=(5, 9))
    outputs, f = {"mu": draws, "tau": draws}, rt.Coordinate("a b")
    with pytest.raises(rt.errors.InvalidStudy, match=r"the part 'a b' of theta, but theta has 'mu', 'tau'; ask about"):
        rt.check_draws(theta, outputs, f=f)
    assert fuzz.attempt("check_draws", theta, outputs, {"f": f}, Path()) == "InvalidStudy"


def test_chains_of_equal_draws_are_judged() -> None:
    """Draws that are all the same have neither noise nor spread to divide by."""
    assert fuzz.attempt("check_draws", np.zeros(5, "int8"), np.zeros((5, 2, 3), "int8"), {"chains": 2}, Path())


def test_truths_in_the_middle_of_chains_have_a_sentence() -> None:
    """A spread that is estimated as 0 has no interval around the ideal one."""
    draws = np.random.default_rng(0).normal(size=(40, 2, 30))
    for theta in (draws.mean(axis=(1, 2)), np.median(draws, axis=(1, 2))):
        assert fuzz.attempt("check_draws", theta, draws, {"chains": 2}, Path()) in ("INCONCLUSIVE", "MISCALIBRATED")


def test_a_few_of_the_largest_values_are_judged() -> None:
    """Means of outputs whose mean is beyond all numbers."""
    some = np.random.default_rng(0).random((30, 10)) < 0.2
    values = np.where(some, LARGEST, -LARGEST)
    for theta, draws in ((values[:, 0], values[:, 1:]), (values[:, 0], np.repeat(values[:, 1:2], 9, axis=1))):
        assert fuzz.attempt("check_draws", theta, draws, {}, Path())


def test_distances_of_huge_parts_are_infinite_in_silence() -> None:
    """Squares of two parts may each be a number, and their sum none."""
    far = rt.Distance({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 1.0})
    assert far.evaluate({"a": np.array(1.2e154), "b": np.array(1.2e154)}, rt.functions.Context()) == np.inf


def test_chains_without_the_names_of_truths_are_refused() -> None:
    """Named truths beside an array of chains, of as many axes as it may have."""
    rng = np.random.default_rng(0)
    for shape in ((2, 2), (2, 2, 5), (2,)):
        found = fuzz.attempt("judge", {"a": rng.normal(size=2)}, rng.normal(size=shape), {"chains": 2}, Path())
        assert found in ("InvalidStudy", "ValueError")


def test_a_draw_whose_square_is_no_number_is_compared() -> None:
    """Scores of single functions whose squares are beyond all numbers have no interval, and are left out."""
    draws = np.array([[1e170, *[1.0] * 30]])
    assert fuzz.attempt("compare", np.zeros(1), draws, {"f": rt.identity}, Path()) == "compared"


def test_many_equal_truths_and_a_few_far_out_are_diagnosed() -> None:
    """What is left without the outliers has the spread 0, which has no logarithm."""
    truths = np.zeros(30)
    truths[[1, 3, 6, 18, 22]] = 255
    for seed in range(12):
        draws = np.random.default_rng(seed).integers(-3, 4, (30, 9)).astype(float)
        assert fuzz.attempt("check_draws", truths, draws, {}, Path())


def test_truths_whose_sum_is_no_number_are_judged() -> None:
    """Three of the largest numbers have no mean."""
    assert fuzz.attempt("judge", [-LARGEST] * 3, [[0, 99, 99], [99, 157, 157], [0, 0, 157]], {}, Path())


def test_outputs_that_are_always_one_point_are_compared() -> None:
    """One draw of each output has the spread 0 in units of the belief, whose own noise does not widen that."""
    assert fuzz.attempt("compare", [1.0], [0.3], {"f": {"total": np.sum}}, Path()) == "compared"


def test_misses_whose_squares_are_no_numbers_are_diagnosed() -> None:
    """Truths that lie further from their outputs than a square can say."""
    rng = np.random.default_rng(0)
    theta, draws = rng.normal(size=60) * 1e200, rng.normal(size=(60, 40))
    assert fuzz.attempt("judge", theta, draws, {"f": rt.identity}, Path()) == "MISCALIBRATED"


def test_diagnostics_of_chains_are_drawn_over_the_largest_truths(tmp_path: Path) -> None:
    """An axis ends before numbers do."""
    draws = np.where(np.random.default_rng(0).random((3, 2, 19)) < 0.2, LARGEST, -LARGEST)
    truths = np.array([LARGEST, -LARGEST, -LARGEST])
    assert fuzz.attempt("report", truths, draws, {"chains": 2}, tmp_path) == "INCONCLUSIVE"
