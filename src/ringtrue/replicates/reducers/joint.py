"""How truth and draws lie among each other in all entries at once: what tests of the joint law need.

Of the first replicates the ranks of every member are kept, truth first, entry by entry, and its ranks by energy and by
band depth. Which replicates these are depends on their numbers alone. Of Markov chains the first is the reference in
which the truth and the last draw of every other chain are placed: given the reference these are exchangeable, whatever
the autocorrelation, and nothing is thinned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...functions import pooled
from ...values import Floats
from ..block import Block, rounded_like
from ..positions import member_ranks
from ..record import JOINT, PLACES, WEIGHTED, Field

#: Bytes that the ranks of all replicates up to here may take.
_BYTES = 24_000_000


class Joint:
    """Arrays under ``joint/``: of outputs with two or more entries that are asked about, and two or more draws."""

    fields: tuple[Field, ...] = ()
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return the ranks of members, or none of them if a block is beyond the first replicates."""
        columns = [f for f in block.functions if f.kind == "coordinate"]
        ready = block.outputs.ready
        if len(columns) < 2 or (ready is None and block.outputs.whole.sample is None):
            return {}
        if ready is not None and (ready.treated & WEIGHTED or ready.chains == 1):
            return {}
        chains = ready.chains if ready is not None else 0
        many = chains if chains else 1 + _draws(block)
        few = int(np.searchsorted(block.index, _BYTES // (many * (len(columns) + 2))))
        # Two members have the same product of scores: there is nothing to exchange.
        if not few or many < (2 if chains else 3):
            return {}
        with np.errstate(invalid="ignore", over="ignore"):  # lost replicates have draws that are not finite
            arrays = _of_chains(block, columns, chains) if chains else _of_pool(block, columns)
        return {f"{JOINT}{name}": array[:few] for name, array in arrays.items()}


def _draws(block: Block) -> int:
    pool = block.pool
    return len(next(iter(pool.values())) if isinstance(pool, Mapping) else pool) - 1


def _of_pool(block: Block, columns: Any) -> dict[str, NDArray[Any]]:
    """Return ranks among truth and draws."""
    # (members, replicates, entries), the entries in the order of their test functions.
    members = np.stack([block.evaluate(f, block.pool, 2) for f in columns], axis=-1)
    ranks = np.stack([_ranked(members[..., k]) for k in range(members.shape[-1])], axis=2)
    return {"ranks": ranks, **_central(members, pooled.energy(members), pooled.band(pooled.entry_ranks(members)))}


def _central(members: Floats, energy: Floats, band: Floats) -> dict[str, NDArray[Any]]:
    return {name: _ranked(np.round(values, 9)) for name, values in (("energy", energy), ("band", band))}


def _ranked(values: Floats) -> NDArray[np.uint8]:
    """Return the rank of every member, the lowest for equal ones, (replicates, members)."""
    return member_ranks(values[1:], values[0]).astype(np.uint8)


def _of_chains(block: Block, columns: Any, chains: int) -> dict[str, NDArray[Any]]:
    """Return places of the truth and of the last draws of other chains in the first chain."""
    ready = block.outputs.ready
    assert ready is not None
    theta = rounded_like(block.theta, ready.values)
    truth = np.stack([block.evaluate(f, theta, 1) for f in columns], axis=-1)
    draws = np.stack([block.evaluate(f, ready.values, 2) for f in columns], axis=-1)
    length = len(draws) // chains
    reference, last = draws[:length], draws[2 * length - 1 :: length][: chains - 1]
    members = np.concatenate([truth[None], last])
    places = np.stack([_placed(members[j], reference) for j in range(len(members))])
    unit = np.maximum(reference.std(axis=0), np.finfo(float).tiny)
    away = np.stack([np.sqrt(np.square((reference - one) / unit).sum(axis=-1)).mean(axis=0) for one in members])
    depth = (places * (1 - places)).sum(axis=-1)
    whole = np.nan_to_num(PLACES * places).astype(np.uint8)
    return {"places": np.swapaxes(whole, 0, 1), **_central(members, away, depth)}


def _placed(values: Floats, reference: Floats) -> Floats:
    """Return the place of values (replicates, entries) in a chain (draws, replicates, entries), between 0 and 1."""
    below, ties = (reference < values).sum(axis=0), (reference == values).sum(axis=0)
    return np.asarray((below + 0.5 * (ties + 1)) / (len(reference) + 1))


REDUCER = Joint()
