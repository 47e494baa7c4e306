"""Runs on disk: one SQLite file that survives its writer.

What is in it is written in transactions by one process, and read by any number, also meanwhile. Nothing in it is code:
arrays of numbers and texts, each with a checksum, so that damage is noticed and never judged. This module computes
nothing and needs none of the user's functions.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import sqlite3
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidStudy, StoreDamaged, StoreError, StoreMismatch
from ...replicates.record import Failure, Replicates
from ...replicates.spans import ARRAYS, JOINT, Header, Span, collected, joined
from . import rows
from .database import (
    Lock,
    PathLike,
    Row,
    absent_file,
    close_with,
    connect,
    create_tables,
    damaged,
    existing_file,
    insert,
    is_blank,
    naming,
    need_ours,
    select,
    speaking,
    transaction,
    writable_place,
)
from .packing import Unreadable
from .rows import Meta, Record

Floats = NDArray[np.float64]
Range = tuple[int, int]

_OVERLAPS = "first < ? AND first + count > ?"
#: Seconds, and bytes, after which what was added is written.
_EVERY, _AT_MOST = 1.0, 16_000_000
#: Look-ups that a repair spends on finding rows behind damage.
_LOOKUPS = 10_000


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


@dataclass(frozen=True)
class Repaired:
    """What a repair saved: ``kept`` replicates and ``reference`` values; ``lost`` are the gaps that remain below n."""

    kept: int
    lost: tuple[Range, ...]
    reference: int

    def __str__(self) -> str:
        gaps = _said(self.lost) if self.lost else "none"
        return f"{self.kept} replicates were saved; missing below n: {gaps}."


class Store:
    """The replicates of one study in a file. Made by :meth:`create_or_open` and :meth:`read`.

    Examples
    --------
    >>> import tempfile
    >>> from ringtrue.replicates.record import Column
    >>> from ringtrue.replicates.spans import lost_span
    >>> header = Header((Column("theta", "strong", True),), seed=0)
    >>> path = Path(tempfile.mkdtemp()) / "run.db"
    >>> with Store.create_or_open(path, header=header, fingerprint={}, n=10) as store:
    ...     store.add(lost_span(4, 2, 1, Failure(4, "procedure", "it died", "")))
    ...     store.missing(0, 10)
    [(0, 4), (6, 10)]
    >>> Store.read(path).done
    2
    """

    def __init__(self, path: Path, db: sqlite3.Connection, meta: Meta, lock: Lock | None = None) -> None:
        self.path, self._db, self._meta, self._lock = path, db, meta, lock
        close_with(self, db)
        self._process = os.getpid()
        self._buffer: list[Span] = []
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
            Whether spans come with draws.
        """
        path, now = writable_place(path), time.time()
        wanted = Meta(header, dict(fingerprint), n, keep, 0, now, now, rows.versions())
        with contextlib.ExitStack() as undo, speaking(path):
            lock = Lock(path)
            undo.callback(lock.release)
            db = undo.enter_context(contextlib.closing(connect(path, "rwc")))
            store = cls(path, db, _prepared(path, db, wanted), lock)
            undo.pop_all()
            return store

    @classmethod
    def read(cls, path: PathLike) -> Store:
        """Open a store for reading, also while it is written."""
        path = existing_file(path)
        with contextlib.ExitStack() as undo, speaking(path):
            # A reader may have to roll back what a writer died in.
            db = undo.enter_context(contextlib.closing(connect(path, "rw")))
            db.execute("PRAGMA query_only=ON")
            need_ours(path, db)
            store = cls(path, db, _meta(path, db))
            undo.pop_all()
            return store

    @property
    def header(self) -> Header:
        """What a judgement needs to know besides spans."""
        return self._meta.header

    @property
    def fingerprint(self) -> dict[str, str]:
        """What the study is made of."""
        return dict(self._meta.fingerprint)

    @property
    def n(self) -> int:
        """How many replicates were asked for."""
        return self._meta.n

    @property
    def keep(self) -> str | None:
        """Whether draws are kept."""
        return self._meta.keep

    @property
    def versions(self) -> dict[str, str]:
        """The versions of ringtrue, numpy and Python that made the file."""
        return dict(self._meta.versions)

    def missing(self, start: int, stop: int) -> list[Range]:
        """Return the ranges (first, stop) that are not there, in order."""
        gaps, at = [], start
        covered = self._covered()
        for first, end in covered[max(bisect.bisect(covered, (start, start)) - 1, 0) :]:
            if end <= at:
                continue
            if first >= stop:
                break
            if first > at:
                gaps.append((at, first))
            at = end
        return gaps + ([(at, stop)] if at < stop else [])

    def prefix(self) -> int:
        """Return how many replicates, from the first on, are there without a gap."""
        covered = self._covered()
        return covered[0][1] if covered and covered[0][0] == 0 else 0

    @property
    def done(self) -> int:
        """How many of the n replicates are finished, failures included."""
        return self.n - sum(stop - start for start, stop in self.missing(0, self.n))

    def add(self, span: Span) -> None:
        """Keep a span; it is written a second later at most, or with :meth:`flush`."""
        self._need_writer()
        if span.count == 0:
            return
        _need_span(span, len(self.header.columns), self.keep)
        if self.missing(span.first, span.stop) != [(span.first, span.stop)]:
            raise ValueError(f"replicates {span.first} to {span.stop - 1} overlap with what {self.path} has already.")
        self._buffer.append(span if self.keep else replace(span, kept={}))
        self._buffered += rows.size_of(span)
        place = bisect.bisect(self._ranges, (span.first, span.stop))
        near = slice(max(place - 1, 0), place + 1)
        self._ranges[near] = _merged([*self._ranges[near], (span.first, span.stop)])
        if time.monotonic() - self._flushed > _EVERY or self._buffered > _AT_MOST:
            self.flush()

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
            there = _merged((record.first, record.stop) for record in self._records())
            self._buffer = [one for one in self._buffer if not any(a <= one.first < b for a, b in there)]
        self._unsure = True
        with transaction(self._db):
            insert(self._db, "spans", rows.span_rows(self._buffer, time.time()))
            insert(self._db, "draws", rows.draws_rows(self._buffer))

    def add_reference(self, first: int, values: Floats) -> None:
        """Append fresh values of mu0, (count, functions), of which ``first`` are there already; written at once."""
        self._need_writer()
        values = np.asarray(values, float)
        if first != self.reference_count or values.ndim != 2 or values.shape[1] != len(self.header.columns):
            raise ValueError(
                f"reference values of {len(self.header.columns)} functions from {self.reference_count} on were "
                f"expected, but shape {values.shape} from {first} on arrived."
            )
        meta = replace(self._meta, reference=first + len(values))
        with speaking(self.path), transaction(self._db):
            insert(self._db, "reference", rows.reference_rows(first, values))
            _put_meta(self._db, meta)
        self._meta = meta

    @property
    def reference_count(self) -> int:
        """How many fresh values of mu0 there are."""
        return self._meta.reference

    def reference(self, stop: int) -> Floats:
        """Return the first ``stop`` fresh values of mu0, (stop, functions)."""
        if stop > self.reference_count:
            raise StoreError(f"{self.path} has {self.reference_count} reference values, but {stop} were asked for.")
        parts = [np.empty((0, len(self.header.columns)))]
        with speaking(self.path):
            for _, values in self._reference_parts(stop):
                parts.append(values)
        values = np.concatenate(parts)
        if len(values) < stop:
            raise damaged(self.path, f"reference values from {len(values)} on are gone")
        return values[:stop]

    def _reference_parts(self, stop: int) -> Iterator[tuple[int, Floats]]:
        at = 0
        for row in select(self._db, "reference", rows.REFERENCE, "first < ?", stop):
            with naming(self.path, f"reference values from {at} on"):
                first, values = rows.reference_of(row, len(self.header.columns))
                if first != at:
                    raise Unreadable("they are not where they belong")
            yield first, values
            at += len(values)

    def failures(self) -> tuple[Failure, ...]:
        """Return the lost replicates in order."""
        self._settle()
        with speaking(self.path):
            return tuple(sorted((one for r in self._records() for one in r.failures), key=lambda one: one.replicate))

    def progress(self) -> Standing:
        """Return how far the run is."""
        self._settle()
        with self._snapshot():
            records, meta = list(self._records()), self._meta
        inside = [max(min(record.stop, meta.n) - record.first, 0) for record in records]
        written = [record.written for record in records]
        return Standing(
            meta.n,
            sum(inside),
            sum(one.replicate < meta.n for record in records for one in record.failures),
            sum(record.seconds for record in records),
            min(written, default=None),
            max(written, default=None),
            meta.opened,
            sum(count for record, count in zip(records, inside, strict=True) if record.written >= meta.opened),
        )

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
        with self._snapshot():
            last = next((end for end in (stop, n) if end is not None), self.n)
            self._refuse_gaps(start, last)
            spans = self._spans_at_once(start, last)
            reference = self.reference(min(self.reference_count, last))
        return collected(self.header, last, spans, reference)

    def _refuse_gaps(self, start: int, stop: int) -> None:
        gaps = self.missing(start, stop)
        if gaps:
            many = sum(end - first for first, end in gaps)
            raise InvalidStudy(
                f"replicates {start} to {stop - 1} were asked for, but {many} of them, {_said(gaps)}, are not in "
                f"{self.path}; run the study with this store again, or ask for the first {self.prefix()} only."
            )

    def spans(self, start: int, stop: int) -> list[Span]:
        """Return what there is of the replicates from ``start`` to before ``stop``, without kept draws."""
        self._settle()
        with self._snapshot():
            return list(self._spans(start, stop))

    def draws(self, start: int, stop: int) -> dict[str, Floats]:
        """Return the kept truths and draws of some replicates by name, the replicate on the first axis; lost ones nan.

        Empty if all of them were lost.
        """
        if self.keep is None:
            raise InvalidStudy(f"{self.path} has no draws; run the study with keep='draws' into another file.")
        self._settle()
        with self._snapshot():
            self._refuse_gaps(start, stop)
            lost = {one.replicate for record in self._records() for one in record.failures}
            return self._draws(start, stop, lost)

    def _draws(self, start: int, stop: int, lost: set[int]) -> dict[str, Floats]:
        whole: dict[str, Floats] = {}
        found = np.zeros(stop - start, bool)
        for row in select(self._db, "draws", rows.DRAWS, _OVERLAPS, stop, start):
            with naming(self.path, "kept draws"):
                first, count, kept = rows.draws_of(row)
                low, high = max(first, start), min(first + count, stop)
                whole = whole or {
                    name: np.full((stop - start, *a.shape[1:]), np.nan, a.dtype) for name, a in kept.items()
                }
                if found[low - start : high - start].any() or _forms(whole) != _forms(kept):
                    raise Unreadable("they overlap, or differ in form")
            found[low - start : high - start] = True
            for name, part in kept.items():
                whole[name][low - start : high - start] = part[low - first : high - first]
        gone = [int(i) + start for i in np.flatnonzero(~found) if int(i) + start not in lost]
        if gone:
            raise damaged(self.path, f"the draws of replicate {gone[0]} are gone")
        return whole

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
    def _snapshot(self) -> Iterator[None]:
        """Read several things at one moment of the file."""
        with speaking(self.path):
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN")
            try:
                self._meta = _meta(self.path, self._db)
                yield
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def _covered(self) -> list[Range]:
        if self._lock is not None:
            return self._ranges
        with speaking(self.path):
            return _merged((record.first, record.stop) for record in self._records())

    def _records(self) -> Iterator[Record]:
        at = 0
        for row in select(self._db, "spans", rows.RECORD):
            with naming(self.path, _whose(row)):
                record = rows.record_of(row)
                if record.first < at:  # also ends the walk through a table that was bent into a loop
                    raise Unreadable("it overlaps with others")
            yield record
            at = record.stop

    def _spans(self, start: int, stop: int) -> Iterator[Span]:
        for row in select(self._db, "spans", rows.SPAN, _OVERLAPS, stop, start):
            yield self._span(row, start, stop)

    def _spans_at_once(self, start: int, stop: int) -> list[Span]:
        """Return spans whose checksums were computed while others were read; hashing is a large part of the work."""
        with ThreadPoolExecutor(2) as pool:
            chosen = select(self._db, "spans", rows.SPAN, _OVERLAPS, stop, start)
            return list(pool.map(lambda row: self._span(row, start, stop), chosen))

    def _span(self, row: Row, start: int, stop: int) -> Span:
        with naming(self.path, _whose(row)):
            span = rows.span_of(row, len(self.header.columns))
        inside = start <= span.first and span.stop <= stop
        return span if inside else _cut(span, max(start, span.first), min(stop, span.stop))

    def _checked_ranges(self) -> list[Range]:
        """Return what is there, all of it checked."""
        for _ in self._spans(0, rows.FURTHEST):
            pass
        self.reference(self.reference_count)
        return _merged((record.first, record.stop) for record in self._records())

    def _with_draws(self, span: Span) -> Span:
        return replace(span, kept=self.draws(span.first, span.stop)) if self.keep else span


