"""Contraction, skill and correlation against closed forms of the normal example, and the coverage of their intervals.

theta ~ N(0, 1), y = theta + N(0, 1), output N(y / 2, eta / 2): errors have variance 1/2.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special, stats

import ringtrue as rt
from ringtrue.replicates.reducers.summaries import of_law
from ringtrue.statistics.effects import Interval
from ringtrue.statistics.effects.usefulness import contraction, correlation, interval_skill, skill, uninformative

from .laws import FEWEST_OF_MANY, MANY

Floats = NDArray[np.float64]


def conjugate(rng: Generator, n: int, eta: float = 1.0) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Truth, and mean, sd, CRPS and interval score of the output."""
    theta = rng.standard_normal(n)
    mean = (theta + rng.standard_normal(n)) / 2
    truth, mean, sd, crps, interval = of_law(rt.Normal(mean, math.sqrt(eta / 2)), theta)
    return truth, mean, np.broadcast_to(sd, (n,)), crps, interval


# Point estimates

# Standard errors at a million replicates are at most 7.5e-4 (contraction's sqrt(1/2) / 1000); six are 2e-9 of chance.
LARGE, MILLION = 6 * 7.5e-4, 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize(("eta", "expected", "other"), [(1.0, 0.398942, 0.408894), (0.5, 0.408894, 0.398942)])
def test_crps_and_skill_have_their_closed_form(eta: float, expected: float, other: float) -> None:
    """E CRPS = sqrt(2 (sigma^2 + tau^2) / pi) - sigma / sqrt(pi), the belief's 1 / sqrt(pi) (false alarm 4e-9).

    The broken twin is the value of the other eta, more than two bounds away.
    """
    truth, _, _, crps, _ = conjugate(np.random.default_rng(1), MILLION, eta)
    sigma = math.sqrt(eta / 2)
    closed = math.sqrt(2 * (sigma**2 + 0.5) / math.pi) - sigma / math.sqrt(math.pi)
    assert closed == pytest.approx(expected, abs=1e-6)
    assert crps.mean() == pytest.approx(closed, abs=LARGE)
    assert crps.mean() != pytest.approx(other, abs=LARGE)
    assert skill(truth, crps).estimate == pytest.approx(1 - closed * math.sqrt(math.pi), abs=LARGE)


def test_closed_forms_of_the_normal_example() -> None:
    """The belief's CRPS is .564190, which N(0, 1) has at its own quantiles, and the skill of Bayes .292893."""
    assert 1 / math.sqrt(math.pi) == pytest.approx(0.564190, abs=5e-7)
    assert 1 - math.sqrt(0.5) == pytest.approx(0.292893, abs=5e-7)
    x = special.ndtri((np.arange(100_000) + 0.5) / 100_000)
    # Mid-quantiles cut off tails of order log(n) / n.
    assert of_law(rt.Normal(0, 1), x)[3].mean() == pytest.approx(0.564190, abs=2e-5)
    assert skill(x, of_law(rt.Normal(0, 1), x)[3]).estimate == pytest.approx(0, abs=1e-4)


def test_contraction_correlation_and_interval_skill_of_bayes() -> None:
    """Bayes contracts by 1/2, has correlation sqrt(1/2) and interval skill 1 - sqrt(1/2) (false alarm 1e-9)."""
    truth, mean, sd, _, interval = conjugate(np.random.default_rng(2), MILLION)
    assert contraction(truth, sd).estimate == pytest.approx(0.5, abs=LARGE)
    assert correlation(truth, mean).estimate == pytest.approx(0.5**0.5, abs=LARGE)
    assert interval_skill(truth, interval).estimate == pytest.approx(1 - 0.5**0.5, abs=LARGE)


def test_beliefs_score_is_the_mean_over_all_pairs() -> None:
    """The belief's CRPS, by sorting, is half the mean of |x - x'| over all pairs, far from the origin as well."""
    x = 1e6 + np.random.default_rng(3).standard_t(3, 200)
    pairs = np.abs(x[:, None] - x).sum() / (200 * 199)
    score = np.full(200, 0.1)
    assert 1 - skill(x, score).estimate == pytest.approx(0.1 / (pairs / 2), rel=1e-7)


@pytest.mark.slow
def test_in_sample_quantiles_would_flatter_the_belief() -> None:
    """The belief's interval score is unbiased at n = 100; that of the sample's own quantiles is not (its broken twin).

    The exact score is 4.1254; the mean of 4000 has a standard error of 0.006, and both bounds are five of them.
    """
    rng = np.random.default_rng(4)
    exact = 2 * 1.644854 + 40 * (stats.norm.pdf(1.644854) - 1.644854 * 0.05)
    ones, own = np.full(100, 1.0), []
    ours = []
    for _ in range(4000):
        x = rng.standard_normal(100)
        ours.append(1 / (1 - interval_skill(x, ones).estimate))
        low, high = np.quantile(x, [0.05, 0.95])
        own.append((high - low + 20 * (np.maximum(low - x, 0) + np.maximum(x - high, 0))).mean())
    assert np.mean(ours) == pytest.approx(exact, abs=0.03)
    assert np.mean(own) < exact - 0.03


# Intervals

