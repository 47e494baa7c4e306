"""Classical solvers with a random shift at every step, known through their runs.

The shift has the size of the local error, so that an ensemble of runs spreads as far as the solver errs, if its scale
is well chosen. The scale is the user's, or fitted problem by problem to the difference between runs with the step and
with half of it. A run is made again, from the same random numbers, for every time asked about: memory holds the current
states alone. Nothing here knows studies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidStudy
from ...values import Floats, Generator
from .problem import Flow, InitialValueProblem, Rows, need_solution
from .solution import SampledSolution

#: The noise of a step, by its number; 0 for a run without.
Shift = Callable[[int], Floats | float]
Start = Literal["rk4", "trapezoid", "euler"]

#: Numbers of one array of states: what the fastest caches hold.
_TOGETHER = 2**15
#: More steps than this are a mistake.
_MOST_STEPS = 100_000
#: Newton's method takes 3 to 9 iterations where it works; one that does not keeps its whole group waiting.
_ITERATIONS = 15
#: Relative change at which it stops: convergence is quadratic, so what is left is far below rounding.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Calibrated:
    """The scale of the noise fitted to each problem, as proposed by Conrad et al.

    Parameters
    ----------
    factor
        Multiplies the fitted scale.
    grid
        Candidates, as multiples of the scale at which shifts that merely add up would have, over the whole span, the
        root mean square of the difference between runs with the step and with half of it.
    ensemble
        Runs per candidate.

    Notes
    -----
    Noise-free runs with the step and with half of it differ by e at a time and component. The ensemble of a candidate
    has mean m and variance v there; the chosen one minimises the sum, over all steps and components, of Bhattacharyya
    distances between N(m, v) and the normal law around the run with the step whose variance is e^2. Candidates share
    their random numbers. A problem that is solved without error gets no noise.

    Examples
    --------
    >>> Calibrated(factor=0.5).ensemble
    50
    """

    factor: float = 1.0
    grid: tuple[float, ...] = field(default=tuple(2.0 ** (k / 2) for k in range(-8, 9)), repr=False)
    ensemble: int = 50

    def __post_init__(self) -> None:
        if not isinstance(self.factor, Real) or not 0 < self.factor < np.inf:
            raise InvalidStudy(f"factor must be a positive number, but {self.factor!r} arrived.")
        if not self.grid or not all(isinstance(one, Real) and 0 < one < np.inf for one in self.grid):
            raise InvalidStudy(f"grid must be positive numbers, but {self.grid!r} arrived.")
        if isinstance(self.ensemble, bool) or not isinstance(self.ensemble, Integral) or self.ensemble < 2:
            raise InvalidStudy(f"ensemble must be a whole number of at least 2, but {self.ensemble!r} arrived.")


class Point(NamedTuple):
    """Where a run is: time, value, slope there, and the slope one step earlier (None at the start)."""

    t: float
    value: Floats
    slope: Floats
    before: Floats | None


class Field:
    """The vector field of some problems of a batch."""

    def __init__(self, flow: Flow, rows: Rows) -> None:
        self.flow, self.rows = flow, rows

    def __call__(self, t: float, x: Floats) -> Floats:
        """Return the derivatives."""
        return self.flow(t, x, self.rows)

    def jacobian(self, t: float, x: Floats) -> Floats:
        """Return the partial derivatives."""
        return self.flow.jacobian(t, x, self.rows)

    def lose(self, bad: NDArray[np.bool_], reason: str) -> None:
        """Note why runs ended: ``bad`` has their axes, the problems' last."""
        self.flow.lose(self.rows[bad.reshape(-1, len(self.rows)).any(axis=0)], reason)


