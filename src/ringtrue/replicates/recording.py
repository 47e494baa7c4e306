"""Keeping what happened: positions into the arrays of a span, lost replicates into records.

The only place that turns an exception into a record. It simulates nothing and knows no tests.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..distributions.batches import lost_members
from ..errors import InvalidStudy, NoRoute, ReplicateFailed
from ..functions.contract import printable
from ..question.study import Question, Study
from . import positions as statistic
from .pieces import Measured, Piece, is_coordinate, law_of, measure
from .record import Column, Failure
from .reducers.summaries import SUMMARY
from .spans import FLOATS, JOINT, Header, Span
from .streams import Streams

Floats = NDArray[np.float64]
OnFailure = Literal["raise", "record"]

#: Fresh draws of mu0 for the joint weak test, whose cost grows with their square.
_JOINT = 2000
#: Fresh draws of mu0 made together; each group is a stream of its own, so that there can be more of them later.
_REFERENCE_GROUP = 1000


class Recorder:
    """The arrays of a span while they are filled, and its failures so far.

    Parameters
    ----------
    question
        What is asked, of a study or of arrays of draws.
    first, count
        The replicates of the span.
    """

    def __init__(self, question: Question, first: int, count: int) -> None:
        self.question, self.first, self.count = question, first, count
        self.streams = Streams(question.seed)
        shape = (len(question.functions), count)
        self.arrays: dict[str, NDArray[Any]] = {name: np.full(shape, np.nan) for name in FLOATS}
        self.arrays |= {"rank": np.full(shape, -1), "draws": np.zeros(shape, np.int64)}
        self.arrays |= {"energy": np.full((2, count), np.nan)}
        self.members: NDArray[np.uint16] | None = None
        self.joint = True  # until a replicate has no ranks of all members
        self.failures: list[Failure] = []
        self.error: Exception | None = None  # behind the first failure
        self.done: set[str] = set()  # to draws, on the way to a rank

    def record(self, piece: Piece) -> None:
        """Measure a piece and keep the result; if it cannot be measured whole, its replicates one by one."""
        try:
            measured = measure(self.question, self.streams, piece)
        except Exception as error:
            if piece.outputs is None or len(piece.index) == 1:
                stage = "output" if isinstance(error, NoRoute) else "test function"
                self.lost(piece.index[self._mine(piece.index)], error, stage)
                return
            for j in range(len(piece.index)):
                self.record(piece.alone(j))
            return
        self._keep(piece.index, self._mine(piece.index), measured, lost_members(piece.output))

    def _mine(self, index: NDArray[np.int64]) -> slice:
        """Return which members of a piece belong to the span; a batch may reach beyond it, at both ends."""
        start, stop = np.searchsorted(index, [self.first, self.first + self.count])
        return slice(int(start), int(stop))

    def _keep(self, index: NDArray[np.int64], mine: slice, measured: Measured, reasons: Mapping[int, str]) -> None:
        rows = index[mine]
        whole = rows[-1] - rows[0] + 1 == len(rows)
        where: Any = slice(int(rows[0]) - self.first, int(rows[-1]) + 1 - self.first) if whole else rows - self.first
        for k, position in enumerate(measured.positions):
            for name in ("u", "z", "rank", "draws"):
                self.arrays[name][k, where] = getattr(position, name)[mine]
            self.arrays["weak"][k, where] = measured.weak[k][mine]
            for name, row in zip(SUMMARY, measured.summaries[k], strict=True):
                self.arrays[name][k, where] = row[mine] if row.ndim else row
        self.arrays["energy"][:, where] = measured.energy[:, mine]
        self._keep_members(where, mine, measured.members)
        self.done |= measured.notes
        bad = np.isnan(self.arrays["u"][:, where])
        if bad.any():
            self._lost_numbers(rows, bad, {j - mine.start: reason for j, reason in reasons.items()})

    def _keep_members(self, where: Any, mine: slice, members: tuple[NDArray[np.uint16], ...] | None) -> None:
        """Keep the ranks of all members as long as every replicate has them for equally many draws."""
        self.joint = self.joint and members is not None
        if members is None or not self.joint:
            self.members = None
            return
        ranks = np.stack(members, axis=2)
        if self.members is None:
            self.members = np.zeros((self.count, *ranks.shape[1:]), np.uint16)
        if ranks.shape[1:] != self.members.shape[1:]:
            self.joint, self.members = False, None
            return
        self.members[where] = ranks[mine]

    def _lost_numbers(self, rows: NDArray[np.int64], bad: NDArray[np.bool_], reasons: Mapping[int, str]) -> None:
        """Lose the replicates whose numbers are not finite, for the reason their output gives if it gives one."""
        for j in np.flatnonzero(bad.any(axis=0)):
            names = ", ".join(repr(f.name) for k, f in enumerate(self.question.functions) if bad[k, j])
            reason = reasons.get(int(j), f"finite numbers were expected, but {names} is nan or infinite")
            self.lost(rows[j : j + 1], ReplicateFailed(reason), "output")

    def lost(self, rows: Iterable[int], error: Exception, stage: str) -> None:
        """Record lost replicates."""
        ours = isinstance(error, (ReplicateFailed, InvalidStudy))
        message = (str(error) if ours else f"{type(error).__name__}: {error}").rstrip(".")
        text = "".join(traceback.format_exception(error))
        self.error = self.error or error
        for i in rows:
            for name in (*FLOATS, *JOINT):
                self.arrays[name][:, int(i) - self.first] = np.nan
            self.failures.append(Failure(int(i), stage, message, text))

    def span(self, *, seconds: float = 0.0, kept: Mapping[str, NDArray[Any]] | None = None) -> Span:
        """Return what happened."""
        self._compare_with_belief()
        failures = tuple(sorted(self.failures, key=lambda failure: failure.replicate))
        return Span(
            self.first,
            **self.arrays,
            members=self.members,
            failures=failures,
            notes=frozenset(self.done),
            seconds=seconds,
            kept=kept or {},
        )

    def _compare_with_belief(self) -> None:
        """Fill in the positions of f(vartheta) in mu0's exact laws."""
        mu0 = compared_belief(self.question)
        if mu0 is None:
            return
        for k, f in enumerate(self.question.functions):
            if (law := law_of(mu0, f)) is not None:
                position = statistic.exact(law, self.arrays["weak"][k], partial(self._spread, k))
                self.arrays["weak_u"][k], self.arrays["weak_z"][k] = position.u, position.z

    def _spread(self, k: int) -> Floats:
        """Return the uniforms that spread atoms of mu0."""
        index = np.arange(self.first, self.first + self.count)
        return self.streams.uniforms("judgement", index, len(self.question.functions))[:, k]


