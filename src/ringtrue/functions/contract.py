"""Test functions: what turns a parameter into one real number.

A parameter is an array, a dict of named arrays, or a callable (a function-valued parameter). Values come with
*leading axes*: none for one parameter, one for draws or replicates, two for draws x replicates; the parameter's own
axes follow. A test function maps that to an array of the leading axes' shape. This module knows nothing of
distributions or statistics.

The level of a number follows from what its test function sees: the parameter alone (strong), the parameter and the
output (auto), the parameter and the data (exact).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..callables import with_optional
from ..errors import InvalidStudy

Level = Literal["strong", "auto", "exact", "weak"]
Floats = NDArray[np.float64]

#: What rows over all test functions call theirs.
ALL = "(all)"
#: Entries of theta in the default family, at most.
MOST_ENTRIES = 20
#: Characters that change the direction of the text behind them.
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@runtime_checkable
class TestFunction(Protocol):
    """Anything with a name, a level, and an ``evaluate``."""

    @property
    def name(self) -> str:
        """What the result calls it."""

    @property
    def level(self) -> Level:
        """What it can say something about."""

    def evaluate(self, theta: Any, lead: int, *, y: Any = None, output: Any = None) -> Floats:
        """Return f at every parameter, an array shaped like the ``lead`` leading axes."""


def take(value: Any, index: Any) -> Any:
    """Index the leading axes of a parameter value, be it an array, a dict of arrays or a sequence of objects."""
    if isinstance(value, Mapping):
        return {name: part[index] for name, part in value.items()}
    if isinstance(value, (list, tuple)) and isinstance(index, tuple):
        (index,) = index  # objects have one leading axis only
    return value[index]


def leading_shape(value: Any, lead: int) -> tuple[int, ...]:
    """Return the shape of the leading axes of a parameter value."""
    if lead == 0:
        return ()
    if isinstance(value, Mapping):
        value = next(iter(value.values()))
    return np.shape(value)[:lead] if isinstance(value, np.ndarray) else (len(value),)[:lead]


@dataclass(frozen=True)
class Coordinate:
    """One entry of the parameter: ``theta[key][index]``, the identity for a scalar parameter.

    Examples
    --------
    >>> Coordinate(index=(1,)).evaluate(np.array([3.0, 4.0]), 0)
    array(4.)
    """

    key: str | None = None
    index: tuple[int, ...] = ()
    level: Level = field(default="strong", init=False)

    @property
    def name(self) -> str:
        """The entry as one would write it."""
        return (self.key or "theta") + (f"[{', '.join(map(str, self.index))}]" if self.index else "")

    def evaluate(self, theta: Any, lead: int, *, y: Any = None, output: Any = None) -> Floats:
        """Return the entry of every parameter."""
        part = theta if self.key is None else theta[self.key]
        entry: tuple[Any, ...] = (..., *self.index)
        values: Floats = np.asarray(part, float)[entry]
        return values


identity = Coordinate()


@dataclass(frozen=True, eq=False)
class Linear:
    """A weighted sum of the entries of an array-valued (or dict-valued) parameter.

    Examples
    --------
    >>> float(Linear([1.0, -1.0]).evaluate(np.array([3.0, 4.0]), 0))
    -1.0
    """

    weights: ArrayLike | Mapping[str, ArrayLike]
    name: str = "linear"
    level: Level = field(default="strong", init=False)

    def evaluate(self, theta: Any, lead: int, *, y: Any = None, output: Any = None) -> Floats:
        """Return the weighted sum for every parameter."""
        if isinstance(self.weights, Mapping):
            return sum((_contract(theta[key], weight) for key, weight in self.weights.items()), np.zeros(()))
        return _contract(theta, self.weights)


def _contract(values: ArrayLike, weights: ArrayLike) -> Floats:
    """Sum the weighted entries over the parameter's axes, the last ones of the values.

    Not by BLAS, whose rounding depends on how many rows it is given: replicates must not change with their company.
    """
    w = np.asarray(weights, float)
    array = np.asarray(values, float)
    if array.shape[array.ndim - w.ndim :] != w.shape:
        raise ValueError(f"weights of shape {w.shape} do not fit a parameter of shape {array.shape}")
    terms = np.multiply(array, w, order="C")
    return np.asarray(terms.reshape(*array.shape[: array.ndim - w.ndim], w.size).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class Distance:
    """The distance of the parameter from a fixed point, each coordinate divided by its scale.

    The non-linear member of the default family: a procedure can be right for every linear function
    and wrong here.

    Examples
    --------
    >>> float(Distance(0.0, 2.0).evaluate(np.array(-3.0), 0))
    1.5
    """

    center: Any
    scale: Any
    name: str = "distance"
    level: Level = field(default="strong", init=False)

    def evaluate(self, theta: Any, lead: int, *, y: Any = None, output: Any = None) -> Floats:
        """Return the distance for every parameter."""
        if not isinstance(self.center, Mapping):
            return np.sqrt(_squares(theta, self.center, self.scale))
        return np.sqrt(sum((_squares(theta[k], c, self.scale[k]) for k, c in self.center.items()), np.zeros(())))


def _squares(values: ArrayLike, center: Any, scale: Any) -> Floats:
    """Sum the squared standardised entries over the parameter's axes."""
    axes = np.ndim(center)
    scaled = (np.asarray(values, float) - center) / scale
    squares: Floats = np.square(scaled)
    return squares.sum(axis=tuple(range(-axes, 0))) if axes else squares


