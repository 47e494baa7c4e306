"""The moment estimate inverts the moments, and bounds the influence of outliers."""

import math

import numpy as np
import pytest
from scipy import special

from ringtrue.statistics.effects import (
    moment_spread_and_bias,
    spread_and_bias,
)

from .laws import (
    even_scores,
    expected_ranks,
)


@pytest.mark.parametrize(("spread", "bias"), [(2**0.5, 0.0), (2**0.5, 0.3), (0.1, 1.0), (30.0, -5.0)])
def test_moment_estimate_inverts_the_moments(spread: float, bias: float) -> None:
    """Ranks among two draws in their expected proportions have the moments of N(delta, s^2) and give it back."""
    fit = moment_spread_and_bias(expected_ranks(10_000_000, 2, spread, bias), draws=2)
    assert fit.spread == pytest.approx(spread, rel=1e-3)
    assert fit.bias == pytest.approx(bias, abs=1e-3 * (1 + spread))


@pytest.mark.parametrize(("first", "second", "bias"), [(0.5, 0.25 + 1.393677 / 12, 0.0), (0.568755, 0.437013, 0.3)])
def test_moment_estimate_check_values(first: float, second: float, bias: float) -> None:
    """The tabulated moments of s^2 = 2 are recognised on two points with these moments."""
    gap = math.sqrt(second - first**2)
    fit = moment_spread_and_bias(np.array([first - gap, first + gap]))
    assert fit.spread**2 == pytest.approx(2, abs=2e-4)
    assert fit.bias == pytest.approx(bias, abs=2e-5)


def test_moment_estimate_bounds_the_influence_of_outliers() -> None:
    """Ten infinite scores in a thousand make the standard deviation infinite and hardly move the moments."""
    z = even_scores(990)
    wild = np.concatenate([z, np.full(5, np.inf), np.full(5, -np.inf)])
    assert spread_and_bias(wild).spread.estimate == math.inf
    assert moment_spread_and_bias(special.ndtr(wild)).spread == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize(("u", "spread"), [([0.5, 0.5], 0), ([0.0, 1.0], math.inf), ([0.3], 0)])
def test_moment_estimate_at_its_limits(u: list[float], spread: float) -> None:
    """Equal u have no spread and u at both ends have infinite spread."""
    assert moment_spread_and_bias(u).spread == spread
