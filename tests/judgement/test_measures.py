"""Everything that can be measured of a run: rows, the weak distance, families, Gaussian outputs, and use in results."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

import ringtrue as rt
from ringtrue.distributions import Repeated
from ringtrue.functions import Context
from ringtrue.judgement.measures import measure, over_family, weak_distance
from ringtrue.procedures import DataAgnostic
from ringtrue.replicates.record import Failure, Replicates
from ringtrue.statistics import effects
from ringtrue.statistics.effects import Interval

from ..builders import BELIEF, SD, checked, column, normal, ranked, replicates, scores

Floats = NDArray[np.float64]


def normal_run(eta: float = 1.0, n: int = 1000, *, seed: int = 0) -> Replicates:
    """Run theta ~ N(0, 1), y = theta + N(0, 1), output N(y / 2, eta / 2)."""
    study = rt.Study(
        BELIEF,
        lambda theta, rng: theta + rng.standard_normal(theta.shape),
        lambda mu0, y: rt.Normal(y / 2, SD * math.sqrt(eta)),
        f=rt.identity,
        batch=n,
        seed=seed,
    )
    return rt.run(study, n=n)


def from_scores(z: Floats, **known: Any) -> Replicates:
    """Return replicates with these normal scores, one column per test function, and nothing else known."""
    return replicates(special.ndtr(z), z=z, **{"kinds": ["function"] * z.shape[1], **known})


def same(row: Interval, m: Interval) -> bool:
    """Whether a row holds a measure."""
    return (row.estimate, row.low, row.high) == (m.estimate, m.low, m.high)


# Rows


def test_rows_are_those_of_the_plain_functions() -> None:
    """Every row of a test function is what its function returns on the column, exact or on ranks."""
    exact = normal_run(0.5)
    found = measure(exact)
    assert same(found.row("W1 distance", "theta"), effects.wasserstein(exact.u[:, 0]))
    assert same(found.row("KL divergence", "theta"), effects.divergence(exact.z[:, 0]))
    assert same(found.row("variance of u", "theta"), effects.variance_ratio(column(exact).values))
    rng = np.random.default_rng(1)
    y = rng.normal(size=300)
    result = rt.check_draws(y + rng.normal(size=300), y[:, None] + rng.normal(size=(300, 19)), f=rt.identity)
    ranks = result.replicates.rank[:, 0]
    assert same(measure(result).row("CvM distance", "theta"), effects.cramer_von_mises(ranks, draws=19))


def test_every_measure_has_a_row() -> None:
    """An exact run has all measures of size, use and the weak level, in that order."""
    found = measure(normal_run())
    expected = ["spread", "bias", "coverage", "KS distance", "W1 distance", "CvM distance", "KL divergence"]
    expected += ["variance of u", "contraction", "skill", "interval skill", "correlation", "weak KS distance"]
    assert [row.name for row in found.rows] == expected
    assert all(row.low <= row.estimate <= row.high for row in found.rows)


@pytest.mark.slow
def test_closed_forms_lie_in_their_intervals() -> None:
    """For eta = 1/2 all intervals at level 1 - 1e-6 contain the exact values: s^2 = 2, and methods for use."""
    found = measure(normal_run(0.5, 20_000), confidence=1 - 1e-6)
    s = 2**0.5
    exact = {
        "spread": s,
        "bias": 0.0,
        "coverage": 0.7552,
        "KS distance": 0.083032,
        "KL divergence": 0.153426,
        "variance of u": 1.393677,
        "contraction": 0.75,
        "skill": 1 - 0.408894 * math.sqrt(math.pi),
        "correlation": 0.5**0.5,
    }
    for name, value in exact.items():
        row = found.row(name, "theta")
        assert row.low <= value <= row.high, row


def test_lost_replicates_are_allowed_for() -> None:
    """With replicates lost the distances are wide, the divergence unbounded, and the table says how many."""
    whole = normal_run(n=200)
    gone = np.arange(200)[:, None] < 5
    several = {name: array for name, array in whole.arrays.items() if array.ndim == 2 and array.dtype.kind == "f"}
    arrays = {name: np.where(gone, np.nan, array) for name, array in several.items()}
    failures = tuple(Failure(i, "output", "no", "") for i in range(5))
    found = measure(replace(whole, arrays={**whole.arrays, **arrays}, failures=failures))
    assert found.row("KL divergence", "theta").high == math.inf
    assert found.row("weak KS distance", "theta").high >= 5 / 200
    assert "5 of them lost" in str(found)


def test_measures_print_and_export() -> None:
    """The table has no nan for what has no ideal, and the plain data is JSON."""
    found = measure(normal_run(n=100))
    assert "nan" not in str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["n"] == 100
    with pytest.raises(TypeError, match="rows"):
        iter(found)


def test_one_replicate_can_be_measured() -> None:
    """A single replicate has rows, whose intervals say that nothing is known."""
    assert measure(normal_run(n=1)).row("spread", "theta").high == math.inf


def test_bad_input_is_refused() -> None:
    """The message names what was wrong."""
    ran = normal_run(n=10)
    with pytest.raises(TypeError, match="Replicates"):
        measure([1, 2])  # type: ignore[arg-type]
    with pytest.raises(rt.errors.InvalidStudy, match="confidence"):
        measure(ran, confidence=95)
    with pytest.raises(rt.errors.InvalidStudy, match="not measured"):
        measure(ran).row("beauty")
    gone = replace(ran, failures=tuple(Failure(i, "output", "no", "") for i in range(10)))
    with pytest.raises(rt.errors.InvalidStudy, match="all 10 were lost"):
        measure(gone)


# The weak level


def exact_distance(variance: float) -> float:
    """The Kolmogorov distance between N(0, variance) and N(0, 1)."""
    s2 = variance
    x = math.sqrt(math.log(s2) / (1 - 1 / s2))
    return abs(float(special.ndtr(x) - special.ndtr(x / math.sqrt(s2))))


@pytest.mark.slow
def test_averaged_outputs_are_sharper_than_one_draw_each() -> None:
    """Where outputs are normal the interval covers the exact distance, is narrower, and excludes 0 far more often.

    eta = 1/2, n = 400. Over 500 other runs: covers 0.958, 0.44 times as wide, excludes 0 in 0.67 of runs against 0.28.
    Of 200 runs 79 more exclude 0, with a standard deviation of at most 12.6 whatever the dependence: 15 is 5 below.
    """
    exact, hits, averaged, drawn, ratios = exact_distance(0.75), 0, 0, 0, []
    for seed in range(200):
        ran = normal_run(0.5, 400, seed=seed)
        (found,) = weak_distance(column(ran), 0.95)
        one = effects.distance(np.sort(ran.weak_u[:, 0]))
        hits += found.low <= exact <= found.high
        averaged += found.low > 0
        drawn += one.low > 0
        ratios.append((found.high - found.low) / (one.high - one.low))
    assert hits >= stats.binom.ppf(1e-6, 200, 0.93)
    assert np.mean(ratios) < 0.6
    assert averaged > drawn + 15
    assert exact == pytest.approx(0.0345, abs=1e-3)


def test_outputs_equal_to_the_belief_average_to_it_exactly() -> None:
    """A procedure that returns the belief has weak distance 0 without any noise."""
    row = measure(checked(DataAgnostic(), 300, f=rt.identity)).row("weak KS distance", "theta")
    assert row.high == pytest.approx(0, abs=1e-9)


def test_outputs_that_are_not_normal_use_one_draw_each() -> None:
    """Without normal outputs the weak distance is the one of one draw of each."""
    study = rt.Study(
        rt.Beta(1, 1),
        lambda theta, rng: rng.binomial(5, theta),
        lambda mu0, y: rt.Beta(1 + y, 6 - y),
        f=rt.identity,
    )
    ran = rt.run(study, n=200)
    assert same(measure(ran).row("weak KS distance", "theta"), effects.distance(np.sort(ran.weak_u[:, 0])))


# Families


def test_the_same_function_twice_is_one_function() -> None:
    """Perfectly dependent test functions have the interval of one, up to the noise of a thousand multipliers."""
    z = 1.3 * np.random.default_rng(2).standard_normal((500, 1))
    found = measure(from_scores(np.repeat(z, 3, axis=1)))
    row = found.row("largest |bias|")
    error = z.std(ddof=1) / math.sqrt(500)
    # A quantile of 1000 draws has a standard error of 0.07; six are 1e-9 of chance.
    assert row.high - abs(z.mean()) == pytest.approx(1.96 * error, abs=6 * 0.07 * error)


def test_largest_is_the_largest() -> None:
    """The estimates are the largest of the rows, whatever the sign."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal((2000, 3)) * [1, 0.5, 1.2] + [0.1, 0.0, -0.4]
    found = measure(from_scores(z))
    spreads = [abs(math.log(found.row("spread", f"f{k}").estimate)) for k in range(3)]
    assert found.row("largest |log spread|").estimate == pytest.approx(max(spreads))
    assert found.row("largest |bias|").estimate == pytest.approx(-z[:, 2].mean())
    assert found.row("largest KS distance").estimate == max(
        found.row("KS distance", f"f{k}").estimate for k in range(3)
    )


