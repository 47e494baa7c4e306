"""Markov kernels: chains that start at the truth, where a kernel that leaves the posterior alone is stationary at once.

What is kept is every test function before and after. A replicate is a function of the seed and its number. This module
runs the user's kernel in this process, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..callables import called
from ..errors import InvalidStudy, ReplicateFailed
from ..functions import Context, TestFunction
from ..question.study import Study
from ..streams import Role, Streams
from ..values import Floats, Generator, Ints, as_array, copied, entries, stack_values, take
from .block import rounded_like

#: Numbers nearer to each other than this share of their spread, or of themselves, are one number that was rounded.
_ROUNDING, _DIGITS = 1e-9, 1e-12
#: Fresh truths and data per replicate: a run of the model costs little beside all steps of a kernel, and with ten the
#: variance of a difference is 1.1 times that with infinitely many.
FRESH = 10


@dataclass(frozen=True, eq=False)
class Moved:
    """What a kernel did to n truths.

    Attributes
    ----------
    names, kinds
        Of the K test functions.
    before, after, renewed
        (n, K): f at the truth and its data, after so many steps, and after several rounds of so many steps and new data
        each.
    fresh
        (n, FRESH, K): f at other truths and their data, which no kernel has touched.
    unchanged
        The share of replicates whose theta is the same after these steps.
    ranks, length
        (n, K): the rank of the truth in a chain of so many steps that ran both ways from it; None if not asked for.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    before: Floats
    after: Floats
    renewed: Floats
    fresh: Floats
    unchanged: float
    ranks: Ints | None
    length: int


