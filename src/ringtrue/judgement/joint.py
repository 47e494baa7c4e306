"""The joint law of all entries, as a judgement reads it: tests, sizes, and what could not be looked at.

The only place that knows how members are kept in a record. It reads the record and reaches no verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..replicates.record import CHAINS, GROUP, JOINT, PLACES, WEIGHTED, Replicates
from ..statistics import combining, effects, matched, sequential
from ..statistics.effects import Interval
from ..statistics.effects.intervals import clopper_pearson
from ..values import Floats, Ints
from . import groups
from .column import columns_of
from .text import free

#: Kinds of the rows of tests of the joint law.
CORRELATIONS, ENERGY, BAND = "correlations", "energy", "band"
KINDS = (CORRELATIONS, ENERGY, BAND)
#: Pairs of entries whose sizes are shown, those with the clearest errors.
_SHOWN = 3
#: Replicates of a block, where evidence is followed over time, and the streams of their labels.
BLOCK, _BLOCKS = 50, 1 << 22
#: Members of which a test can tell something: two replicates at least.
_FEWEST = 2


@dataclass(frozen=True)
class Region:
    """How often the truth is among the most central members, of which there should be a nominal share."""

    nominal: float
    share: float
    low: float
    high: float


class Members:
    """Truth and draws of the first replicates, all entries together.

    Attributes
    ----------
    names
        Of the entries.
    pairs
        Of entries, (pairs, 2).
    ranks
        (n, members, 2): by energy and by band depth.
    chains
        Whether they were placed in a reference chain.
    """

    def __init__(self, replicates: Replicates) -> None:
        self.replicates = replicates
        arrays = replicates.arrays
        self.names = [column.name for column in columns_of(replicates) if column.kind == "coordinate"]
        self.chains = f"{JOINT}places" in arrays
        self._among = arrays[f"{JOINT}{'places' if self.chains else 'ranks'}"]
        both = np.stack([arrays[f"{JOINT}{name}"] for name in (ENERGY, BAND)], axis=-1)
        # Members that tie in everything, and replicates of which nothing was kept, have no rank but 0.
        self._rows = np.flatnonzero(self._among.any(axis=(1, 2)))
        self.ranks: NDArray[Any] = both[self._rows]
        self.pairs: Ints = matched.pairs_of(len(self.names))

    @property
    def n(self) -> int:
        """How many replicates there are."""
        return len(self._rows)

    @cached_property
    def scores(self) -> Floats:
        """Normal scores of members, (n, members, entries)."""
        kept = self._among[self._rows]
        return matched.scores_from_places(kept, PLACES) if self.chains else matched.scores_from_ranks(kept)

    @cached_property
    def tested(self) -> matched.JointTest:
        """What speaks against the joint law."""
        from .levels import labels

        about = (self.scores, self.ranks, self.pairs)
        return combining.in_stages(lambda many: matched.joint_test(*about, rng=labels(), randomisations=many))

    @cached_property
    def correlations(self) -> matched.Correlations:
        """What outputs report of correlations, and by how much it is off."""
        return matched.correlation_errors(self.scores, self.pairs)

    def named(self, pair: int) -> str:
        """Return what a pair of entries is called."""
        return matched.named_pairs(self.names, self.pairs[pair : pair + 1])[0]

    def central(self, kind: str, nominal: float, alpha: float) -> Region:
        """Return how often the truth is among the most central members."""
        ranks, size = self.ranks[:, 0, KINDS.index(kind) - 1].astype(float), self.ranks.shape[1]
        # Small energy is central, small depth is not.
        many = round(nominal * size)
        inside = ranks < many if kind == ENERGY else ranks >= size - many
        hits = int(inside.sum())
        return Region(many / size, hits / self.n, *clopper_pearson(hits, self.n, 1 - alpha, 0))

    @property
    def route(self) -> str:
        """How the members came to their ranks."""
        many = self.ranks.shape[1] - 1
        return f"last draws of {many + 1} chains" if self.chains else f"ranks of {many}"


def names_of_rows(replicates: Replicates) -> dict[str, str]:
    """Return what the three tests are called; names of the user's come first."""
    taken = {function.name for function in replicates.functions}
    return {kind: free("band depth" if kind == BAND else kind, taken) for kind in KINDS}


