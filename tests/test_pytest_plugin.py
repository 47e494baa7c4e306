"""The pytest plugin: how suites share their budget, what a failure prints, and that it costs nothing until used."""

import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[1]
HEAD = """
import pytest
import ringtrue as rt

BELIEF, MODEL = rt.Normal(0, 1), lambda theta, rng: theta + rng.normal()

def right(mu0, y):
    return rt.Normal(y / 2, 0.5**0.5)

def wrong(mu0, y):
    return rt.Normal(y / 2, 0.1)
"""


def _python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), str(folder / "installed")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _install(folder: Path) -> None:
    """Make an installed distribution that has nothing but the entry points of ours."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]["pytest11"]
    info = folder / "installed" / "ringtrue_entry-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ringtrue-entry\nVersion: 1\n")
    lines = [f"{name} = {module}" for name, module in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))


def _pytest(folder: Path, code: str, *options: str, ini: str = "", head: str = HEAD) -> str:
    """Run pytest on a file of tests, with the plugin found as an installed one is, and return what it prints."""
    if not (folder / "installed").exists():
        _install(folder)
    (folder / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\n{ini}\n")
    (folder / "test_suite.py").write_text(head + textwrap.dedent(code))
    done = _python(folder, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", *options)
    return done.stdout + done.stderr


#: What is calibrated fails with this chance in all tests here; where it is left out, nothing is calibrated.
SMALL = "ringtrue_false_alarms = 1e-6"
SUITE = """
    @pytest.mark.parametrize("seed", [0, 1])
    def test_right(calibrated, seed):
        assert calibrated(BELIEF, MODEL, right, seed=seed).n >= 100

    def test_wrong(calibrated):
        calibrated(BELIEF, MODEL, wrong)

    def test_study(calibrated):
        calibrated(rt.Study(BELIEF, MODEL, right))

    @pytest.mark.calibration(checks=6)
    def test_several(calibrated):
        for seed in range(6):
            calibrated(BELIEF, MODEL, right, seed=seed)

    def test_other():
        pass
"""


def test_tests_share_the_budget_and_failures_explain_themselves(tmp_path: Path) -> None:
    """Ten checks of five tests have a tenth each; the failure prints sentence, evidence, replay and a page's path."""
    printed = _pytest(tmp_path, SUITE, "--ringtrue-report", "pages/of failures", ini=SMALL)
    assert "ringtrue: 10 calibration checks, 1e-07 false alarms each, 1e-06 of all together" in printed
    assert "1 failed, 5 passed" in printed
    assert "MISCALIBRATED (strong, p < 1e-300): theta is over-confident" in printed
    assert "a calibrated procedure fails with a chance of 1e-07 at most" in printed
    assert "ringtrue.judge(ringtrue.run(belief, model, procedure, n=100, seed=0), anytime=True)" in printed
    # The line of the test is shown, and none of ours.
    assert "> " in printed
    assert "suites.py" not in printed
    pages = list((tmp_path / "pages" / "of failures").glob("*.html"))
    assert len(pages) == 1
    assert f"Report: {pages[0]}" in printed
    assert "over-confident" in pages[0].read_text("utf-8")


def test_workers_share_the_budget_of_the_whole_suite(tmp_path: Path) -> None:
    """With xdist each worker knows of all tests, and the summary says how the budget was shared."""
    printed = _pytest(tmp_path, SUITE, "-n", "2", ini=SMALL)
    assert "2 workers" in printed
    assert "ringtrue: 10 calibration checks, 1e-07 false alarms each, 1e-06 of all together" in printed
    assert "a calibrated procedure fails with a chance of 1e-07 at most" in printed
    assert "1 failed, 5 passed" in printed


