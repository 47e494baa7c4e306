"""Combinations of p-values against closed forms, closed testing and full enumeration."""

from collections.abc import Callable
from itertools import combinations, product
from math import ceil, log, sqrt
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special, stats

from ringtrue.statistics import combining as pvalues
from ringtrue.statistics.combining import bonferroni, holm, label_randomised, prefix_two_median, weighted_minimum

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

several = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(several)
def test_holm_is_closed_bonferroni(p: list[float]) -> None:
    """A Holm-adjusted p-value is the largest Bonferroni p-value of the sets that contain its hypothesis."""
    sets = [c for size in range(1, len(p) + 1) for c in combinations(range(len(p)), size)]
    closed = [max(bonferroni([p[j] for j in c]) for c in sets if i in c) for i in range(len(p))]
    assert holm(p) == pytest.approx(closed, rel=1e-12)
    assert holm(p).min() == pytest.approx(bonferroni(p), rel=1e-12)


@given(several)
def test_equal_weights_are_bonferroni(p: list[float]) -> None:
    """Dividing the level evenly is Bonferroni, and weight zero removes a hypothesis."""
    even = [1 / len(p)] * len(p)
    assert weighted_minimum(p, even) == pytest.approx(bonferroni(p), rel=1e-9)
    assert weighted_minimum([*p, 0.0], [*even, 0.0]) == pytest.approx(bonferroni(p), rel=1e-9)


def test_unequal_weights_divide_the_level() -> None:
    """The smallest p over its weight decides, and the result stops at one."""
    assert weighted_minimum([0.03, 0.02], [0.75, 0.25]) == pytest.approx(0.04)
    assert weighted_minimum([0.9, 0.8], [0.5, 0.5]) == 1.0


@given(several)
def test_prefix_two_median_is_its_definition(p: list[float]) -> None:
    """It is twice the smallest lower median over prefixes, at most one."""
    lower_medians = [sorted(p[:k])[ceil(k / 2) - 1] for k in range(1, len(p) + 1)]
    assert prefix_two_median(p) == min(1.0, 2 * min(lower_medians))


def level(combine: Callable[[list[float]], float], alpha: float, length: int) -> float:
    """Return the exact P(combination <= alpha) for independent uniform p-values.

    Only whether each p-value is at most alpha / 2 matters, so all patterns can be visited.
    """
    total = 0.0
    for small in product([False, True], repeat=length):
        p = [alpha / 2 if s else 1.0 for s in small]
        probability = (alpha / 2) ** sum(small) * (1 - alpha / 2) ** (length - sum(small))
        total += probability * (combine(p) <= alpha)
    return total


def test_prefix_two_median_has_exactly_its_level() -> None:
    """For independent p-values the level is attained in the limit; any smaller order statistic exceeds it."""

    def one_lower(p: list[float]) -> float:
        return 2 * min(sorted(p[:k])[max(ceil(k / 2) - 2, 0)] for k in range(1, len(p) + 1))

    def in_sorted_order(p: list[float]) -> float:
        return prefix_two_median(sorted(p))

    alpha = 0.1
    # A walk that steps up with probability alpha / 2 is ever again at or above its start with probability
    # exactly alpha; after twelve steps less than alpha / 100 of that is missing.
    assert 0.99 * alpha < level(prefix_two_median, alpha, 12) <= alpha
    assert level(one_lower, alpha, 12) > 1.2 * alpha
    assert level(in_sorted_order, alpha, 12) == pytest.approx(1 - 0.95**12)


@pytest.mark.parametrize("combine", [bonferroni, holm, prefix_two_median, lambda p: weighted_minimum(p, [1.0])])
@pytest.mark.parametrize("p", [[], [np.nan], [-0.1, 0.5], [0.5, 1.1], [[0.1], [0.2]], 0.5])
def test_what_is_not_a_pvalue_is_refused(combine: Callable[[Any], Any], p: Any) -> None:
    """Empty input, missing values, numbers outside [0, 1] and extra axes are refused."""
    with pytest.raises(ValueError, match=r"numbers in \[0, 1\] along one axis, got"):
        combine(p)


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.6], [1.5, -0.5], [np.nan, 1.0]])
def test_bad_weights_are_refused(weights: list[float]) -> None:
    """Weights of the wrong number, sign or sum are refused."""
    with pytest.raises(ValueError, match="add up to 1"):
        weighted_minimum([0.1, 0.2], weights)


