"""Every plot of a million replicates, drawn and saved, against the stated limit of one second.

Run with ``python -m benchmarks.plots``. The first call of all pays for importing matplotlib and is not counted.
"""

import io
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from ringtrue import judge, plots
from ringtrue.replicates.record import Asked, Header, Replicates
from ringtrue.statistics import uniformity

N = 10**6
LIMIT = 1.0
DRAWN = (
    "recovery",
    "coverage_difference",
    "pit_histogram",
    "ecdf",
    "ecdf_difference",
    "coverage_curve",
    "z_contraction",
    "data_averaged",
    "coverage_map",
)


def million(draws: int | None, n: int = N) -> Replicates:
    """A calibrated run with everything known: theta ~ N(0, 1), y = theta + N(0, 1), output N(y / 2, 1 / 2)."""
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(0, 0.5**0.5, n), np.full(n, 0.5**0.5)
    z = rng.normal(size=n)
    drawn = mean + sd * rng.normal(size=n)
    u, rank, many = special.ndtr(z), np.full(n, -1), np.zeros(n, np.int64)
    if draws is not None:
        rank, many = rng.binomial(draws, u), np.full(n, draws)
        u = (rank + rng.random(n)) / (draws + 1)
    known = {"u": u, "z": special.ndtri(u), "rank": rank, "draws": many, "truth": mean + sd * z, "mean": mean, "sd": sd}
    known |= {"weak_u": special.ndtr(drawn), "weak_z": drawn, "weak_value": drawn, "crps": np.abs(z)}
    known |= {"interval": np.abs(z)}
    whole = {name: column[:, None] for name, column in known.items()}
    whole |= {"energy": np.full(n, np.nan), "belief_energy": np.full(n, np.nan), "treated": np.zeros(n, np.int64)}
    header = Header((Asked("theta", "coordinate", "theta"),))
    return Replicates(header, whole, reference=rng.normal(size=(n, 1)))


def seconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Times of drawing and of saving as PNG, without what earlier calls cached."""
    import matplotlib.pyplot as plt

    for name in ("_critical_gamma", "_gamma_tail", "_gamma_bounds"):
        getattr(uniformity.ecdf, name).cache_clear()
    start = time.perf_counter()
    drawn = call()
    middle = time.perf_counter()
    figure = drawn if hasattr(drawn, "savefig") else np.ravel(np.array(drawn, object))[0].figure
    figure.savefig(io.BytesIO(), dpi=100)
    end = time.perf_counter()
    plt.close("all")
    return middle - start, end - middle


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    seconds(lambda: plots.ecdf(million(19, 100)))
    for draws in (None, 19, 999):
        measure(million(draws), "exact" if draws is None else f"M = {draws}")


def measure(ran: Replicates, route: str) -> None:
    for name in DRAWN:
        draw = getattr(plots, name)
        report(f"{name}, {route}", *seconds(partial(draw, ran)))
    report(f"reading, {route}", _timed(lambda: plots.reading(ran)), 0.0)
    result = judge(ran)
    report(f"plot, {route} (four pictures)", *seconds(lambda: plots.plot(result)))


def _timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def report(label: str, drawing: float, saving: float) -> None:
    verdict = "" if drawing + saving < LIMIT else "   above the limit"
    print(f"{label:42s} drawn in {drawing:5.2f} s, saved in {saving:5.2f} s   (limit {LIMIT:g} s together){verdict}")


if __name__ == "__main__":
    main()
