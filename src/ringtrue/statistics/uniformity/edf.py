"""Tests on the empirical distribution function: Kolmogorov-Smirnov, Kuiper, Watson, Cramer-von Mises, Anderson-Darling.

It knows nothing of scores or bands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..arguments import Floats, Ints
from .crossing import Bounds, order_bounds, stay_probability
from .rankscores import enumerable, enumerate_counts
from .sample import (
    ALL_RANKS,
    EDGE,
    RESOLUTION,
    SIMULATIONS,
    TINY,
    Sample,
    UniformityTest,
    as_result,
    as_sample,
)
from .smallsamples import small_sample_tail


def ks(u: ArrayLike, *, draws: int | None = None) -> UniformityTest:
    """Test uniformity by the largest distance between two distribution functions.

    Weak against wrong spread and nearly blind to rare outliers; `combination` is the better default.

    Parameters
    ----------
    u : array_like, shape (n,)
        Values in [0, 1], or ranks in {0, ..., draws}.
    draws : int, optional
        Number of draws behind each rank.

    Notes
    -----
    On the continuum the law is exact up to n = 1000; beyond, the p-value has a relative error below
    1e-4 (the largest found was 6e-5, for n from 1001 to 10^6 and p from 1 down to 1e-300). On ranks it is exact;
    above 2000 draws it may be the p-value of the continuum, which is conservative, if the lattice is finer than a
    fiftieth of 1 / sqrt(n).

    Examples
    --------
    >>> ks([0.05, 0.2, 0.35, 0.6, 0.9]).statistic
    0.25
    """
    return _ks(as_sample(u, draws))


def _ks(sample: Sample) -> UniformityTest:
    n = sample.n
    if sample.draws is None:
        distance = max(_one_sided_distances(sample.sorted))
        return as_result("ks", distance, _ks_tail(n, distance))
    cells = sample.draws + 1
    expected = n * np.arange(1, cells) / cells
    distance = float(np.abs(np.cumsum(sample.counts)[:-1] - expected).max()) / n
    # A supremum over a lattice is at most that over the continuum, whose law is then conservative.
    if sample.draws > ALL_RANKS and cells > 50 * n**0.5:
        return as_result("ks", distance, _ks_tail(n, distance))
    return as_result("ks", distance, _ks_lattice_tail(expected, distance, n))


def _one_sided_distances(ordered: Floats) -> tuple[float, float]:
    n = ordered.size
    gaps = np.arange(1, n + 1) / n
    gaps -= ordered
    # Just before the i-th value the empirical function is still (i - 1) / n, lower by 1 / n.
    return float(gaps.max()), float(1.0 / n - gaps.min())


def _ks_tail(n: int, distance: float) -> float:
    """P(D >= distance) on the continuum."""
    x = n**0.5 * distance
    # No sample comes nearer to the diagonal than 1 / (2 n).
    if 2 * n * distance <= 1.0:
        return 1.0
    # Both one-sided distances this large at once: a relative error of exp(-6 x^2), at most 4e-5.
    if x * x > (4.0 if n <= 1000 else 1.7):
        return 2.0 * _one_sided_tail(n, distance)
    if n <= 1000:
        i = np.arange(1, n + 1)
        return 1.0 - stay_probability(order_bounds(i / n - distance, (i - 1) / n + distance), n)
    # Kolmogorov's limit with its argument corrected to order 1/n.
    return float(special.kolmogorov(x + 1.0 / (6.0 * n**0.5) + (x - 1.0) / (4.0 * n)))


def _one_sided_tail(n: int, distance: float) -> float:
    """P(D+ >= distance): Smirnov's sum costs n powers, so beyond 2000 its expansion."""
    if distance >= 1.0:
        return 0.0
    x = n**0.5 * distance
    # The expansion's relative error is about x^6 / (3 n^2).
    if n <= 2000 or x**6 > 4e-5 * n * n:
        # Massart's inequality: the tail is at most exp(-2 x^2), here less than a float can hold.
        return 0.0 if x * x > 373.0 else float(special.smirnov(n, distance))
    return float(np.exp(-2.0 * x * x - 2.0 * x / (3.0 * n**0.5) + 4.0 * x * x * (1.0 - x * x) / (9.0 * n)))


