"""Stationary iterations: right for every linear test function, wrong for others, by closed form and quadrature."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from ringtrue.distributions import Gaussian, Normal
from ringtrue.errors import InvalidStudy
from ringtrue.functions import SEVERAL, Coordinate, Linear
from ringtrue.procedures import Jacobi, Richardson

Floats = NDArray[np.float64]

A = np.array([[3.0, 1.0, 0.0], [0.5, 2.0, -0.4], [0.2, 0.1, 2.5]])
BELIEF = Gaussian([0.3, -1.0, 2.0], [[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.5]])
ITERATIONS: dict[str, tuple[Any, Any]] = {
    "Richardson": (lambda steps: Richardson(A, steps, step=0.2), 0.2 * np.eye(3)),
    "Jacobi": (lambda steps: Jacobi(A, steps), np.diag(1 / np.diag(A))),
}
methods = pytest.mark.parametrize("method", ITERATIONS)


@methods
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_output_is_the_belief_pushed_through_the_iteration(method: str, steps: int) -> None:
    """Mean and covariance are those of k steps x -> x + B (y - A x) applied to every start."""
    build, correction = ITERATIONS[method]
    y = np.array([1.0, -2.0, 0.5])
    mean, root = np.asarray(BELIEF.mean), np.linalg.cholesky(BELIEF.cov)
    for _ in range(steps):
        mean = mean + correction @ (y - A @ mean)
        root = root - correction @ A @ root
    output = build(steps)(BELIEF, y)
    assert output.mean == pytest.approx(mean, rel=1e-12)
    assert output.cov == pytest.approx(root @ root.T, rel=1e-12)


@methods
def test_iterations_compose(method: str) -> None:
    """Two steps are one step from the output of one step."""
    build, _ = ITERATIONS[method]
    y = np.array([1.0, -2.0, 0.5])
    twice, at_once = build(1)(build(1)(BELIEF, y), y), build(2)(BELIEF, y)
    assert twice.mean == pytest.approx(at_once.mean, rel=1e-12)
    assert twice.cov == pytest.approx(at_once.cov, rel=1e-12)


@methods
def test_batch_is_one_by_one(method: str) -> None:
    """A batch of data gives the outputs of its members."""
    build, _ = ITERATIONS[method]
    theta = np.random.default_rng(0).normal(size=(4, 3))
    procedure = build(2)
    data = procedure.simulate(theta)
    assert data == pytest.approx(np.stack([A @ one for one in theta]))
    batch = procedure(BELIEF, data)
    for j, y in enumerate(data):
        assert batch.mean[j] == pytest.approx(procedure(BELIEF, y).mean, rel=1e-12)
        assert batch.cov[j] == pytest.approx(procedure(BELIEF, y).cov, rel=1e-12)


@methods
def test_solution_is_the_fixed_point(method: str) -> None:
    """A belief centred at the solution stays there."""
    build, _ = ITERATIONS[method]
    procedure, theta = build(3), np.array([1.0, 2.0, -1.0])
    assert procedure(Gaussian(theta, BELIEF.cov), procedure.simulate(theta)).mean == pytest.approx(theta, rel=1e-12)


@methods
@pytest.mark.parametrize("f", [Coordinate(index=(1,)), Linear([1.0, -2.0, 0.5])], ids=["coordinate", "linear"])
def test_linear_test_functions_have_exactly_normal_scores(method: str, f: Any) -> None:
    """The score of a linear function is linear in theta, with mean zero and variance one: u is exactly uniform."""
    build, _ = ITERATIONS[method]
    procedure = build(2)
    mean, root = np.asarray(BELIEF.mean), np.linalg.cholesky(BELIEF.cov)
    theta = np.vstack([mean, mean + root.T])
    scores = procedure(BELIEF, procedure.simulate(theta)).marginal(f).zscore(f.evaluate(theta, SEVERAL))
    assert scores[0] == pytest.approx(0.0, abs=1e-12)
    assert np.sum((scores[1:] - scores[0]) ** 2) == pytest.approx(1.0, rel=1e-12)


# One dimension: A = 1, belief N(0, 1), g = 1 - step. Given theta, the output is N((1 - g) theta, g^2).

# Quantiles of theta: u is a piecewise monotone function of theta, so the distance is right to a few in GRID.
GRID = 200_000
THETA = np.asarray(special.ndtri((np.arange(GRID) + 0.5) / GRID))


def scalar_output(g: float, theta: Floats) -> Normal:
    """Return the laws of theta that one step gives for a batch of truths."""
    procedure = Richardson([[1.0]], step=1 - g)
    output = procedure(Gaussian([0.0], [[1.0]]), procedure.simulate(theta[:, None]))
    law = output.marginal(Coordinate(index=(0,)))
    assert isinstance(law, Normal)
    return law


def u_of_theta(g: float) -> Floats:
    """Return u for f = theta."""
    return scalar_output(g, THETA).cdf(THETA)


def u_of_square(g: float) -> Floats:
    """Return u for f = theta^2: the output's mass between -|theta| and |theta|."""
    law, r = scalar_output(g, THETA), np.abs(THETA)
    return law.cdf(r) - law.cdf(-r)


