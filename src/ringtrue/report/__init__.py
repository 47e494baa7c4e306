"""A result as one self-contained page that needs no network and no script, and its machine-readable twin."""

from .page import need_place, report

__all__ = ["need_place", "report"]
