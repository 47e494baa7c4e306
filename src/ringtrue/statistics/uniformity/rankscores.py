"""Scores of ranks on {0, ..., M}, and the null laws of their sums and sums of squares.

A uniformity test on ranks is a sum of scores. The tables here say what a rank is worth, and the laws
say how large such a sum may be when the ranks are iid uniform. The module knows tables, counts and
their sums; it must not know which test they serve.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from scipy import fft, special

from ..arguments import Floats, Ints
from ..roots import after, narrow

# Beyond this many draws a rank says where u lies to within a cell: averages over cells replace the Beta laws.
_MANY_DRAWS = 2000
# Standard deviations of a sum that are kept of its law: ten on either side.
_WINDOW = 20
# Up to this many counts in all count vectors together, laws are computed outcome by outcome.
_ENUMERABLE = 1_000_000
# The importance sample is trusted down to this tail probability.
_SAMPLED = 1e-8


@lru_cache(maxsize=64)
def normal_scores(draws: int) -> Floats:
    """Return E[z | r] and E[z^2 - 1 | r], (2, draws + 1), for every rank r in {0, ..., draws}.

    Given u, the rank is Binomial(draws, u); given the rank r, u is Beta(r + 1, draws - r + 1). The
    scores are the conditional means of z = Phi^-1(u) and z^2 - 1, which are the efficient scores for
    bias and for spread when only ranks are known. Both have mean zero over the ranks.

    Examples
    --------
    >>> normal_scores(3)[0].round(6)
    array([-1.029375, -0.297011,  0.297011,  1.029375])
    """
    scores = _cell_scores(draws) if draws > _MANY_DRAWS else _beta_scores(draws)
    scores.setflags(write=False)
    return scores


def _beta_scores(draws: int) -> Floats:
    # Beyond 9 the normal law has 1e-19 left. The step, 1/80, is below the sd in z that 2000 draws leave, 0.028.
    z = np.linspace(-9.0, 9.0, 1441)
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    r = np.arange(draws + 1)[:, None]
    log_beta = special.betaln(r + 1, draws - r + 1)
    weights = np.exp(r * special.log_ndtr(z) + (draws - r) * special.log_ndtr(-z) - log_beta) * density
    scores = np.stack([weights @ z, weights @ (z * z - 1.0)])
    # Quadrature errors are about 1e-13; symmetry and zero mean hold exactly and are imposed.
    mirrored = scores[:, ::-1] * np.array([[-1.0], [1.0]])
    scores = 0.5 * (scores + mirrored)
    return np.asarray(scores - scores.mean(axis=1, keepdims=True))


def _cell_scores(draws: int) -> Floats:
    """Average z and z^2 - 1 over the cell of each rank; the integrals are closed forms and telescope."""
    edges = special.ndtri(np.arange(1, draws + 1) / (draws + 1))
    density = np.exp(-0.5 * edges**2) / np.sqrt(2 * np.pi)
    primitives = np.zeros((2, draws + 2))
    primitives[:, 1:-1] = -density, -edges * density
    return np.asarray((draws + 1) * np.diff(primitives, axis=1))


@lru_cache(maxsize=64)
def polynomial_scores(draws: int, order: int) -> Floats:
    """Return the polynomials of degree 1 to `order` that are orthonormal over the ranks.

    They are the Gram polynomials, the discrete counterpart of Legendre's; there are at most `draws` of them. Each row
    has mean zero and mean square one over {0, ..., draws}.

    Examples
    --------
    >>> polynomial_scores(2, 2)[1].round(4)
    array([ 0.7071, -1.4142,  0.7071])
    """
    x = (2.0 * np.arange(draws + 1) - draws) / draws
    q, _ = np.linalg.qr(np.polynomial.legendre.legvander(x, order))
    scores = np.sqrt(draws + 1) * (q * np.sign(q[-1]))[:, 1:].T
    scores.setflags(write=False)
    return np.asarray(scores)


#: Below this probability the law is tilted, so that the tail has relative accuracy.
_CENTRAL = 1e-5


@dataclass(frozen=True)
class _Tilted:
    """The law of a sum of n integer scores, tilted so that its mean is the observed sum."""

    probabilities: Floats  # of the sums congruent to 0, 1, ... modulo the length
    rate: float
    log_normaliser: float  # n log E exp(rate a) - rate * observed


def sum_tails(scores: Floats, counts: Ints) -> tuple[float, float]:
    """Return P(S <= s) and P(S >= s) for the sum s of the scores of the observed ranks.

    Under the null the n ranks are iid uniform. The scores are first rounded to multiples of a small
    fraction of their standard deviation (1/128, coarser above 42000 ranks), so the sum is an
    integer and its law an n-fold convolution, computed by FFT, after exponential tilting where a tail is below
    1e-5: exact for the rounded scores at any n and any number of draws, with relative accuracy in the tails.

    Examples
    --------
    >>> np.round(sum_tails(np.array([-1.0, 1.0]), np.array([1, 4])), 10).tolist()
    [0.96875, 0.1875]
    """
    n = int(counts.sum())
    atoms = integer_scores(scores, n)
    observed = int(counts @ atoms)
    lower, upper = _central_tails(atoms.tobytes(), n).at(observed)
    if min(lower, upper) > _CENTRAL:
        return lower, upper
    # Tilts go upwards only. Below the mean, which integers decide exactly, the scores are turned round.
    if observed * atoms.size < n * int(atoms.sum()):
        return _tails_above(-atoms, -observed, n)
    upper, lower = _tails_above(atoms, observed, n)
    return lower, upper


@dataclass(frozen=True, eq=False)
class _Central:
    """The law of a sum as it is, untilted, from its smallest likely value on: many test functions share it."""

    first: int
    lower: Floats
    upper: Floats

    def at(self, observed: int) -> tuple[float, float]:
        """Return both tails; 0 where the sum is too far out to tell."""
        place = observed - self.first
        if not 0 <= place < self.lower.size:
            return 0.0, 0.0
        return min(1.0, float(self.lower[place])), min(1.0, float(self.upper[place]))


@lru_cache(maxsize=8)
def _central_tails(atoms: bytes, n: int) -> _Central:
    found = np.frombuffer(atoms, np.int64)
    values, many = np.unique(found, return_counts=True)
    law = sum_law(values, many / found.size, n, spread=float(found.std()) * n**0.5)
    whole = law.size > n * int(np.ptp(values))
    first = n * int(values[0]) if whole else round(n * float(found.mean())) - law.size // 2
    ordered = law[(first + np.arange(law.size)) % law.size]
    return _Central(first, np.cumsum(ordered), np.cumsum(ordered[::-1])[::-1])


def integer_scores(scores: Floats, n: int) -> Ints:
    """Round scores to integers, in units of their standard deviation / 128 or coarser if n is large."""
    # Twenty standard deviations of the sum then fit into 2^19 cells; the loss of power at n = 10^6 is 0.01 %.
    unit = float(scores.std()) * max(1 / 128, _WINDOW * n**0.5 / 2**19)
    return np.asarray(np.rint(scores / unit), np.int64)


def _tails_above(atoms: Ints, observed: int, n: int) -> tuple[float, float]:
    """Return (upper, lower) tails, both including the observed sum, which is at least the mean."""
    bottom, top = int(atoms.min()), int(atoms.max())
    frequency = np.bincount(atoms - bottom) / atoms.size
    # The largest sum would need an infinite tilt, and its probability is known.
    if observed == n * top:
        return float(frequency[-1]) ** n, 1.0
    values = np.flatnonzero(frequency) + bottom
    law = _tilt(values, frequency[values - bottom], observed, n)
    size = law.probabilities.size
    # Sums beyond the last possible one, or half a period away, belong to the other side.
    reach = min(n * top - observed, size - 1 if size > n * (top - bottom) else size // 2)
    steps = np.arange(reach + 1)
    masses = law.probabilities[(observed + steps) % size] * np.exp(law.log_normaliser - law.rate * steps)
    upper = min(1.0, float(masses.sum()))
    return upper, min(1.0, 1.0 - upper + float(masses[0]))


def _tilt(values: Ints, frequency: Floats, observed: int, n: int) -> _Tilted:
    centred = values.astype(float) - observed / n
    rate = _saddlepoint(centred, frequency)
    # Relative to the largest exponent, so that none overflows.
    weights = frequency * np.exp(rate * (centred - centred.max()))
    log_normaliser = n * float(np.log(weights.sum()) + rate * centred.max())
    weights /= weights.sum()
    spread = float(np.sqrt(n * (weights @ (centred - weights @ centred) ** 2)))
    return _Tilted(sum_law(values, weights, n, spread=spread), rate, log_normaliser)


def sum_law(values: Ints, weights: Floats, n: int, *, spread: float) -> Floats:
    """Return the law of a sum of n iid integers modulo a period: the whole range, or many spreads."""
    span = int(np.ptp(values))
    window = int(_WINDOW * spread) + 8 * span + 64
    whole = n * span + 1
    period = fft.next_fast_len(whole if whole <= 2**16 else min(whole, window), real=True)
    transform = fft.rfft(np.bincount(values % period, weights=weights, minlength=period))
    # Most of the transform vanishes when raised to the power n; a complex power is slow.
    kept = np.flatnonzero(np.abs(transform) > np.exp(-45.0 / n))
    power = np.zeros_like(transform)
    power[kept] = transform[kept] ** n
    return np.asarray(np.maximum(fft.irfft(power, period), 0.0))


def _saddlepoint(centred: Floats, frequency: Floats) -> float:
    """Solve for the non-negative tilt under which the centred values have mean zero."""

    def mean(rate: float) -> float:
        return float((frequency * np.exp(rate * (centred - top))) @ centred)

    top = float(centred.max())
    low, high = 0.0, 1.0 / top
    while mean(high) < 0.0:
        low, high = high, 2.0 * high
    return narrow(mean, low, high, done=after(60)).low


class QuadraticLaw:
    """The law of n |mean score vector|^2, scores being (k, cells), for n cells drawn iid with given probabilities.

    The score vectors have mean zero and identity covariance, so the limit is chi-square with as many
    degrees of freedom as rows. That limit is anti-conservative far out and at small n (at n = 20 the
    fourth-order Neyman statistic exceeds its nominal 1e-3 point twice and its 1e-5 point 12 times too
    often, because the scores near u = 0 and 1 are far from Gaussian). Therefore:

    * all outcomes are enumerated where there are few enough of them;
    * below 50 ranks the law is simulated once, by importance sampling from exponential tilts in all
      directions (fixed seed; standard error about 2 % of p at 5 %, and two seeds of a like design
      differed by up to 10 % of p down to 1e-6);
    * from 50 on the second-order Edgeworth expansion is used, as long as it is less than five times the
      chi-square tail. Within that range it agreed with importance sampling to a factor 1.5 at
      n = 50, 200 and 1000, down to 1e-6, for four polynomials; elsewhere this is an extrapolation;
    * beyond, p stays where it is until a Chernoff bound falls below it. The bound's variance proxy is
      maximised numerically over a fixed set of directions, with 5 % added, so it is not a proof.
    """

    def __init__(self, scores: Floats, probabilities: Floats, n: int) -> None:
        self.scores, self.probabilities, self.n = scores, probabilities, n

    def tail(self, statistic: float) -> float:
        """Return P(T >= statistic), or an upper bound of it far out."""
        # Ties belong to the tail although rounding separates them.
        x = statistic * (1.0 - 1e-9) - 1e-12
        if self.enumerable or self.n < 50:
            values, tails = self._table
            k = int(np.searchsorted(values, x))
            p = float(tails[k]) if k < values.size else 0.0
            return p if p >= _SAMPLED else max(p, self._beyond(x, _SAMPLED))
        expansion = float(self._edgeworth(np.array(x)))
        return expansion if expansion >= self._trusted else max(expansion, self._beyond(x, self._trusted))

    @cached_property
    def enumerable(self) -> bool:
        """Whether there are few enough different count vectors to go through them all."""
        return enumerable(self.probabilities.size, self.n)

    def _beyond(self, x: float, limit: float) -> float:
        return 0.0 if self.enumerable else min(limit, self._chernoff(x))

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Statistics in increasing order, and the probability of at least each."""
        if self.enumerable:
            counts, weights = enumerate_counts(self.probabilities, self.n)
            sums = counts @ self.scores.T
        else:
            sums, weights = _importance_sample(self.scores, self.probabilities, self.n)
        values = np.einsum("bk,bk->b", sums, sums) / self.n
        order = np.argsort(values)
        tails = np.cumsum(weights[order][::-1])[::-1]
        return values[order], np.minimum(tails, 1.0)

    @cached_property
    def _coefficients(self) -> Floats:
        """Weights of the chi-square tails with k, k + 2, k + 4, k + 6 degrees of freedom."""
        s, prob = self.scores, self.probabilities
        k = s.shape[0]
        third = np.einsum("ia,ja,ka->ijk", s * prob, s, s, optimize=True)
        fourth = float(prob @ np.square((s**2).sum(axis=0))) - k * (k + 2)
        traces, squares = float(np.square(np.einsum("iij->j", third)).sum()), float(np.square(third).sum())
        return np.array([
            fourth / 8 - traces / 8 - squares / 12,
            -fourth / 4 + 3 * traces / 8 + squares / 4,
            fourth / 8 - 3 * traces / 8 - squares / 4,
            traces / 8 + squares / 12,
        ])  # fmt: skip

    def _edgeworth(self, x: Floats) -> Floats:
        k = self.scores.shape[0]
        tails = special.gammaincc(0.5 * k + np.arange(4), 0.5 * np.maximum(x, 0.0)[..., None])
        return np.asarray(np.clip(tails[..., 0] + tails @ self._coefficients / self.n, 0.0, 1.0))

    @cached_property
    def _trusted(self) -> float:
        """The tail probability down to which the expansion is trusted."""
        k = self.scores.shape[0]
        # At 1400 the chi-square tail, about exp(-700), is the smallest that a float holds.
        x = np.linspace(float(k), 1400.0, 3000)
        expansion = self._edgeworth(x)
        bad = np.flatnonzero(expansion > 5.0 * special.gammaincc(0.5 * k, 0.5 * x))
        return float(expansion[bad[0]]) if bad.size else 0.0

    def _chernoff(self, x: float) -> float:
        """Bound the tail by that of a Gaussian with the scores' sub-Gaussian variance proxy."""
        k, y = self.scores.shape[0], x / self._proxy
        return float(np.exp(0.5 * (k * np.log(y / k) - (y - k)))) if y > k else 1.0

    @cached_property
    def _proxy(self) -> float:
        """Estimate sup of 2 log E exp(l.phi) / |l|^2 over many directions and radii, and add 5 %."""
        cells = self.probabilities.size
        some = np.unique(np.linspace(0, cells - 1, min(cells, 400)).round().astype(np.int64))
        scores, weights = self.scores[:, some], self.probabilities[some] / self.probabilities[some].sum()
        directions = np.random.default_rng(0).normal(size=(300, scores.shape[0]))
        directions = np.vstack([directions, scores.T[:: max(1, some.size // 100)], scores.T[-1:]])
        directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-12)
        projected = directions @ scores
        radii = np.geomspace(0.05, 20.0, 40)
        logs = [np.log(np.exp(r * projected) @ weights).max() for r in radii]
        return 1.05 * max(1.0, float(np.max(2.0 * np.array(logs) / radii**2)))


def enumerable(cells: int, n: int) -> bool:
    """Say whether the count vectors of n draws over the cells are few enough to go through."""
    return comb(n + cells - 1, n) * cells <= _ENUMERABLE


def enumerate_counts(probabilities: Floats, n: int) -> tuple[Ints, Floats]:
    """Return all count vectors of n draws over the cells, and their multinomial probabilities.

    Examples
    --------
    >>> enumerate_counts(np.array([0.5, 0.5]), 2)[1]
    array([0.25, 0.5 , 0.25])
    """
    cells = probabilities.size
    counts = _few_draws(cells, n) if n < cells else _few_cells(cells, n)
    logs = special.gammaln(n + 1) - special.gammaln(counts + 1).sum(axis=1)
    return counts, np.exp(logs + counts @ np.log(probabilities))


def _few_draws(cells: int, n: int) -> Ints:
    ranks = np.array(list(combinations_with_replacement(range(cells), n)), np.int64)
    counts = np.zeros((len(ranks), cells), np.int64)
    for column in ranks.T:
        counts[np.arange(len(ranks)), column] += 1
    return counts


def _few_cells(cells: int, n: int) -> Ints:
    counts = np.zeros((1, 0), np.int64)
    for _ in range(cells - 1):
        room = n - counts.sum(axis=1) + 1
        start = np.repeat(np.cumsum(room) - room, room)
        counts = np.column_stack([np.repeat(counts, room, axis=0), np.arange(room.sum()) - start])
    return np.column_stack([counts, n - counts.sum(axis=1)])


def _importance_sample(scores: Floats, probabilities: Floats, n: int) -> tuple[Floats, Floats]:
    """Draw sums of n score vectors from a mixture of tilts; weights make them a sample of the null."""
    rng = np.random.default_rng(20)
    tilts, sizes = _tilts(scores.shape[0], rng)
    tilts /= n**0.5
    weights = np.exp(tilts @ scores) * probabilities
    log_mean = np.log(weights.sum(axis=1))
    cdfs = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    sums = np.vstack([_draw_sums(scores, c, (int(b), n), rng) for c, b in zip(cdfs, sizes, strict=True)])
    # The null is one of the components, so the mixture's ratio to it is at least 48000 and never underflows.
    return sums, 1.0 / (np.exp(np.minimum(sums @ tilts.T - n * log_mean, 700.0)) @ sizes)


def _tilts(k: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """The null itself, and directions with radii where the chi-square tail runs from 1 down to 1e-9."""
    count = 160
    radius = np.sqrt(2 * special.gammainccinv(0.5 * k, 10.0 ** (-9 * (np.arange(count) + 0.5) / count)))
    direction = rng.normal(size=(count, k))
    direction *= (radius / np.linalg.norm(direction, axis=1))[:, None]
    return np.vstack([np.zeros((1, k)), direction]), np.array([48_000] + [80] * count)


def _draw_sums(scores: Floats, cdf: Floats, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    cells = np.minimum(np.searchsorted(cdf, rng.random(shape)), cdf.size - 1)
    return np.stack([row[cells].sum(axis=1) for row in scores], axis=1)
