"""What solvers return: laws of solutions at any time of the span, and draws that are functions of time.

A draw is made when it is asked for a time, from a seed it was given, and remembers its answer; so memory grows with the
times asked about, not with the steps of a solver. Nothing here knows vector fields or how solutions are found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...distributions import Distribution, Gaussian, Normal
from ...distributions.laws import Law, MixtureLaw
from ...errors import InvalidStudy
from ...functions import Evaluate, TestFunction
from ...values import Floats, Generator
from .problem import Flow, InitialValueProblem


class _Remembering(ABC):
    """Functions of time that remember what they were at the times asked about."""

    problem: InitialValueProblem

    def __init__(self) -> None:
        self._known: dict[float, Floats] = {}

    def __call__(self, t: ArrayLike) -> Floats:
        """Return every function's value at one time, or at several: an axis for times comes before the components."""
        times = self.problem.need_inside(t)
        if times.ndim == 0:
            return self._at(float(times))
        return np.stack([self._at(float(one)) for one in times], axis=-2)

    def _at(self, t: float) -> Floats:
        if t not in self._known:
            self._known[t] = self._found(t)
        return self._known[t]

    @abstractmethod
    def _found(self, t: float) -> Floats:
        """Return the values at a time that is new."""


class Paths(_Remembering):
    """Functions of time: axes (draws, problems, components), without the axis of problems for a single one.

    Parameters
    ----------
    values
        Returns the components (d, draws, problems) at one time; called once per time.
    shape
        Draws and problems; problems is None for a single one.
    problem
        Whose span bounds the times.
    """

    def __init__(
        self, values: Callable[[float], Floats], shape: tuple[int, int | None], problem: InitialValueProblem
    ) -> None:
        super().__init__()
        self._values, self._shape, self.problem = values, shape, problem

    def _found(self, t: float) -> Floats:
        values = np.moveaxis(self._values(t), 0, -1)
        return values if self._shape[1] is not None else values[:, 0]

    def __len__(self) -> int:
        return self._shape[0]

    def __getitem__(self, index: Any) -> Path:
        return Path(self, index)


@dataclass(frozen=True, eq=False)
class Path:
    """Some of the functions of a :class:`Paths`."""

    whole: Any
    index: Any

    def __call__(self, t: ArrayLike) -> Floats:
        """Return the value at one time or several."""
        return np.asarray(self.whole(t)[self.index])


class Solution(Distribution, ABC):
    """An output of a probabilistic solver.

    Attributes
    ----------
    problem
        What was solved.
    lost
        Problem to reason, for those of a batch without a solution; their laws and draws are nan.
    """

    problem: InitialValueProblem
    lost: Mapping[int, str]

    @abstractmethod
    def law(self, t: float, component: int) -> Law | None:
        """Return the exact law of a component at a time for all problems, (n,); None if it is not known."""

    @abstractmethod
    def drawn(self, m: int, seed: int) -> Callable[[float], Floats]:
        """Return a function from time to m draws, (d, m, n), the same whenever it is asked."""

    def sample(self, m: int, rng: Generator) -> Any:
        """Return m functions of time: a :class:`Paths` for a batch, a list of functions for a single problem."""
        # Draws are made when they are asked for, and rng will have moved on by then.
        seed = int(rng.integers(2**63))
        paths = Paths(self.drawn(m, seed), (m, self.problem.size), self.problem)
        return paths if self.problem.size is not None else [paths[i] for i in range(m)]

    def marginal(self, f: TestFunction) -> Law | None:
        """Return the exact law of a component at a time, for :class:`~ringtrue.Evaluate`."""
        if not isinstance(f, Evaluate):
            return None
        t = float(self.problem.need_inside(f.x))
        law = self.law(t, self._component(f.component))
        return law if law is None or self.problem.size is not None else single(law)

    def _component(self, component: int | None) -> int:
        d = self.problem.dimension
        if component is None and d == 1:
            return 0
        if component is None or not -d <= component < d:
            raise InvalidStudy(
                f"Evaluate needs a component of the {d}-dimensional solution, but {component} arrived; "
                f"pass Evaluate(t, component)."
            )
        return component


def single(law: Law) -> Law:
    """Return the law of a batch of one as that of a single number."""
    if isinstance(law, MixtureLaw):
        return MixtureLaw([single(part) for part in law.laws], law.weights)
    assert isinstance(law, Normal)
    return Normal(np.asarray(law.mean)[..., 0], np.asarray(law.sd)[..., 0])


def _need_later(problem: InitialValueProblem, t: float) -> None:
    if problem.need_inside(t) == problem.span[0]:
        raise InvalidStudy(
            f"the solution is known at the start of the span and has no law there, but t = {t:g} arrived; ask about a "
            f"later time."
        )


