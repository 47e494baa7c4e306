"""Values to be tested: checked once, with what several tests compute from them. It knows no test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: No p-value is exactly zero: the smallest normal float stands for "smaller than can be computed".
TINY = float(np.finfo(float).tiny)
#: The distance from 1 at which u saturates.
EDGE = 2.0**-53
#: One minus a probability is only known to about this accuracy.
RESOLUTION = 1e-12
#: Up to here all ranks are used; beyond, a subset of them.
ALL_RANKS = 2000
#: Size of a simulated null sample.
SIMULATIONS = 9999


@dataclass(frozen=True)
class UniformityTest:
    """The outcome of one test of uniformity.

    Attributes
    ----------
    method : str
        Name of the test, a key of `TESTS`.
    statistic : float
    pvalue : float
        In (0, 1]; under the null hypothesis P(pvalue <= a) <= a, up to the accuracy each test states.
    """

    method: str
    statistic: float
    pvalue: float


@dataclass(frozen=True)
class Sample:
    """Validated values with what several tests compute from them, each computed once."""

    values: Floats | Ints
    draws: int | None
    scores: Floats | None = None

    @property
    def n(self) -> int:
        """The number of values."""
        return self.values.size

    @cached_property
    def sorted(self) -> Floats:
        """The values in order."""
        u = np.asarray(self.values, float)
        return np.sort(u) if np.any(u[1:] < u[:-1]) else u

    @cached_property
    def counts(self) -> Ints:
        """How often each rank occurred."""
        return np.bincount(np.asarray(self.values, int), minlength=(self.draws or 0) + 1)

    @cached_property
    def z(self) -> Floats:
        """Normal scores; values of u that have saturated count as the most extreme, not as missing."""
        if self.scores is not None:
            return self.scores
        return np.asarray(special.ndtri(np.clip(self.values, EDGE, 1.0 - EDGE)))


def as_sample(u: ArrayLike, draws: int | None, z: ArrayLike | None = None) -> Sample:
    """Check values, and scores if they are given."""
    values = np.asarray(u)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"expected a non-empty 1-d array of values, got shape {values.shape}")
    if draws is None:
        return Sample(_unit_interval(values), None, None if z is None else _normal_scores(z, values.size))
    if z is not None:
        raise ValueError("expected z only together with u on the continuum, got z and draws: leave one out")
    return Sample(_ranks(values, draws), int(draws))


def _unit_interval(values: NDArray[Any]) -> Floats:
    values = values.astype(float, copy=False)
    low, high = values.min(), values.max()
    if np.isnan(low):
        raise ValueError("expected values in [0, 1], got NaN: count lost replicates instead (ecdf_gamma has lost=)")
    if low < 0.0 or high > 1.0:
        raise ValueError(f"expected values in [0, 1], got {low:g} to {high:g}: for ranks pass draws=")
    return values


def _normal_scores(z: ArrayLike, n: int) -> Floats:
    values = np.asarray(z, float)
    if values.shape != (n,):
        raise ValueError(f"expected z of the shape of u, ({n},), got {values.shape}")
    with np.errstate(invalid="ignore"):  # saturated scores of both signs add up to nan
        suspicious = np.isnan(values.sum())
    if suspicious and np.isnan(values).any():
        raise ValueError("expected normal scores z, got NaN")
    return np.asarray(np.clip(values, -1e100, 1e100))


def _ranks(values: NDArray[Any], draws: int) -> Ints:
    if int(draws) != draws or draws < 1:
        raise ValueError(f"expected draws to be an integer of at least 1, got {draws}")
    if np.isnan(values.min()):
        raise ValueError("expected integer ranks, got NaN")
    ranks = values.astype(np.int64)
    if not np.array_equal(ranks, values):
        raise ValueError("expected integer ranks, got fractions: leave draws out if these are u in [0, 1]")
    if ranks.min() < 0 or ranks.max() > draws:
        raise ValueError(f"expected ranks in 0..{draws}, got {ranks.min()} to {ranks.max()}: is draws right?")
    return ranks


def as_result(method: str, statistic: float, pvalue: float) -> UniformityTest:
    """Return a result whose p-value is a float in (0, 1]."""
    return UniformityTest(method, float(statistic), float(min(1.0, max(pvalue, TINY))))
