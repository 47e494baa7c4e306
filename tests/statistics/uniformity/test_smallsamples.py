"""Laws at small n: closed forms for one and two values, volumes, and independent simulations."""

from collections.abc import Callable
from math import gamma, pi

import numpy as np
import pytest
from scipy import integrate, stats

from ringtrue.statistics.arguments import Floats
from ringtrue.statistics.uniformity import TESTS, edf, smallsamples

#: Standard errors that chance exceeds once in a million.
FIVE = float(stats.norm.isf(0.5e-6))
#: Null samples behind the table.
BEHIND = 20_000_000


def error(p: float) -> float:
    """Five standard errors of the table, and what is lost by interpolation."""
    return float(FIVE * (p * (1 - p) / BEHIND) ** 0.5 + 1e-4)


@pytest.mark.parametrize("u", [0.0, 1e-9, 0.1, 0.3, 0.5, 0.77, 1.0])
def test_one_value(u: float) -> None:
    """One value is as extreme as it is far from 1/2; on a circle it is never extreme."""
    expected = 1 - 2 * abs(u - 0.5)
    for name in ("ks", "cramer_von_mises", "anderson_darling"):
        assert TESTS[name]([u]).pvalue == pytest.approx(expected, abs=1e-7)
    for name in ("kuiper", "watson"):
        assert TESTS[name]([u]).pvalue == 1.0


@pytest.mark.parametrize("distance", [1e-6, 0.01, 0.2, 0.49, 0.5, 0.7, 0.999])
def test_two_values_on_a_circle(distance: float) -> None:
    """Two values on a circle are as extreme as their distance is far from half a turn."""
    for name in ("kuiper", "watson"):
        found = TESTS[name]([0.0003, 0.0003 + distance]).pvalue
        assert found == pytest.approx(1 - 2 * abs(distance - 0.5), rel=1e-6, abs=1e-9)


def area(radius: float) -> float:
    """Twice the area of 0 < u < v < 1 outside the circle about (1/4, 3/4)."""

    def inside(u: float) -> float:
        half = float(max(radius**2 - (u - 0.25) ** 2, 0.0) ** 0.5)
        return max(min(0.75 + half, 1.0) - max(0.75 - half, u), 0.0)

    corners = [x for x in (0.25 - radius, 0.25 + radius, 0.5) if 0 < x < 1]
    return 1 - 2 * float(integrate.quad(inside, 0, 1, points=corners, limit=400)[0])


@pytest.mark.parametrize("radius", [0.02, 0.1, 0.2, 0.25, 0.3, 0.36, 0.45, 0.55, 0.65, 0.74, 0.78])
def test_two_values(radius: float) -> None:
    """The p-value of Cramer and von Mises' statistic of two values is an area."""
    exact = area(radius)
    found = edf.continuum_tail("cramer_von_mises", 1 / 24 + radius**2, 2)
    assert found == pytest.approx(exact, abs=error(exact))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_volumes_of_balls(n: int) -> None:
    """Near its smallest value P(W^2 <= x) is n! times the volume of a ball (Csorgo and Faraway)."""
    # The nearest face of the simplex is half a gap away from (i - 1/2) / n.
    for radius in np.array([0.5, 0.8, 1.0]) / (2 * n):
        volume = gamma(n + 1) * pi ** (n / 2) / gamma(n / 2 + 1) * radius**n
        found = edf.continuum_tail("cramer_von_mises", 1 / (12 * n) + radius**2, n)
        assert 1 - found == pytest.approx(volume, abs=error(volume))


@pytest.mark.parametrize("n", [2, 3, 5, 12, 30])
def test_far_out_kuiper_asks_for_all_values_in_an_arc(n: int) -> None:
    """From 1 - 1/n on, the statistic is 1 minus the arc that holds all values."""
    for arc in np.array([1e-3, 0.2, 0.7, 1.0]) / n:
        exact = n * arc ** (n - 1)
        found = edf.continuum_tail("kuiper", 1 - arc, n)
        assert found == pytest.approx(exact, rel=1e-6, abs=n * 1e-12)
        assert found >= exact * (1 - 1e-9)


