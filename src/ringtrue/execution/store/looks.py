"""Looks at a stored run: each judgement of it is remembered in its file.

Who judges a run that grows, and stops when the answer pleases, is right less often than each answer says. How much less
depends on how many looks there were; this module counts them, and does not know what a look costs.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import StoreError
from ...replicates.record import Replicates, Stored
from .contents import Contents
from .database import FORMAT, connect, existing_file, need_ours, put_meta, speaking, transaction
from .meta import Meta, meta_rows


def look(replicates: Replicates, source: Stored, test: str) -> tuple[int, int, str]:
    """Remember a judgement of stored replicates in their file.

    Parameters
    ----------
    replicates, source
        What is judged, and where it came from.
    test
        What it is judged by. The same test of the same numbers is the same look.

    Returns
    -------
    tuple
        Which look it is, counted from 1; how many there are with it; and why it could not be written, if it could not:
        it then follows those that were there when the replicates were read, or now if that can be found out.
    """
    this = {"n": str(replicates.n), "test": test, "mark": _mark(replicates, test)}
    try:
        return _remember(Path(source.path), this)
    except _Unwritten as unwritten:
        return (*unwritten.place, str(unwritten))
    except StoreError as error:
        return source.looks + 1, source.looks + 1, str(error)


class _Unwritten(StoreError):
    """A look that could not be written to a file that could be read."""

    def __init__(self, error: StoreError, place: tuple[int, int]) -> None:
        super().__init__(str(error))
        self.place = place


def _remember(path: Path, this: Mapping[str, str]) -> tuple[int, int, str]:
    with speaking(path), contextlib.closing(connect(existing_file(path), "rw")) as db:
        contents = Contents(path, db, need_ours(path, db))
        meta = contents.meta()
        if this["mark"] in _marks(meta):  # a file that cannot be written still knows it
            return (*_place(meta, this), "")
        try:
            return (*_written(contents, this), "")
        except StoreError as error:
            raise _Unwritten(error, (len(meta.looks) + 1,) * 2) from error


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
    """Return what tells looks apart: the test, and the numbers that it is about."""
    names = [(function.name, function.sees) for function in replicates.functions]
    digest = hashlib.blake2b(repr((test, names, replicates.first, replicates.u.shape)).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(replicates.u).tobytes())
    return digest.hexdigest()
