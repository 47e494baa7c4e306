"""Conjugate posteriors against brute-force numerical Bayes and the closed forms of fractional and partial ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from ringtrue.distributions import Beta, Gamma, Gaussian, Normal
from ringtrue.errors import InvalidStudy
from ringtrue.procedures import BetaBinomial, GammaPoisson, LinearGaussian, NormalMean

Floats = NDArray[np.float64]

LEGENDRE, LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(400)
HERMITE, HERMITE_WEIGHTS = np.polynomial.hermite_e.hermegauss(80)


def brute_force_cdf(log_joint: Any, low: float, high: float, x: float) -> float:
    """Return the posterior probability of (low, x), from the unnormalised log density alone."""

    def mass(a: float, b: float) -> Any:
        theta = a + (b - a) * (LEGENDRE + 1) / 2
        return (b - a) / 2 * (LEGENDRE_WEIGHTS @ np.exp(log_joint(theta)))

    left, right = mass(low, x), mass(x, high)
    return float(left / (left + right))


powers = pytest.mark.parametrize("power", [1.0, 0.3, 2.0])
summaries = pytest.mark.parametrize("summary", [None, 1, 2])


@powers
@summaries
def test_beta_binomial_is_bayes(power: float, summary: int | None) -> None:
    """The output is prior times likelihood to the power of the trials it looks at, normalised numerically."""
    y = np.array([1.0, 0.0, 1.0, 1.0])
    seen = y[:summary]
    output = BetaBinomial(4, power, summary)(Beta(2.5, 3.5), y)

    def log_joint(theta: Floats) -> Any:
        likelihood = sum(stats.bernoulli(theta).logpmf(one) for one in seen)
        return stats.beta(2.5, 3.5).logpdf(theta) + power * likelihood

    for x in (0.2, 0.5, 0.7):
        assert output.cdf(x) == pytest.approx(brute_force_cdf(log_joint, 0.0, 1.0, x), abs=1e-8)


@powers
@summaries
def test_gamma_poisson_is_bayes(power: float, summary: int | None) -> None:
    """The output is prior times likelihood to the power of the counts it looks at, normalised numerically."""
    y = np.array([3.0, 0.0, 5.0])
    seen = y[:summary]
    output = GammaPoisson(3, power, summary)(Gamma(2.5, 0.7), y)

    def log_joint(theta: Floats) -> Any:
        likelihood = sum(stats.poisson(theta).logpmf(one) for one in seen)
        return stats.gamma(2.5, scale=1 / 0.7).logpdf(theta) + power * likelihood

    for x in (0.5, 2.0, 4.0):
        assert output.cdf(x) == pytest.approx(brute_force_cdf(log_joint, 0.0, 60.0, x), abs=1e-8)


@powers
@summaries
def test_normal_mean_is_bayes(power: float, summary: int | None) -> None:
    """The output is prior times likelihood to the power of the observations it looks at, normalised numerically."""
    y = np.array([1.0, -0.5, 2.0])
    seen = y[:summary]
    output = NormalMean(1.5, 3, power, summary)(Normal(0.4, 2.0), y)

    def log_joint(theta: Floats) -> Any:
        likelihood = sum(stats.norm(theta, 1.5).logpdf(one) for one in seen)
        return stats.norm(0.4, 2.0).logpdf(theta) + power * likelihood

    for x in (-1.0, 0.5, 2.0):
        assert output.cdf(x) == pytest.approx(brute_force_cdf(log_joint, -20.0, 20.0, x), abs=1e-10)


@powers
@summaries
def test_linear_gaussian_is_bayes(power: float, summary: int | None) -> None:
    """Mean and covariance are those of a grid over the prior, weighted by the likelihood of the rows it looks at."""
    design, y, noise = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]]), np.array([0.7, -0.2, 1.1]), 1.5
    mean, cov = np.array([0.3, -0.1]), np.array([[1.0, 0.4], [0.4, 0.8]])
    output = LinearGaussian(design, noise, power, summary)(Gaussian(mean, cov), y)
    white = np.stack(np.meshgrid(HERMITE, HERMITE, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = mean + white @ np.linalg.cholesky(cov).T
    residual = (y - theta @ design.T)[:, :summary]
    weights = np.outer(HERMITE_WEIGHTS, HERMITE_WEIGHTS).ravel() * np.exp(
        -0.5 * power * (residual**2).sum(1) / noise**2
    )
    weights /= weights.sum()
    expected = weights @ theta
    assert output.mean == pytest.approx(expected, abs=1e-9)
    assert output.cov == pytest.approx(np.einsum("n,ni,nj->ij", weights, theta - expected, theta - expected), abs=1e-9)


@pytest.mark.parametrize(
    ("t", "tau2", "weak"),
    [(0.1, 0.91818, 0.92562), (0.3, 0.83846, 0.87574), (0.5, 0.83333, 0.88889), (0.9, 0.95263, 0.97507)],
)
def test_fractional_posterior_table(t: float, tau2: float, weak: float) -> None:
    """For noise one, the variances of the score and of the data-averaged output are the tabulated ones."""
    found = fractional(1.0, t)
    assert found == pytest.approx((tau2, weak), abs=6e-6)


@given(st.floats(0.05, 20.0), st.floats(0.0, 3.0))
def test_fractional_posterior_formulas(noise_variance: float, t: float) -> None:
    """tau^2 = (s2 + t^2) / (s2 + t), and the data-averaged variance is one only for t = 0 and t = 1."""
    tau2, weak = fractional(noise_variance, t)
    s2 = noise_variance
    assert tau2 == pytest.approx((s2 + t**2) / (s2 + t), rel=1e-9)
    assert weak == pytest.approx((t**2 * (s2 + 1) + s2 * (t + s2)) / (t + s2) ** 2, rel=1e-9)
    # The excess factorises as t (t - 1) / (t + s2)^2 times s2: zero only where stated.
    assert weak - 1 == pytest.approx(s2 * t * (t - 1) / (t + s2) ** 2, abs=1e-9)


def fractional(noise_variance: float, t: float) -> tuple[float, float]:
    """Return Var z and the data-averaged variance, from the slope and spread of the outputs; theta ~ N(0, 1)."""
    procedure = NormalMean(np.sqrt(noise_variance), power=t)
    at_zero, at_one = procedure(Normal(0, 1), 0.0), procedure(Normal(0, 1), 1.0)
    slope, variance = float(at_one.mean - at_zero.mean), float(at_zero.sd) ** 2
    tau2 = ((1 - slope) ** 2 + slope**2 * noise_variance) / variance
    return tau2, slope**2 * (1 + noise_variance) + variance


def test_power_zero_is_the_belief_and_power_one_is_bayes() -> None:
    """Ignoring the data leaves every belief as it was."""
    assert (float((p := NormalMean(power=0.0)(Normal(0.4, 2.0), 5.0)).mean), float(p.sd)) == pytest.approx((0.4, 2.0))
    beta = BetaBinomial(2, 0.0)(Beta(2.0, 3.0), [1.0, 1.0])
    assert (float(beta.a), float(beta.b)) == (2.0, 3.0)
    gamma = GammaPoisson(2, 0.0)(Gamma(2.0, 3.0), [4.0, 1.0])
    assert (float(gamma.shape), float(gamma.rate)) == (2.0, 3.0)
    gaussian = LinearGaussian(np.eye(2), power=0.0)(Gaussian([1.0, 2.0], [[2.0, 1.0], [1.0, 2.0]]), [9.0, 9.0])
    assert gaussian.mean == pytest.approx([1.0, 2.0])
    assert gaussian.cov == pytest.approx(np.array([[2.0, 1.0], [1.0, 2.0]]))


def test_partial_posterior_is_strong_and_weak_but_not_exact() -> None:
    """Given y1 of (y1, y2): Var z = 1, data-averaged variance 1, but the full log likelihood has E u = .615027."""
    partial = NormalMean(size=2, summary=1)
    outputs = [partial(Normal(0, 1), y) for y in ([0.0, 0.0], [1.0, 0.0], [0.0, 1.0])]
    zero, first, second = (float(output.mean) for output in outputs)
    variance = float(outputs[0].sd) ** 2
    assert (zero, second) == (0.0, 0.0)
    assert ((1 - first) ** 2 + first**2) / variance == pytest.approx(1.0)
    assert 2 * first**2 + variance == pytest.approx(1.0)
    # f = -(theta - ybar)^2, A = vartheta - ybar, B = theta - ybar: E u = P(|A| > |B|), from the joint normal law of
    # theta, the two noises and the output's own noise.
    a = np.array([first - 1, first - 0.5, -0.5, np.sqrt(variance)])
    b = np.array([0.0, -0.5, -0.5, 0.0])
    correlation = ((a - b) @ (a + b)) / np.sqrt(((a - b) @ (a - b)) * ((a + b) @ (a + b)))
    assert 0.5 + np.arcsin(correlation) / np.pi == pytest.approx(0.615027, abs=6e-7)


@summaries
def test_partial_posterior_is_bayes_on_less_data(summary: int | None) -> None:
    """Looking at the first k observations is the posterior of a dataset of k."""
    y, k = np.array([1.0, 0.0, 1.0]), summary or 3
    assert NormalMean(size=3, summary=summary)(Normal(0, 1), y).mean == pytest.approx(
        np.sum(y[:k]) / (k + 1)  # posterior mean for unit prior and noise
    )
    partial, whole = BetaBinomial(3, summary=summary)(Beta(1, 1), y), BetaBinomial(k)(Beta(1, 1), y[:k])
    assert (float(partial.a), float(partial.b)) == (float(whole.a), float(whole.b))
    counts, all_counts = GammaPoisson(3, summary=summary)(Gamma(1, 1), y), GammaPoisson(k)(Gamma(1, 1), y[:k])
    assert (float(counts.shape), float(counts.rate)) == (float(all_counts.shape), float(all_counts.rate))


CASES: dict[str, tuple[Any, Any]] = {
    "normal": (NormalMean(0.7), Normal(0.5, 2.0)),
    "normal, several": (NormalMean(0.7, 4), Normal(0.5, 2.0)),
    "linear": (LinearGaussian([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]], 0.7), Gaussian([0.0, 1.0], np.eye(2))),
    "binomial": (BetaBinomial(5), Beta(2.0, 3.0)),
    "poisson": (GammaPoisson(3), Gamma(2.0, 3.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_simulated_data_have_the_shape_of_theta_and_noise_of_their_own(name: str) -> None:
    """A batch of equal parameters gives one dataset each, all different unless discrete."""
    procedure, belief = CASES[name]
    rng = np.random.default_rng(0)
    theta = belief.sample(1, rng)[0]
    alone, batch = procedure.simulate(theta, rng), procedure.simulate(np.stack([theta] * 40), rng)
    assert batch.shape == (40, *np.shape(alone))
    assert len(np.unique(batch, axis=0)) > 1


N = 20_000
# Massart: P(D > 2.7 / sqrt(n)) <= 2 exp(-2 * 2.7^2) = 9e-7.
MASSART = 2.7 / np.sqrt(N)


def distance(values: Floats, cdf: Any) -> float:
    """Return the largest gap between the empirical and a given cdf at the values, from the right and the left."""
    x, times = np.unique(values, return_counts=True)
    right = np.cumsum(times) / len(values)
    return float(np.max(np.abs(right - cdf(x))))


def test_simulated_data_follow_the_likelihood() -> None:
    """Each observation has the law that the posterior assumes, and not that of another parameter."""
    # Massart also bounds the gap at the points of a discrete law. The twins' laws are at least 0.1 away.
    rng = np.random.default_rng(1)
    normal = NormalMean(2.0, 2).simulate(np.full(N // 2, 0.5), rng)
    assert (
        distance(normal.ravel(), stats.norm(0.5, 2.0).cdf) <= MASSART < distance(normal.ravel(), stats.norm(0.5, 3).cdf)
    )
    counts = GammaPoisson(2).simulate(np.full(N // 2, 1.5), rng)
    assert distance(counts.ravel(), stats.poisson(1.5).cdf) <= MASSART < distance(counts.ravel(), stats.poisson(2).cdf)
    wins = BetaBinomial(4).simulate(np.full(N, 0.3), rng).sum(axis=-1)
    assert distance(wins, stats.binom(4, 0.3).cdf) <= MASSART < distance(wins, stats.binom(4, 0.5).cdf)
    design = np.array([[1.0, 2.0], [3.0, -1.0]])
    lines = LinearGaussian(design, 0.5).simulate(np.tile([1.0, 0.5], (N, 1)), rng)
    for j, center in enumerate(design @ [1.0, 0.5]):
        assert distance(lines[:, j], stats.norm(center, 0.5).cdf) <= MASSART
        assert distance(lines[:, j], stats.norm(center, 1.0).cdf) > MASSART


@pytest.mark.parametrize("name", CASES)
def test_other_beliefs_are_refused(name: str) -> None:
    """A belief of another family is refused by name, not silently replaced."""
    procedure, belief = CASES[name]
    other = Gamma(1, 1) if isinstance(belief, (Normal, Gaussian, Beta)) else Normal(0, 1)
    with pytest.raises(InvalidStudy, match=f"{type(procedure).__name__} needs a .* but {type(other).__name__} arrived"):
        procedure(other, [1.0])


@pytest.mark.parametrize(
    "build",
    [
        lambda: NormalMean(power=-1),
        lambda: LinearGaussian(np.eye(2), power=-1),
        lambda: BetaBinomial(2, power=-1),
        lambda: GammaPoisson(2, power=-1),
        lambda: NormalMean(noise=0),
        lambda: NormalMean(size=0),
        lambda: LinearGaussian(np.eye(2), noise=-1),
        lambda: LinearGaussian([1.0, 2.0]),
        lambda: BetaBinomial(0),
        lambda: GammaPoisson(0),
        lambda: NormalMean(size=2, summary=3),
        lambda: NormalMean(size=2, summary=0),
    ],
)
def test_impossible_settings_are_refused(build: Any) -> None:
    """Negative powers, noise without spread and empty datasets are refused."""
    with pytest.raises(InvalidStudy, match=r"arrived|came"):
        build()


@pytest.mark.parametrize("summary", [-1, 0, 4])
@pytest.mark.parametrize(
    "build",
    [
        lambda summary: NormalMean(size=3, summary=summary),
        lambda summary: LinearGaussian(np.eye(3), summary=summary),
        lambda summary: BetaBinomial(3, summary=summary),
        lambda summary: GammaPoisson(3, summary=summary),
    ],
    ids=["normal", "linear", "binomial", "poisson"],
)
def test_summaries_outside_the_data_are_refused(build: Any, summary: int) -> None:
    """A procedure cannot look at no observation, or at more than there are."""
    with pytest.raises(InvalidStudy, match="summary"):
        build(summary)
