"""Levels, power, coverage and speed; each module runs with ``python -m benchmarks.<name>``."""
