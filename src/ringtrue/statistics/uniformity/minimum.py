"""The default: the smallest p-value of four tests that see different things, made a p-value again."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from .ecdf import gamma_of, lower_tail
from .multiplicity import adjusted_minimum
from .rankscores import enumerable, enumerate_counts, integer_scores, normal_scores, polynomial_scores
from .sample import Floats, Ints, Sample, UniformityTest, as_result, as_sample
from .scores import cook_of, mean_z_of, neyman_of


def combination(u: ArrayLike, *, draws: int | None = None, z: ArrayLike | None = None) -> UniformityTest:
    """Test uniformity by the best of four tests, paying for the choice.

    The statistic is the smallest p-value of `ecdf_gamma`, `neyman`, `mean_z` and `cook`. It needs at most a
    third more replicates than the best single test for bias, spread, skewness, heavy tails, outliers and
    bimodality alike, and is the default. Cannot see deviations that none of the four can.

    Parameters
    ----------
    u : array_like, shape (n,)
        Values in [0, 1], or ranks in {0, ..., draws}.
    draws : int, optional
        Number of draws behind each rank.
    z : array_like, shape (n,), optional
        The normal scores of u where they are known more accurately than u near 0 and 1 can say.

    Notes
    -----
    The four are dependent: the price is about 2.7, not 4. It was found by simulation (see
    `multiplicity`), and by enumeration where n and draws are small; far out it is Bonferroni's 4.
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
    table = np.minimum(lower, lower[::-1, ::-1])
    return np.asarray(2.0 * table[np.cumsum(counts, axis=1)[:, :-1], np.arange(cells - 1)].min(axis=1))


def _exact_two_sided(sums: Ints, weights: Floats) -> Floats:
    upper = _exact_tails((sums - sums.min()).astype(float), weights)
    lower = _exact_tails((sums.max() - sums).astype(float), weights)
    return np.minimum(1.0, 2.0 * np.minimum(lower, upper))


def _exact_tails(statistics: Floats, weights: Floats) -> Floats:
    """P(T >= t) for each outcome's own t; ties count although rounding separates them."""
    order = np.argsort(statistics)
    tails = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    return tails[np.searchsorted(statistics[order], statistics * (1.0 - 1e-9) - 1e-12)]
