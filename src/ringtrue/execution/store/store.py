"""Runs on disk: one SQLite file that survives its writer.

What is in it is written in transactions by one process, and read by any number, also meanwhile. Nothing in it is code:
arrays of numbers and texts, each with a checksum, so that damage is noticed and never judged. This module computes
nothing and needs none of the user's functions.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidStudy, StoreError
from ...replicates.record import JOINT, KEPT, Failure, Gathering, Header, Replicates, Stored
from ...replicates.reducers import fields
from ...values import Floats
from ..paths import is_directory
from . import codec, database, identity, ranges
from .codec import Record
from .contents import Contents
from .database import Lock, PathLike, Unlocked, speaking, transaction
from .meta import Meta, meta_rows, need_same
from .ranges import Range

#: Seconds, and bytes, after which what was added is written.
_EVERY, _AT_MOST = 1.0, 16_000_000


@dataclass(frozen=True)
class Standing:
    """How far a run is.

    Attributes
    ----------
    n, done, failed
        Replicates asked for, finished (failures included), and failed.
    seconds
        What all finished replicates took, summed over workers.
    first_write, last_write
        Unix times; None if nothing was written yet.
    opened, since
        When the store was last opened for writing, and how many replicates were written since.
    """

    n: int
    done: int
    failed: int
    seconds: float
    first_write: float | None
    last_write: float | None
    opened: float
    since: int

    @property
    def rate(self) -> float:
        """Replicates per second since the store was last opened for writing; 0 if it is not known."""
        taken = (self.last_write or self.opened) - self.opened
        return self.since / taken if taken > 0 else 0.0

    @property
    def left(self) -> float:
        """Seconds to go at that rate; 0 if nothing is left."""
        return (self.n - self.done) / self.rate if self.rate else 0.0


class Store:
    """The replicates of one study in a file. Made by :meth:`create_or_open` and :meth:`read`.

    Examples
    --------
    >>> import tempfile
    >>> from ringtrue.replicates.record import Asked, lost_record
    >>> header = Header((Asked("theta", "coordinate", "theta"),), seed=0)
    >>> path = Path(tempfile.mkdtemp()) / "run.db"
    >>> with Store.create_or_open(path, header=header, fingerprint={}, n=10) as store:
    ...     store.add(lost_record(header, fields(), 4, 2, Failure(4, "procedure", "it died", "")))
    ...     store.missing(0, 10)
    [(0, 4), (6, 10)]
    >>> Store.read(path).done
    2
    """

    def __init__(
        self, contents: Contents, meta: Meta, lock: Lock | Unlocked | None = None, writer: Meta | None = None
    ) -> None:
        self.path, self._db, self._contents = contents.path, contents.db, contents
        self._meta, self._lock = meta, lock
        self._writer = writer or meta  # who it is that writes: goes into the file with what is written
        database.close_with(self, self._db)
        self._process = os.getpid()
        self._buffer: list[Replicates] = []
        self._buffered = 0
        self._unsure = False  # whether what is in the buffer may be in the file too
        self._flushed = time.monotonic()
        self._ranges = self._checked_ranges() if lock else []  # a writer's; it is the only one who changes them

    @classmethod
    def create_or_open(
        cls, path: PathLike, *, header: Header, fingerprint: Mapping[str, str], n: int, keep: str | None = None
    ) -> Store:
        """Open a store for writing: a new file, or one that belongs to the same study.

        Everything but kept draws is checked on the way, so that damage shows before anything is computed.

        Parameters
        ----------
        path
            The file.
        header
            What a judgement needs to know of the study.
        fingerprint
            What the study is made of; see :func:`ringtrue.execution.store.identity.fingerprint`.
        n
            Replicates asked for; an existing store keeps its own n if that is larger.
        keep
            Whether records come with draws.
        """
        store = cls.opened(path, cls.meta_of(header=header, fingerprint=fingerprint, n=n, keep=keep))
        store.confirm()
        return store

    @staticmethod
    def meta_of(*, header: Header, fingerprint: Mapping[str, str], n: int, keep: str | None = None) -> Meta:
        """Return the description of a store that is made now."""
        now = time.time()
        return Meta(header, (dict(fingerprint),), n, keep, 0, now, now, (identity.versions(),))

    @classmethod
    def opened(cls, path: PathLike, wanted: Meta) -> Store:
        """Open a store for writing by its description.

        Until :meth:`confirm` says that it is the same study, a file that has replicates already asks for no more.
        """
        path = database.writable_place(path)
        with contextlib.ExitStack() as undo, speaking(path):
            lock = Lock(path)
            undo.callback(lock.release)
            db = undo.enter_context(contextlib.closing(database.connect(path, "rwc")))
            store = cls(Contents(path, db, database.FORMAT), _prepared(path, db, wanted), lock, wanted)
            with transaction(db):  # after everything was checked: a damaged file is left alone
                store._put_meta(store.meta)
            undo.pop_all()
            return store

    def confirm(self) -> None:
        """Ask for as many replicates as whoever opened the store wants, who has seen that it is the same study."""
        meta = replace(self._meta, n=max(self._meta.n, self._writer.n), opened=self._writer.opened)
        with speaking(self.path), transaction(self._db):
            self._meta = self._put_meta(meta)

    @classmethod
    def read(cls, path: PathLike) -> Store:
        """Open a store for reading, also while it is written; of a directory, all of its files as one."""
        if is_directory(path):
            from .directory import as_one  # which needs stores

            return as_one(Path(path))
        path = database.existing_file(path)
        with contextlib.ExitStack() as undo, speaking(path):
            # A reader may have to roll back what a writer died in.
            db = undo.enter_context(contextlib.closing(database.connect(path, "rw")))
            db.execute("PRAGMA query_only=ON")
            contents = Contents(path, db, database.need_ours(path, db))
            store = cls(contents, contents.meta())
            undo.pop_all()
            return store

    @classmethod
    def passing(cls, path: Path, meta: Meta) -> Store:
        """Return a store that is gone when it is closed, and says that it is another file."""
        db = database.temporary()
        return cls(Contents(path, db, database.FORMAT), _prepared(path, db, meta), Unlocked(), meta)

    @property
    def meta(self) -> Meta:
        """What the store is about."""
        return self._meta

    @property
    def writer(self) -> Meta:
        """What the store is about, as whoever opened it says."""
        return replace(self._writer, n=max(self.n, self._writer.n), reference=0, looks=())

    @property
    def header(self) -> Header:
        """What a judgement needs to know besides arrays."""
        return self._meta.header

    @property
    def fingerprint(self) -> dict[str, str]:
        """What the study is made of, as the last who wrote had it."""
        return dict(self._meta.fingerprints[-1])

    @property
    def writer_fingerprint(self) -> dict[str, str]:
        """What the study that opened the store is made of."""
        return dict(self._writer.fingerprints[-1])

    @property
    def changed(self) -> list[str]:
        """In which parts the study that opened the store is not, by its sources, one of those that wrote to it."""
        return identity.differences(self._meta.fingerprints, self.writer_fingerprint, identity.SOURCES)

    @property
    def n(self) -> int:
        """How many replicates were asked for."""
        return self._meta.n

    @property
    def keep(self) -> str | None:
        """Whether draws are kept."""
        return self._meta.keep

    @property
    def versions(self) -> tuple[dict[str, str], ...]:
        """The versions of ringtrue, NumPy and Python that wrote to the file, the latest last."""
        return tuple(dict(one) for one in self._meta.versions)

    @property
    def looks(self) -> tuple[dict[str, str], ...]:
        """The judgements of what is in the file, the first one first: which test, and of how many replicates."""
        return tuple(dict(one) for one in self._meta.looks)

    @property
    def held(self) -> bool:
        """Whether somebody writes to the file, or was killed while writing; a writer who ends gives it back."""
        return database.lock_file(self.path).exists()  # to try the lock would keep a writer out for a moment

    # What is there.

    def missing(self, start: int, stop: int) -> list[Range]:
        """Return the ranges (first, stop) that are not there, in order."""
        return ranges.gaps(self._covered(), start, stop)

    def covered(self) -> list[Range]:
        """Return the ranges (first, stop) that are there, in order."""
        return list(self._covered())

    def prefix(self) -> int:
        """Return how many replicates, from the first on, are there without a gap."""
        return ranges.prefix(self._covered())

    @property
    def done(self) -> int:
        """How many of the n replicates are finished, failures included."""
        return self.n - ranges.length(self.missing(0, self.n))

    def records(self) -> list[Record]:
        """Return what is known of all replicates without reading their arrays."""
        self._settle()
        with self.snapshot():
            return list(self._contents.records())

    def failures(self) -> tuple[Failure, ...]:
        """Return the lost replicates in order."""
        return _failures(self.records())

    def survey(self) -> tuple[Standing, tuple[Failure, ...], int]:
        """Return how far the run is, what failed, and how many are there without a gap, all from one reading."""
        known = self.records()
        covered = ranges.merged((one.first, one.stop) for one in known)
        return self._standing(known), _failures(known), ranges.prefix(covered)

    def progress(self) -> Standing:
        """Return how far the run is."""
        return self._standing(self.records())

    def _standing(self, known: list[Record]) -> Standing:
        meta = self._meta
        inside = [max(min(one.stop, meta.n) - one.first, 0) for one in known]
        written = [one.written for one in known]
        return Standing(
            meta.n,
            sum(inside),
            sum(lost.replicate < meta.n for one in known for lost in one.failures),
            sum(one.seconds for one in known),
            min(written, default=None),
            max(written, default=None),
            meta.opened,
            sum(count for one, count in zip(known, inside, strict=True) if one.written >= meta.opened),
        )

    # Writing.

    def add(self, record: Replicates) -> None:
        """Keep some replicates; they are written a second later at most, or with :meth:`flush`."""
        self._need_writer()
        if record.n == 0:
            return
        _need_record(record, self.keep)
        own = (record.first, record.stop)
        if self.missing(*own) != [own]:
            raise ValueError(f"replicates {own[0]} to {own[1] - 1} overlap with what {self.path} has already.")
        self._buffer.append(record if self.keep else record.without_kept())
        self._buffered += codec.size_of(record)
        ranges.put(self._ranges, own)
        if time.monotonic() - self._flushed > _EVERY or self._buffered > _AT_MOST:
            self.flush()

    def forget_failures(self, only: Collection[int] | None = None) -> int:
        """Take lost replicates, or some of them, for ones that were never computed; written at once.

        Returns how many there were.
        """
        self._need_writer()
        self.flush()
        parts = ((part, _numbers_lost(part, only)) for part in self.parts(0, sys.maxsize))
        hit = [(self._with_draws(part), lost) for part, lost in parts if lost]
        if not hit:
            return 0
        kept = [piece for part, lost in hit for piece in between(part, lost)]
        with speaking(self.path), self._signed(self._meta):
            for table in ("spans", "draws"):
                where = [(part.first, part.stop) for part, _ in hit]
                self._db.executemany(f"DELETE FROM {table} WHERE first >= ? AND first < ?", where)
            database.insert(self._db, "spans", codec.span_rows(kept, time.time()))
            database.insert(self._db, "draws", codec.draws_rows(kept))
        self._ranges = self._contents.covered()
        return sum(len(lost) for _, lost in hit)

    def _with_draws(self, part: Replicates) -> Replicates:
        """Return some replicates with the draws that are kept of them."""
        if self.keep is None or part.lost == part.n:
            return part
        kept = {f"{KEPT}{name}": array for name, array in self.draws(part.first, part.stop).items()}
        return replace(part, arrays={**part.arrays, **kept})

    def flush(self) -> None:
        """Write what was added; it then survives whatever happens to this process.

        If it cannot be written, it stays in memory and can be flushed again.
        """
        self._need_writer()
        if self._buffer:
            with speaking(self.path):
                self._write()
        self._buffer, self._buffered, self._unsure, self._flushed = [], 0, False, time.monotonic()

    def _write(self) -> None:
        if self._unsure:  # an interrupt between the commit and the line after it
            there = self._contents.covered()
            self._buffer = [one for one in self._buffer if not any(a <= one.first < b for a, b in there)]
        self._unsure = True
        with self._signed(self._meta):
            database.insert(self._db, "spans", codec.span_rows(self._buffer, time.time()))
            database.insert(self._db, "draws", codec.draws_rows(self._buffer))

    @contextlib.contextmanager
    def _signed(self, meta: Meta) -> Iterator[None]:
        """Write everything or nothing, and with it who wrote."""
        signed = replace(
            meta,
            fingerprints=identity.united(meta.fingerprints, self._writer.fingerprints),
            versions=identity.united(meta.versions, self._writer.versions),
        )
        with transaction(self._db):
            if signed != self._meta:
                signed = self._put_meta(signed)
            yield
        self._meta = signed

    def _put_meta(self, meta: Meta) -> Meta:
        """Write the description, inside a transaction, with the looks of others who judge meanwhile."""
        meta = replace(meta, looks=self._contents.meta().looks)
        database.put_meta(self._db, meta_rows(meta))
        return meta

    def add_reference(self, first: int, values: Floats) -> None:
        """Append fresh values of mu0, (count, functions), of which ``first`` are there already; written at once."""
        self._need_writer()
        values = np.asarray(values, float)
        functions = len(self.header.functions)
        if first != self.reference_count or values.ndim != 2 or values.shape[1] != functions:
            raise ValueError(
                f"reference values of {functions} functions from {self.reference_count} on were expected, but shape "
                f"{values.shape} from {first} on arrived."
            )
        with speaking(self.path), self._signed(replace(self._meta, reference=first + len(values))):
            database.insert(self._db, "reference", codec.reference_rows(first, values))

    # Reading.

    @property
    def reference_count(self) -> int:
        """How many fresh values of mu0 there are."""
        return self._meta.reference

    def reference(self, stop: int) -> Floats:
        """Return the first ``stop`` fresh values of mu0, (stop, functions)."""
        if stop > self.reference_count:
            raise StoreError(f"{self.path} has {self.reference_count} reference values, but {stop} were asked for.")
        with speaking(self.path):
            return self._contents.reference(len(self.header.functions), stop)

    def replicates(self, start: int = 0, stop: int | None = None, *, n: int | None = None) -> Replicates:
        """Return replicates, every one of them checked against its checksum.

        Parameters
        ----------
        start, stop
            Which; left out, all n of them.
        n
            The first n: ``n=store.prefix()`` is what there is of a run that goes on.
        """
        self._settle()
        with self.snapshot():
            last = next((end for end in (stop, n) if end is not None), self.n)
            self._refuse_gaps(start, last)
            whole = Gathering(self.header, start, last, fields())
            for part in self._contents.parts(self.header, start, last):
                whole.add(part)
            found = whole.replicates(self.reference(min(self.reference_count, last)))
            return replace(found, stored=Stored(str(self.path), len(self._meta.looks), self.n))

    def _refuse_gaps(self, start: int, stop: int) -> None:
        gaps = self.missing(start, stop)
        if gaps:
            raise InvalidStudy(
                f"replicates {start} to {stop - 1} were asked for, but {ranges.length(gaps)} of them, "
                f"{ranges.said(gaps)}, are not in {self.path}; run the study with this store again, or ask for the "
                f"first {self.prefix()} only."
            )

    def parts(self, start: int, stop: int) -> list[Replicates]:
        """Return what there is of the replicates from ``start`` to before ``stop``, without kept draws."""
        self._settle()
        with self.snapshot():
            return list(self._contents.parts(self.header, start, stop))

    def draws(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        """Return the kept truths and draws of some replicates by name, the replicate on the first axis; lost ones nan.

        Empty if all of them were lost.
        """
        if self.keep is None:
            raise InvalidStudy(f"{self.path} has no draws; run the study with keep='draws' into another file.")
        self._settle()
        with self.snapshot():
            self._refuse_gaps(start, stop)
            return self._contents.draws(start, stop)

    # Opening and closing.

    def close(self) -> None:
        """Write what was added, and let others write."""
        try:
            if self._mine():
                self.flush()
        finally:
            self._release()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What could not be written a moment ago cannot be now; the error that says so is on its way.
        if isinstance(error, StoreError):
            self._release()
        else:
            self.close()

    def _mine(self) -> bool:
        """Whether there is something to write for this process; a forked one inherits the object, not the task."""
        return self._lock is not None and self._process == os.getpid()

    def _release(self) -> None:
        if self._process != os.getpid():
            return
        self._db.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _need_writer(self) -> None:
        if not self._mine():
            raise StoreError(f"{self.path} is not open for writing here; open it with Store.create_or_open.")

    def _settle(self) -> None:
        if self._mine():
            self.flush()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read several things at one moment of the file."""
        with speaking(self.path):
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN")
            try:
                self._meta = self._contents.meta()
                yield
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def _covered(self) -> list[Range]:
        if self._lock is not None:
            return self._ranges
        with speaking(self.path):
            return self._contents.covered()

    def _checked_ranges(self) -> list[Range]:
        """Return what is there, all of it checked."""
        for _ in self._contents.parts(self.header, 0, codec.FURTHEST):
            pass
        self.reference(self.reference_count)
        return self._contents.covered()

    def with_draws(self, record: Replicates) -> Replicates:
        """Return a record of this store with what was kept of it."""
        if not self.keep:
            return record
        return replace(record, arrays={**record.arrays, **codec.as_kept(self.draws(record.first, record.stop))})


