"""Solutions are laws and functions of time that agree; the reference is accurate."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import ringtrue as rt
from ringtrue.errors import InvalidStudy
from ringtrue.procedures.ode import InitialValueProblem, ReferenceSolutions, logistic_growth, reference
from ringtrue.procedures.ode.solution import (
    GaussianSolution,
    MixtureSolution,
    Paths,
    Process,
    SampledSolution,
    _root,
    single,
)

Floats = NDArray[np.float64]

PLANE = InitialValueProblem(lambda t, x: x, np.zeros((3, 2)), (0.0, 4.0))
ALONE = InitialValueProblem(lambda t, x: x, [0.0, 0.0], (0.0, 4.0))


def rng(seed: int = 0) -> np.random.Generator:
    """Return a generator."""
    return np.random.default_rng(seed)


class Brownian(Process):
    """Two correlated Brownian motions with drift i + 1 in problem i."""

    def __init__(self, n: int) -> None:
        self.drift, self.each = np.arange(1.0, n + 1), np.array([[1.0, 0.6], [0.6, 2.0]])

    def moments(self, t: float) -> tuple[Floats, Floats]:
        """Return means and variances."""
        return np.outer([t, -t], self.drift), np.outer(t * np.diag(self.each), np.ones_like(self.drift))

    def joint(self, times: Sequence[float]) -> tuple[Floats, Floats]:
        """Return joint means and covariances."""
        cov = np.kron(np.minimum.outer(times, times), self.each)
        mean = np.outer(self.drift, np.kron(times, [1.0, -1.0]))
        return mean, np.repeat(cov[None], len(self.drift), axis=0)


BROWN = GaussianSolution(PLANE, Brownian(3))


def wave(t: float, m: int = 5, n: int = 3) -> Floats:
    """Return deterministic values (d, m, n)."""
    return np.asarray(np.cos(t) * np.arange(2.0)[:, None, None] + np.arange(m)[:, None] + 10 * np.arange(n))


def test_paths_have_draws_problems_times_components() -> None:
    """Axes are (draws, problems, times, components); a time is asked for once; picking comes last."""
    asked = []
    paths = Paths(lambda t: asked.append(t) or wave(t), (5, 3), PLANE)  # type: ignore[func-returns-value]
    assert paths(1.0).shape == (5, 3, 2)
    assert paths(np.array([1.0, 2.0])).shape == (5, 3, 2, 2)
    assert asked == [1.0, 2.0]
    assert paths(2.0)[4, 2].tolist() == [24.0, 24.0 + np.cos(2.0)]
    assert np.array_equal(paths[1](2.0), paths(2.0)[1])
    assert np.array_equal(paths[:, 2](np.array([1.0, 2.0])), paths(np.array([1.0, 2.0]))[:, 2])
    assert len(paths) == 5
    with pytest.raises(InvalidStudy, match="span"):
        paths(4.5)


def test_single_problems_give_a_list_of_functions() -> None:
    """Draws of a single problem are functions of their own, without an axis of problems."""
    solution = SampledSolution(ALONE, lambda t, m, seed: wave(t, m, 1))
    draws = solution.sample(4, rng())
    assert isinstance(draws, list)
    assert draws[3](1.0).tolist() == [3.0, 3.0 + np.cos(1.0)]
    assert draws[3]([1.0, 2.0]).shape == (2, 2)


def test_components_are_checked() -> None:
    """A vector needs a component, a scalar does not; test functions that are no evaluations have no law."""
    assert BROWN.marginal(rt.identity) is None
    for component in (None, 2, -3):
        with pytest.raises(InvalidStudy, match="component of the 2-dimensional"):
            BROWN.marginal(rt.Evaluate(1.0, component))
    with pytest.raises(InvalidStudy, match="span"):
        BROWN.marginal(rt.Evaluate(5.0, 0))
    named = rt.Study(rt.Normal(0, 1), lambda t: t, lambda b, y: b, f={"end": rt.Evaluate(1.0, -1)}).functions[0]
    law = BROWN.marginal(named)
    assert isinstance(law, rt.Normal)
    assert np.asarray(law.mean).tolist() == [-1.0, -2.0, -3.0]


def test_gaussian_laws() -> None:
    """Laws at a time are the process's, for a batch and for a single problem; at the start there is none."""
    law = BROWN.law(2.0, 1)
    assert np.asarray(law.mean).tolist() == [-2.0, -4.0, -6.0]
    assert np.asarray(law.sd) == pytest.approx(np.full(3, 2.0))
    joint = BROWN.joint(2.0)
    assert joint.mean[1].tolist() == [4.0, -4.0]
    assert joint.cov[1] == pytest.approx(2 * np.array([[1.0, 0.6], [0.6, 2.0]]))
    alone = GaussianSolution(ALONE, Brownian(1))
    one = alone.marginal(rt.Evaluate(2.0, 0))
    assert isinstance(one, rt.Normal)
    assert np.ndim(one.mean) == 0
    assert alone.joint(2.0).mean.shape == (2,)
    with pytest.raises(InvalidStudy, match="known at the start"):
        BROWN.marginal(rt.Evaluate(0.0, 0))


