"""From a study to records of replicates, each replicate a function of (seed, index) alone.

Here replicates are simulated one after the other or batch after batch, reduced, and put on record; an exception becomes
a failure here and nowhere else. It is what a worker does, wherever it is. It knows no tests, no stores and no other
workers.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NoReturn

import numpy as np

from ..characters import one_line
from ..distributions import Draws
from ..errors import InvalidStudy, NoRoute, ReplicateFailed
from ..question.study import Question, Study, at_least
from ..streams import Streams
from ..values import copied, stack_values, take
from .block import Block
from .record import KEPT, Asked, Failure, Gathering, Header, Replicates, rows_of
from .reducers import fields, reduce
from .starts import truths

Keep = Literal["draws"] | None
OnFailure = Literal["raise", "record"]

#: Scalar replicates that are reduced together, at least and at most: what they cost together is shared by all. Numbers
#: of a group, from which on it need not grow. None of them changes anything but speed.
_GROUP, _LARGE, _NUMBERS = 128, 1024, 1 << 17


class Raised(Exception):
    """A user's function raised; says which."""

    def __init__(self, stage: str, error: Exception) -> None:
        super().__init__(stage, error)
        self.stage, self.error = stage, error


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of some replicates: a record, and, if they were to stop at a failure, that failure.

    ``error`` is the exception behind the first failure, where it is at hand.
    """

    record: Replicates
    failure: Failure | None = None
    error: Exception | None = None


def header_of(question: Question) -> Header:
    """Return what a judgement needs to know of a question."""
    functions = tuple(Asked(one_line(f.name), f.kind, f.sees) for f in question.functions)
    return Header(
        functions,
        question.seed,
        question.selection,
        question.of_belief,
        question.reproducible,
        question.notes,
        question.datasets,
        question.of_output,
        not isinstance(question, Study),
    )


def compute(study: Study, first: int, count: int, *, keep: Keep = None, on_failure: OnFailure = "record") -> Outcome:
    """Simulate and reduce consecutive replicates.

    Parameters
    ----------
    study
        The question.
    first, count
        Which; of a batched study, whole batches, the last of which may reach beyond.
    keep
        "draws" keeps truths and draws too.
    on_failure
        "raise" stops at the first failure: the record ends before it (before its batch).
    """
    start = time.perf_counter()
    recorder = Recorder(study, first, count, keep=keep)
    for block in (_batches if study.batch else _groups)(study, recorder, on_failure):
        recorder.record(block)
    return recorder.outcome(on_failure, time.perf_counter() - start)


class Recorder:
    """A record while it is filled with blocks; what cannot be reduced is recorded as lost.

    Parameters
    ----------
    question
        What is asked, of a study or of arrays of draws.
    first, count
        The replicates of the record.
    keep
        What is kept besides.
    """

    def __init__(self, question: Question, first: int, count: int, *, keep: Keep = None) -> None:
        self.question, self.first, self.stop, self.keep = question, first, first + count, keep
        self.streams = Streams(question.seed)
        self.gathering = Gathering(header_of(question), first, first + count, fields())
        self.error: Exception | None = None  # behind the first failure

    @property
    def failed(self) -> bool:
        """Whether a replicate was lost."""
        return bool(self.gathering.failures)

    def record(self, block: Block) -> None:
        """Reduce a block and keep the result; if it cannot be reduced whole, its replicates one by one."""
        try:
            arrays = reduce(block, self.keep)
        except Exception as error:
            # A batch of the user's own cannot be taken apart; whatever broke in it concerns all of its replicates.
            if block.outputs.members is None or block.b == 1:
                stage = "output" if isinstance(error, NoRoute) else "test function"
                self.lose(block.index[self._mine(block)], error, stage)
                return
            for j in range(block.b):
                self.record(block.alone(j))
            return
        mine = self._mine(block)
        index = block.index[mine]
        self.gathering.put(rows_of(index, self.first), {name: array[mine] for name, array in arrays.items()})
        bad = np.isnan(arrays["u"][mine])
        if bad.any():
            self._lose_numbers(block, mine, bad)

    def _mine(self, block: Block) -> slice:
        """Return which replicates of a block belong to the record; a batch may reach beyond it, at both ends."""
        start, stop = np.searchsorted(block.index, [self.first, self.stop])
        return slice(int(start), int(stop))

    def _lose_numbers(self, block: Block, mine: slice, bad: Any) -> None:
        """Lose the replicates whose numbers are not finite, for the reason their output gives if it gives one."""
        for j in np.flatnonzero(bad.any(axis=1)):
            place = int(j) + mine.start
            reason = block.outputs.lost.get(place) or _not_finite(block, place, np.flatnonzero(bad[j]).tolist())
            self.lose(block.index[place : place + 1], ReplicateFailed(reason), "output", came=True)

    def lose(self, rows: Iterable[int], error: Exception, stage: str, *, came: bool = False) -> None:
        """Record lost replicates."""
        ours = isinstance(error, (ReplicateFailed, InvalidStudy))
        message = (str(error) if ours else f"{type(error).__name__}: {error}").rstrip(".")
        # As text, since a traceback holds frames, and frames hold the user's data: neither travels nor rests in a file.
        text = "".join(traceback.format_exception(error))
        self.error = self.error or error
        self.gathering.lose((Failure(int(i), stage, message, text) for i in rows), came=came)

    def finish(self, seconds: float = 0.0) -> Replicates:
        """Return the record."""
        self.gathering.seconds = seconds
        record = self.gathering.replicates()
        if self.keep and record.lost < record.n and not any(name.startswith(KEPT) for name in record.arrays):
            raise InvalidStudy("draws can be kept if all outputs have equally many, but they do not.")
        return record

    def outcome(self, on_failure: OnFailure, seconds: float = 0.0) -> Outcome:
        """Return the record; it ends before the first failure if that is to stop a run."""
        record = self.finish(seconds)
        if on_failure == "record" or not record.failures:
            return Outcome(record, None, self.error)
        failure, batch = record.failures[0], self.question.batch
        # A batch counts whole or not at all, or a later run would find half of it computed.
        end = failure.replicate if batch is None else max(failure.replicate // batch * batch, self.first)
        return Outcome(record.part(self.first, end), failure, self.error)


def _not_finite(block: Block, place: int, columns: list[int]) -> str:
    """Say which test functions are not finite, and whether at the truth or in the draws of the output."""
    names = ", ".join(repr(block.functions[k].name) for k in columns)
    if block.outputs.members is not None:  # outputs of different sizes have no draws side by side
        block, place = block.alone(place), 0
    at_truth = not all(np.isfinite(block.truths[k][place]) for k in columns)
    where = " at the truth" if at_truth else _in_chains(block, place, columns[0])
    return f"finite numbers were expected, but {names} is nan or infinite{where}"


def _in_chains(block: Block, place: int, k: int) -> str:
    """Say in how many of its chains a test function is not finite, if not in all of them."""
    ready = block.outputs.ready
    values = block.ranked[k].values if ready is not None and ready.chains > 1 and k in block.ranked else None
    if ready is None or values is None:
        return ""
    bad = int((~np.isfinite(values[:, place].reshape(ready.chains, -1))).any(axis=1).sum())
    return f" in {bad} of {ready.chains} chains" if 0 < bad < ready.chains else ""


def raise_failure(question: Question, failure: Failure, error: Exception | None) -> NoReturn:
    """Raise the failure of a replicate, with the call that runs it alone."""
    again = "Pass"
    if isinstance(question, Study) and question.reproducible:
        again = f"Replay it alone with {failure.replay}, or pass"
    raise ReplicateFailed(
        f"replicate {failure.replicate} failed in the {failure.stage}: {failure.error}. {again} on_failure='record' to "
        f"go on without it."
    ) from error


def replay(study: Study, replicate: int) -> tuple[Any, Any, Any]:
    """Run one replicate alone, test functions included, and return its (theta, y, output).

    Whatever it raises comes through unchanged.

    For a batched study the batch that holds the replicate is run; theta and y are the replicate's own.
    """
    need_study(study)
    i = at_least(0, "replicate", replicate)
    if not study.reproducible:
        raise InvalidStudy(
            f"replicate {i} cannot be run again, because this study was declared with reproducible=False; take all "
            f"randomness from the rng that ringtrue hands over and leave reproducible= out, or read the traceback in "
            f".failures of a run with on_failure='record'."
        )
    study.make_ready()
    try:
        block = simulate(study, i // (study.batch or 1))
        reduce(block)
    except Raised as raised:
        raise raised.error from None
    j = i % (study.batch or 1)
    members = block.outputs.members
    output = block.outputs.whole if members is None else members[j]
    return take(block.theta, j), take(block.y, j), output.origin


def need_on_failure(on_failure: Any) -> None:
    """Refuse what says nothing about failures."""
    if on_failure not in ("raise", "record"):
        raise InvalidStudy(f"on_failure must be 'raise' or 'record', but {on_failure!r} arrived.")


def need_study(study: Any) -> None:
    """Refuse what is not a study."""
    if not isinstance(study, Study):
        raise TypeError(f"a ringtrue.Study is needed, but {type(study).__name__} arrived.")


def _batches(study: Study, recorder: Recorder, on_failure: OnFailure) -> Iterator[Block]:
    """Simulate the batches of a record; those that fail are the recorder's."""
    assert study.batch is not None
    for first in range(recorder.first, recorder.stop, study.batch):
        # What came before the failure is kept: the record ends there and a store can go on from it.
        if on_failure == "raise" and recorder.failed:
            return
        try:
            yield simulate(study, first // study.batch, recorder.streams)
        except Raised as raised:
            recorder.lose(range(first, min(first + study.batch, recorder.stop)), raised.error, raised.stage)


def _groups(study: Study, recorder: Recorder, on_failure: OnFailure) -> Iterator[Block]:
    """Simulate the single replicates of a record and put outputs of one kind together."""
    first = recorder.first
    while first < recorder.stop:
        if on_failure == "raise" and recorder.failed:
            return
        kinds, first = _kinds(study, recorder, first, on_failure)
        for alike in kinds:
            yield singles(study, recorder.streams, *zip(*alike, strict=True))


def _kinds(study: Study, recorder: Recorder, first: int, on_failure: OnFailure) -> tuple[Any, int]:
    """Simulate some replicates; return those of one kind of output each, and the next replicate."""
    kinds: dict[Any, list[tuple[int, Any, Any, Any]]] = {}
    i, stop = first, min(first + _GROUP, recorder.stop)
    while i < stop:
        try:
            theta, y, output = _simulated(study, recorder.streams, i)
        except Raised as raised:
            recorder.lose([i], raised.error, raised.stage)
            if on_failure == "raise":
                break
        else:
            if not kinds:
                stop = min(first + _fitting_size(study, theta, y, output), recorder.stop)
            # Outputs of one class and size stack into one object; a procedure may return others now and then.
            kinds.setdefault((type(output), output.size), []).append((i, theta, y, output))
        i += 1
    return kinds.values(), i


def _fitting_size(study: Study, theta: Any, y: Any, output: Any) -> int:
    """Return how many replicates like this one are a group; what data are that are no numbers nobody knows."""
    held = _NUMBERS if (numbers := _numbers(y)) is None else numbers
    return int(np.clip(_NUMBERS // (held + (output.size or study.draws) * (_numbers(theta) or 1) + 1), _GROUP, _LARGE))


def _numbers(value: Any) -> int | None:
    """Return how many numbers an array or a dict of arrays has; None for anything else."""
    if isinstance(value, dict):
        parts = [_numbers(part) for part in value.values()]
        return None if None in parts else sum(part for part in parts if part is not None)
    return int(np.size(value)) if isinstance(value, (np.ndarray, np.generic, int, float)) else None


def singles(question: Question, streams: Streams, index: Any, thetas: Any, ys: Any, outputs: Any) -> Block:
    """Return single replicates as a block."""
    return Block(question, streams, np.array(index, np.int64), stack_values(thetas), ys, outputs)


def simulate(study: Study, block: int, streams: Streams | None = None) -> Block:
    """Simulate one block of a study: a replicate, or a batch, always a full one, so that n can be extended later."""
    streams = streams or Streams(study.seed)
    if study.batch is None:
        theta, y, output = _simulated(study, streams, block)
        return singles(study, streams, [block], [theta], (y,), (output,))
    theta, y, output = _simulated(study, streams, block)
    _need_batch(y, output, study.batch)
    index = np.arange(block * study.batch, (block + 1) * study.batch)
    return Block(study, streams, index, theta, y, output)


def _simulated(study: Study, streams: Streams, block: int) -> tuple[Any, Any, Any]:
    """Return theta, y and output of a replicate or a batch."""
    try:
        theta, y = _truth(study, streams, block)
    except (Exception, SystemExit) as error:
        stage = "fit to y_obs" if study.observed else "belief"
        raise Raised("model" if study.joint else stage, _ordinary(error)) from error
    try:
        if study.joint is None:
            # Copies, because models work in place and reuse buffers: the truth must stay what it was.
            y = study.simulate(copied(theta), partial(streams.generator, "data", block))
        y = copied(y)
        if y is None:
            raise InvalidStudy("the model must return a dataset, but it returned None; is a return statement missing?")
    except (Exception, SystemExit) as error:
        raise Raised("model", _ordinary(error)) from error
    try:
        output = study.learn(copied(y), partial(streams.generator, "procedure", block))
        if study.batch is None:
            _need_single(output)
    except (Exception, SystemExit) as error:  # a call of sys.exit() is one lost replicate, and ends nothing
        raise Raised("procedure", _ordinary(error)) from error
    return theta, y, output.copied() if study.batch is None else output


def _ordinary(error: Exception | SystemExit) -> Exception:
    return ReplicateFailed(f"it called sys.exit({error.code!r})") if isinstance(error, SystemExit) else error


def _truth(study: Study, streams: Streams, block: int) -> tuple[Any, Any]:
    """Draw the truth of a replicate or the truths of a batch, and with them the data if one thing draws both."""
    if study.observed is not None:
        return _observed_truth(study, block), None
    if study.batch is None:
        # Replicates of one theta draw it again, each from the stream of their group.
        rng = streams.generator("truth", block // study.datasets)
        if study.joint is None:
            return take(study.truths(1, rng), 0), None
        theta, y = study.joint.pairs(1, rng)
        return take(theta, 0), y[0]
    m, rng = study.batch // study.datasets, streams.generator("truth", block)
    theta, y = (study.truths(m, rng), None) if study.joint is None else study.joint.pairs(m, rng)
    if study.datasets > 1:
        theta = take(theta, np.arange(study.batch) // study.datasets)
    return theta, y


def _observed_truth(study: Study, block: int) -> Any:
    """Return the truths of a block that the fits to observed data drew."""
    if study.batch is None:
        return take(truths(study, block // study.datasets, 1), 0)
    theta = truths(study, block, study.batch // study.datasets)
    return take(theta, np.arange(study.batch) // study.datasets)


def _need_single(output: Any) -> None:
    """Refuse what only a batch has, a weight or a diagnostic per output: other axes of draws are the parameter's."""
    if not isinstance(output, Draws) or (output.weights is None and not output.diagnostics and not output.lost):
        return
    if np.ndim(output.weights) > 1 or output.lost:
        raise InvalidStudy(
            f"weights must have shape ({output.size},), one per draw, but a single output came with "
            f"{(output.size, output.batch)}, one per draw and output of a batch."
        )
    if several := [name for name, value in output.diagnostics.items() if np.ndim(value)]:
        raise InvalidStudy(
            f"diagnostics of a single output must be one number each, but {several[0]!r} has {output.batch}; of "
            f"several numbers pass the worst."
        )


def _need_batch(y: Any, output: Any, size: int) -> None:
    """Refuse a batched model or procedure that does not return one dataset or output per replicate."""
    if isinstance(y, tuple):
        error = (
            "a batched model must return data that can be cut into datasets, an array or a dict, but a tuple arrived."
        )
        raise Raised("model", InvalidStudy(error))
    if isinstance(y, (np.ndarray, list, float, int)) and np.shape(y)[:1] != (size,):
        error = f"a batched model must return {size} datasets, one per replicate on axis 0, but {np.shape(y)} arrived."
        raise Raised("model", InvalidStudy(error))
    found = output.batch
    if found is not None and found != size:
        arrived = f"{found} of them" if found else "a single one"
        error = (
            f"a batched procedure must return a batch of {size} outputs, one per replicate, but {arrived} arrived "
            f"({type(output.origin).__name__}; draws have shape (draws, replicates, ...))."
        )
        raise Raised("procedure", InvalidStudy(error))
