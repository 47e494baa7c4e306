"""The vignette on ABC: its numbers are the population's, and neither batches nor processes change them."""

import json
from typing import Any

import numpy as np
import pytest

from ringtrue.paper import abc
from ringtrue.paper.abc import Level, Task
from ringtrue.procedures.rejection import Algorithm

pytestmark = pytest.mark.paper

# By the Dvoretzky-Kiefer-Wolfowitz inequality |D_n - D| > c / sqrt(n) with probability at most 2 exp(-2 c^2): 1e-7 for
# c = 2.9, with six statistics below 1e-6 in all. The smallest error seen with miss rate 1e-3 is (2.9 + 1.95) / sqrt(n).
WIDTH = 2.9


def statistic(eps: int, algorithm: Algorithm, level: Level, n: int) -> float:
    """Return the Kolmogorov-Smirnov statistic of a study."""
    return float(abc.outcome(Task(eps, algorithm, level, n, seed=5))["row"]["ks"])


@pytest.mark.parametrize(("eps", "level", "n"), [(3, "strong", 4000), (5, "weak", 100_000), (7, "weak", 100_000)])
def test_statistics_are_the_populations(eps: int, level: Level, n: int) -> None:
    """The KS statistics of plain ABC are within sampling noise of the population's distances."""
    reference = abc.REFERENCE[eps][abc.LEVELS.index(level)]
    assert abs(statistic(eps, "ABC", level, n) - reference) < WIDTH / np.sqrt(n)


@pytest.mark.parametrize(("eps", "level", "n"), [(3, "strong", 4000), (5, "weak", 30_000)])
def test_noisy_abc_would_be_told_from_plain(eps: int, level: Level, n: int) -> None:
    """The broken twin: with noise the statistics are those of a calibrated procedure, not of plain ABC."""
    found, reference = statistic(eps, "noisy ABC", level, n), abc.REFERENCE[eps][abc.LEVELS.index(level)]
    assert found < WIDTH / np.sqrt(n) < abs(found - reference)


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Return the vignette with 20 strong and 2,000 weak datasets."""
    return abc.make(scale=0.002, seed=3)


def test_data_are_plain_and_complete(data: dict[str, Any]) -> None:
    """There is a row for each tolerance, algorithm and level, it survives JSON, and the settings say what was run."""
    assert json.loads(json.dumps(data)) == data
    assert data["settings"]["n"] == {"strong": 20, "weak": 2000}
    assert data["settings"]["tolerances"] == list(abc.FEW)
    keys = [(row["eps"], row["algorithm"], row["level"]) for row in data["rows"]]
    assert keys == [(eps, a, level) for eps in abc.FEW for a in abc.ALGORITHMS for level in abc.LEVELS]
    assert all(0 <= row["p_ks"] <= 1 and 0 <= row["p_default"] <= 1 for row in data["rows"])
    assert {(c["eps"], c["algorithm"]) for c in data["curves"]} == {(e, a) for e in abc.SHOWN for a in abc.ALGORITHMS}
    assert all(c["ecdf"][0] == 0 and c["ecdf"][-1] == 1 and len(c["t"]) == 102 for c in data["curves"])


def test_studies_have_seeds_of_their_own(data: dict[str, Any]) -> None:
    """No two studies share their random numbers, and another seed changes all of them."""
    seeds = {row["seed"] for row in data["rows"]}
    assert len(seeds) == len(data["rows"])
    others = {abc._own_seed(4, eps, a, level) for eps in abc.FEW for a in abc.ALGORITHMS for level in abc.LEVELS}
    assert not seeds & others


def test_processes_change_nothing(data: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes give the rows of one."""
    monkeypatch.setattr(abc, "_WORTH", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    again = abc.make(scale=0.002, seed=3)
    assert again["rows"] == data["rows"]
    assert again["curves"] == data["curves"]


def test_all_tolerances_are_run_at_larger_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a twentieth of the paper's scale on, every tolerance is a work item, the slowest first."""
    seen: list[Task] = []

    def nothing(work: Any, tasks: list[Task], progress: Any, *, worth: bool) -> list[dict[str, Any]]:
        seen.extend(tasks)
        return [{"row": {}, "curve": None} for _ in tasks]

    monkeypatch.setattr(abc, "outcomes", nothing)
    abc.make(scale=1.0)
    assert {task.eps for task in seen} == set(abc.TOLERANCES)
    assert {(task.level, task.n) for task in seen} == {("strong", 10_000), ("weak", 1_000_000)}
    assert (seen[0].eps, seen[0].algorithm, seen[0].level) == (1, "noisy ABC", "weak")


def test_progress_sees_every_task() -> None:
    """The work items are the studies."""
    seen = []

    def watch(items: Any) -> Any:
        for item in items:
            seen.append(item)
            yield item

    abc.make(scale=0.0001, progress=watch)
    assert len(seen) == len(set(seen)) == 4 * len(abc.FEW)


def test_disagreement_is_said(data: dict[str, Any]) -> None:
    """A statistic far from the population's is marked, one near it is not."""
    row = {**data["rows"][0], "ks": 0.105, "reference": 0.10495, "n": 10_000}
    assert abc.agrees(row)
    assert not abc.agrees({**row, "ks": 0.13})
    assert " NO " in "\n".join(abc.lines({**data, "rows": [{**row, "ks": 0.13}]}))
    assert "1 of 1 statistics" in "\n".join(abc.lines({**data, "rows": [row]}))


def test_lines_name_every_setting(data: dict[str, Any]) -> None:
    """There is one line per row, between a head and six sentences."""
    said = abc.lines(data)
    assert len(said) == 2 + len(data["rows"]) + 6
    assert "weak n = 2,000" in said[0]
    assert max(map(len, said)) < 200


def test_figure_shows_curves_null_and_sizes(data: dict[str, Any]) -> None:
    """The figure fits a page, has five panels, two curves and a diagonal in each panel above, and says n and seed."""
    pytest.importorskip("matplotlib")
    figure = abc.draw(data)
    assert figure.get_size_inches()[0] <= 7.2
    panels = figure.axes
    assert len(panels) == 5
    assert all(len(panel.lines) == 3 and panel.get_legend() is None for panel in panels[:3])
    assert all(panel.get_yscale() == "log" for panel in panels[3:])
    assert any("seed 3" in text.get_text() and "2,000" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize(("second", "word"), [(0.2, "a dip"), (0.05, "no dip")])
def test_the_dip_is_said_of_the_numbers(second: float, word: str) -> None:
    """Whether the smallest tolerance is nearer to calibrated than the next follows from both statistics."""
    rows = [{"algorithm": "ABC", "level": "weak", "eps": eps, "ks": ks} for eps, ks in ((1, 0.1), (2, second))]
    assert abc._dip(rows, "weak")[0].endswith(f", {word}.")
    assert abc._dip(rows[:1], "weak") == []
