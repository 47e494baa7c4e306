"""Random streams: the same key gives the same numbers, and nothing else does."""

from collections.abc import Callable
from itertools import combinations
from threading import Thread
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.streams import Role, Streams
from tests.builders import kolmogorov

ROLES: tuple[Role, ...] = get_args(Role)
indices = st.lists(st.integers(0, 10**6), min_size=1, max_size=30)


@given(st.integers(0, 2**64), st.sampled_from(ROLES), st.integers(0, 2**63), st.integers(0, 2**14))
def test_same_key_same_stream(seed: int, role: Role, block: int, lane: int) -> None:
    """A stream is a function of (seed, role, block, lane), whatever was drawn before."""
    used = Streams(seed)
    used.generator(role, 5).normal(size=7)
    used.generator("truth", block, lane).integers(9, size=3, dtype=np.uint32)
    again = used.generator(role, block, lane).random(20)
    assert np.array_equal(Streams(seed).generator(role, block, lane).random(20), again)


def test_no_key_shares_a_number_with_another() -> None:
    """Seeds, roles, blocks and lanes, neighbouring ones too, give streams without a common number."""
    # 132 streams of 100 doubles: two of 13200 53-bit numbers coincide by chance with probability 13200^2 / 2^54 < 1e-8.
    places = [(block, lane) for block in (0, 1, 2**32) for lane in (0, 1)]
    keys = [(seed, role, *place) for seed in (0, 1) for role in ROLES for place in places]
    seen = [Streams(seed).generator(role, block, lane).random(100) for seed, role, block, lane in keys]
    assert all(np.intersect1d(a, b).size == 0 for a, b in combinations(seen, 2))


def test_roles_can_be_used_side_by_side() -> None:
    """Drawing from one role does not move another."""
    streams = Streams(3)
    truth, data = streams.generator("truth"), streams.generator("data")
    first = truth.random(5)
    data.random(11)
    rest = truth.random(5)
    assert np.array_equal(np.concatenate([first, rest]), Streams(3).generator("truth").random(10))


@pytest.mark.parametrize("other", [("data", 3, 0), ("data", 4, 0), ("data", 3, 1), ("truth", 3, 0)])
def test_generators_do_not_disturb_each_other(other: tuple[Role, int, int]) -> None:
    """A generator that somebody still holds goes on where it was, whichever other one is made and used meanwhile."""
    streams = Streams(3)
    held = streams.generator("data", 3)
    first = held.random(5)
    made = streams.generator(*other)
    assert made is not held
    numbers = made.random(7)
    streams.uniforms("ties", np.arange(9), 3)
    rest = held.random(5)
    assert np.array_equal(np.concatenate([first, rest]), Streams(3).generator("data", 3).random(10))
    assert np.array_equal(numbers, Streams(3).generator(*other).random(7))


HOLD: tuple[Callable[[np.random.Generator], Callable[[int], Any]], ...] = (
    lambda rng: rng.random,
    lambda rng: lambda many: rng.random(many),
    lambda rng: np.random.Generator(rng.bit_generator).random,
)


@pytest.mark.parametrize("hold", HOLD)
def test_what_holds_a_generator_keeps_it(hold: Callable[[np.random.Generator], Callable[[int], Any]]) -> None:
    """A method, a closure or the bits of a generator go on where they were, though a generator may be used again."""

    def numbers(streams: Streams, between: int) -> list[float]:
        held = hold(streams.generator("data", 3))
        for block in range(between):
            streams.generator("truth", block).random(3)
        return list(held(5))

    assert numbers(Streams(3), 4) == numbers(Streams(3), 0)


def test_what_nobody_holds_is_used_again() -> None:
    """Generators that were let go are one object, whatever was done to it: the test above would else say nothing."""
    streams = Streams(3)
    first = id(streams.generator("data", 1))
    rng = streams.generator("data", 2)
    assert id(rng) == first
    rng.bit_generator.state = np.random.Philox(5).state
    del rng
    assert np.array_equal(streams.generator("data", 1).random(5), Streams(3).generator("data", 1).random(5))


def test_a_generator_with_other_bits_is_not_used_again() -> None:
    """Whoever puts other bits into a generator has it to himself."""
    streams = Streams(3)
    streams.generator("data").__init__(np.random.PCG64(1))  # type: ignore[misc]
    assert np.array_equal(streams.generator("data", 1).random(5), Streams(3).generator("data", 1).random(5))


def test_threads_do_not_share_a_generator() -> None:
    """Four threads that draw from the same streams have the numbers that each would have alone."""
    streams = Streams(3)
    wrong: list[int] = []

    def draw(first: int) -> None:
        for block in range(first, first + 500):
            rng = streams.generator("data", block)
            found = [rng.random(), rng.random()]
            if found != expected[block]:
                wrong.append(block)

    expected = [Streams(3).generator("data", block).random(2).tolist() for block in range(2000)]
    threads = [Thread(target=draw, args=(500 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_new_generator_has_no_half_used_word() -> None:
    """A 32-bit number left in the buffer of one block does not leak into the next."""
    streams = Streams(3)
    streams.generator("data", 0).integers(9, dtype=np.uint32)
    left_over = streams.generator("data", 1).integers(2**32, size=8, dtype=np.uint32)
    assert np.array_equal(left_over, Streams(3).generator("data", 1).integers(2**32, size=8, dtype=np.uint32))


@given(indices, st.integers(1, 11), st.data())
def test_uniforms_do_not_depend_on_grouping(index: list[int], width: int, data: st.DataObject) -> None:
    """The row of a replicate is a function of its index alone, however rows are ordered, repeated and grouped."""
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(index) - 1, 1)), max_size=5)) - {len(index)})
    whole = Streams(7).uniforms("ties", np.array(index), width)
    groups = [np.array(part) for part in np.split(np.array(index), cuts)]
    grouped = np.concatenate([Streams(7).uniforms("ties", part, width) for part in groups])
    alone = np.concatenate([Streams(7).uniforms("ties", np.array([i]), width) for i in index])
    assert whole.shape == (len(index), width)
    assert np.array_equal(whole, grouped)
    assert np.array_equal(whole, alone)


@pytest.mark.parametrize("width", [1, 3, 4, 5, 8, 9])
def test_uniforms_of_neighbours_do_not_overlap(width: int) -> None:
    """No two replicates share a number, at widths around the four numbers of a Philox word."""
    # At most 900 x 9 doubles: two coincide by chance with probability below 8100^2 / 2^54 < 4e-9.
    rows = Streams(1).uniforms("members", np.arange(900), width)
    assert len(np.unique(rows)) == rows.size


def test_uniforms_are_uniform_across_replicates() -> None:
    """A column of uniforms over consecutive replicates follows U(0,1); one that repeats itself does not."""
    # Massart: P(sqrt(n) D > 2.7) <= 2 exp(-2 * 2.7^2) = 9e-7. The twin, a counter 100 times too slow, has 100
    # different numbers: it passes with probability P(sqrt(100) D <= 0.27) = 4e-7.
    n = 10_000
    column = Streams(11).uniforms("ties", np.arange(n), 1)[:, 0]
    slow = np.repeat(column[: n // 100], 100)
    assert kolmogorov(column) <= 2.7 / np.sqrt(n)
    assert kolmogorov(slow) > 2.7 / np.sqrt(n)


def test_negative_seed_is_refused() -> None:
    """A seed must be a non-negative integer."""
    with pytest.raises(ValueError, match="non-negative"):
        Streams(-1)
