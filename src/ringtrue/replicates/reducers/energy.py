"""The energy score: how well outputs predict a parameter of several entries, all of them together.

For draws X, X' of an output it is E |X - theta| - E |X - X'| / 2, in one dimension the continuous ranked probability
score. Distances are in units of the belief's spread, entry by entry, so that no unit of measurement decides. It is
estimated without bias from as few as two draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distributions.frozen import Sampler
from ...question.study import Question
from ...streams import Streams
from ...values import Floats, Ints, entries, stack_values, take
from ..block import SCORED, Block, spread_out
from ..record import Field

#: Draws of the belief, and truths that exist already, that tell the units of their entries.
_OF_BELIEF, _OF_TRUTHS = 100, 1000
#: Single replicates whose draws of the belief are made together, so that they cost one call.
_GROUP = 64


class Energy:
    """The scores of the outputs and of the belief; nan if theta is not made of several numbers."""

    fields = (Field("energy", ()), Field("belief_energy", ()))
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return both scores of every replicate."""
        theta = entries(block.theta, 1)
        # In one dimension the energy score is the ranked probability score, which the summaries have already.
        rivals = None if theta is None or theta.shape[1] < 2 else _rivals(block.question)
        if theta is None or rivals is None or rivals.units is None:
            return {field.name: np.full(block.b, np.nan) for field in self.fields}
        score, belief = EnergyScore(theta, rivals.units), EnergyScore(theta, rivals.units)
        for part in _some_draws(block):
            score.add(part)
        belief.add(rivals.of(block.index))
        return {"energy": score.value(), "belief_energy": belief.value()}


def _some_draws(block: Block) -> Any:
    ready = block.outputs.ready
    if ready is not None:
        found: Any = iter([spread_out(ready.values)])
    else:
        found = () if block.outputs.whole.sample is None else block.outputs.some_draws()
    names = set(block.theta) if isinstance(block.theta, Mapping) else None
    # A score of some entries of theta would not be comparable with the belief's, which is one of all.
    return (part for part in found if names is None or set(part) == names)


class _OfBelief:
    """Two draws of the belief for each replicate, to predict its truth with."""

    def __init__(self, question: Question) -> None:
        self.question, self.streams = question, Streams(question.seed)
        numbers = entries(question.mu0.sample(_OF_BELIEF, self.streams.generator("energy")), 1)
        self.units = None if numbers is None else units(numbers)

    def of(self, index: Ints) -> Floats:
        """Return two draws for each replicate of a whole batch, or for each of single replicates."""
        if self.question.batch is not None:
            return self.draw(int(index[0]) // self.question.batch, self.question.batch)
        # A function that is called for every draw is called for those that are needed.
        size = 1 if isinstance(self.question.mu0, Sampler) else _GROUP
        groups, which = np.unique(index // size, return_inverse=True)
        drawn = np.concatenate([_pairs(self, g, size) for g in groups.tolist()], axis=1)
        return np.asarray(drawn[:, which * size + index % size])

    def draw(self, group: int, size: int) -> Floats:
        """Return two draws for each replicate of a group, entries on the last axis."""
        drawn = entries(self.question.mu0.sample(2 * size, self.streams.generator("energy", 1 + group)), 1)
        assert drawn is not None
        return drawn.reshape(2, size, -1)


@lru_cache(maxsize=4)  # neighbours are often computed in several blocks
def _pairs(belief: _OfBelief, group: int, size: int) -> Floats:
    return belief.draw(group, size)


class _OfTruths:
    """The truths of two others for each replicate, which are draws of the belief too."""

    def __init__(self, question: Question) -> None:
        self.truth = question.truths_known
        numbers = entries(self.truth, 1)
        whole = np.arange(0) if numbers is None else np.flatnonzero(np.isfinite(numbers).all(axis=1))
        # Shuffled, since a file may be sorted, or have every truth several times.
        self.circle = Streams(question.seed).generator("energy").permutation(whole)
        self.place = np.zeros(0 if numbers is None else len(numbers), np.int64)
        self.place[self.circle] = np.arange(len(self.circle))
        some = None if numbers is None else entries(take(self.truth, self.circle[:_OF_TRUTHS]), 1)
        self.units = None if some is None or len(some) < 3 else units(some)

    def of(self, index: Ints) -> Any:
        """Return the truths of the next two replicates in the circle."""
        following = [self.circle[(self.place[index] + step) % len(self.circle)] for step in (1, 2)]
        return stack_values([take(self.truth, rows) for rows in following])


@lru_cache(maxsize=4)  # its units are the same for all blocks
def _rivals(question: Question) -> _OfBelief | _OfTruths | None:
    if question.truths_known is None:
        return None if question.mu0 is None else _OfBelief(question)
    return _OfTruths(question)


def units(sample: Floats) -> Floats:
    """Return the spread of every entry: the interquartile range of draws, or their mean deviation where that is 0.

    An entry that does not vary has an infinite unit, and counts for nothing.

    Examples
    --------
    >>> units(np.array([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0], [3.0, 7.0], [4.0, 7.0]])).tolist()
    [2.0, inf]
    """
    # Quartiles, since a belief may have no variance; where half of its draws are equal, the mean deviation is left.
    with np.errstate(over="ignore", invalid="ignore"):  # truths may be infinite, or as large as numbers are
        low, middle, high = np.quantile(sample, [0.25, 0.5, 0.75], axis=0)
        deviation = np.abs(sample - middle).mean(axis=0)
        unit = np.where(high > low, high - low, deviation)
    return np.where(unit > 0, unit, np.inf)


#: Draws that are not finite, or as large as numbers are, have a score that is infinite or none.
_silently = np.errstate(over="ignore", invalid="ignore")


class EnergyScore:
    """The score of outputs for truths, from draws as they come.

    Parameters
    ----------
    truth
        (replicates, entries), in any unit.
    unit
        Of every entry.

    Examples
    --------
    >>> score = EnergyScore(np.array([[0.0, 0.0]]), np.ones(2))
    >>> score.add(np.array([[[3.0, 4.0]], [[0.0, 0.0]]]))
    >>> score.value().tolist()
    [0.0]
    """

    @_silently
    def __init__(self, truth: Floats, unit: Floats) -> None:
        self.truth, self.unit = truth / unit, unit
        self.count = 0
        self._away, self._apart = np.zeros(len(truth)), np.zeros(len(truth))
        self._last: Floats | None = None

    @_silently
    def add(self, draws: Any) -> None:
        """Take draws (draws, replicates, ...) into account, up to as many as are enough; each odd one makes a pair."""
        size = len(next(iter(draws.values()))) if isinstance(draws, Mapping) else len(draws)
        for j in range(min(size, SCORED - self.count)):
            one = {name: part[j] for name, part in draws.items()} if isinstance(draws, Mapping) else draws[j]
            numbers = entries(one, 1)
            assert numbers is not None
            self._add(numbers / self.unit)

    def _add(self, one: Floats) -> None:
        with np.errstate(invalid="ignore", over="ignore"):  # lost replicates have draws that are not finite
            self._away += _lengths(one - self.truth)
            if self._last is None:
                self._last = one
            else:
                self._apart += _lengths(one - self._last)
                self._last = None
        self.count += 1

    @_silently
    def value(self) -> Floats:
        """Return the score of every replicate; nan without a pair of draws."""
        pairs = self.count // 2
        if not pairs:
            return np.full(len(self.truth), np.nan)
        return np.asarray(self._away / self.count - self._apart / pairs / 2)


def _lengths(vectors: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)))


REDUCER = Energy()