def load(path: PathLike) -> Replicates:
    """Return the replicates of a finished run; none of the study's code is needed.

    Of a run that is not finished, :meth:`Store.prefix` says how many can be judged.
    """
    with Store.read(path) as store:
        return store.replicates()


def _prepared(path: Path, db: sqlite3.Connection, wanted: Meta) -> Meta:
    """Return the description that a store is to have; a blank file becomes one, others are left as they are."""
    if database.is_blank(db):
        db.execute("PRAGMA page_size=16384")  # large values are read a third faster than with 4096
        with transaction(db):
            database.create_tables(db)
            database.put_meta(db, meta_rows(wanted))
        return wanted
    version = database.need_ours(path, db)
    if version != database.FORMAT:
        raise StoreError(
            f"{path} has format {version}, which is read but not written; run: ringtrue repair {path} NEW, and go on "
            f"with NEW."
        )
    db.execute("PRAGMA journal_mode=DELETE")  # a write-ahead log needs shared memory, which network file systems lack
    there = Contents(path, db, version).meta()
    need_same(there, wanted, path)
    return there


def _failures(known: list[Record]) -> tuple[Failure, ...]:
    return tuple(sorted((one for record in known for one in record.failures), key=lambda one: one.replicate))


def _numbers_lost(part: Replicates, only: Collection[int] | None) -> list[int]:
    return sorted(one.replicate for one in part.failures if only is None or one.replicate in only)


