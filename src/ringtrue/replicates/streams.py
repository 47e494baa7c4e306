"""Random streams keyed by (seed, block, role), so that the answer never depends on who computed it.

A stream is a window of one Philox sequence: the seed is its key, block and role sit in its counter. Re-keying a
generator costs a few microseconds. This module knows nothing of what is drawn.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Role = Literal["truth", "data", "procedure", "statistic", "ties", "members", "weak", "reference", "judgement", "energy"]
_ROLES = {role: number for number, role in enumerate(get_args(Role))}


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
        key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._counter = np.zeros(4, np.uint64)
        self._state: dict[str, Any] = {
            "bit_generator": "Philox",
            "state": {"counter": self._counter, "key": key},
            "buffer": np.zeros(4, np.uint64),
            "buffer_pos": 4,  # an empty buffer: the next number starts at the counter
            "has_uint32": 0,
            "uinteger": 0,
        }
        self._generators: dict[Role, np.random.Generator] = {}

    def generator(self, role: Role, block: int = 0) -> np.random.Generator:
        """Return the role's generator at the start of a block (one object per role, re-keyed each time)."""
        return self._at(role, block, 0)

    def uniforms(self, role: Role, index: NDArray[np.int64], width: int) -> NDArray[np.float64]:
        """Return one row of uniforms per replicate, each a function of the replicate's index alone."""
        words = -(-width // 4)  # Philox makes four numbers per counter value
        runs = np.split(index, np.flatnonzero(np.diff(index) != 1) + 1)
        rows = [self._at(role, 0, int(run[0]) * words).random((len(run), 4 * words)) for run in runs]
        return np.concatenate(rows)[:, :width]

    def _at(self, role: Role, block: int, position: int) -> np.random.Generator:
        if role not in self._generators:
            self._generators[role] = np.random.Generator(np.random.Philox(key=0))
        generator = self._generators[role]
        self._counter[:] = (position, 0, block, _ROLES[role])
        generator.bit_generator.state = self._state
        return generator
