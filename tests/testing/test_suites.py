"""Calibration as an assertion of a suite: what passes, what fails and with which words, what is refused."""

import math
import re
import unittest
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.judgement.levels.strong import LEVEL
from ringtrue.testing import BUDGET, Passed, assert_not_miscalibrated

BELIEF = rt.Normal(0, 1)


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal(size=np.shape(theta))


def _right(mu0: Any, y: Any) -> Any:
    return rt.Normal(y / 2, math.sqrt(0.5))


def _narrow(mu0: Any, y: Any) -> Any:
    return rt.Normal(y / 2, 0.5)


def _outcome(procedure: Any, **settings: Any) -> Passed | None:
    """Return what an assertion came to; None if it failed."""
    try:
        return assert_not_miscalibrated(BELIEF, _model, procedure, **settings)
    except AssertionError:
        return None


def _message(procedure: Any, **settings: Any) -> str:
    with pytest.raises(rt.errors.Miscalibrated) as caught:
        assert_not_miscalibrated(BELIEF, _model, procedure, **settings)
    return str(caught.value)


@cache
def _outcomes(procedure: Any) -> list[Passed | None]:
    """Return what 30 runs came to."""
    return [_outcome(procedure, seed=seed) for seed in range(30)]


def _quick(procedure: Any) -> int:
    """Return how many passed with the replicates of their first stage."""
    return sum(one is not None and one.n == 100 for one in _outcomes(procedure))


@pytest.mark.slow
def test_what_is_calibrated_passes_with_few_replicates() -> None:
    """Most of 30 calibrated runs end with their first 100 replicates."""
    # Each does with probability 0.8538 or more: 13 or fewer have chance 1e-7.
    assert _quick(_right) > 13


@pytest.mark.slow
def test_what_is_not_calibrated_does_not_pass_so() -> None:
    """The broken twin: half of the right variance passes with probability 0.0037 at most, see below."""
    assert _quick(_narrow) <= 13


def _failed(procedure: Any) -> int:
    return sum(one is None for one in _outcomes(procedure))


@pytest.mark.slow
def test_half_the_variance_fails() -> None:
    """At 1e-5, of 30 runs with half of the right variance 26 or more fail."""
    # The stage's p is at most 4 / 0.9 times that of the sum of squares, and so accepts above 0.146 only if that sum,
    # twice a chi-squared with 100 degrees, is below 132.5: probability 0.0037. Five of 30 have chance 1e-7; what later
    # stages of 400 replicates accept is far less.
    assert _failed(_narrow) >= 26


@pytest.mark.slow
def test_the_right_variance_does_not_fail_so() -> None:
    """The broken twin: what is calibrated fails with chance 1e-5 at most, each."""
    assert _failed(_right) < 26


def _later(procedure: Any) -> int:
    """Return a seed at which the first stage is not sure."""
    return next(seed for seed in range(200) if (one := _outcome(procedure, seed=seed)) and len(one.pvalues) > 1)


def test_later_stages_see_replicates_after_those_of_the_first() -> None:
    """p-values are those of replicates 0 to 99 and 100 to 499 of a run with the same seed."""
    seed = _later(_right)
    found = _outcome(_right, seed=seed)
    assert found is not None
    assert found.n == 100 + 400 * (len(found.pvalues) - 1)
    whole = rt.run(BELIEF, _model, _right, n=500, seed=seed)
    for p, part in zip(found.pvalues, (whole.part(0, 100), whole.part(100, 500)), strict=False):
        tested = LEVEL.one_by_one(part, "combination")
        assert tested is not None
        assert p == tested.pvalue
    assert _outcome(_right, seed=seed) == found


@pytest.mark.parametrize("seed", [0, 1])
def test_a_failure_says_what_is_wrong_and_how_to_see_it_again(seed: int) -> None:
    """The call that it names gives the sentence that it leads with."""

    def procedure(mu0: Any, y: Any) -> Any:
        return rt.Normal(y / 2, 0.3)

    sentence, evidence, replay = _message(procedure, seed=seed).splitlines()
    call = replay.partition(": ")[2]
    names = {"ringtrue": rt, "belief": BELIEF, "model": _model, "procedure": procedure}
    assert eval(call, names).sentence == sentence
    assert sentence.startswith("MISCALIBRATED (strong")
    assert f"chance of {BUDGET:.2g} at most" in evidence
    p, limit = re.findall(r"p = (\S+) on .* fails at (\S+)\);", evidence)[0]
    assert float(p) <= float(limit)


