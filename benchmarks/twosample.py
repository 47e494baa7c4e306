"""Two-sample tests: time against hyppo and scipy, and peak memory, all measured in this run.

Run ``python -m benchmarks.twosample``, with hyppo installed for a measured ratio.
"""

import subprocess
import sys
import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np
from scipy import stats

from ringtrue.statistics.exchange import label_randomised
from ringtrue.statistics.twosample import energy, ks, mmd

MEMORY = """
import resource
import numpy as np
from ringtrue.statistics.twosample import mmd
rng = np.random.default_rng(0)
mmd(rng.normal(size=5000), rng.normal(size=5000), rng=rng, permutations=999)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

# What hyppo took for 1000 permutations at n = 1000 on a machine of two cores, when it is not here to be timed.
HYPPO_SECONDS = 300.0


def best(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest of several wall-clock times, after one run that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def memory() -> None:
    # Run before this process grows, since a child starts with the peak its parent had.
    output = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout
    print(f"mmd n = 5000 per sample, 999 permutations: peak {int(output) / 1024:.0f} MB, imports included")


def hyppo_seconds(x: np.ndarray, y: np.ndarray) -> tuple[float, str]:
    """Return the time hyppo needs for 1000 permutations, and where the number comes from."""
    try:
        from hyppo.ksample import MMD
    except ImportError:
        return HYPPO_SECONDS, "stated, hyppo is not installed"

    def run(reps: int) -> Callable[[], object]:
        return lambda: MMD().test(x[:, None], y[:, None], reps=reps, auto=False, workers=1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The first run of `best` also takes the compilation by numba out of the comparison.
        few, more = best(run(2), repeats=3), best(run(12), repeats=3)
    return few + (more - few) / 10 * 998, "extrapolated linearly from 2 and 12 permutations"


def kernel_tests(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(2, 1000))
    ours = best(lambda: mmd(x, y, rng=rng, permutations=1000))
    theirs, source = hyppo_seconds(x, y)
    print(f"mmd n = 1000, 1000 permutations: {ours:.3f} s; hyppo {theirs:.1f} s ({source}); ratio {theirs / ours:.0f}")
    print(f"energy n = 1000, 1000 permutations: {best(lambda: energy(x, y, rng=rng, permutations=1000)):.3f} s")
    x, y = rng.normal(size=(2, 5000))
    print(f"mmd n = 5000, 999 permutations: {best(lambda: mmd(x, y, rng=rng), repeats=2):.2f} s")


def kolmogorov_smirnov(rng: np.random.Generator) -> None:
    for n, m in [(100, 100), (1000, 1000), (1000, 700), (5000, 5001), (10**6, 10**6), (10**6, 10**6 - 1)]:
        x, y = rng.normal(size=n), rng.normal(size=m)
        method = "exact" if n == m or n + m < 20_000 else "asymp"
        ours = best(lambda x=x, y=y: ks(x, y))  # type: ignore[misc]
        theirs = best(lambda x=x, y=y, method=method: stats.ks_2samp(x, y, method=method))  # type: ignore[misc]
        print(
            f"ks n = {n}, m = {m}: {1e3 * ours:.2f} ms; scipy ({method}) {1e3 * theirs:.2f} ms; "
            f"ratio {theirs / ours:.2f}"
        )


def labels(rng: np.random.Generator) -> None:
    for n in (1000, 10_000):
        members = rng.permuted(np.tile(np.arange(100, dtype=np.int16)[:, None], (n, 1, 5)), axis=1)
        seconds = best(lambda members=members: label_randomised(members, rng=rng), repeats=3)  # type: ignore[misc]
        print(f"label_randomised n = {n}, M = 99, K = 5, 999 randomisations: {seconds:.2f} s")


if __name__ == "__main__":
    memory()
    generator = np.random.default_rng(0)
    kolmogorov_smirnov(generator)
    labels(generator)
    kernel_tests(generator)
