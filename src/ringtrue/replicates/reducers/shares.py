"""Shares: of test functions whose values are labels, 0 and 1 or 0 to 19, how probable outputs call each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distributions import Law
from ...values import Floats
from ..block import Block
from ..record import LABELS, SHARES, WEIGHTED, Field

#: What the probabilities of all labels may miss of 1 by rounding.
_WHOLE = 1e-9


class Shares:
    """How many draws have each label, or its exact probability, and last how many draws there are, 0 if exact.

    Both ends of an exact law are kept to their own accuracy, in 32 bits: a probability of 1e-20 is not 0.
    """

    fields: tuple[Field, ...] = ()
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return an array for every test function of labels, by its name."""
        ready = block.outputs.ready
        if ready is not None and (ready.chains or ready.treated & WEIGHTED):  # their shares have another law
            return {}
        found = {}
        for k in block.strong:
            if not are_labels(block.truths[k]):
                continue
            law = block.laws[k]
            shares = _of_draws(_drawn(block, k)) if law is None else _of_law(law, block.b)
            if shares is not None:
                found[f"{SHARES}{block.functions[k].name}"] = shares
        return found


def _drawn(block: Block, k: int) -> Floats:
    """Return all draws that are at hand, (draws, replicates)."""
    ranked = block.ranked[k]
    return ranked.some if ranked.values is None else ranked.values


def are_labels(values: Floats) -> bool:
    """Whether all values that are not lost are whole numbers from 0 to 19."""
    return bool((np.isin(values, np.arange(LABELS)) | ~np.isfinite(values)).all())


def _of_draws(draws: Floats) -> NDArray[Any] | None:
    if not are_labels(draws):
        return None
    counts = (draws[..., None] == np.arange(LABELS)).sum(axis=0)
    return np.column_stack([counts, np.full(len(counts), len(draws))]).astype(np.float32)


def _of_law(law: Law, many: int) -> NDArray[Any] | None:
    """Return the probabilities of labels; None if they are not all there is."""
    if not law.atoms:
        return None
    shares = np.broadcast_to(_probabilities(law, many), (LABELS, many)).T
    if not np.abs(shares.sum(axis=1) - 1).max() < _WHOLE:
        return None
    return np.column_stack([shares, np.zeros(many)]).astype(np.float32)


def _probabilities(law: Law, many: int) -> Floats:
    """Return the probabilities of labels, (labels, replicates), each from whichever tail is accurate."""
    # Just below every label, then the labels, in one call: of a single output a call costs more than its numbers.
    points = np.repeat(np.concatenate([np.arange(LABELS) - 1e-9, np.arange(LABELS)])[:, None], many, axis=1)
    (before, lower), (upper, behind) = (np.split(np.asarray(tail(points)), 2) for tail in (law.cdf, law.sf))
    return np.maximum(np.where(lower < upper, lower - before, upper - behind), 0.0)


REDUCER = Shares()
