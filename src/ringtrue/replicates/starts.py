"""Truths for observed data: draws of the procedure's own output, each handed to one replicate.

Fits to the observed data are numbered, each with a random stream of its own, and give equally many truths each; so the
truth of a replicate is a function of its number, whoever computes it, and there are as many as are asked for. This
module judges nothing.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..distributions import Draws
from ..errors import InvalidStudy
from ..question.study import Study
from ..streams import Streams
from ..values import Floats, entries, leading_shape, stack_values, take
from .chains import effective_size, split

#: Autocorrelation times between two truths of one chain. The correlation of a chain that forgets exponentially falls by
#: exp(-2) in each: at three of them, 0.0025 is left, which adds half a percent to the variance of a mean.
_APART = 3
#: Outputs of a batch that are looked at for it.
_ROWS = 10


def truths(study: Study, block: int, m: int) -> Any:
    """Return the truths of a block, m of them on axis 0, which no other block has.

    Parameters
    ----------
    study
        The question, about observed data.
    block, m
        Which, and how many truths every block has.
    """
    output = _output(study, 0)
    if output.size is None:  # a law gives as many as are wanted
        drawn = output.sample(1 if study.batch else m, Streams(study.seed).generator("truth", block))
        return take(take(drawn, 0), slice(m)) if study.batch else drawn
    each = leading_shape(_apart(study, 1), 1)[0]
    index = np.arange(block * m, (block + 1) * m)
    return stack_values([take(_apart(study, 1 + int(i) // each), int(i) % each) for i in index])


@lru_cache(maxsize=8)
def _output(study: Study, number: int) -> Any:
    """Return the output of one of the fits to the observed data."""
    output = study.learn_observed(Streams(study.seed).generator("start", number))
    if output.sample is None:
        raise InvalidStudy(
            f"the procedure's output for y_obs must be something to draw truths from, but {type(output).__name__} "
            f"cannot; give it a sample."
        )
    return output


@lru_cache(maxsize=8)
def _apart(study: Study, number: int) -> Any:
    """Return draws of one of the fits, on axis 0, that are as good as independent; of all fits equally many."""
    output = _output(study, number)
    # Draws of one weighted sample depend on each other through it: each fit gives one, or one per place of a batch.
    if not isinstance(output, Draws) or output.weights is not None:
        drawn = output.sample(1, Streams(study.seed).generator("start", number, 1))
        return take(drawn, 0) if study.batch else drawn
    length = output.size // (output.chains or 1)
    # From the end, where a chain has forgotten most. The first fit tells how far apart, and no truth is from it.
    place = np.arange(length - 1, -1, -_spacing(study))
    rows = (place + length * np.arange(output.chains or 1)[:, None]).ravel()
    return _flat(take(output.values, rows)) if study.batch else take(output.values, rows)


def _flat(value: Any) -> Any:
    """Return draws of a batch, (draws, places, ...), as draws of one output."""
    if isinstance(value, dict):
        return {name: _flat(part) for name, part in value.items()}
    return value.reshape(-1, *value.shape[2:])


@lru_cache(maxsize=4)
def _spacing(study: Study) -> int:
    """Return how many steps of a chain lie between two truths."""
    output = _output(study, 0)
    if output.iid:
        return 1
    chains, numbers = output.chains or 1, entries(output.values, 2 if study.batch else 1)
    length = int(output.size) // chains
    if numbers is None:
        return length
    time = _slowest(numbers[:, :_ROWS] if study.batch else numbers[:, None], chains)
    return min(length, math.ceil(_APART * max(time, 1.0)))


def _slowest(numbers: Floats, chains: int) -> float:
    """Return the largest autocorrelation time of (draws, outputs, entries), or of their squares; infinite if unknown.

    Steps to the other side of the mean make a chain forget its entries long before it forgets their squares.
    """
    draws, outputs, _ = numbers.shape
    both = np.concatenate([numbers, np.square(numbers - numbers.mean(axis=0))], axis=2)
    rows = np.moveaxis(both, 0, -1).reshape(-1, chains, draws // chains)
    times = draws / effective_size(split(rows)).reshape(outputs, -1)
    known = times[:, np.isfinite(times).all(axis=0)].mean(axis=0)  # outputs are of the same data
    return float(known.max(initial=-np.inf)) if known.size else math.inf
