"""Chains placed in each other, against definitions, enumeration and closed forms; R-hat, effective size, neighbours."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from ringtrue.replicates.chains import (
    KNOTS,
    Placed,
    cut,
    effective_size,
    features,
    serial,
    split,
)
from ringtrue.values import Floats


def ar1(rho: float, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Return stationary chains along the last axis, with standard normal marginals."""
    chain = rng.standard_normal(shape)
    for t in range(1, shape[-1]):
        chain[..., t] = rho * chain[..., t - 1] + np.sqrt(1 - rho**2) * chain[..., t]
    return chain


def by_definition(chains: Floats, truth: float) -> tuple[Floats, Floats]:
    """Return the differences of features and of indicators of one replicate, loop by loop."""
    found = []
    for c, reference in enumerate(chains):

        def place(x: float, reference: Floats = reference) -> float:
            return float(((reference < x).sum() / 2 + (reference <= x).sum() / 2 + 0.5) / (len(reference) + 1))

        others = [place(x) for j, chain in enumerate(chains) if j != c for x in chain]
        u = place(truth)
        of_features = features(np.array(u)) - np.mean([features(np.array(v)) for v in others], axis=0)
        of_indicators = np.array([float(u <= knot) - np.mean(np.array(others) <= knot) for knot in KNOTS])
        found.append(np.concatenate([of_features, of_indicators]))
    mean = np.mean(found, axis=0)
    return mean[:4], mean[4:]


@given(st.integers(2, 4), st.integers(1, 6), st.integers(1, 3), st.integers(0, 99))
def test_differences_are_those_of_the_definition(chains: int, length: int, step: int, seed: int) -> None:
    """Sorting all draws at once places them as one would by hand, with ties too."""
    rng = np.random.default_rng(seed)
    values, truth = (rng.integers(0, 8 * step, shape).astype(np.float64) for shape in ((3, chains, length), (3,)))
    placed = Placed(values, truth)
    for i in range(3):
        expected = by_definition(values[i], truth[i])
        np.testing.assert_allclose(placed.differences()[i], expected[0], atol=1e-12)
        np.testing.assert_allclose(placed.below()[i], expected[1], atol=1e-12)


def noise_by_definition(chains: Floats) -> tuple[float, float]:
    """Return the mean square score of draws in other chains, and that of the means of whole chains, loop by loop."""

    def scores(draws: Floats, reference: Floats) -> Floats:
        below = [((reference < x).sum() / 2 + (reference <= x).sum() / 2 + 0.5) / (len(reference) + 1) for x in draws]
        return np.asarray(ndtri(below))

    pairs = [scores(chain, other) for j, chain in enumerate(chains) for c, other in enumerate(chains) if j != c]
    return float(np.mean(np.square(pairs))), float(np.mean(np.square(np.mean(pairs, axis=1))))


@pytest.mark.parametrize("shape", [(2, 1), (2, 7), (4, 63), (4, 64), (9, 130)])
@pytest.mark.parametrize("decimals", [0, 1, 12], ids=["many ties", "some ties", "no ties"])
def test_many_chains_are_placed_as_few(shape: tuple[int, int], decimals: int) -> None:
    """Running numbers that do not fit into one word, draws that are equal or not: all as the definition says."""
    rng = np.random.default_rng(0)
    values, truth = np.round(ar1(0.5, (2, *shape), rng), decimals), np.round(rng.standard_normal(2), decimals)
    placed = Placed(values, truth)
    for i in range(2):
        expected = (*by_definition(values[i], truth[i]), np.array(noise_by_definition(values[i])))
        for found, wanted in zip((placed.differences(), placed.below(), placed.noise()), expected, strict=True):
            np.testing.assert_allclose(found[i], wanted, atol=1e-12)


