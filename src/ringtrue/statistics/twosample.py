"""Tests that two independent samples have the same law.

Weak calibration asks whether the data-averaged output is the belief: draws from the outputs, one per
replicate, are compared with *fresh* draws of the belief. The draws that generated the data are paired
with the outputs and are not a second independent sample. This module sees two arrays of numbers and
must not know beliefs, procedures or test functions. When the cdf of the belief is known, transforming
by it and testing uniformity is more powerful than anything here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd, sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import kolmogorov

from .arguments import Floats, need_count

__all__ = ["TwoSampleTest", "energy", "ks", "mmd"]

Kernel = Callable[[NDArray[np.float32]], NDArray[np.float32]]

# Reported instead of a p-value that underflows: larger than the truth, hence valid.
_SMALLEST = float(np.finfo(np.float64).tiny)

# The lattice-path recursion takes one step per pooled point, and at this size about half a second.
_RECURSION_LIMIT = 20_000

# Rows of the Gram matrix held at once, and permutations multiplied at once.
_ROWS, _COLUMNS = 256, 1024

# Points that set the bandwidth; their half million distances take about 20 ms.
_SUBSAMPLE = 1000

# Single-precision sums of one labelling in two columns differ by about 1e-6 null standard deviations;
# labellings nearer than this count as ties, which can only enlarge the p-value.
_TIE = 1e-5
#: Labels of all permutations together, a byte each.
_MOST_LABELS = 10**9


@dataclass(frozen=True)
class TwoSampleTest:
    """The outcome of a test that two samples have the same law.

    ``statistic`` is an estimated distance between the two laws, negative at times if it is unbiased; ``pvalue`` the
    probability of one at least as large when the laws agree, never zero.
    """

    method: str
    statistic: float
    pvalue: float


def ks(x: ArrayLike, y: ArrayLike) -> TwoSampleTest:
    """Compare two samples of a scalar by the largest gap between their empirical cdfs.

    Null hypothesis: all points of `x` and `y` are independent draws of one law. The test is consistent
    against any difference, but sees the centre of the law far better than its tails: a wrong spread needs
    many times the points that a wrong location needs.

    The p-value is exact for equal sizes without ties, and exact given the ties up to 20 000 points in
    total. Beyond, unequal sizes use the limit law with the boundary moved by the mean overshoot, and ties
    make the test conservative.

    Examples
    --------
    >>> test = ks([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0])
    >>> test.statistic, round(test.pvalue, 6)
    (1.0, 0.028571)
    """
    a, b = np.sort(_as_scalars(x, "x")), np.sort(_as_scalars(y, "y"))
    n, m = len(a), len(b)
    gap = _largest_gap(a, b)
    return TwoSampleTest("ks", gap * gcd(n, m) / (n * m), _ks_pvalue(gap, a, b))


def mmd(
    x: ArrayLike, y: ArrayLike, *, rng: Generator, permutations: int = 999, bandwidth: float | None = None
) -> TwoSampleTest:
    """Compare two samples by the unbiased squared maximum mean discrepancy, permuting the labels.

    Null hypothesis: all points of `x` and `y` are independent draws of one law; the level is exact at any size. The
    Gaussian kernel ``exp(-|a - b|^2 / (2 bandwidth^2))`` sees differences on the scale of the bandwidth: at the default
    a shift is seen well, a wrong spread needs far more points, and coordinates with small units are not seen at all
    beside coordinates with large ones. The statistic carries the rounding of single precision, about 1e-7.

    Parameters
    ----------
    x, y : array_like, shape (n,) or (n, d) and (m,) or (m, d)
        The samples.
    rng : Generator
        Draws the permutations.
    permutations : int
        The p-value is a multiple of ``1 / (permutations + 1)``.
    bandwidth : float, optional
        Length scale of the kernel; it must not be chosen by looking at which point is in which sample.
        By default the median distance between pooled points (a thousand of them, evenly spaced in sorted
        order): a function of the pooled set, which no relabelling changes, so the level stays exact.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> mmd(rng.normal(size=100), rng.normal(1.0, size=100), rng=rng).pvalue
    0.001
    """
    points, labels = _pool(x, y)
    scale = _median_distance(points) if bandwidth is None else _positive(bandwidth)
    return _permutation_test("mmd", points, labels, _gaussian, scale=scale, rng=rng, permutations=permutations)


def energy(x: ArrayLike, y: ArrayLike, *, rng: Generator, permutations: int = 999) -> TwoSampleTest:
    """Compare two samples by the unbiased energy distance, permuting the labels.

    Null hypothesis: all points of `x` and `y` are independent draws of one law; the level is exact at any
    size. The statistic estimates ``2 E|x - y| - E|x - x'| - E|y - y'|``. It has no bandwidth to choose, and
    sees a wrong spread somewhat less than the maximum mean discrepancy does.

    Parameters
    ----------
    x, y, rng, permutations
        As in `mmd`; the statistic is in the units of the points.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> energy(rng.normal(size=100), rng.normal(1.0, size=100), rng=rng).pvalue
    0.001
    """
    points, labels = _pool(x, y)
    scale = _median_distance(points)
    test = _permutation_test("energy", points, labels, _distance, scale=scale, rng=rng, permutations=permutations)
    return TwoSampleTest(test.method, scale * test.statistic, test.pvalue)


def _largest_gap(a: Floats, b: Floats) -> int:
    """Return the statistic of sorted samples as an integer multiple of 1 / lcm(n, m)."""
    n, m = len(a), len(b)
    # In integers, so that a tie with the observed gap is a tie whatever the rounding.
    g = gcd(n, m)
    both = np.concatenate([a, b])
    # A stable sort merges two sorted runs, faster than looking each up in the other.
    order = np.argsort(both, kind="stable")
    gaps = np.cumsum(np.where(order < n, m // g, -(n // g)))
    pooled = both[order]
    # Among tied points only the last one counts; behind all points there is no gap.
    return int(np.abs(gaps[:-1][pooled[1:] != pooled[:-1]]).max(initial=0))


def _ks_pvalue(gap: int, a: Floats, b: Floats) -> float:
    n, m = len(a), len(b)
    if n + m <= _RECURSION_LIMIT:
        last = _last_of_tied(a, b)
        # Equal sizes without ties have a closed sum, as exact as the recursion and far cheaper.
        if n != m or not last.all():
            return _ks_recursion(gap, n, m, last)
    return _ks_equal_sizes(gap, n) if n == m else _ks_limit(gap, n, m)


def _last_of_tied(a: Floats, b: Floats) -> NDArray[np.bool_]:
    pooled = np.sort(np.concatenate([a, b]))
    return np.append(pooled[1:] != pooled[:-1], True)


def _ks_equal_sizes(gap: int, n: int) -> float:
    """Sum the reflection principle's alternating series, 2 sum_k (-1)^(k-1) C(2n, n - k gap) / C(2n, n)."""
    if gap == 0:
        return 1.0
    # Terms beyond j ~ 28 sqrt(n) are below exp(-780), except the leading one, which may be the floor anyway.
    j = np.arange(min(n, gap + int(28 * sqrt(n))))
    # C(2n, n - k) / C(2n, n) is the product over j < k of (n - j) / (n + j + 1); log factorials would cancel.
    log_ratio = np.cumsum(np.log1p(-(2 * j + 1) / (n + j + 1)))[gap - 1 :: gap]
    sign = np.where(np.arange(len(log_ratio)) % 2, -2.0, 2.0)
    return float(np.clip(sign @ np.exp(log_ratio), _SMALLEST, 1.0))