def test_kuiper_meets_its_limit() -> None:
    """The exact law and Stephens' form agree to 2 % at n = 1000."""
    for x in (1.0, 1.4, 1.75, 2.0, 2.3):
        exact = edf._kuiper_exact(x / 1000**0.5, 1000)
        assert edf._kuiper_limit(x / 1000**0.5, 1000) == pytest.approx(exact, rel=0.02)


LEVELS = (0.9, 0.5, 0.2, 0.1, 0.05, 0.01)


def worst(method: str, n: int, tail: Callable[[str, float, int], float], *, seed: int = 1) -> float:
    """The largest difference between p-values and 200 000 null samples, in standard errors of both."""
    size = 200_000
    u = np.sort(np.random.default_rng([seed, n]).random((size, n)), axis=1)
    values = np.sort(edf._EDF[method].continuum(u))
    found = np.array([tail(method, float(values[round((1 - p) * size)]), n) for p in LEVELS])
    p = np.array(LEVELS)
    return float(np.max(np.abs(found - p) / np.sqrt(p * (1 - p) * (1 / size + 1 / BEHIND))))


@pytest.mark.parametrize("n", [2, 3, 5, 9, 17, 30, 31, 60])
@pytest.mark.parametrize("method", edf._EDF)
def test_pvalues_are_those_of_null_samples(method: str, n: int) -> None:
    """At six levels p is that of 200 000 new samples to 5.2 standard errors: false alarm below 1e-6 for all six.

    An error of 0.0094 at p = 0.5, or 0.0041 at 0.05, is missed with probability 1e-3. Tried on 20 other seeds.
    """
    assert worst(method, n, edf.continuum_tail) < float(stats.norm.isf(0.5e-6 / len(LEVELS)))


def stephens(method: str, x: float, n: int) -> float:
    """The forms that were used before, made for the upper tail."""
    if method == "kuiper":
        return edf._kuiper_limit(x, n)
    if method == "watson":
        return edf._watson_limit((x - 0.1 / n + 0.1 / n**2) * (1.0 + 0.8 / n), n)
    if method == "cramer_von_mises":
        return edf._cvm_limit((x - 0.4 / n + 0.6 / n**2) * (1.0 + 1.0 / n), n)
    return edf._ad_limit(x, n)


@pytest.mark.parametrize("n", [5, 9])
@pytest.mark.parametrize("method", edf._EDF)
def test_forms_for_larger_samples_are_found_out(method: str, n: int) -> None:
    """Broken twin: limit laws with Stephens' corrections, or a corrected limit, are far off at small n."""
    assert worst(method, n, stephens) > 7


@pytest.mark.parametrize("n", [2, 4, 9, 30, 31, 200])
@pytest.mark.parametrize("method", edf._EDF)
def test_pvalues_fall_as_statistics_grow(method: str, n: int) -> None:
    """From 1 at the smallest statistic down to nothing, without a jump where the table ends."""
    low = 1.0 / n if method == "kuiper" else smallsamples.smallest_statistic(method, n)
    high = 20.0 if method == "anderson_darling" else 1.0
    found = np.array([edf.continuum_tail(method, float(x), n) for x in np.linspace(low, high, 400)])
    # Beyond the table the limit law at the smallest statistic is not quite 1.
    assert found[0] == pytest.approx(1.0, abs=1e-6 if n <= 30 else 1e-4)
    assert np.all(np.diff(found) <= 1e-9)
    assert np.all((found >= 0.0) & (found <= 1.0))


def test_the_table_is_increasing() -> None:
    """Heights grow as probabilities fall, in every row of the table."""
    rows: Floats = smallsamples._table()
    assert rows.shape == (3, len(smallsamples.SIZES), len(smallsamples.PROBABILITIES))
    assert np.all(np.diff(rows, axis=2) >= 0)