def _ks_lattice_tail(expected: Floats, distance: float, n: int) -> float:
    # Distances are multiples of 1 / (n cells); the slack counts ties as exceedances despite rounding.
    reach = n * distance - 1e-7
    low = np.floor(expected - reach).astype(np.int64) + 1
    high = np.ceil(expected + reach).astype(np.int64) - 1
    p = 1.0 - stay_probability(Bounds(expected / n, low, high), n)
    # Below the resolution, Massart's inequality.
    return p if p > RESOLUTION else min(RESOLUTION, 2.0 * float(np.exp(-2.0 * n * distance**2)))


def kuiper(u: ArrayLike, *, draws: int | None = None) -> UniformityTest:
    """Test uniformity by the sum of the largest distances above and below.

    Sees wrong spread better than `ks`, bias worse. Does not depend on where the circle [0, 1] is cut.

    Notes
    -----
    On the continuum the law is exact up to n = 1000, with an upper bound below n times 1e-12; beyond, Stephens'
    finite-sample form of the limit law (at n = 1000 up to 1.3 % of p too large down to p = 0.01, and too small by 0.4 %
    at 1e-3 and 1.7 % at 2e-5). On ranks all outcomes are gone through where they are few (up to a million
    counts in all of them together). Elsewhere the law is simulated, with a fixed seed: 99 990 null samples up to 100
    ranks (standard error 1.4 % of p at 5 %, p at least 1e-5), fewer beyond, and 9999 from 1000 ranks on (4.4 %, 1e-4).

    Examples
    --------
    >>> round(kuiper([0.05, 0.2, 0.35, 0.6, 0.9]).statistic, 6)
    0.35
    """
    return _edf_test("kuiper", as_sample(u, draws))


def watson(u: ArrayLike, *, draws: int | None = None) -> UniformityTest:
    """Test uniformity by the mean squared distance about its mean.

    Sees wrong spread better than `cramer_von_mises`, bias worse. Invariant under rotations of [0, 1].

    Notes
    -----
    On the continuum a table for up to thirty values, simulated with a standard error of 0.1 % of p at 5 % and 0.7 % at
    1e-3, and beyond the limit law with a correction of order 1 / n from that table; on ranks as `kuiper`.

    Examples
    --------
    >>> round(watson([0.05, 0.2, 0.35, 0.6, 0.9]).statistic, 7)
    0.0296667
    """
    return _edf_test("watson", as_sample(u, draws))


def cramer_von_mises(u: ArrayLike, *, draws: int | None = None) -> UniformityTest:
    """Test uniformity by the mean squared distance between two distribution functions.

    Sees bias; weak against wrong spread, nearly blind to rare outliers.

    Notes
    -----
    On the continuum as `watson`, the limit law being Smirnov's integral; on ranks as `kuiper`.

    Examples
    --------
    >>> round(cramer_von_mises([0.05, 0.2, 0.35, 0.6, 0.9]).statistic, 7)
    0.0616667
    """
    return _edf_test("cramer_von_mises", as_sample(u, draws))


def anderson_darling(u: ArrayLike, *, draws: int | None = None) -> UniformityTest:
    """Test uniformity by a mean squared distance that weighs the tails up.

    The best of the classical tests for bias and over-confidence together; slow to see one wild value
    among many.

    Notes
    -----
    On the continuum as `watson`, the limit law being Smirnov's integral; on ranks as `kuiper`.

    Examples
    --------
    >>> round(anderson_darling([0.05, 0.2, 0.35, 0.6, 0.9]).statistic, 6)
    0.365239
    """
    return _edf_test("anderson_darling", as_sample(u, draws))


def _edf_test(method: str, sample: Sample) -> UniformityTest:
    n = sample.n
    if sample.draws is not None:
        points = _sub_lattice(sample.draws)
        deviations = np.cumsum(sample.counts)[points - 1] - n * points / (sample.draws + 1)
        statistic = float(_EDF[method].lattice(deviations[None, :], points / (sample.draws + 1), n)[0])
        return as_result(method, statistic, _lattice_tail(method, n, sample.draws, statistic))
    statistic = float(_EDF[method].continuum(sample.sorted[None, :])[0])
    return as_result(method, statistic, continuum_tail(method, statistic, n))


def continuum_tail(method: str, statistic: float, n: int) -> float:
    """P(T >= statistic) for n values on the continuum."""
    tail = _EDF[method].tail
    return tail(statistic, n) if method == "kuiper" else small_sample_tail(method, statistic, n, tail)


def _sub_lattice(draws: int) -> Ints:
    """All k in 1..draws, or a thousand of them; the law is exact for any choice."""
    if draws <= ALL_RANKS:
        return np.arange(1, draws + 1)
    return np.unique(np.rint(np.linspace(1, draws, 999)).astype(np.int64))


