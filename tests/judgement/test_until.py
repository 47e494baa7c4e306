"""Runs that stop when they are decided: where they stop, why, and that nothing but the replicates decides it."""

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.execution.store import Store
from ringtrue.judgement import anytime, joint
from ringtrue.judgement.until import Decided
from ringtrue.statistics.sequential import log_evalues, looks_up_to, next_look
from ringtrue.values import Generator
from tests.builders import BELIEF, SD, noisy, posterior, refusal, says


def _narrow(mu0: Any, y: Any) -> Any:
    return rt.Normal(y / 2, 0.5)


def _draws(mu0: Any, y: Any, rng: Generator) -> Any:
    return y / 2 + 0.5 * rng.normal(size=(19, *np.shape(y)))


def _slow(mu0: Any, y: Any) -> Any:
    """Return right outputs, those far out late: quick ones come first, and are not like the others."""
    time.sleep(0.02 if abs(y) > 1 else 0.0)
    return posterior(mu0, y)


def _decided(procedure: Any, **settings: Any) -> rt.Result:
    return rt.check(BELIEF, noisy, procedure, until="decided", progress=False, **settings)


def test_a_wrong_procedure_stops_soon_and_a_right_one_when_it_is_certified() -> None:
    """For the evidence, or for the sizes; never at max_n here, which is far away."""
    wrong, right = _decided(_narrow), _decided(posterior, batch=50)
    assert (wrong.verdict, wrong.stopped) == (rt.Verdict.MISCALIBRATED, "evidence")
    assert wrong.anytime_pvalue <= 0.05
    assert wrong.replicates.n < 400
    says(wrong.sentence, "over-confident", f"Stopped after {wrong.replicates.n} replicates, when there was enough")
    # One run in twenty may call it miscalibrated; this seed's verdict is what certificates look like.
    if right.verdict is rt.Verdict.WITHIN_TOLERANCE:
        assert right.stopped == "certified"
        assert 400 < right.replicates.n < 5000
    assert {row.method for row in right.tests} == {"log E"}


def test_where_a_run_stops_is_where_the_rule_says() -> None:
    """Of all looks the first with a verdict, whichever way the replicates were handed over."""
    ran = rt.run(BELIEF, noisy, _narrow, n=400, progress=False)
    verdicts = {}
    look = next_look(0)
    while look <= 400:
        verdicts[look] = rt.judge(ran.part(0, look), anytime=True).verdict
        look = next_look(look)
    first = min(n for n, verdict in verdicts.items() if verdict is not rt.Verdict.INCONCLUSIVE)
    for step in (1, 7, 64, 400):
        rule = Decided(alpha=0.05, tolerance=rt.Tolerance())
        found = [rule(ran.part(k, min(k + step, 400))) for k in range(0, 400, step)]
        assert next(n for n in found if n is not None) == first
    assert _decided(_narrow).replicates.n == first


@pytest.mark.process
def test_workers_and_interruptions_change_nothing(tmp_path: Path) -> None:
    """Two workers, a store, and a run that was cut off before: the same replicates, the same verdict."""
    alone = _decided(_draws, max_n=300)
    path = tmp_path / "run.db"
    # A part of the run, as if it had been killed; in a file the first look has four fifths of alpha.
    rt.run(BELIEF, noisy, _draws, n=300, store=path, max_seconds=30, until=lambda part: 12, progress=False)
    with Store.read(path) as store:
        assert 12 <= store.prefix() < 300
    stored = _decided(_draws, max_n=300, store=path, workers=2)
    again = _decided(_draws, max_n=300, store=path)
    fresh = _decided(_draws, max_n=300, store=tmp_path / "other.db")
    assert stored.replicates.n == again.replicates.n == fresh.replicates.n
    assert stored.pvalue == again.pvalue == fresh.pvalue
    assert stored.look == again.look == fresh.look
    n = min(alone.replicates.n, stored.replicates.n)
    np.testing.assert_array_equal(alone.replicates.u[:n], stored.replicates.u[:n])
    with Store.read(path) as store:
        assert rt.judge(store.replicates(n=stored.replicates.n)).pvalue == stored.pvalue


@pytest.mark.process
def test_quick_replicates_are_not_looked_at_first() -> None:
    """With outputs that are late where they are unusual, workers give what one process gives."""
    alone, shared = (_decided(_slow, max_n=120, workers=workers) for workers in (None, 2))
    assert (alone.replicates.n, alone.pvalue) == (shared.replicates.n, shared.pvalue)
    assert alone.stopped == shared.stopped == "max_n"
    says(alone.sentence, "INCONCLUSIVE", "Not decided by 120 replicates, the most allowed.")


