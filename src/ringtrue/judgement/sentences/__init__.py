"""Sentences a person can act on.

Turns verdicts, tests, measures and diagnoses into words: what is wrong, by how much, which way, and what to do. It
decides nothing.
"""

from .findings import Findings
from .phrases import factor, interval, listed, misshapen, off, outlying, outside, points
from .sentence import sentence
from .use import useless

__all__ = [
    "Findings",
    "factor",
    "interval",
    "listed",
    "misshapen",
    "off",
    "outlying",
    "outside",
    "points",
    "sentence",
    "useless",
]
