"""The store's file: an SQLite database. Opens it, or sets it aside and begins a new one beside it.

SQLite's write-ahead log makes each minute one transaction: after kill -9, a torn write or a power
cut it is there as a whole or not at all. (`synchronous = NORMAL`: a power cut may take the last
minutes, but never damages the file.)
"""

import contextlib
import logging
import os
import sqlite3
from pathlib import Path

log = logging.getLogger(__name__)

FILE = "history.sqlite"
_APPLICATION = 0x67_70_75_68  # "gpuh": nobody else's database
_VERSION = 2
_READ = (1, 2)  # blocks of version 1 have two figures less
_WAIT_S = 10.0
_CHECKED_BYTES = 64 * 1024 * 1024  # SQLite reads larger files for seconds to check them whole
_ASIDE = 3  # files that were set aside are kept, so many of them

_SCHEMA = """
CREATE TABLE series (
    kind TEXT NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, first_s INTEGER NOT NULL,
    last_s INTEGER NOT NULL, active_s INTEGER, info TEXT NOT NULL, PRIMARY KEY (kind, position)
);
CREATE UNIQUE INDEX names ON series (kind, name);
CREATE TABLE blocks (
    kind TEXT NOT NULL, level INTEGER NOT NULL, block INTEGER NOT NULL, start_s INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX places ON blocks (kind, level, block, start_s);
"""


class NoHistory(Exception):
    """There is no history to read, in words for people."""


class _NotOurs(Exception):
    """The file is damaged, or somebody else's."""

    word = "damaged"  # under which it is kept


class _Newer(_NotOurs):
    """A program that came after this one has written the file. It is good."""

    word = "newer"


def opened_to_write(path: Path) -> sqlite3.Connection:
    """A file that cannot be used is renamed, and a new one takes its place. Raises OSError."""
    try:
        return _opened(path)
    except (sqlite3.DatabaseError, _NotOurs) as error:
        if not is_damage(error):
            raise
        aside = set_aside(path, getattr(error, "word", _NotOurs.word))
        log.warning(
            "history cannot be read, begins anew", extra={"kept": str(aside), "error": str(error)}
        )
        return _opened(path)


def set_aside(path: Path, word: str = _NotOurs.word) -> Path:
    names = [path.with_name(f"{path.name}.{word}-{number + 1}") for number in range(_ASIDE)]
    aside = next((name for name in names if not name.exists()), names[-1])
    with contextlib.suppress(FileNotFoundError):
        path.replace(aside)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return aside


def opened_to_read(path: Path) -> sqlite3.Connection:
    """Raises NoHistory."""
    if not path.exists():
        raise NoHistory(f"{path} does not exist: no history was written yet")
    try:
        connection = sqlite3.connect(
            f"file:{path}?mode=ro", uri=True, timeout=_WAIT_S, check_same_thread=False
        )
        _check_owner(connection)
    except (sqlite3.DatabaseError, _NotOurs) as error:
        raise NoHistory(f"{path} cannot be read: {error}") from error
    return connection


def _opened(path: Path) -> sqlite3.Connection:
    is_new = not path.exists() or path.stat().st_size == 0
    if is_new:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        path.chmod(0o600)
    # One thread at a time: the collector waits for each write.
    connection = sqlite3.connect(
        path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
    )
    try:
        if is_new:
            connection.execute("PRAGMA page_size = 16384")  # blocks have 3 KB: little is left over
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        else:
            _check_owner(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA journal_size_limit = 16777216")
        if is_new:
            _create(connection)
        else:
            # Programs of version 1 must not read what is written from now on.
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        if not is_new and path.stat().st_size <= _CHECKED_BYTES:
            [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise _NotOurs(str(found))
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    # One transaction: a file that was begun and not finished has no version, and begins anew.
    connection.executescript(
        f"BEGIN;{_SCHEMA}PRAGMA application_id = {_APPLICATION};"
        f"PRAGMA user_version = {_VERSION};COMMIT;"
    )


def _check_owner(connection: sqlite3.Connection) -> None:
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        raise _NotOurs("it is not gpupool's history")
    if version not in _READ:
        words = f"its version is {version}; this program reads up to version {_VERSION}"
        raise _Newer(words) if version > _VERSION else _NotOurs(words)


def is_damage(error: Exception) -> bool:
    """Not a full disk, a missing right or a lock: those go away, and the file is good."""
    is_passing = isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError)
    # A table that is missing is an "operational" error, too.
    code = getattr(error, "sqlite_errorcode", None)
    return not is_passing or code == sqlite3.SQLITE_ERROR
