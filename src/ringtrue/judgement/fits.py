"""What is known of single fits: what samplers said of themselves, whether chains mixed, and where flagged fits lie.

A flag is never a reason to leave a fit out: the procedure returned it, and the verdict is about the procedure. Here
flags are counted, and what they could mean for the verdict is shown beside it. It reaches no verdict of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..characters import printable
from ..errors import InvalidStudy
from ..replicates.record import DIAGNOSTIC, OF_CHAINS, Failure, Replicates
from ..statistics.separation import Border, Direction, border, direction
from ..values import Floats
from . import chains, inputs, measures
from .column import columns_of
from .groups import one_of_each
from .levels import ADDED, evidence
from .result import Result
from .text import cell, counted, number, plain, table
from .verdict import Tolerance, Verdict, decide, overall

#: The diagnostics whose usual limits are known, by the names that samplers are to use, and between which values a fit
#: is in order. What has no limit flags nothing.
LIMITS: Mapping[str, tuple[float, float]] = {"divergences": (-math.inf, 0.0), "k-hat": (-math.inf, 0.7)}
#: What is computed of chains: the worst over the test functions of the user's.
RHAT, SIZE = "R-hat", "effective size"
#: The chance that a parameter is named whose true values have nothing to do with flags.
_CHANCE = 0.01
#: Fits beyond a border that must all be flagged for "all", at least; and which share of those that are flagged.
_LEAST, _SHARE = 5, 0.2


@dataclass(frozen=True, eq=False)
class Flag:
    """Fits that something is wrong with.

    Attributes
    ----------
    name
        The diagnostic that says so; "mixing" for chains that did not mix.
    fits
        (n,): which; lost ones are not among them.
    text
        How many they are, and what their truths have in common if anything tells them from the others.
    """

    name: str
    fits: NDArray[np.bool_]
    text: str

    @property
    def count(self) -> int:
        """How many fits are flagged."""
        return int(self.fits.sum())


@dataclass(frozen=True)
class Line:
    """A diagnostic over all fits: its range, how many have it, its limits, and how many fits are beyond.

    ``per_chain`` says that the limits are those of one chain.
    """

    name: str
    smallest: float
    median: float
    largest: float
    known: int
    low: float
    high: float
    flagged: int
    per_chain: bool = False

    @property
    def limit(self) -> str:
        """The limits in words."""
        low, high = math.isfinite(self.low), math.isfinite(self.high)
        least, most = f"at least {self.low:g}{' per chain' if self.per_chain else ''}", f"at most {self.high:g}"
        return f"{self.low:g} to {self.high:g}" if low and high else least if low else most if high else "-"


@dataclass(frozen=True)
class Judged:
    """What the verdict would be on some fits: which, how many, the verdict, and its p-value."""

    fits: str
    n: int
    verdict: Verdict
    pvalue: float


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """What is known of single fits.

    Attributes
    ----------
    columns
        Numbers by name, (n,) each, nan where a fit was lost or says nothing: what samplers said, and of Markov chains
        the largest R-hat (rank-normalised, split) and the smallest effective size over test functions.
    flags
        What is wrong, with which fits.
    lines
        The range, the limits and the number of flagged fits of every diagnostic.
    """

    replicates: Replicates
    columns: Mapping[str, Floats]
    flags: tuple[Flag, ...]
    lines: tuple[Line, ...]
    _settings: Mapping[str, Any] = field(repr=False)

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Which fits something is wrong with, (n,)."""
        return np.asarray(sum((one.fits for one in self.flags), np.zeros(self.replicates.n, bool)))

    @cached_property
    def verdicts(self) -> tuple[Judged, ...]:
        """The verdict as it is, if flagged fits could have been anything, and without them; nothing if none is flagged.

        The first is about the procedure. The second is what holds however the flagged fits would have come out, had
        they been run until nothing was wrong with them: they are taken for lost. The third is no verdict on the
        procedure: which fits are flagged depends on the data, and the others are calibrated or not on their own.
        """
        many, ran = int(self.flagged.sum()), self.replicates
        if not many:
            return ()
        found = [Judged("all, as they came", ran.n, *judged(ran, **self._settings))]
        lost = taken_for_lost(ran, self.flagged)
        found.append(Judged(f"all, whatever the {many} flagged would be", ran.n, *judged(lost, **self._settings)))
        rest = ran.pick(np.flatnonzero(~self.flagged))
        if _enough(rest):
            found.append(Judged(f"without the {many} flagged", rest.n, *judged(rest, **self._settings)))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the lines, the flags without their fits, and the verdicts side by side."""
        found: dict[str, Any] = plain(
            {
                "lines": [asdict(one) for one in self.lines],
                "flags": [{"name": one.name, "count": one.count, "text": one.text} for one in self.flags],
                "flagged": int(self.flagged.sum()),
                "verdicts": [{**asdict(one), "verdict": one.verdict.value} for one in self.verdicts],
            }
        )
        return found

    def __str__(self) -> str:
        if not self.lines:
            return "Nothing is known of single fits: they are no Markov chains, and no output came with diagnostics."
        texts = [f"{one.text}." for one in self.flags] or ["No fit is flagged."]
        parts = ["\n".join(texts), lines_table(self.lines)]
        if self.verdicts:
            parts += [verdicts_table(self.verdicts), fill(meaning(self.verdicts), 110)]
        return printable("\n\n".join(parts))


def meaning(rows: Sequence[Judged]) -> str:
    """Say what verdicts side by side mean."""
    text = (
        "The first line is the verdict. The second holds whatever the flagged fits would have been, had nothing been "
        "wrong with them."
    )
    dropped = " The last is no verdict on the procedure: which fits are flagged depends on the data."
    return f"{text}{dropped if len(rows) > 2 else ''}"


def lines_table(lines: tuple[Line, ...]) -> str:
    """Return the diagnostics as a table of text."""
    cells = [("diagnostic", "smallest", "median", "largest", "known", "limit", "flagged")]
    for one in lines:
        low, middle, high = (number(x) for x in (one.smallest, one.median, one.largest))
        flagged = str(one.flagged) if one.limit != "-" else "-"
        cells.append((one.name, low, middle, high, str(one.known), one.limit, flagged))
    return table(cells, right={1, 2, 3, 4, 6})


def verdicts_table(rows: tuple[Judged, ...]) -> str:
    """Return the verdicts side by side as a table of text."""
    cells = [("fits", "n", "verdict", "p")]
    cells += [(one.fits, str(one.n), one.verdict.words, cell(one.pvalue)) for one in rows]
    return table(cells, right={1, 3})


def diagnostics(source: Result | Replicates, *, limits: Mapping[str, Any] | None = None) -> Diagnostics:
    """Return what is known of single fits, and flag those that something is wrong with.

    A flag enters no verdict and leaves no fit out. Chains did not mix if R-hat is above 1.2, they are worth fewer than
    5 draws each, or one of them never moves, for a parameter or function of the user's; that is not said of chains of
    fewer than 50 draws, unless one never moves. Of what samplers say, ``divergences`` flag a fit if there are any, and
    ``k-hat`` if it is above 0.7.

    Parameters
    ----------
    source
        A Result or Replicates.
    limits
        Limits of your own, by name: the largest number that is in order, or the smallest and the largest. Also of
        "R-hat" and "effective size" (of all chains together), besides the rule for mixing; None takes a limit away.

    Examples
    --------
    >>> from ringtrue import Draws, Normal, check
    >>> def fit(mu0, y, rng):
    ...     return Draws(rng.normal(y / 2, 0.5**0.5, size=50), iid=True, diagnostics={"acceptance": rng.random()})
    >>> result = check(Normal(0, 1), lambda theta, rng: theta + rng.normal(), fit, n=50)
    >>> diagnostics(result, limits={"acceptance": (0.1, 1)}).lines[0].limit
    '0.1 to 1'
    """
    ran = source.replicates if isinstance(source, Result) else source
    if not isinstance(ran, Replicates):
        raise TypeError(f"diagnostics needs a Result or Replicates, but {type(source).__name__} arrived.")
    columns = _columns(ran)
    known = _limits(limits or {}, columns)
    settings = {"alpha": 0.05, "tolerance": Tolerance(), "test": "combination"}
    if isinstance(source, Result):
        settings = {"alpha": source.spent, "tolerance": source.tolerance, "test": source.test}
    return Diagnostics(ran, columns, _flags(ran, columns, known), _lines(ran, columns, known), settings)


def _columns(ran: Replicates) -> dict[str, Floats]:
    """Return the numbers of every fit by name, worst over test functions where there is one for each."""
    every = columns_of(ran)
    asked = [column.k for column in every if column.kind not in ADDED] or [column.k for column in every]
    found = {}
    for name, of_chains, worst in ((RHAT, "rhat", np.fmax), (SIZE, "size", np.fmin)):
        array = ran.arrays.get(f"{OF_CHAINS}{of_chains}")
        if array is not None:
            found[name] = worst.reduce(array[:, asked], axis=1)
    said = {name.removeprefix(DIAGNOSTIC): x for name, x in ran.arrays.items() if name.startswith(DIAGNOSTIC)}
    return {name: np.where(ran.kept, x, np.nan) for name, x in (found | dict(sorted(said.items()))).items()}


def _limits(limits: Mapping[str, Any], columns: Mapping[str, Floats]) -> dict[str, tuple[float, float]]:
    """Return the limits by name: the usual ones, and those of the user's."""
    if unknown := [name for name in limits if name not in columns]:
        raise InvalidStudy(f"limits must name diagnostics of this run, {list(columns)}, but {unknown[0]!r} arrived.")
    found = {name: pair for name, pair in LIMITS.items() if name in columns}
    for name, limit in limits.items():
        found.pop(name, None)
        if limit is not None:
            found[name] = _pair(name, limit)
    return found


