"""Tests that u is uniform, on the continuum or on a lattice of ranks, and simultaneous bands."""

from .statistics.uniformity import *  # noqa: F403
from .statistics.uniformity import __all__ as __all__
