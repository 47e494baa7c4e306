"""Which test functions are drawn, and what is to be said of them. It draws nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidStudy
from ..judgement.column import Column, columns_of, strong_columns
from ..judgement.judging import judge
from ..judgement.result import Result
from ..replicates.record import Replicates

Source = Result | Replicates


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
        """Return n, M, and what is not drawn."""
        parts = [f"n = {self.n}"]
        if k is not None and (draws := route(self.replicates, k)):
            parts.append(draws)
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
        """Say how many test functions are not drawn, if any."""
        return f"{len(self.columns)} of {len(self.columns) + self.left_out} test functions" if self.left_out else ""


def route(replicates: Replicates, k: int) -> str:
    """Return M as a figure states it; nothing where the law was exact."""
    words = columns_of(replicates)[k].route
    return words.replace("ranks of ", "M = ") if words != "exact" else ""


def replicates_of(source: Any) -> Replicates:
    """Return the replicates of a result, or themselves."""
    if isinstance(source, Result):
        source = source.replicates
    if not isinstance(source, Replicates):
        raise TypeError(f"a Result or Replicates is needed, but {type(source).__name__} arrived.")
    if len(source.failures) == source.n:
        raise InvalidStudy(f"at least one replicate is needed, but all {source.n} were lost; see .failures.")
    return source


def result_of(source: Any) -> Result:
    """Return the result, or that of judging the replicates with the default settings."""
    return source if isinstance(source, Result) else judge(replicates_of(source))


def choose(source: Any, f: str | Iterable[str] | None, *, most: int) -> Chosen:
    """Return the columns with the given names; without names, the first strong ones, or the first if none is.

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
    strong = [column.k for column in strong_columns(replicates)]
    # Functions that see the data or the output answer other questions and are drawn if there is nothing else.
    usual = strong or list(range(len(names)))
    return Chosen(replicates, tuple(usual[:most]), max(len(usual) - most, 0))


def _as_names(f: Any) -> list[str]:
    if not isinstance(f, Iterable):
        raise InvalidStudy(f"f must be the name of a test function, or a list of names, but {f!r} came.")
    # A text is an iterable of letters.
    wanted = [f] if isinstance(f, str) else list(f)
    if not wanted:
        raise InvalidStudy("f must name at least one test function, but none came; leave it out for the first few.")
    return wanted


def _index(names: list[str], name: Any) -> int:
    if name not in names:
        # A study may have thousands of names, and a message should fit on a screen.
        some = ", ".join(map(repr, names[:10])) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        raise InvalidStudy(f"f must name test functions of this run, {some}, but {name!r} came.")
    return names.index(name)