class Process(ABC):
    """The joint Gaussian law of a solution at several times."""

    @abstractmethod
    def moments(self, t: float) -> tuple[Floats, Floats]:
        """Return means and variances at one time, (d, n) each."""

    @abstractmethod
    def joint(self, times: Sequence[float]) -> tuple[Floats, Floats]:
        """Return means (n, k d), component fastest, and covariances (n, k d, k d) at k times in any order."""


@dataclass(frozen=True, eq=False)
class GaussianSolution(Solution):
    """A solution that is a Gaussian process.

    Draws at several times have the process's joint law, whichever order they are asked in.
    """

    problem: InitialValueProblem
    process: Process
    lost: Mapping[int, str] = field(default_factory=dict)

    def law(self, t: float, component: int) -> Normal:
        """Return the normal law of a component at a time."""
        _need_later(self.problem, t)
        mean, variance = self.process.moments(t)
        return Normal(mean[component], np.sqrt(variance[component]))

    def joint(self, t: float) -> Gaussian:
        """Return the joint law of all components at a time."""
        mean, cov = self.process.joint([float(self.problem.need_inside(t))])
        return Gaussian(mean, cov) if self.problem.size is not None else Gaussian(mean[0], cov[0])

    def drawn(self, m: int, seed: int) -> Callable[[float], Floats]:
        """Return draws that extend themselves to a new time given what they were at the earlier ones."""
        return _Extending(self.process, m, seed)


class _Extending:
    """Draws of a Gaussian process, time by time: a triangular factor of the covariance grows by rows."""

    def __init__(self, process: Process, m: int, seed: int) -> None:
        self.process, self.m, self.seed = process, m, seed
        self.times: list[float] = []

    def __call__(self, t: float) -> Floats:
        self.times.append(t)
        mean, cov = self.process.joint(self.times)
        n, d = len(mean), mean.shape[1] // len(self.times)
        root = _root(cov)[:, -d:]
        # One stream for each question: what was answered keeps its noise when a time is added.
        streams = [np.random.default_rng((self.seed, k)) for k in range(len(self.times))]
        noise = np.concatenate([stream.standard_normal((self.m, n, d)) for stream in streams], axis=-1)
        values = mean[:, -d:] + np.einsum("nij,mnj->mni", root, noise)
        return np.moveaxis(values, -1, 0)


