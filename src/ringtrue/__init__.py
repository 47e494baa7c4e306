"""Can the uncertainty that comes out of an inference procedure be trusted?

``check(belief, model, procedure, n=...)`` simulates, learns, and answers; ``check_draws(theta, draws)`` starts from
arrays. The public names, and nothing else.
"""

from . import procedures, testing, twosample, uniformity
from .batches import stack
from .blocks import replay, run
from .distributions import Beta, Draws, Gamma, Gaussian, Independent, Mixture, Normal
from .errors import (
    InvalidStudy,
    Miscalibrated,
    NoRoute,
    ReplicateFailed,
    RingtrueError,
    StoreMismatch,
)
from .judgement import check, check_draws, judge
from .models import contaminated
from .planning import plan
from .replicates import Replicates
from .results import Result, Tolerance, Verdict
from .study import Study
from .testfunctions import (
    BestOf,
    Coordinate,
    Distance,
    Evaluate,
    Function,
    Linear,
    LogDensity,
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
    "Miscalibrated",
    "Mixture",
    "NoRoute",
    "Normal",
    "ReplicateFailed",
    "Replicates",
    "Result",
    "RingtrueError",
    "StoreMismatch",
    "Study",
    "Tolerance",
    "Vectorized",
    "Verdict",
    "check",
    "check_draws",
    "contaminated",
    "default_family",
    "identity",
    "judge",
    "plan",
    "procedures",
    "replay",
    "run",
    "stack",
    "testing",
    "twosample",
    "uniformity",
]
__version__ = "0.1.0"
