"""Whether replicates are independent over their order, or depend on those before.

Everything else here takes replicates for independent: this is the one place that asks. It enters no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..characters import one_line
from ..errors import InvalidStudy
from ..replicates.record import GROUP, ORDER, Replicates
from ..statistics.dependence import LAGS, Correlogram, correlogram
from ..values import Floats
from .column import columns_of
from .levels import ADDED
from .result import Result
from .text import counted, format_p, number


@dataclass(frozen=True, eq=False)
class Independence:
    """What the order of replicates says.

    Attributes
    ----------
    functions
        Names of the test functions that were tested together.
    correlogram
        The correlations, (functions, 2, lags), their joint band, and the p-value.
    given
        Whether the order came with the draws; otherwise it is that of the rows.
    lost
        How many replicates were lost: each keeps its place, and pairs with it are left out.
    """

    functions: tuple[str, ...]
    correlogram: Correlogram
    given: bool
    lost: int

    @property
    def pvalue(self) -> float:
        """That of all correlations together, by permutation."""
        return self.correlogram.pvalue

    def __str__(self) -> str:
        found = self.correlogram
        series, moment, lag = found.worst
        half = float(found.half_widths[lag - 1])
        of = "u" if not moment else "(u - mean)^2"
        name = f" for {self.functions[series]}" if len(self.functions) > 1 else ""
        parts = [
            f"independence over the order {'given' if self.given else 'of the replicates'}: {format_p(self.pvalue)}",
            f"lag-{lag} correlation of {of}{name} {number(float(found.correlations[series, moment, lag - 1]))} "
            f"({100 * found.confidence:g} % band of all {found.correlations.size} correlations: "
            f"{number(found.centre - half)} to {number(found.centre + half)})",
        ]
        if self.lost:
            parts.append(f"{counted(self.lost, 'lost replicate')} kept as a gap in the order")
        return one_line(f"{'; '.join(parts)}.{self._meaning()}")

    def _meaning(self) -> str:
        if self.pvalue > 1.0 - self.correlogram.confidence:
            return ""
        simulated = "a procedure that learns from one dataset to the next, or random numbers that fits share, do this"
        cause = "forecasts that overlap, or a fault that lasts, do this" if self.given else simulated
        return f" Replicates depend on their order: {cause}. Other p-values and intervals take them for independent."


def independence(
    source: Result | Replicates,
    *,
    f: str | Iterable[str] | None = None,
    lags: int | None = None,
    confidence: float = 0.95,
) -> Independence:
    """Test whether the positions of truths are independent over the order of the replicates.

    The null hypothesis is that replicates are independent and of one law, calibrated or not: uniformity is what a
    verdict is about. Correlations of u, and of its squared distance from its mean, at lags 1, 2, ... are compared with
    those of random orders; the band is simultaneous, and the p-value exact. What does not show in them is not seen: an
    output that leans towards the dataset just before it leaves no trace, since the u of that dataset is independent of
    it, while one that leans towards an average of many does.

    Parameters
    ----------
    source
        A Result or Replicates. With ``check_draws(..., order=)`` the order is the one given; otherwise that of the
        rows: the order in which arrays came, or in which a run numbered its replicates. Simulated replicates ought to
        be independent, so that this is a check of the run.
    f
        Names of test functions; left out, the user's parameters and functions of theta.
    lags
        How far apart replicates are compared; by default 4, and at most half as many as there are replicates.
    confidence
        Of the band.

    Examples
    --------
    >>> import numpy as np
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> result = check_draws(np.cumsum(rng.normal(size=50)), rng.normal(size=(50, 19)), f=lambda t: t)
    >>> independence(result).pvalue
    0.0001
    """
    ran = source.replicates if isinstance(source, Result) else source
    if not isinstance(ran, Replicates):
        raise TypeError(f"independence needs a Result or Replicates, but {type(source).__name__} arrived.")
    if GROUP in ran.arrays:
        raise InvalidStudy("replicates that come in groups depend on each other by themselves; ask about one of each.")
    names = _names(ran, f)
    most = min(LAGS, (ran.n - ran.lost) // 2) if lags is None else lags
    found = correlogram(_in_order(ran, names), lags=max(most, 1), confidence=confidence, seed=ran.seed)
    return Independence(names, found, ORDER in ran.arrays, ran.lost)


def note(replicates: Replicates, alpha: float) -> list[str]:
    """Return the line of a result about the order that was given; none if there is no such order."""
    if ORDER not in replicates.arrays:
        return []
    if replicates.n - replicates.lost < 4:
        return ["independence over the order given was not tested: that needs at least 4 replicates."]
    return [str(independence(replicates, confidence=1.0 - alpha))]


def _names(ran: Replicates, f: Any) -> tuple[str, ...]:
    known = [column.name for column in columns_of(ran)]
    if f is not None:
        wanted = (f,) if isinstance(f, str) else tuple(f)
        if not wanted or not set(wanted) <= set(known):
            raise InvalidStudy(f"f must name test functions of this run, such as {known[:10]}, but {f!r} came.")
        return wanted
    asked = columns_of(ran, "theta") or columns_of(ran)
    # What the default family adds follows from the entries, and would cost power.
    return tuple(column.name for column in asked if column.kind not in ADDED) or (asked[0].name,)


def _in_order(ran: Replicates, names: tuple[str, ...]) -> Floats:
    """Return u, (n, functions), in the order; lost replicates are rows of nan at their places."""
    known = [one.name for one in ran.functions]
    values = ran.u[:, [known.index(name) for name in names]]
    return values[ran.arrays[ORDER].argsort()] if ORDER in ran.arrays else values
