"""Whether the replicates of a run have room in memory, asked before the first of them is computed.

What a run returns is in memory as a whole, also that of a stored run, and judging reads all of it. So a run of more
replicates than fit could be computed for days, and then not be returned.
"""

from __future__ import annotations

import os

from ..errors import InvalidStudy
from ..question.study import Study
from ..replicates.reducers import fields
from ..replicates.simulate import header_of


def bytes_of(study: Study) -> int:
    """Return how many bytes a replicate has in a record at least: those of the declared arrays.

    Draws of members, chains and kept draws come on top; they depend on outputs, which are not known yet.
    """
    functions = len(header_of(study).functions)
    return sum(8 * (functions if one.axes else 1) for one in fields())


def need_room(study: Study, n: int) -> None:
    """Refuse more replicates than the memory of this machine can hold, whoever else needs some of it."""
    each, memory = bytes_of(study), _memory()
    if memory is None or n * each <= memory:
        return
    raise InvalidStudy(
        f"n = {n} replicates were asked for, and take {n * each / 2**30:,.0f} GiB at least ({each} bytes each), but "
        f"this machine has {memory / 2**30:,.1f} GiB; ask for at most {memory // each // 2:,} of them, which leaves "
        f"room for judging, or for fewer test functions. ringtrue.plan says how many see an error of a given size."
    )


def _memory() -> int | None:
    """Return the memory of this machine in bytes; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
