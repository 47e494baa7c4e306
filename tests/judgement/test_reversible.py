"""The reversible level: what it finds that no function asked about shows, and where it keeps silent."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.judgement.groups import one_of_each
from ringtrue.judgement.levels import levels
from ringtrue.judgement.levels.reversible import difference
from ringtrue.procedures import Mirrored
from ringtrue.replicates.given import replicates_from_draws
from ringtrue.replicates.record import SAME_DRAW, Replicates
from ringtrue.values import Floats
from tests.builders import BAYES, BELIEF, checked, grid, noisy, posterior, replicates

FALSE_ALARM = 1e-6
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def drawn(n: int, draws: int, *, seed: int = 0, turn: Any = None, rho: float = 0.0) -> tuple[Floats, Floats]:
    """Return truths of two entries and draws of N(y/2, 1/2), the mean turned or the entries correlated."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n, 2))
    y = theta + rng.normal(size=(n, 2))
    mean = y / 2 if turn is None else y @ turn.T / 2
    noise = rng.normal(size=(n, draws, 2))
    noise[..., 1] = rho * noise[..., 0] + np.sqrt(1 - rho**2) * noise[..., 1]
    return theta, mean[:, None] + np.sqrt(0.5) * noise


def test_mirror_bayes_is_reversible() -> None:
    """Exchanging theta with a draw changes nothing although every output points the wrong way; false alarm 1e-6."""
    result = checked(Mirrored(BAYES), 400)
    assert result.verdict is rt.Verdict.MISCALIBRATED
    assert result.levels["reversible"].pvalue > FALSE_ALARM
    assert result.levels["weak"].pvalue > FALSE_ALARM


def test_a_turned_mean_is_weak_and_not_reversible() -> None:
    """N(R y / 2, I / 2), R a quarter turn, returns the belief on average, and theta and a draw cannot be exchanged."""
    theta, draws = drawn(400, 9, turn=TURN)
    result = rt.check_draws(theta, draws, belief=rt.Gaussian([0.0, 0.0], np.eye(2)), iid=True)
    assert result.levels["weak"].pvalue > FALSE_ALARM
    # Power at n = 42 was 0.95: at 400 the bound is far beyond.
    assert result.levels["reversible"].pvalue < 1e-9
    assert "NOT EXCHANGEABLE" not in result.sentence  # the strong tests have said it


def record(x: Floats, y: Floats) -> Replicates:
    """Return replicates whose positions are perfect, with these truths and draws."""
    order = np.random.default_rng(0).permutation(len(x))
    ran = replicates(np.stack([grid(len(x)), grid(len(x))[order]], axis=1), truth=x, weak_value=y)
    return replace(ran, arrays={**ran.arrays, SAME_DRAW: np.ones(len(x), np.int8)})


def test_what_no_other_test_shows_has_a_line_of_its_own() -> None:
    """Correlated draws of independent entries: each is right, and the verdict is silent."""
    theta, draws = drawn(1000, 1, rho=0.9)
    result = rt.judge(record(theta, draws[:, 0]))
    assert result.verdict is not rt.Verdict.MISCALIBRATED
    assert result.levels["reversible"].pvalue < 1e-4
    line = result.sentence.splitlines()[1]
    assert line.startswith("NOT EXCHANGEABLE (reversible, p = ")
    assert "the product of f0 and f1 is larger in draws" in line


def test_what_was_not_found_is_not_spoken_of() -> None:
    """Truths that are their own draws are exchangeable: p is 1, and a row of the table is all there is."""
    theta, _ = drawn(200, 1)
    result = rt.judge(record(theta, theta))
    assert result.levels["reversible"].pvalue == 1.0
    assert "EXCHANGEABLE" not in result.sentence
    assert "sign flips" in result.details()
    assert result.levels["reversible"].rows[0].f == "truth and draw"


@pytest.mark.parametrize(
    ("move", "said"),
    [
        (lambda x: x + np.array([1, 0]), "f0 is larger in draws"),
        (lambda x: x * [1, 0.2], "f1 lies nearer to the middle in draws"),
        (lambda x: x @ TURN.T, "f0 of the truth with f1 of the draw is not as f1 of"),
        (lambda x: np.abs(x) * np.sign(x - 0.5), "f"),
    ],
)
def test_the_line_says_in_what_they_differ(move: Any, said: str) -> None:
    """The feature that differs most, in words."""
    theta, _ = drawn(400, 1)
    assert difference(record(theta, move(theta))).startswith(said)


