"""Names of files, as users hand them over."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from ..errors import StoreError

#: The file of a run in a directory.
RUN = "run.db"


def as_path(value: Any, what: str) -> Path:
    """Return a path, or say what arrived instead of one.

    Examples
    --------
    >>> as_path("run.db", "store").suffix
    '.db'
    """
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{what} must be the name of a file, such as 'run.db', but {value!r} arrived.")
    if not os.fspath(value):  # which would be the directory that one happens to be in
        raise StoreError(f"{what} must be the name of a file, such as 'run.db', but an empty one arrived.")
    try:
        os.stat(value)
    except (OSError, ValueError) as error:
        # Nothing need be there; but no file can have a name with a zero in it, or one that is too long.
        if isinstance(error, ValueError) or error.errno == errno.ENAMETOOLONG:
            raise StoreError(f"{what} must be a name that a file can have, but {value!r} arrived ({error}).") from error
    return Path(value)


def is_directory(value: Any) -> bool:
    """Whether a name is that of a directory: one that is there, or a name that ends with a separator.

    Examples
    --------
    >>> is_directory("runs/"), is_directory("run.db")
    (True, False)
    """
    ends = isinstance(value, str) and value.endswith(tuple(filter(None, (os.sep, os.altsep))))
    return ends or as_path(value, "store").is_dir()
