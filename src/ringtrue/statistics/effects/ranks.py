"""The law of ranks when z is Gaussian, and what its likelihood says of spread and bias.

Given u, a rank is Binomial(M, u), so every law of u has an exact law of ranks. Where the likelihood has an interior
maximum the intervals are those of its sandwich, elsewhere those of its profile.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..arguments import Floats, Ints, need_count
from .intervals import SpreadAndBias, student
from .moments import moments_of_counts, solve_moments

# Quadrature over z. The trapezoid rule converges geometrically for smooth integrands: both the narrowest law we
# fit (s = 0.03) and the narrowest binomial kernel we keep (M = 2000: sd 0.028 in z) are wider than the step.
STEP = 0.025
NODES = STEP * np.arange(-360, 361)
SMALLEST, LARGEST = 0.03, 300.0
MOST_CELLS = 2000


@dataclass(frozen=True)
class Efficiency:
    """Information kept by ranks, as a fraction of the information in exact u."""

    spread: float
    bias: float


def rank_probabilities(draws: int, *, spread: float = 1.0, bias: float = 0.0) -> Floats:
    """Compute P(R = r), r = 0, ..., M, for the rank among M draws when z ~ N(bias, spread^2).

    Parameters
    ----------
    draws : int
        The number of draws M, at most 2000.
    spread, bias : float
        The law of z; spread between 0.03 and 300.

    Examples
    --------
    >>> rank_probabilities(2, spread=5**0.5).round(4)
    array([0.4068, 0.1864, 0.4068])
    """
    need_count(1, draws=draws)
    if draws > MOST_CELLS:
        raise ValueError(f"draws must be at most {MOST_CELLS}, got {draws}; more are only used grouped")
    if not SMALLEST <= spread <= LARGEST:
        raise ValueError(f"spread must lie in [{SMALLEST}, {LARGEST}], got {spread}")
    return kernel_of(draws) @ weights_of(bias, math.log(spread))[:, 0]


@lru_cache
def rank_efficiency(draws: int) -> Efficiency:
    """Compute how much of the information about spread and bias ranks among M draws keep.

    This is the Fisher information of the rank likelihood at calibration, relative to exact u: divide a number of
    replicates planned for exact u by it. It is a local quantity and says nothing about large errors; M = 1 keeps
    nothing of the spread.

    Examples
    --------
    >>> e = rank_efficiency(9)
    >>> round(e.spread, 2), round(e.bias, 2)
    (0.43, 0.79)
    """
    need_count(1, draws=draws)
    p, by_bias, by_log_spread = (kernel_of(draws) @ weights_of(0.0, 0.0))[:, :3].T
    # The information of exact u is 1 for the mean and 2 for the log of the standard deviation.
    spread = float(np.sum(by_log_spread**2 / p)) / 2
    # By symmetry one draw says nothing of the spread; quadrature would leave rounding instead of 0.
    return Efficiency(spread if draws > 1 else 0.0, float(np.sum(by_bias**2 / p)))


def cells_of(draws: int) -> Ints:
    """First rank of each cell: every rank its own, or above 2000 draws as fine as the quadrature resolves.

    Grouped ranks still have an exact likelihood. Single ranks are kept at the ends, where the information about
    the spread is; between them the edges fall midway between nodes, where the trapezoid rule is a midpoint rule.
    """
    if draws <= MOST_CELLS:
        return np.arange(draws + 1)
    ends = np.arange(64)
    edges = np.round((draws + 1) * special.ndtr(NODES + STEP / 2)).astype(np.int64)
    middle = edges[(edges >= ends.size) & (edges <= draws + 1 - ends.size)]
    return np.unique(np.concatenate([ends, middle, draws - ends]))


@lru_cache(maxsize=8)
def kernel_of(draws: int) -> Floats:
    """P(rank in cell | z) at the quadrature nodes, shape (cells, nodes)."""
    if draws > MOST_CELLS:
        edges = cells_of(draws)[1:, None].astype(np.float64)
        # Through 1 - u = Phi(-z), since u itself rounds to 1 in the upper tail.
        below = special.betainc(draws - edges + 1, edges, special.ndtr(-NODES))
        kernel = np.diff(below, axis=0, prepend=0.0, append=1.0)
    else:
        r = np.arange(draws + 1.0)[:, None]
        choose = special.gammaln(draws + 1) - special.gammaln(r + 1) - special.gammaln(draws - r + 1)
        kernel = np.exp(choose + r * special.log_ndtr(NODES) + (draws - r) * special.log_ndtr(-NODES))
    kernel.flags.writeable = False
    return np.asarray(kernel)


def weights_of(delta: float, log_s: float) -> Floats:
    """Quadrature weights of N(delta, s^2) and their derivatives, shape (nodes, 6).

    Columns: the weight; its derivatives by delta and by log s; by delta twice, delta and log s, log s twice.
    """
    s = math.exp(log_s)
    x = (NODES - delta) / s
    x2 = x * x
    q = np.exp(-0.5 * x2) * (STEP / (s * math.sqrt(2 * math.pi)))
    # The ends of a trapezoid rule weigh half; the tails beyond them are added below.
    q[[0, -1]] /= 2
    powers = (np.ones_like(x), x / s, x2 - 1, (x2 - 1) / s**2, x * (x2 - 3) / s, x2 * (x2 - 4) + 1)
    weights: Floats = q[:, None] * np.column_stack(powers)
    # Beyond the last node u is 0 or 1 to any precision: the whole tail sits there.
    for row, sign in ((0, -1.0), (-1, 1.0)):
        t = sign * x[row]
        phi = math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
        by = (phi / s, t * phi, t * phi / s**2, (t * t - 1) * phi / s, t * (t * t - 1) * phi)
        flips = np.array([1.0, sign, 1.0, 1.0, sign, 1.0])
        weights[row] += flips * np.array([special.ndtr(-t), *by])
    return weights


@dataclass(frozen=True, eq=False)
class Point:
    """Log likelihood of the counts at one (delta, log s), with what Newton's method and the sandwich need."""

    value: float
    mass: Floats
    scores: Floats
    gradient: Floats
    hessian: Floats


