"""The reference procedures have the population values of the closed forms.

Throughout, theta ~ N(0, 1) and y = theta + N(0, 1), so y ~ N(0, 2) and theta | y ~ N(y/2, 1/2): expectations over y are
Gauss-Hermite sums of what the procedures return.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, special

from ringtrue.distributions import Beta, Draws, Gaussian, Normal, Repeated
from ringtrue.errors import InvalidStudy
from ringtrue.functions import identity
from ringtrue.procedures import DataAgnostic, Inflated, Mirrored, NormalMean
from ringtrue.procedures.reference import inflated

Floats = NDArray[np.float64]

BELIEF = Normal(0.0, 1.0)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(120)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
Y = np.sqrt(2.0) * NODES

# procedure, slope a and variance v of the output N(a y, v), tau^2 = Var z, strong Kolmogorov distance, Var u,
# variance of the data-averaged output, weak Kolmogorov distance.
TABLE: dict[str, tuple[Any, float, float, float, float, float, float, float]] = {
    "Bayes": (NormalMean(), 0.5, 0.5, 1.0, 0.0, 1 / 12, 1.0, 0.0),
    "data-agnostic": (DataAgnostic(), 0.0, 1.0, 1.0, 0.0, 1 / 12, 1.0, 0.0),
    "mirror Bayes": (Mirrored(NormalMean()), -0.5, 0.5, 5.0, 0.184896, 0.156785, 1.0, 0.0),
    "eta = 0.5": (Inflated(NormalMean(), 0.5), 0.5, 0.25, 2.0, 0.083032, 0.116140, 0.75, 0.034745),
    "eta = 2": (Inflated(NormalMean(), 2.0), 0.5, 1.0, 0.5, 0.083032, 0.054087, 1.5, 0.048888),
}
rows = pytest.mark.parametrize("name", TABLE)


def law(procedure: Any, y: Floats) -> Any:
    """Return the exact laws of theta for a batch of data."""
    return procedure(BELIEF, y).marginal(identity)


def moments(procedure: Any) -> tuple[float, float, float]:
    """Return slope, intercept and variance of a normal output, from three datasets; it must be linear in y."""
    outputs = [procedure(BELIEF, y) for y in (0.0, 1.0, 3.0)]
    means = [float(output.mean) for output in outputs]
    assert means[2] - means[0] == pytest.approx(3 * (means[1] - means[0]), abs=1e-14)
    assert len({float(output.sd) for output in outputs}) == 1
    return means[1] - means[0], means[0], float(outputs[0].sd) ** 2


def cdf_of_u(procedure: Any, t: Floats) -> Floats:
    """Return P(u <= t), averaging over y the chance that theta lies below the output's t-quantile."""
    slope, intercept, variance = moments(procedure)
    quantile = intercept + slope * Y[:, None] + np.sqrt(variance) * special.ndtri(t)
    assert law(procedure, Y).cdf(quantile[:, 0]) == pytest.approx(np.full(len(Y), t[0]), rel=1e-9)
    return np.asarray(WEIGHTS @ special.ndtr((quantile - Y[:, None] / 2) / np.sqrt(0.5)))


def data_averaged_cdf(procedure: Any, x: Floats) -> Floats:
    """Return P(vartheta <= x), averaging the output's cdf over y."""
    return np.array([WEIGHTS @ law(procedure, Y).cdf(np.full(len(Y), one)) for one in x])


def largest(gap: Any, low: float, high: float) -> float:
    """Return the largest absolute value of a smooth function: the best of a grid, polished."""
    grid = np.linspace(low, high, 200)
    best = int(np.argmax(np.abs(gap(grid))))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, 199)])
    found = optimize.minimize_scalar(lambda x: -abs(gap(np.array([x]))[0]), bounds=around, method="bounded")
    return float(-found.fun)


@rows
def test_outputs_are_the_closed_forms(name: str) -> None:
    """The output is N(a y, v)."""
    procedure, a, v, *_ = TABLE[name]
    assert moments(procedure) == pytest.approx((a, 0.0, v), abs=1e-14)


@rows
def test_variance_of_the_score(name: str) -> None:
    """E z^2 is tau^2, by quadrature over y and theta of the declared scores."""
    procedure, _, _, tau2, *_ = TABLE[name]
    theta = Y / 2 + np.sqrt(0.5) * NODES[:, None]
    scores = law(procedure, Y).zscore(theta)
    assert WEIGHTS @ scores**2 @ WEIGHTS == pytest.approx(tau2, rel=1e-10)
    assert WEIGHTS @ scores @ WEIGHTS == pytest.approx(0.0, abs=1e-12)


@rows
def test_variance_of_u(name: str) -> None:
    """Var u, by quadrature over y and theta of the declared cdf, is the tabulated value and arcsin's closed form."""
    procedure, _, _, tau2, _, variance, *_ = TABLE[name]
    theta = Y / 2 + np.sqrt(0.5) * NODES[:, None]
    u = law(procedure, Y).cdf(theta)
    mean = WEIGHTS @ u @ WEIGHTS
    assert mean == pytest.approx(0.5, abs=1e-10)
    assert WEIGHTS @ u**2 @ WEIGHTS - mean**2 == pytest.approx(variance, abs=6e-7)
    assert np.arcsin(tau2 / (1 + tau2)) / (2 * np.pi) == pytest.approx(variance, abs=6e-7)


