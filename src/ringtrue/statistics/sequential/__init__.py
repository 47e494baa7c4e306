"""Evidence and sizes that hold whenever one looks, however one decided to look.

Replicates must come in an order that was fixed before they were computed, such as their numbers. Those that finish
first are no such order: they are the quick ones, and how long a replicate takes may depend on its data.
"""

from .budget import Stage, expected, stages
from .eprocess import Bets, Blocks, Evidence, Grouped, Process, Ranks, Scores, State, follow, log_evalues, looks_up_to
from .sequences import intersections, level, radius

__all__ = [
    "Bets",
    "Blocks",
    "Evidence",
    "Grouped",
    "Process",
    "Ranks",
    "Scores",
    "Stage",
    "State",
    "expected",
    "follow",
    "intersections",
    "level",
    "log_evalues",
    "looks_up_to",
    "radius",
    "stages",
]
