"""Run until decided: when replicates are enough for a verdict that holds although the run stopped for it.

It sees replicates in the order of their numbers and looks at fixed numbers of them, so that where a run stops is a
function of its replicates alone: workers, interruptions and the size of tasks change nothing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InvalidStudy
from ..replicates.record import KEPT, Replicates, join
from ..statistics.sequential import CERTIFIED, State, next_look
from . import anytime
from .looks import Look
from .processes import Line
from .verdict import Tolerance, Verdict, weighed


class Decided:
    """Says how many replicates are enough for a verdict.

    Parameters
    ----------
    alpha, tolerance
        As in :func:`~ringtrue.judge`.
    store
        The file that the run is kept in, if it is: other looks at it have a part of alpha.
    """

    def __init__(self, *, alpha: float, tolerance: Tolerance, store: Any = None) -> None:
        self.alpha, self.tolerance, self._store = alpha, tolerance, store
        self._parts: list[Replicates] = []
        self._n, self._look = 0, 0
        self._state: State | None = None
        self._followed, self._routes = 0, ""
        self._blocks: dict[int, tuple[float, ...]] = {}

    def __call__(self, record: Replicates) -> int | None:
        """Look at the next replicates, and return how many of all are enough; None if they are not."""
        if not self._parts:
            anytime.need_fixed_functions(record)
            self.alpha = Look(self._number(record), anytime=True).of(self.alpha)
        # Draws that are kept are of no use here.
        arrays = {name: array for name, array in record.arrays.items() if not name.startswith(KEPT)}
        self._parts.append(replace(record, arrays=arrays))
        self._n += record.n
        unit = record.header.datasets
        while (look := next_look(self._look, unit)) <= self._n:
            self._look = look
            if self._enough(self._prefix(look)):
                return look
        return None

    def _number(self, record: Replicates) -> int:
        """Return which look at the run the verdict will be; 0 if it is kept nowhere."""
        if self._store is None:
            return 0
        from ..execution.store.looks import number_over_time

        return number_over_time(Path(self._store), record)

    def _prefix(self, n: int) -> Replicates:
        # What was joined is one part from then on.
        self._parts = [join(self._parts)]
        found = self._parts[0].part(self._parts[0].first, self._parts[0].first + n)
        vars(found)["_blocks"] = self._blocks  # what was found of blocks stays
        return found

    def _enough(self, prefix: Replicates) -> bool:
        """Whether these replicates have a verdict."""
        if prefix.lost == prefix.n:
            return False
        evidence = self._follow(prefix)
        evident = evidence.pvalue <= self.alpha
        if not evident and prefix.n < CERTIFIED:
            return False
        rows = anytime.rejecting(evidence, self.alpha) if evident else None
        sizes = anytime.sizes(prefix, self.alpha, self.tolerance, certificate_only=not evident)
        return weighed(rows, sizes, prefix, self.tolerance) is not Verdict.INCONCLUSIVE

    def _follow(self, prefix: Replicates) -> anytime.Followed:
        """Follow the evidence from where it stood, or from the start if replicates have a new form."""
        routes = " ".join(f"{line.level} {line.f} {line.route} {_reach(line)}" for line in anytime.lines(prefix))
        if routes != self._routes:
            self._state, self._followed, self._routes = None, 0, routes
        found = anytime.follow(prefix, state=self._state, before=self._followed)
        if len(found.looks):
            self._state, self._followed = found.state, int(found.looks[-1]) // prefix.header.datasets
        return found


def _reach(line: Line) -> str:
    """Return how far bets on chains reach, which grows with the longest of them."""
    return str(getattr(line.process, "reach", ""))


def need_until(until: object) -> None:
    """Refuse what is no rule to stop by."""
    if until != "decided":
        raise InvalidStudy(f"until must be 'decided', but {until!r} arrived; for a fixed number of replicates pass n=.")
