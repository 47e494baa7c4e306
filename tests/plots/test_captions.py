"""Sentences about shapes follow the numbers."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue import plots
from ringtrue.statistics.effects import rank_probabilities

from ..builders import complete, grid, ranked, replicates

SHAPES = [
    # z ~ N(bias, spread^2), without noise
    (1.4, 0.0, "is U-shaped: over-confident, multiply the reported sd by 1.4", "too many truths in the lowest"),
    (0.7, 0.0, "is humped: under-confident, multiply the reported sd by 0.70", "too few truths in the lowest"),
    (1.0, 0.4, "is sloping up to the right: biased, outputs lie 0.40", "of their sd below the truth"),
    (1.0, -0.4, "is sloping down to the right: biased, outputs lie 0.40", "of their sd above the truth"),
    (1.4, 0.4, "is U-shaped and sloping up to the right: over-confident", "and the highest"),
    (1.0, 0.0, "is flat within its band: nothing to see here", "would look like this too"),
]


@pytest.mark.parametrize(("spread", "bias", "start", "part"), SHAPES)
def test_shapes_of_values_are_named(spread: float, bias: float, start: str, part: str) -> None:
    """Every shape is named with its number and where it shows."""
    text = plots.reading(replicates(grid(800, spread=spread, bias=bias)))
    assert text.startswith(f"f0 {start}")
    assert part in text
    assert text.endswith(".")
    assert text.count(". ") == 0


@pytest.mark.parametrize(("spread", "bias", "start", "part"), SHAPES)
def test_shapes_of_ranks_are_named(spread: float, bias: float, start: str, part: str) -> None:
    """Ranks with the expected counts of that law are read in the same way."""
    expected = rank_probabilities(19, spread=spread, bias=bias) * 2000
    text = plots.reading(ranked(np.repeat(np.arange(20), expected.round().astype(int)), 19))
    assert text.split(":")[0] == f"f0 {start}".split(":")[0]
    assert part in text


def test_outliers_are_spikes_and_not_a_width() -> None:
    """Five of a hundred outputs far too narrow are outliers, with the spread of the rest."""
    z = special.ndtri((np.arange(1000) + 0.5) / 1000)
    z = np.concatenate([z[::20] * 8, np.delete(z, np.s_[::20])])
    text = plots.reading(replicates(special.ndtr(z)))
    assert text.startswith("f0 is spiked at both ends: outliers")
    assert "outputs miss the truth" in text or "no probability to where the truth is" in text
    assert "widening all would hide them" in text


def test_outliers_on_one_side_are_said_to_be_there() -> None:
    """Only the end that has them is named."""
    z = special.ndtri((np.arange(1000) + 0.5) / 1000)
    text = plots.reading(replicates(special.ndtr(np.where(np.arange(1000) % 40 == 0, np.abs(z) + 5, z))))
    assert text.startswith("f0 is spiked at the upper end")


def test_a_wider_law_is_not_taken_for_outliers() -> None:
    """The broken twin: over-confidence alone, however strong, has no spikes."""
    for spread in (1.2, 2.0, 4.0):
        assert plots.reading(replicates(grid(2000, spread=spread))).startswith("f0 is U-shaped: over-confident")


def test_a_shape_that_is_neither_is_located() -> None:
    """Two humps with the right mean and variance of z are said to be hollow, and where."""
    side = grid(500, spread=0.3)
    z = special.ndtri(side)
    half = (1 - 0.3**2) ** 0.5
    text = plots.reading(replicates(special.ndtr(np.concatenate([z - half, z + half]))))
    assert text.startswith("f0 is hollow in the middle: truths avoid the middle of the outputs; ")
    assert "; too" in text


def test_counts_in_the_sentence_are_counts() -> None:
    """The share that is named is the share in that part."""
    u = np.concatenate([np.full(300, 0.051), (np.arange(700) + 0.5) / 700])
    text = plots.reading(replicates(u))
    share = (u < 0.052).mean()
    assert f"too many truths in the lowest 5.2 % of the output ({100 * share:.0f} % of them)" in text


def test_columns_are_named_or_numbered() -> None:
    """A name and its number give the same sentence; others are refused."""
    ran = replicates(np.column_stack([grid(300), grid(300, spread=2.0)]), names=["a", "<b>"])
    assert plots.reading(ran, "<b>") == plots.reading(ran, 1)
    assert plots.reading(rt.judge(ran), 1) == plots.reading(ran, 1)
    with pytest.raises(IndexError, match="one of 2 test functions, but 2 came"):
        plots.reading(ran, 2)
    with pytest.raises(rt.errors.InvalidStudy, match="'c' came"):
        plots.reading(ran, "c")


def test_other_levels_are_read_in_their_own_words() -> None:
    """A function that sees the data speaks of the exact posterior, one that sees the output of its own error."""
    u = np.column_stack([grid(300, spread=2.0)] * 2)
    ran = replicates(u, sees=["data", "output"])
    assert "not the exact posterior: too many" in plots.reading(ran, 0)
    assert "does not know its own error: too many" in plots.reading(ran, 1)
    assert plots.reading(replicates(u[:, :1] * 0 + grid(300)[:, None], sees=["output"])).startswith("f0 is flat")


def test_large_runs_read_with_the_figures_that_tell_them_apart() -> None:
    """No two numbers that are compared read the same."""
    n = 400_000
    flat = plots.reading(replicates(grid(n)))
    assert "a spread factor from 0.997" in flat
    assert "1.00 to 1.00" not in flat
    text = plots.reading(replicates(grid(n, spread=1.02)))
    parts = re.findall(r"est ([\d.]+) % of the output \(([\d.]+) % of them\)", text)
    assert len(parts) == 2
    assert all(part != count for part, count in parts)


CALIBRATED: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    "exponential": lambda rng, size: rng.exponential(size=size),
    "t3": lambda rng, size: rng.standard_t(3, size=size),
    "Poisson": lambda rng, size: rng.poisson(0.3, size=size).astype(float),
    "Bernoulli": lambda rng, size: (rng.random(size) < 0.02).astype(float),
    "Cauchy": lambda rng, size: rng.standard_cauchy(size=size),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALIBRATED)
def test_calibrated_outputs_with_tails_are_not_accused_of_outliers(name: str) -> None:
    """Of runs with outputs far from normal, few are called spiked; with outliers in them, most are."""
    law, rng = CALIBRATED[name], np.random.default_rng(11)
    spiked = [0, 0]
    for _ in range(20):
        truth, draws = law(rng, 1000), law(rng, (1000, 99))
        wrong = np.where(rng.random(1000) < 0.05, 1e6, truth)
        for j, theta in enumerate((truth, wrong)):
            spiked[j] += plots.reading(rt.check_draws(theta, draws, f=rt.identity)).startswith("theta is spiked")
    # Nominally at most 0.025 for the spread, 0.025 for the bias, 0.01 for the shape and 0.01 for the ends, 0.07 in all:
    # Binomial(20, 0.07) exceeds 10 with probability 2e-8. Five in a hundred at the ends are seen in nearly every run.
    assert spiked[0] <= 10
    assert spiked[1] > 10


def test_odd_runs_are_read() -> None:
    """One replicate, one draw, one place, and lost replicates have sentences of their own."""
    assert plots.reading(replicates([0.2])).startswith("f0 has one replicate")
    assert "would hide any spread" in plots.reading(ranked(np.arange(100) % 2, 1))
    assert "from the 50 % to the 50.4 % point" in plots.reading(replicates(np.full(100, 0.5)))
    assert plots.reading(complete(60, lost=(1, 2))).endswith("(the 2 lost left out).")
