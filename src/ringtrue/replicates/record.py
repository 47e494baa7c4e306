"""What happened: the one record of replicates, in a worker's message, in a store and in a judgement alike.

A header says what was asked, named arrays hold what is kept of every replicate, with the replicate on axis 0, and
failures say which were lost and why. Which arrays there are is open: a record carries, cuts and joins those it does not
know. None of the user's code is in it, so that judging needs none. This module computes nothing.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..characters import one_line
from ..functions import BestOf, Sees
from ..values import Floats, Ints

#: Arrays under this name are truths and draws that were to be kept: large, and of no use to a judgement.
KEPT = "kept/"
#: Arrays under this name are what samplers say of themselves, one number each: nan for a replicate that says nothing.
DIAGNOSTIC = "diagnostic/"
#: Arrays under this name say what went in, of the first replicates; and how many these are.
INPUT, LOOKED = "input/", 2000
#: Arrays under this name and that of a test function say how truth and draws tie; 0 for a replicate without ties.
TIED = "ties/"
#: Arrays under this name say how truth and draws lie among each other in all entries, of the first replicates only:
#: they have fewer rows than the record where that is longer. Places in a reference chain are below ``PLACES``.
JOINT, PLACES = "joint/", 250
#: Arrays under this name and that of a summary have the summary of every dataset; nan where there is none.
OF_DATA = "data/"
#: Arrays under this name and that of a test function say how probable outputs call each of so many labels, and among
#: how many draws; nan for a replicate that has other values.
SHARES, LABELS = "shares/", 20
#: What its ``noise`` says of a model that gave the same data for one theta from two random streams: it takes one; it
#: takes none; it takes none, and its data are every theta moved by the same numbers.
IGNORES_STREAM, NO_STREAM, SAME_SHIFT = 1, 2, 3
#: (n,): which group a replicate belongs to, if they come in groups; and the same where one of each was picked.
GROUP, ONE_OF_GROUP = "group", "one_of_group"
#: (n,): there if what the test functions have at one draw of the output (``weak_value``) is of the same draw for all.
SAME_DRAW = "same_draw"


@dataclass(frozen=True)
class Field:
    """A declared array of the record: its name, its axes behind the replicate, and what stands for a lost replicate."""

    name: str
    axes: tuple[str, ...] = ("function",)
    blank: float = np.nan

    @property
    def dtype(self) -> type[Any]:
        """Whole numbers cannot be nan: what has another blank is a whole number."""
        return np.float64 if math.isnan(self.blank) else np.int64


@dataclass(frozen=True)
class Failure:
    """One replicate that was lost, and why."""

    replicate: int
    stage: str
    error: str
    traceback: str

    @property
    def replay(self) -> str:
        """The call that runs this replicate alone."""
        return f"ringtrue.replay(study, {self.replicate})"


@dataclass(frozen=True)
class Asked:
    """A test function as the record knows it: its name, its kind, and what it sees."""

    name: str
    kind: str
    sees: Sees


@dataclass(frozen=True)
class Stored:
    """The file that replicates came from, how often its run had been looked at then, and how many it shall have."""

    path: str
    looks: int
    n: int


@dataclass(frozen=True)
class Header:
    """What was asked, as far as a judgement needs to know.

    Attributes
    ----------
    functions
        The test functions, one column each.
    seed
        Of all random numbers.
    selection
        How to choose among the test functions, if a choice was asked for.
    of_belief
        Whether the truths are draws of the belief, so that they tell how wide it is.
    reproducible
        Whether a replicate can be computed again.
    notes
        What a reader of the result must know besides.
    datasets
        How many replicates in a row have one truth.
    of_output
        Whether the truths are draws of the procedure's own output for observed data.
    given
        Whether truths and draws were handed over, and not simulated here.
    """

    functions: tuple[Asked, ...]
    seed: int = 0
    selection: BestOf | None = None
    of_belief: bool = True
    reproducible: bool = True
    notes: tuple[str, ...] = ()
    datasets: int = 1
    of_output: bool = False
    given: bool = False


class _Array:
    """An array of the record by its name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, record: Any, owner: type | None = None) -> NDArray[Any]:
        found: NDArray[Any] = record.arrays[self.name]
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Replicates:
    """What happened in n replicates, one column per test function; lost replicates are rows of nan.

    Attributes
    ----------
    u, z
        The currency and its normal score, (n, functions).
    rank, draws
        The truth's rank and among how many draws; -1 and 0 where the law was exact.
    weak_value, weak_u, weak_z
        f(vartheta_i), one draw of each output, and its position in mu0's exact law of f; nan where there is none.
    truth, mean, sd, crps, interval
        f(theta_i); mean and sd of f under the output, its continuous ranked probability score and the interval score
        of its central 90 % interval, nan where the output does not give them away.
    energy, belief_energy
        (n,): energy scores of the outputs and of the belief, for all entries of theta together; nan if it has only one.
    treated
        (n,): what was done to draws on the way; see :data:`CHAINS` and :data:`WEIGHTED`.
    arrays
        All arrays by name, those above and whatever else was kept: ``members``, diagnostics of samplers; of Markov
        chains ``chain_count`` and, per test function, ``chains/rhat``, ``chains/size`` (effective) and what tests need.
    reference
        f at fresh draws of mu0, (draws, functions); empty where the weak level needs none.
    failures
        Lost replicates.
    first
        The number of the first row's replicate; not 0 in a shard.
    stored
        The file they came from, which remembers who looked at them; None if there is none.
    """

    header: Header
    arrays: Mapping[str, NDArray[Any]]
    failures: tuple[Failure, ...] = ()
    first: int = 0
    seconds: float = 0.0
    reference: Floats = field(default_factory=lambda: np.empty((0, 0)))
    stored: Stored | None = None

    u = _Array()
    z = _Array()
    rank = _Array()
    draws = _Array()
    weak_value = _Array()
    weak_u = _Array()
    weak_z = _Array()
    truth = _Array()
    mean = _Array()
    sd = _Array()
    crps = _Array()
    interval = _Array()
    energy = _Array()
    belief_energy = _Array()
    treated = _Array()

    @property
    def members(self) -> NDArray[np.uint16] | None:
        """(n, draws + 1, strong functions): ranks of every member as the truth, if every replicate has them."""
        return self.arrays.get("members")

    @property
    def functions(self) -> tuple[Asked, ...]:
        """The test functions asked about."""
        return self.header.functions

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""
        return self.header.seed

    @property
    def n(self) -> int:
        """The number of replicates asked for, lost ones included."""
        return len(self.u)

    @property
    def stop(self) -> int:
        """The number of the replicate after the last."""
        return self.first + self.n

    @property
    def lost(self) -> int:
        """How many replicates were lost."""
        return len(self.failures)

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Which replicates were not lost."""
        kept = np.ones(self.n, bool)
        kept[[failure.replicate - self.first for failure in self.failures]] = False
        return kept

    @property
    def rows(self) -> Any:
        """An index of the replicates that were not lost; a slice, which copies nothing, if none was."""
        # A slice is a view: with a million replicates an index array would copy every column that is looked at.
        return np.flatnonzero(self.kept) if self.failures else slice(None)

    def part(self, start: int, stop: int) -> Replicates:
        """Return the replicates with the numbers from ``start`` to before ``stop``, and their share of the time."""
        if (start, stop) == (self.first, self.stop):
            return self
        # Views, not copies: a worker's record is cut before it is sent, and a store's after it is read.
        rows = slice(start - self.first, stop - self.first)
        return replace(
            self,
            arrays={name: array[rows] for name, array in self.arrays.items()},
            failures=tuple(one for one in self.failures if start <= one.replicate < stop),
            first=start,
            seconds=self.seconds * (stop - start) / max(self.n, 1),
        )

    def pick(self, rows: Any) -> Replicates:
        """Return some replicates as a run of their own, numbered from 0.

        Parameters
        ----------
        rows
            A slice, or the numbers of rows in rising order.
        """
        numbers = np.arange(self.n)[rows]
        place = {int(i) + self.first: j for j, i in enumerate(numbers)} if self.failures else {}
        failures = (one for one in self.failures if one.replicate in place)
        return replace(
            self,
            arrays={
                name: array[numbers[numbers < len(array)]] if name.startswith(JOINT) else array[rows]
                for name, array in self.arrays.items()
            },
            failures=tuple(replace(one, replicate=place[one.replicate]) for one in failures),
            first=0,
        )

    def about(self, columns: Sequence[int]) -> Replicates:
        """Return the same replicates with some of the test functions only."""
        # What is of no function stays; what has other axes, such as members, may concern all of them, and goes.
        per_function = (self.n, len(self.functions))
        own = {f"{prefix}{self.functions[k].name}" for k in columns for prefix in (TIED, SHARES)}
        arrays = {
            name: array if whole else array[:, columns]
            for name, array in self.arrays.items()
            if (whole := name.startswith(KEPT) or array.ndim == 1 or name in own)
            or (array.shape == per_function and not name.startswith((TIED, SHARES)))
            or name.startswith(OF_CHAINS)
        }
        header = replace(self.header, functions=tuple(self.functions[k] for k in columns))
        reference = self.reference[:, columns] if self.reference.size else self.reference
        return replace(self, header=header, arrays=arrays, reference=reference)

    def without_kept(self) -> Replicates:
        """Return the record without truths and draws that were kept."""
        arrays = {name: array for name, array in self.arrays.items() if not name.startswith(KEPT)}
        return self if len(arrays) == len(self.arrays) else replace(self, arrays=arrays)

    def kept_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the truths and draws that were kept, by name."""
        return {name.removeprefix(KEPT): part for name, part in self.arrays.items() if name.startswith(KEPT)}

    def causes(self) -> list[tuple[str, int, Failure]]:
        """Return the failures grouped by stage and message, most frequent first, with one example each."""
        groups = Counter((failure.stage, failure.error) for failure in self.failures)
        first = {(failure.stage, failure.error): failure for failure in reversed(self.failures)}
        return [(f"{stage}: {error}", many, first[stage, error]) for (stage, error), many in groups.most_common()]

    def replay_of(self, failure: Failure) -> str | None:
        """Return the call that runs a lost replicate alone; None if it would be another, since nothing is seeded."""
        return failure.replay if self.header.reproducible else None

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("Replicates is not iterable; use its attributes u, z, rank, draws, failures.")

    def __repr__(self) -> str:
        names = one_line(", ".join(function.name for function in self.functions))
        return f"Replicates(n={self.n}, f=[{names}], failures={len(self.failures)}, seed={self.seed})"


