"""Stores: what goes in comes out, bit by bit, whatever happens to the process, the disk or the file in between."""

import contextlib
import functools
import gc
import io
import itertools
import json
import math
import os
import random
import resource
import signal
import sqlite3
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ringtrue as rt
from ringtrue.errors import InvalidStudy, StoreBusy, StoreDamaged, StoreError, StoreMismatch
from ringtrue.execution.store import Store, codec, load, merge, repair
from ringtrue.execution.store.codec import Unreadable, checksum, packed, unpacked
from ringtrue.execution.store.identity import fingerprint
from ringtrue.execution.store.meta import Meta, meta_rows
from ringtrue.replicates.record import Failure, Replicates, join, lost_record
from ringtrue.replicates.reducers import fields
from ringtrue.replicates.reducers.weak import reference_values
from ringtrue.replicates.simulate import compute, header_of

N = 60


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal(size=2)


def _draws(mu0: Any, y: Any, rng: Any) -> Any:
    if y[0] > 1.6:
        raise ValueError(f"no fit for {y[0] > 2.5} \ud800\0")
    return y / 2 + 0.7 * rng.normal(size=(9, 2))


STUDY = rt.Study(rt.Normal([0.0, 0.0], 1), _model, _draws)
HEADER = header_of(STUDY)
MARK = fingerprint(STUDY)


@functools.cache
def _part(first: int, count: int, keep: Any = None) -> Replicates:
    return compute(STUDY, first, count, keep=keep).record


@functools.cache
def _reference() -> Any:
    return reference_values(STUDY, 0, N)


def _open(path: Path, n: int = N, **changes: Any) -> Store:
    given_: dict[str, Any] = {"header": HEADER, "fingerprint": MARK, "n": n, "keep": None} | changes
    return Store.create_or_open(path, **given_)


def _filled(path: Path, *, step: int = 10, n: int = N, keep: Any = None) -> Path:
    """Make a store of rows of ``step`` replicates."""
    with _open(path, n, keep=keep) as store:
        store.add_reference(0, _reference()[:n])
        for first in range(0, n, step):
            store.add(_part(first, min(step, n - first), keep))
            store.flush()
    return path


@functools.cache
def _original(n: int = N) -> Replicates:
    return join([_part(0, N)], stop=n, reference=_reference()[:n])


def _content(replicates: Replicates) -> Any:
    """Return all of Replicates, in a form in which equality means equality of every bit."""
    failures = [(one.replicate, one.stage, one.error) for one in replicates.failures]
    arrays = {name: (part.dtype, part.shape, part.tobytes()) for name, part in replicates.arrays.items()}
    return replicates.header, replicates.first, failures, arrays, replicates.reference.tobytes()


def _same(one: Replicates, other: Replicates) -> bool:
    return bool(_content(one) == _content(other))


def test_the_study_of_these_tests_has_failures_and_members() -> None:
    """The example exercises what a store keeps besides u."""
    assert 0 < len(_original().failures) < N / 2
    assert _original().members is not None


def test_a_store_gives_back_what_was_put_in(tmp_path: Path) -> None:
    """Replicates, failures with their tracebacks, reference values and header survive, and nothing else is left."""
    path = _filled(tmp_path / "run.db")
    store = Store.read(path)
    assert _same(store.replicates(), _original())
    assert store.failures() == _part(0, 10).failures + tuple(f for k in range(10, N, 10) for f in _part(k, 10).failures)
    assert store.header == HEADER
    assert (store.fingerprint, store.n, store.keep, store.path) == (MARK, N, None, path)
    assert [one["numpy"] for one in store.versions] == [np.__version__]
    assert np.array_equal(store.reference(7), _reference()[:7], equal_nan=True)
    assert os.listdir(tmp_path) == ["run.db"]


def test_judging_needs_only_the_file(tmp_path: Path) -> None:
    """What a store has is judged as what was put in, but for the share of alpha that its looks have."""
    path = _filled(tmp_path / "run.db")
    result = rt.judge(Store.read(path).replicates())
    expected = rt.judge(_original(), alpha=result.spent)
    # As text: an ideal of nan is not equal to itself since Python 3.13.
    found, wanted = ((one.verdict, one.pvalue, repr(one.measures)) for one in (result, expected))
    assert found == wanted
    assert str(rt.judge(replace(Store.read(path).replicates(), stored=None))) == str(rt.judge(_original()))


@pytest.mark.slow
@settings(max_examples=30)
@given(st.sets(st.integers(1, N - 1)), st.randoms(use_true_random=False), st.integers(1, 7))
def test_any_partition_in_any_order_gives_the_same(cuts: set[int], order: random.Random, every: int) -> None:
    """However 0..n is cut into records, added and flushed, the Replicates are bit-identical."""
    edges = [0, *sorted(cuts), N]
    parts = list(itertools.pairwise(edges))
    order.shuffle(parts)
    with tempfile.TemporaryDirectory() as folder, _open(Path(folder) / "run.db") as store:
        store.add_reference(0, _reference())
        for k, (start, stop) in enumerate(parts):
            store.add(_part(start, stop - start))
            if k % every == 0:
                store.flush()
        assert store.missing(0, N) == []
        assert _same(store.replicates(), _original())


