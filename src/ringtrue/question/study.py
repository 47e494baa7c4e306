"""The question: a belief, a model, a procedure, and what is asked of them.

A :class:`Study` coerces what a user hands over, once, and refuses what is ill-posed. It runs nothing and judges
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..callables import with_optional
from ..distributions.contract import as_distribution, stack_values
from ..errors import InvalidStudy
from ..functions.contract import BestOf, TestFunction, as_testfunctions, default_family, left_out, take
from ..replicates.reducers.energy import entries, units
from ..replicates.streams import Streams
from .models import as_model, contaminated

Procedure = Callable[[Any, Any, np.random.Generator], Any]

#: The note of a study whose truths are not draws of the belief.
OTHER_TRUTH = "theta was drawn from another law than the belief: even the exact posterior need not be uniform."
#: Draws of the belief that tell the units of its entries.
_FOR_UNITS = 100


class Question(Protocol):
    """What the measuring of replicates needs to know: a study has it, and so have arrays of draws."""

    @property
    def n(self) -> int:
        """The number of replicates."""

    @property
    def draws(self) -> int:
        """How many draws to take where there is no exact law."""

    @property
    def seed(self) -> int:
        """The seed of all streams."""

    @property
    def batch(self) -> int | None:
        """Replicates per block, None for one."""

    @property
    def mu0(self) -> Any:
        """The belief as a distribution, or None if it is not known."""

    @property
    def functions(self) -> tuple[TestFunction, ...]:
        """The test functions."""

    @property
    def selection(self) -> BestOf | None:
        """How to choose among them."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the result must know about it."""

    @property
    def units(self) -> NDArray[np.float64] | None:
        """The spread of every entry of theta under the belief; None if theta is not made of numbers."""

    def rivals(self, index: NDArray[np.int64]) -> Any:
        """Two draws of the belief for each of the replicates, on axis 0; None if there are none."""


def as_procedure(value: Any) -> Procedure:
    """Turn ``mu(belief, y)`` or ``mu(belief, y, rng)`` into a function of all three.

    Examples
    --------
    >>> as_procedure(lambda belief, y: y)(None, 3, None)
    3
    """
    if not callable(value):
        raise InvalidStudy(
            f"the procedure must be a function of (belief, y) or (belief, y, rng), but {type(value).__name__} arrived."
        )
    return with_optional(value, 2, "rng", what="the procedure")[0]


