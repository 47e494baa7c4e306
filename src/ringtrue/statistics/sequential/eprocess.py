"""Evidence against uniform positions that may be looked at after every replicate.

E_n is a weighted average, over 162 ways of being wrong, of the likelihood ratio of the first n positions. If these are
uniform it is a martingale that starts at 1, and ever reaches 1 / alpha with probability at most alpha. Of Markov chains
there is no likelihood, but differences of mean zero: bets on them are a martingale as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...errors import InvalidStudy
from ..arguments import Floats, Ints, as_ranks, as_values, need_fraction
from ..combining import as_weights
from ..effects.ranks import MOST_CELLS, rank_probabilities

# Location and scale: on an axis only one of them is wrong, which is the usual error.
_DELTAS = (0.0, *(sign * size for size in (0.1, 0.2, 0.4, 0.8, 1.6) for sign in (1, -1)))
_LOG_SCALES = (0.0, *(sign * size for size in (0.1, 0.2, 0.35, 0.6, 1.0) for sign in (1, -1)))
_ON_AXIS = 5.0
# Shape: 1 + lambda P_k(2 u - 1) with Legendre polynomials.
_ORDERS, _TILTS = range(1, 7), (0.2, 0.4, 0.7, -0.2, -0.4, -0.7)
# A share e of positions has a scale that is c times as large.
_SHARES, _FACTORS = (0.01, 0.03, 0.1), (4.0, 10.0)
# What the three families have of the weight.
_FAMILIES = (0.6, 0.3, 0.1)

# |z| beyond this is an infinity that arithmetic happened to keep.
_HUGE = 1e30
# Powers of p-values of blocks, and the least p-value that is told from 0.
_POWERS, _TINY = (0.1, 0.3, 0.6), 1e-300
# Looked at after each of so many replicates.
_EACH = 200
# Numbers held at once, and rows that are added up, or multiplied, in one go.
_CHUNK, _ADDED, _MULTIPLIED = 1_000_000, 4096, 256
# Shares of what may be lost in one replicate that are bet on a difference, either way.
_BETS = (0.05, 0.2, 0.5, 0.95, -0.05, -0.2, -0.5, -0.95)


@lru_cache
def _grid() -> tuple[Floats, Floats, Floats]:
    """Return delta, log s and the weights of the alternatives of location and scale; no error is not one of them."""
    points = [(d, s) for d in _DELTAS for s in _LOG_SCALES if (d, s) != (0.0, 0.0)]
    delta, log_s = np.array(points).T
    weight = np.where((delta == 0) | (log_s == 0), _ON_AXIS, 1.0)
    return delta, log_s, weight / weight.sum()


def _tilts() -> list[tuple[int, float]]:
    return [(k, tilt) for k in _ORDERS for tilt in _TILTS]


def _outliers() -> list[tuple[float, float]]:
    return [(share, factor) for share in _SHARES for factor in _FACTORS]


@lru_cache
def log_weights() -> Floats:
    """Return the logarithms of the weights of all alternatives, which add up to 1.

    Examples
    --------
    >>> len(log_weights()), round(float(np.exp(log_weights()).sum()), 12)
    (162, 1.0)
    """
    _, _, of_grid = _grid()
    equal = [np.full(many, 1 / many) for many in (len(_tilts()), len(_outliers()))]
    parts = (share * part for share, part in zip(_FAMILIES, (of_grid, *equal), strict=True))
    return np.asarray(np.log(np.concatenate(list(parts))))


def log_densities(z: Floats) -> Floats:
    """Return the log density of u = Phi(z) under every alternative, (n, 162).

    Examples
    --------
    >>> log_densities(np.zeros(3)).shape
    (3, 162)
    """
    return Scores(z).sums(np.arange(len(z) + 1))


@lru_cache(maxsize=16)
def log_rank_table(draws: int) -> Floats:
    """Return the log of (M + 1) P(rank) under every alternative, (M + 1, 162).

    Given u a rank is binomial, so that every law of u has an exact law of ranks. Each column averages to 1.

    Examples
    --------
    >>> table = np.exp(log_rank_table(9))
    >>> table.shape, bool(np.abs(table.mean(axis=0) - 1).max() < 1e-14)
    ((10, 162), True)
    """
    delta, log_s, _ = _grid()
    of_grid = [rank_probabilities(draws, spread=math.exp(s), bias=d) for d, s in zip(delta, log_s, strict=True)]
    scaled = {factor: rank_probabilities(draws, spread=factor) for factor in _FACTORS}
    rows = [(draws + 1) * one for one in of_grid]
    rows += [1 + tilt * _legendre_of_ranks(draws, k) for k, tilt in _tilts()]
    rows += [1 - share + share * (draws + 1) * scaled[factor] for share, factor in _outliers()]
    table = np.stack(rows, axis=1)
    # Quadrature has an error of 1e-12; a martingale has none.
    with np.errstate(divide="ignore"):  # what underflows speaks against its alternative for good, which is valid
        found = np.log(table / table.mean(axis=0))
    found.flags.writeable = False
    return np.asarray(found)


def _legendre_of_ranks(draws: int, k: int) -> Floats:
    """Return the mean of P_k(2 u - 1) given the rank, under which u has the law Beta(r + 1, M - r + 1)."""
    if k > draws:  # a polynomial of higher order than the rank's law is orthogonal to it
        return np.zeros(draws + 1)
    r, total = np.arange(draws + 1.0), np.zeros(draws + 1)
    moment = np.ones(draws + 1)
    for j in range(k + 1):
        total += (-1) ** (k + j) * math.comb(k, j) * math.comb(k + j, j) * moment
        moment = moment * (r + 1 + j) / (draws + 2 + j)
    return total


@lru_cache(maxsize=16)
def log_least(draws: int | None) -> Floats:
    """Return the log of the least density of every alternative: what a lost replicate is worth at least.

    Examples
    --------
    >>> bool(np.isneginf(log_least(None)).any()), bool(np.isneginf(log_least(9)).any())
    (True, False)
    """
    if draws is not None:
        return np.asarray(log_rank_table(draws).min(axis=0))
    delta, log_s, _ = _grid()
    wide = log_s > 0
    # For s > 1 the ratio is least at z = -delta / (s^2 - 1); for s <= 1 it goes to 0 in a tail.
    excess = np.where(wide, np.expm1(2 * log_s), 1.0)
    of_grid = np.where(wide, -log_s - delta**2 / (2 * excess), -np.inf)
    of_tilts = [math.log1p(-abs(tilt)) for _, tilt in _tilts()]  # polynomials lie between -1 and 1
    of_outliers = [math.log(1 - share + share / factor) for share, factor in _outliers()]
    return np.concatenate([of_grid, of_tilts, of_outliers])


class Process(Protocol):
    """What is known of the replicates of one test function: a likelihood ratio for each, under every alternative."""

    @property
    def n(self) -> int:
        """How many replicates there are."""

    @property
    def log_weights(self) -> Floats:
        """The logarithms of the weights of alternatives."""

    def sums(self, edges: Ints) -> Floats:
        """Return log likelihood ratios added up over the replicates between edges, (len(edges) - 1, alternatives)."""


def _split(edges: Ints, most: int) -> tuple[Ints, Ints]:
    """Return edges so that no more than some rows lie between two, and which of them were there before.

    Where a span is cut depends on its own beginning alone, so that its sum has the same bits wherever it is computed.
    """
    if int(np.diff(edges).max(initial=0)) <= most:
        return edges, np.arange(len(edges) - 1)
    parts = [np.arange(start, stop, most) for start, stop in pairwise(edges.tolist())]
    where = np.cumsum([0, *map(len, parts)])
    return np.concatenate([*parts, edges[-1:]]), where[:-1]


def _added(values: Floats, edges: Ints, most: int = _ADDED) -> Floats:
    """Return the sums of rows between edges."""
    fine, where = _split(edges - edges[0], most)
    return np.asarray(np.add.reduceat(np.add.reduceat(values, fine[:-1], axis=0), where, axis=0))


@dataclass(frozen=True, eq=False)
class Scores:
    """Normal scores of exact positions; of a lost replicate the score is not looked at."""

    z: Floats
    lost: NDArray[np.bool_] | None = None

    @property
    def n(self) -> int:
        """How many replicates there are."""
        return len(self.z)

    @property
    def log_weights(self) -> Floats:
        """The logarithms of the weights of alternatives."""
        return log_weights()

    def sums(self, edges: Ints) -> Floats:
        """Return log likelihood ratios added up between edges."""
        rows = slice(int(edges[0]), int(edges[-1]))
        gone = np.zeros(len(self.z[rows]), bool) if self.lost is None else self.lost[rows]
        z = np.clip(np.where(gone, 0.0, self.z[rows]), -_HUGE, _HUGE)
        found = np.concatenate([_of_grid(z, edges), _of_tilts(z, edges), _of_outliers(z, edges)], axis=1)
        return _without_lost(found, gone, edges) if gone.any() else found


def _of_grid(z: Floats, edges: Ints) -> Floats:
    """Location and scale: the likelihood of normal scores needs their number, sum and sum of squares."""
    delta, log_s, _ = _grid()
    precision = np.exp(-2 * log_s)
    many, first, second = np.diff(edges)[:, None], _added(z, edges)[:, None], _added(z * z, edges)[:, None]
    # Expanded, so that large squares do not cancel.
    return np.asarray(
        second * ((1 - precision) / 2) + first * (delta * precision) - many * (delta**2 * precision / 2 + log_s)
    )


def _of_tilts(z: Floats, edges: Ints) -> Floats:
    x = special.erf(z / math.sqrt(2))  # 2 u - 1, from both tails alike
    fine, where = _split(edges - edges[0], _MULTIPLIED)  # products of so many factors stay far from 0
    polynomials = {k: special.eval_legendre(k, x) for k in _ORDERS}
    found = [np.log(np.multiply.reduceat(1 + tilt * polynomials[k], fine[:-1])) for k, tilt in _tilts()]
    return np.asarray(np.add.reduceat(np.stack(found, axis=1), where, axis=0))


def _of_outliers(z: Floats, edges: Ints) -> Floats:
    square = z * z / 2
    found = [
        np.logaddexp(math.log1p(-share), math.log(share / factor) + square * (1 - factor**-2.0))
        for share, factor in _outliers()
    ]
    return _added(np.stack(found, axis=1), edges)


def _without_lost(found: Floats, lost: NDArray[np.bool_], edges: Ints) -> Floats:
    """Return sums in which lost replicates are worth the least, in place of the score 0 that stood in for them."""
    many, stand_in = _added(lost.astype(float), edges)[:, None], log_densities(np.zeros(1))[0]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(many > 0, found - many * stand_in + many * log_least(None), found))


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of truths among so many draws; of a lost replicate the rank is not looked at."""

    ranks: Ints
    draws: int
    lost: NDArray[np.bool_] | None = None

    @property
    def n(self) -> int:
        """How many replicates there are."""
        return len(self.ranks)

    @property
    def log_weights(self) -> Floats:
        """The logarithms of the weights of alternatives."""
        return log_weights()

    def sums(self, edges: Ints) -> Floats:
        """Return log likelihood ratios added up between edges."""
        rows = slice(int(edges[0]), int(edges[-1]))
        # One row more, for those that were lost.
        table = np.concatenate([log_rank_table(self.draws), log_least(self.draws)[None]])
        ranks = self.ranks[rows] if self.lost is None else np.where(self.lost[rows], self.draws + 1, self.ranks[rows])
        fine, where = _split(edges - edges[0], _ADDED)
        # Some rows at a time, since each has as many numbers as there are alternatives.
        steps = np.unique([*np.searchsorted(fine, np.arange(0, fine[-1], _ADDED)), len(fine) - 1])
        parts = [
            np.add.reduceat(table[ranks[fine[a] : fine[b]]], fine[a:b] - fine[a], axis=0)
            for a, b in pairwise(steps.tolist())
        ]
        return np.asarray(np.add.reduceat(np.concatenate(parts), where, axis=0))


