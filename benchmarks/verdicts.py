"""Verdicts through the public interface on data whose answer is known: how often which.

``python -m benchmarks.verdicts [chains ...] [--runs 100]``. One function per section; without names, all of them. A
star marks a rate whose 99 % lower binomial bound is above what it may be.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

import ringtrue as rt

from . import verdicts_compare, verdicts_inputs

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


# Laws that are known exactly, and draws.

SD = 0.5**0.5


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal(size=theta.shape)


def normal(spread: float = 1.0, bias: float = 0.0) -> Callable[..., Any]:
    """Return a procedure whose reported sd must be multiplied by ``spread``, and that lies ``bias`` of it too low."""
    return lambda mu0, y: rt.Normal(y / 2 - bias * SD / spread, SD / spread)


def drawn(draws: int) -> Callable[..., Any]:
    """Return the exact posterior of several entries by its draws."""
    return lambda mu0, y, rng: rng.normal(y / 2, SD, size=(draws, *y.shape))


def shares(procedure: Callable[..., Any], n: int, runs: int, *, belief: Any = None, **settings: Any) -> Counter[str]:
    """Return how often each verdict was given."""
    belief = belief or rt.Normal(0, 1)
    return Counter(
        rt.check(belief, _model, procedure, n=n, batch=n, seed=seed, **settings).verdict.value for seed in range(runs)
    )


def shown(count: int, runs: int) -> str:
    """Return a share in per cent, with the end of its one-sided 99 % interval."""
    high = 1.0 if count == runs else float(special.betainccinv(count + 1, runs - count, 0.01))
    return f"{100 * count / runs:5.1f} (< {100 * high:4.1f})"


def tolerance(runs: int) -> Iterator[str]:
    """Errors of half the tolerance are called by chance only; those of twice the tolerance keep their power."""
    yield ("MISCALIBRATED, %: half the tolerance (at most 20 at any n, 5 from n = 1000), twice the tolerance")
    errors = {"spread 1.05": (1.05, 0.0), "bias 0.05": (1.0, 0.05), "spread 1.2": (1.2, 0.0), "bias 0.2": (1.0, 0.2)}
    for name, error in errors.items():
        cells = []
        for n in (100, 250, 500, 1000, 2000, 4000):
            found = shares(normal(*error), n, runs)
            cells.append(f"n = {n}: {shown(found['MISCALIBRATED'], runs)}")
        yield f"  {name:12s} " + "; ".join(cells)


def certificates(runs: int) -> Iterator[str]:
    """A calibrated procedure is certified at the n that is planned; one at a limit is not."""
    yield ("WITHIN_TOLERANCE, %: calibrated, at the planned n (80)")
    few = max(runs // 4, 10)
    one, ten = (rt.planning.plan_certificate(parameters=k, draws=m).n for k, m in ((1, None), (10, 99)))
    found = shares(normal(), int(one), runs)
    certified, called = shown(found["WITHIN_TOLERANCE"], runs), found["MISCALIBRATED"]
    yield (f"  1 parameter, exact, n = {one:.0f}: {certified}; called: {called}")
    belief = rt.Normal(np.zeros(10), np.ones(10))
    found = shares(drawn(99), int(ten), few, belief=belief)
    yield (
        f"  10 parameters, 99 draws, n = {ten:.0f}: {shown(found['WITHIN_TOLERANCE'], few)}; "
        f"called: {found['MISCALIBRATED']}"
    )
    yield ("WITHIN_TOLERANCE, %: errors at a limit (at most 5)")
    for name, error in {"spread 1.1": (1.1, 0.0), "spread 1/1.1": (1 / 1.1, 0.0), "bias 0.1": (1.0, 0.1)}.items():
        cells = [f"n = {n}: {shown(shares(normal(*error), n, runs)['WITHIN_TOLERANCE'], runs)}" for n in (1000, 4000)]
        yield f"  {name:12s} " + "; ".join(cells)


def _some_wild(share: float, far: float, *, lost: bool = False, draws: int | None = None) -> Callable[..., Any]:
    def procedure(mu0: Any, y: Any, rng: Any) -> Any:
        off = rng.random(y.shape) < share
        mean = np.where(off, np.nan if lost else y / 2 + far * SD, y / 2)
        return rt.Normal(mean, SD) if draws is None else rng.normal(mean, SD, size=(draws, *y.shape))

    return procedure


def wild(runs: int) -> Iterator[str]:
    """Rare wild outputs: returned they are found, lost they are never certified away."""
    few = max(runs // 4, 10)
    yield ("WITHIN_TOLERANCE, %: some outputs are far off (at most 5 where n times their share is 3 or more)")
    for share, far, n in ((0.0055, 30.0, 4000), (0.001, 16.0, 2000), (0.0005, 25.0, 2000), (0.003, 30.0, 2000)):
        for draws in (None, 99):
            found = shares(_some_wild(share, far, draws=draws), n, few)
            route = "exact" if draws is None else f"{draws} draws"
            none = 100 * (1 - share) ** n
            yield (
                f"  {share:.2%} at {far:g} sd, n = {n}, {route}: {shown(found['WITHIN_TOLERANCE'], few)}; in "
                f"{none:.0f} % of runs none is"
            )
    found = shares(_some_wild(0.0055, 30.0, lost=True), 4000, few, on_failure="record")
    yield (f"  the first, lost instead of returned: {shown(found['WITHIN_TOLERANCE'], few)}")


def many(runs: int) -> Iterator[str]:
    """Every entry is asked about, in whatever units."""
    scale = np.ones(21)
    scale[7] = 1e-3
    belief = rt.Normal(np.zeros(21), scale)
    sd = SD * scale
    sd[7] /= 1.3

    def model(theta: Any, rng: Any) -> Any:
        return theta + scale * rng.normal(size=theta.shape)

    found = Counter(
        rt.check(belief, model, lambda mu0, y: rt.Normal(y / 2, sd), n=1000, batch=1000, seed=seed).verdict.value
        for seed in range(20)
    )
    yield (f"21 entries, one in small units and 30 % over-confident, n = 1000: {dict(found)}")


# Discrete parameters.


def _counted(rng: np.random.Generator, n: int, draws: int) -> tuple[Any, Any]:
    """Return truths and draws of Poisson laws."""
    mean = rng.gamma(3, size=(n, 1))
    return rng.poisson(mean[:, 0]), rng.poisson(mean, size=(n, draws))


def _switched(rng: np.random.Generator, n: int, draws: int, factor: float = 1.0) -> tuple[Any, Any]:
    """Return truths and draws of 0 and 1; outputs multiply the log odds, N(0, 1.5^2), by a factor."""
    odds = 1.5 * rng.normal(size=(n, 1))
    return special.expit(odds[:, 0]) > rng.random(n), special.expit(factor * odds) > rng.random((n, draws))


def ties(runs: int) -> Iterator[str]:
    """Discrete parameters: the level, what the seed changes, and how often wrong probabilities are found."""
    yield "discrete parameters, calibrated: p <= .05 in % (at most 5); seeds change the p-value of how many runs"
    for name, make in (("Poisson", _counted), ("switch", _switched)):
        for n, draws in ((30, 9), (300, 99), (1000, 99)):
            found = []
            for run in range(runs):
                theta, drawn_ = make(np.random.default_rng([run, n, draws]), n, draws)
                found.append([rt.check_draws(theta, drawn_, f=rt.identity, seed=seed).pvalue for seed in (0, 1)])
            p = np.array(found)
            called = shown(int(np.sum(p[:, 0] <= 0.05)), runs)
            yield f"  {name:8s} n = {n:4d}, {draws:2d} draws: {called}; {int(np.sum(p[:, 0] != p[:, 1]))} of {runs}"
    yield "switch with log odds too large or small: p <= .05 in %"
    for factor, n in ((1.5, 230), (2.0, 70), (0.5, 160)):
        data = (_switched(np.random.default_rng([run, n]), n, 99, factor) for run in range(runs))
        hits = sum(rt.check_draws(*pair, f=rt.identity).pvalue <= 0.05 for pair in data)
        yield f"  times {factor:g}, n = {n}: {100 * hits / runs:.0f}"


# A run that is judged again and again while it grows.


def ever(error: tuple[float, float], sizes: Sequence[int], seed: int, store: Path) -> list[set[str]]:
    """Return the verdicts on one run at growing n, as its file remembers them and as if it did not."""
    study = rt.Study(rt.Normal(0, 1), _model, normal(*error), batch=sizes[-1], seed=seed)
    ran = rt.run(study, n=sizes[-1], store=store)
    return [{rt.judge(one.part(0, n)).verdict.value for n in sizes} for one in (ran, replace(ran, stored=None))]


def looks(runs: int) -> Iterator[str]:
    """Looks at a run that grows: false alarms and false certificates at any of them, with a file and without memory."""
    doubling, steady = [50 * 2**k for k in range(6)], [100 * k for k in range(1, 21)]
    cases: list[tuple[str, tuple[float, float], list[int], str]] = [
        ("calibrated, 6 looks, n = 50 to 1600", (1.0, 0.0), doubling, "MISCALIBRATED"),
        ("calibrated, 20 looks, n = 100 to 2000", (1.0, 0.0), steady, "MISCALIBRATED"),
        ("spread 1.1, 6 looks, n = 200 to 6400", (1.1, 0.0), [4 * n for n in doubling], "WITHIN_TOLERANCE"),
        ("bias 0.1, 6 looks, n = 200 to 6400", (1.0, 0.1), [4 * n for n in doubling], "WITHIN_TOLERANCE"),
    ]
    yield "any look, %: at most 5 if looks are remembered"
    for name, error, sizes, wrong in cases:
        with tempfile.TemporaryDirectory() as folder:
            found = [ever(error, sizes, seed, Path(folder) / f"{seed}.db") for seed in range(runs)]
        kept, forgotten = (sum(wrong in one[j] for one in found) for j in (0, 1))
        yield f"  {name}: {wrong} {shown(kept, runs)}; without memory {shown(forgotten, runs)}"


# What is printed elsewhere.


def inputs(runs: int) -> Iterator[str]:
    """Mistakes in the inputs, each with what is said first, and how often their look-alikes are accused."""
    verdicts_inputs.inputs(max(runs // 5, 2))
    yield ""


def comparing(runs: int) -> Iterator[str]:
    """Comparisons of procedures: who is told apart, and how often equal ones are."""
    verdicts_compare.compare(runs / 300)
    yield ""


SECTIONS: dict[str, Callable[[int], Iterator[str]]] = {
    "chains": chains,
    "tolerance": tolerance,
    "certificates": certificates,
    "wild": wild,
    "many": many,
    "ties": ties,
    "looks": looks,
    "inputs": inputs,
    "compare": comparing,
}


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
