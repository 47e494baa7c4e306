"""Markov chains from arrays and procedures to a verdict: level, losses, stuck and disagreeing chains, stores, notes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.errors import ReplicateFailed
from ringtrue.execution.store import recompute
from ringtrue.judgement.chains import mixing, trouble
from ringtrue.judgement.column import columns_of
from ringtrue.replicates.record import join
from ringtrue.statistics import chains as statistics
from tests.builders import grid, normal, refusal, replicates, says
from tests.replicates.test_chains import ar1

ALPHA = 1e-6


def chains(n: int, shape: tuple[int, int], rho: float, *, spread: float = 1.0, seed: int = 0) -> tuple[Any, Any]:
    """Return truths of N(y, spread^2) and stationary chains of N(y, 1), (n, chains, draws)."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n)
    return y + spread * rng.standard_normal(n), y[:, None, None] + ar1(rho, (n, *shape), rng)


def check(theta: Any, draws: Any, **settings: Any) -> rt.Result:
    """Judge chains by one test function."""
    return rt.check_draws(theta, draws, **{"chains": draws.shape[1], "f": rt.identity} | settings)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [-0.9, 0.9])
def test_swinging_and_slow_chains_are_not_called_miscalibrated(rho: float) -> None:
    """At n = 2000 chains of any sign of autocorrelation pass (false alarm 1e-6).

    Broken twin: every second draw, which of chains that swing is always the same phase, taken for independent.
    """
    theta, draws = chains(2000, (2, 50), rho)
    assert check(theta, draws, alpha=ALPHA).verdict is not rt.Verdict.MISCALIBRATED
    thinned = draws[:, :, ::2].reshape(2000, -1)
    assert rt.check_draws(theta, thinned, iid=True, f=rt.identity, alpha=ALPHA).verdict is rt.Verdict.MISCALIBRATED


@pytest.mark.slow
def test_an_error_of_spread_is_found_sized_and_named() -> None:
    """Half the variance is found, with the factor that mends it; a small error is certified to be small."""
    wrong = check(*chains(1000, (4, 50), 0.8, spread=2**0.5))
    assert wrong.verdict is rt.Verdict.MISCALIBRATED
    says(wrong.sentence, "over-confident", "multiply")
    assert wrong["theta"].spread.low < 2**0.5 < wrong["theta"].spread.high
    assert wrong.tests[0].route == "4 chains of 50"
    assert check(*chains(4000, (4, 50), 0.5)).verdict is rt.Verdict.WITHIN_TOLERANCE


def test_agreement_is_shown() -> None:
    """R-hat says which it is, its range and median, and how often it is large; so does the effective size."""
    text = str(check(*chains(100, (4, 50), 0.9)))
    says(
        text,
        r"R-hat .*rank-normalised, split",
        r"median [\d.]+; above 1\.05 in \d+ of 100 replicates",
        "effective size",
    )


def test_few_replicates_randomise_labels() -> None:
    """Below 60 replicates the exact version is used, and the same seed gives the same p-value."""
    theta, draws = chains(30, (3, 40), 0.9, spread=3.0)
    one, other = check(theta, draws), check(theta, draws)
    assert "labels randomised" in one.tests[0].method
    assert one.pvalue == other.pvalue < 0.05


def test_chains_that_never_move_are_an_outcome() -> None:
    """They are counted and said, not refused, and nothing is certified by them."""
    theta, draws = chains(100, (2, 20), 0.0)
    draws[:] = draws[:, :, :1]
    result = check(theta, draws)
    assert result.verdict is rt.Verdict.INCONCLUSIVE
    says(
        result.sentence,
        "100 of 100 fits did not mix .theta in 100; in all of them a chain never moves",
        "too few draws",
    )
    says(str(result), "R-hat .* inf to inf")


def test_a_single_chain_that_never_moves_is_an_outcome() -> None:
    """200 equal draws are not 200 independent draws."""
    theta = np.random.default_rng(0).standard_normal(80)
    result = rt.check_draws(theta, np.zeros((80, 200)) + 0.1 * np.sign(theta)[:, None], iid=False, f=rt.identity)
    assert result.pvalue == 1.0
    says(result.sentence, "INCONCLUSIVE", "never moves")


def test_chains_that_disagree_are_an_outcome() -> None:
    """Chains around centres of their own are said not to have mixed, and tell no size."""
    theta, draws = chains(200, (4, 50), 0.0)
    centres = np.random.default_rng(1).standard_normal((200, 4, 1))
    result = check(theta, 0.01 * draws + centres)
    says(result.sentence, r"200 of 200 fits did not mix \(theta in 200\): run them longer")
    assert np.isinf(result["theta"].spread.high)


