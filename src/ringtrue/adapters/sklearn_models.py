"""Models of scikit-learn as studies: is what they say of their uncertainty right?

A Gaussian process is its own prior. A linear model that learns its prior from the data has none to draw from: the
coefficients that it is tried on are the user's, or standard ones. Anything else is tried on data that the user makes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..distributions import Distribution, Gaussian, Law, Normal, as_distribution
from ..errors import InvalidStudy
from ..functions import Coordinate, Linear, TestFunction
from ..question.study import Adapted, Joint
from ..values import Floats, Generator
from .libraries import need

#: ``simulate(X, at, rng)`` returns observations at X, and at ``at`` what a prediction is about.
Simulate = Callable[[Any, Any, Generator], tuple[Any, Any]]


def sklearn(
    estimator: Any,
    X: ArrayLike,
    at: ArrayLike | None = None,
    *,
    simulate: Simulate | None = None,
    coefficients: Any = None,
    noise: float = 1.0,
    seed: int = 0,
) -> SklearnStudy:
    """Turn a model of scikit-learn into a study: it is fitted to simulated data at X and asked what it then knows.

    What is asked about, theta, is what the model predicts at ``at``:

    * a ``GaussianProcessRegressor``: the function there, or, if its kernel has white noise, new observations, as its
      ``predict`` has it; and their average. The belief is its kernel as given, not as fitted. A kernel whose parameters
      are optimised in every fit is a plug-in, and what is tested is whether that does harm where the kernel is true.
    * ``BayesianRidge`` and ``ARDRegression``: the coefficients if ``at`` is left out, else new observations. Both learn
      the scale of the coefficients and of the noise from the data by maximising the evidence, and their prior for
      these scales has no draws: data are made with ``coefficients`` and ``noise``.
    * any regressor with ``predict(X, return_std=True)``: what ``simulate`` returns at ``at``.
    * a classifier with ``predict_proba``: the classes, which must be numbers, that ``simulate`` returns at ``at``.
      For a ``GaussianProcessClassifier`` of two classes they may come from its kernel.

    Parameters
    ----------
    estimator
        Fitted or not: a clone of it is fitted to every dataset.
    X
        Where data are observed, (n, d).
    at
        Where predictions are asked for, (m, d); left out, at X.
    simulate
        ``simulate(X, at, rng)`` returns a dataset at X and, at ``at``, what is predicted, both from the same truth.
    coefficients
        The law that the coefficients of linear models are drawn from: a belief as in :class:`~ringtrue.Study`. Left
        out, independent standard normals; the intercept, if one is fitted, is standard normal.
    noise
        The standard deviation of the noise of linear models.
    seed
        That of the study.

    Returns
    -------
    SklearnStudy
        For ``rt.check(sklearn(regressor, X, at), n=500)``.

    Raises
    ------
    InvalidStudy
        If the model says nothing of its uncertainty, or has no prior and no ``simulate`` came.
    """
    need("sklearn", "sklearn")
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        kind = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise InvalidStudy(f"an estimator of scikit-learn is needed, but {kind} arrived; make an instance of it.")
    where = _rows("X", X)
    there = where if at is None else _rows("at", at)
    if there.shape[1] != where.shape[1]:
        raise InvalidStudy(f"at must have the {where.shape[1]} columns of X, but shape {there.shape} arrived.")
    kind = type(estimator).__name__
    linear = kind in ("BayesianRidge", "ARDRegression")
    fit: Any = Coefficients if linear and at is None and simulate is None else _predictions(estimator, kind)
    if simulate is not None:
        drawing: Any = partial(simulate, where, there)
    elif linear:
        drawing = LinearBelief(where, None if at is None else there, coefficients, estimator.fit_intercept, noise)
    else:
        drawing = _own(estimator, kind, where, there)
    procedure = fit(estimator, where, there)
    joint = Joint(Drawn(drawing))
    _need_shapes(joint.simulate(np.random.default_rng(0)), procedure)
    return SklearnStudy(joint, joint.simulate, procedure, f=procedure.functions, seed=seed)


@dataclass(frozen=True, eq=False)
class SklearnStudy(Adapted):
    """A study whose procedure is a model of scikit-learn."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """Draws theta, which is what is predicted, and data, both from one truth."""

    drawing: Callable[[Generator], tuple[Any, Any]]

    def __call__(self, rng: Generator) -> tuple[Any, Any]:
        """Return theta and y."""
        y, theta = self.drawing(rng)
        return np.asarray(theta), np.asarray(y)


# What a model believes: each returns observations at X, and at `at` what is predicted.


@dataclass(frozen=True, eq=False)
class KernelBelief:
    """Draws from the prior of a Gaussian process: y and what ``predict`` is about are jointly normal."""

    X: Floats
    at: Floats
    kernel: Any
    alpha: Any

    @cached_property
    def _drawn_by(self) -> Floats:
        # Between two arguments a kernel has no white noise, so that noise at `at` is fresh, as in a prediction.
        across = self.kernel(self.X, self.at)
        ours = self.kernel(self.X) + np.diag(np.broadcast_to(self.alpha, len(self.X)))
        return _root(np.block([[ours, across], [across.T, self.kernel(self.at)]]))

    def __call__(self, rng: Generator) -> tuple[Floats, Floats]:
        """Return numbers at X, and at ``at``."""
        drawn = self._drawn_by @ rng.standard_normal(len(self._drawn_by))
        return drawn[: len(self.X)], drawn[len(self.X) :]


@dataclass(frozen=True, eq=False)
class ClassBelief:
    """Draws classes, 0 and 1, from a latent Gaussian process by the logistic function."""

    latent: KernelBelief

    def __call__(self, rng: Generator) -> tuple[Floats, Floats]:
        """Return classes at X, and at ``at``."""
        y, theta = ((rng.random(len(f)) < 1 / (1 + np.exp(-f))).astype(float) for f in self.latent(rng))
        return y, theta


@dataclass(frozen=True, eq=False)
class LinearBelief:
    """Draws coefficients and noisy observations; without ``at``, the coefficients are what is asked about."""

    X: Floats
    at: Floats | None
    coefficients: Any
    intercept: bool
    noise: float

    def __call__(self, rng: Generator) -> tuple[Floats, Floats]:
        """Return observations at X, and the coefficients or observations at ``at``."""
        columns = self.X.shape[1:]
        law = Normal(np.zeros(columns), 1) if self.coefficients is None else self.coefficients
        drawn = np.asarray(as_distribution(law, what="coefficients", role="belief").sample(1, rng))[0]
        if drawn.shape != columns:
            raise InvalidStudy(f"coefficients must be draws of shape {columns}, but {drawn.shape} came.")
        level = rng.standard_normal() if self.intercept else 0.0

        def observed(rows: Floats) -> Floats:
            return np.asarray(level + rows @ drawn + self.noise * rng.standard_normal(len(rows)))

        return observed(self.X), drawn if self.at is None else observed(self.at)


def _own(estimator: Any, kind: str, X: Floats, at: Floats) -> Callable[[Generator], tuple[Any, Any]]:
    """Return what a model believes before it has data, if that can be drawn."""
    if kind == "GaussianProcessRegressor":
        return KernelBelief(X, at, _kernel(estimator), estimator.alpha)
    if kind == "GaussianProcessClassifier":
        return ClassBelief(KernelBelief(X, at, _kernel(estimator), 0.0))
    raise InvalidStudy(
        f"{kind} has no prior that data could be drawn from; pass simulate=, a function of (X, at, rng) that returns "
        f"observations at X and what is predicted at `at`."
    )


def _kernel(estimator: Any) -> Any:
    """Return the kernel as given; left out, that which scikit-learn then has."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    return ConstantKernel(1.0) * RBF(1.0) if estimator.kernel is None else estimator.kernel