def raise_failure(question: Question, failure: Failure, error: Exception | None) -> NoReturn:
    """Raise the failure of a replicate, with the call that runs it alone."""
    again = f"Replay it alone with {failure.replay}, or pass" if isinstance(question, Study) else "Pass"
    raise ReplicateFailed(
        f"replicate {failure.replicate} failed in the {failure.stage}: {failure.error}. {again} on_failure='record' to "
        f"go on without it."
    ) from error


def header_of(question: Question) -> Header:
    """Return what a judgement needs to know of a question."""
    columns = tuple(Column(printable(f.name), f.level, is_coordinate(f)) for f in question.functions)
    return Header(columns, question.seed, question.notes, question.selection)


def compared_belief(question: Question) -> Any:
    """Return the belief that the weak level compares with; None if it is not known, or is not the law of the truth."""
    return None if isinstance(question, Study) and question.truth is not None else question.mu0


def reference_size(question: Question, n: int) -> int:
    """Return how many fresh draws of mu0 the weak level needs: n where a law is missing, some for the joint test."""
    mu0 = compared_belief(question)
    if mu0 is None:
        return 0
    strong = [f for f in question.functions if f.level == "strong"]
    if any(law_of(mu0, f) is None for f in strong):
        return n
    return min(n, _JOINT) if sum(is_coordinate(f) for f in question.functions) > 1 else 0


def reference_values(question: Question, start: int, stop: int) -> Floats:
    """Return f at the fresh draws ``start`` to ``stop`` of mu0, whole groups of them at a time."""
    groups = range(start // _REFERENCE_GROUP, -(-stop // _REFERENCE_GROUP))
    rows = [_reference_group(question, group) for group in groups]
    if not rows:
        return np.empty((0, len(question.functions)))
    offset = groups.start * _REFERENCE_GROUP
    return np.concatenate(rows)[start - offset : stop - offset]


def _reference_group(question: Question, group: int) -> Floats:
    values = np.full((_REFERENCE_GROUP, len(question.functions)), np.nan)
    fresh = question.mu0.sample(_REFERENCE_GROUP, Streams(question.seed).generator("reference", 1 + group))
    for k, f in enumerate(question.functions):
        if f.level == "strong":
            values[:, k] = f.evaluate(fresh, 1)
    return values
