"""Replicates that were lost, tried again; and what is said of them if they are not."""

import sys
from pathlib import Path
from typing import Any

import pytest

import ringtrue as rt
from ringtrue.execution.store import Store
from tests.builders import BELIEF, noisy, refusal, says


class Sick:
    """A procedure that fails for large data until a file is there."""

    def __init__(self, cure: Path, log: Path) -> None:
        self.cure, self.log = cure, log

    def __call__(self, mu0: Any, y: Any, rng: Any) -> Any:
        """Write that it was called, and return draws or fail."""
        with self.log.open("a") as file:
            file.write("x")
        if abs(y) > 1.5 and not self.cure.exists():
            raise ValueError("no fit")
        return y / 2 + 0.7 * rng.normal(size=9)


@pytest.fixture
def sick(tmp_path: Path) -> Sick:
    """Return one that is not cured."""
    return Sick(tmp_path / "cure", tmp_path / "log")


def _run(procedure: Any, path: Path, **settings: Any) -> rt.Replicates:
    return rt.run(BELIEF, noisy, procedure, n=60, store=path, progress=False, **settings)


@pytest.mark.parametrize("keep", [None, "draws"])
def test_only_the_lost_are_computed_again(sick: Sick, tmp_path: Path, keep: Any) -> None:
    """With the cause mended the run is, bit by bit, that which never failed; the others are not computed again."""
    path = tmp_path / "run.db"
    lost = len(_run(sick, path, on_failure="record", keep=keep).failures)
    assert 0 < lost < 30
    sick.cure.touch()
    sick.log.unlink()
    mended = _run(sick, path, retry_failures=True, keep=keep)
    # One that is there is computed to see that the study is the same one.
    assert len(sick.log.read_text()) <= lost + 2
    assert not mended.failures
    undisturbed = _run(sick, tmp_path / "other.db", keep=keep)
    for name, array in undisturbed.arrays.items():
        assert array.tobytes() == mended.arrays[name].tobytes(), name
    if keep:
        with Store.read(path) as one, Store.read(tmp_path / "other.db") as other:
            assert one.draws(0, 60)["draws"].tobytes() == other.draws(0, 60)["draws"].tobytes()


def test_what_fails_again_stays_lost(sick: Sick, tmp_path: Path) -> None:
    """Trying again without a cure changes nothing."""
    path = tmp_path / "run.db"
    first = _run(sick, path, on_failure="record")
    again = _run(sick, path, on_failure="record", retry_failures=True)
    assert [one.replicate for one in again.failures] == [one.replicate for one in first.failures]
    assert again.u.tobytes() == first.u.tobytes()


def test_losses_of_a_store_are_not_handed_out_in_silence(sick: Sick, tmp_path: Path) -> None:
    """Whoever wants to stop at failures is told that there were some, and what to pass."""
    path = tmp_path / "run.db"
    _run(sick, path, on_failure="record")
    with pytest.raises(rt.errors.ReplicateFailed) as caught:
        _run(sick, path)
    says(str(caught.value), "were lost", "no fit", "on_failure='record'", "retry_failures=True")


def test_trying_again_needs_a_store() -> None:
    """Without one nothing was lost before."""
    message = refusal(lambda: rt.run(BELIEF, noisy, lambda mu0, y: rt.Normal(y / 2, 0.7), n=5, retry_failures=True))
    says(message, "retry_failures", "store=")


def test_an_exit_is_one_lost_replicate(tmp_path: Path) -> None:
    """A procedure that calls sys.exit() loses its replicate, alone as with workers."""

    def leaves(mu0: Any, y: Any) -> Any:
        if y > 1.5:
            sys.exit(3)
        return rt.Normal(y / 2, 0.7)

    ran = rt.run(BELIEF, noisy, leaves, n=40, on_failure="record", progress=False)
    assert 0 < len(ran.failures) < 40
    assert {one.error for one in ran.failures} == {"it called sys.exit(3)"}
