"""What samplers say of themselves: numbers that came with the draws, under their own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distributions import Draws
from ..block import Block
from ..record import Field

#: How their arrays are named.
DIAGNOSTIC = "diagnostic/"


class Diagnostics:
    """One array per name, one number per replicate; nothing where not all outputs of a block have it."""

    fields: tuple[Field, ...] = ()
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return the numbers by name."""
        whole = block.outputs.whole
        if isinstance(whole, Draws):
            return {
                f"{DIAGNOSTIC}{name}": np.broadcast_to(np.asarray(value, float), (block.b,))
                for name, value in whole.diagnostics.items()
            }
        members = block.outputs.members or ()
        if not members or not all(isinstance(one, Draws) and one.diagnostics for one in members):
            return {}
        common = set.intersection(*(set(one.diagnostics) for one in members))
        return {
            f"{DIAGNOSTIC}{name}": np.array([float(one.diagnostics[name]) for one in members])
            for name in sorted(common)
        }


REDUCER = Diagnostics()
