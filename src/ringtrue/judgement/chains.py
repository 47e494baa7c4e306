"""Markov chains as a judgement reads them: their test, their sizes, and what is said of them.

It turns arrays of the record into calls of ``statistics.chains``. It reaches no verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..characters import one_line
from ..errors import InvalidStudy
from ..replicates.chains import table
from ..replicates.record import OF_CHAINS, Replicates
from ..statistics import chains as statistics
from ..statistics.chains import Chained, ChainTest
from ..statistics.effects import Interval, SpreadAndBias
from ..statistics.groups import per_group
from ..values import Floats
from .text import counted

if TYPE_CHECKING:
    from .column import Column

#: R-hat above which chains are counted in a note.
_RHAT = 1.05
#: A fit did not mix if R-hat is larger, or its draws are worth fewer per chain, for any test function of the user's; it
#: is not said of shorter chains. Of 2 x 50 independent draws 2 in 10^4 would be called so, of AR(.5) with 2 x 50 and
#: 2 x 100 draws 3 % and 0.03 % (20,000 and 8,000 fits); a limit of 1.1 would call 12 and 1 % of the latter two.
APART, WORTH, LONG = 1.2, 5.0, 50
#: Draws that a single chain must be worth to be cut into two. The gap between them is then about one autocorrelation
#: time. At n = 4000 nothing was amiss with chains worth 8 or more; below 7 some were rejected, below 5 nearly all
#: (estimated sizes; AR(1) chains of 40 to 1000 draws).
_SEPARATE = 10.0
#: Test functions that are named.
_NAMED = 3
#: The chance that independent draws are taken for chains.
FALSE_ALARM = 1e-6


def test(column: Column, rng: Callable[[], np.random.Generator]) -> ChainTest:
    """Test one column of chains; without what the test needs, or if losses leave none, the p-value is 1."""
    found = chained(column)
    if found is None:
        return ChainTest("chains, not tested", 0.0, 1.0)
    if column.lost and found.n + column.lost < statistics.FEW:
        return ChainTest(f"chains, not tested with {column.lost} lost", 0.0, 1.0)
    if found.n < statistics.FEW and not column.lost:
        return statistics.label_test(column.array(f"{OF_CHAINS}members"), rng())
    whole = statistics.difference_test(found.differences, reach=found.reach, lost=column.lost)
    return statistics.in_the_tail(whole, None if column.lost else column.array(f"{OF_CHAINS}members"))


def chained(column: Column) -> Chained | None:
    """Return what tests and sizes need; None if it was not kept of all replicates, or single chains are too slow."""
    if f"{OF_CHAINS}differences" not in column.replicates.arrays or _inseparable(column):
        return None
    length = column.array(f"{OF_CHAINS}length")
    differences, below, noise = (_rows(column, name) for name in ("differences", "below", "noise"))
    return Chained(
        differences,
        below,
        noise,
        float(length.mean()),
        np.ptp(table(int(length.max())), axis=0),
        column.lost,
    )


def _rows(column: Column, name: str) -> Floats:
    """Return an array of chains with one row per replicate, or per group of them."""
    found: Floats = column.array(f"{OF_CHAINS}{name}")
    return found if column.groups is None else per_group(found, column.groups)


def _inseparable(column: Column) -> bool:
    """Whether outputs are single chains that are worth too few draws for their two ends to be independent."""
    single = column.replicates.arrays["chain_count"][column.rows] == 1
    size = column.array(f"{OF_CHAINS}size")[single]
    return bool(single.any() and not np.median(size) >= _SEPARATE)


def spread_and_bias(column: Column, *, confidence: float) -> SpreadAndBias:
    """Return spread and bias of a column of chains; endless where they cannot be told."""
    return statistics.spread_and_bias(chained(column) or _UNKNOWN, confidence=confidence)


def coverage(column: Column, *, confidence: float, nominal: float) -> Interval:
    """Return the coverage of central intervals of a column of chains; unknown for other levels than 90 %."""
    known = chained(column) if nominal == statistics.NOMINAL else None
    found = statistics.coverage(known or _UNKNOWN, confidence=confidence)
    return found if known else Interval("coverage", np.nan, 0.0, 1.0, nominal)


def distance(column: Column, *, confidence: float) -> Interval:
    """Return the Kolmogorov distance of a column of chains, as far as seven positions show it."""
    return statistics.distance(chained(column) or _UNKNOWN, confidence=confidence)


_UNKNOWN = Chained(np.empty((0, 2)), np.empty((0, 7)), np.empty((0, 2)), 1.0, np.ones(2))


def too_slow(replicates: Replicates) -> bool:
    """Whether chains of a test function are worth too few draws to show how wide outputs are."""
    from .column import strong_columns

    found = [chained(column) for column in strong_columns(replicates) if column.chains]
    return any(one is None or one.slow for one in found)


def route(column: Column) -> str:
    """Say how many chains of how many draws there are."""
    count, length = (column.replicates.arrays.get(name) for name in ("chain_count", f"{OF_CHAINS}length"))
    if count is None or length is None:
        return "chains"
    many, draws = (np.unique(array[column.replicates.rows]) for array in (count, length))
    if many.size > 1 or draws.size > 1:
        return "chains"
    return "1 chain, cut in two" if many[0] == 1 else f"{many[0]} chains of {draws[0]:g}"


# What is said of them.


def need_independent(replicates: Replicates) -> None:
    """Refuse draws that nobody called independent or chains if neighbours are clearly alike."""
    serial = replicates.arrays.get(f"{OF_CHAINS}serial")
    if serial is None:
        return
    found = statistics.serial_dependence(serial[replicates.rows])
    if found.pvalue < FALSE_ALARM:
        name, draws = replicates.functions[found.function].name, int(np.median(replicates.draws[replicates.rows]))
        which = "neighbouring draws" if found.lag == 1 else "draws two apart"
        raise InvalidStudy(
            f"draws must be independent unless you say otherwise, but {which} of {name!r} have rank correlation "
            f"{found.correlation(min(draws, 200)):.2g}; if they are Markov chains pass chains= (to check_draws, or as "
            f"rt.Draws(values, chains=4) from a procedure), if their order means nothing pass iid=True in the same way."
        )


def notes(replicates: Replicates) -> list[str]:
    """Say how well the chains agree, and what they are worth."""
    rows = replicates.rows
    rhat, size = (replicates.arrays.get(f"{OF_CHAINS}{name}") for name in ("rhat", "size"))
    if rhat is None or size is None:
        return ["some outputs are Markov chains of which too little was kept to test them: run all of them again."]
    worst, least = _worst(rhat[rows]), _least(size[rows])
    lines = []
    if (replicates.arrays["chain_count"][rows] == 1).any():
        lines.append(
            f"a single Markov chain was cut into two, its first and last 45 %, which is approximate; one that is worth "
            f"fewer than {_SEPARATE:g} draws is not tested."
        )
    known = worst[~np.isnan(worst)]
    if known.size:
        low, middle, high = np.quantile(known, [0, 0.5, 1], method="nearest")
        lines.append(
            f"R-hat of Markov chains (rank-normalised, split; the largest over test functions): {low:.3g} to "
            f"{high:.3g}, median {middle:.3g}; above {_RHAT} in {int((known > _RHAT).sum())} of "
            f"{counted(len(worst), 'replicate')}."
        )
    if (worth := least[~np.isnan(least)]).size:
        low, middle, high = np.quantile(worth, [0, 0.5, 1])
        lines.append(f"effective size of their draws: {low:.3g} to {high:.3g}, median {middle:.3g}.")
    return lines


#: The sentence in place of a certificate.
VOID = (
    "INCONCLUSIVE: all sizes lie within tolerance, but not whatever the fits that did not mix would have been, had "
    "they been run until they did."
)


@dataclass(frozen=True, eq=False)
class Mixing:
    """Which fits did not mix.

    Attributes
    ----------
    fits
        (n,): those of which a test function did not mix or never moved; lost ones are not among them.
    still
        (n,): those with a chain that never moves.
    parameters
        In how many fits a test function did not mix, by name, most first.
    """

    fits: NDArray[np.bool_]
    still: NDArray[np.bool_]
    parameters: dict[str, int]


def mixing(replicates: Replicates) -> Mixing:
    """Return which fits did not mix; none if outputs are no chains."""
    from .column import columns_of
    from .levels import ADDED

    stuck, rhat, size, length = (
        replicates.arrays.get(f"{OF_CHAINS}{name}") for name in ("stuck", "rhat", "size", "length")
    )
    none = np.zeros(replicates.n, bool)
    if stuck is None or rhat is None or size is None or length is None:
        return Mixing(none, none, {})
    every = columns_of(replicates)
    asked = [column for column in every if column.kind not in ADDED] or every
    # A single chain is cut into two.
    worth = np.maximum(replicates.arrays["chain_count"], 2) * WORTH
    found, still = {}, none.copy()
    for column in asked:
        k = column.k
        # A chain of a discrete quantity may well stay where it is.
        here = replicates.kept & (stuck[:, k] > 0) & (not column.repeated)
        apart = (rhat[:, k] > APART) | (size[:, k] < worth)
        found[column.name] = here | (replicates.kept & (length[:, k] >= LONG) & apart)
        still |= here
    counts = {name: int(mask.sum()) for name, mask in found.items() if mask.any()}
    ordered = dict(sorted(counts.items(), key=lambda pair: -pair[1]))
    return Mixing(np.logical_or.reduce(list(found.values())), still, ordered)


def trouble(replicates: Replicates) -> str:
    """Say which fits did not mix, if any did not."""
    found = mixing(replicates)
    many, still = int(found.fits.sum()), int(found.still.sum())
    if not many:
        return ""
    text = f" {one_line(unmixed(found, replicates))}: "
    if still:
        text += "see whether the sampler accepts anything"
    else:
        text += "run them longer"
    return f"{text}. The verdict takes their draws as they came; see result.diagnostics."


def unmixed(found: Mixing, replicates: Replicates) -> str:
    """Say how many fits did not mix, and for which test functions."""
    many, still, n = int(found.fits.sum()), int(found.still.sum()), replicates.n - replicates.lost
    which = [f"{name} in {count}" for name, count in list(found.parameters.items())[:_NAMED]]
    rest = len(found.parameters) - len(which)
    names = ", ".join([*which, *([f"{rest} more"] if rest else [])])
    how_many = "all" if still == many else str(still)
    never = f"; in {how_many} of them a chain never moves, and is worth one draw" if still else ""
    return f"{many} of {counted(n, 'fit')} did not mix ({names}{never})"


def _worst(rhat: Floats) -> Floats:
    """Return the largest over test functions; nan if none is known."""
    known = ~np.isnan(rhat)
    return np.asarray(np.where(known.any(axis=1), np.where(known, rhat, -np.inf).max(axis=1), np.nan))


def _least(size: Floats) -> Floats:
    return -_worst(-size)
