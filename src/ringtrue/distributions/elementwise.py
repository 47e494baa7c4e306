"""Independent entries of one family, each with exact laws: normal, beta, gamma."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..functions import Context, Coordinate, Distance, Linear, TestFunction
from ..values import Floats, Generator, Numbers
from .contract import Distribution
from .laws import Folded, Law


class Elementwise(Law, Distribution):
    """Independent entries of one family: every parameter is an array of the entries' shape."""

    def __post_init__(self) -> None:
        for name in self._parameters:
            # Parameters are kept as arrays, so that a scalar output, a vector and a batch are one code path.
            object.__setattr__(self, name, np.array(getattr(self, name), float))  # a copy: buffers are reused
        self._validate()

    @property
    def _parameters(self) -> tuple[str, ...]:
        # What dataclasses.fields would say, at a tenth of the price: one is made in every replicate.
        return type(self).__match_args__  # type: ignore[attr-defined,no-any-return]

    def _validate(self) -> None:
        """Refuse parameters outside the family."""

    def marginal(self, f: TestFunction) -> Law | None:
        """Return the exact law of a coordinate, or of the distance if there is one coordinate only."""
        if isinstance(f, Coordinate) and f.key is None:
            return self._at((..., *f.index)) if f.index else self
        if isinstance(f, Distance) and np.ndim(f.center) == 0 and not isinstance(f.center, Mapping):
            return Folded(self, float(f.center), float(f.scale))
        return None

    def _at(self, index: tuple[Any, ...]) -> Elementwise:
        arrays = np.broadcast_arrays(*(getattr(self, name) for name in self._parameters))
        return type(self)(*(array[index] for array in arrays))

    @property
    def batch(self) -> int:
        """How many outputs lie side by side, if these are outputs: the length of the first axis, 0 without one."""
        return (*self._shape(1)[1:], 0)[0]

    @cached_property
    def _own_shape(self) -> tuple[int, ...]:
        # A belief is drawn from once per replicate, and its parameters do not change.
        return np.broadcast(*(getattr(self, name) for name in self._parameters)).shape

    def _shape(self, m: int) -> tuple[int, ...]:
        return (m, *self._own_shape)


