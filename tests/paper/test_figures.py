"""The figures of the paper at their printed size: nothing covers anything, and what is clipped is marked as such."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from ringtrue.paper import gallery, style

from ..plots.geometry import faults, texts

pytestmark = [pytest.mark.paper, pytest.mark.slow]
#: Vignettes, and scales at which they take a second or two.
SCALES = {"examples": 0.01, "richardson": 0.01, "forecasters": 0.01, "laplace": 0.001, "robust": 0.02}


@cache
def made(name: str) -> Any:
    """Return the data of a small run."""
    return gallery.vignette(name).make(scale=SCALES[name], seed=1)


@pytest.mark.parametrize("name", SCALES)
def test_nothing_lies_on_anything(name: str) -> None:
    """No text on text, no legend on data, no type below 7 pt, no axis without a name; nor how long it took."""
    figure: Figure = gallery.vignette(name).draw(made(name))
    assert faults(figure) == []
    written = " ".join(text.get_text() for text in texts(figure))
    assert "scale" not in written
    assert "seed 1" in written


@pytest.mark.parametrize("name", ["laplace", "robust"])
def test_statistics_of_the_weak_test_are_distances(name: str) -> None:
    """Every statistic lies within sampling noise of its population value, 1 in 16,000 each; a distance is at most 1."""
    rows = made(name)["rows"]
    keys = ("ks", "reference") if name == "laplace" else ("ks_weak", "ks_weak_exact")
    n = made(name)["settings"]["n"]
    gaps = [abs(row[keys[0]] - row[keys[1]]) for row in rows]
    assert max(gaps) < 2.9 / np.sqrt(n)  # 80 of them: 2 exp(-2 * 2.9^2) * 80 < 1e-5


def test_small_pvalues_are_marked_as_clipped() -> None:
    """Below the floor a p-value has a hollow mark of its own and not that of its line; above, there is none."""
    axes: Any = Figure().subplots()
    style.draw_pvalues(axes, [1, 2, 3], [0.5, 1e-40, 0.0], "o-", color="k")
    line, clipped = axes.lines
    assert line.get_markevery() == [0]
    assert (list(clipped.get_xdata()), list(clipped.get_ydata())) == ([2, 3], [style.FLOOR] * 2)
    assert (clipped.get_marker(), clipped.get_markerfacecolor()) == ("v", "white")
    style.draw_pvalues(axes, [1, 2], [0.5, 1e-20], "o-", color="k")
    assert len(axes.lines) == 3
