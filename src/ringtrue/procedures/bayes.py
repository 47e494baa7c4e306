"""Conjugate posteriors: exact, fractional (``power``) and partial (``summary``), for one dataset or a batch.

Each class is the likelihood it assumes: ``simulate`` draws from it, calling it returns the posterior. The belief is
read, never assumed: a belief of the wrong family is refused. Nothing here knows of studies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..distributions import Beta, Gamma, Gaussian, Normal
from ..errors import InvalidStudy
from ..values import Floats


def _belief(belief: Any, kind: type, procedure: object) -> Any:
    """Return the belief if it is of the conjugate family."""
    if isinstance(belief, kind):
        return belief
    raise InvalidStudy(
        f"{type(procedure).__name__} needs a {kind.__name__} belief, but {type(belief).__name__} arrived."
    )


def _check_summary(summary: int | None, size: int) -> None:
    if summary is not None and not 1 <= summary <= size:
        raise InvalidStudy(f"summary must be a number of observations from 1 to {size}, but {summary} arrived.")


def _check_power(power: float) -> None:
    if power < 0:
        raise InvalidStudy(f"the power of a fractional posterior must not be negative, but {power} arrived.")


@dataclass(frozen=True)
class NormalMean:
    """Normal mean with known noise: y holds ``size`` observations N(theta, noise^2) on its last axis.

    Parameters
    ----------
    noise
        The standard deviation of one observation.
    size
        The number of observations in a dataset; 1 means y is a number.
    power
        The likelihood is raised to this power; 1 is Bayes, below 1 a fractional posterior, 0 ignores the data.
    summary
        The number of observations, from the first, that the procedure looks at: a partial posterior, strongly
        calibrated but not exact.

    Examples
    --------
    >>> posterior = NormalMean()(Normal(0, 1), 3.0)
    >>> float(posterior.mean), round(float(posterior.sd) ** 2, 12)
    (1.5, 0.5)
    """

    noise: float = 1.0
    size: int = 1
    power: float = 1.0
    summary: int | None = None

    def __post_init__(self) -> None:
        _check_power(self.power)
        if self.noise <= 0 or self.size < 1 or not 1 <= self._seen <= self.size:
            raise InvalidStudy(f"NormalMean needs noise > 0 and 1 <= summary <= size, but {self} arrived.")

    @property
    def _seen(self) -> int:
        return self.size if self.summary is None else self.summary

    def simulate(self, theta: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one dataset per theta."""
        center = np.asarray(theta, float)
        if self.size == 1:
            return center + self.noise * rng.standard_normal(center.shape)
        return center[..., None] + self.noise * rng.standard_normal((*center.shape, self.size))

    def __call__(self, belief: Any, y: ArrayLike) -> Normal:
        """Return the posterior, with the data's precision multiplied by the power."""
        prior = _belief(belief, Normal, self)
        data = np.asarray(y, float)
        mean = data if self.size == 1 else data[..., : self._seen].mean(-1)
        # A power of a normal likelihood multiplies its precision: t k observations in place of k.
        before = np.square(1 / np.asarray(prior.sd, float))
        seen = self.power * self._seen / self.noise**2
        # + 0 * mean: one sd for every dataset of a batch.
        return Normal((before * prior.mean + seen * mean) / (before + seen), np.sqrt(1 / (before + seen)) + 0 * mean)


