"""Beliefs and outputs: one contract for both, and the distributions people return most often.

A distribution has a ``sample`` and a ``marginal``, each possibly ``None``, which means "I cannot":

* ``sample(m, rng)`` returns m draws on axis 0;
* ``marginal(f)`` returns the exact law of the test function f, a :class:`Univariate`, or ``None`` if it is not known.

``log_density(theta)`` is optional, by the same rule. Parameters may be arrays: their leading axis is then the
replicate, and one object stands for a batch of outputs. What an object can do is what it declares, never what its
methods suggest. This module knows nothing of models, procedures or statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..callables import with_optional
from ..errors import InvalidStudy
from ..functions.contract import Coordinate, Distance, Linear, Renamed, TestFunction, take
from .laws import Folded, MixtureLaw, Univariate, choose

Floats = NDArray[np.float64]
Generator = np.random.Generator
Numbers = Any  # a number or an array of numbers


@runtime_checkable
class Distribution(Protocol):
    """What a belief and an output have in common; ``None`` means "cannot"."""

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M draws on axis 0."""

    @property
    def marginal(self) -> Callable[[TestFunction], Univariate | None] | None:
        """The exact law of a test function, if known."""


class Elementwise(Univariate):
    """Independent entries of one family: every parameter is an array of the entries' shape."""

    log_density: Any = None

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, item.name, np.array(getattr(self, item.name), float))  # a copy: buffers are reused
        self._validate()

    def _validate(self) -> None:
        """Refuse parameters outside the family."""

    def marginal(self, f: TestFunction) -> Univariate | None:
        """Return the exact law of a coordinate, or of the distance if there is one coordinate only."""
        if isinstance(f, Renamed):
            return self.marginal(f.inner)
        if isinstance(f, Coordinate) and f.key is None:
            return self._at((..., *f.index)) if f.index else self
        if isinstance(f, Distance) and np.ndim(f.center) == 0 and not isinstance(f.center, Mapping):
            return Folded(self, float(f.center), float(f.scale))
        return None

    def _at(self, index: tuple[Any, ...]) -> Elementwise:
        arrays = np.broadcast_arrays(*(getattr(self, item.name) for item in fields(self)))  # type: ignore[arg-type]
        return type(self)(*(array[index] for array in arrays))

    def _shape(self, m: int) -> tuple[int, ...]:
        return (m, *np.broadcast(*(getattr(self, item.name) for item in fields(self))).shape)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Normal(Elementwise):
    """Independent normals with the given means and standard deviations.

    Examples
    --------
    >>> float(Normal(0, 2).cdf(0))
    0.5
    """

    mean: Numbers = 0.0
    sd: Numbers = 1.0

    def _validate(self) -> None:
        for name in ("mean", "sd"):  # an infinite parameter must not pass for a saturated u
            if not np.isfinite(value := getattr(self, name)).all():
                object.__setattr__(self, name, np.where(np.isfinite(value), value, np.nan))
        if (self.sd <= 0).any():
            raise ValueError(f"Normal needs a positive standard deviation, but sd = {_smallest(self.sd)} arrived.")

    def zscore(self, x: ArrayLike) -> Floats:
        """Return (x - mean) / sd."""
        return np.asarray((np.asarray(x, float) - self.mean) / self.sd)

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x)."""
        return np.asarray(special.ndtr(self.zscore(x)))

    def sf(self, x: ArrayLike) -> Floats:
        """Return P(X > x)."""
        return np.asarray(special.ndtr(-self.zscore(x)))

    def log_tails(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """Return log P(X <= x) and log P(X > x), however small."""
        z = self.zscore(x)
        return np.asarray(special.log_ndtr(z)), np.asarray(special.log_ndtr(-z))

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        draws = rng.standard_normal(self._shape(m))
        draws *= self.sd
        draws += self.mean
        return draws

    def marginal(self, f: TestFunction) -> Univariate | None:
        """Return the exact law of a coordinate, a linear function, or a distance in one dimension."""
        if isinstance(f, Linear) and not isinstance(f.weights, Mapping):
            w = np.asarray(f.weights, float)
            mean, sd = np.broadcast_arrays(self.mean, self.sd)
            lead = mean.ndim - w.ndim
            return Normal(f.evaluate(mean, lead), np.sqrt(Linear(w**2).evaluate(np.square(sd), lead)))
        return super().marginal(f)

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation."""
        return np.asarray(self.mean), np.asarray(self.sd)

    def crps(self, x: ArrayLike) -> Floats:
        """Return the continuous ranked probability score."""
        z = self.zscore(x)
        density = np.exp(-0.5 * np.square(z)) / np.sqrt(2 * np.pi)
        return np.asarray(self.sd * (z * (2 * special.ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi)))

    def central(self, nominal: float) -> tuple[Floats, Floats]:
        """Return the ends of the central interval."""
        reach = float(special.ndtri(0.5 + nominal / 2)) * np.asarray(self.sd)
        return self.mean - reach, self.mean + reach

    def log_density(self, theta: ArrayLike) -> Floats:
        """Return the log density of each entry."""
        return np.asarray(-0.5 * self.zscore(theta) ** 2 - np.log(self.sd) - 0.5 * np.log(2 * np.pi))

    def mahalanobis(self, theta: ArrayLike) -> Floats:
        """Return the squared standardised distance of each entry from its mean."""
        return np.square(self.zscore(theta))


