"""The vignette on Laplace's approximation: its numbers are the population's, and its sentences follow from them."""

import json
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.paper import laplace
from ringtrue.procedures import Inflated, StudentLocation

pytestmark = pytest.mark.paper

# By the Dvoretzky-Kiefer-Wolfowitz inequality |D_n - D| > c / sqrt(n) with probability at most 2 exp(-2 c^2): 1e-7 for
# c = 2.9, with eight statistics below 1e-6 in all. The smallest error seen with miss rate 1e-3 is (2.9 + 1.95) /
# sqrt(n), which is 0.011 at n = 200,000.
WIDTH = 2.9


def distances(nu: int, size: int, procedure: Any, n: int) -> dict[str, float]:
    """Return the Kolmogorov-Smirnov statistics by level."""
    model = StudentLocation(nu, size)
    result = rt.check(
        rt.Normal(0, 1), model.simulate, procedure, n=n, f=rt.identity, batch=8192, seed=1, test="ks", progress="off"
    )
    return {row.level: row.statistic for row in result.tests if row.method == "ks"}


@pytest.mark.parametrize(("nu", "size"), [(1, 5), (20, 5), (3, 1), (3, 10)])
def test_statistics_are_the_populations(nu: int, size: int) -> None:
    """The KS statistics are within sampling noise of the integrated distances, strong and weak."""
    n = 200_000
    found = distances(nu, size, StudentLocation(nu, size), n)
    for level, reference in zip(laplace.LEVELS, laplace.REFERENCE[nu, size], strict=True):
        assert abs(found[level] - reference) < WIDTH / np.sqrt(n)


def test_another_variance_would_be_seen() -> None:
    """The broken twin: with half the variance the statistics are not the population's."""
    n = 200_000
    found = distances(1, 5, Inflated(StudentLocation(1, 5), 0.5), n)
    assert abs(found["strong"] - laplace.REFERENCE[1, 5][0]) > WIDTH / np.sqrt(n)


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Return the vignette at a thousandth of its size."""
    return laplace.make(scale=0.001, seed=3)


def test_data_are_plain_and_complete(data: dict[str, Any]) -> None:
    """There is a row for each of 40 settings and 2 levels, it survives JSON, and the settings say what was run."""
    assert json.loads(json.dumps(data)) == data
    assert data["settings"]["n"] == 1000
    assert len(data["rows"]) == 80
    keys = {(row["setting"], row["nu"], row["N"], row["level"]) for row in data["rows"]}
    assert keys == {(s, *key, level) for s, some in laplace.SERIES.items() for key in some for level in laplace.LEVELS}
    assert all(0 <= row["p_ks"] <= 1 and 0 <= row["p_default"] <= 1 for row in data["rows"])


def test_data_are_a_function_of_the_seed(data: dict[str, Any]) -> None:
    """The same seed gives the same rows, another seed others."""
    again, other = laplace.make(scale=0.001, seed=3), laplace.make(scale=0.001, seed=4)
    assert again["rows"] == data["rows"]
    assert all(a["ks"] != b["ks"] for a, b in zip(other["rows"], data["rows"], strict=True))


def test_progress_sees_every_setting() -> None:
    """The work items are the 39 different settings."""
    seen = []

    def watch(items: Any) -> Any:
        for item in items:
            seen.append(item)
            yield item

    laplace.make(scale=0.0001, progress=watch)
    assert len(seen) == len(set(seen)) == 39


def test_lines_say_what_is_not_reproduced(data: dict[str, Any]) -> None:
    """There is a line per row, and the claim that fails is named with its numbers."""
    text = laplace.lines(data)
    assert len(text) == 80 + 6
    assert "is not reproduced" in text[-1]
    assert "0.000198" in text[-1]


def test_agreement_and_foresight() -> None:
    """A statistic far from its population is flagged, and what the KS test can see follows from distance and n."""
    row = {"ks": 0.01, "reference": 0.002, "n": 10**6}
    assert not laplace.agrees(row)
    assert laplace.agrees({**row, "ks": 0.004})
    assert [laplace.foreseen({**row, "reference": d}) for d in (0.002, 0.001, 0.0001)] == ["yes", "open", "no"]


def test_the_reference_table_is_smooth() -> None:
    """Distances fall along both sweeps, and the weak ones are smaller than the strong ones."""
    for keys in laplace.SERIES.values():
        table = np.array([laplace.REFERENCE[key] for key in keys])
        assert (np.diff(table, axis=0) < 0).all()
        assert (table[:, 1] < table[:, 0]).all()


def test_figure(data: dict[str, Any]) -> None:
    """The figure has four panels, labels, the null in each, and n and seed in small type."""
    figure = laplace.draw(data)
    figure.canvas.draw()
    assert len(figure.axes) == 4
    assert [axes.get_ylabel() for axes in figure.axes] == ["KS statistic", "", "p-value", ""]
    assert all(axes.patches for axes in figure.axes)
    assert "n = 1,000 per setting, seed 3" in figure.texts[-1].get_text()
    assert figure.get_size_inches()[0] <= 7.2