def test_gaps_are_known_before_and_after_writing(tmp_path: Path) -> None:
    """Missing, prefix and done count what was added for a writer, flushed or not, and what is written for a reader."""
    with _open(tmp_path / "run.db") as store:
        store.add(_part(20, 10))
        store.add(_part(0, 5))
        assert store.missing(0, N) == [(5, 20), (30, N)]
        assert store.missing(3, 25) == [(5, 20)]
        assert store.missing(22, 28) == []
        assert (store.prefix(), store.done) == (5, 15)
        assert Store.read(tmp_path / "run.db").done == 0
        store.flush()
        reader = Store.read(tmp_path / "run.db")
        assert (reader.missing(0, N), reader.prefix(), reader.done) == ([(5, 20), (30, N)], 5, 15)


def test_what_is_missing_is_said_and_a_prefix_can_be_had(tmp_path: Path) -> None:
    """An incomplete store refuses all n replicates, says how many are missing, and gives the first ones."""
    with _open(tmp_path / "run.db") as store:
        store.add_reference(0, _reference())
        store.add(_part(0, 30))
        store.add(_part(40, 10))
        with pytest.raises(InvalidStudy, match=r"20 of them, 30 to 39, 50 to 59"):
            store.replicates()
        assert _same(store.replicates(n=store.prefix()), _original(30))
        assert _same(store.replicates(0, 17), _original(17))
        shard = store.replicates(40, 50)
        assert shard.first == 40
        assert shard.u.tobytes() == _original().u[40:50].tobytes()


def test_overlaps_and_misfits_are_refused(tmp_path: Path) -> None:
    """A record that is there already, of other shape, or of a reader is refused, and nothing changes."""
    with _open(tmp_path / "run.db") as store:
        store.add(_part(0, 10))
        for first, count in ((0, 10), (5, 10), (9, 1)):
            with pytest.raises(ValueError, match="overlap"):
                store.add(_part(first, count))
        with pytest.raises(ValueError, match="was expected"):
            store.add(replace(_part(20, 1), arrays={**_part(20, 1).arrays, "u": np.zeros((1, 1))}))
        with pytest.raises(ValueError, match="from 0 on"):
            store.add_reference(5, _reference())
        with pytest.raises(StoreError, match="not open for writing"):
            Store.read(store.path).add(_part(20, 10))
        assert store.done == 10


def test_lost_records_stand_beside_others(tmp_path: Path) -> None:
    """Records that were lost whole, which have no ranks of members, are joined with others without harm."""
    lost = lost_record(HEADER, fields(), 10, 5, Failure(10, "procedure", "killed", ""))
    whole = join([_part(0, 10), lost, _part(15, 5)], stop=20, reference=_reference()[:20])
    with _open(tmp_path / "run.db") as store:
        store.add_reference(0, _reference())
        for record in (lost, _part(15, 5), _part(0, 10)):
            store.add(record)
        assert _same(store.replicates(n=20), whole)


def test_progress_counts(tmp_path: Path) -> None:
    """Progress tells n, done, failed, seconds and the times of writing."""
    start = time.time()
    _filled(tmp_path / "run.db", n=40)
    with _open(tmp_path / "run.db", n=100):
        standing = Store.read(tmp_path / "run.db").progress()
    assert (standing.n, standing.done, standing.since) == (100, 40, 0)
    assert standing.failed == sum(one.replicate < 40 for one in _original().failures)
    assert standing.seconds == pytest.approx(sum(_part(k, 10, None).seconds for k in range(0, 40, 10)))
    assert standing.first_write is not None
    assert standing.last_write is not None
    assert start <= standing.first_write <= standing.last_write <= standing.opened <= time.time()


def test_kept_draws_come_back(tmp_path: Path) -> None:
    """Truths and draws come back for any range, those of lost replicates as nan."""
    path = _filled(tmp_path / "run.db", keep="draws")
    store = Store.read(path)
    whole = _part(0, N, "draws").kept_arrays()
    for start, stop in ((0, N), (7, 33), (12, 13)):
        got = store.draws(start, stop)
        assert list(got) == list(whole)
        assert all(got[name].tobytes() == whole[name][start:stop].tobytes() for name in whole)
    assert _same(store.replicates(), _original())
    with pytest.raises(InvalidStudy, match="keep='draws'"):
        Store.read(_filled(tmp_path / "other.db")).draws(0, 5)


def test_n_grows_and_never_shrinks(tmp_path: Path) -> None:
    """Opening with a larger n raises it, with a smaller one leaves it, and what is there stays."""
    path = _filled(tmp_path / "run.db", n=30)
    with _open(path, 20) as store:
        assert store.n == 30
    with _open(path, N) as store:
        assert store.missing(0, store.n) == [(30, N)]
        store.add(_part(30, 30))
        store.add_reference(30, _reference()[30:])
        assert _same(store.replicates(), _original())


@pytest.mark.parametrize("name", ["seed", "draws", "batch", "tag"])
def test_another_study_is_refused_with_both_sides(tmp_path: Path, name: str) -> None:
    """A mismatch names the first field that differs, both its values, and what to do."""
    path = _filled(tmp_path / "run.db")
    with pytest.raises(StoreMismatch, match=rf"{name} is .* there, but a new one here.*another file name.*tag="):
        _open(path, fingerprint={**MARK, name: "a new one"})
    assert not (tmp_path / "run.db.lock").exists()
    assert _same(Store.read(path).replicates(), _original())