def test_differences_have_mean_zero_over_all_orders() -> None:
    """If truth and draws are exchangeable, the differences average to zero: exactly, over all 720 assignments."""
    numbers = np.array([0.3, -1.2, 2.0, 2.0, 0.9, -0.4])
    orders = np.array(list(permutations(numbers)))
    # One draw per chain: then truth and all five draws are exchangeable.
    placed = Placed(orders[:, 1:, None], orders[:, 0])
    np.testing.assert_allclose(placed.differences().mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(placed.below().mean(axis=0), 0.0, atol=1e-12)


def test_monotone_maps_change_nothing() -> None:
    """Only order counts: exp of everything has the same differences, noise and effective size."""
    rng = np.random.default_rng(0)
    values, truth = ar1(0.5, (20, 3, 30), rng), rng.standard_normal(20)
    one, other = Placed(values, truth), Placed(np.exp(5 * values), np.exp(5 * truth))
    for found in ("differences", "below", "noise", "members"):
        np.testing.assert_array_equal(getattr(one, found)(), getattr(other, found)())
    np.testing.assert_array_equal(one.agreement()[1], other.agreement()[1])


def test_grouping_changes_no_bit() -> None:
    """Replicates side by side have what each has alone."""
    rng = np.random.default_rng(1)
    values, truth = np.round(ar1(0.9, (40, 4, 51), rng), 1), rng.standard_normal(40)
    whole = Placed(values, truth)
    for i in (0, 7, 39):
        alone = Placed(values[i : i + 1], truth[i : i + 1])
        for found in ("differences", "below", "noise", "members"):
            np.testing.assert_array_equal(getattr(whole, found)()[i], getattr(alone, found)()[0])
        assert [a[i] for a in whole.agreement()] == [a[0] for a in alone.agreement()]


def test_members_are_the_truth_and_last_draws_in_the_first_chain() -> None:
    """The first chain is the reference, and no chain's own draw is placed in it."""
    values = np.array([[[1.0, 2.0, 3.0], [9.0, 9.0, 2.5], [9.0, 9.0, 0.0]]])
    found = Placed(values, np.array([5.0])).members()[0]
    np.testing.assert_allclose(found[:3], features(np.array([3.5, 2.5, 0.5]) / 4))
    assert np.isnan(found[3]).all()


def test_a_single_chain_is_cut_in_two() -> None:
    """Its first and last 45 % are the two, in order; a chain of two draws is too short and says so."""
    rows = cut(np.arange(100.0)[:, None], 1)
    np.testing.assert_array_equal(rows[0], [np.arange(45.0), np.arange(55.0, 100.0)])
    with pytest.raises(ValueError, match="at least 3 draws"):
        cut(np.zeros((2, 1)), 1)


def test_effective_size_of_an_autoregression() -> None:
    """It is M (1 - rho) / (1 + rho): 250 of 2 x 2375 draws at rho = .9, and that of another rho is not."""
    # Var(tau) / tau^2 is about 2 (2 W + 1) / M with a window W of a few tau, so one estimate has relative sd about .3
    # and the mean of 60 about .04: 25 % is 6 of them. The twin's mean is 2.1 times as large.
    slow, fast = (effective_size(split(ar1(rho, (60, 2, 2375), np.random.default_rng(2)))).mean() for rho in (0.9, 0.8))
    assert slow == pytest.approx(250, rel=0.25)
    assert fast != pytest.approx(250, rel=0.25)


def test_antithetic_draws_are_worth_more_than_their_number() -> None:
    """Negative autocorrelation makes the mean more precise, not less; the number stays finite."""
    size = effective_size(split(ar1(-0.9, (20, 4, 500), np.random.default_rng(0))))
    assert (size > 2000).all()
    assert (size <= 2000 * np.log10(2000)).all()


def rhat(halves: Floats) -> float:
    """Return the square root of total over within variance of half chains, of normal scores of the ranks."""
    many, length = halves.shape
    scores = ndtri((halves.ravel().argsort().argsort() + 0.625) / (halves.size + 0.25)).reshape(many, length)
    within = scores.var(axis=1, ddof=1).mean()
    return float(np.sqrt(((length - 1) / length * within + scores.mean(axis=1).var(ddof=1)) / within))


@pytest.mark.parametrize("length", [4, 9, 50])
def test_rhat_by_its_definition(length: int) -> None:
    """The larger of that of the draws and of their distances from the median; an odd draw is left out."""
    values = np.random.default_rng(3).standard_normal((1, 2, length))
    values[0, 1] *= 3  # chains that differ in spread alone
    halves = np.concatenate([values[0, :, : length // 2], values[0, :, -(length // 2) :]])
    of_draws, folded = rhat(halves), rhat(np.abs(halves - np.median(halves)))
    found = Placed(values, np.zeros(1)).agreement()[0][0]
    assert found == pytest.approx(max(of_draws, folded), rel=1e-12)
    if length == 50:  # the twin that does not fold sees nothing
        assert of_draws < 1.05 < 1.2 < found


def size(halves: Floats) -> float:
    """Return the effective size by loops, as Geyer's initial monotone sequence is defined."""
    many, n = halves.shape
    centred = halves - halves.mean(axis=1, keepdims=True)
    within = halves.var(axis=1, ddof=1).mean()
    total = within * (n - 1) / n + halves.mean(axis=1).var(ddof=1)

    def rho(lag: int) -> float:
        covariance = sum(float(row[: n - lag] @ row[lag:]) for row in centred) / (many * n)
        return 1.0 if lag == 0 else 1 - (within - covariance) / total

    time, least, j = -1.0, np.inf, 0
    while rho(2 * j) + rho(2 * j + 1) > 0 and 2 * j + 3 <= n - 2:
        least = min(least, rho(2 * j) + rho(2 * j + 1))
        time, j = time + 2 * least, j + 1
    time += rho(2 * j) if rho(2 * j) + rho(2 * j + 1) >= 0 else max(rho(2 * j), 0.0)
    return float(halves.size / max(time, 1 / np.log10(halves.size)))


@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.5, 0.95])
@pytest.mark.parametrize("shape", [(4, 100), (2, 51), (3, 20), (1, 16)], ids=str)
def test_effective_size_by_its_definition(rho: float, shape: tuple[int, int]) -> None:
    """All chains at once have what loops over lags give."""
    halves = split(ar1(rho, (5, *shape), np.random.default_rng(4)))
    assert effective_size(halves) == pytest.approx([size(one) for one in halves], rel=1e-9)


def test_halves_of_a_few_draws_that_hardly_move_are_worth_little() -> None:
    """The usual rule would end before it had seen anything, and call 2 x 9 draws of a ramp more than 18."""
    ramp = np.tile(np.arange(9.0), (1, 2, 1))
    assert effective_size(split(ramp))[0] < 9
    assert size(split(ramp)[0]) > 18


def test_chains_that_never_move_have_no_agreement() -> None:
    """R-hat is infinite if they differ and unknown if they do not, and rounding makes nothing move."""
    apart, together = np.full((1, 2, 50), 0.1), np.full((1, 3, 50), 0.1)
    apart[0, 1] = 1 / 3
    for chains, expected, stuck in ((apart, np.inf, 2), (together, np.nan, 3)):
        placed = Placed(chains, np.zeros(1))
        np.testing.assert_array_equal(placed.agreement()[0], [expected])
        assert placed.stuck()[0] == stuck
        assert np.isfinite(placed.differences()).all()
    assert np.isnan(Placed(together, np.zeros(1)).agreement()[1]).all()


@pytest.mark.parametrize("numbers", [(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (1.0, 1.0, 2.0, 5.0, 5.0, 5.0)])
def test_serial_scores_have_mean_0_and_variance_1_over_all_orders(numbers: tuple[float, ...]) -> None:
    """Exactly, for both lags, with ties and without."""
    scores = serial(np.array(list(permutations(numbers))).T)
    np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.square(scores).mean(axis=0), 1.0, rtol=1e-12)


def test_serial_scores_need_five_draws_that_differ() -> None:
    """Four draws, or equal ones, say nothing."""
    assert np.isnan(serial(np.zeros((4, 3)))).all()
    assert np.isnan(serial(np.ones((9, 3)))).all()
