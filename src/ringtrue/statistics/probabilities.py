"""Were the reported probabilities those of the outcomes? Tests that are exact, since their null law is known.

If probabilities are right, every outcome is a coin with the reported probability, and the law of any statistic can be
drawn from. This module sees outcomes and probabilities, and must not know where they come from.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import chdtrc, expit

from ..errors import InvalidStudy
from .arguments import Floats, Ints, need_count

__all__ = ["ProbabilityTest", "Scores", "class_test", "pooled", "posterior", "probability_test", "scores"]

#: Log odds beyond this are as good as certain; as a feature they would count for more than all others together.
_CERTAIN = 30.0
#: Numbers held at once while outcomes are drawn.
_CHUNK = 4_000_000
#: Eigenvalues below this share of the largest are rounding: features that are multiples of each other.
_SINGULAR = 1e-10
#: The same outcomes give the same statistic up to the order of summation; a tie can only enlarge the p-value.
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Coins:
    """Outcomes side by side with what was reported, equal probabilities together.

    Attributes
    ----------
    p, q
        Reported probabilities of one and of zero, (cells,): q is not 1 - p where that would round.
    many, ones
        How many outcomes each cell has, and how many of them are one.
    """

    p: Floats
    q: Floats
    many: Floats
    ones: Floats

    @classmethod
    def of(cls, outcome: ArrayLike, probability: ArrayLike, complement: ArrayLike | None = None) -> "Coins":
        """Put outcomes in order of their probabilities, so that their own order does not matter."""
        t, p, q = as_coins(outcome, probability, complement)
        order = np.lexsort((-q, p))
        t, p, q = t[order], p[order], q[order]
        first = np.flatnonzero(np.concatenate([[True], (np.diff(p) != 0) | (np.diff(q) != 0)]))
        many = np.diff(np.append(first, len(p))).astype(float)
        return cls(p[first], q[first], many, np.add.reduceat(t, first))

    @property
    def logit(self) -> Floats:
        """Log odds, those of certainty at their limit."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.clip(np.log(self.p) - np.log(self.q), -_CERTAIN, _CERTAIN))

    @property
    def residuals(self) -> Floats:
        """Ones beyond those expected, of every cell."""
        # Where all are one this is their number times q, which keeps its digits.
        return np.asarray(self.ones * self.q - (self.many - self.ones) * self.p)

    @property
    def variances(self) -> Floats:
        """Of the number of ones of every cell."""
        return np.asarray(self.many * self.p * self.q)

    @property
    def impossible(self) -> bool:
        """Whether an outcome had been given the probability 0."""
        return bool(((self.p == 0) & (self.ones > 0)).any() or ((self.q == 0) & (self.ones < self.many)).any())


