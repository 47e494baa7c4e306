"""SciPy's Kolmogorov-Smirnov test, of u and of ranks at the middles of their cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

PACKAGES = ("scipy", "numpy")


def kstest_of_ranks(theta: Any, draws: Any) -> tuple[float, float]:
    u = ((draws < theta[:, None]).sum(axis=1) + 0.5) / (draws.shape[1] + 1)
    p = min(stats.kstest(column, "uniform").pvalue for column in u.T)
    return -p, min(1.0, p * u.shape[1])


def ks(u: Any) -> Any:
    return stats.kstest(u, "uniform")


def check(data: tuple[Any, Any]) -> Any:
    return kstest_of_ranks(*data)


def says(theta: Any, draws: Any) -> str:
    u = ((draws < theta[:, None]).sum(axis=1) + 0.5) / (draws.shape[1] + 1)
    return str(np.round([stats.kstest(column, "uniform").pvalue for column in u.T], 4))


TESTS = {"scipy kstest of ranks": kstest_of_ranks}
COSTS = {"ks": ks, "check": check}
