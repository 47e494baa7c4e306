"""Beliefs and outputs against scipy.stats, closed forms, and themselves one by one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from ringtrue.distributions import (
    Batch,
    Beta,
    Draws,
    Gamma,
    Gaussian,
    Independent,
    Law,
    Mixture,
    Normal,
    Repeated,
    as_distribution,
    stack,
)
from ringtrue.distributions.frozen import Sampler, ScipyLaw
from ringtrue.distributions.laws import BatchLaw, Folded, MixtureLaw, scores_from_tails
from ringtrue.errors import InvalidStudy
from ringtrue.functions import (
    SEVERAL,
    Context,
    Coordinate,
    Distance,
    Function,
    Linear,
    LogDensity,
    as_testfunctions,
    identity,
)
from ringtrue.functions import TestFunction as AnyFunction
from ringtrue.values import Floats
from tests.builders import kolmogorov

PAIRS: dict[str, tuple[Any, Any, Floats]] = {
    "normal": (Normal(0.3, 2.0), stats.norm(0.3, 2.0), np.linspace(-15, 15, 61)),
    "beta": (Beta(2.5, 0.7), stats.beta(2.5, 0.7), np.linspace(-0.1, 1.1, 61)),
    "gamma": (Gamma(2.5, 0.7), stats.gamma(2.5, scale=1 / 0.7), np.linspace(-1, 40, 61)),
}
MARGINALS: dict[str, tuple[Any, AnyFunction]] = {
    "normal": (Normal(0.3, 2.0), identity),
    "beta": (Beta(2.5, 0.7), identity),
    "gamma": (Gamma(2.5, 0.7), identity),
    "normal linear": (Normal([0.3, 1.0], [2.0, 0.5]), Linear([1.0, -3.0])),
    "normal folded": (Normal(0.3, 2.0), Distance(-0.5, 0.7)),
    "gamma folded": (Gamma(2.5, 0.7), Distance(3.0, 2.0)),
    "gaussian coordinate": (Gaussian([1.0, 2.0], [[2.0, -1.0], [-1.0, 3.0]]), Coordinate(index=(1,))),
    "gaussian linear": (Gaussian([1.0, 2.0], [[2.0, -1.0], [-1.0, 3.0]]), Linear([1.0, -1.0])),
    "mixture": (Mixture([Normal(-2, 1), Normal(3, 0.5)], [0.3, 0.7]), identity),
    "mixture of gaussians": (
        Mixture([Gaussian([0.0, 1.0], np.eye(2)), Gaussian([3.0, -3.0], 0.25 * np.eye(2))], [0.3, 0.7]),
        Linear([1.0, -1.0]),
    ),
    "independent": (Independent({"a": Gamma(2, 1), "b": Gaussian([0.0, 1.0], np.eye(2))}), Coordinate("b", (1,))),
    "scipy": (as_distribution(stats.t(3, loc=1.0), what="it"), identity),
    "scipy discrete": (as_distribution(stats.poisson(3.3), what="it"), identity),
    "scipy discrete, folded": (as_distribution(stats.poisson(3.3), what="it"), Distance(3.0, 1.0)),
}

# Massart: P(D > 2.7 / sqrt(n)) <= 2 exp(-2 * 2.7^2) = 9e-7.
N = 20_000
MASSART = 2.7 / np.sqrt(N)


def spread_atoms(law: Law, x: Floats, rng: np.random.Generator) -> Floats:
    """Return F(x-) + V (F(x) - F(x-)), uniform if x follows the law."""
    below = law.cdf_left(x)
    return below + rng.random(x.shape) * (law.cdf(x) - below)


def renamed(f: AnyFunction, name: str) -> AnyFunction:
    """Return a test function under another name."""
    return as_testfunctions({name: f})[0]


def drawn(distribution: Any, m: int) -> Any:
    """Return m draws, from a distribution that says it can."""
    assert distribution.sample is not None
    return distribution.sample(m, np.random.default_rng(0))


# One law at a time.


@pytest.mark.parametrize("name", PAIRS)
def test_both_tails_are_scipys(name: str) -> None:
    """Distribution and survival function are scipy's, to relative accuracy, on and off the support."""
    law, oracle, x = PAIRS[name]
    assert law.cdf(x) == pytest.approx(oracle.cdf(x), rel=1e-11, abs=0)
    assert law.sf(x) == pytest.approx(oracle.sf(x), rel=1e-11, abs=0)
    assert law.cdf(x) + law.sf(x) == pytest.approx(np.ones(61), abs=1e-14)
    assert np.array_equal(law.cdf_left(x), law.cdf(x))
    assert not law.atoms


@pytest.mark.parametrize("side", [-1, 1])
def test_zscore_keeps_its_size_in_the_tails(side: int) -> None:
    """Thirty standard deviations out, the score is that of the tail, not of a probability rounded to 0 or 1."""
    x = side * 30.0
    assert Normal(0, 1).zscore(x) == x
    assert scores_from_tails(stats.norm.cdf(x), stats.norm.sf(x)) == pytest.approx(x, rel=1e-12)
    assert MixtureLaw([Normal(0, 1), Normal(0, 1)], np.array([0.5, 0.5])).zscore(x) == pytest.approx(x, rel=1e-12)
    assert ScipyLaw(stats.norm()).zscore(x) == pytest.approx(x, rel=1e-12)
    assert BatchLaw((Normal(0, 1),)).zscore([x]) == pytest.approx([x], rel=1e-12)


