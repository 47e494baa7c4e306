"""Quantiles of every law: against scipy, closed forms, and the definition by the distribution function."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ringtrue.distributions import Beta, Gamma, Gaussian, Independent, Law, Mixture, Normal, as_distribution, stack
from ringtrue.distributions.frozen import ScipyLaw
from ringtrue.distributions.laws import BatchLaw, Folded, MixtureLaw
from ringtrue.functions import Coordinate, Distance, Linear, identity
from ringtrue.values import Floats

INNER = np.unique(np.concatenate([10.0 ** np.arange(-12, 0), np.linspace(0.1, 0.9, 17), 1 - 10.0 ** np.arange(-12, 0)]))
GAUSSIAN = Gaussian([1.0, 2.0], [[2.0, -1.0], [-1.0, 3.0]])

#: Laws without atoms and, where there is one, the law of scipy's that each of them is.
CONTINUOUS: dict[str, tuple[Any, Any]] = {
    "normal": (Normal(0.3, 2.0), stats.norm(0.3, 2.0)),
    "beta": (Beta(2.5, 0.7), stats.beta(2.5, 0.7)),
    "gamma": (Gamma(2.5, 0.7), stats.gamma(2.5, scale=1 / 0.7)),
    "scipy": (ScipyLaw(stats.t(3, loc=1.0)), stats.t(3, loc=1.0)),
    "gaussian coordinate": (GAUSSIAN.marginal(Coordinate(index=(1,))), stats.norm(2.0, 3**0.5)),
    "gaussian linear": (GAUSSIAN.marginal(Linear([1.0, -1.0])), stats.norm(-1.0, 7**0.5)),
    "independent": (Independent({"a": Gamma(2, 1)}).marginal(Coordinate("a")), stats.gamma(2)),
    "folded": (Normal(0.0, 2.0).marginal(Distance(0.0, 0.5)), stats.halfnorm(scale=4.0)),
    "folded gamma": (Gamma(2.5, 0.7).marginal(Distance(3.0, 2.0)), None),
    "mixture of one": (Mixture([Normal(0.3, 2.0)]).marginal(identity), stats.norm(0.3, 2.0)),
    "mixture of equals": (MixtureLaw([Gamma(2, 1), Gamma(2, 1)], np.array([0.3, 0.7])), stats.gamma(2)),
    "mixture": (Mixture([Normal(-2, 1), Gamma(3, 0.5)], [0.3, 0.7]).marginal(identity), None),
    "folded mixture": (Folded(MixtureLaw([Normal(-2, 1), Normal(3, 0.5)], np.array([0.3, 0.7])), 0.5, 2.0), None),
}
#: Laws with atoms, and the places of their atoms.
DISCRETE: dict[str, tuple[Any, Floats]] = {
    "poisson": (ScipyLaw(stats.poisson(3.3)), np.arange(40.0)),
    "binomial": (ScipyLaw(stats.binom(10, 0.3)), np.arange(11.0)),
    "folded poisson": (as_distribution(stats.poisson(3.3), what="it").marginal(Distance(3.0, 1.0)), np.arange(40.0)),
    "mixture": (
        MixtureLaw([ScipyLaw(stats.poisson(2)), ScipyLaw(stats.poisson(9))], np.array([0.3, 0.7])),
        np.arange(60.0),
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_distribution_function_takes_a_quantile_back(name: str) -> None:
    """P(X <= q(p)) = p and P(X > q(p)) = 1 - p, from either end of (0, 1), as closely as there are numbers x."""
    law, _ = CONTINUOUS[name]
    x = law.ppf(INNER)
    low, high = x - 4 * np.spacing(np.abs(x)), x + 4 * np.spacing(np.abs(x))
    # 1 - p is exact, but where p is close to 1 its neighbours are 1.1e-16 apart.
    assert np.all(law.cdf(low) <= INNER * (1 + 1e-9))
    assert np.all(law.cdf(high) >= INNER * (1 - 1e-9))
    assert np.all(law.sf(low) >= (1 - INNER) * (1 - 1e-9) - 3e-16)
    assert np.all(law.sf(high) <= (1 - INNER) * (1 + 1e-9) + 3e-16)
    assert np.all(np.diff(x) > 0)


@pytest.mark.parametrize("name", [name for name, (_, oracle) in CONTINUOUS.items() if oracle is not None])
def test_quantiles_are_scipys(name: str) -> None:
    """Where scipy has the law, its quantiles are the same."""
    law, oracle = CONTINUOUS[name]
    # p is known to half a unit in its last place, and so is 1 - p: at 1e-12 from 1 that is 1e-4 of the tail.
    inner = INNER[(INNER > 1e-10) & (INNER < 1 - 1e-6)]
    assert law.ppf(inner) == pytest.approx(oracle.ppf(inner), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_certainty_and_impossibility_have_quantiles(name: str) -> None:
    """At p = 0 and p = 1 the quantiles are numbers or infinities outside of which there is nothing."""
    law, _ = CONTINUOUS[name]
    low, high = law.ppf([0.0, 1.0])
    assert not np.isnan([low, high]).any()
    assert law.cdf(low) == 0
    assert law.sf(high) == 0
    assert low <= law.ppf(INNER[0])
    assert high >= law.ppf(INNER[-1])


@pytest.mark.parametrize("name", ["normal", "gaussian coordinate", "gaussian linear"])
def test_the_ends_of_an_unbounded_law_are_infinite(name: str) -> None:
    """A law of closed form has the ends of its support for quantiles of 0 and 1."""
    assert CONTINUOUS[name][0].ppf([0.0, 1.0]).tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize("name", DISCRETE)
def test_a_quantile_is_the_first_place_that_reaches_p(name: str) -> None:
    """With atoms, q(p) is the smallest atom x with P(X <= x) >= p."""
    law, places = DISCRETE[name]
    assert law.atoms
    p = np.linspace(0.001, 0.999, 333)
    cdf = law.cdf(places)
    expected = places[np.searchsorted(cdf, p)]
    # A folded law gives way to rounding next to its atoms, by a part in 10^12 of their distance from the centre.
    assert law.ppf(p) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", ["poisson", "binomial", "mixture"])
def test_between_two_levels_the_quantile_is_one_atom(name: str) -> None:
    """A p just above the probability up to an atom belongs to the next, one just below it to the atom."""
    law, places = DISCRETE[name]
    inside = places[(law.cdf(places) > 1e-6) & (law.sf(places) > 1e-6)]
    assert law.ppf(law.cdf(inside) - 1e-9) == pytest.approx(inside)
    assert law.ppf(law.cdf(inside) + 1e-9) == pytest.approx(inside + 1)


def test_the_quantile_of_an_atom_in_a_density_stays_at_it() -> None:
    """A mixture of an atom at 0 and a normal has 0 for all quantiles between P(X < 0) and P(X <= 0)."""
    law = MixtureLaw([ScipyLaw(stats.randint(0, 1)), Normal(0, 1)], np.array([0.4, 0.6]))
    assert law.ppf([0.3 + 1e-9, 0.5, 0.7 - 1e-9]).tolist() == [0.0, 0.0, 0.0]
    outside = law.ppf([0.3 * 0.5, 1 - 0.3 * 0.5])
    assert outside == pytest.approx(stats.norm.ppf([0.25, 0.75]), rel=1e-9)


@pytest.mark.parametrize(
    "outputs",
    [
        [Normal(m, 1.0 + m) for m in range(3)],
        [Mixture([Normal(m, 1), Normal(m + 1, 2)], [0.2, 0.8]) for m in range(3)],
        [Normal(0, 1), Gamma(2, 1), Beta(1, 1)],
        [as_distribution(stats.t(df), what="it") for df in (1, 3, 9)],
        [Mixture([Normal(m, 1), stats.t(3, loc=m)]) for m in range(3)],
    ],
    ids=["normal", "mixture", "mixed", "scipy", "mixture of what does not stack"],
)
@pytest.mark.parametrize("f", [identity, Distance(0.5, 2.0)], ids=lambda f: f.name)
def test_quantiles_of_a_batch_are_one_by_one(outputs: list[Any], f: Any) -> None:
    """A batch gives one quantile per replicate, that of the replicate alone."""
    law = stack(outputs).marginal(f)
    alone = [output.marginal(f) for output in outputs]
    for p in (0.01, 0.5, 0.9):
        assert law.ppf(p) == pytest.approx([float(one.ppf(p)) for one in alone], rel=1e-9, abs=1e-300)


def test_several_quantiles_of_a_batch() -> None:
    """Quantiles come first and replicates last, from laws side by side as from one object."""
    p = np.array([[0.1], [0.5], [0.9]])
    together, apart = Normal([0.0, 5.0], [1.0, 2.0]), BatchLaw((Normal(0.0, 1.0), Normal(5.0, 2.0)))
    assert together.ppf(p).shape == (3, 2)
    assert apart.ppf(p[:, 0]) == pytest.approx(together.ppf(p), rel=1e-15)


class Triangle(Law):
    """A law of a user's own with what it must have and no more: P(X <= x) = x^2 on (0, 1)."""

    def cdf(self, x: Any) -> Floats:
        """Return P(X <= x)."""
        return np.asarray(np.square(np.clip(x, 0, 1)))

    def sf(self, x: Any) -> Floats:
        """Return P(X > x)."""
        inside = np.clip(x, 0, 1)
        return np.asarray((1 - inside) * (1 + inside))

    def sample(self, m: int, rng: np.random.Generator) -> Floats:
        """Return draws."""
        return np.sqrt(rng.random(m))


