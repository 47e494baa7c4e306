"""Looks at a run that grows: their shares of alpha, and the level that they keep together."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import ringtrue as rt
from ringtrue.execution.store import Store
from ringtrue.judgement.looks import LEAST, Look, share
from ringtrue.judgement.sentences.phrases import rounded
from ringtrue.replicates.record import Replicates, Stored
from ringtrue.statistics import sequential

from ..builders import BELIEF, grid, noisy, posterior, refusal, replicates, says, scores

ALPHA = 0.05
#: By how many looks nothing is left that these tests could see.
MANY = 24


def _kept(ran: Replicates, path: Path) -> Replicates:
    """Return replicates that a file will remember to have been judged."""
    if not path.exists():
        Store.create_or_open(path, header=ran.header, fingerprint={}, n=ran.n).close()
    return replace(ran, stored=Stored(str(path), 0, ran.n))


def test_shares_add_up_to_alpha() -> None:
    """However many looks there are, their shares add up to alpha at most, and each is positive."""
    shares = [Fraction(share(number)) for number in range(1, 1001)]
    assert all(a > b > 0 for a, b in pairwise(shares))
    assert float(sum(shares[:MANY])) == pytest.approx(1.0, abs=1e-7)
    assert sum(shares) < 1 + Fraction(1, 10**15)  # 0.8 and 0.1 are not floats
    assert share(0) == 1


def _grown(tmp_path: Path, sizes: tuple[int, ...], **about: float) -> list[rt.Result]:
    """Return the judgements of a run that grows."""
    u = np.random.default_rng(1).permutation(grid(sizes[-1], **about))
    every = [scores(special.ndtri(u[:n])) for n in sizes]
    return [rt.judge(_kept(ran, tmp_path / "run.db")) for ran in every]


def test_a_run_that_grows_is_judged_over_time(tmp_path: Path) -> None:
    """The first look is at tests for one n, with four fifths of alpha; all others are one, at evidence over time."""
    first, *others = _grown(tmp_path, (200, 400, 1600), spread=1.05)
    assert first.look == Look(1, 1)
    for later in others:
        assert later.look == Look(2, 2, anytime=True)
        assert later.spent == pytest.approx(0.1 * ALPHA)
        assert {row.method for row in later.tests} == {"log E"}
        again = rt.judge(replace(later.replicates, stored=None), alpha=0.1 * ALPHA, anytime=True)
        assert (again.verdict, again.measures, again.pvalue) == (later.verdict, later.measures, later.pvalue)


def test_an_unfinished_run_is_judged_over_time_with_all_but_a_fifth(tmp_path: Path) -> None:
    """It may be looked at again and again, finished or not; each is the same look."""
    u = np.random.default_rng(1).permutation(grid(400))
    path = tmp_path / "run.db"
    whole = _kept(scores(special.ndtri(u)), path)
    for n in (50, 200, 400):
        part = replace(whole.part(0, n), stored=Stored(str(path), 0, 400))
        result = rt.judge(part)
        assert result.look == Look(1, 1, anytime=True)
        assert result.spent == pytest.approx(0.8 * ALPHA)
    says(refusal(lambda: rt.judge(part, anytime=False)), "tests for one n", "another seed")


def test_another_test_of_the_same_replicates_is_another_look(tmp_path: Path) -> None:
    """n was not chosen by looking, so tests for one n still hold, each with its share."""
    ran = _kept(scores(special.ndtri(grid(100))), tmp_path / "run.db")
    found = [rt.judge(ran, test=test).look for test in ("combination", "ks", "combination", "cook")]
    assert found == [Look(1, 1), Look(2, 2), Look(1, 2), Look(3, 3)]


def test_advice_is_for_the_next_look(tmp_path: Path) -> None:
    """How many more replicates would do is computed at what a look will have when the run has grown, and they do."""
    ran = replicates(grid(100), names=["theta"])
    first = rt.judge(_kept(ran, tmp_path / "run.db"))
    level = sequential.level(1000, 0.1 * ALPHA)
    need, alone = (int(rt.planning.plan_certificate(alpha=alpha).n) for alpha in (level, ALPHA))
    says(first.sentence, f"about {rounded(need - 100)} more replicates")
    says(rt.judge(ran).sentence, f"about {rounded(alone - 100)} more replicates")
    again = rt.judge(_kept(replicates(grid(need), names=["theta"]), tmp_path / "run.db"))
    assert (again.look.number, again.verdict) == (2, rt.Verdict.WITHIN_TOLERANCE)


def test_a_result_says_which_look_it_is(tmp_path: Path) -> None:
    """The second look is in the sentence, every look in the table and in the JSON; without a file there is none."""
    ran = [_kept(replicates(grid(n), names=["theta"]), tmp_path / "run.db") for n in (100, 200)]
    first, second = map(rt.judge, ran)
    assert "ook 1" not in first.sentence
    says(str(first), "Look 1 at this run: judged at 4 %, so that all looks together have 5 %", "96 % interval")
    says(second.sentence, "Look 2 at this run: judged at 0.5 %, so that all looks together have 5 %")
    says(str(second), "99.5 % interval", "E = ")
    says(second.details(), "missed with probability 0.005")
    assert second.to_dict()["look"] == {"number": 2, "known": 2, "alpha": pytest.approx(0.005)}
    alone = rt.judge(replicates(grid(100), names=["theta"]))
    assert "ook" not in str(alone)
    assert alone.to_dict()["look"] == {"number": 0, "known": 0, "alpha": ALPHA}


def test_looks_end_before_intervals_become_certain() -> None:
    """A look that has next to nothing left of alpha is refused, and the advice before it stays finite."""
    last = next(number for number in range(1, 100) if ALPHA * share(number) < LEAST)
    says(refusal(lambda: Look(last, last).of(ALPHA)), f"look {last}", "another seed")
    assert Look(last - 1, last - 1).of(ALPHA) >= Look(last - 1, last - 1).later(ALPHA) == LEAST


@pytest.mark.parametrize("groups", [1, 2, 3, 4])
def test_few_groups_are_judged_over_time_in_silence(groups: int) -> None:
    """Intervals of a few groups at a small level reach beyond what a number can be, without a warning."""
    ran = rt.run(BELIEF, noisy, posterior, n=3 * groups, datasets=3)
    result = rt.judge(ran, anytime=True)
    assert result["theta"].spread.low < 1 < result["theta"].spread.high


@pytest.mark.slow
def test_a_look_that_cannot_be_is_not_remembered(tmp_path: Path) -> None:
    """A function chosen by the replicates is refused before the end, and judged after it as if nobody had asked."""
    path, chosen = tmp_path / "run.db", rt.BestOf([rt.Coordinate(index=()), rt.Vectorized(np.square, "square")])
    rt.run(BELIEF, noisy, posterior, n=60, f=chosen, store=path, shard=(0, 2))
    with Store.read(path) as store:
        part = store.replicates(0, 30)
    says(refusal(lambda: rt.judge(part)), "chosen by the replicates", "wait for the end")
    with Store.read(path) as store:
        assert store.looks == ()
    rt.run(BELIEF, noisy, posterior, n=60, f=chosen, store=path)
    assert rt.judge(rt.store.load(path)).look == Look(1, 1)
