"""What is not known, and what would settle it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from ...replicates.record import Replicates
from ...statistics import effects, planning
from ...statistics.effects import Interval
from ..result import Tolerance, counted, decimals, format_p, number, percent
from .findings import Findings
from .misses import far_misses
from .phrases import listed, percents, points, reached, rounded, span
from .use import idle

#: An estimate this many times nearer to the limit of its tolerance than its interval reaches is too near to settle.
_TOO_NEAR = 5.0
#: More than this share is nearly all.
_NEARLY_ALL = 0.9

#: Draws that keep nearly all the information.
_PLENTY = 99


def inconclusive(findings: Findings) -> str:
    """Say what was found so far, what is open, and what would settle it."""
    return f"INCONCLUSIVE: {_so_far(findings)}, {_open(findings)}.{far_misses(findings)}{idle(findings)}"


def _so_far(findings: Findings) -> str:
    p = format_p(findings.overall)
    if findings.overall > findings.alpha:
        return f"nothing found ({p})"
    names = listed(dict.fromkeys(row.f for row in findings.rejecting))
    return f"an error of {names} was found ({p}) that is negligible" if names else f"an error was found ({p})"


def _open(findings: Findings) -> str:
    """Say what is not known, and what would settle it."""
    ran, measures = findings.replicates, findings.measures
    kept = ran.n - len(ran.failures)
    if not measures:
        return (
            "and no test function of theta alone was asked about, so calibration was not measured; add one, such as "
            "a coordinate"
        )
    if _one_draw(ran):
        return "but one draw per replicate cannot tell the spread; return more draws, 19 or more"
    if ran.failures:
        return f"but {_lost(findings)}"
    if kept < 4:
        return f"but {counted(kept, 'replicate')} {'tells' if kept == 1 else 'tell'} next to nothing{_more(findings)}"
    worst = _least_known(measures, findings.tolerance)
    more = _more(findings).replace(_called(worst), "it")
    return f"but {_called(worst)} is known only to within {_known_span(worst)}{more}"


def _one_draw(ran: Replicates) -> bool:
    """Whether nearly all outputs for some test function have one draw."""
    return any(float(np.mean(ran.draws[ran.rows, k] == 1)) > _NEARLY_ALL for k in _strong(ran))


def _strong(ran: Replicates) -> list[int]:
    return [k for k, column in enumerate(ran.columns) if column.level == "strong"]


def _usual_draws(ran: Replicates) -> int | None:
    """Return the median number of draws, of the test function where it is least; None if all outputs are exact."""
    medians = [int(np.median(ran.draws[ran.rows, k])) for k in _strong(ran)]
    return min((many for many in medians if many), default=None)


def _lost(findings: Findings) -> str:
    """Say how many losses the verdict could bear."""
    ran, many = findings.replicates, len(findings.replicates.failures)
    were, they = ("was", "it") if many == 1 else ("were", "they")
    lost = f"{many} of {counted(ran.n, 'replicate')} {were} lost"
    head = f"{lost}, and the verdict must hold whatever {they} would have been"
    commonest = f"{'most often ' if len(ran.causes()) > 1 else ''}{ran.causes()[0][0]}"
    if findings.tolerable is None:
        more = _more(_as_if_none_lost(findings))
        return f"{head}; even without losses it would be open{more}, once the failures are mended ({commonest})"
    mend = many - findings.tolerable
    if many == 1:
        return f"{head}; it would hold without that loss: mend it ({commonest})"
    could = f"at most {findings.tolerable} lost" if findings.tolerable else "none lost"
    return f"{head}; it would hold with {could}: mend {'all' if mend == many else mend} of them ({commonest})"


def _as_if_none_lost(findings: Findings) -> Findings:
    """Return the findings with intervals that do not allow for losses, for the advice on what comes after them."""
    ran = findings.replicates.part(findings.replicates.rows)
    confidence = 1 - findings.alpha / (3 * len(_strong(ran)))
    rows = [row for k in _strong(ran) for row in _measured(ran, k, confidence, findings.tolerance)]
    return replace(findings, replicates=ran, measures=rows)


def _measured(ran: Replicates, k: int, confidence: float, tolerance: Tolerance) -> list[Interval]:
    """Return spread, bias and coverage of column k."""
    draws, values = ran.lattice(k), ran.rank[:, k]
    fit = effects.spread_and_bias(values if draws else ran.z[:, k], draws=draws, confidence=confidence)
    inside = effects.coverage(values if draws else ran.u[:, k], draws=draws, confidence=confidence)
    rows = []
    for m in (fit.spread, fit.bias, inside):
        low, high = tolerance.limits(m.name, m.ideal)
        within: Literal["yes", "open"] = "yes" if low <= m.low and m.high <= high else "open"
        rows.append(replace(m, f=ran.columns[k].name, within=within))
    return rows


def _more(findings: Findings) -> str:
    """Say how many more replicates would settle it."""
    n, limits = findings.replicates.n - len(findings.replicates.failures), findings.tolerance
    draws = _usual_draws(findings.replicates)
    need = _needed(findings, draws)
    if not math.isfinite(need):
        return f"; no number of replicates would certify that with {counted(draws or 0, 'draw')} each"
    open_rows = [m for m in findings.measures if m.name in ("spread", "bias", "coverage") and not m.certified]
    if 3 * n >= need and open_rows:
        worst = max(open_rows, key=lambda m: _share(m, limits))
        share = _share(worst, limits)
        if math.isinf(share) or share > _TOO_NEAR:
            return _at_the_limit(worst, limits, n)
        need = max(need, math.ceil(n * share**2))
    return (
        f"; about {rounded(max(int(need) - n, 1))} more replicates would certify a spread within "
        f"{100 * limits.spread:g} %, a bias within {limits.bias:g} sd and a coverage within "
        f"{points(100 * limits.coverage)}{_with_draws(findings, draws)}"
    )


def _needed(findings: Findings, draws: int | None) -> float:
    limits, functions = findings.tolerance, len({m.f for m in findings.measures})
    return planning.plan_certificate(
        spread=limits.spread,
        bias=limits.bias,
        coverage=limits.coverage,
        draws=draws,
        confidence=1 - findings.alpha / (3 * functions),
    ).n


def _with_draws(findings: Findings, draws: int | None) -> str:
    """Say how many replicates would do with more draws, if they are so few that this matters."""
    enough = _needed(findings, _PLENTY)
    if draws is None or _needed(findings, draws) < 1.5 * enough:
        return ""
    return f", or {rounded(int(enough))} in all with {_PLENTY} draws each"


def _share(m: Interval, tolerance: Tolerance) -> float:
    """Return by what factor the interval must shrink to lie within its tolerance; inf if the estimate does not."""
    values = [m.estimate, m.low, m.high, *tolerance.limits(m.name, m.ideal)]
    if m.name == "spread":
        values = [math.log(max(value, 1e-300)) for value in values]
    estimate, low, high, least, most = values
    if not least < estimate < most:
        return math.inf
    return max((estimate - low) / (estimate - least), (high - estimate) / (most - estimate))


def _at_the_limit(m: Interval, tolerance: Tolerance, n: int) -> str:
    """Say what to do where the estimate is outside its tolerance, or so near its limit that nothing would settle it."""
    low, high = tolerance.limits(m.name, m.ideal)
    if low < m.estimate < high:
        return (
            f"; {_called(m)} is so near the limit of its tolerance, {_span_of(m, low, high)}, that only a wider one "
            f"would settle it"
        )
    reach = 1 / max(reached(m), 1e-3)
    more = max(math.ceil(n * (1.2 * reach) ** 2) - n, math.ceil(0.1 * n))
    return (
        f"; {_called(m)} may be outside its tolerance, {_span_of(m, low, high)}: about {rounded(more)} more replicates "
        f"would show whether it is"
    )


def _least_known(measures: Sequence[Interval], tolerance: Tolerance) -> Interval:
    """Return the measure whose interval leaves its tolerance by most."""

    def excess(m: Interval) -> float:
        low, high = tolerance.limits(m.name, m.ideal)
        return max(low - m.low, m.high - high) / (high - low)

    return max((m for m in measures if m.name in ("spread", "bias", "coverage")), key=excess)


def _called(m: Interval) -> str:
    return (
        f"the {m.name} of {m.f}" if m.name != "coverage" else f"the coverage of {percent(m.ideal)} intervals of {m.f}"
    )


def _known_span(m: Interval) -> str:
    if math.isinf(m.high):
        return f"{number(m.low)} or more" if math.isfinite(m.low) else "any number"
    return _span_of(m, m.low, m.high)


def _span_of(m: Interval, low: float, high: float) -> str:
    """Return two ends in the units of a measure."""
    if m.name == "coverage":
        return f"{percents(low, high)} %"
    return span(low, high, decimals(m)) + (" sd" if m.name == "bias" else "")
