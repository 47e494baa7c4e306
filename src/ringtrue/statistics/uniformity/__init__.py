"""Tests that u is uniform, on the continuum or on a lattice of ranks, and simultaneous bands.

Each test takes either u in [0, 1], or integer ranks in {0, ..., M} together with ``draws=M``, and
returns its statistic and a p-value that holds its level at any sample size and any number of draws.
The null hypothesis is always that the values are independent and uniform. No test here can see
dependence between replicates, nor a deviation that averages out over them.

The module knows nothing of where u came from: no procedures, no test functions, no failures beyond
their number.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from .ecdf import Band, band, ecdf_gamma
from .edf import anderson_darling, cramer_von_mises, ks, kuiper, watson
from .minimum import combination
from .sample import UniformityTest
from .scores import binned_chi2, cook, mean_z, neyman

__all__ = [
    "TESTS",
    "Band",
    "UniformityTest",
    "anderson_darling",
    "band",
    "binned_chi2",
    "combination",
    "cook",
    "cramer_von_mises",
    "ecdf_gamma",
    "ks",
    "kuiper",
    "mean_z",
    "neyman",
    "watson",
]

TESTS: Mapping[str, Callable[..., UniformityTest]] = MappingProxyType({
    test.__name__: test
    for test in (
        ks,
        kuiper,
        watson,
        cramer_von_mises,
        anderson_darling,
        ecdf_gamma,
        neyman,
        binned_chi2,
        cook,
        mean_z,
        combination,
    )
})  # fmt: skip