@dataclass(frozen=True, eq=False)
class RankFit:
    """Where the likelihood of (delta, log s) is largest, the cells in which ranks were seen, and how often."""

    at: Floats
    point: Point
    seen: Ints
    counts: Floats
    kernel: Floats

    @property
    def log_spread(self) -> float:
        """Log s, with the same unbiasing of the variance as on the continuum, which is the limit of many draws."""
        n = float(self.counts.sum())
        return float(self.at[1]) + 0.5 * math.log(n / (n - 1))


def from_counts(counts: Ints, confidences: Sequence[float]) -> list[SpreadAndBias]:
    """Return spread and bias from counts of ranks, at every confidence."""
    fit = fit_ranks(counts)
    return [
        _from_profile(counts, confidence) if fit is None else _from_sandwich(fit, confidence)
        for confidence in confidences
    ]


def fit_ranks(counts: Ints) -> RankFit | None:
    """Return the interior maximum of the rank likelihood, or None if there is none to be found."""
    seen, cells, kernel = _seen(counts)
    if cells.size <= 2:
        return None
    first = _mean(counts)
    spread, _ = solve_moments(np.array([first]), np.array([moments_of_counts(counts)[1]]))
    # Moments may say 0 or inf, and Newton's method must start where the quadrature resolves the law.
    s = min(max(float(spread[0]), 0.1), 20.0)
    at = np.array([float(special.ndtri(first)) * math.hypot(1, s), math.log(s)])
    found = _maximise(kernel, cells, at)
    return None if found is None else RankFit(*found, seen, cells, kernel)


def _seen(counts: Ints) -> tuple[Ints, Floats, Floats]:
    """Return the cells in which ranks were seen, how often, and their kernel."""
    draws = counts.size - 1
    cells = np.add.reduceat(counts, cells_of(draws)).astype(np.float64)
    seen = np.flatnonzero(cells)
    return seen, cells[seen], kernel_of(draws)[seen]


