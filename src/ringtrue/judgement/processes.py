"""What test functions say, replicate after replicate: the evidence of each can be followed over time.

It turns arrays of the record, in the order of the replicates, into processes of ``statistics.sequential``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidStudy
from ..replicates.record import GROUP, OF_CHAINS, Replicates
from ..statistics import sequential
from ..statistics.sequential import Process
from . import chains
from .column import Column

#: Ranks among more draws than this have no table, and are as good as exact positions.
_MOST_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class Line:
    """One test function whose evidence is followed: its level, what its row is called, and its share of the level."""

    level: str
    f: str
    kind: str
    route: str
    share: float
    process: Process


def lines_of(level: str, columns: Sequence[Column], shares: Sequence[float]) -> list[Line]:
    """Return the lines of some test functions; those that cannot be followed leave their share to the others."""
    every = [(column, share, process_of(column)) for column, share in zip(columns, shares, strict=True)]
    total = sum(share for _, share, process in every if process is not None)
    return [
        Line(level, column.name, column.kind, column.route, share / total, process)
        for column, share, process in every
        if process is not None
    ]


def process_of(column: Column) -> Process | None:
    """Return what a column says; None of chains of which too little was kept, or that come in groups."""
    ran, lost = column.replicates, ~column.replicates.kept
    if column.chains:
        found = chains.chained(column.without_losses()) if column.groups is None else None
        if found is None:
            return None
        away = ran.arrays[f"{OF_CHAINS}differences"][:, column.k]
        return sequential.Bets(np.nan_to_num(away), found.reach, lost)
    plain = column.broken()
    if plain.draws is not None and plain.draws <= _MOST_DRAWS:
        return grouped(sequential.Ranks(ran.arrays["rank"][:, column.k], plain.draws, lost), ran)
    return grouped(sequential.Scores(ran.arrays["z"][:, column.k], lost), ran)


def against_belief(column: Column) -> Process:
    """Return what one draw of each output says of the belief."""
    ran = column.replicates
    return grouped(sequential.Scores(ran.arrays["weak_z"][:, column.k], ~ran.kept), ran)


def grouped(process: Process, replicates: Replicates) -> Process:
    """Return a process in which replicates that share a group count once."""
    group = replicates.arrays.get(GROUP)
    if group is None:
        return process
    edges = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    if len(edges) != len(np.unique(group)):
        raise InvalidStudy(
            "evidence over time needs the replicates of a group one after the other; sort them by group."
        )
    return sequential.Grouped(process, np.append(edges, len(group)))
