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

__all__ = ["LabelRandomisation", "label_randomised"]

# Numbers held at once while relabelling: eight bytes each, and a handful of arrays of this size.
_CHUNK = 2_000_000

# The same counts give the same statistic up to the order of summation; nearer than this is a tie, which
# can only enlarge the p-value.
_TIE = 1e-9


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
    exchangeable with the truth; thin them first.

    Parameters
    ----------
    members : array_like of int, shape (n, M + 1, K)
        For replicate i and test function k, the rank in {0, ..., M} of member j among all M + 1 members,
        ties broken at random. Member 0 is the truth.
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
    chunks = [_evidence(counts) for counts in _relabelled_counts(ranks, rng, randomisations)]
    evidence = np.concatenate(chunks)
    if weights is not None:
        # The same shift for all labellings: relabelling stays exact, whatever the weights.
        evidence = evidence + np.log(as_weights(weights, evidence.shape[1]))
    adjusted = _step_down(evidence)
    return LabelRandomisation(float(evidence[0].max()), float(adjusted.min()), adjusted)


def _relabelled_counts(ranks: NDArray[np.integer], rng: Generator, randomisations: int) -> Iterator[Ints]:
    """Yield how often each rank is the truth's, shape (labellings, K, M + 1), as observed first."""
    n, size, K = ranks.shape
    by_member = ranks.reshape(n * size, K)
    yield _count(by_member, np.arange(n)[None] * size, size)
    # A labelling gathers n K ranks and fills size K counts; the larger of the two is held to the budget.
    chunk = max(1, _CHUNK // (K * max(n, size)))
    for start in range(0, randomisations, chunk):
        rows = min(chunk, randomisations - start)
        # One label per replicate, shared by all test functions: this keeps their dependence.
        labels = rng.integers(size, size=(rows, n))
        yield _count(by_member, np.arange(n) * size + labels, size)


def _count(by_member: NDArray[np.integer], truth: Ints, size: int) -> Ints:
    rows, K = len(truth), by_member.shape[1]
    cells = by_member[truth].astype(np.int64)
    # Every labelling and test function has cells of its own, so that one bincount serves them all.
    cells += np.arange(K) * size
    cells += np.arange(rows)[:, None, None] * (K * size)
    return np.bincount(cells.ravel(), minlength=rows * K * size).reshape(rows, K, size)


def _evidence(counts: Ints) -> Floats:
    """Return minus the log of the smallest of four approximate p-values, shape (labellings, K).

    The approximations only put the four on a common scale; randomisation makes the level exact.
    """
    scores, polynomials = _score_table(counts.shape[-1])
    n = int(counts[0, 0].sum())
    z = counts @ scores / sqrt(n)
    smooth = ((counts @ polynomials) ** 2).sum(axis=-1) / n
    components = [
        *np.moveaxis(_log_two_sided(z), -1, 0),
        # scipy has no log of it and it underflows; the ties that the floor makes can only enlarge the p-value.
        np.log(np.maximum(gammaincc(polynomials.shape[1] / 2, smooth / 2), np.finfo(np.float64).tiny)),
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


def _log_gap(counts: Ints, n: int) -> Floats:
    """Approximate the log p-value of the largest standardised gap of the cumulative counts.

    A gap is the signed root of its binomial deviance, which agrees with the standardised count in the
    middle and, unlike it, has normal tails where few ranks are expected. The p-value is the formula of
    Miller and Siegmund (1982) for the standardised Brownian bridge between 1 / (M + 1) and M / (M + 1).
    """
    M = counts.shape[-1] - 1
    share = np.cumsum(counts, axis=-1)[..., :-1] / n
    expected = np.arange(1, M + 1) / (M + 1)
    deviance = 2 * n * (rel_entr(share, expected) + rel_entr(1 - share, 1 - expected))
    # Below b = 1 the second term turns negative; at 1 the formula gives 4 phi(1) = 0.97, so that nothing is lost.
    b = np.sqrt(np.maximum(deviance.max(axis=-1), 1.0))
    log_density = -0.5 * b**2 - 0.5 * log(2 * pi)
    log_pvalue: Floats = np.minimum(log_density + np.log(4 / b + 2 * (b - 1 / b) * log(M)), 0.0)
    return log_pvalue


def _step_down(evidence: Floats) -> Floats:
    """Return max-T step-down p-values; row 0 is the observed labelling, and counts as one of the rest."""
    order = np.argsort(-evidence[0], kind="stable")
    ordered = evidence[:, order]
    # A test function is compared with the largest among those that have no more evidence than itself.
    rivals = np.maximum.accumulate(ordered[:, ::-1], axis=1)[:, ::-1]
    reached = (rivals >= ordered[0] - _TIE * (1 + ordered[0])).mean(axis=0)
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
    if not _are_permutations(ranks):
        raise ValueError(
            f"members must be a permutation of 0..{ranks.shape[1] - 1} along axis 1 for every replicate and "
            "test function, but some rank is missing or out of range; break ties at random."
        )
    return ranks


def _are_permutations(ranks: NDArray[np.integer]) -> bool:
    if ranks.min() < 0 or ranks.max() >= ranks.shape[1]:
        return False
    seen = np.zeros(ranks.shape, dtype=np.bool_)
    np.put_along_axis(seen, ranks.astype(np.int64), True, axis=1)
    return bool(seen.all())
