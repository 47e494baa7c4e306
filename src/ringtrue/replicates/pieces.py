"""From simulated replicates to positions: the path one piece of a study takes.

A piece is a few consecutive replicates of a scalar study, or one batch of a batched one. Whether outputs are exact
laws, draws, or samplers is settled here; nothing else in the package asks. This module knows no tests, keeps no
records, and catches exceptions only to say whose they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributions.batches import Batch, batch_size, draws_available, stack
from ..distributions.contract import Draws, stack_values
from ..distributions.laws import Univariate
from ..errors import InvalidStudy, NoRoute
from ..functions.contract import Coordinate, Renamed, TestFunction, leading_shape, take
from ..question.study import Question, Study
from . import positions as statistic
from .positions import Position
from .reducers.energy import EnergyScore, entries, spread_out
from .reducers.summaries import MOST, Summaries, of_draws, of_law
from .streams import Streams

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

#: Numbers drawn at once from a batch of outputs, to bound memory.
_CHUNK = 1_000_000
#: Bytes that the ranks of all members may take; beyond, the joint test falls back on Bonferroni.
_MEMBER_BYTES = 16_000_000


#: Draws of an output for the energy score, where none were drawn for anything else; and where their streams start.
_FEW, _FRESH = 4, 1 << 48

#: Chains worth fewer independent draws do not show their own autocorrelation.
_SHORTEST = 5


class Raised(Exception):
    """A user's function raised; says which."""

    def __init__(self, stage: str, error: Exception) -> None:
        super().__init__(stage, error)
        self.stage, self.error = stage, error


class Uneven(Exception):
    """The outputs of a piece differ in their numbers of draws and must be measured one by one."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Simulated replicates: ``output`` is a batch, ``outputs`` its members if they came one by one."""

    index: Index
    theta: Any
    y: Any
    output: Any
    outputs: tuple[Any, ...] | None = None

    def alone(self, j: int) -> Piece:
        """Return the j-th replicate as a piece of its own."""
        assert self.outputs is not None
        return scalar_piece([(int(self.index[j]), take(self.theta, j), self.y[j], self.outputs[j])])


def scalar_piece(done: Sequence[tuple[int, Any, Any, Any]]) -> Piece:
    """Return a piece from (index, theta, y, output) of single replicates."""
    index, thetas, ys, outputs = zip(*done, strict=True)
    return Piece(np.array(index, np.int64), stack_values(thetas), ys, stack(outputs), outputs)


def simulate_one(study: Study, streams: Streams, i: int) -> tuple[Any, Any, Any]:
    """Simulate replicate i of a scalar study: (theta, y, output)."""
    try:
        theta = take(study.truths(1, streams.generator("truth", i)), 0)
    except Exception as error:
        raise Raised("belief", error) from error
    return theta, *_data_and_output(study, streams, theta, i)


def simulate_batch(study: Study, streams: Streams, block: int) -> Piece:
    """Simulate one block of a batched study; always a full one, so that n can be extended later."""
    size = study.batch or 1
    try:
        theta = study.truths(size, streams.generator("truth", block))
    except Exception as error:
        raise Raised("belief", error) from error
    y, output = _data_and_output(study, streams, theta, block)
    _need_batch(y, output, size)
    return Piece(np.arange(block * size, (block + 1) * size), theta, y, output)


def _need_batch(y: Any, output: Any, size: int) -> None:
    """Refuse a batched model or procedure that does not return one dataset or output per replicate."""
    if isinstance(y, tuple):
        error = (
            "a batched model must return data that can be cut into datasets, an array or a dict, but a tuple arrived."
        )
        raise Raised("model", InvalidStudy(error))
    if isinstance(y, (np.ndarray, list, float, int)) and np.shape(y)[:1] != (size,):
        error = f"a batched model must return {size} datasets, one per replicate on axis 0, but {np.shape(y)} arrived."
        raise Raised("model", InvalidStudy(error))
    found = batch_size(output)
    if found is not None and found != size:
        arrived = f"{found} of them" if found else "a single one"
        error = (
            f"a batched procedure must return a batch of {size} outputs, one per replicate, but {arrived} arrived "
            f"({type(output).__name__}; draws have shape (draws, replicates, ...))."
        )
        raise Raised("procedure", InvalidStudy(error))