def _ks_recursion(gap: int, n: int, m: int, last: NDArray[np.bool_]) -> float:
    """Follow the number of x's among the first t pooled points, and add up what leaves the band.

    All terms are positive, so that small p-values keep their relative accuracy. Inside a group of tied
    points the order is not observed and nothing leaves.
    """
    first, mass, left = 0, np.ones(1), 0.0
    count: Floats = np.arange(n + 1, dtype=np.float64)
    lows, highs = _ks_band(gap, n, m, last)
    for t, (low, high) in enumerate(zip(lows, highs, strict=True)):
        # All orders of the labels are equally likely: the next point is an x with the share of x's among those left.
        up = mass * ((n - count[first : first + len(mass)]) / (n + m - t))
        moved = np.append(mass - up, 0.0)
        moved[1:] += up
        start, stop = max(low - first, 0), max(high + 1 - first, 0)
        left += float(moved[:start].sum() + moved[stop:].sum())
        first, mass = first + start, moved[start:stop]
        if not len(mass):
            break
    return float(np.clip(left, _SMALLEST, 1.0))


def _ks_band(gap: int, n: int, m: int, last: NDArray[np.bool_]) -> tuple[list[int], list[int]]:
    """Return the smallest and largest number of x's whose gap stays strictly below the observed one."""
    g = gcd(n, m)
    t, step = np.arange(1, n + m + 1), (n + m) // g
    possible_low, possible_high = np.maximum(t - m, 0), np.minimum(t, n)
    # After t points, k of them x's, the gap is |k (n + m) - n t| / g in the same integers.
    low = np.maximum((n // g * t - gap) // step + 1, possible_low)
    high = np.minimum(-((-n // g * t - gap) // step) - 1, possible_high)
    return np.where(last, low, possible_low).tolist(), np.where(last, high, possible_high).tolist()


def _ks_limit(gap: int, n: int, m: int) -> float:
    """Evaluate the limit law, with the boundary moved by the mean overshoot of the lattice path.

    The move (m + 2n) / 6 for n <= m is the one-sided correction of Hodges (1958); half a lattice step is
    taken back because the p-value includes the boundary itself. It vanishes for n = m, as it must.
    """
    g = gcd(n, m)
    moved = gap + (max(n, m) + 2 * min(n, m)) / (6 * g) - 0.5
    return max(float(kolmogorov(moved * g / sqrt(n * m * (n + m)))), _SMALLEST)


def _permutation_test(
    method: str,
    points: Floats,
    labels: NDArray[np.int8],
    kernel: Kernel,
    *,
    scale: float,
    rng: Generator,
    permutations: int,
) -> TwoSampleTest:
    """Rank the statistic of the observed labels among those of random relabellings."""
    need_count(1, _MOST_LABELS // labels.size, permutations=permutations)
    # Centred at one of them, equal points are all 0, and no labelling differs from another.
    if not points.any():
        return TwoSampleTest(method, 0.0, 1.0)
    # Row 0 keeps the observed labels and counts as one of the relabellings; without it the level would not hold.
    signs = np.tile(labels, (permutations + 1, 1))
    rng.permuted(signs[1:], axis=1, out=signs[1:])
    statistics = _discrepancies(points / scale, signs, kernel)
    reached = int(np.count_nonzero(statistics >= statistics[0] - _TIE * statistics.std()))
    return TwoSampleTest(method, float(statistics[0]), reached / (permutations + 1))


def _discrepancies(points: Floats, signs: NDArray[np.int8], kernel: Kernel) -> Floats:
    """Return the unbiased statistic for each row of signs, +1 for x and -1 for y.

    With K the Gram matrix without its diagonal and e the signs, every block sum follows from e'Ke, e'K1
    and 1'K1. K is made and used a few rows at a time, and only on and above the diagonal.
    """
    quadratic, row_sums = np.zeros(len(signs)), np.zeros(len(points))
    for start, gram in _gram_rows(points, kernel):
        stop = start + len(gram)
        row_sums[start:stop] += gram.sum(axis=1, dtype=np.float64) / 2
        row_sums[start:] += gram.sum(axis=0, dtype=np.float64) / 2
        for c in range(0, len(signs), _COLUMNS):
            # The products are the slow part and are taken in single precision; what adds up over blocks is double.
            e = signs[c : c + _COLUMNS, start:].astype(np.float32)
            products = np.einsum("bi,bi->b", e @ gram.T, e[:, : len(gram)], dtype=np.float64)
            quadratic[c : c + _COLUMNS] += products
    linear, total = signs @ row_sums, row_sums.sum()
    n = int(np.count_nonzero(signs[0] > 0))
    m = len(points) - n
    # The indicator of x is (1 + e) / 2 and that of y (1 - e) / 2: hence the quarters.
    within_x = (quadratic + 2 * linear + total) / (4 * n * (n - 1))
    within_y = (quadratic - 2 * linear + total) / (4 * m * (m - 1))
    across = (total - quadratic) / (4 * n * m)
    discrepancies: Floats = within_x + within_y - 2 * across
    return discrepancies


def _gram_rows(points: Floats, kernel: Kernel) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield blocks of rows of a matrix U with zero diagonal and e'Ue = e'Ke for all e.

    A block starts at the diagonal and counts what is right of its square twice, for what is left of it.
    Subtracting a constant from the kernel changes no statistic and keeps single-precision sums small.
    """
    left, right = _square_distance_factors(points)
    offset = _typical_value(points, kernel)
    for start in range(0, len(points), _ROWS):
        block = (left[start : start + _ROWS] @ right[start:].T).astype(np.float32)
        # Rounding leaves squared distances slightly below 0, whose roots would be nan.
        gram = kernel(np.maximum(block, 0.0, out=block))
        gram -= offset
        np.fill_diagonal(gram, 0.0)
        gram[:, len(gram) :] *= 2
        yield start, gram


def _square_distance_factors(points: Floats) -> tuple[Floats, Floats]:
    """Return A and B with (AB')_ij = |p_i - p_j|^2, so that all distances are one product."""
    square = (points**2).sum(axis=1, keepdims=True)
    one = np.ones_like(square)
    return np.hstack([-2 * points, square, one]), np.hstack([points, one, square])


def _typical_value(points: Floats, kernel: Kernel) -> np.float32:
    left, right = _square_distance_factors(_thin(points, 64))
    return np.float32(kernel(np.maximum(left @ right.T, 0.0).astype(np.float32)).mean())


def _gaussian(square_distance: NDArray[np.float32]) -> NDArray[np.float32]:
    square_distance *= -0.5
    return np.exp(square_distance, out=square_distance)


def _distance(square_distance: NDArray[np.float32]) -> NDArray[np.float32]:
    np.sqrt(square_distance, out=square_distance)
    return np.negative(square_distance, out=square_distance)


def _median_distance(points: Floats) -> float:
    """Return the median distance between distinct points of an evenly thinned, sorted pool."""
    thinned = _thin(points, _SUBSAMPLE)
    left, right = _square_distance_factors(thinned)
    norms = (thinned**2).sum(axis=1)
    first, second = np.triu_indices(len(thinned), k=1)
    square = (left @ right.T)[first, second]
    # Where points coincide the product leaves rounding of this size instead of zero.
    positive = square[square > 1e-14 * (norms[first] + norms[second])]
    return float(np.median(np.sqrt(positive))) if len(positive) else 1.0


def _thin(points: Floats, size: int) -> Floats:
    keep = np.linspace(0, len(points) - 1, min(size, len(points))).round().astype(np.int64)
    return points[keep]


def _pool(x: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[np.int8]]:
    """Return all points, centred and sorted, with +1 where a point came from x and -1 where from y.

    Sorting makes the pool a function of the set of points. Under the null hypothesis the labels are then
    uniform given the pool, whatever is computed from it (the bandwidth): this is why the level is exact.
    Thinning the concatenated samples instead would take some points because of their labels.
    """
    a, b = _as_points(x, "x"), _as_points(y, "y")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"x and y must have points of the same dimension, got {a.shape[1]} and {b.shape[1]}; "
            "compare the same parameter in both samples, points on axis 0."
        )
    points = np.concatenate([a, b])
    # lexsort takes its main key last.
    order = np.lexsort(points.T[::-1])
    labels = np.where(order < len(a), 1, -1).astype(np.int8)
    points = points[order]
    # Products give distances without cancellation only near the origin. A point of the pool and not the mean, so that
    # equal points become exactly 0.
    return points - points[len(points) // 2], labels


def _as_points(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) < 2 or not array.shape[1]:
        raise ValueError(
            f"{name} must have shape (n,) or (n, d) with n >= 2 points, got shape {np.shape(values)}; "
            "put the points on axis 0 and flatten the rest."
        )
    if not np.isfinite(array).all():
        bad = np.count_nonzero(~np.isfinite(array).all(axis=1))
        raise ValueError(
            f"{name} must be finite, but {bad} of {len(array)} points are not; "
            "find out why the draws failed, since dropping them changes the law that is tested."
        )
    return array


def _as_scalars(values: ArrayLike, name: str) -> Floats:
    array = _as_points(values, name)
    if array.shape[1] != 1:
        raise ValueError(
            f"{name} must hold scalars, got points of dimension {array.shape[1]}; "
            "pass one coordinate, or use mmd or energy."
        )
    return array[:, 0]


def _positive(bandwidth: float) -> float:
    if not 0 < bandwidth < np.inf:
        raise ValueError(f"bandwidth must be positive and finite, got {bandwidth}; None takes the median distance.")
    return bandwidth
