"""Derivatives of a solution at the start of its span, by pushing truncated power series through a vector field.

A field written with arithmetic and NumPy's smooth functions takes a :class:`Jet` where it takes a number, and the
derivatives are exact. One that cannot (it branches, looks numbers up, or calls compiled code) has its solution fitted
near the start instead. Nothing here knows filters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from math import factorial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...values import Floats
from .problem import Flow, Rows

_EPS = float(np.finfo(float).eps)


def _lifted(operation: Callable[[Floats, Floats], Floats]) -> Any:
    """Return a method of jets from an operation on coefficients; it refuses what is neither a jet nor a number."""

    def method(self: Jet, other: Any) -> Any:
        b = self._like(other)
        return NotImplemented if b is None else Jet(operation(self.coefficients, b))

    return method


def _product(a: Floats, b: Floats) -> Floats:
    return np.stack([sum(a[j] * b[k - j] for j in range(k + 1)) for k in range(len(a))])


def _quotient(a: Floats, b: Floats) -> Floats:
    found: list[Floats] = []
    for k in range(len(a)):
        # From found * b = a, order by order.
        found.append((a[k] - sum(found[j] * b[k - j] for j in range(k))) / b[0])
    return np.stack(found)


def _raised(a: Floats, b: Floats) -> Floats:
    return (Jet(b) * Jet(a).log()).exp().coefficients if b[1:].any() else _power(a, b[0])


class Jet:
    """A truncated power series in time, of one number per problem.

    NumPy treats arrays of jets elementwise, so that ``np.exp(x)`` and ``A @ x`` work. What a power series has no answer
    for (comparison, rounding, conversion to a number) raises TypeError, so that a branch cannot be taken unnoticed.

    Parameters
    ----------
    coefficients
        (K, n): of the powers 0 to K - 1 of the time since the start.

    Examples
    --------
    >>> t = Jet(np.array([[0.0], [1.0], [0.0], [0.0]]))
    >>> np.exp(2 * t).coefficients[:, 0].round(4).tolist()
    [1.0, 2.0, 2.0, 1.3333]
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, coefficients: Floats) -> None:
        self.coefficients = coefficients

    def _like(self, other: Any) -> Floats | None:
        """Return another's coefficients, those of a number being itself and zeros; None if it is neither."""
        if isinstance(other, Jet):
            return other.coefficients
        if not isinstance(other, Real):
            return None
        constant = np.zeros_like(self.coefficients)
        constant[0] = float(other)
        return constant

    __add__ = __radd__ = _lifted(np.add)
    __sub__, __rsub__ = _lifted(np.subtract), _lifted(lambda a, b: b - a)
    __mul__ = __rmul__ = _lifted(_product)
    __truediv__, __rtruediv__ = _lifted(_quotient), _lifted(lambda a, b: _quotient(b, a))
    __pow__, __rpow__ = _lifted(_raised), _lifted(lambda a, b: _raised(b, a))

    def __neg__(self) -> Jet:
        return Jet(-self.coefficients)

    def __pos__(self) -> Jet:
        return self

    def __eq__(self, other: object) -> bool:
        raise TypeError("a power series cannot be compared.")

    __ne__ = __eq__

    def __bool__(self) -> bool:
        raise TypeError("a power series is neither true nor false.")

    def __getattr__(self, name: str) -> Callable[[], Jet]:
        """Return an elementary function, under the name by which NumPy asks for it."""
        if name not in _SLOPES:
            raise AttributeError(name)
        return partial(self._composed, name)

    def _composed(self, name: str) -> Jet:
        """Return g(a) as g of the start plus the integral of g'(a) a'."""
        a = self.coefficients
        first = getattr(np, name)(a[:1])
        if len(a) == 1:
            return Jet(first)
        slope = _SLOPES[name](Jet(a[:-1])).coefficients
        return Jet(np.concatenate([first, _integral(_product(slope, _derivative(a)))]))


def _power(a: Floats, r: Floats) -> Floats:
    """Return a^r for one r per problem; where r has come down to 0, what is left is constant even at a = 0."""
    first = a[:1] ** r
    if len(a) == 1:
        return first
    rest = _integral(_product(r * _power(a[:-1], r - 1), _derivative(a)))
    return np.concatenate([first, np.where(r == 0, 0.0, rest)])


def _derivative(a: Floats) -> Floats:
    return a[1:] * np.arange(1, len(a))[:, None]


def _integral(a: Floats) -> Floats:
    return a / np.arange(1, len(a) + 1)[:, None]