def test_joint_distance_among_few_draws_is_that_of_a_share() -> None:
    """With one draw the empirical law has one free share: of two equal functions the interval is 1.96 of its errors."""
    halves = np.repeat([[0, 0], [1, 1]], 200, axis=0)
    row = over_family(ranked(halves, 1), confidence=0.95)[-1]
    error = 0.5 / math.sqrt(400)
    # A quantile of 1000 draws has a standard error of 0.07; six are 1e-9 of chance. Massart's bound is 2.96 errors.
    assert (row.name, row.estimate, row.low) == ("largest KS distance", 0, 0)
    assert row.high == pytest.approx(1.96 * error, abs=6 * 0.07 * error)


@pytest.mark.slow
def test_joint_intervals_cover_and_single_ones_would_not() -> None:
    """Over ten independent functions the largest |bias| covers; the broken twin, unadjusted, covers 0.95^10 = 0.60.

    150 runs: fewer hits than FEWEST have probability below 1e-6 at a coverage of 0.92, which the benchmark exceeds.
    """
    rng, hits, broken = np.random.default_rng(4), 0, 0
    fewest = int(stats.binom.ppf(1e-6, 150, 0.92))
    for _ in range(150):
        z = rng.standard_normal((200, 10))
        hits += over_family(from_scores(z), confidence=0.95)[1].low == 0
        broken += np.abs(z.mean(axis=0) / z.std(axis=0, ddof=1)).max() * math.sqrt(200) <= 1.96
    assert hits >= fewest
    assert broken < fewest


