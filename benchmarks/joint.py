"""Sizes and powers of ``check_draws`` on joint and single errors, its cost, beside other tools that are installed.

``python -m benchmarks.joint [--runs 200] [--workers 2] [--only sizes|powers|cost|peers]``. Rows are outputs that are
right, and those that are wrong in one way each; a share is that of p-values of the whole verdict at 5 %, in rows of
data that of the exact level. tarp, sbi's TARP and C2ST and hyppo's MMD are asked where they are installed, at
their defaults and at the threshold that rejects 5 % of right outputs.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context

import numpy as np

import ringtrue as rt
from ringtrue.values import Floats, Generator

Draw = Callable[[Generator, int, int], tuple[Floats, ...]]
Peer = Callable[[Floats, Floats], tuple[float, float]]
Row = tuple[str, Draw, int, int, tuple[float, float]]


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


def biased(rng: Generator, n: int, m: int) -> tuple[Floats, Floats]:
    """Return outputs whose first of ten entries is half an sd too low."""
    theta, draws = rng.normal(size=(n, 10)), rng.normal(size=(n, m, 10))
    draws[..., 0] -= 0.5
    return theta, draws


def leaning(rng: Generator, n: int, m: int) -> tuple[Floats, ...]:
    """Return outputs whose second entry is 0.28 sd too high or too low by the sign of the first of y, and y."""
    theta = rng.normal(size=(n, 2))
    y = theta + rng.normal(size=(n, 2))
    shift = np.stack([np.zeros(n), 0.28 * np.sign(y[:, 0])], axis=1)
    return theta, y[:, None] / 2 + np.sqrt(0.5) * (rng.normal(size=(n, m, 2)) + shift[:, None]), y


def partial(rng: Generator, n: int, m: int) -> tuple[Floats, ...]:
    """Return posteriors from the first of two numbers, and both."""
    theta = rng.normal(size=n)
    y = theta[:, None] + rng.normal(size=(n, 2))
    return theta, y[:, :1] / 2 + np.sqrt(0.5) * rng.normal(size=(n, m)), y


TEN = np.eye(10)
#: name, data, n, draws, the share that is expected: at most for sizes, at least for powers.
SIZES: list[Row] = [
    ("right, d = 10, M = 9", gaussian(TEN, TEN), 50, 9, (0.0, 0.05)),
    ("right, d = 10, M = 99", gaussian(TEN, TEN), 50, 99, (0.0, 0.05)),
    ("right, rho = .9, d = 2", gaussian(correlated(2, 0.9), correlated(2, 0.9)), 50, 99, (0.0, 0.05)),
]
POWERS: list[Row] = [
    ("rho .5 dropped, d = 2", gaussian(correlated(2, 0.5), np.eye(2)), 60, 99, (0.75, 1.0)),
    ("cross, d = 2", cross, 90, 99, (0.75, 1.0)),
    ("one pair of ten, rho .5", gaussian(one_pair(10, 0.5), TEN), 130, 99, (0.75, 1.0)),
    ("ring, d = 2", ring, 35, 99, (0.75, 1.0)),
    ("one of ten: variance / 2", scaled(2**0.5), 68, 99, (0.75, 1.0)),
    ("one of ten: bias .5 sd", biased, 98, 99, (0.75, 1.0)),
    ("data: sign of y[0]", leaning, 330, 99, (0.75, 1.0)),
    ("data: half ignored", partial, 40, 99, (0.75, 1.0)),
]


def one(draw: Draw, n: int, m: int, seed: int) -> tuple[float, float]:
    """Return the p-value of a verdict, of the exact level where there are data, and seconds of CPU."""
    theta, draws, *y = draw(np.random.default_rng([1, seed]), n, m)
    start = time.process_time()
    result = rt.check_draws(theta, draws, y=y[0] if y else None)
    p = result.levels["exact"].pvalue if y else result.pvalue
    return p, time.process_time() - start


def rows(wanted: list[Row], runs: int, workers: int) -> None:
    """Print the shares of rejections."""
    numbers = {label: k for k, (label, *_) in enumerate([*SIZES, *POWERS])}
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        for label, _, n, m, (low, high) in wanted:
            found = list(pool.map(_numbered, [numbers[label]] * runs, range(runs), chunksize=10))
            p, seconds = np.array(found).T
            share = float((p <= 0.05).mean())
            noise = 2.6 * np.sqrt(max(share * (1 - share), 0.01) / runs)
            ok = "ok" if low - noise <= share <= high + noise else "MISSED"
            print(
                f"{label:<26} n = {n:<5} M = {m:<4} rejected {share:.3f} (wanted {low:g}-{high:g}) {ok} "
                f"{seconds.mean():.2f} s",
                flush=True,
            )


def _numbered(k: int, seed: int) -> tuple[float, float]:
    _, draw, n, m, _ = [*SIZES, *POWERS][k]
    return one(draw, n, m, seed)


def cost() -> None:
    """Print what a whole check of draws costs."""
    for n, d in ((1000, 10), (1000, 100), (100_000, 2)):
        seconds = one(gaussian(np.eye(d), np.eye(d)), n, 99 if n < 10_000 else 19, 0)[1]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"n = {n}, d = {d}: {seconds:.2f} s of CPU, at most {peak:.0f} MB so far in this process", flush=True)


def of_sbi_c2st(theta: Floats, draws: Floats) -> tuple[float, float]:
    """Return the accuracy of sbi's classifier of truths and one draw of each output; it has no p-value."""
    import torch
    from sbi.utils.metrics import c2st

    return float(c2st(torch.as_tensor(theta), torch.as_tensor(draws[:, 0]))), float("nan")


