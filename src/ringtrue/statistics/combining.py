"""Many p-values into one, valid under dependence.

Test functions of one parameter see the same replicates, so their p-values depend on each other in ways
nobody knows. Everything here holds its level whatever that dependence is. This module sees p-values and must not know
where they come from.
"""

from bisect import insort
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .arguments import Floats

__all__ = ["as_weights", "bonferroni", "holm", "in_stages", "prefix_two_median", "weighted_minimum"]

#: Random labellings that most tests of a calibrated procedure need, those of all others, and what tells them apart.
_FIRST, _ALL, _DULL = 99, 999, 0.2


class _Tested(Protocol):
    @property
    def pvalue(self) -> float: ...


T = TypeVar("T", bound=_Tested)


def in_stages(test: Callable[[int], T]) -> T:
    """Run a test by random labels with 99 of them, and with 999 if its p-value is 0.2 or less.

    The p-value stays valid. One of t <= 0.2 comes from the second run alone, and that has it with probability t at
    most; of t > 0.2 the first run has p <= t, or had p <= 0.2, which is the same. The labels of the two may depend on
    each other in any way.

    Parameters
    ----------
    test
        From the number of labellings to a result with a valid p-value.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> in_stages(lambda many: SimpleNamespace(pvalue=1 / (many + 1))).pvalue
    0.001
    """
    first = test(_FIRST)
    return first if first.pvalue > _DULL else test(_ALL)


def bonferroni(p: ArrayLike) -> float:
    """Return a p-value for "all hypotheses hold": the smallest p-value times their number.

    The K valid p-values may depend on each other in any way. It sees one strong rejection; it is blind to many weak
    ones.

    Examples
    --------
    >>> bonferroni([0.01, 0.2, 0.6])
    0.03
    """
    p = _as_pvalues(p)
    return min(1.0, len(p) * float(p.min()))


def holm(p: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Adjust each p-value so that rejecting all below alpha makes one false claim with probability alpha.

    They may depend on each other in any way. The smallest becomes that of :func:`weighted_minimum`; without weights
    that is the Bonferroni p-value, and they keep their order.

    Examples
    --------
    >>> holm([0.01, 0.6, 0.02])
    array([0.03, 0.6 , 0.04])
    >>> holm([0.02, 0.02], weights=[0.8, 0.2])
    array([0.025, 0.025])
    """
    p = _as_pvalues(p)
    w = np.ones(len(p)) if weights is None else as_weights(weights, len(p)) * len(p)
    order = np.argsort(p / w, kind="stable")
    adjusted = np.empty_like(p)
    # What is left of the weights is shared by those not rejected yet. The running maximum: nothing is rejected before
    # all that have smaller p-values are.
    left = np.cumsum(w[order][::-1])[::-1]
    adjusted[order] = np.maximum.accumulate(p[order] / w[order] * left)
    return np.minimum(adjusted, 1.0)


def weighted_minimum(p: ArrayLike, weights: ArrayLike) -> float:
    """Return a p-value for "all hypotheses hold", the smallest ``p / weight``, at most one.

    Parameters
    ----------
    p : array_like, shape (K,)
        Valid p-values, dependent in any way.
    weights : array_like, shape (K,)
        Shares of the level, chosen before seeing `p`: not negative, and adding up to one. A hypothesis of
        weight zero is not looked at.

    Examples
    --------
    >>> weighted_minimum([0.125, 0.375], [0.25, 0.75])
    0.5
    """
    p = _as_pvalues(p)
    w = as_weights(weights, len(p))
    # Zero weights are left out before dividing: 0 / 0 would be nan, which a minimum hands on.
    return min(1.0, float((p[w > 0] / w[w > 0]).min()))


def prefix_two_median(p: ArrayLike) -> float:
    """Combine p-values of one hypothesis from many random splits, in the order in which they were drawn.

    The combination is the smallest, over all prefixes, of twice the prefix's median. It is valid when the
    p-values are exchangeable, as those of independent random splits of one data set are; sorting them, or
    stopping when they look good and drawing new ones, breaks this.

    Notes
    -----
    For a fixed level alpha, ``E = (2 / alpha) 1{p <= alpha / 2}`` has mean at most one. Means over prefixes
    of exchangeable E's are a martingale in reversed time, so that any of them reaches ``1 / alpha`` with
    probability at most alpha; and it does so just when at least half of the prefix is at most alpha / 2
    [1]_. "At least half" makes the median of an even number of values the *lower* of the middle two. No
    smaller order statistic will do: for ever more independent uniform p-values the level is attained.

    References
    ----------
    .. [1] M. Gasparin, R. Wang and A. Ramdas, "Combining exchangeable p-values", PNAS 122 (2025).

    Examples
    --------
    >>> prefix_two_median([0.04, 0.5, 0.03, 0.02])
    0.06
    """
    prefix: list[float] = []
    # Twice a median may exceed one; a half caps the result there.
    best = 0.5
    for value in _as_pvalues(p).tolist():
        insort(prefix, value)
        best = min(best, prefix[(len(prefix) - 1) // 2])
    return 2 * best


def as_weights(weights: ArrayLike, many: int) -> Floats:
    """Return shares of a level: as many numbers, not negative, that add up to one."""
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (many,) or not (w >= 0).all() or abs(w.sum() - 1) > 1e-9:
        raise ValueError(
            f"weights must be {many} numbers >= 0 that add up to 1, got shape {w.shape} with sum "
            f"{w.sum()}; divide them by their sum."
        )
    return w


def _as_pvalues(p: ArrayLike) -> Floats:
    array = np.asarray(p, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"p must be one or more numbers in [0, 1] along one axis, got {_brief(array)}.")
    return array


def _brief(array: Floats) -> str:
    return f"shape {array.shape}" if array.ndim != 1 or not len(array) else f"values {array.min()} to {array.max()}"
