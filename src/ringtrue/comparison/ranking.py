"""Who is ahead: divergences from calibration, and what the intervals say of their differences.

It reads rows and differences, and must not know where they come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..statistics.effects import Interval

Floats = NDArray[np.float64]

#: What the paired difference that decides is called.
DIVERGENCE = "divergence"
#: Differences of calibration; those of scores are also of use.
CALIBRATION = ("log spread", "bias", "coverage", DIVERGENCE)


def of_spread(log: Any) -> Any:
    """Return the divergence of N(0, s^2) from N(0, 1), given log s."""
    with np.errstate(over="ignore", invalid="ignore"):
        # expm1 loses fewer digits near s = 1 than s^2 - 1 would; at an infinite spread inf - inf would be nan.
        return np.where(np.isinf(log), np.inf, 0.5 * np.expm1(2 * np.asarray(log)) - log)


def of_bias(bias: Any) -> Any:
    """Return the divergence of N(b, 1) from N(0, 1)."""
    return 0.5 * np.square(bias)


def of_value(measure: str, value: float) -> float:
    """Return the divergence that one spread or bias adds."""
    if measure == "bias":
        return float(of_bias(value))
    return float(of_spread(math.log(value) if value else -math.inf))


def divergence(rows: Iterable[Interval], name: str) -> float:
    """Return the divergence of a procedure, averaged over test functions; infinite if one of its parts is."""
    parts = [
        (row.f, of_value(row.name, row.estimate)) for row in rows if row.of == name and row.name in ("spread", "bias")
    ]
    sizes = [size for _, size in parts]
    # Asked for by itself, since a nan of another part would swallow it in the sum.
    return math.inf if math.inf in sizes else sum(sizes) / len({f for f, _ in parts})


def best_of(names: Sequence[str], rows: Sequence[Interval], gaps: Sequence[Interval]) -> tuple[str, ...]:
    """Return those that nobody is ahead of for sure."""
    return tuple(name for name in names if not any(_ahead(other, name, rows, gaps) for other in names if other != name))


def _ahead(a: str, b: str, rows: Sequence[Interval], gaps: Sequence[Interval]) -> bool:
    """Whether a's divergence is smaller than b's for sure, by their paired difference or by their rows alone."""
    # Far out a divergence is hardly known where rows leave no doubt of which is larger; each has its share of error.
    paired, alone = _ahead_paired(a, b, gaps), _ahead_alone(a, b, rows)
    # Each misses now and then: if they contradict each other nothing is sure.
    return (paired and not _ahead_alone(b, a, rows)) or (alone and not _ahead_paired(b, a, gaps))


def _ahead_paired(a: str, b: str, gaps: Sequence[Interval]) -> bool:
    """Whether the interval of the paired difference says so."""
    ends = {row.of: (row.low, row.high) for row in gaps if row.name == DIVERGENCE}
    return ends.get((a, b), (0.0, 0.0))[1] < 0 or ends.get((b, a), (0.0, 0.0))[0] > 0


def apart(gaps: Sequence[Interval]) -> tuple[tuple[str, str], ...]:
    """Return the pairs whose calibration differs for sure, in spread, bias, coverage or divergence."""
    return tuple(dict.fromkeys(row.of for row in gaps if row.name in CALIBRATION and row.clear))


def _ahead_alone(a: str, b: str, rows: Sequence[Interval]) -> bool:
    """Whether a's divergence is smaller than b's for all spreads and biases that the intervals of both allow."""
    least = 0.0
    for f in dict.fromkeys(row.f for row in rows if row.name == "spread"):
        most, sure = 0.0, 0.0
        for measure, of in (("spread", of_spread), ("bias", of_bias)):
            mine, others = (_ends(_row(rows, name, f, measure)) for name in (a, b))
            # Whoever may be arbitrarily far off is ahead of nobody for sure.
            if not np.isfinite(mine).all():
                return False
            most += float(of(mine).max())
            # A divergence is least at 0 and grows to either side.
            sure += float(of(np.clip(0.0, *others)))
        # Both bound the same divergence from below, so that the larger does.
        least += max(sure, _by_coverage(_row(rows, b, f, "coverage"))) - most
    return least > 0


def _row(rows: Sequence[Interval], name: str, f: str, measure: str) -> Interval:
    return next(row for row in rows if (row.of, row.f, row.name) == (name, f, measure))


def _ends(row: Interval) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log([row.low, row.high]) if row.name == "spread" else np.array([row.low, row.high])


def _by_coverage(row: Interval) -> float:
    """Return the least divergence that too small a coverage leaves possible: all there is where spread is unbounded.

    Whether the truth lies in the central interval is a function of z: if z is normal, its law diverges from the nominal
    one by no more than z does. And by Chebyshev E z^2 is at least q^2 times the share outside (-q, q), whatever the law
    of z. The smaller of the two holds for ranks, whose z is taken as normal, and for the moments of exact z.
    """
    nearest = min(row.ideal, row.high)
    square = float(special.ndtri(0.5 + row.ideal / 2)) ** 2 * (1 - nearest)
    apart = special.rel_entr(nearest, row.ideal) + special.rel_entr(1 - nearest, 1 - row.ideal)
    return min(float(apart), float(of_spread(0.5 * math.log(max(square, 1.0)))))
