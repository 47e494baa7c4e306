"""Laplace's approximation: exact where the posterior is Gaussian, and never at a lower mode than there is."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import ringtrue as rt
from ringtrue.distributions import Beta, Gaussian, Normal
from ringtrue.procedures import Laplace, LinearGaussian, StudentLocation
from ringtrue.procedures.laplace import _basins, _bracket, _Posteriors, differences

Floats = NDArray[np.float64]

DESIGN = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, -1.0]])
PLANE = Gaussian([0.0, 1.0], [[1.0, 0.3], [0.3, 2.0]])


def regression(theta: Any, y: Any) -> float:
    """Return the log likelihood of a linear regression."""
    return float(-0.5 * np.square(y - DESIGN @ theta).sum())


def slope(theta: Any, y: Any) -> Any:
    """Return its gradient."""
    return DESIGN.T @ (y - DESIGN @ theta)


def bend(theta: Any, y: Any) -> Any:
    """Return its Hessian."""
    return -DESIGN.T @ DESIGN


@pytest.mark.parametrize("given", [{}, {"gradient": slope}, {"gradient": slope, "hessian": bend}, {"hessian": bend}])
def test_gaussian_posteriors_are_exact(given: dict[str, Any]) -> None:
    """Where the posterior is Gaussian, Laplace's approximation is it, with or without derivatives."""
    y = np.array([0.3, -2.0, 1.0])
    exact, found = LinearGaussian(DESIGN)(PLANE, y), Laplace(regression, **given)(PLANE, y)
    np.testing.assert_allclose(found.mean, exact.mean, atol=1e-7)
    np.testing.assert_allclose(found.cov, exact.cov, atol=1e-7)


def test_narrow_posteriors_far_from_the_belief() -> None:
    """The steps of differences follow the posterior's scale, not the belief's."""
    found = Laplace(lambda theta, y: -0.5 * ((y - theta) / 1e-3) ** 2)(Normal(5.0, 10.0), 30.0)
    precision = 1e6 + 0.01
    assert float(found.sd) == pytest.approx(precision**-0.5, rel=1e-6)
    assert float(found.mean) == pytest.approx((30e6 + 0.05) / precision, abs=1e-9)


def test_other_beliefs_enter_by_their_log_density() -> None:
    """A belief that is not normal is differentiated: Gamma(3, 2) and one Poisson count have a mode at (y + 2) / 3."""

    class Rate:
        """A Gamma(3, 2) belief of a user's own."""

        marginal = None

        def sample(self, m: int, rng: np.random.Generator) -> Floats:
            """Return draws."""
            return np.asarray(rng.gamma(3.0, 0.5, m))

        def log_density(self, theta: Any) -> Any:
            """Return the log density."""
            return 2 * np.log(theta) - 2 * theta if theta > 0 else -np.inf

    def likelihood(theta: Any, y: int) -> Any:
        return y * np.log(theta) - theta if theta > 0 else -np.inf

    found = Laplace(likelihood)(Rate(), 7)
    assert float(found.mean) == pytest.approx(3.0, abs=1e-6)
    assert float(found.sd) ** 2 == pytest.approx(1.0, abs=1e-6)  # theta^2 / (y + 2)


def two_modes(theta: Any, y: Any) -> Any:
    """Return the log likelihood of an observation of |theta|, with a hint at the sign."""
    return -0.5 * ((y - np.abs(theta)) / 0.1) ** 2 - 0.1 * (theta < 0)


def test_the_highest_mode_is_taken() -> None:
    """With several starts the higher of two modes is found; from one start on the wrong side it is not."""
    found = Laplace(two_modes, starts=lambda y: [-y, y])(Normal(0, 1), 1.5)
    assert float(found.mean) == pytest.approx(1.5 * 100 / 101, abs=1e-6)
    stuck = Laplace(two_modes, starts=lambda y: [-y], draws=0)
    assert min(float(stuck(Normal(-3.0, 3.0), y).mean) for y in (1.0, 1.5, 2.0)) < 0


def test_a_flat_mode_is_refused() -> None:
    """A posterior without curvature at its mode has no Laplace approximation, and the message says so."""
    with pytest.raises(ValueError, match="positive definite negative Hessian"):
        Laplace(lambda theta, y: 0.5 * theta**2)(Normal(0, 1), 0.0)


def test_impossible_starts_are_refused() -> None:
    """If the log density is finite nowhere, the message asks for starts."""
    with pytest.raises(ValueError, match="give starts"):
        Laplace(lambda theta, y: -np.inf)(Normal(0, 1), 0.0)


def test_beliefs_without_density_are_refused() -> None:
    """A belief that cannot say its density, or a parameter that is no vector, is refused by name."""
    with pytest.raises(rt.errors.InvalidStudy, match="log_density"):
        Laplace(regression)(Beta(1, 1), 0.0)
    with pytest.raises(rt.errors.InvalidStudy, match=r"\(2, 2\)"):
        Laplace(regression)(Normal(np.zeros((2, 2)), 1.0), 0.0)