def load(path: PathLike) -> Replicates:
    """Return the replicates of a finished run; none of the study's code is needed.

    Of a run that is not finished, :meth:`Store.prefix` says how many can be judged.
    """
    with Store.read(path) as store:
        return store.replicates()


def merge(paths: Iterable[PathLike], out: PathLike) -> None:
    """Put the stores of one study, computed in shares, together into a new one.

    Replicates that several of them have must be the same in all.
    """
    out = absent_file(out)
    with contextlib.ExitStack() as opened:
        stores = [opened.enter_context(Store.read(path)) for path in paths]
        if not stores:
            raise StoreError("at least one store is needed to merge, but none arrived.")
        for other in stores[1:]:
            _need_same(stores[0]._meta, other._meta, stores[0].path, other.path)
        with _made_whole(out, replace(stores[0]._meta, n=max(store.n for store in stores))) as whole:
            for store in stores:
                _pour_reference(store, whole)
                with store._snapshot():
                    for span in store._spans(0, rows.FURTHEST):
                        _pour(store, store._with_draws(span), whole)


@contextlib.contextmanager
def _made_whole(out: Path, meta: Meta) -> Iterator[Store]:
    """Make a new store, or, if that fails, none."""
    settings: dict[str, Any] = {"header": meta.header, "fingerprint": meta.fingerprint, "n": meta.n, "keep": meta.keep}
    try:
        with Store.create_or_open(out, **settings) as whole:
            yield whole
    except BaseException:
        out.unlink(missing_ok=True)
        raise


