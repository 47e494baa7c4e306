"""The gallery of the paper's figures: what is saved, what is refused, and how an interrupted call goes on."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ringtrue.cli import main
from ringtrue.errors import InvalidStudy
from ringtrue.paper import gallery

pytestmark = pytest.mark.paper


def _produce(folder: Path, **settings: Any) -> list[gallery.Exhibit]:
    said: list[str] = []
    return gallery.produce(["forecasters"], folder, **{"scale": 0.02, "say": said.append, **settings})


def test_an_exhibit_has_its_four_files_and_a_page(tmp_path: Path) -> None:
    """A vignette leaves PNG, SVG, CSV and JSON, and an index page that shows its figure and its lines."""
    (exhibit,) = _produce(tmp_path)
    for suffix in (".png", ".svg", ".csv", ".json"):
        assert exhibit.stem.with_suffix(suffix).stat().st_size > 100
    page = (tmp_path / "index.html").read_text("utf-8")
    assert 'src="forecasters.svg"' in page
    assert exhibit.title in page
    assert len(exhibit.lines) > 3


def test_rows_of_the_csv_are_those_of_the_json(tmp_path: Path) -> None:
    """The CSV has a line per row of the data, and the data say scale, seed and time."""
    (exhibit,) = _produce(tmp_path, seed=3)
    data = json.loads(exhibit.stem.with_suffix(".json").read_text("utf-8"))
    with exhibit.stem.with_suffix(".csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(data["rows"])
    assert (data["run"]["scale"], data["run"]["seed"]) == (0.02, 3)


def test_finished_vignettes_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same scale and seed are drawn from what is saved; another seed, or a damaged file, is run."""
    runs = []
    module = gallery.vignette("forecasters")
    make = module.make

    def counted(**settings: Any) -> dict[str, Any]:
        runs.append(settings["seed"])
        found: dict[str, Any] = make(**settings)
        return found

    monkeypatch.setattr(module, "make", counted)
    for seed in (0, 0, 1):
        _produce(tmp_path, seed=seed)
    assert runs == [0, 1]
    (tmp_path / "forecasters.json").write_text("{", "utf-8")
    _produce(tmp_path, seed=1)
    assert runs == [0, 1, 1]


def test_an_unknown_name_lists_the_known(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A wrong name is refused with all right ones, and exit code 3."""
    with pytest.raises(SystemExit) as caught:
        main(["paper", "laplas", "-o", str(tmp_path)])
    assert caught.value.code == 3
    assert all(name in capsys.readouterr().err for name in ("laplas",))
    with pytest.raises(
        InvalidStudy, match=r"examples, richardson, forecasters, laplace, abc, odes, tolerances, gp, robust"
    ):
        gallery.vignette("laplas")


def test_an_unwritable_folder_fails_before_computing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is a file is refused before a single study runs."""
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setattr(gallery.vignette("forecasters"), "make", lambda **settings: pytest.fail("it ran"))
    with pytest.raises(InvalidStudy, match="folder to write to"):
        _produce(tmp_path / "file")


def test_a_page_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    """A folder of this name may hold a manuscript; a page of ours is made anew."""
    _produce(tmp_path)
    _produce(tmp_path)
    (tmp_path / "index.html").write_text("<title>My paper</title>", "utf-8")
    with pytest.raises(InvalidStudy, match="is not a page of ours"):
        _produce(tmp_path)
    assert (tmp_path / "index.html").read_text("utf-8") == "<title>My paper</title>"


@pytest.mark.parametrize("scale", [0.0, -1.0, 1.5, float("nan")])
def test_a_scale_outside_the_papers_is_refused(scale: float, tmp_path: Path) -> None:
    """The scale is a share of the paper's realisations."""
    with pytest.raises(InvalidStudy, match="scale must lie in"):
        _produce(tmp_path, scale=scale)


def test_an_interrupted_call_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C leaves what is finished and names the command that goes on."""

    def interrupted(**settings: Any) -> dict[str, Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(gallery.vignette("forecasters"), "make", interrupted)
    with pytest.raises(SystemExit) as caught:
        main(["paper", "forecasters", "--scale", "0.02", "-o", str(tmp_path)])
    assert caught.value.code == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_vignettes_keep_the_contract() -> None:
    """Every vignette has a title, a quick scale, and make, lines and draw."""
    for name in gallery.NAMES:
        module = gallery.vignette(name)
        assert module.TITLE
        assert 0 < module.QUICK <= 1
        assert all(callable(getattr(module, verb)) for verb in ("make", "lines", "draw"))


def test_importing_vignettes_does_not_import_matplotlib() -> None:
    """matplotlib is loaded when a figure is drawn, and not before."""
    code = (
        "import sys, ringtrue.paper.gallery as g; [g.vignette(n) for n in g.NAMES]; print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
