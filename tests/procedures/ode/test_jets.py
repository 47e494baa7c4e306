"""Derivatives at the start: exact by power series, fitted where a vector field does not take them."""

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ringtrue.procedures import ode
from ringtrue.procedures.ode.jets import _SLOPES, Jet, derivatives
from ringtrue.procedures.ode.problem import Flow

Floats = NDArray[np.float64]

POINTS = {"arccosh": 1.7}
NODES = 64


def problem(field: Callable[..., Any], initial: Any, **options: Any) -> ode.InitialValueProblem:
    """Return a problem over [0, 4]."""
    return ode.InitialValueProblem(field, initial, (0.0, 4.0), **options)


def found(field: Callable[..., Any], initial: Any, order: int = 4, **options: Any) -> tuple[Floats, bool]:
    """Return a single problem's derivatives, and whether they are exact."""
    values, exact = derivatives(Flow(problem(field, initial, **options)), order)
    return values[..., 0], bool(exact.all())


def contour(function: Callable[..., Any], at: float, orders: int) -> Floats:
    """Return Taylor coefficients by Cauchy's integral over a small circle."""
    circle = np.exp(2j * np.pi * np.arange(NODES) / NODES)
    values = np.fft.fft(function(at + 0.2 * circle)) / NODES
    return np.asarray(values[:orders].real / 0.2 ** np.arange(orders))


def variable(at: Any, orders: int = 6) -> Jet:
    """Return the series of time itself around a point, or around one per problem."""
    coefficients = np.zeros((orders, np.size(at)))
    coefficients[0], coefficients[1] = at, 1.0
    return Jet(coefficients)


@pytest.mark.parametrize("name", [name for name in _SLOPES if name != "cbrt"])
def test_elementary_functions_have_their_taylor_series(name: str) -> None:
    """Coefficients are those of Cauchy's integral formula."""
    # NumPy has no exp2 of complex numbers.
    function = {"exp2": lambda z: 2**z}.get(name, getattr(np, name))
    at = POINTS.get(name, 0.6)
    assert getattr(np, name)(variable(at)).coefficients[:, 0] == pytest.approx(contour(function, at, 6), rel=1e-9)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a**3,
        lambda a: a**-2,
        lambda a: a**0.3,
        lambda a: 2.0**a,
        lambda a: a**a,
        lambda a: 1 / (2 + a) - a / (1 + a * a),
        lambda a: +(3 - a) * (a - 1) / 2,
        lambda a: np.exp(-a * a) * np.sin(3 * a),
    ],
)
def test_arithmetic_has_its_taylor_series(function: Callable[[Any], Any]) -> None:
    """Sums, products, quotients and powers do too."""
    assert function(variable(0.6)).coefficients[:, 0] == pytest.approx(contour(function, 0.6, 6), rel=1e-9)


def test_cube_roots_are_powers() -> None:
    """The cube root, which NumPy does not take of complex numbers, is the power 1/3."""
    root = variable(0.6).cbrt().coefficients
    assert root == pytest.approx((variable(0.6) ** (1 / 3)).coefficients)


def test_powers_are_exact_at_zero() -> None:
    """Whole powers of a series that starts at 0 have no divisions, also if each problem has an exponent of its own."""
    t, exponents = variable([0.0, 0.0], 5), np.zeros((5, 2))
    exponents[0] = 2.0, 3.0
    with np.errstate(all="ignore"):
        assert (t**3).coefficients[:, 0].tolist() == [0, 0, 0, 1, 0]
        assert (t ** Jet(exponents)).coefficients.T.tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]


