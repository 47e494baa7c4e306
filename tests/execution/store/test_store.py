"""Stores: what goes in comes out, bit by bit, whatever happens to the process, the disk or the file in between."""

import contextlib
import functools
import gc
import io
import itertools
import os
import random
import resource
import signal
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ringtrue.replicates.recording import header_of, reference_values
from ringtrue.replicates.spans import ARRAYS, FLOATS, INTS, Span, collected, lost_span

import ringtrue as rt
from ringtrue.errors import StoreBusy, StoreDamaged, StoreError, StoreMismatch
from ringtrue.execution.store import Store, merge, repair
from ringtrue.execution.store.identity import fingerprint
from ringtrue.execution.store.packing import Unreadable, checksum, packed, unpacked
from ringtrue.replicates.record import Failure
from ringtrue.replicates.simulate import computed

N = 60


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal(size=2)


def _draws(mu0: Any, y: Any, rng: Any) -> Any:
    if y[0] > 1.6:
        raise ValueError(f"no fit for {y[0] > 2.5} \ud800\0")
    return y / 2 + 0.7 * rng.normal(size=(9, 2))


STUDY = rt.Study(rt.Normal([0.0, 0.0], 1), _model, _draws, n=N)
HEADER = header_of(STUDY)
MARK = fingerprint(STUDY)


@functools.cache
def _span(first: int, count: int, keep: Any = None) -> Span:
    return computed(STUDY, first, count, keep=keep).span


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
            store.add(_span(first, min(step, n - first), keep))
            store.flush()
    return path


@functools.cache
def _original(n: int = N) -> rt.Replicates:
    return collected(HEADER, n, [_span(0, N)], _reference()[:n])


def _content(replicates: rt.Replicates) -> Any:
    """Return all of Replicates, in a form in which equality means equality of every bit."""
    parts = {item.name: getattr(replicates, item.name) for item in fields(replicates)}
    failures = [(one.replicate, one.stage, one.error) for one in parts.pop("failures")]
    return failures, {
        name: np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else part
        for name, part in parts.items()
    }


def _same(one: rt.Replicates, other: rt.Replicates) -> bool:
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
    assert store.failures() == _span(0, 10).failures + tuple(f for k in range(10, N, 10) for f in _span(k, 10).failures)
    assert store.header == HEADER
    assert (store.fingerprint, store.n, store.keep, store.path) == (MARK, N, None, path)
    assert store.versions["numpy"] == np.__version__
    assert np.array_equal(store.reference(7), _reference()[:7], equal_nan=True)
    assert os.listdir(tmp_path) == ["run.db"]


def test_judging_needs_only_the_file(tmp_path: Path) -> None:
    """The verdict of a store is that of the run."""
    path = _filled(tmp_path / "run.db")
    assert str(rt.judge(Store.read(path).replicates())) == str(rt.judge(_original()))


@pytest.mark.slow
@settings(max_examples=30)
@given(st.sets(st.integers(1, N - 1)), st.randoms(use_true_random=False), st.integers(1, 7))
def test_any_partition_in_any_order_gives_the_same(cuts: set[int], order: random.Random, every: int) -> None:
    """However 0..n is cut into spans, added and flushed, the Replicates are bit-identical."""
    edges = [0, *sorted(cuts), N]
    parts = list(itertools.pairwise(edges))
    order.shuffle(parts)
    with tempfile.TemporaryDirectory() as folder, _open(Path(folder) / "run.db") as store:
        store.add_reference(0, _reference())
        for k, (start, stop) in enumerate(parts):
            store.add(_span(start, stop - start))
            if k % every == 0:
                store.flush()
        assert store.missing(0, N) == []
        assert _same(store.replicates(), _original())


def test_gaps_are_known_before_and_after_writing(tmp_path: Path) -> None:
    """Missing, prefix and done count what was added for a writer, flushed or not, and what is written for a reader."""
    with _open(tmp_path / "run.db") as store:
        store.add(_span(20, 10))
        store.add(_span(0, 5))
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
        store.add(_span(0, 30))
        store.add(_span(40, 10))
        with pytest.raises(rt.errors.InvalidStudy, match=r"20 of them, 30 to 39, 50 to 59"):
            store.replicates()
        assert _same(store.replicates(n=store.prefix()), _original(30))
        assert _same(store.replicates(0, 17), _original(17))
        shard = store.replicates(40, 50)
        assert shard.first == 40
        assert shard.u.tobytes() == _original().u[40:50].tobytes()


