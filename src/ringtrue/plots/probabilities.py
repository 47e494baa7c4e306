"""Reliability diagrams: how often what was called likely came, with the band that right probabilities stay in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidStudy
from ..judgement.column import columns_of
from ..judgement.outcomes import Outcomes, outcomes_of
from ..judgement.probabilities import ProbabilityResult
from ..statistics.effects.reliability import Corp, consistency_band, corp
from ..streams import Streams
from .headers import heads, settle
from .selection import Source, choose
from .style import COLOURS, NULL, Size, journal, most_panels, panels, returned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Bars of the histogram of probabilities, and the part of the picture that the highest takes.
_BARS, _HIGHEST = 20, 0.14
#: Where the curve stands: further away than this from the band is outside, rounding aside.
_OUTSIDE = 1e-9


@dataclass(frozen=True, eq=False)
class _Diagram:
    """One panel: what came, the curve, and the band at each of its probabilities."""

    name: str
    outcomes: Outcomes
    scores: Corp
    low: Any
    high: Any


def reliability(
    source: Source | ProbabilityResult,
    f: str | Iterable[str] | None = None,
    *,
    level: float = 0.9,
    figsize: Size = None,
    ax: Any = None,
) -> Any:
    """Draw how often outcomes came against the probability that was reported; the diagonal is calibrated.

    The curve is the increasing one that fits outcomes best (isotonic regression, "CORP"), so that there are no bins to
    choose. Flatter than the diagonal is too sure, steeper not sure enough, above it too low, below it too high. Where
    it leaves the band it is drawn thick. Bars show how often each probability was reported. The small print has the
    parts of the mean Brier score MCB - DSC + UNC: miscalibration (and what of it is beyond chance), discrimination,
    and the uncertainty of the outcome itself.

    Parameters
    ----------
    source
        What :func:`ringtrue.check_probabilities` returned; or a Result or Replicates with test functions that have few
        values.
    f
        Names of these test functions; left out, all of them, at most twelve panels.
    level
        Chance that the curve of right probabilities stays in the band, at each probability on its own.
    figsize
        Width and height of a new figure, in inches.
    ax
        Where to draw: Axes, one for each panel.

    Examples
    --------
    >>> from ringtrue import check_probabilities
    >>> rng = np.random.default_rng(1)
    >>> p = rng.random(200)
    >>> reliability(check_probabilities(rng.random(200) < p, p)).get_xlabel()
    'reported probability'
    """
    cases = _cases(source, f)[: most_panels(ax, figsize)]
    found = [_diagram(name, outcomes, level, k) for k, (name, outcomes) in enumerate(cases)]
    with journal(ax):
        drawn = panels(ax, len(found), figsize=figsize, height=3.2)
        for one, diagram in zip(drawn, found, strict=True):
            _draw(one, diagram)
        settle(drawn, ax)
        heads(drawn, [diagram.name for diagram in found], [_note(diagram, level) for diagram in found])
    return returned(drawn)


def _cases(source: Any, f: Any) -> list[tuple[str, Outcomes]]:
    """Return outcomes with names, one for each panel."""
    if isinstance(source, ProbabilityResult):
        return [(one.name or "outcome", one) for one in source.outcomes]
    chosen = choose(source, f, most=10**9)
    each = [(column.name, outcomes_of(column)) for column in (columns_of(chosen.replicates)[k] for k in chosen.columns)]
    cases = [(f"{name} = {one.name}" if one.name else name, one) for name, found in each for one in found]
    if not cases:
        names = ", ".join(repr(name) for name, _ in each[:3])
        raise InvalidStudy(
            f"a reliability diagram needs a test function with values 0 and 1, or few labels, but {names} arrived; ask "
            f"about ringtrue.Indicator(...)."
        )
    return cases


def _diagram(name: str, outcomes: Outcomes, level: float, k: int) -> _Diagram:
    rng = Streams(0).generator("judgement", (1 << 35) + k)
    scores = corp(outcomes.outcome, outcomes.probability, rng=rng)
    at, low, high = consistency_band(outcomes.probability, rng=rng, level=level)
    here = scores.probability
    return _Diagram(name, outcomes, scores, np.interp(here, at, low), np.interp(here, at, high))


def _draw(ax: Axes, found: _Diagram) -> None:
    at, curve = found.scores.probability, found.scores.curve
    ax.plot([0, 1], [0, 1], color="0.15", lw=0.7, ls="--", zorder=2)
    ax.fill_between(at, found.low, found.high, color=NULL, alpha=0.45, lw=0, label="band", zorder=1)
    ax.plot(at, curve, color=COLOURS[0], lw=1.2, label="curve", zorder=4)
    outside = (curve > found.high + _OUTSIDE) | (curve < found.low - _OUTSIDE)
    ax.plot(at, np.where(outside, curve, np.nan), color=COLOURS[1], lw=2.4, solid_capstyle="butt", zorder=5)
    if outside.any():  # a single probability has no length
        alone = outside & ~np.r_[False, outside[:-1]] & ~np.r_[outside[1:], False]
        ax.plot(at[alone], curve[alone], "s", color=COLOURS[1], ms=3, zorder=5)
    _bars(ax, found.outcomes.probability)
    drawn = found.outcomes.draws is not None
    ax.set(
        xlim=(0, 1),
        ylim=(0, 1),
        box_aspect=1,
        # What stands above begins at the left, and knows the width before the box is square.
        anchor="W",
        xlabel="share among truth and draws" if drawn else "reported probability",
        ylabel="share that came",
    )


def _bars(ax: Axes, probability: Any) -> None:
    """Draw how often probabilities were reported, at the foot of the picture."""
    counts, edges = np.histogram(probability, bins=_BARS, range=(0, 1))
    heights = _HIGHEST * counts / max(counts.max(), 1)
    ax.bar(edges[:-1], heights, np.diff(edges), align="edge", fc=COLOURS[5], ec="white", lw=0.4, alpha=0.8, zorder=1.5)


def _note(found: _Diagram, level: float) -> str:
    """Say n, what is grey, and the parts of the Brier score, of which the diagram shows the first."""
    scores = found.scores
    parts = (
        f"MCB {scores.miscalibration:.4f} ({scores.excess:+.4f})",
        f"DSC {scores.discrimination:.4f}",
        f"UNC {scores.uncertainty:.4f}",
    )
    return f"n = {len(found.outcomes.outcome)}; grey: {100 * level:g} % band; {', '.join(parts)}"


def has_diagrams(source: Source, names: Sequence[str]) -> bool:
    """Whether all of these test functions have few values, so that a reliability diagram can be drawn of each."""
    chosen = choose(source, names, most=10**9)
    return all(outcomes_of(columns_of(chosen.replicates)[k]) for k in chosen.columns)
