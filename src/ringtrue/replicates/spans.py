"""Spans: what consecutive replicates came to, and how spans side by side become Replicates.

A span is what travels from a worker and rests in a store. It holds arrays and records, and none of the user's code.
This module simulates nothing and knows no tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..functions.contract import BestOf
from .record import Column, Failure, Replicates
from .reducers.summaries import SUMMARY

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Arrays of a span with a row per test function, in the order a store keeps them.
FLOATS = ("u", "z", "weak", "weak_u", "weak_z", *SUMMARY)
INTS = ("rank", "draws")
#: Those without: a row for the outputs, one for the belief.
JOINT = ("energy",)
ARRAYS = (*FLOATS, *INTS, *JOINT)


@dataclass(frozen=True, eq=False)
class Span:
    """Replicates ``first`` to ``first + count - 1``: arrays are (functions, count), lost replicates columns of nan.

    Attributes
    ----------
    u, z, rank, draws
        Positions of the truths; see :class:`~ringtrue.Replicates`.
    weak, weak_u, weak_z
        f at one draw of every output, and its position in mu0's law.
    truth, mean, sd, crps, interval
        Summaries; see :mod:`~ringtrue.replicates.reducers.summaries`.
    energy
        (2, count): energy scores of the outputs and of the belief.
    members
        (count, draws + 1, strong functions), or None if not every replicate has them.
    failures
        Lost replicates.
    notes
        What was done to draws on the way: "thinned", "weighted".
    seconds
        What it took.
    kept
        Truths and draws, if they were to be kept: name to array with the replicate on the first axis.
    """

    first: int
    u: Floats
    z: Floats
    weak: Floats
    weak_u: Floats
    weak_z: Floats
    truth: Floats
    mean: Floats
    sd: Floats
    crps: Floats
    interval: Floats
    rank: Ints
    draws: Ints
    energy: Floats
    members: NDArray[np.uint16] | None = None
    failures: tuple[Failure, ...] = ()
    notes: frozenset[str] = frozenset()
    seconds: float = 0.0
    kept: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of replicates."""
        return int(self.u.shape[1])

    @property
    def stop(self) -> int:
        """The replicate after the last."""
        return self.first + self.count

    def part(self, start: int, stop: int) -> Span:
        """Return the replicates from ``start`` to before ``stop``."""
        rows = slice(start - self.first, stop - self.first)
        cut = {name: getattr(self, name)[:, rows] for name in ARRAYS}
        return replace(
            self,
            first=start,
            members=None if self.members is None else self.members[rows],
            failures=tuple(one for one in self.failures if start <= one.replicate < stop),
            kept={name: array[rows] for name, array in self.kept.items()},
            **cut,
        )


def lost_span(first: int, count: int, functions: int, failure: Failure) -> Span:
    """Return a span whose replicates were all lost for one reason.

    Examples
    --------
    >>> lost_span(4, 2, 1, Failure(4, "procedure", "it died", "")).failures[1].replicate
    5
    """
    empty = np.full((functions, count), np.nan)
    blank: dict[str, Any] = dict.fromkeys(FLOATS, empty)
    failures = tuple(replace(failure, replicate=first + j) for j in range(count))
    nothing = np.zeros(empty.shape, np.int64)
    energy = np.full((2, count), np.nan)
    return Span(first, **blank, rank=nothing - 1, draws=nothing, energy=energy, failures=failures)


def joined(spans: Sequence[Span]) -> Span:
    """Return adjacent spans as one."""
    if len(spans) == 1:
        return spans[0]
    arrays: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in spans], axis=1) for name in ARRAYS}
    return replace(
        spans[0],
        members=_joined_members(spans),
        failures=tuple(failure for one in spans for failure in one.failures),
        notes=frozenset().union(*(one.notes for one in spans)),
        seconds=sum(one.seconds for one in spans),
        kept={name: np.concatenate([one.kept[name] for one in spans]) for name in spans[0].kept},
        **arrays,
    )


def _joined_members(spans: Sequence[Span]) -> NDArray[np.uint16] | None:
    """Join the ranks of all members if every replicate that was not lost has them, for equally many draws."""
    alive = [one for one in spans if len(one.failures) < one.count]
    parts = [one.members for one in alive if one.members is not None]
    if not parts or len(parts) < len(alive) or len({part.shape[1:] for part in parts}) > 1:
        return None
    blank = (0, *parts[0].shape[1:])
    return np.concatenate(
        [np.zeros((one.count, *blank[1:]), np.uint16) if one.members is None else one.members for one in spans]
    )


