"""The root finder: every rule finds known roots, to the accuracy asked for."""

import math

import pytest

from ringtrue.statistics.roots import Bracket, adjacent, after, false_position, narrow, secant, whole


def close(at: Bracket) -> bool:
    """Stop at twelve decimals."""
    return at.high - at.low < 1e-12 or abs(at.value) < 1e-12


@pytest.mark.parametrize("rule", [None, false_position, secant])
@pytest.mark.parametrize("root", [1e-3, 0.5, 0.9])
def test_every_rule_finds_the_root(rule: object, root: float) -> None:
    """Of log((1 + x) / (1 + root)), which rises no faster than x, in at most fifty steps."""

    def f(x: float) -> float:
        return math.log((1 + x) / (1 + root))

    found = narrow(f, 0.0, 1.0, done=close, rule=rule, ends=(f(0.0), f(1.0)))  # type: ignore[arg-type]
    assert found.x == pytest.approx(root, abs=1e-11)
    assert found.low <= root + 1e-11
    assert found.high >= root - 1e-11
    assert found.steps <= 50


def test_sixty_halvings_reach_rounding() -> None:
    """The ends of a bracket halved sixty times are neighbours, and the function changes sign between them."""
    found = narrow(lambda x: x**2 - 2, 0.0, 2.0, done=after(60))
    assert found.high == math.nextafter(found.low, 2.0)
    assert found.low**2 < 2 <= found.high**2


@pytest.mark.parametrize("first", range(1, 12))
def test_whole_numbers_are_searched_exactly(first: int) -> None:
    """The upper end is the first number at which the function is not negative, whichever it is."""
    found = narrow(lambda k: -1.0 if k < first else 0.0, 0, 11, done=adjacent, rule=whole)
    assert (found.low, found.high) == (first - 1, first)


def test_false_position_does_not_creep() -> None:
    """Of x^10 - 1e-3 on (0, 10) it finds the root in 30 steps; plain false position, the twin, not in 200."""

    def f(x: float) -> float:
        return x**10 - 1e-3

    def plain(at: Bracket) -> float:
        return at.low + (at.high - at.low) * f(at.low) / (f(at.low) - f(at.high))

    def tired(at: Bracket) -> bool:
        return close(at) or at.steps >= 200

    quick, slow = (
        narrow(f, 0.0, 10.0, done=tired, rule=rule, ends=(f(0.0), f(10.0))) for rule in (false_position, plain)
    )
    assert quick.steps <= 30
    assert quick.x == pytest.approx(1e-3**0.1, abs=1e-9)
    assert slow.steps == 200
