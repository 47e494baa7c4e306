"""What went in, in a few numbers: marks of data and draws, equal draws, the place of a given truth in the belief.

They let a judgement see that datasets or draws repeat, that a chain stood still, or that truths are not the belief's,
before it blames the procedure. Marks are 64 bits that differ where numbers differ; 0 means unknown. Only the first
replicates are looked at, so that a long run pays nothing for it, and which these are depends on their numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...question.study import Study
from ...streams import Streams
from ...values import Floats, Generator, Ints, copied, take
from .. import positions
from ..block import Block, law_of
from ..record import IGNORES_STREAM, INPUT, LOOKED, NO_STREAM, SAME_SHIFT, Field

#: Numbers that are marked at once.
_CHUNK = 1_000_000
#: Steps of a lattice are whole but for rounding, relative to themselves.
_WHOLE = 1e-6
#: With fewer draws the place of the largest says little.
_PLACES = 10


class Inputs:
    """Arrays under ``input/``; those of draws only if outputs are draws, those of the belief only of given truths."""

    fields: tuple[Field, ...] = ()
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return the numbers of the first replicates, blank for the others."""
        few = int(np.searchsorted(block.index, LOOKED))
        arrays = {**_of_data(block, few), **_of_draws(block, few), **_of_truths(block, few)}
        if isinstance(block.question, Study):
            arrays["noise"] = np.zeros(block.b, np.int8)
            if block.index[0] == 0:
                arrays["noise"][0] = _noise(block.question)
        return {f"{INPUT}{name}": array for name, array in arrays.items()}


# Data.


def _of_data(block: Block, few: int) -> dict[str, NDArray[Any]]:
    """Return marks of all numbers of a dataset and of those that are not whole, and how many these are."""
    arrays = {name: np.zeros(block.b, np.int64) for name in ("data", "fractions", "fractional")}
    rows = _datasets(block.y, few) if few else None
    if rows is None:
        return arrays
    for part, numbers in rows:
        mixed = _mixed(numbers)
        broken = np.isfinite(numbers) & (numbers != np.floor(numbers))
        arrays["data"][part] = _summed(mixed)
        arrays["fractional"][part] = broken.sum(axis=1)
        arrays["fractions"][part] = np.where(broken.any(axis=1), _summed(np.where(broken, mixed, 0)), 0)
    return arrays


