"""What is certified."""

from __future__ import annotations

from collections.abc import Sequence

from ...statistics.effects import Interval
from ..result import decimals, format_p, percent
from .findings import Findings
from .misses import far_misses, whatever
from .phrases import interval, listed, percents, share_of, span
from .use import no_more, of_no_use


def within(findings: Findings) -> str:
    """Say what is certified, and if the outputs are of no use, that first."""
    found = "nothing found"
    if findings.overall <= findings.alpha:
        names = listed(dict.fromkeys(row.f for row in findings.rejecting))
        found = f"an error of {names} was found that is real and negligible"
    idle = of_no_use(findings)
    besides = f"{far_misses(findings)}{whatever(findings)}"
    rest = f"{found} ({format_p(findings.overall)}); {_sizes(findings.measures)}.{besides}"
    if not idle:
        return f"WITHIN TOLERANCE: {rest}"
    return f"WITHIN TOLERANCE, BUT OF NO USE: of {no_more(idle, findings)}. {rest[0].upper()}{rest[1:]}"


def _sizes(measures: Sequence[Interval]) -> str:
    """Return the three measures with their intervals; of several test functions, what holds for all."""
    spread, bias, coverage = ([m for m in measures if m.name == name] for name in ("spread", "bias", "coverage"))
    nominal = percent(coverage[0].ideal)
    if len(spread) == 1:
        return (
            f"spread factor {interval(spread[0])}, bias {interval(bias[0])} sd, nominal {nominal} intervals contain "
            f"the truth {share_of(coverage[0])} of the time"
        )
    which = "both" if len(spread) == 2 else f"all {len(spread)}"
    return (
        f"{which} test functions have spread factors within {_hull(spread)}, biases within {_hull(bias)} sd, "
        f"and nominal {nominal} intervals that contain the truth "
        f"{percents(min(m.low for m in coverage), max(m.high for m in coverage))} % of the time"
    )


def _hull(rows: Sequence[Interval]) -> str:
    return span(min(m.low for m in rows), max(m.high for m in rows), min(decimals(m) for m in rows))
