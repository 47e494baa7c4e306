"""How far from calibrated, with intervals.

A p-value says whether a procedure is calibrated; these measures say by how much it is not, in numbers one can
act on. Each takes either values on the continuum or, with ``draws=M``, ranks in {0, ..., M} of the truth among M
draws, and an interval confidence ``level``; a caller who reports many measures adjusts the level itself. With
``lost=m`` the interval also holds for whatever values m lost replicates would have had.

The ranks are never turned into values. Given u, a rank is Binomial(M, u), so every law of u has an exact law of
ranks, and the estimates are free of the bias of mid-ranks even at M = 9.

This module knows u, z and ranks. It must not know studies, procedures, test functions or verdicts.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

__all__ = [
    "Efficiency",
    "Measure",
    "MomentFit",
    "SpreadAndBias",
    "coverage",
    "distance",
    "moment_spread_and_bias",
    "rank_efficiency",
    "rank_probabilities",
    "spread_and_bias",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Quadrature over z. The trapezoid rule converges geometrically for smooth integrands: both the narrowest law we
# fit (s = 0.03) and the narrowest binomial kernel we keep (M = 2000: sd 0.028 in z) are wider than the step.
_STEP = 0.025
_Z = _STEP * np.arange(-360, 361)
_SMALLEST, _LARGEST = 0.03, 300.0
_MOST_CELLS = 2000
# |z| beyond this is an infinity that arithmetic happened to keep; its eighth power would overflow.
_HUGE = 1e30


@dataclass(frozen=True)
class Measure:
    """One number that describes miscalibration, with its confidence interval.

    Parameters
    ----------
    name : str
        What is measured: "spread", "bias", "coverage" or "distance".
    estimate, low, high : float
        The estimate (nan where the data cannot tell) and the ends of its interval.
    ideal : float
        The value under perfect calibration; for coverage this is the nominal level actually used.
    """

    name: str
    estimate: float
    low: float
    high: float
    ideal: float

    def __str__(self) -> str:
        return f"{self.name} {self.estimate:.3g} ({self.low:.3g} to {self.high:.3g}; ideal {self.ideal:.3g})"


@dataclass(frozen=True)
class SpreadAndBias:
    """The spread factor and the bias of z ~ N(bias, spread^2)."""

    spread: Measure
    bias: Measure


@dataclass(frozen=True)
class MomentFit:
    """Spread factor and bias as point estimates."""

    spread: float
    bias: float


@dataclass(frozen=True)
class Efficiency:
    """Information kept by ranks, as a fraction of the information in exact u."""

    spread: float
    bias: float


def spread_and_bias(
    values: ArrayLike, *, draws: int | None = None, level: float = 0.95, lost: int = 0
) -> SpreadAndBias:
    """Estimate the factor by which reported standard deviations should be multiplied, and the bias.

    The model is z ~ N(delta, s^2) for the normal score z of u; calibration is s = 1, delta = 0. Over-confidence
    is s > 1. Neither number sees a failure that leaves mean and variance of z alone, such as a skewed or bimodal
    z, nor, on the continuum, how much of the spread is due to few wild replicates.

    Parameters
    ----------
    values : array_like, shape (n,)
        Normal scores z; with `draws`, integer ranks in {0, ..., draws}.
    draws : int, optional
        The number of draws M that each truth was ranked among. None means that `values` are z.
    level : float
        Confidence level of each interval.
    lost : int
        Replicates that should be here and are not, of unknown value. The interval is widened by the most that
        they could move `moment_spread_and_bias`, whose influence is bounded; no estimator that can be moved
        arbitrarily far by one replicate could give a finite answer.

    Returns
    -------
    SpreadAndBias
        Two measures: "spread" (ideal 1) and "bias" in units of the output's standard deviation (ideal 0).

    Notes
    -----
    On the continuum the estimates are the sample mean and standard deviation. The interval of the bias is
    Student's. The interval of log s^2 is centred at log var(z) + v / 2, where v = (m4 - 1 + (m6 - m4) / n) / (n - 1)
    is the jackknife variance of log var(z) to second order and mk the k-th standardised sample moment; the
    quantile is Student's with Satterthwaite's degrees of freedom 2 n / (kurtosis of z^2 - 1), and up to twenty scores
    m4 counts as at least 3. A nominal 95 % interval of the spread was measured (20 000 repetitions) to cover

    ======  ========  ==============  =====
    n       Gaussian  skew, Gamma(4)  t_5
    ======  ========  ==============  =====
    20      0.978     0.956           0.944
    50      0.956     0.936           0.931
    200     0.952     0.953           0.940
    1000    0.952     0.952           0.948
    ======  ========  ==============  =====

    With heavy tails the misses lie almost all on one side: the upper end is too low. At extreme levels and heavy
    tails nothing that only knows the sample can hold its level: 0.9995 covers 0.997 for t_5 at n = 200.

    On ranks the estimates maximise the rank likelihood, and the intervals of delta and log s use the larger of its
    sandwich and its model variance, with Satterthwaite's degrees of freedom. Measured coverage (2000 repetitions;
    M = 9, 19, 99; the three laws above) is 0.94 to 0.99 for n between 20 and 1000. If z is not Gaussian, the
    estimates and what they cover are those of the Gaussian nearest in the rank likelihood: for t_5 with variance 1
    a spread of 0.89 at M = 9 and 0.93 at M = 99, because ranks do not see how far out an outlier is.

    Where the likelihood has no interior maximum (nearly all ranks at the ends, or all in the middle),
    the interval is the profile likelihood's and may be unbounded. M = 1 says nothing about spread: its estimate
    is nan and its interval (0, inf); the bias is then reported for s = 1, by Clopper and Pearson's interval.

    Infinite z make the spread infinite; its lower end is that of the finite z alone.

    Examples
    --------
    >>> z = 1.5 * special.ndtri((np.arange(400) + 0.5) / 400)
    >>> print(spread_and_bias(z).spread)
    spread 1.5 (1.4 to 1.61; ideal 1)
    """
    _check_level(level, lost)
    if draws is None:
        z = _as_values(values, "z")
        fit = _from_scores(z, level)
        return _widened(fit, _moments(special.ndtr(z)), z.size, None, lost) if lost else fit
    counts = _as_counts(values, draws)
    if draws == 1:
        return _from_one_draw(counts, level, lost)
    fit = _from_counts(counts, draws, level)
    n = int(counts.sum())
    return _widened(fit, _moments_of_counts(counts), n, draws, lost) if lost else fit


def moment_spread_and_bias(values: ArrayLike, *, draws: int | None = None) -> MomentFit:
    """Estimate spread factor and bias from the first two moments of u.

    One replicate moves each moment by at most 1/n, so a few wild replicates cannot dominate: if this differs
    much from `spread_and_bias`, the failures are rare and heavy-tailed. It sees nothing beyond two moments.

    Parameters
    ----------
    values : array_like, shape (n,)
        u in [0, 1]; with `draws`, integer ranks in {0, ..., draws}.
    draws : int, optional
        The number of draws M. Ranks use the unbiased moments R / M and R (R - 1) / (M (M - 1)).

    Returns
    -------
    MomentFit
        ``spread`` (0 or inf where the moments allow no other; nan for M = 1 or if all u are 0 or all 1) and
        ``bias``.

    Notes
    -----
    For z ~ N(delta, s^2), E u = Phi(a) and E u^2 = BVN(a, a; rho) with a = delta / sqrt(1 + s^2) and
    rho = s^2 / (1 + s^2). Since BVN(a, a; rho) = Phi(a) - 2 T(a, x) with Owen's T and x = 1 / sqrt(1 + 2 s^2),
    and T is increasing and concave in x, Newton's method from x = 0 climbs to the solution without a safeguard.

    Examples
    --------
    >>> u = special.ndtr(2 * special.ndtri((np.arange(1000) + 0.5) / 1000))
    >>> round(moment_spread_and_bias(u).spread, 2)
    2.0
    """
    if draws is None:
        first, second = _moments(_as_values(values, "u"))
    else:
        first, second = _moments_of_counts(_as_counts(values, draws))
    a = float(special.ndtri(first))
    if draws == 1:
        return MomentFit(math.nan, math.sqrt(2) * a)
    spread, bias = _solve_moments(np.array([first]), np.array([second]))
    return MomentFit(float(spread[0]), float(bias[0]))


def coverage(
    values: ArrayLike, *, draws: int | None = None, nominal: float = 0.9, level: float = 0.95, lost: int = 0
) -> Measure:
    """Estimate how often the central interval of the output contains the truth.

    The interval is Clopper and Pearson's: it covers at least `level`, at every n. Coverage cannot see a bias that
    a larger spread compensates, nor anything inside or outside the one interval.

    Parameters
    ----------
    values : array_like, shape (n,)
        u in [0, 1]; with `draws`, integer ranks in {0, ..., draws}.
    draws : int, optional
        The number of draws M. The interval then excludes the k lowest and k highest of the M + 1 ranks, k >= 1
        chosen so that its level is nearest to `nominal`. M = 1 has no such interval: nan in [0, 1].
    nominal : float
        Probability that the output gives to its central interval.
    level : float
        Confidence level of the reported interval.
    lost : int
        Replicates of unknown value: the interval holds whether they were all hits or all misses.

    Returns
    -------
    Measure
        Named "coverage"; ``ideal`` is the nominal level actually used.

    Examples
    --------
    >>> print(coverage((np.arange(100) + 0.5) / 100))
    coverage 0.9 (0.824 to 0.951; ideal 0.9)
    """
    _check_level(level, lost)
    if not 0 < nominal < 1:
        raise ValueError(f"nominal must lie strictly between 0 and 1, got {nominal}; for 90 % pass 0.9")
    if draws is None:
        u = _as_values(values, "u")
        n, hits = u.size, int(np.count_nonzero((u >= 0.5 - nominal / 2) & (u <= 0.5 + nominal / 2)))
    else:
        counts = _as_counts(values, draws)
        if draws == 1:
            return Measure("coverage", math.nan, 0.0, 1.0, nominal)
        k = min(max(1, round((draws + 1) * (1 - nominal) / 2)), draws // 2)
        nominal = (draws + 1 - 2 * k) / (draws + 1)
        n, hits = int(counts.sum()), int(counts[k : draws + 1 - k].sum())
    low, high = _clopper_pearson(hits, n, level, lost)
    return Measure("coverage", hits / n, low, high, nominal)


def distance(values: ArrayLike, *, draws: int | None = None, level: float = 0.95, lost: int = 0) -> Measure:
    """Estimate the Kolmogorov distance between the law of u and the uniform law.

    This is the largest error of any stated one-sided probability. The interval is that of Dvoretzky, Kiefer,
    Wolfowitz and Massart: it covers at least `level`, at every n and for every law of u. The estimate is biased
    upwards by about 0.87 / sqrt(n) near calibration. On ranks the supremum is over the M + 1 attainable levels,
    so it cannot see anything between them.

    Parameters
    ----------
    values : array_like, shape (n,)
        u in [0, 1], in any order (sorted input is cheapest); with `draws`, integer ranks in {0, ..., draws}.
    draws : int, optional
        The number of draws M.
    level : float
        Confidence level of the interval.
    lost : int
        Replicates of unknown value; m of them move the empirical law by at most m / (n + m).

    Returns
    -------
    Measure
        Named "distance", ideal 0.

    Examples
    --------
    >>> print(distance((np.arange(100) + 0.5) / 100))
    distance 0.005 (0 to 0.141; ideal 0)
    """
    _check_level(level, lost)
    if draws is None:
        u = _as_values(values, "u")
        n = u.size
        if np.any(u[1:] < u[:-1]):
            u = np.sort(u)
        above = np.arange(1, n + 1) / n - u
        estimate = max(float(above.max()), float((1 / n - above).max()))
    else:
        counts = _as_counts(values, draws)
        n = int(counts.sum())
        gap = np.cumsum(counts) / n - np.arange(1, draws + 2) / (draws + 1)
        estimate = float(np.abs(gap).max())
    slack = lost / (n + lost) + math.sqrt(math.log(2 / (1 - level)) / (2 * (n + lost)))
    return Measure("distance", estimate, max(0.0, estimate - slack), min(1.0, estimate + slack), 0.0)


def rank_probabilities(draws: int, *, spread: float = 1.0, bias: float = 0.0) -> Floats:
    """Compute the law of the rank among M draws when z ~ N(bias, spread^2).

    Parameters
    ----------
    draws : int
        The number of draws M, at most 2000.
    spread, bias : float
        The law of z; spread between 0.03 and 300.

    Returns
    -------
    ndarray, shape (draws + 1,)
        P(R = r), r = 0, ..., M.

    Examples
    --------
    >>> rank_probabilities(2, spread=5**0.5).round(4)
    array([0.4068, 0.1864, 0.4068])
    """
    _check_draws(draws)
    if draws > _MOST_CELLS:
        raise ValueError(f"draws must be at most {_MOST_CELLS}, got {draws}; more are only used grouped")
    if not _SMALLEST <= spread <= _LARGEST:
        raise ValueError(f"spread must lie in [{_SMALLEST}, {_LARGEST}], got {spread}")
    return _kernel(draws) @ _weights(bias, math.log(spread))[:, 0]


@lru_cache
def rank_efficiency(draws: int) -> Efficiency:
    """Compute how much of the information about spread and bias ranks among M draws keep.

    This is the Fisher information of the rank likelihood at calibration, relative to exact u: divide a number of
    replicates planned for exact u by it. It is a local quantity and says nothing about large errors.

    Parameters
    ----------
    draws : int
        The number of draws M.

    Returns
    -------
    Efficiency
        For spread (0 at M = 1) and bias.

    Examples
    --------
    >>> e = rank_efficiency(9)
    >>> round(e.spread, 2), round(e.bias, 2)
    (0.43, 0.79)
    """
    _check_draws(draws)
    p, by_bias, by_log_spread = (_kernel(draws) @ _weights(0.0, 0.0))[:, :3].T
    # The information of exact u is 1 for the mean and 2 for the log of the standard deviation.
    spread = float(np.sum(by_log_spread**2 / p)) / 2
    return Efficiency(spread if draws > 1 else 0.0, float(np.sum(by_bias**2 / p)))


def _check_level(level: float, lost: int) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level}; for 95 % pass 0.95")
    if lost < 0:
        raise ValueError(f"lost must be a number of replicates, 0 or more, got {lost}")


def _check_draws(draws: int) -> None:
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}; pass draws=None for values on the continuum")


def _as_values(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must have shape (n,) with n >= 1, got {array.shape}")
    low, high = float(array.min()), float(array.max())
    if math.isnan(low):
        raise ValueError(f"{name} contains nan; leave lost replicates out and count them in lost=")
    if name == "u" and not (low >= 0 and high <= 1):
        raise ValueError(f"u must lie in [0, 1], got [{low}, {high}]; for ranks pass draws=")
    return array


def _as_counts(ranks: ArrayLike, draws: int) -> Ints:
    _check_draws(draws)
    array = np.asarray(ranks)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"ranks must have shape (n,) with n >= 1, got {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"ranks must be integers, got {array.dtype}; for values on the continuum leave out draws=")
    if array.min() < 0 or array.max() > draws:
        raise ValueError(f"ranks must lie in 0..{draws}, got {array.min()}..{array.max()}; check draws=")
    return np.bincount(array, minlength=draws + 1)


def _student(level: float, df: float) -> float:
    """Two-sided quantile; infinite without degrees of freedom."""
    return -float(special.stdtrit(df, (1 - level) / 2)) if df > 0 else math.inf


def _clopper_pearson(hits: int, n: int, level: float, lost: int) -> tuple[float, float]:
    """Limits that hold however many of the lost were hits."""
    n, tail, most = n + lost, (1 - level) / 2, hits + lost
    low = float(special.betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(special.betainccinv(most + 1, n - most, tail)) if most < n else 1.0
    return low, high


def _both(spread: tuple[float, float, float], bias: tuple[float, float, float]) -> SpreadAndBias:
    return SpreadAndBias(Measure("spread", *spread, 1.0), Measure("bias", *bias, 0.0))


def _from_scores(z: Floats, level: float) -> SpreadAndBias:
    finite = np.abs(z) < _HUGE if max(-z.min(), z.max()) >= _HUGE else None
    if finite is None:
        return _from_finite_scores(z, level)
    signs = set(np.sign(z[~finite]).tolist())
    rest = _from_finite_scores(z[finite], level) if finite.any() else None
    low = rest.spread.low if rest else 0.0
    if len(signs) == 2:
        return _both((math.inf, low, math.inf), (math.nan, -math.inf, math.inf))
    sign = signs.pop()
    edge = -sign * math.inf if rest is None else rest.bias.low if sign > 0 else rest.bias.high
    return _both((math.inf, low, math.inf), (sign * math.inf, *sorted((edge, sign * math.inf))))


def _from_finite_scores(z: Floats, level: float) -> SpreadAndBias:
    n, mean = z.size, float(z.mean())
    if n == 1:
        return _both((math.nan, 0.0, math.inf), (mean, -math.inf, math.inf))
    m2, m4, m6, m8 = _central_moments(z, mean)
    s = math.sqrt(m2 * n / (n - 1))
    half = _student(level, n - 1) * s / math.sqrt(n)
    bias = (mean, mean - half, mean + half)
    # Fewer than four scores say nothing of their own kurtosis, and equal ones nothing of their spread.
    if n < 4 or m2 <= (1e-12 * max(1.0, abs(mean))) ** 2:
        return _both((s, 0.0, math.inf), bias)
    low, high = _log_variance_interval(n, (m4 / m2**2, m6 / m2**3, m8 / m2**4), level)
    return _both((s, s * low, s * high), bias)


def _central_moments(z: Floats, mean: float) -> tuple[float, float, float, float]:
    """Moments two, four, six and eight, in pieces that stay in the cache."""
    sums = np.zeros(4)
    for start in range(0, z.size, 8192):  # below the size at which BLAS starts threads
        square = z[start : start + 8192] - mean
        square *= square
        fourth = square * square
        sums += square.sum(), fourth.sum(), fourth @ square, fourth @ fourth
    m2, m4, m6, m8 = (sums / z.size).tolist()
    return m2, m4, m6, m8


def _log_variance_interval(n: int, moments: tuple[float, float, float], level: float) -> tuple[float, float]:
    """Ends for s relative to its estimate, from standardised moments: see the notes of `spread_and_bias`."""
    m4, m6, m8 = moments
    # Twenty scores or fewer cannot show a tail lighter than the Gaussian (m4 = 3); their interval would be a point.
    excess = max(m4 - 1, 2 * min(1.0, 20 / n))
    v = (excess + max(m6 - m4, 0.0) / n) / (n - 1)
    df = 2 * n * excess**2 / max(m8 - 4 * m6 + 6 * m4 - 3 - excess**2, 1e-300)
    half = _student(level, min(max(df, 2.0), n - 1.0)) * math.sqrt(v)
    return math.exp(min(v / 2 - half, 0.0) / 2), math.exp(min(max(v / 2 + half, 0.0), 1400.0) / 2)


def _from_one_draw(counts: Ints, level: float, lost: int) -> SpreadAndBias:
    """M = 1: only E u = Phi(delta / sqrt(1 + s^2)) is known; take s = 1."""
    n, above = int(counts.sum()), int(counts[1])
    shares = np.array([above / n, *_clopper_pearson(above, n, level, lost)])
    estimate, low, high = (math.sqrt(2) * special.ndtri(shares)).tolist()
    return _both((math.nan, 0.0, math.inf), (estimate, low, high))


def _moments(u: Floats) -> tuple[float, float]:
    return float(u.mean()), float(np.square(u).mean())


def _moments_of_counts(counts: Ints) -> tuple[float, float]:
    r, n, M = np.arange(counts.size, dtype=np.float64), float(counts.sum()), counts.size - 1
    return float(counts @ r) / (n * M), float(counts @ (r * (r - 1))) / (n * M * max(M - 1, 1))


def _solve_moments(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Spread and bias with these E u and E u^2."""
    a = special.ndtri(first)
    target = np.maximum(first - second, 0.0) / 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = np.zeros_like(a)
        for _ in range(60):
            slope = np.exp(-0.5 * a**2 * (1 + x**2)) / (2 * np.pi * (1 + x**2))
            step = (target - special.owens_t(a, x)) / slope
            # Beyond x = 1 the spread is 0 whatever the root; stopping there keeps the slope from vanishing.
            x = np.clip(np.where(np.isnan(step), 0.0, x + step), 0.0, 1.5)
            if not np.any(np.abs(step[x < 1]) > 1e-14):
                break
        spread = np.where(np.isinf(a), np.nan, np.sqrt(np.maximum(1 / x**2 - 1, 0.0) / 2))
        bias = np.where((a == 0) | np.isinf(a), a, a * np.sqrt(1 + spread**2))
    return spread, bias


