"""Kept: what a webhook has made of stored objects, the latest of it, and not too much."""

from localkube.apiserver.store.record import Record

_MOST = 2048
_MOST_BYTES = 8 * 1024 * 1024
_LARGEST = 256 * 1024  # a webhook may make three megabytes of a hundred bytes


class Kept:
    def __init__(self) -> None:
        self._made: dict[tuple[str, int, str], tuple[Record, Record]] = {}
        self._bytes = 0

    def put(self, record: Record, converted: Record, api_version: str) -> None:
        if len(converted.body) > _LARGEST:
            return
        key = record.uid, record.rv, api_version
        self._drop(key)
        self._made[key] = record, converted
        self._bytes += len(converted.body)
        while len(self._made) > _MOST or self._bytes > _MOST_BYTES:
            self._drop(next(iter(self._made)))

    def get(self, record: Record, api_version: str) -> Record | None:
        """Compared by identity: a version that the disk refused may be given out again."""
        found = self._made.get((record.uid, record.rv, api_version))
        return found[1] if found is not None and found[0] is record else None

    def _drop(self, key: tuple[str, int, str]) -> None:
        gone = self._made.pop(key, None)
        if gone is not None:
            self._bytes -= len(gone[1].body)
