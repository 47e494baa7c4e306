"""Replicates from arrays that exist already: true parameters and, for each, draws of an output.

Checks the shapes and hands pieces to the same measuring as a run. It simulates nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributions import Draws, as_distribution, as_named_draws
from ..errors import InvalidStudy
from ..functions import SEVERAL, BestOf, Pooled, TestFunction, as_testfunctions, default_family, unasked
from ..question.study import at_least, need_summary
from ..values import Ints, Numbers, as_array, take, width
from .block import Block, fitting
from .record import GROUP, ORDER, Replicates
from .reducers.weak import reference_size, reference_values
from .simulate import OnFailure, Recorder, need_on_failure, raise_failure, singles

_NO_BELIEF = "weak level not tested: pass belief= to compare with mu0."
#: Numbers read at once.
_CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class _ArrayQuestion:
    """What is asked of arrays of draws."""

    draws: int
    seed: int
    batch: int
    mu0: Any
    functions: tuple[TestFunction, ...]
    selection: BestOf | None
    notes: tuple[str, ...]
    truths_known: Any
    summary: Any = None
    of_belief: bool = True
    of_output: bool = False
    datasets: int = 1
    reproducible: bool = True


def replicates_from_draws(
    theta: Any,
    draws: Any,
    *,
    y: Any = None,
    f: Any = None,
    belief: Any = None,
    iid: bool | None = None,
    chains: int | None = None,
    weights: Numbers = None,
    groups: Any = None,
    order: Any = None,
    summary: Any = None,
    seed: int = 0,
    on_failure: OnFailure = "raise",
) -> Replicates:
    """Return the replicates of given truths and draws; see :func:`ringtrue.check_draws` for the shapes.

    Examples
    --------
    >>> theta, draws = np.array([0.0, 1.0]), np.array([[1.0, 2.0], [0.0, 2.0]])
    >>> replicates_from_draws(theta, draws, f=lambda t: t).rank.ravel()
    array([0, 1])
    """
    need_on_failure(on_failure)
    need_summary(summary)
    if summary is not None and y is None:
        raise InvalidStudy(
            "summary= says what to look at in the data, but no y came; pass y=, one dataset per replicate."
        )
    _need_same_rows({"theta": theta, "draws": draws, "y": y, "weights": weights, "groups": groups, "order": order})
    if groups is not None and order is not None:
        raise InvalidStudy("groups= and order= ask different questions; pass one of them, and one series at a time.")
    truth = _numeric(_columns(theta, draws), "theta")
    n = _length(truth)
    if width(truth) == 0:
        raise InvalidStudy("theta must have a number or more per replicate, but none came: one of its axes is empty.")
    labels = _groups(groups, n) | ({} if order is None else {ORDER: _places(order, n)})
    draws, chains = _unlabelled(truth, draws, chains)
    # Arrays of unequal lengths cannot be one array; they are ranked one by one.
    flat = draws if chains is None else _one_axis(truth, draws, chains)
    outputs: Any = (
        [_numeric(part, f"draws[{i}]", first="draws") for i, part in enumerate(flat)]
        if _ragged(flat)
        else _numeric(flat, "draws")
    )
    _need_names(truth, outputs, f)
    most = _fit(truth, outputs, n)
    functions = _functions(f, truth, outputs, y)
    question = _ArrayQuestion(
        draws=most,
        seed=at_least(0, "seed", seed),
        batch=n,  # one block: what is random here, resampling by weight, is keyed by it
        mu0=None if belief is None else _belief(belief, truth),
        functions=functions,
        selection=f if isinstance(f, BestOf) else None,
        notes=(*(() if belief is not None else (_NO_BELIEF,)), *unasked(functions, truth)),
        truths_known=truth,
        summary=summary,
    )
    recorder = Recorder(question, 0, n)
    said = {"iid": iid, "chains": chains}
    for block in _blocks(recorder, truth, outputs, _datasets(y, n), said, _weights(weights, n, outputs)):
        recorder.record(block)
    record = recorder.finish()
    if record.failures and on_failure == "raise":
        raise_failure(question, record.failures[0], recorder.error)
    return replace(
        record,
        arrays={**record.arrays, **labels},
        reference=reference_values(question, 0, reference_size(question, n)),
    )


def _groups(groups: Any, n: int) -> dict[str, Any]:
    """Return the groups of the replicates as numbers; nothing if each is one of its own."""
    if groups is None:
        return {}
    labels = np.asarray(groups)
    if labels.shape != (n,) or labels.dtype.kind not in "biufSUO" or _missing(labels):
        raise InvalidStudy(
            f"groups must have a label for each of {n} replicates, equal for those that share a truth, but "
            f"{type(groups).__name__} of dtype {labels.dtype} and shape {labels.shape} arrived"
            f"{' with missing labels' if labels.shape == (n,) else ''}."
        )
    names, place = np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)
    if len(names) < 2:
        raise InvalidStudy(
            f"groups must have at least two different labels, since only groups are independent of each "
            f"other, but all {n} are {names[0]!r}."
        )
    # Groups of one are replicates as always.
    return {} if len(names) == n else {GROUP: place.astype(np.int64)}


def _missing(labels: NDArray[Any]) -> bool:
    """Whether a label is nan or None."""
    return any(one is None or one != one for one in labels.tolist())


def _places(order: Any, n: int) -> Ints:
    """Return the place of every replicate in the order, from 0."""
    found = np.asarray(order)
    if found.shape != (n,) or found.dtype.kind not in "biufM":
        raise InvalidStudy(
            f"order must hold one number or date per replicate, {n} in all, but {type(order).__name__} of dtype "
            f"{found.dtype} and shape {found.shape} arrived; for rows in their order pass np.arange({n})."
        )
    if (found != found).any():  # nan, or a date that is none
        raise InvalidStudy("order must say where every replicate stands, lost ones too, but some are nan.")
    distinct = np.unique(found).size
    if distinct < n:
        raise InvalidStudy(
            f"order must put one replicate after the other, but {n} replicates have only {distinct} different places; "
            f"pass different numbers, and one series at a time if several were observed together."
        )
    return np.argsort(np.argsort(found))


def _need_same_rows(tables: Mapping[str, Any]) -> None:
    """Refuse tables whose rows have names that do not agree: rows are taken by position."""
    named = [(what, labels) for what, table in tables.items() for labels in _labels(table)]
    for what, labels in named[1:]:
        first, known = named[0]
        if len(labels) == len(known) and not labels.equals(known):
            raise InvalidStudy(
                f"{first} and {what} must have the same index in the same order, since rows are taken by position, but "
                f"{list(known[:3])} and {list(labels[:3])} come first; pass {what} in the order of {first}, as in "
                f"{what}.loc[{first}.index], or both as arrays if their rows belong together as they are."
            )


def _labels(table: Any) -> list[Any]:
    """Return the names of the rows of a pandas or xarray object, or of those that a dict holds."""
    if isinstance(table, Mapping):
        return [labels for part in table.values() for labels in _labels(part)]
    # Not imported to find out: who has such an object has the library already.
    pandas, xarray = sys.modules.get("pandas"), sys.modules.get("xarray")
    if pandas is not None and isinstance(table, (pandas.Series, pandas.DataFrame)):
        return [table.index]
    if xarray is not None and isinstance(table, xarray.DataArray) and table.dims:
        labels = table.indexes.get(table.dims[0])
        return [] if labels is None else [labels]
    return []


def _blocks(recorder: Recorder, truth: Any, outputs: Any, data: Any, said: Any, weights: Any) -> Any:
    """Cut arrays into blocks of bounded size; draws of different numbers are blocks of one."""
    question, streams, n = recorder.question, recorder.streams, _length(truth)
    if isinstance(outputs, list):
        for i in range(n):
            # A batch of one: as in larger ones, an output whose weights will not do is lost alone.
            (one,) = Draws(outputs[i][:, None], weights=weights and weights[i][:, None], **said).members()
            yield singles(question, streams, [i], [take(truth, i)], (data[i],), (one,))
        return
    # A chunk and its masks fit in memory whatever n is; where it is cut changes no number.
    step = max(1, _CHUNK // max(question.draws * width(truth), 1))
    for first in range(0, n, step):
        part = slice(first, min(first + step, n))
        values = _map(take(outputs, part), lambda array: np.moveaxis(array, 1, 0))
        some = None if weights is None else weights[part].T
        index = np.arange(part.start, part.stop)
        yield Block(question, streams, index, take(truth, part), data[part], Draws(values, weights=some, **said))


def _unlabelled(truth: Any, draws: Any, chains: Any) -> tuple[Any, Any]:
    """Return a list of posteriors of ArviZ, xarray or pandas as arrays, and how many chains; else what came."""
    # Tables with truths that have no names are the arrays in them.
    if not _labelled(draws) or (not isinstance(truth, Mapping) and hasattr(draws[0], "columns")):
        return draws, chains
    found = [as_named_draws(one, what=f"draws[{i}]") for i, one in enumerate(draws)]
    sizes = [one and (one.chains, one.size) for one in found]
    if odd := [i for i, size in enumerate(sizes) if size != sizes[0]]:
        raise InvalidStudy(
            f"posteriors in a list must have equally many chains and draws, but number {odd[0]} has (chains, draws in "
            f"all) = {sizes[odd[0]]} and number 0 has {sizes[0]}; cut them to the same."
        )
    many = [one for one in found if one is not None]
    said = many[0].chains
    if said is not None and chains not in (None, said):
        raise InvalidStudy(f"draws say that they are {said} chains, but chains={chains!r} arrived.")
    if not isinstance(truth, Mapping) and not isinstance(many[0].values, Mapping):
        return np.stack([one.values for one in many]), said or chains
    if not isinstance(truth, Mapping) or not isinstance(many[0].values, Mapping):
        raise InvalidStudy("theta and draws must both have names or neither; pass theta as a dict, {name: array}.")
    names = [name for name in truth if all(name in one.values for one in many)]
    return {name: np.stack([one.values[name] for one in many]) for name in names}, said or chains


def _labelled(draws: Any) -> bool:
    """Whether draws are a list of things that say themselves what their draws are called."""
    return isinstance(draws, (list, tuple)) and bool(draws) and as_named_draws(draws[0], what="draws[0]") is not None


def _columns(theta: Any, draws: Any) -> Any:
    """Return a table of truths as named arrays, if draws have names too."""
    if not hasattr(theta, "columns") or not (isinstance(draws, Mapping) or _labelled(draws)):
        return theta
    return {str(name): theta[name] for name in theta.columns}


def _one_axis(truth: Any, draws: Any, chains: Any) -> Any:
    """Return draws of chains with one axis for all of them, chain after chain."""
    if isinstance(draws, Mapping):
        return {key: _one_axis(truth.get(key), part, chains) for key, part in draws.items()}
    if isinstance(truth, Mapping):  # with names that draws have not, which others will say
        return draws
    if isinstance(draws, (list, tuple)) and truth is not None:
        return [_chain_after_chain(part, 0, np.ndim(truth) - 1, chains) for part in draws]
    return draws if truth is None else _chain_after_chain(draws, 1, np.ndim(truth) - 1, chains)


def _chain_after_chain(draws: Any, lead: int, own: int, chains: Any) -> Any:
    """Return draws whose chains have an axis of their own, behind the leading ones, with one axis less."""
    array = np.asarray(draws)
    if array.ndim != lead + 2 + own:
        return draws
    if array.shape[lead] != chains:
        raise InvalidStudy(
            f"with chains={chains!r}, draws must have the chains on axis {lead} or lie chain after chain, but an array "
            f"of shape {array.shape} arrived; pass chains={array.shape[lead]}, or move the axis."
        )
    # Not -1: of arrays without a number it cannot be told.
    together = array.shape[lead] * array.shape[lead + 1]
    return array.reshape(*array.shape[:lead], together, *array.shape[lead + 2 :])


def _weights(weights: Any, n: int, outputs: Any) -> Any:
    """Return a weight per replicate and draw: an array, or a list of them where draws are a list."""
    if weights is None:
        return None
    if isinstance(outputs, list):
        return _list_of_weights(weights, outputs)
    many = np.shape(next(iter(outputs.values())) if isinstance(outputs, Mapping) else outputs)[1:2]
    found = _numeric(weights, "weights")
    if isinstance(found, Mapping) or found.shape != (n, *many):
        arrived = "a dict" if isinstance(found, Mapping) else found.shape
        raise InvalidStudy(f"weights must have shape (n, M) = {(n, *many)}, one per draw, but {arrived} came.")
    return found.astype(float)


def _list_of_weights(weights: Any, outputs: list[Any]) -> list[Any]:
    lengths = [len(one) for one in outputs]
    if not isinstance(weights, (list, tuple, np.ndarray)) or len(weights) != len(outputs):
        raise InvalidStudy(
            f"weights of a list of draws must be a list too, one array of them per replicate, but "
            f"{type(weights).__name__} came for {len(outputs)} replicates."
        )
    found = [_numeric(part, f"weights[{i}]", first="draws") for i, part in enumerate(weights)]
    for i, (part, many) in enumerate(zip(found, lengths, strict=True)):
        if np.shape(part) != (many,):
            raise InvalidStudy(f"weights[{i}] must have shape {(many,)}, one per draw, but {np.shape(part)} came.")
    return [part.astype(float) for part in found]


def _datasets(y: Any, n: int) -> Any:
    """Return the datasets by position, whatever their container counts by."""
    if y is None:
        return [None] * n
    if isinstance(y, (Mapping, str)) or not hasattr(y, "__len__"):
        raise InvalidStudy(f"y must hold one dataset per replicate, but a {type(y).__name__} came for {n} replicates.")
    if len(y) != n:
        raise InvalidStudy(f"y must hold one dataset per replicate, but {len(y)} came for {n} replicates.")
    # A list of a data frame would be that of its columns.
    return y if isinstance(y, np.ndarray) else np.asarray(y) if _labels(y) else list(y)


def _belief(belief: Any, truth: Any) -> Any:
    """Return mu0 as a distribution whose draws are like theta."""
    mu0 = as_distribution(belief, what="the belief", role="belief")
    if mu0.sample is None:
        raise InvalidStudy(f"the belief must be something to draw from, but {type(belief).__name__} cannot.")
    two = take(truth, slice(0, 1))
    drawn = _map(mu0.sample(1, np.random.default_rng(0)), lambda array: np.asarray(array)[None])
    try:
        fitting(drawn, two)
    except InvalidStudy as error:
        raise InvalidStudy(f"the belief must have draws of theta's shape: {error}") from error
    return mu0


def _functions(f: Any, truth: Any, draws: Any, y: Any) -> tuple[TestFunction, ...]:
    pooled = _pooled(truth, draws)
    if f is None:
        family = default_family(pooled)
        # The sum and the distance are in units of the entries' spread: what is left of theta - theta is rounding.
        varying = tuple(
            g for g in family if not _constant(g, pooled) and (g.kind == "coordinate" or _varies(g, pooled))
        )
        return varying or family[:1]
    functions = as_testfunctions(f, pooled)
    blind = [function.name for function in functions if function.sees == "data"] if y is None else []
    auto = [f.name for f in functions if f.sees == "output" and not isinstance(f, Pooled)]
    if blind:
        raise InvalidStudy(f"test functions {blind} see the data, but no y came; pass y=, one dataset per replicate.")
    if auto:
        raise InvalidStudy(f"test functions {auto} need an output with a log density, but draws have none.")
    for function in functions:
        if function.sees == "theta" and _constant(function, pooled):
            value = float(np.ravel(function.evaluate(take(pooled, slice(0, 1)), SEVERAL))[0])
            raise InvalidStudy(
                f"test function {function.name!r} must vary, but it is {value:.6g} for all truths and draws; leave it "
                f"out."
            )
    return functions


def _varies(f: TestFunction, pooled: Any) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):  # the largest numbers of both signs are further apart
        return bool(np.ptp(f.evaluate(pooled, SEVERAL)) > 1e-10)


def _constant(f: TestFunction, pooled: Any) -> bool:
    """Whether a test function does not vary over truths and draws of the first replicates."""
    try:
        few = f.evaluate(take(pooled, slice(0, 50)), SEVERAL)
        return bool(np.size(few) and np.min(few) == np.max(few) and (f.evaluate(pooled, SEVERAL) == few[0]).all())
    except InvalidStudy:
        raise
    except Exception as error:
        # Of a function of the user's, what it raised is told.
        if isinstance(error, KeyError) and f.kind == "coordinate":
            has = ", ".join(map(repr, pooled))
            raise InvalidStudy(
                f"test function {f.name!r} asks about the part {error} of theta, but theta has {has}; ask about one of "
                f"these."
            ) from None
        cause = f"{type(error).__name__}: {error}"
        raise InvalidStudy(f"test function {f.name!r} must work on theta, but raised {cause}.") from error


def _pooled(truth: Any, draws: Any, most: int = 200) -> Any:
    """Pool truths and draws of the first replicates; symmetric in truth and draws, so that no test is biased by it."""
    named = isinstance(truth, Mapping)
    parts = {key: (truth[key], draws[key]) for key in truth if key in draws} if named else {"": (truth, draws)}
    rows = {
        key: [np.concatenate([one[i : i + 1], many[i]]) for i in range(min(len(one), most))]
        for key, (one, many) in parts.items()
    }
    # A replicate is left out whole: its parts belong together.
    whole = [all(np.isfinite(part).all() for part in member) for member in zip(*rows.values(), strict=True)]
    kept = [i for i, finite in enumerate(whole) if finite] or range(len(whole))
    pooled = {key: np.concatenate([row[i] for i in kept]) for key, row in rows.items()}
    return pooled if named else pooled[""]


def _numeric(value: Any, what: str, *, first: str = "replicates") -> Any:
    """Return arrays of numbers, the first axis being that of replicates or draws, or say what arrived instead."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidStudy(
            f"{what} must have no masked values, but some are; fill them with nan and record the failures."
        )
    if isinstance(value, Mapping):
        return {str(key): _numeric(part, f"{what}[{key!r}]") for key, part in value.items()}
    try:
        array = as_array(value)
    except ValueError as error:
        raise InvalidStudy(f"{what} must be an array of numbers, but it cannot be made one: {error}.") from error
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        dicts = array.ndim == 1 and array.size and all(isinstance(one, Mapping) for one in array)
        hint = f"; of dicts pass one, {{name: np.stack([one[name] for one in {what}])}}" if dicts else ""
        raise InvalidStudy(
            f"{what} must be an array of numbers with {first} on axis 0, but {type(value).__name__} of dtype "
            f"{array.dtype} and shape {array.shape} arrived{hint}."
        )
    return array


