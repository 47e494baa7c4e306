"""The multivariate normal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..functions import Context, Coordinate, Linear, TestFunction
from ..values import Floats, Generator, Numbers
from .contract import Distribution
from .elementwise import Normal
from .laws import Law


@dataclass(frozen=True, eq=False)
class Gaussian(Distribution):
    """A multivariate normal; a batch of them if ``mean`` is (n, d) and ``cov`` is (d, d) or (n, d, d).

    Examples
    --------
    >>> law = Gaussian([0.0, 0.0], [[2.0, 1.0], [1.0, 2.0]]).marginal(Linear([1.0, -1.0]))
    >>> round(float(law.sd) ** 2, 12)
    2.0
    """

    mean: Numbers
    cov: Numbers

    def __post_init__(self) -> None:
        mean, cov = np.array(self.mean, float), np.array(self.cov, float)
        # One covariance may serve a whole batch of means.
        batch = cov.shape[:-2] in ((), mean.shape[:-1])
        if mean.ndim not in (1, 2) or cov.ndim not in (2, 3) or cov.shape[-2:] != (mean.shape[-1],) * 2 or not batch:
            raise ValueError(
                f"Gaussian needs a mean of shape (d,) or (n, d) and a covariance (d, d) or (n, d, d), but "
                f"{mean.shape} and {cov.shape} arrived."
            )
        if not np.isfinite(cov).all():
            raise ValueError("Gaussian needs a finite covariance, but cov contains nan or an infinity.")
        if not np.allclose(cov, np.swapaxes(cov, -1, -2), rtol=1e-8, atol=0):
            raise ValueError("Gaussian needs a symmetric covariance, but cov differs from its transpose.")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "cov", cov)
        object.__setattr__(self, "_root", self._cholesky(cov))

    @staticmethod
    def _cholesky(cov: Floats) -> Floats:
        try:
            return np.asarray(np.linalg.cholesky(cov))
        except np.linalg.LinAlgError:
            least = float(np.linalg.eigvalsh(cov).min())
            raise ValueError(
                f"Gaussian needs a positive definite covariance, but its smallest eigenvalue is {least:.3g}; "
                f"a degenerate output has no density and no calibration to test along that direction."
            ) from None

    @property
    def batch(self) -> int:
        """How many outputs lie side by side; 0 for a single one."""
        return len(self.mean) if self.mean.ndim == 2 else 0

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        root: Floats = self._root  # type: ignore[attr-defined]
        # Not by rng.multivariate_normal, which factorises anew at every call and takes no batches.
        noise = rng.standard_normal((m, *self.mean.shape))
        return np.asarray(self.mean + np.einsum("...ij,...j->...i", root, noise))

    def marginal(self, f: TestFunction) -> Law | None:
        """Return the exact normal law of a coordinate or a linear function."""
        mean, cov = self.mean, self.cov
        if isinstance(f, Coordinate) and f.key is None and len(f.index) == 1:
            (j,) = f.index
            return Normal(mean[..., j], np.sqrt(cov[..., j, j]))
        if isinstance(f, Linear) and not isinstance(f.weights, Mapping):
            w = np.asarray(f.weights, float)
            return Normal(f.evaluate(mean, Context(mean.ndim - 1)), np.sqrt(np.einsum("...ij,i,j->...", cov, w, w)))
        return None

    def log_density(self, theta: ArrayLike) -> Floats:
        """Return the log density at each parameter."""
        root: Floats = self._root  # type: ignore[attr-defined]
        half_log_det = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
        return np.asarray(-0.5 * self.mahalanobis(theta) - half_log_det - 0.5 * root.shape[-1] * np.log(2 * np.pi))

    def mahalanobis(self, theta: ArrayLike) -> Floats:
        """Return the squared distance of each parameter from the mean, in the metric of the covariance."""
        root: Floats = self._root  # type: ignore[attr-defined]
        # A triangular factor keeps the accuracy that an inverse of the covariance would lose.
        white = np.linalg.solve(root, (np.asarray(theta, float) - self.mean)[..., None])[..., 0]
        return np.asarray(np.square(white).sum(-1))
