"""One page for a result; names of any kind; no matplotlib until something is drawn."""

import io
import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import ringtrue as rt
from ringtrue import plots
from ringtrue.paper import style as paper_style
from ringtrue.plots import style

from ..builders import complete, grid, replicates

NAMES = ["<script>alert(1)</script>", "$x$", "a_1^{$", "\\alpha$\\$", "_hidden", "θ→∞", "日本 😀", "x" * 300 + "\n\0y"]


def texts(figure: Any) -> str:
    """Return everything that is written on a figure."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))


def test_a_page_has_the_sentence_and_every_picture() -> None:
    """The sentence is the title; each test function has a histogram and an ECDF; coverage, spread and bias follow."""
    result = rt.judge(complete(200, 3))
    page = plots.plot(result)
    assert isinstance(page, Figure)
    assert len(page.get_axes()) == 2 * 3 + 3
    assert " ".join(texts(page).split()).replace("\N{NO-BREAK SPACE}", " ").find(result.sentence) >= 0
    assert "n = 200, seed 0" in texts(page)


def test_a_page_shows_the_test_functions_with_most_evidence() -> None:
    """Of ten, the four with the smallest p-values, and it says so."""
    u = np.column_stack([grid(200, spread=1 + j / 10) for j in range(10)])
    page = plots.plot(replicates(np.random.default_rng(1).permuted(u, axis=0)))
    titles = [ax.get_title(loc="left") for ax in page.get_axes()]
    assert titles[:4] == ["f9", "f8", "f7", "f6"]
    assert "the worst 4 of 10 test functions" in texts(page)


def test_a_page_may_be_asked_for_some() -> None:
    """f= chooses, and a figure of the user is drawn on."""
    figure = Figure(figsize=(7, 6))
    assert plots.plot(complete(50, 6), ["f5", "f2"], figure=figure) is figure
    assert [ax.get_title(loc="left") for ax in figure.get_axes()][:2] == ["f5", "f2"]


def test_a_page_without_measures_says_so() -> None:
    """A run about the exact level alone has no spread."""
    page = plots.plot(complete(50, sees=["data"]))
    assert "no spread was measured" in " ".join(texts(page).split())


@pytest.mark.slow
@pytest.mark.parametrize("form", ["svg", "png"])
def test_names_are_drawn_as_they_are(form: str) -> None:
    """HTML, mathtext, underscores, control characters and letters without a glyph are text, and no warning."""
    ran = complete(40, len(NAMES), names=NAMES)
    drawn: list[Any] = [plots.pit_histogram(ran, NAMES), plots.ecdf(ran, NAMES), plots.caterpillar(ran)]
    drawn += [plots.forest(ran), plots.scatter_matrix(ran), plots.coverage_map(ran, NAMES[1], over=NAMES[2])]
    drawn += [plots.z_contraction(ran), plots.recovery(ran), plots.data_averaged(ran)]
    for one in drawn:
        file = io.BytesIO()
        np.ravel(np.array(one, object))[0].figure.savefig(file, format=form)
        assert b"<script" not in file.getvalue()
    for j in range(0, len(NAMES), 4):
        plots.plot(ran, NAMES[j : j + 4]).savefig(io.BytesIO(), format=form)


def test_dollars_stay_dollars() -> None:
    """A name between dollar signs is not taken for mathematics."""
    ax = plots.ecdf(complete(40, 2, names=["$x$", "_y"]))
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["$x$", "_y"]
    assert not any(text.get_parse_math() for text in legend.get_texts())
    assert not plots.ecdf(complete(40, names=["$x$"])).title.get_text()


@pytest.mark.slow
def test_sentences_with_dollars_are_drawn() -> None:
    """The sentence of a result may hold a name with dollar signs."""
    result = replace(rt.judge(complete(40)), sentence="MISCALIBRATED: $\\frac{ is over-confident, $ and <b>")
    plots.plot(result).savefig(io.BytesIO())


@pytest.mark.slow
def test_titles_side_by_side_do_not_meet() -> None:
    """A long name above a narrow panel is cut to its width."""
    page = plots.plot(complete(40, 4, names=[letter * 100 for letter in "abcd"]))
    page.draw_without_rendering()
    boxes = [
        ax.title.get_window_extent() if ax.title.get_text() else ax._left_title.get_window_extent()  # type: ignore[attr-defined]
        for ax in page.get_axes()[:4]
    ]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a\n b", "a b"), ("θ", "θ"), ("日", "□"), ("\x07", "□"), ("x" * 100, "x" * 18 + "…" + "x" * 17), (3, "3")],
)
def test_plain_names(name: Any, shown: str) -> None:
    """Names become one line of letters that the font has, cut in the middle if long."""
    assert style.plain(name) == shown


def test_letters_without_a_glyph_would_warn() -> None:
    """The broken twin: drawn as it is, such a letter warns."""
    figure = Figure()
    figure.text(0.5, 0.5, "日")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        figure.savefig(io.BytesIO())
    assert any("Glyph" in str(one.message) for one in found)


def test_the_user_may_ask_for_tex_elsewhere() -> None:
    """A user's setting to typeset with TeX does not reach our names, which are not TeX."""
    with plt.rc_context({"text.usetex": True}):
        ax = plots.ecdf(complete(40, names=["a_b"]))
    assert not any(text.get_usetex() for text in (ax.title, ax.xaxis.label, *ax.texts))


@pytest.mark.process
def test_importing_plots_does_not_import_matplotlib() -> None:
    """matplotlib is loaded when something is drawn, and not before."""
    assert _run("import sys, ringtrue.plots; print('matplotlib' in sys.modules)") == "False"


@pytest.mark.process
def test_without_matplotlib_the_error_says_what_to_install() -> None:
    """A missing extra is one sentence with the command."""
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import ringtrue as rt, ringtrue.plots as p\n"
        "result = rt.check_draws([0.5, 0.1], [[0.1, 0.7], [0.2, 0.3]], f=rt.identity)\n"
        "for name in ('ecdf', 'pit_histogram', 'z_contraction', 'forest', 'caterpillar', 'coverage_map', 'plot'):\n"
        "    try:\n"
        "        getattr(p, name)(result)\n"
        "    except rt.errors.RingtrueError as error:\n"
        "        assert \"pip install 'ringtrue[plot]'\" in str(error)\n"
        "    else:\n"
        "        raise SystemExit(name)\n"
        "print(p.reading(result)[:13])"
    )
    assert _run(code) == "theta is flat"


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout.strip()


def test_the_paper_uses_the_same_style() -> None:
    """Figures of the paper and of the library look alike."""
    assert paper_style.journal is style.journal
    assert paper_style.COLOURS is style.COLOURS


def test_thinning_keeps_extremes_and_size() -> None:
    """Thinned points are at most as many as asked for, and hold the extremes of every coordinate."""
    x, y = np.random.default_rng(1).normal(size=(2, 10_000))
    some = style.thinned(100, x, y)
    assert len(some) <= 100
    assert {int(np.argmin(x)), int(np.argmax(y))} <= set(some.tolist())
    assert list(style.thinned(5, x[:3])) == [0, 1, 2]
