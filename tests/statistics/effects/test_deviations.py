"""Norms of deviations seen with noise: closed forms in one dimension, and coverage."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

from ringtrue.statistics.effects.deviations import absolute, largest, norm_interval, normals, quadratic

from .laws import FEWEST, REPETITIONS, Floats


@pytest.mark.slow
def test_the_observed_direction_would_not_cover() -> None:
    """Broken twin: when the norm is small, so is the noise in the direction seen; for a skewed z it covers 0.83."""
    rng = np.random.default_rng(14)
    t = np.arange(1, 32) / 32
    gap = stats.gamma.cdf(2 * special.ndtri(t) + 4, 4) - t
    law = gap + t
    covariance = (np.minimum.outer(law, law) - np.outer(law, law)) / 200
    root = np.linalg.cholesky(covariance)
    noise = (root @ rng.standard_normal((31, 1000))).T
    true, hits, broken = float(quadratic(gap)), 0, 0
    for _ in range(REPETITIONS):
        seen = gap + root @ rng.standard_normal(31)
        size = float(quadratic(seen))
        found = norm_interval(seen, covariance, quadratic, confidence=0.95, observed=size)
        hits += int(found.low <= true <= found.high)
        # The truth is in the interval if what was seen is no outlier among norms of the truth's size along it.
        share = np.mean(quadratic(true * seen / size + noise) <= size)
        broken += int(0.025 <= share <= 0.975)
    assert hits >= FEWEST
    assert broken < FEWEST


def test_norms_are_those_of_functions_between_points() -> None:
    """Of a constant at 31 points inside (0, 1) and 0 at both ends: the mean, the root mean square, the largest."""
    x = np.full((2, 31), -3.0)
    assert absolute(x) == pytest.approx(3 * 31 / 32)
    assert quadratic(x) == pytest.approx(3 * np.sqrt(31 / 32))
    assert largest(np.append(x, [[1.0], [4.0]], axis=1)) == pytest.approx([3, 4])


@pytest.mark.parametrize("norm", [absolute, quadratic, largest])
def test_norm_of_one_number_is_its_absolute_value(norm: Callable[[Floats], Floats]) -> None:
    """For one number with unit noise, far from 0, the interval is that number -+ 1.96 in the units of the norm."""
    unit = float(norm(np.ones(1)))
    found = norm_interval(np.array([50.0]), np.eye(1), norm, confidence=0.95, observed=50 * unit)
    # The noise is 2000 normals, always the same; 0.12 is two standard errors of their outer quantiles.
    assert (found.low / unit, found.high / unit) == pytest.approx((48.04, 51.96), abs=0.12)
    assert found.estimate / unit == pytest.approx(50, abs=0.01)


def test_longest_deviation_turns_to_where_noise_is_largest() -> None:
    """Seen nothing, with noise of standard deviation 1 and 10, the norm may be 10 times a quantile of |N(0, 1)|."""
    found = norm_interval(np.zeros(2), np.diag([1.0, 100.0]), largest, confidence=0.95, observed=0.0)
    # Against its own median m: the D with P(|D + 10 x| <= m) = 0.025, about 10 * (0.674 + 1.96).
    assert found.low == 0
    assert found.high == pytest.approx(26.3, rel=0.05)


def test_norm_at_levels_beyond_the_draws() -> None:
    """Far from 0 the interval is the norm -+ the normal quantile at any confidence, up to the draws' noise."""
    for confidence in (0.95, 0.999, 1 - 1e-6, 1 - 1e-12):
        found = norm_interval(np.array([50.0]), np.eye(1), largest, confidence=confidence, observed=50.0)
        reach = -special.ndtri((1 - confidence) / 2)
        # Twenty draws in either tail: their quantile errs by 0.05 of itself at most from 0.95 on.
        assert (50 - found.low, found.high - 50) == pytest.approx((reach, reach), rel=0.1)


def test_noise_has_exact_moments() -> None:
    """The draws of the noise have mean 0 and unit covariance, to rounding."""
    x = normals(2000, 63)
    assert x.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert x.T @ x / 2000 == pytest.approx(np.eye(63), abs=1e-12)