@dataclass(frozen=True, eq=False)
class Beta(Elementwise):
    """Independent Beta(a, b) entries.

    Examples
    --------
    >>> float(Beta(1, 1).cdf(0.25))
    0.25
    """

    a: Numbers
    b: Numbers

    def _validate(self) -> None:
        _need_positive(a=self.a, b=self.b)

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x)."""
        return np.asarray(special.betainc(self.a, self.b, np.clip(x, 0, 1)))

    def sf(self, x: ArrayLike) -> Floats:
        """Return P(X > x)."""
        return np.asarray(special.betainc(self.b, self.a, np.clip(1 - np.asarray(x, float), 0, 1)))

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        return np.asarray(rng.beta(self.a, self.b, size=self._shape(m)))

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation."""
        total = np.add(self.a, self.b)
        return np.asarray(self.a / total), np.sqrt(np.multiply(self.a, self.b) / (total + 1)) / total

    def crps(self, x: ArrayLike) -> Floats:
        """Return the continuous ranked probability score."""
        a, b, inside = np.asarray(self.a), np.asarray(self.b), np.clip(x, 0, 1)
        mean = a / (a + b)
        pair = np.exp(special.betaln(2 * a, 2 * b) - 2 * special.betaln(a, b)) / a
        above = 1 - 2 * special.betainc(a + 1, b, inside)
        return np.asarray(np.asarray(x) * (2 * self.cdf(x) - 1) + mean * (above - 2 * pair))

    def central(self, nominal: float) -> tuple[Floats, Floats]:
        """Return the ends of the central interval."""
        low, high = (special.betaincinv(self.a, self.b, 0.5 + side * nominal / 2) for side in (-1, 1))
        return np.asarray(low), np.asarray(high)


@dataclass(frozen=True, eq=False)
class Gamma(Elementwise):
    """Independent Gamma(shape, rate) entries.

    Examples
    --------
    >>> round(float(Gamma(1, 2).sf(0.5)), 6)
    0.367879
    """

    shape: Numbers
    rate: Numbers

    def _validate(self) -> None:
        _need_positive(shape=self.shape, rate=self.rate)

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x)."""
        return np.asarray(special.gammainc(self.shape, np.maximum(np.multiply(x, self.rate), 0)))

    def sf(self, x: ArrayLike) -> Floats:
        """Return P(X > x)."""
        return np.asarray(special.gammaincc(self.shape, np.maximum(np.multiply(x, self.rate), 0)))

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        return np.asarray(rng.standard_gamma(self.shape, size=self._shape(m)) / self.rate)

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation."""
        return np.asarray(self.shape / self.rate), np.sqrt(self.shape) / self.rate

    def crps(self, x: ArrayLike) -> Floats:
        """Return the continuous ranked probability score."""
        shape, rate = np.asarray(self.shape), np.asarray(self.rate)
        further = 2 * special.gammainc(shape + 1, np.maximum(np.multiply(x, rate), 0)) - 1
        pair = np.exp(-special.betaln(0.5, shape))
        return np.asarray(np.asarray(x) * (2 * self.cdf(x) - 1) - shape / rate * further - pair / rate)

    def central(self, nominal: float) -> tuple[Floats, Floats]:
        """Return the ends of the central interval."""
        low, high = (special.gammaincinv(self.shape, 0.5 + side * nominal / 2) / self.rate for side in (-1, 1))
        return np.asarray(low), np.asarray(high)


