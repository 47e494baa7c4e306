"""A conformance kit for procedures, and stochastic assertions with stated error rates."""

from .conformance import (
    FALSE_ALARM,
    MISS,
    Conformance,
    NonConforming,
    assert_same_law,
    assert_uniform,
    check_procedure,
    sensitivity,
)
from .suites import BUDGET, Passed, assert_not_miscalibrated

__all__ = [
    "BUDGET",
    "FALSE_ALARM",
    "MISS",
    "Conformance",
    "NonConforming",
    "Passed",
    "assert_not_miscalibrated",
    "assert_same_law",
    "assert_uniform",
    "check_procedure",
    "sensitivity",
]
