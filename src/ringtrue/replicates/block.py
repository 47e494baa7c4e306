"""A block of simulated replicates, and what its reducers share: values of test functions, laws, draws.

One route for all: outputs that came one by one are a batch of singles. What differs, how draws are taken from them, is
in two small classes at the end. This module knows no tests, keeps no records, and catches no exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from weakref import proxy

import numpy as np

from ..distributions import Batch, Draws, Law, Normal, stack
from ..distributions.laws import need_law
from ..errors import InvalidStudy, NoRoute
from ..functions import Context, Pooled, TestFunction
from ..question.study import Question
from ..streams import Role, Streams
from ..values import Floats, Generator, Ints, entries, stack_values, take, width
from . import positions
from .positions import Place
from .record import CHAINS, WEIGHTED

#: Numbers drawn at once from a batch of outputs, to bound memory.
_CHUNK = 1_000_000
#: Draws that are enough for summaries: they are averages over replicates, whose noise drowns theirs.
ENOUGH = 100
#: Bytes that the ranks of all members may take; beyond, the joint test falls back on Bonferroni.
_MEMBER_BYTES = 16_000_000
#: Draws of each output that functions of all members compare at most.
POOLED = 99
#: Draws that the energy score takes at most; and where none were drawn for anything else.
SCORED, _FEW = 20, 4
#: Draws of an output that are averaged. More would save 6 to 12 % of replicates; averages would then be functions of
#: the data, nearly, and where these are often the same, 50 replicates do not tell how skew they are (size .03 at 1 %).
AVERAGED = 16


class Uneven(Exception):
    """The outputs of a block differ in their numbers of draws and must be reduced one by one."""


@dataclass(frozen=True, eq=False)
class Ready:
    """Draws that exist already: draws x replicates, of how many chains (0: independent), what was done to them.

    ``said`` is whether somebody said that they are independent, or chains.
    """

    values: Any
    chains: int
    treated: int
    said: bool


@dataclass(frozen=True, eq=False)
class Drawn:
    """Draws of one test function, (draws, replicates), and what several reducers make of them."""

    values: Floats

    @cached_property
    def rows(self) -> Floats:
        """Replicates first and contiguous, so that a sum does not depend on how many are summed side by side."""
        return np.ascontiguousarray(self.values.T)

    @cached_property
    def ordered(self) -> Floats:
        """The rows, each sorted."""
        return np.sort(self.rows, axis=1)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Where truths fall among draws of one test function: the place, some of the draws' values, and all if asked."""

    place: Place
    some: Floats
    values: Floats | None

    @cached_property
    def drawn(self) -> Drawn:
        """Some of the draws, with what is made of them."""
        return Drawn(self.some)


