"""Chkrebtii's particles have the constants, the paths and the laws of their specification."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

import ringtrue as rt
from ringtrue.errors import InvalidStudy, ReplicateFailed
from ringtrue.procedures import ode
from ringtrue.procedures.ode import particles
from ringtrue.procedures.ode.particles import Chkrebtii, DerivativePrior, forecasts
from ringtrue.testing.conformance import check_procedure

Floats = NDArray[np.float64]

FIXTURES = json.loads((Path(__file__).parent / "fixtures.json").read_text("utf-8"))
RATES = [key for key in FIXTURES if key.startswith("[")]
PREDATION = replace(ode.lotka_volterra().problem, parameters=[json.loads(key) for key in RATES])
DECAY = ode.InitialValueProblem(lambda t, x: -x, [1.0], (0.0, 1.0))
QUIET = Chkrebtii(precision=1e30, particles=1)  # its noise is below rounding
FAMILY = [rt.Evaluate(10.0, 0), rt.Evaluate(10.0, 1)]


def rng(seed: int = 0) -> np.random.Generator:
    """Return a generator."""
    return np.random.default_rng(seed)


def means(solver: Chkrebtii, problem: Any, t: float, seed: int = 0) -> Floats:
    """Return the particles' means (d, particles, n)."""
    return solver(None, problem, rng(seed)).moments(t)[0]


def test_constants_are_those_of_the_published_code() -> None:
    """Weights and variances for 100 knots on [0, 10] with length .08 are the fixture's."""
    found, expected = forecasts(100, 0.08, 1.0, 10.0), FIXTURES["uqdes_consts"]
    assert found.knots[1] == pytest.approx(expected["ds"], rel=1e-15)
    assert found.weights[1, :1] == pytest.approx(expected["w_row1"], rel=1e-13)
    assert found.weights[2, :2] == pytest.approx(expected["w_row2"], rel=1e-13)
    assert found.weights[99, -6:] == pytest.approx(expected["w_row99_last6"], rel=1e-12)
    # A variance of 1e-4 is the difference of variances of .4: three digits fewer.
    variances = [expected["var1"], expected["var2"], expected["var99"]]
    assert np.square(found.sd[[1, 2, 99]]) == pytest.approx(variances, rel=1e-11, abs=0)


def test_the_default_length_is_that_of_the_paper() -> None:
    """Left out, the length is .8 span / knots, which is .08 there; the law is that with .08."""
    given = means(replace(QUIET, length=0.08), PREDATION, 10.0)
    assert np.array_equal(given, means(QUIET, PREDATION, 10.0))


def test_paths_without_noise_are_those_of_the_published_code() -> None:
    """With a prior of vanishing variance the path ends where the fixture says, for all three parameter sets."""
    expected = np.array([FIXTURES[key]["uqdes_zero_noise_path_end"] for key in RATES]).T
    assert means(QUIET, PREDATION, 10.0)[:, 0] == pytest.approx(expected, rel=1e-12)


def test_covariances_are_integrals_of_each_other() -> None:
    """The state is the integral of the derivative, and so are the covariances."""
    prior = DerivativePrior(0.3, 2.0)

    def mixed(s: float, t: float) -> float:
        return float(integrate.quad(lambda v: float(prior.derivatives(np.array(s), np.array(v))), 0, t)[0])

    for s, t in [(0.0, 0.2), (0.5, 0.2), (0.4, 1.5)]:
        assert float(prior.mixed(np.array(s), np.array(t))) == pytest.approx(mixed(s, t), rel=1e-10)
    whole = integrate.quad(lambda s: mixed(s, 0.9), 0, 0.9)[0]
    assert float(prior.states(np.array(0.9))) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("t", [0.03, 0.5, 0.5 + 1e-7, 0.77, 1.0])
def test_forecasts_condition_on_the_derivatives_strictly_before(t: float) -> None:
    """At any time, weights and variance are those of the conditional Gaussian law given the earlier knots."""
    found = forecasts(11, 0.09, 1.5, 1.0)
    s = found.knots[found.knots < t - 1e-9]
    inverse = np.linalg.inv(found.prior.derivatives(s[:, None], s))
    cross = found.prior.mixed(s, np.array(t))
    weights, variance = found.at(t)
    assert weights == pytest.approx(inverse @ cross, rel=1e-9, abs=1e-12)
    left = float(found.prior.states(np.array(t)))
    assert variance == pytest.approx(left - cross @ inverse @ cross, rel=1e-9, abs=1e-13 * left)
    assert found.before(t) == len(s)


