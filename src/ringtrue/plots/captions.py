"""How to read *this* picture, in one sentence, from numbers and never from the picture.

What a histogram of positions shows is in three things: the spread and the bias with their intervals, and where the
distribution function leaves its band. This module turns them into words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from .. import miscalibration
from ..replicates import Replicates
from . import lattices
from .lattices import Curve
from .selection import Source, choose, replicates_of

#: More in the outermost parts than a normal law of the fitted width puts there, by chance once in so many pictures.
_RARE = 1e-4
#: The outermost part at each end; fewer draws than the second number cannot tell outliers from width.
_END, _TELLING = 0.005, 199


@dataclass(frozen=True)
class _Spikes:
    """Where outliers are, the share of truths at the ends, and the spread without regard to outliers."""

    where: str
    share: float
    spread: float


@dataclass(frozen=True)
class _Fit:
    """Spread and bias with their intervals, and the outliers that they do not explain."""

    spread: miscalibration.Measure
    bias: miscalibration.Measure
    spikes: _Spikes | None


def reading(source: Source, k: int | str = 0, *, level: float = 0.95) -> str:
    """Say in one sentence how to read the histogram or ECDF of one test function.

    Parameters
    ----------
    source
        A Result or Replicates.
    k
        The number of a column, or the name of a test function.
    level
        Of the band, and of the intervals of spread and bias jointly.

    Notes
    -----
    Shapes are named if their numbers are evident: U-shaped if the interval of the spread lies above 1, humped if below,
    sloping if that of the bias excludes 0, spiked if the outermost parts hold more truths than a normal law of fitted
    width and place puts there, which fewer than 199 draws do not tell. It speaks about one test function alone; the
    verdict counts all of them. At the default level a calibrated picture is called flat 93 times in 100 (measured with
    500 exact values), since the band and the intervals each have their own chance of error.

    Examples
    --------
    >>> from ringtrue import check_draws
    >>> rng = np.random.default_rng(1)
    >>> reading(check_draws(2 * rng.normal(size=500), rng.normal(size=(500, 19)))).split(",")[0]
    'U-shaped: over-confident'
    """
    ran = replicates_of(source)
    column = choose(ran, k, most=1).columns[0] if isinstance(k, str) else _as_index(ran, k)
    if ran.n - len(ran.failures) == 1:
        return "One replicate: its position tells nothing of calibration."
    found = lattices.curve(lattices.positions(ran, column), level=level)
    if ran.columns[column].level != "strong":
        return _finished(_of_other_level(ran.columns[column].level, found), ran)
    return _finished(_of_fit(_fitted(ran, column, level), found), ran)


def _as_index(ran: Replicates, k: int) -> int:
    if not -len(ran.columns) <= k < len(ran.columns):
        raise IndexError(f"k must be the number of one of {len(ran.columns)} test functions, but {k} came.")
    return int(k)


def _finished(text: str, ran: Replicates) -> str:
    lost = len(ran.failures)
    return f"{text} (the {lost} lost left out)." if lost else f"{text}."


def _fitted(ran: Replicates, k: int, level: float) -> _Fit:
    draws = ran.lattice(k)
    values = ran.z[ran.rows, k] if draws is None else ran.rank[ran.rows, k]
    both = miscalibration.spread_and_bias(values, draws=draws, level=1 - (1 - level) / 2)
    return _Fit(both.spread, both.bias, _spikes(ran, k))


def _spikes(ran: Replicates, k: int) -> _Spikes | None:
    """Return at which ends there are more truths than a normal law fitted without regard to outliers has."""
    draws, u = ran.lattice(k), ran.u[ran.rows, k]
    if draws is not None and draws < _TELLING:
        return None
    robust = miscalibration.moment_spread_and_bias(u if draws is None else ran.rank[ran.rows, k], draws=draws)
    if not (0 < robust.spread < math.inf and math.isfinite(robust.bias)):
        return None
    width, edge = max(robust.spread, 1.0), special.ndtri(_END)
    expected = np.array([special.ndtr((edge - sign * robust.bias) / width) for sign in (1, -1)])
    counts = [int((u < _END).sum()), int((u >= 1 - _END).sum())]
    if _at_least(sum(counts), u.size, float(expected.sum())) >= _RARE:
        return None
    clear = [_at_least(count, u.size, float(p)) < 0.01 for count, p in zip(counts, expected, strict=True)]
    where = "both ends" if clear[0] == clear[1] else "the lower end" if clear[0] else "the upper end"
    return _Spikes(where, sum(counts) / u.size, robust.spread)


def _at_least(count: int, n: int, p: float) -> float:
    """Return the chance of so many hits or more."""
    return float(special.bdtrc(count - 1, n, p)) if count else 1.0


def _of_fit(fit: _Fit, found: Curve) -> str:
    shapes, meanings = [], []
    if fit.spikes:
        shapes.append(f"spiked at {fit.spikes.where}")
        meanings.append(
            f"outliers, {_percent(fit.spikes.share)} of truths in the outermost {200 * _END:g} % of their outputs; the "
            f"rest has a spread factor of about {fit.spikes.spread:.2f}, so mend the outliers, not the width"
        )
    elif fit.spread.low > 1:
        shapes.append("U-shaped")
        meanings.append(f"over-confident, multiply the reported sd by {_numbers(fit.spread)}")
    elif fit.spread.high < 1:
        shapes.append("humped")
        meanings.append(f"under-confident, multiply the reported sd by {_numbers(fit.spread)}")
    if not fit.bias.low <= 0 <= fit.bias.high:
        up = fit.bias.low > 0
        shapes.append("sloping up to the right" if up else "sloping down to the right")
        meanings.append(f"biased, outputs lie {_numbers(fit.bias)} of their sd {'below' if up else 'above'} the truth")
    return _joined(shapes, meanings, found, fit)


def _joined(shapes: list[str], meanings: list[str], found: Curve, fit: _Fit) -> str:
    where = _where(found)
    if not shapes and not where:
        return f"Flat within its band: nothing to see here; {_known(fit)}"
    if where and not np.any((found.share > 0) & (found.share < 1)):
        j, edges = int(np.sum(found.share == 0)), 100 * np.r_[0.0, found.points, 1.0]
        return (
            f"One bar alone: all truths lie from the {edges[j]:.3g} % to the {edges[j + 1]:.3g} % point of their output"
        )
    if not shapes:
        return f"Neither wider, narrower nor shifted, but not flat: {where}"
    head = " and ".join([", ".join(shapes[:-1]), shapes[-1]] if len(shapes) > 1 else shapes)
    text = f"{head[0].upper()}{head[1:]}: {'; '.join(meanings)}"
    return f"{text}; {where}" if where else f"{text}; the curve stays within its band all the same"


def _known(fit: _Fit) -> str:
    if not math.isfinite(fit.spread.high):
        return "so few replicates or draws would hide any spread"
    return (
        f"a spread factor from {fit.spread.low:.2f} to {fit.spread.high:.2f} and a bias from {fit.bias.low:.2f} to "
        f"{fit.bias.high:.2f} sd would look like this too"
    )


def _of_other_level(level: str, found: Curve) -> str:
    where = _where(found)
    if not where:
        return "Flat within its band: nothing to see here"
    if level == "exact":
        return f"Not flat, so the output is not the exact posterior: {where}"
    return f"Not flat, so the output does not know its own error: {where}"


def _where(found: Curve) -> str:
    """Say where the curve is farthest above its band and farthest below, each in terms of the nearer end."""
    places = []
    for beyond in (found.share - found.high, found.low - found.share):
        if beyond.size and beyond.max() > 0:
            places.append(int(np.argmax(beyond)))
    parts = [_part(float(found.points[j]), float(found.share[j])) for j in sorted(places)]
    words = list(dict.fromkeys(word for word, _ in parts))
    if len(words) == 1:
        return f"too {words[0]} truths in the {' and the '.join(where for _, where in parts)}"
    return " and ".join(f"too {word} truths in the {where}" for word, where in parts)


def _part(p: float, share: float) -> tuple[str, str]:
    """Return whether truths are many or few in the nearer end, and which part that is."""
    part, actual, end = (p, share, "lowest") if p <= 0.5 else (1 - p, 1 - share, "highest")
    return "many" if actual > part else "few", f"{end} {100 * part:.2g} % of the output ({_percent(actual)} of them)"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.2g} %"


def _numbers(m: miscalibration.Measure) -> str:
    estimate, *ends = (abs(value) for value in (m.estimate, m.low, m.high))
    low, high = sorted(ends)
    if not math.isfinite(high) or not math.isfinite(estimate):
        return f"more than {low:.2f}"
    return f"{estimate:.2f} ({low:.2f}-{high:.2f})"