@dataclass(frozen=True, eq=False)
class Normal(Elementwise):
    """Independent normals with the given means and standard deviations; one of 0 makes a point mass.

    Examples
    --------
    >>> float(Normal(0, 2).cdf(0))
    0.5
    >>> Normal(3, 0).cdf([2.9, 3.0]).tolist()
    [0.0, 1.0]
    """

    mean: Numbers = 0.0
    sd: Numbers = 1.0

    def _validate(self) -> None:
        for name in ("mean", "sd"):  # an infinite parameter must not pass for a saturated u
            if not np.isfinite(value := getattr(self, name)).all():
                object.__setattr__(self, name, np.where(np.isfinite(value), value, np.nan))
        if (self.sd < 0).any():
            raise ValueError(
                f"Normal needs sds that are positive, or 0 for a point mass, but sd = {_smallest(self.sd)} arrived."
            )

    @cached_property
    def atoms(self) -> bool:
        """Whether a standard deviation is 0."""
        return bool((self.sd == 0).any())

    def zscore(self, x: ArrayLike) -> Floats:
        """Return (x - mean) / sd; at a point mass 0, and beside it an infinity."""
        return self._score(x, 0.0)

    def _score(self, x: ArrayLike, on_atom: float) -> Floats:
        """Return normal scores, with that of a point mass at its own point given."""
        away = np.asarray(x, float) - self.mean
        if not self.atoms:
            return np.asarray(away / self.sd)
        with np.errstate(divide="ignore", invalid="ignore"):
            # The absolute value, because a variance that was rounded to -0 has a root of -0.
            return np.where((away == 0) & (self.sd == 0), on_atom, away / np.abs(self.sd))

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x)."""
        return np.asarray(special.ndtr(self._score(x, np.inf)))

    def cdf_left(self, x: ArrayLike) -> Floats:
        """Return P(X < x)."""
        return np.asarray(special.ndtr(self._score(x, -np.inf)))

    def sf(self, x: ArrayLike) -> Floats:
        """Return P(X > x)."""
        return np.asarray(special.ndtr(-self._score(x, np.inf)))

    def log_tails(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """Return log P(X <= x) and log P(X > x), however small."""
        z = self._score(x, np.inf)
        return np.asarray(special.log_ndtr(z)), np.asarray(special.log_ndtr(-z))

    def ppf(self, p: ArrayLike) -> Floats:
        """Return the quantile."""
        with np.errstate(invalid="ignore"):  # 0 times infinity, at the ends of a point mass
            reach = self.sd * special.ndtri(p)
        return np.asarray(self.mean + self._or_at_point(np.where(np.isnan(p), np.nan, 0.0), reach))

    def _or_at_point(self, value: Floats, otherwise: Floats) -> Floats:
        """Return the values of point masses, and of normals what their formula gave."""
        return np.where(self.sd == 0, value, otherwise) if self.atoms else otherwise

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        # In place: a third array of the draws' size would cost more than the arithmetic.
        draws = rng.standard_normal(self._shape(m))
        draws *= self.sd
        draws += self.mean
        return draws

    def sample_each(self, m: int, uniforms: Callable[[int], Floats]) -> Floats:
        """Return m draws of every output of a batch, (m, outputs, ...), each from random numbers of its own.

        Parameters
        ----------
        m
            How many.
        uniforms
            From k to (outputs, k) uniforms.
        """
        batch, *own = self._own_shape
        each = uniforms(m * math.prod(own)).reshape(batch, m, *own)
        # Half of the last bit more: a uniform of exactly 0 would be an infinite draw.
        return self.ppf(np.moveaxis(each, 1, 0) + 2.0**-54)

    def marginal(self, f: TestFunction) -> Law | None:
        """Return the exact law of a coordinate, a linear function, or a distance in one dimension."""
        if isinstance(f, Linear) and not isinstance(f.weights, Mapping):
            w = np.asarray(f.weights, float)
            mean, sd = np.broadcast_arrays(self.mean, self.sd)
            lead = mean.ndim - w.ndim
            at = Context(lead)
            with np.errstate(over="ignore", invalid="ignore"):  # beyond all numbers there is no law
                return Normal(f.evaluate(mean, at), np.sqrt(Linear(w**2).evaluate(np.square(sd), at)))
        return super().marginal(f)

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation."""
        return np.asarray(self.mean), np.asarray(self.sd)

    def crps(self, x: ArrayLike) -> Floats:
        """Return the continuous ranked probability score."""
        z = self.zscore(x)
        # The closed form of Gneiting and Raftery (2007); E|X - X'| / 2 of a standard normal is 1 / sqrt(pi).
        density = np.exp(-0.5 * np.square(z)) / np.sqrt(2 * np.pi)
        with np.errstate(invalid="ignore"):  # 0 times infinity, beside a point mass
            score = self.sd * (z * (2 * special.ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))
        return np.asarray(self._or_at_point(np.abs(np.asarray(x, float) - self.mean), score))

    def central(self, nominal: float) -> tuple[Floats, Floats]:
        """Return the ends of the central interval, symmetric to the last bit."""
        reach = float(special.ndtri(0.5 + nominal / 2)) * np.asarray(self.sd)
        return self.mean - reach, self.mean + reach

    def log_density(self, theta: ArrayLike) -> Floats:
        """Return the log density of each entry, of a point mass the log probability."""
        squares = -0.5 * self.zscore(theta) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._or_at_point(squares, np.asarray(squares - np.log(self.sd) - 0.5 * np.log(2 * np.pi)))

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
        # By symmetry, not as 1 - cdf, which would lose every digit of a small upper tail.
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
        # From logarithms: the Beta functions themselves underflow for parameters of a few hundred.
        pair = np.exp(special.betaln(2 * a, 2 * b) - 2 * special.betaln(a, b)) / a
        above = 1 - 2 * special.betainc(a + 1, b, inside)
        return np.asarray(np.asarray(x) * (2 * self.cdf(x) - 1) + mean * (above - 2 * pair))

    def ppf(self, p: ArrayLike) -> Floats:
        """Return the quantile."""
        return np.asarray(special.betaincinv(self.a, self.b, p))


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
        # The standard law divided by the rate: the same random numbers serve all rates.
        return np.asarray(rng.standard_gamma(self.shape, size=self._shape(m)) / self.rate)

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation."""
        return np.asarray(self.shape / self.rate), np.sqrt(self.shape) / self.rate

    def crps(self, x: ArrayLike) -> Floats:
        """Return the continuous ranked probability score."""
        shape, rate = np.asarray(self.shape), np.asarray(self.rate)
        further = 2 * special.gammainc(shape + 1, np.maximum(np.multiply(x, rate), 0)) - 1
        # E|X - X'| / 2 of a standard Gamma(shape) is 1 / B(1/2, shape).
        pair = np.exp(-special.betaln(0.5, shape))
        return np.asarray(np.asarray(x) * (2 * self.cdf(x) - 1) - shape / rate * further - pair / rate)

    def ppf(self, p: ArrayLike) -> Floats:
        """Return the quantile."""
        return np.asarray(special.gammaincinv(self.shape, p) / self.rate)


def _smallest(value: ArrayLike) -> float:
    return float(np.min(np.asarray(value, float)))


def _need_positive(**parameters: ArrayLike) -> None:
    for name, value in parameters.items():
        if np.any(np.less_equal(value, 0)):
            raise ValueError(f"{name} must be positive, but {_smallest(value)} arrived.")