@dataclass(frozen=True, eq=False)
class Gaussian:
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

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        root: Floats = self._root  # type: ignore[attr-defined]
        noise = rng.standard_normal((m, *self.mean.shape))
        return np.asarray(self.mean + np.einsum("...ij,...j->...i", root, noise))

    def marginal(self, f: TestFunction) -> Univariate | None:
        """Return the exact normal law of a coordinate or a linear function."""
        if isinstance(f, Renamed):
            return self.marginal(f.inner)
        mean, cov = self.mean, self.cov
        if isinstance(f, Coordinate) and f.key is None and len(f.index) == 1:
            (j,) = f.index
            return Normal(mean[..., j], np.sqrt(cov[..., j, j]))
        if isinstance(f, Linear) and not isinstance(f.weights, Mapping):
            w = np.asarray(f.weights, float)
            return Normal(f.evaluate(mean, mean.ndim - 1), np.sqrt(np.einsum("...ij,i,j->...", cov, w, w)))
        return None

    def log_density(self, theta: ArrayLike) -> Floats:
        """Return the log density at each parameter."""
        root: Floats = self._root  # type: ignore[attr-defined]
        half_log_det = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
        return np.asarray(-0.5 * self.mahalanobis(theta) - half_log_det - 0.5 * root.shape[-1] * np.log(2 * np.pi))

    def mahalanobis(self, theta: ArrayLike) -> Floats:
        """Return the squared distance of each parameter from the mean, in the metric of the covariance."""
        root: Floats = self._root  # type: ignore[attr-defined]
        white = np.linalg.solve(root, (np.asarray(theta, float) - self.mean)[..., None])[..., 0]
        return np.asarray(np.square(white).sum(-1))


@dataclass(frozen=True, eq=False)
class Draws:
    """A distribution known by its draws: an array with draws on axis 0, or a dict of such arrays.

    Parameters
    ----------
    values
        Shape (m, ...). In a batch of outputs, axis 1 is the replicate.
    iid
        False for Markov chains, in their order; they are thinned to their effective size first.
    weights
        Shape (m,). The draws are resampled to the effective size of the weights, which is approximate.

    Examples
    --------
    >>> Draws(np.zeros(10)).size
    10
    """

    values: Any
    iid: bool = True
    weights: Numbers = None

    marginal = None

    def __post_init__(self) -> None:
        if not isinstance(self.iid, (bool, np.bool_)):
            raise ValueError(f"iid must be True or False, but {self.iid!r} arrived.")
        values = self.values if isinstance(self.values, Mapping) else {None: self.values}
        arrays = {key: np.asarray(part) for key, part in values.items()}
        sizes = {part.shape[0] if part.ndim else 0 for part in arrays.values()}
        if sizes in ({0}, set()) or len(sizes) > 1:
            raise ValueError(
                f"Draws needs at least one draw on axis 0 of every array, but shapes "
                f"{[part.shape for part in arrays.values()]} arrived."
            )
        bad = next((part.dtype for part in arrays.values() if part.dtype.kind not in "biuf"), None)
        if bad is not None:
            raise ValueError(f"Draws needs arrays of numbers, but an array of dtype {bad} arrived.")
        object.__setattr__(self, "values", arrays if isinstance(self.values, Mapping) else arrays[None])
        if self.weights is not None:
            weights = _normalised(self.weights, sizes.pop())
            object.__setattr__(self, "weights", None if np.ptp(weights) == 0 else weights)

    @property
    def size(self) -> int:
        """The number of draws."""
        values = next(iter(self.values.values())) if isinstance(self.values, Mapping) else self.values
        return len(values)

    def sample(self, m: int, rng: Generator) -> Any:
        """Return m of the draws, chosen at random with replacement."""
        return take(self.values, rng.choice(self.size, size=m, p=self.weights))

    def distinct(self, m: int, rng: Generator) -> Any:
        """Return m different ones of the draws, if there are as many."""
        if m > self.size or self.weights is not None:
            return self.sample(m, rng)
        return take(self.values, rng.permutation(self.size)[:m])

    def copied(self) -> Draws:
        """Return the same draws in arrays of their own."""
        if isinstance(self.values, Mapping):
            return replace(self, values={name: part.copy() for name, part in self.values.items()})
        return replace(self, values=self.values.copy())

    def equally_weighted(self, rng: Generator) -> Draws:
        """Return as many equally weighted draws as the weights are worth (systematic resampling)."""
        if self.weights is None:
            return self
        weights = np.asarray(self.weights)
        m = max(int((1 + 1e-9) / np.square(weights).sum()), 1)
        places = (rng.permutation(m) + rng.random()) / m
        chosen = np.minimum(np.searchsorted(np.cumsum(weights), places), self.size - 1)
        return Draws(take(self.values, chosen), iid=self.iid)


