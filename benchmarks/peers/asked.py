"""One peer in a process of its own: ``python -m benchmarks.peers.asked MODULE QUESTION FOLDER`` prints JSON lines.

Questions are versions, alarms, power, words, picture and cost:<name of a work>.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from . import work

Row = dict[str, Any]
Test = Callable[[Any, Any], tuple[float, float]]
#: A cell of a table ends after so many runs, or after so many seconds of CPU if it has had the fewest; all times SCALE.
SCALE = float(os.environ.get("PEERS_SCALE", "1"))
FEWEST = 30
ALARMS, NULL, POWER = (1000, 60.0), (200, 40.0), (100, 10.0)


def processors() -> float:
    """Return seconds of all processors, children included."""
    return time.process_time() + sum(os.times()[2:4])


def repeat(test: Test, procedure: work.Procedure, shape: tuple[int, int], limits: Any, entries: int) -> Any:
    """Return rows (evidence, p) of one test on fresh data, the same for all peers, as many as time allows."""
    (most, seconds), spent = limits, 0.0
    found: list[tuple[float, float]] = []
    while len(found) < SCALE * most and (len(found) < SCALE * FEWEST or spent < SCALE * seconds):
        rng = np.random.default_rng([len(found), *shape, *procedure.name.encode()])
        theta, draws = procedure.sample(*shape, rng)
        start = time.process_time()
        found.append(test(theta[:, :entries], draws[..., :entries]))
        spent += time.process_time() - start
    return np.array(found, dtype=float)


def share(rejected: Any) -> tuple[float, float]:
    """Return a share and its standard error; at 0 or 1 the error is that of one run in as many."""
    value, n = float(np.mean(rejected)), len(rejected)
    return value, math.sqrt(max(value * (1 - value), 1 / n * (1 - 1 / n)) / n)


def largest(module: Any) -> int:
    """Return the most replicates that a library can be given."""
    return int(getattr(module, "LARGEST", 10**9))


def alarms(module: Any) -> Iterator[Row]:
    """Yield how often right outputs of one parameter are rejected at 5 %."""
    for label, test in getattr(module, "TESTS", {}).items():
        if np.isnan(test(*work.RIGHT.sample(100, 19, np.random.default_rng(0)))[1]):
            continue
        for n, m in (shape for shape in work.SHAPES if shape[0] <= largest(module)):
            found = repeat(test, work.RIGHT, (n, m), ALARMS, 1)
            value, error = share(found[:, 1] <= 0.05)
            cell = {"test": label, "n": n, "draws": m, "share": value, "error": error}
            yield {**cell, "runs": len(found), "scale": SCALE}


def power(module: Any) -> Iterator[Row]:
    """Yield shares of rejections at the test's own 5 %, and at the threshold that 5 % of right outputs pass."""
    for label, test in getattr(module, "TESTS", {}).items():
        left = list(work.ERRORS)
        for n in (size for size in work.SIZES if size <= largest(module)):
            null = repeat(test, work.RIGHT, (n, work.DRAWS), NULL, 2) if left else np.empty((0, 2))
            for procedure in list(left):
                found = repeat(test, procedure, (n, work.DRAWS), POWER, 2)
                row = compare(null, found)
                yield {"test": label, "error_name": procedure.name, "n": n, "scale": SCALE, **row}
                if row["corrected"] >= 0.9:
                    left.remove(procedure)


def compare(null: Any, found: Any) -> Row:
    """Return the level, the power at the test's own 5 % and at the corrected level, ties at the threshold shared."""
    threshold = np.quantile(null[:, 0], 0.95, method="higher")
    above, at = np.mean(null[:, 0] > threshold), np.mean(null[:, 0] == threshold)
    part = min(1.0, (0.05 - above) / at) if at and above < 0.05 else 0.0
    corrected = float(np.mean(found[:, 0] > threshold) + part * np.mean(found[:, 0] == threshold))
    own = np.isfinite(null[:, 1]).all()
    row = {"level": float(np.mean(null[:, 1] <= 0.05)) if own else None, "runs": len(found), "null_runs": len(null)}
    return row | {"own": float(np.mean(found[:, 1] <= 0.05)) if own else None, "corrected": corrected}


def cost(module: Any, name: str) -> Iterator[Row]:
    """Yield the least seconds of CPU of a few calls, and by how much the peak of memory was above the start."""
    call, data = module.COSTS[name], work.WORKS[name].data(np.random.default_rng(0))
    if name in getattr(module, "PREPARED", {}):
        data = module.PREPARED[name](data)
    before = forget_peak()
    spent: list[float] = []
    while len(spent) < 5 and (sum(spent) < 5 or not spent):
        start = processors()
        answer = call(data)
        spent.append(processors() - start)
        if isinstance(answer, float):  # measured itself, per unit
            yield {"work": name, "seconds": answer, "megabytes": peak() - before}
            return
    yield {"work": name, "seconds": min(spent), "megabytes": peak() - before}


def forget_peak() -> float:
    """Return megabytes at the start of a measurement: what imports and data took for a while is forgotten on Linux."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak()
    return peak()


def peak() -> float:
    """Return megabytes at the highest since the start of the measurement, or of the process where that is not told."""
    try:
        status = Path("/proc/self/status").read_text("utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024


def words(module: Any) -> Iterator[Row]:
    """Yield what a library says of five procedures."""
    for procedure in work.FIVE:
        theta, draws = procedure.sample(1000, work.DRAWS, np.random.default_rng(1))
        yield {"procedure": procedure.name, "says": module.says(theta, draws)}


def picture(module: Any, folder: Path) -> Iterator[Row]:
    """Save a library's picture of the over-confident procedure."""
    theta, draws = work.FIVE[1].sample(1000, work.DRAWS, np.random.default_rng(1))
    path = folder / f"{module.__name__.rpartition('.')[2]}.png"
    module.draw(theta, draws, str(path))
    yield {"path": str(path)}


def answers(module: Any, question: str, folder: Path) -> Iterator[Row]:
    """Answer one question."""
    if question == "versions":
        found = {name: version(name) for name in module.PACKAGES}
        yield {"versions": found, "python": sys.version.split()[0], "cores": os.cpu_count()}
    elif question.startswith("cost:"):
        yield from cost(module, question.partition(":")[2])
    elif question == "picture":
        yield from picture(module, folder)
    else:
        yield from {"alarms": alarms, "power": power, "words": words}[question](module)


def main(name: str, question: str, folder: str) -> None:
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()):  # libraries print while they are imported and called
        module = import_module(f"benchmarks.peers.{name}")
        found = [{"peer": name, "question": question, **row} for row in answers(module, question, Path(folder))]
    for row in found:
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
