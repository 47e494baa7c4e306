"""Numbers of replicates against simulated requirements, closed forms and their own inverse."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

import ringtrue as rt
from ringtrue.statistics.effects import coverage, rank_efficiency
from ringtrue.statistics.planning import Expected, detectable, plan, plan_certificate
from tests.builders import refusal, says

INF = math.inf


@pytest.mark.parametrize(
    ("effect", "simulated"),
    [
        ({"eta": 0.5}, 36),
        ({"eta": 0.8}, 376),
        ({"eta": 0.9}, 1748),
        ({"eta": 1.25}, 426),
        ({"eta": 2.0}, 48),
        ({"bias": 0.2}, 250),
        ({"bias": 0.5}, 39),
    ],
)
def test_plan_agrees_with_simulated_requirements(effect: dict[str, float], simulated: int) -> None:
    """The plan is within 5 %, or three replicates, of what the default test needs by the table in docs/which-test.md.

    Those numbers have standard errors of 1 to 2 % and are checked again in tests/test_docs.py.
    """
    assert plan(**effect, of="test").n == pytest.approx(simulated, rel=0.05, abs=3)  # type: ignore[arg-type]


#: The share of 5 % that each member of the default test has in a plan.
LEVEL = 0.05 / 2.6


def power_of_chi_squared(n: float, spread: float) -> float:
    """Return the chance that the two-sided test on the sum of z^2 rejects."""
    low, high = stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], n) / spread**2
    return float(stats.chi2.cdf(low, n) + stats.chi2.sf(high, n))


@pytest.mark.parametrize("eta", [0.5, 0.8, 0.9, 1.25, 2.0])
def test_plan_is_the_requirement_of_the_chi_squared_test(eta: float) -> None:
    """With the planned n the test on z^2 has a power of 80 %, and with one replicate fewer it has not."""
    n, spread = plan(eta=eta, of="test").n, eta**-0.5
    assert power_of_chi_squared(n - 1, spread) < 0.8 <= power_of_chi_squared(n, spread)


@pytest.mark.parametrize("delta", [0.2, 0.5, -0.5])
def test_plan_is_the_requirement_of_the_mean_test(delta: float) -> None:
    """With the planned n the test on the mean of z has a power of 80 %, and with one replicate fewer it has not."""
    n = plan(bias=delta, of="test").n

    def power(m: float) -> float:
        # The other tail has a chance below 1e-5.
        return float(stats.norm.sf(stats.norm.isf(LEVEL / 2) - abs(delta) * math.sqrt(m)))

    assert power(n - 1) < 0.8 <= power(n)


def test_planned_n_has_the_planned_power() -> None:
    """Another power is planned for alike."""
    n = plan(spread=1.3, power=0.9, of="test").n
    assert power_of_chi_squared(n - 1, 1.3) < 0.9 <= power_of_chi_squared(n, 1.3)


def test_eta_is_an_inverse_squared_spread() -> None:
    """eta and spread ask the same question, and the sign of a bias does not matter."""
    assert plan(eta=0.64).n == plan(spread=1.25).n
    assert plan(bias=-0.3).n == plan(bias=0.3).n


@pytest.mark.parametrize("draws", [2, 9, 99])
def test_ranks_need_more_by_their_efficiency(draws: int) -> None:
    """The number of replicates is divided by the information that ranks keep."""
    kept = rank_efficiency(draws)
    exact, ranked = plan(spread=1.1, of="test"), plan(spread=1.1, draws=draws, of="test")
    assert ranked.n * kept.spread == pytest.approx(exact.n, rel=5e-3)
    exact, ranked = plan(bias=0.1, of="test"), plan(bias=0.1, draws=draws, of="test")
    assert ranked.n * kept.bias == pytest.approx(exact.n, rel=5e-3)


def test_parameters_share_the_level() -> None:
    """Ten parameters cost as much as a tenth of the level, of which the tests of their joint law have 0.35 of 0.8."""
    assert plan(spread=0.8, parameters=10, of="test").n == plan(spread=0.8, alpha=0.005, of="test").n
    assert plan(spread=0.8, parameters=10).n == plan(spread=0.8, alpha=0.005 * 0.45 / 0.8).n


@pytest.mark.parametrize(("draws", "share"), [(None, 0.8 * 0.9), (99, 0.8 * 0.9 * 0.9)])
def test_a_check_has_its_shares_of_the_level(draws: int | None, share: float) -> None:
    """The weak level, what the default family adds, and on draws Bonferroni's rule beside the joint test, cost."""
    alone = plan(bias=0.2, alpha=0.05 * share, draws=draws, of="test")
    assert plan(bias=0.2, alpha=0.05, draws=draws).n == alone.n


