"""The joint test against full enumeration, brute force and closed forms."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ringtrue.statistics import matched
from ringtrue.statistics.exchange import evidence_of_labels
from ringtrue.statistics.matched import correlation_errors, joint_test, pairs_of, scores_from_places, scores_from_ranks
from tests.builders import largest_excess
from tests.statistics.test_exchange import EveryLabelling, IntArray, random_members, relabel


def _tested(members: IntArray, central: IntArray, **settings: Any) -> matched.JointTest:
    return joint_test(scores_from_ranks(members), central, pairs_of(members.shape[2]), **settings)


@pytest.mark.parametrize(("n", "size"), [(5, 3), (4, 4), (3, 5)])
def test_level_is_exact_over_all_labellings(n: int, size: int) -> None:
    """Over every choice of truths, each equally likely, no p-value is reached more often than it says."""
    rng = np.random.default_rng(1)
    members, central = random_members(rng, n, size, 3), random_members(rng, n, size, 2)
    every = list(product(range(size), repeat=n))
    found = [
        _tested(relabel(members, one), relabel(central, one), rng=EveryLabelling(), randomisations=len(every))
        for one in every
    ]
    assert largest_excess([one.pvalue for one in found]) <= 1
    # The broken twin pays for one statistic where three were looked at.
    alone = [min(one.adjusted) / 3 for one in found]
    assert largest_excess(alone) > 1


def test_tail_bound_is_a_pvalue() -> None:
    """The bound below what labels resolve is reached at most as often as it says; a quarter of it, more often."""
    rng = np.random.default_rng(2)
    members = random_members(rng, 5, 4, 2)
    pairs = pairs_of(2)
    every = list(product(range(4), repeat=5))
    bounds = np.array([matched._tail_of_pairs(scores_from_ranks(relabel(members, one)), pairs) for one in every])
    assert largest_excess(bounds) <= 1 < largest_excess(bounds / 4)
    assert bounds.min() < 0.1, "a bound that is always 1 would pass"


def test_statistic_is_that_of_loops() -> None:
    """The largest standardised sum is that of an implementation without any matrix product."""
    members, central = (
        random_members(np.random.default_rng(3), 40, 10, 4),
        random_members(np.random.default_rng(4), 40, 10, 2),
    )
    w, largest = scores_from_ranks(members).astype(float), 0.0
    for k, j in pairs_of(4):
        products = w[..., k] * w[..., j]
        centred = products - products.mean(axis=1, keepdims=True)
        largest = max(largest, abs(centred[:, 0].sum()) / np.sqrt((centred**2).mean(axis=1).sum()))
    found = _tested(members, central, rng=np.random.default_rng(0))
    assert found.statistics[0] == pytest.approx(largest, rel=1e-5)


def test_sums_of_labels_are_those_of_loops() -> None:
    """Sums over labelled members, and their covariance, are what one gets by picking members one by one."""
    rng = np.random.default_rng(5)
    w, pairs = scores_from_ranks(random_members(rng, 7, 5, 3)), pairs_of(3)
    labels = rng.integers(5, size=(11, 7))
    features = np.stack([w[..., k] * w[..., j] for k, j in pairs], axis=-1)
    features = features - features.mean(axis=1, keepdims=True)
    expected = [[features[i, one[i]] for i in range(7)] for one in labels]
    np.testing.assert_allclose(matched._relabelled_sums(w, pairs, labels), np.sum(expected, axis=1), atol=1e-5)
    covariance = np.einsum("ija,ijb->ab", features, features) / 5
    np.testing.assert_allclose(matched._covariance(w, pairs), covariance, atol=1e-4)


def test_shared_labels_give_the_evidence_of_single_functions() -> None:
    """Evidence for given labels is that of members with those labels as truth."""
    ranks = random_members(np.random.default_rng(6), 6, 4, 2)
    labels = np.array([[0] * 6, [1, 2, 3, 0, 1, 2]])
    found = evidence_of_labels(ranks, labels)
    again = evidence_of_labels(relabel(ranks, tuple(labels[1])), np.zeros((1, 6), np.int64))
    np.testing.assert_allclose(found[1], again[0])


@pytest.mark.slow
@pytest.mark.parametrize("dependence", ["independent", "correlated"])
def test_no_false_alarms_and_a_dropped_correlation(dependence: str) -> None:
    """At 5 %, 200 null runs reject at most 31 times (false alarm 1e-6); with a correlation dropped nearly all do.

    Power at n = 60 is above .85 at 5 %: fewer than 140 of 200 has a chance below 1e-6.
    """
    rng = np.random.default_rng(7)
    mix = np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]])
    rejected = 0
    for _ in range(200):
        x = rng.normal(size=(60, 20, 2))
        x[:, 0] = x[:, 0] @ mix.T
        if dependence == "independent":
            x[:, 1:] = x[:, 1:] @ mix.T
        ranks = x.argsort(axis=1).argsort(axis=1)
        rejected += _tested(ranks, ranks, rng=rng, randomisations=99).pvalue <= 0.05
    most = int(stats.binom.isf(1e-6, 200, 0.05))
    assert rejected <= most if dependence == "independent" else rejected >= 140 > most


@pytest.mark.slow
def test_errors_of_correlation_are_covered() -> None:
    """95 % intervals of the error miss it in at most 46 of 400 runs (false alarm 1e-6); half as wide, more often."""
    rng = np.random.default_rng(8)
    missed = too_short = 0
    for _ in range(400):
        x = rng.normal(size=(150, 20, 2))
        x[:, 0, 1] = 0.6 * x[:, 0, 0] + 0.8 * x[:, 0, 1]
        found = correlation_errors(scores_from_ranks(x.argsort(axis=1).argsort(axis=1)), pairs_of(2))
        m = found.interval(0, 0.95)
        missed += not m.low <= _limit() <= m.high
        half = (m.high - m.low) / 4
        too_short += not abs(m.estimate - _limit()) <= half
    most = int(stats.binom.isf(1e-6, 400, 0.05))
    assert missed <= most < too_short


@cache
def _limit() -> float:
    """Return the error of independent draws for truths of correlation .6, with 19 draws, from 2 million scores."""
    x = np.random.default_rng(9).normal(size=(100_000, 20, 2))
    x[:, 0, 1] = 0.6 * x[:, 0, 0] + 0.8 * x[:, 0, 1]
    return float(correlation_errors(scores_from_ranks(x.argsort(axis=1).argsort(axis=1)), pairs_of(2)).errors[0])


def test_scores_share_ties_and_have_unit_size() -> None:
    """Equal members have one score, and scores of a replicate have mean square 1; where all are equal, they are 0."""
    w = scores_from_ranks(np.array([[[0, 0], [0, 0], [2, 0]]]))
    assert w[0, 0, 0] == w[0, 1, 0] < w[0, 2, 0]
    assert np.square(w[0, :, 0]).mean() == pytest.approx(1)
    assert (w[0, :, 1] == 0).all()
    assert scores_from_places(np.array([124, 125]), 250).tolist() == pytest.approx([-0.005, 0.005], abs=1e-3)


def test_members_that_are_alike_say_nothing() -> None:
    """Where members tie in everything the p-value is 1."""
    ranks = np.zeros((10, 5, 2), np.int64)
    assert joint_test(scores_from_ranks(ranks), ranks, pairs_of(2), rng=np.random.default_rng(0)).pvalue == 1.0


def test_pairs_of_many_entries_are_always_the_same() -> None:
    """Of a hundred entries two hundred different pairs are looked at, the same ones every time."""
    first, again = pairs_of(100), pairs_of(100)
    assert np.array_equal(first, again)
    assert len({tuple(pair) for pair in first}) == 200
    assert (first[:, 0] < first[:, 1]).all()
