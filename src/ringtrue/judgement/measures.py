"""Every measure of every test function, and of all together.

A judgement reports the few measures that its verdict rests on, with intervals that hold jointly. Here is everything
that can be said of size and use, each number with an interval of its own. It reads Replicates and reaches no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from ..errors import InvalidStudy
from ..functions.contract import ALL, Mahalanobis
from ..replicates.record import Replicates
from ..replicates.streams import Streams
from ..statistics import effects
from ..statistics.arguments import need_fraction
from ..statistics.effects import Influences, Interval, influences, usefulness
from ..statistics.effects.deviations import largest, norm_interval
from ..statistics.effects.intervals import freedom, student
from .result import Result, as_row, decimals, number, table

Floats = NDArray[np.float64]

#: Draws of the Gaussian multiplier bootstrap.
_DRAWS = 1000
#: Columns and rows of the joint covariance of empirical laws; more of either cost much and add little.
_COLUMNS, _ROWS = 512, 20_000
#: Groups of replicates that a jackknife leaves out in turn.
_GROUPS = 20
#: Points of mu0 at which the data-averaged output is compared, and numbers computed for it.
_POINTS, _NUMBERS = 100, 5_000_000


@dataclass(frozen=True, eq=False)
class Measures:
    """Rows of measures; prints as a table.

    Attributes
    ----------
    rows
        One per test function and measure; ``f`` is "(all)" for those of all test functions together. ``within`` is "-":
        no tolerance is asked about.
    confidence
        That of every interval on its own; those named "largest" hold over all test functions.
    n, lost
        Replicates, and how many of them were lost.
    """

    rows: tuple[Interval, ...]
    confidence: float
    n: int
    lost: int

    def row(self, name: str, f: str = ALL) -> Interval:
        """Return the row of a measure of a test function.

        Raises
        ------
        InvalidStudy
            If there is none.
        """
        for row in self.rows:
            if (row.f, row.name) == (f, name):
                return row
        known = sorted({(row.f, row.name) for row in self.rows})
        raise InvalidStudy(f"{name!r} of {f!r} was not measured; measured were {known}.")

    def to_dict(self) -> dict[str, Any]:
        """Return the measures as plain data for JSON; numbers that are not finite become None."""
        rows = [
            {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in as_row(row).items()}
            for row in self.rows
        ]
        return {"confidence": self.confidence, "n": self.n, "lost": self.lost, "measures": rows}

    def __str__(self) -> str:
        cells = [("test function", "measure", "estimate", f"{100 * self.confidence:g} % interval", "ideal")]
        for row in self.rows:
            digits = decimals(row)
            interval = f"{number(row.low, digits)} to {number(row.high, digits)}"
            ideal = "-" if math.isnan(row.ideal) else f"{row.ideal:.3g}"
            cells.append((row.f, row.name, number(row.estimate, digits), interval, ideal))
        return table(cells, right={2, 4}) + f"\nn = {self.n}" + (f", {self.lost} of them lost" if self.lost else "")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("Measures is not iterable; use measures.rows, or measures.row(name, f).")


def measure(source: Result | Replicates, *, confidence: float = 0.95) -> Measures:
    """Measure how far from calibrated, and whether of any use, with an interval for every number.

    Parameters
    ----------
    source
        A Result, or the Replicates of a run.
    confidence
        That of each interval alone.

    Returns
    -------
    Measures
        For every test function of theta alone: spread, bias, coverage; KS, W1 and CvM distance, KL divergence and
        12 Var u (see ``ringtrue.statistics.effects``); contraction, skill, interval skill and correlation (see
        the same; of the replicates that were not lost); the weak KS distance. For all together: the
        largest |log spread|, |bias| and KS distance; the energy skill if theta has several entries; ANEES/d and NCI if
        :class:`~ringtrue.Mahalanobis` was asked about.

    Notes
    -----
    *Largest.* The intervals are those that the test functions have jointly: single ones, at the confidence that a
    Gaussian multiplier bootstrap of the largest studentised error gives, with the influence of each replicate on all.
    Measured for a family of three at n = 200 and 1000 (200 repetitions, 1000 where those left 0.93 to 0.97; z Gaussian,
    Gamma(4) and t_5; exact and M = 9, 19, 99): where the truth is 0, |bias| 0.935 to 0.97, |log spread| 0.93 to 0.965
    but 0.92 for t_5 on exact z at n = 200, the KS distance 0.94 to 0.975; otherwise 0.96 to 1, 0.96 to 1 and 0.98 to 1:
    the largest of several joint intervals cannot but be conservative.

    *Weak.* The law of mu0 is known at one draw of every output. Where the outputs are normal, their average there is
    known without drawing, and the distance between the two has the noise of outputs only; otherwise one draw of each
    output stands for it, with the interval of Dvoretzky, Kiefer, Wolfowitz and Massart.
    Measured coverage of the former, laws as above for the noise of y: 0.93 to 0.98; of the latter, 0.945 to 1.

    *NCI*, in dB, is the mean of 10 log10 of the squared Mahalanobis distance in the metric of the output's covariance
    over that in the metric of the errors' own, which is estimated: 10 dB is a variance ten times too small. It needs
    every coordinate among the test functions.
    Measured coverage (200 or 1000 repetitions as above, d = 1, 2, 5, laws as above for the errors): ANEES/d 0.93 to
    0.965; NCI 0.93 to 0.965, but 0.91 to 0.93 for t_5 and Gamma(4) with d = 5 at n = 200.

    Examples
    --------
    >>> from ringtrue import Normal, Study, run
    >>> half = run(Study(Normal(0, 1), lambda theta, rng: theta + rng.normal(), lambda mu0, y: Normal(y / 2, 0.5), 500))
    >>> row = measure(half).row("spread", "theta")
    >>> row.low < 2**0.5 < row.high
    True
    """
    replicates = source.replicates if isinstance(source, Result) else source
    if not isinstance(replicates, Replicates):
        raise TypeError(f"measure needs a Result or Replicates, but {type(source).__name__} arrived.")
    need_fraction(confidence=confidence)
    if len(replicates.failures) == replicates.n:
        raise InvalidStudy(f"at least one replicate is needed, but all {replicates.n} were lost.")
    strong = [k for k, column in enumerate(replicates.columns) if column.level == "strong"]
    rows = [
        replace(m, f=replicates.columns[k].name)
        for k in strong
        for m in (
            *_size(replicates, k, confidence),
            *_of_use(replicates, k, confidence),
            *weak_distance(replicates, k, confidence=confidence),
        )
    ]
    together = [
        *over_family(replicates, confidence=confidence),
        *_of_gaussians(replicates, confidence),
        *_of_all(replicates, confidence),
    ]
    rows += [replace(m, f=ALL) for m in together]
    return Measures(tuple(rows), confidence, replicates.n, len(replicates.failures))


def _values(replicates: Replicates, k: int) -> tuple[Any, Any, int | None]:
    """Return u or ranks, z or ranks, and among how many draws."""
    draws = replicates.lattice(k)
    if draws:
        ranks = replicates.rank[replicates.rows, k]
        return ranks, ranks, draws
    return replicates.ordered(k), replicates.z[replicates.rows, k], None


def _size(replicates: Replicates, k: int, confidence: float) -> list[Interval]:
    values, scores, draws = _values(replicates, k)
    lost = len(replicates.failures)
    both = effects.spread_and_bias(scores, draws=draws, confidence=confidence, lost=lost)
    return [
        both.spread,
        both.bias,
        effects.coverage(values, draws=draws, confidence=confidence, lost=lost),
        replace(effects.distance(values, draws=draws, confidence=confidence, lost=lost), name="KS distance"),
        effects.wasserstein(values, draws=draws, confidence=confidence, lost=lost),
        effects.cramer_von_mises(values, draws=draws, confidence=confidence, lost=lost),
        effects.divergence(scores, draws=draws, confidence=confidence, lost=lost),
        effects.variance_ratio(values, draws=draws, confidence=confidence, lost=lost),
    ]


def _of_use(replicates: Replicates, k: int, confidence: float) -> list[Interval]:
    """Return contraction, skill, interval skill and correlation of column k, where they are known."""
    kept = replicates.rows
    truth, mean, sd, crps, interval = (
        getattr(replicates, name)[kept, k] for name in ("truth", "mean", "sd", "crps", "interval")
    )
    if not np.isfinite(truth).all():
        return []
    found = [usefulness.correlation(truth, mean, confidence=confidence)]
    if replicates.of_belief:
        found = [
            usefulness.contraction(truth, sd, confidence=confidence),
            usefulness.skill(truth, crps, confidence=confidence),
            usefulness.interval_skill(truth, interval, confidence=confidence),
            *found,
        ]
    return [m for m in found if not math.isnan(m.estimate)]


def _of_all(replicates: Replicates, confidence: float) -> list[Interval]:
    """Return the skill for all entries of theta together, where it is known."""
    kept = replicates.rows
    found = usefulness.energy_skill(replicates.energy[kept], replicates.belief_energy[kept], confidence=confidence)
    return [] if math.isnan(found.estimate) else [found]


# The weak level.


def weak_distance(replicates: Replicates, k: int, *, confidence: float) -> list[Interval]:
    """Return the distance between the data-averaged output and mu0 for column k; nothing if mu0's law is not known.

    Examples
    --------
    >>> from ringtrue import Normal, Study, run
    >>> study = Study(Normal(0, 1), lambda theta, rng: theta + rng.normal(), lambda mu0, y: Normal(y / 2, 0.7), 500)
    >>> weak_distance(run(study), 0, confidence=0.95)[0].low
    0.0
    """
    kept, lost = replicates.rows, len(replicates.failures)
    position = replicates.weak_u[kept, k]
    if position.size < 2 or np.isnan(position).any():
        return []
    if not _all_normal(replicates, k):
        one = effects.distance(replicates.weak_ordered(k), confidence=confidence, lost=lost)
        return [replace(one, name="weak KS distance")]
    points = np.argsort(position)[_spaced(position.size, min(_POINTS, max(_NUMBERS // position.size, 25)))]
    mean, covariance = _averaged(
        replicates.mean[kept, k], replicates.sd[kept, k], replicates.weak_value[kept, k][points]
    )
    gap = mean - position[points]
    found = norm_interval(gap, covariance, largest, confidence=confidence, observed=float(largest(gap)))
    slack = lost / replicates.n
    low, high = max(0.0, found.low - slack), min(1.0, found.high + slack)
    return [Interval("weak KS distance", found.estimate, low, high, 0.0)]


def _all_normal(replicates: Replicates, k: int) -> bool:
    """Whether z is the standardised truth for every replicate, as for normal laws only."""
    kept = replicates.rows
    if replicates.draws[kept, k].any():
        return False
    z = replicates.z[kept, k]
    with np.errstate(invalid="ignore", divide="ignore"):
        standardised = (replicates.truth[kept, k] - replicates.mean[kept, k]) / replicates.sd[kept, k]
        return bool(np.all(np.abs(z - standardised) <= 1e-9 * np.maximum(np.abs(z), 1)))


def _spaced(n: int, points: int) -> NDArray[np.int64]:
    """Return indices spread evenly over a sorted sample."""
    return np.unique(((np.arange(min(points, n)) + 0.5) * n / min(points, n)).astype(np.int64))


def _averaged(mean: Floats, sd: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return the average of normal laws at some points, and the covariance of its noise; a few laws at a time."""
    total, outer = np.zeros(points.size), np.zeros((points.size, points.size))
    # Differences from one of the laws, so that laws which are all the same have no noise.
    first = special.ndtr((points - mean[0]) / sd[0])
    for start in range(0, mean.size, 4096):
        part = slice(start, start + 4096)
        below = special.ndtr((points - mean[part, None]) / sd[part, None]) - first
        total += below.sum(axis=0)
        outer += below.T @ below
    average = total / mean.size
    return first + average, (outer / mean.size - np.outer(average, average)) / (mean.size - 1)


