"""Replicates in groups, from a study or arrays to a verdict: the level with a broken twin, and nothing left out."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import ringtrue as rt
from ringtrue.functions import Sees
from ringtrue.judgement import groups, inputs
from ringtrue.judgement import levels as every_level
from ringtrue.judgement.column import columns_of
from ringtrue.judgement.levels import evidence, strong
from ringtrue.plots.captions import reading
from ringtrue.plots.selection import choose
from ringtrue.replicates.record import GROUP, ONE_OF_GROUP, Replicates
from ringtrue.values import Floats
from tests.builders import BELIEF, SD, noisy, posterior, refusal, replicates, says, scores, too_narrow

FALSE_ALARM = 1e-6


def grouped(ran: Replicates, labels: Any) -> Replicates:
    """Return replicates with groups."""
    return replace(ran, arrays={**ran.arrays, GROUP: np.asarray(labels)})


def shared(many: int, size: int, seed: int, *, share: float = 0.99, spread: float = 1.0) -> Replicates:
    """Return exact replicates of groups whose scores have most of their variance in common."""
    rng = np.random.default_rng(seed)
    own = rng.standard_normal((many, size))
    z = spread * (np.sqrt(share) * rng.standard_normal((many, 1)) + np.sqrt(1 - share) * own).ravel()
    return grouped(scores(z, truth=np.arange(z.size) * 1.0), np.repeat(np.arange(many), size))


def given(many: int, size: int, *, wide: float = 1.0, seed: int = 0, draws: int = 39) -> tuple[Floats, Floats, Any]:
    """Return truths, each of which several datasets were simulated from, draws of posteriors, and labels."""
    rng = np.random.default_rng(seed)
    theta = np.repeat(rng.normal(size=many), size)
    y = theta + rng.normal(size=theta.size)
    return theta, y[:, None] / 2 + wide * SD * rng.normal(size=(theta.size, draws)), np.repeat(np.arange(many), size)


def ran(n: int, **settings: Any) -> Replicates:
    """Run the normal mean with three datasets per theta."""
    return rt.run(BELIEF, noisy, posterior, n=n, datasets=3, progress="off", **settings)


# Several datasets per theta.


def test_so_many_replicates_in_a_row_have_one_theta_and_data_of_their_own() -> None:
    """Truths repeat within groups and nowhere else; u never does."""
    found = ran(30)
    truth = found.truth[:, 0].reshape(10, 3)
    assert (np.ptp(truth, axis=1) == 0).all()
    assert np.unique(truth).size == 10
    assert np.unique(found.u[:, 0]).size == 30
    assert found.arrays[GROUP].tolist() == np.repeat(np.arange(10), 3).tolist()


def test_the_first_datasets_are_those_of_a_study_with_one() -> None:
    """The theta of group g is that of replicate g of a study with one dataset per theta; one is the default."""
    one = rt.run(BELIEF, noisy, posterior, n=10, progress="off")
    np.testing.assert_array_equal(ran(30).truth[::3], one.truth)
    np.testing.assert_array_equal(rt.run(BELIEF, noisy, posterior, n=10, datasets=1, progress="off").u, one.u)
    assert GROUP not in one.arrays


def test_workers_stores_and_later_runs_keep_every_bit(tmp_path: Path) -> None:
    """Computed at once, by two workers, or first in part and then on from a store, also where a group was cut."""
    whole = ran(20)
    for other in (
        ran(20, workers=2),
        [ran(many, store=tmp_path / "run.db") for many in (7, 20)][-1],
    ):
        assert set(other.arrays) == set(whole.arrays)
        for name in ("u", "truth", GROUP):
            np.testing.assert_array_equal(other.arrays[name], whole.arrays[name])
    with rt.store.Store.read(tmp_path / "run.db") as stored:
        np.testing.assert_array_equal(stored.replicates().arrays[GROUP], whole.arrays[GROUP])
    message = refusal(
        lambda: rt.run(BELIEF, noisy, posterior, n=20, datasets=2, store=tmp_path / "run.db", progress="off"),
        rt.errors.StoreMismatch,
    )
    says(message, "datasets per theta is 3 there, but 2 here")


def test_a_batch_repeats_its_thetas_and_keeps_them_when_n_grows() -> None:
    """A batch of 6 has two thetas; the first replicates of a longer run are those of a shorter one."""
    short, long = (ran(n, batch=6) for n in (8, 20))
    np.testing.assert_array_equal(short.u, long.u[:8])
    assert [np.unique(long.truth[long.arrays[GROUP] == g, 0]).size for g in range(7)] == [1] * 7


def test_groups_of_lost_replicates_are_known() -> None:
    """A replicate that raises has the group of its place."""

    def fails(mu0: Any, y: Any) -> Any:
        if y > 0.5:
            raise ValueError("no")
        return posterior(mu0, y)

    found = rt.run(BELIEF, noisy, fails, n=30, datasets=3, on_failure="record", failures_allowed=1.0, progress="off")
    assert found.lost > 3
    assert found.arrays[GROUP].tolist() == np.repeat(np.arange(10), 3).tolist()


def test_draws_that_were_kept_are_asked_again_with_their_groups(tmp_path: Path) -> None:
    """A store's draws keep the groups of the run."""
    ran(12, store=tmp_path / "run.db", keep="draws")
    again = rt.store.recompute(tmp_path / "run.db", f=lambda theta: theta**3)
    assert np.unique(again.arrays[GROUP], return_counts=True)[1].tolist() == [3] * 4


