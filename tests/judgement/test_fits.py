"""Single fits: what is flagged, what flags could mean for the verdict, and what their truths have in common."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.judgement.fits import taken_for_lost
from tests.builders import BELIEF, SD, noisy, refusal, says


def chains(mode: str, *, share: float, width: float = 1.0) -> Any:
    """Return a procedure with 4 x 60 draws of the exact posterior, of which a share of the fits goes wrong."""

    def fit(mu0: Any, y: Any, rng: np.random.Generator) -> rt.Draws:
        draws = rng.normal(size=(4, 60))
        if rng.random() < share:
            centres = rng.normal(size=(4, 1))
            # Each chain is one draw of the posterior, and its neighbourhood.
            draws = {"constant": centres + 0 * draws, "apart": centres + 0.01 * draws, "one": draws}[mode]
            if mode == "one":
                draws[2] = draws[2, 0]
        return rt.Draws((y / 2 + width * SD * draws).ravel(), chains=4)

    return fit


@pytest.mark.parametrize("mode", ["constant", "apart", "one"])
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_fits_that_do_not_mix_are_counted_and_end_nothing(mode: str, share: float) -> None:
    """From the first replicate on; the sentence counts them and names the parameter, and the level holds (1e-6).

    Each chain is a draw of the posterior that never moves: stationary, so that the test of chains holds its level.
    """
    result = rt.check(BELIEF, noisy, chains(mode, share=share), n=100, alpha=1e-6)
    flags = {one.name: one for one in result.diagnostics.flags}
    many = flags["mixing"].count
    # Binomial(100, .2): outside 2 to 47 with probability below 1e-6.
    assert many == 100 if share == 1 else 2 <= many <= 47
    says(result.sentence, rf"{many} of 100 fits did not mix \(theta in {many}")
    assert ("a chain never moves, and is worth one draw" in result.sentence) is (mode != "apart")
    assert result.verdict is not rt.Verdict.MISCALIBRATED


def test_the_level_holds_with_fits_that_did_not_mix() -> None:
    """A fifth of the fits are chains that never moved, at n = 1000: not called at 1e-6; half the sd is (the twin)."""
    rng = np.random.default_rng(1)
    draws = rng.normal(size=(1000, 4, 50))
    draws[:200] = draws[:200, :, :1]
    for width, called in ((1.0, False), (0.5, True)):
        result = rt.check_draws(rng.normal(size=1000), width * draws, chains=4, f=rt.identity, alpha=1e-6)
        assert (result.verdict is rt.Verdict.MISCALIBRATED) is called
        assert result.diagnostics.flagged.sum() == 200


def test_fits_that_did_not_mix_certify_nothing() -> None:
    """With a wide tolerance a run is certified, and not if a quarter of its fits never moved; a few leave it be."""
    wide = rt.Tolerance(spread=0.6, bias=0.6, coverage=0.2, distance=0.3)
    rng = np.random.default_rng(2)
    truth, draws = rng.normal(size=600), rng.normal(size=(600, 4, 50))
    for stuck, verdict in ((0, "WITHIN_TOLERANCE"), (3, "WITHIN_TOLERANCE"), (150, "INCONCLUSIVE")):
        draws[:stuck] = draws[:stuck, :, :1]
        result = rt.check_draws(truth, draws, chains=4, f=rt.identity, tolerance=wide)
        assert result.verdict.value == verdict
        assert result.diagnostics.verdicts[0].verdict is result.verdict if stuck else not result.diagnostics.verdicts
    says(result.sentence, "whatever the fits that did not mix would have been", "150 of 600 fits did not mix")


def test_verdicts_side_by_side() -> None:
    """As they came; with flagged fits lost, which is the p-value for the most innocent values; and without them."""
    rng = np.random.default_rng(3)
    truth, draws = rng.normal(size=300), rng.normal(size=(300, 4, 50))
    draws[:60] = 8 + 0.01 * draws[:60] + np.arange(4)[:, None]
    result = rt.check_draws(truth, draws, chains=4, f=rt.identity)
    came, lost, without = result.diagnostics.verdicts
    assert (came.verdict, came.pvalue) == (result.verdict, result.pvalue)
    assert came.verdict is rt.Verdict.MISCALIBRATED
    nan = draws.copy()
    nan[:60] = np.nan
    assert lost.pvalue == rt.check_draws(truth, nan, chains=4, f=rt.identity, on_failure="record").pvalue
    assert without.pvalue == rt.check_draws(truth[60:], draws[60:], chains=4, f=rt.identity).pvalue
    assert [one.n for one in (came, lost, without)] == [300, 300, 240]
    says(
        str(result.diagnostics), "whatever the 60 flagged would be", "without the 60 flagged", "no verdict on the proc"
    )


@pytest.mark.parametrize(("left", "lines"), [(0, 2), (1, 2), (2, 3)])
def test_a_few_fits_that_are_left_end_nothing(left: int, lines: int) -> None:
    """Without flagged fits nothing may be left, or one, which has nothing to be compared with."""
    said = np.arange(30) >= left

    def fit(mu0: Any, y: Any, rng: np.random.Generator) -> rt.Draws:
        return rt.Draws(y / 2 + SD * rng.normal(size=(40, 30)), iid=True, diagnostics={"divergences": said})

    assert len(rt.check(BELIEF, noisy, fit, n=30, batch=30).diagnostics.verdicts) == lines


def test_lost_and_flagged_are_lost_once() -> None:
    """Failures stay what they were, and flagged fits join them in order."""
    ran = rt.run(BELIEF, noisy, chains("apart", share=0.3), n=20)
    flagged = rt.diagnostics(ran).flagged
    found = taken_for_lost(taken_for_lost(ran, flagged), flagged)
    np.testing.assert_array_equal([one.replicate for one in found.failures], np.flatnonzero(flagged))


def funnel(mu0: Any, y: Any, rng: np.random.Generator) -> rt.Draws:
    """Return the posterior of two numbers; where the second was seen to be small, the sampler says it diverged."""
    draws = np.asarray(y) / 2 + SD * rng.normal(size=(80, 2))
    return rt.Draws(draws, iid=True, diagnostics={"divergences": float(y[1] < -0.5), "acceptance": rng.random()})


@pytest.fixture(scope="module")
def diverging() -> rt.Result:
    """Return a run whose fits diverge for small data."""
    belief = rt.Normal(np.zeros(2), np.ones(2))
    return rt.check(belief, noisy, funnel, n=200)


def test_what_truths_of_flagged_fits_have_in_common_is_said(diverging: rt.Result) -> None:
    """The parameter, the border and the counts, which are those of the record."""
    found = diverging.diagnostics
    (flag,) = found.flags
    truth = diverging.replicates.truth[:, 1]
    assert flag.fits.tolist() == (diverging.replicates.arrays["diagnostic/divergences"] > 0).tolist()
    says(flag.text, rf"^{flag.count} of 200 fits diverged, among them .* whose true theta\[1\] was below")
    border = float(flag.text.split("below ")[1].split(",")[0])
    beyond = truth < border
    many = "all" if flag.fits[beyond].all() else f"{flag.fits[beyond].sum()} of the"
    says(flag.text, f"among them {many} {beyond.sum()} whose")
    assert f"{flag.text}; see result.diagnostics." in diverging.notes


def test_nothing_is_said_of_truths_that_have_nothing_to_do_with_flags() -> None:
    """Flags at random name no parameter: one in 100 runs would, and so more than 6 of 40 with probability 2e-7."""
    rng = np.random.default_rng(0)
    named = 0
    for _ in range(40):
        said = {"divergences": (rng.random(60) < 0.4) * 1.0}
        draws = rt.Draws(rng.normal(size=(30, 60, 3)), iid=True, diagnostics=said)
        ran = rt.run(rt.Normal(np.zeros(3), np.ones(3)), noisy, lambda mu0, y, one=draws: one, n=60, batch=60)
        named += "among them" in rt.diagnostics(ran).flags[0].text
    assert named <= 6


def test_limits_of_ones_own(diverging: rt.Result) -> None:
    """A limit flags, None takes one away, and what is unknown or no limit is refused."""
    found = rt.diagnostics(diverging, limits={"acceptance": (0.25, 1), "divergences": None})
    (flag,) = found.flags
    values = diverging.replicates.arrays["diagnostic/acceptance"]
    assert flag.fits.tolist() == (values < 0.25).tolist()
    says(flag.text, rf"^{(values < 0.25).sum()} of 200 fits have acceptance below 0.25 or above 1$")
    assert {one.name: one.limit for one in found.lines} == {"acceptance": "0.25 to 1", "divergences": "-"}
    assert not rt.diagnostics(diverging, limits={"divergences": 1}).flags
    says(refusal(lambda: rt.diagnostics(diverging, limits={"k-hat": 1})), "acceptance", "'k-hat'")
    for wrong in ("high", (1, 0), (1, 2, 3), float("nan")):
        says(refusal(partial(rt.diagnostics, diverging, limits={"acceptance": wrong})), "limit of 'acceptance'")
    with pytest.raises(TypeError, match="Result or Replicates"):
        rt.diagnostics(diverging.replicates.u)  # type: ignore[arg-type]


def test_a_store_keeps_what_is_known_of_fits(tmp_path: Path) -> None:
    """A run from a file has the same diagnostics and flags as one in memory."""
    study = rt.Study(BELIEF, noisy, chains("apart", share=0.3))
    kept, fresh = rt.diagnostics(rt.run(study, n=30, store=tmp_path / "run.db")), rt.diagnostics(rt.run(study, n=30))
    for name, values in fresh.columns.items():
        np.testing.assert_array_equal(kept.columns[name], values)
    assert [one.text for one in kept.flags] == [one.text for one in fresh.flags]


def test_looking_at_verdicts_is_no_look(tmp_path: Path) -> None:
    """The file of a run counts judgements, and not the lines beside them."""
    ran = rt.run(BELIEF, noisy, chains("apart", share=0.3), n=70, store=tmp_path / "run.db")
    result = rt.judge(ran)
    assert len(result.diagnostics.verdicts) == 3
    assert rt.judge(ran).look.number == result.look.number == 1


def test_a_run_without_diagnostics_says_so() -> None:
    """Exact laws have none; nothing is flagged, and the page has nothing to show."""
    result = rt.check(BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, SD), n=20)
    says(str(result.diagnostics), "Nothing is known of single fits")
    assert result.diagnostics.to_dict() == {"lines": [], "flags": [], "flagged": 0, "verdicts": []}


def test_nan_in_one_chain_is_said() -> None:
    """The fit is lost, and the reason says in how many of its chains; nan in all of them is not called a chain's."""

    def fit(mu0: Any, y: Any, rng: np.random.Generator) -> rt.Draws:
        draws = rng.normal(size=(4, 60))
        draws[: 1 if y > 0 else 4, 30] = np.nan
        return rt.Draws(draws.ravel(), chains=4)

    ran = rt.run(BELIEF, noisy, fit, n=20, f=rt.identity, on_failure="record", failures_allowed=1.0)
    reasons = {one.error.partition("infinite")[2] for one in ran.failures}
    assert reasons == {" in 1 of 4 chains", ""}
