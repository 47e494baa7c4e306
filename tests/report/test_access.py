"""Everyone can read the page: by ear, by keyboard, on paper, in the dark."""

import re
from collections.abc import Callable, Iterator
from importlib import resources
from itertools import pairwise

import pytest

import ringtrue as rt

from ..builders import MANY
from .pages import Element
from .test_page import _tree

CSS = (resources.files("ringtrue.report") / "page.css").read_text("utf-8")
Example = Callable[[], rt.Result]


@MANY
def test_landmarks_and_language(example: Example) -> None:
    """The page has a language, a title, one each of header, nav, main and footer, and a link that skips to main."""
    tree = _tree(example)
    assert next(tree.all("html")).attributes["lang"] == "en"
    assert next(tree.all("title")).words()
    for tag in ("header", "nav", "main", "footer", "h1"):
        assert len(list(tree.all(tag))) == 1, tag
    first = next(tree.all("a"))
    assert first.attributes["href"] == f"#{next(tree.all('main')).attributes['id']}"
    assert "width=device-width" in next(
        one.attributes["content"] for one in tree.all("meta") if one.attributes.get("name") == "viewport"
    )


@MANY
def test_headings_descend_one_step_at_a_time(example: Example) -> None:
    """No heading is empty, and none skips a level."""
    heads = [(int(one.tag[1]), one.words()) for one in _tree(example).all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert heads[0][0] == 1
    assert all(later <= earlier + 1 for (earlier, _), (later, _) in pairwise(heads))
    # The name of one test function is blank by intention.
    assert sum(not words for _, words in heads) <= (example.__name__ == "hostile")


@MANY
def test_sections_are_named(example: Example) -> None:
    """Every section and scrolling region is named by an element that exists."""
    tree = _tree(example)
    names = {one.attributes["id"]: one.words() for one in tree.all() if "id" in one.attributes}
    regions = [one for one in tree.all() if one.tag == "section" or one.attributes.get("role") == "region"]
    assert regions
    assert all(names[one.attributes["aria-labelledby"]] for one in regions)


@MANY
def test_tables_have_captions_and_scopes(example: Example) -> None:
    """Every table has a caption, every header cell a scope, every row a header; what scrolls can take the focus."""
    for table in _tree(example).all("table"):
        assert next(table.all("caption")).words()
        assert {one.attributes.get("scope") for one in table.all("th")} <= {"row", "col", "rowgroup"}
        for body in table.all("tbody"):
            for row in body.all("tr"):
                assert next(iter(row.children)).tag == "th"
        assert table.parent is not None
        assert table.parent.attributes["tabindex"] == "0"


@MANY
def test_pictures_have_words(example: Example) -> None:
    """Every picture is an image with a title, a description that says how to read it, and a caption for all."""
    pictures = list(_tree(example).all("figure"))
    assert pictures
    for one in pictures:
        svg, caption = next(one.all("svg")), next(one.all("figcaption"))
        assert svg.attributes["role"] == "img"
        title, description = svg.children[:2]
        assert (title.tag, description.tag) == ("title", "desc")
        assert svg.attributes["aria-labelledby"].split() == [title.attributes["id"], description.attributes["id"]]
        assert title.words()
        assert caption.words() in description.words()
        assert "viewbox" in svg.attributes


@MANY
def test_marks_are_not_colour_alone(example: Example) -> None:
    """Whether a measure is in tolerance is said in words, not only by colour or sign."""
    for cell in _tree(example).all("td"):
        if "number" in cell.attributes.get("class", "") and any(_marks(cell)):
            assert re.search("in tolerance|outside tolerance|not settled", cell.words())


def _marks(cell: Element) -> Iterator[bool]:
    return (one.attributes.get("class") == "mark" for one in cell.all("span"))


# Colours.

PAIRS = [
    ("ink", "paper"),
    ("ink", "shade"),
    ("quiet", "paper"),
    ("quiet", "shade"),
    ("link", "paper"),
    ("bad", "paper"),
    ("bad", "bad-paper"),
    ("ink", "bad-paper"),
    ("good", "paper"),
    ("good", "good-paper"),
    ("ink", "good-paper"),
    ("open", "paper"),
    ("open", "open-paper"),
    ("ink", "open-paper"),
]


def _themes() -> dict[str, dict[str, str]]:
    """Return the colours of the light, dark and print themes, read from the style sheet."""
    blocks = re.findall(r":root\s*{(.*?)}", CSS, flags=re.DOTALL)
    found = [dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", block)) for block in blocks]
    return dict(zip(("light", "dark", "print"), found, strict=True))


def _luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_of_known_colours() -> None:
    """Black on white is 21, #767676 on white just passes at 4.54, #777777 just fails: WCAG's own examples."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") > 4.5 > contrast("#777777", "#ffffff")


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
@pytest.mark.parametrize(("front", "back"), PAIRS)
def test_text_has_contrast(theme: str, front: str, back: str) -> None:
    """Text has a contrast of at least 4.5 with what it stands on, in every theme."""
    colours = _themes()[theme]
    assert contrast(colours[front], colours[back]) >= 4.5


def test_every_colour_is_one_of_the_themes() -> None:
    """Outside the themes there is no colour but the white of the cards, which the drawings are made for."""
    rest = re.sub(r":root\s*{.*?}", "", CSS, flags=re.DOTALL)
    assert set(re.findall(r"#[0-9a-f]{3,8}\b", rest)) == {"#ffffff"}
    assert not re.search(r"\b(rgb|hsl)a?\(", rest)


def test_paper_phone_and_keyboard_are_thought_of() -> None:
    """There are rules for print and dark, tables scroll, and what has the focus is outlined."""
    for rule in ("@media print", "prefers-color-scheme: dark", "overflow-x: auto", ":focus-visible", "break-inside"):
        assert rule in CSS