def _data_and_output(study: Study, streams: Streams, theta: Any, block: int) -> tuple[Any, Any]:
    try:
        # Copies, because models work in place and reuse buffers: the truth must stay what it was.
        y = copied(study.simulate(copied(theta), streams.generator("data", block)))
        if y is None:
            raise InvalidStudy("the model must return a dataset, but it returned None; is a return statement missing?")
    except Exception as error:
        raise Raised("model", error) from error
    try:
        output = study.learn(copied(y), streams.generator("procedure", block))
    except Exception as error:
        raise Raised("procedure", error) from error
    return y, output.copied() if isinstance(output, Draws) and study.batch is None else output


def copied(value: Any) -> Any:
    """Return a value whose arrays are its own."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return {name: copied(part) for name, part in value.items()} if type(value) is dict else value


@dataclass(frozen=True, eq=False)
class Measured:
    """What a piece says: position and summaries per test function, f at one draw of each output, all members' ranks.

    ``energy`` has two rows, the energy scores of the outputs and of the belief; ``notes`` names what was done to draws
    on the way: "thinned", "weighted".
    """

    positions: tuple[Position, ...]
    summaries: tuple[Summaries, ...]
    weak: tuple[Floats, ...]
    members: tuple[NDArray[np.uint16], ...] | None
    energy: Floats
    notes: frozenset[str]


def measure(question: Question, streams: Streams, piece: Piece) -> Measured:
    """Return the positions of a piece's truths in its outputs, for every test function asked about."""
    return _Measurement(question, streams, piece).result()


def kept_draws(question: Question, streams: Streams, piece: Piece) -> dict[str, NDArray[Any]]:
    """Return the truths and draws of a piece as named arrays, the replicate on the first axis, draws on the second."""
    if not isinstance(piece.theta, (np.ndarray, dict)):
        raise InvalidStudy(
            f"draws can be kept of parameters made of numbers, but theta is a {type(piece.theta).__name__}; leave out "
            f"keep=."
        )
    try:
        drawn = _Measurement(question, streams, piece).all_draws()
    except Uneven:
        raise InvalidStudy("draws can be kept if all outputs have equally many, but they do not.") from None
    named = {"theta": piece.theta, "draws": drawn}
    parts = {
        f"{name}/{key}" if key else name: part
        for name, value in named.items()
        for key, part in (value.items() if isinstance(value, dict) else [("", value)])
    }
    return {
        name: np.swapaxes(part, 0, 1) if name.partition("/")[0] == "draws" else part for name, part in parts.items()
    }