def _pour_reference(store: Store, whole: Store) -> None:
    values, have = store.reference(store.reference_count), whole.reference_count
    common = min(have, len(values))
    if values[:common].tobytes() != whole.reference(common).tobytes():
        raise StoreMismatch(f"{store.path} has other reference values than the stores before it. {_IRREPRODUCIBLE}")
    if len(values) > have:
        whole.add_reference(have, values[have:])


def _pour(store: Store, span: Span, whole: Store) -> None:
    gaps = whole.missing(span.first, span.stop)
    edges = [span.first, *(edge for gap in gaps for edge in gap), span.stop]
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if start < stop:
            _need_equal(store, span.part(start, stop), whole)
    for start, stop in gaps:
        whole.add(_cut(span, start, stop))


_IRREPRODUCIBLE = (
    "The fingerprints agree, so the study is not reproducible, or it depends on something that a fingerprint cannot "
    "see; tell such studies apart with tag=."
)


def _need_equal(store: Store, span: Span, whole: Store) -> None:
    there = joined(whole.spans(span.first, span.stop))
    there = whole._with_draws(there)
    if _contents(there) != _contents(span):
        raise StoreMismatch(
            f"{store.path} has other results for replicates {span.first} to {span.stop - 1} than the stores before it. "
            f"{_IRREPRODUCIBLE}"
        )


