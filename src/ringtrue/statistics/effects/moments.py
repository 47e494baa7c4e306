"""Spread and bias from the first two moments of u, which one replicate moves by at most 1/n."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..arguments import Floats, Ints, as_counts, as_values


@dataclass(frozen=True)
class MomentFit:
    """Spread factor and bias as point estimates."""

    spread: float
    bias: float


def moment_spread_and_bias(values: ArrayLike, *, draws: int | None = None) -> MomentFit:
    """Estimate spread factor and bias from the first two moments of u.

    One replicate moves each moment by at most 1/n, so a few wild replicates cannot dominate: if this differs
    much from `spread_and_bias`, the failures are rare and heavy-tailed. It sees nothing beyond two moments.

    Parameters
    ----------
    values : array_like, shape (n,)
        u in [0, 1]; with `draws`, integer ranks in {0, ..., draws}.
    draws : int, optional
        The number of draws M. Ranks use the unbiased moments R / M and R (R - 1) / (M (M - 1)).

    Returns
    -------
    MomentFit
        The spread is 0 or inf where the moments allow no other; nan for M = 1 or if all u are 0 or all 1.

    Notes
    -----
    For z ~ N(delta, s^2), E u = Phi(a) and E u^2 = BVN(a, a; rho) with a = delta / sqrt(1 + s^2) and
    rho = s^2 / (1 + s^2). Since BVN(a, a; rho) = Phi(a) - 2 T(a, x) with Owen's T and x = 1 / sqrt(1 + 2 s^2),
    and T is increasing and concave in x, Newton's method from x = 0 climbs to the solution without a safeguard.

    Examples
    --------
    >>> u = special.ndtr(2 * special.ndtri((np.arange(1000) + 0.5) / 1000))
    >>> round(moment_spread_and_bias(u).spread, 2)
    2.0
    """
    if draws is None:
        first, second = moments_of_values(as_values(values, "u"))
    else:
        first, second = moments_of_counts(as_counts(values, draws))
    a = float(special.ndtri(first))
    # One draw shows E u alone; at s = 1 it is Phi(delta / sqrt(2)).
    if draws == 1:
        return MomentFit(math.nan, math.sqrt(2) * a)
    spread, bias = solve_moments(np.array([first]), np.array([second]))
    return MomentFit(float(spread[0]), float(bias[0]))


def moments_of_values(u: Floats) -> tuple[float, float]:
    """Return the means of u and u^2."""
    return float(u.mean()), float(np.square(u).mean())


def moments_of_counts(counts: Ints) -> tuple[float, float]:
    """Return the unbiased estimates of E u and E u^2 from counts of ranks."""
    r, n, M = np.arange(counts.size, dtype=np.float64), float(counts.sum()), counts.size - 1
    return float(counts @ r) / (n * M), float(counts @ (r * (r - 1))) / (n * M * max(M - 1, 1))


def solve_moments(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Spread and bias with these E u and E u^2."""
    a = special.ndtri(first)
    # Where all u are 0 or 1 the two moments agree up to rounding, of either sign.
    target = np.maximum(first - second, 0.0) / 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = np.zeros_like(a)
        for _ in range(60):
            slope = np.exp(-0.5 * a**2 * (1 + x**2)) / (2 * np.pi * (1 + x**2))
            step = (target - special.owens_t(a, x)) / slope
            # Beyond x = 1 the spread is 0 whatever the root; stopping there keeps the slope from vanishing.
            x = np.clip(np.where(np.isnan(step), 0.0, x + step), 0.0, 1.5)
            if not np.any(np.abs(step[x < 1]) > 1e-14):
                break
        spread = np.where(np.isinf(a), np.nan, np.sqrt(np.maximum(1 / x**2 - 1, 0.0) / 2))
        # At a = 0 an infinite spread would give 0 * inf.
        bias = np.where((a == 0) | np.isinf(a), a, a * np.sqrt(1 + spread**2))
    return spread, bias
