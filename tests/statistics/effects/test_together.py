"""Sizes of several functions together: averages of laws, joint reach, and covariances, against direct computations."""

import math

import numpy as np
import pytest
from scipy import stats

from ringtrue.statistics.effects import together
from ringtrue.statistics.effects.intervals import freedom
from ringtrue.statistics.effects.spread import Influences


def test_points_are_spread_evenly() -> None:
    """The middles of equal parts of a sample, all of it if there are as many points."""
    assert together.spaced(10, 5).tolist() == [1, 3, 5, 7, 9]
    assert together.spaced(3, 5).tolist() == [0, 1, 2]


@pytest.mark.parametrize("n", [2, 30, 5000])
def test_an_average_of_laws_has_the_covariance_of_its_noise(n: int) -> None:
    """The mean of normal distribution functions at some points, and their covariance over n."""
    rng = np.random.default_rng(1)
    mean, sd, points = rng.normal(size=n), rng.uniform(0.5, 2, n), np.array([-1.0, 0.2, 1.5])
    laws = stats.norm.cdf(points, mean[:, None], sd[:, None])
    average, covariance = together.averaged(mean, sd, points)
    assert average == pytest.approx(laws.mean(axis=0), rel=1e-9)
    assert covariance == pytest.approx(np.cov(laws.T) / n, rel=1e-6)


def test_equal_laws_have_no_noise() -> None:
    """Not even that of rounding."""
    _, covariance = together.averaged(np.full(50, 0.3), np.full(50, 0.7), np.array([0.1, 0.9]))
    assert (covariance == 0).all()


@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_joint_reach_of_independent_entries(confidence: float) -> None:
    """The quantile of the largest of four |N(0, 1)| is that of one at the fourth root; 1000 draws err by 0.06 (sd).

    Six of these are a chance of 2e-9.
    """
    rng = np.random.default_rng(0)
    exact = stats.norm.ppf((1 + confidence**0.25) / 2)
    assert together.joint_reach(np.eye(4), confidence, rng) == pytest.approx(exact, abs=0.36)
    assert together.joint_reach(np.ones((4, 4)), confidence, rng) == pytest.approx(
        stats.norm.ppf((1 + confidence) / 2), abs=0.36
    )


def test_joint_reach_beyond_the_draws_is_bonferronis() -> None:
    """With fewer than ten draws in the tail: the largest error times the quantile at a share of the level."""
    covariance = np.diag([1.0, 4.0, 0.25])
    exact = 2 * stats.norm.isf(0.009 / 6)
    assert together.joint_reach(covariance, 0.991, np.random.default_rng(0)) == pytest.approx(exact)
    assert together.joint_reach(covariance, 0.99, np.random.default_rng(0)) < 0.97 * exact


def test_functions_that_are_one_have_the_confidence_of_one() -> None:
    """And independent ones that of Bonferroni's rule, nearly; the units of the influences are of no consequence."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4000, 2))
    one, other = (Influences(0.0, 0.0, x * scale) for scale in (1.0, 100.0))
    far = together.confidence_of_each([one, one], 1, 1 - 1e-3 / 2, rng)
    assert far == pytest.approx(1 - 1e-3 / 4, abs=1e-6)  # beyond the draws, by Bonferroni
    # Quantiles of 1000 draws err by 0.06 (sd); six of these reach from 1.96 to 2.32, and from 2.24 to 1.88 and 2.60.
    single = together.confidence_of_each([one, other], 0, 0.95, rng)
    assert 0.95 <= single < 0.98
    apart = together.confidence_of_each([one, Influences(0.0, 0.0, x[:, ::-1])] * 8, 0, 0.95, rng)
    assert 0.95 <= apart < 0.991
    many = [Influences(0.0, 0.0, rng.normal(size=(4000, 2))) for _ in range(20)]
    # 20 independent ones have 2.80 or 0.99744; within 0.3 of that, six standard deviations, it is above 0.987.
    assert together.confidence_of_each(many, 0, 0.95, rng) > 0.987


def test_the_largest_absolute_value_of_intervals() -> None:
    """At least what the interval farthest from 0 leaves, at most the farthest end."""
    found = together.largest_absolute("x", np.array([0.1, -0.5]), np.array([-0.2, -0.8]), np.array([0.9, -0.3]))
    assert (found.estimate, found.low, found.high) == pytest.approx((0.5, 0.3, 0.9))
    found = together.largest_absolute("x", np.array([0.1, 0.5]), np.array([-0.2, 0.4]), np.array([0.3, 0.6]))
    assert (found.estimate, found.low, found.high) == pytest.approx((0.5, 0.4, 0.6))
    assert together.largest_absolute("x", np.zeros(1), np.array([-0.1]), np.array([0.2])).low == 0


def test_anees_has_students_interval_on_the_logarithm() -> None:
    """With the relative error of the mean."""
    x = stats.chi2.ppf((np.arange(40) + 0.5) / 40, 3) / 3
    half = stats.t.ppf(0.95, freedom(x - x.mean())) * x.std(ddof=1) / math.sqrt(40) / x.mean()
    found = together.anees(x, 0.9)
    ends = x.mean(), x.mean() * math.exp(-half), x.mean() * math.exp(half)
    assert (found.estimate, found.low, found.high) == pytest.approx(ends)
    none = together.anees(np.zeros(5), 0.9)
    assert (none.estimate, none.low, none.high) == (0, 0, math.inf)


def by_jackknife(squares: np.ndarray, errors: np.ndarray, groups: int) -> np.ndarray:
    """Return what each group adds to the mean log ratio of both metrics, found by leaving it out."""

    def ratio(rows: np.ndarray) -> float:
        kept = errors[rows]
        own = np.einsum("ij,jk,ik->i", kept, np.linalg.inv(kept.T @ kept / len(kept)), kept)
        return float(np.mean(np.log(squares[rows]) - np.log(own)))

    n, every = len(errors), np.arange(len(errors))
    left = np.array([ratio(every * groups // n != g) for g in range(groups)])
    return np.asarray(groups * ratio(every >= 0) - (groups - 1) * left)


def test_nci_is_a_log_ratio_without_its_bias() -> None:
    """A jackknife over twenty groups gives the estimate, and one over all replicates the error, to order 1 / n."""
    i = np.arange(300)
    # On rings, none near 0, where the log has no second order.
    angle, radius = 2.4 * i, 0.5 + 1.5 * (0.618 * i % 1)
    errors = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) @ [[1.0, 0.4], [0.0, 0.8]]
    squares = np.square(errors).sum(axis=1) * (0.5 + 0.37 * i % 1)
    found, decibel = together.nci(squares, errors, 0.9), 10 / math.log(10)
    assert found.estimate == pytest.approx(decibel * by_jackknife(squares, errors, 20).mean(), rel=1e-9)
    each = by_jackknife(squares, errors, 300)
    reach = stats.t.ppf(0.95, freedom(each - each.mean())) * each.std(ddof=1) / math.sqrt(300)
    assert (found.high - found.low) / 2 == pytest.approx(decibel * reach, rel=0.05)
    assert (found.high + found.low) / 2 == pytest.approx(found.estimate)
    # Too few for groups: the plain ratio.
    few = together.nci(squares[:7], errors[:7], 0.9).estimate
    own = np.einsum("ij,jk,ik->i", errors[:7], np.linalg.inv(errors[:7].T @ errors[:7] / 7), errors[:7])
    assert few == pytest.approx(decibel * np.mean(np.log(squares[:7] / own)))