@dataclass(frozen=True)
class Evaluate:
    """The value at ``x`` of a function-valued parameter (any callable; ``component`` picks from a vector value).

    Examples
    --------
    >>> float(Evaluate(0.25).evaluate(np.sqrt, 0))
    0.5
    """

    x: Any
    component: int | None = None
    level: Level = field(default="strong", init=False)

    @property
    def name(self) -> str:
        """The value as one would write it."""
        return f"theta({self.x})" + ("" if self.component is None else f"[{self.component}]")

    def evaluate(self, theta: Any, lead: int, *, y: Any = None, output: Any = None) -> Floats:
        """Return the value at x of every function (draws and replicates are the function's own business)."""
        if not callable(theta):
            return np.array([self.evaluate(function, 0) for function in theta])
        values = np.asarray(theta(self.x), float)
        return values if self.component is None else values[..., self.component]


@dataclass(frozen=True)
class Function:
    """A user's function of one parameter, or of one parameter and its data; called once per draw.

    Parameters
    ----------
    function
        ``f(theta)``, level strong, or ``f(theta, y)``, level exact: such a function can never show that a
        procedure is not calibrated, only that its output is not the exact posterior.
    name
        What the result calls it.

    Examples
    --------
    >>> Function(lambda theta: theta[0] ** 2, "square").evaluate(np.array([[3.0], [4.0]]), 1)
    array([ 9., 16.])
    """

    function: Callable[..., Any]
    name: str

    @cached_property
    def _call(self) -> tuple[Callable[..., Any], bool]:
        return with_optional(self.function, 1, "y", what=f"test function {self.name!r}", variadic="without")

    @property
    def sees_data(self) -> bool:
        """Whether the function takes the data as its second argument."""
        return self._call[1]

    @property
    def level(self) -> Level:
        """Exact if the function sees the data, strong otherwise."""
        return "exact" if self.sees_data else "strong"

    def evaluate(self, theta: Any, lead: int, *, y: Any = None, output: Any = None) -> Floats:
        """Call the function on every parameter, with the data of its replicate (the last leading axis)."""
        call, sees_data = self._call
        shape = leading_shape(theta, lead)
        values = np.empty(shape)
        for index in np.ndindex(*shape):
            one = take(theta, index) if index else theta
            data = take(y, index[-1]) if sees_data and index else y
            values[index] = self._number(call(one, data))
        return values

    def _number(self, value: Any) -> float:
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "biuf":
            raise InvalidStudy(
                f"test function {self.name!r} must return one real number, but returned "
                f"{type(value).__name__} of shape {array.shape}."
            )
        return float(array.reshape(()))


