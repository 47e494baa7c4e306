"""Plain NumPy: what a reader would write in one line."""

from __future__ import annotations

from typing import Any

PACKAGES = ("numpy",)


def ranks(data: tuple[Any, Any]) -> Any:
    theta, draws = data
    return (draws < theta[:, None]).sum(axis=1)


COSTS = {"ranks": ranks}
