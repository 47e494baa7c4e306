"""The exact posterior: the output is the law of theta given the data. It has a line of its own in a result.

A function that sees the data can show that an output is not the exact posterior, never that it is not calibrated.
"""

from __future__ import annotations

from . import Level


class Exact(Level):
    """Uniform positions of functions of theta and the data."""

    name, sees, order, implied = "exact", "data", 2, 0
    null = "the output is the law of theta given the data"
    untested = "whether the outputs are the exact posterior: add a test function of theta and y"


LEVEL = Exact()
