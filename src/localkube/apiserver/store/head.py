"""The head of a store: a small file that holds the last version which was acknowledged.

A database that has lost its log, or whose file is missing or an old copy, looks like a good one
with less in it. The head tells. Its place in the path of a write:

    commit, with an fsync of the log  ->  head  ->  clients are answered

So the head never names more than the disk holds: a store that is behind its head has lost
acknowledged writes. The head itself is flushed when it is made and when the server stops, not with
each write, which would double the price of one. It survives kill -9 all the same; after a power cut
it may be older than the store, which is no contradiction.
"""

import os
import zlib
from pathlib import Path
from typing import NamedTuple

_LENGTH = 64  # within one sector, so that it is never half written
_VERSION = "1"


class State(NamedTuple):
    """What must be true of the objects in the store."""

    rv: int  # the last version that was given out
    objects: int  # how many there are

    def crc(self) -> int:
        return zlib.crc32(b"%d %d" % self)


class BadHead(Exception):
    """The file is no head; the text says what was found."""


def head_path(store: Path) -> Path:
    return store.with_name(f"{store.name}-head")


def read_head(store: Path) -> State | None:
    """None: there is no head, because a version before this one wrote the store. Raises BadHead,
    OSError."""
    path = head_path(store)
    if not path.exists():
        return None
    raw = path.read_bytes()
    words = raw.decode("ascii", "replace").split()
    try:
        version, rv, objects, crc = words
        head = State(int(rv), int(objects))
        is_right = version == _VERSION and int(crc) == head.crc() and len(raw) == _LENGTH
    except ValueError:
        is_right = False
    if not is_right:
        raise BadHead(f"{raw[:_LENGTH]!r}")
    return head


class HeadWriter:
    """Writes the head of one store, from one thread."""

    def __init__(self, store: Path, first: State) -> None:
        path = head_path(store)
        if not path.exists():
            _make(path, first)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self.write(first)
            self.flush()
        except BaseException:
            os.close(self._descriptor)
            raise

    def write(self, head: State) -> None:
        os.pwrite(self._descriptor, _line(head), 0)

    def flush(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        self.flush()
        os.close(self._descriptor)


def _make(path: Path, first: State) -> None:
    """Under another name until it is complete: whoever is killed right here, or finds no space on
    the disk, would leave an empty head, which is a garbled one."""
    new = path.with_name(f"{path.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, _line(first), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    new.rename(path)


def _line(head: State) -> bytes:
    text = f"{_VERSION} {head.rv} {head.objects} {head.crc()}"
    return (text.ljust(_LENGTH - 1) + "\n").encode("ascii")