def _datasets(y: Any, few: int) -> list[tuple[slice, Floats]] | None:
    """Return the first datasets as rows of numbers, those of one length side by side; None if they are not numbers."""
    if isinstance(y, (list, tuple)):
        rows = in_rows(y[:few])
        if any(row is None for row in rows):
            return None
        if len({len(row) for row in rows if row is not None}) > 1:
            return [(slice(j, j + 1), row[None]) for j, row in enumerate(rows) if row is not None]
        table: Any = np.array(rows, float)
    else:
        table = _table(y, few)
    if table is None or not table.shape[1]:
        return None
    step = max(1, _CHUNK // table.shape[1])
    return [(slice(i, min(i + step, few)), table[i : min(i + step, few)]) for i in range(0, few, step)]


def _table(y: Any, few: int) -> Floats | None:
    """Return the numbers of a batch of datasets, one row each."""
    if isinstance(y, Mapping):
        parts = [_table(y[name], few) for name in sorted(y, key=str)]
        found = [part for part in parts if part is not None]
        return np.concatenate(found, axis=1) if found and len(found) == len(parts) else None
    if not isinstance(y, np.ndarray) or y.dtype.kind not in "biuf":
        return None
    return np.asarray(y[:few].reshape(min(few, len(y)), -1), np.float64)


def in_a_row(one: Any) -> Floats | None:
    """Return the numbers of one dataset, whatever it is made of; None if it is not made of numbers.

    Examples
    --------
    >>> in_a_row({"y": [1, 2], "x": np.zeros((1, 2))}).tolist()
    [0.0, 0.0, 1.0, 2.0]
    """
    if isinstance(one, Mapping):
        return _joined([one[name] for name in sorted(one, key=str)])
    if isinstance(one, (list, tuple)):
        return _joined(one)
    if isinstance(one, (bool, int, float, np.generic, np.ndarray)):
        array = np.asarray(one)
        return np.asarray(array.reshape(-1), np.float64) if array.dtype.kind in "biuf" else None
    return None


def in_rows(many: Sequence[Any]) -> list[Floats | None]:
    """Return the same of several datasets.

    Examples
    --------
    >>> in_rows([1.0, 2.0])
    [array([1.]), array([2.])]
    """
    if {type(one) for one in many} <= {float, np.float64}:  # single numbers need not be walked one by one
        return list(np.array(many)[:, None])
    return [in_a_row(one) for one in many]


def _joined(parts: Any) -> Floats | None:
    rows = [in_a_row(part) for part in parts]
    found = [row for row in rows if row is not None]
    return np.concatenate(found) if found and len(found) == len(rows) else None


def marks(rows: Floats) -> Ints:
    """Return a mark of every row of numbers; equal rows have equal marks, others have others but once in 2^64.

    Examples
    --------
    >>> one, two, other = marks(np.array([[1.0, 0.5], [1.0, 0.5], [0.5, 1.0]])).tolist()
    >>> one == two, one == other
    (True, False)
    """
    return _summed(_mixed(rows))


def _mixed(rows: Floats) -> NDArray[np.uint64]:
    """Return bits that depend on every bit of a number and on its place in the row."""
    bits = (np.ascontiguousarray(rows, np.float64) + 0.0).view(np.uint64)  # + 0.0: minus zero is zero
    # Small numbers have only high bits set and a product carries upwards: they are brought down before the second.
    mixed = bits * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed *= _factors(rows.shape[1])
    mixed ^= mixed >> np.uint64(29)
    return mixed


def _summed(mixed: NDArray[np.uint64]) -> Ints:
    # A sum, which wraps around, does not depend on how rows are grouped; 0 is left for what is unknown.
    total = mixed.sum(axis=1, dtype=np.uint64).view(np.int64)
    return np.where(total == 0, 1, total)


@lru_cache(maxsize=8)
def _factors(size: int) -> NDArray[np.uint64]:
    raw: NDArray[np.uint64] = np.random.Philox(key=1).random_raw(size)
    return raw | np.uint64(1)


# Draws.


def _of_draws(block: Block, few: int) -> dict[str, NDArray[Any]]:
    """Return what draws that came with the outputs look like."""
    if block.outputs.ready is None or not block.strong:
        return {}
    columns = [block.ranked[k].some for k in block.strong]
    first, b = columns[0][:, :few], block.b
    arrays: dict[str, NDArray[Any]] = {
        name: np.full((len(block.functions), b), np.nan) for name in ("tied", "lattice", "hit")
    }
    for k, some in zip(block.strong, columns, strict=True):
        arrays["tied"][k, :few] = _share(some[1:, :few] == some[:-1, :few]) if len(some) > 1 else 0.0
        arrays["lattice"][k, :few] = _on_a_lattice(some[:, :few], arrays["tied"][k, :few] > 0)
        arrays["hit"][k, :few] = _share(some[:, :few] == block.truths[k][:few])
    if len(columns[0]) == 2 and not block.outputs.ready.treated:  # weighted outputs have numbers of draws of their own
        arrays["second"] = np.full((len(block.functions), b), np.nan)
        arrays["second"][block.strong, :few] = [some[1, :few] for some in columns]
    arrays = {name: array.T for name, array in arrays.items()}
    arrays["draws"] = _padded(marks(first.T), b, 0)
    for name, values in (("highest", first), ("lowest", -first)):
        arrays[name] = _padded(_place_of_largest(values), b, -1)
    return arrays


def _on_a_lattice(values: Floats, asked: NDArray[np.bool_]) -> Floats:
    """Return 1 for outputs whose draws are three values or more, whole numbers of one step apart, and 0 for others."""
    found = np.zeros(values.shape[1])
    ordered = np.sort(values[:, asked], axis=0)
    with np.errstate(all="ignore"):
        gaps = np.diff(ordered, axis=0)
        gaps[gaps == 0] = np.nan
        steps = gaps / np.fmin.reduce(gaps, axis=0, initial=np.inf)
        whole = ~(np.abs(steps - np.rint(steps)) > _WHOLE * steps)
    found[asked] = whole.all(axis=0) & (np.isfinite(steps).sum(axis=0) >= 2)
    return found


def _share(mask: NDArray[np.bool_]) -> Floats:
    """Return the mean along axis 0; counting is ten times as fast as averaging bools."""
    return np.asarray(np.count_nonzero(mask, axis=0) / len(mask))


def _padded(numbers: Ints, b: int, blank: int) -> Ints:
    return np.concatenate([numbers, np.full(b - len(numbers), blank, np.int64)])


def _place_of_largest(values: Floats) -> Ints:
    """Return which draw is the largest of each output; -1 if it is not alone, or at an end.

    Of independent draws each is the largest as often as any other. Draws that are sorted, or a chain that drifts, have
    it among the first or the last.
    """
    many, none = len(values), np.full(values.shape[1], -1, np.int64)
    if many < _PLACES or not values.shape[1]:
        return none
    place, edge = np.argmax(values, axis=0), max(many // 20, 1)
    alone = (values == values.max(axis=0)).sum(axis=0) == 1
    return np.where(alone & (place >= edge) & (place < many - edge), place, none)


# Truths and the model.


def _of_truths(block: Block, few: int) -> dict[str, NDArray[Any]]:
    """Return where given truths fall in the belief's exact laws; nan where it has none."""
    question = block.question
    if question.truths_known is None or question.mu0 is None:
        return {}
    arrays = {name: np.full((len(block.functions), block.b), np.nan) for name in ("belief_u", "belief_z")}
    for k in block.strong:
        law = law_of(question.mu0, block.functions[k])
        if law is not None:
            place = positions.exact(law, block.truths[k][:few], partial(_jitter, block, few, k))
            arrays["belief_u"][k, :few], arrays["belief_z"][k, :few] = place["u"], place["z"]
    return {name: array.T for name, array in arrays.items()}


def _jitter(block: Block, few: int, k: int) -> Floats:
    return block.jitter[:few, k]


@lru_cache(maxsize=4)  # once per process, however often the first replicate is computed
def _noise(study: Study) -> int:
    """Say what is wrong with a model's noise; 0 if another stream gives other data, or nothing is known."""
    if study.joint is not None or not study.reproducible:
        return 0
    streams = Streams(study.seed)
    try:
        theta, other = _two_truths(study, streams.generator("truth"))
        stream, second = (partial(streams.generator, "data", 0, lane) for lane in (1, 2))
        once = copied(study.simulate(copied(theta), stream))
        if not _same_numbers(once, copied(study.simulate(copied(theta), second))):
            return 0
        if study.draws_noise:
            return IGNORES_STREAM
        moved = _shift(theta, once), _shift(other, copied(study.simulate(copied(other), stream)))
    except Exception:  # a replicate that fails says so itself
        return 0
    return SAME_SHIFT if _same_move(*moved) else NO_STREAM


def _two_truths(study: Study, rng: Generator) -> tuple[Any, Any]:
    """Return two parameters, or two batches of them."""
    size = study.batch or 1
    drawn = study.truths(2 * size, rng)
    if study.batch is None:
        return take(drawn, 0), take(drawn, 1)
    return take(drawn, slice(None, size)), take(drawn, slice(size, None))


def _same_numbers(once: Any, again: Any) -> bool:
    """Whether data are equal that have numbers which are not whole; whole ones may agree by chance."""
    a, b = in_a_row(once), in_a_row(again)
    return a is not None and b is not None and np.array_equal(a, b) and bool((a != np.floor(a)).any())


def _shift(theta: Any, y: Any) -> Floats | None:
    """Return by how much data differ from their parameter, if they have its axes, or further ones."""
    if in_a_row(theta) is None or in_a_row(y) is None or isinstance(theta, Mapping) or isinstance(y, Mapping):
        return None
    centre, data = np.asarray(theta, float), np.asarray(y, float)
    own = data.shape[: centre.ndim] == centre.shape
    return data - centre.reshape(centre.shape + (1,) * (data.ndim - centre.ndim)) if own else None


def _same_move(one: Floats | None, other: Floats | None) -> bool:
    return one is not None and other is not None and bool(one.any()) and np.allclose(one, other, rtol=1e-9, atol=1e-9)


REDUCER = Inputs()
