"""The law of ranks, and spread and bias from them, against closed forms and exact scores."""

import math

import numpy as np
import pytest
from scipy import special, stats

from ringtrue.statistics.effects import (
    influences,
    rank_efficiency,
    rank_probabilities,
    spread_and_bias,
)
from ringtrue.statistics.effects.ranks import cells_of, kernel_of, weights_of

from .laws import (
    FEWEST,
    REPETITIONS,
    Floats,
    even_scores,
    expected_ranks,
    finite_or_known,
    in_proportion,
)


@pytest.mark.parametrize("draws", [1, 2, 3, 9, 99, 999, 2000])
def test_ranks_of_a_calibrated_procedure_are_uniform(draws: int) -> None:
    """If z is standard normal, every rank has probability 1 / (M + 1)."""
    assert rank_probabilities(draws) == pytest.approx(1 / (draws + 1), rel=1e-9)


@pytest.mark.parametrize(("spread", "bias"), [(0.05, 0.3), (0.5, -1.0), (1.4, 0.3), (5.0, 2.0), (50.0, -20.0)])
def test_rank_moments_are_moments_of_u(spread: float, bias: float) -> None:
    """E R / M is Phi(delta / sqrt(1 + s^2)), and the second factorial moment is the bivariate normal probability."""
    M, r = 9, np.arange(10)
    p = rank_probabilities(M, spread=spread, bias=bias)
    a, rho = bias / math.hypot(1, spread), spread**2 / (1 + spread**2)
    both = stats.multivariate_normal(cov=[[1, rho], [rho, 1]]).cdf([a, a])
    assert p.sum() == pytest.approx(1, abs=1e-6)
    assert p @ r / M == pytest.approx(special.ndtr(a), abs=1e-6)
    assert p @ (r * (r - 1)) / (M * (M - 1)) == pytest.approx(both, abs=1e-5)


def test_mirrored_procedure_has_its_known_rank_law() -> None:
    """z ~ N(0, 5) among two draws gives the ranks probabilities .40679, .18643, .40679."""
    assert rank_probabilities(2, spread=5**0.5) == pytest.approx([0.40679, 0.18643, 0.40679], abs=1e-5)


@pytest.mark.parametrize(
    ("draws", "bias", "spread"),
    [
        (1, 0.32, 0),
        (5, 0.69, 0.275),
        (9, 0.79, 0.43),
        (19, 0.88, 0.62),
        (49, 0.95, 0.79),
        (99, 0.97, 0.87),
        (199, 0.99, 0.93),
        (999, 1.0, 0.98),
    ],
)
def test_efficiency_of_ranks(draws: int, bias: float, spread: float) -> None:
    """The information kept by ranks agrees with the tabulated values, and with 1/pi for the sign alone."""
    kept = rank_efficiency(draws)
    assert (kept.bias, kept.spread) == pytest.approx((bias, spread), abs=6e-3)
    assert rank_efficiency(1).bias == pytest.approx(1 / math.pi, rel=1e-9)


def test_efficiency_is_the_variance_of_normal_order_scores() -> None:
    """For three draws the information is the mean square of E[z | r] and of E[z^2 - 1 | r] / sqrt 2."""
    kept = rank_efficiency(3)
    assert kept.bias == pytest.approx((1.029375**2 + 0.297011**2) / 2, abs=1e-6)
    assert kept.spread == pytest.approx(0.551329**2 / 2, abs=1e-6)


def test_grouping_many_draws_costs_no_information() -> None:
    """Where ranks are grouped the efficiency continues smoothly and still tends to one."""
    before, after, far = rank_efficiency(2000), rank_efficiency(2001), rank_efficiency(10**6)
    assert after.spread == pytest.approx(before.spread, abs=2e-4)
    assert after.bias == pytest.approx(before.bias, abs=2e-4)
    assert min(far.spread, far.bias) > 0.9995


@pytest.mark.parametrize("draws", [2, 3, 9, 19, 99, 999])
@pytest.mark.parametrize(("spread", "bias"), [(1.0, 0.0), (2**0.5, 0.0), (1.4, 0.3), (0.6, -0.5), (3.0, 1.0)])
def test_expected_ranks_return_the_law_of_scores(draws: int, spread: float, bias: float) -> None:
    """A million ranks in their expected proportions give back delta and s, however few the draws."""
    both = spread_and_bias(expected_ranks(1_000_000, draws, spread, bias), draws=draws)
    assert both.spread.estimate == pytest.approx(spread, abs=1e-3)
    assert both.bias.estimate == pytest.approx(bias, abs=1e-3)


