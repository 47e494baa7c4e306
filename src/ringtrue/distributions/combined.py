"""Distributions made of others: mixtures, and independent named parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..functions import Coordinate, TestFunction
from ..values import Floats, Generator, Numbers
from .contract import Distribution
from .draws import Draws, normalised
from .elementwise import Elementwise
from .gaussian import Gaussian
from .laws import Law, MixtureLaw, choose


@dataclass(frozen=True, eq=False)
class Mixture(Distribution):
    """A finite mixture of distributions with fixed weights.

    Parameters
    ----------
    components
        Distributions of one kind.
    weights
        One per component; equal if left out.
    ndim
        The number of the parameter's own axes: 0 for a scalar, 1 for a vector. It decides what one choice of
        component covers, and must be given for components with array parameters that could be either.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> float(Mixture([Normal(-1, 1), Normal(1, 1)]).marginal(Coordinate()).cdf(0))
    0.5
    """

    components: Sequence[Any]
    weights: Numbers = None
    ndim: int | None = None

    def __post_init__(self) -> None:
        if not self.components:
            raise ValueError("Mixture needs at least one component, but none arrived.")
        from .conversion import as_distribution  # which knows mixtures

        components = tuple(as_distribution(part, what="a mixture component") for part in self.components)
        if any(isinstance(part, Draws) for part in components):
            raise ValueError(
                "Mixture needs components with a law or a sampler, but draws arrived; pool the draws instead."
            )
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "ndim", self._parameter_axes())
        size = len(components)
        object.__setattr__(self, "weights", normalised(np.ones(size) if self.weights is None else self.weights, size))

    def _parameter_axes(self) -> int:
        if self.ndim is not None:
            return self.ndim
        # A Gaussian is a vector by its covariance; elementwise laws do not say whether an axis is the batch's.
        if all(isinstance(part, Gaussian) for part in self.components):
            return 1
        parts = [
            p for part in self.components for p in (part.parts.values() if isinstance(part, Independent) else [part])
        ]
        if any(isinstance(part, Elementwise) and part._shape(1) != (1,) for part in parts):
            raise ValueError(
                "Mixture cannot tell a vector from a batch of scalars when its components have array parameters; "
                "pass ndim=1 for a vector parameter or ndim=0 for a batch of scalar ones."
            )
        return 0

    @property
    def batch(self) -> int | None:
        """How many outputs lie side by side."""
        many: int | None = self.components[0].batch
        return many

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M draws, or None if a component cannot be sampled."""
        return self._sample if all(part.sample is not None for part in self.components) else None

    def _sample(self, m: int, rng: Generator) -> Any:
        drawn = [part.sample(m, rng) for part in self.components]
        named = isinstance(drawn[0], Mapping)
        shape = np.shape(next(iter(drawn[0].values())) if named else drawn[0])
        # A vector parameter comes from one component as a whole: one choice per draw and replicate, not per entry.
        chosen = rng.choice(len(drawn), size=shape[: len(shape) - int(self.ndim or 0)], p=np.asarray(self.weights))
        if named:  # one choice covers all parts of a parameter
            return {name: choose([one[name] for one in drawn], chosen) for name in drawn[0]}
        return choose(drawn, chosen)

    def marginal(self, f: TestFunction) -> Law | None:
        """Return the mixture of the components' exact laws, if all are known."""
        laws = [part.marginal(f) if part.marginal is not None else None for part in self.components]
        known = [law for law in laws if law is not None]
        return MixtureLaw(known, np.asarray(self.weights)) if len(known) == len(laws) else None

    @property
    def log_density(self) -> Callable[[ArrayLike], Floats] | None:
        """The log density at each parameter, or None if a component has none."""
        known = all(part.log_density is not None for part in self.components)
        return self._log_density if known else None

    def _log_density(self, theta: ArrayLike) -> Floats:
        # Logarithms throughout: far from all components the densities underflow and the mixture's would be 0.
        logs = np.stack([part.log_density(theta) for part in self.components])
        entries = logs.ndim - 1 - np.ndim(theta) + int(self.ndim or 0)
        if entries > 0:  # elementwise laws: one value per entry, a vector belongs to one component as a whole
            logs = logs.sum(axis=tuple(range(-entries, 0)))
        weights = np.asarray(self.weights).reshape(-1, *[1] * (logs.ndim - 1))
        return np.asarray(special.logsumexp(logs, axis=0, b=weights))


@dataclass(frozen=True, eq=False)
class Independent(Distribution):
    """Independent named parts; a parameter is the dict of their values.

    Examples
    --------
    >>> from ringtrue import Gamma, Normal
    >>> sorted(Independent({"mu": Normal(0, 1), "tau": Gamma(2, 1)}).sample(3, np.random.default_rng(1)))
    ['mu', 'tau']
    """

    parts: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("Independent needs at least one named part, but an empty mapping arrived.")
        from .conversion import as_distribution  # which makes these of dicts

        object.__setattr__(
            self,
            "parts",
            {str(k): as_distribution(part, what=f"part {k!r}") for k, part in self.parts.items()},
        )
        if chains := [name for name, part in self.parts.items() if isinstance(part, Draws) and part.chains]:
            raise ValueError(
                f"Independent needs parts that can be drawn from one by one, but {chains} are Markov chains; return "
                f"Draws of a dict with chains= for all of them together."
            )

    @property
    def batch(self) -> int | None:
        """How many outputs lie side by side."""
        many: int | None = next(iter(self.parts.values())).batch
        return many

    @property
    def size(self) -> int | None:
        """The draws of the part that has fewest; None if all parts can make as many as are wanted."""
        return min((part.size for part in self.parts.values() if part.size is not None), default=None)

    @property
    def sample(self) -> Callable[[int, Generator], Any] | None:
        """M draws, or None if a part cannot be sampled."""
        return self._sample if all(part.sample is not None for part in self.parts.values()) else None

    def _sample(self, m: int, rng: Generator) -> dict[str, Any]:
        return {
            name: part.distinct(m, rng) if isinstance(part, Draws) else part.sample(m, rng)
            for name, part in self.parts.items()
        }

    def marginal(self, f: TestFunction) -> Law | None:
        """Return the exact law of a coordinate of a part that knows it."""
        if not isinstance(f, Coordinate) or f.key is None or f.key not in self.parts:
            return None
        part = self.parts[f.key]
        return None if part.marginal is None else part.marginal(Coordinate(None, f.index))
