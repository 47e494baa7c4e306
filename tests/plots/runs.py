"""Replicates with given positions and rows with given numbers, for tests that read back what was drawn."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ringtrue.functions import Level
from ringtrue.replicates.record import Column, Failure, Replicates
from ringtrue.statistics.effects import Interval

Floats = NDArray[np.float64]


def replicates(
    u: Any,
    *,
    rank: Any = None,
    draws: Any = None,
    names: list[str] | None = None,
    levels: list[Level] | None = None,
    lost: tuple[int, ...] = (),
    **known: Any,
) -> Replicates:
    """Return replicates with these positions, a column per test function; what is not given is not known."""
    u = np.array(u, float).reshape(len(u), -1)
    n, k = u.shape
    arrays: dict[str, Any] = {
        name: np.full((n, k), np.nan) for name in ("weak_u", "weak_z", "weak_value", "truth", "mean", "sd")
    }
    arrays |= {name: np.full((n, k), np.nan) for name in ("crps", "interval")}
    arrays |= {name: np.array(value, float).reshape(n, k) for name, value in known.items() if name != "reference"}
    arrays["z"] = special.ndtri(u)
    arrays |= {"energy": np.full(n, np.nan), "belief_energy": np.full(n, np.nan)}
    for values in (u, *arrays.values()):
        values[list(lost)] = np.nan
    usual: list[Level] = ["strong"] * k
    columns = zip(names or [f"f{j}" for j in range(k)], levels or usual, strict=True)
    return Replicates(
        tuple(Column(name, level, True) for name, level in columns),
        u=u,
        rank=np.full((n, k), -1) if rank is None else np.array(rank, np.int64).reshape(n, k),
        draws=np.zeros((n, k), np.int64) if draws is None else np.broadcast_to(draws, (n, k)).astype(np.int64),
        reference=np.array(known.get("reference", np.empty((0, k))), float).reshape(-1, k),
        failures=tuple(Failure(i, "procedure", "ValueError: no", "") for i in lost),
        **arrays,
    )


def ranked(rank: Any, draws: int, **known: Any) -> Replicates:
    """Return replicates with these ranks, spread over their cells at random."""
    rank = np.array(rank, np.int64).reshape(len(rank), -1)
    u = (rank + np.random.default_rng(0).random(rank.shape)) / (draws + 1)
    return replicates(u, rank=rank, draws=draws, **known)


def grid(n: int, *, spread: float = 1.0, bias: float = 0.0) -> Floats:
    """Return u at the quantiles of z ~ N(bias, spread^2): the law itself, without noise."""
    return np.asarray(special.ndtr(bias + spread * special.ndtri((np.arange(n) + 0.5) / n)))


def complete(n: int, k: int = 1, **settings: Any) -> Replicates:
    """Return calibrated replicates of the normal mean, with everything known, k times."""
    rng = np.random.default_rng(7)
    mean, sd = rng.normal(0, 0.5**0.5, (n, k)), np.full((n, k), 0.5**0.5)
    z, drawn = rng.normal(size=(n, k)), mean + sd * rng.normal(size=(n, k))
    known = {"truth": mean + sd * z, "mean": mean, "sd": sd, "weak_value": drawn, "crps": np.abs(z)}
    known |= {"weak_u": special.ndtr(drawn), "weak_z": drawn, "reference": rng.normal(size=(n, k))}
    return replicates(special.ndtr(z), **{**known, **settings})


#: Rows as comparisons have them.
ROWS = [
    Interval("spread", 1.01, 0.9, 1.1, 1.0, f="theta", of="Bayes"),
    Interval("spread", 1.4, 1.3, 1.5, 1.0, f="theta", of="narrow"),
    Interval("spread", math.nan, 0.0, math.inf, 1.0, f="theta", of="none"),
    Interval("crps", 0.4, 0.38, 0.42, f="theta", of="Bayes"),
]


def drawn(ax: Any, label: str) -> list[tuple[list[float], list[float]]]:
    """Return the coordinates of all lines with this label."""
    found = [one for one in ax.lines if one.get_label() == label]
    return [(list(map(float, one.get_xdata())), list(map(float, one.get_ydata()))) for one in found]


def line(ax: Any, label: str) -> Any:
    """Return the coordinates of the line with this label."""
    (one,) = [one for one in ax.lines if one.get_label() == label]
    return np.asarray(one.get_xdata()), np.asarray(one.get_ydata())
