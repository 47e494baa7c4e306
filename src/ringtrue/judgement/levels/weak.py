"""Weak calibration: draws of the output, averaged over data, follow the belief."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...replicates.averages import AVERAGES
from ...replicates.record import Header, Replicates
from ...statistics import combining, planning, twosample
from ...statistics.effects import Interval
from ...values import Floats
from .. import averages, groups
from ..column import Column, column_named, columns_of, strong_columns
from ..processes import Line, against_belief
from . import Evidence, Level, TestRow, combined, row_of, stream, uniform

if TYPE_CHECKING:
    from ..sentences.verdicts import Findings

#: Points per sample of the joint test; its cost grows with the square.
_JOINT = 1000
#: Shares of the level's budget: averages over draws, single test functions at one draw, and the joint law at one draw,
#: which sees the least of the usual errors and the most of unusual ones.
_AVERAGES, _SINGLE, _LAW = 0.7, 0.2, 0.1


#: Kinds of rows that no size describes.
_WITHOUT = ("joint", averages.UNSIZED)


class Weak(Level):
    """Averages over the draws of every output, and one draw of each, against the belief."""

    name, order, implied, share, blunt = "weak", 4, 4, planning.WEAK_SHARE, True
    null = "draws of the output, averaged over data, follow the belief"
    untested = (
        "whether the outputs, averaged over data, return the belief: pass the belief, and outputs that can be sampled"
    )

    def evidence(self, replicates: Replicates, test: str) -> Evidence | None:
        """Test averages over all draws, every function of theta alone at one draw, and all coordinates at once."""
        rows: list[TestRow] = []
        notes: list[str] = []
        for column in strong_columns(replicates):
            values = column.array("weak_value")
            if np.isnan(values).any():
                continue
            if column.weak is not None:
                rows.append(row_of(self.name, column, _tested(column, test), "exact law of mu0"))
            # The permutation null of two samples knows no lost values: with some, the level is not tested at all.
            elif len(replicates.reference) > 1 and not column.lost:
                alone = columns_of(groups.one_of_each(replicates))[column.k].array("weak_value")
                both = twosample.ks(alone, replicates.reference[:, column.k])
                rows.append(row_of(self.name, column, both, "fresh draws of mu0"))
            elif column.lost and len(replicates.reference):
                notes.append(
                    f"weak level of {column.name!r} not tested: replicates were lost and mu0 has no exact law of it."
                )
        joint = _jointly(groups.one_of_each(replicates)) if not replicates.lost else []
        if replicates.lost and AVERAGES in replicates.arrays:
            notes.append("weak level of all coordinates together not tested: replicates were lost.")
        found = averages.averages_of(replicates)
        every = [*rows, *joint, *([] if found is None else [_averaged(self.name, found)])]
        if not every:
            return Evidence(self.name, (), 1.0, tuple(notes))
        return combined(self.name, every, notes, weights=None if found is None else _shares(len(rows), len(joint)))

    def followed(self, replicates: Replicates) -> list[Line]:
        """Return every function of theta alone whose law under the belief is known, at one draw of each output."""
        known = [column for column in strong_columns(replicates) if column.weak is not None]
        return [
            Line(self.name, one.name, one.kind, "one draw of each output", 1 / len(known), against_belief(one))
            for one in known
        ]

    def lacks(self, header: Header) -> str | None:
        """Return what a run lacks; given observed data the belief is the procedure's own output, so there is none."""
        return None if header.of_output else self.untested

    def sizes(self, row: TestRow, measures: Sequence[Interval]) -> list[Interval]:
        """Return the distance from the belief; of averages those of all functions, and the error of a correlation.

        Of the joint law there is none.
        """
        if row.kind == averages.SIZED:
            return [m for m in measures if m.name in ("weak KS distance", averages.CORRELATION)]
        return [] if row.kind in _WITHOUT else [m for m in measures if m.f == row.f and m.name == "weak KS distance"]

    def scores(self, row: TestRow, replicates: Replicates) -> Floats | None:
        """Return where draws of the outputs lie in the belief, if its law is known."""
        column = None if row.kind in (*_WITHOUT, *averages.KINDS) else column_named(replicates, row.f)
        return None if column is None or column.weak is None else column.array("weak_z")

    def complaint(self, row: TestRow, findings: Findings) -> str:
        """Say how the outputs, averaged over data, differ from the belief."""
        from ..sentences.averages import of_averages
        from ..sentences.miscalibrated import of_belief

        return of_averages(findings) if row.kind in averages.KINDS else of_belief(row, findings)


def _tested(column: Column, test: str) -> Any:
    """Test that draws of the outputs are uniform in the exact law of the belief."""
    z = column.array("weak_z")
    if column.groups is not None and column.weak is not None:
        return groups.test(column, z, lambda one: _tested(one, test), smooth=test == "combination", draws=None)
    return uniform(column.weak, z, draws=None, test=test, lost=column.lost)


def _averaged(level: str, found: averages.Averages) -> TestRow:
    """Return the row of the test of averages."""
    test, n = found.tested, found.n
    p = test.pvalue
    return TestRow(level, found.title, test.method, test.statistic, p, p, "draws, controlled by truths", n, found.kind)


def _shares(single: int, joint: int) -> list[float]:
    """Return the shares of single test functions, of the joint law if it was tested, and of averages."""
    every = [*(_SINGLE / single for _ in range(single)), *(_LAW for _ in range(joint)), _AVERAGES]
    return [share / sum(every) for share in every]


def _jointly(replicates: Replicates) -> list[TestRow]:
    """Compare all coordinates at once with fresh draws of mu0."""
    columns = [column.k for column in strong_columns(replicates) if column.kind == "coordinate"]
    if len(columns) < 2 or len(replicates.reference) < 2 or replicates.n < 2:
        return []
    x, y = replicates.weak_value[:_JOINT, columns], replicates.reference[:_JOINT, columns]
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return []
    # The scale is a function of the pooled sample, so the permutation test stays exact.
    both = np.concatenate([x, y])
    both = both / np.maximum(np.abs(both).max(axis=0), np.finfo(float).tiny)  # squares must not overflow
    both = both / np.maximum(both.std(axis=0), np.finfo(float).tiny)
    rng = stream(replicates, 2)
    found = combining.in_stages(lambda many: twosample.mmd(both[: len(x)], both[len(x) :], rng=rng, permutations=many))
    p = found.pvalue
    row = ("weak", "all coordinates", found.method, found.statistic, p, p, "fresh draws of mu0", len(x), "joint")
    return [TestRow(*row)]


LEVEL = Weak()
