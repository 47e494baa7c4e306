"""What a look at a stored run has of the error budget, so that all looks together keep to it."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidStudy

#: Of alpha, what the first look has. A single look is what most runs get, and costs next to nothing this way.
FIRST = 0.8
#: What the second has; each later one has half of the one before, so that all later ones have twice this together, and
#: all looks have alpha. A run that grows after a look is judged by evidence over time, and all looks at that are one:
#: so no n is chosen after a look at tests for one n.
SECOND = 0.1
#: Below this no interval can be told from certainty.
LEAST = 1e-12


def share(number: int) -> float:
    """Return the part of alpha that a look has.

    Parameters
    ----------
    number
        Which look, counted from 1; 0 for a run that is kept nowhere, which is looked at once.

    Examples
    --------
    >>> [share(number) for number in (0, 1, 2, 3, 4)]
    [1.0, 0.8, 0.1, 0.05, 0.025]
    """
    if number == 0:
        return 1.0
    return FIRST if number == 1 else SECOND * 0.5 ** (number - 2)


@dataclass(frozen=True)
class Look:
    """Which look at a stored run a judgement is.

    Attributes
    ----------
    number
        Counted from 1; 0 if the run is kept nowhere, so that nobody can tell whether it was looked at before.
    known
        How many looks there were at the run, this one included.
    unwritten
        Why the file could not remember it; nothing if it does.
    anytime
        Whether it is one at evidence over time, which may be looked at as often as one likes, and counts once.
    """

    number: int = 0
    known: int = 0
    unwritten: str = ""
    anytime: bool = False

    def of(self, alpha: float) -> float:
        """Return what this look has of alpha."""
        spent = alpha * share(self.number)
        if spent < LEAST:
            raise InvalidStudy(
                f"look {self.number} at this run has {spent:.1g} left of alpha, and at least {LEAST:g} is needed; "
                f"judge a new run, with another seed."
            )
        return spent

    def later(self, alpha: float) -> float:
        """Return what a look will have of alpha when the run has grown."""
        if self.anytime:
            return self.of(alpha)
        return max(alpha * share(self.known + 1), LEAST) if self.number else alpha

    def said(self, alpha: float) -> str:
        """Say which look it is, and what that means; nothing of a run that is kept nowhere."""
        if not self.number:
            return ""
        return (
            f"Look {self.number} at this run: judged at {100 * self.of(alpha):.3g} %, so that all looks together have "
            f"{100 * alpha:.3g} %."
        )

    def notes(self) -> list[str]:
        """Return what a reader must know if the file does not remember the look."""
        if not self.unwritten:
            return []
        return [f"this look could not be written down, so that later ones will not know of it: {self.unwritten}"]