def _kuiper_statistic(ordered: Floats) -> Floats:
    n = ordered.shape[1]
    gaps = np.arange(1, n + 1) / n - ordered
    return np.asarray(gaps.max(axis=1) - gaps.min(axis=1) + 1.0 / n)


def _cvm_statistic(ordered: Floats) -> Floats:
    n = ordered.shape[1]
    return np.asarray(np.square(ordered - (np.arange(1, n + 1) - 0.5) / n).sum(axis=1) + 1.0 / (12.0 * n))


def _watson_statistic(ordered: Floats) -> Floats:
    n = ordered.shape[1]
    return np.asarray(_cvm_statistic(ordered) - n * np.square(ordered.mean(axis=1) - 0.5))


def _ad_statistic(ordered: Floats) -> Floats:
    n = ordered.shape[1]
    u = np.clip(ordered, EDGE, 1.0 - EDGE)
    # log1p keeps the digits of log(1 - u) where u is small.
    logs = np.log(u) + np.log1p(-u)[:, ::-1]
    return np.asarray(-n - logs @ (2.0 * np.arange(1, n + 1) - 1.0) / n)


def _kuiper_lattice(deviations: Floats, t: Floats, n: int) -> Floats:
    # At 0 and 1 the deviation is 0, so that neither of the two distances is negative.
    return np.asarray((deviations.max(axis=1).clip(0.0) - deviations.min(axis=1).clip(None, 0.0)) / n)


def _cvm_lattice(deviations: Floats, t: Floats, n: int) -> Floats:
    # A deviation weighs as much as the way to the next point, which is not the same for all where ranks are left out.
    return np.asarray(np.square(deviations) @ np.diff(t, append=1.0) / n)


def _watson_lattice(deviations: Floats, t: Floats, n: int) -> Floats:
    widths = np.diff(t, append=1.0)
    return np.asarray((np.square(deviations) @ widths - np.square(deviations @ widths)) / n)


def _ad_lattice(deviations: Floats, t: Floats, n: int) -> Floats:
    return np.asarray(np.square(deviations) @ (np.diff(t, append=1.0) / (t * (1.0 - t))) / n)


def _kuiper_tail(statistic: float, n: int) -> float:
    if statistic * n <= 1.0 + 1e-9:  # the distance at a value is at least its jump
        return 1.0
    return _kuiper_limit(statistic, n) if n > 1000 else _kuiper_exact(statistic, n)


def _kuiper_exact(statistic: float, n: int) -> float:
    """Cut the circle at the value where the empirical function is lowest: there is exactly one, out of n.

    The other n - 1 are uniform, the i-th of them is below i / n since the first is lowest, and above (i + 1) / n minus
    the statistic if no distance reaches it.
    """
    i = np.arange(1, n)
    lower = (i + 1) / n - statistic
    bound = n * float(special.betainc(i, n - i, np.clip(lower, 0.0, 1.0)).sum())
    # One minus a probability has no digits left here; the sum over values can only be too large.
    if bound < n * RESOLUTION:
        return bound
    return max(1.0 - n * stay_probability(order_bounds(lower, i / n), n - 1), n * RESOLUTION)


def _kuiper_limit(statistic: float, n: int) -> float:
    x = statistic * (n**0.5 + 0.155 + 0.24 / n**0.5)
    j = np.arange(1, 20) ** 2
    # Below 0.4 the tail is 1 to ten digits, and near 0 nineteen terms would not be enough.
    return 1.0 if x < 0.4 else 2.0 * float(np.sum((4.0 * j * x * x - 1.0) * np.exp(-2.0 * j * x * x)))


def _watson_limit(statistic: float, n: int) -> float:
    j = np.arange(1, 20)
    terms = (-1.0) ** (j - 1) * np.exp(-2.0 * (j * np.pi) ** 2 * statistic)
    return 1.0 if statistic < 0.01 else 2.0 * float(terms.sum())


def _cvm_limit(statistic: float, n: int) -> float:
    poles = np.arange(1.0, 25.0) * np.pi
    return _smirnov_integral(statistic, poles**2, lambda y: np.sin(np.sqrt(y)) / np.sqrt(y))


