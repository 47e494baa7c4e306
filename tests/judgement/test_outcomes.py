"""Test functions with few values: tested by their probabilities, with sizes, named, and certified."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import ringtrue as rt
from ringtrue.judgement.column import strong_columns
from ringtrue.judgement.outcomes import outcomes_of
from ringtrue.replicates.record import SHARES
from ringtrue.values import Floats


def switches(n: int, factor: float = 1.0, seed: int = 1, draws: int = 99) -> tuple[Any, Any]:
    """Return truths and draws that are true or false; outputs multiply the log odds by a factor."""
    rng = np.random.default_rng(seed)
    odds = 1.5 * rng.normal(size=(n, 1))
    return rng.random(n) < expit(odds[:, 0]), rng.random((n, draws)) < expit(factor * odds)


def study(factor: float) -> tuple[Any, Any, Any]:
    """Return belief, model and procedure of a switch that is seen with noise; its exact log odds are 1.32 y."""
    return (
        stats.bernoulli(0.5),
        lambda theta, rng: rng.normal(0.66 * (2 * theta - 1)),
        lambda mu0, y: stats.bernoulli(expit(factor * 1.32 * y)),
    )


def test_strong_calibration_of_two_values_is_that_of_their_probability() -> None:
    """The density of u is 1 everywhere if truths are 1 with the reported probability, and else somewhere it is not."""
    rng = np.random.default_rng(1)
    p = np.sort(rng.uniform(0.05, 0.95, size=6))
    x = np.linspace(0.001, 0.999, 500)[:, None]

    def density(c: Floats) -> Floats:
        return np.asarray(np.where(x < 1 - p, (1 - c) / (1 - p), c / p).mean(axis=1))

    assert np.allclose(density(p), 1)
    for _ in range(50):
        c = rng.uniform(size=6)
        # Between two neighbouring 1 - p the density jumps by the error there: it cannot cancel.
        assert np.abs(density(c) - 1).max() > 0.02 * np.abs(c - p).max()


def test_switches_are_judged_by_their_probabilities() -> None:
    """Log odds times 2 are called too sure by draws and by exact laws; right ones are certified when there are many."""
    # At n = 300 power is beyond .9999: at n = 62 it is .8.
    drawn = rt.check_draws(*switches(300, 2.0))
    exact = rt.check(*study(2.0), n=300, batch=300)
    for result, route in ((drawn, "shares of 99"), (exact, "exact probabilities")):
        assert result.verdict is rt.Verdict.MISCALIBRATED
        assert "theta is too sure: divide log odds by" in result.sentence
        assert result.tests[0].route == route
        assert result["theta"].measure("log odds slope").high < 1
    right = rt.check_draws(*switches(12_000, draws=60), alpha=0.01)
    assert right.assert_within_tolerance()["theta"].measure("calibration error").certified
    assert "groups of similar probabilities of theta are off by at most" in right.sentence
    few = rt.check_draws(*switches(200), alpha=1e-6)
    assert few.verdict is rt.Verdict.INCONCLUSIVE
    assert "more replicates would certify probabilities within 2.5 points" in few.sentence


@pytest.mark.slow
def test_power_of_check() -> None:
    """Log odds times 1.5 are found by `check` with n = 230 in three of four runs, and right ones are not."""
    counts = [sum(_convicts(factor, seed) for seed in range(40)) for factor in (1.5, 1.0)]
    # With power .75 fewer than 16 of 40 with probability 2e-6 (measured .81); at level .05 more than 13 with 2e-8.
    assert counts[0] >= 16
    assert counts[1] <= 13


def _convicts(factor: float, seed: int) -> bool:
    result = rt.check_draws(*switches(230, factor, seed), iid=True)
    return result.verdict is rt.Verdict.MISCALIBRATED and (factor == 1 or "too sure: " in result.sentence)


def test_draws_have_one_answer_and_ties_are_not_broken() -> None:
    """The seed changes nothing that is said of given draws."""
    theta, draws = switches(150, 1.3)
    assert len({rt.check_draws(theta, draws, seed=seed).sentence for seed in range(3)}) == 1


def test_indicators_ask_about_events() -> None:
    """An indicator of a number on the continuum is judged by its probability; what is no indicator is refused."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=400)
    theta, draws = y + rng.normal(size=400), y[:, None] + 0.4 * rng.normal(size=(400, 60))
    f = {"positive": rt.Indicator(lambda t: t > 0), "theta": lambda t: t}
    result = rt.check_draws(theta, draws, f=f)
    row = next(row for row in result.tests if row.f == "positive")
    assert (row.kind, row.route) == ("indicator", "shares of 60")
    assert result["positive"].measure("log odds slope").high < 1
    assert rt.Indicator(np.isfinite).name == "isfinite"
    with pytest.raises(rt.errors.RingtrueError, match="must return true or false"):
        rt.check_draws(theta, draws, f=rt.Indicator(lambda t: 2.0, "two"))


