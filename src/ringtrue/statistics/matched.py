"""The joint law of several entries, by matched sets: which member of each replicate could have been the truth?

Whatever is computed from the members of a replicate without knowing which is the truth has the same law for each of
them, if truth and draws are exchangeable. So random labels give the exact law of any statistic, and one set of labels
serves all of them. This module sees scores and ranks, and must not know where they come from.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from . import uniformity
from .arguments import Floats, Ints
from .effects.intervals import Interval, student
from .exchange import evidence_of_labels, log_chernoff, shared_scores, step_down

__all__ = [
    "Correlations",
    "JointTest",
    "correlation_errors",
    "joint_test",
    "pairs_of",
    "scores_from_places",
    "scores_from_ranks",
]

#: Pairs of entries that are looked at: all of up to twenty entries, and as many of more.
_PAIRS = 200
#: Variances below this share of the usual one are rounding.
_SINGULAR = 1e-9
#: What each of the three statistics has of the level: correlations are what is wrong most often.
SHARES = (0.4, 0.3, 0.3)
#: Members that are held at once while features are made.
_CHUNK = 4_000_000


def pairs_of(entries: int) -> Ints:
    """Return the pairs of entries whose correlation is looked at, (pairs, 2): all, or 200 spread evenly over them.

    Examples
    --------
    >>> pairs_of(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> len(pairs_of(100))
    200
    """
    every = np.array(list(combinations(range(entries), 2)), np.int64).reshape(-1, 2)
    if len(every) <= _PAIRS:
        return every
    # The same ones whoever asks: which they are must not depend on what was seen.
    return every[np.sort(np.random.default_rng(0).choice(len(every), _PAIRS, replace=False))]


def scores_from_ranks(ranks: NDArray[np.integer]) -> Floats:
    """Return normal scores of members, with sd 1 over those of a replicate; equal members share theirs.

    Parameters
    ----------
    ranks
        (n, M + 1, d): how many members lie below each, the lowest rank for equal ones.

    Examples
    --------
    >>> [round(float(w), 3) for w in scores_from_ranks(np.array([[[0], [2], [1]]])).ravel()]
    [-1.225, 1.225, 0.0]
    """
    n, size, d = ranks.shape
    table = special.ndtri(np.arange(1, size + 1) / (size + 1))[:, None]
    found: Any = np.empty(ranks.shape, np.float32)
    for k in range(d):
        column = ranks[..., k].astype(np.int64)
        order = np.sort(column, axis=1)
        if (order[:, 1:] == order[:, :-1]).any():
            cells = column + np.arange(n)[:, None] * size
            equal = np.bincount(cells.ravel(), minlength=n * size)[cells]
            values = shared_scores(column, equal, table)[..., 0]
        else:
            values = table[column, 0]
        sd = np.sqrt(np.square(values).mean(axis=1, keepdims=True))
        found[..., k] = values / np.maximum(sd, 1e-12)
    return np.asarray(found)


def scores_from_places(places: NDArray[np.integer], many: int) -> Floats:
    """Return normal scores of places 0, ..., many - 1 in a reference of its own, as those in a Markov chain.

    Examples
    --------
    >>> [round(float(w), 2) for w in scores_from_places(np.array([[[0], [249]]]), 250).ravel()]
    [-2.88, 2.88]
    """
    found: Any = special.ndtri((places + 0.5) / many).astype(np.float32)
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class JointTest:
    """The outcome of the tests of the joint law.

    Attributes
    ----------
    pvalue
        Of "truth and draws are exchangeable, in all entries together", exact.
    adjusted, statistics
        For correlations, energy and band depth: a p-value that holds over all three, and the statistic.
    pair
        The number of the pair of entries whose correlation speaks most against it.
    """

    pvalue: float
    adjusted: tuple[float, float, float]
    statistics: tuple[float, float, float]
    pair: int


def joint_test(
    scores: Floats,
    ranks: NDArray[np.integer],
    pairs: Ints,
    *,
    rng: Generator,
    randomisations: int = 999,
) -> JointTest:
    """Test that truth and draws are exchangeable in all entries together.

    Null hypothesis: within each replicate the truth and its draws are exchangeable. Three statistics share one set of
    random labels, and the smallest of their p-values is compared with what random labels make of it: products of
    scores of pairs of entries (as a quadratic form, which sees many small errors, and the largest, which sees one);
    the rank of the truth by its mean distance to the others; and its rank by band depth. Where labels cannot resolve
    the p-value, bounds that are valid for any number of replicates do.

    Blind to dependence among three or more entries of which no two show any, unless it changes energy or depth, and to
    whatever depends on the data without showing on average.

    Parameters
    ----------
    scores
        (n, members, d), truth first.
    ranks
        (n, members, 2): by energy and by band depth, the lowest for equal members.
    pairs
        (p, 2), of entries.
    rng
        Draws the labels.
    randomisations
        How many labellings are drawn.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(100, 20, 2))
    >>> x[:, 0, 1] = x[:, 0, 0]
    >>> ranks = x.argsort(axis=1).argsort(axis=1)
    >>> joint_test(scores_from_ranks(ranks), ranks, pairs_of(2), rng=rng).pvalue < 0.001
    True
    """
    n, size, _ = scores.shape
    labels = np.zeros((randomisations + 1, n), np.int64)
    labels[1:] = rng.integers(size, size=(randomisations, n))
    sums, covariance = _relabelled_sums(scores, pairs, labels), _covariance(scores, pairs)
    block, largest = _block_evidence(sums, covariance)
    central = evidence_of_labels(ranks, labels)
    evidence = np.column_stack([block, central]) + np.log(SHARES)
    adjusted = step_down(evidence)
    least = 1 / (randomisations + 1)
    bounded = adjusted.copy()
    if adjusted.min() <= least * (1 + 1e-9):
        # Below what labels resolve, any valid bound at each one's share; above, labels alone decide.
        tails = np.array([_tail_of_pairs(scores, pairs), *(_tail_of_ranks(ranks[..., k]) for k in range(2))]) / SHARES
        bounded = np.where(adjusted <= least * (1 + 1e-9), np.minimum(adjusted, tails), adjusted)
    first = np.abs(sums[0]) / np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    statistics = (float(first.max()), *(float(one) for one in central[0]))
    return JointTest(float(bounded.min()), tuple(map(float, bounded)), statistics, int(largest))  # type: ignore[arg-type]


def _features(scores: Floats, pairs: Ints) -> Floats:
    """Return products of the scores of pairs, less their mean over the members of a replicate, (pairs, n, members)."""
    by_entry = np.ascontiguousarray(np.moveaxis(scores, 2, 0))
    products = np.empty((len(pairs), *scores.shape[:2]), scores.dtype)
    for row, (k, j) in zip(products, pairs, strict=True):
        np.multiply(by_entry[k], by_entry[j], out=row)
    products -= products.mean(axis=2, keepdims=True)
    return products


def _parts(scores: Floats, pairs: Ints) -> Iterator[Floats]:
    """Yield replicates so few at a time that their features fit into memory."""
    step = max(1, _CHUNK // (scores.shape[1] * len(pairs)))
    return (scores[start : start + step] for start in range(0, len(scores), step))


def _covariance(scores: Floats, pairs: Ints) -> Floats:
    """Return the covariance of the sums of features under random labels."""
    total: Floats = np.zeros((len(pairs), len(pairs)))
    for part in _parts(scores, pairs):
        flat = _features(part, pairs).reshape(len(pairs), -1)
        total += flat @ flat.T / scores.shape[1]
    return total


def _relabelled_sums(scores: Floats, pairs: Ints, labels: Ints) -> Floats:
    """Return the sums of features over replicates for every labelling, (labellings, pairs)."""
    n, size, d = scores.shape
    by_member, first = scores.reshape(n * size, d), np.arange(n) * size
    # Products of labelled scores, summed over replicates, are a matrix product: no feature is made for it.
    step = max(1, _CHUNK // (n * d))
    sums = np.empty((len(labels), len(pairs)))
    for start in range(0, len(labels), step):
        # In double precision: labellings that tie must do so, whatever the order of summation.
        chosen = by_member[first + labels[start : start + step]].astype(float)
        products = np.swapaxes(chosen, 1, 2) @ chosen
        sums[start : start + step] = products[:, pairs[:, 0], pairs[:, 1]]
    return sums - _means(scores, pairs)


def _means(scores: Floats, pairs: Ints) -> Floats:
    """Return the sums over replicates of the mean product of all members, (pairs,)."""
    total: Floats = np.zeros((scores.shape[2],) * 2)
    for part in _parts(scores, pairs):
        flat = part.reshape(-1, scores.shape[2])
        total += flat.T @ flat / scores.shape[1]
    return np.asarray(total[pairs[:, 0], pairs[:, 1]])


def _block_evidence(sums: Floats, covariance: Floats) -> tuple[Floats, int]:
    """Return minus the log of the smaller of two approximate p-values, and which pair has the largest sum."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > max(_SINGULAR * float(values.max(initial=0.0)), 1e-9)
    freedom = int(kept.sum())
    if not freedom:  # members that are all alike say nothing
        return np.zeros(len(sums)), 0
    quadratic = np.square(sums @ (vectors[:, kept] / np.sqrt(values[kept]))).sum(axis=1)
    of_form = _log_chi2(quadratic, freedom)
    sd = np.sqrt(np.diag(covariance))
    z = np.abs(sums) / np.where(sd > 1e-6, sd, np.inf)
    of_largest = np.minimum(log(2 * freedom) + special.log_ndtr(-z.max(axis=1)), 0.0)
    return -np.minimum(of_form, of_largest), int(z[0].argmax())