def test_overlaps_and_misfits_are_refused(tmp_path: Path) -> None:
    """A span that is there already, of other shape, or of a reader is refused, and nothing changes."""
    with _open(tmp_path / "run.db") as store:
        store.add(_span(0, 10))
        for first, count in ((0, 10), (5, 10), (9, 1)):
            with pytest.raises(ValueError, match="overlap"):
                store.add(_span(first, count))
        with pytest.raises(ValueError, match="was expected"):
            store.add(lost_span(20, 1, 1, Failure(20, "model", "", "")))
        with pytest.raises(ValueError, match="from 0 on"):
            store.add_reference(5, _reference())
        with pytest.raises(StoreError, match="not open for writing"):
            Store.read(store.path).add(_span(20, 10))
        assert store.done == 10


def test_lost_spans_stand_beside_others(tmp_path: Path) -> None:
    """Spans that were lost whole, which have no ranks of members, are joined with others without harm."""
    lost = lost_span(10, 5, len(HEADER.columns), Failure(10, "procedure", "killed", ""))
    whole = collected(HEADER, 20, [_span(0, 10), lost, _span(15, 5)], _reference()[:20])
    with _open(tmp_path / "run.db") as store:
        store.add_reference(0, _reference())
        for span in (lost, _span(15, 5), _span(0, 10)):
            store.add(span)
        assert _same(store.replicates(n=20), whole)


def test_progress_counts(tmp_path: Path) -> None:
    """Progress tells n, done, failed, seconds and the times of writing."""
    start = time.time()
    _filled(tmp_path / "run.db", n=40)
    with _open(tmp_path / "run.db", n=100):
        standing = Store.read(tmp_path / "run.db").progress()
    assert (standing.n, standing.done, standing.since) == (100, 40, 0)
    assert standing.failed == sum(one.replicate < 40 for one in _original().failures)
    assert standing.seconds == pytest.approx(sum(_span(k, 10, None).seconds for k in range(0, 40, 10)))
    assert standing.first_write is not None
    assert standing.last_write is not None
    assert start <= standing.first_write <= standing.last_write <= standing.opened <= time.time()


def test_kept_draws_come_back(tmp_path: Path) -> None:
    """Truths and draws come back for any range, those of lost replicates as nan."""
    path = _filled(tmp_path / "run.db", keep="draws")
    store = Store.read(path)
    whole = _span(0, N, "draws").kept
    for start, stop in ((0, N), (7, 33), (12, 13)):
        got = store.draws(start, stop)
        assert list(got) == list(whole)
        assert all(got[name].tobytes() == whole[name][start:stop].tobytes() for name in whole)
    assert _same(store.replicates(), _original())
    with pytest.raises(rt.errors.InvalidStudy, match="keep='draws'"):
        Store.read(_filled(tmp_path / "other.db")).draws(0, 5)


def test_n_grows_and_never_shrinks(tmp_path: Path) -> None:
    """Opening with a larger n raises it, with a smaller one leaves it, and what is there stays."""
    path = _filled(tmp_path / "run.db", n=30)
    with _open(path, 20) as store:
        assert store.n == 30
    with _open(path, N) as store:
        assert store.missing(0, store.n) == [(30, N)]
        store.add(_span(30, 30))
        store.add_reference(30, _reference()[30:])
        assert _same(store.replicates(), _original())


@pytest.mark.parametrize("name", ["belief", "model", "seed", "tag"])
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
        _open(path, header=replace(HEADER, columns=HEADER.columns[::-1]))


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
            store.add(_span(0, 10))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with _open(tmp_path / "run.db") as store:
        assert store.prefix() == 10


def test_an_interrupt_after_the_commit_writes_nothing_twice(tmp_path: Path) -> None:
    """A flush that was interrupted between its commit and its end can be repeated, with more in the buffer."""
    with _open(tmp_path / "run.db") as store:
        store.add_reference(0, _reference())
        store.add(_span(0, 10))
        store._write()
        store.add(_span(10, 50))
        store.flush()
        assert _same(store.replicates(), _original())


