"""Random streams keyed by (seed, role, block, lane), so that the answer never depends on who computed it.

A stream is a window of one Philox sequence: the seed is its key, role, block and lane sit in its counter. Every call
returns a generator that nobody else holds, so that none can be moved by somebody who still does. This module knows
nothing of what is drawn.
"""

from __future__ import annotations

from sys import getrefcount
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


class _Reused:
    """A generator that can be put anywhere in the sequence of a key: a fifth of the price of a new one."""

    def __init__(self, key: Any) -> None:
        self.bits = np.random.Philox(key)
        self.generator = np.random.Generator(self.bits)
        # Lists, which NumPy reads faster than arrays; four used numbers in the buffer mean that there are none.
        self.counter = [0, 0, 0, 0]
        self.state: Any = {
            "bit_generator": "Philox",
            "state": {"counter": self.counter, "key": key.key.tolist()},
            "buffer": [0, 0, 0, 0],
            "buffer_pos": 4,
            "has_uint32": 0,
            "uinteger": 0,
        }

    def put(self, position: int, block: int, role: int) -> bool:
        """Go to a place and say so, if nobody else holds the generator or its bits."""
        if getrefcount(self.generator) != _GENERATOR or getrefcount(self.bits) != _BITS:
            return False
        # The second word stays 0: a stream may draw 2^64 blocks of numbers before it would meet its neighbour.
        self.counter[0], self.counter[2], self.counter[3] = position, block, role
        self.bits.state = self.state
        return True


def _references(of: _Reused) -> tuple[int, int]:
    return getrefcount(of.generator), getrefcount(of.bits)


#: What nobody else holds; counted and not written down, since versions of Python count differently.
_GENERATOR, _BITS = _references(_Reused(_Key(np.zeros(2, np.uint64))))


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
        self._last: list[_Reused] = []

    def generator(self, role: Role, block: int = 0, lane: int = 0) -> np.random.Generator:
        """Return a generator at the start of a stream."""
        return self._at(0, block + (lane << _LANE), role)

    def uniforms(self, role: Role, index: NDArray[np.int64], width: int) -> NDArray[np.float64]:
        """Return one row of uniforms per replicate, each a function of the replicate's index alone."""
        # Rows start at whole counter values: then a replicate's row does not depend on which other rows are asked for.
        words = -(-width // 4)  # Philox makes four numbers per counter value
        runs = np.split(index, np.flatnonzero(np.diff(index) != 1) + 1)
        rows = [self._at(int(run[0]) * words, 0, role).random((len(run), 4 * words)) for run in runs]
        return np.concatenate(rows)[:, :width]

    def _at(self, position: int, block: int, role: Role) -> np.random.Generator:
        # Taken out while it is looked at: two threads never have the same one.
        try:
            reused = self._last.pop()
        except IndexError:
            reused = _Reused(self._key)
        if not reused.put(position, block, _ROLES[role]):
            reused = _Reused(self._key)
            reused.put(position, block, _ROLES[role])
        found = reused.generator
        self._last.append(reused)
        return found
