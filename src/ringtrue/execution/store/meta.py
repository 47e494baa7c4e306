"""What a store is about: the question, who wrote to it, and how far it reaches.

Kept as JSON, twice, because without it the rest cannot be read. This module knows no SQL and opens no files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, get_args

from ...errors import StoreMismatch
from ...functions import BestOf, Sees
from ...replicates.record import Asked, Header
from . import identity
from .codec import FURTHEST, Row, Unreadable, checksum, is_time, need_form, parsed


@dataclass(frozen=True)
class Meta:
    """What a store is about.

    ``fingerprints`` are those of all studies that wrote to it and were found to be one, ``versions`` those of all
    programs that did, the latest last. ``reference`` is how many reference values there are, ``created`` and ``opened``
    the unix times at which it was made and last opened for writing. ``looks`` are the judgements of it, in their order.
    """

    header: Header
    fingerprints: tuple[Mapping[str, str], ...]
    n: int
    keep: str | None
    reference: int
    created: float
    opened: float
    versions: tuple[Mapping[str, str], ...]
    looks: tuple[Mapping[str, str], ...] = ()


def meta_rows(meta: Meta) -> list[Row]:
    """Return the two rows of a store's description: what it is about must survive if anything does."""
    header, chosen = meta.header, meta.header.selection
    text = json.dumps(
        {
            "functions": [list(astuple(function)) for function in header.functions],
            "seed": header.seed,
            "selection": None if chosen is None else [chosen.share, chosen.splits],
            "of_belief": header.of_belief,
            "reproducible": header.reproducible,
            "notes": list(header.notes),
            "datasets": header.datasets,
            "of_output": header.of_output,
            "fingerprints": [dict(mark) for mark in meta.fingerprints],
            "n": meta.n,
            "keep": meta.keep,
            "reference": meta.reference,
            "created": meta.created,
            "opened": meta.opened,
            "versions": [dict(one) for one in meta.versions],
            "looks": [dict(one) for one in meta.looks],
        }
    )
    return [meta_row(copy, text) for copy in (0, 1)]


def meta_row(copy: int, text: str) -> Row:
    """Return one row of a store's description."""
    return (copy, text, checksum("meta", (copy, text)))


def meta_text(row: Row) -> Any:
    """Return what a row of a store's description says."""
    need_form(list(map(type, row)) == [int, str, bytes], "the description of the store")
    if row[2] != checksum("meta", row[:2]):
        raise Unreadable("the checksum of the store's description is another")
    return parsed(row[1])


def meta_of(row: Row) -> Meta:
    """Return the description of a store from one of its rows."""
    value = meta_text(row)
    try:
        return _meta(value)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise Unreadable(f"the description of the store is not as it was written ({error})") from None


#: What the description consists of: a type, a list of such, or (an empty dict) texts by name.
_FORM: dict[str, Any] = {
    **dict.fromkeys(("seed", "n", "reference"), int),
    **dict.fromkeys(("created", "opened"), float),
    **dict.fromkeys(("of_belief", "reproducible"), bool),
    **{name: [{}] for name in ("fingerprints", "versions", "looks")},
    "functions": [[str]],
    "notes": [str],
}


def _has_form(value: Any, form: Any) -> bool:
    if isinstance(form, list):
        return type(value) is list and all(_has_form(one, form[0]) for one in value)
    if form == {}:
        return type(value) is dict and all(type(text) is str for text in value.values())
    return type(value) is form


def _meta(value: Any) -> Meta:
    value = {"looks": [], **value}  # files that nobody has looked at since looks are remembered have none
    need_form(all(_has_form(value[name], form) for name, form in _FORM.items()), "the description of the store")
    functions = tuple(Asked(*function) for function in value["functions"])
    need_form(all(one.sees in get_args(Sees) for one in functions), "a test function")
    names = tuple(one.name for one in functions)
    selection = None if value["selection"] is None else BestOf(names, *value["selection"])
    datasets = value.get("datasets", 1)  # older stores have none
    need_form(type(datasets) is int and 0 < datasets < FURTHEST, "the number of datasets per theta")
    notes, given = tuple(value["notes"]), value.get("of_output", False)
    need_form(type(given) is bool, "where truths come from")
    about = (value["of_belief"], value["reproducible"], notes, datasets, given)
    header = Header(functions, value["seed"], selection, *about)
    keep = None if value["keep"] is None else str(value["keep"])
    need_form(bool(value["fingerprints"] and value["versions"]), "the list of who wrote")
    need_form(all(0 <= value[name] < FURTHEST for name in ("n", "reference")), "a number of replicates")
    need_form(value["seed"] >= 0, "the seed")
    need_form(all(map(is_time, (value["created"], value["opened"]))), "a time")
    need_form(all(one.keys() >= {"n", "test"} for one in value["looks"]), "a list of looks")
    marks, known, looks = (tuple(value[name]) for name in ("fingerprints", "versions", "looks"))
    return Meta(header, marks, value["n"], keep, value["reference"], value["created"], value["opened"], known, looks)


def need_same(there: Meta, wanted: Meta, path: Path, other: Path | None = None) -> None:
    """Refuse another study, and say in what it differs.

    Sources may have changed and the study be the same: a run computes a stored replicate again to see. Where nothing
    can be computed, in a merge and for what cannot be seeded, they must be the same.
    """
    ours, theirs = _marks(wanted), _marks(there)
    names = [name for name in ours if name not in identity.SOURCES and ours[name] != theirs.get(name, ours[name])]
    if other is not None or not there.header.reproducible:
        names += identity.differences(there.fingerprints, wanted.fingerprints[-1], identity.SOURCES)
    if not names:
        return
    who = "this study" if other is None else str(other)
    advice = "and merge stores of one study only" if other else "or make the study what it was"
    raise StoreMismatch(
        f"{path} belongs to another study than {who}: {names[0]} is {theirs[names[0]]} there, but {ours[names[0]]} "
        f"here. Use another file name, {advice}; tag= tells studies apart that differ in what a fingerprint cannot see."
    )


def _marks(meta: Meta) -> dict[str, str]:
    """Return what must be the same in all who write to a store, and what they are made of."""
    header, chosen = meta.header, meta.header.selection
    return {
        **meta.fingerprints[-1],
        "the list of test functions": ", ".join(f"{f.name} (sees {f.sees})" for f in header.functions),
        "the seed": str(header.seed),
        "the choice of test functions": "none" if chosen is None else f"share {chosen.share}, splits {chosen.splits}",
        "the number of datasets per theta": str(header.datasets),
        "truths from a fit to observed data": str(header.of_output),
        "what is kept": str(meta.keep),
        "reproducible": str(header.reproducible),
    }
