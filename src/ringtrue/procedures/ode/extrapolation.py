"""Probabilistic Richardson extrapolation: a Gaussian process over time and step size, asked about step size zero.

The data are plain Adams-Bashforth solutions at several steps; nothing about the solver that made them is used but its
order. At common times the covariance is a product of an exponential kernel in time and a small matrix in the step, so
that every factor is known in closed form and no matrix larger than 2 x 2 is ever factored: all sums are of squares, and
the cost of a problem is linear in its data. Nothing here knows what the solutions are used for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidStudy
from ...values import Floats
from .problem import Flow, InitialValueProblem, Rows, need_solution
from .solution import GaussianSolution, Process

#: Values (n,) and gradients (n, p) of the problems ``rows`` at parameters (n, p).
Objective = Callable[[Floats, Rows], tuple[Floats, Floats]]
Bounds = tuple[Floats, Floats]

#: Problems fitted together: enough to spread the cost of Python, few enough for a processor's cache.
_TOGETHER = 500
#: Below every hyperparameter, so that logarithms stay finite.
_LEAST = 1e-8
#: Beyond it a solution has diverged; squares of the data must not overflow.
_LARGEST = 1e100
#: A solution so many times larger than that of the finest step has diverged, though numbers have not run out.
_RUNAWAY = 1e3


@dataclass(frozen=True)
class BBPN:
    """Black-box probabilistic numerics (Teymur et al. 2021): extrapolation to step size zero by regression.

    Two-step Adams-Bashforth solutions q(t, h) are taken for draws of a Gaussian process with the covariance ::

        sigma^2 [1 + t t' + rG exp(-|t - t'| / lt) + rE (h h')^order exp(-|t - t'| / lt) exp(-|h - h'| / lh)]

    in every component, t counted from the start of the span. The last term, the error, is gone at h = 0, where the
    output is the law of the process given the data. The five hyperparameters are shared by the components of a problem
    and maximise its likelihood: sigma in closed form, the others from (1, 1, 1, 1) and at most 10 max(2, range of the
    data) for the lengths and 10 for the ratios.

    Parameters
    ----------
    steps
        Step sizes of the solutions, at least two; each must divide the span.
    grid
        Which values are data: those at the "common" times of all solutions, or those at the "final" time alone, when
        the output has a law only there.
    order
        The order at which the solutions' error falls with the step.
    start
        The first step of the solutions: "rk2", the midpoint rule, or "euler".

    Notes
    -----
    The initial value is not among the data, and the law at the start of the span is not a point. Components are
    independent with equal variances. A problem is lost if one of its solutions diverges: leaves the range of numbers,
    or a thousand times that of the finest solution.

    A maximum of the likelihood is a local one, uphill from the start. Some hyperparameters are open: at a single time
    lt does not matter and rG hardly, which goes to its lower bound, 1e-8; where the errors of the solutions are
    uncorrelated lh has no effect as soon as it is short.

    Examples
    --------
    >>> from ringtrue import Evaluate
    >>> decay = InitialValueProblem(lambda t, x: -x, [1.0], (0.0, 2.0))
    >>> law = BBPN()(None, decay).marginal(Evaluate(2.0))
    >>> round(float(law.mean), 3), round(float(np.exp(-2)), 3)
    (0.135, 0.135)
    """

    steps: Sequence[float] = (0.1, 0.2, 0.4)
    grid: Literal["common", "final"] = "common"
    order: float = 2
    start: Literal["rk2", "euler"] = "rk2"

    def __post_init__(self) -> None:
        steps = np.asarray(self.steps, float)
        if steps.ndim != 1 or len(np.unique(steps)) < max(2, steps.size) or not _positive(steps):
            raise InvalidStudy(f"BBPN needs two or more different positive steps, but {self.steps!r} arrived.")
        if not _positive(self.order):
            raise InvalidStudy(f"BBPN needs a positive order, but {self.order!r} arrived.")
        if self.grid not in ("common", "final"):
            raise InvalidStudy(f"BBPN needs a grid that is 'common' or 'final', but {self.grid!r} arrived.")
        if self.start not in ("rk2", "euler"):
            raise InvalidStudy(f"BBPN needs a start that is 'rk2' or 'euler', but {self.start!r} arrived.")

    def __call__(self, belief: Any, problem: InitialValueProblem) -> GaussianSolution:
        """Return the law of the solution of one problem or a batch; the belief is ignored."""
        counts, meetings = self._counts(problem)
        flow, steps = Flow(problem), (problem.span[1] - problem.span[0]) / counts
        with np.errstate(all="ignore"):
            data = self._data(flow, counts, meetings)
            _lose_unfit(flow, data, steps)
            data[list(flow.lost)] = np.nan
            process = Extrapolation.fitted(_Design.on(problem.span, meetings, steps, float(self.order)), data)
        need_solution(problem, flow.lost, type(self).__name__)
        return GaussianSolution(problem, process, flow.lost)

    def _counts(self, problem: InitialValueProblem) -> tuple[NDArray[np.int64], int]:
        """Return how many steps each solution takes, finest first, and at how many times they are data."""
        span = problem.span[1] - problem.span[0]
        wanted = span / np.sort(np.asarray(self.steps, float))
        counts = np.rint(wanted).astype(np.int64)
        if not (np.abs(wanted - counts) <= 1e-9 * wanted).all() or counts[-1] < 2:
            raise InvalidStudy(
                f"BBPN needs steps that divide the span, at least in two, but {tuple(self.steps)} and a span of "
                f"{span:g} arrived; change the steps."
            )
        # Solutions in a and b equal steps meet gcd(a, b) times.
        meetings = math.gcd(*map(int, counts))
        if self.grid == "common" and meetings < 2:
            raise InvalidStudy(
                f"BBPN needs steps whose solutions meet before the end of the span, but {tuple(self.steps)} do not; "
                f"take multiples of one another, or grid='final'."
            )
        return counts, meetings if self.grid == "common" else 1

    def _data(self, flow: Flow, counts: NDArray[np.int64], meetings: int) -> Floats:
        """Return the solutions (n, d, H, T) at the meeting times."""
        solutions = [self._solved(flow, int(count), meetings) for count in counts]
        # In this order in memory too: sums must not depend on how many problems there are.
        return np.ascontiguousarray(np.stack(solutions, axis=2))

    def _solved(self, flow: Flow, count: int, meetings: int) -> Floats:
        """Return the solution in so many steps at the meeting times, (n, d, meetings); nan where it diverges."""
        first, end = flow.problem.span
        h = (end - first) / count
        d, n = flow.shape
        found = np.full((meetings, d, n), np.nan)
        rows, x, before = np.arange(n), flow.initial, None
        for k in range(count):
            t = first + k * h
            slope = flow(t, x, rows)
            if before is not None:
                # Two-step Adams-Bashforth; it has no slope before the first step.
                x = x + h * (1.5 * slope - 0.5 * before)
            else:
                x = x + h * (slope if self.start == "euler" else flow(t + h / 2, x + h / 2 * slope, rows))
            kept = (np.abs(x) < _LARGEST).all(axis=0)
            if not kept.all():
                flow.lose(rows[~kept], f"the solution with step {h:g} diverged at t = {t + h:g}")
            rows, x, before = rows[kept], x[:, kept], slope[:, kept]
            if not len(rows):
                break
            if (k + 1) * meetings % count == 0:
                found[(k + 1) * meetings // count - 1][:, rows] = x
        return found.transpose(2, 1, 0)


def _lose_unfit(flow: Flow, data: Floats, steps: Floats) -> None:
    """Lose problems whose data (n, d, H, T) are beyond all bounds, or all zero, which leaves sigma open."""
    sizes = np.abs(data).max(axis=(1, 3)).T
    usual = np.maximum(sizes[0], np.abs(flow.initial).max(axis=0))
    flow.lose(np.flatnonzero((sizes < 1 / _LARGEST).all(axis=0)), "the solutions are zero at all times")
    for step, size in zip(steps, sizes, strict=True):
        reason = f"the solution with step {step:g} diverged to {_RUNAWAY:g} times that with step {steps[0]:g}"
        flow.lose(np.flatnonzero(size > _RUNAWAY * usual), reason)


def _positive(value: Any) -> bool:
    values = np.asarray(value)
    return values.dtype.kind in "iuf" and bool((np.isfinite(values) & (values > 0)).all())


@dataclass(frozen=True, eq=False)
class _Design:
    """Where the data are: equally spaced times, counted from the start of the span, and ascending steps."""

    origin: float
    times: Floats  # (T,)
    steps: Floats  # (H,)
    order: float

    @staticmethod
    def on(span: tuple[float, float], meetings: int, steps: Floats, order: float) -> _Design:
        """Return the design with so many times, the last of which is the end of the span."""
        return _Design(span[0], np.linspace(0.0, span[1] - span[0], meetings + 1)[1:], steps, order)

    @property
    def basis(self) -> Floats:
        return _polynomials(self.times)

    @property
    def scale(self) -> Floats:
        """One over the size of the error at every step, as (1, 1, H, 1)."""
        return np.asarray((self.steps**-self.order)[None, None, :, None])

    @property
    def bounds(self) -> Bounds:
        """The bounds of the logarithms of lt, lh, rG and rE."""
        lengths = [10 * max(2.0, float(np.ptp(points))) for points in (self.times, self.steps)]
        return np.full(4, np.log(_LEAST)), np.log([*lengths, 10.0, 10.0])


def _polynomials(times: Floats) -> Floats:
    """Return 1 and t, (2, T)."""
    return np.stack([np.ones_like(times), times])


def _fresh(gap: Floats) -> Floats:
    """Return the variance that is new after a gap, in units of the length."""
    return np.asarray(-np.expm1(-2 * gap))


class _Chain:
    """Exponential correlation along an axis of arrays (n, d, H, T): differences of neighbours make it white."""

    def __init__(self, points: Floats, length: Floats, axis: int) -> None:
        shape = [1, 1, 1, 1]
        shape[axis] = len(points) - 1
        ahead = (slice(None),) * axis
        parts = slice(1), slice(1, None), slice(len(points) - 1)
        self._first, self._rest, self._most = ((*ahead, part) for part in parts)
        self.gaps = np.diff(points).reshape(shape) / length
        self.decay = np.exp(-self.gaps)
        self.spread = np.sqrt(_fresh(self.gaps))
        # And its slope by the logarithm of the length.
        self.log_determinant = 2 * _total(np.log(self.spread))
        self.log_determinant_slope = -2 * _total(self.gaps * np.square(self.decay / self.spread))

    def whitened(self, x: Floats) -> Floats:
        """Return uncorrelated coordinates of unit variance."""
        white = np.empty(np.broadcast_shapes(x.shape, (len(self.gaps), 1, 1, 1)))
        white[self._first] = x[self._first]
        rest = white[self._rest]
        np.multiply(self.decay, x[self._most], out=rest)
        np.subtract(x[self._rest], rest, out=rest)
        rest /= self.spread
        return white

    def solved(self, white: Floats) -> Floats:
        """Return what the inverse of the correlation makes of an array that is given whitened."""
        found = white.copy()
        found[self._rest] /= self.spread
        found[self._most] -= self.decay / self.spread * white[self._rest]
        return found

    def slope(self, x: Floats, white: Floats) -> Floats:
        """Return the derivative, by the logarithm of the length, of the sum of squares of an array whitened."""
        rest = white[self._rest]
        change = self.decay / self.spread * rest
        change -= x[self._most]
        change *= rest
        change *= 2 * self.gaps * self.decay / self.spread
        return _total(change)


def _total(x: Floats) -> Floats:
    """Return the sum over all axes but the first, in an order that does not depend on the number of problems."""
    return np.asarray(np.ascontiguousarray(x).reshape(len(x), math.prod(x.shape[1:])).sum(axis=-1))


class _Conditional:
    """What data (n, d, H, T) say about the process given the logarithms (n, 4) of lt, lh, rG and rE, sigma being 1.

    At every time the solutions are combined to one, y, that has all they say about h = 0. It errs with variance
    ``noise`` and the same correlation in time as the process g, of which it leaves the fraction noise / (rG + noise);
    and it is regressed on the polynomials, with coefficients beta. So q'K^{-1}q is the least value of three sums of
    squares: of the errors, of g and of beta.
    """

    def __init__(self, design: _Design, logs: Floats, data: Floats) -> None:
        self.design, self.data = design, data
        self.time = _Chain(design.times, np.exp(logs[:, 0, None, None, None]), axis=3)
        self.step = _Chain(design.steps, np.exp(logs[:, 1, None, None, None]), axis=2)
        # The rG and rE, (2, n, 1, 1, 1).
        self.ratios = np.exp(logs.T[2:, :, None, None, None])
        self.white_scale = self.step.whitened(design.scale)
        # One over the variance of y's error, in units of rE, (n, 1, 1, 1).
        self.precision = _total(np.square(self.white_scale))[:, None, None, None]
        self.noise = self.ratios[1] / self.precision
        # The variance of y less polynomials, (n, 1, 1, 1).
        self.spread = self.ratios[0] + self.noise
        # The combined solutions, (n, d, 1, T).
        blend = design.scale * self.step.solved(self.white_scale) / self.precision
        self.y = blend.swapaxes(2, 3) @ data
        # The polynomials B whitened, (n, 1, 2, T), and a root of (B B' + spread)^{-1}, (n, 2, 2).
        self.white_basis = self.time.whitened(design.basis[None, None])
        self.root = _inverse_root(self.white_basis[:, 0], self.spread[:, 0, 0, 0])
        # The coefficients of the polynomials, (n, d, 2), and what these leave of y, (n, d, 1, T).
        scores = self.time.whitened(self.y)[:, :, 0] @ self.white_basis[:, 0].swapaxes(1, 2)
        self.beta = scores @ self.root @ self.root.swapaxes(1, 2)
        self.left = self.y - (self.beta @ design.basis)[:, :, None]
        self.g = self.left * (self.ratios[0] / self.spread)

    def likelihood(self) -> tuple[Floats, Floats, Floats]:
        """Return minus its logarithm, maximised over sigma, with gradient (n, 4) by the logarithms; and sigma^2."""
        d, count = self.data.shape[1], math.prod(self.data.shape[1:])
        square, square_slopes = self._square()
        determinant, determinant_slopes = self._determinant()
        # The best sigma^2 is square / count; with it the exponent is a constant.
        gradient = 0.5 * (count * square_slopes / square + d * determinant_slopes)
        return 0.5 * (count * np.log(square) + d * determinant), gradient.T, square / count

    def _square(self) -> tuple[Floats, Floats]:
        """Return q'K^{-1}q and its slopes, (4, n): at a least value, errors, g and beta count as constants."""
        rg, re = self.ratios[:, :, 0, 0, 0]
        errors = self.data - self.y
        errors += self.left * (self.noise / self.spread)
        errors *= self.design.scale
        step_white, time_white = self.step.whitened(errors), self.time.whitened(errors)
        white, g_white = self.time.whitened(step_white), self.time.whitened(self.g)
        by_lt = self.time.slope(step_white, white) / re + self.time.slope(self.g, g_white) / rg
        by_lh = self.step.slope(time_white, white) / re
        of_errors, of_g = _total(np.square(white)) / re, _total(np.square(g_white)) / rg
        return of_errors + of_g + _total(np.square(self.beta)), np.stack([by_lt, by_lh, -of_g, -of_errors])

    def _determinant(self) -> tuple[Floats, Floats]:
        """Return log det K and its slopes, (4, n)."""
        _, _, h, t = self.data.shape
        rg, re = self.ratios[:, :, 0, 0, 0]
        spread, precision, noise = (x[:, 0, 0, 0] for x in (self.spread, self.precision, self.noise))
        at_a_time = self.step.log_determinant + np.log(precision * spread / re) + h * np.log(re)
        polynomial = -2 * np.log(self.root[:, 0, 0] * self.root[:, 1, 1] * spread)
        value = h * self.time.log_determinant + t * (at_a_time - 2 * np.log(self.design.scale).sum()) + polynomial
        by_spread = (t - 2) / spread + _total(np.square(self.root))
        turn = self.root.swapaxes(1, 2)[:, None]
        by_lt = self.time.slope(turn @ self.design.basis, turn @ self.white_basis)
        by_lt += h * self.time.log_determinant_slope
        by_precision = self.step.slope(self.design.scale, self.white_scale) / precision
        by_lh = t * (self.step.log_determinant_slope + by_precision) - by_spread * noise * by_precision
        return value, np.stack([by_lt, by_lh, by_spread * rg, t * (h - 1) + by_spread * noise])


def _inverse_root(basis: Floats, ridge: Floats) -> Floats:
    """Return upper triangular U with U U' = (B B' + ridge)^{-1}, for n pairs B of rows, (n, 2, T)."""
    one, two = basis[:, 0], basis[:, 1]
    size, cross = np.square(one).sum(-1), (one * two).sum(-1)
    # A determinant that is a sum of squares: at a single time B B' is singular.
    apart = np.square(two - one * (cross / size)[:, None]).sum(-1)
    determinant = ridge * (ridge + size + np.square(two).sum(-1)) + size * apart
    first, second = np.sqrt(size + ridge), np.sqrt(determinant / (size + ridge))
    root = np.zeros((len(ridge), 2, 2))
    root[:, 0, 0], root[:, 0, 1], root[:, 1, 1] = 1 / first, -cross / (np.square(first) * second), 1 / second
    return root


def _hyperparameters(design: _Design, data: Floats) -> Floats:
    """Return the logarithms of lt, lh, rG and rE, (n, 4), of largest likelihood; nan where the data are."""
    found = np.full((len(data), 4), np.nan)
    known = np.flatnonzero(np.isfinite(data).all(axis=(1, 2, 3)))
    for first in range(0, len(known), _TOGETHER):
        rows = known[first : first + _TOGETHER]
        found[rows] = _minimised(partial(_misfit, design, data[rows]), np.zeros((len(rows), 4)), design.bounds)
    return found


def _misfit(design: _Design, data: Floats, logs: Floats, rows: Rows) -> tuple[Floats, Floats]:
    value, gradient, _ = _Conditional(design, logs, data[rows]).likelihood()
    return value, gradient


_ITERATIONS = 200
#: The largest change of a logarithm in one step: longer ones land on plateaus, where a length no longer matters.
_STRIDE = 2.0
#: Step of the differences of gradients, in logarithms.
_NUDGE = 1e-5
#: Converged, after one more step, when Newton's method promises less.
_DECREMENT = 1e-12
#: Added to curvatures, some of which vanish.
_FLAT = 1e-12


def _minimised(objective: Objective, start: Floats, bounds: Bounds) -> Floats:
    """Return local minima (n, p) of n functions between bounds, by damped Newton steps for all at once.

    Second derivatives are differences of gradients; their negative eigenvalues count by size, so that steps lead
    downhill. A parameter at a bound stays while the gradient pushes it outwards.
    """
    x = np.clip(start, *bounds)
    rows, damping = np.arange(len(x)), np.ones(len(x))
    value, gradient = objective(x, rows)
    hessian = _differenced(objective, x, gradient, rows)
    for _ in range(_ITERATIONS):
        trial, decrement = _newton(x[rows], gradient[rows], hessian[rows], damping[rows], bounds)
        found, slopes = objective(trial, rows)
        # On a plateau the last digit decides nothing, and a step must not be refused for it.
        better = found <= value[rows] + 1e-14 * np.abs(value[rows])
        moved = rows[better]
        x[moved], value[moved], gradient[moved] = trial[better], found[better], slopes[better]
        # Levenberg and Marquardt's rule: trust the curvature more after a success, less after a failure.
        damping[rows] = np.maximum(damping[rows] * np.where(better, 0.1, 5.0), 1e-10)
        going = (decrement > _DECREMENT) & (damping[rows] < 1e12)
        rows, moved = rows[going], rows[going & better]
        if not len(rows):
            break
        hessian[moved] = _differenced(objective, x[moved], gradient[moved], moved)
    return x


def _differenced(objective: Objective, x: Floats, gradient: Floats, rows: Rows) -> Floats:
    """Return second derivatives (n, p, p)."""
    # One-sided: gradients are exact, and a step needs but a few digits of curvature.
    columns = [(objective(x + nudge, rows)[1] - gradient) / _NUDGE for nudge in _NUDGE * np.eye(x.shape[1])]
    matrix = np.nan_to_num(np.stack(columns, axis=-1))
    return np.asarray(0.5 * (matrix + matrix.swapaxes(1, 2)))


def _newton(x: Floats, gradient: Floats, hessian: Floats, damping: Floats, bounds: Bounds) -> tuple[Floats, Floats]:
    """Return damped Newton points between bounds, and twice the decrease that undamped ones would promise."""
    lower, upper = bounds
    pinned = ((x <= lower) & (gradient > 0)) | ((x >= upper) & (gradient < 0))
    free = ~pinned[:, :, None] & ~pinned[:, None]
    curvature, axes = np.linalg.eigh(np.where(free, hessian, np.eye(x.shape[1])))
    along = (np.where(pinned, 0.0, gradient)[:, None] @ axes)[:, 0]
    size = np.abs(curvature) + _FLAT
    step = -(axes @ (along / (size + damping[:, None]))[:, :, None])[:, :, 0]
    step /= np.maximum(1.0, np.abs(step).max(axis=-1, keepdims=True) / _STRIDE)
    return np.clip(x + step, lower, upper), (np.square(along) / size).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class Extrapolation(Process):
    """The law at step size zero of n fitted processes with d components; nan where the data are.

    Attributes
    ----------
    hyperparameters
        lt, lh, rG and rE, (n, 4).
    scale
        sigma^2, (n,).
    misfit
        Minus the logarithm of the likelihood at its maximum, without constants, (n,).
    """

    design: _Design
    hyperparameters: Floats
    scale: Floats
    misfit: Floats
    noise: Floats  # (n, 1, 1): variance of the error of the combined solutions
    g: Floats  # (n, d, T): the process at the data's times, without polynomials
    beta: Floats  # (n, d, 2): the polynomials' coefficients
    root: Floats  # (n, 2, 2): a root of the coefficients' covariance

    @staticmethod
    def fitted(design: _Design, data: Floats) -> Extrapolation:
        """Return the law given data (n, d, H, T)."""
        logs = _hyperparameters(design, data)
        given = _Conditional(design, logs, data)
        misfit, _, scale = given.likelihood()
        root = given.root * np.sqrt(given.spread[:, 0])
        return Extrapolation(design, np.exp(logs), scale, misfit, given.noise[:, 0], given.g[:, :, 0], given.beta, root)

    def moments(self, t: float) -> tuple[Floats, Floats]:
        """Return means and variances at one time, (d, n) each."""
        mean, cov = self._at(np.array([t]))
        return mean[:, :, 0].T, np.tile(cov[:, 0, 0], (mean.shape[1], 1))

    def joint(self, times: Sequence[float]) -> tuple[Floats, Floats]:
        """Return means (n, k d), component fastest, and covariances (n, k d, k d) at k times in any order."""
        mean, cov = self._at(np.asarray(times, float))
        n, d, k = mean.shape
        both = cov[:, :, None, :, None] * np.eye(d)[:, None]
        return mean.swapaxes(1, 2).reshape(n, k * d), both.reshape(n, k * d, k * d)

    def _at(self, times: Floats) -> tuple[Floats, Floats]:
        """Return means (n, d, k) and the covariance of every component, (n, k, k)."""
        own, rg = self.design.times, self.hyperparameters[:, 2, None, None]
        # The end less the start of the span may be beyond the last time by rounding.
        t = np.minimum(times - self.design.origin, own[-1])
        if len(own) == 1 and (t != own[-1]).any():
            raise InvalidStudy(
                f"BBPN with grid='final' has a law at the end of the span only, t = {self.design.origin + own[-1]:g}, "
                f"but {times} arrived; take grid='common'."
            )
        between = _Between(self.design.times, t, self.hyperparameters[:, 0, None])
        mean = self.beta @ _polynomials(t) + self.g @ between.weights
        left = _polynomials(t) - self.design.basis @ between.weights * (rg / (rg + self.noise))
        coefficients = left.swapaxes(1, 2) @ self.root
        # Each term is a covariance of its own, so that nothing cancels.
        cov = rg * between.bridge + rg * self.noise / (rg + self.noise) * between.explained
        # Times sigma^2, as the model has it; the authors' code multiplies by sigma.
        return mean, self.scale[:, None, None] * (cov + coefficients @ coefficients.swapaxes(1, 2))


class _Between:
    """A process of unit variance and exponential correlation at times up to the last of some points, given it there."""

    def __init__(self, points: Floats, times: Floats, length: Floats) -> None:
        self.points, self.times, self.length = points, times, length
        # The number of the first point that is not before each time.
        self.after = np.searchsorted(points, times)
        # The distance from the point before, (n, k), infinite if there is none; and to the point after.
        self.back = (times - np.append(-np.inf, points)[self.after]) / length
        self.ahead = (points[self.after] - times) / length

    @cached_property
    def weights(self) -> Floats:
        """Weights of the values at the points, (n, points, k): no more than two per time are not zero."""
        found = np.zeros((len(self.length), len(self.points), len(self.times)))
        column, inner = np.arange(len(self.times)), self.after > 0
        whole = _fresh(self.back + self.ahead)
        found[:, self.after, column] = np.exp(-self.ahead) * _fresh(self.back) / whole
        before = np.exp(-self.back) * _fresh(self.ahead) / whole
        found[:, self.after[inner] - 1, column[inner]] = before[:, inner]
        return found

    @cached_property
    def bridge(self) -> Floats:
        """The covariance that the points leave, (n, k, k): none between times that a point separates."""
        early = np.less.outer(self.times, self.times)
        back = np.where(early, self.back[:, :, None], self.back[:, None])
        ahead = np.where(early, self.ahead[:, None], self.ahead[:, :, None])
        left = _fresh(back) * _fresh(ahead) / _fresh(self.back + self.ahead)[:, None]
        return np.where(np.equal.outer(self.after, self.after), self._correlation(self.times) * left, 0.0)

    @cached_property
    def explained(self) -> Floats:
        """The covariance that the points explain, (n, k, k)."""
        used = np.unique(np.concatenate([self.after, np.maximum(self.after - 1, 0)]))
        weights = self.weights[:, used]
        return np.asarray(weights.swapaxes(1, 2) @ self._correlation(self.points[used]) @ weights)

    def _correlation(self, times: Floats) -> Floats:
        return np.asarray(np.exp(-np.abs(np.subtract.outer(times, times)) / self.length[:, :, None]))
