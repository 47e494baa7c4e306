"""Laplace's approximation: a Gaussian at the posterior's global mode, with the inverse curvature there.

:class:`Laplace` takes any log likelihood in a few dimensions, one dataset at a time. :class:`StudentLocation` is the
paper's example, batched, with a search that isolates every mode. The belief is read, never assumed. Nothing here knows
of studies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..distributions import Gaussian, Normal, stack
from ..errors import InvalidStudy
from ..values import Floats, Ints

#: Steps of finite differences, in standard deviations: truncation and rounding both stay near 1e-7.
_STEP = 1e-3
#: Curvature, in units of the belief, that is no more than the rounding of finite differences.
_FLAT = 1e-6
#: Stands for infinity in a line search.
_WALL = 1e10
#: Draws of the belief that tell its centre and its scale.
_LOOK = 1000
#: Numbers that go through one operation at once, to stay in the cache.
_CACHED = 1 << 15


@dataclass(frozen=True, eq=False)
class Target:
    """A log posterior density of a vector, up to a constant, in units of the belief's centre and scale.

    Derivatives that are not given are central differences; those of a normal belief are known.
    """

    belief: Any
    y: Any
    log_likelihood: Callable[[Any, Any], Any]
    gradient_given: Callable[[Any, Any], Any] | None
    hessian_given: Callable[[Any, Any], Any] | None
    center: Floats
    scale: Floats
    normal: tuple[Floats, Floats] | None

    def native(self, x: Floats) -> Any:
        """Return the parameter as the user knows it."""
        return self.center + self.scale * x.reshape(self.center.shape)

    def log_density(self, x: Floats) -> float:
        """Return the log density; what is not a number counts as impossible."""
        value = self._log_belief(x) + float(self.log_likelihood(self.native(x), self.y))
        return -np.inf if np.isnan(value) else value

    def gradient(self, x: Floats, steps: ArrayLike = _STEP) -> Floats:
        """Return the gradient of the log density."""
        if self.gradient_given is None:
            return differences(self.log_density, x, steps)
        own = np.asarray(self.gradient_given(self.native(x), self.y), float).reshape(x.shape)
        return own * self.scale.ravel() + self._belief_gradient(x, steps)

    def curvature(self, x: Floats, steps: ArrayLike = _STEP) -> Floats:
        """Return the negative Hessian of the log density."""
        if self.hessian_given is None:
            hessian = differences(lambda at: self.gradient(at, steps), x, steps)
        else:
            own = np.asarray(self.hessian_given(self.native(x), self.y), float).reshape(x.size, x.size)
            belief = differences(lambda at: self._belief_gradient(at, steps), x, steps)
            hessian = own * np.outer(self.scale, self.scale) + belief
        return np.asarray(-(hessian + hessian.T) / 2)

    def output(self, mean: Floats, cov: Floats) -> Normal | Gaussian:
        """Return the Gaussian with these moments, in the user's units."""
        if self.center.ndim == 0:
            return Normal(self.native(mean), np.sqrt(cov[0, 0]) * self.scale)
        return Gaussian(self.native(mean), cov * np.outer(self.scale, self.scale))

    def _log_belief(self, x: Floats) -> float:
        if self.normal is None:
            return float(np.sum(self.belief.log_density(self.native(x))))
        mean, precision = self.normal
        return float(-(x - mean) @ precision @ (x - mean) / 2)

    def _belief_gradient(self, x: Floats, steps: ArrayLike) -> Floats:
        if self.normal is None:
            return differences(self._log_belief, x, steps)
        mean, precision = self.normal
        return np.asarray(precision @ (mean - x))


def _as_normal(belief: Any, center: Floats, scale: Floats) -> tuple[Floats, Floats] | None:
    """Return mean and precision of a normal belief, in units of centre and scale."""
    if not isinstance(belief, (Normal, Gaussian)):
        return None
    cov = belief.cov if isinstance(belief, Gaussian) else np.diag(np.square(np.broadcast_to(belief.sd, scale.size)))
    mean = np.broadcast_to((belief.mean - center) / scale, center.shape).reshape(-1)
    return mean, np.linalg.inv(cov) * np.outer(scale, scale)


