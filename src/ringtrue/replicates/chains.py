"""How far apart draws of a Markov chain must be to count as independent.

Ranks among autocorrelated draws are U-shaped even when the output is right. This module estimates the integrated
autocorrelation time of each chain; it knows nothing of truths or ranks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidStudy
from ..values import Floats, Ints

#: Chains worth fewer independent draws do not show their own autocorrelation.
_SHORTEST = 5


def thinned(values: Floats, chains: int) -> list[Floats]:
    """Return, replicate by replicate, draws that are far enough apart to count as independent.

    Parameters
    ----------
    values
        (draws, replicates): Markov chains one behind the other, each in its order.
    chains
        How many. All chains of a replicate are thinned alike, by the largest stride that one of them needs.
    """
    rows = values.reshape(chains, -1, values.shape[1])
    length = rows.shape[1]
    every = stride(np.moveaxis(rows, 0, 1).reshape(length, -1)).reshape(chains, -1).max(axis=0)
    # From the end: what is left out is the beginning, where a chain may not have settled.
    return [rows[:, ::-1][:, :: int(step), i].ravel() for i, step in enumerate(every)]


def need_long_chains(left: Ints, length: int) -> None:
    """Refuse chains that are typically worth too few draws; a single one with few left costs nothing but power."""
    if left.size and np.median(left) < _SHORTEST:
        raise InvalidStudy(
            f"a chain must be worth at least {_SHORTEST} independent draws to be ranked among, but chains of {length} "
            f"are worth {np.median(left):.0f}; they are too short for their autocorrelation: run them longer."
        )


def stride(values: Floats) -> NDArray[np.intp]:
    """Return, for each column, every how many draws to keep one.

    Twice the largest of the autocorrelation times of the ranks (bulk) and of the indicators of both 5 % tails: a rank
    depends on the chain through such indicators. The times are estimates, so the level of a test is approximate.

    Parameters
    ----------
    values
        Test function values, shape (draws, replicates), in chain order.

    Examples
    --------
    >>> stride(np.random.default_rng(1).normal(size=(1000, 1))) <= 2
    array([ True])
    """
    # Ranks, because a rank test sees the chain through indicators: moments may not even exist.
    ranks = _ranks(values)
    edge = 0.05 * len(values)
    bulk_and_tails: list[Floats] = [
        ranks,
        np.asarray(ranks < edge, float),
        np.asarray(ranks >= len(values) - edge, float),
    ]
    times = np.max([autocorrelation_time(x) for x in bulk_and_tails], axis=0)
    # One time apart, draws of a chain still have correlation e^-2, which thousands of replicates see; two times, e^-4.
    # Independent draws have estimates around 1, and below 1.5 ranks do not bend visibly.
    every = np.where(times < 1.5, 1, np.ceil(2 * times))
    return np.asarray(np.minimum(every, len(values)), np.intp)


def _ranks(values: Floats) -> Floats:
    """Return, column by column, how many draws are smaller; equal draws have equal ranks."""
    ordered = np.sort(values, axis=0)
    columns = [np.searchsorted(a, b) for a, b in zip(ordered.T, values.T, strict=True)]
    return np.array(columns, float).T


def autocorrelation_time(x: Floats) -> Floats:
    """Return 1 + 2 sum of autocorrelations of each column, truncated by Geyer's initial monotone sequence.

    Examples
    --------
    >>> autocorrelation_time(np.ones((8, 1)))
    array([1.])
    """
    rho = _autocorrelations(x)
    # Sums of neighbours are positive for reversible chains (Geyer 1992): the first that is not is noise.
    pairs = rho[0 : len(rho) - 1 : 2] + rho[1::2]
    pairs = np.minimum.accumulate(pairs, axis=0)
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    return np.asarray(np.maximum(2 * np.where(positive, pairs, 0).sum(axis=0) - 1, 1.0))


def _autocorrelations(x: Floats) -> Floats:
    """Return the autocorrelation function by FFT; a constant column gets zeros behind lag 0."""
    n = len(x)
    centred = x - x.mean(axis=0)
    # Twice the length, so that the circular correlation of the FFT is the linear one.
    spectrum = np.fft.rfft(centred, 2 * n, axis=0)
    acov = np.fft.irfft(spectrum * spectrum.conj(), 2 * n, axis=0)[:n]
    rho = np.where(np.ptp(x, axis=0) > 0, acov / np.where(acov[0] > 0, acov[0], 1.0), 0.0)
    rho[0] = 1.0
    return np.asarray(rho)
