"""How time and memory grow with replicates, parameters, draws and test functions: one figure, and fitted exponents.

``python -m benchmarks.growth FILE.png``, Linux only. Each point is two processes of its own with one thread: one for
CPU seconds, and one for the largest resident memory beyond what there was after a small study of the same kind. In the
second every array has pages of its own, which go back when it is freed: otherwise memory that the small study left
behind is filled first, and the figure is too small. A quantity that grows like size^k has the exponent k; what does not
grow at all has 0. Exponents are fitted by least squares to the three largest sizes, since the smallest measure what
every study costs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

#: From which all sweeps start: replicates, parameters, draws of each output, and test functions.
BASE = {"n": 4000, "d": 4, "M": 99, "functions": 4}
SWEEPS: Mapping[str, tuple[int, ...]] = {
    "n": (2500, 10_000, 40_000, 160_000),
    "d": (8, 32, 128, 512),
    "M": (99, 399, 1599, 6399),
    "functions": (4, 16, 64, 256),
}
#: What is measured, and with which exponent it may grow at most, by sweep; a tenth more is allowed for the fit.
LIMITS = {
    "run": {"n": 1, "d": 1, "M": 1, "functions": 1},
    "judge": {"n": 1, "d": 0, "M": 0, "functions": 1},
    "memory": {"n": 1, "d": 1, "M": 1, "functions": 1},
}
UNITS = {"run": "CPU seconds to run", "judge": "CPU seconds to judge", "memory": "peak MB beyond the start"}
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_OWN_PAGES = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
_LARGEST, _SLACK = 3, 0.1

_POINT = """
import ctypes, gc, json, pathlib, re, sys, time
import numpy as np
import ringtrue as rt
from ringtrue.statistics import combining

# Which p-values ask for a second stage is chance, and would look like growth: here all do.
combining._DULL = 1.0

n, d, many, functions = map(int, sys.argv[1:])

def model(theta, rng):
    return theta + rng.standard_normal(theta.shape)

def procedure(mu0, y, rng):
    draws = rng.standard_normal((many, *y.shape))
    draws *= 0.5**0.5
    draws += y / 2
    return rt.Draws(draws, iid=True)

def memory(what):
    # Not ru_maxrss, which a child inherits from the process that started it.
    return int(re.search(what + r":\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024

belief = rt.Normal(np.zeros(d), np.ones(d))
weights = np.random.default_rng(0).standard_normal((functions, d))
f = [rt.Linear(w, f"f{k}") for k, w in enumerate(weights)]
# Small ones first: what is imported and computed once is no growth.
rt.judge(rt.run(rt.Study(belief, model, procedure, f=f[:2], batch=20, draws=many), n=40, progress="off"))
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
before = memory("VmRSS")
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
study = rt.Study(belief, model, procedure, f=f, draws=many, batch=250)
start = time.process_time()
replicates = rt.run(study, n=n, progress="off")
middle = time.process_time()
rt.judge(replicates)
done = {"run": middle - start, "judge": time.process_time() - middle, "memory": memory("VmHWM") - before}
print(json.dumps(done))
"""


def point(sizes: Mapping[str, int]) -> dict[str, float]:
    """Return what one study takes."""
    return {**_studied(sizes, {}), "memory": _studied(sizes, _OWN_PAGES)["memory"]}


def _studied(sizes: Mapping[str, int], settings: Mapping[str, str]) -> dict[str, float]:
    """Return what one study takes in a process with these settings."""
    command = [sys.executable, "-c", _POINT, *(str(sizes[name]) for name in BASE)]
    surroundings = {**os.environ, **_ONE_THREAD, **settings}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def exponent(sizes: Any, values: Any) -> float:
    """Return k of the size^k that fits best."""
    x, y = np.log(np.asarray(sizes[-_LARGEST:], float)), np.log(np.asarray(values[-_LARGEST:], float))
    return float(np.polyfit(x, y, 1)[0])


def measure() -> dict[str, list[dict[str, float]]]:
    """Return the points of all sweeps, and print each as it comes."""
    found: dict[str, list[dict[str, float]]] = {}
    for name, sizes in SWEEPS.items():
        found[name] = []
        for size in sizes:
            one = point({**BASE, name: size})
            found[name].append(one)
            print(
                f"{name} = {size}: run {one['run']:.2f} s, judge {one['judge']:.2f} s, {one['memory']:.0f} MB",
                flush=True,
            )
    return found


def _values(points: list[dict[str, float]], what: str) -> list[float]:
    """Return one measure of all points, in units that can be drawn."""
    return [max(one[what], 1.0 if what == "memory" else 1e-3) for one in points]


def say(found: Mapping[str, list[dict[str, float]]]) -> None:
    """Print the exponents beside their limits."""
    for what, limits in LIMITS.items():
        for name, limit in limits.items():
            k = exponent(SWEEPS[name], _values(found[name], what))
            word = "" if k <= limit + _SLACK else "  MORE THAN IT SHOULD"
            print(f"{what} grows like {name}^{k:.2f} (limit {limit}){word}")


def draw(found: Mapping[str, list[dict[str, float]]], file: str) -> None:
    """Draw all of it on logarithmic axes, with lines of exponent 1."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(LIMITS), len(SWEEPS), figsize=(11, 7.5), sharex="col", layout="constrained")
    for row, what in zip(axes, LIMITS, strict=True):
        for axis, (name, sizes) in zip(row, SWEEPS.items(), strict=True):
            values = _values(found[name], what)
            axis.loglog(sizes, values, "o-", color="C0")
            axis.loglog(sizes, [values[-1] * size / sizes[-1] for size in sizes], ":", color="0.5", label="linear")
            axis.set_title(f"exponent {exponent(sizes, values):.2f}, limit {LIMITS[what][name]}", fontsize="medium")
            axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axis.minorticks_off()
        row[0].set_ylabel(UNITS[what])
    for axis, name in zip(axes[-1], SWEEPS, strict=True):
        others = ", ".join(f"{other} = {size:,}" for other, size in BASE.items() if other != name)
        axis.set_xlabel(f"{name}\n({others})")
    axes[0, 0].legend(frameon=False)
    figure.savefig(file, dpi=110)


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="where to write the figure, a PNG")
    file = parser.parse_args().file
    found = measure()
    say(found)
    draw(found, file)
    print(f"the figure is {file}")


if __name__ == "__main__":
    main()
