"""Can the uncertainty that comes out of an inference procedure be trusted?

``check(belief, model, procedure, n=...)`` simulates, learns, and answers; ``check_draws(theta, draws)`` starts from
arrays. The public names, and nothing else.
"""

from . import plots, procedures, testing, twosample, uniformity
from .arrays import recompute
from .batches import stack
from .blocks import replay
from .comparison import compare, coverage_map, sweep
from .distributions import Beta, Draws, Gamma, Gaussian, Independent, Mixture, Normal
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
from .judgement import check, check_draws, judge
from .measures import measure
from .models import contaminated
from .planning import certify, detectable, plan
from .replicates import Replicates
from .results import Result, Tolerance, Verdict
from .runs import run
from .store import load, merge, repair
from .study import Study
from .testfunctions import (
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
    "certify",
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
