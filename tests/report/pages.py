"""Reading pages as a browser or a screen reader would, without one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "hr", "input"}


@dataclass
class Element:
    """An element of a page."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, *tags: str) -> Iterator[Element]:
        """Yield this element and those inside it, with given tags or all, in reading order."""
        if not tags or self.tag in tags:
            yield self
        for child in self.children:
            yield from child.all(*tags)

    def words(self) -> str:
        """Return the text of the element and of those inside it, spaces collapsed."""
        return " ".join(" ".join(one.text for one in self.all()).split())


class _Tree(HTMLParser):
    """Builds the tree, and fails where tags do not match."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.at = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        one = Element(tag, {key: value or "" for key, value in attrs}, self.at)
        self.at.children.append(one)
        if tag not in VOID:
            self.at = one

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.at.children.append(Element(tag, {key: value or "" for key, value in attrs}, self.at))

    def handle_endtag(self, tag: str) -> None:
        assert self.at.tag == tag, f"</{tag}> closes <{self.at.tag}>"
        assert self.at.parent is not None
        self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.text += data


def parsed(text: str) -> Element:
    """Return the tree of a page whose tags match."""
    tree = _Tree()
    tree.feed(text)
    tree.close()
    assert tree.at is tree.root
    return tree.root