@pytest.mark.parametrize(
    ("law", "x", "log_tail"),
    [
        (Gamma(3.0, 2.0), 200.0, np.log1p(400 + 400**2 / 2) - 400),
        (Gamma(1.0, 2.0), 1e-300, np.log(2e-300)),
        (Beta(1.0, 60.0), 1 - 2.0**-16, 60 * np.log(2.0**-16)),
        (Beta(60.0, 1.0), 1e-5, 60 * np.log(1e-5)),
    ],
    ids=["gamma right", "gamma left", "beta right", "beta left"],
)
def test_zscore_in_the_tails_of_skewed_laws(law: Law, x: float, log_tail: float) -> None:
    """Gamma and beta scores are those of the closed form of the tail down to 1e-300."""
    tail = np.exp(log_tail)
    assert min(float(law.cdf(x)), float(law.sf(x))) == pytest.approx(tail, rel=1e-10)
    assert abs(law.zscore(x)) == pytest.approx(-special.ndtri(tail), rel=1e-12)


@given(st.floats(-8, 8))
def test_zscore_is_the_score_of_the_cdf(score: float) -> None:
    """Where the cdf does not saturate, Phi of the score is the cdf; a folded law knows it as a difference only."""
    x = float(special.ndtr(score))
    for law in (Gamma(3.0, 2.0), Beta(2.0, 5.0), MixtureLaw([Gamma(1.0, 1.0), Beta(1.0, 1.0)], np.array([0.5, 0.5]))):
        assert special.ndtr(law.zscore(x)) == pytest.approx(law.cdf(x), rel=1e-9, abs=1e-300)
    folded = Folded(Normal(1.0, 2.0), 0.5, 1.0)
    assert special.ndtr(folded.zscore(x)) == pytest.approx(folded.cdf(x), abs=1e-15)


@pytest.mark.parametrize("name", MARGINALS)
def test_declared_law_is_that_of_the_draws(name: str) -> None:
    """The exact law of a test function is the law of its values at the distribution's own draws."""
    # False-alarm rate 9e-7 (Massart). The twin moves the values by 0.3 standard deviations, which moves the cdf of
    # every law here by more than 0.06: it passes with probability at most exp(-2 N (0.06 - MASSART)^2) < 1e-28.
    distribution, f = MARGINALS[name]
    rng = np.random.default_rng(4)
    law, values = distribution.marginal(f), f.evaluate(distribution.sample(N, rng), SEVERAL)
    assert kolmogorov(spread_atoms(law, values, rng)) <= MASSART
    moved = values + (1.0 if law.atoms else 0.3 * np.minimum(values.std(), 2.0))
    assert kolmogorov(spread_atoms(law, moved, rng)) > MASSART


@pytest.mark.parametrize("name", [name for name in MARGINALS if "discrete" not in name])
def test_laws_sample_themselves(name: str) -> None:
    """A law's own draws follow it, and scaled draws do not."""
    # Rates as above; a scale of 1.5 about zero moves every cdf here by more than 0.06.
    distribution, f = MARGINALS[name]
    law = distribution.marginal(f)
    draws = law.sample(N, np.random.default_rng(8))
    assert draws.shape == (N,)
    assert kolmogorov(law.cdf(draws)) <= MASSART
    assert kolmogorov(law.cdf(1.5 * draws)) > MASSART


@pytest.mark.parametrize(("center", "scale"), [(0.0, 1.0), (-0.5, 0.7), (2.0, 3.0)])
def test_folded_normal_is_the_closed_form(center: float, scale: float) -> None:
    """|X - c| / s of a normal X has the noncentral chi law with one degree of freedom."""
    mean, sd = 0.3, 2.0
    x = np.linspace(0.01, 12, 50)
    law = Normal(mean, sd).marginal(Distance(center, scale))
    oracle = stats.ncx2(1, ((mean - center) / sd) ** 2)
    assert isinstance(law, Folded)
    assert law.cdf(x) == pytest.approx(oracle.cdf((x * scale / sd) ** 2), rel=1e-10)
    assert law.sf(x) == pytest.approx(oracle.sf((x * scale / sd) ** 2), rel=1e-8)
    assert np.array_equal(law.cdf([-1.0, 0.0]), [0.0, 0.0])
    assert np.array_equal(law.sf([-1.0, 0.0]), [1.0, 1.0])


@pytest.mark.parametrize("mean", [-0.5, 0.5])
def test_folded_scores_survive_on_either_side_of_the_centre(mean: float) -> None:
    """A truth 20 standard deviations nearer the centre than the output scores -20, whichever side the output is on."""
    law = Normal(mean, 0.001).marginal(Distance(0.0, 1.0))
    assert law is not None
    assert law.zscore(0.48) == pytest.approx(-20.0, rel=1e-9)
    assert law.zscore(0.52) == pytest.approx(20.0, rel=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1 / 1.349, 2 / 1.349, 3 / 1.349, 0.1])
