"""Replicates needed for 80 % power at 5 %: every test against twelve alternatives, exact u.

``python -m benchmarks.power [--repeats 3000] [--workers 1]`` prints Markdown tables. z = Phi^{-1}(u) follows the
alternative. For every test and alternative a search with few samples finds about the right n; there, at that n and a
fifth below and above, `repeats` samples each are tested, and a straight line through the probit of the power against
sqrt(n) is read off where it crosses 80 %. Its standard error follows from the binomial errors of the three.

``--tests check`` is one parameter in a check with the default family: the combination at the share that the parameter
has of the level. What the weak test and the distance add is left out; it is little at one parameter.

Whether a sample is rejected is the package's answer. Where a p-value takes milliseconds, samples are put in order of
their statistic, along which p grows, and the place where it passes the level is found by bisection.
"""

import argparse
import bisect
import time
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from ringtrue.statistics import uniformity
from ringtrue.statistics.planning import AUTO_SHARE, OWN_SHARE, STRONG_SHARE
from ringtrue.statistics.uniformity.minimum import adjusted_minimum

Floats = NDArray[np.float64]
Sampler = Callable[[int, np.random.Generator], Floats]

LEVEL, POWER = 0.05, 0.8
LARGEST = 3000
#: Tests side by side in a table.
WIDTH = 6
ORDER = (
    *("combination", "ecdf_gamma", "neyman", "cook", "mean_z", "anderson_darling"),
    *("cramer_von_mises", "ks", "kuiper", "watson", "binned_chi2"),
)
#: These take z as well: a saturated u does not say how far out it is.
SCORED = ("combination", "cook", "mean_z")
#: What the combination looks at; it rejects if one of them does at a level of its own.
COMPONENTS = ("ecdf_gamma", "neyman", "cook", "mean_z")
#: Up to here `ecdf_gamma` looks at every value, beyond at a grid.
EVERY_VALUE = 2000


class Needed(NamedTuple):
    """The n of 80 % power and its standard error; infinite where it is beyond what was tried."""

    n: float
    error: float


def scaled(eta: float, bias: float = 0.0) -> Sampler:
    """Return z of an output whose variance is eta times the right one and whose mean is off by bias."""
    return lambda n, rng: bias + rng.standard_normal(n) / np.sqrt(eta)


def outliers(n: int, rng: np.random.Generator) -> Floats:
    """Return z with 5 % of wild values."""
    z = rng.standard_normal(n)
    return np.where(rng.random(n) < 0.05, 5 * z, z)


def bimodal(n: int, rng: np.random.Generator) -> Floats:
    """Return z of mean 0 and variance 1 with two modes."""
    return 0.8 * rng.choice([-1.0, 1.0], n) + 0.6 * rng.standard_normal(n)


ALTERNATIVES: dict[str, Sampler] = {
    "variance 0.5 of the right one": scaled(0.5),
    "variance 0.8": scaled(0.8),
    "variance 0.9": scaled(0.9),
    "variance 1.25": scaled(1.25),
    "variance 2": scaled(2.0),
    "bias 0.2 sd": scaled(1.0, 0.2),
    "bias 0.5 sd": scaled(1.0, 0.5),
    "variance 0.8, bias 0.3 sd": scaled(0.8, 0.3),
    "skewed": lambda n, rng: (rng.standard_gamma(4.0, n) - 4) / 2,
    "heavy tails": lambda n, rng: rng.standard_t(3, n) / np.sqrt(3),
    "5 % wild outliers": outliers,
    "two modes": bimodal,
}


def needed(test: str, alternative: str, *, repeats: int) -> Needed:
    """Return the n at which a test sees an alternative with 80 % power."""
    rng = np.random.default_rng(zlib.crc32(f"{test} {alternative}".encode()))
    seen = partial(_power, test, ALTERNATIVES[alternative], rng=rng)
    if seen(LARGEST, repeats=150) < POWER - 0.1:  # three standard errors
        return Needed(np.inf, np.nan)
    found = Needed(_search(lambda n: seen(n, repeats=100)), np.nan)
    for _ in range(5):
        sizes = np.unique(np.rint(found.n * np.array([0.8, 1.0, 1.2])).astype(int))
        found = _crossing(sizes, np.array([seen(int(n), repeats=repeats) for n in sizes]), repeats)
        if found.n > LARGEST and seen(LARGEST, repeats=repeats) < POWER:
            return Needed(np.inf, np.nan)
        if sizes[0] <= found.n <= sizes[-1]:
            return found
    return Needed(found.n, np.inf)


def _search(power: Callable[[int], float]) -> float:
    """Halve the interval of log n; a wrong turn is mended by the fit that follows."""
    low, high = np.log(10), np.log(LARGEST)
    for _ in range(7):
        middle = (low + high) / 2
        low, high = (low, middle) if power(round(np.exp(middle))) > POWER else (middle, high)
    return float(np.exp((low + high) / 2))


