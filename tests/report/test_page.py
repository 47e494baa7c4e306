"""The page says what the result says, whatever the result is, and lets nothing of a user's act."""

import json
import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue.characters import one_line
from ringtrue.errors import RingtrueError
from ringtrue.export import document
from ringtrue.judgement.measures import over_family
from ringtrue.judgement.verdict import Verdict
from ringtrue.report import content, figures, page, report

from .. import builders
from ..builders import (
    BELIEF,
    HOSTILE,
    MANY,
    calibrated,
    complete,
    failing,
    hostile,
    noisy,
    normal,
    over_confident,
    single,
    wide,
)
from ..judgement.test_fits import chains
from .pages import Element, parsed


@cache
def _text(example: Callable[[], rt.Result]) -> str:
    return _rendered(example)


def _rendered(example: Callable[[], rt.Result]) -> str:
    return page.render(example(), document(example()), twin="x.json", details=_details(example))


@cache
def _details(example: Callable[[], rt.Result]) -> content.Details | None:
    return content.details(example())


@cache
def _tree(example: Callable[[], rt.Result]) -> Element:
    return parsed(_text(example))


def _section(tree: Element, name: str) -> Element:
    return next(one for one in tree.all("section") if one.attributes["id"] == name)


# What it says.


@MANY
def test_the_verdict_comes_first(example: Callable[[], rt.Result]) -> None:
    """The first section has the verdict and the sentence, and the title has the verdict."""
    first = next(_tree(example).all("section"))
    result = example()
    assert result.verdict.words in first.words().lower()
    # The verdict's word is the head of the box, and is not said again below it.
    word, _, rest = result.sentence.partition(": ")
    assert " ".join(rest.split()[:6]) in first.words()
    assert first.words().lower().count(result.verdict.words) == 1
    assert word.lower().removeprefix(result.verdict.words).strip() in first.words()
    assert result.verdict.words in next(_tree(example).all("title")).words().lower()


@MANY
def test_sections_are_in_order(example: Callable[[], rt.Result]) -> None:
    """Verdict, what to do, measures, pictures, blind spots, failures if any, settings."""
    names = [one.attributes["id"] for one in _tree(example).all("section")]
    wanted = ["verdict", "todo", "measures", "pictures", "unseen", "failures", "settings"]
    assert names == [name for name in wanted if name != "failures" or example().replicates.failures]


def test_measures_are_in_the_table() -> None:
    """Every measure of every test function has a cell with its estimate."""
    words = _section(_tree(over_confident), "measures").words()
    for row in over_confident().measures:
        assert content._cell(row).estimate in words


def test_every_measure_is_folded_away() -> None:
    """All that rt.measure says of every test function is on the page, with its ideal, below what the verdict needs."""
    found = rt.measure(over_confident())
    section = _section(_tree(over_confident), "measures")
    (table,) = [one for one in section.all("table") if "Every measure" in next(one.all("caption")).words()]
    rows = [[cell.words() for cell in row.children] for row in table.all("tr")][1:]
    groups = [row[0] for row in rows if len(row) == 1]
    assert sorted(groups) == sorted({row.f for row in found.rows})
    assert groups[0] == "(all)"
    numbers = [row for row in rows if len(row) == 4]
    assert sorted(row[:2] for row in numbers) == sorted([row.name, content._cell(row).estimate] for row in found.rows)
    assert table.parent is not None
    assert table.parent.parent is not None
    assert table.parent.parent.tag == "details"


@pytest.mark.slow
def test_every_measure_is_explained() -> None:
    """No measure of any example is without a meaning."""
    for example in (over_confident, wide):
        every = _details(example)
        assert every is not None
        assert {row["name"] for row in every.plain["measures"]} <= set(content.MEANINGS)


@pytest.mark.slow
def test_of_many_test_functions_the_worst_are_detailed() -> None:
    """Of 500 test functions every measure of the fifty worst is in the JSON, of twelve on the page; (all) is of all."""
    every = _details(wide)
    assert every is not None
    assert len({row["f"] for row in every.plain["measures"]} - {"(all)"}) == content.FUNCTIONS
    assert len(every.groups) == content.ROWS + 1
    assert every.groups[1][0] == "theta[321]"
    assert every.left_out == content.FUNCTIONS - content.ROWS
    largest = next(row for row in every.plain["measures"] if row["name"] == "largest |bias|")
    exact = {m.name: m for m in over_family(wide().replicates, confidence=0.95)}["largest |bias|"]
    assert (largest["f"], largest["estimate"], largest["high"]) == ("(all)", exact.estimate, exact.high)


