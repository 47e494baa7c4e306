"""Which test functions are drawn, the worst at the level that rejects, and what is to be said of them.

One order serves all pictures, that of :func:`ringtrue.judgement.summary.worst_first`. It draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidStudy
from ..judgement.column import Column, columns_of
from ..judgement.groups import one_of_each
from ..judgement.judging import judge
from ..judgement.levels import ADDED, TestRow, level_of, levels
from ..judgement.result import Result
from ..judgement.summary import worst_first
from ..judgement.verdict import rejecting
from ..replicates.record import ONE_OF_GROUP, Replicates

Source = Result | Replicates

#: Levels about outputs averaged over data, which have pictures of their own.
AVERAGED = tuple(level.name for level in levels().values() if level.blunt)


@dataclass(frozen=True)
class Chosen:
    """Replicates, the columns to draw, and how many more there would have been."""

    replicates: Replicates
    columns: tuple[int, ...]
    left_out: int

    @property
    def n(self) -> int:
        """The number of replicates that were not lost."""
        return self.replicates.n - len(self.replicates.failures)

    def name(self, k: int) -> str:
        """Return what the user calls column k."""
        return self.replicates.functions[k].name

    def column(self, k: int) -> Column:
        """Return column k as a judgement reads it."""
        return columns_of(self.replicates)[k]

    def note(self, k: int | None = None, *, rest: bool = False) -> str:
        """Return n, M, the level if it is not that of functions of theta, and what is not drawn."""
        parts = [f"n = {self.n}{', one of each group' if ONE_OF_GROUP in self.replicates.arrays else ''}"]
        if k is not None and (draws := route(self.replicates, k)):
            parts.append(draws)
        if k is not None and self.replicates.functions[k].sees != "theta":
            parts.append(f"{level_of(self.replicates.functions[k].sees)} level")
        if self.replicates.failures:
            parts.append(f"{len(self.replicates.failures)} lost, not drawn")
        if rest and self.rest:
            parts.append(self.rest)
        return ", ".join(parts)

    @property
    def common_note(self) -> str:
        """Return n and M if all columns share them, else n alone."""
        notes = {self.note(k) for k in self.columns}
        return notes.pop() if len(notes) == 1 else f"{self.note()}, M differs"

    @property
    def rest(self) -> str:
        """Say that the worst test functions are drawn and how many there are, if some are not."""
        many = len(self.columns)
        which = "the worst" if many == 1 else f"the worst {many}"
        return f"{which} of {many + self.left_out} test functions" if self.left_out else ""


def route(replicates: Replicates, k: int) -> str:
    """Return M as a figure states it; nothing where the law was exact."""
    words = columns_of(replicates)[k].route
    return words.replace("ranks of ", "M = ") if words != "exact" else ""


def replicates_of(source: Any) -> Replicates:
    """Return the replicates of a result, or themselves; of groups one each, since bands are for independent ones."""
    if isinstance(source, Result):
        source = source.replicates
    if not isinstance(source, Replicates):
        raise TypeError(f"a Result or Replicates is needed, but {type(source).__name__} arrived.")
    if len(source.failures) == source.n:
        raise InvalidStudy(f"at least one replicate is needed, but all {source.n} were lost; see .failures.")
    return one_of_each(source)


def result_of(source: Any) -> Result:
    """Return the result, or that of judging the replicates with the default settings."""
    if isinstance(source, Result):
        return source
    replicates_of(source)  # refuses what has none
    return judge(source)


def accusation(result: Result) -> TestRow | None:
    """Return the test that speaks most clearly against calibration, as the sentence does; None if none rejects."""
    rows = rejecting(list(result.levels.values()), result.spent)
    return min(rows, key=lambda row: (levels()[row.level].blunt, row.kind in ADDED, row.adjusted), default=None)


def choose(source: Any, f: str | Iterable[str] | None, *, most: int, by: Sequence[str] = (), kind: str = "") -> Chosen:
    """Return the columns with the given names; without names, all of the level that rejects, or the worst of many.

    Parameters
    ----------
    source
        A Result, or Replicates, which are judged with the default settings where that matters.
    f
        Names of test functions.
    most
        Columns, if none is named. If there are no more, they come in the order of the record; otherwise the worst, the
        very worst first.
    by
        As in :func:`worst_first`; for pictures of what is averaged over data.
    kind
        The kind of test functions that are drawn, if there are any.

    Examples
    --------
    >>> from ringtrue.judgement.judging import check_draws
    >>> choose(check_draws([0.5], [[0.1, 0.7]]), None, most=1).columns
    (0,)
    """
    replicates = replicates_of(source)
    names = [function.name for function in replicates.functions]
    if f is not None:
        # Whoever names some does not miss the others, so that none counts as left out.
        return Chosen(replicates, tuple(_index(names, one) for one in _as_names(f)), 0)
    if not by and len({function.sees for function in replicates.functions}) > 1:
        source = result_of(source)
    # What is averaged over data are functions of theta alone.
    usual = _of_level(replicates, level_of("theta") if by else _shown_level(source), kind)
    if len(usual) > most:
        return Chosen(replicates, tuple(worst_first(result_of(source), usual, by)[:most]), len(usual) - most)
    return Chosen(replicates, tuple(usual), 0)


def _shown_level(source: Source) -> str:
    """Return the level whose test functions are drawn: the one that rejects if it has some of its own, else strong."""
    row = accusation(source) if isinstance(source, Result) else None
    return level_of("theta") if row is None or row.level in AVERAGED else row.level


def _of_level(replicates: Replicates, level: str, kind: str) -> list[int]:
    functions = replicates.functions
    # Functions that see the data answer another question and are drawn if there is nothing else.
    usual = [k for k, one in enumerate(functions) if level_of(one.sees) == level] or list(range(len(functions)))
    return [k for k in usual if functions[k].kind == kind] or usual


def _as_names(f: Any) -> list[str]:
    if not isinstance(f, Iterable):
        raise InvalidStudy(f"f must be the name of a test function, or a list of names, but {f!r} came.")
    # A text is an iterable of letters.
    wanted = [f] if isinstance(f, str) else list(f)
    if not wanted:
        raise InvalidStudy("f must name at least one test function, but none came; leave it out for the worst.")
    return wanted


def _index(names: list[str], name: Any) -> int:
    if name not in names:
        # A study may have thousands of names, and a message should fit on a screen.
        some = ", ".join(map(repr, names[:10])) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        raise InvalidStudy(f"f must name test functions of this run, {some}, but {name!r} came.")
    return names.index(name)
