"""Numbers of replicates against simulated requirements, closed forms and their own inverse."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

from ringtrue.statistics.effects import coverage, rank_efficiency
from ringtrue.statistics.planning import detectable, plan, plan_certificate

INF = math.inf


@pytest.mark.parametrize(
    ("effect", "simulated"),
    [
        ({"eta": 0.5}, 37),
        ({"eta": 0.8}, 397),
        ({"eta": 0.9}, 1740),
        ({"eta": 1.25}, 427),
        ({"eta": 2.0}, 48),
        ({"bias": 0.2}, 246),
        ({"bias": 0.5}, 40),
    ],
)
def test_plan_agrees_with_simulated_requirements(effect: dict[str, float], simulated: int) -> None:
    """The plan is within 6 % of what the default test needed in simulations, themselves 5 % uncertain."""
    assert plan(**effect).n == pytest.approx(simulated, rel=0.06)  # type: ignore[arg-type]


@pytest.mark.parametrize(("eta", "exact"), [(0.5, 31), (0.8, 307), (0.9, 1396), (1.25, 326), (2.0, 37)])
def test_plan_at_the_undivided_level_is_the_chi_squared_test(eta: float, exact: int) -> None:
    """Undoing the price of the combination gives the exact requirement of the chi-squared test on z^2."""
    assert plan(eta=eta, alpha=0.05 * 2.6).n == pytest.approx(exact, abs=1)


@pytest.mark.parametrize(("delta", "exact"), [(0.2, 196), (0.5, 31)])
def test_plan_at_the_undivided_level_is_the_mean_test(delta: float, exact: int) -> None:
    """Undoing the price of the combination gives the normal requirement of the test on the mean of z."""
    assert plan(bias=delta, alpha=0.05 * 2.6).n == pytest.approx(exact, abs=1)


def test_planned_n_has_the_planned_power() -> None:
    """At the planned n the chi-squared test has the power asked for, and with a tenth fewer it has not."""
    n, level = plan(spread=1.3, power=0.9).n, 0.05 / 2.6

    def power(m: float) -> float:
        low, high = stats.chi2.ppf([level / 2, 1 - level / 2], m)
        return float(stats.chi2.cdf(low / 1.69, m) + stats.chi2.sf(high / 1.69, m))

    assert power(n) >= 0.9
    assert power(0.9 * n) < 0.9


def test_eta_is_an_inverse_squared_spread() -> None:
    """eta and spread ask the same question, and the sign of a bias does not matter."""
    assert plan(eta=0.64).n == plan(spread=1.25).n
    assert plan(bias=-0.3).n == plan(bias=0.3).n


@pytest.mark.parametrize("draws", [2, 9, 99])
def test_ranks_need_more_by_their_efficiency(draws: int) -> None:
    """The number of replicates is divided by the information that ranks keep."""
    kept = rank_efficiency(draws)
    assert plan(spread=1.1, draws=draws).n * kept.spread == pytest.approx(plan(spread=1.1).n, rel=5e-3)
    assert plan(bias=0.1, draws=draws).n * kept.bias == pytest.approx(plan(bias=0.1).n, rel=5e-3)


def test_functions_share_the_level() -> None:
    """Ten test functions cost as much as a tenth of the level."""
    assert plan(spread=0.8, functions=10).n == plan(spread=0.8, alpha=0.005).n


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
    seen = detectable(n, draws=draws, power=0.9, functions=3)
    for effect in ({"spread": seen.over_confident}, {"spread": seen.under_confident}, {"bias": seen.bias}):
        again = plan(**effect, draws=draws, power=0.9, functions=3)
        assert again.n == pytest.approx(n, rel=2e-3, abs=1)


def test_detectable_check_value() -> None:
    """A hundred replicates see variance factors of about 0.65 and 1.6."""
    seen = detectable(100)
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
    """At 90 % the spread alone asks for the tabulated numbers."""
    need = plan_certificate(spread=tolerance, bias=INF, coverage=INF, confidence=0.9)
    assert need.n == pytest.approx(n, abs=1)
    assert (need.bias, need.coverage) == (0, 0)


def test_certificate_is_the_largest_need() -> None:
    """The answer is the largest of the three parts, and names them."""
    need = plan_certificate()
    assert need.n == max(need.spread, need.bias, need.coverage) == need.bias
    assert str(need.n) in str(need)


@pytest.mark.parametrize(("tolerance", "confidence"), [(0.05, 0.9), (0.05, 0.95), (0.05, 0.9967), (0.03, 0.95)])
def test_certificate_coverage_is_nearly_exact(tolerance: float, confidence: float) -> None:
    """At the n given, the exact binomial interval lies within the tolerance with probability 0.75 to 0.85."""
    n = int(plan_certificate(spread=INF, bias=INF, coverage=tolerance, confidence=confidence).n)
    inside = []
    for hits in range(n + 1):
        measure = coverage(np.repeat([0.5, 0.0], [hits, n - hits]), confidence=confidence)
        inside.append(measure.low >= 0.9 - tolerance and measure.high <= 0.9 + tolerance)
    chance = stats.binom.pmf(np.arange(n + 1), n, 0.9) @ np.array(inside)
    assert 0.75 <= chance <= 0.85


def test_bias_need_is_the_normal_one() -> None:
    """The bias asks for the square of (1.960 + 1.282) over the tolerance."""
    reach = special.ndtri(0.975) + special.ndtri(0.9)
    assert plan_certificate(spread=INF, bias=0.1, coverage=INF).n == math.ceil(100 * reach**2)


def test_sentences() -> None:
    """A plan and a resolution read as sentences."""
    assert str(plan(bias=0.5, functions=2)).endswith("replicates (exact u, 2 test functions)")
    assert str(plan(bias=0.5, draws=9)).endswith("(9 draws per replicate, 1 test function)")
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
        (lambda: plan(bias=0.1, functions=0), "functions"),
        (lambda: plan(bias=0.1, draws=0), "draws"),
        (lambda: detectable(0), "at least 1"),
        (lambda: plan_certificate(spread=0.0), "tolerance on spread"),
        (lambda: plan_certificate(confidence=95), "confidence"),
    ],
)
def test_bad_questions_are_refused(call: Callable[[], object], says: str) -> None:
    """The message names what was wrong."""
    with pytest.raises(ValueError, match=says):
        call()
