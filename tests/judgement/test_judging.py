"""Verdicts against closed forms, exact constructions and their own stated error rates."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

import ringtrue as rt
from ringtrue.procedures import DataAgnostic, Inflated, Mirrored, NormalMean, Richardson
from ringtrue.replicates.record import Replicates
from ringtrue.statistics import uniformity

from ..builders import BAYES, BELIEF, checked, grid, replicates, scores

Floats = NDArray[np.float64]
# Simultaneous intervals at this level miss a true value with chance 1e-6; every comparison with a population value
# below uses it.
SURE = 1e-6


def given(u: Floats, *, lost: int = 0) -> Replicates:
    """Return replicates of one exact test function with given u, the last ``lost`` of them lost."""
    n = len(u)
    return replicates(np.append(u, np.full(lost, np.nan)), names=["theta"], lost=range(n, n + lost))


def size(result: rt.Result, name: str) -> Any:
    """Return one row of the measures of theta."""
    return result["theta"].measure(name)


CLOSED_FORMS = [
    # procedure, sd of z, KS distance of u, KS distance of the data-averaged output, coverage of 90 % intervals
    (BAYES, 1.0, 0.0, 0.0, 0.9),
    (DataAgnostic(), 1.0, 0.0, 0.0, 0.9),
    (Mirrored(BAYES), 5**0.5, 0.184896, 0.0, 2 * special.ndtr(1.6448536269514722 / 5**0.5) - 1),
    (Inflated(BAYES, 0.5), 2**0.5, 0.083032, 0.034745, 0.7552),
    (Inflated(BAYES, 2.0), 0.5**0.5, 0.083032, 0.048888, 0.9800),
]


@pytest.mark.parametrize(("procedure", "spread", "strong", "weak", "coverage"), CLOSED_FORMS)
def test_measures_cover_the_closed_forms(
    procedure: Any, spread: float, strong: float, weak: float, coverage: float
) -> None:
    """Every interval contains the population value of the paper's examples.

    False alarm: the intervals hold jointly with chance 1 - 1e-6 for spread, bias and coverage, and again for distances.
    """
    result = checked(procedure, 40_000, f=rt.identity, alpha=SURE)
    truths = {"spread": spread, "bias": 0.0, "coverage": coverage, "KS distance": strong, "weak KS distance": weak}
    for name, truth in truths.items():
        row = size(result, name)
        assert row.low <= truth + 5e-5, (name, row)
        assert row.high >= truth - 5e-5, (name, row)


@pytest.mark.parametrize(("procedure", "spread", "strong", "weak", "coverage"), CLOSED_FORMS[2:])
def test_measures_exclude_perfection_where_there_is_none(
    procedure: Any, spread: float, strong: float, weak: float, coverage: float
) -> None:
    """The broken twin of the test above: intervals of a miscalibrated procedure leave out the calibrated values.

    Misses: at n = 40,000 the half-widths are below 0.02 for log spread and 0.014 for the distance at 1e-6; the errors
    are at least 0.34 and 0.083.
    """
    result = checked(procedure, 40_000, f=rt.identity, alpha=SURE)
    assert not size(result, "spread").low <= 1 <= size(result, "spread").high
    assert size(result, "KS distance").low > 0
    assert result.verdict is rt.Verdict.MISCALIBRATED


@pytest.mark.parametrize("f", [None, rt.identity])
def test_exact_bayes_is_within_tolerance(f: Any) -> None:
    """The exact posterior is certified at a size where an interval has room for it (chance below 1e-6 of failing).

    At n = 40,000 the intervals at alpha = 1e-6 have half-widths below 0.03; the estimate would have to be off by 0.07.
    """
    result = checked(BAYES, 40_000, f=f, alpha=SURE)
    assert result.verdict is rt.Verdict.WITHIN_TOLERANCE
    assert "WITHIN TOLERANCE" in result.sentence


def test_over_confidence_is_named_with_its_remedy() -> None:
    """The sentence says over-confident and the factor that mends it."""
    result = checked(Inflated(BAYES, 0.5), 4000)
    assert result.verdict is rt.Verdict.MISCALIBRATED
    # The factor is sqrt 2 with standard error 0.016.
    assert re.search(r"theta is over-confident: multiply its reported sd by 1\.[34]", result.sentence)
    assert "under-confident" in checked(Inflated(BAYES, 2.0), 4000).sentence


def test_bias_is_named_with_its_side() -> None:
    """An output that lies too low is said to lie below the truth."""

    def low(belief: Any, y: Any) -> Any:
        return rt.Normal(y / 2 - 0.5, 0.5**0.5)

    sentence = checked(low, 4000, f=rt.identity).sentence
    # The bias is 1 / sqrt 2 with standard error 0.016: its first decimal is 6 or 7 but for 6 standard errors.
    assert re.search(r"biased: outputs lie 0\.[67]", sentence)
    assert "below the truth" in sentence


def test_mirror_bayes_is_weak_but_not_strong() -> None:
    """Mirror Bayes passes the weak level and fails the strong one.

    False alarm of the weak assertion: 1e-6 by the validity of the p-value.
    """
    result = checked(Mirrored(BAYES), 4000)
    assert result.levels["strong"].pvalue < 1e-6 < result.levels["weak"].pvalue


@pytest.mark.slow
def test_partial_posterior_is_calibrated_and_not_exact() -> None:
    """A posterior given half of the data passes strong, fails exact, and is not called miscalibrated."""
    two = NormalMean(size=2)

    def log_likelihood(theta: Any, y: Any) -> Any:
        return -0.5 * np.sum((y - theta) ** 2)

    f = [rt.identity, rt.Function(log_likelihood, "log-likelihood")]
    result = rt.check(BELIEF, two.simulate, NormalMean(size=2, summary=1), n=600, f=f, alpha=1e-5)
    assert result.levels["exact"].pvalue < 1e-5 < result.levels["strong"].pvalue
    assert result.verdict is not rt.Verdict.MISCALIBRATED
    assert "NOT THE EXACT POSTERIOR" in result.sentence
    # E u = 1/2 + arcsin(1 / (2 sqrt 2)) / pi = .615027 for this f; Hoeffding: |mean - E| < 0.11 with chance 1 - 1e-6.
    assert abs(result.replicates.u[:, 1].mean() - 0.615027) < 0.11


def test_richardson_passes_linear_functions_and_fails_the_rest() -> None:
    """The stationary iteration is uniform for the identity, and fails the distance and the weak level."""
    solver = Richardson([[1.0]], step=0.5)
    result = rt.check(rt.Gaussian([0.0], [[1.0]]), solver.simulate, solver, n=2000, batch=2000)
    linear = next(row for row in result.tests if row.level == "strong" and row.f == "theta[0]")
    distance = next(row for row in result.tests if row.level == "strong" and row.f == "distance")
    assert distance.pvalue < 1e-6 < linear.pvalue
    assert result.levels["weak"].pvalue < 1e-6
    assert result.verdict is rt.Verdict.MISCALIBRATED


def test_wrong_correlation_is_found_by_the_default_family() -> None:
    """Outputs with right marginals and no correlation fail the sum and pass every coordinate."""
    belief = rt.Gaussian([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]])

    def forgetful(mu0: Any, y: Any) -> Any:
        return rt.Gaussian(np.zeros((len(y), 2)), np.broadcast_to(np.eye(2), (len(y), 2, 2)))

    result = rt.check(belief, lambda theta: theta, forgetful, n=1000, batch=1000)
    p = {row.f: row.pvalue for row in result.tests if row.level == "strong"}
    assert p["sum"] < 1e-6 < min(p["theta[0]"], p["theta[1]"])
    joint = next(row for row in result.tests if row.f == "all coordinates")
    assert joint.pvalue == pytest.approx(1e-3)


def test_verdict_of_a_perfect_grid() -> None:
    """u on the quantiles of the uniform law is within tolerance when n allows it, and inconclusive when it does not."""
    assert rt.judge(given(grid(4000))).verdict is rt.Verdict.WITHIN_TOLERANCE
    small = rt.judge(given(grid(100)))
    assert small.verdict is rt.Verdict.INCONCLUSIVE
    assert "more replicates would certify" in small.sentence


def test_a_real_and_negligible_error_is_within_tolerance() -> None:
    """A spread error of 1 % at n = 200,000 rejects, is certified small, and is said to be real and small."""
    result = rt.judge(given(grid(200_000, spread=1.01)))
    assert result.pvalue < 1e-6
    assert result.verdict is rt.Verdict.WITHIN_TOLERANCE
    assert "real and smaller than tolerated" in result.sentence


@pytest.mark.parametrize(
    ("size_of_it", "verdict"), [(0.045, rt.Verdict.INCONCLUSIVE), (0.06, rt.Verdict.MISCALIBRATED)]
)
def test_an_error_of_shape_alone_is_judged_by_its_distance(size_of_it: float, verdict: rt.Verdict) -> None:
    """A law of u with the right spread, bias and coverage and a wrong shape is not excused by them.

    If its distance is not certified small there is no certificate, and if it is outside the tolerance it is called.
    """
    # Mass moved inside [0.05, 0.95] and symmetric about 1/2.
    base = grid(20_000)
    bump = base + size_of_it * np.sin(4 * np.pi * np.clip((base - 0.05) / 0.9, 0, 1))
    result = rt.judge(given(np.clip(bump, 1e-9, 1 - 1e-9)))
    assert size(result, "KS distance").estimate == pytest.approx(size_of_it, abs=0.002)
    assert result.pvalue < 1e-30
    assert result.verdict is verdict


@pytest.mark.parametrize(
    ("spread", "bias", "verdict"),
    [
        (1.05, 0.0, rt.Verdict.WITHIN_TOLERANCE),
        (1.0, 0.05, rt.Verdict.WITHIN_TOLERANCE),
        (1.2, 0.0, rt.Verdict.MISCALIBRATED),
        (1.0, 0.2, rt.Verdict.MISCALIBRATED),
        (1 / 1.2, 0.0, rt.Verdict.MISCALIBRATED),
    ],
)
def test_evidence_is_called_by_its_size(spread: float, bias: float, verdict: rt.Verdict) -> None:
    """Half the tolerance is real and small, twice the tolerance is called: scores without noise, n = 4000."""
    z = spread * special.ndtri(grid(4000)) + bias
    result = rt.judge(scores(z))
    assert result.pvalue < 0.01
    assert result.verdict is verdict


def test_an_error_near_its_limit_is_neither_called_nor_certified() -> None:
    """At the limit itself, with evidence beyond doubt, only the size is open."""
    result = rt.judge(scores(1.09 * special.ndtri(grid(4000))))
    assert result.pvalue < 1e-6
    assert result.verdict is rt.Verdict.INCONCLUSIVE
    assert result.sentence.startswith("INCONCLUSIVE: an error of theta is there (p = ")


@pytest.mark.parametrize("wild", [3, 10])
def test_a_few_wild_outputs_are_never_excused_by_sizes(wild: int) -> None:
    """Sizes of ranks-like measures do not see them, and evidence of them is called: strong and weak.

    At the weak level the only size is a distance, of 3 or 10 in 4000, far within its tolerance.
    """
    z = special.ndtri(grid(4000))
    far = np.where(np.arange(4000) < wild, 30.0, z)
    assert rt.judge(scores(far)).verdict is rt.Verdict.MISCALIBRATED
    asked = {"weak_u": special.ndtr(far), "weak_z": far, "weak_value": far}
    weak = rt.judge(scores(z, **asked))
    assert size(weak, "weak KS distance").certified
    assert weak.verdict is rt.Verdict.MISCALIBRATED
    calm = rt.judge(scores(z, **{name: special.ndtr(z) if name == "weak_u" else z for name in asked}))
    assert calm.verdict is rt.Verdict.WITHIN_TOLERANCE


def test_what_the_family_adds_is_no_part_of_the_certificate() -> None:
    """A parameter is certified though the distance beside it is not yet; a function of the user's own must be."""
    z = special.ndtri(grid(4000))
    both = np.column_stack([z, z + 0.07])
    for kinds, verdict in (
        (["coordinate", "overall"], rt.Verdict.WITHIN_TOLERANCE),
        (["coordinate", "function"], rt.Verdict.INCONCLUSIVE),
    ):
        # A thousand of them: the mean of the second is off by 2.2 of its standard errors, which does not reject.
        ran = replicates(special.ndtr(both[::4]), z=both[::4], kinds=kinds, names=["a", "b"])
        result = rt.judge(ran)
        assert result.pvalue > 0.05
        assert result.verdict is verdict