def _root(cov: Floats) -> Floats:
    """Return lower triangular factors of covariances that may be singular; nan where they are nan."""
    size = cov.shape[-1]
    root = np.zeros_like(cov)
    for j in range(size):
        left = cov[:, j, j] - np.square(root[:, j, :j]).sum(-1)
        # Below rounding a direction is determined by the earlier ones.
        left = np.where(left <= 1e-13 * cov[:, j, j], 0.0, left)
        root[:, j, j] = np.sqrt(left)
        below = cov[:, j + 1 :, j] - (root[:, j + 1 :, :j] @ root[:, j, :j, None])[..., 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            root[:, j + 1 :, j] = np.where(left[:, None] == 0, 0.0, below / root[:, j, j, None])
    return root


@dataclass(frozen=True, eq=False)
class SampledSolution(Solution):
    """A solution known through draws alone: every draw is a run of a randomised solver.

    Parameters
    ----------
    problem
        What was solved.
    simulate
        Returns the values (d, m, n) at a time of m fresh runs with a given seed: ``simulate(t, m, seed)``.
    """

    problem: InitialValueProblem
    simulate: Callable[[float, int, int], Floats]
    lost: Mapping[int, str] = field(default_factory=dict)

    def law(self, t: float, component: int) -> None:
        """Return None: ranks among draws serve."""
        return

    def drawn(self, m: int, seed: int) -> Callable[[float], Floats]:
        """Return runs, repeated for every new time with the same random numbers."""
        return lambda t: self.simulate(t, m, seed)


@dataclass(frozen=True, eq=False)
class MixtureSolution(Solution):
    """A mixture, over equally weighted particles, of Gaussian laws with a common variance.

    Parameters
    ----------
    problem
        What was solved.
    moments
        Returns the particles' means (d, J, n) and their variance at a time.
    epoch
        Returns the number of the interval a time lies in: a draw's noise is one standard normal per interval and
        component, scaled by the standard deviation at the time.
    """

    problem: InitialValueProblem
    moments: Callable[[float], tuple[Floats, float]]
    epoch: Callable[[float], int]
    lost: Mapping[int, str] = field(default_factory=dict)

    def law(self, t: float, component: int) -> MixtureLaw:
        """Return the exact mixture."""
        _need_later(self.problem, t)
        means, variance = self.moments(t)
        parts = [Normal(mean, np.full(mean.shape, np.sqrt(variance))) for mean in means[component]]
        return MixtureLaw(parts, np.full(len(parts), 1 / len(parts)))

    def drawn(self, m: int, seed: int) -> Callable[[float], Floats]:
        """Return draws: each follows one particle through all times."""

        def values(t: float) -> Floats:
            means, variance = self.moments(t)
            d, particles, n = means.shape
            # Stream 0 chooses particles, the others are for intervals: at all times a draw follows the same one.
            chosen = np.random.default_rng((seed, 0)).integers(particles, size=(1, m, n))
            noise = np.random.default_rng((seed, 1 + self.epoch(t))).standard_normal((d, m, n))
            return np.asarray(np.take_along_axis(means, chosen, axis=1) + np.sqrt(variance) * noise)

        return values


class ReferenceSolutions(_Remembering):
    """Accurate solutions of the problems of a batch, as functions of time; the truth of a study.

    Solved by an eighth-order method (DOP853) from the last time asked about, to the time asked for: values are ends of
    integrations, never interpolated. Problems are integrated together in groups; a group that fails is taken apart, and
    a problem that fails alone is nan.

    Parameters
    ----------
    problem
        A batch.
    tolerance
        Relative and absolute.

    Examples
    --------
    >>> decay = InitialValueProblem(lambda t, x, rate: -rate * x, [1.0], (0.0, 2.0), parameters=[[0.5], [1.0]])
    >>> ReferenceSolutions(decay)(1.0).round(6).tolist()
    [[0.606531], [0.367879]]
    """

    def __init__(self, problem: InitialValueProblem, tolerance: float = 1e-12) -> None:
        if problem.size is None:
            raise InvalidStudy("ReferenceSolutions needs a batch of problems; use reference(problem) for a single one.")
        super().__init__()
        self.problem, self.tolerance = problem, tolerance

    def __len__(self) -> int:
        return len(self.problem)

    def __getitem__(self, index: Any) -> Reference:
        """Return one solution, or several as a batch of their own."""
        inside = self.problem[index]
        return Reference(self, index) if inside.size is None else ReferenceSolutions(inside, self.tolerance)  # type: ignore[return-value]

    def _found(self, t: float) -> Floats:
        begin = self.problem.span[0]
        start = max((known for known in self._known if known < t), default=begin)
        if start not in self._known:
            shape = (len(self), self.problem.dimension)
            self._known[begin] = np.broadcast_to(np.asarray(self.problem.initial, float), shape).copy()
        first = self._known[start]
        if t == start:
            return first
        values = np.full(first.shape, np.nan)
        for rows in np.array_split(np.arange(len(first)), -(-len(first) // _TOGETHER)):
            self._integrate(rows, start, t, first, values)
        return values

    def _integrate(self, rows: Any, start: float, end: float, first: Floats, values: Floats) -> None:
        rows = rows[np.isfinite(first[rows]).all(axis=1)]
        if not len(rows):
            return
        # The method bounds the root mean square over all of the group; one problem could have all of the error.
        found = integrated(self.problem[rows], start, end, first[rows], self.tolerance / np.sqrt(len(rows)))
        if found is not None:
            values[rows] = found
        elif len(rows) > 1:
            for half in np.array_split(rows, 2):
                self._integrate(half, start, end, first, values)


#: Problems integrated as one system: enough to spread the cost of Python, few enough to share step sizes.
_TOGETHER = 50


class Reference(Path):
    """One accurate solution."""

    @property
    def problem(self) -> InitialValueProblem:
        """What it solves."""
        problem: InitialValueProblem = self.whole.problem[self.index]
        return problem


def reference(problem: InitialValueProblem, t: ArrayLike, *, tolerance: float = 1e-12) -> Floats:
    """Return an accurate solution at one time or several: (..., d) for a single problem, (n, ..., d) for a batch.

    Examples
    --------
    >>> decay = InitialValueProblem(lambda t, x: -x, [1.0], (0.0, 2.0))
    >>> float(reference(decay, 2.0)[0].round(9))
    0.135335283
    """
    if problem.size is not None:
        return ReferenceSolutions(problem, tolerance)(t)
    one = replace(problem, initial=np.atleast_2d(problem.initial))
    return np.asarray(ReferenceSolutions(one, tolerance)(t)[0])


def integrated(
    problem: InitialValueProblem, start: float, end: float, first: Floats, tolerance: float
) -> Floats | None:
    """Return the end values (n, d) of a batch, integrated as one system; None if it fails."""
    from scipy.integrate import solve_ivp

    flow, (n, d) = Flow(problem), first.shape

    def slope(t: float, x: Floats) -> Floats:
        found = flow(t, x.reshape(d, n)).ravel()
        if not np.isfinite(found).all():
            # Problems of a group share their steps: one that is nan would spoil all.
            raise FloatingPointError
        return found

    with np.errstate(all="ignore"):
        try:
            # SciPy warns of anything below 100 units of rounding.
            allowed = {"rtol": max(tolerance, 3e-14), "atol": tolerance}
            done = solve_ivp(slope, (start, end), first.T.ravel(), method="DOP853", **allowed)
        except FloatingPointError:
            return None
    return done.y[:, -1].reshape(d, n).T if done.success else None
