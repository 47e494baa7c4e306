"""Before or after? Tests that are exact because the two members of every pair can be swapped.

If the members of a pair can be exchanged, the difference of any function of one and the other is as likely as its
negative, and so are all differences of a pair at once: random signs of whole rows give the exact law of any statistic.
This module sees pairs of numbers and must not know where they come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import ndtri

from .arguments import Floats, Ints
from .exchange import log_chernoff

__all__ = ["Feature", "SwapTest", "features_of", "pooled_scores", "swap_test"]

#: Random signs; p-values are multiples of one over one more.
FLIPS = 999
#: Rows that have a sign of their own; of more, so many groups have one each. Groups of signs are signs too, so that the
#: level stays exact. At the border of what n rows can see, a group adds its own drift to what signs make of it: with
#: n drift^2 / variance = 10 that is ten in a thousand.
SIGNS = 1000
#: Numbers held at once.
_CHUNK = 2_000_000
#: Up to so many entries all pairs are looked at; of more, as many pairs as these have, and the first ENTRIES entries.
_PAIRED, ENTRIES = 10, 100
#: The same rows give the same statistic up to the order of summation; nearer than this is a tie, which enlarges p.
_TIE = 1e-9
#: A feature whose squares add up to less than this for every pair is constant.
_FLAT = 1e-12

Form = Literal["value", "square", "product", "crossed", "turned"]


@dataclass(frozen=True)
class Feature:
    """What is compared between the members x and y of a pair, entry by entry of both.

    "value", "square" and "product" are y_a - x_a, y_a^2 - x_a^2 and y_a y_b - x_a x_b: differences of marginal laws.
    "crossed" is x_a y_b - x_b y_a and "turned" is x_a y_a (y_a - x_a): they see what is not symmetric in pairs alone.
    """

    form: Form
    a: int
    b: int


@dataclass(frozen=True)
class SwapTest:
    """The outcome of a test that pairs can be swapped.

    ``statistic`` is the largest standardised sum over features, which is that of ``largest`` and has the sign of
    ``total``; ``features`` is how many there were.
    """

    statistic: float
    pvalue: float
    largest: Feature
    total: float
    features: int


def features_of(entries: int, rng: Generator) -> list[Feature]:
    """Return what is looked at in pairs with so many entries.

    Parameters
    ----------
    entries
        Of each member; of more than :data:`ENTRIES` only the first so many are looked at.
    rng
        Chooses the pairs of entries where there are too many for all.

    Examples
    --------
    >>> [one.form for one in features_of(1, np.random.default_rng(0))]
    ['value', 'square', 'turned']
    >>> len(features_of(10, np.random.default_rng(0))), len(features_of(500, np.random.default_rng(0)))
    (120, 390)
    """
    few = min(entries, ENTRIES)
    single: list[Form] = ["value", "square", "turned"]
    double: list[Form] = ["product", "crossed"]
    rows, columns = np.triu_indices(few, 1)
    most = _PAIRED * (_PAIRED - 1) // 2
    some = np.arange(len(rows)) if few <= _PAIRED else np.sort(rng.choice(len(rows), most, replace=False))
    alone = [Feature(form, a, a) for form in single for a in range(few)]
    return alone + [Feature(form, int(rows[j]), int(columns[j])) for form in double for j in some]


def pooled_scores(*members: ArrayLike) -> list[Floats]:
    """Return the normal scores of all members' ranks among all of them, entry by entry.

    Exchanging members leaves the pool as it is, so that it exchanges their scores and changes no other: tests that
    exchange members stay exact. Scores are bounded whatever the law of the values, and do not change under monotone
    maps; equal values have the score of the middle of their ranks.

    Parameters
    ----------
    *members : array_like, shape (n, d)
        Several samples, such as the first and the second members of pairs.

    Examples
    --------
    >>> x, y = pooled_scores([[1.0], [7.0]], [[1e300], [-np.inf]])
    >>> x.ravel().round(2).tolist(), y.ravel().round(2).tolist()
    ([-0.25, 0.25], [0.84, -0.84])
    """
    each = [np.asarray(one, float) for one in members]
    sizes = [len(one) for one in each]
    # Column by column in memory, as features read them.
    scores = np.empty((each[0].shape[1], sum(sizes)))
    for k, row in enumerate(scores):
        _score(np.concatenate([one[:, k] for one in each]), row)
    return np.split(scores.T, np.cumsum(sizes)[:-1])


def _score(values: Floats, scores: Floats) -> None:
    """Write the normal scores of the ranks of values."""
    order = np.argsort(values)
    ordered = values[order]
    # Without ties ranks are places in the order, which takes half the time; nan is not even equal to itself.
    if (ordered[1:] > ordered[:-1]).all():
        scores[order] = _scores_of_ranks(len(values))
        return
    _, place, many = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(many) - (many - 1) / 2  # of ranks from 1
    scores[:] = ndtri(middle / (len(values) + 1))[place.ravel()]


@lru_cache(maxsize=1)  # many entries, one after the other, have the same
def _scores_of_ranks(many: int) -> Floats:
    return np.asarray(ndtri(np.arange(1.0, many + 1) / (many + 1)))


def swap_test(before: ArrayLike, after: ArrayLike, *, rng: Generator, flips: int = FLIPS) -> SwapTest:
    """Test that the two members of every pair can be swapped.

    Null hypothesis: pairs are independent of each other, and (x, y) has the law of (y, x) in each. The p-value is exact
    for any number of pairs and entries and any law. Features of the normal scores of ranks are looked at
    (:class:`Feature`); what leaves the means of all of them alone is not seen.

    Parameters
    ----------
    before, after : array_like, shape (n, d)
        The members of the pairs.
    rng : Generator
        Draws the signs.
    flips : int
        Their number.

    Notes
    -----
    With S the sum over rows of features and V that of their outer products, Q = S' (V + r diag V)^-1 S and the largest
    abs(S_a) / sqrt(V_aa) are compared with what they are for random signs of rows, under which V is the same. The
    statistic is the better of the two places. r = p / n is a ridge: with as many features as rows, S' V^-1 S is n
    whatever the signs. The smallest p-value that signs can give is replaced by Chernoff's bound for the largest sum, if
    that is smaller still, as in :func:`~ringtrue.statistics.exchange.exchange_test`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(200, 2))
    >>> turned = x @ [[0, 1], [-1, 0]]
    >>> swap_test(x, turned + 0.1 * rng.normal(size=(200, 2)), rng=rng).largest
    Feature(form='crossed', a=0, b=1)
    """
    x, y = pooled_scores(np.asarray(before, float)[:, :ENTRIES], np.asarray(after, float)[:, :ENTRIES])
    n = len(x)
    chosen = features_of(np.shape(before)[1], rng)
    groups, V = _summed(x, y, chosen)
    squares = np.diag(V)
    kept = np.flatnonzero(squares > _FLAT * max(n, 1))
    if not kept.size:
        return SwapTest(0.0, 1.0, chosen[0], 0.0, len(chosen))
    unit = np.sqrt(squares[kept])
    sums = np.concatenate([part @ (groups[:, kept] / unit) for part in _signs(len(groups), flips, rng)])
    alike = V[np.ix_(kept, kept)] / np.outer(unit, unit)
    alike[np.diag_indices(len(kept))] += len(kept) / n
    quadratic = np.einsum("fa,fa->f", sums, np.linalg.solve(alike, sums.T).T)
    best = int(np.argmax(np.abs(sums[0])))
    p = _of_two(quadratic, np.abs(sums).max(axis=1))
    largest = chosen[kept[best]]
    if p <= (1 + _TIE) / (flips + 1):
        p = min(p, _bound(_feature(x, y, largest), 2 * len(kept)))
    return SwapTest(float(abs(sums[0, best])), p, largest, float(sums[0, best]), len(chosen))


def _feature(x: Floats, y: Floats, one: Feature) -> Floats:
    """Return a feature of every pair; its sign turns when the members are swapped."""
    a, b = one.a, one.b
    if one.form == "value":
        return y[:, a] - x[:, a]
    if one.form in ("square", "product"):
        return y[:, a] * y[:, b] - x[:, a] * x[:, b]
    if one.form == "crossed":
        return x[:, a] * y[:, b] - x[:, b] * y[:, a]
    return x[:, a] * y[:, a] * (y[:, a] - x[:, a])


def _summed(x: Floats, y: Floats, chosen: list[Feature]) -> tuple[Floats, Floats]:
    """Return the sums of features over groups of rows, and the sum of the outer products of all rows."""
    n = len(x)
    edges = np.linspace(0, n, min(n, SIGNS) + 1).astype(np.int64)
    groups, V = np.zeros((len(edges) - 1, len(chosen))), np.zeros((len(chosen),) * 2)
    # Whole groups at a time, so that memory does not grow with the number of rows.
    step = max(1, (_CHUNK // len(chosen)) * (len(edges) - 1) // max(n, 1))
    for start in range(0, len(edges) - 1, step):
        some = edges[start : start + step + 1]
        part = slice(some[0], some[-1])
        features = np.stack([_feature(x[part], y[part], one) for one in chosen])
        groups[start : start + step] = np.add.reduceat(features, some[:-1] - some[0], axis=1).T
        V += features @ features.T
    return groups, V


def _signs(rows: int, flips: int, rng: Generator) -> Iterator[Floats]:
    """Yield random signs, (flips, rows), a part at a time; those of the data, which are all positive, come first."""
    yield np.ones((1, rows))
    step = max(1, _CHUNK // max(rows, 1))
    for start in range(0, flips, step):
        many = min(step, flips - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes(many * -(-rows // 8)), np.uint8).reshape(many, -1), axis=1)
        yield 2 * bits[:, :rows].astype(np.float64) - 1


def _of_two(first: Floats, second: Floats) -> float:
    """Return the share of labellings in which the better place of two statistics is at least as good as in the first.

    Places are taken among the same labellings, all of which are alike under the null: so this is exact.
    """
    best = np.minimum(_reached(first), _reached(second))
    return float(np.mean(best <= best[0]))


def _reached(values: Floats) -> Ints:
    """Return how many are at least as large as each, but for rounding."""
    ordered = np.sort(values)
    found: Ints = len(values) - np.searchsorted(ordered, values - _TIE * (1 + np.abs(values)))
    return found


def _bound(differences: Floats, tests: int) -> float:
    """Bound the probability that random signs give as large a sum, in any of so many tests."""
    turned = np.sign(differences.sum()) * differences
    return min(1.0, tests * exp(log_chernoff(np.stack([turned, -turned], axis=1))))
