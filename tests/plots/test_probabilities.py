"""Reliability diagrams: a panel for each thing that may come, the band that right probabilities stay in."""

import numpy as np
import pytest
from scipy.special import expit

import ringtrue as rt
from ringtrue.errors import InvalidStudy


def outcomes(n: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes and reported probabilities."""
    rng = np.random.default_rng(1)
    x = 1.5 * rng.normal(size=n)
    return rng.random(n) < expit(x), expit(factor * x)


def thick(ax: object) -> int:
    """Return how many probabilities are drawn outside the band."""
    line = ax.get_lines()[2]  # type: ignore[attr-defined]
    return int(np.isfinite(line.get_ydata()).sum())


def test_curve_leaves_the_band_where_probabilities_are_wrong() -> None:
    """Log odds times 2 leave the band at most places, right ones at few: each place does in a tenth of runs."""
    wrong, right = (rt.plots.reliability(rt.check_probabilities(*outcomes(500, factor))) for factor in (2.0, 1.0))
    assert thick(wrong) > 200
    assert thick(right) < 200
    assert wrong.get_xlabel() == "reported probability"
    heights = [bar.get_height() for bar in wrong.patches]
    assert max(heights) == pytest.approx(0.14)


def test_panels_for_classes_and_test_functions() -> None:
    """Every class has a panel; so has every test function with few values, and the page of a result shows it."""
    rng = np.random.default_rng(2)
    p = rng.dirichlet([1, 1, 1], size=80)
    assert rt.plots.reliability(rt.check_probabilities(rng.integers(3, size=80), p)).shape == (3,)
    t, q = outcomes(100, 1.0)
    result = rt.check_draws(t, rng.random((100, 60)) < q[:, None])
    assert rt.plots.reliability(result).get_xlabel() == "share among truth and draws"
    assert "share among truth and draws" in [ax.get_xlabel() for ax in result.plot().get_axes()]
    assert rt.check_probabilities(t, q).plot().get_axes()
    assert "few values" in rt.plots.reading(result)


def test_a_number_on_the_continuum_has_no_diagram() -> None:
    """The refusal says what would have one."""
    rng = np.random.default_rng(3)
    with pytest.raises(InvalidStudy, match="Indicator"):
        rt.plots.reliability(rt.check_draws(rng.normal(size=50), rng.normal(size=(50, 19))))
