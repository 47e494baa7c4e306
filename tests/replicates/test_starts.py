"""Posterior SBC: truths are draws of the procedure's own output for observed data, each used once."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import signal, stats

import ringtrue as rt
from ringtrue.replicates import starts
from ringtrue.values import Floats, Generator
from tests.builders import refusal, says

BELIEF, POINTS = rt.Normal(0, 1), 3
#: Data that the belief hardly ever gives.
FAR = np.array([8.0, 9.0, 10.0])


def model(theta: Any, rng: Generator) -> Floats:
    """Return three observations of theta with noise 1, of one theta or of a batch."""
    return np.asarray(theta)[..., None] + rng.normal(size=(*np.shape(theta), POINTS))


def bayes(mu0: Any, y: Floats) -> rt.Normal:
    """Return the exact posterior of the belief N(0, 1)."""
    k = y.shape[-1] + 1
    return rt.Normal(y.sum(axis=-1) / k, np.full(y.shape[:-1], k**-0.5))


def updated(mu0: rt.Normal, y: Floats) -> rt.Normal:
    """Return the exact posterior of any normal belief: two such steps are one with both datasets."""
    precision = mu0.sd**-2 + y.shape[-1]
    return rt.Normal((mu0.mean * mu0.sd**-2 + y.sum(axis=-1)) / precision, precision**-0.5)


def both(y_obs: Floats, y: Floats) -> Floats:
    """Return the observations of both datasets."""
    return np.concatenate([y_obs, y], axis=-1)


def given(procedure: Any, y_obs: Any = FAR, **settings: Any) -> rt.Study:
    """Return a study about observed data."""
    return rt.Study(BELIEF, model, procedure, **settings).given(y_obs, both=both)


def chain(mu0: Any, y: Floats, rng: Generator, *, phi: float = 0.9, m: int = 2000) -> rt.Draws:
    """Return two chains that follow the exact posterior."""
    exact = bayes(mu0, y)
    noise = rng.normal(size=(2, m)) * np.sqrt(1 - phi**2)
    noise[:, 0] /= np.sqrt(1 - phi**2)
    z = signal.lfilter([1.0], [1.0, -phi], noise, axis=1)
    return rt.Draws((exact.mean + exact.sd * z).ravel(), chains=2)


def test_two_steps_are_one_with_both_datasets() -> None:
    """Where outputs can be beliefs, the same is asked by taking the first output for the belief; to the last digits."""
    one = rt.run(given(bayes, f=rt.identity), n=50)
    two = rt.run(rt.Study(updated(BELIEF, FAR), model, updated, f=rt.identity), n=50)
    assert one.u == pytest.approx(two.u, abs=1e-12)
    assert one.truth == pytest.approx(two.truth, abs=1e-12)


@pytest.mark.parametrize("settings", [{}, {"batch": 50}])
def test_right_passes_and_wrong_is_caught(settings: Any) -> None:
    """One by one and in batches: exact posteriors are not called, outputs that halve the sd are, given y_obs."""
    right = rt.check(given(bayes, **settings), n=300, alpha=1e-6)
    assert right.verdict is not rt.Verdict.MISCALIBRATED
    # Both fits too narrow: the truth is 1.5 sd of the second away on average, where 1.1 is found always at n = 300.
    wrong = rt.check(given(_narrow_if(lambda mean: mean > 0), **settings), n=300, alpha=1e-6)
    assert wrong.verdict is rt.Verdict.MISCALIBRATED
    assert wrong.sentence.startswith("GIVEN y_obs, MISCALIBRATED")
    assert "weak" not in wrong.levels


def _narrow_if(condition: Any) -> Any:
    """Return a procedure that halves the sd for some data."""

    def procedure(mu0: Any, y: Floats) -> rt.Normal:
        exact = bayes(mu0, y)
        return rt.Normal(exact.mean, np.where(condition(y.mean(axis=-1)), 0.5, 1.0) * exact.sd)

    return procedure


def test_an_error_for_data_like_mine_is_found_there_and_not_elsewhere() -> None:
    """One only far from the belief, given data that are there; one only near it, by the check of the belief."""
    # A mean above 7 has probability P(Z > 7 / sqrt(4 / 3)) = 7e-10 from the belief; one of both below 5 given FAR, with
    # outputs around 6.75, is further out than that.
    far, near = _narrow_if(lambda mean: mean > 7), _narrow_if(lambda mean: mean < 3)
    for procedure, found, passed in ((far, given(far), near), (near, rt.Study(BELIEF, model, near), far)):
        assert rt.check(found, n=300).verdict is rt.Verdict.MISCALIBRATED
        other = rt.Study(BELIEF, model, procedure) if passed is near else given(procedure)
        sound = rt.Study(BELIEF, model, bayes) if passed is near else given(bayes)
        assert np.array_equal(rt.run(other, n=300).u, rt.run(sound, n=300).u)


def test_what_it_cannot_see_passes_and_is_said() -> None:
    """A wrong prior and data left unused are right given y_obs, and the notes say so; the data, if asked, see them."""

    def other_prior(mu0: Any, y: Floats) -> rt.Normal:
        return updated(rt.Normal(3, 0.5), y)

    assert rt.check(rt.Study(BELIEF, model, other_prior), n=300).verdict is rt.Verdict.MISCALIBRATED
    unseen = rt.check(given(other_prior), n=300, alpha=1e-6)
    assert unseen.verdict is not rt.Verdict.MISCALIBRATED
    says(" ".join(unseen.notes), "not seen given y_obs: a wrong prior", "leaving all data unused", "shared by y_obs")

    def log_likelihood(theta: Any, y: Any) -> Any:
        return -((theta - np.mean(y)) ** 2)

    idle = rt.check(given(lambda mu0, y: BELIEF, f=[rt.identity, log_likelihood]), n=300, alpha=1e-6)
    assert idle.verdict is not rt.Verdict.MISCALIBRATED
    assert idle.levels["exact"].pvalue < 1e-6
    says(" ".join(idle.notes), "says no more than y_obs alone")


def _spread_of_means(apart: bool) -> float:
    """Return the sum over 100 studies of squared standardised means of 30 truths."""
    total, n, exact = 0.0, 30, bayes(None, FAR)
    for seed in range(100):
        study = given(chain, seed=seed)
        rows = starts.truths(study, 0, n) if apart else starts._output(study, 1).values[:n]
        total += n * float(((rows - exact.mean) / exact.sd).mean()) ** 2
    return total


def test_truths_of_a_chain_are_as_good_as_independent() -> None:
    """Means of truths spread as those of independent draws do, and not as those of neighbours in the chain."""
    # The correlation that is left, 0.0025 and its powers, adds half a percent. Both ends at 5e-7.
    low, high = stats.chi2(100).ppf([5e-7, 1 - 5e-7]) * [1, 1.005]
    assert low < _spread_of_means(apart=True) < high
    assert not _spread_of_means(apart=False) < high
    # The autocorrelation time is (1 + 0.9) / (1 - 0.9) = 19. Of 80,000 draws, summed over five times that many lags, it
    # is known to sqrt(2 * 190 / 80000) = 7 %: both ends are more than five such errors away.
    assert 36 < starts._spacing(given(partial(chain, m=40_000))) < 90


def test_no_truth_is_used_twice_however_many_there_are() -> None:
    """More truths than one fit gives come from further fits; each weighted sample gives one."""

    def weighted(mu0: Any, y: Floats, rng: Generator) -> rt.Draws:
        return rt.Draws(rng.normal(size=40), weights=rng.random(40))

    def sampled(mu0: Any, y: Floats, rng: Generator) -> rt.Draws:
        return rt.Draws(rng.normal(size=40), iid=True)

    for procedure, each in ((chain, None), (weighted, 1), (sampled, 40)):
        study = given(procedure, f=rt.identity)
        assert each in (None, len(starts._apart(study, 1)))
        truth = rt.run(study, n=150).truth[:, 0]
        assert len(np.unique(truth)) == 150
    stuck = given(lambda mu0, y, rng: rt.Draws(np.repeat(rng.normal(size=2), 50), chains=2))
    assert len(starts._apart(stuck, 1)) == 2  # the end of each chain


def test_batches_and_several_datasets_have_truths_of_their_own() -> None:
    """A batched procedure fits y_obs as often as it takes datasets; a truth may have several datasets."""

    def sampled(mu0: Any, y: Floats, rng: Generator) -> rt.Draws:
        exact = bayes(mu0, y)
        return rt.Draws(exact.mean + exact.sd * rng.normal(size=(20, len(y))), iid=True)

    truth = rt.run(given(sampled, batch=10), n=300).truth[:, 0]
    assert len(np.unique(truth)) == 300
    # Kolmogorov's test at 1e-6, and the belief as the broken twin.
    assert stats.kstest(truth, stats.norm(27 / 4, 1 / 2).cdf).pvalue > 1e-6
    assert stats.kstest(truth, stats.norm.cdf).pvalue < 1e-6
    for settings in ({"datasets": 2}, {"datasets": 2, "batch": 10}):
        for procedure in (bayes, sampled) if "batch" in settings else (bayes,):
            pairs = rt.run(given(procedure, **settings), n=20).truth[:, 0].reshape(10, 2)
            assert np.array_equal(pairs[:, 0], pairs[:, 1])
            assert len(np.unique(pairs)) == 10


@pytest.mark.process
def test_workers_and_stores_find_the_same_truths(tmp_path: Path) -> None:
    """Two processes, and a run that is gone on with, compute what one does; a store knows that truths were given."""
    alone = rt.run(given(chain), n=30)
    shared = rt.run(given(chain), n=30, workers=2)
    rt.run(given(chain), n=11, store=tmp_path / "run.db")
    again = rt.check(given(chain), n=30, store=tmp_path / "run.db")
    assert np.array_equal(alone.u, shared.u)
    assert np.array_equal(alone.u, again.replicates.u)
    assert again.sentence.startswith("GIVEN y_obs, ")
    refusal(lambda: rt.run(given(chain, FAR + 1), n=30, store=tmp_path / "run.db"), rt.errors.StoreMismatch)


def test_refusals_say_what_to_do() -> None:
    """How to fit both must be said; truths cannot come from elsewhere too; outputs must have draws."""
    study = rt.Study(BELIEF, model, bayes)
    says(refusal(lambda: study.given(FAR)), "together", "both=lambda y_obs, y")
    says(refusal(lambda: given(bayes).given(FAR, both=both)), "already")
    says(refusal(lambda: given(bayes, truth=rt.Normal(1, 1))), "truth=", "already")
    joint = rt.Study.from_joint(lambda rng: (rng.normal(), rng.normal(size=3)), bayes)
    says(refusal(lambda: joint.given(FAR, both=both)), "model that takes the theta")

    class Law:
        sample = None
        marginal = staticmethod(bayes(None, FAR).marginal)

    says(refusal(lambda: rt.run(given(lambda mu0, y: Law(), f=rt.identity), n=3)), "y_obs", "draw truths from")


def test_failures_in_the_fit_to_observed_data_are_told() -> None:
    """A procedure that fails on y_obs is said to fail there."""

    def fails(mu0: Any, y: Floats) -> Any:
        raise RuntimeError("no luck")

    says(refusal(lambda: rt.run(given(fails), n=3), rt.errors.ReplicateFailed), "fit to y_obs", "no luck")