def test_what_cannot_be_grouped_is_refused() -> None:
    """Batches that cut groups, studies that draw theta and y together, and labels that are none."""
    says(refusal(lambda: rt.Study(BELIEF, noisy, posterior, datasets=3, batch=10)), "multiple", "pass batch=12")
    joint = refusal(lambda: rt.Study.from_joint(lambda rng: (rng.normal(), rng.normal()), posterior, datasets=2))
    says(joint, "one dataset with every theta", "datasets=2")
    says(refusal(lambda: rt.Study(BELIEF, noisy, posterior, datasets=0)), "datasets must be a whole number")
    theta, draws, _ = given(10, 2)
    for labels, said in (
        (np.arange(19), r"\(19,\)"),
        (np.full(20, "a"), "at least two"),
        (np.where(np.arange(20) == 3, np.nan, 1.0), "missing labels"),
        ([None, *range(19)], "missing labels"),
        (np.zeros((20, 2)), r"\(20, 2\)"),
    ):
        says(refusal(partial(rt.check_draws, theta, draws, groups=labels)), said)


def test_labels_may_be_names_and_one_each_is_none() -> None:
    """Text and numbers name the same groups; where no two replicates share a label there are no groups."""
    theta, draws, labels = given(10, 2)
    named = rt.check_draws(theta, draws, groups=[f"patient {i:02d}" for i in labels])
    assert named.pvalue == rt.check_draws(theta, draws, groups=labels).pvalue
    other = rt.check_draws(theta + np.arange(20), draws, groups=np.arange(20))
    assert GROUP not in other.replicates.arrays


# The level and the power.


def _rejections(level: str, runs: int, seed: int, *, ignored: bool) -> int:
    found = []
    for i in range(runs):
        ran = shared(30, 4, seed + i)
        if ignored:
            ran = replace(ran, arrays={name: x for name, x in ran.arrays.items() if name != GROUP})
        found.append({one.level: one for one in evidence(ran, test="combination")[0]}[level].pvalue)
    return int(np.sum(np.array(found) <= 0.05))


def test_the_level_holds_where_theta_decides_nearly_everything_and_ignoring_groups_breaks_it() -> None:
    """At most 5 % of 150 calibrated runs are rejected (false alarm 1e-6), and of the broken twin's 40 clearly more.

    It rejected 71 % of 480 runs of other seeds; that it stays below the bound has a chance of 1e-6 at most.
    """
    most = stats.binom.isf(FALSE_ALARM, 150, 0.05)
    assert stats.binom.cdf(most, 150, 0.35) < 1e-3
    assert _rejections("strong", 150, 1000, ignored=False) <= most
    few = stats.binom.isf(FALSE_ALARM, 40, 0.05)
    assert stats.binom.cdf(few, 40, 0.7) < FALSE_ALARM
    assert _rejections("strong", 40, 1000, ignored=True) > few


@pytest.mark.parametrize("level", ["auto", "exact", "weak"])
def test_every_level_allows_for_groups(level: str) -> None:
    """What is tested on positions is tested by groups, whatever it sees; twenty equal replicates are one."""
    z = np.repeat(special.ndtri((np.arange(40) + 0.5) / 40), 20) + 0.25
    labels = np.repeat(np.arange(40), 20)
    sees: Sees = {"auto": "output", "exact": "data", "weak": "theta"}[level]  # type: ignore[assignment]
    if level == "weak":
        base = replicates(np.full(800, 0.5), sees=[sees], weak_value=z, weak_u=special.ndtr(z), weak_z=z)
    else:
        base = replicates(special.ndtr(z), sees=[sees])
    alone, together = (
        {one.level: one for one in evidence(ran, test="combination")[0]}[level].rows[0].pvalue
        for ran in (base, grouped(base, labels))
    )
    assert alone < 1e-9
    assert together > 0.05


