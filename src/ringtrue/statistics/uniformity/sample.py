"""Values to be tested: checked once, with what several tests compute from them. It knows no test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...errors import InvalidStudy
from ..arguments import Floats, Ints, as_ranks, as_values

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

    ``method`` is a key of `TESTS`; under the null hypothesis P(pvalue <= a) <= a, up to the accuracy each test states.
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
    if draws is None:
        values = as_values(u, "u")
        return Sample(values, None, None if z is None else _normal_scores(z, values.size))
    if z is not None:
        raise InvalidStudy("z is for u on the continuum only, but z and draws arrived; leave one out.")
    return Sample(as_ranks(u, draws), int(draws))


def _normal_scores(z: ArrayLike, n: int) -> Floats:
    values = np.asarray(z, float)
    if values.shape != (n,):
        raise InvalidStudy(f"z must have the shape of u, ({n},), but {values.shape} arrived.")
    with np.errstate(invalid="ignore", over="ignore"):  # saturated scores of both signs add up to nan
        suspicious = np.isnan(values.sum())
    if suspicious and np.isnan(values).any():
        raise InvalidStudy("z must not contain nan; leave lost replicates out.")
    return np.asarray(np.clip(values, -1e100, 1e100))


def as_result(method: str, statistic: float, pvalue: float) -> UniformityTest:
    """Return a result whose p-value is a float in (0, 1]."""
    return UniformityTest(method, float(statistic), float(min(1.0, max(pvalue, TINY))))
