"""Contours of two-dimensional clouds of points, whatever their law: heavy tails and quantities above 0 included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from .lattices import Floats

#: Fewer points than this are drawn one by one, as are coordinates with fewer values.
_FEWEST, _VALUES = 100, 30
#: Points with a larger correlation lie on a line, which has no density.
_LINE = 0.9999
#: What contours hold, from the outside in, and points of the grid in each direction.
_SHARES, _GRID = (0.95, 0.8, 0.5), 48


@dataclass(frozen=True, eq=False)
class Cloud:
    """A density on a grid, the heights of contours that hold their shares, and which points lie outside all."""

    x: Floats
    y: Floats
    density: Floats
    levels: tuple[float, ...]
    outside: np.ndarray


def contoured(x: Floats, y: Floats) -> Cloud | None:
    """Return the contours of a cloud; nothing if it has too few points for them.

    Each coordinate is mapped to normal scores, smoothed there, and mapped back: a contour holds the same points in
    both, one wild point moves nothing, and no contour leaves the range of what was seen.

    Examples
    --------
    >>> x, y = np.random.default_rng(1).normal(size=(2, 400))
    >>> cloud = contoured(x, y)
    >>> int(cloud.outside.sum())
    20
    """
    # When contours are drawn, and not before: scipy.stats takes long to import.
    from scipy import stats

    if x.size < _FEWEST or min(np.unique(x).size, np.unique(y).size) < _VALUES:
        return None
    scores = np.array([_scores(x), _scores(y)])
    if abs(np.corrcoef(scores)[0, 1]) > _LINE:
        return None
    density = stats.gaussian_kde(scores)
    heights = density(scores)
    levels = np.quantile(heights, [1 - share for share in _SHARES])
    if not (np.diff(levels) > 0).all():
        return None
    reach = float(np.abs(scores).max())
    grid = np.linspace(-reach, reach, _GRID)
    across, up = np.meshgrid(grid, grid)
    found = density(np.stack([across.ravel(), up.ravel()])).reshape(across.shape)
    ends = [np.interp(grid, np.sort(s), np.sort(values)) for s, values in zip(scores, (x, y), strict=True)]
    return Cloud(ends[0], ends[1], found, tuple(map(float, levels)), heights < levels[0])


def _scores(values: Floats) -> Floats:
    """Return the normal quantile of every value's rank; equal values share theirs."""
    _, which, many = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(many) - many / 2
    return np.asarray(special.ndtri(middle[which] / values.size))