@pytest.mark.parametrize("center", [0.0, 5.0, 4.5])
def test_folded_law_keeps_the_atoms_of_a_discrete_one(center: float, scale: float) -> None:
    """The distance of a Poisson count has the atoms of the counts on both sides, whatever the rounding of the scale."""
    counts = np.arange(40)
    mass = stats.poisson(6.3).pmf(counts)
    f = Distance(center, scale)
    law = as_distribution(stats.poisson(6.3), what="it").marginal(f)
    apart = np.abs(counts - center)
    at_most = np.array([mass[apart <= r].sum() for r in apart])
    below = np.array([mass[apart < r].sum() for r in apart])
    values = f.evaluate(counts, SEVERAL)
    assert law.atoms
    assert law.cdf(values) == pytest.approx(at_most, abs=1e-9)
    assert law.cdf_left(values) == pytest.approx(below, abs=1e-9)
    assert law.sf(values) == pytest.approx(1 - at_most, abs=1e-9)


def test_normal_log_density_is_scipys() -> None:
    """Densities of normal, Gaussian, mixture and scipy laws are scipy's."""
    x = np.linspace(-3, 3, 7)
    assert Normal(0.3, 2.0).log_density(x) == pytest.approx(stats.norm(0.3, 2.0).logpdf(x), rel=1e-12)
    points, mean, cov = np.stack([x, x**2], axis=-1), np.array([1.0, 2.0]), np.array([[2.0, -1.0], [-1.0, 3.0]])
    oracle = stats.multivariate_normal(mean, cov)
    assert Gaussian(mean, cov).log_density(points) == pytest.approx(oracle.logpdf(points), rel=1e-12)
    mixture: Any = Mixture([Normal(-2, 1), Normal(3, 0.5)], [0.3, 0.7])
    expected = np.log(0.3 * stats.norm(-2, 1).pdf(x) + 0.7 * stats.norm(3, 0.5).pdf(x))
    assert mixture.log_density(x) == pytest.approx(expected, rel=1e-12)
    poisson = as_distribution(stats.poisson(2), what="it")
    assert poisson.log_density([0, 3]) == pytest.approx(stats.poisson(2).logpmf([0, 3]))


def test_log_density_of_a_mixture_of_vectors_is_the_joint_one() -> None:
    """A vector belongs to one component as a whole, in the density as in the draws."""
    mixture = Mixture([Normal([-3.0, -3.0], [1.0, 1.0]), Normal([3.0, 3.0], [1.0, 1.0])], ndim=1)
    twin = Mixture([Gaussian([-3.0, -3.0], np.eye(2)), Gaussian([3.0, 3.0], np.eye(2))])
    for theta in ([3.0, 3.0], [3.0, -3.0]):
        expected = LogDensity().evaluate(np.array(theta), Context(0, output=twin))
        assert LogDensity().evaluate(np.array(theta), Context(0, output=mixture)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_a_normal_without_spread_is_a_point_mass(zero: float) -> None:
    """All of the probability is at the mean: below, at and above it everything is known by hand."""
    law, x = Normal(3.0, zero), np.array([2.0, 3.0, 5.0])
    assert law.atoms
    assert law.cdf(x).tolist() == [0, 1, 1]
    assert law.cdf_left(x).tolist() == [0, 0, 1]
    assert law.sf(x).tolist() == [1, 0, 0]
    assert np.exp(law.log_tails(x)).tolist() == [[0, 1, 1], [1, 0, 0]]
    assert law.zscore(x).tolist() == [-np.inf, 0, np.inf]
    assert law.crps(x).tolist() == [1, 0, 2]
    assert law.log_density(x).tolist() == [-np.inf, 0, -np.inf]
    assert law.ppf([0.0, 0.3, 1.0]).tolist() == [3, 3, 3]
    assert np.isnan(law.ppf(np.nan))
    assert law.sample(4, np.random.default_rng(0)).tolist() == [3, 3, 3, 3]
    assert [float(end) for end in law.central(0.9)] == [3, 3]
    assert np.isnan(Normal(np.nan, zero).cdf(3.0))


def test_a_point_mass_leaves_its_batch_alone() -> None:
    """What normals say beside a point mass is, to the bit, what they say without it."""
    mean, sd, x = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.0, 1e-3]), np.array([0.4, 1.0, 7.0])
    keep = [0, 2]
    whole, rest = Normal(mean, sd), Normal(mean[keep], sd[keep])
    for name in ("cdf", "cdf_left", "sf", "zscore", "crps", "log_density", "mahalanobis"):
        assert np.array_equal(getattr(whole, name)(x)[keep], getattr(rest, name)(x[keep])), name
    assert np.array_equal(whole.ppf(0.2)[keep], rest.ppf(0.2))
    assert not rest.atoms


@pytest.mark.parametrize(
    "build",
    [
        lambda: Normal([0, 1], [1, -1]),
        lambda: Beta(0, 1),
        lambda: Beta(1, [-1, 2]),
        lambda: Gamma(1, 0),
        lambda: Gamma(-1, 1),
    ],
)
def test_parameters_outside_the_family_are_refused(build: Any) -> None:
    """Scales, shapes and rates must be positive, and the message shows what arrived."""
    with pytest.raises(ValueError, match=r"positive.* but .*(0|-1)(\.0)? arrived"):
        build()


