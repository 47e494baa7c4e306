"""How often the nominal 95 % intervals of the measures contain the truth, by simulation.

Run ``python -m benchmarks.coverage [REPETITIONS [GROUP ...]]``; the groups are spread, distances, usefulness, family.
On exact u the truth of spread and bias is the mean and standard deviation of z. On ranks it is what infinitely many
replicates would estimate, which for laws other than the Gaussian is the nearest Gaussian in the rank likelihood; the
table shows it. Distances on ranks are those of the law of ranks. The standard error of a proportion is 0.005 at 2000
repetitions, 0.011 at 400.
"""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special, stats

from ringtrue import Coordinate, Gaussian, Linear, Mahalanobis, Normal, Study, run, usefulness
from ringtrue.measures import measure
from ringtrue.miscalibration import (
    Measure,
    SpreadAndBias,
    cramer_von_mises,
    distance,
    divergence,
    spread_and_bias,
    variance_ratio,
    wasserstein,
)
from ringtrue.results import MeasureRow
from ringtrue.sharpness import of_draws, of_law

Floats = NDArray[np.float64]
Law = Callable[[Generator, int], Floats]

LAWS: dict[str, Law] = {
    "Gaussian": lambda rng, n: rng.standard_normal(n),
    "Gamma(4)": lambda rng, n: (rng.gamma(4, size=n) - 4) / 2,
    "t5": lambda rng, n: rng.standard_t(5, size=n) / math.sqrt(5 / 3),
}
CDF: dict[str, Callable[[Floats], Floats]] = {
    "Gaussian": special.ndtr,
    "Gamma(4)": lambda z: stats.gamma.cdf(2 * z + 4, 4),
    "t5": lambda z: stats.t.cdf(z * math.sqrt(5 / 3), 5),
}
ROUTES = (None, 9, 19, 99)
SIZES = (20, 50, 200, 1000)
LARGE = (200, 1000)
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


def spreads(repetitions: int) -> None:
    rng = np.random.default_rng(1)
    print("coverage of nominal 95 % intervals: spread / bias")
    print(f"{'z':10}{'draws':>6}{'spread':>8}{'bias':>8}", *(f"{f'n = {n}':>15}" for n in SIZES))
    for draws in ROUTES:
        for name, law in LAWS.items():
            spread, bias = truth(law, draws, rng)
            pairs = (proportions(law, n, draws, repetitions=repetitions, rng=rng) for n in SIZES)
            cells = (f"{f'{a:.3f} / {b:.3f}':>15}" for a, b in pairs)
            print(f"{name:10}{draws or 'exact':>6}{spread:8.3f}{bias:8.3f}", *cells, flush=True)


# Distances: every law as it is, stretched to variance 2, and shifted.

SHAPES = ((1.0, 0.0), (math.sqrt(2), 0.0), (1.0, 0.3))
DISTANCES: dict[str, Callable[..., Measure]] = {
    "KS": distance,
    "W1": wasserstein,
    "CvM": cramer_von_mises,
    "KL": divergence,
    "variance": variance_ratio,
}


def law_of_u(name: str, spread: float, bias: float) -> tuple[Floats, Floats]:
    """G at the ends of many cells of the unit interval, which are narrow in z and in u."""
    t = np.unique(np.concatenate([special.ndtr(np.linspace(-9, 9, 20_001)), np.linspace(0, 1, 20_001)]))
    return t, CDF[name]((special.ndtri(t) - bias) / spread)


def rank_law(t: Floats, G: Floats, draws: int) -> Floats:
    inner = (t[1:] + t[:-1]) / 2
    p = np.array([np.diff(G) @ stats.binom.pmf(r, draws, inner) for r in range(draws + 1)])
    return np.asarray(p / p.sum())


def true_distances(name: str, spread: float, bias: float, draws: int | None) -> dict[str, float]:
    t, G = law_of_u(name, spread, bias)
    middle, mass = (t[1:] + t[:-1]) / 2, np.diff(G)
    variance = 12 * float(mass @ middle**2 - (mass @ middle) ** 2)
    if draws is None:
        gap, width = (G - t)[:-1], np.diff(t)
        kl = (spread**2 + bias**2 - 1 - math.log(spread**2)) / 2
    else:
        p = rank_law(t, G, draws)
        gap, width = np.cumsum(p)[:-1] - np.arange(1, draws + 1) / (draws + 1), np.full(draws, 1 / (draws + 1))
        counts = np.diff(np.round(LIMIT * np.cumsum(p)), prepend=0).astype(int)
        kl = divergence(np.repeat(np.arange(draws + 1), counts), draws=draws).estimate
    return {
        "KS": float(np.abs(gap).max()),
        "W1": float(width @ np.abs(gap)),
        "CvM": float(width @ gap**2),
        "KL": kl,
        "variance": variance,
    }


def distance_hits(z: Floats, ranks: Any, draws: int | None, true: dict[str, float]) -> list[bool]:
    found = {
        name: of(ranks if draws else z if name == "KL" else special.ndtr(z), draws=draws)
        for name, of in DISTANCES.items()
    }
    # What rounding calls 1e-17 is 0.
    return [m.low - 1e-9 <= true[name] <= m.high + 1e-9 for name, m in found.items()]