def test_spans_are_written_in_time_without_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding writes by itself once a second has passed, or once there is much to write; adjacent spans share a row."""
    with _open(tmp_path / "run.db") as store:
        store.add(_span(0, 5))
        store.add(_span(5, 5))
        reader = Store.read(store.path)
        assert reader.done == 0
        store._flushed -= 2
        store.add(_span(10, 5))
        assert reader.done == 15
        assert len(reader.spans(0, N)) == 1
        monkeypatch.setattr("ringtrue.execution.store.file._AT_MOST", 100)
        store.add(_span(15, 5))
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
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite3, "connect", waiting_for_nobody)
            with pytest.raises(StoreBusy, match="one writer at a time"):
                _open(path)
        assert Store.read(path).done == 10

    def waiting_for_nobody(file: Path, *, timeout: float, **settings: Any) -> sqlite3.Connection:
        assert timeout == 0, f"{file} is waited for"
        db: sqlite3.Connection = connect(file, timeout=timeout, **settings)
        return db

    connect = sqlite3.connect

    with _open(path) as store:
        store.add(_span(0, 10))
        store.flush()
        assert _status(_forked(second)) == 0
        with pytest.raises(StoreBusy):
            _open(path)
        assert _status(_forked(store.close)) == 0  # inherited, not owned: must not give up the parent's lock
        assert _status(_forked(second)) == 0
    assert _status(_forked(lambda: _open(path).close())) == 0


@pytest.mark.process
@pytest.mark.parametrize("attempt", range(10))
def test_killing_the_writer_loses_nothing_that_was_flushed(tmp_path: Path, attempt: int) -> None:
    """After kill -9 at a random moment, all that was flushed is there bit by bit, and the run can be resumed."""
    path, (reading, writing) = tmp_path / "run.db", os.pipe()

    def write_for_ever() -> None:
        store = _open(path)
        store.add_reference(0, _reference())
        for first in range(N):
            store.add(_span(first, 1))
            store.flush()
            os.write(writing, b".")
        time.sleep(60)

    for first in range(N):
        _span(first, 1)  # computed before, so that the child does nothing but write
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
            store.add(_span(start, stop - start))
        assert _same(store.replicates(), _original())


def test_a_full_disk_is_said_and_harms_nothing(tmp_path: Path) -> None:
    """When SQLite has no room the error says what is safe; with room again the same spans can be written."""
    path = tmp_path / "run.db"
    with _open(path, 10**6) as store:
        store.add_reference(0, _reference())
        store.add(_span(0, 10))
        store.flush()
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count={pages + 1}")
        for first in range(10, N):
            store.add(_span(first, 1))
        store.add(replace(_wide(4000), first=1000))
        with pytest.raises(StoreError, match=r"disk may be full.*written before is safe.*goes on from there"):
            store.flush()
        assert _same(Store.read(path).replicates(n=10), _original(10))
        store._db.execute("PRAGMA max_page_count=1000000")
        store.flush()
        assert _same(store.replicates(n=N), _original())


def _wide(count: int) -> Span:
    shape = (len(HEADER.columns), count)
    arrays: dict[str, Any] = dict.fromkeys(FLOATS, np.random.default_rng(1).random(shape))
    arrays |= dict.fromkeys(INTS, np.zeros(shape, np.int64))
    return Span(0, **arrays, energy=np.zeros((2, count)))


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
        except (StoreError, rt.errors.InvalidStudy):
            noticed += 1
    # Checksummed arrays are 24 % of the file. If every flip in them is noticed, P(Binomial(200, 0.24) <= 20) < 1e-6.
    assert noticed > 20


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
            store.add(_span(start, stop - start))
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


def _npz(array: Any, compression: int = zipfile.ZIP_STORED) -> bytes:
    member, archive = io.BytesIO(), io.BytesIO()
    np.save(member, array, allow_pickle=True)
    with zipfile.ZipFile(archive, "w", compression) as opened:
        opened.writestr("floats.npy", member.getvalue())
        opened.writestr("ints.npy", member.getvalue())
    return archive.getvalue()


def _huge_header() -> bytes:
    member, archive = io.BytesIO(), io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**18,)}
    np.lib.format.write_array_header_1_0(member, header)
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("floats.npy", member.getvalue())
    return archive.getvalue()


HOSTILE: dict[str, Callable[[], bytes]] = {
    "pickle": lambda: _npz(np.array([_Evil()], dtype=object)),
    "bomb": lambda: _npz(np.zeros(10**7), zipfile.ZIP_DEFLATED),
    "huge header": _huge_header,
    "wrong shape": lambda: _npz(np.zeros((5, 3, 10))),
    "wrong dtype": lambda: _npz(np.zeros((5, 4, 10), np.float32)),
    "nothing": lambda: b"",
    "an empty archive": lambda: packed({}),
    "other names": lambda: packed({"a": np.zeros(1)}),
    "raw pickle": lambda: b"cos\nsystem\n(S'true'\ntR.",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_arrays_with_valid_checksums_are_refused(tmp_path: Path, kind: str) -> None:
    """Whoever can compute checksums can still put nothing into a store but arrays of numbers of the right form."""
    path, blob = _filled(tmp_path / "run.db"), HOSTILE[kind]()
    mark = checksum("span", (20, 10), blob)
    _sql(path, "UPDATE spans SET arrays = ?, checksum = ? WHERE first = 20", values=(blob, mark))
    with pytest.raises(StoreDamaged, match="replicates 20 to 29"):
        Store.read(path).replicates()
    assert not (Path(tempfile.gettempdir()) / "ringtrue-was-fooled").exists()


RECORDS: list[tuple[Any, ...]] = [
    (20, -5, 0, 1.0, 1.0, "[]", ""),
    (20, 2**62, 0, 1.0, 1.0, "[]", ""),
    (20, "ten", 0, 1.0, 1.0, "[]", ""),
    (20, 10, 0, "x", 1.0, "[]", ""),
    (20, 10, 0, 1.0, 1.0, "{}", ""),
    (20, 10, 0, 1.0, 1.0, "[" * 100_000, ""),
    (20, 10, 0, 1.0, 1.0, b"[]", ""),
    (20, 10, 1, 1.0, 1.0, "[]", ""),
    (20, 10, 1, 1.0, 1.0, "[]", '{"causes": [["a", "b", "c"]], "lost": [[99, 0]]}'),
    (20, 10, 1, 1.0, 1.0, "[]", '{"causes": [["a", "b", 3]], "lost": [[20, 0]]}'),
    (20, 10, 1, 1.0, 1.0, "[]", '{"causes": [], "lost": [[20, 0]]}'),
    (20, 10, 1, 1.0, 1.0, "[]", "[1, 2]"),
    (20, 15, 0, 1.0, 1.0, "[]", ""),
]


@pytest.mark.parametrize("record", RECORDS, ids=range(len(RECORDS)))
def test_hostile_records_with_valid_checksums_are_refused(tmp_path: Path, record: tuple[Any, ...]) -> None:
    """Numbers, texts and ranges that no writer makes are refused, whatever their checksum."""
    path = _filled(tmp_path / "run.db")
    mark = checksum("record", tuple(part.decode() if isinstance(part, bytes) else part for part in record))
    names = ("first", "count", "lost", "written", "seconds", "notes", "failures")
    change = ", ".join(f"{name} = ?" for name in names)
    _sql(path, f"UPDATE spans SET {change}, record = ? WHERE first = 20", values=(*record, mark))
    for attempt in (_open, lambda path: Store.read(path).replicates(), lambda path: Store.read(path).progress()):
        with pytest.raises(StoreDamaged):
            attempt(path)


METAS: list[str] = ["", "[]", "{}", "null", '{"columns": 3}', "[" * 100_000]


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


def test_a_store_of_other_numbers_is_another_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in which another version kept other arrays is refused as such, not as damaged."""
    path = _filled(tmp_path / "run.db")
    monkeypatch.setattr("ringtrue.execution.store.file.ARRAYS", (*ARRAYS, "more"))
    for attempt in (_open, Store.read, lambda path: repair(path, tmp_path / "new.db")):
        with pytest.raises(StoreError, match="kept other numbers"):
            attempt(path)


