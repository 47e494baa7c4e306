"""From a result to files: the page and its twin.

Puts content and pictures into the template. Everything that comes from a user is escaped by the template; pictures are
escaped where they are made.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RingtrueError
from ..execution.progress import duration
from ..export import Origin, as_text, document, write
from ..judgement.fits import meaning
from ..judgement.result import Result
from ..judgement.text import format_p
from ..judgement.verdict import Verdict
from . import content

if TYPE_CHECKING:
    from jinja2 import Template

_TITLES = {
    Verdict.MISCALIBRATED: "Miscalibrated",
    Verdict.WITHIN_TOLERANCE: "Within tolerance",
    Verdict.INCONCLUSIVE: "Inconclusive",
}


def report(result: Result, path: str | os.PathLike[str], *, origin: Origin | None = None) -> Path:
    """Write a result as one self-contained HTML page, and as JSON beside it; return the page's file.

    Parameters
    ----------
    result
        The answer.
    path
        Where the page goes, such as "report.html"; the JSON has the same name with the ending .json.
    origin
        The store that the replicates came from, if any: its fingerprint and progress are shown.
    """
    if not isinstance(result, Result):
        raise TypeError(f"report needs the Result that judge or check returns, but {type(result).__name__} arrived.")
    target, twin = need_place(path)
    every = content.details(result)
    # Both texts are made before either is written, so that an error leaves the files of an earlier run as a pair.
    plain = {**document(result, origin=origin), "details": every and every.plain}
    text = render(result, plain, twin=twin.name, details=every)
    # The page names its twin, so that the twin is there first.
    write(twin, as_text(plain))
    return write(target, text)


def need_place(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return the files of a page and its twin; refuse, before anything is computed, what could not be written."""
    # Imported and not merely looked for: a broken installation should be found before an hour of simulation.
    for module in ("matplotlib", "jinja2"):
        _need(module)
    target = Path(path)
    twin = target.with_suffix(".json")
    if target.suffix.lower() not in ("", ".html", ".htm", ".json"):
        raise RingtrueError(f"a page is HTML, and should end in .html, but {target} arrived; print it for a PDF.")
    if twin == target:
        raise RingtrueError(f"a page should end in .html, but {target} arrived, where the JSON beside it would go.")
    if target.is_dir() or not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise RingtrueError(f"a page must go into a folder that can be written to, but {target} cannot be written.")
    return target, twin


def render(result: Result, plain: dict[str, Any], *, twin: str, details: content.Details | None) -> str:
    """Return the page as text.

    Parameters
    ----------
    result
        The answer.
    plain
        Its twin.
    twin
        The name of the file that the twin is in.
    details
        Every measure, if there are any.
    """
    from . import figures

    return template("page.html").render(
        result=result,
        plain=plain,
        **of_verdict(result),
        advice=content.advice(result),
        blind_spots=content.blind_spots(result),
        measures=content.cells(result),
        of_all=content.of_all(result),
        details=details,
        tests=content.tests(result),
        rows=content.ROWS,
        printed=content.PRINTED,
        leading=figures.leading(result),
        panels=figures.panels(result),
        overview=figures.overview(result),
        fits=content.fits(result),
        meaning=meaning(result.diagnostics.verdicts),
        fit_pictures=figures.fits(result),
        causes=content.causes(result.replicates),
        twin=twin,
    )


def template(name: str) -> Template:
    """Return a template whose text is escaped, and that refuses what it is not given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("ringtrue.report", "."),
        autoescape=True,
        # A misspelled name in the template must fail instead of leaving a gap.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalised,
    )
    # Pictures are markup already; escaped they would show their source.
    environment.filters |= {"short": content.short, "p": format_p, "duration": duration, "svg": Markup}
    return environment.get_template(name)


def of_verdict(result: Result) -> dict[str, Any]:
    """Return what the box of a verdict needs: its title, its word among styles, what stands beside it, sentences."""
    word = result.verdict.name.lower().replace("_", "-")
    aside, sentences = _told(result)
    return {"title": _TITLES[result.verdict], "word": word, "aside": aside, "sentences": sentences}


def _told(result: Result) -> tuple[str, list[str]]:
    """Return the level and p-value for the head of the box, and the sentence without the verdict's word."""
    lines = [content.short(line, 2000) for line in result.sentence.splitlines() if line]
    head, _, rest = lines[0].partition(": ")
    word = result.verdict.words.upper()
    if not head.startswith(word):
        return "", lines
    return head.removeprefix(word).strip(), [rest, *lines[1:]]


def _finalised(value: Any) -> Any:
    # Markup is a kind of str too, and was spelled out where it was made.
    return content.spelled(value) if type(value) is str else value


def _need(module: str) -> None:
    try:
        import_module(module)
    except ImportError:
        raise RingtrueError(f"a report needs {module}; run: pip install 'ringtrue[plot]'") from None
