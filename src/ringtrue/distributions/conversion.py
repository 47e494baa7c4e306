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
from .frozen import Kernels, Sampler, ScipyLaw
from .gaussian import Gaussian


def as_distribution(value: Any, *, what: str, role: Literal["belief", "output"] = "output") -> Any:
    """Turn what a user hands over into a :class:`Distribution`.

    Accepted: anything that meets the contract, a frozen scipy distribution or kernel density, an array or tensor of
    draws, a dict of either, a table of draws, Markov chains of ArviZ or xarray, and (for beliefs) a function of rng.

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
    if type(value) is np.ndarray and value.ndim >= 1:
        return Draws.plain(value)  # made in every replicate
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
    # Before mappings and arrays, which they are too: taken for one, a chain would be a draw.
    if (named := as_named_draws(value, what=what)) is not None:
        return named
    if isinstance(value, Mapping):
        return _from_mapping(value, what, role)
    # scipy is not imported to find out: that takes a second, and who has its distributions has it already.
    if hasattr(value, "rvs"):
        return _from_scipy(value, what)
    if hasattr(value, "resample") and hasattr(value, "dataset"):
        return Kernels(value)
    if hasattr(value, "__array__") and np.ndim(value) >= 1:  # xarray, torch, jax
        return Draws(value)
    if role == "belief" and callable(value):
        return Sampler(_of_rng(value, what))
    function = ", a function of rng" if role == "belief" else ""
    raise InvalidStudy(
        f"{what} must be a distribution (ringtrue's, a frozen scipy one, an array of draws{function}, or an object "
        f"with sample and marginal), but {_described(value)} arrived."
    )


def as_named_draws(value: Any, *, what: str) -> Draws | None:
    """Return Markov chains of ArviZ or xarray, or a table of draws; None for anything else."""
    chains = as_chains(value, what=what)
    return as_table(value, what=what) if chains is None else chains


def as_table(value: Any, *, what: str) -> Draws | None:
    """Return the draws of a table, such as a DataFrame of pandas, whose columns are parameters; None for anything else.

    The columns "chain" and "draw", as ArviZ writes them, say which chain a row belongs to and where; rows may then come
    in any order. No library is imported.
    """
    if not (hasattr(value, "columns") and hasattr(value, "to_numpy")):
        return None
    columns = {str(name): np.asarray(value[name]) for name in value.columns}
    if not {"chain", "draw"} <= columns.keys():
        return Draws(columns)
    chain, draw = columns.pop("chain"), columns.pop("draw")
    lengths = set(np.unique(chain, return_counts=True)[1].tolist())
    if len(lengths) != 1:
        raise InvalidStudy(f"{what} must have equally many draws of every chain, but has {sorted(lengths)}.")
    order = np.lexsort((draw, chain))
    return Draws({name: part[order] for name, part in columns.items()}, chains=len(chain) // lengths.pop())


def as_chains(value: Any, *, what: str) -> Draws | None:
    """Return Markov chains whose axes are called "chain" and "draw", as in ArviZ; None for anything else.

    Accepted: an InferenceData or a DataTree with a posterior, an xarray Dataset or DataArray, a dict of DataArrays.
    Neither library is imported.
    """
    if _has_chains(value):
        return Draws(_chain_after_chain(value), chains=int(value.sizes["chain"]))
    posterior = getattr(value, "posterior", None)
    table: Any = posterior if hasattr(posterior, "data_vars") else value
    parts: Any = getattr(table, "data_vars", table)
    if not isinstance(parts, Mapping):
        return None
    found = {str(name): part for name, part in parts.items() if _has_chains(part)}
    labelled = parts is not table or any(hasattr(part, "data_vars") for part in parts.values())
    if labelled and not found:
        raise InvalidStudy(
            f"{what} must have a posterior whose arrays have the dimensions chain and draw, but a "
            f"{type(value).__name__} without one arrived; pass the group that has the draws."
        )
    # A dict of which only some are chains is somebody's mistake, and not for this function to say.
    if not found or (not labelled and len(found) < len(parts)):
        return None
    chains = int(next(iter(found.values())).sizes["chain"])
    return Draws({name: _chain_after_chain(part) for name, part in found.items()}, chains=chains)


def _has_chains(value: Any) -> bool:
    """Whether an array has named axes, those of Markov chains among them."""
    dims = getattr(value, "dims", None)
    return isinstance(dims, tuple) and {"chain", "draw"} <= set(dims)


def _chain_after_chain(array: Any) -> Any:
    values = np.asarray(array.transpose("chain", "draw", ...))
    return values.reshape(-1, *values.shape[2:])


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
