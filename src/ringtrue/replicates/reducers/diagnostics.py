"""What samplers say of themselves: numbers that came with the draws, under their own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distributions import Draws
from ..block import Block
from ..record import DIAGNOSTIC, Field


class Diagnostics:
    """One array per name, one number per replicate; nan where an output does not have it."""

    fields: tuple[Field, ...] = ()
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return the numbers by name."""
        whole = block.outputs.whole
        if isinstance(whole, Draws):
            return {f"{DIAGNOSTIC}{name}": np.broadcast_to(x, (block.b,)) for name, x in whole.diagnostics.items()}
        said = [one.diagnostics if isinstance(one, Draws) else {} for one in block.outputs.members or ()]
        return {
            f"{DIAGNOSTIC}{name}": np.array([float(one.get(name, np.nan)) for one in said])
            for name in sorted(set().union(*said))
        }


REDUCER = Diagnostics()
