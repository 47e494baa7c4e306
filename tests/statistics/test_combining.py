"""Combinations of p-values against closed forms, closed testing and full enumeration."""

from collections.abc import Callable
from itertools import combinations, product
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ringtrue.statistics.combining import bonferroni, holm, in_stages, prefix_two_median, weighted_minimum

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

several = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(several)
def test_holm_is_closed_bonferroni(p: list[float]) -> None:
    """A Holm-adjusted p-value is the largest Bonferroni p-value of the sets that contain its hypothesis."""
    sets = [c for size in range(1, len(p) + 1) for c in combinations(range(len(p)), size)]
    closed = [max(bonferroni([p[j] for j in c]) for c in sets if i in c) for i in range(len(p))]
    assert holm(p) == pytest.approx(closed, rel=1e-12)
    assert holm(p).min() == pytest.approx(bonferroni(p), rel=1e-12)


@given(several)
def test_equal_weights_are_bonferroni(p: list[float]) -> None:
    """Dividing the level evenly is Bonferroni, and weight zero removes a hypothesis."""
    even = [1 / len(p)] * len(p)
    assert weighted_minimum(p, even) == pytest.approx(bonferroni(p), rel=1e-9)
    assert weighted_minimum([*p, 0.0], [*even, 0.0]) == pytest.approx(bonferroni(p), rel=1e-9)


def test_unequal_weights_divide_the_level() -> None:
    """The smallest p over its weight decides, and the result stops at one."""
    assert weighted_minimum([0.03, 0.02], [0.75, 0.25]) == pytest.approx(0.04)
    assert weighted_minimum([0.9, 0.8], [0.5, 0.5]) == 1.0


@given(several)
def test_prefix_two_median_is_its_definition(p: list[float]) -> None:
    """It is twice the smallest lower median over prefixes, at most one."""
    lower_medians = [sorted(p[:k])[ceil(k / 2) - 1] for k in range(1, len(p) + 1)]
    assert prefix_two_median(p) == min(1.0, 2 * min(lower_medians))


def level(combine: Callable[[list[float]], float], alpha: float, length: int) -> float:
    """Return the exact P(combination <= alpha) for independent uniform p-values.

    Only whether each p-value is at most alpha / 2 matters, so all patterns can be visited.
    """
    total = 0.0
    for small in product([False, True], repeat=length):
        p = [alpha / 2 if s else 1.0 for s in small]
        probability = (alpha / 2) ** sum(small) * (1 - alpha / 2) ** (length - sum(small))
        total += probability * (combine(p) <= alpha)
    return total


def test_prefix_two_median_has_exactly_its_level() -> None:
    """For independent p-values the level is attained in the limit; any smaller order statistic exceeds it."""

    def one_lower(p: list[float]) -> float:
        return 2 * min(sorted(p[:k])[max(ceil(k / 2) - 2, 0)] for k in range(1, len(p) + 1))

    def in_sorted_order(p: list[float]) -> float:
        return prefix_two_median(sorted(p))

    alpha = 0.1
    # A walk that steps up with probability alpha / 2 is ever again at or above its start with probability
    # exactly alpha; after twelve steps less than alpha / 100 of that is missing.
    assert 0.99 * alpha < level(prefix_two_median, alpha, 12) <= alpha
    assert level(one_lower, alpha, 12) > 1.2 * alpha
    assert level(in_sorted_order, alpha, 12) == pytest.approx(1 - 0.95**12)


@pytest.mark.parametrize("combine", [bonferroni, holm, prefix_two_median, lambda p: weighted_minimum(p, [1.0])])
@pytest.mark.parametrize("p", [[], [np.nan], [-0.1, 0.5], [0.5, 1.1], [[0.1], [0.2]], 0.5])
def test_what_is_not_a_pvalue_is_refused(combine: Callable[[Any], Any], p: Any) -> None:
    """Empty input, missing values, numbers outside [0, 1] and extra axes are refused."""
    with pytest.raises(ValueError, match=r"numbers in \[0, 1\] along one axis, got"):
        combine(p)


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.6], [1.5, -0.5], [np.nan, 1.0]])
def test_bad_weights_are_refused(weights: list[float]) -> None:
    """Weights of the wrong number, sign or sum are refused."""
    with pytest.raises(ValueError, match="add up to 1"):
        weighted_minimum([0.1, 0.2], weights)


def _staged(first: float, second: float) -> float:
    return float(in_stages(lambda many: SimpleNamespace(pvalue=first if many < 500 else second)).pvalue)


@pytest.mark.parametrize("turned", [False, True], ids=["alike", "opposed"])
def test_a_p_value_in_stages_is_valid(turned: bool) -> None:
    """Over all pairs of p-values that labels can give, dependent in two extreme ways, P(p <= t) is at most t."""
    second = np.arange(1, 1001) / 1000
    first = np.ceil((second[::-1] if turned else second) * 100) / 100
    found = np.array([_staged(a, b) for a, b in zip(first, second, strict=True)])
    assert (np.searchsorted(np.sort(found), second, side="right") / 1000 <= second + 1e-12).all()


def test_broken_twin_the_smaller_of_two_stages_is_not_valid() -> None:
    """Whoever takes the smaller of both has p <= 0.2 too often, where they are opposed."""
    second = np.arange(1, 1001) / 1000
    found = np.minimum(np.ceil(second[::-1] * 100) / 100, second)
    assert (found <= 0.2).mean() > 0.3