@pytest.mark.process
def test_time_is_up() -> None:
    """A run ends after its seconds, alone and with workers, and what there is is judged over time."""

    def waits(mu0: Any, y: Any) -> Any:
        time.sleep(0.05)
        return posterior(mu0, y)

    for workers in (None, 2):
        result = rt.check(BELIEF, noisy, waits, n=10_000, max_seconds=3.0, workers=workers, progress=False)
        assert 1 <= result.replicates.n < 10_000
        assert result.stopped == "max_seconds"
        assert result.look.anytime
        says(result.sentence, "when time was up")


def test_a_record_has_the_evidence_of_its_functions() -> None:
    """The average over functions and levels with the verdict's shares, by the process itself."""
    ran = rt.run(BELIEF, noisy, posterior, n=300, f=[rt.Coordinate(index=())], batch=300)
    found = anytime.follow(ran)
    looks = looks_up_to(300)
    strong = log_evalues(ran.z[:, 0], looks=looks).log_evalues
    weak = log_evalues(ran.weak_z[:, 0], looks=looks).log_evalues
    np.testing.assert_allclose(found.log_evalues, np.logaddexp(np.log(0.8) + strong, np.log(0.2) + weak))
    result = rt.judge(ran)
    assert result.evalue == pytest.approx(np.exp(found.log_evalues[-1]))
    assert result.anytime_pvalue == pytest.approx(1 / max(1.0, np.exp(found.log_evalues.max())))
    assert not result.look.anytime


def test_dropped_correlations_are_found_in_blocks() -> None:
    """Entries that are right alone, and whose correlation of .8 outputs forget: found, and named."""
    half = np.linalg.cholesky([[1.0, 0.8], [0.8, 1.0]])

    def model(theta: Any, rng: Generator) -> Any:
        return theta + rng.normal(size=theta.shape) @ half.T

    belief = rt.Gaussian([0.0, 0.0], half @ half.T)
    wrong = rt.check(
        belief, model, lambda mu0, y, rng: y / 2 + SD * rng.normal(size=(19, *y.shape)), until="decided", batch=50
    )
    assert wrong.verdict is rt.Verdict.MISCALIBRATED
    assert wrong.replicates.n <= 400
    assert "the correlation of theta[0] and theta[1] is reported as" in wrong.sentence
    right = rt.check(
        belief, model, lambda mu0, y, rng: y / 2 + SD * rng.normal(size=(19, *y.shape)) @ half.T, n=300, batch=300
    )
    assert rt.judge(right.replicates, anytime=True).levels["auto"].pvalue > 1e-6


@pytest.mark.parametrize("scale", [SD, 0.4])
def test_chains_are_followed_by_bets(scale: float) -> None:
    """Autocorrelated chains: right ones are not called (at 1e-6), narrow ones are."""

    def chains(mu0: Any, y: Any, rng: Generator) -> Any:
        x = np.empty((4, 50))
        x[:, 0] = rng.normal(size=4)
        for k in range(1, 50):
            x[:, k] = 0.8 * x[:, k - 1] + 0.6 * rng.normal(size=4)
        return rt.Draws((y / 2 + scale * x).ravel(), chains=4)

    result = rt.judge(rt.run(BELIEF, noisy, chains, n=300, f={"theta": lambda t: t}), anytime=True)
    assert (result.anytime_pvalue <= 1e-6) == (scale == 0.4)


def test_replicates_that_share_a_truth_count_once() -> None:
    """Groups are followed, and a run stops after whole ones."""
    result = rt.check(BELIEF, noisy, _narrow, datasets=4, until="decided", max_n=400)
    assert result.replicates.n % 4 == 0
    assert result.verdict is rt.Verdict.MISCALIBRATED


def test_lost_replicates_are_taken_for_the_worst() -> None:
    """Evidence is less than it was without losses, and holds whatever they would have been."""

    def failing(mu0: Any, y: Any) -> Any:
        if y > 2:
            raise ValueError("no fit")
        return _narrow(mu0, y)

    some = rt.judge(rt.run(BELIEF, noisy, failing, n=200, on_failure="record"), anytime=True)
    whole = rt.judge(rt.run(BELIEF, noisy, _narrow, n=200), anytime=True)
    assert some.failures
    assert 0 < some.evalue < whole.evalue


