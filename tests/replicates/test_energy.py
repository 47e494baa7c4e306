"""The energy score: closed forms of normal laws, every route to it, and the skill made of it."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue.procedures import Inflated, LinearGaussian
from ringtrue.replicates.block import SCORED, spread_out
from ringtrue.replicates.reducers.energy import EnergyScore, units
from ringtrue.statistics.effects.usefulness import energy_skill, skill
from ringtrue.streams import Streams
from ringtrue.values import Floats, entries
from tests.builders import noisy


def mean_length(d: int) -> float:
    """E |Z| for a standard normal vector."""
    return math.sqrt(2) * math.exp(special.gammaln((d + 1) / 2) - special.gammaln(d / 2))


def expected(output: float, error: float, d: int) -> float:
    """The mean energy score of N(m, output^2 I) if the truth is N(m, error^2 I)."""
    return mean_length(d) * (math.hypot(output, error) - output / math.sqrt(2))


def score_of(draws: Floats, truth: Floats) -> Floats:
    """Return the scores of draws in units of 1."""
    score = EnergyScore(truth, np.ones(truth.shape[1]))
    score.add(draws)
    return score.value()


def z_of(values: Floats, mean: float) -> float:
    """How many standard errors the mean of values is from what it should be."""
    return float((values.mean() - mean) / (values.std(ddof=1) / math.sqrt(values.size)))


#: A standard normal exceeds it with probability 1e-7; the means below are of 40,000 numbers.
RARE = 5.33


def test_one_entry_is_the_fair_crps() -> None:
    """In one dimension the score of two draws is mean |x - t| - |x - x'| / 2."""
    found = score_of(np.array([[[1.0], [5.0]], [[4.0], [5.0]]]), np.array([[2.0], [0.0]]))
    np.testing.assert_allclose(found, [1.5 - 1.5, 5.0], rtol=1e-15)


def test_two_draws_in_the_plane_by_hand() -> None:
    """Pythagoras, in units of the entries."""
    score = EnergyScore(np.array([[0.0, 0.0]]), np.array([1.0, 10.0]))
    score.add(np.array([[[3.0, 40.0]], [[0.0, 10.0]]]))
    assert score.value()[0] == pytest.approx((5 + 1) / 2 - math.hypot(3, 3) / 2, rel=1e-15)


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("output", [1.0, 0.5])
@pytest.mark.parametrize("draws", [2, 3, 30])
def test_the_mean_score_of_normal_laws_is_the_closed_form(d: int, output: float, draws: int) -> None:
    """However few the draws, the score is unbiased; counting a draw as its own pair is not, and is found out."""
    rng = np.random.default_rng(d)
    n = 40_000
    truth, drawn = rng.normal(size=(n, d)), output * rng.normal(size=(draws, n, d))
    found = score_of(drawn, truth)
    assert abs(z_of(found, expected(output, 1.0, d))) < RARE
    used = min(draws, SCORED)
    unfair = found + np.linalg.norm(drawn[0] - drawn[1], axis=-1) / (2 * used)
    assert abs(z_of(unfair, expected(output, 1.0, d))) > RARE


def test_without_a_pair_the_score_is_not_known() -> None:
    """One draw has a distance from the truth and none from another draw."""
    assert np.isnan(score_of(np.zeros((1, 3, 2)), np.zeros((3, 2)))).all()


def test_pairs_of_a_chain_are_half_of_it_apart() -> None:
    """A chain that hardly moves from draw to draw is scored like independent draws; neighbours would look sharp."""
    rng = np.random.default_rng(3)
    n, length, keep = 4000, 200, 0.9
    chain = np.empty((length, n, 2))
    chain[0] = rng.normal(size=(n, 2))
    for t in range(1, length):
        chain[t] = keep * chain[t - 1] + math.sqrt(1 - keep**2) * rng.normal(size=(n, 2))
    truth = rng.normal(size=(n, 2))
    assert abs(z_of(score_of(spread_out(chain), truth), expected(1.0, 1.0, 2))) < RARE
    assert abs(z_of(score_of(chain, truth), expected(1.0, 1.0, 2))) > RARE