def test_two_datasets_per_theta_find_an_error() -> None:
    """Draws half as wide, 150 groups of 2: found and named, and the interval of the spread holds 2."""
    theta, draws, labels = given(150, 2, wide=0.5, seed=3)
    found = rt.check_draws(theta, draws, groups=labels)
    assert found.verdict is rt.Verdict.MISCALIBRATED
    assert "over-confident" in found.sentence
    spread = rt.measure(found).row("spread", "theta")
    assert spread.low < 2 < spread.high


def test_a_calibrated_procedure_is_certified() -> None:
    """With 4000 groups of 2 the verdict is within tolerance."""
    theta, draws, labels = given(4000, 2, seed=4)
    assert rt.check_draws(theta, draws, groups=labels).verdict is rt.Verdict.WITHIN_TOLERANCE


def test_lost_replicates_count_in_their_groups() -> None:
    """With losses one of each is tested for the worst that they could have been, and the p-value is larger."""
    whole = shared(60, 2, 7, spread=2.0)
    some = replicates(whole.u, z=whole.z, lost=[3, 40], truth=whole.truth)
    found = evidence(grouped(some, whole.arrays[GROUP]), test="combination")[0][0]
    assert "lost" in found.rows[0].method
    assert "one of each group" in found.rows[0].method
    assert found.pvalue > evidence(whole, test="combination")[0][0].pvalue


def test_a_chosen_test_is_done_on_one_of_each() -> None:
    """A test that the user names is that test, on one replicate of each group; equal members give twice its p-value."""
    z = np.random.default_rng(5).standard_normal(30)
    ran = grouped(scores(np.repeat(z, 3), truth=np.arange(90.0)), np.repeat(np.arange(30), 3))
    row = evidence(ran, test="ks")[0][0].rows[0]
    assert row.pvalue == pytest.approx(min(1.0, 2 * rt.uniformity.ks(special.ndtr(z)).pvalue))
    assert row.method == "ks, one of each group"


