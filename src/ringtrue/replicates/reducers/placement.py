"""Where truths fall in their outputs: the currency u, by whichever route there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distributions import Law
from ...errors import InvalidStudy
from .. import positions
from ..block import Block
from ..positions import Place
from ..record import Field


class Placement:
    """u, z, rank and draws of every test function; and the ranks of all members, where they fit in memory."""

    fields = (Field("u"), Field("z"), Field("rank", blank=-1), Field("draws", blank=0), Field("treated", (), 0))
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return the places side by side."""
        known = {k: _exact(block, k, law) for k, law in enumerate(block.laws) if law is not None}
        places = [known[k] if k in known else block.ranked[k].place for k in range(len(block.functions))]
        ready = block.outputs.ready
        arrays = {name: np.stack([place[name] for place in places]).T for name in ("u", "z", "rank", "draws")}
        arrays["treated"] = np.full(block.b, 0 if ready is None else ready.treated)
        return arrays | _members(block)


def _exact(block: Block, k: int, law: Law) -> Place:
    place = positions.exact(law, block.truths[k], lambda: block.jitter[:, k])
    if place["u"].shape != (block.b,):
        raise InvalidStudy(
            f"the output's law of {block.functions[k].name!r} must be that of one number per replicate, but has "
            f"shape {place['u'].shape[1:]}; the output {block.outputs.kind} and theta do not have the same shape."
        )
    return place


def _members(block: Block) -> dict[str, NDArray[Any]]:
    """Return the ranks that every member would have as the truth, for the joint test."""
    values = [block.ranked[k].values for k in block.strong if k in block.ranked]
    ready = block.outputs.ready
    if not values or any(one is None for one in values) or (ready is not None and ready.chains):
        return {}
    draws = len(values[0])  # type: ignore[arg-type]
    if not block.keeps_members(draws):
        return {}
    pairs = zip(values, block.strong, strict=True)
    ranks = [positions.member_ranks(one, block.truths[k]) for one, k in pairs]  # type: ignore[arg-type]
    return {"members": np.stack(ranks, axis=2)}


REDUCER = Placement()
