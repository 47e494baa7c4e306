"""Groups against enumeration and closed forms, the level of their test with a broken twin, and sizes that cover."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy import special, stats

from ringtrue.statistics import combining, effects, groups, uniformity
from ringtrue.statistics.arguments import Floats
from ringtrue.statistics.effects.intervals import clopper_pearson
from ringtrue.values import Generator

FALSE_ALARM = 1e-6


def scores(many: int, size: int, share: float, rng: Generator) -> Floats:
    """Return standard normal scores of groups, this share of whose variance is that of the group."""
    whole = rng.standard_normal((many, 1))
    return (math.sqrt(share) * whole + math.sqrt(1 - share) * rng.standard_normal((many, size))).ravel()


def members(many: int, size: int) -> np.ndarray:
    """Return the groups of such scores."""
    return np.repeat(np.arange(many), size)


# One row per group.


def test_groups_of_one_are_the_rows_themselves() -> None:
    """Nothing changes if every row is a group of its own."""
    x = np.random.default_rng(0).standard_normal((20, 3))
    np.testing.assert_allclose(groups.per_group(x, np.arange(20)), x, rtol=1e-12, atol=1e-14)


def test_rows_of_groups_keep_the_mean_and_are_group_means_if_groups_are_equal() -> None:
    """The mean is that of all rows, whatever the sizes; with equal sizes a row is the mean of its group."""
    rng = np.random.default_rng(1)
    x, labels = rng.standard_normal(60), rng.integers(0, 7, 60)
    assert groups.per_group(x, labels).mean() == pytest.approx(x.mean(), abs=1e-14)
    np.testing.assert_allclose(groups.per_group(x, members(12, 5)), x.reshape(12, 5).mean(axis=1), atol=1e-14)


def test_the_empirical_law_of_groups_is_that_of_indicators() -> None:
    """Counting by cell gives what indicators at every point give, ends and points included."""
    rng = np.random.default_rng(2)
    u = np.concatenate([rng.random(50), np.arange(33) / 32])
    labels = rng.integers(0, 9, u.size)
    inside = (u[:, None] <= np.arange(1, 32) / 32).astype(float)
    np.testing.assert_allclose(groups._below(u, labels), groups.per_group(inside, labels), atol=1e-14)


def test_one_of_each_is_any_member_of_its_group_alike() -> None:
    """Every member of a group of 1, 2 and 4 is chosen at its rate (four counts with 8 tails; false alarm 1e-6)."""
    labels, rng, times = [5, 3, 3, 8, 8, 8, 8], np.random.default_rng(3), 4000
    chosen = np.array([groups.one_of_each(labels, rng) for _ in range(times)])
    assert (np.diff(chosen, axis=1) > 0).all()
    assert (chosen[:, 0] == 0).all()
    counts = np.bincount(chosen.ravel(), minlength=7)
    for row, rate in ((1, 1 / 2), (3, 1 / 4), (4, 1 / 4), (5, 1 / 4)):
        low, high = stats.binom.ppf([FALSE_ALARM / 8, 1 - FALSE_ALARM / 8], times, rate)
        assert low <= counts[row] <= high


# One of each, by enumeration: three groups of two ranks among two draws, and two choices.


@cache
def _pvalue(ranks: tuple[int, ...]) -> float:
    return uniformity.ks(list(ranks), draws=2).pvalue


def _law(pairs: dict[tuple[int, int], float], combine: bool) -> list[tuple[float, float]]:
    """Return the p-values of all outcomes with their probabilities: of one of each twice, or of all as they are."""
    sides = list(itertools.product((0, 1), repeat=3))
    found = []
    for outcome in itertools.product(pairs, repeat=3):
        chance = math.prod(pairs[pair] for pair in outcome)
        if not combine:
            found.append((_pvalue(tuple(sorted(itertools.chain(*outcome)))), chance))
            continue
        each = [_pvalue(tuple(sorted(pair[side] for pair, side in zip(outcome, one, strict=True)))) for one in sides]
        two = itertools.product(each, repeat=2)
        found += [(combining.prefix_two_median(list(both)), chance / len(sides) ** 2) for both in two]
    return found


def _excess(law: list[tuple[float, float]]) -> float:
    """Return by how much the chance of some p-value exceeds it, at most."""
    ordered = sorted(law)
    p, chance = np.array(ordered).T
    total = np.cumsum(chance)
    last = np.append(p[1:] > p[:-1] + 1e-12, True)
    return float((total - p)[last].max())


#: Laws of the two ranks of a group, both uniform: equal, mirrored, independent.
JOINT: dict[str, dict[tuple[int, int], float]] = {
    "equal": {(r, r): 1 / 3 for r in range(3)},
    "mirrored": {(r, 2 - r): 1 / 3 for r in range(3)},
    "independent": {(r, s): 1 / 9 for r in range(3) for s in range(3)},
}


@pytest.mark.parametrize("joint", JOINT)
def test_one_of_each_is_exact_whatever_the_dependence(joint: str) -> None:
    """Over all outcomes and choices no p-value occurs more often than it says."""
    assert _excess(_law(JOINT[joint], combine=True)) <= 1e-12


def test_the_broken_twin_takes_all_for_independent() -> None:
    """Six ranks of which two and two are equal reject too often if they count as six: the same enumeration shows it."""
    assert _excess(_law(JOINT["independent"], combine=False)) <= 1e-12
    assert _excess(_law(JOINT["equal"], combine=False)) > 0.05


# The score test.


def _rejected(share: float, labels: np.ndarray, many: int, size: int, runs: int, seed: int) -> int:
    rng = np.random.default_rng(seed)
    found = [groups.score_test(scores(many, size, share, rng), labels).pvalue for _ in range(runs)]
    return int(np.sum(np.array(found) <= 0.05))


@pytest.mark.parametrize(("many", "size"), [(20, 5), (60, 2), (100, 20)])
@pytest.mark.parametrize("share", [0.99, 0.5, 0.01])
def test_the_score_test_holds_its_level(many: int, size: int, share: float) -> None:
    """At most 5 % of 600 runs are rejected at 5 %: false alarm 1e-6; a level of 15 % is missed in 1e-3."""
    most = stats.binom.isf(FALSE_ALARM, 600, 0.05)
    assert stats.binom.cdf(most, 600, 0.15) < 1e-3
    assert _rejected(share, members(many, size), many, size, 600, seed=4) <= most


def test_the_broken_twin_ignores_the_groups() -> None:
    """With every replicate for a group of its own strong dependence is rejected far more often."""
    most = stats.binom.isf(FALSE_ALARM, 600, 0.05)
    assert _rejected(0.99, np.arange(300), 60, 5, 600, seed=4) > 2 * most


def test_unequal_groups_hold_the_level_too() -> None:
    """Sizes from 1 to 20, equal members: at most 5 % of 600 runs (false alarm 1e-6; 15 % is missed in 1e-3)."""
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(80), rng.integers(1, 21, 80))
    found = [groups.score_test(rng.standard_normal(80)[labels], labels).pvalue for _ in range(600)]
    assert np.sum(np.array(found) <= 0.05) <= stats.binom.isf(FALSE_ALARM, 600, 0.05)


def test_the_score_test_is_students_for_two_values() -> None:
    """Ranks among one draw have one score: +-1 of n, with Student's law, by Bonferroni over two tails and a blind one.

    The score of the spread is 0 for both ranks, so that its tail is one half.
    """
    ranks = (np.arange(90) % 3 > 0).astype(int)
    found = groups.score_test(ranks, np.arange(90), draws=1)
    assert found.statistic == pytest.approx(30 / math.sqrt(90))
    assert found.pvalue == pytest.approx(3 * stats.t.sf(30 / math.sqrt(90), 89), rel=1e-9)


def test_many_draws_are_the_continuum() -> None:
    """Ranks among 100 000 draws give the p-value of the scores themselves, to a per mille."""
    z = scores(50, 3, 0.5, np.random.default_rng(6))
    ranks = np.floor(special.ndtr(z) * 100_001).astype(int)
    exact, ranked = groups.score_test(z, members(50, 3)), groups.score_test(ranks, members(50, 3), draws=100_000)
    assert ranked.statistic == pytest.approx(exact.statistic, rel=1e-3)


def test_left_and_right_are_alike_and_labels_are_names() -> None:
    """Mirrored scores, and other names for the same groups, have the same p-value."""
    z, labels = scores(40, 3, 0.5, np.random.default_rng(7)) + 0.3, members(40, 3)
    found = groups.score_test(z, labels).pvalue
    assert groups.score_test(-z, labels).pvalue == pytest.approx(found, rel=1e-9)
    assert groups.score_test(z, [f"patient {1000 - i}" for i in labels]).pvalue == pytest.approx(found, rel=1e-9)


def test_infinite_scores_and_a_single_group_are_no_accident() -> None:
    """Scores beyond all numbers are evidence like other far ones; one group says nothing."""
    z = scores(60, 2, 0.5, np.random.default_rng(8))
    z[::4] = np.inf
    assert groups.score_test(z, members(60, 2)).pvalue < 1e-3
    assert groups.score_test(z, np.zeros(120)).pvalue == 1.0


def test_all_members_count_where_they_are_independent() -> None:
    """A spread of 1.2, 60 groups of 20 nearly independent replicates: found in at least 95 of 100 runs.

    One of each is 60 replicates, with which the same error is found in about a third. If the power is 0.999, fewer than
    95 of 100 have a chance below 1e-6.
    """
    assert stats.binom.cdf(94, 100, 0.999) < FALSE_ALARM
    rng = np.random.default_rng(9)
    found = [groups.score_test(1.2 * scores(60, 20, 0.01, rng), members(60, 20)).pvalue for _ in range(100)]
    assert np.sum(np.array(found) <= 0.05) >= 95


# Sizes.


def test_copies_of_a_replicate_have_the_error_of_one() -> None:
    """The standard error with every replicate four times is that without copies; ignoring groups it is half of it."""
    x = np.random.default_rng(10).standard_normal(50)
    alone, copies = groups.standard_error(x, np.arange(50)), groups.standard_error(np.repeat(x, 4), members(50, 4))
    assert copies == pytest.approx(alone)
    assert groups.standard_error(np.repeat(x, 4), np.arange(200))[0] == pytest.approx(alone[0] / 2, rel=0.02)


@pytest.mark.parametrize("share", [0.99, 0.5, 0.01])
def test_intervals_cover(share: float) -> None:
    """Spread 1.3 and bias 0.3, 60 groups of 5: each of the sizes is covered by 90 % intervals in at least 90 % of runs.

    Each of 12 counts of 200 has a false alarm of 1e-6 if the coverage is 0.88, and a coverage of 0.66 is missed in
    1e-3. Without the groups the bias of equal members is covered in less than that (the broken twin).
    """
    rng, labels, runs = np.random.default_rng(11), members(60, 5), 200
    least = stats.binom.ppf(FALSE_ALARM, runs, 0.88)
    assert stats.binom.sf(least, runs, 0.66) < 1e-3
    ends = special.ndtr((special.ndtri([0.05, 0.95]) - 0.3) / 1.3)
    x = np.linspace(-8, 8, 4001)
    true = [1.3, 0.3, ends[1] - ends[0], np.abs(special.ndtr(x) - special.ndtr((x - 0.3) / 1.3)).max()]
    hits, naive = np.zeros(4), 0
    for _ in range(runs):
        z = 0.3 + 1.3 * scores(60, 5, share, rng)
        u = special.ndtr(z)
        (both,) = groups.grouped_spreads_and_biases(z, labels, confidences=(0.9,))
        rows = [
            both.spread,
            both.bias,
            groups.grouped_share(np.abs(u - 0.5) <= 0.45, labels, nominal=0.9, confidence=0.9),
            groups.grouped_distance(u, labels, rng=rng, confidence=0.9),
        ]
        hits += [row.low <= value <= row.high for row, value in zip(rows, true, strict=True)]
        alone = effects.spread_and_bias(z, confidence=0.9).bias
        naive += alone.low <= 0.3 <= alone.high
    assert (hits >= least).all()
    if share > 0.4:
        assert naive < least


def test_no_end_is_nearer_than_without_groups() -> None:
    """Members that cancel each other out, z and -z, do not make an interval a point."""
    z = np.random.default_rng(12).standard_normal(40)
    pairs = np.column_stack([z, -z]).ravel()
    (found,) = groups.grouped_spreads_and_biases(pairs, members(40, 2), confidences=(0.9,))
    alone = effects.spread_and_bias(pairs, confidence=0.9)
    assert (found.bias.low, found.bias.high) == (alone.bias.low, alone.bias.high)
    assert found.spread.high >= alone.spread.high


def test_coverage_without_variance_counts_groups() -> None:
    """If all truths are inside, there are as many replicates as groups: Clopper and Pearson's limits for them."""
    found = groups.grouped_share(np.ones(100, bool), members(20, 5), nominal=0.9, confidence=0.95)
    assert (found.low, found.high) == clopper_pearson(20, 20, 0.95, 0)


