"""The SQLite file of a store: made whole, opened for one server alone, read with suspicion.

Nothing is written to a file before all of it has been read and found right. What is wrong is said
in words: which file, what was found, what to do.
"""

import os
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gpupool.localcluster.apiserver.store import wal

SCHEMA_VERSION = 1

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE object (id INTEGER PRIMARY KEY, resource TEXT NOT NULL, rv INTEGER NOT NULL,
                     crc INTEGER NOT NULL, value BLOB NOT NULL);
CREATE TABLE state (id INTEGER PRIMARY KEY, rv INTEGER NOT NULL, objects INTEGER NOT NULL,
                    crc INTEGER NOT NULL);
INSERT INTO state VALUES (1, 0, 0, {zlib.crc32(b"0 0")});
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


class StoreDamaged(Exception):
    """The file cannot be used. The message says which file, what was found, what to do."""


class State(NamedTuple):
    """What must be true of the objects in the file."""

    rv: int  # the last version that was given out
    objects: int  # how many there are

    def crc(self) -> int:
        return zlib.crc32(b"%d %d" % self)


def row_crc(row: int, resource: str, rv: int, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(f"{row} {resource} {rv}".encode()))


def open_file(path: Path) -> sqlite3.Connection:
    """A new file if there is none. Raises StoreDamaged."""
    log = path.with_name(f"{path.name}-wal")
    try:
        if not path.exists():
            if log.exists():
                raise StoreDamaged(damaged(path, f"no such file, but {log.name}"))
            _make(path)
        if problem := wal.damage(log):
            raise StoreDamaged(damaged(log, problem))
        return _opened(path)
    except OSError as error:
        raise StoreDamaged(_unusable(path, error.strerror or str(error))) from error
    except sqlite3.DatabaseError as error:
        raise refused(path, error) from error


def _make(path: Path) -> None:
    """Under another name until it is complete: an empty file in its place is a damaged one."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    db = sqlite3.connect(new, isolation_level=None)
    try:
        db.executescript(_SCHEMA)
    finally:
        db.close()
    new.rename(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
    try:
        # The mode first: with it, SQLite needs no shared-memory file beside the WAL.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise StoreDamaged(
                f"store {path}: wanted format {SCHEMA_VERSION} or older, found {version}: "
                "it was written by a newer gpupool; use that version, or `gpupool reset`"
            )
        if version < 1:
            raise StoreDamaged(damaged(path, "an empty file"))
        _verify(path, db)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA fullfsync = ON")
        db.execute("PRAGMA cache_size = -2000")
    except BaseException:
        db.close()
        raise
    return db


def _verify(path: Path, db: sqlite3.Connection) -> None:
    """The tree that rows hang in; the rows themselves are looked at when they are read."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise StoreDamaged(damaged(path, found))


def read_state(path: Path, db: sqlite3.Connection) -> State:
    try:
        row = db.execute("SELECT rv, objects, crc FROM state").fetchone()
    except sqlite3.DatabaseError as error:
        raise refused(path, error) from error
    if row is None or State(*row[:2]).crc() != row[2]:
        raise StoreDamaged(damaged(path, "its state is garbled"))
    return State(*row[:2])


def read_rows(path: Path, db: sqlite3.Connection) -> Iterator[tuple[int, str, int, bytes]]:
    """Every (id, resource, rv, value)."""
    state = read_state(path, db)
    count = 0
    try:
        for row, resource, rv, crc, value in db.execute("SELECT * FROM object"):
            if row_crc(row, resource, rv, value) != crc or rv > state.rv:
                raise StoreDamaged(damaged(path, f"row {row} ({resource}) is garbled"))
            count += 1
            yield row, resource, rv, value
    except (sqlite3.DatabaseError, TypeError, AttributeError, UnicodeError) as error:
        raise refused(path, error) from error
    if count != state.objects:
        raise StoreDamaged(damaged(path, f"{count} objects instead of {state.objects}"))


def damaged(path: Path, found: str) -> str:
    return (
        f"store {path}: wanted a readable SQLite file, found: {found}. It was left as it is. "
        "Put a copy of the whole directory from a backup in its place, or start afresh with "
        "`gpupool reset`"
    )


def _unusable(path: Path, found: str) -> str:
    return (
        f"store {path}: wanted a file to read and write, found: {found}. Look at its owner and "
        "permissions, and at the disk; nothing was changed"
    )


def refused(path: Path, error: Exception) -> StoreDamaged:
    """In words that help with this kind of error."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreDamaged(
                f"store {path}: wanted it for this server alone, found it in use by another "
                "process; stop that one first"
            )
        case sqlite3.SQLITE_FULL:
            return StoreDamaged(
                f"store {path}: no space is left on the disk: free some, and start again"
            )
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_IOERR:
            return StoreDamaged(_unusable(path, str(error)))
        case _:
            return StoreDamaged(damaged(path, str(error)))