def blocks(replicates: Replicates) -> list[sequential.Blocks] | None:
    """Return p-values of the three tests in blocks of replicates; None if nothing is known of the joint law.

    A block with a lost replicate has p-values of 1: which tests there are must not depend on what happens later.
    """
    if f"{JOINT}{ENERGY}" not in replicates.arrays or GROUP in replicates.arrays:
        return None
    # Those of a run that goes on were found before.
    known: dict[int, tuple[float, ...]] = vars(replicates).setdefault("_blocks", {})
    for number in range(replicates.n // BLOCK):
        if number not in known:
            known[number] = _of_block(replicates, number)
    found = np.reshape([known[number] for number in range(replicates.n // BLOCK)], (-1, len(KINDS)))
    return [sequential.Blocks(found[:, k], BLOCK, replicates.n) for k in range(len(KINDS))]


def _of_block(replicates: Replicates, number: int) -> tuple[float, ...]:
    from .levels import stream

    found = members_of(replicates.pick(slice(number * BLOCK, (number + 1) * BLOCK)))
    if found is None:
        return (1.0,) * len(KINDS)
    rng = stream(replicates, _BLOCKS + number)  # labels of its own, so that blocks are independent
    return matched.joint_test(found.scores, found.ranks, found.pairs, rng=rng, randomisations=199).adjusted


def members_of(replicates: Replicates) -> Members | None:
    """Return the members of a record's replicates; None if they say nothing of the joint law."""
    found: Members | None
    if "_members" not in vars(replicates):
        found = None if replicates.failures else _looked_up(groups.one_of_each(replicates))
        vars(replicates)["_members"] = found
    found = vars(replicates)["_members"]
    return found


def _looked_up(replicates: Replicates) -> Members | None:
    if f"{JOINT}{ENERGY}" not in replicates.arrays:
        return None
    found = Members(replicates)
    wide = found._among.shape[2] == len(found.names) >= 2
    return found if wide and found.n >= _FEWEST else None


def notes(replicates: Replicates) -> list[str]:
    """Say why the joint law of several entries was not looked at, or in which replicates it was."""
    if sum(function.kind == "coordinate" for function in replicates.functions) < 2:
        return []
    found = members_of(replicates)
    if found is not None:
        rest = [] if found.n >= found.replicates.n else [f"joint law: looked at in the first {found.n} replicates."]
        return [*rest, *_left_out(found)]
    return [f"joint law of all entries not looked at: {_reason(replicates)}."]


def _left_out(found: Members) -> list[str]:
    every = len(found.names) * (len(found.names) - 1) // 2
    return [f"correlations: {len(found.pairs)} of {every} pairs were looked at."] if len(found.pairs) < every else []


def _reason(replicates: Replicates) -> str:
    done = int(np.bitwise_or.reduce(replicates.treated, initial=0))
    if replicates.failures:
        return "replicates were lost"
    if done & WEIGHTED:
        return "weighted draws were resampled, and repeat"
    if done & CHAINS:
        return "it takes two chains or more of each output, as many of all"
    return "it takes two draws or more of each output, as many of all"


def sizes(replicates: Replicates, alpha: float, clearly: float) -> list[tuple[Interval, Interval, Interval]]:
    """Return sizes that describe errors of the joint law: the clearest of correlations, and distances.

    Each comes three times: with an interval that holds over all of them, one each end of which is missed with
    probability alpha, and one each end of which is missed with probability ``clearly``.
    """
    found = members_of(replicates)
    if found is None:
        return []
    shown = found.correlations
    clearest = np.argsort(-np.abs(shown.errors) / np.maximum(shown.sd, 1e-12), kind="stable")[:_SHOWN]
    confidences = (1 - alpha / len(found.pairs), max(1 - 2 * alpha, 0.01), max(1 - 2 * clearly, 0.01))
    rows = [
        tuple(replace(shown.interval(int(pair), one), f=found.named(int(pair))) for one in confidences)
        for pair in clearest
    ]
    size, titles = found.ranks.shape[1] - 1, names_of_rows(replicates)
    of_two = (1 - alpha / 2, *confidences[1:])
    for k, kind in enumerate((ENERGY, BAND)):
        ranks = found.ranks[:, 0, k].astype(np.int64)
        each = (effects.distance(ranks, draws=size, confidence=one, lost=0) for one in of_two)
        rows.append(tuple(replace(m, name="KS distance", f=titles[kind]) for m in each))
    return rows  # type: ignore[return-value]
