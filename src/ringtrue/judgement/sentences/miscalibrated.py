"""What is wrong, by how much, which way, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...statistics.effects import Interval
from ..diagnosis import Diagnosis, diagnose
from ..result import TestRow, Tolerance, decimals, format_p, number, percent
from .findings import Findings
from .misses import far_misses, whatever
from .otherlevels import of_belief, of_regions
from .phrases import factor, interval, listed, misshapen, off, outlying, outside, reached, span, that_miss
from .places import column_of, place, where_off
from .use import idle

#: Part of the way to its ideal that an interval must leave for an error to be named as likely.
_LIKELY = 0.6
#: An entry of theta that is wrong at this p-value is named before functions of several entries.
_DOUBTLESS = 1e-4
#: How many further test functions are described.
_DESCRIBED = 2
#: Functions of all entries in the default family, and the joint weak test: off if an entry is.
_OF_ENTRIES = ("distance", "sum", "all coordinates")


def miscalibrated(findings: Findings) -> str:
    """Say what is wrong, most of all and besides."""
    rows = findings.rejecting
    if not rows:
        return _jointly(findings)
    worst = min(rows, key=lambda row: (row.level == "weak", not _telling(row, findings), _strength(row)))
    own = next(item.pvalue for item in findings.found if item.level == worst.level)
    # The p-value of the verdict may be that of another level, whose tests say less about what is wrong.
    head = f"MISCALIBRATED ({worst.level}, {format_p(max(findings.overall, own))}):"
    besides = f"{_others(worst, findings)}{far_misses(findings, told={row.f for row in rows})}"
    return f"{head} {_complaint(worst, findings)}.{besides}{idle(findings)}{whatever(findings)}"


def _strength(row: TestRow) -> tuple[bool, float, float]:
    return row.level == "weak", row.adjusted, row.pvalue


def _telling(row: TestRow, findings: Findings) -> bool:
    """Whether the test found an entry of theta wrong beyond doubt: that is easier to act on than functions of many."""
    entries = {column.name for column in findings.replicates.columns if column.coordinate}
    return row.level == "strong" and row.f in entries and row.adjusted < _DOUBTLESS


def _jointly(findings: Findings) -> str:
    rows = [row for item in findings.found if item.level == "strong" for row in item.rows]
    head = f"MISCALIBRATED (strong, {format_p(findings.overall)}): the test functions jointly, no single one"
    if not rows:
        return f"{head}."
    worst = min(rows, key=_strength)
    return f"{head}; most of all, {_complaint(worst, findings)}.{idle(findings)}"


def _complaint(worst: TestRow, findings: Findings) -> str:
    if worst.level == "weak":
        return of_belief(worst, findings)
    if worst.level == "auto":
        return of_regions(worst, findings)
    about = {m.name: m for m in findings.measures if m.f == worst.f}
    return f"{worst.f} {_direction(worst.f, about, findings)}"


def _direction(f: str, about: Mapping[str, Interval], findings: Findings) -> str:
    """Say over-confident, under-confident, biased, misshapen or outlying, with the number that mends it."""
    ran = findings.replicates
    found = diagnose(ran, column_of(ran, f))
    size = _size_clauses(about, found, findings.tolerance)
    if found.kind == "outliers":
        clauses = [f"has outliers: {outlying(found, ran.n - len(ran.failures))}"]
    elif found.kind != "plain":
        if found.size >= _divergence(found) or not size:
            clauses = [f"has the wrong shape: {misshapen(found, place(ran, f, found.kind))}", *size]
        else:  # where truths are too many is then a matter of spread and bias
            clauses = [*size, f"and that mended, has the wrong shape: {misshapen(found, '')}"]
    else:
        clauses = size or [_likely(about) or f"has the wrong shape: {where_off(ran, f)}"]
        clauses += [] if found.outliers is None else [that_miss(found.outliers)]
    return "; ".join([*clauses, *_covers(about.get("coverage"))]).replace("; and ", ", and ")


def _divergence(found: Diagnosis) -> float:
    """Return how much of the divergence from calibration is that of spread and bias."""
    s, b = found.fit.spread.estimate, found.fit.bias.estimate
    return (s * s - 1) / 2 - math.log(s) + b * b / 2 if math.isfinite(s) and math.isfinite(b) else math.inf


def _size_clauses(about: Mapping[str, Interval], found: Diagnosis, tolerance: Tolerance) -> list[str]:
    """Return what spread and bias say; beside an error of shape, only if they matter."""
    spread, bias = _spread_of(about, found), about.get("bias")
    clauses = []
    if spread is not None and off(spread, found.kind, tolerance):
        clauses.append(f"is {_confidence(spread)}: {factor(spread, found, whose='its')}")
    if bias is not None and off(bias, found.kind, tolerance):
        head = "and biased" if clauses else "is biased"
        clauses.append(f"{head}: outputs lie {interval(bias, absolute=True)} of their sd {_side(bias)} the truth")
    if not clauses and bias is not None and not math.isfinite(bias.estimate):
        return [f"is {': '.join(outside(bias))}"]
    return clauses


def _spread_of(about: Mapping[str, Interval], found: Diagnosis) -> Interval | None:
    """Return the measured spread, or that of the diagnosis if only it has a bound, as where all scores are equal."""
    spread = about.get("spread")
    return found.fit.spread if spread is not None and found.fit.spread.high < spread.high == math.inf else spread


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
    if coverage is None or not math.isfinite(coverage.estimate):
        return []
    return [f"nominal {percent(coverage.ideal)} intervals contain the truth {percent(coverage.estimate)} of the time"]


def _others(worst: TestRow, findings: Findings) -> str:
    """Say which other test functions are off, the first few with the direction."""
    entries = {column.name for column in findings.replicates.columns if column.coordinate}
    told = {worst.f, *(_OF_ENTRIES if worst.f in entries else ())}
    names = list(dict.fromkeys(row.f for row in sorted(findings.rejecting, key=_strength) if row.f not in told))
    if not names:
        return ""
    tags = [_tagged(name, findings) for name in names[:_DESCRIBED]]
    return f" Also off: {listed([*tags, *names[_DESCRIBED:]])}."


def _tagged(f: str, findings: Findings) -> str:
    columns = [k for k, c in enumerate(findings.replicates.columns) if (c.name, c.level) == (f, "strong")]
    row = next((row for row in findings.rejecting if row.f == f), None)
    if not columns or row is None or row.level != "strong":
        return f if row is None else f"{f} ({row.level})"
    about = {m.name: m for m in findings.measures if m.f == f}
    found = diagnose(findings.replicates, columns[0])
    plain = found.kind == "plain"
    spread, bias = _spread_of(about, found), about.get("bias")
    if plain and spread is not None and off(spread, found.kind, findings.tolerance):
        size = found.errors if math.isfinite(found.errors) else spread.estimate
        return f"{f} ({_confidence(spread)}, sd times {number(size)})"
    if plain and bias is not None and off(bias, found.kind, findings.tolerance):
        return f"{f} (biased, {number(abs(bias.estimate))} sd {_side(bias)} the truth)"
    return f if plain else f"{f} ({'outliers' if found.kind == 'outliers' else 'wrong shape'})"
