"""Beliefs and outputs, and the laws of real numbers that they give."""

from .batches import Batch, Repeated, stack
from .combined import Independent, Mixture
from .contract import Distribution
from .conversion import as_distribution, as_named_draws
from .draws import Draws
from .elementwise import Beta, Elementwise, Gamma, Normal
from .gaussian import Gaussian
from .laws import Law

__all__ = [
    "Batch",
    "Beta",
    "Distribution",
    "Draws",
    "Elementwise",
    "Gamma",
    "Gaussian",
    "Independent",
    "Law",
    "Mixture",
    "Normal",
    "Repeated",
    "as_distribution",
    "as_named_draws",
    "stack",
]
