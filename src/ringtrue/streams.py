"""Random streams keyed by (seed, role, block, lane), so that the answer never depends on who computed it.

A stream is a window of one Philox sequence: the seed is its key, role, block and lane sit in its counter. Every call
makes a generator of its own, so that none can be moved by somebody who still holds it. This module knows nothing of
what is drawn.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

#: New roles go to the end: the place of a role is part of its streams.
Role = Literal[
    "truth",
    "data",
    "procedure",
    "statistic",
    "ties",
    "members",
    "weak",
    "reference",
    "judgement",
    "energy",
    "points",
    "start",
    "pool",
    "kernel",
    "refresh",
    "fresh",
    "averages",
]
_ROLES = {role: number for number, role in enumerate(get_args(Role))}
#: Lanes are this far apart in the counter: no run has so many blocks.
_LANE = 48


class _Key(ISeedSequence):
    """Hands a known key to a bit generator; without one it would ask the system for entropy, which is slow."""

    def __init__(self, key: NDArray[np.uint64]) -> None:
        self.key = key

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[np.uint64]:
        return self.key


class Streams:
    """All random streams of one study.

    Parameters
    ----------
    seed
        A non-negative integer.

    Examples
    --------
    >>> Streams(1).generator("truth", 7).random() == Streams(1).generator("truth", 7).random()
    True
    """

    def __init__(self, seed: int) -> None:
        # Any bit generator takes whatever can seed it; NumPy's types know its own class only.
        self._key: Any = _Key(np.random.SeedSequence(seed).generate_state(2, np.uint64).astype(np.uint64))

    def generator(self, role: Role, block: int = 0, lane: int = 0) -> np.random.Generator:
        """Return a new generator at the start of a stream."""
        return self._at(0, block + (lane << _LANE), role)

    def uniforms(self, role: Role, index: NDArray[np.int64], width: int) -> NDArray[np.float64]:
        """Return one row of uniforms per replicate, each a function of the replicate's index alone."""
        # Rows start at whole counter values: then a replicate's row does not depend on which other rows are asked for.
        words = -(-width // 4)  # Philox makes four numbers per counter value
        runs = np.split(index, np.flatnonzero(np.diff(index) != 1) + 1)
        rows = [self._at(int(run[0]) * words, 0, role).random((len(run), 4 * words)) for run in runs]
        return np.concatenate(rows)[:, :width]

    def _at(self, position: int, block: int, role: Role) -> np.random.Generator:
        # The second word stays 0: a stream may draw 2^64 blocks of numbers before it would meet its neighbour.
        counter = np.array((position, 0, block, _ROLES[role]), np.uint64)
        return np.random.Generator(np.random.Philox(self._key, counter=counter))
