"""Runs on disk: one SQLite file per run, blocks of arrays in it, none of them pickled."""

from .file import Repaired, Standing, Store, load, merge, repair

__all__ = ["Repaired", "Standing", "Store", "load", "merge", "repair"]
