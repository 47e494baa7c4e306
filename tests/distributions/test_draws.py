"""Draws of several chains, with weights of their own in every output of a batch, and with diagnostics."""

from typing import Any

import numpy as np
import pytest

from ringtrue.distributions import Draws

RNG = np.random.default_rng(7)


def test_chains_make_draws_dependent() -> None:
    """Draws of chains are not independent, one chain is iid=False, and without either nothing is said."""
    assert Draws(np.zeros(12), chains=3).iid is False
    assert Draws(np.zeros(12), iid=False).chains == 1
    assert Draws(np.zeros(12)).chains is None
    assert Draws(np.zeros(12)).iid is None


def test_draws_are_not_both_independent_and_chains() -> None:
    """iid=True and chains= contradict each other; so do weights and chains, whose order resampling would lose."""
    with pytest.raises(ValueError, match="either independent or chains"):
        Draws(np.zeros(12), iid=True, chains=3)
    for said in ({"chains": 3}, {"iid": False}):
        with pytest.raises(ValueError, match="either weighted or Markov chains"):
            Draws(np.zeros(12), weights=np.arange(12.0), **said)
    assert Draws(np.zeros(12), weights=np.ones(12), chains=3).chains == 3


@pytest.mark.parametrize("chains", [5, 0, -1, 2.0, True, 24], ids=str)
def test_chains_must_divide_the_draws(chains: Any) -> None:
    """The number of chains is a whole number that divides the draws, and the message shows both."""
    with pytest.raises(ValueError, match=rf"chains must .* divides the 12 draws, but {chains!r} arrived"):
        Draws(np.zeros(12), chains=chains)


def test_members_of_a_batch_are_its_outputs() -> None:
    """The j-th member has the j-th column of the values, of the weights and of the diagnostics."""
    values = {"a": RNG.normal(size=(6, 3)), "b": RNG.normal(size=(6, 3, 2))}
    weights = RNG.random((6, 3))
    batch = Draws(values, weights=weights, iid=True, diagnostics={"rhat": np.array([1.0, 1.1, 1.2]), "steps": 7})
    members = batch.members()
    assert len(members) == batch.batch == 3
    for j, one in enumerate(members):
        assert np.array_equal(one.values["a"], values["a"][:, j])
        assert np.array_equal(one.values["b"], values["b"][:, j])
        assert one.weights == pytest.approx(weights[:, j] / weights[:, j].sum(), rel=1e-15)
        assert (one.chains, one.iid) == (None, True)
        assert {name: float(value) for name, value in one.diagnostics.items()} == {"rhat": 1 + j / 10, "steps": 7.0}


def test_weights_for_all_are_the_weights_of_each() -> None:
    """One column of weights stands for that column in every output."""
    values, weights = RNG.normal(size=(6, 3)), RNG.random(6)
    for one in Draws(values, weights=weights).members():
        assert one.weights == pytest.approx(weights / weights.sum(), rel=1e-15)


@pytest.mark.parametrize(
    "weights",
    [np.ones((6, 2)), np.ones((3, 6)), np.ones((6, 3, 1)), "a", [[1], [2, 3]]],
    ids=["two outputs", "transposed", "three axes", "text", "unequal"],
)
def test_weights_of_a_batch_must_fit_it(weights: Any) -> None:
    """Weights of a batch have one column per output."""
    with pytest.raises(ValueError, match=r"weights must be 6 non-negative numbers.* \(6, 3\) in a batch"):
        Draws(np.zeros((6, 3)), weights=weights)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, 1.7e308])
def test_an_output_whose_weights_will_not_do_is_lost_alone(bad: float) -> None:
    """A column without a positive finite sum has no output and a reason; the others are what they would have been."""
    values, weights = RNG.normal(size=(6, 3)), RNG.random((6, 3))
    weights[:, 1] = bad
    first, lost, last = Draws(values, weights=weights).members()
    assert np.isnan(lost.values).all()
    assert "6 non-negative numbers" in lost.lost[0]
    for j, one in ((0, first), (2, last)):
        assert (one.values == values[:, j]).all()
        assert one.weights == pytest.approx(weights[:, j] / weights[:, j].sum(), rel=1e-15)
        assert not one.lost
    with pytest.raises(ValueError, match="6 non-negative numbers with a positive sum"):
        Draws(values[:, 1], weights=weights[:, 1])


def test_rows_of_unequal_length_are_no_draws() -> None:
    """A list that is no array is refused in words of ours."""
    with pytest.raises(ValueError, match="draws of one shape on axis 0, but a list of different shapes"):
        Draws([[1, 2], [3]])


def test_members_of_chains_are_chains() -> None:
    """The j-th member of a batch of chains is as many chains."""
    assert [one.chains for one in Draws(np.zeros((6, 3)), chains=2).members()] == [2, 2, 2]


def test_resampling_keeps_diagnostics_and_forgets_the_order() -> None:
    """Equal weights by resampling do not change what the sampler said of itself; the order means nothing after it."""
    draws = Draws(np.arange(8.0), weights=np.arange(1.0, 9.0), diagnostics={"rhat": 1.01})
    equal = draws.equally_weighted(np.random.default_rng(0))
    assert dict(equal.diagnostics) == {"rhat": 1.01}
    assert equal.iid is True


def test_copies_own_their_arrays() -> None:
    """A copy does not change with the buffer that the draws came in, and keeps the rest."""
    buffer = {"a": np.zeros(4)}
    draws = Draws(buffer, chains=2, diagnostics={"rhat": 1.0})
    copy = draws.copied()
    buffer["a"][:] = 1.0
    assert copy.values["a"].tolist() == [0.0] * 4
    assert (copy.chains, dict(copy.diagnostics)) == (2, {"rhat": 1.0})


def test_plain_draws_are_draws() -> None:
    """What is made the short way is what the class makes, and what will not do is refused by the same sentence."""
    values = np.arange(6.0).reshape(3, 2)
    short, long = Draws.plain(values), Draws(values)
    assert vars(short) == vars(long)
    assert (short.size, short.batch, short.lost) == (long.size, long.batch, long.lost)
    for bad in (np.zeros(0), np.array(["a"]), np.array(1.0)):
        with pytest.raises(ValueError, match="Draws needs"):
            Draws.plain(bad)
