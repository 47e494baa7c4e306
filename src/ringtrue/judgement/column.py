"""One test function of a record, as a judgement reads it: the only place that chooses between rank, u and z."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..functions import Sees
from ..replicates.record import CHAINS, GROUP, TIED, Replicates
from ..statistics.arguments import MOST_RANKS
from ..values import Floats
from . import chains

#: Ties are broken at random where fewer of all members than this have any: then it hardly matters how.
_TIES = 0.01
#: Two members of a replicate are equal with this probability or more where a function has few values, as a switch has.
FEW_VALUES = 0.25
#: Multiples of it fill the unit interval as evenly as can be, however many there are and whichever are picked.
_GOLDEN = (5**0.5 - 1) / 2


class Column:
    """The replicates of one test function that were not lost.

    Parameters
    ----------
    replicates
        What happened.
    k
        The number of the test function.
    rows
        Which replicates; left out, all that were not lost.

    Attributes
    ----------
    values, scores
        What tests and sizes are computed from: ranks, if all truths were ranked among equally many draws; otherwise u,
        sorted, and z.
    draws
        That number of draws; None if values are u.
    pool
        Of a discrete test function, how many members lie below each of {truth, draws}, truth first; None of others.
        Values, scores and u are then made of it: the ranks that the truth shares are taken in turn, not at random, so
        that sizes do not depend on a seed. Only :meth:`broken` breaks ties at random.
    lost
        How many replicates were lost.
    groups
        The group of every replicate; None if they are independent.
    """

    def __init__(self, replicates: Replicates, k: int, rows: Any = None) -> None:
        self.replicates, self.k, self._some = replicates, k, rows
        asked = replicates.functions[k]
        self.name, self.kind, self.sees = asked.name, asked.kind, asked.sees
        self.lost = replicates.lost

    def at(self, rows: Any) -> Column:
        """Return the column of some replicates only, of the same route as the whole."""
        part = Column(self.replicates, self.k, rows)
        # What the whole is decides; a part of it might have none of its ties.
        part.__dict__["tied"] = self.tied
        part.__dict__["fewest_and_most"] = self.fewest_and_most
        return part

    def broken(self) -> Column:
        """Return the column with its ties broken at random."""
        if not self.tied:
            return self
        part = Column(self.replicates, self.k, self._some)
        part.lost = self.lost
        part.__dict__.update(tied=False, groups=self.groups)
        return part

    def without_losses(self) -> Column:
        """Return the column as if the replicates that were lost had not been asked for."""
        part = self.at(self.rows)
        part.lost = 0
        return part

    def independent(self, rows: Any, lost: int) -> Column:
        """Return the column of some replicates that are independent of each other, of which others were lost."""
        part = self.at(rows)
        part.lost = lost
        part.__dict__["groups"] = None
        return part

    def array(self, name: str) -> NDArray[Any]:
        """Return an array of the record for this test function."""
        found: NDArray[Any] = self.replicates.arrays[name][self.rows, self.k]
        return found

    @property
    def rows(self) -> Any:
        """An index of the replicates."""
        return self.replicates.rows if self._some is None else self._some

    @property
    def whole(self) -> bool:
        """Whether it is of all replicates that were not lost."""
        return self._some is None

    @cached_property
    def groups(self) -> NDArray[Any] | None:
        """The group of every replicate; None if they are independent."""
        found = self.replicates.arrays.get(GROUP)
        return None if found is None else np.asarray(found[self.rows])

    @property
    def n(self) -> int:
        """How many replicates there are."""
        return self.u.size

    @cached_property
    def u(self) -> Floats:
        """Positions of the truths, in the order of the replicates."""
        return self.array("u") if self.pool is None else self._shared / self.pool.shape[1]

    @cached_property
    def tied(self) -> bool:
        """Whether truth and draws have ties, too many to break them at random."""
        kept = self.replicates.arrays.get(f"{TIED}{self.name}")
        if kept is None or self.chains or not kept.shape[1] > 1:
            return False
        # Equal members have the lowest of their ranks: so many ranks are missing.
        several = np.sort(kept[self.replicates.rows], axis=1)
        equal = (several[:, 1:] == several[:, :-1]) & (several[:, 1:] > 0)
        return bool(equal.any() and equal.sum() >= _TIES * several.size)

    @cached_property
    def pool(self) -> NDArray[np.int16] | None:
        """How many members lie below each, if there are ties."""
        if not self.tied:
            return None
        kept = self.replicates.arrays[f"{TIED}{self.name}"][self.rows]
        found: NDArray[np.int16] = kept.astype(np.int16) - 1
        if (bare := kept[:, 0] == 0).any():  # without ties any order of the draws will do
            size = kept.shape[1]
            found[bare] = (np.arange(size) + (self.array("u")[bare, None] * size).astype(np.int64)) % size
        return found

    @cached_property
    def few_valued(self) -> bool:
        """Whether the function has so few values that spread and bias of its ranks do not tell how far it is off."""
        if self.pool is None:
            return False
        # The lowest ranks of equal members: of a group of m members, m^2 pairs are equal.
        ordered = np.sort(self.pool, axis=1)
        last = np.ones(ordered.shape, bool)
        last[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
        sizes = (np.arange(1, ordered.shape[1] + 1) - ordered)[last].astype(float)
        return bool(np.square(sizes).sum() >= FEW_VALUES * ordered.size * ordered.shape[1])

    @cached_property
    def _shared(self) -> Floats:
        """Where the truth stands among the ranks that it shares, between the lowest and one above the highest."""
        assert self.pool is not None
        low = self.pool[:, 0]
        turns = (0.5 + _GOLDEN * np.arange(len(low))) % 1
        return np.asarray(low + turns * (self.pool == low[:, None]).sum(axis=1))

    @cached_property
    def fewest_and_most(self) -> tuple[int, int]:
        """The smallest and the largest number of draws; 0 for an exact law."""
        if self.pool is not None:
            return self.pool.shape[1] - 1, self.pool.shape[1] - 1
        draws = self.array("draws")
        # Two numbers tell the route: all exact, all ranked among as many, or a mixture of both.
        return (int(draws.min()), int(draws.max())) if draws.size else (0, 0)

    @property
    def draws(self) -> int | None:
        """The number of draws that every truth was ranked among, if it is one, and ranks are told apart."""
        low, high = self.fewest_and_most
        return low if 0 < low == high <= MOST_RANKS else None

    @cached_property
    def chains(self) -> bool:
        """Whether outputs are Markov chains: then u is for pictures, and tests and sizes are those of chains."""
        return bool((self.replicates.treated[self.rows] & CHAINS).any())

    @property
    def route(self) -> str:
        """How the truths came to their u."""
        if self.chains:
            return chains.route(self)
        low, high = self.fewest_and_most
        if high == 0:
            return "exact"
        if low == high:
            return f"ranks of {low}{', with ties' if self.tied else ''}"
        return f"ranks of {low}-{high}" if low else "exact or ranks"

    @cached_property
    def values(self) -> NDArray[Any]:
        """Ranks, or sorted u: no test asks which z belongs to which u."""
        if self.pool is not None:
            return self._shared.astype(np.int64)
        if self.draws is not None:
            return self.array("rank")
        return np.sort(self.u) if self._some is None else self.u

    @cached_property
    def scores(self) -> NDArray[Any]:
        """Ranks, or normal scores."""
        return self.array("z") if self.draws is None else self.values

    @cached_property
    def weak(self) -> Floats | None:
        """Sorted positions of one draw of every output in the belief; None if they are not known."""
        # Sorted once, for the test of the weak level and for its distance.
        ordered = np.sort(self.array("weak_u"))
        return None if np.isnan(ordered[-1:]).any() else ordered  # nan sorts last

    @cached_property
    def misses(self) -> Floats:
        """By how many of their sd outputs miss the truth; nan where mean or sd are not known, or the sd is 0."""
        truth, mean, sd = (self.array(name) for name in ("truth", "mean", "sd"))
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray((truth - mean) / np.where(sd > 0, sd, np.nan))

    @cached_property
    def repeated(self) -> bool:
        """Whether truths repeat each other, as those of a discrete test function do."""
        truth = self.array("truth")
        # Those of one group may well be the same.
        return bool(2 * np.unique(truth).size < (truth.size if self.groups is None else np.unique(self.groups).size))

    @property
    def far_share(self) -> float:
        """The share of truths outside central 95 % intervals."""
        return float(np.mean(np.abs(self.u - 0.5) > 0.475))

    @cached_property
    def fifths(self) -> Floats:
        """The share of truths in each fifth of the output."""
        return np.asarray(np.histogram(self.u, bins=5, range=(0, 1))[0] / len(self.u))


def columns_of(replicates: Replicates, sees: Sees | None = None) -> list[Column]:
    """Return the columns of a record, or those whose test function sees this; made once, so that u is sorted once."""
    # In the record's own dict, so that the columns live as long as it and no longer.
    every: Sequence[Column] | None = vars(replicates).get("_columns")
    if every is None:
        every = [Column(replicates, k) for k in range(len(replicates.functions))]
        vars(replicates)["_columns"] = every
    return [column for column in every if sees in (None, column.sees)]


def strong_columns(replicates: Replicates) -> list[Column]:
    """Return the columns of test functions of theta alone: those that have a size."""
    return columns_of(replicates, "theta")


def column_named(replicates: Replicates, name: str) -> Column | None:
    """Return the column of a test function, None if there is none of that name."""
    return next((column for column in columns_of(replicates) if column.name == name), None)
