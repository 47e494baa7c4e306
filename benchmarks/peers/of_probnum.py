"""probnum's adaptive ODE filters, one problem at a time."""

from __future__ import annotations

import time

import numpy as np
from probnum import diffeq

PACKAGES = ("probnum", "numpy")
SOLVES = 10


def per_solve(method: str) -> float:
    # The problems of ringtrue.procedures.ode.lotka_volterra: its start, its span, rates of its law.
    rates = np.exp(np.random.default_rng(0).normal([0, -2, 0, -2], [0.25, 0.1, 0.25, 0.1], (SOLVES, 4)))
    start = time.process_time()
    for a, b, c, d in rates:
        diffeq.probsolve_ivp(
            lambda t, x, a=a, b=b, c=c, d=d: np.array([a * x[0] - b * x[0] * x[1], d * x[0] * x[1] - c * x[1]]),
            0.0,
            10.0,
            np.array([10.0, 10.0]),
            df=lambda t, x, a=a, b=b, c=c, d=d: np.array([[a - b * x[1], -b * x[0]], [d * x[1], d * x[0] - c]]),
            method=method,
        )
    return (time.process_time() - start) / SOLVES


COSTS = {"ek0": lambda data: per_solve("EK0"), "ek1": lambda data: per_solve("EK1")}
