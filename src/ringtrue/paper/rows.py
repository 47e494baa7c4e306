"""What vignettes do with the rows of their results: test, pick some, compare with the population, say numbers.

It knows no vignette and runs no study.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ..judgement.levels import TestRow, levels
from ..replicates.record import Replicates

#: What a vignette makes, and one row of it: JSON knows all of both.
Data = dict[str, Any]
Row = dict[str, Any]
#: Hands on the items of a loop, and shows how far it is.
Progress = Callable[[Iterable[Any]], Iterable[Any]]

#: By the Dvoretzky-Kiefer-Wolfowitz inequality a statistic is further than this over sqrt(n) from the population's
#: distance in one of 16,000 runs, as a normal number is beyond four standard deviations.
NOISE = 2.28


#: How arrays begin that are about how good outputs are and whether inputs are right: no test of a level reads them.
_UNTESTED = ("input/", "crps", "interval", "mean", "sd", "energy", "belief_energy")


def for_tests(replicates: Replicates) -> Replicates:
    """Return a record without what no test reads: a third of it, which is 70 MB of a million replicates."""
    arrays = {name: array for name, array in replicates.arrays.items() if not name.startswith(_UNTESTED)}
    return replace(replicates, arrays=arrays)


def first_test(replicates: Replicates, level: str, test: str = "combination") -> TestRow:
    """Return the first test of a level, as `judge` has it: that of the first test function, or of the best of them.

    A judgement makes sizes, a sentence and the tests of all levels besides, which takes several times as long.
    """
    found = levels()[level].evidence(replicates, test)
    if found is None or not found.rows:
        raise ValueError(f"replicates that can speak of the level {level} are needed, but these cannot.")
    return found.rows[0]


def chosen(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Return the rows with these entries.

    Examples
    --------
    >>> chosen([{"level": "strong", "p": 0.1}, {"level": "weak", "p": 0.2}], level="weak")
    [{'level': 'weak', 'p': 0.2}]
    """
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def column(rows: Iterable[Row], key: str) -> list[Any]:
    """Return one entry of every row."""
    return [row[key] for row in rows]


def agrees(row: Row) -> bool:
    """Whether the statistic differs from the population's distance by no more than sampling noise.

    Examples
    --------
    >>> agrees({"ks": 0.106, "reference": 0.105, "n": 10_000})
    True
    """
    return bool(abs(row["ks"] - row["reference"]) <= NOISE / math.sqrt(row["n"]))


def needed_by_ks(distance: float, gaps: Any = (1.0, -1.0)) -> int | None:
    """Return how many realisations the Kolmogorov test needs for 80 % power at 5 %; none suffice if calibrated.

    1.25 / D^2 where the law of u crosses the uniform one (errors of spread), 1.7 / D^2 where it lies on one side of it;
    ``gaps`` are differences of the two laws, left out for errors of spread.

    Examples
    --------
    >>> needed_by_ks(0.1), needed_by_ks(0.1, [0.0, 0.1])
    (125, 170)
    """
    if distance < 1e-6:
        return None
    # The usual bound, from the one point where the gap is largest, asks for 2.2 times as many where the laws cross:
    # there a test has two chances.
    crosses = min(np.max(gaps), -np.min(gaps)) > distance / 2
    return math.ceil((1.25 if crosses else 1.7) / distance**2)


def p_text(p: float) -> str:
    """Return a p-value with two figures; what is near the least number that a computer has is only bounded."""
    return "< 1e-300" if p < 1e-300 else f"{p:.2g}"


def about(n: float | None) -> str:
    """Return a number of replicates with two figures.

    Examples
    --------
    >>> about(31_415)
    '31,000'
    """
    return "not seen" if n is None else f"{float(f'{n:.1e}'):,.0f}"