def test_a_function_is_chosen_on_other_groups_than_it_is_tested_on() -> None:
    """No group is on both sides of a split, whatever the order of the replicates."""
    rng = np.random.default_rng(6)
    labels = rng.permutation(np.repeat(np.arange(20), 4))
    ran = grouped(replicates(rng.random((80, 2))), labels)
    seen = []

    def look(level: str, column: Any, test: str) -> Any:
        seen.append(set(labels[column.rows].tolist()))
        return real(level, column, test)

    real = every_level.test_column
    ran = replace(ran, header=replace(ran.header, selection=rt.BestOf(("f0", "f1"), 0.5, 3)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strong, "test_column", look)
        found = evidence(ran, test="ks")[0][0]
    sides = [seen[i : i + 3] for i in range(0, len(seen), 3)]
    assert len(sides) == 3
    assert all(a == b and not a & c and len(a | c) == 20 for a, b, c in sides)
    assert 0 < found.pvalue <= 1


def test_the_joint_test_is_left_out() -> None:
    """Members of replicates in groups are not relabelled: evidence is Bonferroni's over functions alone."""
    rng = np.random.default_rng(8)
    theta = np.repeat(rng.normal(size=(50, 2)), 2, axis=0)
    draws = theta[:, None] + rng.normal(size=(100, 1, 2)) + rng.normal(size=(100, 19, 2))
    found = rt.check_draws(theta, draws, groups=np.repeat(np.arange(50), 2))
    assert found.replicates.members is not None
    level = found.levels["strong"]
    assert level.pvalue == min(row.adjusted for row in level.rows)
    assert any("joint test of all test functions is left out" in note for note in found.notes)


def test_chains_are_tested_on_one_of_each_and_sized_by_groups() -> None:
    """Copies of replicates of chains have the intervals of one of them, and the method says one of each."""
    rng = np.random.default_rng(9)
    theta, draws = rng.normal(size=80), rng.normal(size=(80, 4, 50))
    alone = rt.check_draws(theta, draws, chains=4)
    labels = np.repeat(np.arange(80), 3)
    copies = rt.check_draws(theta[labels], draws[labels], chains=4, groups=labels)
    assert copies.levels["strong"].rows[0].method.endswith("one of each group")
    one, three = (rt.measure(result).row("spread", "theta") for result in (alone, copies))
    assert (three.low, three.high) == pytest.approx((one.low, one.high), rel=1e-6)


# What is of one replicate of each.


def test_one_of_each_is_a_record_of_independent_replicates() -> None:
    """One row per group, the same every time, whose label goes along under another name."""
    ran = shared(25, 4, 10)
    one = groups.one_of_each(ran)
    assert one is groups.one_of_each(ran)
    assert one.n == 25
    assert GROUP not in one.arrays
    assert one.arrays[ONE_OF_GROUP].tolist() == list(range(25))
    free = scores(np.zeros(3))
    assert groups.one_of_each(free) is free
    assert columns_of(one)[0].groups is None


def test_pictures_and_use_are_of_one_of_each() -> None:
    """Bands are for independent replicates: pictures have one of each and say so; so have contraction and skill."""
    found = rt.check(BELIEF, noisy, posterior, n=300, datasets=3, progress="off")
    chosen = choose(found, None, most=3)
    assert chosen.n == 100
    assert "one of each group" in chosen.note(0)
    assert reading(found.replicates, "theta") == reading(groups.one_of_each(found.replicates), "theta")
    one = groups.one_of_each(found.replicates)
    expected = rt.measure(one).row("skill", "theta")
    assert repr(rt.measure(found).row("skill", "theta")) == repr(expected)  # its ideal is nan


def test_procedures_are_compared_on_the_same_of_each() -> None:
    """The truths of all sides are one of each group, the same ones; the results are of all replicates."""
    found = rt.compare({"Bayes": posterior, "narrow": too_narrow}, BELIEF, noisy, n=300, datasets=3, progress="off")
    assert found.best == ("Bayes",)
    assert found.results["Bayes"].replicates.n == 300
    alone = {name: groups.one_of_each(result.replicates) for name, result in found.results.items()}
    np.testing.assert_array_equal(alone["Bayes"].truth, alone["narrow"].truth)
    assert next(row for row in found.rows if row.name == "crps").estimate == pytest.approx(
        float(alone["Bayes"].crps[:, 0].mean())
    )


# What is said.


def test_repeated_truths_are_noticed_and_the_groups_asked_for() -> None:
    """Without groups the inputs are suspect, and the sentence says what to pass; with them they are not."""
    theta, draws, labels = given(50, 4)
    without, found = rt.check_draws(theta, draws), rt.check_draws(theta, draws, groups=labels)
    assert "50 different truths" in without.sentence
    assert "groups=" in without.sentence
    assert not found.suspicions
    wrong = rt.check_draws(theta, draws, groups=np.arange(200) // 2)  # truths are shared by more than a group
    assert "groups=" in wrong.sentence


def test_inputs_are_looked_at_in_the_first_replicates_only() -> None:
    """Where groups reach beyond what was looked at, only rows that were are asked."""
    theta, draws, _ = given(1200, 2, draws=3)
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(1200), 2))
    ran = rt.check_draws(theta + np.arange(2400), draws + np.arange(2400)[:, None], groups=labels).replicates
    assert 0 < inputs._independent(ran).n <= 1200
    assert inputs.suspicions(ran) == ()


def test_the_verdict_counts_groups_and_says_what_it_means() -> None:
    """What a run cannot exclude depends on the number of groups, and a note tells how they were treated."""
    theta, draws, labels = given(4000, 2, seed=4)
    found = rt.check_draws(theta, draws, groups=labels)
    assert "No run of 4000 can exclude" in found.sentence
    says(str(found), "8000 replicates come in 4000 groups")
    assert np.isnan(found.resolution.bias)


def test_an_open_verdict_asks_for_new_groups() -> None:
    """How many more replicates would settle it follows from the intervals, not from their number."""
    found = rt.judge(shared(100, 5, 12))
    says(found.sentence, "more replicates, in new groups, would certify")
    few = rt.judge(shared(3, 5, 12))
    says(few.sentence, "3 groups tell next to nothing")


def test_a_switch_is_tested_on_one_of_each() -> None:
    """A parameter with two values in groups: its probabilities are tested on one replicate of each."""
    rng = np.random.default_rng(14)
    theta = np.repeat(rng.integers(0, 2, 150).astype(float), 4)
    labels = np.repeat(np.arange(150), 4)
    fair, sure = (1.0 * (rng.random((600, 19)) < share) for share in (0.5, 0.9))
    for draws, wrong in ((fair, False), (sure, True)):
        row = rt.check_draws(theta, draws, groups=labels).levels["strong"].rows[0]
        assert row.route == "shares of 19"
        assert (row.pvalue < 1e-3) is wrong
