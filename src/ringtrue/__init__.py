"""Can the uncertainty that comes out of an inference procedure be trusted?

``check(belief, model, procedure, n=...)`` simulates, learns, and answers; ``check_draws(theta, draws)`` starts from
arrays. The names most people need; the others are in the modules named below.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from . import errors, planning, plots, procedures, store, testing, twosample, uniformity
    from .comparison import check_beliefs, compare, coverage_map, sweep
    from .distributions import Beta, Draws, Gamma, Gaussian, Independent, Mixture, Normal, stack
    from .execution.runs import run
    from .functions import (
        BestOf,
        Coordinate,
        Distance,
        Evaluate,
        Function,
        Indicator,
        Linear,
        LogDensity,
        Mahalanobis,
        PreRank,
        Reference,
        Vectorized,
        identity,
    )
    from .judgement.fits import diagnostics
    from .judgement.judging import check, check_draws, judge
    from .judgement.kernels import check_kernel
    from .judgement.measures import measure
    from .judgement.order import independence
    from .judgement.probabilities import check_probabilities
    from .judgement.result import Result
    from .judgement.verdict import Tolerance, Verdict
    from .question.models import contaminated
    from .question.study import Study
    from .replicates.record import Replicates
    from .replicates.simulate import replay

__all__ = [
    "BestOf",
    "Beta",
    "Coordinate",
    "Distance",
    "Draws",
    "Evaluate",
    "Function",
    "Gamma",
    "Gaussian",
    "Independent",
    "Indicator",
    "Linear",
    "LogDensity",
    "Mahalanobis",
    "Mixture",
    "Normal",
    "PreRank",
    "Reference",
    "Replicates",
    "Result",
    "Study",
    "Tolerance",
    "Vectorized",
    "Verdict",
    "check",
    "check_beliefs",
    "check_draws",
    "check_kernel",
    "check_probabilities",
    "compare",
    "contaminated",
    "coverage_map",
    "diagnostics",
    "errors",
    "identity",
    "independence",
    "judge",
    "measure",
    "planning",
    "plots",
    "procedures",
    "replay",
    "run",
    "stack",
    "store",
    "sweep",
    "testing",
    "twosample",
    "uniformity",
]
__version__ = "0.2.0"

#: Where names come from. They are imported when they are first asked for: a script that says `ringtrue --help`, or
#: tests that use one class, do not wait for the others.
_PLACES = {
    name: place
    for place, names in {
        ".comparison": "check_beliefs compare coverage_map sweep",
        ".distributions": "Beta Draws Gamma Gaussian Independent Mixture Normal stack",
        ".execution.runs": "run",
        ".functions": "BestOf Coordinate Distance Evaluate Function Indicator Linear LogDensity Mahalanobis PreRank "
        "Reference Vectorized identity",
        ".judgement.fits": "diagnostics",
        ".judgement.judging": "check check_draws judge",
        ".judgement.kernels": "check_kernel",
        ".judgement.measures": "measure",
        ".judgement.order": "independence",
        ".judgement.probabilities": "check_probabilities",
        ".judgement.result": "Result",
        ".judgement.verdict": "Tolerance Verdict",
        ".question.models": "contaminated",
        ".question.study": "Study",
        ".replicates.record": "Replicates",
        ".replicates.simulate": "replay",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> _Any:
    place, missing = _PLACES.get(name), f"module {__name__!r} has no attribute {name!r}"
    if place is None and name.startswith("_"):
        raise AttributeError(missing)
    try:
        module = _import_module(place or f".{name}", __name__)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":  # something else is not installed
            raise
        raise AttributeError(missing) from None
    globals()[name] = found = module if place is None else getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
