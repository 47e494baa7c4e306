"""What many tests build: a study with a known answer, records with given positions, and results to share.

A record is built without a simulation, so that its law is known; a result that several files look at is made once per
process.
"""

import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue.functions import Sees
from ringtrue.judgement.column import Column, columns_of
from ringtrue.procedures import NormalMean
from ringtrue.replicates.record import Asked, Failure, Header, Replicates
from ringtrue.statistics.effects import Interval
from ringtrue.values import Floats, Generator

#: The belief, the noise and the posterior of one number seen once, all of variance 1, 1 and 1/2; and all three at once.
BELIEF, SD, BAYES = rt.Normal(0, 1), math.sqrt(0.5), NormalMean()
#: Arrays of a record that have one number per replicate and test function.
_SINGLE = ("weak_value", "weak_u", "weak_z", "truth", "mean", "sd", "crps", "interval")


def noisy(theta: Any, rng: Generator) -> Any:
    """Return theta with noise of its own for every entry."""
    return theta + rng.normal(size=np.shape(theta))


def posterior(mu0: Any, y: Any) -> rt.Normal:
    """Return the exact posterior of :data:`BELIEF` and :func:`noisy`, entry by entry."""
    return rt.Normal(np.asarray(y) / 2, np.full(np.shape(y), SD))


def too_narrow(mu0: Any, y: Any) -> rt.Normal:
    """Return a posterior with half its standard deviation: the broken twin."""
    return rt.Normal(np.asarray(y) / 2, np.full(np.shape(y), SD / 2))


def kolmogorov(u: Floats) -> float:
    """Return the Kolmogorov distance of a sample from U(0,1)."""
    ordered, n = np.sort(u.ravel()), u.size
    above = np.arange(1, n + 1) / n - ordered
    return float(max(above.max(), (1 / n - above).max()))


def largest_excess(p: Any) -> float:
    """Return the largest ratio of P(p <= alpha) to alpha, over all alpha below 1, of equally likely p-values."""
    p = np.sort(np.asarray(p, float))
    # Two ways of summing the same p-value are one p-value.
    reached = np.searchsorted(p, p * (1 + 1e-9), side="right") / len(p)
    return float((reached / p)[p < 1].max(initial=0.0))


def refusal(call: Callable[[], Any], error: type[Exception] = rt.errors.InvalidStudy) -> str:
    """Return the message of the refusal."""
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def says(message: str, *patterns: str) -> None:
    """Check that the message holds every pattern: expected, arrived, what to do."""
    missing = [pattern for pattern in patterns if not re.search(pattern, message)]
    assert not missing, f"{missing} not in: {message}"


# Records with given numbers.


def replicates(
    u: Any,
    *,
    z: Any = None,
    rank: Any = None,
    draws: Any = 0,
    names: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    sees: Sequence[Sees] | None = None,
    lost: Sequence[int] = (),
    reference: Any = None,
    **known: Any,
) -> Replicates:
    """Return replicates with these positions, a column per test function; what is not given is not known."""
    u = np.array(u, float).reshape(len(u), -1)
    n, k = u.shape
    arrays: dict[str, Any] = {name: np.full((n, k), np.nan) for name in _SINGLE}
    arrays |= {name: np.array(np.broadcast_to(value, n * k), float).reshape(n, k) for name, value in _flat(known)}
    arrays |= {"u": u, "z": special.ndtri(u) if z is None else np.array(z, float).reshape(n, k)}
    arrays |= {"energy": np.full(n, np.nan), "belief_energy": np.full(n, np.nan)}
    for values in arrays.values():
        values[list(lost)] = np.nan
    arrays["rank"] = np.full((n, k), -1) if rank is None else np.array(rank, np.int64).reshape(n, k)
    arrays["draws"] = np.broadcast_to(draws, (n, k)).astype(np.int64)
    arrays["treated"] = np.zeros(n, np.int64)
    return Replicates(
        Header(_asked(k, names, kinds, sees)),
        arrays,
        tuple(Failure(i, "procedure", "ValueError: no", "") for i in lost),
        reference=np.empty((0, k)) if reference is None else np.array(reference, float).reshape(-1, k),
    )


def _flat(known: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, np.ravel(value)) for name, value in known.items()]


def _asked(
    k: int, names: Sequence[str] | None, kinds: Sequence[str] | None, sees: Sequence[Sees] | None
) -> tuple[Asked, ...]:
    """Return the test functions; those of theta alone are its entries if nothing else is said."""
    seen: Sequence[Sees] = sees or ["theta"] * k
    usual = ["coordinate" if one == "theta" else "function" for one in seen]
    every = zip(names or [f"f{j}" for j in range(k)], kinds or usual, seen, strict=True)
    return tuple(Asked(name, kind, what) for name, kind, what in every)


