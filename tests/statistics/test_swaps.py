"""Swapping the members of pairs: the level with a broken twin, closed forms, and two implementations that agree."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from ringtrue.statistics import swaps
from ringtrue.statistics.swaps import Feature, features_of, pooled_scores, swap_test
from ringtrue.values import Floats

FALSE_ALARM = 1e-6


def pairs(n: int, d: int, rng: np.random.Generator, *, turn: float = 0.0, narrow: float = 1.0) -> tuple[Floats, Floats]:
    """Return truths and draws of posteriors N(y/2, 1/2), the first two means turned, the sd multiplied."""
    theta = rng.normal(size=(n, d))
    mean = (theta + rng.normal(size=(n, d))) / 2
    if turn:
        mean[:, :2] = mean[:, :2] @ [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
    return theta, mean + narrow * np.sqrt(0.5) * rng.normal(size=(n, d))


def test_a_swap_exchanges_two_scores_and_changes_no_other() -> None:
    """Scores are of the pool, which knows no sides; ties have the middle of their ranks."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, (9, 2)).astype(float), rng.normal(size=(9, 2))
    a, b = pooled_scores(x, y)
    x[3], y[3] = y[3], x[3].copy()
    swapped = pooled_scores(x, y)
    a[3], b[3] = b[3], a[3].copy()
    np.testing.assert_array_equal(swapped[0], a)
    np.testing.assert_array_equal(swapped[1], b)
    both = np.concatenate([x[:, 0], y[:, 0]])
    np.testing.assert_allclose(
        np.concatenate(pooled_scores(x[:, :1], y[:, :1]))[:, 0], special.ndtri(stats.rankdata(both) / 19)
    )


@pytest.mark.parametrize("form", ["value", "square", "product", "crossed", "turned"])
def test_every_feature_turns_its_sign_when_members_are_swapped(form: swaps.Form) -> None:
    """That is all that a test needs of them."""
    x, y = np.random.default_rng(0).normal(size=(2, 7, 3))
    one = Feature(form, 0, 2 if form in ("product", "crossed") else 0)
    np.testing.assert_allclose(swaps._feature(y, x, one), -swaps._feature(x, y, one))


def test_statistics_are_those_of_another_implementation() -> None:
    """Sums, outer products, the ridge and the place among random signs, written out row by row."""
    x, y = pairs(30, 2, np.random.default_rng(5), turn=0.6)
    found = swap_test(x, y, rng=np.random.default_rng(1))
    a, b = pooled_scores(x, y)
    rows = np.array(
        [
            [
                q[0] - p[0],
                q[1] - p[1],
                q[0] ** 2 - p[0] ** 2,
                q[1] ** 2 - p[1] ** 2,
                p[0] * q[0] * (q[0] - p[0]),
                p[1] * q[1] * (q[1] - p[1]),
                q[0] * q[1] - p[0] * p[1],
                p[0] * q[1] - p[1] * q[0],
            ]
            for p, q in zip(a, b, strict=True)
        ]
    )
    V = rows.T @ rows
    inverse = np.linalg.inv(V + np.diag(np.diag(V)) * 8 / 30)
    raw = np.random.default_rng(1).bytes(999 * 4)
    bits = np.unpackbits(np.frombuffer(raw, np.uint8).reshape(999, 4), axis=1)[:, :30]
    signs = np.vstack([np.ones(30), 2.0 * bits - 1])
    S = signs @ rows
    Q, largest = np.einsum("ba,ac,bc->b", S, inverse, S), np.max(np.abs(S) / np.sqrt(np.diag(V)), axis=1)
    best = [min((q - 1e-9 <= Q).sum(), (largest >= m - 1e-9).sum()) for q, m in zip(Q, largest, strict=True)]
    assert found.statistic == pytest.approx(largest[0])
    assert found.pvalue == pytest.approx(np.mean(np.array(best) <= best[0]))


def test_the_tail_is_a_bound() -> None:
    """Of every one of 1024 signs the bound is at least the share of signs with as large a sum, on either side."""
    sizes = np.random.default_rng(0).exponential(size=10)
    signs = np.array(list(product([-1.0, 1.0], repeat=10)))
    totals = np.abs(signs @ sizes)
    for one, total in zip(signs[::31], totals[::31], strict=True):
        assert swaps._bound(one * sizes, 2) >= np.mean(totals >= total - 1e-9)


def test_beyond_the_labels_the_bound_speaks() -> None:
    """A clear difference has a p-value far below a thousandth; without any it is 1."""
    x, y = pairs(400, 2, np.random.default_rng(0), turn=np.pi / 2)
    assert swap_test(x, y, rng=np.random.default_rng(0)).pvalue < 1e-6
    assert swap_test(x, x, rng=np.random.default_rng(0)).pvalue == 1.0


def test_many_rows_are_grouped_and_many_entries_cut() -> None:
    """Sums over groups add up to those of all rows, however rows are cut; of 500 entries 100 are looked at."""
    x, y = np.random.default_rng(0).normal(size=(2, 2345, 2))
    chosen = features_of(2, np.random.default_rng(0))
    rows = np.stack([swaps._feature(x, y, one) for one in chosen], axis=1)
    groups, V = swaps._summed(x, y, chosen)
    assert len(groups) == swaps.SIGNS
    np.testing.assert_allclose(groups.sum(axis=0), rows.sum(axis=0))
    np.testing.assert_allclose(V, rows.T @ rows)
    wide = np.random.default_rng(0).normal(size=(2, 20, 500))
    found = swap_test(*wide, rng=np.random.default_rng(0))
    assert found.features == 390
    assert max(found.largest.a, found.largest.b) < 100


def rejections(runs: int, n: int, d: int, *, cauchy: bool = False, seed: int = 0, **wrong: float) -> int:
    """Count rejections at 5 %."""
    rng, count = np.random.default_rng(seed), 0
    for _ in range(runs):
        x, y = pairs(n, d, rng, **wrong)
        if cauchy:
            x, y = (np.tan(np.pi * (special.ndtr(z) - 0.5)) for z in (x, y))
        count += swap_test(x, y, rng=rng, flips=199).pvalue <= 0.05
    return count


#: Of 200 exact tests at 5 % more than this many reject with probability 1e-6 at most.
MOST = int(stats.binom.isf(FALSE_ALARM, 200, 0.05))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "cauchy"), [(8, 1, False), (50, 2, True), (25, 5, False)])
def test_the_level_is_exact(n: int, d: int, cauchy: bool) -> None:
    """Few pairs, heavy tails, and more features than pairs: 5 % are rejected; false alarm 1e-6 for each case."""
    assert rejections(200, n, d, cauchy=cauchy) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize(("n", "wrong"), [(42, {"turn": np.pi / 2}), (350, {"narrow": np.sqrt(0.5)})])
def test_what_is_wrong_is_found(n: int, wrong: dict[str, Any]) -> None:
    """The broken twins: a turned mean, which only crossed features see, and outputs of half the variance.

    Power was 0.95 (1000 runs) and above 0.9: of 60 runs with a power of 0.85, 27 or fewer reject once in 1e10.
    """
    assert rejections(60, n, 2, **wrong) > MOST