@pytest.mark.parametrize(
    "asked", [{"spread": 1.1}, {"coverage": 5}, {"distance": 1}, {"bias": 0}, {"spread": True}, {"bias": "small"}]
)
def test_tolerances_that_cannot_be_meant_are_refused(asked: dict[str, Any]) -> None:
    """A tolerance of 110 % or of five hundred points is a slip."""
    with pytest.raises(rt.errors.InvalidStudy, match="the tolerance of"):
        rt.Tolerance(**asked)


def test_tolerance_is_the_users_to_set() -> None:
    """The same replicates are within a wide tolerance and miscalibrated for a narrow one."""
    ran = given(grid(20_000, spread=1.15))
    assert rt.judge(ran).verdict is rt.Verdict.MISCALIBRATED
    wide = rt.Tolerance(spread=0.3, bias=0.3, coverage=0.2, distance=0.2)
    assert rt.judge(ran, tolerance=wide).verdict is rt.Verdict.WITHIN_TOLERANCE


def test_lost_replicates_leave_the_worst_case() -> None:
    """With lost replicates the p-value is at least that of any way to complete them."""
    rng = np.random.default_rng(5)
    u = special.ndtr(1.6 * rng.standard_normal(120))
    worst = rt.judge(given(u, lost=6)).levels["strong"].pvalue
    completions = [np.full(6, v) for v in (0.0, 0.3, 0.5, 1.0)] + [rng.random(6) for _ in range(50)]
    completed = [uniformity.ecdf_gamma(np.append(u, extra)).pvalue for extra in completions]
    assert worst >= max(completed)
    assert worst > uniformity.ecdf_gamma(u).pvalue


