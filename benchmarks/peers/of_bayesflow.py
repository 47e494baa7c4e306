"""bayesflow: log gamma of ranks, whose values below 0 reject at 5 %, and its picture with a simultaneous band."""

from __future__ import annotations

from typing import Any

import numpy as np
from bayesflow.diagnostics import metrics, plots
from bayesflow.utils.ecdf import simultaneous_ecdf_bands

PACKAGES = ("bayesflow", "numpy")


def log_gamma(theta: Any, draws: Any) -> tuple[float, float]:
    found = metrics.calibration_log_gamma(draws, theta)["values"]
    # It is a threshold and no p-value: 0.04 or 1 say on which side; several parameters are not corrected for.
    return -float(found.min()), 0.04 if found.min() < 0 else 1.0


def band(ranks: Any) -> Any:
    return simultaneous_ecdf_bands(len(ranks))


def check(data: tuple[Any, Any]) -> Any:
    return log_gamma(*data)


def says(theta: Any, draws: Any) -> str:
    found = metrics.calibration_log_gamma(draws, theta)
    return f"{found['metric_name']} = {np.round(found['values'], 2)}"


def draw(theta: Any, draws: Any, path: str) -> None:
    plots.calibration_ecdf(draws, theta, variable_names=["theta0", "theta1"]).savefig(path)


TESTS = {"bayesflow log gamma": log_gamma}
COSTS = {"band": band, "check": check}