@pytest.mark.slow
def test_a_failure_of_several_stages_is_of_one_run() -> None:
    """Stages put together are what one run of all their replicates is, draws and weak level included."""

    def narrow(mu0: Any, y: Any, rng: Any) -> Any:
        return rng.normal(y / 2, 0.6, size=30)

    for seed in range(50):
        try:
            assert_not_miscalibrated(BELIEF, _model, narrow, seed=seed)
        except AssertionError as error:
            sentence, _, replay = str(error).splitlines()
            n = int(re.findall(r"n=(\d+)", replay)[0])
            if n > 100:
                ran = rt.run(BELIEF, _model, narrow, n=n, seed=seed)
                assert rt.judge(ran, anytime=True).sentence == sentence
                return
    raise AssertionError("no run failed in a later stage")


def test_settings_that_cannot_be_written_have_their_names() -> None:
    """The call names f and writes numbers."""
    assert "n=100, seed=3, f=f, draws=20)" in _message(
        lambda mu0, y: rt.Normal(y / 2, 0.1), seed=3, f=[rt.identity], draws=20
    )


def test_a_study_is_taken_and_called_one() -> None:
    """A study says all there is to ask."""
    assert assert_not_miscalibrated(rt.Study(BELIEF, _model, _right), false_alarm=1e-6).n >= 100
    wrong = rt.Study(BELIEF, _model, lambda mu0, y: rt.Normal(y / 2, 0.1))
    call = "ringtrue.judge(ringtrue.run(study, n=100), anytime=True)"
    with pytest.raises(rt.errors.Miscalibrated, match=re.escape(call)):
        assert_not_miscalibrated(wrong)
    with pytest.raises(rt.errors.InvalidStudy, match="put it into the Study"):
        assert_not_miscalibrated(wrong, seed=1)


def test_what_cannot_be_replayed_is_not_offered() -> None:
    """A study that is not reproducible has no call."""
    message = _message(lambda mu0, y: rt.Normal(y / 2, 0.1), reproducible=False)
    assert "ringtrue.run(" not in message
    assert "cannot be replayed" in message


def test_stages_have_whole_batches() -> None:
    """A batch is computed whole, so that all of it is looked at."""
    found = _outcome(_right, batch=64, false_alarm=1e-6)
    assert found is not None
    assert found.n % 64 == 0
    assert found.n >= 128


@pytest.mark.slow
def test_a_page_is_written_about_a_failure(tmp_path: Path) -> None:
    """The message ends with its path; nothing is written if nothing failed, and a bad place is refused at once."""
    page = tmp_path / "failure.html"
    assert_not_miscalibrated(BELIEF, _model, _right, report=page, false_alarm=1e-6)
    assert not page.exists()
    message = _message(lambda mu0, y: rt.Normal(y / 2, 0.1), report=page)
    assert message.endswith(f"Report: {page}")
    assert "over-confident" in page.read_text("utf-8")
    with pytest.raises(rt.errors.RingtrueError, match="cannot be written"):
        assert_not_miscalibrated(BELIEF, _model, _right, report=tmp_path / "nowhere" / "failure.html")


def test_few_values_can_fail() -> None:
    """Functions with ties, tested by exchanging truth and draws, reach p-values as small as stages need."""

    def shifted(mu0: Any, y: Any, rng: Any) -> Any:
        return rng.normal(1.0 + y, 0.5, size=50)

    assert _message(shifted, f={"positive": lambda theta: theta > 0}).startswith("MISCALIBRATED (strong")


def test_lost_replicates_are_allowed_for() -> None:
    """With a record of failures the worst case is tested; without, the first failure comes through."""

    def fails(mu0: Any, y: Any) -> Any:
        if y > 1.5:
            raise RuntimeError("no")
        return _right(mu0, y)

    assert _outcome(fails, on_failure="record", false_alarm=1e-6) is not None
    with pytest.raises(rt.errors.ReplicateFailed):
        assert_not_miscalibrated(BELIEF, _model, fails)


def test_the_call_goes_on_where_the_assertion_did() -> None:
    """What to do with lost replicates is part of the call."""

    def fails(mu0: Any, y: Any) -> Any:
        if y > 3:
            raise RuntimeError("no")
        return rt.Normal(y / 2, 0.05)

    assert "seed=0, on_failure='record')" in _message(fails, on_failure="record")


