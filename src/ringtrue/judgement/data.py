"""Where among all data are outputs wrong? Tests and curves against summaries of the data, for the exact level.

It reads the record and reaches no verdict: that positions depend on the data shows that an output is not the exact
posterior, and never that it is not calibrated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from ..characters import printable
from ..errors import InvalidStudy
from ..replicates.record import OF_DATA, Replicates
from ..statistics import combining, conditional
from ..statistics.effects.intervals import student
from ..values import Floats
from . import groups
from .column import Column, strong_columns
from .text import number

#: With fewer replicates nothing is said.
_FEWEST = 8
#: The kind of the row of tests.
DATA = "data"
#: Bins of a curve at most, and replicates in each at least.
_BINS, _PER_BIN = 10, 20
#: Kinds of functions that the default family adds.
_ADDED = ("sum", "overall")
#: Scores of positions beyond this are as good as this.
_FAR = 8.0


class AgainstData:
    """Positions of the user's own test functions beside summaries of the data.

    Attributes
    ----------
    names
        Of the summaries that vary.
    values
        (n, summaries).
    columns
        The test functions.
    """

    def __init__(self, replicates: Replicates) -> None:
        self.replicates = replicates
        every = {name.removeprefix(OF_DATA): x for name, x in replicates.arrays.items() if name.startswith(OF_DATA)}
        # A summary that is missing in most datasets says nothing of the others.
        known = max((int(np.isfinite(x).sum()) for x in every.values()), default=0)
        kept = {name: x for name, x in every.items() if np.isfinite(x).sum() > known / 2 and _varies(x)}
        self.names = list(kept)
        table = np.stack(list(kept.values()), axis=1) if kept else np.empty((replicates.n, 0))
        self.rows = np.flatnonzero(np.isfinite(table).all(axis=1))
        self.values: Floats = table[self.rows]
        self.columns = [c for c in strong_columns(replicates) if c.kind not in _ADDED and not c.chains]

    def positions(self, column: Column) -> Floats:
        """Return the positions of a test function, ties broken at random."""
        return np.asarray(column.broken().array("u")[self.rows])

    @cached_property
    def tested(self) -> conditional.ConditionalTest:
        """Test that positions are uniform whatever the data are."""
        from .levels import stream

        cells = []
        for column in self.columns:
            many = column.broken().draws
            size = conditional.CELLS if many is None else many + 1
            cells.append((np.minimum((self.positions(column) * size).astype(np.int64), size - 1), size))
        rng = stream(self.replicates, 1 << 20)
        return combining.in_stages(lambda many: conditional.conditional_test(cells, self.values, rng=rng, draws=many))


def _varies(x: Floats) -> bool:
    return bool(np.ptp(x[np.isfinite(x)]) > 0)


def against(replicates: Replicates) -> AgainstData | None:
    """Return positions beside summaries of the data; None if there are none."""
    if replicates.failures or not any(name.startswith(OF_DATA) for name in replicates.arrays):
        return None
    known: AgainstData | None = vars(replicates).get("_against_data")
    if known is None:  # made once, so that it is tested once
        known = vars(replicates)["_against_data"] = AgainstData(groups.one_of_each(replicates))
    return known if known.names and known.columns and len(known.rows) >= _FEWEST else None


@dataclass(frozen=True, eq=False)
class Local:
    """Where among all data the outputs for a test function are wrong.

    Attributes
    ----------
    f, summary
        The test function, and the summary of the data.
    at
        The mean of the summary in each bin, (bins,).
    bias, spread
        Of the outputs in each bin: how far truths lie above the outputs, in reported sds, and the factor that their
        reported sd should be multiplied by; rows are (estimate, low, high), with intervals that hold over all bins.
    slope
        How much truths rise above the outputs with one sd of the summary, in reported sds: (estimate, low, high).
    confidence
        That of each family of intervals.
    """

    f: str
    summary: str
    at: Floats
    bias: Floats
    spread: Floats
    slope: tuple[float, float, float]
    confidence: float

    @property
    def sentence(self) -> str:
        """What the curve shows, in words."""
        estimate, low, high = self.slope
        if low <= 0 <= high:
            off = np.flatnonzero((self.bias[:, 1] > 0) | (self.bias[:, 2] < 0))
            if not off.size:
                return f"Outputs for {self.f} are not seen to be off anywhere along {self.summary}."
            worst = off[np.abs(self.bias[off, 0]).argmax()]
            way = "low" if self.bias[worst, 0] > 0 else "high"
            return (
                f"Outputs for {self.f} are too {way} where {self.summary} is about {self.at[worst]:.3g}: by "
                f"{number(abs(float(self.bias[worst, 0])))} of their sd."
            )
        way = "low" if estimate > 0 else "high"
        ends = sorted((abs(low), abs(high)))
        return (
            f"Outputs for {self.f} are too {way} when {self.summary} is high: by {number(abs(estimate))} "
            f"({number(ends[0])}-{number(ends[1])}) of their sd for each sd of it."
        )

    def __str__(self) -> str:
        return printable(self.sentence)


def local(replicates: Replicates, f: str, summary: str, *, confidence: float = 0.95) -> Local:
    """Return where along a summary of the data the outputs for a test function are wrong.

    Parameters
    ----------
    replicates
        Of a run whose data were summarised.
    f, summary
        Names of a test function of theta alone and of a summary.
    confidence
        That of all intervals of bias together, and of all of spread.
    """
    found = against(replicates)
    if found is None:
        raise InvalidStudy(
            "positions beside summaries of the data were expected, but there are none: pass summary=, a function of y, "
            "with data made of numbers, no lost replicates and no Markov chains."
        )
    column = next((one for one in found.columns if one.name == f), None)
    if column is None or summary not in found.names:
        raise InvalidStudy(
            f"a test function among {[one.name for one in found.columns]} and a summary among {found.names} were "
            f"expected, but {f!r} and {summary!r} arrived."
        )
    z = np.clip(special.ndtri(found.positions(column)), -_FAR, _FAR)
    x = found.values[:, found.names.index(summary)]
    parts = np.array_split(np.argsort(x, kind="stable"), max(1, min(_BINS, len(x) // _PER_BIN)))
    each = 1 - (1 - confidence) / len(parts)
    bias = np.array([_mean(z[part], each) for part in parts])
    spread = np.array([_spread(z[part], each) for part in parts])
    at = np.array([float(x[part].mean()) for part in parts])
    return Local(f, summary, at, bias, spread, _slope(z, x, confidence), confidence)


def _mean(z: Floats, confidence: float) -> tuple[float, float, float]:
    reach = student(confidence, len(z) - 1) * float(z.std(ddof=1)) / math.sqrt(len(z)) if len(z) > 1 else math.inf
    return float(z.mean()), float(z.mean()) - reach, float(z.mean()) + reach


def _spread(z: Floats, confidence: float) -> tuple[float, float, float]:
    from ..statistics.effects import spread_and_bias

    found = spread_and_bias(z, confidence=confidence).spread
    return found.estimate, found.low, found.high


def _slope(z: Floats, x: Floats, confidence: float) -> tuple[float, float, float]:
    """Return the slope of scores on the standardised summary, with an interval that allows for unequal variances."""
    unit = (x - x.mean()) / max(float(x.std()), 1e-300)
    slope = float(unit @ z) / len(z)
    rest = z - z.mean() - slope * unit
    error = math.sqrt(float(np.square(unit * rest).sum())) / len(z)
    reach = student(confidence, len(z) - 2) * error
    return slope, slope - reach, slope + reach