def _log_chi2(x: Floats, freedom: int) -> Floats:
    """Return the log of the upper tail of chi-squared; beyond underflow, that of Laurent and Massart's bound."""
    with np.errstate(divide="ignore"):
        plain = np.log(special.chdtrc(freedom, x))
    # x = f + 2 sqrt(f t) + 2 t has a tail of at most exp(-t).
    root = (-sqrt(freedom) + np.sqrt(np.maximum(2 * x - freedom, 0.0))) / 2
    return np.where(np.isfinite(plain), plain, -np.square(np.maximum(root, 0.0)))


def _tail_of_pairs(scores: Floats, pairs: Ints) -> float:
    """Bound the probability that the sum of any pair's features is as large as the largest is, on either side."""
    total, variance = np.zeros(len(pairs)), np.zeros(len(pairs))
    for part in _parts(scores, pairs):
        features = _features(part, pairs)
        total += features[..., 0].sum(axis=1)
        variance += np.square(features).mean(axis=2).sum(axis=1)
    if not variance.max() > 1e-6:
        return 1.0
    z = np.abs(total) / np.sqrt(np.where(variance > 1e-6, variance, np.inf))
    worst = int(z.argmax())
    each = _features(scores, pairs[worst : worst + 1])[0].astype(float)
    # Whichever pair is the largest, one of 2 p bounds is what it is compared with.
    return min(1.0, 2 * len(pairs) * float(np.exp(log_chernoff(np.sign(total[worst]) * each))))


