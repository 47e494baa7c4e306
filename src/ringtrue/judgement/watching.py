"""What can be seen of a stored run while it goes on: how far it is, what failed, and what may be said of it so far.

It reads the file at one moment and judges the replicates before the first missing one. It draws nothing, and knows
neither who writes nor who looks.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import InvalidStudy, StoreBusy, StoreError
from ..execution.paths import RUN
from ..execution.store import Store
from ..execution.store.directory import survey
from ..execution.store.store import Standing
from ..replicates.record import Failure, Replicates
from .anytime import Trail
from .result import Result
from .verdict import Verdict

Trails = Mapping[str, Mapping[str, Trail]]
#: Seconds without a word after which a writer may be dead.
_LONG = 60.0
#: After reading or judging the next waits this many times what it took: both take a twentieth of a processor at most.
_REST = 19.0


@dataclass(frozen=True, eq=False)
class Sight:
    """A stored run at one moment.

    Attributes
    ----------
    path
        The file, or the directory.
    standing
        How far the run is.
    causes
        What failed and how often, the commonest first.
    held, at
        Whether somebody writes to the file, or was killed while writing; and when that was seen, in unix time.
    result
        What may be said of the replicates before the first missing one; of somewhat fewer if there was no time for
        more. None if nothing can be judged, or was to be.
    trails
        How sizes came to be known, by test function and size, if the run is judged over time.
    unjudged
        Why nothing can be judged; nothing if it can, or was not to be.
    """

    path: Path
    standing: Standing
    causes: tuple[tuple[str, int], ...]
    held: bool
    at: float
    result: Result | None = None
    trails: Trails = field(default_factory=dict)
    unjudged: str = ""

    @property
    def complete(self) -> bool:
        """Whether all replicates that were asked for are there."""
        return self.standing.done >= self.standing.n

    @property
    def stalled(self) -> bool:
        """Whether nothing was written for so long that whoever writes may have been killed."""
        state = self.standing
        usual = 10 / state.rate if state.rate else 0.0
        return self.held and not self.complete and self.at - (state.last_write or state.opened) > max(usual, _LONG)

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come: the run is complete, or has a verdict and nobody writes to it any more."""
        decided = self.result is not None and self.result.verdict is not Verdict.INCONCLUSIVE
        return self.complete or (decided and not self.held)


@dataclass(frozen=True)
class _Mark:
    """What a judgement is about: when the file was made, how many replicates there are, and how many were lost."""

    created: float
    n: int
    failed: int


