"""Virtual environments of the peers that can live together, made by ``python -m venv`` and pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_OURS = f"--editable={ROOT}[plot]"


@dataclass(frozen=True)
class Environment:
    """Modules that run in it, and what pip installs, call by call: torch comes first, or all of CUDA comes with it."""

    name: str
    modules: tuple[str, ...]
    installs: tuple[tuple[str, ...], ...]
    pythons: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return ROOT / f".venv-peers-{self.name}"


ENVIRONMENTS = (
    Environment("plain", ("of_ringtrue", "of_numpy", "of_scipy"), ((_OURS,),)),
    # tarp does not declare the last two.
    Environment(
        "samples",
        ("of_tarp", "of_hyppo", "of_goodpoints"),
        (("hyppo",), ("goodpoints",), ("tarp", "tqdm", "deprecation")),
    ),
    # Its newest releases need Python 3.12.
    Environment("arviz", ("of_arviz",), (("arviz-plots", "matplotlib"),), ("python3.13", "python3.12")),
    Environment("probnum", ("of_probnum",), (("probnum", "numpy<2"),)),
    Environment("sbi", ("of_sbi",), (("torch==2.13.0",), ("sbi",))),
    Environment("bayesflow", ("of_bayesflow",), (("jax", "bayesflow"),)),
    Environment(
        "simuk", ("of_simuk", "of_adapters"), ((f"--editable={ROOT}[pymc,numpyro]",), ("simuk", "pymc", "nutpie"))
    ),
)


def interpreter(candidates: tuple[str, ...]) -> str:
    """Return the first of these that runs, also one of pyenv's that is not switched on, or this one."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for name in candidates:
        hidden = sorted(versions.glob(f"{name.removeprefix('python')}.*/bin/python"))
        for command in (shutil.which(name), *map(str, hidden)):
            if command and subprocess.run([command, "--version"], capture_output=True, check=False).returncode == 0:
                return command
    return sys.executable


def make(environment: Environment) -> tuple[Path, dict[str, str]]:
    """Return the interpreter of an environment, made if it is not there, and why an install failed, by its packages."""
    python, failed = environment.folder / "bin" / "python", {}
    done = environment.folder / ".installed"
    if done.exists():
        return python, {}
    made = _run([interpreter(environment.pythons), "-m", "venv", "--clear", str(environment.folder)])
    if made:
        return python, {environment.name: made}
    for packages in environment.installs:
        if reason := _run([str(python), "-m", "pip", "install", "--quiet", *packages]):
            failed[" ".join(packages)] = reason
    if not failed:
        done.touch()
    return python, failed


def _run(command: list[str]) -> str:
    """Return nothing, or the last line that a failing command has for its reader."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")] or [f"exit {ran.returncode}"]
    return "" if ran.returncode == 0 else lines[-1].replace(str(ROOT), ".")
