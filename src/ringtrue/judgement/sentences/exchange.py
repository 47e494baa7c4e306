"""What is said where theta and a draw of the output cannot be exchanged, and no other test has found an error."""

from __future__ import annotations

from ..levels import Evidence, levels, reversible
from ..text import format_p
from .verdicts import Findings


def not_exchangeable(found: Evidence | None, findings: Findings) -> str:
    """Return the line; nothing if nothing was found, or others have found it."""
    # It has no share of alpha: that a right procedure meets this line must be as rare as what the weak level has of it.
    rare = findings.alpha * (levels()["weak"].share or 0.0)
    if found is None or found.pvalue > rare or findings.overall <= findings.alpha:
        return ""
    return (
        f"NOT EXCHANGEABLE (reversible, {format_p(found.pvalue)}): theta and a draw of the output cannot be "
        f"exchanged, as those of a calibrated procedure can: {reversible.difference(findings.replicates)}. This test "
        f"tells no size and has no share in the verdict; ask about functions that show this difference."
    )