def test_heavy_tails_do_no_harm() -> None:
    """Scores of ranks are what they are on any scale: the p-value is the same for Cauchy-tailed parameters."""
    theta, draws = drawn(60, 9, turn=TURN)
    plain = rt.check_draws(theta, draws, f=["theta"], iid=True)
    wild = rt.check_draws(np.sinh(9 * theta), np.sinh(9 * draws), f=["theta"], iid=True)
    assert plain.levels["reversible"].pvalue == wild.levels["reversible"].pvalue < 0.05


class _LawOnly:
    """An output that knows the law of every entry and cannot be sampled."""

    def __init__(self, mean: Floats) -> None:
        self.mean = mean
        self.sample = None

    def marginal(self, f: Any) -> Any:
        return rt.Normal(self.mean[f.index[0]], 0.5**0.5).marginal(rt.identity)


def test_outputs_that_cannot_be_sampled_are_not_tested() -> None:
    """Draws of every entry by itself are no draw of the output; a record of which some are so is not tested either."""
    belief, entries = rt.Gaussian([0.0, 0.0], np.eye(2)), [rt.Coordinate(index=(j,)) for j in (0, 1)]
    some = rt.check(belief, noisy, lambda mu0, y: _LawOnly(y / 2), n=20, f=entries)
    assert "reversible" not in some.levels
    mixed = rt.check(
        belief,
        noisy,
        lambda mu0, y: _LawOnly(y / 2) if y[0] > 0 else rt.Gaussian(y / 2, np.eye(2) / 2),
        n=20,
        f=entries,
    )
    assert "reversible" not in mixed.levels
    assert "weak" in mixed.levels


def test_lost_replicates_leave_it_out_with_a_note() -> None:
    """The worst case of a lost pair has no bound here."""
    theta, draws = drawn(50, 9)
    theta[3] = np.nan
    result = rt.check_draws(theta, draws, on_failure="record", iid=True)
    assert "reversible" not in result.levels
    assert "reversible level not tested: replicates were lost." in result.notes


def test_truths_of_another_law_leave_it_out() -> None:
    """Even the exact posterior cannot be exchanged with them."""
    result = rt.check(BELIEF, noisy, posterior, n=50, truth=rt.Normal(0, 2))
    assert "reversible" not in result.levels


def test_of_a_group_one_replicate_counts() -> None:
    """Replicates that share a truth are not independent."""
    ran = rt.run(BELIEF, noisy, posterior, n=60, datasets=3, progress="off")
    row = rt.judge(ran).levels["reversible"].rows[0]
    assert row.n == 20
    alone = one_of_each(ran)
    assert rt.judge(alone).levels["reversible"].pvalue == row.pvalue


def test_functions_of_the_users_stand_in_for_entries() -> None:
    """Where no entry was asked about, the functions of theta are exchanged."""
    theta, draws = drawn(60, 9, turn=TURN)
    own = {"first": lambda t: t[0], "second": lambda t: t[1]}
    entries = rt.check_draws(theta, draws, f=["theta"], iid=True).levels["reversible"]
    assert rt.check_draws(theta, draws, f=own, iid=True).levels["reversible"].pvalue == entries.pvalue
    data = {"residual": lambda t, y: t[0] - y[0]}
    assert "reversible" not in rt.check_draws(theta, draws, f=data, y=theta, iid=True).levels


def test_many_entries_are_cut_and_a_note_says_so() -> None:
    """Of 12 entries all are looked at and 45 of 66 pairs, of 120 the first 100."""
    rng = np.random.default_rng(0)
    for d, said in ((12, "all 12 entries"), (120, "the first 100 of 120 entries")):
        theta, draws = rng.normal(size=(20, d)), rng.normal(size=(20, 9, d))
        ran = replicates_from_draws(theta, draws, f=["theta"], iid=True)
        found = levels()["reversible"].evidence(ran, "combination")
        assert found is not None
        (note,) = found.notes
        assert said in note
        assert "45 pairs" in note


def test_it_is_kept_and_read_again(tmp_path: Path) -> None:
    """A stored run, computed in two parts, has the same p-value."""
    whole = rt.judge(rt.run(BELIEF, noisy, posterior, n=30, progress="off"))
    for n in (13, 30):
        stored = rt.run(BELIEF, noisy, posterior, n=n, store=tmp_path / "run.db", progress="off")
    assert rt.judge(stored).levels["reversible"] == whole.levels["reversible"]
    bare = {name: array for name, array in stored.arrays.items() if name != SAME_DRAW}
    assert "reversible" not in rt.judge(replace(stored, arrays=bare, stored=None)).levels


def test_one_draw_of_a_chain_will_do() -> None:
    """A draw of a stationary chain is a draw of the output."""
    theta, draws = drawn(100, 40)
    result = rt.check_draws(theta, draws.reshape(100, 2, 20, 2), chains=2)
    assert result.levels["reversible"].pvalue > FALSE_ALARM