def _widened(fit: SpreadAndBias, moments: tuple[float, float], n: int, draws: int | None, lost: int) -> SpreadAndBias:
    """Add the most that the lost replicates could move the moment estimate.

    At given E u the spread increases with E u^2, and |bias| = |a| sqrt(1 + s^2) with it, so the extremes are
    reached with lost replicates on the boundary of the possible (E u, E u^2): a mixture of 0 and 1 above,
    one common value below. Both curves are scanned.
    """
    edge = np.linspace(0.0, 1.0, 65)
    common = edge if draws is None else np.unique(np.round(edge * draws)) / draws
    below = common**2 if draws is None else common * (draws * common - 1) / (draws - 1)
    share = lost / (n + lost)
    first = (1 - share) * moments[0] + share * np.concatenate([edge, common])
    second = (1 - share) * moments[1] + share * np.concatenate([edge, below])
    spread, bias = _solve_moments(first, second)
    (s0,), (b0,) = _solve_moments(np.array(moments[:1]), np.array(moments[1:]))
    if not (0 < s0 < math.inf and math.isfinite(b0)):
        return _both((fit.spread.estimate, 0.0, math.inf), (fit.bias.estimate, -math.inf, math.inf))
    shrink, stretch = min(float(spread.min() / s0), 1.0), max(float(spread.max() / s0), 1.0)
    down, up = min(float(bias.min() - b0), 0.0), max(float(bias.max() - b0), 0.0)
    s, b = fit.spread, fit.bias
    return _both((s.estimate, s.low * shrink, s.high * stretch), (b.estimate, b.low + down, b.high + up))


