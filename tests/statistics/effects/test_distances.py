"""Coverage, distances and variance of u against closed forms, plug-ins and each other."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

from ringtrue.statistics.effects import (
    Interval,
    coverage,
    cramer_von_mises,
    distance,
    divergence,
    variance_ratio,
    wasserstein,
)

from .laws import (
    FEWEST,
    REPETITIONS,
    even_scores,
    expected_ranks,
)


@pytest.mark.parametrize(("eta", "actual"), [(0.5, 0.7552), (0.8, 0.8588), (2.0, 0.9800)])
def test_coverage_of_known_spread(eta: float, actual: float) -> None:
    """With variance factor eta the nominal 90 % interval covers 2 Phi(1.645 sqrt(eta)) - 1."""
    measure = coverage(special.ndtr(even_scores(100_000, eta**-0.5)))
    assert measure.estimate == pytest.approx(actual, abs=6e-5)
    assert measure.ideal == 0.9


@pytest.mark.parametrize(
    ("draws", "nominal"), [(2, 1 / 3), (5, 4 / 6), (9, 0.8), (19, 0.9), (99, 0.9), (100, 91 / 101)]
)
def test_coverage_uses_the_nearest_attainable_level(draws: int, nominal: float) -> None:
    """Ranks exclude whole ranks at both ends, at least one; each rank once covers exactly the level used."""
    measure = coverage(np.arange(draws + 1), draws=draws)
    assert measure.ideal == pytest.approx(nominal)
    assert measure.estimate == pytest.approx(nominal)


def test_coverage_needs_two_draws() -> None:
    """One draw has no central interval."""
    measure = coverage([0, 1, 1], draws=1)
    assert math.isnan(measure.estimate)
    assert (measure.low, measure.high) == (0, 1)


def test_distance_of_known_spread() -> None:
    """For s^2 = 2 the Kolmogorov distance from uniform is .083032, on the continuum and, nearly, on ranks."""
    measure = distance(special.ndtr(even_scores(100_000, 2**0.5)))
    assert measure.estimate == pytest.approx(0.083032, abs=1e-5)
    ranks = distance(expected_ranks(100_000, 999, 2**0.5, 0.0), draws=999)
    assert ranks.estimate == pytest.approx(0.083032, abs=3e-3)


def test_distance_is_the_ks_statistic() -> None:
    """The estimate is scipy's KS statistic in any order of the values, and the interval is 1.358 / sqrt(n) wide."""
    u = np.random.default_rng(5).beta(2, 1, size=300)
    measure = distance(u)
    assert measure.estimate == pytest.approx(stats.kstest(u, "uniform").statistic, rel=1e-12)
    assert distance(np.sort(u)) == measure
    assert measure.high - measure.estimate == pytest.approx(1.358 / math.sqrt(300), rel=1e-3)


def test_distance_on_ranks_looks_at_the_lattice_only() -> None:
    """Each rank once is exactly uniform; a constant rank is as far as the lattice allows."""
    assert distance(np.arange(10), draws=9).estimate == pytest.approx(0)
    assert distance(np.zeros(7, dtype=int), draws=9).estimate == pytest.approx(0.9)


def test_distances_of_known_spread() -> None:
    """For s^2 = 2, W1 is .054087, CvM .0035598, KL .153426 and 12 Var u 1.393677."""
    z = even_scores(100_000, 2**0.5)
    u = special.ndtr(z)
    assert wasserstein(u).estimate == pytest.approx(0.054087, abs=5e-5)  # found by bisection to 1e-4 of its interval
    assert cramer_von_mises(u).estimate == pytest.approx(0.0035598, abs=3e-6)  # quantiles have no noise to take off
    assert divergence(z).estimate == pytest.approx(0.153426, abs=1e-4)  # tails end at the last quantile
    assert variance_ratio(u).estimate == pytest.approx(1.393677, abs=3e-5)


def test_closed_forms_of_the_known_spread() -> None:
    """The numbers above are arctan(s) / pi - 1/4, (s^2 - 1 - log s^2) / 2 and 12 arcsin(s^2 / (1 + s^2)) / (2 pi)."""
    s = 2**0.5
    assert math.atan(s) / math.pi - 0.25 == pytest.approx(0.054087, abs=5e-7)
    assert (s**2 - 1 - math.log(s**2)) / 2 == pytest.approx(0.153426, abs=5e-7)
    assert 12 * math.asin(2 / 3) / (2 * math.pi) == pytest.approx(1.393677, abs=5e-7)


