"""Uniformity tests: known values, exact levels on small designs, and levels where others fail."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from ringtrue.statistics import uniformity
from ringtrue.statistics.uniformity import TESTS, Band, band, combination, cook, ecdf_gamma, ks, mean_z, neyman
from ringtrue.statistics.uniformity.minimum import adjusted_minimum
from ringtrue.statistics.uniformity.rankscores import enumerate_counts
from ringtrue.statistics.uniformity.sample import as_sample

U = [0.05, 0.2, 0.35, 0.6, 0.9]
RANKS = [0, 0, 1, 3, 9, 9, 9, 5]
SIMULATED = ("kuiper", "watson", "cramer_von_mises", "anderson_darling")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "statistic"),
    [
        ("ks", 0.25),
        ("kuiper", 0.35),
        ("cramer_von_mises", 0.0616667),
        ("watson", 0.0296667),
        ("anderson_darling", 0.365239),
        ("ecdf_gamma", 0.452438),
        ("neyman", 0.588509),
        ("cook", 5.268901),
        ("mean_z", -0.267379 * 5**0.5),
    ],
)
def test_statistics_of_five_values(name: str, statistic: float) -> None:
    """The statistics of a sample worked out by hand."""
    assert TESTS[name](U).statistic == pytest.approx(statistic, abs=2e-6)


def test_pvalues_of_five_values() -> None:
    """Known exact p-values, and statistics with other settings."""
    assert ecdf_gamma(U).pvalue == pytest.approx(0.901221, abs=1e-6)
    assert cook(U).pvalue == pytest.approx(0.7679, abs=1e-4)
    assert neyman(U, order=2).statistic == pytest.approx(0.5521, abs=1e-4)
    assert uniformity.binned_chi2(U, bins=10).statistic == pytest.approx(5.0)


def test_eight_ranks_among_nine_draws() -> None:
    """The band statistic and the discrete Kolmogorov distance, with their exact p-values."""
    gamma, distance = ecdf_gamma(RANKS, draws=9), ks(RANKS, draws=9)
    assert (gamma.statistic, gamma.pvalue) == pytest.approx((0.07618358, 0.15888714), abs=1e-8)
    assert (distance.statistic, distance.pvalue) == pytest.approx((0.275, 0.3872025), abs=1e-9)


@pytest.mark.parametrize(
    ("gamma", "pvalue"),
    [(0.0078125, 0.0078125), (0.1015625, 0.1015625), (0.125, 0.1875), (0.5234375, 0.5390625)],
)
def test_gamma_law_of_four_ranks_among_three_draws(gamma: float, pvalue: float) -> None:
    """The law found by going through all 256 outcomes."""
    assert uniformity.ecdf._gamma_tail(gamma, 4, 3) == pytest.approx(pvalue, abs=1e-12)


@pytest.mark.parametrize(
    ("n", "draws", "gamma"),
    [
        (100, 99, 0.004110),
        (200, 100, 0.003555),
        (500, 99, 0.003009),
        (1000, 100, 0.002659),
        (1000, 999, 0.001516),
        (10_000, 99, 0.002338),
    ],
)
def test_critical_gammas(n: int, draws: int, gamma: float) -> None:
    """The pointwise levels of 95 % bands have known values."""
    assert band(n, draws=draws).gamma == pytest.approx(gamma, abs=1.01e-6)


def achieved(name: str, n: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """All p-values of a small design in increasing order, and the probability of at most each."""
    counts, weights = enumerate_counts(np.full(draws + 1, 1 / (draws + 1)), n)
    pvalues = np.array([TESTS[name](np.repeat(np.arange(draws + 1), row), draws=draws).pvalue for row in counts])
    order = np.argsort(pvalues)
    pvalues, sizes = pvalues[order], np.cumsum(weights[order])
    return pvalues, sizes[np.searchsorted(pvalues, pvalues * (1 + 1e-9), side="right") - 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TESTS))
@pytest.mark.parametrize(("n", "draws"), [(1, 1), (6, 1), (5, 2), (12, 2), (4, 3), (9, 3), (4, 4), (3, 9)])
def test_levels_hold_outcome_by_outcome(name: str, n: int, draws: int) -> None:
    """Over all outcomes of a small design P(p <= a) <= a for every a that occurs."""
    if name == "cook" and draws == 1:
        pytest.skip("one draw has no spread score")
    pvalues, sizes = achieved(name, n, draws)
    assert np.all(sizes <= pvalues * (1 + 1e-6))


@pytest.mark.parametrize("name", SIMULATED)
@pytest.mark.parametrize(("n", "draws"), [(6, 1), (12, 2), (5, 3)])
def test_simulated_laws_are_those_of_all_outcomes(name: str, n: int, draws: int) -> None:
    """Where outcomes can be gone through, 99 990 simulations agree with them to five standard errors (false alarm
    6e-7 for each statistic over all seeds; the seed is fixed inside the library, so the outcome is too)."""
    values, _ = uniformity.edf._lattice_law(name, n, draws)
    null = np.sort(uniformity.edf._simulated_statistics(name, n, np.arange(1, draws + 1) / (draws + 1)))
    simulated = 1 - np.searchsorted(null, values * (1 - 1e-9) - 1e-12) / null.size
    exact = np.minimum([uniformity.edf._lattice_tail(name, n, draws, x) for x in values], 1.0)
    assert null.size == 99_990
    assert np.all(np.abs(simulated - exact) <= 5 * np.sqrt(exact * (1 - exact) / null.size) + 1e-9)


def test_few_simulations_break_the_level() -> None:
    """Broken twin of the levels: the law of 9999 simulations, for 4 ranks among 4 draws, rejects too often at 5 %."""
    t = np.arange(1, 5) / 5
    counts, weights = enumerate_counts(np.full(5, 0.2), 4)
    rng = np.random.default_rng(9)
    law, every = (
        uniformity.edf._lattice_statistics("cramer_von_mises", some, t)
        for some in (uniformity.edf.multinomial(4, np.full(5, 0.2), 9999, rng), counts)
    )
    pvalues = np.array([(1 + np.sum(law >= x * (1 - 1e-9) - 1e-12)) / 10_000 for x in every])
    assert weights[pvalues <= 0.05].sum() > 0.0511


@pytest.mark.parametrize("n", range(1, 13))
def test_combination_among_one_draw_is_the_binomial_test(n: int) -> None:
    """One draw leaves one test, the sign test, for even n too."""
    for k in range(n + 1):
        ranks = np.repeat([1, 0], [k, n - k])
        assert combination(ranks, draws=1).pvalue == pytest.approx(stats.binomtest(k, n).pvalue)


def test_ties_of_negative_statistics_count() -> None:
    """Among three outcomes the commonest, with a negative statistic, has p = 1; a factor alone would lose its tie."""
    statistics, weights = -np.log([1.5, 0.5, 0.5]), np.array([0.5, 0.25, 0.25])
    np.testing.assert_allclose(uniformity.minimum._exact_tails(statistics, weights), [1.0, 0.5, 0.5])
    assert statistics[0] * (1 - 1e-9) - 1e-12 > statistics[0]  # the broken twin


def test_continuous_law_on_ranks_breaks_the_level() -> None:
    """Broken twin: the continuum's law at mid-ranks is far from holding its level over all outcomes."""
    draws, n = 2, 12
    counts, weights = enumerate_counts(np.full(draws + 1, 1 / (draws + 1)), n)
    midpoints = (np.arange(draws + 1) + 0.5) / (draws + 1)
    pvalues = np.array([ks(np.repeat(midpoints, row)).pvalue for row in counts])
    assert weights[pvalues <= 0.05].sum() > 0.1