def test_gaussian_draws_have_the_joint_law_in_any_order() -> None:
    """However times are asked for, increments between them are independent with the process's covariance."""
    paths, m = BROWN.sample(4000, rng(3)), 4000
    late, start, early, again = paths(3.0), paths(0.0), paths(1.0), paths(3.0)
    assert late is again
    assert (start == 0.0).all()
    drift = np.arange(1.0, 4)[:, None] * [1.0, -1.0]
    first, second = early - drift, late - early - 2 * drift
    white = np.linalg.inv(np.linalg.cholesky(np.array([[1.0, 0.6], [0.6, 2.0]])))
    numbers = np.concatenate([first @ white.T, second @ white.T / np.sqrt(2)], axis=-1).reshape(m, 12)
    # False-alarm rate 3e-6: 48,000 independent standard normal numbers, and 66 correlations of 4000 pairs each.
    assert stats.kstest(numbers.ravel(), "norm").pvalue > 1e-6
    limit = stats.norm.isf(1e-6 / 132) / np.sqrt(m) * 1.05
    assert np.abs(np.corrcoef(numbers.T)[np.triu_indices(12, 1)]).max() < limit
    # The twin: draws made anew at each time, whose increments are too wide and correlated.
    fresh = BROWN.sample(4000, rng(4))(3.0) - early - 2 * drift
    assert stats.kstest((fresh @ white.T / np.sqrt(2)).ravel(), "norm").pvalue < 1e-6


def test_roots_of_singular_covariances() -> None:
    """A direction that the earlier ones determine adds nothing; nan stays in its problem."""
    factor = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.5, 0.0, 3.0]])
    cov = np.stack([factor @ factor.T, np.full((3, 3), np.nan), np.zeros((3, 3))])
    root = _root(cov)
    assert root[0] == pytest.approx(factor)
    assert np.isnan(root[1][np.tril_indices(3)]).all()
    assert (root[2] == 0).all()


def mixture(problem: InitialValueProblem = PLANE) -> MixtureSolution:
    """Return a mixture of five waves, one interval per unit of time."""
    n = problem.size or 1
    return MixtureSolution(problem, lambda t: (wave(t, 5, n), 0.0004 * t), lambda t: int(np.ceil(t)))


def test_mixture_laws_are_those_of_their_draws() -> None:
    """The law is the average of the particles' normal laws, and u of draws is uniform."""
    law = mixture().law(2.0, 1)
    parts = [stats.norm(mean, np.sqrt(0.0008)) for mean in wave(2.0)[1, :, 0]]
    x = wave(2.0)[1, 1, 0] + 0.01
    assert float(law.cdf([x, 0.0, 0.0])[0]) == pytest.approx(np.mean([part.cdf(x) for part in parts]))
    u = np.asarray(law.cdf(mixture().sample(3000, rng())(2.0)[..., 1]))
    # False-alarm rate 1e-6; the twin is twice as wide.
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-6
    wide = MixtureSolution(PLANE, lambda t: (wave(t), 0.0032), lambda t: 0).law(2.0, 1)
    twin = np.asarray(wide.cdf(mixture().sample(3000, rng())(2.0)[..., 1]))
    assert stats.kstest(twin.ravel(), "uniform").pvalue < 1e-6
    with pytest.raises(InvalidStudy, match="known at the start"):
        mixture().marginal(rt.Evaluate(0.0, 0))