def ranked(rank: Any, draws: int, **known: Any) -> Replicates:
    """Return replicates with these ranks, spread over their cells at random."""
    rank = np.array(rank, np.int64).reshape(len(rank), -1)
    u = (rank + np.random.default_rng(0).random(rank.shape)) / (draws + 1)
    return replicates(u, rank=rank, draws=draws, **known)


def scores(z: Any, **known: Any) -> Replicates:
    """Return replicates of exact standard normal outputs whose truths have these scores."""
    z = np.asarray(z, float)
    return replicates(special.ndtr(z), **{"z": z, "truth": z, "mean": 0.0, "sd": 1.0, "names": ["theta"], **known})


def complete(n: int, k: int = 1, **settings: Any) -> Replicates:
    """Return calibrated replicates of the normal mean, with everything known, k times."""
    rng = np.random.default_rng(7)
    mean, sd = rng.normal(0, 0.5**0.5, (n, k)), np.full((n, k), 0.5**0.5)
    z, drawn = rng.normal(size=(n, k)), mean + sd * rng.normal(size=(n, k))
    known = {"truth": mean + sd * z, "mean": mean, "sd": sd, "weak_value": drawn, "crps": np.abs(z)}
    known |= {"weak_u": special.ndtr(drawn), "weak_z": drawn, "reference": rng.normal(size=(n, k))}
    return replicates(special.ndtr(z), **{**known, **settings})


def normal(n: int) -> Floats:
    """Return the normal quantiles: the law itself, without noise."""
    return np.asarray(special.ndtri((np.arange(n) + 0.5) / n))


def grid(n: int, *, spread: float = 1.0, bias: float = 0.0) -> Floats:
    """Return u at the quantiles of z ~ N(bias, spread^2): the law itself, without noise."""
    return np.asarray(special.ndtr(bias + spread * normal(n)))


def column(ran: Replicates, k: int = 0) -> Column:
    """Return a column as a judgement reads it."""
    return columns_of(ran)[k]


# Runs of the normal mean, in one batch.


@cache
def checked(procedure: Any, n: int, **settings: Any) -> rt.Result:
    """Check a batched procedure of the normal mean, once for every question."""
    return rt.check(BELIEF, BAYES.simulate, procedure, n=n, batch=min(n, 4096), **settings)


# Rows, and what is drawn of them.

#: Rows as comparisons have them.
ROWS = [
    Interval("spread", 1.01, 0.9, 1.1, 1.0, f="theta", of="Bayes"),
    Interval("spread", 1.4, 1.3, 1.5, 1.0, f="theta", of="narrow"),
    Interval("spread", math.nan, 0.0, math.inf, 1.0, f="theta", of="none"),
    Interval("crps", 0.4, 0.38, 0.42, f="theta", of="Bayes"),
]


def drawn(ax: Any, label: str) -> list[tuple[list[float], list[float]]]:
    """Return the coordinates of all lines with this label."""
    found = [one for one in ax.lines if one.get_label() == label]
    return [(list(map(float, one.get_xdata())), list(map(float, one.get_ydata()))) for one in found]


def line(ax: Any, label: str) -> Any:
    """Return the coordinates of the line with this label."""
    (one,) = [one for one in ax.lines if one.get_label() == label]
    return np.asarray(one.get_xdata()), np.asarray(one.get_ydata())


# Results to report on: the usual three, and what a hostile or careless user could hand over.

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


@cache
def over_confident() -> rt.Result:
    """Return a result that is miscalibrated beyond doubt."""
    return rt.check(BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, 0.4), n=400)


@cache
def calibrated() -> rt.Result:
    """Return a result within a generous tolerance."""
    tolerance = rt.Tolerance(spread=0.5, bias=0.5, coverage=0.2)
    return rt.check(BELIEF, noisy, posterior, n=400, tolerance=tolerance)


@cache
def failing() -> rt.Result:
    """Return a result with failures of several causes, whose messages are hostile."""

    def procedure(mu0: Any, y: Any, rng: np.random.Generator) -> Any:
        if y > 1.5:
            raise ValueError(HOSTILE[int(abs(1000 * y)) % len(HOSTILE)])
        return y / 2 + 0.5**0.5 * rng.normal(size=19)

    return rt.check(BELIEF, noisy, procedure, n=100, on_failure="record")


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
    return rt.check_draws(theta, draws, f=[rt.Coordinate(index=(i,)) for i in range(500)])


@cache
def exact_level() -> rt.Result:
    """Return a result on the exact level alone, which has no measures."""
    residual = {"residual": lambda theta, y: theta - y}
    return rt.check(BELIEF, noisy, posterior, n=50, f=residual)


EXAMPLES = (over_confident, calibrated, failing, hostile, single, wide, exact_level)
#: A page of 500 test functions takes its time.
MANY = pytest.mark.parametrize(
    "example",
    [pytest.param(one, id=one.__name__, marks=[pytest.mark.slow] if one is wide else []) for one in EXAMPLES],
)