def distances(repetitions: int) -> None:
    rng = np.random.default_rng(2)
    print("coverage of nominal 95 % intervals of distances and of 12 Var u")
    print(f"{'z':10}{'spread':>7}{'bias':>5}{'draws':>6}{'n':>6}", *(f"{name:>15}" for name in DISTANCES))
    for draws in ROUTES:
        for name, law in LAWS.items():
            for spread, bias in SHAPES:
                true = true_distances(name, spread, bias, draws)
                for n in LARGE:
                    hits = np.zeros(len(DISTANCES))
                    for _ in range(repetitions):
                        z = bias + spread * law(rng, n)
                        ranks = rng.binomial(draws, special.ndtr(z)) if draws else None
                        hits += distance_hits(z, ranks, draws, true)
                    pairs = zip(true.values(), hits / repetitions, strict=True)
                    cells = (f"{f'({value:.4f}) {share:.3f}':>15}" for value, share in pairs)
                    print(f"{name:10}{spread:7.2f}{bias:5.1f}{draws or 'exact':>6}{n:6}", *cells, flush=True)


# Usefulness: truths of every law, seen with noise of variance 1, and outputs N(y / 2, eta / 2), exact or drawn from.

SUMMARIES: dict[str, tuple[Callable[..., Measure], int]] = {
    "contraction": (usefulness.contraction, 2),
    "skill": (usefulness.skill, 3),
    "interval skill": (usefulness.interval_skill, 4),
    "correlation": (usefulness.correlation, 1),
}


def summaries(law: Law, n: int, eta: float, draws: int | None, rng: Generator) -> list[Floats]:
    theta = law(rng, n)
    output = Normal((theta + rng.standard_normal(n)) / 2, math.sqrt(eta / 2))
    found = of_law(output, theta) if draws is None else of_draws(output.sample(draws, rng), theta)
    return [np.broadcast_to(column, (n,)) for column in found]


def use(law: Law, n: int, eta: float, draws: int | None, rng: Generator) -> list[Measure]:
    columns = summaries(law, n, eta, draws, rng)
    return [of(columns[0], columns[k]) for of, k in SUMMARIES.values()]


def usefulnesses(repetitions: int) -> None:
    rng = np.random.default_rng(3)
    print("coverage of nominal 95 % intervals of use")
    print(f"{'theta':10}{'eta':>5}{'draws':>6}{'n':>6}", *(f"{name:>15}" for name in SUMMARIES))
    for draws in ROUTES:
        for name, law in LAWS.items():
            for eta in (1.0, 0.5):
                true = [m.estimate for m in use(law, LIMIT // (draws or 4), eta, draws, rng)]
                for n in LARGE:
                    found = [use(law, n, eta, draws, rng) for _ in range(repetitions)]
                    cells = _shares(true, found)
                    print(f"{name:10}{eta:5.1f}{draws or 'exact':>6}{n:6}", *cells, flush=True)


def _shares(true: Sequence[float], found: Sequence[Sequence[Measure | MeasureRow]]) -> list[str]:
    columns = zip(*found, strict=True)
    shares = [np.mean([m.low <= t <= m.high for m in column]) for t, column in zip(true, columns, strict=True)]
    return [f"{f'({t:.3f}) {share:.3f}':>15}" for t, share in zip(true, shares, strict=True)]


# A family: two coordinates and their sum in two dimensions, y = theta + noise of every law, outputs N(y / 2, eta / 2).

FAMILY = {
    "largest |log spread|": "(all)",
    "largest |bias|": "(all)",
    "largest KS distance": "(all)",
    "ANEES/d": "(all)",
    "NCI (dB)": "(all)",
    "weak KS distance": "theta[0]",
}


def family(law: Law, n: int, eta: float, seed: int) -> list[MeasureRow]:
    functions = [Coordinate(index=(0,)), Coordinate(index=(1,)), Linear([1.0, 1.0], "sum"), Mahalanobis()]
    study = Study(
        Gaussian(np.zeros(2), np.eye(2)),
        lambda theta, rng: theta + law(rng, theta.size).reshape(theta.shape),
        lambda mu0, y: Gaussian(y / 2, np.eye(2) * eta / 2),
        n,
        f=functions,
        batch=n,
        draws=19,
        seed=seed,
    )
    found = measure(run(study))
    return [found.row(name, f) for name, f in FAMILY.items()]


def weak_distance(law: Law, eta: float, rng: Generator) -> float:
    """The law of one draw of the output, against N(0, 1)."""
    y = rng.standard_normal(LIMIT) + law(rng, LIMIT)
    x = np.sort(y / 2 + math.sqrt(eta / 2) * rng.standard_normal(LIMIT))
    return float(np.abs(np.arange(LIMIT) / LIMIT - special.ndtr(x)).max())


def families(repetitions: int) -> None:
    rng = np.random.default_rng(4)
    print("coverage of nominal 95 % intervals over a family of three, of Gaussian outputs, and of the weak distance")
    print(f"{'noise':10}{'eta':>5}{'n':>6}", *(f"{name:>20}" for name in FAMILY))
    for name, law in LAWS.items():
        for eta in (1.0, 0.5):
            true = [row.estimate for row in family(law, LIMIT // 8, eta, 1)]
            true[-1] = weak_distance(law, eta, rng)
            if (name, eta) == ("Gaussian", 1.0):
                true = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
            for n in LARGE:
                found = [family(law, n, eta, 100 + seed) for seed in range(repetitions)]
                cells = [f"{cell:>20}" for cell in _shares(true, found)]
                print(f"{name:10}{eta:5.1f}{n:6}", *cells, flush=True)


GROUPS: dict[str, Callable[[int], None]] = {
    "spread": spreads,
    "distances": distances,
    "usefulness": usefulnesses,
    "family": families,
}


def main(repetitions: str = "2000", *groups: str) -> None:
    chosen: Sequence[str] = groups or tuple(GROUPS)
    for group in chosen:
        GROUPS[group](int(repetitions))


if __name__ == "__main__":
    main(*sys.argv[1:])
