"""The decision on given evidence and sizes: limits, shares, all and any, by hand."""

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from scipy import special, stats

import ringtrue as rt
from ringtrue.judgement import measures
from ringtrue.judgement.levels import Evidence, TestRow
from ringtrue.judgement.verdict import (
    certificate,
    decide,
    excused,
    joint_confidence,
    known_to,
    needed,
    one_draw,
    overall,
    rejecting,
    to_settle,
    usual_draws,
    wild,
    within,
)
from ringtrue.planning import plan_certificate
from ringtrue.statistics import effects
from ringtrue.statistics.effects import Interval

from ..builders import column, normal, ranked, replicates, scores

Judged = Literal["yes", "no", "open", "-"]
OPEN: tuple[Judged, Judged] = ("open", "no")
TOLERANCE = rt.Tolerance(spread=0.1, bias=0.2, coverage=0.04, distance=0.06)
RAN = replicates(np.full((5, 2), 0.5), names=["a", "b"])


def row(f: str = "a", level: str = "strong", adjusted: float = 1e-9, kind: str = "coordinate") -> TestRow:
    """Return a test that rejects."""
    return TestRow(level, f, "ks", 1.0, adjusted, adjusted, "exact law", 5, kind)


def size(name: str = "spread", f: str = "a", judged: Judged = "yes", estimate: float = 1.0) -> Interval:
    """Return a size that was compared with its tolerance."""
    return Interval(name, estimate, estimate - 0.01, estimate + 0.01, 1.0, f=f, within=judged)


# Tolerances.


def test_limits_are_those_of_the_tolerance() -> None:
    """Spread is symmetric on the logarithm, bias and coverage about their ideal, distances have one side."""
    assert TOLERANCE.limits("spread", 1.0) == pytest.approx((1 / 1.1, 1.1))
    assert TOLERANCE.limits("bias", 0.0) == pytest.approx((-0.2, 0.2))
    assert TOLERANCE.limits("coverage", 0.9) == pytest.approx((0.86, 0.94))
    assert TOLERANCE.limits("KS distance", 0.0) == TOLERANCE.limits("weak KS distance", 0.0) == (-math.inf, 0.06)


def test_a_part_of_a_tolerance_is_a_share_of_each() -> None:
    """The spread's on the logarithm: two halves are the whole."""
    half = TOLERANCE.part(0.5)
    assert (1 + half.spread) ** 2 == pytest.approx(1.1)
    assert (half.bias, half.coverage, half.distance) == pytest.approx((0.1, 0.02, 0.03))


@pytest.mark.parametrize("edge", [0.999, 1.0])
def test_a_tolerance_is_below_one(edge: float) -> None:
    """A share of 1 is refused, and just below it is not; a bias may be larger."""
    if edge < 1:
        rt.Tolerance(spread=edge, coverage=edge, distance=edge, bias=3)
        return
    for name in ("spread", "coverage", "distance"):
        with pytest.raises(rt.errors.InvalidStudy, match=f"the tolerance of {name}"):
            rt.Tolerance(**{name: edge})


BIAS = Interval("bias", 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("certifying", "known", "answer"),
    [
        ((0.0, -0.2, 0.2), (0.0, 0.0, 0.0), "yes"),  # the limits themselves are inside
        ((0.0, -0.201, 0.2), (0.0, 0.0, 0.0), "open"),
        ((0.0, -0.2, 0.201), (0.0, 0.0, 0.0), "open"),
        # Too large: the estimate outside and the end of the other interval beyond two thirds, 0.1333.
        ((0.21, 0.1, 0.3), (0.21, 0.134, 0.3), "no"),
        ((0.21, 0.1, 0.3), (0.21, 0.133, 0.3), "open"),
        ((0.19, 0.1, 0.3), (0.19, 0.134, 0.3), "open"),
        ((-0.21, -0.3, -0.1), (-0.21, -0.3, -0.134), "no"),
        ((-0.21, -0.3, -0.1), (-0.21, -0.3, -0.133), "open"),
        ((-0.19, -0.3, -0.1), (-0.19, -0.3, -0.134), "open"),
    ],
)
def test_within_tolerance_is_all_of_the_interval(
    certifying: tuple[float, float, float], known: tuple[float, float, float], answer: str
) -> None:
    """Yes, no and open by the rule, on both sides."""
    one, other = (replace(BIAS, estimate=e, low=a, high=b) for e, a, b in (certifying, known))
    assert within(one, other, TOLERANCE) == answer