class EveryLabelling:
    """Stands in for a generator and returns each choice of truths once."""

    def integers(self, size_of_set: int, *, size: tuple[int, int]) -> IntArray:
        """Return all labellings where random ones are asked for."""
        labels = np.array(list(product(range(size_of_set), repeat=size[1])))
        assert len(labels) == size[0]
        return labels


def random_members(rng: Generator, n: int, size: int, K: int) -> IntArray:
    """Return members with independent ranks in every replicate and test function."""
    return rng.normal(size=(n, size, K)).argsort(axis=1).argsort(axis=1)


def relabel(members: IntArray, labels: tuple[int, ...]) -> IntArray:
    """Return members with member `labels[i]` of replicate i as the truth."""
    return np.stack([np.roll(m, -j, axis=0) for m, j in zip(members, labels, strict=True)])


def plain_evidence(ranks: IntArray, size: int) -> float:
    """Return minus the log of the best of the four p-values, from the ranks of one test function."""
    n, M = len(ranks), size - 1
    lattice = np.arange(size)
    candidates = []
    score = stats.norm.ppf((lattice + 1) / (size + 1))
    for s in (score, score**2):
        z = np.sum(s[ranks] - s.mean()) / np.sqrt(n * s.var())
        candidates.append(2 * stats.norm.sf(abs(z)))
    fits = [np.polynomial.Polynomial.fit(lattice, lattice**q, q - 1)(lattice) for q in range(1, min(4, M) + 1)]
    residuals = [lattice**q - fit for q, fit in enumerate(fits, start=1)]
    smooth = sum(np.sum(r[ranks]) ** 2 / (n * np.mean(r**2)) for r in residuals)
    candidates.append(stats.chi2.sf(smooth, len(residuals)))
    gaps = []
    for k in range(1, size):
        count, e = int(np.sum(ranks < k)), k / size
        table = [(count, n * e), (n - count, n * (1 - e))]
        gaps.append(2 * sum(o * np.log(o / x) for o, x in table if o > 0))
    b = np.sqrt(max(*gaps, 1.0))
    candidates.append(stats.norm.pdf(b) * (4 / b + (b - 1 / b) * 2 * np.log(M)))
    return -float(np.log(min(*candidates, 1.0)))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "size", "K"), [(3, 3, 2), (2, 6, 3), (4, 4, 1)])
def test_pvalue_counts_every_labelling(n: int, size: int, K: int) -> None:
    """With each labelling visited once, p is (1 + the number that reach T) / (1 + their number)."""
    for seed in range(5):
        members = random_members(np.random.default_rng(seed), n, size, K)
        statistics = [
            max(plain_evidence(members[np.arange(n), labels, k], size) for k in range(K))
            for labels in product(range(size), repeat=n)
        ]
        reached = np.sum(np.array(statistics) >= statistics[0] - 1e-8)
        result = label_randomised(members, rng=cast(Generator, EveryLabelling()), randomisations=size**n)
        assert result.statistic == pytest.approx(statistics[0], rel=1e-9)
        assert result.pvalue == pytest.approx((1 + reached) / (1 + size**n), rel=1e-12)


def test_level_holds_for_every_set_of_members() -> None:
    """Given the members, with the truth uniform among them, P(p <= alpha) <= alpha for all alpha."""
    n, size = 3, 4
    for seed in range(3):
        members = random_members(np.random.default_rng(seed), n, size, 2)
        everything = cast(Generator, EveryLabelling())
        found = np.array(
            [
                label_randomised(relabel(members, labels), rng=everything, randomisations=size**n).pvalue
                for labels in product(range(size), repeat=n)
            ]
        )
        shares = [(found <= alpha).mean() for alpha in found]
        assert (shares <= found).all()


