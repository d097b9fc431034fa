"""The SQLite file of a store: made whole, opened for one server alone, read with suspicion.

Nothing is written to a file before all of it has been read and found right. What is wrong is said
in words: which file, what was found, what to do.
"""

import errno
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localkube.apiserver.store import wal
from localkube.apiserver.store.head import BadHead, State, head_path, read_head

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


def row_crc(row: int, resource: str, rv: int, value: bytes) -> int:
    # SQLite keeps no checksums of the pages of its main file. The checksum covers all columns, so
    # that a flipped bit in an id or a version is found as well.
    return zlib.crc32(value, zlib.crc32(f"{row} {resource} {rv}".encode()))


def read_file(path: Path) -> Iterator[tuple[int, str, int, bytes]]:
    """Every (id, resource, rv, value), of a new file if there is none. Raises StoreDamaged.

    Nothing is changed: SQLite would fold the log into a file that may be damaged, and delete it.
    """
    log = _log(path)
    try:
        head = _head(path)
        if not path.exists():
            # They tell of acknowledged writes. A new file beside them would lose these.
            if left := [each.name for each in (log, head_path(path)) if each.exists()]:
                raise StoreDamaged(_damaged(path, f"no such file, but {' and '.join(left)}"))
            _make(path)
        _look_at(path)
        # Before SQLite reads the log: SQLite stops at the first bad frame without an error (see
        # wal.py).
        if problem := wal.damage(log):
            raise StoreDamaged(_damaged(log, problem))
        has_log = log.exists()  # to read may make an empty one
        with _reading(path) as db:
            _verify(path, db)
            _compare(path, _state(path, db), head, has_log=has_log)
            yield from _rows(path, db)
    except OSError as error:
        raise StoreDamaged(_unusable(path, error.strerror or str(error))) from error
    except (sqlite3.DatabaseError, TypeError, UnicodeError) as error:
        raise _refused(path, error) from error


def _head(path: Path) -> State | None:
    try:
        return read_head(path)
    except BadHead as error:
        text = f"a head ({head_path(path).name}) that is garbled: {error}"
        raise StoreDamaged(_behind(path, text)) from error


def _compare(path: Path, state: State, head: State | None, *, has_log: bool) -> None:
    if head is None or state.rv > head.rv or state == head:
        return
    text = f"version {state.rv} with {state.objects} objects"
    if not has_log:
        text += f", and no {_log(path).name}"
    raise StoreDamaged(
        _behind(path, f"{text}; but version {head.rv} with {head.objects} was acknowledged")
    )


def _look_at(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # SQLite takes an empty file for a new database: the cluster would start without its objects.
    if path.stat().st_size == 0:
        raise StoreDamaged(_damaged(path, "an empty file"))


def open_file(path: Path) -> sqlite3.Connection:
    """For this server alone, to be written. Raises StoreDamaged."""
    db = None
    try:
        # Transactions are begun in disk.py (isolation_level=None). The writer thread uses a
        # connection that the main thread opened. No waiting: the owner of a lock is a server that
        # will keep it.
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
        # The mode first: with it, SQLite needs no shared-memory file beside the log.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        # NORMAL flushes the log only at checkpoints: a power cut could undo acknowledged writes.
        db.execute("PRAGMA synchronous = FULL")
        # For macOS, where a plain fsync does not flush the cache of the drive.
        db.execute("PRAGMA fullfsync = ON")
        # In KiB, hence negative. All objects are in memory already; a large page cache would hold
        # them twice.
        db.execute("PRAGMA cache_size = -2000")
    except sqlite3.DatabaseError as error:
        if db is not None:
            db.close()
        raise _refused(path, error) from error
    return db


def flush_log(path: Path) -> None:
    """A server that was killed between a write to the log and its flush has left rows that can be
    read, and that a power cut would take away. To be called before clients are shown them and the
    head counts them. Raises OSError."""
    log = _log(path)
    if log.exists():
        _flush(log)
        _flush(path.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _make(path: Path) -> None:
    """Under another name until it is complete: an empty file in its place is a damaged one.

    Also until it has a write-ahead log: whoever is killed while that changes leaves a journal,
    with which the file cannot be read any more without being written.
    """
    new = path.with_name(f"{path.name}.new")
    for leftover in ("", "-journal", "-wal", "-shm"):  # of somebody who was killed right here
        new.with_name(f"{new.name}{leftover}").unlink(missing_ok=True)
    db = sqlite3.connect(new, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(_SCHEMA)
    finally:
        db.close()
    new.rename(path)
    # A rename survives a power cut only after its directory is flushed.
    _flush(path.parent)


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    log, index = _log(path), path.with_name(f"{path.name}-shm")
    is_stopped = not log.exists()
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)
    try:
        yield db
    finally:
        db.close()
        # A read-only connection may create these files and cannot delete them. The log of a server
        # that was killed stays: it has rows that are not in the main file yet.
        index.unlink(missing_ok=True)
        if is_stopped:
            log.unlink(missing_ok=True)


def _verify(path: Path, db: sqlite3.Connection) -> None:
    """The tree that rows hang in; the rows themselves are looked at when they are read."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise StoreDamaged(
            f"store {path}: wanted format {SCHEMA_VERSION} or older, found {version}: "
            "it was written by a newer version; use that version, or delete the cluster"
        )
    # Not integrity_check: what it checks in addition are indexes, and there are none.
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise StoreDamaged(_damaged(path, found))


def _rows(path: Path, db: sqlite3.Connection) -> Iterator[tuple[int, str, int, bytes]]:
    state = _state(path, db)
    count = 0
    for row, resource, rv, crc, value in db.execute("SELECT * FROM object"):
        # The state is written in every transaction, so that no row can be newer than the state.
        if row_crc(row, resource, rv, value) != crc or rv > state.rv:
            raise StoreDamaged(_damaged(path, f"row {row} ({resource}) is garbled"))
        count += 1
        yield row, resource, rv, value
    # The checksums of rows cannot tell that a whole row is missing. The count can.
    if count != state.objects:
        raise StoreDamaged(_damaged(path, f"{count} objects instead of {state.objects}"))


def _state(path: Path, db: sqlite3.Connection) -> State:
    row = db.execute("SELECT rv, objects, crc FROM state").fetchone()
    if row is None or State(*row[:2]).crc() != row[2]:
        raise StoreDamaged(_damaged(path, "its state is garbled"))
    return State(*row[:2])


def last_state(path: Path, db: sqlite3.Connection) -> State:
    return _state(path, db)


def _damaged(path: Path, found: str) -> str:
    return (
        f"store {path}: wanted a readable SQLite file, found: {found}. It was left as it is. "
        "Put a copy of the whole directory from a backup in its place, or delete the cluster "
        "and start anew"
    )


def _behind(path: Path, found: str) -> str:
    return (
        f"store {path}: wanted all that was written to it, found {found}. The newest writes are "
        "missing; nothing was changed. Put a copy of the whole directory from a backup in its "
        f"place, or delete {head_path(path).name} to go on with what is there"
    )


def _unusable(path: Path, found: str) -> str:
    return (
        f"store {path}: wanted a file to read and write, found: {found}. Look at its owner and "
        "permissions, and at the disk; nothing was changed"
    )


def _refused(path: Path, error: Exception) -> StoreDamaged:
    """In words that help with this kind of error."""
    # The low byte is the primary result code; the other bytes say more precisely what failed.
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
            return StoreDamaged(_damaged(path, str(error)))