@pytest.mark.slow
def test_of_many_replicates_the_first_are_detailed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of replicates every measure is that of the first, and the page says so."""
    monkeypatch.setattr(content, "ENOUGH", 50)
    every = content.details(failing())
    assert every is not None
    lost = sum(failure.replicate < 50 for failure in failing().replicates.failures)
    assert (every.plain["n"], every.plain["lost"]) == (50, lost)
    text = page.render(failing(), document(failing()), twin="x.json", details=every)
    assert "of the first 50 replicates" in text


@pytest.mark.slow
def test_without_a_replicate_there_are_no_details() -> None:
    """If the first replicates were all lost, every measure is left out, and the page stands."""
    first = min(failure.replicate for failure in failing().replicates.failures)
    only = failing().replicates.pick(slice(first, first + 1))
    assert content.details(replace(failing(), replicates=only)) is None
    text = page.render(failing(), document(failing()), twin="x.json", details=None)
    assert "Every measure" not in text


@pytest.mark.slow
def test_measures_of_all_together_are_a_sentence() -> None:
    """What concerns all test functions together is no row and no column of the table of measures."""
    assert any(row.f == "(all)" for row in wide().measures)
    section = _section(_tree(wide), "measures")
    table = next(section.all("table"))
    heads = [one.words() for one in table.all("th")]
    assert not any("energy skill" in head or head == "(all)" for head in heads)
    assert "All test functions together: energy skill" in section.words()


@pytest.mark.slow
def test_the_worst_functions_are_pictured() -> None:
    """Of 500 test functions, six have pictures, the wrong one first, and all are in the tables."""
    tree = _tree(wide)
    heads = [one.words() for one in _section(tree, "pictures").all("h3")]
    assert heads[0] == "theta[321]"
    assert len(heads) == 7  # and one for the pictures of all
    rows = {one.words() for one in _section(tree, "measures").all("th") if one.attributes["scope"] == "row"}
    assert len({row for row in rows if row.startswith("theta[") and " and " not in row}) == 500


def test_what_could_not_be_seen_is_said() -> None:
    """Resolution, untested levels and lost replicates are listed."""
    words = _section(_tree(over_confident), "unseen").words()
    assert f"{over_confident().resolution.bias:.3g} sd" in words
    assert "Level auto, not tested" in words
    assert "Level strong" not in words
    assert "Level exact" not in words
    assert "lost replicate" in _section(_tree(failing), "unseen").words()


def test_failures_are_grouped_with_a_traceback_each() -> None:
    """Each cause has its count, its replay call and one traceback, folded."""
    section = _section(_tree(failing), "failures")
    causes = failing().replicates.causes()
    folded = list(section.all("details"))
    assert len(folded) == len(causes)
    for one, (_, many, failure) in zip(folded, causes, strict=True):
        assert next(one.all("summary")).words().startswith(f"{many} ×")
        assert failure.replay in one.words()
        assert "Traceback" in next(one.all("pre")).text


def test_very_many_causes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Causes beyond the twentieth are a number, so that a page stays a page."""
    monkeypatch.setattr(content, "CAUSES", 2)
    shown, left = content.causes(failing().replicates)
    assert len(shown) == 2
    assert sum(one.count for one in shown) + left == len(failing().replicates.failures)


def test_advice_names_the_factor() -> None:
    """A miscalibrated result says what to multiply by, and to use another seed afterwards."""
    spread = next(row for row in over_confident().measures if row.name == "spread")
    lines = content.advice(over_confident())
    assert f"by {spread.estimate:.2f}" in lines[0]
    assert any("another seed" in line for line in lines)


def test_inconclusive_is_not_a_pass() -> None:
    """An inconclusive result says that it is not one."""
    assert single().verdict is Verdict.INCONCLUSIVE
    assert "not read this as a pass" in content.advice(single())[0].replace("Do ", "")


def test_settings_have_versions_and_seed() -> None:
    """Versions of everything that matters, seed, alpha and date are on the page."""
    words = _section(_tree(calibrated), "settings").words()
    for word in ("ringtrue", "numpy", "scipy", "python", "seed", "alpha", "coverage 20 points"):
        assert word in words


# What it must not do.


@MANY
def test_nothing_acts_and_nothing_is_loaded(example: Callable[[], rt.Result]) -> None:
    """No script, no handler, no frame, no image, no address outside the page; links lead to existing places."""
    tree = _tree(example)
    tags = {one.tag for one in tree.all()}
    assert not tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form", "image", "foreignobject"}
    places = {one.attributes.get("id") for one in tree.all()}
    for one in tree.all():
        assert not [key for key in one.attributes if key.startswith("on")]
        for key in ("href", "src", "xlink:href", "action"):
            if key in one.attributes:
                assert one.attributes[key].removeprefix("#") in places
        used = one.attributes.get("style", "") + one.attributes.get("clip-path", "")
        assert "url(" not in used.replace("url(#", "")
    assert "@import" not in _text(example)
    assert "default-src 'none'" in _text(example)


