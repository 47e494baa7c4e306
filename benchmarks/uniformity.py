"""Uniformity tests against their peers: ratios of best times in the same run.

Run with ``python -m benchmarks.uniformity``. Peers that are not installed are quoted instead.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from ringtrue.statistics import uniformity


def best(call: Callable[[], Any], repeat: int = 5) -> float:
    """Seconds of the fastest of several calls, each without what earlier ones cached."""
    times = []
    for _ in range(repeat):
        forget()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def forget() -> None:
    for name in ("_critical_gamma", "_gamma_tail", "_gamma_bounds"):
        getattr(uniformity.ecdf, name).cache_clear()


def report(label: str, ours: float, target: str) -> None:
    print(f"{label:58s} {1e3 * ours:9.1f} ms   target {target}")


def against_scipy(label: str, u: Any) -> None:
    ours, theirs = best(lambda: uniformity.ks(u)), best(lambda: stats.kstest(u, "uniform"), 3)
    print(f"{label:58s} {1e3 * ours:9.1f} ms   scipy {1e3 * theirs:.1f} ms   ratio {theirs / ours:.1f} (target 4)")


def band_and_pvalue(ranks: Any) -> None:
    uniformity.band(ranks.size, draws=1000)
    uniformity.ecdf_gamma(ranks, draws=1000)


def against_arviz(ranks: Any) -> None:
    try:
        ecdf = importlib.import_module("arviz_stats.ecdf_utils")
    except ImportError:
        print("  arviz-plots 1.3 is not installed; it takes 60 ms for a band without a p-value, bayesflow 20 s")
        return
    points = np.arange(1, 1001) / 1001
    theirs = best(lambda: ecdf.ecdf_pit((ranks + 0.5) / 1001, ci_prob=0.95, n_points=points.size), 3)
    print(f"  arviz-stats: {1e3 * theirs:.1f} ms")


def main() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=10**6)
    u = special.ndtr(z)
    against_scipy("ks, n = 10^6, calibrated", u)
    against_scipy("ks, n = 10^6, 1 % off", u**1.01)
    against_scipy("ks, n = 10^6, badly off", u**2)
    ranks = rng.integers(0, 1001, 10**4)
    report("95 % band and exact p-value, n = 10^4, 1000 draws", best(lambda: band_and_pvalue(ranks)), "120 ms")
    against_arviz(ranks)
    sort = best(lambda: np.sort(u))
    gamma = best(lambda: uniformity.ecdf_gamma(u))
    report("ecdf_gamma, n = 10^6, beyond the sort", gamma - sort, "60 ms")
    report("combination with z, n = 10^6", best(lambda: uniformity.combination(u, z=z)), "150 ms")
    report("combination without z, n = 10^6", best(lambda: uniformity.combination(u)), "-")
    report("combination, n = 10^4, 999 draws", best(lambda: uniformity.combination(ranks, draws=1000)), "-")


if __name__ == "__main__":
    main()
