"""Pre-ranks: one number for each of {truth, draws}, of all entries of the parameter together.

A function of this file compares a parameter with all the others of its replicate, without knowing which of them is the
truth: whatever it is, the truth's rank is uniform if the truth follows the output. This module knows no distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn, get_args

import numpy as np
from scipy import special

from ..errors import InvalidStudy
from ..values import Floats, entries, take
from .contract import Context, Sees

Measure = Literal["energy", "band", "average", "density"]
#: Values are rounded to so many decimals of their own scale: members that are equal must stay so, whatever the order of
#: summation.
_DECIMALS = 9
#: Distances held at once: they stay in the cache.
_CACHED = 1 << 17


class Pooled:
    """A test function of a parameter among all members of its replicate."""

    name: str

    def of_pool(self, pool: Floats, context: Context) -> Floats:
        """Return one number for every member.

        Parameters
        ----------
        pool
            (members, replicates, entries); the function must not care for the order of the members.
        context
            With one leading axis, the replicate.
        """
        raise TypeError(f"{type(self).__name__} must say what it makes of a pool")

    def evaluate(self, theta: Any, context: Context) -> NoReturn:
        """Refuse to look at a parameter alone."""
        raise InvalidStudy(f"test function {self.name!r} compares truth and draws, and has no value for one of them.")


@dataclass(frozen=True)
class PreRank(Pooled):
    """How central a parameter is among the truth and the draws of its output, all entries together.

    Parameters
    ----------
    measure
        "energy": the mean distance to the others, which sees errors of the radius, rings, and spread in all directions.
        "band": how many entries are near the ends of their ranges, which sees entries that are extreme together.
        "average": the average rank, which sees positive dependence.
        "density": the log of a kernel density of the members, so that ranks are those of highest-density regions.

    Notes
    -----
    Members are standardised by all of them, so that the rank is exact; at most 99 draws are looked at. It sees the
    output and not the data: the level is auto. Markov chains are refused, since their draws depend on each other.

    Examples
    --------
    >>> PreRank("energy").sees
    'output'
    >>> pool = np.array([[[5.0, 5.0]], [[0.0, 0.1]], [[0.1, 0.0]], [[-0.1, 0.1]]])
    >>> int(PreRank("energy").of_pool(pool, Context(1))[:, 0].argmax())
    0
    """

    measure: Measure = "energy"
    name: str = ""
    kind: str = field(default="pre-rank", init=False)
    sees: Sees = field(default="output", init=False)

    def __post_init__(self) -> None:
        if self.measure not in get_args(Measure):
            raise InvalidStudy(f"PreRank must be one of {list(get_args(Measure))}, but {self.measure!r} arrived.")
        object.__setattr__(self, "name", self.name or f"{self.measure} pre-rank")

    def of_pool(self, pool: Floats, context: Context) -> Floats:
        """Return how central, or how high, every member is."""
        found = _MEASURES[self.measure](pool)
        return np.round(found, _DECIMALS)


def standardised(pool: Floats) -> Floats:
    """Return members with mean 0 and sd 1 in every entry; an entry that is the same for all counts for nothing.

    Examples
    --------
    >>> standardised(np.array([[[1.0, 7.0]], [[3.0, 7.0]]])).tolist()
    [[[-1.0, 0.0]], [[1.0, 0.0]]]
    """
    # By the largest first: the squares of heavy-tailed members must not overflow.
    centred = pool - np.median(pool, axis=0)
    centred = centred / np.maximum(np.abs(centred).max(axis=0), np.finfo(float).tiny)
    centred = centred - centred.mean(axis=0)
    sd = np.sqrt(np.square(centred).mean(axis=0))
    return np.asarray(np.where(sd > 1e-12, centred / np.maximum(sd, 1e-300), 0.0))


def energy(pool: Floats) -> Floats:
    """Return the mean Euclidean distance of every member to all others, entries standardised.

    Examples
    --------
    >>> energy(np.array([[[0.0]], [[2.0]]])).tolist()
    [[2.0], [2.0]]
    """
    # A member is at distance 0 from itself, all alike.
    rows = [np.sqrt(squared_distances(part)).sum(axis=2) for part in _few_at_a_time(standardised(pool))]
    return np.asarray(np.concatenate(rows).T / max(len(pool) - 1, 1))


def _few_at_a_time(pool: Floats) -> Iterator[Floats]:
    """Yield so few replicates that the distances between their members fit into memory."""
    step = max(1, _CACHED // len(pool) ** 2)
    return (pool[:, start : start + step] for start in range(0, pool.shape[1], step))


def squared_distances(members: Floats) -> Floats:
    """Return squared distances between all members of each replicate, (replicates, members, members)."""
    rows = np.ascontiguousarray(np.swapaxes(members, 0, 1))
    lengths = np.einsum("bmd,bmd->bm", rows, rows)
    # One product per replicate, whose rounding does not depend on how many replicates are beside it.
    products = rows @ np.swapaxes(rows, 1, 2)
    found = lengths[:, :, None] + lengths[:, None, :] - 2 * products
    each = np.arange(rows.shape[1])
    found[:, each, each] = 0.0
    return np.asarray(np.maximum(found, 0.0))


def entry_ranks(pool: Floats) -> Floats:
    """Return how many members lie below each, entry by entry; equal ones have the middle of their ranks.

    Examples
    --------
    >>> entry_ranks(np.array([[[5.0]], [[1.0]], [[5.0]]])).tolist()
    [[[1.5]], [[0.0]], [[1.5]]]
    """
    order = np.argsort(pool, axis=0)
    ordered = np.take_along_axis(pool, order, axis=0)
    places = np.arange(len(pool), dtype=float).reshape(-1, *(1,) * (pool.ndim - 1))
    found = np.empty(pool.shape)
    np.put_along_axis(found, order, np.broadcast_to(places, pool.shape), axis=0)
    tied = (ordered[1:] == ordered[:-1]).any(axis=0)
    for where in np.argwhere(tied):
        column = (slice(None), *where)
        low, high = (np.searchsorted(ordered[column], pool[column], side=side) for side in ("left", "right"))
        found[column] = (low + high - 1) / 2
    return found


def band(ranks: Floats) -> Floats:
    """Return the band depth of every member from its ranks: small where several entries are extreme together."""
    # Ranks run from 0 to M; r (M - r) counts the pairs of others that the member lies between.
    return np.asarray((ranks * (len(ranks) - 1 - ranks)).sum(axis=-1))


def density(pool: Floats) -> Floats:
    """Return the log of a Gaussian kernel density of the members at each of them, up to a constant.

    The kernel has the shape of the members' own covariance and the width of Scott's rule.

    Examples
    --------
    >>> int(density(np.array([[[0.0]], [[0.1]], [[9.0]]]))[:, 0].argmin())
    2
    """
    return np.concatenate([_density(part) for part in _few_at_a_time(standardised(pool))], axis=1)


def _density(members: Floats) -> Floats:
    rows = np.swapaxes(members, 0, 1)
    m, d = rows.shape[1:]
    covariance = np.swapaxes(rows, 1, 2) @ rows / m
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9
    white = (rows @ vectors) * np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)[:, None, :]
    width = m ** (-1 / (d + 4))
    squares = squared_distances(np.swapaxes(white, 0, 1)) / width**2
    return np.asarray(special.logsumexp(-squares / 2, axis=2).T)


_MEASURES: dict[str, Callable[[Floats], Floats]] = {
    "energy": energy,
    "band": lambda pool: band(entry_ranks(pool)),
    "average": lambda pool: np.asarray(entry_ranks(pool).sum(axis=-1)),
    "density": density,
}


@dataclass(frozen=True, eq=False)
class Reference(Pooled):
    """The distance of a parameter from reference points, each replicate's own: TARP as an exact rank.

    Parameters
    ----------
    points
        Left out, draws of the belief, which each replicate picks by random numbers of its own: the level is auto.
        An array (points, entries) is picked from in the same way. A function of y returns one point, an array like
        theta, or several on a leading axis: the level is then exact.
    count
        How many points a replicate has. Of several, what is ranked is the average of the normal scores of the ranks
        that a member has by its distance from each; they are not taken for independent.

    Notes
    -----
    Distances are in units of the spread of all members of a replicate. Blind, as any function of y is, to what the
    output has got wrong in the same way as the points.

    Examples
    --------
    >>> Reference(lambda y: y).sees
    'data'
    >>> pool = np.array([[[3.0]], [[0.0]], [[1.0]]])
    >>> context = Context(1, uniforms=lambda many: np.zeros((1, many)))
    >>> Reference(np.zeros((5, 1)), count=1).of_pool(pool, context).argmax() == 0
    np.True_
    """

    points: Any = None
    count: int = 10
    name: str = "reference"
    kind: str = field(default="reference", init=False)

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise InvalidStudy(f"Reference needs a whole number of points, at least 1, but got {self.count!r}.")

    @property
    def sees(self) -> Sees:
        """The data, if its points come from them."""
        return "data" if callable(self.points) else "output"

    def given(self, belief: Any) -> Reference:
        """Return the same with draws of the belief for points, if it has none."""
        if self.points is not None:
            return self
        sample = entries(belief, 1)
        if sample is None:
            raise InvalidStudy(f"test function {self.name!r} needs a parameter made of numbers; pass points=.")
        return replace(self, points=sample)

    def of_pool(self, pool: Floats, context: Context) -> Floats:
        """Return the average score of every member's distances."""
        center, unit = np.median(pool, axis=0), np.abs(pool - np.median(pool, axis=0)).mean(axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        members, points = (pool - center) / unit, (self._points(pool, context) - center) / unit
        away = np.sqrt(np.square(members[:, None] - points).sum(axis=-1))  # (members, points, replicates)
        if away.shape[1] == 1:
            return np.asarray(np.round(away[:, 0], _DECIMALS))
        ranks = entry_ranks(np.round(away, _DECIMALS))
        return np.asarray(np.round(special.ndtri((ranks + 1) / (len(pool) + 1)).mean(axis=1), _DECIMALS))

    def _points(self, pool: Floats, context: Context) -> Floats:
        """Return (points, replicates, entries)."""
        b, d = pool.shape[1:]
        if callable(self.points):
            each = [np.reshape(np.asarray(self.points(take(context.y, j)), float), (-1, d)) for j in range(b)]
            if len({len(one) for one in each}) > 1:
                raise InvalidStudy(f"the points of {self.name!r} must be equally many for every dataset.")
            return np.stack(each, axis=1)
        sample = np.asarray(self.points, float).reshape(len(self.points), -1)
        if sample.shape[1] != d:
            raise InvalidStudy(
                f"the points of {self.name!r} must have {d} entries, as theta has, but {sample.shape[1]} arrived."
            )
        assert context.uniforms is not None
        picked = (context.uniforms(self.count) * len(sample)).astype(int)
        return np.swapaxes(sample[picked], 0, 1)