PEERS = [(200, 19), (1000, 99), (10_000, 999), (10_000, 100)]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "draws"), PEERS)
@pytest.mark.parametrize("name", ["ks", "ecdf_gamma", "combination"])
def test_level_where_others_exceed_theirs(name: str, n: int, draws: int) -> None:
    """A calibrated procedure is rejected at 5 % no more often than chance allows.

    The number of rejections among 60 is at most Binomial(60, 0.05); the bound, 14, is exceeded with
    probability below 1e-6. A true size of 0.45 passes with probability below 1e-3.
    """
    rng = np.random.default_rng(11)
    hits = sum(TESTS[name](rng.integers(0, draws + 1, n), draws=draws).pvalue <= 0.05 for _ in range(60))
    assert hits <= stats.binom.isf(1e-6, 60, 0.05)


def test_raw_ranks_against_a_continuum_reject_calibrated_procedures() -> None:
    """Broken twin: the same check on r / draws fails (size 0.59; missed with probability below 1e-6)."""
    rng = np.random.default_rng(11)
    hits = sum(ks(rng.integers(0, 101, 10_000) / 100).pvalue <= 0.05 for _ in range(60))
    assert hits > stats.binom.isf(1e-6, 60, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 20, 200])
@pytest.mark.parametrize("name", list(TESTS))
def test_level_on_the_continuum(name: str, n: int) -> None:
    """Rejections at 5 % and 1 % of 600 uniform samples stay below bounds exceeded with probability 1e-6."""
    rng = np.random.default_rng(12)
    pvalues = np.array([TESTS[name](rng.random(n)).pvalue for _ in range(600)])
    for level in (0.05, 0.01):
        assert np.sum(pvalues <= level) <= stats.binom.isf(1e-6, 600, 1.05 * level)