@pytest.mark.parametrize(
    ("mean", "cov", "message"),
    [
        ([0, 0], [[1, 2], [2, 1]], "smallest eigenvalue is -1"),
        ([0, 0], [[1, 1], [1, 1]], "positive definite"),
        ([0, 0], [[1, 0.1], [0, 1]], "symmetric"),
        ([0, 0, 0], np.eye(2), r"\(3,\) and \(2, 2\)"),
        (0.0, [[1.0]], r"\(\) and \(1, 1\)"),
        ([0, 0], [1.0, 1.0], r"\(2,\) and \(2,\)"),
        ([0, 0], np.stack([np.eye(2)] * 3), r"\(2,\) and \(3, 2, 2\)"),
        (np.zeros((4, 2)), np.stack([np.eye(2)] * 3), r"\(4, 2\) and \(3, 2, 2\)"),
    ],
    ids=["indefinite", "singular", "asymmetric", "sizes", "scalar mean", "vector cov", "one mean", "batches"],
)
def test_ill_posed_gaussians_are_refused(mean: Any, cov: Any, message: str) -> None:
    """A covariance must be symmetric, positive definite and of the mean's shape, batch included."""
    with pytest.raises(ValueError, match=message):
        Gaussian(mean, cov)


# Batches.


@pytest.mark.parametrize(
    "outputs",
    [
        [Normal(m, s) for m, s in ((0, 1), (3, 2), (-1, 0.5))],
        [Beta(a, 2.0) for a in (1, 3, 0.5)],
        [Gamma(2.0, r) for r in (1, 3, 0.5)],
        [Mixture([Normal(m, 1), Normal(m + 1, 2)], [0.2, 0.8]) for m in (0, 1, 2)],
        [Mixture([Normal(m, 1), Normal(m + 1, 2)], [0.1 * m, 1 - 0.1 * m]) for m in (1, 2, 3)],
        [Normal(0, 1), Gamma(2, 1), Beta(1, 1)],
        [as_distribution(stats.t(df), what="it") for df in (1, 3, 9)],
        [as_distribution(stats.poisson(r), what="it") for r in (1, 3, 9)],
        [as_distribution(stats.poisson(3), what="it"), Normal(0, 1), Gamma(1, 1)],
    ],
    ids=["normal", "beta", "gamma", "mixture", "mixture weights", "mixed", "scipy", "discrete", "some discrete"],
)
@pytest.mark.parametrize("f", [identity, Distance(0.5, 2.0), renamed(identity, "me")], ids=lambda f: f.name)
def test_stack_of_scalars_is_one_by_one(outputs: list[Any], f: AnyFunction) -> None:
    """The law of a batch at one x per replicate is that of its members."""
    x = np.array([0.25, 0.5, 0.75])
    law = stack(outputs).marginal(f)
    for name in ("cdf", "sf", "cdf_left", "zscore"):
        alone = np.array([getattr(output.marginal(f), name)(xi) for output, xi in zip(outputs, x, strict=True)])
        assert getattr(law, name)(x) == pytest.approx(alone, rel=1e-12)
    assert law.atoms == any(output.marginal(f).atoms for output in outputs)
    rng = np.random.default_rng(0)
    assert law.sample(7, rng).shape == np.shape(stack(outputs).sample(7, rng)) == (7, 3)


@pytest.mark.parametrize(
    "outputs",
    [
        [Normal([m, m + 1.0], [1.0, 2.0]) for m in range(4)],
        [Gaussian([m, m + 1.0], [[2.0, 0.1 * m], [0.1 * m, 1.0]]) for m in range(4)],
        [Mixture([Gaussian([m, 0.0], np.eye(2)), Gaussian([0.0, m], 2 * np.eye(2))]) for m in range(4)],
        [Mixture([Normal([m, 0.0], 1.0), Normal([0.0, m], 2.0)], ndim=1) for m in range(4)],
        [Normal([m, m + 1.0], 2.0) for m in range(4)],
        [Normal(m, [1.0, 2.0]) for m in range(4)],
        [Normal(m, [1.0, 2.0]) for m in range(2)],
        [Gaussian([0.0, m], np.eye(2)) if m else Normal([0.0, 0.0], 1.0) for m in range(4)],
    ],
    ids=["normal", "gaussian", "mixture", "mixture ndim", "one sd", "one mean", "one mean, square", "mixed"],
)
@pytest.mark.parametrize(
    "f", [Coordinate(index=(1,)), Coordinate(index=(0,)), Linear([1.0, -2.0])], ids=lambda f: f.name
)
def test_stack_of_vectors_is_one_by_one(outputs: list[Any], f: AnyFunction) -> None:
    """A batch of vector-valued outputs has the laws and shapes of its members, however their parameters broadcast."""
    x = np.linspace(-1, 2, len(outputs))
    batch = stack(outputs)
    alone = np.array([output.marginal(f).cdf(xi) for output, xi in zip(outputs, x, strict=True)])
    assert batch.marginal(f).cdf(x) == pytest.approx(alone, rel=1e-12)
    assert np.shape(batch.sample(5, np.random.default_rng(0))) == (5, len(outputs), 2)


def test_stacked_densities_are_one_by_one() -> None:
    """The log density of a batch is that of each output at its own parameter."""
    outputs = [Gaussian([m, 1.0], [[2.0, 0.1 * m], [0.1 * m, 1.0]]) for m in range(4)]
    theta = np.random.default_rng(0).normal(size=(3, 4, 2))
    alone = np.array([[output.log_density(t) for output, t in zip(outputs, row, strict=True)] for row in theta])
    assert stack(outputs).log_density(theta) == pytest.approx(alone, rel=1e-12)


