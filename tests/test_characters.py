"""What is printed of names and errors of others: a terminal shows it and does not obey it."""

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.characters import one_line, printable
from ringtrue.errors import InvalidStudy
from ringtrue.replicates.record import Failure

from .builders import BELIEF, noisy, posterior, refusal, replicates
from .test_cli import _exit
from .test_cli_runs import _runs

#: Clears the screen, turns the reading round, rings, ends a line too early and is half a character.
EVIL = "a\x1b[2J\u202eb\x07\x9b1m\nwithin tolerance\rc\u2066\x7f\ud800"


def _is_safe(text: str) -> bool:
    """Whether no character but the end of a line is a control, a direction or half of another."""
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    kinds = {unicodedata.category(one) for one in text.replace("\n", "")}
    return not kinds & {"Cc", "Cs", "Zl", "Zp"} and not turning & set(map(unicodedata.bidirectional, text))


def test_every_unsafe_character_is_spelled_out() -> None:
    """Of all of Unicode, what is not a control, a direction or a half is left as it is, and the others are not."""
    for code in range(0x110000):
        one = chr(code)
        assert _is_safe(printable(one)) or one == "\t"
        if unicodedata.category(one)[0] in "LMNPS" or one == " ":
            assert one_line(one) == one
    assert not _is_safe(EVIL)
    assert "\n" not in one_line(EVIL)


def test_errors_can_be_printed() -> None:
    """An error of ours with a name in it is safe however it is printed; what was raised is still in its arguments."""
    assert _is_safe(str(InvalidStudy(f"no {EVIL}")))
    assert InvalidStudy(EVIL).args == (EVIL,)


def _result() -> rt.Result:
    u = np.stack([np.linspace(0.005, 0.495, 50), np.linspace(0.01, 0.99, 50)], axis=1)
    return rt.judge(replicates(u, names=[EVIL, "plain"]))


PRINTED: dict[str, Any] = {
    "result": lambda: str(_result()),
    "html": lambda: _result()._repr_html_(),
    "one function": lambda: str(_result()[EVIL]),
    "measures": lambda: str(rt.measure(_result())),
    "replicates": lambda: repr(_result().replicates),
    "order": lambda: str(rt.independence(_result())),
    "unknown function": lambda: refusal(lambda: _result()[f"no{EVIL}"]),
    "lost": lambda: str(rt.judge(_with_a_failure())),
    "comparison": lambda: str(rt.compare({EVIL: posterior, "other": posterior}, belief=BELIEF, model=noisy, n=50)),
    "sweep": lambda: str(rt.sweep(lambda x: rt.Study(BELIEF, noisy, posterior), [EVIL, "b"], n=20)),
}


def _with_a_failure() -> rt.Replicates:
    found = replicates(np.linspace(0.05, 0.95, 40), lost=[3])
    return rt.Replicates(found.header, found.arrays, (Failure(3, EVIL, EVIL, EVIL),), reference=found.reference)


@pytest.mark.slow
@pytest.mark.parametrize("what", PRINTED)
def test_whatever_is_printed_is_safe(what: str) -> None:
    """Names of functions and procedures, stages and errors of failures: no control character, and no line of theirs."""
    text = PRINTED[what]()
    assert _is_safe(text)
    assert "\nwithin tolerance" not in text


def test_a_store_with_such_names_is_shown_and_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Show, judge and refusals print names, errors and tags of a file without obeying them."""

    def fails(mu0: Any, y: Any) -> Any:
        if y > 1:
            raise ValueError(EVIL)
        return posterior(mu0, y)

    path = tmp_path / "run.db"
    asked: dict[str, Any] = {"n": 40, "store": path, "tag": EVIL, "on_failure": "record", "failures_allowed": 1.0}
    names = [rt.Function(lambda t: t, EVIL.replace("\ud800", ""))]
    rt.run(rt.Study(BELIEF, noisy, fails, f=names), **asked)
    for command in (_runs, _exit):
        command("show" if command is _runs else "judge", str(path))
        printed = capsys.readouterr()
        assert _is_safe(printed.out + printed.err)
        assert r"\x1b[2J\u202eb" in printed.out
        assert "\nwithin tolerance" not in printed.out
    with pytest.raises(rt.errors.StoreMismatch) as caught:
        rt.run(rt.Study(BELIEF, noisy, fails, f=names), **{**asked, "tag": "other"})
    assert _is_safe(str(caught.value))


def test_errors_of_the_command_line_are_safe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A study file whose error has control characters, and a file name that has them, are one safe sentence."""
    (tmp_path / "study.py").write_text("raise ValueError('\\x1b[31m\\u202e')")
    assert _exit("check", str(tmp_path / "study.py")) == 3
    assert _exit("show", str(tmp_path / "a\x1b[31m.db")) == 3
    assert _is_safe(capsys.readouterr().err)
