"""Find the laws of three statistics at small n, for `ringtrue.statistics.uniformity.smallsamples`.

For each n of the table null samples are drawn, and the statistics that are exceeded with given probabilities are
written down: down to p = 1e-3 from plain samples, below from an importance sample::

    python -m benchmarks.calibrate_small_samples table 20000000 > src/ringtrue/statistics/uniformity/smallsamples.csv
    python -m benchmarks.calibrate_small_samples check 1000000

The second one compares p-values for n = 1, ..., 30 and beyond, Kuiper's among them, with new null samples: z is the
difference in standard errors of that sample alone.
"""

import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ringtrue.statistics.uniformity import edf, smallsamples

Floats = NDArray[np.float64]
_CELLS = 50
_RARE = 1e-3


def ordered(size: int, n: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Sorted uniforms, from sums of exponentials, in parts that fit into memory."""
    rows = max(1, 3_000_000 // n)
    for start in range(0, size, rows):
        sums = np.cumsum(rng.standard_exponential((min(rows, size - start), n + 1)), axis=1)
        yield sums[:, :-1] / sums[:, -1:]


def heights(method: str, u: Floats) -> Floats:
    """The coordinate of the table: the root of the distance to the smallest possible statistic."""
    smallest = smallsamples.smallest_statistic(method, u.shape[1])
    return np.sqrt(np.maximum(edf._EDF[method].continuum(u) - smallest, 0.0))


def plain(n: int, size: int) -> dict[str, Floats]:
    """Heights at the probabilities that are not rare."""
    rng = np.random.default_rng([1, n])
    found: dict[str, list[Floats]] = {method: [] for method in smallsamples.METHODS}
    for u in ordered(size, n, rng):
        for method, parts in found.items():
            parts.append(heights(method, u))
    often = [p for p in smallsamples.PROBABILITIES if p >= _RARE]
    return {method: quantiles(np.concatenate(parts), often) for method, parts in found.items()}


def quantiles(values: Floats, probabilities: list[float]) -> Floats:
    k = [round((1.0 - p) * values.size) for p in probabilities]
    return np.asarray(np.partition(values, k)[k])


def tilts(method: str, n: int) -> Floats:
    """Laws over cells in whose directions the statistic grows fastest; the null comes first."""
    u = (np.arange(_CELLS) + 0.5) / _CELLS
    if method == "watson":
        directions = [np.cos(2 * np.pi * (u - phase / 8)) for phase in range(8)]
    else:
        directions = [2 * u - 1, 1 - 2 * u]
    sizes = [radius / (n**0.5 * h.std()) for radius in (2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 14.0) for h in directions[:1]]
    logs = np.array([np.zeros(_CELLS), *(size * h for size in sizes for h in directions)])
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def importance_sample(method: str, n: int, size: int) -> tuple[Floats, Floats]:
    """Heights, decreasing, and the estimated probability of at least each."""
    rng = np.random.default_rng([2, n])
    laws = tilts(method, n)
    each = size // len(laws)
    found, weights = [], []
    for law in laws:
        cells = rng.choice(_CELLS, size=(each, n), p=law)
        logs = np.stack([np.log(_CELLS * other)[cells].sum(axis=1) for other in laws])
        weights.append(1.0 / np.exp(logs).mean(axis=0))
        found.append(heights(method, np.sort((cells + rng.random((each, n))) / _CELLS, axis=1)))
    values, mass = np.concatenate(found), np.concatenate(weights)
    order = np.argsort(-values)
    return values[order], np.cumsum(mass[order]) / mass.size


def rare(method: str, n: int) -> Floats:
    values, tails = importance_sample(method, n, 4_000_000 if n < 6 else 1_000_000)
    wanted = [p for p in smallsamples.PROBABILITIES if p < _RARE]
    return values[np.minimum(np.searchsorted(tails, wanted), values.size - 1)]


def table(size: int) -> None:
    print("# method, n, then the height exceeded with each probability; from benchmarks/calibrate_small_samples.py")
    for n in smallsamples.SIZES:
        often = plain(n, size)
        for method in smallsamples.METHODS:
            row = np.concatenate([often[method], rare(method, n)])
            print(",".join([method, str(n), *(f"{value:.6f}" for value in row)]), flush=True)


def check(size: int) -> None:
    """Print, for each n and test, the largest difference and where it is."""
    levels = np.array(
        [0.999, 0.995, 0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4]
    )
    for n in [*range(1, 31), 31, 35, 40, 50, 70, 100, 200]:
        rng = np.random.default_rng([3, n])
        kept = np.concatenate([edf_rows(u) for u in ordered(size, n, rng)], axis=1)
        for method, values in zip(edf._EDF, kept, strict=True):
            at = quantiles(values, levels.tolist())
            # Where the law has an atom, as at n = 1, the quantile is not exceeded with the nominal probability.
            true = np.array([np.mean(values >= x * (1.0 - 1e-9)) for x in at])
            ours = np.array([edf.continuum_tail(method, float(x), n) for x in at])
            z = (ours - true) / np.sqrt(np.maximum(true * (1 - true), 1.0 / size) / size)
            worst = int(np.argmax(np.abs(z)))
            size_at = ours[np.argmin(np.abs(true - 0.05))] / true[np.argmin(np.abs(true - 0.05))]
            print(
                f"{method:17s} {n:4d}  z {z[worst]:6.2f} at p = {true[worst]:.4g}  ratio at 5 % {size_at:.4f}",
                flush=True,
            )


def edf_rows(u: Floats) -> Floats:
    return np.stack([one.continuum(u) for one in edf._EDF.values()])


def main(command: str, size: str) -> None:
    {"table": table, "check": check}[command](int(size))


if __name__ == "__main__":
    main(*sys.argv[1:])
