"""What is drawn of correlations is what the test computed."""

import numpy as np
import pytest

import ringtrue as rt
from ringtrue import plots

from ..builders import complete, line, replicates
from .test_overview import texts


def test_stems_and_band_are_those_of_the_test() -> None:
    """Stems of u and of squares end at the correlations, and the grey bars are the simultaneous band."""
    ran = complete(60)
    found = rt.independence(ran, lags=3, confidence=0.9).correlogram
    ax = plots.correlogram(ran, lags=3, confidence=0.9)
    for moment, label in enumerate(("u", "(u - mean)²")):
        x, y = line(ax, label)
        assert y == pytest.approx(found.correlations[0, moment])
        assert np.rint(x).tolist() == [1, 2, 3]
    bars = [bar for bars in ax.containers for bar in bars]
    assert [bar.get_y() for bar in bars] == pytest.approx(found.centre - found.half_widths)
    assert [bar.get_height() for bar in bars] == pytest.approx(2 * found.half_widths)
    assert "90 % band" in texts(ax.figure)


def test_a_stem_leaves_the_band_exactly_if_the_test_rejects() -> None:
    """The picture and the p-value say the same, for series that follow each other and series that do not."""
    for u in (np.linspace(0.01, 0.99, 40), np.random.default_rng(1).random(40)):
        ran = replicates(u)
        ax = plots.correlogram(ran)
        bars = [bar for bars in ax.containers for bar in bars]
        low = np.array([bar.get_y() for bar in bars])
        high = low + [bar.get_height() for bar in bars]
        stems = np.array([line(ax, label)[1] for label in ("u", "(u - mean)²")])
        assert ((stems < low) | (stems > high)).any() == (rt.independence(ran).pvalue <= 0.05)


def test_each_function_has_a_panel_and_of_many_the_largest() -> None:
    """Twelve panels at most, those with the largest correlations; on one Axes the very largest."""
    u = np.random.default_rng(2).random((40, 15))
    u[:, 14] = np.linspace(0.01, 0.99, 40)
    drawn = plots.correlogram(replicates(u))
    assert len(drawn) == 12
    assert drawn[0].get_title(loc="left") == "f14"
    assert "of 15 test functions" in texts(drawn[0].figure)
    ax = drawn[0].figure.add_subplot()
    assert plots.correlogram(replicates(u), ax=ax).get_title(loc="left") == "f14"


def test_lags_without_pairs_are_drawn() -> None:
    """If every second replicate was lost lag 1 has no pairs: its band reaches over the panel."""
    ran = replicates(np.random.default_rng(3).random(40), lost=range(1, 40, 2))
    ax = plots.correlogram(ran, lags=2)
    first = next(bar for bars in ax.containers for bar in bars)
    assert first.get_y() < ax.get_ylim()[0]
    assert line(ax, "u")[1][0] == 0
