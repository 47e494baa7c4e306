"""Ranges (first, stop) of replicates: what is there, what is missing."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Sequence

Range = tuple[int, int]


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges in order, adjacent ones as one.

    Examples
    --------
    >>> merged([(5, 7), (0, 2), (2, 4)])
    [(0, 4), (5, 7)]
    """
    found: list[Range] = []
    for first, stop in sorted(ranges):
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((first, stop))
    return found


def united(ranges: Iterable[Range]) -> list[Range]:
    """Return merged ranges of what is in any of them; they may overlap.

    Examples
    --------
    >>> united([(5, 7), (0, 3), (2, 4), (0, 1)])
    [(0, 4), (5, 7)]
    """
    found: list[Range] = []
    for first, stop in sorted(ranges):
        if found and found[-1][1] >= first:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((first, stop))
    return found


def put(ranges: list[Range], own: Range) -> None:
    """Add to merged ranges one that overlaps with none of them; a run of many tasks does so many times.

    Examples
    --------
    >>> known = [(0, 4), (7, 9)]
    >>> put(known, (4, 7))
    >>> known
    [(0, 9)]
    """
    first, stop = own
    at = end = bisect_left(ranges, own)
    if at and ranges[at - 1][1] == first:
        at, first = at - 1, ranges[at - 1][0]
    if end < len(ranges) and ranges[end][0] == stop:
        end, stop = end + 1, ranges[end][1]
    ranges[at:end] = [(first, stop)]


def gaps(ranges: Sequence[Range], start: int, stop: int) -> list[Range]:
    """Return what merged ranges leave out between two numbers.

    Examples
    --------
    >>> gaps([(0, 4), (5, 7)], 2, 9)
    [(4, 5), (7, 9)]
    """
    found, at = [], start
    begin = max(bisect_left(ranges, (start, start)) - 1, 0)  # the one before may reach into it
    for first, end in itertools.islice(ranges, begin, None):
        if first >= stop:
            break
        if first > at:
            found.append((at, first))
        at = max(at, end)
    return found + ([(at, stop)] if at < stop else [])


def prefix(ranges: Sequence[Range]) -> int:
    """Return how many numbers from 0 on are in merged ranges.

    Examples
    --------
    >>> prefix([(0, 4), (5, 7)]), prefix([(1, 4)])
    (4, 0)
    """
    return ranges[0][1] if ranges and ranges[0][0] == 0 else 0


def length(ranges: Iterable[Range]) -> int:
    """Return how many numbers are in ranges."""
    return sum(stop - first for first, stop in ranges)


def said(ranges: Sequence[Range]) -> str:
    """Name the first few ranges.

    Examples
    --------
    >>> said([(0, 4), (5, 7)])
    '0 to 3, 5 to 6'
    """
    shown = ", ".join(f"{first} to {stop - 1}" for first, stop in ranges[:3])
    return shown + (", ..." if len(ranges) > 3 else "")