@pytest.mark.parametrize("confidence", [0.95, 0.9999, 1 - 1e-9])
def test_joint_intervals_reach_as_far_as_one_alone(confidence: float) -> None:
    """Over a family no interval is shorter than the one of a single function, at levels beyond the draws as well."""
    z = np.random.default_rng(9).standard_normal((2000, 3))
    row = over_family(from_scores(z), confidence=confidence)[1]
    alone = stats.norm.ppf((1 + confidence) / 2) / math.sqrt(2000)
    # Three functions are more than one by a factor of 1.2 at level 0.95, far above the noise of the draws.
    assert row.high - row.estimate > 0.95 * alone


def test_functions_without_an_estimate_leave_the_largest_unbounded() -> None:
    """An infinite score in one column makes the largest spread infinite, and the others' intervals the fallback."""
    z = np.random.default_rng(5).standard_normal((100, 2))
    z[0, 1] = math.inf
    assert measure(from_scores(z)).row("largest |log spread|").high == math.inf


@pytest.mark.slow
def test_many_functions_are_measured_together() -> None:
    """Two hundred test functions have a joint interval no wider than Bonferroni's."""
    z = np.random.default_rng(6).standard_normal((50, 200))
    row = measure(from_scores(z)).row("largest KS distance")
    assert row.high - row.estimate <= math.sqrt(math.log(2 * 200 / 0.05) / 100) + 1e-12