def _cells(draws: int) -> Ints:
    """First rank of each cell: every rank its own, or above 2000 draws as fine as the quadrature resolves.

    Grouped ranks still have an exact likelihood. Single ranks are kept at the ends, where the information about
    the spread is; between them the edges fall midway between nodes, where the trapezoid rule is a midpoint rule.
    """
    if draws <= _MOST_CELLS:
        return np.arange(draws + 1)
    ends = np.arange(64)
    edges = np.round((draws + 1) * special.ndtr(_Z + _STEP / 2)).astype(np.int64)
    middle = edges[(edges >= ends.size) & (edges <= draws + 1 - ends.size)]
    return np.unique(np.concatenate([ends, middle, draws - ends]))


@lru_cache(maxsize=8)
def _kernel(draws: int) -> Floats:
    """P(rank in cell | z) at the quadrature nodes, shape (cells, nodes)."""
    if draws > _MOST_CELLS:
        edges = _cells(draws)[1:, None].astype(np.float64)
        below = special.betainc(draws - edges + 1, edges, special.ndtr(-_Z))
        kernel = np.diff(below, axis=0, prepend=0.0, append=1.0)
    else:
        r = np.arange(draws + 1.0)[:, None]
        choose = special.gammaln(draws + 1) - special.gammaln(r + 1) - special.gammaln(draws - r + 1)
        kernel = np.exp(choose + r * special.log_ndtr(_Z) + (draws - r) * special.log_ndtr(-_Z))
    kernel.flags.writeable = False
    return np.asarray(kernel)


