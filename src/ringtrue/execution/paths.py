"""Names of files, as users hand them over."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def as_path(value: Any, what: str) -> Path:
    """Return a path, or say what arrived instead of one.

    Examples
    --------
    >>> as_path("run.db", "store").suffix
    '.db'
    """
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{what} must be the name of a file, such as 'run.db', but {value!r} arrived.")
    return Path(value)