def test_other_test_functions_are_refused(tmp_path: Path) -> None:
    """A header that differs where the fingerprint cannot see it is refused too."""
    path = _filled(tmp_path / "run.db")
    with pytest.raises(StoreMismatch, match="list of test functions"):
        _open(path, header=replace(HEADER, functions=HEADER.functions[::-1]))


def _not_sqlite(path: Path) -> None:
    path.write_bytes(b"this is a text, and not a short one" * 100)


def _others_sqlite(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()


def _newer(path: Path) -> None:
    _sql(_filled(path), "PRAGMA user_version=99")


def _sql(path: Path, *statements: str, values: Sequence[Any] = ()) -> None:
    db = sqlite3.connect(path)
    with db:
        for statement in statements:
            db.execute(statement, values)
    db.close()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (Path.mkdir, "is a directory"),
        (_not_sqlite, "is not a store of ringtrue"),
        (_others_sqlite, "an SQLite file, but not a store"),
        (_newer, "format 99.*update ringtrue"),
    ],
    ids=["directory", "text", "other tables", "newer"],
)
def test_files_that_are_no_stores_are_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], Any], sentence: str
) -> None:
    """Each kind of wrong file has its own sentence, for writers and readers, and is not changed."""
    path = tmp_path / "x.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    for attempt in (_open, Store.read):
        with pytest.raises(StoreError, match=sentence):
            attempt(path)
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert os.listdir(tmp_path) == ["x.db"]


def test_places_where_nothing_can_be_are_refused(tmp_path: Path) -> None:
    """A missing directory, a missing file, an empty file to read and a place without permission are refused."""
    with pytest.raises(StoreError, match="is not a directory; make it first"):
        _open(tmp_path / "none" / "run.db")
    with pytest.raises(StoreError, match="there is no file"):
        Store.read(tmp_path / "run.db")
    assert os.listdir(tmp_path) == []
    (tmp_path / "run.db").touch()
    with pytest.raises(StoreError, match="is empty"):
        Store.read(tmp_path / "run.db")
    with pytest.raises(StoreError, match=r"cannot be (written|opened)"):
        _open(Path("/proc/run.db"))
    with _open(tmp_path / "run.db") as store:  # an empty file is as good as none
        assert store.done == 0


def test_an_exception_inside_still_writes(tmp_path: Path) -> None:
    """What was added before an interrupt is there afterwards, and the store can be opened again."""

    def interrupted() -> None:
        with _open(tmp_path / "run.db") as store:
            store.add(_part(0, 10))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with _open(tmp_path / "run.db") as store:
        assert store.prefix() == 10


def test_an_interrupt_after_the_commit_writes_nothing_twice(tmp_path: Path) -> None:
    """A flush that was interrupted between its commit and its end can be repeated, with more in the buffer."""
    with _open(tmp_path / "run.db") as store:
        store.add_reference(0, _reference())
        store.add(_part(0, 10))
        store._write()
        store.add(_part(10, 50))
        store.flush()
        assert _same(store.replicates(), _original())


def test_records_are_written_in_time_without_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding writes by itself once a second has passed, or once there is much to write; adjacent ones share a row."""
    with _open(tmp_path / "run.db") as store:
        store.add(_part(0, 5))
        store.add(_part(5, 5))
        reader = Store.read(store.path)
        assert reader.done == 0
        store._flushed -= 2
        store.add(_part(10, 5))
        assert reader.done == 15
        assert len(reader.parts(0, N)) == 1
        monkeypatch.setattr("ringtrue.execution.store.store._AT_MOST", 100)
        store.add(_part(15, 5))
        assert reader.done == 20


def _forked(child: Callable[[], None]) -> int:
    """Run a function in a process of its own and return its number; it ends with status 0 if nothing was raised."""
    if (process := os.fork()) == 0:
        status = 1
        try:
            child()
            status = 0
        finally:
            os._exit(status)
    return process


def _status(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.process
def test_a_second_writer_is_refused_and_readers_are_not(tmp_path: Path) -> None:
    """While one process writes another gets StoreBusy at once, can read, and can write when the first is done."""
    path = tmp_path / "run.db"

    def second() -> None:
        with pytest.raises(StoreBusy, match="one writer at a time"):  # who waits in vain is told for how long
            _open(path)
        assert Store.read(path).done == 10

    with _open(path) as store:
        store.add(_part(0, 10))
        store.flush()
        assert _status(_forked(second)) == 0
        with pytest.raises(StoreBusy):
            _open(path)
        assert _status(_forked(store.close)) == 0  # inherited, not owned: must not give up the parent's lock
        assert _status(_forked(second)) == 0
    assert _status(_forked(lambda: _open(path).close())) == 0


def test_a_killed_writer_holds_nobody_up(tmp_path: Path) -> None:
    """After kill -9 the lock is free, even while processes live on that the writer had forked."""
    path, (reading, writing) = tmp_path / "run.db", os.pipe()

    def live_on() -> None:
        os.write(writing, b".")
        time.sleep(5)

    def hold() -> None:
        _store = _open(path)
        _forked(live_on)
        time.sleep(60)

    process = _forked(hold)
    os.read(reading, 1)
    with pytest.raises(StoreBusy):
        _open(path)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    _open(path).close()
    os.close(reading)
    os.close(writing)


def test_threads_do_not_share_the_right_to_write(tmp_path: Path) -> None:
    """A second writer in another thread of the process is refused, whether or not somebody removed the lock's file."""
    path = tmp_path / "run.db"
    with _open(path), ThreadPoolExecutor(1) as pool:
        with pytest.raises(StoreBusy):
            pool.submit(_open, path).result()
        (tmp_path / "run.db.lock").unlink()
    with _open(path) as store:
        assert store.done == 0


