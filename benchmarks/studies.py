"""Speed and memory of running and judging studies, as ratios in one run: best of several, since machines are noisy.

``python -m benchmarks.studies``
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

import ringtrue as rt
from ringtrue.procedures import NormalMean
from ringtrue.replicates import positions


def best(action: Callable[[], Any], repeats: int = 7) -> float:
    """Return the shortest time of several."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def batched(n: int = 10**6) -> None:
    """Simulation to verdict against drawing the normals, evaluating the cdfs and sorting them."""
    bayes, belief = NormalMean(), rt.Normal(0, 1)

    def folded(z: Any, centre: Any, sd: float) -> Any:
        return special.ndtr((np.abs(z) - centre) / sd) - special.ndtr((-np.abs(z) - centre) / sd)

    def numpy_alone(family: bool = False) -> None:
        rng, sd = np.random.default_rng(0), np.sqrt(0.5)
        theta = rng.standard_normal(n)
        y = theta + rng.standard_normal(n)
        vartheta = y / 2 + sd * rng.standard_normal(n)
        columns = [special.ndtr((theta - y / 2) / sd), special.ndtr(vartheta)]
        if family:
            columns += [folded(theta, y / 2, sd), folded(vartheta, 0.0, 1.0)]
        for column in columns:
            np.sort(column)

    def numpy_family() -> None:
        numpy_alone(family=True)

    for label, f, peer in (("identity", rt.identity, numpy_alone), ("default family", None, numpy_family)):
        ours = best(lambda f=f: rt.check(belief, bayes.simulate, bayes, n=n, batch=8192, f=f))  # type: ignore[misc]
        alone = best(peer)
        print(
            f"10^6 conjugate replicates to verdict, {label}: {ours:.3f} s, {ours / alone:.2f} x NumPy ({alone:.3f} s)"
        )


def scalar(n: int = 5000) -> None:
    """Overhead of one scalar replicate over calling the three functions."""
    belief = rt.Normal(0, 1)

    def model(theta: Any, rng: np.random.Generator) -> Any:
        return theta + rng.normal()

    def exact(mu0: Any, y: Any) -> Any:
        return rt.Normal(y / 2, 0.5**0.5)

    def sampled(mu0: Any, y: Any, rng: np.random.Generator) -> Any:
        return y / 2 + 0.5**0.5 * rng.standard_normal(99)

    for label, procedure, limit in (("exact law", exact, 18), ("99 draws", sampled, 25)):
        study = rt.Study(belief, model, procedure)

        def bare(study: rt.Study = study) -> None:
            rng = np.random.default_rng(0)
            for _ in range(n):
                y = model(belief.sample(1, rng)[0], rng)
                study.procedure(belief, y, rng) if procedure is sampled else study.procedure(belief, y)  # noqa: B023

        each = (best(lambda study=study: rt.run(study, n=n)) - best(bare)) / n  # type: ignore[misc]
        print(f"overhead of a scalar replicate, {label}: {1e6 * each:.1f} microseconds (limit {limit})")


def ranks() -> None:
    """Ranks from draws stored as (n, M, d)."""
    rng = np.random.default_rng(0)
    for n, m, d in ((10_000, 1000, 2), (10_000, 1000, 3), (10_000, 1000, 10), (10_000, 99, 3)):
        draws, theta = rng.normal(size=(n, m, d)), rng.normal(size=(n, d))
        naive = best(lambda draws=draws, theta=theta: (draws < theta[:, None]).sum(1), 5)  # type: ignore[misc]
        ours = best(lambda draws=draws, theta=theta: positions.count_entries(draws, theta), 5)  # type: ignore[misc]
        print(f"ranks and ties of n = {n}, M = {m}, d = {d}: {naive / ours:.1f} x faster than (draws < theta).sum(1)")


MEMORY = """
import pathlib, re, ringtrue as rt
from ringtrue.procedures import NormalMean

class Sampled:
    marginal = None

    def __init__(self, law):
        self.sample = law.sample

bayes = NormalMean()
f = [rt.identity, rt.Vectorized(lambda t: t**2, "square"), rt.Vectorized(lambda t: abs(t - 1), "distance to 1")]
learn = lambda mu0, y: Sampled(bayes(mu0, y))
study = rt.Study(rt.Normal(0, 1), bayes.simulate, learn, draws={draws}, batch=1000, f=f)
verdict = rt.judge(rt.run(study, n={n}, progress="off")).verdict.name
# Not ru_maxrss, which a child inherits from the process that started it.
print(verdict, int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) // 1024)
"""

IMPORT = """
import time
start = time.perf_counter()
import {what}
print(time.perf_counter() - start)
"""


def memory(n: int = 100_000, draws: int = 10_000) -> None:
    """Peak memory of a run whose draws would not fit."""
    code = MEMORY.replace("{n}", str(n)).replace("{draws}", str(draws))
    verdict, peak = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    print(f"{n} replicates x {draws} draws x 3 functions: peak {peak} MB of the whole process (limit 500), {verdict}")


def imports() -> None:
    """Import time against what a check must have of NumPy and SciPy: before and after a name is asked for."""
    needed = _imported("numpy, scipy.special, scipy.fft")
    for what, limit in (
        ("ringtrue", "limit 1.3"),
        ("ringtrue; ringtrue.check", "no limit: all of a check is imported"),
    ):
        ours = _imported(what)
        print(f"import {what}: {ours:.3f} s, {ours / needed:.2f} x NumPy and SciPy's {needed:.3f} s ({limit})")


def _imported(what: str) -> float:
    """Return the shortest time of an import in a process of its own."""
    script = [sys.executable, "-c", IMPORT.format(what=what)]
    return min(float(subprocess.run(script, capture_output=True, text=True, check=True).stdout) for _ in range(5))


def many_functions(n: int = 100_000, functions: int = 100, draws: int = 99) -> None:
    """Judge a hundred test functions; simulating is not counted."""
    bayes = NormalMean()
    names = {f"f{k}": rt.Vectorized(lambda t, k=k: np.abs(t - k / functions), f"f{k}") for k in range(functions)}

    class Sampled:
        marginal = None

        def __init__(self, law: Any) -> None:
            self.sample = law.sample

    study = rt.Study(
        rt.Normal(0, 1), bayes.simulate, lambda mu0, y: Sampled(bayes(mu0, y)), f=names, draws=draws, batch=1000
    )
    replicates = rt.run(study, n=n, progress="off")
    seconds = best(lambda: rt.judge(replicates), 2)
    print(f"judging n = {n} with {functions} functions of {draws} draws: {seconds:.2f} s (limit 3)")


if __name__ == "__main__":
    imports()
    scalar()
    batched()
    ranks()
    memory()
    many_functions()
