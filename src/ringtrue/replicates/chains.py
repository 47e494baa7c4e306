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

    @cached_property
    def _places(self) -> list[NDArray[np.intp]]:
        """For every chain as the reference, twice the place of every sorted draw of the others.

        Draws below count two, equal ones one.
        """
        tied, first, last = self._ties
        return [self._places_in(self._owner == c, tied, first, last) for c in range(self.shape[1])]

    @staticmethod
    def _places_in(
        mine: NDArray[np.bool_], tied: NDArray[np.intp], first: NDArray[np.intp], last: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        upto = np.cumsum(mine, axis=1)
        places = 2 * upto
        if tied.size:
            places.reshape(-1)[tied] = np.take(upto, first) - np.take(mine, first) + np.take(upto, last)
        return places

    def _of(self, values: Floats, reference: int) -> Ints:
        """Return twice the place of one number per replicate in a chain."""
        chain = self.chains[:, reference]
        return np.asarray((chain < values[:, None]).sum(axis=1) + (chain <= values[:, None]).sum(axis=1))

    @cached_property
    def _counts(self) -> list[Floats]:
        """For every chain as the reference, how many draws of the other chains are at each place."""
        many, _, length = self.shape
        cells = 2 * length + 1
        offsets = cells * np.arange(many)[:, None]
        counts = []
        for c, places in enumerate(self._places):
            others = (self._owner != c).ravel().astype(float)
            flat: Floats = np.bincount((places + offsets).ravel(), weights=others, minlength=many * cells)  # type: ignore[assignment]
            counts.append(flat.reshape(many, cells))
        return counts

    def _mean_of_others(self, weights: Floats) -> Floats:
        """Return, per reference and replicate, the mean of a function of the place over draws of the other chains."""
        _, chains, length = self.shape
        # Sums along the last axis, in one order whatever else lies side by side.
        return np.stack([(each * weights).sum(axis=1) for each in self._counts]) / ((chains - 1) * length)

    def differences(self) -> Floats:
        """Return (replicates, features): truth minus mean over draws of the others, averaged over references."""
        return self._over_references(table(self.shape[2]).T)

    def below(self) -> Floats:
        """Return (replicates, knots): the same for being at or below a position."""
        _, chains, length = self.shape
        # The places up to a knot are the first so many: numbers of draws in them are differences of one running sum.
        upto = np.searchsorted((np.arange(2 * length + 1) / 2 + 0.5) / (length + 1), KNOTS, side="right")
        sums = [np.cumsum(each, axis=1)[:, upto - 1] * (upto > 0) for each in self._counts]
        others = np.stack(sums) / ((chains - 1) * length)
        return np.asarray(((self._truths[:, :, None] < upto) - others).mean(axis=0))

    @cached_property
    def _truths(self) -> Ints:
        """Twice the place of the truth in every chain, (chains, replicates)."""
        return np.stack([self._of(self.truth, c) for c in range(self.shape[1])])

    def _over_references(self, functions: Floats) -> Floats:
        return np.stack([(g[self._truths] - self._mean_of_others(g)).mean(axis=0) for g in functions], axis=1)

    def noise(self) -> Floats:
        """Return (replicates, 2): the mean square score of draws, and that of whole chains, in the other chains."""
        many, chains, length = self.shape
        score = table(length)[:, 0]
        squares = self._mean_of_others(np.square(score)).mean(axis=0)
        total = np.zeros(many)
        chain = (self._owner + chains * np.arange(many)[:, None]).ravel()
        for c, places in enumerate(self._places):
            sums = np.bincount(chain, weights=np.take(score, places).ravel(), minlength=many * chains)
            means = sums.reshape(many, chains) / length
            means[:, c] = 0.0
            total += np.square(means).sum(axis=1)
        return np.stack([squares, total / (chains * (chains - 1))], axis=1)

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
        return self._back(self._twice_ranks() / 2)

    def scores(self) -> Floats:
        """Return normal scores of these ranks."""
        return self._back(np.take(_score_table(self._order.shape[1]), self._twice_ranks()))

    def _twice_ranks(self) -> NDArray[np.intp]:
        """Return twice the ranks of the sorted draws."""
        many, size = self._order.shape
        tied, first, last = self._ties
        ranks = np.tile(2 * np.arange(1, size + 1), (many, 1))
        ranks.reshape(-1)[tied] = first + last + 2 - 2 * size * (tied // size)
        return ranks

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
