"""A run in a directory that many write to: the file of the run, and files of those who help.

Every process that computes writes to a file of its own, so that nobody waits for anybody, and whoever runs the study
is told how many replicates there are and not what they are. All files are stores. The file of the run takes in what
helpers wrote when the run ends, or goes on; until then whoever reads takes all files for one.

A replicate that two processes have computed must be the same in both. One that is lost in one file and not in another
is not lost.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import StoreBusy, StoreError
from ...replicates.record import Failure, Replicates
from ..jobs import Written
from ..paths import RUN
from . import database, ranges
from .codec import FURTHEST, Record
from .meta import Meta, need_same
from .pouring import pour, pour_reference
from .ranges import Range
from .store import Standing, Store, between

#: The files of shares, which schedulers run as jobs of their own, and of those who help with them.
SHARES = "share-*.db"
#: Files that are taken in together; each is open twice, with its lock, and a process may have a thousand files open.
_OPEN = 100


def file_of(folder: Path, shard: tuple[int, int] | None) -> Path:
    """Return the file of a run, or of a share of it, in a directory, which is made if it is not there."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be made ({error}); make its parent first, or pass another.") from error
    return folder / (RUN if shard is None else f"share-{shard[0]}-of-{shard[1]}.db")


@contextlib.contextmanager
def opened(path: Path, meta: Meta) -> Iterator[Store]:
    """Open the file of a run or a share for writing, with all that others have written for it."""
    if path.name != RUN:
        # The file that looks are remembered in; whoever makes it first, it is the same.
        with contextlib.suppress(StoreBusy), Store.opened(path.with_name(RUN), meta):
            pass
    with Store.opened(path, meta) as store:
        if path.name == RUN:
            for shares in _groups(sorted(path.parent.glob(SHARES))):
                _take_in(shares, store)
        take_in(store)
        yield store


def confirm(path: Path, meta: Meta) -> None:
    """Ask for as many replicates in the file of the run as a share of it does, which is the same study."""
    if path.name != RUN:
        with contextlib.suppress(StoreBusy), Store.opened(path.with_name(RUN), meta) as run:
            run.confirm()


def take_in(store: Store) -> None:
    """Take what helpers wrote into the file of a run; files that are not needed any more go."""
    for files in _groups(_helpers(store.path)):
        with contextlib.ExitStack() as locks:
            ended = [file for file in files if locks.enter_context(_lock_of(file))]
            _take_in(files, store)
            store.flush()
            # Whoever still writes, for a run that was killed or was out of time, may write more.
            for file in ended:
                _remove(file)
    for file in () if store.missing(0, store.writer.n) else _helpers(store.path):
        _remove(file)


def _groups(files: Sequence[Path]) -> Iterator[Sequence[Path]]:
    return (files[i : i + _OPEN] for i in range(0, len(files), _OPEN))


@contextlib.contextmanager
def _lock_of(file: Path) -> Iterator[bool]:
    """Say whether nobody writes to a file any more, and keep it so."""
    try:
        lock = database.Lock(file)
    except StoreBusy:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _helpers(path: Path) -> list[Path]:
    """Return the files that helpers of a run have made."""
    return sorted(path.parent.glob(f"{path.stem}.*.db"))


def _remove(file: Path) -> None:
    # Where a file that is open cannot be removed, it stays, and is found to be the same next time.
    for ending in ("", "-journal", ".lock", ".lock-journal"):
        with contextlib.suppress(OSError):
            file.with_name(file.name + ending).unlink(missing_ok=True)


def as_one(folder: Path) -> Store:
    """Return the files of a directory as one store, to be read."""
    path = folder / RUN
    if not folder.is_dir() or not path.exists():
        what = "is a directory, but not that of a run" if folder.is_dir() else "is not there"
        raise StoreError(f"{folder} {what}; pass the store= of a run, which is a file or a directory.")
    others = sorted([*folder.glob(SHARES), *_helpers(path)])
    if not others:
        return Store.read(path)
    with contextlib.ExitStack() as undo:
        with Store.read(path) as run:
            whole = undo.enter_context(Store.passing(path, replace(run.meta, reference=0)))
        # The file of the run comes last: what it takes in from others meanwhile, and removes, is then in it.
        for files in (*_groups(others), [path]):
            _take_in(files, whole)
        whole.flush()
        undo.pop_all()
        return whole