@rows
def test_strong_distance(name: str) -> None:
    """The Kolmogorov distance of u from uniform is the tabulated one."""
    procedure, *_, strong, _, _, _ = TABLE[name]
    found = largest(lambda t: cdf_of_u(procedure, t) - t, 1e-3, 1 - 1e-3)
    assert found == pytest.approx(strong, abs=6e-7)


@rows
def test_weak_law(name: str) -> None:
    """The data-averaged output has the tabulated variance and Kolmogorov distance from the belief."""
    procedure, *_, variance, weak = TABLE[name]
    slope, _, spread = moments(procedure)
    assert 2 * slope**2 + spread == pytest.approx(variance, abs=1e-12)
    found = largest(lambda x: data_averaged_cdf(procedure, x) - BELIEF.cdf(x), -4, 4)
    assert found == pytest.approx(weak, abs=6e-7)


def test_mirror_bayes_is_reversible_and_fails_with_two_draws() -> None:
    """Mirror Bayes has E u = 1/2, corr(theta, vartheta) = -1/2, and ranks among two draws (.4068, .1864, .4068)."""
    procedure = TABLE["mirror Bayes"][0]
    slope, _, spread = moments(procedure)
    assert slope / np.sqrt(2 * slope**2 + spread) == pytest.approx(-0.5)
    theta = Y / 2 + np.sqrt(0.5) * NODES[:, None]
    u = law(procedure, Y).cdf(theta)
    pmf = [WEIGHTS @ chance @ WEIGHTS for chance in ((1 - u) ** 2, 2 * u * (1 - u), u**2)]
    assert pmf == pytest.approx([0.40679, 0.18643, 0.40679], abs=6e-6)


def test_data_agnostic_output_is_not_exact() -> None:
    """Its log likelihood has E u = .695913: an f that sees the data tells the belief from the posterior."""
    # f = -(theta - y)^2. E u = P(|vartheta - y| > |theta - y|), an orthant probability of normals.
    slope, _, spread = moments(DataAgnostic())
    var_output, var_truth, shared = (1 - slope) ** 2 * 2 + spread, 1.0, 1 - slope
    correlation = (var_output - var_truth) / np.sqrt((var_output + var_truth) ** 2 - 4 * shared**2)
    assert 0.5 + np.arcsin(correlation) / np.pi == pytest.approx(0.695913, abs=6e-7)


@pytest.mark.parametrize(("data_ndim", "shape"), [(0, (5,)), (1, (5, 3)), (2, (5, 3, 2))])
def test_data_agnostic_knows_a_batch_by_its_axes(data_ndim: int, shape: tuple[int, ...]) -> None:
    """One more axis than a dataset has makes a batch: the belief once per dataset."""
    procedure = DataAgnostic(data_ndim)
    assert procedure(BELIEF, np.zeros(shape[1:])) is BELIEF
    batch = procedure(BELIEF, np.zeros(shape))
    assert isinstance(batch, Repeated)
    assert batch.n == 5


def test_inflation_multiplies_the_variance() -> None:
    """The variance is multiplied by eta and the mean kept, for normals, Gaussians and weighted draws."""
    normal = inflated(Normal([1.0, 2.0], [3.0, 4.0]), 0.25)
    assert normal.mean == pytest.approx([1.0, 2.0])
    assert normal.sd == pytest.approx([1.5, 2.0])
    gaussian = inflated(Gaussian([1.0, 2.0], [[2.0, 1.0], [1.0, 2.0]]), 3.0)
    assert gaussian.mean == pytest.approx([1.0, 2.0])
    assert gaussian.cov == pytest.approx(np.array([[6.0, 3.0], [3.0, 6.0]]))
    values, weights = np.array([[0.0, 1.0], [4.0, 1.0], [9.0, 7.0]]), np.array([0.2, 0.3, 0.5])
    draws = inflated(Draws(values, iid=True, weights=weights), 4.0)
    assert weights @ draws.values == pytest.approx(weights @ values)
    centred, before = draws.values - weights @ values, values - weights @ values
    assert weights @ centred**2 == pytest.approx(4.0 * (weights @ before**2))
    assert draws.iid is True


def test_impossible_inflation_is_refused() -> None:
    """The factor must be positive and the output something with a variance to change."""
    with pytest.raises(InvalidStudy, match="eta must be positive, but 0 arrived"):
        Inflated(NormalMean(), 0)
    with pytest.raises(InvalidStudy, match="but Beta arrived"):
        inflated(Beta(1, 1), 2.0)
    with pytest.raises(InvalidStudy, match="but Draws arrived"):
        inflated(Draws({"a": np.zeros(3)}), 2.0)