@dataclass(frozen=True)
class Randomised(ABC):
    """A solver of fixed step whose every step is shifted by independent normal noise.

    The noise of a step has standard deviation ``noise * h ** (order + 1/2)`` in every component, the scaling at which
    the ensemble converges as fast as the solver. A step that does not divide the span is shortened to the next that
    does, and h is that one. Between the ends of steps, values are those of the cubic polynomial that has the values and
    slopes of both ends.

    A problem is lost if its run without noise is; a run that diverges later is nan from its start, and the reason is
    added to the solution's ``lost``. ``solution.simulate`` knows the solver, and the standard deviation per problem.
    """

    step: float
    noise: float | Calibrated

    order: ClassVar[int]

    def __post_init__(self) -> None:
        if not isinstance(self.step, Real) or not 0 < self.step < np.inf:
            raise InvalidStudy(f"step must be a positive number, but {self.step!r} arrived.")
        number = isinstance(self.noise, Real) and 0 <= self.noise < np.inf
        if not number and not isinstance(self.noise, Calibrated):
            raise InvalidStudy(f"noise must be a number of at least 0, or Calibrated(), but {self.noise!r} arrived.")

    @abstractmethod
    def advance(self, field: Field, h: float, now: Point, shift: Floats | float) -> Floats:
        """Return the values one step later, shifted."""

    def __call__(self, belief: Any, problem: InitialValueProblem, rng: Generator) -> SampledSolution:
        """Return a solution that runs the solver whenever it is sampled."""
        runs = Runs(self, Flow(problem), int(rng.integers(2**63)))
        need_solution(problem, runs.flow.lost, type(self).__name__)
        return SampledSolution(problem, runs, runs.flow.lost)


@dataclass(frozen=True)
class RandomisedEuler(Randomised):
    """Euler's method with a shift of standard deviation ``noise * h ** 1.5`` at every step.

    Parameters
    ----------
    step
        The largest step.
    noise
        A number, in the units of the state, which has no default because it is a belief about the field's roughness;
        or :class:`Calibrated`.

    References
    ----------
    Conrad, Girolami, Sarkka, Stuart and Zygalakis (2017). Statistical analysis of differential equations: introducing
    probability measures on numerical solutions. Statistics and Computing 27, 1065-1082.

    Examples
    --------
    >>> decay = InitialValueProblem(lambda t, x: -x, [1.0], (0.0, 1.0))
    >>> run = RandomisedEuler(0.5, noise=0.0)(None, decay, np.random.default_rng(0)).sample(1, np.random.default_rng(1))
    >>> float(run[0](1.0)[0])
    0.25
    """

    order: ClassVar[int] = 1

    def advance(self, field: Field, h: float, now: Point, shift: Floats | float) -> Floats:
        """Follow the slope for one step."""
        return _euler(field, h, now) + shift


@dataclass(frozen=True)
class RandomisedRK4(Randomised):
    """The Runge-Kutta method of order four with a shift of standard deviation ``noise * h ** 4.5`` at every step.

    Parameters
    ----------
    step
        The largest step.
    noise
        A number, in the units of the state, which has no default because it is a belief about the field's roughness;
        or :class:`Calibrated`.

    References
    ----------
    Conrad, Girolami, Sarkka, Stuart and Zygalakis (2017). Statistical analysis of differential equations: introducing
    probability measures on numerical solutions. Statistics and Computing 27, 1065-1082.

    Examples
    --------
    >>> RandomisedRK4(0.1, noise=Calibrated())
    RandomisedRK4(step=0.1, noise=Calibrated(factor=1.0, ensemble=50))
    """

    order: ClassVar[int] = 4

    def advance(self, field: Field, h: float, now: Point, shift: Floats | float) -> Floats:
        """Take the four stages."""
        return _rk4(field, h, now) + shift