CASES: dict[str, tuple[Callable[..., Interval], int, float]] = {
    "contraction": (contraction, 2, 0.5),
    "skill": (skill, 3, 1 - 0.5**0.5),
    "interval skill": (interval_skill, 4, 1 - 0.5**0.5),
    "correlation": (correlation, 1, 0.5**0.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_intervals_cover(name: str) -> None:
    """The nominal 95 % interval covers at n = 200 (false alarm 1e-6); 0.6 times as wide, the broken twin, it does not.

    The twin covers 2 Phi(0.6 * 1.96) - 1 = 0.76; FEWEST_OF_MANY is 18 standard deviations above that.
    """
    rng = np.random.default_rng(5)
    measure, column, true = CASES[name]
    found = []
    for _ in range(MANY):
        columns = conjugate(rng, 200)
        found.append(measure(columns[0], columns[column]))
    assert sum(m.low <= true <= m.high for m in found) >= FEWEST_OF_MANY
    narrow = [(m.estimate + 0.6 * (m.low - m.estimate), m.estimate + 0.6 * (m.high - m.estimate)) for m in found]
    assert sum(low <= true <= high for low, high in narrow) < FEWEST_OF_MANY


@pytest.mark.slow
def test_an_interval_that_takes_the_belief_for_known_would_not_cover() -> None:
    """Broken twin: without the noise of the truths' variance, contraction covers about 0: its sd is constant."""
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(MANY):
        truth, _, sd, _, _ = conjugate(rng, 200)
        hits += abs(1 - np.mean(sd**2) / truth.var(ddof=1) - 0.5) <= 1.96 * (sd**2).std() / 200**0.5
    assert hits < FEWEST_OF_MANY


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 500])
def test_skill_of_the_belief_itself_is_known_sharply(n: int) -> None:
    """Outputs equal to the belief have skill 0 to order 1/n, inside an interval of that order (false alarm 1e-6).

    What the projection leaves has standard deviation 0.79 / n, so that intervals are 3.1 / n wide and, with the noise
    of the projection itself, 5 / n on average; first-order noise would make them 3 / sqrt(n).
    """
    rng = np.random.default_rng(6)
    found = []
    for _ in range(MANY):
        truth = rng.standard_normal(n)
        found.append(skill(truth, of_law(rt.Normal(0, 1), truth)[3]))
    assert sum(m.low <= 0 <= m.high for m in found) >= FEWEST_OF_MANY
    assert np.mean([m.high - m.low for m in found]) < 10 / n


# Uninformative


def test_the_belief_returned_is_uninformative_and_bayes_is_not() -> None:
    """A procedure that ignores its data is flagged, a useful one and an over-confident one are not."""
    truth, _, sd, crps, _ = conjugate(np.random.default_rng(7), 500)
    agnostic = of_law(rt.Normal(0, 1), truth)
    narrow = of_law(rt.Normal(0, 0.1), truth)
    assert uninformative(skill(truth, agnostic[3]), contraction(truth, np.ones(500)))
    assert not uninformative(skill(truth, crps), contraction(truth, sd))
    assert not uninformative(skill(truth, narrow[3]), contraction(truth, np.full(500, 0.1)))


def test_few_replicates_prove_no_lack_of_use() -> None:
    """Where skill is not known, nothing is flagged."""
    unknown = Interval("skill", math.nan, -math.inf, 1.0, math.nan)
    assert not uninformative(unknown, Interval("contraction", 0.0, -1.0, 1.0, math.nan))


# Extremes and refusals


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_units_do_not_matter(scale: float) -> None:
    """All measures are the same in any unit in which the numbers exist."""
    truth, mean, sd, crps, interval = conjugate(np.random.default_rng(8), 100)
    for measure, other in ((contraction, sd), (skill, crps), (interval_skill, interval), (correlation, mean)):
        plain, scaled = measure(truth, other), measure(truth * scale, other * scale)
        assert (scaled.estimate, scaled.low, scaled.high) == pytest.approx((plain.estimate, plain.low, plain.high))


def test_what_cannot_be_told_is_nan() -> None:
    """Unknown columns, equal truths and very few replicates give nan and an unbounded interval."""
    x = special.ndtri((np.arange(50) + 0.5) / 50)
    for measure in (contraction, skill, interval_skill, correlation):
        assert math.isnan(measure(x, np.full(50, np.nan)).estimate)
        assert math.isnan(measure(np.ones(50), x).estimate)
        assert math.isnan(measure(x[:3], x[:3]).estimate)
    assert math.isnan(interval_skill(x[:39], np.ones(39)).estimate)


def test_constant_means_have_no_correlation_and_perfect_ones_all() -> None:
    """A procedure that ignores its data has correlation 0; means that are the truths have 1."""
    x = special.ndtri((np.arange(50) + 0.5) / 50)
    assert correlation(x, np.full(50, 3.0)).high == 0
    assert correlation(x, 2 * x + 1).low == pytest.approx(1)


@pytest.mark.parametrize("score", [0.0, 1e-200, 1e-99, 1e-20])
def test_scores_next_to_nothing_are_full_skill(score: float) -> None:
    """Outputs that know the truth have skill 1, however small the score that rounding leaves them."""
    x = special.ndtri((np.arange(50) + 0.5) / 50)
    for measure in (skill, interval_skill, contraction):
        assert measure(x, np.full(50, score)).estimate == pytest.approx(1)


def test_negative_mean_scores_are_allowed() -> None:
    """Fair scores of few draws can be negative on average; the skill is then above 1, with an interval."""
    x = special.ndtri((np.arange(50) + 0.5) / 50)
    found = skill(x, np.full(50, -0.01))
    assert 1 < found.low < found.estimate < found.high


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: skill([1.0, 2.0], [1.0]), "shape"),
        (lambda: skill([np.nan, 2.0], [1.0, 1.0]), "nan"),
        (lambda: contraction([1.0, 2.0], [1.0, 1.0], confidence=95), "confidence"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], says: str) -> None:
    """The message names what was wrong."""
    with pytest.raises(ValueError, match=says):
        call()
