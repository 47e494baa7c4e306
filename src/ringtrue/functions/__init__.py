"""Test functions: what turns a parameter into one real number."""

from .contract import ALL, ALONE, SEVERAL, Context, Sees, TestFunction
from .families import BestOf, as_testfunctions, default_family, unasked
from .joint import LogDensity, Mahalanobis
from .pooled import Pooled, PreRank, Reference
from .single import Coordinate, Distance, Evaluate, Function, Indicator, Linear, Vectorized, identity

__all__ = [
    "ALL",
    "ALONE",
    "SEVERAL",
    "BestOf",
    "Context",
    "Coordinate",
    "Distance",
    "Evaluate",
    "Function",
    "Indicator",
    "Linear",
    "LogDensity",
    "Mahalanobis",
    "Pooled",
    "PreRank",
    "Reference",
    "Sees",
    "TestFunction",
    "Vectorized",
    "as_testfunctions",
    "default_family",
    "identity",
    "unasked",
]
