"""Batches: outputs of many replicates side by side, in one object where they fit.

Only the running of studies needs them. This module knows distributions, nothing of studies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..functions.contract import TestFunction
from .contract import Draws, Elementwise, Gaussian, Independent, Mixture, as_distribution, stack_values
from .laws import BatchLaw, Univariate

Generator = np.random.Generator


@dataclass(frozen=True, eq=False)
class Repeated:
    """A batch of n outputs that are all the same distribution.

    Examples
    --------
    >>> from ringtrue.distributions.contract import Normal
    >>> Repeated(Normal(0, 1), 5).sample(3, np.random.default_rng(1)).shape
    (3, 5)
    """

    distribution: Any
    n: int

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M draws for each of the n, or None if the distribution cannot be sampled."""
        return None if self.distribution.sample is None else self._sample

    def _sample(self, m: int, rng: Generator) -> Any:
        drawn = self.distribution.sample(m * self.n, rng)
        if isinstance(drawn, Mapping):
            return {name: self._folded(part, m) for name, part in drawn.items()}
        return self._folded(drawn, m)

    def _folded(self, part: NDArray[Any], m: int) -> NDArray[Any]:
        return part.reshape(m, self.n, *part.shape[1:])

    @property
    def marginal(self) -> Callable[[TestFunction], Univariate | None] | None:
        """The distribution's own exact laws, which serve every replicate."""
        law: Callable[[TestFunction], Univariate | None] | None = self.distribution.marginal
        return law

    @property
    def log_density(self) -> Any:
        """The distribution's own log density, or None."""
        return getattr(self.distribution, "log_density", None)

    @property
    def mahalanobis(self) -> Any:
        """The distribution's own Mahalanobis distance, or None."""
        return getattr(self.distribution, "mahalanobis", None)


def stack(outputs: Sequence[Any]) -> Any:
    """Turn outputs of single replicates into one batch with the replicate as the first parameter axis.

    Outputs of one family become one object of that family; anything else is kept as a list and asked one by one.

    Examples
    --------
    >>> from ringtrue.distributions.contract import Normal
    >>> stack([Normal(0, 1), Normal(5, 2)]).mean
    array([0., 5.])
    """
    if not len(outputs):
        raise ValueError("stack needs at least one output, but none arrived.")
    outputs = [
        output if isinstance(output, Univariate) else as_distribution(output, what="an output to stack")
        for output in outputs
    ]
    kinds = {type(output) for output in outputs}
    kind = kinds.pop()
    if not kinds and issubclass(kind, (Elementwise, Gaussian)):
        names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
        rows = [[getattr(output, name) for name in names] for output in outputs]
        if issubclass(kind, Elementwise) and any(len({array.shape for array in row}) > 1 for row in rows):
            rows = [list(np.broadcast_arrays(*row)) for row in rows]
        columns = list(zip(*rows, strict=True))
        if all(len({array.shape for array in column}) == 1 for column in columns):
            return kind(*(np.stack(column) for column in columns))
    if not kinds and kind is Mixture and _same_weights(outputs):
        parts = [stack(column) for column in zip(*(output.components for output in outputs), strict=True)]
        return Mixture(parts, outputs[0].weights, ndim=outputs[0].ndim)
    return Batch(tuple(outputs))


def _same_weights(mixtures: Sequence[Any]) -> bool:
    return all(
        mixture.ndim == mixtures[0].ndim and np.array_equal(mixture.weights, mixtures[0].weights)
        for mixture in mixtures
    )


def batch_size(output: Any) -> int | None:
    """Return how many outputs a batch holds; 0 for a single one, None for a distribution of the user's own."""
    if isinstance(output, Elementwise):
        shape: tuple[int, ...] = output._shape(1)[1:]
        return shape[0] if shape else 0
    if isinstance(output, Gaussian):
        return len(output.mean) if output.mean.ndim == 2 else 0
    if isinstance(output, (Batch, Repeated)):
        return len(output.outputs) if isinstance(output, Batch) else output.n
    if isinstance(output, Draws):
        first = next(iter(output.values.values())) if isinstance(output.values, Mapping) else output.values
        return first.shape[1] if first.ndim > 1 else 0
    if isinstance(output, (Mixture, Independent)):
        parts = output.components if isinstance(output, Mixture) else list(output.parts.values())
        return batch_size(parts[0])
    return None


def lost_members(output: Any) -> Mapping[int, str]:
    """Return why members of a batch have no law: an output may say so in ``lost``, {place in the batch: reason}."""
    reasons: Mapping[int, str] | None = getattr(output, "lost", None)
    return reasons or {}


def draws_available(output: Any) -> int | None:
    """Return how many different draws an output has; None if it can make as many as are wanted."""
    if isinstance(output, Draws):
        return output.size
    parts = output.parts.values() if isinstance(output, Independent) else ()
    return min((size for part in parts if (size := draws_available(part)) is not None), default=None)


@dataclass(frozen=True, eq=False)
class Batch:
    """Outputs of several replicates that do not fit into one object."""

    outputs: tuple[Any, ...]

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M draws of every output, or None if one cannot."""
        return self._sample if all(output.sample is not None for output in self.outputs) else None

    def _sample(self, m: int, rng: Generator) -> Any:
        return stack_values([output.sample(m, rng) for output in self.outputs], axis=1)

    @property
    def marginal(self) -> Callable[[TestFunction], Univariate | None] | None:
        """The outputs' exact laws, or None if one cannot."""
        return self._marginal if all(output.marginal is not None for output in self.outputs) else None

    def _marginal(self, f: TestFunction) -> Univariate | None:
        laws = [output.marginal(f) for output in self.outputs]
        if any(law is None for law in laws):
            return None
        stacked = stack(laws)
        return stacked if isinstance(stacked, Univariate) else BatchLaw(tuple(laws))