def test_lost_reference_values_are_noticed(tmp_path: Path) -> None:
    """Reference values that are gone are damage, not fewer reference values."""
    path = _filled(tmp_path / "run.db")
    _sql(path, "DELETE FROM reference")
    with pytest.raises(StoreDamaged, match="reference values from 0 on are gone"):
        Store.read(path).replicates()


def test_bytes_of_arrays_are_plain_npz() -> None:
    """What is packed can be read with numpy alone, and comes back with its bits; anything cut short is refused."""
    arrays = {"a": np.array([np.nan, -0.0, np.inf]), "b": np.arange(6, dtype=np.uint16).reshape(2, 3, 1)}
    blob = packed(arrays)
    loaded = np.load(io.BytesIO(blob), allow_pickle=False)
    assert all(loaded[name].tobytes() == unpacked(blob)[name].tobytes() == arrays[name].tobytes() for name in arrays)
    for size in range(0, len(blob), 7):
        with pytest.raises(Unreadable):
            unpacked(blob[:size])


def test_bytes_are_read_without_parsing_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading does not parse Python, which can fail by chance in threads (3.11); numpy's reader, the twin, does."""
    blob = packed({"a": np.zeros((5, 2, 3)), "b": np.zeros(3, np.int32)})

    def refuse(*args: Any, **settings: Any) -> Any:
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr("ast.parse", refuse)
    assert [array.shape for array in unpacked(blob).values()] == [(5, 2, 3), (3,)]
    with pytest.raises(SystemError):
        np.load(io.BytesIO(blob))["a"]


