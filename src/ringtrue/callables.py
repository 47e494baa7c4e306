"""How to call a function that a user hands over.

The only place that reads a signature. It knows nothing of what the functions mean.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

from .errors import InvalidStudy


def called(value: Any, arguments: tuple[str, ...], what: str) -> tuple[Callable[..., Any], bool]:
    """Return a user's function as one of these arguments and rng, and whether it uses rng.

    Examples
    --------
    >>> call, random = called(lambda theta: theta + 1, ("theta",), "the model")
    >>> call(1.0, None), random
    (2.0, False)
    """
    if not callable(value):
        raise InvalidStudy(
            f"{what} must be a function of ({', '.join(arguments)}) or ({', '.join(arguments)}, rng), but "
            f"{type(value).__name__} arrived."
        )
    return with_optional(value, len(arguments), "rng", what=what)


def first_name(function: Callable[..., Any]) -> str:
    """Return what a function calls its first argument; nothing if it does not say.

    Examples
    --------
    >>> first_name(lambda step: step), first_name(max)
    ('step', '')
    """
    try:
        first = next(iter(inspect.signature(function).parameters.values()))
    except (TypeError, ValueError, StopIteration):
        return ""
    return "" if first.kind is first.VAR_POSITIONAL else first.name


def with_optional(
    function: Any, required: int, optional: str, *, what: str, variadic: Literal["with", "without"] = "with"
) -> tuple[Callable[..., Any], bool]:
    """Return the function as one of ``required`` arguments and one more, and whether it uses that one.

    It does if it has a parameter of the name ``optional``, or exactly one more positional parameter without a default
    than ``required``. A function that takes any number of arguments does if ``variadic`` says so.

    Examples
    --------
    >>> call, uses = with_optional(lambda theta, scale=2.0: scale * theta, 1, "rng", what="the model")
    >>> call(3.0, None), uses
    (6.0, False)
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    # Builtins are called with what they need and nothing else: a random stream they would not know what to do with.
    except (TypeError, ValueError):  # a builtin without a signature
        return _without(function, required), False
    named = next((p for p in parameters if p.name == optional and p.kind is not p.POSITIONAL_ONLY), None)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p is not named]
    wanted = sum(p.default is p.empty for p in positional)
    # A function of *args would take anything; whether it wants the optional argument is for the caller to say.
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) and wanted <= required:
        return (
            (function, True) if variadic == "with" and named is None else _choose(function, required, optional, named)
        )
    if named is not None and wanted <= required <= len(positional):
        return _choose(function, required, optional, named)
    # Exactly one more argument without a default can only be meant for the optional one, whatever it is called.
    if named is None and wanted == required + 1:
        return function, True
    if named is None and wanted <= required <= len(positional):
        return _without(function, required), False
    taken = wanted if named is None else f"{wanted} beside {optional}"
    raise InvalidStudy(
        f"{what} must take {required} positional argument{'s' * (required != 1)}, or {required} and {optional}, but "
        f"{function!r} takes {taken}; is it in its place? If so, wrap it in a lambda."
    )


def _choose(function: Any, required: int, optional: str, named: Any) -> tuple[Callable[..., Any], bool]:
    if named is None:
        return _without(function, required), False
    place = _place(function, named)
    # A decorated function has the signature of the one inside, and may take the name alone.
    plain = inspect.isfunction(function) and not hasattr(function, "__wrapped__")
    if plain and place == required and named.kind is named.POSITIONAL_OR_KEYWORD:
        return function, True
    if place < required:  # f(rng, theta): handing it over by name would leave theta in its place
        return lambda *arguments: function(*arguments[:place], arguments[required], *arguments[place:required]), True
    return lambda *arguments: function(*arguments[:required], **{optional: arguments[required]}), True


def _place(function: Any, named: Any) -> int:
    names = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    return names.index(named.name) if named.name in names else len(names)


def _without(function: Any, required: int) -> Callable[..., Any]:
    return lambda *arguments: function(*arguments[:required])
