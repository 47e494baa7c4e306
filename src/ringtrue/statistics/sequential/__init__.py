"""Evidence and sizes that hold whenever one looks, however one decided to look.

Replicates must come in an order that was fixed before they were computed, such as their numbers. Those that finish
first are no such order: they are the quick ones, and how long a replicate takes may depend on its data.
"""

from .budget import Stage, expected, stages
from .eprocess import Evidence, State, log_evalues
from .sequences import Sizes, confidence_sequences, intersections

__all__ = [
    "Evidence",
    "Sizes",
    "Stage",
    "State",
    "confidence_sequences",
    "expected",
    "intersections",
    "log_evalues",
    "stages",
]
