"""Where flagged members lie: the level by enumeration, borders with exact counts."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.statistics.separation import border, direction
from tests.builders import largest_excess


@pytest.mark.parametrize(("n", "many"), [(10, 5), (14, 4), (14, 7)])
def test_the_level_holds_over_all_choices(n: int, many: int) -> None:
    """Of all choices of flagged members at most a share alpha has p <= alpha, for every alpha up to 1 %.

    Broken twin: half the p-value, as if the side had been known.
    """
    chosen = np.array(list(combinations(range(n), many)))
    flags = np.zeros((len(chosen), n), bool)
    np.put_along_axis(flags, chosen, True, axis=1)
    found = [direction(np.arange(float(n))[:, None], one) for one in flags]
    p = np.array([one.pvalue if one else 1.0 for one in found])
    small = p[p <= 0.01]
    others = np.ones(len(p) - len(small))
    assert small.size
    assert largest_excess(np.concatenate([small, others])) <= 1
    assert largest_excess(np.concatenate([small / 2, others])) > 1


def test_the_quantity_that_separates_is_found() -> None:
    """Of five, the third, and which end of it; p-values are those of five together."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 5))
    for sign, low in ((1, True), (-1, False)):
        found = direction(values, sign * values[:, 2] < -0.3)
        assert found is not None
        assert (found.column, found.low) == (2, low)
        alone = direction(values[:, [2]], sign * values[:, 2] < -0.3)
        assert alone is not None
        assert found.pvalue == pytest.approx(5 * alone.pvalue)


def test_what_cannot_separate_says_nothing() -> None:
    """All flagged, none flagged, and quantities that do not vary."""
    for values, flagged in (
        (np.arange(5.0), np.ones(5)),
        (np.arange(5.0), np.zeros(5)),
        (np.ones(5), np.arange(5) > 2),
    ):
        assert direction(values[:, None], flagged.astype(bool)) is None


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.booleans()), min_size=3, max_size=30), st.booleans(), st.integers(1, 6)
)
def test_counts_are_those_beyond_the_border(members: list[tuple[float, bool]], low: bool, least: int) -> None:
    """Whatever the numbers, with ties: counting again gives the same, and "all" is all that can be had."""
    values, flagged = np.array([x for x, _ in members]), np.array([flag for _, flag in members])
    if not 0 < flagged.sum() < len(flagged) or np.ptp(values) == 0:
        return
    found = border(values, flagged, low=low, least=least)
    beyond = values < found.value if low else values > found.value
    assert (found.beyond, found.flagged_beyond) == (beyond.sum(), flagged[beyond].sum())
    # By definition: the nearest member that is not flagged, or equals one that is not.
    free = values[~flagged]
    pure = values < free.min() if low else values > free.max()
    if pure.sum() >= least:
        assert found.beyond == found.flagged_beyond == pure.sum()


def test_a_border_has_few_digits() -> None:
    """It is written as a person would write it."""
    values, flagged = np.array([0.1234, 0.5678, 0.8012, 0.8567, 3.0]), np.array([True, True, True, False, False])
    assert border(values, flagged, low=True, least=3).value == 0.81
    assert border(-values, flagged, low=False, least=3).value == -0.81
