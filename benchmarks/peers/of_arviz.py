"""arviz-plots: its picture of positions, and the test that the picture prints (``pot_c``)."""

from __future__ import annotations

from typing import Any

import arviz_plots
from arviz_base import from_dict
from arviz_stats import ecdf_utils

PACKAGES = ("arviz-plots", "arviz-stats", "numpy")
#: Releases for Python 3.11 have no test of uniformity.
TESTED = arviz_plots.__version__ >= "1"


def positions(theta: Any, draws: Any) -> Any:
    u = ((draws < theta[:, None]).sum(axis=1) + 0.5) / (draws.shape[1] + 1)
    return from_dict({"prior_sbc": {f"theta{j}": u[None, :, j] for j in range(u.shape[1])}})


def pot_c(theta: Any, draws: Any) -> tuple[float, float]:
    found = positions(theta, draws)["prior_sbc"].to_dataset().azstats.uniformity_test(method="pot_c")[0]
    p = min(float(found[name]) for name in found)
    return -p, min(1.0, p * len(found))


def band(ranks: Any) -> Any:
    return ecdf_utils.ecdf_pit((ranks + 0.5) / 101, 0.95, n_simulations=1000)


def says(theta: Any, draws: Any) -> str:
    found = positions(theta, draws)["prior_sbc"].to_dataset().azstats.uniformity_test(method="pot_c")[0]
    return ", ".join(f"{name}: p={float(found[name]):.4f}" for name in found)


def draw(theta: Any, draws: Any, path: str) -> None:
    arviz_plots.plot_ecdf_pit(positions(theta, draws)).savefig(path)


TESTS = {"arviz-plots pot_c": pot_c} if TESTED else {}
COSTS = {"band": band}
