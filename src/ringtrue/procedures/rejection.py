"""Approximate Bayesian computation by rejection, plain and noisy, and an exact shortcut for location models.

:class:`Rejection` takes any simulator, summary and distance. :class:`LocationRejection` has the same law for location
models with order-statistic summaries, at a cost that lets a million datasets be run. Nothing here knows of studies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..distributions import Draws, Normal, as_distribution
from ..errors import InvalidStudy
from ..values import Floats, Generator, Ints, stack_values, take

Algorithm = Literal["ABC", "noisy ABC"]

#: Levels of the order-statistic summaries.
_LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Proposals made at once by the location sampler: a few arrays of this length fit in a core's cache.
_SWEEP = 1 << 15
#: Standardised positions of the largest residual, seen from the belief's mean, where its envelope may step.
_STEPS = np.array([-np.inf, -8, -6, -5, -4, -3.3, -2.7, -2.2, -1.7, -1.3, -0.9, -0.6, -0.3, 0])
_STEPS = np.concatenate([_STEPS, -_STEPS[-2::-1]])
#: The least 2^k - 1 that holds all of them.
_TREE = (1 << len(_STEPS).bit_length()) - 1


def euclidean(a: ArrayLike, b: ArrayLike) -> Floats:
    """Return the Euclidean distance over the last axis.

    Examples
    --------
    >>> float(euclidean([3.0, 4.0], [0.0, 0.0]))
    5.0
    """
    return np.asarray(np.sqrt(np.square(np.asarray(a, float) - np.asarray(b, float)).sum(-1)))


def in_ball(centre: ArrayLike, radius: float, rng: Generator) -> Floats:
    """Return one point uniform in the ball about each centre; the coordinates are on the last axis.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bool(euclidean(in_ball(np.zeros(5), 2.0, rng), 0) < 2)
    True
    """
    middle = np.asarray(centre, float)
    direction = rng.standard_normal(middle.shape)
    # The volume within r grows like r^k; r uniform would crowd the centre.
    length = radius * rng.random((*middle.shape[:-1], 1)) ** (1 / middle.shape[-1])
    return np.asarray(middle + length * direction / np.sqrt(np.square(direction).sum(-1, keepdims=True)))


@dataclass(frozen=True)
class Rejection:
    """Rejection ABC: draws of the belief whose simulated summaries come within a tolerance of the observed ones.

    There is no cap on the number of proposals: one would change the law for the datasets that need most. Noisy ABC is
    strongly calibrated; plain ABC is not, at any positive tolerance.

    Parameters
    ----------
    simulate
        ``simulate(theta, rng)``: one dataset per theta, with the proposal on axis 0.
    summary
        ``summary(y)``: the summaries of a batch of datasets, shape (proposals, k).
    tolerance
        A proposal is accepted if its distance is below this.
    draws
        The number of acceptances.
    distance
        ``distance(simulated, observed)``, (proposals, k) and (k,) to (proposals,).
    algorithm
        "noisy ABC" moves the observed summaries to a point uniform in the ball of radius ``tolerance`` about them,
        once per dataset. That this makes the output calibrated holds for the Euclidean distance, whose ball it is.
    data_ndim
        The number of axes of one dataset; y with one more is a batch.
    largest
        Proposals are made in batches that grow up to this size.

    Examples
    --------
    >>> abc = Rejection(lambda theta, rng: theta[:, None] + rng.normal(size=(len(theta), 1)), lambda y: y, 0.5, 10)
    >>> abc(Normal(0, 1), np.array([1.0]), np.random.default_rng(0)).size
    10
    """

    simulate: Callable[[Any, Generator], Any]
    summary: Callable[[Any], Any]
    tolerance: float
    draws: int
    distance: Callable[[Floats, Floats], Any] = euclidean
    algorithm: Algorithm = "ABC"
    data_ndim: int = 1
    largest: int = 1 << 14

    def __post_init__(self) -> None:
        _check_settings(self)

    def __call__(self, belief: Any, y: Any, rng: Generator) -> Draws:
        """Return the accepted draws, for one dataset or a batch."""
        prior = as_distribution(belief, what="the belief", role="belief")
        single = np.ndim(y) <= self.data_ndim
        data = np.asarray(y)[None] if single else np.asarray(y)
        observed = _observed(self, np.asarray(self.summary(data), float), rng)
        accepted = [self._accept(prior, s, rng) for s in observed]
        return Draws(accepted[0] if single else stack_values(accepted, axis=1), iid=True)

    def _accept(self, prior: Any, observed: Floats, rng: Generator) -> Any:
        kept: list[Any] = []
        count = tries = 0
        try:
            while count < self.draws:
                # Growing, because the rate of acceptance is not known beforehand and may be one in millions.
                m = min(max(2 * tries, self.draws, 64), self.largest)
                theta = prior.sample(m, rng)
                simulated = np.asarray(self.summary(self.simulate(theta, rng)), float)
                good = np.flatnonzero(np.asarray(self.distance(simulated, observed)) < self.tolerance)
                kept.append(take(theta, good))
                count, tries = count + len(good), tries + m
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_progress_made(count, self.draws, tries)) from None
        return take(_joined(kept), slice(self.draws))


def _joined(parts: list[Any]) -> Any:
    """Concatenate draws, arrays or dicts of arrays, on axis 0."""
    if isinstance(parts[0], Mapping):
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return np.concatenate(parts)


def _check_settings(procedure: Rejection | LocationRejection) -> None:
    if not 0 < procedure.tolerance < np.inf or procedure.draws < 1:
        raise InvalidStudy(
            f"rejection needs a positive finite tolerance and at least one draw, but {procedure.tolerance} and "
            f"{procedure.draws} arrived."
        )
    if procedure.algorithm not in get_args(Algorithm):
        raise InvalidStudy(f"algorithm must be one of {get_args(Algorithm)}, but {procedure.algorithm!r} arrived.")


def _observed(procedure: Rejection | LocationRejection, summaries: Floats, rng: Generator) -> Floats:
    """Return what simulated summaries are compared with, (datasets, k)."""
    if summaries.ndim != 2 or not np.isfinite(summaries).all():
        raise InvalidStudy(
            f"the observed summaries must be finite numbers of shape (datasets, k), but shape {summaries.shape} with "
            f"{np.size(summaries) - np.isfinite(summaries).sum()} that are not finite arrived; no proposal can match."
        )
    return in_ball(summaries, procedure.tolerance, rng) if procedure.algorithm == "noisy ABC" else summaries


def _progress_made(accepted: int, wanted: int, tries: int) -> str:
    return (
        f"interrupted after {tries} proposals with {accepted} of {wanted} draws accepted; a larger tolerance, or fewer "
        f"summaries, accepts more often."
    )


def order_summaries(y: ArrayLike) -> Floats:
    """Return minimum, lower quartile, median, upper quartile and maximum over the last axis.

    Quartiles interpolate linearly between order statistics, as numpy's default does.

    Examples
    --------
    >>> order_summaries([4.0, 1.0, 2.0, 3.0])
    array([1.  , 1.75, 2.5 , 3.25, 4.  ])
    """
    ordered = np.sort(np.asarray(y, float), axis=-1)
    parts = [
        ordered[..., low] if share == 0 else (1 - share) * ordered[..., low] + share * ordered[..., low + 1]
        for low, share in _places(ordered.shape[-1])
    ]
    return np.stack(parts, axis=-1)


def _places(size: int) -> list[tuple[int, float]]:
    """For each summary, the order statistic (from 0) below it and the share of the next one."""
    return [(int(level * (size - 1)), level * (size - 1) % 1) for level in _LEVELS]


class LocationModel(Protocol):
    """y = theta + quantile(z) for ``size`` standard normal z, with an increasing ``quantile``."""

    @property
    def size(self) -> int:
        """The number of observations in a dataset."""

    def quantile(self, z: Floats) -> Floats:
        """Return the residual for a standard normal number; it must be increasing."""


@dataclass(frozen=True)
class GAndK:
    """The g-and-k location model: theta + b (1 + 0.8 tanh(g z / 2)) z (1 + z^2)^k with z standard normal.

    Its density has no closed form, its quantile function has: the standard example for ABC.

    Parameters
    ----------
    b, g, k
        Scale, skewness and weight of the tails.
    size
        The number of observations in a dataset.

    Examples
    --------
    >>> GAndK().simulate(np.zeros(3), np.random.default_rng(0)).shape
    (3, 20)
    """

    b: float = 1.0
    g: float = 2.0
    k: float = 0.5
    size: int = 20

    def __post_init__(self) -> None:
        if not self.b > 0 or not self.k >= 0 or not np.isfinite(self.g) or self.size < 1:
            raise InvalidStudy(f"GAndK needs b > 0, k >= 0, a finite g and at least one observation, but {self} came.")

    def quantile(self, z: Floats) -> Floats:
        """Return the residual for a standard normal number."""
        tails = (1 + z * z) ** self.k
        # tanh(g z / 2) is (1 - exp(-g z)) / (1 + exp(-g z)), which would overflow.
        return np.asarray(self.b * (1 + 0.8 * np.tanh(0.5 * self.g * z)) * z * tails)

    def simulate(self, theta: ArrayLike, rng: Generator) -> Floats:
        """Draw one dataset per theta, observations on the last axis."""
        location = np.asarray(theta, float)[..., None]
        return location + self.quantile(rng.standard_normal((*location.shape[:-1], self.size)))


@dataclass(frozen=True)
class LocationRejection:
    """Rejection ABC for a location model with the five order summaries: the law of `Rejection`, for less work.

    Every summary moves with theta. So the residual summaries r of a dataset simulated at theta = 0 are accepted for an
    interval of theta, whose probability under the belief is a closed form; theta itself is drawn afterwards. The
    largest residual is drawn where it can be accepted, the other order statistics one by one from the largest, as long
    as the squared distances still fit.

    Parameters
    ----------
    model
        A model with ``quantile`` and ``size``, such as :class:`GAndK`.
    tolerance, draws, algorithm
        As in :class:`Rejection`; the distance is Euclidean and the belief a `Normal` number.

    Examples
    --------
    >>> model, rng = GAndK(), np.random.default_rng(0)
    >>> LocationRejection(model, tolerance=1.0, draws=7)(Normal(0, 1), model.simulate(0.0, rng), rng).values.shape
    (7,)
    """

    model: LocationModel
    tolerance: float
    draws: int
    algorithm: Algorithm = "ABC"

    def __post_init__(self) -> None:
        _check_settings(self)
        if self.model.size < 5:  # the quartiles of fewer share order statistics
            raise InvalidStudy(f"LocationRejection needs at least 5 observations, but {self.model.size} came.")

    def __call__(self, belief: Any, y: ArrayLike, rng: Generator) -> Draws:
        """Return the accepted draws, for one dataset or a batch with observations on the last axis."""
        if not isinstance(belief, Normal) or np.ndim(belief.mean) or np.ndim(belief.sd):
            raise InvalidStudy(f"LocationRejection needs a belief that is one Normal number, but {belief!r} arrived.")
        data = np.asarray(y, float)
        if data.ndim not in (1, 2) or data.shape[-1] != self.model.size:
            raise InvalidStudy(
                f"LocationRejection needs {self.model.size} observations on the last axis, but {data.shape} arrived."
            )
        observed = _observed(self, order_summaries(np.atleast_2d(data)), rng)
        # In units of the belief: it is N(0, 1) from here on.
        mean, sd = float(np.asarray(belief.mean)), float(np.asarray(belief.sd))
        sampler = _Sampler(_Scaled(self.model, self.tolerance / sd, sd), (observed - mean) / sd)
        accepted = mean + sd * sampler.draw(self.draws, rng)
        return Draws(accepted[:, 0] if data.ndim == 1 else accepted, iid=True)


@dataclass(frozen=True)
class _Scaled:
    """A location model in units in which the belief is N(0, 1), and the tolerance in the same units."""

    model: LocationModel
    tolerance: float
    unit: float

    def residual(self, z: Floats) -> Floats:
        return self.model.quantile(z) / self.unit

    def best(self, gap: Floats) -> Floats:
        """Bound the probability of the accepted interval of theta, given the observed less the simulated maximum."""
        # Accepted theta lie within the tolerance of the maximum's gap, on an interval no longer than five equal gaps
        # leave. It is most probable at the end that is nearest to the belief's mean.
        half = self.tolerance / len(_LEVELS) ** 0.5
        return _interval(np.maximum(np.abs(gap) - (self.tolerance - half), 0.0), half)


class _Sampler:
    """The location sampler for a batch of observed summaries (datasets, 5), in the units of a scaled model."""

    def __init__(self, scaled: _Scaled, observed: Floats) -> None:
        self.scaled, self.observed, self.tolerance = scaled, observed, scaled.tolerance
        # From the largest down: (summary, order statistics from 1 in falling order, their weights).
        self.chain = [
            (j, (low + 1,), (1.0,)) if share == 0 else (j, (low + 2, low + 1), (share, 1 - share))
            for j, (low, share) in reversed(list(enumerate(_places(scaled.model.size))))
        ]
        self.maxima = _Maxima(scaled, observed[:, -1])

    def draw(self, draws: int, rng: Generator) -> Floats:
        """Return (draws, datasets) acceptances."""
        out = np.empty((draws, len(self.observed)))
        count, tries = np.zeros((2, len(self.observed)), np.int64)
        try:
            while (who := _next_proposals(draws, count, tries)).size:
                tries += np.bincount(who, minlength=len(tries))
                found, theta = self.propose(who, rng)
                slot = count[found] + _place_in_run(found)
                room = slot < draws
                out[slot[room], found[room]] = theta[room]
                count = np.minimum(count + np.bincount(found, minlength=len(count)), draws)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_progress_made(int(count.sum()), out.size, int(tries.sum()))) from None
        return out

    def propose(self, who: Ints, rng: Generator) -> tuple[Ints, Floats]:
        """Make one proposal for each entry of ``who``, in order; return those accepted, and their theta."""
        log_u, gap, threshold = self.maxima.draw(who, rng)
        threshold *= rng.random(len(who))
        who, log_u, mean, threshold = _where(self.scaled.best(gap) > threshold, who, log_u, gap, threshold)
        squares, above, summaries = np.zeros(len(who)), self.scaled.model.size, 1
        for j, orders, weights in self.chain[1:]:
            gap = self.observed[:, j].take(who)
            for order, weight in zip(orders, weights, strict=True):
                log_u = log_u - _log_ratio(order, above, len(who), rng)
                gap -= weight * self.scaled.residual(special.ndtri(np.exp(log_u)))
                above = order
            # Sums of squares about the mean, summary by summary: they only grow, and too large ones fit no theta.
            squares += np.square(gap - mean) * (summaries / (summaries + 1))
            mean = mean + (gap - mean) / (summaries + 1)
            summaries += 1
            fine = squares < self.tolerance**2
            who, log_u, mean, squares, threshold = _where(fine, who, log_u, mean, squares, threshold)
        half = np.sqrt((self.tolerance**2 - squares) / summaries)
        who, mean, half = _where(_interval(np.abs(mean), half) > threshold, who, mean, half)
        return who, _truncated(mean, half, rng)


class _Maxima:
    """Draws the largest residual from its law times a step function that bounds what can be accepted of it.

    The bound is :meth:`_Scaled.best` of the gap, the observed maximum less the simulated one; it falls with the size of
    the gap. ``draw`` returns the height of the step as well, so that the caller can correct for it.
    """

    def __init__(self, scaled: _Scaled, observed: Floats) -> None:
        # No methods of whoever asks: the two would wait for the garbage collector, with arrays for every dataset.
        self.scaled, self.observed, size = scaled, observed, scaled.model.size
        # Where an envelope steps need not be exact, only known: at the next of these places, which all datasets share.
        places = _Places(scaled.residual, size)
        step = places.nearest(observed[:, None] + _STEPS)
        gap = observed[:, None] - places.residual.take(step)
        # The least gap within a step; gaps fall from step to step.
        inner = np.maximum(np.maximum(gap[:, 1:], -gap[:, :-1]), 0.0)
        self.height = scaled.best(inner)
        self.lower, self.upper = places.lower.take(step), places.upper.take(step)
        # Each difference from the tail in which it is accurate.
        high, low = -np.diff(self.upper, axis=1), np.diff(self.lower, axis=1)
        mass = np.maximum(np.where(self.upper[:, :-1] < 0.5, high, low) * self.height, 0.0)
        total = mass.sum(1, keepdims=True)
        if not (total > 0).all():
            raise InvalidStudy(
                f"a dataset with maximum {observed[np.argmin(total)]:.3g} belief sds from the belief's mean cannot be "
                f"matched in double precision; check the data, or widen the belief or the tolerance."
            )
        # Filled up to a full tree of comparisons; nothing is below the entries that are added.
        self.cumulative = np.full((len(mass), _TREE), np.inf)
        self.cumulative[:, : mass.shape[1] - 1] = np.cumsum(mass / total, axis=1)[:, :-1]

    def draw(self, who: Ints, rng: Generator) -> tuple[Floats, Floats, Floats]:
        """Return for each entry of ``who`` the log probability below the largest residual, the gap and the height."""
        step = self.steps(who, rng.random(len(who)))
        share = rng.random(len(who))
        # Of flat arrays numbers are taken in a third of the time.
        left = who * self.upper.shape[1] + step
        high, low = self.upper.take(left), self.lower.take(left)
        with np.errstate(divide="ignore"):  # the branch not taken may be log(0)
            log_cdf = np.where(
                high < 0.5,
                np.log1p(-(high + share * (self.upper.take(left + 1) - high))),
                np.log(low + share * (self.lower.take(left + 1) - low)),
            )
        log_u = log_cdf / self.scaled.model.size
        # From the upper tail: near 1 the probability itself has no digits left.
        z = -special.ndtri(-np.expm1(log_u))
        return log_u, self.observed.take(who) - self.scaled.residual(z), self.height.take(left - who)

    def steps(self, who: Ints, share: Floats) -> Ints:
        """Return how many steps of each entry's envelope end below a share of its mass, by bisection."""
        first = who * _TREE
        place = first.copy()
        half = (_TREE + 1) // 2
        while half:
            place += half * (self.cumulative.take(place + (half - 1)) < share)
            half //= 2
        return place - first