def documented(module: str, name: str) -> Peer:
    """Return a call of ``benchmarks.peers``, whose library is imported when it is first made."""
    return lambda theta, draws: getattr(import_module(f"benchmarks.peers.{module}"), name)(theta, draws)


PEERS: tuple[tuple[str, str, Peer], ...] = (
    ("ringtrue", "ringtrue", documented("of_ringtrue", "verdict")),
    ("tarp", "tarp", documented("of_tarp", "coverage")),
    ("sbi TARP", "sbi", documented("of_sbi", "tarp")),
    ("sbi C2ST", "sbi", of_sbi_c2st),
    ("hyppo MMD", "hyppo", documented("of_hyppo", "one_draw")),
)


def peers(runs: int) -> None:
    """Print what each tool that is installed finds at its own 5 %, and at the threshold of 5 % of right outputs."""
    print(f"{'':<10} {'an error':<26} n      right: own 5 %   wrong: own 5 %   level corrected   CPU s")
    for name, module, call in PEERS:
        try:
            __import__(module)
        except ImportError:
            print(f"{name} is not installed and left out")
            continue
        for label, draw, n, m, _ in POWERS[:4]:
            print(f"{name:<10} {label:<26} {n:<6} {_beside(call, draw, n, m, runs)}", flush=True)


def _beside(call: Peer, draw: Draw, n: int, m: int, runs: int) -> str:
    rng, start = np.random.default_rng(2), time.process_time()
    d = draw(rng, 2, 2)[0].shape[1]
    right, wrong = gaussian(np.eye(d), np.eye(d)), draw
    null, found = (np.array([call(*one(rng, n, m)[:2]) for _ in range(runs)]) for one in (right, wrong))
    corrected = np.mean(found[:, 0] > np.quantile(null[:, 0], 0.95))
    own = [f"{np.mean(part[:, 1] <= 0.05):.2f}" if np.isfinite(part[:, 1]).all() else "   -" for part in (null, found)]
    seconds = (time.process_time() - start) / (2 * runs)
    return f"{own[0]:>14} {own[1]:>16} {corrected:>17.2f} {seconds:>7.2f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", choices=("sizes", "powers", "cost", "peers"))
    given = parser.parse_args()
    for name, wanted in (("sizes", SIZES), ("powers", POWERS)):
        if given.only in (None, name):
            rows(wanted, given.runs, given.workers)
    if given.only in (None, "cost"):
        cost()
    if given.only in (None, "peers"):
        peers(max(given.runs // 4, 20))


if __name__ == "__main__":
    main()
