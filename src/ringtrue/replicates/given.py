"""Replicates from arrays that exist already: true parameters and, for each, draws of an output.

Checks the shapes and hands pieces to the same measuring as a run. It simulates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributions.contract import Draws, as_distribution, stack_values
from ..errors import InvalidStudy
from ..functions.contract import BestOf, TestFunction, as_testfunctions, default_family, left_out, take
from ..question.study import at_least
from .pieces import Piece, fitting, is_coordinate, scalar_piece
from .record import Replicates
from .recording import OnFailure, Recorder, header_of, raise_failure, reference_size, reference_values
from .reducers.energy import entries, units
from .spans import collected
from .streams import Streams

_NO_BELIEF = "weak level not tested: pass belief= to compare with mu0."
#: Numbers read at once.
_CHUNK = 2_000_000
#: Truths that tell the units of their entries.
_FOR_UNITS = 1000


@dataclass(frozen=True, eq=False)
class _ArrayQuestion:
    """What is asked of arrays of draws."""

    n: int
    draws: int
    seed: int
    batch: int
    mu0: Any
    functions: tuple[TestFunction, ...]
    selection: BestOf | None
    notes: tuple[str, ...]
    truth: Any

    @cached_property
    def _circle(self) -> NDArray[np.int64]:
        """Replicates whose truth is finite, shuffled: a file may be sorted, or have every truth several times."""
        numbers = entries(self.truth, 1)
        whole = np.arange(0) if numbers is None else np.flatnonzero(np.isfinite(numbers).all(axis=1))
        return Streams(self.seed).generator("energy").permutation(whole)

    @cached_property
    def _place(self) -> NDArray[np.int64]:
        """Where in the circle each replicate is; anywhere if its truth is not finite."""
        place = np.zeros(self.n, np.int64)
        place[self._circle] = np.arange(len(self._circle))
        return place

    @cached_property
    def units(self) -> NDArray[np.float64] | None:
        """The spread of every entry over the truths."""
        numbers = entries(take(self.truth, self._circle[:_FOR_UNITS]), 1)
        return None if numbers is None or len(numbers) < 3 else units(numbers)

    def rivals(self, index: NDArray[np.int64]) -> Any:
        """Return the truths of the next two replicates in the circle, which are draws of the belief too."""
        following = [self._circle[(self._place[index] + step) % len(self._circle)] for step in (1, 2)]
        return stack_values([take(self.truth, rows) for rows in following])


def replicates_from_draws(
    theta: Any, draws: Any, *, y: Any, f: Any, belief: Any, iid: bool, seed: int, on_failure: OnFailure
) -> Replicates:
    """Return the replicates of given truths and draws; see :func:`ringtrue.check_draws` for the shapes.

    Examples
    --------
    >>> theta, draws = np.array([0.0, 1.0]), np.array([[1.0, 2.0], [0.0, 2.0]])
    >>> replicates_from_draws(
    ...     theta, draws, y=None, f=lambda t: t, belief=None, iid=True, seed=0, on_failure="raise"
    ... ).rank.ravel()
    array([0, 1])
    """
    truth = _numeric(theta, "theta")
    n = _length(truth)
    outputs: Any = list(draws) if _ragged(draws) else _numeric(draws, "draws")
    most = _fit(truth, outputs, n)
    question = _ArrayQuestion(
        n=n,
        draws=most,
        seed=at_least(0, "seed", seed),
        batch=n,  # one block: what is random here, resampling by weight, is keyed by it
        mu0=None if belief is None else _belief(belief, truth),
        functions=_functions(f, truth, outputs, y),
        selection=f if isinstance(f, BestOf) else None,
        notes=(*(() if belief is not None else (_NO_BELIEF,)), *(left_out(_entries(truth)) if f is None else ())),
        truth=truth,
    )
    recorder = Recorder(question, 0, n)
    data = _datasets(y, n)
    if isinstance(outputs, list):
        for i in range(n):
            output = Draws(np.asarray(outputs[i]), iid=iid)
            recorder.record(scalar_piece([(i, take(truth, i), data[i], output)]))
    else:
        _record_chunks(recorder, truth, outputs, data, iid=iid, entries=most * _entries(truth))
    if recorder.failures and on_failure == "raise":
        raise_failure(question, recorder.span().failures[0], recorder.error)
    reference = reference_values(question, 0, reference_size(question, n))
    return collected(header_of(question), n, [recorder.span()], reference)


def recompute(store: Any, *, f: Any, belief: Any = None) -> Replicates:
    """Ask a stored run about other test functions, from the draws it kept.

    Parameters
    ----------
    store
        A file made with ``run(study, store=..., keep="draws")``.
    f
        Test functions of the parameter, as in :class:`~ringtrue.Study`.
    belief
        mu0, if the weak level is to be tested; a store does not hold it.

    Notes
    -----
    All draws are read into memory. Where an output had an exact law, ranks among its kept draws take its place.
    """
    from ..execution.store import Store

    with Store.read(store) as opened:
        if opened.keep != "draws":
            raise InvalidStudy(f"{store} must have draws to ask about, but it was made without keep='draws'.")
        parts, failures = opened.draws(0, opened.n), opened.failures()
        iid = not any("thinned" in span.notes for span in opened.spans(0, opened.n))
        seed = opened.header.seed
    truth, draws = (_unnamed(parts, name) for name in ("theta", "draws"))
    found = replicates_from_draws(truth, draws, y=None, f=f, belief=belief, iid=iid, seed=seed, on_failure="record")
    known = {failure.replicate: failure for failure in failures}
    return replace(found, failures=tuple(known.get(one.replicate, one) for one in found.failures))


def _unnamed(parts: Mapping[str, NDArray[Any]], name: str) -> Any:
    """Return the arrays of a name: one, or a dict of those under it."""
    if name in parts:
        return parts[name]
    return {key.partition("/")[2]: part for key, part in parts.items() if key.startswith(f"{name}/")}


def _datasets(y: Any, n: int) -> Any:
    """Return the datasets by position, whatever their container counts by."""
    if y is None:
        return [None] * n
    if isinstance(y, (Mapping, str)) or not hasattr(y, "__len__"):
        raise InvalidStudy(f"y must hold one dataset per replicate, but a {type(y).__name__} came for {n} replicates.")
    if len(y) != n:
        raise InvalidStudy(f"y must hold one dataset per replicate, but {len(y)} came for {n} replicates.")
    return y if isinstance(y, np.ndarray) else list(y)


def _belief(belief: Any, truth: Any) -> Any:
    """Return mu0 as a distribution whose draws are like theta."""
    mu0 = as_distribution(belief, what="the belief")
    if mu0.sample is None:
        raise InvalidStudy(f"the belief must be something to draw from, but {type(belief).__name__} cannot.")
    two = take(truth, slice(0, 1))
    drawn = _map(mu0.sample(1, np.random.default_rng(0)), lambda array: np.asarray(array)[None])
    try:
        fitting(drawn, two)
    except InvalidStudy as error:
        raise InvalidStudy(f"the belief must have draws of theta's shape: {error}") from error
    return mu0


def _record_chunks(recorder: Recorder, truth: Any, draws: Any, y: Any, *, iid: bool, entries: int) -> None:
    step = max(1, _CHUNK // max(entries, 1))
    n = _length(truth)
    for first in range(0, n, step):
        part = slice(first, min(first + step, n))
        values = _map(take(draws, part), lambda array: np.moveaxis(array, 1, 0))
        index = np.arange(part.start, part.stop)
        recorder.record(Piece(index, take(truth, part), y[part], Draws(values, iid=iid)))


def _functions(f: Any, truth: Any, draws: Any, y: Any) -> tuple[TestFunction, ...]:
    pooled = _pooled(truth, draws)
    if f is None:
        family = default_family(pooled)
        # The sum and the distance are in units of the entries' spread: what is left of theta - theta is rounding.
        varying = tuple(g for g in family if not _constant(g, pooled) and (is_coordinate(g) or _varies(g, pooled)))
        return varying or family[:1]
    functions = as_testfunctions(f)
    blind = [function.name for function in functions if function.level == "exact"] if y is None else []
    auto = [function.name for function in functions if function.level == "auto"]
    if blind:
        raise InvalidStudy(f"test functions {blind} see the data, but no y came; pass y=, one dataset per replicate.")
    if auto:
        raise InvalidStudy(f"test functions {auto} need an output with a log density, but draws have none.")
    for function in functions:
        if function.level == "strong" and _constant(function, pooled):
            value = float(function.evaluate(take(pooled, slice(0, 1)), 1)[0])
            raise InvalidStudy(
                f"test function {function.name!r} must vary, but it is {value:.6g} for all truths and draws; leave it "
                f"out."
            )
    return functions


def _varies(f: TestFunction, pooled: Any) -> bool:
    return bool(np.ptp(f.evaluate(pooled, 1)) > 1e-10)


def _constant(f: TestFunction, pooled: Any) -> bool:
    """Whether a test function does not vary over truths and draws of the first replicates."""
    try:
        few = f.evaluate(take(pooled, slice(0, 50)), 1)
        return bool(np.size(few) and np.ptp(few) == 0 and (f.evaluate(pooled, 1) == few[0]).all())
    except InvalidStudy:
        raise
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise InvalidStudy(f"test function {f.name!r} must work on theta, but raised {cause}.") from error


def _pooled(truth: Any, draws: Any, most: int = 200) -> Any:
    """Pool truths and draws of the first replicates; symmetric in truth and draws, so that no test is biased by it."""
    named = isinstance(truth, Mapping)
    parts = {key: (truth[key], draws[key]) for key in truth} if named else {"": (truth, draws)}
    rows = {
        key: [np.concatenate([one[i : i + 1], many[i]]) for i in range(min(len(one), most))]
        for key, (one, many) in parts.items()
    }
    # A replicate is left out whole: its parts belong together.
    whole = [all(np.isfinite(part).all() for part in member) for member in zip(*rows.values(), strict=True)]
    kept = [i for i, finite in enumerate(whole) if finite] or range(len(whole))
    pooled = {key: np.concatenate([row[i] for i in kept]) for key, row in rows.items()}
    return pooled if named else pooled[""]


def _numeric(value: Any, what: str) -> Any:
    """Return arrays of numbers, or say what arrived instead."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidStudy(
            f"{what} must have no masked values, but some are; fill them with nan and record the failures."
        )
    if isinstance(value, Mapping):
        return {str(key): _numeric(part, f"{what}[{key!r}]") for key, part in value.items()}
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidStudy(f"{what} must be an array of numbers, but it cannot be made one: {error}.") from error
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        dicts = array.ndim == 1 and array.size and all(isinstance(one, Mapping) for one in array)
        hint = f"; of dicts pass one, {{name: np.stack([one[name] for one in {what}])}}" if dicts else ""
        raise InvalidStudy(
            f"{what} must be an array of numbers with replicates on axis 0, but {type(value).__name__} of dtype "
            f"{array.dtype} and shape {array.shape} arrived{hint}."
        )
    return array


