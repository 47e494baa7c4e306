"""Gaussian-process regression agrees with its formulas, with itself in batches, and with its own draws."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import ringtrue as rt
from ringtrue.distributions import Normal
from ringtrue.errors import InvalidStudy
from ringtrue.procedures import FittedGP
from ringtrue.procedures.gp import GaussianProcess, Kernel, Paths, as_kernel, at_points, squared_exponential
from ringtrue.testing.conformance import check_procedure

Floats = NDArray[np.float64]

SMOOTH = squared_exponential(0.1)
BARE = Kernel(SMOOTH.function)  # the same kernel without its features
ROUTES = pytest.mark.parametrize("kernel", [SMOOTH, BARE], ids=["features", "matrix"])
X = np.array([0.05, 0.21, 0.33, 0.52, 0.6, 0.78, 0.97])
Y = np.array([0.3, -1.2, 0.4, 2.0, 1.1, -0.7, 0.2])
NEW = np.array([0.0, 0.13, 0.45, 0.9])


def brownian(a: Any, b: Any) -> Any:
    """Return the kernel of a Brownian motion from 0."""
    return np.minimum(a, b)


def law(output: Any, x: Any) -> Normal:
    """Return the law at a point."""
    found = output.marginal(rt.Evaluate(x))
    assert isinstance(found, Normal)
    return found


def textbook(x: Floats, y: Floats, new: float, noise: float = 0.0) -> tuple[float, float]:
    """Return mean and sd by the formulas with a fitted scale."""
    inverse = np.linalg.inv(SMOOTH.matrix(x, x) + noise**2 * np.eye(len(x)))
    k = SMOOTH.matrix([new], x)[0]
    return float(k @ inverse @ y), float(np.sqrt((1 - k @ inverse @ k) * (y @ inverse @ y) / len(x)))


@pytest.mark.parametrize(("length", "interval"), [(0.1, (0.0, 1.0)), (1.0, (-3.0, 2.0)), (0.5, (10.0, 11.0))])
def test_features_reproduce_the_kernel(length: float, interval: tuple[float, float]) -> None:
    """Products of features are the kernel, to rounding."""
    kernel = squared_exponential(length, interval=interval)
    assert kernel.features is not None
    x = np.linspace(*interval, 57)
    phi = kernel.features(x)
    assert phi.shape == (57, kernel.size)
    assert np.abs(phi @ phi.T - kernel.matrix(x, x)).max() < 1e-14


def test_features_refuse_points_outside_their_interval() -> None:
    """Beyond the interval the features' period would show, so points there are refused."""
    with pytest.raises(InvalidStudy, match="larger interval="):
        GaussianProcess(SMOOTH).sample(2, np.random.default_rng(0))(1.2)  # type: ignore[misc]


@ROUTES
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_law_is_the_textbook_one(kernel: Kernel, noise: float) -> None:
    """Mean, sd and fitted scale are those of the usual formulas."""
    output = FittedGP(kernel, noise=noise)(None, {"x": X, "y": Y})
    for new in NEW:
        mean, sd = textbook(X, Y, new, noise)
        assert float(law(output, new).mean) == pytest.approx(mean, rel=1e-9, abs=1e-9)
        assert float(law(output, new).sd) == pytest.approx(sd, rel=1e-9)


@ROUTES
def test_joint_law_has_the_marginals(kernel: Kernel) -> None:
    """The joint law at several points has the means and the variances of the laws at each."""
    output = FittedGP(kernel)(None, {"x": X, "y": Y})
    joint = output.joint(NEW)
    assert joint.mean == pytest.approx([float(law(output, new).mean) for new in NEW])
    assert np.sqrt(np.diag(joint.cov)) == pytest.approx([float(law(output, new).sd) for new in NEW])
    assert joint.cov[0, 1] != 0


def longdouble_law(x: Floats, y: Floats, new: float) -> tuple[float, float]:
    """Return mean and sd from a Cholesky factor in extended precision."""
    points = np.append(x, new).astype(np.longdouble)
    matrix = np.exp(-np.square((points[:, None] - points) / np.longdouble(0.1)))
    n, root = len(points), np.zeros((len(points), len(points)), np.longdouble)
    for j in range(n):
        root[j, j] = np.sqrt(matrix[j, j] - root[j, :j] @ root[j, :j])
        root[j + 1 :, j] = (matrix[j + 1 :, j] - root[j + 1 :, :j] @ root[j, :j]) / root[j, j]
    white = np.zeros(n - 1, np.longdouble)
    for j in range(n - 1):
        white[j] = (np.longdouble(y[j]) - root[j, :j] @ white[:j]) / root[j, j]
    return float(root[-1, :-1] @ white), float(root[-1, -1] * np.sqrt(white @ white / (n - 1)))


@pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="no extended precision on this platform")
def test_ill_conditioned_designs_keep_their_digits() -> None:
    """With a kernel matrix of condition 1e12 the features give seven digits of the law; a jitter of 1e-6 spoils it."""
    x = np.array([0.1, 0.1 + 1.5e-7, 0.3, 0.35, 0.36, 0.7])
    weights = np.random.default_rng(3).standard_normal(SMOOTH.size)
    y = Paths(SMOOTH, weights)(x)
    assert 1e11 < np.linalg.cond(SMOOTH.matrix(x, x)) < 1e14
    mean, sd = longdouble_law(x, y, 0.105)
    found = law(FittedGP(SMOOTH)(None, {"x": x, "y": y}), 0.105)
    # y carries rounding of 1e-16, seen through a difference quotient over 1.5e-7.
    assert float(found.sd) == pytest.approx(sd, rel=1e-6)
    assert abs(float(found.mean) - mean) < 1e-6 * sd + 1e-8
    jittered = law(FittedGP(SMOOTH, noise=1e-3)(None, {"x": x, "y": y}), 0.105)
    assert abs(float(jittered.sd) / sd - 1) > 0.1


def test_variance_next_to_an_observation_is_accurate() -> None:
    """Where one minus one would leave no digits, the variance is that of a derivative times the distance."""
    output = FittedGP(SMOOTH, scale=1.0)(None, {"x": [0.5], "y": [1.0]})
    h = 1e-9
    # 1 - exp(-2 h^2 / l^2)
    assert float(law(output, 0.5 + h).sd) == pytest.approx(np.sqrt(2) * h / 0.1, rel=1e-5)


@ROUTES
def test_batch_equals_single_datasets(kernel: Kernel) -> None:
    """A batch with points of their own gives the laws of its members."""
    rng = np.random.default_rng(1)
    x, y = rng.random((5, 6)), rng.standard_normal((5, 6))
    batch = FittedGP(kernel, noise=0.1)(None, {"x": x, "y": y})
    single = [law(FittedGP(kernel, noise=0.1)(None, {"x": x[i], "y": y[i]}), 0.4) for i in range(5)]
    assert law(batch, 0.4).mean == pytest.approx([float(one.mean) for one in single], rel=1e-10)
    assert law(batch, 0.4).sd == pytest.approx([float(one.sd) for one in single], rel=1e-10)
    assert batch.joint(NEW).mean.shape == (5, 4)


@ROUTES
def test_fixed_points_are_the_same_as_given_ones(kernel: Kernel) -> None:
    """With points=, y is an array; the laws are the same."""
    given = FittedGP(kernel)(None, {"x": X, "y": Y})
    fixed = FittedGP(kernel, points=X)(None, np.stack([Y, 2 * Y]))
    assert law(fixed, 0.45).mean == pytest.approx(float(law(given, 0.45).mean) * np.array([1, 2]))
    assert law(fixed, 0.45).sd == pytest.approx(float(law(given, 0.45).sd) * np.array([1, 2]))


@ROUTES
def test_points_may_coincide(kernel: Kernel) -> None:
    """A point observed twice without noise says nothing new, neither about theta nor about the scale."""
    twice, values = np.append(X, X[2]), np.append(Y, Y[2])
    x, y = np.stack([twice, np.append(X, 0.88)]), np.stack([values, np.append(Y, 0.1)])
    batch = law(FittedGP(kernel)(None, {"x": x, "y": y}), 0.45)
    once = law(FittedGP(kernel)(None, {"x": X, "y": Y}), 0.45)
    other = law(FittedGP(kernel)(None, {"x": x[1], "y": y[1]}), 0.45)
    assert batch.mean == pytest.approx([float(once.mean), float(other.mean)], rel=1e-7)
    assert batch.sd == pytest.approx([float(once.sd), float(other.sd)], rel=1e-7)


def test_points_may_be_vectors() -> None:
    """A kernel of vectors sums over their axis; for points on a line it is the kernel of numbers."""
    plane = Kernel(lambda a, b: np.exp(-np.square((a - b) / 0.1).sum(-1)), ndim=1)
    direction = np.array([0.6, 0.8])
    output = FittedGP(plane)(None, {"x": X[:, None] * direction, "y": Y})
    flat = FittedGP(BARE)(None, {"x": X, "y": Y})
    assert float(law(output, tuple(0.45 * direction)).mean) == pytest.approx(float(law(flat, 0.45).mean))
    assert output.joint(NEW[:, None] * direction).cov == pytest.approx(flat.joint(NEW).cov)
    with pytest.raises(InvalidStudy, match="observed without noise"):
        law(output, tuple(X[0] * direction))