@MANY
def test_identifiers_are_unique(example: Callable[[], rt.Result]) -> None:
    """No identifier occurs twice, though every picture brings its own."""
    names = [one.attributes["id"] for one in _tree(example).all() if "id" in one.attributes]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_shown_as_text(name: str) -> None:
    """A name that is HTML, a template or TeX appears as its own letters, control characters spelled out."""
    shown = " ".join(content.spelled(content.short(one_line(name))).split())
    assert shown in _section(_tree(hostile), "measures").words()


def test_hostile_errors_are_shown_as_text() -> None:
    """A message that is HTML appears as its own letters."""
    words = _section(_tree(failing), "failures").words()
    messages = [" ".join(content.spelled(failure.error).split())[:50] for failure in failing().replicates.failures]
    assert any("<" in message for message in messages)
    assert all(message in words for message in messages)


@MANY
def test_nothing_turns_the_direction_of_a_page(example: Callable[[], rt.Result]) -> None:
    """A name with an override of direction is spelled out, since it would reverse the sentence that it stands in."""
    assert not set(_text(example)) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    if example is hostile:
        assert "\\u202ereversed" in _text(example)


@MANY
def test_no_control_character_reaches_a_page(example: Callable[[], rt.Result]) -> None:
    """Control characters but line ends and tabs are spelled out, in names, messages and pictures."""
    assert not [letter for letter in _text(example) if unicodedata.category(letter) == "Cc" and letter not in "\n\t"]
    if example is hostile:
        assert "control \\x00\\x07\\x1b" in _text(example)


def test_the_picture_of_the_level_that_rejects_comes_first() -> None:
    """If the weak level alone rejects, the first picture is that of averaged outputs; otherwise it is a histogram."""
    drawn = 1.5 * normal(400)
    known = {"weak_value": drawn, "weak_z": drawn, "weak_u": special.ndtr(drawn)}
    weak = rt.judge(complete(400, **known))
    assert weak.sentence.startswith("MISCALIBRATED (weak")
    titles = [[next(one.all("title")).words() for one in _drawn(result)] for result in (weak, over_confident())]
    assert titles[0][0].startswith("Outputs averaged over data")
    assert titles[1][0].startswith("Histogram")


def _drawn(result: rt.Result) -> list[Any]:
    plain = {**document(result), "details": None}
    tree = parsed(page.render(result, plain, twin="x.json", details=None))
    return list(_section(tree, "pictures").all("svg"))


def test_pictures_keep_hostile_text_inside() -> None:
    """Text in a picture is text: the SVG parses, and its elements are matplotlib's alone."""

    def draw(ax: Any) -> None:
        ax.set_title("</svg><script>alert(1)</script> & \"'", parse_math=False)

    words = figures.Words('"><script>', "control \x00 and lone \udc80")
    svg = figures.as_svg(draw, mark="m", words=words)
    tree = parsed(svg)
    assert not list(tree.all("script"))
    assert "<script>alert(1)</script>" in next(tree.all("svg")).words()
    assert next(tree.all("title")).words() == '"><script>'
    assert next(tree.all("desc")).words() == "control \\x00 and lone \\udc80"


