"""How far from calibrated, and of what use, with intervals.

A p-value says whether a procedure is calibrated; these say by how much it is not, in numbers one can act on. Each takes
either values on the continuum or, with ``draws=M``, ranks in {0, ..., M} of the truth among M draws, and the
``confidence`` of its interval; a caller who reports many adjusts it. With ``lost=m`` the interval also holds for
whatever values m lost replicates would have had.

The ranks are never turned into values. Given u, a rank is Binomial(M, u), so every law of u has an exact law of
ranks, and the estimates are free of the bias of mid-ranks even at M = 9.
"""

from .distances import coverage, cramer_von_mises, distance, variance_ratio, wasserstein
from .divergences import divergence
from .intervals import Interval, SpreadAndBias
from .moments import MomentFit, moment_spread_and_bias
from .ranks import Efficiency, rank_efficiency, rank_probabilities
from .spread import Influences, influences, spread_and_bias, spreads_and_biases

__all__ = [
    "Efficiency",
    "Influences",
    "Interval",
    "MomentFit",
    "SpreadAndBias",
    "coverage",
    "cramer_von_mises",
    "distance",
    "divergence",
    "influences",
    "moment_spread_and_bias",
    "rank_efficiency",
    "rank_probabilities",
    "spread_and_bias",
    "spreads_and_biases",
    "variance_ratio",
    "wasserstein",
]
