"""A Gaussian process on the derivative, updated knot by knot along simulated paths (Chkrebtii et al. 2016).

Every particle is a path: at each knot a state is drawn from the process given the derivatives before it, and the vector
field at that state is the next derivative. Given the derivatives of a particle the solution is Gaussian, so the output
is an exact mixture at any time. The process's weights and variances depend on the knots alone; one set serves all
problems, particles and components. Nothing here knows studies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import special

from ...errors import InvalidStudy
from ...values import Floats, Generator
from .problem import Flow, InitialValueProblem, Rows, need_solution
from .randomised import groups, normals
from .solution import MixtureSolution

#: Derivatives (numbers) kept while a group of problems is run: what the fastest caches hold.
_TOGETHER = 2**20
#: Derivatives kept for later questions; more than that are computed again from the seed.
_KEPT = 2**23
#: Knots whose weights on all earlier derivatives are applied in one product of matrices.
_BLOCK = 10


@dataclass(frozen=True)
class Chkrebtii:
    """Particles of a Gaussian process on the derivative, with squared-exponential covariance.

    Parameters
    ----------
    knots
        Where the vector field is evaluated: equally spaced, both ends of the span included.
    length
        Length scale of the covariance, the standard deviation of the kernel whose convolution with itself it is.
        Left out, .8 span / knots, which is the .08 of the paper for 100 knots on [0, 10]. Longer than about twice the
        spacing the weights of past derivatives reach hundreds, of alternating sign, and then no digit is left.
    precision
        The prior variance of the derivative is sqrt(pi) length / precision.
    particles
        The number of paths, which is the number of components of the mixture.

    Notes
    -----
    The derivative at s and the state at t have prior covariances, with l the length, a the precision and
    g(x) = pi l^2 x erf(x / 2l) + 2 sqrt(pi) l^3 exp(-x^2 / 4l^2), times from the start of the span:

    * derivatives: sqrt(pi) l exp(-(s - t)^2 / 4l^2) / a
    * derivative and state: pi l^2 (erf((t - s) / 2l) + erf(s / 2l)) / a
    * states: (g(s) + g(t) - g(t - s) - 2 sqrt(pi) l^3) / a

    The law at a time conditions on the derivatives at the knots strictly before it; at a knot it is the law from which
    the particles' states were drawn. At the start the solution is known, and there is no law.

    A problem is lost if one of its particles is.

    References
    ----------
    Chkrebtii, Campbell, Calderhead and Girolami (2016). Bayesian solution uncertainty quantification for differential
    equations. Bayesian Analysis 11, 1239-1267.

    Examples
    --------
    >>> from ringtrue.procedures.ode import InitialValueProblem
    >>> decay = InitialValueProblem(lambda t, x: -x, [1.0], (0.0, 1.0))
    >>> solution = Chkrebtii(knots=20, particles=10)(None, decay, np.random.default_rng(0))
    >>> len(solution.law(1.0, 0).laws)
    10
    """

    knots: int = 100
    length: float | None = None
    precision: float = 1.0
    particles: int = 100

    def __post_init__(self) -> None:
        for name, least in (("knots", 2), ("particles", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise InvalidStudy(f"{name} must be a whole number of at least {least}, but {value!r} arrived.")
        for name in ("precision",) if self.length is None else ("precision", "length"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 < float(value) < np.inf:
                raise InvalidStudy(f"{name} must be a positive number, but {value!r} arrived.")

    def __call__(self, belief: Any, problem: InitialValueProblem, rng: Generator) -> MixtureSolution:
        """Return the mixture over the particles."""
        start, end = problem.span
        length = 0.8 * (end - start) / self.knots if self.length is None else float(self.length)
        forecast = forecasts(int(self.knots), length, float(self.precision), end - start)
        flow = Flow(problem)
        ensemble = _Ensemble(flow, forecast, self.particles, seed=int(rng.integers(2**63)))
        ensemble.moments(end)  # also finds out which problems are lost
        need_solution(problem, flow.lost, "Chkrebtii")
        return MixtureSolution(problem, ensemble.moments, ensemble.before, flow.lost)


@dataclass(frozen=True)
class DerivativePrior:
    """The covariances of a process that starts at 0 and of its derivative.

    Examples
    --------
    >>> round(float(DerivativePrior(0.08).states(np.array(1.0))), 6)
    0.036582
    """

    length: float
    precision: float = 1.0

    def derivatives(self, s: Floats, t: Floats) -> Floats:
        """Return the covariance of the derivatives at s and t."""
        bell = np.exp(-np.square((s - t) / (2 * self.length)))
        return np.asarray(np.sqrt(np.pi) * self.length * bell / self.precision)

    def mixed(self, s: Floats, t: Floats) -> Floats:
        """Return the covariance of the derivative at s and the state at t."""
        rise = special.erf((t - s) / (2 * self.length)) + special.erf(s / (2 * self.length))
        return np.asarray(np.pi * self.length**2 * rise / self.precision)

    def states(self, t: Floats) -> Floats:
        """Return the variance of the state at t."""
        x = t / (2 * self.length)
        # expm1, because near 0 the two terms without erf nearly cancel.
        grown = np.pi * self.length**2 * t * special.erf(x) + 2 * np.sqrt(np.pi) * self.length**3 * np.expm1(-x * x)
        return np.asarray(2 * grown / self.precision)


class Forecasts:
    """Weights and variances of the state at any time, given the derivatives at the knots strictly before it.

    Parameters
    ----------
    prior
        The process.
    knots
        Times from the start, equally spaced, the first 0.
    """

    def __init__(self, prior: DerivativePrior, knots: Floats) -> None:
        self.prior, self.knots = prior, knots
        self._root = _factor(prior, knots[:-1])
        weights, variances = self._given(knots, np.arange(len(knots)))
        self.weights, self.sd = np.ascontiguousarray(weights.T), np.sqrt(variances)

    def before(self, t: float) -> int:
        """Return the number of knots strictly before a time; those within rounding of it are not before."""
        # Knots are times asked about, too: rounding must not make a knot one before itself.
        return int(np.searchsorted(self.knots, t - 1e-12 * self.knots[-1]))

    def at(self, t: float) -> tuple[Floats, float]:
        """Return the weights of the derivatives before a time and the variance they leave."""
        n = self.before(t)
        weights, variances = self._given(np.array([t]), np.array([n]))
        return weights[:n, 0], float(variances[0])

    def _given(self, times: Floats, counts: Rows) -> tuple[Floats, Floats]:
        """Return weights (knots, times) and variances given the first ``counts`` derivatives; other weights are 0."""
        from scipy.linalg import solve_triangular  # importing it takes 0.1 s

        s = self.knots[:-1, None]
        white = solve_triangular(self._root, self.prior.mixed(s, times), lower=True)
        white[np.arange(len(s))[:, None] >= counts] = 0  # the leading block of a triangular factor is the factor
        left = self.prior.states(times) - np.square(white).sum(axis=0)
        weights = solve_triangular(self._root, white, lower=True, trans=1)
        near = (counts > 0) & (times < 1e-3 * self.prior.length)
        return weights, np.where(near, self._near_start(times), np.maximum(left, 0.0))

    def _near_start(self, t: Floats) -> Floats:
        """Return the variance given the first derivative where the difference of variances has no digits.

        It is the first term of a series in powers of (t / length)^2, and right to 1e-7 where it is used.
        """
        start = np.asarray(0.0)
        short = np.expm1(-np.square(t / (2 * self.prior.length)))
        return np.asarray(2 * self.prior.length**2 * self.prior.derivatives(start, start) * short**2)


def _factor(prior: DerivativePrior, knots: Floats) -> Floats:
    """Return the triangular factor of the derivatives' covariance, or refuse one without digits."""
    covariance = prior.derivatives(knots[:, None], knots)
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        root = np.full_like(covariance, np.nan)
    # Squared, this is 1e-10 of the variance: six digits of the weights are left.
    if not root.diagonal().min() > 1e-5 * root[0, 0]:
        raise InvalidStudy(
            f"length must be at most about twice the spacing of the knots, {knots[1]:.3g}, or they are linearly "
            f"dependent to rounding, but {prior.length:.3g} arrived; take fewer knots or a shorter length."
        )
    return np.asarray(root)


