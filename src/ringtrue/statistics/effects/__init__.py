"""How far from calibrated, with intervals.

A p-value says whether a procedure is calibrated; these measures say by how much it is not, in numbers one can
act on. Each takes either values on the continuum or, with ``draws=M``, ranks in {0, ..., M} of the truth among M
draws, and an interval confidence ``level``; a caller who reports many measures adjusts the level itself. With
``lost=m`` the interval also holds for whatever values m lost replicates would have had.

The ranks are never turned into values. Given u, a rank is Binomial(M, u), so every law of u has an exact law of
ranks, and the estimates are free of the bias of mid-ranks even at M = 9.

This package knows u, z and ranks. It must not know studies, procedures, test functions or verdicts.
"""

from .central import coverage
from .distances import cramer_von_mises, distance, wasserstein
from .divergences import divergence
from .measure import Measure, SpreadAndBias
from .moments import MomentFit, moment_spread_and_bias
from .ranklikelihood import Efficiency, rank_efficiency, rank_probabilities
from .spread import spread_and_bias
from .variances import variance_ratio

__all__ = [
    "Efficiency",
    "Measure",
    "MomentFit",
    "SpreadAndBias",
    "coverage",
    "cramer_von_mises",
    "distance",
    "divergence",
    "moment_spread_and_bias",
    "rank_efficiency",
    "rank_probabilities",
    "spread_and_bias",
    "variance_ratio",
    "wasserstein",
]
