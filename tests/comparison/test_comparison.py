"""Comparisons are paired, say which procedure is ahead only if it is, and sweeps and maps keep their bookkeeping."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue.comparison import Comparison
from ringtrue.comparison.ranking import best_of
from ringtrue.comparison.rows import differences_of, score_differences
from ringtrue.procedures import DataAgnostic, Inflated
from ringtrue.statistics.effects import Interval

from ..builders import BAYES, BELIEF

SURE = 1 - 1e-6  # intervals of this confidence miss with chance 1e-6


def compared(procedures: Any, n: int = 2000, **settings: Any) -> Comparison:
    """Compare procedures for the normal mean in batches."""
    return rt.compare(procedures, BELIEF, BAYES.simulate, n=n, batch=n, f=rt.identity, **settings)


def test_procedures_meet_the_same_data() -> None:
    """Truths and data do not depend on the procedure: a scaled copy differs by its scale and nothing else.

    Inflated by s^2 has z / s, so the log spreads differ by log s exactly, with an interval of no width but rounding's.
    """
    found = compared({"Bayes": BAYES, "wide": Inflated(BAYES, 4.0)}, n=300)
    row = next(row for row in found.differences if row.name == "log spread")
    assert row.estimate == pytest.approx(math.log(2), abs=1e-12)
    assert row.high - row.low < 1e-8
    np.testing.assert_array_equal(found.results["Bayes"].replicates.truth, found.results["wide"].replicates.truth)


def test_the_most_calibrated_is_named() -> None:
    """Bayes is ahead of versions with half and twice the variance; at confidence 1 - 1e-6 a false call has that chance.

    Missing it would need an interval off by (log 2)/2 = 0.35 where its half-width at n = 2000 is 5.4/sqrt(4000) = 0.09.
    """
    found = compared({"narrow": Inflated(BAYES, 0.5), "Bayes": BAYES, "wide": Inflated(BAYES, 2.0)}, confidence=SURE)
    assert found.best == ("Bayes",)
    assert "Bayes is the most calibrated of 3" in found.sentence
    assert found.divergence["Bayes"] < min(found.divergence["narrow"], found.divergence["wide"])


def test_equally_calibrated_procedures_cannot_be_told_apart() -> None:
    """Bayes and the belief itself are both calibrated: neither is ahead (false alarm at most 1e-6)."""
    found = compared({"Bayes": BAYES, "belief": DataAgnostic()}, confidence=SURE)
    assert set(found.best) == {"Bayes", "belief"}
    assert found.apart == ()
    assert found.sentence.startswith("No difference in calibration between Bayes and belief is clear; prefer Bayes")


def test_scores_tell_them_apart_all_the_same() -> None:
    """The mean CRPS of Bayes is 1/sqrt(2 pi), that of the belief 1/sqrt(pi), and the paired interval knows."""
    found = compared({"Bayes": BAYES, "belief": DataAgnostic()}, confidence=SURE)
    scores = {row.of: row for row in found.rows if row.name == "crps"}
    # Population values by closed form; intervals miss them with chance 1e-6.
    assert scores["Bayes"].low < 1 / math.sqrt(2 * math.pi) < scores["Bayes"].high
    assert scores["belief"].low < 1 / math.sqrt(math.pi) < scores["belief"].high
    difference = next(row for row in found.differences if row.name == "crps")
    assert difference.clear
    assert difference.estimate < 0


def test_pairing_narrows_differences() -> None:
    """The interval of a difference is narrower than that of unpaired samples would be: here by half at least."""
    found = compared({"Bayes": BAYES, "narrow": Inflated(BAYES, 0.8)})
    rows = {row.of: row for row in found.rows if row.name == "crps"}
    unpaired = math.hypot(*((row.high - row.low) for row in rows.values()))
    difference = next(row for row in found.differences if row.name == "crps")
    assert difference.high - difference.low < unpaired / 2


def sampled(draws: int, *, scale: float = 1.0, shift: float = 0.0) -> Any:
    """Return a procedure that draws from the posterior N(y/2, 1/2), with its sd scaled and its mean shifted by sds."""

    def procedure(belief: Any, y: Any, rng: np.random.Generator) -> Any:
        return y / 2 + math.sqrt(0.5) * (shift + scale * rng.normal(size=draws))

    return procedure


def drawn(procedures: Any, n: int, **settings: Any) -> Comparison:
    """Compare procedures that take one dataset at a time."""
    return rt.compare(procedures, BELIEF, BAYES.simulate, n=n, f=rt.identity, progress="off", **settings)


@pytest.mark.slow
@pytest.mark.parametrize("other", [sampled(2), sampled(19, scale=0.3), sampled(99, shift=1.0), Inflated(BAYES, 0.04)])
@pytest.mark.parametrize("one", [BAYES, sampled(9)])
def test_differences_are_those_of_the_rows(one: Any, other: Any) -> None:
    """Without losses every difference is the one of the two rows, of exact outputs, of ranks and of one of each."""
    found = drawn({"one": one, "other": other}, n=200)
    rows = {(row.of, row.name): row for row in found.rows}
    gaps = {row.name: row.estimate for row in found.differences}
    assert {"log spread", "bias"} <= set(gaps)
    # That of divergences is less the noise of either, and belongs to no test function.
    del gaps["divergence"]
    for measure, gap in gaps.items():
        first, second = (rows[name, measure.removeprefix("log ")].estimate for name in ("one", "other"))
        apart = math.log(first / second) if measure == "log spread" else first - second
        assert gap == pytest.approx(apart, abs=1e-9)
    same = math.isclose(rows["one", "coverage"].ideal, rows["other", "coverage"].ideal)
    assert ("coverage" in gaps) == same


@pytest.mark.slow
@pytest.mark.parametrize(("draws", "scale"), [(2, 0.3), (19, 0.6), (19, 0.3)])
def test_errors_of_spread_are_ranked_on_draws(draws: int, scale: float) -> None:
    """The larger the error, the surer the ranking, also where a few draws cannot show it (false alarm at most 1e-6).

    The standard error of log s at n = 4000 is 0.015 for a true log s of 0.51 and M = 19, and 0.042 for 1.2 and M = 2;
    intervals reach 5.6 of them. The right one's divergence is then below 0.05, which the wrong one's exceeds wherever
    its lower end is above 0.2 (0.4 for M = 2, where the right one's is below 0.1): missed by 14 standard errors.
    """
    found = drawn({"wrong": sampled(draws, scale=scale), "right": sampled(draws)}, n=4000, confidence=SURE)
    assert found.best == ("right",)
    assert found.divergence["right"] < found.divergence["wrong"]


@pytest.mark.parametrize("shift", [2.0, 4.0])
def test_large_biases_are_ranked_on_draws(shift: float) -> None:
    """Draws that nearly all lie on one side of the truth are worse than draws that do not (false alarm 1e-6)."""
    found = drawn({"right": sampled(19), "wrong": sampled(19, shift=shift)}, n=500, confidence=SURE)
    assert found.best == ("right",)
    assert "wrong (bias of theta -" in found.sentence


def test_exact_outputs_are_ranked_against_draws() -> None:
    """One procedure may be exact and the other a handful of draws (false alarm 1e-6)."""
    found = drawn({"exact": BAYES, "narrow": sampled(9, scale=0.28)}, n=500, confidence=SURE)
    assert found.best == ("exact",)


FAR: dict[str, tuple[Any, str]] = {
    "points": (lambda belief, y, rng: np.zeros(19), "spread of theta above"),
    "one side": (lambda belief, y, rng: 1000 + rng.normal(size=19), "bias of theta below -"),
    "wide": (lambda belief, y, rng: rt.Draws(np.linspace(-1e6, 1e6, 20), iid=True), "spread of theta below 0."),
    "impossible": (lambda belief, y: stats.uniform(20, 1), "coverage of theta 0 %"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAR)
def test_infinite_errors_come_last(name: str) -> None:
    """Where an estimate is infinite so is the divergence, all others are ahead, and the sentence says what is known."""
    procedure, known = FAR[name]
    found = drawn({"far": procedure, "Bayes": BAYES}, n=200)
    assert found.divergence["far"] == math.inf
    assert found.best == ("Bayes",)
    assert f"far ({known}" in found.sentence
    assert "nan" not in found.sentence
    assert not [row for row in found.differences if row.name in ("log spread", "bias")]


def test_far_errors_come_last() -> None:
    """A bias of a million sd is ranked, and said, in finite numbers."""
    found = drawn({"far": lambda belief, y: rt.Normal(y + 1000, 0.001), "Bayes": BAYES}, n=200)
    assert found.best == ("Bayes",)
    assert "far (bias of theta -1e6 sd) is worse" in found.sentence
    assert 1e11 < found.divergence["far"] < math.inf


def test_one_draw_is_never_ahead() -> None:
    """One draw says nothing of spread: no divergence, no difference but that of scores, and nobody is ahead."""
    found = drawn({"one": sampled(1), "two": sampled(2)}, n=100)
    assert math.isnan(found.divergence["one"])
    assert set(found.best) == {"one", "two"}
    assert {row.name for row in found.differences} <= {"crps"}


def ranks_of(law: Any, draws: int | None, rng: np.random.Generator) -> Any:
    """Return scores, or the ranks that truths at these scores have among so many draws."""
    return law if draws is None else rng.binomial(draws, stats.norm.cdf(law))


@pytest.mark.slow
@pytest.mark.parametrize("draws", [(None, None), (19, 19), (None, 9)])
def test_equal_procedures_are_not_called_different(draws: tuple[int | None, int | None]) -> None:
    """Of pairs with the same law few have a clear difference, half of whose replicates they share.

    At 98.75 % (one of four measures, half of 10 %) 1.25 % of 250 are expected, and more than the bound have chance
    1e-6; measured over 2000 pairs were 0.3 to 1.4 %, with and without shared replicates. The twin differs by a factor
    of 2: log 2 is five standard errors or more.
    """
    rng = np.random.default_rng(3)
    misses, found = np.zeros(2), 0
    for _ in range(250):
        shared = np.where(rng.random(60) < 0.5, rng.normal(size=60), math.nan)
        z, other = (np.where(np.isnan(shared), rng.normal(size=60), shared) for _ in range(2))
        x, y, twin = ranks_of(z, draws[0], rng), ranks_of(other, draws[1], rng), ranks_of(2 * other, draws[1], rng)
        misses += [row.clear for row in score_differences((x, draws[0]), (y, draws[1]), 0.9875)]
        found += next(row.high < 0 for row in score_differences((x, draws[0]), (twin, draws[1]), 0.9875))
    assert (misses <= stats.binom.isf(1e-6, 250, 0.0125)).all()
    assert found > 200


def test_intervals_that_contradict_each_other_decide_nothing() -> None:
    """Nobody is ahead by intervals that cannot all hold."""
    rows = [
        Interval(measure, 1.0, low, high, 1.0, f="theta", of=name)
        for name, spread in (("a", (0.9, 1.1)), ("b", (2.0, 3.0)))
        for measure, (low, high) in (("spread", spread), ("bias", (0.0, 0.0)), ("coverage", (0.0, 1.0)))
    ]
    assert best_of(["a", "b"], rows, []) == ("a",)
    contradicting = Interval("divergence", 0.2, 0.1, 0.3, 0.0, f="(all)", of=("a", "b"))
    assert best_of(["a", "b"], rows, [contradicting]) == ("a", "b")
    assert best_of(["a", "b"], rows, [replace(contradicting, of=("b", "a"))]) == ("a",)


def shifted(belief: Any, y: Any) -> rt.Normal:
    """Return the posterior moved up by half its sd."""
    return rt.Normal(y / 2 + 0.5 * math.sqrt(0.5), math.sqrt(0.5))


@pytest.mark.slow
def test_differences_cover() -> None:
    """Paired intervals of the difference in bias cover the true one as often as they claim.

    The outputs N(y/2, 1/2) and N(0, 1) have bias 0, so their difference is 0. At 98.75 % (one of four measures, half of
    10 %) 5 of 400 parts of one run are expected to miss. The broken twin is biased by half an sd, five standard errors
    at n = 60, where the interval reaches two and a half: nearly all exclude 0.
    """
    procedures = {"Bayes": BAYES, "belief": DataAgnostic(), "twin": shifted}
    studies = {
        name: rt.Study(BELIEF, BAYES.simulate, one, f=rt.identity, batch=4000) for name, one in procedures.items()
    }
    ran = {name: rt.run(study, n=60 * 400) for name, study in studies.items()}
    misses, found = 0, 0
    for start in range(0, 60 * 400, 60):
        part = {name: one.pick(slice(start, start + 60)) for name, one in ran.items()}
        misses += _bias(*differences_of("Bayes", "belief", part, 0, 0.9875)).clear
        found += _bias(*differences_of("belief", "twin", part, 0, 0.9875)).clear
    assert misses <= int(stats.binom.isf(1e-6, 400, 0.0125))
    assert found > 360


def _bias(*rows: Interval) -> Interval:
    return next(row for row in rows if row.name == "bias")


def test_lost_replicates_are_left_out_of_both() -> None:
    """A difference is taken over the replicates that neither procedure lost."""

    def fails(belief: Any, y: float) -> Any:
        if y > 1:
            raise ArithmeticError("no")
        return BAYES(belief, y)

    found = rt.compare(
        {"Bayes": BAYES, "fails": fails},
        BELIEF,
        BAYES.simulate,
        n=100,
        f=rt.identity,
        on_failure="record",
        progress="off",
    )
    rows = [row for row in found.differences if row.name in ("bias", "crps")]
    assert rows
    assert all(row.estimate == 0 for row in rows)
    lost = len(found.results["fails"].replicates.failures)
    assert lost > 5
    assert found.sentence.endswith(f"; fails lost {lost} of 100 replicates.")
    verdicts = str(found).split("\n\n")[1].splitlines()
    assert verdicts[0].split() == ["procedure", "verdict", "p", "lost"]
    assert [int(line.split()[-1]) for line in verdicts[2:]] == [0, lost]


def test_nothing_is_preferred_without_its_losses() -> None:
    """Who has the better scores and lost replicates is preferred only with their number beside."""

    def fails(belief: Any, y: float, rng: np.random.Generator) -> Any:
        if rng.random() < 0.1:
            raise ArithmeticError("no")
        return BAYES(belief, y)

    found = drawn({"fails": fails, "belief": DataAgnostic()}, n=500, on_failure="record")
    lost = len(found.results["fails"].replicates.failures)
    assert (
        f"prefer fails, whose outputs have the better scores, though it lost {lost} of 500 replicates" in found.sentence
    )
    assert found.sentence.count("lost") == 1


def test_a_procedure_that_lost_everything_is_refused() -> None:
    """Nothing can be compared with nothing."""

    def fails(belief: Any, y: float) -> Any:
        raise ArithmeticError("no")

    with pytest.raises(rt.errors.InvalidStudy, match="fails lost all 10"):
        drawn({"Bayes": BAYES, "fails": fails}, n=10, on_failure="record", failures_allowed=1.0)


def test_an_exception_says_whose_it_was() -> None:
    """What fails is raised as it is, with the name of the procedure as a note."""

    def fails(belief: Any, y: float) -> Any:
        raise ArithmeticError("no")

    with pytest.raises(rt.errors.ReplicateFailed) as caught:
        drawn({"Bayes": BAYES, "fails": fails}, n=10)
    assert caught.value.__notes__ == ["This was the procedure 'fails'."]


def test_a_comparison_prints() -> None:
    """The sentence comes first, then one line per procedure and the difference; the details have every row."""
    found = compared({"Bayes": BAYES, "narrow": Inflated(BAYES, 0.5)})
    text = str(found)
    assert text.startswith("Bayes is the most calibrated")
    assert len(re.findall("^theta +(?:Bayes|narrow) ", text, re.MULTILINE)) == 2
    assert len(re.findall("^Bayes - narrow ", text, re.MULTILINE)) == 1
    rows = re.findall("^(?:Bayes|narrow|Bayes - narrow) +(?:theta|\\(all\\)) ", found.details(), re.MULTILINE)
    assert len(rows) == len(found.rows) + len(found.differences)
    assert repr(compared({"a": BAYES, "b": BAYES}, n=50)).startswith("Comparison(a, b; best: a, b")


def test_a_comparison_can_be_stored_and_resumed(tmp_path: Any) -> None:
    """A folder as store holds one file per procedure, whatever its name."""
    procedures = {"a b": BAYES, "a_b": DataAgnostic(), "a/b": Inflated(BAYES, 4.0), "b" * 300: BAYES, "": BAYES}
    first = compared(procedures, n=100, store=tmp_path / "runs")
    files = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert len(files) == 5
    assert "a_b.db" in files
    again = compared(procedures, n=100, store=tmp_path / "runs")
    assert list(map(repr, again.rows)) == list(map(repr, first.rows))  # nan is not equal to itself
    spread = {row.of: row.estimate for row in first.rows if row.name == "spread"}
    assert spread["a/b"] == pytest.approx(spread["a b"] / 2, rel=1e-12)
    with pytest.raises(rt.errors.InvalidStudy, match="must be a folder"):
        compared(procedures, n=100, store=tmp_path / "runs" / "a_b.db")


@pytest.mark.parametrize("procedures", [{}, {"one": BAYES}, [BAYES, BAYES]])
def test_fewer_than_two_are_refused(procedures: Any) -> None:
    """There must be something to compare."""
    with pytest.raises(rt.errors.InvalidStudy, match="two or more procedures"):
        compared(procedures)


def never(*_: Any) -> Any:
    """Fail a test that simulates what should have been refused."""
    pytest.fail("simulated")


def test_names_that_look_alike_are_refused() -> None:
    """1 and "1" are one name in tables, files and results."""
    with pytest.raises(rt.errors.InvalidStudy, match="names that differ"):
        rt.compare({1: never, "1": never}, BELIEF, never, n=10)  # type: ignore[dict-item]


def test_functions_that_all_see_the_data_are_refused() -> None:
    """Spread, bias and coverage are those of functions of theta alone: without one nothing is simulated."""
    sees = {"product": lambda theta, y: theta * y}
    with pytest.raises(rt.errors.InvalidStudy, match="theta alone"):
        rt.compare({"a": never, "b": never}, BELIEF, never, n=10, f=sees)
    with pytest.raises(rt.errors.InvalidStudy, match="theta alone"):
        rt.coverage_map(rt.Study(BELIEF, never, never, f=sees), [0.0], n=10)


def study_of(procedure: Any, **changed: Any) -> rt.Study:
    """Return the study of a procedure of the normal mean."""
    settings: dict[str, Any] = {"f": rt.identity, "batch": 200, **changed}
    return rt.Study(settings.pop("belief", BELIEF), BAYES.simulate, procedure, **settings)


def test_studies_are_compared_like_their_procedures() -> None:
    """A name may stand for a study: belief, model and settings are then its own, and the numbers are the same."""
    procedures = {"Bayes": BAYES, "narrow": Inflated(BAYES, 0.5)}
    found = rt.compare({name: study_of(one) for name, one in procedures.items()}, n=200)
    same = compared(procedures, n=200)
    # As text, since a row may hold nan, which equals nothing; repr shows every digit.
    assert repr((found.rows, found.differences)) == repr((same.rows, same.differences))
    assert found.sentence == same.sentence
    with pytest.raises(rt.errors.InvalidStudy, match="seed came too; put it into the Study"):
        rt.compare({name: study_of(one) for name, one in procedures.items()}, n=200, seed=3)


@pytest.mark.parametrize("changed", [{"seed": 1}, {"f": {"square": lambda t: t**2}}, {"batch": 100}])
def test_studies_of_different_questions_are_refused_before_they_run(changed: dict[str, Any]) -> None:
    """Differences are those of pairs: another seed, batch or test function makes none."""
    with pytest.raises(rt.errors.InvalidStudy, match="one belief, one seed, one batch and one f"):
        rt.compare({"one": study_of(never), "other": study_of(never, **changed)}, n=200)


@pytest.mark.parametrize("changed", [{"belief": rt.Normal(0, 2)}, {"truth": rt.Normal(0, 2)}], ids=["belief", "truth"])
def test_studies_with_different_truths_are_refused(changed: dict[str, Any]) -> None:
    """What the truths are shows when they are drawn."""
    with pytest.raises(rt.errors.InvalidStudy, match="the same truths"):
        rt.compare({"one": study_of(BAYES), "other": study_of(BAYES, **changed)}, n=200)


def test_settings_of_judging_reach_every_result() -> None:
    """alpha, tolerance and test are those of the results; alpha is 1 - confidence if left out."""
    both, loose = {"Bayes": BAYES, "narrow": Inflated(BAYES, 0.5)}, rt.Tolerance(spread=0.5)
    found = compared(both, n=200, alpha=0.01, tolerance=loose, test="ks")
    for result in found.results.values():
        assert (result.alpha, result.tolerance, result.tests[0].method) == (0.01, loose, "ks")
    assert {result.alpha for result in compared(both, n=200, confidence=0.75).results.values()} == {0.25}
    for wrong in ({"alpha": 5}, {"tolerance": 0.1}, {"test": "eye"}):
        with pytest.raises(rt.errors.InvalidStudy, match=next(iter(wrong))):
            rt.compare({"a": never, "b": never}, BELIEF, never, n=10, **wrong)


def test_a_sweep_passes_settings_of_judging_on() -> None:
    """alpha, tolerance and test are those of its results, and wrong ones are refused before a study is built."""
    loose = rt.Tolerance(spread=0.5)
    found = rt.sweep(lambda v: study_of(Inflated(BAYES, v)), [1.0, 0.5], n=200, alpha=0.01, tolerance=loose, test="ks")
    for result in found.results.values():
        assert (result.alpha, result.tolerance, result.tests[0].method) == (0.01, loose, "ks")
    with pytest.raises(rt.errors.InvalidStudy, match="alpha"):
        rt.sweep(never, [1.0], n=10, alpha=5)


def test_a_sweep_keeps_every_result() -> None:
    """Rows carry their x, and the measures are those of the results."""

    def build(variance: float) -> rt.Study:
        return rt.Study(BELIEF, BAYES.simulate, Inflated(BAYES, variance), f=rt.identity, batch=300)

    found = rt.sweep(build, [0.25, 1.0, 4.0], n=300)
    spreads = {row.of: row.estimate for row in found.rows if row.name == "spread"}
    # Inflating the variance by v divides z by sqrt(v), on the same data.
    assert spreads[0.25] == pytest.approx(2 * spreads[1.0], rel=1e-12)
    assert spreads[4.0] == pytest.approx(spreads[1.0] / 2, rel=1e-12)
    assert found.results[0.25].verdict is rt.Verdict.MISCALIBRATED
    assert "0.25" in str(found)


@pytest.mark.parametrize(
    ("over", "message"),
    [([1.0, 1.0], "differ"), ([1, 1.0], "differ"), ([1, "1"], "differ"), ([], "differ"), ([[1], [2]], "tuples")],
)
def test_values_that_no_sweep_can_keep_apart_are_refused(over: Any, message: str) -> None:
    """Results are kept by value and shown as text: values must differ in both, and nothing is built if they do not."""
    with pytest.raises(rt.errors.InvalidStudy, match=message):
        rt.sweep(never, over, n=10)


def test_a_sweep_says_where_it_failed() -> None:
    """An exception has the value as a note, whether the study could not be built or not be run."""

    def build(x: str) -> rt.Study:
        if x == "no study":
            raise KeyError(x)
        return rt.Study(BELIEF, BAYES.simulate, lambda belief, y: 1 / 0 if x == "no output" else BAYES(belief, y))

    for x, error in (("no study", KeyError), ("no output", rt.errors.ReplicateFailed)):
        with pytest.raises(error) as caught:
            rt.sweep(build, ["fine", x], n=5)
        assert caught.value.__notes__ == [f"This was the study of x = {x!r}."]


def test_coverage_at_fixed_truths_is_that_of_the_closed_form() -> None:
    """At theta the output N(y/2, 1/2) covers with P(|N(-theta/2, 1/4)| < 1.645 sqrt(1/2)) (intervals miss: 1e-6)."""
    study = rt.Study(BELIEF, BAYES.simulate, BAYES, f=rt.identity, batch=1)
    for row in rt.coverage_map(study, [0.0, 1.0, 2.5], n=4000, confidence=SURE):
        half = stats.norm.ppf(0.95) * math.sqrt(0.5)
        law = stats.norm(-row.of / 2, 0.5)
        assert row.low < law.cdf(half) - law.cdf(-half) < row.high
    assert rt.coverage_map(study, [2.5], n=4000, confidence=SURE)[0].high < 0.9


def test_a_map_can_be_stored_and_resumed(tmp_path: Any) -> None:
    """A folder as store holds one file per theta, more are added, and the numbers are those of a run without."""
    study = rt.Study(BELIEF, BAYES.simulate, BAYES, f=rt.identity)
    first = rt.coverage_map(study, [0.0, 1.0], n=50, store=tmp_path / "map")
    assert len(list((tmp_path / "map").iterdir())) == 2
    assert rt.coverage_map(study, [0.0, 1.0, 2.0], n=50, store=tmp_path / "map")[:2] == first
    assert len(list((tmp_path / "map").iterdir())) == 3
    assert rt.coverage_map(study, [0.0, 1.0], n=50) == first


@pytest.mark.parametrize("wrong", [{"nominal": 1.5}, {"nominal": 0.0}, {"confidence": 95}, {"n": 0}])
def test_a_map_refuses_what_it_cannot_measure_before_it_simulates(wrong: Any) -> None:
    """Levels are probabilities, and there is at least one dataset."""
    with pytest.raises(rt.errors.InvalidStudy, match=r"nominal|confidence|n must"):
        rt.coverage_map(rt.Study(BELIEF, never, never, f=rt.identity), [0.0], **{"n": 10, **wrong})


def test_truths_from_another_law_are_used_and_said() -> None:
    """A wider truth makes the exact posterior over-confident: sd of z is sqrt((s^2/4 + 1/4) / (1/2)); no weak level."""
    study = rt.Study(BELIEF, BAYES.simulate, BAYES, f=rt.identity, batch=4000, truth=rt.Normal(0, 2))
    result = rt.check(study, n=4000, alpha=1e-6)
    spread = result["theta"].spread
    assert spread.low < math.sqrt(2.5) < spread.high
    assert "weak" not in result.levels
    assert any("another law than the belief" in note for note in result.notes)
    with pytest.raises(rt.errors.InvalidStudy, match="truth"):
        rt.Study(BELIEF, BAYES.simulate, BAYES, truth=3.0)
