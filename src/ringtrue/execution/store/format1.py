"""Stores of format 1: their rows as rows of format 2.

Such a file can be read, judged and repaired into a new one, and is never written to. Its arrays are npz archives of
``floats`` (one row per number and test function, then two energies), ``ints`` and ``members``, the replicate last.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ...replicates.record import CHAINS, WEIGHTED
from .codec import Row, Unreadable, block_row, checksum
from .identity import SOURCES
from .meta import meta_row, meta_text

_FLOATS = ("u", "z", "weak_value", "weak_u", "weak_z", "truth", "mean", "sd", "crps", "interval")
_INTS = ("rank", "draws")
_KINDS = {"sum": "sum", "distance": "overall", "Mahalanobis": "mahalanobis", "log density": "log density"}
_SEES = {"strong": "theta", "auto": "output", "exact": "data"}
_OTHER_TRUTH = "theta was drawn from another law than the belief: even the exact posterior need not be uniform."


def columns(table: str, names: Sequence[str]) -> Sequence[str]:
    """Return the columns that rows of format 2 are made from."""
    more = {"spans": ("failures", "notes"), "draws": ("count", "names")}
    after, extra = more.get(table, ("", ""))
    return [column for name in names for column in ((name, extra) if name == after else (name,))]


def upgrade(table: str, row: Row) -> Row:
    """Return a row of format 2; what was damaged has a checksum that is wrong there too."""
    try:
        return _upgraded(table, row)
    except Exception:  # a damaged row may be anything
        known = (*row[:5], "", b"") if table == "spans" else row[:2]
        return known if len(row) == 8 else (*known, b"", b"")


def _upgraded(table: str, row: Row) -> Row:
    if table == "draws":
        names, *proof = row[2:]
        arrays = _archive("draws", (*row[:2], names), *proof)
        return block_row("draws", row[0], {name: arrays[str(k)] for k, name in enumerate(json.loads(names))})
    if table == "reference":
        return block_row("reference", row[0], {"values": _archive("reference", row[:2], *row[2:])["values"]})
    *known, failures, notes, record = row[:8]
    if record != checksum("record", (*known, notes, failures)):
        raise Unreadable
    mine = (*known, failures)
    mine = (*mine, checksum("record", mine))
    return (*mine, *_span(row[:2], json.loads(notes), *row[8:])) if len(row) == 10 else mine


def _span(place: Row, notes: Sequence[str], proof: bytes, blob: bytes) -> Row:
    """Return checksum and arrays of replicates."""
    old = _archive("span", place, proof, blob)
    each = old["floats"][:-2].reshape(len(_FLOATS), -1, place[1])
    arrays = {name: part.T for name, part in zip(_FLOATS, each, strict=True)}
    arrays |= {name: part.T.astype(np.int64) for name, part in zip(_INTS, old["ints"], strict=True)}
    arrays |= {"energy": old["floats"][-2], "belief_energy": old["floats"][-1]}
    # What was done to draws was noted of a row, not of a replicate: it is taken to concern all that had draws.
    done = sum(bit for note, bit in (("thinned", CHAINS), ("weighted", WEIGHTED)) if note in notes)
    arrays["treated"] = np.where((arrays["draws"] > 0).any(axis=1), done, 0)
    return block_row("spans", place[0], arrays | {name: old[name] for name in ("members",) if name in old})[2:]


def _archive(what: str, place: Row, proof: bytes, blob: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an uncompressed npz archive of numbers, none larger than what came."""
    if proof != checksum(what, place, blob):
        raise Unreadable
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        parts = archive.infolist()
        # Many names for one part would unpack to many times what came.
        if any(one.compress_type != zipfile.ZIP_STORED for one in parts) or sum(p.file_size for p in parts) > len(blob):
            raise Unreadable
        return {name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()}


def _array(data: bytes) -> NDArray[Any]:
    stream = io.BytesIO(data)
    if npy.read_magic(stream) != (1, 0):
        raise Unreadable
    shape, _, dtype = npy.read_array_header_1_0(stream)
    if dtype.kind not in "iuf":
        raise Unreadable
    return np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape)


def _kind(name: str, *, coordinate: bool) -> str:
    """Return what a test function was; ringtrue 0.1 kept its name only, and went by it."""
    return "coordinate" if coordinate else _KINDS.get(name, "function")


def upgrade_meta(row: Row) -> Row:
    """Return the description of a store in format 2."""
    value = meta_text(row)
    try:
        value["functions"] = [
            [one["name"], _kind(one["name"], coordinate=one["coordinate"]), _SEES[one["level"]]]
            for one in value.pop("columns")
        ]
        kept = value.pop("arrays")
        # Its digests are of byte code, and say nothing of sources.
        mark = {name: text for name, text in value.pop("fingerprint").items() if name not in (*SOURCES, "python")}
        value |= {"fingerprints": [mark], "versions": [value["versions"]], "reproducible": True}
        value["of_belief"] = _OTHER_TRUTH not in value["notes"]
        value["notes"] = [note for note in value["notes"] if note != _OTHER_TRUTH]
    except (TypeError, KeyError, AttributeError) as error:
        raise Unreadable(f"the description of the store is not as it was written ({error})") from None
    if len(kept) != len(_FLOATS) + len(_INTS) + 1:
        raise Unreadable("it keeps other numbers of every replicate than ringtrue 0.1 did")
    return meta_row(row[0], json.dumps(value))