@pytest.mark.parametrize("name", list(TESTS))
def test_gross_errors_are_seen(name: str) -> None:
    """Broken twin of the levels: over-confident and biased u are rejected by every test, on ranks too."""
    rng = np.random.default_rng(13)
    z = rng.normal(0.7, 2.0, 400)
    u = special.ndtr(z)
    assert TESTS[name](u).pvalue < 1e-3
    assert TESTS[name](rng.binomial(19, u), draws=19).pvalue < 1e-3


@pytest.mark.parametrize("n", [3, 40, 500, 1001, 2001, 3000, 10_000, 100_000])
def test_ks_agrees_with_the_exact_law(n: int) -> None:
    """The p-value is within 1e-4 of scipy's from one down to 1e-300."""
    for x in (0.45, 0.6, 0.8, 1.0, 1.2, 1.4, 1.45, 1.9, 2.1, 2.3, 2.8, 3.7, 4.0, 6.0, 10.0, 14.0, 18.0):
        distance = x / n**0.5
        if distance < 0.99:
            expected = stats.kstwo.sf(distance, n)
            assert uniformity.edf._ks_tail(n, distance) == pytest.approx(expected, rel=1e-4)


def test_the_expansion_alone_breaks_the_promise_of_ks() -> None:
    """Broken twin: three terms of the one-sided tail are 2.8 % off at n = 3000 and p = 6e-88."""
    n, x = 3000, 10.0
    terms = 2 * np.exp(-2 * x * x - 2 * x / (3 * n**0.5) + 4 * x * x * (1 - x * x) / (9 * n))
    assert terms / stats.kstwo.sf(x / n**0.5, n) > 1.02


@pytest.mark.parametrize(("x", "p"), [(0.46136, 0.05), (0.74346, 0.01), (1.16786, 0.001)])
def test_cramer_von_mises_limit(x: float, p: float) -> None:
    """The limit law has known critical points."""
    assert uniformity.edf._cvm_limit(x, 10**9) == pytest.approx(p, rel=1e-4)