@pytest.mark.slow
@pytest.mark.parametrize(("effect", "spread", "bias"), [({"spread": 1.25}, 1.25, 0.0), ({"bias": 0.3}, 1.0, 0.3)])
def test_a_check_finds_what_is_planned(effect: dict[str, float], spread: float, bias: float) -> None:
    """At the planned n the p-value of check is at most alpha in 80 % of runs, where the weak level sees nothing.

    Outputs are narrow, so that the belief does not tell. Of 600 runs the share has a standard error of 1.6 points, and
    the plan is good to 6 % of n, about 2 points: the bounds 0.8 +- 0.1 are left with probability below 1e-6. The broken
    twin, half of the n, has a power below 0.5: of 150 runs that leaves 0.7 five standard errors away.
    """

    def power(n: int, runs: int) -> float:
        noise, sd = 0.1, 0.1 / 1.01**0.5
        found = [
            rt.check(
                rt.Normal(0, 1),
                lambda theta, rng: theta + noise * rng.normal(size=theta.shape),
                lambda mu0, y: rt.Normal(y / 1.01 - bias * sd / spread, sd / spread),
                n=n,
                batch=n,
                seed=seed,
            ).pvalue
            for seed in range(runs)
        ]
        return float(np.mean(np.array(found) <= 0.05))

    n = int(plan(**effect).n)  # type: ignore[arg-type]
    assert 0.7 <= power(n, 600) <= 0.9
    assert power(n // 2, 150) < 0.7


def test_one_draw_never_sees_spread() -> None:
    """With one draw no number of replicates finds a spread, and the sentence says so."""
    hopeless = plan(spread=1.5, draws=1)
    assert hopeless.n == INF
    assert "no number" in str(hopeless)
    seen = detectable(1000, draws=1)
    assert (seen.over_confident, seen.under_confident) == (INF, 0)
    assert seen.bias < 0.2
    assert "no error of spread" in str(seen)
    assert plan_certificate(draws=1).n == INF


@pytest.mark.parametrize("n", [20, 100, 1000, 10**6, 10**9])
@pytest.mark.parametrize("draws", [None, 9, 99])
def test_detectable_inverts_plan(n: int, draws: int | None) -> None:
    """Planning for what n replicates can see asks for n replicates, for every effect."""
    seen = detectable(n, draws=draws, power=0.9, parameters=3)
    for effect in ({"spread": seen.over_confident}, {"spread": seen.under_confident}, {"bias": seen.bias}):
        again = plan(**effect, draws=draws, power=0.9, parameters=3)  # type: ignore[arg-type]
        assert again.n == pytest.approx(n, rel=2e-3, abs=1)


def test_detectable_check_value() -> None:
    """A hundred replicates see variance factors of about 0.65 and 1.6."""
    seen = detectable(100, of="test")
    assert seen.over_confident**-2 == pytest.approx(0.65, abs=0.01)
    assert seen.under_confident**-2 == pytest.approx(1.6, abs=0.02)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tiny_runs_see_only_huge_errors(n: int) -> None:
    """A handful of replicates has an answer, and it is no fine one."""
    seen = detectable(n, draws=2, power=0.99)
    assert seen.over_confident > 5
    assert seen.under_confident < 0.2
    assert plan(spread=1e6).n >= 1


def test_tiny_errors_have_the_asymptotic_answer() -> None:
    """For spreads very near 1 exact and asymptotic requirements meet: n is inversely quadratic in log s."""
    near, nearer = plan(spread=math.exp(2e-4)).n, plan(spread=math.exp(1e-4)).n
    assert nearer / near == pytest.approx(4, rel=1e-3)


@pytest.mark.parametrize(("tolerance", "n"), [(0.05, 1799), (0.1, 471), (0.2, 129)])
def test_certificate_check_values(tolerance: float, n: int) -> None:
    """The spread alone asks for the tabulated numbers."""
    need = plan_certificate(spread=tolerance, bias=INF, coverage=INF)
    assert need.n == pytest.approx(n, abs=1)
    assert (need.bias, need.coverage) == (0, 0)


def test_a_certificate_needs_more_than_any_of_its_parts() -> None:
    """All three must be certified together, which asks for more than the largest alone, and for less than their sum."""
    need = plan_certificate()
    alone = (need.spread, need.bias, need.coverage)
    assert max(alone) == need.bias < need.n < sum(alone)
    assert str(need.n) in str(need)


def test_parameters_are_certified_together() -> None:
    """Ten independent parameters are as one at a chance of the tenth root of 0.8: the bias alone in closed form."""
    each = 0.8**0.1
    reach = special.ndtri(0.95) + special.ndtri((1 + each) / 2)
    assert plan_certificate(spread=INF, coverage=INF, parameters=10).n == math.ceil(100 * reach**2)


@pytest.mark.parametrize(("tolerance", "alpha"), [(0.05, 0.05), (0.05, 0.025), (0.05, 0.00165), (0.03, 0.025)])
def test_certificate_coverage_is_nearly_exact(tolerance: float, alpha: float) -> None:
    """At the n given, the exact binomial interval lies within the tolerance with probability 0.75 to 0.85."""
    n = int(plan_certificate(spread=INF, bias=INF, coverage=tolerance, alpha=alpha).n)
    inside = []
    for hits in range(n + 1):
        measure = coverage(np.repeat([0.5, 0.0], [hits, n - hits]), confidence=1 - 2 * alpha)
        inside.append(measure.low >= 0.9 - tolerance and measure.high <= 0.9 + tolerance)
    chance = stats.binom.pmf(np.arange(n + 1), n, 0.9) @ np.array(inside)
    assert 0.75 <= chance <= 0.85


def test_bias_need_is_the_normal_one() -> None:
    """The bias asks for the square of (1.645 + 1.282) over the tolerance."""
    reach = special.ndtri(0.95) + special.ndtri(0.9)
    assert plan_certificate(spread=INF, bias=0.1, coverage=INF).n == math.ceil(100 * reach**2)


def test_sentences() -> None:
    """A plan and a resolution read as sentences."""
    assert str(plan(bias=0.5, parameters=2)).endswith("replicates (exact u, 2 parameters)")
    assert str(plan(bias=0.5, draws=9)).endswith("(9 draws per replicate, 1 parameter)")
    assert "bias above" in str(detectable(50))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: plan(), "exactly one"),
        (lambda: plan(spread=1.2, bias=0.1), "exactly one"),
        (lambda: plan(spread=1.0), "not 1"),
        (lambda: plan(eta=-1.0), "positive"),
        (lambda: plan(bias=0.0), "not 0"),
        (lambda: plan(bias=0.1, power=0.01), "larger than alpha"),
        (lambda: plan(bias=0.1, parameters=0), "parameters"),
        (lambda: plan(bias=0.1, draws=0), "draws"),
        (lambda: detectable(0), "at least 1"),
        (lambda: plan_certificate(spread=0.0), "tolerance on spread"),
        (lambda: plan_certificate(alpha=5), "alpha"),
        (lambda: plan_certificate(parameters=0), "parameters"),
        (lambda: plan(bias=0.1, of="everything"), "of must be"),  # type: ignore[arg-type]
    ],
)
def test_bad_questions_are_refused(call: Callable[[], object], says: str) -> None:
    """The message names what was wrong."""
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.slow
def test_runs_until_decided_take_what_was_measured() -> None:
    """Mean lengths of 100 runs within five standard errors of those of 1000 runs of another program (see its table).

    Calibrated 1252, eta .5 about 39 to 67 by how often one looks, bias .2 about 300; sds are about half of the means.
    """
    calibrated = plan(until="decided")
    assert abs(calibrated.n - 1252) < 5 * 0.5 * 1252 / 10
    assert isinstance(calibrated, Expected)
    assert calibrated.within > 0.8
    wrong = plan(until="decided", eta=0.5)
    assert 25 < wrong.n < 80
    assert isinstance(wrong, Expected)
    assert wrong.miscalibrated == 1
    assert "decided after about" in str(wrong)
    says(refusal(lambda: plan(until="soon")), "'decided'", "'soon'")  # type: ignore[arg-type]