def _weights(delta: float, log_s: float) -> Floats:
    """Quadrature weights of N(delta, s^2) and their derivatives, shape (nodes, 6).

    Columns: the weight; its derivatives by delta and by log s; by delta twice, delta and log s, log s twice.
    """
    s = math.exp(log_s)
    x = (_Z - delta) / s
    x2 = x * x
    q = np.exp(-0.5 * x2) * (_STEP / (s * math.sqrt(2 * math.pi)))
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


@dataclass(frozen=True)
class _Point:
    """Log likelihood of the counts at one (delta, log s), with what Newton's method and the sandwich need."""

    value: float
    scores: Floats
    gradient: Floats
    hessian: Floats


def _evaluate(kernel: Floats, counts: Floats, at: Floats) -> _Point:
    p = kernel @ _weights(at[0], at[1])
    mass = np.maximum(p[:, 0], 1e-300)
    scores = p[:, 1:3] / mass[:, None]
    second = counts @ (p[:, 3:] / mass[:, None])
    outer = (scores * counts[:, None]).T @ scores
    hessian = np.array([[second[0], second[1]], [second[1], second[2]]]) - outer
    return _Point(float(counts @ np.log(mass)), scores, counts @ scores, hessian)


def _newton_step(point: _Point, counts: Floats, s: float) -> Floats:
    """Newton's step, or a scoring step where the likelihood is not concave; at most one unit on either scale."""
    curvature = -point.hessian
    if curvature[0, 0] <= 0 or np.linalg.det(curvature) <= 0:
        curvature = (point.scores * counts[:, None]).T @ point.scores
        curvature[[0, 1], [0, 1]] *= 1.01
        curvature[[0, 1], [0, 1]] += 1e-12
    step = np.linalg.solve(curvature, point.gradient)
    longest = max(abs(step[0]) / max(1.0, s), abs(step[1]))
    return np.asarray(step / max(1.0, longest))