def test_what_does_not_fit_one_object_stays_a_batch() -> None:
    """Different kinds or shapes are kept side by side, and what one cannot do the batch cannot."""
    assert isinstance(stack([Normal(0, 1), Gamma(1, 1)]), Batch)
    assert isinstance(stack([Normal([0, 0], 1), Normal([0, 0, 0], 1)]), Batch)
    assert stack([Normal(0, 1), Draws(np.zeros(5))]).marginal is None
    assert stack([Normal(0, 1), LawOnly()]).sample is None
    assert stack([Normal(0, 1), LawOnly()]).marginal(Function(np.abs, "f")) is None


@dataclass(frozen=True)
class LawOnly:
    """A user's output that knows its law and cannot be sampled."""

    sample = None

    def marginal(self, f: AnyFunction) -> Law | None:
        """Return a standard normal for the identity."""
        return Normal(0, 1) if f == identity else None


@pytest.mark.parametrize("law", [Normal, Beta, Gamma])
def test_elementwise_parameters_broadcast(law: Any) -> None:
    """Draws come first, then the broadcast shape of the parameters; a coordinate picks from it."""
    batch = law(np.full((4, 1), 2.0), np.array([1.0, 2.0, 3.0]))
    assert batch.sample(6, np.random.default_rng(0)).shape == (6, 4, 3)
    column = batch.marginal(Coordinate(index=(2,)))
    assert column.cdf(np.full(4, 0.5)) == pytest.approx(np.full(4, law(2.0, 3.0).cdf(0.5)))


def test_unknown_laws_are_declared_unknown() -> None:
    """A distribution returns None for a law it does not know, and never guesses."""
    user = Function(np.abs, "f")
    vector = Distance(np.zeros(2), np.ones(2))
    assert all(d.marginal(user) is None for d in (Normal(0, 1), Gaussian([0.0], [[1.0]]), Mixture([Normal(0, 1)])))
    assert Normal([0.0, 0.0], 1.0).marginal(vector) is None
    assert Gaussian([0.0, 0.0], np.eye(2)).marginal(vector) is None
    assert Gaussian([0.0], [[1.0]]).marginal(identity) is None
    assert Normal(0, 1).marginal(Coordinate("a")) is None
    assert Beta([1, 1], 1).marginal(Linear([1.0, 1.0])) is None
    assert ScipyLaw(stats.norm()).marginal(Coordinate(index=(0,))) is None


def test_gaussian_marginals_are_the_closed_forms() -> None:
    """A linear function of a Gaussian, and of independent normals, is normal with the usual moments."""
    mean, cov, w = np.array([1.0, 2.0]), np.array([[2.0, -1.0], [-1.0, 3.0]]), np.array([2.0, 0.5])
    law = Gaussian(mean, cov).marginal(renamed(Linear(w), "mine"))
    assert isinstance(law, Normal)
    assert (law.mean, law.sd**2) == pytest.approx((w @ mean, w @ cov @ w))
    same = Normal(mean, np.sqrt(np.diag(cov))).marginal(Linear(w))
    assert isinstance(same, Normal)
    assert (same.mean, same.sd**2) == pytest.approx((w @ mean, w**2 @ np.diag(cov)))


def test_gaussian_draws_have_the_covariance() -> None:
    """Draws of a batch of Gaussians are white after each one's own inverse square root."""
    # Rates as for the laws above, for each of two whitened coordinates; the twin uses the other replicate's covariance.
    covs = np.array([[[2.0, -1.0], [-1.0, 3.0]], [[1.0, 0.9], [0.9, 1.0]]])
    draws = Gaussian([[1.0, 2.0], [-3.0, 0.0]], covs).sample(N, np.random.default_rng(1))
    assert draws.shape == (N, 2, 2)
    centred = draws - np.array([[1.0, 2.0], [-3.0, 0.0]])
    for j, cov in enumerate(covs):
        radius = np.einsum("mi,ij,mj->m", centred[:, j], np.linalg.inv(cov), centred[:, j])
        wrong = np.einsum("mi,ij,mj->m", centred[:, j], np.linalg.inv(covs[1 - j]), centred[:, j])
        assert kolmogorov(stats.chi2(2).cdf(radius)) <= MASSART
        assert kolmogorov(stats.chi2(2).cdf(wrong)) > MASSART


# Mixtures, independent parts, repetition.


def test_mixture_weights_are_normalised_and_default_to_equal() -> None:
    """Weights need not sum to one, and may be left out."""
    parts = [Normal(-1, 1), Normal(1, 1), Normal(7, 1)]
    assert np.asarray(Mixture(parts).weights) == pytest.approx([1 / 3] * 3)
    law = Mixture(parts, [2, 6, 0]).marginal(identity)
    assert law is not None
    x = np.linspace(-3, 3, 5)
    assert law.cdf(x) == pytest.approx(0.25 * stats.norm(-1).cdf(x) + 0.75 * stats.norm(1).cdf(x))


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0]], ids=str)
def test_mixture_refuses_impossible_weights(weights: list[float]) -> None:
    """There must be one non-negative weight per component, with a positive sum."""
    with pytest.raises(ValueError, match="weights must be 2"):
        Mixture([Normal(0, 1), Normal(1, 1)], weights)