@dataclass(frozen=True)
class AdamsMoulton(Randomised):
    """The two-step Adams-Moulton method with a shift of standard deviation ``noise * h ** 3.5`` inside each equation.

    A step solves z = z1 + h (5 f(z) + 8 f(z1) - f(z0)) / 12 + shift for z, by Newton's method.

    Parameters
    ----------
    step
        The largest step.
    noise
        A number, in the units of the state, or :class:`Calibrated`. The default reads the ".3 h^3.5" of the
        calibration paper as a standard deviation; read as a variance, .3 h^7, it is ``noise=0.3**0.5``.
    start
        How the first step is made: "rk4", "trapezoid" (the implicit rule) or "euler"; it is shifted like the others.

    References
    ----------
    Teymur, Lie, Sullivan and Calderhead (2018). Implicit probabilistic integrators for ODEs. Advances in Neural
    Information Processing Systems 31. The scaling is that of Conrad et al. (2017), see :class:`RandomisedEuler`.

    Examples
    --------
    >>> AdamsMoulton(start="trapezoid")
    AdamsMoulton(step=0.5, noise=0.3, start='trapezoid')
    """

    step: float = 0.5
    noise: float | Calibrated = 0.3
    start: Start = "rk4"

    order: ClassVar[int] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start not in get_args(Start):
            raise InvalidStudy(f"start must be one of {', '.join(get_args(Start))}, but {self.start!r} arrived.")

    def advance(self, field: Field, h: float, now: Point, shift: Floats | float) -> Floats:
        """Solve the implicit equation, or make the first step."""
        if now.before is None:
            return self._first(field, h, now, shift)
        # The shift is inside the equation (Teymur et al. 2018), not added to its solution.
        known = now.value + h * (8 * now.slope - now.before) / 12 + shift
        guess = known + h * (10 * now.slope - 5 * now.before) / 12  # the explicit two-step method
        return implicit(field, now.t + h, known, 5 / 12 * h, guess)

    def _first(self, field: Field, h: float, now: Point, shift: Floats | float) -> Floats:
        if self.start == "trapezoid":
            known = now.value + h / 2 * now.slope + shift
            return implicit(field, now.t + h, known, h / 2, known + h / 2 * now.slope)
        return (_rk4 if self.start == "rk4" else _euler)(field, h, now) + shift


def _euler(field: Field, h: float, now: Point) -> Floats:
    return now.value + h * now.slope


def _rk4(field: Field, h: float, now: Point) -> Floats:
    second = field(now.t + h / 2, now.value + h / 2 * now.slope)
    third = field(now.t + h / 2, now.value + h / 2 * second)
    fourth = field(now.t + h, now.value + h * third)
    return now.value + h / 6 * (now.slope + 2 * second + 2 * third + fourth)


def implicit(field: Field, t: float, known: Floats, weight: float, guess: Floats) -> Floats:
    """Solve z = known + weight f(t, z) by Newton's method from a guess; nan where it finds nothing.

    Each equation stops by itself, so that its solution does not depend on its neighbours.
    """
    z, active = guess, np.ones(guess.shape[1:], bool)
    for _ in range(_ITERATIONS):
        residual = z - known - weight * field(t, z)
        change = _solved(weight, field.jacobian(t, z), residual)
        z = np.where(active, z - change, z)
        active = active & (np.abs(change).max(axis=0) > _CLOSE * np.abs(z).max(axis=0))
        if not active.any():
            return z
    field.lose(active, f"the implicit equation was not solved at t = {t:.6g}")
    return np.where(active, np.nan, z)


def _solved(weight: float, jacobian: Floats, right: Floats) -> Floats:
    """Solve (1 - weight jacobian) x = right, components first."""
    if len(right) == 1:
        return np.asarray(right / (1 - weight * jacobian[0]))
    # Cramer's rule: LAPACK is called matrix by matrix, and Lotka and Volterra's problem has two components.
    if len(right) == 2:
        (a, b), (c, d) = -weight * jacobian
        a, d = 1 + a, 1 + d
        return np.asarray(np.stack([d * right[0] - b * right[1], a * right[1] - c * right[0]]) / (a * d - b * c))
    matrix = np.eye(len(right)) - weight * np.moveaxis(jacobian, (0, 1), (-2, -1))
    return np.moveaxis(_linear(matrix, np.moveaxis(right, 0, -1)[..., None])[..., 0], -1, 0)


