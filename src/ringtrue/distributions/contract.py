"""The contract of beliefs and outputs: what they can do is what they declare, and None means "I cannot".

``sample(m, rng)`` returns m draws on axis 0, ``marginal(f)`` the exact law of a test function or None if it is not
known. Parameters may be arrays: their leading axis is then the replicate, and one object stands for a batch of outputs.
This module knows nothing of models, procedures or statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..callables import with_optional
from ..errors import InvalidStudy
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
        Places in a batch that have no law, each with the reason.
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
        for name in ("sample", "marginal", "log_density", "mahalanobis", "size", "batch"):
            setattr(self, name, getattr(inner, name, None))
        self.lost = getattr(inner, "lost", None) or {}

    @property
    def origin(self) -> Any:
        """The user's object."""
        return self.inner


def as_distribution(value: Any, *, what: str) -> Any:
    """Turn what a user hands over into a :class:`Distribution`.

    Accepted: anything that meets the contract, a frozen scipy distribution, an array of draws, a dict of either,
    and (for beliefs) a function of rng.
    """
    if isinstance(value, Distribution):
        return value
    from .draws import Draws  # here, since what is below is made of what is here

    if isinstance(value, np.ndarray) and value.ndim >= 1:
        return Draws(value)
    if isinstance(value, (list, tuple)):
        return _from_sequence(value, what)
    if isinstance(value, type):
        raise InvalidStudy(
            f"{what} must be a distribution, but the class {value.__name__} arrived; call it to make an instance."
        )
    if isinstance(value, Sampling):
        return Foreign(value)
    if isinstance(value, Mapping):
        return _from_mapping(value, what)
    if hasattr(value, "rvs"):
        return _from_scipy(value, what)
    if hasattr(value, "__array__") and np.ndim(value) >= 1:  # xarray, torch, jax
        return Draws(np.asarray(value))
    if what == "the belief" and callable(value):
        from .frozen import Sampler

        return Sampler(_of_rng(value))
    raise InvalidStudy(
        f"{what} must be a distribution (ringtrue's, a frozen scipy one, an array of draws, or an object with sample "
        f"and marginal), but {_described(value)} arrived."
    )


def _described(value: Any) -> str:
    if value is None:
        return "None"
    if np.ndim(value) == 0 and isinstance(value, (int, float, np.generic, np.ndarray)):
        return f"the single number {value!r}"
    return f"an object of type {type(value).__name__}"


def _from_mapping(value: Mapping[Any, Any], what: str) -> Any:
    from .combined import Independent
    from .draws import Draws

    if all(isinstance(part, np.ndarray) or np.ndim(part) >= 1 for part in value.values()) and value:
        return Draws({str(key): np.asarray(part) for key, part in value.items()})
    return Independent({key: as_distribution(part, what=f"{what} [{key!r}]") for key, part in value.items()})


def _of_rng(value: Any) -> Callable[[Generator], Any]:
    """Return a belief given as a function of rng alone, whatever it calls its argument."""
    call, uses = with_optional(value, 0, "rng", what="a belief given as a function of rng")
    if not uses:
        raise InvalidStudy(f"a belief given as a function must take rng, but {value!r} takes 0 arguments.")
    return call


def _from_sequence(value: Sequence[Any], what: str) -> Any:
    if isinstance(value, tuple):
        raise InvalidStudy(
            f"{what} must be a distribution, but a tuple of {len(value)} arrived; return an array of draws, or "
            f"ringtrue.Normal(mean, sd) for a mean and a standard deviation."
        )
    if any(isinstance(part, (Distribution, Sampling)) or hasattr(part, "rvs") for part in value):
        raise InvalidStudy(f"{what} must be one distribution, but a list of them arrived; use ringtrue.stack(list).")
    from .draws import Draws

    return Draws(np.asarray(value))


def _from_scipy(frozen: Any, what: str) -> Any:
    from .frozen import Sampler, ScipyLaw
    from .gaussian import Gaussian

    if hasattr(frozen, "freeze"):
        raise InvalidStudy(
            f"{what} must be a frozen scipy distribution, but {frozen.name} arrived; freeze it by calling it."
        )
    if hasattr(frozen, "mean") and hasattr(frozen, "cov") and not callable(frozen.mean):
        return Gaussian(frozen.mean, frozen.cov)
    if hasattr(frozen, "cdf") and hasattr(frozen, "sf"):
        return ScipyLaw(frozen)
    return Sampler(lambda rng: np.asarray(frozen.rvs(size=1, random_state=rng)).reshape(_own_shape(frozen)))


def _own_shape(frozen: Any) -> tuple[int, ...]:
    """Return the shape of one draw of a multivariate scipy distribution: what two draws have behind axis 0."""
    shape: tuple[int, ...] = np.shape(frozen.rvs(size=2, random_state=0))
    return shape[1:]