@dataclass(frozen=True, eq=False)
class LinearGaussian:
    """Linear regression with known noise: y = design theta + N(0, noise^2 I), belief Gaussian.

    Parameters
    ----------
    design
        Matrix (m, d).
    noise
        The standard deviation of one entry of y.
    power
        The likelihood is raised to this power.
    summary
        The number of rows of the design, from the first, that the procedure looks at.

    Examples
    --------
    >>> LinearGaussian(np.eye(2))(Gaussian([0, 0], np.eye(2)), [2.0, 4.0]).mean
    array([1., 2.])
    """

    design: ArrayLike
    noise: float = 1.0
    power: float = 1.0
    summary: int | None = None

    def __post_init__(self) -> None:
        _check_power(self.power)
        if np.ndim(self.design) != 2 or self.noise <= 0:
            raise InvalidStudy(
                f"LinearGaussian needs a matrix and noise > 0, but shape {np.shape(self.design)} and {self.noise} came."
            )
        _check_summary(self.summary, len(np.asarray(self.design)))

    def simulate(self, theta: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one dataset per theta."""
        mean = np.asarray(theta, float) @ np.asarray(self.design, float).T
        return np.asarray(mean + self.noise * rng.standard_normal(mean.shape))

    def __call__(self, belief: Any, y: ArrayLike) -> Gaussian:
        """Return the Gaussian posterior."""
        prior = _belief(belief, Gaussian, self)
        design = np.asarray(self.design, float)[: self.summary]
        data = np.asarray(y, float)[..., : self.summary]
        weight = self.power / self.noise**2
        # The covariance does not depend on the data, so that a batch shares one.
        precision = np.linalg.inv(prior.cov)
        cov = np.linalg.inv(precision + weight * design.T @ design)
        # The inverse of a symmetric matrix is one only up to rounding.
        cov = (cov + cov.T) / 2
        mean = (precision @ prior.mean + weight * data @ design) @ cov
        return Gaussian(mean, np.broadcast_to(cov, (*mean.shape[:-1], *cov.shape)))


@dataclass(frozen=True)
class BetaBinomial:
    """Number of successes in ``trials``, belief Beta; ``summary`` looks at the first trials only.

    Data are the 0/1 outcomes on the last axis, so that a partial posterior can look at some of them.

    Examples
    --------
    >>> float(BetaBinomial(3)(Beta(1, 1), [1, 0, 1]).a)
    3.0
    """

    trials: int
    power: float = 1.0
    summary: int | None = None

    def __post_init__(self) -> None:
        _check_power(self.power)
        if self.trials < 1:
            raise InvalidStudy(f"BetaBinomial needs at least one trial, but {self.trials} arrived.")
        _check_summary(self.summary, self.trials)

    def simulate(self, theta: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one dataset per theta."""
        chance = np.asarray(theta, float)[..., None]
        return (rng.random((*chance.shape[:-1], self.trials)) < chance).astype(float)

    def __call__(self, belief: Any, y: ArrayLike) -> Beta:
        """Return the Beta posterior."""
        prior = _belief(belief, Beta, self)
        data = np.asarray(y, float)[..., : self.summary]
        successes, trials = data.sum(-1), data.shape[-1]
        return Beta(prior.a + self.power * successes, prior.b + self.power * (trials - successes))


@dataclass(frozen=True)
class GammaPoisson:
    """Poisson counts with rate theta, belief Gamma(shape, rate); y holds ``size`` counts on its last axis.

    Examples
    --------
    >>> float(GammaPoisson(2)(Gamma(1, 1), [3, 4]).shape)
    8.0
    """

    size: int
    power: float = 1.0
    summary: int | None = None

    def __post_init__(self) -> None:
        _check_power(self.power)
        if self.size < 1:
            raise InvalidStudy(f"GammaPoisson needs at least one count, but size {self.size} arrived.")
        _check_summary(self.summary, self.size)

    def simulate(self, theta: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one dataset per theta."""
        rate = np.asarray(theta, float)[..., None]
        return rng.poisson(rate, (*rate.shape[:-1], self.size)).astype(float)

    def __call__(self, belief: Any, y: ArrayLike) -> Gamma:
        """Return the Gamma posterior."""
        prior = _belief(belief, Gamma, self)
        data = np.asarray(y, float)[..., : self.summary]
        total, count = data.sum(-1), data.shape[-1]
        return Gamma(prior.shape + self.power * total, prior.rate + self.power * count + 0 * total)
