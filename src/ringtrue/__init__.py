"""Can the uncertainty that comes out of an inference procedure be trusted?

``check(belief, model, procedure, n=...)`` simulates, learns, and answers; ``check_draws(theta, draws)`` starts from
arrays. The names most people need; the others are in the modules named below.
"""

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
