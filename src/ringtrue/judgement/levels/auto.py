"""Auto-calibration: given the output, the truth follows the output, all entries together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...replicates.record import Replicates
from ...statistics import combining, matched, planning
from ...statistics.effects import Interval
from .. import joint
from ..processes import Line
from . import Evidence, Level, TestRow

if TYPE_CHECKING:
    from ..sentences.verdicts import Findings

#: What the user's own functions of the output have of the level's budget, beside the tests of the joint law.
_OWN = 0.5


class Auto(Level):
    """Uniform positions of functions of theta and the output; truth and draws exchangeable in all entries together."""

    name, sees, order, implied, share, heir = "auto", "output", 1, 1, planning.AUTO_SHARE, "strong"
    null = "given the output, the truth follows the output"
    untested = (
        "whether the outputs are right among the data that led to the same output: add a test function that sees the "
        "output, such as ringtrue.LogDensity()"
    )

    def evidence(self, replicates: Replicates, test: str) -> Evidence | None:
        """Test every function that sees the output, and the joint law of all entries."""
        own = super().evidence(replicates, test)
        found = joint.members_of(replicates)
        if found is None:
            return own
        rows = _joint_rows(self.name, found)
        if own is None:
            return Evidence(self.name, rows, found.tested.pvalue)
        total = combining.weighted_minimum([own.pvalue, found.tested.pvalue], [_OWN, 1 - _OWN])
        both = [(row, _OWN) for row in own.rows] + [(row, 1 - _OWN) for row in rows]
        return Evidence(self.name, tuple(replace(row, adjusted=min(1.0, row.adjusted / w)) for row, w in both), total)

    def followed(self, replicates: Replicates) -> list[Line]:
        """Return every function that sees the output, and the joint law of all entries, in blocks of replicates."""
        own = super().followed(replicates)
        blocks = joint.blocks(replicates)
        if blocks is None:
            return own
        mine = 1 - _OWN if own else 1.0
        names, shares = joint.names_of_rows(replicates), matched.SHARES
        return [replace(line, share=_OWN * line.share) for line in own] + [
            Line(self.name, names[kind], kind, f"blocks of {joint.BLOCK}", mine * share, process)
            for kind, share, process in zip(joint.KINDS, shares, blocks, strict=True)
        ]

    def sizes(self, row: TestRow, measures: Sequence[Interval]) -> list[Interval]:
        """Return errors of correlation, or the distance of energies or depths; other functions have no size here."""
        if row.kind == joint.CORRELATIONS:
            return [m for m in measures if m.name == "correlation error"]
        return [m for m in measures if m.f == row.f] if row.kind in joint.KINDS else []

    def complaint(self, row: TestRow, findings: Findings) -> str:
        """Say how often regions that the output itself gives contain the truth, or which correlation is off."""
        from ..sentences.joint import of_joint_law
        from ..sentences.miscalibrated import of_regions

        return of_joint_law(row, findings) if row.kind in joint.KINDS else of_regions(row, findings)


def _joint_rows(level: str, found: joint.Members) -> tuple[TestRow, ...]:
    """Return one row for each test of the joint law; all hold over the three of them."""
    titles, test = joint.names_of_rows(found.replicates), found.tested
    return tuple(
        TestRow(level, titles[kind], "randomised labels", statistic, p, p, found.route, found.n, kind)
        for kind, statistic, p in zip(joint.KINDS, test.statistics, test.adjusted, strict=True)
    )


LEVEL = Auto()
