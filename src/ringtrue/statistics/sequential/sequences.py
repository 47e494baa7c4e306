"""Intervals that hold at all looks together, however one decided to look.

Each of the four sizes has a sequence of intervals of its own; each misses at some look with probability 1 - confidence
at most. Certificates need no more than that, as on single looks: see ``docs/design.md``.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...errors import InvalidStudy
from ..arguments import Floats, need_count, need_fraction
from ..effects import Interval, SpreadAndBias, coverage, distance, influences, spreads_and_biases

# Spread and bias have intervals from here on; their sequences are tightest there.
_FIRST, _TIGHTEST = 100, 1000
# The mixture over coverages is Beta with so many replicates' worth around the nominal one.
_PRIOR = 100.0


@dataclass(frozen=True)
class Sizes:
    """The four sizes after n replicates, with intervals that hold at all looks together."""

    n: int
    spread: Interval
    bias: Interval
    coverage: Interval
    distance: Interval


def confidence_sequences(
    values: ArrayLike,
    looks: Sequence[int],
    *,
    draws: int | None = None,
    confidence: float = 0.95,
    lost: ArrayLike | None = None,
) -> list[Sizes]:
    """Return spread, bias, coverage and distance at several looks, with intervals that hold at all looks together.

    Coverage and distance hold for any law of the positions. Spread and bias hold for many replicates, as their usual
    intervals do; from n = 100 to 10,000 nominal 95 % ones missed somewhere in 2.5 to 4.7 % of 1000 runs, but that of
    the spread in 8.7 % where scores had heavy tails (t with 5 degrees of freedom).

    Parameters
    ----------
    values : array_like, shape (n,)
        Normal scores z; with `draws`, ranks. In an order that was fixed before they were computed.
    looks : sequence of int
        After how many replicates, in rising order, lost ones included.
    draws : int, optional
        The number of draws that truths were ranked among.
    confidence : float
        Of each of the four sequences.
    lost : array_like of bool, shape (n,), optional
        Which replicates were lost: intervals hold whatever they would have been.

    Returns
    -------
    list of Sizes
        One for each look. Before n = 100 spread, bias and distance say nothing. Intervals of different looks may be
        intersected: see :func:`intersections`.

    Notes
    -----
    Spread, on the logarithm, and bias: estimate +- sigma sqrt(2 (n r + 1) / (n^2 r) log(sqrt(n r + 1) / alpha)), with
    sigma the sd of their influence function (for log spread at least that of Gaussian scores) and r = (-2 log alpha +
    log(1 - 2 log alpha)) / 1000 [1]_. Coverage: all c whose likelihood ratio against a mixture, Beta(90, 10) for 90 %,
    stays below 1 / alpha; on ranks of the attainable interval. Distance: at n = 100, 200, 400, ... by the inequality of
    Dvoretzky, Kiefer, Wolfowitz and Massart with alpha / ((k + 1) (k + 2)); in between the last holds.

    References
    ----------
    .. [1] I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas, "Time-uniform central limit theory and
       asymptotic confidence sequences", Annals of Statistics 52 (2024).

    Examples
    --------
    >>> z = special.ndtri(np.random.default_rng(1).permutation((np.arange(1000) + 0.5) / 1000))
    >>> print(confidence_sequences(z, [1000])[0].spread)
    spread 1 (0.934 to 1.07; ideal 1)
    """
    need_fraction(confidence=confidence)
    array, gone = _as_rows(values, lost)
    _need_looks(looks, len(array))
    return [_at(array[:n], gone[:n], draws, 1 - confidence) for n in looks]


def _at(values: NDArray[np.generic], lost: NDArray[np.bool_], draws: int | None, alpha: float) -> Sizes:
    kept, many = values[~lost], int(lost.sum())
    both = _spread_and_bias(kept, draws, alpha, many)
    covers = _coverage(kept, draws, alpha, many)
    return Sizes(len(values), both.spread, both.bias, covers, _distance(values, lost, draws, alpha))


def radius(n: float, alpha: float) -> float:
    """Return the half-width of a sequence for a mean, in units of the sd of one replicate.

    Examples
    --------
    >>> [round(radius(n, 0.05) * n**0.5, 2) for n in (100, 1000, 10_000)]
    [3.86, 3.04, 3.24]
    """
    r = (-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / _TIGHTEST
    return math.sqrt(2 * (n * r + 1) / (n * n * r) * math.log(math.sqrt(n * r + 1) / alpha))


def _spread_and_bias(values: NDArray[np.generic], draws: int | None, alpha: float, lost: int) -> SpreadAndBias:
    found = influences(values, draws=draws) if len(values) >= _FIRST and draws != 1 else None
    if found is None:
        return SpreadAndBias.from_ends((math.nan, 0.0, math.inf), (math.nan, -math.inf, math.inf))
    noise = found.values.std(axis=0)
    # Scores that look lighter than Gaussian ones may do so by chance.
    least = math.sqrt(0.5) if draws is None else 0.0
    by_bias, by_spread = (radius(len(values), alpha) * np.maximum(noise, [0.0, least])).tolist()
    log_s = found.log_spread
    spread = (math.exp(log_s), math.exp(log_s - by_spread), math.exp(min(log_s + by_spread, 700.0)))
    both = SpreadAndBias.from_ends(spread, (found.bias, found.bias - by_bias, found.bias + by_bias))
    return _widened(both, values, draws, lost) if lost else both


def _widened(both: SpreadAndBias, values: NDArray[np.generic], draws: int | None, lost: int) -> SpreadAndBias:
    """Move both ends as far as lost replicates move those of a single look."""
    moved, still = (spreads_and_biases(values, draws=draws, confidences=(0.95,), lost=m)[0] for m in (lost, 0))
    low, high = moved.spread.low / still.spread.low, moved.spread.high / still.spread.high
    below, above = moved.bias.low - still.bias.low, moved.bias.high - still.bias.high
    return SpreadAndBias(
        replace(both.spread, low=both.spread.low * low, high=both.spread.high * high),
        replace(both.bias, low=both.bias.low + below, high=both.bias.high + above),
    )


def _coverage(values: NDArray[np.generic], draws: int | None, alpha: float, lost: int) -> Interval:
    n = len(values)
    if not n:
        return Interval("coverage", math.nan, 0.0, 1.0, 0.9)
    found = coverage(values if draws is not None else special.ndtr(values), draws=draws)
    if math.isnan(found.estimate):
        return found
    hits = round(found.estimate * n)
    # All that were lost count as misses at the lower end and as hits at the upper.
    low, high = (
        coverage_set(hits, n + lost, found.ideal, alpha)[0],
        coverage_set(hits + lost, n + lost, found.ideal, alpha)[1],
    )
    return replace(found, low=low, high=high)


def coverage_set(hits: int, n: int, nominal: float, alpha: float) -> tuple[float, float]:
    """Return the coverages that the mixture around a nominal one does not exclude.

    Examples
    --------
    >>> [round(end, 3) for end in coverage_set(900, 1000, 0.9, 0.05)]
    [0.87, 0.925]
    """
    a, b = _PRIOR * nominal, _PRIOR * (1 - nominal)
    mixture = special.betaln(a + hits, b + n - hits) - special.betaln(a, b)

    def excluded(c: float) -> bool:
        return float(mixture - special.xlogy(hits, c) - special.xlog1py(n - hits, -c)) >= -math.log(alpha)

    peak = hits / n
    return _edge(0.0, peak, excluded), _edge(1.0, peak, excluded)


def _edge(outside: float, inside: float, excluded: Callable[[float], bool]) -> float:
    """Return where a set that contains one point and reaches towards another ends, on its far side."""
    if outside == inside or not excluded(outside):
        return outside
    for _ in range(60):
        middle = (outside + inside) / 2
        outside, inside = (middle, inside) if excluded(middle) else (outside, middle)
    return outside


def _distance(values: NDArray[np.generic], lost: NDArray[np.bool_], draws: int | None, alpha: float) -> Interval:
    """Return the distance at the last of its own looks, n = 100, 200, 400 and so on."""
    k = (len(values) // _FIRST).bit_length() - 1
    many = _FIRST << max(k, 0)
    kept = values[:many][~lost[:many]]
    if k < 0 or not len(kept):
        return Interval("distance", math.nan, 0.0, 1.0, 0.0)
    given: NDArray[np.generic] | Floats = kept if draws is not None else special.ndtr(kept)
    each = 1 - alpha / ((k + 1) * (k + 2))
    return distance(given, draws=draws, confidence=each, lost=int(lost[:many].sum()))


def intersections(sizes: Iterable[Sizes]) -> list[Sizes]:
    """Return the intersections of all intervals up to each look.

    They hold as often as the intervals do, which hold at all looks together. Estimates are those of the look. Where two
    intervals have nothing in common one of them has missed; the one that came first then stays.

    Examples
    --------
    >>> z = np.random.default_rng(1).normal(size=2000)
    >>> first, last = intersections(confidence_sequences(z, [1000, 2000]))
    >>> first.bias.low <= last.bias.low <= last.bias.high <= first.bias.high
    True
    """
    every = list(sizes)
    rows: list[Sizes] = []
    for one in every:
        before = rows[-1] if rows else one
        names = ("spread", "bias", "coverage", "distance")
        met = {name: _met(getattr(before, name), getattr(one, name)) for name in names}
        rows.append(Sizes(one.n, **met))
    return rows


def _met(before: Interval, now: Interval) -> Interval:
    low, high = max(before.low, now.low), min(before.high, now.high)
    return replace(now, low=low, high=high) if low <= high else replace(now, low=before.low, high=before.high)


def _as_rows(values: ArrayLike, lost: ArrayLike | None) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
    array = np.asarray(values)
    mask = np.zeros(array.shape, bool) if lost is None else np.asarray(lost)
    if array.ndim != 1 or mask.shape != array.shape or mask.dtype != bool:
        raise InvalidStudy(
            f"values must have shape (n,), and lost as many True or False, but {array.shape} and {mask.dtype} of shape "
            f"{mask.shape} arrived."
        )
    return array, mask


def _need_looks(looks: Sequence[int], n: int) -> None:
    for look in looks:
        need_count(1, looks=look)
    if any(later <= look for look, later in pairwise(looks)) or (looks and looks[-1] > n):
        raise InvalidStudy(f"looks must rise and end at most at n = {n}, but {list(looks)[:10]} arrived.")
