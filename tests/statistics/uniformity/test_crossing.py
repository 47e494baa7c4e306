"""The crossing probability against closed forms, brute force and itself."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from ringtrue.statistics.uniformity import crossing
from ringtrue.statistics.uniformity.crossing import Bounds, order_bounds, stay_probability


def by_recursion(bounds: Bounds, n: int) -> float:
    """The same probability from binomial transitions, without the Poisson process."""
    mass, before = {0: 1.0}, 0.0
    for t, low, high in zip(*bounds, strict=True):
        p = (t - before) / (1.0 - before)
        following: dict[int, float] = {}
        for x, y in itertools.product(mass, range(n + 1)):
            if low <= y <= high and y >= x:
                step = float(stats.binom.pmf(y - x, n - x, p))
                following[y] = following.get(y, 0.0) + mass[x] * step
        mass, before = following, t
    return sum(mass.values())


def ks_bounds(n: int, distance: float) -> Bounds:
    """Bounds that hold while the Kolmogorov distance stays below the given one."""
    i = np.arange(1, n + 1)
    return order_bounds(i / n - distance, (i - 1) / n + distance)


def test_kolmogorov_distance_of_twenty() -> None:
    """P(D >= 0.3) at n = 20 has a known value."""
    assert 1.0 - stay_probability(ks_bounds(20, 0.3), 20) == pytest.approx(0.0430670667, abs=1e-10)


@pytest.mark.parametrize("n", [1, 2, 7, 60, 100])
@pytest.mark.parametrize("x", [0.5, 0.9, 1.4, 2.0])
def test_agrees_with_the_exact_kolmogorov_law(n: int, x: float) -> None:
    """Order-statistic bounds reproduce scipy's exact law of the two-sided distance."""
    distance = min(0.999, x / n**0.5)
    assert 1.0 - stay_probability(ks_bounds(n, distance), n) == pytest.approx(
        stats.kstwo.sf(distance, n), rel=1e-7, abs=1e-12
    )


@pytest.mark.parametrize(("n", "t"), [(5, 0.2), (1000, 0.5), (10**6, 0.3), (10**6, 1e-6)])
def test_one_time_is_binomial(n: int, t: float) -> None:
    """With a single time the probability is a difference of binomial distribution functions."""
    spread = 2.0 * (n * t * (1 - t)) ** 0.5
    low, high = int(max(0, n * t - spread)), int(n * t + spread) + 1
    expected = stats.binom.cdf(high, n, t) - stats.binom.cdf(low - 1, n, t)
    bounds = Bounds(np.array([t]), np.array([low]), np.array([high]))
    assert stay_probability(bounds, n) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40)
@given(st.data())
def test_agrees_with_binomial_transitions(data: st.DataObject) -> None:
    """Any bounds, symmetric or not, give what a direct recursion gives."""
    n = data.draw(st.integers(1, 9))
    size = data.draw(st.integers(1, 5))
    t = np.sort(data.draw(st.lists(st.floats(0.01, 0.99), min_size=size, max_size=size, unique=True)))
    low = np.array(data.draw(st.lists(st.integers(-1, n // 2), min_size=size, max_size=size)))
    high = np.array(data.draw(st.lists(st.integers(n // 2, n + 1), min_size=size, max_size=size)))
    bounds = Bounds(t, low, high)
    assert stay_probability(bounds, n) == pytest.approx(by_recursion(bounds, n), abs=1e-12)


def test_symmetric_bounds_need_half_the_walk_and_give_the_same() -> None:
    """Breaking the symmetry by an irrelevant bound changes the route and not the answer."""
    n, t = 500, np.arange(1, 20) / 20
    low = stats.binom.ppf(0.01, n, t).astype(int)
    symmetric = Bounds(t, low, n - low[::-1])
    broken = Bounds(np.append(t, 0.951), np.append(low, 0), np.append(n - low[::-1], n))
    assert stay_probability(symmetric, n) == pytest.approx(stay_probability(broken, n), rel=1e-12)


def test_no_bounds_and_impossible_bounds() -> None:
    """Nothing forbidden has probability one, everything forbidden zero."""
    t = np.array([0.2, 0.7])
    assert stay_probability(Bounds(t, np.zeros(2, int), np.full(2, 8)), 8) == pytest.approx(1.0, abs=1e-13)
    assert stay_probability(Bounds(t, np.array([5, 0]), np.array([8, 4])), 8) == 0.0
    assert stay_probability(Bounds(np.empty(0), np.empty(0, int), np.empty(0, int)), 8) == pytest.approx(1.0)


def test_fourier_and_direct_sums_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """At n = 10^6 the fast convolution differs from the direct one by rounding only."""
    n = 10**6
    t = special.expit(np.linspace(-10, 10, 21))
    low = stats.binom.ppf(0.001, n, t).astype(int)
    bounds = Bounds(t, low, n - low[::-1])
    fast = stay_probability(bounds, n)
    monkeypatch.setattr(crossing, "_DIRECT", 10**12)
    assert stay_probability(bounds, n) == pytest.approx(fast, abs=2e-12)


def test_tiny_tails_are_known_to_twelve_decimals() -> None:
    """Rounding does not build up over a thousand steps."""
    n, distance = 1000, 0.11
    expected = 2.0 * special.smirnov(n, distance)
    assert 1.0 - stay_probability(ks_bounds(n, distance), n) == pytest.approx(expected, abs=1e-12)


def test_order_bounds_drop_what_cannot_bind() -> None:
    """Bounds at or outside the ends of the unit interval constrain nothing."""
    bounds = order_bounds([-0.1, 0.3], [0.8, 1.2])
    np.testing.assert_array_equal(bounds.t, [0.3, 0.8])
    np.testing.assert_array_equal(bounds.low, [0, 1])
    np.testing.assert_array_equal(bounds.high, [1, 2])


@pytest.mark.parametrize(
    ("t", "high"),
    [([0.5], [10]), ([0.3, 0.45], [300, 160]), ([0.3, 0.45], [300, 145]), ([0.05, 0.3, 0.45], [80, 300, 200])],
)
def test_bounds_that_no_path_keeps_to_have_no_probability(t: list[float], high: list[int]) -> None:
    """Far below what a thousand values make likely the chance is 0, not what is left of a law that was cut off."""
    low = np.zeros(len(t), int)
    assert stay_probability(Bounds(np.array(t), low, np.array(high)), 1000) < 1e-30