class Block:
    """Replicates side by side: the numbers of the replicates, theta, y, and their outputs.

    Parameters
    ----------
    question
        What is asked.
    streams
        Of the study.
    index, theta, y
        Numbers, truths and data, the replicate on the first axis.
    outputs
        A batch as one object, or a sequence of single outputs.
    """

    def __init__(self, question: Question, streams: Streams, index: Ints, theta: Any, y: Any, outputs: Any) -> None:
        self.question, self.streams, self.index, self.theta, self.y = question, streams, index, theta, y
        self.b, self.functions = len(index), question.functions
        # A batch is one object, whatever it is; only singles come as a sequence.
        single = isinstance(outputs, (list, tuple))
        if isinstance(outputs, Draws) and (np.ndim(outputs.weights) == 2 or outputs.lost):  # so many effective sizes
            outputs, single = outputs.members(), True
        self.outputs: OneByOne | Together = OneByOne(self, outputs) if single else Together(self, outputs)

    def alone(self, j: int) -> Block:
        """Return the j-th replicate as a block of its own."""
        one = slice(j, j + 1)
        return Block(
            self.question,
            self.streams,
            self.index[one],
            take(self.theta, one),
            take(self.y, one),
            self.outputs.members[one],
        )

    @cached_property
    def laws(self) -> list[Law | None]:
        """The exact law of every test function, where there is one."""
        return [law_of(self.outputs.whole, f) for f in self.functions]

    @cached_property
    def strong(self) -> list[int]:
        """The columns of test functions of theta alone."""
        return [k for k, f in enumerate(self.functions) if f.sees == "theta"]

    @cached_property
    def jitter(self) -> Floats:
        """Uniforms for ties, atoms and the choice of a draw; a function of the replicate's index alone."""
        return self.streams.uniforms("ties", self.index, len(self.functions) + 1)

    @cached_property
    def truths(self) -> list[Floats]:
        """Every test function at the truths."""
        ready = self.outputs.ready
        # Ties between truth and draws are decided in the precision that the draws were stored in.
        theta = self.theta if ready is None else rounded_like(self.theta, ready.values)
        return [self._of_pool(k)[0] if isinstance(f, Pooled) else self._truth(f, theta) for k, f in self._numbered]

    @property
    def _numbered(self) -> list[tuple[int, TestFunction]]:
        return list(enumerate(self.functions))

    def _truth(self, f: TestFunction, theta: Any) -> Floats:
        # One leading axis, the replicate: a wrong shape shows here, before it could broadcast into a wrong rank.
        values = self.evaluate(f, theta, 1)
        if values.shape != (self.b,):
            raise InvalidStudy(
                f"test function {f.name!r} must give one number per parameter, but gave shape {values.shape} for "
                f"{self.b} parameters; does theta have the shape it expects?"
            )
        return values

    def evaluate(self, f: TestFunction, theta: Any, lead: int) -> Floats:
        """Evaluate f, replicate by replicate if it must see outputs that do not fit into one object."""
        whole = self.outputs.whole
        try:
            if f.sees != "output" or not isinstance(whole, Batch):
                return f.evaluate(theta, Context(lead, self.y, whole, self._points))
            before = (slice(None),) * (lead - 1)
            columns = [
                f.evaluate(take(theta, (*before, j)), self.context_of(j, lead - 1, output))
                for j, output in enumerate(whole.outputs)
            ]
        except KeyError as error:  # a part of theta that the outputs have not
            raise InvalidStudy(
                f"test function {f.name!r} asks about {error}, which outputs or truths lack; {self._asking(theta)}."
            ) from error
        return np.stack(columns, axis=-1)

    def _asking(self, evaluated: Any) -> str:
        """Return what to write to ask about that part of theta only which the outputs have, as far as they are known.

        What was evaluated are draws of the outputs; truths themselves do not tell what outputs have.
        """
        ready = self.outputs.ready
        drawn = evaluated if ready is None else ready.values
        named = isinstance(self.theta, Mapping) and isinstance(drawn, Mapping)
        both = [name for name in self.theta if name in drawn] if named else []
        known = both and len(both) < len(self.theta)
        return f"to ask about what both have, pass f={both}" if known else "leave it out of f="

    def _points(self, many: int) -> Floats:
        return self.streams.uniforms("points", self.index, many)

    def context_of(self, j: int, lead: int, output: Any = None) -> Context:
        """Return what a test function may look at that is asked about the j-th replicate only."""
        return Context(lead, take(self.y, j), output, lambda many: self._points(many)[j])

    def need_route(self) -> None:
        """Refuse test functions that the outputs know neither by a law nor by draws."""
        missing = [f.name for f, law in zip(self.functions, self.laws, strict=True) if law is None]
        # Asked before anything is drawn, so that the sentence names all functions without a route, not the first.
        if missing and self.outputs.whole.sample is None:
            raise NoRoute(
                f"the output {self.outputs.kind} has neither an exact law nor draws for test function "
                f"{', '.join(map(repr, missing))}; give it a sample, or choose test functions whose law it knows."
            )

    # The rank route.

    @cached_property
    def wanted(self) -> list[int]:
        """The columns without an exact law."""
        return [k for k, law in enumerate(self.laws) if law is None]

    @cached_property
    def ranked(self) -> dict[int, Ranked]:
        """The columns without an exact law: places of the truths among draws."""
        if not self.wanted:
            return {}
        found = self._entries()
        for k in (k for k in self.wanted if isinstance(self.functions[k], Pooled)):
            truth, *values = self._of_pool(k)
            place = positions.among(np.array(values), truth, self.jitter[:, k])
            found[k] = Ranked(place, np.array(values), np.array(values))
        rest = [k for k in self.wanted if k not in found]
        return found | (self.outputs.in_parts(rest) if self.outputs.in_parts else self._at_once(rest))

    def _at_once(self, wanted: Sequence[int]) -> dict[int, Ranked]:
        found = {}
        for k in wanted:
            values = self.draw_values(self.functions[k])
            place = positions.among(values, self.truths[k], self.jitter[:, k])
            found[k] = Ranked(place, spaced(values), values)
        return found

    # Functions of all members.

    @cached_property
    def pool(self) -> Any:
        """Truth and at most 99 draws of every replicate, truth first: a parameter with two leading axes."""
        ready = self.outputs.ready
        theta, draws = self.theta, self.outputs.pooled(POOLED) if ready is None else spaced_of(ready.values, POOLED)
        if ready is not None:
            theta = rounded_like(theta, ready.values)
        if isinstance(draws, Mapping):
            return {name: np.concatenate([theta[name][None], part]) for name, part in draws.items()}
        return np.concatenate([theta[None], draws])

    def _of_pool(self, k: int) -> Floats:
        """Return a function of all members, (members, replicates)."""
        f, ready = self.functions[k], self.outputs.ready
        assert isinstance(f, Pooled)
        if ready is not None and ready.chains:
            raise InvalidStudy(
                f"test function {f.name!r} needs draws that are independent, but Markov chains came; leave it out: the "
                f"joint law of chains is tested by itself."
            )
        members = None if isinstance(self.theta, list) else entries(self.pool, 2)
        if members is None:
            raise InvalidStudy(f"test function {f.name!r} needs a parameter made of numbers.")
        return f.of_pool(members, Context(1, self.y, self.outputs.whole, self._points))

    def _entries(self) -> dict[int, Ranked]:
        """Rank the entries of a vector parameter together, in the order its draws are stored."""
        ready = self.outputs.ready
        draws = None if ready is None or ready.chains else ready.values
        entries = {k: f.index for k in self.wanted if (f := self.functions[k]).kind == "coordinate"}  # type: ignore[attr-defined]
        # Worth it only if every entry of the vector is asked about: it counts all of them.
        if not isinstance(draws, np.ndarray) or draws.ndim != 3 or len(entries) < draws.shape[2]:
            return {}
        if self.keeps_members(len(draws)) or positions.not_finite(draws.reshape(len(draws), -1)).any():
            return {}
        below, ties = positions.count_entries(np.swapaxes(draws, 0, 1), rounded_like(self.theta, draws))
        many, some = np.full(self.b, len(draws)), spaced(draws)
        return {
            k: Ranked(positions.ranked(below[:, j], ties[:, j], many, self.jitter[:, k]), some[:, :, j], None)
            for k, (j,) in entries.items()
        }

    def draw_values(self, f: TestFunction) -> Floats:
        """Return f at all draws that are at hand, (draws, replicates)."""
        # Values are computed per function and thrown away: draws x replicates x functions would not fit in memory.
        drawn = self.outputs.at_hand
        if isinstance(drawn, list):  # objects, such as functions: lists of draws, one per replicate
            columns = [[f.evaluate(one, self.context_of(j, 0)) for one in row] for j, row in enumerate(drawn)]
            return np.array(columns, float).T
        return self.evaluate(f, drawn, 2)

    def keeps_members(self, draws: int) -> bool:
        """Whether every strong test function is ranked, and the ranks of all members up to here fit in memory.

        It depends on where the block is, not on n, so that n can be extended.
        """
        # A single function needs no joint test, and a function with an exact law has no rank to randomise.
        if len(self.strong) < 2 or not set(self.strong) <= set(self.wanted):
            return False
        cost = (int(self.index[-1]) + 1) * (draws + 1) * len(self.strong) * 2
        return draws < 2**16 and cost <= _MEMBER_BYTES


