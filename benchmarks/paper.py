"""Speed of the paper's vignettes, with the naive implementation extrapolated in the same run.

``python -m benchmarks.paper [--scale 0.02]``. Times at a scale below 1 are extrapolated linearly, and said to be.
``python -m benchmarks.paper --whole 1`` runs the command `ringtrue paper all --scale 1` instead, ``--whole quick`` the
quick look of ``make demo``, and measures time and memory of all its processes; Linux only.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

import ringtrue as rt
from ringtrue.paper import gallery
from ringtrue.procedures import Rejection, StudentLocation
from ringtrue.procedures.rejection import GAndK, order_summaries

LIMITS = {"laplace": 180, "abc": 900, "gp": 60, "robust": 30}


def vignettes(scale: float) -> None:
    """Run each vignette and extrapolate to the paper's scale."""
    for name in gallery.NAMES:
        start = time.perf_counter()
        gallery.vignette(name).make(scale=scale, seed=0, progress=iter)
        seconds = time.perf_counter() - start
        whole = f", about {seconds / scale:.0f} s at scale 1 (extrapolated)" if scale < 1 else ""
        limit = f", limit {LIMITS[name]} s" if name in LIMITS else ""
        print(f"{name}: {seconds:.1f} s at scale {scale:g}{whole}{limit}; peak memory {_peak()} MB", flush=True)


def _peak() -> int:
    """Return the peak memory of this process in MB."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024


#: Seconds and MB that all vignettes may take, on two cores.
WHOLE = {"1": (300, 1000), "quick": (45, 1000)}


def whole(scale: str) -> None:
    """Run all vignettes as a user does, in a process of its own, and watch it and its children."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        options = [] if scale == "quick" else ["--scale", scale]
        command = [sys.executable, "-m", "ringtrue", "paper", "all", "--out", folder, *options]
        start, peak = time.perf_counter(), 0
        with subprocess.Popen(command, stdout=log) as running:
            while running.poll() is None:
                peak = max(peak, _taken(running.pid))
                time.sleep(0.2)
        seconds = time.perf_counter() - start
        log.seek(0)
        said = log.read()
    if running.returncode:
        raise SystemExit(f"ringtrue paper all ended with {running.returncode}")
    each = [line for line in said.splitlines() if line.endswith(" s") or "(scale" in line]
    limits = "limits {} s, {} MB".format(*WHOLE[scale]) if scale in WHOLE else "no limits"
    print("\n".join(each))
    print(f"paper all, scale {scale}: {seconds:.1f} s, peak memory of all processes {peak} MB ({limits})", flush=True)


def _taken(parent: int) -> int:
    """Return the memory of a process and its children in MB; what they share is counted once."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            above = int((folder / "status").read_text().split("PPid:")[1].split()[0])
            if parent in (int(folder.name), above):
                total += int((folder / "smaps_rollup").read_text().split("Pss:")[1].split()[0])
        except (OSError, IndexError):  # it has ended meanwhile
            continue
    return total // 1024


def naive_laplace(datasets: int = 300) -> None:
    """Time a loop over scipy.optimize and extrapolate to 39 settings of 10^6 datasets."""
    model, rng = StudentLocation(3, 5), np.random.default_rng(0)
    data = model.simulate(rng.standard_normal(datasets), rng)

    def negative(theta: Any, y: Any) -> float:
        return float(0.5 * theta[0] ** 2 - model.log_likelihood(theta[0], y))

    start = time.perf_counter()
    for y in data:
        optimize.minimize(negative, [float(np.median(y))], args=(y,), method="BFGS")
    each = (time.perf_counter() - start) / datasets
    print(f"naive Laplace, scipy.optimize: {1e6 * each:.0f} us per dataset, {39e6 * each / 3600:.1f} hours in all")


def naive_abc(datasets: int = 200, draws: int = 20) -> None:
    """Time literal rejection, vectorised, and extrapolate; its expected cost is infinite, so any mean is too small."""
    model, rng = GAndK(), np.random.default_rng(0)
    for eps in (1.0, 3.0, 10.0):
        procedure = Rejection(model.simulate, order_summaries, eps, draws)
        data = model.simulate(rng.standard_normal(datasets), rng)
        start = time.perf_counter()
        for y in data:
            procedure(rt.Normal(0, 1), y, rng)
        each = (time.perf_counter() - start) / (datasets * draws)
        hours = 4e6 * each / 3600  # both algorithms, 10^4 x 100 + 10^6 accepted draws each
        print(f"literal rejection, eps = {eps:g}: {1e3 * each:.1f} ms per accepted draw, {hours:.1f} hours in all")


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.02)
    parser.add_argument("--whole", metavar="SCALE", help="run the command for all vignettes at this scale, or quick")
    arguments = parser.parse_args()
    if arguments.whole:
        whole(arguments.whole)
        return
    scale = arguments.scale
    naive_laplace()
    naive_abc()
    vignettes(scale)


if __name__ == "__main__":
    main()