def test_plug_in_distances_are_integrals_of_the_empirical_law() -> None:
    """On the continuum the norm is the integral over the steps, which a fine grid approaches."""
    u = np.sort(np.random.default_rng(8).beta(2, 1, 30))
    t = (np.arange(2_000_000) + 0.5) / 2_000_000
    gap = np.searchsorted(u, t, side="right") / 30 - t
    variance = np.mean((gap + t) * (1 - gap - t))
    unbiased = np.mean(gap**2) - variance / 29
    assert cramer_von_mises(u).estimate == pytest.approx(unbiased, abs=1e-6)
    assert unbiased > 0


def test_debiased_cramer_von_mises_is_a_mean_over_pairs() -> None:
    """The estimate is the U-statistic with kernel (u^2 + v^2) / 2 - max(u, v) + 1/3, whose mean is the distance."""
    u = np.random.default_rng(9).beta(3, 1, 40)
    kernel = (u[:, None] ** 2 + u**2) / 2 - np.maximum(u[:, None], u) + 1 / 3
    pairs = (kernel.sum() - np.trace(kernel)) / (40 * 39)
    assert cramer_von_mises(u).estimate == pytest.approx(pairs, rel=1e-9)


@pytest.mark.parametrize("measure", [wasserstein, cramer_von_mises])
def test_distances_on_ranks_are_those_of_the_lattice(measure: Callable[..., Interval]) -> None:
    """Each rank once is at distance 0, and many draws come close to the continuum."""
    assert measure(np.tile(np.arange(10), 50), draws=9).estimate == pytest.approx(0, abs=1e-12)
    ranks = expected_ranks(200_000, 999, 2**0.5, 0.0)
    exact = measure(special.ndtr(even_scores(200_000, 2**0.5))).estimate
    assert measure(ranks, draws=999).estimate == pytest.approx(exact, rel=0.01)


def test_variance_of_u_from_ranks_is_that_of_u() -> None:
    """The estimate from expected ranks is 12 Var u itself, not that of mid-ranks, for two draws and for nine."""
    for draws in (2, 9):
        ranks = expected_ranks(1_000_000, draws, 2**0.5, 0.0)
        assert variance_ratio(ranks, draws=draws).estimate == pytest.approx(1.393677, abs=1e-4)


def test_variance_of_u_is_unbiased() -> None:
    """The estimate is the sample variance with n - 1, times twelve."""
    u = np.random.default_rng(10).random(7)
    assert variance_ratio(u).estimate == pytest.approx(12 * u.var(ddof=1), rel=1e-12)


DISTANCES: dict[str, tuple[Callable[..., Interval], float]] = {
    "W1": (wasserstein, 0.054087),
    "CvM": (cramer_von_mises, 0.0035598),
    "KL": (divergence, 0.153426),
    "variance": (variance_ratio, 1.393677),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTANCES)
def test_intervals_of_distances_cover(name: str) -> None:
    """For s^2 = 2 the nominal 95 % intervals cover at n = 200 (false alarm 1e-6 each: FEWEST of 400 at 0.93)."""
    measure, true = DISTANCES[name]
    z = 2**0.5 * np.random.default_rng(13).standard_normal((REPETITIONS, 200))
    found = [measure(row) for row in (z if name == "KL" else special.ndtr(z))]
    assert sum(m.low <= true <= m.high for m in found) >= FEWEST


@pytest.mark.parametrize("name", ["KL", "variance"])
def test_distances_of_mid_ranks_would_not_cover(name: str) -> None:
    """Broken twin: among nine draws mid-ranks vary less than u, and treated as u they miss the truth."""
    measure, true = DISTANCES[name]
    rng = np.random.default_rng(17)
    u = (rng.binomial(9, special.ndtr(2**0.5 * rng.standard_normal((REPETITIONS, 200)))) + 0.5) / 10
    found = [measure(row) for row in (special.ndtri(u) if name == "KL" else u)]
    assert sum(m.low <= true <= m.high for m in found) < FEWEST


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("draws", [None, 1, 2, 9, 99, 999])
@pytest.mark.parametrize("where", [(0.0,), (1.0,), (0.5,), (0.0, 1.0), (0.3, 0.4, 0.9)])
def test_extreme_values_have_ordered_intervals(name: str, draws: int | None, where: tuple[float, ...]) -> None:
    """Values piled up anywhere, few or many, give intervals in order around their estimate, without warnings."""
    measure = DISTANCES[name][0]
    for n in (1, 2, 3, 60):
        values = np.resize(np.array(where), n)
        if draws is None and name == "KL":
            values = special.ndtri(values)
        given = values if draws is None else np.round(draws * values).astype(int)
        for lost in (0, 3):
            found = measure(given, draws=draws, lost=lost)
            assert 0 <= found.low <= found.high
            assert math.isnan(found.estimate) or found.low <= found.estimate <= found.high


