"""Do averages agree with what is known of them? A test of means with control variates.

Of every replicate there are a few bounded features, averaged over the draws of an output, and the same features at a
point whose law is known and which goes with the output. Under the null both have mean zero, so that a multiple of the
second may be subtracted from the first: it takes noise away and leaves the mean. This module sees arrays of numbers and
must not know beliefs or procedures.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import gammaincc

from .arguments import Floats, Ints, need_count

__all__ = ["FEWEST", "PER_FEATURE", "ControlledTest", "controlled_test"]

#: Fewer replicates than this, or than this many per feature, do not tell how skew the differences are: the size at 5 %
#: was up to 0.11 with 20 replicates and 0.076 with 50 of 20 features.
FEWEST, PER_FEATURE = 50, 5
# From so many replicates on, and so many per feature, the limit law is used.
_MANY, _MANY_PER_FEATURE = 1000, 50
# With more features than this their covariance is not resampled, only their variances: its cost grows with the square.
_FULL = 65
# Sums of squares below this are rounding, and so are statistics: features have variance one, or were averaged.
_CONSTANT, _TIE = 1e-9, 1e-9
# Numbers held at once while resampling, and numbers of rows that are summed at once: these stay in the cache.
_CHUNK, _CACHED = 4_000_000, 1 << 15


@dataclass(frozen=True, eq=False)
class ControlledTest:
    """The outcome of a test that several means are zero.

    ``statistic`` is a squared length in units of its noise; ``pvalue`` the probability of one at least as large if all
    means are zero. Feature by feature there are ``means`` (of the averages, controlled), their standard ``errors``, and
    ``scores``, which are standard normal for a mean of zero, about.
    """

    method: str
    statistic: float
    pvalue: float
    means: Floats
    errors: Floats
    scores: Floats


def controlled_test(
    averages: ArrayLike, controls: ArrayLike, *, rng: Generator, resamples: int = 999
) -> ControlledTest:
    """Test that all features have mean zero in the averages, given that they have in the controls.

    Null hypothesis: rows are independent, and both averages and controls have mean zero, column by column. The test
    sees means of these features and nothing else. Its level is approximate; ``benchmarks/weak.py`` measures it.

    Parameters
    ----------
    averages : array_like, shape (n, p)
        What is tested; features of variance about one, or less where they are averaged.
    controls : array_like, shape (n, p)
        The same features where their means are known to be zero, correlated with the averages or not.
    rng : Generator
        Draws the resamples.
    resamples : int
        The smallest p-value of fewer than a thousand rows, or fifty per feature, is ``1 / (resamples + 1)``.

    Notes
    -----
    D = A - b C, with the slope b of each feature of A on that of C. With S the sum of rows of D, the statistic is
    S' (I + sum D D')^-1 S. The matrix is not centred, which bounds the statistic; the identity, one more row of the
    features' own variance, keeps features that do not vary from deciding. Its law is chi-squared with p degrees of
    freedom in the limit. Differences of second order are skew, so that the limit is far away: where it is not reached,
    rows of A and C minus their means are resampled, slopes are found anew, and the p-value is the share of resamples
    whose statistic is as large. With more than 65 features the matrix is replaced by its diagonal there.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> control = rng.normal(size=(200, 1))
    >>> noise = 0.1 * rng.normal(size=(200, 1))
    >>> controlled_test(control + noise, control, rng=rng).pvalue > 0.01
    True
    >>> controlled_test(control + noise + 0.1, control, rng=rng).pvalue
    0.001
    """
    a, c = _as_rows(averages, controls)
    need_count(1, resamples=resamples)
    n, p = a.shape
    limit = n >= max(_MANY, _MANY_PER_FEATURE * p)
    total, squares, sums = _sums(a, c, full=limit or p <= _FULL)
    mean, error = total / n, np.sqrt(1 + squares) / n
    statistic = float(_lengths(total[None], sums[None])[0])
    if limit:
        pvalue = float(gammaincc(p / 2, statistic / 2))
    else:
        drawn = np.concatenate(list(_resampled(a.astype(float), c.astype(float), rng, resamples)))
        pvalue = float((1 + np.count_nonzero(drawn >= statistic * (1 - 1e-9) - _TIE)) / (1 + resamples))
    return ControlledTest(
        "controlled means", statistic, max(pvalue, float(np.finfo(float).tiny)), mean, error, mean / error
    )


def _slopes(away: Floats, control: Floats) -> Floats:
    """Return the slope of every feature on its control, given both minus their means."""
    return _ratios((away * control).sum(axis=0), np.square(control).sum(axis=0))


def _ratios(products: Floats, squares: Floats) -> Floats:
    """Return products / squares; 0 where a control does not vary, and so cannot help."""
    varies = squares > _CONSTANT
    return np.where(varies, products / np.where(varies, squares, 1.0), 0.0)


def _sums(a: Floats, c: Floats, *, full: bool) -> tuple[Floats, Floats, Floats]:
    """Return the sums of the rows of D = A - b C, of their squares, and of their outer products, or squares again."""
    n, p = a.shape
    # Minus the first row: of a feature that does not vary nothing is left, and no rounding that looks like a slope.
    first = np.concatenate([a[0], c[0]]).astype(float)
    total, products = _moments(a, c, first, full=full)
    own, cross, squares = _diagonals(products) if full else products
    slopes = _ratios(cross - total[:p] * total[p:] / n, squares - np.square(total[p:]) / n)
    # What is left of D, and its constant row.
    rest, constant = total[:p] - slopes * total[p:], first[:p] - slopes * first[p:]
    added = 2 * constant * rest + n * np.square(constant)
    sums, square = n * constant + rest, own - slopes * (2 * cross - slopes * squares) + added
    if not full:
        return sums, square, square
    left = np.hstack([np.eye(p), -np.diag(slopes)])
    crossed = np.outer(constant, rest)
    return sums, square, left @ products @ left.T + crossed + crossed.T + n * np.outer(constant, constant)


def _moments(a: Floats, c: Floats, first: Floats, *, full: bool) -> tuple[Floats, Floats]:
    """Return the sums of A and C minus a row, and those of their products, all or feature by feature: AA, AC and CC."""
    n, p = a.shape
    total, products = np.zeros(2 * p), np.zeros((2 * p, 2 * p) if full else (3, p))
    # Copies of a million rows would be new memory, which takes longer than the sums.
    step = max(1, _CACHED // (2 * p))
    for start in range(0, n, step):
        part = slice(start, start + step)
        # Feature by feature in memory: sums over rows of two numbers are several times slower.
        rows = np.empty((2 * p, len(a[part])))
        np.subtract(a[part].T, first[:p, None], out=rows[:p])
        np.subtract(c[part].T, first[p:, None], out=rows[p:])
        total += rows.sum(axis=1)
        products += rows @ rows.T if full else _feature_by_feature(rows[:p], rows[p:])
    return total, products


def _feature_by_feature(away: Floats, control: Floats) -> Floats:
    return np.stack([(x * y).sum(axis=1) for x, y in ((away, away), (away, control), (control, control))])


def _diagonals(products: Floats) -> Floats:
    """Return the products of A and A, A and C, and C and C, feature by feature, of those of all with all."""
    p = len(products) // 2
    return np.stack([np.diagonal(products[i : i + p, j : j + p]) for i, j in ((0, 0), (0, p), (p, p))])


def _lengths(totals: Floats, sums: Floats) -> Floats:
    """Return S' (I + V)^-1 S for each of several sums S and matrices V, or diagonals of them."""
    if sums.ndim == totals.ndim:
        return np.asarray((np.square(totals) / (1 + sums)).sum(axis=-1))
    solved = np.linalg.solve(np.eye(totals.shape[1]) + sums, totals[..., None])[..., 0]
    return np.asarray((totals * solved).sum(axis=-1))


