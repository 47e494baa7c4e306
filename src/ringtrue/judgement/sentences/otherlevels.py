"""What is wrong at the auto, weak and exact levels."""

from __future__ import annotations

import numpy as np

from ...replicates.record import Replicates
from ...statistics import effects
from ...statistics.effects import Interval
from ...statistics.effects.intervals import clopper_pearson
from ..levels import LevelEvidence
from ..result import TestRow, counted, format_p, percent
from .findings import Findings
from .phrases import interval, percents
from .places import column_of, where_off

#: Regions of joint test functions that are looked at, the usual one first.
_REGIONS = (0.9, 0.5, 0.8, 0.95)


def of_regions(worst: TestRow, findings: Findings) -> str:
    """Say how often regions that the output itself gives contain the truth."""
    ran = findings.replicates
    u = ran.u[ran.rows, column_of(ran, worst.f)]
    alone = any(row.level == "strong" for row in findings.rejecting)
    hint = "" if alone else "; no test function alone shows it, so look at correlations and joint shape"
    for nominal in _REGIONS:
        inside = u <= nominal if worst.f == "Mahalanobis" else u >= 1 - nominal
        hits = int(inside.sum())
        low, high = clopper_pearson(hits, u.size, 1 - findings.alpha / len(_REGIONS), len(ran.failures))
        if not low <= nominal <= high:
            share = hits / u.size
            size, way = ("small", "over-confident") if share < nominal else ("large", "under-confident")
            return (
                f"{_region(worst.f)} that claim {percent(nominal)} contain the truth {percent(share)} "
                f"({percents(low, high)}) of the time: jointly {way}, they are too {size}{hint}"
            )
    return f"given its own output, the truth does not follow it: {worst.f}, {where_off(ran, worst.f)}{hint}"


def _region(name: str) -> str:
    names = {"log density": "highest-density regions", "Mahalanobis": "the output's ellipsoids"}
    return names.get(name, f"regions of high {name}")


def of_belief(worst: TestRow, findings: Findings) -> str:
    """Say how the outputs, averaged over data, differ from the belief, and what that means."""
    ran = findings.replicates
    check = "make sure that the procedure uses the belief that truths are drawn from"
    known = [k for k, column in enumerate(ran.columns) if column.name == worst.f]
    if not known:
        return (
            "averaged over data, the outputs do not return the belief: all coordinates together, so look at "
            f"correlations between them; {check}"
        )
    if outside := int(np.isinf(ran.weak_z[ran.rows, known[0]]).sum()):
        draws = counted(ran.n - len(ran.failures), "output")
        return f"{outside} of {draws} gave a draw of {worst.f} where the belief has no probability; {check}"
    fit = _against_belief(ran, known[0], 1 - findings.alpha)
    clauses = [] if fit is None else [*_width_of(fit.spread), *_place_of(fit.bias)]
    size = next((m for m in findings.measures if (m.f, m.name) == (worst.f, "weak KS distance")), None)
    if not clauses:
        how = f" (Kolmogorov distance {interval(size)})" if size else ""
        clauses = [f"have another shape than the belief{how}"]
    return f"averaged over data, the outputs for {worst.f} {' and '.join(clauses)}; {check}"


def _against_belief(ran: Replicates, k: int, confidence: float) -> effects.SpreadAndBias | None:
    """Return spread and shift of one draw of every output, in units of the belief."""
    z = ran.weak_z[ran.rows, k]
    if not np.isfinite(z).all():
        values, other = ran.weak_value[ran.rows, k], ran.reference[:, k]
        if other.size < 2 or not np.isfinite(other).all() or not np.isfinite(values).all() or other.std() <= 0:
            return None
        z = (values - other.mean()) / other.std(ddof=1)
    return effects.spread_and_bias(z, confidence=confidence) if z.size > 3 else None


def _width_of(spread: Interval) -> list[str]:
    if spread.low <= 1 <= spread.high:
        return []
    how = "wider" if spread.estimate > 1 else "narrower"
    why = "too wide or lie too far apart" if spread.estimate > 1 else "too narrow or lie too close together"
    return [f"are {how} than the belief, {interval(spread)} times its sd: single ones are {why}"]


def _place_of(bias: Interval) -> list[str]:
    if bias.low <= 0 <= bias.high:
        return []
    way = "above" if bias.estimate > 0 else "below"
    return [f"lie {interval(bias, absolute=True)} of its sd {way} the belief"]


def exactness(exact: LevelEvidence, findings: Findings) -> str:
    """Say whether anything speaks against the exact posterior."""
    worst = min(exact.rows, key=lambda row: row.pvalue)
    if exact.pvalue <= findings.alpha:
        return (
            f"NOT THE EXACT POSTERIOR (exact, {format_p(exact.pvalue)}): {worst.f} sees data that the output does not "
            f"use, or uses wrongly: {where_off(findings.replicates, worst.f)}."
        )
    return f"Exact posterior: nothing found against it ({format_p(exact.pvalue)})."
