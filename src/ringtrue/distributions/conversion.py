"""What a user hands over, turned into a distribution. The only place that looks at what kind of thing it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ..callables import with_optional
from ..errors import InvalidStudy
from ..values import Generator
from .combined import Independent
from .contract import Distribution, Foreign, Sampling
from .draws import Draws
from .frozen import Sampler, ScipyLaw
from .gaussian import Gaussian


def as_distribution(value: Any, *, what: str, role: Literal["belief", "output"] = "output") -> Any:
    """Turn what a user hands over into a :class:`Distribution`.

    Accepted: anything that meets the contract, a frozen scipy distribution, an array of draws, a dict of either,
    and (for beliefs) a function of rng.

    Parameters
    ----------
    value
        What was handed over.
    what
        What to call it if it is refused.
    role
        A belief may be a function of rng; an output that is a function is one that was not called.
    """
    if isinstance(value, Distribution):
        return value
    if isinstance(value, np.ndarray) and value.ndim >= 1:
        return Draws(value)
    if isinstance(value, (list, tuple)):
        return _from_sequence(value, what)
    if isinstance(value, type):
        raise InvalidStudy(
            f"{what} must be a distribution, but the class {value.__name__} arrived; call it to make an instance."
        )
    # Before mappings and scipy: an object that declares the contract is taken at its word.
    if isinstance(value, Sampling):
        return Foreign(value)
    if isinstance(value, Mapping):
        return _from_mapping(value, what, role)
    # scipy is not imported to find out: that takes a second, and who has its distributions has it already.
    if hasattr(value, "rvs"):
        return _from_scipy(value, what)
    if hasattr(value, "__array__") and np.ndim(value) >= 1:  # xarray, torch, jax
        return Draws(np.asarray(value))
    if role == "belief" and callable(value):
        return Sampler(_of_rng(value, what))
    function = ", a function of rng" if role == "belief" else ""
    raise InvalidStudy(
        f"{what} must be a distribution (ringtrue's, a frozen scipy one, an array of draws{function}, or an object "
        f"with sample and marginal), but {_described(value)} arrived."
    )


def _described(value: Any) -> str:
    if value is None:
        return "None"
    if np.ndim(value) == 0 and isinstance(value, (int, float, np.generic, np.ndarray)):
        return f"the single number {value!r}"
    return f"an object of type {type(value).__name__}"


def _from_mapping(value: Mapping[Any, Any], what: str, role: Literal["belief", "output"]) -> Any:
    if all(isinstance(part, (np.ndarray, list)) or np.ndim(part) >= 1 for part in value.values()) and value:
        return Draws({str(key): part for key, part in value.items()})
    return Independent({key: as_distribution(part, what=f"{what} [{key!r}]", role=role) for key, part in value.items()})


def _of_rng(value: Any, what: str) -> Callable[[Generator], Any]:
    """Return a belief given as a function of rng alone, whatever it calls its argument."""
    call, uses = with_optional(value, 0, "rng", what=what)
    if not uses:
        raise InvalidStudy(f"{what} must take rng if it is a function, but {value!r} takes 0 arguments.")
    return call


def _from_sequence(value: Sequence[Any], what: str) -> Any:
    # (mean, sd) is what many procedures return; taken for two draws it would be judged, confidently and wrongly.
    if isinstance(value, tuple):
        raise InvalidStudy(
            f"{what} must be a distribution, but a tuple of {len(value)} arrived; return an array of draws, or "
            f"ringtrue.Normal(mean, sd) for a mean and a standard deviation."
        )
    if any(isinstance(part, (Distribution, Sampling)) or hasattr(part, "rvs") for part in value):
        raise InvalidStudy(f"{what} must be one distribution, but a list of them arrived; use ringtrue.stack(list).")
    return Draws(value)


def _from_scipy(frozen: Any, what: str) -> Any:
    # Only the generator of a family has freeze: its parameters are missing.
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
