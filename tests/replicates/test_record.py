"""What happened: parts of a run are runs of their own, and the record carries arrays that it does not know."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import ringtrue as rt
from ringtrue.replicates.record import KEPT, Asked, Failure, Field, Gathering, Header, Replicates, join, lost_record
from ringtrue.replicates.reducers import fields

HEADER = Header((Asked("a", "coordinate", "theta"), Asked("b", "function", "theta")))
FIELDS = (Field("u"), Field("rank", blank=-1), Field("energy", ()))
CAUSE = Failure(0, "procedure", "too large", "")


def _model(theta: float, rng: np.random.Generator) -> float:
    if theta > 1:
        raise ValueError("too large")
    return theta + rng.normal()


def _run(n: int = 60) -> rt.Replicates:
    study = rt.Study(rt.Normal(0, 1), _model, lambda mu0, y, rng: y / 2 + 0.7 * rng.normal(size=19))
    return rt.run(study, n=n, on_failure="record", failures_allowed=1)


def record(first: int, n: int, **more: NDArray[Any]) -> Replicates:
    """Return replicates whose numbers are those of their rows, with further arrays."""
    rows = np.arange(first, first + n)
    arrays = {"u": np.stack([rows, -rows], axis=1) / 100, "rank": np.stack([rows, rows], axis=1), "energy": rows / 7}
    return Replicates(HEADER, arrays | more, (), first, float(n))


def whole_with(first: int, n: int) -> Replicates:
    """Return replicates with arrays that nobody has declared, of every form."""
    rows = np.arange(first, first + n)
    return record(
        first,
        n,
        members=np.tile(rows[:, None, None], (1, 4, 2)).astype(np.uint16),
        **{"diagnostic/steps": rows.astype(float), "new/numbers": rows[:, None] * np.ones(5), "new/whole": rows},
    )


def same(one: Replicates, other: Replicates) -> None:
    """Check that two records are the same."""
    assert set(one.arrays) == set(other.arrays)
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name], err_msg=name)
        assert array.dtype == other.arrays[name].dtype
    assert one.failures == other.failures
    assert (one.first, one.stop) == (other.first, other.stop)


# Cutting.


@pytest.mark.parametrize("rows", [slice(10, 40), np.arange(0, 60, 3)], ids=["slice", "numbers"])
def test_a_part_has_its_rows_and_their_failures(rows: slice | NDArray[np.int64]) -> None:
    """Every array is cut, failures keep their cause and get their new number, and the rest is as it was."""
    whole = _run()
    part = whole.pick(rows)
    numbers = np.arange(60)[rows]
    assert 0 < len(part.failures) < len(whole.failures)
    assert [numbers[one.replicate] for one in part.failures] == [
        one.replicate for one in whole.failures if one.replicate in numbers
    ]
    np.testing.assert_array_equal(part.kept, whole.kept[rows])
    for name in ("u", "rank", "truth", "crps", "members", "energy"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows], err_msg=name)
    np.testing.assert_array_equal(part.reference, whole.reference)
    assert rt.judge(part).replicates.n == numbers.size


def test_the_first_replicates_are_those_of_a_smaller_study() -> None:
    """The beginning of a run is judged like a run that was asked for no more."""
    whole, small = _run(), _run(25)
    assert rt.judge(whole.part(0, 25)).pvalue == rt.judge(small).pvalue
    same(whole.part(0, 25), small)


def test_a_part_keeps_its_numbers_and_its_share_of_the_time() -> None:
    """Cutting by number keeps the numbers of replicates and failures; picking rows counts from 0."""
    whole = _run()
    part = whole.part(20, 50)
    assert (part.first, part.stop, part.n) == (20, 50, 30)
    assert part.failures == tuple(one for one in whole.failures if 20 <= one.replicate < 50)
    np.testing.assert_array_equal(part.kept, whole.kept[20:50])
    assert part.seconds == pytest.approx(whole.seconds / 2)
    again = part.part(30, 40)
    same(again, whole.part(30, 40))
    assert part.pick(slice(None)).first == 0


# Joining.


@given(st.sets(st.integers(1, 39), max_size=6), st.randoms())
def test_parts_in_any_order_are_the_whole(cuts: set[int], random: Any) -> None:
    """Cutting a record anywhere and joining the parts in any order gives it back, unknown arrays included."""
    whole = whole_with(5, 40)
    ends = [5, *sorted(5 + cut for cut in cuts), 45]
    parts = [whole.part(start, stop) for start, stop in pairwise(ends)]
    random.shuffle(parts)
    joined = join(parts)
    same(joined, whole)
    assert joined.seconds == pytest.approx(whole.seconds)


def test_a_part_may_reach_beyond_the_end() -> None:
    """What lies behind the last replicate is left out, with its failures."""
    last = record(20, 10)
    last = Replicates(HEADER, last.arrays, (Failure(22, "model", "x", ""), Failure(27, "model", "x", "")), 20)
    joined = join([record(0, 20), last, record(30, 5)], stop=25)
    assert joined.n == 25
    assert [one.replicate for one in joined.failures] == [22]


def test_arrays_of_some_live_replicates_are_left_out() -> None:
    """An array that only some replicates have, or have in another form, would lie about the others: it goes.

    What samplers say of themselves stays: it is nan where they said nothing.
    """
    both = join([whole_with(0, 10), record(10, 10)])
    assert set(both.arrays) == {"u", "rank", "energy", "diagnostic/steps"}
    np.testing.assert_array_equal(both.arrays["diagnostic/steps"], [*range(10), *[np.nan] * 10])
    other = record(10, 10, members=np.zeros((10, 9, 2), np.uint16), **{"new/whole": np.arange(10)})
    assert set(join([whole_with(0, 10), other]).arrays) == {"u", "rank", "energy", "new/whole", "diagnostic/steps"}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_lost_parts_do_not_cost_the_others_their_arrays(order: Sequence[int]) -> None:
    """Replicates that were lost as a whole have no arrays of their own to offer, and take none from the others."""
    parts = [whole_with(0, 10), lost_record(HEADER, FIELDS, 10, 10, CAUSE), whole_with(20, 10)]
    joined = join([parts[i] for i in order])
    assert set(joined.arrays) == set(whole_with(0, 1).arrays)
    assert [one.replicate for one in joined.failures] == list(range(10, 20))
    np.testing.assert_array_equal(joined.pick(slice(0, 10)).u, parts[0].u)
    np.testing.assert_array_equal(joined.arrays["members"][20:, 0, 0], np.arange(20, 30))
    assert np.isnan(joined.u[10:20]).all()
    assert (joined.rank[10:20] == -1).all()
    assert np.isnan(joined.arrays["diagnostic/steps"][10:20]).all()


def test_lost_replicates_do_not_stand_in_for_live_ones() -> None:
    """A part that is lost but has an array makes up for nobody who is alive and has not."""
    gone = whole_with(0, 10)
    gone = Replicates(HEADER, gone.arrays, tuple(Failure(i, "output", "nan", "") for i in range(10)), 0)
    joined = join([gone, whole_with(10, 10), record(20, 10)])
    assert joined.members is None
    assert set(joined.arrays) == {"u", "rank", "energy", "diagnostic/steps"}


def test_numbers_are_not_rounded_to_the_form_that_came_first() -> None:
    """Whole numbers and single precision make room for what comes later and is more precise."""
    for coarse in (np.arange(3), np.arange(3, dtype=np.float32)):
        joined = join([record(0, 3, extra=coarse), record(3, 3, extra=np.full(3, 0.1))])
        np.testing.assert_array_equal(joined.arrays["extra"], [0, 1, 2, 0.1, 0.1, 0.1])


# Filling.


def test_a_record_is_filled_in_any_order() -> None:
    """Rows come as slices or numbers, from anywhere; what was put is there."""
    whole = whole_with(0, 12)
    gathering = Gathering(HEADER, 0, 12, FIELDS)
    for rows in (np.array([11, 3, 5]), slice(6, 9), np.array([0, 1, 2, 4]), slice(9, 11)):
        gathering.put(rows, {name: array[rows] for name, array in whole.arrays.items()})
    same(gathering.replicates(), whole)


def test_whole_numbers_that_are_mostly_zero_are_what_came() -> None:
    """Zeros need no memory until something else comes, and rows that come again are what came last."""
    whole = record(0, 12, **{"new/flags": np.array([0] * 6 + [1, 0, 2] + [0] * 3), "new/none": np.zeros(12, np.int64)})
    gathering = Gathering(HEADER, 0, 12, FIELDS)
    for rows in (slice(0, 6), slice(9, 12), slice(6, 9)):
        gathering.put(rows, {name: array[rows] for name, array in whole.arrays.items()})
    same(gathering.replicates(), whole)
    gathering.put(slice(6, 9), {"new/flags": np.zeros(3, np.int64)})
    assert not gathering.replicates().arrays["new/flags"].any()


def test_declared_arrays_are_there_in_any_case() -> None:
    """If everybody is lost, declared arrays are blank, of the declared type, one column per function."""
    gathering = Gathering(HEADER, 3, 7, FIELDS)
    gathering.lose([Failure(i, "model", "x", "") for i in (6, 3, 4, 5)], came=False)
    found = gathering.replicates()
    assert [one.replicate for one in found.failures] == [3, 4, 5, 6]
    assert found.u.shape == found.rank.shape == (4, 2)
    assert found.energy.shape == (4,)
    assert np.isnan(found.u).all()
    assert found.rank.dtype == np.int64
    assert (found.rank == -1).all()
    assert not found.kept.any()


def test_numbers_of_a_replicate_that_came_and_was_lost_are_blank() -> None:
    """A replicate whose u is not finite has no other numbers either; truths and draws that were to be kept stay."""
    gathering = Gathering(HEADER, 0, 4, FIELDS)
    gathering.put(slice(0, 4), record(0, 4, **{f"{KEPT}theta": np.arange(4.0)}).arrays)
    gathering.lose([Failure(2, "output", "nan", "")], came=True)
    found = gathering.replicates()
    assert np.isnan(found.u[2]).all()
    assert np.isnan(found.energy[2])
    assert found.arrays[f"{KEPT}theta"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert found.kept.tolist() == [True, True, False, True]


def test_columns_of_a_record_are_contiguous() -> None:
    """The numbers of one test function lie side by side: judging reads them column by column."""
    assert join([record(0, 10), record(10, 10)]).u[:, 0].flags.c_contiguous


# Some of the functions, and what was kept.


def test_some_functions_of_a_record() -> None:
    """Arrays per function are cut, those of none stay; what has other axes may concern all functions and goes."""
    kept = {f"{KEPT}theta": np.ones((6, 2)), f"{KEPT}draws": np.ones((6, 9, 2))}
    some = join([whole_with(0, 6)]).about([1])
    assert [f.name for f in some.functions] == ["b"]
    assert set(some.arrays) == {"u", "rank", "energy", "diagnostic/steps", "new/whole"}
    np.testing.assert_array_equal(some.u, whole_with(0, 6).u[:, 1:])
    with_draws = record(0, 6, **kept).about([0])
    assert {name: array.shape for name, array in with_draws.kept_arrays().items()} == {
        "theta": (6, 2),
        "draws": (6, 9, 2),
    }


def test_what_was_kept_can_be_taken_off() -> None:
    """Truths and draws that were to be kept are found by name, and a judgement does without them."""
    plain = record(0, 4)
    kept = record(0, 4, **{f"{KEPT}theta": np.arange(4.0), f"{KEPT}draws/a": np.ones((4, 9))})
    assert set(kept.kept_arrays()) == {"theta", "draws/a"}
    assert set(kept.without_kept().arrays) == set(plain.arrays)
    assert plain.without_kept() is plain


def test_every_declared_array_is_an_attribute() -> None:
    """What reducers declare is found on the record by its name, with its declared type and axes."""
    ran = _run()
    for field in fields():
        array = getattr(ran, field.name)
        assert array.dtype == field.dtype
        assert array.shape == (60, len(ran.functions))[: 1 + len(field.axes)]


def test_a_record_is_not_a_sequence() -> None:
    """Iterating over a record is refused with the names of its arrays."""
    with pytest.raises(TypeError, match="not iterable; use its attributes u, z"):
        iter(record(0, 3))


def test_failures_are_grouped_by_cause() -> None:
    """The most frequent cause comes first, with one replicate as an example and the call that runs it."""
    failures = [Failure(i, "model", "x" if i % 3 else "y", "") for i in range(7)]
    causes = Replicates(HEADER, record(0, 7).arrays, tuple(failures)).causes()
    assert [(cause, many) for cause, many, _ in causes] == [("model: x", 4), ("model: y", 3)]
    assert causes[0][2].replay == "ringtrue.replay(study, 1)"
