"""Randomised labels against full enumeration and an independent implementation."""

from collections.abc import Callable
from itertools import product
from math import log, sqrt
from typing import Any, cast

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import optimize, special, stats

from ringtrue.statistics import exchange
from ringtrue.statistics.exchange import exchange_test, label_randomised, log_chernoff

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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


def tied_members(rng: Generator, n: int, size: int, K: int, values: int) -> IntArray:
    """Return members of test functions with few values: how many lie below each."""
    drawn = rng.integers(values, size=(n, size, K))
    return np.asarray((drawn[:, None] < drawn[:, :, None]).sum(axis=2))


def tied_evidence(members: IntArray, labels: tuple[int, ...]) -> float:
    """Return the evidence of one test function with ties, the slow way: every tie in every order."""
    n, size = members.shape
    lattice = np.arange(size)
    normal = stats.norm.ppf((lattice + 1) / (size + 1))
    powers = [lattice**q for q in range(1, min(4, size - 1) + 1)]
    columns = [normal, normal**2, *powers]

    def mean_score(score: FloatArray, i: int, j: int) -> float:
        low, many = members[i, j], int(np.sum(members[i] == members[i, j]))
        return float(np.mean(score[low : low + many]))

    table = np.array([[[mean_score(s - s.mean(), i, j) for s in columns] for j in range(size)] for i in range(n)])
    variance = np.einsum("ija,ijb->ab", table, table) / size
    total = sum(table[i, j] for i, j in enumerate(labels))
    candidates = [2 * stats.norm.sf(abs(total[a]) / np.sqrt(variance[a, a])) for a in (0, 1) if variance[a, a] > 1e-9]
    # In units of their own sds, so that powers are of one size.
    unit = np.sqrt(np.maximum(np.diag(variance)[2:], 1e-30))
    within, smooth = variance[2:, 2:] / np.outer(unit, unit), total[2:] / unit
    if np.diag(variance).max() > 1e-9:  # else all members are equal everywhere
        rank = np.linalg.matrix_rank(within, tol=1e-8, hermitian=True)
        candidates.append(stats.chi2.sf(smooth @ np.linalg.pinv(within, rcond=1e-8, hermitian=True) @ smooth, rank))
    counts = np.zeros(size)
    for i, j in enumerate(labels):
        same = members[i] == members[i, j]
        counts[members[i, j] : members[i, j] + same.sum()] += 1 / same.sum()
    gaps = []
    for k in range(1, size):
        count, e = counts[:k].sum(), k / size
        gaps.append(2 * sum(o * np.log(o / x) for o, x in [(count, n * e), (n - count, n * (1 - e))] if o > 1e-12))
    b = np.sqrt(max(*gaps, 1.0))
    candidates.append(stats.norm.pdf(b) * (4 / b + (b - 1 / b) * 2 * np.log(size - 1)))
    return -float(np.log(min(*candidates, 1.0)))


@pytest.mark.parametrize(("n", "size", "values"), [(3, 4, 2), (3, 4, 3), (2, 6, 3), (4, 3, 2)])
def test_ties_share_their_ranks(n: int, size: int, values: int) -> None:
    """With each labelling visited once, the p-value is that of scores averaged over all orders of equal members."""
    for seed in range(4):
        members = tied_members(np.random.default_rng(seed), n, size, 1, values)
        every = [tied_evidence(members[..., 0], labels) for labels in product(range(size), repeat=n)]
        result = label_randomised(members, rng=cast(Generator, EveryLabelling()), randomisations=size**n)
        assert result.statistic == pytest.approx(every[0], rel=1e-6, abs=1e-7)
        assert result.pvalue == (1 + np.sum(np.array(every) >= every[0] - 1e-7)) / (1 + size**n)


def test_few_values_keep_their_level() -> None:
    """Given members with ties, and the truth uniform among them, P(p <= alpha) <= alpha for all alpha."""
    n, size = 3, 4
    everything = cast(Generator, EveryLabelling())
    for seed in range(4):
        members = tied_members(np.random.default_rng(seed), n, size, 2, 3)
        found = np.array(
            [
                label_randomised(relabel(members, labels), rng=everything, randomisations=size**n).pvalue
                for labels in product(range(size), repeat=n)
            ]
        )
        assert all((found <= alpha).mean() <= alpha for alpha in found)
    # Broken twin: a truth that is always the largest member has a smaller p-value more often.
    largest = np.sort(members, axis=1)[:, ::-1]
    low = label_randomised(largest, rng=everything, randomisations=size**n).pvalue
    assert low < np.quantile(found, 0.2)


def test_two_values_are_tested_by_their_frequency() -> None:
    """The statistic of a switch is how often it is on, compared with the pooled frequency: an exact binomial law."""
    # Ten replicates of one draw each, truth on and draw off: under random labels the truth is on in all of them with
    # probability 2^-10, and off in all of them with the same: p = 2 / 2^10 if every labelling is visited.
    n = 10
    members = np.tile(np.array([1, 0]), (n, 1))[..., None]
    result = label_randomised(members, rng=cast(Generator, EveryLabelling()), randomisations=2**n)
    assert result.pvalue == (1 + 2) / (1 + 2**n)


