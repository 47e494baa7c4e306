"""Find the price of choosing the best of four uniformity tests, for `ringtrue.statistics.uniformity.minimum`.

For each (n, draws) null samples are drawn, and counted is how often the smallest of the four p-values
falls below each level::

    python benchmarks/calibrate_combination.py simulate 0 2 part0.npz
    python benchmarks/calibrate_combination.py simulate 1 2 part1.npz
    python benchmarks/calibrate_combination.py table part0.npz part1.npz > multiplicity.csv
    python benchmarks/calibrate_combination.py check

The last one measures the size of the finished test between the rows of the table.
"""

import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ringtrue.statistics import uniformity
from ringtrue.statistics.uniformity import minimum
from ringtrue.statistics.uniformity.rankscores import (
    enumerable,
    integer_scores,
    normal_scores,
    polynomial_scores,
    sum_law,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEVELS = np.array(minimum.SMALLEST[1:])  # decreasing, without 1


def replicates(n: int, draws: int | None) -> int:
    """As many as take some seconds."""
    cells = min(n, width(n, draws))
    return int(np.clip(1.5e8 / cells, 1e5, 4e5))


def gamma_levels(n: int, draws: int | None, values: NDArray[np.generic]) -> Ints:
    """How many levels each row passes; rows are order statistics, or counts at the points."""
    bounds = [uniformity.ecdf._gamma_bounds(uniformity.ecdf._critical_gamma(n, draws, a), n, draws) for a in LEVELS]
    if draws is None and n <= uniformity.ecdf._ALL_POINTS:
        i = np.arange(1, n + 1)
        gammas = [uniformity.ecdf._critical_gamma(n, draws, a) for a in LEVELS]
        low = np.array([special.betaincinv(i, n + 1 - i, 0.5 * g) for g in gammas])
        high = 1.0 - low[:, ::-1]
    else:
        low, high = np.array([b.low for b in bounds]) - 0.5, np.array([b.high for b in bounds]) + 0.5
    first, last = np.zeros(len(values), np.int64), np.full(len(values), LEVELS.size)
    while (open_ := first < last).any():
        middle = np.minimum((first + last) // 2, LEVELS.size - 1)
        outside = ((values <= low[middle]) | (values >= high[middle])).any(axis=1) & open_
        first, last = np.where(outside, middle + 1, first), np.where(outside | ~open_, last, middle)
    return first


def neyman_criticals(n: int, draws: int | None) -> Floats:
    order = 4 if draws is None else min(4, draws)
    law = uniformity.scores._neyman_law(n, uniformity.scores._neyman_cells(n, draws), order)
    low, high = np.zeros(LEVELS.size), np.full(LEVELS.size, 24.0 * max(n, 5))
    for _ in range(50):
        middle = 0.5 * (low + high)
        over = np.array([law.tail(x) for x in middle]) <= LEVELS
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return high


def two_sided(scores: Floats, counts: Ints, n: int) -> Floats:
    atoms = integer_scores(scores, n)
    mean, spread = n * atoms.mean(), n**0.5 * atoms.std()
    law = sum_law(atoms, np.full(atoms.size, 1 / atoms.size), n, spread=spread)
    whole = law.size > n * np.ptp(atoms)
    start = n * int(atoms.min()) if whole else int(mean) - law.size // 2
    mass = law[(start + np.arange(law.size)) % law.size]
    lower, upper = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
    index = np.clip(counts @ atoms - start, 0, law.size - 1)
    return np.asarray(np.minimum(1.0, 2.0 * np.minimum(lower[index], upper[index])))


def passed(p: Floats) -> Ints:
    return np.searchsorted(-LEVELS, -p * (1 - 1e-9), side="right")


def rank_levels(n: int, draws: int, size: int, rng: np.random.Generator) -> Ints:
    counts = uniformity.edf.multinomial(n, np.full(draws + 1, 1 / (draws + 1)), size, rng)
    below = np.cumsum(counts, axis=1)[:, :-1]
    sums = counts @ polynomial_scores(draws, min(4, draws)).T
    smooth = np.searchsorted(neyman_criticals(n, draws), np.square(sums).sum(axis=1) / n * (1 + 1e-9), side="right")
    normal = [passed(two_sided(s, counts, n)) for s in normal_scores(draws)]
    return np.asarray(np.maximum.reduce([gamma_levels(n, draws, below), smooth, *normal]))


def continuum_levels(n: int, size: int, rng: np.random.Generator) -> Ints:
    u = np.sort(rng.random((size, n)), axis=1)
    z = special.ndtri(u)
    mean = passed(special.erfc(np.abs(z.sum(axis=1)) / (2 * n) ** 0.5))
    total = 0.5 * np.square(z, out=z).sum(axis=1)
    spread = passed(2 * np.minimum(special.gammainc(0.5 * n, total), special.gammaincc(0.5 * n, total)))
    statistic = np.array([n * np.square(uniformity.scores._legendre_means(row, 4)).sum() for row in u])
    smooth = np.searchsorted(neyman_criticals(n, None), statistic, side="right")
    if n > uniformity.ecdf._ALL_POINTS:
        t = uniformity.ecdf._points(n, None)
        values = np.stack([np.searchsorted(row, t, side="right") for row in u])
        return np.asarray(np.maximum.reduce([gamma_levels(n, None, values), smooth, mean, spread]))
    return np.asarray(np.maximum.reduce([gamma_levels(n, None, u), smooth, mean, spread]))


def many_levels(n: int, size: int, rng: np.random.Generator) -> Ints:
    """As on the continuum, for n too large to draw: counts per cell, and Gaussian sums within cells."""
    t = uniformity.ecdf._points(n, None)
    width = np.diff(t, prepend=0.0, append=1.0)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    u = np.concatenate([[0.0], t])[:, None] + 0.5 * width[:, None] * (1.0 + nodes)
    z = special.ndtri(u)
    legendre = [(2 * j + 1) ** 0.5 * special.eval_legendre(j, 2 * u - 1) for j in range(1, 5)]
    scores = np.stack([z, z * z - 1.0, *legendre])
    means = 0.5 * scores @ weights
    deviations = scores - means[:, :, None]
    within = np.einsum("ick,jck,k,c->ij", deviations, deviations, 0.5 * weights, width)
    counts = rng.multinomial(n, width, size=size)
    sums = counts @ means.T + rng.multivariate_normal(np.zeros(6), n * within, size=size)
    mean = passed(special.erfc(np.abs(sums[:, 0]) / (2 * n) ** 0.5))
    total = 0.5 * (n + sums[:, 1])
    spread = passed(2 * np.minimum(special.gammainc(0.5 * n, total), special.gammaincc(0.5 * n, total)))
    smooth = np.searchsorted(neyman_criticals(n, None), np.square(sums[:, 2:]).sum(axis=1) / n, side="right")
    below = np.cumsum(counts, axis=1)[:, :-1]
    return np.asarray(np.maximum.reduce([gamma_levels(n, None, below), smooth, mean, spread]))


def levels_of(n: int, draws: int | None, size: int, rng: np.random.Generator) -> Ints:
    if draws is not None:
        return rank_levels(n, draws, size, rng)
    return many_levels(n, size, rng) if n > 2000 else continuum_levels(n, size, rng)


def proportions(n: int, draws: int | None, size: int, rng: np.random.Generator) -> Floats:
    """P(smallest p-value <= level) for each level."""
    hits = np.zeros(LEVELS.size + 1, np.int64)
    for rows in batches(size, width(n, draws)):
        hits += np.bincount(levels_of(n, draws, rows, rng), minlength=hits.size)
    return np.cumsum(hits[::-1])[::-1][1:] / size


def width(n: int, draws: int | None) -> int:
    if draws is None:
        return n if n <= 2000 else 200
    return max(draws + 1, min(n, 4 * draws))


def batches(size: int, width: int) -> Iterator[int]:
    rows = max(1, 4_000_000 // width)
    yield from [rows] * (size // rows)
    if size % rows:
        yield size % rows


def simulate(part: int, parts: int, out: str) -> None:
    designs = [(n, m) for n in minimum.SIZES for m in (*minimum.DRAWS, None)]
    # Below five values the small lattices are enumerated by the library and their rows never used.
    designs = [(n, m) for n, m in designs if n >= 5 or m is None or not enumerable(m + 1, n)]
    found = []
    for n, draws in designs[part::parts]:
        rng = np.random.default_rng([n, draws or 0])
        size = replicates(n, draws)
        found.append(np.concatenate([[n, draws or 0, size], proportions(n, draws, size, rng)]))
        np.savez(out, rows=np.array(found))


def factors(rows: Floats) -> dict[tuple[int, int], Floats]:
    """Factors by (draws, n), with draws = 0 for the continuum."""
    found = {(int(row[1]), int(row[0])): row[3:] / LEVELS for row in rows}
    for draws in (0, *(m for m in minimum.DRAWS if m >= 6)):
        sizes = [n for n in minimum.SIZES if n >= 20]
        replicated = {int(row[0]): row[2] for row in rows if int(row[1]) == draws}
        smooth = smoothed(
            np.array([found[draws, n] for n in sizes]), np.log(sizes), np.array([replicated[n] for n in sizes])
        )
        found |= {(draws, n): row for n, row in zip(sizes, smooth, strict=True)}
    return found


def smoothed(raw: Floats, log_n: Floats, size: Floats) -> Floats:
    """Fit a polynomial in log n and log level, weighing each value by its accuracy."""
    a, b = np.meshgrid(log_n / 7.0 - 1.0, np.log(LEVELS) / 4.0 + 1.0, indexing="ij")
    basis = np.stack([a**i * b**j for i in range(4) for j in range(6) if i + j <= 6], axis=-1)
    p = np.clip(raw * LEVELS, 1e-6, 1 - 1e-6)
    deviation = np.sqrt(p * (1 - p) / size[:, None]) / LEVELS + 0.003
    weights = 1.0 / deviation.ravel()
    design = basis.reshape(-1, basis.shape[-1])
    solution, *_ = np.linalg.lstsq(design * weights[:, None], raw.ravel() * weights, rcond=None)
    return np.asarray((design @ solution).reshape(raw.shape))


def table(parts: list[str]) -> None:
    found = factors(np.vstack([np.load(part)["rows"] for part in parts]))
    print("# draws (0: continuum), n, then the factor at each level; from benchmarks/calibrate_combination.py")
    for draws in (*minimum.DRAWS, 0):
        for n in minimum.SIZES:
            row = found.get((draws, n), found[draws, 5])
            print(",".join([str(draws), str(n), *(f"{value:.3f}" for value in row)]))


OFF_GRID: list[tuple[int, int | None]] = [
    (7, None), (35, None), (130, None), (700, None), (1500, None), (5000, None), (100_000, None), (4, 99),
    (15, 11), (35, 39), (70, 5), (130, 69), (300, 24), (300, 7), (700, 149), (700, 499), (3000, 12), (5000, 99),
    (3000, 2), (700, 3), (130, 4), (20_000, 19), (10**5, 99), (200, 99), (1000, 999),
]  # fmt: skip


def check(parts: list[str]) -> None:
    """Print realised size over nominal at 5 %, 1 % and 0.1 %."""
    global LEVELS
    for n, draws in OFF_GRID[int(parts[0]) :: int(parts[1])] if parts else OFF_GRID:
        nominal = np.array([0.05, 0.01, 0.001])
        LEVELS = np.array([largest(p, n, draws) for p in nominal])
        size = max(100_000, 2 * replicates(n, draws))
        sizes = proportions(n, draws, size, np.random.default_rng([7, n, draws or 0]))
        error = np.sqrt(nominal * (1 - nominal) / size) / nominal
        print(n, draws, size, (sizes / nominal).round(3), "+-", error.round(3), flush=True)


def largest(pvalue: float, n: int, draws: int | None) -> float:
    """The smallest component p-value that is adjusted to this one."""
    low, high = np.log(pvalue / 8.0), np.log(pvalue)
    for _ in range(60):
        middle = 0.5 * (low + high)
        over = minimum.adjusted_minimum(float(np.exp(middle)), n, draws) > pvalue
        low, high = (low, middle) if over else (middle, high)
    return float(np.exp(low))


def main(command: str, *arguments: str) -> None:
    if command == "simulate":
        simulate(int(arguments[0]), int(arguments[1]), arguments[2])
    elif command == "table":
        table(list(arguments))
    else:
        check(list(arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
