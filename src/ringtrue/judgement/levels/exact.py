"""The exact posterior: the output is the law of theta given the data. It has a line of its own in a result.

A function that sees the data can show that an output is not the exact posterior, never that it is not calibrated.
"""

from __future__ import annotations

from ...replicates.record import Replicates
from ..column import columns_of
from . import Evidence, Level, combined, test_column


class Exact(Level):
    """Uniform positions of functions of theta and the data."""

    name, sees, order, implied = "exact", "data", 2, 0
    null = "the output is the law of theta given the data"
    untested = "whether the outputs are the exact posterior: add a test function of theta and y"

    def evidence(self, replicates: Replicates, test: str) -> Evidence | None:
        """Test every function that sees the data."""
        rows = [test_column(self.name, column, test) for column in columns_of(replicates, "data")]
        return combined(self.name, rows) if rows else None


LEVEL = Exact()