def differences(f: Callable[[Floats], Any], x: Floats, steps: ArrayLike) -> Floats:
    """Return central differences of f along every axis, on axis 0.

    Examples
    --------
    >>> differences(lambda x: x[0] ** 2 + x[1], np.array([1.0, 5.0]), 0.5)
    array([2., 1.])
    """
    moves = np.diag(np.broadcast_to(np.asarray(steps, float), x.shape))
    with np.errstate(invalid="ignore"):  # a density that vanishes on both sides has no slope: nan
        return np.array([(np.asarray(f(x + move)) - f(x - move)) / (2 * move.max()) for move in moves])


def finite(values: Any) -> Any:
    """Return values that a line search can interpolate: a high wall for infinity, no slope where there is none."""
    return np.nan_to_num(np.clip(values, -_WALL, _WALL))


def as_target(procedure: Any, belief: Any, y: Any) -> tuple[Target, Floats]:
    """Return the target of a procedure with the fields of :class:`Laplace`, and the belief's draws in its units."""
    if getattr(belief, "log_density", None) is None or belief.sample is None:
        raise InvalidStudy(
            f"{type(procedure).__name__} needs a belief with log_density and sample, but {type(belief).__name__} has "
            f"not both; a Normal or a Gaussian has."
        )
    # Always the same draws: with others every time, equal data would not have equal outputs.
    draws = np.asarray(belief.sample(_LOOK, np.random.default_rng(0)), float)
    if draws.ndim > 2:
        raise InvalidStudy(f"{type(procedure).__name__} needs theta a number or a vector, but {draws.shape[1:]} came.")
    center, scale = np.asarray(draws.mean(axis=0)), np.asarray(draws.std(axis=0))
    likelihood = (procedure.log_likelihood, procedure.gradient, procedure.hessian)
    target = Target(belief, y, *likelihood, center, scale, _as_normal(belief, center, scale))
    return target, ((draws - center) / scale).reshape(_LOOK, -1)


@dataclass(frozen=True, eq=False)
class Laplace:
    """A Gaussian at the global mode of belief times likelihood, its covariance the inverse negative Hessian there.

    Not calibrated in general, however good the optimiser: the posterior is not Gaussian.

    Parameters
    ----------
    log_likelihood
        ``log_likelihood(theta, y)``, up to a constant; theta is a number or a vector, as the belief draws it.
    gradient, hessian
        Its derivatives in theta, functions of the same two; left out, finite differences.
    starts
        ``starts(y)`` returns further points to climb from, on axis 0; for several modes that the data can point to.
    draws
        How many draws of the belief to climb from, besides its centre. The highest mode found is taken.
    data_ndim
        The number of axes of one dataset, if batches are to be taken: y with one more is one. They are looped over.

    Examples
    --------
    >>> output = Laplace(lambda theta, y: -0.5 * (y - theta) ** 2)(Normal(0, 1), 3.0)
    >>> round(float(output.mean), 6), round(float(output.sd) ** 2, 6)
    (1.5, 0.5)
    """

    log_likelihood: Callable[[Any, Any], Any]
    gradient: Callable[[Any, Any], Any] | None = None
    hessian: Callable[[Any, Any], Any] | None = None
    starts: Callable[[Any], Any] | None = None
    draws: int = 8
    data_ndim: int | None = None

    def __call__(self, belief: Any, y: Any) -> Any:
        """Return the Gaussian, Normal for a parameter that is a number."""
        if self.data_ndim is not None and np.ndim(y) > self.data_ndim:
            return stack([self(belief, one) for one in y])
        target, draws = as_target(self, belief, y)
        return target.output(*self.fit(target, draws))

    def fit(self, target: Target, draws: Floats) -> tuple[Floats, Floats]:
        """Return mode and covariance in the target's units."""
        # The centre first, and then where the belief has its mass: a single climb ends on whichever mode is nearest.
        points = [np.zeros((1, draws.shape[1])), draws[: self.draws]]
        if self.starts is not None:
            given = (np.asarray(self.starts(target.y), float) - target.center) / target.scale
            points.append(given.reshape(-1, draws.shape[1]))
        return refined(target, highest(target, np.concatenate(points)))


