"""Gaussian variational approximation: the Gaussian q nearest to the posterior p in KL(q || p).

The expectation under q is a fixed Gauss-Hermite rule, so the objective is a smooth function with an exact gradient:
no Monte Carlo, no learning rate, the same answer every time. For a few dimensions. Nothing here knows of studies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..distributions import stack
from ..errors import InvalidStudy
from ..values import Floats
from .laplace import Laplace, Target, as_target, finite

#: Points of the product rule by default, spent on as many per dimension as that allows, between 3 and 32.
_POINTS = 250
#: Points of the product rule at most.
_MOST_POINTS = 100_000


@dataclass(frozen=True, eq=False)
class GaussianVariational:
    """The Gaussian with the least KL divergence from it to the posterior.

    Not calibrated in general: it settles inside the posterior and tends to be over-confident, the mean-field family
    also where the posterior itself is Gaussian with correlations.

    Parameters
    ----------
    log_likelihood, gradient, data_ndim
        As in :class:`~ringtrue.procedures.Laplace`. The log likelihood must be finite wherever a Gaussian has mass.
    family
        "full" covariance, or "mean-field": independent entries.
    nodes
        Points of the Gauss-Hermite rule per dimension; left out, 32 in one dimension, fewer in more.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> output = GaussianVariational(lambda theta, y: -0.5 * (y - theta) ** 2)(Normal(0, 1), 3.0)
    >>> round(float(output.mean), 6), round(float(output.sd) ** 2, 6)
    (1.5, 0.5)
    """

    log_likelihood: Callable[[Any, Any], Any]
    gradient: Callable[[Any, Any], Any] | None = None
    family: Literal["full", "mean-field"] = "full"
    nodes: int | None = None
    data_ndim: int | None = None

    #: Laplace's approximation, the start, takes its curvature from differences.
    hessian = None

    def __post_init__(self) -> None:
        if self.family not in ("full", "mean-field"):
            raise InvalidStudy(f"family must be 'full' or 'mean-field', but {self.family!r} arrived.")
        if self.nodes is not None and self.nodes < 2:
            raise InvalidStudy(f"nodes must be at least 2, or the spread is not seen, but {self.nodes} arrived.")

    def __call__(self, belief: Any, y: Any) -> Any:
        """Return the Gaussian, Normal for a parameter that is a number."""
        if self.data_ndim is not None and np.ndim(y) > self.data_ndim:
            return stack([self(belief, one) for one in y])
        target, draws = as_target(self, belief, y)
        d = draws.shape[1]
        # The entries of the Cholesky factor that may differ from zero.
        free = np.tril_indices(d) if self.family == "full" else np.diag_indices(d)
        objective = _Objective(target, *_product_rule(d, self.nodes), free)
        return target.output(*objective.least(_starts(self, target, draws)))


def _product_rule(d: int, nodes: int | None) -> tuple[Floats, Floats]:
    """Return points (k, d) and weights (k,) of the Gauss-Hermite rule for d independent standard normals."""
    # A root may come out just below a whole number, as 64^(1/3) does.
    each = nodes or min(max(int(_POINTS ** (1 / d) + 1e-9), 3), 32)
    if each**d > _MOST_POINTS:
        raise InvalidStudy(
            f"a product rule of at most {_MOST_POINTS} points is needed, but {each} nodes in {d} dimensions arrived; "
            f"take fewer nodes, or another method beyond about 10 dimensions."
        )
    # Its weights sum to sqrt(2 pi), the mass of exp(-x^2 / 2).
    x, w = np.polynomial.hermite_e.hermegauss(each)
    points = np.stack(np.meshgrid(*[x] * d, indexing="ij"), axis=-1).reshape(-1, d)
    weights = np.stack(np.meshgrid(*[w / w.sum()] * d, indexing="ij"), axis=-1).reshape(-1, d).prod(axis=1)
    return points, weights


def _starts(procedure: GaussianVariational, target: Target, draws: Floats) -> list[tuple[Floats, Floats]]:
    """Return (mean, Cholesky factor) of the belief and, where there is one, of Laplace's approximation."""
    d = draws.shape[1]
    starts: list[tuple[Floats, Floats]] = [(np.zeros(d), np.eye(d))]
    try:
        mode, cov = Laplace(procedure.log_likelihood, procedure.gradient).fit(target, draws)
        starts.append((mode, np.asarray(np.linalg.cholesky(cov), float)))
    except (ValueError, np.linalg.LinAlgError):  # a posterior without a curved mode can still have a best Gaussian
        pass
    return starts


@dataclass(frozen=True, eq=False)
class _Objective:
    """KL(q || p) up to a constant, of q = N(mean, L L'); the diagonal of L enters by its logarithm."""

    target: Target
    points: Floats
    weights: Floats
    free: tuple[NDArray[np.intp], ...]

    def least(self, starts: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        """Return mean and covariance where the divergence is least."""
        from scipy import optimize  # importing it takes 0.1 s

        ends = []
        for mean, factor in starts:
            if np.isfinite(self.value(start := self._packed(mean, factor))[0]):
                ends.append(optimize.minimize(self._walled, start, jac=True, options={"gtol": 1e-6}))
        if not ends:
            raise ValueError(
                "a log density that is finite wherever a Gaussian has mass is needed, but it is not; transform a "
                "bounded parameter to the whole line."
            )
        mean, factor = self._unpacked(min(ends, key=lambda end: float(end.fun)).x)
        return mean, factor @ factor.T

    def value(self, packed: Floats) -> tuple[float, Floats]:
        """Return the divergence and its gradient."""
        mean, factor = self._unpacked(packed)
        at = mean + self.points @ factor.T
        density = self.weights @ np.array([self.target.log_density(x) for x in at])
        # In units of q, not of the belief, which may be wider by any factor.
        steps = 1e-3 * np.sqrt(np.square(factor).sum(axis=1))
        slopes = self.weights[:, None] * finite([self.target.gradient(x, steps) for x in at])
        # The slope of E log p(mean + L x) by L is E[grad x']; by the logarithm of an entry it is that times the entry.
        by_factor = slopes.T @ self.points
        diagonal = np.diag_indices(len(mean))
        by_factor[diagonal] = by_factor[diagonal] * factor[diagonal] + 1  # of the entropy, log det L
        value = -float(density) - float(np.log(factor[diagonal]).sum())
        return value, -np.concatenate([slopes.sum(axis=0), by_factor[self.free]])

    def _walled(self, packed: Floats) -> tuple[float, Floats]:
        value, gradient = self.value(packed)
        return float(finite(value)), gradient

    def _packed(self, mean: Floats, factor: Floats) -> Floats:
        logs = factor - np.diag(np.diag(factor)) + np.diag(np.log(np.diag(factor)))
        return np.concatenate([mean, logs[self.free]])

    def _unpacked(self, packed: Floats) -> tuple[Floats, Floats]:
        d = self.points.shape[1]
        factor = np.zeros((d, d))
        factor[self.free] = packed[d:]
        factor[np.diag_indices(d)] = np.exp(np.diag(factor))
        return packed[:d], factor
