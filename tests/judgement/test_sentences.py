"""Sentences say what is wrong, how much, which way and what to do, in numbers that read well."""

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue import plots
from ringtrue.functions import as_testfunctions
from ringtrue.judgement.result import Resolution
from ringtrue.judgement.sentences import phrases
from ringtrue.judgement.sentences.miscalibrated import _likely
from ringtrue.judgement.sentences.phrases import interval, listed, points, share_of
from ringtrue.judgement.text import counted, format_p, number, percent
from ringtrue.procedures import DataAgnostic, Inflated
from ringtrue.statistics.effects import Interval

from ..builders import BAYES, BELIEF, checked, complete, grid, noisy, normal, ranked, replicates, says, scores

#: What never belongs in a sentence.
UGLY = re.compile(
    r"\binf\b|\bnan\b|-0\.0+\b(?!\d)|\d\.\d{7}|\d{6}\.\d|\b1 (points|replicates|outputs|draws)\b|;;|\.\.|, ,"
)


def said(z: Any) -> str:
    """Return the sentence about exact scores."""
    return rt.judge(scores(z)).sentence


# Numbers.


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (-0.0004, "0.00"),
        (1.416, "1.42"),
        (57.31, "57.3"),
        (712.4, "712"),
        (711174.24, "7.1e5"),
        (6e5, "6e5"),
        (0, "0.00"),
    ],
)
def test_numbers_have_the_figures_they_deserve(x: float, text: str) -> None:
    """No minus nothing, no figures that nobody asked for."""
    assert number(x) == text
    assert number(-x).lstrip("-") == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.764, "76 %"), (0.9962, "99.6 %"), (1.0, "100 %"), (0.0, "0 %"), (0.98, "98 %"), (0.004, "0.4 %")],
)
def test_percentages_have_decimals_near_the_ends_only(share: float, text: str) -> None:
    """A share that is not all never reads 100 %, and one that is not nothing never 0 %."""
    assert percent(share) == text


def test_plurals() -> None:
    """One is one."""
    assert counted(1, "draw") == "1 draw"
    assert points(1.0) == "1 point"
    assert points(5.000000000000001) == "5 points"
    assert listed(["a"]) == "a"
    assert listed("ab") == "a and b"
    assert listed("abcde") == "a, b, c and 2 more"


def test_intervals_of_wild_numbers_are_bounds() -> None:
    """Infinite, huge and tiny factors are bounds."""
    assert interval(Interval("spread", np.inf, 2.678, np.inf, 1.0)) == "more than 2.68"
    assert interval(Interval("spread", 7e5, 6.3e5, 8e5, 1.0)) == "more than 6e5"
    assert interval(Interval("spread", 9e-5, 8e-5, 1e-4, 1.0)) == "less than 0.0001"
    assert interval(Interval("bias", -0.3, -0.4, -0.2, 0.0), absolute=True) == "0.30 (0.20-0.40)"


def test_numbers_that_would_read_the_same_have_more_figures() -> None:
    """Shares and small numbers of large runs keep the figures that tell them apart; a factor is never 0.00."""
    row = Interval("coverage", 0.90031, 0.89961, 0.90102, 0.9)
    assert share_of(row) == "90.03 % (89.96-90.10)"
    assert share_of(replace(row, low=0.88, high=0.92)) == "90 % (88-92)"
    assert interval(Interval("spread", 0.001, 0.0, 0.151, 1.0)) == "less than 0.16"
    assert interval(Interval("spread", 3e-13, 2e-13, 4e-13, 1.0)) == "less than 1e-12"
    assert number(-2.6e-9, 6) == "-3e-9"
    assert number(-2.5e-9) == "0.00"


