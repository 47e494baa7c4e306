"""Tests of means with control variates."""

import numpy as np
import pytest
from scipy import stats

from ringtrue.statistics import controlled
from ringtrue.statistics.controlled import controlled_test
from ringtrue.values import Floats, Generator
from tests.builders import says


def _rows(rng: Generator, n: int, p: int, *, shift: float = 0.0) -> tuple[Floats, Floats]:
    """Return bounded, skew averages that go with their controls: the first have mean ``shift``, the second 0."""
    common, other = (np.sqrt(5) * (1.5 * rng.uniform(-1, 1, size=(n, p)) ** 2 - 0.5) for _ in range(2))
    return 0.7 * common + 0.3 * other + shift, common


def _naive(a: Floats, c: Floats) -> float:
    """Return the statistic by the formula, row by row."""
    slopes = [np.polyfit(c[:, k], a[:, k], 1)[0] for k in range(a.shape[1])]
    rows = a - np.array(slopes) * c
    matrix = np.eye(a.shape[1]) + sum(np.outer(row, row) for row in rows)
    total = rows.sum(axis=0)
    return float(total @ np.linalg.inv(matrix) @ total)


@pytest.mark.parametrize(("n", "p"), [(60, 3), (1000, 2), (1200, 20)])
def test_the_statistic_is_that_of_the_formula(n: int, p: int) -> None:
    """Least squares, the matrix that is not centred, and the row of the features' own variance."""
    a, c = _rows(np.random.default_rng(n), n, p)
    found = controlled_test(a, c, rng=np.random.default_rng(0))
    assert found.statistic == pytest.approx(_naive(a, c), rel=1e-9)


def test_many_rows_have_the_limit_law() -> None:
    """A thousand rows of two features have a chi-squared p-value, however small."""
    a, c = _rows(np.random.default_rng(1), 1000, 2, shift=0.2)
    found = controlled_test(a, c, rng=np.random.default_rng(0))
    assert found.pvalue == pytest.approx(stats.chi2.sf(found.statistic, 2), rel=1e-9)
    assert found.pvalue < 1e-12


def test_a_control_that_equals_the_average_leaves_nothing() -> None:
    """Outputs that are the truth have no difference from it, and rounding does not make one."""
    c = np.random.default_rng(1).normal(size=(100, 3))
    found = controlled_test(c * (1 + 1e-15), c, rng=np.random.default_rng(0))
    assert found.statistic < 1e-20
    assert found.pvalue == 1.0


def test_features_that_do_not_vary_or_repeat_others_decide_nothing() -> None:
    """A constant feature and a copy change nothing but the part of the identity: 2 S^2 / (1 + 2 V)."""
    a, c = _rows(np.random.default_rng(2), 400, 1, shift=0.05)
    more, control = np.hstack([a, a, 0 * a]), np.hstack([c, c, 0 * c])
    alone, three = (controlled_test(x, y, rng=np.random.default_rng(0)) for x, y in ((a, c), (more, control)))
    squared, both = (400 * alone.means[0]) ** 2, (400 * alone.errors[0]) ** 2 - 1
    assert alone.statistic == pytest.approx(squared / (1 + both))
    assert three.statistic == pytest.approx(2 * squared / (1 + 2 * both))
    np.testing.assert_allclose(three.scores, [*np.repeat(alone.scores, 2), 0.0])


def test_means_and_scores_are_those_of_the_differences() -> None:
    """Controlled means estimate the shift, and are as many of their errors from 0 as their scores say."""
    a, c = _rows(np.random.default_rng(3), 2000, 3, shift=0.1)
    found = controlled_test(a, c, rng=np.random.default_rng(0))
    # The sd of what the control leaves is 0.3: six standard errors, false-alarm rate 6e-9 for all three.
    assert np.abs(found.means - 0.1).max() < 6 * 0.3 / np.sqrt(2000)
    np.testing.assert_allclose(found.means / found.errors, found.scores)


def _alarms(shift: float, runs: int, seed: int) -> int:
    """Return in how many of so many runs 60 rows of three features are rejected at 5 %."""
    rng = np.random.default_rng(seed)
    pvalues = [controlled_test(*_rows(rng, 60, 3, shift=shift), rng=rng, resamples=79).pvalue for _ in range(runs)]
    return int(np.sum(np.array(pvalues) <= 0.05))


#: Rejections of 200 runs that a size of 0.08 exceeds with a chance of 1e-6.
_MOST = int(stats.binom.isf(1e-6, 200, 0.08))


def test_the_level_holds_for_skew_rows() -> None:
    """Of 200 runs with 60 skew rows at most 37 are rejected: false-alarm rate 1e-6 for a size of 0.08.

    A size of 0.29 is missed with probability 1e-3.
    """
    assert _MOST == 37
    assert _alarms(0.0, 200, seed=1) <= _MOST


def test_broken_twin_controls_with_another_mean_are_seen() -> None:
    """Averages whose mean is off by a tenth fail the same assertion."""
    assert _alarms(0.1, 200, seed=1) > _MOST


def test_many_features_have_a_test_too() -> None:
    """With 80 features variances are resampled only; one of them that is off is found."""
    a, c = _rows(np.random.default_rng(5), 500, 80)
    a[:, 7] += 0.3
    found = controlled_test(a, c, rng=np.random.default_rng(0))
    assert found.pvalue == 0.001
    assert int(np.argmax(np.abs(found.scores))) == 7


def test_what_cannot_be_tested_is_refused() -> None:
    """Too few rows, other shapes and numbers that are not finite."""
    rng = np.random.default_rng(1)
    for a, c in (
        (np.ones((49, 1)), np.ones((49, 1))),
        (np.ones((60, 2)), np.ones((60, 1))),
        (np.ones(60), np.ones(60)),
    ):
        with pytest.raises(ValueError, match="at least 50 rows, and 5 per column") as caught:
            controlled_test(a, c, rng=rng)
        says(str(caught.value), "arrived", "leave columns out")
    with pytest.raises(ValueError, match="must be finite"):
        controlled_test(np.full((60, 1), np.nan), np.ones((60, 1)), rng=rng)
    assert controlled.FEWEST == 50
