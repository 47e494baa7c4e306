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


#: Draws of each output that the weak level averages over, and how many replicates a batch has.
_AVERAGED, _BATCH = 16, 8192


class NumPyAlone:
    """The least that NumPy and SciPy take for a million conjugate replicates, with two readings of what that is.

    ``first`` is what a verdict rested on when this was first measured: a truth, its data and one draw of the output of
    each replicate, their cdfs, and these sorted; for the default family also those of the distance. ``everything`` adds
    what verdicts rest on since: sixteen draws of each output, placed in the belief, and the means of two features of
    them; the continuous ranked probability score; and the order of truths and draws together. It keeps nothing, tests
    nothing and looks at no input.
    """

    def __init__(self, n: int, *, family: bool) -> None:
        self.n, self.family = n, family

    def first(self) -> tuple[Any, Any, Any]:
        """Draw, evaluate the cdfs and sort; return truths, draws and scores."""
        rng, sd = np.random.default_rng(0), np.sqrt(0.5)
        theta = rng.standard_normal(self.n)
        y = theta + rng.standard_normal(self.n)
        vartheta = y / 2 + sd * rng.standard_normal(self.n)
        z = (theta - y / 2) / sd
        columns = [special.ndtr(z), special.ndtr(vartheta)]
        if self.family:
            columns += [_folded(theta, y / 2, sd), _folded(vartheta, 0.0, 1.0)]
        for column in columns:
            np.sort(column)
        return theta, vartheta, z

    def everything(self) -> None:
        """Do as before, and average over draws, score the outputs and order the pairs."""
        theta, vartheta, z = self.first()
        rng, mean = np.random.default_rng(1), np.zeros(_BATCH)
        for _ in range(0, self.n, _BATCH):
            draws = rng.standard_normal((_AVERAGED, _BATCH))
            draws *= 0.5**0.5
            draws += mean
            places = 2 * special.ndtr(draws) - 1
            places.mean(axis=0)
            np.square(places, out=places).mean(axis=0)
        z * (2 * special.ndtr(z) - 1) + 2 * np.exp(-0.5 * np.square(z))
        np.argsort(np.concatenate([theta, vartheta]))


def _folded(z: Any, centre: Any, sd: float) -> Any:
    return special.ndtr((np.abs(z) - centre) / sd) - special.ndtr((-np.abs(z) - centre) / sd)


def batched(n: int = 10**6) -> None:
    """Simulation to verdict against NumPy alone."""
    bayes, belief = NormalMean(), rt.Normal(0, 1)
    for label, f, alone in (
        ("identity", rt.identity, NumPyAlone(n, family=False)),
        ("default family", None, NumPyAlone(n, family=True)),
    ):
        ours = best(lambda f=f: rt.check(belief, bayes.simulate, bayes, n=n, batch=_BATCH, f=f))  # type: ignore[misc]
        first, everything = best(alone.first), best(alone.everything)
        print(
            f"10^6 conjugate replicates to verdict, {label}: {ours:.3f} s, {ours / first:.2f} x NumPy's draws, cdfs "
            f"and sorts ({first:.3f} s), {ours / everything:.2f} x with averages, scores and pairs ({everything:.3f} s)"
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