def test_bytes_at_random_are_refused_or_read() -> None:
    """Bytes changed at random places are refused as unreadable, or are still arrays; nothing else is raised."""
    blob, places = packed({"a": np.zeros((5, 2, 3)), "b": np.zeros(3, np.int32)}), random.Random(1)
    for _ in range(5000):
        changed = bytearray(blob)
        for _ in range(places.choice([1, 2, 5])):
            changed[places.randrange(len(blob))] = places.randrange(256)
        with contextlib.suppress(Unreadable):
            assert all(isinstance(array, np.ndarray) for array in unpacked(bytes(changed)).values())


def test_shards_merge_into_the_whole(tmp_path: Path) -> None:
    """Stores of shares, overlapping ones too, make a store that gives what an undivided run gives."""
    paths = []
    for k, (start, stop) in enumerate([(0, 25), (20, 45), (40, N), (0, 5)]):
        paths.append(tmp_path / f"{k}.db")
        with _open(paths[-1]) as store:
            store.add_reference(0, _reference()[: 20 * (k % 3) + 20])
            store.add(_span(start, stop - start))
    merge(paths, tmp_path / "all.db")
    assert _same(Store.read(tmp_path / "all.db").replicates(), _original())
    with pytest.raises(StoreError, match="exists already"):
        merge(paths, tmp_path / "all.db")


def test_merging_keeps_draws(tmp_path: Path) -> None:
    """Kept draws are merged with their replicates."""
    for name, start, stop in (("a", 0, 35), ("b", 30, N)):
        with _open(tmp_path / name, keep="draws") as store:
            store.add(_span(start, stop - start, "draws"))
    merge([tmp_path / "b", tmp_path / "a"], tmp_path / "all.db")
    whole, got = _span(0, N, "draws").kept, Store.read(tmp_path / "all.db").draws(0, N)
    assert all(got[name].tobytes() == whole[name].tobytes() for name in whole)


def test_stores_that_do_not_belong_together_are_not_merged(tmp_path: Path) -> None:
    """Another study is refused by field and file, another result for the same replicate by its number."""
    one = _filled(tmp_path / "one.db")
    with _open(tmp_path / "other.db", fingerprint={**MARK, "seed": "5"}) as store:
        store.add(_span(0, 10))
    with pytest.raises(StoreMismatch, match=r"one\.db.*other\.db: seed is 0 there, but 5 here"):
        merge([one, store.path], tmp_path / "all.db")
    with _open(tmp_path / "changed.db") as store:
        store.add(replace(_span(10, 10), u=_span(10, 10).u + 1e-15))
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
            store.add(_span(first, 1))
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


def test_a_store_that_is_dropped_is_closed_by_a_collector_in_any_thread(tmp_path: Path) -> None:
    """A store in a cycle, such as an error with its traceback, is collected by whichever thread makes garbage next."""
    store = Store.read(_filled(tmp_path / "run.db"))
    db, cycle = store._db, list[Any]([store])
    cycle.append(cycle)
    gc.disable()
    try:
        del store, cycle
        with ThreadPoolExecutor(1) as pool:
            pool.submit(gc.collect).result()
    finally:
        gc.enable()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")
