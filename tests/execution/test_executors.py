"""Executors of others: MPI's, joblib's and Ray's, each in a script of its own, as users start them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.libraries, pytest.mark.process]

STUDY = """
import ringtrue as rt


def model(theta, rng):
    return theta + rng.normal()


def procedure(mu0, y):
    return rt.Normal(y / 2, 0.5**0.5)


study = rt.Study(rt.Normal(0, 1), model, procedure)


def compare(executor, **settings):
    ran = rt.run(study, n=200, executor=executor, **settings)
    print("the same" if ran.u.tobytes() == rt.run(study, n=200).u.tobytes() else "others")
"""
MPI = """
from mpi4py.futures import MPIPoolExecutor

if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        compare(executor)
"""
JOBLIB = """
from joblib.externals.loky import get_reusable_executor

if __name__ == "__main__":
    compare(get_reusable_executor(2))
"""
RAY = """
import ray
from concurrent.futures import Executor


class RayExecutor(Executor):
    def submit(self, function, /, *args, **kwargs):
        return ray.remote(_called).remote(function, args, kwargs).future()


def _called(function, args, kwargs):
    return function(*args, **kwargs)


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False)
    compare(RayExecutor(), workers=2)
    ray.shutdown()
"""


def _said(folder: Path, script: str, *start: str) -> str:
    (folder / "script.py").write_text(STUDY + script)
    root = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    done = subprocess.run(
        [*start, "script.py"], cwd=folder, env={**os.environ, **root}, capture_output=True, text=True, timeout=600
    )
    return done.stdout + done.stderr


def test_mpi_serves(tmp_path: Path) -> None:
    """The pool of mpi4py, started as its documentation says, gives the replicates of a plain run."""
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec") or shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    if mpiexec is None:
        pytest.skip("needs mpiexec")
    assert "the same" in _said(tmp_path, MPI, mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures")


def test_joblib_serves(tmp_path: Path) -> None:
    """The processes that joblib brings with it do, too."""
    pytest.importorskip("joblib")
    assert "the same" in _said(tmp_path, JOBLIB, sys.executable)


def test_ray_serves(tmp_path: Path) -> None:
    """Ten lines make an executor of Ray's tasks."""
    pytest.importorskip("ray")
    assert "the same" in _said(tmp_path, RAY, sys.executable)