def test_variance_next_to_the_start_is_accurate() -> None:
    """Near the start, where the difference of variances has no digits, the variance is that of a random slope."""
    found = forecasts(11, 0.09, 1.5, 1.0)
    for t in (1e-3, 1e-4, 8e-5, 1e-5, 1e-9):  # the last three by the series
        # The derivative leaves its first value with variance k'' t^2 = sqrt(pi) l / (2 l^2 a) t^2; integrate twice.
        expected = np.sqrt(np.pi) * 0.09 / 1.5 / (2 * 0.09**2) * t**4 / 4
        assert found.at(t)[1] == pytest.approx(expected, rel=1e-4 if t < 1e-3 else 1e-3, abs=0)
    # The broken twin, the difference of variances.
    start, t9 = np.zeros(()), np.array(1e-9)
    naive = found.prior.states(t9) - found.prior.mixed(start, t9) ** 2 / found.prior.derivatives(start, start)
    assert abs(float(naive) / expected - 1) > 0.5


@pytest.mark.slow
def test_paths_without_noise_have_order_one() -> None:
    """Twice as many intervals halve the error: what is not known about the last interval costs one order."""
    truth = ode.reference(PREDATION, 10.0).T
    errors = [np.abs(means(replace(QUIET, knots=k), PREDATION, 10.0)[:, 0] - truth) for k in (401, 801, 1601)]
    for before, after in pairwise(errors):
        assert np.log2(before / after) == pytest.approx(1.0, abs=0.1)


def test_blocks_and_memory_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derivatives kept or computed again, weights applied at once or one by one: the means are the same."""
    solver, times = Chkrebtii(knots=34, particles=7), (10.0, 0.2, 5.0, 9.99)
    usual = solver(None, PREDATION, rng())
    expected = [usual.moments(t)[0] for t in times]
    monkeypatch.setattr(particles, "_BLOCK", 1)
    monkeypatch.setattr(particles, "_KEPT", 0)
    other = solver(None, PREDATION, rng())
    for t, mean in [*zip(times, expected, strict=True), (10.0, expected[0])]:
        assert other.moments(t)[0] == pytest.approx(mean, rel=1e-12)


def test_means_asked_about_are_remembered_and_forgotten() -> None:
    """Only the latest few times are kept, and a forgotten one comes back the same."""
    solution = Chkrebtii(knots=20, particles=3)(None, PREDATION, rng())
    first = solution.moments(1.0)[0]
    assert solution.moments(1.0)[0] is first
    for t in (2.0, 3.0, 4.0, 5.0):
        solution.moments(t)
    again = solution.moments(1.0)[0]
    assert again is not first
    assert np.array_equal(again, first)


def test_problems_do_not_see_each_other() -> None:
    """A problem's particles are the same alone, in a batch, and next to one that diverges."""
    field = lambda t, x, a: a * x * x  # noqa: E731
    batch = ode.InitialValueProblem(field, [1.0], (0.0, 1.0), parameters=[[-1.0], [0.5], [40.0]])
    solver = Chkrebtii(knots=60, particles=5)
    solution = solver(None, batch, rng())
    found = solution.moments(0.8)[0]
    assert np.isnan(found[..., 2]).all()
    assert list(solution.lost) == [2]
    assert "diverged before t = " in solution.lost[2]
    assert found[..., :2] == pytest.approx(means(solver, batch[:2], 0.8), rel=1e-12)
    assert found[..., :1] == pytest.approx(means(solver, batch[0], 0.8), rel=1e-12)
    assert np.isnan(solution.sample(3, rng())(0.8)[:, 2]).all()
    with pytest.raises(ReplicateFailed, match="diverged"):
        solver(None, batch[2], rng())


def test_a_field_that_raises_loses_its_problem_only() -> None:
    """The reason is the field's own, and the others are as without it."""

    def field(t: float, x: Any, a: Any) -> Any:
        if np.any((a < 0) & (x[0] > 1.5)):
            raise ValueError("too large")
        return [np.abs(a) * x[0]]

    batch = ode.InitialValueProblem(field, [1.0], (0.0, 1.0), parameters=[[0.3], [-1.0], [1.0]])
    solver = Chkrebtii(knots=30, particles=4)
    solution = solver(None, batch, rng())
    assert solution.lost == {1: "the vector field raised ValueError: too large"}
    fine = replace(batch, parameters=[[0.3], [1.0], [1.0]])
    assert solution.moments(1.0)[0][..., [0, 2]] == pytest.approx(means(solver, fine, 1.0)[..., [0, 2]], rel=1e-12)


