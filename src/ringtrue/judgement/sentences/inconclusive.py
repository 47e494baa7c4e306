"""What is not known, what is, and what would settle it. Words only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...replicates.record import GROUP
from ...statistics.effects import Interval
from ..chains import too_slow
from ..column import strong_columns
from ..measures import without_losses
from ..outcomes import ERROR, outcomes_of
from ..reliability import STEADY, blurred, outcomes_to_certify
from ..text import counted, decimals, format_p, number, percent
from ..verdict import (
    Tolerance,
    certificate,
    joint_confidence,
    known_to,
    needed,
    one_draw,
    to_settle,
    usual_draws,
    wider,
)
from .phrases import listed, percents, points, reached, rounded, span
from .probabilities import at_most, points_of
from .verdicts import Findings, far_misses, idle

#: To settle an estimate this near to the limit of its tolerance would take so many times the replicates that it is not.
_TOO_MANY = 25.0
#: Draws that keep nearly all the information.
_PLENTY = 99
#: An sd that may be wrong by more than this share is as good as not known.
_UNKNOWN = 1.0


def inconclusive(findings: Findings) -> str:
    """Say what was found and excluded so far, what is open, and what would settle it."""
    return f"INCONCLUSIVE: {_so_far(findings)}{_open(findings)}.{far_misses(findings)}{idle(findings)}"


def _so_far(findings: Findings) -> str:
    """Say what was found, and what the run excludes."""
    both = (_excluded(_told(findings)), at_most(certificate(findings.measures, findings.replicates)))
    known = "; ".join(part for part in both if part)
    p = format_p(findings.overall)
    if findings.overall > findings.alpha:
        return f"nothing found ({p}); {known}, " if known else f"nothing found ({p}), "
    names = listed(dict.fromkeys(row.f for row in findings.rejecting))
    head = f"an error of {names} is there ({p}), and is not clearly larger than tolerated"
    return f"{head}; {known}, " if known else f"{head}, "


def _told(findings: Findings) -> list[Interval]:
    """Return the sizes that a certificate is about, but for functions of which they tell nothing."""
    few = _few_valued(findings)
    return [m for m in certificate(findings.measures, findings.replicates) if m.f not in few and m.name != ERROR]


def _few_valued(findings: Findings) -> list[str]:
    own = dict.fromkeys(m.f for m in certificate(findings.measures, findings.replicates) if m.name != ERROR)
    return [c.name for c in strong_columns(findings.replicates) if c.name in own and c.few_valued]


def _excluded(sizes: Sequence[Interval]) -> str:
    """Say how large errors can be after this run; nothing if they can be as large as one likes."""
    spread, bias = known_to(sizes)
    names = list(dict.fromkeys(m.f for m in sizes))
    one = len(names) == 1
    every = "both" if len(names) == 2 else f"all {len(names)}"
    sd = f"the sd of {names[0]} is" if one else f"the sds of {every} functions asked about are"
    shown = [f"{sd} right to within {percent(spread)}"] if spread < _UNKNOWN else []
    whose = ("its bias is" if one else "their biases are") if shown else f"the bias of {listed(names)} is"
    shown += [f"{whose} below {number(bias)} sd"] if math.isfinite(bias) else []
    return " and ".join(shown)


def _open(findings: Findings) -> str:
    """Say what is not known, and what would settle it."""
    ran, kept = findings.replicates, findings.independent
    if not findings.measures:
        return (
            "and no test function of theta alone was asked about, so calibration was not measured; add one, such as "
            "a coordinate"
        )
    if one_draw(ran):
        return "but one draw per replicate cannot tell the spread; return more draws, 19 or more"
    if ran.failures:
        return f"but {_lost(findings)}"
    if kept < 4:
        many = counted(kept, "group" if GROUP in ran.arrays else "replicate")
        return f"but {many} {'tells' if kept == 1 else 'tell'} next to nothing; {_more(findings)}"
    if too_slow(ran):
        return "but the chains are worth too few draws to tell how wide outputs are; run them longer, or more of them"
    if coarse := _few_valued(findings):
        take = "takes" if len(coarse) == 1 else "take"
        return (
            f"and {listed(coarse)} {take} few values: how far the probabilities are off is not measured here, so that "
            f"no number of replicates certifies them"
        )
    return f"and {_more(findings)}"


def _of_probabilities(findings: Findings) -> str:
    """Say what would certify the probabilities of functions with few values, if any are not; nothing otherwise."""
    rows = [m for m in certificate(findings.measures, findings.replicates) if m.name == ERROR and not m.certified]
    found = {column.name: outcomes_of(column) for column in strong_columns(findings.replicates)}
    open_ones = [one for m in rows for one in found[m.f]]
    if not open_ones:
        return ""
    limit = points_of(findings.tolerance.probability)
    if any(blurred(one) for one in open_ones):
        return f"shares of so few draws do not certify probabilities within {limit}; make {STEADY} draws or more"
    wanted = {"error": findings.tolerance.probability, "alpha": findings.later}
    need = max(outcomes_to_certify(one.probability, **wanted) for one in open_ones)
    more = rounded(max(int(need) - findings.kept, math.ceil(0.1 * findings.kept), 1))
    return f"about {more} more replicates would certify probabilities within {limit} on average"


def _lost(findings: Findings) -> str:
    """Say how many losses the verdict could bear."""
    ran, many = findings.replicates, findings.replicates.lost
    were, they = ("was", "it") if many == 1 else ("were", "they")
    lost = f"{many} of {counted(ran.n, 'replicate')} {were} lost"
    head = f"{lost}, and the verdict must hold whatever {they} would have been"
    commonest = f"{'most often ' if len(ran.causes()) > 1 else ''}{ran.causes()[0][0]}"
    if findings.tolerable is None:
        sizes = without_losses(ran, findings.alpha, findings.tolerance)
        more = _more(replace(findings, measures=sizes))
        return f"{head}; even without losses it would be open, {more}, once the failures are fixed ({commonest})"
    to_fix = many - findings.tolerable
    if many == 1:
        return f"{head}; it would hold without that loss: fix it ({commonest})"
    could = f"at most {findings.tolerable} lost" if findings.tolerable else "none lost"
    return f"{head}; it would hold with {could}: fix {'all' if to_fix == many else to_fix} of them ({commonest})"


def _more(findings: Findings) -> str:
    """Say how many more replicates would settle it, at the level that the next look will have."""
    probable = _of_probabilities(findings)
    rest = [m for m in certificate(findings.measures, findings.replicates) if m.name != ERROR]
    if probable and all(m.certified for m in rest):
        return probable
    return f"{_more_for_sizes(findings)}{f'; {probable}' if probable else ''}"


def _more_for_sizes(findings: Findings) -> str:
    n, limits = findings.kept, findings.tolerance
    draws = usual_draws(findings.replicates)
    sizes = [m for m in certificate(findings.measures, findings.replicates) if m.name != ERROR]
    functions, grouped = len({m.f for m in findings.measures}), GROUP in findings.replicates.arrays
    now, later = (joint_confidence(a, functions) for a in (findings.alpha, findings.later))
    need = needed(sizes, limits, findings.later, draws)
    if not math.isfinite(need):
        return f"no number of replicates would certify it with {counted(draws or 0, 'draw')} each"
    if grouped:  # what they are worth shows in the intervals alone
        need = max(need, *(to_settle(_at_ideal(m), limits, findings.later, n, now) for m in sizes))
    if not math.isfinite(need):
        return "what would certify it cannot be told from so few groups"
    open_rows = [m for m in sizes if not m.certified]
    # Once there are enough for a calibrated procedure, it is the estimates that keep it open.
    if 2 * n >= need and open_rows:
        needs = {m: to_settle(m, limits, findings.later, n, now) for m in open_rows}
        worst = max(open_rows, key=lambda m: needs[m])
        if needs[worst] > _TOO_MANY * n:
            return _at_the_limit(worst, limits, n, wider(now, later))
        need = max(need, math.ceil(needs[worst]))
    return (
        f"about {rounded(max(int(need) - n, math.ceil(0.1 * n), 1))} more replicates"
        f"{', in new groups,' if grouped else ''} would certify a spread within {100 * limits.spread:g} %, a bias "
        f"within {limits.bias:g} sd and a coverage within "
        f"{points(100 * limits.coverage)}{_with_draws(sizes, findings, draws)}"
    )


def _at_ideal(m: Interval) -> Interval:
    """Return a size with the interval that it would have around its ideal."""
    if m.name == "spread":
        if m.estimate == 0:  # truths that lie closer together than any spread explains: no factor leads to the ideal
            return replace(m, estimate=m.ideal, low=0.0, high=math.inf)
        low, high = m.low / m.estimate, m.high / m.estimate
        return replace(m, estimate=m.ideal, low=m.ideal * low, high=m.ideal * high)
    low, high = m.low - m.estimate, m.high - m.estimate
    return replace(m, estimate=m.ideal, low=m.ideal + low, high=m.ideal + high)


def _with_draws(sizes: Sequence[Interval], findings: Findings, draws: int | None) -> str:
    """Say how many replicates would do with more draws, if they are so few that this matters."""
    if draws is None or GROUP in findings.replicates.arrays:
        return ""
    few, enough = (needed(sizes, findings.tolerance, findings.later, many) for many in (draws, _PLENTY))
    return "" if few < 1.5 * enough else f", or {rounded(int(enough))} in all with {_PLENTY} draws each"


def _at_the_limit(m: Interval, tolerance: Tolerance, n: int, wider: float) -> str:
    """Say what to do where the estimate is outside its tolerance, or so near its limit that nothing would settle it."""
    low, high = tolerance.limits(m.name, m.ideal)
    if low < m.estimate < high:
        return (
            f"{_called(m)} is so near the limit of its tolerance, {_span_of(m, low, high)}, that only a wider one "
            f"would settle it"
        )
    reach = wider / max(reached(m), 1e-3)
    more = max(math.ceil(n * (1.2 * reach) ** 2) - n, math.ceil(0.1 * n))
    return (
        f"{_called(m)} may be outside its tolerance, {_span_of(m, low, high)}: about {rounded(more)} more replicates "
        f"would show whether it is"
    )


def _called(m: Interval) -> str:
    return (
        f"the {m.name} of {m.f}" if m.name != "coverage" else f"the coverage of {percent(m.ideal)} intervals of {m.f}"
    )


def _span_of(m: Interval, low: float, high: float) -> str:
    """Return two ends in the units of a measure."""
    if m.name == "coverage":
        return f"{percents(low, high)} %"
    return span(low, high, decimals(m)) + (" sd" if m.name == "bias" else "")
