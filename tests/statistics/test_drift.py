"""Whether first members moved: the level with a broken twin, bounds by enumeration, closed forms."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from ringtrue.statistics import drift
from ringtrue.statistics.drift import detectable_drift, drift_interval, drift_test
from tests.builders import largest_excess

FALSE_ALARM = 1e-6


def test_a_pair_is_a_sign() -> None:
    """With two members the statistic is the sum of differences over the root of the sum of their squares."""
    members = np.random.default_rng(0).normal(size=(20, 2, 3))
    apart = members[:, 0] - members[:, 1]
    found = drift_test(members, rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.statistics, apart.sum(axis=0) / np.sqrt(np.square(apart).sum(axis=0)))


def test_p_values_are_shares_of_labels() -> None:
    """Of one column, alone and adjusted are the share of all labels, to the noise of 20 000 of them."""
    members = np.random.default_rng(3).exponential(size=(5, 3, 1))
    centred = members[:, :, 0] - members[:, :, 0].mean(axis=1, keepdims=True)
    sums = [abs(sum(centred[i, j] for i, j in enumerate(label))) for label in product(range(3), repeat=5)]
    exact = np.mean(np.array(sums) >= sums[0] - 1e-12)
    found = drift_test(members, rng=np.random.default_rng(0), labels=20_000)
    # Five sd of a binomial share: false alarm 6e-7.
    assert abs(found.pvalue - exact) < 5 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4
    assert found.pvalues[0] == found.adjusted[0]


def test_the_tail_is_a_bound() -> None:
    """Over all labellings of five sets of three, the bound is at most alpha in a share of at most alpha."""
    members = np.random.default_rng(3).exponential(size=(5, 3))
    centred = members - members.mean(axis=1, keepdims=True)
    rolled = [
        np.stack([np.roll(row, -j) for row, j in zip(centred, label, strict=True)])
        for label in product(range(3), repeat=5)
    ]
    bounds = np.array([drift._bound(one) for one in rolled])
    assert bounds.min() < 0.05
    assert largest_excess(bounds) <= 1.0
    assert largest_excess(bounds / 4) > 1.0  # the broken twin


def test_constant_columns_say_nothing() -> None:
    """What does not vary within sets has a p-value of 1, and takes nothing from the others."""
    members = np.random.default_rng(0).normal(size=(50, 3, 2))
    members[:, :, 1] = 7.0
    assert drift_test(members, rng=np.random.default_rng(0)).pvalues[1] == 1.0


def test_a_clear_drift_has_a_tiny_p_value() -> None:
    """Beyond labels the bound speaks, of any number of sets."""
    members = np.random.default_rng(0).normal(size=(3000, 3, 2))
    members[:, 0, 0] += 1.0
    found = drift_test(members, rng=np.random.default_rng(0))
    assert found.pvalues[0] <= found.adjusted[0] < 1e-50
    assert found.pvalues[1] > FALSE_ALARM


def rejections(shift: float, seed: int = 0) -> int:
    """Count how many of 300 tests of eight sets with heavy tails reject at 5 %."""
    rng, count = np.random.default_rng(seed), 0
    for _ in range(300):
        members = rng.standard_t(2, size=(8, 4, 2))
        members[:, 0] += shift
        count += drift_test(members, rng=rng, labels=199).pvalue <= 0.05
    return count


#: More than so many of 300 exact tests at 5 % reject with probability 1e-6 at most.
MOST = int(stats.binom.isf(FALSE_ALARM, 300, 0.05))


def test_the_level_is_exact() -> None:
    """Eight sets of four with infinite variance."""
    assert rejections(0.0) <= MOST


def test_a_wrong_level_would_be_seen() -> None:
    """The broken twin: the same with first members that have moved."""
    assert rejections(2.0) > MOST


def test_the_interval_is_students() -> None:
    """Of pairs it is that of a paired t test."""
    members = np.random.default_rng(0).normal(size=(12, 2))
    expected = stats.ttest_rel(members[:, 0], members[:, 1]).confidence_interval(0.9)
    middle, low, high = drift_interval(members, confidence=0.9)
    assert (low, high) == pytest.approx((expected.low, expected.high))
    assert middle == pytest.approx(np.mean(members[:, 0] - members[:, 1]))


def test_the_detectable_drift_is_detected() -> None:
    """At the drift of 80 % power, a z test of one column with that variance has it."""
    size = detectable_drift(100, 10, tests=3, alpha=0.05)
    z = size / np.sqrt(1.1 / 100)
    assert stats.norm.sf(stats.norm.isf(0.05 / 6) - z) == pytest.approx(0.8)
