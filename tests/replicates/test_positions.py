"""u: exactly uniform by enumeration, by closed form, and for discrete truths; counting; ranks of members."""

from itertools import combinations_with_replacement
from math import lcm
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import special, stats

from ringtrue.distributions import Gamma, Law, Mixture, Normal, as_distribution, stack
from ringtrue.distributions.frozen import ScipyLaw
from ringtrue.distributions.laws import MixtureLaw
from ringtrue.functions import SEVERAL, Distance, identity
from ringtrue.replicates.positions import (
    EDGE,
    Place,
    among,
    count,
    count_entries,
    exact,
    member_ranks,
    ranked,
)
from ringtrue.values import Floats
from tests.builders import kolmogorov

small = st.integers(-2, 2).map(float)


# Ranks.


@pytest.mark.parametrize("draws", [1, 2, 3, 4, 5])
def test_every_tie_pattern_gives_exactly_uniform_cells(draws: int) -> None:
    """Whatever the values, if every member is equally likely the truth, u is exactly uniform over V.

    For all patterns of ties among the members, each in turn as the truth, and V on a grid that splits evenly for
    every tie size: each of the draws + 1 cells, and each rank, gets the same number of cases.
    """
    grid = lcm(*range(1, draws + 2))
    v = (np.arange(grid) + 0.5) / grid
    for members in combinations_with_replacement(range(draws + 1), draws + 1):
        u, ranks = zip(*(enumerated(members, j, v) for j in range(draws + 1)), strict=True)
        cells = np.bincount((np.concatenate(u) * (draws + 1)).astype(int), minlength=draws + 1)
        assert np.array_equal(cells, np.full(draws + 1, grid))
        assert np.array_equal(np.bincount(np.concatenate(ranks), minlength=draws + 1), np.full(draws + 1, grid))
        assert np.mean(np.concatenate(u)) == pytest.approx(0.5, abs=1e-12)


def enumerated(members: tuple[int, ...], truth: int, v: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return u and rank with one member as the truth, for every v."""
    draws = np.array([m for j, m in enumerate(members) if j != truth], float)
    position = among(np.repeat(draws[:, None], len(v), axis=1), np.full(len(v), float(members[truth])), v)
    return position["u"], position["rank"]


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.floats(0, 1, exclude_max=True))
def test_u_lies_in_the_cell_of_its_rank(below: int, ties: int, above: int, v: float) -> None:
    """u = (below + V (ties + 1)) / (M + 1), the rank is one of the tied ones, and z is the score of u."""
    draws = below + ties + above
    position = ranked(np.array([below]), np.array([ties]), np.array([draws]), np.array([v]))
    rank, u = int(position["rank"][0]), float(position["u"][0])
    assert u == pytest.approx((below + v * (ties + 1)) / (draws + 1), abs=2 * EDGE)
    assert below <= rank <= below + ties
    assert rank / (draws + 1) <= u * (1 + 1e-15) + EDGE
    assert u <= (rank + 1) / (draws + 1) * (1 + 1e-15)
    assert position["z"][0] == special.ndtri(u)
    assert position["draws"][0] == draws


def test_rounding_does_not_lift_a_rank_out_of_its_cell() -> None:
    """With V one ulp below 1 the rank stays, although below + V rounds up."""
    position = ranked(np.array([3, 9]), np.array([0, 0]), np.array([9, 9]), np.full(2, 1 - 2.0**-53))
    assert np.array_equal(position["rank"], [3, 9])
    assert np.all((position["u"] > 0) & (position["u"] < 1))


def test_unequal_numbers_of_draws() -> None:
    """Each replicate is ranked among its own number of draws."""
    position = ranked(np.array([0, 5]), np.array([0, 0]), np.array([1, 9]), np.array([0.5, 0.5]))
    assert position["u"] == pytest.approx([0.25, 0.55])


# Counting.


def layouts(values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the same numbers in several memory layouts."""
    wide = np.repeat(np.repeat(values, 2, axis=0), 3, axis=1)
    return {
        "C": np.ascontiguousarray(values),
        "F": np.asfortranarray(values),
        "strided": wide[::2, ::3],
        "reversed": np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1],
    }


