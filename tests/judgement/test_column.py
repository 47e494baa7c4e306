"""A column reads ranks, u and z of one test function, whichever there are."""

import numpy as np
import pytest

from ringtrue.judgement.column import column_named, columns_of, strong_columns

from ..builders import column, complete, grid, normal, ranked, replicates, scores


def test_ranks_among_equally_many_draws_are_the_values() -> None:
    """Where every truth was ranked among M draws, tests and sizes read ranks, and M is known."""
    ranks = np.arange(60) % 20
    found = column(ranked(ranks, 19))
    assert found.draws == 19
    assert found.values.tolist() == found.scores.tolist() == ranks.tolist()
    assert found.route == "ranks of 19"


def test_exact_positions_are_sorted_and_scores_keep_their_order() -> None:
    """Without draws the values are u in order, the scores are z of the replicates, and no M is known."""
    z = np.random.default_rng(1).permutation(normal(50))
    found = column(scores(z))
    assert found.draws is None
    assert (np.diff(found.values) >= 0).all()
    assert found.scores.tolist() == z.tolist()
    assert found.route == "exact"


def test_draws_of_different_numbers_are_read_as_positions() -> None:
    """Ranks on different lattices have no common one: u and z are read, and the route says among how many draws."""
    found = column(replicates(grid(40), rank=np.arange(40) % 5, draws=np.arange(40)[:, None] % 7 + 5))
    assert (found.draws, found.route, found.fewest_and_most) == (None, "ranks of 5-11", (5, 11))
    mixed = column(replicates(grid(40), rank=np.arange(40) % 5, draws=(np.arange(40)[:, None] % 2) * 7))
    assert (mixed.draws, mixed.route) == (None, "exact or ranks")


def test_lost_replicates_are_counted_and_left_out() -> None:
    """No number of a column is that of a lost replicate."""
    found = column(complete(50, lost=(0, 49)))
    assert (found.n, found.lost) == (48, 2)
    assert found.weak is not None
    assert np.isfinite([found.values, found.scores, found.weak, found.misses]).all()


def test_a_part_has_the_route_of_the_whole() -> None:
    """Some replicates of a column with uneven draws are not ranked, though those few have equally many."""
    whole = column(replicates(grid(40), rank=np.arange(40) % 5, draws=np.where(np.arange(40) < 20, 5, 9)[:, None]))
    part = whole.at(np.arange(10))
    assert (part.n, part.draws, part.route) == (10, None, whole.route)


def test_misses_are_in_units_of_the_reported_sd() -> None:
    """They are nan where the sd is 0 or not known."""
    found = column(replicates(grid(3), truth=[3.0, 1.0, 1.0], mean=[1.0, 0.0, 0.0], sd=[4.0, 0.0, np.nan]))
    assert found.misses.tolist() == pytest.approx([0.5, np.nan, np.nan], nan_ok=True)


def test_columns_are_made_once_and_found_by_name_and_level() -> None:
    """Whoever asks for the columns of a record gets the same ones, so that what one worked out the others have."""
    ran = complete(20, 3, names=["a", "b", "c"], sees=["theta", "output", "theta"])
    assert columns_of(ran)[1] is columns_of(ran, "output")[0] is column_named(ran, "b")
    assert [one.name for one in strong_columns(ran)] == ["a", "c"]
    assert column_named(ran, "d") is None
