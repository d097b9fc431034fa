"""The file under the store: SQLite in WAL mode, synchronous=FULL, one writer thread.

Group commit: while the writer thread waits for the fsync of one transaction, new rows collect, and
the next transaction takes all of them. One client alone waits for one fsync per write; a hundred
clients share one. There is no timer and no batch size to tune: the batch is what came in meanwhile.

A batch is written by a few multi-row statements, because each statement gives up Python's
interpreter lock and has to win it back from the event loop.
"""

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from localkube.apiserver.store import file
from localkube.apiserver.store.file import StoreDamaged
from localkube.apiserver.store.head import HeadWriter, State

__all__ = ["Change", "Disk", "StoreDamaged"]

log = logging.getLogger(__name__)

# Five parameters per row: 320 in one statement, below the 999 that SQLite before 3.32 allows.
_ROWS_PER_STATEMENT = 64
# Then SQLite gives back its page cache, which large objects have filled: two megabytes.
_IDLE_S = 1.0


class Change(NamedTuple):
    """One change: `value` None deletes the row. `objects`: how many there are after it."""

    id: int
    resource: str
    rv: int
    value: bytes | None
    objects: int


class Disk:
    """Open the file, read it all once, then write batches from a thread of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None  # while it is still being read
        self._head: HeadWriter | None = None  # as long
        self.problem = ""  # why the last batch could not be written
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._resume = threading.Event()
        self._pending: list[Change] = []
        self._closing = False
        self._has_failed = False  # and what is queued builds on what never reached the disk
        self._thread: threading.Thread | None = None

    def load(self) -> Iterator[tuple[int, str, int, bytes]]:
        """Every (id, resource, rv, value). Raises StoreDamaged on anything unreadable."""
        yield from file.read_file(self._path)
        # Opened for writing only after every row was read and found valid: opening a file in WAL
        # mode may already change it.
        self._db = file.open_file(self._path)
        try:
            file.flush_log(self._path)
            self._head = HeadWriter(self._path, file.last_state(self._path, self._db))
        except BaseException:
            self._db.close()  # and gives up the lock
            raise

    def last_rv(self) -> int:
        """Once it is loaded."""
        assert self._db is not None
        return file.last_state(self._path, self._db).rv

    def start(self, committed: Callable[[int], None], failed: Callable[[Exception], None]) -> None:
        """`committed(n)`: the n oldest queued rows are on disk. `failed`: none of the queued rows
        will ever be; call `discard` and go on. Both are called from the writer thread."""
        self._thread = threading.Thread(
            target=self._write_batches, args=(committed, failed), name="store-writer", daemon=True
        )
        self._thread.start()

    def append(self, row: Change) -> None:
        """Queues; `wake` says when there is enough. Waking the thread for every row would make
        the two fight over Python's lock."""
        with self._lock:
            # The lock guards the swap of the list in the writer thread.
            self._pending.append(row)

    def wake(self) -> None:
        self._wake.set()

    def discard(self) -> None:
        """After a failure: forget what is queued and let the writer go on."""
        with self._lock:
            self._pending.clear()
            self._has_failed = False
        self._resume.set()

    def close(self) -> None:
        """Writes what is queued, folds the WAL into the file, closes."""
        self._closing = True
        self._wake.set()
        self._resume.set()
        if self._thread is not None:
            self._thread.join()
        assert self._db is not None
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # Not fatal: all rows are safe in the log, and the next start reads the log, too.
        except sqlite3.Error as error:
            log.warning("checkpoint at close failed", extra={"error": str(error)})
        self._db.close()
        assert self._head is not None
        self._head.close()

    def _write_batches(
        self, committed: Callable[[int], None], failed: Callable[[Exception], None]
    ) -> None:
        assert self._db is not None
        has_pages = False
        while True:
            if not self._wake.wait(_IDLE_S if has_pages else None):
                _give_back(self._db)
                has_pages = False
                continue
            # Cleared before the rows are taken: a row that is queued after that sets the event
            # again, so that no wake-up is lost.
            self._wake.clear()
            with self._lock:
                batch, self._pending = self._pending, []
            # Normal: a wake-up may be about rows that the turn before has taken already. While
            # closing, an empty batch means that everything queued is on disk.
            if not batch:
                if self._closing:
                    return
                continue
            has_pages = True
            try:
                _commit(self._db, batch)
            except Exception as error:  # noqa: BLE001 - a writer that died would hang all clients
                log.error("store not written", extra={"error": str(error), "rows": len(batch)})
                self.problem = str(error)
                self._has_failed = True
                failed(error)
                # The writer waits until the store has undone all queued changes, because they build
                # on a state that never reached the disk.
                self._resume.wait()
                self._resume.clear()
                if self._has_failed:
                    return  # closed meanwhile
            else:
                self.problem = ""
                self._note_head(batch[-1])
                # The number of queued changes, not of the rows written: `_commit` merges changes of
                # one object.
                committed(len(batch))
            # One more turn, for the rows that were queued while this batch was written.
            if self._closing:
                self._wake.set()

    def _note_head(self, last: Change) -> None:
        """Between the commit and the answers: see head.py."""
        assert self._head is not None
        try:
            self._head.write(State(last.rv, last.objects))
        # The rows are on disk. A head that stays behind tells less, and nothing wrong.
        except OSError as error:
            log.warning("head of the store not written", extra={"error": str(error)})


def _give_back(db: sqlite3.Connection) -> None:
    """Nothing is lost if it fails: the pages are on disk."""
    with contextlib.suppress(sqlite3.Error):
        db.execute("PRAGMA shrink_memory")


def _commit(db: sqlite3.Connection, batch: Sequence[Change]) -> None:
    # Only the last state of an object needs to reach the disk: all rows of the batch are committed
    # together or not at all, so that no earlier state could ever be read back.
    last = {row.id: row for row in batch}
    writes = [row for row in last.values() if row.value is not None]
    deletes = [row.id for row in last.values() if row.value is None]
    if db.in_transaction:  # a failed one, that could not even be taken back
        db.execute("ROLLBACK")
    db.execute("BEGIN IMMEDIATE")
    try:
        for chunk in _chunks(writes):
            values: list[int | str | bytes | None] = []
            for row in chunk:
                assert row.value is not None
                crc = file.row_crc(row.id, row.resource, row.rv, row.value)
                values += (row.id, row.resource, row.rv, crc, row.value)
            slots = ",".join(["(?,?,?,?,?)"] * len(chunk))
            db.execute(f"INSERT OR REPLACE INTO object VALUES {slots}", values)
        for ids in _chunks(deletes):
            slots = ",".join("?" * len(ids))
            db.execute(f"DELETE FROM object WHERE id IN ({slots})", ids)
        # Of the last change in the batch, also when that is a deletion, which leaves no row of its
        # version.
        state = State(batch[-1].rv, batch[-1].objects)
        db.execute("UPDATE state SET rv = ?, objects = ?, crc = ?", (*state, state.crc()))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


T = TypeVar("T")


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _ROWS_PER_STATEMENT):
        yield items[start : start + _ROWS_PER_STATEMENT]
