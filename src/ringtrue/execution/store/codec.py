"""Records as rows of a table, and back.

The arrays of a row are one structured NumPy array in the npy format, a row per replicate and a field per array, so
that fields this version does not know go in and out like all others. Coming back, nothing is taken on trust: types,
checksums, shapes and the form of every text are looked at before anything is allocated, and what is not as it was
written is :class:`Unreadable`. This module knows no SQL and opens no files.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ...replicates.record import KEPT, Failure, Field, Header, Replicates, join
from ...values import Floats

Row = tuple[Any, ...]
Arrays = Mapping[str, NDArray[Any]]

#: Bytes of arrays in one row, about; a row is read and checked whole.
_ROW_BYTES = 16_000_000
#: No table reaches so far; a number beyond is damage, and sums of two such still fit 64 bits.
FURTHEST = 2**60
#: Unix times and seconds of computing end here, in the year 9999: programs that say them know no later one.
LATEST = 253_402_300_799.0
#: Bytes of what is said before an array; hundreds of fields fit.
_HEADER_BYTES = 100_000

BLOCK = ("first", "count", "checksum", "arrays")
#: What is known of a row of replicates without reading its arrays.
RECORD = ("first", "count", "lost", "written", "seconds", "failures", "record")
SPAN = (*RECORD, "checksum", "arrays")

_TYPES: Mapping[str, type] = {
    **dict.fromkeys(("first", "count", "lost"), int),
    **dict.fromkeys(("written", "seconds"), float),
    "failures": str,
    **dict.fromkeys(("record", "checksum", "arrays"), bytes),
}


class Unreadable(ValueError):
    """A row is not what a store writes."""


# Arrays.


def packed(arrays: Arrays) -> bytes:
    """Return arrays with a common first axis as the bytes of one npy file; zeros where one is shorter than others.

    Examples
    --------
    >>> unpacked(packed({"a": np.arange(3)}), 3)["a"]
    array([0, 1, 2])
    """
    form = [(_escaped(name), array.dtype.newbyteorder("<"), array.shape[1:]) for name, array in arrays.items()]
    table = np.zeros(max(map(len, arrays.values())), form)
    for name, array in arrays.items():
        table[_escaped(name)][: len(array)] = array
    buffer = io.BytesIO()
    npy.write_array(buffer, table, version=(2, 0), allow_pickle=False)
    return buffer.getvalue()


def unpacked(blob: bytes, count: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npy file by name, ``count`` rows each, as read-only views of its bytes."""
    start = min(12 + int.from_bytes(blob[8:12], "little"), _HEADER_BYTES)
    shape, dtype = _declared(blob[:start])
    if shape != (count,) or not _is_table(dtype):
        raise Unreadable(f"{count} rows of named numbers were expected, but {dtype} of shape {shape} was declared")
    if count * dtype.itemsize != len(blob) - start:
        raise Unreadable(f"{count} rows of {dtype.itemsize} bytes were declared, but {len(blob) - start} bytes arrived")
    table = np.frombuffer(blob, dtype, count, start)
    return {_unescaped(name): table[name] for name in dtype.names or ()}


@functools.lru_cache(256)
def _declared(head: bytes) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype from the first bytes of an npy file; many rows have the same, and reading them is slow."""
    stream = io.BytesIO(head)
    try:
        if npy.read_magic(stream) != (2, 0):
            raise Unreadable("another npy format")
        shape, _, dtype = npy.read_array_header_2_0(stream, max_header_size=_HEADER_BYTES)
    except Exception as error:  # whatever NumPy's reader says of bytes that are not its own
        raise Unreadable(f"its arrays cannot be read ({type(error).__name__}: {error})") from None
    return shape, dtype


def _is_table(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is that of named numbers, none of them an object."""
    return dtype.names is not None and all(dtype[name].base.kind in "biuf" for name in dtype.names)


def _escaped(name: str) -> str:
    """Return a name in ASCII: the format's names are not those of all languages."""
    return name.encode("unicode_escape").decode("ascii")


def _unescaped(name: str) -> str:
    try:
        return name.encode("ascii").decode("unicode_escape")
    except UnicodeError:
        raise Unreadable("the name of an array is not as it was written") from None


