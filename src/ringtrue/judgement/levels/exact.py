"""The exact posterior: the output is the law of theta given the data. It has a line of its own in a result.

A function that sees the data can show that an output is not the exact posterior, never that it is not calibrated.
"""

from __future__ import annotations

from dataclasses import replace

from ...replicates.record import Replicates
from ...statistics import combining
from .. import data
from . import Evidence, Level, TestRow

#: What the user's own functions of theta and y have of the level, beside the test against summaries of the data.
_OWN = 0.5


class Exact(Level):
    """Uniform positions of functions of theta and the data; positions that do not depend on summaries of the data."""

    name, sees, order, implied = "exact", "data", 2, 0
    null = "the output is the law of theta given the data"
    untested = "whether the outputs are the exact posterior: add a test function of theta and y"

    def evidence(self, replicates: Replicates, test: str) -> Evidence | None:
        """Test every function that sees the data, and all positions against summaries of the data."""
        own = super().evidence(replicates, test)
        found = data.against(replicates)
        if found is None:
            return own
        row = self._row(found)
        if own is None:
            return Evidence(self.name, (row,), row.pvalue)
        total = combining.weighted_minimum([own.pvalue, row.pvalue], [_OWN, 1 - _OWN])
        rows = (*own.rows, row)
        return Evidence(self.name, tuple(replace(r, adjusted=min(1.0, r.adjusted / _OWN)) for r in rows), total)

    def _row(self, found: data.AgainstData) -> TestRow:
        test = found.tested
        taken = {function.name for function in found.replicates.functions}
        name = next(name for name in (data.DATA, "data (summaries)", "data (of all)") if name not in taken)
        route = f"{found.columns[test.column].name} by {found.names[test.summary]}"
        p, n = test.pvalue, len(found.rows)
        return TestRow(self.name, name, f"{test.kind} along y", test.statistic, p, p, route, n, data.DATA)


LEVEL = Exact()
