"""Replicates that come in groups as a judgement reads them: their test, their sizes, and what is said of them.

It turns columns into calls of ``statistics.groups``. What has no valid form for groups is asked of one replicate of
each, which are independent. It reaches no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..replicates.record import GROUP, ONE_OF_GROUP, Replicates
from ..statistics import combining
from ..statistics import groups as statistics
from ..statistics.uniformity import UniformityTest
from ..streams import Streams
from .text import counted

if TYPE_CHECKING:
    from .column import Column

#: How often one replicate of each group is chosen anew. Fifteen against one: with 20 groups of five the power against
#: a spread of 1.4 rises from 0.60 to 0.80 where replicates are nearly independent, and stays 0.73 where they are equal.
_TIMES = 15
#: Streams of a judgement that choose: far from those that it has for other purposes.
_CHOICES, _NOISE = 1 << 20, 1 << 21


def test(
    column: Column, scores: Any, alone: Callable[[Column], Any], *, draws: int | None, smooth: bool
) -> UniformityTest:
    """Test that the positions of a column are uniform, whatever the dependence within groups.

    One replicate of each group, chosen at random, is an independent sample; several choices give exchangeable p-values,
    which are combined. That is exact for any number of groups, and sees no more than one of each. The score test sees
    all replicates. Half of the error is for each.

    Parameters
    ----------
    column
        With groups.
    scores
        z or ranks of its replicates, in their order.
    alone
        Tests a column of independent replicates.
    draws
        Among how many draws, if these are ranks.
    smooth
        Whether the score test has a half.
    """
    each = [alone(part) for part in _choices(column)]
    p = combining.prefix_two_median([one.pvalue for one in each])
    method, statistic = f"{each[0].method}, one of each group", each[0].statistic
    if not smooth or column.lost:
        return UniformityTest(method, statistic, p)
    assert column.groups is not None
    both = statistics.score_test(scores, column.groups, draws=draws)
    together = combining.weighted_minimum([p, both.pvalue], [0.5, 0.5])
    # The method is that of the test that says more.
    return UniformityTest(method, statistic, together) if p < both.pvalue else replace(both, pvalue=together)


def _choices(column: Column) -> Iterator[Column]:
    """Yield the column of one replicate of every group, several times; those that were lost may be chosen too."""
    rng = _stream(column.replicates, _CHOICES + column.k)
    for _ in range(_TIMES):
        yield column.independent(*_one_of_each(column, rng))


def _one_of_each(column: Column, rng: np.random.Generator) -> tuple[Any, int]:
    """Return the replicates that were chosen and not lost, and how many of those chosen were lost."""
    replicates = column.replicates
    every = np.arange(replicates.n)
    # A part of the column, such as one side of a split, is of whole groups; losses are refused there.
    asked = every if column.whole else every[column.rows]
    chosen = asked[statistics.one_of_each(replicates.arrays[GROUP][asked], rng)]
    living = chosen[replicates.kept[chosen]]
    return living, len(chosen) - len(living)


def one_of_each(replicates: Replicates) -> Replicates:
    """Return one replicate of every group, chosen at random once and for all; all of them if there are no groups."""
    if GROUP not in replicates.arrays:
        return replicates
    known: Replicates | None = vars(replicates).get("_one_of_each")
    if known is None:
        rows = statistics.one_of_each(replicates.arrays[GROUP], _stream(replicates, _CHOICES - 1))
        picked = replicates.pick(rows)
        arrays = {ONE_OF_GROUP if name == GROUP else name: array for name, array in picked.arrays.items()}
        known = replace(picked, arrays=arrays, header=replace(picked.header, datasets=1))
        vars(replicates)["_one_of_each"] = known
    return known


def noise(column: Column) -> np.random.Generator:
    """Return random numbers for the intervals of a column."""
    return _stream(column.replicates, _NOISE + column.k)


def _stream(replicates: Replicates, purpose: int) -> np.random.Generator:
    return Streams(replicates.seed).generator("judgement", (1 << 33) + purpose)


def notes(replicates: Replicates) -> list[str]:
    """Say that groups are independent, and what is known of one replicate of each only."""
    groups = replicates.arrays.get(GROUP)
    if groups is None:
        return []
    many = np.unique(groups).size
    return [
        f"{counted(replicates.n, 'replicate')} come in {counted(many, 'group')}, and only groups count as independent: "
        f"tests, spread, bias, coverage and distance allow for any dependence within them; usefulness, the kind of "
        f"error, comparisons with draws of the belief and pictures are of one replicate of each; the joint test of all "
        f"test functions is left out."
    ]
