"""The contract of test functions: a name, what they see, and ``evaluate``.

A test function maps parameters with leading axes (see :mod:`ringtrue.values`) to an array of the leading axes' shape.
What it sees decides which level of calibration a number speaks of: the parameter alone (strong), the parameter and the
output (auto), the parameter and the data (exact). Its ``kind`` says what it is, so that no sentence and no picture has
to go by its name. This module knows nothing of distributions or statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from ..values import Floats

Sees = Literal["theta", "output", "data"]

#: What rows over all test functions call theirs.
ALL = "(all)"


@dataclass(frozen=True, eq=False)
class Context:
    """What a test function may look at besides theta.

    Attributes
    ----------
    lead
        The number of leading axes of theta; the last of them is the replicate.
    y, output
        The data and the outputs of the replicates; None where there are none.
    uniforms
        ``uniforms(width)`` returns random numbers that belong to the replicates, whoever computes them: for reference
        points. Their shape is (replicates, width), or (width,) if theta comes without an axis of replicates. None where
        there are no replicates: a function that sees theta alone must do without.
    """

    lead: int = 0
    y: Any = None
    output: Any = None
    uniforms: Callable[[int], Floats] | None = None


#: For functions of theta alone: one parameter, and parameters on one leading axis.
ALONE, SEVERAL = Context(0), Context(1)


@runtime_checkable
class TestFunction(Protocol):
    """Anything with a name, a kind, what it sees, and an ``evaluate``."""

    @property
    def name(self) -> str:
        """What the result calls it."""

    @property
    def kind(self) -> str:
        """What it is: "coordinate", "sum", "distance", "mahalanobis" and so on; "function" if it is the user's own."""

    @property
    def sees(self) -> Sees:
        """The most that it sees."""

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Return f at every parameter, an array shaped like the leading axes."""
