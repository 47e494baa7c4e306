"""Whether all test functions were evaluated at the same draw of an output.

Outputs that know laws and cannot be sampled give a draw of every test function by itself: together these are no draw of
the output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..block import Block
from ..record import SAME_DRAW, Field


class SameDraw:
    """An array that is there if outputs can be sampled; a record of which some could not loses it, as it should."""

    fields: tuple[Field, ...] = ()
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return ones, or nothing."""
        return {} if block.outputs.whole.sample is None else {SAME_DRAW: np.ones(block.b, np.int8)}


REDUCER = SameDraw()
