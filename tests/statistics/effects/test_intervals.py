"""What all sizes share: how an interval reads, which integers are ranks, what is refused."""

from collections.abc import Callable
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ringtrue.statistics.effects import (
    Interval,
    coverage,
    distance,
    divergence,
    rank_probabilities,
    spread_and_bias,
    variance_ratio,
    wasserstein,
)


def test_coverage_interval_is_clopper_pearson() -> None:
    """The interval is the exact binomial one, also at extreme confidences and for all hits or none."""
    for k, confidence in ((0, 0.95), (37, 0.9995), (50, 0.9)):
        measure = coverage(np.repeat([0.5, 0.999], [k, 50 - k]), confidence=confidence)
        exact = stats.binomtest(k, 50).proportion_ci(confidence, method="exact")
        assert (measure.low, measure.high) == pytest.approx((exact.low, exact.high), abs=1e-12)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint64])
def test_ranks_of_any_integer_type_are_the_same(kind: type[np.integer[Any]]) -> None:
    """Small and unsigned integers neither overflow nor are refused."""
    ranks = np.random.default_rng(18).integers(0, 200, 100)
    for measure in (coverage, distance, wasserstein, divergence, variance_ratio, spread_and_bias):
        assert measure(ranks.astype(kind), draws=199) == measure(ranks, draws=199)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: spread_and_bias([]), ValueError, "shape"),
        (lambda: spread_and_bias([[0.1]]), ValueError, "shape"),
        (lambda: spread_and_bias([np.nan]), ValueError, "nan"),
        (lambda: spread_and_bias([0.1], confidence=95), ValueError, "confidence"),
        (lambda: spread_and_bias([0.1], lost=-1), ValueError, "lost"),
        (lambda: spread_and_bias([0.5], draws=9), TypeError, "integers"),
        (lambda: spread_and_bias([10], draws=9), ValueError, r"0\.\.9"),
        (lambda: spread_and_bias([0], draws=0), ValueError, "draws"),
        (lambda: coverage([3.0]), ValueError, "draws="),
        (lambda: coverage([0.5], nominal=90), ValueError, "nominal"),
        (lambda: distance([-0.1]), ValueError, r"\[0, 1\]"),
        (lambda: rank_probabilities(5000), ValueError, "2000"),
        (lambda: rank_probabilities(5, spread=0.001), ValueError, "spread"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], error: type[Exception], says: str) -> None:
    """The message names what was wrong."""
    with pytest.raises(error, match=says):
        call()


def test_measures_print() -> None:
    """A measure reads as its name, estimate, interval and ideal."""
    assert str(coverage(np.full(10, 0.5))) == "coverage 1 (0.692 to 1; ideal 0.9)"


@pytest.mark.parametrize(
    ("low", "high", "ideal", "clear"),
    [
        (0.9, 1.1, 1.0, False),
        (1.01, 1.1, 1.0, True),
        (-2.0, -1.0, 0.0, True),
        (1.0, 1.1, 1.0, False),
        (0, 1, nan, False),
    ],
)
def test_an_interval_is_clear_if_it_excludes_its_ideal(low: float, high: float, ideal: float, clear: bool) -> None:
    """An end on the ideal does not exclude it, and without an ideal nothing is excluded."""
    assert Interval("bias", 1.0, low, high, ideal).clear is clear


def test_only_intervals_within_tolerance_are_certified() -> None:
    """Open ones and those without a tolerance are not, and a bare interval belongs to nothing."""
    one = Interval("skill", 0.3, 0.2, 0.4)
    assert (one.f, one.of, one.within, one.certified) == ("", None, "-", False)
    assert [replace(one, within=within).certified for within in ("yes", "no", "open")] == [True, False, False]