def between(part: Replicates, numbers: Sequence[int]) -> list[Replicates]:
    """Return the replicates before, between and behind some of them."""
    edges = zip([part.first, *(k + 1 for k in numbers)], [*numbers, part.stop], strict=True)
    return [part.part(a, b) for a, b in edges if a < b]


def _need_record(record: Replicates, keep: str | None) -> None:
    """Refuse a record that could not be read back."""
    n, functions = record.n, len(record.functions)
    for field in fields():
        shape = (n, functions) if field.axes else (n,)
        found = record.arrays[field.name]
        if found.shape != shape or found.dtype != field.dtype:
            raise ValueError(f"{field.name} of shape {shape} was expected, but {found.dtype} {found.shape} arrived.")
    rows = {name: len(array) for name, array in record.arrays.items() if not name.startswith(JOINT)}
    if set(rows.values()) != {n} or any(one.dtype.kind not in "biuf" for one in record.arrays.values()):
        raise ValueError(f"arrays of {n} rows of numbers were expected, but others arrived.")
    if record.first < 0 or any(not record.first <= one.replicate < record.stop for one in record.failures):
        raise ValueError(f"failures among {record.first} to {record.stop - 1} were expected, but others arrived.")
    kept = record.kept_arrays()
    if keep and not kept and record.lost < record.n:
        raise ValueError("a store that keeps draws needs records with draws, but one without arrived.")
    if any(part.dtype.kind != "f" for part in kept.values()):
        raise ValueError("kept draws must be floating-point numbers.")
