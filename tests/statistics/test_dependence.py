"""Independence over an order: exact levels by enumeration, the band and the p-value agree, gaps, and power."""

from itertools import permutations

import numpy as np
import pytest
from scipy import special, stats

from ringtrue.statistics import dependence
from ringtrue.statistics.dependence import correlogram
from ringtrue.values import Floats


def autoregressive(n: int, rho: float, rng: np.random.Generator) -> Floats:
    """u whose normal scores are a stationary AR(1)."""
    z = rng.normal(size=n)
    for i in range(1, n):
        z[i] = rho * z[i - 1] + np.sqrt(1 - rho**2) * z[i]
    return np.asarray(special.ndtr(z))


def test_correlations_are_those_of_the_formula() -> None:
    """Sums of products of deviations over pairs, as shares of the sum of squares, per pair."""
    u = np.random.default_rng(1).random(30)
    found = correlogram(u, lags=3)
    for moment, x in enumerate((u - u.mean(), (u - u.mean()) ** 2)):
        x = x - x.mean()
        for lag in (1, 2, 3):
            expected = (x[:-lag] * x[lag:]).mean() / (x * x).mean()
            assert found.correlations[0, moment, lag - 1] == pytest.approx(expected)


@pytest.mark.parametrize("gap", [None, 0, 3])
def test_the_centre_is_the_mean_over_all_orders(gap: int | None) -> None:
    """Over all orders of six values, gaps or not, every correlation is -1 / (n - 1) on average."""
    values, places = np.random.default_rng(2).random(6), np.arange(6)
    if gap is not None:
        places = np.delete(np.arange(7), gap)
    total, every = 0.0, list(permutations(range(6)))
    series, kept = dependence._scaled(values[:, None]), np.isin(np.arange(places.max() + 1), places)
    pairs = np.array([np.sum(kept[:-k] & kept[k:]) for k in (1, 2)])
    for order in every:
        total += dependence._products(series[None][..., list(order)], kept, 2) * 6 / pairs
    np.testing.assert_allclose(total / len(every), -1 / 5)


@pytest.mark.parametrize("values", [[0.1, 0.25, 0.3, 0.6, 0.95, 0.99], [0.0, 0.0, 0.5, 0.5, 0.5, 1.0]])
@pytest.mark.parametrize("gap", [None, 2])
def test_the_level_is_exact_over_all_orders(values: list[float], gap: int | None) -> None:
    """Over the 720 orders of six values, ties or not, a gap or not, P(p <= a) <= a for every a, with equality at p."""
    rows = np.insert(list(permutations(values)), gap, np.nan, axis=1) if gap else np.array(list(permutations(values)))
    pvalues = np.sort([correlogram(row, lags=2).pvalue for row in rows])
    sizes = np.searchsorted(pvalues, pvalues * (1 + 1e-9), side="right") / pvalues.size
    np.testing.assert_allclose(sizes, pvalues, rtol=1e-9)


def test_a_formula_without_permutations_breaks_the_level() -> None:
    """Broken twin: the usual band of 1.96 / sqrt(n) for each correlation is left by far too many orders."""
    values = [0.1, 0.25, 0.3, 0.6, 0.95, 0.99]
    found = [correlogram(row, lags=2).correlations for row in permutations(values)]
    assert np.mean([np.abs(one).max() > 1.96 / 6**0.5 for one in found]) > 0.15


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
def test_band_and_pvalue_agree(confidence: float) -> None:
    """A correlation leaves the band exactly if p is at most one minus the confidence, at small n and in two series."""
    rng = np.random.default_rng(3)
    for n, width in [(5, 1), (6, 2), (40, 1), (40, 2)] * 5:
        found = correlogram(rng.random((n, width)), lags=2, confidence=confidence)
        outside = np.abs(found.correlations - found.centre) > found.half_widths * (1 + 1e-9)
        assert outside.any() == (found.pvalue <= 1 - confidence + 1e-12)


