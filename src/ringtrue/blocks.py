"""Running a study: block after block of replicates, each a function of (seed, block) alone.

A block is one replicate for a scalar procedure and a batch for a batched one. This is the only place that loops over
replicates. It knows no tests and keeps no records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, Literal

from .batches import draws_available
from .errors import InvalidStudy
from .pieces import Piece, Raised, measure, scalar_piece, simulate_batch, simulate_one
from .preflight import preflight
from .recording import OnFailure, Recorder
from .replicates import Replicates
from .seeding import Streams
from .study import Study
from .testfunctions import take

#: Scalar replicates whose statistics are computed together; it changes nothing but speed.
_GROUP = 128


def run(study: Study, *, on_failure: OnFailure = "raise", progress: Literal["auto", "off"] = "auto") -> Replicates:
    """Simulate the replicates of a study.

    Parameters
    ----------
    study
        The question.
    on_failure
        "raise" stops at the first replicate that fails; "record" keeps a record and goes on, and the verdict is
        then the one that holds whatever the lost replicates would have been.
    progress
        "auto" shows a progress bar on runs of more than two seconds.

    Examples
    --------
    >>> from ringtrue.distributions import Normal
    >>> run(Study(Normal(0, 1), lambda t, rng: t + rng.normal(), lambda mu0, y: Normal(y / 2, 0.5**0.5), n=20))
    Replicates(n=20, f=[theta, distance], failures=0, seed=0)
    """
    _need_study(study)
    if on_failure not in ("raise", "record"):
        raise InvalidStudy(f"on_failure must be 'raise' or 'record', but {on_failure!r} arrived.")
    if progress not in ("auto", "off"):
        raise InvalidStudy(f"progress must be 'auto' or 'off', but {progress!r} arrived.")
    recorder = Recorder(study, on_failure)
    _check(study, recorder)
    size = study.batch or _GROUP
    spans = [(first, min(size, study.n - first)) for first in range(0, study.n, size)]
    for first, count in _with_progress(spans, study.n, progress):
        simulated = _scalars if study.batch is None else _batch
        for piece in simulated(study, recorder, first, count):
            recorder.record(piece)
    return recorder.replicates()


def replay(study: Study, replicate: int) -> tuple[Any, Any, Any]:
    """Run one replicate alone, test functions included, and return its (theta, y, output).

    Whatever it raises comes through unchanged.

    For a batched study the batch that holds the replicate is run; theta and y are the replicate's own.
    """
    _need_study(study)
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


def _need_study(study: Any) -> None:
    if not isinstance(study, Study):
        raise TypeError(f"a ringtrue.Study is needed, but {type(study).__name__} arrived.")


def _with_progress(spans: Sequence[tuple[int, int]], n: int, progress: str) -> Iterator[tuple[int, int]]:
    """Yield the spans, showing rate and time to go in a terminal once two seconds have passed."""
    if progress == "off":
        yield from spans
        return
    from tqdm.auto import tqdm

    with tqdm(total=n, unit=" replicates", delay=2, leave=False, mininterval=0.5, disable=None) as bar:
        for span in spans:
            yield span
            bar.update(span[1])


def _check(study: Study, recorder: Recorder) -> None:
    """Run the pre-flight; a first replicate that merely fails is for the run to record."""
    try:
        preflight(study)
    except Raised as raised:
        if isinstance(raised.error, InvalidStudy):
            raise raised.error from raised.error.__cause__
        if recorder.on_failure == "raise":
            recorder.lost([0], raised.error, raised.stage)


def _scalars(study: Study, recorder: Recorder, first: int, count: int) -> list[Piece]:
    """Simulate replicates one by one and put outputs of one kind together; those that fail are the recorder's."""
    kinds: dict[Any, list[tuple[int, Any, Any, Any]]] = {}
    for i in range(first, first + count):
        try:
            done = (i, *simulate_one(study, recorder.streams, i))
        except Raised as raised:
            recorder.lost([i], raised.error, raised.stage)
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
