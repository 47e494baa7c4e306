"""Verdicts through the public interface on data whose answer is known: how often which.

``python -m benchmarks.verdicts [chains ...] [--runs 100]``. One function per section; without names, all of them. A
star marks a rate whose 99 % lower binomial bound is above what it may be.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import special

import ringtrue as rt

#: Replicates that one cell may cost at most, as a multiple of the runs: large n have fewer runs.
_REPLICATES = 400


@dataclass(frozen=True)
class Case:
    """Chains of N(y, 1) and truths of N(y + bias, spread^2): how many replicates, chains and draws."""

    n: int
    chains: int
    draws: int
    rho: float
    spread: float = 1.0
    bias: float = 0.0

    def __str__(self) -> str:
        error = "" if (self.spread, self.bias) == (1.0, 0.0) else f", spread {self.spread:.3g}, bias {self.bias:g}"
        return f"n = {self.n:4d}, {self.chains} x {self.draws} draws, AR({self.rho:g}){error}"


def of_chains(case: Case, run: int) -> rt.Result:
    """Judge one run of stationary chains."""
    rng = np.random.default_rng([run, case.n, case.chains, round(1000 * case.rho) + 1000])
    states = rng.standard_normal((case.draws, case.n, case.chains))
    for t in range(1, case.draws):
        states[t] = case.rho * states[t - 1] + np.sqrt(1 - case.rho**2) * states[t]
    y = rng.standard_normal(case.n)
    theta = y + case.bias + case.spread * rng.standard_normal(case.n)
    draws = y[:, None, None] + np.moveaxis(states, 0, 2)
    return rt.check_draws(theta, draws, chains=case.chains, f=rt.identity)


def verdicts(case: Case, runs: int) -> dict[str, float]:
    """Return the share of each verdict, and of p-values of at most 5 %, over some runs."""
    results = [of_chains(case, run) for run in range(runs)]
    shares = {verdict.value: float(np.mean([r.verdict is verdict for r in results])) for verdict in rt.Verdict}
    return {"p <= .05": float(np.mean([r.pvalue <= 0.05 for r in results]))} | shares


def chains(runs: int) -> Iterator[str]:
    """Markov chains: the level for any autocorrelation, certificates, and power."""
    rhos, shapes = (-0.9, -0.5, 0.5, 0.9, 0.97), ((2, 50), (4, 100))
    calibrated = [Case(n, *shape, rho) for n in (100, 1000, 4000) for shape in shapes for rho in rhos]
    single = [Case(n, 1, 300, rho) for n in (100, 1000) for rho in (-0.9, 0.9, 0.97)]
    wrong = [Case(110, 4, 100, 0.9, 2**0.5), Case(80, 4, 100, 0.9, 1.0, 0.5), Case(800, 4, 100, 0.9, 0.8**-0.5)]
    limit = [Case(2000, 4, 100, 0.9, 1.1), Case(2000, 4, 100, 0.9, 1 / 1.1), Case(2000, 4, 100, 0.9, 1.0, 0.1)]
    yield "chains: shares in %; calibrated ones may have p <= .05 in 6.5 %"
    yield from _table(calibrated, runs, allowed={"p <= .05": 0.065})
    yield "one chain, cut in two; those that are worth too few draws are not tested"
    yield from _table(single, runs, allowed={"p <= .05": 0.065})
    yield "power: half the variance, a bias of half an sd, 20 % less variance"
    yield from _table(wrong, runs, allowed={})
    yield "at the limit of the tolerance: certificates may be given in 5 %"
    yield from _table(limit, runs, allowed={"WITHIN_TOLERANCE": 0.05})


def _table(cases: list[Case], runs: int, allowed: dict[str, float]) -> Iterator[str]:
    many = [max(min(runs, _REPLICATES * runs // case.n), 10) for case in cases]
    yield f"{'':44}{'runs':>6}{'p <= .05':>10}{'MISCAL.':>9}{'WITHIN':>8}{'OPEN':>7}"
    with ProcessPoolExecutor() as pool:
        for case, count, shares in zip(cases, many, pool.map(verdicts, cases, many), strict=True):
            cells = [f"{100 * share:.1f}{_star(share, count, allowed.get(name))}" for name, share in shares.items()]
            widths = zip(cells, (10, 9, 8, 7), strict=True)
            yield f"{case!s:44}{count:6d}" + "".join(f"{cell:>{width}}" for cell, width in widths)


def _star(share: float, runs: int, allowed: float | None) -> str:
    """Return a star if a rate is surely above what is allowed."""
    hits = round(share * runs)
    low = float(special.betaincinv(hits, runs - hits + 1, 0.01)) if hits else 0.0
    return "*" if allowed is not None and low > allowed else ""


SECTIONS: dict[str, Callable[[int], Iterator[str]]] = {"chains": chains}


def main() -> None:
    """Print the sections that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=sorted(SECTIONS), help=f"of {sorted(SECTIONS)}")
    parser.add_argument("--runs", type=int, default=100, help="runs per cell; large n have fewer")
    asked = parser.parse_args()
    for name in asked.sections:
        start = time.perf_counter()
        for line in SECTIONS[name](asked.runs):
            print(line, flush=True)
        print(f"{time.perf_counter() - start:.0f} s\n")


if __name__ == "__main__":
    main()
