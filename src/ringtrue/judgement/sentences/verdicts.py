"""The verdict in words: what was found, what is certified, and what is said beside it.

Words only: whatever is counted or estimated was counted or estimated elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ...characters import one_line
from ...replicates.record import Replicates
from ...statistics.effects import Interval
from ..column import strong_columns
from ..diagnosis import far_out
from ..groups import one_of_each
from ..levels import Evidence, TestRow, levels
from ..measures import says_nothing
from ..outcomes import ERROR, outcomes_of
from ..text import counted, decimals, format_p, number, percent
from ..verdict import Tolerance, Verdict, certificate
from .phrases import interval, listed, percents, share_of, span, that_miss
from .probabilities import at_most


@dataclass(frozen=True)
class Findings:
    """What a judgement found.

    Attributes
    ----------
    found, overall, rejecting
        The evidence by level, the p-value of the verdict, and the tests that reject after adjustment.
    measures, use
        Sizes with their intervals, and contraction and skill by test function.
    replicates, alpha, tolerance
        What was judged, and how; alpha is what this look at the run has of it.
    tolerable
        How many lost replicates would leave a verdict; None if not even none lost would.
    later
        What the next look at the run will have of alpha.
    suspected
        Whether something seems wrong with what went in, so that sizes may not be the procedure's.
    """

    found: Sequence[Evidence]
    overall: float
    rejecting: Sequence[TestRow]
    measures: Sequence[Interval]
    use: Mapping[str, Sequence[Interval]]
    replicates: Replicates
    alpha: float
    tolerance: Tolerance
    tolerable: int | None
    later: float
    suspected: bool

    @property
    def entries(self) -> set[str]:
        """The names of the test functions that are entries of theta."""
        return {function.name for function in self.replicates.functions if function.kind == "coordinate"}

    @property
    def kept(self) -> int:
        """How many replicates were not lost."""
        return self.replicates.n - self.replicates.lost

    @property
    def independent(self) -> int:
        """How many of these are independent: one of each group, where replicates come in groups."""
        alone = one_of_each(self.replicates)
        return alone.n - alone.lost


def sentence(verdict: Verdict, findings: Findings) -> str:
    """Return the verdict in words, then lines on exchanging truth and draw and on the exact level, if there are any."""
    from .exchange import not_exchangeable
    from .inconclusive import inconclusive
    from .miscalibrated import exactness, miscalibrated

    write = {
        Verdict.MISCALIBRATED: miscalibrated,
        Verdict.WITHIN_TOLERANCE: within,
        Verdict.INCONCLUSIVE: inconclusive,
    }
    of = {item.level: item for item in findings.found}
    lines = [write[verdict](findings), not_exchangeable(of.get("reversible"), findings)]
    if "exact" in of and _worth_a_line(of["exact"], verdict, findings):
        lines.append(exactness(of["exact"], findings))
    # A name or an error of others must not begin a line of its own.
    return "\n".join(one_line(line) for line in lines if line)


def _worth_a_line(exact: Evidence, verdict: Verdict, findings: Findings) -> bool:
    """Whether the exact level was asked about, or speaks up where no other level does, or none that says as much."""
    asked = any(function.sees == "data" for function in findings.replicates.functions)
    told = verdict is Verdict.MISCALIBRATED and not all(levels()[row.level].blunt for row in findings.rejecting)
    return asked or (exact.pvalue <= findings.alpha and not told)


def within(findings: Findings) -> str:
    """Say what is certified, and if the outputs are of no use, that first."""
    found = "nothing found"
    if findings.overall <= findings.alpha:
        names = listed(dict.fromkeys(row.f for row in findings.rejecting))
        found = f"an error of {names} was found that is real and smaller than tolerated"
    idle = of_no_use(findings)
    from .joint import told_of

    besides = f"{told_of(findings)}{_unseen(findings)}{far_misses(findings)}{whatever(findings)}"
    rest = f"{found} ({format_p(findings.overall)}); {_sizes(findings)}.{besides}"
    if not idle:
        return f"WITHIN TOLERANCE: {rest}"
    return f"WITHIN TOLERANCE, BUT OF NO USE: of {no_more(idle, findings)}. {rest[0].upper()}{rest[1:]}"


def _unseen(findings: Findings) -> str:
    """Say what no run of this length can exclude: with three in n, one run in twenty sees none of them."""
    n = findings.independent
    return f" No run of {n} can exclude errors in fewer than {percent(3 / n)} of all outputs."


def _sizes(findings: Findings) -> str:
    """Return the three measures with their intervals; of several test functions, what holds for all."""
    measures = certificate(findings.measures, findings.replicates)
    known = at_most(measures)
    if all(m.name == ERROR for m in measures):
        return known
    return f"{_of_positions(measures)}{f'; {known}' if known else ''}"


def _of_positions(measures: Sequence[Interval]) -> str:
    spread, bias, coverage = ([m for m in measures if m.name == name] for name in ("spread", "bias", "coverage"))
    nominal = percent(coverage[0].ideal)
    if len(spread) == 1:
        return (
            f"the spread factor of {spread[0].f} is {interval(spread[0])}, its bias {interval(bias[0])} sd, and "
            f"nominal {nominal} intervals contain the truth {share_of(coverage[0])} of the time"
        )
    which = "both" if len(spread) == 2 else f"all {len(spread)}"
    return (
        f"{which} functions asked about have spread factors within {_hull(spread)}, biases within {_hull(bias)} sd, "
        f"and nominal {nominal} intervals that contain the truth "
        f"{percents(min(m.low for m in coverage), max(m.high for m in coverage))} % of the time"
    )


def _hull(rows: Sequence[Interval]) -> str:
    return span(min(m.low for m in rows), max(m.high for m in rows), min(decimals(m) for m in rows))


def far_misses(findings: Findings, *, told: Collection[str] = ()) -> str:
    """Name the test function with the most outputs that miss by far, which ranks among draws hardly see.

    Those in ``told`` are spoken of already. The distance, a sum of squares, has such tails by itself, and entries that
    miss by far are named themselves.
    """
    skipped = ("distance", "overall") if findings.entries else ()
    asked = [one for one in strong_columns(findings.replicates) if one.name not in told and one.kind not in skipped]
    asked = [one for one in asked if not outcomes_of(one)]  # a rare outcome is many sds away, and that is all it can be
    found = [(one[1], column) for column in asked if column.draws and (one := far_out(column, among=len(asked)))]
    if not found:
        return ""
    far, column = max(found, key=lambda pair: pair[0].count)
    text = f"Of {column.name}, {that_miss(far, findings.kept)}"
    unless = f"unless outputs have such tails{' or few values' if column.repeated else ''}"
    return f" {text}, which ranks hardly see: {unless}, fix {'it' if far.count == 1 else 'them'}."


def whatever(findings: Findings) -> str:
    """Say that lost replicates could not change the verdict, if there were any."""
    lost = findings.replicates.lost
    return f" This holds whatever the {counted(lost, 'lost replicate')} would have been." if lost else ""


def useless(use: Mapping[str, Sequence[Interval]], replicates: Replicates) -> list[str]:
    """Return a note for every test function of which the outputs say no more than the belief.

    Parameters
    ----------
    use
        Contraction and skill by test function.
    replicates
        What was judged.
    """
    before = known_before(replicates)

    def said(contraction: Interval, skill: Interval) -> str:
        sizes = f"(skill {number(skill.estimate)}, contraction {number(contraction.estimate)})"
        if skill.high < 0:
            return f"the output predicts the truth worse than {before} does {sizes}."
        return f"the output hardly depends on the data {sizes}: calibrated or not, it says no more than {before}."

    return [f"{name}: {said(*both)}" for name, both in use.items() if says_nothing(both)]


def idle(findings: Findings) -> str:
    """Say of which entries outputs say no more than the belief, if of any."""
    names = of_no_use(findings)
    return f" Of {no_more(names, findings)}." if names else ""


def no_more(names: Sequence[str], findings: Findings) -> str:
    """Say it of these names, with the skill."""
    skill = number(max(findings.use[name][1].estimate for name in names))
    all_of_them = len(names) > 1 and len(names) == len(_asked(findings))
    every = "both" if len(names) == 2 else f"all {len(names)}"
    which = f"{every} entries asked about" if all_of_them else listed(names)
    return f"{which} the outputs say no more than {known_before(findings.replicates)} does (skill {skill})"


def known_before(replicates: Replicates) -> str:
    """Return what the outputs are to improve on."""
    return "y_obs alone" if replicates.header.of_output else "the belief"


def of_no_use(findings: Findings) -> list[str]:
    """Return the entries of theta, or if there are none all test functions, of which the outputs say nothing."""
    return [name for name, both in _asked(findings).items() if says_nothing(both)]


def _asked(findings: Findings) -> dict[str, Sequence[Interval]]:
    entries = findings.entries
    return {name: both for name, both in findings.use.items() if not entries or name in entries}