def _ad_limit(statistic: float, n: int) -> float:
    poles = np.arange(1.0, 25.0)
    p = _smirnov_integral(
        statistic, poles * (poles + 1.0), lambda y: np.cos(0.5 * np.pi * np.sqrt(1.0 + 4.0 * y)) / (np.pi * y)
    )
    # Simulated excess over the limit at n = 1, ..., 20: 0.25/n of p for every power of ten.
    return p * (1.0 - 0.11 * float(np.log(max(p, TINY))) / n)


class _Edf(NamedTuple):
    """A statistic of sorted values (samples, n), and of deviations on a lattice; its tail on the continuum."""

    continuum: Callable[[Floats], Floats]
    lattice: Callable[[Floats, Floats, int], Floats]
    tail: Callable[[float, int], float]


_EDF: Mapping[str, _Edf] = {
    "kuiper": _Edf(_kuiper_statistic, _kuiper_lattice, _kuiper_tail),
    "watson": _Edf(_watson_statistic, _watson_lattice, _watson_limit),
    "cramer_von_mises": _Edf(_cvm_statistic, _cvm_lattice, _cvm_limit),
    "anderson_darling": _Edf(_ad_statistic, _ad_lattice, _ad_limit),
}


def _smirnov_integral(x: float, poles: Floats, determinant: Callable[[Floats], Floats]) -> float:
    """P(sum of chi2_1 / poles > x), from the Fredholm determinant prod(1 - y / poles).

    Between consecutive pairs of poles the integrand has inverse square-root ends, which the Chebyshev
    nodes integrate exactly; all digits survive in the tail because the first interval dominates it.
    """
    # Beyond the last pole less than exp(-25) is left; below, the law itself has less than 2e-6.
    if 0.5 * x * poles[-1] < 25.0:
        return 1.0
    a, b = poles[0::2, None], poles[1::2, None]
    y = 0.5 * (a + b) + 0.5 * (b - a) * np.cos((np.arange(40) + 0.5) * np.pi / 40)
    values = np.exp(-0.5 * x * y) / y * np.sqrt((y - a) * (b - y) / np.abs(determinant(y)))
    signs = (-1.0) ** np.arange(a.size)
    return float(np.clip(signs @ values.mean(axis=1), 0.0, 1.0))


def _lattice_tail(method: str, n: int, draws: int, statistic: float) -> float:
    values, tails = _lattice_law(method, n, draws)
    # Ties count as exceedances despite rounding.
    return float(tails[np.searchsorted(values, statistic * (1.0 - 1e-9) - 1e-12)])


@lru_cache(maxsize=64)
def _lattice_law(method: str, n: int, draws: int) -> tuple[Floats, Floats]:
    """Statistics in increasing order, and the probability of at least each; one more for what is larger than all."""
    t = _sub_lattice(draws) / (draws + 1)
    probabilities = np.diff(t, prepend=0.0, append=1.0)
    if enumerable(probabilities.size, n):
        counts, weights = enumerate_counts(probabilities, n)
        values = _lattice_statistics(method, counts, t)
        order = np.argsort(values)
        return values[order], np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    values = np.sort(_simulated_statistics(method, n, t))
    # The observed sample counts as one more of the null's.
    return values, np.arange(values.size + 1, 0, -1) / (values.size + 1)


def _simulated_statistics(method: str, n: int, t: Floats) -> Floats:
    """Statistics of null samples; a fixed seed makes the p-value a function of the data."""
    rng = np.random.default_rng(9)
    probabilities = np.diff(t, prepend=0.0, append=1.0)
    size = max(SIMULATIONS, min(10 * SIMULATIONS, 10_000_000 // probabilities.size))
    # 16 MB of counts at a time.
    rows = max(1, 2_000_000 // probabilities.size)
    parts = [min(rows, size - start) for start in range(0, size, rows)]
    return np.concatenate([_lattice_statistics(method, multinomial(n, probabilities, k, rng), t) for k in parts])


def _lattice_statistics(method: str, counts: Ints, t: Floats) -> Floats:
    n = int(counts[0].sum())
    return _EDF[method].lattice(np.cumsum(counts, axis=1)[:, :-1] - n * t, t, n)


def multinomial(n: int, probabilities: Floats, size: int, rng: np.random.Generator) -> Ints:
    """Multinomial counts; for few values per cell, placing each value is faster than a binomial per cell."""
    cells = probabilities.size
    if n > 4 * cells:
        return rng.multinomial(n, probabilities, size=size)
    values = np.searchsorted(np.cumsum(probabilities)[:-1], rng.random((size, n)), side="right")
    values += cells * np.arange(size)[:, None]
    return np.bincount(values.ravel(), minlength=size * cells).reshape(size, cells)
