"""Truths and draws from an npz file, as `numpy.savez` writes it.

Files come from anywhere, so that nothing in one is taken on trust: no objects are unpickled, and what an array is
declared to be is looked at before anything is unpacked. This module knows neither tests nor studies.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..errors import InvalidStudy

#: Bytes that a small file may unpack to, and how many times its size a larger one may: numbers of full precision
#: hardly shrink, and what was written to fill a memory shrinks a thousandfold.
_MOST, _TIMES = 2**30, 20
#: How many names a message has.
_NAMED = 6
_HOW = 'np.savez("fits.npz", theta=theta, draws=draws)'
_FORMS = "arrays theta (n,) or (n, d) and draws (n, M) or (n, M, d), or theta/NAME and draws/NAME for every parameter"


@dataclass(frozen=True)
class Given:
    """What a file holds: arrays, or dicts of them by parameter, and the names of arrays that nobody asked for."""

    theta: Any
    draws: Any
    weights: NDArray[Any] | None
    unused: tuple[str, ...]


def read_draws(path: Path) -> Given:
    """Return the truths and draws of an npz file.

    Parameters
    ----------
    path
        Of a file with ``theta`` and ``draws``, or ``theta/mu``, ``draws/mu`` and so on for named parameters, and
        ``weights`` if draws have them. Other arrays are not read.
    """
    if path.suffix.lower() != ".npz":
        raise InvalidStudy(
            f"draws are read from an npz file, but {path} arrived; save arrays with {_HOW}, or read a table or netCDF "
            f"file in Python and pass what is in it to ringtrue.check_draws(theta, draws)."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            return _given(archive, path)
    # What Python's reader raises of files that are damaged, encrypted or packed in a way it does not know.
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise InvalidStudy(
            f"an npz file was expected, but {path} cannot be read ({type(error).__name__}: {error}); save it again, "
            f"with {_HOW}."
        ) from None


def _given(archive: zipfile.ZipFile, path: Path) -> Given:
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    wanted = {what: _named(what, members) for what in ("theta", "draws", "weights")}
    if not (wanted["theta"] and wanted["draws"]):
        arrived = _listed(members) if members else "nothing"
        raise InvalidStudy(f"{path} must hold {_FORMS}, but it holds {arrived}; save it with {_HOW}.")
    read = [name for names in wanted.values() for name in names.values()]
    _need_room((members[name] for name in read), path)
    found = {what: _arrays(archive, members, names, path) for what, names in wanted.items()}
    return Given(found["theta"], found["draws"], found["weights"], tuple(sorted(set(members) - set(read))))


def _named(what: str, members: Mapping[str, Any]) -> dict[str, str]:
    """Return the arrays of one kind by parameter; the parameter without a name is called ""."""
    if what in members:
        return {"": what}
    return {name.removeprefix(f"{what}/"): name for name in members if name.startswith(f"{what}/")}


def _listed(names: Iterable[str]) -> str:
    every = sorted(names)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more


def _need_room(members: Iterable[zipfile.ZipInfo], path: Path) -> None:
    """Refuse a file that says it unpacks to far more than what came; no part of one unpacks to more than it says."""
    size, most = sum(one.file_size for one in members), max(_MOST, _TIMES * path.stat().st_size)
    if size > most:
        raise InvalidStudy(
            f"{path} must unpack to at most {most:,} bytes, as numbers do, but its arrays are said to have {size:,}; "
            f"if they are right, save them with np.savez, which does not compress."
        )


def _arrays(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], names: Mapping[str, str], path: Path
) -> Any:
    found = {own: _array(archive, members[name], f"{name} in {path}") for own, name in names.items()}
    return found.get("", found or None)


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, what: str) -> NDArray[Any]:
    with archive.open(member) as stream:
        try:
            version = npy.read_magic(stream)
            readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            shape, fortran, dtype = readers[version](stream)
        except (ValueError, KeyError) as error:
            raise InvalidStudy(
                f"{what} must be an array as NumPy saves it, but it is none ({error}); save the file again, with "
                f"{_HOW}."
            ) from None
        if dtype.kind not in "biuf":
            raise InvalidStudy(
                f"{what} must be an array of numbers, but it is one of dtype {dtype}; draws of unequal numbers go to "
                f"ringtrue.check_draws in Python, as a list."
            )
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != member.file_size - stream.tell():
            raise InvalidStudy(
                f"{what} must have as many bytes as its shape {shape} says, but it has not; save it again."
            )
        flat = np.frombuffer(stream.read(), dtype)
    return flat.reshape(shape, order="F" if fortran else "C")
