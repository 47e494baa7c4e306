"""What the page says: rankings, advice, blind spots, tables, as plain text and numbers.

Knows results; knows neither HTML nor pictures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..export import clean
from ..functions import ALL
from ..judgement.column import columns_of
from ..judgement.diagnosis import diagnose
from ..judgement.fits import Line
from ..judgement.joint import KINDS
from ..judgement.judging import fewest_draws
from ..judgement.levels import ADDED, TestRow, chain
from ..judgement.measures import Measures, measure, over_family
from ..judgement.outcomes import outcomes_of
from ..judgement.result import Result
from ..judgement.sentences import phrases as wording
from ..judgement.sentences.probabilities import of_outcomes
from ..judgement.summary import by_function, ranked, sizes_worst_first
from ..judgement.text import decimals, number
from ..judgement.verdict import Verdict
from ..replicates.record import Failure, Replicates
from ..statistics.effects import Interval

#: Test functions that get pictures.
PICTURED = 6
#: Rows of a table that are shown at once; the others are folded away.
ROWS = 12
#: Rows of a table that are printed; the others of a longer one stay folded on paper too.
PRINTED = 60
#: Replicates that every measure is computed from; more would cost seconds and change the second figure.
ENOUGH = 10_000
#: Test functions that they are computed of.
FUNCTIONS = 50
#: Causes of failures that are shown.
CAUSES = 20
_NAME, _ERROR, _TRACEBACK = 120, 500, 8000

#: What each measure says, in the order of the table.
MEANINGS = {
    "spread": "what the reported sd should be multiplied by",
    "bias": "how far the truth lies above the outputs, in reported sds",
    "coverage": "share of central 90 % intervals, or the nearest that draws allow, that contain the truth",
    "log odds slope": "what log odds should be multiplied by; below 1 is too sure",
    "log odds shift": "what should be added to log odds",
    "calibration error": "how far probabilities are off on average; the upper end is that of groups of similar ones",
    "KS distance": "largest error of a one-sided probability",
    "W1 distance": "the same, averaged over all levels",
    "CvM distance": "the same, squared before averaging",
    "KL divergence": "the log score, in nats, that the right spread and bias would gain",
    "variance of u": "times 12; above 1 is over-confident, below 1 under-confident",
    "contraction": "share of the belief's variance that the data removed",
    "skill": "improvement on the belief in continuous ranked probability score",
    "interval skill": "improvement on the belief in interval score",
    "correlation": "of the output's mean with the truth",
    "weak KS distance": "between the outputs averaged over data and the belief",
    "weak correlation error": "of the rank correlation of two entries that may be off by most, averaged over data",
    "largest |log spread|": "over the test functions, with an interval that holds for all of them",
    "largest |bias|": "the same of the bias",
    "largest KS distance": "the same of the KS distance",
    "energy skill": "improvement on the belief in energy score, for all entries of theta together",
    "ANEES/d": "squared error in units of the reported covariance",
    "NCI (dB)": "the same as a mean logarithm; 10 is a variance ten times too small",
}


#: Control characters but tab and line end; marks, embeddings, overrides and isolates of Unicode's bidirectional
#: algorithm; separators of lines and paragraphs; and a mark that has no width.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


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
    replay: str | None
    traceback: str


@dataclass(frozen=True)
class Fits:
    """A diagnostic of single fits: its range, how many have it, its limit, and how many are beyond."""

    name: str
    numbers: tuple[str, ...]
    known: int
    limit: str
    flagged: str


def short(text: str, most: int = _NAME) -> str:
    """Return the beginning of a text that is too long to show.

    Examples
    --------
    >>> short("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def spelled(text: str) -> str:
    r"""Return text in which letters that nobody sees, or that no file can hold, are spelled out.

    Otherwise the name of one test function could reverse a verdict, and two names could look the same.

    Examples
    --------
    >>> spelled("a\u202eb\x07")
    'a\\u202eb\\x07'
    """
    return _UNSEEN.sub(lambda found: _code(ord(found[0])), clean(text))


def _code(letter: int) -> str:
    return f"\\x{letter:02x}" if letter < 256 else f"\\u{letter:04x}"


def advice(result: Result) -> list[str]:
    """Return what a person should do next, most urgent first."""
    # A factor for outputs that belong to other rows would correct nothing.
    doubts = [f"Look at the inputs first: {text}." for text in result.suspicions]
    return [*(doubts or _by_verdict(result)), *_on_failures(result.replicates)]


def _by_verdict(result: Result) -> Iterator[str]:
    if result.verdict is Verdict.WITHIN_TOLERANCE:
        yield (
            "Nothing needs correcting in the test functions asked about. To keep it so, put "
            "result.assert_within_tolerance() into the tests of the procedure."
        )
        yield "Calibrated does not mean useful: look at how narrow the outputs are before relying on them."
    elif result.verdict is Verdict.INCONCLUSIVE:
        yield "Do not read this as a pass: the run could not settle the question either way."
        # With losses the advice on failures stands instead: more replicates would lose their share too.
        if not result.replicates.failures:
            yield (
                "If the sentence asks for replicates, add them: with a store, the same call computes only what is "
                "missing."
            )
    else:
        yield from _mends(result)
        yield (
            "After correcting the procedure, check it with another seed: the replicates that suggested a correction "
            "cannot confirm it."
        )


def _mends(result: Result) -> Iterator[str]:
    """Name the factor or the shift that would correct each of the worst test functions."""
    measures = by_function(result.measures)
    correlations = list(_correlations(result))
    yield from correlations
    added: list[str] = []
    own: list[str] = []
    for k in ranked(result):
        one = result.replicates.functions[k]
        (added if one.kind in ADDED else own).extend(_mend(result, k, measures.get(one.name, {})))
    # What is added shows errors of entries and of their correlations too, and has nothing of its own to correct then.
    mends = own or ([] if correlations else added)
    yield from mends[:PICTURED]
    if len(mends) > PICTURED:
        yield f"{len(mends) - PICTURED} further corrections are in the table of measures."
    found = {row.level for row in result.tests if row.adjusted <= result.spent and row.kind not in KINDS}
    if not mends and not correlations and "strong" in found:
        yield "The error is one of shape, which no factor corrects: the pictures below show where it is."
    if "weak" in found:
        yield "Make sure that the procedure uses the same belief that the truths are drawn from."
    if "auto" in found:
        yield "Look at the data that lead to similar outputs: the outputs are right on average and wrong among those."


def _correlations(result: Result) -> Iterator[str]:
    """Say which correlations are off for sure, and too large to be tolerated."""
    for m in result.measures:
        if m.name == "correlation error" and m.shown == "no":
            way = "raise" if m.estimate < 0 else "lower"
            size = number(abs(m.estimate))
            yield f"Correct the correlation of {short(m.f)}: {way} what outputs report by {size}."


def _mend(result: Result, k: int, about: Mapping[str, Interval]) -> Iterator[str]:
    """Say what would correct one test function: what the sentence says, of every kind of error."""
    ran = result.replicates
    if probable := outcomes_of(columns_of(ran)[k]):
        if any(m.clear for name, m in about.items() if name.startswith("log odds")) or probable[0].impossible:
            yield f"{short(ran.functions[k].name)} {of_outcomes(list(about.values()), probable)}."
        return
    name, found = ran.functions[k].name, diagnose(columns_of(ran)[k])
    if found.kind == "outliers":
        # A factor would widen every output for the sake of a few, so that none is named.
        yield f"Of {short(name)}, {wording.outlying(found, ran.n - len(ran.failures))}."
        return
    if found.kind != "plain":
        yield f"Give the outputs for {short(name)} another shape: {wording.misshapen(found, '')}."
    spread, bias = (
        one if one is not None and wording.off(one, found.kind, result.tolerance) else None
        for one in (about.get("spread"), about.get("bias"))
    )
    if spread is None and "bias" in about and not math.isfinite(about["bias"].estimate):
        yield f"Of {short(name)}, {wording.outside(about['bias'])[1]}."
        return
    if spread is not None and spread.low > 1 and math.isfinite(found.errors):
        yield f"Of {short(name)}, {wording.factor(spread, found, whose='their')}."
    elif spread is not None:
        why = "find the uncertainty it leaves out" if spread.low > 1 else "find the uncertainty it counts twice"
        yield f"Multiply the sd reported for {short(name)} by {said(spread)}, or {why}{_tolerated(spread, result)}."
    if bias is not None and math.isfinite(bias.estimate):
        way = "up" if bias.low > 0 else "down"
        pulls = f"or find what pulls them{_tolerated(bias, result)}"
        yield f"Move the outputs for {short(name)} {way} by {said(bias)} of their sd, {pulls}."


def _tolerated(m: Interval, result: Result) -> str:
    """Say of an error that may stay as it is that it may."""
    return "; that error is inside the tolerance" if wording.inside(m, result.tolerance) else ""


def _on_failures(replicates: Replicates) -> Iterator[str]:
    if replicates.failures:
        _, many, one = replicates.causes()[0]
        again = replicates.replay_of(one)
        seen = f"is replayed by {again}" if again else f"was first seen in replicate {one.replicate}"
        yield (
            f"Fix the failures: {len(replicates.failures)} of {replicates.n} replicates were lost, and the verdict "
            f"must hold whatever they would have been. The commonest cause ({many}) {seen}."
        )


def blind_spots(result: Result) -> list[str]:
    """Return what this run could not have seen."""
    return [
        *_resolution(result),
        *_draws(result.replicates),
        *_lost(result.replicates),
        f"Errors in functions of theta other than the {_many(len(result.replicates.functions), 'test function')} "
        f"asked about.",
        "Errors at one particular truth or dataset that cancel on average over the belief.",
        *_untested(result),
        *result.notes,
    ]


def _untested(result: Result) -> Iterator[str]:
    for level in chain():
        lacks = level.lacks(result.replicates.header)
        if lacks and result.look.anytime and level.sees is None and level.share is None:
            lacks = f"whether {level.null}: that is tested for one n only"
        if level.name not in result.levels and lacks:
            yield f"Level {level.name}, not tested: {lacks}."


def _resolution(result: Result) -> Iterator[str]:
    seen = result.resolution
    if math.isfinite(seen.bias):
        yield (
            # One time in five is what a power of 0.8 leaves.
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
    fewest = fewest_draws(replicates)
    if fewest:
        yield f"Tails beyond 1 in {fewest + 1}: an output was known by as few as {_many(fewest, 'draw')}."


def _lost(replicates: Replicates) -> Iterator[str]:
    if replicates.failures:
        yield (
            f"What the {_many(len(replicates.failures), 'lost replicate')} would have shown; p-values and intervals "
            f"take the worst case."
        )


def cells(result: Result) -> tuple[list[tuple[str, float]], list[tuple[str, list[Cell | None]]]]:
    """Return the table of measures: (name, ideal) of its columns, and one row per test function, worst first."""
    # A dict, since the columns should keep the order of the measures.
    heads = list({row.name: row.ideal for row in result.measures if row.f != ALL}.items())
    rows = [
        (name, [_cell(sizes[head]) if head in sizes else None for head, _ in heads])
        for name, sizes in sizes_worst_first(result)
    ]
    return heads, rows


def of_all(result: Result) -> list[tuple[str, Cell]]:
    """Return the measures of all test functions together, by name."""
    return [(row.name, _cell(row)) for row in result.measures if row.f == ALL]


def _worst_first(names: Iterable[str], result: Result) -> list[str]:
    """Return names of test functions by evidence, after that of all together."""
    place = {result.replicates.functions[k].name: j for j, k in enumerate(ranked(result))}
    return sorted(names, key=lambda name: place.get(name, -1))


@dataclass(frozen=True)
class Details:
    """Every measure, each with an interval of its own: for programs, and for the page the worst test functions."""

    plain: dict[str, Any]
    groups: list[tuple[str, list[tuple[str, Cell, str]]]]
    meanings: list[tuple[str, str]]
    left_out: int
    used: int


def details(result: Result) -> Details | None:
    """Return every measure, of the first ten thousand replicates and the fifty worst test functions at most.

    Nothing if all those replicates were lost. What is said of all test functions together concerns all of them.
    """
    ran = result.replicates.pick(slice(None, ENOUGH))
    if len(ran.failures) == ran.n:
        return None
    found = _measured(ran, ranked(result))
    by_name = by_function(found.rows)
    names = _worst_first(by_name, result)
    # What concerns all together stands on top and takes no row from the others.
    shown = names[: ROWS + (ALL in by_name)]
    groups = [(name, [(row.name, _cell(row), _ideal(row)) for row in by_name[name].values()]) for name in shown]
    there = {row.name for row in found.rows}
    meanings = [(name, text) for name, text in MEANINGS.items() if name in there]
    return Details(_as_plain(found), groups, meanings, len(names) - len(shown), ran.n)


def _measured(ran: Replicates, order: list[int]) -> Measures:
    """Return every measure of the first columns in this order."""
    if len(order) <= FUNCTIONS:
        return measure(ran)
    found = measure(ran.about(sorted(order[:FUNCTIONS])))
    # The largest of those with most evidence is no measure of all: their intervals would not know of the others.
    single = [row for row in found.rows if row.f != ALL]
    largest = [replace(m, f=ALL) for m in over_family(ran, confidence=0.95)]
    joint = [row for row in found.rows if row.f == ALL and not row.name.startswith("largest")]
    return replace(found, rows=(*single, *largest, *joint))


def _as_plain(found: Measures) -> dict[str, Any]:
    plain = found.to_dict()
    return {**plain, "measures": [{**row, "f": clean(row["f"])} for row in plain["measures"]]}


def _ideal(row: Interval) -> str:
    return "–" if math.isnan(row.ideal) else f"{row.ideal:.3g}"


def _cell(row: Interval) -> Cell:
    digits = decimals(row)
    interval = f"{_fixed(row.low, digits)} to {_fixed(row.high, digits)}"
    return Cell(_fixed(row.estimate, digits), interval, row.shown)


def fits(result: Result) -> list[Fits]:
    """Return what is known of single fits, a row per diagnostic."""
    return [
        Fits(
            line.name,
            tuple("∞" if x == math.inf else "unknown" if math.isnan(x) else number(x) for x in _range(line)),
            line.known,
            "–" if line.limit == "-" else line.limit,
            "–" if line.limit == "-" else str(line.flagged),
        )
        for line in result.diagnostics.lines
    ]


def _range(line: Line) -> tuple[float, float, float]:
    return line.smallest, line.median, line.largest


def tests(result: Result) -> list[TestRow]:
    """Return the tests by evidence, most first."""
    return sorted(result.tests, key=lambda row: (row.adjusted, row.pvalue))


def causes(replicates: Replicates) -> tuple[list[Cause], int]:
    """Return the failures by cause with one traceback each, and how many failures have further causes."""
    every = replicates.causes()
    shown = [
        Cause(short(cause, _ERROR), many, one.replicate, replicates.replay_of(one), _ends(one))
        for cause, many, one in every[:CAUSES]
    ]
    return shown, sum(many for _, many, _ in every[CAUSES:])


def _ends(failure: Failure) -> str:
    """Return a traceback, of a very long one the two ends: where it started, and what happened."""
    text, half = failure.traceback or failure.error, _TRACEBACK // 2
    return text if len(text) <= _TRACEBACK else f"{text[:half]}\n…\n{text[-half:]}"


def said(row: Interval) -> str:
    """Return the size of a measure with its interval."""
    digits = decimals(row)
    # The words around a bias say its direction, so that a sign would say it twice.
    low, high = sorted((abs(row.low), abs(row.high))) if row.ideal == 0 else (row.low, row.high)
    estimate = abs(row.estimate) if row.ideal == 0 else row.estimate
    return f"{_fixed(estimate, digits)} ({_fixed(low, digits)} to {_fixed(high, digits)})"


def _fixed(x: float, digits: int) -> str:
    if math.isnan(x):
        return "unknown"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    # A browser may break a line after a hyphen, but not after a minus sign.
    return f"{x:.{digits}f}".replace("-", "−")


def _figure(x: float) -> str:
    return f"{x:.3g}" if math.isfinite(x) else "any size"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
