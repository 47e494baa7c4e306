"""Other questions to a run that was kept: replicates from the draws in a store, without the study's code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidStudy
from ...replicates.given import replicates_from_draws
from ...replicates.record import CHAINS, GROUP, Replicates
from .store import Store


def recompute(store: Any, *, f: Any, belief: Any = None) -> Replicates:
    """Ask a stored run about other test functions, from the draws it kept.

    Parameters
    ----------
    store
        A file made with ``run(study, n=..., store=..., keep="draws")``.
    f
        Test functions of the parameter, as in :class:`~ringtrue.Study`.
    belief
        mu0, if the weak level is to be tested; a store does not hold it.

    Notes
    -----
    All draws are read into memory. Where an output had an exact law, ranks among its kept draws take its place.
    """
    with Store.read(store) as opened:
        if opened.keep != "draws":
            raise InvalidStudy(f"{store} must have draws to ask about, but it was made without keep='draws'.")
        stored, kept = opened.replicates(), opened.draws(0, opened.n)
    order = _order(stored)
    found = replicates_from_draws(
        *(_unnamed(kept, name) for name in ("theta", "draws")),
        f=f,
        belief=belief,
        **order,
        groups=stored.arrays.get(GROUP),
        seed=stored.seed,
        on_failure="record",
    )
    known = {failure.replicate: failure for failure in stored.failures}
    failures = tuple(known.get(one.replicate, one) for one in found.failures)
    return replace(found, failures=failures, stored=stored.stored)


def _order(stored: Replicates) -> dict[str, Any]:
    """Return what the draws of a run are: so many chains, or independent."""
    if not np.any(stored.treated & CHAINS):
        return {"iid": True}
    count = stored.arrays.get("chain_count")
    if count is None:  # written by a version that did not tell one chain from several
        return {"iid": False}
    many = set(count[stored.rows].tolist())
    if len(many) != 1:
        raise InvalidStudy("the stored outputs must be equally many chains each to ask about them, but they are not.")
    return {"chains": int(many.pop())}


def _unnamed(parts: Mapping[str, NDArray[Any]], name: str) -> Any:
    """Return the arrays of a name: one, or a dict of those under it."""
    if name in parts:
        return parts[name]
    return {key.partition("/")[2]: part for key, part in parts.items() if key.startswith(f"{name}/")}