# What it says once it has data.


@dataclass(frozen=True, eq=False)
class Fits:
    """A procedure: a clone of the model, fitted to data at X."""

    estimator: Any
    X: Floats
    at: Floats

    def fit(self, y: Any) -> Any:
        """Return a fitted clone."""
        from sklearn.base import clone

        return clone(self.estimator).fit(self.X, y)

    @property
    def functions(self) -> list[TestFunction]:
        """What is asked about, entry by entry."""
        places = [", ".join(f"{entry:.3g}" for entry in row) for row in self.at]
        if len(set(places)) < len(places):
            places = [f"{place} (row {j})" for j, place in enumerate(places)]
        return [Coordinate(index=(j,), name=f"at {place}") for j, place in enumerate(places)]


@dataclass(frozen=True, eq=False)
class Process(Fits):
    """What a Gaussian process says of all values together."""

    @property
    def functions(self) -> list[TestFunction]:
        """The values, and their average: it sees how they depend on each other."""
        many = len(self.at)
        return [*super().functions, *([Linear(np.full(many, 1 / many), name="average")] if many > 1 else [])]

    def __call__(self, belief: Any, y: Any) -> Gaussian:
        """Return the law of the values."""
        return Smooth(*self.fit(y).predict(self.at, return_cov=True))


@dataclass(frozen=True, eq=False)
class Predicted(Fits):
    """What a regressor says of each value."""

    def __call__(self, belief: Any, y: Any) -> Normal:
        """Return normals."""
        return Normal(*self.fit(y).predict(self.at, return_std=True))


