"""The numbers behind pictures of positions: counts, curves and the bands that calibrated ones stay in.

Ranks among M draws live on M + 1 cells; values on the continuum are counted in 250. On a lattice of cells the
simultaneous band is exact at every point that is drawn, however many values there are. It knows nothing of figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..errors import InvalidStudy
from ..judgement.column import Column
from ..statistics import uniformity
from ..statistics.arguments import need_fraction
from ..statistics.roots import adjacent, narrow, whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Cells of the continuum. A drawn curve and the true one have extremes that differ by at most 1 / CELLS.
CELLS = 250
#: Ranks are grouped into no fewer cells than this; otherwise their randomised positions are counted.
_FEWEST = 50
#: Bars of a histogram, at most.
_BARS = 40


@dataclass(frozen=True)
class Curve:
    """The share of values below each point, and the band that calibrated shares stay in."""

    points: Floats
    share: Floats
    low: Floats
    high: Floats

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Where the curve leaves its band."""
        return (self.share < self.low) | (self.share > self.high)

    @property
    def excess(self) -> float:
        """How far the curve leaves its band; negative if it stays inside."""
        beyond = np.maximum(self.low - self.share, self.share - self.high)
        return float(beyond.max(initial=-1.0))


@dataclass(frozen=True)
class Histogram:
    """Counts in bars of equal probability, and the band that all calibrated counts stay in."""

    edges: Floats
    counts: Ints
    low: int
    high: int

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which bars leave the band."""
        return (self.counts < self.low) | (self.counts > self.high)


def counted(u: Floats, cells: int) -> Ints:
    """Return how many values lie in each of so many equal cells of [0, 1]."""
    return np.bincount(np.minimum((u * cells).astype(np.int64), cells - 1), minlength=cells)


def positions(column: Column) -> Ints:
    """Return the counts of a column: by rank where there are no more than 250, else in equal cells."""
    draws = column.draws
    cells = _cells(draws + 1) if draws else None
    if draws is None or cells is None:
        return counted(column.u, CELLS)
    return _grouped(column.values, draws + 1, cells)


def _grouped(ranks: Ints, size: int, cells: int) -> Ints:
    return np.bincount(ranks // (size // cells), minlength=cells)


@lru_cache
def _cells(size: int) -> int | None:
    """Return into how many equal groups so many ranks are put: each its own if they are few; None if none fit."""
    if size <= CELLS:
        return size
    return next((cells for cells in range(CELLS, _FEWEST - 1, -1) if size % cells == 0), None)


def curve(counts: Ints, *, confidence: float) -> Curve:
    """Return the cumulative shares of counts in equal cells, with their simultaneous band.

    Examples
    --------
    >>> curve(np.array([10, 30]), confidence=0.95).share
    array([0.25])
    """
    need_fraction(confidence=confidence)
    cells, n = counts.size, int(counts.sum())
    if cells == 1:  # one cell says nothing
        nothing = np.empty(0)
        return Curve(nothing, nothing, nothing, nothing)
    band = uniformity.band(n, draws=cells - 1, confidence=confidence)
    return Curve(band.points, np.cumsum(counts)[:-1] / n, band.low, band.high)


def averages(position: Floats, *, confidence: float) -> Curve:
    """Return the cumulative shares of draws of the outputs by their positions in the belief."""
    return curve(counted(position, CELLS), confidence=confidence)


def central(column: Column, *, confidence: float) -> Curve:
    """Return how often central intervals contain the truth, at the nominal levels that the draws allow.

    An even number of draws leaves one rank in the middle, so that its lattice is twice as fine as the intervals: the
    band is then that of the finer lattice, at the levels of intervals.
    """
    draws = column.draws
    size = 0 if draws is None else draws + 1
    if size % 2 == 0 and size and (cells := _cells(size // 2)):
        # Ranks r and size - 1 - r bound one central interval: folded, they are uniform on half as many ranks.
        inner = (np.abs(2 * column.values - (size - 1)) - 1) // 2
        return curve(_grouped(inner, size // 2, cells), confidence=confidence)
    away = np.abs(2 * column.u - 1)
    if not 0 < size <= CELLS:
        return curve(counted(away, CELLS), confidence=confidence)
    found = curve(counted(away, size), confidence=confidence)
    return Curve(found.points[::2], found.share[::2], found.low[::2], found.high[::2])


def histogram(column: Column, *, bins: int | None, confidence: float) -> Histogram:
    """Return the counts of a column in bars that hold equally many ranks, with Bonferroni's band over bars."""
    need_fraction(confidence=confidence)
    size, n = column.draws + 1 if column.draws else 0, column.n
    bars = _as_bars(bins) if bins is not None else _bars(n, size)
    # Where no equal bars hold whole ranks, their randomised positions are counted, which are uniform on the continuum.
    counts = _grouped(column.values, size, bars) if size and size % bars == 0 else counted(column.u, bars)
    low, high = binomial_band(n, 1 / bars, 1 - (1 - confidence) / bars)
    return Histogram(np.linspace(0, 1, bars + 1), counts, low, high)


def _as_bars(bins: int) -> int:
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 1:
        raise InvalidStudy(f"bins must be a whole number, at least 1, but {bins!r} arrived.")
    return int(bins)


def _bars(n: int, size: int) -> int:
    """Return how many bars n values deserve, among the divisors of the number of ranks if there is a good one."""
    # As n^(2/5), so that the counts in a bar grow as well, as n^(3/5), and noise shrinks beside them.
    wanted = min(max(round(1.25 * n**0.4), 2), _BARS)
    even = max((bars for bars in range(1, wanted + 1) if size and size % bars == 0), default=1)
    # Whole ranks need no randomisation, but a third of the bars that n deserves is the least that shows a shape.
    return even if size and 3 * even >= min(wanted, size) else wanted


def binomial_band(n: int, p: float, confidence: float) -> tuple[int, int]:
    """Return the two-sided binomial interval of at least the given confidence, ends included.

    Examples
    --------
    >>> binomial_band(100, 0.5, 0.95)
    (40, 60)
    """
    tail = (1 - confidence) / 2
    return _quantile(tail, n, p), _quantile(1 - tail, n, p)


def _quantile(q: float, n: int, p: float) -> int:
    """Return the smallest count whose distribution function reaches q."""
    # At -1 the distribution function is 0, the value below q that the search starts from.
    return int(narrow(lambda k: float(special.bdtr(k, n, p)) - q, -1, n, done=adjacent, rule=whole).high)
