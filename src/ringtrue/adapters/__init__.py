"""Models of other libraries as studies: ``rt.check(adapters.pymc(model), n=200)``.

One file per library, imported when its function is first asked for; what it needs is an extra of the same name.
"""

from importlib import import_module
from typing import Any

#: The file of each function.
_FILES = {
    "bayesflow": "bayesflow_networks",
    "blackjax": "trajectories",
    "dynesty": "nested",
    "emcee": "ensembles",
    "numpyro": "numpyro_models",
    "pymc": "pymc_models",
    "sbi": "sbi_posteriors",
    "sklearn": "sklearn_models",
    "stan": "stan_programs",
}

__all__ = sorted(_FILES)


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"ringtrue.adapters has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