def _mean(counts: Ints) -> float:
    """Return the mean of u, half a rank away from the ends so that its normal score is finite."""
    edge = 0.5 / (float(counts.sum()) * (counts.size - 1))
    return min(max(moments_of_counts(counts)[0], edge), 1 - edge)


def evaluate(kernel: Floats, counts: Floats, at: Floats) -> Point:
    """Return the log likelihood at one point, with its derivatives."""
    p = kernel @ weights_of(at[0], at[1])
    mass = np.maximum(p[:, 0], 1e-300)
    scores = p[:, 1:3] / mass[:, None]
    second = counts @ (p[:, 3:] / mass[:, None])
    outer = (scores * counts[:, None]).T @ scores
    hessian = np.array([[second[0], second[1]], [second[1], second[2]]]) - outer
    return Point(float(counts @ np.log(mass)), mass, scores, counts @ scores, hessian)


def _maximise(kernel: Floats, counts: Floats, at: Floats) -> tuple[Floats, Point] | None:
    point = evaluate(kernel, counts, at)
    for _ in range(60):
        step = _newton_step(point, counts, math.exp(at[1]))
        gain = float(step @ point.gradient)
        for shrink in (1.0, 0.3, 0.1, 0.01, 1e-4):
            there = at + shrink * step
            there[1] = min(max(there[1], math.log(SMALLEST)), math.log(LARGEST))
            candidate = evaluate(kernel, counts, there)
            # Near the maximum a step gains less than the likelihood's rounding; asking for more would only shorten it.
            if candidate.value >= point.value - 1e-9 * abs(point.value):
                break
        at, point = there, candidate
        # gain is twice the log likelihood still to win: 1e-10 is an error of 1e-5 standard errors.
        if abs(gain) < 1e-10:
            break
    else:
        return None
    s = math.exp(at[1])
    # A maximum at the edge is the grid's and not the data's; at 6 sds E u is 0 or 1 to 1e-9.
    interior = 1.01 * SMALLEST < s < 0.99 * LARGEST and abs(at[0]) < 6 * math.hypot(1, s)
    concave = point.hessian[0, 0] < 0 and np.linalg.det(point.hessian) > 0
    return (at, point) if interior and concave else None


def _newton_step(point: Point, counts: Floats, s: float) -> Floats:
    """Newton's step, or a scoring step where the likelihood is not concave; at most one unit on either scale."""
    curvature = -point.hessian
    if curvature[0, 0] <= 0 or np.linalg.det(curvature) <= 0:
        curvature = (point.scores * counts[:, None]).T @ point.scores
        # Outer products of a single score are singular.
        curvature[[0, 1], [0, 1]] *= 1.01
        curvature[[0, 1], [0, 1]] += 1e-12
    step = np.linalg.solve(curvature, point.gradient)
    longest = max(abs(step[0]) / max(1.0, s), abs(step[1]))
    return np.asarray(step / max(1.0, longest))


def _from_sandwich(fit: RankFit, confidence: float) -> SpreadAndBias:
    n = float(fit.counts.sum())
    inverse = np.linalg.inv(-fit.point.hessian)
    squares = (inverse @ fit.point.scores.T) ** 2
    sandwich, fourth = squares @ fit.counts, squares**2 @ fit.counts
    # The model's own variance is steadier in small samples, the sandwich right for any law: take the larger.
    variance = np.maximum(sandwich * n / (n - 1), np.diag(inverse))
    df = 2 * n / np.maximum(n * fourth / sandwich**2 - 1, 2 * n / (n - 1))
    by_bias, by_spread = (
        student(confidence, max(float(f), 2.0)) * math.sqrt(v) for f, v in zip(df, variance, strict=True)
    )
    delta, log_s = float(fit.at[0]), fit.log_spread
    ends = (math.exp(log_s - by_spread), math.exp(min(log_s + by_spread, 700.0)))
    return SpreadAndBias.from_ends((math.exp(log_s), *ends), (delta, delta - by_bias, delta + by_bias))


