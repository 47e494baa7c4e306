"""Results to report on: the usual three, and what a hostile or careless user could hand over."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import ringtrue as rt

HOSTILE = (
    "<script>alert(1)</script>",
    "\"quotes' & ampersands <b>",
    "--> ]]> </svg></style><img src=x onerror=alert(1)>",
    "$\\frac{$ _^ {{ 7*7 }} {% raw %}",
    "ünïcødé 数学 🎲 \u202ereversed",
    "control \x00\x07\x1b\n\r\t characters",
    "lone \udc80 surrogate",
    "   ",
    "long " * 4000,
)


def model(theta: Any, rng: np.random.Generator) -> Any:
    """Observe theta with noise."""
    return theta + rng.normal()


@cache
def over_confident() -> rt.Result:
    """Return a result that is miscalibrated beyond doubt."""
    return rt.check(rt.Normal(0, 1), model, lambda mu0, y: rt.Normal(y / 2, 0.4), n=400)


@cache
def calibrated() -> rt.Result:
    """Return a result within a generous tolerance."""
    tolerance = rt.Tolerance(spread=0.5, bias=0.5, coverage=0.2)
    return rt.check(rt.Normal(0, 1), model, lambda mu0, y: rt.Normal(y / 2, 0.5**0.5), n=400, tolerance=tolerance)


@cache
def failing() -> rt.Result:
    """Return a result with failures of several causes, whose messages are hostile."""

    def procedure(mu0: Any, y: Any, rng: np.random.Generator) -> Any:
        if y > 1.5:
            raise ValueError(HOSTILE[int(abs(1000 * y)) % len(HOSTILE)])
        return y / 2 + 0.5**0.5 * rng.normal(size=19)

    return rt.check(rt.Normal(0, 1), model, procedure, n=100, on_failure="record")


@cache
def hostile() -> rt.Result:
    """Return a result whose test functions have hostile names."""
    rng = np.random.default_rng(1)
    theta, draws = rng.normal(size=60), rng.normal(size=(60, 19))
    return rt.check_draws(theta, draws, f={name: _scaled(i) for i, name in enumerate(HOSTILE)})


def _scaled(i: int) -> Any:
    return lambda theta: np.sin(theta * (i + 1))


@cache
def single() -> rt.Result:
    """Return the result of one replicate."""
    return rt.check_draws([0.3], [[0.1, 0.5, 0.2]])


@cache
def wide() -> rt.Result:
    """Return a result with 500 test functions, one of which is wrong."""
    rng = np.random.default_rng(1)
    theta, draws = rng.normal(size=(50, 500)), rng.normal(size=(50, 19, 500))
    draws[:, :, 321] *= 0.2
    coordinates = [rt.Coordinate(index=(i,)) for i in range(500)]
    return rt.check_draws(theta, draws, f=coordinates)


@cache
def batched() -> rt.Result:
    """Return a result on the exact level alone, which has no measures."""
    return rt.check(
        rt.Normal(0, 1),
        model,
        lambda mu0, y: rt.Normal(y / 2, 0.5**0.5),
        n=50,
        f={"residual": lambda theta, y: theta - y},
    )


EXAMPLES = (over_confident, calibrated, failing, hostile, single, wide, batched)
#: A page of 500 test functions takes its time.
MANY = pytest.mark.parametrize(
    "example",
    [pytest.param(one, id=one.__name__, marks=[pytest.mark.slow] if one is wide else []) for one in EXAMPLES],
)
