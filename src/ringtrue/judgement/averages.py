"""Means, spreads and correlations of the outputs, averaged over data, as a judgement reads them: test and sizes.

The only place that knows how averages are kept in a record. It reads the record and reaches no verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..replicates.averages import AVERAGES, Part, looked_at, parts
from ..replicates.record import Replicates
from ..statistics import combining, controlled
from ..statistics.effects import Interval
from . import groups
from .column import strong_columns
from .text import free

#: Kinds of the row of the test: whether the sizes of a result describe all that it can have seen, or not.
SIZED, UNSIZED = "averages", "averages without sizes"
KINDS = (SIZED, UNSIZED)
#: The stream that resamples replicates.
_RESAMPLES = (1 << 20) + 1
#: What the error of a correlation is called among the measures.
CORRELATION = "weak correlation error"


@dataclass(frozen=True)
class Component:
    """What one feature speaks of, of which entries, how far the outputs are off, and with which chance at most."""

    part: Part
    names: tuple[str, ...]
    error: float
    pvalue: float


class Averages:
    """Averages over the draws of the outputs, and controls.

    Attributes
    ----------
    names
        Of the entries.
    parts
        What the features speak of, and of which entries.
    kind
        Of the row.
    n
        How many replicates have them.
    """

    def __init__(self, replicates: Replicates, features: int) -> None:
        self.replicates = replicates
        columns = [column for column in strong_columns(replicates) if column.kind == "coordinate"]
        entries = [columns[k] for k in looked_at(len(columns)).tolist()]
        self.names = [column.name for column in entries]
        self.parts = parts(len(entries))[:features]
        # Without the belief's law of an entry there is no distance from it.
        self.kind = SIZED if all(column.weak is not None for column in columns) else UNSIZED
        self._rows = _kept(replicates)[:, :, :features]
        self.n = len(self._rows)

    @cached_property
    def tested(self) -> controlled.ControlledTest:
        """What speaks against the averages."""
        from .levels import stream

        rng = stream(self.replicates, _RESAMPLES)
        averages, controls = self._rows[:, 0], self._rows[:, 1]
        return combining.in_stages(lambda many: controlled.controlled_test(averages, controls, rng=rng, resamples=many))

    @property
    def worst(self) -> Component:
        """The component that is most clearly off, with a chance that holds over all of them."""
        k = int(np.argmax(np.abs(self.tested.scores)))
        part, entries = self.parts[k]
        chance = min(1.0, len(self.parts) * 2 * float(special.ndtr(-abs(self.tested.scores[k]))))
        return Component(part, tuple(self.names[j] for j in entries), float(self.tested.means[k]), chance)

    @property
    def title(self) -> str:
        """What the test is about; names of the user's come first."""
        several = len(self.names) > 1
        pairs = self.parts[-1][0] == "correlation"
        plain = "means, spreads and correlations" if pairs else "means and spreads" if several else "mean and spread"
        return free(plain, {function.name for function in self.replicates.functions})

    def correlation(self, confidence: float) -> Interval | None:
        """Return the error of the correlation that may be off by most; None if none was looked at."""
        pairs = [k for k, (part, _) in enumerate(self.parts) if part == "correlation"]
        if not pairs:
            return None
        reach = -float(special.ndtri((1 - confidence) / 2)) * self.tested.errors
        # If the interval that reaches furthest is small enough, all of them are.
        k = max(pairs, key=lambda one: abs(self.tested.means[one]) + reach[one])
        estimate, half = float(self.tested.means[k]), float(reach[k])
        f = " and ".join(self.names[j] for j in self.parts[k][1])
        return Interval(CORRELATION, estimate, estimate - half, estimate + half, 0.0, f=f)


def averages_of(replicates: Replicates) -> Averages | None:
    """Return the averages of a record; None if there are none, too few replicates, or some were lost."""
    found: Averages | None
    if "_averages" not in vars(replicates):
        found = None if replicates.failures else _looked_up(groups.one_of_each(replicates))
        vars(replicates)["_averages"] = found
    found = vars(replicates)["_averages"]
    return found


def _kept(replicates: Replicates) -> NDArray[Any]:
    """Return the rows of the first replicates; those behind them are blank."""
    array = replicates.arrays[AVERAGES]
    blank = ~np.isfinite(array[:, 0, 0])
    return array[: int(np.argmax(blank))] if blank.any() else array


def _looked_up(replicates: Replicates) -> Averages | None:
    if AVERAGES not in replicates.arrays:
        return None
    n, _, every = _kept(replicates).shape
    entries = sum(column.kind == "coordinate" for column in strong_columns(replicates))
    alone = 2 * len(looked_at(entries))
    if every != len(parts(len(looked_at(entries)))):  # a file may say other things of its functions than it has of them
        return None
    # With few replicates correlations are left out, since so many features need more.
    for features in (every, alone):
        if n >= max(controlled.FEWEST, controlled.PER_FEATURE * features):
            return Averages(replicates, features)
    return None


def sizes(replicates: Replicates, alpha: float, clearly: float) -> list[tuple[Interval, Interval, Interval]]:
    """Return the error of correlation that may be largest.

    It comes three times: with an interval that holds over all pairs, one each end of which is missed with probability
    alpha, and one each end of which is missed with probability ``clearly``.
    """
    found = averages_of(replicates)
    if found is None:
        return []
    pairs = max(sum(part == "correlation" for part, _ in found.parts), 1)
    confidences = (1 - alpha / pairs, max(1 - 2 * alpha, 0.01), max(1 - 2 * clearly, 0.01))
    jointly, certifying, known = (found.correlation(one) for one in confidences)
    return [] if jointly is None or certifying is None or known is None else [(jointly, certifying, known)]