def test_lost_replicates_make_the_verdict_inconclusive_if_they_could_flip_it() -> None:
    """An error that a tenth of lost replicates could explain away is inconclusive; without them it is miscalibrated."""
    u = grid(150, spread=1.35)
    assert rt.judge(given(u)).verdict is rt.Verdict.MISCALIBRATED
    result = rt.judge(given(u, lost=20))
    assert result.verdict is rt.Verdict.INCONCLUSIVE
    assert "20 of 170 replicates were lost" in result.sentence


def test_lost_replicates_do_not_hide_a_gross_error() -> None:
    """A gross error stands whatever two lost replicates would have been."""
    assert rt.judge(given(grid(400, spread=3.0), lost=2)).verdict is rt.Verdict.MISCALIBRATED


def test_intervals_are_wider_with_lost_replicates() -> None:
    """Every interval contains the one without losses, and is strictly wider."""
    whole, torn = rt.judge(given(grid(500))), rt.judge(given(grid(500), lost=5))
    for before, after in zip(whole.measures, torn.measures, strict=True):
        assert after.low <= before.low
        assert after.high > before.high


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ([1.0, 2.0, 3.0, 4.0], "rhat: 1 to 4, median 2.5."),
        ([1.0, np.nan, 3.0, np.inf], "rhat: 1 to 3, median 2; missing or not finite in 2 of 4 replicates."),
        ([np.nan] * 4, "rhat: no finite number in any of 4 replicates."),
    ],
)
def test_what_samplers_say_is_told_with_what_they_do_not_say(said: list[float], note: str) -> None:
    """The range of a diagnostic is that of its finite numbers, and how many have none is counted."""
    found = replicates([0.1, 0.3, 0.6, 0.9])
    found = replace(found, arrays={**found.arrays, "diagnostic/rhat": np.array(said)})
    assert note in rt.judge(found).notes


def test_result_is_plain_data() -> None:
    """A result exports to JSON, prints its sentence first, and refuses to be iterated."""
    result = rt.judge(given(grid(200)))
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["verdict"] == "INCONCLUSIVE"
    assert data["n"] == 200
    assert str(result).startswith(result.sentence)
    with pytest.raises(TypeError, match="not iterable"):
        iter(result)


def test_unknown_level_lists_the_known() -> None:
    """Asking for a level that was not tested says which were."""
    with pytest.raises(rt.errors.InvalidStudy, match="strong"):
        _ = rt.judge(given(grid(50))).levels["exact"]


def test_all_lost_is_refused() -> None:
    """A judgement needs at least one replicate."""
    with pytest.raises(rt.errors.InvalidStudy, match="at least one replicate"):
        rt.judge(given(np.empty(0), lost=3))
