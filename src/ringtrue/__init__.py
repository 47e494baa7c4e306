"""Can the uncertainty that comes out of an inference procedure be trusted?

``check(belief, model, procedure, n=...)`` simulates, learns, and answers; ``check_draws(theta, draws)`` starts from
arrays. The public names, and nothing else.
"""

from . import plots, procedures, testing
from .comparison import compare, coverage_map, sweep
from .distributions.batches import stack
from .distributions.contract import Beta, Draws, Gamma, Gaussian, Independent, Mixture, Normal
from .errors import (
    InvalidStudy,
    Miscalibrated,
    NoRoute,
    ReplicateFailed,
    RingtrueError,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreMismatch,
)
from .execution.runs import run
from .execution.store import load, merge, repair
from .functions.contract import (
    BestOf,
    Coordinate,
    Distance,
    Evaluate,
    Function,
    Linear,
    LogDensity,
    Mahalanobis,
    Vectorized,
    default_family,
    identity,
)
from .judgement.judging import check, check_draws, judge
from .judgement.measures import measure
from .judgement.result import Result, Tolerance, Verdict
from .question.models import contaminated
from .question.study import Study
from .replicates.given import recompute
from .replicates.record import Replicates
from .replicates.simulate import replay
from .statistics import twosample, uniformity
from .statistics.planning import detectable, plan, plan_certificate

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
    "InvalidStudy",
    "Linear",
    "LogDensity",
    "Mahalanobis",
    "Miscalibrated",
    "Mixture",
    "NoRoute",
    "Normal",
    "ReplicateFailed",
    "Replicates",
    "Result",
    "RingtrueError",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreMismatch",
    "Study",
    "Tolerance",
    "Vectorized",
    "Verdict",
    "check",
    "check_draws",
    "compare",
    "contaminated",
    "coverage_map",
    "default_family",
    "detectable",
    "identity",
    "judge",
    "load",
    "measure",
    "merge",
    "plan",
    "plan_certificate",
    "plots",
    "procedures",
    "recompute",
    "repair",
    "replay",
    "run",
    "stack",
    "sweep",
    "testing",
    "twosample",
    "uniformity",
]
__version__ = "0.1.0"
