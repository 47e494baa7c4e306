"""Reversible: theta and a draw of the output can be exchanged. It stands in the chain, and has no test yet."""

from __future__ import annotations

from . import Level


class Reversible(Level):
    """Exchangeable truth and draw."""

    name, order, implied = "reversible", 3, 3
    null = "theta and a draw of the output can be exchanged"
    untested = "whether truth and output can be exchanged: ringtrue has no test of it yet"


LEVEL = Reversible()
