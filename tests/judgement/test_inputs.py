"""Each mistake in what goes in is named first, and nothing that is legitimate is taken for one.

Where chance could produce a finding its rate is bounded by enumeration or in closed form; the mistakes of the first
part are the broken twins of the look-alikes of the second.
"""

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.typing import NDArray
from scipy import special, stats

import ringtrue as rt
from ringtrue.judgement import inputs
from ringtrue.procedures import DataAgnostic, Mirrored
from ringtrue.replicates.given import replicates_from_draws
from ringtrue.replicates.record import INPUT, LOOKED
from ringtrue.replicates.reducers.inputs import in_a_row, marks
from ringtrue.report import content

from ..builders import BAYES, BELIEF, SD, noisy, normal, posterior, refusal, says

Floats = NDArray[np.float64]
Given = dict[str, Any]
N, M = 300, 99
FIRST = "LOOK AT THE INPUTS FIRST: "


def sound(rng: np.random.Generator, n: int = N, m: int = M) -> tuple[Floats, Floats, Floats]:
    """Return truths, data, and draws of the exact posteriors."""
    theta = rng.normal(size=n)
    y = theta + rng.normal(size=n)
    return theta, y, y[:, None] / 2 + SD * rng.normal(size=(n, m))


def first_sentence(result: rt.Result) -> str:
    """Return what the sentence leads with."""
    return result.sentence.splitlines()[0]


# Mistakes in arrays.


def other_prior(rng: Any) -> Given:
    """Truths of N(0, 1) with the belief N(1, 2)."""
    theta, _, draws = sound(rng)
    return {"theta": theta, "draws": draws, "belief": rt.Normal(1, 2)}


def other_prior_without_a_law(rng: Any) -> Given:
    """The same with a belief that can only be drawn from."""
    return other_prior(rng) | {"belief": lambda rng: rng.normal(0, 3)}


def one_truth(rng: Any) -> Given:
    """The same truth everywhere."""
    return {"theta": np.full(N, 0.7), "draws": sound(rng)[2]}