@dataclass(frozen=True)
class Vectorized:
    """A function written for arrays: it gets the parameter's axes first, then any number of further axes.

    ``Vectorized(lambda t: t[0] / t[1], "ratio")`` is called once for all draws where :class:`Function` is called
    once per draw.

    Examples
    --------
    >>> Vectorized(lambda t: t[0] - t[1], "difference").evaluate(np.array([[3.0, 1.0], [4.0, 0.0]]), 1)
    array([2., 4.])
    """

    function: Callable[[Any], Any]
    name: str
    level: Level = field(default="strong", init=False)

    def evaluate(self, theta: Any, lead: int, *, y: Any = None, output: Any = None) -> Floats:
        """Call the function once and check the shape of what it returns."""
        shape = leading_shape(theta, lead)
        if isinstance(theta, Mapping):
            first: Any = {key: _parameter_first(part, lead) for key, part in theta.items()}
        else:
            first = _parameter_first(theta, lead)
        values = np.asarray(self.function(first), float)
        if values.shape != shape:
            raise InvalidStudy(
                f"test function {self.name!r} is declared vectorized and must map the trailing axes {shape} to an "
                f"array of that shape, but returned shape {values.shape}; use Function for one parameter at a time."
            )
        return values


def _parameter_first(values: ArrayLike, lead: int) -> NDArray[Any]:
    """Move the leading axes behind the parameter's own."""
    array = np.asarray(values)
    return np.moveaxis(array, tuple(range(lead)), tuple(range(array.ndim - lead, array.ndim)))


@dataclass(frozen=True)
class LogDensity:
    """The output's own log density: small where the output thinks the parameter unlikely.

    Uniform u means that highest-density regions have the coverage they claim. It sees the output but not the data,
    so it tests auto-calibration. Blind to errors along a density contour.

    Examples
    --------
    >>> LogDensity().level
    'auto'
    """

    name: str = "log density"
    level: Level = field(default="auto", init=False)

    def evaluate(self, theta: Any, lead: int, *, y: Any = None, output: Any = None) -> Floats:
        """Return the log density of every parameter under the output of its replicate."""
        if getattr(output, "log_density", None) is None:
            raise InvalidStudy(
                f"test function {self.name!r} needs an output with a log_density, but {type(output).__name__} "
                f"has none; use another test function."
            )
        log_density = np.asarray(output.log_density(theta), float)
        # Elementwise laws return one value per entry of the parameter.
        return np.asarray(log_density.sum(axis=tuple(range(lead, log_density.ndim))))


@dataclass(frozen=True)
class Mahalanobis:
    """The squared distance of the parameter from the output's mean, in the metric of the output's covariance.

    Chi-squared with d degrees of freedom if a Gaussian output is right. It sees the output but not the data, so it
    tests auto-calibration; blind to the direction of an error. :func:`ringtrue.measure` finds it by its name
    and reports ANEES/d, and NCI where every coordinate was asked about too.

    Examples
    --------
    >>> Mahalanobis().level
    'auto'
    """

    name: str = field(default="Mahalanobis", init=False)
    level: Level = field(default="auto", init=False)

    def evaluate(self, theta: Any, lead: int, *, y: Any = None, output: Any = None) -> Floats:
        """Return the squared distance of every parameter from the output of its replicate."""
        if getattr(output, "mahalanobis", None) is None:
            raise InvalidStudy(
                f"test function {self.name!r} needs a Gaussian output, ringtrue.Normal or ringtrue.Gaussian, but "
                f"{type(output).__name__} arrived; use LogDensity, or another test function."
            )
        squares = np.asarray(output.mahalanobis(theta), float)
        # Independent entries return one square each.
        return np.asarray(squares.sum(axis=tuple(range(lead, squares.ndim))))


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
    >>> len(BestOf([Evaluate(x) for x in (0.0, 0.5, 1.0)]).family)
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


def as_testfunctions(f: Any) -> tuple[TestFunction, ...]:
    """Turn a function, a {name: function} mapping or a sequence of either into test functions with unique names."""
    if isinstance(f, BestOf):
        f = f.family
    if isinstance(f, Mapping):
        functions = tuple(_as_one(function, str(name)) for name, function in f.items())
    elif isinstance(f, Iterable) and not isinstance(f, TestFunction):
        functions = tuple(_as_one(function, None) for function in f)
    else:
        functions = (_as_one(f, None),)
    _refuse_duplicates([function.name for function in functions])
    return functions


