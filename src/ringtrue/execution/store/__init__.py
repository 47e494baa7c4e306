"""Runs on disk: one SQLite file per run, blocks of arrays in it, none of them pickled."""

from .recompute import recompute
from .repair import Repaired, merge, repair
from .store import Standing, Store, load

__all__ = ["Repaired", "Standing", "Store", "load", "merge", "recompute", "repair"]
