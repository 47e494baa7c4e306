"""Several procedures on the same data, one over a grid or a set of beliefs, and coverage where theta is fixed.

Truths and data are functions of the seed alone, so procedures are compared on the same (theta_i, y_i) and differences
have the intervals of paired data. This package decides what to compare; how a measure is computed is decided elsewhere.
"""

from .beliefs import OverBeliefs, check_beliefs
from .fixed import Fixed, coverage_map
from .grids import Sweep, sweep
from .rows import MEASURES
from .sides import Comparison, compare

__all__ = [
    "MEASURES",
    "Comparison",
    "Fixed",
    "OverBeliefs",
    "Sweep",
    "check_beliefs",
    "compare",
    "coverage_map",
    "sweep",
]
