"""What it means: the verdict, and every number it rests on.

Result objects are frozen, print as a readable table, and export to plain data. This module formats; it computes no
statistics and reaches no verdicts.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ..errors import InvalidStudy, Miscalibrated
from ..functions.contract import Level
from ..replicates.record import Replicates
from ..statistics.effects import Interval

#: What tables have of a measure, in this order.
MEASURED = ("f", "name", "estimate", "low", "high", "ideal", "within")
#: Decimals of a number, at most.
_MOST = 6


class Verdict(Enum):
    """The three possible answers; there is no "calibrated" from the absence of evidence."""

    MISCALIBRATED = "miscalibrated"
    WITHIN_TOLERANCE = "within tolerance"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Tolerance:
    """How large an error may be and still not matter.

    Parameters
    ----------
    spread
        Relative error of the reported sd.
    bias
        Error of location in units of the reported sd.
    coverage
        Error of the coverage of nominal 90 % intervals.
    distance
        Kolmogorov distance of the law of u from uniform; it only excuses an error of shape that a test has found.

    Examples
    --------
    >>> Tolerance(spread=0.2).bias
    0.1
    """

    spread: float = 0.1
    bias: float = 0.1
    coverage: float = 0.05
    distance: float = 0.05

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0 or not math.isfinite(value):
                raise InvalidStudy(f"the tolerance of {name} must be a positive number, but {value!r} arrived.")

    def limits(self, name: str, ideal: float) -> tuple[float, float]:
        """Return the interval in which a measure does not matter."""
        if name == "spread":
            return 1 / (1 + self.spread), 1 + self.spread
        if name.endswith("KS distance"):
            return -math.inf, self.distance
        width = self.bias if name == "bias" else self.coverage
        return ideal - width, ideal + width


@dataclass(frozen=True)
class TestRow:
    """One test: its level, test function, method, statistic, p-value alone and adjusted within its level, route."""

    __test__ = False  # not a pytest class

    level: Level
    f: str
    method: str
    statistic: float
    pvalue: float
    adjusted: float
    route: str
    n: int


@dataclass(frozen=True)
class Resolution:
    """What this run could have seen: the smallest errors found with 80 % chance.

    ``over_confident`` and ``under_confident`` are spread factors, ``bias`` is in units of the reported sd.
    """

    over_confident: float
    under_confident: float
    bias: float

    def __str__(self) -> str:
        if math.isnan(self.bias):
            return "What this run could have seen is known for the default test without lost replicates only."
        ends = [
            f"{word} {_near(x, 1)}"
            for word, x in (("above", self.over_confident), ("below", self.under_confident))
            if 0 < x < math.inf
        ]
        spread = f"a spread factor {' or '.join(ends)}, " if ends else ""
        missed = "" if ends else ", but no error of spread"
        return f"This run would have seen, with 80 % chance: {spread}a bias beyond {_near(self.bias, 0)} sd{missed}."


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The answer to a study.

    Attributes
    ----------
    verdict, sentence
        The answer, and what a person can do about it.
    tests, measures
        Rows of evidence and of size. The intervals of measures are simultaneous, but for contraction and skill: these
        say whether an output is of any use, which is no part of the verdict, and have no ideal and no tolerance.
    levels
        The global p-value of every level that was tested.
    replicates
        What the judgement rests on.
    """

    verdict: Verdict
    sentence: str
    tests: tuple[TestRow, ...]
    measures: tuple[Interval, ...]
    levels: dict[Level, float]
    overall: float
    resolution: Resolution
    replicates: Replicates
    alpha: float
    tolerance: Tolerance
    notes: tuple[str, ...] = ()

    def pvalue(self, level: Level | None = None) -> float:
        """Return the global p-value of a level, over all its test functions; without a level, that of the verdict.

        The verdict's p-value covers the levels that concern calibration: strong and auto share four fifths of the
        error budget, weak has one fifth. The exact level answers another question and does not enter.
        """
        if level is None:
            return self.overall
        if level not in self.levels:
            raise InvalidStudy(
                f"level must be one of {sorted(self.levels)}, which this result tested, but {level!r} came."
            )
        return self.levels[level]

    def assert_calibrated(self) -> None:
        """Raise Miscalibrated, with the sentence as message, if the verdict is MISCALIBRATED."""
        if self.verdict is Verdict.MISCALIBRATED:
            raise Miscalibrated(self.sentence)

    # The doors to what is below: imported when they are opened, since pictures and tables are not every run's.

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a self-contained HTML page, and its JSON twin beside it; return the page's file."""
        from ..report import report

        return report(self, path)

    def plot(self, f: Any = None) -> Any:
        """Draw the result on one page and return the figure; see :func:`ringtrue.plots.plot`."""
        from ..plots import plot

        return plot(self, f)

    def to_pandas(self) -> Any:
        """Return tests, measures and replicates as pandas DataFrames; see :func:`ringtrue.export.to_pandas`."""
        from ..export import to_pandas

        return to_pandas(self)

    def to_xarray(self) -> Any:
        """Return an xarray DataTree that ArviZ understands; see :func:`ringtrue.export.to_xarray`."""
        from ..export import to_xarray

        return to_xarray(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON; numbers that are not finite become None."""
        plain: dict[str, Any] = _plain(
            {
                "verdict": self.verdict.name,
                "sentence": self.sentence,
                "pvalue": self.overall,
                "levels": self.levels,
                "tests": [asdict(row) for row in self.tests],
                "measures": [as_row(row) for row in self.measures],
                "resolution": asdict(self.resolution),
                "n": self.replicates.n,
                "seed": self.replicates.seed,
                "alpha": self.alpha,
                "tolerance": asdict(self.tolerance),
                "failures": [
                    {"cause": cause, "count": count, "replicate": failure.replicate, "replay": failure.replay}
                    for cause, count, failure in self.replicates.causes()
                ],
                "notes": list(self.notes),
            }
        )
        return plain

    def __str__(self) -> str:
        parts = [self.sentence, _tests_table(self.tests), _measures_table(self.measures, self.alpha), self._footer()]
        return "\n\n".join(part for part in parts if part)

    def __repr__(self) -> str:
        return f"Result({self.verdict.name}, {format_p(self.overall)}, n={self.replicates.n})"

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            "Result is not iterable; use result.verdict, result.pvalue(level), result.tests, result.measures."
        )

    def _footer(self) -> str:
        lines = [f"n = {self.replicates.n}, seed = {self.replicates.seed}, alpha = {self.alpha:g}"]
        if self.measures:
            lines.append(str(self.resolution))
        for cause, count, failure in self.replicates.causes():
            lines.append(f"lost {counted(count, 'replicate')}: {cause}; see {failure.replay}")
        return "\n".join([*lines, *self.notes])


def as_row(m: Interval) -> dict[str, Any]:
    """Return what tables have of a measure."""
    return {name: getattr(m, name) for name in MEASURED}


def format_p(p: float) -> str:
    """Return a p-value as one would write it in a sentence.

    Examples
    --------
    >>> format_p(0.31234), format_p(2.6e-9), format_p(1e-310)
    ('p = 0.31', 'p = 3e-9', 'p < 1e-300')
    """
    return "p < 1e-300" if p < 1e-300 else f"p = {power(_cell(p))}"


def _cell(p: float) -> str:
    """Return a p-value as a table shows it."""
    if p < 1e-300:
        return "< 1e-300"
    return f"{p:.0e}" if p < 0.001 else f"{p:.2g}"


def decimals(row: Interval) -> int:
    """Return how many decimals the width of an interval deserves: two figures of it, two decimals at least."""
    width = row.high - row.low
    return 2 if not 0 < width < math.inf else min(max(1 - math.floor(math.log10(width)), 2), _MOST)


def number(x: float, digits: int = 2) -> str:
    """Return a number as a person would write it: so many decimals where it is small, two or three figures otherwise.

    Examples
    --------
    >>> number(-0.001), number(1.4142), number(57.31), number(711174.24), number(0.99871, 4)
    ('0.00', '1.41', '57.3', '7.1e5', '0.9987')
    """
    if not math.isfinite(x):
        return f"{x:g}"
    if abs(x) >= 9999.5:
        return power(f"{x:.1e}").replace(".0e", "e")
    if digits <= 2:
        digits = min(digits, 0 if abs(x) >= 99.95 else 1 if abs(x) >= 9.995 else 2)
    text = f"{x:.{digits}f}"
    if digits >= _MOST and not float(text):  # its own size is asked for, and too small for decimals
        return power(f"{x:.0e}") if x else "0"
    return text if float(text) else text.lstrip("-")


def percent(share: float) -> str:
    """Return a share in per cent, with decimals only where it is near nothing or all.

    Examples
    --------
    >>> percent(0.7634), percent(0.9962), percent(1.0), percent(0.00012)
    ('76 %', '99.6 %', '100 %', '0.012 %')
    """
    rest = 100 * min(share, 1 - share)
    if rest <= 0 or rest >= 1.95:
        return f"{100 * share:.0f} %"
    digits = min(1 - math.floor(math.log10(rest)) - (rest >= 0.1), 6)
    return f"{100 * share:.{digits}f} %"


def counted(n: int, noun: str) -> str:
    """Return how many there are of something, in the plural unless there is one.

    Examples
    --------
    >>> counted(1, "replicate"), counted(20, "replicate")
    ('1 replicate', '20 replicates')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def power(text: str) -> str:
    """Return a number in scientific notation without the zeros of its exponent.

    Examples
    --------
    >>> power("1e-06"), power("0.01")
    ('1e-6', '0.01')
    """
    head, mark, exponent = text.partition("e")
    return f"{head}{mark}{int(exponent)}" if mark else text


def _near(x: float, ideal: float) -> str:
    """Return a number with two figures of its distance from the ideal."""
    return number(x, 2 if x == ideal else max(1 - math.floor(math.log10(abs(x - ideal))), 2))


def _tests_table(rows: Sequence[TestRow]) -> str:
    cells = [("level", "test function", "method", "statistic", "p", "adjusted p", "route")]
    for row in rows:
        cells.append(
            (
                row.level,
                row.f,
                row.method,
                f"{row.statistic:.4g}",
                _cell(row.pvalue),
                _cell(row.adjusted),
                row.route,
            )
        )
    return table(cells, right={3, 4, 5})


def _measures_table(rows: Sequence[Interval], alpha: float) -> str:
    if not rows:
        return ""
    cells = [("test function", "measure", "estimate", f"{100 * (1 - alpha):g} % interval*", "ideal", "in tolerance")]
    for row in rows:
        digits = decimals(row)
        interval = f"{number(row.low, digits)} to {number(row.high, digits)}"
        cells.append(
            (
                row.f,
                row.name,
                number(row.estimate, digits),
                interval,
                "-" if math.isnan(row.ideal) else f"{row.ideal:.3g}",
                row.within,
            )
        )
    return (
        table(cells, right={2, 4})
        + "\n* simultaneous over test functions and measures, but for contraction and skill: each alone"
    )


def table(cells: Sequence[tuple[str, ...]], *, right: Collection[int] = ()) -> str:
    """Return rows of cells as text in columns, the first row as its head; some columns flush right."""
    widths = [max(len(row[j]) for row in cells) for j in range(len(cells[0]))]
    lines = []
    for row in cells:
        padded = [
            cell.rjust(w) if j in right else cell.ljust(w) for j, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