# The largest over a family.


def over_family(replicates: Replicates, *, confidence: float) -> list[Interval]:
    """Return the largest |log spread|, |bias| and KS distance over all strong test functions, if there are several.

    Examples
    --------
    >>> from ringtrue import Normal, Study, run
    >>> study = Study(Normal(0, 1), lambda theta, rng: theta + rng.normal(), lambda mu0, y: Normal(y / 2, 0.7), 500)
    >>> [m.name for m in over_family(run(study), confidence=0.95)]
    ['largest |log spread|', 'largest |bias|', 'largest KS distance']
    """
    strong = [k for k, column in enumerate(replicates.columns) if column.level == "strong"]
    if len(strong) < 2:
        return []
    parts = [_values(replicates, k)[1:] for k in strong]
    alone = [None if replicates.failures else influences(scores, draws=draws) for scores, draws in parts]
    known = [one for one in alone if one is not None]
    rng = Streams(replicates.seed).generator("judgement", (1 << 32) + 3)
    each = [1 - (1 - confidence) / len(strong)] * 2  # shares of the error budget, which lost replicates need
    if len(known) == len(strong):
        each = [_confidence_of_each(known, column, confidence, rng) for column in (1, 0)]
    return [*_largest_of_intervals(replicates, strong, *each), _largest_distance(replicates, strong, confidence, rng)]


