"""The rule of stages: its chance of a false alarm in closed form, and what it takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.errors import InvalidStudy
from ringtrue.statistics.sequential.budget import STAGES, Stage, expected, stages


def _chance(plan: tuple[Stage, ...]) -> float:
    """Return the probability that uniform p-values are rejected."""
    total, reached = 0.0, 1.0
    for stage in plan:
        total += reached * min(stage.rejects, 1.0)
        reached *= min(stage.accepts, 1.0) - min(stage.rejects, 1.0)
    return total


@pytest.mark.parametrize("alpha", [0.05, 1e-3, 1e-5, 2e-8])
def test_the_chance_of_a_false_alarm_is_alpha(alpha: float) -> None:
    """Summed over stages it is alpha, up to rounding."""
    assert _chance(stages(alpha)) == pytest.approx(alpha, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.05, 1e-3, 1e-5, 2e-8])
def test_a_rule_that_gives_every_stage_all_of_alpha_would_be_seen(alpha: float) -> None:
    """The broken twin: thresholds from alpha instead of alpha / 7 reject seven times too often."""
    assert _chance(stages(STAGES * alpha)) > 6.8 * alpha


def test_a_large_alpha_is_kept() -> None:
    """Where thresholds pass 1 the chance is still alpha at most."""
    assert 0 < _chance(stages(0.9)) <= 0.9


def test_thresholds_are_those_of_the_algorithm() -> None:
    """At 1e-5 the first stage rejects at 1.42857e-6 and accepts above 0.146213 more; replicates grow once."""
    plan = stages(1e-5)
    assert plan[0].rejects == pytest.approx(1.42857e-6, rel=1e-5)
    assert plan[0].accepts - plan[0].rejects == pytest.approx(0.146213, rel=1e-5)
    assert [stage.n for stage in plan] == [100, *[400] * 6]
    assert plan[-1].rejects == pytest.approx(0.146213, rel=1e-5)


def test_replicates_of_what_is_right_are_few() -> None:
    """The mean is a geometric series: 168.5 at 1e-5, and in proportion to the first stage."""
    g = (1e-5 / 7) ** (1 / 7)
    assert expected(1e-5) == pytest.approx(100 + 400 * sum(g**j for j in range(1, 7)), rel=1e-12)
    assert expected(1e-5, first=50) == pytest.approx(expected(1e-5) / 2, rel=1e-12)


def test_decisions_at_the_thresholds() -> None:
    """A p-value at a threshold is rejected, or goes on; the last stage decides whatever comes."""
    first, *_, last = stages(1e-5)
    assert [first.decide(p) for p in (0.0, first.rejects, first.accepts, 1.0)] == [
        "reject",
        "reject",
        "go on",
        "accept",
    ]
    assert {last.decide(p / 1000) for p in range(1001)} == {"reject", "accept"}


def _rejected(alpha: float, pvalues: list[float]) -> bool:
    for stage, p in zip(stages(alpha), pvalues, strict=True):
        if (decision := stage.decide(p)) != "go on":
            return decision == "reject"
    raise AssertionError("the last stage went on")


_P = st.floats(0, 1) | st.floats(-8, 0).map(lambda x: 10**x)
_ALPHA = st.floats(-8, -0.1).map(lambda x: 10**x)


@given(st.lists(_P, min_size=STAGES, max_size=STAGES), _ALPHA, _ALPHA)
def test_what_fails_at_one_alpha_fails_at_every_larger_one(pvalues: list[float], one: float, other: float) -> None:
    """So a test that fails in a suite fails alone, where its share of the budget is larger."""
    assert _rejected(max(one, other), pvalues) >= _rejected(min(one, other), pvalues)


@pytest.mark.parametrize(("alpha", "first"), [(0.0, 100), (1.0, 100), (1e-5, 0), (1e-5, 2.5)])
def test_what_is_no_level_or_number_is_refused(alpha: float, first: int) -> None:
    """A level lies between 0 and 1, and a stage has at least one replicate."""
    with pytest.raises(InvalidStudy, match=r"alpha must lie|first must be"):
        stages(alpha, first=first)
