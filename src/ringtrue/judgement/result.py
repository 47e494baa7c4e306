"""What it means: the verdict, and every number it rests on.

Result objects are frozen, print as the sentence and one line per test function, and export to plain data. This module
formats; it computes no statistics and reaches no verdicts.
"""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from ..characters import one_line, printable
from ..errors import InvalidStudy, Miscalibrated
from ..replicates.record import Failure, Replicates
from ..statistics.effects import Interval
from .levels import Evidence, TestRow
from .looks import Look
from .summary import MORE, summary
from .text import Text, as_row, cell, counted, decimals, format_p, near, number, plain, table
from .verdict import Tolerance, Verdict, need_within_tolerance


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
            return (
                "How small an error this run could have seen is not known: that is computed for the default test of "
                "independent draws or exact laws, without losses."
            )
        ends = [
            f"{word} {near(x, 1)}"
            for word, x in (("above", self.over_confident), ("below", self.under_confident))
            if 0 < x < math.inf
        ]
        spread = f"a spread factor {' or '.join(ends)}, " if ends else ""
        missed = "" if ends else ", but no error of spread"
        return f"This run would have seen, with 80 % chance: {spread}a bias beyond {near(self.bias, 0)} sd{missed}."


@dataclass(frozen=True)
class FunctionResult:
    """What a result says of one test function.

    Attributes
    ----------
    name
        Of the test function.
    tests, measures
        Its rows of evidence and of size.
    """

    name: str
    tests: tuple[TestRow, ...]
    measures: tuple[Interval, ...]

    @property
    def spread(self) -> Interval:
        """The factor that the reported sd should be multiplied by."""
        return self.measure("spread")

    @property
    def bias(self) -> Interval:
        """How far the truth lies above the outputs, in reported sds."""
        return self.measure("bias")

    @property
    def coverage(self) -> Interval:
        """How often central 90 % intervals, or the nearest that draws allow, contain the truth."""
        return self.measure("coverage")

    @property
    def distance(self) -> Interval:
        """The largest error of a one-sided probability."""
        return self.measure("KS distance")

    @property
    def pvalue(self) -> float:
        """The smallest of its adjusted p-values."""
        if not self.tests:
            raise InvalidStudy(f"{self.name!r} was measured, not tested; result.pvalue is the p-value of all together.")
        return min(row.adjusted for row in self.tests)

    def measure(self, name: str) -> Interval:
        """Return a measure by its name, or say which there are."""
        found = next((m for m in self.measures if m.name == name), None)
        if found is None:
            raise InvalidStudy(
                f"{name!r} of {self.name!r} was not measured; measured were {[m.name for m in self.measures]}."
            )
        return found

    def __str__(self) -> str:
        return "\n".join([*(f"{row.level}: {format_p(row.adjusted)}" for row in self.tests), *map(str, self.measures)])


