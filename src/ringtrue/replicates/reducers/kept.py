"""Truths and draws themselves, for those who want to ask about other test functions later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidStudy, NoRoute
from ..block import Block, Uneven
from ..record import KEPT, Field


class Kept:
    """Arrays named theta and draws, or theta/name and draws/name if they are dicts."""

    fields: tuple[Field, ...] = ()
    keep = "draws"

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return truths and draws, the replicate on the first axis, draws on the second."""
        if not isinstance(block.theta, (np.ndarray, dict)):
            raise InvalidStudy(
                f"draws can be kept of parameters made of numbers, but theta is a {type(block.theta).__name__}; leave "
                f"out keep=."
            )
        arrays = {}
        for name, value in {"theta": block.theta, "draws": _drawn(block)}.items():
            parts = value.items() if isinstance(value, dict) else [("", value)]
            for key, part in parts:
                numbers = np.asarray(part) if name == "theta" else np.swapaxes(part, 0, 1)
                # Whole numbers have no nan for a replicate that is lost.
                stored = numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)
                arrays[f"{KEPT}{name}/{key}" if key else f"{KEPT}{name}"] = stored
        return arrays


def _drawn(block: Block) -> Any:
    """Return draws x replicates: those that exist, or as many as the question takes where there are none."""
    try:
        ready = block.outputs.ready
    except Uneven:
        raise InvalidStudy("draws can be kept if all outputs have equally many, but they do not.") from None
    if ready is not None:
        return ready.values
    if block.outputs.whole.sample is None:
        raise NoRoute(f"draws are to be kept, but the output {block.outputs.kind} cannot be sampled.")
    return block.outputs.all_draws()


REDUCER = Kept()
