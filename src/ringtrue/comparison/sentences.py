"""What a comparison says: who is the most calibrated, how far off the others are, what was lost, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..judgement.result import Result
from ..judgement.sentences.phrases import listed
from ..judgement.text import cell, counted, decimals, format_p, number, power
from ..judgement.verdict import Verdict
from ..statistics.effects import Interval
from .ranking import CALIBRATION, DIVERGENCE, of_value
from .rows import JOINT

if TYPE_CHECKING:
    from .sides import Comparison


def sentence_of(found: Comparison) -> str:
    """Return what the tables of a comparison say: who is ahead, who differs, whom to prefer, every verdict, losses."""
    worse = [name for name in found.results if name not in found.best]
    tags = listed([f"{name} ({_farthest(name, found.rows)})" for name in worse])
    behind = f"; {tags} {'is' if len(worse) == 1 else 'are'} worse" if worse else ""
    return f"{_ahead_of_all(found)}{behind}{_preferred(found)}. {_verdicts(found.results)}{_all_losses(found)}."


def _ahead_of_all(found: Comparison) -> str:
    if len(found.best) == 1:
        return f"{found.best[0]} is the most calibrated of {len(found.results)} procedures in spread and bias"
    pairs = [pair for pair in found.apart if set(pair) <= set(found.best)]
    if not pairs:
        return f"No difference in calibration {_among(found)} is clear"
    which = max((row for row in found.differences if row.of in pairs and row.clear), key=_difference)
    first, second = which.of
    more = "" if len(pairs) == 1 else f" most of {len(pairs)} pairs that do"
    nearer = _nearer(first, second, found)
    open_end = f"{nearer} seems nearer to calibrated, which is not sure"
    return f"{first} and {second} differ{more} ({_against(which, found)}); {open_end}"


def _nearer(first: str, second: str, found: Comparison) -> str:
    """Return the one of a pair that seems nearer, by the difference that is free of noise if there is one."""
    for row in found.differences:
        if row.name == DIVERGENCE and row.of == (first, second):
            return first if row.estimate < 0 else second
    return min((first, second), key=lambda name: found.divergence[name])


def _among(found: Comparison) -> str:
    """Return those whom nobody is ahead of: two by name, everybody by their number, which says more than a list."""
    many = len(found.best)
    if many == 2:
        return f"between {listed(found.best)}"
    return f"among the {many} procedures" if many == len(found.results) else f"among {listed(found.best)}"


def _difference(row: Interval) -> float:
    """Return the size of a difference of calibration; logs of spreads, biases in sds and shares are of one order."""
    # That of divergences comes last, since it says least about what differs.
    return abs(row.estimate) if row.name in CALIBRATION and row.name != DIVERGENCE else -1.0


def _against(row: Interval, found: Comparison) -> str:
    """Return both estimates of what differs."""
    if row.name == DIVERGENCE:
        sizes = [number(found.divergence[name], decimals(row)) for name in row.of]
        return f"divergence {' against '.join(sizes)}"
    measure, unit = row.name.removeprefix("log "), " sd" if row.name == "bias" else ""
    # As many decimals as tell them apart.
    digits = min(max(2, 1 - math.floor(math.log10(abs(row.estimate)))), 6)
    if any(_lost(found, name) for name in row.of):
        # The rows have replicates that the other lost, and would not differ by this much.
        return f"{row.name} of {row.f} by {number(row.estimate, digits)}{unit} where neither lost the replicate"
    own = {one.of: number(one.estimate, digits) for one in found.rows if (one.f, one.name) == (row.f, measure)}
    return f"{measure} of {row.f} {' against '.join(f'{own[name]}{unit}' for name in row.of)}"


def _verdicts(results: Mapping[str, Result]) -> str:
    """Return the verdict of every procedure, those with the same one together, miscalibrated ones first."""
    groups = {verdict: [name for name, one in results.items() if one.verdict is verdict] for verdict in Verdict}
    texts = [_alike(verdict.words, names, results) for verdict, names in groups.items() if names]
    return "; ".join(texts)


def _alike(words: str, names: Sequence[str], results: Mapping[str, Result]) -> str:
    every = len(names) == len(results) > 2
    them = f"all {len(names)}" if every else listed(names)
    least, most = (pick(results[name].pvalue for name in names) for pick in (min, max))
    values = format_p(least) if cell(least) == cell(most) else f"{format_p(least)} to {power(cell(most))}"
    return f"{them} {'is' if len(names) == 1 else 'are'} {words} ({values})"


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


def _preferred(found: Comparison) -> str:
    """Say what else tells the best apart."""
    # Scores are asked only among those that calibration does not rank: they also reward being narrow.
    first = _better_scored(found) if len(found.best) > 1 else ""
    though = f", though it {_losses(found, [first])}" if first and _lost(found, first) else ""
    return f"; prefer {first}, whose outputs have the better scores{though}" if first else ""


def _all_losses(found: Comparison) -> str:
    """Say who lost replicates, but for the preferred one, whose losses have been told."""
    told = _better_scored(found) if len(found.best) > 1 else ""
    losers = [name for name in found.results if name != told and _lost(found, name)]
    return f"; {listed(losers)} {_losses(found, losers)}" if losers else ""


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
    for name in _eligible(found):
        # A pair of which nothing is clear counts as not ahead, and so does one whose scores disagree.
        if all(min(ahead.get((name, other), [-1])) > 0 for other in found.best if other != name):
            return name
    return ""


def _eligible(found: Comparison) -> list[str]:
    """Return the best without those that are miscalibrated while another of them is not known to be."""
    right = [name for name in found.best if found.results[name].verdict is not Verdict.MISCALIBRATED]
    return right or list(found.best)
