"""Numbers that nobody has so many of: they are refused in a sentence, or cost no more than others."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringtrue import planning, twosample, uniformity
from ringtrue.errors import InvalidStudy
from ringtrue.statistics.arguments import MOST_RANKS

RANKS = np.arange(30) % 10
U = (RANKS + 0.5) / 10
HUGE: tuple[Any, ...] = (10**16, 2**63, 2**64, 10**30, 1e300, float("inf"), float("nan"))


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _of_draws(name: str) -> Callable[[Any], Any]:
    return lambda many: uniformity.TESTS[name](RANKS, draws=many)


CALLS: dict[str, Callable[[Any], Any]] = {
    **{f"{name}, draws": _of_draws(name) for name in uniformity.TESTS},
    "bins": lambda many: uniformity.binned_chi2(U, bins=many),
    "bins of ranks": lambda many: uniformity.binned_chi2(RANKS, draws=9, bins=many),
    "order": lambda many: uniformity.neyman(U, order=many),
    "order of ranks": lambda many: uniformity.neyman(RANKS, draws=9, order=many),
    "lost": lambda many: uniformity.ecdf_gamma(U, lost=many),
    "band": lambda many: uniformity.band(many),
    "band of ranks": lambda many: uniformity.band(many, draws=9),
    "band, draws": lambda many: uniformity.band(10, draws=many),
    "plan, draws": lambda many: planning.plan(spread=1.2, draws=many),
    "plan, parameters": lambda many: planning.plan(spread=1.2, parameters=many),
    "plan, until, draws": lambda many: planning.plan(until="decided", draws=many),
    "plan, until, parameters": lambda many: planning.plan(until="decided", parameters=many),
    "detectable": lambda many: planning.detectable(many),
    "detectable, draws": lambda many: planning.detectable(100, draws=many),
    "certificate, draws": lambda many: planning.plan_certificate(draws=many),
    "certificate, parameters": lambda many: planning.plan_certificate(parameters=many),
    "mmd": lambda many: twosample.mmd(U, U + 1, rng=_rng(), permutations=many),
    "energy": lambda many: twosample.energy(U, U + 1, rng=_rng(), permutations=many),
}


def _cost(call: Callable[[], Any]) -> int:
    """Return the bytes that a refused call took at most."""
    tracemalloc.start()
    try:
        with pytest.raises(InvalidStudy, match=r"must be|at most"):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("many", HUGE)
@pytest.mark.parametrize("what", CALLS)
def test_more_than_there_can_be_is_refused(what: str, many: Any) -> None:
    """Whatever is counted, so many of it are refused with a sentence and without memory."""
    assert _cost(lambda: CALLS[what](many)) < 10**6


@pytest.mark.parametrize("name", uniformity.TESTS)
def test_ranks_among_too_many_draws_have_another_way(name: str) -> None:
    """A billion draws took gigabytes; the refusal says how to ask, and that way has the same level."""
    with pytest.raises(InvalidStudy, match=r"\(ranks \+ rng.random\(n\)\) / \(draws \+ 1\)"):
        uniformity.TESTS[name](RANKS, draws=MOST_RANKS + 1)


@pytest.mark.parametrize("size", [1e300, 1e-300, -1.0, 0.0, 1.0])
def test_sizes_beyond_numbers_cannot_be_planned(size: float) -> None:
    """An error whose square is no number is refused, of spread and of bias."""
    with pytest.raises(InvalidStudy, match="spread must be positive"):
        planning.plan(spread=size)
    if abs(size) != 1.0:
        with pytest.raises(InvalidStudy, match="bias must be"):
            planning.plan(bias=size)


def test_bins_hold_the_ranks_that_they_held() -> None:
    """Counting ranks in bins without a table of all ranks gives what the table gives, for every small lattice."""
    rng = _rng()
    for draws in range(1, 40):
        ranks = rng.integers(0, draws + 1, size=50)
        for bins in range(2, draws + 2):
            cells = np.arange(draws + 1) * bins // (draws + 1)
            expected = np.bincount(cells, minlength=bins) * 50 / (draws + 1)
            observed = np.bincount(cells[ranks], minlength=bins)
            statistic = float(((observed - expected) ** 2 / expected).sum())
            assert uniformity.binned_chi2(ranks, draws=draws, bins=bins).statistic == pytest.approx(statistic)


def test_as_many_polynomials_as_allowed_have_a_law() -> None:
    """The limit on polynomials lies where the law still has as many degrees of freedom as the statistic."""
    test = uniformity.neyman(np.linspace(0.001, 0.999, 400), order=100)
    assert 0.0 < test.pvalue <= 1.0
    assert uniformity.neyman(np.full(400, 0.5), order=100).pvalue < 1e-6