@dataclass(frozen=True)
class Header:
    """What a judgement needs to know besides spans."""

    columns: tuple[Column, ...]
    seed: int
    notes: tuple[str, ...] = ()
    selection: BestOf | None = None


class Collection:
    """The arrays of all replicates, filled with spans as they come, in any order.

    Parameters
    ----------
    header
        What the spans are about.
    first, stop
        The replicates; those that no span has are nan.
    """

    def __init__(self, header: Header, first: int, stop: int) -> None:
        self.header, self.first, self.stop = header, first, stop
        rows = {name: 2 if name in JOINT else len(header.columns) for name in ARRAYS}
        self._arrays: dict[str, NDArray[Any]] = {
            name: np.empty((many, stop - first), np.int64 if name in INTS else np.float64)
            for name, many in rows.items()
        }
        self._parts: list[Span] = []

    def add(self, span: Span) -> None:
        """Copy a span to its place; its own arrays may go."""
        where = slice(span.first - self.first, min(span.stop, self.stop) - self.first)
        for name, array in self._arrays.items():
            array[:, where] = getattr(span, name)[:, : where.stop - where.start]
        placed: dict[str, Any] = {name: array[:, where] for name, array in self._arrays.items()}
        self._parts.append(replace(span, kept={}, **placed))

    def replicates(self, reference: Floats) -> Replicates:
        """Return what there is."""
        for start, stop in self._gaps():
            for name, array in self._arrays.items():
                array[:, start - self.first : stop - self.first] = -1 if name in INTS else np.nan
        return _replicates(self.header, self.stop, self._parts, self._arrays, reference)

    def _gaps(self) -> list[tuple[int, int]]:
        ordered = sorted(self._parts, key=lambda one: one.first)
        ends = [self.first, *(one.stop for one in ordered)]
        starts = [*(one.first for one in ordered), self.stop]
        return [(end, start) for end, start in zip(ends, starts, strict=True) if end < start]


def collected(header: Header, n: int, spans: Iterable[Span], reference: Floats) -> Replicates:
    """Return replicates 0 to n - 1 from spans that cover them, in any order.

    Examples
    --------
    >>> empty = np.empty((0, 0))
    >>> collected(Header((), 0), 0, [], empty)
    Replicates(n=0, f=[], failures=0, seed=0)
    """
    parts = [one for one in spans if one.first < n]
    if len(parts) == 1:  # nothing to copy
        arrays = {name: getattr(parts[0], name)[:, : n - parts[0].first] for name in ARRAYS}
        return _replicates(header, n, parts, arrays, reference)
    collection = Collection(header, min((one.first for one in parts), default=0), n)
    for one in parts:
        collection.add(one)
    return collection.replicates(reference)


def _replicates(
    header: Header, n: int, parts: Sequence[Span], arrays: Mapping[str, NDArray[Any]], reference: Floats
) -> Replicates:
    failures = sorted((f for one in parts for f in one.failures if f.replicate < n), key=lambda one: one.replicate)
    summaries: dict[str, Any] = {name: arrays[name].T for name in SUMMARY}
    return Replicates(
        header.columns,
        u=arrays["u"].T,
        z=arrays["z"].T,
        rank=arrays["rank"].T,
        draws=arrays["draws"].T,
        weak_u=arrays["weak_u"].T,
        weak_z=arrays["weak_z"].T,
        weak_value=arrays["weak"].T,
        reference=reference,
        energy=arrays["energy"][0],
        belief_energy=arrays["energy"][1],
        members=_all_members(parts, n),
        failures=tuple(failures),
        selection=header.selection,
        seed=header.seed,
        notes=(*header.notes, *_said(parts, arrays["draws"])),
        first=min((one.first for one in parts), default=0),
        **summaries,
    )


def _all_members(parts: Sequence[Span], n: int) -> NDArray[np.uint16] | None:
    if not parts:
        return None
    ordered = sorted(parts, key=lambda one: one.first)
    members = _joined_members(ordered)
    return None if members is None else members[: n - ordered[0].first]


def _said(parts: Sequence[Span], draws: Ints) -> list[str]:
    """Say what was done to draws."""
    used = draws[draws > 0]
    left = f"{used.min()} to {used.max()} draws are left" if used.size else "none are left"
    texts = {
        "thinned": f"Markov chains were thinned by their estimated autocorrelation (approximate): {left} of each.",
        "weighted": f"weighted draws were resampled to their effective number (approximate): {left} of each.",
    }
    done = frozenset().union(*(one.notes for one in parts))
    return [text for name, text in texts.items() if name in done]
