"""One statement over a set of beliefs: its two error rates with a broken twin, and the one that is wrong by name."""

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue.comparison.beliefs import over
from ringtrue.judgement.judging import judge
from ringtrue.replicates.record import Replicates
from tests.builders import noisy, normal, posterior, refusal, says, scores

FALSE_ALARM = 1e-6
MIS, FINE, OPEN = rt.Verdict.MISCALIBRATED, rt.Verdict.WITHIN_TOLERANCE, rt.Verdict.INCONCLUSIVE


def bayes(mu0: Any, y: Any) -> rt.Normal:
    """Return the exact posterior for any normal belief with mean 0."""
    weight = mu0.sd**2 / (mu0.sd**2 + 1)
    return rt.Normal(weight * y, math.sqrt(weight))


def widths(many: int) -> dict[str, rt.Normal]:
    """Return beliefs of several widths."""
    return {f"sd {sd:.2g}": rt.Normal(0, sd) for sd in np.geomspace(0.5, 4, many)}


def law(spread: float = 1.0, n: int = 4000) -> Replicates:
    """Return replicates whose scores are the quantiles of N(0, spread^2)."""
    return scores(spread * normal(n))


# The rule.


def test_one_wrong_belief_of_ten_is_found_and_named() -> None:
    """Nine beliefs are calibrated and one is over-confident by a factor of 1.5: its name is in the sentence."""
    found = over({**{f"b{i}": law() for i in range(9)}, "the odd one": law(1.5)})
    assert (found.verdict, found.worst) == (MIS, "the odd one")
    assert found.verdicts == {**{f"b{i}": FINE for i in range(9)}, "the odd one": MIS}
    says(found.sentence, "MISCALIBRATED over a set of 10 beliefs", "not calibrated to 'the odd one'", "over-confident")
    assert found.pvalue == min(1.0, 10 * found.results["the odd one"].pvalue)


def test_a_certificate_needs_every_belief_and_no_share() -> None:
    """Replicates that are certified at alpha and not at alpha / 20 are certified over twenty beliefs."""
    n = next(n for n in range(100, 2000, 50) if judge(law(n=n)).verdict is FINE)
    assert judge(law(n=n), alpha=0.05 / 20).verdict is OPEN
    assert over({str(i): law(n=n) for i in range(20)}).verdict is FINE
    one_open = over({**{str(i): law(n=n) for i in range(3)}, "few": law(n=50)})
    assert (one_open.verdict, one_open.verdicts["few"]) == (OPEN, OPEN)
    says(one_open.sentence, "INCONCLUSIVE over a set of 4 beliefs", "open for 'few'. Of 'few': ")


def test_evidence_is_shared_by_the_beliefs() -> None:
    """An error with p between alpha / 2 and alpha is one for a single belief, and open among two."""
    spread = 1.3
    n = next(n for n in range(20, 200) if 0.026 < judge(law(spread, n)).pvalue < 0.049)
    assert over({"alone": law(spread, n)}).verdict is MIS
    both = over({"one": law(spread, n), "other": law(n=n)})
    assert (both.verdict, both.verdicts["one"], both.results["one"].verdict) == (OPEN, OPEN, MIS)
    assert both.adjusted("one") == 2 * both.results["one"].pvalue


def test_calibrated_beliefs_are_rarely_called_wrong_and_a_loop_calls_them_often() -> None:
    """Ten calibrated beliefs, 40 times: at most 5 % are called miscalibrated (false alarm 1e-6).

    A loop that takes the smallest p-value as it is, the broken twin, rejects in 1 - 0.95^10 = 40 % of runs or nearly
    so; that at most 2 of 40 runs are has a chance below 1e-3 from 30 % on.
    """
    rng = np.random.default_rng(1)
    found = [over({str(i): scores(rng.standard_normal(40)) for i in range(10)}) for _ in range(40)]
    assert sum(one.pvalue <= 0.05 for one in found) <= stats.binom.isf(FALSE_ALARM, 40, 0.05)
    assert all(one.pvalue <= 0.05 for one in found if one.verdict is MIS)
    assert stats.binom.cdf(2, 40, 0.3) < 1e-3
    assert sum(min(r.pvalue for r in one.results.values()) <= 0.05 for one in found) > 2


# The call.


def test_the_procedure_is_handed_the_belief_and_is_calibrated_to_all() -> None:
    """The exact posterior is not called wrong for any of four widths; its own replicates are those of check."""
    found = rt.check_beliefs(widths(4), noisy, bayes, n=300, progress="off", seed=2)
    assert found.verdict is not MIS
    alone = rt.check(widths(4)["sd 1"], noisy, bayes, n=300, progress="off", seed=2)
    assert found.results["sd 1"].pvalue == alone.pvalue


