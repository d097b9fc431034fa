"""The log of a server in the background: its standard output and error, in two files at most."""

import logging
import os
import sys
from contextlib import suppress
from os.path import samestat
from pathlib import Path

LIMIT = 10 << 20  # bytes; then the file is renamed, and a new one begins
_STDOUT, _STDERR = 1, 2


def older(path: Path) -> Path:
    return path.with_name(f"{path.name}.1")


class ServerLog(logging.StreamHandler):  # type: ignore[type-arg]  # generic only for checkers
    """Writes records to standard error. If that is the file at `path` (and no terminal), and the
    file has become too large, both standard streams go on in a new file."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        super().__init__(sys.stderr)
        self._path = path
        self._limit = limit

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        with suppress(OSError):  # then the log goes on in this file, and the next record tries
            if os.fstat(_STDERR).st_size > self._limit:
                self._rotate()

    def _rotate(self) -> None:
        opened = os.fstat(_STDERR)
        # The older one: a rotation may have failed between its two steps.
        if not any(_is_at(opened, path) for path in (self._path, older(self._path))):
            return
        fresh = self._path.with_name(f"{self._path.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(fresh, flags, 0o600)
        try:
            if _is_at(opened, self._path):
                self._path.replace(older(self._path))
            fresh.replace(self._path)
            for number in (_STDOUT, _STDERR):
                if samestat(opened, os.fstat(number)):
                    os.dup2(file, number)
        finally:
            os.close(file)


def _is_at(file: os.stat_result, path: Path) -> bool:
    try:
        return samestat(file, os.stat(path))
    except FileNotFoundError:
        return False
