"""Spans, draws, reference values and headers as rows of a table, and back.

Coming back, nothing is taken on trust: types, checksums, shapes and the form of every text are looked at, and what is
not as it was written is :class:`~ringtrue.packing.Unreadable`. This module knows no SQL and opens no files.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ...functions.contract import BestOf, Level
from ...replicates.record import Column, Failure
from ...replicates.spans import ARRAYS, FLOATS, INTS, JOINT, Header, Span, joined
from .packing import Unreadable, checksum, need, packed, unpacked

Floats = NDArray[np.float64]
Row = tuple[Any, ...]

#: Bytes of arrays in one row, about; a row is read and checked whole.
_ROW_BYTES = 16_000_000
#: No table reaches so far; a number beyond is damage, and sums of two such still fit 64 bits.
FURTHEST = 2**60

SPAN = ("first", "count", "lost", "written", "seconds", "notes", "failures", "record", "checksum", "arrays")
#: What is known of a span without reading its arrays.
RECORD = SPAN[:8]
DRAWS = ("first", "count", "names", "checksum", "arrays")
REFERENCE = ("first", "count", "checksum", "arrays")

_TYPES: Mapping[str, type] = {
    **dict.fromkeys(("first", "count", "lost"), int),
    **dict.fromkeys(("written", "seconds"), float),
    **dict.fromkeys(("notes", "failures", "names"), str),
    **dict.fromkeys(("record", "checksum", "arrays"), bytes),
}


def _typed(columns: Sequence[str], row: Row) -> dict[str, Any]:
    """Return a row by column names if every value is of its type and its range is one."""
    named = dict(zip(columns, row, strict=True))
    wrong = next((name for name, value in named.items() if type(value) is not _TYPES[name]), None)
    if wrong is not None:
        raise Unreadable(f"{wrong} is a {type(named[wrong]).__name__}")
    if not (0 <= named["first"] < FURTHEST and 0 < named["count"] < FURTHEST):
        raise Unreadable(f"first = {named['first']} and count = {named['count']} are no range")
    return named


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("a text is not JSON") from None


def _need_form(holds: bool, what: str) -> None:
    if not holds:
        raise Unreadable(f"{what} does not have the form it was written in")


@dataclass(frozen=True)
class Record:
    """What is known of a span without its arrays."""

    first: int
    count: int
    written: float
    seconds: float
    notes: frozenset[str]
    failures: tuple[Failure, ...]

    @property
    def stop(self) -> int:
        """The replicate after the last."""
        return self.first + self.count


def span_rows(spans: Sequence[Span], written: float) -> Iterator[Row]:
    """Return the rows of spans, those of adjacent ones joined."""
    bare = sorted((replace(span, kept={}) for span in spans), key=lambda span: span.first)
    for run in _runs(bare, _members_kind, _span_bytes):
        yield _span_row(joined(run), written)


def _span_row(span: Span, written: float) -> Row:
    seconds = float(span.seconds) if math.isfinite(span.seconds) else 0.0
    place = (span.first, span.count)
    record = (*place, len(span.failures), float(written), seconds, json.dumps(sorted(span.notes)), _failure_text(span))
    blob = packed(_span_arrays(span))
    return (*record, checksum("record", record), checksum("span", place, blob), blob)


def _span_arrays(span: Span) -> dict[str, NDArray[Any]]:
    """Return the arrays of a span as few as possible: what an array costs to read hardly depends on its size."""
    ints = np.stack([np.asarray(getattr(span, name), np.int64) for name in INTS])
    small = not ints.size or (ints.min() >= -(2**31) and ints.max() < 2**31)
    arrays: dict[str, NDArray[Any]] = {
        "floats": np.concatenate([np.asarray(getattr(span, name), "<f8") for name in (*FLOATS, *JOINT)]),
        "ints": ints.astype("<i4" if small else "<i8"),
    }
    if span.members is not None:
        arrays["members"] = span.members.astype("<u2", copy=False)
    return arrays


def _failure_text(span: Span) -> str:
    """Return failures as text, each cause once: a traceback that all replicates share is long."""
    causes: dict[tuple[str, str, str], int] = {}
    lost = [
        [one.replicate, causes.setdefault((one.stage, one.error, one.traceback), len(causes))] for one in span.failures
    ]
    return json.dumps({"causes": [list(cause) for cause in causes], "lost": lost}) if lost else ""


def record_of(row: Row) -> Record:
    """Return the record of a span from the first columns of its row."""
    named = _typed(RECORD, row)
    if named["record"] != checksum("record", row[:7]):
        raise Unreadable("the checksum of its record is another")
    notes = _parsed(named["notes"])
    _need_form(isinstance(notes, list) and all(isinstance(note, str) for note in notes), "a list of notes")
    failures = _failures(named["failures"], named["first"], named["first"] + named["count"])
    _need_form(len(failures) == named["lost"], "a list of failures")
    return Record(named["first"], named["count"], named["written"], named["seconds"], frozenset(notes), tuple(failures))


def _failures(text: str, first: int, stop: int) -> list[Failure]:
    if not text:
        return []
    try:
        value = _parsed(text)
        failures = [Failure(i, *value["causes"][k]) for i, k in value["lost"]]
    except (TypeError, KeyError, IndexError, ValueError):
        raise Unreadable("failures do not have the form they were written in") from None
    texts = (part for one in failures for part in (one.stage, one.error, one.traceback))
    numbers = [one.replicate for one in failures]
    _need_form(all(type(i) is int and first <= i < stop for i in numbers), "the number of a failure")
    _need_form(len(set(numbers)) == len(numbers) and all(isinstance(part, str) for part in texts), "a failure")
    return failures


def span_of(row: Row, functions: int) -> Span:
    """Return a span from its row; its arrays are views of the row's bytes."""
    record = record_of(row[: len(RECORD)])
    named = _typed(SPAN, row)
    arrays = _checked("span", (record.first, record.count), named["checksum"], named["arrays"])
    _need_form(set(arrays) | {"members"} == {"floats", "ints", "members"}, "an archive")
    floats = need(arrays["floats"], ("<f8",), (len(FLOATS) * functions + 2, record.count))
    ints = need(arrays["ints"], ("<i4", "<i8"), (len(INTS), functions, record.count)).astype(np.int64)
    members = arrays.get("members")
    if members is not None:
        members = need(members, ("<u2",), (record.count, None, None))
    each = floats[:-2].reshape(len(FLOATS), functions, record.count)
    parts: dict[str, Any] = dict(zip((*FLOATS, *INTS), (*each, *ints), strict=True))
    parts |= {
        "energy": floats[-2:],
        "members": members,
        "failures": record.failures,
        "notes": record.notes,
        "seconds": record.seconds,
    }
    return Span(record.first, **parts)


