"""The one currency: u, which is exactly U(0,1) under the null, whatever the route.

Exact route: u = F(f(theta)), randomised across atoms. Rank route: the truth's rank among M draws, ties broken at
random, spread over its cell: u = (below + V (ties + 1)) / (M + 1). This is the only module that knows the difference.
It knows no tests and no runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..distributions.laws import Law, scores_from_tails
from ..errors import InvalidStudy
from ..values import Floats, Ints

#: The smallest distance of u from 0 and 1: saturated values are kept there, never dropped.
EDGE = 2.0**-53


#: Where truths fall in their outputs, one entry per replicate: ``u`` is the currency, ``z`` its normal score, accurate
#: beyond the saturation of u; ``rank`` and ``draws`` are -1 and 0 on the exact route.
Place = dict[str, NDArray[Any]]


def exact(law: Law, truth: Floats, v: Callable[[], Floats]) -> Place:
    """Return the position of truths in laws that are known exactly.

    Parameters
    ----------
    law
        One law per replicate.
    truth
        Test function values of the truths.
    v
        Makes the uniforms that spread an atom over its probability; not called where there are no atoms.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> float(exact(Normal(0, 1), np.zeros(1), lambda: np.ones(1))["u"][0])
    0.5
    """
    if not law.atoms:
        u, z = law.cdf_and_zscore(truth)
        if (far := np.isinf(z)).any():
            z = _spread_over_rounding(law, truth, z, v())
            u = np.where(far, special.ndtr(z), u)
    else:
        # Uniform on the atom's own interval of probability: then u is uniform although the law is discrete.
        below, above = law.cdf_left(truth), law.sf(truth)
        atom = np.maximum(law.cdf(truth) - below, 0)
        share = v()
        u = np.asarray(below + share * atom)
        # Beside its atoms a law keeps its own score, which does not saturate where the tails do.
        z = np.where(atom > 0, scores_from_tails(u, above + (1 - share) * atom), law.zscore(truth))
    none = np.zeros(truth.shape, np.int64)
    return {"u": np.clip(u, EDGE, 1 - EDGE), "z": z, "rank": none - 1, "draws": none}


def _spread_over_rounding(law: Law, truth: Floats, z: Floats, v: Floats) -> Floats:
    """Return scores with infinite ones spread over what a rounded truth may have been.

    A third of all draws of Beta(.01, .01) are the number 0 or 1: points that have probability in floating point only.
    What stays infinite has saturated, and stays.
    """
    low, high = np.nextafter(truth, -np.inf), np.nextafter(truth, np.inf)
    below, above = law.cdf(low), law.sf(high)
    between = np.maximum(law.cdf(high) - below, 0)
    spread = scores_from_tails(below + v * between, above + (1 - v) * between)
    return np.asarray(np.where(np.isinf(z), spread, z))


def ranked(below: Ints, ties: Ints, draws: Ints, v: Floats) -> Place:
    """Return the position of truths among draws, from the numbers of draws below and equal.

    Examples
    --------
    >>> int(ranked(np.array([3]), np.array([0]), np.array([9]), np.array([0.5]))["rank"][0])
    3
    """
    place = below + v * (ties + 1)
    # V < 1 in exact arithmetic; rounding must not lift the rank out of its cell.
    rank = np.minimum(place.astype(np.int64), below + ties)
    # u of exactly 0 or 1 would have an infinite score; 2^-53 is the last number that 1 - u keeps.
    u = np.clip(place / (draws + 1), EDGE, 1 - EDGE)
    return {"u": u, "z": np.asarray(special.ndtri(u)), "rank": rank, "draws": draws}


def count(values: Floats, truth: Floats) -> tuple[Ints, Ints]:
    """Return how many draws (axis 0) lie below and exactly at each truth; nan counts as neither.

    Examples
    --------
    >>> count(np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([1.0]))
    (array([1]), array([2]))
    """
    # Two comparisons and no sort: a rank needs counts only, and ties are the difference of the two.
    below = _total(values < truth)
    return below, _total(values <= truth) - below


#: Columns that are too few to be added side by side: one after the other is up to ten times faster.
_NARROW = 32


def _total(mask: NDArray[np.bool_]) -> Ints:
    """Count along axis 0; bytes are added in runs that cannot overflow before they are widened."""
    if mask.ndim == 2 and mask.shape[1] <= _NARROW:
        return np.asarray(np.ascontiguousarray(mask.T).sum(axis=1, dtype=np.int64))
    counts = np.zeros(mask.shape[1:], np.int64)
    as_bytes = mask.view(np.uint8)
    for start in range(0, len(mask), 255):
        counts += np.add.reduce(as_bytes[start : start + 255], axis=0, dtype=np.uint8)
    return counts


#: Numbers compared at once: they and their masks stay in the cache.
_CACHED = 1 << 17


def count_entries(draws: Floats, theta: Floats) -> tuple[Ints, Ints]:
    """Return, for every entry of a vector parameter, how many draws lie below and exactly at the truth.

    Parameters
    ----------
    draws
        Shape (replicates, draws, d), in the order people store them. A nan counts as neither.
    theta
        Shape (replicates, d).

    Examples
    --------
    >>> count_entries(np.array([[[0.0, 5.0], [2.0, 1.0]]]), np.array([[1.0, 1.0]]))
    (array([[1, 0]]), array([[0, 1]]))
    """
    n, m, d = draws.shape
    step = max(1, _CACHED // (m * d))
    # A truth repeated side by side makes long inner loops; with few draws or entries, copying an entry's draws does.
    counter = _entry_by_entry if d <= 2 or (d <= 4 and m < 400) else _side_by_side
    with _short_buffers():
        parts = [counter(draws[i : i + step], theta[i : i + step]) for i in range(0, n, step)]
    below, ties = (np.concatenate(column) for column in zip(*parts, strict=True))
    return below, ties


@contextmanager
def _short_buffers() -> Iterator[None]:
    """Let NumPy compare rows in place: it copies an operand that repeats if several of its rows fit into a buffer."""
    before = np.setbufsize(1024)
    try:
        yield
    finally:
        np.setbufsize(before)


def _entry_by_entry(draws: Floats, theta: Floats) -> tuple[Ints, Ints]:
    """Compare each entry after copying its draws next to each other."""
    c, m, d = draws.shape
    mask = np.zeros((c, -(-m // 8) * 8), bool)  # padded to whole words
    below, ties = np.empty((c, d), np.int64), np.zeros((c, d), np.int64)
    for j in range(d):
        values, truth = np.ascontiguousarray(draws[:, :, j]), theta[:, j, None]
        np.less(values, truth, out=mask[:, :m])
        below[:, j] = _row_totals(mask)
        if (equal := values == truth).any():
            ties[:, j] = equal.sum(axis=1)
    return below, ties


def _row_totals(mask: NDArray[np.bool_]) -> Ints:
    """Count along the last axis, eight bytes to a word; 255 words cannot carry from one byte into the next."""
    words = mask.view(np.uint64)
    counts = np.zeros(len(mask), np.int64)
    for start in range(0, words.shape[1], 255):
        lanes = np.add.reduce(words[:, start : start + 255], axis=1)
        counts += lanes.view(np.uint8).reshape(-1, 8).sum(axis=1, dtype=np.int64)
    return counts


def _side_by_side(draws: Floats, theta: Floats) -> tuple[Ints, Ints]:
    """Compare several draws at a time with the truth repeated as often."""
    c, m, d = draws.shape
    group = _draws_per_row(m, d)
    whole = m - m % group
    runs = np.ascontiguousarray(draws[:, :whole]).reshape(c, whole // group, group * d)
    truth = np.repeat(theta[:, None], group, axis=1).reshape(c, 1, group * d)
    below = _per_entry(mask := runs < truth, d)
    np.equal(runs, truth, out=mask)
    ties = _per_entry(mask, d) if mask.any() else np.zeros((c, d), np.int64)
    if whole < m:
        below += (draws[:, whole:] < theta[:, None]).sum(axis=1)
        ties += (draws[:, whole:] == theta[:, None]).sum(axis=1)
    return below, ties


@lru_cache(maxsize=64)
def _draws_per_row(m: int, d: int) -> int:
    """Return how many of m draws are compared at a time, with few left over."""
    # Wide rows compare faster, if there are enough of them to be added up.
    most = min(max(1024 // d, 1), max(m // 10, 256 // d, 1), m)
    return min(range(most // 2 + 1, most + 1), key=lambda group: (m % group, -group))


def _per_entry(mask: NDArray[np.bool_], d: int) -> Ints:
    """Count a mask of runs of draws, entry by entry, in the smallest integers that hold the number of draws."""
    c, rows, width = mask.shape
    totals = np.zeros((c, width), np.min_scalar_type(rows * width // d))
    for start in range(0, rows, 255):
        totals += np.add.reduce(mask.view(np.uint8)[:, start : start + 255], axis=1, dtype=np.uint8)
    while totals.shape[1] % (2 * d) == 0:  # halves have long inner loops, draws one by one have not
        half = totals.shape[1] // 2
        totals = totals[:, :half] + totals[:, half:]
    counts: Ints = totals.reshape(c, -1, d).sum(axis=1, dtype=np.int64)
    return counts


def among(values: Floats, truth: Floats, v: Floats) -> Place:
    """Return the position of truths among draws.

    Among the draws of Markov chains it is good for pictures only: its law is not known.

    Parameters
    ----------
    values
        Test function values of the draws, shape (draws, replicates).
    truth, v
        Test function values of the truths, and uniforms, one per replicate.

    Returns
    -------
    Place
        With u nan where a draw or the truth is not finite.
    """
    need_shape(values, truth)
    lost = not_finite(values) | ~np.isfinite(truth)
    below, ties = count(values, truth)
    place = ranked(below, ties, np.full(truth.shape, len(values), np.int64), v)
    place["u"][lost] = np.nan
    return place


class Counts:
    """Numbers of draws below and at the truths, added up part by part."""

    def __init__(self, truth: Floats) -> None:
        self.truth, self.draws = truth, 0
        self.below, self.ties = np.zeros(truth.shape, np.int64), np.zeros(truth.shape, np.int64)
        self.lost = ~np.isfinite(truth)

    def add(self, values: Floats) -> None:
        """Count some more draws."""
        need_shape(values, self.truth)
        below, ties = count(values, self.truth)
        self.below += below
        self.ties += ties
        self.draws += len(values)
        self.lost |= not_finite(values)

    def place(self, v: Floats) -> Place:
        """Return the positions, nan where a draw or the truth is not finite."""
        place = ranked(self.below, self.ties, np.full(self.truth.shape, self.draws), v)
        place["u"][self.lost] = np.nan
        return place


def need_shape(values: Floats, truth: Floats) -> None:
    """Refuse values of draws that do not belong to these truths."""
    if values.ndim != 2 or values.shape[1:] != truth.shape:
        raise InvalidStudy(
            f"test function values of the draws must have shape (draws, {len(truth)}), but {values.shape} arrived."
        )


def not_finite(values: Floats) -> NDArray[np.bool_]:
    """Find columns with a nan or an infinity; a finite sum proves there is none, at the price of one addition."""
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = ~np.isfinite(values.sum(axis=0))
    if suspects.any():
        suspects[suspects] = ~np.isfinite(values[:, suspects]).all(axis=0)
    return np.asarray(suspects)


def member_ranks(values: Floats, truth: Floats) -> NDArray[np.uint16]:
    """Return how many of {truth, draws} lie below each of them, shape (replicates, draws + 1); the truth first.

    Parameters
    ----------
    values, truth
        Test function values, shapes (draws, replicates) and (replicates,).

    Examples
    --------
    >>> member_ranks(np.array([[5.0], [1.0], [3.0]]), np.array([3.0]))
    array([[1, 3, 0, 1]], dtype=uint16)
    """
    members = np.ascontiguousarray(np.concatenate([truth[None], values]).T)
    order = np.argsort(members, axis=1)
    # As places of the array laid out in one row, which NumPy looks up in half the time.
    order += members.shape[1] * np.arange(len(members))[:, None]
    ordered = np.take(members, order)
    places = np.tile(np.arange(members.shape[1], dtype=np.uint16), (len(members), 1))
    same = ordered[:, 1:] == ordered[:, :-1]
    if same.any():
        # Equal members have the place of the first of them.
        places[:, 1:][same] = 0
        np.maximum.accumulate(places, axis=1, out=places)
    ranks = np.empty(members.size, np.uint16)
    ranks[order.ravel()] = places.ravel()
    return ranks.reshape(members.shape)
