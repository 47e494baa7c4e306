"""The run beside other libraries: what it asks, how it reads answers, and what its page says."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.peers import asked, page, work
from benchmarks.peers.__main__ import ask, asked_of
from benchmarks.peers.environments import ENVIRONMENTS, Environment, make

Row = dict[str, Any]


def _power(test: str, shares: dict[int, float], peer: str = "of_scipy") -> list[Row]:
    row = {"peer": peer, "question": "power", "test": test, "error_name": work.ERRORS[0].name, "level": 0.05}
    return [{**row, "n": n, "corrected": share, "runs": 100} for n, share in shares.items()]


def _cost(peer: str, seconds: float, megabytes: float) -> Row:
    return {"peer": peer, "question": "cost:ks", "work": "ks", "seconds": seconds, "megabytes": megabytes}


@pytest.mark.parametrize("procedure", [*work.FIVE, *work.ERRORS], ids=lambda one: one.name)
def test_procedures_have_the_moments_they_name(procedure: work.Procedure) -> None:
    """Truths minus draws have the mean and covariance that the closed form of each error gives, within 6 errors."""
    theta, draws = procedure.sample(100_000, 1, np.random.default_rng(3))
    gap = draws[:, 0] - theta
    if procedure.informed:
        scale = np.array([procedure.too_narrow, 1.0])
        own = work.COVARIANCE if procedure.correlated else np.diag(work.SD**2)
        covariance, mean = own / np.outer(scale, scale) + work.COVARIANCE, np.array([procedure.bias, 0]) * work.SD
    else:
        covariance, mean = 2 * np.eye(2), np.zeros(2)
    sd = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(gap.mean(axis=0) - mean) < 6 * sd / np.sqrt(len(gap)))
    assert np.all(np.abs(np.cov(gap.T) - covariance) < 6 * np.outer(sd, sd) * np.sqrt(2 / len(gap)))


def test_a_peer_that_runs_answers_and_one_that_does_not_is_named(tmp_path: Path) -> None:
    """NumPy states its version; a module whose library is missing, and an interpreter that is, leave their reason."""
    here = Path(sys.executable)
    (found,) = ask(here, "of_numpy", "versions", tmp_path)
    assert found["versions"] == {"numpy": np.__version__}
    (lost,) = ask(here, "of_goodpoints", "versions", tmp_path)
    (none,) = ask(tmp_path / "no-python", "of_tarp", "versions", tmp_path)
    said = page.text([found, lost, none], pictures=False)
    assert "goodpoints is left out: ModuleNotFoundError" in said
    assert "tarp is left out: " in said
    assert "NumPy is left out" not in said


def test_an_install_that_fails_is_told_by_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip's own error comes back under what was to be installed, and the environment is not called finished."""
    monkeypatch.setattr("benchmarks.peers.environments.ROOT", tmp_path)
    missing = Environment("broken", (), (("--no-index", "no-such-package"),))
    _, failed = make(missing)
    assert list(failed) == ["--no-index no-such-package"]
    assert failed["--no-index no-such-package"].startswith("ERROR: No matching distribution")
    assert not (missing.folder / ".installed").exists()


def test_every_module_is_asked_what_it_can_answer() -> None:
    """Questions are read from the source of the modules, every one of which belongs to one environment."""
    modules = [module for environment in ENVIRONMENTS for module in environment.modules]
    files = sorted(file.stem for file in Path(asked.__file__).parent.glob("of_*.py"))
    assert sorted(modules) == files
    assert asked_of("of_numpy") == ["versions", "cost:ranks"]
    assert asked_of("of_scipy") == ["versions", "words", "cost:ks", "cost:check", "alarms", "power"]
    assert "cost:ek1" in asked_of("of_ringtrue")


def test_answers_are_read_back(tmp_path: Path) -> None:
    """A file of JSON lines gives its rows; one that is not there gives none."""
    rows = [_cost("of_scipy", 0.5, 1.0), _cost("of_ringtrue", 0.25, 2.0)]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert page.read(tmp_path / "answers.jsonl") == rows
    assert page.read(tmp_path / "none.jsonl") == []


def test_replicates_for_power_lie_between_the_sizes() -> None:
    """Linear in log n: 0.8 halfway between 0.6 and 1 is the geometric mean of the sizes, and never is None."""
    rows = _power("a", {100: 0.6, 400: 1.0}) + _power("b", {100: 0.1, 400: 0.2}) + _power("c", {25: 0.95})
    name = work.ERRORS[0].name
    n, error = page.needed(rows, "a", name) or (0.0, 0.0)
    assert n == pytest.approx(200)
    assert error == pytest.approx(200 * 0.04 * np.log(4) / 0.4)
    assert page.needed(rows, "b", name) is None
    assert page.needed(rows, "c", name) == (25.0, 0.0)
    assert "over&nbsp;400" in page.power(rows)
    assert "at most 25" in page.power(rows)


def test_where_a_peer_is_better_comes_first_and_only_then() -> None:
    """A peer that is faster or needs fewer replicates is named before all tables; one that is not, is not."""
    ours = _power("ringtrue check_draws", {100: 0.0, 400: 1.0}, "of_ringtrue")
    rows = [*ours, *_power("quick", {25: 0.0, 50: 1.0}), _cost("of_scipy", 0.1, 50.0), _cost("of_ringtrue", 0.2, 5.0)]
    said = page.text(rows, pictures=False)
    assert said.index("quick finds") < said.index("## What ran")
    assert "* KS test, n = 10^6: SciPy takes 100 ms, ringtrue 200 ms.\n" in said
    slow = [*ours, *_power("slow", {400: 0.1, 800: 1.0}), _cost("of_scipy", 0.3, 5.0), _cost("of_ringtrue", 0.2, 5.0)]
    assert "Nowhere in this run." in page.better(slow)


def test_levels_are_corrected_by_what_right_outputs_do() -> None:
    """A test that rejects all right outputs has no power left; ties at the threshold count in part."""
    null = np.column_stack([np.arange(100.0), np.zeros(100)])
    assert asked.compare(null, null)["level"] == 1.0
    assert asked.compare(null, null)["corrected"] == pytest.approx(0.05)
    same = np.column_stack([np.ones(100), np.full(100, np.nan)])
    assert asked.compare(same, same)["corrected"] == pytest.approx(0.05)
    assert asked.compare(same, same)["level"] is None
    assert asked.compare(null, null + 100)["corrected"] == 1.0