def _contents(span: Span) -> Any:
    """Return what must be the same wherever a replicate was computed; tracebacks name places."""
    arrays = [np.ascontiguousarray(getattr(span, name)).tobytes() for name in ARRAYS]
    kept = {name: part.tobytes() for name, part in span.kept.items()}
    return arrays, kept, [(one.replicate, one.stage, one.error) for one in span.failures]


def repair(path: PathLike, out: PathLike) -> Repaired:
    """Copy all of a damaged store that can be read and proves right into a new one.

    What is lost is missing there, and computed again when the study is run with the new store.
    """
    path, out = existing_file(path), absent_file(out)
    with (
        speaking(path),
        # With this setting SQLite reads files that are shorter than they should be.
        contextlib.closing(connect(path, "rw", "writable_schema=ON")) as db,
        _made_whole(out, _any_meta(path, db)) as whole,
    ):
        _rescue_reference(db, whole)
        _rescue_spans(db, whole)
        return Repaired(whole.done, tuple(whole.missing(0, whole.n)), whole.reference_count)


def _any_meta(path: Path, db: sqlite3.Connection) -> Meta:
    with contextlib.suppress(sqlite3.Error, StoreDamaged):
        need_ours(path, db)
        for copy in (0, 1):
            with contextlib.suppress(sqlite3.Error, Unreadable):
                for row in db.execute("SELECT copy, text, checksum FROM meta WHERE copy = ?", (copy,)):
                    return _need_arrays(path, rows.meta_of(row))
    raise StoreDamaged(
        f"{path} cannot be repaired: what says which study it belongs to is damaged too. Run the study with a new file."
    )