def _tail_of_ranks(ranks: NDArray[np.integer]) -> float:
    """Return the p-value of the truth's rank by the test of uniformity; 1 where members tie."""
    size = ranks.shape[1]
    if not (ranks.sum(axis=1, dtype=np.int64) == size * (size - 1) // 2).all():
        return 1.0
    return float(uniformity.combination(ranks[:, 0].astype(np.int64), draws=size - 1).pvalue)


@dataclass(frozen=True, eq=False)
class Correlations:
    """What outputs report of the correlation of pairs of entries, and by how much that is off.

    ``reported`` is the mean over outputs, (pairs,); ``errors`` is reported less true, ``sd`` its standard error.
    """

    reported: Floats
    errors: Floats
    sd: Floats
    n: int

    def interval(self, pair: int, confidence: float) -> Interval:
        """Return the error of one pair with its interval."""
        reach = student(confidence, self.n - 1) * float(self.sd[pair])
        error = float(self.errors[pair])
        return Interval("correlation error", error, max(error - reach, -2.0), min(error + reach, 2.0), 0.0)

    def within(self, confidence: float) -> float:
        """Return a number that all errors are below in size, with this confidence."""
        reach = student(1 - (1 - confidence) / len(self.errors), self.n - 1)
        return float((np.abs(self.errors) + reach * self.sd).max())


def correlation_errors(scores: Floats, pairs: Ints) -> Correlations:
    """Compare the correlation of truths, in units of their outputs, with the correlation that outputs report.

    Parameters
    ----------
    scores
        (n, members, d), truth first.
    pairs
        (p, 2), of entries.

    Notes
    -----
    The correlation of the truths' scores over replicates is estimated as usual; that of the outputs is the mean over
    replicates of the products of their draws' scores. Standard errors are those of the influence of each replicate on
    the difference of the two.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(2000, 20, 2))
    >>> x[:, 0, 1] = 0.6 * x[:, 0, 0] + 0.8 * x[:, 0, 1]
    >>> found = correlation_errors(scores_from_ranks(x.argsort(axis=1).argsort(axis=1)), pairs_of(2))
    >>> abs(float(found.reported[0])) < 0.1, round(float(found.errors[0]), 1)
    (True, -0.6)
    """
    truth = scores[:, 0].astype(float)
    centred = truth - truth.mean(axis=0)
    unit = centred / np.maximum(centred.std(axis=0), 1e-12)
    left, right = unit[:, pairs[:, 0]], unit[:, pairs[:, 1]]
    true = (left * right).mean(axis=0)
    drawn = _products_of_draws(scores, pairs)
    variance = _squares_of_draws(scores)
    reported = drawn.mean(axis=0) / np.sqrt(np.maximum(variance[pairs[:, 0]] * variance[pairs[:, 1]], 1e-12))
    influence = drawn - drawn.mean(axis=0) - (left * right - true * (left**2 + right**2) / 2)
    n = len(truth)
    sd = influence.std(axis=0, ddof=1) / sqrt(n) if n > 1 else np.full(len(pairs), np.inf)
    return Correlations(reported, reported - true, sd, n)


def _products_of_draws(scores: Floats, pairs: Ints) -> Floats:
    """Return the mean over draws of the products of scores, (n, pairs)."""
    parts = [np.moveaxis(part[:, 1:], 2, 0) for part in _parts(scores, pairs)]
    rows = [np.stack([(one[k] * one[j]).mean(axis=1, dtype=float) for k, j in pairs], axis=1) for one in parts]
    return np.concatenate(rows)


def _squares_of_draws(scores: Floats) -> Floats:
    return np.asarray(np.square(scores[:, 1:]).mean(axis=(0, 1), dtype=float))


def named_pairs(names: Sequence[str], pairs: Ints) -> list[str]:
    """Return what pairs of entries are called.

    Examples
    --------
    >>> named_pairs(["mu", "tau"], pairs_of(2))
    ['mu and tau']
    """
    return [f"{names[k]} and {names[j]}" for k, j in pairs]
