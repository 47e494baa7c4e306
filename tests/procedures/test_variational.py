"""Gaussian variational approximation: exact on Gaussians, and the least divergence by brute force."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

import ringtrue as rt
from ringtrue.distributions import Gaussian, Normal
from ringtrue.procedures import GaussianVariational, LinearGaussian, StudentLocation
from ringtrue.procedures.laplace import as_target
from ringtrue.procedures.variational import _Objective, _product_rule

Floats = NDArray[np.float64]

DESIGN = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, -1.0]])
PLANE = Gaussian([0.0, 1.0], [[1.0, 0.3], [0.3, 2.0]])
DATA = np.array([0.3, -2.0, 1.0])


def regression(theta: Any, y: Any) -> float:
    """Return the log likelihood of a linear regression."""
    return float(-0.5 * np.square(y - DESIGN @ theta).sum())


def slope(theta: Any, y: Any) -> Any:
    """Return its gradient."""
    return DESIGN.T @ (y - DESIGN @ theta)


@pytest.mark.parametrize("given", [{"nodes": 3}, {"gradient": slope}])
def test_gaussian_posteriors_are_exact(given: dict[str, Any]) -> None:
    """Where the posterior is Gaussian, the full family contains it and finds it."""
    exact, found = LinearGaussian(DESIGN)(PLANE, DATA), GaussianVariational(regression, **given)(PLANE, DATA)
    np.testing.assert_allclose(found.mean, exact.mean, atol=1e-6)
    np.testing.assert_allclose(found.cov, exact.cov, atol=1e-6)


def test_mean_field_has_the_inverse_of_the_precisions_diagonal() -> None:
    """On a Gaussian posterior the mean-field family keeps the mean and the diagonal of the precision."""
    exact = LinearGaussian(DESIGN)(PLANE, DATA)
    found = GaussianVariational(regression, slope, family="mean-field")(PLANE, DATA)
    np.testing.assert_allclose(found.mean, exact.mean, atol=1e-6)
    np.testing.assert_allclose(found.cov, np.diag(1 / np.diag(np.linalg.inv(exact.cov))), atol=1e-6)


def divergence(posterior: Any, mean: float, log_sd: float) -> float:
    """Return KL(q || p) up to a constant, by a plain sum over a fine grid."""
    z = np.linspace(-9, 9, 1801)
    weight = stats.norm.pdf(z) * (z[1] - z[0])
    return float(-(weight @ posterior(mean + np.exp(log_sd) * z)) - log_sd)


@pytest.mark.slow
@pytest.mark.parametrize(("df", "y"), [(3, [0.5, 2.0, -1.0]), (1, [4.0, 0.2, 1.1, 0.7]), (2, [6.0])])
def test_one_dimension_against_brute_force(df: int, y: list[float]) -> None:
    """In one dimension, mean and sd are those that a simplex search on a grid-integrated divergence finds."""
    model = StudentLocation(df, len(y))
    found = GaussianVariational(model.log_likelihood)(Normal(0.5, 1.5), np.array(y))

    def posterior(theta: Floats) -> Floats:
        logs = stats.norm.logpdf(theta, 0.5, 1.5) + stats.t.logpdf(np.array(y)[:, None] - theta, df).sum(0)
        return np.asarray(logs)

    best = optimize.minimize(
        lambda at: divergence(posterior, *at), [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}
    )
    assert float(found.mean) == pytest.approx(best.x[0], abs=2e-4)  # 32 nodes against the grid
    assert np.log(float(found.sd)) == pytest.approx(best.x[1], abs=2e-4)
    laplace = model(Normal(0.5, 1.5), y)
    assert divergence(posterior, *best.x) < divergence(posterior, float(laplace.mean), np.log(float(laplace.sd)))


def test_the_gradient_is_that_of_the_objective() -> None:
    """The gradient agrees with differences of the value, in two dimensions and a posterior with skewness."""

    def counts(theta: Any, y: Any) -> float:
        return float(np.sum(y * (DESIGN @ theta) - np.exp(DESIGN @ theta)))

    procedure = GaussianVariational(counts)
    target, draws = as_target(procedure, PLANE, np.array([1.0, 0.0, 3.0]))
    objective = _Objective(target, *_product_rule(draws.shape[1], 4), np.tril_indices(2))
    x = np.array([0.2, -0.4, -0.3, 0.1, -0.2])
    numerical = optimize.approx_fprime(x, lambda at: objective.value(at)[0], 1e-6)
    np.testing.assert_allclose(objective.value(x)[1], numerical, rtol=1e-4, atol=1e-4)


def test_the_rule_is_that_of_independent_normals() -> None:
    """Moments up to the fourth are exact in two dimensions with three nodes each."""
    points, weights = _product_rule(2, 3)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ points**2, [1, 1], atol=1e-12)
    np.testing.assert_allclose(weights @ points**4, [3, 3], atol=1e-12)
    assert weights @ points.prod(axis=1) ** 2 == pytest.approx(1)


def test_batches_are_looped_over() -> None:
    """A batch gives what its members give one by one."""
    procedure = GaussianVariational(StudentLocation(3, 2).log_likelihood, data_ndim=1)
    y = np.array([[0.0, 1.0], [2.0, -3.0]])
    batch = procedure(Normal(0, 1), y)
    assert [float(procedure(Normal(0, 1), one).mean) for one in y] == list(batch.mean)


def test_what_is_refused() -> None:
    """Wrong settings, too large rules and densities that vanish where a Gaussian has mass are refused."""
    with pytest.raises(rt.errors.InvalidStudy, match="mean-field"):
        GaussianVariational(regression, family="diagonal")  # type: ignore[arg-type]
    with pytest.raises(rt.errors.InvalidStudy, match="at least 2"):
        GaussianVariational(regression, nodes=1)
    with pytest.raises(rt.errors.InvalidStudy, match="fewer nodes"):
        GaussianVariational(regression, nodes=100)(Gaussian(np.zeros(3), np.eye(3)), DATA)
    with pytest.raises(ValueError, match="whole line"):
        GaussianVariational(lambda theta, y: -theta if theta > 0 else -np.inf)(Normal(0, 1), 0.0)
