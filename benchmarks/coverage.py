"""How often the nominal 95 % intervals of every measure contain the truth, by simulation.

Run ``python -m benchmarks.coverage [REPETITIONS [GROUP ...]]``; the groups are size, use, joint, family, gaussian and
weak, all of which run by default, and small, for n = 20 and 50. Laws are Gaussian, skewed and heavy-tailed; positions
exact and among 9, 19 and 99 draws; n is 200 and 1000. On ranks the truth of spread, bias and divergence is what
infinitely many replicates would estimate, the nearest Gaussian in the rank likelihood; distances are those of the law
of ranks.

A cell whose share of hits leaves 93 to 97 %, but is below 99 %, is measured again, five times as often, and only the
second count is kept: among hundreds of cells some leave by chance. The standard error of a share is 0.015 at 200
repetitions, 0.007 at 1000. Shares inside are not measured again, so that ranges end at 0.93 and 0.97 by construction:
at 200 repetitions a cell that truly covers 0.92 passes as inside with probability 0.36, one of 0.90 with 0.09.

Distances whose truth is 0 are listed apart: no interval with its lower end at 0 can cover less than the upper tail.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special, stats

from ringtrue import Mahalanobis, Normal
from ringtrue.judgement import measures
from ringtrue.judgement.column import Column
from ringtrue.replicates.block import Drawn
from ringtrue.replicates.record import Asked, Header, Replicates
from ringtrue.replicates.reducers.energy import EnergyScore
from ringtrue.replicates.reducers.summaries import of_draws, of_law
from ringtrue.statistics.effects import (
    Interval,
    SpreadAndBias,
    coverage,
    cramer_von_mises,
    distance,
    divergence,
    spread_and_bias,
    usefulness,
    variance_ratio,
    wasserstein,
)

Floats = NDArray[np.float64]
Law = Callable[[Generator, int | tuple[int, ...]], Floats]
Of = Callable[[Any], Interval]

LAWS: dict[str, Law] = {
    "Gaussian": lambda rng, shape: rng.standard_normal(shape),
    "Gamma(4)": lambda rng, shape: (rng.gamma(4, size=shape) - 4) / 2,
    "t5": lambda rng, shape: rng.standard_t(5, size=shape) / math.sqrt(5 / 3),
}
CDF: dict[str, Callable[[Floats], Floats]] = {
    "Gaussian": special.ndtr,
    "Gamma(4)": lambda z: stats.gamma.cdf(2 * z + 4, 4),
    "t5": lambda z: stats.t.cdf(z * math.sqrt(5 / 3), 5),
}
QUANTILE: dict[str, Callable[[Floats], Floats]] = {
    "Gaussian": special.ndtri,
    "Gamma(4)": lambda p: (stats.gamma.ppf(p, 4) - 4) / 2,
    "t5": lambda p: stats.t.ppf(p, 5) / math.sqrt(5 / 3),
}
ROUTES = (None, 9, 19, 99)
SIZES = (200, 1000)
LIMIT = 4_000_000
CONFIDENCE = 0.95
LOWEST, HIGHEST, CLEARLY = 0.93, 0.97, 0.99
#: Measures that cannot be negative, so that their intervals are one-sided at 0.
ONE_SIDED = {"KS", "W1", "CvM", "KL", "weak KS", "weak KS, one draw"}
ONE_SIDED |= {"largest |log spread|", "largest |bias|", "largest KS"}


@dataclass(frozen=True)
class Cell:
    """A way to draw data, what is measured of it, and what is true."""

    label: str
    true: dict[str, float]
    draw: Callable[[Generator], Any]
    measure: dict[str, Of]

    def shares(self, names: Iterable[str], repetitions: int, rng: Generator) -> dict[str, float]:
        """Return how often each interval contains the truth."""
        hits = dict.fromkeys(names, 0)
        for _ in range(repetitions):
            data = self.draw(rng)
            for name in hits:
                found = self.measure[name](data)
                # What rounding calls 1e-17 is 0.
                hits[name] += found.low - 1e-9 <= self.true[name] <= found.high + 1e-9
        return {name: count / repetitions for name, count in hits.items()}


@dataclass
class Summary:
    """Shares by measure, those at distance 0 apart."""

    shares: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    at_zero: dict[str, list[tuple[float, str]]] = field(default_factory=dict)

    def add(self, cell: Cell, shares: dict[str, float]) -> None:
        for name, share in shares.items():
            kind = self.at_zero if _at_zero(cell, name) else self.shares
            kind.setdefault(name, []).append((share, cell.label))

    def __str__(self) -> str:
        lines = ["", "nominal 95 %: least and most over the cells; cells outside 93 to 97 %"]
        for name, shares in self.shares.items():
            outside = [f"{share:.3f} {label}" for share, label in sorted(shares) if not LOWEST <= share <= HIGHEST]
            lines.append(f"{name:22}{_range(shares)}  {len(outside)} of {len(shares)} outside" + ":" * bool(outside))
            lines += [f"{'':24}{one}" for one in outside]
        lines += ["at distance 0:"] + [f"{name:22}{_range(shares)}" for name, shares in self.at_zero.items()]
        return "\n".join(lines)


def _range(shares: list[tuple[float, str]]) -> str:
    values = [share for share, _ in shares]
    return f"{min(values):.3f} to {max(values):.3f}, {np.mean(values):.3f} on average"


def _at_zero(cell: Cell, name: str) -> bool:
    return name in ONE_SIDED and abs(cell.true[name]) < 1e-6


def measured(cell: Cell, repetitions: int, rng: Generator) -> dict[str, float]:
    """Return the shares of a cell, those that may have left 93 to 97 % by chance measured again."""
    shares = cell.shares(cell.measure, repetitions, rng)
    again = [
        name
        for name, share in shares.items()
        if share < LOWEST or (HIGHEST < share < CLEARLY and not _at_zero(cell, name))
    ]
    return shares | (cell.shares(again, 5 * repetitions, rng) if again else {})


def entry(k: int) -> Of:
    """Take a measure from a list of them."""
    return lambda data: data[k]


def of_column(of: Callable[..., Interval], k: int, **options: Any) -> Of:
    """Measure one column of the data."""
    return lambda data: of(data[k], **options)


# The law of u, and of ranks.


def law_of_u(name: str, spread: float, bias: float) -> tuple[Floats, Floats]:
    """G at the ends of many cells of the unit interval, which are narrow in z and in u."""
    t = np.unique(np.concatenate([special.ndtr(np.linspace(-9, 9, 20_001)), np.linspace(0, 1, 20_001)]))
    return t, CDF[name]((special.ndtri(t) - bias) / spread)


def rank_law(t: Floats, G: Floats, draws: int) -> Floats:
    inner = (t[1:] + t[:-1]) / 2
    p = np.array([np.diff(G) @ stats.binom.pmf(r, draws, inner) for r in range(draws + 1)])
    return np.asarray(p / p.sum())


def true_sizes(name: str, spread: float, bias: float, draws: int | None) -> dict[str, float]:
    t, G = law_of_u(name, spread, bias)
    middle, mass = (t[1:] + t[:-1]) / 2, np.diff(G)
    found = {"variance of u": 12 * float(mass @ middle**2 - (mass @ middle) ** 2)}
    if draws is None:
        gap, width = (G - t)[:-1], np.diff(t)
        found |= {"spread": spread, "bias": bias, "KL": (spread**2 + bias**2 - 1 - math.log(spread**2)) / 2}
        found["coverage"] = float(np.diff(CDF[name]((special.ndtri(np.array([0.05, 0.95])) - bias) / spread))[0])
    else:
        p = rank_law(t, G, draws)
        gap, width = np.cumsum(p)[:-1] - np.arange(1, draws + 1) / (draws + 1), np.full(draws, 1 / (draws + 1))
        ranks = np.repeat(np.arange(draws + 1), np.diff(np.round(LIMIT * np.cumsum(p)), prepend=0).astype(int))
        both = spread_and_bias(ranks, draws=draws)
        found |= {"spread": both.spread.estimate, "bias": both.bias.estimate}
        found |= {"KL": divergence(ranks, draws=draws).estimate, "coverage": coverage(ranks, draws=draws).estimate}
    distances = (float(np.abs(gap).max()), float(width @ np.abs(gap)), float(width @ gap**2))
    return found | dict(zip(("KS", "W1", "CvM"), distances, strict=True))


# Size: every law as it is, stretched to variance 2, and shifted.

SHAPES = ((1.0, 0.0), (math.sqrt(2), 0.0), (1.0, 0.3))
OF_U: dict[str, Callable[..., Interval]] = {
    "coverage": coverage,
    "KS": distance,
    "W1": wasserstein,
    "CvM": cramer_von_mises,
    "variance of u": variance_ratio,
}


def sizes(ns: Iterable[int], of_u: dict[str, Callable[..., Interval]] = OF_U) -> Iterator[Cell]:
    for draws in ROUTES:
        for name, law in LAWS.items():
            for spread, bias in SHAPES:
                true = true_sizes(name, spread, bias, draws)
                for n in ns:
                    label = f"{name}, s^2 = {spread**2:.0f}, bias {bias}, M = {draws}, n = {n}"
                    yield Cell(label, true, positions(law, n, spread, bias, draws), size_measures(draws, of_u))


def positions(law: Law, n: int, spread: float, bias: float, draws: int | None) -> Callable[[Generator], Any]:
    """Draw u and z, or ranks in place of both, with their spread and bias."""

    def draw(rng: Generator) -> tuple[Any, Any, SpreadAndBias]:
        z = bias + spread * law(rng, n)
        u = special.ndtr(z)
        values = (u, z) if draws is None else (rng.binomial(draws, u),) * 2
        return (*values, spread_and_bias(values[1], draws=draws))

    return draw


def size_measures(draws: int | None, of_u: dict[str, Callable[..., Interval]]) -> dict[str, Of]:
    from_z: dict[str, Of] = {
        "spread": lambda data: data[2].spread,
        "bias": lambda data: data[2].bias,
        "KL": of_column(divergence, 1, draws=draws),
    }
    return from_z | {name: of_column(of, 0, draws=draws) for name, of in of_u.items()}


# Use: truths of every law, seen with noise of variance 1, and outputs N(y / 2, eta / 2), exact or drawn from.

OF_USE: dict[str, tuple[Callable[..., Interval], int]] = {
    "contraction": (usefulness.contraction, 2),
    "skill": (usefulness.skill, 3),
    "interval skill": (usefulness.interval_skill, 4),
    "correlation": (usefulness.correlation, 1),
}


def summaries(law: Law, n: int, eta: float, draws: int | None) -> Callable[[Generator], list[Floats]]:
    def draw(rng: Generator) -> list[Floats]:
        theta = law(rng, n)
        output = Normal((theta + rng.standard_normal(n)) / 2, math.sqrt(eta / 2))
        found = of_law(output, theta) if draws is None else of_draws(Drawn(output.sample(draws, rng)), theta)
        return [np.broadcast_to(column, (n,)) for column in found]

    return draw


def against_truth(of: Callable[..., Interval], k: int) -> Of:
    return lambda data: of(data[0], data[k])


def uses() -> Iterator[Cell]:
    for draws in ROUTES:
        # Fewer than 19 draws have no central 90 % interval.
        names = [name for name in OF_USE if name != "interval skill" or draws != 9]
        measure = {name: against_truth(*OF_USE[name]) for name in names}
        for name, law in LAWS.items():
            for eta in (1.0, 0.5):
                limit = summaries(law, LIMIT // (draws or 4), eta, draws)(np.random.default_rng(3))
                true = {key: of(limit).estimate for key, of in measure.items()}
                for n in SIZES:
                    label = f"{name}, eta = {eta}, M = {draws}, n = {n}"
                    yield Cell(label, true, summaries(law, n, eta, draws), measure)


# Joint use: the energy score in two dimensions; exact outputs are drawn from twenty times.


def energies(law: Law, n: int, eta: float, draws: int) -> Callable[[Generator], tuple[Floats, Floats]]:
    def draw(rng: Generator) -> tuple[Floats, Floats]:
        theta = law(rng, (n, 2))
        mean = (theta + rng.standard_normal((n, 2))) / 2
        output, belief = EnergyScore(theta, np.ones(2)), EnergyScore(theta, np.ones(2))
        output.add(mean + math.sqrt(eta / 2) * rng.standard_normal((min(draws, 20), n, 2)))
        belief.add(law(rng, (20, n, 2)))
        return output.value(), belief.value()

    return draw


def joint_uses() -> Iterator[Cell]:
    measure: dict[str, Of] = {"energy skill": lambda data: usefulness.energy_skill(*data)}
    for name, law in LAWS.items():
        for eta in (1.0, 0.5):
            # The score is unbiased, so that its mean is the same for all numbers of draws.
            limit = energies(law, LIMIT // 10, eta, 20)(np.random.default_rng(4))
            true = {"energy skill": usefulness.energy_skill(*limit).estimate}
            for draws in (9, 19, 99):
                for n in SIZES:
                    label = f"{name}, eta = {eta}, M = {draws}, n = {n}"
                    yield Cell(label, true, energies(law, n, eta, draws), measure)


def replicates(names: Iterable[str], z: Floats, **known: Any) -> Replicates:
    """Replicates with these normal scores and what else is known; a name that ends in * is not of theta alone."""
    functions = tuple(
        Asked(name, "coordinate", "theta") if not name.endswith("*") else Asked(name[:-1], "mahalanobis", "output")
        for name in names
    )
    unknown, none = np.full(z.shape, np.nan), np.zeros(z.shape, np.int64)
    per_function = ("weak_u", "weak_z", "weak_value", "truth", "mean", "sd", "crps", "interval")
    rest: dict[str, Any] = dict.fromkeys(per_function, unknown)
    rest |= {"energy": unknown[:, 0], "belief_energy": unknown[:, 0], "u": special.ndtr(z), "rank": none - 1}
    header = Header(functions, seed=known.pop("seed", 0))
    return Replicates(header, {**rest, "z": z, "draws": none, "treated": none[:, 0], **known})


# A family: one function that may be off, one as the law is, and the mirror image of that one.


def family(law: Law, n: int, spread: float, bias: float, draws: int | None) -> Callable[[Generator], list[Interval]]:
    def draw(rng: Generator) -> list[Interval]:
        one, other = law(rng, (2, n))
        z = np.column_stack([bias + spread * one, other, -other])
        known: dict[str, Any] = {}
        if draws is not None:
            rank = rng.binomial(draws, special.ndtr(z))
            known = {"rank": rank, "draws": np.full(z.shape, draws), "u": (rank + rng.random(z.shape)) / (draws + 1)}
        return measures.over_family(replicates("abc", z, seed=int(rng.integers(2**32)), **known), confidence=CONFIDENCE)

    return draw


def families() -> Iterator[Cell]:
    names = ("largest |log spread|", "largest |bias|", "largest KS")
    measure = {name: entry(k) for k, name in enumerate(names)}
    for draws in ROUTES:
        for name, law in LAWS.items():
            plain = true_sizes(name, 1.0, 0.0, draws)
            for spread, bias in ((1.0, 0.0), (math.sqrt(2), 0.3)):
                both = (true_sizes(name, spread, bias, draws), plain)
                largest = (
                    max(abs(math.log(one["spread"])) for one in both),
                    max(abs(one["bias"]) for one in both),
                    max(one["KS"] for one in both),
                )
                for n in SIZES:
                    label = f"{name}, s^2 = {spread**2:.0f}, bias {bias}, M = {draws}, n = {n}"
                    true = dict(zip(names, largest, strict=True))
                    yield Cell(label, true, family(law, n, spread, bias, draws), measure)


# Gaussian outputs in d dimensions, errors of every law, eta times the right covariance.


def gaussian(law: Law, n: int, eta: float, d: int) -> Callable[[Generator], list[Interval]]:
    names = [*(f"theta[{j}]" for j in range(d)), f"{Mahalanobis().name}*"]

    def draw(rng: Generator) -> list[Interval]:
        z = law(rng, (n, d)) / math.sqrt(eta)
        squares, own = np.square(z).sum(axis=1), rng.chisquare(d, (19, n)).mean(axis=0)
        known = {
            "truth": np.column_stack([z, squares]),
            "mean": np.column_stack([np.zeros((n, d)), own]),
            "draws": np.column_stack([np.zeros((n, d), np.int64), np.full(n, 19)]),
        }
        return measures._of_gaussians(replicates(names, known["truth"], **known), CONFIDENCE)

    return draw


def gaussians() -> Iterator[Cell]:
    measure = {"ANEES/d": entry(0), "NCI": entry(1)}
    for name, law in LAWS.items():
        for eta in (1.0, 0.5):
            for d in (1, 2, 5):
                true = {"ANEES/d": 1 / eta, "NCI": -10 * math.log10(eta)}
                for n in SIZES:
                    label = f"{name}, eta = {eta}, d = {d}, n = {n}"
                    yield Cell(label, true, gaussian(law, n, eta, d), measure)


# The weak level: theta ~ N(0, 1), noise of every law, outputs N(y / 2, eta / 2), averaged or drawn from once.


def weak(law: Law, n: int, eta: float, draws: int) -> Callable[[Generator], list[Interval]]:
    def draw(rng: Generator) -> list[Interval]:
        theta = rng.standard_normal((n, 1))
        mean, sd = (theta + law(rng, (n, 1))) / 2, np.full((n, 1), math.sqrt(eta / 2))
        one = mean + sd * rng.standard_normal((n, 1))
        known = {"truth": theta, "mean": mean, "sd": sd, "weak_value": one, "weak_u": special.ndtr(one)}
        ran = replicates(["theta"], (theta - mean) / sd, draws=np.full((n, 1), draws), **known)
        return measures.weak_distance(Column(ran, 0), CONFIDENCE)

    return draw


def true_weak_distance(name: str, eta: float) -> float:
    """The law of one draw of the output against N(0, 1), the noise at many of its quantiles."""
    noise = QUANTILE[name]((np.arange(20_000) + 0.5) / 20_000)
    t = np.linspace(-4, 4, 1601)
    law = [special.ndtr((x - noise / 2) / math.sqrt(0.25 + eta / 2)).mean() for x in t]
    return float(np.abs(law - special.ndtr(t)).max())


def weaks() -> Iterator[Cell]:
    for draws in (0, 9):
        for name, law in LAWS.items():
            for eta in (1.0, 0.5):
                distance_of_laws = 0.0 if (name, eta) == ("Gaussian", 1.0) else true_weak_distance(name, eta)
                key = "weak KS, one draw" if draws else "weak KS"
                for n in SIZES:
                    label = f"{name}, eta = {eta}, n = {n}, distance {distance_of_laws:.4f}"
                    yield Cell(label, {key: distance_of_laws}, weak(law, n, eta, draws), {key: entry(0)})


GROUPS: dict[str, Callable[[], Iterator[Cell]]] = {
    "size": lambda: sizes(SIZES),
    "use": uses,
    "joint": joint_uses,
    "family": families,
    "gaussian": gaussians,
    "weak": weaks,
    "small": lambda: sizes((20, 50), {"coverage": coverage}),
}
DEFAULT = ("size", "use", "joint", "family", "gaussian", "weak")


def main(repetitions: str = "200", *groups: str) -> None:
    summary = Summary()
    for group in groups or DEFAULT:
        rng = np.random.default_rng([1, *group.encode()])
        for cell in GROUPS[group]():
            shares = measured(cell, int(repetitions), rng)
            summary.add(cell, shares)
            found = (f"{name} ({cell.true[name]:.4g}) {share:.3f}" for name, share in shares.items())
            print(f"{cell.label}: {'; '.join(found)}", flush=True)
    print(summary)


if __name__ == "__main__":
    main(*sys.argv[1:])