@dataclass(frozen=True, eq=False)
class Survey:
    """How far the run in a directory is, from all of its files: what they have, and none of their arrays.

    Attributes
    ----------
    meta
        What the run is about.
    standing, failures, prefix
        How far it is, what is lost, and how many replicates there are without a gap.
    held
        Whether somebody runs it or a share of it, or was killed meanwhile; helpers may outlive a run.
    """

    meta: Meta
    standing: Standing
    failures: tuple[Failure, ...]
    prefix: int
    held: bool


def survey(folder: Path) -> Survey:
    """Return how far the run in a directory is, while others write there."""
    run, shares = folder / RUN, sorted(folder.glob(SHARES))
    # The file of the run comes last, as in `as_one`.
    known = [one for file in [*shares, *_helpers(run)] for one in _records(file)]
    with Store.read(run) as whole:
        known += whole.records()
        meta = whole.meta
    alive = ranges.united(part for one in known for part in _alive(one))
    lost = {one.replicate: one for record in known for one in record.failures if ranges.gaps(alive, *_at(one))}
    covered = ranges.united([*alive, *(_at(one) for one in lost.values())])
    written, since = [one.written for one in known], [one for one in known if one.written >= meta.opened]
    standing = Standing(
        meta.n,
        _within(covered, meta.n),
        sum(number < meta.n for number in lost),
        sum(one.seconds for one in known),
        min(written, default=None),
        max(written, default=None),
        meta.opened,
        _within(ranges.united((one.first, one.stop) for one in since), meta.n),
    )
    held = any(database.lock_file(file).exists() for file in (run, *shares))
    return Survey(meta, standing, tuple(lost[k] for k in sorted(lost)), ranges.prefix(covered), held)


def _records(file: Path) -> list[Record]:
    """Return what is known of the replicates in a file; nothing if it is gone, or its writer has just made it."""
    with contextlib.ExitStack() as reading:
        part = _opened(file, reading)
        return [] if part is None else part.records()


def _alive(record: Record) -> list[Range]:
    gone = sorted(one.replicate for one in record.failures)
    edges = zip([record.first, *(k + 1 for k in gone)], [*gone, record.stop], strict=True)
    return [(first, stop) for first, stop in edges if first < stop]


def _at(failure: Failure) -> Range:
    return failure.replicate, failure.replicate + 1


def _within(covered: Sequence[Range], n: int) -> int:
    return n - ranges.length(ranges.gaps(covered, 0, n))


def _take_in(files: Sequence[Path], whole: Store) -> None:
    """Copy what files have into a store; one that is lost there gives way to one that is not lost here."""
    with contextlib.ExitStack() as reading:
        found = [pair for file in files for pair in _found(file, whole, reading)]
        lost = {one.replicate for one in whole.failures()}
        # In the order of replicates, whoever computed them: neighbours then become one row, which costs what one of
        # the many small ones would.
        for part, record in sorted(found, key=lambda pair: pair[1].first):
            _take_record(part, part.with_draws(record), whole, lost)


def _found(file: Path, whole: Store, reading: contextlib.ExitStack) -> list[tuple[Store, Replicates]]:
    """Return the records of a file that belongs to a store, each with the file, which stays open for kept draws."""
    part = _opened(file, reading)
    if part is None:
        return []
    # No longer than it takes: who still writes to the file waits meanwhile.
    with part.snapshot():
        # Helpers have the study from the run itself, which has looked whether it is the same; shares have their own.
        need_same(whole.meta, part.meta, whole.path, file if file.match(SHARES) else None)
        pour_reference(part, whole)
        return [(part, record) for record in part.parts(0, FURTHEST)]


