"""Reported probabilities: sizes of the tests, powers, and how often an error at the limit is certified.

``python -m benchmarks.probabilities [--runs 1000]`` prints Markdown tables. The right log odds are N(0, 1.5^2), the
reported ones as named. ``ranks`` is the indicator's randomised rank among 99 draws, the usual way of asking about
discrete quantities. Standard errors are those of a share of so many runs: at most 0.016 for 1000.
"""

import argparse
import math
import zlib
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats
from scipy.special import expit, ndtri

import ringtrue as rt
from ringtrue.statistics import probabilities, uniformity

Floats = NDArray[np.float64]
Generator = np.random.Generator
#: From log odds that are right to those that are reported.
Report = Callable[[Floats], Floats]

SD = 1.5
REPORTS: Mapping[str, tuple[Report, int]] = {
    "x1.5 (over-confident)": (lambda x: 1.5 * x, 230),
    "x2": (lambda x: 2 * x, 70),
    "x.5 (timid)": (lambda x: 0.5 * x, 160),
    "+.5": (lambda x: x + 0.5, 260),
    "+ .8 sin(3 logit)": (lambda x: x + 0.8 * np.sin(3 * x), 1100),
}
#: Errors by name, with a size to be found: reported log odds for a size, which is that of 2.5 points on average.
LIMITS: Mapping[str, Callable[[Floats, float], Floats]] = {
    "slope above 1": lambda x, size: (1 + size) * x,
    "slope below 1": lambda x, size: x / (1 + size),
    "shift": lambda x, size: x + size,
    "the upper fifth only": lambda x, size: np.where(x > SD * ndtri(0.8), x - size, x),
    "rare outcomes": lambda x, size: x - size,
}


def drawn(n: int, rng: Generator, report: Report, centre: float = 0.0) -> tuple[Floats, Floats]:
    """Return outcomes and reported log odds."""
    x = centre + SD * rng.normal(size=n)
    return (rng.random(n) < expit(x)).astype(float), report(x)


