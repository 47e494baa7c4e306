"""Tests of probabilities: check values, levels by enumeration, the pooled null, power."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from ringtrue.errors import InvalidStudy
from ringtrue.statistics import probabilities as tests
from ringtrue.statistics.probabilities import Coins, class_test, pooled, posterior, probability_test, scores
from ringtrue.values import Floats
from tests.builders import largest_excess

P, T = np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 1, 0, 1])


def rng(seed: int = 1) -> np.random.Generator:
    """Return random numbers."""
    return np.random.default_rng(seed)


def outcomes(n: int, factor: float, seed: int) -> tuple[Floats, Floats]:
    """Return outcomes whose log odds are N(0, 1.5^2), and reported probabilities, log odds times a factor."""
    random = rng(seed)
    x = 1.5 * random.normal(size=n)
    return (random.random(n) < expit(x)).astype(float), expit(factor * x)


def weights(p: Floats) -> tuple[list[Any], Floats]:
    """Return all outcomes of a few coins, and how likely each is."""
    every = list(product((0, 1), repeat=len(p)))
    return every, np.array([np.prod(np.where(one, p, 1 - p)) for one in every])


def test_check_values() -> None:
    """Four outcomes have the scores that were computed by hand."""
    found = scores(T, P)
    assert found.in_the_large == pytest.approx(0.413197, abs=1e-6)
    assert found.spiegelhalter == pytest.approx(-0.485374, abs=1e-6)


def test_quadratic_forms_have_their_degrees_of_freedom() -> None:
    """The mean of a chi-squared score over all outcomes is its number of degrees of freedom."""
    p = np.array([0.1, 0.3, 0.5, 0.6, 0.85, 0.9])
    every, chance = weights(p)
    found = [scores(one, p) for one in every]
    assert float(chance @ [one.cox for one in found]) == pytest.approx(2)
    assert float(chance @ [one.smooth for one in found]) == pytest.approx(4)
    assert float(chance @ [one.spiegelhalter**2 for one in found]) == pytest.approx(1)


def test_scores_of_all_classes_have_their_degrees_of_freedom() -> None:
    """The joint score of three classes has 2 + 3 degrees of freedom: residuals add up to 0."""
    p = rng().dirichlet([2, 2, 2], size=5)
    every = list(product(range(3), repeat=5))
    chance = np.array([np.prod(p[np.arange(5), one]) for one in every])
    found = [tests._joint_test(np.array(one), p, rng(), 1).statistic for one in every]
    assert float(chance @ found) == pytest.approx(5)


@pytest.mark.slow
@pytest.mark.parametrize("p", [[0.02, 0.2, 0.5, 0.7, 0.9, 0.97], [0.3, 0.3, 0.3, 0.8, 0.8, 0.8]])
def test_level_is_exact(p: list[float]) -> None:
    """Over all outcomes of six coins, P(p <= alpha) <= alpha for every alpha that occurs."""
    every, chance = weights(np.array(p))
    found = np.array([probability_test(one, p, rng=rng(k)).pvalue for k, one in enumerate(every)])
    # Outcomes are drawn, not enumerated: a p-value is within 6 sd of 999 draws of its exact value, all but 1e-7.
    for alpha in np.unique(found):
        assert float(chance[found <= alpha].sum()) <= alpha + 6 * np.sqrt(alpha * (1 - alpha) / 999) + 1e-3
    # Broken twin: the smallest of the three approximate p-values, as it is.
    twin = np.exp([-probability_test(one, p, rng=rng(), resamples=1).statistic for one in every])
    wrong = [float(chance[twin <= alpha].sum()) / alpha for alpha in np.unique(twin)]
    assert max(wrong) > 1.5


def test_bound_on_small_p_values_holds_everywhere() -> None:
    """The analytic bound alone is a p-value: over all outcomes of ten equal coins P(bound <= alpha) <= alpha."""
    p = np.full(10, 0.5)
    bounds = []
    for one in product((0, 1), repeat=10):
        coins = Coins.of(one, p)
        bounds.append(tests._tail_bound(coins, tests._Look.of(coins)))
    assert largest_excess(bounds) <= 1
    # Broken twin: six bounds that do not divide the level among them.
    assert largest_excess(np.array(bounds) / 60) > 1
    assert min(bounds) < 0.02


def test_small_p_values_are_as_small_as_they_should_be() -> None:
    """A gross error has a p-value far below what draws can give, and within a factor of the exact tail."""
    n = 200
    found = probability_test(np.ones(n), np.full(n, 0.5), rng=rng()).pvalue
    assert 0.5**n < found < 12 * 0.5**n


def test_order_does_not_matter() -> None:
    """The same outcomes in another order have the same p-value."""
    t, p = outcomes(60, 1.3, 1)
    order = rng(2).permutation(60)
    assert probability_test(t, p, rng=rng()).pvalue == probability_test(t[order], p[order], rng=rng()).pvalue


def test_impossible_outcomes_have_p_value_zero() -> None:
    """Probability 0 or 1 with the outcome on the other side is a contradiction; on its own side it says nothing."""
    assert probability_test([1, 0, 1], [0.0, 0.4, 0.6], rng=rng()).pvalue == 0
    assert probability_test([0, 0, 1], [1.0, 0.4, 0.6], rng=rng()).impossible
    t, p = outcomes(40, 1.0, 3)
    sure = probability_test([*t, 0, 1], [*p, 0.0, 1.0], rng=rng())
    assert not sure.impossible
    assert sure.statistic == pytest.approx(probability_test(t, p, rng=rng()).statistic)
    assert probability_test([0, 1], [0.0, 1.0], rng=rng()).pvalue == 1


@pytest.mark.slow
def test_pooled_shares_are_exact_where_plain_ones_are_not() -> None:
    """Calibrated draws, M = 9, n = 500: the pooled null rejects in 5 % of runs, the share of draws nearly always."""
    rejected = np.zeros(2)
    for seed in range(40):
        t, p = outcomes(500, 1.0, seed)
        k = rng(seed + 1000).binomial(9, p)
        for j, q in enumerate((pooled(t, k, 9), k / 9)):
            rejected[j] += probability_test(t, q, rng=rng(seed)).pvalue <= 0.05
    # At level .05 more than 13 of 40 reject with probability 2e-8; the broken twin rejects in .998 of runs.
    assert rejected[0] <= 13
    assert rejected[1] > 13


def test_pooled_null_is_that_of_exchanging() -> None:
    """Of M + 1 members each is the truth once: given their sum the truth is one in that share of cases."""
    for ones in range(5):
        members = np.array([1] * ones + [0] * (4 - ones))
        found = [pooled([t], [members.sum() - t], 3)[0] for t in members]
        assert found == [members.mean()] * 4


@pytest.mark.slow
def test_power() -> None:
    """Log odds times 1.5 are found with n = 230, times 2 with n = 70, in three of four runs."""
    for factor, n in ((1.5, 230), (2.0, 70)):
        found = [probability_test(*outcomes(n, factor, seed), rng=rng(seed)).pvalue <= 0.05 for seed in range(60)]
        right = [probability_test(*outcomes(n, 1.0, seed), rng=rng(seed)).pvalue <= 0.05 for seed in range(60)]
        # With power .75 fewer than 27 of 60 reject with probability 4e-7; measured power is .82 or more.
        assert sum(found) >= 27
        # The broken twin, and the level: more than 16 of 60 reject with probability 4e-8.
        assert sum(right) <= 16


def test_classes_are_tested_jointly() -> None:
    """Three classes whose log probabilities are doubled are found; right ones are not (false alarm 1e-6)."""
    p = rng(5).dirichlet([1, 1, 1], size=300)
    t = (rng(6).random((300, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    assert class_test(t, p, rng=rng()).pvalue > 1e-6
    assert class_test(t, sharp, rng=rng()).pvalue < 1e-6
    assert class_test([0, 1], [[0.0, 0.5, 0.5], [0.2, 0.6, 0.2]], rng=rng()).pvalue == 0


def test_bayes_factors_keep_their_tails() -> None:
    """Odds of e^100 are no certainty: the complement keeps its size, and an outcome against it is not impossible."""
    p, q = posterior([100.0, -100.0, 0.0], 0.5)
    assert p[0] == 1
    assert q[0] == pytest.approx(np.exp(-100.0))
    found = probability_test([0, 0, 1], p, complement=q, rng=rng())
    assert not found.impossible
    assert 0 < found.pvalue < 1e-30


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: scores([0, 2], [0.1, 0.2]), "true or false"),
        (lambda: scores([0, 1], [0.1, 1.2]), r"lie in \[0, 1\]"),
        (lambda: scores([0, 1], [0.1, np.nan]), r"lie in \[0, 1\]"),
        (lambda: scores([0, 1], [0.1]), r"shape \(n,\)"),
        (lambda: pooled([0, 1], [3, 4], 3), "from 0 to draws"),
        (lambda: posterior([0.0], 1.0), "strictly between"),
        (lambda: posterior([np.nan], 0.5), "nan"),
        (lambda: class_test([0, 3], [[0.5, 0.5], [0.5, 0.5]], rng=rng()), "0 to 1"),
        (lambda: class_test([0, 1], [[0.5, 0.6], [0.5, 0.5]], rng=rng()), "add up to 1"),
        (lambda: class_test([0.5, 1], [[0.5, 0.5], [0.5, 0.5]], rng=rng()), "number of a class"),
        (lambda: class_test([0], [0.5, 0.5], rng=rng()), "classes"),
        (lambda: probability_test([0, 1], [0.5, 0.5], complement=[0.1, 0.5], rng=rng()), "1 - probability"),
    ],
)
def test_refusals_say_what_was_expected(call: Any, words: str) -> None:
    """Bad input is refused with what was expected."""
    with pytest.raises(InvalidStudy, match=words):
        call()