@pytest.mark.parametrize("draws", [1, 254, 255, 256, 510, 511, 1000])
@pytest.mark.parametrize("copies", [1, 5], ids=["few columns", "many columns"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, np.uint8, np.bool_])
def test_count_is_the_naive_sum(draws: int, copies: int, dtype: type) -> None:
    """Counting one column after the other, or bytes in runs, gives the naive sums, for all dtypes and layouts."""
    rng = np.random.default_rng(draws)
    values: NDArray[Any] = rng.integers(0, 2 if dtype is np.bool_ else 5, (draws, 7 * copies)).astype(dtype)
    truth = np.tile([-1.0, 0.0, 0.5, 1.0, 2.0, 4.0, 9.0], copies)
    for layout in layouts(values).values():
        below, ties = count(layout, truth)
        assert np.array_equal(below, np.sum(values < truth, axis=0))
        assert np.array_equal(ties, np.sum(values == truth, axis=0))
        assert below.dtype == ties.dtype == np.int64


def test_count_of_one_column() -> None:
    """Draws of a single replicate may come without its axis; infinite draws count as usual."""
    below, ties = count(np.array([-np.inf, 1.0, 2.0, np.inf]), np.array(1.0))
    assert (int(below), int(ties)) == (1, 1)


@pytest.mark.parametrize("d", [1, 2, 4, 5, 9, 300])
@pytest.mark.parametrize("draws", [1, 7, 8, 255, 256, 1021])
def test_count_of_entries_is_the_naive_sum(draws: int, d: int) -> None:
    """Counting all entries of a vector at once gives the naive sums, with ties and lost values."""
    rng = np.random.default_rng(draws + d)
    values = rng.integers(0, 4, (5, draws, d)).astype(float)
    values[3] = rng.normal(size=(draws, d))
    values[4, -1, -1] = np.nan
    theta = rng.integers(-1, 5, (5, d)).astype(float)
    stored = np.swapaxes(np.ascontiguousarray(np.swapaxes(values, 0, 1)), 0, 1)
    for layout in (values, stored):
        below, ties = count_entries(layout, theta)
        assert np.array_equal(below, (values < theta[:, None]).sum(axis=1))
        assert np.array_equal(ties, (values == theta[:, None]).sum(axis=1))


@pytest.mark.parametrize("d", [3, 5])
@pytest.mark.parametrize("draws", [255, 256, 260, 2039, 2040, 2041, 2048, 5000, 65_535, 65_536])
def test_count_of_entries_does_not_overflow(draws: int, d: int) -> None:
    """With all draws on one side, or tied, the count is their number, beyond what integers of its parts can hold."""
    for value, expected in ((-1.0, (draws, 0)), (0.0, (0, draws)), (1.0, (0, 0))):
        below, ties = count_entries(np.full((2, draws, d), value), np.zeros((2, d)))
        assert np.array_equal(below, np.full((2, d), expected[0]))
        assert np.array_equal(ties, np.full((2, d), expected[1]))


def test_count_of_entries_leaves_the_buffers_of_numpy_alone() -> None:
    """The size of buffers is that of the caller again, also after an error."""
    before = np.getbufsize()
    count_entries(np.zeros((2, 3, 1)), np.zeros((2, 1)))
    assert np.getbufsize() == before
    with pytest.raises(ValueError, match="reshape"):
        count_entries(np.zeros((2, 3, 9)), np.zeros((2, 8)))
    assert np.getbufsize() == before


# Members.


@given(arrays(float, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=small), st.data())
def test_member_ranks_count_the_members_below(values: Floats, data: st.DataObject) -> None:
    """Every member's rank is the number of members below it, the truth's the number of draws below it."""
    truth = data.draw(arrays(float, values.shape[1], elements=small))
    members = np.concatenate([truth[None], values]).T
    ranks = member_ranks(values, truth)
    assert np.array_equal(ranks, (members[:, None, :] < members[:, :, None]).sum(axis=2))
    assert np.array_equal(ranks[:, 0], count(values, truth)[0])


def test_member_ranks_without_ties_are_plain_ranks() -> None:
    """Without ties they are a permutation."""
    rng = np.random.default_rng(0)
    values, truth = rng.normal(size=(300, 20)), rng.normal(size=20)
    assert np.array_equal(member_ranks(values, truth), stats.rankdata(np.vstack([truth, values]).T, axis=1) - 1)


# Exact laws.


def known(law: Law, truth: Floats, v: Floats) -> Place:
    """Return the positions of truths in known laws, with the given uniforms for atoms."""
    return exact(law, truth, lambda: v)