@pytest.mark.slow
def test_a_failure_that_a_check_does_not_share_says_so() -> None:
    """Stages may reject what all replicates at once do not: the first line says both."""

    def first_line(seed: int) -> str:
        try:
            assert_not_miscalibrated(BELIEF, _model, _right, seed=seed, false_alarm=0.9)
        except AssertionError as error:
            return str(error).splitlines()[0]
        return ""

    lines = (first_line(seed) for seed in range(200))
    said = next(line for line in lines if line and not line.startswith("MISCALIBRATED ("))
    assert re.match(
        "MISCALIBRATED by stages, though all replicates at once say (INCONCLUSIVE|WITHIN TOLERANCE): ", said
    )


def _walk(y: float, rng: Any, sd: float, chains: int) -> Any:
    """Return chains of an autocorrelation of 0.5 around the posterior mean, side by side."""
    noise = rng.normal(size=(chains, 100))
    steps = noise.copy()
    for i in range(1, 100):
        steps[:, i] = 0.5 * steps[:, i - 1] + math.sqrt(0.75) * noise[:, i]
    return y / 2 + sd * steps


@pytest.mark.slow
def test_chains_pass_and_fail() -> None:
    """Four chains of the right posterior pass at a false-alarm rate of 1e-6; those of a third of its sd fail."""

    def chained(sd: float) -> Any:
        return lambda mu0, y, rng: rt.Draws(_walk(y, rng, sd, 4).ravel(), chains=4)

    assert _outcome(chained(math.sqrt(0.5)), false_alarm=1e-6) is not None
    assert "over-confident" in _message(chained(math.sqrt(0.5) / 3), false_alarm=1e-6)


def test_chains_that_nobody_called_so_are_named() -> None:
    """Where draws that follow each other make a test fail, it says what to pass."""

    def walk(mu0: Any, y: Any, rng: Any) -> Any:
        return y / 2 + math.sqrt(0.5) * np.repeat(rng.normal(size=4), 25)[:99] + 1e-3 * rng.normal(size=99)

    with pytest.raises(rt.errors.InvalidStudy, match="chains="):
        assert_not_miscalibrated(BELIEF, _model, walk)


def _nothing(mu0: Any, y: Any) -> Any:
    raise RuntimeError("no")


def test_a_run_that_lost_everything_does_not_pass() -> None:
    """Nothing was tested, which is no pass."""
    with pytest.raises(rt.errors.InvalidStudy, match="all 100 were lost"):
        assert_not_miscalibrated(BELIEF, _model, _nothing, on_failure="record", failures_allowed=1.0)


def test_chains_that_cannot_be_tested_do_not_pass() -> None:
    """Single chains that are worth too few draws show nothing."""

    def slow(mu0: Any, y: Any, rng: Any) -> Any:
        steps = rng.normal(size=60)
        for i in range(1, 60):
            steps[i] = 0.98 * steps[i - 1] + 0.2 * steps[i]
        return rt.Draws(y / 2 + steps, chains=1)

    with pytest.raises(rt.errors.InvalidStudy, match="too few or too slow"):
        assert_not_miscalibrated(BELIEF, _model, slow)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"datasets": 2}, "datasets must be 1 here, but 2 arrived"),
        ({"f": rt.Mahalanobis()}, "every test function sees more"),
        ({"false_alarm": 0}, "strictly between 0 and 1"),
        ({"first": 0}, "first must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_promised_is_refused(settings: Any, message: str) -> None:
    """Settings under which the chance of a false alarm is not known, or nothing is tested."""
    with pytest.raises(rt.errors.InvalidStudy, match=message):
        assert_not_miscalibrated(BELIEF, _model, _right, **settings)


def test_unknown_settings_are_refused() -> None:
    """Those of a verdict among them: there is none unless it fails."""
    with pytest.raises(TypeError, match="takes no keyword 'alpha'"):
        assert_not_miscalibrated(BELIEF, _model, _right, alpha=0.05)  # type: ignore[call-arg]


def test_unittest_counts_it_as_a_failure() -> None:
    """It is an AssertionError, so that unittest reports a failure and no error."""

    class Case(unittest.TestCase):
        def test_right(self) -> None:
            assert_not_miscalibrated(BELIEF, _model, _right, false_alarm=1e-6)

        def test_wrong(self) -> None:
            assert_not_miscalibrated(BELIEF, _model, lambda mu0, y: rt.Normal(y / 2, 0.1))

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert (result.testsRun, len(result.failures), len(result.errors)) == (2, 1, 0)
