"""What is wrong with all entries together: correlations, and how central the truth is. Words only."""

from __future__ import annotations

from ...statistics.effects import Interval
from .. import joint
from ..levels import TestRow
from ..text import number, percent
from .phrases import listed, percents, span
from .verdicts import Findings


def of_joint_law(row: TestRow, findings: Findings) -> str:
    """Say which correlation is off and by how much, or how often the truth is where it should be."""
    found = joint.members_of(findings.replicates)
    if found is None:  # over time blocks without losses speak, and sizes are of all replicates
        what = (
            "correlations between entries are"
            if row.kind == joint.CORRELATIONS
            else "how entries depend on each other is"
        )
        return f"{what} off; by how much is not known, since replicates were lost"
    if row.kind == joint.CORRELATIONS:
        return _correlation(found, findings)
    if row.kind == joint.ENERGY:
        region = found.central(joint.ENERGY, 0.9, findings.alpha)
        way = "too far out" if region.share < region.nominal else "too near the centre"
        return (
            f"all entries together, truths lie {way} among the draws: of the {percent(region.nominal)} most central "
            f"places they have {percent(region.share)} ({percents(region.low, region.high)}), although no entry alone "
            f"need be off; look at joint shape"
        )
    region = found.central(joint.BAND, 0.9, findings.alpha)
    way = "too often" if region.share < region.nominal else "too rarely"
    return (
        f"several entries of the truth are extreme together {way}: {percent(1 - region.share)} "
        f"({percents(1 - region.high, 1 - region.low)}) are among the {percent(1 - region.nominal)} that should be; "
        f"look at how entries depend on each other"
    )


def _correlation(found: joint.Members, findings: Findings) -> str:
    clear = clear_errors(findings)
    if not clear:
        worst = found.named(found.tested.pair)
        return f"correlations between entries are off, no single one for sure; most of all, that of {worst}"
    first, *others = clear
    reported = _reported(found, first)
    also = f", and {listed([_short(one) for one in others])}" if others else ""
    return f"the correlation of {first.f} is reported as {number(reported)}, {_off(first)}{also}"


def clear_errors(findings: Findings) -> list[Interval]:
    """Return the errors of correlation that are there for sure, as far as they are shown."""
    return [m for m in findings.measures if m.name == "correlation error" and m.clear]


def _reported(found: joint.Members, m: Interval) -> float:
    pair = next(k for k in range(len(found.pairs)) if found.named(k) == m.f)
    return float(found.correlations.reported[pair])


def _off(m: Interval) -> str:
    low, high = sorted((abs(m.low), abs(m.high)))
    return f"too {'low' if m.estimate < 0 else 'high'} by {number(abs(m.estimate))} ({span(low, high, 2)})"


def _short(m: Interval) -> str:
    return f"that of {m.f} is too {'low' if m.estimate < 0 else 'high'} by {number(abs(m.estimate))}"


def told_of(findings: Findings) -> str:
    """Say of a certificate how well correlations are known, or that it does not speak of them."""
    entries = sum(function.kind == "coordinate" for function in findings.replicates.functions)
    if entries < 2:
        return ""
    found = joint.members_of(findings.replicates)
    if found is None:
        return " It is about each entry alone, not about how they depend on each other."
    reach = found.correlations.within(1 - findings.alpha)
    which = "their correlation is" if entries == 2 else "their correlations are"
    found_one = any(row.kind in joint.KINDS for row in findings.rejecting)
    nothing = "" if found_one else "Of the joint law nothing was found: "
    return f" {nothing}{which if nothing else which.capitalize()} right to within {number(reach)}."