def _linear(matrix: Floats, right: Floats) -> Floats:
    """Solve linear equations; nan where there is no solution."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), float)
    except np.linalg.LinAlgError:  # raised for all if one is singular
        singular = np.linalg.det(matrix) == 0
        return np.asarray(np.linalg.solve(np.where(singular[..., None, None], np.nan, matrix), right), float)


def walk(solver: Randomised, field: Field, *, steps: int, shape: tuple[int, ...], shift: Shift) -> Iterator[Point]:
    """Yield where runs are, step by step from the start; values are nan once a run has ended.

    What follows its end is run from the initial value instead, lest the field be asked about states it never meets.
    """
    (start, end), (d, _) = field.flow.problem.span, field.flow.shape
    first = field.flow.initial[:, field.rows].reshape(d, *[1] * len(shape), -1)
    first = np.broadcast_to(first, (d, *shape, len(field.rows)))
    now, ended = Point(start, first, field(start, first), None), np.zeros(first.shape[1:], bool)
    yield now
    for k in range(steps):
        value = solver.advance(field, (end - start) / steps, now, shift(k))
        t = start + (end - start) * (k + 1) / steps
        if not np.isfinite(value).all():
            bad = ~np.isfinite(value).all(axis=0)
            field.lose(bad & ~ended, f"diverged before t = {t:.6g}")
            ended, value = ended | bad, np.where(bad, first, value)
        now = Point(t, value, field(t, value), now.slope)
        yield now._replace(value=np.where(ended, np.nan, value)) if ended.any() else now


def groups(n: int, each: int, together: int = _TOGETHER) -> list[Rows]:
    """Return the problems in groups whose states, ``each`` numbers per problem, fit into fast memory.

    Examples
    --------
    >>> [len(rows) for rows in groups(100, 2**11)]
    [16, 16, 16, 16, 16, 16, 4]
    """
    size = max(1, together // each)
    return [np.arange(i, min(i + size, n)) for i in range(0, n, size)]


def normals(key: tuple[int, ...], shape: tuple[int, ...]) -> Floats:
    """Return standard normals; those of a problem, on the last axis, do not depend on the problems behind it."""
    # The problem is the first axis when numbers are drawn: a longer batch starts with the same ones.
    return np.moveaxis(np.random.default_rng(key).standard_normal((shape[-1], *shape[:-1])), 0, -1)


def number_of_steps(step: float, span: float) -> int:
    """Return the smallest number of equal steps that are not larger than asked for.

    Examples
    --------
    >>> number_of_steps(0.3, 1.0)
    4
    """
    # Bounded first, since a span over a tiny step need not be a number that an integer can hold.
    steps = max(1, int(np.ceil(min(span / step, 2 * _MOST_STEPS) - 1e-9)))
    if steps > _MOST_STEPS:
        raise InvalidStudy(
            f"step must divide the span of {span:g} into at most {_MOST_STEPS} steps, but {step!r} arrived."
        )
    return steps


class Runs:
    """Runs of a solver on all problems of a batch, as many and as long as they are asked for.

    Attributes
    ----------
    solver
        With which settings.
    sd
        Standard deviation of a step's noise, one per problem.
    """

    def __init__(self, solver: Randomised, flow: Flow, seed: int) -> None:
        self.solver, self.flow = solver, flow
        start, end = flow.problem.span
        self.steps = number_of_steps(solver.step, end - start)
        self.step = (end - start) / self.steps
        self._lost: tuple[int, ...] = ()
        self._at(self.steps, 0.0, (), lambda number, rows: lambda k: 0.0)  # without noise, to find what is lost
        self._lost = tuple(flow.lost)
        if isinstance(solver.noise, Calibrated):
            scale = fitted_scale(solver, solver.noise, flow.problem, steps=self.steps, seed=seed)
        else:
            scale = np.full(flow.shape[1], float(solver.noise))
        self.sd = scale * self.step ** (solver.order + 0.5)

    def __call__(self, t: float, m: int, seed: int) -> Floats:
        """Return m runs' values at a time, (d, m, n); the same runs whatever the time."""
        position = (t - self.flow.problem.span[0]) / self.step
        near = round(position)
        # A time within rounding of the end of a step is that end, and needs no further step.
        whole, share = (near, 0.0) if abs(position - near) < 1e-9 else divmod(position, 1)

        def shifts(number: int, rows: Rows) -> Shift:
            shape = (self.flow.shape[0], m, len(rows))
            return lambda k: self.sd[rows] * normals((seed, number, k), shape)

        return self._at(int(whole), share, (m,), shifts)

    def _at(self, whole: int, share: float, shape: tuple[int, ...], shifts: Callable[[int, Rows], Shift]) -> Floats:
        """Return the values after a number of whole steps and a share of the next."""
        d, n = self.flow.shape
        values = np.empty((d, *shape, n))
        for number, rows in enumerate(groups(n, d * int(np.prod(shape)))):
            field = Field(self.flow, rows)
            points = walk(self.solver, field, steps=self.steps, shape=shape, shift=shifts(number, rows))
            with np.errstate(all="ignore"):
                ends = list(islice(points, whole, whole + (2 if share else 1)))
            values[..., rows] = _between(ends[0], ends[1], share) if share else ends[0].value
        values[..., list(self._lost)] = np.nan
        return values


