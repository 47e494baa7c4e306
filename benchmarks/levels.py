"""Rejection rates of a calibrated procedure: every test, n in {20, 200, 1000, 10000}, M draws or exact, 5 % and 1 %.

``python -m benchmarks.levels [--scale 1]``. A star marks a rate whose exact 99.9 % binomial interval leaves out the
nominal level *above*: one star in a thousand is chance. Discrete nulls are allowed to be below it.
The last block repeats the rows of the best-known mistakes with the same ranks: ranks taken for continuous values.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ringtrue.statistics import uniformity

SIZES = (20, 200, 1000, 10_000)
DRAWS = (9, 19, 99, 100, 999, None)
LEVELS = (0.05, 0.01)
REPEATS = {20: 20_000, 200: 10_000, 1000: 4000, 10_000: 1000}
PEER_ROWS = ((200, 19), (1000, 99), (10_000, 999), (10_000, 100))


def rejections(cell: tuple[int, int | None, int], *, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Count rejections of each test at each level over the cell's repeats."""
    n, draws, repeats = cell
    rng = np.random.default_rng([n, draws or 0, repeats])
    counts = np.zeros((len(names), len(LEVELS)), np.int64)
    for _ in range(repeats):
        values = rng.random(n) if draws is None else rng.integers(draws + 1, size=n)
        p = [uniformity.TESTS[name](values, draws=draws).pvalue for name in names]
        counts += np.less_equal.outer(p, LEVELS)
    return counts


def lower_bound(count: int, repeats: int, chance: float = 5e-4) -> float:
    """Return the Clopper-Pearson lower bound of a rate."""
    return 0.0 if count == 0 else float(special.betaincinv(count, repeats - count + 1, chance))


def mistakes(n: int, draws: int, repeats: int) -> dict[str, float]:
    """Return 5 % rejection rates of tests that take ranks for continuous values, and of ours."""
    from scipy import stats

    rng = np.random.default_rng(n * draws)
    hits = np.zeros(3)
    for _ in range(repeats):
        ranks = rng.integers(draws + 1, size=n)
        raw, mid = ranks / draws, (ranks + 0.5) / (draws + 1)
        ours = uniformity.ks(ranks, draws=draws).pvalue
        p = [stats.kstest(raw, "uniform").pvalue, stats.kstest(mid, "uniform").pvalue, ours]
        hits += np.less_equal(p, 0.05)
    return dict(zip(("raw ranks", "mid-ranks", "ringtrue"), hits / repeats, strict=True))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the numbers of repeats")
    parser.add_argument("--tests", nargs="*", default=sorted(uniformity.TESTS))
    scale, names = parser.parse_args().scale, tuple(parser.parse_args().tests)
    cells = [(n, draws, max(100, int(scale * REPEATS[n]))) for n in SIZES for draws in DRAWS]
    start, stars, total = time.perf_counter(), 0, 0
    print("rejection rates in % at nominal 5 % / 1 %")
    print(f"{'n':>6} {'M':>6} {'repeats':>8} " + " ".join(f"{name[:13]:>15}" for name in names))
    with ProcessPoolExecutor() as pool:
        for cell, counts in zip(cells, pool.map(partial(rejections, names=names), cells), strict=True):
            texts = []
            for row in counts:
                marks = ["*" if lower_bound(int(c), cell[2]) > a else "" for c, a in zip(row, LEVELS, strict=True)]
                stars, total = stars + sum(map(bool, marks)), total + len(marks)
                texts.append(" / ".join(f"{100 * c / cell[2]:.2f}{m}" for c, m in zip(row, marks, strict=True)))
            print(
                f"{cell[0]:6d} {cell[1] or 'exact':>6} {cell[2]:8d} " + " ".join(f"{t:>15}" for t in texts), flush=True
            )
    print(f"{stars} stars in {total} rates; {time.perf_counter() - start:.0f} s\n")
    print("KS at nominal 5 %, the same calibrated ranks")
    for n, draws in PEER_ROWS:
        rates = mistakes(n, draws, max(100, int(scale * REPEATS[n] / 2)))
        print(f"n = {n:5d}, M = {draws:4d}: " + ", ".join(f"{name} {100 * rate:.1f} %" for name, rate in rates.items()))


if __name__ == "__main__":
    main()