def test_the_level_of_random_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rejections at 5 % of 1000 independent series, skewed and with values lost, are Binomial(1000, <= 0.05).

    The bound is exceeded with probability 1e-6; a size of 0.12 passes with probability below 1e-3.
    """
    monkeypatch.setattr(dependence, "_MOST", 999)
    rng = np.random.default_rng(4)
    hits = 0
    for seed in range(1000):
        u = rng.beta(0.5, 2.0, 30)
        u[rng.random(30) < 0.1] = np.nan
        hits += correlogram(u, seed=seed).pvalue <= 0.05
    assert hits <= stats.binom.isf(1e-6, 1000, 0.05)


def rejections(rho: float, repeats: int, rng: np.random.Generator) -> int:
    """Count the series of 400 values that are rejected at 5 %."""
    return sum(correlogram(autoregressive(400, rho, rng)).pvalue <= 0.05 for _ in range(repeats))


@pytest.mark.slow
def test_an_autoregression_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """AR(0.2) at n = 400 is found in at least 80 % of series.

    Measured: 0.866 of 2000 (standard error 0.008). Of 150, fewer than 95 would be found with probability below 1e-6 if
    the power were 0.8; a power of 0.5 passes with probability below 1e-3.
    """
    monkeypatch.setattr(dependence, "_MOST", 999)
    assert rejections(0.2, 150, np.random.default_rng(5)) >= stats.binom.ppf(1e-6, 150, 0.8)


@pytest.mark.slow
def test_independent_series_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin of the power: without correlation the same count stays below its bound (false alarm 1e-6)."""
    monkeypatch.setattr(dependence, "_MOST", 999)
    assert rejections(0.0, 150, np.random.default_rng(6)) <= stats.binom.isf(1e-6, 150, 0.05)


def test_a_spread_that_lasts_is_found_in_squares() -> None:
    """Fifty narrow values after fifty wide ones have no correlation themselves; their squares have."""
    rng = np.random.default_rng(7)
    u = 0.5 + np.tile(np.repeat([0.5, 0.1], 25), 4) * rng.uniform(-1, 1, 200)
    found = correlogram(u)
    assert found.worst[1] == 1
    assert found.pvalue <= 1e-3


def test_a_lost_value_keeps_its_place() -> None:
    """With every second value lost there are no neighbours, and those two apart are compared at lag 2."""
    u = np.full(40, np.nan)
    u[::2] = np.linspace(0, 1, 20)
    found = correlogram(u, lags=2)
    assert found.pairs.tolist() == [0, 19]
    assert (found.correlations[0, 0, 0], found.half_widths[0]) == (0.0, np.inf)
    assert found.correlations[0, 0, 1] == pytest.approx(correlogram(u[::2], lags=1).correlations[0, 0, 0])


def test_closing_the_gap_makes_neighbours_of_strangers() -> None:
    """Broken twin: leaving lost values out finds a lag-1 correlation that the order does not have."""
    u = np.full(40, np.nan)
    u[::2] = np.linspace(0, 1, 20)
    assert correlogram(u[::2], lags=2).correlations[0, 0, 0] > 0.8


def test_constant_values_have_no_correlation() -> None:
    """Equal values give zeros and p = 1, not nan."""
    found = correlogram(np.full(20, 0.3))
    assert found.pvalue == 1.0
    assert not found.correlations.any()


def test_long_series_have_fewer_permutations() -> None:
    """The number of orders falls with the length, not below 999; the p-value is one of the multiples of its inverse."""
    found = correlogram(np.random.default_rng(8).random(60_000), lags=2)
    assert found.permutations == 999
    assert found.pvalue * 1000 == pytest.approx(round(found.pvalue * 1000))


@pytest.mark.parametrize(
    ("u", "lags", "message"),
    [
        ([0.1, 0.2, 0.3], 1, "at least 4"),
        ([0.1, 0.2, 0.3, np.nan], 1, "at least 4"),
        (np.arange(10) / 10, 6, "half the number"),
        (np.arange(10) / 10, 0, "whole number"),
        (np.zeros((2, 2, 2)), 1, "shape"),
    ],
)
def test_what_cannot_be_tested_is_refused(u: Floats, lags: int, message: str) -> None:
    """A refusal says what was expected."""
    with pytest.raises(ValueError, match=message):
        correlogram(u, lags=lags)