def _resampled(a: Floats, c: Floats, rng: Generator, resamples: int) -> Iterator[Floats]:
    """Yield the statistics of resampled rows minus their means, each with slopes of its own, some at a time."""
    n, p = a.shape
    away, control = a - a.mean(axis=0), c - c.mean(axis=0)
    rows = away - _slopes(away, control) * control
    left, right = np.triu_indices(p) if p <= _FULL else (np.arange(p), np.arange(p))
    products, cross, squares = rows[:, left] * rows[:, right], away * control, np.square(control)
    step = max(1, _CHUNK // max(n, p * p))
    for start in range(0, resamples, step):
        counts = rng.multinomial(n, np.full(n, 1 / n), size=min(step, resamples - start)).astype(float)
        total, other = counts @ away, counts @ control
        slopes = _ratios(counts @ cross - total * other / n, counts @ squares - np.square(other) / n)
        sums = counts @ products
        yield _lengths(total - slopes * other, _matrices(sums, left, right) if p <= _FULL else sums)


def _matrices(sums: Floats, left: Ints, right: Ints) -> Floats:
    """Return symmetric matrices from their upper triangles."""
    size = int(right[-1]) + 1
    matrices = np.empty((len(sums), size, size))
    matrices[:, left, right] = sums
    matrices[:, right, left] = sums
    return matrices


def _as_rows(averages: ArrayLike, controls: ArrayLike) -> tuple[Floats, Floats]:
    # Numbers of single precision stay what they are: a part of them is converted at a time.
    a, c = (x if x.dtype.kind == "f" else x.astype(float) for x in map(np.asarray, (averages, controls)))
    if a.ndim != 2 or a.shape != c.shape or not a.shape[1] or len(a) < max(FEWEST, PER_FEATURE * a.shape[1]):
        raise ValueError(
            f"averages and controls must have one shape (n, p) with at least {FEWEST} rows, and {PER_FEATURE} per "
            f"column, but {a.shape} and {c.shape} arrived; with fewer rows leave columns out."
        )
    if not (np.isfinite(a).all() and np.isfinite(c).all()):
        raise ValueError("averages and controls must be finite, but some are nan or infinite; leave these rows out.")
    return a, c