def _between(left: Point, right: Point, share: float) -> Floats:
    """Return the cubic polynomial with the values and slopes of both ends."""
    h, rest = right.t - left.t, 1 - share
    low = rest * rest * ((1 + 2 * share) * left.value + share * h * left.slope)
    return np.asarray(low + share * share * ((1 + 2 * rest) * right.value - rest * h * right.slope))


def fitted_scale(
    solver: Randomised, settings: Calibrated, problem: InitialValueProblem, *, steps: int, seed: int
) -> Floats:
    """Return the scale of the noise that makes ensembles as wide as the solver errs, one per problem.

    See :class:`Calibrated`. The criterion is a sum over times, so the spread fits on the whole and may miss at any one
    time; and the difference from half the step is an estimate of the error that can vanish by chance.

    Examples
    --------
    >>> decay = InitialValueProblem(lambda t, x: -x, [1.0], (0.0, 1.0))
    >>> float(fitted_scale(RandomisedEuler(0.1, Calibrated()), Calibrated(), decay, steps=10, seed=0)[0]) > 0
    True
    """
    # A flow of their own, because candidates that are too large may diverge, and that is no loss.
    flow = Flow(problem)
    (d, n), size = flow.shape, len(settings.grid) * settings.ensemble
    scale = np.zeros(n)
    for number, rows in enumerate(groups(n, d * size)):
        with np.errstate(all="ignore"):
            scale[rows] = _fit(solver, settings, Field(flow, rows), steps, (seed, number))
    return scale


def _fit(solver: Randomised, settings: Calibrated, field: Field, steps: int, key: tuple[int, ...]) -> Floats:
    coarse, fine = _noiseless(solver, field, steps), _noiseless(solver, field, 2 * steps)[::2]
    start, end = field.flow.problem.span
    unit = ((end - start) / steps) ** (solver.order + 0.5)
    # Independent shifts that merely add up have steps times the variance of one.
    wide = np.sqrt(np.square(coarse - fine)[1:].mean(axis=(0, 1)) / steps)
    sd = np.asarray(settings.grid)[:, None, None] * wide  # candidate, run, problem
    one, shape = (len(coarse[0]), 1, settings.ensemble, len(field.rows)), (len(settings.grid), settings.ensemble)
    points = walk(solver, field, steps=steps, shape=shape, shift=lambda k: sd * normals((*key, k), one))
    # Below rounding, the difference of two runs says nothing.
    error = np.maximum(np.abs(coarse - fine), np.finfo(float).eps * np.abs(coarse))
    total = sum(
        _bhattacharyya(now.value.mean(axis=2), now.value.var(axis=2, ddof=1), coarse[k], error[k] ** 2)
        for k, now in enumerate(points)
        if k
    )
    best = np.argmin(np.where(np.isfinite(total), total, np.inf), axis=0)
    return np.asarray(settings.factor * np.asarray(settings.grid)[best] * wide / unit)


def _noiseless(solver: Randomised, field: Field, steps: int) -> Floats:
    """Return a run without noise, (steps + 1, d, problems)."""
    return np.stack([now.value for now in walk(solver, field, steps=steps, shape=(), shift=lambda k: 0.0)])


def _bhattacharyya(mean: Floats, variance: Floats, center: Floats, spread: Floats) -> Floats:
    """Return distances of normal laws (d, candidates, problems) from those (d, problems), summed over components."""
    both = variance + spread[:, None]
    apart = np.square(mean - center[:, None]) / (4 * both)
    return np.asarray((apart + np.log(both / (2 * np.sqrt(variance * spread[:, None]))) / 2).sum(axis=0))