# Evidence.


def found(strong: float, weak: float | None = None, adjusted: float = 1e-9) -> list[Evidence]:
    """Return evidence of one or two levels, a row each."""
    both = [Evidence("strong", (row(adjusted=adjusted),), strong)]
    return both if weak is None else [*both, Evidence("weak", (row(level="weak", adjusted=weak),), weak)]


def test_levels_share_the_budget() -> None:
    """The p-value is the smaller of p / 0.8 and p / 0.2, at most 1; a level without a share is not looked at."""
    assert overall(found(0.03)) == 0.03
    assert overall(found(0.04, 0.02)) == pytest.approx(0.05)
    assert overall(found(0.04, 0.008)) == pytest.approx(0.04)
    assert overall(found(0.9, 0.9)) == 1
    assert overall([*found(0.03), Evidence("exact", (row(level="exact"),), 1e-9)]) == 0.03


def test_rejecting_rows_are_within_their_share() -> None:
    """A row rejects at alpha times the share of its level, and none does if all together do not."""
    for adjusted, rejects in ((0.04, True), (0.0401, False)):
        rows = rejecting(
            [found(0.01, adjusted=adjusted)[0], Evidence("weak", (row(level="weak", adjusted=1.0),), 1.0)], 0.05
        )
        assert bool(rows) is rejects
    assert [one.level for one in rejecting(found(0.01, 0.01), 0.05)] == ["strong", "weak"]
    assert [one.level for one in rejecting(found(0.01, 0.0101), 0.05)] == ["strong"]
    assert rejecting(found(0.06, adjusted=0.04), 0.05) == []


# Decisions.


def test_a_certificate_needs_every_size_of_every_parameter() -> None:
    """One open size of three of two parameters is enough to withhold it; without sizes there is none."""
    sizes = [size(name, f) for f in ("a", "b") for name in ("spread", "bias", "coverage")]
    decision = {"found": found(0.5, adjusted=0.5), "alpha": 0.05, "replicates": RAN, "tolerance": TOLERANCE}
    assert decide(measures=sizes, **decision) is rt.Verdict.WITHIN_TOLERANCE  # type: ignore[arg-type]
    for i in range(len(sizes)):
        for judged in OPEN:
            some = [replace(m, within=judged) if i == j else m for j, m in enumerate(sizes)]
            assert decide(measures=some, **decision) is rt.Verdict.INCONCLUSIVE  # type: ignore[arg-type]
    assert decide(measures=[], **decision) is rt.Verdict.INCONCLUSIVE  # type: ignore[arg-type]


def test_the_certificate_is_about_what_the_user_asked() -> None:
    """Not about distances, and not about what the family adds."""
    ran = replicates(np.full((5, 3), 0.5), names=["a", "b", "c"], kinds=["coordinate", "sum", "overall"])
    sizes = [size(name, f) for f in "abc" for name in ("spread", "bias", "coverage", "KS distance")]
    assert [(m.f, m.name) for m in certificate(sizes, ran)] == [("a", "spread"), ("a", "bias"), ("a", "coverage")]