def test_means_are_subtracted_and_added() -> None:
    """A mean function moves belief, data and law alike."""

    def line(x: Any) -> Any:
        return 3 + 2 * x

    plain = law(FittedGP(SMOOTH)(None, {"x": X, "y": Y}), 0.45)
    moved = law(FittedGP(SMOOTH, mean=line)(None, {"x": X, "y": Y + line(X)}), 0.45)
    assert float(moved.mean) == pytest.approx(float(plain.mean) + line(0.45))
    assert float(moved.sd) == pytest.approx(float(plain.sd))
    assert float(law(GaussianProcess(BARE, mean=line), 0.5).mean) == 4.0


def test_draws_are_functions_through_the_data() -> None:
    """A draw takes the observed values, and one function has one value at a point however it is asked."""
    output = FittedGP(SMOOTH)(None, {"x": X, "y": Y})
    assert output.sample is not None
    draws = output.sample(3, np.random.default_rng(2))
    assert isinstance(draws, list)
    for path in draws:
        assert path(X) == pytest.approx(Y, abs=1e-9)
        assert path(NEW) == pytest.approx([float(path(x)) for x in NEW], abs=1e-12)
    assert abs(draws[0](0.45) - draws[1](0.45)) > 1e-6


def test_paths_have_points_of_their_own() -> None:
    """Points with leading axes go to one function each; indexing picks functions."""
    paths = GaussianProcess(SMOOTH.scaled(lambda x: 1 + x)).sample(4, np.random.default_rng(0))  # type: ignore[misc]
    x = np.random.default_rng(1).random((4, 3))
    own = paths(x)
    assert own.shape == (4, 3)
    assert own[2] == pytest.approx(paths[2](x[2]))
    assert paths[1:3](0.3) == pytest.approx(paths(0.3)[1:3])
    assert len(paths[1:3]) == 2
    with pytest.raises(TypeError, match="single function"):
        len(paths[0])


def observe(theta: Any, rng: np.random.Generator) -> dict[str, Floats]:
    """Return ten values per function, of one function or of many."""
    lead = theta.weights.shape[:-1]
    x = rng.random((*lead, 10))
    return {"x": x, "y": theta(x)}


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_conformance(noise: float) -> None:
    """Laws agree with draws, and batches with single datasets, by the conformance kit."""
    # False-alarm rate 1e-5, stated by the kit; its broken twins are tested with it.
    procedure = FittedGP(SMOOTH, noise=noise)
    family = [rt.Evaluate(0.2), rt.Evaluate(0.7)]
    found = check_procedure(procedure, belief=GaussianProcess(SMOOTH), model=observe, f=family)
    assert any("agrees with draws" in check for check in found.checks)


def test_conformance_with_fixed_points() -> None:
    """With fixed points, a batch of outputs is its members side by side, in law and in draws."""
    # False-alarm rate 1e-5, stated by the kit.
    procedure = FittedGP(SMOOTH, points=X)
    family = [rt.Evaluate(0.15), rt.Evaluate(0.7)]

    def model(theta: Any) -> Floats:
        return np.asarray(theta(X))

    found = check_procedure(
        procedure, belief=GaussianProcess(SMOOTH), model=model, f=family, batched=(model, procedure)
    )
    assert found.checks[-1] == "batched equals scalar"


def study(procedure: Any, n: int, seed: int = 5) -> rt.Replicates:
    """Run a batched study of (1 + x) g(x) at three points."""
    belief = GaussianProcess(SMOOTH.scaled(lambda x: 1 + x))
    family = [rt.Evaluate(0.0), rt.Evaluate(0.5), rt.Evaluate(1.0)]
    return rt.run(rt.Study(belief, observe, procedure, f=family, seed=seed, batch=n), n=n, progress="off")


def test_the_exact_posterior_is_calibrated() -> None:
    """With the true kernel and scale the verdict's p-value is a p-value; a constant scale is rejected."""
    # False-alarm rate 1e-6 by construction. The twin has mean z^2 of 1 / (1 + x)^-2 = 4 at x = 1.
    right = rt.judge(study(FittedGP(SMOOTH.scaled(lambda x: 1 + x), scale=1.0), 500))
    wrong = rt.judge(study(FittedGP(SMOOTH, scale=1.0), 500))
    assert right.pvalue > 1e-6
    assert wrong.pvalue < 1e-20