def test_labels_are_judged_one_by_one() -> None:
    """Of four labels with sharpened probabilities one is named; of right ones none is."""
    rng = np.random.default_rng(6)
    p = rng.dirichlet([1, 1, 1, 1], size=500)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)

    def drawn(q: Floats, many: int) -> Any:
        return (rng.random((500, many, 1)) > np.cumsum(q, axis=1)[:, None]).sum(axis=2)

    theta = drawn(p, 1)[:, 0]
    wrong, right = rt.check_draws(theta, drawn(sharp, 99)), rt.check_draws(theta, drawn(p, 99), alpha=1e-6)
    assert wrong.verdict is rt.Verdict.MISCALIBRATED
    assert wrong.tests[0].method == "probabilities of 4 values, resampled"
    assert "theta = " in wrong.sentence
    assert "too sure" in wrong.sentence
    assert right.verdict is rt.Verdict.INCONCLUSIVE
    assert len(outcomes_of(strong_columns(right.replicates)[0])) == 4


def test_exact_laws_keep_their_tails_and_contradictions_are_named() -> None:
    """A probability of 1e-20 is not 0; one of 0 with the outcome on the other side names the replicate."""

    def result(p: Floats, t: Floats) -> rt.Result:
        place = iter(range(len(t)))
        order = {"k": 0}

        def truth(rng: Any) -> float:
            order["k"] = next(place, 0)
            return float(t[order["k"]])

        return rt.check(
            stats.bernoulli(0.5), lambda theta, rng: order["k"], lambda mu0, y: stats.bernoulli(p[y]), n=len(t),
            truth=truth, reproducible=False,
        )  # fmt: skip

    t = np.array([0.0, 1.0] * 20)
    p = np.where(t == 1, 0.7, 0.3)
    small = result(np.where(np.arange(40) == 5, 1e-20, p), t)
    column = outcomes_of(strong_columns(small.replicates)[0])
    assert column[0].probability[5] == pytest.approx(1e-20)
    assert not column[0].impossible
    never = result(np.where(np.arange(40) == 5, 0.0, p), t)
    assert never.verdict is rt.Verdict.MISCALIBRATED
    assert "1 outcome had been given the probability 0, and came (replicate 5)" in never.sentence


def test_losses_groups_and_unequal_draws() -> None:
    """Losses are bounded, groups count once, and every replicate may have its own number of draws."""
    theta, draws = switches(300)
    lost = theta.astype(float)
    lost[[3, 8]] = np.nan
    result = rt.check_draws(lost, draws.astype(float), on_failure="record", alpha=1e-6)
    assert "worst case of 2 lost" in result.tests[0].method
    whole = rt.check_draws(theta, draws, alpha=1e-6)
    high = [one["theta"].measure("calibration error").high for one in (result, whole)]
    assert high[0] > high[1]
    grouped = rt.check_draws(theta, draws, groups=np.arange(300) // 3, alpha=1e-6)
    assert grouped["theta"].measure("calibration error").high > high[1]
    uneven = rt.check_draws(theta, [row[: 20 + i % 7] for i, row in enumerate(draws)], iid=True, alpha=1e-6)
    assert uneven.verdict is rt.Verdict.INCONCLUSIVE
    assert uneven.tests[0].route == "shares of 20-26"


def test_other_discrete_functions_are_judged_as_before() -> None:
    """Counts with many values have no outcomes, nor have two values that are no labels, nor chains."""
    rng = np.random.default_rng(7)
    mean = rng.gamma(9, size=(200, 1))
    counts = rt.check_draws(rng.poisson(mean[:, 0]) * 1.0, rng.poisson(mean, size=(200, 60)) * 1.0, f=rt.identity)
    theta, draws = switches(200)
    halves = rt.check_draws(theta / 2, draws / 2, f=rt.identity)
    chains = rt.check_draws(theta * 1.0, draws[:, :96] * 1.0, f=rt.identity, chains=4)
    for result in (counts, halves, chains):
        assert not outcomes_of(strong_columns(result.replicates)[0])


@pytest.mark.process
def test_shares_survive_workers_and_stores(tmp_path: Path) -> None:
    """What is kept of shares is the same bits from one process, from two, and from a store that was gone on with."""

    def procedure(mu0: Any, y: Any, rng: Any) -> Any:
        return rng.random(30) < expit(1.32 * y)

    asked = rt.Study(stats.bernoulli(0.5), study(1.0)[1], procedure, f=rt.identity)
    alone = rt.run(asked, n=60).arrays[f"{SHARES}theta"]
    assert (alone[:, -1] == 30).all()
    assert np.array_equal(rt.run(asked, n=60, workers=2).arrays[f"{SHARES}theta"], alone)
    rt.run(asked, n=25, store=tmp_path / "run.db")
    assert np.array_equal(rt.run(asked, n=60, store=tmp_path / "run.db").arrays[f"{SHARES}theta"], alone)
