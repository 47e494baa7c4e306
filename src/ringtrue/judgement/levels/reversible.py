"""Reversible: theta and a draw of the output can be exchanged. It stands in the chain, and has no test yet."""

from __future__ import annotations

from ...replicates.record import Replicates
from . import Evidence, Level


class Reversible(Level):
    """Exchangeable truth and draw."""

    name, order, implied = "reversible", 3, 3
    null = "theta and a draw of the output can be exchanged"
    untested = "whether truth and output can be exchanged: ringtrue has no test of it yet"

    def evidence(self, replicates: Replicates, test: str) -> Evidence | None:
        """Return nothing: no test speaks of it."""
        return None


LEVEL = Reversible()