# Gaussian outputs


def quadratic_form(theta: Floats, mean: Floats, cov: Floats) -> Floats:
    """(theta - mean)' cov^-1 (theta - mean), by the inverse."""
    return np.asarray(np.einsum("...i,...ij,...j->...", theta - mean, np.linalg.inv(cov), theta - mean))


def test_mahalanobis_is_the_quadratic_form() -> None:
    """For one output, a batch, the same output repeated, draws of a batch, and independent entries."""
    rng = np.random.default_rng(7)
    root = rng.normal(size=(4, 3, 3))
    mean, cov = rng.normal(size=(4, 3)), root @ np.swapaxes(root, 1, 2) + np.eye(3)
    f, theta, draws = rt.Mahalanobis(), rng.normal(size=(4, 3)), rng.normal(size=(5, 4, 3))
    batch, one = rt.Gaussian(mean, cov), rt.Gaussian(mean[0], cov[0])
    assert f.evaluate(theta, Context(1, output=batch)) == pytest.approx(quadratic_form(theta, mean, cov))
    assert f.evaluate(draws, Context(2, output=batch)) == pytest.approx(quadratic_form(draws, mean, cov))
    assert f.evaluate(theta[0], Context(0, output=one)) == pytest.approx(quadratic_form(theta[0], mean[0], cov[0]))
    assert f.evaluate(theta, Context(1, output=Repeated(one, 4))) == pytest.approx(
        quadratic_form(theta, mean[0], cov[0])
    )
    entries = rt.Normal(mean, 2.0)
    assert f.evaluate(draws, Context(2, output=entries)) == pytest.approx(quadratic_form(draws, mean, 4 * np.eye(3)))


def test_mahalanobis_refuses_other_outputs() -> None:
    """An output that is not Gaussian is refused by name."""
    with pytest.raises(rt.errors.InvalidStudy, match=r"Gaussian output.*Beta"):
        rt.Mahalanobis().evaluate(np.array(0.5), Context(output=rt.Beta(1, 1)))


def gaussian_run(eta: float, n: int, d: int, *, asked: int | None = None) -> Replicates:
    """Run d normals seen with unit noise, outputs with eta times the right covariance; ask about all or some."""
    study = rt.Study(
        rt.Gaussian(np.zeros(d), np.eye(d)),
        lambda theta, rng: theta + rng.standard_normal(theta.shape),
        lambda mu0, y: rt.Gaussian(y / 2, np.eye(d) * eta / 2),
        f=[*(rt.Coordinate(index=(j,)) for j in range(asked or d)), rt.Mahalanobis()],
        batch=n,
        draws=19,
    )
    return rt.run(study, n=n)


@pytest.mark.slow
@pytest.mark.parametrize(("eta", "d"), [(1.0, 1), (0.5, 3), (2.0, 2)])
def test_anees_and_nci_of_a_wrong_covariance(eta: float, d: int) -> None:
    """With eta times the right covariance ANEES/d is 1/eta and NCI -10 log10 eta (levels 1 - 1e-6)."""
    found = measure(gaussian_run(eta, 2000, d), confidence=1 - 1e-6)
    anees, nci = found.row("ANEES/d"), found.row("NCI (dB)")
    assert anees.low <= 1 / eta <= anees.high
    assert nci.low <= -10 * math.log10(eta) <= nci.high
    # Six standard errors: sqrt(2 / (n d)) of ANEES, and of NCI in nats.
    error = math.sqrt(2 / (2000 * d))
    assert anees.estimate * eta == pytest.approx(1, abs=6 * error)
    assert nci.estimate == pytest.approx(-10 * math.log10(eta), abs=6 * 10 / math.log(10) * error)


def test_one_dimension_has_its_closed_form() -> None:
    """In one dimension NCI is 10 log10 of the mean square of z, up to the jackknife's correction of order 1/n."""
    ran = gaussian_run(0.5, 1000, 1)
    expected = 10 * math.log10(float(np.mean(np.square(ran.z[:, 0]))))
    assert measure(ran).row("NCI (dB)").estimate == pytest.approx(expected, abs=0.05)