def _rescue_reference(db: sqlite3.Connection, whole: Store) -> None:
    found = {}
    for row in _readable(db, "reference", rows.REFERENCE):
        with contextlib.suppress(Unreadable):
            first, values = rows.reference_of(row, len(whole.header.columns))
            found[first] = values
    while whole.reference_count in found:
        whole.add_reference(whole.reference_count, found[whole.reference_count])


def _rescue_spans(db: sqlite3.Connection, whole: Store) -> None:
    places = {}
    if whole.keep:
        for row in _readable(db, "draws", rows.DRAWS):
            with contextlib.suppress(Unreadable):
                first, count, _ = rows.draws_of(row)
                places[first] = first + count
    for row in _readable(db, "spans", rows.SPAN):
        with contextlib.suppress(Unreadable, sqlite3.Error):
            span = rows.span_of(row, len(whole.header.columns))
            parts = _parts_with_draws(db, span, places) if whole.keep else [span]
            for part in parts:
                if whole.missing(part.first, part.stop) == [(part.first, part.stop)]:
                    whole.add(part)


def _parts_with_draws(db: sqlite3.Connection, span: Span, places: Mapping[int, int]) -> Iterator[Span]:
    """Return the parts of a span whose draws are there, and its failures."""
    lost = {one.replicate for one in span.failures}
    free = set(range(span.first, span.stop))
    for first, stop in sorted(places.items()):
        low, high = max(first, span.first), min(stop, span.stop)
        if low >= high or not free.issuperset(range(low, high)):
            continue
        (row,) = db.execute(f"SELECT {', '.join(rows.DRAWS)} FROM draws WHERE first = ?", (first,)).fetchall()
        _, _, kept = rows.draws_of(row)
        free -= set(range(low, high))
        yield replace(_cut(span, low, high), kept={name: a[low - first : high - first] for name, a in kept.items()})
    for i in sorted(free & lost):
        yield _cut(span, i, i + 1)


def _readable(db: sqlite3.Connection, table: str, columns: Sequence[str]) -> Iterator[Row]:
    """Return the rows that SQLite can still find, wide ranges first, so that no damage hides what is behind it."""
    ranges = deque([(0, rows.FURTHEST)])
    for _ in range(_LOOKUPS):
        if not ranges:
            return
        low, high = ranges.popleft()
        try:
            for row in select(db, table, columns, "first BETWEEN ? AND ?", low, high):
                if type(row[0]) is not int or not low <= row[0] <= high:
                    raise sqlite3.DatabaseError("rows are out of order")
                yield row
                low = row[0] + 1
        except sqlite3.Error:
            if low < high:
                middle = (low + high) // 2
                ranges.extend([(low, middle), (middle + 1, high)])


def _prepared(path: Path, db: sqlite3.Connection, wanted: Meta) -> Meta:
    """Return the description of a store, made new if the file is empty."""
    if is_blank(db):
        db.execute("PRAGMA page_size=16384")  # large values are read a third faster than with 4096
    else:
        need_ours(path, db)
    db.execute("PRAGMA journal_mode=DELETE")  # a write-ahead log needs shared memory, which network file systems lack
    with transaction(db):
        if is_blank(db):
            create_tables(db)
            meta = wanted
        else:
            there = _meta(path, db)
            _need_same(there, wanted, path)
            meta = replace(there, n=max(there.n, wanted.n), opened=wanted.opened)
        _put_meta(db, meta)
    return meta


