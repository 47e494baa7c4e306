"""Runs on disk: reading them, putting shards together, saving what is damaged, asking about other functions."""

from .execution.store import Store, load, merge, recompute, repair

__all__ = ["Store", "load", "merge", "recompute", "repair"]
