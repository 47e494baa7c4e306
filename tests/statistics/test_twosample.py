"""Two-sample tests against closed forms, enumeration, plain definitions and scipy."""

import tracemalloc
from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import stats

from ringtrue.statistics import twosample
from ringtrue.statistics.twosample import TwoSampleTest, energy, ks, mmd

FloatArray = NDArray[np.float64]
KernelTest = Callable[..., TwoSampleTest]

kernel_tests = pytest.mark.parametrize("test", [mmd, energy])


class EveryLabelling:
    """Stands in for a generator and returns each way to choose x from the pool once."""

    def __init__(self, n: int, m: int) -> None:
        chosen = np.array(list(combinations(range(n + m), n)))
        self.signs = np.full((len(chosen), n + m), -1, dtype=np.int8)
        np.put_along_axis(self.signs, chosen, 1, axis=1)

    def permuted(self, _: Any, *, axis: int, out: NDArray[np.int8]) -> None:
        """Write all labellings where random ones are asked for."""
        assert axis == 1
        out[:] = self.signs


def plain_statistic(x: FloatArray, y: FloatArray, kernel: Callable[[FloatArray], float]) -> float:
    """Return the unbiased kernel statistic by its definition, one pair at a time."""
    within_x = np.mean([kernel(a - b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j])
    within_y = np.mean([kernel(a - b) for i, a in enumerate(y) for j, b in enumerate(y) if i != j])
    return float(within_x + within_y - 2 * np.mean([kernel(a - b) for a in x for b in y]))


def plain_kernel(test: KernelTest, pooled: FloatArray) -> Callable[[FloatArray], float]:
    """Return the kernel of a test at its default bandwidth."""
    distances = [np.linalg.norm(a - b) for a, b in combinations(pooled, 2)]
    bandwidth = np.median([d for d in distances if d > 0])
    if test is mmd:
        return lambda d: float(np.exp(-(d @ d) / (2 * bandwidth**2)))
    return lambda d: -float(np.linalg.norm(d))


def plain_pvalue(x: FloatArray, y: FloatArray, statistic: Callable[[FloatArray, FloatArray], float]) -> float:
    """Return the share of all relabellings whose statistic is at least the observed one."""
    pooled = np.concatenate([x, y])
    observed = statistic(x, y)
    chosen = [np.isin(np.arange(len(pooled)), c) for c in combinations(range(len(pooled)), len(x))]
    return float(np.mean([statistic(pooled[c], pooled[~c]) >= observed - 1e-9 for c in chosen]))


def gap(x: FloatArray, y: FloatArray) -> float:
    """Return the Kolmogorov-Smirnov statistic by its definition."""
    return float(max(abs(np.mean(x <= t) - np.mean(y <= t)) for t in [*x, *y]))


@pytest.mark.parametrize(("n", "m"), [(2, 2), (7, 4), (3, 200), (50, 50), (60, 90), (101, 97), (800, 800), (500, 700)])
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_ks_agrees_with_scipy(n: int, m: int, shift: float) -> None:
    """Statistic and exact p-value equal scipy's for equal and unequal sizes."""
    rng = np.random.default_rng([n, m])
    x, y = rng.normal(size=n), rng.normal(shift, size=m)
    test, peer = ks(x, y), stats.ks_2samp(x, y, method="exact")
    assert test.statistic == pytest.approx(peer.statistic, abs=1e-12)
    assert test.pvalue == pytest.approx(peer.pvalue, rel=1e-9)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 9), (40, 40), (30, 70), (400, 400), (300, 350)])
def test_ks_of_separated_samples_is_the_inverse_binomial(n: int, m: int) -> None:
    """Only two of the C(n + m, n) orders separate the samples, however small that makes p."""
    assert ks(np.arange(n), np.arange(m) + n).pvalue == pytest.approx(2 / comb(n + m, n), rel=1e-10)