LAWS = {
    "calibrated": normal(400),
    "wide": 1.4 * normal(400),
    "huge": 7e5 * normal(200),
    "tiny": 1e-4 * normal(200),
    "far": 500 + normal(200),
    "infinite": np.where(np.arange(100) % 2, np.inf, -np.inf),
    "above": np.full(100, np.inf),
    "one infinite": np.append(normal(199), np.inf),
    "constant": np.zeros(50),
    "one": [0.3],
    "two": [0.3, -0.2],
    "three": [0.3, -0.2, 0.9],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_sentences_hold_nothing_ugly(name: str) -> None:
    """No infinities, no minus nothing, no plural of one, one full stop at the end, whatever the scores."""
    text = said(LAWS[name])
    assert not UGLY.search(text), text
    assert text.endswith(".")


def test_tables_of_measures_hold_nothing_ugly() -> None:
    """Wild measures are written with few figures, in the table of a result and in that of measures."""
    truth = 1e-3 * normal(200)
    sd = np.full(200, 1e9)
    ran = scores(truth / sd, truth=truth, sd=sd, crps=sd)
    for text in (str(rt.measure(ran)), str(rt.judge(ran))):
        numbers = re.findall(r"(?<![\w.])-?\d[\d.]*(?:e-?\d+)?", text)
        assert max(map(len, numbers)) <= 10
        assert not re.search(r"\b0\.0{5,}\b", text)
        assert "e2" in text


def test_the_ugly_would_be_seen() -> None:
    """The broken twin: what the sentences used to say is found."""
    for text in ("0.00 to inf", "bias -0.00 sd", "by 711174.24 times", "within 1 points"):
        assert UGLY.search(text)


# What is wrong, how much, which way.


def test_plain_errors_have_plain_sentences() -> None:
    """Spread and bias alone keep their own words, and one verb each."""
    assert re.search(r"theta is over-confident: multiply its reported sd by 1\.4", said(1.4 * normal(400)))
    assert "theta is under-confident: multiply its reported sd by 0.70" in said(0.7 * normal(400))
    both = said(1.4 * normal(400) + 1)
    assert re.search(r"is over-confident: .* \(.*\), and biased: outputs lie 1\.00 \(.*\) of their sd below", both)
    assert both.count(" is ") == 1


def test_what_is_tolerated_is_no_error_beside_what_is_not() -> None:
    """A bias of 0.05 sd that is evident at n = 40,000 is named as inside the tolerance, a spread likewise."""
    narrow = said(1.4 * normal(40_000) + 0.05)
    says(narrow, "theta is over-confident: multiply", r"; a bias of 0\.05\d? \(.*\) sd is inside the tolerance")
    assert "biased" not in narrow
    moved = said(1.04 * normal(40_000) + 0.5)
    says(moved, "theta is biased: outputs lie", r"; a spread factor of 1\.04\d? \(.*\) is inside the tolerance")
    assert "over-confident" not in moved


def test_a_further_function_is_tagged_with_what_is_not_tolerated() -> None:
    """Beside a bias that is outside the tolerance, a spread inside it is not what a function is off by."""
    z = np.column_stack([3 * normal(40_000), 1.04 * normal(40_000) + 0.5, 1.05 * normal(40_000)])
    sentence = rt.judge(scores(z, names=["a", "b", "c"])).sentence
    says(sentence, r"\(biased, 0\.50 sd below the truth\)", r"\(over-confident, sd times 1\.05, inside the tolerance\)")


@pytest.mark.parametrize(
    ("z", "words"),
    [
        ((special.gammaincinv(4.0, (np.arange(800) + 0.5) / 800) - 4) / 2, "truths reach further above the outputs"),
        (-(special.gammaincinv(4.0, (np.arange(800) + 0.5) / 800) - 4) / 2, "truths reach further below the outputs"),
        (np.concatenate([0.3 * normal(400) - 0.95, 0.3 * normal(400) + 0.95]), "truths avoid the middle"),
        (
            np.concatenate([0.4 * normal(400), 1.36 * normal(400)]),
            "the outputs' tails are too light, or their widths do not follow the data",
        ),
    ],
)
def test_shapes_are_not_read_as_spread(z: Any, words: str) -> None:
    """With the right mean and sd, sentence and picture name the shape and say that no factor corrects it."""
    text = said(z)
    assert words in text
    assert "no factor on their sd corrects that" in text
    assert "confident" not in text
    assert words in plots.reading(scores(z))


def test_outliers_are_counted_and_not_widened_for() -> None:
    """A few wild outputs are told with their number and size, by the sentence and the picture."""
    z = np.concatenate([normal(490), np.full(10, 20.0)])
    text = said(z)
    assert (
        "10 of 500 outputs miss the truth by more than 19 of their sd; fix those, widening all would hide them" in text
    )
    assert re.search(r"without them the spread factor is (1\.00|0\.99)", text)
    assert plots.reading(scores(z)).startswith("theta is spiked at the upper end: outliers, 10 of 500 outputs miss")
    assert "1 of 491 outputs misses the truth by more than 19 of its sd; fix that one" in said(z[:491])


def test_far_misses_that_ranks_do_not_see_are_told() -> None:
    """Truths far beyond nine draws are named though nothing was found; none, and nothing is said."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 9))
    truth = rng.normal(size=600)
    calm = rt.check_draws(truth, x)
    wild = rt.check_draws(np.where(np.arange(600) < 4, 100.0, truth), x)
    assert "miss the truth" not in calm.sentence
    assert "4 of 600 outputs miss the truth by more than" in wild.sentence


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_skewed_shape_says_which_way_to_skew(sign: int) -> None:
    """Truths that reach further to one side, as of outputs skewed to the other, ask for longer tails there."""
    gamma = (special.gammaincinv(4.0, (np.arange(800) + 0.5) / 800) - 4) / 2
    text = said(sign * gamma)
    sides = ("above", "below") if sign > 0 else ("below", "above")
    assert "lengthen the outputs' tails {} and shorten those {}".format(*sides) in text


def test_misses_of_discrete_outputs_are_hedged_for_their_few_values() -> None:
    """Truths that repeat each other get a second way out; a miss of fewer than five sd is not spoken of."""
    draws = np.tile((np.arange(99) < 1).astype(float), (600, 1))
    ranks = np.arange(600) % 100
    truth = np.where(ranks == 99, 1.0, 0.0)
    known = {"truth": truth, "mean": draws.mean(1), "sd": draws.std(1, ddof=1)}
    text = rt.judge(ranked(ranks, 99, **known)).sentence
    assert "6 of 600 outputs miss the truth by more than 9 of their sd" in text
    assert "unless outputs have such tails or few values, fix them" in text
    assert "miss the truth" not in rt.judge(ranked(ranks, 99, **{**known, "sd": 0 * truth + 0.2})).sentence


def test_misses_of_a_distance_are_those_of_its_entries() -> None:
    """The default distance has heavy tails by itself; entries that miss by far are named, it is not."""
    ranks = np.column_stack([np.arange(600) % 20, (7 * np.arange(600)) % 20])
    truth = np.where((ranks == 19) & (np.arange(600)[:, None] < [20, 200]), 30.0, 0.0)
    known: dict[str, Any] = {"truth": truth, "mean": 0 * truth, "sd": 0 * truth + 1}
    assert "Of b, 10 of 600 outputs miss" in rt.judge(ranked(ranks, 19, names=["a", "b"], **known)).sentence
    distance = ranked(ranks, 19, names=["a", "b"], kinds=["coordinate", "distance"], **known)
    assert "Of a, 1 of 600 outputs misses" in rt.judge(distance).sentence


def test_a_spread_that_ranks_do_not_tell_is_told_by_the_errors() -> None:
    """Truths five sd away on either side ask for a factor of five, not of hundreds; so do sentence and picture."""
    truth = 5.0 * np.where(np.arange(1000) % 2, 1.0, -1.0)
    ran = ranked(np.where(truth > 0, 99, 0), 99, truth=truth, mean=0 * truth, sd=0 * truth + 1, names=["theta"])
    assert (
        "theta is over-confident: errors are 5.0 times its reported sd, multiply it by that" in rt.judge(ran).sentence
    )
    assert "over-confident, errors are 5.0 times the reported sd, multiply it by that" in plots.reading(ran)
    unknown = ranked(np.where(truth > 0, 99, 0), 99)
    assert "multiply its reported sd by more than" in rt.judge(unknown).sentence


def test_truths_outside_the_support_read_alike_in_sentence_and_picture() -> None:
    """Where scores are infinite no factor is made up for them."""
    z = np.where(np.abs(normal(400)) > 0.6, np.copysign(np.inf, normal(400)), normal(400))
    words = "truths lie where outputs have no probability, on either side; widen them by far"
    for text in (said(z), plots.reading(scores(z))):
        assert words in text
        assert "multiply" not in text
    one_sided = np.where(normal(400) > 0.6, np.inf, normal(400))
    for text in (said(one_sided), plots.reading(scores(one_sided))):
        assert "truths lie where outputs have no probability, above them" in text


@pytest.mark.parametrize("scale", [1e-8, 1e-12, 1e-15, 0.0])
def test_scores_that_are_all_equal_are_under_confident(scale: float) -> None:
    """However much too wide the outputs are, they are said to be, with a bound."""
    text = said(scale * normal(300))
    assert re.search(r"theta is under-confident: multiply its reported sd by less than 1e-\d\b", text)
    assert "wrong shape" not in text


def test_marginal_evidence_is_said_to_be_marginal() -> None:
    """Where no interval excludes its ideal, the likeliest error is said to seem so, if there is one."""
    spread = Interval("spread", 1.06, 0.99, 1.14, 1.0)
    bias = Interval("bias", -0.09, -0.19, 0.01, 0.0)
    seems = "seems over-confident: its reported sd times 1.06 (0.99-1.14) would be right"
    assert _likely({"spread": spread}) == seems
    seems = "seems biased: outputs lie 0.09 (-0.01 to 0.19) of their sd above the truth"
    assert _likely({"spread": replace(spread, estimate=1.01), "bias": bias}) == seems
    assert _likely({"spread": replace(spread, estimate=1.01)}) == ""


def test_other_test_functions_are_listed() -> None:
    """The worst is described, the next have a tag, the rest are counted; functions of entries are not repeated."""
    u = np.column_stack([grid(500, spread=s, bias=b) for s, b in ((2.0, 0), (1, 0.6), (1.5, 0), (1.4, 0), (1.3, 0))])
    text = rt.judge(replicates(u, names=list("abcde"))).sentence
    assert text.startswith("MISCALIBRATED (strong, p < 1e-") or "a is over-confident" in text
    assert re.search(r"Also off: \w \(.*\), \w \(.*\), \w and 1 more\.", text)
    alone = checked(Inflated(BAYES, 0.5), 1000).sentence
    assert "Also off" not in alone


@pytest.mark.parametrize("name", ["sum", "distance", "all coordinates"])
@pytest.mark.parametrize("own", [lambda t: t[1], rt.Linear([0.0, 1.0])], ids=["lambda", "Linear"])
def test_a_function_of_the_users_is_listed_whatever_its_name(name: str, own: Any) -> None:
    """An f that is off is named, though the default family has one of that name which would not be."""
    rng = np.random.default_rng(4)
    draws, theta = rng.normal(size=(600, 39, 2)), 2 * rng.normal(size=(600, 2))
    f = rt.check_draws(theta, draws, f=[rt.Coordinate(index=(0,)), *_as_named(own, name)])
    assert f.sentence.startswith("MISCALIBRATED (strong, ")
    assert f"Also off: {name} (over-confident, sd times " in f.sentence
    usual = rt.check_draws(theta, draws)
    rejected = {row.f for row in usual.tests if row.adjusted < 1e-6}
    assert {"sum", "distance", "theta[0]", "theta[1]"} <= rejected
    assert re.search(r"Also off: theta\[[01]\] \([^()]*\)\.", usual.sentence)


def _as_named(f: Any, name: str) -> tuple[Any, ...]:
    return as_testfunctions({name: f})


# Other levels.


def test_joint_regions_have_size_and_direction() -> None:
    """A wrong correlation reads as regions that contain the truth too rarely, and says where to look."""
    belief = rt.Gaussian(np.zeros(2), np.eye(2))
    cov = np.array([[0.5, 0.4], [0.4, 0.5]])
    f = [rt.Coordinate(index=(0,)), rt.Coordinate(index=(1,)), rt.LogDensity()]
    result = rt.check(belief, noisy, lambda mu0, y: rt.Gaussian(y / 2, cov), n=400, f=f)
    found = re.search(r"highest-density regions that claim 90 % contain the truth (\d+) % \(", result.sentence)
    assert found
    assert int(found[1]) == round(100 * float((result.replicates.u[:, 2] >= 0.1).mean()))
    assert "over-confident, they are too small" in result.sentence
    assert "look at correlations" in result.sentence


@pytest.mark.parametrize(
    ("eta", "words"),
    [(0.4, "jointly over-confident, they are too small"), (2.5, "jointly under-confident, they are too large")],
)
@pytest.mark.parametrize("f", [rt.Mahalanobis(), {"M": rt.Mahalanobis()}], ids=["as it is", "renamed"])
def test_ellipsoids_are_too_small_if_outputs_are_too_narrow(eta: float, words: str, f: Any) -> None:
    """Small distances are inside, whatever the user calls the Mahalanobis distance."""
    belief = rt.Gaussian(np.zeros(2), np.eye(2))
    result = rt.check(belief, noisy, lambda mu0, y: rt.Gaussian(y / 2, np.eye(2) * eta / 2), n=400, f=f)
    found = re.search(
        r"ellipsoids that claim 90 % contain the truth ([\d.]+) % \(.*\) of the time: (.*)", result.sentence
    )
    assert found
    assert found[2].startswith(words)
    assert float(found[1]) == pytest.approx(100 * float((result.replicates.u <= 0.9).mean()), abs=0.5)


@pytest.mark.parametrize("belief", [BELIEF, lambda rng: rng.normal()], ids=["exact", "drawn"])
def test_the_weak_level_has_size_and_direction(belief: Any) -> None:
    """A flat prior, whose outputs are right for theta and too far apart, is told by how much and what to check.

    Draws of the outputs have sd sqrt(3). The ratio of two sds of 600 normal draws is off by 4 %; six times that.
    """
    result = rt.check(belief, noisy, lambda mu0, y: rt.Normal(y, 1), n=600, f=rt.identity)
    found = re.search(r"wider than the belief, ([\d.]+) \(([\d.]+)-([\d.]+)\) times its sd", result.sentence)
    assert found
    size, low, high = map(float, found.groups())
    assert size == pytest.approx(3**0.5, rel=0.25)
    # The interval is as wide as the noise of one sample, or of two where the belief is known by draws only.
    noise = (1 / 1200) ** 0.5 * (2**0.5 if callable(belief) else 1)
    assert np.log(high / low) == pytest.approx(2 * 1.96 * noise, rel=0.17)
    assert "uses the belief that truths are drawn from" in result.sentence


# Lost replicates, few replicates, and enough of them.


def test_tolerable_losses_are_those_that_leave_a_verdict() -> None:
    """With at most the number of losses that the sentence names the verdict stands, with one more it does not."""
    ran = _by_ranks(2000, lost=tuple(range(150)))
    text = rt.judge(ran).sentence
    found = re.search(r"it would hold with at most (\d+) lost: fix (\d+) of them", text)
    assert found
    most = int(found[1])
    assert most + int(found[2]) == 150
    fewer, more = (_with_losses(ran, lost) for lost in (most, most + 1))
    assert rt.judge(fewer).verdict is rt.Verdict.WITHIN_TOLERANCE
    assert rt.judge(more).verdict is rt.Verdict.INCONCLUSIVE


def _by_ranks(n: int, lost: Sequence[int]) -> rt.Replicates:
    """Return calibrated ranks; a single exact score could move mean and sd arbitrarily far, a rank cannot."""
    return ranked(np.random.default_rng(7).permutation(np.arange(n) % 100), 99, lost=lost)


def _with_losses(ran: rt.Replicates, lost: int) -> rt.Replicates:
    """Return the replicates without the first of those that were lost."""
    return ran.pick(slice(ran.lost - lost, None))


def test_losses_that_do_not_matter_are_told() -> None:
    """A verdict that stands in spite of losses says so."""
    assert "whatever the 2 lost replicates would have been" in rt.judge(_by_ranks(3000, lost=(1, 2))).sentence


def test_a_lost_exact_output_could_have_been_anywhere() -> None:
    """One of 4000 may lie 10^6 sd off, which no bound on the spread survives: without it the verdict would hold."""
    z = normal(4000)
    whole, lost = (rt.judge(scores(z, lost=some)) for some in ((), (17,)))
    assert whole.verdict is rt.Verdict.WITHIN_TOLERANCE
    assert lost.verdict is rt.Verdict.INCONCLUSIVE
    assert "it would hold without that loss" in lost.sentence
    returned = rt.judge(scores(np.where(np.arange(4000) == 17, 1e6, z)))
    assert returned.verdict is rt.Verdict.MISCALIBRATED


def test_a_loss_that_is_not_the_trouble_is_not_blamed() -> None:
    """With few replicates, more are asked for, once the failures are fixed."""
    text = rt.judge(complete(100, lost=(1,))).sentence
    assert "1 of 100 replicates was lost, and the verdict must hold whatever it would have been" in text
    assert re.search(r"even without losses it would be open, about \d+ more replicates", text)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3])
def test_advice_after_losses_is_that_for_no_losses(share: float) -> None:
    """How many more replicates are needed does not depend on how much losses widen the intervals."""
    kept, lost = 200, round(200 * share / (1 - share))
    z = np.concatenate([normal(kept), np.zeros(lost)])
    ran = scores(z, lost=range(kept, kept + lost))
    after, without = rt.judge(ran).sentence, said(normal(kept))
    found = [re.search(r"(about \d+ more replicates would certify .*? points)", text) for text in (after, without)]
    assert found[0]
    assert found[1]
    assert found[0][1] == found[1][1]


def test_what_is_at_its_limit_is_named() -> None:
    """After losses, no measure was named before, and the advice names it."""
    z = np.concatenate([normal(500) + 0.095, np.zeros(40)])
    text = rt.judge(scores(z, lost=range(500, 540))).sentence
    assert "it would be open, the bias of theta is so near the limit of its tolerance, -0.10 to 0.10 sd, that" in text


@pytest.mark.parametrize(("n", "words"), [(1, "1 replicate tells"), (2, "2 replicates tell"), (3, "3 replicates tell")])
def test_few_replicates_are_told_how_many_more(n: int, words: str) -> None:
    """One, two or three replicates tell next to nothing, and the number that would is named."""
    text = said(np.linspace(-0.5, 0.8, n))
    assert f"{words} next to nothing; about 890 more replicates would certify" in text


@pytest.mark.parametrize("n", [50, 300, 600, 700])
def test_the_number_of_replicates_would_settle_it(n: int) -> None:
    """The same scores, as many times as the sentence asks for, are within tolerance."""
    z = 1.03 * normal(n) + 0.04
    result = rt.judge(scores(z))
    assert result.verdict is rt.Verdict.INCONCLUSIVE
    found = re.search(r"about (\d+) more replicates would certify", result.sentence)
    assert found
    total = n + int(found[1])
    settled = rt.judge(scores(1.03 * normal(3 * total) + 0.04))
    assert total > n
    assert settled.verdict is rt.Verdict.WITHIN_TOLERANCE


def test_an_estimate_at_its_limit_is_not_promised_an_end() -> None:
    """Where the estimate is just inside its tolerance, a wider one is advised, not a number of replicates."""
    loose = rt.Tolerance(spread=0.4, bias=0.1, coverage=0.3)
    text = rt.judge(scores(1.0 * normal(3000) + 0.099), tolerance=loose).sentence
    assert "so near the limit of its tolerance" in text or "MISCALIBRATED" in text


def test_few_draws_are_told_what_more_draws_would_do() -> None:
    """Two draws ask for many replicates, and the sentence says how many with 99."""
    text = rt.judge(ranked(np.arange(60) % 3, 2)).sentence
    assert re.search(r"about \d+ more replicates .*, or \d+ in all with 99 draws each", text)
    assert (
        "one draw per replicate cannot tell the spread; return more draws" in rt.judge(ranked([0, 1] * 9, 1)).sentence
    )


def test_one_short_output_does_not_decide_for_all() -> None:
    """One draw in one of many outputs leaves the spread known; one draw in all of them does not."""
    draws = np.where(np.arange(200) < 1, 1, 99)
    ran = replicates(grid(200), rank=np.minimum((grid(200) * 100).astype(int), draws), draws=draws[:, None])
    text = rt.judge(ran).sentence
    assert "one draw per replicate" not in text
    assert "more replicates would certify" in text
    assert "with 1 draw each" not in text


# Use.


def test_a_procedure_that_ignores_the_data_is_of_no_use() -> None:
    """The sentence says so where the verdict is good, open or bad; not of one that learns."""
    good = checked(DataAgnostic(), 3000).sentence
    assert good.startswith(
        "WITHIN TOLERANCE, BUT OF NO USE: of theta the outputs say no more than the belief does (skill"
    )
    assert "Of theta the outputs say no more than the belief does" in checked(DataAgnostic(), 100).sentence
    assert "no more than the belief" not in checked(BAYES, 3000).sentence
    rng = np.random.default_rng(1)
    five = rt.check_draws(rng.normal(size=(1000, 5)), rng.normal(size=(1000, 99, 5)))
    assert "Of all 5 entries asked about the outputs say no more" in five.sentence


# Comparisons, resolutions.


def test_comparisons_say_who_is_worse_and_by_how_much() -> None:
    """Those without a clear difference are named, the worse with their number, and scores decide where they can."""
    procedures = {"Bayes": BAYES, "narrow": Inflated(BAYES, 0.5), "belief": DataAgnostic()}
    text = rt.compare(procedures, BELIEF, BAYES.simulate, n=600, batch=600).sentence
    start = r"No difference in calibration between Bayes and belief is clear; narrow \(spread of theta 1\.[34]"
    assert re.match(start, text)
    assert "is worse; prefer Bayes, whose outputs have the better scores" in text
    two = {"a": Inflated(BAYES, 0.3), "b": Inflated(BAYES, 0.5)}
    text = rt.compare(two, BELIEF, BAYES.simulate, n=600, batch=600).sentence
    assert text.startswith("b is the most calibrated of 2 procedures in spread and bias; a (spread of theta 1.")
    assert "is worse. a and b are miscalibrated (p = " in text


def test_resolutions_are_sentences() -> None:
    """What a run could have seen is a sentence, also where it could not see a spread, or is not known."""
    assert str(Resolution(1.1839, 0.842, 0.2)) == (
        "This run would have seen, with 80 % chance: a spread factor above 1.18 or below 0.84, a bias beyond 0.20 sd."
    )
    assert str(Resolution(np.inf, 0.0, 0.5)).endswith("a bias beyond 0.50 sd, but no error of spread.")
    assert "default test" in str(Resolution(np.nan, np.nan, np.nan))


def test_the_p_value_is_that_of_the_level_it_stands_beside() -> None:
    """If the weak level has the smallest p-value and the strong one says what is wrong, its own p-value is given."""
    ran = replicates(grid(400, spread=1.25), weak_u=1e-300, weak_z=-30.0, weak_value=0.0)
    result = rt.judge(ran)
    weak, strong = (result.levels[level].pvalue for level in ("weak", "strong"))
    assert weak < 1e-100 < strong
    assert result.sentence.startswith(f"MISCALIBRATED (strong, {format_p(strong)})")


def test_draws_outside_the_belief_are_counted() -> None:
    """Where outputs have draws that the belief excludes, the sentence says how many, not that the shape is another."""
    belief = rt.Beta(1, 1)
    result = rt.check(
        belief, lambda t, rng: t + 0.05 * rng.normal(), lambda mu0, y: rt.Normal(y, 0.05), n=1000, f=rt.identity
    )
    outside = int(np.isinf(result.replicates.weak_z).sum())
    assert outside > 10
    assert f"{outside} of 1000 outputs gave a draw of theta where the belief has no probability" in result.sentence


def test_misses_of_a_function_that_no_test_rejects_are_told() -> None:
    """A test function is named as wrong, and the few outputs that miss another one by far are not passed over."""
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(600, 39, 2))
    theta = rng.normal(size=(600, 2)) * [1.6, 1.0]
    theta[:5, 1] = 40.0
    f = {"a": lambda t: t[0], "b": lambda t: t[1]}
    text = rt.check_draws(theta, draws, f=f).sentence
    assert text.startswith("MISCALIBRATED (strong,")
    assert "a is over-confident" in text
    assert "Of b, 5 of 600 outputs miss the truth by more than" in text
    theta[:5, 1] = 0.0
    assert "miss the truth" not in rt.check_draws(theta, draws, f=f).sentence


# What wording may know.

SENTENCES = Path(phrases.__file__).parent


def _imported(text: str) -> set[str]:
    """Return the full names of all that a module of this package imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = phrases.__name__.split(".")[: -node.level] if node.level else []
            owner = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{owner}.{alias.name}" for alias in node.names}
    return found


def _computing(text: str) -> set[str]:
    """Return what a module imports that computes: arrays and statistics, but for the type of a number with its ends."""
    allowed = {"ringtrue.statistics.effects.Interval"}
    return {name for name in _imported(text) if name.startswith(("numpy", "scipy", "ringtrue.statistics"))} - allowed


@pytest.mark.parametrize("file", sorted(SENTENCES.glob("*.py")), ids=lambda file: file.name)
def test_wording_computes_nothing(file: Path) -> None:
    """No module of sentences has arrays or statistics at hand."""
    assert _computing(file.read_text("utf-8")) == set()


@pytest.mark.parametrize(
    "line",
    [
        "import numpy as np",
        "from scipy import special",
        "from ...statistics import effects",
        "from ...statistics.effects.usefulness import uninformative",
        "def f():\n    import numpy.linalg",
    ],
)
def test_wording_that_computes_would_be_seen(line: str) -> None:
    """The broken twin."""
    assert _computing(line)
