"""Ties: of test functions with equal values, how truth and draws lie among each other, with nothing broken at random.

Which replicates this is kept of depends on all members alike, never on which of them is the truth: tests that exchange
them stay exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...values import Floats
from .. import positions
from ..block import ENOUGH, Block, Drawn
from ..record import TIED, WEIGHTED, Field

#: Replicates of a block that are looked at for ties.
_LOOKED = 4


class Ties:
    """One more than how many members lie below each, truth first, of at most a hundred draws; 0 where none tie."""

    fields: tuple[Field, ...] = ()
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return an array for every test function that has ties, by its name."""
        ready = block.outputs.ready
        if ready is not None and (ready.chains or ready.treated & WEIGHTED):  # resampled draws repeat by themselves
            return {}
        found = {}
        for k, f in enumerate(block.functions):
            draws, truth = _draws(block, k), block.truths[k]
            if draws is not None and (tied := _tied(block, draws, truth)).any():
                kept = (positions.member_ranks(draws.values, truth) + 1).astype(np.uint8)
                found[f"{TIED}{f.name}"] = kept if len(tied) < block.b else np.where(tied[:, None], kept, 0)
        return found


def _draws(block: Block, k: int) -> Drawn | None:
    """Return draws of a test function that may tie; None where a law has no atoms."""
    law = block.laws[k]
    if law is None:
        return block.ranked[k].drawn
    return Drawn(block.outputs.from_law(law, k, "members", ENOUGH - 1)) if law.atoms else None


def _tied(block: Block, draws: Drawn, truth: Floats) -> NDArray[np.bool_]:
    """Return which replicates have equal members: of a batch, the first ones tell; singles may be in other company."""
    few = draws.ordered if block.outputs.members is not None else np.sort(draws.rows[:_LOOKED], axis=1)
    return np.asarray((few[:, 1:] == few[:, :-1]).any(axis=1) | (few == truth[: len(few), None]).any(axis=1))


REDUCER = Ties()
