"""How to read *this* picture, in one sentence, from numbers and never from the picture.

What a histogram of positions shows is in three things: the spread and the bias with their intervals, and where the
distribution function leaves its band. This module turns them into words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from ..functions import Sees
from ..judgement.column import Column, column_named, columns_of
from ..judgement.diagnosis import Diagnosis, Kind, diagnose, fit_of_all
from ..judgement.levels import TestRow
from ..judgement.outcomes import Outcomes, outcomes_of
from ..judgement.reliability import sizes_of_all
from ..judgement.result import Result
from ..judgement.sentences import phrases as wording
from ..judgement.sentences.probabilities import of_outcomes, points_of
from ..judgement.text import decimals, format_p, number, percent
from ..judgement.verdict import Tolerance
from ..replicates.record import Replicates
from ..statistics.effects import Interval
from . import lattices
from .lattices import Curve
from .selection import AVERAGED, Source, accusation, choose, replicates_of, result_of

#: What shapes look like; outliers are spikes.
_LOOKS = {
    "skewed": "lopsided",
    "uneven": "peaked in the middle and at the ends",
    "two-sided": "hollow in the middle",
    "flat": "empty at the ends",
    "other": "not flat",
}


def reading(source: Source, k: int | str | None = None, *, confidence: float = 0.95) -> str:
    """Say in one sentence how to read the picture of one test function.

    Parameters
    ----------
    source
        A Result or Replicates.
    k
        The number of a column, or the name of a test function, whose histogram or ECDF is read; left out, the worst at
        the level that rejects, by its adjusted p-value: if that is the weak level, what ``data_averaged`` shows.
    confidence
        Of the band, and of the intervals of spread and bias jointly; over all test functions if the worst of them is
        read.

    Notes
    -----
    Shapes are named if their numbers are evident: U-shaped if the interval of the spread lies above 1, humped if below,
    sloping if that of the bias excludes 0; spiked, lopsided and so on follow ``diagnose``, which
    the sentence of a result follows too. Of a test function that is asked for it speaks as if there were no other. The
    worst of many would look bad by chance: its band and intervals are Bonferroni's over all of them, and a shape is
    named only if a test rejects.

    By default a calibrated picture is called flat 92 times in 100 (500 exact normal scores, 2000 runs), since
    the band, the intervals and the diagnosis each have their own chance of error. Ranks of 1000 truths among 99 draws
    are called flat 89 to 93 times in 100 and spiked 0 to 8 times, whether outputs are normal, exponential, lognormal,
    t_3, Cauchy, Poisson(0.3) or Bernoulli(0.02) (100 runs each).

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> reading(check_draws(2 * rng.normal(size=500), rng.normal(size=(500, 19)))).split(": ")[0]
    'theta, the worst of 2, is U-shaped'
    """
    if k is None:
        return _of_worst(result_of(source), confidence)
    ran = replicates_of(source)
    place = choose(ran, k, most=1).columns[0] if isinstance(k, str) else _as_index(ran, k)
    column = columns_of(ran)[place]
    return f"{column.name} {_of_positions(source, column, confidence)}"


def _of_worst(result: Result, confidence: float) -> str:
    """Read the worst test function, with a band that holds for all of which it is the worst."""
    row = accusation(result)
    if row is not None and row.level in AVERAGED:
        ran = replicates_of(result)
        return _finished(_of_averages(row, ran, confidence), ran)
    chosen = choose(result, None, most=1)
    column, many = chosen.column(chosen.columns[0]), 1 + chosen.left_out
    which = f"{column.name}, the worst of {many}," if many > 1 else column.name
    shapes: Sequence[Kind] = () if many > 1 and row is None else get_args(Kind)
    return f"{which} {_of_positions(result, column, 1 - (1 - confidence) / many, shapes)}"


def _of_positions(source: Source, column: Column, confidence: float, shapes: Sequence[Kind] = get_args(Kind)) -> str:
    """Say behind its name what the positions of a test function look like; only these shapes may be named."""
    ran = column.replicates
    if column.n == 1:
        return "has one replicate: its position tells nothing of calibration."
    curve = lattices.curve(lattices.positions(column), confidence=confidence)
    if column.sees != "theta":
        return _finished(_of_other_level(column.sees, curve), ran)
    # Replicates alone were not judged; the default tolerance says which errors are worth a word.
    tolerance = source.tolerance if isinstance(source, Result) else Tolerance()
    if few := outcomes_of(column):
        return _finished(_of_few_values(few, tolerance, confidence), ran)
    # The kind of error is the sentence's; spread and bias hold jointly here, which is half of the error for each.
    found = replace(diagnose(column), fit=fit_of_all(column, 1 - (1 - confidence) / 2))
    if found.kind not in shapes:
        found = replace(found, kind="plain")
    return _finished(_of_diagnosis(found, curve, tolerance, ran), ran)


def _of_few_values(found: Sequence[Outcomes], tolerance: Tolerance, confidence: float) -> str:
    """Say what the probabilities of a function with few values are like, which positions do not show."""
    sizes = sizes_of_all(found, alpha=1 - confidence, confidence=confidence, tolerance=tolerance)
    if any(one.impossible for one in found) or any(m.clear for m in sizes[:-1]):
        return of_outcomes(sizes, found)
    off = points_of(sizes[-1].high)
    return f"has few values: no line in log odds shows an error; an error of {off} on average would look like this too"


def _as_index(ran: Replicates, k: int) -> int:
    if not -len(ran.functions) <= k < len(ran.functions):
        raise IndexError(f"k must be the number of one of {len(ran.functions)} test functions, but {k} came.")
    return int(k)


def _finished(text: str, ran: Replicates) -> str:
    lost = len(ran.failures)
    return f"{text} (the {lost} lost left out)." if lost else f"{text}."


def _of_diagnosis(found: Diagnosis, curve: Curve, tolerance: Tolerance, ran: Replicates) -> str:
    shapes, meanings = [], []
    if found.kind == "outliers":
        shapes.append(f"spiked at {_ends(found)}")
        meanings.append(f"outliers, {wording.outlying(found, ran.n - len(ran.failures))}")
        # A few wild values make a spread and a bias of their own, which would blame all outputs for them.
        return _joined(shapes, meanings, curve, found)
    spread, bias = found.fit.spread, found.fit.bias
    if wording.off(spread, found.kind, tolerance):
        shapes.append("U-shaped" if spread.low > 1 else "humped")
        confidence = "over-confident" if spread.low > 1 else "under-confident"
        meanings.append(
            f"{confidence}, {wording.factor(spread, found, whose='the')}{wording.inside(spread, tolerance)}"
        )
    if wording.off(bias, found.kind, tolerance):
        # An interval that excludes 0 has both ends on one side, so that either tells the direction.
        shapes.append(_slope(bias.low))
        meanings.append(f"biased, {_shift(bias)}{wording.inside(bias, tolerance)}")
    # Infinite scores leave no estimate to judge; the bias is nan if they lie on both sides.
    if not shapes and not math.isfinite(bias.estimate):
        shapes.append("U-shaped" if math.isnan(bias.estimate) else _slope(bias.estimate))
        meanings.append(", ".join(wording.outside(bias)))
    if found.kind != "plain":
        shapes.append(_LOOKS[found.kind])
        meanings.append(wording.misshapen(found, ""))
    return _joined(shapes, meanings, curve, found)


def _slope(bias: float) -> str:
    return f"sloping {'up' if bias > 0 else 'down'} to the right"


def _shift(bias: Interval) -> str:
    # A bias is that of the truth: where it is positive the outputs lie too low.
    side = "below" if bias.low > 0 else "above"
    return f"outputs lie {wording.interval(bias, absolute=True)} of their sd {side} the truth"


def _ends(found: Diagnosis) -> str:
    below, above = (True, True) if found.outliers is None else found.outliers.sides
    return "both ends" if below == above else "the lower end" if below else "the upper end"


def _joined(shapes: list[str], meanings: list[str], found: Curve, told: Diagnosis) -> str:
    where = _where(found)
    if not shapes and not where:
        return f"is flat within its band: nothing to see here; {_known(told)}"
    # A curve that is 0 and then 1 has all truths in one cell, where no shape can be told.
    if where and not np.any((found.share > 0) & (found.share < 1)):
        j, edges = int(np.sum(found.share == 0)), 100 * np.r_[0.0, found.points, 1.0]
        ends = f"from the {edges[j]:.3g} % to the {edges[j + 1]:.3g} % point"
        return f"has one bar alone: all truths lie {ends} of their output"
    if not shapes:
        return f"is neither wider, narrower nor shifted, but not flat: {where}"
    head = " and ".join([", ".join(shapes[:-1]), shapes[-1]] if len(shapes) > 1 else shapes)
    text = f"is {head}: {'; '.join(meanings)}"
    return f"{text}; {where}" if where else f"{text}; the curve stays within its band all the same"


def _known(told: Diagnosis) -> str:
    spread, bias = told.fit.spread, told.fit.bias
    if not math.isfinite(spread.high):
        return "so few replicates or draws would hide any spread"
    factors, shifts = (" to ".join(number(end, decimals(m)) for end in (m.low, m.high)) for m in (spread, bias))
    # A flat picture proves nothing: what it cannot exclude is said with it.
    return f"a spread factor from {factors} and a bias from {shifts} sd would look like this too"


def _of_other_level(sees: Sees, found: Curve) -> str:
    where = _where(found)
    if not where:
        return "is flat within its band: nothing to see here"
    if sees == "data":
        return f"is not flat, so the output is not the exact posterior: {where}"
    return f"is not flat, so the output does not know its own error: {where}"


def _of_averages(row: TestRow, ran: Replicates, confidence: float) -> str:
    """Say how draws of the outputs, averaged over data, differ from the belief."""
    column = column_named(ran, row.f)
    # The joint test has no column, and two samples have no positions: the p-value is what there is to say.
    curve = None if column is None or column.weak is None else lattices.averages(column.weak, confidence=confidence)
    where = "" if curve is None else _where(curve, "draws", "belief")
    text = f"{row.f}, averaged over data, {'do' if column is None else 'does'} not return the belief"
    return f"{text} ({row.level} level, {format_p(row.adjusted)}){f': {where}' if where else ''}"


def _where(found: Curve, what: str = "truths", of: str = "output") -> str:
    """Say where the curve is farthest above its band and farthest below, each in terms of the nearer end."""
    places = []
    for beyond in (found.share - found.high, found.low - found.share):
        if beyond.size and beyond.max() > 0:
            places.append(int(np.argmax(beyond)))
    parts = [_part(float(found.points[j]), float(found.share[j]), of) for j in sorted(places)]
    # Without repeats, in the order of the places; a set would lose the order.
    words = list(dict.fromkeys(word for word, _ in parts))
    if len(words) == 1:
        return f"too {words[0]} {what} in the {' and the '.join(where for _, where in parts)}"
    return " and ".join(f"too {word} {what} in the {where}" for word, where in parts)


def _part(p: float, share: float, of: str) -> tuple[str, str]:
    """Return whether truths are many or few in the nearer end, and which part that is."""
    part, actual, end = (p, share, "lowest") if p <= 0.5 else (1 - p, 1 - share, "highest")
    size, count = _apart(part, actual)
    return "many" if actual > part else "few", f"{end} {size} of the {of} ({count} of them)"


def _apart(part: float, actual: float) -> tuple[str, str]:
    """Return two different shares in percent, with as many decimals as it takes to read differently."""
    texts = f"{100 * part:.2g} %", percent(actual)
    for digits in range(1, 7):
        if texts[0] != texts[1]:
            break
        texts = f"{100 * part:.{digits}f} %", f"{100 * actual:.{digits}f} %"
    return texts