@dataclass(frozen=True, eq=False)
class Bets:
    """Bounded differences of several features, each of mean zero given what came before, such as those of chains.

    A share of the most that can be lost is bet on each feature, either way: 1 + share * difference / reach.
    """

    differences: Floats
    reach: Floats
    lost: NDArray[np.bool_] | None = None

    @property
    def n(self) -> int:
        """How many replicates there are."""
        return len(self.differences)

    @property
    def log_weights(self) -> Floats:
        """The logarithms of the weights of bets: equal ones."""
        many = len(self.reach) * len(_BETS)
        return np.full(many, -math.log(many))

    def sums(self, edges: Ints) -> Floats:
        """Return the logarithms of what bets return, added up between edges."""
        rows = slice(int(edges[0]), int(edges[-1]))
        share = np.clip(self.differences[rows] / self.reach, -1.0, 1.0)[:, :, None]
        gains = np.log1p(share * np.array(_BETS)).reshape(len(share), -1)
        if self.lost is not None and self.lost[rows].any():
            gains[self.lost[rows]] = np.tile(np.log1p(-np.abs(_BETS)), len(self.reach))
        return _added(gains, edges)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Valid p-values of blocks of replicates that follow each other, each from its own replicates and labels.

    A p-value is worth k p^(k - 1), the mean of which is at most 1, for three k; it counts when its block is complete.
    """

    pvalues: Floats
    size: int
    n: int

    @property
    def log_weights(self) -> Floats:
        """The logarithms of the weights of alternatives: equal ones."""
        return np.full(len(_POWERS), -math.log(len(_POWERS)))

    def sums(self, edges: Ints) -> Floats:
        """Return what complete blocks are worth, added up between edges."""
        k = np.array(_POWERS)
        gains = np.log(k) + np.log(np.maximum(self.pvalues, _TINY))[:, None] * (k - 1)
        total = np.concatenate([np.zeros((1, len(k))), np.cumsum(gains, axis=0)])
        return np.asarray(np.diff(total[np.asarray(edges) // self.size], axis=0))


@dataclass(frozen=True, eq=False)
class Grouped:
    """Groups of replicates that may depend on each other in any way: each is worth the mean of its members.

    Attributes
    ----------
    process
        Of the replicates, group after group.
    edges
        Where groups begin, and the end.
    """

    process: Process
    edges: Ints

    @property
    def n(self) -> int:
        """How many groups there are."""
        return len(self.edges) - 1

    @property
    def log_weights(self) -> Floats:
        """The logarithms of the weights of alternatives."""
        return self.process.log_weights

    def sums(self, edges: Ints) -> Floats:
        """Return the logarithms of mean likelihood ratios, added up over the groups between edges."""
        borders = self.edges[edges[0] : edges[-1] + 1]
        each = self.process.sums(np.arange(borders[0], borders[-1] + 1))
        total = np.logaddexp.reduceat(each, borders[:-1] - borders[0], axis=0)
        return _added(total - np.log(np.diff(borders))[:, None], edges)


def looks_up_to(n: int) -> Ints:
    """Return the numbers of replicates after which evidence is looked at: each up to 200, then each per cent more.

    Examples
    --------
    >>> looks_up_to(3).tolist(), looks_up_to(300)[-3:].tolist(), len(looks_up_to(100_000))
    ([1, 2, 3], [293, 296, 299], 801)
    """
    found = list(range(1, min(n, _EACH) + 1))
    while found and (later := found[-1] + found[-1] // 100 + 1) <= n and found[-1] >= _EACH:
        found.append(later)
    return np.array(found, np.int64)


@dataclass(frozen=True, eq=False)
class State:
    """Where a process stands: all that is needed to go on.

    Attributes
    ----------
    log_weights : tuple of ndarray
        For every test function, of its alternatives, times their likelihood ratios so far.
    log_maximum : float
        The largest log E so far, at least 0.
    log_maxima : ndarray, shape (K,)
        The same of every test function alone.
    """

    log_weights: tuple[Floats, ...]
    log_maximum: float
    log_maxima: Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """A process at several looks.

    Attributes
    ----------
    log_evalues : ndarray, shape (looks,)
        log E at each.
    log_maxima : ndarray, shape (looks,)
        The largest so far, at least 0.
    state : State
        After the last.
    weights : ndarray, shape (K,)
        Of the test functions.
    looks : ndarray, shape (looks,)
        After how many replicates.
    single : ndarray, shape (looks, K)
        log E of every test function alone.
    """

    log_evalues: Floats
    log_maxima: Floats
    state: State
    weights: Floats
    looks: Ints
    single: Floats = field(repr=False)

    @property
    def pvalues(self) -> Floats:
        """p-values that hold at every n, and at any that was chosen by looking at them."""
        return np.exp(-self.log_maxima)

    def first(self, alpha: float) -> int | None:
        """Return after how many replicates the evidence reached 1 / alpha; None if it has not."""
        need_fraction(alpha=alpha)
        reached = self.log_maxima >= -math.log(alpha)
        return int(self.looks[np.argmax(reached)]) if reached.any() else None

    def named(self, alpha: float) -> list[int]:
        """Return which test functions alone are convicted: one wrongly with probability alpha at most."""
        need_fraction(alpha=alpha)
        with np.errstate(divide="ignore"):
            return np.flatnonzero(np.log(self.weights) + self.state.log_maxima >= -math.log(alpha)).tolist()


def follow(
    processes: Sequence[Process],
    *,
    weights: ArrayLike | None = None,
    looks: ArrayLike | None = None,
    state: State | None = None,
    before: int = 0,
) -> Evidence:
    """Follow the evidence of several test functions over replicates.

    Parameters
    ----------
    processes : sequence of Process
        One for every test function, all of the same replicates, in an order that was fixed before they were computed.
    weights : array_like, shape (K,), optional
        Of the test functions; equal ones if left out. E is the average with these weights.
    looks : array_like of int, optional
        After how many of these replicates to look, rising; after each if left out. Those behind the last do not count.
    state, before : State and int, optional
        Where the evidence stood after how many of these replicates, to go on from there.

    Examples
    --------
    >>> found = follow([Ranks(np.array([0, 0, 1, 0, 0, 9, 9, 0]), 9)], looks=[4, 8])
    >>> found.log_evalues.round(2).tolist(), found.first(alpha=0.05)
    ([2.86, 4.57], 8)
    """
    k, n = len(processes), processes[0].n
    shares = np.full(k, 1 / k) if weights is None else as_weights(weights, k)
    at = state or State(tuple(one.log_weights for one in processes), 0.0, np.zeros(k))
    if len(at.log_weights) != k:
        raise InvalidStudy(f"a state of {len(at.log_weights)} test functions arrived for values of {k}.")
    where = np.arange(before + 1, n + 1) if looks is None else np.asarray(looks, np.int64)
    ends = [_walk(one, start, where, before) for one, start in zip(processes, at.log_weights, strict=True)]
    single = np.stack([found for found, _ in ends], axis=1)
    with np.errstate(divide="ignore"):
        total = _log_sum(single + np.log(shares)) if len(where) else np.empty(0)
    maxima = np.maximum.accumulate(np.maximum(total, at.log_maximum))
    last = float(maxima[-1]) if len(where) else at.log_maximum
    after = State(tuple(end for _, end in ends), last, np.maximum(at.log_maxima, single.max(axis=0, initial=-np.inf)))
    return Evidence(total, maxima, after, shares, where, single)


def _log_sum(logs: Floats) -> Floats:
    """Return the logarithm of the sum of each row."""
    largest = np.maximum(logs.max(axis=1), -_HUGE)
    with np.errstate(divide="ignore"):
        return np.asarray(largest + np.log(np.exp(logs - largest[:, None]).sum(axis=1)))


def _walk(process: Process, start: Floats, looks: Ints, before: int) -> tuple[Floats, Floats]:
    """Return log E of one test function at each look, and the log weights after the last."""
    found, at = np.empty(len(looks)), start
    step = max(1, _CHUNK // len(start))
    for i in range(0, len(looks), step):
        part = looks[i : i + step]
        # One after the other from where it stood: a run that is cut elsewhere has the same bits.
        walk = np.cumsum(np.concatenate([at[None], process.sums(np.concatenate([[before], part]))]), axis=0)[1:]
        found[i : i + step], at, before = _log_sum(walk), walk[-1], int(part[-1])
    return found, at


def log_evalues(
    values: ArrayLike,
    *,
    draws: int | Sequence[int | None] | None = None,
    weights: ArrayLike | None = None,
    lost: ArrayLike | None = None,
    looks: ArrayLike | None = None,
    state: State | None = None,
) -> Evidence:
    """Follow the evidence against uniform positions over replicates.

    Null hypothesis: given those before, every position is uniform, for each test function; functions may depend on
    each other in any way. Then the chance that E ever reaches 1 / alpha is at most alpha. It sees bias, spread, shape
    up to the sixth order, and outliers.

    Parameters
    ----------
    values : array_like, shape (n,) or (n, K)
        Normal scores z, from whichever tail is accurate; ranks where `draws` says so. In an order that was fixed before
        they were computed.
    draws : int or sequence of K, optional
        The number of draws that truths were ranked among, at most 2000; None where values are z. More draws, or unequal
        numbers of them, are spread over their cells and given as z, which holds as well.
    weights, looks
        As in :func:`follow`.
    lost : array_like of bool, shape (n,), optional
        Which replicates were lost: their values are not looked at, and E holds whatever they would have been.
    state : State, optional
        That of replicates before these.

    Examples
    --------
    >>> found = log_evalues(special.ndtri([0.05, 0.2, 0.35, 0.6, 0.9]))
    >>> np.exp(found.log_evalues).round(6).tolist()
    [1.091823, 1.095161, 0.971799, 0.779871, 0.625578]
    >>> log_evalues([0, 0, 1, 0, 0, 9, 9, 0, 0, 9], draws=9).first(alpha=0.05)
    5
    """
    rows = np.asarray(values)
    table = rows[:, None] if rows.ndim == 1 else rows
    each = _as_draws(draws, table)
    gone = None if lost is None else _as_mask(lost, len(table))
    processes = [_process(table[:, j], each[j], gone) for j in range(table.shape[1])]
    return follow(processes, weights=weights, looks=looks, state=state)


def _process(values: NDArray[np.generic], draws: int | None, lost: NDArray[np.bool_] | None) -> Process:
    """Return the process of one column, having looked at the values that were not lost."""
    whole = values if lost is None else np.where(lost, 0, values)
    if draws is None:
        return Scores(as_values(whole, "z") if len(whole) else np.empty(0), lost)
    return Ranks(as_ranks(whole, draws) if len(whole) else np.empty(0, np.int64), draws, lost)


def _as_draws(draws: int | Sequence[int | None] | None, table: NDArray[np.generic]) -> list[int | None]:
    """Return the number of draws of every column, having looked at whether its values fit."""
    if table.ndim != 2 or not table.shape[1]:
        raise InvalidStudy(f"values must have shape (n,) or (n, K), but {table.shape} arrived.")
    each = list(draws) if isinstance(draws, Sequence) else [draws] * table.shape[1]
    if len(each) != table.shape[1]:
        raise InvalidStudy(f"draws must be one number or {table.shape[1]} of them, but {len(each)} arrived.")
    for many in each:
        if many is not None and not 1 <= many <= MOST_CELLS:
            raise InvalidStudy(
                f"draws must lie in 1..{MOST_CELLS}, but {many} arrived; spread ranks over their cells and pass z."
            )
    return each


def _as_mask(lost: ArrayLike, n: int) -> NDArray[np.bool_]:
    mask = np.asarray(lost)
    if mask.dtype != bool or mask.shape != (n,):
        raise InvalidStudy(
            f"lost must say for each of {n} replicates whether it was, but {mask.dtype} of shape {mask.shape} arrived."
        )
    return mask