@dataclass(frozen=True, eq=False)
class Coefficients(Fits):
    """What a linear model says of its coefficients; those that it left out it says to be 0."""

    @property
    def functions(self) -> list[TestFunction]:
        """The coefficients, and their sum."""
        many = self.X.shape[1]
        entries = [Coordinate(index=(j,), name=f"coefficient {j}") for j in range(many)]
        return [*entries, *([Linear(np.ones(many), name="sum")] if many > 1 else [])]

    def __call__(self, belief: Any, y: Any) -> Gaussian:
        """Return the law of the coefficients."""
        fitted = self.fit(y)
        cov = np.zeros((self.X.shape[1],) * 2)
        kept = getattr(fitted, "lambda_", 0.0) < getattr(fitted, "threshold_lambda", np.inf)
        kept = np.flatnonzero(np.broadcast_to(kept, len(cov)))
        cov[np.ix_(kept, kept)] = fitted.sigma_
        return Smooth(fitted.coef_, cov)


@dataclass(frozen=True, eq=False)
class Classified(Fits):
    """What a classifier says of the class of each point."""

    def __call__(self, belief: Any, y: Any) -> Classes:
        """Return probabilities of classes."""
        fitted = self.fit(y)
        classes = np.asarray(fitted.classes_)
        if classes.dtype.kind not in "biuf":
            raise InvalidStudy(f"classes must be numbers, but {classes[0]!r} is one; number them in simulate.")
        return Classes(classes.astype(float), fitted.predict_proba(self.at))


def _predictions(estimator: Any, kind: str) -> Any:
    if kind == "GaussianProcessRegressor":
        return Process
    if hasattr(estimator, "predict_proba"):
        return Classified
    if "return_std" in inspect.signature(estimator.predict).parameters:
        return Predicted
    raise InvalidStudy(
        f"{kind} says nothing of its uncertainty; a model with predict(X, return_std=True) or predict_proba is needed."
    )


class Smooth(Gaussian):
    """A normal law whose covariance may be singular, as that of a smooth function at many points is."""

    log_density = None  # type: ignore[assignment]
    mahalanobis = None  # type: ignore[assignment]

    @staticmethod
    def _cholesky(cov: Floats) -> Floats:
        return _root(cov)


def _root(cov: Floats) -> Floats:
    """Return a root of a covariance; eigenvalues that rounding made negative are 0."""
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0))[..., None, :])


@dataclass(frozen=True, eq=False)
class Classes(Distribution):
    """Probabilities of classes, for several points: rows of an array (points, classes)."""

    values: Floats
    probabilities: Floats
    batch = 0

    def marginal(self, f: TestFunction) -> Law | None:
        """Return the law of the class of a point."""
        if isinstance(f, Coordinate) and len(f.index) == 1:
            return ClassLaw(self.values, self.probabilities[f.index[0]])
        return None


@dataclass(frozen=True, eq=False)
class ClassLaw(Law):
    """A law on a few numbers; a u among atoms is drawn at random within its step."""

    values: Floats
    probabilities: Floats

    @property
    def atoms(self) -> bool:
        """All there is are atoms."""
        return True

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x)."""
        return self._sum(self.values <= np.asarray(x, float)[..., None])

    def cdf_left(self, x: ArrayLike) -> Floats:
        """Return P(X < x)."""
        return self._sum(self.values < np.asarray(x, float)[..., None])

    def sf(self, x: ArrayLike) -> Floats:
        """Return P(X > x)."""
        return self._sum(self.values > np.asarray(x, float)[..., None])

    def _sum(self, chosen: NDArray[np.bool_]) -> Floats:
        return np.asarray(np.minimum((chosen * self.probabilities).sum(axis=-1), 1.0))

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        return np.asarray(rng.choice(self.values, size=m, p=self.probabilities / self.probabilities.sum()))


def _need_shapes(pair: tuple[Any, Any], procedure: Any) -> None:
    """Refuse a simulation of other points than those asked about."""
    theta, y = pair
    many = sum(isinstance(f, Coordinate) for f in procedure.functions)
    if y.shape != (len(procedure.X),) or theta.shape != (many,):
        raise InvalidStudy(
            f"simulate must return {len(procedure.X)} observations and {many} numbers that are predicted, but shapes "
            f"{y.shape} and {theta.shape} came."
        )


def _rows(name: str, value: Any) -> Floats:
    array = np.asarray(value, float)
    if array.ndim != 2 or not len(array):
        raise InvalidStudy(
            f"{name} must have one row per point and one column per feature, but shape {array.shape} arrived; of one "
            f"feature pass {name}[:, None]."
        )
    return array