def test_losses_widen_every_interval() -> None:
    """With lost replicates no end is nearer than without, and on exact scores the bias has none."""
    rng, labels = np.random.default_rng(13), members(50, 2)
    ranks = rng.integers(0, 20, 100)
    (whole,), (some,) = (
        groups.grouped_spreads_and_biases(ranks, labels, confidences=(0.9,), draws=19, lost=lost) for lost in (0, 7)
    )
    for one, other in ((whole.spread, some.spread), (whole.bias, some.bias)):
        assert other.low < one.low < one.high < other.high
    (endless,) = groups.grouped_spreads_and_biases(rng.normal(size=100), labels, confidences=(0.9,), lost=1)
    assert (endless.bias.low, endless.bias.high, endless.spread.high) == (-math.inf, math.inf, math.inf)
    inside = rng.random(100) < 0.9
    shares = [groups.grouped_share(inside, labels, nominal=0.9, confidence=0.9, lost=lost) for lost in (0, 7)]
    assert shares[1].low < shares[0].low
    assert shares[0].high < shares[1].high
    far = [
        groups.grouped_distance(rng.random(100), labels, rng=np.random.default_rng(0), confidence=0.9, lost=lost)
        for lost in (0, 7)
    ]
    assert far[1].high - far[1].estimate == pytest.approx(far[0].high - far[0].estimate + 7 / 107, abs=0.03)


def test_one_draw_and_one_group_have_no_bounds() -> None:
    """One draw does not tell the spread, and one group nothing of its own noise."""
    (one,) = groups.grouped_spreads_and_biases([0, 1, 1, 0], [0, 0, 1, 1], confidences=(0.9,), draws=1)
    assert math.isnan(one.spread.estimate)
    assert (one.spread.low, one.spread.high) == (0.0, math.inf)
    (alone,) = groups.grouped_spreads_and_biases([0.1, 0.3, -1.0], [0, 0, 0], confidences=(0.9,))
    assert (alone.spread.low, alone.spread.high, alone.bias.low) == (0.0, math.inf, -math.inf)
    far = groups.grouped_distance([0.1, 0.3], [0, 0], rng=np.random.default_rng(0), confidence=0.9)
    assert (far.low, far.high) == (0.0, 1.0)
