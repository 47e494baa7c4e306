"""Looks at a stored run: each judgement of it is remembered in its file.

Who judges a run that grows, and stops when the answer pleases, is right less often than each answer says. How much less
depends on how many looks there were; this module counts them, and does not know what a look costs.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...errors import InvalidStudy, StoreError
from ...replicates.record import Replicates, Stored
from ..paths import RUN
from .contents import Contents
from .database import FORMAT, connect, existing_file, need_ours, put_meta, speaking, transaction
from .meta import Meta, meta_rows

#: What a look at evidence over time is called among tests.
OVER_TIME = "over time"


def look(replicates: Replicates, source: Stored, test: str, anytime: bool | None) -> tuple[int, int, str, bool]:
    """Remember a judgement of stored replicates in their file.

    Parameters
    ----------
    replicates, source
        What is judged, and where it came from.
    test
        What it is judged by. The same test of the same numbers is the same look.
    anytime
        Whether it is judged by evidence over time; if nobody says, it is if the run is not finished, or was judged
        when it had another number of replicates, or over time. All looks at one run over time are one.

    Returns
    -------
    tuple
        Which look it is, counted from 1; how many there are with it; and why it could not be written, if it could not:
        it then follows those that were there when the replicates were read, or now if that can be found out. Last,
        whether it is one over time.
    """
    which = _Which(replicates, source, test, anytime)
    try:
        return _remember(Path(source.path), which)
    except _Unwritten as unwritten:
        return (*unwritten.place, str(unwritten), unwritten.over_time)
    except StoreError as error:
        return source.looks + 1, source.looks + 1, str(error), which.over_time(source.looks > 0)


def number_over_time(path: Path, replicates: Replicates) -> int:
    """Return which look one over time would be, at a run that has these first replicates."""
    path = path / RUN if path.is_dir() else path
    with speaking(path), contextlib.closing(connect(existing_file(path), "ro")) as db:
        marks = _marks(Contents(path, db, need_ours(path, db)).meta())
    mark = _mark(replicates, OVER_TIME)
    return marks.index(mark) + 1 if mark in marks else len(marks) + 1


@dataclass(frozen=True)
class _Which:
    """What is looked at, and how; the rest depends on the looks that there were."""

    replicates: Replicates
    source: Stored
    test: str
    anytime: bool | None

    def over_time(self, grown: bool) -> bool:
        """Whether it is a look over time, at a run that has grown since it was looked at or has not."""
        if grown and self.anytime is False:
            raise InvalidStudy(
                f"tests for one n need a run that was not judged before it had all replicates, but {self.source.path} "
                f"was; leave anytime= out, or judge a new run, with another seed."
            )
        unfinished = self.replicates.first + self.replicates.n < self.source.n
        return self.anytime if self.anytime is not None else unfinished or grown

    def after(self, meta: Meta) -> dict[str, str]:
        """Return what to remember of it, after other looks."""
        n = str(self.replicates.n)
        method = OVER_TIME if self.over_time(any(_grown(one, n) for one in meta.looks)) else self.test
        return {"n": n, "test": method, "mark": _mark(self.replicates, method)}


def _grown(one: Mapping[str, str], n: str) -> bool:
    return one["test"] == OVER_TIME or one["n"] != n


class _Unwritten(StoreError):
    """A look that could not be written to a file that could be read."""

    def __init__(self, error: StoreError, place: tuple[int, int], over_time: bool) -> None:
        super().__init__(str(error))
        self.place, self.over_time = place, over_time


def _remember(path: Path, which: _Which) -> tuple[int, int, str, bool]:
    with speaking(path), contextlib.closing(connect(existing_file(path), "rw")) as db:
        contents = Contents(path, db, need_ours(path, db))
        meta = contents.meta()
        this = which.after(meta)
        over_time = this["test"] == OVER_TIME
        if this["mark"] in _marks(meta):  # a file that cannot be written still knows it
            return (*_place(meta, this), "", over_time)
        try:
            return (*_written(contents, this), "", over_time)
        except StoreError as error:
            raise _Unwritten(error, (len(meta.looks) + 1,) * 2, over_time) from error


def _written(contents: Contents, this: Mapping[str, str]) -> tuple[int, int]:
    if contents.version != FORMAT:
        raise StoreError(f"{contents.path} has format {contents.version}, which is read but not written")
    with speaking(contents.path), transaction(contents.db):
        meta = contents.meta()  # again: others may have looked meanwhile
        if this["mark"] not in _marks(meta):
            meta = replace(meta, looks=(*meta.looks, this))
            put_meta(contents.db, meta_rows(meta))
    return _place(meta, this)


def _marks(meta: Meta) -> list[str | None]:
    return [one.get("mark") for one in meta.looks]


def _place(meta: Meta, this: Mapping[str, str]) -> tuple[int, int]:
    """Return which look it is, and how many there are; of one that two merged files had, the later."""
    marks = _marks(meta)
    return len(marks) - marks[::-1].index(this["mark"]), len(marks)


def _mark(replicates: Replicates, test: str) -> str:
    """Return what tells looks apart: the test, and the numbers that it is about; over time, where these begin."""
    names = [(function.name, function.sees) for function in replicates.functions]
    if test == OVER_TIME:
        begin = (test, names, replicates.first, replicates.seed)
        digest = hashlib.blake2b(repr(begin).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(replicates.u[:1]).tobytes())
        return digest.hexdigest()
    digest = hashlib.blake2b(repr((test, names, replicates.first, replicates.u.shape)).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(replicates.u).tobytes())
    return digest.hexdigest()