@given(st.integers(2, 60), st.data())
def test_ks_recursion_equals_the_series(n: int, data: st.DataObject) -> None:
    """Two ways to count lattice paths agree to relative accuracy at every gap."""
    h = data.draw(st.integers(0, n))
    series = twosample._ks_equal_sizes(h, n)
    recursion = twosample._ks_recursion(h, n, n, np.ones(2 * n, dtype=np.bool_))
    # The alternating series loses absolute, not relative, digits when many terms are of order one.
    assert recursion == pytest.approx(series, rel=1e-10, abs=1e-14 if h < n / 4 else 0)


@pytest.mark.slow
@given(st.lists(st.integers(0, 3), min_size=2, max_size=4), st.lists(st.integers(0, 3), min_size=2, max_size=5))
def test_ks_with_ties_is_the_permutation_test(x: list[int], y: list[int]) -> None:
    """Given the tied values, the p-value is the share of all relabellings with as large a gap."""
    a, b = np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)
    assert ks(a, b).statistic == pytest.approx(gap(a, b), abs=1e-12)
    assert ks(a, b).pvalue == pytest.approx(plain_pvalue(a, b, gap), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(6000, 14000), (5000, 10000), (9000, 10001), (2000, 18000)])
def test_ks_limit_meets_the_recursion_where_it_takes_over(n: int, m: int) -> None:
    """At the largest exact sizes the corrected limit law is within 0.3 %, the uncorrected one is not."""
    g = int(np.gcd(n, m))
    for z in (0.8, 1.36, 2.0):
        h = round(z * np.sqrt((n + m) / (n * m)) * n * m / g)
        exact = twosample._ks_recursion(h, n, m, np.ones(n + m, dtype=np.bool_))
        assert twosample._ks_limit(h, n, m) == pytest.approx(exact, rel=3e-3)
    assert stats.kstwobign.sf(2.0) != pytest.approx(exact, rel=3e-3)


@pytest.mark.parametrize(("n", "m"), [(300, 500), (500, 300)])
def test_ks_limit_is_near_the_recursion_at_small_sizes(n: int, m: int) -> None:
    """With Hodges' move of the boundary the limit law is within 1 % of the exact p-value at 800 points."""
    for h in (120, 150, 200):
        exact = twosample._ks_recursion(h, n, m, np.ones(n + m, dtype=np.bool_))
        assert twosample._ks_limit(h, n, m) == pytest.approx(exact, rel=0.01)


def test_ks_is_never_zero_and_at_most_one() -> None:
    """A p-value below the smallest number is reported as that number, and equal samples give one."""
    for m in (20_000, 20_001):
        x = np.linspace(0, 1, m)
        assert 0 < ks(np.linspace(0, 1, 20_000), x + 2).pvalue < 1e-300
        assert ks(np.linspace(0, 1, 20_000), x).pvalue > 0.999
    assert 0 < ks(np.arange(2000.0), np.arange(2100.0) + 5000).pvalue < 1e-300
    assert ks([1.0, 1.0], [1.0, 1.0, 1.0]) == TwoSampleTest("ks", 0.0, 1.0)


@kernel_tests
@pytest.mark.parametrize(("n", "m", "d"), [(2, 2, 1), (5, 9, 1), (12, 7, 3)])
def test_statistic_is_its_definition(test: KernelTest, n: int, m: int, d: int) -> None:
    """The statistic equals the U-statistic summed pair by pair, up to single precision."""
    rng = np.random.default_rng(n)
    x, y = rng.normal(7.0, size=(n, d)), rng.normal(8.0, 2.0, size=(m, d))
    kernel = plain_kernel(test, np.concatenate([x, y]))
    assert test(x, y, rng=rng, permutations=1).statistic == pytest.approx(plain_statistic(x, y, kernel), abs=2e-6)