def test_an_unescaped_page_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: without escaping, the same look finds the script."""
    import jinja2

    real = jinja2.Environment
    monkeypatch.setattr(jinja2, "Environment", lambda **settings: real(**{**settings, "autoescape": False}))
    text = _rendered(failing)
    assert "<script>" in text
    assert "<script>" not in _text(failing)


@MANY
def test_pages_are_small(example: Callable[[], rt.Result]) -> None:
    """No page comes near five megabytes."""
    assert len(_text(example).encode()) < 2_500_000


# Files.


@pytest.mark.slow
def test_the_twin_lies_beside_the_page(tmp_path: Path) -> None:
    """report writes two files with one stem, and returns the page."""
    file = over_confident().report(tmp_path / "x.html")
    assert file == tmp_path / "x.html"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.html", "x.json"]


@pytest.mark.parametrize("name", ["x.json", "absent/x.html", "."])
def test_a_place_that_will_not_do_is_refused(name: str, tmp_path: Path) -> None:
    """What could not be written is refused with a sentence, and nothing is written."""
    with pytest.raises(RingtrueError, match="a page"):
        report(over_confident(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_other_things_are_refused(tmp_path: Path) -> None:
    """Replicates are not a result."""
    with pytest.raises(TypeError, match="but Replicates arrived"):
        report(over_confident().replicates, tmp_path / "x.html")  # type: ignore[arg-type]


@pytest.mark.parametrize("module", ["matplotlib", "jinja2"])
def test_a_missing_extra_is_one_sentence(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the error ends in the command to run."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RingtrueError, match=rf"needs {module}; run: pip install 'ringtrue\[plot\]'$"):
        report(over_confident(), tmp_path / "x.html")


@pytest.mark.slow
def test_the_settings_of_the_user_are_left_alone() -> None:
    """A user's matplotlib style neither changes the pictures nor is changed by them."""
    import matplotlib as mpl

    with mpl.rc_context({"text.usetex": True, "axes.facecolor": "black", "svg.fonttype": "path"}):
        text = _rendered(single)
        assert mpl.rcParams["axes.facecolor"] == "black"
    assert _pictures(text) == _pictures(_text(single))


def _pictures(text: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)


def test_examples_cover_the_verdicts() -> None:
    """The pages looked at have all three verdicts."""
    assert {example().verdict for example in builders.EXAMPLES} == set(Verdict)


def test_advice_is_that_of_the_sentence() -> None:
    """Outliers, errors that ranks cannot size and truths outside the support are not told as a factor on the sd."""
    rng = np.random.default_rng(3)
    far = 0.3 * rng.normal(size=800) + 5 * rng.choice([-1, 1], 800)
    draws = rng.normal(size=(800, 99))
    said = content.advice(rt.check_draws(far, draws, f=rt.identity))
    size = np.sqrt(np.mean(((far - draws.mean(axis=1)) / draws.std(axis=1, ddof=1)) ** 2))
    assert any(f"errors are {size:.1f} times their reported sd" in line for line in said)
    wild = np.where(np.arange(800) < 60, 30.0, rng.normal(size=800))
    said = content.advice(rt.check_draws(wild, draws, f=rt.identity))
    assert any("60 of 800 outputs miss the truth" in line for line in said)
    assert not any(line.startswith("Multiply the sd") for line in said)


def test_single_fits_have_a_table_verdicts_and_pictures(tmp_path: Path) -> None:
    """What is known of fits, the verdict three times with what it means, and a picture of each that varies."""
    result = rt.check(BELIEF, noisy, chains("apart", share=0.3), n=70)
    page = parsed(result.report(tmp_path / "page.html").read_text(encoding="utf-8"))
    (section,) = [one for one in page.all("section") if one.attributes["id"] == "fits"]
    words = section.words()
    for text in (
        result.diagnostics.flags[0].text,
        "at most 1.2",
        "all, as they came",
        "is no verdict on the procedure",
    ):
        assert text in words
    assert len(list(section.all("figure"))) == 2
    assert any(one.attributes.get("href") == "#fits" for one in page.all("a"))
    twin = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert twin["diagnostics"]["flagged"] == result.diagnostics.flagged.sum()


def test_a_page_without_diagnostics_has_no_such_section(tmp_path: Path) -> None:
    """Exact laws have nothing to say of single fits."""
    page = parsed(over_confident().report(tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "fits" not in {one.attributes["id"] for one in page.all("section")}


def test_a_wrong_correlation_is_what_to_mend() -> None:
    """Advice is to correct the pair that is off, and not the sum of all entries in which it shows."""
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(400, 2)) @ np.array([[1.0, 0.5], [0.0, 0.75**0.5]])
    result = rt.check_draws(theta, rng.normal(size=(400, 49, 2)))
    advice = " ".join(content._mends(result))
    assert "Correct the correlation of theta[0] and theta[1]: raise what outputs report by 0." in advice
    assert "sum" not in advice


def test_what_stands_above_a_picture_is_inside_it() -> None:
    """However many lines of small print and keys there are, the title is not cut off at the top."""
    rng = np.random.default_rng(1)
    draws = rng.normal(size=(300, 99))
    draws[:20] = np.nan
    result = rt.check_draws(rng.normal(size=300), draws, on_failure="record")
    pictures = [*figures.overview(result), *figures.panels(result)[0].pictures]
    tops = [float(y) for one in pictures for y in re.findall(r'<text[^>]* y="([-0-9.]+)"', one.svg)]
    assert tops
    # Where letters stand; the tall ones of DejaVu Sans are 0.76 of their size of 8.5.
    assert min(tops) > 0.76 * 8.5
