"""The zoo: learning procedures whose calibration is known, to test with and to start from.

A member is a frozen dataclass with ``__call__``: its settings are its fields. It takes one dataset, or a batch with
the replicate on the first axis of y.
"""

from .bayes import BetaBinomial, GammaPoisson, LinearGaussian, NormalMean
from .reference import DataAgnostic, Inflated, Mirrored
from .stationary import Jacobi, Richardson

__all__ = [
    "BetaBinomial",
    "DataAgnostic",
    "GammaPoisson",
    "Inflated",
    "Jacobi",
    "LinearGaussian",
    "Mirrored",
    "NormalMean",
    "Richardson",
]
