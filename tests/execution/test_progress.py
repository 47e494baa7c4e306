"""How far a run is: rates are those of replicates, not of what is done once before them."""

import time
from typing import Any

import pytest

from ringtrue.execution import progress
from ringtrue.execution.progress import Progress


def test_time_to_go_is_that_of_replicates_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A procedure that compiles for ten seconds and then takes a tenth of one is no run of minutes."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    shown = Progress(101, 0, "off")
    assert shown.text() == "0 of 101 replicates, time to go not known"
    now[0] = 10.0
    shown.add(1)
    assert shown.text() == "1 of 101 replicates, time to go not known"
    now[0] = 11.0
    shown.add(10, failed=2)
    assert shown.text() == "11 of 101 replicates, 10 per second, 9 s to go, 2 failed"


def test_a_bar_counts_from_the_first_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar's own rate leaves out what came before them, whenever it is drawn."""
    now, bars = [0.0], list[Any]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "interactive", lambda: True)
    with Progress(100, 20, True) as shown:
        for at, count in ((1.0, 5), (9.0, 5), (10.0, 5)):
            now[0] = at
            shown.add(count)
            bars.append(shown._bar)
        assert bars[0] is None  # nothing is shown of short runs
        assert (bars[2].initial, bars[2].n) == (25, 35)
