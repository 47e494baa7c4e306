"""What arrives, checked: values on the continuum, ranks as counts, levels."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: |z| beyond this is an infinity that arithmetic happened to keep; its eighth power would overflow.
HUGE = 1e30


def check_level(level: float, lost: int) -> None:
    """Refuse a confidence level or a number of lost replicates that cannot be one."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}; for 95 % pass 0.95")
    if lost < 0:
        raise ValueError(f"lost must be a number of replicates, 0 or more, got {lost}")


def check_draws(draws: int) -> None:
    """Refuse a number of draws below one."""
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}; pass draws=None for values on the continuum")


def as_values(values: ArrayLike, name: str) -> Floats:
    """Return values on the continuum; those named "u" must lie in [0, 1]."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must have shape (n,) with n >= 1, got {array.shape}")
    low, high = float(array.min()), float(array.max())
    if math.isnan(low):
        raise ValueError(f"{name} contains nan; leave lost replicates out and count them in lost=")
    if name == "u" and not (low >= 0 and high <= 1):
        raise ValueError(f"u must lie in [0, 1], got [{low}, {high}]; for ranks pass draws=")
    return array


def as_counts(ranks: ArrayLike, draws: int) -> Ints:
    """Return how often each rank in {0, ..., draws} occurs."""
    check_draws(draws)
    array = np.asarray(ranks)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"ranks must have shape (n,) with n >= 1, got {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"ranks must be integers, got {array.dtype}; for values on the continuum leave out draws=")
    if array.min() < 0 or array.max() > draws:
        raise ValueError(f"ranks must lie in 0..{draws}, got {array.min()}..{array.max()}; check draws=")
    return np.bincount(array.astype(np.int64, copy=False), minlength=draws + 1)
