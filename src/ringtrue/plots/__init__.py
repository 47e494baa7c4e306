"""Pictures of calibration, each with the band that a calibrated procedure stays in.

Every function takes a Result or Replicates (or rows with intervals), draws on the Axes it is given or on new ones, and
returns them. matplotlib is imported by the first call; the user's settings are left alone. The package computes bands
and bins, and no verdicts.
"""

from .captions import reading
from .conditions import local
from .correlograms import correlogram
from .estimates import recovery, z_contraction
from .fits import diagnostics
from .forests import caterpillar, forest
from .looks import evidence, sequences
from .maps import coverage_map
from .outputs import data_averaged, scatter_matrix
from .overview import plot
from .positions import coverage_curve, coverage_difference, ecdf, ecdf_difference, pit_histogram
from .probabilities import reliability
from .sweeps import sweep_lines

__all__ = [
    "caterpillar",
    "correlogram",
    "coverage_curve",
    "coverage_difference",
    "coverage_map",
    "data_averaged",
    "diagnostics",
    "ecdf",
    "ecdf_difference",
    "evidence",
    "forest",
    "local",
    "pit_histogram",
    "plot",
    "reading",
    "recovery",
    "reliability",
    "scatter_matrix",
    "sequences",
    "sweep_lines",
    "z_contraction",
]
