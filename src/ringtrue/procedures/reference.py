"""Procedures whose verdict is known in closed form: the tuning forks of the package.

They wrap or ignore other procedures. They know distributions, nothing of studies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..distributions import Draws, Gaussian, Normal, Repeated
from ..errors import InvalidStudy


@dataclass(frozen=True)
class DataAgnostic:
    """Returns the belief and ignores the data: strongly calibrated, and worthless.

    Parameters
    ----------
    data_ndim
        The number of axes of one dataset; y with one more is a batch.

    Examples
    --------
    >>> float(DataAgnostic()(Normal(0, 1), 3.0).mean)
    0.0
    """

    data_ndim: int = 0

    def __call__(self, belief: Any, y: Any) -> Any:
        """Return the belief, once per dataset if y is a batch."""
        return belief if np.ndim(y) <= self.data_ndim else Repeated(belief, len(y))


@dataclass(frozen=True)
class Mirrored:
    """Runs another procedure on -y: weakly calibrated and reversible, but not strongly calibrated.

    For a symmetric belief and a location model, the paper's "mirror Bayes".
    """

    procedure: Any

    def __call__(self, belief: Any, y: ArrayLike) -> Any:
        """Return the output for the mirrored data."""
        return self.procedure(belief, -np.asarray(y))


@dataclass(frozen=True)
class Inflated:
    """Multiplies the variance of another procedure's output by eta.

    Below 1 it is over-confident: the reported sd should be 1/sqrt(eta) times larger. Above 1 it is under-confident.
    """

    procedure: Any
    eta: float

    def __post_init__(self) -> None:
        if self.eta <= 0:
            raise InvalidStudy(f"the variance factor eta must be positive, but {self.eta} arrived.")

    def __call__(self, belief: Any, y: Any) -> Any:
        """Return the output with its spread changed about its own mean."""
        return inflated(self.procedure(belief, y), self.eta)


def inflated(output: Any, eta: float) -> Any:
    """Return the distribution with its variance multiplied by eta.

    Examples
    --------
    >>> float(inflated(Normal(1, 2), 4).sd)
    4.0
    """
    if isinstance(output, Normal):
        return replace(output, sd=np.sqrt(eta) * np.asarray(output.sd))
    if isinstance(output, Gaussian):
        return Gaussian(output.mean, eta * np.asarray(output.cov))
    if isinstance(output, Draws) and not isinstance(output.values, Mapping):
        # The mean that the weights give: about the plain one they would move as well as spread.
        mean = np.average(output.values, axis=0, weights=output.weights)
        return replace(output, values=mean + np.sqrt(eta) * (output.values - mean))
    raise InvalidStudy(f"only normal outputs and draws can be inflated, but {type(output).__name__} arrived.")
