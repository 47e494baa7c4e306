"""Several procedures on the same data, one procedure over a grid, and coverage where theta is fixed.

Truths and data are functions of the seed alone, so procedures are compared on the same (theta_i, y_i) and differences
have the intervals of paired data. This package decides what to compare; how a measure is computed is decided elsewhere.
"""

from .fixed import Fixed, coverage_map
from .grids import Sweep, sweep
from .rows import MEASURES
from .sides import Comparison, compare

__all__ = [
    "MEASURES",
    "Comparison",
    "Fixed",
    "Sweep",
    "compare",
    "coverage_map",
    "sweep",
]