#: Derivatives of the elementary functions; a jet is handed over with one order less, so that they may call themselves.
_SLOPES: dict[str, Callable[[Any], Any]] = {
    "exp": lambda a: a.exp(),
    "exp2": lambda a: np.log(2) * a.exp2(),
    "expm1": lambda a: a.exp(),
    "log": lambda a: 1 / a,
    "log2": lambda a: 1 / (np.log(2) * a),
    "log10": lambda a: 1 / (np.log(10) * a),
    "log1p": lambda a: 1 / (1 + a),
    "sqrt": lambda a: 0.5 / a.sqrt(),
    "cbrt": lambda a: a.cbrt() / (3 * a),
    "sin": lambda a: a.cos(),
    "cos": lambda a: -a.sin(),
    "tan": lambda a: 1 + a.tan() ** 2,
    "sinh": lambda a: a.cosh(),
    "cosh": lambda a: a.sinh(),
    "tanh": lambda a: 1 - a.tanh() ** 2,
    "arcsin": lambda a: (1 - a * a) ** -0.5,
    "arccos": lambda a: -((1 - a * a) ** -0.5),
    "arctan": lambda a: 1 / (1 + a * a),
    "arcsinh": lambda a: (1 + a * a) ** -0.5,
    "arccosh": lambda a: (a * a - 1) ** -0.5,
    "arctanh": lambda a: 1 / (1 - a * a),
}


