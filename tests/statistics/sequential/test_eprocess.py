"""Evidence that may be looked at after every replicate."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats

from ringtrue.statistics.sequential import Bets, Blocks, Grouped, Scores, eprocess, follow, log_evalues, looks_up_to
from ringtrue.values import Floats
from tests.builders import refusal, says

_RANKS = [1.30616576, 3.02994933, 4.33773363, 2.99986287, 1.61703014, 2.41605529, 4.97320836, 2.69227155]


@pytest.mark.parametrize(
    ("values", "draws", "expected"),
    [
        (
            special.ndtri([0.05, 0.2, 0.35, 0.6, 0.9]),
            None,
            [1.09182273, 1.09516145, 0.97179896, 0.77987107, 0.62557773],
        ),
        ([0, 0, 1, 3, 9, 9, 9, 5], 9, _RANKS),
        ([0, 0, 3, 3], 3, [1.08158027, 1.46676297, 1.07571617, 1.12627262]),
    ],
    ids=["exact", "ranks of 9", "ranks of 3"],
)
def test_values_that_two_other_programs_found(values: Any, draws: int | None, expected: list[float]) -> None:
    """E after each replicate, to 1e-6; on the continuum to all digits that are known."""
    found = np.exp(log_evalues(values, draws=draws).log_evalues)
    np.testing.assert_allclose(found, expected, rtol=0, atol=6e-9 if draws is None else 1e-6)


def test_a_position_far_out_keeps_its_size() -> None:
    """u = 1e-20 from its own tail has log E = 34.6437, on either side; infinite scores are no error."""
    far = float(special.ndtri(1e-20))
    for z in (far, -far):
        assert log_evalues([z]).log_evalues[0] == pytest.approx(34.6437, abs=5e-5)
    found = log_evalues([0.1, math.inf, -math.inf, 0.2])
    assert not np.isnan(found.log_evalues).any()
    assert found.pvalues[-1] == 0.0


def test_there_are_162_alternatives_with_their_shares() -> None:
    """Sixty per cent for location and scale, five times as much on the axes, thirty for shape, ten for outliers."""
    weights = np.exp(eprocess.log_weights())
    assert len(weights) == 162
    np.testing.assert_allclose([weights[:120].sum(), weights[120:156].sum(), weights[156:].sum()], [0.6, 0.3, 0.1])
    assert np.count_nonzero(np.isclose(weights[:120], 5 * weights[:120].min())) == 20


def _quadrature() -> tuple[Floats, Floats]:
    """Return scores that reach far beyond any alternative, and the density of each alternative there."""
    z = np.linspace(-90, 90, 18_001)
    return z, np.exp(eprocess.log_densities(z) + stats.norm.logpdf(z)[:, None])


def test_every_alternative_is_a_density() -> None:
    """Each integrates to 1 over u, by a quadrature over z that knows nothing of the formulas."""
    z, density = _quadrature()
    np.testing.assert_allclose(integrate.trapezoid(density, z, axis=0), 1.0, atol=1e-9)


@pytest.mark.parametrize("draws", [1, 2, 3, 9, 99, 2000])
def test_a_rank_is_worth_one_on_average(draws: int) -> None:
    """Each column of the table averages to 1: on the lattice E is exactly a martingale."""
    table = np.exp(eprocess.log_rank_table(draws))
    np.testing.assert_allclose(table.mean(axis=0), 1.0, atol=1e-13)


@pytest.mark.parametrize("draws", [1, 4, 9])
def test_ranks_have_the_mean_density_given_the_rank(draws: int) -> None:
    """(M + 1) P(r) is the mean of the density under Beta(r + 1, M - r + 1), over the whole line."""
    z, density = _quadrature()
    for r in range(draws + 1):
        kernel = (draws + 1) * math.comb(draws, r) * special.ndtr(z) ** r * special.ndtr(-z) ** (draws - r)
        expected = integrate.trapezoid(kernel[:, None] * density, z, axis=0)
        np.testing.assert_allclose(np.exp(eprocess.log_rank_table(draws)[r]), expected, rtol=1e-6)


def test_broken_twin_a_density_at_the_middle_of_its_cell_is_no_martingale() -> None:
    """Taking the density where the rank's cell has its middle does not average to 1."""
    middles = special.ndtri((np.arange(10) + 0.5) / 10)
    assert np.abs(np.exp(eprocess.log_densities(middles)).mean(axis=0) - 1).max() > 0.1


@pytest.mark.parametrize("draws", [None, 1, 9])
def test_a_lost_replicate_is_worth_no_more_than_any_value(draws: int | None) -> None:
    """E with a lost replicate is at most what it is with any value in its place."""
    z = np.random.default_rng(1).normal(size=12)
    values = z if draws is None else np.random.default_rng(2).integers(draws + 1, size=12)
    lost = np.arange(12) == 5
    found = log_evalues(values, draws=draws, lost=lost).log_evalues
    others = np.linspace(-12, 12, 241) if draws is None else np.arange(draws + 1)
    for one in others:
        assert (log_evalues(np.where(lost, one, values), draws=draws).log_evalues >= found - 1e-12).all()


