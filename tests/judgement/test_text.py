"""Numbers in sentences and tables have the figures that their size and their interval deserve."""

import pytest

from ringtrue.judgement.text import cell, decimals, near, number
from ringtrue.statistics.effects import Interval


@pytest.mark.parametrize(
    ("p", "text"), [(0.9e-300, "< 1e-300"), (1e-300, "1e-300"), (0.000999, "1e-03"), (0.001, "0.001"), (0.312, "0.31")]
)
def test_p_values_of_tables_change_their_form_at_their_limits(p: float, text: str) -> None:
    """Below 1e-300 only the bound is shown, below 0.001 one figure, above it two."""
    assert cell(p) == text


@pytest.mark.parametrize(
    ("x", "text"),
    [(9.994, "9.99"), (9.996, "10.0"), (99.94, "99.9"), (99.96, "100"), (9999.6, "1e4")],
)
def test_numbers_lose_decimals_where_rounding_would_add_a_figure(x: float, text: str) -> None:
    """Three figures up to a thousand, on either side of every change."""
    assert number(x) == text


@pytest.mark.parametrize(
    ("width", "digits"),
    [(5.0, 2), (0.09, 3), (0.0123, 3), (1.5e-5, 6), (1e-9, 6), (0.0, 2), (float("inf"), 2)],
)
def test_decimals_are_two_figures_of_the_width(width: float, digits: int) -> None:
    """Two at least and six at most, and two where the width tells nothing."""
    assert decimals(Interval("bias", 0.0, 0.0, width, 0.0)) == digits


@pytest.mark.parametrize(
    ("x", "text"), [(0.9, "0.90"), (1.3, "1.30"), (0.93, "0.930"), (0.9031, "0.9031"), (0.90031, "0.90031")]
)
def test_near_its_ideal_a_number_has_two_figures_of_the_distance(x: float, text: str) -> None:
    """So that a coverage of 90.03 % is not printed as 90 %; at the ideal itself there are two decimals."""
    assert near(x, 0.9) == text