def test_a_loss_on_the_way_changes_no_test_that_is_followed() -> None:
    """Of several entries, too: the block of a lost replicate says nothing, and the run goes on to the same place."""

    def failing(mu0: Any, y: Any, rng: Generator) -> Any:
        if y[0] > 2.2:
            raise ValueError("no fit")
        return y / 2 + SD * rng.normal(size=(19, 2))

    def two(theta: Any, rng: Generator) -> Any:
        return theta + rng.normal(size=2)

    result = rt.check(rt.Gaussian([0.0, 0.0], np.eye(2)), two, failing, until="decided", max_n=150, on_failure="record")
    assert result.failures
    assert {row.level for row in result.tests} == {"strong", "auto", "weak"}
    blocks = joint.blocks(result.replicates)
    assert blocks is not None
    lost = {one.replicate // joint.BLOCK for one in result.failures}
    assert all(blocks[0].pvalues[number] == 1 for number in lost if number < len(blocks[0].pvalues))


def test_a_dropped_correlation_is_found_beside_losses() -> None:
    """Blocks without losses speak; the sentence says that the size is not known, and the page can be made."""
    half = np.linalg.cholesky([[1.0, 0.8], [0.8, 1.0]])

    def forgetful(mu0: Any, y: Any, rng: Generator) -> Any:
        if y[0] > 3.2:
            raise ValueError("no fit")
        return y / 2 + SD * rng.normal(size=(19, 2))

    ran = rt.run(
        rt.Gaussian([0.0, 0.0], half @ half.T),
        lambda theta, rng: theta + half @ rng.normal(size=2),
        forgetful,
        n=600,
        on_failure="record",
    )
    result = rt.judge(ran, anytime=True)
    assert result.failures
    assert result.levels["auto"].pvalue < 1e-3
    assert "correlations between entries are off; by how much is not known" in result.sentence
    assert result.plot() is not None


def test_sequences_come_with_their_n() -> None:
    """Sizes at several n, whose intervals only shrink, down to that of the result."""
    result = rt.judge(rt.run(BELIEF, noisy, posterior, n=500, batch=500), anytime=True)
    rows = result.sequences("theta")["bias"]
    n, intervals = zip(*rows, strict=True)
    assert n[-1] == 500
    assert sorted(n) == list(n)
    widths = [one.high - one.low for one in intervals]
    assert all(later <= before for before, later in pairwise(widths))
    assert intervals[-1].low >= result["theta"].bias.low
    says(refusal(lambda: result.sequences("nothing")), "nothing", "theta")


def test_functions_of_the_data_alone_do_not_concern_calibration() -> None:
    """Evidence that an output is not the exact posterior is shown, and is no evidence against calibration."""
    f = {"product": lambda theta, y: theta * y}
    result = rt.judge(rt.run(BELIEF, noisy, lambda mu0, y: rt.Normal(0, 1), n=200, f=f), anytime=True)
    assert result.levels["exact"].pvalue < 1e-3
    assert (result.pvalue, result.evalue) == (1.0, 1.0)
    assert result.verdict is rt.Verdict.INCONCLUSIVE


def test_chains_that_cannot_be_followed_are_named() -> None:
    """Of one chain that hardly moves there is no evidence over time, and a note says so."""

    def slow(mu0: Any, y: Any, rng: Generator) -> Any:
        return rt.Draws(y / 2 + np.cumsum(rng.normal(size=30)), chains=1)

    result = rt.judge(rt.run(BELIEF, noisy, slow, n=30), anytime=True)
    assert any("evidence over time is not known of theta" in note for note in result.notes)


def test_what_cannot_be_stopped_is_refused() -> None:
    """Numbers that exclude each other, rules nobody knows, shares, functions chosen by the replicates."""
    about = (BELIEF, noisy, posterior)
    says(refusal(lambda: rt.check(*about)), "n=", "until='decided'")
    says(refusal(lambda: rt.check(*about, n=10, until="decided")), "exclude each other", "max_n")
    says(refusal(lambda: rt.check(*about, until="soon")), "'decided'", "'soon'")  # type: ignore[arg-type]
    says(refusal(lambda: rt.check(*about, until="decided", max_n=0)), "max_n", "0")
    says(refusal(lambda: rt.check(*about, n=10, max_seconds=-1)), "max_seconds", "-1")
    says(refusal(lambda: rt.run(*about, n=10, until="decided")), "a function of replicates", "check takes")  # type: ignore[arg-type]
    says(
        refusal(lambda: rt.check(*about, until="decided", store="x.db", shard=(0, 2))),
        "does not see the others",
        "merge",
    )
    chosen = rt.BestOf([rt.Coordinate(index=()), rt.Vectorized(np.square, "square")])
    says(refusal(lambda: rt.check(*about, until="decided", f=chosen)), "chosen by the replicates", "n=")