def _pair(name: str, limit: Any) -> tuple[float, float]:
    try:
        low, high = limit if isinstance(limit, (tuple, list)) else (-math.inf, limit)
        low, high = float(low), float(high)
    except (TypeError, ValueError):
        low = high = math.nan
    if not low <= high:
        raise InvalidStudy(
            f"the limit of {name!r} must be a number, or the smallest and the largest that are in order, but {limit!r} "
            f"arrived."
        )
    return low, high


def _beyond(values: Floats, limits: tuple[float, float]) -> NDArray[np.bool_]:
    return np.asarray((values < limits[0]) | (values > limits[1]))  # nan is neither


def _flags(
    ran: Replicates, columns: Mapping[str, Floats], limits: Mapping[str, tuple[float, float]]
) -> tuple[Flag, ...]:
    found = []
    mixed = chains.mixing(ran)
    if mixed.fits.any():
        where = _where(ran, mixed.fits, chains.mixing(one_of_each(ran)).fits)
        found.append(Flag("mixing", mixed.fits, f"{chains.unmixed(mixed, ran)}{where}"))
    alone = _columns(one_of_each(ran))
    for name, pair in limits.items():
        fits = _beyond(columns[name], pair)
        if fits.any():
            many, n = int(fits.sum()), int(np.isfinite(columns[name]).sum())
            words = f"{many} of {counted(n, 'fit')} {_said(name, pair)}"
            found.append(Flag(name, fits, f"{words}{_where(ran, fits, _beyond(alone[name], pair))}"))
    return tuple(found)