def stream(*key: object) -> Generator:
    """Return random numbers that belong to a row."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def pvalues(t: Floats, odds: Floats, rng: Generator) -> dict[str, float]:
    """Return the p-values that are compared."""
    p, ones = expit(odds), rng.binomial(99, expit(odds))
    u = np.where(t == 1, 99 - ones + rng.random(len(t)) * (ones + 1), rng.random(len(t)) * (100 - ones))
    found = probabilities.scores(t, p)
    few = rng.binomial(9, p)
    return {
        "in the large": math.erfc(abs(found.in_the_large) / math.sqrt(2)),
        "Spiegelhalter": math.erfc(abs(found.spiegelhalter) / math.sqrt(2)),
        "Cox": math.exp(-found.cox / 2),
        "default": probabilities.probability_test(t, p, rng=rng).pvalue,
        "99 draws": probabilities.probability_test(t, probabilities.pooled(t, ones, 99), rng=rng).pvalue,
        "9 draws": probabilities.probability_test(t, probabilities.pooled(t, few, 9), rng=rng).pvalue,
        "9 draws, k/M (wrong)": probabilities.probability_test(t, few / 9, rng=rng).pvalue,
        "ranks": uniformity.combination(np.floor(u).astype(np.int64), draws=99).pvalue,
    }


def shares(name: str, report: Report, n: int, runs: int) -> dict[str, float]:
    """Return how often each test rejects at 5 %."""
    rng = stream(name, n)
    found = [pvalues(*drawn(n, rng, report), rng) for _ in range(runs)]
    return {test: float(np.mean([one[test] <= 0.05 for one in found])) for test in found[0]}


def print_tests(runs: int) -> None:
    """Print sizes and powers."""
    cases: list[tuple[str, Report, int]] = [("right", lambda x: x, n) for n in (40, 400)]
    cases += [(name, report, n) for name, (report, n) in REPORTS.items()]
    for k, (name, report, n) in enumerate(cases):
        row = shares(name, report, n, runs)
        if k == 0:
            print(f"| rejected at 5 %, {runs} runs | n | {' | '.join(row)} |\n|---|---|{'---|' * len(row)}")
        print(f"| {name} | {n} | {' | '.join(f'{share:.3f}' for share in row.values())} |", flush=True)


def at_limit(name: str, error: float) -> Report | None:
    """Return the report whose grouped error is this, among 100,000 outcomes; None if no size has it."""
    x = (-4.0 if name == "rare outcomes" else 0.0) + SD * ndtri((np.arange(100_000) + 0.5) / 100_000)

    def beyond(size: float) -> float:
        p = expit(LIMITS[name](x, size))
        order = np.argsort(p)
        parts = np.array_split((expit(x) - p)[order], 5)
        return float(sum(abs(part.sum()) for part in parts) / len(x) - error)

    if beyond(8.0) < 0:
        return None
    size = float(optimize.brentq(beyond, 0.0, 8.0))
    return lambda y: LIMITS[name](y, size)


def verdicts(report: Report, n: int, runs: int, rng: Generator, centre: float, draws: int | None) -> list[rt.Verdict]:
    """Return the verdicts of several runs."""
    found = []
    for _ in range(runs):
        t, odds = drawn(n, rng, report, centre)
        p = expit(odds) if draws is None else rng.binomial(draws, expit(odds)) / draws
        found.append(rt.check_probabilities(t, p, draws=draws).verdict)
    return found


def print_verdicts(runs: int) -> None:
    """Print how often which verdict is reached."""
    print(f"\n| verdict, {runs} runs | n | draws | within tolerance | miscalibrated |\n|---|---|---|---|---|")
    cases: list[tuple[str, Report, int, float]] = [("right", lambda x: x, n, 0.0) for n in (230, 4000, 8000)]
    cases += [("x1.5", lambda x: 1.5 * x, 230, 0.0), ("x2", lambda x: 2 * x, 70, 0.0)]
    for name in LIMITS:
        centre = -4.0 if name == "rare outcomes" else 0.0
        for error, n in ((0.0125, 400), (0.0125, 2000), (0.025, 2000), (0.025, 8000), (0.05, 1000)):
            if (report := at_limit(name, error)) is not None:
                cases.append((f"{name}, {100 * error:g} points", report, n, centre))
    for name, report, n, centre in cases:
        for draws in (None, 50):
            found = verdicts(report, n, runs, stream(name, n, draws), centre, draws)
            asked = (rt.Verdict.WITHIN_TOLERANCE, rt.Verdict.MISCALIBRATED)
            within, wrong = (np.mean([one is which for one in found]) for which in asked)
            print(f"| {name} | {n} | {draws or 'exact'} | {within:.3f} | {wrong:.3f} |", flush=True)


def print_checks(runs: int) -> None:
    """Print how often `check` of a model with one boolean parameter reaches which verdict."""
    print(f"\n| check of one switch, {runs} runs | n | outputs | miscalibrated | and too sure |\n|---|---|---|---|---|")
    for factor, n in ((1.0, 230), (1.5, 230), (2.0, 70)):
        for draws in (None, 99):
            rng, found = stream("check", factor, n, draws), []
            for seed in range(runs):
                found.append(checked(n, factor, draws, seed, rng))
            wrong = [one for one in found if one.verdict is rt.Verdict.MISCALIBRATED]
            named = sum("too sure: " in one.sentence for one in wrong)
            route = "exact" if draws is None else f"{draws} draws"
            rates = f"{len(wrong) / runs:.3f} | {named / runs:.3f}"
            print(f"| log odds x{factor:g} | {n} | {route} | {rates} |", flush=True)


def checked(n: int, factor: float, draws: int | None, seed: int, rng: Generator) -> rt.Result:
    """Return the check of a switch whose right log odds are N(0, 1.5^2), by draws, or about so, by exact laws."""
    if draws is not None:
        t, odds = drawn(n, rng, lambda x: factor * x)
        return rt.check_draws(t, (rng.random((n, draws)) < expit(odds)[:, None]).astype(float), iid=True)
    # Two normals of unit variance 2 m apart have log odds 2 m y; with m = 0.66 their sd is 1.6.
    m = 0.66
    return rt.check(
        stats.bernoulli(0.5),
        lambda theta, rng: rng.normal(m * (2 * theta - 1)),
        lambda mu0, y: stats.bernoulli(expit(factor * 2 * m * y)),
        n=n,
        seed=seed,
        batch=n,
        progress=False,
    )


def print_slopes(runs: int) -> None:
    """Print how slopes are estimated from draws."""
    print(f"\n| slope of log odds, {runs} runs of n = 400 | right | exact | 99 draws | 19 draws | 9 draws |")
    print("|---|---|---|---|---|---|")
    for factor in (0.67, 1.0, 1.5, 2.0):
        rng, cells = stream("slope", factor), []
        for draws in (None, 99, 19, 9):
            found = []
            for _ in range(runs):
                t, odds = drawn(400, rng, lambda x, factor=factor: factor * x)  # type: ignore[misc]
                p = expit(odds) if draws is None else rng.binomial(draws, expit(odds)) / draws
                found.append(rt.check_probabilities(t, p, draws=draws).measure("log odds slope"))
            covered = np.mean([m.low <= 1 / factor <= m.high for m in found])
            cells.append(f"{np.median([m.estimate for m in found]):.2f} (covered {covered:.2f})")
        print(f"| x{factor:g} | {1 / factor:.2f} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", choices=["tests", "verdicts", "checks", "slopes"])
    asked = parser.parse_args()
    tables = {"tests": print_tests, "verdicts": print_verdicts, "checks": print_checks, "slopes": print_slopes}
    for name, table in tables.items():
        if asked.only in (None, name):
            table(asked.runs)


if __name__ == "__main__":
    main()