@lru_cache(maxsize=8)
def forecasts(knots: int, length: float, precision: float, span: float) -> Forecasts:
    """Return the weights and variances of equally spaced knots; the last few sets are remembered.

    Examples
    --------
    >>> round(float(forecasts(100, 0.08, 1.0, 10.0).weights[1, 0]), 10)
    0.089054026
    """
    return Forecasts(DerivativePrior(length, precision), np.linspace(0.0, span, knots))


class _Ensemble:
    """The particles of all problems: groups of problems that fit into fast memory are run to the end one by one.

    What is kept are the means at the times asked about, and the derivatives only if they are few; otherwise a new time
    runs the same particles again, from the same random numbers.
    """

    def __init__(self, flow: Flow, forecast: Forecasts, particles: int, seed: int) -> None:
        self.flow, self.forecast, self.particles, self.seed = flow, forecast, particles, seed
        self.start = flow.problem.span[0]
        d, n = flow.shape
        each = d * particles * (len(forecast.knots) - 1)
        self.groups = groups(n, each, _TOGETHER)
        self._keep = each * n <= _KEPT
        self._kept: dict[int, Floats] = {}
        self._known: dict[float, Floats] = {}

    def before(self, t: float) -> int:
        """Return the number of knots strictly before a time."""
        return self.forecast.before(t - self.start)

    def moments(self, t: float) -> tuple[Floats, float]:
        """Return the means (d, particles, n) and the variance at a time."""
        weights, variance = self.forecast.at(t - self.start)
        if t not in self._known:
            if len(self._known) == 4:  # the latest questions are those that come again
                del self._known[next(iter(self._known))]
            d, n = self.flow.shape
            means = np.empty((d, self.particles, n))
            for number, rows in enumerate(self.groups):
                slopes = self._slopes(number, len(weights))
                means[..., rows] = self.flow.initial[:, None, rows] + np.tensordot(weights, slopes, axes=(0, 0))
            means[..., list(self.flow.lost)] = np.nan
            self._known[t] = means
        return self._known[t], variance

    def _slopes(self, number: int, knots: int) -> Floats:
        """Return the derivatives of one group at the first knots, (knots, d, particles, problems)."""
        if number in self._kept:
            return self._kept[number][:knots]
        whole = len(self.forecast.knots) - 1
        with np.errstate(all="ignore"):
            slopes = self._run(number, whole if self._keep else knots)
        if self._keep:
            self._kept[number] = slopes
        return slopes[:knots]

    def _run(self, number: int, knots: int) -> Floats:
        rows, weights = self.groups[number], self.forecast.weights
        first = np.repeat(self.flow.initial[:, None, rows], self.particles, axis=1)
        slopes = np.empty((knots, *first.shape))
        flat = slopes.reshape(knots, -1)
        for block in range(0, knots, _BLOCK):
            # Sums over the past by blocks: a product of matrices where knot by knot would be products with vectors.
            ahead = weights[block : min(block + _BLOCK, knots), :block] @ flat[:block]
            for k in range(block, min(block + _BLOCK, knots)):
                drift = (ahead[k - block] + weights[k, block:k] @ flat[block:k]).reshape(first.shape)
                state = first + drift + self.forecast.sd[k] * normals((self.seed, number, k), first.shape)
                slopes[k] = self.flow(*self._alive(k, state, first, rows), rows)
        # At the last knot the field is not asked, yet a particle may be lost there.
        self._alive(knots, first + np.tensordot(weights[knots, :knots], slopes, axes=(0, 0)), first, rows)
        return slopes

    def _alive(self, k: int, state: Floats, first: Floats, rows: Rows) -> tuple[float, Floats]:
        """Return the time of a knot and the states there; lost problems are sent back to their start."""
        t = self.start + float(self.forecast.knots[k])
        bad = ~np.isfinite(state).all(axis=(0, 1))
        if bad.any():
            self.flow.lose(rows[bad], f"a particle diverged before t = {t:.6g}")
            state = np.where(bad, first, state)
        return t, state
