"""The weak level on averages: false alarms, and how many replicates find an error, by ``check``'s own route.

``python -m benchmarks.weak [--runs 2000] [--only sizes|powers]``. theta ~ N(0, R) in d dimensions, data leave a share v
of its variance, M draws of each output. Sizes at 5, 1 and 0.5 %, the standard error of the first beside it; powers at
three n, from a quarter of the runs, and the n for 80 % read from them by probit interpolation on log n. "One draw" is
what the level had before: every coordinate at one draw of each output by the default test, Bonferroni, and the maximum
mean discrepancy of all of them.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

import ringtrue as rt
from ringtrue.judgement.averages import averages_of
from ringtrue.statistics import twosample, uniformity
from ringtrue.values import Floats, Generator

ALPHAS = (0.05, 0.01, 0.005)


@dataclass(frozen=True)
class Case:
    """A procedure: dimension, share v of variance that data leave, draws, correlations, and what is wrong with it."""

    name: str
    d: int
    v: float
    draws: int = 9
    rho: float = 0.0
    eta: float = 1.0
    drops: bool = False
    turned: float = 1.0
    belief: str = "normal"

    def study(self, seed: int, n: int) -> rt.Study:
        """Return the question, one batch of it."""
        if self.belief == "cauchy":
            return rt.Study(_Cauchy(), _seen, _Among(self.draws), batch=n, seed=seed, f=[rt.Coordinate()])
        root = np.linalg.cholesky((1 - self.rho) * np.eye(self.d) + self.rho)
        noise = np.sqrt(self.v / (1 - self.v)) * root
        inside = np.sqrt(self.v * self.eta) * (np.eye(self.d) if self.drops else root)
        weight = self.turned * (1 - self.v)

        def procedure(mu0: Any, y: Floats, rng: Generator) -> Floats:
            return np.asarray(weight * y + rng.normal(size=(self.draws, *y.shape)) @ inside.T)

        def model(theta: Floats, rng: Generator) -> Floats:
            return np.asarray(theta + rng.normal(size=theta.shape) @ noise.T)

        f = [rt.Coordinate(index=(k,)) for k in range(self.d)]
        return rt.Study(rt.Gaussian(np.zeros(self.d), root @ root.T), model, procedure, batch=n, seed=seed, f=f)


class _Cauchy:
    """A belief without moments."""

    def sample(self, m: int, rng: Generator) -> Floats:
        return rng.standard_cauchy(m)

    def marginal(self, f: Any) -> None:
        return None


def _seen(theta: Floats, rng: Generator) -> Floats:
    return theta + rng.normal(size=theta.shape)


@dataclass(frozen=True)
class _Among:
    """Draws of the posterior of a Cauchy parameter seen with unit noise, by inverting its cdf on a grid."""

    draws: int

    def __call__(self, mu0: Any, y: Floats, rng: Generator) -> Floats:
        away = np.linspace(-8, 8, 801)
        weights = np.exp(-(away**2) / 2) / (1 + (y[:, None] + away) ** 2)
        cdf = np.cumsum(weights, axis=1)
        cdf /= cdf[:, -1:]
        u = rng.random((self.draws, len(y)))
        return np.stack([y[i] + np.interp(u[:, i], cdf[i], away) for i in range(len(y))], axis=1)


def pvalues(case: Case, n: int, runs: int, test: Callable[[rt.Replicates], float]) -> Floats:
    """Return the p-values of so many runs."""
    return np.array([test(rt.run(case.study(seed, n), n=n, progress="off")) for seed in range(runs)])


def averages(ran: rt.Replicates) -> float:
    """Test averages."""
    found = averages_of(ran)
    assert found is not None
    return found.tested.pvalue


def one_draw(ran: rt.Replicates) -> float:
    """Test one draw of each output, as the level did before."""
    single = [uniformity.combination(ran.weak_u[:, k], z=ran.weak_z[:, k]).pvalue for k in range(len(ran.functions))]
    if len(single) > 1:
        rng, most = np.random.default_rng(ran.seed), 1000
        single.append(twosample.mmd(ran.weak_value[:most], ran.reference[:most], rng=rng, permutations=199).pvalue)
    return min(1.0, len(single) * min(single))


def sizes(runs: int) -> None:
    """Print how often right procedures are rejected."""
    cases = [Case(f"d = {d}, v = .5", d, 0.5, draws) for d in (1, 2, 5) for draws in (1, 9, 99)]
    cases += [Case("mirror, d = 2", 2, 0.5, rho=0.5, turned=-1.0), Case("d = 1, v = .1", 1, 0.1)]
    cases += [Case("Cauchy belief by its draws", 1, 0.5, draws, belief="cauchy") for draws in (1, 9)]
    print(f"{'size':28} {'M':>3} {'n':>5}   at 5 %  (se)      1 %     0.5 %")
    for case in cases:
        for n in (50, 200, 1000):
            p = pvalues(case, n, runs, averages)
            rates = [float(np.mean(p <= alpha)) for alpha in ALPHAS]
            se = np.sqrt(0.05 * 0.95 / runs)
            print(
                f"{case.name:28} {case.draws:3} {n:5}   {rates[0]:.4f} ({se:.4f})  {rates[1]:.4f}  {rates[2]:.4f}",
                flush=True,
            )


WRONG: list[tuple[Case, tuple[int, int, int]]] = [
    (Case("eta .5, v = .5", 1, 0.5, eta=0.5), (60, 120, 240)),
    (Case("eta .5, v = .25", 1, 0.25, eta=0.5), (150, 300, 600)),
    (Case("eta .5, v = .1", 1, 0.1, eta=0.5), (800, 1600, 3200)),
    (Case("eta .5, v = .1, d = 5", 5, 0.1, eta=0.5), (400, 800, 1600)),
    (Case("rho .5 dropped, v = .5", 2, 0.5, rho=0.5, drops=True), (50, 60, 120)),
    (Case("rho .5 dropped, v = .1, d = 5", 5, 0.1, rho=0.5, drops=True), (150, 300, 600)),
]


def needed(ns: tuple[int, ...], powers: list[float], wanted: float = 0.8) -> str:
    """Return the n at which the power reaches what is wanted, by a line through probits on log n."""
    inside = [(np.log(n), special.ndtri(p)) for n, p in zip(ns, powers, strict=True) if 0.02 < p < 0.995]
    if len(inside) < 2:
        return f"<{ns[0]}" if powers[0] >= wanted else f">{ns[-1]}"
    x, y = np.array(inside).T
    slope, level = np.polyfit(x, y, 1)
    at = float(np.exp((special.ndtri(wanted) - level) / slope)) if slope > 0 else np.inf
    return f"{at:.0f}" if at < 4 * ns[-1] else f">{ns[-1]}"


def powers(runs: int) -> None:
    """Print how often wrong procedures are rejected at 5 %."""
    print(f"{'power at 5 %, M = 9':32} {'n':>16}   averages            n80   one draw            n80")
    for case, ns in WRONG:
        rows = []
        for test in (averages, one_draw):
            found = [float(np.mean(pvalues(case, n, runs, test) <= 0.05)) for n in ns]
            rows.append(f"{' '.join(f'{p:.2f}' for p in found):16} {needed(ns, found):>6}")
        print(f"{case.name:32} {'/'.join(map(str, ns)):>16}   {'   '.join(rows)}", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--only", choices=("sizes", "powers"))
    given = parser.parse_args()
    if given.only != "powers":
        sizes(given.runs)
    if given.only != "sizes":
        powers(max(given.runs // 4, 1))


if __name__ == "__main__":
    main()
