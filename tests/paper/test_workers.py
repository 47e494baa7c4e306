"""Vignettes in two processes: outcomes in order, and an error or an interruption ends them all."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from ringtrue.paper import workers

pytestmark = [pytest.mark.paper, pytest.mark.process]


def process_of(item: int) -> tuple[int, int]:
    """Return the item and who saw it."""
    return item, os.getpid()


def refuse(item: int) -> int:
    """Refuse one item."""
    if item == 1:
        raise ValueError("item 1 was refused")
    return item


@pytest.fixture(autouse=True)
def _two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)


@pytest.mark.parametrize("worth", [True, False])
def test_outcomes_come_in_order(worth: bool) -> None:
    """Every item has its outcome, in order and from a process of its own only if that is worth it."""
    found = list(workers.outcomes(process_of, range(9), iter, worth=worth))
    assert [item for item, _ in found] == list(range(9))
    assert (os.getpid() in {who for _, who in found}) is not worth


@pytest.mark.parametrize("worth", [True, False])
def test_an_error_arrives(worth: bool) -> None:
    """What one item raises is raised where outcomes are asked for."""
    with pytest.raises(ValueError, match="item 1 was refused"):
        list(workers.outcomes(refuse, range(9), iter, worth=worth))


def test_an_interruption_ends_it() -> None:
    """An interruption while outcomes are awaited is not kept until all are there."""

    def interrupt(items: Any) -> Iterator[Any]:
        yield next(iter(items))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(workers.outcomes(process_of, range(9), interrupt, worth=True))
