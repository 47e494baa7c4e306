"""What is in the tables of a store: every row checked before it is believed, and damage said by the replicates it hit.

This module reads; it does not know who writes, or when.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...replicates.record import Header, Replicates
from ...replicates.reducers import fields
from ...values import Floats
from . import codec, format1, ranges
from .codec import Record, Row, Unreadable
from .database import FORMAT, damaged, naming
from .meta import Meta, meta_of
from .ranges import Range

_OVERLAPS = "first < ? AND first + count > ?"
#: Rows that are read ahead while others are checked.
_AHEAD = 3


class Contents:
    """The rows of a store, as format 2 has them, whatever format they are in.

    Parameters
    ----------
    path
        For what is said of damage.
    db, version
        The file, and its format.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, version: int) -> None:
        self.path, self.db, self.version = path, db, version

    def select(self, table: str, columns: Sequence[str], where: str = "1", *values: int) -> Iterator[Row]:
        """Return rows of a table in order, unchecked."""
        names = columns if self.version == FORMAT else format1.columns(table, columns)
        cursor = self.db.execute(f"SELECT {', '.join(names)} FROM {table} WHERE {where} ORDER BY first", values)
        with contextlib.closing(cursor):
            yield from cursor if self.version == FORMAT else (format1.upgrade(table, row) for row in cursor)

    def copy(self, number: int) -> Meta | None:
        """Return one of the two copies of the description."""
        row = self.db.execute("SELECT copy, text, checksum FROM meta WHERE copy = ?", (number,)).fetchone()
        return None if row is None else self._meta_of(row)

    def meta(self) -> Meta:
        """Return the description."""
        with naming(self.path, "the description of the store"):
            # In one statement, which sees one state of the file: somebody may write between two.
            rows = self.db.execute("SELECT copy, text, checksum FROM meta WHERE copy IN (0, 1) ORDER BY copy LIMIT 3")
            copies = [self._meta_of(row) for row in rows.fetchall()]
            if len(copies) != 2 or copies[0] != copies[1]:
                raise Unreadable("its two copies differ")
        return copies[0]

    def _meta_of(self, row: Row) -> Meta:
        return meta_of(row if self.version == FORMAT else format1.upgrade_meta(row))

    def records(self) -> Iterator[Record]:
        """Return what is known of all replicates without their arrays."""
        at, most = 0, self._bytes()
        for row in self.select("spans", codec.RECORD):
            with naming(self.path, _whose(row)):
                record = codec.record_of(row)
                if record.first < at:  # also ends the walk through a table that was bent into a loop
                    raise Unreadable("it overlaps with others")
                if record.count > most:  # before anybody makes room for them
                    raise Unreadable(f"{record.count} replicates do not fit into a file of {most} bytes")
            yield record
            at = record.stop

    def _bytes(self) -> int:
        """Return the size of the file; a replicate has a byte in it at least."""
        return int(np.prod([self.db.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "page_size")]))

    def covered(self) -> list[Range]:
        """Return which replicates are there."""
        return ranges.merged((record.first, record.stop) for record in self.records())

    def lost(self) -> set[int]:
        """Return the numbers of lost replicates."""
        return {one.replicate for record in self.records() for one in record.failures}

    def parts(self, header: Header, start: int, stop: int) -> Iterator[Replicates]:
        """Return replicates; their checksums, half of the work, are computed while other rows are read."""
        rows = self.select("spans", codec.SPAN, _OVERLAPS, stop, start)
        with ThreadPoolExecutor(2) as pool, contextlib.closing(rows):  # type: ignore[type-var]
            waiting: deque[tuple[Row, Future[Row]]] = deque()
            for row in rows:
                waiting.append((row, pool.submit(codec.prove, "spans", row)))
                if len(waiting) > _AHEAD:
                    yield self._part(header, *waiting.popleft(), start, stop)
            while waiting:
                yield self._part(header, *waiting.popleft(), start, stop)

    def _part(self, header: Header, row: Row, proof: Future[Row], start: int, stop: int) -> Replicates:
        # Parsed in this thread: what NumPy reads a header with fails now and then in two threads at once (Python 3.11).
        with naming(self.path, _whose(row)):
            record = codec.span_of(proof.result(), header, fields())
        inside = start <= record.first and record.stop <= stop
        return record if inside else record.part(max(start, record.first), min(stop, record.stop))

    def reference(self, functions: int, stop: int) -> Floats:
        """Return the first ``stop`` fresh values of mu0, (stop, functions)."""
        parts, at = [np.empty((0, functions))], 0
        for row in self.select("reference", codec.BLOCK, "first < ?", stop):
            with naming(self.path, f"reference values from {at} on"):
                first, values = codec.reference_of(codec.prove("reference", row), functions)
                if first != at:
                    raise Unreadable("they are not where they belong")
            parts.append(values)
            at += len(values)
        if at < stop:
            raise damaged(self.path, f"reference values from {at} on are gone")
        return np.concatenate(parts)[:stop]

    def draws(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        """Return kept truths and draws by name; those of lost replicates are nan."""
        whole: dict[str, NDArray[Any]] = {}
        found = np.zeros(stop - start, bool)
        for row in self.select("draws", codec.BLOCK, _OVERLAPS, stop, start):
            with naming(self.path, "kept draws"):
                first, kept = codec.block_of(codec.prove("draws", row))
                low, high = max(first, start), min(first + row[1], stop)
                whole = whole or {k: np.full((stop - start, *a.shape[1:]), np.nan, a.dtype) for k, a in kept.items()}
                if found[low - start : high - start].any() or codec.forms(whole) != codec.forms(kept):
                    raise Unreadable("they overlap, or differ in form")
            found[low - start : high - start] = True
            for name, part in kept.items():
                whole[name][low - start : high - start] = part[low - first : high - first]
        found[[i - start for i in self.lost() if start <= i < stop]] = True
        if not found.all():
            raise damaged(self.path, f"the draws of replicate {start + int(np.argmin(found))} are gone")
        return whole


def _whose(row: Row) -> str:
    first, count = row[:2]
    whole = type(first) is int and type(count) is int and count > 0
    return (
        f"what it has of replicates {first} to {first + count - 1}" if whole else f"what it has of replicate {first!r}"
    )
