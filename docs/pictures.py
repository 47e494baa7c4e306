"""Draw the pictures of the gallery: run the snippets of docs/gallery.md, and put what they save into docs/images.

Run it when the look of pictures changes: ``make pictures``. Coordinates are rounded to a tenth of a point, so that
files stay small.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent


def snippets() -> list[str]:
    """Return the python blocks of the gallery."""
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / "gallery.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)


def drawn(code: str) -> dict[str, str]:
    """Run a snippet and return the pictures that it saves, by name."""
    import matplotlib
    from matplotlib import pyplot as plt

    # Letters stay letters: a path for each would be most of the file.
    settings = {"svg.fonttype": "none", "svg.hashsalt": "ringtrue"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), matplotlib.rc_context(settings):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, "<gallery>", "exec"), {"__name__": "__snippet__"})
        plt.close("all")
        return {file.name: tidied(file.read_text("utf-8")) for file in sorted(Path(folder).glob("*.svg"))}


def tidied(svg: str) -> str:
    """Return a picture without its metadata, and with rounded coordinates."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # In attributes only: the numbers at an axis are text.
    svg = re.sub(r'="[^"]*"', lambda found: _rounded(found[0]), svg)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


def _rounded(text: str) -> str:
    return re.sub(r"-?\d+\.\d{2,}", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), text)


if __name__ == "__main__":
    for code in snippets():
        for name, text in drawn(code).items():
            (DOCS / "images" / name).write_text(text, "utf-8")
            print(name, len(text))
