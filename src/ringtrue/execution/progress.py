"""How far a run is: a bar in a terminal or a notebook, plain lines in a log file.

No p-value is shown on the way: looking at one and stopping when it pleases is not valid. This module knows numbers of
replicates, and nothing of what they are.
"""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType
from typing import Any, Literal

Show = Literal["auto", "off"] | bool

#: Nothing is shown of runs shorter than this, in seconds.
_PATIENCE = 2.0
#: Seconds between lines in a log file: at first, and at most.
_LINES = (10.0, 300.0)


class Progress:
    """Shows done replicates, rate, time to go and failures on standard error.

    Parameters
    ----------
    total
        Replicates of the run.
    done
        Those that were there before it.
    show
        "auto" or True, "off" or False.

    Examples
    --------
    >>> with Progress(10, 0, "off") as progress:
    ...     progress.add(10, failed=1)
    """

    def __init__(self, total: int, done: int, show: Show) -> None:
        self.total, self.before, self.done, self.failed, self.show = total, done, done, 0, show
        self.start = time.monotonic()
        # When the first replicates were there, and how many: what comes before, such as compiling, is done once.
        self._first: tuple[float, int] | None = None
        self._bar: Any = None
        self._next, self._step = self.start + _LINES[0], _LINES[0]

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, count: int, *, failed: int = 0) -> None:
        """Count finished replicates and show them if it is time to."""
        self.done, self.failed = self.done + count, self.failed + failed
        self._first = self._first or (time.monotonic(), self.done)
        if self.show in ("off", False) or time.monotonic() - self.start < _PATIENCE:
            return
        if interactive():
            self._draw()
        elif time.monotonic() >= self._next:
            _said(f"ringtrue: {self.text()}\n")
            self._step = min(2 * self._step, _LINES[1])
            self._next = time.monotonic() + self._step

    def _draw(self) -> None:
        from tqdm.auto import tqdm

        if self._bar is None:
            since, there = self._first or (self.start, self.before)
            self._bar = tqdm(total=self.total, initial=there, unit=" replicates", leave=False, mininterval=0.5)
            self._bar.start_t -= time.monotonic() - since  # the time before the bar was drawn counts
        self._bar.set_postfix_str(f"{self.failed} failed" if self.failed else "", refresh=False)
        self._bar.update(self.done - self._bar.n)

    def text(self) -> str:
        """Return how far the run is, in words."""
        since, there = self._first or (self.start, self.done)
        rate = (self.done - there) / max(time.monotonic() - since, 1e-9)
        left = "time to go not known"
        if rate > 0:
            left = f"{per_time(rate)}, {duration((self.total - self.done) / rate)} to go"
        lost = f", {self.failed} failed" if self.failed else ""
        return f"{self.done} of {self.total} replicates, {left}{lost}"


def _said(line: str) -> None:
    """Write to standard error, if there is one: nobody who has closed it loses a run."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(line)
            sys.stderr.flush()


def interactive() -> bool:
    """Whether a bar can be redrawn: standard error is a terminal, or this is a notebook."""
    shell = sys.modules.get("IPython")
    notebook = shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
    return notebook or (sys.stderr is not None and sys.stderr.isatty())


def per_time(rate: float) -> str:
    """Return a rate with the unit that makes it readable.

    Examples
    --------
    >>> per_time(250.0), per_time(0.05)
    ('250 per second', '3 per minute')
    """
    for unit, factor in (("second", 1), ("minute", 60), ("hour", 3600)):
        if rate * factor >= 1 or unit == "hour":
            return f"{rate * factor:.3g} per {unit}"
    raise AssertionError


def duration(seconds: float) -> str:
    """Return a length of time as a person would say it.

    Examples
    --------
    >>> duration(42), duration(150), duration(7300)
    ('42 s', '2 min 30 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
