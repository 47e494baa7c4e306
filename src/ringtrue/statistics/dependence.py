"""Whether values are independent over an order: correlograms, with a permutation test and its band.

It sees values in their order and must not know what the order is, nor where the values came from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations as all_orders
from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidStudy
from .arguments import Floats, Ints, need_count, need_fraction

#: Lags that are looked at, unless told: more of them cost power at the first.
LAGS = 4
# Permutations of short series; of long ones fewer, so that some seconds are enough.
_MOST, _FEWEST, _WORK = 9999, 999, 2e8
# Numbers held at once.
_CHUNK = 2_000_000
# Other orders of summation give the same statistic up to rounding.
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Correlogram:
    """Correlations over an order, and the test that all of them are chance.

    Attributes
    ----------
    correlations
        (K, 2, lags): of each series with itself, lags 1, 2, ... apart, and of its squared deviations from its mean.
    centre
        What a correlation is on average if the order means nothing, -1 / (n - 1).
    half_widths
        (lags,): all correlations, of all series, stay within this of the centre with probability ``confidence``, and
        one of them leaves if and only if ``pvalue`` is at most 1 - confidence.
    pvalue
        Of the largest deviation from the centre, in units of the standard deviation at its lag.
    permutations
        How many orders the test has compared with; p is at least one over one more.
    pairs
        (lags,): from how many pairs each correlation was computed.
    """

    correlations: Floats
    centre: float
    half_widths: Floats
    pvalue: float
    confidence: float
    permutations: int
    pairs: Ints

    @property
    def worst(self) -> tuple[int, int, int]:
        """The series, 0 for itself or 1 for its squares, and the lag, from 1, of the largest deviation."""
        deviations = np.abs(self.correlations - self.centre) * np.sqrt(self.pairs)
        series, moment, lag = np.unravel_index(int(np.argmax(deviations)), deviations.shape)
        return int(series), int(moment), int(lag) + 1


def correlogram(u: ArrayLike, *, lags: int = LAGS, confidence: float = 0.95, seed: int = 0) -> Correlogram:
    """Test that values are independent over their order, and find the correlations between neighbours.

    The null hypothesis is that every order of the rows was equally likely, as if they are independent and of one law,
    whatever that law is. Correlations of u see a wrong centre that persists, those of (u - mean)^2 a wrong spread that
    does [1]_. What neither shows, or shows beyond the last lag only, is not seen.

    Parameters
    ----------
    u : array_like, shape (n,) or (n, K)
        Values in their order, in one series or several that are kept together. A row with nan stands for a value that
        was lost: it keeps its place, so that others do not become neighbours over it, and pairs with it are left out.
    lags : int
        How far apart values are compared, at most half of n.
    confidence : float
        Of the band, for all correlations together.
    seed : int
        Of the permutations.

    Notes
    -----
    The p-value is (1 + b) / (1 + B), b of B random orders having at least the observed statistic: exact at any n. All
    orders are gone through if there are less than 10 000; B is 9999 for series that are not long, and 999 at least.
    There is no formula for p-values below 1 / (1 + B), since none is known to hold without the law of u.

    References
    ----------
    .. [1] F. X. Diebold, T. A. Gunther and A. S. Tay, "Evaluating density forecasts", International Economic Review 39
       (1998).

    Examples
    --------
    >>> found = correlogram([0.1, 0.2, 0.3, 0.4, 0.9, 0.8, 0.7, 0.6], lags=1)
    >>> found.correlations[0, 0].round(3), found.pvalue < 0.1
    (array([0.686]), True)
    """
    need_fraction(confidence=confidence)
    need_count(0, seed=seed)
    values = _as_series(u)
    kept: NDArray[np.bool_] = np.asarray(np.isfinite(values).all(axis=1))
    n = int(kept.sum())
    _need_lags(lags, n)
    pairs = np.array([np.sum(kept[:-k] & kept[k:]) for k in range(1, lags + 1)])
    series = _scaled(values[kept])
    scale = n / np.maximum(pairs, 1)
    centre = -1.0 / (n - 1)

    def statistics(correlations: Floats) -> Floats:
        return np.asarray((np.abs(correlations - centre) * np.sqrt(pairs)).max(axis=(1, 2, 3)))

    observed = _products(series[None], kept, lags) * scale
    null = np.concatenate([
        statistics(_products(np.moveaxis(series[:, :, orders], 2, 0), kept, lags) * scale)
        for orders in _orders(n, series[..., 0].size * lags, seed)
    ])  # fmt: skip
    count = int(np.sum(null >= statistics(observed)[0] * (1.0 - _TIE)))
    # p <= 1 - confidence exactly if the statistic is larger than this many of the null's allow.
    most = int((1.0 - confidence) * (null.size + 1) * (1.0 + _TIE)) - 1
    critical = float(np.sort(null)[::-1][most]) if most >= 0 else np.inf
    with np.errstate(divide="ignore"):
        widths = critical / np.sqrt(pairs)
    pvalue = (1 + count) / (1 + null.size)
    return Correlogram(observed[0], centre, widths, pvalue, confidence, null.size, pairs)


def _as_series(u: ArrayLike) -> Floats:
    values = np.asarray(u, float)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or 0 in values.shape:
        raise InvalidStudy(f"u must have shape (n,) or (n, K), but {np.shape(u)} arrived.")
    return values


def _need_lags(lags: int, n: int) -> None:
    need_count(1, lags=lags)
    if n < 4:
        raise InvalidStudy(f"at least 4 values are needed to tell whether they depend on their order, but {n} arrived.")
    if lags > n // 2:
        raise InvalidStudy(f"lags must be at most half the number of values, {n // 2}, but {lags} arrived.")


def _scaled(values: Floats) -> Floats:
    """Return (K, 2, n): deviations and their squares, each centred and with sum of squares one; constants are zero."""
    deviations = (values - values.mean(axis=0)).T
    both = np.stack([deviations, deviations**2], axis=1)
    both -= both.mean(axis=2, keepdims=True)
    norms = np.sqrt(np.square(both).sum(axis=2, keepdims=True))
    # Equal values differ by rounding, which has no correlation to speak of.
    return np.where(norms > 1e-12, both / np.maximum(norms, 1e-12), 0.0)


def _products(series: Floats, kept: NDArray[np.bool_], lags: int) -> Floats:
    """Sums over pairs, (orders, K, 2, lags), of series (orders, K, 2, n)."""
    placed = series
    if series.shape[-1] < kept.size:
        # A lost value deviates by zero: its products add nothing.
        placed = np.zeros((*series.shape[:-1], kept.size))
        placed[..., kept] = series
    sums = [np.einsum("...i,...i->...", placed[..., :-k], placed[..., k:]) for k in range(1, lags + 1)]
    return np.stack(sums, axis=-1)


def _orders(n: int, width: int, seed: int) -> Iterator[Ints]:
    """Yield all orders but the given one if they are few, otherwise random ones, some at a time."""
    if n < 13 and factorial(n) <= _MOST + 1:
        yield np.array(list(all_orders(range(n))))[1:]
        return
    size = int(np.clip(_WORK / (n * width), _FEWEST, _MOST))
    rows = max(1, _CHUNK // (n * width))
    rng = np.random.default_rng(seed)
    for start in range(0, size, rows):
        yield rng.permuted(np.tile(np.arange(n), (min(rows, size - start), 1)), axis=1)
