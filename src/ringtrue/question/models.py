"""The data-generating model P: from a parameter to a dataset.

This module knows how to call a user's simulator and how to contaminate one. It knows nothing of procedures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..callables import called
from ..errors import InvalidStudy

Model = Callable[[Any, np.random.Generator], Any]


def as_model(value: Any) -> Model:
    """Turn ``P(theta)`` or ``P(theta, rng)`` into a function of both.

    Examples
    --------
    >>> as_model(lambda theta: theta + 1)(1.0, np.random.default_rng(0))
    2.0
    """
    return called(value, ("theta",), "the model")[0]


@dataclass(frozen=True)
class contaminated:  # noqa: N801 - reads as a verb phrase: contaminated(clean, outlier, 0.1)
    """A model that draws a dataset from ``outlier`` with probability ``share``, from ``clean`` otherwise.

    Parameters
    ----------
    clean, outlier
        Models of one dataset per parameter (not batched).
    share
        The probability of the outlier model.

    Examples
    --------
    >>> model = contaminated(lambda theta: 0.0, lambda theta: 1.0, 1.0)
    >>> model(2.0, np.random.default_rng(0))
    1.0
    """

    clean: Any
    outlier: Any
    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidStudy(f"the share of contaminated data must lie in [0, 1], but {self.share} arrived.")

    def __call__(self, theta: Any, rng: np.random.Generator) -> Any:
        """Return one dataset."""
        chosen = self.outlier if rng.random() < self.share else self.clean
        return as_model(chosen)(theta, rng)