@pytest.mark.parametrize(
    "act",
    [lambda a: a > 0, lambda a: a == 1, bool, float, int, abs, hash, lambda a: a // 2, lambda a: a + "x", np.floor],
)
def test_what_series_cannot_do_raises(act: Callable[[Any], Any]) -> None:
    """No branch is taken, and nothing is rounded, without an error."""
    with pytest.raises(TypeError):
        act(variable(0.5))
    with pytest.raises(AttributeError):
        variable(0.5).argmax()


def into(t: Any, x: Any) -> Any:
    """Return the derivatives of a rotation, assembled in an array like x."""
    out = np.zeros_like(x)
    out[0], out[1] = x[1], -x[0]
    return out


@pytest.mark.parametrize(
    "field",
    [
        lambda t, x: [x[1], -x[0]],
        lambda t, x: np.array([x[1], -x[0]]),
        lambda t, x: np.stack([x[1], -x[0]]),
        lambda t, x: np.array([[0.0, 1.0], [-1.0, 0.0]]) @ x,
        lambda t, x: x[::-1] * np.array([[1.0], [-1.0]]),
        into,
    ],
)
def test_fields_may_be_written_in_many_ways(field: Callable[..., Any]) -> None:
    """A rotation has its derivatives however it is written."""
    values, exact = found(field, [1.0, 2.0])
    assert exact
    assert values.tolist() == [[1, 2], [2, -1], [-1, -2], [-2, 1], [1, 2]]


def test_time_and_parameters_are_series_too() -> None:
    """x' = a cos(b t) x has the derivatives of exp(a sin(b t) / b), for every problem of a batch."""
    rates = np.array([[0.5, 2.0], [1.5, 3.0], [-1.0, 0.1]])
    batch = problem(lambda t, x, a, b: a * np.cos(b * t) * x, [1.0], parameters=rates)
    values, exact = derivatives(Flow(batch), 5)
    assert exact.all()
    for i, (a, b) in enumerate(rates):
        series = contour(lambda z, a=a, b=b: np.exp(a * np.sin(b * z) / b), 0.0, 6)
        expected = series * [factorial(k) for k in range(6)]
        assert values[:, 0, i] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_constants_and_equilibria() -> None:
    """A field that does not depend on the state gives zeros, as does one that vanishes."""
    assert found(lambda t, x: [2.0], [0.0])[0].ravel().tolist() == [0, 2, 0, 0, 0]
    assert found(lambda t, x: [t * t], [0.0])[0].ravel().tolist() == [0, 0, 0, 2, 0]
    assert found(lambda t, x: -x, [0.0])[0].ravel().tolist() == [0, 0, 0, 0, 0]


def branching(inner: ode.InitialValueProblem) -> ode.InitialValueProblem:
    """Return the same problem with a field that compares, and therefore takes no series."""

    def field(t: Any, x: Any, *parameters: Any) -> Any:
        return np.where(x[0] > -1e9, np.asarray(inner.field(t, x, *parameters)), 0.0)

    return ode.InitialValueProblem(field, inner.initial, inner.span, inner.parameters)


@pytest.mark.parametrize("belief", [ode.lotka_volterra(), ode.fitzhugh_nagumo(), ode.lorenz(), ode.logistic_growth()])
def test_fitted_derivatives_are_close_to_exact_ones(belief: ode.SolutionBelief) -> None:
    """Where series are not taken, errors are as documented: near 1e-12 and two digits more for each derivative."""
    batch = belief.sample(40, np.random.default_rng(0)).problem
    exact, taken = derivatives(Flow(batch), 5)
    fitted, not_taken = derivatives(Flow(branching(batch)), 5)
    assert taken.all()
    assert not not_taken.any()
    # A single component's derivative may be nearly 0; the time scale is near 1, so the first measures it then.
    size = np.maximum(np.abs(exact), np.abs(exact[1])).max(1)
    error = np.abs(fitted - exact).max(1) / size
    assert (error.max(1) < [1e-15, 1e-15, 1e-11, 1e-9, 1e-7, 1e-5]).all()


def test_fits_find_fast_time_scales() -> None:
    """A field that changes fast in time, which its Jacobian does not show, is fitted over a shorter interval."""
    values, exact = found(lambda t, x: [np.where(x[0] > -9, np.cos(50 * t) * x[0], 0.0)], [1.0])
    assert not exact
    assert values.ravel() == pytest.approx([1, 1, 1, -2499, -9999], rel=1e-6)


def test_a_field_that_misuses_series_is_found_out() -> None:
    """If series give another first derivative than numbers do, they are not used."""

    def field(t: Any, x: Any) -> Any:
        return -x if x.dtype == float else -2 * x

    values, exact = found(field, [1.0], order=2)
    assert not exact
    assert values.ravel() == pytest.approx([1, -1, 1])


def test_problems_without_derivatives_are_lost() -> None:
    """A field of steps has no derivatives to be found, one that raises has none; both are said."""
    flow = Flow(problem(lambda t, x: np.round(x * 1e3) / 1e3, [1.2345]))
    derivatives(flow, 3)
    assert "try a lower order" in flow.lost[0]

    def failing(t: Any, x: Any) -> Any:
        raise ArithmeticError("no such state")

    flow = Flow(problem(failing, [1.0]))
    derivatives(flow, 3)
    assert "no such state" in flow.lost[0]


def test_what_a_field_refuses_while_intervals_are_sought_is_no_loss() -> None:
    """A field defined below 1.5 only is fitted over an interval that stays there."""

    def field(t: Any, x: Any) -> Any:
        if (x >= 1.5).any():
            raise ArithmeticError
        return x

    flow = Flow(problem(field, [1.0]))
    values, _ = derivatives(flow, 3)
    assert not flow.lost
    assert values.ravel() == pytest.approx([1, 1, 1, 1], rel=1e-7)
