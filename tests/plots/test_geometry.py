"""Every picture of a zoo, at its own size and smaller: nothing lies on anything, axes have names, type can be read."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import ringtrue as rt
from ringtrue import plots
from ringtrue.statistics.effects import Interval

from ..builders import BAYES, BELIEF, calibrated, complete, grid, over_confident, replicates
from .geometry import faults

Draw = Callable[..., Any]


@cache
def narrow(n: int, d: int) -> rt.Result:
    """Return draws that are too narrow, for so many parameters and without a belief."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=(n, d))
    theta, draws = y + rng.normal(size=(n, d)), y[:, None] + 0.7 * rng.normal(size=(n, 39, d))
    return rt.check_draws(theta, draws)


@cache
def chains() -> rt.Result:
    """Return chains, of which diagnostics are known."""
    rng = np.random.default_rng(2)
    return rt.check_draws(rng.normal(size=60), rng.normal(size=(60, 2, 40)), chains=2)


@cache
def seen() -> Any:
    """Return bias and spread along the data."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=300)
    draws = y[:, None] + (1 + 0.3 * np.abs(y[:, None])) * rng.normal(size=(300, 19))
    return rt.check_draws(y + rng.normal(size=300), draws, y=y).local("theta", "y")


@cache
def swept() -> Any:
    """Return a small sweep."""
    build = lambda variance: rt.Study(BELIEF, BAYES.simulate, rt.procedures.Inflated(BAYES, variance), batch=60)  # noqa: E731
    return rt.sweep(build, [0.5, 1.0, 2.0], n=60)


@cache
def likely() -> Any:
    """Return probabilities that are too sure."""
    rng = np.random.default_rng(4)
    p = rng.random(300)
    return rt.check_probabilities(rng.random(300) < 0.3 + 0.4 * p, p)


def spread_out() -> rt.Replicates:
    """Return forty curves, ten of which leave the band."""
    return replicates(np.column_stack([grid(200, spread=1 + 0.05 * max(j - 30, 0)) for j in range(40)]))


def named(names: list[str]) -> rt.Replicates:
    """Return test functions with given names."""
    return complete(80, len(names), names=names)


@cache
def _compared() -> Any:
    return rt.compare(
        {"Bayes": BAYES, "narrow": rt.procedures.Inflated(BAYES, 0.6)}, BELIEF, BAYES.simulate, n=100, batch=100
    )


LONG = ["a parameter with a name that does not end soon", "another_one[0, 1]", "x", "W" * 60]
ANY: dict[str, Callable[[], Any]] = {
    "one": lambda: narrow(300, 1),
    "two": lambda: narrow(300, 2),
    "ten": lambda: narrow(120, 10),
    "calibrated": calibrated,
    "over-confident": over_confident,
    "long names": lambda: named(LONG),
}
CURVES = {**ANY, "forty": spread_out}
SOURCES: dict[str, dict[str, Callable[[], Any]]] = {
    "caterpillar": {**ANY, "forty": spread_out},
    "correlogram": ANY,
    "coverage_curve": CURVES,
    "coverage_difference": CURVES,
    "coverage_map": {**ANY, "two numbers": lambda: _places()},
    "data_averaged": ANY,
    "diagnostics": {"chains": chains},
    "ecdf": CURVES,
    "ecdf_difference": CURVES,
    "evidence": {"one": lambda: narrow(300, 1)},
    "forest": {**ANY, "comparison": lambda: _compared()},
    "local": {"local": seen},
    "pit_histogram": ANY,
    "plot": ANY,
    "recovery": ANY,
    "reliability": {"too sure": likely},
    "scatter_matrix": ANY,
    "sequences": {"one": lambda: narrow(300, 1)},
    "sweep_lines": {"sweep": swept},
    "z_contraction": ANY,
}
CASES = [
    pytest.param(name, source, id=f"{name}-{what}") for name, all_ in SOURCES.items() for what, source in all_.items()
]


def _places() -> list[Any]:
    rng = np.random.default_rng(1)
    return [
        Interval("coverage", c, c - 0.05, min(c + 0.05, 1.0), 0.9, f="theta", of=(float(j % 4), float(j // 4)))
        for j, c in enumerate(rng.uniform(0.7, 1.0, 16))
    ]


def drawn(name: str, source: Any, **settings: Any) -> Figure:
    """Return the figure that a plotting function makes."""
    made = getattr(plots, name)(source, **settings)
    if isinstance(made, Figure):
        return made
    figure: Figure = np.ravel(np.array(made, object))[0].get_figure(root=True)
    return figure


def test_the_zoo_is_complete() -> None:
    """Every function that draws is in the zoo, and each takes the size of its figure."""
    assert set(SOURCES) == set(plots.__all__) - {"reading"}
    for name in SOURCES:
        assert "figsize" in inspect.signature(getattr(plots, name)).parameters, name


@pytest.mark.slow
@pytest.mark.parametrize(("name", "source"), CASES)
@pytest.mark.parametrize("size", [1.0, 0.85], ids=["own", "smaller"])
def test_nothing_lies_on_anything(name: str, source: Callable[[], Any], size: float) -> None:
    """At its own size and at 85 % of it a figure has no text on text, no legend on data, no nameless axis, no 6 pt."""
    figure = drawn(name, source())
    if size != 1:
        wide, high = figure.get_size_inches()
        figure = drawn(name, source(), figsize=(size * wide, size * high))
        assert figure.get_size_inches() == pytest.approx((size * wide, size * high))
    assert faults(figure) == []


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_type_follows_the_users_settings(name: str) -> None:
    """With type of 12 pt everything grows with it, and figures too; on the user's Axes everything is the user's."""
    source = next(iter(SOURCES[name].values()))()
    usual = drawn(name, source)
    with plt.rc_context({"font.size": 12}):
        large = drawn(name, source)
    sizes: list[Any] = [
        min(text.get_fontsize() for text in one.findobj(mpl.text.Text) if text.get_text()) for one in (usual, large)
    ]
    assert sizes[1] / sizes[0] == pytest.approx(12 / 8.5)
    assert large.get_size_inches() == pytest.approx(12 / 8.5 * usual.get_size_inches())
    assert mpl.rcParams["font.size"] == 10


def test_what_the_user_has_set_stays() -> None:
    """The user's own size of figures, line width and spines are used, and not ours."""
    with plt.rc_context({"figure.figsize": (5, 4), "axes.linewidth": 3.0, "axes.titlesize": 20}):
        ax = plots.ecdf(complete(50))
    assert tuple(ax.figure.get_size_inches()) == (5, 4)
    assert ax.spines["left"].get_linewidth() == 3
    assert ax._left_title.get_fontsize() == 20
    assert plots.ecdf(complete(50)).spines["left"].get_linewidth() < 1