def test_mixture_needs_to_know_what_one_parameter_is() -> None:
    """Array parameters could be a vector or a batch; the choice is asked for, and decides what varies together."""
    parts = [Normal([-9.0, -9.0], 1.0), Normal([9.0, 9.0], 1.0)]
    with pytest.raises(ValueError, match="ndim=1 for a vector"):
        Mixture(parts)
    # 200 draws agree in sign by chance, or never differ when they should, with probability 2^-200.
    vectors, scalars = (drawn(Mixture(parts, ndim=ndim), 200) for ndim in (1, 0))
    assert np.all(np.sign(vectors[:, 0]) == np.sign(vectors[:, 1]))
    assert np.any(np.sign(scalars[:, 0]) != np.sign(scalars[:, 1]))


def test_mixture_of_scalars_and_gaussians_knows_by_itself() -> None:
    """Scalar components have no axis of their own, Gaussian ones have one."""
    assert Mixture([Normal(0, 1), Gamma(1, 1)]).ndim == 0
    assert Mixture([Gaussian([0.0], [[1.0]])]).ndim == 1


def test_mixture_can_what_all_components_can() -> None:
    """Without a sampler in one component the mixture declares none, and so with laws."""
    assert Mixture([Normal(0, 1), LawOnly()]).sample is None
    assert Mixture([Normal(0, 1), LawOnly()]).marginal(identity) is not None
    assert Mixture([Normal(0, 1), stats.t(3)]).marginal(Function(np.abs, "f")) is None
    with pytest.raises(ValueError, match="at least one component"):
        Mixture([])
    with pytest.raises(ValueError, match="pool the draws"):
        Mixture([Normal(0, 1), np.zeros(5)])
    with pytest.raises(InvalidStudy, match="a mixture component must be a distribution"):
        Mixture([Normal(0, 1), 3.0])


def test_mixture_of_many_components() -> None:
    """More components than numpy's choose can take give the same mixture."""
    # Massart on N draws of 70 components with equal weights; the twin has the first 35 only.
    parts = [Normal(float(j), 0.1) for j in range(70)]
    law = Mixture(parts).marginal(identity)
    assert law is not None
    assert kolmogorov(law.cdf(drawn(Mixture(parts), N))) <= MASSART
    assert kolmogorov(law.cdf(drawn(Mixture(parts[:35]), N))) > MASSART


def test_mixture_of_named_parts_draws_whole_parameters() -> None:
    """A mixture of dict-valued distributions draws dicts, each from one component."""
    low, high = (Independent({"a": Normal(m, 1), "b": Normal(m, 1)}) for m in (-50, 50))
    draws = drawn(Mixture([low, high]), 100)
    assert np.array_equal(np.sign(draws["a"]), np.sign(draws["b"]))


def test_independent_parts_keep_their_laws() -> None:
    """A coordinate of a named part has that part's law; everything else is unknown."""
    joint = Independent({"a": stats.gamma(2), "b": Gaussian([0.0, 1.0], np.eye(2)), "c": np.arange(5.0)})
    assert {name: np.shape(part) for name, part in drawn(joint, 6).items()} == {"a": (6,), "b": (6, 2), "c": (6,)}
    law = joint.marginal(renamed(Coordinate("a"), "me"))
    assert law is not None
    assert law.cdf(1.5) == pytest.approx(stats.gamma(2).cdf(1.5))
    assert joint.marginal(Coordinate("c")) is None
    assert joint.marginal(Coordinate("d")) is None
    assert joint.marginal(identity) is None


def test_independent_refuses_what_is_no_distribution() -> None:
    """Parts must be distributions, and the message names the part."""
    with pytest.raises(ValueError, match="empty mapping"):
        Independent({})
    with pytest.raises(InvalidStudy, match="part 'a' must be a distribution"):
        Independent({"a": 1.0})
    assert Independent({"a": LawOnly()}).sample is None


def test_repeated_is_a_batch_of_equals() -> None:
    """Each replicate has the law of the one distribution, and draws of its own."""
    batch = Repeated(Independent({"a": Normal(0, 1), "b": Gaussian([0.0, 1.0], np.eye(2))}), 5)
    draws = drawn(batch, 3)
    assert draws["a"].shape == (3, 5)
    assert draws["b"].shape == (3, 5, 2)
    assert len(np.unique(draws["b"])) == 30
    assert batch.marginal is not None
    law = batch.marginal(Coordinate("b", (1,)))
    assert law is not None
    assert law.cdf(np.arange(5.0)) == pytest.approx(stats.norm(1).cdf(np.arange(5.0)))
    assert Repeated(Draws(np.zeros(5)), 2).marginal is None
    assert Repeated(LawOnly(), 2).sample is None


def test_repeated_has_the_density_of_its_distribution() -> None:
    """A batch of equals knows its density if the one distribution does."""
    rng = np.random.default_rng(0)
    for law, own in ((Normal(0.5, 2.0), ()), (Gaussian([0.0, 1.0], np.eye(2)), (2,)), (Normal([0.0, 1.0], 1.0), (2,))):
        theta = rng.normal(size=(3, 5, *own))
        expected = LogDensity().evaluate(theta, Context(2, output=law))
        assert LogDensity().evaluate(theta, Context(2, output=Repeated(law, 5))) == pytest.approx(expected, rel=1e-12)
    assert getattr(Repeated(Beta(1, 1), 5), "log_density", None) is None


# Draws.