def test_mixture_draws_keep_particle_and_noise() -> None:
    """A draw follows one particle; within an interval its noise is one number, in another interval another."""
    paths = mixture().sample(50, rng())
    noise = [(paths(t)[..., 0] - 10 * np.arange(3)) for t in (1.2, 1.9, 2.1)]
    particle = [np.rint(one) for one in noise]
    assert np.array_equal(particle[0], particle[1])
    assert np.array_equal(particle[0], particle[2])
    scaled = [(one - where) / np.sqrt(t) for one, where, t in zip(noise, particle, (1.2, 1.9, 2.1), strict=True)]
    assert scaled[0] == pytest.approx(scaled[1])
    assert np.abs(scaled[0] - scaled[2]).min() > 0


def test_single_laws() -> None:
    """A law of a batch of one becomes that of one number, part by part."""
    law = mixture(ALONE).marginal(rt.Evaluate(2.0, 0))
    assert law is not None
    assert np.shape(law.cdf(1.0)) == ()
    assert float(law.cdf(2.0)) == pytest.approx(float(mixture(ALONE).law(2.0, 0).cdf([2.0])[0]))
    assert np.shape(single(rt.Normal(np.zeros(1), np.ones(1))).cdf(0.0)) == ()


def test_sampled_solutions_repeat_their_seed() -> None:
    """Every time is simulated with the seed of its draws, and there is no law."""
    calls = []

    def simulate(t: float, m: int, seed: int) -> Floats:
        calls.append(seed)
        return wave(t, m)

    solution = SampledSolution(PLANE, simulate)
    paths = solution.sample(2, rng())
    paths(1.0), paths(2.0), solution.sample(2, rng(1))(1.0)
    assert calls[0] == calls[1] != calls[2]
    assert solution.marginal(rt.Evaluate(1.0, 0)) is None


def test_reference_has_the_closed_form() -> None:
    """Logistic growth is solved to eleven digits at any time, asked for in any order, alone or in a batch."""
    truth = logistic_growth().sample(120, rng())
    r, k = np.asarray(truth.problem.parameters).T
    for t in (10.0, 2.5, 7.0, 0.0):
        exact = k / (1 + (k / 0.1 - 1) * np.exp(-r * t))
        assert truth(t)[:, 0] == pytest.approx(exact, rel=1e-11)
    several = truth([2.5, 7.0])
    assert several.shape == (120, 2, 1)
    assert np.array_equal(several[:, 1], truth(7.0))
    assert reference(truth.problem[3], 7.0) == pytest.approx(truth(7.0)[3], rel=1e-11)
    assert reference(truth.problem[3], [2.5, 7.0]).shape == (2, 1)
    assert np.array_equal(truth[5](7.0), truth(7.0)[5])
    assert truth[5].problem.size is None
    part = truth[np.array([5, 9])]
    assert part(7.0) == pytest.approx(truth(7.0)[[5, 9]], rel=1e-11)
    assert len(part) == 2  # type: ignore[arg-type]


def test_reference_follows_time() -> None:
    """Fields that depend on time are integrated from the last time asked about, to the same value."""
    swing = InitialValueProblem(lambda t, x, a: a * np.cos(t) + 0 * x, [0.0], (1.0, 5.0), parameters=[[1.0], [2.0]])
    stepwise = ReferenceSolutions(swing)
    for t in (2.0, 3.0, 5.0):
        assert stepwise(t)[:, 0] == pytest.approx([np.sin(t) - np.sin(1), 2 * (np.sin(t) - np.sin(1))], abs=1e-11)


@pytest.mark.slow
def test_reference_keeps_failures_to_themselves() -> None:
    """Problems that blow up, raise or become nan are nan; the others in their group are right."""

    def field(t: Any, x: Any, a: Any) -> Any:
        if np.any((a == 7) & (x > 1.5)):
            raise ValueError
        return np.where(a == 9, np.log(1.2 - x), a * x * x)

    rates = np.full((60, 1), -1.0)
    rates[[4, 11, 30], 0] = [1.0, 7.0, 9.0]
    truth = ReferenceSolutions(InitialValueProblem(field, [1.0], (0.0, 2.0), parameters=rates))
    values = truth(2.0)[:, 0]
    assert np.flatnonzero(np.isnan(values)).tolist() == [4, 11]
    assert np.delete(values, [4, 11, 30]) == pytest.approx(np.full(57, 1 / 3), rel=1e-11)
    with pytest.raises(InvalidStudy, match="use reference"):
        ReferenceSolutions(ALONE)