def highest(target: Target, points: Floats) -> Floats:
    """Climb from every point and return the highest place reached."""
    from scipy import optimize  # importing it takes 0.1 s

    reached = []
    for x in points:
        if np.isfinite(target.log_density(x)):
            slope = lambda at: finite(-target.gradient(at))  # noqa: E731
            found = optimize.minimize(lambda at: finite(-target.log_density(at)), x, jac=slope)
            reached.append((target.log_density(found.x), found.x))
    if not reached:
        raise ValueError(
            f"a start with a finite log density is needed, but none of {len(points)} has one; give starts(y)."
        )
    return np.asarray(max(reached, key=lambda pair: pair[0])[1])


def refined(target: Target, x: Floats) -> tuple[Floats, Floats]:
    """Move to the mode nearby by Newton's method, its steps of differences matched to the mode's own scale."""
    steps = np.full(x.shape, _STEP)
    for _ in range(20):
        cov = _inverse(target.curvature(x, steps), target.native(x))
        slope = target.gradient(x, steps)
        steps = _STEP * np.sqrt(np.diag(cov))
        if slope @ cov @ slope <= 1e-14:  # the squared length of the move, in standard deviations
            break
        x = x + cov @ slope
    else:
        raise ValueError(f"a smooth log density with a mode is needed, but Newton's method stays in motion near {x}.")
    return x, _inverse(target.curvature(x, steps), target.native(x))


def _inverse(curvature: Floats, theta: Any) -> Floats:
    """Return the covariance, refusing a curvature that belongs to no mode."""
    least = np.linalg.eigvalsh(curvature)[0] if np.isfinite(curvature).all() else np.nan
    if not least > _FLAT:
        raise ValueError(
            f"a positive definite negative Hessian is needed at the mode, but at theta = {theta} its smallest "
            f"eigenvalue is {least:.3g} in units of the belief; the posterior is flat or unbounded there, or more "
            f"starts are needed."
        )
    return np.asarray(np.linalg.inv(curvature))