def test_a_rejection_is_called_if_a_size_is_too_large_or_none_speaks_of_it() -> None:
    """Evidence with small sizes is excused, and not certified before its distance is."""
    sizes = [size(name) for name in ("spread", "bias", "coverage", "KS distance")]

    def verdict(evidence: list[Evidence], rows: list[Interval]) -> rt.Verdict:
        return decide(evidence, 0.05, rows, RAN, replace(TOLERANCE, distance=0.99 + 0.005))

    near = [replace(m, estimate=0.5) if m.name == "KS distance" else m for m in sizes]
    assert verdict(found(0.05), near) is rt.Verdict.WITHIN_TOLERANCE  # p = alpha rejects, and is excused
    assert verdict(found(0.001), near) is rt.Verdict.WITHIN_TOLERANCE
    assert verdict(found(0.001), [*near[:3], replace(near[3], within="open")]) is rt.Verdict.INCONCLUSIVE
    for i in range(4):
        large = [replace(m, within="no") if i == j else m for j, m in enumerate(near)]
        assert verdict(found(0.001), large) is rt.Verdict.MISCALIBRATED
    assert verdict(found(0.001, adjusted=0.9), near) is rt.Verdict.MISCALIBRATED  # the joint test alone
    assert verdict([Evidence("strong", (row("c"),), 0.001)], near) is rt.Verdict.MISCALIBRATED  # no size of c
    # Of two rejections one is excused and one is not.
    both = [Evidence("strong", (row("a"), row("c")), 0.001)]
    assert verdict(both, near) is rt.Verdict.MISCALIBRATED


def test_a_distance_above_its_tolerance_excuses_plain_errors_only() -> None:
    """Spread and bias describe normal scores; of another shape the distance is the size."""
    plain = scores(1.05 * normal(400), names=["a"])
    u = np.asarray(special.ndtr(normal(400)))
    bent = replicates(u + 0.08 * np.sin(4 * np.pi * u), names=["a"])
    sizes = [size(name) for name in ("spread", "bias", "coverage")]
    for distance, shape in ((0.06, True), (0.061, False)):
        rows = [*sizes, size("KS distance", estimate=distance, judged="open")]
        assert excused(row(), rows, plain, TOLERANCE)
        assert excused(row(), rows, bent, TOLERANCE) is shape


def test_wild_scores_lie_beyond_what_tolerated_errors_reach() -> None:
    """The limit is bias + (1 + spread) q, q with chance 1e-4 / n of being exceeded by |N(0, 1)|; ranks have none."""
    limit = 0.2 + 1.1 * stats.norm.isf(1e-4 / (2 * 50))
    z = np.append(normal(48), [limit * 1.001, -limit * 0.999])
    assert wild(row(), scores(z, names=["a"]), TOLERANCE) == 1
    assert wild(row(), scores(np.append(z[:-2], [limit * 1.001, -limit * 1.001]), names=["a"]), TOLERANCE) == 2
    assert wild(row(), ranked(np.zeros(50), 9, names=["a"]), TOLERANCE) == 0
    assert not excused(row(), [size()], scores(z, names=["a"]), TOLERANCE)


# Sizes of a judgement.


def test_reported_intervals_hold_jointly() -> None:
    """Of K functions: three sizes at 1 - alpha / 3K, two distances at 1 - alpha / 2K."""
    assert joint_confidence(0.06, 4) == pytest.approx(1 - 0.005)
    z = np.stack([1.1 * normal(300), normal(300) + 0.1], axis=1)
    ran = replicates(special.ndtr(z), z=z, names=["a", "b"])
    rows = measures.judged(ran, 0.06, TOLERANCE)
    for k, name in enumerate("ab"):
        both = effects.spread_and_bias(z[:, k], confidence=1 - 0.06 / 6)
        covered = effects.coverage(column(ran, k).values, confidence=1 - 0.06 / 6)
        apart = effects.distance(column(ran, k).values, confidence=1 - 0.06 / 4)
        ends = [(m.low, m.high) for m in (both.spread, both.bias, covered, apart)]
        assert [(m.low, m.high) for m in rows if m.f == name] == ends


