"""Whether a store belongs to a study, by doing: a stored block is computed again and compared, number by number.

Fingerprints name what changed; they do not decide, because no look at a program sees everything that it depends on.
This module does not know who computes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ...characters import printable
from ...errors import StoreMismatch
from ...replicates.record import Replicates, join
from ...replicates.reducers import fields
from ...replicates.simulate import Outcome
from .identity import versions
from .store import Store

#: Numbers that agree so far are those of one program on two machines, or with two versions of a library.
_CLOSE = 1e-6


def verify(store: Store, unit: int, compute: Callable[[int, int], Outcome]) -> bool:
    """Compute one stored block again, and confirm the study; False if there is none that says anything.

    Parameters
    ----------
    store
        Open for writing.
    unit
        Replicates per block.
    compute
        From the first replicate and how many to what they come to.

    Raises
    ------
    StoreMismatch
        If the numbers are others; the message names what changed.

    Warns
    -----
    UserWarning
        If they are the same, but sources or versions are not, or the last digits.
    """
    stored = _first_block(store, unit) if store.header.reproducible else None
    if stored is None:
        _refuse_unproven(store)
        store.confirm()
        return False
    outcome = compute(stored.first, stored.n)
    if outcome.failure is not None or (outcome.record.lost == stored.n > stored.lost):
        error = (outcome.failure or outcome.record.failures[0]).error
        raise _mismatch(store, stored, f"it was computed then and fails now ({error})")
    # What is declared is ours; what a sampler says of itself may be a time.
    names = [field.name for field in fields() if field.name in stored.arrays]
    other = [name for name in names if not _same(stored.arrays[name], outcome.record.arrays[name])]
    close = not store.changed and all(_close(stored.arrays[name], outcome.record.arrays[name]) for name in other)
    if other and not close:
        raise _mismatch(store, stored, f"{', '.join(sorted(other))} of it {'is' if len(other) == 1 else 'are'} others")
    _warn(store, stored, "the same but for the last digits" if other else "the same")
    store.confirm()
    return True


def _first_block(store: Store, unit: int) -> Replicates | None:
    """Return the first replicate or batch, as far as it is there, with one that was not lost."""
    for record in store.records():
        lost = {one.replicate for one in record.failures}
        alive = next((i for i in range(record.first, record.stop) if i not in lost), None)
        if alive is not None:
            first, end = max(alive // unit * unit, record.first), (alive // unit + 1) * unit
            return join(store.parts(first, next((start for start, _ in store.missing(first, end)), end)))
    return None


def _same(stored: NDArray[np.generic], again: NDArray[np.generic]) -> bool:
    return stored.dtype == again.dtype and stored.tobytes() == again.tobytes()


def _close(stored: NDArray[np.generic], again: NDArray[np.generic]) -> bool:
    return stored.shape == again.shape and np.allclose(stored, again, rtol=_CLOSE, atol=_CLOSE**2, equal_nan=True)


def _refuse_unproven(store: Store) -> None:
    """Refuse another program where nothing can be computed again to see what it does."""
    if store.changed and store.done:
        raise StoreMismatch(
            f"{store.path} has replicates of another program than this: {_changes(store)}. They were all lost, so that "
            f"none can be computed again to see whether it matters; use another file name."
        )
    if store.done and (others := _other_versions(store)):
        warnings.warn(printable(f"{store.path} {others}."), stacklevel=4)


def _mismatch(store: Store, stored: Replicates, what: str) -> StoreMismatch:
    reasons = [f"it {others}"] if (others := _other_versions(store)) else []
    if store.changed:
        reasons.append(_changes(store))
    why = "; ".join(reasons) or (
        "nothing that can be seen has changed, so the study is not reproducible, or depends on something unseen: a "
        "file, a library, the machine"
    )
    return StoreMismatch(
        f"{store.path} belongs to another study: replicate {stored.first} was computed again, and {what}. The reason: "
        f"{why}. Use another file name, or make the study what it was; tag= tells studies apart that look the same, "
        f"and reproducible=False declares what cannot be seeded."
    )


def _warn(store: Store, stored: Replicates, outcome: str) -> None:
    said = [_changes(store)] if store.changed else []
    said += [f"it {others}"] if (others := _other_versions(store)) else []
    if said or outcome != "the same":
        reasons = f"{'; '.join(said)}; " if said else ""
        said_so = (
            f"{store.path}: {reasons}replicate {stored.first} was computed again and is {outcome}, so the run goes on. "
            f"If you expect others to differ, use another file name."
        )
        warnings.warn(printable(said_so), stacklevel=4)


def _changes(store: Store) -> str:
    theirs, mine = store.fingerprint, store.writer_fingerprint
    return ", ".join(f"{name} was {theirs.get(name)} and is {mine[name]}" for name in store.changed)


def _other_versions(store: Store) -> str:
    """Say which versions of ringtrue and NumPy wrote, if none of them are those of now."""
    now = _named(versions())
    known = list(dict.fromkeys(_named(one) for one in store.versions))
    return "" if now in known else f"was written with {' and then '.join(known)}, and this is {now}"


def _named(one: Mapping[str, str]) -> str:
    return f"ringtrue {one.get('ringtrue')} and NumPy {one.get('numpy')}"
