"""Do positions depend on the data? Tests of uniform positions against summaries that were known beforehand.

Under the exact posterior a position is uniform whatever the data were. So the law of any statistic of positions and
summaries is known: positions are drawn anew, summaries stay. This module sees numbers, and must not know what they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import special

from .arguments import Floats, Ints
from .exchange import log_chernoff

__all__ = ["ConditionalTest", "conditional_test", "normal_scores"]

#: Cells that exact positions are put in; as good as none for a correlation.
CELLS = 200
#: Numbers that are drawn at once.
_CHUNK = 400_000


@dataclass(frozen=True)
class ConditionalTest:
    """The outcome of a test that positions do not depend on the data.

    Attributes
    ----------
    pvalue
        Of "positions are uniform whatever the summaries are", for all columns and summaries together.
    column, summary
        The numbers of those that speak most against it.
    kind
        "location" if positions rise or fall with the summary, "spread" if they move outwards or inwards.
    statistic
        The standardised sum behind it, with its sign: above 0, positions rise, or move outwards, with the summary.
    """

    pvalue: float
    column: int
    summary: int
    kind: str
    statistic: float


def normal_scores(values: Floats) -> Floats:
    """Return normal scores of ranks, equal values sharing theirs, with mean square 1; all 0 if none differ.

    Examples
    --------
    >>> normal_scores(np.array([10.0, 30.0, 20.0])).round(3).tolist()
    [-1.225, 1.225, 0.0]
    """
    _, place, many = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(many) - (many - 1) / 2
    scores = special.ndtri(middle[place.reshape(-1)] / (len(values) + 1))
    scores = scores - scores.mean()
    size = sqrt(float(np.square(scores).mean()))
    return np.asarray(scores / size if size > 1e-9 else np.zeros(len(values)))


def conditional_test(
    cells: Sequence[tuple[Ints, int]], summaries: Floats, *, rng: Generator, draws: int = 999
) -> ConditionalTest:
    """Test that positions are uniform whatever the summaries are.

    Null hypothesis: given the data, each column's positions are uniform on their cells, independent over replicates.
    For every column and summary the sums of location scores and of spread scores times the summary's normal score are
    formed; the evidence is the smaller of two approximate p-values, of the quadratic form of all sums and of the
    largest of them, and its law under the null is found by drawing positions anew. Columns are combined by
    Bonferroni's rule. Below what drawing resolves, Chernoff's bound for the largest sum decides.

    It sees errors that rise or fall with a summary; not those that are large in the middle of it only, nor those that
    depend on what no summary shows.

    Parameters
    ----------
    cells
        For each column, the cell of every replicate's position, (n,), and how many cells there are.
    summaries
        (n, summaries), as numbers of any scale.
    rng
        Draws positions.
    draws
        How many times.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> y = rng.normal(size=(300, 1))
    >>> u = special.ndtr(rng.normal(size=300) + y[:, 0] / 2)
    >>> found = conditional_test([((u * 100).astype(int), 100)], y, rng=rng)
    >>> found.pvalue < 1e-3, found.kind, found.statistic > 0
    (True, 'location', True)
    """
    g = np.stack([normal_scores(column) for column in summaries.T], axis=1)
    whiten = _whitening(g)
    drawn: dict[int, Floats] = {}
    found = []
    for k, (cell, many) in enumerate(cells):
        scores = _scores(many)
        if many not in drawn:
            drawn[many] = _drawn_evidence(scores, g, whiten, rng, draws)
        found.append(_tested(k, scores[cell], scores, cell, g, whiten, drawn[many]))
    best = min(found, key=lambda one: one.pvalue)
    return ConditionalTest(min(1.0, len(found) * best.pvalue), best.column, best.summary, best.kind, best.statistic)


def _whitening(g: Floats) -> Floats:
    """Return what makes sums over summaries independent, (summaries, rank)."""
    values, vectors = np.linalg.eigh(g.T @ g / len(g))
    kept = values > 1e-9
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _scores(many: int) -> Floats:
    """Return location and spread scores of cells, each with mean 0 and mean square 1, (cells, 2)."""
    normal = special.ndtri((np.arange(many) + 1) / (many + 1))
    both = np.stack([normal, normal**2], axis=1)
    both = both - both.mean(axis=0)
    size = np.sqrt(np.square(both).mean(axis=0))
    # With two cells the spread score is the same everywhere, and says nothing.
    return np.asarray(np.where(size > 1e-9, both / np.maximum(size, 1e-300), 0.0))


def _sums(scores: Floats, g: Floats) -> Floats:
    """Return standardised sums of scores (..., n, 2) times summaries, (..., 2, summaries)."""
    return np.asarray(np.swapaxes(scores, -1, -2) @ g / sqrt(len(g)))


def _evidence(sums: Floats, whiten: Floats) -> Floats:
    """Return minus the log of the smaller of two approximate p-values."""
    freedom = max(2 * whiten.shape[1], 1)
    form = np.square(sums @ whiten).sum(axis=(-1, -2))
    with np.errstate(divide="ignore"):
        of_form = np.log(np.maximum(special.chdtrc(freedom, form), 1e-300))
    largest = np.abs(sums).max(axis=(-1, -2))
    of_largest = np.minimum(log(2 * freedom) + special.log_ndtr(-largest), 0.0)
    return np.asarray(-np.minimum(of_form, of_largest))


def _drawn_evidence(scores: Floats, g: Floats, whiten: Floats, rng: Generator, draws: int) -> Floats:
    """Return the evidence of positions that are uniform."""
    step = max(1, _CHUNK // (2 * len(g)))
    parts = []
    for start in range(0, draws, step):
        cells = rng.integers(len(scores), size=(min(step, draws - start), len(g)))
        # One kind of score at a time: rows of numbers side by side go through a product of matrices as they are.
        sums = np.stack([one[cells] @ g for one in scores.T.copy()], axis=1) / sqrt(len(g))
        parts.append(_evidence(sums, whiten))
    return np.concatenate(parts)


def _tested(
    k: int, observed: Floats, scores: Floats, cell: Ints, g: Floats, whiten: Floats, drawn: Floats
) -> ConditionalTest:
    sums = _sums(observed, g)
    evidence = float(_evidence(sums, whiten))
    p = (1 + int(np.count_nonzero(drawn >= evidence * (1 - 1e-9)))) / (len(drawn) + 1)
    kind, summary = (int(i) for i in np.unravel_index(int(np.abs(sums).argmax()), sums.shape))
    if p <= 1 / (len(drawn) + 1) * (1 + 1e-9):
        bound: Any = _tail(scores[:, kind], cell, g[:, summary], float(np.sign(sums[kind, summary])))
        p = min(p, 2 * sums.size * bound)
    return ConditionalTest(p, k, summary, ("location", "spread")[kind], float(sums[kind, summary]))


def _tail(scores: Floats, cell: Ints, g: Floats, sign: float) -> float:
    """Bound the probability that a sum is as large as it is."""
    # What a replicate could have added, its own cell first.
    others = scores[(cell[:, None] + np.arange(len(scores))) % len(scores)]
    return float(np.exp(log_chernoff(sign * g[:, None] * others)))
