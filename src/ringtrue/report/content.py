"""What the page says: rankings, advice, blind spots, tables, as plain text and numbers.

Knows results; knows neither HTML nor pictures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..export import LEVELS
from ..replicates import Failure, Replicates
from ..results import MeasureRow, Result, TestRow, Verdict, decimals

#: Test functions that get pictures.
PICTURED = 6
#: Rows of a table that are shown at once; the others are folded away.
ROWS = 12
#: Causes of failures that are shown.
CAUSES = 20
_NAME, _ERROR, _TRACEBACK = 120, 500, 8000

_UNTESTED = {
    "exact": "whether the outputs are the exact posterior: add a test function of theta and y",
    "auto": "whether the outputs are right among the data that led to the same output: add a test function that "
    "sees the output, such as ringtrue.LogDensity()",
    "strong": "whether the truth falls where the outputs say, on average over data: add a test function of theta",
    "reversible": "whether truth and output can be exchanged: ringtrue has no test of it yet",
    "weak": "whether the outputs, averaged over data, return the belief: pass the belief, and outputs that can be "
    "sampled",
}


@dataclass(frozen=True)
class Cell:
    """A number with its interval, and whether it is in tolerance."""

    estimate: str
    interval: str
    within: str


@dataclass(frozen=True)
class Cause:
    """Failures with one message."""

    cause: str
    count: int
    replicate: int
    replay: str
    traceback: str


def short(text: str, most: int = _NAME) -> str:
    """Return the beginning of a text that is too long to show.

    Examples
    --------
    >>> short("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def ranked(result: Result) -> list[int]:
    """Return the columns of the replicates by evidence, most first."""
    strength: dict[str, tuple[float, float]] = {}
    for row in result.tests:
        strength[row.f] = min(strength.get(row.f, (math.inf, math.inf)), (row.adjusted, row.pvalue))
    columns = result.replicates.columns
    return sorted(range(len(columns)), key=lambda k: strength.get(columns[k].name, (math.inf, math.inf)))


def advice(result: Result) -> list[str]:
    """Return what a person should do next, most urgent first."""
    return [*_by_verdict(result), *_on_failures(result.replicates)]


def _by_verdict(result: Result) -> Iterator[str]:
    if result.verdict is Verdict.WITHIN_TOLERANCE:
        yield (
            "Nothing needs mending in the test functions asked about. To keep it so, put "
            "result.assert_calibrated() into the tests of the procedure."
        )
        yield "Calibrated does not mean useful: look at how narrow the outputs are before relying on them."
    elif result.verdict is Verdict.INCONCLUSIVE:
        yield "Do not read this as a pass: the run could not settle the question either way."
        if not result.replicates.failures:
            yield "Add replicates as the sentence says; with a store, the same call computes only what is missing."
    else:
        yield from _mends(result)
        yield (
            "After mending the procedure, check it with another seed: the replicates that suggested a mend cannot "
            "confirm it."
        )


def _mends(result: Result) -> Iterator[str]:
    """Name the factor or the shift that would mend each of the worst test functions."""
    measures = by_function(result.measures)
    names = [result.replicates.columns[k].name for k in ranked(result)]
    mends = [line for name in names for line in _mend(name, measures.get(name, {}))]
    yield from mends[:PICTURED]
    if len(mends) > PICTURED:
        yield f"{len(mends) - PICTURED} further mends are in the table of measures."
    found = {row.level for row in result.tests if row.adjusted <= result.alpha}
    if not mends and "strong" in found:
        yield "The error is one of shape, which no factor mends: the pictures below show where it is."
    if "weak" in found:
        yield "Make sure that the procedure uses the same belief that the truths are drawn from."
    if "auto" in found:
        yield "Look at the data that lead to similar outputs: the outputs are right on average and wrong among those."


def _mend(name: str, about: Mapping[str, MeasureRow]) -> Iterator[str]:
    spread, bias = about.get("spread"), about.get("bias")
    if spread is not None and not spread.low <= 1 <= spread.high:
        why = "find the uncertainty it leaves out" if spread.low > 1 else "find the uncertainty it counts twice"
        yield f"Multiply the sd reported for {short(name)} by {said(spread)}, or {why}."
    if bias is not None and not bias.low <= 0 <= bias.high:
        way = "up" if bias.low > 0 else "down"
        yield f"Move the outputs for {short(name)} {way} by {said(bias)} of their sd, or find what pulls them."


def _on_failures(replicates: Replicates) -> Iterator[str]:
    if replicates.failures:
        _, many, one = replicates.causes()[0]
        yield (
            f"Mend the failures: {len(replicates.failures)} of {replicates.n} replicates were lost, and the verdict "
            f"must hold whatever they would have been. The commonest cause ({many}) is replayed by {one.replay}."
        )


def blind_spots(result: Result) -> list[str]:
    """Return what this run could not have seen."""
    return [
        *_resolution(result),
        *_draws(result.replicates),
        *_lost(result.replicates),
        f"Errors in functions of theta other than the {_many(len(result.replicates.columns), 'test function')} "
        f"asked about.",
        "Errors at one particular truth or dataset that cancel on average over the belief.",
        *(f"Level {level}, not tested: {_UNTESTED[level]}." for level in LEVELS if level not in result.levels),
        *result.notes,
    ]


def _resolution(result: Result) -> Iterator[str]:
    seen = result.resolution
    if math.isfinite(seen.bias):
        yield (
            f"Small errors: a spread factor between {_figure(seen.under_confident)} and "
            f"{_figure(seen.over_confident)}, or a bias below {_figure(seen.bias)} sd, is missed more often than one "
            f"time in five."
        )
    else:
        yield (
            "How small an error this run would have seen is not known: it is computed for the default test, test "
            "functions of theta alone and runs without lost replicates."
        )


def _draws(replicates: Replicates) -> Iterator[str]:
    fewest = replicates.fewest_draws()
    if fewest:
        yield f"Tails beyond 1 in {fewest + 1}: an output was known by as few as {_many(fewest, 'draw')}."


def _lost(replicates: Replicates) -> Iterator[str]:
    if replicates.failures:
        yield (
            f"What the {_many(len(replicates.failures), 'lost replicate')} would have shown; p-values and intervals "
            f"take the worst case."
        )


def by_function(rows: Sequence[MeasureRow]) -> dict[str, dict[str, MeasureRow]]:
    """Return measures by test function and name, in their order."""
    found: dict[str, dict[str, MeasureRow]] = {}
    for row in rows:
        found.setdefault(row.f, {})[row.name] = row
    return found


def cells(result: Result) -> tuple[list[tuple[str, float]], list[tuple[str, list[Cell | None]]]]:
    """Return the table of measures: (name, ideal) of its columns, and one row per test function, worst first."""
    found = by_function(result.measures)
    heads = list({row.name: row.ideal for row in result.measures}.items())
    order = [result.replicates.columns[k].name for k in ranked(result)]
    rows = [
        (name, [_cell(found[name][head]) if head in found[name] else None for head, _ in heads])
        for name in sorted(found, key=lambda name: order.index(name) if name in order else -1)
    ]
    return heads, rows


def _cell(row: MeasureRow) -> Cell:
    digits = decimals(row)
    interval = f"{_fixed(row.low, digits)} to {_fixed(row.high, digits)}"
    return Cell(_fixed(row.estimate, digits), interval, row.within)


def tests(result: Result) -> list[TestRow]:
    """Return the tests by evidence, most first."""
    return sorted(result.tests, key=lambda row: (row.adjusted, row.pvalue))


def causes(replicates: Replicates) -> tuple[list[Cause], int]:
    """Return the failures by cause with one traceback each, and how many failures have further causes."""
    every = replicates.causes()
    shown = [
        Cause(short(cause, _ERROR), many, one.replicate, one.replay, _ends(one)) for cause, many, one in every[:CAUSES]
    ]
    return shown, sum(many for _, many, _ in every[CAUSES:])


def _ends(failure: Failure) -> str:
    """Return a traceback, of a very long one the two ends: where it started, and what happened."""
    text, half = failure.traceback or failure.error, _TRACEBACK // 2
    return text if len(text) <= _TRACEBACK else f"{text[:half]}\n…\n{text[-half:]}"


def said(row: MeasureRow) -> str:
    """Return the size of a measure with its interval."""
    digits = decimals(row)
    low, high = sorted((abs(row.low), abs(row.high))) if row.ideal == 0 else (row.low, row.high)
    estimate = abs(row.estimate) if row.ideal == 0 else row.estimate
    return f"{_fixed(estimate, digits)} ({_fixed(low, digits)} to {_fixed(high, digits)})"


def _fixed(x: float, digits: int) -> str:
    if math.isnan(x):
        return "unknown"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    return f"{x:.{digits}f}".replace("-", "−")


def _figure(x: float) -> str:
    return f"{x:.3g}" if math.isfinite(x) else "any size"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
