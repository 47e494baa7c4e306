"""Sizes of errors of probabilities: the best line, an upper limit that holds, and the score taken apart."""

import math

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logit

from ringtrue.statistics.effects import reliability
from ringtrue.statistics.effects.reliability import (
    calibration_error,
    consistency_band,
    corp,
    grouped_limit,
    groups,
    log_odds,
    outcomes_to_certify,
)
from ringtrue.statistics.probabilities import pooled
from ringtrue.values import Floats


def outcomes(n: int, factor: float, seed: int, shift: float = 0.0) -> tuple[Floats, Floats]:
    """Return outcomes whose log odds are N(0, 1.5^2), and reported probabilities."""
    rng = np.random.default_rng(seed)
    x = 1.5 * rng.normal(size=n)
    return (rng.random(n) < expit(x)).astype(float), expit(factor * x + shift)


def loss(t: Floats, p: Floats, a: float, b: float) -> float:
    """Return minus the log likelihood of a line, written in another way."""
    q = expit(a + b * logit(p))
    return -float(stats.bernoulli.logpmf(t.astype(int), q).sum())


@pytest.mark.parametrize("factor", [0.6, 1.0, 2.0])
def test_slope_and_shift_are_those_of_maximum_likelihood(factor: float) -> None:
    """Estimate and ends agree with a general optimiser: at both ends the profile has lost half the quantile."""
    t, p = outcomes(150, factor, 1, shift=0.3)
    found = log_odds(t, p, confidence=0.9)
    exact = {"xatol": 1e-8, "fatol": 1e-11, "maxiter": 2000}
    best = optimize.minimize(lambda ab: loss(t, p, *ab), [0, 1], method="Nelder-Mead", options=exact)
    assert found.slope.estimate == pytest.approx(best.x[1], abs=1e-5)
    half = stats.chi2.ppf(0.9, 1) / 2
    for end in (found.slope.low, found.slope.high):
        profile = optimize.minimize_scalar(lambda a, b=end: loss(t, p, a, b)).fun
        assert profile - best.fun == pytest.approx(half, abs=1e-4)
    alone = optimize.minimize_scalar(lambda a: loss(t, p, a, 1.0))
    assert found.shift.estimate == pytest.approx(alone.x, abs=1e-5)
    for end in (found.shift.low, found.shift.high):
        assert loss(t, p, end, 1.0) - alone.fun == pytest.approx(half, abs=1e-4)


@pytest.mark.slow
def test_neighbours_that_are_put_together_change_nothing() -> None:
    """Of 4000 outcomes, cells of neighbours give the sizes of all to a thousandth of the width of their intervals."""
    t, p = outcomes(4000, 1.4, 2)
    merged = [*vars(log_odds(t, p)).values(), calibration_error(t, p)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reliability, "_CELLS", 10**6)
        alone = [*vars(log_odds(t, p)).values(), calibration_error(t, p)]
    for one, other in zip(merged, alone, strict=True):
        for name in ("estimate", "low", "high"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-2 * (one.high - one.low))


def test_lines_that_cannot_be_told_have_no_ends() -> None:
    """Equal outcomes have no slope, equal probabilities neither; a threshold that tells all has an infinite one."""
    none = log_odds(np.zeros(20), np.linspace(0.1, 0.3, 20))
    assert math.isnan(none.slope.estimate)
    assert (none.shift.estimate, none.shift.low) == (-math.inf, -math.inf)
    assert none.shift.high < 0
    same = log_odds([0, 1, 1, 0], np.full(4, 0.3))
    assert (same.slope.low, same.slope.high) == (-math.inf, math.inf)
    assert same.shift.estimate == pytest.approx(-logit(0.3))
    apart = log_odds([0] * 10 + [1] * 10, np.linspace(0.3, 0.7, 20))
    assert apart.slope.estimate == apart.slope.high == math.inf
    assert 1 < apart.slope.low < math.inf
    certain = log_odds([0, 1], [0.0, 1.0])
    assert math.isnan(certain.slope.estimate)
    assert calibration_error([0, 1], [0.0, 1.0]).estimate == 0


def misses(n: int, p: float, tail: float) -> tuple[float, float]:
    """Return how often at most the limit of outcomes with one probability is below their error, and a normal limit."""
    ones, z = np.arange(n + 1), -stats.norm.ppf(tail)
    limits = np.array([grouped_limit(np.arange(n) < k, np.full(n, p), tail=tail) for k in ones])
    plain = np.abs(ones / n - p) + z * np.sqrt(ones * (n - ones) / n**3)
    shares = np.linspace(0.001, 0.999, 200)
    chance = stats.binom.pmf(ones, n, shares[:, None])
    missed, twin = ((chance * (one < np.abs(shares - p)[:, None])).sum(axis=1).max() for one in (limits, plain))
    return float(missed), float(twin)


@pytest.mark.parametrize("tail", [0.05, 0.005])
@pytest.mark.parametrize("n", [20, 100, 300])
def test_upper_limit_holds_exactly(n: int, tail: float) -> None:
    """With one probability the limit is a function of a binomial count: it is missed at most as often as it says."""
    missed, twin = np.max([misses(n, p, tail) for p in (0.001, 0.1, 0.5)], axis=0)
    assert missed <= tail
    assert twin > 1.3 * tail  # broken twin: the plain normal limit


