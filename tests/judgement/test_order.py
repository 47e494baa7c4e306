"""Independence over the order of replicates: whose order, what is said, and what a procedure that learns leaves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import special

import ringtrue as rt

from ..builders import BELIEF, SD, noisy, refusal, replicates, says
from ..statistics.test_dependence import autoregressive


def series(n: int = 200, rho: float = 0.6, seed: int = 1) -> tuple[Any, Any]:
    """Truths and draws whose u follow each other, in their order."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return y + special.ndtri(autoregressive(n, rho, rng)), y[:, None] + rng.normal(size=(n, 99))


def test_the_order_given_is_the_order_tested() -> None:
    """Rows in any order, with their places, give the correlations of rows in order; without, they do not."""
    theta, draws = series()
    mixed = np.random.default_rng(2).permutation(200)
    sorted_, shuffled = (
        rt.independence(rt.check_draws(theta[rows], draws[rows], order=order, f=rt.identity))
        for rows, order in ((np.arange(200), None), (mixed, mixed))
    )
    # Ties of ranks are broken, and ranks spread, by random numbers of the row: equal up to a cell.
    np.testing.assert_allclose(shuffled.correlogram.correlations, sorted_.correlogram.correlations, atol=0.02)
    assert (sorted_.given, shuffled.given) == (False, True)
    assert shuffled.pvalue == 1e-4
    # Broken twin: the order of the rows has no correlation; 0.35 is five standard errors (6e-7).
    ignored = rt.independence(rt.check_draws(theta[mixed], draws[mixed], f=rt.identity))
    assert abs(ignored.correlogram.correlations[0, 0, 0]) < 0.35 < shuffled.correlogram.correlations[0, 0, 0]


def test_the_line_of_a_result() -> None:
    """A result with an order has one line on it, and says what dependence means for the rest; p and verdict stay."""
    theta, draws = series()
    with_order, without = (rt.check_draws(theta, draws, order=order) for order in (np.arange(200), None))
    (line,) = [note for note in with_order.notes if note.startswith("independence")]
    says(line, r"order given: p = 1e-4; lag-1 correlation of u 0\.\d\d \(95 % band of all 8", "take them for indep")
    assert line in str(with_order)
    assert line in with_order.to_dict()["notes"]
    assert (with_order.pvalue, with_order.verdict) == (without.pvalue, without.verdict)
    assert not [note for note in without.notes if "independence" in note]


def test_an_independent_series_has_a_short_line() -> None:
    """Nothing found, nothing said beyond the numbers; the confidence of the band is one minus alpha."""
    rng = np.random.default_rng(3)
    result = rt.check_draws(rng.normal(size=100), rng.normal(size=(100, 9)), order=np.arange(100.0), alpha=0.01)
    (line,) = [note for note in result.notes if note.startswith("independence")]
    says(line, r"99 % band of all 8 correlations: -0\.\d\d to 0\.\d\d\)\.$")


def test_lost_replicates_are_gaps() -> None:
    """A lost replicate keeps its place: pairs over it are not made, and the line says so."""
    theta, draws = series()
    theta[[10, 11, 50]] = np.nan
    result = rt.check_draws(theta, draws, order=np.arange(200), on_failure="record", f=rt.identity)
    found = rt.independence(result)
    # Pairs of neighbours: 199, less 9-10, 10-11, 11-12, 49-50, 50-51.
    assert found.correlogram.pairs[0] == 194
    says(str(found), "3 lost replicates kept as a gap in the order")


def test_too_few_replicates_are_said_not_raised() -> None:
    """A result of three replicates says that independence was not tested; asked for itself, it is refused."""
    result = rt.check_draws([0.1, 0.2, 0.3], [[0.1, 0.5], [0.2, 0.0], [1.0, 0.4]], order=[3, 1, 2])
    assert any("at least 4" in note for note in result.notes)
    says(refusal(lambda: rt.independence(result)), "at least 4")


def test_dates_are_an_order() -> None:
    """Dates serve as well as numbers."""
    theta, draws = series(20)
    days = np.datetime64("2020-01-01") + np.arange(20)[::-1]
    assert rt.check_draws(theta, draws, order=days).replicates.arrays["order"].tolist() == list(range(20))[::-1]


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (np.zeros(20), ["one replicate after the other", "20 replicates have only 1"]),
        (np.arange(19), ["20 in all", r"shape \(19,\)", r"np\.arange\(20\)"]),
        (["a"] * 20, ["number or date", "list"]),
        (np.append(np.arange(19.0), np.nan), ["nan"]),
    ],
)
def test_an_order_that_is_none_is_refused(order: Any, words: list[str]) -> None:
    """Ties, wrong lengths, texts and nan are refused with what to do."""
    theta, draws = series(20)
    says(refusal(lambda: rt.check_draws(theta, draws, order=order)), *words)


class Learner:
    """A procedure that takes a running average of the data so far for the mean of its belief."""

    def __init__(self, rate: float) -> None:
        self.rate, self.mean = rate, 0.0

    def __call__(self, mu0: Any, y: float) -> rt.Normal:
        """Return the posterior under the belief that was learned, and learn."""
        output = rt.Normal((y + self.mean) / 2, SD)
        self.mean += self.rate * (y - self.mean)
        return output


@pytest.mark.parametrize(("rate", "found"), [(0.5, True), (0.0, False)])
def test_a_procedure_that_learns_across_datasets_is_found(rate: float, found: bool) -> None:
    """The running average makes u follow each other; at a rate of zero, the broken twin, nothing is found.

    z has variance 1 and a shift that is an AR(1/2) of variance 1/3, so that neighbouring z have correlation 1/8 and
    neighbouring u 0.119. The border, 0.0615, is 4.8 standard errors away from it and 5.1 from zero: wrong with
    probability below 1e-6 either way.
    """
    study = rt.Study(BELIEF, noisy, Learner(rate), f=rt.identity, reproducible=False)
    test = rt.independence(rt.run(study, n=7000))
    assert (test.correlogram.correlations[0, 0, 0] > 0.0615) == found
    if found:
        assert test.pvalue <= 0.001
        says(str(test), "order of the replicates", "learns from one dataset to the next")


def test_the_users_functions_are_tested_together() -> None:
    """Sum and distance of the default family are left out unless they are named."""
    ran = replicates(
        np.random.default_rng(4).random((60, 3)), names=["a", "b", "s"], kinds=["coordinate"] * 2 + ["sum"]
    )
    assert rt.independence(ran).functions == ("a", "b")
    assert rt.independence(ran, f="s").functions == ("s",)
    assert rt.independence(ran, f=["b", "s"], lags=7).correlogram.correlations.shape == (2, 2, 7)
    says(refusal(lambda: rt.independence(ran, f="c")), r"\['a', 'b', 's'\]", "'c'")
    with pytest.raises(TypeError, match="Result or Replicates"):
        rt.independence([0.1])  # type: ignore[arg-type]


def test_few_replicates_have_fewer_lags() -> None:
    """By default lags end at half the number of replicates that are left."""
    ran = replicates(np.random.default_rng(5).random(6), lost=[2])
    assert rt.independence(ran).correlogram.pairs.size == 2


def test_an_order_survives_cutting_and_choosing() -> None:
    """Parts of a record keep their places."""
    ran = replicates(np.linspace(0, 1, 8))
    ran = replace(ran, arrays={**ran.arrays, "order": np.arange(8)[::-1]})
    assert ran.pick(slice(0, 4)).arrays["order"].tolist() == [7, 6, 5, 4]
    assert rt.independence(ran.about([0])).given
