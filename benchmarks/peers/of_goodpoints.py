"""goodpoints: the compressed MMD test of the truths against one draw of each output."""

from __future__ import annotations

from typing import Any

import numpy as np
from goodpoints.ctt import ctt

PACKAGES = ("goodpoints", "numpy")
#: The one argument without a default: how much is kept; 4 is what its examples take.
LEVEL = 4


def one_draw(theta: Any, draws: Any) -> tuple[float, float]:
    found = ctt(theta, np.ascontiguousarray(draws[:, 0]), LEVEL)
    # The values come back in another order; the statistic itself is one of them.
    p = float(np.mean(found.estimator_values >= found.statistic_values))
    return -p, p


def mmd(data: tuple[Any, Any]) -> Any:
    return ctt(*data, LEVEL, B=1000)


def says(theta: Any, draws: Any) -> str:
    return f"rejects = {ctt(theta, np.ascontiguousarray(draws[:, 0]), LEVEL).rejects}"


TESTS = {"goodpoints CTT, one draw": one_draw}
COSTS = {"mmd": mmd}