@pytest.mark.slow
def test_upper_limit_holds_for_groups() -> None:
    """Errors of either sign in five groups are within the limit; half of it would fail."""
    rng, missed, twin = np.random.default_rng(3), 0, 0
    p = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 100)
    c = p + np.repeat([0.08, -0.1, 0.1, 0.1, -0.1], 100)
    error = float(np.abs(c - p).mean())
    for _ in range(100):
        t = rng.random(p.size) < c
        limit = grouped_limit(t, p, tail=0.05)
        missed += limit < error
        twin += limit < 1.5 * error
    # At .05 more than 20 of 100 with probability 2e-8.
    assert missed <= 20
    assert twin > 20


@pytest.mark.slow
def test_lower_end_holds_for_right_probabilities() -> None:
    """Right probabilities have a lower end above 0 in at most the stated share of runs; a plug-in estimate always."""
    found = [calibration_error(*outcomes(200, 1.0, seed), confidence=0.9) for seed in range(60)]
    # Each end is missed with probability .05: more than 16 of 60 with probability 4e-8.
    assert sum(m.low > 0 for m in found) <= 16
    plain = [sum(g.n * abs(g.share - g.probability) for g in groups(*outcomes(200, 1.0, seed))) for seed in range(60)]
    assert sum(one > 0 for one in plain) > 16
    assert all(m.low <= m.estimate <= m.high for m in found)


def test_errors_from_draws_are_those_of_outputs() -> None:
    """From shares of 99 draws slope and error are about those from exact probabilities."""
    t, p = outcomes(4000, 1.5, 4)
    share = pooled(t, np.random.default_rng(5).binomial(99, p), 99)
    exact, drawn = calibration_error(t, p), calibration_error(t, share, draws=99)
    assert drawn.estimate == pytest.approx(exact.estimate, abs=0.008)
    assert log_odds(t, share).slope.estimate == pytest.approx(log_odds(t, p).slope.estimate, abs=0.05)


def test_losses_widen() -> None:
    """Lost outcomes move the upper end by their share, and the lower end down."""
    t, p = outcomes(400, 1.6, 6)
    whole, lost = calibration_error(t, p), calibration_error(t, p, lost=40)
    assert lost.high == pytest.approx((400 * whole.high + 40) / 440)
    assert lost.low == pytest.approx(whole.low * 400 / 440)


def test_the_planned_number_certifies() -> None:
    """At the n that is asked for, the limit of right probabilities is below the error in about four of five runs."""
    n = int(outcomes_to_certify(outcomes(5000, 1.0, 0)[1], error=0.05, alpha=0.05))
    found = [grouped_limit(*outcomes(n, 1.0, seed), tail=0.05) <= 0.05 for seed in range(100)]
    # Of 100 runs with chance .8 between 57 and 96, all but 1e-6 on either side.
    assert 57 <= sum(found) <= 96


def test_score_is_taken_apart() -> None:
    """MCB - DSC + UNC is the score of Brier; the check values are those of a curve that equals the outcomes."""
    rng = np.random.default_rng(1)
    small = corp([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8], rng=rng)
    assert small.miscalibration == pytest.approx(0.133125, abs=1e-6)
    t, p = outcomes(300, 1.5, 7)
    p = np.round(p, 1)  # with ties
    found = corp(t, p, rng=rng)
    assert found.miscalibration - found.discrimination + found.uncertainty == pytest.approx(np.mean((t - p) ** 2))
    assert (np.diff(found.curve) >= 0).all()
    assert found.uncertainty == pytest.approx(t.mean() * (1 - t.mean()))


@pytest.mark.slow
def test_right_probabilities_have_no_excess() -> None:
    """Less its mean, the miscalibration of right probabilities is 0 on average; without, it never is."""
    found = [corp(*outcomes(100, 1.0, seed), rng=np.random.default_rng(seed), resamples=50) for seed in range(60)]
    excess, plain = (np.array([getattr(one, name) for one in found]) for name in ("excess", "miscalibration"))
    # A t-test of 60 runs: |t| > 5.4 with probability 1e-6.
    assert abs(excess.mean()) < 5.4 * excess.std() / math.sqrt(60)
    assert abs(plain.mean()) > 5.4 * plain.std() / math.sqrt(60)


@pytest.mark.slow
def test_band_holds_at_each_place() -> None:
    """The curve of right probabilities lies in its band in nine of ten runs; that of probabilities pushed out not."""
    _, p = outcomes(300, 1.0, 8)
    rng = np.random.default_rng(9)
    at, low, high = consistency_band(p, rng=rng, resamples=200)
    assert (low <= high).all()
    place, inside, twin = len(at) // 5, 0, 0
    for _ in range(100):
        right, wrong = (corp(rng.random(300) < q, p, rng=rng, resamples=1).curve for q in (p, expit(logit(p) / 2)))
        inside += low[place] <= right[place] <= high[place]
        twin += low[place] <= wrong[place] <= high[place]
    # Of 100 with chance .9, 72 or fewer with probability 5e-7.
    assert inside > 72
    assert twin <= 72
