"""The law of one real number per replicate: what an exact route needs.

Both tails are kept to full relative accuracy. This module knows nothing of parameters or test functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ..errors import InvalidStudy
from ..values import Floats, Generator, Ints


class Law(ABC):
    """The law of one real number per replicate, with both tails to full relative accuracy."""

    @property
    def atoms(self) -> bool:
        """Whether single points may have positive probability."""
        return False

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x)."""

    @abstractmethod
    def sf(self, x: ArrayLike) -> Floats:
        """Return P(X > x), not as 1 - cdf."""

    @abstractmethod
    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""

    def cdf_left(self, x: ArrayLike) -> Floats:
        """Return P(X < x); it differs from the cdf where the law has atoms."""
        return self.cdf(x)

    def zscore(self, x: ArrayLike) -> Floats:
        """Return the normal score of x, from whichever tail is accurate."""
        return scores_from_tails(self.cdf(x), self.sf(x))

    def cdf_and_zscore(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """Return both at the price of one."""
        z = self.zscore(x)
        return np.asarray(special.ndtr(z)), z

    def ppf(self, p: ArrayLike) -> Floats:
        """Return the smallest x with P(X <= x) >= p, one per replicate, to the last bit."""
        p = np.asarray(p, float)
        upper = p > 0.5

        def reached(x: Floats) -> NDArray[np.bool_]:
            # Near 1 the upper tail is the accurate one.
            return np.asarray(np.where(upper, self.sf(x) <= 1 - p, self.cdf(x) >= p))

        x = _first_float(reached)
        return np.where(np.isnan(self.cdf(x) + p), np.nan, x)  # a law that is lost has no quantiles

    def log_tails(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """Return log P(X <= x) and log P(X > x)."""
        with np.errstate(divide="ignore"):
            return np.log(self.cdf(x)), np.log(self.sf(x))

    def moments(self) -> tuple[Floats, Floats] | None:
        """Return mean and standard deviation; None if they are not known."""
        return None

    def crps(self, x: ArrayLike) -> Floats | None:
        """Return E|X - x| - E|X - X'| / 2, the continuous ranked probability score; None if it is not known."""
        return None

    def central(self, nominal: float) -> tuple[Floats, Floats] | None:
        """Return the ends of the central interval of a probability; None if finding them takes a search."""
        if type(self).ppf is Law.ppf:
            return None
        return self.ppf(0.5 - nominal / 2), self.ppf(0.5 + nominal / 2)


def need_law(law: Any, f: str, whose: Any) -> Law | None:
    """Return the law that a distribution says a test function has, or None if it says that it knows none."""
    if law is None or isinstance(law, Law):
        return law
    raise InvalidStudy(
        f"marginal of {type(whose).__name__} must return the law of test function {f!r}, one of ringtrue's such as "
        f"Normal(mean, sd) or an instance of a class derived from ringtrue.distributions.Law, or None if it is not "
        f"known, but {type(law).__name__} arrived."
    )


def _first_float(reached: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """Return the first number at which a condition holds that then holds for all larger ones, one per replicate.

    Bisection in the order of floating-point numbers: it needs no bracket, and 64 steps end at the last bit.
    """
    with np.errstate(all="ignore"):  # the search starts at the ends of the line
        shape = np.shape(reached(np.zeros(())))
        low, high = np.full(shape, -_INFINITE), np.full(shape, _INFINITE)
        for _ in range(64):
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            there = reached(_float_of(middle))
            low, high = np.where(there, low, np.minimum(middle + 1, high)), np.where(there, middle, high)
    return _float_of(high)


#: The place of infinity in the order of floating-point numbers, 0 being that of 0.
_INFINITE = np.int64(2**63 - 2**52)


def _float_of(order: Ints) -> Floats:
    """Return the number of this place in the order of floating-point numbers."""
    return np.asarray(np.where(order >= 0, order, np.int64(-(2**63)) - order)).view(np.float64)


def scores_from_tails(lower: ArrayLike, upper: ArrayLike) -> Floats:
    """Return Phi^{-1} of a probability given with its complement; 1 - 1e-300 keeps its 37 standard deviations."""
    low, high = np.asarray(lower, float), np.asarray(upper, float)
    # The smaller tail carries the information: 1 - 1e-300 is 1 in floating point, 1e-300 is itself.
    scores = special.ndtri(np.minimum(low, high))
    return np.asarray(np.where(low < high, scores, -scores))


@dataclass(frozen=True, eq=False)
class Folded(Law):
    """The law of |X - center| / scale."""

    law: Law
    center: float
    scale: float

    @property
    def atoms(self) -> bool:
        """Whether the law inside has atoms."""
        return self.law.atoms

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(|X - center| / scale <= x)."""
        return self._inside(x, 1)

    def cdf_left(self, x: ArrayLike) -> Floats:
        """Return P(|X - center| / scale < x)."""
        return self._inside(x, -1) if self.atoms else self.cdf(x)

    def sf(self, x: ArrayLike) -> Floats:
        """Return P(|X - center| / scale > x)."""
        low, high = self._ends(x, 1)
        return np.where(np.less(x, 0), 1.0, self.law.cdf_left(low) + self.law.sf(high))

    def zscore(self, x: ArrayLike) -> Floats:
        """Return the normal score of x."""
        return self.cdf_and_zscore(x)[1]

    def cdf_and_zscore(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """Return both; small lower tails, which are rare, are worth a second computation."""
        # The upper tail first: large distances are what a wrong spread makes, and there the lower tail is 1.
        upper = self.sf(x)
        lower = 1 - upper
        if (small := lower < 1e-6).any():
            lower = np.where(small, self.cdf(x), lower)
        return lower, scores_from_tails(lower, upper)

    def _ends(self, x: ArrayLike, side: int) -> tuple[Floats, Floats]:
        """Return center -+ radius; next to atoms the radius gives way to rounding, outwards (1) or inwards (-1)."""
        with np.errstate(over="ignore"):  # nobody lies beyond all numbers
            r = np.maximum(x, 0) * self.scale
            if self.atoms:
                r = r + side * (1e-12 * (abs(self.center) + r) + np.finfo(float).tiny)
            return self.center - r, self.center + r

    def _inside(self, x: ArrayLike, side: int) -> Floats:
        """Return the probability between the ends, as a difference of whichever tails are small."""
        low, high = self._ends(x, side)
        below = self.law.cdf(high)
        above_low = self.law.sf(low) + (self.law.cdf(low) - self.law.cdf_left(low) if self.atoms else 0.0)
        inside = np.where(below < 0.5, below - self.law.cdf_left(low), above_low - self.law.sf(high))
        return np.where(np.less(x, 0), 0.0, np.maximum(inside, 0))

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        return np.abs(self.law.sample(m, rng) - self.center) / self.scale


def choose(drawn: Sequence[NDArray[Any]], chosen: NDArray[np.intp]) -> NDArray[Any]:
    """Pick, draw by draw, the value of the chosen component."""
    index = chosen.reshape(chosen.shape + (1,) * (drawn[0].ndim - chosen.ndim))
    return np.choose(index, drawn) if len(drawn) <= 32 else np.take_along_axis(np.stack(drawn), index[None], 0)[0]


@dataclass(frozen=True, eq=False)
class MixtureLaw(Law):
    """A mixture of univariate laws."""

    laws: Sequence[Law]
    weights: Floats

    @property
    def atoms(self) -> bool:
        """Whether a component has atoms."""
        return any(law.atoms for law in self.laws)

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x)."""
        return self._average("cdf", x)

    def sf(self, x: ArrayLike) -> Floats:
        """Return P(X > x)."""
        return self._average("sf", x)

    def cdf_left(self, x: ArrayLike) -> Floats:
        """Return P(X < x)."""
        return self._average("cdf_left", x)

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        # All components are drawn and one is chosen: the stream then does not depend on who was chosen before.
        drawn = [law.sample(m, rng) for law in self.laws]
        return choose(drawn, rng.choice(len(self.laws), size=drawn[0].shape, p=self.weights))

    def moments(self) -> tuple[Floats, Floats] | None:
        """Return mean and standard deviation, if those of all components are known."""
        known = [parts for law in self.laws if (parts := law.moments()) is not None]
        if len(known) < len(self.laws):
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # a component may have gone far astray
            mean = sum(w * m for w, (m, _) in zip(self.weights, known, strict=True))
            square = sum(w * (s**2 + (m - mean) ** 2) for w, (m, s) in zip(self.weights, known, strict=True))
        return np.asarray(mean), np.sqrt(square)

    def log_tails(self, x: ArrayLike) -> tuple[Floats, Floats]:
        """Return the logarithms of both tails; far out, where they underflow, they keep their size."""
        lower: Floats = np.array(-np.inf)
        upper: Floats = np.array(-np.inf)
        for weight, law in zip(np.log(self.weights), self.laws, strict=True):
            low, high = law.log_tails(x)
            lower, upper = np.logaddexp(lower, weight + low), np.logaddexp(upper, weight + high)
        return np.minimum(lower, 0.0), np.minimum(upper, 0.0)

    def zscore(self, x: ArrayLike) -> Floats:
        """Return the normal score of x, from whichever tail is small."""
        return score_of(*self.log_tails(x))

    def _average(self, name: str, x: ArrayLike) -> Floats:
        total = np.zeros(())
        for weight, law in zip(self.weights, self.laws, strict=True):
            total = total + weight * getattr(law, name)(x)
        return np.minimum(total, 1.0)


@dataclass(frozen=True, eq=False)
class BatchLaw(Law):
    """Laws of several replicates; the last axis of x is the replicate."""

    laws: tuple[Law, ...]

    @property
    def atoms(self) -> bool:
        """Whether one of the laws has atoms."""
        return any(law.atoms for law in self.laws)

    def cdf(self, x: ArrayLike) -> Floats:
        """Return P(X <= x)."""
        return self._each("cdf", x)

    def sf(self, x: ArrayLike) -> Floats:
        """Return P(X > x)."""
        return self._each("sf", x)

    def cdf_left(self, x: ArrayLike) -> Floats:
        """Return P(X < x)."""
        return self._each("cdf_left", x)

    def zscore(self, x: ArrayLike) -> Floats:
        """Return the normal scores."""
        return self._each("zscore", x)

    def sample(self, m: int, rng: Generator) -> Floats:
        """Return m draws on axis 0."""
        return np.stack([law.sample(m, rng) for law in self.laws], axis=-1)

    def moments(self) -> tuple[Floats, Floats] | None:
        """Return means and standard deviations, if all are known."""
        return _columns([law.moments() for law in self.laws])

    def ppf(self, p: ArrayLike) -> Floats:
        """Return the quantiles."""
        return np.stack([law.ppf(p) for law in self.laws], axis=-1)

    def central(self, nominal: float) -> tuple[Floats, Floats] | None:
        """Return the ends of central intervals, if all are known."""
        return _columns([law.central(nominal) for law in self.laws])

    def _each(self, name: str, x: ArrayLike) -> Floats:
        values = np.asarray(x, float)
        columns = np.moveaxis(np.broadcast_to(values, np.broadcast_shapes(values.shape, (len(self.laws),))), -1, 0)
        return np.stack([getattr(law, name)(column) for law, column in zip(self.laws, columns, strict=True)], axis=-1)


def _columns(pairs: Sequence[tuple[Floats, Floats] | None]) -> tuple[Floats, Floats] | None:
    """Return pairs of numbers of several laws as a pair of arrays; None if one is missing."""
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(pairs):
        return None
    first, second = zip(*known, strict=True)
    return np.array(first, float).ravel(), np.array(second, float).ravel()


def score_of(lower: Floats, upper: Floats) -> Floats:
    """Return the normal score of a place from the logarithms of both tails beyond it.

    From logarithms, because outputs that miss by forty sd must keep their size instead of becoming infinite.

    Examples
    --------
    >>> float(score_of(np.log(0.975), np.log(0.025)).round(2))
    1.96
    """
    scores = special.ndtri_exp(np.minimum(lower, upper))
    return np.asarray(np.where(lower < upper, scores, -scores))