# Checksums.


def checksum(what: str, place: Sequence[Any], blob: bytes = b"") -> bytes:
    """Return 16 bytes that tell bytes and the place they belong to; chance errors go unseen once in 2^128.

    Examples
    --------
    >>> checksum("spans", (0, 10), b"x") == checksum("spans", (10, 10), b"x")
    False
    """
    digest = hashlib.blake2b(json.dumps([what, *place]).encode(), digest_size=16, person=b"ringtrue")
    digest.update(b"\0")
    digest.update(blob)
    return digest.digest()


def prove(table: str, row: Row) -> Row:
    """Return a row with arrays if its checksum is right; it does nothing else, so that threads can do it."""
    typed = list(map(type, (*row[:2], row[-1]))) == [int, int, bytes]
    if not typed or row[-2] != checksum(table, row[:2], row[-1]):
        raise Unreadable("the checksum of its arrays is another")
    return row


def block_row(table: str, first: int, arrays: Arrays) -> Row:
    """Return a row of arrays that start at a number."""
    blob = packed(arrays)
    place = (first, max(map(len, arrays.values())))
    return (*place, checksum(table, place, blob), blob)


def block_of(row: Row) -> tuple[int, dict[str, NDArray[Any]]]:
    """Return the number at which arrays start, and the arrays."""
    named = _typed(BLOCK, row)
    return named["first"], unpacked(named["arrays"], named["count"])


def _typed(columns: Sequence[str], row: Row) -> dict[str, Any]:
    """Return a row by column names if every value is of its type and its range is one."""
    named = dict(zip(columns, row, strict=True))
    wrong = next((name for name, value in named.items() if type(value) is not _TYPES[name]), None)
    if wrong is not None:
        raise Unreadable(f"{wrong} is a {type(named[wrong]).__name__}")
    if not (0 <= named["first"] < FURTHEST and 0 < named["count"] < FURTHEST):
        raise Unreadable(f"first = {named['first']} and count = {named['count']} are no range")
    odd = next((name for name in ("written", "seconds") if name in named and not is_time(named[name])), None)
    if odd is not None:
        raise Unreadable(f"{odd} = {named[odd]} is no time")
    return named


def is_time(seconds: float) -> bool:
    """Whether a number of seconds is one that a clock shows, or that computing takes.

    Examples
    --------
    >>> [is_time(x) for x in (1.7e9, -1.0, np.inf, np.nan)]
    [True, False, False, False]
    """
    return 0 <= seconds <= LATEST


