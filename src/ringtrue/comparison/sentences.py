"""What a comparison says: who is the most calibrated, how far off the others are, what was lost, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..judgement.result import Result
from ..judgement.sentences.phrases import listed
from ..judgement.text import counted, number
from ..judgement.verdict import Verdict
from ..statistics.effects import Interval
from .ranking import of_value
from .rows import JOINT

if TYPE_CHECKING:
    from .sides import Comparison


def sentence_of(found: Comparison) -> str:
    """Return the sentence of a comparison."""
    worse = [name for name in found.results if name not in found.best]
    tags = listed([f"{name} ({_farthest(name, found.rows)})" for name in worse])
    behind = f"; {tags} {'is' if len(worse) == 1 else 'are'} worse" if worse else ""
    return f"{_ahead_of_all(found.best, found.results)}{behind}{_advice(found)}."


def _ahead_of_all(best: Sequence[str], results: Mapping[str, Result]) -> str:
    if len(best) == 1:
        return f"{best[0]} is the most calibrated of {len(results)} procedures in spread and bias"
    # Two are named, as that says more; a list of everybody would say less than their number.
    everyone = len(best) == len(results) > 2
    whom = f"The {len(best)} procedures" if everyone else listed(best)
    return f"{whom} cannot be told apart by their calibration"


def _farthest(name: str, rows: Sequence[Interval]) -> str:
    """Return what is known of a procedure's worst spread or bias, or its coverage where nothing is known of either."""
    own = [row for row in rows if row.of == name]
    known = [row for row in own if row.name in ("spread", "bias") and math.isfinite(_size(row))]
    if not known:
        least = min((row for row in own if row.name == "coverage"), key=lambda row: row.estimate)
        return f"coverage of {least.f} {100 * least.estimate:.0f} %"
    # By divergence, the one unit that a spread and a bias share.
    worst = max(known, key=_size)
    value, side = _known(worst)
    return f"{worst.name} of {worst.f} {side}{number(value)}{' sd' if worst.name == 'bias' else ''}"


def _known(row: Interval) -> tuple[float, str]:
    """Return the estimate; where it is a limit, the end of the interval on this side of it, and which side that is."""
    if row.estimate == math.inf:
        return row.low, "above "
    if row.estimate == -math.inf or (row.name, row.estimate) == ("spread", 0.0):
        return row.high, "below "
    return row.estimate, ""


def _size(row: Interval) -> float:
    """Return what a spread or bias adds to the divergence; not finite where nothing is known of it."""
    return of_value(row.name, _known(row)[0])


def _advice(found: Comparison) -> str:
    """Say what else tells the best apart, whether they are calibrated at all, and who lost replicates."""
    verdicts = [found.results[name].verdict for name in found.best]
    texts = []
    # Scores are asked only among those that calibration does not tell apart: they also reward being narrow.
    first = _better_scored(found) if len(verdicts) > 1 else ""
    if first:
        though = f", though it {_losses(found, [first])}" if _lost(found, first) else ""
        texts.append(f"prefer {first}, whose outputs have the better scores{though}")
    them = "both" if len(verdicts) == 2 else "all of them"
    if all(verdict is Verdict.MISCALIBRATED for verdict in verdicts):
        which = f"{found.best[0]} is miscalibrated all the same" if len(verdicts) == 1 else f"{them} are miscalibrated"
        texts.append(which)
    elif len(verdicts) > 1 and all(verdict is Verdict.WITHIN_TOLERANCE for verdict in verdicts):
        texts.append(f"{them} are within tolerance")
    elif len(verdicts) > 1:
        texts.append("more replicates may tell")
    # The losses of the preferred one have been told above.
    if losers := [name for name in found.results if name != first and _lost(found, name)]:
        texts.append(f"{listed(losers)} {_losses(found, losers)}")
    return "".join(f"; {text}" for text in texts)


def _lost(found: Comparison, name: str) -> int:
    return len(found.results[name].replicates.failures)


def _losses(found: Comparison, names: Iterable[str]) -> str:
    many = [_lost(found, name) for name in names]
    n = next(iter(found.results.values())).replicates.n
    return f"lost {listed([str(one) for one in many])} of {counted(n, 'replicate')}"


def _better_scored(found: Comparison) -> str:
    """Return the one of the best that scores better than every other for sure, by some score and worse by none."""
    ahead: dict[tuple[str, str], list[int]] = {}
    for row in found.differences:
        if row.name in ("crps", JOINT) and row.clear:
            # Scores are losses: the first of a pair is ahead where the difference is negative.
            sign = 1 if row.high < 0 else -1
            ahead.setdefault(row.of, []).append(sign)
            ahead.setdefault(row.of[::-1], []).append(-sign)
    for name in found.best:
        # A pair of which nothing is clear counts as not ahead, and so does one whose scores disagree.
        if all(min(ahead.get((name, other), [-1])) > 0 for other in found.best if other != name):
            return name
    return ""
