"""tarp: coverage of balls around random points. It returns a curve and no p-value."""

from __future__ import annotations

from typing import Any

import numpy as np
import tarp

PACKAGES = ("tarp", "numpy")


def coverage(theta: Any, draws: Any) -> tuple[float, float]:
    ecp, alpha = tarp.get_tarp_coverage(np.swapaxes(draws, 0, 1), theta)
    return float(np.abs(ecp - alpha).max()), float("nan")


def joint(data: tuple[Any, Any]) -> Any:
    return coverage(*data)


def says(theta: Any, draws: Any) -> str:
    ecp, alpha = tarp.get_tarp_coverage(np.swapaxes(draws, 0, 1), theta)
    return f"ecp = {np.round(ecp[::10], 2)} at alpha = {np.round(alpha[::10], 2)}"


TESTS = {"tarp": coverage}
COSTS = {"joint": joint}