class _Places:
    """Places on the line of residuals, from one infinity to the other, and how likely the largest lies on either side.

    Between them the inverse hyperbolic sine grows by equal steps, so that the nearest is found without a search.
    """

    #: Number and farthest of the finite places.
    many, far = 4001, 1e6

    def __init__(self, residual: Callable[[Floats], Floats], size: int) -> None:
        table, end = np.sinh(np.linspace(-5, 5, 4001)), np.arcsinh(self.far)
        z = np.interp(np.sinh(np.linspace(-end, end, self.many)), residual(table), table)
        self.scale = (self.many - 1) / (2 * end)
        self.residual = np.concatenate([[-np.inf], residual(z), [np.inf]])
        log_cdf = np.concatenate([[-np.inf], size * special.log_ndtr(z), [0.0]])
        self.lower, self.upper = np.exp(log_cdf), -np.expm1(log_cdf)

    def nearest(self, x: Floats) -> Ints:
        """Return the number of the place nearest to x, roughly; infinities have one each."""
        place = np.clip(np.rint(np.arcsinh(x) * self.scale), -(self.many // 2), self.many // 2)
        place = place.astype(np.int64) + (self.many // 2 + 1)
        return np.asarray(np.where(np.isinf(x), np.where(x < 0, 0, self.many + 1), place))


def _where(fine: Any, *arrays: Any) -> list[Any]:
    """Return the entries of arrays for which something holds; by their numbers, which is faster than by truths."""
    places = np.flatnonzero(fine)
    return [array.take(places) for array in arrays]


def _interval(distance: ArrayLike, half: ArrayLike) -> Floats:
    """Return the N(0, 1) probability of an interval, given how far its centre is from 0."""
    return np.asarray(special.ndtr(np.subtract(half, distance)) - special.ndtr(-np.add(half, distance)))


def _truncated(centre: Floats, half: Floats, rng: Generator) -> Floats:
    """Draw from N(0, 1) on intervals; each is mirrored to the side where its probabilities are accurate."""
    low, high = special.ndtr(-np.abs(centre) - half), special.ndtr(half - np.abs(centre))
    z = special.ndtri(low + rng.random(len(low)) * (high - low))
    return np.asarray(np.where(centre > 0, -z, z))


def _log_ratio(order: int, above: int, n: int, rng: Generator) -> Floats | float:
    """Draw -log of u_(order) / u_(above), order statistics of uniforms: a sum of exponentials by Renyi's theorem."""
    # A beta number costs about as much as a dozen exponentials.
    if above - order > 12:
        return -np.log(rng.beta(order, above - order, n))
    rates = 1 / np.arange(order, above)
    return sum((rate * rng.standard_exponential(n) for rate in rates), start=0.0)


def _next_proposals(draws: int, count: Ints, tries: Ints) -> Ints:
    """Return the datasets to propose for, repeated: as often as their rate so far suggests, up to one sweep."""
    pending = np.flatnonzero(count < draws)[:_SWEEP]
    hope = (draws - count[pending]) * (tries[pending] + 1) / (count[pending] + 1)
    # Half of what is expected: proposals beyond the last acceptance are lost, and another sweep costs little.
    often = np.minimum(np.ceil(0.5 * hope), _SWEEP).astype(np.int64)
    few = max(int(np.searchsorted(np.cumsum(often), _SWEEP, side="right")), 1)
    return np.repeat(pending[:few], often[:few])


def _place_in_run(values: Ints) -> Ints:
    """Return how many equal values come before each, in an array in which equal ones are neighbours."""
    start = np.flatnonzero(np.diff(values, prepend=-1))
    return np.arange(len(values)) - np.repeat(start, np.diff(start, append=len(values)))
