"""New stores from old ones: shares of a run put together, and what is left of a damaged file.

The versions and fingerprints of all who wrote go along. This module computes no replicate.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import StoreDamaged, StoreError
from ...replicates.record import Replicates
from ...replicates.reducers import fields
from . import codec, ranges
from .codec import Row, Unreadable
from .contents import Contents
from .database import PathLike, absent_file, connect, existing_file, need_ours, speaking
from .meta import Meta, need_same
from .pouring import pour, pour_reference, united
from .ranges import Range
from .store import Store

#: Look-ups that a repair spends on finding rows behind damage.
_LOOKUPS = 10_000


@dataclass(frozen=True)
class Repaired:
    """What a repair saved: ``kept`` replicates and ``reference`` values; ``lost`` are the gaps that remain below n."""

    kept: int
    lost: tuple[Range, ...]
    reference: int

    def __str__(self) -> str:
        gaps = ranges.said(self.lost) if self.lost else "none"
        return f"{self.kept} replicates were saved; missing below n: {gaps}."


def merge(paths: Iterable[PathLike], out: PathLike) -> None:
    """Put the stores of one study, computed in shares, together into a new one.

    Replicates that several of them have must be the same in all.
    """
    if isinstance(paths, (str, os.PathLike)) or not isinstance(paths, Iterable):
        raise TypeError(f"merge needs a list of the stores to put together, but {paths!r} arrived; pass [{paths!r}].")
    out = absent_file(out)
    with contextlib.ExitStack() as opened:
        stores = [opened.enter_context(Store.read(path)) for path in paths]
        if not stores:
            raise StoreError("at least one store is needed to merge, but none arrived.")
        for other in stores[1:]:
            need_same(stores[0].meta, other.meta, stores[0].path, other.path)
        with _made_whole(out, united([store.meta for store in stores])) as whole:
            for store in stores:
                pour_reference(store, whole)
                with store.snapshot():
                    for record in store.parts(0, codec.FURTHEST):
                        pour(store, store.with_draws(record), whole)


@contextlib.contextmanager
def _made_whole(out: Path, meta: Meta) -> Iterator[Store]:
    """Make a new store, or, if that fails, none."""
    try:
        with Store.opened(out, meta) as whole:
            yield whole
    except BaseException:
        out.unlink(missing_ok=True)
        raise


def repair(path: PathLike, out: PathLike) -> Repaired:
    """Copy all of a damaged store that can be read and proves right into a new one, of the present format.

    What is lost is missing there, and computed again when the study is run with the new store.
    """
    path, out = existing_file(path), absent_file(out)
    with (
        speaking(path),
        # With this setting SQLite reads files that are shorter than they should be.
        contextlib.closing(connect(path, "rw", "writable_schema=ON")) as db,
    ):
        contents, meta = _legible(path, db)
        with _made_whole(out, replace(meta, reference=0)) as whole:
            _rescue_reference(contents, whole)
            _rescue_replicates(contents, whole)
            return Repaired(whole.done, tuple(whole.missing(0, whole.n)), whole.reference_count)


def _legible(path: Path, db: sqlite3.Connection) -> tuple[Contents, Meta]:
    with contextlib.suppress(sqlite3.Error, StoreDamaged):
        contents = Contents(path, db, need_ours(path, db))
        for number in (0, 1):
            with contextlib.suppress(sqlite3.Error, Unreadable):
                if (meta := contents.copy(number)) is not None:
                    return contents, meta
    raise StoreDamaged(
        f"{path} cannot be repaired: what says which study it belongs to is damaged too. Run the study with a new file."
    )


def _rescue_reference(contents: Contents, whole: Store) -> None:
    found = {}
    for row in _readable(contents, "reference", codec.BLOCK):
        with contextlib.suppress(Unreadable):
            first, values = codec.reference_of(codec.prove("reference", row), len(whole.header.functions))
            found[first] = values
    while whole.reference_count in found:
        whole.add_reference(whole.reference_count, found[whole.reference_count])


def _rescue_replicates(contents: Contents, whole: Store) -> None:
    places: dict[int, int] = {}
    if whole.keep:
        for row in _readable(contents, "draws", codec.BLOCK):
            with contextlib.suppress(Unreadable):
                first, _ = codec.block_of(codec.prove("draws", row))
                places[first] = first + row[1]
    for row in _readable(contents, "spans", codec.SPAN):
        with contextlib.suppress(Unreadable, sqlite3.Error):
            record = codec.span_of(codec.prove("spans", row), whole.header, fields())
            for part in _with_draws(contents, record, places) if whole.keep else [record]:
                if whole.missing(part.first, part.stop) == [(part.first, part.stop)]:
                    whole.add(part)


def _with_draws(contents: Contents, record: Replicates, places: Mapping[int, int]) -> Iterator[Replicates]:
    """Return the parts of a record whose draws are there, and its failures."""
    free = set(range(record.first, record.stop))
    for first, stop in sorted(places.items()):
        low, high = max(first, record.first), min(stop, record.stop)
        if low >= high or not free.issuperset(range(low, high)):
            continue
        (row,) = contents.select("draws", codec.BLOCK, "first = ?", first)
        kept = {name: a[low - first : high - first] for name, a in codec.block_of(row)[1].items()}
        free -= set(range(low, high))
        part = record.part(low, high)
        yield replace(part, arrays={**part.arrays, **codec.as_kept(kept)})
    for one in record.failures:
        if one.replicate in free:
            yield record.part(one.replicate, one.replicate + 1)


def _readable(contents: Contents, table: str, columns: Sequence[str]) -> Iterator[Row]:
    """Return the rows that SQLite can still find, wide ranges first, so that no damage hides what is behind it."""
    waiting = deque([(0, codec.FURTHEST)])
    for _ in range(_LOOKUPS):
        if not waiting:
            return
        low, high = waiting.popleft()
        try:
            for row in contents.select(table, columns, "first BETWEEN ? AND ?", low, high):
                if type(row[0]) is not int or not low <= row[0] <= high:
                    raise sqlite3.DatabaseError("rows are out of order")
                yield row
                low = row[0] + 1
        except sqlite3.Error:
            if low < high:
                middle = (low + high) // 2
                waiting.extend([(low, middle), (middle + 1, high)])
