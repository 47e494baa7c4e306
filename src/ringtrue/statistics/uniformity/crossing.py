"""How likely the empirical distribution function of n uniforms stays between two boundaries.

Every supremum statistic of an empirical distribution function (Kolmogorov-Smirnov, simultaneous
bands, Berk-Jones) has its exact null law here. The module knows counts, times and bounds; it must
not know which statistic they came from, nor what a p-value is.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft, special

from ..arguments import Floats, Ints

# Above this many multiply-adds per step an FFT is faster than the direct sum (which keeps relative accuracy).
_DIRECT = 300_000
# Below this mean per step the laws of all steps are computed in one array.
_SMALL_RATE = 40.0


class Bounds(NamedTuple):
    """Bounds low <= N(t) <= high on the number N(t) of uniforms at or below each time t."""

    t: Floats
    low: Ints
    high: Ints


def order_bounds(lower: ArrayLike, upper: ArrayLike) -> Bounds:
    """Turn bounds ``lower[i] < U_(i+1) < upper[i]`` on the order statistics into bounds on the counts.

    Examples
    --------
    >>> order_bounds([0.1, 0.4], [0.6, 0.9]).high
    array([0, 1, 2, 2])
    """
    a, b = np.asarray(lower, float), np.asarray(upper, float)
    n = a.size
    i = np.arange(n)
    t = np.concatenate([a, b])
    # U_(i+1) > a allows at most i values at or below a; U_(i+1) < b demands at least i + 1 at or below b.
    low = np.concatenate([np.zeros(n, np.int64), i + 1])
    high = np.concatenate([i, np.full(n, n)])
    keep = np.flatnonzero((t > 0) & (t < 1))
    keep = keep[np.argsort(t[keep], kind="stable")]
    return Bounds(t[keep], low[keep], high[keep])


def stay_probability(bounds: Bounds, n: int) -> float:
    """Return the probability that all counts of n iid uniforms stay inside their bounds.

    Parameters
    ----------
    bounds : Bounds
        Non-decreasing times in (0, 1) with integer bounds at each; any other times are unconstrained.
    n : int
        Number of uniforms.

    Returns
    -------
    float
        With an absolute error of about 1e-13.

    Notes
    -----
    The count process of n uniforms is a Poisson process of rate n, given that it ends at n. Its
    increments are independent, so the vector of probabilities over the allowed counts is convolved with
    a Poisson law and cropped at each time. Both halves of (0, 1) are walked towards the middle and
    joined there, and only one of them if the bounds are symmetric under t -> 1 - t.

    Examples
    --------
    >>> d, i = 0.3, np.arange(1, 21)
    >>> round(1 - stay_probability(order_bounds(i / 20 - d, (i - 1) / 20 + d), 20), 10)
    0.0430670667
    """
    # A count can only grow: a lower bound holds ever after, an upper bound ever before.
    low = np.maximum.accumulate(np.clip(bounds.low, 0, None))
    high = np.minimum.accumulate(np.clip(bounds.high, None, n)[::-1])[::-1]
    left = _with_middle(Bounds(bounds.t, low, high), n)
    # 1 - U is uniform too: seen from 1 the counts are n minus those seen from 0, and the same walk serves.
    right = Bounds(1.0 - left.t[::-1], n - left.high[::-1], n - left.low[::-1])
    if np.any(left.low > left.high):
        return 0.0
    middle = int(np.searchsorted(left.t, 0.5))
    forward = _walk(_head(left, middle), n)
    symmetric = _same(left, right)
    backward = forward if symmetric else _walk(_head(right, left.t.size - 1 - middle), n)
    return min(1.0, _join(forward, backward, n) / float(_poisson(n, np.array([n]))[0]))


def _with_middle(bounds: Bounds, n: int) -> Bounds:
    """Insert t = 1/2, where the two walks meet, with the bounds its neighbours imply."""
    t, low, high = bounds
    # A time that is a half up to rounding takes its place: a second one would be a step made of rounding.
    k = int(np.searchsorted(t, 0.5 - 1e-12))
    if k < t.size and abs(t[k] - 0.5) <= 1e-12:
        return Bounds(np.concatenate([t[:k], [0.5], t[k + 1 :]]), low, high)
    before = low[k - 1] if k else 0
    after = high[k] if k < t.size else n
    return Bounds(np.insert(t, k, 0.5), np.insert(low, k, before), np.insert(high, k, after))


def _head(bounds: Bounds, last: int) -> Bounds:
    return Bounds(bounds.t[: last + 1], bounds.low[: last + 1], bounds.high[: last + 1])


def _same(a: Bounds, b: Bounds) -> bool:
    return (
        np.array_equal(a.low, b.low) and np.array_equal(a.high, b.high) and np.allclose(a.t, b.t, rtol=1e-9, atol=0.0)
    )


class _Mass(NamedTuple):
    start: int
    values: Floats


def _walk(bounds: Bounds, n: int) -> _Mass:
    """Carry the probabilities of the allowed counts from t = 0 to the last time."""
    start, values = 0, np.ones(1)
    steps = zip(_increments(bounds.t, n), bounds.low.tolist(), bounds.high.tolist(), strict=True)
    for (first, pmf), low, high in steps:
        # Only jumps that can lead from the present support into [low, high] are needed.
        a = max(first, low - start - values.size + 1)
        b = min(first + pmf.size, high - start + 1)
        if a >= b:
            return _Mass(low, np.zeros(1))
        values = _convolve(values, pmf[a - first : b - first])
        start += a
        crop = max(low - start, 0)
        values = values[crop : high - start + 1]
        start += crop
    return _Mass(start, values)


def _join(forward: _Mass, backward: _Mass, n: int) -> float:
    """Sum over the count x at t = 1/2 of forward(x) backward(n - x)."""
    mirrored, start = backward.values[::-1], n - backward.start - backward.values.size + 1
    a = max(forward.start, start)
    b = min(forward.start + forward.values.size, start + mirrored.size)
    if a >= b:
        return 0.0
    return float(forward.values[a - forward.start : b - forward.start] @ mirrored[a - start : b - start])


def _increments(t: Floats, n: int) -> Iterator[tuple[int, Floats]]:
    """Yield each step's Poisson law; equal steps, as on a rank lattice, share one."""
    rates = n * np.diff(t, prepend=0.0)
    if np.ptp(rates) > 1e-6 and rates.max() < _SMALL_RATE:
        yield from _small_increments(rates)
        return
    last, law = -1.0, (0, np.ones(1))
    for rate in rates.tolist():
        if abs(rate - last) > 1e-9 * rate:
            last, law = rate, _increment(rate)
        yield law


