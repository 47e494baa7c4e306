"""The command line: exit codes that can be trusted, one sentence per error, JSON that parses."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ringtrue.cli import main

ROOT = Path(__file__).parents[1]

STUDY = """
import ringtrue as rt

SD = 0.5**0.5
belief = rt.Normal(0, 1)
n = {n}


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    return rt.Normal(y / 2, {scale} * SD)
"""


def _file(folder: Path, text: str, name: str = "study.py") -> str:
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


def _exit(*arguments: str) -> int:
    """Return the exit code; anything but a clean exit is a failure of the test."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    return caught.value.code


# Verdicts.


@pytest.mark.parametrize(
    ("n", "scale", "code", "word"),
    # alpha is 1e-6: a calibrated procedure at n = 10000 is certified with chance far above 0.999, one with half the sd
    # is found at n = 500 by eight standard errors, and n = 20 cannot settle anything.
    [(10_000, 1.0, 0, "WITHIN TOLERANCE"), (500, 0.5, 1, "MISCALIBRATED"), (20, 1.0, 2, "INCONCLUSIVE")],
)
def test_exit_codes_are_the_verdicts(
    n: int, scale: float, code: int, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 within tolerance, 1 miscalibrated, 2 inconclusive; the sentence comes first."""
    study = _file(tmp_path, STUDY.format(n=n, scale=scale))
    assert _exit("check", study, "--alpha", "1e-6") == code
    assert capsys.readouterr().out.startswith(word)


def test_a_run_until_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It needs no n, stops by itself, and judging the file shows what holds whenever one looks.

    Half the sd has evidence at 1e-6 within 200 replicates but for one run in far more than a million.
    """
    file = _file(tmp_path, STUDY.format(n=10, scale=0.5))
    store = tmp_path / "run.db"
    stop = ["--until", "decided", "--max-n", "1000", "--store", str(store), "--alpha", "1e-6"]
    assert _exit("check", file, *stop, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["stopped"], found["anytime"]) == ("evidence", True)
    assert found["n"] < 1000
    assert _exit("judge", str(store), "--alpha", "1e-6", "--details") == 1
    both = capsys.readouterr()
    assert "evidence that holds whenever one looks" in both.err
    assert "log E" in both.out


def test_stopping_by_time_and_what_excludes_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A limit of time that is not reached changes how it is judged; n and until exclude each other."""
    file = _file(tmp_path, STUDY.format(n=20, scale=1.0))
    assert _exit("check", file, "--max-seconds", "3600", "--json") == 2
    assert json.loads(capsys.readouterr().out)["anytime"]
    assert _exit("check", file, "--until", "decided", "--n", "10") == 3
    assert "exclude each other" in capsys.readouterr().err
    assert _exit("check", file, "--until", "decided", "--shard", "0/2", "--store", str(tmp_path / "x.db")) == 3
    assert "does not see the others" in capsys.readouterr().err
    main(["plan", "--until", "decided", "--spread", "2"])
    assert "decided after about" in capsys.readouterr().out


def test_a_study_object_and_its_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file may define ``study`` and ``n``; --n and --seed stand in for theirs."""
    text = STUDY.format(n=30, scale=1) + "\nstudy = rt.Study(belief, model, procedure, seed=3)\n"
    assert _exit("check", _file(tmp_path, text), "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["n"], found["seed"]) == (30, 3)
    assert _exit("check", _file(tmp_path, text), "--n", "25", "--seed", "7", "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["n"], found["seed"]) == (25, 7)


def test_json_is_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one JSON object with verdict, sentence, tests and measures, and nothing else on stdout."""
    assert _exit("check", _file(tmp_path, STUDY.format(n=3, scale=1)), "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "INCONCLUSIVE"
    assert {"sentence", "pvalue", "levels", "tests", "measures", "resolution", "failures", "notes"} <= set(found)


def test_what_a_study_prints_does_not_spoil_the_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A study file that prints, while loading or while running, leaves the JSON on stdout intact."""
    text = STUDY.format(n=3, scale=1).replace("    return theta", "    print('simulating')\n    return theta")
    assert _exit("check", _file(tmp_path, "print('loading')\n" + text), "--json") == 2
    assert json.loads(capsys.readouterr().out)["n"] == 3


def test_the_readme_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """The commands of the README do what it says."""
    study = str(ROOT / "examples" / "study.py")
    assert _exit("check", study) == 1
    assert _exit("check", study, "--json") == 1
    main(["plan", "--spread", "1.25"])
    assert "103 replicates" in capsys.readouterr().out


def test_lost_replicates_are_recorded_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--on-failure record goes on, and the result shows what was lost."""
    text = STUDY.format(n=60, scale=1).replace(
        "    return rt.N", "    if y > 2:\n        raise OSError('disk')\n    return rt.N"
    )
    study = _file(tmp_path, text)
    assert _exit("check", study) == 3
    assert "OSError: disk" in capsys.readouterr().err
    assert _exit("check", study, "--on-failure", "record") == 2
    assert "OSError: disk" in capsys.readouterr().out


# What cannot be run is 3, and never looks like a verdict.


BROKEN = {
    "syntax": ("x = (", "SyntaxError"),
    "raises": ("1 / 0", "ZeroDivisionError"),
    "empty": ("", "must define"),
    "not a study": ("study = 3", "must define"),
    "a study without n": (
        STUDY.format(n=5, scale=1) + "\nstudy = rt.Study(belief, model, procedure)\ndel n",
        "but n is",
    ),
    "half a study": ("import ringtrue as rt\nbelief = rt.Normal(0, 1)", "model, procedure, n are missing"),
    "exits with 0": ("import sys\nsys.exit(0)", "exit|Exit"),
    "exits with 1": ("import sys\nsys.exit(1)", "exit|Exit"),
    "belief raises": (STUDY.format(n=5, scale=1) + "\nbelief = lambda rng: rng.nope()", "nope"),
    "belief is a class": (STUDY.format(n=5, scale=1) + "\nbelief = rt.Normal", "belief"),
    "procedure raises": (STUDY.format(n=5, scale=1) + "\nprocedure = lambda mu0, y: 1 / 0", "ZeroDivisionError"),
    "bad n": (STUDY.format(n=0, scale=1), "n must be a whole number"),
    "type error": (STUDY.format(n=5, scale=1) + "\nf = rt.BestOf([rt.identity], splits=2.5)", "splits|split"),
}


def test_a_file_that_is_no_python_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of draws is not executed, whatever is in it; the sentence names the function that takes draws."""
    for name in ("draws.csv", "draws"):
        file, trace = tmp_path / name, tmp_path / "was-run"
        file.write_text(f"open({str(trace)!r}, 'w')", "utf-8")
        assert _exit("check", str(file)) == 3
        said = capsys.readouterr().err
        assert f"ringtrue check-draws {file}" in said
        assert "check_draws(theta, draws)" in said
        assert not trace.exists()


@pytest.mark.parametrize("text", [pytest.param(*row, id=key) for key, row in ((k, (v,)) for k, v in BROKEN.items())])
def test_what_cannot_be_run_is_three(text: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is wrong with the file, the exit code is 3 and stderr has one sentence, not a traceback."""
    assert _exit("check", _file(tmp_path, text[0])) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert any(word in captured.err for word in text[1].split("|"))
    assert "Traceback" not in captured.err


def test_an_unforeseen_error_is_not_the_verdict_miscalibrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A crash inside ringtrue exits with 3: Python's own 1 would read as "miscalibrated" in a pipeline."""

    def crash(*args: object, **settings: object) -> None:
        raise RuntimeError("out of cheese")

    monkeypatch.setattr("ringtrue.judgement.judging.check", crash)
    assert _exit("check", _file(tmp_path, STUDY.format(n=3, scale=1))) == 3
    assert "out of cheese" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bogus"],
        ["check"],
        ["check", "no_such_file.py"],
        ["check", "."],
        ["check", "STUDY", "--n", "0"],
        ["check", "STUDY", "--n", "2.5"],
        ["check", "STUDY", "--seed", "-1"],
        ["check", "STUDY", "--test", "kolmogorov"],
        ["check", "STUDY", "--on-failure", "ignore"],
        ["check", "STUDY", "--alpha", "7"],
        ["check", "STUDY", "--alpha", "nan"],
        ["plan"],
        ["plan", "--spread", "1"],
        ["plan", "--spread", "-1"],
        ["plan", "--spread", "nan"],
        ["plan", "--spread", "abc"],
        ["plan", "--spread", "1.2", "--bias", "0.1"],
        ["plan", "--spread", "1.2", "--power", "2"],
        ["plan", "--spread", "1.2", "--alpha", "0"],
        ["plan", "--spread", "1.2", "--draws", "0"],
        ["plan", "--bias", "0"],
    ],
    ids=" ".join,
)
def test_bad_arguments_are_three(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad arguments exit with 3, not with click's own 2, which would read as "inconclusive"."""
    study = _file(tmp_path, STUDY.format(n=3, scale=1))
    assert _exit(*(study if word == "STUDY" else word for word in arguments)) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err


def test_a_bad_alpha_is_refused_before_the_run(tmp_path: Path) -> None:
    """No simulation is lost to a typo in --alpha."""
    mark = tmp_path / "simulated"
    text = STUDY.format(n=3, scale=1).replace(
        "    return theta", f"    open({str(mark)!r}, 'w').close()\n    return theta"
    )
    assert _exit("check", _file(tmp_path, text), "--alpha", "7") == 3
    assert not mark.exists()


def test_plan_names_its_own_options(capsys: pytest.CaptureFixture[str]) -> None:
    """An error of ``plan`` speaks of --spread and --bias, the options there are."""
    assert _exit("plan") == 3
    error = capsys.readouterr().err
    assert "spread" in error
    assert "bias" in error
    assert "eta" not in error


def test_modules_beside_the_study_can_be_imported_at_any_time(tmp_path: Path) -> None:
    """A study may import a neighbour at the top or inside a function, and the search path is left as it was."""
    _file(tmp_path, "NOISE = 1.0\n", "a_neighbour.py")
    text = STUDY.format(n=3, scale=1).replace(
        "    return theta + rng.normal()",
        "    from a_neighbour import NOISE\n\n    return theta + NOISE * rng.normal()",
    )
    before = list(sys.path)
    assert _exit("check", _file(tmp_path, text)) == 2
    assert sys.path == before


def test_a_study_may_change_the_search_path(tmp_path: Path) -> None:
    """What a study file puts on the search path stays there while it runs."""
    (tmp_path / "lib").mkdir()
    _file(tmp_path / "lib", "NOISE = 1.0\n", "another_neighbour.py")
    text = STUDY.format(n=3, scale=1).replace(
        "    return theta + rng.normal()",
        "    from another_neighbour import NOISE\n\n    return theta + NOISE * rng.normal()",
    )
    before = list(sys.path)
    try:
        start = f"import sys\nsys.path.insert(0, {str(tmp_path / 'lib')!r})\n"
        assert _exit("check", _file(tmp_path, start + text)) == 2
    finally:
        sys.path[:] = before


def test_main_guards_are_not_run(tmp_path: Path) -> None:
    """What stands under ``if __name__ == "__main__"`` is for running the file, not for checking it."""
    assert (
        _exit("check", _file(tmp_path, STUDY.format(n=3, scale=1) + "\nif __name__ == '__main__':\n    1 / 0\n")) == 2
    )


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Help names the exit codes; the version is the package's."""
    main(["check", "--help"])
    assert "Exit code: 0 within tolerance" in " ".join(capsys.readouterr().out.split())
    main(["--version"])
    assert "0.2.0" in capsys.readouterr().out


# As a process.


def _slow(folder: Path, seconds: float, n: int) -> str:
    """Make a study that takes its time, and leaves a file when it has begun."""
    slow = f"    open({str(folder / 'begun')!r}, 'w').close()\n    time.sleep({seconds})\n    return theta"
    return _file(folder, "import time\n" + STUDY.format(n=n, scale=1).replace("    return theta", slow))


@pytest.mark.process
def test_interrupting_is_130(tmp_path: Path) -> None:
    """Ctrl-C ends the run with 130 and one line, not with a verdict."""
    command = [sys.executable, "-m", "ringtrue", "check", _slow(tmp_path, 0.05, 10_000)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "begun").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err
    assert "Traceback" not in err


@pytest.mark.process
def test_a_request_to_terminate_is_taken_like_an_interrupt(tmp_path: Path) -> None:
    """SIGTERM, which schedulers send before they kill, flushes the store and says how to go on; exit code 143."""
    store = tmp_path / "run.db"
    command = [sys.executable, "-m", "ringtrue", "check", _slow(tmp_path, 0.05, 10_000), "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "begun").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (143, "")
    assert "terminated; " in err
    assert "safe in" in err
    assert "Traceback" not in err


@pytest.mark.process
def test_progress_stays_out_of_files(tmp_path: Path) -> None:
    """Without a terminal there is no progress bar: logs hold whole lines, and of a short run none."""
    command = [sys.executable, "-m", "ringtrue", "check", _slow(tmp_path, 0.03, 100)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"}, check=False)
    assert done.returncode == 2
    assert "\r" not in done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("ringtrue: ")] == []


@pytest.mark.process
def test_output_survives_a_terminal_without_unicode(tmp_path: Path) -> None:
    """A test function with a Greek name is printed, escaped if need be, where stdout is ASCII; the exit code holds."""
    text = STUDY.format(n=3, scale=1) + "\nf = {'θ²': lambda t: t**2}\n"
    command = [sys.executable, "-m", "ringtrue", "check", _file(tmp_path, text)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2, done.stderr
