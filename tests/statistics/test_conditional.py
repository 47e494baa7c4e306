"""Positions along summaries: levels by enumeration, tails by brute force, and errors that must be seen."""

from itertools import product

import numpy as np
import pytest
from scipy import special, stats

from ringtrue.statistics import conditional
from ringtrue.statistics.conditional import conditional_test, normal_scores
from ringtrue.values import Floats

Y = np.array([[0.3], [-1.2], [2.0], [0.1], [-0.4]])


def test_level_over_all_positions() -> None:
    """Over every set of positions the p-value is reached at most as often as it says, but for the noise of 999 draws.

    The noise of a drawn tail of 5 or 20 % has a chance of 1e-6 to be larger than 4.9 of its standard errors.
    """
    every = [np.array(one) for one in product(range(3), repeat=5)]
    rng = np.random.default_rng(1)
    p = np.array([conditional_test([(one, 3)], Y, rng=rng).pvalue for one in every])
    for alpha in (0.05, 0.2):
        room = 4.9 * np.sqrt(alpha * (1 - alpha) / 999)
        assert (p <= alpha).mean() <= alpha + room
        # The broken twin takes the approximate p-value for the exact one.
    approximate = np.array([np.exp(-_evidence(one)) for one in every])
    assert (approximate <= 0.3).mean() > 0.3 + 4.9 * np.sqrt(0.21 / 999)


def _evidence(cell: np.ndarray) -> float:
    g = normal_scores(Y[:, 0])[:, None]
    scores = conditional._scores(3)
    return float(conditional._evidence(conditional._sums(scores[cell], g), conditional._whitening(g)))


def test_tail_is_above_the_enumerated_one() -> None:
    """Chernoff's bound is at least the probability of as large a sum, over all positions."""
    g, scores = normal_scores(Y[:, 0]), conditional._scores(4)[:, 0]
    every = [np.array(one) for one in product(range(4), repeat=5)]
    sums = np.array([float(g @ scores[one]) for one in every])
    for one, value in zip(every[::17], sums[::17], strict=True):
        reached = float(np.mean(np.sign(value) * sums >= abs(value) - 1e-12))
        assert conditional._tail(scores, one, g, float(np.sign(value))) >= reached - 1e-12
    assert conditional._tail(scores, every[int(sums.argmax())], g, 1.0) < 0.1


@pytest.mark.slow
def test_size_and_power() -> None:
    """Of 300 null runs at most 42 reject at 5 % (false alarm 1e-6); a bias of .5 sd per sd of y is always seen."""
    rng = np.random.default_rng(2)
    most = int(stats.binom.isf(1e-6, 300, 0.05))
    null = sum(_run(rng, 0.0).pvalue <= 0.05 for _ in range(300))
    assert null <= most
    found = [_run(rng, 0.5) for _ in range(20)]
    assert all(one.pvalue <= 1e-3 and one.kind == "location" and one.statistic > 0 for one in found)


def _run(rng: np.random.Generator, slope: float) -> conditional.ConditionalTest:
    y = rng.normal(size=(150, 2))
    cells = [(_cells(special.ndtr(rng.normal(size=150) + slope * y[:, 0])), 20) for _ in range(2)]
    return conditional_test(cells, y, rng=rng)


def _cells(u: Floats) -> np.ndarray:
    return np.minimum((20 * u).astype(np.int64), 19)


def test_spread_is_told_from_location() -> None:
    """Outputs whose width is wrong along y, and right on average, are found as such."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=(600, 1))
    u = special.ndtr(rng.normal(size=600) * np.exp(0.5 * y[:, 0]))
    found = conditional_test([(_cells(u), 20)], y, rng=rng)
    assert (found.kind, found.pvalue < 1e-3, found.statistic > 0) == ("spread", True, True)


def test_scores_share_ties() -> None:
    """Equal summaries have one score, constant ones none."""
    scores = normal_scores(np.array([1.0, 1.0, 2.0]))
    assert scores[0] == scores[1] < scores[2]
    assert not normal_scores(np.ones(4)).any()