def _normalised(weights: ArrayLike, size: int) -> Floats:
    w = np.asarray(weights, float)
    if w.shape != (size,) or not np.isfinite(w).all() or (w < 0).any() or w.sum() <= 0:
        raise ValueError(
            f"weights must be {size} non-negative numbers with a positive sum, one per draw, but shape {w.shape} with "
            f"sum {w.sum():.3g} arrived."
        )
    return np.asarray(w / w.sum())


@dataclass(frozen=True, eq=False)
class Mixture:
    """A finite mixture of distributions with fixed weights.

    Parameters
    ----------
    components
        Distributions of one kind.
    weights
        One per component; equal if left out.
    ndim
        The number of the parameter's own axes: 0 for a scalar, 1 for a vector. It decides what one choice of
        component covers, and must be given for components with array parameters that could be either.

    Examples
    --------
    >>> float(Mixture([Normal(-1, 1), Normal(1, 1)]).marginal(Coordinate()).cdf(0))
    0.5
    """

    components: Sequence[Any]
    weights: Numbers = None
    ndim: int | None = None

    def __post_init__(self) -> None:
        if not self.components:
            raise ValueError("Mixture needs at least one component, but none arrived.")
        components = tuple(as_distribution(part, what="a mixture component") for part in self.components)
        if any(isinstance(part, Draws) for part in components):
            raise ValueError(
                "Mixture needs components with a law or a sampler, but draws arrived; pool the draws instead."
            )
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "ndim", self._parameter_axes())
        size = len(components)
        object.__setattr__(self, "weights", _normalised(np.ones(size) if self.weights is None else self.weights, size))

    def _parameter_axes(self) -> int:
        if self.ndim is not None:
            return self.ndim
        if all(isinstance(part, Gaussian) for part in self.components):
            return 1
        parts = [
            p for part in self.components for p in (part.parts.values() if isinstance(part, Independent) else [part])
        ]
        if any(isinstance(part, Elementwise) and part._shape(1) != (1,) for part in parts):
            raise ValueError(
                "Mixture cannot tell a vector from a batch of scalars when its components have array parameters; "
                "pass ndim=1 for a vector parameter or ndim=0 for a batch of scalar ones."
            )
        return 0

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M draws, or None if a component cannot be sampled."""
        return self._sample if all(part.sample is not None for part in self.components) else None

    def _sample(self, m: int, rng: Generator) -> Any:
        drawn = [part.sample(m, rng) for part in self.components]
        named = isinstance(drawn[0], Mapping)
        shape = np.shape(next(iter(drawn[0].values())) if named else drawn[0])
        chosen = rng.choice(len(drawn), size=shape[: len(shape) - int(self.ndim or 0)], p=np.asarray(self.weights))
        if named:  # one choice covers all parts of a parameter
            return {name: choose([one[name] for one in drawn], chosen) for name in drawn[0]}
        return choose(drawn, chosen)

    def marginal(self, f: TestFunction) -> Univariate | None:
        """Return the mixture of the components' exact laws, if all are known."""
        laws = [part.marginal(f) if part.marginal is not None else None for part in self.components]
        known = [law for law in laws if law is not None]
        return MixtureLaw(known, np.asarray(self.weights)) if len(known) == len(laws) else None

    @property
    def log_density(self) -> Callable[[ArrayLike], Floats] | None:
        """The log density at each parameter, or None if a component has none."""
        known = all(getattr(part, "log_density", None) is not None for part in self.components)
        return self._log_density if known else None

    def _log_density(self, theta: ArrayLike) -> Floats:
        logs = np.stack([part.log_density(theta) for part in self.components])
        entries = logs.ndim - 1 - np.ndim(theta) + int(self.ndim or 0)
        if entries > 0:  # elementwise laws: one value per entry, a vector belongs to one component as a whole
            logs = logs.sum(axis=tuple(range(-entries, 0)))
        weights = np.asarray(self.weights).reshape(-1, *[1] * (logs.ndim - 1))
        return np.asarray(special.logsumexp(logs, axis=0, b=weights))


