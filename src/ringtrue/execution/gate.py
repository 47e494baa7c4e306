"""When a run has enough: of replicates, in the order of their numbers, or of time.

Replicates come back in any order, the quick ones first. What decides whether there are enough sees only those before
the first that is missing, in their order: so workers, interruptions and the order of completion change nothing in where
a run ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from ..errors import InvalidStudy
from ..replicates.record import Replicates

#: From the next replicates, in their order, to how many of all are enough; None if they are not.
Until = Callable[[Replicates], int | None]


class Gate:
    """Lets replicates through until there are enough.

    Parameters
    ----------
    until
        What decides; None if all are wanted.
    seconds
        After which the run ends in any case; None if it may take as long as it takes.
    shard, start
        The share of a run that this is, if it is one, and its first replicate.

    Attributes
    ----------
    done
        How many replicates there are before the first that is missing.
    enough
        How many are enough, once that is known.
    deadline
        On the clock ``time.monotonic``; None if there is none.
    """

    def __init__(self, until: Until | None, seconds: float | None, shard: Any, start: int) -> None:
        if until is not None and not callable(until):
            raise InvalidStudy(f"until must be a function of replicates, but {until!r} arrived; check takes 'decided'.")
        if until is not None and shard is not None:
            raise InvalidStudy(
                "a share of a run does not see the others, so that shard= goes with n= only; merge the shares, and "
                "judge the whole with anytime=True."
            )
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds > 0):
            raise InvalidStudy(f"max_seconds must be a positive number of seconds, but {seconds!r} arrived.")
        self.until = until
        self.deadline = None if seconds is None else time.monotonic() + float(seconds)
        self.start = self.done = start
        self.enough: int | None = None
        self._waiting: dict[int, Any] = {}

    @property
    def opens(self) -> bool:
        """Whether the run may end before it has all replicates."""
        return self.until is not None or self.deadline is not None

    def see(self, record: Any) -> None:
        """Look at replicates that have come, once all before them have; what decides sees their numbers."""
        if not self.opens or not record.n:
            return
        self._waiting[record.first] = record
        while (one := self._waiting.pop(self.done, None)) is not None:
            self.done = one.stop
            if self.until is not None and self.enough is None:
                self.enough = _need_number(self.until(one))

    @property
    def closed(self) -> bool:
        """Whether the run ends."""
        return self._has_enough or (self.deadline is not None and time.monotonic() >= self.deadline)

    @property
    def _has_enough(self) -> bool:
        return self.enough is not None and self.done >= self.enough

    def stop(self, n: int) -> int:
        """Return before which replicate the run ends, which was to end before n."""
        if self._has_enough:
            return int(self.enough or n)
        if not self.opens or self.done >= n:
            return n
        if self.done == self.start:
            raise InvalidStudy("no replicate was done within max_seconds; allow more, or try one replicate by itself.")
        return self.done


def _need_number(enough: Any) -> int | None:
    """Return how many replicates are enough, as a user's function says, or say what arrived instead."""
    if enough is None:
        return None
    if isinstance(enough, Integral) and not isinstance(enough, bool) and int(enough) > 0:
        return int(enough)
    raise InvalidStudy(f"until must return how many replicates are enough, or None, but {enough!r} arrived.")