def _said(name: str, limits: tuple[float, float]) -> str:
    if limits == LIMITS.get(name) == (-math.inf, 0.0) and name == "divergences":
        return "diverged"
    ends = [f"{word} {x:g}" for word, x in (("below", limits[0]), ("above", limits[1])) if math.isfinite(x)]
    return f"have {name} {' or '.join(ends)}"


def _lines(
    ran: Replicates, columns: Mapping[str, Floats], limits: Mapping[str, tuple[float, float]]
) -> tuple[Line, ...]:
    found = []
    many = np.maximum(ran.arrays.get("chain_count", np.ones(ran.n)), 2)
    for name, values in columns.items():
        known = values[~np.isnan(values)]
        low, high = limits.get(name, (-math.inf, math.inf))
        flagged = int(_beyond(values, (low, high)).sum())
        per_chain = name not in limits and name == SIZE
        if name not in limits and name in (RHAT, SIZE):
            # What the rule for mixing asks, by which fits of long chains are flagged.
            low, high = (-math.inf, chains.APART) if name == RHAT else (chains.WORTH, math.inf)
            flagged = int((values > high).sum()) if name == RHAT else int((values < low * many).sum())
        ends = np.quantile(known, [0, 0.5, 1], method="nearest").tolist() if known.size else [math.nan] * 3
        found.append(Line(name, ends[0], ends[1], ends[2], known.size, low, high, flagged, per_chain))
    return tuple(found)


