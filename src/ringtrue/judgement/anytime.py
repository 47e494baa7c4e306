"""Evidence and sizes that hold whenever one looks: what a run is judged by that may stop, or was looked at.

It reads the record in the order of its replicates, and reaches no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InvalidStudy
from ..replicates.record import Replicates
from ..statistics import sequential
from ..statistics.effects import Interval
from ..statistics.sequential import State
from ..values import Floats, Ints
from . import measures
from .column import strong_columns
from .groups import one_of_each
from .levels import Evidence, TestRow, budget, level_of, levels
from .processes import Line
from .verdict import Tolerance

#: Said of every judgement of this kind.
LEFT_OUT = (
    "valid whenever one looks: p-values are those of evidence over replicates in their order, and intervals hold at "
    "all looks together. Tests along the data and of averages over outputs are for one n, and left out."
)


@dataclass(frozen=True, eq=False)
class Followed:
    """How evidence grew over replicates.

    Attributes
    ----------
    found
        The evidence of every level after the last look.
    looks
        After how many replicates it was looked at.
    log_evalues
        (looks,): the logarithm of the verdict's E at each.
    state
        Where everything stands, to go on from.
    """

    found: tuple[Evidence, ...]
    looks: Ints
    log_evalues: Floats
    state: State

    @property
    def evalue(self) -> float:
        """E after the last look; infinite beyond what a number can be."""
        return float(np.exp(min(self.log_evalues[-1], 700.0))) if len(self.looks) else 1.0

    @property
    def pvalue(self) -> float:
        """A p-value that holds at every n, and at any that was chosen by looking."""
        return math.exp(-self.state.log_maximum)


def need_fixed_functions(replicates: Replicates) -> None:
    """Refuse test functions that are chosen by the replicates: evidence over time is about functions known before."""
    if replicates.header.selection is not None:
        raise InvalidStudy(
            "a test function that is chosen by the replicates needs a fixed number of them, and all of these; wait for "
            "the end of the run, pass n= instead of until=, or the function itself as f=."
        )


def lines(replicates: Replicates) -> list[Line]:
    """Return all test functions whose evidence can be followed, with shares that add up to 1 within each level."""
    need_fixed_functions(replicates)
    return [line for level in levels().values() for line in level.followed(replicates)]


def follow(replicates: Replicates, *, state: State | None = None, before: int = 0) -> Followed:
    """Follow the evidence over the replicates, or over those behind the first few, from where it stood after these."""
    every = lines(replicates)
    if not every:
        return Followed((), np.empty(0, np.int64), np.empty(0), State((), 0.0, np.empty(0)))
    n = every[0].process.n
    looks = sequential.looks_up_to(n)
    shares = budget([Evidence(name, (), 1.0) for name in dict.fromkeys(line.level for line in every)])
    # A level without a share in the verdict is followed beside it.
    weights = np.array([shares.get(line.level, 0.0) * line.share for line in every])
    counts = bool(weights.any())
    found = sequential.follow(
        [line.process for line in every],
        weights=weights if counts else None,
        looks=looks[looks > before],
        state=state,
        before=before,
    )
    rows = [_row(line, found, k, replicates) for k, line in enumerate(every)]
    ended = [_level(name, rows) for name in dict.fromkeys(line.level for line in every)]
    wide = replicates.n // n  # groups have as many replicates each
    if not counts:  # no level that concerns calibration was asked about
        return Followed(
            tuple(ended), found.looks * wide, np.zeros(len(found.looks)), replace(found.state, log_maximum=0.0)
        )
    return Followed(tuple(ended), found.looks * wide, found.log_evalues, found.state)


def notes(replicates: Replicates) -> list[str]:
    """Say what evidence over time leaves out, of every run and of this one."""
    followed = {line.f for line in lines(replicates) if line.level == level_of("theta")}
    blind = [column.name for column in strong_columns(replicates) if column.name not in followed]
    silent = (
        f"evidence over time is not known of {', '.join(blind[:3])}: chains in groups, or too few or too slow ones."
    )
    return [LEFT_OUT, silent] if blind else [LEFT_OUT]


def _row(line: Line, found: sequential.Evidence, k: int, replicates: Replicates) -> TestRow:
    """Return the row of one test function; what it alone has reached is adjusted within its level."""
    reached = float(found.state.log_maxima[k])
    now = float(found.single[-1, k]) if len(found.looks) else 0.0
    p, adjusted = math.exp(-reached), min(1.0, math.exp(-reached) / line.share)
    return TestRow(line.level, line.f, "log E", now, p, adjusted, line.route, replicates.n, line.kind)


def _level(name: str, rows: Sequence[TestRow]) -> Evidence:
    """Return the evidence of a level: at least what its best test function has, adjusted."""
    mine = tuple(row for row in rows if row.level == name)
    return Evidence(name, mine, min(row.adjusted for row in mine))


def rejecting(followed: Followed, alpha: float) -> list[TestRow]:
    """Return the test functions that are convicted alone; if only all together are, the one with the most evidence."""
    if followed.pvalue > alpha:
        return []
    shares = budget(followed.found)
    every = [
        (row.adjusted / shares[one.level], row) for one in followed.found if one.level in shares for row in one.rows
    ]
    return [row for p, row in every if p <= alpha] or [min(every, key=lambda pair: pair[0])[1]]


def sizes(
    replicates: Replicates, alpha: float, tolerance: Tolerance, *, certificate_only: bool = False
) -> tuple[Interval, ...]:
    """Return the sizes of a verdict with intervals that hold at all looks together."""
    at, clearly = level(replicates, alpha), sequential.CLEARLY * alpha
    return measures.judged(replicates, at, tolerance, known_at=clearly, certificate_only=certificate_only)


def level(replicates: Replicates, alpha: float) -> float:
    """Return with which probability ends of intervals may be missed at this look."""
    alone = one_of_each(replicates)
    return max(sequential.level(max(alone.n - alone.lost, 1), alpha), 1e-12)


#: After how many replicates, and the interval then.
Trail = list[tuple[int, Interval]]


def sequences(replicates: Replicates, *, alpha: float, tolerance: Tolerance) -> dict[str, dict[str, Trail]]:
    """Return how sizes came to be known, by test function and by the name of the size.

    Intervals are the intersections of all up to there, which hold as well.
    """
    unit, found = replicates.header.datasets, dict[str, dict[str, Trail]]()
    for n in _shown(replicates.n, unit):
        for row in sizes(replicates.part(replicates.first, replicates.first + n), alpha, tolerance):
            found.setdefault(row.f, {}).setdefault(row.name, []).append((n, row))
    return {f: {name: _met(rows) for name, rows in by_size.items()} for f, by_size in found.items()}


def _met(rows: Trail) -> Trail:
    met = sequential.intersections(row for _, row in rows)
    return [(n, one) for (n, _), one in zip(rows, met, strict=True)]


def _shown(n: int, unit: int) -> list[int]:
    """Return some numbers of replicates, evenly spaced on a logarithm, up to n."""
    some = np.geomspace(min(50, n), n, 25).round().astype(np.int64) // unit * unit
    return [int(one) for one in np.unique(some) if one > 0]
