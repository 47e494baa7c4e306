"""One draw of every output, and where it falls in the belief: what the weak level compares."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...functions import SEVERAL
from ...question.study import Question
from ...streams import Streams
from ...values import Floats, leading_shape, take
from .. import positions
from ..block import Block, law_of
from ..record import Field

#: Fresh draws of mu0 for the joint weak test, whose cost grows with their square.
_JOINT = 2000
#: Fresh draws of mu0 made together, at most; each group is a stream of its own, so that more can be made later.
_GROUP = 1000
#: Where the first groups begin: a short run needs few, and drawing may be slow.
_FIRST = (0, 100, 200, 400)


class Weak:
    """f at one draw of every output, and its position in mu0's exact law of f."""

    fields = (Field("weak_value"), Field("weak_u"), Field("weak_z"))
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return values and positions side by side; nan for functions that see more than theta."""
        arrays = {field.name: np.full((len(block.functions), block.b), np.nan) for field in self.fields}
        mu0 = compared_belief(block.question)
        for k in block.strong:
            arrays["weak_value"][k] = _value(block, k)
            law = None if mu0 is None else law_of(mu0, block.functions[k])
            # Where mu0's law is exact, the draw is placed in it and needs no fresh draws to compare with.
            if law is not None:
                place = positions.exact(law, arrays["weak_value"][k], lambda k=k: _spread(block, k))  # type: ignore[misc]
                arrays["weak_u"][k], arrays["weak_z"][k] = place["u"], place["z"]
        return {name: array.T for name, array in arrays.items()}


def _value(block: Block, k: int) -> Floats:
    """Return f at one draw of every output."""
    f, ready = block.functions[k], block.outputs.ready
    if ready is not None:
        draws = leading_shape(ready.values, 1)[0]
        # Chosen by the replicate's own uniform: grouping replicates in another way chooses the same draw.
        chosen = (block.jitter[:, -1] * draws).astype(int)
        return block.evaluate(f, take(ready.values, (chosen, np.arange(block.b))), 1)
    if block.outputs.whole.sample is None:
        law = block.laws[k]
        assert law is not None
        return np.asarray(block.outputs.from_law(law, k)[0])
    return block.evaluate(f, block.outputs.one_draw, 1)


def _spread(block: Block, k: int) -> Floats:
    """Return the uniforms that spread atoms of mu0."""
    return block.streams.uniforms("judgement", block.index, len(block.functions))[:, k]


def compared_belief(question: Question) -> Any:
    """Return the belief that the weak level compares with; None if it is not known, or is not the law of the truth."""
    return question.mu0 if question.of_belief else None


def reference_size(question: Question, n: int) -> int:
    """Return how many fresh draws of mu0 the weak level needs: n where a law is missing, some for the joint test."""
    mu0 = compared_belief(question)
    if mu0 is None:
        return 0
    if any(law_of(mu0, f) is None for f in question.functions if f.sees == "theta"):
        return n
    return min(n, _JOINT) if sum(f.kind == "coordinate" for f in question.functions) > 1 else 0


def reference_values(question: Question, start: int, stop: int) -> Floats:
    """Return f at the fresh draws ``start`` to ``stop`` of mu0, whole groups of them at a time."""
    edges = [*_FIRST, *range(_GROUP, stop + _GROUP, _GROUP)]
    groups = [(first, end) for first, end in pairwise(edges) if start < end and first < stop]
    if not groups:
        return np.empty((0, len(question.functions)))
    offset = groups[0][0]
    rows = [_reference_group(question, first, end) for first, end in groups]
    return np.concatenate(rows)[start - offset : stop - offset]


def _reference_group(question: Question, first: int, end: int) -> Floats:
    values = np.full((end - first, len(question.functions)), np.nan)
    fresh = question.mu0.sample(end - first, Streams(question.seed).generator("reference", 1 + first))
    for k, f in enumerate(question.functions):
        if f.sees == "theta":
            values[:, k] = f.evaluate(fresh, SEVERAL)
    return values


REDUCER = Weak()