def _ragged(draws: Any) -> bool:
    """Whether draws are a list of arrays of different lengths."""
    if isinstance(draws, np.ndarray):
        return draws.dtype == object and draws.ndim == 1
    return isinstance(draws, (list, tuple)) and len({np.shape(part)[:1] for part in draws}) > 1


def _length(value: Any) -> int:
    lengths = {len(part) for part in (value.values() if isinstance(value, Mapping) else [value])} or {0}
    if len(lengths) != 1 or lengths == {0}:
        raise InvalidStudy(
            f"theta needs at least one replicate, equally many in every part, but lengths {lengths} came."
        )
    return lengths.pop()


def _fit(truth: Any, draws: Any, n: int) -> int:
    """Check that draws are (n, M, *theta's axes); return the largest M."""
    if isinstance(truth, Mapping) or isinstance(draws, Mapping):
        return _fit_named(truth, draws, n)
    if isinstance(draws, list):
        return _fit_ragged(truth, draws, n)
    if draws.ndim != truth.ndim + 1 or draws.shape[:1] + draws.shape[2:] != truth.shape or draws.shape[1] == 0:
        raise InvalidStudy(
            f"draws must have shape (n, M, ...) = {(n, 'M', *truth.shape[1:])} to match theta of shape {truth.shape}, "
            f"but {draws.shape} arrived{_hint(truth.shape, draws.shape)}."
        )
    return int(draws.shape[1])


