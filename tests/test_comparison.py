"""Comparisons are paired, say which procedure is ahead only if it is, and sweeps and maps keep their bookkeeping."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue as rt
from ringtrue.comparison import Comparison
from ringtrue.procedures import DataAgnostic, Inflated, NormalMean

BELIEF = rt.Normal(0, 1)
BAYES = NormalMean()
SURE = 1 - 1e-6  # intervals at this level miss with chance 1e-6


def compared(procedures: Any, n: int = 2000, **settings: Any) -> Comparison:
    """Compare procedures for the normal mean in batches."""
    return rt.compare(procedures, BELIEF, BAYES.simulate, n=n, batch=n, f=rt.identity, **settings)


def test_procedures_meet_the_same_data() -> None:
    """Truths and data do not depend on the procedure: a scaled copy differs by its scale and nothing else.

    Inflated by s^2 has z / s, so the log spreads differ by log s exactly, with an interval of no width.
    """
    found = compared({"Bayes": BAYES, "wide": Inflated(BAYES, 4.0)}, n=300)
    row = next(row for row in found.differences if row.measure == "log spread")
    assert row.estimate == pytest.approx(math.log(2), abs=1e-12)
    assert row.high - row.low < 1e-12
    np.testing.assert_array_equal(found.results["Bayes"].replicates.truth, found.results["wide"].replicates.truth)


def test_the_most_calibrated_is_named() -> None:
    """Bayes is ahead of versions with half and twice the variance; at level 1 - 1e-6 a false call has that chance.

    Missing it would need an interval off by (log 2)/2 = 0.35 where its half-width at n = 2000 is 5.4/sqrt(4000) = 0.09.
    """
    found = compared({"narrow": Inflated(BAYES, 0.5), "Bayes": BAYES, "wide": Inflated(BAYES, 2.0)}, level=SURE)
    assert found.best == ("Bayes",)
    assert "Bayes is the most calibrated of 3" in found.sentence
    assert found.divergence["Bayes"] < min(found.divergence["narrow"], found.divergence["wide"])


def test_equally_calibrated_procedures_cannot_be_told_apart() -> None:
    """Bayes and the belief itself are both calibrated: neither is ahead (false alarm at most 1e-6)."""
    found = compared({"Bayes": BAYES, "belief": DataAgnostic()}, level=SURE)
    assert set(found.best) == {"Bayes", "belief"}
    assert "cannot be told apart" in found.sentence


def test_scores_tell_them_apart_all_the_same() -> None:
    """The mean CRPS of Bayes is 1/sqrt(2 pi), that of the belief 1/sqrt(pi), and the paired interval knows."""
    found = compared({"Bayes": BAYES, "belief": DataAgnostic()}, level=SURE)
    scores = {row.name: row for row in found.rows if row.measure == "crps"}
    # Population values by closed form; intervals miss them with chance 1e-6.
    assert scores["Bayes"].low < 1 / math.sqrt(2 * math.pi) < scores["Bayes"].high
    assert scores["belief"].low < 1 / math.sqrt(math.pi) < scores["belief"].high
    difference = next(row for row in found.differences if row.measure == "crps")
    assert difference.clear
    assert difference.estimate < 0


def test_pairing_narrows_differences() -> None:
    """The interval of a difference is narrower than that of unpaired samples would be: here by half at least."""
    found = compared({"Bayes": BAYES, "narrow": Inflated(BAYES, 0.8)})
    rows = {row.name: row for row in found.rows if row.measure == "crps"}
    unpaired = math.hypot(*((row.high - row.low) for row in rows.values()))
    difference = next(row for row in found.differences if row.measure == "crps")
    assert difference.high - difference.low < unpaired / 2


def shifted(belief: Any, y: Any) -> rt.Normal:
    """Return the posterior moved up by half its sd."""
    return rt.Normal(y / 2 + 0.5 * math.sqrt(0.5), math.sqrt(0.5))


def test_differences_cover() -> None:
    """Paired intervals of the difference in bias cover the true one as often as they claim.

    The outputs N(y/2, 1/2) and N(0, 1) have bias 0, so their difference is 0. One of four rows at 90 % with half of the
    error has 98.75 %: of 400 comparisons 5 are expected to miss. The broken twin is biased by half an sd, five standard
    errors at n = 60, where the interval reaches two and a half: nearly all exclude 0.
    """
    misses, found = 0, 0
    for seed in range(400):
        seen = compared({"Bayes": BAYES, "belief": DataAgnostic(), "twin": shifted}, n=60, seed=seed, level=0.9)
        rows = {(row.first, row.second): row for row in seen.differences if row.measure == "bias"}
        misses += rows["Bayes", "belief"].clear
        found += rows["belief", "twin"].clear
    assert misses <= int(stats.binom.isf(1e-6, 400, 0.0125))
    assert found > 360


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
    rows = [row for row in found.differences if row.measure in ("bias", "crps")]
    assert rows
    assert all(row.estimate == 0 for row in rows)
    assert len(found.results["fails"].replicates.failures) > 5


def test_a_comparison_prints() -> None:
    """The table has the sentence first, every procedure, and every difference."""
    text = str(compared({"Bayes": BAYES, "narrow": Inflated(BAYES, 0.5)}))
    assert text.startswith("Bayes is the most calibrated")
    assert "Bayes - narrow" in text
    assert repr(compared({"a": BAYES, "b": BAYES}, n=50)).startswith("Comparison(a, b; best: a, b")


def test_a_comparison_can_be_stored_and_resumed(tmp_path: Any) -> None:
    """A folder as store holds one file per procedure, whatever its name."""
    procedures = {"a/b": BAYES, "c d": DataAgnostic()}
    first = compared(procedures, n=100, store=tmp_path / "runs")
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["a_b.db", "c_d.db"]
    assert compared(procedures, n=100, store=tmp_path / "runs").rows == first.rows


@pytest.mark.parametrize("procedures", [{}, {"one": BAYES}, [BAYES, BAYES]])
def test_fewer_than_two_are_refused(procedures: Any) -> None:
    """There must be something to compare."""
    with pytest.raises(rt.InvalidStudy, match="two or more procedures"):
        compared(procedures)


def test_a_sweep_keeps_every_result() -> None:
    """Rows carry their x, and the measures are those of the results."""

    def build(variance: float) -> rt.Study:
        return rt.Study(BELIEF, BAYES.simulate, Inflated(BAYES, variance), 300, f=rt.identity, batch=300)

    found = rt.sweep(build, [0.25, 1.0, 4.0])
    spreads = {row.x: row.estimate for row in found.rows if row.measure == "spread"}
    # Inflating the variance by v divides z by sqrt(v), on the same data.
    assert spreads[0.25] == pytest.approx(2 * spreads[1.0], rel=1e-12)
    assert spreads[4.0] == pytest.approx(spreads[1.0] / 2, rel=1e-12)
    assert found.results[0.25].verdict is rt.Verdict.MISCALIBRATED
    assert "0.25" in str(found)
    with pytest.raises(rt.InvalidStudy, match="values that differ"):
        rt.sweep(build, [1.0, 1.0])


def test_coverage_at_fixed_truths_is_that_of_the_closed_form() -> None:
    """At theta the output N(y/2, 1/2) covers with P(|N(-theta/2, 1/4)| < 1.645 sqrt(1/2)) (intervals miss: 1e-6)."""
    study = rt.Study(BELIEF, BAYES.simulate, BAYES, 1, f=rt.identity, batch=1)
    for row in rt.coverage_map(study, [0.0, 1.0, 2.5], n=4000, level=SURE):
        half = stats.norm.ppf(0.95) * math.sqrt(0.5)
        law = stats.norm(-row.theta / 2, 0.5)
        assert row.low < law.cdf(half) - law.cdf(-half) < row.high
    assert rt.coverage_map(study, [2.5], n=4000, level=SURE)[0].high < 0.9


def test_truths_from_another_law_are_used_and_said() -> None:
    """A wider truth makes the exact posterior over-confident: sd of z is sqrt((s^2/4 + 1/4) / (1/2)); no weak level."""
    study = rt.Study(BELIEF, BAYES.simulate, BAYES, 4000, f=rt.identity, batch=4000, truth=rt.Normal(0, 2))
    result = rt.judge(rt.run(study), alpha=1e-6)
    spread = next(row for row in result.measures if row.name == "spread")
    assert spread.low < math.sqrt(2.5) < spread.high
    assert "weak" not in result.levels
    assert any("another law than the belief" in note for note in result.notes)
    with pytest.raises(rt.InvalidStudy, match="truth"):
        rt.Study(BELIEF, BAYES.simulate, BAYES, 10, truth=3.0)