def test_draws_are_spread_over_the_whole_sample() -> None:
    """At most twenty, an even number, none twice."""
    for m in range(1, 120):
        some = spread_out(np.arange(m))
        assert len(some) <= SCORED
        assert len(set(some.tolist())) == len(some)
        assert len(some) == 2 * (len(some) // 2)
        assert m < 2 or len(some) >= 2


def test_entries_are_in_the_order_of_names() -> None:
    """A parameter and its draws may name their parts in another order."""
    one = {"b": np.arange(4.0).reshape(2, 2), "a": np.array([7.0, 8.0])}
    other = dict(reversed(one.items()))
    for value in (one, other):
        found = entries(value, 1)
        assert found is not None
        assert found.tolist() == [[7.0, 0.0, 1.0], [8.0, 2.0, 3.0]]
    assert entries([object()], 1) is None
    assert entries({"a": np.zeros(2), "b": np.array(["x", "y"])}, 1) is None


def test_units_of_entries_that_hardly_vary() -> None:
    """An entry that is mostly one value has the unit of its mean deviation; one that never varies counts nothing."""
    rare = np.zeros((100, 2))
    rare[0, 0] = 50.0
    assert units(rare).tolist() == [0.5, math.inf]
    score = EnergyScore(np.array([[0.0, 3.0]]), units(rare))
    score.add(np.array([[[1.0, 9.0]], [[0.0, -9.0]]]))
    assert score.value().tolist() == [0.0]


# From a study to the skill.

EXACT = LinearGaussian(np.eye(3))
BELIEF = rt.Gaussian(np.zeros(3), np.eye(3))


def sampled(mu0: Any, y: Any, rng: np.random.Generator) -> Any:
    """Return draws of the exact posterior."""
    return y / 2 + math.sqrt(0.5) * rng.normal(size=(25, 3))


def through(output: Any) -> Any:
    """Return a procedure whose outputs can be sampled and have no exact laws."""

    class Sampler:
        marginal = None

        def __init__(self, law: Any) -> None:
            self.sample = law.sample

    return lambda mu0, y: Sampler(output(mu0, y))


ROUTES = {
    "batched laws": rt.Study(BELIEF, EXACT.simulate, EXACT, batch=1500),
    "single laws": rt.Study(BELIEF, noisy, lambda mu0, y: rt.Gaussian(y / 2, np.eye(3) / 2)),
    "batched samplers": rt.Study(BELIEF, EXACT.simulate, through(EXACT), draws=9, batch=1500),
    "single samplers": rt.Study(BELIEF, noisy, through(lambda mu0, y: rt.Gaussian(y / 2, np.eye(3) / 2)), draws=9),
    "draws": rt.Study(BELIEF, noisy, sampled),
}


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_every_route_has_the_skill_of_the_closed_form(route: str) -> None:
    """The exact posterior of variance 1/2 has a skill of 1 - 1/sqrt 2, whatever form its outputs come in."""
    ran = rt.run(ROUTES[route], n=1500)
    confidence = 1 - 1e-7  # the false-alarm rate of each case
    found = energy_skill(ran.energy, ran.belief_energy, confidence=confidence)
    assert found.low < 1 - 1 / math.sqrt(2) < found.high
    assert found.high - found.low < 0.35
    # The broken twin has the belief's scores for its own, those of other replicates.
    broken = energy_skill(np.roll(ran.belief_energy, 1), ran.belief_energy, confidence=confidence)
    assert broken.high < 1 - 1 / math.sqrt(2)


@pytest.mark.slow
def test_the_skill_of_an_output_that_is_too_narrow() -> None:
    """The closed form of variance 1/4 where 1/2 is right."""
    ran = rt.run(rt.Study(BELIEF, EXACT.simulate, Inflated(EXACT, 0.5), batch=20_000), n=20_000)
    found = energy_skill(ran.energy, ran.belief_energy, confidence=1 - 1e-7)
    right = 1 - expected(0.5, math.sqrt(0.5), 3) / expected(1.0, 1.0, 3)
    assert found.low < right < found.high < 1 - 1 / math.sqrt(2) + 0.01
    assert found.high - found.low < 0.05


@pytest.mark.slow
def test_arrays_of_draws_are_compared_with_their_truths() -> None:
    """Without a belief the truths of other replicates stand in for it; replicates with nan stay out of it."""
    rng = np.random.default_rng(4)
    y = math.sqrt(2) * rng.normal(size=(4000, 2))
    theta = y / 2 + math.sqrt(0.5) * rng.normal(size=y.shape)
    draws = y[:, None] / 2 + math.sqrt(0.5) * rng.normal(size=(4000, 15, 2))
    found = [rt.check_draws(theta, draws)]
    theta[5, 1] = np.nan
    found.append(rt.check_draws(theta, draws, on_failure="record"))
    named = {"b": theta[:, 0], "a": theta[:, 1]}, {"a": draws[..., 1], "b": draws[..., 0]}
    found.append(rt.check_draws(*named, on_failure="record"))
    for result in found:
        row = rt.measure(result, confidence=1 - 1e-7).row("energy skill")  # the false-alarm rate of each
        assert row.low < 1 - 1 / math.sqrt(2) < row.high
        assert row.high - row.low < 0.2
    assert [len(result.replicates.failures) for result in found] == [0, 1, 1]


def test_a_unit_of_measurement_changes_nothing() -> None:
    """Entries in millimetres and in light years have the scores they have in metres."""
    scale = np.array([1e3, 1e-16, 1.0])
    plain = rt.run(rt.Study(BELIEF, noisy, sampled), n=50)
    belief = rt.Gaussian(np.zeros(3), np.diag(scale**2))
    scaled = rt.run(
        rt.Study(
            belief,
            lambda theta, rng: noisy(theta / scale, rng) * scale,
            lambda mu0, y, rng: sampled(mu0, y / scale, rng) * scale,
        ),
        n=50,
    )
    np.testing.assert_allclose(scaled.energy, plain.energy, rtol=1e-9)
    np.testing.assert_allclose(scaled.belief_energy, plain.belief_energy, rtol=1e-9)


def test_a_procedure_that_returns_the_belief_has_no_skill() -> None:
    """Its interval contains 0, in the table of the result too; that of the posterior does not."""
    f = [rt.Coordinate(index=(0,))]
    agnostic = rt.check(BELIEF, noisy, lambda mu0, y: BELIEF, n=800, f=f, alpha=1e-6)
    bayes = rt.check(BELIEF, noisy, lambda mu0, y: rt.Gaussian(y / 2, np.eye(3) / 2), n=800, f=f, alpha=1e-6)
    rows = [next(row for row in one.measures if row.name == "energy skill") for one in (agnostic, bayes)]
    assert rows[0].low < 0 < rows[0].high
    assert rows[1].low > 0
    assert "energy skill" in bayes.details()


def test_one_number_has_no_energy_skill() -> None:
    """For a scalar parameter the score is the CRPS, which is reported already; objects have no distance."""
    ran = rt.run(rt.Study(rt.Normal(0, 1), noisy, lambda mu0, y: rt.Normal(y / 2, 0.7)), n=20)
    assert np.isnan(ran.energy).all()
    assert "energy skill" not in {row.name for row in rt.judge(ran).measures}


def test_skill_and_energy_skill_agree_in_one_dimension() -> None:
    """The two estimates of one quantity agree where both exist."""
    rng = np.random.default_rng(6)
    truth = rng.normal(size=30_000)
    centre = truth + rng.normal(size=truth.size)
    drawn = centre / 2 + math.sqrt(0.5) * rng.normal(size=(20, truth.size))
    rival = rng.normal(size=(2, truth.size))
    scores, beliefs = (score_of(one[..., None], truth[:, None]) for one in (drawn, rival))
    both = energy_skill(scores, beliefs), skill(truth, scores)
    assert both[0].estimate == pytest.approx(both[1].estimate, abs=0.03)


@pytest.mark.parametrize(
    ("energy", "belief"),
    [
        (np.full(10, np.nan), np.ones(10)),
        (np.ones(10), np.full(10, np.inf)),
        (np.ones(3), np.ones(3)),
        (np.ones(10), np.zeros(10)),
    ],
)
def test_what_is_not_known_is_said_to_be_unbounded(energy: Floats, belief: Floats) -> None:
    """Unknown scores, too few of them and a belief without spread have no skill, and no error."""
    found = energy_skill(energy, belief)
    assert math.isnan(found.estimate)
    assert (found.low, found.high) == (-math.inf, 1.0)


def test_the_energy_skill_survives_a_store(tmp_path: Any) -> None:
    """What is written comes back to the last bit."""
    study = ROUTES["draws"]
    rt.run(study, n=30, store=tmp_path / "run.db")
    read = rt.store.load(tmp_path / "run.db")
    np.testing.assert_array_equal(read.energy, rt.run(study, n=30).energy)
    np.testing.assert_array_equal(read.belief_energy, rt.run(study, n=30).belief_energy)


@pytest.mark.slow
def test_comparing_in_pairs_has_the_energy_score() -> None:
    """The exact posterior scores better than one that is too narrow by a factor of ten, for sure."""
    narrower = Inflated(EXACT, 0.01)
    found = rt.compare({"exact": EXACT, "narrow": narrower}, BELIEF, EXACT.simulate, n=2000, batch=2000)
    (gap,) = (row for row in found.differences if row.name == "energy score")
    assert gap.high < 0
    assert {row.of for row in found.rows if row.name == "energy score"} == {"exact", "narrow"}
    assert found.best == ("exact",)


def test_the_order_of_arrays_does_not_matter() -> None:
    """Sorted files and designs that repeat every truth have the skill that shuffled ones have."""
    rng = np.random.default_rng(8)
    base = np.repeat(rng.normal(size=(60, 2)), 10, axis=0)
    y = base + rng.normal(size=base.shape)
    draws = y[:, None] / 2 + math.sqrt(0.5) * rng.normal(size=(600, 9, 2))
    found = []
    for order in (np.arange(600), np.argsort(base[:, 0], kind="stable"), rng.permutation(600)):
        ran = rt.check_draws(base[order], draws[order]).replicates
        found.append(energy_skill(ran.energy, ran.belief_energy, confidence=1 - 1e-6))
    # Each interval holds the skill of the population with a false-alarm rate of 1e-6; so they meet.
    assert max(one.low for one in found) < min(one.high for one in found)
    assert min(one.low for one in found) > 0


@pytest.mark.slow
def test_a_truth_of_another_law_is_scored_against_the_belief() -> None:
    """Where truths are not draws of the belief they do not tell how wide it is: only the energy skill knows it."""
    truth = rt.Gaussian(np.full(3, 5.0), np.eye(3))
    study = rt.Study(BELIEF, EXACT.simulate, EXACT, batch=4000, truth=truth)
    result = rt.judge(rt.run(study, n=4000))
    names = {row.name for row in result.measures}
    assert "energy skill" in names
    assert not {"skill", "contraction"} & names
    assert {row.name for row in rt.measure(result).rows} & {"skill", "interval skill", "correlation"} == {"correlation"}
    # Output N(y / 2, I / 2) with y = theta + noise: the truth lies 5 / 2 above its centre, give or take.
    rng = np.random.default_rng(9)
    found = []
    sizes = units(BELIEF.sample(100, Streams(study.seed).generator("energy")))
    for spread, shift in ((math.sqrt(0.5), 2.5), (1.0, 5.0)):
        error = math.sqrt(0.5) if spread < 1 else 1.0
        x, other = spread * rng.normal(size=(2, 400_000, 3))
        apart = (
            np.linalg.norm(part / sizes, axis=1) for part in (x - shift - error * rng.normal(size=x.shape), x - other)
        )
        away, pair = apart
        found.append(away - pair / 2)
    for scores, right in zip((result.replicates.energy, result.replicates.belief_energy), found, strict=True):
        error = math.hypot(scores.std() / math.sqrt(scores.size), right.std() / math.sqrt(right.size))
        assert abs(scores.mean() - right.mean()) < RARE * error