def test_on_the_users_axes_type_is_the_users() -> None:
    """Title and ticks of given Axes have the sizes that the user's settings give, and a size for them is refused."""
    ax: Any = plt.subplots()[1]
    plots.ecdf(complete(50), ax=ax)
    assert ax._left_title.get_fontsize() == 12
    assert ax.xaxis.label.get_fontsize() == 10
    with pytest.raises(rt.errors.InvalidStudy, match="figsize is the size of a new figure"):
        plots.ecdf(complete(50), ax=ax, figsize=(3, 3))
    with pytest.raises(rt.errors.InvalidStudy, match="figsize is the size of a new figure"):
        plots.plot(complete(50), figure=Figure(), figsize=(3, 3))


def test_faults_are_found() -> None:
    """The broken twin: a legend on its line, two texts in one place, small type, no labels and a text cut off."""
    figure = Figure(figsize=(3, 2))
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], label="line")
    ax.legend(loc="lower left")
    ax.text(0.5, 0.8, "one text", fontsize=6)
    ax.text(0.5, 0.8, "another text")
    figure.text(0.9, 0.5, "beyond the edge of the page")
    found = "\n".join(faults(figure))
    for what in (
        "legend on data: line",
        "'one text' on 'another text'",
        "type of 6 pt",
        "no x label",
        "no y label",
        "cut off",
    ):
        assert what in found, found


def test_a_legend_outside_is_no_fault() -> None:
    """And its counterpart: the same lines with room for all."""
    figure = Figure(figsize=(4, 3), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], label="line")
    ax.set(xlabel="x", ylabel="y")
    figure.legend(loc="outside upper left")
    assert faults(figure) == []


#: Two parameters and the two functions that come with them fit; of ten the worst do.
COLUMN = (3.4, 2.6)


@pytest.mark.parametrize("what", ["one", "two", "ten", "long names"])
@pytest.mark.parametrize(
    "name", ["pit_histogram", "z_contraction", "data_averaged", "caterpillar", "ecdf_difference", "forest"]
)
def test_a_journals_column_holds_what_fits(name: str, what: str) -> None:
    """In a small figure nothing lies on anything or is cut, whatever the names and however many parameters."""
    assert faults(drawn(name, ANY[what](), figsize=COLUMN)) == []


def test_of_many_only_those_are_drawn_for_which_there_is_room() -> None:
    """A small figure has six panels at most and says so; those that are asked for by name are all drawn."""
    ten = narrow(120, 10)
    some = plots.pit_histogram(ten, figsize=COLUMN)
    assert len(some) == 6
    assert "the worst 6 of 12" in some[0].figure.get_suptitle()
    names = [function.name for function in ten.replicates.functions]
    assert len(plots.pit_histogram(ten, names, figsize=COLUMN)) == len(names)
    assert plots.scatter_matrix(ten, figsize=COLUMN).shape == (2, 2)


def test_a_key_may_be_as_wide_as_its_row() -> None:
    """A key that several panels share is not cut to the first of them, and squeezes none."""
    panels = plots.forest(over_confident(), figsize=COLUMN)
    legends = [one.get_legend() for one in panels if one.get_legend()]
    assert [text.get_text() for text in legends[0].get_texts()][-1] == "excludes the ideal"
    widths = [one.get_window_extent().width for one in panels]
    assert max(widths) < 1.2 * min(widths)


def test_names_below_panels_do_not_meet() -> None:
    """A long name of a parameter is cut where its panel ends, and its dollar signs are dollar signs."""
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(60, 2, 40))
    result = rt.check_draws(
        {"a $S_0$ " + "long_" * 8: rng.normal(size=60)}, {"a $S_0$ " + "long_" * 8: draws}, chains=2
    )
    assert faults(drawn("diagnostics", result)) == []
    assert faults(drawn("diagnostics", result, figsize=COLUMN)) == []


def test_what_is_said_of_nothing_stays_inside_its_panel() -> None:
    """Where no sd is known, no band is drawn, and the sentence is as wide as the panel at most."""
    result = rt.check(BELIEF, BAYES.simulate, BAYES, n=100, batch=100)
    panel = plots.z_contraction(result, figsize=COLUMN)[1]
    panel.figure.draw_without_rendering()
    (said,) = [text for text in panel.texts if "known" in text.get_text()]
    box, mine = said.get_window_extent(), panel.get_window_extent()
    assert mine.x0 < box.x0
    assert box.x1 < mine.x1
    assert not panel.patches