@pytest.mark.parametrize("n", [50, 100, 400])
def test_large_samples_have_stephens_modifications(n: int) -> None:
    """At the modified 5 % points of Stephens (1970) the tails of three statistics are 5 %, beyond what tables cover."""
    # His points have three digits, which is 0.5 % of p, and fit simulations to about 1 %.
    edf = uniformity.edf
    assert edf._kuiper_limit(1.747 / (n**0.5 + 0.155 + 0.24 / n**0.5), n) == pytest.approx(0.05, rel=2e-2)
    assert edf._cvm_limit(0.461 / (1 + 1 / n) + 0.4 / n - 0.6 / n**2, n) == pytest.approx(0.05, rel=2e-2)
    assert edf._watson_limit(0.187 / (1 + 0.8 / n) + 0.1 / n - 0.1 / n**2, n) == pytest.approx(0.05, rel=2e-2)


def test_ks_of_ranks_far_out_is_massarts_bound() -> None:
    """Below what the recursion resolves the p-value is 2 exp(-2 n D^2): all of 200 ranks at the end, D = 0.9."""
    assert ks(np.zeros(200, int), draws=9).pvalue == pytest.approx(2 * np.exp(-2 * 200 * 0.9**2), rel=1e-9, abs=0)


@pytest.mark.parametrize(("n", "draws", "points"), [(50, None, 50), (50, 9, 9), (2000, None, 161)])
def test_gamma_far_out_is_the_sum_over_points(n: int, draws: int | None, points: int) -> None:
    """Where one minus a probability has no digits left, the p-value is gamma times the number of points."""
    assert uniformity.ecdf._gamma_tail(1e-20, n, draws) == pytest.approx(points * 1e-20, rel=1e-9, abs=0)
    assert uniformity.ecdf._gamma_tail(1.0, n, draws) == 1


