"""hyppo: MMD of the truths against one draw of each output."""

from __future__ import annotations

import time
from typing import Any

from hyppo.ksample import MMD

PACKAGES = ("hyppo", "numpy")
#: Matrices of all pairs: beyond this a run takes gigabytes and minutes.
LARGEST = 1000


def one_draw(theta: Any, draws: Any) -> tuple[float, float]:
    found = MMD().test(theta, draws[:, 0])
    return -float(found.pvalue), float(found.pvalue)


def joint(data: tuple[Any, Any]) -> Any:
    return one_draw(*data)


def mmd(data: tuple[Any, Any]) -> float:
    """Return seconds of 1000 permutations, in proportion from 1 and 5: all of them take minutes."""
    spent = []
    for reps in (1, 1, 5):  # the first also compiles
        start = time.process_time()
        MMD().test(*data, reps=reps, auto=False)
        spent.append(time.process_time() - start)
    return spent[1] + (spent[2] - spent[1]) / 4 * 999


def says(theta: Any, draws: Any) -> str:
    return str(MMD().test(theta, draws[:, 0]))


TESTS = {"hyppo MMD, one draw": one_draw}
COSTS = {"joint": joint, "mmd": mmd}
