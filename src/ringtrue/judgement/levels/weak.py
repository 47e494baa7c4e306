"""Weak calibration: draws of the output, averaged over data, follow the belief."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...replicates.record import Header, Replicates
from ...statistics import planning, twosample
from ...statistics.effects import Interval
from ...values import Floats
from .. import groups
from ..column import Column, column_named, columns_of, strong_columns
from . import Evidence, Level, TestRow, combined, row_of, stream, uniform

if TYPE_CHECKING:
    from ..sentences.verdicts import Findings

#: Points per sample of the joint test; its cost grows with the square.
_JOINT = 1000


class Weak(Level):
    """One draw of every output against the belief."""

    name, order, implied, share, blunt = "weak", 4, 4, planning.WEAK_SHARE, True
    null = "draws of the output, averaged over data, follow the belief"
    untested = (
        "whether the outputs, averaged over data, return the belief: pass the belief, and outputs that can be sampled"
    )

    def evidence(self, replicates: Replicates, test: str) -> Evidence | None:
        """Test every function of theta alone at one draw of each output, and all coordinates at once."""
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
        rows += _jointly(groups.one_of_each(replicates)) if not replicates.lost else []
        return combined(self.name, rows, notes) if rows else Evidence(self.name, (), 1.0, tuple(notes))

    def lacks(self, header: Header) -> str | None:
        """Return what a run lacks; given observed data the belief is the procedure's own output, so there is none."""
        return None if header.of_output else self.untested

    def sizes(self, row: TestRow, measures: Sequence[Interval]) -> list[Interval]:
        """Return the distance from the belief; of a test of all entries at once there is none."""
        return [] if row.kind == "joint" else [m for m in measures if m.f == row.f and m.name == "weak KS distance"]

    def scores(self, row: TestRow, replicates: Replicates) -> Floats | None:
        """Return where draws of the outputs lie in the belief, if its law is known."""
        column = None if row.kind == "joint" else column_named(replicates, row.f)
        return None if column is None or column.weak is None else column.array("weak_z")

    def complaint(self, row: TestRow, findings: Findings) -> str:
        """Say how the outputs, averaged over data, differ from the belief."""
        from ..sentences.miscalibrated import of_belief

        return of_belief(row, findings)


def _tested(column: Column, test: str) -> Any:
    """Test that draws of the outputs are uniform in the exact law of the belief."""
    z = column.array("weak_z")
    if column.groups is not None and column.weak is not None:
        return groups.test(column, z, lambda one: _tested(one, test), smooth=test == "combination", draws=None)
    return uniform(column.weak, z, draws=None, test=test, lost=column.lost)


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
    found = twosample.mmd(both[: len(x)], both[len(x) :], rng=stream(replicates, 2))
    p = found.pvalue
    row = ("weak", "all coordinates", found.method, found.statistic, p, p, "fresh draws of mu0", len(x), "joint")
    return [TestRow(*row)]


LEVEL = Weak()