@pytest.mark.parametrize("n", range(1, N + 1))
def test_how_replicates_are_grouped_changes_no_bit(n: int) -> None:
    """One by one or all at once, up to any replicate, be it a lost one: the record is the same."""
    assert _same(join([_part(k, 1) for k in range(n)], stop=n, reference=_reference()[:n]), _original(n))


@pytest.mark.process
@pytest.mark.parametrize("attempt", range(10))
def test_killing_the_writer_loses_nothing_that_was_flushed(tmp_path: Path, attempt: int) -> None:
    """After kill -9 at a random moment, all that was flushed is there bit by bit, and the run can be resumed."""
    path, (reading, writing) = tmp_path / "run.db", os.pipe()

    def write_for_ever() -> None:
        store = _open(path)
        store.add_reference(0, _reference())
        for first in range(N):
            store.add(_part(first, 1))
            store.flush()
            os.write(writing, b".")
        time.sleep(60)

    for first in range(N):
        _part(first, 1)  # computed before, so that the child does nothing but write
    process = _forked(write_for_ever)
    os.close(writing)
    os.read(reading, 1)
    time.sleep(random.Random(attempt).uniform(0, 0.08))
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    flushed = 1 + sum(len(part) for part in iter(lambda: os.read(reading, 1000), b""))
    os.close(reading)
    assert flushed <= Store.read(path).prefix() <= flushed + 1
    with _open(path) as store:
        assert _same(store.replicates(n=store.prefix()), _original(store.prefix()))
        for start, stop in store.missing(0, N):
            store.add(_part(start, stop - start))
        assert _same(store.replicates(), _original())


def test_a_full_disk_is_said_and_harms_nothing(tmp_path: Path) -> None:
    """When SQLite has no room the error says what is safe; with room again the same records can be written."""
    path = tmp_path / "run.db"
    with _open(path, 10**6) as store:
        store.add_reference(0, _reference())
        store.add(_part(0, 10))
        store.flush()
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count={pages + 1}")
        for first in range(10, N):
            store.add(_part(first, 1))
        store.add(replace(_wide(4000), first=1000))
        with pytest.raises(StoreError, match=r"disk may be full.*written before is safe.*goes on from there"):
            store.flush()
        assert _same(Store.read(path).replicates(n=10), _original(10))
        store._db.execute("PRAGMA max_page_count=1000000")
        store.flush()
        assert _same(store.replicates(n=N), _original())


def _wide(count: int) -> Replicates:
    rng, functions = np.random.default_rng(1), len(HEADER.functions)
    shapes = {field: (count, functions) if field.axes else (count,) for field in fields()}
    return Replicates(HEADER, {field.name: rng.random(shape).astype(field.dtype) for field, shape in shapes.items()})


@pytest.mark.process
def test_a_limit_of_the_system_is_said_and_harms_nothing(tmp_path: Path) -> None:
    """A process that may not make files larger gets the error, and the store is as it was before the write."""
    path = _filled(tmp_path / "run.db")

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10_000, resource.RLIM_INFINITY))
        store = _open(path)
        store.add(replace(_wide(4000), first=1000))
        with pytest.raises(StoreError, match="written before is safe"):
            store.close()

    assert _status(_forked(limited)) == 0
    assert Store.read(path).missing(0, 5000) == [(N, 5000)]
    assert _same(Store.read(path).replicates(), _original())


def _harmless(path: Path) -> bool:
    """Whether a file gives the original; raises StoreError if damage was noticed."""
    with Store.read(path) as store:
        return _same(store.replicates(), _original())


@pytest.mark.slow
def test_bit_flips_are_noticed_or_harmless(tmp_path: Path) -> None:
    """After one flipped bit, at 200 places, a store gives the original, or an error, and never anything else."""
    path, noticed = _filled(tmp_path / "run.db"), 0
    data, places = path.read_bytes(), random.Random(1)
    for _ in range(200):
        at = places.randrange(len(data))
        (tmp_path / "flipped.db").write_bytes(data[:at] + bytes([data[at] ^ 1 << places.randrange(8)]) + data[at + 1 :])
        try:
            assert _harmless(tmp_path / "flipped.db")
        except (StoreError, InvalidStudy):
            noticed += 1
    # Checksummed arrays are 24 % of the file. If every flip in them is noticed, P(Binomial(200, 0.24) <= 20) < 1e-6.
    assert noticed > 20


