"""When a run has enough: of replicates in their order, or of time."""

import itertools

import pytest

import ringtrue as rt
from ringtrue.execution.gate import Gate
from tests.builders import BELIEF, noisy, posterior, refusal, says

RAN = rt.run(BELIEF, noisy, posterior, n=6, progress=False)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_replicates_are_seen_in_their_order(order: tuple[int, ...]) -> None:
    """Whatever order they come in, a rule sees each once, after all before it."""
    seen: list[int] = []
    gate = Gate(lambda part: seen.append(part.first), None, None, 0)
    for k in order:
        gate.see(RAN.part(2 * k, 2 * k + 2))
    assert seen == [0, 2, 4]
    assert gate.done == 6
    assert gate.stop(6) == 6


def test_a_run_ends_when_there_are_enough_and_not_before() -> None:
    """A rule may say how many it will take; it is not asked again."""
    gate = Gate(lambda part: 3, None, None, 0)
    gate.see(RAN.part(0, 2))
    assert not gate.closed
    gate.see(RAN.part(2, 4))
    assert gate.closed
    assert gate.stop(6) == 3


def test_a_share_starts_at_its_own_replicate() -> None:
    """With a limit of time only: what counts is what is there from its start on."""
    gate = Gate(None, 1e9, (1, 2), 2)
    gate.see(RAN.part(2, 4))
    assert (gate.done, gate.stop(6), gate.closed) == (4, 4, False)


def test_nothing_done_in_time_is_said() -> None:
    """A run without a replicate has nothing to be judged."""
    gate = Gate(None, 1e-9, None, 0)
    assert gate.closed
    says(refusal(lambda: gate.stop(6)), "no replicate was done within max_seconds")


def test_a_run_by_a_rule_of_ones_own() -> None:
    """Any function of the replicates will do; the result has as many as it says."""
    found = rt.run(BELIEF, noisy, posterior, n=100, until=lambda part: 10 if part.stop >= 10 else None, progress=False)
    assert found.n == 10
    whole = rt.run(BELIEF, noisy, posterior, n=10, progress=False)
    assert found.u.tobytes() == whole.u.tobytes()
