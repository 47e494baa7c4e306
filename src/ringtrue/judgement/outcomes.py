"""Outcomes with reported probabilities, as a judgement reads them: what is tested, and which sizes it has.

A verdict on probabilities rests on the same numbers whether they came as arrays or as a test function with few values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.random import Generator

from ..statistics.arguments import Floats
from ..statistics.effects import Interval
from ..statistics.effects.reliability import calibration_error, log_odds
from ..statistics.probabilities import ProbabilityTest, pooled, probability_test
from .verdict import ERROR, Tolerance, within

#: Shares of fewer draws blur the probabilities too much to show that they are right.
_STEADY = 50


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Whether something came, and what was reported for it.

    Attributes
    ----------
    outcome
        0 or 1, (n,).
    probability, complement
        The reported probability and one minus it; with draws, the shares of ones and zeros among truth and draws.
    draws
        M of every outcome, if probabilities are known by draws; None if they are exact.
    name
        What came.
    """

    outcome: Floats
    probability: Floats
    complement: Floats
    draws: Floats | None = None
    name: str = ""

    @classmethod
    def of_draws(cls, outcome: Floats, ones: Floats, draws: Floats, name: str = "") -> Outcomes:
        """Return outcomes whose probabilities are known by so many ones among so many draws."""
        share = pooled(outcome, ones, draws)
        return cls(outcome, share, 1 - share, np.broadcast_to(draws, share.shape), name)

    @property
    def impossible(self) -> list[int]:
        """The numbers of outcomes that had been given the probability 0."""
        chance = np.where(self.outcome == 1, self.probability, self.complement)
        return [int(i) for i in np.flatnonzero(chance == 0)]

    @property
    def certain(self) -> bool:
        """Whether all probabilities are 0 or 1, so that nothing is left to chance."""
        return not bool((self.probability * self.complement).any())

    def at(self, rows: Sequence[int] | slice) -> Outcomes:
        """Return some of the outcomes."""
        some = (part[rows] for part in (self.outcome, self.probability, self.complement))
        return Outcomes(*some, None if self.draws is None else self.draws[rows], self.name)

    def test(self, rng: Generator) -> ProbabilityTest:
        """Test that outcomes have these probabilities."""
        return probability_test(self.outcome, self.probability, complement=self.complement, rng=rng)

    def sizes(self, *, alpha: float, confidence: float, tolerance: Tolerance, lost: int = 0) -> list[Interval]:
        """Return slope and shift of log odds, and the error of probabilities with whether it is in tolerance.

        Parameters
        ----------
        alpha
            The chance of certifying an error at the limit of its tolerance.
        confidence
            Of every interval.
        tolerance
            How large an error may be.
        lost
            How many outcomes were lost.
        """
        line = log_odds(self.outcome, self.probability, complement=self.complement, confidence=confidence)
        error = self._error(confidence, lost)
        certifying, known = self._error(_both(alpha), lost), self._error(_both(2 * alpha), 0, freedom=1)
        is_in = within(certifying, known, tolerance)
        few = self.draws is not None and float(np.median(self.draws)) < _STEADY
        error = replace(error, within="open" if few and is_in == "yes" else is_in)
        return [line.slope, line.shift, error]

    def _error(self, confidence: float, lost: int, freedom: Literal[1, 2] = 2) -> Interval:
        return calibration_error(
            self.outcome,
            self.probability,
            complement=self.complement,
            confidence=confidence,
            draws=self.draws,
            lost=lost,
            freedom=freedom,
        )


def _both(alpha: float) -> float:
    """Return the confidence of intervals each end of which is missed with probability alpha."""
    return max(1 - 2 * alpha, 0.01)


def unexplained(sizes: Sequence[Interval]) -> bool:
    """Whether the error that a test found is described by no size: no line in log odds shows it, nor is it small."""
    small = any(m.name == ERROR and m.certified for m in sizes)
    return not small and not any(m.clear for m in sizes if m.name.startswith("log odds"))


def worst_of(each: Sequence[Sequence[Interval]]) -> list[Interval]:
    """Return the sizes of several values as one: those of the value whose probabilities may be off most.

    All of them are in tolerance if each is.
    """
    found = max(each, key=lambda sizes: (sizes[-1].low, sizes[-1].high))
    inside: list[Literal["yes", "no", "open", "-"]] = [sizes[-1].within for sizes in each]
    whole: Literal["yes", "no", "open"] = "no" if "no" in inside else "yes" if set(inside) == {"yes"} else "open"
    high = max(sizes[-1].high for sizes in each)
    return [*found[:-1], replace(found[-1], high=high, within=whole)]