def _ragged(draws: Any) -> bool:
    """Whether draws are a list of arrays of different lengths."""
    if isinstance(draws, np.ndarray):
        return draws.dtype == object and draws.ndim == 1
    return isinstance(draws, (list, tuple)) and len({_count(part) for part in draws}) > 1


def _count(part: Any) -> int:
    """Return how many draws a part of a list has; -1 if it has none to count."""
    try:
        return -1 if isinstance(part, (str, Mapping)) else len(part)
    except TypeError:
        return -1


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
            f"draws must have shape ({', '.join(map(str, (n, 'M', *truth.shape[1:])))}) to match theta of shape "
            f"{truth.shape}, M draws for each of {n} replicates, "
            f"but {draws.shape} arrived{_hint(truth.shape, draws.shape)}."
        )
    return int(draws.shape[1])


def _hint(truth: tuple[int, ...], draws: tuple[int, ...]) -> str:
    """Guess the mistake from the shapes."""
    n, own = truth[0], truth[1:]
    if len(truth) > len(draws) and truth[:1] + truth[2:] == draws:
        return "; are theta and draws in each other's place?"
    if draws[1:] == (n, *own) or draws[1:2] == (n,):
        return "; if draws came first, pass np.swapaxes(draws, 0, 1)"
    if own and draws[:-1] == truth:
        return "; if draws came last, pass np.moveaxis(draws, -1, 1)"
    if not own and len(draws) == 3 and draws[2] == 1:
        return "; pass draws[..., 0]"
    if own == (1,) and len(draws) == 2:
        return "; pass draws[..., None]"
    if len(draws) == len(truth) + 2 and draws[0] == n and draws[3:] == own:
        return f"; if axis 1 is the chain, pass chains={draws[1]}"
    return ""


