"""Replicates needed for 80 % power at 5 %: every test against the alternatives of the table, exact u.

``python -m benchmarks.power [--repeats 1000]``. z = Phi^{-1}(u) follows the alternative. For each n on a geometric grid
the power is simulated; n is read off where a monotone fit crosses 80 %.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ringtrue import uniformity

Floats = NDArray[np.float64]
Sampler = Callable[[int, np.random.Generator], Floats]

GRID = np.unique(np.round(20 * 1.25 ** np.arange(23)).astype(int))  # 20 .. 2710


def scaled(eta: float, bias: float = 0.0) -> Sampler:
    """Return z of an output whose variance is eta times too large and whose mean is off by bias."""
    return lambda n, rng: bias + rng.standard_normal(n) / np.sqrt(eta)


def outliers(n: int, rng: np.random.Generator) -> Floats:
    """Return z with 5 % of wild values."""
    z = rng.standard_normal(n)
    return np.where(rng.random(n) < 0.05, 5 * z, z)


ALTERNATIVES: dict[str, Sampler] = {
    "eta .5": scaled(0.5),
    "eta .8": scaled(0.8),
    "eta 1.25": scaled(1.25),
    "eta 2": scaled(2.0),
    "bias .2": scaled(1.0, 0.2),
    "bias .5": scaled(1.0, 0.5),
    "skew": lambda n, rng: (rng.standard_gamma(4.0, n) - 4) / 2,
    "t3": lambda n, rng: rng.standard_t(3, n) / np.sqrt(3),
    "outliers": outliers,
    "bimodal": lambda n, rng: 0.8 * rng.choice([-1.0, 1.0], n) + 0.6 * rng.standard_normal(n),
}


def needed(name: str, *, tests: tuple[str, ...], repeats: int) -> list[str]:
    """Return, for each test, the n of 80 % power."""
    rng = np.random.default_rng(len(name))
    rates = np.zeros((len(GRID), len(tests)))
    for g, n in enumerate(GRID):
        for _ in range(repeats):
            z = ALTERNATIVES[name](int(n), rng)
            u = special.ndtr(z)
            rates[g] += [_pvalue(test, u, z) <= 0.05 for test in tests]
    rates = np.maximum.accumulate(rates / repeats, axis=0)
    return [_crossing(column) for column in rates.T]


def _pvalue(test: str, u: Floats, z: Floats) -> float:
    extra = {"z": z} if test in ("combination", "cook", "mean_z") else {}
    return float(uniformity.TESTS[test](u, **extra).pvalue)


def _crossing(rates: Floats) -> str:
    """Interpolate log n where the power crosses 80 %."""
    if rates[-1] < 0.8:
        return f"> {GRID[-1]}"
    return f"{np.exp(np.interp(0.8, rates + 1e-9 * np.arange(len(rates)), np.log(GRID))):.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--tests", nargs="*", default=sorted(uniformity.TESTS))
    arguments = parser.parse_args()
    tests = tuple(arguments.tests)
    print("replicates for 80 % power at 5 %, exact u")
    print(f"{'':>10} " + " ".join(f"{test[:16]:>16}" for test in tests))
    with ProcessPoolExecutor() as pool:
        rows = pool.map(partial(needed, tests=tests, repeats=arguments.repeats), ALTERNATIVES)
        for name, row in zip(ALTERNATIVES, rows, strict=True):
            print(f"{name:>10} " + " ".join(f"{cell:>16}" for cell in row), flush=True)


if __name__ == "__main__":
    main()