def test_what_a_lost_replicate_is_worth_is_the_least_density() -> None:
    """The bounds are reached, or approached, somewhere on a fine grid, but for even polynomials, which stay above."""
    least = eprocess.log_densities(np.linspace(-60, 60, 240_001)[::4]).min(axis=0)
    bound = eprocess.log_least(None)
    assert (bound <= least + 1e-9).all()
    wide = np.isfinite(bound) & (np.arange(162) < 120)
    np.testing.assert_allclose(bound[wide], least[wide], atol=1e-5)


def test_lost_values_are_not_looked_at() -> None:
    """Nan stands for them as well as any number."""
    lost = np.array([False, True, False])
    a, b = (log_evalues([0.3, one, 1.0], lost=lost).log_evalues for one in (math.nan, 7.0))
    np.testing.assert_array_equal(a, b)
    assert np.isfinite(a).all()


def test_going_on_from_a_state_gives_the_same_bits() -> None:
    """However a run is cut."""
    rng = np.random.default_rng(1)
    values = np.column_stack([rng.normal(size=300), rng.integers(10, size=300)])
    about: dict[str, Any] = {"draws": [None, 9], "weights": [0.8, 0.2]}
    whole, first = log_evalues(values, **about), log_evalues(values[:117], **about)
    second = log_evalues(values[117:], state=first.state, **about)
    np.testing.assert_array_equal(np.concatenate([first.log_evalues, second.log_evalues]), whole.log_evalues)
    np.testing.assert_array_equal(second.state.log_weights[0], whole.state.log_weights[0])
    assert (second.state.log_maximum, second.pvalues[-1]) == (whole.state.log_maximum, whole.pvalues[-1])


def test_holding_less_at_once_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of one replicate."""
    z = np.random.default_rng(1).normal(size=50)
    whole = log_evalues(z).log_evalues
    monkeypatch.setattr(eprocess, "_CHUNK", 1)
    np.testing.assert_array_equal(log_evalues(z).log_evalues, whole)


@pytest.mark.parametrize("draws", [None, 9])
def test_looks_between_change_nothing(draws: int | None) -> None:
    """At a few looks E is what it is if looked at after every replicate, also over spans that are added up in parts."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=9000) if draws is None else rng.integers(draws + 1, size=9000)
    lost = rng.random(9000) < 0.001
    whole = log_evalues(values, draws=draws, lost=lost)
    some = log_evalues(values, draws=draws, lost=lost, looks=[1, 7, 600, 8999])
    np.testing.assert_allclose(some.log_evalues, whole.log_evalues[[0, 6, 599, 8998]], atol=1e-8)
    assert some.looks.tolist() == [1, 7, 600, 8999]