def test_draws_are_resampled_from_themselves() -> None:
    """Sampling picks among the draws, jointly over named parts, and never one of weight zero."""
    draws = Draws({"a": np.arange(10), "b": 10 * np.arange(10)}, weights=[0, 1, 1, 1, 1, 1, 1, 1, 1, 0])
    picked = draws.sample(500, np.random.default_rng(0))
    assert np.array_equal(10 * picked["a"], picked["b"])
    assert set(picked["a"]) <= set(range(1, 9))
    assert draws.marginal is None
    assert draws.size == 10


@pytest.mark.parametrize("m", [1, 2, 3, 5, 6, 7, 10, 49, 98, 100, 1000])
def test_equal_weights_lose_no_draw(m: int) -> None:
    """Weights that are all equal are worth all the draws, each once."""
    equal = Draws(np.arange(float(m)), weights=np.full(m, 0.1)).equally_weighted(np.random.default_rng(0))
    assert sorted(equal.values) == list(range(m))
    assert equal.weights is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda w: sum(w) > 1e-3), st.integers(0, 99))
def test_systematic_resampling_is_fair_to_within_one(weights: list[float], seed: int) -> None:
    """Every draw comes as often as its share of the effective size says, rounded up or down."""
    w = np.array(weights) / sum(weights)
    draws = Draws(np.arange(len(w)), weights=weights).equally_weighted(np.random.default_rng(seed))
    times = np.bincount(draws.values, minlength=len(w))
    assert abs(draws.size - 1 / np.sum(w**2)) < 1 + 1e-9
    assert np.all(np.abs(times - draws.size * w) < 1 + 1e-9)


def test_unweighted_draws_are_left_alone() -> None:
    """Without weights there is nothing to resample, and no random number is used."""
    draws = Draws(np.arange(4.0))
    rng = np.random.default_rng(0)
    assert draws.equally_weighted(rng) is draws
    assert rng.random() == np.random.default_rng(0).random()
    assert replace(draws, iid=False).iid is False


def test_resampled_order_is_random() -> None:
    """Resampling shuffles, so that the first draws are not those of the smallest index."""
    # The chance that a shuffle of 99 keeps the order is 1/99! < 1e-150.
    resampled = Draws(np.arange(100.0), weights=np.linspace(0.5, 1, 100)).equally_weighted(np.random.default_rng(0))
    assert np.any(np.diff(resampled.values) < 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (3.0, "at least one draw"),
        (np.zeros((0, 2)), "at least one draw"),
        ({}, "at least one draw"),
        ({"a": np.zeros(3), "b": np.zeros(4)}, r"\(3,\), \(4,\)"),
        (np.array(["a", "b"]), "arrays of numbers"),
        (np.array([1j]), "arrays of numbers"),
        ([None, 1.0], "arrays of numbers"),
    ],
    ids=str,
)
def test_ill_posed_draws_are_refused(values: Any, message: str) -> None:
    """Draws need numbers, at least one of them, and equally many of every part."""
    with pytest.raises(ValueError, match=message):
        Draws(values)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0, 1.0], [0.0, 0.0, 0.0], np.ones((3, 1))], ids=str)
def test_impossible_weights_are_refused(weights: Any) -> None:
    """There must be one non-negative weight per draw, with a positive sum."""
    with pytest.raises(ValueError, match="weights must be 3"):
        Draws(np.zeros(3), weights=weights)


def test_iid_is_not_read_from_a_word() -> None:
    """A word for iid is refused, or understood; "no" must not pass for yes."""
    word: Any = "no"
    with pytest.raises((ValueError, TypeError), match="iid"):
        Draws(np.zeros(3), iid=word)


# What users hand over.


def test_scipy_discrete_laws_have_atoms() -> None:
    """The left limit of a discrete law excludes the atom, on and between integers, and its draws are integers."""
    law = as_distribution(stats.binom(5, 0.3), what="it")
    oracle = stats.binom(5, 0.3)
    assert law.atoms
    assert law.cdf([2, 2.5]) == pytest.approx(oracle.cdf([2, 2]))
    assert law.cdf_left([2, 2.5, 0]) == pytest.approx(oracle.cdf([1, 2, -1]))
    assert law.sf([2, 2.5]) == pytest.approx(oracle.sf([2, 2]))
    assert law.sample(9, np.random.default_rng(0)).dtype.kind == "i"
    assert not as_distribution(stats.expon(), what="it").atoms


def test_scipy_array_parameters_are_a_batch() -> None:
    """A frozen law with array parameters draws one column per entry, keyword or positional."""
    rng = np.random.default_rng(0)
    assert ScipyLaw(stats.norm([0.0, 1.0, 2.0])).sample(4, rng).shape == (4, 3)
    assert ScipyLaw(stats.gamma(2, scale=np.ones((5, 1)), loc=np.zeros(3))).sample(4, rng).shape == (4, 5, 3)
    assert ScipyLaw(stats.norm()).sample(4, rng).shape == (4,)


def test_frozen_multivariate_normal_becomes_a_gaussian() -> None:
    """It keeps mean and covariance, so its marginals are exact."""
    frozen = stats.multivariate_normal([1.0, 2.0], [[2.0, -1.0], [-1.0, 3.0]])
    gaussian = as_distribution(frozen, what="it")
    assert isinstance(gaussian, Gaussian)
    assert np.array_equal(gaussian.mean, frozen.mean)
    assert np.array_equal(gaussian.cov, frozen.cov)