@pytest.mark.slow
def test_a_fitted_scale_makes_student_errors() -> None:
    """With the right kernel and a fitted scale of n points, standardised errors follow Student's law with n degrees."""
    kernel = SMOOTH.scaled(lambda x: 1 + x)
    z = study(FittedGP(kernel), 6000).z[:, 1]
    # False-alarm rate 1e-6. The twin, the normal law, is missed when the sum of squares, of mean 7500 and sd 168, is
    # below 6000 + 4.9 sqrt(12000) + 8 = 6545: 5.7 sd, a chance below 1e-7.
    assert rt.uniformity.cook(stats.t(10).cdf(z)).pvalue > 1e-6
    assert rt.uniformity.cook(stats.norm.cdf(z), z=z).pvalue < 1e-6


def test_scalar_studies_run_through_the_same_doors() -> None:
    """One function at a time, with an f that has no exact law, the outputs' draws are ranked."""
    top = rt.Function(lambda theta: float(np.max(theta(NEW))), "maximum")
    result = rt.check(GaussianProcess(SMOOTH), observe, FittedGP(SMOOTH, scale=1.0), n=20, f=[top], draws=9)
    assert result.tests[0].route == "ranks of 9"
    assert result.pvalue > 1e-6  # calibrated: false-alarm rate 1e-6


def test_kernels_without_features_can_be_given_points() -> None:
    """Features made at points are exact there, and refused where the points leave the function open."""
    points = np.array([0.25, 0.5, 0.75, 1.0])
    kernel = at_points(brownian, points)
    assert kernel.features is not None
    phi = kernel.features(points)
    assert phi @ phi.T == pytest.approx(brownian(points[:, None], points))
    belief = GaussianProcess(kernel)
    paths = belief.sample(2, np.random.default_rng(0))  # type: ignore[misc]
    assert paths(0.5).shape == (2,)
    with pytest.raises(InvalidStudy, match="add the point"):
        paths(0.6)
    output = FittedGP(kernel, scale=1.0, points=points[[0, 2]])(None, [1.0, 2.0])
    assert float(law(output, 0.5).mean) == pytest.approx(1.5)  # the bridge
    assert float(law(output, 0.5).sd) == pytest.approx(np.sqrt(0.125))


def test_without_features_there_are_laws_and_no_draws() -> None:
    """What a bare kernel cannot do is declared."""
    assert GaussianProcess(brownian).sample is None
    output = FittedGP(brownian)(None, {"x": [0.25, 0.75], "y": [1.0, 2.0]})
    assert output.sample is None
    assert float(law(output, 0.5).mean) == pytest.approx(1.5)
    assert output.marginal(rt.identity) is None
    assert GaussianProcess(brownian).marginal(rt.Evaluate(0.5, component=0)) is None


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: FittedGP(SMOOTH, noise=-1.0), "noise >= 0"),
        (lambda: FittedGP(SMOOTH, scale=0.0), "positive"),
        (lambda: FittedGP(SMOOTH, scale="best"), "'fitted' or positive"),  # type: ignore[arg-type]
        (lambda: FittedGP(3.0), "function k"),
        (lambda: squared_exponential(0.0), "positive length"),
        (lambda: squared_exponential(1.0, interval=(1.0, 0.0)), "interval"),
        (lambda: Kernel(brownian, size=3), "or neither"),
        (lambda: FittedGP(SMOOTH)(None, {"x": X, "y": Y[:3]}), "one value per point"),
        (lambda: law(FittedGP(SMOOTH)(None, {"x": X, "y": Y}), X[1]), "observed without noise"),
        (lambda: law(FittedGP(BARE)(None, {"x": X, "y": Y}), X[1]), "observed without noise"),
    ],
)
def test_bad_settings_are_refused(act: Any, message: str) -> None:
    """Each refusal says what was expected."""
    with pytest.raises(InvalidStudy, match=message):
        act()


def test_observed_points_can_be_tested_with_noise() -> None:
    """With noise there is a law at an observed point too."""
    assert float(law(FittedGP(SMOOTH, noise=0.1)(None, {"x": X, "y": Y}), X[1]).sd) > 0


def test_as_kernel_keeps_kernels() -> None:
    """A kernel is returned as it came."""
    assert as_kernel(SMOOTH) is SMOOTH