def _hint(truth: tuple[int, ...], draws: tuple[int, ...]) -> str:
    """Guess the mistake from the shapes."""
    n, own = truth[0], truth[1:]
    if draws[1:] == (n, *own) or draws[1:2] == (n,):
        return "; if draws came first, pass np.swapaxes(draws, 0, 1)"
    if own and draws[:-1] == truth:
        return "; if draws came last, pass np.moveaxis(draws, -1, 1)"
    if not own and len(draws) == 3 and draws[2] == 1:
        return "; pass draws[..., 0]"
    if own == (1,) and len(draws) == 2:
        return "; pass draws[..., None]"
    if len(draws) == len(truth) + 2 and draws[0] == n and draws[3:] == own:
        return "; if axis 1 is the chain, pass draws.reshape(n, -1, ...)"
    return ""


def _fit_named(truth: Any, draws: Any, n: int) -> int:
    if not (isinstance(truth, Mapping) and isinstance(draws, Mapping)):
        raise InvalidStudy("theta and draws must both be dicts with the same names, or both be arrays.")
    if missing := sorted(set(truth) - set(draws)):
        raise InvalidStudy(f"draws must have the same names as theta, but {missing} are missing.")
    sizes = {key: _fit(truth[key], draws[key], n) for key in truth}
    if len(set(sizes.values())) > 1:
        raise InvalidStudy(f"named draws must have the same number of draws, but they have {sizes}.")
    return max(sizes.values())


def _fit_ragged(truth: NDArray[Any], draws: Any, n: int) -> int:
    bad = [i for i, part in enumerate(draws) if np.shape(part)[1:] != truth.shape[1:] or len(part) == 0]
    if len(draws) != n or bad:
        raise InvalidStudy(
            f"a list of draws needs one array of shape {('M', *truth.shape[1:])} per replicate, but {len(draws)} came "
            f"for {n} replicates" + (f" and number {bad[0]} has shape {np.shape(draws[bad[0]])}." if bad else ".")
        )
    return max(len(part) for part in draws)


def _entries(truth: Any) -> int:
    if isinstance(truth, Mapping):
        return sum(_entries(part) for part in truth.values())
    return int(np.prod(truth.shape[1:], initial=1))


def _map(value: Any, function: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: function(part) for key, part in value.items()}
    return function(value)
