"""Intervals that hold at all looks together."""

import math

import numpy as np
import pytest
from scipy import special, stats

from ringtrue.statistics import effects
from ringtrue.statistics.sequential import confidence_sequences, intersections
from ringtrue.statistics.sequential.sequences import coverage_set, radius
from ringtrue.values import Floats
from tests.builders import refusal, says


def _grid(n: int, spread: float = 1.0, bias: float = 0.0) -> Floats:
    z = special.ndtri((np.random.default_rng(0).permutation(n) + 0.5) / n)
    return np.asarray(bias + spread * z)


@pytest.mark.parametrize(
    ("alpha", "expected"), [(0.05, [3.86, 3.08, 3.04, 3.15, 3.24]), (0.1, [3.63, 2.82, 2.76, 2.89, 2.98])]
)
def test_widths_that_another_program_found(alpha: float, expected: list[float]) -> None:
    """In units of the standard error at n = 100, 500, 1000, 5000 and 10,000."""
    found = [radius(n, alpha) * math.sqrt(n) for n in (100, 500, 1000, 5000, 10_000)]
    np.testing.assert_allclose(found, expected, atol=0.0051)


def test_spread_and_bias_are_those_of_the_formula() -> None:
    """The estimates of a single look, and sigma times the radius to either side, the spread's on the logarithm."""
    z = _grid(800, 1.3, 0.2)
    found = confidence_sequences(z, [800])[0]
    one = effects.spread_and_bias(z)
    assert (found.spread.estimate, found.bias.estimate) == pytest.approx((one.spread.estimate, one.bias.estimate))
    assert found.bias.high - found.bias.low == pytest.approx(2 * z.std() * radius(800, 0.05))
    kurtosis = float(stats.kurtosis(z, fisher=False))
    half = math.sqrt(max(kurtosis - 1, 2)) / 2 * radius(800, 0.05)
    assert math.log(found.spread.high / found.spread.estimate) == pytest.approx(half)


def test_sequences_are_wider_than_single_looks() -> None:
    """The price of looking, at every n, on scores and on ranks."""
    z = _grid(2000)
    ranks = np.random.default_rng(1).binomial(19, special.ndtr(z))
    for values, draws in ((z, None), (ranks, 19)):
        for sizes in confidence_sequences(values, [100, 500, 2000], draws=draws):
            single = effects.spread_and_bias(values[: sizes.n], draws=draws)
            assert sizes.bias.low < single.bias.low < single.bias.high < sizes.bias.high
            assert sizes.spread.low < single.spread.low < single.spread.high < sizes.spread.high
            hits = effects.coverage(values[: sizes.n] if draws else special.ndtr(values[: sizes.n]), draws=draws)
            assert sizes.coverage.low < hits.low < hits.high < sizes.coverage.high
            assert sizes.coverage.ideal == hits.ideal


def test_before_a_hundred_only_coverage_is_known() -> None:
    """Spread and bias rest on many replicates, and the distance has not been looked at."""
    found = confidence_sequences(_grid(99), [1, 99])
    for one in found:
        assert (one.spread.low, one.spread.high, one.bias.low, one.bias.high) == (0, math.inf, -math.inf, math.inf)
        assert (one.distance.low, one.distance.high) == (0, 1)
    assert found[1].coverage.high - found[1].coverage.low < 0.2


def test_coverage_is_excluded_where_the_mixture_says_so() -> None:
    """At both ends the likelihood ratio is 1 / alpha; at n = 1000 they are .030 and .025 away; all hits end at 1."""
    low, high = coverage_set(880, 1000, 0.9, 0.05)
    for c in (low, high):
        mixture = special.betaln(90 + 880, 10 + 120) - special.betaln(90, 10)
        assert mixture - 880 * math.log(c) - 120 * math.log1p(-c) == pytest.approx(math.log(20))
    low, high = coverage_set(900, 1000, 0.9, 0.05)
    assert (0.9 - low, high - 0.9) == pytest.approx((0.030, 0.025), abs=5e-4)
    assert coverage_set(50, 50, 0.9, 0.05)[1] == 1.0
    assert coverage_set(0, 50, 0.9, 0.05)[0] == 0.0


def test_the_mixture_is_a_martingale() -> None:
    """Under its own coverage the expected ratio after one more replicate is the ratio before, for any prefix."""
    c, a, b = 0.85, 90.0, 10.0

    def ratio(hits: int, n: int) -> float:
        value = special.betaln(a + hits, b + n - hits) - special.betaln(a, b)
        return math.exp(value - hits * math.log(c) - (n - hits) * math.log1p(-c))

    for hits, n in ((0, 0), (3, 5), (40, 60)):
        assert c * ratio(hits + 1, n + 1) + (1 - c) * ratio(hits, n + 1) == pytest.approx(ratio(hits, n))