class Tested(dict[str, Evidence]):
    """The evidence by level; asking for one that was not tested says which were."""

    __test__ = False  # not a pytest class

    def __missing__(self, name: str) -> NoReturn:
        raise InvalidStudy(f"level must be one of {sorted(self)}, which this result tested, but {name!r} came.")


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The answer to a study.

    Attributes
    ----------
    verdict, sentence
        The answer, and what a person can do about it.
    pvalue
        The p-value of the verdict, over all levels that concern calibration and all test functions: strong and auto
        share four fifths of the error budget, weak has one fifth. The exact level answers another question and does
        not enter.
    tests, measures
        Rows of evidence and of size. The intervals of measures are simultaneous, but for contraction and skill: these
        say whether an output is of any use, which is no part of the verdict, and have no ideal and no tolerance.
    levels
        The evidence of every level that was tested: ``result.levels["strong"].pvalue``.
    replicates
        What the judgement rests on.
    alpha, look, spent
        The chance of a false alarm that was asked for; which look at a stored run this is; and the part of alpha that
        it was judged at, intervals included: all of it if the run is kept nowhere.
    suspicions
        What seems wrong with truths, data or draws, so that the procedure may not be to blame; the sentence leads with
        it.
    test
        The uniformity test that was asked for.
    stopped
        Why a run with ``until=`` or ``max_seconds=`` ended: "evidence", "certified", "max_n" or "max_seconds".
    """

    verdict: Verdict
    sentence: str
    pvalue: float
    levels: Tested
    measures: tuple[Interval, ...]
    resolution: Resolution
    replicates: Replicates
    alpha: float
    tolerance: Tolerance
    notes: tuple[str, ...] = ()
    suspicions: tuple[str, ...] = ()
    look: Look = field(default_factory=Look)
    test: str = "combination"
    stopped: str = ""

    @cached_property
    def _followed(self) -> Any:
        from .anytime import follow

        return follow(self.replicates)

    @property
    def evalue(self) -> float:
        """The evidence against calibration over replicates in their order: 20 is as much as p = 0.05, at any time."""
        return float(self._followed.evalue)

    @property
    def anytime_pvalue(self) -> float:
        """A p-value that holds whenever one looks, and at any n that was chosen by looking at it."""
        return float(self._followed.pvalue)

    def sequences(self, f: str) -> dict[str, list[tuple[int, Interval]]]:
        """Return how the sizes of a test function came to be known: (n, interval) by the name of the size.

        The intervals hold at all n together; :func:`ringtrue.plots.sequences` draws them.
        """
        self[f]  # says which there are
        return dict(self._sequences.get(f, {}))

    @cached_property
    def _sequences(self) -> dict[str, dict[str, list[tuple[int, Interval]]]]:
        from .anytime import sequences

        return sequences(self.replicates, alpha=self.spent, tolerance=self.tolerance)

    @cached_property
    def diagnostics(self) -> Any:
        """What is known of single fits, and which are flagged; see :func:`ringtrue.diagnostics`."""
        from .fits import diagnostics

        return diagnostics(self)

    @property
    def spent(self) -> float:
        """The part of alpha that this look at the run was judged at."""
        return self.look.of(self.alpha)

    @property
    def tests(self) -> tuple[TestRow, ...]:
        """The tests of all levels."""
        return tuple(row for found in self.levels.values() for row in found.rows)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The replicates that were lost."""
        return self.replicates.failures

    def __getitem__(self, name: str) -> FunctionResult:
        tests = tuple(row for row in self.tests if row.f == name)
        measures = tuple(m for m in self.measures if m.f == name)
        if not tests and not measures:
            known = ", ".join(repr(function.name) for function in self.replicates.functions[:10])
            raise InvalidStudy(f"a test function of this result was expected, such as {known}, but {name!r} arrived.")
        return FunctionResult(name, tests, measures)

    def local(self, f: str, summary: str) -> Any:
        """Return where along a summary of the data outputs are wrong; :func:`ringtrue.plots.local` draws it."""
        from .data import local

        return local(self.replicates, f, summary, confidence=1 - self.spent)

    def assert_not_miscalibrated(self) -> Result:
        """Return the result, or raise Miscalibrated with the sentence as message if the verdict is MISCALIBRATED."""
        if self.verdict is Verdict.MISCALIBRATED:
            raise Miscalibrated(self.sentence)
        return self

    def assert_within_tolerance(self) -> Result:
        """Return the result if it is WITHIN_TOLERANCE; else raise, with the sentence as message.

        What is raised is Miscalibrated if there is evidence of an error, and Inconclusive if the run could not tell;
        both are NotWithinTolerance, and AssertionErrors.
        """
        need_within_tolerance(self.verdict, self.sentence)
        return self

    # The doors to what is below: imported when they are opened, since pictures and tables are not every run's.

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a self-contained HTML page, and its JSON twin beside it; return the page's file."""
        from ..report import report

        return report(self, path)

    def plot(self, f: Any = None) -> Any:
        """Draw the result on one page and return the figure; see :func:`ringtrue.plots.plot`."""
        from ..plots import plot

        return plot(self, f)

    def methods_text(self) -> Text:
        """Return a paragraph for a paper: what was simulated, ranked and tested, at which levels, and what came out.

        :meth:`references` has the BibTeX entries of what it cites.
        """
        from .methods import methods_text

        return methods_text(self)

    def references(self) -> Text:
        """Return BibTeX entries of the publications that :meth:`methods_text` cites for this result."""
        from .methods import references

        return references(self)

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
        ran = self.replicates
        found: dict[str, Any] = plain(
            {
                "verdict": self.verdict.value,
                "sentence": self.sentence,
                "pvalue": self.pvalue,
                "levels": {name: found.pvalue for name, found in self.levels.items()},
                "tests": [asdict(row) for row in self.tests],
                "measures": [as_row(row) for row in self.measures],
                "resolution": asdict(self.resolution),
                "anytime": self.look.anytime,
                "stopped": self.stopped,
                "n": ran.n,
                "seed": ran.seed,
                "alpha": self.alpha,
                "look": {"number": self.look.number, "known": self.look.known, "alpha": self.spent},
                "tolerance": asdict(self.tolerance),
                "failures": [
                    {"cause": cause, "count": count, "replicate": failure.replicate, "replay": ran.replay_of(failure)}
                    for cause, count, failure in ran.causes()
                ],
                "notes": list(self.notes),
                "suspicions": list(self.suspicions),
            }
        )
        return found

    def details(self) -> Text:
        """Return every test and every measure as tables of text, which show themselves at a prompt."""
        table = measures_table(self.measures, self.spent, over_time=self.look.anytime)
        parts = [self.sentence, tests_table(self.tests), table, self._footer()]
        return Text(printable("\n\n".join(part for part in parts if part)))

    def __str__(self) -> str:
        return printable(f"{self.sentence}\n\n{summary(self)}\n\n{self._footer()}\n{MORE}")

    def _repr_html_(self) -> str:
        # Escaped by hand: a notebook shows this as HTML, and names of functions are the user's.
        head, _, rest = str(self).partition("\n\n")
        return f"<p><strong>{html.escape(head)}</strong></p><pre>{html.escape(rest)}</pre>"

    def __repr__(self) -> str:
        return f"Result({self.verdict.name}, {format_p(self.pvalue)}, n={self.replicates.n})"

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("Result is not iterable; use result.verdict, result.pvalue, result.tests, result.measures.")

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a Result is neither true nor false, since there are three verdicts; compare result.verdict, or call "
            "result.assert_within_tolerance() or result.assert_not_miscalibrated()."
        )

    def _footer(self) -> str:
        lines = [f"n = {self.replicates.n}, seed = {self.replicates.seed}, alpha = {self.alpha:g}"]
        lines += [said] if (said := self.look.said(self.alpha)) else []
        if self.look.anytime:
            lines.append(
                f"E = {self.evalue:.3g} now; the p-value is 1 over the largest that E was at any n, which any n may be."
            )
        if self.measures:
            lines.append(str(self.resolution))
        for cause, count, failure in self.replicates.causes():
            again = self.replicates.replay_of(failure)
            lines.append(one_line(f"lost {counted(count, 'replicate')}: {cause}{f'; see {again}' if again else ''}"))
        return "\n".join([*lines, *self.notes])


def tests_table(rows: Sequence[TestRow]) -> str:
    """Return the tests as a table of text."""
    cells = [("level", "test function", "method", "statistic", "p", "adjusted p", "route")]
    for row in rows:
        cells.append(
            (
                row.level,
                row.f,
                row.method,
                f"{row.statistic:.4g}",
                cell(row.pvalue),
                cell(row.adjusted),
                row.route,
            )
        )
    return table(cells, right={3, 4, 5})


def measures_table(rows: Sequence[Interval], alpha: float, *, over_time: bool = False) -> str:
    """Return the sizes as a table of text."""
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
                row.shown,
            )
        )
    looks = "\n* at all looks together," if over_time else "\n*"
    return (
        table(cells, right={2, 4})
        + f"{looks} simultaneous over test functions and measures, those of the joint law among themselves, but for"
        + "\ncontraction and skill: each alone. In tolerance:"
        + f"\nyes if an interval of its own is, each end of which is missed with probability {alpha:g}; no if the"
        + "\nestimate is outside and clearly more than two thirds of what is tolerated, and the"
        + "\ninterval leaves out the ideal"
    )
