"""Expectations: what a controller has asked for and not seen yet.

Mirrors lag behind writes. A controller that created three pods and reconciles again before they
show would create three more; so it waits until it has seen what it did, or a time-out says that
the answer got lost.
"""

from gpupool.kube.mirror import Key

TIMEOUT_S = 30.0


class Expectations:
    def __init__(self) -> None:
        self._created: dict[Key, set[str]] = {}  # names not seen yet
        self._deleted: dict[Key, set[str]] = {}  # uids not seen gone yet
        self._since: dict[Key, float] = {}

    def expect_created(self, key: Key, name: str, now_s: float) -> None:
        self._created.setdefault(key, set()).add(name)
        self._since[key] = now_s

    def expect_deleted(self, key: Key, uid: str, now_s: float) -> None:
        self._deleted.setdefault(key, set()).add(uid)
        self._since[key] = now_s

    def met(self, key: Key, names: set[str], uids_alive: set[str], now_s: float) -> bool:
        """Whether everything asked for has shown: all names are there, all deletions begun."""
        created = self._created.get(key, set()) - names
        deleted = self._deleted.get(key, set()) & uids_alive
        if (created or deleted) and now_s - self._since[key] < TIMEOUT_S:
            self._created[key], self._deleted[key] = created, deleted
            return False
        self.forget(key)
        return True

    def forget(self, key: Key) -> None:
        for table in (self._created, self._deleted, self._since):
            table.pop(key, None)
