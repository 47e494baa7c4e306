"""Suites of calibrated tests: how often they fail by chance, what a passing test costs, and what fails.

``python -m benchmarks.suites [--suites 1000] [--runs 400] [--only chance|suites|power|runs]``. A suite is 50 tests
with a budget of 1e-3. "chance" draws uniform p-values, "suites" computes them from exact positions of replicates, as
"power" does from wrong ones at a false-alarm rate of 1e-5; "runs" are calls of the assertion itself.
"""

import argparse
import math
import statistics
from collections.abc import Callable

import numpy as np
from scipy import special

import ringtrue as rt
from ringtrue.statistics.sequential import expected, stages
from ringtrue.statistics.uniformity import combination
from ringtrue.testing import assert_not_miscalibrated
from ringtrue.values import Floats, Generator

TESTS, BUDGET = 50, 1e-3
Law = Callable[[Generator, int], Floats]

#: Positions of wrong outputs: what they are called and the law of z. eta is the reported variance over the right one.
WRONG: dict[str, Law] = {
    "eta .5": lambda rng, n: math.sqrt(2) * rng.normal(size=n),
    "eta .7": lambda rng, n: rng.normal(size=n) / math.sqrt(0.7),
    "eta .8": lambda rng, n: rng.normal(size=n) / math.sqrt(0.8),
    "eta 2": lambda rng, n: math.sqrt(0.5) * rng.normal(size=n),
    "bias .5": lambda rng, n: 0.5 + rng.normal(size=n),
    "bias .3": lambda rng, n: 0.3 + rng.normal(size=n),
}


def decided(alpha: float, first: int, pvalue: Callable[[int], float]) -> tuple[bool, int]:
    """Return whether a test was rejected, and after how many replicates."""
    n = 0
    for stage in stages(alpha, first=first):
        n += stage.n
        decision = stage.decide(pvalue(stage.n))
        if decision != "go on":
            return decision == "reject", n
    raise AssertionError("the last stage decides")


def chance(suites: int, alpha: float, rng: Generator) -> tuple[float, float]:
    """Return the share of suites in which a uniform p-value is rejected, and the mean number of replicates."""
    failed, n = np.zeros(suites, bool), 0.0
    alive = np.repeat(np.arange(suites), TESTS)
    for stage in stages(alpha):
        n += stage.n * len(alive)
        p = rng.random(len(alive))
        failed[alive[p <= stage.rejects]] = True
        alive = alive[(p > stage.rejects) & (p <= stage.accepts)]
    return float(failed.mean()), n / (suites * TESTS)


def show_chance(rng: Generator) -> None:
    """Print how often suites of uniform p-values fail, beside the closed form and with the broken rule."""
    each = BUDGET / TESTS
    exact = -math.expm1(TESTS * math.log1p(-each))
    print(f"{TESTS} tests, budget {BUDGET:g}: {exact:.3g} of suites fail in closed form, mean n {expected(each):.1f}")
    for name, alpha in (("uniform p-values", each), ("the same without dividing by 7", 7 * each)):
        rates, means = zip(*(chance(100_000, alpha, rng) for _ in range(10)), strict=True)
        rate = float(np.mean(rates))
        print(f"  {name}: {rate:.2e} of 1,000,000 suites (se {math.sqrt(rate / 1e6):.0e}), mean n {np.mean(means):.1f}")


def show_suites(suites: int, rng: Generator) -> None:
    """Print how many suites of calibrated positions fail."""

    def pvalue(n: int) -> float:
        z = rng.normal(size=n)
        return combination(special.ndtr(z), z=z).pvalue

    found = [[decided(BUDGET / TESTS, 100, pvalue) for _ in range(TESTS)] for _ in range(suites)]
    failing = sum(any(rejected for rejected, _ in suite) for suite in found)
    mean = statistics.fmean(n for suite in found for _, n in suite)
    print(f"{failing} of {suites} suites of {TESTS} calibrated tests fail, mean n {mean:.1f} of {suites * TESTS} tests")


def show_power(runs: int, rng: Generator) -> None:
    """Print what fails at 1e-5, and after how many replicates."""
    print(f"false alarm 1e-5, {runs} runs: share that fails, mean n")
    for first in (50, 100, 200):
        for name, law in WRONG.items():

            def pvalue(n: int, law: Law = law) -> float:
                z = law(rng, n)
                return combination(special.ndtr(z), z=z).pvalue

            found = [decided(1e-5, first, pvalue) for _ in range(runs)]
            power, mean = (statistics.fmean(column) for column in zip(*found, strict=True))
            print(f"  first {first:3} {name:8} {power:.3f} {mean:6.0f}", flush=True)


def show_runs(runs: int) -> None:
    """Print what calls of the assertion come to."""
    for name, sd in (("calibrated", math.sqrt(0.5)), ("eta .5", 0.5)):
        found = [called(seed, sd) for seed in range(runs)]
        passed = [n for n in found if n]
        mean = f", mean n {statistics.fmean(passed):.1f} of those that pass" if passed else ""
        if len(passed) > 1:
            mean += f" (se {statistics.stdev(passed) / math.sqrt(len(passed)):.1f})"
        print(f"{name}: {runs - len(passed)} of {runs} calls fail at 1e-5{mean}", flush=True)


def called(seed: int, sd: float) -> int:
    """Return the replicates of a call that passes, 0 if it fails."""
    belief, procedure = rt.Normal(0, 1), lambda mu0, y: rt.Normal(y / 2, sd)
    try:
        return assert_not_miscalibrated(belief, lambda theta, rng: theta + rng.normal(), procedure, seed=seed).n
    except rt.errors.Miscalibrated:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--suites", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", choices=["chance", "suites", "power", "runs"])
    options = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "chance": lambda: show_chance(np.random.default_rng(1)),
        "suites": lambda: show_suites(options.suites, np.random.default_rng(2)),
        "power": lambda: show_power(options.runs, np.random.default_rng(3)),
        "runs": lambda: show_runs(options.runs),
    }
    for name, part in parts.items():
        if options.only in (None, name):
            part()


if __name__ == "__main__":
    main()
