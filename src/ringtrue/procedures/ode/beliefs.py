"""Beliefs over solutions of differential equations, induced by laws of their parameters.

The datum of such a study is the equation itself: ``Study(lotka_volterra(), equation, EK1(), ...)``. Four problems that
a reader would try are here. Nothing here knows solvers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...distributions import Distribution, Normal, as_distribution
from ...errors import InvalidStudy
from ...values import Floats, Generator
from .problem import InitialValueProblem
from .solution import ReferenceSolutions


@dataclass(frozen=True, eq=False)
class LogNormal(Distribution):
    """Independent log-normal entries: exp(location + spread Z).

    Examples
    --------
    >>> LogNormal([0.0, 1.0], 0.1).sample(3, np.random.default_rng(0)).shape
    (3, 2)
    """

    location: ArrayLike
    spread: ArrayLike

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        location, spread = np.broadcast_arrays(self.location, self.spread)
        return np.asarray(np.exp(location + spread * rng.standard_normal((m, *location.shape))))


@dataclass(frozen=True, eq=False)
class SolutionBelief(Distribution):
    """The law of the solution when the parameters, the initial value, or both are random.

    Parameters
    ----------
    problem
        The problem whose random parts are replaced.
    parameters
        Law of the parameters: a distribution over vectors, or a function of rng. Left out, those of the problem.
    initial
        Law of the initial value. Left out, that of the problem.
    tolerance
        Relative and absolute tolerance of the solutions.

    Examples
    --------
    >>> truth = lotka_volterra().sample(2, np.random.default_rng(0))
    >>> truth(10.0).shape, len(truth)
    ((2, 2), 2)
    """

    problem: InitialValueProblem
    parameters: Any = None
    initial: Any = None
    tolerance: float = 1e-12

    def __post_init__(self) -> None:
        if self.problem.size is not None:
            raise InvalidStudy(f"a single problem is needed, but a batch of {self.problem.size} arrived.")
        if self.parameters is None and self.initial is None:
            raise InvalidStudy("a law of the parameters or of the initial value is needed, but neither arrived.")

    def sample(self, m: int, rng: Generator) -> ReferenceSolutions:
        """Return m solutions."""
        drawn: dict[str, Any] = {}
        for name in ("parameters", "initial"):
            if (law := getattr(self, name)) is not None:
                values = as_distribution(law, what="the belief", role="belief").sample(m, rng)
                drawn[name] = np.asarray(values, float).reshape(m, -1)
        return ReferenceSolutions(replace(self.problem, **drawn), self.tolerance)


def equation(theta: Any) -> InitialValueProblem:
    """Return the problem that a solution solves: the model of a study of solvers, whose datum is the equation.

    Examples
    --------
    >>> equation(lotka_volterra().sample(3, np.random.default_rng(0))).size
    3
    """
    problem: InitialValueProblem = theta.problem
    return problem


def lotka_volterra(rates: Any = None) -> SolutionBelief:
    """Return the belief over predators and prey, x' = a x - b x y, y' = d x y - c y, from (10, 10) over [0, 10].

    Parameters
    ----------
    rates
        The law of (a, b, c, d). Left out, log-normal: medians 1, exp(-2), 1, exp(-2), and standard deviations of the
        logarithms .25, .1, .25, .1.

    Examples
    --------
    >>> lotka_volterra().problem.span
    (0.0, 10.0)
    """
    logs = np.array([0.0, -2.0, 0.0, -2.0])
    # The paper's logNormal(0, 0.25), read as the sd of the logarithm. As its variance, Adams-Bashforth with h = 0.4
    # diverges for one draw in eight, and the paper reports no failures.
    law = LogNormal(logs, [0.25, 0.1, 0.25, 0.1]) if rates is None else rates
    problem = InitialValueProblem(_predation, [10.0, 10.0], (0.0, 10.0), np.exp(logs), _predation_slopes)
    return SolutionBelief(problem, law)


def _predation(t: Any, x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    prey, predators = x
    # The paper prints plus signs throughout; then every draw blows up before t = 1.
    return [prey * (a - b * predators), predators * (d * prey - c)]


def _predation_slopes(t: Any, x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    prey, predators = x
    return [[a - b * predators, -b * prey], [d * predators, d * prey - c]]


def logistic_growth(rates: Any = None) -> SolutionBelief:
    """Return the belief over logistic growth, x' = r x (1 - x / K), from 0.1 over [0, 10].

    Parameters
    ----------
    rates
        The law of (r, K). Left out, log-normal with medians 1 and 1 and spreads .25 and .1.

    Notes
    -----
    The solution is known: K / (1 + (K / x0 - 1) exp(-r t)).

    Examples
    --------
    >>> logistic_growth().problem.dimension
    1
    """
    law = LogNormal([0.0, 0.0], [0.25, 0.1]) if rates is None else rates
    return SolutionBelief(InitialValueProblem(_growth, [0.1], (0.0, 10.0), [1.0, 1.0], _growth_slope), law)


def _growth(t: Any, x: Any, r: Any, capacity: Any) -> Any:
    return [r * x[0] * (1 - x[0] / capacity)]


def _growth_slope(t: Any, x: Any, r: Any, capacity: Any) -> Any:
    return [[r * (1 - 2 * x[0] / capacity)]]


def fitzhugh_nagumo(rates: Any = None) -> SolutionBelief:
    """Return the belief over a neuron's voltage, v' = c (v - v^3 / 3 + w), w' = -(v - a + b w) / c, over [0, 20].

    Parameters
    ----------
    rates
        The law of (a, b, c). Left out, log-normal with medians .2, .2 and 3 and spreads .1. It starts at (-1, 1).

    Examples
    --------
    >>> fitzhugh_nagumo().problem.span
    (0.0, 20.0)
    """
    medians = np.array([0.2, 0.2, 3.0])
    law = LogNormal(np.log(medians), 0.1) if rates is None else rates
    return SolutionBelief(InitialValueProblem(_neuron, [-1.0, 1.0], (0.0, 20.0), medians, _neuron_slopes), law)


def _neuron(t: Any, x: Any, a: Any, b: Any, c: Any) -> Any:
    v, w = x
    # A product, because powers of arrays are many times slower.
    return [c * (v - v * v * v / 3 + w), -(v - a + b * w) / c]


def _neuron_slopes(t: Any, x: Any, a: Any, b: Any, c: Any) -> Any:
    v, _ = x
    return [[c * (1 - v * v), c], [-1 / c, -b / c]]


def lorenz(initial: Any = None) -> SolutionBelief:
    """Return the belief over Lorenz's chaotic system with random initial value, over the short span [0, 2].

    Parameters
    ----------
    initial
        The law of the initial value. Left out, normal around (1, 1, 20) with standard deviation .5. The parameters are
        Lorenz's 10, 28 and 8/3.

    Examples
    --------
    >>> lorenz().problem.dimension
    3
    """
    start = np.array([1.0, 1.0, 20.0])
    law = Normal(start, np.full(3, 0.5)) if initial is None else initial
    # Errors grow about like exp(0.9 t): over a long span all solvers are equally lost.
    problem = InitialValueProblem(_convection, start, (0.0, 2.0), [10.0, 28.0, 8 / 3], _convection_slopes)
    return SolutionBelief(problem, initial=law)


def _convection(t: Any, x: Any, sigma: Any, rho: Any, beta: Any) -> Any:
    a, b, c = x
    return [sigma * (b - a), a * (rho - c) - b, a * b - beta * c]


def _convection_slopes(t: Any, x: Any, sigma: Any, rho: Any, beta: Any) -> Any:
    a, b, c = x
    return [[-sigma, sigma, 0.0], [rho - c, -1.0, -a], [b, a, -beta]]
