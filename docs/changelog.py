"""Writes the section of this version into CHANGELOG.md, from the fragments in changelog.d.

It may be run again, when there are more fragments: the section of this version is made anew, and those of others stay.
Fragments are rendered by towncrier, which itself refuses a version that is there already, and are left where they are.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Behind it versions stand, the newest first.
MARK = "<!-- versions -->\n"


def version() -> str:
    """Return the version that the package says it is."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/ringtrue/__init__.py").read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def section(number: str) -> str:
    """Return what towncrier makes of the fragments."""
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", number]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8")
    return done.stdout[done.stdout.index(f"## {number} ") :].strip()


def with_section(text: str, number: str, new: str) -> str:
    r"""Return the changes with a section in the place of an older one of the same version, or before all others.

    Examples
    --------
    >>> with_section("head\n<!-- versions -->\n\n## 2 (then)\n\nold\n\n## 1 (before)\n\nfirst\n", "2", "## 2 (now)")
    'head\n<!-- versions -->\n\n## 2 (now)\n\n## 1 (before)\n\nfirst\n'
    """
    head, _, versions = text.partition(MARK)
    others = re.sub(rf"^## {re.escape(number)} .*?(?=^## |\Z)", "", versions, flags=re.MULTILINE | re.DOTALL).strip()
    return f"{head}{MARK}\n{new}\n" + (f"\n{others}\n" if others else "")


if __name__ == "__main__":
    changes = ROOT / "CHANGELOG.md"
    changes.write_text(with_section(changes.read_text("utf-8"), version(), section(version())), "utf-8")
