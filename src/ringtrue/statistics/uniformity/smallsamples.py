"""The laws of three quadratic statistics on the continuum, up to thirty values from a table.

The table ``smallsamples.csv`` next to this file was made by ``benchmarks/calibrate_small_samples.py``: 20 million null
samples per n down to p = 1e-3 (standard error 0.1 % of p at 5 %, 0.7 % at 1e-3), below an importance sample (another
one, and areas for two values, differed from it by up to 5 % of p down to 1e-5, and 13 % at 1e-6). It holds heights:
the square root of how far a statistic lies above its smallest possible value, in which the laws are smooth up to that
value. The module knows names of statistics and their limit laws as functions; it must not know samples.
"""

from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from ..arguments import Floats

METHODS = ("watson", "cramer_von_mises", "anderson_darling")
SIZES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30)
PROBABILITIES = (
    *(0.999, 0.99, 0.97, 0.94, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2),
    *(0.15, 0.12, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001, 3e-4, 1e-4, 1e-5, 1e-6),
)

Limit = Callable[[float, int], float]


def small_sample_tail(method: str, statistic: float, n: int, limit: Limit) -> float:
    """Return P(T >= statistic) for n values.

    Beyond thirty values, the limit law corrected by what the table says at thirty, which dies out as 1 / n. Below the
    table's last probability, 1e-6, p falls as the limit law does.

    Examples
    --------
    >>> round(small_sample_tail("cramer_von_mises", 1 / 12 + 0.4**2, 1, lambda x, n: 1.0), 12)
    0.2
    """
    if n == 1 or (n == 2 and method == "watson"):
        p = _closed_form(method, statistic, n)
    elif n > SIZES[-1]:
        p = _many_values(method, statistic, n, limit)
    else:
        p = _few_values(method, statistic, n, limit)
    return min(max(p, 0.0), 1.0)


def smallest_statistic(method: str, n: int) -> float:
    """Return the statistic of n values at (i - 1/2) / n, which no sample falls below."""
    if method != "anderson_darling":
        return 1.0 / (12.0 * n)
    odd = 2.0 * np.arange(1, n + 1) - 1.0
    # The two sums over log u and log(1 - u) are each other's mirror images.
    return float(-n - 2.0 * (odd @ np.log(odd / (2.0 * n))) / n)


def _closed_form(method: str, statistic: float, n: int) -> float:
    if method == "watson":
        # Of two values only their distance d counts, and the height is |d - 1/2| / sqrt(2); of one value nothing does.
        return 1.0 if n == 1 else 1.0 - 2.0 * (2.0 * max(statistic - 1.0 / 24.0, 0.0)) ** 0.5
    if method == "cramer_von_mises":
        return 1.0 - 2.0 * float(max(statistic - 1.0 / 12.0, 0.0) ** 0.5)
    product = min(np.exp(-1.0 - statistic), 0.25)  # u (1 - u)
    return float(4.0 * product / (1.0 + (1.0 - 4.0 * product) ** 0.5))


def _few_values(method: str, statistic: float, n: int, limit: Limit) -> float:
    smallest, heights = smallest_statistic(method, n), _heights(method, n)
    height = max(statistic - smallest, 0.0) ** 0.5
    if height > heights[-1]:
        return PROBABILITIES[-1] * limit(statistic, n) / limit(smallest + float(heights[-1]) ** 2, n)
    if height > heights[0]:
        return float(np.exp(-np.exp(_log_hazard(method, n)(np.log(height)))))
    # Near the smallest statistic 1 - p is the volume of a ball; on a circle one dimension, the rotation, has no say.
    return float(PROBABILITIES[0] ** (height / heights[0]) ** (n - (method == "watson")))


def _many_values(method: str, statistic: float, n: int, limit: Limit) -> float:
    last = SIZES[-1]
    p = limit(statistic, n)
    if p <= 0.0:
        return 0.0
    limits, ratios = _ratios(method, limit)
    return p * float(np.exp(last / n * np.interp(np.log(p), limits, ratios)))


@lru_cache(maxsize=8)
def _ratios(method: str, limit: Limit) -> tuple[Floats, Floats]:
    """Logarithms of the limit law, increasing, and of how much larger the law at thirty values is there."""
    statistics = smallest_statistic(method, SIZES[-1]) + _heights(method, SIZES[-1]) ** 2
    logs = np.log([limit(float(x), SIZES[-1]) for x in statistics])
    # Where the limit is 1 so is the law.
    return np.append(logs[::-1], 0.0), np.append((np.log(PROBABILITIES) - logs)[::-1], 0.0)


@lru_cache(maxsize=96)
def _log_hazard(method: str, n: int) -> Any:
    """log(-log p) as a monotone function of the log height: nearly a line both near p = 1 and in the tail."""
    from scipy.interpolate import PchipInterpolator  # importing it takes 0.2 s, and large samples need it not

    # A bounded statistic reaches its last digits before p = 1e-6: of equal heights the first has the largest p.
    heights, first = np.unique(_heights(method, n), return_index=True)
    return PchipInterpolator(np.log(heights), np.log(-np.log(PROBABILITIES))[first])


def _heights(method: str, n: int) -> Floats:
    """The table's row for n, or one between its neighbours, linear in 1 / n."""
    above = int(np.searchsorted(SIZES, n))
    row = _table()[METHODS.index(method)]
    if SIZES[above] == n:
        return np.asarray(row[above])
    a, b = 1.0 / SIZES[above - 1], 1.0 / SIZES[above]
    share = (a - 1.0 / n) / (a - b)
    return np.asarray((1.0 - share) * row[above - 1] + share * row[above])


@lru_cache(maxsize=1)
def _table() -> Floats:
    """Heights by method, size and probability."""
    text = resources.files(__package__).joinpath("smallsamples.csv").read_text("utf-8")
    rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")]
    at = {(row[0], int(row[1])): [float(x) for x in row[2:]] for row in rows}
    return np.array([[at[method, n] for n in SIZES] for method in METHODS])