def few_truths(rng: Any) -> Given:
    """Each truth and dataset with ten fits."""
    theta, y, _ = (np.repeat(part[: N // 10], 10, axis=0) for part in sound(rng))
    return {"theta": theta, "draws": y[:, None] / 2 + SD * rng.normal(size=(N, M))}


def few_datasets(rng: Any) -> Given:
    """Thirty datasets of twelve numbers, each used ten times."""
    theta, y, draws = sound(rng)
    return {"theta": theta, "draws": draws, "y": np.repeat(y[:30, None] + rng.normal(size=(30, 12)), 10, axis=0)}


def sign_error(rng: Any) -> Given:
    """Draws of minus theta."""
    theta, _, draws = sound(rng)
    return {"theta": theta, "draws": -draws}


def shuffled_rows(rng: Any) -> Given:
    """Draws in another order than truths."""
    theta, _, draws = sound(rng, 800)
    return {"theta": theta, "draws": rng.permutation(draws)}


def shared_normals(rng: Any) -> Floats:
    """Return normals, the largest of them in the middle: at an end it is left to sorted draws, once in a hundred."""
    found = rng.normal(size=M)
    return np.asarray(np.roll(found, M // 2 - int(np.argmax(found))))


def one_seed(rng: Any) -> Given:
    """Every output made of the same normals."""
    theta, y, _ = sound(rng)
    return {"theta": theta, "draws": y[:, None] / 2 + SD * shared_normals(rng)}


def one_seed_in_several_entries(rng: Any) -> Given:
    """The same for a vector."""
    theta = rng.normal(size=(N, 3))
    y = theta + rng.normal(size=(N, 3))
    normals = np.stack([shared_normals(rng) for _ in range(3)], axis=1)
    return {"theta": theta, "draws": y[:, None] / 2 + SD * normals}


def mean_and_sd(rng: Any) -> Given:
    """(mean, sd) for two draws."""
    theta, y, _ = sound(rng)
    return {"theta": theta, "draws": np.stack([y / 2, np.full(N, SD)], axis=1)}


def mean_and_sd_of_positive(rng: Any) -> Given:
    """The same where means are positive and the sd varies a little."""
    theta, y, _ = sound(rng)
    return {"theta": theta + 20, "draws": np.stack([y / 2 + 20, SD * rng.uniform(0.9, 1.1, size=N)], axis=1)}


def one_output(rng: Any) -> Given:
    """The same draws in all rows."""
    theta, _, draws = sound(rng)
    return {"theta": theta, "draws": np.tile(draws[0], (N, 1))}


def few_outputs(rng: Any) -> Given:
    """Thirty outputs, each in ten rows."""
    theta, _, draws = sound(rng)
    return {"theta": theta, "draws": np.repeat(draws[:30], 10, axis=0)}


def stuck(rng: Any) -> Given:
    """A quarter of the draws of each output equal."""
    theta, _, draws = sound(rng)
    draws[:, : M // 4] = draws[:, :1]
    return {"theta": theta, "draws": draws}


def stuck_and_shuffled(rng: Any) -> Given:
    """The same in any order."""
    given = stuck(rng)
    return given | {"draws": rng.permuted(given["draws"], axis=1)}


MISTAKES: list[tuple[Callable[[Any], Given], str]] = [
    (other_prior, "truths do not follow the belief: theta lies 0.[4-6]. of its sd below it"),
    (other_prior_without_a_law, r"truths do not follow the belief: .* spreads 0\.[2-4]\d times as wide"),
    (one_truth, r"truth of theta is the same in all 300 replicates \(0\.700\)"),
    (few_truths, "only 30 different truths of theta in 300 replicates"),
    (few_datasets, "only 30 different datasets in 300 replicates"),
    (sign_error, "outputs are worse than the belief .* look for a sign error"),
    (shuffled_rows, "outputs are worse than the belief .* rows in another order"),
    (one_seed, "same random numbers.*100 % of the replicates"),
    (one_seed_in_several_entries, "same random numbers"),
    (mean_and_sd, r"two draws, .* like a standard deviation.* ringtrue\.Normal\(mean, sd\)"),
    (mean_and_sd_of_positive, "like a standard deviation"),
    (one_output, "draws are the same in all 300 replicates"),
    (few_outputs, "draws are of only 30 kinds in all 300 replicates"),
    (stuck, "of the draws of theta 2[34] % equal the draw before"),
    (stuck_and_shuffled, "of the draws of theta [4-8].* % equal the draw before"),
]


@pytest.mark.parametrize(("mistake", "pattern"), MISTAKES, ids=lambda one: getattr(one, "__name__", ""))
def test_a_mistake_in_arrays_is_named_first(mistake: Callable[[Any], Given], pattern: str) -> None:
    """check_draws leads with the cause and speaks of the procedure afterwards."""
    result = rt.check_draws(**mistake(np.random.default_rng(1)))
    says(first_sentence(result), f"^{FIRST}.*{pattern}")
    assert len(result.suspicions) == 1
    verdict = result.sentence.splitlines()[1]
    assert verdict.startswith(("MISCALIBRATED", "INCONCLUSIVE"))
    assert not any(word in verdict for word in ("ultiply", "sd times", "tails", "of their sd", "-confident"))


# Mistakes in a study.

TABLE = np.random.default_rng(8).normal(size=(30, 12))
DRAWN = np.random.default_rng(9).normal(size=M)


def own_state(theta: Any, rng: Any) -> Any:
    """Return data whose noise is the same in every replicate, whatever rng is."""
    return theta + np.random.default_rng(0).normal(size=5)


def own_state_without_rng(theta: Any) -> Any:
    """Return the same."""
    return own_state(theta, None)


def five(mu0: Any, y: Any) -> Any:
    """Return the exact posterior for five numbers."""
    return rt.Normal(np.sum(y) / 6, 6**-0.5)


STUDIES: list[tuple[str, Any, Any, str]] = [
    ("takes rng", own_state, five, "the model takes rng and does not use it"),
    ("takes none", own_state_without_rng, five, "the noise in the data is the same in every replicate"),
    ("scaled", lambda theta: 3 * own_state(theta / 3, None), five, "noise"),
    ("curved", lambda theta: own_state(math.sinh(theta), None), five, "the data have no noise of their own"),
    ("one dataset", lambda theta: TABLE[0], five, "the dataset is the same in all 300 replicates"),
    ("few datasets", lambda theta, rng: TABLE[rng.integers(30)], five, "only 30 different datasets"),
    ("sign", noisy, lambda mu0, y: rt.Normal(-y / 2, SD), "worse than the belief .* look for a sign error"),
    ("mirrored", noisy, Mirrored(BAYES), "worse than the belief .* look for a sign error"),
    ("list", noisy, lambda mu0, y: [y / 2, SD], "like a standard deviation"),
    ("array", noisy, lambda mu0, y: np.array([y / 2, SD]), "like a standard deviation"),
    ("seed", noisy, lambda mu0, y: np.random.default_rng(3).normal(y / 2, SD, M), "same random numbers"),
    ("one output", noisy, lambda mu0, y: DRAWN, "draws are the same in all 300 replicates"),
]


@pytest.mark.parametrize(
    ("model", "procedure", "pattern"), [one[1:] for one in STUDIES], ids=[one[0] for one in STUDIES]
)
def test_a_mistake_in_a_study_is_named_first(model: Any, procedure: Any, pattern: str) -> None:
    """check leads with the cause."""
    result = rt.check(BELIEF, model, procedure, n=N)
    says(first_sentence(result), f"^{FIRST}.*{pattern}")
    assert len(result.suspicions) == 1


def test_a_constant_truth_of_a_study_is_refused() -> None:
    """A belief with one value is not simulated at all."""
    says(refusal(lambda: rt.check(lambda rng: 0.7, noisy, posterior, n=20)), "must vary", "0.7")


# Rows with names.


def test_rows_with_other_names_are_refused() -> None:
    """Rows are taken by position, so that an index in another order is a mistake; equal ones pass, and arrays do."""
    theta, _, draws = sound(np.random.default_rng(2), 40, 9)
    truths, table = pd.Series(theta, index=range(40)), pd.DataFrame(draws, index=range(40))
    other = table.sample(frac=1, random_state=1)
    message = refusal(lambda: rt.check_draws(truths, other))
    says(message, "same index in the same order", r"\[0, 1, 2\]", r"draws\.loc\[theta\.index\]")
    says(refusal(lambda: rt.check_draws({"a": truths}, {"a": other.to_numpy()}, y=truths[::-1])), "theta and y")
    right = rt.check_draws(truths, other.loc[truths.index])
    assert right.pvalue == rt.check_draws(truths, table).pvalue == rt.check_draws(theta, draws).pvalue
    seen = rt.check_draws(truths, table, y=pd.DataFrame({"a": theta, "b": 1.0}), f=lambda theta, y: theta * y[0])
    assert "exact" in seen.levels  # a data frame is cut into rows
    rt.check_draws(truths[::-1], draws)  # an array has no names to disagree with


def test_rows_of_xarray_with_other_names_are_refused() -> None:
    """The same for coordinates of the first dimension."""
    theta, _, draws = sound(np.random.default_rng(2), 40, 9)
    truths = xr.DataArray(theta, dims="i", coords={"i": range(40)})
    table = xr.DataArray(draws, dims=("i", "draw"), coords={"i": range(40)})
    says(refusal(lambda: rt.check_draws(truths, table[::-1])), "same index in the same order")
    assert rt.check_draws(truths, table).replicates.n == 40


# Look-alikes: nothing is wrong with these.


def coins(rng: Any, n: int, m: int, p: float = 0.5) -> Given:
    """A parameter that is 0 or 1, seen with noise."""
    theta = (rng.random(n) < p).astype(float)
    y = theta + rng.normal(size=n)
    odds = p / (1 - p) * np.exp(y - 0.5)
    return {"theta": theta, "draws": (rng.random((n, m)) < (odds / (1 + odds))[:, None]).astype(float)}


def rare_coins(rng: Any, n: int, m: int) -> Given:
    """One that is nearly always 0."""
    return coins(rng, n, m, 0.01)


def three_values(rng: Any, n: int, m: int) -> Given:
    """A parameter with three values that are not whole, and outputs that ignore the data."""
    values = np.array([0.1, 0.45, 0.93])
    return {"theta": rng.choice(values, n), "draws": rng.choice(values, (n, m))}


def counts(rng: Any, n: int, m: int) -> Given:
    """Counts, and draws that are counts."""
    return {"theta": rng.poisson(3, n).astype(float), "draws": rng.poisson(3, (n, m)).astype(float)}


def counts_by_normals(rng: Any, n: int, m: int) -> Given:
    """Counts, and normal approximations."""
    theta = rng.poisson(3, n).astype(float)
    return {"theta": theta, "draws": (theta + rng.normal(size=n))[:, None] + rng.normal(size=(n, m))}


def heavy_tails(rng: Any, n: int, m: int) -> Given:
    """Cauchy truths, data and draws."""
    theta = rng.standard_cauchy(n)
    return {"theta": theta, "draws": (theta + rng.standard_cauchy(n))[:, None] + rng.standard_cauchy((n, m))}


def of_the_belief(rng: Any, n: int, m: int) -> Given:
    """Outputs that ignore the data."""
    return {"theta": rng.normal(size=n), "draws": rng.normal(size=(n, m)), "belief": BELIEF}


def too_narrow_a_belief(rng: Any, n: int, m: int) -> Given:
    """Outputs that ignore the data and are wrong."""
    return {"theta": 2 * rng.normal(size=n), "draws": rng.normal(size=(n, m))}


def far_off(rng: Any, n: int, m: int) -> Given:
    """Outputs that are far worse than the belief and follow the truth."""
    theta, _, draws = sound(rng, n, m)
    return {"theta": theta, "draws": draws + 3}


def too_sure(rng: Any, n: int, m: int) -> Given:
    """Outputs a fifth as wide as they should be, and so worse than the belief."""
    theta, y, _ = sound(rng, n, m)
    return {"theta": theta, "draws": y[:, None] / 2 + SD / 5 * rng.normal(size=(n, m))}


def positive(rng: Any, n: int, m: int) -> Given:
    """Positive draws."""
    return {"theta": rng.exponential(size=n), "draws": rng.exponential(size=(n, m))}


def falling(rng: Any, n: int, m: int) -> Given:
    """Positive draws in falling order."""
    given = positive(rng, n, m)
    return given | {"draws": -np.sort(-given["draws"], axis=1)}


def rising(rng: Any, n: int, m: int) -> Given:
    """Sorted draws."""
    theta, _, draws = sound(rng, n, m)
    return {"theta": theta, "draws": np.sort(draws, axis=1)}


def quantiles(rng: Any, n: int, m: int) -> Given:
    """Quantiles of the output for draws."""
    theta, y, _ = sound(rng, n, m)
    return {"theta": theta, "draws": y[:, None] / 2 + SD * special.ndtri((np.arange(m) + 0.5) / m)}


def rounded_truths(rng: Any, n: int, m: int) -> Given:
    """Truths that were written with one decimal."""
    theta, _, draws = sound(rng, n, m)
    return {"theta": np.round(theta, 1), "draws": draws}


def rounded(rng: Any, n: int, m: int) -> Given:
    """Truths and draws with one decimal."""
    theta, _, draws = sound(rng, n, m)
    return {"theta": np.round(theta, 1), "draws": np.round(draws, 1)}


def rounded_draws(rng: Any, n: int, m: int) -> Given:
    """Draws with one decimal, and truths with all of theirs."""
    theta, _, draws = sound(rng, n, m)
    return {"theta": theta, "draws": np.round(draws, 1)}


def bootstrapped(rng: Any, n: int, m: int) -> Given:
    """Means of counts that were drawn again: some of a few values, where truths have a density."""
    theta = rng.gamma(4, 1, size=n)
    y = rng.poisson(theta[:, None], size=(n, 20))
    return {"theta": theta, "draws": np.stack([rng.choice(row, (m, 20)).mean(axis=1) for row in y]), "y": y}


def single_precision(rng: Any, n: int, m: int) -> Given:
    """Numbers of 32 bits."""
    theta, _, draws = sound(rng, n, m)
    return {"theta": theta.astype(np.float32), "draws": draws.astype(np.float32)}


def often_zero(rng: Any, n: int, m: int) -> Given:
    """A parameter that is 0 half of the time."""
    theta, _, draws = sound(rng, n, m)
    return {"theta": np.maximum(theta, 0), "draws": np.maximum(draws, 0)}


def biased_members(rng: Any, n: int, m: int) -> Given:
    """Forecasts whose members have biases of their own."""
    theta, _, draws = sound(rng, n, m)
    return {"theta": theta, "draws": draws + 0.5 * rng.normal(size=m)}


def named(rng: Any, n: int, m: int) -> Given:
    """A number and a coin, by name."""
    theta, _, draws = sound(rng, n, m)
    coin = coins(rng, n, m)
    return {"theta": {"a": theta, "b": coin["theta"]}, "draws": {"a": draws, "b": coin["draws"]}}


def known_by_draws(rng: Any, n: int, m: int) -> Given:
    """A belief of fifty draws, and truths among them."""
    fifty = rng.normal(size=50)
    theta = rng.choice(fifty, n)
    return {
        "theta": theta,
        "draws": theta[:, None] + rng.normal(size=(n, 1)) + rng.normal(size=(n, m)),
        "belief": fifty,
    }


def tabulated(rng: Any, n: int, m: int) -> Given:
    """Draws that were made once for each of six possible datasets."""
    theta = rng.beta(2, 2, size=n)
    y, hits = rng.binomial(5, theta), np.arange(6)[:, None]
    return {"theta": theta, "draws": rng.beta(2 + hits, 7 - hits, size=(6, m))[y], "y": y}


def weighted(rng: Any, n: int, m: int) -> Given:
    """Draws of the belief weighted by the likelihood, which are resampled."""
    n = min(n, 60)
    theta, y, _ = sound(rng, n, m)
    draws = rng.normal(size=(n, m))
    return {"theta": theta, "draws": draws, "weights": np.exp(-0.5 * np.square(draws - y[:, None]))}


def simplex(rng: Any, n: int, m: int) -> Given:
    """Three shares that add up to one."""
    return {"theta": rng.dirichlet(np.ones(3), n), "draws": rng.dirichlet(np.ones(3), (n, m))}


LOOK_ALIKES: list[Callable[[Any, int, int], Given]] = [
    lambda rng, n, m: dict(zip(("theta", "y", "draws"), sound(rng, n, m), strict=True)) | {"belief": BELIEF},
    coins, rare_coins, three_values, counts, counts_by_normals, heavy_tails, of_the_belief, too_narrow_a_belief,
    far_off, too_sure, positive, falling, rising, quantiles, rounded_truths, rounded, rounded_draws, bootstrapped,
    single_precision, often_zero,
    biased_members, named, known_by_draws, tabulated, weighted, simplex,
]  # fmt: skip
#: Replicates and draws: few of either, and many.
SIZES = ((2, 1), (3, 2), (5, 3), (5, 99), (60, 1), (250, 2), (100, 3), (250, 10), (250, 99))


@pytest.mark.parametrize("legitimate", LOOK_ALIKES, ids=lambda one: one.__name__)
def test_what_is_legitimate_raises_no_suspicion(legitimate: Callable[[Any, int, int], Given]) -> None:
    """Nothing is said of sound inputs of any kind, with few or many replicates and draws.

    False alarm: at most 1e-4 for each test of a belief, 1e-6 for each other look: 1e-3 over all of them.
    """
    rng = np.random.default_rng(5)
    for n, m in SIZES:
        try:
            record = replicates_from_draws(**legitimate(rng, n, m))
        except rt.errors.InvalidStudy:  # all truths and draws may be 0
            continue
        assert inputs.suspicions(record) == (), (n, m)


def metropolis(rng: Any) -> Given:
    """A chain that is declared, and that stays where it is in a third of its steps."""
    theta, y, draws = sound(rng, 150, 200)
    place = draws[:, 0]
    for j in range(200):
        new = place + 1.5 * rng.normal(size=150)
        accepted = np.log(rng.random(150)) < np.square(place - y / 2) - np.square(new - y / 2)
        draws[:, j] = place = np.where(accepted, new, place)
    return {"theta": theta, "draws": draws}


def test_a_declared_chain_may_stay_where_it_is() -> None:
    """Rejected proposals repeat a draw; the same chain called independent draws is named."""
    given = metropolis(np.random.default_rng(6))
    assert inputs.suspicions(replicates_from_draws(**given, iid=False)) == ()
    (one,) = inputs.suspicions(replicates_from_draws(**given))
    says(one.text, "equal the draw before", "a chain that stood still")


LEGITIMATE_STUDIES: dict[str, dict[str, Any]] = {
    "exact": {"procedure": BAYES, "model": noisy},
    "agnostic": {"procedure": DataAgnostic(), "model": noisy},
    "no data": {"procedure": DataAgnostic(), "model": lambda theta: 0.0},
    "no noise": {"procedure": DataAgnostic(), "model": lambda theta: theta},
    "declared truth": {"procedure": BAYES, "model": noisy, "truth": rt.Normal(2, 3)},
    "whole data": {
        "procedure": lambda mu0, y: rt.Normal(0, 1),
        "model": lambda theta, rng: rng.poisson(math.exp(-3 + theta)),
    },
    "rare events at a fixed design": {
        "procedure": lambda mu0, y: rt.Normal(0, 1),
        "model": lambda theta, rng: {"x": TABLE[0], "y": rng.random(12) < 0.001 * math.exp(theta)},
    },
    "Cauchy": {
        "belief": lambda rng: rng.standard_cauchy(),
        "procedure": lambda mu0, y, rng: y + rng.standard_cauchy(19),
        "model": lambda theta, rng: theta + rng.standard_cauchy(),
    },
}


@pytest.mark.parametrize("name", LEGITIMATE_STUDIES)
def test_a_legitimate_study_raises_no_suspicion(name: str) -> None:
    """Nothing is said of exact outputs, of those that ignore data, of data that hardly vary, of a declared truth."""
    settings = {"belief": BELIEF} | LEGITIMATE_STUDIES[name]
    belief, model, procedure = (settings.pop(part) for part in ("belief", "model", "procedure"))
    assert rt.check(belief, model, procedure, n=200, **settings).suspicions == ()


def test_a_function_for_a_parameter_raises_no_suspicion() -> None:
    """Of parameters that are no numbers only the test functions are looked at."""

    def belief(rng: Any) -> Any:
        slope = rng.normal()
        return lambda x: slope * x

    def model(theta: Any, rng: Any) -> Any:
        return theta(1.0) + rng.normal()

    study = rt.Study(belief, model, lambda mu0, y: Lines(y), f=[rt.Evaluate(1.0)], draws=19)
    assert rt.check(study, n=100).suspicions == ()


class Lines:
    """Lines through 0 whose slope has the exact posterior."""

    def __init__(self, y: float) -> None:
        self.y = y

    def marginal(self, f: Any) -> None:
        """No law is known."""

    def sample(self, m: int, rng: Any) -> Any:
        """Return m functions."""
        slopes = rng.normal(self.y / 2, SD, m)
        return [lambda x, slope=slope: slope * x for slope in slopes]


# Rates of false alarms.


def test_the_order_of_two_draws_is_a_fair_coin() -> None:
    """Over all orders of given pairs the second is called a standard deviation in at most the stated share.

    Exact: all 2^8 orders of eight pairs are tried, for pairs made to look alike and at large chances.
    """
    rng = np.random.default_rng(3)
    for chance in (0.02, 0.1, 0.3):
        for scale in (0.1, 1.0):
            pairs = np.stack([rng.normal(scale=3, size=8), 1 + scale * rng.random(8)])
            found = 0
            for order in itertools.product([False, True], repeat=8):
                first, second = np.where(order, pairs, pairs[::-1])
                found += inputs._like_mean_and_sd(first, second, chance)
            assert found / 2**8 <= chance
            assert found or chance < 0.1


@pytest.mark.parametrize("n", [8, 20, 100, 2000])
def test_shared_random_numbers_are_not_seen_by_chance(n: int) -> None:
    """The largest of M independent draws is at one place in so many replicates with chance 1e-6 at most.

    Exact: a union over the places, for the largest and the smallest; the bound is that of ten places.
    """
    least = next(c for c in range(math.ceil(n / 2), n + 1) if 20 * stats.binom.sf(c - 1, n, 0.1) <= inputs.RARE)
    for many in (10, 19, 50, 100):
        inside = many - 2 * max(many // 20, 1)
        assert 2 * inside * stats.binom.sf(least - 1, n, 1 / many) <= inputs.RARE


def test_equal_draws_are_not_seen_by_chance() -> None:
    """If values have probability, truths equal draws too: no hit and so many ties have chance 1e-6 together at most.

    In closed form for an atom beside a density and for equally likely values, whatever their number and that of draws:
    either hits are certain, or Chernoff's bound of the sum of ties is small.
    """
    for m in (2, 3, 9, 99):
        for p in np.geomspace(1e-4, 1, 60):
            # An atom of probability p, or 1 / p values: the chance that two draws are equal, and that the truth is one.
            for equal, hit in ((p**2, p * (1 - (1 - p) ** m)), (p, 1 - (1 - p) ** m)):
                mean = min(math.sqrt(equal), math.sqrt(m - 1) * equal)
                for n in np.geomspace(1, 2000, 60):
                    total = n * mean
                    chernoff = math.exp(-55 * math.log(55 / total) + 55 - total) if total < 55 else 1.0
                    assert min((1 - hit) ** n, chernoff) <= inputs.RARE


@pytest.mark.slow
@pytest.mark.parametrize("belief", [BELIEF, lambda rng: rng.normal()], ids=["law", "draws"])
def test_truths_of_the_belief_are_rarely_accused(belief: Any) -> None:
    """The p-value of truths being the belief's is at most 0.05 in 5 % of runs.

    False alarm 1e-6: a binomial bound on 200 runs. A belief that is one sd off is found in nearly all.
    """
    rng = np.random.default_rng(4)
    ps: list[float] = []
    off: list[float] = []
    for seed in range(200):
        theta, _, draws = sound(rng, 60, 3)
        for shift, found in ((0.0, ps), (1.0, off)):
            record = replicates_from_draws(theta + shift, draws, belief=belief, f=rt.identity, seed=seed)
            seen = inputs.Looked(record)
            p = inputs._belief_pvalue(seen, seen.columns[0])
            assert p is not None
            found.append(p)
    most = stats.binom.isf(1e-6, 200, 0.05)
    assert sum(p <= 0.05 for p in ps) <= most < sum(p <= 0.05 for p in off)


def test_lost_truths_may_have_been_anything() -> None:
    """Truths that were lost are not taken for the others' law: a belief that only they contradict is not accused."""
    rng = np.random.default_rng(5)
    theta, _, draws = sound(rng, 400, 19)
    theta[theta > 0.8] = np.nan
    kept = rt.check_draws(theta, draws, belief=BELIEF, on_failure="record")
    assert kept.suspicions == ()
    dropped = np.isfinite(theta)
    says(first_sentence(rt.check_draws(theta[dropped], draws[dropped], belief=BELIEF)), "do not follow the belief")


# The numbers from which something is a finding.


@pytest.mark.parametrize(("n", "named"), [(39, False), (40, True)])
def test_equal_outputs_of_few_draws_are_named_from_forty_on(n: int, named: bool) -> None:
    """Three draws that all replicates share, and that no truth equals, are no chance if there are forty of them."""
    theta = np.random.default_rng(0).normal(size=n)
    found = rt.check_draws(theta, np.tile([0.3, -0.4, 1.1], (n, 1)), iid=True).suspicions
    assert any(f"the draws are the same in all {n} replicates" in one for one in found) is named


@pytest.mark.parametrize(("values", "n", "named"), [(20, 200, True), (20, 199, False), (21, 210, False)])
def test_rounded_truths_may_repeat_unless_they_are_few(values: int, n: int, named: bool) -> None:
    """Truths on a lattice are named if there are at most 20 of them, each ten times on average."""
    theta, draws = np.arange(n) % values / 10 - 1, np.random.default_rng(0).normal(size=(n, 19))
    found = rt.check_draws(theta, draws, iid=True).suspicions
    assert any(f"only {values} different truths" in one for one in found) is named


@pytest.mark.parametrize(("n", "named"), [(9, False), (10, True)])
def test_one_dataset_is_named_from_ten_replicates_on(n: int, named: bool) -> None:
    """Fewer may be a first try."""
    theta, _, draws = sound(np.random.default_rng(0), n, 19)
    found = rt.check_draws(theta, draws, y=np.full((n, 3), 0.5)).suspicions
    assert any(f"the dataset is the same in all {n} replicates" in one for one in found) is named


def test_another_belief_is_named_with_its_distance_in_units_of_the_belief() -> None:
    """Truths of N(1, 0.5^2) lie a quarter of an sd below N(1.5, 2^2) and are a quarter as wide, by their quartiles."""
    theta = 1 + 0.5 * normal(400)
    draws = theta[:, None] + np.random.default_rng(0).normal(size=(400, 19))
    (found,) = rt.check_draws(theta, draws, belief=rt.Normal(1.5, 2.0)).suspicions
    says(found, r"theta lies 0\.25 of its sd below it and spreads 0\.25 times as wide")


def test_lost_truths_have_no_law_among_draws_of_the_belief() -> None:
    """The comparison of two samples does not know what was lost, so a belief without a law is not tested then."""
    theta, _, draws = sound(np.random.default_rng(5), 200, 19)
    ran = replicates_from_draws(theta, draws, belief=lambda rng: rng.normal(3, 1))
    lost = replicates_from_draws(
        np.append(np.nan, theta[1:]), draws, belief=lambda rng: rng.normal(3, 1), on_failure="record"
    )
    for one, tested in ((ran, True), (lost, False)):
        seen = inputs.Looked(one)
        assert (inputs._belief_pvalue(seen, seen.columns[0]) is not None) is tested


# What follows from it.


def test_no_certificate_is_given_while_inputs_are_in_doubt() -> None:
    """Replicates that were copied look as if there were twice as many; without the copies the certificate stands."""
    theta, _, draws = sound(np.random.default_rng(3), 3000, 99)
    once = rt.check_draws(theta, draws, f=rt.identity)
    assert (once.verdict, once.suspicions) == ("WITHIN_TOLERANCE", ())
    twice = rt.check_draws(np.tile(theta, 2), np.tile(draws, (2, 1)), f=rt.identity)
    assert twice.verdict == "INCONCLUSIVE"
    says(twice.sentence, "only 3000 different truths", "certifies nothing while the inputs are in doubt")


def test_suspicions_are_shown_wherever_the_result_is() -> None:
    """Text and JSON lead with them, and the page's advice has no factor for outputs of other rows."""
    result = rt.check_draws(**sign_error(np.random.default_rng(1)))
    assert str(result).startswith(FIRST)
    assert result.to_dict()["suspicions"] == list(result.suspicions)
    advice = content.advice(result)
    assert advice[0] == f"Look at the inputs first: {result.suspicions[0]}."
    assert not any("ultiply" in line for line in advice)


@pytest.mark.slow
def test_the_page_leads_with_suspicions(tmp_path: Path) -> None:
    """They stand above the verdict's own sentence, and in the twin for programs."""
    result = rt.check_draws(**sign_error(np.random.default_rng(1)))
    page = result.report(tmp_path / "page.html")
    text = page.read_text("utf-8")
    assert 0 < text.index(FIRST) < text.index("MISCALIBRATED (strong")
    assert json.loads(page.with_suffix(".json").read_text("utf-8"))["suspicions"] == list(result.suspicions)


# The marks.


def test_marks_tell_numbers_apart_and_do_not_depend_on_company() -> None:
    """A hundred thousand different rows have different marks; a row has the same alone; minus zero is zero."""
    small = np.stack(np.meshgrid(*[np.arange(-10.0, 10)] * 4), axis=-1).reshape(-1, 4) / 4
    found = marks(small)
    assert np.unique(found).size == len(small)
    assert (found != 0).all()
    assert all(marks(small[j : j + 1])[0] == found[j] for j in range(0, len(small), 9973))
    np.testing.assert_array_equal(marks(np.array([[0.0, 1.0]])), marks(np.array([[-0.0, 1.0]])))


def test_datasets_of_all_kinds_are_marked() -> None:
    """Numbers, lists, tuples and dicts of arrays are read; what is no number is left alone."""
    assert in_a_row((np.ones(2), [3, {"b": 5, "a": 4.0}])).tolist() == [1, 1, 3, 4, 5]  # type: ignore[union-attr]
    assert in_a_row(np.array(["a"])) is None
    assert in_a_row({"x": np.ones(2), "model": object()}) is None


def test_only_the_first_replicates_are_looked_at() -> None:
    """What is marked depends on the number of the replicate alone, so that a run can be extended."""
    study = rt.Study(BELIEF, noisy, posterior, batch=500)
    long, short = rt.run(study, n=2500), rt.run(study, n=700)
    data = long.arrays[f"{INPUT}data"]
    assert (data[:LOOKED] != 0).all()
    assert (data[LOOKED:] == 0).all()
    for name, array in short.arrays.items():
        np.testing.assert_array_equal(array, long.arrays[name][:700], err_msg=name)


def test_scalar_replicates_are_marked_like_batches() -> None:
    """The marks of a dataset do not depend on whether it came alone."""
    batch = rt.run(rt.Study(BELIEF, lambda theta: theta / 3, posterior, batch=50), n=50)
    theta = batch.truth[:, 0]
    given = replicates_from_draws(theta, np.tile([1.0, 2.0, 3.0], (50, 1)), y=list(theta / 3))
    np.testing.assert_array_equal(given.arrays[f"{INPUT}data"], batch.arrays[f"{INPUT}data"])
