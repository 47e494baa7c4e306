"""Beliefs over solutions draw the parameters they state, and the right equations."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue.errors import InvalidStudy
from ringtrue.procedures import ode
from ringtrue.procedures.ode import LogNormal, SolutionBelief, equation

FIXTURES = json.loads((Path(__file__).parent / "fixtures.json").read_text("utf-8"))
RATES = [key for key in FIXTURES if key.startswith("[")]


def rng(seed: int = 0) -> np.random.Generator:
    """Return a generator."""
    return np.random.default_rng(seed)


def test_log_normal_entries() -> None:
    """Logarithms are independent and normal with the stated location and spread."""
    logs = np.log(LogNormal([0.0, -2.0], [0.25, 0.1]).sample(5000, rng()))
    white = (logs - [0.0, -2.0]) / [0.25, 0.1]
    # False-alarm rate 2e-6. The twin reads the spread as a variance.
    assert stats.kstest(white.ravel(), "norm").pvalue > 1e-6
    assert abs(np.asarray(np.corrcoef(white.T))[0, 1]) < 4.9 / np.sqrt(5000)
    assert stats.kstest((logs / np.sqrt([0.25, 0.1])).ravel(), "norm").pvalue < 1e-6


def test_predators_and_prey_end_where_they_should() -> None:
    """For three parameter sets the solutions at 10 are the fixture's, to ten digits: the signs are right."""
    problem = replace(ode.lotka_volterra().problem, parameters=[json.loads(key) for key in RATES])
    expected = [FIXTURES[key]["ref_DOP853_1e-13"] for key in RATES]
    assert ode.reference(problem, 10.0) == pytest.approx(np.array(expected), rel=1e-10)


def test_predators_and_prey_conserve_their_invariant() -> None:
    """Along solutions d x - c log x + b y - a log y does not change; with other signs it does."""
    truth = ode.lotka_volterra().sample(20, rng())
    a, b, c, d = np.asarray(truth.problem.parameters).T[..., None]
    x, y = np.moveaxis(truth([0.0, 2.0, 5.0, 10.0]), -1, 0)
    value = d * x - c * np.log(x) + b * y - a * np.log(y)
    assert np.abs(value - value[:, :1]).max() < 1e-10
    assert np.ptp(d * x + c * np.log(x) + b * y - a * np.log(y), axis=1).max() > 0.1


def test_medians_and_spreads_of_the_rates() -> None:
    """The rates of predators and prey have medians 1, exp(-2), 1, exp(-2) and log-spreads .25, .1, .25, .1."""
    logs = np.log(np.asarray(ode.lotka_volterra().sample(4000, rng()).problem.parameters))
    white = (logs - [0.0, -2.0, 0.0, -2.0]) / [0.25, 0.1, 0.25, 0.1]
    # False-alarm rate 1e-6; a spread 7 % off would be seen.
    assert stats.kstest(white.ravel(), "norm").pvalue > 1e-6
    assert stats.kstest(1.1 * white.ravel(), "norm").pvalue < 1e-6


@pytest.mark.parametrize(
    ("belief", "size", "equations"),
    [
        (
            ode.fitzhugh_nagumo(),
            2,
            lambda x, p: [p[2] * (x[0] - x[0] ** 3 / 3 + x[1]), -(x[0] - p[0] + p[1] * x[1]) / p[2]],
        ),
        (
            ode.lorenz(),
            3,
            lambda x, p: [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]],
        ),
        (ode.logistic_growth(), 1, lambda x, p: [p[0] * x[0] * (1 - x[0] / p[1])]),
    ],
)
def test_equations(belief: SolutionBelief, size: int, equations: Any) -> None:
    """Solutions satisfy the equations as written, by differences along them."""
    truth = belief.sample(5, rng())
    assert belief.problem.dimension == size
    t, h = 0.4, 1e-4
    slope = (truth(t + h) - truth(t - h)) / (2 * h)
    for i in range(5):
        p = np.asarray(truth[i].problem.parameters)
        assert slope[i] == pytest.approx(equations(truth(t)[i], p), rel=1e-4, abs=1e-4)


def test_a_law_of_the_initial_value() -> None:
    """Parameters, initial values or both may be random; what is not is the problem's."""
    start = np.asarray(ode.lorenz().sample(2000, rng()).problem.initial)
    # False-alarm rate 1e-6; the twin has spread 1.
    assert stats.kstest(((start - [1, 1, 20]) / 0.5).ravel(), "norm").pvalue > 1e-6
    assert stats.kstest((start - [1, 1, 20]).ravel(), "norm").pvalue < 1e-6
    both = SolutionBelief(
        ode.logistic_growth().problem, LogNormal([0.0, 0.0], 0.1), rt.Normal(np.full(1, 0.2), np.full(1, 0.01))
    )
    problem = both.sample(7, rng()).problem
    assert np.asarray(problem.initial).shape == (7, 1)
    assert np.asarray(problem.parameters).shape == (7, 2)


def test_laws_may_be_functions_of_rng() -> None:
    """A law of the rates may be given as a function, and of one parameter as numbers."""
    belief = ode.lotka_volterra(lambda rng: np.exp([0.0, -2.0, 0.0, -2.0] + 0.05 * rng.standard_normal(4)))
    assert belief.sample(3, rng())(1.0).shape == (3, 2)
    growth = ode.InitialValueProblem(lambda t, x, r: r * x, [1.0], (0.0, 1.0), parameters=[1.0])
    truth = SolutionBelief(growth, rt.Normal(0, 1)).sample(4, rng())
    assert truth(1.0) == pytest.approx(np.exp(np.asarray(truth.problem.parameters)), rel=1e-10)


def test_the_datum_is_the_equation() -> None:
    """The model returns the problem of one solution or of many, and its draws are reproducible."""
    truth = ode.lotka_volterra().sample(3, rng())
    assert equation(truth) is truth.problem
    assert equation(truth[1]).size is None
    assert np.array_equal(ode.lotka_volterra().sample(3, rng())(1.0), truth(1.0))


def test_nothing_random_is_refused() -> None:
    """A belief needs a single problem and a law of something."""
    problem = ode.lotka_volterra().problem
    with pytest.raises(InvalidStudy, match="neither arrived"):
        SolutionBelief(problem)
    with pytest.raises(InvalidStudy, match="a batch of 2"):
        SolutionBelief(replace(problem, initial=np.ones((2, 2))), LogNormal(np.zeros(4), 1.0))