def test_mid_ranks_would_be_biased() -> None:
    """Broken twin: the standard deviation of mid-rank scores at nine draws is far from the truth, 1.414."""
    ranks = expected_ranks(1_000_000, 9, 2**0.5, 0.0)
    naive = special.ndtri((ranks + 0.5) / 10).std()
    assert abs(naive - 2**0.5) > 0.25


@pytest.mark.slow
@pytest.mark.parametrize("draws", [99, 999, 2000, 3000])
def test_ranks_of_given_scores_agree_with_the_scores(draws: int) -> None:
    """Ranks in the proportions that 500 given scores imply, singly or in groups, estimate what the scores do.

    Mid-quantiles fall short of the spread in the tails, of which ranks see less: the estimate lies between.
    """
    z = even_scores(500, 1.3, 0.2)
    p = stats.binom.pmf(np.arange(draws + 1)[:, None], draws, special.ndtr(z)).mean(axis=1)
    both = spread_and_bias(in_proportion(1_000_000, p), draws=draws)
    assert z.std() < both.spread.estimate < 1.3 + 1e-4
    assert both.bias.estimate == pytest.approx(z.mean(), abs=1e-4)


def test_grouped_and_single_ranks_agree() -> None:
    """At the number of draws where grouping begins, the same data give the same answer either way."""
    z = even_scores(400, 2.0, -0.3)
    single, grouped = (spread_and_bias(np.round(special.ndtr(z) * M).astype(int), draws=M) for M in (2000, 2001))
    assert grouped.spread.estimate == pytest.approx(single.spread.estimate, rel=1e-3)
    assert grouped.spread.high == pytest.approx(single.spread.high, rel=1e-3)
    assert grouped.bias.low == pytest.approx(single.bias.low, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("draws", [1, 2, 9, 99, 3000])
@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("where", [(0.0,), (1.0,), (0.0, 1.0), (0.5,), (0.3, 0.4), (0.0, 0.5)])
def test_extreme_ranks_have_ordered_intervals(draws: int, n: int, where: tuple[float, ...]) -> None:
    """Ranks piled up anywhere give intervals in order, without warnings."""
    ranks = np.resize(np.round(draws * np.array(where)).astype(int), n)
    both = spread_and_bias(ranks, draws=draws, confidence=0.9995)
    assert finite_or_known(both)
    if n == 1 and draws > 1:
        assert (both.spread.low, both.spread.high) == (0, math.inf)


def test_all_ranks_at_one_end() -> None:
    """Nothing but the highest rank says that the bias is large and the spread unknown."""
    both = spread_and_bias(np.full(50, 9), draws=9)
    assert (both.spread.low, both.spread.high) == (0, math.inf)
    assert math.isnan(both.spread.estimate)
    assert (both.bias.estimate, both.bias.high) == (math.inf, math.inf)
    assert 1 < both.bias.low < 4


def test_all_ranks_at_both_ends() -> None:
    """Nothing but the two ends says that the spread is large, without an upper bound."""
    both = spread_and_bias(np.resize([0, 9], 200), draws=9)
    assert (both.spread.estimate, both.spread.high) == (math.inf, math.inf)
    assert both.spread.low > 10


def test_gross_over_confidence() -> None:
    """Nearly all ranks at the ends, as for a spread of 50, gives a large spread and an interval around it."""
    both = spread_and_bias(expected_ranks(1000, 9, 50.0, 0.0), draws=9)
    assert both.spread.estimate == pytest.approx(50, rel=0.1)
    assert 20 < both.spread.low < 50 < both.spread.high


def test_profile_contains_the_truth_of_gross_under_confidence() -> None:
    """Ranks at the quantiles of a very narrow law give an interval for s that reaches 0 and excludes 1."""
    both = spread_and_bias(np.full(100, 50), draws=99)
    assert both.spread.low == 0
    assert both.spread.high < 0.2
    assert abs(both.bias.estimate) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("draws", [9, 99])
def test_intervals_from_ranks_cover(draws: int) -> None:
    """From ranks the 95 % intervals of spread and bias cover an over-confident truth (false alarm 2e-6 each)."""
    rng = np.random.default_rng(12)
    u = special.ndtr(0.3 + 2**0.5 * rng.standard_normal((REPETITIONS, 200)))
    fits = [spread_and_bias(row, draws=draws) for row in rng.binomial(draws, u)]
    assert sum(fit.spread.low <= 2**0.5 <= fit.spread.high for fit in fits) >= FEWEST
    assert sum(fit.bias.low <= 0.3 <= fit.bias.high for fit in fits) >= FEWEST


def test_interval_from_mid_ranks_would_not_cover() -> None:
    """Broken twin: scores of mid-ranks at nine draws, treated as exact, miss the spread."""
    rng = np.random.default_rng(12)
    ranks = rng.binomial(9, special.ndtr(2**0.5 * rng.standard_normal((REPETITIONS, 200))))
    fits = [spread_and_bias(special.ndtri((row + 0.5) / 10)) for row in ranks]
    assert sum(fit.spread.low <= 2**0.5 <= fit.spread.high for fit in fits) < FEWEST


@pytest.mark.parametrize(("delta", "s"), [(0.0, 1.0), (0.7, 1.4), (-8.0, 0.6), (3.0, 40.0)])
def test_weights_have_their_derivatives(delta: float, s: float) -> None:
    """First and second differences of the weights of N(delta, s^2) are the columns said to be their derivatives."""
    h, log_s = 1e-3, math.log(s)

    def at(a: int, b: int) -> Floats:
        return weights_of(delta + a * h, log_s + b * h)[:, 0]

    first = [(at(1, 0) - at(-1, 0)) / (2 * h), (at(0, 1) - at(0, -1)) / (2 * h)]
    mixed = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * h * h)
    second = [(at(1, 0) - 2 * at(0, 0) + at(-1, 0)) / h**2, mixed, (at(0, 1) - 2 * at(0, 0) + at(0, -1)) / h**2]
    found = weights_of(delta, log_s)
    assert found[:, 0].sum() == pytest.approx(1, abs=1e-4)
    scale = np.abs(found[:, 1:]).max(axis=0)
    assert np.column_stack([*first, *second]) / scale == pytest.approx(found[:, 1:] / scale, abs=2e-5)


