"""Pre-ranks against brute force, and what must not matter to them."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue.errors import InvalidStudy
from ringtrue.functions import Context, pooled
from tests.builders import noisy, posterior

POOL = np.random.default_rng(1).normal(size=(8, 3, 2))
CONTEXT = Context(1, y=[0.0, 1.0, 2.0], uniforms=lambda many: np.full((3, many), 0.5))
FUNCTIONS = [rt.PreRank(measure) for measure in ("energy", "band", "average", "density")]


def test_energy_is_the_mean_distance_to_the_others() -> None:
    """Standardised by all members, member by member in a loop."""
    z = (POOL - POOL.mean(axis=0)) / POOL.std(axis=0)
    expected = [
        [np.mean([np.linalg.norm(z[i, j] - z[k, j]) for k in range(8) if k != i]) for j in range(3)] for i in range(8)
    ]
    np.testing.assert_allclose(pooled.energy(POOL), expected, rtol=1e-9)


def test_band_counts_pairs_around_a_member() -> None:
    """The depth is the number of pairs of others that an entry lies between, summed over entries."""
    expected = np.zeros((8, 3))
    for i, j, d in np.ndindex(8, 3, 2):
        below, above = (POOL[:, j, d] < POOL[i, j, d]).sum(), (POOL[:, j, d] > POOL[i, j, d]).sum()
        expected[i, j] += below * above
    np.testing.assert_allclose(pooled.band(pooled.entry_ranks(POOL)), expected)


def test_density_orders_members_as_scipy_does() -> None:
    """Members are ordered as by a Gaussian kernel density of Scott's width."""
    found = pooled.density(POOL)
    for j in range(3):
        # scipy divides by m - 1 where members are standardised by m here.
        kernel = stats.gaussian_kde(POOL[:, j].T, bw_method=lambda k: k.n ** (-1 / (k.d + 4)) * np.sqrt(7 / 8))
        assert np.array_equal(np.argsort(kernel(POOL[:, j].T)), np.argsort(found[:, j]))


@pytest.mark.parametrize("f", [*FUNCTIONS, rt.Reference(np.zeros((4, 2)), count=3), rt.Reference(lambda y: np.ones(2))])
def test_the_order_of_members_does_not_matter(f: Any) -> None:
    """Shuffled members have shuffled values, to the last bit; so have shifted and stretched ones but for rounding."""
    order = np.random.default_rng(2).permutation(8)
    assert np.array_equal(f.of_pool(POOL[order], CONTEXT), f.of_pool(POOL, CONTEXT)[order])


@pytest.mark.parametrize("f", FUNCTIONS)
def test_units_do_not_matter(f: Any) -> None:
    """Shifted and stretched entries have the same order of members."""
    moved = POOL * np.array([1e3, 1e-3]) + np.array([5.0, -2.0])
    assert np.array_equal(np.argsort(f.of_pool(moved, CONTEXT), axis=0), np.argsort(f.of_pool(POOL, CONTEXT), axis=0))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_equal_members_stay_equal(f: Any) -> None:
    """A member that stands twice has one value; an entry that is constant counts for nothing."""
    twice = np.concatenate([POOL, POOL[:1]])
    found = f.of_pool(twice, CONTEXT)
    assert np.array_equal(found[0], found[-1])
    constant = np.concatenate([POOL, np.ones((8, 3, 1))], axis=2)
    assert np.isfinite(f.of_pool(constant, CONTEXT)).all()


def test_heavy_tails_neither_overflow_nor_warn() -> None:
    """Members of any size have finite values."""
    huge = POOL.copy()
    huge[0] = 1e200
    for f in FUNCTIONS:
        assert np.isfinite(f.of_pool(huge, CONTEXT)).all()


def test_ranks_of_asked_functions_are_uniform_and_see_a_ring() -> None:
    """In a check, a right posterior has u of every pre-rank within reach of uniform; a ring is seen by the energy.

    The bound on the Kolmogorov distance of 300 u has a false-alarm rate of 1e-6 for each of six functions.
    """
    belief = rt.Normal(np.zeros(2), np.ones(2))
    asked = [*FUNCTIONS, rt.Reference(), rt.Reference(lambda y: y, name="of y")]
    ran = rt.run(belief, noisy, posterior, n=300, f=asked)
    bound = stats.kstwo.isf(1e-6, 300)
    assert all(stats.kstest(ran.u[:, k], "uniform").statistic < bound for k in range(6))
    ring = rt.run(belief, noisy, _ring, n=300, f=asked)
    assert stats.kstest(ring.u[:, 0], "uniform").statistic > bound


def _ring(mu0: Any, y: Any, rng: Any) -> Any:
    """Return draws on a circle that has the posterior's mean and variances."""
    angle = rng.uniform(0, 2 * np.pi, 99)
    return y / 2 + np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rt.PreRank("depth"), "must be one of"),  # type: ignore[arg-type]
        (lambda: rt.Reference(count=0), "at least 1"),
        (lambda: rt.PreRank().evaluate(1.0, Context()), "no value for one of them"),
        (lambda: rt.Reference(np.zeros((3, 5))).of_pool(POOL, CONTEXT), "must have 2 entries"),
        (lambda: rt.check_draws(POOL[0], np.zeros((3, 2, 8, 2)), chains=2, f=["theta", rt.PreRank()]), "Markov"),
    ],
)
def test_refusals(call: Any, words: str) -> None:
    """What cannot be asked is refused in words."""
    with pytest.raises((InvalidStudy, rt.errors.ReplicateFailed), match=words):
        call()