@pytest.mark.parametrize(
    ("rhat", "size", "length", "mixed"),
    [
        (1.2, 10.0, 50, True),
        (1.21, 10.0, 50, False),
        (1.2, 9.99, 50, False),
        (np.inf, np.nan, 50, False),
        (np.nan, np.nan, 50, True),
        (3.0, 2.0, 49, True),
    ],
)
def test_which_fits_did_not_mix(rhat: float, size: float, length: int, mixed: bool) -> None:
    """R-hat above 1.2, or fewer than 5 draws per chain; of chains of fewer than 50 draws it is not said."""
    there = np.arange(10) == 3
    known: dict[str, Any] = {"chains/rhat": np.where(there, rhat, 1.0), "chains/size": np.where(there, size, 99.0)}
    known |= {"chains/length": length, "chains/stuck": 0.0}
    ran = replicates(grid(10), truth=normal(10), **known)
    ran.arrays["chain_count"] = np.full(10, 2)  # type: ignore[index]
    found = mixing(ran)
    np.testing.assert_array_equal(found.fits, there & (not mixed))
    assert found.parameters == ({} if mixed else {"f0": 1})
    assert ("1 of 10 fits did not mix (f0 in 1)" in trouble(ran)) is not mixed


def test_lost_replicates_are_never_excused() -> None:
    """With losses the p-value is that of the worst case: larger, and 1 where there are too few replicates."""
    theta, draws = chains(300, (2, 50), 0.5, spread=2.0)
    whole = check(theta, draws).pvalue
    draws[:3] = np.nan
    lost = check(theta, draws, on_failure="record")
    assert whole < lost.pvalue < 0.05
    says(lost.tests[0].method, "worst case of 3 lost")
    assert check(theta[:50], draws[:50], on_failure="record").pvalue == 1.0
    draws[:60] = np.nan
    assert check(theta, draws, on_failure="record").pvalue == 1.0


def test_a_procedure_without_a_word_is_refused_when_judged() -> None:
    """A procedure that returns a chain as an array is not judged as if its draws were independent; running it works."""
    study = rt.Study(rt.Normal(0, 1), lambda theta, rng: theta + rng.normal(), _chain)
    ran = rt.run(study, n=100)
    says(refusal(lambda: rt.judge(ran)), "neighbouring draws of 'theta'", "chains=", "iid=True")
    said = rt.Study(rt.Normal(0, 1), lambda theta, rng: theta + rng.normal(), _chains)
    result = rt.check(said, n=100)
    assert set(result.levels) == {"strong", "reversible", "weak"}


def _chain(mu0: Any, y: Any, rng: Any) -> Any:
    return y / 2 + 0.5**0.5 * ar1(0.9, (120,), rng)


def _chains(mu0: Any, y: Any, rng: Any) -> Any:
    return rt.Draws((y / 2 + 0.5**0.5 * ar1(0.9, (3, 40), rng)).ravel(), chains=3)


def _sometimes(mu0: Any, y: Any, rng: Any) -> Any:
    return _chains(mu0, y, rng) if y > 0 else rt.Normal(y / 2, 0.5**0.5)


def test_chains_of_some_outputs_only_are_not_tested() -> None:
    """Chains in some replicates and laws in others have no common test: p is 1, and a note says so."""
    result = rt.check(rt.Normal(0, 1), lambda theta, rng: theta + rng.normal(), _sometimes, n=80)
    assert {row.pvalue for row in result.levels["strong"].rows} == {1.0}
    assert result.verdict is not rt.Verdict.WITHIN_TOLERANCE
    assert "too little was kept" in str(result)


def test_joining_and_keeping_change_no_bit(tmp_path: Path) -> None:
    """A run from a store, cut and joined or asked again from its draws, has the same arrays."""
    study = rt.Study(rt.Normal(0, 1), lambda theta, rng: theta + rng.normal(), _chains, f=rt.identity)
    ran = rt.run(study, n=70, store=tmp_path / "run.db", keep="draws")
    again = recompute(tmp_path / "run.db", f=rt.identity)
    halves = join([rt.run(study, n=70).part(30, 70), rt.run(study, n=30)])
    for name in ran.arrays:
        if "chain" in name:
            np.testing.assert_array_equal(ran.arrays[name], halves.arrays[name])
            np.testing.assert_array_equal(ran.arrays[name], again.arrays[name])
    assert rt.judge(ran).pvalue == rt.judge(halves).pvalue