@pytest.mark.slow
def test_bit_flips_in_kept_draws_are_noticed_or_harmless(tmp_path: Path) -> None:
    """After one flipped bit, at 200 places of rows of draws, draws come back as they were, or an error does."""
    path, flipped, noticed = _filled(tmp_path / "run.db", keep="draws"), tmp_path / "flipped.db", 0
    data, places = path.read_bytes(), random.Random(2)
    with Store.read(path) as store:
        original = store.draws(0, N)
    with contextlib.closing(sqlite3.connect(path)) as db:
        blobs = [blob for (blob,) in db.execute("SELECT arrays FROM draws")]
    # Numbers that are nowhere else in the file: where they are is a place in a row of draws.
    pieces = [blob[at : at + 8] for blob in blobs for at in range(len(blob) % 8, len(blob), 8)]
    starts = [data.index(piece) for piece in places.sample(pieces, 400) if data.count(piece) == 1][:100]
    assert len(starts) == 100
    for k in range(200):
        inside = starts[k] + places.randrange(8) if k < 100 else places.randrange(len(data))
        flipped.write_bytes(data[:inside] + bytes([data[inside] ^ 1 << places.randrange(8)]) + data[inside + 1 :])
        try:
            with Store.read(flipped) as store:
                found = store.draws(0, N)
            assert all(found[name].tobytes() == array.tobytes() for name, array in original.items())
            rt.store.recompute(flipped, f=rt.identity)
        except (StoreError, InvalidStudy):
            noticed += 1
        else:
            assert k >= 100  # every flip inside a row of draws is noticed
    assert noticed >= 100


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.5, 0.8, 0.99])
def test_truncated_files_are_noticed_and_repaired_as_far_as_they_go(tmp_path: Path, share: float) -> None:
    """A truncated store is refused; a repair keeps what is whole, and a resumed run then gives the original."""
    path = _filled(tmp_path / "run.db", step=1)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(StoreError):
        _harmless(path)
    try:
        done = repair(path, tmp_path / "new.db")
    except StoreError:
        assert share < 0.5
        assert os.listdir(tmp_path) == ["run.db"]
        return
    assert done.kept + sum(stop - start for start, stop in done.lost) == N
    assert share < 0.8 or done.kept > 0  # the first five of its ten pages hold no replicates
    _resume_and_compare(tmp_path / "new.db", done.lost)


def _resume_and_compare(path: Path, lost: Sequence[tuple[int, int]]) -> None:
    with _open(path) as store:
        store.add_reference(store.reference_count, _reference()[store.reference_count :])
        assert store.missing(0, N) == list(lost)
        for start, stop in lost:
            store.add(_part(start, stop - start))
        assert _same(store.replicates(), _original())


@pytest.mark.parametrize("keep", [None, "draws"])
def test_a_repair_loses_only_what_is_damaged(tmp_path: Path, keep: Any) -> None:
    """With damaged rows of replicates, draws, reference values and one description, all others are kept."""
    path = _filled(tmp_path / "run.db", keep=keep)
    _sql(path, "UPDATE spans SET arrays = zeroblob(100) WHERE first = 20", "UPDATE meta SET text = '' WHERE copy = 0")
    _sql(path, "UPDATE reference SET checksum = x'00'", "UPDATE draws SET arrays = zeroblob(9) WHERE first = 40")
    with pytest.raises(StoreDamaged, match=r"ringtrue repair .*run\.db"):
        Store.read(path)
    done = repair(path, tmp_path / "new.db")
    gone = [i for i in range(40, 50) if i not in {one.replicate for one in _original().failures}] if keep else []
    missing = {i for start, stop in done.lost for i in range(start, stop)}
    assert missing == {*range(20, 30), *gone}
    assert (done.kept, done.reference) == (N - len(missing), 0)
    if keep is None:
        _resume_and_compare(tmp_path / "new.db", done.lost)
    with pytest.raises(StoreError, match="exists already"):
        repair(path, tmp_path / "new.db")


def test_damage_names_the_replicates(tmp_path: Path) -> None:
    """A damaged row is refused by writers and readers alike, with its replicates and what to do."""
    path = _filled(tmp_path / "run.db")
    _sql(path, "UPDATE spans SET arrays = zeroblob(100) WHERE first = 20")
    for attempt in (_open, _harmless):
        with pytest.raises(StoreDamaged, match=r"replicates 20 to 29.*ringtrue repair"):
            attempt(path)


class _Evil:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path(tempfile.gettempdir()) / "ringtrue-was-fooled",))


def _npy(array: Any, version: Any = (2, 0)) -> bytes:
    member = io.BytesIO()
    np.lib.format.write_array(member, np.asarray(array), version, allow_pickle=True)
    return member.getvalue()


def _header(descr: Any, count: int = 10) -> bytes:
    member = io.BytesIO()
    np.lib.format.write_array_header_2_0(member, {"descr": descr, "fortran_order": False, "shape": (count,)})
    return member.getvalue()


def _changed(**arrays: Any) -> bytes:
    return packed({**_part(20, 10).arrays, **arrays})


