"""The levels of calibration: which null hypothesis, which tests, which share of the error budget, which sentence.

A level is a file in this folder with a ``LEVEL``. exact implies auto implies strong implies reversible implies weak; a
result always says which level a number belongs to. Levels read columns of a record, and know nothing of verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...functions import Sees
from ...replicates.record import Header, Replicates
from ...statistics import combining, exchange, uniformity
from ...statistics.effects import Interval
from ...streams import Streams
from ...values import Floats
from .. import chains, groups, outcomes
from ..column import Column, columns_of
from ..processes import Line, lines_of

if TYPE_CHECKING:
    from ..sentences.verdicts import Findings


#: Kinds of functions that the default family adds to the user's parameters: they give evidence, and are not certified.
ADDED = ("sum", "overall")


@dataclass(frozen=True)
class TestRow:
    """One test: its level, test function, method, statistic, p-value alone and adjusted within its level, route.

    ``kind`` is that of the test function, "joint" for a test of all entries at once.
    """

    __test__ = False  # not a pytest class

    level: str
    f: str
    method: str
    statistic: float
    pvalue: float
    adjusted: float
    route: str
    n: int
    kind: str = "function"


@dataclass(frozen=True)
class Evidence:
    """What speaks against one level: its tests, their global p-value, and notes on what could not be tested."""

    level: str
    rows: tuple[TestRow, ...]
    pvalue: float
    notes: tuple[str, ...] = ()


class Level:
    """A level of calibration.

    Attributes
    ----------
    name, null
        What it is called, and its null hypothesis in words.
    sees
        What the test functions see that speak of it first of all; None if it has none of its own.
    order
        Its place in a table of tests.
    implied
        Its place in the chain of implications, 0 for the strongest.
    share
        Its share of the error budget; None if it does not enter into the verdict.
    heir
        The level that has its share if it was not tested; None if all others do.
    blunt
        Whether its complaint says less about what is wrong than those of others.
    untested
        What a run lacks that did not test it.
    """

    name: ClassVar[str]
    sees: ClassVar[Sees | None] = None
    null: ClassVar[str]
    order: ClassVar[int]
    implied: ClassVar[int]
    share: ClassVar[float | None] = None
    heir: ClassVar[str | None] = None
    blunt: ClassVar[bool] = False
    untested: ClassVar[str]

    def evidence(self, replicates: Replicates, test: str) -> Evidence | None:
        """Return what speaks against it; None, or evidence without rows, if the replicates cannot say.

        By default every test function of its own is tested for uniform positions.
        """
        columns = [] if self.sees is None else columns_of(replicates, self.sees)
        rows = [test_column(self.name, column, test) for column in columns]
        return combined(self.name, rows, weights=self.weights(columns)) if rows else None

    def followed(self, replicates: Replicates) -> list[Line]:
        """Return the test functions whose evidence can be followed over replicates, with their shares of the level."""
        columns = [] if self.sees is None else columns_of(replicates, self.sees)
        return lines_of(self.name, columns, self.weights(columns)) if columns else []

    def lacks(self, header: Header) -> str | None:
        """Return what a run lacks that did not test it; None if it could not have."""
        return self.untested

    def weights(self, columns: Sequence[Column]) -> list[float]:
        """Return the shares of its test functions in its error budget; equal ones unless a level knows better."""
        return [1 / len(columns) for _ in columns]

    def sizes(self, row: TestRow, measures: Sequence[Interval]) -> list[Interval]:
        """Return the sizes that describe whatever a test of this level can have seen; none if no size does."""
        return []

    def scores(self, row: TestRow, replicates: Replicates) -> Floats | None:
        """Return the normal scores that the test saw; None if it saw ranks, or no scores of one function."""
        return None

    def complaint(self, row: TestRow, findings: Findings) -> str:
        """Say what the test found."""
        raise TypeError(f"the level {self.name} has no share of the verdict, and so no complaint")


@cache
def levels() -> dict[str, Level]:
    """Return the levels by name, in the order of a table of tests."""
    found = [import_module(f"{__name__}.{module.name}").LEVEL for module in iter_modules(__path__)]
    return {level.name: level for level in sorted(found, key=lambda level: level.order)}


def level_of(sees: Sees) -> str:
    """Return the name of the level that a test function speaks of, by what it sees."""
    return next(level.name for level in levels().values() if level.sees == sees)


def chain() -> list[Level]:
    """Return the levels from the strongest to the weakest."""
    return sorted(levels().values(), key=lambda level: level.implied)


def evidence(replicates: Replicates, *, test: str) -> tuple[list[Evidence], list[str]]:
    """Return the evidence of every level that the replicates can speak about, and notes on what was not tested.

    Parameters
    ----------
    replicates
        What happened.
    test
        A name in ``ringtrue.uniformity.TESTS``.
    """
    every = [found for level in levels().values() if (found := level.evidence(replicates, test)) is not None]
    return [found for found in every if found.rows], [note for found in every for note in found.notes]


def budget(found: Sequence[Evidence]) -> dict[str, float]:
    """Return the share of the error budget of every level that was tested and has one; they add up to 1."""
    shares = {one.level: share for one in found if (share := levels()[one.level].share) is not None}
    for level in levels().values():
        if level.share is not None and level.name not in shares and level.heir in shares:
            shares[level.heir] += level.share
    total = sum(shares.values())
    return {level: share / total for level, share in shares.items()}


def combined(
    level: str, rows: Sequence[TestRow], notes: Sequence[str] = (), *, weights: Sequence[float] | None = None
) -> Evidence:
    """Return the evidence of several tests by Bonferroni's rule, each adjusted by Holm's."""
    adjusted = combining.holm([row.pvalue for row in rows], weights)
    total = adjusted.min()
    finished = tuple(replace(row, adjusted=float(p)) for row, p in zip(rows, adjusted, strict=True))
    return Evidence(level, finished, float(total), tuple(notes))


def test_column(level: str, column: Column, test: str) -> TestRow:
    """Test that positions are uniform; that chains place the truth as each other; that truth and draws exchange."""
    if column.groups is not None:
        smooth, plain = test == "combination" and not column.chains, column.broken()
        found = groups.test(column, plain.scores, lambda one: _tested(one, test), draws=plain.draws, smooth=smooth)
        return row_of(level, column, found, _route(column))
    return row_of(level, column, _tested(column, test), _route(column))


def _route(column: Column) -> str:
    found = () if column.lost else outcomes.outcomes_of(column)
    return outcomes.route(found) if found else column.route


def _tested(column: Column, test: str) -> Any:
    """Test a column of independent replicates."""
    if column.chains:
        return chains.test(column, lambda: stream(column.replicates, 4 + column.k))
    # The labels are the same for every seed: draws that exist have one p-value.
    if not column.lost and (found := outcomes.outcomes_of(column)):
        return outcomes.test(found, labels, partial(_ranked, column, test))
    return _ranked(column, test)


def _ranked(column: Column, test: str) -> Any:
    """Test positions, or where there are ties that truth and draws can be exchanged."""
    if column.pool is not None and not column.lost:
        return exchange.exchange_test(column.pool, rng=labels())
    plain = column.broken()
    z = plain.scores if plain.draws is None else None
    return uniform(plain.values, z, draws=plain.draws, test=test, lost=column.lost)


def row_of(level: str, column: Column, found: Any, route: str) -> TestRow:
    """Return the row of a test of one column."""
    return TestRow(
        level, column.name, found.method, found.statistic, found.pvalue, found.pvalue, route, column.n, column.kind
    )


def uniform(values: Any, z: Any, *, draws: int | None, test: str, lost: int) -> uniformity.UniformityTest:
    """Run a uniformity test; if replicates are lost, one whose p-value holds whatever they would have been."""
    if lost:
        # The other tests have no worst case in closed form: how lost values would move them is not bounded.
        worst = uniformity.ecdf_gamma(values, draws=draws, lost=lost)
        return replace(worst, method=f"{worst.method}, worst case of {lost} lost")
    chosen = uniformity.TESTS[test]
    if z is not None and test in ("combination", "cook", "mean_z"):
        return chosen(values, z=z)
    return chosen(values, draws=draws)


def stream(replicates: Replicates, purpose: int) -> np.random.Generator:
    """Return random numbers of a judgement, which depend on the seed of the run alone."""
    # Far from the blocks that spread the atoms of mu0, which are numbered from 0.
    return Streams(replicates.seed).generator("judgement", (1 << 32) + purpose)


def labels() -> np.random.Generator:
    """Return the random numbers that labels are drawn with: always the same, whatever the seed of the run."""
    return Streams(0).generator("judgement", (1 << 33))


levels()  # the files of this folder are imported with it
