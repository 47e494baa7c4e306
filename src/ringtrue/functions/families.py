"""Several test functions: those that are asked about if nobody says which, and a choice among many."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from ..errors import InvalidStudy
from ..values import Floats
from .contract import ALL, Context, Sees, TestFunction
from .pooled import Reference
from .single import Coordinate, Distance, Function, Linear


@dataclass(frozen=True)
class BestOf:
    """A family from which the most damning member is chosen on some replicates and tested on the others.

    Parameters
    ----------
    family
        The candidates.
    share
        The share of the replicates, in their order, that is spent on choosing.
    splits
        1 chooses once, on the first replicates. More repeats the split at random and combines the p-values
        (the running median, doubled: valid although the splits overlap).

    Notes
    -----
    A finite family is usually better tested whole (the default): splitting spends replicates. Choose it for
    families that are large or learned.

    Examples
    --------
    >>> len(BestOf([Coordinate(index=(j,)) for j in range(3)]).family)
    3
    """

    family: Sequence[Any]
    share: float = 0.5
    splits: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidStudy(f"BestOf needs a share strictly between 0 and 1, but got {self.share}.")
        if isinstance(self.splits, bool) or not isinstance(self.splits, int) or self.splits < 1:
            raise InvalidStudy(f"BestOf needs a whole number of splits, at least 1, but got {self.splits}.")


def as_testfunctions(f: Any, reference: Any = None) -> tuple[TestFunction, ...]:
    """Turn a function, a {name: function} mapping, a name of theta's or a sequence of these into test functions.

    Parameters
    ----------
    f
        What the user asks about.
    reference
        Parameters with one leading axis, in which names are looked up.
    """
    if isinstance(f, BestOf):
        f = f.family
    if isinstance(f, (set, frozenset)):
        raise InvalidStudy("f must have an order, which the result keeps, but a set arrived; pass a list.")
    if isinstance(f, Mapping):
        functions = [_as_named(function, str(name), reference) for name, function in f.items()]
    elif isinstance(f, Iterable) and not isinstance(f, (TestFunction, str)):
        functions = [one for part in f for one in _as_several(part, reference)]
    else:
        functions = _as_several(f, reference)
    _refuse_duplicates([function.name for function in functions])
    return tuple(f.given(reference) if isinstance(f, Reference) and reference is not None else f for f in functions)


def _as_several(f: Any, reference: Any) -> list[TestFunction]:
    """Return the test function, or all entries of the parameter that a name stands for."""
    if not isinstance(f, str):
        return [_as_one(f, None)]
    known = default_family(reference)
    found = [one for one in known if f == one.name or (isinstance(one, Coordinate) and f == (one.key or "theta"))]
    if not found:
        names = ", ".join(one.name for one in known[:10])
        raise InvalidStudy(f"f must name entries of theta, such as {names}, but {f!r} arrived.")
    # What the user asks for by name is the user's own, and no longer what the family adds.
    return [_own(one) for one in found]


def _own(f: TestFunction) -> TestFunction:
    if isinstance(f, Linear):
        return replace(f, kind="linear")
    return replace(f, kind="distance") if isinstance(f, Distance) else f


def _as_named(f: Any, name: str, reference: Any) -> TestFunction:
    """Return the test function, or the entry of theta that a text stands for, under the name its user gave it."""
    found = _as_several(f, reference) if isinstance(f, str) else [f]
    if len(found) > 1:
        raise InvalidStudy(
            f"a name stands for one test function, but {f!r} has {len(found)} entries to be called {name!r}; name them "
            f"one by one, as in {{{name!r}: {found[0].name!r}}}."
        )
    return _as_one(found[0], name)


def _as_one(f: Any, name: str | None) -> TestFunction:
    if isinstance(f, type) and hasattr(f, "evaluate"):
        raise InvalidStudy(
            f"a test function must be an instance, but the class {f.__name__} arrived; call it, {f.__name__}(...)."
        )
    if isinstance(f, TestFunction):
        return f if name is None else _renamed(f, name)
    if callable(f):
        function = Function(f, name or str(getattr(f, "__name__", type(f).__name__)))
        _ = function.sees  # a signature that cannot be called is refused now
        return function
    raise InvalidStudy(
        f"a test function must be callable, one of ringtrue's or a name of theta's, but {type(f).__name__} arrived; "
        f"pass f=lambda theta: ..."
    )


def _renamed(f: TestFunction, name: str) -> TestFunction:
    """Return a test function under the name its user gave it: one of ours as what it is, another inside a wrapper."""
    ours = type(f).__module__.startswith(__package__)
    if ours and is_dataclass(f) and any(part.name == "name" and part.init for part in fields(f)):
        return replace(f, name=name)
    return Renamed(f, name)


@dataclass(frozen=True)
class Renamed:
    """A test function of the user's own class under another name."""

    inner: TestFunction
    name: str

    @property
    def kind(self) -> str:
        """The kind of the function inside."""
        return self.inner.kind

    @property
    def sees(self) -> Sees:
        """What the function inside sees."""
        return self.inner.sees

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Evaluate the function inside."""
        return self.inner.evaluate(theta, context)


def _refuse_duplicates(names: Sequence[str]) -> None:
    if not names:
        raise InvalidStudy(
            "at least one test function is needed, but none arrived; leave f out for the default family."
        )
    if ALL in names:
        raise InvalidStudy(f"a test function cannot be named {ALL!r}, which stands for all of them.")
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise InvalidStudy(f"test functions need different names, but {twice} came more than once; pass f as a dict.")


def unasked(functions: Sequence[TestFunction], reference: Any) -> tuple[str, ...]:
    """Return a note that names the entries of theta that nobody asks about, where entries are all that is asked about.

    What a function of the user's own looks at is not known, and neither is then what it leaves out.
    """
    if not all(isinstance(f, Coordinate) for f in functions):
        return ()
    parts = reference if isinstance(reference, Mapping) else {None: reference}
    shapes = {key: part.shape[1:] for key, part in parts.items() if isinstance(part, np.ndarray)}
    # An index may count from the end.
    asked = {
        (f.key, tuple(int(i) % size for i, size in zip(f.index, shapes.get(f.key, ()), strict=False)))
        for f in functions
        if isinstance(f, Coordinate)
    }
    left = [Coordinate(key, i).name for key in shapes for i in np.ndindex(*shapes[key]) if (key, i) not in asked]
    more = f" and {len(left) - 3} more" if len(left) > 3 else ""
    return (f"not asked about, so that nothing is said of: {', '.join(left[:3])}{more}.",) if left else ()


def default_family(reference: Any) -> tuple[TestFunction, ...]:
    """Return all coordinates, their standardised sum, and the distance from the centre of a reference sample.

    Parameters
    ----------
    reference
        Parameters with one leading axis, independent of the replicates to be judged; they only set
        the centre and the scale.

    Examples
    --------
    >>> [f.name for f in default_family(np.random.default_rng(1).normal(size=(50, 2)))]
    ['theta[0]', 'theta[1]', 'sum', 'distance']
    """
    parts = _named_parts(reference)
    center = {key: _center(part) for key, part in parts.items()}
    scale = {key: _scale(part) for key, part in parts.items()}
    coordinates = tuple(Coordinate(k, i) for k in parts for i in np.ndindex(*np.shape(center[k])))
    whole = _unnamed if list(parts) == [None] else _named
    # A user's parameter keeps its name, whatever it is; ours give way.
    taken = {name for key in parts for name in (key, *(one.name for one in coordinates))}
    distance = Distance(whole(center), whole(scale), _free("distance", taken), "overall")
    # The sum of one entry is the entry again, and would be paid for twice; so is the distance if it has two values.
    if len(coordinates) == 1:
        two = np.unique(next(iter(parts.values()))).size <= 2
        return coordinates if two else (*coordinates, distance)
    # One over the smallest numbers is none.
    weights = whole({k: 1 / np.maximum(s, np.finfo(float).tiny) for k, s in scale.items()})
    return (*coordinates, Linear(weights, _free("sum", taken), "sum"), distance)


def _free(name: str, taken: Collection[Any]) -> str:
    """Return the name, or one made of it that is not taken."""
    return _free(f"{name} (of all)", taken) if name in taken else name


def _named_parts(reference: Any) -> dict[Any, Floats]:
    """View a reference sample as named arrays; refuse what has no coordinates."""
    parts = dict(reference) if isinstance(reference, Mapping) else {None: reference}
    if not all(isinstance(part, np.ndarray) and part.dtype.kind in "biuf" for part in parts.values()):
        raise InvalidStudy(
            "the default test functions need a parameter made of numbers, but the belief draws "
            f"{type(reference).__name__}; pass f=..."
        )
    return {key: np.asarray(part, float) for key, part in parts.items()}


def _center(part: Floats) -> Floats:
    """Return the median, which exists for beliefs without a mean, or a place beside it if the belief may lie on it.

    A belief that is known by its draws has a truth on the median now and then. Its distance would be 0, which no
    output that has a density has a chance of.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # truths may be infinite, or half of the largest number
        middle = np.median(part, axis=0)
        above = np.min(np.where(part > middle, part, np.inf), axis=0)
        # A third of the way, so that two values keep two distances.
        beside = np.where(np.isfinite(above), middle + (above - middle) / 3, middle)
    center = np.where((part == middle).any(axis=0), beside, middle)
    return np.where(np.isfinite(center), center, 0.0)


def _scale(part: Floats) -> Floats:
    """Return the interquartile range on the sd scale; it exists for beliefs without moments."""
    # The interquartile range of a normal law is 1.349 of its sd.
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = np.quantile(part, [0.25, 0.75], axis=0)
        spread = np.asarray((high - low) / 1.349)
    # An entry that hardly varies has no scale of its own; dividing by 0 would make its distance infinite.
    return np.where((spread > 0) & np.isfinite(spread), spread, 1.0)


def _unnamed(parts: Mapping[Any, Floats]) -> Any:
    return parts[None]


def _named(parts: Mapping[Any, Floats]) -> Any:
    return dict(parts)
