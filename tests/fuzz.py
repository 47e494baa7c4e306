"""Anything that may be passed to `check_draws`, `judge`, `compare` and `report`, and what may come of it.

The tests try a few of these inputs and `benchmarks/fuzz.py` a hundred thousand. Every end is a result that can be
printed and written, or an error of ours with a sentence; warnings are errors, and NumPy's own errors are not ours.
"""

import json
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import ringtrue as rt
from ringtrue.errors import RingtrueError

from .builders import BELIEF, noisy

#: Names of parameters and functions: plain, empty, turning, of other scripts, with what others take for commands.
NAMES = (
    "theta",
    "",
    "a b",
    "\x1b[31m",
    "\u202e",
    "=1+1",
    "θ",
    "😀",
    "a\nb",
    "<b>",
    "%s{}",
    "sum",
    "energy",
    "\ud800",
    "y",
)
_KINDS = (
    "normal",
    "equal",
    "few",
    "nan",
    "some nan",
    "inf",
    "huge",
    "largest",
    "subnormal",
    "zeros",
    "integers",
    "mixed",
)
_DTYPES = ("float64", "float32", "float16", "int8", "int64", "uint8", "bool", "object", "str", "complex128", "masked")


def _values(shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> Any:
    """Return numbers of a kind."""
    x = rng.normal(size=shape)
    some = rng.random(shape) < 0.2
    made: dict[str, Any] = {
        "equal": np.full(shape, 0.3),
        "few": np.round(x),
        "nan": np.full(shape, np.nan),
        "some nan": np.where(some, np.nan, x),
        "inf": np.where(some, np.inf, np.where(rng.random(shape) < 0.2, -np.inf, x)),
        "huge": x * 1e300,
        "largest": np.where(some, np.finfo(float).max, -np.finfo(float).max),
        "subnormal": x * 5e-320,
        "zeros": np.where(some, 0.0, -0.0),
        "integers": rng.integers(-3, 4, shape),
        "mixed": x * 10.0 ** rng.integers(-300, 300, shape),
    }
    return made.get(kind, x)


def _typed(values: Any, dtype: str, rng: np.random.Generator) -> Any:
    """Return numbers as another type; what does not fit is cut, as a user's cast would."""
    with np.errstate(all="ignore"):
        if dtype == "masked":
            return np.ma.masked_array(values, mask=rng.random(np.shape(values)) < 0.2)
        if dtype == "object":
            return np.asarray(values).astype(object)
        if dtype == "str":
            return np.asarray(values).astype(str)
        if dtype in ("int8", "int64", "uint8"):
            return np.nan_to_num(np.asarray(values, float), nan=0, posinf=9, neginf=-9).clip(-99, 99).astype(dtype)
        return np.asarray(values).astype(dtype)


@st.composite
def arrays(draw: DrawFn, n: int, m: int, chains: tuple[int, ...]) -> tuple[Any, Any]:
    """Return truths and draws, mostly of shapes that fit."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    own = draw(st.sampled_from([(), (), (), (1,), (2,), (3,), (2, 2), (0,)]))
    inner = (n, *chains, m, *own)
    if draw(st.integers(0, 15)) == 0:
        inner = draw(st.sampled_from([(n, m), (m, n), (n,), (), (n + 1, m, *own), (m, *own, n)]))
    kinds = st.sampled_from((*("normal",) * 9, *_KINDS))
    types = st.sampled_from((*("float64",) * 20, *_DTYPES))
    first = _typed(_values((n, *own), draw(kinds), rng), draw(types), rng)
    return first, _typed(_values(inner, draw(kinds), rng), draw(types), rng)


@st.composite
def given(draw: DrawFn) -> tuple[int, Any, Any, dict[str, Any]]:
    """Return how many truths there are, truths and draws as arrays, lists, or dicts of them, and what they need."""
    n, m = draw(st.sampled_from([20, 1, 2, 3, 5, 30, 60, 0])), draw(st.sampled_from([9, 1, 2, 3, 19, 40, 0]))
    chains = draw(st.sampled_from([(), (), (), (), (2,), (4,), (1,)]))
    form = draw(st.sampled_from(["array", "array", "array", "list", "dict", "dict", "half a dict"]))
    needs = {"chains": chains[0]} if chains else {}
    if form in ("array", "list"):
        theta, draws = draw(arrays(n, m, chains))
        return (n, theta.tolist(), draws.tolist(), needs) if form == "list" else (n, theta, draws, needs)
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    pairs = {name: draw(arrays(n, m, chains)) for name in names}
    theta, draws = ({name: pair[k] for name, pair in pairs.items()} for k in (0, 1))
    return (n, theta, draws, needs) if form == "dict" else (n, theta, next(iter(draws.values())), needs)


def _total(theta: Any) -> Any:
    """Return a sum that raises nothing, whatever it is of."""
    with np.errstate(all="ignore"):
        return np.sum(theta)


def _settings(n: int) -> dict[str, SearchStrategy[Any]]:
    """Return what may be passed by name, right for n replicates more often than not."""
    functions = [rt.identity, rt.identity, rt.Distance(0.0, 1.0), rt.Coordinate("a b"), {"odd\u202e": _total}]
    orders = [np.arange(n), np.arange(n)[::-1] / 7, [1, 1], "x", np.full(n, np.nan)]
    groups = [np.arange(n) // 2, np.arange(n) // 3, np.zeros(n), ["a"] * n, 3, np.full(n, np.nan)]
    return {
        "f": st.sampled_from([*functions, [], "theta", 3, None]),
        "iid": st.sampled_from([True, True, False, "chains", None]),
        "chains": st.sampled_from([1, 2, 4, 0, -1, 2**63, 1.5, "two"]),
        "seed": st.sampled_from([7, 1, 2, 2**63, -1, 1.5, "s"]),
        "alpha": st.sampled_from([0.05, 0.2, 1e-300, 0.999, 0, 1, np.nan, "a"]),
        "test": st.sampled_from([*rt.uniformity.TESTS, "none", None]),
        "tolerance": st.sampled_from([rt.Tolerance(), rt.Tolerance(spread=1e-9), None, 3]),
        "belief": st.sampled_from([rt.Normal(0, 1), rt.Normal(0, 1), rt.Normal(np.zeros(2), np.ones(2)), 3]),
        "order": st.sampled_from(orders),
        "groups": st.sampled_from(groups),
        "y": st.sampled_from([np.zeros(n), np.ones((n, 2)), np.full(n, np.nan), ["a"] * n, 3]),
        "on_failure": st.sampled_from(["record", "record", "record", "raise", "no"]),
        "weights": st.sampled_from(["random", "random", "ones", "zeros", "nan", "inf", "huge", "negative", "short"]),
    }


@st.composite
def call(draw: DrawFn) -> tuple[Any, Any, dict[str, Any]]:
    """Return the arguments of a call of `check_draws`."""
    n, theta, draws, needs = draw(given())
    every = _settings(n)
    names = draw(st.lists(st.sampled_from(sorted(every)), max_size=2, unique=True))
    settings = needs | {name: draw(every[name]) for name in names}
    if "weights" in settings:
        settings["weights"] = _weights(draws, settings["weights"])
    return theta, draws, settings


def _weights(draws: Any, kind: str) -> Any:
    """Return weights of a kind, one for each draw if there are two axes."""
    first = next(iter(draws.values())) if isinstance(draws, dict) else draws
    shape = np.shape(np.asarray(first, dtype=object))[:2]
    rng = np.random.default_rng(0)
    made = {"zeros": np.zeros(shape), "nan": np.full(shape, np.nan), "inf": np.full(shape, np.inf)}
    made |= {"huge": np.full(shape, 1e308), "negative": -np.ones(shape), "short": np.ones(shape[:1])}
    return made.get(kind, np.ones(shape) if kind == "ones" else rng.random(shape))


#: Which of the four is called; the slow ones less often: a page takes as long as a hundred of the others.
TARGETS = ("check_draws",) * 24 + ("judge",) * 12 + ("compare",) * 4 + ("report",)


class Leak(AssertionError):
    """What came was neither a result nor an error of ours."""


def is_ours(error: BaseException) -> bool:
    """Whether an error is one of ours, or a TypeError or ValueError that we raise ourselves."""
    if isinstance(error, RingtrueError):
        # Test functions of these calls raise nothing: what fails in them with a warning or a division is ours.
        return not isinstance(error.__cause__, (Warning, ArithmeticError, LookupError))
    last = traceback.extract_tb(error.__traceback__)[-1]
    return isinstance(error, (TypeError, ValueError)) and "/ringtrue/" in last.filename and "raise" in (last.line or "")


def attempt(target: str, theta: Any, draws: Any, settings: dict[str, Any], folder: Path) -> str:
    """Call one of the four; return what came of it, or raise Leak."""
    try:
        return _called(target, theta, draws, settings, folder)
    except Exception as error:
        if is_ours(error):
            return type(error).__name__
        raise Leak(f"{target}: {type(error).__name__}: {error}") from error


def _called(target: str, theta: Any, draws: Any, settings: dict[str, Any], folder: Path) -> str:
    if target == "compare":
        return _compared(theta, draws, settings)
    result = rt.check_draws(theta, draws, **settings)
    if target == "judge":
        result = rt.judge(result.replicates, alpha=0.01, test="ks")
        rt.measure(result)
    if target == "report":
        result.report(folder / "page.html")
    _need_whole(result)
    return result.verdict.name


def _need_whole(result: Any) -> None:
    """Refuse a result that cannot be printed or written, or whose p-value is no probability."""
    assert str(result)
    assert repr(result)
    json.dumps(result.to_dict(), allow_nan=False)
    assert 0 < result.pvalue <= 1


def _compared(theta: Any, draws: Any, settings: dict[str, Any]) -> str:
    """Compare a procedure that returns some of the numbers with one that is right."""
    first = next(iter(draws.values())) if isinstance(draws, dict) else draws
    rows = np.ravel(np.asarray(first))

    def odd(mu0: Any, y: Any, rng: Any) -> Any:
        return rt.Draws(rng.permutation(rows)[:19])

    def right(mu0: Any, y: Any) -> Any:
        return rt.Normal(y / 2, 0.5**0.5)

    asked = {name: value for name, value in settings.items() if name in ("f", "seed", "alpha", "test")}
    found = rt.compare({"odd\u202e": odd, "right": right}, BELIEF, noisy, n=12, on_failure="record", **asked)
    assert str(found)
    for result in found.results.values():
        _need_whole(result)
    return "compared"
