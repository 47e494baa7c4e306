"""How often the 95 % intervals of `ringtrue.miscalibration` contain the truth, by simulation.

Run ``python -m benchmarks.coverage [REPETITIONS]``. On exact u the truth is the mean and standard deviation of z. On
ranks it is what infinitely many replicates would estimate, which for laws other than the Gaussian is the nearest
Gaussian in the rank likelihood; the table shows it. The standard error of a proportion is 0.005 at 2000 repetitions.
"""

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from ringtrue.miscalibration import SpreadAndBias, spread_and_bias

Floats = NDArray[np.float64]
Law = Callable[[Generator, int], Floats]

LAWS: dict[str, Law] = {
    "Gaussian": lambda rng, n: rng.standard_normal(n),
    "Gamma(4)": lambda rng, n: (rng.gamma(4, size=n) - 4) / 2,
    "t5": lambda rng, n: rng.standard_t(5, size=n) / math.sqrt(5 / 3),
}
SIZES = (20, 50, 200, 1000)
LIMIT = 4_000_000


def estimate(law: Law, n: int, draws: int | None, rng: Generator) -> SpreadAndBias:
    z = law(rng, n)
    return spread_and_bias(z if draws is None else rng.binomial(draws, special.ndtr(z)), draws=draws)


def truth(law: Law, draws: int | None, rng: Generator) -> tuple[float, float]:
    if draws is None:
        return 1.0, 0.0
    both = estimate(law, LIMIT, draws, rng)
    return both.spread.estimate, both.bias.estimate


def proportions(law: Law, n: int, draws: int | None, *, repetitions: int, rng: Generator) -> tuple[float, float]:
    spread, bias = truth(law, draws, rng)
    fits = [estimate(law, n, draws, rng) for _ in range(repetitions)]
    return (
        sum(fit.spread.low <= spread <= fit.spread.high for fit in fits) / repetitions,
        sum(fit.bias.low <= bias <= fit.bias.high for fit in fits) / repetitions,
    )


def main(repetitions: int = 2000) -> None:
    rng = np.random.default_rng(1)
    print("coverage of nominal 95 % intervals: spread / bias")
    print(f"{'z':10}{'draws':>6}{'spread':>8}{'bias':>8}", *(f"{f'n = {n}':>15}" for n in SIZES))
    for draws in (None, 9, 19, 99):
        for name, law in LAWS.items():
            spread, bias = truth(law, draws, rng)
            pairs = (proportions(law, n, draws, repetitions=repetitions, rng=rng) for n in SIZES)
            cells = (f"{f'{a:.3f} / {b:.3f}':>15}" for a, b in pairs)
            print(f"{name:10}{draws or 'exact':>6}{spread:8.3f}{bias:8.3f}", *cells, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
