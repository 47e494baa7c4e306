"""What is seen of a run that goes on: complete replicates in their order, and a look that the file remembers."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.execution.store import Store
from ringtrue.judgement.watching import Sight, Watch
from ringtrue.replicates.record import Replicates

from ..builders import BELIEF, noisy, posterior, refusal, says, too_narrow

N = 60


def _ran(procedure: Any = posterior, **settings: Any) -> Replicates:
    return rt.run(BELIEF, noisy, procedure, n=N, **settings)


def _store(path: Path, ran: Replicates) -> Store:
    return Store.create_or_open(path, header=ran.header, fingerprint={}, n=ran.n)


def _add(path: Path, ran: Replicates, start: int, stop: int) -> None:
    """Write some replicates, as a writer does that then ends."""
    with _store(path, ran) as store:
        store.add(ran.part(start, stop))


def _sight(watching: Watch) -> Sight:
    seen = watching.see()
    assert isinstance(seen, Sight), seen
    return seen


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a store is to be."""
    return tmp_path / "run.db"


def test_a_run_is_seen_from_before_its_start_to_its_end(path: Path) -> None:
    """No file, an empty one, one without replicates, a part, all: each is said to be what it is."""
    watching, ran = Watch(path, rt.judge), _ran()
    assert watching.see() == f"there is no {path} yet"
    path.touch()
    assert watching.see() == f"there is nothing in {path} yet"
    path.unlink()
    with _store(path, ran) as store:
        seen = _sight(watching)
        assert (seen.standing.done, seen.held, seen.ended) == (0, True, False)
        assert "first replicate" in seen.unjudged
        store.add(ran.part(0, 20))
        store.flush()
        seen = _sight(watching)
        assert seen.result is not None
        assert (seen.result.replicates.n, seen.result.look.anytime, seen.ended) == (20, True, False)
    assert not _sight(watching).held
    _add(path, ran, 20, N)
    seen = _sight(watching)
    assert seen.result is not None
    assert (seen.result.replicates.n, seen.complete, seen.ended, seen.unjudged) == (N, True, True, "")
    path.rename(path.with_name("moved.db"))
    assert watching.see() == f"there is no {path} yet"


def test_only_replicates_before_the_first_missing_one_are_judged(path: Path) -> None:
    """What is done beyond a gap was done first because it was quick."""
    ran = _ran()
    _add(path, ran, 0, 10)
    _add(path, ran, 30, N)
    seen = _sight(Watch(path, rt.judge))
    assert seen.result is not None
    assert (seen.standing.done, seen.result.replicates.n) == (40, 10)


def test_groups_are_judged_as_a_whole(path: Path) -> None:
    """Of replicates that share a truth, all or none."""
    ran = _ran(datasets=3)
    _add(path, ran, 0, 10)
    seen = _sight(Watch(path, rt.judge))
    assert seen.result is not None
    assert seen.result.replicates.n == 9


def test_the_file_remembers_who_watched(path: Path) -> None:
    """All sights are one look, over time, and the verdict on the finished run is the same one to the last digit."""
    watching, ran = Watch(path, rt.judge), _ran(too_narrow)
    looks = []
    for start, stop in ((0, 20), (20, 40), (40, N)):
        _add(path, ran, start, stop)
        last = _sight(watching).result
        with Store.read(path) as store:
            looks.append(store.looks)
    assert [one[0]["test"] for one in looks] == ["over time"] * 3
    assert {len(one) for one in looks} == {1}
    later = rt.judge(rt.store.load(path))
    assert last is not None
    assert (later.look, later.verdict, later.pvalue) == (last.look, last.verdict, last.pvalue)
    # As text: a row with an ideal of nan equals no other.
    assert (str(later.measures), later.sentence, later.evalue) == (str(last.measures), last.sentence, last.evalue)
    assert later.look.anytime


def test_progress_alone_is_no_look(path: Path) -> None:
    """Who sees neither evidence nor sizes leaves tests for one n as they were: the broken twin of watching."""
    watching, ran = Watch(path, None), _ran(too_narrow)
    for start, stop in ((0, 30), (30, N)):
        _add(path, ran, start, stop)
        seen = _sight(watching)
        assert (seen.result, seen.unjudged, seen.trails) == (None, "", {})
    assert seen.ended
    with Store.read(path) as store:
        assert store.looks == ()
    assert not rt.judge(rt.store.load(path)).look.anytime


def test_a_finished_run_is_judged_as_judge_does(path: Path) -> None:
    """Whoever comes after the end has not looked before: tests for one n, and one look."""
    ran = _ran(too_narrow)
    _add(path, ran, 0, N)
    found, other = _sight(Watch(path, rt.judge)), rt.judge(rt.store.load(path))
    assert found.result is not None
    assert (found.result.look, found.result.pvalue) == (other.look, other.pvalue)
    assert not found.result.look.anytime
    assert found.trails == {}


