"""How often each verdict is given, simulated through the public interface.

``python -m benchmarks.verdicts [section ...]`` prints tables of shares with their 99 % upper bounds, in one run.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

import ringtrue as rt

#: Runs per cell: a share of 5 % is then known to within 1.8 points at 99 %.
RUNS = 400
SD = 0.5**0.5


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal(size=theta.shape)


def normal(spread: float = 1.0, bias: float = 0.0) -> Callable[..., Any]:
    """Return a procedure whose reported sd must be multiplied by ``spread``, and that lies ``bias`` of it too low."""
    return lambda mu0, y: rt.Normal(y / 2 - bias * SD / spread, SD / spread)


def drawn(draws: int, entries: int) -> Callable[..., Any]:
    """Return the exact posterior of several entries by its draws."""
    return lambda mu0, y, rng: rng.normal(y / 2, SD, size=(draws, *y.shape))


def shares(
    procedure: Callable[..., Any], n: int, *, runs: int = RUNS, belief: Any = None, **settings: Any
) -> Counter[str]:
    """Return how often each verdict was given."""
    belief = belief or rt.Normal(0, 1)
    return Counter(
        rt.check(belief, _model, procedure, n=n, batch=n, seed=seed, **settings).verdict.value for seed in range(runs)
    )


def shown(count: int, runs: int) -> str:
    """Return a share in per cent, with the end of its one-sided 99 % interval."""
    high = 1.0 if count == runs else float(special.betainccinv(count + 1, runs - count, 0.01))
    return f"{100 * count / runs:5.1f} (< {100 * high:4.1f})"


def tolerance() -> None:
    """Errors of half the tolerance are called by chance only; those of twice the tolerance keep their power."""
    print("MISCALIBRATED, %: half the tolerance (at most 20 at any n, 5 from n = 1000), twice the tolerance")
    errors = {"spread 1.05": (1.05, 0.0), "bias 0.05": (1.0, 0.05), "spread 1.2": (1.2, 0.0), "bias 0.2": (1.0, 0.2)}
    for name, error in errors.items():
        cells = []
        for n in (100, 250, 500, 1000, 2000, 4000):
            found = shares(normal(*error), n)
            cells.append(f"n = {n}: {shown(found['MISCALIBRATED'], RUNS)}")
        print(f"  {name:12s}", "; ".join(cells))


def certificates() -> None:
    """A calibrated procedure is certified at the n that is planned; one at a limit is not."""
    print("WITHIN_TOLERANCE, %: calibrated, at the planned n (80)")
    one, ten = (rt.planning.plan_certificate(parameters=k, draws=m).n for k, m in ((1, None), (10, 99)))
    found = shares(normal(), int(one))
    certified, called = shown(found["WITHIN_TOLERANCE"], RUNS), found["MISCALIBRATED"]
    print(f"  1 parameter, exact, n = {one:.0f}: {certified}; called: {called}")
    belief = rt.Normal(np.zeros(10), np.ones(10))
    found = shares(drawn(99, 10), int(ten), runs=RUNS // 4, belief=belief)
    print(
        f"  10 parameters, 99 draws, n = {ten:.0f}: {shown(found['WITHIN_TOLERANCE'], RUNS // 4)}; "
        f"called: {found['MISCALIBRATED']}"
    )
    print("WITHIN_TOLERANCE, %: errors at a limit (at most 5)")
    for name, error in {"spread 1.1": (1.1, 0.0), "spread 1/1.1": (1 / 1.1, 0.0), "bias 0.1": (1.0, 0.1)}.items():
        cells = [f"n = {n}: {shown(shares(normal(*error), n)['WITHIN_TOLERANCE'], RUNS)}" for n in (1000, 4000)]
        print(f"  {name:12s}", "; ".join(cells))


def _some_wild(share: float, far: float, *, lost: bool = False, draws: int | None = None) -> Callable[..., Any]:
    def procedure(mu0: Any, y: Any, rng: Any) -> Any:
        off = rng.random(y.shape) < share
        mean = np.where(off, np.nan if lost else y / 2 + far * SD, y / 2)
        return rt.Normal(mean, SD) if draws is None else rng.normal(mean, SD, size=(draws, *y.shape))

    return procedure


def wild() -> None:
    """Rare wild outputs: returned they are found, lost they are never certified away."""
    print("WITHIN_TOLERANCE, %: some outputs are far off (at most 5 where n times their share is 3 or more)")
    for share, far, n in ((0.0055, 30.0, 4000), (0.001, 16.0, 2000), (0.0005, 25.0, 2000), (0.003, 30.0, 2000)):
        for draws in (None, 99):
            found = shares(_some_wild(share, far, draws=draws), n, runs=RUNS // 4)
            route = "exact" if draws is None else f"{draws} draws"
            none = 100 * (1 - share) ** n
            print(
                f"  {share:.2%} at {far:g} sd, n = {n}, {route}: {shown(found['WITHIN_TOLERANCE'], RUNS // 4)}; in "
                f"{none:.0f} % of runs none is"
            )
    found = shares(_some_wild(0.0055, 30.0, lost=True), 4000, runs=RUNS // 4, on_failure="record")
    print(f"  the first, lost instead of returned: {shown(found['WITHIN_TOLERANCE'], RUNS // 4)}")


def many() -> None:
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
    print(f"21 entries, one in small units and 30 % over-confident, n = 1000: {dict(found)}")


SECTIONS: dict[str, Callable[[], None]] = {
    "tolerance": tolerance,
    "certificates": certificates,
    "wild": wild,
    "many": many,
}


def main(names: list[str]) -> None:
    """Print the sections asked for, or all."""
    for name in names or SECTIONS:
        SECTIONS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