class Together:
    """A batch of outputs in one object: its draws come from one stream, a part at a time."""

    def __init__(self, block: Block, output: Any) -> None:
        # A cycle of block and outputs would keep all draws until the garbage collector comes by.
        self.block: Block = proxy(block)
        self.whole = output
        self.kind = type(output.origin).__name__
        self.lost = output.lost

    members: Any = None

    @cached_property
    def ready(self) -> Ready | None:
        """Draws that exist already."""
        # Draws that exist are used as they are; everything else that can be sampled makes as many as are asked for.
        if not isinstance(self.whole, Draws):
            return None
        equal, treated = _equally_weighted(self.whole, lambda: self._stream)
        return Ready(fitting(equal.values, self.block.theta), chains_of(equal), treated, equal.iid is not None)

    @property
    def _stream(self) -> Generator:
        block = int(self.block.index[0]) // (self.block.question.batch or 1)
        return self.block.streams.generator("statistic", block)

    @property
    def at_hand(self) -> Any:
        """Draws x replicates that exist already."""
        assert self.ready is not None
        return self.ready.values

    @property
    def in_parts(self) -> Any:
        """How to rank among draws that are made on the way; None if there are draws already."""
        return None if self.ready is not None else self._in_parts

    def _in_parts(self, wanted: Sequence[int]) -> dict[int, Ranked]:
        """Rank among fresh draws, a few at a time so that memory does not grow with them."""
        block = self.block
        # Counts below and at the truth are all that a rank needs, so draws need not be kept.
        counts = {k: positions.Counts(block.truths[k]) for k in wanted}
        keep = block.keeps_members(block.question.draws)
        kept: dict[int, list[Floats]] = {k: [] for k in wanted}
        for part in self._parts():
            for k in wanted:
                values = block.evaluate(block.functions[k], part, 2)
                if keep or counts[k].draws < ENOUGH:
                    kept[k].append(values if keep else values[: ENOUGH - counts[k].draws])
                counts[k].add(values)
        found = {}
        for k in wanted:
            values = np.concatenate(kept[k])
            found[k] = Ranked(counts[k].place(block.jitter[:, k]), values[:ENOUGH], values if keep else None)
        return found

    def _parts(self) -> Iterator[Any]:
        theta, draws, rng = self.block.theta, self.block.question.draws, self._stream
        # The steps depend on the batch and the parameter alone: a run that is cut elsewhere draws the same numbers.
        step = max(1, _CHUNK // max(self.block.b * width(theta), 1))
        self.first_draws: list[Any] = []
        for start in range(0, draws, step):
            part = fitting(self.whole.sample(min(step, draws - start), rng), theta)
            if start < SCORED and width(theta) > 1:  # one number has no energy score of its own
                self.first_draws.append(take(part, slice(0, SCORED - start)))
            yield part

    @cached_property
    def one_draw(self) -> Any:
        """One draw of every output, the same for every test function."""
        # A stream of its own: the draw that the weak level sees must not be one that the truth is ranked among.
        rng = self.block.streams.generator("weak", int(self.block.index[0]))
        return take(fitting(self.whole.sample(1, rng), self.block.theta), 0)

    def from_law(self, law: Law, k: int, role: Role = "weak", many: int = 1) -> Floats:
        """Draws x replicates of every output's law of test function k."""
        return np.asarray(law.sample(many, self.block.streams.generator(role, int(self.block.index[0]), lane=k)))

    def some_draws(self) -> Iterator[Any]:
        """Draws x replicates for the energy score: the first of those that were made, or a few fresh ones."""
        if self.block.wanted:
            _ = self.block.ranked
            return iter(self.first_draws)
        rng = self.block.streams.generator("energy", int(self.block.index[0]), lane=1)
        return iter([fitting(self.whole.sample(_FEW, rng), self.block.theta)])

    def few_draws(self) -> Any:
        """Draws x replicates to average over, when none were made to rank among."""
        rng = self.block.streams.generator("averages", int(self.block.index[0]), lane=1)
        return fitting(self.whole.sample(AVERAGED, rng), self.block.theta)

    def all_draws(self) -> Any:
        """Draws x replicates, as many as the question takes."""
        return fitting(self.whole.sample(self.block.question.draws, self._stream), self.block.theta)

    def pooled(self, most: int) -> Any:
        """Draws x replicates to compare with each other and the truth, from a stream of their own."""
        rng = self.block.streams.generator("pool", int(self.block.index[0]))
        return fitting(self.whole.sample(min(most, self.block.question.draws), rng), self.block.theta)


class OneByOne:
    """Outputs that came one by one: each draws from the stream of its replicate."""

    in_parts = None

    def __init__(self, block: Block, outputs: Sequence[Any]) -> None:
        self.block: Block = proxy(block)
        self.members = outputs
        self.whole = stack(outputs)
        self.kind = type(outputs[0].origin).__name__
        self.lost = {j: one.lost[0] for j, one in enumerate(outputs) if 0 in one.lost}

    def _stream(self, j: int) -> Generator:
        return self.block.streams.generator("statistic", int(self.block.index[j]))

    @cached_property
    def ready(self) -> Ready | None:
        """Draws that exist already, equally many of every output."""
        if not all(isinstance(one, Draws) for one in self.members):
            return None
        weighted = any(one.weights is not None for one in self.members)
        each = self._equally_weighted() if weighted else self.members
        # Side by side, outputs need equally many draws; those that differ are reduced one by one.
        if len(kinds := {(one.size, one.chains or 0) for one in each}) > 1:
            raise Uneven
        ((_, chains),) = kinds
        values = fitting(stack_values([one.values for one in each], axis=1), self.block.theta)
        treated = (CHAINS if chains else 0) | (WEIGHTED if weighted else 0)
        return Ready(values, chains, treated, all(one.iid is not None for one in each))

    def _equally_weighted(self) -> list[Draws]:
        return [_equally_weighted(one, partial(self._stream, j))[0] for j, one in enumerate(self.members)]

    @cached_property
    def _drawn(self) -> tuple[Any, Any]:
        """Fresh draws: one of every output for the weak level, and those to rank among, or a few if none are."""
        more = self.block.question.draws if self.block.wanted else AVERAGED
        limit = min((one.size for one in self.members if one.size is not None), default=None)
        # An output with few draws of its own lends the weak level one of those it is ranked among.
        few = limit is not None and limit < 1 + more
        if isinstance(self.whole, Normal):  # all at once, at a fraction of the price
            uniforms = partial(self.block.streams.uniforms, "statistic", self.block.index)
            drawn = fitting(self.whole.sample_each(1 + more, uniforms), self.block.theta)
            return take(drawn, 0), take(drawn, slice(1, None))
        rows = [one.sample(limit if few else 1 + more, self._stream(j)) for j, one in enumerate(self.members)]
        if isinstance(rows[0], list):
            return [row[0] for row in rows], [row if few else row[1:] for row in rows]
        # The first draw is the weak level's, the others are ranked among: one call per output is half the price of two.
        drawn = fitting(stack_values(rows, axis=1), self.block.theta)
        return take(drawn, 0), drawn if few else take(drawn, slice(1, None))

    @property
    def at_hand(self) -> Any:
        """Draws x replicates: those that exist, or those that were made."""
        return self._drawn[1] if self.ready is None else self.ready.values

    @property
    def one_draw(self) -> Any:
        """One draw of every output."""
        return self._drawn[0]

    def from_law(self, law: Law, k: int, role: Role = "weak", many: int = 1) -> Floats:
        """Draws x replicates of every output's law of test function k."""
        laws = [one.marginal(self.block.functions[k]) for one in self.members]
        rngs = (self.block.streams.generator(role, int(i), lane=k) for i in self.block.index)
        drawn = [np.reshape(one.sample(many, rng), many) for one, rng in zip(laws, rngs, strict=True)]
        return np.stack(drawn, axis=1)

    def some_draws(self) -> Iterator[Any]:
        """Draws x replicates for the energy score: those that were made, or a few fresh ones if none were."""
        if self.block.wanted:
            return iter([spread_out(self._drawn[1])])
        if any(one.size is not None and one.size < _FEW for one in self.members):
            return iter(())  # draws that repeat would look sharp
        return iter([take(self._drawn[1], slice(0, _FEW))])

    def few_draws(self) -> Any:
        """Draws x replicates to average over, when none were made to rank among."""
        return self._drawn[1]

    def all_draws(self) -> Any:
        """Draws x replicates, as many as the question takes."""
        many = self.block.question.draws
        rows = [one.sample(many, self._stream(j)) for j, one in enumerate(self.members)]
        return fitting(stack_values(rows, axis=1), self.block.theta)

    def pooled(self, most: int) -> Any:
        """Draws x replicates to compare with each other and the truth: those that were made, or fresh ones."""
        if self.block.wanted:
            return spaced_of(self._drawn[1], most)
        many = min([most, self.block.question.draws, *(one.size for one in self.members if one.size is not None)])
        rngs = (self.block.streams.generator("pool", int(i)) for i in self.block.index)
        rows = [one.sample(many, rng) for one, rng in zip(self.members, rngs, strict=True)]
        return fitting(stack_values(rows, axis=1), self.block.theta)


def _equally_weighted(draws: Draws, stream: Callable[[], Generator]) -> tuple[Draws, int]:
    treated = CHAINS if chains_of(draws) else 0
    return (draws, treated) if draws.weights is None else (draws.equally_weighted(stream()), treated | WEIGHTED)


def chains_of(draws: Draws) -> int:
    """Return how many Markov chains draws are; 0 if they are independent."""
    return draws.chains or 0


def law_of(distribution: Any, f: TestFunction) -> Law | None:
    """Return the exact law of a function of theta alone under a belief or a batch of outputs, or None."""
    if distribution.marginal is None or f.sees != "theta":
        return None
    return need_law(distribution.marginal(f), f.name, distribution.origin)


def spaced(values: Any) -> Any:
    """Return at most a hundred of the draws on axis 0, evenly spaced."""
    return values[:: -(-len(values) // ENOUGH)]


def spaced_of(draws: Any, most: int) -> Any:
    """Return at most so many of the draws on axis 0, evenly spaced, of every part of a parameter."""
    if isinstance(draws, Mapping):
        return {name: spaced_of(part, most) for name, part in draws.items()}
    return draws[np.arange(min(most, len(draws))) * len(draws) // min(most, len(draws))]


def spread_out(draws: Any) -> Any:
    """Return enough draws on axis 0 for the energy score, evenly spaced, so that neighbours are half of them apart.

    Neighbours make pairs, and a Markov chain must not count its own inertia as sharpness.

    Examples
    --------
    >>> spread_out(np.arange(100)).tolist()[:4]
    [0, 50, 5, 55]
    """
    if isinstance(draws, dict):
        return {name: spread_out(part) for name, part in draws.items()}
    some = draws[:: -(-len(draws) // SCORED)]
    half = len(some) // 2
    order = np.stack([np.arange(half), np.arange(half) + half], axis=1).ravel()
    return np.asarray(some[order])


def rounded_like(theta: Any, draws: Any) -> Any:
    """Return theta in the precision of the draws: a truth of 0.1 ties with draws that were stored as float32(0.1)."""
    if isinstance(theta, dict):
        return {name: rounded_like(part, draws[name]) if name in draws else part for name, part in theta.items()}
    coarse = isinstance(theta, np.ndarray) and theta.dtype.kind == "f" and draws.dtype in (np.float32, np.float16)
    with np.errstate(over="ignore"):  # a truth beyond the numbers that draws can be is infinitely far from them
        return theta.astype(draws.dtype) if coarse else theta


def fitting(draws: Any, theta: Any) -> Any:
    """Return draws x replicates if their own axes are those of theta; say what does not fit otherwise.

    Parts of theta that the draws have not are left out: whether anybody asks for them shows later.
    """
    if isinstance(theta, dict) != isinstance(draws, dict):
        raise InvalidStudy(f"the output's draws are {_form(draws)}, but theta is {_form(theta)}; they must match.")
    if isinstance(theta, dict):
        # Nuisance parameters of an output that the truth does not have are nobody's business here.
        common = {key: fitting(draws[key], theta[key]) for key in draws if key in theta}
        if not common:
            raise InvalidStudy(f"the output's draws must have names of theta, {sorted(theta)}, but none of them came.")
        return common
    if isinstance(theta, np.ndarray) and np.shape(draws)[1:] != theta.shape:
        raise InvalidStudy(
            f"the output's draws must have shape {('draws', *theta.shape[1:])} to match theta, but one output's have "
            f"{('draws', *np.shape(draws)[2:])}{_many_outputs(np.shape(draws)[1:2], theta.shape[:1])}"
        )
    return draws


def _many_outputs(came: tuple[int, ...], expected: tuple[int, ...]) -> str:
    if came == expected:
        return "."
    return (
        f", and {came} outputs came for {expected[0]} replicates (a batch of draws has draws on axis 0, replicates on "
        f"axis 1)."
    )


def _form(value: Any) -> str:
    return f"a dict of {sorted(value)}" if isinstance(value, dict) else f"{type(value).__name__}"
