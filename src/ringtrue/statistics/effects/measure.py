"""A measure: one number with its confidence interval; and the quantiles that intervals are made of."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from .inputs import Floats


@dataclass(frozen=True)
class Measure:
    """One number that describes miscalibration, with its confidence interval.

    Parameters
    ----------
    name : str
        What is measured: "spread", "bias", "coverage" or "distance".
    estimate, low, high : float
        The estimate (nan where the data cannot tell) and the ends of its interval.
    ideal : float
        The value under perfect calibration; for coverage this is the nominal level actually used.
    """

    name: str
    estimate: float
    low: float
    high: float
    ideal: float

    def __str__(self) -> str:
        return f"{self.name} {self.estimate:.3g} ({self.low:.3g} to {self.high:.3g}; ideal {self.ideal:.3g})"


@dataclass(frozen=True)
class SpreadAndBias:
    """The spread factor and the bias of z ~ N(bias, spread^2)."""

    spread: Measure
    bias: Measure


def both(spread: tuple[float, float, float], bias: tuple[float, float, float]) -> SpreadAndBias:
    """Return spread and bias from their estimates and ends."""
    return SpreadAndBias(Measure("spread", *spread, 1.0), Measure("bias", *bias, 0.0))


def student(level: float, df: float) -> float:
    """Two-sided quantile; infinite without degrees of freedom."""
    return -float(special.stdtrit(df, (1 - level) / 2)) if df > 0 else math.inf


def freedom(influence: Floats) -> float:
    """Return Satterthwaite's degrees of freedom of the variance of the influences."""
    n, squares = influence.size, np.square(influence)
    kurtosis = float(np.square(squares).mean()) / max(float(squares.mean()) ** 2, 1e-300)
    return min(max(2 * n / max(kurtosis - 1, 1e-3), 2.0), n - 1.0)


def clopper_pearson(hits: int, n: int, level: float, lost: int) -> tuple[float, float]:
    """Limits that hold however many of the lost were hits."""
    n, tail, most = n + lost, (1 - level) / 2, hits + lost
    low = float(special.betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(special.betainccinv(most + 1, n - most, tail)) if most < n else 1.0
    return low, high
