"""Which share a job of an array is, from what schedulers say; and the very script of the docs, run job by job."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.execution.arrays import as_shard, from_environment
from tests.builders import refusal, says

from .test_runs import study

ROOT = Path(__file__).parents[2]
STUDY = """
import ringtrue as rt

belief, n = rt.Normal(0, 1), 400


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    return rt.Normal(y / 2, 0.5**0.5)
"""


def slurm(jobs: list[int], step: int) -> list[dict[str, str]]:
    """Return the variables of every job of an array, as Slurm sets them."""
    return [
        {
            "SLURM_ARRAY_TASK_ID": str(job),
            "SLURM_ARRAY_TASK_MIN": str(min(jobs)),
            "SLURM_ARRAY_TASK_MAX": str(max(jobs)),
            "SLURM_ARRAY_TASK_STEP": str(step),
            "SLURM_ARRAY_TASK_COUNT": str(len(jobs)),
        }
        for job in jobs
    ]


def grid(jobs: list[int], step: int) -> list[dict[str, str]]:
    """Return the same as Grid Engine sets it."""
    first, last = str(min(jobs)), str(max(jobs))
    return [
        {"SGE_TASK_ID": str(job), "SGE_TASK_FIRST": first, "SGE_TASK_LAST": last, "SGE_TASK_STEPSIZE": str(step)}
        for job in jobs
    ]


@pytest.mark.parametrize("scheduler", [slurm, grid])
@pytest.mark.parametrize(("first", "count", "step"), [(0, 16, 1), (1, 16, 1), (1, 6, 3), (5, 1, 1), (10, 3, 10)])
def test_jobs_are_counted_from_0(scheduler, first: int, count: int, step: int) -> None:  # type: ignore[no-untyped-def]
    """Whatever the first job and the step are, shares are 0 to k - 1 of k."""
    jobs = list(range(first, first + count * step, step))
    assert [from_environment(one) for one in scheduler(jobs, step)] == [(i, count) for i in range(count)]


def test_the_end_of_a_range_need_not_be_a_job() -> None:
    """Grid Engine's -t 1-10:4 has jobs 1, 5 and 9, and says that the last is 10."""
    variables = {"SGE_TASK_ID": "9", "SGE_TASK_FIRST": "1", "SGE_TASK_LAST": "10", "SGE_TASK_STEPSIZE": "4"}
    assert from_environment(variables) == (2, 3)


def test_arrays_with_gaps_are_refused() -> None:
    """Of --array=3,7 nobody knows which shares they were; a list at equal steps is one."""
    for variables in slurm([3, 7], 1) + slurm([0, 1, 5], 1):
        says(refusal(lambda: from_environment(variables)), "gaps", "whole array", r"shard=\(i, k\)")  # noqa: B023


@pytest.mark.parametrize("name", ["PBS_ARRAY_INDEX", "PBS_ARRAYID", "LSB_JOBINDEX"])
def test_schedulers_that_say_less_are_told_how_to_go_on(name: str) -> None:
    """Where only the number of a job is known, the message has the option to pass."""
    says(refusal(lambda: from_environment({name: "3"})), name, re.escape(f"--shard ${name}/16"))


@pytest.mark.parametrize("variables", [{}, {"SGE_TASK_ID": "undefined"}, {"LSB_JOBINDEX": "0"}])
def test_outside_of_an_array_there_is_no_share(variables: dict[str, str]) -> None:
    """Also where a scheduler sets its variables for jobs that are none."""
    says(refusal(lambda: from_environment(variables)), "SLURM_ARRAY_TASK_ID", "sbatch --array")


def test_variables_that_are_no_numbers_are_refused() -> None:
    """One that is missing or is a word is named."""
    whole = slurm([0, 1], 1)[0]
    for broken in ({**whole, "SLURM_ARRAY_TASK_MAX": "x"}, {k: v for k, v in whole.items() if not k.endswith("MIN")}):
        says(refusal(lambda: from_environment(broken)), "whole numbers", "SLURM_ARRAY_TASK_MIN")  # noqa: B023


def test_a_share_is_two_numbers_or_a_word() -> None:
    """Everything else is refused."""
    assert as_shard(None) is None
    for wrong in ("arrays", (1, 1), (0, 2, 3), [0, 2]):
        says(refusal(lambda: as_shard(wrong)), "0 <= i < k", "array")  # noqa: B023


def test_a_run_finds_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The word does what the numbers do."""
    for name, value in slurm([1, 2, 3, 4], 1)[2].items():
        monkeypatch.setenv(name, value)
    ran = rt.run(study(), n=60, store=tmp_path / "a.db", shard="array")
    assert (ran.first, ran.stop) == (30, 45)


def _script() -> str:
    """Return the job script of the docs."""
    page = (ROOT / "docs" / "clusters.md").read_text("utf-8")
    (script,) = re.findall(r"```bash\n(#!/bin/bash.*?)```", page, re.DOTALL)
    return str(script)


@pytest.mark.process
def test_the_script_of_the_docs_runs_as_an_array(tmp_path: Path) -> None:
    """A stand-in for a scheduler runs every job of the script, one of them killed at first; the whole is judged."""
    (tmp_path / "study.py").write_text(STUDY)
    (tmp_path / "job.sh").write_text(_script())
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "ringtrue"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ringtrue "$@"\n')
    program.chmod(0o755)
    found = re.search(r"#SBATCH --array=(\d+)-(\d+)", _script())
    assert found is not None
    jobs = list(range(int(found[1]), int(found[2]) + 1))
    around = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}

    def job(variables: dict[str, str]) -> int:
        done = subprocess.run(
            ["bash", "job.sh"], cwd=tmp_path, env={**around, **variables}, capture_output=True, text=True, timeout=300
        )
        assert done.returncode in (0, 3), done.stderr
        return done.returncode

    whole = slurm(jobs, 1)
    assert [job(variables) for variables in whole[:3]] == [0, 0, 0]
    judged = [sys.executable, "-m", "ringtrue"]
    shown = subprocess.run([*judged, "show", "runs/"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"{400 * 3 // len(jobs)} of 400 replicates" in shown.stdout
    assert [job(variables) for variables in whole] == [0] * len(jobs)  # those that are done end at once
    verdict = subprocess.run([*judged, "judge", "runs/"], cwd=tmp_path, capture_output=True, text=True)
    assert verdict.returncode in (0, 1, 2), verdict.stderr
    plain = rt.run(rt.Normal(0, 1), lambda t, rng: t + rng.normal(), lambda mu0, y: rt.Normal(y / 2, 0.5**0.5), n=400)
    np.testing.assert_array_equal(rt.store.load(tmp_path / "runs").u, plain.u)