@pytest.mark.parametrize(("alpha", "edge"), [(0.05, 0.9), (0.02, 0.96), (0.6, 0.01)])
def test_certificates_rest_on_intervals_with_both_ends_at_alpha(alpha: float, edge: float) -> None:
    """A bias is certified if its interval at 1 - 2 alpha just fits, and not if it is a little wider than tolerated."""
    z = normal(300)
    (bias,) = (effects.spread_and_bias(z, confidence=edge).bias,)
    for factor, answer in ((1.001, "yes"), (0.999, "open")):
        rows = measures.judged(scores(z), alpha, replace(TOLERANCE, bias=factor * bias.high))
        assert next(m.within for m in rows if m.name == "bias") == answer


# What would settle it.


def test_replicates_to_settle_an_open_size() -> None:
    """The standard error must become the margin over q(0.8) + q(1 - alpha), and falls with the root of n."""
    m = Interval("bias", 0.05, 0.05 - 0.1 * 1.959964, 0.05 + 0.1 * 1.959964, 0.0)
    wanted = 0.15 / (stats.norm.ppf(0.8) + stats.norm.ppf(0.95))
    assert to_settle(m, TOLERANCE, 0.05, 100, 0.95) == pytest.approx(100 * (0.1 / wanted) ** 2, rel=1e-6)
    assert to_settle(replace(m, estimate=-0.05), TOLERANCE, 0.05, 100, 0.95) == pytest.approx(100 * (0.1 / wanted) ** 2)
    assert to_settle(replace(m, estimate=0.2), TOLERANCE, 0.05, 100, 0.95) == math.inf
    assert to_settle(replace(m, high=math.inf), TOLERANCE, 0.05, 100, 0.95) == math.inf
    spread = Interval("spread", 1.0, math.exp(-0.1 * 1.959964), math.exp(0.1 * 1.959964), 1.0)
    wanted = math.log(1.1) / (stats.norm.ppf(0.8) + stats.norm.ppf(0.95))
    assert to_settle(spread, TOLERANCE, 0.05, 100, 0.95) == pytest.approx(100 * (0.1 / wanted) ** 2, rel=1e-6)


def test_what_is_known_is_the_widest_of_all() -> None:
    """The larger of 1 / low and high of all spreads, and the end of all biases that is farthest from 0."""
    spreads = [Interval("spread", 1.0, 0.8, 1.1, 1.0), Interval("spread", 1.0, 0.9, 1.2, 1.0)]
    biases = [Interval("bias", 0.0, -0.3, 0.1, 0.0), Interval("bias", 0.0, -0.1, 0.2, 0.0)]
    assert known_to([*spreads, *biases]) == pytest.approx((0.25, 0.3))
    assert known_to([replace(spreads[0], high=1.5), *biases[1:]]) == pytest.approx((0.5, 0.2))
    assert known_to([replace(spreads[0], low=0.0)]) == (math.inf, math.inf)


def test_a_plan_is_made_for_what_was_asked() -> None:
    """The number of functions, the tolerance, the draws and alpha are handed on."""
    sizes = [size(f="a"), size("bias", "a"), size(f="b")]
    planned = plan_certificate(spread=0.1, bias=0.2, coverage=0.04, draws=99, alpha=0.01, parameters=2).n
    assert needed(sizes, TOLERANCE, 0.01, 99) == planned
    assert needed([], TOLERANCE, 0.01, None) == plan_certificate(spread=0.1, bias=0.2, coverage=0.04, alpha=0.01).n


def test_the_usual_number_of_draws() -> None:
    """The median of the function where it is least, None for exact outputs; one draw is told if nearly all have it."""
    draws = np.array([[9, 0], [19, 0], [39, 0]])
    assert usual_draws(replicates(np.full((3, 2), 0.5), draws=draws)) == 19
    assert usual_draws(replicates(np.full((3, 2), 0.5), draws=draws[:, ::-1] + [[3, 0]])) == 3
    assert usual_draws(RAN) is None
    for ones, told in ((18, False), (19, True)):
        many = np.repeat([1, 5], [ones, 20 - ones])[:, None]
        assert one_draw(replicates(np.full(20, 0.5), draws=many)) is told