def derivatives(flow: Flow, order: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the derivatives 0 to ``order`` of every solution at its start, (order + 1, d, n), and which are exact.

    They are exact where the field takes power series. Elsewhere they are those of a polynomial fitted to the solution
    over an interval after the start, of the length at which two fits agree best: relative errors are near 1e-12 for
    the second derivative, and two digits worse for each further one. A problem whose fits leave more than 1e-3 open is
    lost.

    Examples
    --------
    >>> from ringtrue.procedures.ode import InitialValueProblem
    >>> decay = Flow(InitialValueProblem(lambda t, x: -2 * x, [1.0], (0.0, 1.0)))
    >>> derivatives(decay, 3)[0][:, 0, 0].tolist()
    [1.0, -2.0, 4.0, -8.0]
    """
    d, n = flow.shape
    found = np.full((order + 1, d, n), np.nan)
    found[0] = flow.initial
    if not n:
        return found, np.ones(0, bool)
    with np.errstate(all="ignore"):
        found[1] = flow(flow.problem.span[0], flow.initial)
        exact = _pushed(flow, order)
        # A field that treats series as something else than numbers is found out by its first derivative.
        close = np.abs(exact[1] - found[1]) <= 1e-9 * np.abs(found[1]) + 1e-300
        taken = np.isfinite(exact).all((0, 1)) & close.all(0)
        found[:, :, taken] = exact[:, :, taken]
        if len(rows := np.flatnonzero(~taken & np.isfinite(found[1]).all(0))):
            # A flow of its own: what the field refuses on the way to a good interval is no loss.
            found[:, :, rows] = _fitted(Flow(flow.problem), rows, order)
    for row in np.flatnonzero(~np.isfinite(found).all((0, 1))):
        flow.lose(row, f"the vector field has no {order} derivatives to be found at the start; try a lower order")
    return found, taken


def _pushed(flow: Flow, order: int) -> Floats:
    """Return the derivatives by power series; nan if the field does not take them."""
    d, n = flow.shape
    series = flow.initial[None]
    try:
        for k in range(order):
            # Of x' = f, the coefficients of order k give x that of order k + 1: every call of the field adds one.
            series = np.concatenate([series, _slopes(flow, series)[-1:] / (k + 1)])
    # Whatever a field does with what it was not written for, the derivatives are then to be had otherwise.
    except Exception:
        return np.full((order + 1, d, n), np.nan)
    return np.asarray(series * np.array([factorial(k) for k in range(order + 1)])[:, None, None])


def _slopes(flow: Flow, series: Floats) -> Floats:
    """Return the field's series (K, d, n) along the solution's, called as for a batch of one problem."""
    orders, d, n = series.shape
    time = np.zeros((orders, n))
    time[:2] = np.array([flow.problem.span[0], 1.0])[:orders, None]
    state = _cells([series[:, i] for i in range(d)])
    given = flow.problem.parameters
    parameters = np.empty((0, 1)) if given is None else np.atleast_2d(given).T
    constants = np.zeros((len(parameters), orders, n))
    constants[:, 0] = parameters
    found = flow.problem.field(_cells([time])[0], state, *_cells(constants))
    if len(found) != d:
        raise TypeError
    zero = Jet(np.zeros((orders, n)))
    return np.stack([(zero + np.asarray(part, object).item()).coefficients for part in found], axis=1)


def _cells(series: Any) -> NDArray[np.object_]:
    """Return jets as an array (len, 1): components ahead, one problem behind."""
    cells = np.empty((len(series), 1), object)
    cells[:, 0] = [Jet(one) for one in series]
    return cells


#: Degree of the fitted polynomials, over intervals of at most two time scales.
_DEGREE = 14
#: Sweeps of Picard's iteration: over two time scales the k-th leaves an error of 2^k / k!.
_SWEEPS = 26
#: Lengths tried, and the ratio of one to the one before.
_LENGTHS, _SHORTER = 24, 0.7
#: Largest error of a derivative, relative to its size, with which a problem is solved.
_TOO_ROUGH = 1e-3


@cache
def _chebyshev(order: int) -> tuple[Floats, Floats, Floats]:
    """Return nodes on [0, 1], values to integrals up to the nodes, and values to derivatives 0 to order - 1 at 0."""
    from numpy.polynomial import chebyshev

    # Both ends are nodes: the start is where derivatives are asked for.
    nodes = -np.cos(np.pi * np.arange(_DEGREE + 1) / _DEGREE)
    to_series = np.linalg.inv(chebyshev.chebvander(nodes, _DEGREE))
    unit = np.eye(_DEGREE + 1)
    # Halved here and doubled below: Chebyshev polynomials live on [-1, 1], twice as long as [0, 1].
    integrals = chebyshev.chebval(nodes, chebyshev.chebint(unit, lbnd=-1)).T @ to_series / 2
    rows = [chebyshev.chebval(-1.0, chebyshev.chebder(unit, k)) * 2.0**k for k in range(order)]
    return (nodes + 1) / 2, integrals, np.stack(rows) @ to_series


def _fitted(flow: Flow, rows: Rows, order: int) -> Floats:
    """Return derivatives of polynomials fitted to the solutions, over the lengths that serve them best."""
    start, end = flow.problem.span
    # The rate at which each problem changes at its start: the size of its Jacobian.
    slopes = np.sqrt(np.square(flow.jacobian(start, flow.initial[:, rows], rows)).sum((0, 1)))
    rate = np.fmax(slopes, 1 / (end - start))
    # Two time scales, where 26 sweeps of Picard's iteration suffice.
    length = np.minimum(2 / rate, end - start)
    shape = (order, flow.shape[0], len(rows))
    best, error, last = np.full(shape, np.nan), np.full((order, len(rows)), np.inf), np.full(shape, np.nan)
    for _ in range(_LENGTHS):
        new, noise = _fit(flow, rows, length, order)
        # Noise grows as lengths shrink, and swamps the highest derivative first.
        if (noise[-1] > error[-1]).all():
            break
        # Two lengths agree by accident where rounding hides the derivative: its size is part of the error.
        apart = np.abs(new - last).max(1) + noise
        best = np.where((apart < error)[:, None], last, best)
        error, last, length = np.fmin(apart, error), new, _SHORTER * length
    size = np.maximum(np.abs(best).max(1), np.abs(best[0]).max(0) * rate ** np.arange(order)[:, None])
    best[:, :, ~(error <= _TOO_ROUGH * size).all(0)] = np.nan
    return np.concatenate([flow.initial[None, :, rows], best])


def _fit(flow: Flow, rows: Rows, length: Floats, order: int) -> tuple[Floats, Floats]:
    """Return the derivatives 1 to order by collocation over intervals, and what rounding does to them."""
    nodes, integrals, to_derivatives = _chebyshev(order)
    x0, start = flow.initial[:, rows], flow.problem.span[0]
    times = start + nodes[:, None] * length
    slopes = np.stack([flow(start, x0, rows)] * len(nodes))
    for _ in range(_SWEEPS):
        x = x0 + length * np.einsum("ij,jdn->idn", integrals, slopes)
        slopes = np.stack([flow(times[i], x[i], rows) for i in range(len(nodes))])
    powers = length ** np.arange(order)[:, None]
    # The k-th derivative divides rounding by the k-th power of the length.
    noise = _EPS * np.abs(to_derivatives).max(1)[:, None] * np.abs(slopes).max((0, 1)) / powers
    return np.einsum("ij,jdn->idn", to_derivatives, slopes) / powers[:, None], noise
