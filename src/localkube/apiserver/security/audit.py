"""The audit log: one line of JSON for each request that may have changed something.

It tells who did what to which object and how it ended; never a body, a token, or a command line.
Lines are gathered and written together, so the last second of them may be lost with a crash.
"""

import contextlib
import datetime
import os
from functools import lru_cache
from pathlib import Path

import msgspec

from kubeclient.redaction import redact_query
from localkube.apiserver.security.access import Access

_MAX_BYTES = 10 * 1024 * 1024
_KEPT_FILES = 3
_FLUSH_BYTES = 64 * 1024


class Done(msgspec.Struct, frozen=True, gc=False):
    """A request that has been answered."""

    at_s: float
    user: str
    access: Access
    code: int
    ms: float
    query: str = ""
    requester: str = ""  # who really sent it, if `user` is impersonated


class _Line(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    time: str
    user: str
    verb: str
    resource: str
    code: int
    ms: float
    namespace: str = ""
    name: str = ""
    query: str = ""
    requester: str = ""


class AuditLog:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[bytes] = []
        self._gathered_bytes = 0
        self._encode = msgspec.json.Encoder().encode
        self.lost = 0  # lines that could not be written: a full disk must not stop the cluster
        self._descriptor = _open(path)
        self._file_bytes = os.fstat(self._descriptor).st_size

    def record(self, done: Done) -> None:
        line = self._encode(_line(done))
        self._lines.append(line)
        self._gathered_bytes += len(line) + 1
        if self._gathered_bytes >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what has been gathered. To be called about once a second, and at the end."""
        if not self._lines:
            return
        # Taken out before the write: lines that cannot be written are lost and counted. Kept, they
        # would fill the memory while the disk is full.
        lines, self._lines, self._gathered_bytes = self._lines, [], 0
        data = b"\n".join(lines) + b"\n"
        try:
            if self._file_bytes and self._file_bytes + len(data) > _MAX_BYTES:
                self._rotate()
            self._file_bytes += os.write(self._descriptor, data)
        except OSError:
            self.lost += len(lines)

    def close(self) -> None:
        self.flush()
        os.close(self._descriptor)

    def _rotate(self) -> None:
        for number in range(_KEPT_FILES - 1, 0, -1):
            older = self._numbered(number - 1) if number > 1 else self._path
            with contextlib.suppress(FileNotFoundError):
                os.replace(older, self._numbered(number))
        # Before the old file is closed: if this fails, the old descriptor is still good.
        fresh = _open(self._path)
        os.close(self._descriptor)
        self._descriptor, self._file_bytes = fresh, 0

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)


def _line(done: Done) -> _Line:
    access = done.access
    return _Line(
        time=_stamp(done.at_s),
        user=done.user,
        verb=access.verb,
        resource=_resource(access),
        code=done.code,
        ms=round(done.ms, 2),
        namespace=access.namespace,
        name=access.name,
        query=redact_query(done.query) if done.query else "",
        requester=done.requester,
    )


def _resource(access: Access) -> str:
    if access.path:
        return access.path
    named = f"{access.resource}.{access.group}" if access.group else access.resource
    return f"{named}/{access.subresource}" if access.subresource else named


def _stamp(at_s: float) -> str:
    second, fraction = divmod(at_s, 1)
    return f"{_second(int(second))}.{int(fraction * 1000):03}+00:00"


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    return datetime.datetime.fromtimestamp(second, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