# Where flagged fits lie.


def separating(ran: Replicates, fits: NDArray[np.bool_]) -> Direction | None:
    """Return the test function of the user's whose true values tell some fits from the others best; None if none is."""
    asked = [column.k for column in columns_of(ran, "theta") if column.kind not in ADDED]
    truth = ran.truth[ran.kept][:, asked]
    if not asked or not np.isfinite(truth).all():
        return None
    found = direction(truth, fits[ran.kept])
    return found and replace(found, column=asked[found.column])


def _where(ran: Replicates, fits: NDArray[np.bool_], of_independent: NDArray[np.bool_]) -> str:
    """Say what the truths of some fits have in common, if anything; whether it does is asked of independent ones."""
    found = separating(one_of_each(ran), of_independent)
    if found is None or found.pvalue > _CHANCE or not 0 < fits.sum() < ran.kept.sum():
        return ""
    truth, flagged = ran.truth[ran.kept, found.column], fits[ran.kept]
    least = max(_LEAST, math.ceil(_SHARE * int(flagged.sum())))
    edge = border(truth, flagged, low=found.low, least=least)
    return f", among them {_those_beyond(edge, ran.functions[found.column].name, int(flagged.sum()), len(truth))}"


def _those_beyond(edge: Border, name: str, flagged: int, n: int) -> str:
    way = "below" if edge.low else "above"
    whose = f"whose true {name} was {way} {edge.value:g}"
    if edge.flagged_beyond == edge.beyond:
        return f"all {edge.beyond} {whose}"
    rest = f"{flagged - edge.flagged_beyond} of the {n - edge.beyond} others"
    return f"{edge.flagged_beyond} of the {edge.beyond} {whose}, and {rest}"


# What flags could mean for the verdict.


def taken_for_lost(ran: Replicates, fits: NDArray[np.bool_]) -> Replicates:
    """Return the record as if some fits had been lost, so that what is said of it holds whatever they would be."""
    lost = [Failure(int(i) + ran.first, "output", "flagged", "") for i in np.flatnonzero(fits & ran.kept)]
    failures = sorted((*ran.failures, *lost), key=lambda one: one.replicate)
    return replace(ran, failures=tuple(failures))


def judged(ran: Replicates, *, alpha: float, tolerance: Tolerance, test: str) -> tuple[Verdict, float]:
    """Return verdict and p-value of some fits; nobody counts it as a look, since it is shown beside a verdict."""
    if not _enough(ran):
        return Verdict.INCONCLUSIVE, 1.0
    found, _ = evidence(ran, test=test)
    verdict = decide(found, alpha, measures.judged(ran, alpha, tolerance), ran, tolerance)
    if verdict is not Verdict.WITHIN_TOLERANCE:
        return verdict, overall(found)
    in_doubt = any(one.voids for one in inputs.suspicions(ran))
    certified = not in_doubt and certain(ran, alpha=alpha, tolerance=tolerance, test=test)
    return verdict if certified else Verdict.INCONCLUSIVE, overall(found)


def _enough(ran: Replicates) -> bool:
    """Whether two independent fits are left: one alone has nothing to be compared with."""
    alone = one_of_each(ran) if ran.lost < ran.n else ran
    return alone.n - alone.lost >= 2


def certain(ran: Replicates, *, alpha: float, tolerance: Tolerance, test: str) -> bool:
    """Whether a certificate may be given where inputs are in order: it holds whatever unmixed fits would be.

    The test of chains holds its level whatever their autocorrelation, so that fits which did not mix may speak against
    a procedure. But they do not show how wide their outputs are, and so may not speak for it.
    """
    unmixed = chains.mixing(ran).fits
    return (
        not unmixed.any()
        or judged(taken_for_lost(ran, unmixed), alpha=alpha, tolerance=tolerance, test=test)[0]
        is Verdict.WITHIN_TOLERANCE
    )
