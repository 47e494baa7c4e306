"""Docstrings as pages: roles such as :func:`~ringtrue.run` become links, parameters documented together stay so."""

import re
from itertools import groupby
from typing import Any

import griffe

ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|exc):`(~?)\.?([\w.]+)`")


class Docstrings(griffe.Extension):
    """Rewrites every docstring of the package."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Link what the roles name, and join the parameters that share a description."""
        if not obj.docstring:
            return
        text = ROLE.sub(lambda match: _link(match, obj), obj.docstring.value)
        # Markdown takes the indented block after a double colon for code without it.
        obj.docstring.value = re.sub(r"^::$", "", text, flags=re.MULTILINE)
        obj.docstring.parsed = obj.docstring.parse("numpy")
        for section in obj.docstring.parsed:
            if section.kind is griffe.DocstringSectionKind.parameters:
                section.value = [_joined(list(group)) for _, group in groupby(section.value, lambda p: p.description)]


def _link(match: re.Match[str], obj: griffe.Object) -> str:
    """Return the name as code, linked if the site has it: docstrings also name what is not public."""
    short, name = match.groups()
    target = name if "." in name else f"{obj.module.path}.{name}"
    shown = name.rpartition(".")[2] if short else name
    return f'<autoref identifier="{target}" optional><code>{shown}</code></autoref>'


def _joined(group: list[griffe.DocstringParameter]) -> griffe.DocstringParameter:
    """Return one entry without type and default: the signature above has them."""
    return griffe.DocstringParameter(", ".join(p.name for p in group), description=group[0].description)
