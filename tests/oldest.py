"""Prints the lowest version of everything that pyproject.toml declares, as constraints for pip.

Needs nothing but Python: it runs before anything is installed.
"""

import re
import tomllib
from pathlib import Path


def lowest(project: dict[str, object]) -> list[str]:
    """Return ``name==version`` for every ``name>=version`` of the dependencies and of the extras.

    Examples
    --------
    >>> lowest({"dependencies": ["a>=1.2"], "optional-dependencies": {"more": ["me[all]", "b[c]>=3"]}})
    ['a==1.2', 'b==3']
    """
    text = repr([project["dependencies"], project["optional-dependencies"]])
    return sorted({f"{name}=={version}" for name, version in re.findall(r"'([\w-]+)(?:\[[^']*?\])?>=([\w.]+)'", text)})


if __name__ == "__main__":
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    print("\n".join(lowest(tomllib.loads(pyproject.read_text("utf-8"))["project"])))
