"""What a study is made of, in a few short texts: enough to say what changed when a stored replicate is another today.

This module knows nothing of files.
"""

from __future__ import annotations

import platform
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...distributions.contract import Distribution
from ...distributions.laws import Law
from ...functions.contract import TestFunction
from ...question.study import Study
from .digest import digest_of, places_written
from .objects import PLAIN, fields, of_type
from .places import Place, is_written

#: The parts of a fingerprint that may change and the study be the same.
SOURCES = ("belief", "truth", "model", "procedure", "f", "prepare")
#: What is called of a user's beliefs, outputs and test functions.
_CALLED = frozenset(name for kind in (Distribution, Law, TestFunction) for name in vars(kind) if name[0] != "_")
#: Characters of a description.
_SHORT = 80


def fingerprint(study: Study, tag: str = "", *, keep: str | None = None) -> dict[str, str]:
    """Return what a study is made of, field by field.

    Parameters
    ----------
    study
        The question.
    tag
        Whatever tells studies apart that look the same from here.
    keep
        What is kept besides replicates.

    Examples
    --------
    >>> from ringtrue import Normal
    >>> study = Study(Normal(0, 1), lambda t: t, lambda mu0, y: Normal(y, 1))
    >>> mark = fingerprint(study, keep="draws")
    >>> mark["draws"], mark["keep"], mark["belief"].rpartition(", ")[0]
    ('99', 'draws', 'Normal(mean=0.0, sd=1.0)')
    """
    parts = {name: getattr(study, name) for name in SOURCES}
    written = _written(list(parts.values()))  # prepare may fill what the procedure reads
    return {
        **{name: _described(part, written) for name, part in parts.items()},
        **({"f": "the default family"} if study.f is None else {}),
        "draws": str(study.draws),
        "seed": str(study.seed),
        "batch": str(study.batch),
        "keep": str(keep),
        "tag": str(tag),
    }


def described(value: Any) -> str:
    """Return a short description of anything, with a digest of all that can be seen of it.

    Examples
    --------
    >>> described(1.5) == described(1.5), described(1.5) == described(2.5)
    (True, False)
    """
    return _described(value, _written(value))


def versions() -> dict[str, str]:
    """Return the versions that matter to random numbers and to reading a store.

    Examples
    --------
    >>> sorted(versions())
    ['numpy', 'python', 'ringtrue']
    """
    from importlib.metadata import PackageNotFoundError, version  # only writing a store needs it

    try:
        own = version("ringtrue")
    except PackageNotFoundError:  # run from a checkout
        own = "unknown"
    return {"ringtrue": own, "numpy": np.__version__, "python": platform.python_version()}


def united(*lists: Iterable[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    """Return what is in any of several lists, each once, in the order in which they came."""
    found: list[Mapping[str, str]] = []
    for one in (one for some in lists for one in some):
        if one not in found:
            found.append(one)
    return tuple(found)


def differences(known: Iterable[Mapping[str, str]], mine: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return in what a fingerprint differs from the nearest of others; what one of the two does not have is equal."""
    chosen = [name for name in names if name in mine]
    return min(([name for name in chosen if one.get(name, mine[name]) != mine[name]] for one in known), key=len)


def _written(value: Any) -> frozenset[Place]:
    try:
        return places_written(value, _CALLED)
    except Exception:  # a fingerprint is no reason for a run to fail
        return frozenset()


def _described(value: Any, written: frozenset[Place]) -> str:
    try:
        digest = digest_of(value, written)
    except Exception:
        digest = "unseen"
    return f"{_short(value, written)}, {digest}"


def _short(value: Any, written: frozenset[Place]) -> str:
    kind = type(value)
    if kind in PLAIN:
        return repr(value)[:_SHORT]
    if kind is types.FunctionType:
        return f"function {value.__name__}"[:_SHORT]
    if kind is np.ndarray:
        return repr(value.item()) if value.ndim == 0 and value.dtype.kind in "biuf" else f"array {value.shape}"
    if kind in (dict, list, tuple):
        return f"{kind.__name__} of {len(value)}"
    name = str(of_type(kind, "__name__"))
    if "__dataclass_fields__" not in of_type(kind, "__dict__"):
        return name[:_SHORT]
    owners = {owner for owner, _, _ in written}
    lasting = (one for one in fields(value) if not is_written(value, one[0], written) and id(one[1]) not in owners)
    said = ", ".join(f"{field}={_short(part, written)}" for field, part in lasting)
    return f"{name}({said})" if len(said) < _SHORT else f"{name}({said[:_SHORT]}...)"
