"""Evidence and sizes that hold whenever one looks, however one decided to look.

Replicates must come in an order that was fixed before they were computed, such as their numbers. Those that finish
first are no such order: they are the quick ones, and how long a replicate takes may depend on its data.
"""

from .budget import Stage, expected, stages
from .eprocess import Bets, Blocks, Evidence, Grouped, Process, Ranks, Scores, State, follow, log_evalues, looks_up_to
from .expectation import CERTIFIED, CLEARLY, Expected, expected_n, next_look
from .sequences import intersections, level, radius

__all__ = [
    "CERTIFIED",
    "CLEARLY",
    "Bets",
    "Blocks",
    "Evidence",
    "Expected",
    "Grouped",
    "Process",
    "Ranks",
    "Scores",
    "Stage",
    "State",
    "expected",
    "expected_n",
    "follow",
    "intersections",
    "level",
    "log_evalues",
    "looks_up_to",
    "next_look",
    "radius",
    "stages",
]