def _maximise(kernel: Floats, counts: Floats, start: Floats) -> tuple[Floats, _Point] | None:
    """Interior maximum of the rank likelihood, or None if there is none to be found."""
    at, point = start, _evaluate(kernel, counts, start)
    for _ in range(60):
        s = math.exp(at[1])
        step = _newton_step(point, counts, s)
        gain = float(step @ point.gradient)
        for shrink in (1.0, 0.3, 0.1, 0.01, 1e-4):
            there = at + shrink * step
            there[1] = min(max(there[1], math.log(_SMALLEST)), math.log(_LARGEST))
            candidate = _evaluate(kernel, counts, there)
            if candidate.value >= point.value - 1e-9 * abs(point.value):
                break
        at, point = there, candidate
        # gain is twice the log likelihood still to win: 1e-10 is an error of 1e-5 standard errors.
        if abs(gain) < 1e-10:
            break
    else:
        return None
    s = math.exp(at[1])
    interior = 1.01 * _SMALLEST < s < 0.99 * _LARGEST and abs(at[0]) < 6 * math.hypot(1, s)
    concave = point.hessian[0, 0] < 0 and np.linalg.det(point.hessian) > 0
    return (at, point) if interior and concave else None


def _from_counts(counts: Ints, draws: int, level: float) -> SpreadAndBias:
    n = int(counts.sum())
    cells = np.add.reduceat(counts, _cells(draws)).astype(np.float64)
    seen = np.flatnonzero(cells)
    kernel, cells = _kernel(draws)[seen], cells[seen]
    first, second = _moments_of_counts(counts)
    # Half a rank away from the ends, so that the normal score of E u is finite.
    first = min(max(first, 0.5 / (n * draws)), 1 - 0.5 / (n * draws))
    spread, _ = _solve_moments(np.array([first]), np.array([second]))
    s = min(max(float(spread[0]), 0.1), 20.0)
    a = float(special.ndtri(first))
    found = _maximise(kernel, cells, np.array([a * math.hypot(1, s), math.log(s)])) if seen.size > 2 else None
    if found is None:
        return _from_profile(kernel, cells, a, level)
    return _from_sandwich(*found, cells, level)


