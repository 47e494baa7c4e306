"""Sizes and powers of the tests of the joint law, beside other tools that are installed.

Run: ``python -m benchmarks.joint``; ``--runs`` sets how many runs a row has. Rows are outputs that are right, and those
that are wrong in one way each; a power is that of the whole verdict of ``check_draws`` at 5 %. tarp and hyppo are asked
where they are installed: their p-values at their defaults, and at the threshold that rejects 5 % of right outputs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import ringtrue as rt
from ringtrue.values import Floats, Generator

Draw = Callable[[Generator, int, int], tuple[Floats, Floats]]


def gaussian(truth: Floats, output: Floats) -> Draw:
    """Return draws of truths and outputs of these correlations."""
    one, other = np.linalg.cholesky(truth), np.linalg.cholesky(output)

    def draw(rng: Generator, n: int, m: int) -> tuple[Floats, Floats]:
        d = len(truth)
        centre = rng.normal(size=(n, d))
        return centre + rng.normal(size=(n, d)) @ one.T, centre[:, None] + rng.normal(size=(n, m, d)) @ other.T

    return draw


def ring(rng: Generator, n: int, m: int) -> tuple[Floats, Floats]:
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], axis=1), rng.normal(size=(n, m, 2))


def cross(rng: Generator, n: int, m: int) -> tuple[Floats, Floats]:
    first, sign = rng.normal(size=n), rng.choice([-1.0, 1.0], n)
    second = sign * (0.8 * first + 0.6 * rng.normal(size=n))
    return np.stack([first, second], axis=1), rng.normal(size=(n, m, 2))


def scaled(spread: float) -> Draw:
    """Return outputs whose first of ten entries has an sd that is too small by this factor."""

    def draw(rng: Generator, n: int, m: int) -> tuple[Floats, Floats]:
        theta, draws = rng.normal(size=(n, 10)), rng.normal(size=(n, m, 10))
        draws[..., 0] /= spread
        return theta, draws

    return draw


def correlated(d: int, rho: float) -> Floats:
    return (1 - rho) * np.eye(d) + rho


def one_pair(d: int, rho: float) -> Floats:
    found = np.eye(d)
    found[0, 1] = found[1, 0] = rho
    return found


TEN = np.eye(10)
#: name, data, n, draws, the share that is expected: at most for sizes, at least for powers.
ROWS: list[tuple[str, Draw, int, int, tuple[float, float]]] = [
    ("right, d = 10, M = 9", gaussian(TEN, TEN), 50, 9, (0.0, 0.05)),
    ("right, d = 10, M = 99", gaussian(TEN, TEN), 50, 99, (0.0, 0.05)),
    ("right, rho = .9, d = 2", gaussian(correlated(2, 0.9), correlated(2, 0.9)), 50, 99, (0.0, 0.05)),
    ("rho .5 dropped, d = 2", gaussian(correlated(2, 0.5), np.eye(2)), 60, 99, (0.75, 1.0)),
    ("cross, d = 2", cross, 90, 99, (0.75, 1.0)),
    ("one pair of ten, rho .5", gaussian(one_pair(10, 0.5), TEN), 130, 99, (0.75, 1.0)),
    ("ring, d = 2", ring, 35, 99, (0.75, 1.0)),
    ("one of ten: sd / 1.41", scaled(2**0.5), 65, 99, (0.0, 1.0)),
]


def rejected(draw: Draw, n: int, m: int, runs: int) -> tuple[Floats, float]:
    """Return p-values of the verdict and seconds of CPU per run."""
    rng, p = np.random.default_rng(1), []
    start = time.process_time()
    for _ in range(runs):
        theta, draws = draw(rng, n, m)
        p.append(rt.check_draws(theta, draws).pvalue)
    return np.array(p), (time.process_time() - start) / runs


def of_tarp(theta: Floats, draws: Floats) -> float:
    """Return the p-value of tarp's coverage at its defaults, by the distance of its curve from the diagonal."""
    import tarp  # type: ignore[import-not-found]
    from scipy import stats

    ecp, alpha = tarp.get_tarp_coverage(np.swapaxes(draws, 0, 1), theta, seed=1)
    return float(stats.kstest(ecp, alpha).pvalue)


def of_hyppo(theta: Floats, draws: Floats) -> float:
    """Return the p-value of hyppo's MMD of truths and one draw of each output, 100 permutations."""
    from hyppo.ksample import MMD

    return float(MMD().test(theta, draws[:, 0], reps=100, auto=False).pvalue)


def peers() -> dict[str, Callable[[Floats, Floats], float]]:
    """Return the other tools that are installed."""
    found: dict[str, Callable[[Floats, Floats], float]] = {}
    for name, call in (("tarp", of_tarp), ("hyppo", of_hyppo)):
        try:
            __import__(name)
        except ImportError:
            print(f"{name} is not installed and left out")
        else:
            found[name] = call
    return found


def beside(name: str, call: Any, runs: int) -> None:
    """Print the powers of another tool, at its own threshold and at that which rejects 5 % of right outputs."""
    rng = np.random.default_rng(2)
    null = np.array([call(*gaussian(np.eye(2), np.eye(2))(rng, 60, 99)) for _ in range(runs)])
    threshold = float(np.quantile(null, 0.05))
    for label, draw, n, m, _ in ROWS[3:7]:
        p = np.array([call(*draw(rng, n, m)) for _ in range(runs)])
        corrected, own = (p <= threshold).mean(), (p <= 0.05).mean()
        print(f"{name:<8} {label:<26} n = {n:<5} at 5 %: {own:.2f}   level corrected: {corrected:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    for label, draw, n, m, (low, high) in ROWS:
        p, seconds = rejected(draw, n, m, runs)
        share = float((p <= 0.05).mean())
        noise = 2.6 * np.sqrt(max(share * (1 - share), 0.01) / runs)
        ok = "ok" if low - noise <= share <= high + noise else "MISSED"
        print(f"{label:<26} n = {n:<5} M = {m:<4} rejected {share:.3f} (wanted {low:g}-{high:g}) {ok} {seconds:.2f} s")
    for name, call in peers().items():
        beside(name, call, max(runs // 4, 20))


if __name__ == "__main__":
    main()
