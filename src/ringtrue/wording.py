"""Sentences a person can act on.

Turns verdicts, tests and measures into one sentence per question. It decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from . import planning
from .levels import LevelEvidence
from .miscalibration import Measure
from .replicates import Replicates
from .results import MeasureRow, TestRow, Tolerance, Verdict, decimals, format_p
from .usefulness import uninformative


def sentence(
    verdict: Verdict,
    *,
    found: Sequence[LevelEvidence],
    measures: Sequence[MeasureRow],
    overall: float,
    rejecting: Sequence[TestRow],
    replicates: Replicates,
    alpha: float,
    tolerance: Tolerance,
) -> str:
    """Return the verdict in words, then a line on the exact level if it was tested."""
    if verdict is Verdict.MISCALIBRATED:
        text = _miscalibrated(found, measures, overall, rejecting, replicates)
    elif verdict is Verdict.WITHIN_TOLERANCE:
        text = _within(measures, overall, alpha)
    else:
        text = _inconclusive(measures, overall, replicates, alpha, tolerance)
    exact = next((item for item in found if item.level == "exact"), None)
    return text if exact is None else f"{text}\n{_exactness(exact, alpha)}"


def useless(use: Mapping[str, Sequence[Measure]]) -> list[str]:
    """Return a note for every test function of which the outputs say no more than the belief.

    Parameters
    ----------
    use
        Contraction and skill by test function.
    """
    return [
        f"{name}: the output hardly depends on the data (skill {skill.estimate:.2f}, contraction "
        f"{contraction.estimate:.2f}): calibrated or not, it says no more than the belief."
        for name, (contraction, skill) in use.items()
        if uninformative(skill, contraction)
    ]


def _miscalibrated(
    found: Sequence[LevelEvidence],
    measures: Sequence[MeasureRow],
    overall: float,
    rejecting: Sequence[TestRow],
    replicates: Replicates,
) -> str:
    if not rejecting:
        return f"MISCALIBRATED ({format_p(overall)}): the test functions jointly, no single one after adjustment."
    worst = min(rejecting, key=lambda row: (row.level == "weak", row.adjusted, row.pvalue))
    head = f"MISCALIBRATED ({worst.level}, {format_p(overall)}):"
    return f"{head} {_complaint(worst, measures, replicates)}"


def _complaint(worst: TestRow, measures: Sequence[MeasureRow], replicates: Replicates) -> str:
    about = {m.name: m for m in measures if m.f == worst.f}
    if worst.level == "weak":
        size = about.get("weak KS distance")
        how = f" (Kolmogorov distance {_interval(size)})" if size else ""
        return f"averaged over data, the outputs do not return the belief: {worst.f}{how}."
    if worst.level == "auto":
        return f"given its own output, the truth does not follow it: {worst.f}."
    return f"{worst.f} {_direction(worst, about, replicates)}."


def _direction(worst: TestRow, about: dict[str, MeasureRow], replicates: Replicates) -> str:
    """Say over-confident, under-confident, biased or misshapen, with the number that mends it."""
    spread, bias = about.get("spread"), about.get("bias")
    clauses = []
    if spread is not None and not spread.low <= 1 <= spread.high:
        word = "over-confident" if spread.estimate > 1 else "under-confident"
        clauses.append(f"is {word}: multiply its reported sd by {_interval(spread)}")
    if bias is not None and not bias.low <= 0 <= bias.high:
        side = "below" if bias.estimate > 0 else "above"
        clauses.append(f"is biased: outputs lie {_interval(bias, absolute=True)} of their sd {side} the truth")
    if not clauses:
        clauses.append(f"has the wrong shape: {_where(worst, replicates)}")
    coverage = about.get("coverage")
    if coverage is not None and math.isfinite(coverage.estimate):
        clauses.append(
            f"nominal {100 * coverage.ideal:.0f} % intervals contain the truth {100 * coverage.estimate:.0f} % of the "
            f"time"
        )
    return "; ".join(clauses)


def _where(worst: TestRow, replicates: Replicates) -> str:
    """Say where truths are too many, from the steepest part of the difference between the ECDF and the diagonal."""
    k = next(k for k, column in enumerate(replicates.columns) if column.name == worst.f)
    u = replicates.u[replicates.rows, k]
    share = np.histogram(u, bins=5, range=(0, 1))[0] / len(u)
    j = int(np.argmax(np.abs(share - 0.2)))
    word = "many" if share[j] > 0.2 else "few"
    return (
        f"too {word} truths ({100 * share[j]:.0f} %) between the {20 * j} % and {20 * (j + 1)} % points of the output"
    )


def _within(measures: Sequence[MeasureRow], overall: float, alpha: float) -> str:
    spread = _widest(measures, "spread")
    coverage = _widest(measures, "coverage")
    found = "nothing found" if overall > alpha else "an error was found that is real and negligible"
    return (
        f"WITHIN TOLERANCE: {found} ({format_p(overall)}); spread factor {_interval(spread)}, bias "
        f"{_interval(_widest(measures, 'bias'))} sd, nominal {100 * coverage.ideal:.0f} % intervals contain the truth "
        f"{100 * coverage.estimate:.0f} % ({100 * coverage.low:.0f}-{100 * coverage.high:.0f}) of the time."
    )


def _inconclusive(
    measures: Sequence[MeasureRow], overall: float, replicates: Replicates, alpha: float, tolerance: Tolerance
) -> str:
    known = f"INCONCLUSIVE: nothing found ({format_p(overall)})"
    if overall <= alpha:
        known = f"INCONCLUSIVE: an error was found ({format_p(overall)}) that is small where it was found"
    if not measures:
        return f"{known}, and no test function of theta alone was asked about, so calibration was not measured."
    if not all(math.isfinite(m.estimate) for m in measures if m.name == "spread"):
        if replicates.n - len(replicates.failures) < 2:
            return f"{known}, but one replicate tells nothing of the spread; add replicates."
        return f"{known}, but one draw per replicate cannot tell the spread; return more draws."
    text = f"{known}, but {_least_known(measures, tolerance)}"
    if replicates.failures:
        return (
            f"{text}, and {len(replicates.failures)} of {replicates.n} replicates were lost; the verdict must hold "
            f"whatever they would have been."
        )
    return f"{text}{_more(measures, replicates, alpha, tolerance)}"


def _more(measures: Sequence[MeasureRow], replicates: Replicates, alpha: float, tolerance: Tolerance) -> str:
    """Say how many more replicates would settle it."""
    functions = len({m.f for m in measures})
    fewest = replicates.fewest_draws()
    need = planning.certify(
        spread=tolerance.spread,
        bias=tolerance.bias,
        coverage=tolerance.coverage,
        draws=fewest,
        level=1 - alpha / (3 * functions),
    ).n
    if not math.isfinite(need):
        return f"; no number of replicates would certify that with {fewest} draws each."
    if need <= replicates.n:
        return "; a calibrated procedure is certified four times in five at this n: add replicates."
    return (
        f"; about {_rounded(int(need) - replicates.n)} more replicates would certify a spread within "
        f"{100 * tolerance.spread:g} %, a bias within {tolerance.bias:g} sd and a coverage within "
        f"{100 * tolerance.coverage:g} points."
    )


def _exactness(exact: LevelEvidence, alpha: float) -> str:
    worst = min(exact.rows, key=lambda row: row.pvalue)
    if exact.pvalue <= alpha:
        return (
            f"NOT THE EXACT POSTERIOR (exact, {format_p(exact.pvalue)}): {worst.f} sees data that the output does "
            f"not use, or uses wrongly."
        )
    return f"Exact posterior: nothing found against it ({format_p(exact.pvalue)})."


def _least_known(measures: Sequence[MeasureRow], tolerance: Tolerance) -> str:
    """Name the measure whose interval leaves its tolerance by most."""

    def excess(m: MeasureRow) -> float:
        low, high = tolerance.limits(m.name, m.ideal)
        return max(low - m.low, m.high - high) / (high - low)

    worst = max((m for m in measures if m.name in ("spread", "bias", "coverage")), key=excess)
    digits = decimals(worst)
    return f"the {worst.name} of {worst.f} is known only to within {worst.low:.{digits}f} to {worst.high:.{digits}f}"


def _widest(measures: Sequence[MeasureRow], name: str) -> MeasureRow:
    return max((m for m in measures if m.name == name), key=lambda m: m.high - m.low)


def _interval(m: MeasureRow, *, absolute: bool = False) -> str:
    low, high = (m.low, m.high) if not absolute else sorted((abs(m.low), abs(m.high)))
    estimate = abs(m.estimate) if absolute else m.estimate
    digits = decimals(m)
    if math.isinf(high):
        return f"more than {low:.{digits}f}"
    to = "-" if low >= 0 else " to "
    return f"{estimate:.{digits}f} ({low:.{digits}f}{to}{high:.{digits}f})"


def _rounded(n: int) -> int:
    """Round up to two figures: more would pretend to know."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return int(-(-n // unit) * unit)
