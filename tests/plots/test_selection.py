"""Pictures show the worst test functions, by name, at the level that rejects."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import ringtrue as rt
from ringtrue import plots

from ..builders import SD, complete, grid, replicates

PANELS = [plots.pit_histogram, plots.recovery, plots.z_contraction, plots.data_averaged]


@cache
def sixteen(wrong: int) -> rt.Result:
    """Return the result of 16 parameters of which one has outputs that are far too narrow."""
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(300, 16))
    y = theta + rng.normal(size=theta.shape)
    sd = np.where(np.arange(16) == wrong, 0.2, SD)
    draws = y[:, None] / 2 + sd * rng.normal(size=(300, 19, 16))
    return rt.check_draws(theta, draws, belief=rt.Normal(np.zeros(16), np.ones(16)))


def title(ax: Any) -> str:
    """Return the name above a panel."""
    return str(ax.get_title(loc="left"))


def texts(figure: Any) -> str:
    """Return everything that is written on a figure."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))


@pytest.mark.parametrize("wrong", [15, 2])
def test_the_worst_of_sixteen_is_read(wrong: int) -> None:
    """The sentence about the picture names the test function that is wrong, wherever it stands."""
    assert plots.reading(sixteen(wrong)).startswith(f"theta[{wrong}], the worst of 18, is U-shaped: over-confident")


@pytest.mark.slow
def test_the_worst_of_many_that_are_right_is_flat() -> None:
    """Of 40 calibrated functions the worst is called flat as often as a single one should be.

    Band and intervals each miss in at most 5 % of runs, 10 % in all: more than the bound of 25 runs has chance 1e-6.
    The broken twin is read as if there were no other, and then the worst of 40 is seldom flat.
    """
    rng, alarms, twin = np.random.default_rng(9), 0, 0
    for _ in range(25):
        result = rt.judge(replicates(rng.random((100, 40))))
        text = plots.reading(result)
        name = text.partition(",")[0]
        assert text.startswith(f"{name}, the worst of 40, ")
        alarms += " is flat within its band" not in text
        twin += " is flat within its band" not in plots.reading(result, name)
    assert alarms <= int(stats.binom.isf(1e-6, 25, 0.1)) < twin


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [15, 2])
@pytest.mark.parametrize("draw", PANELS)
def test_the_worst_of_sixteen_has_the_first_panel(draw: Any, wrong: int) -> None:
    """Of twelve panels the first is that of the one that is wrong; on Axes for one, it is the one."""
    result = sixteen(wrong)
    drawn = draw(result)
    assert drawn.shape == (12,)
    assert title(drawn[0]) == f"theta[{wrong}]"
    assert drawn[0].figure.get_suptitle().endswith("the worst 12 of 18 test functions")
    alone = draw(result, ax=rt_axes())
    assert title(alone) == f"theta[{wrong}]"
    assert "the worst of 18 test functions" in texts(alone)


def rt_axes() -> Any:
    """Return Axes for one picture."""
    from matplotlib.figure import Figure

    return Figure().subplots()


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [15, 2])
def test_the_worst_of_sixteen_is_in_every_other_picture(wrong: int) -> None:
    """In pairs, by truth, among intervals and on the page it comes first; as a curve it has its name."""
    result, name = sixteen(wrong), f"theta[{wrong}]"
    matrix = plots.scatter_matrix(result)
    assert title(matrix[0, 0]) == matrix[-1, 0].get_xlabel() == name
    assert plots.coverage_map(result).get_xlabel() == name
    assert plots.caterpillar(result).get_yticklabels()[0].get_text() == name
    assert name in texts(plots.ecdf_difference(result))
    page = result.plot()
    assert title(page.get_axes()[0]) == name
    assert "the worst 4 of 18 test functions" in texts(page)


def first(ran: Any) -> str:
    """Return the test function that one picture is about."""
    return title(plots.pit_histogram(ran, ax=rt_axes()))


def test_entries_that_are_off_come_before_functions_of_all() -> None:
    """A parameter that is rejected is shown before the sum and the distance, however much worse these are."""
    u = np.column_stack([grid(400, spread=s) for s in (3.0, 3.0, 1.4)])
    kinds, names = ["sum", "overall", "coordinate"], ["sum", "distance", "theta"]
    assert first(replicates(u, kinds=kinds, names=names)) == "theta"
    u[:, 2] = grid(400)
    assert first(replicates(u, kinds=kinds, names=names)) == "sum"
    assert first(replicates(np.column_stack([grid(400)] * 3), kinds=kinds, names=names)) == "theta"


