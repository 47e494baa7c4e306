"""Auto-calibration: given the output, the truth follows the output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import Level, TestRow

if TYPE_CHECKING:
    from ..sentences.verdicts import Findings


class Auto(Level):
    """Uniform positions of functions of theta and the output."""

    name, sees, order, implied, share = "auto", "output", 1, 1, 0.8
    null = "given the output, the truth follows the output"
    untested = (
        "whether the outputs are right among the data that led to the same output: add a test function that sees the "
        "output, such as ringtrue.LogDensity()"
    )

    def complaint(self, row: TestRow, findings: Findings) -> str:
        """Say how often regions that the output itself gives contain the truth."""
        from ..sentences.miscalibrated import of_regions

        return of_regions(row, findings)


LEVEL = Auto()