def _small_increments(rates: Floats) -> Iterator[tuple[int, Floats]]:
    """Compute the laws of many small steps at once, as between order statistics."""
    # Nine standard deviations and fourteen counts: beyond, a Poisson law of any rate has less than 1e-18 left.
    counts = np.arange(int(rates.max() + 9.0 * rates.max() ** 0.5 + 14.0) + 1)
    logs = special.xlogy(counts, rates[:, None]) - rates[:, None] - special.gammaln(counts + 1)
    pmf = np.exp(logs)
    pmf /= pmf.sum(axis=1, keepdims=True)
    sizes = counts.size - np.argmax(pmf[:, ::-1] > 1e-19, axis=1)
    for row, size in zip(pmf, sizes.tolist(), strict=True):
        yield 0, row[:size]


def _increment(rate: float) -> tuple[int, Floats]:
    """Return the Poisson law as (first count, probabilities), its negligible tails cut off."""
    if rate <= 0.0:
        return 0, np.ones(1)
    reach = 9.0 * rate**0.5
    first = max(0, int(rate - reach))
    pmf = _poisson(rate, np.arange(first, int(rate + reach + 14.0) + 1))
    big = np.flatnonzero(pmf > 1e-19)
    pmf = pmf[big[0] : big[-1] + 1]
    # The sum is known to be one: imposing it stops rounding errors from growing with the number of steps.
    return first + int(big[0]), pmf / pmf.sum()


def _poisson(rate: float, counts: Ints) -> Floats:
    """Poisson probabilities as Loader computes them: exponents stay small, so no digits cancel."""
    # Stirling's formula has no value at 0, whose probability is put in at the end.
    j = np.maximum(counts, 1).astype(float)
    d = (j - rate) / rate
    deviance = rate * ((1.0 + d) * np.log1p(d) - d)
    pmf = np.exp(-deviance - _stirling_error(j)) / np.sqrt(2.0 * np.pi * j)
    return np.where(counts == 0, np.exp(-rate), pmf)


def _stirling_error(j: Floats) -> Floats:
    """log j! minus Stirling's formula."""
    s = 1.0 / (j * j)
    series = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s / 1680))) / j
    # Counts increase, so that the first decides. Beyond 15 the first term left out, 1 / (1188 j^9), is about 1e-14.
    if j[0] > 15:
        return np.asarray(series)
    small = np.minimum(j, 16.0)
    direct = special.gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * np.log(2 * np.pi)
    return np.where(j > 15, series, direct)


def _convolve(a: Floats, b: Floats) -> Floats:
    if a.size * b.size <= _DIRECT:
        return np.convolve(a, b)
    size = a.size + b.size - 1
    length = fft.next_fast_len(size, real=True)
    out = fft.irfft(fft.rfft(a, length) * fft.rfft(b, length), length)[:size]
    # Rounding leaves values of either sign around 1e-17 where the truth is smaller still.
    return np.asarray(np.maximum(out, 0.0))