@pytest.mark.parametrize("draws", [None, 9])
def test_spans_have_the_same_bits_wherever_they_are_computed(draws: int | None) -> None:
    """Going on from a look, or all at once: a run that is resumed stops at the same replicate."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=12_000) if draws is None else rng.integers(draws + 1, size=12_000)
    looks = looks_up_to(12_000)
    whole, cut = log_evalues(values, draws=draws, looks=looks), int(looks[300])
    first = log_evalues(values[:cut], draws=draws, looks=looks[:301])
    second = log_evalues(values[cut:], draws=draws, looks=looks[301:] - cut, state=first.state)
    np.testing.assert_array_equal(np.concatenate([first.log_evalues, second.log_evalues]), whole.log_evalues)


def test_bets_are_fair() -> None:
    """What is bet on a difference that is +-reach or 0 with mean 0 returns as much on average, in every alternative."""
    differences = np.array([[1.0, -2.0], [-1.0, 2.0], [0.0, 0.0]])
    gains = Bets(differences, np.array([1.0, 2.0])).sums(np.arange(4))
    np.testing.assert_allclose(np.exp(gains).mean(axis=0), 1.0, atol=1e-12)
    lost = Bets(differences, np.array([1.0, 2.0]), np.array([False, False, True])).sums(np.arange(4))
    assert (lost[2] <= gains.min(axis=0) + 1e-12).all()


def test_bets_find_differences_that_have_a_mean() -> None:
    """A mean of a third of the sd is found; without it E stays below 20 (chance at most 0.05 for these numbers)."""
    away = np.random.default_rng(6).uniform(-1, 1, size=(400, 2))
    assert follow([Bets(away, np.array([2.0, 2.0]))]).first(0.05) is None
    assert follow([Bets(away + 0.2, np.array([2.0, 2.0]))]).first(0.05) is not None


def test_a_group_is_worth_the_mean_of_its_members() -> None:
    """Products over groups of mean likelihood ratios, by hand; copies of one replicate are worth one."""
    z = np.array([0.3, -1.2, 2.0, 0.1, 0.7])
    found = follow([Grouped(Scores(z), np.array([0, 2, 5]))])
    each = np.exp(eprocess.log_densities(z))
    by_hand = np.exp(eprocess.log_weights()) * each[:2].mean(axis=0)
    expected = [by_hand.sum(), (by_hand * each[2:].mean(axis=0)).sum()]
    np.testing.assert_allclose(np.exp(found.log_evalues), expected)
    copies = follow([Grouped(Scores(np.repeat(z, 3)), np.arange(0, 16, 3))])
    np.testing.assert_allclose(copies.log_evalues, log_evalues(z).log_evalues)


def test_several_functions_are_averaged() -> None:
    """E is the weighted average of theirs, whatever their draws; the maximum is over time."""
    rng = np.random.default_rng(3)
    ranks, z = rng.integers(4, size=40), rng.normal(1.0, 1.0, size=40)
    both = log_evalues(np.column_stack([ranks, z]), draws=[3, None], weights=[0.3, 0.7])
    alone = [np.exp(log_evalues(ranks, draws=3).log_evalues), np.exp(log_evalues(z).log_evalues)]
    np.testing.assert_allclose(np.exp(both.log_evalues), 0.3 * alone[0] + 0.7 * alone[1])
    np.testing.assert_allclose(both.log_maxima, np.maximum.accumulate(np.maximum(both.log_evalues, 0)))
    assert both.named(0.05) == [1]
    assert both.first(0.05) == int(np.argmax(both.log_evalues >= math.log(20))) + 1


def test_nothing_is_evidence_of_nothing() -> None:
    """No replicates leave the state as it was, and p at 1."""
    start = log_evalues([0.5, -0.5])
    after = log_evalues(np.empty(0), state=start.state)
    assert after.log_evalues.size == 0
    np.testing.assert_array_equal(after.state.log_weights[0], start.state.log_weights[0])
    assert log_evalues([0.0]).pvalues[0] == 1.0
    assert log_evalues([0.0]).first(0.05) is None


def _crossings(seed: int, runs: int, n: int, *, spread: float = 1.0) -> int:
    """Return how many runs cross 20 at some n."""
    z = spread * np.random.default_rng(seed).normal(size=(runs, n))
    return sum(log_evalues(row).first(0.05) is not None for row in z)


#: Crossings of 150 runs that a chance of 0.05 exceeds with probability 1e-6.
_MOST = int(stats.binom.isf(1e-6, 150, 0.05))


@pytest.mark.slow
def test_looking_after_every_replicate_holds_the_level() -> None:
    """Of 150 runs of 300 replicates at most 23 cross: false-alarm rate 1e-6, since the chance is at most 0.05.

    A chance of 0.27 is missed with probability 1e-3.
    """
    assert _MOST == 23
    assert _crossings(1, 150, 300) <= _MOST


@pytest.mark.slow
def test_broken_twin_scores_that_are_too_wide_cross() -> None:
    """A spread of 1.25 fails the same assertion."""
    assert _crossings(1, 150, 300, spread=1.25) > _MOST


def test_what_does_not_fit_is_refused() -> None:
    """Shapes, draws, masks, states, ranks and scores."""
    says(refusal(lambda: log_evalues(np.zeros((2, 2, 2)))), r"shape \(n,\) or \(n, K\)", "arrived")
    says(refusal(lambda: log_evalues([1], draws=2001)), r"1\.\.2000", "2001 arrived", "pass z")
    says(refusal(lambda: log_evalues([1], draws=[1, 2])), "one number or 1 of them, but 2 arrived")
    says(refusal(lambda: log_evalues([1.0, 2.0], lost=[0, 1])), "for each of 2 replicates")
    state = log_evalues([1.0]).state
    says(refusal(lambda: log_evalues([[1.0, 2.0]], state=state)), "1 test functions arrived for values of 2")
    says(refusal(lambda: log_evalues([10], draws=9)), r"0\.\.9")
    says(refusal(lambda: log_evalues([math.nan])), "nan", "lost=")
    says(refusal(lambda: log_evalues([0.5], draws=9)), "fractions")


def test_blocks_count_when_they_are_complete() -> None:
    """k p^(k - 1) has mean 1 over uniform p, by quadrature; a block is worth nothing before its last replicate."""
    for k in eprocess._POWERS:
        assert integrate.quad(lambda p, k=k: k * p ** (k - 1), 0, 1)[0] == pytest.approx(1.0, abs=1e-6)
    found = follow([Blocks(np.array([0.001, 0.5]), 3, 7)])
    one, both = (
        np.log(np.mean([np.prod([k * p ** (k - 1) for p in ps]) for k in (0.1, 0.3, 0.6)]))
        for ps in ([0.001], [0.001, 0.5])
    )
    np.testing.assert_allclose(found.log_evalues, [0, 0, one, one, one, both, both])
