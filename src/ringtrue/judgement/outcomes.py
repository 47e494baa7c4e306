"""Outcomes with reported probabilities, as a judgement reads them: what is tested, and which sizes it has.

A verdict on probabilities rests on the same numbers whether they came as arrays or as a test function with few values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ..replicates.record import LABELS, SHARES
from ..statistics.arguments import Floats
from ..statistics.effects import Interval
from ..statistics.effects.reliability import beyond_line, calibration_error
from ..statistics.probabilities import ProbabilityTest, pooled, probability_test
from .column import FEW_VALUES, Column

#: The name of the size that a certificate is about.
ERROR = "calibration error"
#: Part of the way to its ideal that an interval must leave for a line in log odds to be what a test has seen.
LIKELY = 0.6
#: The p-value at which a line does not describe an error.
_BENT = 0.01


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
    numbers
        The numbers of the replicates; None if they are counted from 0.
    """

    outcome: Floats
    probability: Floats
    complement: Floats
    draws: Floats | None = None
    name: str = ""
    numbers: NDArray[Any] | None = None

    @classmethod
    def of_draws(cls, outcome: Floats, ones: Floats, draws: Floats, name: str = "") -> Outcomes:
        """Return outcomes whose probabilities are known by so many ones among so many draws."""
        share = pooled(outcome, ones, draws)
        return cls(outcome, share, 1 - share, np.broadcast_to(draws, share.shape), name)

    @property
    def impossible(self) -> list[int]:
        """The numbers of replicates whose outcome had been given the probability 0."""
        found = np.flatnonzero(np.where(self.outcome == 1, self.probability, self.complement) == 0)
        return [int(i) for i in (found if self.numbers is None else self.numbers[found])]

    @property
    def bent(self) -> bool:
        """Whether a line in log odds leaves more than noise."""
        return beyond_line(self.outcome, self.probability, complement=self.complement) < _BENT

    def test(self, rng: Generator) -> ProbabilityTest:
        """Test that outcomes have these probabilities."""
        return probability_test(self.outcome, self.probability, complement=self.complement, rng=rng)

    def error(self, confidence: float, lost: int, freedom: Literal[1, 2] = 2) -> Interval:
        """Return by how much probabilities are off on average."""
        return calibration_error(
            self.outcome,
            self.probability,
            complement=self.complement,
            confidence=confidence,
            draws=self.draws,
            lost=lost,
            freedom=freedom,
        )


def unexplained(sizes: Sequence[Interval], found: Sequence[Outcomes]) -> bool:
    """Whether the error that a test found is described by no size: no line in log odds shows it, nor is it small."""
    error = next(m for m in sizes if m.name == ERROR)
    lines = [m for m in sizes if m.name.startswith("log odds")]
    if error.certified:
        return False
    return max(map(reached, lines)) < LIKELY or next(one for one in found if one.name == error.of).bent


def reached(m: Interval) -> float:
    """Return how far the ideal is from the estimate, in units of the interval's reach on that side."""
    if m.estimate in (-math.inf, math.inf):  # its interval has one end
        return 1.0 if m.clear else 0.0
    reach = m.estimate - m.low if m.estimate > m.ideal else m.high - m.estimate
    return abs(m.estimate - m.ideal) / reach if 0 < reach < math.inf else 0.0


def outcomes_of(column: Column) -> tuple[Outcomes, ...]:
    """Return what a column of few values says of their probabilities; nothing of other columns.

    Of a function with values 0 and 1 that is one thing, whether it is 1; of more labels, one for each.

    Notes
    -----
    The null hypothesis "given p, the truth is 1 with probability p" looks like auto-calibration, since p is part of the
    output. For a function with two values it is the same as strong calibration. Let c(p) be the probability of 1 given
    p. The position u, with atoms spread, is uniform on (0, 1 - p) if the truth is 0 and on (1 - p, 1) if it is 1: its
    density at x is E[(1 - c) / (1 - p); x < 1 - p] + E[c / p; x > 1 - p]. If that is 1 everywhere, its difference
    between two places is 0: E[c / p - (1 - c) / (1 - p); 1 - p between them] = 0 for all of them, so that c(p) = p.
    Draws of the output are then as likely to be 1 as the truth given p, so that both can be exchanged. With more labels
    strong calibration, for every function of theta, has the indicator of each among its functions.
    """
    known: tuple[Outcomes, ...] | None = vars(column).get("_outcomes")
    if known is None:
        known = vars(column)["_outcomes"] = _found(column)
    return known


def _found(column: Column) -> tuple[Outcomes, ...]:
    kept = column.replicates.arrays.get(f"{SHARES}{column.name}")
    if kept is None or column.sees != "theta":
        return ()
    shares, truth = kept[column.rows].astype(float), column.array("truth")
    if not np.isfinite(shares).all():
        return ()
    each, draws = shares[:, :LABELS], shares[:, LABELS]
    came = truth[:, None] == np.arange(LABELS)
    present = np.flatnonzero((each > 0).any(axis=0) | came.any(axis=0))
    if present.size < 2 or _equal(each) < FEW_VALUES:
        return ()
    two = bool((present <= 1).all())
    ran = column.replicates
    numbers = ran.first + np.arange(ran.n)[column.rows]
    found = (_of_label(came[:, k], each, int(k), draws) for k in ([1] if two else present))
    names = [""] if two else [f"{k}" for k in present]
    return tuple(replace(one, name=name, numbers=numbers) for one, name in zip(found, names, strict=True))


def _equal(shares: Floats) -> float:
    """Return how often two draws of an output are equal."""
    return float(np.mean(np.square(shares).sum(axis=1) / np.square(shares.sum(axis=1))))


def _of_label(came: NDArray[np.bool_], shares: Floats, label: int, draws: Floats) -> Outcomes:
    """Return whether one label came: exact probabilities as they are, shares of draws with the truth among them."""
    t = came.astype(float)
    own, others = shares[:, label], np.delete(shares, label, axis=1).sum(axis=1)
    drawn = draws > 0
    p = np.where(drawn, (own + t) / (draws + 1), own)
    q = np.where(drawn, (others + 1 - t) / (draws + 1), others)
    return Outcomes(t, p, q, np.where(drawn, draws, np.inf) if drawn.any() else None)


@dataclass(frozen=True)
class LabelTest:
    """The outcome of a test of probabilities of several labels."""

    method: str
    statistic: float
    pvalue: float


def test(found: Sequence[Outcomes], stream: Callable[[], Generator], otherwise: Callable[[], Any]) -> Any:
    """Test the probabilities of all labels.

    Parameters
    ----------
    found
        Of :func:`outcomes_of`.
    stream
        Makes the random numbers of a test.
    otherwise
        The test of a function with ties, which has one half of the level where labels may have an order.
    """
    each = [one.test(stream()) for one in found]
    if len(each) == 1:
        return each[0]
    other, least = otherwise(), min(each, key=lambda one: one.pvalue)
    p = min(1.0, 2 * other.pvalue, 2 * len(each) * least.pvalue)
    return LabelTest(f"probabilities of {len(each)} values, resampled", least.statistic, p)


def route(found: Sequence[Outcomes]) -> str:
    """Return how probabilities came to be known."""
    draws = found[0].draws
    if draws is None:
        return "exact probabilities"
    low, high = draws.min(), draws.max()
    if not np.isfinite(high):
        return "exact or shares"
    return f"shares of {low:.0f}" if low == high else f"shares of {low:.0f}-{high:.0f}"
