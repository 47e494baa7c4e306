"""The data that every peer is handed, made from seeds: five procedures, errors of a known size, and what is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Generator = np.random.Generator

#: theta ~ N(0, I) in two dimensions, y = theta + noise of unit variance and this correlation.
RHO = -0.8
NOISE = np.array([[1.0, RHO], [RHO, 1.0]])
#: What the posterior is: N(GAIN y, COVARIANCE), marginal sd SD, correlation -.59.
GAIN = np.linalg.inv(np.eye(2) + NOISE)
COVARIANCE = np.eye(2) - GAIN
SD = np.sqrt(np.diag(COVARIANCE))

#: Pairs (replicates, draws) of the table of false alarms.
SHAPES = ((200, 19), (1000, 99), (10_000, 100))


@dataclass(frozen=True)
class Procedure:
    """How an output differs from the posterior: sd of the first entry divided, mean shifted by sds, shape, belief."""

    name: str
    too_narrow: float = 1.0
    bias: float = 0.0
    correlated: bool = True
    informed: bool = True

    def sample(self, n: int, m: int, rng: Generator) -> tuple[Floats, Floats]:
        """Return truths (n, 2) and draws (n, m, 2)."""
        theta = rng.normal(size=(n, 2))
        y = theta + rng.normal(size=(n, 2)) @ np.linalg.cholesky(NOISE).T
        noise = rng.normal(size=(n, m, 2))
        if not self.informed:
            return theta, noise
        root = np.linalg.cholesky(COVARIANCE) if self.correlated else np.diag(SD)
        # Scaled entry by entry, so that narrower outputs keep their correlation.
        spread = noise @ root.T / np.array([self.too_narrow, 1.0])
        return theta, (y @ GAIN.T + np.array([self.bias, 0.0]) * SD)[:, None] + spread


RIGHT = Procedure("right")
FIVE = (
    RIGHT,
    Procedure("over-confident: one sd too small by 1.25", too_narrow=1.25),
    Procedure("biased: one mean 0.2 sd too high", bias=0.2),
    Procedure("correlation dropped", correlated=False),
    Procedure("prior returned, data ignored", informed=False),
)
#: The errors whose replicates for 80 % power are looked for. The prior is calibrated: nobody can find it by ranks.
ERRORS = (
    Procedure("spread 1.25 in one of two", too_narrow=1.25),
    Procedure("spread 1.5 in one of two", too_narrow=1.5),
    Procedure("bias 0.2 sd in one of two", bias=0.2),
    Procedure("bias 0.5 sd in one of two", bias=0.5),
    Procedure("correlation dropped", correlated=False),
)
SIZES = (25, 50, 100, 200, 400, 800, 1600, 3200)
DRAWS = 99


def uniform(n: int) -> Callable[[Generator], Floats]:
    return lambda rng: rng.random(n)


def normal(*shapes: tuple[int, ...]) -> Callable[[Generator], tuple[Floats, ...]]:
    return lambda rng: tuple(rng.normal(size=shape) for shape in shapes)


@dataclass(frozen=True)
class Work:
    """What is timed: words for the page, and the data, made in the process that is measured."""

    words: str
    data: Callable[[Generator], Any]


def nothing(rng: Generator) -> None:
    """Return no data: the work has its own."""


WORKS = {
    "ks": Work("KS test, n = 10^6", uniform(10**6)),
    "ranks": Work("ranks, n = 10^4, M = 1000, d = 10", normal((10_000, 10), (10_000, 1000, 10))),
    "band": Work("simultaneous 95 % band, n = 10^4", lambda rng: rng.integers(0, 101, 10_000)),
    "check": Work("the library's whole check, n = 1000, M = 99, d = 2", lambda rng: RIGHT.sample(1000, 99, rng)),
    "joint": Work("joint test, n = 1000, M = 99, d = 10", normal((1000, 10), (1000, 99, 10))),
    "mmd": Work("MMD, two samples of 1000, 1000 permutations", normal((1000, 2), (1000, 2))),
    "pymc": Work("SBC of a PyMC model, per replicate", nothing),
    "numpyro": Work("SBC of a NumPyro model, per replicate", nothing),
    "ek0": Work("EK0, Lotka-Volterra, per solve", nothing),
    "ek1": Work("EK1, Lotka-Volterra, per solve", nothing),
}
