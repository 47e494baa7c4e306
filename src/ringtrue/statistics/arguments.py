"""What arrives, checked: a refusal says what was expected, what arrived and what to do."""

import math
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidStudy

#: Counts beyond are refused: nobody has so many of anything, and squares of them no longer fit.
MOST = 10**15
#: Draws whose ranks are tested one by one: tables have an entry for each rank.
MOST_RANKS = 10**6
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def need_number(**given: Any) -> None:
    """Refuse what is no single number.

    Examples
    --------
    >>> need_number(bias="0.1")
    Traceback (most recent call last):
    ringtrue.errors.InvalidStudy: bias must be a number, but '0.1' arrived.
    """
    for name, value in given.items():
        # Not by a list of types: other libraries have numbers of their own, and arrays without axes. Most are plain.
        if type(value) in (float, int):
            continue
        if not isinstance(value, SupportsFloat) or np.shape(np.asarray(value)):
            raise InvalidStudy(f"{name} must be a number, but {value!r} arrived.")


def need_fraction(**given: float) -> None:
    """Refuse what does not lie strictly between 0 and 1: a confidence, a nominal coverage, an alpha, a power.

    Examples
    --------
    >>> need_fraction(confidence=95)
    Traceback (most recent call last):
    ringtrue.errors.InvalidStudy: confidence must lie strictly between 0 and 1, but 95 arrived; for 95 % pass 0.95.
    """
    need_number(**given)
    for name, value in given.items():
        if not 0 < value < 1:
            raise InvalidStudy(f"{name} must lie strictly between 0 and 1, but {value!r} arrived; for 95 % pass 0.95.")


def need_count(least: int, most: int = MOST, /, **given: float) -> None:
    """Refuse what is no whole number, or too small or too large a one: draws, lost replicates, permutations.

    Examples
    --------
    >>> need_count(1, draws=0)
    Traceback (most recent call last):
    ringtrue.errors.InvalidStudy: draws must be a whole number, at least 1, but 0 arrived.
    """
    need_number(**given)
    for name, value in given.items():
        # Not "value < least": nan compares false with everything and must be refused.
        if not value >= least or value % 1:
            raise InvalidStudy(f"{name} must be a whole number, at least {least}, but {value!r} arrived.")
        if value > most:
            raise InvalidStudy(f"{name} must be at most {most:,}, but {value!r} arrived.")


def as_values(values: ArrayLike, name: str) -> Floats:
    """Return values on the continuum; those named "u" must lie in [0, 1]."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise InvalidStudy(f"{name} must have shape (n,) with n >= 1, but {array.shape} arrived.")
    # The minimum hands nan on, so that no array of flags is needed to find one.
    low, high = float(array.min()), float(array.max())
    if math.isnan(low):
        raise InvalidStudy(f"{name} must not contain nan; leave lost replicates out and count them in lost=.")
    if name == "u" and not (low >= 0 and high <= 1):
        raise InvalidStudy(f"u must lie in [0, 1], but {low:g} to {high:g} arrived; for ranks pass draws=.")
    return array


def as_ranks(values: ArrayLike, draws: int) -> Ints:
    """Return ranks in {0, ..., draws} as integers; floats will do if they are whole."""
    need_count(1, draws=draws)
    if draws > MOST_RANKS:
        raise InvalidStudy(
            f"ranks among at most {MOST_RANKS:,} draws are tested one by one, but draws={draws!r} arrived; pass "
            f"(ranks + rng.random(n)) / (draws + 1) as u, which is uniform too, and leave out draws=."
        )
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise InvalidStudy(f"ranks must have shape (n,) with n >= 1, but {array.shape} arrived.")
    # nan has no integer to be cast to: what the cast gives depends on the machine.
    if np.isnan(array.min()):
        raise InvalidStudy("ranks must be whole numbers, but nan arrived; leave lost replicates out.")
    ranks = array.astype(np.int64, copy=False)
    # A cast cuts fractions off without a word; integers are not copied and need no comparison.
    if ranks is not array and not np.array_equal(ranks, array):
        raise InvalidStudy("ranks must be whole numbers, but fractions arrived; for u in [0, 1] leave out draws=.")
    if ranks.min() < 0 or ranks.max() > draws:
        raise InvalidStudy(f"ranks must lie in 0..{draws}, but {ranks.min()} to {ranks.max()} arrived; check draws=.")
    return ranks


def as_counts(ranks: ArrayLike, draws: int) -> Ints:
    """Return how often each rank in {0, ..., draws} occurs; floats are refused, since a forgotten z looks like them."""
    array = np.asarray(ranks)
    if array.ndim == 1 and array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"ranks must be integers, but {array.dtype} arrived; for z or u leave out draws=.")
    return np.bincount(as_ranks(array, draws), minlength=draws + 1)
