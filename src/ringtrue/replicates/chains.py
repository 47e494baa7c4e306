"""What is kept of Markov chains: where the truth and the chains lie in each other, and how well the chains agree.

Draws of a chain depend on each other in ways nobody knows, so the truth's rank among them has no known law. But one
chain is a reference in which the truth and the draws of the other chains can be placed alike: what they differ by has
mean zero if the output is right, whatever the autocorrelation. This module computes such differences, and the usual
diagnostics. It draws nothing at random and tests nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..errors import InvalidStudy
from ..values import Floats, Ints

#: Parts of a single chain that stand for two: its beginning and its end, with a gap between them.
_PART = 0.45
#: Functions of a position: its normal score, the square of that, Legendre polynomials of degree 3 and 4.
FEATURES = 4
#: Positions at which the law of the truth and that of the draws are compared; the outer two hold 90 % between them.
KNOTS = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
#: Draws of half a chain, fewer of which have too few autocorrelations for the usual rule.
_SHORT = 8
#: The truth and at most so many draws, each the last of a chain: members that are exchangeable given another chain.
MEMBERS = 4


def cut(values: Floats, chains: int) -> Floats:
    """Return chains as (replicates, chains, length); a single one is cut into two.

    Parameters
    ----------
    values
        (draws, replicates): Markov chains one behind the other, each in its order.
    chains
        How many.

    Examples
    --------
    >>> cut(np.arange(10.0)[:, None], 1).tolist()
    [[[0.0, 1.0, 2.0, 3.0], [6.0, 7.0, 8.0, 9.0]]]
    """
    rows = np.ascontiguousarray(values.T)
    many, draws = rows.shape
    if chains > 1:
        return rows.reshape(many, chains, draws // chains)
    part = int(_PART * draws)
    if part < 1:
        raise InvalidStudy(
            f"a single chain is cut into two and needs at least 3 draws for that, but {draws} came; run it longer, or "
            f"run several chains and pass chains=."
        )
    return np.stack([rows[:, :part], rows[:, draws - part :]], axis=1)


def features(u: Floats) -> Floats:
    """Return the features of positions, on the last axis.

    Examples
    --------
    >>> features(np.array(0.5))[[0, 1, 3]].tolist()
    [0.0, -1.0, 1.125]
    """
    z = special.ndtri(u)
    # Of norm 1 under the uniform law, so that no feature outweighs the others by its unit.
    legendre = [np.sqrt(2 * k + 1) * special.eval_legendre(k, 2 * u - 1) for k in (3, 4)]
    return np.stack([z, z * z - 1, *legendre], axis=-1)


@lru_cache(maxsize=8)
def table(length: int) -> Floats:
    """Return the features at every position in a reference of so many draws, half steps included for ties."""
    # The middle of its cell, and of its ties: both sides of a difference are placed alike, so nothing need be random.
    return features((np.arange(2 * length + 1) / 2 + 0.5) / (length + 1))


@dataclass(frozen=True, eq=False)
class Placed:
    """Truths and chains, each placed in every chain.

    Parameters
    ----------
    chains
        (replicates, chains, length).
    truth
        (replicates,).
    """

    chains: Floats
    truth: Floats

    @property
    def shape(self) -> tuple[int, int, int]:
        """Replicates, chains, length."""
        many, chains, length = self.chains.shape
        return many, chains, length

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """The places of all draws of a replicate, from the smallest."""
        return np.argsort(self.chains.reshape(len(self.truth), -1), axis=1)

    @cached_property
    def _flat(self) -> NDArray[np.intp]:
        """The same, as places in all draws of all replicates: taking and putting is several times faster so."""
        many, size = self._order.shape
        return np.asarray(self._order + size * np.arange(many)[:, None])

    @cached_property
    def _owner(self) -> NDArray[np.intp]:
        """Which chain each of the sorted draws is from."""
        return self._order // self.shape[2]

    @cached_property
    def _ties(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Which of all sorted draws, one replicate behind the other, have equals, and the first and last of these."""
        ordered = np.take(self.chains, self._flat)
        next_equal = np.zeros(ordered.shape, bool)
        np.equal(ordered[:, 1:], ordered[:, :-1], out=next_equal[:, :-1])
        after = next_equal.ravel()
        before = np.concatenate([[False], after[:-1]])
        first, last = np.flatnonzero(after & ~before), np.flatnonzero(before & ~after)
        many = last - first + 1
        return np.flatnonzero(after | before), np.repeat(first, many), np.repeat(last, many)

    def _of(self, values: Floats, reference: int) -> Ints:
        """Return twice the place of one number per replicate in a chain."""
        chain = self.chains[:, reference]
        return np.asarray((chain < values[:, None]).sum(axis=1) + (chain <= values[:, None]).sum(axis=1))

    @cached_property
    def _others(self) -> tuple[Floats, Floats]:
        """Where draws of other chains are, over all references, and how high each chain is in each other.

        How many draws are at each place, (replicates, places), and mean scores, (replicates, reference, chain), which
        are 0 for a chain in itself.
        """
        many, chains, length = self.shape
        score, size = table(length)[:, 0], chains * length
        # First as if no two draws were equal: then all follows from where the draws of a reference are among all.
        places = np.sort(self._back(np.arange(size)).astype(np.int32), axis=2)
        counts, means = np.zeros((many, 2 * length + 1)), np.empty((many, chains, chains))
        counts[:, ::2] = (np.diff(places, axis=2, prepend=-1, append=size) - 1).sum(axis=1)
        start, steps = size * np.arange(many)[:, None], np.diff(score[::2])
        for c in range(chains):
            # A sum over draws, by parts: each has the score above all of the reference, less the steps it is below.
            below = self._upto(start + places[:, c])
            means[:, c] = (score[-1] - (below * steps).sum(axis=2) / length).T
        self._make_equal(counts, means)
        means[:, range(chains), range(chains)] = 0.0
        return counts, means

    def _make_equal(self, counts: Floats, means: Floats) -> None:
        """Move draws that equal others from where their order put them to the middle of these."""
        tied, first, last = self._ties
        if not tied.size:
            return
        _, chains, length = self.shape
        score, owners, replicate = table(length)[:, 0], np.take(self._owner, tied), tied // (chains * length)
        reference = np.arange(chains)[:, None]
        now = self._upto(first) - (np.take(self._owner, first) == reference) + self._upto(last)
        then = 2 * self._upto(tied)
        others = (owners != reference).astype(float)
        cells = (np.stack([now, then]) + replicate * counts.shape[1]).ravel()
        counts += np.bincount(cells, np.stack([others, -others]).ravel(), counts.size).reshape(counts.shape)
        pairs = ((replicate * chains + reference) * chains + owners).ravel()
        means += np.bincount(pairs, (score[now] - score[then]).ravel(), means.size).reshape(means.shape) / length

    @cached_property
    def _running(self) -> tuple[int, list[NDArray[np.int64]]]:
        """Running numbers of draws of every chain: bits of a number, and words of as many as fit.

        One sum of packed numbers takes the time of a single one.
        """
        bits, chain = self.shape[2].bit_length(), np.arange(self.shape[1])
        word, place = np.divmod(chain, 63 // bits)
        ones = [np.where(word == w, np.left_shift(1, bits * place), 0) for w in range(word[-1] + 1)]
        return bits, [np.cumsum(np.take(each, self._owner), axis=1) for each in ones]

    def _upto(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return how many draws of every chain, on the first axis, there are up to some of the sorted draws."""
        bits, words = self._running
        taken = [np.take(word, places) for word in words]
        each = 63 // bits
        chains = range(self.shape[1])
        return np.stack([taken[c // each] >> bits * (c % each) & (1 << bits) - 1 for c in chains])

    def _share(self, sums: Floats) -> Floats:
        """Return means over references and draws of the other chains from sums over them."""
        _, chains, length = self.shape
        return np.asarray(sums / (chains * (chains - 1) * length))

    def differences(self) -> Floats:
        """Return (replicates, features): truth minus mean over draws of the others, averaged over references."""
        # Sums along the last axis, in one order whatever else lies side by side.
        found = [
            g[self._truths].mean(axis=0) - self._share((self._others[0] * g).sum(axis=1))
            for g in table(self.shape[2]).T.copy()
        ]
        return np.stack(found, axis=1)

    def below(self) -> Floats:
        """Return (replicates, knots): the same for being at or below a position."""
        length = self.shape[2]
        # The places up to a knot are the first so many: numbers of draws in them are differences of one running sum.
        upto = np.searchsorted((np.arange(2 * length + 1) / 2 + 0.5) / (length + 1), KNOTS, side="right")
        others = self._share(np.cumsum(self._others[0], axis=1)[:, upto - 1] * (upto > 0))
        return np.asarray((self._truths[:, :, None] < upto).mean(axis=0) - others)

    @cached_property
    def _truths(self) -> Ints:
        """Twice the place of the truth in every chain, (chains, replicates)."""
        truth = self.truth[:, None, None]
        return np.asarray(((self.chains < truth).sum(axis=2) + (self.chains <= truth).sum(axis=2)).T)

    def noise(self) -> Floats:
        """Return (replicates, 2): the mean square score of draws, and that of whole chains, in the other chains."""
        _, chains, length = self.shape
        counts, means = self._others
        squares = self._share((counts * np.square(table(length)[:, 0])).sum(axis=1))
        return np.stack([squares, np.square(means).sum(axis=(1, 2)) / (chains * (chains - 1))], axis=1)

    def members(self) -> Floats:
        """Return (replicates, members, features) in the first chain: of the truth, and of the last draws of others."""
        many, chains, length = self.shape
        score, found = table(length), np.full((many, MEMBERS, FEATURES), np.nan)
        last = [self.truth, *(self.chains[:, c, -1] for c in range(1, min(chains, MEMBERS)))]
        for j, values in enumerate(last):
            found[:, j] = score[self._of(values, 0)]
        return found

    def ranks(self) -> Floats:
        """Return the ranks of all draws of a replicate, (replicates, chains, length); equal ones share their mean."""
        many, size = self._order.shape
        tied, first, last = self._ties
        ordered = np.tile(np.arange(1.0, size + 1), (many, 1))
        ordered.reshape(-1)[tied] = (first + last) / 2 + 1 - size * (tied // size)
        return self._back(ordered)

    def scores(self) -> Floats:
        """Return normal scores of these ranks."""
        size = self._order.shape[1]
        known = _score_table(size)
        tied, first, last = self._ties
        ordered = np.tile(known[2::2], (len(self._order), 1))
        ordered.reshape(-1)[tied] = known[first + last + 2 - 2 * size * (tied // size)]
        return self._back(ordered)

    def _back(self, ordered: NDArray[Any]) -> Floats:
        """Return what is known of sorted draws where these draws are in their chains."""
        found = np.empty(self.shape)
        found.reshape(-1)[self._flat] = ordered
        return found

    def agreement(self) -> tuple[Floats, Floats]:
        """Return rank-normalised split R-hat and the bulk effective size of all draws (Vehtari and others, 2021).

        R-hat is the larger of those of the draws and of their distance from the median, so that chains which differ in
        spread alone have a large one. It is infinite where no chain moves and they differ, nan where they do not.
        """
        halves = split(self.chains)
        if halves.shape[2] < 2:  # single draws have no halves, and single ones of them no variance
            return np.full(len(halves), np.nan), np.full(len(halves), np.nan)
        # Of chains of even length the halves are all draws, whose order is known already.
        all_draws = self if halves.size == self.chains.size else Placed(halves, self.truth)
        scores = all_draws.scores().reshape(halves.shape)
        folded = Placed(np.abs(halves - all_draws.median()[:, None, None]), self.truth).scores()
        found = Variances.of(scores)
        rhat = np.fmax(found.potential_scale(), Variances.of(folded).potential_scale())
        return np.asarray(rhat), found.effective_size()

    def median(self) -> Floats:
        """Return the median of all draws of each replicate, from the order that they are known in."""
        size = self._order.shape[1]
        middle = self._order[:, (size - 1) // 2 : size // 2 + 1]
        return np.asarray(np.take_along_axis(self.chains.reshape(len(self.truth), -1), middle, axis=1).mean(axis=1))

    def stuck(self) -> Ints:
        """Return how many chains of each replicate never move; single draws have nowhere to move to."""
        return np.asarray(((np.ptp(self.chains, axis=2) == 0) & (self.shape[2] > 1)).sum(axis=1))


def split(chains: Floats) -> Floats:
    """Return the halves of (replicates, chains, length) as chains; of odd lengths the middle draw is left out.

    Examples
    --------
    >>> split(np.arange(5.0).reshape(1, 1, 5)).tolist()
    [[[0.0, 1.0], [3.0, 4.0]]]
    """
    many, count, length = chains.shape
    half = length // 2
    parts = np.stack([chains[:, :, :half], chains[:, :, length - half :]], axis=2)
    return parts.reshape(many, 2 * count, half)


def effective_size(halves: Floats) -> Floats:
    """Return how many independent draws (replicates, half chains, length) are worth, as the values are.

    Unknown, nan, for fewer than two draws in each, and where nothing ever moves.

    Examples
    --------
    >>> effective_size(np.ones((1, 2, 50)))
    array([nan])
    """
    return Variances.of(halves).effective_size() if halves.shape[2] > 1 else np.full(len(halves), np.nan)


@dataclass(frozen=True)
class Variances:
    """Half chains without their means, the variance within them, and that of all draws."""

    centred: Floats
    within: Floats
    total: Floats

    @classmethod
    def of(cls, halves: Floats) -> Variances:
        """Return those of (replicates, half chains, length), as the values are, of at least two draws in each."""
        length = halves.shape[2]
        means = halves.mean(axis=2)
        centred = halves - means[:, :, None]
        # Rounding of the mean must not make a chain move that does not.
        centred[np.ptp(halves, axis=2) == 0] = 0.0
        within = np.square(centred).sum(axis=2).mean(axis=1) / (length - 1)
        return cls(centred, within, within * (length - 1) / length + means.var(axis=1, ddof=1))

    def potential_scale(self) -> Floats:
        """Return R-hat.

        Examples
        --------
        >>> halves = np.array([[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]])
        >>> float(Variances.of(halves).potential_scale()[0].round(3))
        0.707
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.sqrt(self.total / self.within))

    def effective_size(self) -> Floats:
        """Return how many independent draws they are worth; nan where nothing ever moves."""
        time = _time(self.centred, self.within, self.total)
        return np.asarray(np.where(self.total > 0, self.centred[0].size / time, np.nan))


def _time(centred: Floats, within: Floats, total: Floats) -> Floats:
    """Return the integrated autocorrelation time of several chains together, by Geyer's initial monotone sequence.

    With pairs of neighbours P_j = rho_2j + rho_(2j+1), it is -1 + 2 (P_0 + ... + P_(J-1)) + rho_2J, each P no larger
    than the one before, where P_J is the first that is not positive, or the last that the length allows. So does ArviZ.
    """
    many, _, length = centred.shape
    short = length < _SHORT
    time, least, even = np.full(many, -1.0), np.full(many, np.inf), np.zeros(many)
    active = np.flatnonzero(total > 0)
    for lag in range(0, max(length - (1 if short else 2), 1), 2):
        if lag:  # the pair before was positive, and is not the last
            time[active] += 2 * least[active]
        some = centred[active]
        first, second = (_autocorrelation(some, k, within[active], total[active]) for k in (lag, lag + 1))
        # Sums of neighbours are positive for reversible chains (Geyer 1992): the first that is not is noise.
        even[active] = np.where(first + second < 0, np.maximum(first, 0.0), first)
        least[active] = np.minimum(least[active], first + second)
        active = active[least[active] > 0]
        if not active.size:
            break
    if short and active.size:
        # All pairs are positive, and there are so few that the last is no noise: of chains that hardly move, halves of
        # four draws would otherwise be worth more than their number.
        time[active], even[active] = time[active] + 2 * least[active], 0.0
    # Antithetic chains may be worth more than their draws, but not by any factor; the bound is the usual one.
    return np.asarray(np.maximum(time + even, 1 / np.log10(centred[0].size)))


def _autocorrelation(centred: Floats, lag: int, within: Floats, total: Floats) -> Floats:
    length = centred.shape[2]
    products = np.einsum("rcl,rcl->rc", centred[:, :, : length - lag], centred[:, :, lag:])
    return np.asarray(1 - (within - products.mean(axis=1) / length) / total) if lag else np.ones(len(centred))


@lru_cache(maxsize=8)
def _score_table(size: int) -> Floats:
    """Return the normal score of every rank among so many draws, half ranks included for ties."""
    return np.asarray(special.ndtri(np.maximum(np.arange(2 * size + 1) / 2 - 0.375, 0.0) / (size + 0.25)))


def serial(values: Floats) -> Floats:
    """Return, for the draws (draws, replicates) of each replicate, standardised autocorrelations of lag 1 and 2.

    Those of ranks, around a circle, so that mean and variance are known exactly if all orders of the draws are equally
    likely (Wald and Wolfowitz 1943), whatever their law and with ties: 0 and 1. Fewer than 5 draws, or draws that are
    all equal, have nan.

    Examples
    --------
    >>> serial(np.arange(6.0)[:, None]).round(2).tolist()
    [[0.98, -0.49]]
    """
    m = len(values)
    if m < 5:
        return np.full((values.shape[1], 2), np.nan)
    ranks = Placed(np.ascontiguousarray(values.T)[:, None], values[0]).ranks()[:, 0]
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    squares = np.square(centred)
    second, fourth = squares.sum(axis=1), np.square(squares).sum(axis=1)  # a power takes twenty times as long
    mean = -second / (m - 1)
    square = np.square(second)
    variance = (square - fourth) / (m - 1) + (square - 2 * fourth) / ((m - 1) * (m - 2)) - np.square(mean)
    found = [(centred * np.roll(centred, lag, axis=1)).sum(axis=1) for lag in (1, 2)]
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = np.stack([(each - mean) / np.sqrt(variance) for each in found], axis=1)
    return np.where((second > 0)[:, None], scores, np.nan)
