"""Beliefs drawn at random: every replicate has one of its own, and the procedure is handed it.

What draws theta and y together draws the belief first and hands it on beside the data. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..callables import called
from ..distributions import as_distribution
from ..errors import InvalidStudy
from ..values import Generator, copied, take

#: What a reader of the result must know.
NOTE = (
    "every replicate has a belief of its own, drawn from a family: what is said holds on average over the family, and "
    "errors for some of its beliefs may cancel out or hide among the others."
)


@dataclass(frozen=True, eq=False)
class WithBelief:
    """A dataset of a study with a family of beliefs: the belief that its theta was drawn from, and the data."""

    belief: Any
    data: Any


@dataclass(frozen=True, eq=False)
class FamilyModel:
    """Draw a belief, theta from it, and data.

    Parameters
    ----------
    family
        A function of rng that returns a belief.
    model
        As in :class:`~ringtrue.Study`.
    """

    family: Any
    model: Any

    @cached_property
    def _calls(self) -> tuple[Callable[..., Any], bool, Callable[..., Any]]:
        if not callable(self.family):
            raise InvalidStudy(
                f"a family must be a function of rng that returns a belief, but {type(self.family).__name__} arrived; "
                f"for a list of beliefs use ringtrue.check_beliefs."
            )
        call, random = called(self.model, ("theta",), "the model")
        return call, random, self.family

    def __call__(self, rng: Generator) -> tuple[Any, Any]:
        """Return theta, and its data beside the belief that it was drawn from."""
        call, random, family = self._calls
        belief = family(rng)
        mu0 = as_distribution(belief, what="a belief of the family", role="belief")
        if mu0.sample is None:
            raise InvalidStudy(
                f"a belief of the family must be something to draw from, but {type(belief).__name__} cannot."
            )
        theta = take(mu0.sample(1, rng), 0)
        return theta, WithBelief(belief, copied(call(copied(theta), rng if random else None)))


@dataclass(frozen=True, eq=False)
class FamilyProcedure:
    """Hand a procedure the belief of its replicate."""

    procedure: Any

    @cached_property
    def _call(self) -> tuple[Callable[..., Any], bool]:
        return called(self.procedure, ("belief", "y"), "the procedure")

    def __call__(self, mu0: Any, y: Any, rng: Generator) -> Any:
        """Return the output."""
        call, random = self._call
        return call(y.belief, copied(y.data), rng if random else None)
