"""Markov chains: how the truth and the chains lie in each other, and how well the chains agree.

What is kept is a fixed number of numbers per replicate and test function; see ``replicates/chains.py``. Of draws that
nobody called independent or chains, it is how alike neighbours are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...values import Floats, take
from ..block import Block
from ..chains import Placed, cut, serial
from ..record import OF_CHAINS, Field

#: Numbers placed at once: they and what is made of them stay in the cache.
_CACHED = 1 << 15
#: Replicates, test functions and draws that are enough to tell a chain by.
_REPLICATES, _FUNCTIONS, _DRAWS = 1000, 8, 200


class Chains:
    """Arrays of every test function, if the draws of all outputs of a block are chains."""

    fields: tuple[Field, ...] = ()
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return the arrays by name: the replicate on axis 0, the test function on axis 1."""
        ready = block.outputs.ready
        if ready is None or not ready.chains:
            return {} if ready is None or ready.said else _neighbours(block)
        arrays = _of_functions(block, ready.chains)
        return {"chain_count": np.full(block.b, ready.chains), **arrays}


def _of_functions(block: Block, chains: int) -> dict[str, NDArray[Any]]:
    """Return arrays with axes (replicate, test function): as many functions side by side as stay in the cache."""
    many, b = len(block.functions), block.b
    values = [block.ranked[k].values for k in range(many)]
    assert values[0] is not None
    step = max(1, _CACHED // len(values[0]))
    beside = max(1, step // b)
    each: list[dict[str, NDArray[Any]]] = []
    for k in range(0, many, beside):
        rows = np.concatenate([cut(one, chains) for one in values[k : k + beside] if one is not None])
        truth = np.concatenate(block.truths[k : k + beside])
        each += [_of_rows(rows[i : i + step], truth[i : i + step]) for i in range(0, len(rows), step)]
    found = {f"{OF_CHAINS}{name}": np.concatenate([part[name] for part in each]) for name in each[0]}
    return {name: np.swapaxes(array.reshape(many, b, *array.shape[1:]), 0, 1) for name, array in found.items()}


def _of_rows(rows: Floats, truth: Floats) -> dict[str, NDArray[Any]]:
    placed = Placed(rows, truth)
    # Chains of the largest numbers are further apart than numbers go.
    with np.errstate(over="ignore", invalid="ignore"):
        rhat, size = placed.agreement()
        stuck = placed.stuck().astype(float)
    return {
        "differences": placed.differences(),
        "below": placed.below(),
        "noise": placed.noise(),
        "members": placed.members(),
        "length": np.full(len(truth), float(placed.shape[2])),
        "rhat": rhat,
        "size": size,
        "stuck": stuck,
    }


def _neighbours(block: Block) -> Mapping[str, NDArray[Any]]:
    """Return how alike neighbouring draws are, of the first replicates and test functions: they are enough."""
    # It depends on a replicate's number and not on n, so that n can be extended.
    some = block.index < _REPLICATES
    found = np.full((block.b, len(block.functions), 2), np.nan)
    for k in (block.strong if some.any() else ())[:_FUNCTIONS]:
        found[some, k] = serial(_values(block, k)[:, some])
    return {f"{OF_CHAINS}serial": found}


def _values(block: Block, k: int) -> Floats:
    """Return f at the first draws, from what ranking left of it if it left all."""
    known = block.ranked[k].values
    if known is not None:
        return known[:_DRAWS]
    return block.evaluate(block.functions[k], take(block.outputs.at_hand, slice(0, _DRAWS)), 2)


REDUCER = Chains()
