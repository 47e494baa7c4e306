"""What is wrong, by how much, which way, and what to do about it. Words only."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...statistics.effects import Interval
from ..averages import KINDS as AVERAGED
from ..column import Column, column_named
from ..data import DATA, against, local
from ..diagnosis import Diagnosis, Kind, diagnose
from ..joint import CORRELATIONS, KINDS
from ..levels import ADDED, Evidence, TestRow, levels
from ..measures import AgainstBelief, FewValues, of_few_values, region_off
from ..outcomes import outcomes_of
from ..text import counted, decimals, format_p, number, percent
from ..verdict import Tolerance
from .joint import clear_errors
from .phrases import (
    NO_FACTOR,
    factor,
    inside,
    interval,
    listed,
    misshapen,
    off,
    outlying,
    outside,
    percents,
    reached,
    span,
    that_miss,
)
from .probabilities import of_outcomes
from .verdicts import Findings, far_misses, idle, whatever

#: Part of the way to its ideal that an interval must leave for an error to be named as likely.
_LIKELY = 0.6
#: An entry of theta that is wrong at this p-value is named before functions of several entries.
_DOUBTLESS = 1e-4
#: Above this p-value it is said how often a right procedure has one as small.
_RARE = 0.01
#: A slope as near to 1 as this is not spoken of.
_SLOPE = 0.1
#: How many further test functions are described.
_DESCRIBED = 2
#: Kinds of functions of all entries: those of the default family, and joint tests. They are off if an entry is.
_OF_ENTRIES = (*ADDED, "joint", *KINDS, *AVERAGED)


def miscalibrated(findings: Findings) -> str:
    """Say what is wrong, most of all and besides; no size while what went in is in doubt."""
    rows = findings.rejecting
    if findings.suspected:
        return _in_doubt(findings)
    if not rows:
        return _jointly(findings)
    worst = min(rows, key=lambda row: (_blunt(row), row.kind in _OF_ENTRIES, not _telling(row), _strength(row)))
    head = f"{_head(worst.level, findings)}:"
    besides = f"{_others(worst, findings)}{far_misses(findings, told={row.f for row in rows})}"
    rest = f"{besides}{idle(findings)}{whatever(findings)}{_chance(findings)}"
    return f"{head} {_complaint(worst, findings)}.{rest}"


def _head(level: str, findings: Findings) -> str:
    """Return the verdict, with the level that is spoken of and a p-value that its own evidence has."""
    own = next((item.pvalue for item in findings.found if item.level == level), 0.0)
    # The p-value of the verdict may be that of another level, whose tests say less about what is wrong.
    return f"MISCALIBRATED ({level}, {format_p(max(findings.overall, own))})"


def _in_doubt(findings: Findings) -> str:
    """Say what is off, and not by how much: a factor for outputs of other truths would correct nothing."""
    rows = sorted(findings.rejecting, key=lambda row: (row.kind in _OF_ENTRIES, _strength(row)))
    level, names = rows[0].level if rows else "strong", list(dict.fromkeys(row.f for row in rows))
    what = f"{listed(names)} {'fails' if len(names) == 1 else 'fail'}" if names else "the test functions jointly fail"
    return (
        f"{_head(level, findings)}: {what} the test; by how much the procedure is off, if "
        f"it is, can be told when the inputs are right.{idle(findings)}{whatever(findings)}"
    )


def _chance(findings: Findings) -> str:
    """Say how often a right procedure looks like this, where that is not next to never."""
    return _by_chance("a calibrated procedure", findings.overall, findings)


def _by_chance(right: str, p: float, findings: Findings) -> str:
    if p <= _RARE:
        return ""
    anew = "other simulations tell" if findings.replicates.header.given else "another seed tells"
    return f" {right[0].upper()}{right[1:]} looks like this in one run of {1 / p:.0f}: {anew}."


def _strength(row: TestRow) -> tuple[bool, float, float]:
    return _blunt(row), row.adjusted, row.pvalue


def _blunt(row: TestRow) -> bool:
    return levels()[row.level].blunt


def _telling(row: TestRow) -> bool:
    """Whether the test found an entry of theta wrong beyond doubt: that is easier to act on than functions of many."""
    return row.level == "strong" and row.kind == "coordinate" and row.adjusted < _DOUBTLESS


def _jointly(findings: Findings) -> str:
    rows = [row for item in findings.found if item.level == "strong" for row in item.rows]
    head = f"{_head('strong', findings)}: the test functions jointly, no single one"
    if not rows:
        return f"{head}."
    worst = min(rows, key=_strength)
    return f"{head}; most of all, {_complaint(worst, findings)}.{idle(findings)}"


def _complaint(worst: TestRow, findings: Findings) -> str:
    return levels()[worst.level].complaint(worst, findings)


def direction(f: str, findings: Findings) -> str:
    """Say over-confident, under-confident, biased, misshapen or outlying, with the number that corrects it."""
    about = {m.name: m for m in findings.measures if m.f == f}
    column = _column(f, findings)
    if column.chains and math.isinf(about["spread"].high):
        return "is not where the chains say, and they are worth too few draws each to tell by how much"
    if found_of := outcomes_of(column):
        return of_outcomes(list(about.values()), found_of)
    if column.few_valued:
        return _few_valued(of_few_values(column))
    found = diagnose(column)
    size = _size_clauses(about, found, findings.tolerance, column.lost)
    if found.kind == "outliers":
        clauses = [f"has outliers: {outlying(found, findings.kept)}"]
    elif found.kind != "plain":
        if found.size >= found.of_fit or not size:
            # "No factor corrects that" beside a factor would contradict itself.
            alone = "" if size else NO_FACTOR
            clauses = [f"has the wrong shape: {misshapen(found, place(column, found.kind))}{alone}", *size]
        else:  # where truths are too many is then a matter of spread and bias
            clauses = [*size, f"and with that corrected, has the wrong shape: {misshapen(found, '')}"]
    else:
        clauses = size or [_likely(about) or f"has the wrong shape: {where_off(column)}"]
        clauses += [] if found.outliers is None else [that_miss(found.outliers)]
    return "; ".join([*clauses, *_covers(about.get("coverage"))]).replace("; and ", ", and ")


def _few_valued(found: FewValues | None) -> str:
    """Say of a function with few values how the probabilities that outputs give to them are off."""
    head = "takes few values, and outputs do not give them their right probabilities"
    if found is None:
        return head
    means = f"its truths are {number(found.truth, 3)} on average, the means of the outputs {number(found.output, 3)}"
    if math.isnan(found.slope) or abs(found.slope - 1) < _SLOPE:
        return f"{head}: {means}"
    sure = "too sure" if found.slope < 1 else "not sure enough"
    return f"{head}: {means}; outputs are {sure} (where they differ by 1, truths differ by {number(found.slope)})"


def _column(f: str, findings: Findings) -> Column:
    found = column_named(findings.replicates, f)
    assert found is not None
    return found


def _size_clauses(about: Mapping[str, Interval], found: Diagnosis, tolerance: Tolerance, lost: int) -> list[str]:
    """Return what spread and bias say; beside an error of shape, only if they matter."""
    spread, bias = _spread_of(about, found, lost), about.get("bias")
    spoken = [one for one in (spread, bias) if one is not None and off(one, found.kind, tolerance)]
    # Beside an error that is not tolerated, one that is is none; alone it is what the test has seen.
    errors = [one for one in spoken if not inside(one, tolerance)] or spoken
    clauses = [f"{_error(one, found)}{inside(one, tolerance)}" for one in errors]
    clauses = [f"{'and' if i else 'is'} {clause}" for i, clause in enumerate(clauses)]
    clauses += [_tolerated(one) for one in spoken if one not in errors]
    if not clauses and bias is not None and not math.isfinite(bias.estimate):
        return [f"is {': '.join(outside(bias))}"]
    return clauses or (_by_coverage(about.get("coverage")) if lost else [])


def _error(m: Interval, found: Diagnosis) -> str:
    """Say of a spread or a bias what it is and what corrects it."""
    if m.name == "spread":
        return f"{_confidence(m)}: {factor(m, found, whose='its')}"
    return f"biased: outputs lie {interval(m, absolute=True)} of their sd {_side(m)} the truth"


def _tolerated(m: Interval) -> str:
    what = f"a spread factor of {interval(m)}" if m.name == "spread" else f"a bias of {interval(m, absolute=True)} sd"
    return f"{what} is inside the tolerance"


def _by_coverage(coverage: Interval | None) -> list[str]:
    """Return the direction that intervals show whatever the lost outputs would have been, which leave no factor."""
    if coverage is None or not coverage.clear:
        return []
    which, size = ("under-confident", "wide") if coverage.low > coverage.ideal else ("over-confident", "narrow")
    return [f"is {which}: its intervals are too {size}, by which factor the lost outputs leave open"]


def _spread_of(about: Mapping[str, Interval], found: Diagnosis, lost: int) -> Interval | None:
    """Return the measured spread, or that of the diagnosis if only it has a bound, as where all scores are equal."""
    spread = about.get("spread")
    # With losses the spread has no upper end, and one that the others suggest could be turned round by one of them.
    unbounded = spread is not None and spread.high == math.inf and not lost
    return found.fit.spread if unbounded and found.fit.spread.high < math.inf else spread


def _confidence(spread: Interval) -> str:
    return "over-confident" if spread.estimate > 1 else "under-confident"


def _side(bias: Interval) -> str:
    return "below" if bias.estimate > 0 else "above"


def _likely(about: Mapping[str, Interval]) -> str:
    """Name the error that is most likely where no interval excludes its ideal; nothing if none is."""
    signs = {name: reached(about[name]) for name in ("spread", "bias") if name in about}
    name = max(signs, key=lambda one: signs[one], default="")
    if not name or signs[name] < _LIKELY:
        return ""
    m = about[name]
    if name == "spread":
        return f"seems {_confidence(m)}: its reported sd times {interval(m)} would be right"
    ends = sorted(math.copysign(1.0, m.estimate) * end for end in (m.low, m.high))
    size = f"{number(abs(m.estimate), decimals(m))} ({span(ends[0], ends[1], decimals(m))})"
    return f"seems biased: outputs lie {size} of their sd {_side(m)} the truth"


def _covers(coverage: Interval | None) -> list[str]:
    # That intervals contain the truth as often as they say is no finding.
    if coverage is None or not math.isfinite(coverage.estimate) or coverage.low <= coverage.ideal <= coverage.high:
        return []
    return [f"nominal {percent(coverage.ideal)} intervals contain the truth {percent(coverage.estimate)} of the time"]


def _others(worst: TestRow, findings: Findings) -> str:
    """Say which other test functions are off, the first few with the direction."""
    told = _OF_ENTRIES if worst.kind in ("coordinate", *KINDS) else ()
    rows = [
        row
        for row in sorted(findings.rejecting, key=_strength)
        if row.f != worst.f and (row.kind not in told or (row.kind == CORRELATIONS and clear_errors(findings)))
    ]
    names = list(dict.fromkeys(row.f for row in rows))
    if not names:
        return ""
    tags = [_tagged(name, findings) for name in names[:_DESCRIBED]]
    return f" Also off: {listed([*tags, *names[_DESCRIBED:]])}."


def _tagged(f: str, findings: Findings) -> str:
    row = next(row for row in findings.rejecting if row.f == f)
    if row.kind == CORRELATIONS and (clear := clear_errors(findings)):
        return f"the correlation of {clear[0].f} ({'too low' if clear[0].estimate < 0 else 'too high'})"
    column = column_named(findings.replicates, f)
    if column is None or column.sees != "theta" or row.level != "strong":
        return f"{f} ({row.level})"
    if outcomes_of(column):
        return f
    about = {m.name: m for m in findings.measures if m.f == f}
    found = diagnose(column)
    plain = found.kind == "plain"
    sizes = (_spread_of(about, found, column.lost), about.get("bias"))
    spoken = [one for one in sizes if plain and one is not None and off(one, found.kind, findings.tolerance)]
    if spoken:
        first = min(spoken, key=lambda one: bool(inside(one, findings.tolerance)))  # the spread if both are errors
        return f"{f} ({_tag(first, found)}{inside(first, findings.tolerance)})"
    return f if plain else f"{f} ({'outliers' if found.kind == 'outliers' else 'wrong shape'})"


def _tag(m: Interval, found: Diagnosis) -> str:
    if m.name == "spread":
        size = found.errors if math.isfinite(found.errors) else m.estimate
        return f"{_confidence(m)}, sd times {number(size)}"
    return f"biased, {number(abs(m.estimate))} sd {_side(m)} the truth"


# The other levels.


def of_regions(worst: TestRow, findings: Findings) -> str:
    """Say how often regions that the output itself gives contain the truth."""
    column = _column(worst.f, findings)
    asked = any(item.level == "strong" for item in findings.found)
    shown = any(row.level == "strong" for row in findings.rejecting)
    hint = "; no test function alone shows it, so look at correlations and joint shape" if asked and not shown else ""
    found = region_off(column, findings.alpha)
    if found is None:
        return f"given its own output, the truth does not follow it: {worst.f}, {where_off(column)}{hint}"
    size, way = ("small", "over-confident") if found.share < found.nominal else ("large", "under-confident")
    return (
        f"{_region(column)} that claim {percent(found.nominal)} contain the truth {percent(found.share)} "
        f"({percents(found.low, found.high)}) of the time: jointly {way}, they are too {size}{hint}"
    )


def _region(column: Column) -> str:
    names = {"log density": "highest-density regions", "mahalanobis": "the output's ellipsoids"}
    return names.get(column.kind, f"regions of high {column.name}")


def of_belief(worst: TestRow, findings: Findings) -> str:
    """Say how the outputs, averaged over data, differ from the belief, and what that means."""
    check = "make sure that the procedure uses the belief that truths are drawn from"
    column = None if worst.kind == "joint" else column_named(findings.replicates, worst.f)
    if column is None:
        return (
            "averaged over data, the outputs do not return the belief: all coordinates together, so look at "
            f"correlations between them; {check}"
        )
    against = AgainstBelief(column)
    if against.outside:
        draws = counted(findings.kept, "output")
        return f"{against.outside} of {draws} gave a draw of {worst.f} where the belief has no probability; {check}"
    fit = against.fit(1 - findings.alpha)
    clauses = [] if fit is None else [*_width_of(fit.spread), *_place_of(fit.bias)]
    size = next((m for m in findings.measures if (m.f, m.name) == (worst.f, "weak KS distance")), None)
    if not clauses:
        how = f" (Kolmogorov distance {interval(size)})" if size else ""
        clauses = [f"have another shape than the belief{how}"]
    return f"averaged over data, the outputs for {worst.f} {' and '.join(clauses)}; {check}"


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


def exactness(exact: Evidence, findings: Findings) -> str:
    """Say whether anything speaks against the exact posterior."""
    worst = min(exact.rows, key=lambda row: row.adjusted)
    if exact.pvalue <= findings.alpha and worst.kind == DATA:
        said = _along_data(findings)
    elif exact.pvalue <= findings.alpha:
        off_at = where_off(_column(worst.f, findings))
        said = f"{worst.f} sees data that the output does not use, or uses wrongly: {off_at}"
    else:
        return f"Exact posterior: nothing found against it ({format_p(exact.pvalue)})."
    chance = _by_chance("an exact posterior", exact.pvalue, findings)
    return f"NOT THE EXACT POSTERIOR (exact, {format_p(exact.pvalue)}): {said}.{chance}"


def _along_data(findings: Findings) -> str:
    """Say how outputs change along a summary of the data, and by how much where that is clear."""
    found = against(findings.replicates)
    assert found is not None
    f, summary = found.columns[found.tested.column].name, found.names[found.tested.summary]
    slope = local(findings.replicates, f, summary, confidence=1 - findings.alpha).slope
    if found.tested.kind == "location" and not slope[1] <= 0 <= slope[2]:
        way, ends = "low" if slope[0] > 0 else "high", sorted(map(abs, slope[1:]))
        return (
            f"outputs for {f} are too {way} when {summary} is high, by {number(abs(slope[0]))} "
            f"({number(ends[0])}-{number(ends[1])}) of their sd for each sd of it"
        )
    if found.tested.kind == "spread":
        return f"outputs for {f} are too {'narrow' if found.tested.statistic > 0 else 'wide'} when {summary} is high"
    return f"where the truth falls in the outputs for {f} is not uniform given {summary}"


# Where in the outputs truths are too many or too few.


def where_off(column: Column) -> str:
    """Say in which fifth of the output truths are too many or too few."""
    share = column.fifths.tolist()
    j = max(range(5), key=lambda i: abs(share[i] - 0.2))
    word = "many" if share[j] > 0.2 else "few"
    return f"too {word} truths ({percent(share[j])}, not 20 %) {_fifth(j)}"


def place(column: Column, kind: Kind) -> str:
    """Say where a shape of a kind shows: in the middle fifth, in the tails, or in the fifth that is most off."""
    share = column.fifths.tolist()
    if kind == "flat":
        outside = column.far_share
        return f"{percent(outside)} of them, not 5 %, outside 95 % intervals" if outside < 0.05 else ""
    middle = {"uneven": share[2] > 0.2, "two-sided": share[2] < 0.2}.get(kind, False)
    j = 2 if middle else max(range(5), key=lambda i: abs(share[i] - 0.2))
    return f"{percent(share[j])} of them, not 20 %, {_fifth(j)}"


def _fifth(j: int) -> str:
    return f"between the {20 * j} % and {20 * (j + 1)} % points of the output"
