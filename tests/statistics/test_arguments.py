"""Refusals: one for every kind of argument, and the same words everywhere. The room imports errors only."""

import ast
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.statistics import effects, uniformity
from ringtrue.statistics.arguments import as_counts, as_ranks, as_values, need_count, need_fraction
from ringtrue.statistics.effects import usefulness

ROOM = Path(rt.__file__).parent / "statistics"
X = [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize("value", [0, 1, -0.1, 95, math.nan, math.inf])
@pytest.mark.parametrize(
    "call",
    [
        lambda c: need_fraction(confidence=c),
        lambda c: effects.spread_and_bias(X, confidence=c),
        lambda c: effects.coverage(X, confidence=c),
        lambda c: effects.distance(X, confidence=c),
        lambda c: effects.wasserstein(X, confidence=c),
        lambda c: effects.cramer_von_mises(X, confidence=c),
        lambda c: effects.divergence(X, confidence=c),
        lambda c: effects.variance_ratio(X, confidence=c),
        lambda c: usefulness.skill(X, X, confidence=c),
        lambda c: usefulness.energy_skill(X, X, confidence=c),
        lambda c: uniformity.band(9, confidence=c),
    ],
)
def test_a_confidence_is_refused_in_the_same_words(call: Callable[[float], object], value: float) -> None:
    """Whoever is asked, the message says what a confidence is, what arrived, and what to pass."""
    says = r"^confidence must lie strictly between 0 and 1, but .* arrived; for 95 % pass 0\.95\.$"
    with pytest.raises(rt.errors.InvalidStudy, match=says) as caught:
        call(value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, 2.5, math.nan, math.inf])
def test_counts_are_whole_and_large_enough(value: float) -> None:
    """Fractions, nan and infinities are no counts."""
    with pytest.raises(rt.errors.InvalidStudy, match="draws must be a whole number, at least 1"):
        need_count(1, draws=value)
    need_count(1, draws=1)
    need_count(0, lost=0, draws=9.0)


def test_values_and_ranks_are_told_apart() -> None:
    """Whole floats are ranks for a test, but not where a forgotten z would pass for them."""
    assert as_values([0, 1], "u").dtype == np.float64
    assert as_ranks([0.0, 3.0], 3).tolist() == [0, 3]
    assert as_counts(np.array([0, 3, 3], np.uint8), 3).tolist() == [1, 0, 0, 2]
    with pytest.raises(TypeError, match="integers"):
        as_counts([0.0, 3.0], 3)


@pytest.mark.parametrize("file", sorted(ROOM.rglob("*.py")), ids=lambda file: str(file.relative_to(ROOM)))
def test_the_room_sees_errors_only(file: Path) -> None:
    """No module here imports one of another room."""
    depth = len(file.relative_to(ROOM.parent).parts) - 1
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            # One dot more than there are folders below the package leads to the package itself.
            assert node.level <= depth or node.module == "errors", ast.unparse(node)
            assert not (node.module or "").startswith("ringtrue"), ast.unparse(node)