def test_many_draws_are_compared_on_a_grid_of_ranks() -> None:
    """From the outermost rank to the middle and mirrored, denser towards the ends."""
    points = uniformity.ecdf._points(5000, 9999)
    ranks = np.rint(10_000 * points)
    assert points == pytest.approx(ranks / 10_000, abs=1e-15)
    assert (ranks + ranks[::-1] == 10_000).all()
    assert (ranks[0], ranks[len(ranks) // 2]) == (1, 5000)
    assert 130 < len(ranks) <= 161


@pytest.mark.parametrize(("n", "draws", "bins"), [(1000, None, 20), (1000, 99, 20), (1000, 9, 10), (40, None, 8)])
def test_bins_are_at_most_twenty_with_five_expected_in_each(n: int, draws: int | None, bins: int) -> None:
    """As many as that, and no more than there are ranks."""
    values = (np.arange(n) + 0.5) / n if draws is None else np.arange(n) % (draws + 1)
    assert uniformity.scores._default_bins(as_sample(values, draws)) == bins


def test_anderson_darling_limit() -> None:
    """The limit law has known critical points, and a known constant in its tail."""
    assert uniformity.edf._ad_limit(2.4924, 10**9) == pytest.approx(0.05, rel=1e-3)
    assert uniformity.edf._ad_limit(3.8781, 10**9) == pytest.approx(0.01, rel=1e-3)
    assert uniformity.edf._ad_limit(60.0, 10**12) == pytest.approx(3**0.5 * special.erfc(60**0.5), rel=0.02)


def leaves(chart: Band, u: np.ndarray) -> bool:
    """Whether the empirical distribution function leaves the band at any of its points."""
    proportions = np.searchsorted(np.sort(u), chart.points, side="right") / u.size
    return bool(np.any((proportions < chart.low - 1e-12) | (proportions > chart.high + 1e-12)))


@pytest.mark.parametrize("n", [1, 7, 60, 1500])
def test_band_and_pvalue_agree_on_the_continuum(n: int) -> None:
    """A sample leaves the band exactly when its p-value is at most one minus the confidence."""
    rng = np.random.default_rng(14)
    chart = band(n, confidence=0.7)
    for _ in range(60):
        u = rng.random(n)
        assert leaves(chart, u) == (ecdf_gamma(u).pvalue <= 0.3)


@pytest.mark.parametrize(("n", "draws"), [(1, 1), (8, 1), (7, 2), (5, 3), (60, 9), (40, 99)])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_band_and_pvalue_agree_on_ranks(n: int, draws: int, confidence: float) -> None:
    """The same on a lattice, where the nearest achievable p-values matter."""
    rng = np.random.default_rng(15)
    chart = band(n, draws=draws, confidence=confidence)
    for _ in range(60):
        ranks = rng.integers(0, draws + 1, n)
        inside = ecdf_gamma(ranks, draws=draws).pvalue > 1 - confidence
        assert leaves(chart, (ranks + 1 - 1e-9) / (draws + 1)) != inside


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([None, 1, 9, 3000]))
def test_lost_replicates_never_make_the_pvalue_too_small(seed: int, lost: int, draws: int | None) -> None:
    """Whatever the lost values were, the p-value of the complete sample is no larger."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    a, b = rng.uniform(0.3, 3.0, 2)
    whole = rng.beta(float(a), float(b), n + lost)
    values = whole if draws is None else rng.binomial(draws, whole)
    complete = ecdf_gamma(values, draws=draws).pvalue
    assert complete <= ecdf_gamma(values[:n], draws=draws, lost=lost).pvalue * (1 + 1e-9)


def test_lost_replicates_beyond_a_thousand() -> None:
    """The bound holds on the grid too, and nothing lost changes nothing."""
    u = np.random.default_rng(16).beta(1.2, 1.0, 1500)
    assert ecdf_gamma(u[:1450], lost=50).pvalue >= ecdf_gamma(u).pvalue
    assert ecdf_gamma(u, lost=0) == ecdf_gamma(u)


def test_scores_beyond_saturation_are_used() -> None:
    """Normal scores say more than u = 1 can; without them saturated values still count as extreme."""
    z = np.append(special.ndtri((np.arange(50) + 0.5) / 50), np.full(5, 30.0))
    u = special.ndtr(z)
    assert cook(u, z=z).pvalue < cook(u).pvalue < 0.05
    assert mean_z(u, z=z).pvalue < mean_z(u).pvalue
    assert combination(u, z=z).pvalue < combination(u).pvalue


def test_a_given_z_that_equals_the_computed_one_changes_nothing() -> None:
    """z = Phi^-1(u) is the default."""
    u = np.random.default_rng(17).random(100)
    assert combination(u, z=special.ndtri(u)) == combination(u)


@pytest.mark.slow
@pytest.mark.parametrize("draws", [None, 1, 2, 3, 9, 2500, 100_000])
@pytest.mark.parametrize("n", [1, 2, 30])
@pytest.mark.parametrize("name", list(TESTS))
def test_every_design_gives_a_probability(name: str, n: int, draws: int | None) -> None:
    """Each test works from one value and one draw on, and its p-value lies in (0, 1]."""
    if name in SIMULATED and draws is not None and draws > 9:
        draws = 99
    if name == "cook" and draws == 1:
        with pytest.raises(ValueError, match="at least 2"):
            cook([0, 1], draws=1)
        return
    rng = np.random.default_rng(18)
    values = rng.random(n) if draws is None else rng.integers(0, draws + 1, n)
    worst = np.zeros(n, int) if draws else np.zeros(n)
    assert 0.0 < TESTS[name](values, draws=draws).pvalue <= 1.0
    assert 0.0 < TESTS[name](worst, draws=draws).pvalue <= 1.0


@pytest.mark.parametrize("name", list(TESTS))
def test_order_does_not_matter(name: str) -> None:
    """Permuting the values changes nothing but rounding."""
    u = np.random.default_rng(19).random(60)
    one, other = TESTS[name](u), TESTS[name](u[::-1])
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-9)


@pytest.mark.parametrize("name", sorted(set(TESTS) - {"mean_z"}))
def test_reflection_does_not_matter(name: str) -> None:
    """Replacing u by 1 - u, or r by draws - r, leaves the p-value; for mean_z it flips the statistic."""
    ranks = np.random.default_rng(20).integers(0, 10, 60)
    one, other = TESTS[name](ranks, draws=9), TESTS[name](9 - ranks, draws=9)
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-9)
    assert mean_z(ranks, draws=9).statistic == pytest.approx(-mean_z(9 - ranks, draws=9).statistic)


def test_many_draws_tend_to_the_continuum() -> None:
    """With 10^5 draws behind 500 ranks every p-value is near that of the continuum."""
    rng = np.random.default_rng(21)
    ranks = rng.integers(0, 100_001, 500)
    u = (ranks + rng.random(500)) / 100_001
    for name in ("ks", "neyman", "cook", "mean_z", "binned_chi2"):
        near = TESTS[name](u).pvalue
        assert TESTS[name](ranks, draws=100_000).pvalue == pytest.approx(near, abs=0.02)


def test_enumerated_minimum_is_the_smallest_component() -> None:
    """The four p-values found by enumeration are those of the four tests."""
    minima, weights = uniformity.minimum._minimum_law(7, 3)
    counts, _ = enumerate_counts(np.full(4, 0.25), 7)
    direct = [
        min(
            t.pvalue
            for t in uniformity.minimum._components(uniformity.sample.as_sample(np.repeat(np.arange(4), row), 3))
        )
        for row in counts
    ]
    np.testing.assert_allclose(np.sort(direct), minima, rtol=1e-7)
    assert weights.sum() == pytest.approx(1.0)
    assert len(weights) == comb(10, 3)


@pytest.mark.parametrize("draws", [1, 9, None])
def test_combination_grows_with_the_smallest_pvalue(draws: int | None) -> None:
    """The adjusted p-value is increasing, at least the smallest p-value and at most four times it."""
    x = np.geomspace(1e-300, 1.0, 4000)
    adjusted = np.array([adjusted_minimum(float(v), 130, draws) for v in x])
    assert np.all(np.diff(adjusted) >= 0.0)
    assert np.all((adjusted >= x * 0.999) & (adjusted <= np.minimum(1.0, 4.0001 * x)))


@pytest.mark.parametrize(
    ("u", "draws", "message"),
    [
        ([], None, "shape"),
        ([[0.1]], None, "shape"),
        ([0.1, np.nan], None, "nan"),
        ([0.1, 1.2], None, "draws="),
        ([-0.1], None, "0, 1"),
        ([0.5, 1], 3, "whole numbers"),
        ([np.nan, 1], 3, "nan"),
        ([4], 3, r"0\.\.3"),
        ([-1], 3, r"0\.\.3"),
        ([0], 0, "at least 1"),
    ],
)
@pytest.mark.parametrize("name", ["ks", "combination", "binned_chi2"])
def test_bad_values_are_refused(name: str, u: list[float], draws: int | None, message: str) -> None:
    """Every test says what it expected and what arrived."""
    with pytest.raises(ValueError, match=message):
        TESTS[name](u, draws=draws)


def test_bad_settings_are_refused() -> None:
    """Settings out of range, and normal scores that do not fit, are errors."""
    with pytest.raises(ValueError, match="lost"):
        ecdf_gamma(U, lost=-1)
    with pytest.raises(ValueError, match="order"):
        neyman(U, order=0)
    with pytest.raises(ValueError, match="bins"):
        uniformity.binned_chi2([0, 1], draws=1, bins=3)
    with pytest.raises(ValueError, match="shape"):
        cook(U, z=[0.0])
    with pytest.raises(ValueError, match="nan"):
        cook(U, z=[0.0, 1.0, np.nan, 0.0, 0.0])
    with pytest.raises(ValueError, match="leave one out"):
        combination([0, 1], draws=1, z=[0.0, 1.0])
    for bad in ({"n": 0}, {"n": 5, "confidence": 1.0}, {"n": 5, "draws": 0}):
        with pytest.raises(ValueError, match="must"):
            band(**bad)


def test_results_are_not_tuples() -> None:
    """A result prints its fields and cannot be unpacked by position."""
    result = ks(U)
    assert repr(result).startswith("UniformityTest(method='ks', statistic=0.25")
    with pytest.raises(TypeError):
        iter(result)  # type: ignore[call-overload]
