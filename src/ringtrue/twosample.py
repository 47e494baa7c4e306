"""Tests that two samples have one law."""

from .statistics.twosample import *  # noqa: F403
from .statistics.twosample import __all__ as __all__