def test_exact_route_is_the_distribution_function() -> None:
    """Without atoms u is the cdf, z its score, and V is not used."""
    law, truth = Gamma(np.array([1.0, 2.0, 3.0]), 2.0), np.array([0.2, 1.0, 4.0])
    position = known(law, truth, np.full(3, np.nan))
    assert position["u"] == pytest.approx(stats.gamma(law.shape, scale=0.5).cdf(truth), rel=1e-12)
    assert position["z"] == pytest.approx(special.ndtri(position["u"]), rel=1e-9)
    assert np.array_equal(position["rank"], [-1, -1, -1])
    assert np.array_equal(position["draws"], [0, 0, 0])


def test_saturated_values_are_kept() -> None:
    """Fifty standard deviations out, u stops at the edge of (0, 1) and z keeps its size; infinity is kept too."""
    position = known(Normal(0, 1), np.array([-50.0, 50.0, -np.inf, np.inf]), np.zeros(4))
    assert np.array_equal(position["u"], [EDGE, 1 - EDGE, EDGE, 1 - EDGE])
    assert np.array_equal(position["z"], [-50.0, 50.0, -np.inf, np.inf])
    assert 0 < EDGE < 1 - EDGE < 1


def test_not_a_number_stays_not_a_number() -> None:
    """A truth that is nan is lost, not moved to an edge."""
    assert np.isnan(known(Normal(0, 1), np.array([np.nan]), np.zeros(1))["u"][0])


def test_atoms_are_spread_over_their_probability() -> None:
    """u = F(x-) + V (F(x) - F(x-)), with the score from the accurate tail."""
    law, k, v = ScipyLaw(stats.poisson(2.0)), np.array([0.0, 1.0, 4.0]), np.array([0.0, 0.25, 0.75])
    position = known(law, k, v)
    oracle = stats.poisson(2.0)
    assert position["u"] == pytest.approx(np.maximum(oracle.cdf(k - 1) + v * oracle.pmf(k), EDGE), rel=1e-12)
    far = known(law, np.array([60.0]), np.array([0.5]))
    assert far["u"][0] == 1 - EDGE
    assert -special.ndtri(oracle.sf(59)) <= far["z"][0] <= -special.ndtri(oracle.sf(60))


@pytest.mark.parametrize(
    ("outcomes", "law"),
    [
        (np.arange(2), stats.bernoulli(0.3)),
        (np.arange(60), stats.poisson(3.3)),
        (np.arange(11), stats.binom(10, 0.9)),
        (np.arange(7, 15), stats.randint(7, 15)),
    ],
    ids=["bernoulli", "poisson", "binomial", "uniform"],
)
@pytest.mark.parametrize("f", [identity, Distance(2.0, 1.0)], ids=["identity", "distance"])
def test_atoms_give_exactly_uniform_u(outcomes: NDArray[np.int64], law: Any, f: Any) -> None:
    """If the truth follows a discrete law, P(u <= t) = t exactly.

    Given the truth, u is uniform between its values at V = 0 and V = 1, so the law of u is a weighted sum.
    """
    marginal = as_distribution(law, what="the law").marginal(f)
    truth = f.evaluate(outcomes.astype(float), SEVERAL)
    low, high = (known(marginal, truth, np.full(len(truth), v))["u"] for v in (0.0, 1.0))
    t = np.linspace(0, 1, 41)[:, None]
    given_truth = np.clip((t - low) / np.maximum(high - low, 1e-300), 0, 1)
    assert given_truth @ law.pmf(outcomes) == pytest.approx(t[:, 0], abs=1e-12)


def test_an_atom_in_a_continuous_law() -> None:
    """A mixture of an atom and a density spreads the atom and leaves the rest alone."""
    law = MixtureLaw([ScipyLaw(stats.randint(0, 1)), Normal(0, 1)], np.array([0.4, 0.6]))
    position = known(law, np.array([-1.0, 0.0, 0.0, 1.0]), np.array([0.3, 0.0, 1.0, 0.3]))
    tail = 0.6 * stats.norm.cdf(-1)
    assert position["u"] == pytest.approx([tail, 0.3, 0.7, 1 - tail], abs=1e-12)
    assert position["z"] == pytest.approx(special.ndtri(position["u"]), abs=1e-9)


