"""What happened: the positions of the truths, kept in arrays that grow with n and never with the number of draws.

Everything a judgement needs is here, so that judging needs none of the user's code. This module computes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..functions.contract import BestOf, Level
from ..question.study import OTHER_TRUTH

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Failure:
    """One replicate that was lost, and why."""

    replicate: int
    stage: str
    error: str
    traceback: str

    @property
    def replay(self) -> str:
        """The call that runs this replicate alone."""
        return f"ringtrue.replay(study, {self.replicate})"


@dataclass(frozen=True)
class Column:
    """A test function as the judgement sees it: its name, its level, and whether it is an entry of theta."""

    name: str
    level: Level
    coordinate: bool


@dataclass(frozen=True, eq=False, repr=False)
class Replicates:
    """What happened in n replicates, one column per test function; lost replicates are rows of nan.

    Attributes
    ----------
    u, z
        The currency and its normal score, (n, functions).
    rank, draws
        The truth's rank and among how many draws; -1 and 0 where the law was exact.
    weak_u, weak_z
        Position of f(vartheta_i), one draw of each output, in mu0's exact law of f; nan where it has none.
    weak_value, reference
        f(vartheta_i), and f at fresh draws of mu0; nan or empty where not available.
    truth, mean, sd, crps, interval
        f(theta_i); mean and sd of f under the output, its continuous ranked probability score and the interval score
        of its central 90 % interval, nan where the output does not give them away.
    energy, belief_energy
        (n,): energy scores of the outputs and of the belief, for all entries of theta together; nan if it has only one.
    members
        (n, draws + 1, strong functions): ranks of every member as the truth, if they were kept.
    first
        The number of the first row's replicate; not 0 in a shard.
    """

    columns: tuple[Column, ...]
    u: Floats
    z: Floats
    rank: NDArray[np.int64]
    draws: NDArray[np.int64]
    weak_u: Floats
    weak_z: Floats
    weak_value: Floats
    reference: Floats
    truth: Floats
    mean: Floats
    sd: Floats
    crps: Floats
    interval: Floats
    energy: Floats
    belief_energy: Floats
    members: NDArray[np.uint16] | None = None
    failures: tuple[Failure, ...] = ()
    selection: BestOf | None = None
    seed: int = 0
    notes: tuple[str, ...] = ()
    first: int = 0

    @property
    def n(self) -> int:
        """The number of replicates asked for, lost ones included."""
        return len(self.u)

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Which replicates were not lost."""
        kept = np.ones(self.n, bool)
        kept[[failure.replicate - self.first for failure in self.failures]] = False
        return kept

    @property
    def of_belief(self) -> bool:
        """Whether the truths are draws of the belief, so that they tell how wide it is."""
        return OTHER_TRUTH not in self.notes

    @property
    def rows(self) -> Any:
        """An index of the replicates that were not lost; a slice, which copies nothing, if none was."""
        return np.flatnonzero(self.kept) if self.failures else slice(None)

    def part(self, rows: Any) -> Replicates:
        """Return some replicates as a run of their own, numbered from 0.

        Parameters
        ----------
        rows
            A slice, or the numbers of rows in rising order.
        """
        numbers = np.arange(self.n)[rows]
        arrays: dict[str, Any] = {
            one.name: value[rows]
            for one in fields(self)
            if isinstance(value := getattr(self, one.name), np.ndarray) and one.name != "reference"
        }
        place = {int(i) + self.first: j for j, i in enumerate(numbers)} if self.failures else {}
        lost = (failure for failure in self.failures if failure.replicate in place)
        failures = tuple(replace(failure, replicate=place[failure.replicate]) for failure in lost)
        return replace(self, **arrays, failures=failures, first=0)

    def ordered(self, k: int) -> Floats:
        """Return the sorted u of column k, lost replicates left out; sorted once for all who ask."""
        return self._ordered("u", k)

    def weak_ordered(self, k: int) -> Floats:
        """Return the sorted weak u of column k."""
        return self._ordered("weak_u", k)

    def _ordered(self, name: str, k: int) -> Floats:
        if (name, k) not in self._cache:
            self._cache[name, k] = np.sort(getattr(self, name)[self.rows, k])
        return self._cache[name, k]

    @cached_property
    def _cache(self) -> dict[tuple[str, int], Floats]:
        return {}

    @cached_property
    def _draw_range(self) -> list[tuple[int, int]]:
        columns = [self.draws[self.rows, k] for k in range(len(self.columns))]
        return [(int(column.min()), int(column.max())) if column.size else (0, 0) for column in columns]

    def route(self, k: int) -> str:
        """Return how column k came to its u."""
        low, high = self._draw_range[k]
        if high == 0:
            return "exact"
        if low == high:
            return f"ranks of {low}"
        return f"ranks of {low}-{high}" if low else "exact or ranks"

    def lattice(self, k: int) -> int | None:
        """Return the number of draws if column k is ranks among the same number of draws, else None."""
        low, high = self._draw_range[k]
        return low if 0 < low == high else None

    def fewest_draws(self) -> int | None:
        """Return the smallest number of draws that a strong test function was ranked among; None if none was."""
        strong = [k for k, column in enumerate(self.columns) if column.level == "strong"]
        return min((low or high for low, high in (self._draw_range[k] for k in strong) if high), default=None)

    def causes(self) -> list[tuple[str, int, Failure]]:
        """Return the failures grouped by stage and message, most frequent first, with one example each."""
        groups = Counter((failure.stage, failure.error) for failure in self.failures)
        first = {(failure.stage, failure.error): failure for failure in reversed(self.failures)}
        return [(f"{stage}: {error}", many, first[stage, error]) for (stage, error), many in groups.most_common()]

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("Replicates is not iterable; use its attributes u, z, rank, draws, failures.")

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"Replicates(n={self.n}, f=[{names}], failures={len(self.failures)}, seed={self.seed})"
