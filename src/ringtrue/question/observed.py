"""Data that somebody has, for posterior SBC: truths are draws of the procedure's own output for them.

It says what the procedure is run on, and draws and judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..callables import called
from ..values import Generator, copied, leading_shape, stack_values


@dataclass(frozen=True, eq=False)
class Observed:
    """Observed data, and the procedure that is run on them alone.

    Parameters
    ----------
    data
        One dataset.
    procedure
        As in :class:`~ringtrue.Study`; what a study runs on new data is fitted to both.
    """

    data: Any
    procedure: Any

    @cached_property
    def _call(self) -> tuple[Callable[..., Any], bool]:
        return called(self.procedure, ("belief", "y"), "the procedure")

    def learn(self, belief: Any, batch: int | None, rng: Generator) -> Any:
        """Return the output for the observed data; a batched procedure gets them as often as it takes datasets."""
        call, random = self._call
        return call(belief, repeated(self.data, batch), rng if random else None)


@dataclass(frozen=True, eq=False)
class Both:
    """A procedure that is handed the observed data and the new data as one dataset.

    Parameters
    ----------
    procedure
        As in :class:`~ringtrue.Study`.
    data
        The observed dataset.
    both
        ``both(y_obs, y)`` returns one dataset.
    batch
        As in :class:`~ringtrue.Study`; both datasets then have the replicate on axis 0.
    """

    procedure: Any
    data: Any
    both: Any
    batch: int | None

    @cached_property
    def _call(self) -> tuple[Callable[..., Any], bool]:
        return called(self.procedure, ("belief", "y"), "the procedure")

    def __call__(self, mu0: Any, y: Any, rng: Generator) -> Any:
        """Return the output for both."""
        call, random = self._call
        many = None if self.batch is None else leading_shape(y, 1)[0]
        return call(mu0, self.both(repeated(self.data, many), y), rng if random else None)


def repeated(data: Any, batch: int | None) -> Any:
    """Return a dataset of its own, or so many of them side by side.

    Examples
    --------
    >>> import numpy as np
    >>> repeated(np.array([1.0, 2.0]), 2).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    return copied(data) if batch is None else stack_values([data] * batch)