def _power(test: str, sampler: Sampler, n: int, *, repeats: int, rng: np.random.Generator) -> float:
    z = sampler(n * repeats, rng).reshape(repeats, n)
    return float(np.mean(_rejected(test, z, LEVEL)))


def _rejected(test: str, z: Floats, level: float) -> NDArray[np.bool_]:
    """Say of each row whether the test rejects it."""
    n = z.shape[1]
    if test == "check":
        return _rejected("combination", z, level * (STRONG_SHARE + AUTO_SHARE) * OWN_SHARE)
    if test == "combination" and n <= EVERY_VALUE:
        each = optimize.brentq(lambda p: adjusted_minimum(p, n, None) - level, 1e-3 * level, level)
        return np.asarray(np.any([_rejected(component, z, each) for component in COMPONENTS], axis=0))
    if test == "ks" or (test == "ecdf_gamma" and n <= EVERY_VALUE):
        order = np.argsort(-EXTREMENESS[test](np.sort(special.ndtr(z), axis=1)))
        found = np.zeros(len(z), bool)
        found[order[: bisect.bisect_right(order, level, key=lambda i: _pvalue(test, z[i]))]] = True
        return found
    return np.array([_pvalue(test, row) <= level for row in z])


def _ks(ordered: Floats) -> Floats:
    n = ordered.shape[1]
    gaps = np.arange(1, n + 1) / n - ordered
    return np.asarray(np.maximum(gaps.max(axis=1), 1 / n - gaps.min(axis=1)))


def _gamma(ordered: Floats) -> Floats:
    i = np.arange(1, ordered.shape[1] + 1)
    tails = special.betainc(i, i[::-1], ordered), special.betaincc(i, i[::-1], ordered)
    return np.asarray(-np.minimum(*tails).min(axis=1))


EXTREMENESS: dict[str, Callable[[Floats], Floats]] = {"ks": _ks, "ecdf_gamma": _gamma}


def _pvalue(test: str, z: Floats) -> float:
    extra = {"z": z} if test in SCORED else {}
    return float(uniformity.TESTS[test](special.ndtr(z), **extra).pvalue)


def _crossing(sizes: NDArray[np.int64], power: Floats, repeats: int) -> Needed:
    """Read a weighted straight line through the probits off where it reaches 80 %."""
    power = np.clip(power, 0.5 / repeats, 1 - 0.5 / repeats)
    probit = special.ndtri(power)
    density = np.exp(-(probit**2) / 2) / np.sqrt(2 * np.pi)
    weights = density / np.sqrt(power * (1 - power) / repeats)
    # Probits relative to the target: the line crosses zero at the answer.
    x = np.sqrt(sizes)
    (slope, height), cov = np.polyfit(x - x.mean(), probit - special.ndtri(POWER), 1, w=weights, cov="unscaled")
    shift = -height / slope
    variance = (cov[1, 1] + 2 * shift * cov[0, 1] + shift**2 * cov[0, 0]) / slope**2
    # Far outside the three the line says only which way to go.
    root = np.clip(x.mean() + shift, x[0] / 1.4, x[-1] * 1.4)
    return Needed(float(root**2), float(2 * root * np.sqrt(variance)))


def _cells(row: Iterable[Needed]) -> list[str]:
    """Write a row, with the smallest in bold."""
    row = list(row)
    best = min(cell.n for cell in row)
    texts = [f"{cell.n:,.0f}" if np.isfinite(cell.n) else f"> {LARGEST:,}" for cell in row]
    return [f"**{text}**" if cell.n == best else text for text, cell in zip(texts, row, strict=True)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3000)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--tests", nargs="*", choices=(*ORDER, "check"), default=ORDER)
    arguments = parser.parse_args()
    tests, start = arguments.tests, time.perf_counter()
    print(f"replicates for {POWER:.0%} power at {LEVEL:.0%}, exact u; 3 x {arguments.repeats} samples for each number")
    with ProcessPoolExecutor(arguments.workers) as pool:
        cells = list(product(ALTERNATIVES, tests))
        found = pool.map(partial(needed, repeats=arguments.repeats), [t for _, t in cells], [a for a, _ in cells])
        table = dict(zip(cells, found, strict=True))
    texts = {
        name: dict(zip(tests, _cells([table[name, test] for test in tests]), strict=True)) for name in ALTERNATIVES
    }
    for some in filter(None, (tests[:WIDTH], tests[WIDTH:])):
        print(f"\n| what is wrong | {' | '.join(some)} |\n|{'---|' * (len(some) + 1)}")
        for name in ALTERNATIVES:
            print(f"| {name} | {' | '.join(texts[name][test] for test in some)} |")
    errors = [cell.error / cell.n for cell in table.values() if np.isfinite(cell.n)]
    print(f"\nstandard error: {np.median(errors):.1%} in the middle, {max(errors):.1%} at most", end="; ")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
