"""The default: the smallest p-value of four tests that see different things, made a p-value again.

The four are dependent, so the smallest p-value x needs a factor c(x; n, draws) between 1 and 4. The table
``multiplicity.csv`` next to this file holds c as found by ``benchmarks/calibrate_combination.py`` (100 000 to 400 000
null samples per row, smoothed along n and x where both n >= 20 and draws >= 6).
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import Floats, Ints
from .ecdf import gamma_of, lower_tail
from .rankscores import enumerable, enumerate_counts, integer_scores, normal_scores, polynomial_scores
from .sample import Sample, UniformityTest, as_result, as_sample
from .scores import cook_of, mean_z_of, neyman_of

# The table's axes; its last axis has one p-value less, c(1) being 1.
SMALLEST = (
    *(1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.13, 0.09, 0.065, 0.045, 0.03, 0.022),
    *(0.016, 0.011, 0.008, 0.005, 0.0035, 0.002, 0.001, 5e-4, 2e-4),
)
SIZES = (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 10_000, 1_000_000)
DRAWS = (2, 3, 4, 6, 9, 14, 19, 29, 49, 99, 199, 999)
_COMPONENTS = 4.0


def combination(u: ArrayLike, *, draws: int | None = None, z: ArrayLike | None = None) -> UniformityTest:
    """Test uniformity by the best of four tests, paying for the choice.

    The statistic is the smallest p-value of `ecdf_gamma`, `neyman`, `mean_z` and `cook`. It needs at most a
    third more replicates than the best single test for bias, spread, skewness, heavy tails, outliers and
    bimodality alike, and is the default. Cannot see deviations that none of the four can.

    Parameters
    ----------
    u, draws, z
        As in `cook`.

    Notes
    -----
    The four are dependent: the price is about 2.7, not 4. It was found by simulation (see
    the table), and by enumeration where n and draws are small; far out it is Bonferroni's 4.
    Tests that do not exist with so few draws are left out. The construction has no published reference.

    Examples
    --------
    >>> combination([0.05, 0.2, 0.35, 0.6, 0.9]).pvalue > 0.5
    True
    """
    sample = as_sample(u, draws, z)
    smallest = min(test.pvalue for test in _components(sample))
    if sample.draws is not None and enumerable(sample.draws + 1, sample.n):
        return as_result("combination", smallest, _enumerated_minimum(smallest, sample.n, sample.draws))
    return as_result("combination", smallest, adjusted_minimum(smallest, sample.n, sample.draws))


def _components(sample: Sample) -> list[UniformityTest]:
    tests = [gamma_of(sample), neyman_of(sample), mean_z_of(sample)]
    return tests if sample.draws == 1 else [*tests, cook_of(sample)]


def adjusted_minimum(smallest: float, n: int, draws: int | None) -> float:
    """Turn the smallest p-value of n values, in (0, 1], into a p-value.

    It never falls as `smallest` grows. Below 2e-4 the factor rises to Bonferroni's within two decades.

    Examples
    --------
    >>> 0.04 < adjusted_minimum(0.0185, 200, None) < 0.06
    True
    """
    if draws == 1:
        # All components are then the same binomial test.
        return min(1.0, smallest)
    x, pvalues = _curve(n, draws)
    if smallest >= SMALLEST[-1]:
        return min(1.0, float(np.exp(np.interp(np.log(smallest), x, pvalues))))
    # Beyond the table 100 000 null samples have fewer than twenty to go by; Bonferroni's factor needs none.
    last = float(np.exp(pvalues[0] - x[0]))
    share = min(1.0, float(np.log10(SMALLEST[-1] / smallest)) / 2.0)
    return smallest * (last + (_COMPONENTS - last) * share)


@lru_cache(maxsize=256)
def _curve(n: int, draws: int | None) -> tuple[Floats, Floats]:
    """Logarithms of the smallest p-values, increasing, and of the p-values there."""
    sizes = np.log(SIZES)
    at_n = np.apply_along_axis(lambda column: np.interp(np.log(n), sizes, column), 1, _table())
    # 1 / (draws + 1), from the continuum's zero up to two draws.
    cell = np.array([0.0, *(1.0 / (m + 1.0) for m in reversed(DRAWS))])
    here = 0.0 if draws is None else 1.0 / (draws + 1.0)
    factors = np.array([np.interp(here, cell, column) for column in at_n[::-1].T])
    smallest = np.array(SMALLEST[::-1])
    pvalues = np.minimum(1.0, np.append(factors[::-1], 1.0) * smallest)
    # Noise of the simulated factors could make p fall as the minimum grows; the running maximum errs upwards.
    return np.log(smallest), np.log(np.maximum.accumulate(pvalues))


@lru_cache(maxsize=1)
def _table() -> Floats:
    """Factors by draws (the continuum last), size and smallest p-value (without 1, decreasing)."""
    text = resources.files(__package__).joinpath("multiplicity.csv").read_text("utf-8")
    rows = np.loadtxt(text.splitlines(), delimiter=",")
    return rows[:, 2:].reshape(len(DRAWS) + 1, len(SIZES), len(SMALLEST) - 1)


def _enumerated_minimum(smallest: float, n: int, draws: int) -> float:
    """P(the smallest p-value is at most this) over all outcomes."""
    minima, weights = _minimum_law(n, draws)
    # The same p-value computed in two ways differs by rounding.
    return float(weights[: np.searchsorted(minima, smallest * (1.0 + 1e-6), side="right")].sum())


@lru_cache(maxsize=16)
def _minimum_law(n: int, draws: int) -> tuple[Floats, Floats]:
    """All smallest p-values in increasing order, with their probabilities."""
    counts, weights = enumerate_counts(np.full(draws + 1, 1.0 / (draws + 1)), n)
    scores = [integer_scores(row, n) for row in normal_scores(draws)[: 1 if draws == 1 else 2]]
    means = counts @ polynomial_scores(draws, min(4, draws)).T
    pvalues = [
        # Small gammas are the extreme ones: minus the log turns them round, and keeps tiny ones apart.
        _exact_tails(-np.log(np.maximum(_enumerated_gammas(counts, n), np.finfo(float).tiny)), weights),
        _exact_tails(np.square(means).sum(axis=1), weights),
        *(_exact_two_sided(counts @ row, weights) for row in scores),
    ]
    smallest = np.minimum.reduce(pvalues)
    order = np.argsort(smallest)
    return smallest[order], weights[order]


def _enumerated_gammas(counts: Ints, n: int) -> Floats:
    cells = counts.shape[1]
    t = np.arange(1, cells) / cells
    lower = lower_tail(np.arange(n + 1)[:, None], n, t)
    # P(N(t) >= c) = P(N(1 - t) <= n - c): upper tails are the lower ones mirrored.
    table = np.minimum(lower, lower[::-1, ::-1])
    gammas = 2.0 * table[np.cumsum(counts, axis=1)[:, :-1], np.arange(cells - 1)].min(axis=1)
    # Two tails that share their centre add up to more than one.
    return np.asarray(np.minimum(gammas, 1.0))


def _exact_two_sided(sums: Ints, weights: Floats) -> Floats:
    upper = _exact_tails((sums - sums.min()).astype(float), weights)
    lower = _exact_tails((sums.max() - sums).astype(float), weights)
    return np.minimum(1.0, 2.0 * np.minimum(lower, upper))


def _exact_tails(statistics: Floats, weights: Floats) -> Floats:
    """P(T >= t) for each outcome's own t; ties count although rounding separates them."""
    order = np.argsort(statistics)
    tails = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    return tails[np.searchsorted(statistics[order], statistics - 1e-9 * np.abs(statistics) - 1e-12)]
