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

__all__ = [
    "FALSE_ALARM",
    "MISS",
    "Conformance",
    "NonConforming",
    "assert_same_law",
    "assert_uniform",
    "check_procedure",
    "sensitivity",
]