def u_of_cubic(g: float) -> Floats:
    """Return u for f = theta^3 - 3 theta, whose level set at theta has the roots of x^2 + theta x + theta^2 - 3."""
    law, inner = scalar_output(g, THETA), np.abs(THETA) < 2
    root = np.sqrt(np.where(inner, 12 - 3 * THETA**2, 0.0))
    low, middle, high = np.sort(np.stack([THETA, (-THETA - root) / 2, (-THETA + root) / 2]), axis=0)
    return np.where(inner, law.cdf(low) + law.cdf(high) - law.cdf(middle), law.cdf(THETA))


def distance(u: Floats) -> float:
    """Return the Kolmogorov distance of u, given at equally likely points, from U(0,1)."""
    ordered, n = np.sort(u), len(u)
    return float(np.max(np.abs((np.arange(n) + 0.5) / n - ordered)))


def normal_distance(sd: float) -> float:
    """Return the Kolmogorov distance between N(0, sd^2) and N(0, 1), at the crossing of the densities."""
    x = sd * np.sqrt(2 * np.log(sd) / (sd**2 - 1))
    return float(abs(special.ndtr(x) - special.ndtr(x / sd)))


@pytest.mark.parametrize(
    ("g", "square", "cubic", "weak"),
    [(0.5, 0.24217, 0.03324, 0.08303), (0.9, 0.04840, 0.01164, 0.02399), (-0.5, 0.67644, 0.14950, 0.10896)],
)
def test_distances_in_one_dimension(g: float, square: float, cubic: float, weak: float) -> None:
    """Uniform for theta; at the tabulated distances for theta^2, theta^3 - 3 theta and the weak law."""
    # Rounding of the table 5e-6, discretisation of theta at most 2 / GRID = 1e-5.
    assert distance(u_of_theta(g)) == pytest.approx(0.0, abs=1e-9)
    assert distance(u_of_square(g)) == pytest.approx(square, abs=1.5e-5)
    assert distance(u_of_cubic(g)) == pytest.approx(cubic, abs=1.5e-5)
    assert normal_distance(np.sqrt(data_averaged_variance(g))) == pytest.approx(weak, abs=6e-6)


def data_averaged_variance(g: float) -> float:
    """Return the variance of one draw of the output, from the slope of its mean and its spread."""
    law = scalar_output(g, np.array([0.0, 1.0]))
    slope = float(law.mean[1] - law.mean[0])
    return slope**2 + float(law.sd[0]) ** 2