def test_repeating_a_test_function_costs_nothing() -> None:
    """Copies of one test function leave the p-value as it is, where Bonferroni multiplies it."""
    members = random_members(np.random.default_rng(4), 50, 10, 1)
    one = label_randomised(members, rng=np.random.default_rng(1))
    copies = label_randomised(np.repeat(members, 8, axis=2), rng=np.random.default_rng(1))
    assert copies.pvalue == one.pvalue
    assert (copies.adjusted == one.pvalue).all()
    # Broken twin: labels that differ between the copies lose the dependence.
    unshared = unshare(np.repeat(members, 8, axis=2), np.random.default_rng(2))
    assert label_randomised(unshared, rng=np.random.default_rng(1)).pvalue > one.pvalue


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labellings taken a few at a time give the same answer as all at once."""
    members = random_members(np.random.default_rng(4), 30, 7, 3)
    whole = label_randomised(members, rng=np.random.default_rng(1))
    monkeypatch.setattr(pvalues, "_CHUNK", 1000)
    parts = label_randomised(members, rng=np.random.default_rng(1))
    assert (parts.adjusted == whole.adjusted).all()


def unshare(members: IntArray, rng: Generator) -> IntArray:
    """Shuffle the draws separately for each test function: one label then means K unrelated members."""
    return np.concatenate([members[:, :1], rng.permuted(members[:, 1:], axis=1)], axis=1)


def correlated_members(rng: Generator, n: int, size: int, K: int) -> IntArray:
    """Return members of K test functions with autocorrelation 0.9 along them."""
    values = rng.normal(size=(n, size, K))
    for k in range(1, K):
        values[..., k] = 0.9 * values[..., k - 1] + np.sqrt(0.19) * values[..., k]
    return values.argsort(axis=1).argsort(axis=1)


@pytest.mark.slow
def test_size_is_nominal_for_correlated_test_functions() -> None:
    """Twenty-one correlated test functions keep the level; labels not shared between them do not use it."""
    rng = np.random.default_rng(8)
    repeats = 1000
    honest, broken = np.empty(repeats), np.empty(repeats)
    for r in range(repeats):
        members = correlated_members(rng, 40, 20, 21)
        honest[r] = label_randomised(members, rng=rng, randomisations=19).pvalue
        broken[r] = label_randomised(unshare(members, rng), rng=rng, randomisations=19).pvalue
    # With 19 labellings P(p <= k/20) = k/20, but for ties, which count against rejection: a labelling ties
    # with the observed one with probability 3e-4 (20 000 tried), so 19 of them spoil less than 1 % of the
    # rejections, and 4 % are allowed for. Three two-sided binomial bounds, 1e-6 in all.
    for alpha in (0.05, 0.2, 0.5):
        low, high = stats.binom.ppf([1.6e-7, 1 - 1.6e-7], repeats, [alpha * 0.96, alpha])
        assert low <= np.sum(honest <= alpha + 1e-9) <= high
    # Broken twin: rejects at 0.5 with probability 0.35.
    assert np.sum(broken <= 0.5 + 1e-9) < low


@pytest.mark.parametrize("fault", [lambda z: z + 0.5, lambda z: 1.5 * z, lambda z: z / 1.5])
def test_faults_convict_their_own_test_function(fault: Callable[[FloatArray], FloatArray]) -> None:
    """A biased or wrongly spread truth in one of five test functions is found and named."""
    # In units of sqrt(2 T) the faults lie at 10.2 (sd 1.0), 13.2 (1.5) and 8.6 (0.7) in 300 simulations each,
    # and the maximum over 999 labellings and five functions at 4.6 (0.3). They are independent; the chance
    # that both pass 6, the first downwards and the second upwards, is about 3e-4 * 1e-4, and the same or
    # less for other crossing points: below 1e-6. Nothing is said of the innocent functions, one of which is
    # convicted at 0.001 in one run of a thousand, as it should be.
    rng = np.random.default_rng(9)
    values = rng.normal(size=(400, 100, 5))
    values[:, 0, 3] = fault(values[:, 0, 3])
    members = values.argsort(axis=1).argsort(axis=1)
    result = label_randomised(members, rng=rng)
    assert result.pvalue == result.adjusted[3] == 1 / 1000
    assert result.statistic == pytest.approx(label_randomised(members[..., [3]], rng=rng).statistic)


def test_adjusted_pvalues_step_down() -> None:
    """The best function carries the global p-value, the last one its own, and the order is that of evidence."""
    rng = np.random.default_rng(10)
    members = random_members(rng, 60, 20, 3)
    joint = label_randomised(members, rng=np.random.default_rng(1))
    alone = [label_randomised(members[..., [k]], rng=np.random.default_rng(1)) for k in range(3)]
    order = np.argsort([-a.statistic for a in alone])
    assert joint.adjusted[order[0]] == joint.pvalue
    assert (np.diff(joint.adjusted[order]) >= 0).all()
    assert joint.adjusted[order[2]] == max(alone[order[2]].pvalue, joint.adjusted[order[1]])
    assert all(joint.adjusted[k] >= alone[k].pvalue for k in range(3))


@pytest.mark.parametrize("size", [2, 3, 5])
def test_few_draws_are_enough(size: int) -> None:
    """One or two draws per replicate leave fewer scores, and still find a bias."""
    rng = np.random.default_rng(11)
    values = rng.normal(size=(500, size, 2))
    # A shift of one sd: P(truth above a draw) = 0.76, twelve standard errors from one half at n = 500.
    values[:, 0] += 1.0
    members = values.argsort(axis=1).argsort(axis=1).astype(np.int16)
    assert label_randomised(members, rng=rng, randomisations=99).pvalue == 0.01


@pytest.mark.parametrize(
    ("members", "error", "message"),
    [
        (np.zeros((3, 4, 1)), TypeError, "integer ranks, got dtype float64"),
        (np.zeros((3, 4), dtype=int), ValueError, r"shape \(n, M \+ 1, K\)"),
        (np.zeros((3, 1, 1), dtype=int), ValueError, "at least one draw"),
        (np.zeros((0, 4, 1), dtype=int), ValueError, "at least one draw"),
        (np.zeros((3, 4, 1), dtype=int), ValueError, "break ties at random"),
        (np.full((3, 4, 1), 4), ValueError, "out of range"),
    ],
)
def test_bad_members_are_refused(members: Any, error: type[Exception], message: str) -> None:
    """Values instead of ranks, missing axes, and ranks that are no permutation are refused."""
    with pytest.raises(error, match=message):
        label_randomised(members, rng=np.random.default_rng(0))


def test_no_randomisation_is_refused() -> None:
    """At least one labelling is needed."""
    with pytest.raises(ValueError, match="randomisations must be a whole number, at least 1"):
        label_randomised(np.array([[[0], [1]]]), rng=np.random.default_rng(0), randomisations=0)


def evidence_by_hand(counts: Any) -> float:
    """Return minus the log of the smallest of four p-values of ranks with these counts."""
    size, n = len(counts), sum(counts)
    normal = stats.norm.ppf(np.arange(1, size + 1) / (size + 1))
    found = []
    for score in (normal, normal**2):
        z = (counts @ score - n * score.mean()) / (sqrt(n) * score.std())
        found.append(2 * stats.norm.sf(abs(z)))
    # What polynomials of order four explain of the counts, in units of their variance.
    powers = np.vander(np.arange(size) - (size - 1) / 2, 5)
    off = counts - n / size
    fitted = powers @ np.linalg.lstsq(powers, off, rcond=None)[0]
    found.append(stats.chi2.sf(fitted @ fitted * size / n, 4))
    t = np.arange(1, size) / size
    share = np.cumsum(counts)[:-1] / n
    b = sqrt(max(2 * n * (special.rel_entr(share, t) + special.rel_entr(1 - share, 1 - t)).max(), 1))
    # Miller and Siegmund (1982), for a bridge between t1 = 1 / size and 1 - t1: the log odds ratio is 2 log(size - 1).
    found.append(stats.norm.pdf(b) * ((b - 1 / b) * 2 * log(size - 1) + 4 / b))
    return -log(min(1, *found))


@pytest.mark.parametrize(
    "counts",
    [
        [2, 3, 4, 5, 6, 7, 8],  # location
        [9, 4, 2, 2, 2, 5, 9],  # spread
        [0, 10, 2, 2, 11, 3, 3],  # shape
        [20, 2, 6, 5, 6, 5, 4],  # a heap at one end
        [5, 5, 5, 5, 5, 5, 5],
    ],
)
def test_evidence_is_the_best_of_four_known_tests(counts: list[int]) -> None:
    """Location, spread, a smooth test of order four, and the largest gap with Miller and Siegmund's tail."""
    found = pvalues._evidence(np.array([[counts]]))
    assert found.shape == (1, 1)
    assert found[0, 0] == pytest.approx(evidence_by_hand(np.array(counts)), rel=1e-9, abs=1e-12)
    gap = pvalues._log_gap(np.array([[counts]]), sum(counts))
    assert gap.max() <= 0