def test_a_procedure_that_ignores_its_belief_is_wrong_for_another() -> None:
    """The posterior of N(0, 1) is right for that belief and named for the wide one."""
    found = rt.check_beliefs([rt.Normal(0, 1), rt.Normal(0, 4)], noisy, posterior, n=400, progress="off")
    assert (found.verdict, found.worst) == (MIS, "belief 2")
    assert found.verdicts["belief 1"] is not MIS
    with pytest.raises(rt.errors.Miscalibrated, match="'belief 2'"):
        found.assert_not_miscalibrated()
    with pytest.raises(rt.errors.Miscalibrated):
        found.assert_within_tolerance()


def test_each_belief_has_a_file_in_the_folder(tmp_path: Path) -> None:
    """A second call computes nothing anew and says the same."""
    calls = [rt.check_beliefs(widths(2), noisy, bayes, n=40, progress="off", store=tmp_path / "runs") for _ in range(2)]
    assert len(list((tmp_path / "runs").glob("*.db"))) == 2
    assert calls[0].sentence == calls[1].sentence


def test_the_answer_prints_and_is_plain_data() -> None:
    """The table has a row per belief, and JSON takes the dict."""
    found = over({"a": law(), "b": law(1.5)})
    text = str(found)
    says(text, r"belief +verdict +p +adjusted p", "\na ", "\nb ", "alpha = 0.05, over all beliefs")
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["verdicts"] == {"a": "WITHIN_TOLERANCE", "b": "MISCALIBRATED"}
    assert set(plain["results"]) == {"a", "b"}
    assert "2 beliefs" in repr(found)
    with pytest.raises(rt.errors.Inconclusive, match="INCONCLUSIVE"):
        over({"a": law(n=20)}).assert_within_tolerance()
    assert over({"a": law()}).assert_within_tolerance().assert_not_miscalibrated().worst == "a"
    for use in (list, bool):
        with pytest.raises(TypeError, match="verdict"):
            use(found)


def test_what_is_no_set_of_beliefs_is_refused() -> None:
    """A study, a function, nothing, and names that are equal as text."""
    study = rt.Study(rt.Normal(0, 1), noisy, posterior)
    for beliefs, said in (
        (study, "a Study came"),
        (lambda rng: rt.Normal(0, 1), "from_family"),
        ({}, "at least one"),
        ({1: rt.Normal(0, 1), "1": rt.Normal(0, 2)}, "differ as text"),
    ):
        says(refusal(partial(rt.check_beliefs, beliefs, noisy, posterior, n=10)), said)
    with pytest.raises(TypeError, match="check_beliefs takes no keyword 'm'"):
        rt.check_beliefs(widths(2), noisy, bayes, n=10, m=3)  # type: ignore[call-arg]


# A family drawn at random.


def family(rng: np.random.Generator) -> rt.Normal:
    """Return a belief whose width is random."""
    return rt.Normal(0, rng.uniform(0.5, 4))


def test_every_replicate_has_a_belief_of_its_own_and_its_procedure_is_handed_it() -> None:
    """The exact posterior for the belief at hand is within tolerance on average over the family; the note says so."""
    found = rt.check(rt.Study.from_family(family, noisy, bayes), n=3000, progress="off")
    assert found.verdict is FINE
    assert any("on average over the family" in note for note in found.notes)
    assert not found.suspicions


def test_a_procedure_with_one_belief_for_all_is_found() -> None:
    """The broken twin takes every belief for N(0, 1)."""
    found = rt.check(rt.Study.from_family(family, noisy, posterior), n=500, progress="off")
    assert found.verdict is MIS


def test_a_family_keeps_its_streams_and_random_procedures() -> None:
    """A procedure that takes rng is handed one; a replicate can be replayed, and workers change no bit."""

    def drawn(mu0: Any, y: Any, rng: Any) -> Any:
        return bayes(mu0, y).sample(20, rng)

    study = rt.Study.from_family(family, noisy, drawn, f={"theta": lambda t: t, "y": lambda t, y: t * y.data})
    one = rt.run(study, n=20, progress="off")
    theta, y, _ = rt.replay(study, 7)
    assert one.truth[7, 0] == theta
    assert 0.5 < y.belief.sd < 4
    np.testing.assert_array_equal(rt.run(study, n=20, workers=2, progress="off").u, one.u)


def test_what_is_no_family_is_refused() -> None:
    """A list, a batch, and a function that returns no belief."""
    says(refusal(lambda: rt.Study.from_family([rt.Normal(0, 1)], noisy, bayes)), "function of rng", "check_beliefs")
    says(refusal(lambda: rt.Study.from_family(family, noisy, bayes, batch=10)), "leave out batch=")
    says(refusal(lambda: rt.Study.from_family(lambda rng: 3.0, noisy, bayes)), "belief")
