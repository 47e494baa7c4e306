"""How outputs, averaged over data, differ from the belief in means, spreads and correlations. Words only."""

from __future__ import annotations

from ...statistics.effects import Interval
from ..averages import CORRELATION, Component, averages_of
from ..text import decimals, number
from .phrases import span
from .verdicts import Findings


def of_averages(findings: Findings) -> str:
    """Name what is most clearly off, and its size where it has one."""
    found = averages_of(findings.replicates)
    assert found is not None
    worst = found.worst
    head = "averaged over data, the outputs do not return the belief:"
    tail = "make sure that the procedure uses the belief that truths are drawn from"
    if worst.pvalue > findings.alpha:
        return f"{head} {found.title} together, no single one for sure; most of all, {_named(worst)}; {tail}"
    return f"{head} {_named(worst)} is too {_way(worst)}{_by(worst, findings)}; {tail}"


def _named(worst: Component) -> str:
    return f"the {worst.part} of {' and '.join(worst.names)}"


def _way(worst: Component) -> str:
    return "large" if worst.error > 0 else "small"


def _by(worst: Component, findings: Findings) -> str:
    """Say by how much a correlation is off; of means and spreads the measures speak."""
    names = " and ".join(worst.names)
    size = next((m for m in findings.measures if (m.name, m.f) == (CORRELATION, names)), None)
    return f", by {_span(size)}" if worst.part == "correlation" and size is not None and size.clear else ""


def _span(m: Interval) -> str:
    low, high = sorted((abs(m.low), abs(m.high)))
    return f"{number(abs(m.estimate))} ({span(low, high, decimals(m))})"
