"""Tests on means of scores: Neyman's smooth test, binned chi-squared, Cook's chi-squared, mean z.

It knows nothing of distribution functions.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...errors import InvalidStudy
from ..arguments import Floats, Ints, need_count
from .edf import multinomial
from .rankscores import QuadraticLaw, normal_scores, polynomial_scores, sum_tails
from .sample import ALL_RANKS, SIMULATIONS, Sample, UniformityTest, as_result, as_sample

#: The table that stands for the continuum has 400 cells, far more than the last polynomial turns.
_MOST_POLYNOMIALS = 100
#: Third moments of the law have a number for every three bins.
_MOST_BINS = 250


def neyman(u: ArrayLike, *, draws: int | None = None, order: int = 4) -> UniformityTest:
    """Test uniformity against smooth deviations: bias, spread, skewness, bimodality.

    The statistic is n times the sum of squared means of the first orthonormal polynomials: Legendre's on
    the continuum, Gram's on ranks, where there are at most `draws` of them. Cannot see deviations that
    oscillate faster than the last polynomial, and sees rare outliers late.

    Parameters
    ----------
    u, draws
        As in `ks`.
    order : int
        Number of polynomials, at most 100.

    Notes
    -----
    The chi-square limit is anti-conservative in the tail; see `rankscores.QuadraticLaw` for the law
    used, and for how far down it is trusted (5e-4 at n = 1, about 1e-8 from n = 3 to 49, 3e-5 at n = 50,
    1e-8 at n = 200, 1e-13 at n = 1000); smaller p-values are upper bounds.

    Examples
    --------
    >>> round(neyman([0.05, 0.2, 0.35, 0.6, 0.9]).statistic, 6)
    0.588509
    """
    need_count(1, _MOST_POLYNOMIALS, order=order)
    return neyman_of(as_sample(u, draws), int(order))


def neyman_of(sample: Sample, order: int = 4) -> UniformityTest:
    """Test a sample that was checked already."""
    n = sample.n
    if sample.draws is None:
        means = _legendre_means(sample.values, order)
    else:
        order = min(order, sample.draws)
        means = polynomial_scores(sample.draws, order) @ sample.counts / n
    statistic = n * float(means @ means)
    cells = _neyman_cells(n, sample.draws)
    # A table standing for something finer says nothing about what happens beyond its last cells.
    floor = 0.0 if cells - 1 == sample.draws else (2.0 / cells) ** n
    return as_result("neyman", statistic, max(floor, _neyman_law(n, cells, order).tail(statistic)))


def _neyman_cells(n: int, draws: int | None) -> int:
    """Cells of the table whose law is used; the law depends on moments that settle long before 400."""
    if draws is not None and draws <= ALL_RANKS:
        return draws + 1
    # What a table cannot resolve is (2 / cells)^n, see `neyman_of`: 5e-4 at n = 1 with 4000 cells, and with 400
    # 1e-23 from n = 10 on.
    return 4000 if n < 10 else 400


def _legendre_means(u: Floats | Ints, order: int) -> Floats:
    """Means of sqrt(2 j + 1) P_j(2 u - 1), j = 1..order, in pieces that stay in the cache."""
    sums = np.zeros(order)
    for start in range(0, u.size, 8192):
        x = 2.0 * u[start : start + 8192] - 1.0
        before, now = np.ones_like(x), x
        for j in range(order):
            sums[j] += now.sum()
            # The three-term recursion is stable in [-1, 1], where sums of powers would cancel.
            before, now = now, ((2 * j + 3) * x * now - (j + 1) * before) / (j + 2)
    return np.asarray(np.sqrt(2.0 * np.arange(1, order + 1) + 1.0) * sums / u.size)


@lru_cache(maxsize=128)
def _neyman_law(n: int, cells: int, order: int) -> QuadraticLaw:
    return QuadraticLaw(polynomial_scores(cells - 1, order), np.full(cells, 1.0 / cells), n)


def binned_chi2(u: ArrayLike, *, draws: int | None = None, bins: int | None = None) -> UniformityTest:
    """Test uniformity by Pearson's statistic over bins.

    On ranks the bins hold whole ranks, and their expected counts follow from how many each holds. Cannot
    see what happens inside a bin, and spends its power on all directions alike.

    Parameters
    ----------
    u, draws
        As in `ks`.
    bins : int, optional
        Number of bins, at most 250; by default as many as keep five expected in each, at least 2 and at most 20.

    Notes
    -----
    With five expected in each bin the law is that of `rankscores.QuadraticLaw`; with fewer it
    is simulated, with p at least 1e-4, or enumerated if there are few outcomes.

    Examples
    --------
    >>> binned_chi2([0.05, 0.2, 0.35, 0.6, 0.9], bins=10).statistic
    5.0
    """
    sample = as_sample(u, draws)
    bins = _default_bins(sample) if bins is None else bins
    need_count(2, _MOST_BINS, bins=bins)
    if draws is not None and bins > draws + 1:
        raise InvalidStudy(f"bins must be a number from 2 to that of different ranks, but {bins} arrived.")
    observed, probabilities = _binned(sample, int(bins))
    expected = sample.n * probabilities
    statistic = float(np.square(observed - expected) @ (1.0 / expected))
    return as_result("binned_chi2", statistic, _pearson_tail(statistic, sample.n, tuple(probabilities)))


def _default_bins(sample: Sample) -> int:
    cells = 20 if sample.draws is None else sample.draws + 1
    fitting = [k for k in range(2, min(20, cells) + 1) if _smallest_bin(sample, k) >= 5.0]
    return max(fitting, default=2)


def _smallest_bin(sample: Sample, bins: int) -> float:
    if sample.draws is None:
        return sample.n / bins
    return sample.n * ((sample.draws + 1) // bins) / (sample.draws + 1)


def _binned(sample: Sample, bins: int) -> tuple[Ints, Floats]:
    if sample.draws is None:
        # u = 1 belongs to the last bin, not to one beyond it.
        cell = np.minimum((sample.values * bins).astype(np.int64), bins - 1)
        return np.bincount(cell, minlength=bins), np.full(bins, 1.0 / bins)
    observed = np.bincount(np.asarray(sample.values, np.int64) * bins // (sample.draws + 1), minlength=bins)
    # Rank r is in bin r * bins // (draws + 1): the first of bin k is the smallest r with r * bins >= k * (draws + 1).
    first = -(-np.arange(bins + 1) * (sample.draws + 1) // bins)
    return observed, np.diff(first) / (sample.draws + 1)


def _pearson_tail(statistic: float, n: int, probabilities: tuple[float, ...]) -> float:
    law = _pearson_law(n, probabilities)
    # The expansion needs five expected in each bin; the slack is for a 5 that n / bins rounds down.
    if law.enumerable or n * min(probabilities) >= 5.0 - 1e-9:
        return law.tail(statistic)
    null = _pearson_null(n, probabilities)
    below = int(np.searchsorted(null, statistic * (1.0 - 1e-9) - 1e-12))
    return (1 + null.size - below) / (1 + null.size)


@lru_cache(maxsize=64)
def _pearson_law(n: int, probabilities: tuple[float, ...]) -> QuadraticLaw:
    p = np.array(probabilities)
    # Orthonormal contrasts: Pearson's statistic is the sum of their squared standardised means.
    q, _ = np.linalg.qr(np.column_stack([np.sqrt(p), np.eye(p.size)[:, :-1]]))
    return QuadraticLaw(q[:, 1:].T / np.sqrt(p), p, n)


@lru_cache(maxsize=64)
def _pearson_null(n: int, probabilities: tuple[float, ...]) -> Floats:
    p = np.array(probabilities)
    # A fixed seed makes the p-value a function of the data.
    counts = multinomial(n, p, SIMULATIONS, np.random.default_rng(9))
    return np.sort(np.square(counts - n * p) @ (1.0 / (n * p)))


def cook(u: ArrayLike, *, draws: int | None = None, z: ArrayLike | None = None) -> UniformityTest:
    """Test uniformity by the sum of squared normal scores, on both sides.

    The most powerful test of a wrong spread: large sums mean over-confidence, small ones
    under-confidence. Blind to bias that leaves the sum unchanged, to skewness and to bimodality.

    Parameters
    ----------
    u, draws
        As in `ks`; at least 2 draws.
    z : array_like, shape (n,), optional
        The normal scores of u where they are known more accurately than u near 0 and 1 can say.

    Notes
    -----
    The law is exact: chi-square with n degrees of freedom on the continuum. On ranks the statistic is the
    expected sum given the ranks, and its law that of `ringtrue.statistics.uniformity.rankscores.sum_tails`.

    Examples
    --------
    >>> round(cook([0.05, 0.2, 0.35, 0.6, 0.9]).statistic, 6)
    5.268901
    """
    sample = as_sample(u, draws, z)
    if sample.draws == 1:
        raise InvalidStudy("draws must be at least 2, but 1 arrived: a rank among one draw says nothing about spread.")
    return cook_of(sample)


def cook_of(sample: Sample) -> UniformityTest:
    """Test a sample that was checked already."""
    n = sample.n
    if sample.draws is not None:
        scores = normal_scores(sample.draws)[1]
        return as_result("cook", n + float(scores @ sample.counts), 2.0 * min(sum_tails(scores, sample.counts)))
    total = float(sample.z @ sample.z)
    # Both tails, since one minus the other has no digits where it is small.
    tails = special.gammainc(0.5 * n, 0.5 * total), special.gammaincc(0.5 * n, 0.5 * total)
    return as_result("cook", total, 2.0 * float(min(tails)))


def mean_z(u: ArrayLike, *, draws: int | None = None, z: ArrayLike | None = None) -> UniformityTest:
    """Test uniformity by the mean normal score, on both sides.

    The most powerful test of bias: a positive statistic means that truths lie above what the outputs say.
    Blind to everything symmetric about 1/2.

    Parameters
    ----------
    u, draws, z
        As in `cook`.

    Notes
    -----
    The statistic is standardised, and its law exact: normal on the continuum, that of
    `ringtrue.statistics.uniformity.rankscores.sum_tails` on ranks.

    Examples
    --------
    >>> round(mean_z([0.05, 0.2, 0.35, 0.6, 0.9]).statistic / 5**0.5, 6)
    -0.267379
    """
    return mean_z_of(as_sample(u, draws, z))


def mean_z_of(sample: Sample) -> UniformityTest:
    """Test a sample that was checked already."""
    n = sample.n
    if sample.draws is not None:
        scores = normal_scores(sample.draws)[0]
        standardised = float(scores @ sample.counts) / (n**0.5 * float(scores.std()))
        return as_result("mean_z", standardised, 2.0 * min(sum_tails(scores, sample.counts)))
    standardised = float(sample.z.sum()) / n**0.5
    # erfc keeps its digits where two times one minus the normal law would be 0.
    return as_result("mean_z", standardised, float(special.erfc(abs(standardised) / 2**0.5)))