def _meta(path: Path, db: sqlite3.Connection) -> Meta:
    with naming(path, "the description of the store"):
        there = db.execute("SELECT copy, text, checksum FROM meta ORDER BY copy LIMIT 3").fetchall()
        metas = [rows.meta_of(row) for row in there]
        if [row[0] for row in there] != [0, 1] or there[0][1] != there[1][1]:
            raise Unreadable("its two copies differ")
    return _need_arrays(path, metas[0])


def _need_arrays(path: Path, meta: Meta) -> Meta:
    if meta.arrays != ARRAYS:
        raise StoreError(
            f"{path} was made by ringtrue {meta.versions.get('ringtrue')}, which kept other numbers of every "
            f"replicate; use that version, or run the study again with a new file."
        )
    return meta


def _put_meta(db: sqlite3.Connection, meta: Meta) -> None:
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", rows.meta_rows(meta))


def _need_same(there: Meta, wanted: Meta, path: Path, other: Path | None = None) -> None:
    """Refuse another study, and say in what it differs."""
    ours = {**wanted.fingerprint, **_marks(wanted)}
    theirs = {**there.fingerprint, **_marks(there)}
    name = next((name for name in (*ours, *theirs) if ours.get(name) != theirs.get(name)), None)
    if name is None:
        return
    who = "this study" if other is None else str(other)
    advice = "and merge stores of one study only" if other else "or make the study what it was"
    raise StoreMismatch(
        f"{path} belongs to another study than {who}: {name} is {theirs.get(name, 'not given')} there, but "
        f"{ours.get(name, 'not given')} here. Use another file name, {advice}; tag= tells studies apart that differ "
        f"in what a fingerprint cannot see."
    )


def _marks(meta: Meta) -> dict[str, str]:
    header, chosen = meta.header, meta.header.selection
    return {
        "the list of test functions": ", ".join(f"{c.name} ({c.level})" for c in header.columns),
        "the seed": str(header.seed),
        "the choice of test functions": "none" if chosen is None else f"share {chosen.share}, splits {chosen.splits}",
        "what is kept": str(meta.keep),
    }


def _whose(row: Row) -> str:
    first, count = row[:2]
    whole = type(first) is int and type(count) is int and count > 0
    return (
        f"what it has of replicates {first} to {first + count - 1}" if whole else f"what it has of replicate {first!r}"
    )


def _need_span(span: Span, functions: int, keep: str | None) -> None:
    """Refuse a span that could not be read back."""
    shapes = {name: np.shape(getattr(span, name)) for name in ARRAYS}
    expected = {name: (2 if name in JOINT else functions, span.count) for name in ARRAYS}
    wrong = next((name for name in ARRAYS if shapes[name] != expected[name]), None)
    if wrong is not None:
        raise ValueError(f"{wrong} of shape {expected[wrong]} was expected, but {shapes[wrong]} arrived.")
    if span.first < 0 or any(not span.first <= one.replicate < span.stop for one in span.failures):
        raise ValueError(f"failures among {span.first} to {span.stop - 1} were expected, but others arrived.")
    if keep and not span.kept and len(span.failures) < span.count:
        raise ValueError("a store that keeps draws needs spans with draws, but one without arrived.")
    if any(part.dtype.kind != "f" or len(part) != span.count for part in span.kept.values()):
        raise ValueError(f"kept draws must be {span.count} rows of floating-point numbers each.")


def _cut(span: Span, start: int, stop: int) -> Span:
    part = span.part(start, stop)
    return replace(part, seconds=span.seconds * part.count / span.count)


def _merged(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges in order, adjacent ones as one."""
    merged: list[Range] = []
    for first, stop in sorted(ranges):
        if merged and merged[-1][1] == first:
            merged[-1] = (merged[-1][0], stop)
        else:
            merged.append((first, stop))
    return merged


def _forms(arrays: Mapping[str, NDArray[Any]]) -> list[tuple[str, tuple[int, ...], str]]:
    return [(name, array.shape[1:], array.dtype.str) for name, array in arrays.items()]


def _said(gaps: Sequence[Range]) -> str:
    """Name the first few ranges."""
    shown = ", ".join(f"{first} to {stop - 1}" for first, stop in gaps[:3])
    return shown + (", ..." if len(gaps) > 3 else "")