def of_errors(errors: Floats) -> Replicates:
    """Replicates of Gaussian outputs with unit covariance and these errors."""
    n, d = errors.shape
    both = np.column_stack([errors, np.square(errors).sum(axis=1)])
    return from_scores(
        both,
        kinds=["coordinate"] * d + ["mahalanobis"],
        sees=["theta"] * d + ["output"],
        truth=both,
        mean=np.column_stack([np.zeros((n, d)), np.full(n, d)]),
        draws=np.array([0] * d + [99]),
    )


def test_outputs_that_know_the_truth_have_no_metric_of_errors() -> None:
    """Without errors ANEES is 0 with nothing known above, and there is no NCI; nor if one coordinate is known."""
    errors = np.random.default_rng(8).standard_normal((200, 2))
    assert {"ANEES/d", "NCI (dB)"} <= {row.name for row in measure(of_errors(errors)).rows}
    none = measure(of_errors(np.zeros((200, 2))))
    assert (none.row("ANEES/d").estimate, none.row("ANEES/d").high) == (0, math.inf)
    for known in (none, measure(of_errors(errors * [1.0, 0.0]))):
        assert "NCI (dB)" not in {row.name for row in known.rows}


def test_nci_needs_every_coordinate() -> None:
    """Without one of the coordinates there is ANEES and no NCI; without the Mahalanobis distance, neither."""
    names = {row.name for row in measure(gaussian_run(1.0, 200, 2, asked=1)).rows}
    assert "ANEES/d" in names
    assert "NCI (dB)" not in names


# Use in results


def test_a_useless_procedure_is_flagged_in_the_result() -> None:
    """A procedure that ignores its data gets a note, rows of use without tolerance, and the verdict of its measures.

    False alarm 1e-6: alpha. At this n the intervals reach no further than half the tolerances.
    """
    result = checked(DataAgnostic(), 20_000, f=rt.identity, alpha=1e-6)
    rows = {row.name: row for row in result.measures}
    assert (rows["skill"].within, rows["contraction"].within) == ("-", "-")
    assert any("hardly depends on the data" in note for note in result.notes)
    assert result.verdict is rt.Verdict.WITHIN_TOLERANCE
    assert "nan" not in str(result)
    json.dumps(result.to_dict(), allow_nan=False)


def test_an_output_that_is_worse_than_the_belief_is_said_to_be() -> None:
    """Outputs four times as wide as the belief do not only say nothing; those of the belief itself are not blamed."""
    theta = np.random.default_rng(0).standard_normal(2000)
    wide, same = (rt.check_draws(theta, sd * np.random.default_rng(1).standard_normal((2000, 99))) for sd in (4, 1))
    assert any("predicts the truth worse than the belief does (skill -" in note for note in wide.notes)
    assert not any("worse than" in note for note in same.notes)


def test_a_useful_procedure_is_not_flagged() -> None:
    """Bayes has skill, whose row has an interval at level 1 - alpha of its own."""
    result = rt.judge(normal_run(1.0, 1000), alpha=0.01)
    assert not any("hardly depends" in note for note in result.notes)
    row = next(row for row in result.measures if row.name == "skill")
    single = measure(result, confidence=0.99).row("skill", "theta")
    assert (row.low, row.high) == (single.low, single.high)
    assert not row.certified


def test_heavy_tails_are_noted_where_numbers_are_printed() -> None:
    """Scores of t with 3 degrees of freedom have a note in results and measures; normal ones and ranks have none."""
    heavy = scores(stats.t.ppf((np.arange(500) + 0.5) / 500, 3) / 3**0.5)
    for shown in (rt.judge(heavy), rt.measure(heavy)):
        assert "theta: exact scores have heavy tails" in str(shown)
    calm = scores(normal(500))
    assert "heavy tails" not in f"{rt.judge(calm)}{rt.measure(calm)}"
    ranks = ranked(np.arange(500) % 20, 19, names=["theta"])
    assert "heavy tails" not in str(rt.judge(ranks))