@dataclass(frozen=True, eq=False)
class Independent:
    """Independent named parts; a parameter is the dict of their values.

    Examples
    --------
    >>> sorted(Independent({"mu": Normal(0, 1), "tau": Gamma(2, 1)}).sample(3, np.random.default_rng(1)))
    ['mu', 'tau']
    """

    parts: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("Independent needs at least one named part, but an empty mapping arrived.")
        object.__setattr__(
            self,
            "parts",
            {str(k): as_distribution(part, what=f"part {k!r}") for k, part in self.parts.items()},
        )

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M draws, or None if a part cannot be sampled."""
        return self._sample if all(part.sample is not None for part in self.parts.values()) else None

    def _sample(self, m: int, rng: Generator) -> dict[str, Any]:
        return {
            name: part.distinct(m, rng) if isinstance(part, Draws) else part.sample(m, rng)
            for name, part in self.parts.items()
        }

    def marginal(self, f: TestFunction) -> Univariate | None:
        """Return the exact law of a coordinate of a part that knows it."""
        if isinstance(f, Renamed):
            return self.marginal(f.inner)
        if not isinstance(f, Coordinate) or f.key is None or f.key not in self.parts:
            return None
        part = self.parts[f.key]
        return None if part.marginal is None else part.marginal(Coordinate(None, f.index))


@dataclass(frozen=True, eq=False)
class ScipyLaw(Univariate):
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

    def central(self, nominal: float) -> tuple[Floats, Floats]:
        """Return the ends of the central interval."""
        low, high = (self.frozen.ppf(0.5 + side * nominal / 2) for side in (-1, 1))
        return np.asarray(low, float), np.asarray(high, float)

    def marginal(self, f: TestFunction) -> Univariate | None:
        """Return the law itself for the identity, and the folded law for a distance."""
        if isinstance(f, Renamed):
            return self.marginal(f.inner)
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
class Sampler:
    """A belief given as a function of rng alone, called once per draw."""

    function: Callable[[Generator], Any]
    marginal = None

    def sample(self, m: int, rng: Generator) -> Any:
        """Return m draws on axis 0 (a list if they are not numbers)."""
        return stack_values([self.function(rng) for _ in range(m)])


def stack_values(values: Sequence[Any], axis: int = 0) -> Any:
    """Stack parameter values along a new axis: arrays to an array, dicts to a dict, anything else to a list."""
    first = values[0]
    if isinstance(first, Mapping):
        return {key: stack_values([value[key] for value in values], axis) for key in first}
    if isinstance(first, (int, float, bool, np.generic, np.ndarray, list, tuple)):
        return np.stack([np.asarray(value) for value in values], axis)
    return list(values)


def as_distribution(value: Any, *, what: str) -> Any:
    """Turn what a user hands over into a :class:`Distribution`.

    Accepted: anything that meets the contract, a frozen scipy distribution, an array of draws, a dict of either,
    and (for beliefs) a function of rng.
    """
    if isinstance(value, np.ndarray) and value.ndim >= 1:
        return Draws(value)
    if isinstance(value, (list, tuple)):
        return _from_sequence(value, what)
    if isinstance(value, type):
        raise InvalidStudy(
            f"{what} must be a distribution, but the class {value.__name__} arrived; call it to make an instance."
        )
    if isinstance(value, (Elementwise, Gaussian, Draws, Distribution)):
        return value
    if isinstance(value, Mapping):
        return _from_mapping(value, what)
    if hasattr(value, "rvs"):
        return _from_scipy(value, what)
    if hasattr(value, "__array__") and np.ndim(value) >= 1:  # xarray, torch, jax
        return Draws(np.asarray(value))
    if what == "the belief" and callable(value):
        return Sampler(_of_rng(value))
    raise InvalidStudy(
        f"{what} must be a distribution (ringtrue's, a frozen scipy one, an array of draws, or an object with sample "
        f"and marginal), but {_described(value)} arrived."
    )


def _described(value: Any) -> str:
    if value is None:
        return "None"
    if np.ndim(value) == 0 and isinstance(value, (int, float, np.generic, np.ndarray)):
        return f"the single number {value!r}"
    return f"an object of type {type(value).__name__}"


def _from_mapping(value: Mapping[Any, Any], what: str) -> Any:
    if all(isinstance(part, np.ndarray) or np.ndim(part) >= 1 for part in value.values()) and value:
        return Draws({str(key): np.asarray(part) for key, part in value.items()})
    return Independent({key: as_distribution(part, what=f"{what} [{key!r}]") for key, part in value.items()})


def _of_rng(value: Any) -> Callable[[Generator], Any]:
    """Return a belief given as a function of rng alone, whatever it calls its argument."""
    call, uses = with_optional(value, 0, "rng", what="a belief given as a function of rng")
    if not uses:
        raise InvalidStudy(f"a belief given as a function must take rng, but {value!r} takes 0 arguments.")
    return call


def _from_sequence(value: Sequence[Any], what: str) -> Any:
    if isinstance(value, tuple):
        raise InvalidStudy(
            f"{what} must be a distribution, but a tuple of {len(value)} arrived; return an array of draws, or "
            f"ringtrue.Normal(mean, sd) for a mean and a standard deviation."
        )
    if any(isinstance(part, Distribution) or hasattr(part, "rvs") for part in value):
        raise InvalidStudy(f"{what} must be one distribution, but a list of them arrived; use ringtrue.stack(list).")
    return Draws(np.asarray(value))


def _from_scipy(frozen: Any, what: str) -> Any:
    if hasattr(frozen, "freeze"):
        raise InvalidStudy(
            f"{what} must be a frozen scipy distribution, but {frozen.name} arrived; freeze it by calling it."
        )
    if hasattr(frozen, "mean") and hasattr(frozen, "cov") and not callable(frozen.mean):
        return Gaussian(frozen.mean, frozen.cov)
    if hasattr(frozen, "cdf") and hasattr(frozen, "sf"):
        return ScipyLaw(frozen)
    return Sampler(lambda rng: np.asarray(frozen.rvs(size=1, random_state=rng)).reshape(_own_shape(frozen)))


def _own_shape(frozen: Any) -> tuple[int, ...]:
    """Return the shape of one draw of a multivariate scipy distribution: what two draws have behind axis 0."""
    shape: tuple[int, ...] = np.shape(frozen.rvs(size=2, random_state=0))
    return shape[1:]


def _smallest(value: ArrayLike) -> float:
    return float(np.min(np.asarray(value, float)))


def _need_positive(**parameters: ArrayLike) -> None:
    for name, value in parameters.items():
        if np.any(np.less_equal(value, 0)):
            raise ValueError(f"{name} must be positive, but {_smallest(value)} arrived.")