def _checked(what: str, place: Row, expected: bytes, blob: bytes) -> dict[str, NDArray[Any]]:
    if expected != checksum(what, place, blob):
        raise Unreadable("the checksum of its arrays is another")
    return unpacked(blob)


def draws_rows(spans: Sequence[Span]) -> Iterator[Row]:
    """Return the rows of what spans kept, joined where they are adjacent and alike, cut where they are large."""
    ordered = sorted((span for span in spans if span.kept), key=lambda span: span.first)
    for run in _runs(ordered, _kept_kind, _kept_bytes):
        kept = {name: np.concatenate([span.kept[name] for span in run]) for name in run[0].kept}
        count = run[-1].stop - run[0].first
        step = max(_ROW_BYTES * count // max(sum(map(_bytes, kept.values())), 1), 1)
        for start in range(0, count, step):
            yield _draws_row(run[0].first + start, {name: part[start : start + step] for name, part in kept.items()})


def _draws_row(first: int, kept: Mapping[str, NDArray[Any]]) -> Row:
    blob = packed(
        {str(k): part.astype(part.dtype.newbyteorder("<"), copy=False) for k, part in enumerate(kept.values())}
    )
    place = (first, len(next(iter(kept.values()))), json.dumps(list(kept)))
    return (*place, checksum("draws", place, blob), blob)


def draws_of(row: Row) -> tuple[int, int, dict[str, Floats]]:
    """Return (first, count, arrays by name) from a row of draws."""
    named = _typed(DRAWS, row)
    arrays = _checked("draws", row[:3], named["checksum"], named["arrays"])
    names = _parsed(named["names"])
    _need_form(isinstance(names, list) and all(isinstance(name, str) for name in names), "a list of names")
    _need_form(set(arrays) == set(map(str, range(len(names)))) and len(set(names)) == len(names), "an archive")
    kept = {name: arrays[str(k)] for k, name in enumerate(names)}
    for part in kept.values():
        need(part, ("<f2", "<f4", "<f8"), (named["count"], *part.shape[1:]))
    return named["first"], named["count"], kept


def reference_rows(first: int, values: Floats) -> Iterator[Row]:
    """Return the rows of reference values, from number ``first`` on."""
    step = max(_ROW_BYTES // max(8 * values.shape[1], 1), 1)
    for start in range(0, len(values), step):
        part = values[start : start + step]
        blob = packed({"values": np.asarray(part, "<f8")})
        place = (first + start, len(part))
        yield (*place, checksum("reference", place, blob), blob)


def reference_of(row: Row, functions: int) -> tuple[int, Floats]:
    """Return (first, values) from a row of reference values."""
    named = _typed(REFERENCE, row)
    arrays = _checked("reference", row[:2], named["checksum"], named["arrays"])
    _need_form(set(arrays) == {"values"}, "an archive")
    return named["first"], need(arrays["values"], ("<f8",), (named["count"], functions))


_ANY = object()


def _runs(spans: Sequence[Span], kind: Any, size: Any) -> Iterator[list[Span]]:
    """Group spans that are adjacent and of one kind, up to the size of a row."""
    run: list[Span] = []
    shared: Any = _ANY
    total = 0
    for span in spans:
        own = kind(span)
        fits = bool(run) and run[-1].stop == span.first and (own is _ANY or shared is _ANY or own == shared)
        if run and not (fits and total < _ROW_BYTES):
            yield run
            run, shared, total = [], _ANY, 0
        run.append(span)
        shared, total = (own if shared is _ANY else shared), total + size(span)
    if run:
        yield run


def _members_kind(span: Span) -> Any:
    """Return what must agree for spans to be joined without losing ranks of members; a lost span fits any."""
    if len(span.failures) == span.count:
        return _ANY
    return None if span.members is None else span.members.shape[1:]


def _kept_kind(span: Span) -> Any:
    return [(name, part.shape[1:], part.dtype.str) for name, part in span.kept.items()]


def _bytes(array: NDArray[Any]) -> int:
    return int(array.nbytes)


def _kept_bytes(span: Span) -> int:
    return sum(map(_bytes, span.kept.values()))


def _span_bytes(span: Span) -> int:
    arrays = [getattr(span, name) for name in ARRAYS]
    return sum(map(_bytes, arrays)) + (0 if span.members is None else _bytes(span.members))


def size_of(span: Span) -> int:
    """Return the bytes of a span's arrays, about."""
    return _span_bytes(span) + _kept_bytes(span)


@dataclass(frozen=True)
class Meta:
    """What a store is about.

    ``reference`` is how many reference values there are, ``created`` and ``opened`` the unix times at which it was made
    and last opened for writing, ``arrays`` the names of what is kept of every replicate.
    """

    header: Header
    fingerprint: Mapping[str, str]
    n: int
    keep: str | None
    reference: int
    created: float
    opened: float
    versions: Mapping[str, str]
    arrays: tuple[str, ...] = ARRAYS


def versions() -> dict[str, str]:
    """Return the versions that matter to random numbers and to reading a store.

    Examples
    --------
    >>> sorted(versions())
    ['numpy', 'python', 'ringtrue']
    """
    from importlib.metadata import PackageNotFoundError, version  # only writing a store needs it

    try:
        own = version("ringtrue")
    except PackageNotFoundError:  # run from a checkout
        own = "unknown"
    return {"ringtrue": own, "numpy": np.__version__, "python": platform.python_version()}


def meta_rows(meta: Meta) -> list[Row]:
    """Return the two rows of a store's description: what it is about must survive if anything does."""
    selection = meta.header.selection
    text = json.dumps(
        {
            "columns": [asdict(column) for column in meta.header.columns],
            "seed": meta.header.seed,
            "notes": list(meta.header.notes),
            "selection": None if selection is None else [selection.share, selection.splits],
            "fingerprint": dict(meta.fingerprint),
            "n": meta.n,
            "keep": meta.keep,
            "reference": meta.reference,
            "created": meta.created,
            "opened": meta.opened,
            "versions": dict(meta.versions),
            "arrays": list(meta.arrays),
        }
    )
    return [(copy, text, checksum("meta", (copy, text))) for copy in (0, 1)]


def meta_of(row: Row) -> Meta:
    """Return the description of a store from one of its rows."""
    _need_form(list(map(type, row)) == [int, str, bytes], "the description of the store")
    if row[2] != checksum("meta", row[:2]):
        raise Unreadable("the checksum of the store's description is another")
    try:
        return _meta(_parsed(row[1]))
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise Unreadable(f"the description of the store is not as it was written ({error})") from None


def _meta(value: Any) -> Meta:
    columns = tuple(Column(**column) for column in value["columns"])
    for column in columns:
        right = type(column.name) is str and column.level in get_args(Level) and type(column.coordinate) is bool
        _need_form(right, "a test function")
    names = tuple(column.name for column in columns)
    selection = None if value["selection"] is None else BestOf(names, *value["selection"])
    header = Header(columns, _count(value["seed"]), tuple(_texts(value["notes"])), selection)
    _need_form(value["keep"] is None or type(value["keep"]) is str, "keep")
    return Meta(
        header,
        _text_map(value["fingerprint"]),
        _count(value["n"]),
        value["keep"],
        _count(value["reference"]),
        float(value["created"]),
        float(value["opened"]),
        _text_map(value["versions"]),
        tuple(_texts(value["arrays"])),
    )


def _count(value: Any) -> int:
    _need_form(type(value) is int and value >= 0, "a count")
    return int(value)


def _texts(value: Any) -> list[str]:
    _need_form(type(value) is list and all(type(text) is str for text in value), "a list of texts")
    return list(value)


def _text_map(value: Any) -> dict[str, str]:
    _need_form(type(value) is dict and all(type(text) is str for text in value.values()), "a map of texts")
    return dict(value)
