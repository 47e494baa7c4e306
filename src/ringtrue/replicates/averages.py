"""Bounded features of where parameters lie in the belief: what the weak level averages.

Each entry is placed in the belief's own law of it, w between -1 and 1. Features are sqrt(3) w and sqrt(5) (3 w^2 - 1)/2
of every entry, which speak of its mean and its spread, and 3 w w' of pairs of entries, which is the rank correlation in
the mean: all of mean 0 and variance 1 if w is uniform and entries are independent. This module knows their order and
nothing of where positions come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Literal

import numpy as np

from ..values import Floats, Ints
from .record import JOINT

#: The array of the record's first replicates, (n, 2, features): averages over the draws of the output, and the features
#: at the truth, both minus the belief's mean of them, or minus their average over fresh draws of it.
AVERAGES = f"{JOINT}averages"
#: Entries that are looked at; with more than so many, only some of their pairs.
_ENTRIES, _ALL_PAIRS, _PAIRS = 100, 10, 50

Part = Literal["mean", "spread", "correlation"]


def looked_at(entries: int) -> Ints:
    """Return which of so many entries are looked at: all, or a hundred evenly spaced ones.

    Examples
    --------
    >>> looked_at(3).tolist(), len(looked_at(1000))
    ([0, 1, 2], 100)
    """
    return np.unique(np.linspace(0, entries - 1, min(entries, _ENTRIES)).round().astype(np.int64))


def pairs_of(d: int) -> Ints:
    """Return the pairs of entries whose products are features, (pairs, 2): all up to ten entries, then fifty.

    Examples
    --------
    >>> pairs_of(3).tolist(), len(pairs_of(40))
    ([[0, 1], [0, 2], [1, 2]], 50)
    """
    every = np.stack(np.triu_indices(d, 1), axis=1)
    if d <= _ALL_PAIRS:
        return every
    # Evenly spaced in the list of all pairs, so that near and far entries meet; always the same ones.
    return every[((np.arange(_PAIRS) + 0.5) * len(every) / _PAIRS).astype(np.int64)]


def mean_features(places: Sequence[Floats]) -> Floats:
    """Return the features averaged over the first axis of positions, (..., features).

    Parameters
    ----------
    places
        Of every entry, arrays of one shape.

    Examples
    --------
    >>> mean_features([np.array([[-1.0], [1.0]]), np.array([[-0.5], [0.5]])]).round(3).tolist()
    [[0.0, 0.0, 2.236, -0.28, 1.5]]
    """
    first = [np.sqrt(3) * _average(one) for one in places]
    second = [np.sqrt(5) * (1.5 * _average(np.square(one)) - 0.5) for one in places]
    products = [3 * _average(places[k] * places[j]) for k, j in pairs_of(len(places)).tolist()]
    return np.stack([*first, *second, *products], axis=-1)


def _average(values: Floats) -> Floats:
    """Return the mean over the first axis, summed in one order whether positions stand alone or among others."""
    return np.asarray(reduce(np.add, values) / len(values))


def parts(d: int) -> list[tuple[Part, tuple[int, ...]]]:
    """Return what every feature speaks of, and of which entries.

    Examples
    --------
    >>> parts(2)
    [('mean', (0,)), ('mean', (1,)), ('spread', (0,)), ('spread', (1,)), ('correlation', (0, 1))]
    """
    alone: list[tuple[Part, tuple[int, ...]]] = [(part, (k,)) for part in ("mean", "spread") for k in range(d)]
    return [*alone, *(("correlation", (k, j)) for k, j in pairs_of(d).tolist())]