class KernelTrial:
    """A kernel that is to be tried.

    Parameters
    ----------
    study
        Says what belief, model and test functions are; its procedure is not used.
    kernel
        ``kernel(theta, y)`` or ``kernel(theta, y, rng)``, returns the next theta.
    steps, rounds
        So many steps make a round, at the end of which data are drawn anew.
    length
        Steps of a chain that runs both ways from the truth; 0 for none.
    """

    def __init__(self, study: Study, kernel: Any, *, steps: int, rounds: int, length: int) -> None:
        self.study, self.steps, self.rounds, self.length = study, steps, rounds, length
        self.streams = Streams(study.seed)
        self._call, self._random = called(kernel, ("theta", "y"), "the kernel")
        blind = [f.name for f in study.functions if f.sees == "output"]
        if blind:
            raise InvalidStudy(f"a kernel has no output that a test function could see, but {blind[0]!r} asks for one.")

    def run(self, n: int) -> Moved:
        """Move the first n truths."""
        parts = [self._block(block) for block in range(-(-n // (self.study.batch or 1)))]
        arrays = {name: np.concatenate([part[name] for part in parts])[:n] for name in parts[0]}
        before, functions = arrays["before"], self.study.functions
        ranks = _ranks(arrays["chain"], arrays["jitter"]) if self.length else None
        return Moved(
            tuple(f.name for f in functions),
            tuple(f.kind for f in functions),
            before,
            np.where(_same(arrays["after"], before), before, arrays["after"]),
            arrays["renewed"],
            arrays["fresh"],
            float(_same(arrays["end"], arrays["start"]).all(axis=1).mean()),
            ranks,
            self.length,
        )

    def _block(self, block: int) -> dict[str, Any]:
        """Return the numbers of one replicate, or of one batch, the replicate on axis 0."""
        start, y = self._truth(block)
        rng = self.streams.generator("kernel", block)
        theta = after = self._moved(start, y, self.steps, rng, block)
        data = y
        for turn in range(1, self.rounds + 1):
            data = self._simulated(theta, block, ("refresh", turn))
            if turn < self.rounds:
                theta = self._moved(theta, data, self.steps, rng, block, turn * self.steps)
        # What a kernel rounds to fewer digits has not moved.
        last = self._several(after)
        first = rounded_like(self._several(start), last)
        found = {
            "before": self._values(first, y, block),
            "after": self._values(last, y, block),
            "renewed": self._values(self._several(theta), data, block),
            "fresh": np.stack([self._fresh(turn, last, block) for turn in range(FRESH)], axis=1),
            "start": _numbers(first),
            "end": _numbers(last),
        }
        return found | (self._both_ways(start, y, block, found["before"]) if self.length else {})

    def _fresh(self, turn: int, like: Any, block: int) -> Floats:
        """Return f at other truths and their data."""
        theta, y = self._truth(block, 1 + turn)
        return self._values(rounded_like(self._several(theta), like), y, block)

    def _both_ways(self, start: Any, y: Any, block: int, truth: Floats) -> dict[str, Any]:
        """Return f along chains that have the truth at a random place, the truth first, and what breaks ties."""
        rng, size = self.streams.generator("kernel", block, lane=1), self.study.batch or 1
        place = rng.integers(0, self.length + 1, size=size)
        chain = [[row] for row in truth]
        # A replicate of a batch takes as many steps of each path as it has on that side of its place.
        for wanted in (place, self.length - place):
            for step, values in enumerate(self._path(start, y, int(wanted.max()), rng, block)):
                for j in np.flatnonzero(wanted > step):
                    chain[j].append(values[j])
        index = np.arange(block * size, (block + 1) * size)
        return {"chain": np.array(chain), "jitter": self.streams.uniforms("ties", index, truth.shape[1])}

    def _path(self, theta: Any, y: Any, steps: int, rng: Generator, block: int) -> Iterator[Floats]:
        """Yield f after every one of these steps."""
        for step in range(steps):
            theta = self._moved(theta, y, 1, rng, block, step)
            yield self._values(self._several(theta), y, block)

    def _several(self, theta: Any) -> Any:
        """Return theta with the replicate on axis 0."""
        return theta if self.study.batch is not None else stack_values([theta])

    def _values(self, theta: Any, y: Any, block: int) -> Floats:
        """Return every test function, (replicates, functions)."""
        context = Context(1, y if self.study.batch is not None else (y,))
        return np.stack(
            [self._named(block, "test function", partial(_finite, f, theta, context)) for f in self.study.functions],
            axis=1,
        )

    def _truth(self, block: int, other: int = 0) -> tuple[Any, Any]:
        """Draw the truth of a replicate or the truths of a batch, and data; other ones have a number from 1 on."""
        role: Role = "fresh" if other else "truth"
        lane = 2 * other
        stream = partial(self.streams.generator, role, block, lane)
        theta = self._named(block, "belief", lambda: self.study.truths(self.study.batch or 1, stream()))
        theta = theta if self.study.batch is not None else take(theta, 0)
        return theta, self._simulated(theta, block, ("fresh", lane + 1) if other else ("data", 0))

    def _simulated(self, theta: Any, block: int, stream: tuple[Role, int]) -> Any:
        role, lane = stream
        rng = partial(self.streams.generator, role, block, lane)
        return self._named(block, "model", lambda: _dataset(self.study.simulate(copied(theta), rng)))

    def _moved(self, theta: Any, y: Any, steps: int, rng: Generator, block: int, done: int = 0) -> Any:
        """Return theta after some steps; what is not like theta is refused, with the number of the step."""
        data = copied(y)  # kernels may work in place
        for step in range(steps):
            stage = f"kernel, at step {done + step + 1}"
            came = self._named(block, stage, partial(self._call, copied(theta), data, rng))
            theta = self._named(block, stage, partial(_like, came, theta))
        return theta

    def _named(self, block: int, stage: str, call: Callable[[], Any]) -> Any:
        """Call a function of the user's; what it raises is chained to the number of its replicate."""
        try:
            return call()
        except Exception as error:
            size = self.study.batch
            which = f"replicate {block}" if size is None else f"the batch of replicates {block * size} to "
            which += "" if size is None else f"{(block + 1) * size - 1}"
            ours = isinstance(error, (ReplicateFailed, InvalidStudy))
            message = (str(error) if ours else f"{type(error).__name__}: {error}").rstrip(".")
            raise ReplicateFailed(
                f"{which} failed in the {stage}: {message}. It is the same in every run with seed={self.study.seed}, "
                f"n > {block * (size or 1)} and the same settings."
            ) from error


def _dataset(y: Any) -> Any:
    if y is None:
        raise InvalidStudy("the model must return a dataset, but it returned None; is a return statement missing?")
    return copied(y)


def _finite(f: TestFunction, theta: Any, context: Context) -> Floats:
    values = f.evaluate(theta, context)
    if not np.isfinite(values).all():
        raise InvalidStudy(
            f"test functions must be finite at the truth and wherever the kernel goes, but {f.name!r} is not; does the "
            f"kernel leave the support of the posterior?"
        )
    return values


def _like(came: Any, theta: Any) -> Any:
    """Return what a kernel returned as arrays of its own, if it has the form of theta and is finite."""
    if came is None:
        raise InvalidStudy(
            "the kernel must return the next theta, but it returned None; is a return statement missing?"
        )
    if isinstance(theta, Mapping):
        if not isinstance(came, Mapping) or set(came) != set(theta):
            form = sorted(came) if isinstance(came, Mapping) else type(came).__name__
            raise InvalidStudy(f"the kernel must return a dict of {sorted(theta)}, as theta is, but {form} arrived.")
        return {name: _array_like(came[name], theta[name], f" of {name!r}") for name in theta}
    return _array_like(came, theta, "")


def _array_like(came: Any, theta: Any, what: str) -> Any:
    array = as_array(came)
    if array.dtype.kind not in "biuf" or array.shape != np.shape(theta):
        arrived = array.shape if array.dtype.kind in "biuf" else type(came).__name__
        raise InvalidStudy(
            f"the kernel must return numbers{what} of shape {np.shape(theta)}, as theta has, but {arrived} arrived."
        )
    if not np.isfinite(array).all():
        raise InvalidStudy(f"the kernel must return finite numbers, but nan or an infinite one arrived{what}.")
    return array.copy()[()]


def _numbers(theta: Any) -> Floats:
    found = entries(theta, 1)
    if found is None:
        raise InvalidStudy(f"theta must be made of numbers for a kernel, but it is a {type(theta).__name__}.")
    return found


def _same(one: Floats, other: Floats) -> Any:
    """Return which numbers are the same but for rounding, column by column."""
    spread = np.subtract(*np.quantile(other, [0.75, 0.25], axis=0))
    return np.abs(one - other) <= _ROUNDING * spread + _DIGITS * np.abs(other)


def _ranks(chain: Floats, jitter: Floats) -> Ints:
    """Return the rank of the first of every chain, (n, states, functions), ties broken at random."""
    truth, others = chain[:, :1], chain[:, 1:]
    equal = np.stack([_same(others[:, j], truth[:, 0]) for j in range(others.shape[1])], axis=1)
    below = ((others < truth) & ~equal).sum(axis=1)
    return np.asarray(below + (jitter * (equal.sum(axis=1) + 1)).astype(np.int64))