def as_coins(
    outcome: ArrayLike, probability: ArrayLike, complement: ArrayLike | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return outcomes, probabilities and their complements as arrays of one shape, (n,)."""
    t, p = np.asarray(outcome), np.asarray(probability, float)
    if t.ndim != 1 or t.size == 0 or p.shape != t.shape:
        raise InvalidStudy(f"outcome and probability must both have shape (n,), but {t.shape} and {p.shape} arrived.")
    if t.dtype.kind not in "biuf" or not np.isin(t, (0, 1)).all():
        raise InvalidStudy(
            "outcome must be true or false, or 0 or 1, but other values arrived; pass labels of classes with "
            "probabilities of shape (n, classes)."
        )
    q = 1 - p if complement is None else np.asarray(complement, float)
    if not (np.isfinite(p).all() and ((p >= 0) & (p <= 1)).all()):
        raise InvalidStudy(f"probability must lie in [0, 1], but {np.min(p):g} to {np.max(p):g} arrived.")
    if q.shape != p.shape or not np.allclose(p + q, 1.0, rtol=0, atol=1e-6):
        raise InvalidStudy("complement must be 1 - probability, to more digits, but other numbers arrived.")
    return t.astype(float), p, q


def pooled(outcome: ArrayLike, ones: ArrayLike, draws: ArrayLike) -> Floats:
    """Return the share of ones among truth and draws: given it, the truth is one with just this probability.

    Null hypothesis: truth and draws are exchangeable. Then the truth is one with probability (k + t) / (M + 1) given
    the sum k + t, exactly, at any M. The share k / M of the draws alone is not the probability of the output: taken for
    it, it convicts calibrated outputs.

    Parameters
    ----------
    outcome, ones, draws
        t in {0, 1}, k and M of every replicate.

    Examples
    --------
    >>> pooled([1, 0], [3, 0], 9).tolist()
    [0.4, 0.0]
    """
    t, k, m = np.broadcast_arrays(*(np.asarray(part, float) for part in (outcome, ones, draws)))
    if not ((m >= 1) & (m % 1 == 0) & (k >= 0) & (k <= m) & (k % 1 == 0)).all():
        raise InvalidStudy("ones must be whole numbers from 0 to draws, and draws at least 1, but others arrived.")
    return np.asarray((k + t) / (m + 1))


def posterior(log_bayes_factor: ArrayLike, prior: float) -> tuple[Floats, Floats]:
    """Return pi B / (1 - pi + pi B) and its complement from log B, to full relative accuracy.

    Examples
    --------
    >>> [part.round(12).tolist() for part in posterior([0.0, 800.0], 0.25)]
    [[0.25, 1.0], [0.75, 0.0]]
    """
    log_b = np.asarray(log_bayes_factor, float)
    if not 0 < prior < 1:
        raise InvalidStudy(f"prior must lie strictly between 0 and 1, but {prior!r} arrived.")
    if np.isnan(log_b).any():
        raise InvalidStudy("log_bayes_factor must not contain nan.")
    odds = log_b + (np.log(prior) - np.log1p(-prior))
    return np.asarray(expit(odds)), np.asarray(expit(-odds))


@dataclass(frozen=True)
class Scores:
    """What outcomes say against probabilities, each approximately standard normal, or chi-squared, if they are right.

    ``in_the_large`` and ``spiegelhalter`` are z: too many ones, and outcomes nearer to one half than reported.
    ``cox`` (2 degrees of freedom) is about shift and slope of log odds, ``smooth`` (4) about polynomials of the
    probability.
    """

    in_the_large: float
    spiegelhalter: float
    cox: float
    smooth: float


def scores(outcome: ArrayLike, probability: ArrayLike) -> Scores:
    """Return the usual statistics of outcomes and probabilities.

    Examples
    --------
    >>> found = scores([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(found.in_the_large, 6), round(found.spiegelhalter, 6)
    (0.413197, -0.485374)
    """
    coins = Coins.of(outcome, probability)
    look = _Look.of(coins)
    sums = coins.residuals @ look.features
    sd = np.sqrt(np.maximum(np.diag(look.covariance), np.finfo(float).tiny))
    cox, smooth = (float(_quadratic(sums, inverse)) for inverse, _ in look.blocks[1:])
    # The second polynomial is 2p - 1; Spiegelhalter's weight is 1 - 2p.
    return Scores(float(sums[0] / sd[0]), -float(sums[2] / sd[2]), cox, smooth)


@dataclass(frozen=True)
class ProbabilityTest:
    """The outcome of a test of probabilities; ``impossible`` if an outcome had been given the probability 0."""

    method: str
    statistic: float
    pvalue: float
    impossible: bool = False


def probability_test(
    outcome: ArrayLike,
    probability: ArrayLike,
    *,
    rng: Generator,
    complement: ArrayLike | None = None,
    resamples: int = 999,
) -> ProbabilityTest:
    """Test that outcomes have the probabilities that were reported for them.

    Null hypothesis: given all probabilities, outcomes are independent coins with just these. The statistic is the
    smallest approximate p-value of three: Cox's score of shift and slope of log odds, Spiegelhalter's, and a smooth
    test on Legendre polynomials of degree 0 to 3 in p. Its law is drawn from, which makes the level exact whatever the
    probabilities. The test sees neither errors that cancel in these sums, such as those that depend on something else
    than p, nor whether probabilities are of any use.

    Parameters
    ----------
    outcome : array_like of {0, 1}, shape (n,)
    probability : array_like, shape (n,)
        Of one. For a share of draws pass :func:`pooled`.
    rng : Generator
        Draws outcomes.
    complement : array_like, optional
        1 - probability, where it is known to more digits.
    resamples : int
        How many outcomes are drawn.

    Notes
    -----
    The smallest p-value that draws can give is replaced by a bound on how likely sums of residuals as large as these
    are, if that is smaller still: Chernoff's, exp(K(s) - s x) with the cumulant function K of independent coins, for
    three weights (one, log odds, p) and two signs, which divide the level. As in ``exchange_test``, the p-value then
    holds its level everywhere.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> p = rng.random(300)
    >>> probability_test(rng.random(300) < p, p, rng=rng).pvalue > 0.001
    True
    >>> probability_test(rng.random(300) < p / 2, p, rng=rng).pvalue < 1e-9
    True
    """
    need_count(1, resamples=resamples)
    coins = Coins.of(outcome, probability, complement)
    method = "probabilities, resampled"
    if coins.impossible:
        return ProbabilityTest(method, np.inf, 0.0, True)
    look = _Look.of(coins)
    observed = float(look.evidence(coins.residuals[None])[0])
    beyond = sum(
        int((look.evidence(part) >= observed - _TIE * max(1.0, observed)).sum())
        for part in _drawn(coins, rng, resamples)
    )
    p = (1 + beyond) / (resamples + 1)
    return ProbabilityTest(method, observed, min(p, _tail_bound(coins, look)) if beyond == 0 else p)


@dataclass(frozen=True, eq=False)
class _Look:
    """What sums of residuals are taken with, and what they are measured in.

    ``features`` are 1, log odds and Legendre polynomials of degree 1 to 3 in p, (cells, 5); ``blocks`` the inverse
    covariance, with zeros for features that a test leaves out, and the degrees of freedom of Spiegelhalter's, Cox's and
    the smooth test.
    """

    features: Floats
    covariance: Floats
    blocks: tuple[tuple[Floats, float], ...]

    @classmethod
    def of(cls, coins: Coins) -> "_Look":
        x = 2 * coins.p - 1
        features = np.column_stack([np.ones_like(x), coins.logit, x, (3 * x**2 - 1) / 2, (5 * x**3 - 3 * x) / 2])
        covariance = np.asarray(features.T @ (coins.variances[:, None] * features))
        return cls(features, covariance, tuple(_block(covariance, of) for of in ([2], [0, 1], [0, 2, 3, 4])))

    def evidence(self, residuals: Floats) -> Floats:
        """Return minus the log of the smallest approximate p-value for residuals of shape (rows, cells)."""
        sums = residuals @ self.features
        p = [chdtrc(max(freedom, 1.0), _quadratic(sums, inverse)) for inverse, freedom in self.blocks]
        smallest: Floats = np.minimum.reduce(p)
        return -np.log(np.maximum(smallest, np.finfo(np.float64).tiny))


def _block(covariance: Floats, of: list[int]) -> tuple[Floats, float]:
    inverse = np.zeros_like(covariance)
    inverse[np.ix_(of, of)], freedom = _pseudo_inverse(covariance[np.ix_(of, of)])
    return inverse, freedom


def _pseudo_inverse(covariance: Floats) -> tuple[Floats, float]:
    """Return the inverse on the space that the sums can move in, and its dimension."""
    # Features in units of their own sd: log odds may vary a million times as much as polynomials.
    sd = np.sqrt(np.diag(covariance))
    unit = np.where(sd > 0, 1 / np.where(sd > 0, sd, 1.0), 0.0)
    values, vectors = np.linalg.eigh(covariance * unit * unit[:, None])
    kept = values > _SINGULAR * max(len(sd), 1)
    half = vectors[:, kept] / np.sqrt(values[kept])
    return (half @ half.T) * unit * unit[:, None], float(kept.sum())


def _quadratic(sums: Floats, inverse: Floats) -> Floats:
    return np.asarray(np.einsum("...a,ab,...b->...", sums, inverse, sums, optimize=True))


def _drawn(coins: Coins, rng: Generator, resamples: int) -> Iterator[Floats]:
    """Yield residuals of outcomes that have the reported probabilities, (rows, cells) at a time."""
    alone = bool((coins.many == 1).all())
    step = max(1, _CHUNK // len(coins.p))
    for start in range(0, resamples, step):
        shape = (min(step, resamples - start), len(coins.p))
        ones = rng.random(shape) < coins.p if alone else rng.binomial(coins.many.astype(np.int64), coins.p, shape)
        yield ones - coins.many * coins.p


def _tail_bound(coins: Coins, look: _Look) -> float:
    """Bound the probability that one of three sums of residuals is as large as it is, on either side."""
    found = [_log_chernoff(coins, look.features[:, j]) for j in range(3)]
    return min(1.0, 6 * float(np.exp(min(found))))


def _log_chernoff(coins: Coins, weights: Floats) -> float:
    """Bound the log probability that a weighted sum of residuals is as far from 0 as it is, on its side."""
    total = float(coins.residuals @ weights)
    w, total = np.copysign(1.0, total) * weights, abs(total)
    variance = float(coins.variances @ w**2)
    if total <= 0 or variance <= 0:
        return 0.0
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(coins.p), np.log(coins.q)

    def bound(s: float) -> float:
        return float(coins.many @ (np.logaddexp(log_q, log_p + s * w) - s * w * coins.p)) - s * total

    # Any s gives a bound. Where the sum is nearly normal the best is near total / variance; where it is one coin
    # against all odds, near their logarithm. The bound is convex in s: thirds of the bracket find it.
    grid = np.concatenate([[total / variance], 2.0 ** np.arange(-12, 10)]) / np.array([1.0, *[np.abs(w).max()] * 22])
    order = np.sort(grid)
    best = int(np.argmin([bound(s) for s in order]))
    low, high = order[max(best - 1, 0)], order[min(best + 1, len(order) - 1)]
    for _ in range(20):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if bound(left) < bound(right) else (left, high)
    return min(0.0, bound(order[best]), bound((low + high) / 2))


@dataclass(frozen=True)
class ClassTest:
    """The outcome of a test of probabilities of several classes.

    ``pvalue`` is that of all together, ``joint`` that of Cox's score of all classes, ``each`` has one test per class.
    """

    pvalue: float
    joint: ProbabilityTest
    each: tuple[ProbabilityTest, ...]


def class_test(outcome: ArrayLike, probability: ArrayLike, *, rng: Generator, resamples: int = 999) -> ClassTest:
    """Test that classes have the probabilities that were reported for them.

    Null hypothesis: given all probabilities, classes are drawn independently with just these. One half of the level is
    for every class against all others, tested as by :func:`probability_test` and shared equally; the other half for
    Cox's score of all classes at once: residuals and residuals times log p of every class.

    Parameters
    ----------
    outcome : array_like of int, shape (n,)
        The number of the class, from 0.
    probability : array_like, shape (n, K)
    rng : Generator
    resamples : int

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> p = rng.dirichlet([1, 1, 1], size=300)
    >>> t = (rng.random((300, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> class_test(t, p, rng=rng).pvalue > 0.001
    True
    """
    t, p = as_classes(outcome, probability)
    others = np.stack([np.delete(p, k, axis=1).sum(axis=1) for k in range(p.shape[1])], axis=1)
    each = tuple(
        probability_test(t == k, p[:, k], complement=others[:, k], rng=rng, resamples=resamples)
        for k in range(p.shape[1])
    )
    joint = _joint_test(t, p, rng, resamples)
    total = min(1.0, 2 * joint.pvalue, 2 * len(each) * min(one.pvalue for one in each))
    return ClassTest(total, joint, each)


def as_classes(outcome: ArrayLike, probability: ArrayLike) -> tuple[Ints, Floats]:
    """Return labels from 0, and probabilities of shape (n, K) that add up to 1."""
    t, p = np.asarray(outcome), np.asarray(probability, float)
    if p.ndim != 2 or p.shape[1] < 2 or t.shape != p.shape[:1] or not t.size:
        raise InvalidStudy(
            f"outcome must have shape (n,) and probability (n, classes), but {t.shape} and {p.shape} arrived."
        )
    if not (np.isfinite(p).all() and ((p >= 0) & (p <= 1)).all() and np.allclose(p.sum(axis=1), 1, rtol=0, atol=1e-6)):
        raise InvalidStudy("the probabilities of all classes must lie in [0, 1] and add up to 1, but others arrived.")
    if t.dtype.kind not in "biu" and not (t.dtype.kind == "f" and (t % 1 == 0).all()):
        raise InvalidStudy("outcome must have the number of a class, from 0, but other values arrived.")
    if t.min() < 0 or t.max() >= p.shape[1]:
        raise InvalidStudy(
            f"outcome must have the number of a class, 0 to {p.shape[1] - 1}, but {t.min()} to {t.max()} arrived."
        )
    return t.astype(np.int64), p / p.sum(axis=1, keepdims=True)


def _joint_test(t: Ints, p: Floats, rng: Generator, resamples: int) -> ProbabilityTest:
    method = "Cox score of all classes, resampled"
    rows = np.arange(len(t))
    if (p[rows, t] == 0).any():
        return ProbabilityTest(method, np.inf, 0.0, True)
    n, K = p.shape
    with np.errstate(divide="ignore"):
        log_p = np.maximum(np.log(p), -_CERTAIN)
    weighted = np.hstack([p, p * log_p])
    # Of one outcome: the second moment, which is 0 between classes, less the product of means.
    moment = np.block([[np.diag((p * log_p**i).sum(axis=0)) for i in (j, j + 1)] for j in (0, 1)])
    inverse, _ = _pseudo_inverse(moment - weighted.T @ weighted)
    expected, edges = weighted.sum(axis=0), np.cumsum(p, axis=1)[:, :-1]

    def statistic(classes: Ints) -> float:
        weights = log_p[rows, classes]
        sums = [np.bincount(classes, weights=part, minlength=K) for part in (None, weights)]
        return float(_quadratic(np.concatenate(sums) - expected, inverse))

    observed = statistic(t)
    drawn = (statistic((rng.random((n, 1)) > edges).sum(axis=1)) for _ in range(resamples))
    beyond = sum(one >= observed - _TIE * max(1.0, observed) for one in drawn)
    return ProbabilityTest(method, observed, (1 + beyond) / (resamples + 1))
