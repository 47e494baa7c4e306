"""A stored run that goes on, as a page that a browser loads again and again until the run has ended.

It looks like a report, and has no twin: what it says is about a moment.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from ..execution.progress import per_time
from ..export import versions, write
from ..judgement.result import Result
from ..judgement.watching import Sight
from . import content, figures
from .page import of_verdict, template

#: Causes of failures and rows of the table that are shown.
_CAUSES, _ROWS = 20, 30


def write_watched(seen: Sight | str, path: Path, *, every: float | None, trouble: str = "") -> Path:
    """Write what is seen of a run as one self-contained page.

    Parameters
    ----------
    seen
        The run, or why there is nothing to see.
    path
        Where the page goes; it is replaced as a whole, so that a browser never loads a half.
    every
        Seconds after which a browser loads it again; None for a page that stays as it is.
    trouble
        Why nobody watches any more, if it is an error.
    """
    sight = None if isinstance(seen, str) else seen
    result = sight.result if sight else None
    text = template("watch.html").render(
        seen=sight,
        waiting=seen if isinstance(seen, str) else "",
        every=None if every is None else max(math.ceil(every), 1),
        trouble=trouble,
        rate=per_time(sight.standing.rate) if sight and sight.standing.rate else "",
        written=_said(sight.standing.last_write) if sight and sight.standing.last_write else "",
        causes=[(content.short(cause, 500), many) for cause, many in sight.causes[:_CAUSES]] if sight else [],
        result=result,
        verdict=of_verdict(result) if result is not None else None,
        measures=content.cells(result) if result is not None else ([], []),
        rows=_ROWS,
        pictures=_pictures(result) if result is not None else (),
        made=_said(datetime.now(UTC).timestamp()),
        version=versions()["ringtrue"],
    )
    return write(path, text)


@lru_cache(maxsize=1)  # of one result drawn once: drawing takes longer than all the rest
def _pictures(result: Result) -> tuple[figures.Picture, ...]:
    return tuple(figures.over_time(result)) if result.look.anytime else ()


def _said(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
