"""Sentences a person can act on.

Turns verdicts, tests, measures and diagnoses into words: what is wrong, by how much, which way, and what to do. It
decides nothing.
"""

from .findings import Findings
from .phrases import interval, listed, misshapen, off, outlying, points
from .sentence import sentence
from .use import useless

__all__ = ["Findings", "interval", "listed", "misshapen", "off", "outlying", "points", "sentence", "useless"]
