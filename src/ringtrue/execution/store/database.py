"""A file of tables: opening it, locking it, and what SQLite says, in sentences.

Here a file is refused if it is not a store; what is in its tables is not looked at. This module knows nothing of
replicates.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...errors import StoreBusy, StoreDamaged, StoreError
from ..paths import as_path
from .codec import Row, Unreadable

PathLike = str | os.PathLike[str]

#: "ring", the mark of our files among those of SQLite.
_APPLICATION = 0x72696E67
#: What is written. Format 1 can be read.
FORMAT = 2
# Arrays come last in every table: SQLite then reads what is before them without them.
_SPANS = (
    "(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, lost INTEGER NOT NULL, written REAL NOT NULL, "
    "seconds REAL NOT NULL, {}failures TEXT NOT NULL, record BLOB NOT NULL, checksum BLOB NOT NULL, "
    "arrays BLOB NOT NULL)"
)
_BLOCKS = "(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, {}checksum BLOB NOT NULL, arrays BLOB NOT NULL)"


def _tables(notes: str, names: str) -> dict[str, str]:
    return {
        "meta": "CREATE TABLE meta (copy INTEGER PRIMARY KEY, text TEXT NOT NULL, checksum BLOB NOT NULL)",
        "spans": f"CREATE TABLE spans {_SPANS.format(notes)}",
        "draws": f"CREATE TABLE draws {_BLOCKS.format(names)}",
        "reference": f"CREATE TABLE reference {_BLOCKS.format('')}",
    }


#: By format.
_TABLES = {1: _tables("notes TEXT NOT NULL, ", "names TEXT NOT NULL, "), FORMAT: _tables("", "")}
#: Seconds to wait for another's transaction.
_PATIENCE = 60.0


class Lock:
    """The right to write to a store: a lock that the system takes back when its holder dies, however it dies.

    It is SQLite's, on an empty file. The lock of ``filelock`` before its version 4, which many cannot have yet, goes on
    in processes that the holder has forked when the holder is killed.
    """

    def __init__(self, path: Path) -> None:
        self.path = lock_file(path)
        with speaking(path):
            while not self._locked(path):
                pass

    def _locked(self, path: Path) -> bool:
        """Lock the file; False if a writer who was just done has removed it meanwhile."""
        if not self.path.exists():
            # Never opened by hand if it exists: closing it would give up the lock that this process may hold.
            with _place_errors(path):
                self.path.touch()
        with contextlib.suppress(FileNotFoundError):
            before = self.path.stat()
            self._db = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
            close_with(self, self._db)
            try:
                self._db.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                self._db.close()
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
                raise StoreBusy(
                    f"another process is writing to {path}, and a store has one writer at a time; wait for it, or use "
                    f"another file. Reading (ringtrue show, ringtrue judge) is possible meanwhile."
                ) from None
            if os.path.samestat(before, self.path.stat()):
                return True
            self._db.close()
        return False

    def release(self) -> None:
        """Let others write."""
        # Removed while it is still locked, so that it is not another's; some systems allow that only afterwards.
        with contextlib.suppress(OSError):
            self.path.unlink()
        self._db.close()
        with contextlib.suppress(OSError):
            if os.name == "nt":
                self.path.unlink()


def lock_file(path: Path) -> Path:
    """Return the file whose lock is the right to write; it is there while somebody writes, or after one was killed."""
    return path.with_name(path.name + ".lock")


class Unlocked:
    """The right to write to what nobody else can open."""

    def release(self) -> None:
        """Nobody waits for it."""


def temporary() -> sqlite3.Connection:
    """Open a file without a name, which is removed when it is closed."""
    return sqlite3.connect("", isolation_level=None, check_same_thread=False)


def writable_place(path: PathLike) -> Path:
    """Return where a store may be written."""
    whole = as_path(path, "a store").resolve()
    if whole.is_dir():
        raise StoreError(
            f"a store is a file, but {path} is a directory; pass a file in it, such as {whole / 'run.db'}."
        )
    if not whole.parent.is_dir():
        raise StoreError(f"{path} cannot be made, because {whole.parent} is not a directory; make it first.")
    return whole


def existing_file(path: PathLike) -> Path:
    """Return where a store is."""
    whole = as_path(path, "a store").resolve()
    if whole.is_dir():
        raise StoreError(f"a store is a file, but {path} is a directory; pass the file.")
    if not whole.exists():
        raise StoreError(f"there is no file {path}; a run with store= makes one.")
    return whole


def absent_file(path: PathLike) -> Path:
    """Return where a store may be written that is not there yet."""
    whole = writable_place(path)
    if whole.exists():
        raise StoreError(f"{path} exists already and is not written over; pass the name of a new file.")
    return whole


@contextlib.contextmanager
def _place_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error}); pass a file in a directory of your own.") from error


def close_with(owner: Any, db: sqlite3.Connection) -> None:
    """Close a connection when its owner is gone: since Python 3.13 one that is left open is warned of."""
    weakref.finalize(owner, _close_mine, db, os.getpid()).atexit = False


def _close_mine(db: sqlite3.Connection, process: int) -> None:
    if os.getpid() == process:  # a forked process has it too, and must not touch it
        db.close()


def connect(path: Path, mode: str, *more: str) -> sqlite3.Connection:
    """Open a file with some more settings; ``mode`` is SQLite's: "rwc" creates it, "rw" does not."""
    place = f"{path.as_uri()}?mode={mode}"
    # A collector may run in any thread, and close there what was dropped here.
    db = sqlite3.connect(place, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    # A file that shrinks under a memory map kills the process.
    settings = (*more, "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "synchronous=FULL")
    try:
        for setting in settings:
            db.execute(f"PRAGMA {setting}")
    except BaseException:
        db.close()
        raise
    return db


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])