@pytest.mark.parametrize(
    ("frozen", "shape"),
    [
        (stats.multivariate_t([0, 0], np.eye(2), df=5), (2,)),
        (stats.wishart(4, np.eye(2)), (2, 2)),
        (stats.dirichlet([1.0, 2.0, 3.0]), (3,)),
        (stats.multinomial(4, [0.5, 0.5]), (2,)),
    ],
    ids=["t", "wishart", "dirichlet", "multinomial"],
)
def test_other_frozen_laws_are_sampled(frozen: Any, shape: tuple[int, ...]) -> None:
    """A frozen law without a cdf is known by its draws, whose own axes are those of one parameter."""
    law = as_distribution(frozen, what="the belief", role="belief")
    assert isinstance(law, Sampler)
    assert law.marginal is None
    assert law.sample(6, np.random.default_rng(0)).shape == (6, *shape)


def test_arrays_and_dicts_of_arrays_are_draws() -> None:
    """Arrays, lists and dicts of arrays are draws; dicts with distributions are independent parts."""
    assert isinstance(as_distribution([1.0, 2.0], what="it"), Draws)
    assert isinstance(as_distribution({"a": np.zeros(3)}, what="it"), Draws)
    assert isinstance(as_distribution({"a": np.zeros(3), "b": Normal(0, 1)}, what="it"), Independent)
    assert as_distribution(ArrayLikeThing(), what="it").size == 3
    already = Normal(0, 1)
    assert as_distribution(already, what="it") is already
    own = LawOnly()
    assert as_distribution(own, what="it").inner is own


class ArrayLikeThing:
    """Stands for the arrays of other libraries."""

    shape = (3,)
    ndim = 1

    def __array__(self, dtype: Any = None, copy: Any = None) -> Floats:
        """Return three numbers."""
        return np.arange(3.0)


def test_belief_may_be_a_function_of_rng() -> None:
    """A function of rng is called once per draw; numbers are stacked, dicts too, other objects listed."""
    rng = np.random.default_rng(0)
    assert as_distribution(lambda rng: rng.normal(size=2), what="the belief", role="belief").sample(4, rng).shape == (
        4,
        2,
    )
    assert as_distribution(lambda rng: {"a": 1.0}, what="the belief", role="belief").sample(4, rng)["a"].shape == (4,)
    assert as_distribution(lambda rng: np.sqrt, what="the belief", role="belief").sample(2, rng) == [np.sqrt, np.sqrt]
    with pytest.raises(InvalidStudy, match="must take rng"):
        as_distribution(lambda: 1.0, what="the belief", role="belief")


@pytest.mark.parametrize(
    ("value", "arrived"),
    [
        (None, "None arrived"),
        (3.0, "the single number 3.0"),
        (np.float64(2), "the single number"),
        (np.array(2.0), "the single number"),
        (lambda rng: 1.0, "type function"),
        ("text", "type str"),
        (object(), "type object"),
    ],
)
def test_what_is_no_output_is_refused(value: Any, arrived: str) -> None:
    """The message says whose fault it is, what was expected and what arrived."""
    with pytest.raises(InvalidStudy, match=f"the procedure's output must be a distribution .*{arrived}"):
        as_distribution(value, what="the procedure's output")


@pytest.mark.parametrize("value", [{}, {"a": 1.0}], ids=str)
def test_dicts_that_are_no_distributions_are_refused(value: Any) -> None:
    """An empty dict, or a dict of numbers, is not a distribution."""
    with pytest.raises(ValueError, match=r"empty mapping|'a'"):
        as_distribution(value, what="it")


def test_mixtures_keep_their_scores_far_out() -> None:
    """Far in a tail a mixture's score is that of its widest-reaching component, not an infinity.

    Beyond every component the nearest one decides: P(X > x) = w (1 - Phi(x - m)) up to the others' share, which at
    x = 60 and means 0 and 10 is exp(-550) of it.
    """
    law = Mixture([Normal(0.0, 1.0), Normal(10.0, 1.0)], [0.7, 0.3]).marginal(identity)
    expected = -special.ndtri_exp(np.log(0.3) + special.log_ndtr(-50.0))
    assert law is not None
    np.testing.assert_allclose(law.zscore([60.0]), [expected], rtol=1e-12)
    inner = np.array([-2.0, 0.3, 4.0, 9.0, 12.0])
    np.testing.assert_allclose(special.ndtr(law.zscore(inner)), law.cdf(inner), rtol=1e-12)
    assert np.isfinite(law.zscore([-500.0, 500.0])).all()


def test_draws_of_each_output_come_from_its_own_uniforms() -> None:
    """Draw i of output j is the quantile at its own uniform, and is the same whatever outputs stand beside it."""
    mean, sd = np.arange(6.0).reshape(2, 3), np.full((2, 3), 2.0)
    u = np.random.default_rng(0).random((2, 12))
    drawn = Normal(mean, sd).sample_each(4, lambda k: u[:, :k])
    assert drawn.shape == (4, 2, 3)
    assert drawn[1, 1, 2] == pytest.approx(5 + 2 * special.ndtri(u[1, 5]), rel=1e-12)
    alone = Normal(mean[1:], sd[1:]).sample_each(4, lambda k: u[1:, :k])
    assert np.array_equal(drawn[:, 1:], alone)
    assert not np.array_equal(drawn[:, :1], alone)
    assert np.isfinite(Normal(mean, sd).sample_each(1, lambda k: np.zeros((2, k)))).all()
