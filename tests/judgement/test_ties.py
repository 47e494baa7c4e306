"""Discrete test functions: one p-value for given draws, an exact level, no certificate of what ranks do not tell."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue.judgement.column import strong_columns
from ringtrue.judgement.levels import test_column as pvalue_of
from ringtrue.replicates.record import TIED
from ringtrue.values import Floats


def counts(seed: int, n: int = 300, draws: int = 99) -> tuple[Floats, Floats]:
    """Return truths and draws that are Poisson with a mean of their own in every replicate."""
    rng = np.random.default_rng(seed)
    mean = rng.gamma(3, size=(n, 1))
    return rng.poisson(mean[:, 0]).astype(float), rng.poisson(mean, size=(n, draws)).astype(float)


def switches(seed: int, n: int, factor: float, draws: int = 99) -> tuple[Floats, Floats]:
    """Return truths and draws of 0 and 1; outputs multiply the log odds by a factor."""
    rng = np.random.default_rng(seed)
    odds = 1.5 * rng.normal(size=(n, 1))
    truth = rng.random(n) < 1 / (1 + np.exp(-odds[:, 0]))
    return truth.astype(float), (rng.random((n, draws)) < 1 / (1 + np.exp(-factor * odds))).astype(float)


def seeds_of(theta: Floats, draws: Floats, **settings: Any) -> list[rt.Result]:
    """Return the results of the same draws with several seeds."""
    return [rt.check_draws(theta, draws, seed=seed, **settings) for seed in range(5)]


@pytest.mark.parametrize("draws", [99, 250])
def test_given_draws_have_one_answer(draws: int) -> None:
    """The seed, which breaks ties, changes neither p-value nor sizes nor verdict; breaking them at random does."""
    results = seeds_of(*counts(1, draws=draws))
    assert len({(one.pvalue, one.verdict, one.sentence) for one in results}) == 1
    assert len({repr(one.measures) for one in results}) == 1
    # Broken twin: ties broken by the seed.
    broken = {pvalue_of("strong", strong_columns(one.replicates)[0].broken(), "combination").pvalue for one in results}
    assert len(broken) == len(results)


def test_several_functions_have_one_answer_too() -> None:
    """The joint test of several discrete entries does not depend on the seed."""
    parts = [counts(seed) for seed in (1, 2)]
    theta, draws = (np.stack([part[i] for part in parts], axis=-1) for i in (0, 1))
    results = seeds_of(theta, draws)
    assert results[0].replicates.members is not None
    assert len({one.pvalue for one in results}) == 1


def test_level_is_exact_through_the_front_door() -> None:
    """Of given members with ties each is the truth once in every replicate: P(p <= alpha) <= alpha for every alpha."""
    members = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [2.0, 0.0, 2.0]])
    found = []
    for labels in product(range(3), repeat=4):
        rows = np.stack([np.roll(row, -j) for row, j in zip(members, labels, strict=True)])
        found.append(rt.check_draws(rows[:, 0], rows[:, 1:], f=rt.identity, iid=True).pvalue)
    p = np.array(found)
    # Labels are drawn, not enumerated: a p-value is within 5 sd of 1999 labellings of its exact value.
    assert all((p <= alpha).mean() <= alpha + 5 * np.sqrt(alpha * (1 - alpha) / 1999) for alpha in p)
    assert len(set(found)) > 3


def test_exact_discrete_laws_are_ranked_among_their_draws() -> None:
    """A law with atoms is tested among draws of itself; what is in the record does not depend on the company."""

    def study(outcome: Any) -> Any:
        return stats.poisson(3), lambda theta, rng: rng.normal(theta, 3.0), lambda mu0, y: outcome

    right, wrong = (rt.check(*study(stats.poisson(mean)), n=300, seed=4) for mean in (3.0, 3.6))
    # A mean too large by .35 sd at n = 300: 6 standard errors; by chance one has p < 1e-6 and the other p > 1e-3.
    assert right.pvalue > 1e-6
    assert wrong.verdict is rt.Verdict.MISCALIBRATED
    assert wrong.pvalue < 1e-3
    assert "ranks of 99, with ties" in {row.route for row in wrong.tests}
    longer = rt.run(*study(stats.poisson(3.0)), n=310, seed=4)
    kept = f"{TIED}theta"
    assert np.array_equal(longer.arrays[kept][:300], right.replicates.arrays[kept])


def test_two_values_that_are_no_labels_are_convicted_and_not_certified() -> None:
    """Log odds twice too large are found; the sentence says too sure; right ones are not called and not certified."""
    # Power at n = 300 is beyond .999: at n = 62 the best test has .8, at n = 286 ranks with broken ties have.
    wrong = rt.check_draws(*(part / 2 for part in switches(1, 300, 2.0)), f=rt.identity)
    assert wrong.verdict is rt.Verdict.MISCALIBRATED
    assert "takes few values" in wrong.sentence
    assert "too sure" in wrong.sentence
    right = rt.check_draws(*(part / 2 for part in switches(2, 3000, 1.0)), f=rt.identity, alpha=1e-6)
    assert right.verdict is rt.Verdict.INCONCLUSIVE
    assert "not measured here" in right.sentence
    assert not any(m.certified for m in right.measures)


def test_functions_with_many_values_are_certified() -> None:
    """Counts with a mean of 3 are judged by size like numbers on the continuum."""
    # Certified in 95 % of runs or more at this n; the chance that it is not called is 1 - 1e-6.
    result = rt.check_draws(*counts(3, n=4000), f=rt.identity, alpha=1e-6, tolerance=rt.Tolerance(0.3, 0.3, 0.1, 0.2))
    assert result.verdict is rt.Verdict.WITHIN_TOLERANCE


def test_rare_ties_are_broken_at_random() -> None:
    """Draws of which fewer than one in a hundred ties, as rounded ones do, keep the test of the continuum."""
    rng = np.random.default_rng(1)
    theta, draws = rng.normal(size=200), rng.normal(size=(200, 99))
    draws[:50, 1] = draws[:50, 0]
    result = rt.check_draws(theta, draws, iid=True, f=rt.identity)
    assert f"{TIED}theta" in result.replicates.arrays
    assert {row.method for row in result.levels["strong"].rows} == {"combination"}


def test_losses_are_bounded_with_ties_too() -> None:
    """With lost replicates the worst case is taken of ties that were broken."""
    theta, draws = counts(5)
    theta[7] = np.nan
    result = rt.check_draws(theta, draws, f=rt.identity, on_failure="record")
    assert "worst case of 1 lost" in next(iter(result.tests)).method


@pytest.mark.process
def test_ties_survive_workers_and_stores(tmp_path: Path) -> None:
    """What is kept of ties is the same bits from one process, from two, and from a store that was gone on with."""

    def model(theta: Any, rng: Any) -> Any:
        return rng.poisson(theta)

    def procedure(mu0: Any, y: Any, rng: Any) -> Any:
        return np.round(rng.gamma(3 + y, 0.5, size=60))

    def belief(rng: Any) -> Any:
        return np.round(rng.gamma(3.0))

    study = rt.Study(belief, model, procedure, f=rt.identity)
    alone = rt.run(study, n=60).arrays[f"{TIED}theta"]
    assert alone.dtype == np.uint8
    assert (alone > 0).any()
    assert np.array_equal(rt.run(study, n=60, workers=2).arrays[f"{TIED}theta"], alone)
    rt.run(study, n=25, store=tmp_path / "run.db")
    again = rt.run(study, n=60, store=tmp_path / "run.db")
    assert np.array_equal(again.arrays[f"{TIED}theta"], alone)
