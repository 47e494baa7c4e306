"""ringtrue's adapters, where PyMC and NumPyro are installed."""

from __future__ import annotations

from benchmarks import libraries
from ringtrue import adapters, check

PACKAGES = ("ringtrue", "pymc", "nutpie", "numpyro", "jax")


def pymc(data: None) -> float:
    study = adapters.pymc(libraries.pymc_model(), draws=libraries.DRAWS, tune=libraries.WARMUP, chains=libraries.CHAINS)
    check(study, n=2)  # compiles
    return libraries.spent(lambda: check(study, n=libraries.N_PYMC, seed=1)).cpu / libraries.N_PYMC


def numpyro(data: None) -> float:
    model, settings = libraries.numpyro_model, {"draws": libraries.DRAWS, "warmup": libraries.WARMUP}
    study = adapters.numpyro(model, **settings, chains=libraries.CHAINS, batch=100)
    check(study, n=100)
    return libraries.spent(lambda: check(study, n=500, seed=1)).cpu / 500


COSTS = {"pymc": pymc, "numpyro": numpyro}
