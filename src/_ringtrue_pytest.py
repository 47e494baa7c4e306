"""The pytest plugin of ringtrue: the fixture ``calibrated``, and a budget of false alarms for the whole suite.

pytest imports it in every run of everybody who has ringtrue installed, so that it stands outside the package and
imports nothing of it, nor numpy, before a test asks for the fixture. What it asserts is in ``ringtrue.testing``.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ringtrue.testing import Passed

#: How many checks of the suite share its budget; and the same as workers of xdist told their controller.
_CHECKS, _TOLD = pytest.StashKey[int](), pytest.StashKey[int]()
_MARKER = "calibration(checks=1): asks whether procedures are calibrated, so many times; see the fixture `calibrated`."
_INI = "How likely a suite may fail by chance if all is calibrated (0.001); its tests with `calibrated` share it."


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option and the budget."""
    option = parser.getgroup("ringtrue").addoption
    option("--ringtrue-report", metavar="DIR", help="Write a page about every calibration test that fails into DIR.")
    parser.addini("ringtrue_false_alarms", _INI, default="0.001")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(tryfirst=True)  # before -m selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the fixture."""
    for item in items:
        if "calibrated" in getattr(item, "fixturenames", ()) and _marker(item) is None:
            item.add_marker("calibration")


@pytest.hookimpl(tryfirst=True)  # before the terminal reports it
def pytest_collection_finish(session: pytest.Session) -> None:
    """Count what shares the budget: every worker of xdist collects all tests, and finds the same number."""
    session.config.stash[_CHECKS] = sum(map(_checks, session.items))


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say how the budget is shared."""
    return _shares(config, config.stash.get(_CHECKS, 0))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the controller of xdist, which collects nothing, how many checks there were."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["ringtrue_checks"] = session.config.stash.get(_CHECKS, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear it."""
    told = getattr(node, "workeroutput", {}).get("ringtrue_checks", 0)
    node.config.stash[_TOLD] = max(told, node.config.stash.get(_TOLD, 0))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how the budget was shared if workers knew it."""
    for line in _shares(config, config.stash.get(_TOLD, 0)):
        terminalreporter.write_line(line)


@pytest.fixture
def calibrated(request: pytest.FixtureRequest) -> Callable[..., Passed]:
    """Assert that a procedure is calibrated: ``calibrated(belief, model, procedure)``, or of a study.

    Takes what ``ringtrue.testing.assert_not_miscalibrated`` takes. ``false_alarm`` is the test's share of the suite's
    budget unless it is given.
    """
    item, config, calls, shared = request.node, request.config, count(1), count(1)
    budget, most = _budget(config), _checks(item)
    if not most:
        raise pytest.UsageError(
            f"{item.nodeid} asked for `calibrated` in a way that cannot be seen before it runs, so that it has no "
            f"share of the budget; mark it with @pytest.mark.calibration."
        )

    def check(*question: Any, false_alarm: float | None = None, **settings: Any) -> Passed:
        __tracebackhide__ = True
        from ringtrue.testing import assert_not_miscalibrated

        share = budget / config.stash[_CHECKS] if false_alarm is None else false_alarm
        if false_alarm is None and (call := next(shared)) > most:
            raise pytest.UsageError(
                f"{item.nodeid} has a share of the budget for {most} of its calls of `calibrated`, but this is number "
                f"{call}; mark it with @pytest.mark.calibration(checks={call}), or as many as there are."
            )
        settings.setdefault("report", _page(config, item.nodeid, next(calls)))
        return assert_not_miscalibrated(*question, false_alarm=share, **settings)

    return check


def _marker(item: Any) -> pytest.Mark | None:
    found: pytest.Mark | None = item.get_closest_marker("calibration")
    return found


def _checks(item: Any) -> int:
    """Return how many checks of a test share the budget."""
    marker = _marker(item)
    if marker is None:
        return 0
    many = marker.kwargs.get("checks", 1)
    if marker.args or {*marker.kwargs} - {"checks"} or type(many) is not int or many < 1:
        raise pytest.UsageError(
            f"@pytest.mark.calibration takes checks=, a whole number of at least 1, but {item.nodeid} has "
            f"{marker.args or marker.kwargs}."
        )
    return many


def _budget(config: pytest.Config) -> float:
    """Return the chance that the suite fails although all is calibrated."""
    text = config.getini("ringtrue_false_alarms")
    try:
        budget = float(text)
    except ValueError:
        budget = 0.0
    if not 0 < budget < 1:
        raise pytest.UsageError(f"ringtrue_false_alarms must be a number between 0 and 1, but {text!r} arrived.")
    return budget


def _shares(config: pytest.Config, checks: int) -> list[str]:
    if not checks:
        return []
    budget, what = _budget(config), "check" if checks == 1 else "checks"
    return [
        f"ringtrue: {checks} calibration {what}, {budget / checks:.2g} false alarms each, {budget:.2g} of all together"
    ]


def _page(config: pytest.Config, test: str, call: int) -> Path | None:
    """Return where the page about a failure goes, None if nobody wants one."""
    folder = config.getoption("--ringtrue-report")
    if folder is None:
        return None
    place = Path(config.invocation_params.dir, folder)
    place.mkdir(parents=True, exist_ok=True)
    # Tests whose names differ in what a file name cannot have, or behind its end, must not share a page.
    name = f"{re.sub(r'[^A-Za-z0-9_.]+', '-', test)[-100:].strip('-.')}-{zlib.crc32(test.encode()):08x}"
    return place / f"{name}{f'-{call}' if call > 1 else ''}.html"
