"""The verdict in words."""

from __future__ import annotations

from ..result import Verdict
from .findings import Findings
from .inconclusive import inconclusive
from .miscalibrated import miscalibrated
from .otherlevels import exactness
from .within import within


def sentence(verdict: Verdict, findings: Findings) -> str:
    """Return the verdict in words, then a line on the exact level if it was tested."""
    write = {
        Verdict.MISCALIBRATED: miscalibrated,
        Verdict.WITHIN_TOLERANCE: within,
        Verdict.INCONCLUSIVE: inconclusive,
    }
    text = write[verdict](findings)
    exact = next((item for item in findings.found if item.level == "exact"), None)
    return text if exact is None else f"{text}\n{exactness(exact, findings)}"