def _opened(file: Path, reading: contextlib.ExitStack) -> Store | None:
    """Return the store in a file, to be read; None if there is none."""
    try:
        return reading.enter_context(Store.read(file))
    except StoreError:
        # Its writer has not come to write anything, or is not there any more and the run has what it wrote.
        if not file.exists() or file.stat().st_size == 0:
            return None
        raise


def _take_record(part: Store, record: Replicates, whole: Store, lost: set[int]) -> None:
    """Copy replicates to a store, of which it is known what it has lost."""
    gone = [one.replicate for one in record.failures]
    for alive in between(record, gone):
        if found := lost.intersection(range(alive.first, alive.stop)):
            whole.forget_failures(found)
            lost -= found
        pour(part, alive, whole)
    for number in gone:
        if whole.missing(number, number + 1):
            whole.add(record.part(number, number + 1))
            lost.add(number)


@dataclass(frozen=True)
class Helpers:
    """What those who compute need to know to write to files of their own.

    Attributes
    ----------
    path
        The file of the run that they help with.
    meta
        What the run is about.
    session
        Tells runs apart that go on from each other: a file that one of them has taken in is not written to by the next.
    """

    path: Path
    meta: Meta
    session: str

    @classmethod
    def of(cls, store: Store) -> Helpers:
        """Return what helpers of the run in a store need."""
        return cls(store.path, store.writer, uuid.uuid4().hex[:8])

    def known(self, first: int, stop: int) -> Written | None:
        """Return that replicates are written by this process, if they are: executors may ask twice."""
        return _own_file(self).known(first, stop)

    def write(self, record: Replicates) -> Written:
        """Write replicates to the file of this process; they then survive whatever happens to it."""
        _own_file(self).write(record)
        return Written(record.first, record.stop, record.seconds, record.failures)


class _Own:
    """The file of this process, and what its threads want to write: whoever comes first writes for those who wait."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.adding, self.writing = threading.Lock(), threading.Lock()
        self.waiting: list[Replicates] = []
        self.added = self.written = 0
        self.covered = store.covered()

    def known(self, first: int, stop: int) -> Written | None:
        # Without waiting for whoever writes: most replicates are asked for once.
        if ranges.gaps(self.covered, first, stop):
            return None
        with self.writing:
            if self.store.missing(first, stop):
                return None
            lost = [one for one in self.store.failures() if first <= one.replicate < stop]
            return Written(first, stop, 0.0, tuple(lost))

    def write(self, record: Replicates) -> None:
        with self.adding:
            self.waiting.append(record)
            self.added = mine = self.added + 1
        with self.writing:
            if self.written >= mine:
                return
            with self.adding:
                records, self.waiting, count = self.waiting, [], self.added
            for one in records:
                for start, stop in self.store.missing(one.first, one.stop):
                    self.store.add(one.part(start, stop))
            self.store.flush()
            self.covered, self.written = self.store.covered(), count

    def close(self) -> None:
        with self.writing:
            self.store.close()


_files: dict[tuple[str, int], _Own] = {}
_opening = threading.Lock()


def _own_file(helpers: Helpers) -> _Own:
    """Return the file of this process for a run; those for other runs are closed."""
    with _opening:
        mine = (helpers.session, os.getpid())
        if mine not in _files:
            for old in [key for key in _files if key[0] != helpers.session]:
                _files.pop(old).close()
            _files[mine] = _Own(_made(helpers))
        return _files[mine]


def _made(helpers: Helpers) -> Store:
    host = re.sub(r"\W+", "-", socket.gethostname())
    if not helpers.path.exists():
        raise StoreError(
            f"workers write to the directory of the run, but {helpers.path} is not there on {host}; pass a directory "
            f"that all workers share, or the name of a file, which only the coordinator writes to."
        )
    name = f"{helpers.path.stem}.{host}-{os.getpid()}-{helpers.session}.db"
    return Store.opened(helpers.path.with_name(name), helpers.meta)