def _from_profile(counts: Ints, confidence: float) -> SpreadAndBias:
    """Project the likelihood region onto both parameters; where it leaves the grid the interval is unbounded.

    The grid is in log s and delta / sqrt(1 + s^2): the latter is the normal score of E u, known well when
    nothing else is, and so the grid is densest around its estimate.
    """
    value, log_s, delta = _profile(tuple(counts.tolist()))
    # Half the squared quantile is the chi-squared threshold of one parameter, with Student's quantile for few ranks.
    inside = _dilated(value >= value.max() - 0.5 * student(confidence, float(counts.sum()) - 1) ** 2)
    best = value >= value.max() - 1e-6
    return SpreadAndBias.from_ends(_projected_spread(inside, best, log_s), _projected_bias(inside, best, delta))


@lru_cache(maxsize=16)  # a judgement asks for the same ranks at several confidences
def _profile(counts: tuple[int, ...]) -> tuple[Floats, Floats, Floats]:
    """Return the log likelihood of counts on a grid, with the grid's log s and, row by row, its delta."""
    found = np.array(counts, np.int64)
    _, cells, kernel = _seen(found)
    log_s = np.linspace(math.log(SMALLEST), math.log(LARGEST), 70)
    away = np.geomspace(3e-3, 8.0, 30)
    score = float(special.ndtri(_mean(found))) + np.concatenate([-away[::-1], [0.0], away])
    delta = score * np.hypot(1, np.exp(log_s))[:, None]
    value = np.array([_log_likelihoods(kernel, cells, row, at) for row, at in zip(delta, log_s, strict=True)])
    return value, log_s, delta


def _log_likelihoods(kernel: Floats, counts: Floats, delta: Floats, log_s: float) -> Floats:
    # Exact masses of the cells around the nodes: coarser than `weights_of` but a law wherever delta lies.
    below = special.ndtr((NODES[:-1, None] + STEP / 2 - delta) * math.exp(-log_s))
    weights = np.diff(below, axis=0, prepend=0.0, append=1.0)
    log_p: Floats = np.log(np.maximum(kernel @ weights, 1e-300))
    return counts @ log_p


def _dilated(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The region and its neighbours on the grid: its true edge lies between the two."""
    padded = np.pad(inside, 1)
    across = padded[1:-1] | padded[:-2] | padded[2:]
    return across[:, 1:-1] | across[:, :-2] | across[:, 2:]


def _projected_spread(inside: NDArray[np.bool_], best: NDArray[np.bool_], log_s: Floats) -> tuple[float, float, float]:
    s = np.exp(log_s)
    # A region that reaches the edge of the grid is taken as unbounded there.
    s[[0, -1]] = 0.0, math.inf
    reached, likeliest = s[inside.any(axis=1)], s[best.any(axis=1)]
    estimate = _common_value(likeliest)
    return estimate, float(reached[0]), float(reached[-1])


def _projected_bias(inside: NDArray[np.bool_], best: NDArray[np.bool_], delta: Floats) -> tuple[float, float, float]:
    # At infinite spread a finite E u away from a half is an infinite bias; so is E u = 0 or 1 at any spread.
    limit = delta.copy()
    limit[:, 0], limit[:, -1] = -math.inf, math.inf
    limit[-1] = np.where(delta[-1] == 0, 0.0, np.copysign(math.inf, delta[-1]))
    reached = limit[inside]
    return _common_value(limit[best]), float(reached.min()), float(reached.max())


def _common_value(likeliest: Floats) -> float:
    """The maximiser; its limit where the likelihood rises for ever; nan where it is flat both ways."""
    unbounded = likeliest[(likeliest == 0) | np.isinf(likeliest)]
    if unbounded.size == 0:
        return float(np.median(likeliest))
    return float(unbounded[0]) if np.all(unbounded == unbounded[0]) else math.nan
