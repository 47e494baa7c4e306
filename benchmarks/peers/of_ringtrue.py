"""ringtrue, at its defaults."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import ringtrue as rt
from ringtrue import plots, twosample, uniformity
from ringtrue.procedures import ode
from ringtrue.replicates.positions import count_entries
from ringtrue.statistics.uniformity import ecdf

PACKAGES = ("ringtrue", "numpy", "scipy")


def verdict(theta: Any, draws: Any) -> tuple[float, float]:
    p = rt.check_draws(theta, draws).pvalue
    return -p, p


def ks(u: Any) -> Any:
    return uniformity.ks(u)


def ranks(data: tuple[Any, Any]) -> Any:
    theta, draws = data
    return count_entries(draws, theta)


def band(ranks: Any) -> Any:
    for known in (value for value in vars(ecdf).values() if hasattr(value, "cache_clear")):
        known.cache_clear()  # what an earlier call found is not used
    return uniformity.band(len(ranks), draws=100)


def check(data: tuple[Any, Any]) -> Any:
    return rt.check_draws(*data)


def mmd(data: tuple[Any, Any]) -> Any:
    return twosample.mmd(*data, rng=np.random.default_rng(0), permutations=1000)


def per_solve(solver: Any) -> float:
    problems = ode.equation(ode.lotka_volterra().sample(10_000, np.random.default_rng(0)))
    start = time.process_time()
    solver(None, problems).process.moments(5.0)  # before the end, so that the smoother runs as well
    return (time.process_time() - start) / len(problems)


def says(theta: Any, draws: Any) -> str:
    return str(rt.check_draws(theta, draws)).split("\n\n")[0]


def draw(theta: Any, draws: Any, path: str) -> None:
    figure = plots.ecdf_difference(rt.check_draws(theta, draws), ["theta[0]", "theta[1]"])
    getattr(figure, "figure", figure).savefig(path)


TESTS = {"ringtrue check_draws": verdict}
COSTS = {"ks": ks, "ranks": ranks, "band": band, "check": check, "joint": check, "mmd": mmd}
COSTS |= {"ek0": lambda data: per_solve(ode.EK0()), "ek1": lambda data: per_solve(ode.EK1())}