def test_a_lucky_sample_does_not_know_the_distance_is_zero() -> None:
    """Values closer to uniform than chance has them leave an interval as wide as noise makes it."""
    even = (np.arange(200) + 0.5) / 200
    assert wasserstein(even).high > 0.03
    assert cramer_von_mises(even).high > 0.001
    assert divergence(special.ndtri(even)).high > 0.01


@pytest.mark.parametrize("measure", [wasserstein, cramer_von_mises])
@pytest.mark.parametrize("draws", [1, 9])
def test_ranks_in_equal_numbers_do_not_know_the_distance_is_zero(measure: Callable[..., Interval], draws: int) -> None:
    """A gap of exactly 0 has no direction; its interval is that of a gap which is nearly 0."""
    even = np.tile(np.arange(draws + 1), 400)
    uneven = np.append(even, 0)
    assert measure(even, draws=draws).high > 0
    assert measure(even, draws=draws).high == pytest.approx(measure(uneven, draws=draws).high, rel=0.05)


@pytest.mark.parametrize("n", [2, 4, 60])
def test_variance_of_u_at_its_extremes_is_not_known_exactly(n: int) -> None:
    """u at 0 and 1, or all at one place, leave an interval that shrinks with n and holds what n values may hide."""
    ends, same = variance_ratio(np.resize([0.0, 1.0], n)), variance_ratio(np.full(n, 0.5))
    # A share p at 1 that differs from 1/2 by t standard errors has 12 p (1 - p) = 3 - 3 t^2 / n, t being Student's.
    t = stats.t.ppf(0.975, n - 1)
    assert ends.low == pytest.approx(max(3 - 3 * t**2 / (n - 1), 0.0))
    # With a share q elsewhere, at 0 and 1, none of n is seen with probability (1 - q)^n = 0.05.
    q = 1 - 0.05 ** (1 / n)
    assert same.high == pytest.approx(3 * q, rel=0.02)


@pytest.mark.parametrize(("measure", "most"), [(wasserstein, 0.5), (cramer_von_mises, 1 / 3), (variance_ratio, 3.0)])
def test_lost_replicates_widen_distances(measure: Callable[..., Interval], most: float) -> None:
    """The interval with m lost contains the estimate of every completion, and never leaves the possible."""
    u = np.random.default_rng(15).beta(8, 2, 60)
    loose = measure(u, lost=6)
    for value in (0.0, 0.2, 0.5, 1.0):
        assert loose.low <= measure(np.append(u, np.full(6, value))).estimate <= loose.high <= most
    assert loose.low < measure(u).low
    assert loose.high > measure(u).high


def test_lost_replicates_cover_every_completion_of_coverage_and_distance() -> None:
    """The interval with m lost contains the intervals of every way to complete the data."""
    u = np.random.default_rng(6).random(40)
    loose_coverage, loose_distance = coverage(u, lost=5), distance(u, lost=5)
    for value in (0.0, 0.03, 0.5, 0.97, 1.0):
        full = np.append(u, np.full(5, value))
        for loose, tight in ((loose_coverage, coverage(full)), (loose_distance, distance(full))):
            assert loose.low <= tight.low + 1e-12
            assert loose.high >= tight.high - 1e-12


@pytest.mark.parametrize(("draws", "lost", "confidence"), [(None, 0, 0.95), (None, 7, 0.9), (9, 7, 0.99)])
def test_a_distance_has_massarts_interval(draws: int | None, lost: int, confidence: float) -> None:
    """P(D > eps) <= 2 exp(-2 n eps^2), and m lost replicates move the empirical law by m / (n + m)."""
    values = np.linspace(0.3, 0.9, 40) if draws is None else np.repeat([2, 5, 8], [15, 15, 10])
    found = distance(values, draws=draws, lost=lost, confidence=confidence)
    reach = lost / (40 + lost) + math.sqrt(math.log(2 / (1 - confidence)) / (2 * (40 + lost)))
    ends = max(0.0, found.estimate - reach), min(1.0, found.estimate + reach)
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-12)


@pytest.mark.parametrize("lost", [0, 5])
def test_no_law_is_farther_than_a_point_at_the_end(lost: int) -> None:
    """If all u are 0 the distances are 1/2 and 1/3, and no interval goes beyond."""
    zeros = np.zeros(50)
    one, two = wasserstein(zeros, lost=lost), cramer_von_mises(zeros, lost=lost)
    assert (one.estimate, one.high, two.estimate, two.high) == pytest.approx((0.5, 0.5, 1 / 3, 1 / 3), rel=1e-4)
    slack = lost / (50 + lost)
    assert one.low == pytest.approx(wasserstein(zeros).low - slack)
    assert math.sqrt(two.low) == pytest.approx(math.sqrt(cramer_von_mises(zeros).low) - slack)