def _need_names(truth: Any, draws: Any, f: Any) -> None:
    """Refuse draws without a name of theta's, unless the user says what is asked about."""
    if not (isinstance(truth, Mapping) and isinstance(draws, Mapping)):
        return
    missing = sorted(set(truth) - set(draws))
    if missing and (f is None or len(missing) == len(truth)):
        raise InvalidStudy(
            f"draws must have the same names as theta, but {missing} are missing; pass f= to ask about the others only."
        )


def _fit_named(truth: Any, draws: Any, n: int) -> int:
    if not (isinstance(truth, Mapping) and isinstance(draws, Mapping)):
        raise InvalidStudy("theta and draws must both be dicts with the same names, or both be arrays.")
    sizes = {key: _fit(truth[key], draws[key], n) for key in truth if key in draws}
    if len(set(sizes.values())) > 1:
        raise InvalidStudy(f"named draws must have the same number of draws, but they have {sizes}.")
    return max(sizes.values())


def _fit_ragged(truth: NDArray[Any], draws: Any, n: int) -> int:
    bad = [
        i
        for i, part in enumerate(draws)
        if np.ndim(part) != truth.ndim or np.shape(part)[1:] != truth.shape[1:] or len(part) == 0
    ]
    if len(draws) != n or bad:
        raise InvalidStudy(
            f"a list of draws needs one array of shape {('M', *truth.shape[1:])} per replicate, but {len(draws)} came "
            f"for {n} replicates" + (f" and number {bad[0]} has shape {np.shape(draws[bad[0]])}." if bad else ".")
        )
    return max(len(part) for part in draws)


def _map(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: function(part) for key, part in value.items()}
    return function(value)
