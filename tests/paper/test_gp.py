"""The data-driven choice of f is what the package's BestOf does, and meets its reference values."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ringtrue as rt
from ringtrue.paper import gp
from ringtrue.procedures import FittedGP

pytestmark = pytest.mark.paper

Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Return the smallest run."""
    return gp.make(scale=0.05, seed=3, progress=iter)


@pytest.fixture(scope="module")
def replicates() -> rt.Replicates:
    """Return four thousand replicates of the experiment."""
    study = rt.Study(gp.BELIEF, gp.observe, FittedGP(gp.KERNEL), f=gp.FAMILY, seed=8, batch=1000)
    return rt.run(study, n=4000, progress="off")


def test_mean_squares_are_the_reference(replicates: rt.Replicates) -> None:
    """The mean of z^2 at four points of the grid is the reference; the jittered regression's is not."""
    for x, known in gp.REFERENCE_SQUARES.items():
        squares = np.square(replicates.z[:, gp.GRID.index(x)])
        # The means of 4000 heavy-tailed squares: 6 standard errors, false-alarm rate below 1e-6 each by the normal law
        # and a margin for the skewness.
        assert abs(squares.mean() - known) < 6 * squares.std() / np.sqrt(len(squares))
    # The twin: the mean at one end against the reference of the other.
    assert np.square(replicates.z[:, 0]).mean() < 1 < np.square(replicates.z[:, -1]).mean()


def test_choice_and_test_use_different_halves(replicates: rt.Replicates) -> None:
    """The p-value of a repetition is that of the held-out half at the x that the other half likes least."""
    part = gp._parts(replicates, 100)[7]
    found = gp._repetition(part, 50)
    best = int(np.argmin(found["choosing"]))
    assert found["x"] == gp.GRID[best]
    assert found["log_p"] == pytest.approx(found["testing"][best])
    held = np.square(replicates.z[750:800, best]).sum()
    assert rt.uniformity.cook(part.u[50:, best], z=part.z[50:, best]).statistic == pytest.approx(held)


def test_parts_are_judged_like_studies_of_their_own() -> None:
    """A study whose batches are repetitions gives the first of them the p-value that a study of it alone gets."""
    alone = rt.Study(gp.BELIEF, gp.observe, FittedGP(gp.KERNEL), f=gp.FAMILY, seed=4, batch=20)
    expected = rt.judge(rt.run(alone, n=20, progress="off"), test="cook").tests[0]
    found = gp._experiment(10, 2, 4)[0]
    assert found["log_p"] == pytest.approx(np.log(expected.pvalue))
    assert expected.f == f"theta({found['x']})"


def test_the_chosen_x_wins(replicates: rt.Replicates) -> None:
    """The chosen x beats the baseline in the mean, and its error needs fewer replicates."""
    # Twenty repetitions with s = 100: the difference of the means is -17 with sd 13 / sqrt(20), 5.8 sd from 0.
    row = gp._row(100, [gp._repetition(part, 100) for part in gp._parts(replicates, 200)])
    assert row["log_p"] < row["log_p_base"]
    assert row["n_needed"] < row["n_needed_base"]


def test_sizes_of_the_control() -> None:
    """For a calibrated procedure the held-out half rejects as often as it says, the choosing half far more often."""
    found = gp._sizes(gp._control(200, 11))
    # Binomial(200, 0.05): above 27 with chance 1e-6. Binomial(200, 0.5): below 50 with chance 1e-13.
    assert found["held"] <= 27 / 200
    assert found["same"] > 50 / 200


def test_data_is_plain_and_said_in_words(data: dict[str, Any]) -> None:
    """The data is JSON with a row per size; the lines give the reference beside it."""
    assert json.loads(json.dumps(data, allow_nan=False))["rows"] == data["rows"]
    assert [row["S"] for row in data["rows"]] == [20, 100, 200, 300]
    assert data["settings"]["repetitions"] == gp.FEWEST
    text = "\n".join(gp.lines(data))
    assert "-30.84" in text
    assert "Calibrated control" in text


def test_figure(data: dict[str, Any]) -> None:
    """The figure has four panels and fits a page."""
    figure = gp.draw(data)
    assert len(figure.axes) == 4
    assert figure.get_size_inches()[0] <= 7.2


def test_sizes_of_the_panel_are_experiments_of_their_own(replicates: rt.Replicates) -> None:
    """The first S replicates of a repetition give what a repetition of that size gives; the other half does not."""
    whole = replicates.pick(slice(0, 300))
    for size in (10, 40, 150):
        found = gp._repetition(whole.pick(slice(0, size)), size // 2)
        assert gp._prefix(whole, size) == pytest.approx((found["log_p"], found["log_p_base"]))
    assert gp._prefix(whole, 150)[0] != pytest.approx(gp._repetition(whole.pick(slice(0, 300)), 150)["log_p"])


def test_the_panel_has_all_sizes_of_the_text(data: dict[str, Any]) -> None:
    """S goes from 10 to 150."""
    assert [row["S"] for row in data["panel"]] == list(range(10, 151, 10))


@pytest.mark.parametrize(
    ("better", "expected"),
    [
        ([20, 100], "smaller mean at every S"),
        ([], "larger mean at every S"),
        ([100], "smaller mean at S = 100, not at S = 20"),
    ],
)
def test_the_title_follows_from_the_numbers(data: dict[str, Any], better: list[int], expected: str) -> None:
    """Who wins is said of the rows at hand, in the lines and over the panel."""
    rows = [{**data["rows"][0], "S": s, "log_p": -2.0 if s in better else -1.0, "log_p_base": -1.5} for s in (20, 100)]
    assert expected in gp._winner(rows)
    title = gp.draw({**data, "rows": rows}).axes[2].get_title(loc="left")
    assert expected in title.replace("\n", " ").replace("$S$", "S")
