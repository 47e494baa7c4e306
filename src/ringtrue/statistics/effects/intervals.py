"""One number with its confidence interval, and the quantiles that intervals are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from ..arguments import Floats


@dataclass(frozen=True)
class Interval:
    """One number with its confidence interval.

    Parameters
    ----------
    name : str
        What is measured: "spread", "bias", "coverage", "KS distance", ...
    estimate, low, high : float
        The estimate (nan where the data cannot tell) and the ends of its interval.
    ideal : float
        The value under perfect calibration, 0 for a difference; for coverage the nominal one actually used; nan if
        there is none.
    f : str
        The name of the test function; empty if there is none.
    of : object
        What else it belongs to: a procedure's name, a pair of them for a difference, a value of a sweep, a fixed theta.
    within : {"yes", "no", "open", "-"}
        Whether it is in tolerance, as a verdict decides it; "-" if there is no tolerance.

    Examples
    --------
    >>> print(Interval("spread", 1.4142, 1.33, 1.504, 1.0))
    spread 1.41 (1.33 to 1.5; ideal 1)
    """

    name: str
    estimate: float
    low: float
    high: float
    ideal: float = math.nan
    f: str = ""
    of: Any = None
    within: Literal["yes", "no", "open", "-"] = "-"

    @property
    def certified(self) -> bool:
        """Whether it is shown to be in tolerance."""
        return self.within == "yes"

    @property
    def clear(self) -> bool:
        """Whether the interval excludes its ideal."""
        return self.low > self.ideal or self.high < self.ideal

    @property
    def shown(self) -> Literal["yes", "no", "open", "-"]:
        """What may be said of it in one word: an error whose interval allows for none is not shown to be too large."""
        return "open" if self.within == "no" and not self.clear else self.within

    def __str__(self) -> str:
        return f"{self.name} {self.estimate:.3g} ({self.low:.3g} to {self.high:.3g}; ideal {self.ideal:.3g})"


@dataclass(frozen=True)
class SpreadAndBias:
    """The spread factor and the bias of z ~ N(bias, spread^2)."""

    spread: Interval
    bias: Interval

    @classmethod
    def from_ends(cls, spread: tuple[float, float, float], bias: tuple[float, float, float]) -> SpreadAndBias:
        """Return both from their estimates and ends."""
        return cls(Interval("spread", *spread, 1.0), Interval("bias", *bias, 0.0))


def student(confidence: float, df: float) -> float:
    """Return the two-sided quantile; infinite without degrees of freedom."""
    # From the lower tail: one minus a tiny tail would round to 1, and its quantile to inf.
    return -float(special.stdtrit(df, (1 - confidence) / 2)) if df > 0 else math.inf


def freedom(influence: Floats) -> float:
    """Return Satterthwaite's degrees of freedom of the variance of the influences."""
    n, squares = influence.size, np.square(influence)
    # An estimated variance has the relative variance (kurtosis - 1) / n, a chi-squared with df degrees 2 / df.
    kurtosis = float(np.square(squares).mean()) / max(float(squares.mean()) ** 2, 1e-300)
    # Gaussian influences have n - 1. Below 2 one wild replicate would make the interval endless.
    return min(max(2 * n / max(kurtosis - 1, 1e-3), 2.0), n - 1.0)


def clopper_pearson(hits: float, n: float, confidence: float, lost: float) -> tuple[float, float]:
    """Return limits that hold however many of the lost were hits."""
    # All lost count as misses at the lower end and as hits at the upper.
    n, tail, most = n + lost, (1 - confidence) / 2, hits + lost
    low = float(special.betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(special.betainccinv(most + 1, n - most, tail)) if most < n else 1.0
    return low, high
