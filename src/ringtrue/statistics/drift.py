"""Has the first member of every set been moved? Tests that are exact because members can be exchanged.

A set has one member that something was done to, and others of the same law if it did no harm. Which of them is the
first is then random, and random labels give the exact law of any statistic. This module sees sets of numbers and must
not know where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import ndtri

from .arguments import Floats
from .effects.intervals import student
from .exchange import log_chernoff, step_down

__all__ = ["DriftTest", "detectable_drift", "drift_interval", "drift_test"]

#: Random labels; p-values are multiples of one over one more.
LABELS = 999
#: Sets that have a label of their own; of more, so many groups of sets have one each, by which all members of a set
#: are moved on in a circle. That is exact too.
_GROUPS = 1000
#: The same members give the same sum up to the order of summation; nearer than this is a tie, which enlarges p.
_TIE = 1e-9
#: A column that varies less than this within sets, in units of one, does not vary.
_FLAT = 1e-12


@dataclass(frozen=True, eq=False)
class DriftTest:
    """The outcome of a test that the first members are like the others, column by column and together.

    ``statistics`` are the standardised sums, with their signs; ``pvalues`` are those of single columns, ``adjusted``
    are for the largest of all, step by step, and the smallest of them is the p-value of all.
    """

    statistics: Floats
    pvalues: Floats
    adjusted: Floats

    @property
    def pvalue(self) -> float:
        """That of "no column has moved"."""
        return float(self.adjusted.min())


def drift_test(members: ArrayLike, *, rng: Generator, labels: int = LABELS) -> DriftTest:
    """Test that the first member of every set is like the others.

    Null hypothesis: sets are independent of each other, and the members of each are exchangeable. The p-values are
    exact for any number of sets, members and columns. It sees a shift of the mean of a column, and nothing else; the
    numbers should be bounded, such as scores of ranks, or one of them may hide all others.

    Parameters
    ----------
    members : array_like, shape (n, members, K)
        Numbers of order one.
    rng : Generator
        Draws the labels.
    labels : int
        Their number. What would be the smallest p-value of labels is replaced by Chernoff's bound for the sum, if that
        is smaller still, as in :func:`~ringtrue.statistics.exchange.exchange_test`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> sets = rng.normal(size=(200, 11, 2))
    >>> sets[:, 0, 1] += 0.5
    >>> drift_test(sets, rng=rng).adjusted < 0.01
    array([False,  True])
    """
    sets = np.asarray(members, float)
    n, size, K = sets.shape
    centred = sets - sets.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=1).sum(axis=0))
    unit = np.where(spread > sqrt(_FLAT * n), spread, np.inf)
    starts = np.linspace(0, n, min(n, _GROUPS), endpoint=False).astype(np.int64)
    groups = np.add.reduceat(centred, starts) / unit
    moved = rng.integers(0, size, size=(labels, len(groups)))
    sums = np.concatenate([groups[:, 0].sum(axis=0)[None], groups[np.arange(len(groups)), moved].sum(axis=1)])
    alone = np.array([_reached(np.abs(column)) for column in sums.T])
    adjusted = step_down(np.abs(sums))
    # Only where labels can say no more: above, a p-value is what they say and nothing else.
    end = (1 + _TIE) / (labels + 1)
    bounds = np.array([_bound(centred[:, :, k]) if alone[k] <= end else 1.0 for k in range(K)])
    return DriftTest(
        sums[0],
        np.where(alone <= end, np.minimum(alone, bounds), alone),
        np.where(adjusted <= end, np.minimum(adjusted, K * bounds), adjusted),
    )


def _reached(values: Floats) -> float:
    """Return the share that is at least as large as the first, but for rounding."""
    return float(np.mean(values >= values[0] - _TIE * (1 + np.abs(values[0]))))


def _bound(centred: Floats) -> float:
    """Bound the probability that random members have as large a sum as the first, on either side."""
    return min(1.0, 2 * exp(log_chernoff(np.sign(centred[:, 0].sum()) * centred)))


def drift_interval(members: ArrayLike, *, confidence: float) -> tuple[float, float, float]:
    """Return by how much the first members lie above the others on average, and the ends of an interval.

    Parameters
    ----------
    members : array_like, shape (n, members)
        At least two sets.
    confidence : float
        Of the interval, which is Student's.

    Examples
    --------
    >>> drift_interval([[1.0, 0.0], [1.0, 0.0]], confidence=0.95)
    (1.0, 1.0, 1.0)
    """
    sets = np.asarray(members, float)
    apart = sets[:, 0] - sets[:, 1:].mean(axis=1)
    middle = float(apart.mean())
    reach = student(confidence, len(apart) - 1) * float(apart.std(ddof=1)) / sqrt(len(apart))
    return middle, middle - reach, middle + reach


def detectable_drift(n: int, others: int, *, tests: int, alpha: float, power: float = 0.8) -> float:
    """Return the shift, in sds, that is found with this probability, by normal approximation.

    Parameters
    ----------
    n, others
        Sets, and members of each besides the first, all independent.
    tests
        Columns that share alpha.
    alpha, power
        Of the test.

    Examples
    --------
    >>> round(detectable_drift(100, 10, tests=1, alpha=0.05), 3)
    0.294
    """
    return float(ndtri(power) - ndtri(alpha / (2 * tests))) * sqrt((1 + 1 / others) / n)
