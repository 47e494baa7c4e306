"""What a replicate of a PyMC or NumPyro model costs, against simuk with the same model and sampler in one run.

``python -m benchmarks.libraries`` needs the libraries and simuk, which ``make bench`` does not install; it says how.

Processor time is the figure to read, since a loaded machine stretches the others. What is compiled once is counted
apart; simuk compiles for every fit, which cannot be taken out of its time.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

import ringtrue as rt
from ringtrue import adapters

#: The model: mean and sd of so many normal observations; every fit has the same chains, warm-up and draws.
POINTS, CHAINS, WARMUP, DRAWS = 20, 2, 300, 300
#: Replicates: ours with PyMC, of two models, and NumPyro, and simuk's, which are a hundred times slower.
N_PYMC, N_SCHOOLS, N_NUMPYRO, N_SIMUK = 200, 200, 2000, 4
_INSTALL = "pip install 'ringtrue[pymc,numpyro]' 'simuk==0.2.0'"


def _processors() -> float:
    """Return seconds of all processors: of this process by a clock that is finer than a fit, and of its children."""
    return time.process_time() + sum(os.times()[2:4])


@dataclass
class Spent:
    """Seconds on the clock, and of all processors, children included."""

    wall: float = 0.0
    cpu: float = 0.0

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), _processors()
        yield
        self.wall += time.perf_counter() - wall
        self.cpu += _processors() - cpu

    def __truediv__(self, n: int) -> Spent:
        return Spent(self.wall / n, self.cpu / n)

    def __str__(self) -> str:
        return f"{1000 * self.cpu:,.1f} ms CPU, {1000 * self.wall:,.1f} ms wall"


def spent(action: Callable[[], Any]) -> Spent:
    """Return what a call costs, whatever it prints."""
    found = Spent()
    with contextlib.redirect_stderr(io.StringIO()), found.counting():
        action()
    return found


def pymc_model() -> Any:
    import pymc as pm

    with pm.Model() as model:
        mean, sd = pm.Normal("mean"), pm.HalfNormal("sd")
        pm.Normal("y", mean, sd, observed=np.zeros(POINTS))
    return model


def eight_schools() -> Any:
    """Return the model that tutorials fit, whose fits cost what those of small models of practice do."""
    import pymc as pm

    sd = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    with pm.Model() as model:
        mu, tau, raw = pm.Normal("mu", 0, 5), pm.HalfNormal("tau", 5), pm.Normal("raw", shape=8)
        pm.Normal("y", pm.Deterministic("theta", mu + tau * raw), sd, observed=np.zeros(8))
    return model


def numpyro_model(y: Any = None) -> None:
    import numpyro
    from numpyro import distributions as dist

    mean, sd = numpyro.sample("mean", dist.Normal()), numpyro.sample("sd", dist.HalfNormal())
    with numpyro.plate("point", POINTS):
        numpyro.sample("y", dist.Normal(mean, sd), obs=y)


def ours(study: Any, n: int, few: int, fit: tuple[Any, str]) -> tuple[Spent, Spent, float, float]:
    """Return what compiling and what a replicate costs, and our share of it, in two ways.

    First, all that is not the fit or the log-likelihood of its draws. Second, what whoever simulates and fits so many
    datasets has not paid anyway: truths and data are not counted as ours then, only further draws of the prior.
    """
    compiling = spent(lambda: rt.check(study, n=few))
    fits, data = Spent(), Spent()
    machine, each = study.machine, study.batch or 1
    owners = ((*fit, fits), (machine, "_log_likelihood", fits), (machine, "_prior", data), (machine, "_data", data))
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in owners]
    for owner, name, inside in owners:
        owner.__dict__[name] = counted(owner.__dict__[name], inside, each if name == "_prior" else None)
    try:
        whole = spent(lambda: rt.check(study, n=n, seed=1))
    finally:
        for owner, name, call in kept:
            owner.__dict__[name] = call
    share = 1 - fits.cpu / whole.cpu
    return compiling, whole / n, share, share - data.cpu / whole.cpu


def counted(call: Any, inside: Spent, many: int | None = None) -> Any:
    """Return a call whose time is counted until its numbers are there: every call, or those that ask for so many."""
    import jax

    if isinstance(call, tuple):  # a compiled function, and the random numbers it holds
        return counted(call[0], inside), *call[1:]

    def counting(*args: Any, **kwargs: Any) -> Any:
        with contextlib.nullcontext() if many is not None and many not in args else inside.counting():
            return jax.block_until_ready(call(*args, **kwargs))

    return counting


def simuk(make: Callable[[], Any], settings: dict[str, Any], **about: Any) -> Spent:
    """Return what a simulation costs."""
    sbc = import_module("simuk").SBC

    def simulate(n: int) -> None:
        # A kernel that ran once cannot be run again, so that every run has its own.
        sbc(make(), num_simulations=n, seed=n, sample_kwargs=dict(settings), **about).run_simulations()

    spent(lambda: simulate(1))  # the first pays for imports and caches that later ones find
    return spent(lambda: simulate(N_SIMUK)) / N_SIMUK


def show(name: str, mine: tuple[Spent, Spent, float, float], peers: dict[str, Spent], goal: int) -> None:
    compiling, each, *shares = mine
    print(f"{name}: {each} per replicate; compiled once: {compiling}; {said(*shares)}")
    for peer, cost in peers.items():
        print(
            f"  {peer}: {cost} per replicate: {cost.cpu / each.cpu:.0f} times (CPU), {cost.wall / each.wall:.0f} (wall)"
        )
    print(f"  goals: at least {goal} times cheaper, our share of the time below 10 %")


def said(all_but_fits: float, added: float) -> str:
    return f"our share {added:.1%}, with truths and data {all_but_fits:.1%}"


def with_pymc() -> None:
    import nutpie

    settings = {"draws": DRAWS, "tune": WARMUP, "chains": CHAINS}
    study = adapters.pymc(pymc_model(), **settings)
    mine = ours(study, N_PYMC, 2, (nutpie, "sample"))
    peers = {
        f"simuk with {label}": simuk(pymc_model, {**settings, "cores": 1, "nuts_sampler": sampler})
        for label, sampler in (("nutpie", "nutpie"), ("PyMC's NUTS", "pymc"))
    }
    show("PyMC", mine, peers, 15)
    schools = adapters.pymc(eight_schools(), chains=4, draws=1000, tune=1000)
    _, each, *shares = ours(schools, N_SCHOOLS, 2, (nutpie, "sample"))
    print(f"PyMC, eight schools with nutpie, 4 chains of 1000 + 1000: {each} per replicate; {said(*shares)}")


def with_numpyro() -> None:
    from numpyro.infer import NUTS

    study = adapters.numpyro(numpyro_model, draws=DRAWS, warmup=WARMUP, chains=CHAINS, batch=100)
    mine = ours(study, N_NUMPYRO, 100, (study.machine, "_fit"))
    settings = {"num_samples": DRAWS, "num_warmup": WARMUP, "num_chains": CHAINS, "chain_method": "sequential"}
    peer = simuk(lambda: NUTS(numpyro_model), settings, data_dir={"y": np.zeros(POINTS)})
    show("NumPyro, batches of 100", mine, {"simuk": peer}, 500)


def main() -> None:
    missing = [name for name in ("pymc", "nutpie", "numpyro", "simuk") if find_spec(name) is None]
    if missing:
        print(f"benchmarks.libraries needs {', '.join(missing)}: {_INSTALL}")
        return
    warnings.simplefilter("ignore")
    found = [f"{name} {version(name)}" for name in ("pymc", "nutpie", "numpyro", "jax", "simuk")]
    print(f"Python {platform.python_version()}, {', '.join(found)}")
    print(f"{os.cpu_count()} processors, on average {os.getloadavg()[0]:.1f} processes that want one")
    print(f"mean and sd of {POINTS} normal observations; {CHAINS} chains of {WARMUP} + {DRAWS}")
    with_pymc()
    with_numpyro()


if __name__ == "__main__":
    main()
