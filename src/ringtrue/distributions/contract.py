"""The contract of beliefs and outputs: what they can do is what they declare, and None means "I cannot".

``sample(m, rng)`` returns m draws on axis 0, ``marginal(f)`` the exact law of a test function or None if it is not
known. Parameters may be arrays: their leading axis is then the replicate, and one object stands for a batch of outputs.
This module knows nothing of models, procedures or statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from ..values import Generator


class Distribution:
    """What beliefs and outputs have in common; a class of your own may derive from it, and declare what it can.

    Attributes
    ----------
    sample, marginal
        ``sample(m, rng)``: m draws on axis 0. ``marginal(f)``: the exact :class:`Law` of a test function, or None.
    log_density, mahalanobis
        Of parameters: their log density, and their squared distance from the mean in the metric of the covariance.
    size
        How many draws there are, if it is known by draws alone; None if it can make as many as are wanted.
    batch
        How many outputs lie side by side; 0 for a single one, None if it cannot be told.
    lost
        Places in a batch that have no law, each with the reason; a single output is place 0.
    """

    sample: Any = None
    marginal: Any = None
    log_density: Any = None
    mahalanobis: Any = None
    size: Any = None
    batch: Any = None
    lost: Any = MappingProxyType({})

    @property
    def origin(self) -> Any:
        """What the user knows it by: the object that it stands for, if it stands for one."""
        return self

    def copied(self) -> Any:
        """Return a distribution whose arrays are its own; only draws can share theirs with somebody."""
        return self


@runtime_checkable
class Sampling(Protocol):
    """An object of the user's that declares at least these two, each possibly None."""

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M draws on axis 0."""

    @property
    def marginal(self) -> Any:
        """The exact law of a test function, if known."""


class Foreign(Distribution):
    """An object of the user's that has a sample and a marginal; what else it has is asked here, once."""

    def __init__(self, inner: Sampling) -> None:
        self.inner = inner
        # The one place where a user's object is asked what it has; from here on None means "cannot".
        for name in ("sample", "marginal", "log_density", "mahalanobis", "size", "batch"):
            setattr(self, name, getattr(inner, name, None))
        self.lost = getattr(inner, "lost", None) or {}

    @property
    def origin(self) -> Any:
        """The user's object."""
        return self.inner
