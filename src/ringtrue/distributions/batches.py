"""Batches: outputs of many replicates side by side, in one object where they fit.

Only the running of studies needs them. This module knows distributions, nothing of studies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..functions import TestFunction
from ..values import Generator, stack_values
from .combined import Mixture
from .contract import Distribution
from .conversion import as_distribution
from .elementwise import Elementwise
from .gaussian import Gaussian
from .laws import BatchLaw, Law, need_law


@dataclass(frozen=True, eq=False)
class Repeated(Distribution):
    """A batch of n outputs that are all the same distribution.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> Repeated(Normal(0, 1), 5).sample(3, np.random.default_rng(1)).shape
    (3, 5)
    """

    distribution: Any
    n: int

    @property
    def batch(self) -> int:
        """How many outputs lie side by side."""
        return self.n

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M draws for each of the n, or None if the distribution cannot be sampled."""
        return None if self.distribution.sample is None else self._sample

    def _sample(self, m: int, rng: Generator) -> Any:
        # All draws at once; cut into m rows of n they are independent between replicates too.
        drawn = self.distribution.sample(m * self.n, rng)
        if isinstance(drawn, Mapping):
            return {name: self._folded(part, m) for name, part in drawn.items()}
        return self._folded(drawn, m)

    def _folded(self, part: NDArray[Any], m: int) -> NDArray[Any]:
        return part.reshape(m, self.n, *part.shape[1:])

    @property
    def marginal(self) -> Callable[[TestFunction], Law | None] | None:
        """The distribution's own exact laws, which serve every replicate."""
        law: Callable[[TestFunction], Law | None] | None = self.distribution.marginal
        return law

    @property
    def log_density(self) -> Any:
        """The distribution's own log density, or None."""
        return self.distribution.log_density

    @property
    def mahalanobis(self) -> Any:
        """The distribution's own Mahalanobis distance, or None."""
        return self.distribution.mahalanobis


def stack(outputs: Sequence[Any]) -> Any:
    """Turn outputs of single replicates into one batch with the replicate as the first parameter axis.

    Outputs of one family become one object of that family; anything else is kept as a list and asked one by one.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> stack([Normal(0, 1), Normal(5, 2)]).mean
    array([0., 5.])
    """
    if not len(outputs):
        raise ValueError("stack needs at least one output, but none arrived.")
    outputs = [
        output if isinstance(output, (Law, Distribution)) else as_distribution(output, what="an output to stack")
        for output in outputs
    ]
    # One object of one family evaluates all replicates in one call: a hundred times faster than asking each.
    kinds = {type(output) for output in outputs}
    kind = kinds.pop()
    if not kinds and issubclass(kind, (Elementwise, Gaussian)):
        names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
        columns: list[Sequence[Any]] = [[getattr(output, name) for output in outputs] for name in names]
        shapes = [{array.shape for array in column} for column in columns]
        if issubclass(kind, Elementwise) and len(set().union(*shapes)) > 1:
            rows = [np.broadcast_arrays(*row) for row in zip(*columns, strict=True)]
            columns = list(zip(*rows, strict=True))
            shapes = [{array.shape for array in column} for column in columns]
        if all(len(one) == 1 for one in shapes):
            return kind(*map(stack_values, columns))
    if not kinds and kind is Mixture and _same_weights(outputs):
        parts = [stack(column) for column in zip(*(output.components for output in outputs), strict=True)]
        return Mixture(parts, outputs[0].weights, ndim=outputs[0].ndim)
    return Batch(tuple(outputs))


def _same_weights(mixtures: Sequence[Any]) -> bool:
    return all(
        mixture.ndim == mixtures[0].ndim and np.array_equal(mixture.weights, mixtures[0].weights)
        for mixture in mixtures
    )


@dataclass(frozen=True, eq=False)
class Batch(Distribution):
    """Outputs of several replicates that do not fit into one object."""

    outputs: tuple[Any, ...]

    @property
    def batch(self) -> int:
        """How many outputs lie side by side."""
        return len(self.outputs)

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M draws of every output, or None if one cannot."""
        return self._sample if all(output.sample is not None for output in self.outputs) else None

    def _sample(self, m: int, rng: Generator) -> Any:
        return stack_values([output.sample(m, rng) for output in self.outputs], axis=1)

    @property
    def marginal(self) -> Callable[[TestFunction], Law | None] | None:
        """The outputs' exact laws, or None if one cannot."""
        return self._marginal if all(output.marginal is not None for output in self.outputs) else None

    def _marginal(self, f: TestFunction) -> Law | None:
        laws = [need_law(output.marginal(f), f.name, output.origin) for output in self.outputs]
        known = [law for law in laws if law is not None]
        if len(known) < len(laws):
            return None
        stacked = stack(known)
        return stacked if isinstance(stacked, Law) else BatchLaw(tuple(known))
