"""The energy score: how well outputs predict a parameter of several entries, all of them together.

For draws X, X' of an output it is E |X - theta| - E |X - X'| / 2, in one dimension the continuous ranked probability
score. Distances are in units of the belief's spread, entry by entry, so that no unit of measurement decides. It is
estimated without bias from as few as two draws. This module knows arrays; it must not know studies or tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Draws that are enough: the score is averaged over replicates, whose noise drowns that of more.
ENOUGH = 20


def entries(value: Any, lead: int) -> Floats | None:
    """Return a parameter's numbers on the last axis, behind its leading ones; None if it is not made of numbers.

    Examples
    --------
    >>> entries({"b": np.ones((3, 2, 2)), "a": np.zeros(3)}, 1).tolist()[0]
    [0.0, 1.0, 1.0, 1.0, 1.0]
    """
    if isinstance(value, Mapping):
        parts = [entries(value[name], lead) for name in sorted(value)]
        found = [part for part in parts if part is not None]
        return np.concatenate(found, axis=-1) if found and len(found) == len(parts) else None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        return None
    return value.reshape(*value.shape[:lead], -1).astype(np.float64)


def units(sample: Floats) -> Floats:
    """Return the spread of every entry: the interquartile range of draws, or their mean deviation where that is 0.

    An entry that does not vary has an infinite unit, and counts for nothing.

    Examples
    --------
    >>> units(np.array([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0], [3.0, 7.0], [4.0, 7.0]])).tolist()
    [2.0, inf]
    """
    low, middle, high = np.quantile(sample, [0.25, 0.5, 0.75], axis=0)
    deviation = np.abs(sample - middle).mean(axis=0)
    unit = np.where(high > low, high - low, deviation)
    return np.where(unit > 0, unit, np.inf)


def spread_out(draws: NDArray[Any]) -> NDArray[Any]:
    """Return enough of the draws on axis 0, evenly spaced, so that neighbours are half of them apart.

    Neighbours make pairs, and a Markov chain must not count its own inertia as sharpness.

    Examples
    --------
    >>> spread_out(np.arange(100)).tolist()[:4]
    [0, 50, 5, 55]
    """
    some = draws[:: -(-len(draws) // ENOUGH)]
    half = len(some) // 2
    order = np.stack([np.arange(half), np.arange(half) + half], axis=1).ravel()
    return np.asarray(some[order])


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

    def __init__(self, truth: Floats, unit: Floats) -> None:
        self.truth, self.unit = truth / unit, unit
        self.count = 0
        self._away, self._apart = np.zeros(len(truth)), np.zeros(len(truth))
        self._last: Floats | None = None

    def add(self, draws: Any) -> None:
        """Take draws (draws, replicates, ...) into account, up to as many as are enough; each odd one makes a pair."""
        size = len(next(iter(draws.values()))) if isinstance(draws, Mapping) else len(draws)
        for j in range(min(size, ENOUGH - self.count)):
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

    def value(self) -> Floats:
        """Return the score of every replicate; nan without a pair of draws."""
        pairs = self.count // 2
        if not pairs:
            return np.full(len(self.truth), np.nan)
        return np.asarray(self._away / self.count - self._apart / pairs / 2)


def _lengths(vectors: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)))