def parsed(text: str) -> Any:
    """Return what a text says."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("a text is not JSON") from None


def need_form(holds: bool, what: str) -> None:
    """Refuse what no store writes."""
    if not holds:
        raise Unreadable(f"{what} does not have the form it was written in")


# Replicates.


@dataclass(frozen=True)
class Record:
    """What is known of some replicates without their arrays."""

    first: int
    count: int
    written: float
    seconds: float
    failures: tuple[Failure, ...]

    @property
    def stop(self) -> int:
        """The replicate after the last."""
        return self.first + self.count


def span_rows(records: Iterable[Replicates], written: float) -> Iterator[Row]:
    """Return the rows of records, without what is kept besides; adjacent ones that are alike are joined."""
    ordered = sorted((record.without_kept() for record in records), key=lambda record: record.first)
    for run in _runs(ordered):
        yield _span_row(join(run), written)


def _span_row(record: Replicates, written: float) -> Row:
    seconds = float(record.seconds) if is_time(record.seconds) else 0.0
    place = (record.first, record.n)
    known = (*place, record.lost, float(written), seconds, failure_text(record.failures))
    return (*known, checksum("record", known), *block_row("spans", record.first, record.arrays)[2:])


def failure_text(failures: Iterable[Failure]) -> str:
    """Return failures as text, each cause once: a traceback that all replicates share is long."""
    causes: dict[tuple[str, str, str], int] = {}
    lost = [[one.replicate, causes.setdefault((one.stage, one.error, one.traceback), len(causes))] for one in failures]
    return json.dumps({"causes": [list(cause) for cause in causes], "lost": lost}) if lost else ""


def record_of(row: Row) -> Record:
    """Return what the first columns of a row say."""
    named = _typed(RECORD, row)
    if named["record"] != checksum("record", row[:-1]):
        raise Unreadable("the checksum of its record is another")
    failures = _failures(named["failures"], named["first"], named["first"] + named["count"])
    need_form(len(failures) == named["lost"], "a list of failures")
    return Record(named["first"], named["count"], named["written"], named["seconds"], tuple(failures))


def _failures(text: str, first: int, stop: int) -> list[Failure]:
    if not text:
        return []
    try:
        value = parsed(text)
        failures = [Failure(i, *value["causes"][k]) for i, k in value["lost"]]
    except (TypeError, KeyError, IndexError, ValueError):
        raise Unreadable("failures do not have the form they were written in") from None
    texts = (part for one in failures for part in (one.stage, one.error, one.traceback))
    numbers = [one.replicate for one in failures]
    need_form(all(type(i) is int and first <= i < stop for i in numbers), "the number of a failure")
    need_form(len(set(numbers)) == len(numbers) and all(isinstance(part, str) for part in texts), "a failure")
    return failures


def span_of(row: Row, header: Header, declared: Iterable[Field]) -> Replicates:
    """Return replicates from a proven row; arrays that are declared must be what they are declared to be."""
    record = record_of(row[: len(RECORD)])
    arrays = unpacked(_typed(SPAN, row)["arrays"], record.count)
    need_form("u" in arrays, "a list of arrays")
    for field in declared:
        array = arrays.get(field.name)
        shape = (len(header.functions),) if field.axes else ()
        if array is not None and (array.shape[1:] != shape or array.dtype != field.dtype):
            raise Unreadable(f"{field.name} is {array.dtype} of shape {array.shape}")
    return Replicates(header, arrays, record.failures, record.first, record.seconds)


def draws_rows(records: Iterable[Replicates]) -> Iterator[Row]:
    """Return the rows of what records kept, cut where they are large."""
    for record in sorted(records, key=lambda record: record.first):
        kept = record.kept_arrays()
        step = max(_ROW_BYTES * record.n // max(_bytes(kept), 1), 1)
        for start in range(0, record.n if kept else 0, step):
            yield block_row("draws", record.first + start, {k: part[start : start + step] for k, part in kept.items()})


def reference_rows(first: int, values: Floats) -> Iterator[Row]:
    """Return the rows of reference values, from number ``first`` on."""
    step = max(_ROW_BYTES // max(8 * values.shape[1], 1), 1)
    for start in range(0, len(values), step):
        yield block_row("reference", first + start, {"values": values[start : start + step]})


def reference_of(row: Row, functions: int) -> tuple[int, Floats]:
    """Return (first, values) from a proven row of reference values."""
    first, arrays = block_of(row)
    values = arrays.get("values", np.empty(0))
    need_form(values.shape[1:] == (functions,) and values.dtype == np.float64, "a table of reference values")
    return first, values


def _runs(records: Iterable[Replicates]) -> Iterator[list[Replicates]]:
    """Group records that are adjacent and have the same arrays, up to the size of a row; lost ones fit any."""
    run: list[Replicates] = []
    form: Any = None
    size = 0  # added up as it grows: a run may have thousands of records
    for record in records:
        own = None if record.lost == record.n else forms(record.arrays)
        fits = run and run[-1].stop == record.first and (own is None or form is None or own == form)
        if run and not (fits and size < _ROW_BYTES):
            yield run
            run, form, size = [], None, 0
        run.append(record)
        size += _bytes(record.arrays)
        form = form or own
    if run:
        yield run


def forms(arrays: Arrays) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return what must agree for arrays to be joined."""
    return {name: (array.shape[1:], array.dtype.str) for name, array in arrays.items()}


def _bytes(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays.values())


def size_of(record: Replicates) -> int:
    """Return the bytes of a record's arrays."""
    return _bytes(record.arrays)


def as_kept(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Return truths and draws under the names that they have in a record."""
    return {f"{KEPT}{name}": array for name, array in arrays.items()}
