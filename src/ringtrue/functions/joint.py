"""Test functions that see the output: they speak of all entries of the parameter together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import InvalidStudy
from ..values import Floats
from .contract import Context, Sees


@dataclass(frozen=True)
class LogDensity:
    """The output's own log density: small where the output thinks the parameter unlikely.

    Uniform u means that highest-density regions have the coverage they claim. It sees the output but not the data,
    so it tests auto-calibration. Blind to errors along a density contour.

    Examples
    --------
    >>> LogDensity().sees
    'output'
    """

    name: str = "log density"
    kind: str = field(default="log density", init=False)
    sees: Sees = field(default="output", init=False)

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Return the log density of every parameter under the output of its replicate."""
        output = context.output
        if output.log_density is None:
            raise InvalidStudy(
                f"test function {self.name!r} needs an output with a log_density, but {type(output.origin).__name__} "
                f"has none; use another test function."
            )
        # The parameters come with draws and replicates in front, and a batch of outputs broadcasts against the latter.
        log_density = np.asarray(output.log_density(theta), float)
        # Elementwise laws return one value per entry of the parameter.
        return np.asarray(log_density.sum(axis=tuple(range(context.lead, log_density.ndim))))


@dataclass(frozen=True)
class Mahalanobis:
    """The squared distance of the parameter from the output's mean, in the metric of the output's covariance.

    Chi-squared with d degrees of freedom if a Gaussian output is right. It sees the output but not the data, so it
    tests auto-calibration; blind to the direction of an error. :func:`ringtrue.measure`
    then reports ANEES/d, and NCI where every coordinate was asked about too.

    Examples
    --------
    >>> Mahalanobis().sees
    'output'
    """

    name: str = "Mahalanobis"
    kind: str = field(default="mahalanobis", init=False)
    sees: Sees = field(default="output", init=False)

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Return the squared distance of every parameter from the output of its replicate."""
        output = context.output
        if output.mahalanobis is None:
            raise InvalidStudy(
                f"test function {self.name!r} needs a Gaussian output, ringtrue.Normal or ringtrue.Gaussian, but "
                f"{type(output.origin).__name__} arrived; use LogDensity, or another test function."
            )
        squares = np.asarray(output.mahalanobis(theta), float)
        # Independent entries return one square each.
        return np.asarray(squares.sum(axis=tuple(range(context.lead, squares.ndim))))