class Watch:
    """Sees a stored run again and again, and judges it when it has grown.

    :func:`~ringtrue.judge` judges a run that goes on by evidence that holds whenever one looks. The file remembers the
    look before anybody sees it, so that later judgements know of it.

    Parameters
    ----------
    path
        The file, or the directory of a run, which need not be there yet.
    judge
        What judges replicates; None for a run that is not to be judged: the file then remembers nothing.

    Attributes
    ----------
    rest
        Seconds to wait before seeing it again, so that reading takes a small part of a processor too.
    """

    def __init__(self, path: str | os.PathLike[str], judge: Callable[[Replicates], Result] | None) -> None:
        self.path, self._judge, self.rest = Path(path), judge, 0.0
        self._judged: _Mark | None = None
        self._result: Result | None = None
        self._trails: Trails = {}
        self._unjudged, self._not_before = "", -math.inf
        self._unread: list[tuple[int, int]] | None = None

    def see(self) -> Sight | str:
        """Return what there is to see, or why there is nothing yet."""
        start, self.rest = time.process_time(), 0.0
        try:
            seen, ran = self._read()
        except StoreBusy as error:  # its writer has much to write
            return str(error)
        except StoreError as error:
            if self._absent():
                return f"there is nothing in {self.path} yet" if self.path.exists() else f"there is no {self.path} yet"
            if self._changing():
                return f"{self.path} cannot be read now ({error})"
            raise
        if ran is None:
            self.rest = _REST * (time.process_time() - start)
        else:
            self._consider(ran)
            self._pause(ran, time.process_time() - start)
        return replace(seen, result=self._result, trails=self._trails, unjudged=self._unjudged)

    def _read(self) -> tuple[Sight, Replicates | None]:
        """Return how far the run is, and its first replicates if it is time to judge them, at one moment."""
        if self.path.is_dir():
            return self._read_directory()
        with Store.read(self.path) as store, store.snapshot():
            standing, lost, prefix = store.survey()
            seen = Sight(self.path, standing, causes(lost), store.held, time.time())
            unit = store.header.datasets
            n = min(prefix, store.n) // unit * unit  # a group counts as a whole
            mark = _Mark(store.meta.created, n, seen.standing.failed)
            if not self._due(mark, seen):
                return seen, None
            ran = store.replicates(0, n)
            self._judged = mark
            return seen, ran

    def _read_directory(self) -> tuple[Sight, Replicates | None]:
        """Do the same with the files of a directory: at one moment each, and the replicates themselves only if due."""
        found = survey(self.path)
        seen = Sight(self.path, found.standing, causes(found.failures), found.held, time.time())
        unit = found.meta.header.datasets
        n = min(found.prefix, found.meta.n) // unit * unit
        mark = _Mark(found.meta.created, n, found.standing.failed)
        if not self._due(mark, seen):
            return seen, None
        with Store.read(self.path) as store:
            ran = store.replicates(0, min(n, store.prefix()) // unit * unit)  # lost ones may be computed again
        self._judged = mark
        return seen, ran

    def _due(self, mark: _Mark, seen: Sight) -> bool:
        """Whether to judge now: the run is another, or has grown and there is time, or nothing more will come."""
        if self._judge is None or mark == self._judged:
            return False
        known = self._judged is not None and self._judged.created == mark.created
        return not known or seen.complete or not seen.held or time.monotonic() >= self._not_before

    def _consider(self, ran: Replicates) -> None:
        self._result, self._trails, self._unjudged = None, {}, "the first replicate is not done yet"
        if ran.n and self._judge is not None:
            try:
                self._result, self._unjudged = self._judge(ran), ""
                self._trails = trails(self._result)
            except InvalidStudy as error:
                self._unjudged = str(error)

    def _pause(self, ran: Replicates, spent: float) -> None:
        """Put the next judgement off; the first is spent on imports and tables, and says nothing of the next."""
        if ran.n:
            first = self._not_before == -math.inf
            self._not_before = time.monotonic() + (0.0 if first else _REST * spent)

    @property
    def _file(self) -> Path:
        return self.path / RUN if self.path.is_dir() else self.path

    def _absent(self) -> bool:
        """Whether there is no file, or one that its writer has just made."""
        return not self._file.exists() or self._file.stat().st_size == 0

    def _changing(self) -> bool:
        """Whether what cannot be read is another than the last time: somebody may be copying it here."""
        files = sorted(self.path.glob("*.db")) if self.path.is_dir() else [self.path]
        before, self._unread = self._unread, [_age(file) for file in files]
        return before != self._unread


def _age(file: Path) -> tuple[int, int]:
    """Return what tells a file from what it was; of one that is gone by now, nothing."""
    try:
        about = file.stat()
    except OSError:
        return 0, 0
    return about.st_size, about.st_mtime_ns


def trails(result: Result) -> Trails:
    """Return how sizes came to be known; nothing of a result for one n, whose intervals hold at that n."""
    if not result.look.anytime:
        return {}
    every = {name: result.sequences(name) for name in dict.fromkeys(row.f for row in result.measures)}
    return {name: found for name, found in every.items() if found}


def causes(failures: Sequence[Failure]) -> tuple[tuple[str, int], ...]:
    """Return what failed and how often, the commonest first."""
    every = Counter(f"failed in the {one.stage}: {one.error}" for one in failures)
    return tuple(every.most_common())
