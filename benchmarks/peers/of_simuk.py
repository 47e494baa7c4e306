"""simuk: SBC of PyMC and NumPyro models, with the models and settings of ``benchmarks.libraries``."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import libraries

PACKAGES = ("simuk", "pymc", "nutpie", "numpyro", "jax")


def pymc(data: None) -> float:
    settings = {"draws": libraries.DRAWS, "tune": libraries.WARMUP, "chains": libraries.CHAINS, "cores": 1}
    return libraries.simuk(libraries.pymc_model, {**settings, "nuts_sampler": "nutpie"}).cpu


def numpyro(data: None) -> float:
    from numpyro.infer import NUTS

    settings: dict[str, Any] = {"num_samples": libraries.DRAWS, "num_warmup": libraries.WARMUP}
    settings |= {"num_chains": libraries.CHAINS, "chain_method": "sequential"}
    make = lambda: NUTS(libraries.numpyro_model)  # noqa: E731
    return libraries.simuk(make, settings, data_dir={"y": np.zeros(libraries.POINTS)}).cpu


COSTS = {"pymc": pymc, "numpyro": numpyro}