def test_differences_of_quadratics_are_exact() -> None:
    """Central differences have no error on quadratics but rounding."""
    x = np.array([0.3, -1.2])
    np.testing.assert_allclose(differences(lambda at: at @ at, x, 0.1), 2 * x, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(("df", "size", "scale"), [(1, 5, 1.0), (3, 1, 1.0), (3, 8, 2.5), (20, 5, 1.0)])
def test_the_general_and_the_special_agree(df: int, size: int, scale: float) -> None:
    """Laplace with several starts and the batched search give the same normals, under any normal belief."""
    special = StudentLocation(df, size, scale)
    belief, rng = Normal(1.0, 2.0), np.random.default_rng(1)
    y = special.simulate(belief.sample(15, rng), rng)
    general = Laplace(special.log_likelihood, starts=lambda y: y, data_ndim=1)
    found, expected = special(belief, y), general(belief, y)
    np.testing.assert_allclose(found.mean, expected.mean, atol=2e-6)
    np.testing.assert_allclose(found.sd, expected.sd, rtol=1e-5)


def adversaries(df: float, size: int, n: int, rng: np.random.Generator) -> Floats:
    """Return datasets with clusters at a distance where curvatures cancel: many posteriors with several modes."""
    spread = rng.choice([0.5, 2.0, 5.0, 20.0], (n, 1))
    clusters = spread * rng.choice([-1, 1], (n, size)) + 0.1 * rng.standard_normal((n, size))
    return np.where(rng.random((n, size)) < 0.5, rng.standard_t(df, (n, size)), clusters)


def grid_search(posteriors: _Posteriors) -> tuple[Floats, int]:
    """Return the greatest log density on a fine grid, and how many posteriors have several modes on it."""
    low, high = _bracket(posteriors)
    heights = np.stack([posteriors.height(low + (high - low) * t) for t in np.linspace(0, 1, 1001)])
    peaks = ((heights[1:-1] > heights[:-2]) & (heights[1:-1] > heights[2:])).sum(0)
    return heights.max(0), int((peaks > 1).sum())


@pytest.mark.slow
def test_no_dataset_has_a_higher_mode() -> None:
    """On thousands of datasets, hundreds of them with several modes, a grid finds nothing higher."""
    rng, several = np.random.default_rng(2), 0
    for df in (0.5, 1.0, 3.0, 7.0):
        for size in (1, 2, 3, 5, 8, 13, 20):
            for sd in (0.5, 1.0, 5.0):
                y = adversaries(df, size, 60, rng)
                found = StudentLocation(df, size)(Normal(0.7, sd), y)
                posteriors = _Posteriors((y - 0.7).T.copy(), df, sd**-2)
                best, more = grid_search(posteriors)
                several += more
                assert (posteriors.height(found.mean - 0.7) >= best - 1e-9).all()
                assert (np.abs(posteriors.slope(found.mean - 0.7)) * found.sd < 1e-7).all()
    assert several > 500


def test_one_start_would_not_do() -> None:
    """The broken twin: climbing from the median alone, the grid finds something higher."""
    rng = np.random.default_rng(2)
    y = adversaries(1.0, 8, 1000, rng)
    posteriors = _Posteriors(y.T.copy(), 1.0, 0.04)
    x = np.median(y, axis=1)
    for _ in range(1000):  # reweighted least squares: uphill always
        weight = 2.0 / (1 + (posteriors.y - x) ** 2)
        x = (weight * posteriors.y).sum(0) / (weight.sum(0) + 0.04)
    assert (posteriors.height(x) < grid_search(posteriors)[0] - 1e-6).any()


@pytest.mark.slow
@pytest.mark.parametrize("df", [1, 2, 3, 20])
def test_simulated_datasets(df: int) -> None:
    """On the paper's own datasets, for every N, the mode is the highest of a grid."""
    rng = np.random.default_rng(3)
    for size in range(1, 21):
        model = StudentLocation(df, size)
        y = model.simulate(rng.standard_normal(50), rng)
        posteriors = _Posteriors(y.T.copy(), float(df), 1.0)
        assert (posteriors.height(model(Normal(0, 1), y).mean) >= grid_search(posteriors)[0] - 1e-9).all()


def test_curvature_bounds_hold() -> None:
    """Between two points the second derivative stays between its bounds, and touches them for one observation."""
    rng = np.random.default_rng(4)
    posteriors = _Posteriors(rng.normal(0, 4, (3, 500)), 2.0, 0.3)
    low = rng.normal(0, 3, 500)
    high = low + rng.exponential(2, 500)
    inside = np.stack([posteriors.derivatives(low + (high - low) * t)[1] for t in np.linspace(0, 1, 201)])
    assert (posteriors.least_curvature(low, high) <= inside.min(0) + 1e-12).all()
    assert (posteriors.most_curvature(low, high) >= inside.max(0) - 1e-12).all()
    alone = posteriors.take(slice(None))
    alone = _Posteriors(alone.y[:1], 2.0, 0.3)
    inside = np.stack([alone.derivatives(low + (high - low) * t)[1] for t in np.linspace(0, 1, 2001)])
    np.testing.assert_allclose(alone.least_curvature(low, high), inside.min(0), atol=1e-4)
    np.testing.assert_allclose(alone.most_curvature(low, high), inside.max(0), atol=1e-4)


def test_every_minimum_is_isolated() -> None:
    """Three far clusters under a wide belief make four modes: one basin each, and the highest wins."""
    y = np.array([[-30.0], [-30.0], [0.0], [0.0], [0.0], [40.0]])
    column, low, high = _basins(_Posteriors(y, 1.0, 1e-4), np.array([-30.0]), np.array([40.0]), 1e-9)
    assert column.size == 3
    centers = np.sort((low + high) / 2)
    np.testing.assert_allclose(centers, [-30, 0, 40], atol=5)
    assert abs(float(StudentLocation(1, 6)(Normal(0, 100.0), y[:, 0]).mean)) < 0.1


def test_ties_and_far_data() -> None:
    """Equal modes, coinciding data and data 1e15 away give finite normals at a mode."""
    tied = StudentLocation(1, 2)(Normal(0, 10.0), [-20.0, 20.0])
    assert abs(float(tied.mean)) > 15
    assert float(StudentLocation(2, 3)(Normal(5.0, 1.0), [5.0, 5.0, 5.0]).mean) == 5.0
    far = StudentLocation(1, 2)(Normal(0, 1), [1e15, 1.0])
    assert 0 < float(far.mean) < 1
    assert np.isfinite(far.sd)


def test_batches_of_any_size_are_their_members() -> None:
    """How datasets are grouped changes nothing."""
    rng = np.random.default_rng(5)
    model = StudentLocation(1, 5)
    y = model.simulate(rng.standard_normal(20_000), rng)  # more than one chunk
    whole = model(Normal(0, 1), y)
    for i in (0, 6553, 6554, 19_999):
        one = model(Normal(0, 1), y[i])
        assert np.shape(one.mean) == ()
        assert float(one.mean) == pytest.approx(whole.mean[i], abs=1e-8)
        assert float(one.sd) == pytest.approx(whole.sd[i], rel=1e-8)


def test_what_the_mode_search_refuses() -> None:
    """Wrong settings, beliefs, shapes and nan are refused with what was expected."""
    with pytest.raises(rt.errors.InvalidStudy, match="df > 0"):
        StudentLocation(0, 5)
    with pytest.raises(rt.errors.InvalidStudy, match="Normal belief of one number"):
        StudentLocation(1, 2)(Beta(1, 1), [0.0, 1.0])
    with pytest.raises(ValueError, match="2 finite numbers"):
        StudentLocation(1, 2)(Normal(0, 1), [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="nan or an infinity"):
        StudentLocation(1, 2)(Normal(0, 1), [0.0, np.nan])


def test_the_likelihood_is_students() -> None:
    """The log likelihood differs from scipy's by a constant."""
    model, theta = StudentLocation(4, 2, 1.5), np.array([-1.0, 0.0, 3.0])
    expected = stats.t.logpdf(np.array([0.5, 2.0]), 4, theta[:, None], 1.5).sum(-1)
    np.testing.assert_allclose(np.ptp(model.log_likelihood(theta, [0.5, 2.0]) - expected), 0, atol=1e-12)


def test_distances_of_one_observation() -> None:
    """For nu = 3, N = 1 the strong and weak Kolmogorov distances are .01141 and .00551, by quadrature over the data."""
    v = np.linspace(-9, 9, 2001)
    y, weight = np.sinh(v), np.cosh(v) * (v[1] - v[0])
    output = StudentLocation(3, 1)(Normal(0, 1), y[:, None])
    points, weights = np.polynomial.legendre.leggauss(150)

    def joint(end: Floats) -> Any:
        """Return the density of y on theta < end."""
        half = (end + 9) / 2
        theta = half[:, None] * (points + 1) - 9
        return half * ((stats.norm.pdf(theta) * stats.t.pdf(y[:, None] - theta, 3)) @ weights)

    u = np.array([0.065, 0.07, 0.075, 0.08, 0.085])
    strong = [weight @ joint(output.mean + z * output.sd) for z in stats.norm.ppf(u)] - u
    assert strong.max() == pytest.approx(0.01141, abs=1e-6)
    x = np.linspace(-2.2, -1.4, 81)
    law = (weight * joint(np.full(y.shape, 9.0))) @ stats.norm.cdf((x - output.mean[:, None]) / output.sd[:, None])
    assert (law - stats.norm.cdf(x)).max() == pytest.approx(0.005507, abs=1e-6)