def test_a_verdict_ends_a_run_that_nobody_goes_on_with(path: Path) -> None:
    """A run until decided leaves a file that has room for more; an open question is waited for."""
    result = rt.check(
        BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, 0.1), until="decided", max_n=500, store=path, alpha=1e-6
    )
    seen = _sight(Watch(path, partial(rt.judge, alpha=1e-6)))
    assert seen.result is not None
    assert (seen.complete, seen.held, seen.ended) == (False, False, True)
    assert seen.result.verdict is result.verdict is rt.Verdict.MISCALIBRATED
    path.with_name("run.db.lock").touch()  # somebody writes, or was killed
    assert not _sight(Watch(path, partial(rt.judge, alpha=1e-6))).ended


def test_a_run_that_failed_is_shown_and_not_judged(path: Path) -> None:
    """Causes are counted also where nothing is left to judge, and why is said."""

    def broken(mu0: Any, y: Any) -> Any:
        raise ArithmeticError("no fit" if y > 0 else "no start")

    rt.run(BELIEF, noisy, broken, n=20, store=path, on_failure="record", failures_allowed=1.0)
    seen = _sight(Watch(path, rt.judge))
    assert seen.result is None
    says(seen.unjudged, "at least one replicate", "all 20 were lost")
    assert {cause for cause, _ in seen.causes} == {
        f"failed in the procedure: ArithmeticError: no {what}" for what in ("fit", "start")
    }
    assert sum(many for _, many in seen.causes) == seen.standing.failed > 0


def test_a_damaged_file_is_one_sentence(path: Path) -> None:
    """A file that cannot be read is waited for while it changes, as a copy does that is not finished, and then told."""
    _add(path, _ran(), 0, N)
    whole = path.read_bytes()
    watching = Watch(path, rt.judge)
    path.write_bytes(whole[: len(whole) // 2])
    first = watching.see()
    assert isinstance(first, str)
    says(first, "cannot be read now")
    says(refusal(watching.see, rt.errors.StoreError), "damaged")
    path.write_bytes(whole)
    assert _sight(watching).complete
    path.write_text("n,u\n" * 100)
    watching.see()
    says(refusal(watching.see, rt.errors.StoreError), "not a store")


def test_another_file_of_the_same_name_is_another_run(path: Path, tmp_path: Path) -> None:
    """Nothing of the run that was there before is shown of it."""
    other = tmp_path / "other.db"
    watching = Watch(path, rt.judge)
    _add(path, _ran(too_narrow), 0, 30)
    before = _sight(watching).result
    _add(other, _ran(seed=1), 0, 30)
    shutil.move(other, path)
    after = _sight(watching).result
    assert before is not None
    assert after is not None
    assert after.replicates.seed == 1
    assert before.pvalue != after.pvalue


def test_nothing_is_judged_twice(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has not grown is judged once; one that has grown when there is time, and its end at once."""
    counts = list[int]()

    def judged(ran: Replicates) -> rt.Result:
        counts.append(ran.n)
        return rt.judge(ran)

    ran, watching = _ran(), Watch(path, judged)
    monkeypatch.setattr("ringtrue.judgement.watching._REST", 1e9)  # no time but for the first, which is not counted
    with _store(path, ran) as store:
        for stop in (10, 20, 30, 40, 50):
            store.add(ran.part(stop - 10, stop))
            store.flush()
            assert [_sight(watching).standing.done for _ in range(3)] == [stop] * 3
        store.add(ran.part(50, N))
        store.flush()
        assert _sight(watching).complete
    assert counts == [10, 20, N]


def test_lost_replicates_that_are_computed_again_are_judged_again(path: Path) -> None:
    """The number of replicates is the same then, and what was found of them is not."""

    def sick(mu0: Any, y: Any) -> Any:
        if y > 1:
            raise ArithmeticError("no fit")
        return posterior(mu0, y)

    ran = _ran()
    _add(path, _ran(sick, on_failure="record"), 0, 30)
    watching = Watch(path, rt.judge)
    lost = _sight(watching).standing.failed
    assert lost > 0
    with _store(path, ran) as store:
        assert store.forget_failures() == lost
        for start, stop in store.missing(0, 30):
            store.add(ran.part(start, stop))
    seen = _sight(watching)
    assert seen.result is not None
    assert (seen.standing.failed, seen.result.replicates.n, seen.result.failures) == (0, 30, ())


@pytest.mark.slow
def test_a_function_chosen_by_the_replicates_waits_for_the_end(path: Path) -> None:
    """It is not judged before, nothing is remembered, and the end is judged as if nobody had watched."""
    chosen = rt.BestOf([rt.Coordinate(index=()), rt.Vectorized(np.square, "square")])
    ran = _ran(f=chosen)
    _add(path, ran, 0, 30)
    watching = Watch(path, rt.judge)
    says(_sight(watching).unjudged, "chosen by the replicates", "wait for the end")
    with Store.read(path) as store:
        assert store.looks == ()
    _add(path, ran, 30, N)
    seen = _sight(watching)
    assert seen.result is not None
    assert not seen.result.look.anytime
