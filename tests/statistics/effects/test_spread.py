"""Spread and bias on the continuum: closed forms, extremes, coverage, lost replicates."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from ringtrue.statistics.effects import (
    influences,
    moment_spread_and_bias,
    spread_and_bias,
    spreads_and_biases,
)

from .laws import (
    FEWEST_OF_MANY,
    LAWS,
    MANY,
    Floats,
    even_scores,
    finite_or_known,
    hits,
)


@pytest.mark.parametrize(("spread", "bias"), [(1.0, 0.0), (1.5, 0.4), (0.2, -3.0), (40.0, 7.0)])
def test_scores_return_the_law_they_are_quantiles_of(spread: float, bias: float) -> None:
    """Scores at the quantiles of N(delta, s^2) give back delta exactly and s up to order log(n) / n."""
    both = spread_and_bias(even_scores(10_000, spread, bias))
    assert both.spread.estimate == pytest.approx(spread, rel=2e-3)
    assert both.bias.estimate == pytest.approx(bias, abs=1e-9)
    assert both.spread.low < spread < both.spread.high
    assert both.bias.low < bias < both.bias.high


def test_one_draw_knows_bias_only() -> None:
    """With one draw the spread is unknown and the bias is sqrt(2) times the normal score of the proportion."""
    ranks = np.repeat([0, 1], [40, 60])
    both = spread_and_bias(ranks, draws=1)
    exact = stats.binomtest(60, 100).proportion_ci(0.95, method="exact")
    assert math.isnan(both.spread.estimate)
    assert (both.spread.low, both.spread.high) == (0, math.inf)
    assert both.bias.estimate == pytest.approx(math.sqrt(2) * special.ndtri(0.6))
    assert (both.bias.low, both.bias.high) == pytest.approx(math.sqrt(2) * special.ndtri([exact.low, exact.high]))


def test_sign_symmetry() -> None:
    """Reversing the ranks reverses the bias and leaves the spread alone."""
    ranks = np.random.default_rng(3).binomial(19, special.ndtr(even_scores(150, 1.3, 0.4)))
    one, other = spread_and_bias(ranks, draws=19), spread_and_bias(19 - ranks, draws=19)
    assert other.spread.low == pytest.approx(one.spread.low, rel=1e-6)
    assert other.bias.low == pytest.approx(-one.bias.high, rel=1e-6)


def test_huge_and_infinite_scores() -> None:
    """|z| = 40 stays finite; infinite scores make the spread infinite and leave a finite lower end."""
    z = even_scores(100)
    assert finite_or_known(spread_and_bias(np.append(z, 40.0)))
    assert math.isfinite(spread_and_bias(np.append(z, [40.0, -40.0])).spread.high)
    up, split = spread_and_bias(np.append(z, np.inf)), spread_and_bias(np.append(z, [np.inf, -np.inf]))
    assert up.spread.estimate == up.spread.high == up.bias.estimate == up.bias.high == math.inf
    assert up.spread.low == spread_and_bias(z).spread.low
    assert up.bias.low == spread_and_bias(z).bias.low
    assert (split.bias.low, split.bias.high) == (-math.inf, math.inf)
    assert spread_and_bias([np.inf]).spread.low == 0


@pytest.mark.parametrize("z", [[0.3], [0.3, 0.3], [1.0, -1.0], [0.0, 0.0, 0.0, 0.0, 0.0], [1e300, 2e300]])
def test_few_or_equal_scores_know_no_spread(z: list[float]) -> None:
    """One score, a few, or equal ones put no bound on the spread."""
    both = spread_and_bias(z)
    assert (both.spread.low, both.spread.high) == (0, math.inf)
    assert finite_or_known(both)


@pytest.mark.parametrize("confidence", [0.9, 0.99])
@pytest.mark.parametrize("n", [15, 60])
def test_intervals_are_students(n: int, confidence: float) -> None:
    """The bias has Student's interval; the log variance too, with its own variance and degrees of freedom.

    Formulas as in the notes of `spread_and_bias`, with the standardised moments m4, m6 and m8 of skewed scores.
    """
    z = stats.gamma.ppf((np.arange(n) + 0.5) / n, 2)
    found, s, tail = spread_and_bias(z, confidence=confidence), z.std(ddof=1), (1 + confidence) / 2
    half = stats.t.ppf(tail, n - 1) * s / math.sqrt(n)
    assert (found.bias.low, found.bias.high) == pytest.approx((z.mean() - half, z.mean() + half), rel=1e-9)
    x = (z - z.mean()) / z.std()
    m4, m6 = np.mean(x**4), np.mean(x**6)
    excess = max(m4 - 1, 2 * min(1, 20 / n))
    v = (excess + (m6 - m4) / n) / (n - 1)
    df = 2 * n * excess**2 / (np.mean((x**2 - 1) ** 4) - excess**2)
    half = stats.t.ppf(tail, min(max(df, 2), n - 1)) * math.sqrt(v)
    ends = s * math.exp((v / 2 - half) / 2), s * math.exp((v / 2 + half) / 2)
    assert (found.spread.estimate, found.spread.low, found.spread.high) == pytest.approx((s, *ends), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_interval_of_spread_covers(law: str) -> None:
    """The nominal 95 % interval of the spread covers at n = 200 whatever the law of z (false alarm 1e-6)."""
    z = LAWS[law](np.random.default_rng(11), (MANY, 200))

    def interval(row: Floats) -> tuple[float, float]:
        spread = spread_and_bias(row).spread
        return spread.low, spread.high

    assert hits(z, interval, 1.0) >= FEWEST_OF_MANY


@pytest.mark.slow
def test_chi_squared_interval_would_not_cover() -> None:
    """Broken twin: the interval that trusts normality covers about 76 % for t5, and is found out."""
    z = LAWS["t5"](np.random.default_rng(11), (MANY, 200))

    def interval(row: Floats) -> tuple[float, float]:
        total = 199 * row.var(ddof=1)
        return math.sqrt(total / stats.chi2.ppf(0.975, 199)), math.sqrt(total / stats.chi2.ppf(0.025, 199))

    assert hits(z, interval, 1.0) < FEWEST_OF_MANY


@pytest.mark.parametrize("draws", [None, 9, 99, 3000])
def test_influences_are_derivatives(draws: int | None) -> None:
    """Repeating one replicate moves bias and log spread by its influence over n, to first order."""
    rng = np.random.default_rng(16)
    z = 0.2 + 1.3 * rng.standard_normal(4000)
    values = z if draws is None else rng.binomial(draws, special.ndtr(z))
    base = influences(values, draws=draws)
    assert base is not None
    assert base.values.mean(axis=0) == pytest.approx([0, 0], abs=1e-4)
    for i in range(5):
        more = influences(np.append(values, values[i]), draws=draws)
        assert more is not None
        moved = 4000 * np.array([more.bias - base.bias, more.log_spread - base.log_spread])
        assert moved == pytest.approx(base.values[i], abs=5e-3)


@pytest.mark.parametrize(("spread", "bias"), [(1.0, 0.0), (0.7, 1.0), (1.5, -2.0)])
@pytest.mark.parametrize("draws", [2, 19])
def test_lost_replicates_widen_by_the_worst_move_of_the_moment_estimate(spread: float, bias: float, draws: int) -> None:
    """No completion, at random, moves the moment estimate further than the interval was widened."""
    rng = np.random.default_rng(7)
    z = spread * rng.standard_normal(300) + bias
    u = rng.binomial(draws, special.ndtr(z))
    plain, wide = (spread_and_bias(u, draws=draws, lost=m) for m in (0, 10))
    before = moment_spread_and_bias(u, draws=draws)
    for a, b in rng.choice([0.05, 0.3, 1.0, 5.0, 1e3], size=(60, 2)):
        extra = rng.beta(a, b, size=10)
        lost = np.round(draws * extra).astype(int)
        after = moment_spread_and_bias(np.append(u, lost), draws=draws)
        assert wide.spread.low / plain.spread.low <= after.spread / before.spread * (1 + 1e-3)
        assert wide.spread.high / plain.spread.high >= after.spread / before.spread * (1 - 1e-3)
        assert wide.bias.low - plain.bias.low <= after.bias - before.bias + 1e-3
        assert wide.bias.high - plain.bias.high >= after.bias - before.bias - 1e-3


@pytest.mark.parametrize("completion", [0.0, 3.0, -30.0, 1e6, "mean"])
def test_lost_scores_leave_no_bound_that_a_completion_breaks(completion: Any) -> None:
    """Whatever the lost scores were, the estimates of all of them lie in the interval of those that are known."""
    z = 1.2 * even_scores(300) + 0.1
    wide = spread_and_bias(z, lost=5)
    every = spread_and_bias(np.append(z, np.full(5, z.mean() if completion == "mean" else completion)))
    assert wide.spread.low <= every.spread.estimate <= wide.spread.high
    assert wide.bias.low <= every.bias.estimate <= wide.bias.high
    assert wide.spread.low > 1


def test_several_confidences_are_those_of_single_calls() -> None:
    """One fit serves all, on scores, on ranks, and where scores are infinite."""
    z = 1.2 * even_scores(60)
    for values, draws in ((z, None), (np.arange(60) % 10, 9), (np.append(z, np.inf), None), ([0, 1, 1], 1)):
        found = spreads_and_biases(values, draws=draws, confidences=(0.9, 0.99))
        single = [spread_and_bias(values, draws=draws, confidence=c) for c in (0.9, 0.99)]
        assert repr(found) == repr(single)


def test_one_draw_with_lost_replicates() -> None:
    """With one draw the lost may all have been above or all below."""
    both = spread_and_bias(np.repeat([0, 1], [10, 10]), draws=1, lost=4)
    low = stats.binomtest(10, 24).proportion_ci(0.95, method="exact").low
    assert both.bias.low == pytest.approx(math.sqrt(2) * special.ndtri(low))
    assert both.bias.high == pytest.approx(-both.bias.low)


@pytest.mark.parametrize("lost", [1, 10_000])
def test_any_number_may_be_lost(lost: int) -> None:
    """More lost than seen leaves ordered, wide intervals."""
    both = spread_and_bias(even_scores(50), lost=lost)
    assert finite_or_known(both)
    assert both.spread.low < 1 < both.spread.high
    assert finite_or_known(spread_and_bias(np.arange(10), draws=9, lost=lost))


def test_tiny_scores_have_influences_and_equal_ones_have_none() -> None:
    """What is rounding depends on the size of the scores: 1e-7 next to 0 is none, next to 1e9 it is."""
    z = 1e-7 * even_scores(50)
    assert influences(z) is not None
    assert influences(z + 1e9) is None
    assert influences(z - 1e9) is None