@kernel_tests
def test_statistic_does_not_depend_on_blocks(test: KernelTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and permutations taken a few at a time give what one matrix product gives."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(70, 2)), rng.normal(size=(50, 2))
    whole = test(x, y, rng=np.random.default_rng(1), permutations=99)
    monkeypatch.setattr(twosample, "_ROWS", 16)
    monkeypatch.setattr(twosample, "_COLUMNS", 7)
    parts = test(x, y, rng=np.random.default_rng(1), permutations=99)
    assert parts.statistic == pytest.approx(whole.statistic, abs=1e-7)
    assert parts.pvalue == whole.pvalue


@pytest.mark.slow
@kernel_tests
@pytest.mark.parametrize("discrete", [False, True], ids=["continuous", "tied"])
@pytest.mark.parametrize(("n", "m"), [(4, 4), (3, 6)])
def test_pvalue_counts_every_relabelling(test: KernelTest, n: int, m: int, discrete: bool) -> None:
    """With each labelling visited once, p is (1 + the number that reach T) / (1 + their number), ties included."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(n, 2)), rng.normal(0.5, size=(m, 2))
        if discrete:
            x, y = x.round(), y.round()
        kernel = plain_kernel(test, np.concatenate([x, y]))
        share = plain_pvalue(x, y, lambda a, b, k=kernel: plain_statistic(a, b, k))  # type: ignore[misc]
        total = comb(n + m, n)
        found = test(x, y, rng=cast(Generator, EveryLabelling(n, m)), permutations=total)
        assert found.pvalue == pytest.approx((1 + share * total) / (1 + total), rel=1e-12)


@kernel_tests
def test_order_and_roles_do_not_matter(test: KernelTest) -> None:
    """Shuffling a sample or swapping the two changes nothing, since the pool is sorted first."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=40), rng.normal(size=60)
    reference = test(x, y, rng=np.random.default_rng(1)).statistic
    assert test(x[::-1], rng.permutation(y), rng=np.random.default_rng(1)).statistic == reference
    assert test(y, x, rng=np.random.default_rng(1)).statistic == pytest.approx(reference, abs=1e-7)
    assert test(x[:, None], y[:, None], rng=np.random.default_rng(1)).statistic == reference


def test_bandwidth_is_a_function_of_the_pooled_set() -> None:
    """No relabelling changes the bandwidth, whereas thinning the concatenated samples would."""
    rng = np.random.default_rng(5)
    pooled = np.concatenate([rng.normal(size=(1500, 2)), rng.normal(size=(1500, 2)) * 5])
    relabelled = rng.permutation(pooled)

    def bandwidth(points: FloatArray) -> float:
        return twosample._median_distance(twosample._pool(points[:1500], points[1500:])[0])

    def naive(points: FloatArray) -> float:
        return twosample._median_distance(points)

    assert bandwidth(relabelled) == bandwidth(pooled)
    assert naive(relabelled) != pytest.approx(naive(pooled), rel=1e-6)


def test_bandwidth_survives_a_wild_point_and_ties() -> None:
    """One point at 1e9, or half of all points equal, leaves the bandwidth at the scale of the rest."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=300)
    wild, tied = x.copy(), x.copy()
    wild[0], tied[:220] = 1e9, 0.0
    for sample in (wild, tied):
        assert 0.5 < twosample._median_distance(twosample._pool(sample, rng.normal(size=2))[0]) < 2


@kernel_tests
def test_identical_samples_give_one(test: KernelTest) -> None:
    """Two copies of one sample have the smallest statistic of all labellings."""
    x = np.random.default_rng(0).normal(size=(150, 2))
    assert test(x, x, rng=np.random.default_rng(1), permutations=199).pvalue == 1.0


@kernel_tests
def test_constant_data_give_one(test: KernelTest) -> None:
    """Points that are all equal say nothing."""
    result = test(np.full(5, 3.1), np.full(7, 3.1), rng=np.random.default_rng(0))
    assert (result.statistic, result.pvalue) == (0.0, 1.0)


@kernel_tests
def test_a_shift_of_one_standard_deviation_is_seen(test: KernelTest) -> None:
    """At a hundred points each, no relabelling reaches the statistic of samples one sd apart."""
    # Normal quantiles, so that only the permutations are random. Relabelled means differ by about
    # N(0, 1.25 * 2 / 100), of which 1 is 6.3 sd: 3e-10 two-sided, times 999 permutations is below 1e-6.
    x = stats.norm.ppf((np.arange(100) + 0.5) / 100)
    assert test(x, x + 1.0, rng=np.random.default_rng(1)).pvalue == 1 / 1000


def rejections(test: KernelTest, correlation: float, *, seed: int, repeats: int = 2000) -> tuple[int, int]:
    """Count p <= 0.1 among samples of one law at 10 permutations, with and without the +1 in the p-value."""
    rng = np.random.default_rng(seed)
    pvalues = np.empty(repeats)
    for r in range(repeats):
        x, fresh = rng.normal(size=(2, 8, 2))
        y = correlation * x + np.sqrt(1 - correlation**2) * fresh
        pvalues[r] = test(x, y, rng=rng, permutations=10).pvalue
    naive = (11 * pvalues - 1) / 10
    return int((pvalues <= 0.1).sum()), int((naive <= 0.1 + 1e-9).sum())


@pytest.mark.slow
@kernel_tests
def test_level_is_exact(test: KernelTest) -> None:
    """Ten permutations reject with probability 1/11; a p-value without the +1, or paired samples, do not."""
    # P(no permutation reaches T) = 1/11 up to repeated labellings (2 of 12870 coincide with the observed one
    # or its mirror image: at most 10 * 2 / 12870 = 0.0016 of the rejections lost). Two-sided, 1e-6 in all.
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], 2000, [1 / 11 - 0.0016, 1 / 11])
    honest, naive = rejections(test, 0.0, seed=2)
    assert low <= honest <= high
    # Broken twins: the naive p-value rejects 2/11 of the time, samples that share draws almost never.
    assert naive > high
    assert rejections(test, 0.9, seed=3)[0] < low


@pytest.mark.slow
def test_gram_matrix_is_never_held() -> None:
    """Memory stays far below the single-precision Gram matrix of the pool, 144 MB for 6000 points."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3000))
    tracemalloc.start()
    mmd(x, y, rng=rng, permutations=9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 72e6


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1.0, np.nan, 2.0], [1.0, 2.0], "x must be finite, but 1 of 3"),
        ([1.0, 2.0], [1.0, np.inf], "y must be finite"),
        ([1.0], [1.0, 2.0], "n >= 2"),
        ([1.0, 2.0], np.zeros((2, 2, 2)), "got shape"),
        (np.zeros((3, 0)), [1.0, 2.0], "got shape"),
    ],
)
@pytest.mark.parametrize("test", [ks, mmd, energy])
def test_bad_samples_are_refused(test: KernelTest, x: Any, y: Any, message: str) -> None:
    """Missing values, single points and stray axes are refused with what arrived."""
    options = {} if test is ks else {"rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=message):
        test(x, y, **options)


def test_bad_options_are_refused() -> None:
    """Dimensions that disagree, vectors for ks, and impossible settings are refused."""
    rng = np.random.default_rng(0)
    two, three = np.eye(2), np.eye(3)
    with pytest.raises(ValueError, match="same dimension, got 2 and 3"):
        mmd(two, three, rng=rng)
    with pytest.raises(ValueError, match="must hold scalars"):
        ks(two, two)
    with pytest.raises(ValueError, match="permutations must be a whole number, at least 1"):
        energy(two, two, rng=rng, permutations=0)
    with pytest.raises(ValueError, match="bandwidth must be positive and finite, got 0"):
        mmd(two, two, rng=rng, bandwidth=0)


def test_only_rounding_is_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    """The p-value is the share of labellings, the true one among them, that reach the statistic to 1e-5 of their sd.

    Samples whose statistics are all tiny: a tolerance that does not shrink with them would call all of them tied.
    """
    seen = []

    def kept(points: Any, signs: Any, kernel: Any) -> Any:
        seen.append(1e-3 * discrepancies(points, signs, kernel))
        return seen[-1]

    discrepancies = twosample._discrepancies
    monkeypatch.setattr(twosample, "_discrepancies", kept)
    rng = np.random.default_rng(5)
    found = energy(rng.normal(size=30), rng.normal(size=30), rng=rng)
    # No two of them are nearer than that but for equal ones.
    assert found.pvalue == np.mean(seen[0] >= seen[0][0] - 1e-5 * seen[0].std())
    assert 0.01 < found.pvalue < 0.99
