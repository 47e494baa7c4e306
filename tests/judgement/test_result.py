"""A result can be compared, asked by name, asserted and shown, and is neither true nor false."""

import json
import re

import pytest

import ringtrue as rt

from ..builders import checked, complete, grid, hostile, replicates
from ..report.pages import parsed


def _judged(n: int, spread: float = 1.0) -> rt.Result:
    return rt.judge(replicates(grid(n, spread=spread), names=["theta"]))


def test_a_verdict_is_its_name() -> None:
    """It compares with text, survives JSON, and has words for a sentence."""
    verdict = _judged(200, spread=3.0).verdict
    assert verdict == "MISCALIBRATED"
    assert json.loads(json.dumps(verdict)) == "MISCALIBRATED" == verdict.value == verdict.name == str(verdict)
    assert [one.words for one in rt.Verdict] == ["miscalibrated", "within tolerance", "inconclusive"]


@pytest.mark.parametrize(("n", "spread"), [(4000, 1.0), (5, 1.0), (200, 3.0)])
def test_a_result_is_neither_true_nor_false(n: int, spread: float) -> None:
    """``if result:`` is refused whatever the verdict, with the calls that were meant."""
    result = _judged(n, spread)
    with pytest.raises(TypeError, match=r"result\.verdict, or call result\.assert_within_tolerance\(\) or"):
        bool(result)


def test_both_assertions_pass_on_what_is_certified() -> None:
    """They return the result, so that a test can go on with it."""
    result = _judged(4000)
    assert result.verdict is rt.Verdict.WITHIN_TOLERANCE
    assert result.assert_not_miscalibrated() is result
    assert result.assert_within_tolerance() is result


def test_both_assertions_fail_on_what_is_wrong() -> None:
    """They raise an AssertionError whose message is the sentence."""
    result = _judged(200, spread=3.0)
    for call in (result.assert_not_miscalibrated, result.assert_within_tolerance):
        with pytest.raises(rt.errors.Miscalibrated, match=re.escape(result.sentence)) as caught:
            call()
        assert isinstance(caught.value, AssertionError)


def test_five_replicates_are_no_certificate() -> None:
    """Where nothing could have been found, the first assertion passes; the second says that it could not tell."""
    result = _judged(5)
    assert result.verdict is rt.Verdict.INCONCLUSIVE
    assert result.assert_not_miscalibrated() is result
    with pytest.raises(rt.errors.Inconclusive, match=re.escape(result.sentence)) as caught:
        result.assert_within_tolerance()
    assert isinstance(caught.value, rt.errors.NotWithinTolerance)
    assert isinstance(caught.value, AssertionError)
    assert not isinstance(caught.value, rt.errors.Miscalibrated)


def test_a_test_function_is_asked_by_name() -> None:
    """Its tests and sizes are those rows of the result that are about it."""
    result = checked(rt.procedures.NormalMean(), 300)
    theta = result["theta"]
    assert theta.tests == tuple(row for row in result.tests if row.f == "theta")
    assert theta.measures == tuple(row for row in result.measures if row.f == "theta")
    for name, row in (("spread", theta.spread), ("bias", theta.bias), ("coverage", theta.coverage)):
        assert row is theta.measure(name)
        assert row.low < row.ideal < row.high
    assert theta.distance.name == "KS distance"
    assert theta.pvalue == min(row.adjusted for row in theta.tests)
    assert str(theta).startswith("strong: p = ")


def test_unknown_names_say_which_there_are() -> None:
    """Of test functions, of measures and of levels."""
    result = rt.judge(complete(50, 2, names=["mu", "tau"]))
    with pytest.raises(rt.errors.InvalidStudy, match="such as 'mu', 'tau', but 'sigma' arrived"):
        result["sigma"]
    with pytest.raises(rt.errors.InvalidStudy, match=r"'sharpness' of 'mu' was not measured; measured were \['spread'"):
        result["mu"].measure("sharpness")
    with pytest.raises(rt.errors.InvalidStudy, match=r"one of \['strong', 'weak'\], which this result tested"):
        _ = result.levels["exact"]


def test_a_function_of_the_data_has_tests_and_no_size() -> None:
    """Its spread is not measured, since it speaks of the exact posterior alone."""
    result = rt.judge(complete(50, 2, names=["theta", "residual"], sees=["theta", "data"]))
    assert [row.level for row in result["residual"].tests] == ["exact"]
    with pytest.raises(rt.errors.InvalidStudy, match="was not measured"):
        _ = result["residual"].spread


def test_failures_are_those_of_the_run() -> None:
    """A result shows what was lost."""
    result = rt.judge(complete(50, lost=(3, 4)))
    assert [one.replicate for one in result.failures] == [3, 4]


def test_a_notebook_shows_text_and_no_markup_of_the_users() -> None:
    """The HTML of a result has the sentence and its tables, and names that are HTML are text in it."""
    result = hostile()
    shown = parsed(result._repr_html_())
    assert {one.tag for one in shown.all()} == {"", "p", "strong", "pre"}
    assert result.sentence.split()[0] in next(shown.all("strong")).words()
    assert "<script>" in next(shown.all("pre")).text
    assert "<script>" not in result._repr_html_()
