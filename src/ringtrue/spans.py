"""Spans: what consecutive replicates came to, and how spans side by side become Replicates.

A span is what travels from a worker and rests in a store. It holds arrays and records, and none of the user's code.
This module simulates nothing and knows no tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .replicates import Column, Failure, Replicates
from .sharpness import SUMMARY
from .testfunctions import BestOf

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Arrays of a span with a row per test function, in the order a store keeps them.
FLOATS = ("u", "z", "weak", "weak_u", "weak_z", *SUMMARY)
INTS = ("rank", "draws")


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
        Summaries; see :mod:`~ringtrue.sharpness`.
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
        cut = {name: getattr(self, name)[:, rows] for name in (*FLOATS, *INTS)}
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
    return Span(first, **blank, rank=nothing - 1, draws=nothing, failures=failures)


def joined(spans: Sequence[Span]) -> Span:
    """Return adjacent spans as one."""
    if len(spans) == 1:
        return spans[0]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in spans], axis=1) for name in (*FLOATS, *INTS)
    }
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


def collected(header: Header, n: int, spans: Iterable[Span], reference: Floats) -> Replicates:
    """Return replicates 0 to n - 1 from spans that cover them, in any order.

    Examples
    --------
    >>> empty = np.empty((0, 0))
    >>> collected(Header((), 0), 0, [], empty)
    Replicates(n=0, f=[], failures=0, seed=0)
    """
    parts = [one for one in spans if one.first < n]
    first = min((one.first for one in parts), default=0)
    arrays = _side_by_side(parts, first, n, len(header.columns))
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
        members=_all_members(parts, n),
        failures=tuple(failures),
        selection=header.selection,
        seed=header.seed,
        notes=(*header.notes, *_said(parts, arrays["draws"])),
        first=first,
        **summaries,
    )


def _side_by_side(parts: Sequence[Span], first: int, n: int, functions: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of spans as those of all replicates, a row per test function: tests read one at a time."""
    if len(parts) == 1:
        return {name: getattr(parts[0], name)[:, : n - first] for name in (*FLOATS, *INTS)}
    shape = (functions, n - first)
    whole: dict[str, NDArray[Any]] = {name: np.empty(shape) for name in FLOATS}
    whole |= {name: np.empty(shape, np.int64) for name in INTS}
    if not _gapless(parts, n):  # filling what is written over anyway is a third of reading a large store
        for name, array in whole.items():
            array.fill(np.nan if name in FLOATS else -1)
    for one in parts:
        where = slice(one.first - first, min(one.stop, n) - first)
        for name, array in whole.items():
            array[:, where] = getattr(one, name)[:, : where.stop - where.start]
    return whole


def _gapless(parts: Sequence[Span], n: int) -> bool:
    """Whether spans lie side by side up to n."""
    ordered = sorted(parts, key=lambda one: one.first)
    return bool(ordered) and ordered[-1].stop >= n and all(a.stop == b.first for a, b in pairwise(ordered))


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
