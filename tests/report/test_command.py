"""``ringtrue report`` and ``ringtrue check --report``: pages from stores and studies, exit codes as everywhere."""

import json
from importlib import resources
from pathlib import Path

import pytest

from ringtrue.cli import main

from .pages import parsed

STUDY = """
import ringtrue as rt

belief = rt.Normal(0, 1)
n = 200


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    {guard}
    return rt.Normal(y / 2, 0.3)
"""


def _exit(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(one) for one in arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def _study(folder: Path, guard: str = "pass") -> Path:
    file = folder / "study.py"
    file.write_text(STUDY.format(guard=guard), "utf-8")
    return file


@pytest.mark.slow
def test_check_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--report writes page and twin; the exit code and stdout are those of check without it."""
    study = _study(tmp_path)
    assert _exit("check", study, "--json") == 1
    before = capsys.readouterr().out
    assert _exit("check", study, "--json", "--report", tmp_path / "x.html") == 1
    captured = capsys.readouterr()
    assert captured.out == before
    assert "x.html" in captured.err
    assert json.loads((tmp_path / "x.json").read_text("utf-8"))["store"] is None


def test_a_place_that_will_not_do_is_refused_before_the_run(tmp_path: Path) -> None:
    """No simulation is lost to a typo in --report."""
    mark = tmp_path / "simulated"
    study = _study(tmp_path, f"open({str(mark)!r}, 'w').close()")
    assert _exit("check", study, "--report", tmp_path / "absent" / "x.html") == 3
    assert _exit("check", study, "--report", tmp_path / "x.json") == 3
    assert not mark.exists()


@pytest.mark.slow
def test_a_store_becomes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page of a store shows its fingerprint and progress, and the twin has them."""
    store = tmp_path / "run.db"
    assert _exit("check", _study(tmp_path), "--store", store) == 1
    assert _exit("report", store) == 1
    assert "run.html" in capsys.readouterr().err
    plain = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert (plain["store"]["n"], plain["store"]["done"], plain["store"]["file"]) == (200, 200, "run.db")
    words = parsed((tmp_path / "run.html").read_text("utf-8")).words()
    assert "200 of 200 replicates done" in words
    for part, mark in plain["store"]["fingerprint"].items():
        assert f"fingerprint of {part}" in words
        assert mark[:20] in words


@pytest.mark.slow
def test_the_twin_of_a_store_follows_the_schema(tmp_path: Path) -> None:
    """With store and failures, the JSON is what the schema says."""
    jsonschema = pytest.importorskip("jsonschema")
    store = tmp_path / "run.db"
    study = _study(tmp_path, "assert y < 1.5, 'too large'")
    _exit("check", study, "--store", store, "--on-failure", "record")
    _exit("report", store, "-o", tmp_path / "page.html")
    plain = json.loads((tmp_path / "page.json").read_text("utf-8"))
    schema = json.loads((resources.files("ringtrue.report") / "schema.json").read_text("utf-8"))
    jsonschema.validate(plain, schema)
    assert plain["failures"][0]["count"] == plain["lost"] == plain["store"]["failed"] > 0


def test_nothing_is_written_over_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page or its twin that is there is left alone, also by a link; --force writes, and never through a link."""
    store = tmp_path / "run.db"
    main(["check", str(_study(tmp_path)), "--store", str(store), "--shard", "0/1"])
    precious = tmp_path / "precious.txt"
    precious.write_text("mine", "utf-8")
    (tmp_path / "run.json").symlink_to(precious)
    assert _exit("report", store) == 3
    assert "would be written over; pass --force" in capsys.readouterr().err
    assert _exit("report", store, "--force") in (0, 1, 2)
    assert precious.read_text("utf-8") == "mine"
    assert not (tmp_path / "run.json").is_symlink()
    assert _exit("report", store, "-o", tmp_path / "page.pdf") == 3
    assert "should end in .html" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_that_is_not_done_is_a_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page of half a run says that it is a look, which its file remembers; the share itself is not judged."""
    store = tmp_path / "run.db"
    main(["check", str(_study(tmp_path)), "--store", str(store), "--shard", "0/2"])
    assert _exit("report", store) in (0, 1, 2)
    assert "evidence that holds whenever one looks" in capsys.readouterr().err
    words = parsed((tmp_path / "run.html").read_text("utf-8")).words()
    assert "100 of 200 replicates were judged" in words


@pytest.mark.parametrize("arguments", [["report"], ["report", "absent.db"], ["report", "STUDY"]], ids=" ".join)
def test_what_is_no_store_is_three(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a store there is no page, no verdict and no traceback."""
    study = str(_study(tmp_path))
    assert _exit(*(study if word == "STUDY" else word for word in arguments)) == 3
    assert "Traceback" not in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html"))


def test_the_documented_fields_are_those_of_the_schema() -> None:
    """The table in docs/report.md names every field of the JSON."""
    schema = json.loads((resources.files("ringtrue.report") / "schema.json").read_text("utf-8"))
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    named = {name.strip() for row in rows for name in row.split(",")}
    assert named - {"field"} == set(schema["properties"])
