"""A test in stages, which accepts early and keeps a budget of false alarms: algorithm 3 of Gandy and Scott.

Each stage has a p-value of fresh replicates. This module sees p-values and must not know where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..arguments import need_count, need_fraction

Decision = Literal["reject", "accept", "go on"]

#: Stages at most. More would reject small errors more often, and cost more replicates where nothing is wrong.
STAGES = 7
#: How many times the replicates of the first stage each later stage has.
GROWTH = 4


@dataclass(frozen=True)
class Stage:
    """One stage: how many fresh replicates it needs, the p-values at which it rejects, and above which it accepts."""

    n: int
    rejects: float
    accepts: float

    def decide(self, p: float) -> Decision:
        """Return what a p-value of this stage decides; the last stage never goes on.

        Examples
        --------
        >>> [stages(1e-5)[0].decide(p) for p in (1e-6, 0.01, 0.5)]
        ['reject', 'go on', 'accept']
        """
        if p <= self.rejects:
            return "reject"
        return "accept" if p > self.accepts else "go on"


def stages(alpha: float, *, first: int = 100) -> tuple[Stage, ...]:
    """Return the stages of a test that rejects what is right with probability alpha at most.

    It sees what the test sees whose p-values it is given. Small errors may well be accepted in the first stage: an
    error that makes p-values of `first` replicates smaller than 0.15 half of the time is accepted half of the time.

    Parameters
    ----------
    alpha : float
        The probability of rejecting if every p-value is valid and of replicates that no other stage has seen.
    first : int
        Replicates of the first stage. Every other has four times as many.

    Notes
    -----
    With b = alpha / 7 and g = b^(1/7), stage j rejects at p <= b g^(1 - j), goes on up to g more, and accepts above.
    If p is uniform it is reached with probability g^(j - 1) at most, and so rejects with probability b; seven such
    stages make alpha. What is rejected at one alpha is rejected at every larger one, on the same p-values, since all
    thresholds rise with alpha [1]_.

    References
    ----------
    .. [1] A. Gandy and J. Scott, "Unit testing for MCMC and other Monte Carlo methods", arXiv:2001.06465 (2020).

    Examples
    --------
    >>> for stage in stages(1e-5)[:3]:
    ...     print(stage.n, f"{stage.rejects:.6g} {stage.accepts:.6g}")
    100 1.42857e-06 0.146214
    400 9.77048e-06 0.146223
    400 6.68236e-05 0.14628
    """
    need_fraction(alpha=alpha)
    need_count(1, first=first)
    share = alpha / STAGES
    step = share ** (1 / STAGES)
    rejects = [share / step**j for j in range(STAGES)]
    accepts = [*(step + one for one in rejects[:-1]), rejects[-1]]
    return tuple(Stage(first * (GROWTH if j else 1), rejects[j], accepts[j]) for j in range(STAGES))


def expected(alpha: float, *, first: int = 100) -> float:
    """Return how many replicates it takes on average if p-values are uniform.

    Examples
    --------
    >>> round(expected(1e-5), 1)
    168.5
    """
    total, reached = 0.0, 1.0
    for stage in stages(alpha, first=first):
        total += reached * stage.n
        reached *= min(stage.accepts, 1.0) - min(stage.rejects, 1.0)
    return total