def test_point_masses_have_a_place_among_normals() -> None:
    """At its point u is V, exactly uniform; beside it u is at the edge; the others are what they are alone."""
    mean, sd = np.array([0.0, 3.0, 3.0, 3.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    truth, v = np.array([0.7, 3.0, 2.0, 4.0, 50.0]), np.array([0.1, 0.25, 0.25, 0.25, 0.1])
    position = known(Normal(mean, sd), truth, v)
    assert position["u"][1:4].tolist() == [0.25, EDGE, 1 - EDGE]
    assert position["z"][1:4].tolist() == [special.ndtri(0.25), -np.inf, np.inf]
    alone = known(Normal(mean[[0, 4]], sd[[0, 4]]), truth[[0, 4]], v[[0, 4]])
    assert np.array_equal(position["u"][[0, 4]], alone["u"])
    assert np.array_equal(position["z"][[0, 4]], alone["z"])
    assert position["z"][4] == 50.0
    for x, u in ((3.0, 0.25), (2.0, EDGE), (4.0, 1 - EDGE)):
        assert known(Normal(3.0, 0.0), np.array(x), np.array(0.25))["u"] == u


def test_mixture_output_is_known() -> None:
    """Batches of mixtures go the exact route like any law."""
    batch = stack([Mixture([Normal(m, 1), Normal(-m, 1)]) for m in (1.0, 2.0)])
    position = known(batch.marginal(identity), np.zeros(2), np.zeros(2))
    assert position["u"] == pytest.approx([0.5, 0.5])


# Discrete truths, end to end: theta ~ Poisson(3), y ~ Binomial(theta, 1/2), so theta - y given y is Poisson(3/2).

N = 20_000
# Massart: P(D > 2.7 / sqrt(n)) <= 2 exp(-2 * 2.7^2) = 9e-7 for uniform u.
MASSART = 2.7 / np.sqrt(N)


def poisson_study(seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], np.random.Generator]:
    """Return truths and data."""
    rng = np.random.default_rng(seed)
    theta = rng.poisson(3.0, N)
    return theta, rng.binomial(theta, 0.5), rng


def test_exact_discrete_posteriors_give_uniform_u() -> None:
    """u of a right discrete posterior is uniform; at the middle of its atoms it is not."""
    # The twin's u has at least P(theta = y) > 0.2 of its mass in points: its distance is at least 0.1.
    theta, y, rng = poisson_study(1)
    posterior = ScipyLaw(stats.poisson(1.5, loc=y))
    truth = theta.astype(float)
    assert kolmogorov(known(posterior, truth, rng.random(N))["u"]) <= MASSART
    assert kolmogorov(known(posterior, truth, np.full(N, 0.5))["u"]) > 0.1


@pytest.mark.parametrize("draws", [1, 9, 40])
def test_draws_of_discrete_posteriors_give_uniform_u(draws: int) -> None:
    """Ranks with ties broken at random are uniform; mid-ranks and ranks from below are not."""
    # The twins: mid-ranks pile up at the points of the tie patterns; dropping ties puts P(no draw below) > 0.2 in the
    # first cell, against 1 / (draws + 1) <= 1/2 (for one draw, 0.5 + P(tie) / 2).
    theta, y, rng = poisson_study(2)
    values, truth = (y + rng.poisson(1.5, (draws, N))).astype(float), theta.astype(float)
    position = among(values, truth, rng.random(N))
    below, ties = count(values, truth)
    mid = (below + 0.5 * (ties + 1)) / (draws + 1)
    from_below = (below + rng.random(N)) / (draws + 1)
    assert kolmogorov(position["u"]) <= MASSART
    assert kolmogorov(mid) > MASSART
    assert kolmogorov(from_below) > MASSART


def test_rank_route_tends_to_the_exact_one() -> None:
    """With many draws, the rank's u is the exact u, to within the error of a binomial share."""
    # Given u, the rank is Binomial(M, u): 6 standard deviations, 200 replicates, rate 200 * 2e-9 = 4e-7.
    rng = np.random.default_rng(0)
    truth, draws = rng.normal(size=200), 5000
    law = Normal(np.linspace(-1, 1, 200), 1.2)
    without_draws = known(law, truth, rng.random(200))["u"]
    counted = among(law.sample(draws, rng), truth, rng.random(200))["u"]
    wrong = among(law.sample(draws, rng) + 0.5, truth, rng.random(200))["u"]
    bound = 6 * np.sqrt(without_draws * (1 - without_draws) / draws) + 10 / draws
    assert np.all(np.abs(counted - without_draws) <= bound)
    assert not np.all(np.abs(wrong - without_draws) <= bound)
