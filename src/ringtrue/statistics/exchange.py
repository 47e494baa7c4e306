"""Which member could have been the truth? Tests that are exact because truth and draws can be exchanged.

Under calibration the truth and its M draws are exchangeable within each replicate. Whatever a statistic does with them,
its law under the null is that of random labels. This module sees ranks and must not know where they come from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, log_ndtr, ndtri, rel_entr

from .arguments import Floats, Ints, need_count
from .combining import as_weights

__all__ = ["ExchangeTest", "LabelRandomisation", "exchange_test", "label_randomised"]

# Numbers held at once while relabelling: eight bytes each, and a handful of arrays of this size.
_CHUNK = 2_000_000
#: Numbers that go through several operations at once, to stay in the cache.
_CACHED = 1 << 15

# The same counts give the same statistic up to the order of summation; nearer than this is a tie, which
# can only enlarge the p-value.
_TIE = 1e-9

# Variances below this share of those without ties are rounding.
_SINGULAR = 1e-9


@dataclass(frozen=True, eq=False)
class LabelRandomisation:
    """The outcome of a joint test of several test functions.

    ``statistic`` is the largest evidence over test functions, minus the log of the smallest approximate p-value;
    ``pvalue`` that of "truth and draws are exchangeable, jointly in all test functions", exact; ``adjusted`` has a
    step-down p-value for each test function, (K,), the smallest being ``pvalue``.
    """

    statistic: float
    pvalue: float
    adjusted: Floats


def label_randomised(
    members: ArrayLike, *, rng: Generator, randomisations: int = 999, weights: ArrayLike | None = None
) -> LabelRandomisation:
    """Test all test functions jointly and exactly, by asking which member could have been the truth.

    Null hypothesis: within each replicate the truth and its M draws are exchangeable, jointly in all test
    functions. Then each member was the truth with the same probability, and relabelling gives the exact
    law of any statistic, however the test functions depend on each other. For each test function the
    evidence is the best of four: location and spread of normal scores, a smooth test on polynomials of
    order one to four, and the largest standardised gap of the cumulative rank counts.

    The test sees ranks only: not what the test functions do not show, nor, with M draws, any feature of
    the probability integral transform beyond its first M moments. Draws that are autocorrelated are not
    exchangeable with the truth; they have a test of their own.

    Ties need not be broken: equal members share their ranks, and what is added up is the mean over these of each
    score. So the p-value of discrete test functions depends on the labels alone, and a parameter with two values is
    tested by how often the draws have each of them.

    Parameters
    ----------
    members : array_like of int, shape (n, M + 1, K)
        For replicate i and test function k, how many of the M + 1 members lie below member j: their rank, and for
        equal ones the lowest of their ranks. Member 0 is the truth.
    rng : Generator
        Draws the labels.
    randomisations : int
        The p-values are multiples of ``1 / (randomisations + 1)``.
    weights : array_like, shape (K,), optional
        How much each test function counts, positive and adding up to one: its approximate p-value is divided by it.

    Returns
    -------
    LabelRandomisation
        An adjusted p-value of at most alpha convicts its own test function, with one false conviction with
        probability alpha, if truth and draws are exchangeable jointly in all innocent test functions.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> values = rng.normal(size=(200, 20, 2))
    >>> values[:, 0, 1] += 1.0
    >>> result = label_randomised(values.argsort(axis=1).argsort(axis=1), rng=rng)
    >>> result.pvalue
    0.001
    """
    ranks = _as_members(members)
    need_count(1, randomisations=randomisations)
    sizes = _sizes_of_ties(ranks)
    scale = _Scale.of(ranks, sizes)
    chunks = [_evidence(counts, scale) for counts in _relabelled_counts(ranks, sizes, rng, randomisations)]
    evidence = np.concatenate(chunks)
    if weights is not None:
        # The same shift for all labellings: relabelling stays exact, whatever the weights.
        evidence = evidence + np.log(as_weights(weights, evidence.shape[1]))
    adjusted = step_down(evidence)
    return LabelRandomisation(float(evidence[0].max()), float(adjusted.min()), adjusted)


def evidence_of_labels(ranks: NDArray[np.integer], labels: NDArray[np.integer]) -> Floats:
    """Return how much speaks against each test function, for every way to say which member is the truth.

    Parameters
    ----------
    ranks
        (n, M + 1, K), as in :func:`label_randomised`.
    labels
        (labellings, n): the member that is taken for the truth.

    Returns
    -------
    ndarray
        (labellings, K): minus the log of the smallest of four approximate p-values.
    """
    n, size, K = ranks.shape
    sizes = _sizes_of_ties(ranks)
    scale = _Scale.of(ranks, sizes)
    by_member, equal = ranks.reshape(n * size, K), None if sizes is None else sizes.reshape(n * size, K)
    step = max(1, _CHUNK // (K * max(n, size)))
    parts = [labels[i : i + step] for i in range(0, len(labels), step)]
    return np.concatenate(
        [_evidence(_count(by_member, equal, np.arange(n) * size + part, size), scale) for part in parts]
    )


@dataclass(frozen=True)
class ExchangeTest:
    """The outcome of a test of one test function whose ties are left as they are."""

    method: str
    statistic: float
    pvalue: float


def exchange_test(members: ArrayLike, *, rng: Generator, randomisations: int = 1999) -> ExchangeTest:
    """Test that the truth could be any of the members of its replicate, for one test function with ties.

    The p-value is that of :func:`label_randomised`; the smallest that labels can give is replaced by a bound on how
    likely sums as large as those of location and spread scores are, if that is smaller still.

    Parameters
    ----------
    members : array_like of int, shape (n, M + 1)
        How many members lie below each; the truth first.
    rng : Generator
        Draws the labels.
    randomisations : int
        Their number.

    Notes
    -----
    With T the smallest p-value of labels, P(p <= alpha) is that of labels for alpha >= T, and below T at most the
    probability that the bound is at most alpha: so it holds its level everywhere. The bound is Chernoff's,
    exp(K(t) - t s) for a sum s whose cumulant function K is known, since each member is the truth with the same
    probability; four of them, two scores and two signs, divide the level.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> coins = rng.integers(2, size=(300, 20))
    >>> below = (coins[:, None, :] < coins[:, :, None]).sum(axis=2)
    >>> exchange_test(below, rng=rng).pvalue > 0.001
    True
    """
    ranks = np.asarray(members)
    found = label_randomised(ranks[..., None], rng=rng, randomisations=randomisations)
    p, least = found.pvalue, 1 / (randomisations + 1)
    if p <= least * (1 + 1e-9):
        p = min(p, _tail_bound(ranks))
    return ExchangeTest("randomised labels, ties shared", found.statistic, p)


def _tail_bound(ranks: NDArray[np.integer]) -> float:
    """Bound the probability that a sum of location or spread scores is as large as it is, on either side."""
    sizes = _sizes_of_ties(ranks[..., None])
    equal = np.ones(ranks.shape, np.int64) if sizes is None else sizes[..., 0]
    each = shared_scores(ranks, equal, _score_table(ranks.shape[1])[0])
    bounds = [log_chernoff(np.sign(one[:, 0].sum()) * one) for one in np.moveaxis(each, 2, 0)]
    return min(1.0, 4 * float(np.exp(min(bounds))))


def log_chernoff(scores: Floats) -> float:
    """Bound the log probability that a sum of random members of each row is at least that of the first ones.

    Members that are missing are nan. Scores have mean 0 in every row.
    """
    there = np.isfinite(scores)
    many, total = there.sum(axis=1), float(np.where(there[:, 0], scores[:, 0], 0.0).sum())
    whole = bool(there.all())
    variance = float((np.square(scores if whole else np.where(there, scores, 0.0)).sum(axis=1) / many).sum())
    if total <= 0 or variance <= 0:
        return 0.0
    # What is missing has weight exp(-inf) = 0, and must not be 0 times infinity in a sum.
    low = scores if whole else np.where(there, scores, -np.inf)
    known = scores if whole else np.where(there, scores, 0.0)
    step = max(1, _CACHED // scores.shape[1])
    parts = [slice(i, i + step) for i in range(0, len(scores), step)]
    tops = low.max(axis=1)
    t, best = total / variance, 0.0
    # Any t gives a bound; Newton's steps on K'(t) = s, from where the sum is normal, come near to the least.
    for _ in range(8):
        cumulant, mean, spread = np.sum([_tilted(low[i], known[i], tops[i], many[i], t) for i in parts], axis=0)
        best = min(best, float(cumulant) - t * total)
        before, move = t, (total - float(mean)) / max(float(spread), 1e-12 * variance)
        t = min(max(t + move, t / 2), 2 * t)
        # The bound is flat at its least: from here on it would change by less than 1e-12 of itself.
        if abs(t - before) <= 1e-6 * t:
            break
    return best


def _tilted(low: Floats, known: Floats, top: Floats, many: Ints, t: float) -> tuple[float, float, float]:
    """Return the sums over rows of cumulant function, mean and variance, where members weigh exp(t score)."""
    weights = low - top[:, None]
    weights *= t
    np.exp(weights, out=weights)
    whole = weights.sum(axis=1)
    cumulant = float(np.sum(np.log(whole / many) + t * top))
    weights *= known
    means = weights.sum(axis=1) / whole
    squares = np.einsum("ij,ij->i", weights, known) / whole
    return cumulant, float(means.sum()), float((squares - means**2).sum())


def _sizes_of_ties(ranks: NDArray[np.integer]) -> NDArray[np.int64] | None:
    """Return how many members are equal to each, itself among them; None if all are different."""
    n, size, K = ranks.shape
    if (ranks.sum(axis=1, dtype=np.int64) == size * (size - 1) // 2).all():  # ties have the lowest of their ranks
        return None
    rows = np.arange(n * K).reshape(n, 1, K) * size
    cells = ranks + rows
    sizes: Ints = np.bincount(cells.ravel(), minlength=n * K * size)[cells]
    return sizes


def _relabelled_counts(
    ranks: NDArray[np.integer], sizes: Ints | None, rng: Generator, randomisations: int
) -> Iterator[Floats]:
    """Yield how often each rank is the truth's, shape (labellings, K, M + 1), as observed first."""
    n, size, K = ranks.shape
    by_member = ranks.reshape(n * size, K)
    equal = None if sizes is None else sizes.reshape(n * size, K)
    yield _count(by_member, equal, np.arange(n)[None] * size, size)
    # A labelling gathers n K ranks and fills size K counts; the larger of the two is held to the budget.
    chunk = max(1, _CHUNK // (K * max(n, size)))
    for start in range(0, randomisations, chunk):
        rows = min(chunk, randomisations - start)
        # One label per replicate, shared by all test functions: this keeps their dependence.
        labels = rng.integers(size, size=(rows, n))
        yield _count(by_member, equal, np.arange(n) * size + labels, size)


def _count(by_member: NDArray[np.integer], equal: Ints | None, truth: Ints, size: int) -> Floats:
    rows, K = len(truth), by_member.shape[1]
    cells = by_member[truth].astype(np.int64)
    # Every labelling and test function has cells of its own, so that one bincount serves them all.
    cells += np.arange(K) * (size + 1)
    cells += np.arange(rows)[:, None, None] * (K * (size + 1))
    shape, most = (rows, K, size + 1), rows * K * (size + 1)
    if equal is None:
        return np.bincount(cells.ravel(), minlength=most).reshape(shape)[..., :size].astype(np.float64)
    # A truth that ties with others counts in equal parts for each of their ranks: its part starts at the lowest of them
    # and ends behind the highest.
    many = equal[truth]
    share = (1 / many).ravel()
    starts = np.bincount(cells.ravel(), weights=share, minlength=most)
    ends = np.bincount((cells + many).ravel(), weights=share, minlength=most)
    return np.maximum(np.cumsum((starts - ends).reshape(shape), axis=-1)[..., :size], 0.0)


@dataclass(frozen=True, eq=False)
class _Scale:
    """What the sums over replicates are measured in: their variances under random labels, given the members.

    ``scores`` are standard deviations, (2, K); ``smooth`` is the inverse covariance of the polynomials, (K, p, p), of
    rank ``freedom``, (K,).
    """

    scores: Floats
    smooth: Floats
    freedom: Floats

    @classmethod
    def of(cls, ranks: NDArray[np.integer], sizes: Ints | None) -> "_Scale":
        """Return n times the unit matrix where all members differ; ties leave less."""
        n, size, K = ranks.shape
        scores, polynomials = _score_table(size)
        p = polynomials.shape[1]
        if sizes is None:
            ones = np.ones(K)
            return cls(sqrt(n) * np.ones((2, K)), np.tile(np.eye(p) / n, (K, 1, 1)), p * ones)
        covariances = [_covariance(ranks[..., k], sizes[..., k], np.hstack([scores, polynomials])) for k in range(K)]
        inverses, freedom = zip(*(_inverse(one[2:, 2:], _SINGULAR * n) for one in covariances), strict=True)
        return cls(np.sqrt([np.diag(one)[:2] for one in covariances]).T, np.stack(inverses), np.array(freedom))


def _inverse(covariance: Floats, least: float) -> tuple[Floats, float]:
    """Return the inverse where the eigenvalues are at least this, and of how many dimensions that is."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > least
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T, float(kept.sum())


def _covariance(ranks: NDArray[np.integer], sizes: Ints, scores: Floats) -> Floats:
    """Return the covariance of sums of scores, equal members sharing theirs, shape (scores, scores)."""
    total: Floats = np.zeros((scores.shape[1],) * 2)
    step = max(1, _CHUNK // scores.size)
    for start in range(0, len(ranks), step):
        each = shared_scores(ranks[start : start + step], sizes[start : start + step], scores)
        total += np.einsum("ija,ijb->ab", each, each) / ranks.shape[1]
    return total


def shared_scores(ranks: NDArray[np.integer], sizes: Ints, scores: Floats) -> Floats:
    """Return the scores of every member, equal ones having the mean of theirs, shape (n, M + 1, scores)."""
    sums = np.concatenate([np.zeros((1, scores.shape[1])), np.cumsum(scores, axis=0)])
    found: Floats = (sums[ranks + sizes] - sums[ranks]) / sizes[..., None]
    return found


def _evidence(counts: Floats, scale: _Scale) -> Floats:
    """Return minus the log of the smallest of four approximate p-values, shape (labellings, K).

    The approximations only put the four on a common scale; randomisation makes the level exact.
    """
    scores, polynomials = _score_table(counts.shape[-1])
    n = round(float(counts[0, 0].sum()))
    # Where all members are equal in all replicates a sum is always 0, and says nothing.
    sd = np.where(scale.scores > _SINGULAR * sqrt(n), scale.scores, np.inf)
    z = counts @ scores / sd.T
    sums = counts @ polynomials
    smooth = np.einsum("lka,kab,lkb->lk", sums, scale.smooth, sums, optimize=True)
    components = [
        *np.moveaxis(_log_two_sided(z), -1, 0),
        # scipy has no log of it and it underflows; the ties that the floor makes can only enlarge the p-value.
        np.log(np.maximum(gammaincc(np.maximum(scale.freedom, 1) / 2, smooth / 2), np.finfo(np.float64).tiny)),
        _log_gap(counts, n),
    ]
    smallest: Floats = np.minimum.reduce(components)
    return -smallest


def _score_table(size: int) -> tuple[Floats, Floats]:
    """Return location and spread scores, and orthonormal polynomials, on the ranks {0, ..., size - 1}."""
    normal = ndtri(np.arange(1, size + 1) / (size + 1))
    scores = [_standardised(normal), _standardised(normal**2)]
    order = min(4, size - 1)
    # On [-1, 1] the powers stay well conditioned. QR leaves signs open, which the squares do not see.
    powers = np.vander(np.linspace(-1, 1, size), order + 1, increasing=True)
    orthonormal = np.linalg.qr(powers)[0][:, 1:] * sqrt(size)
    return np.stack(scores, axis=1), orthonormal


def _standardised(score: Floats) -> Floats:
    centred = score - score.mean()
    spread = sqrt(float((centred**2).mean()))
    # With a single draw per replicate the spread score is constant and says nothing.
    return centred / spread if spread > 1e-9 else np.zeros_like(centred)


def _log_two_sided(z: Floats) -> Floats:
    log_pvalue: Floats = np.minimum(log(2) + log_ndtr(-np.abs(z)), 0.0)
    return log_pvalue


def _log_gap(counts: Floats, n: int) -> Floats:
    """Approximate the log p-value of the largest standardised gap of the cumulative counts.

    A gap is the signed root of its binomial deviance, which agrees with the standardised count in the
    middle and, unlike it, has normal tails where few ranks are expected. The p-value is the formula of
    Miller and Siegmund (1982) for the standardised Brownian bridge between 1 / (M + 1) and M / (M + 1).
    """
    M = counts.shape[-1] - 1
    # Parts of a count add up to it but for rounding.
    share = np.minimum(np.cumsum(counts, axis=-1)[..., :-1] / n, 1.0)
    expected = np.arange(1, M + 1) / (M + 1)
    deviance = 2 * n * (rel_entr(share, expected) + rel_entr(1 - share, 1 - expected))
    # Below b = 1 the second term turns negative; at 1 the formula gives 4 phi(1) = 0.97, so that nothing is lost.
    b = np.sqrt(np.maximum(deviance.max(axis=-1), 1.0))
    log_density = -0.5 * b**2 - 0.5 * log(2 * pi)
    log_pvalue: Floats = np.minimum(log_density + np.log(4 / b + 2 * (b - 1 / b) * log(M)), 0.0)
    return log_pvalue


def step_down(evidence: Floats) -> Floats:
    """Return max-T step-down p-values; row 0 is the observed labelling, and counts as one of the rest."""
    order = np.argsort(-evidence[0], kind="stable")
    ordered = evidence[:, order]
    # A test function is compared with the largest among those that have no more evidence than itself.
    rivals = np.maximum.accumulate(ordered[:, ::-1], axis=1)[:, ::-1]
    reached = (rivals >= ordered[0] - _TIE * (1 + np.abs(ordered[0]))).mean(axis=0)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(reached)
    return adjusted


def _as_members(members: ArrayLike) -> NDArray[np.integer]:
    ranks = np.asarray(members)
    if not np.issubdtype(ranks.dtype, np.integer):
        raise TypeError(f"members must hold integer ranks, got dtype {ranks.dtype}; rank along axis 1 first.")
    if ranks.ndim != 3 or ranks.shape[1] < 2 or not ranks.size:
        raise ValueError(
            f"members must have shape (n, M + 1, K) with at least one draw, got {ranks.shape}; "
            "replicates on axis 0, truth and draws on axis 1, test functions on axis 2."
        )
    if not _are_rankings(ranks):
        raise ValueError(
            f"members must be ranks in 0..{ranks.shape[1] - 1} along axis 1 for every replicate and test function, "
            "equal ones the lowest of theirs, but some rank is missing or out of range; count the members below each."
        )
    return ranks


def _are_rankings(ranks: NDArray[np.integer]) -> bool:
    if ranks.min() < 0 or ranks.max() >= ranks.shape[1]:
        return False
    ordered, places = np.sort(ranks, axis=1), np.arange(ranks.shape[1])[:, None]
    # A rank is its own place, or that of the one before it: the same member value.
    repeats = np.zeros(ranks.shape, dtype=np.bool_)
    repeats[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    return bool(((ordered == places) | repeats).all())
