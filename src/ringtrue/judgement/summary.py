"""A result in short: which test function is worst, and one line for each.

The order is that of the printed lines, of the report and of all pictures. It reads what a result has and computes no
statistics.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..functions import ALL
from ..statistics.effects import Interval
from .levels import ADDED, Evidence, level_of, levels
from .outcomes import ERROR
from .sentences.phrases import percents, share_of, span
from .text import cell, counted, cut, decimals, number, table, width
from .verdict import Tolerance

if TYPE_CHECKING:
    from .result import Result

#: Test functions that have a line; the others are in the details.
SHOWN = 10
#: Columns of text that a table has at most, and that the names in it have at least.
_WIDE, _NARROW = 100, 9
#: Decimals that a line has of a size; the details have those that it deserves.
_DIGITS = 3
#: Sizes in a line, by the head of their column: of positions, and of the probabilities of labels. A test function of
#: the default family is called "distance", so that no column is.
_POSITIONS = {"spread": "spread", "bias": "bias", "coverage": "coverage", "KS distance": "KS"}
_PROBABILITIES = {"log odds slope": "log odds slope", "log odds shift": "log odds shift", ERROR: ERROR}
#: What says how far off a test function is, of its positions and of the outputs averaged over data.
_SIZES = ("KS distance", "weak KS distance")
#: Errors of other kinds that are named.
_NAMED = 3
#: What a result in short ends with.
MORE = "Every test and measure: result.details()."
_MARKS = {"no": "!", "open": "?"}


def worst_first(result: Result, columns: Iterable[int], by: Sequence[str] = ()) -> list[int]:
    """Return columns of the replicates in the order of how bad they are.

    The smaller its adjusted p-value, the worse a test function is; at equal p-values the one that is farther off.
    Entries of theta and functions of the user's that are rejected come before the sum and the distance of the default
    family, which are off because an entry is.

    Parameters
    ----------
    result
        With the p-values and sizes.
    columns
        Their numbers.
    by
        Names of the levels whose p-values count; left out, the level that each test function speaks of itself.
    """
    functions = result.replicates.functions
    evidence = {(row.level, row.f): (row.adjusted, row.pvalue) for row in result.tests}
    sizes = {(m.f, m.name): m.estimate for m in result.measures if m.name in _SIZES}

    def badness(k: int) -> tuple[bool, float, bool, float, float]:
        name, of_entries = functions[k].name, functions[k].kind in ADDED
        p, alone = min(evidence.get((level, name), (1.0, 1.0)) for level in by or [level_of(functions[k].sees)])
        size = max(sizes.get((name, measure), 0.0) for measure in _SIZES)
        # Rejected and no function of all entries first. Adjusted p-values are often tied at 1, and both at 0.
        return of_entries or p > result.spent, p, of_entries, alone, -size

    return sorted(columns, key=badness)


def ranked(result: Result) -> list[int]:
    """Return all columns of the replicates by evidence at any level, most first."""
    return worst_first(result, range(len(result.replicates.functions)), tuple(levels()))


def place(result: Result, f: str) -> int:
    """Return how many test functions are worse than one."""
    names = [result.replicates.functions[k].name for k in ranked(result)]
    return names.index(f)


def by_function(rows: Iterable[Interval]) -> dict[str, dict[str, Interval]]:
    """Return measures by test function and name, in their order."""
    found: dict[str, dict[str, Interval]] = {}
    for row in rows:
        found.setdefault(row.f, {})[row.name] = row
    return found


def sizes_worst_first(result: Result) -> list[tuple[str, dict[str, Interval]]]:
    """Return the measures of every test function, worst first, and behind them those of several together."""
    found = by_function(m for m in result.measures if m.f != ALL)
    names = [name for k in ranked(result) if (name := result.replicates.functions[k].name) in found]
    # Pairs of entries and the like are no test functions; they stand in the order of the measures.
    return [(name, found[name]) for name in dict.fromkeys([*names, *found])]


def summary(result: Result) -> str:
    """Return one line per test function, what else is off, and the p-values of the levels."""
    every = sizes_worst_first(result)
    tables = [_lines(every, heads, result.tolerance) for heads in (_POSITIONS, _PROBABILITIES)]
    shown = [one for one in tables if one]
    key = [_key(result.spent, " and at all looks" if result.look.anytime else "")] if shown else []
    return "\n".join([*shown, *key, *_also(result), _by_level(result)])


def outcome_lines(measures: Iterable[Interval], tolerance: Tolerance, alpha: float) -> str:
    """Return one line per outcome with the sizes of its probabilities, the largest error first."""
    found = by_function(measures)
    order = sorted(found, key=lambda name: -found[name][ERROR].estimate)
    return f"{_lines([(name, found[name]) for name in order], _PROBABILITIES, tolerance, of='of')}\n{_key(alpha)}"


def _key(alpha: float, looks: str = "") -> str:
    sure = f"{100 * (1 - alpha):g} % intervals, all together{looks}"
    return _wrapped(
        f"! outside, with an interval that leaves out the ideal; ? open; no mark: in tolerance, by a narrower interval "
        f"of its own. {sure}."
    )


def _lines(
    every: Sequence[tuple[str, Mapping[str, Interval]]],
    heads: Mapping[str, str],
    tolerance: Tolerance,
    *,
    of: str = "function",
) -> str:
    """Return the table of those that have all of these sizes; nothing if none has."""
    rows = [(name, [sizes[head] for head in heads]) for name, sizes in every if heads.keys() <= sizes.keys()]
    if not rows:
        return ""
    shown = rows[:SHOWN]
    limits = ["tolerated", *(_limits([sizes[j] for _, sizes in shown], tolerance) for j in range(len(heads)))]
    written = [(name or "outcome", *map(_marked, sizes)) for name, sizes in shown]
    filled = [(of, *heads.values()), tuple(limits), *written]
    others = sum(2 + max(width(row[j]) for row in filled) for j in range(1, len(heads) + 1))
    fitted = [(cut(row[0], max(_WIDE - others, _NARROW)), *row[1:]) for row in filled]
    more = len(rows) - len(shown)
    return table(fitted, heads=2) + (f"\nand {more} more: result.details()" if more else "")


def _marked(m: Interval) -> str:
    """Return a size with its interval, and a mark if it is not shown to be in tolerance."""
    return f"{said(m)}{_MARKS.get(m.shown, '')}"


def said(m: Interval) -> str:
    """Return a size with its interval, short enough for a line of several."""
    if math.isnan(m.estimate):
        return "unknown"
    digits = min(decimals(m), _DIGITS)
    if m.name != "coverage":
        return f"{number(m.estimate, digits)} ({span(m.low, m.high, digits)})"
    # Of shares near 0 or 1 percentages have decimals of their own.
    fine = decimals(m) > _DIGITS and 0.02 < m.low <= m.high < 0.98
    return f"{100 * m.estimate:.1f} % ({100 * m.low:.1f}-{100 * m.high:.1f})" if fine else share_of(m)


def _limits(column: Sequence[Interval], tolerance: Tolerance) -> str:
    """Return what is tolerated of a size."""
    ideals = {m.ideal for m in column}
    if all(m.within == "-" for m in column):
        return "-"
    if len(ideals) > 1:  # of coverage, where draws differ in number
        return f"+- {100 * tolerance.coverage:g} points"
    low, high = tolerance.limits(column[0].name, ideals.pop())
    if column[0].name == "coverage":
        return f"{percents(max(low, 0.0), min(high, 1.0))} %"
    return span(low, high, 2) if math.isfinite(low) else f"up to {high:g}"


def _also(result: Result) -> list[str]:
    """Name errors that the lines do not show: of correlations, of all entries at once, averaged over data."""
    off = [m for m in result.measures if m.shown == "no" and not _has_line(m, result)]
    if not off:
        return []
    off.sort(key=lambda m: -_tolerances(m, result.tolerance))
    named = [f"{m.f}: {m.name.removesuffix(' distance')} {said(m)}" for m in off[:_NAMED]]
    rest = f"; and {counted(len(off) - _NAMED, 'other')}" if len(off) > _NAMED else ""
    return [_wrapped(f"Also outside: {'; '.join(named)}{rest}.")]


def _has_line(m: Interval, result: Result) -> bool:
    return m.name in {**_POSITIONS, **_PROBABILITIES} and any(m.f == one.name for one in result.replicates.functions)


def _tolerances(m: Interval, tolerance: Tolerance) -> float:
    """Return how many times what is tolerated an error is."""
    return abs(m.estimate - m.ideal) / (tolerance.limits(m.name, m.ideal)[1] - m.ideal)


def _by_level(result: Result) -> str:
    """Return the p-value of every level that was tested, and the test function with the smallest of its own."""
    counted_in = [_evidence(one) for one in result.levels.values() if levels()[one.level].share is not None]
    others = [_evidence(one) for one in result.levels.values() if levels()[one.level].share is None]
    beside = f"not part of the verdict: {', '.join(others)}" if others else ""
    return _wrapped("; ".join(part for part in (f"p by level: {', '.join(counted_in)}", beside) if part))


def _evidence(found: Evidence) -> str:
    worst = min(found.rows, key=lambda row: (row.adjusted, row.kind in ADDED, row.pvalue))
    return f"{found.level} {cell(found.pvalue)} ({worst.f})"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDE, break_long_words=False, break_on_hyphens=False)
