"""Distributions that are known by their draws: independent ones, weighted ones, Markov chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..values import Floats, Generator, Numbers, as_array, copied, take
from .contract import Distribution


@dataclass(frozen=True, eq=False)
class Draws(Distribution):
    """A distribution known by its draws: an array with draws on axis 0, or a dict of such arrays.

    Parameters
    ----------
    values
        Shape (m, ...). In a batch of outputs, axis 1 is the replicate.
    iid
        True if the draws are independent, or their order means nothing; False for a Markov chain in its order, which is
        the same as ``chains=1``. If nothing is said they are taken for independent, and a judgement refuses them if
        neighbours are clearly alike.
    weights
        Shape (m,), or (m, n) in a batch of n outputs. The draws are resampled to the effective size of the weights,
        which is approximate.
    chains
        The number of Markov chains of equal length that lie one behind the other on axis 0, each in its order.
    diagnostics
        Numbers that the sampler says of itself, by name: one each, or one per output of a batch. They are kept with
        the replicate and shown with the result; ``divergences`` above 0 and ``k-hat`` above 0.7 flag a fit.

    Examples
    --------
    >>> Draws(np.zeros(10)).size
    10
    """

    values: Any
    iid: bool | None = None
    weights: Numbers = None
    chains: int | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.iid is not None and not isinstance(self.iid, (bool, np.bool_)):
            raise ValueError(f"iid must be True or False, but {self.iid!r} arrived.")
        # Arrays come most often, and asking an abstract class takes as long as all else here.
        if type(self.values) is not np.ndarray and isinstance(self.values, Mapping):
            object.__setattr__(self, "values", {key: _as_array(part) for key, part in self.values.items()})
            _need_arrays(list(self.values.values()))
        else:
            object.__setattr__(self, "values", _as_array(self.values))
            _need_arrays([self.values])
        if self.chains is not None:
            _need_chains(self.chains, self.size, self.iid)
            object.__setattr__(self, "iid", False)
        elif self.iid is not None and not self.iid:
            object.__setattr__(self, "chains", 1)
        if self.weights is not None:
            weights, lost = _weighed(self.weights, self.size, self.batch)
            # Equal weights are none: such draws need no resampling and keep their exact null.
            object.__setattr__(self, "weights", None if np.ptp(weights) == 0 else weights)
            object.__setattr__(self, "lost", lost)
        if self.diagnostics != {}:
            object.__setattr__(self, "diagnostics", _as_diagnostics(self.diagnostics, self.batch))
        if self.weights is not None and self.chains is not None:
            # Resampling would lose the order, and two parts of one resampled chain are not two chains.
            raise ValueError(
                "draws are either weighted or Markov chains, but both weights= and chains= (or iid=False) arrived; "
                "leave one out."
            )

    @classmethod
    def plain(cls, values: NDArray[Any]) -> Draws:
        """Return draws of which nothing else is said; the same as the class itself, at a third of the price."""
        if not _are_draws(values):
            return cls(values)  # which says what is wrong
        one = object.__new__(cls)
        one.__dict__.update(values=values, iid=None, weights=None, chains=None, diagnostics={})
        return one

    @property
    def batch(self) -> int:
        """How many outputs lie side by side; 0 if draws have no further axis."""
        first = self.values if isinstance(self.values, np.ndarray) else next(iter(self.values.values()))
        return int(first.shape[1]) if first.ndim > 1 else 0

    @property
    def size(self) -> int:
        """The number of draws."""
        return len(self.values if isinstance(self.values, np.ndarray) else next(iter(self.values.values())))

    def sample(self, m: int, rng: Generator) -> Any:
        """Return m of the draws, chosen at random with replacement."""
        return take(self.values, rng.choice(self.size, size=m, p=self.weights))

    def members(self) -> list[Draws]:
        """Return the outputs of a batch one by one, each with its own weights and diagnostics."""
        weights = None if self.weights is None else np.broadcast_to(self.weights.T, (self.batch, self.size))
        return [self._member(j, None if weights is None else weights[j]) for j in range(self.batch)]

    def _member(self, j: int, weights: Floats | None) -> Draws:
        values = take(self.values, (slice(None), j))
        said = {name: np.broadcast_to(value, (self.batch,))[j] for name, value in self.diagnostics.items()}
        one = Draws(_blank(values) if j in self.lost else values, self.iid, weights, self.chains, said)
        object.__setattr__(one, "lost", {0: self.lost[j]} if j in self.lost else {})
        return one

    def distinct(self, m: int, rng: Generator) -> Any:
        """Return m different ones of the draws, if there are as many."""
        # Repeated draws would tie with each other; as long as there are enough, each is used once.
        if m > self.size or self.weights is not None:
            return self.sample(m, rng)
        return take(self.values, rng.permutation(self.size)[:m])

    def copied(self) -> Draws:
        """Return the same draws in arrays of their own; they were checked already."""
        # Not by the copy module, which takes longer than the copying.
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, values=copied(self.values))
        return twin

    def equally_weighted(self, rng: Generator) -> Draws:
        """Return as many equally weighted draws as the weights are worth (systematic resampling)."""
        if self.weights is None:
            return self
        weights = np.asarray(self.weights)
        # Kish's effective size; the 1e-9 keeps rounding from turning a whole number into the one below.
        m = max(int((1 + 1e-9) / np.square(weights).sum()), 1)
        # Systematic resampling has less noise than a uniform each; the permutation undoes the order that it leaves.
        places = (rng.permutation(m) + rng.random()) / m
        chosen = np.minimum(np.searchsorted(np.cumsum(weights), places), self.size - 1)
        return Draws(take(self.values, chosen), iid=True, diagnostics=self.diagnostics)


def _as_array(value: Any) -> NDArray[Any]:
    try:
        return as_array(value)
    except ValueError as error:
        raise ValueError(
            f"Draws needs draws of one shape on axis 0, but a {type(value).__name__} of different shapes arrived."
        ) from error


def _blank(values: Any) -> Any:
    """Return values of the same form that nothing can be ranked among."""
    if isinstance(values, Mapping):
        return {name: _blank(part) for name, part in values.items()}
    return np.full(values.shape, np.nan, values.dtype if values.dtype.kind == "f" else float)


def _are_draws(values: NDArray[Any]) -> bool:
    return bool(values.ndim and len(values) and values.dtype.kind in "biuf")


def _need_arrays(arrays: list[NDArray[Any]]) -> None:
    """Refuse arrays that are not equally many numbers each."""
    sizes = {part.shape[0] if part.ndim else 0 for part in arrays}
    if len(sizes) != 1 or sizes == {0}:
        raise ValueError(
            f"Draws needs at least one draw on axis 0 of every array, but shapes {[part.shape for part in arrays]} "
            f"arrived."
        )
    for part in arrays:
        if part.dtype.kind not in "biuf":
            raise ValueError(f"Draws needs arrays of numbers, but an array of dtype {part.dtype} arrived.")


def _need_chains(chains: Any, size: int, iid: bool | None) -> None:
    if iid:
        raise ValueError(f"draws are either independent or chains, but iid=True and chains={chains!r} arrived.")
    if isinstance(chains, bool) or not isinstance(chains, (int, np.integer)) or chains < 1 or size % chains:
        raise ValueError(f"chains must be a whole number that divides the {size} draws, but {chains!r} arrived.")


def _as_diagnostics(diagnostics: Any, batch: int) -> dict[str, Floats]:
    """Return what a sampler says of itself as numbers by name."""
    if not isinstance(diagnostics, Mapping):
        raise ValueError(
            f"diagnostics must be a dict, {{name: number}}, but {diagnostics!r} arrived; leave them out if there are "
            f"none."
        )
    return {str(name): _as_diagnostic(str(name), value, batch) for name, value in diagnostics.items()}


def _as_diagnostic(name: str, value: Any, batch: int) -> Floats:
    found = _floats(value)
    if found is None or found.shape not in ((), *(((batch,),) if batch else ())):
        each = f", or {batch} of them, one per output of a batch" if batch else ""
        arrived = f"is {value!r}" if found is None else f"has shape {found.shape}"
        raise ValueError(
            f"diagnostics must be one number each{each}, but {name!r} {arrived}; of several numbers pass the worst."
        )
    return found


def _floats(value: Any) -> Floats | None:
    """Return an array of numbers of its own, None if it is not made of numbers."""
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array.astype(float) if array.dtype.kind in "biuf" else None


def _weighed(weights: Any, size: int, batch: int) -> tuple[Floats, dict[int, str]]:
    """Return weights that add up to one over the draws, and what is wrong with those outputs of a batch that have none.

    A bad column is lost alone: the others of its batch have done nothing wrong.
    """
    w = _floats(weights)
    if w is None or not batch or w.shape != (size, batch):
        return normalised(weights, size, batch), {}
    lost = {j: _wrong(w[:, j]) for j in np.flatnonzero(_unfit(w)).tolist()}
    w[:, list(lost)] = 1.0
    return w / w.sum(axis=0), lost


def normalised(weights: Any, size: int, batch: int = 0) -> Floats:
    """Return weights that add up to one, or say what is wrong with them."""
    w = _floats(weights)
    if w is None or w.shape != (size,):
        arrived = f"shape {w.shape}" if w is not None else type(weights).__name__
        each = f", or of shape {(size, batch)} in a batch" if batch else ""
        raise ValueError(f"weights must be {size} non-negative numbers, one per draw{each}, but {arrived} arrived.")
    if _unfit(w):
        raise ValueError(f"{_wrong(w)}.")
    return np.asarray(w / w.sum())


def _unfit(w: Floats) -> Any:
    """Return which columns of weights cannot be normalised."""
    total = _total(w)
    return ~(np.isfinite(total) & (total > 0)) | (w < 0).any(axis=0)


def _total(w: Floats) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return w.sum(axis=0)


def _wrong(w: Floats) -> str:
    """Say what is wrong with the weights of one output."""
    bad = w[~(np.isfinite(w) & (w >= 0))]
    arrived = f"{bad[0]:g} is among them" if bad.size else f"their sum is {_total(w):g}"
    return f"weights must be {len(w)} non-negative numbers with a positive sum, one per draw, but {arrived}"
