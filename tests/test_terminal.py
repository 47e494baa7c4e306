"""A run as a page of text: it fits, and nothing in a file speaks to the terminal."""

from dataclasses import replace
from pathlib import Path

import pytest

import ringtrue as rt
from ringtrue.characters import one_line
from ringtrue.execution.store.store import Standing
from ringtrue.judgement.looks import Look
from ringtrue.judgement.watching import Sight, causes, trails
from ringtrue.terminal import page

from .builders import HOSTILE, calibrated, failing, hostile

MIDDLE = Standing(n=400, done=100, failed=3, seconds=50.0, first_write=1e9, last_write=1e9 + 50, opened=1e9, since=100)


def _sight(result: rt.Result, standing: Standing = MIDDLE, **settings: object) -> Sight:
    """Return what is seen of a run, judged over time, that goes on."""
    found = rt.judge(replace(result.replicates, stored=None), anytime=True)
    about: dict[str, object] = {"held": True, "at": 1e9 + 51, "result": found, "trails": trails(found), **settings}
    return Sight(Path("run.db"), standing, causes(found.failures), **about)  # type: ignore[arg-type]


def _has(text: str, *parts: str) -> None:
    assert [part for part in parts if part not in text] == [], text


def test_a_page_says_what_is_known() -> None:
    """Progress, rate, time to go, failures by cause, the verdict so far, its evidence, and sizes over replicates."""
    seen = _sight(failing())
    text = page(seen, width=120)
    _has(
        text,
        "run.db\n100 of 400 replicates, 3 failed\n[##############-----",
        "2 per second, 2 min 30 s to go",
        "last written",
    )
    assert seen.result is not None
    _has(text, f"E = {seen.result.evalue:.3g}, where 20 is enough", f"any time is {seen.result.pvalue:.2g}")
    assert all(one_line(f"{many} {cause}")[:100] in text for cause, many in seen.causes[:5])
    name = next(iter(seen.trails))
    n, spread = seen.trails[name]["spread"][-1]
    _has(text, "intervals hold at all numbers of replicates together", f"\n{n} ", f"({spread.low:.2f} to ")


@pytest.mark.parametrize("width", [10, 24, 40, 80, 200])
def test_lines_are_no_wider_than_the_terminal(width: int) -> None:
    """Sentences are wrapped, tables lose columns, long names and causes are cut."""
    for result in (calibrated(), failing(), hostile()):
        assert max(map(len, page(_sight(result), width=width).splitlines())) <= max(width, 24)


def test_names_do_not_speak_to_the_terminal() -> None:
    """Control characters, escape sequences and what turns the direction of text are spelled out."""
    evil = replace(_sight(hostile()), causes=(("\x1b[2J\x07\u202e\r\udc80", 1),), path=Path("a\x1b]0;title\x07.db"))
    for width in (40, 200):
        text = page(evil, width=width)
        assert all(one.isprintable() or one == "\n" for one in text)
    assert "\\x1b[2J" in page(evil, width=200)
    assert not all(one.isprintable() for one in "".join(HOSTILE))  # the names would have spoken


def test_a_run_that_does_not_go_on_promises_nothing() -> None:
    """No time to go is named where nobody writes, where nothing was written for long, and at the end."""
    result = calibrated()
    _has(page(_sight(result, held=False), width=100), "nobody writes to it now")
    stalled = page(_sight(result, at=1e9 + 500), width=200)
    _has(stalled, "slow, or was killed")
    complete = page(_sight(result, replace(MIDDLE, done=400)), width=100)
    _has(complete, "complete")
    for text in (page(_sight(result, held=False), width=100), stalled, complete):
        assert "to go" not in text
    assert "to go" in page(_sight(result), width=100)


def test_what_is_not_judged_says_why() -> None:
    """Without a result there is a reason, or nothing was to be judged."""
    bare = replace(_sight(calibrated()), result=None, trails={})
    assert "udged" not in page(bare, width=80)
    _has(page(replace(bare, unjudged="all were lost"), width=80), "Not judged: all were lost")
    _has(page("there is no run.db yet", width=80), "Waiting: there is no run.db yet.")


def test_a_look_that_is_not_remembered_is_told() -> None:
    """A note of the look stands under the verdict; tests for one n are said to be that."""
    found = calibrated()
    seen = replace(_sight(found), result=replace(found, look=Look(1, 1, "no room")), trails={})
    _has(page(seen, width=200), "could not be written down", "no room", "tests for one n")
