"""What comparisons, sweeps and maps share: what they refuse, where runs are kept, how intervals are written."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

from ..errors import InvalidStudy
from ..execution.paths import as_path
from ..execution.runs import RunSettings
from ..question.study import Study
from ..statistics.effects import Interval

#: Letters of a name that a file's name keeps: file systems allow 255 bytes, of which one letter may take four.
_LETTERS = 50


def need_strong(study: Study) -> None:
    """Refuse a study without a test function of theta alone: others have no spread, bias or coverage to show."""
    if all(function.sees != "theta" for function in study.functions):
        names = [function.name for function in study.functions]
        raise InvalidStudy(
            f"a test function of theta alone is needed, but all of {names} see more; add one, or leave out f=."
        )


def own_store(settings: RunSettings, name: str) -> RunSettings:
    """Return the settings with a file of the run's own in the folder that was asked for."""
    store = settings.get("store")
    if store is None:
        return settings
    folder = as_path(store, "store")
    if folder.exists() and not folder.is_dir():
        raise InvalidStudy(f"store must be a folder here, with a file for every run, but {folder} is a file.")
    # Before the run, since a folder that cannot be made should cost no simulation.
    folder.mkdir(parents=True, exist_ok=True)
    return {**settings, "store": folder / f"{_safe(name)}.db"}


def _safe(name: str) -> str:
    """Return a name that a file can have; names that differ stay different by a checksum."""
    kept = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)[:_LETTERS]
    if kept == name and kept:
        return name
    # Unlike hash() a checksum is the same in every process, so that a later run finds its file.
    return f"{kept}_{crc32(name.encode(errors='surrogatepass')):08x}"


@contextmanager
def noted(what: str) -> Iterator[None]:
    """Add to an exception what was running."""
    try:
        yield
    except Exception as error:
        # A note keeps the type of the exception, which another exception around it would hide.
        error.add_note(f"This was {what}.")
        raise


def ends(row: Interval) -> str:
    """Return an interval as text."""
    return f"{row.low:.3g} to {row.high:.3g}"


def ideal(value: float) -> str:
    """Return an ideal as text, nothing if there is none."""
    return "" if math.isnan(value) else f"{value:.3g}"