class _Measurement:
    """The measuring of one piece; its cached properties are what several test functions share."""

    def __init__(self, question: Question, streams: Streams, piece: Piece) -> None:
        self.question, self.streams, self.piece = question, streams, piece
        self.functions, self.b = question.functions, len(piece.index)
        self.laws = [law_of(piece.output, f) for f in self.functions]
        self.strong = [k for k, f in enumerate(self.functions) if f.level == "strong"]
        self.notes: set[str] = set()
        self.summaries: dict[int, Summaries] = {}

    @cached_property
    def jitter(self) -> Floats:
        """Uniforms for ties, atoms and the choice of a draw; a function of the replicate's index alone."""
        return self.streams.uniforms("ties", self.piece.index, len(self.functions) + 1)

    def result(self) -> Measured:
        self._refuse_missing_route()
        theta = self.piece.theta if self._ready is None else rounded_like(self.piece.theta, self._ready[0])
        truth = [self._truth(f, theta) for f in self.functions]
        known = {k: self._exact(k, law, truth[k]) for k, law in enumerate(self.laws) if law is not None}
        wanted = [k for k in range(len(truth)) if k not in known]
        ranked, members = self._ranked(wanted, truth) if wanted else ({}, None)
        positions = {**known, **ranked}
        self.summaries |= {k: of_law(law, truth[k]) for k, law in enumerate(self.laws) if law is not None}
        weak = tuple(self._weak(k, f) for k, f in enumerate(self.functions))
        return Measured(
            tuple(positions[k] for k in range(len(truth))),
            tuple(self.summaries[k] for k in range(len(truth))),
            weak,
            members,
            self._energy(),
            frozenset(self.notes),
        )

    def _refuse_missing_route(self) -> None:
        missing = [f.name for f, law in zip(self.functions, self.laws, strict=True) if law is None]
        if missing and self.piece.output.sample is None:
            raise NoRoute(
                f"the output {_kind(self.piece)} has neither an exact law nor draws for test function "
                f"{', '.join(map(repr, missing))}; give it a sample, or choose test functions whose law it knows."
            )

    def _truth(self, f: TestFunction, theta: Any) -> Floats:
        values = self._evaluate(f, theta, 1)
        if values.shape != (self.b,):
            raise InvalidStudy(
                f"test function {f.name!r} must give one number per parameter, but gave shape {values.shape} for "
                f"{self.b} parameters; does theta have the shape it expects?"
            )
        return values

    def _evaluate(self, f: TestFunction, theta: Any, lead: int) -> Floats:
        """Evaluate f, replicate by replicate if it must see outputs that do not fit into one object."""
        piece = self.piece
        if f.level != "auto" or not isinstance(piece.output, Batch):
            return f.evaluate(theta, lead, y=piece.y, output=piece.output)
        before = (slice(None),) * (lead - 1)
        columns = [
            f.evaluate(take(theta, (*before, j)), lead - 1, y=piece.y[j], output=output)
            for j, output in enumerate(piece.output.outputs)
        ]
        return np.stack(columns, axis=-1)

    # The exact route.

    def _exact(self, k: int, law: Univariate, truth: Floats) -> Position:
        position = statistic.exact(law, truth, lambda: self.jitter[:, k])
        if position.u.shape != (self.b,):
            raise InvalidStudy(
                f"the output's law of {self.functions[k].name!r} must be that of one number per replicate, but has "
                f"shape {position.u.shape[1:]}; the output {_kind(self.piece)} and theta do not have the same shape."
            )
        return position

    # The rank route.

    @cached_property
    def _ready(self) -> tuple[Any, bool] | None:
        """Draws that exist already, draws x replicates, and whether they are independent; None if there are none."""
        if self.piece.outputs is None:
            if not isinstance(self.piece.output, Draws):
                return None
            equal = self._equal(0, self.piece.output)
            return fitting(equal.values, self.piece.theta), equal.iid
        if not all(isinstance(output, Draws) for output in self.piece.outputs):
            return None
        each = [self._equal(j, output) for j, output in enumerate(self.piece.outputs)]
        if len({(one.size, one.iid) for one in each}) > 1:
            raise Uneven
        return fitting(stack_values([one.values for one in each], axis=1), self.piece.theta), each[0].iid

    def _equal(self, j: int, draws: Draws) -> Draws:
        if not draws.iid:
            self.notes.add("thinned")
        if draws.weights is None:
            return draws
        self.notes.add("weighted")
        return draws.equally_weighted(self._keyed(j))

    def _keyed(self, j: int) -> np.random.Generator:
        """Return the stream of the piece's j-th replicate (of its block, for a batch)."""
        block = int(self.piece.index[j]) // (self.question.batch or 1)
        return self.streams.generator("statistic", block)

    @cached_property
    def _drawn(self) -> tuple[Any, Any]:
        """Draws of outputs that came one by one: one for the weak level, and those to rank among."""
        outputs = self.piece.outputs or ()
        more = self.question.draws if any(law is None for law in self.laws) else 0
        limit = min((size for one in outputs if (size := draws_available(one)) is not None), default=None)
        # An output with few draws of its own lends the weak level one of those it is ranked among.
        few = limit is not None and limit < 1 + more
        rows = [one.sample(limit if few else 1 + more, self._keyed(j)) for j, one in enumerate(outputs)]
        if isinstance(rows[0], list):
            return [row[0] for row in rows], [row if few else row[1:] for row in rows]
        drawn = fitting(stack_values(rows, axis=1), self.piece.theta)
        return take(drawn, 0), drawn if few else take(drawn, slice(1, None))

    def all_draws(self) -> Any:
        """Return draws x replicates: those that exist, or as many as the question takes where there are none."""
        if self._ready is not None:
            return self._ready[0]
        if self.piece.output.sample is None:
            raise NoRoute(f"draws are to be kept, but the output {_kind(self.piece)} cannot be sampled.")
        if self.piece.outputs is None:
            return fitting(self.piece.output.sample(self.question.draws, self._keyed(0)), self.piece.theta)
        rows = [one.sample(self.question.draws, self._keyed(j)) for j, one in enumerate(self.piece.outputs)]
        return fitting(stack_values(rows, axis=1), self.piece.theta)

    def _ranked(self, wanted: list[int], truth: list[Floats]) -> tuple[dict[int, Position], Any]:
        if self._ready is None and self.piece.outputs is None:
            return self._streamed(wanted, truth)
        iid = self._ready is None or self._ready[1]
        found = self._entries(wanted, truth) if iid else {}
        values = {k: self._draw_values(self.functions[k]) for k in wanted if k not in found}
        found |= {k: _among(values[k], truth[k], self.jitter[:, k], iid=iid) for k in values}
        self.summaries |= {k: of_draws(values[k], truth[k]) for k in values}
        return found, self._members(values, truth) if iid and values else None

    def _entries(self, wanted: list[int], truth: list[Floats]) -> dict[int, Position]:
        """Rank the entries of a vector parameter together, in the order its draws are stored."""
        ready = None if self._ready is None else self._ready[0]
        entries = [k for k in wanted if is_coordinate(self.functions[k])]
        if not isinstance(ready, np.ndarray) or ready.ndim != 3 or len(entries) < ready.shape[2]:
            return {}
        if self._keep_members(wanted, len(ready)) or _not_finite(ready.reshape(len(ready), -1)).any():
            return {}
        below, ties = statistic.count_entries(np.swapaxes(ready, 0, 1), rounded_like(self.piece.theta, ready))
        draws = np.full(self.b, len(ready))
        some = ready[:: -(-len(ready) // MOST)]
        self.summaries |= {
            k: of_draws(some[:, :, j], truth[k]) for k in entries for j in coordinate_index(self.functions[k])
        }
        return {
            k: statistic.ranked(below[:, j], ties[:, j], draws, self.jitter[:, k])
            for k in entries
            for j in coordinate_index(self.functions[k])
        }

    def _draw_values(self, f: TestFunction) -> Floats:
        if self._ready is not None:
            return self._evaluate(f, self._ready[0], 2)
        drawn = self._drawn[1]
        if isinstance(drawn, list):
            columns = [[f.evaluate(one, 0, y=y) for one in row] for row, y in zip(drawn, self.piece.y, strict=True)]
            return np.array(columns, float).T
        return self._evaluate(f, drawn, 2)

    def _streamed(self, wanted: list[int], truth: list[Floats]) -> tuple[dict[int, Position], Any]:
        """Rank among draws of a batch of outputs, a few draws at a time so that memory does not grow with them."""
        counts = {k: _Counts(truth[k]) for k in wanted}
        some: dict[int, list[Floats]] = {k: [] for k in wanted}
        keep = self._keep_members(wanted, self.question.draws)
        kept: dict[int, list[Floats]] = {k: [] for k in wanted}
        rng = self._keyed(0)
        for size in _steps(self.question.draws, self.b * _entries(self.piece.theta)):
            part = fitting(self.piece.output.sample(size, rng), self.piece.theta)
            if self._score is not None:
                self._score.add(part)
            for k in wanted:
                values = self._evaluate(self.functions[k], part, 2)
                if counts[k].draws < MOST:
                    some[k].append(values[: MOST - counts[k].draws])
                counts[k].add(values)
                if keep:
                    kept[k].append(values)
        found = {k: counts[k].position(self.jitter[:, k]) for k in wanted}
        self.summaries |= {k: of_draws(np.concatenate(some[k]), truth[k]) for k in wanted}
        return found, self._members({k: np.concatenate(kept[k]) for k in wanted}, truth) if keep else None

    def _keep_members(self, wanted: Sequence[int], draws: int) -> bool:
        """Whether every strong test function is ranked, and the ranks of all members up to here fit in memory.

        It depends on where the piece is, not on n, so that n can be extended.
        """
        cost = (int(self.piece.index[-1]) + 1) * (draws + 1) * len(self.strong) * 2
        return len(self.strong) > 1 and set(self.strong) <= set(wanted) and draws < 2**16 and cost <= _MEMBER_BYTES

    def _members(self, values: dict[int, Floats], truth: list[Floats]) -> Any:
        draws = len(next(iter(values.values())))
        if not self._keep_members(list(values), draws):
            return None
        ties = self.streams.uniforms("members", self.piece.index, draws + 1)
        return tuple(statistic.member_ranks(values[k], truth[k], ties) for k in self.strong)

    # All entries together.

    @cached_property
    def _score(self) -> EnergyScore | None:
        """The energy score of the outputs."""
        return self._new_score()

    def _new_score(self) -> EnergyScore | None:
        """Return an energy score for the truths; None if theta is not made of several numbers."""
        theta = entries(self.piece.theta, 1)
        if theta is None or theta.shape[1] < 2 or self.question.units is None:
            return None
        return EnergyScore(theta, self.question.units)

    def _energy(self) -> Floats:
        """Return the energy scores of outputs and belief."""
        score, belief = self._score, self._new_score()
        if score is None or belief is None:
            return np.full((2, self.b), np.nan)
        if not score.count and (draws := self._draws_for_energy()) is not None:
            score.add(draws)
        belief.add(self.question.rivals(self.piece.index))
        return np.stack([score.value(), belief.value()])

    def _draws_for_energy(self) -> Any:
        """Return draws x replicates: some of those that others used, or a few fresh ones."""
        if self._ready is not None:
            return _spread_out(self._ready[0])
        if self.piece.output.sample is None:
            return None
        if self.piece.outputs is None:
            rng = self.streams.generator("energy", _FRESH + int(self.piece.index[0]))
            return fitting(self.piece.output.sample(_FEW, rng), self.piece.theta)
        if any(law is None for law in self.laws):
            return _spread_out(self._drawn[1])
        if any((size := draws_available(one)) is not None and size < _FEW for one in self.piece.outputs):
            return None  # draws that repeat would look sharp
        rngs = (self.streams.generator("energy", _FRESH + int(i)) for i in self.piece.index)
        rows = [one.sample(_FEW, rng) for one, rng in zip(self.piece.outputs, rngs, strict=True)]
        return fitting(stack_values(rows, axis=1), self.piece.theta)

    # The weak level.

    def _weak(self, k: int, f: TestFunction) -> Floats:
        """Return f at one draw of every output; nan if there is none, or if f is not a function of theta alone."""
        if f.level != "strong":
            return np.full(self.b, np.nan)
        if self._ready is not None:
            draws = leading_shape(self._ready[0], 1)[0]
            chosen = (self.jitter[:, -1] * draws).astype(int)
            return self._evaluate(f, take(self._ready[0], (chosen, np.arange(self.b))), 1)
        if self.piece.output.sample is None:
            return self._weak_without_sample(k, f)
        if self.piece.outputs is None:
            return self._evaluate(f, take(self._one_draw, 0), 1)
        return self._evaluate(f, self._drawn[0], 1)

    @cached_property
    def _one_draw(self) -> Any:
        """One draw per output of a batch, the same for every test function."""
        rng = self.streams.generator("weak", int(self.piece.index[0]))
        return fitting(self.piece.output.sample(1, rng), self.piece.theta)

    def _weak_without_sample(self, k: int, f: TestFunction) -> Floats:
        """Draw f(vartheta) from its exact law."""
        law = self.laws[k]
        assert law is not None
        if self.piece.outputs is None:
            return np.asarray(law.sample(1, self.streams.generator("weak", int(self.piece.index[0]) + (k << 48)))[0])
        laws = [output.marginal(f) for output in self.piece.outputs]
        rngs = (self.streams.generator("weak", int(i) + (k << 48)) for i in self.piece.index)
        return np.array([float(np.squeeze(one.sample(1, rng))) for one, rng in zip(laws, rngs, strict=True)])


def _spread_out(draws: Any) -> Any:
    if isinstance(draws, dict):
        return {name: spread_out(part) for name, part in draws.items()}
    return spread_out(draws)


class _Counts:
    """Numbers of draws below and at the truths, added up part by part."""

    def __init__(self, truth: Floats) -> None:
        self.truth, self.draws = truth, 0
        self.below, self.ties = np.zeros(truth.shape, np.int64), np.zeros(truth.shape, np.int64)
        self.lost = ~np.isfinite(truth)

    def add(self, values: Floats) -> None:
        _need_shape(values, self.truth)
        below, ties = statistic.count(values, self.truth)
        self.below += below
        self.ties += ties
        self.draws += len(values)
        self.lost |= _not_finite(values)

    def position(self, v: Floats) -> Position:
        position = statistic.ranked(self.below, self.ties, np.full(self.truth.shape, self.draws), v)
        position.u[self.lost] = np.nan
        return position


def rounded_like(theta: Any, draws: Any) -> Any:
    """Return theta in the precision of the draws: a truth of 0.1 ties with draws that were stored as float32(0.1)."""
    if isinstance(theta, dict):
        return {name: rounded_like(part, draws[name]) for name, part in theta.items()}
    coarse = isinstance(theta, np.ndarray) and theta.dtype.kind == "f" and draws.dtype in (np.float32, np.float16)
    return theta.astype(draws.dtype) if coarse else theta


def is_coordinate(f: TestFunction) -> bool:
    """Whether a test function is an entry of the parameter."""
    return isinstance(f.inner if isinstance(f, Renamed) else f, Coordinate)


def coordinate_index(f: TestFunction) -> tuple[int, ...]:
    """Return the index of the entry that a coordinate picks."""
    inner = f.inner if isinstance(f, Renamed) else f
    assert isinstance(inner, Coordinate)
    return inner.index


def law_of(distribution: Any, f: TestFunction) -> Univariate | None:
    """Return the exact law of a function of theta alone under a belief or a batch of outputs, or None."""
    return None if distribution.marginal is None or f.level != "strong" else distribution.marginal(f)


def fitting(draws: Any, theta: Any) -> Any:
    """Return draws x replicates if their own axes are those of theta; say what does not fit otherwise."""
    if isinstance(theta, dict) != isinstance(draws, dict):
        raise InvalidStudy(f"the output's draws are {_form(draws)}, but theta is {_form(theta)}; they must match.")
    if isinstance(theta, dict):
        if missing := sorted(set(theta) - set(draws)):
            raise InvalidStudy(f"the output's draws must have every name of theta, but {missing} are missing.")
        return {key: fitting(draws[key], theta[key]) for key in draws if key in theta}
    if isinstance(theta, np.ndarray) and np.shape(draws)[1:] != theta.shape:
        raise InvalidStudy(
            f"the output's draws must have shape {('draws', *theta.shape[1:])} to match theta, but one output's have "
            f"{('draws', *np.shape(draws)[2:])}"
            + (
                "."
                if np.shape(draws)[1:2] == theta.shape[:1]
                else f", and {np.shape(draws)[1:2]} outputs came for "
                f"{len(theta)} replicates (a batch of draws has draws on axis 0, replicates on axis 1)."
            )
        )
    return draws


def _form(value: Any) -> str:
    return f"a dict of {sorted(value)}" if isinstance(value, dict) else f"{type(value).__name__}"


def _kind(piece: Piece) -> str:
    return type(piece.outputs[0] if piece.outputs else piece.output).__name__


def _among(values: Floats, truth: Floats, v: Floats, *, iid: bool) -> Position:
    """Return positions among draws; nan where a draw or the truth is not finite."""
    _need_shape(values, truth)
    lost = _not_finite(values) | ~np.isfinite(truth)
    position = statistic.among(values, truth, v, iid=iid)
    position.u[lost] = np.nan
    if not iid:
        _refuse_short_chains(position.draws[~lost], len(values))
    return position


def _refuse_short_chains(left: NDArray[np.int64], length: int) -> None:
    """Refuse chains that are typically worth too few draws; a single one with few left costs nothing but power."""
    if left.size and np.median(left) < _SHORTEST:
        raise InvalidStudy(
            f"a chain must be worth at least {_SHORTEST} independent draws to be ranked among, but chains of {length} "
            f"are worth {np.median(left):.0f}; they are too short for their autocorrelation: run them longer."
        )


def _need_shape(values: Floats, truth: Floats) -> None:
    if values.ndim != 2 or values.shape[1:] != truth.shape:
        raise InvalidStudy(
            f"test function values of the draws must have shape (draws, {len(truth)}), but {values.shape} arrived."
        )


def _not_finite(values: Floats) -> NDArray[np.bool_]:
    """Find columns with a nan or an infinity; a finite sum proves there is none, at the price of one addition."""
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = ~np.isfinite(values.sum(axis=0))
    if suspects.any():
        suspects[suspects] = ~np.isfinite(values[:, suspects]).all(axis=0)
    return np.asarray(suspects)


def _steps(draws: int, width: int) -> list[int]:
    """Split a number of draws into parts of bounded size."""
    step = max(1, _CHUNK // max(width, 1))
    return [min(step, draws - start) for start in range(0, draws, step)]


def _entries(theta: Any) -> int:
    """Return how many numbers one parameter has."""
    if isinstance(theta, dict):
        return sum(_entries(part) for part in theta.values())
    return int(np.prod(theta.shape[1:], initial=1)) if isinstance(theta, np.ndarray) else 1