def _from_sandwich(at: Floats, point: _Point, counts: Floats, level: float) -> SpreadAndBias:
    n = float(counts.sum())
    inverse = np.linalg.inv(-point.hessian)
    squares = (inverse @ point.scores.T) ** 2
    sandwich, fourth = squares @ counts, squares**2 @ counts
    # The model's own variance is steadier in small samples, the sandwich right for any law: take the larger.
    variance = np.maximum(sandwich * n / (n - 1), np.diag(inverse))
    df = 2 * n / np.maximum(n * fourth / sandwich**2 - 1, 2 * n / (n - 1))
    by_bias, by_spread = (_student(level, max(float(f), 2.0)) * math.sqrt(v) for f, v in zip(df, variance, strict=True))
    # The same unbiasing of the variance as on the continuum, which is the limit of many draws.
    delta, log_s = float(at[0]), float(at[1]) + 0.5 * math.log(n / (n - 1))
    ends = (math.exp(log_s - by_spread), math.exp(min(log_s + by_spread, 700.0)))
    return _both((math.exp(log_s), *ends), (delta, delta - by_bias, delta + by_bias))


def _from_profile(kernel: Floats, counts: Floats, a: float, level: float) -> SpreadAndBias:
    """Project the likelihood region onto both parameters; where it leaves the grid the interval is unbounded.

    The grid is in log s and delta / sqrt(1 + s^2): the latter is the normal score of E u, known well when
    nothing else is, and so the grid is densest around its estimate.
    """
    log_s = np.linspace(math.log(_SMALLEST), math.log(_LARGEST), 70)
    away = np.geomspace(3e-3, 8.0, 30)
    score = a + np.concatenate([-away[::-1], [0.0], away])
    delta = score * np.hypot(1, np.exp(log_s))[:, None]
    value = np.array([_log_likelihoods(kernel, counts, row, at) for row, at in zip(delta, log_s, strict=True)])
    n = float(counts.sum())
    inside = _dilated(value >= value.max() - 0.5 * _student(level, n - 1) ** 2)
    best = value >= value.max() - 1e-6
    return _both(_projected_spread(inside, best, log_s), _projected_bias(inside, best, delta))


def _log_likelihoods(kernel: Floats, counts: Floats, delta: Floats, log_s: float) -> Floats:
    # Exact masses of the cells around the nodes: coarser than `_weights` but a law wherever delta lies.
    below = special.ndtr((_Z[:-1, None] + _STEP / 2 - delta) * math.exp(-log_s))
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