def _as_one(f: Any, name: str | None) -> TestFunction:
    if isinstance(f, TestFunction) and name is None:
        return f
    if isinstance(f, TestFunction):
        return Renamed(f, str(name))
    if callable(f):
        function = Function(f, name or str(getattr(f, "__name__", type(f).__name__)))
        _ = function.level  # a signature that cannot be called is refused now
        return function
    raise InvalidStudy(
        f"a test function must be callable or one of ringtrue's, but {type(f).__name__} arrived; "
        f"pass f=lambda theta: ..."
    )


@dataclass(frozen=True)
class Renamed:
    """A test function under the name its user gave it."""

    inner: TestFunction
    name: str

    @property
    def level(self) -> Level:
        """The level of the function inside."""
        return self.inner.level

    def evaluate(self, theta: Any, lead: int, *, y: Any = None, output: Any = None) -> Floats:
        """Evaluate the function inside."""
        return self.inner.evaluate(theta, lead, y=y, output=output)


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


def printable(name: str) -> str:
    r"""Return a name that can be shown anywhere: characters that break lines, encodings or directions are spelled out.

    Examples
    --------
    >>> printable("a\nb\u202ec")
    'a\\nb\\u202ec'
    """
    odd = (unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or letter in _TURNS for letter in name)
    pairs = zip(name, odd, strict=True)
    return "".join(letter.encode("unicode_escape").decode() if bad else letter for letter, bad in pairs)


def left_out(entries: int) -> tuple[str, ...]:
    """Return a note if the default family does not ask about all entries of theta."""
    if entries <= MOST_ENTRIES:
        return ()
    return (
        f"{MOST_ENTRIES} of {entries} entries of theta were asked about one by one, those of largest variance; the "
        f"others only through their sum and distance: pass f= to ask about them.",
    )


def default_family(reference: Any, *, most: int = MOST_ENTRIES) -> tuple[TestFunction, ...]:
    """Return the coordinates, their standardised sum, and the distance from the centre of a reference sample.

    Parameters
    ----------
    reference
        Parameters with one leading axis, independent of the replicates to be judged; they only set
        the centre and the scale.
    most
        At most this many coordinates, those of largest variance.

    Examples
    --------
    >>> [f.name for f in default_family(np.random.default_rng(1).normal(size=(50, 2)))]
    ['theta[0]', 'theta[1]', 'sum', 'distance']
    """
    parts = _named_parts(reference)
    center = {key: _centre(part) for key, part in parts.items()}
    scale = {key: _scale(part) for key, part in parts.items()}
    entries = [(float(scale[k][i]), Coordinate(k, i)) for k in parts for i in np.ndindex(*np.shape(center[k]))]
    if len(entries) > most:
        keep = sorted(range(len(entries)), key=lambda j: -entries[j][0])[:most]
        entries = [entries[j] for j in sorted(keep)]
    coordinates: tuple[TestFunction, ...] = tuple(entry for _, entry in entries)
    whole = _unnamed if list(parts) == [None] else _named
    distance = Distance(whole(center), whole(scale), "distance")
    if len(coordinates) == 1:
        return (*coordinates, distance)
    return (*coordinates, Linear(whole({k: 1 / s for k, s in scale.items()}), "sum"), distance)


def _named_parts(reference: Any) -> dict[Any, Floats]:
    """View a reference sample as named arrays; refuse what has no coordinates."""
    parts = dict(reference) if isinstance(reference, Mapping) else {None: reference}
    if not all(isinstance(part, np.ndarray) and part.dtype.kind in "biuf" for part in parts.values()):
        raise InvalidStudy(
            "the default test functions need a parameter made of numbers, but the belief draws "
            f"{type(reference).__name__}; pass f=..."
        )
    return {key: np.asarray(part, float) for key, part in parts.items()}


def _centre(part: Floats) -> Floats:
    return np.asarray(np.median(part, axis=0))


def _scale(part: Floats) -> Floats:
    """Return the interquartile range on the sd scale; it exists for beliefs without moments."""
    low, high = np.quantile(part, [0.25, 0.75], axis=0)
    spread = np.asarray((high - low) / 1.349)
    return np.where(spread > 0, spread, 1.0)


def _unnamed(parts: Mapping[Any, Floats]) -> Any:
    return parts[None]


def _named(parts: Mapping[Any, Floats]) -> Any:
    return dict(parts)
