"""The divergence on ranks is that of their law, and knows what may be lost."""

import math

import numpy as np
import pytest

from ringtrue.statistics.effects import (
    divergence,
    rank_probabilities,
)

from .laws import (
    even_scores,
    in_proportion,
)


def test_divergence_on_ranks_is_that_of_their_law() -> None:
    """Ranks in their expected proportions have the divergence sum p log((M + 1) p)."""
    p = rank_probabilities(9, spread=1.5, bias=0.4)
    found = divergence(in_proportion(1_000_000, p), draws=9)
    assert found.estimate == pytest.approx(float(p @ np.log(10 * p)), abs=1e-5)


def test_one_lost_replicate_may_hide_any_divergence() -> None:
    """Nothing bounds the divergence above once a replicate is lost."""
    found = divergence(even_scores(100), lost=1)
    assert (found.low, found.high) == (0, math.inf)


def test_a_sign_changes_nothing() -> None:
    """Scores far below 0 whose differences are rounding know as little as those far above."""
    z = 1e9 + 1e-5 * np.arange(10)
    below, above = divergence(-z), divergence(z)
    assert repr(below) == repr(above)
