"""The file under the store: SQLite in WAL mode, synchronous=FULL, one writer thread.

Group commit: while one transaction is being flushed, the next batch collects; its size follows
the load by itself. A batch is written by a few multi-row statements, because each statement
gives up Python's interpreter lock and has to win it back.
"""

import logging
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

log = logging.getLogger(__name__)

SCHEMA_VERSION = 1
_ROWS_PER_STATEMENT = 64


class StoreDamaged(Exception):
    """The file cannot be trusted. The message says which file, what was found, what to do."""


class Row(NamedTuple):
    """One change: `value` None deletes the row."""

    id: int
    resource: str
    rv: int
    value: bytes | None


class Disk:
    """Open the file, read it all once, then write batches from a thread of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = _open(path)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._resume = threading.Event()
        self._pending: list[Row] = []
        self._closing = False
        self._thread: threading.Thread | None = None

    def load(self) -> Iterator[tuple[int, str, int, bytes]]:
        """Every (id, resource, rv, value). Raises StoreDamaged on anything unreadable."""
        try:
            rows = self._db.execute("SELECT id, resource, rv, crc, value FROM object")
            for row, resource, rv, crc, value in rows:
                if zlib.crc32(value) != crc:
                    raise StoreDamaged(_damaged(self.path, f"row {row} ({resource}) is garbled"))
                yield row, resource, rv, value
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(_damaged(self.path, str(error))) from error

    def last_rv(self) -> int:
        row = self._db.execute("SELECT value FROM meta WHERE key = 'rv'").fetchone()
        return int(row[0]) if row else 0

    def start(self, committed: Callable[[int], None], failed: Callable[[Exception], None]) -> None:
        """`committed(n)`: the n oldest queued rows are on disk. `failed`: none of the queued rows
        will ever be; call `discard` and go on. Both are called from the writer thread."""
        self._thread = threading.Thread(
            target=self._write_batches, args=(committed, failed), name="store-writer", daemon=True
        )
        self._thread.start()

    def append(self, row: Row) -> None:
        """Queues; `wake` says when there is enough. Waking the thread for every row would make
        the two fight over Python's lock."""
        with self._lock:
            self._pending.append(row)

    def wake(self) -> None:
        self._wake.set()

    def discard(self) -> None:
        """After a failure: forget what is queued and let the writer go on."""
        with self._lock:
            self._pending.clear()
        self._resume.set()

    def close(self) -> None:
        """Writes what is queued, folds the WAL into the file, closes."""
        self._closing = True
        self._wake.set()
        self._resume.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            log.warning("checkpoint at close failed", extra={"error": str(error)})
        self._db.close()

    def _write_batches(
        self, committed: Callable[[int], None], failed: Callable[[Exception], None]
    ) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            with self._lock:
                batch, self._pending = self._pending, []
            if not batch:
                if self._closing:
                    return
                continue
            try:
                _commit(self._db, batch)
            except sqlite3.Error as error:
                log.error("store not written", extra={"error": str(error), "rows": len(batch)})
                self._resume.clear()
                failed(error)
                self._resume.wait()
            else:
                committed(len(batch))
            if self._closing:
                self._wake.set()


def _open(path: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
        # The mode first: with it, SQLite needs no shared-memory file beside the WAL.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA fullfsync = ON")
        db.execute("PRAGMA cache_size = -2000")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise StoreDamaged(
                f"store {path}: wanted format {SCHEMA_VERSION} or older, found {version}: "
                "it was written by a newer gpupool; use that version, or `gpupool reset`"
            )
        if version == 0:
            db.execute("BEGIN IMMEDIATE")
            db.execute(
                "CREATE TABLE object (id INTEGER PRIMARY KEY, resource TEXT NOT NULL,"
                " rv INTEGER NOT NULL, crc INTEGER NOT NULL, value BLOB NOT NULL)"
            )
            db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL)")
            db.execute("INSERT INTO meta VALUES ('rv', 0)")
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            db.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise StoreDamaged(
                f"store {path}: wanted it for this server alone, found it in use by another "
                "process; stop that one first"
            ) from error
        raise StoreDamaged(_damaged(path, str(error))) from error
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(_damaged(path, str(error))) from error
    return db


def _damaged(path: Path, found: str) -> str:
    return (
        f"store {path}: wanted a readable SQLite file, found: {found}. It was left as it is. "
        "Put a copy from a backup in its place, or start afresh with `gpupool reset`"
    )


def _commit(db: sqlite3.Connection, batch: Sequence[Row]) -> None:
    last = {row.id: row for row in batch}  # only an object's last state needs to reach the disk
    writes = [row for row in last.values() if row.value is not None]
    deletes = [row.id for row in last.values() if row.value is None]
    db.execute("BEGIN IMMEDIATE")
    try:
        for chunk in _chunks(writes):
            values: list[int | str | bytes | None] = []
            for row in chunk:
                assert row.value is not None
                values += (row.id, row.resource, row.rv, zlib.crc32(row.value), row.value)
            slots = ",".join(["(?,?,?,?,?)"] * len(chunk))
            db.execute(f"INSERT OR REPLACE INTO object VALUES {slots}", values)
        for ids in _chunks(deletes):
            slots = ",".join("?" * len(ids))
            db.execute(f"DELETE FROM object WHERE id IN ({slots})", ids)
        db.execute("UPDATE meta SET value = ? WHERE key = 'rv'", (batch[-1].rv,))
        db.execute("COMMIT")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


T = TypeVar("T")


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _ROWS_PER_STATEMENT):
        yield items[start : start + _ROWS_PER_STATEMENT]