@pytest.mark.parametrize(("g", "variance"), [(0.5, 0.5), (-0.5, 2.5), (0.9, 0.82)])
def test_data_averaged_variance_is_not_that_of_the_belief(g: float, variance: float) -> None:
    """One draw of the output has variance g^2 + (1 - g)^2, not 1: the weak level fails."""
    assert data_averaged_variance(g) == pytest.approx(variance, rel=1e-12)


@methods
def test_data_averaged_covariance(method: str) -> None:
    """In any dimension it is G C G' + (I - G) C (I - G)', which is not C."""
    build, correction = ITERATIONS[method]
    procedure, mean, cov = build(1), np.asarray(BELIEF.mean), np.asarray(BELIEF.cov)
    theta = np.vstack([mean, mean + np.linalg.cholesky(cov).T])
    output = procedure(BELIEF, procedure.simulate(theta))
    moved = output.mean[1:] - output.mean[0]
    averaged = moved.T @ moved + output.cov[0]
    G = np.eye(3) - correction @ A
    assert averaged == pytest.approx(G @ cov @ G.T + (np.eye(3) - G) @ cov @ (np.eye(3) - G).T, rel=1e-12)
    assert not np.allclose(averaged, cov, rtol=0.1)


def test_mean_of_u_for_the_absolute_value() -> None:
    """For g = 1/2 and f = |theta|, E u = 3/4 - arctan(1/3) / pi = .647584."""
    mean = float(u_of_square(0.5).mean())
    assert mean == pytest.approx(0.75 - np.arctan(1 / 3) / np.pi, abs=1e-6)
    assert mean == pytest.approx(0.647584, abs=2e-6)


# What is refused.


@pytest.mark.parametrize(
    "procedure",
    [
        Richardson(np.diag([1.0, 4.0]), step=0.25),
        Richardson(np.diag([1.0, 4.0]), step=0.25 * (1 + 1e-9)),
        Jacobi(np.diag([1.0, 4.0])),
        Jacobi([[1.0, 0.0], [5.0, 1.0]], steps=2),
        Richardson([[2.0]], step=0.5),
    ],
    ids=["eigenvalue", "nearly", "diagonal", "nilpotent", "scalar"],
)
def test_degenerate_outputs_are_refused(procedure: Any) -> None:
    """A step that solves the system exactly along one direction has no law there: an error, not a nan."""
    d = len(procedure.A)
    with pytest.raises(InvalidStudy, match=r"degenerate .* choose another step size"):
        procedure(Gaussian(np.zeros(d), np.eye(d)), np.ones(d))


def test_nearly_degenerate_outputs_are_not() -> None:
    """A hundred-thousandth away from an exact solution the output is finite and right."""
    output = Richardson(np.diag([1.0, 4.0]), step=0.25 * (1 + 1e-5))(Gaussian([0.0, 0.0], np.eye(2)), np.ones(2))
    assert np.diag(output.cov) == pytest.approx([(1 - 0.25 * (1 + 1e-5)) ** 2, 1e-10], rel=1e-5)


@pytest.mark.parametrize(
    ("procedure", "message"),
    [
        (Richardson([[1.0, 2.0]], step=0.1), r"square matrix .* \(1, 2\)"),
        (Richardson([1.0, 2.0], step=0.1), r"square matrix .* \(2,\)"),
        (Richardson(np.eye(2), 0, step=0.1), "0 steps"),
        (Jacobi([[0.0, 1.0], [1.0, 0.0]]), "diagonal without zeros"),
    ],
)
def test_ill_posed_iterations_are_refused(procedure: Any, message: str) -> None:
    """The matrix must be square, with a diagonal for Jacobi, and there must be a step."""
    with pytest.raises(InvalidStudy, match=message):
        procedure(Gaussian([0.0, 0.0], np.eye(2)), np.ones(2))


def test_other_beliefs_are_refused() -> None:
    """Only a Gaussian belief stays Gaussian."""
    with pytest.raises(InvalidStudy, match="Richardson needs a Gaussian belief, but Normal arrived"):
        Richardson([[1.0]], step=0.5)(Normal(0, 1), [1.0])
