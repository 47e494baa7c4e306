"""How many replicates a run takes that goes on until it is decided: simulated, since it has no closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..arguments import Floats, Ints, need_count, need_fraction, need_number
from ..effects import rank_efficiency
from ..effects.ranks import MOST_CELLS
from .eprocess import Process, Ranks, Scores, follow, looks_up_to
from .sequences import level

#: Runs that are simulated; the mean of their lengths is then known to about a tenth.
_RUNS = 100
#: Numbers of one simulated run, at most.
_MOST_NUMBERS = 5_000_000
#: An error is clearly too large if an interval for this look says so, each end of which is missed with this share of
#: alpha. It guards against calling small errors, of which there is evidence in the end, and not against false alarms.
#: Of 300 runs with a spread of 1.05, or a bias of 0.05 sd, 3.3 and 5.3 % were called. With a spread of 1.41 runs
#: stopped at 45 replicates on average, where evidence alone would have stopped them at 39, and intervals that hold at
#: all looks at 92.
CLEARLY = 0.2
#: Sizes are certified from here on.
CERTIFIED = 100


def next_look(n: int, unit: int = 1) -> int:
    """Return after how many replicates to look next for a verdict, whole groups of them.

    Every five up to a hundred, every ten up to two hundred, then every twentieth part more, from two thousand on every
    tenth, and from ten thousand on every quarter.

    Examples
    --------
    >>> next_look(0), next_look(40), next_look(100), next_look(1000), next_look(20_000)
    (5, 45, 110, 1050, 25000)
    """
    groups = n // unit
    if groups < 200:
        return unit * (groups + (5 if groups < 100 else 10))
    return unit * (groups + groups // (20 if groups < 2000 else 10 if groups < 10_000 else 4))


@dataclass(frozen=True)
class Expected:
    """How long runs are that go on until they are decided, and how they end.

    ``n`` is the mean number of replicates, ``median`` and ``most`` those that half of the runs and nine in ten stay
    below; ``within``, ``miscalibrated`` and ``undecided`` are shares of runs.
    """

    n: int
    median: int
    most: int
    within: float
    miscalibrated: float
    undecided: float

    def __str__(self) -> str:
        shares = {
            "within tolerance": self.within,
            "miscalibrated": self.miscalibrated,
            "undecided": self.undecided,
        }
        ends = ", ".join(f"{100 * share:.0f} % {name}" for name, share in shares.items() if share)
        return (
            f"decided after about {self.n} replicates on average (half of the runs by {self.median}, nine in ten by "
            f"{self.most}): {ends}"
        )


def expected_n(
    *,
    share: float,
    spread: float = 1.0,
    bias: float = 0.0,
    draws: int | None = None,
    parameters: int = 1,
    alpha: float = 0.05,
    tolerance: tuple[float, float, float] = (0.1, 0.1, 0.05),
    max_n: int = 5000,
) -> Expected:
    """Simulate runs that go on until they are decided.

    Parameters
    ----------
    share : float
        What one parameter has of the evidence.
    spread, bias : float
        The error of one parameter; the others are right.
    draws : int, optional
        Draws that each truth is ranked among; None if u is exact.
    parameters : int
        Parameters asked about, taken as independent.
    alpha : float
        Of evidence, and of certificates.
    tolerance : tuple of float
        On spread, bias and coverage.
    max_n : int
        The most replicates.

    Examples
    --------
    >>> found = expected_n(share=0.72, spread=2.0)
    >>> 5 <= found.n <= 60, found.miscalibrated
    (True, 1.0)
    """
    need_number(spread=spread, bias=bias)
    need_fraction(alpha=alpha)
    need_count(1, _MOST_NUMBERS // 5000, parameters=parameters)
    need_count(1, _MOST_NUMBERS // int(parameters), max_n=max_n)
    if draws is not None:
        need_count(1, draws=draws)
        # So many draws say where u lies as well as u itself does.
        draws = None if draws > MOST_CELLS else int(draws)
    rng = np.random.default_rng(0)
    ends = []
    for _ in range(_RUNS):
        z = rng.normal(size=(parameters, max_n))
        z[0] = bias + spread * z[0]
        ranks = None if draws is None else rng.binomial(draws, special.ndtr(z))
        ends.append(_end(z, ranks, draws, share, alpha, tolerance))
    n = np.array([stop for stop, _ in ends])
    said = [verdict for _, verdict in ends]
    shares = (said.count(one) / _RUNS for one in ("within", "miscalibrated", ""))
    return Expected(round(float(n.mean())), int(np.median(n)), int(np.quantile(n, 0.9)), *shares)


def _end(
    z: Floats, ranks: Ints | None, draws: int | None, share: float, alpha: float, tolerance: tuple[float, float, float]
) -> tuple[int, str]:
    """Return where a run stops, and how."""
    k, most = z.shape
    processes: list[Process] = (
        [Scores(row) for row in z] if ranks is None else [Ranks(row, draws or 1) for row in ranks]
    )
    looks = looks_up_to(most)
    found = follow(processes, looks=looks)
    reached = np.maximum.accumulate(found.log_evalues) + math.log(share * k) >= -math.log(alpha)
    kept = (1.0, 1.0)
    if draws is not None:
        efficiency = rank_efficiency(draws)
        kept = (efficiency.spread, efficiency.bias)
    n = next_look(0)
    while n <= most:
        evident = bool(reached[np.searchsorted(looks, n, side="right") - 1])
        if evident and any(_too_large(row, n, kept, tolerance, CLEARLY * alpha) for row in z):
            return n, "miscalibrated"
        if n >= CERTIFIED and all(_small(row, n, kept, tolerance, level(n, alpha)) for row in z):
            return n, "within"
        n = next_look(n)
    return most, ""


def _sizes(z: Floats, n: int, kept: tuple[float, float]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return log spread and bias, each with its standard error; ranks count as fewer exact scores."""
    s, b = (max(int(n * one), 2) for one in kept)
    return (float(np.log(z[:s].std())), math.sqrt(0.5 / s)), (float(z[:b].mean()), float(z[:b].std()) / math.sqrt(b))


def _too_large(z: Floats, n: int, kept: tuple[float, float], tolerance: tuple[float, float, float], at: float) -> bool:
    reach, limits = -float(special.ndtri(at)), (math.log1p(tolerance[0]), tolerance[1])
    pairs = zip(_sizes(z, n, kept), limits, strict=True)
    return any(abs(size) > limit and abs(size) - reach * error > 2 / 3 * limit for (size, error), limit in pairs)


def _small(z: Floats, n: int, kept: tuple[float, float], tolerance: tuple[float, float, float], at: float) -> bool:
    reach, limits = -float(special.ndtri(at)), (math.log1p(tolerance[0]), tolerance[1])
    share = float(np.mean(np.abs(z[:n]) <= special.ndtri(0.95)))
    pairs = zip(_sizes(z, n, kept), limits, strict=True)
    covers = abs(share - 0.9) + reach * 0.3 / math.sqrt(n) <= tolerance[2]
    return covers and all(abs(size) + reach * error <= limit for (size, error), limit in pairs)
