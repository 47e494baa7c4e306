"""Frozen distributions of scipy, its kernel density estimates, and beliefs given as a function of rng."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..functions import Coordinate, Distance, Linear, TestFunction
from ..values import Floats, Generator, stack_values
from .contract import Distribution
from .laws import Folded, Law, score_of


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


@dataclass(frozen=True, eq=False)
class KernelLaw(Law):
    """Normals of one width around points: the law of one number under a kernel density estimate."""

    points: Floats
    sd: float
    weights: Floats

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x)."""
        return np.asarray(special.ndtr(self._scores(x)) @ self.weights)

    def sf(self, x: ArrayLike) -> Floats:
        """Return P(X > x)."""
        return np.asarray(special.ndtr(-self._scores(x)) @ self.weights)

    def log_tails(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """Return the logarithms of both tails, however small."""
        z = self._scores(x)
        lower, upper = (special.logsumexp(special.log_ndtr(tail), axis=-1, b=self.weights) for tail in (z, -z))
        return np.minimum(lower, 0.0), np.minimum(upper, 0.0)

    def zscore(self, x: ArrayLike) -> Floats:
        """Return the normal score of x, from whichever tail is small."""
        return score_of(*self.log_tails(x))

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        return np.asarray(rng.choice(self.points, size=m, p=self.weights) + self.sd * rng.standard_normal(m))

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation."""
        mean = self.points @ self.weights
        return np.asarray(mean), np.sqrt(self.sd**2 + np.square(self.points - mean) @ self.weights)

    def _scores(self, x: ArrayLike) -> Floats:
        return np.asarray((np.asarray(x, float)[..., None] - self.points) / self.sd)


@dataclass(frozen=True, eq=False)
class Kernels(Distribution):
    """A ``scipy.stats.gaussian_kde``: of one number, or of a vector if it has several dimensions."""

    kde: Any
    batch = 0

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        drawn = np.asarray(self.kde.resample(m, seed=rng))
        return drawn[0] if self.kde.d == 1 else drawn.T

    def marginal(self, f: TestFunction) -> Law | None:
        """Return the exact law of the number, of an entry, or of a linear function of the vector."""
        if isinstance(f, Linear) and not isinstance(f.weights, Mapping):
            return self._along(np.asarray(f.weights, float).reshape(-1))
        if isinstance(f, Coordinate) and f.key is None and len(f.index) == (self.kde.d > 1):
            return self._along(np.eye(self.kde.d)[f.index[0] if f.index else 0])
        return None

    def _along(self, direction: Floats) -> KernelLaw:
        kde = self.kde
        return KernelLaw(direction @ kde.dataset, float(np.sqrt(direction @ kde.covariance @ direction)), kde.weights)

    def log_density(self, theta: ArrayLike) -> Floats:
        """Return the log density of each parameter."""
        values = np.asarray(theta, float)
        own = values[..., None] if self.kde.d == 1 else values
        return np.asarray(self.kde.logpdf(own.reshape(-1, self.kde.d).T)).reshape(own.shape[:-1])
