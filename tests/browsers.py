"""The browser of this machine, for tests that open pages."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def browser() -> str:
    """Return the browser; without one the test is skipped, or failed where CI=true says that nothing may be missing."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        missing = f"none of {', '.join(NAMES)} is installed"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found
