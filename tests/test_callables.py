"""Reading a user's signature: what is called with what."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Literal

import numpy as np
import pytest

from ringtrue.callables import called, with_optional
from ringtrue.errors import InvalidStudy


class Model:
    """A model as an object."""

    def __call__(self, theta: float, rng: str = "none") -> tuple[float, str]:
        """Return what arrived."""
        return theta, rng

    def simulate(self, theta: float) -> float:
        """Return what arrived."""
        return theta


def anything(*args: Any) -> tuple[Any, ...]:
    """Return what arrived."""
    return args


def anything_named(*args: Any, rng: Any = None) -> tuple[Any, ...]:
    """Return what arrived."""
    return (*args, rng)


@pytest.mark.parametrize(
    ("function", "uses", "returned"),
    [
        (lambda theta: theta, False, 3.0),
        (lambda theta, rng: (theta, rng), True, (3.0, "r")),
        (lambda theta, rng=None: (theta, rng), True, (3.0, "r")),
        (lambda theta, *, rng: (theta, rng), True, (3.0, "r")),
        (lambda theta, generator: (theta, generator), True, (3.0, "r")),
        (lambda theta, scale=2.0: (theta, scale), False, (3.0, 2.0)),
        (lambda theta, scale=2.0, rng=None: (theta, scale, rng), True, (3.0, 2.0, "r")),
        (lambda rng, theta: (theta, rng), True, (3.0, "r")),
        (partial(lambda scale, theta: scale * theta, 2.0), False, 6.0),
        (Model(), True, (3.0, "r")),
        (Model().simulate, False, 3.0),
        (anything, True, (3.0, "r")),
        (anything_named, True, (3.0, "r")),
        (abs, False, 3.0),
        (np.negative, False, -3.0),
    ],
)
def test_function_gets_what_it_asks_for(function: Callable[..., Any], uses: bool, returned: Any) -> None:
    """The optional argument is handed over by name or as one more positional, and defaults of others are kept."""
    call, found = with_optional(function, 1, "rng", what="the model")
    assert found == uses
    assert call(3.0, "r") == returned


@pytest.mark.parametrize(("variadic", "returned"), [("with", (3.0, "y")), ("without", (3.0,))])
def test_any_number_of_arguments(variadic: Literal["with", "without"], returned: tuple[Any, ...]) -> None:
    """A function of any number of arguments gets as many as its caller decides."""
    call, uses = with_optional(anything, 1, "y", what="f", variadic=variadic)
    assert uses == (variadic == "with")
    assert call(3.0, "y") == returned


@pytest.mark.parametrize(
    ("function", "taken"),
    [
        (lambda: 0.0, "0"),
        (lambda a, b, c: 0.0, "3"),
        (lambda a, b, rng: 0.0, "2 beside rng"),
        (lambda rng: 0.0, "0 beside rng"),
    ],
)
def test_signatures_that_cannot_be_called_are_refused(function: Callable[..., Any], taken: str) -> None:
    """The message says whose function it is, what it takes, what it should, and what to do."""
    words = rf"the model must take 1 positional argument, or 1 and rng, .* takes {taken}; is it in its place\? .* wrap"
    with pytest.raises(InvalidStudy, match=words):
        with_optional(function, 1, "rng", what="the model")


def test_a_function_says_whether_it_takes_rng() -> None:
    """Who makes random numbers is told whether anybody wants them; the function is called alike in both cases."""
    plain, wants = called(lambda theta: theta + 1, ("theta",), "the model")
    assert (plain(1.0, None), wants) == (2.0, False)
    random, wants = called(lambda belief, y, rng: (belief, y, rng), ("belief", "y"), "the procedure")
    assert (random(1, 2, 3), wants) == ((1, 2, 3), True)


def test_what_cannot_be_called_is_refused_with_its_arguments() -> None:
    """The message says what the function should take, and what arrived instead."""
    with pytest.raises(InvalidStudy, match=r"a function of \(belief, y\) or \(belief, y, rng\), but int arrived"):
        called(3, ("belief", "y"), "the procedure")


def test_a_decorated_function_is_handed_rng_by_name() -> None:
    """Its signature is that of the function inside, and the wrapper may take keywords only."""

    def model(theta: float, rng: Any) -> Any:
        return theta, rng

    @wraps(model)
    def wrapper(theta: float, **named: Any) -> Any:
        return model(theta, **named)

    call, uses = with_optional(wrapper, 1, "rng", what="the model")
    assert (call(1.0, "stream"), uses) == ((1.0, "stream"), True)
    assert with_optional(model, 1, "rng", what="the model")[0] is model