def test_some_test_functions_of_chains() -> None:
    """A record about some functions keeps what the test of chains needs."""
    theta, draws = chains(100, (3, 40), 0.5)
    ran = check(theta, draws, f=[rt.identity, lambda t: np.square(t)]).replicates
    part = ran.about([1])
    assert columns_of(part)[0].chains
    assert rt.judge(part).tests[0].pvalue == rt.judge(ran).tests[1].pvalue


def test_a_function_of_the_data_is_tested_on_chains_too() -> None:
    """The exact level needs no thinning either."""
    theta, draws = chains(200, (3, 40), 0.9)
    f = rt.functions.Function(lambda t, y: (t - y) ** 2, "fit")
    result = check(theta, draws, f=[rt.identity, f], y=list(theta))
    assert result.levels["exact"].rows[0].route == "3 chains of 40"


def test_best_of_chains() -> None:
    """A function that is chosen on some replicates is tested on the others."""
    theta, draws = chains(200, (3, 40), 0.5, spread=2.0)
    result = check(theta, draws, f=rt.BestOf([rt.identity, lambda t: np.square(t)]))
    assert result.pvalue < 0.05


def test_measures_of_chains_are_those_that_hold() -> None:
    """Sizes made from positions among draws are left out; spread, bias, coverage and distance are those of chains."""
    theta, draws = chains(300, (3, 40), 0.9)
    result = check(theta, draws)
    names = [row.name for row in rt.measure(result).rows if row.f == "theta"]
    assert names[:4] == ["spread", "bias", "coverage", "KS distance"]
    assert not {"W1 distance", "KL divergence", "12 Var u"} & set(names)


def test_parts_of_independent_outputs_are_no_chains() -> None:
    """Chains of single parts would be drawn from as if they were independent, and are refused."""
    with pytest.raises(ValueError, match="Markov chains"):
        rt.Independent({"a": rt.Draws(np.zeros(10), chains=2), "b": rt.Normal(0, 1)})


def test_short_single_chains_say_what_they_need() -> None:
    """Two draws cannot be cut into two chains."""
    theta = np.zeros(5)
    with pytest.raises(ReplicateFailed, match="at least 3 draws"):
        rt.check_draws(theta, np.random.default_rng(0).normal(size=(5, 2)), iid=False, f=rt.identity)


def test_chains_of_unequal_lengths_are_judged_together() -> None:
    """A list of chains of any lengths is tested; its route says no number."""
    theta, draws = chains(80, (2, 40), 0.5)
    lengths = 20 + np.arange(80) % 20
    result = rt.check_draws(theta, [d[:, :m] for d, m in zip(draws, lengths, strict=True)], chains=2, f=rt.identity)
    np.testing.assert_array_equal(result.replicates.arrays["chains/length"][:, 0], lengths)
    assert result.tests[0].route == "chains"
    assert 0 < result.pvalue <= 1


@pytest.mark.parametrize("shape", [(2, 1), (5, 1), (2, 2), (3, 3)], ids=str)
def test_the_shortest_chains_are_judged(shape: tuple[int, int]) -> None:
    """Chains of one, two or three draws give a p-value, no exception, and are not said to be stuck."""
    theta, draws = chains(100, shape, 0.0)
    result = check(theta, draws)
    assert 1e-6 < result.pvalue <= 1
    assert "never moves" not in result.sentence


def test_chains_of_a_discrete_quantity_may_stay_where_they_are() -> None:
    """A rare event that no draw of a chain shows is no stuck chain."""
    rng = np.random.default_rng(0)
    result = check((rng.random(200) < 0.02) * 1.0, (rng.random((200, 2, 20)) < 0.02) * 1.0)
    assert "never moves" not in result.sentence


@pytest.mark.parametrize(("pvalue", "stops"), [(0.99e-6, True), (1.01e-6, False)])
def test_the_call_stops_at_a_false_alarm_rate_of_one_in_a_million(
    pvalue: float, stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below 1e-6 neighbouring draws are called alike, and not above."""
    theta, draws = chains(30, (1, 9), 0.0)
    monkeypatch.setattr(statistics, "serial_dependence", lambda serial: statistics.Dependence(pvalue, 1, 0, 0.5))
    if stops:
        says(refusal(lambda: rt.check_draws(theta, draws[:, 0])), "neighbouring draws of 'theta' have rank correlation")
    else:
        assert rt.check_draws(theta, draws[:, 0]).pvalue > 0
