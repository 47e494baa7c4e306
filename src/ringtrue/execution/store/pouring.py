"""From one store into another of the same study: what both have must be the same, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import StoreMismatch
from ...replicates.record import DIAGNOSTIC, JOINT, Replicates, join
from . import identity
from .meta import Meta
from .store import Store


def united(metas: Sequence[Meta]) -> Meta:
    """Return the description of several stores of one study as one."""
    return replace(
        metas[0],
        n=max(meta.n for meta in metas),
        reference=0,
        fingerprints=identity.united(*(meta.fingerprints for meta in metas)),
        versions=identity.united(*(meta.versions for meta in metas)),
        # Whoever looked at a share has seen some of the whole.
        looks=tuple(one for meta in metas for one in meta.looks),
    )


def pour_reference(store: Store, whole: Store) -> None:
    """Copy the reference values of a store to another, which may have some of them."""
    values, have = store.reference(store.reference_count), whole.reference_count
    common = min(have, len(values))
    if values[:common].tobytes() != whole.reference(common).tobytes():
        raise StoreMismatch(f"{store.path} has other reference values than the stores before it. {_apart(store)}")
    if len(values) > have:
        whole.add_reference(have, values[have:])


def pour(store: Store, record: Replicates, whole: Store) -> None:
    """Copy replicates of a store to another; those that it has must be the same."""
    gaps = whole.missing(record.first, record.stop)
    edges = [record.first, *(edge for gap in gaps for edge in gap), record.stop]
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if start < stop:
            _need_equal(store, record.part(start, stop), whole)
    for start, stop in gaps:
        whole.add(record.part(start, stop))


def _need_equal(store: Store, record: Replicates, whole: Store) -> None:
    there = whole.with_draws(join(whole.parts(record.first, record.stop)))
    if _content(there) != _content(record):
        raise StoreMismatch(
            f"{store.path} has other results for replicates {record.first} to {record.stop - 1} than the stores before "
            f"it. {_apart(store)}"
        )


def _apart(store: Store) -> str:
    if not store.header.reproducible:
        return "The study cannot be reproduced, so each replicate may be in one of them only."
    return (
        "The fingerprints agree, so the study is not reproducible, or it depends on something that a fingerprint "
        "cannot see; tell such studies apart with tag=."
    )


def _content(record: Replicates) -> Any:
    """Return what must be the same wherever a replicate was computed; tracebacks name places."""
    # Ranks of members are dropped where replicates side by side do not all have them, and diagnostics are filled up.
    silent = {name for name, part in record.arrays.items() if name.startswith(DIAGNOSTIC) and np.isnan(part).all()}
    kept = {name: part for name, part in record.arrays.items() if name not in {"members", *silent}}
    arrays = {name: part.tobytes() for name, part in kept.items() if not name.startswith(JOINT)}
    return arrays, [(one.replicate, one.stage, one.error) for one in record.failures]