@dataclass(frozen=True)
class StudentLocation:
    """Laplace's approximation for the location of Student-t data, belief Normal: y holds ``size`` of them, last axis.

    The posterior may have several modes. All are isolated, by bisection with bounds on the curvature, and the highest
    is taken: no start is needed and no dataset is lost.

    Parameters
    ----------
    df
        Degrees of freedom.
    size
        The number of observations in a dataset.
    scale
        The scale of one observation.

    Examples
    --------
    >>> output = StudentLocation(df=3, size=2)(Normal(0, 1), [-1.0, 1.0])
    >>> float(output.mean), round(float(output.sd) ** 2, 12)
    (0.0, 0.5)
    """

    df: float
    size: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (self.df > 0 and self.size >= 1 and self.scale > 0):
            raise InvalidStudy(f"StudentLocation needs df > 0, size >= 1 and scale > 0, but {self} arrived.")

    def simulate(self, theta: ArrayLike, rng: np.random.Generator) -> Floats:
        """Draw one dataset per theta."""
        center = np.asarray(theta, float)[..., None]
        return np.asarray(center + self.scale * rng.standard_t(self.df, (*center.shape[:-1], self.size)))

    def log_likelihood(self, theta: ArrayLike, y: ArrayLike) -> Floats:
        """Return the log likelihood, up to a constant."""
        residual = (np.asarray(y, float) - np.asarray(theta, float)[..., None]) / self.scale
        return np.asarray(-(self.df + 1) / 2 * np.log1p(np.square(residual) / self.df).sum(-1))

    def __call__(self, belief: Any, y: ArrayLike) -> Normal:
        """Return the normal at the highest mode, or one for every dataset of a batch."""
        data = np.asarray(y, float)
        if not isinstance(belief, Normal) or np.size(belief.mean) != 1 or np.size(belief.sd) != 1:
            raise InvalidStudy(f"StudentLocation needs a Normal belief of one number, but {belief!r} arrived.")
        if data.shape[-1:] != (self.size,) or not np.isfinite(data).all():
            raise ValueError(
                f"StudentLocation needs {self.size} finite numbers on the last axis of y, but shape {data.shape} "
                f"arrived{', with nan or an infinity' if data.shape[-1:] == (self.size,) else ''}."
            )
        center, sd = float(np.squeeze(belief.mean)), float(np.squeeze(belief.sd))
        # Datasets along the last axis: sums over a few observations are then additions of long rows.
        columns = np.ascontiguousarray(((data - center) / self.scale).reshape(-1, self.size).T)
        posteriors = _Posteriors(columns, float(self.df), (self.scale / sd) ** 2)
        mode, spread = np.empty(columns.shape[1]), np.empty(columns.shape[1])
        step = max(_CACHED // self.size, 1)
        for start in range(0, len(mode), step):
            part = slice(start, start + step)
            some = posteriors.take(part)
            mode[part] = _modes(some)
            spread[part] = 1 / np.sqrt(some.derivatives(mode[part])[1])
        shape = data.shape[:-1]
        return Normal(center + self.scale * mode.reshape(shape), self.scale * spread.reshape(shape))


@dataclass(frozen=True, eq=False)
class _Posteriors:
    """Student-t location posteriors under the belief N(0, 1/precision), one per column of y, unit scale.

    Their negative log density at x is precision x^2 / 2 + (df + 1) / 2 sum log(1 + r^2 / df), r = y - x.
    """

    y: Floats
    df: float
    precision: float

    def take(self, columns: Any) -> _Posteriors:
        """Return some of them."""
        return _Posteriors(self.y[:, columns], self.df, self.precision)

    def height(self, x: Floats) -> Floats:
        """Return the log density."""
        logs = np.log1p((self.y - x) ** 2 / self.df).sum(0)
        return np.asarray(-(self.precision * x * x + (self.df + 1) * logs) / 2)

    def slope(self, x: Floats) -> Floats:
        """Return the derivative of the negative log density."""
        r = self.y - x
        weight = r * r
        weight += self.df
        r /= weight
        return np.asarray(self.precision * x - (self.df + 1) * r.sum(0))

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the first two derivatives of the negative log density."""
        r = self.y - x
        weight = r * r
        weight += self.df
        np.divide(1.0, weight, out=weight)
        r *= weight
        return self.precision * x - (self.df + 1) * r.sum(0), self._curvature(weight)

    def least_curvature(self, low: Floats, high: Floats) -> Floats:
        """Return a lower bound of the second derivative between two points.

        One observation adds (df + 1) (df - r^2) / (df + r^2)^2, which falls until r^2 = 3 df and then rises.
        """
        near, far = self._distances(low, high)
        return self._curvature(self._weight(np.clip(np.sqrt(3 * self.df), near, far, out=near)))

    def most_curvature(self, low: Floats, high: Floats) -> Floats:
        """Return an upper bound of the second derivative between two points."""
        near, far = self._distances(low, high)
        a, b = self._weight(np.maximum(near, 0, out=near)), self._weight(far)
        return self._curvature(np.where(_bend(a, self.df) > _bend(b, self.df), a, b))

    def _distances(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the least distance of each observation from the interval, negative inside, and the greatest."""
        half = (high - low) / 2
        near = self.y - (low + half)
        np.abs(near, out=near)
        far = near + half
        near -= half
        return near, far

    def _weight(self, distance: Floats) -> Floats:
        """Return 1 / (df + r^2), in place."""
        distance *= distance
        distance += self.df
        return np.divide(1.0, distance, out=distance)

    def _curvature(self, weight: Floats) -> Floats:
        return np.asarray(self.precision + (self.df + 1) * _bend(weight, self.df).sum(0))


def _bend(weight: Floats, df: float) -> Floats:
    """Return (df - r^2) / (df + r^2)^2 from 1 / (df + r^2)."""
    bend = weight * (2 * df)
    bend -= 1
    bend *= weight
    return bend


def _modes(posteriors: _Posteriors) -> Floats:
    """Return the highest mode of every posterior."""
    size, df, precision = len(posteriors.y), posteriors.df, posteriors.precision
    low, high = _bracket(posteriors)
    # No posterior is narrower than this sd; a billionth of it is beyond what any test can see.
    tolerance = 1e-9 / np.sqrt(precision + size * (df + 1) / df)
    # An observation bends the log density upwards by at most (df + 1) / (8 df), at r^2 = 3 df.
    if size * (df + 1) <= 8 * df * precision:  # the least curvature anywhere is not negative: one mode
        return _stationary(posteriors, low, high, tolerance)
    column, low, high = _basins(posteriors, low, high, tolerance)
    candidates = posteriors.take(column)
    x = _stationary(candidates, low, high, tolerance)
    # Sorted by column, and from the highest within: the first of each column is its mode.
    order = np.lexsort((-candidates.height(x), column))
    return np.asarray(x[order[np.flatnonzero(np.diff(column[order], prepend=-1))]])


def _bracket(posteriors: _Posteriors) -> tuple[Floats, Floats]:
    """Return the ends of the hull of data and belief, where all stationary points are, and no pull reaches further."""
    y, df = posteriors.y, posteriors.df
    # r / (df + r^2) is at most 1 / (2 sqrt(df)); the last factor is for rounding.
    reach = len(y) * (df + 1) / (2 * np.sqrt(df) * posteriors.precision) * (1 + 1e-9)
    return np.maximum(np.minimum(y.min(0), 0), -reach), np.minimum(np.maximum(y.max(0), 0), reach)


def _basins(posteriors: _Posteriors, low: Floats, high: Floats, tolerance: float) -> tuple[Ints, Floats, Floats]:
    """Return (column, low, high) of intervals with one minimum each, which together hold all minima."""
    column, some = np.arange(low.size), posteriors
    slopes = some.slope(low), some.slope(high)
    found = []
    while column.size:
        least, width = some.least_curvature(low, high), high - low
        # By this much the slope can fall across the interval.
        fall = np.minimum(least, 0) * width
        alive = (slopes[0] + fall <= 0) & (slopes[1] - fall >= 0)  # else the slope has one sign throughout
        final = alive & ((least >= 0) | (width <= tolerance + 4 * np.spacing(np.abs(low))))
        found.append((column[final], low[final], high[final]))
        open_ = np.flatnonzero(alive & ~final)
        some = some.take(open_)
        bent = np.flatnonzero(some.most_curvature(low[open_], high[open_]) > 0)  # else it has no minimum inside
        some, open_ = some.take(bent), open_[bent]
        low, high, middle = low[open_], high[open_], (low[open_] + high[open_]) / 2
        at = some.slope(middle)
        slopes = np.append(slopes[0][open_], at), np.append(at, slopes[1][open_])
        low, high = np.append(low, middle), np.append(middle, high)
        column, some = np.tile(column[open_], 2), some.take(np.tile(np.arange(open_.size), 2))
    columns, lows, highs = zip(*found, strict=True)
    return np.concatenate(columns), np.concatenate(lows), np.concatenate(highs)


def _stationary(posteriors: _Posteriors, low: Floats, high: Floats, tolerance: float) -> Floats:
    """Return the zero of an increasing slope: Newton's method, with bisection where it leaves the bracket or stalls."""
    # A step that never goes down, before Newton's, which may.
    x = np.clip(_reweighted(posteriors, (low + high) / 2), low, high)
    done_x, column, before = x.copy(), np.arange(x.size), high - low
    while True:
        slope, curvature = posteriors.derivatives(x)
        low, high = np.where(slope <= 0, x, low), np.where(slope >= 0, x, high)
        move = np.divide(slope, curvature, out=np.full(x.shape, np.inf), where=curvature > 0)
        smallest = tolerance + 4 * np.spacing(np.abs(x))  # below it, rounding makes moves of any size
        # Far from the mode the curvature of a Student law changes its sign, and Newton's moves may repeat for ever.
        shrinking = np.abs(move) <= np.maximum(0.7 * before, smallest)
        trusted = shrinking & (x - move >= low) & (x - move <= high)
        following = np.where(trusted, x - move, (low + high) / 2)
        before, x = np.abs(following - x), following
        done_x[column] = x
        left = np.flatnonzero(before > smallest)
        if not left.size:
            return done_x
        if left.size < 0.7 * x.size:  # copying pays
            posteriors, column = posteriors.take(left), column[left]
            low, high, x, before = low[left], high[left], x[left], before[left]


def _reweighted(posteriors: _Posteriors, x: Floats) -> Floats:
    """Return x after one step of iteratively reweighted least squares, which never goes down."""
    weight = posteriors.y - x
    weight *= weight
    weight += posteriors.df
    np.divide(posteriors.df + 1, weight, out=weight)
    total = weight.sum(0) + posteriors.precision
    weight *= posteriors.y
    return np.asarray(weight.sum(0) / total)
