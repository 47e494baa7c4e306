"""Outputs that miss by far, and replicates that were lost: what a verdict says beside its numbers."""

from __future__ import annotations

from collections.abc import Collection

from ..diagnosis import far_out
from ..results import counted
from .findings import Findings
from .phrases import that_miss


def far_misses(findings: Findings, *, told: Collection[str] = ()) -> str:
    """Name the test function with the most outputs that miss by far, which ranks among draws hardly see.

    Those in ``told`` are spoken of already.
    """
    ran = findings.replicates
    asked = [k for k, column in enumerate(ran.columns) if column.level == "strong" and column.name not in told]
    ranked = [k for k in asked if ran.lattice(k)]
    found = [(one[1], ran.columns[k].name) for k in ranked if (one := far_out(ran, k))]
    if not found:
        return ""
    far, name = max(found, key=lambda pair: pair[0].count)
    text = f"Of {name}, {that_miss(far, ran.n - len(ran.failures))}"
    return (
        f" {text}, which ranks hardly see: unless outputs have such tails, mend {'it' if far.count == 1 else 'them'}."
    )


def whatever(findings: Findings) -> str:
    """Say that lost replicates could not change the verdict, if there were any."""
    lost = len(findings.replicates.failures)
    return f" This holds whatever the {counted(lost, 'lost replicate')} would have been." if lost else ""