def test_the_distance_is_looked_at_when_n_doubles() -> None:
    """Between 100 2^k and 100 2^(k + 1) it stays; its level is alpha / ((k + 1)(k + 2))."""
    found = confidence_sequences(_grid(900), [250, 399, 400, 900])
    assert found[0].distance == found[1].distance != found[2].distance
    k = 3  # 800 is the last of its looks
    slack = math.sqrt(math.log(2 / (0.05 / ((k + 1) * (k + 2)))) / (2 * 800))
    assert found[3].distance.high == pytest.approx(found[3].distance.estimate + slack)
    assert sum(1 / ((k + 1) * (k + 2)) for k in range(10_000)) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("draws", [None, 9])
def test_lost_replicates_widen_everything(draws: int | None) -> None:
    """Intervals contain what any value in their place would have given."""
    z = _grid(400)
    values = z if draws is None else np.random.default_rng(1).binomial(draws, special.ndtr(z))
    lost = np.arange(400) % 100 == 7
    found = confidence_sequences(values, [400], draws=draws, lost=lost)[0]
    for one in (-3, 0, 3) if draws is None else (0, 4, draws):
        whole = confidence_sequences(np.where(lost, one, values), [400], draws=draws)[0]
        assert found.coverage.low <= whole.coverage.low <= whole.coverage.high <= found.coverage.high
        assert found.spread.low <= whole.spread.estimate <= found.spread.high
        assert found.bias.low <= whole.bias.estimate <= found.bias.high
        assert found.distance.low <= whole.distance.estimate <= found.distance.high
    if draws is None:
        assert (found.spread.high, found.bias.low, found.bias.high) == (math.inf, -math.inf, math.inf)


def test_intersections_only_shrink() -> None:
    """Ends never move apart; estimates are those of the look; intervals that do not meet leave the first."""
    rng = np.random.default_rng(4)
    raw = confidence_sequences(rng.normal(size=3000), [100, 300, 1000, 3000])
    met = intersections(raw)
    for before, after, one in zip(met[:-1], met[1:], raw[1:], strict=True):
        for name in ("spread", "bias", "coverage", "distance"):
            m, now = getattr(before, name), getattr(after, name)
            assert m.low <= now.low <= now.high <= m.high
            assert now.estimate == getattr(one, name).estimate
    apart = intersections([raw[3], confidence_sequences(rng.normal(9.0, 1.0, size=3000), [3000])[0]])
    assert (apart[1].bias.low, apart[1].bias.high) == (raw[3].bias.low, raw[3].bias.high)


def _ever_missed(seed: int, runs: int, *, bias: float = 0.0) -> int:
    """Return in how many runs a bias of 0 leaves its sequence at one of many looks."""
    z = np.random.default_rng(seed).normal(bias, 1.0, size=(runs, 800))
    looks = [*range(100, 800, 25), 800]
    every = (confidence_sequences(row, looks) for row in z)
    return sum(any(not one.bias.low <= 0 <= one.bias.high for one in sizes) for sizes in every)


#: Of 100 runs, exceeded with probability 1e-6 by a chance of 0.05.
_MOST = int(stats.binom.isf(1e-6, 100, 0.05))


@pytest.mark.slow
def test_the_sequence_holds_at_all_looks_together() -> None:
    """Of 100 runs with 29 looks each at most 18 miss somewhere: false-alarm rate 1e-6 for a chance of 0.05.

    A chance of 0.33 is missed with probability 1e-3.
    """
    assert _MOST == 18
    assert _ever_missed(1, 100) <= _MOST


@pytest.mark.slow
def test_broken_twin_a_bias_leaves_the_sequence() -> None:
    """A bias of 0.15 fails the same assertion."""
    assert _ever_missed(1, 100, bias=0.15) > _MOST


def test_what_does_not_fit_is_refused() -> None:
    """Looks that do not rise or reach beyond the last replicate, masks of another shape."""
    z = _grid(10)
    for looks in ([5, 5], [3, 2], [11]):
        says(refusal(lambda looks=looks: confidence_sequences(z, looks)), "must rise", "n = 10", "arrived")  # type: ignore[misc]
    says(refusal(lambda: confidence_sequences(z, [0])), "at least 1")
    says(refusal(lambda: confidence_sequences(z, [10], lost=np.zeros(9, bool))), "as many True or False")
