"""Keeping what happened: positions into arrays, lost replicates into records.

The only place that turns an exception into a record. It simulates nothing and knows no tests.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import statistic
from .errors import InvalidStudy, NoRoute, ReplicateFailed
from .pieces import Measured, Piece, is_coordinate, law_of, measure
from .replicates import Column, Failure, Replicates
from .seeding import Streams
from .study import Question, Study

Floats = NDArray[np.float64]
OnFailure = Literal["raise", "record"]

#: Fresh draws of mu0 for the joint weak test, whose cost grows with their square.
_JOINT = 2000


class Recorder:
    """The arrays of one run while they are filled, and its failures so far.

    Parameters
    ----------
    question
        What is asked, of a study or of arrays of draws.
    on_failure
        "raise" or "record".
    """

    def __init__(self, question: Question, on_failure: OnFailure) -> None:
        self.question, self.on_failure = question, on_failure
        self.streams = Streams(question.seed)
        self.strong = [k for k, f in enumerate(question.functions) if f.level == "strong"]
        shape = (len(question.functions), question.n)  # a row per test function: tests read one at a time
        self.u, self.z, self.weak = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
        self.rank, self.draws = np.full(shape, -1), np.zeros(shape, np.int64)
        self.members: NDArray[np.uint16] | None = None
        self.joint = True  # until a replicate has no ranks of all members
        self.failures: list[Failure] = []
        self.done: set[str] = set()  # to draws, on the way to a rank

    def record(self, piece: Piece) -> None:
        """Measure a piece and keep the result; if it cannot be measured whole, its replicates one by one."""
        try:
            measured = measure(self.question, self.streams, piece)
        except Exception as error:
            if piece.outputs is None or len(piece.index) == 1:
                stage = "output" if isinstance(error, NoRoute) else "test function"
                self.lost(piece.index[piece.index < self.question.n], error, stage)
                return
            for j in range(len(piece.index)):
                self.record(piece.alone(j))
            return
        self._keep(piece.index[piece.index < self.question.n], measured)

    def _keep(self, rows: NDArray[np.int64], measured: Measured) -> None:
        whole = rows[-1] - rows[0] + 1 == len(rows)
        where: Any = slice(int(rows[0]), int(rows[-1]) + 1) if whole else rows
        for k, position in enumerate(measured.positions):
            for name in ("u", "z", "rank", "draws"):
                getattr(self, name)[k, where] = getattr(position, name)[: len(rows)]
            self.weak[k, where] = measured.weak[k][: len(rows)]
        self._keep_members(where, len(rows), measured.members)
        self.done |= measured.notes
        bad = np.isnan(self.u[:, where])
        if bad.any():
            self._lost_numbers(rows[bad.any(axis=0)], [k for k in range(len(bad)) if bad[k].any()])

    def _keep_members(self, where: Any, count: int, members: tuple[NDArray[np.uint16], ...] | None) -> None:
        """Keep the ranks of all members as long as every replicate has them for equally many draws."""
        self.joint = self.joint and members is not None
        if members is None or not self.joint:
            self.members = None
            return
        ranks = np.stack(members, axis=2)
        if self.members is None:
            self.members = np.zeros((self.question.n, *ranks.shape[1:]), np.uint16)
        if ranks.shape[1:] != self.members.shape[1:]:
            self.joint, self.members = False, None
            return
        self.members[where] = ranks[:count]

    def _lost_numbers(self, rows: NDArray[np.int64], columns: list[int]) -> None:
        names = ", ".join(repr(self.question.functions[k].name) for k in columns)
        for array in (self.u, self.z, self.weak):
            array[:, rows] = np.nan
        self.lost(rows, ReplicateFailed(f"finite numbers were expected, but {names} is nan or infinite"), "output")

    def lost(self, rows: Iterable[int], error: Exception, stage: str) -> None:
        """Record lost replicates, or raise."""
        ours = isinstance(error, (ReplicateFailed, InvalidStudy))
        message = (str(error) if ours else f"{type(error).__name__}: {error}").rstrip(".")
        text = "".join(traceback.format_exception(error))
        records = [Failure(int(i), stage, message, text) for i in rows]
        if self.on_failure == "raise":
            again = f"Replay it alone with {records[0].replay}, or pass" if isinstance(self.question, Study) else "Pass"
            raise ReplicateFailed(
                f"replicate {records[0].replicate} failed in the {stage}: {message}. {again} on_failure='record' to go "
                f"on without it."
            ) from error
        self.failures.extend(records)

    def replicates(self) -> Replicates:
        """Return what happened, with the weak level's reference to mu0."""
        weak_u, weak_z, reference = self._against_belief()
        return Replicates(
            tuple(Column(f.name, f.level, is_coordinate(f)) for f in self.question.functions),
            self.u.T,
            self.z.T,
            self.rank.T,
            self.draws.T,
            weak_u.T,
            weak_z.T,
            self.weak.T,
            reference,
            members=self.members,
            failures=tuple(sorted(self.failures, key=lambda failure: failure.replicate)),
            selection=self.question.selection,
            seed=self.question.seed,
            notes=(*self.question.notes, *self._notes()),
        )

    def _notes(self) -> list[str]:
        """Say what was done to draws."""
        used = self.draws[self.draws > 0]
        left = f"{used.min()} to {used.max()} draws are left" if used.size else "none are left"
        texts = {
            "thinned": f"Markov chains were thinned by their estimated autocorrelation (approximate): {left} of each.",
            "weighted": f"weighted draws were resampled to their effective number (approximate): {left} of each.",
        }
        return [text for name, text in texts.items() if name in self.done]

    def _against_belief(self) -> tuple[Floats, Floats, Floats]:
        """Return positions of f(vartheta) in mu0's exact laws, and fresh draws of mu0 where a law is missing."""
        weak_u, weak_z = np.full(self.weak.shape, np.nan), np.full(self.weak.shape, np.nan)
        if self.question.mu0 is None:
            return weak_u, weak_z, self._reference(0)
        laws = [law_of(self.question.mu0, f) for f in self.question.functions]
        for k, law in enumerate(laws):
            if law is not None:
                position = statistic.exact(law, self.weak[k], partial(self._spread, k))
                weak_u[k], weak_z[k] = position.u, position.z
        missing = any(laws[k] is None for k in self.strong)
        several = sum(is_coordinate(f) for f in self.question.functions) > 1
        size = self.question.n if missing else min(self.question.n, _JOINT) if several else 0
        return weak_u, weak_z, self._reference(size)

    def _spread(self, k: int) -> Floats:
        """Return the uniforms that spread atoms of mu0."""
        return self.streams.generator("judgement", k).random(self.question.n)

    def _reference(self, size: int) -> Floats:
        reference = np.full((size, len(self.question.functions)), np.nan)
        if size:
            fresh = self.question.mu0.sample(size, self.streams.generator("reference", 1))
            for k in self.strong:
                reference[:, k] = self.question.functions[k].evaluate(fresh, 1)
        return reference
