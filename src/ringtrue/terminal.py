"""A stored run as a page of text: what ``ringtrue watch`` shows in a terminal or writes to a log.

It words and aligns what others have found. Names and messages in a file are somebody else's: nothing of them reaches
the terminal but letters.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Iterator

import click

from .characters import one_line
from .execution.progress import duration, per_time
from .functions import ALL
from .judgement.anytime import Trail
from .judgement.result import Result
from .judgement.summary import by_function, ranked
from .judgement.text import decimals, number, table
from .judgement.watching import Sight
from .report.content import short
from .statistics.effects import Interval

#: Test functions and causes of failures that are shown, and letters of their names.
_FUNCTIONS, _CAUSES, _NAME = 8, 5, 24
#: Steps of a sequence that are shown.
_STEPS = 5
#: Letters of a line in a log.
_LOG = 120
#: Nothing is made narrower than this.
_NARROWEST = 24


class Screen:
    """Shows a run in place on a terminal, and as blocks of lines, each time it has changed, in a log."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, seen: Sight | str, *, every: float | None, trouble: str = "") -> None:
        """Show it; for the last time if there is no next one. Trouble is said by whoever meets it."""
        if trouble:
            return
        drawn = sys.stdout.isatty()
        room = shutil.get_terminal_size()
        text = page(seen, width=room.columns if drawn else _LOG)
        if drawn:
            lines = [time.strftime("%H:%M:%S"), *text.splitlines()]
            click.clear()
            # More lines than there are would scroll the first ones away, again and again.
            click.echo("\n".join(lines[: room.lines - 1] if every else lines))
        elif text != self._last:
            click.echo(f"{text}\n")
        self._last = text


def page(seen: Sight | str, *, width: int) -> str:
    """Return a page of text that is no wider than asked for.

    Examples
    --------
    >>> print(page("there is no run.db yet", width=80))
    Waiting: there is no run.db yet.
    """
    width = max(width, _NARROWEST)
    parts = [_wrapped(f"Waiting: {seen.rstrip('.')}.", width)] if isinstance(seen, str) else _parts(seen, width)
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _parts(seen: Sight, width: int) -> list[list[str]]:
    found = seen.result
    parts = [_progress(seen, width), _failures(seen, width)]
    if found is None:
        return [*parts, _wrapped(f"Not judged: {seen.unjudged}", width) if seen.unjudged else []]
    said = [line for text in (found.sentence, *found.look.notes()) for line in _wrapped(text, width)]
    return [*parts, said, _wrapped(_evidence(found), width), _sizes(found, width), _sequences(seen, found, width)]


def _progress(seen: Sight, width: int) -> list[str]:
    state = seen.standing
    share = state.done / state.n if state.n else 1.0
    lost = f", {state.failed} failed" if state.failed else ""
    wide = min(width, 60) - 2
    lines = [*_wrapped(f"{seen.path}", width), *_wrapped(f"{state.done} of {state.n} replicates{lost}", width)]
    lines.append(f"[{'#' * int(share * wide):-<{wide}}]")
    return [*lines, *_wrapped("; ".join(_pace(seen)), width)]


def _pace(seen: Sight) -> Iterator[str]:
    """Say how fast the run is, how long it will take, and whether it goes on."""
    state = seen.standing
    if state.rate:
        goes_on = seen.held and not seen.complete and not seen.stalled
        yield f"{per_time(state.rate)}{f', {duration(state.left)} to go' if goes_on else ''}"
    if state.last_write:
        yield f"last written {time.strftime('%d %b %H:%M:%S', time.localtime(state.last_write))}"
    if seen.complete:
        yield "complete"
    elif not seen.held:
        yield "nobody writes to it now: the call that made it goes on with it"
    elif seen.stalled:
        yield "nothing since then: who writes to it is slow, or was killed"


def _failures(seen: Sight, width: int) -> list[str]:
    lines = [_cut(f"{many} {cause}", width) for cause, many in seen.causes[:_CAUSES]]
    more = sum(many for _, many in seen.causes[_CAUSES:])
    return [*lines, _cut(f"{more} failed otherwise", width)] if more else lines


def _evidence(found: Result) -> str:
    n = found.replicates.n
    if not found.look.anytime:
        return f"Judged by tests for one n, after {n} replicates."
    return (
        f"Evidence after {n} replicates: E = {found.evalue:.3g}, where {1 / found.spent:.3g} is enough; the p-value at "
        f"any time is {found.pvalue:.2g}. Both hold whenever one looks."
    )


def _sizes(found: Result, width: int) -> list[str]:
    """Return the sizes of the worst test functions, as many of them side by side as there is room for."""
    measured = by_function([row for row in found.measures if row.f != ALL])
    worst = [name for name in _worst(found) if name in measured][:_FUNCTIONS]
    heads = list(dict.fromkeys(head for name in worst for head in measured[name]))
    if not heads:
        return []
    columns = [("test function", *map(_name, worst))]
    columns += [(head, *(_size(measured[name].get(head)) for name in worst)) for head in heads]
    more = len(measured) - len(worst)
    return [*_fitted(columns, width), *(_wrapped(f"and {more} more test functions", width) if more else [])]


def _worst(found: Result) -> list[str]:
    return [found.replicates.functions[k].name for k in ranked(found)]


def _size(row: Interval | None) -> str:
    if row is None:
        return "-"
    digits = decimals(row)
    return f"{number(row.estimate, digits)} ({number(row.low, digits)} to {number(row.high, digits)})"


def _sequences(seen: Sight, found: Result, width: int) -> list[str]:
    """Return how the sizes of the worst test function that has any came to be known."""
    name = next((name for name in _worst(found) if name in seen.trails), None)
    if name is None:
        return []
    by_size = seen.trails[name]
    steps = _steps(max(by_size.values(), key=len))
    columns = [("replicates", *map(str, steps))]
    columns += [(size, *(_size(dict(trail).get(n)) for n in steps)) for size, trail in by_size.items()]
    said = f"{_name(name)} so far; intervals hold at all numbers of replicates together:"
    return [*_wrapped(said, width), *_fitted(columns, width)]


def _steps(trail: Trail) -> list[int]:
    """Return some of the numbers of replicates of a sequence, the last among them."""
    every = [n for n, _ in trail]
    return every[:: -max(len(every) // _STEPS, 1)][::-1][-_STEPS:]


def _fitted(columns: list[tuple[str, ...]], width: int) -> list[str]:
    """Return the first columns of a table that fit."""
    for many in range(len(columns), 1, -1):
        lines = table(list(zip(*columns[:many], strict=True))).splitlines()
        if max(map(len, lines)) <= width:
            return lines
    return [_cut(line, width) for line in table(list(zip(*columns[:2], strict=True))).splitlines()]


def _name(text: str) -> str:
    return short(one_line(text), _NAME)


def _wrapped(text: str, width: int) -> list[str]:
    return [part for line in text.splitlines() for part in textwrap.wrap(one_line(line), width)]


def _cut(text: str, width: int) -> str:
    return short(one_line(text), width)
