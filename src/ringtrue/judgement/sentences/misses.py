"""Outputs that miss by far, and replicates that were lost: what a verdict says beside its numbers."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ...replicates.record import Replicates
from ..diagnosis import far_out
from ..result import counted
from .findings import Findings
from .phrases import that_miss


def far_misses(findings: Findings, *, told: Collection[str] = ()) -> str:
    """Name the test function with the most outputs that miss by far, which ranks among draws hardly see.

    Those in ``told`` are spoken of already. The distance, a sum of squares, has such tails by itself, and entries that
    miss by far are named themselves.
    """
    ran = findings.replicates
    skipped = {*told, *(("distance",) if any(column.coordinate for column in ran.columns) else ())}
    asked = [k for k, column in enumerate(ran.columns) if column.level == "strong" and column.name not in skipped]
    ranked = [k for k in asked if ran.lattice(k)]
    found = [(one[1], k) for k in ranked if (one := far_out(ran, k))]
    if not found:
        return ""
    far, k = max(found, key=lambda pair: pair[0].count)
    text = f"Of {ran.columns[k].name}, {that_miss(far, ran.n - len(ran.failures))}"
    unless = f"unless outputs have such tails{' or few values' if _repeated(ran, k) else ''}"
    return f" {text}, which ranks hardly see: {unless}, mend {'it' if far.count == 1 else 'them'}."


def _repeated(ran: Replicates, k: int) -> bool:
    """Whether truths repeat each other, as those of a discrete test function do."""
    truth = ran.truth[ran.rows, k]
    return bool(2 * np.unique(truth).size < truth.size)


def whatever(findings: Findings) -> str:
    """Say that lost replicates could not change the verdict, if there were any."""
    lost = len(findings.replicates.failures)
    return f" This holds whatever the {counted(lost, 'lost replicate')} would have been." if lost else ""
