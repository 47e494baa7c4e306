"""arviz-plots: its picture of positions, and the test that the picture prints (``pot_c``)."""

from __future__ import annotations

from typing import Any

import arviz_plots
import numpy as np
from arviz_base import from_dict
from arviz_stats import ecdf_utils

PACKAGES = ("arviz-plots", "arviz-stats", "numpy")
#: Releases for Python 3.11 have no test of uniformity.
TESTED = arviz_plots.__version__ >= "1"


def positions(theta: Any, draws: Any, within: Any = 0.5) -> Any:
    """Return ranks as numbers between 0 and 1, in the middles of their cells or elsewhere."""
    u = ((draws < theta[:, None]).sum(axis=1) + within) / (draws.shape[1] + 1)
    return from_dict({"prior_sbc": {f"theta{j}": u[None, :, j] for j in range(u.shape[1])}})


def pvalues(found: Any) -> Any:
    return found["prior_sbc"].to_dataset().azstats.uniformity_test(method="pot_c")[0]


def least(p: Any) -> tuple[float, float]:
    value = min(float(p[name]) for name in p)
    return -value, min(1.0, value * len(p))


def pot_c(theta: Any, draws: Any) -> tuple[float, float]:
    return least(pvalues(positions(theta, draws)))


def pot_c_spread(theta: Any, draws: Any) -> tuple[float, float]:
    """Return the same of ranks that are spread over their cells: the test is one of continuous numbers."""
    return least(pvalues(positions(theta, draws, np.random.default_rng().random(theta.shape))))


def check(data: tuple[Any, Any]) -> Any:
    return pot_c(*data)


def band(ranks: Any) -> Any:
    return ecdf_utils.ecdf_pit((ranks + 0.5) / 101, 0.95, n_simulations=1000)


def says(theta: Any, draws: Any) -> str:
    found = pvalues(positions(theta, draws))
    return ", ".join(f"{name}: p={float(found[name]):.4f}" for name in found)


def draw(theta: Any, draws: Any, path: str) -> None:
    arviz_plots.plot_ecdf_pit(positions(theta, draws)).savefig(path)


TESTS = {"arviz-plots pot_c": pot_c, "arviz-plots pot_c, spread": pot_c_spread} if TESTED else {}
COSTS = {"band": band, "check": check}
