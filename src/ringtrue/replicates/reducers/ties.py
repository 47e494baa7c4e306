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
from ..block import ENOUGH, Block
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
                kept = (positions.member_ranks(draws, truth) + 1).astype(np.uint8)
                found[f"{TIED}{f.name}"] = kept if len(tied) < block.b else np.where(tied[:, None], kept, 0)
        return found


def _draws(block: Block, k: int) -> Floats | None:
    """Return draws of a test function that may tie, (draws, replicates); None where a law has no atoms."""
    law = block.laws[k]
    if law is None:
        return block.ranked[k].some
    return block.outputs.from_law(law, k, "members", ENOUGH - 1) if law.atoms else None


def _tied(block: Block, draws: Floats, truth: Floats) -> NDArray[np.bool_]:
    """Return which replicates have equal members: of a batch, the first ones tell; singles may be in other company."""
    some = slice(0, _LOOKED if block.outputs.members is None else None)
    members = np.sort(np.concatenate([truth[None, some], draws[:, some]]), axis=0)
    return np.asarray((members[1:] == members[:-1]).any(axis=0))


REDUCER = Ties()