def test_at_equal_p_values_the_larger_error_comes_first() -> None:
    """Of p-values that are both the least that is computed, the size decides."""
    result = rt.judge(replicates(np.column_stack([grid(6000), grid(6000, bias=1.5), grid(6000, bias=2.5)])))
    assert len({row.pvalue for row in result.tests[1:]}) == 1
    assert first(result) == "f2"


# The level that rejects.


def averaged(n: int, wrong: int | None) -> Any:
    """Return calibrated replicates of three functions; the outputs for one, averaged over data, are too wide."""
    ran = complete(n, 3)
    scale = np.where(np.arange(3) == (-1 if wrong is None else wrong), 1.8, 1.0)
    values = ran.arrays["weak_value"] * scale
    known: dict[str, Any] = {name: ran.arrays[name] for name in ("truth", "mean", "sd", "crps")}
    known |= {"weak_value": values, "weak_z": values, "weak_u": special.ndtr(values)}
    return replicates(ran.arrays["u"], reference=ran.reference, **known)


def test_the_page_shows_the_weak_level_if_that_rejects() -> None:
    """Outputs against the belief instead of ECDFs, the worst first; a right one has histogram and ECDF."""
    result = rt.judge(averaged(400, 2))
    assert result.sentence.startswith("MISCALIBRATED (weak")
    page = result.plot()
    upper = page.get_axes()[:3]
    assert {ax.get_xlabel() for ax in upper} == {"position in the belief"}
    assert "above: the weak level, which rejects" in texts(page)
    assert plots.reading(result).startswith("f2, averaged over data, does not return the belief (weak level, p = ")
    assert "too many draws in the lowest" in plots.reading(result)
    assert title(plots.data_averaged(result, ax=rt_axes())) == "f2"
    right = rt.judge(averaged(400, None)).plot()
    assert "position in the belief" not in {ax.get_xlabel() for ax in right.get_axes()}


def test_the_page_shows_pairs_if_only_the_joint_test_rejects() -> None:
    """A correlation that the belief has not is only seen in pairs, drawn against the belief and not the truths."""
    rng = np.random.default_rng(3)
    drawn = rng.normal(size=(500, 2)) @ np.linalg.cholesky([[1.0, 0.9], [0.9, 1.0]]).T
    known = {"weak_value": drawn, "weak_z": drawn, "weak_u": special.ndtr(drawn), "truth": drawn}
    fresh = rng.normal(size=(500, 2))
    result = rt.judge(replicates(special.ndtr(rng.normal(size=(500, 2))), reference=fresh, **known))
    assert result.sentence.startswith("MISCALIBRATED (weak")
    cloud = next(line for line in result.plot().get_axes()[2].lines if line.get_label() == "belief")
    # Contours hold the others.
    assert 0 < len(cloud.get_xdata()) <= 25
    assert set(cloud.get_xdata()) <= set(fresh[:, 0])
    assert plots.reading(result).startswith("all coordinates, averaged over data, do not return the belief")


@pytest.mark.parametrize("draw", [plots.pit_histogram, plots.ecdf, plots.ecdf_difference, plots.coverage_curve])
def test_pictures_show_the_auto_level_if_that_rejects(draw: Any) -> None:
    """A function of theta and the output that is off is shown instead of those of theta, which are right, and said."""
    for spread, name, level in ((2.0, "f2", True), (1.0, "f0", False)):
        u = np.column_stack([grid(400), grid(400), grid(400, spread=spread)])
        result = rt.judge(replicates(u, sees=["theta", "theta", "output"]))
        drawn = np.ravel(draw(result))
        written = texts(drawn[0].figure)
        assert name in written
        assert ("auto level" in written) == level
        assert plots.reading(result).startswith("f2 is not flat" if level else "f0, the worst of 2, is flat")
        assert title(result.plot().get_axes()[0]) == name


def test_the_page_of_a_biased_procedure_shows_its_bias() -> None:
    """A panel of bias has the number, filled outside the tolerance; right outputs have none that excludes 0."""
    for bias in (0.3, 0.0):
        result = rt.judge(replicates(grid(800, bias=bias), names=["theta"]))
        page = result.plot()
        panel = next(ax for ax in page.get_axes() if title(ax) == "bias")
        (mark,) = [line for line in panel.lines if line.get_label() == "estimate"]
        assert mark.get_xdata()[0] == pytest.approx(bias, abs=1e-3)
        assert (mark.get_marker() == "D") == (bias > 0)
        assert f"{bias:.2f} sd" in texts(page)
