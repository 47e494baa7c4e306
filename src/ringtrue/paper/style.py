"""How the figures look: the style of all plots."""

from __future__ import annotations

from ..plots.style import COLOURS, MARKERS, NULL, STYLES, footnote, journal

__all__ = ["COLOURS", "MARKERS", "NULL", "STYLES", "footnote", "journal"]