def test_grouped_ranks_have_exact_probabilities() -> None:
    """Beyond 2000 draws the cells have the probability of their size, at calibration, to 2e-4."""
    starts = cells_of(10_000)
    shares = kernel_of(10_000) @ weights_of(0.0, 0.0)[:, 0]
    assert shares * 10_001 == pytest.approx(np.diff(starts, append=10_001), rel=2e-4)


@pytest.mark.parametrize("heavy", [True, False])
def test_intervals_from_ranks_are_the_sandwich_or_the_models(heavy: bool) -> None:
    """Student's quantile times the larger of both errors: of the influences, and of the likelihood's curvature."""
    # Few ranks far out and the others in the middle; or all ranks but the outer ones alike.
    i = np.arange(120)
    ranks = np.where(i % 12 == 0, 19 * (i % 24 == 0), 6 + i % 8) if heavy else 2 + 7 * i % 16
    known = influences(ranks, draws=19)
    assert known is not None
    n, x = 120, known.values
    counts = np.bincount(ranks, minlength=20)

    def log_likelihood(delta: float, log_s: float) -> float:
        return float(counts @ np.log(rank_probabilities(19, spread=math.exp(log_s), bias=delta)))

    at, h = np.array([known.bias, known.log_spread - 0.5 * math.log(n / (n - 1))]), 1e-3
    step = h * np.eye(2)
    # There the likelihood is largest, before log s is made unbiased as on the continuum.
    assert [log_likelihood(*(at + e)) - log_likelihood(*(at - e)) for e in step] == pytest.approx([0, 0], abs=1e-5)
    hessian = [
        [
            sum(a * b * log_likelihood(*(at + a * step[i] + b * step[j])) for a in (-1, 1) for b in (-1, 1))
            / (4 * h * h)
            for j in (0, 1)
        ]
        for i in (0, 1)
    ]
    model = np.diag(np.linalg.inv(-np.array(hessian)))
    sandwich = np.square(x).sum(axis=0) / (n * (n - 1))
    assert (sandwich[1] > model[1]) is np.bool_(heavy)
    df = 2 * n / np.maximum(n * (x**4).sum(axis=0) / np.square(x).sum(axis=0) ** 2 - 1, 2 * n / (n - 1))
    reach = stats.t.ppf(0.975, np.maximum(df, 2)) * np.sqrt(np.maximum(sandwich, model))
    found = spread_and_bias(ranks, draws=19)
    assert (found.bias.high - found.bias.low) / 2 == pytest.approx(reach[0], rel=1e-3)
    assert math.log(found.spread.high / found.spread.low) / 2 == pytest.approx(reach[1], rel=1e-3)
    assert math.sqrt(found.spread.high * found.spread.low) == pytest.approx(found.spread.estimate)


def test_ranks_all_at_one_end_bound_the_bias_on_one_side() -> None:
    """If no draw lies below any truth the bias may be as low as one likes, and mirrored."""
    low, high = spread_and_bias(np.zeros(30, int), draws=9), spread_and_bias(np.full(30, 9), draws=9)
    assert low.bias.estimate == low.bias.low == -math.inf
    assert low.bias.high < 0
    assert (high.bias.estimate, high.bias.low, high.bias.high) == pytest.approx((math.inf, -low.bias.high, math.inf))
