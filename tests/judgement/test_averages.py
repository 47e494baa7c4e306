"""The weak level on averages: its row, its share, its size and its sentence."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue.judgement import averages
from ringtrue.judgement.averages import CORRELATION, KINDS, SIZED, UNSIZED, averages_of
from ringtrue.judgement.levels import TestRow
from ringtrue.replicates.averages import AVERAGES
from ringtrue.replicates.record import JOINT, Failure, Replicates
from ringtrue.statistics import combining
from tests.builders import BELIEF, SD, noisy

CORRELATED = rt.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])


def _outputs(mean: Any, scale: float = SD, rho: float = 0.0) -> Any:
    """Return outputs of two entries around a function of the data, as batches."""
    root = np.linalg.cholesky([[1.0, rho], [rho, 1.0]])
    return lambda mu0, y, rng: mean(y) + scale * rng.normal(size=(9, *np.shape(y))) @ root.T


def _noisy(theta: Any, rng: Any) -> Any:
    """Return theta with correlated noise."""
    return theta + rng.normal(size=np.shape(theta)) @ np.linalg.cholesky([[1.0, 0.5], [0.5, 1.0]]).T


def _checked(procedure: Any, n: int = 400, **settings: Any) -> rt.Result:
    return rt.check(CORRELATED, _noisy, procedure, n=n, batch=n, **settings)


def _row(result: rt.Result) -> TestRow:
    return next(row for row in result.tests if row.kind in KINDS)


def _complaint(result: rt.Result) -> str:
    """Return the sentence if nothing but averages speaks against the procedure."""
    ran = result.replicates
    others = {"members", *(name for name in ran.arrays if name.startswith(JOINT))} - {AVERAGES}
    arrays = {name: part for name, part in ran.arrays.items() if name not in others}
    return rt.judge(replace(ran, arrays={**arrays, **_silent(ran)})).sentence


def _silent(ran: Replicates) -> dict[str, Any]:
    """Return positions of the truths that no strong test has anything against, and no single draws."""
    grid = (np.arange(ran.n) + 0.5) / ran.n
    u = np.stack([np.random.default_rng(k).permutation(grid) for k in range(ran.u.shape[1])], axis=1)
    blank = {name: np.full(u.shape, np.nan) for name in ("weak_value", "weak_u", "weak_z")}
    return {"u": u, "z": special.ndtri(u), "rank": np.full(u.shape, -1), "draws": np.zeros(u.shape, np.int64), **blank}


def test_a_dropped_correlation_is_named_with_its_size() -> None:
    """Two entries whose correlation the outputs forget, half of it in the average over data."""
    result = _checked(_outputs(lambda y: y / 2))
    assert _row(result).f == "means, spreads and correlations"
    assert _row(result).pvalue == 0.001
    size = next(m for m in result.measures if m.name == CORRELATION)
    assert size.f == "theta[0] and theta[1]"
    # The rank correlation of the belief is 6 asin(.25) / pi = .483; that of the averaged outputs .5 * .5 = .25 gives
    # 6 asin(.125) / pi = .239. The error has a sd of .9 per replicate: five standard errors, false-alarm rate 6e-7.
    assert abs(size.estimate + 0.243) < 5 * 0.9 / 20
    assert "the correlation of theta[0] and theta[1] is too small, by 0." in _complaint(result)


@pytest.mark.parametrize(
    ("mean", "scale", "words"),
    [
        (lambda y: y / 2, 0.2, "the spread of theta[0] is too small;"),
        (lambda y: y / 2, 2.0, "the spread of theta[0] is too large;"),
        (lambda y: y / 2 + 1.0, SD, "the mean of theta[0] is too large;"),
        (lambda y: y / 2 - 1.0, SD, "the mean of theta[0] is too small;"),
    ],
)
def test_what_is_most_clearly_off_is_named(mean: Any, scale: float, words: str) -> None:
    """A mean or a spread of an entry, and which way it is off."""
    found = _checked(_outputs(mean, scale, 0.5))
    said = _complaint(found)
    assert any(words.replace("[0]", f"[{k}]") in said for k in (0, 1)), said
    assert said.startswith("MISCALIBRATED (weak, ")


def test_one_entry_has_averages_too() -> None:
    """Its row is about mean and spread, has a size, and is drawn like that of any function."""
    result = rt.check(BELIEF, noisy, lambda mu0, y, rng: y / 2 + 0.2 * rng.normal(size=(9, len(y))), n=400, batch=400)
    assert (_row(result).f, _row(result).kind, _row(result).pvalue) == ("mean and spread", SIZED, 0.001)
    assert not [m for m in result.measures if m.name == CORRELATION]
    assert result.plot() is not None


def test_the_shares_add_up_and_rows_agree_with_the_level() -> None:
    """Averages have 0.7 of the level, one draw 0.2, the joint law 0.1; the smallest adjusted p-value is the level's."""
    result = _checked(_outputs(lambda y: y / 2, rho=0.5))
    weak = result.levels["weak"]
    single = [row for row in weak.rows if row.kind not in (*KINDS, "joint")]
    every = [*(0.2 / len(single) for _ in single), 0.1, 0.7]
    p = [row.pvalue for row in weak.rows]
    assert weak.pvalue == pytest.approx(combining.weighted_minimum(p, every))
    np.testing.assert_allclose([row.adjusted for row in weak.rows], combining.holm(p, every))