#: What the draws of a replicate are, and what was done to them: bits of ``treated``.
CHAINS, WEIGHTED = 1, 2
#: Arrays under this name have the test functions on axis 1, whatever else they have.
OF_CHAINS = "chains/"
#: The place of each replicate in the order that the user gave, if any was given.
ORDER = "order"


class Gathering:
    """A record while it is filled, in any order, with the arrays of some of its replicates at a time.

    Parameters
    ----------
    header
        What was asked.
    first, stop
        The numbers of its replicates.
    fields
        Arrays that are there in any case, whoever is lost.
    """

    def __init__(self, header: Header, first: int, stop: int, fields: Iterable[Field] = ()) -> None:
        self.header, self.first, self.stop = header, first, stop
        self.failures: list[Failure] = []
        self.seconds = 0.0
        self._fields = {one.name: one for one in fields}
        self._arrays: dict[str, NDArray[Any]] = {}
        self._came: dict[str, list[Any]] = {}  # the rows that were put, by array
        self._absent = np.zeros(stop - first, bool)  # replicates that were lost before they had any array
        self._uneven: set[str] = set()
        self._zero: set[str] = set()  # arrays of whole numbers that nothing but zeros came for

    def put(self, rows: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy the arrays of some replicates to their rows; one that others have in another form is given up."""
        for name, array in arrays.items():
            if name.startswith(JOINT) and not len(array):
                continue
            if name not in self._arrays:
                self._arrays[name] = self._empty(array.shape[1:], array.dtype)
                self._came[name] = []
                if array.dtype.kind == "i":
                    self._zero.add(name)
            found = self._arrays[name]
            if found.shape[1:] != array.shape[1:]:
                self._uneven.add(name)
                continue
            if not np.can_cast(array.dtype, found.dtype):  # others came as whole numbers, or less precise
                found = self._arrays[name] = found.astype(np.result_type(found, array))
            # Of joint arrays only the first replicates have rows.
            at = _first(rows, len(array)) if name.startswith(JOINT) else rows
            self._came[name].append(at)
            if name in self._zero and not array.any():
                continue  # memory that nobody wrote to is zero, and costs nothing
            self._zero.discard(name)
            found[at] = array

    def add(self, part: Replicates) -> None:
        """Copy a record to its place; its own arrays may go. What reaches beyond the last replicate is left out."""
        many = min(part.stop, self.stop) - part.first
        rows = slice(part.first - self.first, part.first - self.first + many)
        self.put(rows, {name: array[:many] for name, array in part.arrays.items()})
        # A batch is always computed whole, and may reach beyond the n that was asked for.
        self.failures += [one for one in part.failures if one.replicate < self.stop]
        self.seconds += part.seconds
        if part.lost >= part.n:  # replicates that are lost as a whole fit whatever the others have
            self._absent[rows] = True

    def lose(self, failures: Iterable[Failure], *, came: bool) -> None:
        """Take replicates for lost, whether or not they came; the numbers of those that did are blank."""
        for one in failures:
            self.failures.append(one)
            self._absent[one.replicate - self.first] |= not came
            for name, array in self._arrays.items() if came else ():
                if array.dtype.kind == "f" and not name.startswith(KEPT):
                    array[one.replicate - self.first] = np.nan

    def replicates(self, reference: Floats | None = None) -> Replicates:
        """Return the record; arrays that only some of its replicates have go, but for diagnostics and ties."""
        for one in self._fields.values():
            if one.name not in self._arrays:
                shape = (len(self.header.functions),) if one.axes else ()
                self._arrays[one.name], self._came[one.name] = self._empty(shape, np.dtype(one.dtype)), []
        whole = {name: self._filled_up(name) for name in self._arrays if self._is_whole(name)}
        if self.header.datasets > 1:  # also of those that were lost
            whole[GROUP] = np.arange(self.first, self.stop) // min(self.header.datasets, sys.maxsize)
        empty = np.empty((0, len(self.header.functions)))
        ordered = sorted(self.failures, key=lambda one: one.replicate)
        known = empty if reference is None else reference
        return Replicates(self.header, whole, tuple(ordered), self.first, self.seconds, known)

    def _is_whole(self, name: str) -> bool:
        if name in self._uneven:
            return False
        known = name in self._fields or name.startswith((DIAGNOSTIC, TIED, SHARES, JOINT))
        return known or not (self._missing(name) & ~self._absent).any()

    def _missing(self, name: str) -> NDArray[np.bool_]:
        """Return which replicates an array did not come for."""
        missing = np.ones(self.stop - self.first, bool)
        for rows in self._came[name]:
            missing[rows] = False
        return missing

    def _empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        n = self.stop - self.first
        make = np.zeros if dtype.kind == "i" else np.empty
        # Judging reads column by column: the numbers of a test function lie side by side.
        return make((*shape, n), dtype).T if len(shape) == 1 else make((n, *shape), dtype)

    def _filled_up(self, name: str) -> NDArray[Any]:
        """Return an array with blanks where nothing came."""
        array, missing = self._arrays[name], self._missing(name)
        if name.startswith(JOINT):  # rows behind the last that came were never touched, and cost nothing
            # A lost replicate that was computed beside others has rows, one that was alone has none.
            missing[[one.replicate - self.first for one in self.failures]] = True
            many = int(np.flatnonzero(~missing)[-1]) + 1 if not missing.all() else 0
            array, missing = array[:many], missing[:many]
        if missing.any():
            known = self._fields.get(name)
            array[missing] = known.blank if known else np.nan if array.dtype.kind == "f" else 0
        return array


def lost_record(header: Header, fields: Iterable[Field], first: int, count: int, failure: Failure) -> Replicates:
    """Return a record whose replicates were all lost for one reason."""
    blank = Gathering(header, first, first + count, fields)
    blank.lose((replace(failure, replicate=first + j) for j in range(count)), came=False)
    return blank.replicates()


def join(parts: Iterable[Replicates], *, stop: int | None = None, reference: Floats | None = None) -> Replicates:
    """Return records of one study, in any order, as one that ends before replicate ``stop``."""
    ordered = sorted((part for part in parts if stop is None or part.first < stop), key=lambda part: part.first)
    end = ordered[-1].stop if stop is None else stop
    # Most runs in one process and most stores have one part.
    if len(ordered) == 1 and ordered[0].stop <= end:  # nothing to copy
        return ordered[0] if reference is None else replace(ordered[0], reference=reference)
    whole = Gathering(ordered[0].header, ordered[0].first, end)
    for part in ordered:
        whole.add(part)
    return whole.replicates(reference)


def _first(rows: Any, many: int) -> Any:
    return slice(rows.start, rows.start + many) if isinstance(rows, slice) else rows[:many]


def rows_of(index: Ints, first: int) -> Any:
    """Return the rows of some replicates in a record, a slice if they are consecutive."""
    # A slice assigns without a gather; only groups of mixed outputs need an index.
    whole = int(index[-1]) - int(index[0]) + 1 == len(index)
    return slice(int(index[0]) - first, int(index[-1]) + 1 - first) if whole else index - first
