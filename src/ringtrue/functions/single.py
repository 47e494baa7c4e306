"""Test functions of the parameter alone, and users' own.

This module knows nothing of distributions or statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..callables import with_optional
from ..errors import InvalidStudy
from ..values import Floats, leading_shape, take
from .contract import Context, Sees

#: Terms of weighted sums that are held at once: more do not stay in the cache, and draws of many entries have many.
_TERMS = 1 << 17


@dataclass(frozen=True)
class Coordinate:
    """One entry of the parameter: ``theta[key][index]``, the identity for a scalar parameter.

    Examples
    --------
    >>> Coordinate(index=(1,)).evaluate(np.array([3.0, 4.0]), Context())
    array(4.)
    """

    key: str | None = None
    index: tuple[int, ...] = ()
    name: str = field(default="", compare=False)
    kind: str = field(default="coordinate", init=False)
    sees: Sees = field(default="theta", init=False)

    def __post_init__(self) -> None:
        written = (self.key or "theta") + (f"[{', '.join(map(str, self.index))}]" if self.index else "")
        object.__setattr__(self, "name", self.name or written)

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Return the entry of every parameter."""
        if self.key is not None and isinstance(theta, np.ndarray) and theta.dtype.names is None:
            raise InvalidStudy(
                f"test function {self.name!r} asks about the part {self.key!r} of theta, but theta is an array, whose "
                f"parts have no names; ask about Coordinate(index=(0,)), or make theta a dict."
            )
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
    >>> float(Linear([1.0, -1.0]).evaluate(np.array([3.0, 4.0]), Context()))
    -1.0
    """

    weights: ArrayLike | Mapping[str, ArrayLike]
    name: str = "linear"
    kind: str = "linear"
    sees: Sees = field(default="theta", init=False)

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Return the weighted sum for every parameter."""
        if isinstance(self.weights, Mapping):
            with np.errstate(over="ignore", invalid="ignore"):  # as within a part
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
    lead = array.shape[: array.ndim - w.ndim]
    if not lead or array.size <= _TERMS:
        return _weighted(array, w)
    found = np.empty(lead)
    step = max(1, _TERMS * len(array) // array.size)
    for start in range(0, len(array), step):
        found[start : start + step] = _weighted(array[start : start + step], w)
    return found


def _weighted(array: Floats, w: Floats) -> Floats:
    # In C order a row is summed pairwise in the same way whether it stands alone or among others.
    with np.errstate(over="ignore", invalid="ignore"):  # a sum beyond all numbers is infinite, of both signs none
        terms = np.multiply(array, w, order="C")
        return np.asarray(terms.reshape(*array.shape[: array.ndim - w.ndim], w.size).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class Distance:
    """The distance of the parameter from a fixed point, each coordinate divided by its scale.

    The non-linear member of the default family: a procedure can be right for every linear function
    and wrong here.

    Examples
    --------
    >>> float(Distance(0.0, 2.0).evaluate(np.array(-3.0), Context()))
    1.5
    """

    center: Any
    scale: Any
    name: str = "distance"
    kind: str = "distance"
    sees: Sees = field(default="theta", init=False)

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Return the distance for every parameter."""
        if not isinstance(self.center, Mapping):
            return np.sqrt(_squares(theta, self.center, self.scale))
        with np.errstate(over="ignore"):  # as within a part
            return np.sqrt(sum((_squares(theta[k], c, self.scale[k]) for k, c in self.center.items()), np.zeros(())))


def _squares(values: ArrayLike, center: Any, scale: Any) -> Floats:
    """Sum the squared standardised entries over the parameter's axes."""
    axes = np.ndim(center)
    with np.errstate(over="ignore"):  # what is further than numbers reach is infinitely far
        scaled = (np.asarray(values, float) - center) / scale
        squares: Floats = np.square(scaled)
        return squares.sum(axis=tuple(range(-axes, 0))) if axes else squares


@dataclass(frozen=True)
class Evaluate:
    """The value at ``x`` of a function-valued parameter (any callable; ``component`` picks from a vector value).

    Examples
    --------
    >>> float(Evaluate(0.25).evaluate(np.sqrt, Context()))
    0.5
    """

    x: Any
    component: int | None = None
    name: str = field(default="", compare=False)
    kind: str = field(default="value", init=False)
    sees: Sees = field(default="theta", init=False)

    def __post_init__(self) -> None:
        written = f"theta({self.x})" + ("" if self.component is None else f"[{self.component}]")
        object.__setattr__(self, "name", self.name or written)

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Return the value at x of every function (draws and replicates are the function's own business)."""
        if not callable(theta):
            return np.array([self.evaluate(function, context) for function in theta])
        # A batch of functions answers with its own leading axes, so one call serves all draws and replicates.
        values = np.asarray(theta(self.x), float)
        return values if self.component is None else values[..., self.component]


@dataclass(frozen=True)
class Function:
    """A user's function of one parameter, or of one parameter and its data; called once per draw.

    Parameters
    ----------
    function
        ``f(theta)``, or ``f(theta, y)``: a function that sees the data can never show that a procedure is not
        calibrated, only that its output is not the exact posterior.
    name
        What the result calls it.

    Examples
    --------
    >>> Function(lambda theta: theta[0] ** 2, "square").evaluate(np.array([[3.0], [4.0]]), Context(1))
    array([ 9., 16.])
    """

    function: Callable[..., Any]
    name: str
    kind: str = field(default="function", init=False)

    @cached_property
    def _call(self) -> tuple[Callable[..., Any], bool]:
        return with_optional(self.function, 1, "y", what=f"test function {self.name!r}", variadic="without")

    @property
    def sees(self) -> Sees:
        """The data, if the function takes them as its second argument."""
        return "data" if self._call[1] else "theta"

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Call the function on every parameter, with the data of its replicate (the last leading axis)."""
        call, sees_data = self._call
        shape = leading_shape(theta, context.lead)
        values = np.empty(shape)
        for index in np.ndindex(*shape):
            one = take(theta, index) if index else theta
            # The last leading axis is the replicate; all draws of a replicate see the same data.
            data = take(context.y, index[-1]) if sees_data and index else context.y
            values[index] = self._number(call(one, data))
        return values

    def _number(self, value: Any) -> float:
        array = np.asarray(value)
        # Complex numbers and text would pass float() or fail far from here; an array of several has no rank.
        if array.size != 1 or array.dtype.kind not in "biuf":
            raise InvalidStudy(
                f"test function {self.name!r} must return one real number, but returned "
                f"{type(value).__name__} of shape {array.shape}."
            )
        return float(array.reshape(()))


@dataclass(frozen=True)
class Indicator:
    """Whether something is true of the parameter: a function whose values are true and false, or 1 and 0.

    What outputs say of it is a probability, and it is judged by how often what they call likely is true.

    Parameters
    ----------
    function
        ``f(theta)``; called once per draw.
    name
        What the result calls it; the name of the function if it is left out.

    Examples
    --------
    >>> Indicator(lambda theta: theta[0] > 3, "large").evaluate(np.array([[3.0], [4.0]]), Context(1))
    array([0., 1.])
    """

    function: Callable[[Any], Any]
    name: str = ""
    kind: str = field(default="indicator", init=False)
    sees: Sees = field(default="theta", init=False)

    def __post_init__(self) -> None:
        given = self.name or str(getattr(self.function, "__name__", type(self.function).__name__))
        object.__setattr__(self, "name", given)

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Call the function on every parameter."""
        shape = leading_shape(theta, context.lead)
        values = np.empty(shape)
        for index in np.ndindex(*shape):
            values[index] = self._truth(self.function(take(theta, index) if index else theta))
        return values

    def _truth(self, value: Any) -> float:
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "biuf" or array.reshape(()) not in (0, 1):
            raise InvalidStudy(
                f"the indicator {self.name!r} must return true or false, or 1 or 0, but returned {value!r}; pass "
                f"other functions as they are."
            )
        return float(array.reshape(()))


@dataclass(frozen=True)
class Vectorized:
    """A function written for arrays: it gets the parameter's axes first, then any number of further axes.

    ``Vectorized(lambda t: t[0] / t[1], "ratio")`` is called once for all draws where :class:`Function` is called
    once per draw. With ``sees="data"`` it is called with the parameters and the data of one replicate at a time.

    Examples
    --------
    >>> Vectorized(lambda t: t[0] - t[1], "difference").evaluate(np.array([[3.0, 1.0], [4.0, 0.0]]), Context(1))
    array([2., 4.])
    """

    function: Callable[..., Any]
    name: str
    kind: str = field(default="function", init=False)
    sees: Literal["theta", "data"] = "theta"

    def evaluate(self, theta: Any, context: Context) -> Floats:
        """Call the function once, or once per replicate, and check the shape of what it returns."""
        if self.sees == "theta":
            return self._called(theta, context.lead)
        if context.lead == 0:
            return self._called(theta, 0, context.y)
        before = (slice(None),) * (context.lead - 1)
        each = range(leading_shape(theta, context.lead)[-1])
        rows = [self._called(take(theta, (*before, j)), context.lead - 1, take(context.y, j)) for j in each]
        return np.stack(rows, axis=-1)

    def _called(self, theta: Any, lead: int, *data: Any) -> Floats:
        shape = leading_shape(theta, lead)
        if isinstance(theta, Mapping):
            first: Any = {key: _parameter_first(part, lead) for key, part in theta.items()}
        else:
            first = _parameter_first(theta, lead)
        values = np.asarray(self.function(first, *data), float)
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
