"""Gaussian-process regression: beliefs over functions, and outputs that answer for any point.

A parameter is a function theta(x), observed at some points; test functions are :class:`~ringtrue.Evaluate`. A kernel is
any k(x, x'). If it also has features, k(x, x') = features(x) . features(x'), then functions can be drawn, each one
defined everywhere, and the regression is done by orthogonal projection of features, which keeps twice as many digits as
a Cholesky factor of the kernel matrix: no jitter is added, ever. Nothing here knows of studies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..distributions import Distribution, Gaussian, Normal
from ..errors import InvalidStudy
from ..functions import Evaluate, TestFunction
from ..values import Floats, Generator, Ints

Features = Callable[[Floats], Floats]

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Kernel:
    """A covariance function, and how it factorises if that is known.

    Parameters
    ----------
    function
        ``k(x, x')`` for arrays of points that broadcast against each other.
    features
        ``features(x)`` adds an axis of features behind the points, with k(x, x') = features(x) . features(x').
        Without it functions cannot be drawn, only their laws given.
    size
        The number of features.
    ndim
        The number of axes of one point: 0 for numbers, 1 for vectors, whose axis comes last and is the function's to
        sum over.

    Examples
    --------
    >>> float(Kernel(lambda a, b: np.exp(-abs(a - b))).matrix([0.0], [0.0])[0, 0])
    1.0
    """

    function: Callable[[Any, Any], Any]
    features: Features | None = None
    size: int = 0
    ndim: int = 0

    def __post_init__(self) -> None:
        if (self.features is None) != (self.size == 0):
            raise InvalidStudy(f"a kernel needs features and their number, or neither, but size {self.size} arrived.")

    def matrix(self, a: ArrayLike, b: ArrayLike) -> Floats:
        """Return k between all points of a, shape (..., n), and all of b, shape (..., m)."""
        left = np.expand_dims(np.asarray(a, float), -1 - self.ndim)
        right = np.expand_dims(np.asarray(b, float), -2 - self.ndim)
        return np.asarray(self.function(left, right), float)

    def variance(self, x: Floats) -> Floats:
        """Return k(x, x) for every point."""
        return np.asarray(self.function(x, x), float)

    def at(self, x: Floats) -> Floats:
        """Return the features of points, of a kernel that has them."""
        assert self.features is not None
        return self.features(x)

    def scaled(self, by: Callable[[Any], Any]) -> Kernel:
        """Return the kernel of by(x) g(x), where g has this one."""
        function = lambda a, b: by(a) * self.function(a, b) * by(b)  # noqa: E731
        if self.features is None:
            return Kernel(function, ndim=self.ndim)
        return Kernel(function, lambda x: np.asarray(by(x))[..., None] * self.at(x), self.size, self.ndim)


def as_kernel(value: Any) -> Kernel:
    """Turn a function k(x, x') of numbers into a kernel.

    Examples
    --------
    >>> as_kernel(lambda a, b: np.minimum(a, b)).features is None
    True
    """
    if isinstance(value, Kernel):
        return value
    if callable(value):
        return Kernel(value)
    raise InvalidStudy(f"a kernel must be a function k(x, x') or a Kernel, but {type(value).__name__} arrived.")


def squared_exponential(length: float, *, interval: tuple[float, float] = (0.0, 1.0)) -> Kernel:
    """Return the kernel exp(-(x - x')^2 / length^2) of numbers, with features on an interval.

    Parameters
    ----------
    length
        There is no factor 2 in the exponent.
    interval
        Where the features hold; points outside are refused.

    Notes
    -----
    The features are cosines and sines: the kernel is the average of cos(w (x - x')) over normal frequencies w, and the
    trapezoidal rule for that average errs by the kernel at a period's distance only. The period is that of the interval
    and 6 lengths, exp(-36) = 2e-16; frequencies beyond 12 / length weigh less than exp(-36) too.

    Examples
    --------
    >>> kernel = squared_exponential(0.1)
    >>> phi = kernel.features(np.array([0.2, 0.3]))
    >>> round(float(phi[0] @ phi[1] / np.exp(-1)), 12)
    1.0
    """
    low, high = interval
    if not length > 0 or not high > low:
        raise InvalidStudy(f"a positive length and an interval are needed, but {length} and {interval} arrived.")
    step = 2 * np.pi / (high - low + 6 * length)
    frequencies = step * np.arange(np.ceil(12 / (length * step)) + 1)
    weights = np.exp(-0.25 * np.square(frequencies * length)) * step * length / np.sqrt(np.pi)
    # All others stand for themselves and for their negatives.
    weights[0] /= 2
    waves = _Waves(frequencies, np.sqrt(weights), (low, high))
    return Kernel(lambda a, b: np.exp(-np.square((a - b) / length)), waves, 2 * len(frequencies) - 1)


@dataclass(frozen=True, eq=False)
class _Waves:
    """Cosines and sines of the given frequencies, the first of which is 0, with amplitudes."""

    frequencies: Floats
    amplitudes: Floats
    interval: tuple[float, float]

    def __call__(self, x: Floats) -> Floats:
        points = np.asarray(x, float)
        low, high = self.interval
        if points.size and not (low <= points.min() and points.max() <= high):
            raise InvalidStudy(
                f"points must lie in [{low:g}, {high:g}], where the kernel's features hold, but {points.min():g} to "
                f"{points.max():g} arrived; make the kernel with a larger interval=."
            )
        angles = points[..., None] * self.frequencies
        cosines, sines = np.cos(angles) * self.amplitudes, np.sin(angles) * self.amplitudes
        return np.concatenate([cosines, sines[..., 1:]], axis=-1)


def at_points(kernel: Any, points: ArrayLike) -> Kernel:
    """Return the kernel with features that are exact at the given points, and where these determine the function.

    For kernels whose features are not known. Drawing functions at a point where they are not determined by their values
    at ``points`` is refused, because such draws would have too small a variance.

    Examples
    --------
    >>> brownian = at_points(lambda a, b: np.minimum(a, b), [0.5, 1.0])
    >>> brownian.features(np.array([1.0])).shape
    (1, 2)
    """
    inner, where = as_kernel(kernel), np.asarray(points, float)
    values, vectors = np.linalg.eigh(inner.matrix(where, where))
    kept = values > len(values) * _EPS * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept])

    def features(x: Floats) -> Floats:
        phi = np.asarray(inner.matrix(x.reshape(-1, *x.shape[x.ndim - inner.ndim :]), where) @ root)
        phi = phi.reshape(*x.shape[: x.ndim - inner.ndim], -1)
        missing = np.asarray(inner.variance(x) - np.square(phi).sum(-1))
        # Dividing by small roots of eigenvalues leaves the features half of the digits.
        if (bad := missing > 1e-8 * inner.variance(x)).any():
            raise InvalidStudy(
                f"functions can be drawn only where the given points determine them, but at {x[bad][0]} they leave a "
                f"variance of {missing[bad].max():.3g}; add the point to points=."
            )
        return phi

    return Kernel(inner.function, features, root.shape[1], inner.ndim)


@dataclass(frozen=True, eq=False)
class Paths:
    """Functions mean(x) + features(x) . weights, as many as ``weights`` has leading axes.

    Calling it at one point gives the value of every function there; at an array of points, whose last axis counts
    them, the values of every function at all of them. Points with as many leading axes as the weights give every
    function points of its own. Indexing picks functions.

    Examples
    --------
    >>> paths = GaussianProcess(squared_exponential(0.1)).sample(3, np.random.default_rng(0))
    >>> paths(0.5).shape, paths([0.1, 0.2]).shape, paths[0]([0.1, 0.2]).shape
    ((3,), (3, 2), (2,))
    """

    kernel: Kernel
    weights: Floats
    mean: Any = 0.0

    def __call__(self, x: ArrayLike) -> Floats:
        """Return the values at one point or several."""
        points = np.asarray(x, float)
        phi = self.kernel.at(points)
        if points.ndim == self.kernel.ndim:
            return np.asarray(self.weights @ phi + _at(self.mean, points))
        return np.asarray((phi @ self.weights[..., None])[..., 0] + _at(self.mean, points))

    def __len__(self) -> int:
        if self.weights.ndim == 1:
            raise TypeError("a single function has no length; sample more than one, or index no further.")
        return len(self.weights)

    def __getitem__(self, index: Any) -> Paths:
        return Paths(self.kernel, self.weights[index], self.mean)


def _at(mean: Any, x: Floats) -> Any:
    """Return a mean, a number or a function, at points."""
    return mean(x) if callable(mean) else mean


def _point(f: TestFunction) -> Floats | None:
    """Return where a test function evaluates the parameter; None if it does something else."""
    return np.asarray(f.x, float) if isinstance(f, Evaluate) and f.component is None else None


@dataclass(frozen=True)
class GaussianProcess(Distribution):
    """The belief that theta is a Gaussian process.

    Parameters
    ----------
    kernel
        A :class:`Kernel` or a function k(x, x'); draws need one with features.
    mean
        A number or a function of x.

    Examples
    --------
    >>> belief = GaussianProcess(squared_exponential(0.1).scaled(lambda x: 1 + x))
    >>> float(belief.marginal(Evaluate(1.0)).sd)
    2.0
    """

    kernel: Any
    mean: Any = 0.0

    @cached_property
    def _kernel(self) -> Kernel:
        return as_kernel(self.kernel)

    @property
    def sample(self) -> Callable[[int, Generator], Paths] | None:
        """M functions, or None if the kernel has no features."""
        return None if self._kernel.features is None else self._sample

    def _sample(self, m: int, rng: Generator) -> Paths:
        return Paths(self._kernel, rng.standard_normal((m, self._kernel.size)), self.mean)

    def marginal(self, f: TestFunction) -> Normal | None:
        """Return the exact law of the value at a point."""
        if (x := _point(f)) is None:
            return None
        return Normal(_at(self.mean, x), np.sqrt(self._kernel.variance(x)))


@dataclass(frozen=True)
class FittedGP:
    """Gaussian-process regression with known kernel and fitted scale; the belief is ignored.

    Parameters
    ----------
    kernel
        A :class:`Kernel` or a function k(x, x').
    points
        Where theta is observed. Given, y is an array of values, (n,) or (replicates, n); left out, y is a dict of such
        arrays, {"x": points, "y": values}, and every replicate may have points of its own.
    noise
        The standard deviation of the observation noise in units of the scale.
    mean
        The prior mean, a number or a function of x.
    scale
        "fitted" by maximum likelihood, scale^2 = y' K^{-1} y / n; or a number.

    Examples
    --------
    >>> output = FittedGP(squared_exponential(0.3))(None, {"x": [0.0, 0.5], "y": [1.0, -1.0]})
    >>> law = output.marginal(Evaluate(0.25))
    >>> round(float(law.mean), 6), round(float(law.sd), 3)
    (0.0, 0.752)
    """

    kernel: Any
    points: Any = None
    noise: float = 0.0
    mean: Any = 0.0
    scale: float | Literal["fitted"] = "fitted"

    def __post_init__(self) -> None:
        as_kernel(self.kernel)
        # A string is asked about first: it cannot be compared with 0.
        known = self.scale == "fitted" or (not isinstance(self.scale, str) and self.scale > 0)
        if self.noise < 0 or not known:
            raise InvalidStudy(
                f"FittedGP needs noise >= 0 and a scale that is 'fitted' or positive, but {self.noise} and "
                f"{self.scale!r} arrived."
            )

    def __call__(self, belief: Any, y: Any) -> Regression:
        """Return the regression on one dataset or a batch."""
        x, values = self._data(y)
        kernel = as_kernel(self.kernel)
        design = _by_features(kernel, x, self.noise) if kernel.features else _by_matrix(kernel, x, self.noise)
        white = design.whitened(values - _at(self.mean, x))
        scale: Any = self.scale
        if self.scale == "fitted":
            # Points that coincide count once.
            scale = np.sqrt(np.square(white).sum(-1) / design.rank)
        return Regression(design, white, np.broadcast_to(np.asarray(scale, float), white.shape[:-1]), self.mean)

    def _data(self, y: Any) -> tuple[Floats, Floats]:
        """Return points and values with the same leading axes."""
        x, values = (y["x"], y["y"]) if self.points is None else (self.points, y)
        x, values = np.asarray(x, float), np.asarray(values, float)
        own = x.shape[x.ndim - as_kernel(self.kernel).ndim :]
        try:
            return np.broadcast_to(x, (*values.shape, *own)), values
        except ValueError:
            raise InvalidStudy(
                f"FittedGP needs one value per point, but points of shape {x.shape} and values of shape {values.shape} "
                f"arrived."
            ) from None


@dataclass(frozen=True, eq=False)
class _Design(ABC):
    """Points of observation, seen from which the process has independent unit coordinates."""

    kernel: Kernel
    points: Floats
    noise: float
    root: Floats  # (..., n, n): coordinates from values
    rank: Ints

    def whitened(self, values: Floats) -> Floats:
        """Return values at the points, (..., n), as uncorrelated coordinates."""
        return np.asarray((self.root @ values[..., None])[..., 0])

    @abstractmethod
    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the covariance of theta at points with the coordinates, (..., k, n), and its variance given them."""

    @abstractmethod
    def covariance(self, x: Floats) -> Floats:
        """Return the covariance of theta at points, (..., k, k), given the coordinates."""

    def refuse_observed(self, x: Floats) -> None:
        """Refuse points whose value the data give away: there is no distribution left to test."""
        if self.noise:
            return
        same = np.expand_dims(self.points, -1 - self.kernel.ndim) == x
        if same.all(axis=tuple(range(-self.kernel.ndim, 0))).any():
            raise InvalidStudy(
                "theta was observed without noise at a point where it is to be tested, and its law there is a point; "
                "test it elsewhere, or give FittedGP a noise."
            )


@dataclass(frozen=True, eq=False)
class _FeatureDesign(_Design):
    """Features of the points, orthonormalised: what they leave of another point's features is its uncertainty."""

    basis: Floats  # (..., n, features): orthonormal rows

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        phi = self.kernel.at(x)
        # tensordot multiplies all replicates at once, matmul one after the other.
        white = np.swapaxes(np.tensordot(self.basis[..., : self.kernel.size], phi, axes=(-1, -1)), -1, -2)
        whole = np.square(phi).sum(-1)
        variance = whole - np.square(white).sum(-1)
        if (few := (variance < 1e-8 * whole).any(-1)).any():  # digits have cancelled; what is left of phi has them
            variance[few] = np.square(_left(phi, self.basis[few])).sum(-1)
        return white, variance

    def covariance(self, x: Floats) -> Floats:
        left = _left(self.kernel.at(x), self.basis)
        return np.asarray(left @ np.swapaxes(left, -1, -2))


def _left(phi: Floats, basis: Floats) -> Floats:
    """Return features without their part along a basis, whose last entries may be those of the noise."""
    size = phi.shape[-1]
    left = -(phi @ np.swapaxes(basis[..., :size], -1, -2)) @ basis
    left[..., :size] += phi
    return np.asarray(left)


def _by_features(kernel: Kernel, points: Floats, noise: float) -> _FeatureDesign:
    """Orthonormalise the features of the points, and those of the noise if there is any."""
    phi = kernel.at(points)
    if noise:
        n = phi.shape[-2]
        phi = np.concatenate([phi, np.broadcast_to(noise * np.eye(n), (*phi.shape[:-1], n))], axis=-1)
    basis, root, rank = _orthonormal(phi)
    return _FeatureDesign(kernel, points, noise, root, rank, basis)


def _orthonormal(phi: Floats) -> tuple[Floats, Floats, Ints]:
    """Return orthonormal rows that span those of phi, what turns phi into them, and their number."""
    columns, triangle = np.linalg.qr(np.swapaxes(phi, -1, -2))
    diagonal = np.abs(np.diagonal(triangle, axis1=-2, axis2=-1))
    # Without pivoting the diagonal is no exact measure of rank: three digits are left as a margin.
    if phi.shape[-2] <= phi.shape[-1] and (diagonal.min(-1) > 1e3 * _EPS * diagonal.max(-1)).all():
        root = np.swapaxes(np.linalg.inv(triangle), -1, -2)
        return np.ascontiguousarray(np.swapaxes(columns, -1, -2)), root, np.full(phi.shape[:-2], phi.shape[-2])
    # Points coincide: directions without a feature of their own are left out.
    left, values, right = np.linalg.svd(phi, full_matrices=False)
    kept = values > phi.shape[-1] * _EPS * values[..., :1]
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
    return right * kept[..., None], inverse[..., None] * np.swapaxes(left, -1, -2), kept.sum(-1)


@dataclass(frozen=True, eq=False)
class _MatrixDesign(_Design):
    """The inverse root of the kernel matrix, for kernels without features."""

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        white = self._white(x)
        variance = self.kernel.variance(x)
        # A difference of nearly equal numbers next to an observation: rounding must not make it negative.
        return white, np.maximum(variance - np.square(white).sum(-1), _EPS * variance)

    def covariance(self, x: Floats) -> Floats:
        white = self._white(x)
        return np.asarray(self.kernel.matrix(x, x) - white @ np.swapaxes(white, -1, -2))

    def _white(self, x: Floats) -> Floats:
        return np.asarray(self.kernel.matrix(x, self.points) @ np.swapaxes(self.root, -1, -2))


def _by_matrix(kernel: Kernel, points: Floats, noise: float) -> _MatrixDesign:
    """Invert a root of every kernel matrix: the Cholesky factor, or the eigenvectors where it does not exist."""
    matrix = kernel.matrix(points, points) + noise**2 * np.eye(points.shape[points.ndim - 1 - kernel.ndim])
    n = matrix.shape[-1]
    if (root := _inverse_cholesky(matrix)) is not None:
        return _MatrixDesign(kernel, points, noise, root, np.full(matrix.shape[:-2], n))
    # One matrix without a Cholesky factor fails the whole stack; the others are to keep theirs.
    roots, ranks = zip(*(_inverse_root(one) for one in matrix.reshape(-1, n, n)), strict=True)
    whole = np.stack(roots).reshape(matrix.shape)
    return _MatrixDesign(kernel, points, noise, whole, np.array(ranks).reshape(matrix.shape[:-2]))


def _inverse_cholesky(matrix: Floats) -> Floats | None:
    """Return inverse Cholesky factors, or None if rounding decided over a pivot."""
    try:
        root = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    pivots = np.square(np.diagonal(root, axis1=-2, axis2=-1))
    if (pivots.min(-1) <= matrix.shape[-1] * _EPS * pivots.max(-1)).any():
        return None
    # As many unit matrices as matrices: before NumPy 2.0 one would be taken for a stack of vectors.
    return np.asarray(np.linalg.solve(root, np.broadcast_to(np.eye(matrix.shape[-1]), matrix.shape)))


def _inverse_root(matrix: Floats) -> tuple[Floats, int]:
    """Return the inverse root of one matrix and its rank."""
    if (root := _inverse_cholesky(matrix)) is not None:
        return root, len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    kept = values > len(values) * _EPS * values[-1]
    inverse = np.divide(1.0, np.sqrt(np.abs(values)), out=np.zeros_like(values), where=kept)
    return inverse[:, None] * vectors.T, int(kept.sum())


@dataclass(frozen=True, eq=False)
class Regression(Distribution):
    """The output of :class:`FittedGP`: a Gaussian process, or a batch of them with the replicate first.

    Its law at any point is exact. Draws are functions, each defined everywhere (or, for kernels made by
    :func:`at_points`, where their points determine it); without features there are none, but ``joint`` gives the law at
    any finite set of points.
    """

    design: _Design
    white: Floats
    scale: Floats
    mean: Any

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M functions: a list of them, or for a batch :class:`Paths` with draws first, then replicates."""
        return self._sample if isinstance(self.design, _FeatureDesign) else None

    def _sample(self, m: int, rng: Generator) -> Any:
        design = self.design
        assert isinstance(design, _FeatureDesign)
        basis, size = design.basis, design.kernel.size
        noise = rng.standard_normal((m, *basis.shape[:-2], basis.shape[-1]))
        along = (basis @ noise[..., None])[..., 0]
        # What a prior draw has along the basis is replaced by what the data say.
        known = self.white - self.scale[..., None] * along
        weights = self.scale[..., None] * noise + (known[..., None, :] @ basis)[..., 0, :]
        paths = Paths(design.kernel, weights[..., :size], self.mean)
        return paths if self.white.ndim > 1 else [paths[i] for i in range(m)]

    def marginal(self, f: TestFunction) -> Normal | None:
        """Return the exact law of the value at a point."""
        if (x := _point(f)) is None:
            return None
        value, variance = self._moments(x[None])
        return Normal(value[..., 0], self.scale * np.sqrt(variance[..., 0]))

    def joint(self, x: ArrayLike) -> Gaussian:
        """Return the exact joint law of the values at several points."""
        points = np.asarray(x, float)
        value, _ = self._moments(points)
        cov = np.square(self.scale)[..., None, None] * self.design.covariance(points)
        return Gaussian(value, (cov + np.swapaxes(cov, -1, -2)) / 2)

    def _moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Return means at points, and variances in units of the squared scale."""
        self.design.refuse_observed(x)
        white, variance = self.design.at(x)
        return (white * self.white[..., None, :]).sum(-1) + _at(self.mean, x), variance