@given(st.floats(0, 1))
def test_a_law_that_has_no_quantiles_of_its_own_gets_them(p: float) -> None:
    """The search ends at the closed form, to the last bits, wherever p is."""
    x = Triangle().ppf(p)
    if p > 0:
        assert x == pytest.approx(np.sqrt(p), rel=4e-16)
    else:
        assert Triangle().cdf(x) == 0


def test_what_is_not_a_number_has_no_quantile() -> None:
    """Neither a p that is nan nor a law that was lost has a quantile; its neighbours in a batch have theirs."""
    batch = MixtureLaw([Normal([0.0, np.nan], 1.0), Normal([0.0, 0.0], 1.0)], np.array([0.5, 0.5]))
    for law in (batch, Normal([0.0, np.nan], 1.0)):
        assert np.isnan(law.ppf(0.9)).tolist() == [False, True]
    assert np.isnan(Triangle().ppf(np.nan))
    assert np.isnan(Normal(0, 1).ppf(np.nan))


def test_central_intervals_are_pairs_of_quantiles() -> None:
    """A law that knows its quantiles has central intervals; one that would have to search says so."""
    for name in ("normal", "beta", "gamma", "scipy", "gaussian linear"):
        law, oracle = CONTINUOUS[name]
        low, high = law.central(0.8)
        assert (low, high) == pytest.approx((oracle.ppf(0.1), oracle.ppf(0.9)), rel=1e-9)
    assert Triangle().central(0.8) is None
    assert CONTINUOUS["mixture"][0].central(0.8) is None
