"""What is refused before any replicate counts: one sentence each on what was expected, what arrived, what to do.

The first replicate is run twice, of the first batch a small part; the first run goes to whoever asked.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..distributions import Distribution
from ..errors import InvalidStudy
from ..functions import SEVERAL, Context, Pooled, TestFunction
from ..question.study import Study
from ..streams import Streams
from ..values import copied, take
from .block import Block
from .reducers import reduce
from .simulate import Raised, simulate

#: Blocks that are tried before it is said that none can be simulated.
_TRIES = 10
#: Replicates of a batch that are run apart from it, twice.
_FEW = 8


def preflight(study: Study, start: int = 0, *, most: int = _TRIES) -> Block:
    """Raise InvalidStudy if the study cannot give a trustworthy answer, or return the block that was looked at.

    Parameters
    ----------
    study
        The question.
    start, most
        The first block to try, and how many.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> preflight(Study(Normal(0, 1), lambda t: t, lambda mu0, y: Normal(y, 1))).index
    array([0])
    """
    try:
        number, block = first_block(study, start, most)
    except Raised:
        _refuse_constant(study, None)
        raise
    _refuse_constant(study, block)
    # Only a model that takes truths can be handed the same truth many times.
    if study.batch is not None and study.joint is None:
        _refuse_shared_noise(study, block)
    _refuse_irreproducible(study, number, block)
    return block


def first_block(study: Study, start: int = 0, most: int = _TRIES) -> tuple[int, Block]:
    """Run the first replicate or batch that does not fail, from fresh streams; raise what the first raised if none."""
    first: Raised | None = None
    for number in range(start, start + most):
        try:
            return number, simulate(study, number)
        except Raised as raised:
            if isinstance(raised.error, InvalidStudy):
                raise
            first = first or raised
    assert first is not None
    raise first


def _refuse_irreproducible(study: Study, number: int, block: Block) -> None:
    """Refuse a study that does not give the same answer twice; test functions are tried here too."""
    if not study.reproducible or study.repeats_itself:
        reduce(block)
        return
    few = _few(study)
    try:
        once = block if few is study else simulate(few, number)
    except Raised:  # functions that take batches of one size only; the batch itself went well
        few, once = study, block
    _refuse_moved(once, simulate(few, number))


def _few(study: Study) -> Study:
    """Return the study with smaller batches, of which two cost little beside the first."""
    if study.batch is None or study.batch <= _FEW:
        return study
    size = -(-_FEW // study.datasets) * study.datasets
    belief = study.belief if study.joint is None else replace(study.joint, batch=size)
    return replace(study, belief=belief, batch=size, f=study.functions)


def _refuse_moved(block: Block, other: Block) -> None:
    once, again = reduce(block), reduce(other)
    parts = {
        "the belief's draw": _same(block.theta, other.theta),
        "the data": _same(block.y, other.y),
        "the output": _same(block.outputs.whole, other.outputs.whole),
        "the position of the truth": np.array_equal(once["u"], again["u"], equal_nan=True),
    }
    moved = next((name for name, same in parts.items() if not same), None)
    if moved is not None:
        raise InvalidStudy(
            f"the same replicate must give the same answer twice, but {moved} moved; use the rng that ringtrue hands "
            f"over, as in P(theta, rng) and mu(belief, y, rng), and no other randomness. What cannot be seeded is "
            f"declared with Study(..., reproducible=False)."
        )


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal as far as can be told; what cannot be compared counts as equal."""
    if isinstance(a, Distribution) and isinstance(b, Distribution):
        a, b = a.origin, b.origin
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype.kind in "biufc":
        return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, dict) and isinstance(b, dict):
        return set(a) == set(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if is_dataclass(a) and type(a) is type(b) and not isinstance(a, type):
        return all(_same(getattr(a, item.name), getattr(b, item.name)) for item in fields(a))
    if isinstance(a, (int, float, np.generic)) and isinstance(b, (int, float, np.generic)):
        return bool(a == b) or bool(a != a and b != b)
    # What cannot be compared, a compiled model or an open file, says nothing against being reproducible.
    return True


def _refuse_constant(study: Study, block: Block | None) -> None:
    """Refuse test functions that are not finite or do not vary where the belief lives."""
    for f in study.functions:
        if isinstance(f, Pooled) or f.sees == "output" or (f.sees == "data" and block is None):
            continue
        context = SEVERAL if block is None or f.sees == "theta" else block.context_of(0, 0)
        few = _at_belief(f, study.reference(8), context, slice(0, 8))
        if not np.isfinite(few).all():
            raise InvalidStudy(
                f"test function {f.name!r} must be finite where the belief lives, but gave {_bad(few)}; "
                f"restrict the belief or choose another test function."
            )
        # A rare event looks constant in a few draws; a thousand miss one of probability 1/50 once in 10^8 times.
        if np.ptp(few) == 0 and (_at_belief(f, study.reference(1000), context, slice(8, 1000)) == few[0]).all():
            raise InvalidStudy(
                f"test function {f.name!r} must vary, but it is {few[0]:.6g} at 1000 of 1000 draws of the belief; "
                f"choose another."
            )


def _at_belief(f: TestFunction, draws: Any, context: Context, part: slice) -> Any:
    """Evaluate a test function at some draws of the belief, with one dataset if it wants to see one."""
    some, size = take(draws, part), len(range(*part.indices(1000)))
    try:
        if f.sees == "data":
            values = np.array([f.evaluate(take(some, j), context) for j in range(size)])
        else:
            values = np.asarray(f.evaluate(some, context), float)
        if values.shape != (size,):
            raise ValueError(f"{size} parameters gave values of shape {values.shape}")
    except InvalidStudy:
        raise
    except Exception as error:
        raise InvalidStudy(
            f"test function {f.name!r} must work on draws of the belief, whose shape is {_shape(some)}, but raised "
            f"{type(error).__name__}: {str(error).rstrip('.')}."
        ) from error
    return values


def _shape(draws: Any) -> Any:
    """Return the shape of one parameter."""
    if isinstance(draws, dict):
        return {name: _shape(part) for name, part in draws.items()}
    return np.shape(draws)[1:] if isinstance(draws, np.ndarray) else "not that of an array"


def _bad(values: Any) -> float:
    return float(values[~np.isfinite(values)].flat[0])


def _refuse_shared_noise(study: Study, block: Block) -> None:
    """Refuse a batched model that adds the same noise to every replicate: right shape, wrong law."""
    if not isinstance(block.y, np.ndarray) or len(block.index) < 2:
        return
    twins = np.zeros(len(block.index), int)
    calls = []
    for number in range(1, 21):  # coins agree by chance: twenty calls in which all tosses agree are no chance
        equal = copied(take(block.theta, twins))
        rows = np.asarray(study.simulate(equal, partial(Streams(study.seed).generator, "data", number)))
        if not (rows == rows[:1]).all():
            return
        calls.append(rows)
    if any(not np.array_equal(calls[0], rows) for rows in calls[1:]):
        raise InvalidStudy(
            "a batched model must draw noise of its own for every replicate, but equal parameters gave equal data in "
            "one call and other data in the next; draw noise with size=theta.shape, or leave out batch=."
        )
