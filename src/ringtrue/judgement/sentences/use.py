"""Outputs that say no more than the belief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...statistics.effects import Interval
from ...statistics.effects.usefulness import uninformative
from ..result import number
from .findings import Findings
from .phrases import listed


def useless(use: Mapping[str, Sequence[Interval]]) -> list[str]:
    """Return a note for every test function of which the outputs say no more than the belief.

    Parameters
    ----------
    use
        Contraction and skill by test function.
    """
    return [
        f"{name}: the output hardly depends on the data (skill {number(skill.estimate)}, contraction "
        f"{number(contraction.estimate)}): calibrated or not, it says no more than the belief."
        for name, (contraction, skill) in use.items()
        if uninformative(skill, contraction)
    ]


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
    return f"{which} the outputs say no more than the belief does (skill {skill})"


def of_no_use(findings: Findings) -> list[str]:
    """Return the entries of theta, or if there are none all test functions, of which the outputs say nothing."""
    return [name for name, (contraction, skill) in _asked(findings).items() if uninformative(skill, contraction)]


def _asked(findings: Findings) -> dict[str, Sequence[Interval]]:
    entries = {column.name for column in findings.replicates.columns if column.coordinate}
    return {name: both for name, both in findings.use.items() if not entries or name in entries}