HOSTILE: dict[str, Callable[[], bytes]] = {
    "pickle": lambda: _npy(np.array([_Evil()] * 10, dtype=object)),
    "pickle inside": lambda: _npy(np.array([(_Evil(),)] * 10, dtype=[("u", "O")])),
    "huge": lambda: _header([("u", "<f8", (10**9,))]),
    "huger": lambda: _header([("u", "<f8")], 10**18),
    "long header": lambda: _header([(f"u{k}", "<f8") for k in range(10_000)]),
    "wrong shape": lambda: _changed(u=np.zeros((10, 7))),
    "wrong dtype": lambda: _changed(u=np.zeros((10, len(HEADER.functions)), np.float32)),
    "texts": lambda: _npy(np.array([("a",)] * 10, dtype=[("u", "U3")])),
    "a table in a table": lambda: _npy(np.zeros(10, [("u", [("v", "<f8")])])),
    "no names": lambda: _npy(np.zeros(10)),
    "other names": lambda: packed({"a": np.zeros(10)}),
    "other rows": lambda: packed(_part(20, 9).arrays),
    "nothing": lambda: b"",
    "no numbers": lambda: _header([("u", "<f8")]),
    "raw pickle": lambda: b"cos\nsystem\n(S'true'\ntR.",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_arrays_with_valid_checksums_are_refused(tmp_path: Path, kind: str) -> None:
    """Whoever can compute checksums can still put nothing into a store but arrays of numbers of the right form."""
    path, blob = _filled(tmp_path / "run.db"), HOSTILE[kind]()
    mark = checksum("spans", (20, 10), blob)
    _sql(path, "UPDATE spans SET arrays = ?, checksum = ? WHERE first = 20", values=(blob, mark))
    with pytest.raises(StoreDamaged, match="replicates 20 to 29"):
        Store.read(path).replicates()
    assert not (Path(tempfile.gettempdir()) / "ringtrue-was-fooled").exists()


RECORDS: list[tuple[Any, ...]] = [
    (20, -5, 0, 1.0, 1.0, ""),
    (20, 2**62, 0, 1.0, 1.0, ""),
    (20, "ten", 0, 1.0, 1.0, ""),
    (20, 10, 0, "x", 1.0, ""),
    (20, 10, 0, 1.0, 1.0, "{}"),
    (20, 10, 0, 1.0, 1.0, "[" * 100_000),
    (20, 10, 0, 1.0, 1.0, b""),
    (20, 10, 1, 1.0, 1.0, ""),
    (20, 10, 1, 1.0, 1.0, '{"causes": [["a", "b", "c"]], "lost": [[99, 0]]}'),
    (20, 10, 1, 1.0, 1.0, '{"causes": [["a", "b", 3]], "lost": [[20, 0]]}'),
    (20, 10, 1, 1.0, 1.0, '{"causes": [], "lost": [[20, 0]]}'),
    (20, 10, 1, 1.0, 1.0, "[1, 2]"),
    (20, 15, 0, 1.0, 1.0, ""),
    (90, 10**18, 0, 1.0, 1.0, ""),
    *((20, 10, 0, odd, 1.0, "") for odd in (math.inf, -math.inf, -1.0, 1e18, 1e300)),
    *((20, 10, 0, 1.0, odd, "") for odd in (math.inf, -math.inf, -1.0, 1e18, 1e300)),
]


@pytest.mark.parametrize("record", RECORDS, ids=range(len(RECORDS)))
def test_hostile_records_with_valid_checksums_are_refused(tmp_path: Path, record: tuple[Any, ...]) -> None:
    """Numbers, texts and ranges that no writer makes are refused, whatever their checksum."""
    path = _filled(tmp_path / "run.db")
    mark = checksum("record", tuple(part.decode() if isinstance(part, bytes) else part for part in record))
    names = ("first", "count", "lost", "written", "seconds", "failures")
    change = ", ".join(f"{name} = ?" for name in names)
    _sql(path, f"UPDATE spans SET {change}, record = ? WHERE first = 20", values=(*record, mark))
    attempts = (_open, lambda path: Store.read(path).replicates(), lambda path: Store.read(path).progress())
    for attempt in attempts:
        with pytest.raises(StoreDamaged, match="ringtrue repair"):
            attempt(path)
    assert repair(path, tmp_path / "new.db").kept == N - 10


def _meta_with(name: str, value: Any) -> str:
    """Return the description of the store of these tests with one entry changed."""
    now = Meta(HEADER, (MARK,), N, None, 0, 1.0, 1.0, ({"numpy": "2"},), ({"n": "9", "test": "ks", "mark": "x"},))
    return json.dumps({**json.loads(meta_rows(now)[0][1]), name: value})


_LOOKS: list[Any] = [{}, {"n": "9"}, {"test": "ks"}, {"n": 9, "test": "ks"}]
ODD: list[tuple[str, Any]] = [
    *((name, odd) for name in ("created", "opened") for odd in (math.nan, math.inf, -1.0, 1e300, "now", 3)),
    *((name, odd) for name in ("n", "reference") for odd in (-1, 2**70, 10**400, 0.5, "nine", math.nan)),
    *(("datasets", odd) for odd in (0, -1, 2**70, 1.0)),
    *(("seed", odd) for odd in (-1, 0.5, None)),
    *(("looks", [odd]) for odd in _LOOKS),
    ("versions", []),
]
METAS: list[str] = ["", "{}", "null", '{"functions": 3}', "[" * 100_000, *(_meta_with(*one) for one in ODD)]


@pytest.mark.parametrize("text", METAS, ids=range(len(METAS)))
def test_hostile_descriptions_with_valid_checksums_are_refused(tmp_path: Path, text: str) -> None:
    """A description of another form is damage."""
    path = _filled(tmp_path / "run.db")
    for copy in (0, 1):
        _sql(
            path,
            "UPDATE meta SET text = ?, checksum = ? WHERE copy = ?",
            values=(text, checksum("meta", (copy, text)), copy),
        )
    with pytest.raises(StoreDamaged, match="description of the store"):
        Store.read(path)
    with pytest.raises(StoreDamaged, match="cannot be repaired"):
        repair(path, tmp_path / "new.db")


def test_views_in_place_of_tables_are_not_run(tmp_path: Path) -> None:
    """A file with our mark whose tables are queries without end is refused before they start."""
    path = _filled(tmp_path / "run.db")
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x AS first FROM c"
    _sql(path, "DROP TABLE spans", f"CREATE VIEW spans AS {endless}")
    for attempt in (_open, Store.read):
        with pytest.raises(StoreDamaged, match="tables"):
            attempt(path)


def test_unknown_arrays_are_kept(tmp_path: Path) -> None:
    """A number that another version keeps of every replicate goes in, out, through a merge and a repair."""
    new: dict[str, Any] = {
        "\u03c4-plus/x": np.arange(20, dtype=np.float32),
        "later": np.arange(60, dtype=np.int16).reshape(20, 3),
    }
    with _open(tmp_path / "run.db") as store:
        for first in (0, 10):
            part = _part(first, 10)
            store.add(replace(part, arrays={**part.arrays, **{k: a[first : first + 10] for k, a in new.items()}}))
            store.flush()
    merge([tmp_path / "run.db"], tmp_path / "merged.db")
    repair(tmp_path / "run.db", tmp_path / "repaired.db")
    for name in ("run.db", "merged.db", "repaired.db"):
        found = Store.read(tmp_path / name).replicates(n=20).arrays
        assert all(found[k].tobytes() == a.tobytes() and found[k].dtype == a.dtype for k, a in new.items())


def test_arrays_that_an_older_version_did_not_keep_are_blank(tmp_path: Path) -> None:
    """A new number per replicate refuses no old file: there it is nan."""
    path = _filled(tmp_path / "run.db", step=N)
    arrays = {name: array for name, array in _part(0, N).arrays.items() if name not in ("interval", "treated")}
    blob = packed(arrays)
    _sql(path, "UPDATE spans SET arrays = ?, checksum = ?", values=(blob, checksum("spans", (0, N), blob)))
    found = load(path)
    assert np.isnan(found.interval).all()
    assert not found.treated.any()
    assert found.u.tobytes() == _original().u.tobytes()


def _forged(array: Any) -> Iterator[Any]:
    """Return an array in other forms: an axis less, more, longer, shorter, and other kinds of numbers."""
    yield np.zeros(len(array), array.dtype)
    yield np.zeros((*array.shape, 2), array.dtype)
    for axis in range(1, array.ndim):
        yield np.concatenate([array, array], axis=axis)
        yield np.take(array, [0], axis=axis)
    yield np.ones(array.shape, np.float64 if array.dtype.kind in "biu" else np.int64)


def _judged(path: Path) -> str:
    """Judge a file and measure it; an error of ours may come of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = rt.judge(load(path))
            json.dumps(result.to_dict(), allow_nan=False)
            return str(result)
    except (StoreError, InvalidStudy) as error:
        return str(error)


def _chains(mu0: Any, y: Any, rng: Any) -> Any:
    return rt.Draws(y / 2 + 0.7 * rng.normal(size=(20, 2)), chains=2)


@pytest.mark.slow
@pytest.mark.parametrize("procedure", [lambda mu0, y, rng: y / 2 + 0.7 * rng.normal(size=(9, 2)), _chains])
def test_forged_arrays_are_judged_or_refused(tmp_path: Path, procedure: Any) -> None:
    """An array of another form, or one that is gone, with valid checksums, is refused with a sentence or judged."""
    path, ran = tmp_path / "run.db", rt.run(rt.Study(rt.Normal([0.0, 0.0], 1), _model, procedure), n=N)
    with _open(path, header=ran.header) as store:
        store.add_reference(0, ran.reference)
        store.add(ran)
    undeclared = [name for name in ran.arrays if name not in {one.name for one in fields()}]
    assert len(undeclared) > 10
    said = []
    for name in undeclared:
        others = {key: array for key, array in ran.arrays.items() if key != name}
        for arrays in (others, *({**others, name: odd} for odd in _forged(ran.arrays[name]))):
            blob = packed(arrays)
            _sql(path, "UPDATE spans SET arrays = ?, checksum = ?", values=(blob, checksum("spans", (0, N), blob)))
            said.append(_judged(path))
    assert any(f"{path} holds arrays that no run writes so" in one for one in said)


def test_lost_reference_values_are_noticed(tmp_path: Path) -> None:
    """Reference values that are gone are damage, not fewer reference values."""
    path = _filled(tmp_path / "run.db")
    _sql(path, "DELETE FROM reference")
    with pytest.raises(StoreDamaged, match="reference values from 0 on are gone"):
        Store.read(path).replicates()


def test_bytes_of_arrays_are_plain_npy() -> None:
    """What is packed can be read with numpy alone, and comes back with its bits; anything cut short is refused."""
    arrays = {"a": np.array([np.nan, -0.0, np.inf]), "b": np.arange(6, dtype=np.uint16).reshape(3, 2, 1)}
    blob = packed(arrays)
    loaded = np.load(io.BytesIO(blob), allow_pickle=False)
    found = unpacked(blob, 3)
    assert all(loaded[name].tobytes() == found[name].tobytes() == arrays[name].tobytes() for name in arrays)
    for size in range(0, len(blob), 7):
        with pytest.raises(Unreadable):
            unpacked(blob[:size], 3)


def test_headers_are_read_in_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy parses a header as Python, which can fail by chance in two threads at once (3.11): threads do not."""
    path, readers = _filled(tmp_path / "run.db"), set()
    inner = np.lib.format.read_array_header_2_0

    def noted(*args: Any, **options: Any) -> Any:
        readers.add(threading.get_ident())
        return inner(*args, **options)

    monkeypatch.setattr("numpy.lib.format.read_array_header_2_0", noted)
    codec._declared.cache_clear()
    assert _same(load(path), _original())
    assert readers == {threading.get_ident()}


def test_bytes_at_random_are_refused_or_read() -> None:
    """Bytes changed at random places are refused as unreadable, or are still arrays; nothing else is raised."""
    blob, places = packed({"a": np.zeros((5, 2, 3)), "b": np.zeros(5, np.int32)}), random.Random(1)
    for _ in range(5000):
        changed = bytearray(blob)
        for _ in range(places.choice([1, 2, 5])):
            changed[places.randrange(len(blob))] = places.randrange(256)
        with contextlib.suppress(Unreadable):
            assert all(isinstance(array, np.ndarray) for array in unpacked(bytes(changed), 5).values())


def test_shards_merge_into_the_whole(tmp_path: Path) -> None:
    """Stores of shares, overlapping ones too, make a store that gives what an undivided run gives."""
    paths = []
    for k, (start, stop) in enumerate([(0, 25), (20, 45), (40, N), (0, 5)]):
        paths.append(tmp_path / f"{k}.db")
        with _open(paths[-1]) as store:
            store.add_reference(0, _reference()[: 20 * (k % 3) + 20])
            store.add(_part(start, stop - start))
    merge(paths, tmp_path / "all.db")
    assert _same(Store.read(tmp_path / "all.db").replicates(), _original())
    with pytest.raises(StoreError, match="exists already"):
        merge(paths, tmp_path / "all.db")


def test_merging_keeps_draws(tmp_path: Path) -> None:
    """Kept draws are merged with their replicates."""
    for name, start, stop in (("a", 0, 35), ("b", 30, N)):
        with _open(tmp_path / name, keep="draws") as store:
            store.add(_part(start, stop - start, "draws"))
    merge([tmp_path / "b", tmp_path / "a"], tmp_path / "all.db")
    whole, got = _part(0, N, "draws").kept_arrays(), Store.read(tmp_path / "all.db").draws(0, N)
    assert all(got[name].tobytes() == whole[name].tobytes() for name in whole)


def test_stores_that_do_not_belong_together_are_not_merged(tmp_path: Path) -> None:
    """Another study is refused by field and file, another result for the same replicate by its number."""
    one = _filled(tmp_path / "one.db")
    with _open(tmp_path / "other.db", fingerprint={**MARK, "seed": "5"}) as store:
        store.add(_part(0, 10))
    with pytest.raises(StoreMismatch, match=r"one\.db.*other\.db: seed is 0 there, but 5 here"):
        merge([one, store.path], tmp_path / "all.db")
    with _open(tmp_path / "changed.db") as store:
        moved = {**_part(10, 10).arrays, "u": _part(10, 10).u + 1e-15}
        store.add(replace(_part(10, 10), arrays=moved))
    with pytest.raises(StoreMismatch, match=r"changed\.db has other results for replicates 10 to 19"):
        merge([one, store.path], tmp_path / "all.db")
    assert not (tmp_path / "all.db").exists()


@pytest.mark.process
def test_reading_while_writing(tmp_path: Path) -> None:
    """A reader in another process sees only whole states: every prefix it gets is that of the original."""
    path, (reading, writing) = tmp_path / "run.db", os.pipe()
    _open(path).close()

    def look() -> None:
        os.write(writing, b".")
        seen = 0
        while seen < N:
            with Store.read(path) as store:
                seen = store.prefix()
                if seen:
                    assert store.replicates(n=seen).u.tobytes() == _original().u[:seen].tobytes()

    process = _forked(look)
    os.read(reading, 1)
    with _open(path) as store:
        for first in range(N):
            store.add(_part(first, 1))
            store.flush()
    assert _status(process) == 0
    os.close(reading)
    os.close(writing)


@pytest.fixture(autouse=True)
def _no_files_are_left(tmp_path: Path) -> Iterator[None]:
    """No journal and no lock is left beside a store."""
    yield
    assert not [name for name in os.listdir(tmp_path) if name.endswith(("-journal", ".lock", "-wal", "-shm"))]


def test_a_store_that_is_dropped_closes_its_file(tmp_path: Path) -> None:
    """Nobody has to close a store that was read; what is left open would be warned of by Python 3.13."""
    store = Store.read(_filled(tmp_path / "run.db"))
    db = store._db
    assert db.execute("SELECT 1").fetchone() == (1,)
    del store
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")


def test_a_store_that_another_thread_drops_closes_its_file(tmp_path: Path) -> None:
    """What an exception holds in a cycle is collected wherever the collector happens to run."""
    store: Any = Store.read(_filled(tmp_path / "run.db"))
    db, store.itself = store._db, store
    del store
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")
