"""Arrays as bytes that are safe to read, whoever wrote them.

The bytes are an uncompressed npz archive of plain numbers. Reading trusts nothing: an archive that is compressed, holds
objects, or declares more than it brings is refused before anything is allocated. This module knows nothing of files.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

#: The bytes of a checksum: chance errors go unseen with probability 2^-128.
CHECKSUM = 16
#: What numpy writes before an array of numbers. Not read with numpy's reader, which parses it as Python: in Python 3.11
#: that fails now and then when two threads do it at once, and would pass for damage.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(<[fiu][248]|\|[iu]1)', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,18}(?:, [0-9]{1,18})*,?)?)\), \} *\n",
    re.DOTALL,
)
#: What reading a broken archive raises; anything else is no sign of damage.
_BROKEN = (zipfile.BadZipFile, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError, OSError, struct.error)


class Unreadable(ValueError):
    """The bytes are not what ``packed`` makes."""


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays of numbers as the bytes of an npz archive.

    Examples
    --------
    >>> unpacked(packed({"a": np.arange(3)}))["a"]
    array([0, 1, 2])
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            npy.write_array(member, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getbuffer())
    return buffer.getvalue()


def unpacked(blob: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz archive, as read-only views of its bytes.

    Raises
    ------
    Unreadable
        If it is anything but uncompressed arrays of numbers.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            return dict(_member(archive, info) for info in archive.infolist())
    except Unreadable:
        raise
    except _BROKEN as error:
        raise Unreadable(f"not an npz archive ({type(error).__name__}: {error})") from None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[str, NDArray[Any]]:
    # Stored members cannot be larger than the archive: there is nothing to inflate.
    if info.compress_type != zipfile.ZIP_STORED or not info.filename.endswith(".npy"):
        raise Unreadable("an archive of uncompressed npy arrays was expected")
    return info.filename.removesuffix(".npy"), _array(archive.read(info))


def _array(data: bytes) -> NDArray[Any]:
    """Return the array of an npy file whose header agrees with its size."""
    found = _HEADER.match(data)
    if found is None or found.end() != 10 + int.from_bytes(data[8:10], "little"):
        raise Unreadable("an npy array of numbers was expected")
    dtype, start = np.dtype(found[1].decode()), found.end()
    shape = tuple(int(side) for side in found[2].split(b",") if side.strip())
    count = math.prod(shape)  # in Python's integers, which do not overflow
    if count * dtype.itemsize != len(data) - start:
        raise Unreadable(f"shape {shape} of dtype {dtype} was declared, but {len(data) - start} bytes arrived")
    return np.frombuffer(data, dtype, count, start).reshape(shape)


def need(array: NDArray[Any], dtypes: tuple[str, ...], shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Return the array if it has one of the dtypes and the shape (None: any length), else refuse it.

    Examples
    --------
    >>> need(np.zeros((2, 3)), ("<f8",), (2, None)).shape
    (2, 3)
    """
    fits = array.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    if array.dtype.str not in dtypes or not fits:
        raise Unreadable(f"{' or '.join(dtypes)} of shape {shape} was expected, but {array.dtype.str} of {array.shape}")
    return array


def checksum(what: str, fields: tuple[Any, ...], blob: bytes = b"") -> bytes:
    """Return a checksum of bytes and of the place they belong to.

    Examples
    --------
    >>> checksum("span", (0, 10), b"x") == checksum("span", (10, 10), b"x")
    False
    """
    digest = hashlib.blake2b(json.dumps([what, *fields]).encode(), digest_size=CHECKSUM, person=b"ringtrue")
    digest.update(b"\0")
    digest.update(blob)
    return digest.digest()
