"""The zoo: learning procedures whose calibration is known, to test with and to start from.

A member is a frozen dataclass with ``__call__``: its settings are its fields. It takes one dataset, or a batch with
the replicate on the first axis of y.
"""

from . import ode
from .bayes import BetaBinomial, GammaPoisson, LinearGaussian, NormalMean
from .gp import FittedGP
from .laplace import Laplace, StudentLocation
from .reference import DataAgnostic, Inflated, Mirrored
from .rejection import LocationRejection, Rejection
from .stationary import Jacobi, Richardson
from .variational import GaussianVariational

__all__ = [
    "BetaBinomial",
    "DataAgnostic",
    "FittedGP",
    "GammaPoisson",
    "GaussianVariational",
    "Inflated",
    "Jacobi",
    "Laplace",
    "LinearGaussian",
    "LocationRejection",
    "Mirrored",
    "NormalMean",
    "Rejection",
    "Richardson",
    "StudentLocation",
    "ode",
]
