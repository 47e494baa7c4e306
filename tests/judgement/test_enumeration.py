"""The level of a verdict, by counting every outcome of a small study: no simulation, no false alarms."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.functions import Sees
from ringtrue.judgement.levels import evidence, stream, strong
from ringtrue.judgement.verdict import overall
from ringtrue.replicates.record import Replicates
from ringtrue.statistics.combining import prefix_two_median
from ringtrue.statistics.uniformity import ks

from ..builders import largest_excess, ranked, replicates

# Functions and levels: every position of one replicate, N of them, for which KS has the p-values 2/N, 4/N, ..., twice
# each. Functions are shifted against each other round the circle, so that no two reject at once: Bonferroni's rule then
# spends its level to the last, and a budget that adds up to more is seen.

N = 400


def turned(j: int) -> Any:
    """Return u of function j in every outcome: multiples of 1/N, counted from the nearer end."""
    place = (np.arange(N) + j * N // 8) % N
    return np.where(place < N // 2, place + 1, place) / N


def verdict_pvalues(kinds: Sequence[str], sees: Sequence[Sees], weak: int) -> list[float]:
    """Return the p-value of the verdict of every outcome, with some functions also tested at the weak level."""
    k = len(kinds)
    u = np.stack([turned(j) for j in range(k)], axis=1)
    drawn = np.stack([turned(k + j) if j < weak else np.full(N, np.nan) for j in range(k)], axis=1)
    every = (replicates([a], kinds=kinds, sees=sees, weak_u=b, weak_value=b) for a, b in zip(u, drawn, strict=True))
    return [overall(evidence(one, test="ks")[0]) for one in every]


THETA: Sees = "theta"


@pytest.mark.parametrize(
    ("kinds", "sees", "weak"),
    [
        (["coordinate", "function"], [THETA] * 2, 0),
        (["coordinate", "sum", "overall"], [THETA] * 3, 0),
        (["coordinate"], [THETA], 1),
        (["coordinate", "overall"], [THETA] * 2, 2),
        (["coordinate", "function"], [THETA, "output"], 1),
        (["coordinate", "function"], [THETA, "data"], 1),
    ],
)
def test_the_verdict_spends_its_level_and_no_more(kinds: list[str], sees: list[Sees], weak: int) -> None:
    """P(p <= alpha) is at most alpha at every alpha, and equal to it at some: where no two tests reject at once.

    So shares that add up to more than 1, over functions or over levels, are seen, and so is a share that nobody has.
    """
    p = np.array(verdict_pvalues(kinds, sees, weak))
    assert largest_excess(p) == pytest.approx(1, abs=1e-6)
    # The broken twin has a budget that adds up to 1.01.
    assert largest_excess(p / 1.01) > 1.009


def test_judge_reports_the_p_value_that_was_counted() -> None:
    """The p-value of a result is that of the evidence of all levels."""
    one = replicates([[0.01, 0.5]], weak_u=[0.3, 0.001], weak_value=[0.3, 0.001])
    # Two weak functions share a fifth of the budget, two strong ones the rest: 0.02 / 0.4 and 0.002 / 0.1.
    assert rt.judge(one, test="ks").pvalue == pytest.approx(0.02)
    assert overall(evidence(one, test="ks")[0]) == pytest.approx(0.02)


# Draws: with three replicates and nine draws there are 1000 ways to say who was the truth, which is one more than the
# joint test tries. All others, in place of random ones, make its p-value that of the whole group.


class EveryLabelling:
    """In place of random numbers: all labellings but the one that was seen."""

    def integers(self, many: int, **_: Any) -> Any:
        """Return them in order."""
        return np.array(list(product(range(many), repeat=3)))[1:]


def with_truth(members: Any, label: Sequence[int]) -> Replicates:
    """Return replicates whose truth is the member of this label."""
    at, members = np.arange(len(label)), members.copy()
    members[at, 0], members[at, label] = members[at, label], members[at, 0].copy()
    ran = ranked(members[:, 0], 9)
    return replace(ran, arrays={**ran.arrays, "members": members})


@pytest.mark.slow
def test_the_joint_p_value_of_draws_holds_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever of the ten was the truth, equally likely in each replicate, p <= alpha has probability at most alpha.

    The broken twin gives the joint test all of the budget and Bonferroni's rule a ninth more.
    """
    monkeypatch.setattr(strong, "labels", EveryLabelling)
    values = np.random.default_rng(3).normal(size=(10, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    # The same members in every replicate: the order of the labels is then of no consequence.
    members = np.stack([values.argsort(axis=0).argsort(axis=0)] * 3)
    once = list(combinations_with_replacement(range(10), 3))
    p = np.repeat(
        [evidence(with_truth(members, label), test="ks")[0][0].pvalue for label in once],
        [len(set(permutations(label))) for label in once],
    )
    assert largest_excess(p) <= 1 + 1e-9
    assert largest_excess(0.9 * p) > 1.01


# Choosing a function: all ranks of four replicates among three draws, each function a cyclic shift of the first.


@pytest.mark.slow
def test_a_choice_is_tested_on_replicates_that_did_not_make_it() -> None:
    """P(p <= alpha) <= alpha for every alpha; the broken twin is tested on the half that chose it."""
    chosen = rt.BestOf(tuple(rt.Coordinate(index=(j,)) for j in range(4)))
    honest, reused = [], []
    for first in product(range(4), repeat=4):
        ran = ranked((np.array(first)[:, None] + np.arange(4)) % 4, 3)
        ran = replace(ran, header=replace(ran.header, selection=chosen))
        honest.append(evidence(ran, test="ks")[0][0].pvalue)
        reused.append(min(ks(ran.rank[:2, j], draws=3).pvalue for j in range(4)))
    assert largest_excess(honest) <= 1 + 1e-9
    assert largest_excess(reused) > 1.5


def test_several_splits_are_combined_in_their_order() -> None:
    """The p-value of several splits is that of exchangeable p-values, one of each split, in the order of drawing."""
    rng = np.random.default_rng(4)
    several = rt.BestOf([rt.Coordinate(index=(j,)) for j in range(3)], splits=8)
    result = rt.check_draws(rng.normal(size=(40, 3)), rng.normal(size=(40, 9, 3)), f=several, test="ks")
    ran, draw = result.replicates, stream(result.replicates, 1)
    p, often = [], []
    for order in [draw.permutation(40) for _ in range(8)]:
        choosing, testing = ([ks(ran.rank[half, j], draws=9).pvalue for j in range(3)] for half in np.split(order, 2))
        often.append(int(np.argmin(choosing)))
        p.append(testing[often[-1]])
    assert result.levels["strong"].pvalue == prefix_two_median(p) > min(p)
    # The row is that of the function that was chosen most often, in six of eight splits.
    assert np.bincount(often).max() > 4
    assert result.tests[0].f == f"theta[{np.bincount(often).argmax()}]"