def test_replicates_without_differences_say_nothing() -> None:
    """Members that are all equal leave nothing to reject."""
    assert label_randomised(np.zeros((5, 4, 1), dtype=int), rng=np.random.default_rng(0)).pvalue == 1.0


@pytest.mark.parametrize("values", [2, 3, 50])
def test_bound_beyond_the_labels_holds_for_every_sum(values: int) -> None:
    """The bound is at least the exact probability of a sum as large, for every truth; half of its exponent is not."""
    n, size = 5, 4
    members = tied_members(np.random.default_rng(values), n, size, 1, values)
    sizes = exchange._sizes_of_ties(members)
    equal = np.ones(members.shape, np.int64) if sizes is None else sizes
    scores = exchange.shared_scores(members[..., 0], equal[..., 0], exchange._score_table(size)[0])[..., 0]
    sums = np.array([scores[np.arange(n), labels].sum() for labels in product(range(size), repeat=n)])
    bounds = []
    for labels in product(range(size), repeat=n):
        swapped = np.stack([np.roll(row, -j) for row, j in zip(scores, labels, strict=True)])
        exact = np.mean(sums >= swapped[:, 0].sum() - 1e-9)
        bound = np.exp(exchange.log_chernoff(swapped))
        assert bound >= exact * (1 - 1e-9)
        bounds.append((bound, exact))
    # Broken twin: the exponent doubled, as if the variance were half of what it is.
    assert any(bound**2 < exact for bound, exact in bounds)


def test_exchange_test_goes_below_its_labels() -> None:
    """A gross error has a p-value far below one over the number of labellings; without one there is no such bound."""
    rng = np.random.default_rng(5)
    values = rng.poisson(3, size=(200, 20))
    right = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    values[:, 0] += 3
    wrong = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    # Truths 1.7 sd up: the location sum lies near 17 of its sd, 1e-60; its bound is within a factor of a few hundred.
    assert exchange_test(wrong, rng=rng, randomisations=99).pvalue < 1e-20
    assert exchange_test(right, rng=rng, randomisations=99).pvalue > 1e-6  # false alarm: 1e-6, by the bound


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
    monkeypatch.setattr(exchange, "_CHUNK", 1000)
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
        (np.ones((3, 4, 1), dtype=int), ValueError, "count the members below each"),
        (np.array([[[0], [0], [1]]]), ValueError, "equal ones the lowest of theirs"),
        (np.full((3, 4, 1), 4), ValueError, "out of range"),
    ],
)
def test_bad_members_are_refused(members: Any, error: type[Exception], message: str) -> None:
    """Values instead of ranks, missing axes, and ranks that no members have are refused."""
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
    members = np.zeros((sum(counts), len(counts), 1), np.int64)
    found = exchange._evidence(np.array([[counts]], float), exchange._Scale.of(members, None))
    assert found.shape == (1, 1)
    assert found[0, 0] == pytest.approx(evidence_by_hand(np.array(counts)), rel=1e-9, abs=1e-12)
    gap = exchange._log_gap(np.array([[counts]], float), sum(counts))
    assert gap.max() <= 0


def test_equal_weights_change_nothing() -> None:
    """With equal weights p-values are those without, and at least one over the number of labellings.

    Weights shift evidence below zero, where a labelling must still tie with itself.
    """
    for n, size, functions in [(1, 2, 9), (2, 2, 9), (3, 3, 40)]:
        members = np.random.default_rng(n).normal(size=(n, size, 1)).argsort(axis=1).argsort(axis=1)
        members = np.repeat(members, functions, axis=2)
        plain, weighted = (
            label_randomised(members, rng=np.random.default_rng(0), weights=weights)
            for weights in (None, np.full(functions, 1 / functions))
        )
        assert np.array_equal(plain.adjusted, weighted.adjusted)
        assert weighted.pvalue >= 1 / 1000


@pytest.mark.parametrize("shift", [0.1, 0.4, 2.0])
def test_the_bound_is_the_least_over_all_tilts_with_members_missing_or_not(shift: float) -> None:
    """It is the smallest of K(t) - t s over t, found here by a fine search, to 1e-9 of its size."""
    rng = np.random.default_rng(5)
    for missing in (False, True):
        scores = rng.normal(size=(9000, 9))
        scores[:, 0] += shift
        if missing:
            scores[::3, 5:] = np.nan
        scores -= np.nanmean(scores, axis=1, keepdims=True)

        def exponent(t: float, scores: Any = scores) -> float:
            cumulants = np.log(np.nanmean(np.exp(t * scores), axis=1))
            return float(cumulants.sum() - t * scores[:, 0].sum())

        least = optimize.minimize_scalar(exponent, bounds=(0, 20), method="bounded", options={"xatol": 1e-9}).fun
        assert log_chernoff(scores) == pytest.approx(least, rel=1e-9)
        # The twin: scores turned around have their sum on the other side, and nothing is bounded.
        assert log_chernoff(-scores) == 0.0
