"""Outcomes with probabilities as arrays: verdicts, sentences, refusals, and how often an error is certified."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import ringtrue as rt
from ringtrue.errors import Inconclusive, InvalidStudy, Miscalibrated
from ringtrue.values import Floats


def outcomes(n: int, factor: float = 1.0, shift: float = 0.0, seed: int = 1) -> tuple[Floats, Floats]:
    """Return outcomes whose log odds are N(0, 1.5^2), and reported probabilities."""
    rng = np.random.default_rng(seed)
    x = 1.5 * rng.normal(size=n)
    return (rng.random(n) < expit(x)).astype(float), expit(factor * x + shift)


@pytest.mark.parametrize(
    ("factor", "shift", "words"),
    [
        (1.8, 0.0, "too sure: divide log odds by 1."),
        (0.5, 0.0, "not sure enough: multiply log odds by "),
        (1.0, 0.7, "too high: lower log odds by 0."),
        (1.0, -0.7, "too low: raise log odds by 0."),
        (-1.0, 0.0, "the wrong way round"),
    ],
)
def test_errors_are_named_with_what_mends_them(factor: float, shift: float, words: str) -> None:
    """Each kind of error, 8 standard errors or more at n = 1000, is called by its name, with the points on average."""
    result = rt.check_probabilities(*outcomes(1000, factor, shift))
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert words in result.sentence
    assert "points on average" in result.sentence
    assert result.pvalue < 1e-6
    with pytest.raises(Miscalibrated, match="MISCALIBRATED"):
        result.assert_not_miscalibrated()


def test_right_probabilities_are_certified_when_there_are_enough() -> None:
    """Of right probabilities 300 are not enough, and 12,000 are; the former says how many more."""
    few, many = (rt.check_probabilities(*outcomes(n), alpha=1e-4 if n < 1000 else 0.01) for n in (300, 12_000))
    assert few.verdict is rt.Verdict.INCONCLUSIVE
    assert "more outcomes would certify 2.5 points" in few.sentence
    with pytest.raises(Inconclusive, match="INCONCLUSIVE"):
        few.assert_within_tolerance()
    assert few.assert_not_miscalibrated() is few
    # At n = 8000 and alpha = .05 all but 1 % are certified; the p-value is below .01 in 1 % of seeds, and then small.
    assert many.assert_within_tolerance().verdict is rt.Verdict.WITHIN_TOLERANCE


@pytest.mark.slow
def test_errors_at_the_limit_are_not_certified() -> None:
    """Probabilities that are off by 2.5 points on average are certified in at most 5 % of runs, right ones often."""
    within = [0, 0]
    for seed in range(25):
        # A shift of 0.166 is 2.5 points on average where log odds are N(0, 1.5^2).
        for j, shift in enumerate((0.166, 0.0)):
            t, p = outcomes(6000, 1.0, shift, seed)
            within[j] += rt.check_probabilities(t, p).verdict is rt.Verdict.WITHIN_TOLERANCE
    # At .05 more than 9 of 25 with probability 7e-7; the broken twin are right probabilities, of which nearly all are.
    assert within[0] <= 9
    assert within[1] > 9
    x = 1.5 * np.random.default_rng(0).normal(size=10**6)
    assert np.abs(expit(x + 0.166) - expit(x)).mean() >= 0.025


def test_an_error_smaller_than_tolerated_is_said_to_be_real() -> None:
    """1.2 points too high, 5 standard errors, are found and tolerated, and a tighter tolerance makes them an error."""
    t, p = outcomes(30_000, 1.0, 0.08)
    result = rt.check_probabilities(t, p)
    assert result.verdict is rt.Verdict.WITHIN_TOLERANCE
    assert "real and smaller than tolerated" in result.sentence
    tight = rt.check_probabilities(t, p, tolerance=rt.Tolerance(probability=0.002))
    assert tight.verdict is rt.Verdict.MISCALIBRATED


def test_impossible_outcomes_are_named() -> None:
    """An outcome that had been given the probability 0 is named by its number, and the p-value is 0."""
    t, p = outcomes(200)
    p[[17, 40]] = 1 - t[[17, 40]]
    result = rt.check_probabilities(t, p)
    assert result.pvalue == 0
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert "2 outcomes had been given the probability 0, and came (replicates 17, 40)" in result.sentence


def test_errors_that_no_line_shows_name_their_group() -> None:
    """Probabilities that are too low at both ends and too high between are called, with the group that is most off."""
    rng = np.random.default_rng(4)
    p = np.repeat([0.1, 0.35, 0.5, 0.65, 0.9], 300)
    c = p + np.repeat([0.09, -0.06, -0.06, -0.06, 0.09], 300)
    result = rt.check_probabilities(rng.random(p.size) < c, p)
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert "no line in log odds shows" in result.sentence
    assert "of 300 outcomes with probabilities around" in result.sentence


def test_shares_of_draws_are_held_against_the_pool() -> None:
    """Shares of 9 draws of a right output are not convicted with draws=9, and are without."""
    t, p = outcomes(500)
    share = np.random.default_rng(2).binomial(9, p) / 9
    # A p-value below 1e-3 has that probability, and one of shares taken for probabilities is 0 if one is 0 or 1.
    assert rt.check_probabilities(t, share, draws=9).pvalue > 1e-4
    assert rt.check_probabilities(t, share).pvalue < 1e-4
    result = rt.check_probabilities(t, share, draws=np.full(500, 9))
    assert "make 50 or more" in result.sentence
    assert result.tests[0].route == "shares of 9 draws"


def test_bayes_factors_are_probabilities() -> None:
    """Log Bayes factors with the prior give the answer of the probabilities that they stand for."""
    t, p = outcomes(300, 1.4)
    log_b = np.log(p / (1 - p)) - np.log(0.3 / 0.7)
    one, other = rt.check_probabilities(t, log_bayes_factor=log_b, prior=0.3), rt.check_probabilities(t, p)
    assert one.pvalue == other.pvalue
    assert one.measure("log odds slope").estimate == pytest.approx(other.measure("log odds slope").estimate)


def test_classes_have_a_row_each() -> None:
    """Three classes: doubled log probabilities are found in each; two columns are the case of two values."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet([1, 1, 1], size=500)
    t = (rng.random((500, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    wrong, right = rt.check_probabilities(t, sharp), rt.check_probabilities(t, p, alpha=1e-6)
    assert wrong.verdict is rt.Verdict.MISCALIBRATED
    assert "too sure" in wrong.sentence
    assert [row.f for row in wrong.tests] == ["class 0", "class 1", "class 2", "all classes"]
    assert right.verdict is rt.Verdict.INCONCLUSIVE
    drawn = np.stack([rng.multinomial(60, row) for row in p]) / 60
    assert rt.check_probabilities(t, drawn, draws=60).pvalue > 1e-6
    s, q = outcomes(200)
    two = rt.check_probabilities(s.astype(int), np.column_stack([1 - q, q]))
    assert two.pvalue == rt.check_probabilities(s, q).pvalue


def test_results_print_export_and_refuse_to_be_true() -> None:
    """A result prints sentence, tables and scores, is plain data for JSON, and is neither true nor iterable."""
    result = rt.check_probabilities(*outcomes(120))
    text = str(result)
    assert text.startswith(result.sentence)
    assert all(word in text for word in ("log odds slope", "calibration error", "discrimination", "n = 120"))
    assert json.loads(json.dumps(result.to_dict()))["verdict"] == result.verdict.value
    assert result.sentence[:12] in result._repr_html_()
    assert "n=120" in repr(result)
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(result)
    with pytest.raises(TypeError, match="not iterable"):
        list(result)
    with pytest.raises(InvalidStudy, match="was not measured"):
        result.measure("spread")


def test_equal_calls_have_equal_answers() -> None:
    """The same seed gives the same p-value; another draws other outcomes."""
    t, p = outcomes(100, 1.2)
    assert rt.check_probabilities(t, p).pvalue == rt.check_probabilities(t, p).pvalue


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "one form, but none"),
        ({"probability": [0.1, 0.2], "log_bayes_factor": [0.0, 1.0], "prior": 0.5}, "one form, but two"),
        ({"log_bayes_factor": [0.0, 1.0]}, "belong together"),
        ({"probability": [0.1, 0.2], "draws": 9}, "share of draws"),
        ({"probability": [0.1, 0.2], "draws": 0}, "whole numbers"),
        ({"probability": [0.1, 0.2], "alpha": 0}, "alpha"),
        ({"probability": [0.1, 0.2], "tolerance": 0.1}, "Tolerance"),
    ],
)
def test_refusals_say_what_was_expected(settings: dict[str, Any], words: str) -> None:
    """What does not fit together is refused before anything is computed."""
    with pytest.raises(InvalidStudy, match=words):
        rt.check_probabilities([0, 1], **settings)