def _confidence_of_each(known: Sequence[Influences], column: int, confidence: float, rng: Generator) -> float:
    """Return the confidence of single intervals that hold jointly, from what every replicate adds to each estimate."""
    values = np.column_stack([one.values[:, column] for one in known])
    size = np.sqrt(np.square(values).mean(axis=0))
    values = values / np.where(size > 0, size, 1.0)
    reach = _joint_reach(values.T @ values / len(values), confidence, rng)
    return max(math.erf(reach / math.sqrt(2)), confidence)


def _joint_reach(covariance: Floats, confidence: float, rng: Generator) -> float:
    """Return the quantile of the largest absolute entry of a Gaussian vector.

    Given the data, sums of influences with Gaussian multipliers are exactly such a vector. Where the draws do
    not resolve the tail it is Bonferroni's bound, which is nearly sharp there.
    """
    if (1 - confidence) * _DRAWS < 10:
        largest_error = math.sqrt(float(np.diag(covariance).max()))
        return largest_error * student(1 - (1 - confidence) / len(covariance), math.inf)
    values, vectors = np.linalg.eigh(covariance)
    drawn = (rng.standard_normal((_DRAWS, len(values))) * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return float(np.quantile(np.abs(drawn).max(axis=1), confidence))


def _largest_of_intervals(
    replicates: Replicates, strong: Sequence[int], of_spread: float, of_bias: float
) -> list[Interval]:
    """Return the largest |log spread| and |bias| from single intervals of these confidences."""
    parts, lost = [_values(replicates, k)[1:] for k in strong], len(replicates.failures)

    def fits(confidence: float) -> list[effects.SpreadAndBias]:
        return [
            effects.spread_and_bias(scores, draws=draws, confidence=confidence, lost=lost) for scores, draws in parts
        ]

    with np.errstate(divide="ignore"):
        spread = np.log([(m.spread.estimate, m.spread.low, m.spread.high) for m in fits(of_spread)]).T
    bias = np.array([(m.bias.estimate, m.bias.low, m.bias.high) for m in fits(of_bias)]).T
    return [_largest_absolute("largest |log spread|", *spread), _largest_absolute("largest |bias|", *bias)]


def _largest_absolute(name: str, centre: Floats, low: Floats, high: Floats) -> Interval:
    least = np.maximum(0.0, np.maximum(low, -high))
    most = np.maximum(np.abs(low), np.abs(high))
    return Interval(name, float(np.abs(centre).max()), float(least.max()), float(most.max()), 0.0)


def _largest_distance(replicates: Replicates, strong: Sequence[int], confidence: float, rng: Generator) -> Interval:
    """Return the largest KS distance, from the joint noise of all empirical laws at some points."""
    estimates = []
    for k in strong:
        values, _, draws = _values(replicates, k)
        estimates.append(effects.distance(values, draws=draws, confidence=confidence).estimate)
    lost, n = len(replicates.failures), replicates.n - len(replicates.failures)
    share = lost / replicates.n
    reach = math.sqrt(math.log(2 * len(strong) / (1 - confidence)) / (2 * n))
    if len(strong) <= _COLUMNS // 8 and n > 1:
        reach = min(reach, _joint_distance(replicates, strong, confidence, rng) / math.sqrt(n))
    top = max(estimates)
    return Interval("largest KS distance", top, max(0.0, top - reach - share), min(1.0, top + reach + share), 0.0)


def _joint_distance(replicates: Replicates, strong: Sequence[int], confidence: float, rng: Generator) -> float:
    """Return root n times the quantile of the largest error of all empirical laws."""
    points = min(_COLUMNS // len(strong), 32)
    rows = np.arange(replicates.n)[replicates.rows]
    rows = rows[_spaced(rows.size, _ROWS)]
    between = 0.0
    columns = []
    for k in strong:
        draws = replicates.lattice(k)
        step = 1 if draws is None else max(1, (draws + 1) // points)
        levels = np.arange(1, points) / points if draws is None else np.arange(step, draws + 1, step) / (draws + 1)
        if draws is None or step > 1:  # a path is larger between the points by this much on average
            between = max(between, 0.5826 / math.sqrt(levels.size + 1))
        columns.append(replicates.u[rows, k, None] <= levels)
    below = np.concatenate(columns, axis=1).astype(np.float32)
    below -= below.mean(axis=0)
    return _joint_reach((below.T @ below).astype(np.float64) / len(below), confidence, rng) + between


# Gaussian outputs.


def _of_gaussians(replicates: Replicates, confidence: float) -> list[Interval]:
    """Return ANEES/d and NCI, if the Mahalanobis distance was asked about and the dimension can be told."""
    name = Mahalanobis().name
    asked = [k for k, column in enumerate(replicates.columns) if (column.name, column.level) == (name, "auto")]
    if not asked:
        return []
    kept = replicates.rows
    squares, mean = replicates.truth[kept, asked[0]], replicates.mean[kept, asked[0]]
    n, draws = squares.size, max(int(replicates.draws[kept, asked[0]].min()), 1)
    # Under the output the distance has mean d; its draws tell which whole number that is.
    d = max(round(float(mean.mean())), 1)
    if n < 4 or math.sqrt(2 * d / (n * min(draws, 100))) > 0.15:
        return []
    found = [_anees(squares / d, confidence)]
    coordinates = [k for k, column in enumerate(replicates.columns) if column.coordinate]
    errors = replicates.truth[kept][:, coordinates] - replicates.mean[kept][:, coordinates]
    if len(coordinates) == d and n > d + 2 and np.isfinite(errors).all() and (errors != 0).any(axis=1).all():
        with suppress(np.linalg.LinAlgError):  # errors that do not fill d dimensions have no metric of their own
            found.append(_nci(squares, errors, confidence))
    return found


def _anees(scaled: Floats, confidence: float) -> Interval:
    """Return the mean, with Student's interval on the logarithm."""
    centre = float(scaled.mean())
    if centre == 0:  # outputs that know the truth; nothing tells how nearly
        return Interval("ANEES/d", 0.0, 0.0, math.inf, 1.0)
    error = float(scaled.std(ddof=1)) / math.sqrt(scaled.size) / centre
    half = student(confidence, freedom(scaled - centre)) * error
    return Interval("ANEES/d", centre, centre * math.exp(-half), centre * math.exp(min(half, 700.0)), 1.0)


def _nci(squares: Floats, errors: Floats, confidence: float) -> Interval:
    """Return the mean log ratio of the two metrics; the estimated one has an influence, and a bias, of its own."""
    n = len(errors)
    logs = np.log(np.maximum(squares, 1e-300))
    white = np.linalg.solve(np.linalg.cholesky(errors.T @ errors / n), errors.T).T
    own = np.square(white).sum(axis=1)
    slope = (white / own[:, None]).T @ white / n
    ratio = logs - np.log(own)
    influence = ratio - ratio.mean() + np.einsum("ij,jk,ik->i", white, slope, white) - np.trace(slope)
    centre, decibel = _without_bias(logs, white), 10 / math.log(10)
    half = student(confidence, freedom(influence)) * float(influence.std(ddof=1)) / math.sqrt(n)
    return Interval("NCI (dB)", decibel * centre, decibel * (centre - half), decibel * (centre + half), 0.0)


def _without_bias(logs: Floats, white: Floats) -> float:
    """Return the mean log ratio, by a jackknife that leaves out groups."""

    def ratio(rows: Any) -> float:
        kept = white[rows]
        root = np.linalg.cholesky(kept.T @ kept / len(kept))
        own = np.square(np.linalg.solve(root, kept.T)).sum(axis=0)
        return float(np.mean(logs[rows] - np.log(own)))

    n, d = white.shape
    groups = min(int(n), _GROUPS)
    if n < 4 * d:  # where leaving out a group may leave no covariance
        return ratio(slice(None))
    group = np.arange(n) * groups // n
    left = math.fsum(ratio(group != g) for g in range(groups)) / groups
    return groups * ratio(slice(None)) - (groups - 1) * left