def test_a_selection_is_by_the_marker_and_has_the_budget_to_itself(tmp_path: Path) -> None:
    """Tests that use the fixture are marked; -k leaves one, which has all of the budget, 0.001 if nobody said."""
    printed = _pytest(tmp_path, SUITE, "-m", "calibration", "-k", "wrong")
    assert "ringtrue: 1 calibration check, 0.001 false alarms each, 0.001 of all together" in printed
    assert "a calibrated procedure fails with a chance of 0.001 at most" in printed
    # Six tests, of which five are marked: the plugin found twice is registered once.
    others = _pytest(tmp_path, SUITE, "-p", "_ringtrue_pytest", "-m", "not calibration")
    assert "1 passed, 5 deselected" in others
    assert "ringtrue:" not in others


REFUSED = """
    def test_twice(calibrated):
        calibrated(BELIEF, MODEL, right)
        calibrated(BELIEF, MODEL, right, false_alarm=1e-9)
        calibrated(BELIEF, MODEL, right)

    def test_hidden(request):
        request.getfixturevalue("calibrated")

    def test_own_level(calibrated):
        calibrated(BELIEF, MODEL, wrong, false_alarm=1e-9, first=50)
"""


def test_what_would_spend_more_than_the_budget_is_refused(tmp_path: Path) -> None:
    """A second check of a test, and a fixture that nobody could count; a level of one's own is taken."""
    printed = _pytest(tmp_path, REFUSED, ini=SMALL)
    assert "but this is number 2; mark it with @pytest.mark.calibration(checks=2)" in printed
    assert "mark it with @pytest.mark.calibration." in printed
    assert "n 50 fresh replicates" in printed
    assert "fails with a chance of 1e-09 at most" in printed
    assert "3 failed" in printed


@pytest.mark.parametrize(
    ("code", "ini", "message"),
    [
        ("def test_a(calibrated): pass", "ringtrue_false_alarms = few", "ringtrue_false_alarms must be a number"),
        ("@pytest.mark.calibration(checks=0)\ndef test_a(): pass", "", "takes checks=, a whole number of at least 1"),
        ("@pytest.mark.calibration(3)\ndef test_a(): pass", "", "takes checks=, a whole number of at least 1"),
    ],
)
def test_what_says_nothing_is_refused(code: str, ini: str, message: str, tmp_path: Path) -> None:
    """Before any test runs."""
    printed = _pytest(tmp_path, code, ini=ini, head="import pytest\n")
    assert message in printed
    assert "passed" not in printed


LOOK = """
    import sys

    def test_nothing_is_imported():
        assert "_ringtrue_pytest" in sys.modules
        assert [name for name in ("ringtrue", "numpy", "scipy") if name in sys.modules] == {found}
"""


def test_it_imports_nothing_until_it_is_used(tmp_path: Path) -> None:
    """A suite that does not use it has the plugin, and neither ringtrue nor numpy; nor a word about it."""
    options = ["-p", "no:hypothesispytest"]
    printed = _pytest(tmp_path, LOOK.format(found=[]), *options, head="")
    assert "1 passed" in printed
    assert not re.search("^ringtrue:", printed, flags=re.MULTILINE)


def test_what_imports_would_be_seen(tmp_path: Path) -> None:
    """The broken twin: the same look finds numpy in a suite that imports it."""
    printed = _pytest(tmp_path, LOOK.format(found=[]), "-p", "no:hypothesispytest", head="import numpy\n")
    assert "1 failed" in printed


def test_it_brings_no_module_that_pytest_does_not(tmp_path: Path) -> None:
    """Importing it imports itself alone."""
    code = "import sys, pytest; had = {*sys.modules}; import _ringtrue_pytest; print({*sys.modules} - had)"
    assert _python(tmp_path, "-c", code).stdout.strip() == "{'_ringtrue_pytest'}"


def test_the_wheel_has_it() -> None:
    """What is built is the package and this module."""
    built = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built["packages"] == ["src/ringtrue", "src/_ringtrue_pytest.py"]
    assert all((ROOT / package).exists() for package in built["packages"])
