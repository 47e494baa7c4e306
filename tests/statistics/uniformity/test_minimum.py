"""The table behind the default test: its axes, and look-ups at them, between them and beyond."""

import math
from importlib import resources
from typing import Any

import numpy as np
import pytest

from ringtrue.statistics import uniformity
from ringtrue.statistics.uniformity.minimum import DRAWS, SIZES, SMALLEST, adjusted_minimum


def table() -> dict[tuple[int, int], Any]:
    """Return the factors by draws (0 on the continuum) and n, as the file has them."""
    text = resources.files(uniformity).joinpath("multiplicity.csv").read_text("utf-8")
    rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")]
    return {(int(draws), int(n)): np.array(factors, float) for draws, n, *factors in rows}


#: The levels at which the factors of the file were found; it does not say them.
PERCENT = (70, 50, 35, 25, 18, 13, 9, 6.5, 4.5, 3, 2.2, 1.6, 1.1, 0.8, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02)


def test_axes_are_those_of_the_file() -> None:
    """Every pair of draws and size has a row, and a factor for every level but 1."""
    assert list(table()) == [(draws, n) for draws in (*DRAWS, 0) for n in SIZES]
    assert {factors.size for factors in table().values()} == {len(PERCENT)}
    assert pytest.approx((1, *(level / 100 for level in PERCENT))) == SMALLEST


@pytest.mark.parametrize("draws", [99, None])
@pytest.mark.parametrize("n", [100, 1000])
def test_a_look_up_at_the_axes_is_the_factor(n: int, draws: int | None) -> None:
    """At a level, size and number of draws of the table the p-value is the level times its factor."""
    factors = table()[draws or 0, n]
    pvalues = np.minimum(1, np.maximum.accumulate((factors * SMALLEST[1:])[::-1]))[::-1]
    found = [adjusted_minimum(x, n, draws) for x in SMALLEST[1:]]
    assert found == pytest.approx(pvalues, rel=1e-9)
    assert adjusted_minimum(1.0, n, draws) == 1


def test_between_the_axes_factors_are_averaged() -> None:
    """Half-way between 100 and 200 on the logarithm, and at 149 draws by 1 / (M + 1)."""
    x, place = 0.03, SMALLEST.index(0.03) - 1
    known = table()
    middle = math.sqrt(100 * 200)
    assert adjusted_minimum(x, middle, 99) == pytest.approx(  # type: ignore[arg-type]
        x * (known[99, 100][place] + known[99, 200][place]) / 2, rel=1e-9
    )
    share = (1 / 150 - 1 / 200) / (1 / 100 - 1 / 200)
    expected = share * known[99, 100][place] + (1 - share) * known[199, 100][place]
    assert adjusted_minimum(x, 100, 149) == pytest.approx(x * expected, rel=1e-9)


def test_far_out_the_factor_is_bonferronis() -> None:
    """Below the table it rises to 4 within two decades, linearly in the logarithm, and stays there."""
    last = table()[0, 100][-1]
    assert adjusted_minimum(2e-5, 100, None) == pytest.approx(2e-5 * (last + 4) / 2, rel=1e-9, abs=0)
    assert adjusted_minimum(2e-6, 100, None) == pytest.approx(8e-6, rel=1e-9, abs=0)
    assert adjusted_minimum(1e-12, 100, None) == pytest.approx(4e-12, rel=1e-9, abs=0)
    assert adjusted_minimum(0.3, 100, 1) == 0.3  # one draw: all four are the same test
