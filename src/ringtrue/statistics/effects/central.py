"""How often central intervals contain the truth."""

import math

import numpy as np
from numpy.typing import ArrayLike

from .inputs import as_counts, as_values, check_level
from .measure import Measure, clopper_pearson


def coverage(
    values: ArrayLike, *, draws: int | None = None, nominal: float = 0.9, level: float = 0.95, lost: int = 0
) -> Measure:
    """Estimate how often the central interval of the output contains the truth.

    The interval is Clopper and Pearson's: it covers at least `level`, at every n. A nominal 95 % interval was measured,
    as for ``wasserstein``, to cover 0.93 to 0.97. Coverage cannot see a bias that a larger
    spread compensates, nor anything inside or outside the one interval.

    Parameters
    ----------
    values : array_like, shape (n,)
        u in [0, 1]; with `draws`, integer ranks in {0, ..., draws}.
    draws : int, optional
        The number of draws M. The interval then excludes the k lowest and k highest of the M + 1 ranks, k >= 1
        chosen so that its level is nearest to `nominal`. M = 1 has no such interval: nan in [0, 1].
    nominal : float
        Probability that the output gives to its central interval.
    level : float
        Confidence level of the reported interval.
    lost : int
        Replicates of unknown value: the interval holds whether they were all hits or all misses.

    Returns
    -------
    Measure
        Named "coverage"; ``ideal`` is the nominal level actually used.

    Examples
    --------
    >>> print(coverage((np.arange(100) + 0.5) / 100))
    coverage 0.9 (0.824 to 0.951; ideal 0.9)
    """
    check_level(level, lost)
    if not 0 < nominal < 1:
        raise ValueError(f"nominal must lie strictly between 0 and 1, got {nominal}; for 90 % pass 0.9")
    if draws is None:
        u = as_values(values, "u")
        n, hits = u.size, int(np.count_nonzero((u >= 0.5 - nominal / 2) & (u <= 0.5 + nominal / 2)))
    else:
        counts = as_counts(values, draws)
        if draws == 1:
            return Measure("coverage", math.nan, 0.0, 1.0, nominal)
        k = min(max(1, round((draws + 1) * (1 - nominal) / 2)), draws // 2)
        nominal = (draws + 1 - 2 * k) / (draws + 1)
        n, hits = int(counts.sum()), int(counts[k : draws + 1 - k].sum())
    low, high = clopper_pearson(hits, n, level, lost)
    return Measure("coverage", hits / n, low, high, nominal)