@dataclass(frozen=True, eq=False)
class Study:
    """Is this procedure calibrated to this belief and this model?

    Parameters
    ----------
    belief
        mu0: a distribution, a frozen scipy distribution, a dict of named ones, or a function of rng.
    model
        P: ``P(theta)`` or ``P(theta, rng)``, returns a dataset.
    procedure
        mu: ``mu(belief, y)`` or ``mu(belief, y, rng)``, returns a distribution: an array of draws (draws on axis 0),
        a frozen scipy distribution, or one of ringtrue's.
    n
        The number of replicates.
    f
        Test functions: a function, a {name: function} mapping, a list, or a :class:`~ringtrue.BestOf`. Left out: the
        coordinates, their sum and a distance.
    draws
        How many draws to take from an output that has no exact law for a test function but can be sampled.
    seed
        Every random number of the study is a function of it.
    batch
        Left out, model and procedure get one dataset at a time. A number declares that both take that many at
        once: theta and y with the replicate on axis 0, a batch of outputs back.
    truth
        The law that theta is drawn from, if it is not the belief: what happens to a procedure whose belief is wrong.
        Even the exact posterior is then not calibrated, and the weak level is not tested.

    Examples
    --------
    >>> from ringtrue.distributions.contract import Normal
    >>> study = Study(Normal(0, 1), lambda t: t, lambda mu0, y: Normal(y, 1), n=10)
    >>> [f.name for f in study.functions]
    ['theta', 'distance']
    """

    belief: Any
    model: Any
    procedure: Any
    n: int
    f: Any = None
    draws: int = 99
    seed: int = 0
    batch: int | None = None
    truth: Any = None
    mu0: Any = field(init=False)

    def __post_init__(self) -> None:
        for name in ("n", "draws") + (("batch",) if self.batch is not None else ()):
            object.__setattr__(self, name, at_least(1, name, getattr(self, name)))
        object.__setattr__(self, "seed", at_least(0, "seed", self.seed))
        object.__setattr__(self, "mu0", as_distribution(self.belief, what="the belief"))
        if self.mu0.sample is None:
            raise InvalidStudy(f"the belief must be something to draw from, but {type(self.belief).__name__} cannot.")
        truth = self.mu0 if self.truth is None else as_distribution(self.truth, what="the truth's law")
        if truth.sample is None:
            raise InvalidStudy(f"truth must be something to draw from, but {type(self.truth).__name__} cannot.")
        object.__setattr__(self, "_truth", truth)
        if self.batch is not None and isinstance(self.model, contaminated):
            raise InvalidStudy("a contaminated model tosses one coin per call and cannot be batched; leave out batch=.")
        object.__setattr__(self, "_model", as_model(self.model))
        object.__setattr__(self, "_procedure", as_procedure(self.procedure))
        _ = self.functions

    @cached_property
    def functions(self) -> tuple[TestFunction, ...]:
        """The test functions asked about."""
        return as_testfunctions(default_family(self.reference(1000)) if self.f is None else self.f)

    @property
    def selection(self) -> BestOf | None:
        """How to choose among the test functions, if the study asks for a choice."""
        return self.f if isinstance(self.f, BestOf) else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the result must know."""
        asked = () if self.f is not None or self.units is None else left_out(self.units.size)
        return asked if self.truth is None else (OTHER_TRUTH, *asked)

    def truths(self, m: int, rng: np.random.Generator) -> Any:
        """Draw m true parameters."""
        return self._truth.sample(m, rng)  # type: ignore[attr-defined]

    def reference(self, m: int) -> Any:
        """Return m draws of the belief that no replicate has seen."""
        try:
            return self.mu0.sample(m, Streams(self.seed).generator("reference"))
        except Exception as error:
            raise InvalidStudy(
                f"the belief must give draws of one shape, but drawing from it raised {type(error).__name__}: {error}."
            ) from error

    @cached_property
    def units(self) -> NDArray[np.float64] | None:
        """The spread of every entry of theta under the belief; None if theta is not made of numbers."""
        numbers = entries(self.mu0.sample(_FOR_UNITS, Streams(self.seed).generator("energy")), 1)
        return None if numbers is None else units(numbers)

    def rivals(self, index: NDArray[np.int64]) -> Any:
        """Return two draws of the belief for each replicate of a whole block, or for each of single replicates."""
        streams = Streams(self.seed)
        if self.batch is None:
            pairs = [self.mu0.sample(2, streams.generator("energy", 1 + int(i))) for i in index]
            return stack_values(pairs, axis=1)
        drawn = self.mu0.sample(2 * self.batch, streams.generator("energy", 1 + int(index[0]) // self.batch))
        return stack_values([take(drawn, slice(None, self.batch)), take(drawn, slice(self.batch, None))])

    def simulate(self, theta: Any, rng: np.random.Generator) -> Any:
        """Draw a dataset."""
        return self._model(theta, rng)  # type: ignore[attr-defined]

    def learn(self, y: Any, rng: np.random.Generator) -> Any:
        """Run the procedure, on the belief as the user handed it over, and return its output as a distribution."""
        output = self._procedure(self.belief, y, rng)  # type: ignore[attr-defined]
        return as_distribution(output, what="the procedure's output")


def at_least(least: int, name: str, value: Any) -> int:
    """Return a whole number of at least ``least``, or say what arrived instead."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidStudy(f"{name} must be a whole number of at least {least}, but {value!r} arrived.")
    return int(value)
