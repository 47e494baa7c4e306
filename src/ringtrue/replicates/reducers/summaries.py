"""What an output says about the truth besides where it falls: centre, width, and scores.

A procedure that ignores the data is calibrated and worthless; these numbers tell it from a useful one. They are the
same whether an output is a law or draws, except that draws are subsampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distributions import Law
from ...values import Floats
from ..block import Block, Drawn
from ..record import Field

#: f(theta), mean and sd of f under the output, the continuous ranked probability score, and the interval score of the
#: central 90 % interval; nan where the output does not give it away.
SUMMARY = ("truth", "mean", "sd", "crps", "interval")
NOMINAL = 0.9
Summaries = tuple[Floats, Floats, Floats, Floats, Floats]
UNKNOWN: Floats = np.array(np.nan)


class Summarised:
    """The summaries of every test function."""

    fields = tuple(Field(name) for name in SUMMARY)
    keep = None

    def __call__(self, block: Block) -> Mapping[str, NDArray[Any]]:
        """Return the summaries side by side."""
        each = [
            of_draws(block.ranked[k].drawn, block.truths[k]) if law is None else of_law(law, block.truths[k])
            for k, law in enumerate(block.laws)
        ]
        arrays = {name: np.empty((len(each), block.b)) for name in SUMMARY}
        for k, summaries in enumerate(each):
            for name, row in zip(SUMMARY, summaries, strict=True):
                arrays[name][k] = row
        return {name: array.T for name, array in arrays.items()}


def of_law(law: Law, truth: Floats) -> Summaries:
    """Return the summaries of exact laws, each a number or one per replicate.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> [round(float(row), 4) for row in of_law(Normal(0, 1), np.array(0.0))]
    [0.0, 0.0, 1.0, 0.2337, 3.2897]
    """
    mean, sd = law.moments() or (UNKNOWN, UNKNOWN)
    score, ends = law.crps(truth), law.central(NOMINAL)
    return (
        truth,
        mean,
        sd,
        UNKNOWN if score is None else score,
        UNKNOWN if ends is None else interval_score(*ends, truth),
    )


def of_draws(draws: Drawn, truth: Floats) -> Summaries:
    """Return the summaries of draws.

    The score is the fair one: unbiased for that of the law the draws come from, however few they are. Pairs are taken
    half the sample apart, so that a Markov chain does not count its own inertia as sharpness.

    Examples
    --------
    >>> [float(row.item()) for row in of_draws(Drawn(np.array([[0.0], [2.0]])), np.array([1.0]))]
    [1.0, 1.0, 1.4142135623730951, 0.0, nan]
    """
    with np.errstate(invalid="ignore", over="ignore"):  # lost replicates have draws that are not finite
        return _of_rows(draws, truth)


def _of_rows(draws: Drawn, truth: Floats) -> Summaries:
    some = draws.rows
    m = some.shape[1]
    if m < 2:
        return truth, some.mean(axis=1), UNKNOWN, UNKNOWN, UNKNOWN
    # Pairs half the sample apart: neighbours of a chain are alike, and would make outputs look sharper than they are.
    half = m // 2
    apart = np.abs(some[:, :half] - some[:, half : 2 * half]).mean(axis=1)
    score = np.abs(some - truth[:, None]).mean(axis=1) - apart / 2
    interval = UNKNOWN
    # With 19 draws the lowest and the highest leave 1/20 on each side.
    if m >= 19:  # fewer have no central 90 % interval
        tail = round((m + 1) * (1 - NOMINAL) / 2)
        interval = interval_score(draws.ordered[:, tail - 1], draws.ordered[:, m - tail], truth)
    return truth, some.mean(axis=1), some.std(axis=1, ddof=1), score, interval


def interval_score(low: Floats, high: Floats, truth: Floats) -> Floats:
    """Return the width of 90 % intervals, and twenty times how far outside the truth lies."""
    outside = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return np.asarray(high - low + 2 / (1 - NOMINAL) * outside)


REDUCER = Summarised()
