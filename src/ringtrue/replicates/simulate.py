"""From a study to spans of replicates, each replicate a function of (seed, index) alone.

Here replicates are simulated one after the other or batch after batch: what a worker does, wherever it is. It knows no
tests, no stores and no other workers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..distributions.batches import draws_available
from ..errors import InvalidStudy
from ..functions.contract import take
from ..question.study import Study
from .pieces import Piece, Raised, kept_draws, measure, scalar_piece, simulate_batch, simulate_one
from .record import Failure
from .recording import OnFailure, Recorder
from .spans import Span
from .streams import Streams

Keep = Literal["draws"] | None

#: Scalar replicates whose statistics are computed together; it changes nothing but speed.
_GROUP = 128


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of some replicates: a span, and, if they were to stop at a failure, that failure.

    ``error`` is the exception behind the first failure, where it is at hand.
    """

    span: Span
    failure: Failure | None = None
    error: Exception | None = None


def computed(study: Study, first: int, count: int, *, keep: Keep = None, on_failure: OnFailure = "record") -> Outcome:
    """Simulate and measure consecutive replicates.

    Parameters
    ----------
    study
        The question.
    first, count
        Which; of a batched study, whole batches, the last of which may reach beyond.
    keep
        "draws" keeps truths and draws too.
    on_failure
        "raise" stops at the first failure: the span ends before it (before its batch).
    """
    start = time.perf_counter()
    size = study.batch or _GROUP
    recorder = Recorder(study, first, count)
    kept: list[tuple[NDArray[np.int64], dict[str, NDArray[Any]]]] = []
    for begin in range(first, first + count, size):
        for piece in _pieces(study, recorder, begin, min(size, first + count - begin), on_failure):
            recorder.record(piece)
            if keep:
                kept.append((piece.index - first, kept_draws(study, recorder.streams, piece)))
        if on_failure == "raise" and recorder.failures:
            break
    span = recorder.span(seconds=time.perf_counter() - start, kept=_side_by_side(kept, count))
    if on_failure == "record" or not span.failures:
        return Outcome(span, None, recorder.error)
    failure = span.failures[0]
    end = failure.replicate if study.batch is None else max(failure.replicate // size * size, first)
    return Outcome(span.part(first, end), failure, recorder.error)


def _side_by_side(kept: list[tuple[NDArray[np.int64], dict[str, NDArray[Any]]]], count: int) -> dict[str, NDArray[Any]]:
    """Return the kept arrays of pieces as those of their span; lost replicates are nan."""
    if not kept:
        return {}
    whole = {name: np.full((count, *part.shape[1:]), np.nan) for name, part in kept[0][1].items()}
    for index, parts in kept:
        mine = (index >= 0) & (index < count)
        for name, part in parts.items():
            if part.shape[1:] != whole[name].shape[1:]:
                raise InvalidStudy("draws can be kept if all outputs have equally many, but they do not.")
            whole[name][index[mine]] = part[mine]
    return whole


def replay(study: Study, replicate: int) -> tuple[Any, Any, Any]:
    """Run one replicate alone, test functions included, and return its (theta, y, output).

    Whatever it raises comes through unchanged.

    For a batched study the batch that holds the replicate is run; theta and y are the replicate's own.
    """
    need_study(study)
    if isinstance(replicate, bool) or not isinstance(replicate, Integral) or not 0 <= replicate < study.n:
        raise InvalidStudy(f"replicate must lie in 0..{study.n - 1}, but {replicate!r} arrived.")
    streams = Streams(study.seed)
    try:
        if study.batch is None:
            done = simulate_one(study, streams, int(replicate))
            measure(study, streams, scalar_piece([(int(replicate), *done)]))
            return done
        block, inside = divmod(int(replicate), study.batch)
        piece = simulate_batch(study, streams, block)
        measure(study, streams, piece)
        return take(piece.theta, inside), take(piece.y, inside), piece.output
    except Raised as raised:
        raise raised.error from None


def need_study(study: Any) -> None:
    """Refuse what is not a study."""
    if not isinstance(study, Study):
        raise TypeError(f"a ringtrue.Study is needed, but {type(study).__name__} arrived.")


def _pieces(study: Study, recorder: Recorder, first: int, count: int, on_failure: OnFailure) -> list[Piece]:
    if study.batch is not None:
        return _batch(study, recorder, first, count)
    return _scalars(study, recorder, first, count, on_failure)


def _scalars(study: Study, recorder: Recorder, first: int, count: int, on_failure: OnFailure) -> list[Piece]:
    """Simulate replicates one by one and put outputs of one kind together; those that fail are the recorder's."""
    kinds: dict[Any, list[tuple[int, Any, Any, Any]]] = {}
    for i in range(first, first + count):
        try:
            done = (i, *simulate_one(study, recorder.streams, i))
        except Raised as raised:
            recorder.lost([i], raised.error, raised.stage)
            if on_failure == "raise":
                break
        else:
            kinds.setdefault((type(done[3]), draws_available(done[3])), []).append(done)
    return [scalar_piece(alike) for alike in kinds.values()]


def _batch(study: Study, recorder: Recorder, first: int, count: int) -> list[Piece]:
    """Simulate one batch; if it fails, all its replicates are lost."""
    try:
        return [simulate_batch(study, recorder.streams, first // (study.batch or 1))]
    except Raised as raised:
        recorder.lost(range(first, first + count), raised.error, raised.stage)
        return []
