"""Speed and memory of the ODE solvers: EK0 and EK1 beside probnum's stated time, all five, and the figure.

probnum 0.1.25 cannot be installed beside NumPy 2; its 0.15 s of CPU per adaptive solve is the stated figure (0.08 to
0.14 s were measured in an environment of its own). Run: python -m benchmarks.odes
"""

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ringtrue.callables import called
from ringtrue.paper import gallery
from ringtrue.paper.odes import SOLVERS
from ringtrue.procedures import ode

PROBNUM = 0.15
LIMIT = 200


def best(act: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        act()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        gallery.produce(["odes"], Path(folder), scale=0.01, say=lambda line: None)
    print(f"all five solvers, 100 and 200 draws, and both figures: {time.perf_counter() - start:.1f} s (limit 20)")
    problems = ode.equation(ode.lotka_volterra().sample(10_000, np.random.default_rng(0)))
    for name, solver in (("EK0", ode.EK0()), ("EK1", ode.EK1())):
        each = best(lambda solver=solver: solver(None, problems).process.moments(10.0)) / len(problems)  # type: ignore[misc]
        print(f"{name}, 10^4 problems: {1e6 * each:.0f} us of CPU each, {PROBNUM / each:.0f} x probnum (limit {LIMIT})")
    rng = np.random.default_rng(0)
    for name, any_solver in SOLVERS.items():
        start = time.process_time()
        output = called(any_solver, ("belief", "y"), "a solver")[0](None, problems, rng)
        if output.law(10.0, 0) is None:
            output.sample(99, rng)(10.0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{name}, 10^4 problems: {time.process_time() - start:.1f} s of CPU, peak so far {peak:.0f} MB (limit 1000)"
        )


if __name__ == "__main__":
    main()
