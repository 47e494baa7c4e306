"""Probabilistic stationary iterative methods for linear systems y = A theta.

An iteration x -> G x + B y with fixed point theta is applied to the belief instead of to one start: k steps turn
N(m, C) into N(G^k m + (I - G^k) theta, G^k C G^k'). For every *linear* test function u is exactly uniform. It is not
strongly calibrated all the same: the squared norm shows it, and so does the weak test. Nothing here knows of studies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..distributions import Gaussian
from ..errors import InvalidStudy
from ..values import Floats


@dataclass(frozen=True, eq=False)
class _Stationary:
    """What Richardson and Jacobi share; ``correction`` is the matrix B of x -> x + B (y - A x)."""

    A: ArrayLike
    steps: int = 1

    def simulate(self, theta: ArrayLike) -> Floats:
        """Return y = A theta; there is no noise."""
        return np.asarray(np.asarray(theta, float) @ self._matrix.T)

    def __call__(self, belief: Any, y: ArrayLike) -> Gaussian:
        """Return the belief moved by the iteration."""
        if not isinstance(belief, Gaussian):
            raise InvalidStudy(f"{type(self).__name__} needs a Gaussian belief, but {type(belief).__name__} arrived.")
        error = np.linalg.matrix_power(np.eye(len(self._matrix)) - self.correction @ self._matrix, self.steps)
        values = np.linalg.svd(error, compute_uv=False)
        # Squared in the covariance: beyond what a Cholesky factor resolves.
        if values[-1] <= 1e-7 * max(values[0], 1.0):
            raise InvalidStudy(
                f"{type(self).__name__} solves the system to rounding along at least one direction (singular value "
                f"{values[-1]:.2g} of its error matrix), so its output is degenerate and cannot be tested there; "
                f"choose another step size or fewer steps."
            )
        solution = np.linalg.solve(self._matrix, np.asarray(y, float)[..., None])[..., 0]
        # G^k m + (I - G^k) theta about theta: digits are not lost in I - G^k when the iteration has nearly converged.
        mean = solution + (np.asarray(belief.mean) - solution) @ error.T
        cov = error @ np.asarray(belief.cov) @ error.T
        return Gaussian(mean, np.broadcast_to((cov + cov.T) / 2, (*mean.shape[:-1], *cov.shape)))

    @property
    def correction(self) -> Floats:
        """The matrix B of the iteration."""
        raise TypeError(f"{type(self).__name__} must say how it corrects.")

    @property
    def _matrix(self) -> Floats:
        matrix = np.asarray(self.A, float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or self.steps < 1:
            raise InvalidStudy(
                f"a stationary iteration needs a square matrix and at least one step, but shape {matrix.shape} and "
                f"{self.steps} steps arrived."
            )
        return matrix


@dataclass(frozen=True, eq=False)
class Richardson(_Stationary):
    """Richardson's iteration x -> x + step (y - A x).

    Examples
    --------
    >>> Richardson([[1.0]], step=0.5)(Gaussian([0.0], [[1.0]]), [2.0]).cov
    array([[0.25]])
    """

    step: float = 1.0

    @property
    def correction(self) -> Floats:
        """The step times the identity."""
        return self.step * np.eye(len(self._matrix))


@dataclass(frozen=True, eq=False)
class Jacobi(_Stationary):
    """Jacobi's iteration x -> x + D^{-1} (y - A x), D the diagonal of A.

    Examples
    --------
    >>> Jacobi([[2.0, 1.0], [1.0, 2.0]])(Gaussian([0.0, 0.0], np.eye(2)), [2.0, 2.0]).mean
    array([1., 1.])
    """

    @property
    def correction(self) -> Floats:
        """The inverse of the diagonal."""
        diagonal = np.diag(self._matrix)
        if np.any(diagonal == 0):
            raise InvalidStudy("Jacobi's iteration needs a diagonal without zeros, but A has one; reorder the system.")
        return np.diag(1 / diagonal)
