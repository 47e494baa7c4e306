"""Strong calibration: the position of f(theta) in the output is uniform, for every f of theta alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InvalidStudy
from ...functions import BestOf
from ...replicates.record import GROUP, Replicates
from ...statistics import combining, exchange, planning
from ...statistics.effects import Interval
from ...values import Floats
from ..column import Column, column_named, strong_columns
from . import ADDED, Evidence, Level, TestRow, labels, stream, test_column

if TYPE_CHECKING:
    from ..sentences.verdicts import Findings


#: What the functions are that the default family adds: nobody asked for them by name.
_EXPLAINED = {
    "sum": ", the sum of all entries in units of the belief,",
    "overall": ", how far theta lies from the centre of the belief,",
}


class Strong(Level):
    """Uniform positions of functions of theta alone."""

    name, sees, order, implied = "strong", "theta", 0, 2
    null = "for every function of theta, the position of the truth in the output is uniform"
    # Strong calibration implies weak, and its tests see more.
    share, heir = planning.STRONG_SHARE, "auto"
    untested = "whether the truth falls where the outputs say, on average over data: add a test function of theta"

    def evidence(self, replicates: Replicates, test: str) -> Evidence | None:
        """Test every function of theta alone, jointly where all of them rank the same draws."""
        found, columns = self.one_by_one(replicates, test), strong_columns(replicates)
        if replicates.header.selection is not None:
            return found
        # Relabelling needs replicates that are independent, not only groups.
        if found is None or replicates.members is None or replicates.failures or GROUP in replicates.arrays:
            return found
        # Functions of one parameter are dependent: randomised labels pay for them once, Bonferroni for each.
        members, weights = replicates.members, self.weights(columns)
        joint = combining.in_stages(
            lambda many: exchange.label_randomised(members, rng=labels(), randomisations=many, weights=weights)
        )
        weights = [planning.JOINT_SHARE, 1 - planning.JOINT_SHARE]
        adjusted = [row.adjusted for row in found.rows]
        smaller = np.minimum(1.0, np.minimum(joint.adjusted / weights[0], np.divide(adjusted, weights[1])))
        rows = tuple(replace(row, adjusted=float(p)) for row, p in zip(found.rows, smaller, strict=True))
        return Evidence(self.name, rows, combining.weighted_minimum([joint.pvalue, found.pvalue], weights))

    def one_by_one(self, replicates: Replicates, test: str) -> Evidence | None:
        """Test every function of theta alone; the p-value holds as far out as those of single functions do."""
        columns = strong_columns(replicates)
        if columns and replicates.header.selection is not None:
            return _selected(replicates, columns, test, replicates.header.selection)
        return super().evidence(replicates, test)

    def weights(self, columns: Sequence[Column]) -> list[float]:
        """Return the shares of the test functions: most of the budget is for the user's own parameters."""
        added = [column.kind in ADDED for column in columns]
        if all(added) or not any(added):
            return super().weights(columns)
        own = planning.OWN_SHARE
        return [(1 - own) / sum(added) if one else own / (len(added) - sum(added)) for one in added]

    def sizes(self, row: TestRow, measures: Sequence[Interval]) -> list[Interval]:
        """Return spread, bias, coverage and distance of the function."""
        return [m for m in measures if m.f == row.f and m.name != "weak KS distance"]

    def scores(self, row: TestRow, replicates: Replicates) -> Floats | None:
        """Return where the truths lie in the outputs, unless they were ranked."""
        column = column_named(replicates, row.f)
        return None if column is None or column.draws is not None else column.scores

    def complaint(self, row: TestRow, findings: Findings) -> str:
        """Say over-confident, under-confident, biased, misshapen or outlying."""
        from ..sentences.miscalibrated import direction

        return f"{row.f}{_EXPLAINED.get(row.kind, '')} {direction(row.f, findings)}"


def _selected(replicates: Replicates, columns: Sequence[Column], test: str, selection: BestOf) -> Evidence:
    """Choose a test function on some replicates and test it on the others."""
    if replicates.failures:
        raise InvalidStudy("BestOf cannot be judged with lost replicates: repair them, or test the whole family.")
    kept = np.flatnonzero(replicates.kept)
    rng = stream(replicates, 1)
    # A single split is the user's own order; several are random, or their p-values would not be exchangeable.
    groups = replicates.arrays.get(GROUP)
    units = kept if groups is None else groups[np.sort(np.unique(groups, return_index=True)[1])]
    orders = [units] if selection.splits == 1 else [rng.permutation(units) for _ in range(selection.splits)]
    rows = [_one_split(columns, test, order, selection.share) for order in orders]
    if len(rows) == 1:
        return Evidence("strong", (rows[0],), rows[0].pvalue)
    total = combining.prefix_two_median([row.pvalue for row in rows])
    often = max({row.f for row in rows}, key=[row.f for row in rows].count)
    row = next(row for row in rows if row.f == often)
    row = replace(row, method=f"{row.method}, {len(rows)} splits", pvalue=total, adjusted=total)
    return Evidence("strong", (row,), total)


def _one_split(columns: Sequence[Column], test: str, order: Any, share: float) -> TestRow:
    """Choose on the first replicates, or groups of them, and test on the others."""
    groups = columns[0].groups
    cut = round(share * len(order))
    if not 0 < cut < len(order):
        raise InvalidStudy(
            f"BestOf needs replicates on both sides of its split, but {len(order)} at share {share} came."
        )
    first, second = (
        part if groups is None else np.flatnonzero(np.isin(groups, part)) for part in (order[:cut], order[cut:])
    )
    chosen = min(columns, key=lambda column: test_column("strong", column.at(first), test).pvalue)
    row = test_column("strong", chosen.at(second), test)
    return replace(row, method=f"{row.method}, best of {len(columns)} on the other {cut}")


LEVEL = Strong()
