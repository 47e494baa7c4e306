"""Averages of bounded features of the output's draws, and the same features at the truth, for the weak level.

Up to sixteen draws count, evenly spaced, whatever their autocorrelation: only their average matters, so that Markov
chains need no thinning. Where the belief's mean of a feature is not known, the average over a few fresh draws of the
belief is subtracted from both, other ones for every replicate: rows stay independent, and the noise of an estimated
mean is in their own variance. Of a belief that is drawn from one by one, or with data, the truth itself is subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distributions import Law
from ...distributions.frozen import KernelLaw, Sampler
from ...functions import SEVERAL, TestFunction
from ...question.study import Question, Study
from ...streams import Streams
from ...values import Floats, Ints, width
from ..averages import AVERAGES, looked_at, mean_features, parts
from ..block import AVERAGED, Block, law_of
from ..record import Field
from .weak import compared_belief

#: Draws of the belief per replicate. Where data leave half of the variance, sixteen cost 6 % more replicates than
#: knowing the belief's means. None of a slow belief: that takes about twice the replicates there, 10 % more at a tenth.
_OF_BELIEF = 16
#: Draws of a belief that place entries where its laws are not exact, and of a slow one: any map to positions will do.
_REFERENCE, _FEW = 1000, 100
#: Replicates whose draws of the belief are made together, so that it costs one call; and numbers, at most.
_GROUP, _CHUNK = 64, 1_000_000
#: Bytes that the averages of all replicates up to here may take.
_BYTES = 24_000_000
#: Numbers that are placed at once: with their squares they stay in a core's own cache.
_CACHED = 1 << 15


class Averages:
    """The array of averages and controls, if entries of theta are asked about and the belief is known."""

    fields: tuple[Field, ...] = ()
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return it, or nothing if there is no belief, no entry, or nothing to average over."""
        belief = None if compared_belief(block.question) is None else _belief(block.question)
        if belief is None or block.outputs.whole.sample is None:
            return {}
        # Replicates come in their order, so that those which are kept are the first of a block.
        few = int(np.searchsorted(block.index, _BYTES // belief.bytes))
        if not few:
            return {}
        draws = [one[:, :few] for one in _draws(block, belief.columns)]
        with np.errstate(invalid="ignore"):  # lost replicates have draws that are not finite
            averages = np.concatenate([belief.features(part) for part in _parts(draws)])
            controls = belief.features([block.truths[k][None, :few] for k in belief.columns])
        centre = belief.centre(block.index[:few], width(block.theta)) if belief.many else controls
        # Four bytes are enough for a mean, and a record has many of them.
        return {AVERAGES: np.stack([averages - centre, controls - centre], axis=1).astype(np.float32)}


def _draws(block: Block, columns: Sequence[int]) -> list[Floats]:
    """Return the entries of draws that are at hand, (draws, replicates) each, or of a few fresh ones."""
    if set(columns) <= set(block.wanted):
        return [_spaced(block.ranked[k].some) for k in columns]
    drawn = block.outputs.few_draws()
    return [_spaced(block.evaluate(block.functions[k], drawn, 2)) for k in columns]


def _spaced(values: Floats) -> Floats:
    """Return at most sixteen draws, from the first to the last."""
    many = len(values)
    return values if many <= AVERAGED else values[np.linspace(0, many - 1, AVERAGED).round().astype(int)]


def _parts(draws: Sequence[Floats]) -> list[list[Floats]]:
    """Return some replicates at a time, (draws, replicates) each."""
    many, b = draws[0].shape
    step = max(1, _CACHED // (many * len(draws)))
    return [[one[:, i : i + step] for one in draws] for i in range(0, b, step)]


@dataclass(frozen=True, eq=False)
class _Placed:
    """Where values lie in the belief's law of one entry, between -1 and 1."""

    law: Law | None
    sample: Floats

    def __call__(self, values: Floats) -> Floats:
        if self.law is not None:
            lower = self.law.cdf(values)
            if self.law.atoms:
                return np.asarray(lower + self.law.cdf_left(values) - 1)
            return np.asarray(2 * lower - 1)
        high, low = (np.searchsorted(self.sample, values, side) for side in ("right", "left"))
        # A value that is not a number would come last; it is to stay what it is.
        return np.where(np.isnan(values), np.nan, (high + low) / len(self.sample) - 1)

    @property
    def centred(self) -> bool:
        """Whether features of this entry alone have mean 0 under the belief."""
        return self.law is not None and not self.law.atoms


class _Belief:
    """The belief of a question: where entries lie in it, and what its own draws average to."""

    def __init__(self, question: Question) -> None:
        self.question, self.streams = question, Streams(question.seed)
        entries = [k for k, f in enumerate(question.functions) if f.kind == "coordinate" and f.sees == "theta"]
        self.columns = [entries[j] for j in looked_at(len(entries)).tolist()]
        self.asked: list[TestFunction] = [question.functions[k] for k in self.columns]
        laws = [_cheap(law_of(question.mu0, f)) for f in self.asked]
        sample = self._reference() if any(law is None for law in laws) else [np.empty(0)] * len(laws)
        self.placed = [_Placed(law, values) for law, values in zip(laws, sample, strict=True)]
        # Two for every entry, then one for every pair, whose mean depends on how entries depend on each other.
        self.known = np.array([one.centred for one in self.placed] * 2, bool)

    @cached_property
    def bytes(self) -> int:
        """What the averages and the controls of one replicate take."""
        return 2 * len(parts(len(self.columns))) * np.dtype(np.float32).itemsize

    @property
    def many(self) -> int:
        """How many draws of the belief each replicate has; none of a belief that is drawn one by one, or with data."""
        with_data = isinstance(self.question, Study) and self.question.joint is not None
        return 0 if with_data or isinstance(self.question.mu0, Sampler) else _OF_BELIEF

    def _reference(self) -> list[Floats]:
        question, size = self.question, _REFERENCE if self.many else _FEW
        if isinstance(question, Study):  # which may have drawn some already, and keeps them
            fresh = question.reference(size)
        else:
            fresh = question.mu0.sample(size, self.streams.generator("averages"))
        return [np.sort(np.asarray(f.evaluate(fresh, SEVERAL), float)) for f in self.asked]

    def features(self, values: Sequence[Floats]) -> Floats:
        """Return the features of entries, averaged over the first axis."""
        return mean_features([place(one) for place, one in zip(self.placed, values, strict=True)])

    def centre(self, index: Ints, wide: int) -> Floats:
        """Return what to subtract: the belief's means, or their estimates for each replicate."""
        if len(self.columns) == 1 and self.known.all():
            return np.zeros((len(index), 2))
        # The groups depend on the parameter alone: whoever computes a replicate draws the same numbers for it.
        size = int(np.clip(_CHUNK // (self.many * max(wide, 1)), 1, _GROUP))
        groups = {g: _group(self, g, size) for g in np.unique(index // size).tolist()}
        return np.stack([groups[i // size][i % size] for i in index.tolist()])

    def draw(self, group: int, size: int) -> Floats:
        """Return the averages over fresh draws of the belief, for each replicate of a group."""
        drawn = self.question.mu0.sample(size * self.many, self.streams.generator("averages", 1 + group))
        entries = [np.reshape(np.asarray(f.evaluate(drawn, SEVERAL), float), (size, self.many)).T for f in self.asked]
        found = self.features(entries)
        found[:, : len(self.known)][:, self.known] = 0.0
        return found


def _cheap(law: Law | None) -> Law | None:
    """Return a law that can be asked about every draw; one of a thousand kernels cannot."""
    return None if isinstance(law, KernelLaw) else law


@lru_cache(maxsize=4)  # its draws are the same for all blocks
def _belief(question: Question) -> _Belief | None:
    found = any(f.kind == "coordinate" and f.sees == "theta" for f in question.functions)
    return _Belief(question) if found else None


@lru_cache(maxsize=16)
def _group(belief: _Belief, group: int, size: int) -> Floats:
    return belief.draw(group, size)


REDUCER = Averages()
