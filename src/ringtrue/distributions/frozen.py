"""Frozen distributions of scipy, and beliefs given as a function of rng."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..functions import Coordinate, Distance, TestFunction
from ..values import Floats, Generator, stack_values
from .contract import Distribution
from .laws import Folded, Law


@dataclass(frozen=True, eq=False)
class ScipyLaw(Law, Distribution):
    """A frozen univariate scipy distribution, continuous or discrete."""

    frozen: Any

    @property
    def atoms(self) -> bool:
        """Whether the distribution is discrete."""
        return hasattr(self.frozen, "pmf")

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x)."""
        return np.asarray(self.frozen.cdf(x), float)

    def sf(self, x: ArrayLike) -> Floats:
        """Return P(X > x)."""
        return np.asarray(self.frozen.sf(x), float)

    def cdf_left(self, x: ArrayLike) -> Floats:
        """Return P(X < x)."""
        return np.maximum(self.cdf(x) - self.frozen.pmf(x), 0) if self.atoms else self.cdf(x)

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        args = (*self.frozen.args, *self.frozen.kwds.values())
        batch = np.broadcast_shapes(*(np.shape(value) for value in args))
        return np.asarray(self.frozen.rvs(size=(m, *batch), random_state=rng))

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation."""
        return np.asarray(self.frozen.mean(), float), np.asarray(self.frozen.std(), float)

    def ppf(self, p: ArrayLike) -> Floats:
        """Return the quantile."""
        return np.asarray(self.frozen.ppf(p), float)

    def marginal(self, f: TestFunction) -> Law | None:
        """Return the law itself for the identity, and the folded law for a distance."""
        if isinstance(f, Coordinate) and f == Coordinate():
            return self
        if isinstance(f, Distance) and np.ndim(f.center) == 0 and not isinstance(f.center, Mapping):
            return Folded(self, float(f.center), float(f.scale))
        return None

    def log_density(self, theta: ArrayLike) -> Floats:
        """Return the log density, or log mass, of each parameter."""
        log = self.frozen.logpmf if self.atoms else self.frozen.logpdf
        return np.asarray(log(theta), float)


@dataclass(frozen=True, eq=False)
class Sampler(Distribution):
    """A belief given as a function of rng alone, called once per draw."""

    function: Callable[[Generator], Any]

    def sample(self, m: int, rng: Generator) -> Any:
        """Return m draws on axis 0 (a list if they are not numbers)."""
        return stack_values([self.function(rng) for _ in range(m)])