def test_a_mirror_is_weakly_calibrated() -> None:
    """Outputs for the data turned round return the belief, and the level knows no better.

    The test's p-value is uniform, but for its error: at most 0.001 with a chance of about as much.
    """
    result = _checked(_outputs(lambda y: -y / 2, rho=0.5), n=1000)
    assert _row(result).pvalue > 0.001


def test_a_belief_without_laws_has_no_sizes() -> None:
    """Then whatever the test finds cannot be called small."""
    drawn = rt.Draws(np.random.default_rng(0).normal(size=(2000, 1))[:, 0])
    result = rt.check(drawn, noisy, lambda mu0, y, rng: y / 2 + SD * rng.normal(size=(9, len(y))), n=100, batch=100)
    assert _row(result).kind == UNSIZED
    assert not rt.judgement.levels.levels()["weak"].sizes(_row(result), result.measures)


def test_an_error_that_is_small_is_no_reason_to_call_it_one() -> None:
    """At n = 100,000 a spread that is 3 % off is found, and within tolerance all the same."""
    result = rt.check(
        BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, np.full(np.shape(y), 0.97 * SD)), n=100_000, batch=100_000
    )
    assert _row(result).adjusted < 0.01
    assert result.verdict is rt.Verdict.WITHIN_TOLERANCE


def test_few_replicates_leave_correlations_out_and_fewer_everything() -> None:
    """Ten features of five entries need 50 replicates, their ten pairs 100."""
    belief = rt.Gaussian(np.zeros(5), np.eye(5))
    ran = rt.run(rt.Study(belief, noisy, lambda mu0, y, rng: y / 2 + SD * rng.normal(size=(9, 5))), n=100)
    titles = {n: getattr(averages_of(ran.part(0, n)), "title", None) for n in (49, 50, 99, 100)}
    assert titles == {
        49: None,
        50: "means and spreads",
        99: "means and spreads",
        100: "means, spreads and correlations",
    }


def test_lost_replicates_leave_it_out_with_a_note() -> None:
    """What they would have been has no bound here, and the result says that it was not tested."""
    ran = _checked(_outputs(lambda y: y / 2)).replicates
    lost = replace(ran, failures=(Failure(3, "procedure", "ValueError: no", ""),))
    result = rt.judge(lost)
    assert not [row for row in result.tests if row.kind in KINDS]
    assert any("all coordinates together not tested: replicates were lost" in note for note in result.notes)


def test_of_groups_one_of_each_is_asked() -> None:
    """Replicates that share a truth are not independent."""
    ran = rt.run(rt.Study(BELIEF, noisy, lambda mu0, y, rng: y / 2 + SD * rng.normal(size=9), datasets=4), n=400)
    found = averages_of(ran)
    assert found is not None
    assert found.replicates.n == 100


def test_users_names_come_first() -> None:
    """A function of the user's with the row's name does not become the row."""
    f = {"mean and spread": "theta"}
    result = rt.check(BELIEF, noisy, lambda mu0, y, rng: y / 2 + SD * rng.normal(size=9), n=60, f=f)
    assert _row(result).f == "mean and spread (of all)"


def test_numbers_that_are_not_finite_are_not_tested() -> None:
    """A record with a blank row that was not lost says nothing."""
    ran = _checked(_outputs(lambda y: y / 2)).replicates
    array = ran.arrays[AVERAGES].copy()
    array[3] = np.nan
    assert averages_of(replace(ran, arrays={**ran.arrays, AVERAGES: array})) is None
    assert averages.sizes(replace(ran, arrays={**ran.arrays, AVERAGES: array}), 0.05, 0.1) == []