def is_blank(db: sqlite3.Connection) -> bool:
    """Whether there is nothing in the file."""
    tables = db.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
    return not tables and _number(db, "application_id") == 0


def need_ours(path: Path, db: sqlite3.Connection) -> int:
    """Return the format of a store; refuse files that are not stores, or of a format that is not known."""
    if is_blank(db):
        raise StoreError(f"{path} is empty: its run ended before anything was written; run it again.")
    if _number(db, "application_id") != _APPLICATION:
        raise StoreError(f"{path} is an SQLite file, but not a store of ringtrue; pass another file name.")
    version = _number(db, "user_version")
    if version > FORMAT:
        raise StoreError(
            f"{path} has format {version}, but this version of ringtrue reads formats up to {FORMAT}; update ringtrue."
        )
    # Views and triggers run when they are read: a file with anything but our tables is not touched.
    there = db.execute("SELECT type, name, sql FROM sqlite_master ORDER BY rowid LIMIT 9").fetchall()
    if there != [("table", name, sql) for name, sql in _TABLES.get(version, {}).items()]:
        raise damaged(path, "its tables are not those of a store")
    return version


def insert(db: sqlite3.Connection, table: str, values: Iterable[Row]) -> None:
    """Add rows to a table."""
    for row in values:
        db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Write everything or nothing."""
    if db.in_transaction:  # left by an interrupt at a bad moment
        db.execute("ROLLBACK")
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:  # a full disk rolls back by itself
            db.execute("ROLLBACK")


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextlib.contextmanager
def speaking(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into sentences."""
    try:
        yield
    except sqlite3.Error as error:
        raise _spoken(path, error) from error


def _spoken(path: Path, error: sqlite3.Error) -> StoreError:
    code = _code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            f"{path} has been locked by another program for {_PATIENCE:.0f} seconds; end it and try again."
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StoreError(
            f"{path} could not be read or written ({error}): the disk may be full. What was written before is safe; "
            f"make room and make the same call again, and it goes on from there."
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreError(f"{path} cannot be opened for writing ({error}); pass a file in a directory of your own.")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError(f"{path} is not a store of ringtrue, or its first bytes are damaged; pass another file name.")
    return damaged(path, str(error))


def damaged(path: Path, what: str) -> StoreDamaged:
    """Return the error that says what is damaged and how to save the rest."""
    return StoreDamaged(f"{path} is damaged: {what}. Save the rest with: ringtrue repair {path} NEW")


@contextlib.contextmanager
def naming(path: Path, what: str) -> Iterator[None]:
    """Say what is damaged."""
    try:
        yield
    except Unreadable as error:
        raise damaged(path, f"{what} cannot be used, because {error}") from error


def put_meta(db: sqlite3.Connection, rows: Iterable[Row]) -> None:
    """Write the description of a store, inside a transaction."""
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", rows)


def create_tables(db: sqlite3.Connection) -> None:
    """Make a blank file a store, inside a transaction."""
    for statement in _TABLES[FORMAT].values():
        db.execute(statement)
    db.execute(f"PRAGMA application_id={_APPLICATION}")
    db.execute(f"PRAGMA user_version={FORMAT}")
