"""What a judgement found, as sentences need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...replicates.record import Replicates
from ...statistics.effects import Interval
from ..levels import LevelEvidence
from ..result import TestRow, Tolerance


@dataclass(frozen=True)
class Findings:
    """What a judgement found.

    Attributes
    ----------
    found, overall, rejecting
        The evidence by level, the p-value of the verdict, and the tests that reject after adjustment.
    measures, use
        Sizes with their intervals, and contraction and skill by test function.
    replicates, alpha, tolerance
        What was judged, and how.
    tolerable
        How many lost replicates would leave a verdict; None if not even none lost would.
    """

    found: Sequence[LevelEvidence]
    overall: float
    rejecting: Sequence[TestRow]
    measures: Sequence[Interval]
    use: Mapping[str, Sequence[Interval]]
    replicates: Replicates
    alpha: float
    tolerance: Tolerance
    tolerable: int | None = None
