"""Autocorrelation times against closed forms, a naive implementation, and what they are for: ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ringtrue.replicates.chains import autocorrelation_time, stride
from ringtrue.replicates.positions import among
from ringtrue.values import Floats


def ar1(rho: float, length: int, columns: int, rng: np.random.Generator) -> Floats:
    """Return stationary chains x' = rho x + noise with standard normal marginals."""
    noise = rng.standard_normal((length, columns))
    chain = np.empty_like(noise)
    chain[0] = noise[0]
    for t in range(1, length):
        chain[t] = rho * chain[t - 1] + np.sqrt(1 - rho**2) * noise[t]
    return chain


def geyer(x: Floats) -> float:
    """Return the initial monotone sequence estimate by its definition, in quadratic time."""
    n, centred = len(x), x - x.mean()
    acov = [float(centred[: n - k] @ centred[k:]) for k in range(n)]
    if acov[0] == 0:
        return 1.0
    total, least = -1.0, np.inf
    for even, odd in zip(acov[0 : n - 1 : 2], acov[1::2], strict=True):
        least = min(least, (even + odd) / acov[0])
        if least <= 0:
            break
        total += 2 * least
    return max(total, 1.0)


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=40))
def test_time_is_geyers_initial_monotone_sequence(values: list[int]) -> None:
    """The fast Fourier estimate is the textbook one."""
    x = np.array(values, float)
    assert autocorrelation_time(x[:, None])[0] == pytest.approx(geyer(x), rel=1e-6)


def test_columns_are_independent_chains() -> None:
    """Each column is judged by itself."""
    chains = ar1(0.8, 400, 5, np.random.default_rng(0))
    alone = [autocorrelation_time(chains[:, [j]])[0] for j in range(5)]
    assert autocorrelation_time(chains) == pytest.approx(alone, rel=1e-12)
    assert np.array_equal(stride(chains), [stride(chains[:, [j]])[0] for j in range(5)])


def test_time_of_an_autoregression() -> None:
    """The estimate is (1 + rho) / (1 - rho), and that of another rho is not."""
    # Var(tau) / tau^2 is about 2 (2 W + 1) / length, W the window, a few tau: one estimate has sd below 1.6, the mean
    # of 30 below 0.3. A bound of 2 is 6.6 of them: rate below 1e-10. The twin's mean is 9 and needs 26 of them.
    chains, faster = (ar1(rho, 20_000, 30, np.random.default_rng(2)) for rho in (0.9, 0.8))
    assert autocorrelation_time(chains).mean() == pytest.approx(19.0, abs=2.0)
    assert abs(autocorrelation_time(faster).mean() - 19.0) > 2.0
    # The stride is twice the time, of which it takes the largest of three estimates, rounded up.
    assert stride(chains).mean() == pytest.approx(38.0, abs=5.0)
    assert abs(stride(faster).mean() - 38.0) > 5.0


def test_independent_draws_are_mostly_kept() -> None:
    """Most chains of independent draws keep every draw."""
    # With 1000 draws the time is estimated with sd 0.1: above 1.5 for a share of chains far below one half.
    every = stride(np.random.default_rng(0).standard_normal((1000, 100)))
    assert np.mean(every == 1) > 0.5
    assert np.mean(stride(ar1(0.9, 1000, 100, np.random.default_rng(0))) == 1) < 0.5


def test_independent_discrete_draws_are_mostly_kept() -> None:
    """Equal values are no evidence of a chain that moves slowly: coin flips are as independent as normals."""
    # The bound is the one for continuous draws, rounded up: 1000 draws never look like a time of 3 (20 sd).
    flips = (np.random.default_rng(0).random((1000, 50)) < 0.5).astype(float)
    counts = np.random.default_rng(0).poisson(1.0, (1000, 50)).astype(float)
    assert stride(flips).max() <= 3
    assert stride(counts).max() <= 3


def test_repeated_states_are_thinned() -> None:
    """A chain that stays at each state k times has time k and stride 2 k: rejected proposals count."""
    # The mean over 100 chains of 400 states has sd below 0.2; the ceiling and the largest of three add at most four.
    states = np.random.default_rng(0).standard_normal((400, 100))
    assert 10.0 <= stride(np.repeat(states, 5, axis=0)).mean() <= 14.0


def test_antithetic_chains_are_kept_whole() -> None:
    """Negative autocorrelation makes ranks no worse, so nothing is dropped for it."""
    chains = ar1(-0.9, 2000, 20, np.random.default_rng(0))
    assert np.array_equal(autocorrelation_time(chains), np.ones(20))


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3])
def test_constant_chains_have_time_one(value: float) -> None:
    """A constant column has no autocorrelation to speak of, and rounding of its mean must not invent one."""
    assert np.array_equal(autocorrelation_time(np.full((1000, 2), value)), [1.0, 1.0])


@pytest.mark.parametrize("length", [1, 2, 3, 5, 19, 20, 21])
def test_short_and_constant_chains_do_not_crash(length: int) -> None:
    """A stride lies between 1 and the length, for the shortest and dullest chains."""
    for chain in (np.zeros((length, 2)), np.arange(2.0 * length).reshape(length, 2)):
        assert np.all((stride(chain) >= 1) & (stride(chain) <= length))


def test_stride_is_invariant_to_monotone_maps() -> None:
    """Ranks are all that matters, so a heavy-tailed map of a chain is thinned alike."""
    chains = ar1(0.7, 500, 5, np.random.default_rng(0))
    assert np.array_equal(stride(chains), stride(np.exp(5 * chains)))
    assert np.array_equal(stride(chains), stride(-chains))


def test_thinned_ranks_keep_the_level() -> None:
    """Ranks among thinned draws of a right but slow chain have ordinary tails; among all draws they have not."""
    # n = 2000 chains with rho = 0.95, 400 states. Uniform u put 0.5 % into the outer 0.5 %; measured on 200 000 chains,
    # unthinned ones put 3.25 % there (65 of 2000), and chains thinned to one time, which is less than what is done, put
    # 0.61 % there (12). So 34 or more have probability below 2e-7 when thinned, and fewer have 7e-6 when not.
    n, length = 2000, 400
    rng = np.random.default_rng(0)
    chains, truth, v = ar1(0.95, length, n, rng), rng.standard_normal(n), rng.random(n)
    thinned, whole = among(chains, truth, v, chains=1), among(chains, truth, v)
    outer = [int(np.sum(np.abs(position["u"] - 0.5) > 0.4975)) for position in (thinned, whole)]
    assert outer[0] < 34 <= outer[1]
    assert np.all(whole["draws"] == length)
    assert 4 < np.median(thinned["draws"]) < 20


def test_thinning_keeps_every_strideth_draw() -> None:
    """The rank of the truth is its rank among every k-th draw, counted from the last."""
    chains, truth = ar1(0.9, 300, 8, np.random.default_rng(3)), np.linspace(-1, 1, 8)
    position = among(chains, truth, np.full(8, 0.5), chains=1)
    kept = [chains[::-1, j][::k] for j, k in enumerate(stride(chains))]
    assert np.array_equal(position["draws"], [len(k) for k in kept])
    assert np.array_equal(
        position["rank"], [stats.rankdata([t, *k], "min")[0] - 1 for t, k in zip(truth, kept, strict=True)]
    )
