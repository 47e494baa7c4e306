"""What it costs to choose the smallest of the p-values that `uniformity.combination` looks at.

The four tests are dependent, so the smallest p-value x needs a factor c(x; n, draws) between 1 and
4 to be a p-value again. The table ``multiplicity.csv`` next to this file holds c as found by
``benchmarks/calibrate_combination.py`` (100 000 to 400 000 null samples per row, smoothed along n and x
where both n >= 20 and draws >= 6). The module knows the table and how to read between its rows; it must not know
the tests.
"""

from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVELS = (
    *(1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.13, 0.09, 0.065, 0.045, 0.03, 0.022),
    *(0.016, 0.011, 0.008, 0.005, 0.0035, 0.002, 0.001, 5e-4, 2e-4),
)
SIZES = (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 10_000, 1_000_000)
DRAWS = (2, 3, 4, 6, 9, 14, 19, 29, 49, 99, 199, 999)
_COMPONENTS = 4.0


def adjusted_minimum(smallest: float, n: int, draws: int | None) -> float:
    """Turn the smallest of the component p-values into a p-value.

    Parameters
    ----------
    smallest : float
        The smallest component p-value, in (0, 1].
    n : int
        Number of values tested.
    draws : int or None
        Number of draws behind each rank, None on the continuum.

    Returns
    -------
    float
        Non-decreasing in `smallest`. Below 2e-4 the factor rises to Bonferroni's within two decades.

    Examples
    --------
    >>> 0.04 < adjusted_minimum(0.0185, 200, None) < 0.06
    True
    """
    if draws == 1:
        # All components are then the same binomial test.
        return min(1.0, smallest)
    levels, pvalues = _curve(n, draws)
    if smallest >= LEVELS[-1]:
        return min(1.0, float(np.exp(np.interp(np.log(smallest), levels, pvalues))))
    last = float(np.exp(pvalues[0] - levels[0]))
    share = min(1.0, float(np.log10(LEVELS[-1] / smallest)) / 2.0)
    return smallest * (last + (_COMPONENTS - last) * share)


@lru_cache(maxsize=256)
def _curve(n: int, draws: int | None) -> tuple[Floats, Floats]:
    """Logarithms of the levels, increasing, and of the p-values there."""
    sizes = np.log(SIZES)
    at_n = np.apply_along_axis(lambda column: np.interp(np.log(n), sizes, column), 1, _table())
    # 1 / (draws + 1), from the continuum's zero up to two draws.
    cell = np.array([0.0, *(1.0 / (m + 1.0) for m in reversed(DRAWS))])
    here = 0.0 if draws is None else 1.0 / (draws + 1.0)
    factors = np.array([np.interp(here, cell, column) for column in at_n[::-1].T])
    levels = np.array(LEVELS[::-1])
    pvalues = np.minimum(1.0, np.append(factors[::-1], 1.0) * levels)
    return np.log(levels), np.log(np.maximum.accumulate(pvalues))


@lru_cache(maxsize=1)
def _table() -> Floats:
    """Factors by draws (the continuum last), size and level (without 1, decreasing)."""
    text = resources.files(__package__).joinpath("multiplicity.csv").read_text("utf-8")
    rows = np.loadtxt(text.splitlines(), delimiter=",")
    return rows[:, 2:].reshape(len(DRAWS) + 1, len(SIZES), len(LEVELS) - 1)