def test_only_the_time_since_the_start_counts() -> None:
    """An autonomous problem on a shifted span has the shifted law."""
    solver = Chkrebtii(knots=25, particles=3)
    late = replace(PREDATION, span=(3.0, 13.0))
    for t in (4.2, 10.0):
        assert means(solver, late, t + 3) == pytest.approx(means(solver, PREDATION, t), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("belief", [ode.logistic_growth(), ode.fitzhugh_nagumo(), ode.lorenz()])
def test_any_dimension(belief: ode.SolutionBelief) -> None:
    """Problems with one to three components are solved, to the solver's order."""
    truth = belief.sample(4, rng())
    t = belief.problem.span[1] / 4
    found = means(replace(QUIET, knots=2001), truth.problem, t)[:, 0].T
    assert found == pytest.approx(truth(t), abs=0.02 * np.abs(truth(t)).max())


def test_the_law_of_a_linear_problem_is_known() -> None:
    """For x' = -x the particles' means at the end have the mean and variance of a linear recursion."""
    solver = Chkrebtii(knots=12, particles=20_000, precision=0.01)
    particle, _ = solver(None, DECAY, rng()).moments(1.0)
    found = forecasts(12, 0.8 / 12, 0.01, 1.0)
    # u = 1 - W u + sd noise at the knots, so u = inverse (1 + sd noise); the last noise is in no mean.
    inverse = np.linalg.inv(np.eye(12) + np.pad(found.weights, ((0, 0), (0, 1))))
    mean, variance = inverse[-1].sum(), np.square(inverse[-1] * found.sd)[:-1].sum()
    # False-alarm rate 2e-6: the means are independent normal numbers, so their average is normal and their variance a
    # multiple of chi-square. Errors of 8 % of the variance are missed less than once in 1000 times.
    far, bounds = stats.norm.isf(5e-7) * np.sqrt(variance / particle.size), stats.chi2(19_999).ppf([5e-7, 1 - 5e-7])
    assert abs(particle.mean() - mean) < far
    assert bounds[0] < 19_999 * particle.var(ddof=1) / variance < bounds[1]
    # The twins: Euler's method at the same knots, and noise that adds up without being damped.
    assert abs(particle.mean() - (1 - 1 / 11) ** 11) > far
    assert 19_999 * particle.var(ddof=1) / np.square(found.sd[:-1]).sum() < bounds[0]


def test_draws_follow_one_particle_through_time() -> None:
    """Draws at two times have the covariance of the particles' means at these times."""
    growth = replace(DECAY, field=lambda t, x: 5 * x)  # particles part
    solution = Chkrebtii(knots=8, particles=30)(None, growth, rng(1))
    (a, first), (b, second) = solution.moments(0.6), solution.moments(1.0)
    m = 40_000
    x, y = (np.array([path(t)[0] for path in solution.sample(m, rng(2))]) for t in (0.6, 1.0))
    expected = np.mean((a - a.mean()) * (b - b.mean()))
    # False-alarm rate 1e-6: the products are bounded in practice, their mean is normal.
    product = (x - a.mean()) * (y - b.mean())
    error = stats.norm.isf(5e-7) * product.std() / np.sqrt(m)
    assert abs(product.mean() - expected) < error
    assert x.var() == pytest.approx(a.var() + first, rel=0.05)  # 0.05 is 7 sd of a variance of 40,000
    assert y.var() == pytest.approx(b.var() + second, rel=0.05)
    assert expected > 2 * error  # the twin, a particle chosen anew at each time, has covariance 0


def test_the_start_has_no_law() -> None:
    """At the start draws are the initial value, and a law is refused."""
    solution = Chkrebtii(knots=10, particles=3)(None, PREDATION, rng())
    assert (solution.sample(4, rng())(0.0) == 10.0).all()
    with pytest.raises(InvalidStudy, match="known at the start"):
        solution.marginal(rt.Evaluate(0.0, 0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"knots": 1}, "knots must be a whole number of at least 2"),
        ({"knots": 10.5}, "knots must be"),
        ({"particles": 0}, "particles must be"),
        ({"particles": True}, "particles must be"),
        ({"length": 0.0}, "length must be a positive number"),
        ({"length": np.inf}, "length must be"),
        ({"precision": -1.0}, "precision must be"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    """Each refusal says what was expected."""
    with pytest.raises(InvalidStudy, match=message):
        Chkrebtii(**settings)


def test_lengths_without_digits_are_refused() -> None:
    """Knots far closer than the length are linearly dependent to rounding."""
    with pytest.raises(InvalidStudy, match="twice the spacing"):
        Chkrebtii(length=0.5)(None, PREDATION, rng())
    assert np.isfinite(forecasts(100, 0.2, 1.0, 10.0).sd).all()


@pytest.mark.slow
def test_conformance() -> None:
    """Laws agree with draws, by the conformance kit."""
    # False-alarm rate 1e-5, stated by the kit; its broken twins are tested with it.
    solver = Chkrebtii(knots=30, particles=8)
    found = check_procedure(solver, belief=ode.lotka_volterra(), model=ode.equation, f=FAMILY)
    assert sum("agrees with draws" in check for check in found.checks) == 2


@pytest.mark.slow
def test_a_study_finds_it_over_confident() -> None:
    """On predators and prey, with the settings of the paper, intervals of 90 % cover the truth in few replicates."""
    study = rt.Study(ode.lotka_volterra(), ode.equation, Chkrebtii(), f=FAMILY, batch=50, seed=3)
    replicates = rt.run(study, n=100, progress="off")
    covered = np.abs(replicates.u - 0.5) < 0.45
    # A calibrated solver would cover fewer than 60 of 100 with chance 1e-14; 3 or 4 are expected.
    assert (covered.sum(axis=0) < 60).all()
    assert stats.kstest(replicates.u[:, 0], "uniform").pvalue < 1e-20
