"""Probabilistic solvers of initial value problems, as learning procedures whose datum is the equation."""

from .beliefs import LogNormal, SolutionBelief, equation, fitzhugh_nagumo, logistic_growth, lorenz, lotka_volterra
from .extrapolation import BBPN
from .filters import EK0, EK1
from .particles import Chkrebtii
from .problem import InitialValueProblem
from .randomised import AdamsMoulton, Calibrated, RandomisedEuler, RandomisedRK4
from .solution import ReferenceSolutions, reference

__all__ = [
    "BBPN",
    "EK0",
    "EK1",
    "AdamsMoulton",
    "Calibrated",
    "Chkrebtii",
    "InitialValueProblem",
    "LogNormal",
    "RandomisedEuler",
    "RandomisedRK4",
    "ReferenceSolutions",
    "SolutionBelief",
    "equation",
    "fitzhugh_nagumo",
    "logistic_growth",
    "lorenz",
    "lotka_volterra",
    "reference",
]
